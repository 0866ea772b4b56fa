//! Token access and error reporting.

use super::super::error::{ErrorKind, TextError};
use super::super::lexer::{Bad, Token, TokenKind};
use super::{PResult, Parser, Reported};
use crate::module::Pos;

impl<'s> Parser<'s> {
    fn nth(&self, index: usize) -> Token {
        // A statement always ends with an `End` token, which is never stepped over.
        self.tokens
            .get(index)
            .or(self.tokens.last())
            .copied()
            .unwrap_or(Token {
                kind: TokenKind::End,
                start: 0,
                end: 0,
            })
    }

    /// First token of the statement.
    pub(super) fn first(&self) -> Token {
        self.nth(0)
    }

    /// The next token.
    pub(super) fn peek(&self) -> Token {
        self.nth(self.at)
    }

    /// The token after the next.
    pub(super) fn peek2(&self) -> Token {
        self.nth(self.at.saturating_add(1))
    }

    fn previous(&self) -> Option<Token> {
        self.tokens.get(self.at.checked_sub(1)?).copied()
    }

    /// End of what has been taken since `first`.
    pub(super) fn previous_end(&self, first: Token) -> u32 {
        self.previous().map_or(first.end, |p| p.end)
    }

    /// Text of the token `ahead` places after the next.
    pub(super) fn nth_text(&self, ahead: usize) -> &'s str {
        self.text(self.nth(self.at.saturating_add(ahead)))
    }

    /// Takes the next token.
    pub(super) fn bump(&mut self) -> Token {
        let token = self.peek();
        if token.kind != TokenKind::End {
            self.at = self.at.saturating_add(1);
        }
        token
    }

    /// Source text of a byte range.
    pub(super) fn src_range(&self, start: u32, end: u32) -> &'s str {
        self.src
            .get(start as usize..end as usize)
            .unwrap_or_default()
    }

    /// Source text of a token.
    pub(super) fn text(&self, token: Token) -> &'s str {
        self.src_range(token.start, token.end)
    }

    /// True when the next token is this character.
    pub(super) fn is(&self, c: u8) -> bool {
        self.peek().kind == TokenKind::Punct(c)
    }

    /// Takes the next token if it is this character.
    pub(super) fn eat(&mut self, c: u8) -> bool {
        let yes = self.is(c);
        if yes {
            self.bump();
        }
        yes
    }

    /// Takes this character, or reports that `what` was expected.
    pub(super) fn expect(&mut self, c: u8, what: &str) -> PResult<Token> {
        if self.is(c) {
            Ok(self.bump())
        } else {
            Err(self.unexpected(&[what]))
        }
    }

    /// Takes a word, or reports that `what` was expected.
    pub(super) fn word(&mut self, what: &str) -> PResult<(Token, &'s str)> {
        let token = self.peek();
        if token.kind == TokenKind::Word {
            self.bump();
            Ok((token, self.text(token)))
        } else {
            Err(self.unexpected(&[what]))
        }
    }

    /// True when no white space precedes the next token.
    pub(super) fn glued(&self) -> bool {
        self.previous().is_none_or(|p| p.end == self.peek().start)
    }

    /// Takes the words and digits that touch each other from here on, as one token.
    pub(super) fn glued_run(&mut self) -> Option<(Token, &'s str)> {
        let first = self.peek();
        if !matches!(first.kind, TokenKind::Word | TokenKind::Int) {
            return None;
        }
        let mut token = self.bump();
        while self.glued() && matches!(self.peek().kind, TokenKind::Word | TokenKind::Int) {
            token.end = self.bump().end;
        }
        token.kind = TokenKind::Word;
        Some((token, self.text(token)))
    }

    /// Takes `.suffix` if it touches the previous token. A dot with nothing after it gives an empty suffix.
    pub(super) fn suffix(&mut self) -> Option<(Token, &'s str)> {
        if !(self.is(b'.') && self.glued()) {
            return None;
        }
        let dot = self.bump();
        if self.glued()
            && let Some(run) = self.glued_run()
        {
            return Some(run);
        }
        Some((dot, ""))
    }

    /// True when `.text` touches the previous token.
    pub(super) fn suffix_is(&self, text: &str) -> bool {
        self.is(b'.')
            && self.glued()
            && self.nth_text(1) == text
            && self.peek().end == self.peek2().start
    }

    /// Takes `.text` if it is there.
    pub(super) fn eat_suffix(&mut self, text: &str) -> bool {
        let yes = self.suffix_is(text);
        if yes {
            self.suffix();
        }
        yes
    }

    /// Takes a suffix that `find` knows; `names` are shown when it is missing or unknown.
    pub(super) fn suffix_of<T>(
        &mut self,
        what: &str,
        names: &[&str],
        find: impl Fn(&str) -> Option<T>,
    ) -> PResult<T> {
        match self.suffix() {
            Some((token, text)) => match find(text) {
                Some(value) => Ok(value),
                None => Err(self.not_one_of(token, what, text, names)),
            },
            None => {
                let what = format!("`.` and {what}: {}", list(names));
                Err(self.unexpected(&[&what]))
            }
        }
    }

    /// Reports a word that is not in a closed list.
    pub(super) fn not_one_of(
        &mut self,
        token: Token,
        what: &str,
        text: &str,
        names: &[&str],
    ) -> Reported {
        let hint = super::symbols::closest(text, names.iter().copied());
        self.error_full(
            token,
            ErrorKind::Syntax,
            if text.is_empty() {
                format!("{what} is missing")
            } else {
                format!("unknown {} `{text}`", strip_article(what))
            },
            format!("expected {}", list(names)),
            hint.map(|h| format!("did you mean `{h}`?")),
        )
    }

    /// Reports extra text after a complete statement.
    pub(super) fn end_of_statement(&mut self) -> PResult<()> {
        if self.peek().kind == TokenKind::End {
            Ok(())
        } else {
            Err(self.unexpected(&["the end of the line"]))
        }
    }

    /// Line and column of a token of this statement.
    pub(super) fn pos(&self, token: Token) -> Pos {
        let (line, start) = self.line_of(token);
        let before = self
            .src
            .get(start..token.start as usize)
            .unwrap_or_default();
        let col = u32::try_from(before.chars().count()).unwrap_or(u32::MAX);
        Pos {
            line,
            col: col.saturating_add(1),
        }
    }

    /// Number and byte offset of the line a token of this statement stands on.
    fn line_of(&self, token: Token) -> (u32, usize) {
        let mut line = self.head.line;
        let mut start = self.head.start;
        let text = self
            .src
            .as_bytes()
            .get(start..token.start as usize)
            .unwrap_or_default();
        for (i, _) in text.iter().enumerate().filter(|(_, b)| **b == b'\n') {
            line = line.saturating_add(1);
            start = self.head.start.saturating_add(i).saturating_add(1);
        }
        (line, start)
    }

    /// Records an error.
    pub(super) fn error(&mut self, token: Token, kind: ErrorKind, message: String) -> Reported {
        self.error_full(token, kind, message, String::new(), None)
    }

    /// Records an error with what was expected and a hint.
    pub(super) fn error_full(
        &mut self,
        token: Token,
        kind: ErrorKind,
        message: String,
        label: String,
        hint: Option<String>,
    ) -> Reported {
        let (_, start) = self.line_of(token);
        let line = self
            .src
            .get(start..)
            .and_then(|s| s.lines().next())
            .unwrap_or_default();
        let shown = self.text(token).lines().next().unwrap_or_default();
        self.errors.push(TextError {
            kind,
            pos: self.pos(token),
            len: u32::try_from(shown.chars().count()).unwrap_or(1).max(1),
            line: line.to_string(),
            message,
            label,
            hint,
        });
        Reported
    }

    /// Reports that the next token is none of `what`.
    pub(super) fn unexpected(&mut self, what: &[&str]) -> Reported {
        let token = self.peek();
        let found = match token.kind {
            TokenKind::End => "end of line".to_string(),
            _ => format!("`{}`", clip(self.text(token))),
        };
        let label = match what {
            [one] => format!("expected {one}"),
            many => format!("expected one of: {}", many.join(", ")),
        };
        self.error_full(
            token,
            ErrorKind::Syntax,
            format!("unexpected {found}"),
            label,
            None,
        )
    }

    /// Lexical errors come first: what follows them cannot be trusted.
    pub(super) fn reject_bad_tokens(&mut self) -> PResult<()> {
        let bad = self.tokens.iter().find_map(|t| match t.kind {
            TokenKind::Bad(bad) => Some((*t, bad)),
            _ => None,
        });
        let Some((token, bad)) = bad else {
            return Ok(());
        };
        let text = clip(self.text(token));
        let (kind, message, hint) = match bad {
            Bad::Character => (
                ErrorKind::Syntax,
                format!("unexpected character `{text}`"),
                None,
            ),
            Bad::Comment => (
                ErrorKind::Syntax,
                "this comment is not closed".into(),
                Some("close it with `*/`"),
            ),
            Bad::String => (
                ErrorKind::Syntax,
                "this string is not closed".into(),
                Some("a string ends on the line it starts on"),
            ),
            Bad::Hex => (
                ErrorKind::Syntax,
                format!("`{text}` has no hexadecimal digits"),
                None,
            ),
            Bad::Exponent => (
                ErrorKind::Syntax,
                format!("malformed number `{text}`"),
                Some("the sign of an exponent is mandatory: `1e+5`"),
            ),
            Bad::TooMany => (
                ErrorKind::Limit,
                format!(
                    "more than {} tokens in one statement",
                    crate::limits::MAX_TOKENS
                ),
                None,
            ),
        };
        Err(self.error_full(token, kind, message, String::new(), hint.map(String::from)))
    }
}

/// At most the first 40 characters of a token.
pub(super) fn clip(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    match first.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", first.get(..end).unwrap_or_default()),
        None => first.to_string(),
    }
}

/// `one of `a`, `b``, or just the one.
pub(super) fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.as_slice() {
        [one] => one.clone(),
        many => format!("one of {}", many.join(", ")),
    }
}

fn strip_article(what: &str) -> &str {
    what.strip_prefix("a ")
        .or(what.strip_prefix("an "))
        .or(what.strip_prefix("the "))
        .unwrap_or(what)
}
