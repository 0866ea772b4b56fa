//! What says of values that they are halves of 64-bit lanes.

use rustc_hash::FxHashMap;

use crate::passes::edit::{binary, const_lanes, uniform_const};
use crate::ssa::{BinOp, Conv, Function, Lane, Op, Ty, Value};

/// Bits of a low half.
pub(super) const LOW: u64 = u32::MAX as u64;
/// How many of them.
pub(super) const HALF: u64 = 32;

/// The 64-bit vector that a value has the low (false) or high halves of.
pub(super) fn half_of(f: &Function, v: Value) -> Option<(Value, bool)> {
    let data = f.def_inst(f.resolve(v))?;
    let x = f.resolve(*data.args.first()?);
    if f.ty(v).is_scalar()
        || data.op != Op::Convert(Conv::Trunc)
        || f.ty(x).lane != Lane::I64
        || f.ty(v).lane != Lane::I32
    {
        return None;
    }
    Some(match shifted(f, x, BinOp::LShr) {
        Some(whole) => (whole, true),
        None => (x, false),
    })
}

/// What is shifted by the bits of a half.
pub(super) fn shifted(f: &Function, v: Value, op: BinOp) -> Option<Value> {
    let (x, count) = binary(f, v, op)?;
    let by = uniform_const(f, f.resolve(count));
    (by == Some(32)).then(|| f.resolve(x))
}

/// True if the lanes of `v` are the low halves of those of `x`, which may have been computed by themselves, as deep as given.
pub(super) fn is_low_half(f: &Function, v: Value, x: Value, depth: usize) -> bool {
    let (v, x) = (f.resolve(v), f.resolve(x));
    if let (Some(low), Some(whole)) = (const_lanes(f, v), const_lanes(f, x)) {
        let low_bits = f.ty(v).lane.mask();
        return low.iter().zip(whole).all(|(l, w)| *l == w & low_bits);
    }
    let (Some(low), Some(whole)) = (f.def_inst(v), f.def_inst(x)) else {
        return false;
    };
    match (&low.op, &whole.op) {
        (Op::Convert(Conv::Trunc), _) if f.resolve(low.args[0]) == x => true,
        (_, Op::Convert(Conv::ZExt | Conv::SExt)) if f.resolve(whole.args[0]) == v => true,
        (Op::Convert(a @ (Conv::ZExt | Conv::SExt)), Op::Convert(b)) => {
            a == b && f.resolve(low.args[0]) == f.resolve(whole.args[0])
        }
        // Low bits depend on low bits.
        (Op::Splat | Op::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul), op) if *op == low.op => {
            let mut args = low.args.iter().zip(&whole.args);
            depth > 0 && args.all(|(&v, &x)| is_low_half(f, v, x, depth - 1))
        }
        _ => false,
    }
}

/// The scalar of 64 bits that this is a half of, and which.
pub(super) fn scalar_half(f: &Function, v: Value) -> Option<(Value, bool)> {
    let cut = f.def_inst(v).filter(|d| d.op == Op::Convert(Conv::Trunc))?;
    let n = f.resolve(cut.args[0]);
    if f.ty(n) != Ty::scalar(Lane::I64) || f.ty(v).lane != Lane::I32 {
        return None;
    }
    match binary(f, n, BinOp::LShr) {
        Some((x, count)) if uniform_const(f, f.resolve(count)) == Some(32) => {
            Some((f.resolve(x), true))
        }
        _ => Some((n, false)),
    }
}

/// A shift of 32-bit lanes by a constant.
pub(super) fn shift(f: &Function, v: Value) -> Option<(BinOp, Value, u64)> {
    let v = f.resolve(v);
    let ty = f.ty(v);
    let Op::Binary(op @ (BinOp::Shl | BinOp::LShr | BinOp::AShr)) = f.def_inst(v)?.op else {
        return None;
    };
    let (x, by) = binary(f, v, op)?;
    let by = uniform_const(f, f.resolve(by))?;
    let fits = ty.lane == Lane::I32 && !ty.is_scalar() && (1..HALF).contains(&by);
    fits.then(|| (op, f.resolve(x), by))
}

/// The only user of values that have one.
pub(super) fn users(f: &Function) -> FxHashMap<Value, Option<Value>> {
    let mut users = FxHashMap::default();
    for i in f.order.iter().flat_map(|&b| &f.block(b).insts) {
        let data = f.inst(*i);
        for (n, &a) in data.args.iter().enumerate() {
            let a = f.resolve(a);
            if data.args[..n].iter().any(|&b| f.resolve(b) == a) {
                continue;
            }
            let user = data.results.first().copied();
            users.entry(a).and_modify(|u| *u = None).or_insert(user);
        }
    }
    users
}
