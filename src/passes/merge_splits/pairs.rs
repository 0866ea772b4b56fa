//! Which accesses are the halves of one split access.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::MergeSplits;
use crate::passes::edit::{const_lanes, uniform_const};
use crate::passes::shape;
use crate::ssa::dom::use_counts;
use crate::ssa::{Block, Function, Input, Inst, InstData, Op, Site, Space, Value};

/// Two accesses to be made one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub block: Block,
    /// Access of the lower lanes, which comes first.
    pub low: Inst,
    pub high: Inst,
}

/// Pairs that are wanted, without those whose lower half is in `apart`.
pub(super) fn find(f: &Function, which: MergeSplits, apart: &BTreeSet<Inst>) -> Vec<Pair> {
    let mut pairs = beside(f, apart);
    if which == MergeSplits::All {
        return pairs;
    }
    let uses = use_counts(f);
    let by_lanes = |i: Inst| match (which, &f.inst(i).op) {
        (MergeSplits::Vec4, Op::Load(m)) => m.comps == 1,
        (MergeSplits::Vec4 | MergeSplits::Loads, Op::Store(m)) => m.comps == 1,
        _ => false,
    };
    let sent = |i: Inst| !by_lanes(i) && !is_by_itself(f, i, &uses);
    let full = |i: Inst| is_full(f, f.inst(i).args[0]);
    pairs.retain(|p| full(p.low) && full(p.high) && sent(p.low));
    if !pairs.is_empty() {
        let affine = shape::affine_accesses(f);
        pairs.retain(|p| !affine.contains(&p.low) && !affine.contains(&p.high));
    }
    pairs
}

/// True for masks that have all lanes of the thread that there are.
fn is_full(f: &Function, mask: Value) -> bool {
    let dispatch = |data: &InstData| data.op == Op::Input(Input::DispatchMask);
    match f.def_inst(mask) {
        Some(data) if dispatch(data) => true,
        Some(data) if matches!(data.op, Op::Shuffle(_)) => {
            data.args.len() == 1 && f.def_inst(data.args[0]).is_some_and(dispatch)
        }
        _ => uniform_const(f, mask) == Some(1),
    }
}

/// True for array-of-structs loads, of a vector for each lane, and atomics whose results nothing wants.
fn is_by_itself(f: &Function, i: Inst, uses: &[u32]) -> bool {
    let data = f.inst(i);
    match &data.op {
        Op::Load(m) => m.comps > 1 && m.elem.bytes() * u32::from(m.comps) == 16,
        Op::Atomic(_) => data.results.iter().all(|r| uses[r.0 as usize] == 0),
        _ => false,
    }
}

/// Pairs with nothing between that has an effect.
fn beside(f: &Function, apart: &BTreeSet<Inst>) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for &block in &f.order {
        let insts = &f.block(block).insts;
        let mut last = None;
        for (at, &high) in insts.iter().enumerate() {
            if !f.inst(high).op.has_effect() {
                continue;
            }
            let is_half = |&(from, low): &(usize, Inst)| {
                let between = &insts[from + 1..at];
                are_halves(f, low, high) && !apart.contains(&low) && !needs(f, low, between, high)
            };
            last = match last.filter(is_half) {
                Some((_, low)) => {
                    pairs.push(Pair { block, low, high });
                    None
                }
                None => Some((at, high)),
            };
        }
    }
    pairs
}

/// True if `high` depends on `low`, by way of `between`.
fn needs(f: &Function, low: Inst, between: &[Inst], high: Inst) -> bool {
    let mut tainted = Tainted::by(f, low);
    for &i in between {
        tainted.takes(f, i);
    }
    tainted.reads(f, high)
}

/// Values that depend on an instruction.
struct Tainted(FxHashSet<Value>);

impl Tainted {
    fn by(f: &Function, i: Inst) -> Tainted {
        Tainted(f.inst(i).results.iter().copied().collect())
    }

    fn reads(&self, f: &Function, i: Inst) -> bool {
        f.inst(i).args.iter().any(|a| self.0.contains(a))
    }

    /// Takes an instruction's results in, if it depends on what is in.
    fn takes(&mut self, f: &Function, i: Inst) -> bool {
        let reads = self.reads(f, i);
        if reads {
            self.0.extend(&f.inst(i).results);
        }
        reads
    }
}

/// True for the same access by the lower and the upper half of some lanes.
fn are_halves(f: &Function, low: Inst, high: Inst) -> bool {
    let (a, b) = (f.inst(low), f.inst(high));
    let (Some(space), Some(of)) = (kind(&a.op, &b.op), a.op.site().zip(b.op.site())) else {
        return false;
    };
    let sites = (f.sites.get(of.0 as usize), f.sites.get(of.1 as usize));
    let (Some(s), Some(t)) = sites else {
        return false;
    };
    let lanes = f.ty(a.args[0]).lanes;
    let first = u16::from(s.first_lane);
    let beside = u16::from(t.first_lane) == first + lanes && first.is_multiple_of(2 * lanes);
    let facts = |s: &Site| (s.opcode, s.kind, s.space, s.bytes, s.alignment);
    let same_site = facts(s) == facts(t);
    let same_types = a.args.len() == b.args.len()
        && a.args
            .iter()
            .zip(&b.args)
            .all(|(&x, &y)| f.ty(x) == f.ty(y));
    let surface = !space.has_surface() || is_same(f, a.args[2], b.args[2]);
    let same_inactive = f.inactive_undef.contains(&low) == f.inactive_undef.contains(&high);
    lanes > 1
        && 2 * lanes <= f.simd
        && beside
        && same_site
        && same_types
        && surface
        && same_inactive
}

/// Memory of two accesses that differ by their lanes alone.
fn kind(a: &Op, b: &Op) -> Option<Space> {
    let (same, space) = match (a, b) {
        (Op::Load(m), Op::Load(n)) | (Op::Store(m), Op::Store(n)) => {
            let same = (m.space, m.elem, m.comps) == (n.space, n.elem, n.comps);
            (same, m.space)
        }
        (Op::Atomic(m), Op::Atomic(n)) => {
            let same = (m.space, m.op, m.elem) == (n.space, n.op, n.elem);
            (same, m.space)
        }
        _ => return None,
    };
    (same && space != Space::Regs).then_some(space)
}

/// True for one scalar.
pub(super) fn is_same(f: &Function, a: Value, b: Value) -> bool {
    let equal = const_lanes(f, a).is_some_and(|k| const_lanes(f, b) == Some(k));
    a == b || f.ty(a) == f.ty(b) && equal
}

/// Puts the halves of each pair next to each other: what depends on the lower one goes after the upper one. Pairs are in the
/// order of their blocks, and lie apart.
pub(super) fn bring_together(f: &mut Function, pairs: &[Pair]) {
    for of_block in pairs.chunk_by(|a, b| a.block == b.block) {
        let block = of_block[0].block;
        let mut pairs = of_block.iter().peekable();
        let mut open: Option<(Tainted, Vec<Inst>)> = None;
        let mut out = Vec::new();
        for i in std::mem::take(&mut f.block_mut(block).insts) {
            let Some(&&pair) = pairs.peek() else {
                out.push(i);
                continue;
            };
            if i == pair.low {
                open = Some((Tainted::by(f, i), Vec::new()));
            } else if i == pair.high {
                out.extend([pair.low, i]);
                out.extend(open.take().map(|(_, behind)| behind).unwrap_or_default());
                pairs.next();
            } else {
                let waits = open.as_mut();
                match waits.and_then(|(tainted, behind)| tainted.takes(f, i).then_some(behind)) {
                    Some(behind) => behind.push(i),
                    None => out.push(i),
                }
            }
        }
        f.block_mut(block).insts = out;
    }
}
