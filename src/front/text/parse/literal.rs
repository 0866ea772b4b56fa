//! Numbers and strings.

use super::super::error::ErrorKind;
use super::super::lexer::{Token, TokenKind};
use super::cursor::list;
use super::{PResult, Parser};
use crate::isa::Type;
use crate::limits::{MAX_NAME_BYTES, MAX_STRING_BYTES};
use crate::module::Src;
use std::borrow::Cow;

impl<'s> Parser<'s> {
    /// Takes an unsigned integer of at most `max`.
    pub(super) fn uint(&mut self, what: &str, max: u64) -> PResult<u64> {
        let token = self.peek();
        if token.kind != TokenKind::Int {
            return Err(self.unexpected(&[what]));
        }
        self.bump();
        let value = self.int_value(token)?;
        if value > max {
            return Err(self.out_of_range(token, what, 0, i128::from(max)));
        }
        Ok(value)
    }

    /// Takes an unsigned integer of at most 65535.
    pub(super) fn uint16(&mut self, what: &str) -> PResult<u16> {
        let value = self.uint(what, u64::from(u16::MAX))?;
        Ok(u16::try_from(value).unwrap_or(u16::MAX))
    }

    /// Takes an unsigned integer of at most `max`.
    pub(super) fn uint8(&mut self, what: &str, max: u8) -> PResult<u8> {
        let value = self.uint(what, u64::from(max))?;
        Ok(u8::try_from(value).unwrap_or(max))
    }

    /// Takes an unsigned 32-bit integer.
    pub(super) fn uint32(&mut self, what: &str) -> PResult<u32> {
        let value = self.uint(what, u64::from(u32::MAX))?;
        Ok(u32::try_from(value).unwrap_or(u32::MAX))
    }

    /// Takes an integer with an optional sign.
    pub(super) fn int(&mut self, what: &str, min: i64, max: i64) -> PResult<i64> {
        let start = self.peek();
        let negative = self.eat(b'-');
        let token = self.peek();
        if token.kind != TokenKind::Int {
            return Err(self.unexpected(&[what]));
        }
        self.bump();
        let magnitude = i128::from(self.int_value(token)?);
        let value = if negative {
            magnitude.saturating_neg()
        } else {
            magnitude
        };
        match i64::try_from(value) {
            Ok(v) if v >= min && v <= max => Ok(v),
            _ => Err(self.out_of_range(start, what, i128::from(min), i128::from(max))),
        }
    }

    fn out_of_range(&mut self, token: Token, what: &str, min: i128, max: i128) -> super::Reported {
        let message = format!("`{}` is out of range", self.text(token));
        let label = format!("expected {what} from {min} to {max}");
        self.error_full(token, ErrorKind::Value, message, label, None)
    }

    /// Takes an integer that must be one of a few.
    pub(super) fn int_of(&mut self, what: &str, allowed: &[u8]) -> PResult<u8> {
        let token = self.peek();
        if token.kind != TokenKind::Int {
            return Err(self.unexpected(&[what]));
        }
        self.bump();
        let value = self.int_value(token)?;
        match allowed.iter().find(|a| u64::from(**a) == value) {
            Some(a) => Ok(*a),
            None => Err(self.not_allowed(token, what, allowed)),
        }
    }

    /// Reports a number outside of a closed list.
    pub(super) fn not_allowed(
        &mut self,
        token: Token,
        what: &str,
        allowed: &[u8],
    ) -> super::Reported {
        let names: Vec<String> = allowed.iter().map(u8::to_string).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let message = format!("{what} cannot be `{}`", self.text(token));
        let label = format!("expected {}", list(&names));
        self.error_full(token, ErrorKind::Value, message, label, None)
    }

    /// Takes `.N` where N is one of a few.
    pub(super) fn int_suffix(&mut self, what: &str, allowed: &[u8]) -> PResult<u8> {
        let names: Vec<String> = allowed.iter().map(u8::to_string).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.suffix_of(what, &names, |text| {
            let value = text.parse::<u8>().ok()?;
            allowed.contains(&value).then_some(value)
        })
    }

    /// Value of an integer token.
    pub(super) fn int_value(&mut self, token: Token) -> PResult<u64> {
        let text = self.text(token);
        let value = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse::<u64>(),
        };
        value.map_err(|_| {
            let message = format!("`{}` does not fit into 64 bits", super::cursor::clip(text));
            self.error(token, ErrorKind::Value, message)
        })
    }

    /// True when the next token starts an immediate.
    pub(super) fn at_immediate(&self) -> bool {
        matches!(self.peek().kind, TokenKind::Int | TokenKind::Float) || self.is(b'-')
    }

    /// Takes `[-]number:type`.
    pub(super) fn immediate(&mut self) -> PResult<Src> {
        let start = self.peek();
        let negative = self.eat(b'-');
        let number = self.peek();
        if !matches!(number.kind, TokenKind::Int | TokenKind::Float) {
            return Err(self.unexpected(&["a number"]));
        }
        self.bump();
        self.expect(b':', "`:` and the type of the immediate")?;
        let ty = self.type_name("the type of the immediate")?;
        let whole = Token {
            kind: number.kind,
            start: start.start,
            end: number.end,
        };
        let bits = if number.kind == TokenKind::Float {
            self.float_bits(whole, number, negative, ty)?
        } else {
            self.int_bits(whole, number, negative, ty)?
        };
        Ok(Src::Imm { bits, ty })
    }

    /// Takes a type name.
    pub(super) fn type_name(&mut self, what: &str) -> PResult<Type> {
        let (token, name) = self.word(what)?;
        Type::from_name(name).ok_or_else(|| {
            let names: Vec<&str> = Type::ALL.iter().map(|t| t.name()).collect();
            self.not_one_of(token, "a type", name, &names)
        })
    }

    /// A literal with a fraction or an exponent is converted; there is no spelling for `hf` but its bits.
    fn float_bits(
        &mut self,
        whole: Token,
        number: Token,
        negative: bool,
        ty: Type,
    ) -> PResult<u64> {
        let magnitude: f64 = self.text(number).parse().unwrap_or(f64::NAN);
        let value = if negative { -magnitude } else { magnitude };
        match ty {
            Type::F => Ok(u64::from((value as f32).to_bits())),
            Type::Df => Ok(value.to_bits()),
            _ => {
                let message = format!("a decimal fraction cannot have type `{ty}`");
                let hint = "fractions are of type `f` or `df`; write other float types as hexadecimal bits";
                Err(self.error_full(
                    whole,
                    ErrorKind::Value,
                    message,
                    String::new(),
                    Some(hint.into()),
                ))
            }
        }
    }

    /// An integer literal is a bit pattern, of float types too. 8 and 16-bit types keep their low bits, as
    /// the vendor's tools print them extended to 32; wider values that lose bits are mistakes.
    fn int_bits(&mut self, whole: Token, number: Token, negative: bool, ty: Type) -> PResult<u64> {
        let magnitude = self.int_value(number)?;
        let value = if negative {
            magnitude.wrapping_neg()
        } else {
            magnitude
        };
        let width = immediate_bits(ty);
        let mask = u64::MAX >> 64u32.saturating_sub(width);
        if width < 64 {
            let high = value >> 32;
            let extended = high == u64::from(u32::MAX) && value & 0x8000_0000 != 0;
            if high != 0 && !extended {
                let message = format!("`{}` does not fit into type `{ty}`", self.text(whole));
                return Err(self.error(whole, ErrorKind::Value, message));
            }
        } else if negative && magnitude > 1 << 63 {
            let message = format!("`{}` does not fit into type `{ty}`", self.text(whole));
            return Err(self.error(whole, ErrorKind::Value, message));
        }
        Ok(value & mask)
    }

    /// Takes a string literal and decodes its escapes.
    pub(super) fn string(&mut self, what: &str) -> PResult<String> {
        let token = self.peek();
        if token.kind != TokenKind::Str {
            return Err(self.unexpected(&[what]));
        }
        self.bump();
        let text = self.text(token);
        if text.len() > MAX_STRING_BYTES {
            let message = format!("a string is longer than {MAX_STRING_BYTES} bytes");
            return Err(self.error(token, ErrorKind::Limit, message));
        }
        let inner = text
            .strip_prefix('"')
            .and_then(|t| t.strip_suffix('"'))
            .unwrap_or_default();
        unescape(inner).ok_or_else(|| {
            self.error_full(
                token,
                ErrorKind::Syntax,
                "unknown escape in a string".into(),
                String::new(),
                Some(
                    "escapes are \\a \\b \\e \\f \\n \\r \\t \\v \\' \\\" \\? \\\\ \\ooo \\xHH"
                        .into(),
                ),
            )
        })
    }

    /// Takes a name: a word, or a string where the name is no identifier.
    pub(super) fn name(&mut self, what: &str) -> PResult<(Token, Cow<'s, str>)> {
        let token = self.peek();
        let name = match token.kind {
            TokenKind::Word => {
                self.bump();
                Cow::Borrowed(self.text(token))
            }
            TokenKind::Str => Cow::Owned(self.string(what)?),
            _ => return Err(self.unexpected(&[what])),
        };
        if name.len() > MAX_NAME_BYTES {
            let message = format!("a name is longer than {MAX_NAME_BYTES} bytes");
            return Err(self.error(token, ErrorKind::Limit, message));
        }
        Ok((token, name))
    }
}

/// Bits of an immediate; packed types are 32 bits wide.
fn immediate_bits(ty: Type) -> u32 {
    match ty {
        Type::V | Type::Uv | Type::Vf => 32,
        _ => ty.bytes().saturating_mul(8),
    }
}

/// Decodes the escapes of a string. Escapes give characters up to U+00FF.
fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let decoded = match chars.next()? {
            'a' => '\x07',
            'b' => '\x08',
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            c @ ('\'' | '"' | '?' | '\\') => c,
            'x' => {
                let high = chars.next()?.to_digit(16)?;
                let low = chars.next()?.to_digit(16)?;
                char::from_u32(high.checked_mul(16)?.checked_add(low)?)?
            }
            c @ '0'..='7' => {
                let mut value = c.to_digit(8)?;
                for _ in 0..2 {
                    let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) else {
                        break;
                    };
                    value = value.checked_mul(8)?.checked_add(digit)?;
                    chars.next();
                }
                char::from_u32(value).filter(|_| value < 256)?
            }
            _ => return None,
        };
        out.push(decoded);
    }
    Some(out)
}
