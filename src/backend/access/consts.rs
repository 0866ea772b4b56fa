//! Constants of the IR, as code generators ask for them.

use crate::ssa::{Function, Op, Value};

/// Bits of a scalar constant.
pub(in crate::backend) fn scalar(f: &Function, v: Value) -> Option<u64> {
    match f.def_inst(v)?.op {
        Op::Const(bits) => Some(bits & f.ty(v).lane.mask()),
        _ => None,
    }
}

/// Bits that all lanes of a constant vector (or a scalar constant) have.
pub(in crate::backend) fn uniform(f: &Function, v: Value) -> Option<u64> {
    let def = f.def_inst(v)?;
    match &def.op {
        Op::Const(_) => scalar(f, v),
        Op::VecConst(lanes) => {
            let low = f.ty(v).lane.mask();
            let first = *lanes.first()? & low;
            lanes.iter().all(|l| l & low == first).then_some(first)
        }
        Op::Splat => scalar(f, *def.args.first()?),
        _ => None,
    }
}

/// Bits of a constant mask, lane 0 lowest.
pub(in crate::backend) fn mask(f: &Function, v: Value) -> Option<u64> {
    let lanes = f.ty(v).lanes;
    let all = |bit: u64| if bit & 1 == 1 { full(lanes) } else { 0 };
    let def = f.def_inst(v)?;
    match &def.op {
        Op::Const(bits) => Some(all(*bits)),
        Op::VecConst(values) => {
            let bits = values.iter().enumerate().map(|(i, bit)| (bit & 1) << i);
            Some(bits.fold(0, |all, bit| all | bit))
        }
        Op::Splat => scalar(f, *def.args.first()?).map(all),
        Op::BitsToMask => Some(scalar(f, *def.args.first()?)? & full(lanes)),
        _ => None,
    }
}

/// True for constant masks with all lanes.
pub(in crate::backend) fn is_full(f: &Function, v: Value) -> bool {
    mask(f, v) == Some(full(f.ty(v).lanes))
}

/// A bit for each of a given number of lanes, of which there are at most 64.
pub(in crate::backend) const fn full(lanes: u16) -> u64 {
    match lanes {
        0 => 0,
        1..64 => (1 << lanes) - 1,
        _ => u64::MAX,
    }
}
