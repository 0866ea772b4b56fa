//! What an atomic leaves in memory.
//!
//! Float atomics round to nearest and keep denormals, whatever `%cr0` says: they are carried out by the memory, not by
//! the thread. A minimum or maximum with one NaN is the other operand; of two zeros the negative one is the smaller.

use super::float::{Env, FloatOp, Format};
use super::number::{mask, wrap};
use crate::isa::{AtomicOp, Type};

/// The new bits of an element of `bytes` (2, 4 or 8) bytes. Of the compare-and-exchange operations `x` is the compare
/// value and `y` the new one.
pub(super) fn result(op: AtomicOp, bytes: u32, old: u64, x: u64, y: u64) -> u64 {
    let ty = match bytes {
        2 => Type::W,
        4 => Type::D,
        _ => Type::Q,
    };
    let signed = |v: u64| wrap(ty, v.into());
    let new = match op {
        AtomicOp::Add => old.wrapping_add(x),
        AtomicOp::Sub => old.wrapping_sub(x),
        AtomicOp::Inc => old.wrapping_add(1),
        AtomicOp::Dec | AtomicOp::PreDec => old.wrapping_sub(1),
        AtomicOp::Umin => old.min(x),
        AtomicOp::Umax => old.max(x),
        AtomicOp::Smin if signed(x) < signed(old) => x,
        AtomicOp::Smax if signed(x) > signed(old) => x,
        AtomicOp::Smin | AtomicOp::Smax | AtomicOp::Load => old,
        AtomicOp::Xchg => x,
        AtomicOp::CmpXchg if old == x => y,
        AtomicOp::CmpXchg => old,
        AtomicOp::And => old & x,
        AtomicOp::Or => old | x,
        AtomicOp::Xor => old ^ x,
        _ => float(op, bytes, old, x, y),
    };
    new & mask(bytes)
}

fn float(op: AtomicOp, bytes: u32, old: u64, x: u64, y: u64) -> u64 {
    let format = match bytes {
        2 => Format::Hf,
        4 => Format::F,
        _ => Format::Df,
    };
    let (a, b) = (format.value(old), format.value(x));
    let negative = |v: u64| v & format.sign() != 0;
    match op {
        AtomicOp::Fadd => Env::PLAIN.compute(FloatOp::Add, format, [old, x, 0]),
        AtomicOp::Fsub => Env::PLAIN.compute(FloatOp::Sub, format, [old, x, 0]),
        AtomicOp::FcmpXchg if a == b => y,
        AtomicOp::FcmpXchg => old,
        _ if a.is_nan() => x,
        _ if b.is_nan() => old,
        AtomicOp::Fmin if b < a || (a == b && negative(x)) => x,
        AtomicOp::Fmax if b > a || (a == b && !negative(x)) => x,
        _ => old,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        let r = |op, old, x| result(op, 4, old, x, 9);
        assert_eq!(r(AtomicOp::Smin, 1, 0xFFFF_FFFF), 0xFFFF_FFFF);
        assert_eq!(r(AtomicOp::Umin, 1, 0xFFFF_FFFF), 1);
        assert_eq!(r(AtomicOp::Dec, 0, 0), 0xFFFF_FFFF);
        assert_eq!(r(AtomicOp::CmpXchg, 5, 5), 9);
        assert_eq!(r(AtomicOp::CmpXchg, 5, 6), 5);
        assert_eq!(result(AtomicOp::Add, 2, 0xFFFF, 2, 0), 1);
    }

    #[test]
    fn floats() {
        let f = |x: f32| u64::from(x.to_bits());
        let r = |op, old, x| f32::from_bits(result(op, 4, f(old), f(x), f(9.0)) as u32);
        assert_eq!(r(AtomicOp::Fmin, f32::NAN, 1.0), 1.0);
        assert_eq!(r(AtomicOp::Fmax, 1.0, f32::NAN), 1.0);
        assert!(r(AtomicOp::Fmin, 0.0, -0.0).is_sign_negative());
        assert!(r(AtomicOp::Fmax, -0.0, 0.0).is_sign_positive());
        assert_eq!(r(AtomicOp::FcmpXchg, 0.0, -0.0), 9.0);
        assert_eq!(r(AtomicOp::Fsub, 1.0, 0.25), 0.75);
    }
}
