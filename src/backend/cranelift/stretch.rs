//! Accesses at constant distances from each other: one bounds test and one pointer for all of them.
//!
//! If the bytes from the lowest to the end of the highest access are inside, every access is, and no 32-bit offset between
//! them wraps. The test may fail where each access by itself would have passed (a stretch over the end
//! of a wrapped offset); then the general version runs, which is slower and no different.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::affine::{MAX_RUN, Run};
use super::emit::Emit;
use super::memory::{Place, Region};
use crate::backend::Bounds as Tests;
use crate::ssa::remark::Bounds;
use crate::ssa::{BinOp, Inst, MemAccess, Op, Space, Value};

/// Some accesses of one region.
pub(super) struct Stretch {
    space: Space,
    surface: Option<Value>,
    /// What all addresses have in common.
    root: Value,
    /// The accesses, with the distance of lane 0's address from the root.
    accesses: Vec<(Inst, i64)>,
    /// Distance of the lowest byte from the root.
    from: i64,
    /// Distance of the end.
    to: i64,
}

impl Stretch {
    fn bytes(&self) -> u64 {
        self.to.abs_diff(self.from)
    }

    /// How the bounds of an access are known, if it is one of these: the first stands for the test.
    pub fn bounds(&self, inst: Inst) -> Option<Bounds> {
        let place = self.accesses.iter().position(|&(i, _)| i == inst)?;
        Some(if place == 0 {
            Bounds::Tested
        } else {
            Bounds::Shared
        })
    }

    /// Takes an access in, if the whole stays short enough for one test.
    fn take(&mut self, other: &Stretch) -> bool {
        let same =
            self.space == other.space && self.surface == other.surface && self.root == other.root;
        let (from, to) = (self.from.min(other.from), self.to.max(other.to));
        if !same || to.abs_diff(from) > MAX_RUN {
            return false;
        }
        (self.from, self.to) = (from, to);
        self.accesses.extend(&other.accesses);
        true
    }
}

impl Emit<'_> {
    /// The accesses of a version for whole runs, put together unless each is to have a test of its own.
    pub fn stretches(&mut self, runs: &[Inst]) -> Vec<Stretch> {
        let mut stretches: Vec<Stretch> = Vec::new();
        for &i in runs {
            let Some(one) = self.stretch_of(i) else {
                continue;
            };
            let shared = self.options.tuning.bounds == Tests::Hoisted;
            if !(shared && stretches.iter_mut().any(|s| s.take(&one))) {
                stretches.push(one);
            }
        }
        stretches
    }

    /// An access by itself; `None` for those that need no test.
    fn stretch_of(&mut self, inst: Inst) -> Option<Stretch> {
        let f = self.f;
        let data = f.inst(inst);
        let (access, load): (MemAccess, bool) = match &data.op {
            Op::Load(access) => (*access, true),
            Op::Store(access) => (*access, false),
            _ => return None,
        };
        let addr = f.shapes.get(&inst)?.addr?;
        let run = Run::new(access, self.ty(data.args[1]).lanes, addr.stride, load)?;
        if self.surely_inside(access.space, addr.guard.is_some(), addr.base, run) {
            return None;
        }
        let (root, at) = self.root(addr.base);
        let from = at.checked_add(run.lowest)?;
        Some(Stretch {
            space: access.space,
            surface: access.space.has_surface().then(|| data.args[2]),
            root,
            accesses: vec![(inst, at)],
            from,
            to: from.checked_add_unsigned(run.bytes)?,
        })
    }

    /// An address as something and a constant distance from it.
    fn root(&self, base: Value) -> (Value, i64) {
        let lane = self.ty(base).lane;
        let (mut root, mut distance) = (base, 0u64);
        while let Some(sum) = self.def_op(root)
            && sum.op == Op::Binary(BinOp::Add)
            && let Some(by) = self.scalar_const(sum.args[1])
            && self.is_at_hand(sum.args[0])
        {
            (root, distance) = (sum.args[0], distance.wrapping_add(by));
        }
        (root, lane.sign_extend(distance & lane.mask()))
    }

    /// Whether all bytes of a stretch are inside.
    pub fn stretch_inside(&mut self, s: &Stretch) -> V {
        let offset = self.stretch_offset(s);
        let bytes = s.bytes() as u32;
        let limit = if s.space == Space::Flat {
            self.flat_limit(bytes)
        } else {
            let region = self.region(s.space, s.surface);
            self.limit(region, bytes)
        };
        self.ins().icmp(IntCC::UnsignedLessThan, offset, limit)
    }

    fn stretch_offset(&mut self, s: &Stretch) -> V {
        let mut start = self.scalar(s.root);
        if s.from != 0 {
            start = self.ins().iadd_imm_s(start, s.from);
        }
        if s.space == Space::Flat {
            self.flat_offset(start)
        } else {
            start
        }
    }

    /// Pointers to lane 0 of the accesses of a stretch that is inside.
    pub fn stretch_pointers(&mut self, s: &Stretch) -> Vec<(Inst, V)> {
        let region = if s.space == Space::Flat {
            Region::Known(Place::Flat)
        } else {
            self.region(s.space, s.surface)
        };
        let mut offset = self.stretch_offset(s);
        if s.space != Space::Flat {
            offset = self.ins().uextend(types::I64, offset);
        }
        let base = self.base(region);
        let start = self.ins().iadd(base, offset);
        let mut pointers = Vec::with_capacity(s.accesses.len());
        for &(inst, at) in &s.accesses {
            let pointer = match at - s.from {
                0 => start,
                distance => self.ins().iadd_imm_s(start, distance),
            };
            pointers.push((inst, pointer));
        }
        pointers
    }
}
