//! Splits the text into statements and tokens (docs/visa.md, "Text").
//!
//! A newline ends a statement, a backslash before it joins lines, comments are white space. Errors are
//! tokens ([`TokenKind::Bad`]): the parser reports them when it reaches them and goes on at the next line.
//! A carriage return is white space: the vendor's tool refuses such files, editors produce them.

use crate::limits::MAX_TOKENS;

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Identifier, or `%` and an identifier.
    Word,
    /// Label at the start of a line, without its colon.
    Label,
    /// Decimal or hexadecimal digits, no sign.
    Int,
    /// Decimal with a fraction or an exponent, no sign.
    Float,
    /// String with its quotes, escapes not decoded.
    Str,
    /// One ASCII character.
    Punct(u8),
    /// End of the statement.
    End,
    /// Not a token.
    Bad(Bad),
}

/// Why something is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// A character that no token starts with.
    Character,
    /// `/*` without `*/`.
    Comment,
    /// `"` without its partner on the line.
    String,
    /// `0x` without digits.
    Hex,
    /// `1e5`: the sign of an exponent is mandatory.
    Exponent,
    /// More than `MAX_TOKENS` in a statement.
    TooMany,
}

/// A token: kind and byte range. Sources are at most 64 MiB, so 32 bits suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub start: u32,
    pub end: u32,
}

/// Where a statement starts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    /// Line of its first character, from 1.
    pub line: u32,
    /// Byte offset of that line.
    pub start: usize,
}

/// Cursor over the source.
pub(super) struct Lexer<'s> {
    src: &'s str,
    bytes: &'s [u8],
    at: usize,
    line: u32,
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

impl<'s> Lexer<'s> {
    #[cfg(test)]
    pub(super) fn new(src: &'s str) -> Lexer<'s> {
        Lexer::at_line(src, 1)
    }

    /// For text that starts at this line of its file.
    pub(super) fn at_line(src: &'s str, line: u32) -> Lexer<'s> {
        Lexer {
            src,
            bytes: src.as_bytes(),
            at: 0,
            line,
        }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.bytes
            .get(self.at.saturating_add(ahead))
            .copied()
            .unwrap_or(0)
    }

    fn skip(&mut self, n: usize) {
        self.at = self.at.saturating_add(n).min(self.bytes.len());
    }

    fn skip_while(&mut self, test: impl Fn(u8) -> bool) {
        while self.at < self.bytes.len() && test(self.byte(0)) {
            self.skip(1);
        }
    }

    /// Reads the tokens of the next statement that has any; `None` at the end of the file.
    pub(super) fn statement(&mut self, tokens: &mut Vec<Token>) -> Option<Head> {
        while self.at < self.bytes.len() {
            tokens.clear();
            let head = Head {
                line: self.line,
                start: self.at,
            };
            self.label(tokens);
            while self.token(tokens) {}
            if !tokens.is_empty() {
                let end = self.offset();
                // The newline is after us; the end token stands on it.
                let end =
                    if self.at > 0 && self.bytes.get(self.at.saturating_sub(1)) == Some(&b'\n') {
                        end.saturating_sub(1)
                    } else {
                        end
                    };
                tokens.push(Token {
                    kind: TokenKind::End,
                    start: end,
                    end,
                });
                return Some(head);
            }
        }
        None
    }

    fn offset(&self) -> u32 {
        u32::try_from(self.at).unwrap_or(u32::MAX)
    }

    /// Labels are recognised in column 0 only, where they may contain characters that words may not.
    fn label(&mut self, tokens: &mut Vec<Token>) {
        let first = self.byte(0);
        if !(first.is_ascii_alphabetic() || matches!(first, b'_' | b'$' | b'@' | b'?')) {
            return;
        }
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let len = rest
            .iter()
            .position(|b| !(is_word(*b) || matches!(b, b'-' | b'$' | b'@' | b'?')))
            .unwrap_or(rest.len());
        if rest.get(len) == Some(&b':') {
            let start = self.offset();
            self.skip(len);
            tokens.push(Token {
                kind: TokenKind::Label,
                start,
                end: self.offset(),
            });
            self.skip(1);
        }
    }

    /// Reads one token, or white space up to the next one. False at the end of the statement.
    fn token(&mut self, tokens: &mut Vec<Token>) -> bool {
        if self.at >= self.bytes.len() {
            return false;
        }
        let start = self.offset();
        let kind = match self.byte(0) {
            b'\n' => {
                self.skip(1);
                self.line = self.line.saturating_add(1);
                return false;
            }
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                self.skip(1);
                return true;
            }
            b'/' if self.byte(1) == b'/' => {
                self.skip_while(|b| b != b'\n');
                return true;
            }
            b'/' if self.byte(1) == b'*' => match self.block_comment() {
                None => return true,
                Some(bad) => bad,
            },
            b'\\' => match self.continuation() {
                None => return true,
                Some(bad) => bad,
            },
            b'"' => self.string(),
            b'%' if self.byte(1).is_ascii_alphabetic() || self.byte(1) == b'_' => {
                self.skip(1);
                self.skip_while(is_word);
                TokenKind::Word
            }
            b if b.is_ascii_alphabetic() || b == b'_' => {
                self.skip_while(is_word);
                TokenKind::Word
            }
            b if b.is_ascii_digit() => self.number(tokens.last()),
            b if b.is_ascii_graphic() => {
                self.skip(1);
                TokenKind::Punct(b)
            }
            _ => self.bad_character(),
        };
        tokens.push(Token {
            kind,
            start,
            end: self.offset(),
        });
        if tokens.len() >= MAX_TOKENS {
            self.skip_while(|b| b != b'\n');
            let end = self.offset();
            tokens.push(Token {
                kind: TokenKind::Bad(Bad::TooMany),
                start,
                end,
            });
        }
        true
    }

    fn bad_character(&mut self) -> TokenKind {
        let width = self
            .src
            .get(self.at..)
            .and_then(|s| s.chars().next())
            .map_or(1, char::len_utf8);
        self.skip(width);
        TokenKind::Bad(Bad::Character)
    }

    fn block_comment(&mut self) -> Option<TokenKind> {
        self.skip(2);
        while self.at < self.bytes.len() {
            match self.byte(0) {
                b'*' if self.byte(1) == b'/' => {
                    self.skip(2);
                    return None;
                }
                b'\n' => self.line = self.line.saturating_add(1),
                _ => {}
            }
            self.skip(1);
        }
        Some(TokenKind::Bad(Bad::Comment))
    }

    fn continuation(&mut self) -> Option<TokenKind> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let blank = rest
            .iter()
            .skip(1)
            .take_while(|b| matches!(b, b' ' | b'\t' | b'\r'))
            .count();
        let newline = blank.saturating_add(1);
        if rest.get(newline) == Some(&b'\n') {
            self.skip(newline.saturating_add(1));
            self.line = self.line.saturating_add(1);
            None
        } else {
            self.skip(1);
            Some(TokenKind::Bad(Bad::Character))
        }
    }

    fn string(&mut self) -> TokenKind {
        self.skip(1);
        loop {
            match self.byte(0) {
                b'"' => {
                    self.skip(1);
                    return TokenKind::Str;
                }
                b'\\' if self.byte(1) != b'\n' && self.byte(1) != 0 => self.skip(2),
                b'\n' => return TokenKind::Bad(Bad::String),
                0 if self.at >= self.bytes.len() => return TokenKind::Bad(Bad::String),
                _ => self.skip(1),
            }
        }
    }

    /// `previous` matters: after a dot that touches the number (`gather.4`, `dpas.bf.bf.8.8`, `V0.16`) only
    /// an integer can follow, so `4.1` there is three tokens.
    fn number(&mut self, previous: Option<&Token>) -> TokenKind {
        if self.byte(0) == b'0' && matches!(self.byte(1), b'x' | b'X') {
            self.skip(2);
            let digits = self.at;
            self.skip_while(|b| b.is_ascii_hexdigit());
            return if self.at == digits {
                TokenKind::Bad(Bad::Hex)
            } else {
                TokenKind::Int
            };
        }
        let glued =
            previous.is_some_and(|t| t.kind == TokenKind::Punct(b'.') && t.end == self.offset());
        self.skip_while(|b| b.is_ascii_digit());
        if glued {
            return TokenKind::Int;
        }
        let mut kind = TokenKind::Int;
        if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
            self.skip(1);
            self.skip_while(|b| b.is_ascii_digit());
            kind = TokenKind::Float;
        }
        if matches!(self.byte(0), b'e' | b'E') {
            if matches!(self.byte(1), b'+' | b'-') && self.byte(2).is_ascii_digit() {
                self.skip(2);
                self.skip_while(|b| b.is_ascii_digit());
                kind = TokenKind::Float;
            } else if self.byte(1).is_ascii_digit() {
                self.skip_while(is_word);
                kind = TokenKind::Bad(Bad::Exponent);
            }
        }
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(src: &str) -> Vec<Vec<String>> {
        let mut lexer = Lexer::new(src);
        let mut tokens = Vec::new();
        let mut out = Vec::new();
        while lexer.statement(&mut tokens).is_some() {
            out.push(
                tokens
                    .iter()
                    .map(|t| match t.kind {
                        TokenKind::Bad(b) => format!("{b:?}!"),
                        TokenKind::End => "$".into(),
                        TokenKind::Label => format!("{}:", &src[t.start as usize..t.end as usize]),
                        TokenKind::Float => format!("~{}", &src[t.start as usize..t.end as usize]),
                        _ => src[t.start as usize..t.end as usize].to_string(),
                    })
                    .collect(),
            );
        }
        out
    }

    #[test]
    fn statements_end_at_newlines() {
        assert_eq!(
            lex("a b\n\n  c // x\n"),
            [vec!["a", "b", "$"], vec!["c", "$"]]
        );
        assert_eq!(
            lex("a \\\n b /* x\n y */ c\r\nd"),
            [vec!["a", "b", "c", "$"], vec!["d", "$"]]
        );
    }

    #[test]
    fn labels_only_in_column_zero() {
        assert_eq!(lex("_0_012:\n"), [vec!["_0_012:", "$"]]);
        assert_eq!(lex("L-1$a: x"), [vec!["L-1$a:", "x", "$"]]);
        assert_eq!(lex(" L1:"), [vec!["L1", ":", "$"]]);
        assert_eq!(lex("a \\\nL1:"), [vec!["a", "L1", ":", "$"]]);
    }

    #[test]
    fn numbers() {
        assert_eq!(
            lex(" gather.4.1 1.5:f 1e+5 0x1f 2x16"),
            [vec![
                "gather", ".", "4", ".", "1", "~1.5", ":", "f", "~1e+5", "0x1f", "2", "x16", "$"
            ]]
        );
        assert_eq!(lex(" 1e5 0x"), [vec!["Exponent!", "Hex!", "$"]]);
        assert_eq!(lex(".version 4.1"), [vec![".", "version", "~4.1", "$"]]);
    }

    #[test]
    fn strings_and_rubbish() {
        assert_eq!(lex(r#" "a\"b" "c"#), [vec![r#""a\"b""#, "String!", "$"]]);
        assert_eq!(lex(" é \\ a"), [vec!["Character!", "Character!", "a", "$"]]);
        assert_eq!(lex(" a /* b"), [vec!["a", "Comment!", "$"]]);
        assert_eq!(lex(" %r0 % r"), [vec!["%r0", "%", "r", "$"]]);
    }
}
