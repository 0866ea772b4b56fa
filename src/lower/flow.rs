//! The control-flow plan: basic blocks of the vISA program and where lanes awaiting reconvergence are picked up.
//!
//! Blocks keep textual order, which is what reconvergence is defined by (docs/visa.md, "Control flow"): a lane that
//! branches away waits at its target, and control continues at the textually earliest block where a
//! lane waits. Such blocks are *joins*. The plan is static; masks are computed by `control`.

use std::collections::{BTreeMap, BTreeSet};

use crate::isa::Opcode;
use crate::limits::MAX_BLOCKS;
use crate::module::{
    Body, IndirectRegion, Inst, LabelId, LinkedFunction, Module, PredControl, Src,
};
use crate::valid::ValidKernel;

/// A basic block of the vISA program.
#[derive(Clone, Debug)]
pub(super) struct FlowBlock {
    /// First instruction.
    pub first: usize,
    /// One past the last instruction.
    pub end: usize,
    /// Subroutine it belongs to; 0 is the kernel body.
    pub func: usize,
    /// Lanes may wait here.
    pub join: bool,
    /// The earliest block that control may be in while lanes wait here; the block itself where none do.
    pub(super) waits_since: usize,
    /// Arrivals may find no lane here, so that the mask must be tested.
    pub check: bool,
    /// Predecessors may be met later in the text.
    pub late_preds: bool,
    /// A call with an address for each lane, by itself: lanes wait here until those of other addresses are back.
    pub repeats: bool,
}

/// A subroutine: a range of blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubRange {
    /// First block.
    pub first: usize,
    /// One past the last block.
    pub end: usize,
}

/// The plan.
#[derive(Debug)]
pub(super) struct Flow {
    /// Blocks in textual order.
    pub blocks: Vec<FlowBlock>,
    /// Subroutines, the kernel body first.
    pub subs: Vec<SubRange>,
    label_block: Vec<usize>,
    /// For each block, see [`Flow::waits_at`].
    waits: Vec<Vec<usize>>,
    /// Call sites: `(calling block, called subroutine)`.
    pub calls: Vec<(usize, usize)>,
    circles: BTreeSet<usize>,
}

/// How a branch decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// All active lanes together.
    Uniform,
    /// Lane by lane.
    Lanes,
}

/// How a `goto` decides: lane by lane only if it covers several channels under a lane predicate.
pub(super) fn decision(inst: &Inst) -> Decision {
    match inst.pred {
        Some(p) if inst.exec.lanes() > 1 && p.control == PredControl::Lanes => Decision::Lanes,
        _ => Decision::Uniform,
    }
}

/// True for calls that some active lanes may not make: predicated ones, and stack calls of a part of the lanes.
pub(super) fn leaves_lanes(inst: &Inst, simd: u32) -> bool {
    let n = inst.exec.lanes();
    match inst.op {
        Opcode::Call => inst.pred.is_some(),
        Opcode::Fcall | Opcode::Ifcall => inst.pred.is_some() || (n > 1 && n < simd),
        _ => false,
    }
}

/// True for calls whose lanes may have different addresses.
fn repeats(inst: &Inst) -> bool {
    match &inst.body {
        Body::Ifcall { addr, .. } => !same_in_all(addr, inst.exec.lanes()),
        _ => false,
    }
}

/// True when every channel of a source reads the same element.
fn same_in_all(src: &Src, lanes: u32) -> bool {
    match src {
        Src::General { region, .. }
        | Src::Indirect {
            region: IndirectRegion::Single(region),
            ..
        } => (1..lanes).all(|l| region.element(l) == region.element(0)),
        Src::Imm { .. } => true,
        _ => lanes == 1,
    }
}

fn ends_block(inst: &Inst) -> bool {
    matches!(
        inst.body,
        Body::Branch(_)
            | Body::Ret
            | Body::SwitchJmp { .. }
            | Body::Fcall { .. }
            | Body::Ifcall { .. }
    )
}

impl Flow {
    /// Plans a kernel; `None` when it has more than [`MAX_BLOCKS`] blocks.
    pub(super) fn new(kernel: &ValidKernel) -> Option<Flow> {
        let module = kernel.module();
        let insts = &module.insts;
        let mut blocks: Vec<FlowBlock> = Vec::new();
        let mut subs: Vec<SubRange> = Vec::new();
        let mut label_block = vec![0; module.labels.len()];
        let mut start = true;
        let starts = module.subroutine_starts();
        for (i, inst) in insts.iter().enumerate() {
            let label = if let Body::Label(l) = inst.body {
                Some(l)
            } else {
                None
            };
            let new_sub = !subs.is_empty() && starts.binary_search(&i).is_ok();
            // `.function` and the label after it open the same block.
            let opens_sub = inst.op == Opcode::Subroutine;
            let repeats = repeats(inst);
            let continues = label.is_some()
                && blocks
                    .last()
                    .is_some_and(|b| (b.first..i).all(|k| matches!(insts[k].body, Body::Label(_))));
            if start || opens_sub || repeats || (label.is_some() && !continues) {
                if subs.is_empty() || new_sub {
                    if let Some(s) = subs.last_mut() {
                        s.end = blocks.len();
                    }
                    subs.push(SubRange {
                        first: blocks.len(),
                        end: blocks.len(),
                    });
                }
                if let Some(b) = blocks.last_mut() {
                    b.end = i;
                }
                blocks.push(FlowBlock {
                    first: i,
                    end: insts.len(),
                    func: subs.len() - 1,
                    join: repeats,
                    waits_since: blocks.len(),
                    check: false,
                    late_preds: opens_sub || repeats,
                    repeats,
                });
                start = false;
            }
            if let Some(l) = label
                && let Some(slot) = label_block.get_mut(l.0 as usize)
            {
                *slot = blocks.len() - 1;
            }
            if ends_block(inst) {
                start = true;
            }
        }
        if let Some(s) = subs.last_mut() {
            s.end = blocks.len();
        }
        let mut flow = Flow {
            waits: vec![Vec::new(); blocks.len()],
            blocks,
            subs,
            label_block,
            calls: Vec::new(),
            circles: BTreeSet::new(),
        };
        if flow.blocks.len() > MAX_BLOCKS {
            return None;
        }
        flow.find_calls(module);
        flow.circles = flow.find_circles();
        flow.find_joins(insts, kernel.simd());
        flow.find_checks(insts);
        Some(flow)
    }

    /// Block of a label.
    pub(super) fn target(&self, l: LabelId) -> usize {
        self.label_block.get(l.0 as usize).copied().unwrap_or(0)
    }

    /// Last instruction of a block, if it decides where control goes.
    pub(super) fn terminator<'a>(&self, b: usize, insts: &'a [Inst]) -> Option<&'a Inst> {
        let block = &self.blocks[b];
        insts
            .get(block.first..block.end)?
            .last()
            .filter(|i| ends_block(i))
    }

    /// First join after a block in its subroutine at which lanes may wait while control is in the block, or from its end on.
    pub(super) fn next_join(&self, b: usize) -> Option<usize> {
        let end = self.subs[self.blocks[b].func].end;
        (b + 1..end).find(|&j| self.blocks[j].waits_since <= b)
    }

    /// The textually next block in the same subroutine.
    pub(super) fn next(&self, b: usize) -> Option<usize> {
        (b + 1 < self.subs[self.blocks[b].func].end).then_some(b + 1)
    }

    /// Subroutine that starts at a block.
    pub(super) fn sub_at(&self, block: usize) -> Option<usize> {
        self.subs.binary_search_by_key(&block, |s| s.first).ok()
    }

    /// Subroutine of a linked function.
    fn sub_of(&self, f: &LinkedFunction) -> Option<usize> {
        self.sub_at(self.target(f.entry))
    }

    fn find_calls(&mut self, module: &Module) {
        for b in 0..self.blocks.len() {
            let Some(inst) = self.terminator(b, &module.insts) else {
                continue;
            };
            let callees: Vec<usize> = match &inst.body {
                Body::Branch(l) if inst.op == Opcode::Call => {
                    self.sub_at(self.target(*l)).into_iter().collect()
                }
                Body::Fcall { name, .. } => module
                    .functions
                    .iter()
                    .filter(|f| f.name == *name)
                    .filter_map(|f| self.sub_of(f))
                    .take(1)
                    .collect(),
                Body::Ifcall { .. } => {
                    let taken = module.functions.iter().filter(|f| f.address_taken);
                    taken.filter_map(|f| self.sub_of(f)).collect()
                }
                _ => continue,
            };
            self.calls.extend(callees.into_iter().map(|sub| (b, sub)));
            if let Some(n) = self.next(b) {
                self.blocks[n].late_preds = true;
            }
        }
    }

    /// Subroutines that the end of a block may call.
    pub(super) fn callees(&self, b: usize) -> impl Iterator<Item = usize> + '_ {
        self.calls
            .iter()
            .filter(move |&&(c, _)| c == b)
            .map(|&(_, s)| s)
    }

    /// Finds where lanes wait, and which uniform branches have to let theirs wait.
    fn find_joins(&mut self, insts: &[Inst], simd: u32) {
        let count = self.blocks.len();
        // Forward targets of the uniform branch at the end of each block, and the earliest block that it leads back to.
        let mut ahead: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut back: Vec<usize> = (0..count).collect();
        // A block that lets lanes wait, and where.
        let mut found = Vec::new();
        for b in 0..count {
            let Some(inst) = self.terminator(b, insts) else {
                continue;
            };
            let targets: Vec<usize> = match &inst.body {
                Body::Branch(l) if matches!(inst.op, Opcode::Goto | Opcode::Jmp) => {
                    vec![self.target(*l)]
                }
                Body::SwitchJmp { targets, .. } => {
                    targets.iter().map(|&l| self.target(l)).collect()
                }
                _ => Vec::new(),
            };
            for &t in targets.iter().filter(|&&t| t <= b) {
                back[b] = back[b].min(t);
                self.blocks[t].late_preds = true;
            }
            let next = self.next(b);
            if inst.op == Opcode::Goto && decision(inst) == Decision::Lanes {
                let forward = targets.first().copied().filter(|&t| t > b);
                found.extend(forward.or(next).map(|j| (b, j)));
            } else if leaves_lanes(inst, simd) || self.blocks[b].repeats {
                // Lanes that do not make a call, or have made it before others, wait after it.
                found.extend(next.map(|j| (b, j)));
            } else {
                ahead[b] = targets.into_iter().filter(|&t| t > b).collect();
            }
        }
        self.find_waits(&ahead, &back, found);
    }

    /// Follows lanes from the blocks that let them wait. A uniform branch over a join at which lanes may wait lets its own wait, too,
    /// so that those run first.
    ///
    /// While lanes wait at a join, control is between the block that let them wait and the join, or where branches back lead from there. So
    /// a branch over a whole loop, in front of all that leave it, is a plain jump.
    fn find_waits(&mut self, ahead: &[Vec<usize>], back: &[usize], mut found: Vec<(usize, usize)>) {
        while let Some((waiter, join)) = found.pop() {
            self.blocks[join].join = true;
            let before = self.blocks[join].waits_since;
            let (mut from, mut seen) = (waiter.min(before), before);
            while from < seen {
                let part = back[from..seen].iter().copied();
                seen = from;
                from = part.fold(from, usize::min);
            }
            self.blocks[join].waits_since = from;
            for (b, targets) in (from..before).zip(&ahead[from..before]) {
                for &t in targets.iter().filter(|&&t| t > join) {
                    if !self.waits[b].contains(&t) {
                        self.waits[b].push(t);
                        found.push((b, t));
                    }
                }
            }
        }
    }

    /// Targets of a uniform forward branch at the end of `b` with joins in between at which lanes may wait: lanes that go there wait,
    /// so that those that wait on the way run first.
    pub(super) fn waits_at(&self, b: usize) -> &[usize] {
        &self.waits[b]
    }

    /// The most joins of a subroutine that lanes may wait at at once, if each branch goes the way that the text does. Loops may have
    /// more, where lanes that have left them wait.
    pub(super) fn most_waited_at(&self, range: SubRange, insts: &[Inst]) -> usize {
        let mut first_comer = BTreeMap::new();
        for b in range.first..range.end {
            let branch = match self.terminator(b, insts) {
                Some(
                    i @ Inst {
                        body: Body::Branch(l),
                        op: Opcode::Goto,
                        ..
                    },
                ) if decision(i) == Decision::Lanes => Some(self.target(*l)),
                _ => None,
            };
            for t in self.waits_at(b).iter().copied().chain(branch) {
                if t > b {
                    first_comer.entry(t).or_insert(b);
                }
            }
        }
        let mut ends: BTreeMap<usize, isize> = BTreeMap::new();
        for (t, b) in first_comer {
            *ends.entry(b).or_default() += 1;
            *ends.entry(t).or_default() -= 1;
        }
        let mut now = 0;
        let counts = ends.values().map(|change| {
            now += change;
            now
        });
        counts.max().unwrap_or(0).unsigned_abs()
    }

    /// A join is tested unless every arrival is known to bring or find a lane.
    fn find_checks(&mut self, insts: &[Inst]) {
        for b in 0..self.blocks.len() {
            let Some(inst) = self.terminator(b, insts) else {
                continue;
            };
            let skip = self.next_join(b);
            let target = match (&inst.body, inst.op) {
                (Body::Branch(l), Opcode::Goto) => {
                    let t = self.target(*l);
                    let waits = !self.waits_at(b).is_empty();
                    if decision(inst) == Decision::Lanes && t <= b {
                        // Control falls to the next block only with lanes waiting there.
                        None
                    } else if waits || decision(inst) == Decision::Lanes {
                        Some(t)
                    } else {
                        None
                    }
                }
                (Body::Ret, _) => Some(usize::MAX),
                (Body::Branch(_), Opcode::Jmp) | (Body::SwitchJmp { .. }, _) => {
                    self.waits_at(b).first().copied()
                }
                _ => None,
            };
            if let (Some(t), Some(j)) = (target, skip)
                && j != t
            {
                self.blocks[j].check = true;
            }
        }
        // An empty join passes control on to the next one.
        for b in 0..self.blocks.len() {
            if self.blocks[b].check
                && let Some(j) = self.next_join(b)
            {
                self.blocks[j].check = true;
            }
        }
        // A subroutine may be entered with lanes that all wait for its end.
        for s in &self.subs[1.min(self.subs.len())..] {
            for b in s.first..s.end {
                if self.blocks[b].join {
                    self.blocks[b].check = true;
                }
            }
        }
    }

    /// Blocks that control may reach from the end of `b`.
    pub(super) fn successors(&self, b: usize, insts: &[Inst]) -> Vec<usize> {
        let mut out: Vec<usize> = Vec::new();
        match self.terminator(b, insts) {
            None => out.extend(self.next(b)),
            Some(i) => {
                match &i.body {
                    Body::Branch(l) => out.push(self.target(*l)),
                    Body::SwitchJmp { targets, .. } => {
                        out.extend(targets.iter().map(|&l| self.target(l)))
                    }
                    Body::Fcall { .. } | Body::Ifcall { .. } => {
                        out.extend(self.callees(b).map(|s| self.subs[s].first));
                    }
                    _ => {
                        let func = self.blocks[b].func;
                        let callers = self.calls.iter();
                        let callers = callers.filter(|&&(_, s)| s == func && func != 0);
                        for &(c, _) in callers {
                            out.extend(self.next(c));
                            out.extend(self.blocks[c].repeats.then_some(c));
                        }
                    }
                }
                out.extend(self.next(b));
                out.extend(self.next_join(b));
            }
        }
        if self.blocks[b].join {
            out.extend(self.next_join(b));
        }
        out
    }

    /// Subroutines that call themselves, directly or through others; and some that call those.
    fn find_circles(&self) -> BTreeSet<usize> {
        // Subroutines are taken away as long as one calls none that is left; a circle stays.
        let n = self.subs.len();
        let mut callers: Vec<Vec<usize>> = vec![Vec::new(); n];
        let mut pending = vec![0usize; n];
        for &(b, callee) in &self.calls {
            let caller = self.blocks[b].func;
            callers[callee].push(caller);
            pending[caller] += 1;
        }
        let mut ready: Vec<usize> = (0..n).filter(|&s| pending[s] == 0).collect();
        let mut left: BTreeSet<usize> = (0..n).collect();
        while let Some(s) = ready.pop() {
            left.remove(&s);
            for &c in &callers[s] {
                pending[c] -= 1;
                if pending[c] == 0 {
                    ready.push(c);
                }
            }
        }
        // Nothing calls the kernel's own body.
        left.remove(&0);
        left
    }

    /// See `find_circles`.
    pub(super) fn circles(&self) -> &BTreeSet<usize> {
        &self.circles
    }
}
