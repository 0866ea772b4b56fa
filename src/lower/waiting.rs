//! Lanes that wait at joins.
//!
//! Usually each join has a mask of the lanes that wait there, which passes can reason about. Where lanes may wait at many joins at once, every
//! edge would carry all of these masks. An example is a loop that the kernel's compiler unrolled, with an exit in each iteration. There each
//! lane has a number instead, that of the join at which it waits. A lane waits at one join at most.

use super::Lowerer;
use super::variables::Var;
use crate::ssa::*;

/// Where lanes of a subroutine may wait at more joins than this at once, they have numbers.
const MANY_JOINS: usize = 24;

/// Which lanes wait at a join.
#[derive(Clone, Copy)]
pub(super) enum Waiting {
    /// A mask of its own.
    Mask(Var),
    /// The lanes whose number this is. Those that wait nowhere have 0.
    Number(Var, u64),
}

impl Waiting {
    /// The variable, which other joins may share.
    pub(super) fn var(self) -> Var {
        match self {
            Waiting::Mask(var) | Waiting::Number(var, _) => var,
        }
    }
}

impl Lowerer<'_> {
    /// Variables for the lanes that wait at each block.
    pub(super) fn plan_waiting(&mut self) -> Vec<Option<Waiting>> {
        let mut waiting = vec![None; self.flow.blocks.len()];
        for sub in 0..self.flow.subs.len() {
            let range = self.flow.subs[sub];
            let many = self.flow.most_waited_at(range, &self.kernel.module().insts) > MANY_JOINS;
            let blocks = &self.flow.blocks[range.first..range.end];
            let lane = match blocks.iter().filter(|b| b.join).count() {
                0..=0xff => Lane::I8,
                0x100..=0xffff => Lane::I16,
                _ => Lane::I32,
            };
            let numbers = (many && self.simd > 1).then(|| self.b.var(Ty::vector(lane, self.simd)));
            let mut number = 0;
            for (b, block) in (range.first..).zip(blocks).filter(|(_, block)| block.join) {
                number += 1;
                waiting[b] = Some(match numbers {
                    Some(var) if !block.repeats => Waiting::Number(var, number),
                    _ => Waiting::Mask(self.b.var(Ty::mask(self.simd))),
                });
            }
        }
        waiting
    }

    /// Lanes that wait at join `t`; `None` for a block that is none.
    pub(super) fn waiting_at(&mut self, t: usize) -> Option<Value> {
        let waiting = self.ctl.wait[t]?;
        let value = self.b.read(waiting.var());
        Some(match waiting {
            Waiting::Mask(_) => value,
            Waiting::Number(_, number) => {
                let number = self.number(value, number);
                self.b.icmp(ICond::Eq, value, number)
            }
        })
    }

    /// The lanes `waiting`, all that wait at join `t`, wait no longer.
    pub(super) fn release(&mut self, t: usize, waiting: Value) {
        match self.ctl.wait[t] {
            None => {}
            Some(Waiting::Mask(var)) => {
                let none = self.empty_mask();
                self.b.write(var, none);
            }
            Some(Waiting::Number(var, _)) => self.renumber(var, waiting, 0),
        }
    }

    /// `lanes`, which are active, wait at join `t` from now on.
    pub(super) fn add_waiting(&mut self, t: usize, lanes: Value) {
        match self.ctl.wait[t] {
            None => {}
            Some(Waiting::Mask(var)) => {
                let old = self.b.read(var);
                let new = self.b.bin(BinOp::Or, old, lanes);
                self.b.write(var, new);
            }
            Some(Waiting::Number(var, number)) => self.renumber(var, lanes, number),
        }
    }

    fn renumber(&mut self, var: Var, lanes: Value, number: u64) {
        let old = self.b.read(var);
        let number = self.number(old, number);
        let new = self.b.select(lanes, number, old);
        self.b.write(var, new);
    }

    /// A number in each lane, of the type of `like`.
    fn number(&mut self, like: Value, number: u64) -> Value {
        let ty = self.b.ty(like);
        self.b
            .vec_const(ty.lane, vec![number; usize::from(ty.lanes)])
    }
}
