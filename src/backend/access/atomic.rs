//! How an atomic of lanes is done.

use super::how::at_most;
use super::limits::Limits;
use crate::backend::uses;
use crate::isa::AtomicOp;
use crate::ssa::remark::{self, BoundsTest, Way};
use crate::ssa::{AtomicAccess, Function, Inst, MemAccess, Op, Space};

/// Most atomics of vectors in a function that have straight code for all lanes beside their loop.
const MOST_STRAIGHT: usize = 8;

/// The code for the lanes of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend) enum AtomicWay {
    /// A call of the runtime.
    Message,
    /// There is one lane.
    Scalar,
    /// A loop over the lanes that are enabled and inside.
    Loop,
    /// Straight code for when all lanes are enabled and inside, and the loop for when not.
    Straight,
}

/// How an atomic is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend) struct AtomicHow {
    /// Its lanes.
    pub way: AtomicWay,
    /// Each element is changed by an instruction that is atomic between threads of the host. Otherwise by a load and a store: nothing
    /// else reaches the memory before this thread waits or ends, as threads of a group take turns on one thread of the host.
    pub locked: bool,
    /// Old values are read.
    pub read: bool,
    /// A gather first finds the lanes that change something: a minimum or maximum of which nothing reads old values.
    pub gathered: bool,
}

impl AtomicHow {
    /// For remarks.
    pub(super) const fn way(self, lanes: u16) -> (Way, BoundsTest) {
        match self.way {
            AtomicWay::Message => (Way::Runtime(lanes), BoundsTest::Runtime),
            AtomicWay::Scalar => remark::any_way(1),
            AtomicWay::Loop | AtomicWay::Straight => (Way::Lanes(lanes), BoundsTest::Lanes),
        }
    }
}

/// True for what mostly leaves an element of a long-lived minimum or maximum as it is. A load says so, and costs a tenth of a locked
/// instruction; without a change, that load is all that is seen of a relaxed atomic.
pub(in crate::backend) const fn asks_first(op: AtomicOp) -> bool {
    matches!(
        op,
        AtomicOp::Umin | AtomicOp::Umax | AtomicOp::Smin | AtomicOp::Smax
    )
}

/// Decides how the atomics of a function are done.
pub(super) struct Atomics<'a> {
    f: &'a Function,
    limits: &'a Limits,
    /// They are few, so that they may take more code.
    few: bool,
    /// How often each value is read; empty in functions without atomics.
    uses: Vec<u32>,
}

impl<'a> Atomics<'a> {
    pub(super) fn new(f: &'a Function, limits: &'a Limits) -> Atomics<'a> {
        let is_atomic = |i: Inst| matches!(f.inst(i).op, Op::Atomic(_));
        let is_vector = |i: Inst| is_atomic(i) && !f.ty(f.inst(i).args[1]).is_scalar();
        Atomics {
            f,
            limits,
            few: at_most(f, MOST_STRAIGHT, is_vector),
            uses: match at_most(f, 0, is_atomic) {
                true => Vec::new(),
                false => uses::counts(f),
            },
        }
    }

    /// How an instruction is done, if it is an atomic.
    pub(super) fn how(&self, inst: Inst) -> Option<AtomicHow> {
        let data = self.f.inst(inst);
        let Op::Atomic(access) = data.op else {
            return None;
        };
        let lanes = self.f.ty(data.args[1]).lanes;
        let exchange = self.locked(access);
        let locked = exchange.unwrap_or(false);
        let way = match (exchange, lanes) {
            (None, _) => AtomicWay::Message,
            (_, 1) => AtomicWay::Scalar,
            // In the loop, locked instructions take up to 1.07 times as long. Those that ask first branch in each lane, which would be long.
            (Some(locked), 8 | 16 | 32) if self.few && !(locked && asks_first(access.op)) => {
                AtomicWay::Straight
            }
            _ => AtomicWay::Loop,
        };
        let read = |&v: &crate::ssa::Value| self.uses.get(v.0 as usize).is_none_or(|&n| n > 0);
        let read = data.results.first().is_some_and(read);
        let element = MemAccess {
            space: access.space,
            elem: access.elem,
            comps: 1,
            site: access.site,
        };
        Some(AtomicHow {
            way,
            locked,
            read,
            // An old value that is read may be what a lane before left there.
            gathered: way == AtomicWay::Loop
                && locked
                && !read
                && asks_first(access.op)
                && self.limits.gathers(element, lanes),
        })
    }

    /// Whether elements need an instruction that is atomic between threads of the host; `None` where no instructions do it.
    const fn locked(&self, access: AtomicAccess) -> Option<bool> {
        match access.space {
            _ if access.op.is_float() || matches!(access.op, AtomicOp::Load) => None,
            Space::Slm | Space::Scratch | Space::Regs => Some(false),
            Space::Surface | Space::Flat if self.limits.unaligned_atomics => Some(true),
            _ => None,
        }
    }
}
