//! How a load or store is done that shares no bounds test with others.

use super::AtHand;
use super::consts;
use super::limits::{Limits, MaskedStores, Speculation};
use super::local_shape::{Sum, local_shape};
use super::scaled::{POINTER_SHIFT, Scaled};
use super::strided::{Strided, StridedKind};
use crate::backend::Gather;
use crate::ssa::remark::{self, BoundsTest, Way};
use crate::ssa::shape::Affine;
use crate::ssa::{Function, Inst, MemAccess, Op, Space, Value};

/// Most accesses of a function that go inline when nothing is said. Such code is several times as long as a call.
const MOST_INLINE: usize = 8;

/// Most accesses of a function at any addresses with which any of them is a loop over the lanes.
const MOST_ROLLED: usize = 64;

/// Most components of a lane that go inline.
const MOST_COMPONENTS: u8 = 4;

/// Most lanes of a function's accesses that are done speculatively: each costs a few more instructions.
const MOST_SPECULATIVE: usize = 1024;

/// Lanes of 32 bits in a vector of 128; what fills up vectors would have to be ignored.
const WHOLE: u16 = 4;

/// Why addresses are taken to be affine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend) enum By {
    /// The function's table says so.
    Table,
    /// Local ids are tested once a thread, or it is plain.
    Local(Box<Sum>),
    /// They probably are, and are tested. In device memory, by the numbers that they are made of, where that is how it is tested.
    Speculation(Option<Scaled>),
}

/// The code for lanes at any addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend) enum Any {
    /// There is one lane.
    Scalar,
    /// The processor's gather or scatter.
    Gather,
    /// A gather or scatter of two components of 4 bytes at a time: it takes as long as it has lanes, however wide these are. Where the end
    /// of the region is between two of them, each is gathered by itself, and a store is a call of the runtime.
    GatherPairs,
    /// One of these, in device memory, by a scaled 32-bit number for each lane: bounds are tested on the numbers, twice as many at a
    /// time as addresses.
    GatherScaled {
        /// What addresses are made of.
        scaled: Scaled,
        /// As [`Any::GatherPairs`].
        pairs: bool,
    },
    /// Inline, lane by lane; `once` first asks whether all lanes are inside.
    Inline {
        /// See there.
        once: bool,
    },
    /// A store, inline, in a loop over the lanes that are enabled and inside; by what addresses are made of, as [`Any::GatherScaled`].
    Loop(Option<Scaled>),
    /// Inline, in a loop over the lanes, if a test finds all enabled ones wholly inside; else a call of the runtime that costs the usual
    /// path nothing.
    Rolled,
    /// A call of the runtime.
    Message,
    /// The same where a test failed, which should not cost the usual path anything.
    RareMessage,
}

impl Any {
    /// For remarks.
    pub(super) const fn way(self, lanes: u16) -> (Way, BoundsTest) {
        match self {
            Any::Gather | Any::GatherPairs | Any::GatherScaled { .. } => {
                (Way::Gather, BoundsTest::Lanes)
            }
            Any::Inline { once: false } | Any::Loop(_) => (Way::Lanes(lanes), BoundsTest::Lanes),
            Any::Inline { once: true } => (Way::Lanes(lanes), BoundsTest::AllLanes),
            Any::Rolled => (Way::Lanes(lanes), BoundsTest::Tested),
            Any::Scalar | Any::Message | Any::RareMessage => remark::any_way(lanes),
        }
    }
}

/// Which lanes a store of affine addresses writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend) enum Stored {
    /// All: the mask is known to be full.
    All,
    /// All, as a test says first: a scalar, or a mask that must be full.
    Tested(Value),
    /// Those that are enabled, whatever the mask.
    Enabled,
}

/// An access whose addresses are affine, or are tested for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend) struct AffineAccess {
    /// Its bytes.
    pub strided: Strided,
    /// Why addresses are affine.
    pub by: By,
    /// All bytes are surely inside.
    pub inside: bool,
    /// Lanes that are written; all of a load.
    pub stored: Stored,
    /// What is done where the test of addresses and bounds fails.
    pub other: Any,
}

impl AffineAccess {
    /// True if nothing is tested.
    pub(in crate::backend) const fn is_certain(&self) -> bool {
        self.inside && matches!(self.stored, Stored::All)
    }

    /// True if nothing says that addresses are affine.
    pub(in crate::backend) const fn is_speculative(&self) -> bool {
        matches!(self.by, By::Speculation(_))
    }

    /// How it is kept inside.
    pub(super) const fn bounds(&self, limits: &Limits) -> BoundsTest {
        match &self.by {
            _ if self.is_certain() => BoundsTest::Removed,
            By::Speculation(_) if matches!(limits.speculation, Speculation::Masked) => {
                BoundsTest::Lanes
            }
            _ => BoundsTest::Tested,
        }
    }
}

/// How an access is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend) enum How {
    /// Its addresses are affine.
    Affine(Box<AffineAccess>),
    /// They may be any.
    Any(Any),
}

/// Decides how accesses of a function are done that share no test.
pub(super) struct Decider<'a> {
    f: &'a Function,
    limits: &'a Limits,
    few_rolled: bool,
    few_speculative: bool,
}

impl<'a> Decider<'a> {
    pub(super) fn new(f: &'a Function, limits: &'a Limits) -> Decider<'a> {
        Decider {
            f,
            limits,
            few_rolled: limits.rolls && few_rolled(f),
            few_speculative: few_speculative(f),
        }
    }

    /// How a load or store is done; `full` says of its mask that it has all lanes.
    pub(super) fn how(&self, inst: Inst, at_hand: AtHand, full: bool) -> Option<How> {
        let (f, limits) = (self.f, self.limits);
        let any = self.any(inst)?;
        let data = f.inst(inst);
        let (access, load) = lane_wise(&data.op)?;
        let lanes = f.ty(data.args[1]).lanes;
        let by_itself = in_pairs(any, access, load);
        let by_itself = How::Any(self.scaled(inst, by_itself, at_hand));
        if lanes == 1 {
            return Some(by_itself);
        }
        let whole_rows = load && limits.whole_rows;
        let (strided, by, other) = match self.affine(inst, at_hand) {
            Some((stride, by)) => {
                let strided = Strided::new(access, lanes, stride, whole_rows);
                let run = |s| limits.as_run(s, access, lanes);
                let strided = strided.map(|s| if load { run(s) } else { s });
                let strided = strided.filter(|s| self.fits(access, lanes, load, s.kind));
                (strided, by, limits.other_way(any))
            }
            None => match self.speculation(inst, access, at_hand) {
                Some(scaled) => {
                    let stride = access.elem.bytes().into();
                    let strided = Strided::new(access, lanes, stride, whole_rows);
                    (strided, By::Speculation(scaled), any)
                }
                None => return Some(by_itself),
            },
        };
        let Some(strided) = strided else {
            return Some(by_itself);
        };
        let stored = match (&by, load || full) {
            (_, true) => Stored::All,
            (By::Speculation(_), _) => Stored::Enabled,
            _ => self.stored(inst, access, strided.kind),
        };
        Some(How::Affine(Box::new(AffineAccess {
            strided,
            inside: self.inside(inst, access.space, &by, strided),
            by,
            stored,
            other,
        })))
    }

    /// Lanes that a store with a test of its own writes, if its mask is not known.
    fn stored(&self, inst: Inst, access: MemAccess, kind: StridedKind) -> Stored {
        let (f, limits) = (self.f, self.limits);
        let args = &f.inst(inst).args;
        let all = f.shapes.get(&inst).and_then(|s| s.mask_all);
        let enabled = match limits.masked_stores {
            MaskedStores::Branch => true,
            _ => kind == StridedKind::Packed && limits.stores_masked(access, f.ty(args[1]).lanes),
        };
        match all {
            Some(all) => Stored::Tested(all),
            None if enabled => Stored::Enabled,
            None => Stored::Tested(args[0]),
        }
    }

    /// True for accesses that read their addresses only where a test failed, whatever is known of them.
    pub(super) fn is_by_base(&self, inst: Inst) -> bool {
        let how = self.how(inst, &|_| true, false);
        matches!(how, Some(How::Affine(alone)) if matches!(alone.by, By::Table))
    }

    /// How the addresses of an instruction are spaced, and why.
    pub(super) fn affine(&self, inst: Inst, at_hand: AtHand) -> Option<(i64, By)> {
        let f = self.f;
        if let Some(affine) = f.shapes.get(&inst).and_then(|s| s.addr) {
            return Some((affine.stride, By::Table));
        }
        if !self.limits.tests_local_ids {
            return None;
        }
        let sum = local_shape(f, f.inst(inst).args[1], at_hand)?;
        Some((sum.stride, By::Local(Box::new(sum))))
    }

    fn inside(&self, inst: Inst, space: Space, by: &By, strided: Strided) -> bool {
        let f = self.f;
        match by {
            By::Table => {
                let affine = f.shapes.get(&inst).and_then(|s| s.addr);
                affine.is_some_and(|affine| surely_inside(f, space, affine, strided))
            }
            By::Local(sum) => {
                let known = sum.known(f.ty(f.inst(inst).args[1]).lane);
                let known = known.filter(|_| space.data() == Space::Regs && !sum.is_tested());
                known.is_some_and(|at| strided.lies_in(at, f.regs_bytes))
            }
            By::Speculation(_) => false,
        }
    }

    /// True where such an access is better done as one of affine addresses than as one of any.
    fn fits(&self, access: MemAccess, lanes: u16, load: bool, kind: StridedKind) -> bool {
        match (kind, load) {
            (StridedKind::Packed, _)
            | (StridedKind::Same | StridedKind::Run | StridedKind::Overlap, true) => true,
            (StridedKind::Same | StridedKind::Run | StridedKind::Overlap, false) => false,
            (StridedKind::Spread, true) => !self.limits.gathers(access, lanes),
            (StridedKind::Spread, false) => !self.limits.scatters(access, lanes),
        }
    }

    /// The code for a load or store of which nothing is known about addresses.
    pub(super) fn any(&self, inst: Inst) -> Option<Any> {
        let (f, limits) = (self.f, self.limits);
        let data = f.inst(inst);
        let (access, load) = lane_wise(&data.op)?;
        let lanes = f.ty(data.args[1]).lanes;
        let gathered = match load {
            true => limits.gathers(access, lanes) || limits.gathers_narrow(access, lanes),
            false => limits.scatters(access, lanes),
        };
        Some(if lanes == 1 {
            Any::Scalar
        } else if gathered {
            Any::Gather
        } else if !load && limits.scatters_pairs(access, lanes) {
            Any::GatherPairs
        } else if limits.goes_inline(access, lanes) {
            // That pays where other lanes are faults, which are rare; under masks, which then need not be mixed with the test; and in
            // device memory, where the exact test of a lane is longer.
            let pays = access.space.is_flat()
                || limits.records_faults(access.space)
                || !consts::is_full(f, data.args[0]);
            let once = limits.asks_once && limits.gather == Gather::Select && pays;
            Any::Inline { once }
        } else if !load && limits.loops_over_stores(access, lanes) {
            Any::Loop(None)
        } else if self.is_rolled(access, lanes) {
            Any::Rolled
        } else {
            Any::Message
        })
    }

    /// The same by scaled numbers, if addresses are made of such.
    pub(super) fn scaled(&self, inst: Inst, any: Any, at_hand: AtHand) -> Any {
        let pairs = match any {
            Any::Gather => false,
            Any::GatherPairs => true,
            Any::Loop(_) => false,
            _ => return any,
        };
        let data = self.f.inst(inst);
        let access = lane_wise(&data.op).map(|(access, _)| access);
        let scaled = access.and_then(|access| self.scaled_alone(access, data.args[1], at_hand));
        match (any, scaled) {
            (_, None) => any,
            (Any::Loop(_), scaled) => Any::Loop(scaled),
            (_, Some(scaled)) => Any::GatherScaled { scaled, pairs },
        }
    }

    /// The scaled numbers by which an access is tested and done that shares no test with others.
    fn scaled_alone(&self, access: MemAccess, addresses: Value, at_hand: AtHand) -> Option<Scaled> {
        if access.space != Space::Flat {
            return None;
        }
        let scaled = Scaled::of(self.f, addresses, POINTER_SHIFT, at_hand)?;
        // Each distance has a range of numbers of its own, and those of many accesses do not stay in registers. That costs more than a sum
        // for each lane, but not more than what finds the words of narrow elements.
        (scaled.distance == 0 || access.elem.bytes() < 4).then_some(scaled)
    }

    fn is_rolled(&self, access: MemAccess, lanes: u16) -> bool {
        let wanted = self.few_rolled && self.limits.gather == Gather::Select;
        // Marks of a check are read and written as the data is, but are rare.
        let moved = access.comps <= MOST_COMPONENTS && !access.space.is_marks();
        wanted && moved && matches!(lanes, 8 | 16 | 32)
    }

    /// True if lanes that are found side by side are then affine, and not still enabled or disabled each.
    pub(super) const fn speculates_by_base(&self) -> bool {
        matches!(self.limits.speculation, Speculation::Affine)
    }

    /// Whether lanes that are probably side by side are tested for that, and what the test is about in device memory, where the code
    /// generator tests numbers and not addresses.
    pub(super) fn speculation(
        &self,
        inst: Inst,
        access: MemAccess,
        at_hand: AtHand,
    ) -> Option<Option<Scaled>> {
        let (f, limits) = (self.f, self.limits);
        let addresses = f.inst(inst).args[1];
        let lanes = f.ty(addresses).lanes;
        let bytes = access.elem.bytes();
        let probable = f.shapes.get(&inst).and_then(|s| s.speculative);
        // Next to a loop over lanes a comparison costs nothing.
        let loops = bytes < 4 && matches!(self.any(inst), Some(Any::Loop(_)));
        let stride = probable.or_else(|| loops.then_some(bytes.into()))?;
        if stride != i64::from(bytes) || access.comps != 1 {
            return None;
        }
        match limits.speculation {
            Speculation::Affine if !self.few_speculative || !lanes.is_multiple_of(WHOLE) => None,
            Speculation::Affine if access.space.is_flat() => {
                let scaled = Scaled::of(f, addresses, POINTER_SHIFT, at_hand)?;
                (1 << scaled.shift == bytes).then_some(Some(scaled))
            }
            Speculation::Affine => Some(None),
            Speculation::Masked => {
                // Without it, elements of one or two bytes are a call, or more than a gather.
                let narrow = bytes < 4 && !limits.records_faults(access.space);
                let pays = narrow || limits.gathers(access, lanes);
                if !(limits.stores_masked(access, lanes) && pays) {
                    return None;
                }
                let scaled = self.scaled_alone(access, addresses, at_hand);
                Some(scaled.filter(|scaled| 1 << scaled.shift == bytes))
            }
        }
    }
}

/// Gathers of pairs where there are any. They are twice the code, which does not pay where another test failed.
const fn in_pairs(any: Any, access: MemAccess, load: bool) -> Any {
    match (any, access.comps) {
        (Any::Gather, 2 | 4) if load && access.elem.bytes() == 4 => Any::GatherPairs,
        _ => any,
    }
}

/// What a load or store of lanes accesses, and whether it is a load.
pub(super) const fn lane_wise(op: &Op) -> Option<(MemAccess, bool)> {
    match op {
        Op::Load(access) => Some((*access, true)),
        Op::Store(access) => Some((*access, false)),
        _ => None,
    }
}

/// True for addresses in register storage that are known while compiling, and inside.
pub(super) fn surely_inside(f: &Function, space: Space, affine: Affine, strided: Strided) -> bool {
    let known = consts::scalar(f, affine.base);
    let known = known.filter(|_| space.data() == Space::Regs && affine.guard.is_none());
    known.is_some_and(|at| strided.lies_in(at, f.regs_bytes))
}

/// What [`Gather::Auto`] is for single elements of a function on a code generator without gathers, and whether that is because they
/// are many.
pub(in crate::backend) fn auto_gather(f: &Function, wanted: Gather) -> (Gather, bool) {
    let arbitrary = |i: Inst| {
        lane_wise(&f.inst(i).op).is_some_and(|(access, _)| access.comps == 1 && is_unshaped(f, i))
    };
    match wanted {
        Gather::Auto => (Gather::Select, !at_most(f, MOST_INLINE, arbitrary)),
        wanted => (wanted, false),
    }
}

/// True if a function has so few accesses at any addresses that all of them may go inline.
fn few_rolled(f: &Function) -> bool {
    at_most(f, MOST_ROLLED, |i| {
        lane_wise(&f.inst(i).op).is_some() && is_unshaped(f, i)
    })
}

/// True if a function has few enough accesses for speculation.
fn few_speculative(f: &Function) -> bool {
    let accesses = f
        .shapes
        .iter()
        // A check in front of an access does not count again.
        .filter(|&(&i, _)| !matches!(f.inst(i).op, Op::CheckBuffer(_)))
        .filter(|(_, shape)| shape.speculative.is_some());
    let lanes = accesses.map(|(&i, _)| usize::from(f.ty(f.inst(i).args[1]).lanes));
    lanes.sum::<usize>() <= MOST_SPECULATIVE
}

fn is_unshaped(f: &Function, i: Inst) -> bool {
    let shaped = f.shapes.get(&i).is_some_and(|s| s.addr.is_some());
    !shaped && !f.ty(f.inst(i).args[1]).is_scalar()
}

/// True if at most a number of instructions of a function are such.
pub(super) fn at_most(f: &Function, most: usize, wanted: impl Fn(Inst) -> bool) -> bool {
    let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    insts.filter(|&&i| wanted(i)).take(most + 1).count() <= most
}
