//! Integer expressions of directives: `num_elts=4*4`.

use super::super::error::ErrorKind;
use super::super::lexer::TokenKind;
use super::{PResult, Parser};
use crate::limits::MAX_EXPR_DEPTH;

/// Binary operators by how tightly they bind, loosest first.
const LEVELS: [&[&str]; 6] = [
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl<'s> Parser<'s> {
    /// Takes an expression whose value lies in a range.
    pub(super) fn expression(&mut self, what: &str, min: i64, max: i64) -> PResult<i64> {
        let start = self.peek();
        let value = self.binary(what, 0, 0)?;
        if value < min || value > max {
            let message = format!("{what} cannot be {value}");
            let label = format!("expected {min} to {max}");
            return Err(self.error_full(start, ErrorKind::Value, message, label, None));
        }
        Ok(value)
    }

    /// Takes an unsigned 32-bit expression.
    pub(super) fn expression_u32(&mut self, what: &str) -> PResult<u32> {
        let value = self.expression(what, 0, i64::from(u32::MAX))?;
        Ok(u32::try_from(value).unwrap_or(u32::MAX))
    }

    fn binary(&mut self, what: &str, level: usize, depth: usize) -> PResult<i64> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary(what, depth);
        };
        let next = level.saturating_add(1);
        let mut left = self.binary(what, next, depth)?;
        while let Some(operator) = self.operator(operators) {
            let token = self.peek();
            let right = self.binary(what, next, depth)?;
            left = match apply(operator, left, right) {
                Some(value) => value,
                None => {
                    let message =
                        "this expression has no value: overflow or division by zero".into();
                    return Err(self.error(token, ErrorKind::Value, message));
                }
            };
        }
        Ok(left)
    }

    fn operator(&mut self, operators: &[&'static str]) -> Option<&'static str> {
        let found = operators.iter().find(|o| match o.as_bytes() {
            [a] => self.is(*a),
            [a, b] => {
                self.is(*a)
                    && self.peek2().kind == TokenKind::Punct(*b)
                    && self.peek().end == self.peek2().start
            }
            _ => false,
        })?;
        for _ in 0..found.len() {
            self.bump();
        }
        Some(found)
    }

    fn unary(&mut self, what: &str, depth: usize) -> PResult<i64> {
        let token = self.peek();
        let deeper = depth.saturating_add(1);
        if depth > MAX_EXPR_DEPTH {
            return Err(self.error(
                token,
                ErrorKind::Limit,
                "an expression is nested too deeply".into(),
            ));
        }
        match token.kind {
            TokenKind::Punct(b'(') => {
                self.bump();
                let value = self.binary(what, 0, deeper)?;
                self.expect(b')', "`)`")?;
                Ok(value)
            }
            TokenKind::Punct(b'-') => {
                self.bump();
                Ok(self.unary(what, deeper)?.wrapping_neg())
            }
            TokenKind::Punct(b'~') => {
                self.bump();
                Ok(!self.unary(what, deeper)?)
            }
            TokenKind::Int => {
                self.bump();
                let value = self.int_value(token)?;
                // A bit pattern above the signed range keeps its bits.
                Ok(value.cast_signed())
            }
            _ => Err(self.unexpected(&[what])),
        }
    }
}

fn apply(operator: &str, a: i64, b: i64) -> Option<i64> {
    match operator {
        "|" => Some(a | b),
        "^" => Some(a ^ b),
        "&" => Some(a & b),
        "<<" => a.checked_shl(u32::try_from(b).ok()?),
        ">>" => a.checked_shr(u32::try_from(b).ok()?),
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" => a.checked_div(b),
        "%" => a.checked_rem(b),
        _ => None,
    }
}
