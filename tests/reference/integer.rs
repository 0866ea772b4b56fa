//! One view of all eight integer types: exact values in `i128`, wrapped back on the way out.

pub trait Integer: Copy + PartialEq + Ord + std::fmt::Debug {
    const BITS: u32;
    const SIGNED: bool;

    fn wide(self) -> i128;
    /// Keeps the low bits.
    fn wrap(value: i128) -> Self;

    fn least() -> i128 {
        if Self::SIGNED {
            -(1 << (Self::BITS - 1))
        } else {
            0
        }
    }

    fn greatest() -> i128 {
        (1 << (Self::BITS - u32::from(Self::SIGNED))) - 1
    }

    fn saturate(value: i128) -> Self {
        Self::wrap(value.clamp(Self::least(), Self::greatest()))
    }

    /// The value's bits as an unsigned number.
    fn raw(self) -> u128 {
        (self.wide() as u128) & ((1 << Self::BITS) - 1)
    }
}

macro_rules! integers {
    ($($type:ty: $signed:literal),*) => {$(
        impl Integer for $type {
            const BITS: u32 = <$type>::BITS;
            const SIGNED: bool = $signed;

            fn wide(self) -> i128 {
                i128::from(self)
            }

            fn wrap(value: i128) -> Self {
                value as $type
            }
        }
    )*};
}

integers!(i8: true, u8: false, i16: true, u16: false, i32: true, u32: false, i64: true, u64: false);

#[cfg(test)]
mod tests {
    use super::Integer;

    #[test]
    fn limits() {
        assert_eq!((i8::least(), i8::greatest()), (-128, 127));
        assert_eq!((u64::least(), u64::greatest()), (0, i128::from(u64::MAX)));
        assert_eq!(u8::saturate(300), 255);
        assert_eq!(u8::saturate(-1), 0);
        assert_eq!(i16::wrap(0x1_8000), i16::MIN);
        assert_eq!((-1i8).raw(), 0xff);
    }
}
