//! Format strings.

use crate::limits::MAX_PRINTF_FIELD;

/// What a format string consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Written as it is.
    Text(&'a [u8]),
    /// Takes an argument.
    Conversion(Spec),
}

/// A conversion specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spec {
    pub left: bool,
    pub plus: bool,
    pub space: bool,
    pub alternate: bool,
    pub zeros: bool,
    pub width: usize,
    pub precision: Option<usize>,
    /// Bytes of an integer of the length modifier; 4 without one.
    pub bytes: u32,
    /// The letter.
    pub conversion: u8,
}

impl Spec {
    /// Spaces up to the width.
    pub(super) fn padded(&self, mut body: Vec<u8>) -> Vec<u8> {
        let missing = self.width.saturating_sub(body.len());
        let mut out = vec![b' '; missing];
        if self.left {
            body.append(&mut out);
            return body;
        }
        out.append(&mut body);
        out
    }

    /// As [`Spec::padded`], but zeros between prefix and body where the flags ask for them.
    pub(super) fn number(&self, prefix: &str, body: &str, zeros: bool) -> Vec<u8> {
        let length = prefix.len().saturating_add(body.len());
        let missing = self.width.saturating_sub(length);
        let zeros = if self.zeros && zeros && !self.left {
            missing
        } else {
            0
        };
        self.padded(format!("{prefix}{}{body}", "0".repeat(zeros)).into_bytes())
    }
}

/// The pieces of a format string.
pub(super) fn pieces(mut format: &[u8]) -> Result<Vec<Piece<'_>>, String> {
    let mut out = Vec::new();
    while !format.is_empty() {
        let plain = format
            .iter()
            .position(|&c| c == b'%')
            .unwrap_or(format.len());
        let (text, rest) = format.split_at_checked(plain).unwrap_or((format, &[]));
        if !text.is_empty() {
            out.push(Piece::Text(text));
        }
        format = match rest {
            [b'%', b'%', after @ ..] => {
                out.push(Piece::Text(b"%"));
                after
            }
            [b'%', after @ ..] => {
                let (spec, after) = specification(after)?;
                out.push(Piece::Conversion(spec));
                after
            }
            _ => rest,
        };
    }
    Ok(out)
}

/// The specification after a `%`, and what follows it.
fn specification(format: &[u8]) -> Result<(Spec, &[u8]), String> {
    let mut spec = Spec::default();
    let mut rest = format;
    while let [flag, after @ ..] = rest {
        match flag {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zeros = true,
            _ => break,
        }
        rest = after;
    }
    (spec.width, rest) = decimal(rest)?;
    if let [b'.', after @ ..] = rest {
        let (precision, after) = decimal(after)?;
        spec.precision = Some(precision);
        rest = after;
    }
    // The record says how many elements there are.
    if let [b'v', after @ ..] = rest {
        (_, rest) = decimal(after)?;
    }
    (spec.bytes, rest) = match rest {
        [b'h', b'h', after @ ..] => (1, after),
        [b'h', b'l', after @ ..] => (4, after),
        [b'h', after @ ..] => (2, after),
        [b'l', b'l', after @ ..] | [b'l', after @ ..] => (8, after),
        _ => (4, rest),
    };
    let Some((&conversion, after)) = rest.split_first() else {
        return Err("a format string ends in a conversion".to_owned());
    };
    if !b"diouxXfFeEgGaAcsp".contains(&conversion) {
        let text = String::from_utf8_lossy(format.get(..8).unwrap_or(format));
        return Err(format!("`%{text}` is not a conversion"));
    }
    spec.conversion = conversion;
    Ok((spec, after))
}

/// A number without sign; 0 when there is none.
fn decimal(mut format: &[u8]) -> Result<(usize, &[u8]), String> {
    let mut value = 0_usize;
    while let [digit @ b'0'..=b'9', after @ ..] = format {
        value = value
            .saturating_mul(10)
            .saturating_add(usize::from(digit.wrapping_sub(b'0')));
        format = after;
    }
    if value > MAX_PRINTF_FIELD {
        return Err(format!(
            "a width or precision is over {MAX_PRINTF_FIELD} characters"
        ));
    }
    Ok((value, format))
}
