//! Typed values of directives.

use half::{bf16, f16};

/// Element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// As written.
    pub name: &'static str,
    /// Bytes.
    pub bytes: usize,
    /// `i`, `u`, `f`, or `b` of bf16.
    pub class: u8,
}

const TYPES: [Type; 12] = [
    ty("i8", 1),
    ty("u8", 1),
    ty("i16", 2),
    ty("u16", 2),
    ty("i32", 4),
    ty("u32", 4),
    ty("i64", 8),
    ty("u64", 8),
    ty("f16", 2),
    ty("bf16", 2),
    ty("f32", 4),
    ty("f64", 8),
];

const fn ty(name: &'static str, bytes: usize) -> Type {
    let class = name.as_bytes()[0];
    Type { name, bytes, class }
}

impl Type {
    pub fn parse(text: &str) -> Result<Type, String> {
        TYPES
            .into_iter()
            .find(|t| t.name == text)
            .ok_or_else(|| format!("unknown type `{text}`"))
    }

    /// Bytes of one value.
    pub fn value(self, text: &str) -> Result<Vec<u8>, String> {
        let bad = || format!("`{text}` is no {}", self.name);
        if self.is_float() && !text.starts_with("0x") {
            let v: f64 = text.parse().map_err(|_| bad())?;
            return Ok(match self.bytes {
                2 if self.class == b'b' => bf16::from_f64(v).to_le_bytes().to_vec(),
                2 => f16::from_f64(v).to_le_bytes().to_vec(),
                4 => (v as f32).to_le_bytes().to_vec(),
                _ => v.to_le_bytes().to_vec(),
            });
        }
        let (minus, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let magnitude = match digits.strip_prefix("0x") {
            Some(hex) => i128::from_str_radix(hex, 16),
            None => digits.parse(),
        }
        .map_err(|_| bad())?;
        let v = if minus { -magnitude } else { magnitude };
        let bits = 8 * self.bytes as u32;
        if v >= 1 << bits || v < -(1 << (bits - 1)) {
            return Err(bad());
        }
        Ok(v.to_le_bytes()[..self.bytes].to_vec())
    }

    /// One value for messages.
    pub fn show(self, bytes: &[u8]) -> String {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        match (self.class, self.bytes) {
            (b'b', _) => format!("{} (0x{bits:x})", bf16::from_bits(bits as u16)),
            (b'f', 2) => format!("{} (0x{bits:x})", f16::from_bits(bits as u16)),
            (b'f', 4) => format!("{} (0x{bits:x})", f32::from_bits(bits as u32)),
            (b'f', _) => format!("{} (0x{bits:x})", f64::from_bits(bits)),
            _ => format!("{bits} (0x{bits:x})"),
        }
    }

    fn is_float(self) -> bool {
        matches!(self.class, b'f' | b'b')
    }

    fn is_nan(self, bytes: &[u8]) -> bool {
        if !self.is_float() {
            return false;
        }
        match *bytes {
            [a, b] if self.class == b'b' => bf16::from_le_bytes([a, b]).is_nan(),
            [a, b] => f16::from_le_bytes([a, b]).is_nan(),
            [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).is_nan(),
            [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]).is_nan(),
            _ => false,
        }
    }

    /// Same bits, or both not a number, or floats at most a given number of units in the last place apart.
    pub fn near(self, a: &[u8], b: &[u8], within: u64) -> bool {
        let nans = (self.is_nan(a), self.is_nan(b));
        let close = || self.place(a).abs_diff(self.place(b)) <= within;
        a == b || nans == (true, true) || (self.is_float() && nans == (false, false) && close())
    }

    /// Number of a float among all floats in ascending order; both zeros are 0.
    fn place(self, bytes: &[u8]) -> i64 {
        let mut wide = [0; 8];
        wide[8 - bytes.len()..].copy_from_slice(bytes);
        let bits = i64::from_le_bytes(wide);
        let size = bits & i64::MAX;
        let size = size >> (64 - 8 * bytes.len());
        if bits < 0 { -size } else { size }
    }
}

/// `TYPE[COUNT]`.
pub fn array(text: &str) -> Result<(Type, usize), String> {
    let bad = || format!("`{text}`: expected TYPE[COUNT]");
    let (name, rest) = text.split_once('[').ok_or_else(bad)?;
    let count = rest.strip_suffix(']').and_then(|n| n.parse().ok());
    Ok((Type::parse(name)?, count.ok_or_else(bad)?))
}

/// Values of an array: a list (the rest is zero), `fill V`, or `iota [FIRST [STEP]]`.
pub fn values(ty: Type, count: usize, text: &str) -> Result<Vec<u8>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut out = Vec::new();
    match words.as_slice() {
        ["fill", v] => out = ty.value(v)?.repeat(count),
        ["iota", rest @ ..] => {
            let number = |i: usize, default: i64| match rest.get(i) {
                Some(t) => t.parse().map_err(|_| format!("`{t}` is no integer")),
                None => Ok(default),
            };
            let (first, step) = (number(0, 0)?, number(1, 1)?);
            for i in 0..count as i64 {
                let v = first.wrapping_add(step.wrapping_mul(i));
                if ty.is_float() {
                    out.extend(ty.value(&v.to_string())?);
                } else {
                    out.extend(&v.to_le_bytes()[..ty.bytes]);
                }
            }
        }
        list => {
            for item in list {
                let (v, times) = match item.split_once('*') {
                    Some((v, n)) => (v, n.parse().map_err(|_| format!("`{item}`: bad count"))?),
                    None => (*item, 1),
                };
                out.extend(ty.value(v)?.repeat(times));
            }
            if out.len() > count * ty.bytes {
                return Err(format!("more than {count} values"));
            }
            out.resize(count * ty.bytes, 0);
        }
    }
    Ok(out)
}
