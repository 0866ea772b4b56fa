//! When two results are the same: integers by their bits, floats within what the case allows.

use crate::content::Type;

/// How far the elements of two results may be apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// Relative to the larger element.
    pub relative: f64,
    /// In addition to it.
    pub absolute: f64,
    /// The share of elements that may be further apart, where rounding decides when an iteration ends.
    pub share: f64,
}

impl Tolerance {
    /// Reads `relative 1e-5 absolute 1e-6 share 0.01`, or some of these.
    pub(crate) fn parse(text: &str) -> Result<Tolerance, String> {
        let mut found = Tolerance::default();
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            let place = match word {
                "relative" => &mut found.relative,
                "absolute" => &mut found.absolute,
                "share" => &mut found.share,
                other => {
                    return Err(format!(
                        "`{other}` is none of `relative`, `absolute` and `share`"
                    ));
                }
            };
            let number = words.next().and_then(|word| word.parse().ok());
            *place = number
                .filter(|n: &f64| *n >= 0.0)
                .ok_or(format!("a number should follow `{word}`"))?;
        }
        Ok(found)
    }

    /// The first difference, as text.
    pub fn difference(&self, ty: Type, wanted: &[u8], found: &[u8]) -> Option<String> {
        if wanted.len() != found.len() {
            return Some(format!("{} bytes for {}", found.len(), wanted.len()));
        }
        let size = ty.bytes();
        let (mut first, mut count) = (None, 0_usize);
        let pairs = wanted.chunks_exact(size).zip(found.chunks_exact(size));
        for (i, (a, b)) in pairs.enumerate().filter(|(_, (a, b))| a != b) {
            let (x, y) = (ty.number(a), ty.number(b));
            let allowed = self.absolute + self.relative * x.abs().max(y.abs());
            let near = ty.is_float() && ((x - y).abs() <= allowed || x.is_nan() && y.is_nan());
            if !near {
                count += 1;
                first.get_or_insert_with(|| format!("[{i}] is {y} for {x}"));
            }
        }
        let most = self.share * (wanted.len() / size) as f64;
        first
            .filter(|_| count as f64 > most)
            .map(|first| format!("{first}; {count} elements differ"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: [f32; 2]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn floats_are_compared_within_the_tolerance_and_integers_by_their_bits() {
        let (a, b) = (bytes([1.0, 100.0]), bytes([1.0, 100.01]));
        let near = Tolerance::parse("relative 1e-3").unwrap();
        assert_eq!(near.difference(Type::F32, &a, &b), None);
        let what = near.difference(Type::U32, &a, &b).unwrap();
        assert!(what.starts_with("[1] is "), "{what}");
        let exact = Tolerance::default();
        assert!(exact.difference(Type::F32, &a, &b).is_some());
        let half = Tolerance::parse("share 0.5").unwrap();
        assert_eq!(half.difference(Type::F32, &a, &b), None);
        let error = Tolerance::parse("about 1").unwrap_err();
        assert!(error.contains("`about`"), "{error}");
    }

    #[test]
    fn a_number_is_not_near_nan() {
        let near = Tolerance::parse("relative 1 absolute 1").unwrap();
        let (a, b) = (bytes([1.0, 2.0]), bytes([1.0, f32::NAN]));
        assert!(near.difference(Type::F32, &a, &b).is_some());
        assert!(near.difference(Type::F32, &b, &b).is_none());
    }
}
