//! Binary floating-point formats as data, and exact values that are rounded to them.

/// A binary interchange format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Significand bits, the hidden one included.
    pub precision: u32,
    pub exponent_bits: u32,
}

pub const HALF: Format = Format {
    precision: 11,
    exponent_bits: 5,
};
pub const FLOAT: Format = Format {
    precision: 24,
    exponent_bits: 8,
};
pub const DOUBLE: Format = Format {
    precision: 53,
    exponent_bits: 11,
};

impl Format {
    pub fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    pub fn sign_bit(self) -> u64 {
        1 << (self.precision - 1 + self.exponent_bits)
    }

    pub fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << (self.precision - 1)
    }

    pub fn nan(self) -> u64 {
        self.infinity() | 1 << (self.precision - 2)
    }

    /// Exponent of the last place of subnormal numbers.
    pub fn least_exponent(self) -> i32 {
        2 - self.bias() - self.precision as i32
    }
}

/// `(-1)^negative * magnitude * 2^exponent`, exactly.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    pub negative: bool,
    pub magnitude: u128,
    pub exponent: i32,
}

/// What the bits of a float stand for.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    Finite(Exact),
    Infinite { negative: bool },
    NotANumber,
}

/// Takes a number of the given format apart.
pub fn decode(bits: u64, format: Format) -> Value {
    let negative = bits & format.sign_bit() != 0;
    let fraction = bits & ((1 << (format.precision - 1)) - 1);
    let exponent = (bits & format.infinity()) >> (format.precision - 1);
    let least = format.least_exponent();
    if exponent == format.infinity() >> (format.precision - 1) {
        return if fraction == 0 {
            Value::Infinite { negative }
        } else {
            Value::NotANumber
        };
    }
    let hidden = if exponent == 0 {
        0
    } else {
        1 << (format.precision - 1)
    };
    let shift = exponent.max(1) as i32 - 1;
    Value::Finite(Exact {
        negative,
        magnitude: u128::from(fraction | hidden),
        exponent: least + shift,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_takes_apart() {
        let Value::Finite(v) = decode(u64::from((-1.5f32).to_bits()), FLOAT) else {
            panic!()
        };
        assert!(v.negative);
        assert_eq!(v.magnitude as f64 * 2f64.powi(v.exponent), 1.5);
        let Value::Finite(v) = decode(1, DOUBLE) else {
            panic!()
        };
        assert_eq!((v.magnitude, v.exponent), (1, -1074));
        assert!(matches!(
            decode(0x7c00, HALF),
            Value::Infinite { negative: false }
        ));
        assert!(matches!(decode(HALF.nan(), HALF), Value::NotANumber));
    }
}
