//! Checks of alignment: puts an operation before an access, which records lanes whose address is not aligned as the hardware needs
//! ([`Site::alignment`](crate::ssa::Site::alignment)), unless it is known that there are none.
//!
//! Runs where [`super::PassOptions::check_buffers`] asks for it, right before `check-buffers`, so that no optimisation sees these operations,
//! and the other code is what it is without them. The accesses themselves take every address; atomics round it down.

use rustc_hash::FxHashMap;

use super::edit::Rewriter;
use super::fold::low_zeros;
use crate::ssa::{AlignCheck, BinOp, Function, ICond, Inst, Lane, Op, Space, Ty, Value};

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let order = f.order.clone();
    let mut rewriter = Rewriter::new(f);
    for b in order {
        let mut made = Made::default();
        rewriter.block(b, |r, i| {
            check(r, &mut made, i);
            true
        });
    }
    rewriter.changes
}

/// Masks that were computed in a block, for later checks in it.
#[derive(Default)]
struct Made {
    /// Which lanes are misaligned: by the value that decides it (see [`rest`] and [`base`]), the number of lanes, and the alignment.
    odd: FxHashMap<(Value, u16, u32), Value>,
    /// Which enabled lanes are misaligned: by the execution mask and one of those.
    enabled: FxHashMap<(Value, Value), Value>,
}

/// What to look at before an operation.
fn check_of(op: &Op) -> Option<AlignCheck> {
    let (space, site) = match op {
        Op::Atomic(m) => (m.space, m.site),
        Op::Load(m) | Op::Store(m) => (m.space, m.site),
        Op::BlockLoad(m) | Op::BlockStore(m) => (m.space, m.site),
        Op::Load2d(m) | Op::Store2d(m) => (Space::Flat, m.site),
        _ => return None,
    };
    // Scratch and arguments are where the compiler puts them.
    let shared = matches!(space, Space::Surface | Space::Slm | Space::Flat);
    (shared || matches!(op, Op::Atomic(_))).then_some(AlignCheck { space, site })
}

/// Puts a check in front of an instruction, if it is an access that needs one.
fn check(r: &mut Rewriter, made: &mut Made, i: Inst) {
    let data = r.f.inst(i);
    let Some(check) = check_of(&data.op) else {
        return;
    };
    let alignment =
        r.f.sites
            .get(check.site as usize)
            .map_or(1, |s| s.alignment);
    let count = 2 + usize::from(check.space.has_surface());
    let mut args: Vec<_> = data.args.iter().take(count).copied().collect();
    let &[mask, addr, ..] = args.as_slice() else {
        return;
    };
    if alignment <= 1 || low_zeros(r.f, addr) >= alignment.trailing_zeros() {
        return;
    }
    let lanes = r.f.ty(addr).lanes;
    let rest = rest(r.f, addr, alignment);
    let base = base(r.f, i, alignment).filter(|_| !r.f.ty(rest).is_scalar());
    let low = base.unwrap_or(rest);
    let odd = *made
        .odd
        .entry((low, lanes, alignment))
        .or_insert_with(|| odd(r, low, lanes, alignment));
    args[0] = *made.enabled.entry((mask, odd)).or_insert_with(|| {
        let bits = Ty::vector(Lane::I1, lanes);
        r.emit(Op::Binary(BinOp::And), vec![mask, odd], bits)
    });
    r.effect(Op::CheckAligned(check), args);
    r.changes += 1;
}

/// An address without those summands that are multiples of the alignment. It is aligned where the address is, and often a scalar.
fn rest(f: &Function, addr: Value, alignment: u32) -> Value {
    let multiple = |v: Value| low_zeros(f, v) >= alignment.trailing_zeros();
    let mut rest = addr;
    while let Some(data) = f.def_inst(rest) {
        rest = match (&data.op, data.args.as_slice()) {
            (Op::Binary(BinOp::Add | BinOp::Sub), &[a, b]) if multiple(b) => a,
            (Op::Binary(BinOp::Add), &[a, b]) if multiple(a) => b,
            (Op::Splat, &[a]) => a,
            _ => break,
        };
    }
    rest
}

/// The address of the first lane, if either all lanes are aligned as it is.
fn base(f: &Function, i: Inst, alignment: u32) -> Option<Value> {
    let affine = f.shapes.get(&i)?.addr?;
    let step = affine.stride.unsigned_abs();
    (affine.guard.is_none() && step.is_multiple_of(alignment.into())).then_some(affine.base)
}

/// Which lanes are misaligned, by a value that is aligned where their addresses are: a lane for each, or a scalar for all.
fn odd(r: &mut Rewriter, low: Value, lanes: u16, alignment: u32) -> Value {
    let ty = r.f.ty(low);
    let mask = r.constant(ty, u64::from(alignment) - 1);
    let low = r.emit(Op::Binary(BinOp::And), vec![low, mask], ty);
    let zero = r.constant(ty, 0);
    let bits = Ty::vector(Lane::I1, ty.lanes);
    let odd = r.emit(Op::ICmp(ICond::Ne), vec![low, zero], bits);
    match ty.lanes == lanes {
        true => odd,
        false => r.emit(Op::Splat, vec![odd], Ty::vector(Lane::I1, lanes)),
    }
}
