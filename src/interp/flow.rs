//! Branches, calls and returns: which lanes take them (docs/visa.md, "Control flow"). What then happens is in [`super::control`];
//! stack calls are in [`super::calls`].

use super::control::Entry;
use super::error::Halt;
use super::lanes::{bit, first, up};
use super::machine::Machine;
use crate::isa::Opcode;
use crate::module::*;

/// Where labels and subroutines are.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// First instruction of each subroutine, the kernel's body first.
    starts: Vec<usize>,
    /// Instruction of each label.
    labels: Vec<usize>,
    /// Number of instructions.
    end: usize,
}

impl Places {
    /// Finds them.
    pub(super) fn new(module: &Module) -> Places {
        let mut starts = vec![0];
        let end = module.insts.len();
        let label = |l: &Label| l.def.map_or(end, |at| at as usize);
        let functions = module.functions.first();
        let entry = functions.and_then(|f| module.labels.get(f.entry.0 as usize));
        let linked = entry.map_or(end, label);
        let insts = module.insts.iter().enumerate();
        let subroutines = insts.filter(|(_, i)| i.op == Opcode::Subroutine);
        // The first one is the kernel's, whatever precedes it; unless the kernel has none.
        let mut subroutines = subroutines.map(|(at, _)| at).peekable();
        subroutines.next_if(|&at| at < linked);
        starts.extend(subroutines);
        Places {
            starts,
            labels: module.labels.iter().map(label).collect(),
            end,
        }
    }

    /// Instruction of a label.
    pub(super) fn label(&self, l: LabelId) -> usize {
        self.labels.get(l.0 as usize).copied().unwrap_or(self.end)
    }

    /// Number of subroutines, with the kernel's body.
    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    /// Subroutine that an instruction belongs to; 0 is the kernel's body.
    pub(super) fn subroutine(&self, at: usize) -> usize {
        self.starts
            .partition_point(|&start| start <= at)
            .saturating_sub(1)
    }

    /// True when a subroutine (or the kernel) starts with a label: `.function` and the labels right after it.
    fn entry(&self, module: &Module, at: usize) -> bool {
        let start = self.starts.get(self.subroutine(at)).copied().unwrap_or(0);
        let before = module.insts.get(start..at);
        before.is_some_and(|b| b.iter().all(|i| matches!(i.body, Body::Label(_))))
    }
}

impl Machine<'_, '_, '_> {
    /// Lanes of the thread for which a branch is taken. A branch decides lane by lane if it has several channels and
    /// a predicate that is not reduced, else for all active lanes together.
    pub(super) fn taken(&self, inst: &Inst) -> Result<u32, Halt> {
        let active = self.t.control.active;
        let lane = inst.exec.mask.first_lane();
        match inst.pred {
            None => Ok(active),
            Some(p) if inst.exec.lanes() > 1 && p.control == PredControl::Lanes => {
                Ok(active & up(self.enabled(inst)?, lane))
            }
            Some(p) => Ok(if self.uniform(p, lane)? { active } else { 0 }),
        }
    }

    /// A predicate as one decision; of a predicate that is not reduced, the bit of one lane (the last, if it has
    /// fewer bits).
    fn uniform(&self, p: Predicate, lane: u32) -> Result<bool, Halt> {
        let (value, width) = self.pred(p.var)?;
        let yes = match p.control {
            PredControl::Any => value != 0,
            PredControl::All => value == first(width),
            PredControl::Lanes => bit(value, lane.min(width.saturating_sub(1)) as usize),
        };
        Ok(yes != p.inverted)
    }

    /// Target of a branch, which is in the same subroutine.
    fn target(&self, l: LabelId) -> Result<usize, Halt> {
        let places = &self.program.places;
        let to = places.label(l);
        if places.subroutine(to) == places.subroutine(self.at) {
            Ok(to)
        } else {
            Halt::malformed("branch into another subroutine")
        }
    }

    /// `goto`, `jmp` and `call`.
    pub(super) fn branch(&mut self, inst: &Inst, l: LabelId) -> Result<(), Halt> {
        match inst.op {
            Opcode::Goto => {
                let (to, taken) = (self.target(l)?, self.taken(inst)?);
                self.t.control.send(taken, to);
            }
            Opcode::Jmp => {
                let to = self.target(l)?;
                // The first element of the predicate decides.
                let jumps = match inst.pred {
                    Some(p) => self.uniform(p, 0)?,
                    None => true,
                };
                if jumps {
                    self.t.control.send(u32::MAX, to);
                }
            }
            Opcode::Call => {
                let to = self.program.places.label(l);
                if !self.program.places.entry(self.program.kernel.module(), to) {
                    return Halt::malformed("call of a label that is no subroutine");
                }
                let (taken, back) = (self.taken(inst)?, self.t.control.pc);
                if taken != 0 && self.may_call(inst, to, false)? {
                    let entry = Entry {
                        subroutine: self.program.places.subroutine(to),
                        at: to,
                        ..Entry::default()
                    };
                    self.t.control.call(taken, entry, back);
                }
            }
            _ => return Halt::unsupported("this kind of branch"),
        }
        Ok(())
    }

    /// `ret` and `fret`.
    pub(super) fn ret(&mut self, inst: &Inst) -> Result<(), Halt> {
        let taken = self.taken(inst)?;
        self.t.control.leave(taken);
        Ok(())
    }

    /// `switchjmp`: an index that names no target takes the first one.
    pub(super) fn switch(&mut self, index: &Src, targets: &[LabelId]) -> Result<(), Halt> {
        let index = self.scalar(index)? as u32;
        let target = targets.get(index as usize).or(targets.first());
        let Some(&l) = target else {
            return Halt::malformed("no targets");
        };
        let to = self.target(l)?;
        self.t.control.send(u32::MAX, to);
        Ok(())
    }
}
