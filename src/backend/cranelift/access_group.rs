//! Accesses at constant distances from each other: one bounds test and one pointer for all of them.
//!
//! If the bytes from the lowest to the end of the highest access are inside, every access is, and no 32-bit offset between
//! them wraps. The test may fail where each access by itself would have passed (an access group over the end
//! of a wrapped offset); then the general version runs, which is slower and gives the same.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::Emit;
use super::memory::{Place, Region};
use crate::backend::Bounds as Tests;
use crate::backend::access::{MAX_SPAN, Strided};
use crate::ssa::remark::Bounds;
use crate::ssa::{BinOp, Inst, MemAccess, Op, Space, Value};

/// Some accesses of one region.
pub(super) struct AccessGroup {
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

impl AccessGroup {
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
    fn take(&mut self, other: &AccessGroup) -> bool {
        let same =
            self.space == other.space && self.surface == other.surface && self.root == other.root;
        let (from, to) = (self.from.min(other.from), self.to.max(other.to));
        if !same || to.abs_diff(from) > MAX_SPAN {
            return false;
        }
        (self.from, self.to) = (from, to);
        self.accesses.extend(&other.accesses);
        true
    }
}

impl Emit<'_> {
    /// The accesses of a fast version, put together unless each is to have a test of its own.
    pub fn access_groups(&mut self, accesses: &[Inst]) -> Vec<AccessGroup> {
        let mut groups: Vec<AccessGroup> = Vec::new();
        for &i in accesses {
            let Some(one) = self.access_group_of(i) else {
                continue;
            };
            let shared = self.options.tuning.bounds == Tests::Hoisted;
            if !(shared && groups.iter_mut().any(|s| s.take(&one))) {
                groups.push(one);
            }
        }
        groups
    }

    /// An access by itself; `None` for those that need no test.
    fn access_group_of(&mut self, inst: Inst) -> Option<AccessGroup> {
        let f = self.f;
        let data = f.inst(inst);
        let (access, load): (MemAccess, bool) = match &data.op {
            Op::Load(access) => (*access, true),
            Op::Store(access) => (*access, false),
            _ => return None,
        };
        let addr = f.shapes.get(&inst)?.addr?;
        let strided = Strided::new(access, self.ty(data.args[1]).lanes, addr.stride, load)?;
        if self.surely_inside(access.space, addr.guard.is_some(), addr.base, strided) {
            return None;
        }
        let (root, at) = self.root(addr.base);
        let (root, at, (from, to)) = match strided.distances(at) {
            Some(distances) => (root, at, distances),
            // Too far from the root, though not from lane 0.
            None => (addr.base, 0, strided.distances(0)?),
        };
        Some(AccessGroup {
            space: access.space,
            surface: access.space.has_surface().then(|| data.args[2]),
            root,
            accesses: vec![(inst, at)],
            from,
            to,
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

    /// Whether all bytes of an access group are inside.
    pub fn group_inside(&mut self, s: &AccessGroup) -> V {
        let offset = self.group_offset(s);
        let bytes = s.bytes() as u32;
        let limit = if s.space == Space::Flat {
            self.flat_limit(bytes)
        } else {
            let region = self.region(s.space, s.surface);
            self.limit(region, bytes)
        };
        self.ins().icmp(IntCC::UnsignedLessThan, offset, limit)
    }

    fn group_offset(&mut self, s: &AccessGroup) -> V {
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

    /// Pointers to lane 0 of the accesses of an access group that is inside.
    pub fn group_pointers(&mut self, s: &AccessGroup) -> Vec<(Inst, V)> {
        let region = if s.space == Space::Flat {
            Region::Known(Place::Flat)
        } else {
            self.region(s.space, s.surface)
        };
        let mut offset = self.group_offset(s);
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
