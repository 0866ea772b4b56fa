//! Typed numbers of the command line: their names, their text and their bytes.
//!
//! A [`Scalar`] is little-endian bytes with a type. Integers are read in decimal, hexadecimal (`0x`) or
//! binary (`0b`) and must fit; floats are read as Rust reads them (`1`, `-2.5e3`, `inf`, `nan`).

use std::fmt;

use half::f16;

/// Element type of values and buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 16 bits.
    I16,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 32 bits.
    I32,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 64 bits.
    U64,
    /// IEEE half precision.
    F16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

/// What the bits of an element mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Two's complement.
    Signed,
    /// Unsigned.
    Unsigned,
    /// Binary floating point.
    Float,
}

/// Every element type: name, bytes, meaning, OpenCL's name.
const TYPES: [(ElementType, &str, usize, Class, &str); 11] = [
    (ElementType::I8, "i8", 1, Class::Signed, "char"),
    (ElementType::U8, "u8", 1, Class::Unsigned, "uchar"),
    (ElementType::I16, "i16", 2, Class::Signed, "short"),
    (ElementType::U16, "u16", 2, Class::Unsigned, "ushort"),
    (ElementType::I32, "i32", 4, Class::Signed, "int"),
    (ElementType::U32, "u32", 4, Class::Unsigned, "uint"),
    (ElementType::I64, "i64", 8, Class::Signed, "long"),
    (ElementType::U64, "u64", 8, Class::Unsigned, "ulong"),
    (ElementType::F16, "f16", 2, Class::Float, "half"),
    (ElementType::F32, "f32", 4, Class::Float, "float"),
    (ElementType::F64, "f64", 8, Class::Float, "double"),
];

/// All names, for messages.
pub const TYPE_NAMES: &str = "i8, u8, i16, u16, i32, u32, i64, u64, f16, f32 or f64";

impl ElementType {
    /// Every type.
    #[cfg(test)]
    pub fn all() -> impl Iterator<Item = ElementType> {
        TYPES.iter().map(|row| row.0)
    }

    fn row(self) -> (ElementType, &'static str, usize, Class, &'static str) {
        let found = TYPES.iter().find(|row| row.0 == self);
        found
            .copied()
            .unwrap_or((self, "u8", 1, Class::Unsigned, "uchar"))
    }

    /// Name as SPEC spells it.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        self.row().2
    }

    /// Meaning of the bits.
    pub fn class(self) -> Class {
        self.row().3
    }

    /// The type of this name.
    pub fn from_name(name: &str) -> Option<ElementType> {
        let mut rows = TYPES.iter();
        rows.find(|row| row.1 == name).map(|row| row.0)
    }

    /// The type of this size and meaning.
    pub fn from_parts(class: Class, size: usize) -> Option<ElementType> {
        let mut rows = TYPES.iter();
        rows.find(|row| row.3 == class && row.2 == size)
            .map(|row| row.0)
    }

    /// Element type and lanes of an OpenCL type, without looking through pointers: `float4*` is four `f32`.
    pub fn from_opencl(type_name: &str) -> Option<(ElementType, u32)> {
        let name = type_name.trim_end_matches(['*', ' ']);
        let scalar = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let lanes = match name.get(scalar.len()..) {
            None | Some("") => 1,
            Some(digits) => digits.parse().ok()?,
        };
        let scalar = match scalar {
            "atomic_int" => "int",
            "atomic_uint" => "uint",
            "atomic_long" => "long",
            "atomic_ulong" => "ulong",
            "atomic_float" => "float",
            "atomic_double" => "double",
            other => other,
        };
        let mut rows = TYPES.iter();
        rows.find(|row| row.4 == scalar).map(|row| (row.0, lanes))
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One typed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    ty: ElementType,
    /// The value's bytes; those past the type's size are zero.
    bytes: [u8; 8],
}

impl Scalar {
    /// From the first bytes of `bytes`, as many as the type has; missing ones are zero.
    pub fn from_bytes(ty: ElementType, bytes: &[u8]) -> Scalar {
        let mut own = [0; 8];
        for (to, from) in own.iter_mut().zip(bytes).take(ty.size()) {
            *to = *from;
        }
        Scalar { ty, bytes: own }
    }

    /// From the low bits of `bits`.
    pub fn from_bits(ty: ElementType, bits: u64) -> Scalar {
        Scalar::from_bytes(ty, &bits.to_le_bytes())
    }

    /// The nearest float; `ty` must be one, other types give the bits of an `f64`.
    fn from_float(ty: ElementType, value: f64) -> Scalar {
        match ty {
            ElementType::F16 => Scalar::from_bits(ty, f16::from_f64(value).to_bits().into()),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "rounding is what is wanted"
            )]
            ElementType::F32 => Scalar::from_bits(ty, (value as f32).to_bits().into()),
            _ => Scalar::from_bits(ty, value.to_bits()),
        }
    }

    /// Reads one number.
    pub fn parse(ty: ElementType, text: &str) -> Result<Scalar, String> {
        match ty.class() {
            Class::Float => parse_float(ty, text),
            class => parse_integer(ty, class, text),
        }
    }

    /// Number `index` of 0, 1, 2, …; integers wrap, floats round.
    pub fn iota(ty: ElementType, index: u64) -> Scalar {
        match ty.class() {
            #[expect(
                clippy::cast_precision_loss,
                reason = "rounding is what the documentation says"
            )]
            Class::Float => Scalar::from_float(ty, index as f64),
            _ => Scalar::from_bits(ty, index),
        }
    }

    /// Type.
    pub fn ty(self) -> ElementType {
        self.ty
    }

    /// Little-endian bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.ty.size()).unwrap_or(&self.bytes)
    }

    fn bits(self) -> u64 {
        u64::from_le_bytes(self.bytes)
    }

    /// The value as a signed integer; meaningful for [`Class::Signed`].
    fn signed(self) -> i64 {
        let unused = 64_usize.saturating_sub(self.ty.size().saturating_mul(8));
        let shift = u32::try_from(unused).unwrap_or(0);
        (self.bits().wrapping_shl(shift) as i64).wrapping_shr(shift)
    }
}

fn parse_float(ty: ElementType, text: &str) -> Result<Scalar, String> {
    // f32 is read directly: by way of f64 it would be rounded twice.
    let (scalar, infinite) = match ty {
        ElementType::F32 => {
            let value: f32 = text.parse().map_err(|_| not_a(ty, text))?;
            (
                Scalar::from_bits(ty, value.to_bits().into()),
                value.is_infinite(),
            )
        }
        ElementType::F16 => {
            let value: f64 = text.parse().map_err(|_| not_a(ty, text))?;
            let half = f16::from_f64(value);
            (
                Scalar::from_bits(ty, half.to_bits().into()),
                half.is_infinite(),
            )
        }
        _ => {
            let value: f64 = text.parse().map_err(|_| not_a(ty, text))?;
            (Scalar::from_bits(ty, value.to_bits()), value.is_infinite())
        }
    };
    if infinite && text.contains(|c: char| c.is_ascii_digit()) {
        return Err(format!(
            "`{text}` is too large for {ty}; write inf for infinity"
        ));
    }
    Ok(scalar)
}

fn parse_integer(ty: ElementType, class: Class, text: &str) -> Result<Scalar, String> {
    let value = integer(text).ok_or_else(|| not_a(ty, text))?;
    let bits = u32::try_from(ty.size().saturating_mul(8)).unwrap_or(64);
    let (low, high) = match class {
        Class::Signed => {
            let half = 1_i128.wrapping_shl(bits.saturating_sub(1));
            (half.saturating_neg(), half.saturating_sub(1))
        }
        _ => (0, 1_i128.wrapping_shl(bits).saturating_sub(1)),
    };
    if value < low || value > high {
        return Err(format!("`{text}` does not fit {ty} ({low} to {high})"));
    }
    // In range, so the low 64 bits of the two's complement are the value.
    Ok(Scalar::from_bits(ty, value as u64))
}

fn not_a(ty: ElementType, text: &str) -> String {
    match ty.class() {
        Class::Float => format!("`{text}` is not a number of type {ty}"),
        _ => format!("`{text}` is not an integer (decimal, 0x… or 0b…)"),
    }
}

/// An integer with an optional sign, in base 10, 16 or 2.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (digits, radix) = match digits.get(..2) {
        Some("0x" | "0X") => (digits.get(2..)?, 16),
        Some("0b" | "0B") => (digits.get(2..)?, 2),
        _ => (digits, 10),
    };
    // `from_str_radix` would take a second sign.
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    Some(if negative {
        value.saturating_neg()
    } else {
        value
    })
}

/// A count or size: an integer from 0.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let value = integer(text).ok_or_else(|| format!("`{text}` is not a whole number"))?;
    u64::try_from(value).map_err(|_| format!("`{text}` is out of range (0 to {})", u64::MAX))
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let low = |bits: u64| u32::try_from(bits & 0xffff_ffff).unwrap_or(0);
        match (self.ty, self.ty.class()) {
            (ElementType::F16, _) => {
                let bits = u16::try_from(self.bits() & 0xffff).unwrap_or(0);
                write_float(f, f16::from_bits(bits).to_f32())
            }
            (ElementType::F32, _) => write_float(f, f32::from_bits(low(self.bits()))),
            (ElementType::F64, _) => write_float(f, f64::from_bits(self.bits())),
            (_, Class::Signed) => write!(f, "{}", self.signed()),
            _ => write!(f, "{}", self.bits()),
        }
    }
}

/// The shortest text that reads back as the same value: plain digits for sizes people read, else an exponent.
fn write_float<T>(f: &mut fmt::Formatter<'_>, value: T) -> fmt::Result
where
    T: Copy + Into<f64> + fmt::Display + fmt::LowerExp,
{
    let size: f64 = value.into().abs();
    if size == 0.0 || !size.is_finite() || (1e-5..1e16).contains(&size) {
        write!(f, "{value}")
    } else {
        write!(f, "{value:e}")
    }
}

/// The generator of `rand:`. SplitMix64: the sequence for a seed never changes.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// 64 random bits.
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0.wrapping_shr(30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z.wrapping_shr(27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z.wrapping_shr(31)
    }

    /// An integer over its whole range, or a float from 0 up to but without 1.
    pub fn scalar(&mut self, ty: ElementType) -> Scalar {
        let bits = self.bits();
        // As many bits as the significand has, so that no value rounds up to 1.
        let significand = match ty {
            ElementType::F16 => 11,
            ElementType::F32 => 24,
            ElementType::F64 => 53,
            _ => return Scalar::from_bits(ty, bits),
        };
        let whole = bits.wrapping_shr(64_u32.saturating_sub(significand));
        #[expect(clippy::cast_precision_loss, reason = "at most 53 bits: exact")]
        let value = whole as f64 / 1_u64.wrapping_shl(significand) as f64;
        Scalar::from_float(ty, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(ty: ElementType, text: &str) -> String {
        Scalar::parse(ty, text).unwrap().to_string()
    }

    fn error(ty: ElementType, text: &str) -> String {
        Scalar::parse(ty, text).unwrap_err()
    }

    #[test]
    fn integers_of_every_base_and_sign() {
        assert_eq!(shown(ElementType::I8, "-128"), "-128");
        assert_eq!(shown(ElementType::I16, "-0x10"), "-16");
        assert_eq!(shown(ElementType::U8, "0b1010"), "10");
        assert_eq!(
            shown(ElementType::U64, "0xffffffffffffffff"),
            u64::MAX.to_string()
        );
        assert_eq!(
            shown(ElementType::I64, "-9223372036854775808"),
            i64::MIN.to_string()
        );
        assert_eq!(
            Scalar::parse(ElementType::I32, "-2").unwrap().bytes(),
            (-2_i32).to_le_bytes()
        );
    }

    #[test]
    fn integers_must_fit() {
        assert_eq!(
            error(ElementType::U8, "256"),
            "`256` does not fit u8 (0 to 255)"
        );
        assert_eq!(
            error(ElementType::I8, "128"),
            "`128` does not fit i8 (-128 to 127)"
        );
        assert_eq!(
            error(ElementType::U32, "-1"),
            "`-1` does not fit u32 (0 to 4294967295)"
        );
        assert_eq!(
            error(ElementType::U64, "18446744073709551616"),
            "`18446744073709551616` does not fit u64 (0 to 18446744073709551615)"
        );
        for text in ["", "x", "1.5", "--1", "0x", "-", "+1", "0x-1", "1 ", "é"] {
            assert_eq!(
                error(ElementType::I32, text),
                format!("`{text}` is not an integer (decimal, 0x… or 0b…)")
            );
        }
    }

    #[test]
    fn floats_and_their_limits() {
        assert_eq!(shown(ElementType::F32, "1"), "1");
        assert_eq!(shown(ElementType::F32, "0.1"), "0.1");
        assert_eq!(shown(ElementType::F64, "-2.5e300"), "-2.5e300");
        assert_eq!(shown(ElementType::F32, "-0"), "-0");
        assert_eq!(shown(ElementType::F16, "-inf"), "-inf");
        assert_eq!(shown(ElementType::F16, "65504"), "65504");
        assert_eq!(shown(ElementType::F32, "nan"), "NaN");
        assert_eq!(
            error(ElementType::F16, "70000"),
            "`70000` is too large for f16; write inf for infinity"
        );
        assert_eq!(
            error(ElementType::F32, "1e39"),
            "`1e39` is too large for f32; write inf for infinity"
        );
        assert_eq!(
            error(ElementType::F64, "one"),
            "`one` is not a number of type f64"
        );
    }

    #[test]
    fn iota_wraps_and_rounds() {
        assert_eq!(Scalar::iota(ElementType::U8, 257).to_string(), "1");
        assert_eq!(Scalar::iota(ElementType::I8, 255).to_string(), "-1");
        assert_eq!(Scalar::iota(ElementType::F16, 2049).to_string(), "2048");
    }

    #[test]
    fn random_floats_stay_below_one() {
        for ty in [ElementType::F16, ElementType::F32, ElementType::F64] {
            let mut random = Random::new(7);
            for _ in 0..5000 {
                let value: f64 = random.scalar(ty).to_string().parse().unwrap();
                assert!((0.0..1.0).contains(&value), "{ty}: {value}");
            }
        }
    }

    #[test]
    fn the_random_sequence_is_fixed() {
        let mut random = Random::new(0);
        // First outputs of SplitMix64 from seed 0, from its author's own listing.
        assert_eq!(random.bits(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.bits(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn opencl_names() {
        let read = ElementType::from_opencl;
        assert_eq!(read("float*"), Some((ElementType::F32, 1)));
        assert_eq!(read("uint8*"), Some((ElementType::U32, 8)));
        assert_eq!(read("char3"), Some((ElementType::I8, 3)));
        assert_eq!(read("atomic_int*"), Some((ElementType::I32, 1)));
        assert_eq!(read("struct record*"), None);
        assert_eq!(read("float99999999999*"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn names_and_parts_agree() {
        for ty in ElementType::all() {
            assert_eq!(ElementType::from_name(ty.name()), Some(ty));
            assert_eq!(ElementType::from_parts(ty.class(), ty.size()), Some(ty));
        }
    }

    #[test]
    fn counts() {
        assert_eq!(parse_count("0x10"), Ok(16));
        assert_eq!(
            parse_count("-1").unwrap_err(),
            "`-1` is out of range (0 to 18446744073709551615)"
        );
        assert_eq!(parse_count("4k").unwrap_err(), "`4k` is not a whole number");
    }
}
