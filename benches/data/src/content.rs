//! What buffers hold at first: the same on every machine, from a few words and a seed.

use half::f16;
use visa_test_common::Rng;

macro_rules! types {
    ($($variant:ident $name:literal $bytes:literal),* $(,)?) => {
        /// Type of the elements of a buffer, or of an argument.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum Type { $($variant),* }

        impl Type {
            /// The type of this name.
            pub(crate) fn parse(name: &str) -> Option<Type> {
                match name { $($name => Some(Type::$variant),)* _ => None }
            }

            /// Bytes of an element.
            pub fn bytes(self) -> usize {
                match self { $(Type::$variant => $bytes),* }
            }
        }
    };
}

types!(I8 "i8" 1, U8 "u8" 1, I16 "i16" 2, U16 "u16" 2, I32 "i32" 4, U32 "u32" 4, I64 "i64" 8, U64 "u64" 8,
       F16 "f16" 2, F32 "f32" 4, F64 "f64" 8);

impl Type {
    /// True of types that have fractions.
    pub fn is_float(self) -> bool {
        matches!(self, Type::F16 | Type::F32 | Type::F64)
    }

    /// An element as a number; large integers are rounded.
    pub(crate) fn number(self, bytes: &[u8]) -> f64 {
        let mut all = [0; 8];
        let len = bytes.len().min(8);
        all[..len].copy_from_slice(&bytes[..len]);
        let word = u64::from_le_bytes(all);
        match self {
            Type::I8 => f64::from(word as i8),
            Type::I16 => f64::from(word as i16),
            Type::I32 => f64::from(word as i32),
            Type::I64 => word as i64 as f64,
            Type::U8 | Type::U16 | Type::U32 | Type::U64 => word as f64,
            Type::F16 => f16::from_bits(word as u16).to_f64(),
            Type::F32 => f64::from(f32::from_bits(word as u32)),
            Type::F64 => f64::from_bits(word),
        }
    }

    /// A number as an element.
    pub(crate) fn put(self, value: f64, to: &mut Vec<u8>) {
        match self {
            Type::F16 => to.extend(f16::from_f64(value).to_le_bytes()),
            Type::F32 => to.extend((value as f32).to_le_bytes()),
            Type::F64 => to.extend(value.to_le_bytes()),
            _ => to.extend(&(value as i128).to_le_bytes()[..self.bytes()]),
        }
    }

    /// The text of a number as an element.
    pub(crate) fn literal(self, text: &str) -> Result<Vec<u8>, String> {
        let wrong = || format!("`{text}` is no {self:?}");
        if self.is_float() {
            let mut bytes = Vec::new();
            self.put(text.parse().map_err(|_| wrong())?, &mut bytes);
            return Ok(bytes);
        }
        let digits = text.strip_prefix("0x");
        let number = digits.map_or_else(|| text.parse(), |hex| i128::from_str_radix(hex, 16));
        let number: i128 = number.map_err(|_| wrong())?;
        let bits = 8 * self.bytes();
        // Either sign, as constants of hashes are written without.
        if number < -(1 << (bits - 1)) || number >= 1 << bits {
            return Err(wrong());
        }
        Ok(number.to_le_bytes()[..self.bytes()].to_vec())
    }
}

/// A kind of content.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// All the same.
    Value(f64),
    /// `start`, then `step` more each.
    Ramp(f64, f64),
    /// Any number from the first to the second; integers may be the second.
    Random(f64, f64),
    /// The same in order.
    Sorted(f64, f64),
    /// The first is the share that is not zero, in the range of the other two.
    Sparse(f64, f64, f64),
    /// Any bits.
    Bits,
    /// All numbers below the count, each once.
    Permutation,
    /// Offsets at which rows start and end (CSR); each row has at least and at most these numbers of elements.
    Rows(usize, usize),
    /// For each row of that buffer, columns in order, below the number.
    Columns(String, usize),
    /// Any of these characters.
    Text(Vec<u8>),
    /// Characters of one to four bytes in UTF-8.
    Utf8,
    /// These, again and again.
    List(Vec<f64>),
}

impl Fill {
    /// Reads the words of a `fill`.
    pub(crate) fn parse(text: &str) -> Result<Fill, String> {
        let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        let numbers = |count: usize| -> Result<Vec<f64>, String> {
            let all: Option<Vec<f64>> = words.iter().map(|word| word.parse().ok()).collect();
            all.filter(|all| all.len() == count && all.iter().all(|n| n.is_finite()))
                .ok_or(format!("{count} number(s) should follow `{kind}`"))
        };
        Ok(match kind {
            "zero" => numbers(0).map(|_| Fill::Value(0.0))?,
            "value" => Fill::Value(numbers(1)?[0]),
            "ramp" => numbers(2).map(|n| Fill::Ramp(n[0], n[1]))?,
            "random" => numbers(2).map(|n| Fill::Random(n[0], n[1]))?,
            "sorted" => numbers(2).map(|n| Fill::Sorted(n[0], n[1]))?,
            "sparse" => numbers(3).map(|n| Fill::Sparse(n[0], n[1], n[2]))?,
            "bits" => numbers(0).map(|_| Fill::Bits)?,
            "permutation" => numbers(0).map(|_| Fill::Permutation)?,
            "rows" => numbers(2).map(|n| Fill::Rows(n[0] as usize, n[1] as usize))?,
            "columns" => match words[..] {
                [rows, below] if below.parse::<usize>().is_ok_and(|n| n > 0) => {
                    Fill::Columns(rows.to_owned(), below.parse().unwrap_or(1))
                }
                _ => return Err("`columns` takes a buffer of rows and a number".to_owned()),
            },
            "text" if !rest.is_empty() => Fill::Text(rest.as_bytes().to_vec()),
            "text" => return Err("the characters should follow `text`".to_owned()),
            "utf8" => numbers(0).map(|_| Fill::Utf8)?,
            "list" if !words.is_empty() => Fill::List(numbers(words.len())?),
            "list" => return Err("numbers should follow `list`".to_owned()),
            other => return Err(format!("there is no fill `{other}`")),
        })
    }

    /// Contents of `count` elements.
    pub(crate) fn make(&self, ty: Type, count: usize, seed: u64) -> Vec<u8> {
        let mut rng = Rng::new(seed);
        let mut out = Vec::with_capacity(count * ty.bytes());
        let mut random = |low: f64, high: f64| match ty.is_float() {
            true => rng.double(low, high),
            false => low + (rng.double(0.0, high - low + 1.0)).floor(),
        };
        match self {
            Fill::Value(value) => (0..count).for_each(|_| ty.put(*value, &mut out)),
            Fill::Ramp(start, step) => {
                (0..count).for_each(|i| ty.put(start + step * i as f64, &mut out));
            }
            Fill::Random(low, high) => {
                (0..count).for_each(|_| ty.put(random(*low, *high), &mut out));
            }
            Fill::Sorted(low, high) => {
                let mut all: Vec<f64> = (0..count).map(|_| random(*low, *high)).collect();
                all.sort_by(f64::total_cmp);
                all.iter().for_each(|value| ty.put(*value, &mut out));
            }
            Fill::Sparse(share, low, high) => {
                for _ in 0..count {
                    let (present, value) = (random(0.0, 1e6) < share * 1e6, random(*low, *high));
                    ty.put(if present { value } else { 0.0 }, &mut out);
                }
            }
            Fill::Bits => {
                while out.len() < count * ty.bytes() {
                    out.extend(rng.bits().to_le_bytes());
                }
                out.truncate(count * ty.bytes());
            }
            Fill::Permutation => {
                let mut all: Vec<usize> = (0..count).collect();
                for i in (1..count).rev() {
                    all.swap(i, rng.below(i + 1));
                }
                all.iter().for_each(|n| ty.put(*n as f64, &mut out));
            }
            Fill::Rows(least, most) => {
                let mut at = 0;
                for _ in 0..count {
                    ty.put(at as f64, &mut out);
                    at += least + rng.below(most.saturating_sub(*least) + 1);
                }
            }
            Fill::Text(characters) => {
                (0..count).for_each(|_| ty.put(f64::from(*rng.pick(characters)), &mut out));
            }
            Fill::Utf8 => utf8(&mut rng, count, &mut out),
            Fill::List(values) => {
                let all = values.iter().cycle().take(count);
                all.for_each(|value| ty.put(*value, &mut out));
            }
            // Made of another buffer, by `columns`.
            Fill::Columns(..) => {}
        }
        out
    }
}

/// Columns in order for each of the rows.
pub(crate) fn columns(ty: Type, rows: &[usize], below: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = Vec::new();
    for row in rows.windows(2) {
        let count = row[1].saturating_sub(row[0]);
        let mut all: Vec<usize> = (0..count).map(|_| rng.below(below)).collect();
        all.sort_unstable();
        all.iter().for_each(|n| ty.put(*n as f64, &mut out));
    }
    out
}

/// Appends UTF-8 up to `count` bytes; a character that would not fit is a space.
fn utf8(rng: &mut Rng, count: usize, out: &mut Vec<u8>) {
    while out.len() < count {
        let (low, high) = *rng.pick(&[
            (0x20, 0x7e),
            (0xa1, 0x7ff),
            (0x800, 0xd7ff),
            (0x1_0000, 0x2_0000),
        ]);
        let code = low + rng.word_below(high - low);
        let mut bytes = [0; 4];
        let text = char::from_u32(code).unwrap_or(' ').encode_utf8(&mut bytes);
        match out.len() + text.len() <= count {
            true => out.extend(text.as_bytes()),
            false => out.push(b' '),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(fill: &str, count: usize) -> Vec<f64> {
        let bytes = Fill::parse(fill).unwrap().make(Type::I32, count, 1);
        bytes.chunks_exact(4).map(|b| Type::I32.number(b)).collect()
    }

    #[test]
    fn fills_are_what_they_say() {
        assert_eq!(words("ramp 3 -2", 3), [3.0, 1.0, -1.0]);
        assert_eq!(words("list 4 5", 3), [4.0, 5.0, 4.0]);
        let random = words("random -2 2", 1000);
        assert!(random.iter().all(|n| (-2.0..=2.0).contains(n)));
        assert!(random.contains(&-2.0) && random.contains(&2.0));
        let mut permutation = words("permutation", 100);
        permutation.sort_by(f64::total_cmp);
        assert_eq!(permutation, words("ramp 0 1", 100));
        assert!(words("sorted 0 99", 100).is_sorted());
        let zeros = words("sparse 0.25 1 9", 1000)
            .iter()
            .filter(|n| **n == 0.0)
            .count();
        assert!((700..800).contains(&zeros), "{zeros}");
        let rows = words("rows 1 3", 50);
        assert!(
            rows.windows(2)
                .all(|w| (1.0..=3.0).contains(&(w[1] - w[0])))
        );
        let text = Fill::Utf8.make(Type::U8, 1001, 1);
        assert_eq!(text.len(), 1001);
        assert!(std::str::from_utf8(&text).is_ok());
        assert_eq!(columns(Type::I32, &[0, 2, 2, 5], 9, 1).len(), 20);
    }

    #[test]
    fn what_is_no_fill_is_an_error() {
        for (text, part) in [
            ("ramp 1", "2 number"),
            ("noise", "`noise`"),
            ("columns rows", "buffer of rows"),
        ] {
            let error = Fill::parse(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert!(Type::U8.literal("256").is_err());
        assert_eq!(Type::I32.literal("0xffffffff").unwrap(), [255; 4]);
    }
}
