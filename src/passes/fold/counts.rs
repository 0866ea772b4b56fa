//! Population counts, from how they are written where there is no instruction: sums of neighbouring bits, then of pairs, then of halves of bytes,
//! and of all bytes by a product or by shifts.
//!
//! No sum of the first three steps is above what its field holds, so that each way to write a step leaves the same fields.

use super::super::edit::{binary as bin, unary as un, uniform_const};
use super::{Action, Subject};
use crate::ssa::{BinOp, Function, Lane, Op, UnOp, Value};

/// Every other bit, every other pair, every other half of a byte, and the lowest bit of every byte.
const FIELDS: [u64; 3] = [
    0x5555_5555_5555_5555,
    0x3333_3333_3333_3333,
    0x0F0F_0F0F_0F0F_0F0F,
];
const BYTES: u64 = 0x0101_0101_0101_0101;

/// The last step: the sum of all bytes, in the highest byte of a product or in the lowest one of sums.
pub(super) fn binary(f: &Function, s: &Subject, op: BinOp) -> Option<Action> {
    if !matches!(s.ty.lane, Lane::I32 | Lane::I64) {
        return None;
    }
    let c = uniform_const(f, *s.args.get(1)?)?;
    let (width, ones) = (u64::from(s.ty.lane.bits()), s.ty.lane.mask());
    let bytes = match op {
        BinOp::LShr if c == width - 8 => {
            let (bytes, times) = bin(f, s.args[0], BinOp::Mul)?;
            (uniform_const(f, times)? == BYTES & ones).then_some(bytes)?
        }
        // Sums of bytes are no more than 64; what is above the lowest byte is cut off.
        BinOp::And if matches!(c, 0x7F | 0xFF) || c == 0x3F && width == 32 => {
            let (mut v, mut by) = (s.args[0], width / 2);
            while by >= 8 {
                v = plus_itself(f, v, by)?;
                by /= 2;
            }
            v
        }
        _ => return None,
    };
    let x = counted(f, bytes, ones)?;
    Some(Action::Become(Op::Unary(UnOp::Popcnt), vec![x]))
}

/// The `x` of `x + (x >> by)`.
fn plus_itself(f: &Function, v: Value, by: u64) -> Option<Value> {
    let (a, b) = bin(f, v, BinOp::Add)?;
    let of = |x: Value, shifted| (down(f, shifted, by)? == f.resolve(x)).then_some(f.resolve(x));
    of(a, b).or_else(|| of(b, a))
}

/// The `x` of `x >> by`.
fn down(f: &Function, v: Value, by: u64) -> Option<Value> {
    let (x, count) = bin(f, v, BinOp::LShr)?;
    (uniform_const(f, count) == Some(by)).then(|| f.resolve(x))
}

/// The words whose bits each byte counts, of its part of them.
fn counted(f: &Function, bytes: Value, ones: u64) -> Option<Value> {
    let masked = |v: Value, step: usize| {
        let (x, mask) = bin(f, v, BinOp::And)?;
        (uniform_const(f, mask) == Some(FIELDS[step] & ones)).then(|| f.resolve(x))
    };
    // The sum of neighbouring fields, each masked.
    let sum = |v: Value, step: usize| {
        let (a, b) = bin(f, v, BinOp::Add)?;
        let of = |a, b| {
            let x = masked(a, step)?;
            (down(f, masked(b, step)?, 1 << step)? == x).then_some(x)
        };
        of(a, b).or_else(|| of(b, a))
    };
    // Sums of two halves of bytes fit into one, so that one mask after the sum does.
    let halves = || plus_itself(f, masked(bytes, 2)?, 4);
    let pairs = sum(bytes, 2).or_else(halves)?;
    let bits = sum(pairs, 1)?;
    // `x - (x >> 1 & 0x5555…)` is the number of bits in each pair of `x`.
    let difference = || {
        let (x, less) = match bin(f, bits, BinOp::Sub) {
            Some(pair) => pair,
            None => {
                let (a, b) = bin(f, bits, BinOp::Add)?;
                match (un(f, a, UnOp::Neg), un(f, b, UnOp::Neg)) {
                    (_, Some(b)) => (a, b),
                    (Some(a), _) => (b, a),
                    _ => return None,
                }
            }
        };
        let x = f.resolve(x);
        (down(f, masked(less, 0)?, 1)? == x).then_some(x)
    };
    sum(bits, 0).or_else(difference)
}
