//! Which integer vectors are affine in the lane: an optimistic fixed point over the function.

use crate::passes::edit::{const_lanes, uniform_const};
use crate::ssa::remark::Cause;
use crate::ssa::{BinOp, Block, Conv, Function, Input, InstData, Lane, Op, Value};

/// What is known about the lanes of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    /// Not computed yet.
    Unseen,
    /// Lane `i` is lane 0 plus `i * stride`, in the width of the lane.
    Affine {
        /// Distance of neighbours, sign-extended from the lane.
        stride: i64,
        /// Only where a run-time test holds.
        guarded: bool,
    },
    /// Nothing, because of this.
    Any(Cause, Value),
}

impl Spacing {
    /// What both have in common at the parameter `at`.
    fn join(self, other: Spacing, at: Value) -> Spacing {
        match (self, other) {
            (Spacing::Unseen, s) | (s, Spacing::Unseen) => s,
            (
                Spacing::Affine { stride, guarded },
                Spacing::Affine {
                    stride: s,
                    guarded: g,
                },
            ) if stride == s => Spacing::Affine {
                stride,
                guarded: guarded || g,
            },
            (Spacing::Any(..), _) => self,
            (_, Spacing::Any(..)) => other,
            _ => Spacing::Any(Cause::Paths, at),
        }
    }
}

/// What a fixed point is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Find {
    /// What holds for all lanes.
    Facts,
    /// What probably holds for the lanes that are read: of a value that a mask chooses, or that comes on different
    /// ways, constants are what the others get.
    Speculative,
}

/// Spacing of every value.
pub(super) fn run(f: &Function, order: &[Block], find: Find) -> Vec<Spacing> {
    let choice = |known: &[Spacing], v: Value| match find {
        Find::Speculative if uniform_const(f, v).is_some() => Spacing::Unseen,
        _ => known[v.0 as usize],
    };
    let mut known = vec![Spacing::Unseen; f.values.len()];
    loop {
        let mut changed = false;
        for &b in order {
            for &i in &f.block(b).insts {
                let data = f.inst(i);
                for &r in &data.results {
                    let s = match (&data.op, find) {
                        (Op::Select, Find::Speculative) if is_address(f, r) => {
                            let [a, b] = [1, 2].map(|n| choice(&known, data.args[n]));
                            beside_limit(a, b, r)
                        }
                        (Op::Binary(op), Find::Speculative) if is_address(f, r) => {
                            match likely(f, *op, data, r, &known) {
                                Some(s) => s,
                                None => result(f, data, r, &known),
                            }
                        }
                        _ => result(f, data, r, &known),
                    };
                    changed |= std::mem::replace(&mut known[r.0 as usize], s) != s;
                }
            }
            for call in f.block(b).term.targets() {
                for (&p, &a) in f.block(call.block).params.iter().zip(&call.args) {
                    let s = known[p.0 as usize].join(choice(&known, a), p);
                    changed |= std::mem::replace(&mut known[p.0 as usize], s) != s;
                }
            }
        }
        if !changed {
            return known;
        }
    }
}

/// Arguments that each parameter receives.
pub(super) fn incoming(f: &Function) -> Vec<Vec<Value>> {
    let mut args = vec![Vec::new(); f.values.len()];
    for &b in &f.order {
        for call in f.block(b).term.targets() {
            for (&p, &a) in f.block(call.block).params.iter().zip(&call.args) {
                args[p.0 as usize].push(a);
            }
        }
    }
    args
}

/// True for values that may be part of an address.
fn is_address(f: &Function, v: Value) -> bool {
    let ty = f.ty(v);
    !ty.is_scalar() && !ty.lane.is_float() && ty.lane != Lane::I1
}

fn affine(lane: Lane, stride: i64, guarded: bool) -> Spacing {
    let stride = lane.sign_extend(stride as u64);
    Spacing::Affine { stride, guarded }
}

fn result(f: &Function, data: &InstData, r: Value, known: &[Spacing]) -> Spacing {
    let ty = f.ty(r);
    let lane = ty.lane;
    if !is_address(f, r) {
        return Spacing::Any(Cause::Operation, r);
    }
    let arg = |n: usize| known[data.args[n].0 as usize];
    match &data.op {
        Op::Splat => affine(lane, 0, false),
        Op::VecConst(bits) => sequence(bits, lane, r),
        Op::Binary(op) => binary(f, *op, data, r, known),
        Op::Convert(Conv::Trunc) => map(arg(0), |s, g| affine(lane, s, g)),
        Op::Convert(Conv::SExt | Conv::ZExt) if f.ty(data.args[0]).lane != Lane::I1 => {
            let from = f.ty(data.args[0]).lane;
            map(arg(0), |s, g| extended(s, g, r, (ty.lanes, from.bits())))
        }
        Op::Shuffle(indices) if data.args.len() == 1 => match steps(indices) {
            Some(step) => map(arg(0), |s, g| affine(lane, s.wrapping_mul(step), g)),
            None => Spacing::Any(Cause::Shuffled, r),
        },
        Op::Shuffle(_) if matches!(arg(0), Spacing::Any(..)) => arg(0),
        Op::Select if f.ty(data.args[0]).is_scalar() => arg(1).join(arg(2), r),
        op => Spacing::Any(cause(f, op, data), r),
    }
}

/// What an operation that is not followed makes of its result.
fn cause(f: &Function, op: &Op, data: &InstData) -> Cause {
    match op {
        Op::Load(_) | Op::Atomic(_) | Op::Image(_) | Op::BlockLoad(_) | Op::Load2d(_) => {
            Cause::Loaded
        }
        Op::Input(Input::LocalId { .. } | Input::LocalIds { .. }) => Cause::LocalIds,
        Op::Input(_) => Cause::Input,
        Op::Select => Cause::Masked,
        Op::Shuffle(_) => Cause::Shuffled,
        Op::Convert(_) if f.ty(data.args[0]).lane.is_float() => Cause::Float,
        _ => Cause::Operation,
    }
}

fn map(s: Spacing, f: impl Fn(i64, bool) -> Spacing) -> Spacing {
    match s {
        Spacing::Affine { stride, guarded } => f(stride, guarded),
        other => other,
    }
}

/// Constants that form an arithmetic sequence.
fn sequence(bits: &[u64], lane: Lane, at: Value) -> Spacing {
    let difference = |w: &[u64]| lane.sign_extend(w[1].wrapping_sub(w[0]));
    let mut steps = bits.windows(2).map(difference);
    match steps.next() {
        Some(first) if steps.all(|s| s == first) => affine(lane, first, false),
        _ => Spacing::Any(Cause::Operation, at),
    }
}

/// Distance of the indices of a shuffle, if it is the same everywhere.
fn steps(indices: &[u16]) -> Option<i64> {
    let mut steps = indices
        .windows(2)
        .map(|w| i64::from(w[1]) - i64::from(w[0]));
    let first = steps.next()?;
    steps.all(|s| s == first).then_some(first)
}

/// After an extension from `width` bits the lanes are affine only if none wraps, which is tested at run time.
///
/// The test sees the ends alone, which is enough while all lanes together span less than the width.
fn extended(stride: i64, guarded: bool, at: Value, (lanes, width): (u16, u32)) -> Spacing {
    let span = i128::from(stride).abs() * i128::from(lanes - 1);
    if stride == 0 {
        return Spacing::Affine { stride, guarded };
    }
    if span >= 1 << width {
        return Spacing::Any(Cause::Wraps, at);
    }
    Spacing::Affine {
        stride,
        guarded: true,
    }
}

fn binary(f: &Function, op: BinOp, data: &InstData, r: Value, known: &[Spacing]) -> Spacing {
    let lane = f.ty(r).lane;
    let (a, b) = (data.args[0], data.args[1]);
    let (x, y) = (known[a.0 as usize], known[b.0 as usize]);
    let constant = uniform_const(f, b);
    match (op, constant) {
        (BinOp::Add | BinOp::Sub, _) => {
            let sign = if op == BinOp::Add { 1 } else { -1 };
            map(x, |s, g| {
                map(y, |t, h| {
                    affine(lane, s.wrapping_add(t.wrapping_mul(sign)), g || h)
                })
            })
        }
        (BinOp::Mul, Some(c)) => map(x, |s, g| affine(lane, s.wrapping_mul(c as i64), g)),
        (BinOp::Shl, Some(c)) => {
            let count = c % u64::from(lane.bits());
            map(x, |s, g| affine(lane, s.wrapping_shl(count as u32), g))
        }
        // Bits that are the same in all lanes, as the distance is a multiple of what follows them.
        (BinOp::And | BinOp::Or | BinOp::Xor, Some(c)) if same_bits(op, c, lane, x) => x,
        // Low bits: like an extension from that width.
        (BinOp::And, Some(c)) if c != 0 && (c & c.wrapping_add(1)) == 0 => {
            let lanes = f.ty(a).lanes;
            map(x, |s, g| extended(s, g, r, (lanes, c.count_ones())))
        }
        (BinOp::UMin, Some(c)) if saturates(c, lane, f.ty(r).lanes, x) => {
            map(x, |s, _| affine(lane, s, true))
        }
        _ => {
            let cause = match op {
                BinOp::Mul => Cause::Factor,
                _ => Cause::Operation,
            };
            uniform_operands(f, b, (x, y), Spacing::Any(cause, r))
        }
    }
}

/// True if a bitwise operation with a constant changes only bits that are the same in all lanes, so that all lanes move by as much.
pub(super) fn same_bits(op: BinOp, c: u64, lane: Lane, x: Spacing) -> bool {
    let Spacing::Affine { stride, .. } = x else {
        return false;
    };
    let changed = match op {
        BinOp::And => !c & lane.mask(),
        _ => c,
    };
    stride != 0 && u64::BITS - changed.leading_zeros() <= stride.trailing_zeros()
}

/// Farthest from the end of all addresses that a limit is which keeps the elements of a message from wrapping around.
const END: u64 = 64;

/// Fewest low bits of offsets that are kept of more: those of local memory are shorter.
const OFFSET_BITS: u32 = 24;

/// True for a limit that only keeps a sum afterwards from wrapping, with lanes that move up: no address in bounds reaches it, so a test
/// that none does holds.
pub(super) fn saturates(limit: u64, lane: Lane, lanes: u16, x: Spacing) -> bool {
    moves_up_to(limit, lanes, x) && lane.mask() - limit < END
}

/// True for low bits that are kept of a number of 32 bits that is an offset in bounds only if it has no others, with lanes that move up.
pub(super) fn keeps_offset(mask: u64, lane: Lane, lanes: u16, x: Spacing) -> bool {
    let low = mask & mask.wrapping_add(1) == 0 && mask.count_ones() >= OFFSET_BITS;
    lane == Lane::I32 && low && moves_up_to(mask, lanes, x)
}

/// True for lanes that move up, all of which may be below a limit.
fn moves_up_to(limit: u64, lanes: u16, x: Spacing) -> bool {
    let Spacing::Affine { stride, .. } = x else {
        return false;
    };
    let span = i128::from(stride) * i128::from(lanes.saturating_sub(1));
    stride > 0 && span <= i128::from(limit)
}

/// What probably holds where lanes have one of two values: one that is the same in all lanes is a limit, which few lanes reach.
fn beside_limit(x: Spacing, y: Spacing, at: Value) -> Spacing {
    let limit = |s: Spacing| matches!(s, Spacing::Affine { stride: 0, .. });
    match (limit(x), limit(y)) {
        (false, true) => x,
        (true, false) => y,
        _ => x.join(y, at),
    }
}

/// What probably holds for the result of an operation that is not followed: an index that wraps around at an edge, or that a limit
/// clamps, does so for few lanes, and what lanes side by side have in common are their high bits.
fn likely(
    f: &Function,
    op: BinOp,
    data: &InstData,
    r: Value,
    known: &[Spacing],
) -> Option<Spacing> {
    let [a, b] = [0, 1].map(|n| data.args[n]);
    let [x, y] = [a, b].map(|v| known[v.0 as usize]);
    if op.is_bound() {
        return Some(beside_limit(x, y, r));
    }
    let commutes = matches!(
        op,
        BinOp::And | BinOp::Or | BinOp::Xor | BinOp::SAddSat | BinOp::UAddSat
    );
    let (x, y, b) = match x {
        Spacing::Affine { stride: 0, .. } if commutes && !f.ty(b).is_scalar() => (y, x, a),
        _ => (x, y, b),
    };
    let same = f.ty(b).is_scalar() || matches!(y, Spacing::Affine { stride: 0, .. });
    let Spacing::Affine { stride, guarded } = x else {
        return None;
    };
    let lanes = u64::from(f.ty(r).lanes);
    let constant = uniform_const(f, b);
    let stride = match (op, constant) {
        _ if !same || stride == 0 => return None,
        // Whole blocks of lanes are exchanged, or fewer: then they are not side by side.
        (BinOp::And | BinOp::Or | BinOp::Xor, Some(c)) if c % lanes == 0 && op != BinOp::And => {
            stride
        }
        (BinOp::And, Some(c)) if c % lanes == lanes - 1 => stride,
        (BinOp::And | BinOp::Or | BinOp::Xor, None) | (BinOp::SRem | BinOp::URem, _) => stride,
        (BinOp::SAddSat | BinOp::UAddSat | BinOp::SSubSat | BinOp::USubSat, _) => stride,
        (BinOp::SDiv | BinOp::UDiv, _) => 0,
        (BinOp::LShr | BinOp::AShr, Some(c)) if 1 << c.min(63) >= lanes => 0,
        _ => return None,
    };
    Some(Spacing::Affine { stride, guarded })
}

/// Any lane-wise operation on equal lanes gives equal lanes, and `other` on others.
fn uniform_operands(f: &Function, b: Value, (x, y): (Spacing, Spacing), other: Spacing) -> Spacing {
    let scalar = Spacing::Affine {
        stride: 0,
        guarded: false,
    };
    let y = if f.ty(b).is_scalar() { scalar } else { y };
    map(x, |s, g| {
        map(y, |t, h| {
            if s == 0 && t == 0 {
                Spacing::Affine {
                    stride: 0,
                    guarded: g || h,
                }
            } else {
                other
            }
        })
    })
}

/// Lane 0 of a vector constant.
pub(super) fn first_lane(f: &Function, v: Value) -> u64 {
    const_lanes(f, v)
        .and_then(|l| l.first().copied())
        .unwrap_or(0)
}
