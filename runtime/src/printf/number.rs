//! Numbers as C writes them.

use super::spec::Spec;

/// An integer of `bytes` bytes in the low bits of `bits`; the length modifier may say that only some of them count.
pub(super) fn integer(spec: &Spec, bits: u64, bytes: u32) -> Vec<u8> {
    let unused = 64_u32.saturating_sub(spec.bytes.min(bytes).saturating_mul(8));
    let shifted = bits.wrapping_shl(unused);
    let (magnitude, sign) = if matches!(spec.conversion, b'd' | b'i') {
        let value = shifted.cast_signed().wrapping_shr(unused);
        (value.unsigned_abs(), sign(spec, value < 0))
    } else {
        (shifted.wrapping_shr(unused), "")
    };
    let mut digits = match (spec.conversion, magnitude, spec.precision) {
        (_, 0, Some(0)) => String::new(),
        (b'o', ..) => format!("{magnitude:o}"),
        (b'x', ..) => format!("{magnitude:x}"),
        (b'X', ..) => format!("{magnitude:X}"),
        _ => magnitude.to_string(),
    };
    let wanted = spec.precision.unwrap_or(0);
    if spec.alternate
        && spec.conversion == b'o'
        && !digits.starts_with('0')
        && wanted <= digits.len()
    {
        digits.insert(0, '0');
    }
    let missing = wanted.saturating_sub(digits.len());
    let digits = format!("{}{digits}", "0".repeat(missing));
    let prefix = match spec.conversion {
        b'x' if spec.alternate && magnitude != 0 => "0x",
        b'X' if spec.alternate && magnitude != 0 => "0X",
        _ => sign,
    };
    spec.number(prefix, &digits, spec.precision.is_none())
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

/// A float.
pub(super) fn float(spec: &Spec, value: f64) -> Vec<u8> {
    let upper = spec.conversion.is_ascii_uppercase();
    let sign = sign(spec, value.is_sign_negative());
    let size = value.abs();
    let cased = |text: String| {
        if upper { text.to_uppercase() } else { text }
    };
    if !size.is_finite() {
        let word = if size.is_nan() { "nan" } else { "inf" };
        return spec.number(sign, &cased(word.to_owned()), false);
    }
    let body = match spec.conversion.to_ascii_lowercase() {
        b'f' => fixed(size, spec.precision.unwrap_or(6), spec.alternate),
        b'e' => scientific(size, spec.precision.unwrap_or(6), spec.alternate),
        b'g' => general(size, spec.precision.unwrap_or(6), spec.alternate),
        _ => {
            let prefix = format!("{sign}0x");
            let digits = hexadecimal(size, spec.precision, spec.alternate);
            return spec.number(&cased(prefix), &cased(digits), true);
        }
    };
    spec.number(sign, &cased(body), true)
}

fn fixed(size: f64, precision: usize, point: bool) -> String {
    let dot = if point && precision == 0 { "." } else { "" };
    format!("{size:.precision$}{dot}")
}

/// Digits with a point after the first, and the power of ten.
fn mantissa(size: f64, precision: usize) -> (String, i32) {
    let text = format!("{size:.precision$e}");
    match text.split_once('e') {
        Some((digits, power)) => (digits.to_owned(), power.parse().unwrap_or(0)),
        None => (text, 0),
    }
}

fn with_exponent(digits: &str, power: i32, point: bool) -> String {
    let dot = if point && !digits.contains('.') {
        "."
    } else {
        ""
    };
    let sign = if power < 0 { '-' } else { '+' };
    format!("{digits}{dot}e{sign}{:02}", power.unsigned_abs())
}

fn scientific(size: f64, precision: usize, point: bool) -> String {
    let (digits, power) = mantissa(size, precision);
    with_exponent(&digits, power, point)
}

fn general(size: f64, precision: usize, point: bool) -> String {
    let significant = precision.max(1);
    let behind = significant.saturating_sub(1);
    let (digits, power) = mantissa(size, behind);
    let trimmed = |text: String| match text.contains('.') && !point {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    let below = usize::try_from(power).map_or(true, |power| power < significant);
    if power >= -4 && below {
        let places = i64::try_from(behind)
            .unwrap_or(i64::MAX)
            .saturating_sub(i64::from(power));
        let text = fixed(size, usize::try_from(places).unwrap_or(0), point);
        return trimmed(text);
    }
    with_exponent(&trimmed(digits), power, point)
}

/// Hexadecimal digits and the power of two, without `0x`. Denormals keep a leading 0, as in the C library.
fn hexadecimal(size: f64, precision: Option<usize>, point: bool) -> String {
    const FRACTION: u32 = 52;
    let bits = size.to_bits();
    let exponent = i32::try_from(bits.wrapping_shr(FRACTION)).unwrap_or(0);
    let fraction = bits & 0x000F_FFFF_FFFF_FFFF;
    let power = match (exponent, fraction) {
        (0, 0) => 0,
        (0, _) => -1022,
        _ => exponent.saturating_sub(1023),
    };
    let mut whole = fraction | u64::from(exponent != 0).wrapping_shl(FRACTION);
    let kept = precision.map_or(13, |p| p.min(13));
    let dropped = u32::try_from(13_usize.saturating_sub(kept))
        .unwrap_or(0)
        .saturating_mul(4);
    if dropped > 0 {
        // To nearest, ties to even.
        let unit = 1_u64.wrapping_shl(dropped);
        let (rest, half) = (whole & unit.wrapping_sub(1), unit.wrapping_shr(1));
        let odd = whole & unit != 0;
        whole = whole.wrapping_sub(rest);
        if rest > half || (rest == half && odd) {
            whole = whole.wrapping_add(unit);
        }
    }
    let lead = whole.wrapping_shr(FRACTION);
    let mut digits = format!("{:013x}", whole & 0x000F_FFFF_FFFF_FFFF);
    digits.truncate(kept);
    match precision {
        None => digits.truncate(digits.trim_end_matches('0').len()),
        Some(p) => digits.push_str(&"0".repeat(p.saturating_sub(13))),
    }
    let dot = if point || !digits.is_empty() { "." } else { "" };
    format!("{lead:x}{dot}{digits}p{power:+}")
}
