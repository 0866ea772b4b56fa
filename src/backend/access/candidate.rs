//! Accesses that one test in front of a part of a block may find to be inside.

use super::AtHand;
use super::consts;
use super::group::Reach;
use super::how::{at_most, lane_wise, surely_inside};
use super::limits::{Limits, MaskedStores, Scope};
use super::strided::{Strided, StridedKind};
use crate::backend::Gather;
use crate::ssa::remark::Way;
use crate::ssa::shape::Affine;
use crate::ssa::{Function, Inst, MemAccess, Op, Space, Value};

/// Most loads in a function that are a load for each lane instead of a gather. That is several times as much code: with 78 of them it was
/// still 1.4 times as fast, but took 0.2 s longer to compile.
const MOST_SPREAD: usize = 96;

/// An access that one test of its addresses may find to be inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend) struct Access {
    /// The instruction.
    pub inst: Inst,
    /// What it accesses.
    pub access: MemAccess,
    /// A load, else a store.
    pub load: bool,
    /// Lanes.
    pub lanes: u16,
    /// Its bytes; the root is a vector where nothing says that addresses are affine.
    pub reach: Reach,
    /// Its affine addresses, if they are.
    pub strided: Option<Strided>,
    /// What a stride makes of it.
    pub kind: StridedKind,
    /// Address of lane 0, and the condition under which the addresses are affine.
    pub affine: Option<Affine>,
    /// A mask or a scalar that says whether all lanes are enabled, where they must be.
    pub all: Option<Value>,
    /// A store of the lanes that are enabled, whatever the mask.
    pub enabled: bool,
    /// It needs no test: it is surely inside.
    pub inside: bool,
    /// Each lane is a vector.
    pub vec4: bool,
}

impl Access {
    /// Bytes from lane to lane, where that is known.
    pub(in crate::backend) fn stride(&self) -> Option<i64> {
        self.strided.map(|s| s.stride)
    }

    /// How it is done where it is inside.
    pub(super) const fn way(&self) -> Way {
        match self.kind {
            StridedKind::Same => Way::Broadcast,
            StridedKind::Packed | StridedKind::Run | StridedKind::Overlap => Way::Vector,
            StridedKind::Spread if self.vec4 => Way::Vec4(self.lanes),
            StridedKind::Spread => Way::Lanes(self.lanes),
        }
    }

    /// What must be computed in front of the test.
    pub(super) fn operands(&self, f: &Function, limits: &Limits) -> Vec<Value> {
        let guard = self.affine.and_then(|a| a.guard);
        // Where a version goes to the end of its block, pointers are made of the addresses themselves.
        let base = self.affine.filter(|_| limits.scope == Scope::Block);
        let all = match limits.scope {
            Scope::Block => f.shapes.get(&self.inst).and_then(|s| s.mask_all),
            Scope::Parts => self.all,
        };
        let all = all.filter(|_| !self.load);
        let mut operands: Vec<Value> = match base {
            Some(affine) => vec![affine.base],
            None => self.reach.root.values().collect(),
        };
        operands.extend([guard, all, self.reach.surface].into_iter().flatten());
        operands
    }
}

/// Finds accesses of a function.
pub(super) struct Finder<'a> {
    f: &'a Function,
    limits: &'a Limits,
    /// Whether loads of lanes that are not side by side are few.
    few_spread: bool,
}

impl<'a> Finder<'a> {
    pub(super) fn new(f: &'a Function, limits: &'a Limits) -> Finder<'a> {
        Finder {
            f,
            limits,
            few_spread: few_spread(f),
        }
    }

    /// The access of an instruction, if one test may find it inside. `full` says of its mask that it has all lanes.
    pub(super) fn access(&self, inst: Inst, at_hand: AtHand, full: bool) -> Option<Access> {
        let (f, limits) = (self.f, self.limits);
        let data = f.inst(inst);
        let (access, load) = lane_wise(&data.op)?;
        let (mask, addr) = (data.args[0], data.args[1]);
        let lanes = f.ty(addr).lanes;
        if lanes == 1 {
            return None;
        }
        let shape = f.shapes.get(&inst).copied().unwrap_or_default();
        let vec4 = limits.is_vec4(access, lanes);
        let (mut strided, mut inside) = (None, false);
        let (address, bytes, kind) = if let Some(affine) = shape.addr {
            let mut s = Strided::new(access, lanes, affine.stride, load && limits.whole_rows)?;
            if load {
                s = limits.as_run(s, access, lanes);
            }
            inside = surely_inside(f, access.space, affine, s);
            // Short versions leave out what is inside anyway.
            let left_out = limits.scope == Scope::Parts
                && access.space.data() == Space::Regs
                && consts::scalar(f, affine.base).is_some();
            if left_out || !self.fits(access, lanes, load, s.kind) {
                return None;
            }
            strided = Some(s);
            (affine.base, (s.lowest, s.bytes), s.kind)
        } else if vec4 || load && shape.speculative.is_none() && self.reads_lanes(access, lanes) {
            let bytes = u64::from(access.elem.bytes()) * u64::from(access.comps);
            (addr, (0, bytes), StridedKind::Spread)
        } else {
            return None;
        };
        let asks = !load && !full;
        let all = match limits.masked_stores {
            MaskedStores::Branch => shape.mask_all,
            // One test decides for many accesses: it should not fail as one of them does not store all lanes.
            _ if kind == StridedKind::Packed && limits.stores_masked(access, lanes) => None,
            _ => Some(shape.mask_all.unwrap_or(mask)),
        };
        let surface = access.space.has_surface().then(|| data.args[2]);
        let mut reach = Reach::new(f, (access.space, surface), address, bytes, at_hand);
        if shape.addr.is_none() {
            reach = reach.by_numbers(f, at_hand);
        }
        Some(Access {
            inst,
            access,
            load,
            lanes,
            reach,
            strided,
            kind,
            affine: shape.addr,
            all: all.filter(|_| asks),
            enabled: asks && all.is_none(),
            inside,
            vec4: vec4 && kind == StridedKind::Spread,
        })
    }

    /// True where versions do such an access faster than it is done by itself.
    fn fits(&self, access: MemAccess, lanes: u16, load: bool, kind: StridedKind) -> bool {
        let one_by_one = match load {
            true => self.limits.gathers(access, lanes),
            false => self.limits.scatters(access, lanes),
        };
        let vec4 = self.limits.is_vec4(access, lanes);
        match kind {
            StridedKind::Packed => true,
            StridedKind::Same | StridedKind::Run | StridedKind::Overlap => load,
            StridedKind::Spread => vec4 || !one_by_one || load && self.reads_lanes(access, lanes),
        }
    }

    /// True where a load for each lane is faster than a gather, once all are known to be inside.
    fn reads_lanes(&self, access: MemAccess, lanes: u16) -> bool {
        let limits = self.limits;
        let gather = limits.gather == Gather::Auto && limits.gathers(access, lanes);
        gather && access.comps == 1 && limits.slow_gathers && self.few_spread
    }
}

/// True if a function has few loads of lanes that are not side by side, so that they may take more code.
fn few_spread(f: &Function) -> bool {
    at_most(f, MOST_SPREAD, |i| match &f.inst(i).op {
        Op::Load(access) => {
            let stride = f.shapes.get(&i).and_then(|s| s.addr).map(|a| a.stride);
            let strided = stride.is_some_and(|s| s == 0 || s == i64::from(access.elem.bytes()));
            access.comps == 1 && !strided && !f.ty(f.inst(i).args[1]).is_scalar()
        }
        _ => false,
    })
}
