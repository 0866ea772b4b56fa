//! Emission of control flow: execution masks, lanes awaiting reconvergence, subroutines.
//!
//! Each flow block has a *head* where control arrives. At a join the head first adds the lanes
//! that wait there. The execution mask never is empty while a block's own instructions run.

use super::error::Fail;
use super::flow::{Decision, decision, leaves_lanes};
use super::waiting::Waiting;
use super::{Lowerer, variables::Var};
use crate::isa::Opcode;
use crate::module::link::ADDRESS_FORM;
use crate::module::{Body, Inst, LabelId, PredControl, Predicate, Src};
use crate::ssa::*;
use std::collections::{BTreeMap, BTreeSet};

/// SSA side of the flow plan.
#[derive(Default)]
pub(super) struct Control {
    /// Where control arrives at each flow block.
    pub heads: Vec<Block>,
    /// Lanes waiting at each join.
    pub(super) wait: Vec<Option<Waiting>>,
    /// Where each subroutine ends.
    exits: Vec<Block>,
    /// Lanes that have returned from each subroutine and wait for the rest.
    exit_wait: Vec<Option<Var>>,
    /// Call site that each subroutine returns to.
    selector: Vec<Option<Var>>,
    /// Saved scalar-call masks, by calling block.
    saved: BTreeMap<usize, Var>,
    /// Calls in progress, when there are circles of calls.
    pub depth: Option<Var>,
    /// Where calls return to that have something to restore before they go on, by calling block.
    returns: BTreeMap<usize, Block>,
}

impl Lowerer<'_> {
    /// Creates the blocks and mask variables of the plan.
    pub(crate) fn plan_control(&mut self) {
        let mask = Ty::mask(self.simd);
        let heads = self.flow.blocks.iter().map(|_| self.b.block()).collect();
        let wait = self.plan_waiting();
        let subs = self.flow.subs.len();
        let exits = (0..subs).map(|_| self.b.block()).collect();
        let exit_wait = (0..subs).map(|_| Some(self.b.var(mask))).collect();
        let selector = (0..subs)
            .map(|s| (s > 0).then(|| self.b.var(Ty::I32)))
            .collect();
        let insts = &self.kernel.module().insts;
        let scalar: Vec<usize> = (0..self.flow.blocks.len())
            .filter(|&b| {
                let end = self.flow.terminator(b, insts);
                end.is_some_and(is_scalar_call)
            })
            .collect();
        let saved = scalar.into_iter().map(|b| (b, self.b.var(mask))).collect();
        self.ctl = Control {
            heads,
            wait,
            exits,
            exit_wait,
            selector,
            saved,
            depth: None,
            returns: BTreeMap::new(),
        };
    }

    /// Lanes that wait, and return sites, of a subroutine's activation.
    pub(crate) fn control_vars(&self, sub: usize) -> Vec<Var> {
        let mut vars = self.waiting_vars(sub);
        vars.extend(self.ctl.selector.get(sub).copied().flatten());
        vars
    }

    /// What says which lanes of a subroutine's activation wait, and where. All zero, none does.
    pub(crate) fn waiting_vars(&self, sub: usize) -> Vec<Var> {
        let Some(range) = self.flow.subs.get(sub) else {
            return Vec::new();
        };
        let waits = self.ctl.wait[range.first..range.end].iter().flatten();
        // Joins may share a variable.
        let waits: BTreeSet<Var> = waits.map(|waiting| waiting.var()).collect();
        let saved = self.ctl.saved.range(range.first..range.end).map(|(_, v)| v);
        waits
            .into_iter()
            .chain(saved.copied())
            .chain(self.ctl.exit_wait[sub])
            .collect()
    }

    /// Starts emission of flow block `b`.
    pub(crate) fn enter_block(&mut self, b: usize) {
        let head = self.ctl.heads[b];
        if !self.flow.blocks[b].late_preds {
            self.b.seal(head);
        }
        self.b.switch_to(head);
        if let Some(waiting) = self.waiting_at(b) {
            let em = self.b.read(self.em);
            let em = self.b.bin(BinOp::Or, em, waiting);
            self.b.write(self.em, em);
            self.release(b, waiting);
            if self.flow.blocks[b].check {
                let any = self.b.any(em);
                let body = self.b.block();
                let skip = self.skip_target(b);
                self.b.branch(any, body, skip);
                self.b.seal(body);
                self.b.switch_to(body);
            }
        }
    }

    /// Falls out of block `b` at its textual end.
    pub(crate) fn leave_block(&mut self, b: usize) {
        if self.b.ended() {
            return;
        }
        match self.flow.next(b) {
            Some(n) => self.b.jump(self.ctl.heads[n]),
            None => self.b.jump(self.ctl.exits[self.flow.blocks[b].func]),
        }
    }

    /// Emits the ends of subroutines: the kernel's is the thread's end, others go back to their callers.
    pub(crate) fn emit_exits(&mut self) {
        for s in 0..self.flow.subs.len() {
            // Left open: a subroutine may end where its caller ends too, which comes later here.
            let exit = self.ctl.exits[s];
            self.b.switch_to(exit);
            if s == 0 {
                self.b.ret();
                continue;
            }
            if let Some(wait) = self.ctl.exit_wait[s] {
                let em = self.b.read(self.em);
                let waiting = self.b.read(wait);
                let em = self.b.bin(BinOp::Or, em, waiting);
                self.b.write(self.em, em);
                let none = self.empty_mask();
                self.b.write(wait, none);
            }
            let callers: Vec<Block> = self
                .flow
                .calls
                .iter()
                .filter(|&&(_, callee)| callee == s)
                .map(|&(b, _)| {
                    let restores = self.ctl.returns.get(&b).copied();
                    restores.unwrap_or_else(|| self.fall_target(b))
                })
                .collect();
            match (callers.as_slice(), self.ctl.selector[s]) {
                ([], _) | (_, None) => self.b.ret(),
                ([one], _) => self.b.jump(*one),
                ([first, ..], Some(sel)) => {
                    let first = *first;
                    let index = self.b.read(sel);
                    self.b.switch(index, &callers, first);
                }
            }
        }
    }

    pub(super) fn empty_mask(&mut self) -> Value {
        self.b.vec_const(Lane::I1, vec![0; self.simd as usize])
    }

    /// Where control goes when no lane is left at the end of block `b`.
    fn skip_target(&self, b: usize) -> Block {
        match self.flow.next_join(b) {
            Some(j) => self.ctl.heads[j],
            None => self.ctl.exits[self.flow.blocks[b].func],
        }
    }

    pub(super) fn fall_target(&self, b: usize) -> Block {
        match self.flow.next(b) {
            Some(n) => self.ctl.heads[n],
            None => self.ctl.exits[self.flow.blocks[b].func],
        }
    }

    /// The decision of a uniform branch as a scalar; `None` when it is unconditional.
    fn uniform_condition(
        &mut self,
        pred: Option<Predicate>,
        first_lane: u32,
    ) -> Result<Option<Value>, Fail> {
        let Some(p) = pred else { return Ok(None) };
        let whole = self.read_pred(p.var)?;
        let c = match p.control {
            PredControl::Any => self.b.any(whole),
            PredControl::All => self.b.all(whole),
            PredControl::Lanes => {
                let lanes = self.b.ty(whole).lanes;
                self.b.lane(whole, (first_lane as u16).min(lanes - 1))
            }
        };
        let c = if p.inverted {
            self.b.un(UnOp::Not, c)
        } else {
            c
        };
        self.decides(c);
        Ok(Some(c))
    }

    /// For checks of initialisation, what a branch depends on.
    fn decides(&mut self, condition: Value) {
        if self.additions.check_init {
            self.b.effect(Op::Decide, vec![condition]);
        }
    }

    /// Lanes of the whole thread for which a lane-wise branch is taken.
    fn taken_lanes(&mut self, inst: &Inst) -> Result<Value, Fail> {
        let em = self.b.read(self.em);
        let taken = self
            .channel_mask(inst)?
            .lanes(&mut self.b, inst.exec.lanes() as u16);
        let (first, n) = (inst.exec.mask.first_lane() as u16, inst.exec.lanes() as u16);
        if n == self.simd {
            let taken = self.b.bin(BinOp::And, taken, em);
            self.decides(taken);
            return Ok(taken);
        }
        let none = self.empty_mask();
        let indices = (0..self.simd).map(|l| {
            if l >= first && l < first + n {
                self.simd + l - first
            } else {
                l
            }
        });
        let wide = self.b.shuffle2(none, taken, indices.collect());
        let taken = self.b.bin(BinOp::And, wide, em);
        self.decides(taken);
        Ok(taken)
    }

    /// Emits the terminator of flow block `b`.
    pub(crate) fn lower_terminator(&mut self, b: usize, inst: &Inst) -> Result<(), Fail> {
        match (&inst.body, inst.op) {
            (Body::Branch(l), Opcode::Goto) => self.lower_goto(b, inst, *l),
            (Body::Branch(l), Opcode::Jmp) => self.lower_jmp(b, inst, *l),
            (Body::Branch(l), Opcode::Call) => {
                if self.flow.sub_at(self.flow.target(*l)).is_none() {
                    return Fail::malformed("call of a label that is no subroutine");
                }
                self.lower_call(b, inst, None)
            }
            (Body::Fcall { name, .. }, _) => {
                if self.flow.callees(b).next().is_none() {
                    return Fail::unsupported(format!("function `{name}` is not in the file"));
                }
                self.lower_call(b, inst, None)
            }
            (Body::Ifcall { addr, .. }, _) => self.lower_call(b, inst, Some(addr)),
            (Body::Ret, Opcode::Ret | Opcode::Fret) => self.lower_ret(b, inst),
            (Body::SwitchJmp { index, targets }, _) => {
                let index = self.scalar_int(index, Lane::I32)?;
                let waits = self.flow.waits_at(b).to_vec();
                let targets: Vec<usize> = targets.iter().map(|&l| self.flow.target(l)).collect();
                let waits: Vec<Option<Block>> = targets
                    .iter()
                    .map(|t| waits.contains(t).then(|| self.b.block()))
                    .collect();
                let blocks: Vec<Block> = waits
                    .iter()
                    .zip(&targets)
                    .map(|(wait, &t)| wait.unwrap_or(self.ctl.heads[t]))
                    .collect();
                let Some(&first) = blocks.first() else {
                    return Fail::malformed("no targets");
                };
                self.b.effect(Op::Poll, vec![]);
                self.b.switch(index, &blocks, first);
                for (wait, t) in waits.into_iter().zip(targets) {
                    if let Some(wait) = wait {
                        self.b.seal(wait);
                        self.b.switch_to(wait);
                        self.wait_at(b, t);
                    }
                }
                Ok(())
            }
            _ => Fail::unsupported("this kind of branch is not lowered"),
        }
    }

    fn same_function(&self, b: usize, t: usize) -> Result<(), Fail> {
        if self.flow.blocks[b].func == self.flow.blocks[t].func {
            Ok(())
        } else {
            Fail::malformed("branch into another subroutine")
        }
    }

    fn lower_goto(&mut self, b: usize, inst: &Inst, l: LabelId) -> Result<(), Fail> {
        let t = self.flow.target(l);
        self.same_function(b, t)?;
        let head = self.ctl.heads[t];
        if decision(inst) == Decision::Lanes {
            let taken = self.taken_lanes(inst)?;
            let em = self.b.read(self.em);
            let rest = self.b.and_not(em, taken);
            if t > b {
                self.add_waiting(t, taken);
                self.b.write(self.em, rest);
                let any = self.b.any(rest);
                let (fall, skip) = (self.fall_target(b), self.skip_target(b));
                self.b.branch(any, fall, skip);
            } else {
                match self.flow.next(b) {
                    Some(n) => self.add_waiting(n, rest),
                    None => self.finish_lanes(b, rest),
                }
                self.b.write(self.em, taken);
                self.b.effect(Op::Poll, vec![]);
                let any = self.b.any(taken);
                let fall = self.fall_target(b);
                self.b.branch(any, head, fall);
            }
            return Ok(());
        }
        let cond = self.uniform_condition(inst.pred, inst.exec.mask.first_lane())?;
        self.branch_together(b, t, cond);
        Ok(())
    }

    /// All active lanes go to block `t`, on a condition: at once, or to wait there where others wait on the way.
    fn branch_together(&mut self, b: usize, t: usize, cond: Option<Value>) {
        let fall = self.fall_target(b);
        if self.flow.waits_at(b).contains(&t) {
            if let Some(c) = cond {
                let wait = self.b.block();
                self.b.branch(c, wait, fall);
                self.b.seal(wait);
                self.b.switch_to(wait);
            }
            self.wait_at(b, t);
            return;
        }
        if t <= b {
            self.b.effect(Op::Poll, vec![]);
        }
        let head = self.ctl.heads[t];
        match cond {
            Some(c) => self.b.branch(c, head, fall),
            None => self.b.jump(head),
        }
    }

    /// The active lanes wait at join `t`; control goes from block `b` to the next join.
    fn wait_at(&mut self, b: usize, t: usize) {
        let em = self.b.read(self.em);
        self.add_waiting(t, em);
        let none = self.empty_mask();
        self.b.write(self.em, none);
        let skip = self.skip_target(b);
        self.b.jump(skip);
    }

    /// Lanes that leave block `b`'s subroutine for good.
    fn finish_lanes(&mut self, b: usize, lanes: Value) {
        let func = self.flow.blocks[b].func;
        if let (Some(wait), true) = (self.ctl.exit_wait[func], func > 0) {
            let old = self.b.read(wait);
            let new = self.b.bin(BinOp::Or, old, lanes);
            self.b.write(wait, new);
        }
    }

    fn lower_jmp(&mut self, b: usize, inst: &Inst, l: LabelId) -> Result<(), Fail> {
        let t = self.flow.target(l);
        self.same_function(b, t)?;
        let cond = self.uniform_condition(inst.pred, 0)?;
        self.branch_together(b, t, cond);
        Ok(())
    }

    fn lower_ret(&mut self, b: usize, inst: &Inst) -> Result<(), Fail> {
        let func = self.flow.blocks[b].func;
        let leaving = if decision(inst) == Decision::Lanes {
            self.taken_lanes(inst)?
        } else if let Some(c) = self.uniform_condition(inst.pred, inst.exec.mask.first_lane())? {
            let em = self.b.read(self.em);
            let wide = self.b.splat(c, self.simd);
            self.b.bin(BinOp::And, em, wide)
        } else {
            let em = self.b.read(self.em);
            if self.flow.next_join(b).is_none() {
                let exit = self.ctl.exits[func];
                self.b.jump(exit);
                return Ok(());
            }
            em
        };
        let em = self.b.read(self.em);
        let rest = self.b.and_not(em, leaving);
        self.finish_lanes(b, leaving);
        self.b.write(self.em, rest);
        let (fall, skip) = (self.fall_target(b), self.skip_target(b));
        if inst.pred.is_none() {
            self.b.jump(skip);
        } else {
            let any = self.b.any(rest);
            self.b.branch(any, fall, skip);
        }
        Ok(())
    }

    /// A call of the block's callees: the only one, or the one at an address.
    fn lower_call(&mut self, b: usize, inst: &Inst, address: Option<&Src>) -> Result<(), Fail> {
        if leaves_lanes(inst, u32::from(self.simd)) {
            self.leave_lanes(b, inst)?;
        }
        let address = match address {
            Some(a) if self.flow.blocks[b].repeats => Some(self.first_address(b, inst, a)?),
            Some(a) => Some(self.scalar_int(a, Lane::I32)?),
            None => None,
        };
        // Calls alone make code that never ends, by recursion or by a tree of calls: each asks, like a back edge.
        self.b.effect(Op::Poll, vec![]);
        let back = self.b.block();
        if let Some(&saved) = self.ctl.saved.get(&b) {
            // A scalar stack call runs with all lanes that exist; the caller's are back afterwards.
            let em = self.b.read(self.em);
            self.b.write(saved, em);
            let all = self.dispatched();
            self.b.write(self.em, all);
        }
        self.enter_callees(b, inst, address, back)?;
        self.b.switch_to(back);
        self.go_on_behind(b);
        Ok(())
    }

    /// The address of the lowest active lane. Active lanes with other addresses wait, and come here again.
    fn first_address(&mut self, b: usize, inst: &Inst, src: &Src) -> Result<Value, Fail> {
        let (first, n) = (inst.exec.mask.first_lane() as u16, inst.exec.lanes() as u16);
        let addresses = self.lane_addresses(src, inst.exec.lanes())?;
        let zero = self.b.i32(0);
        let zero = self.b.splat(zero, self.simd);
        let channel = |l: u16| l.checked_sub(first).filter(|&c| c < n);
        let places = (0..self.simd).map(|l| channel(l).map_or(l, |c| self.simd + c));
        let addresses = self.b.shuffle2(zero, addresses, places.collect());
        let em = self.b.read(self.em);
        let mask = self.b.ty(em);
        let bits = self.b.op(Op::MaskToBits, vec![em], Ty::I32);
        let minus = self.b.un(UnOp::Neg, bits);
        let lowest = self.b.bin(BinOp::And, bits, minus);
        let lowest = self.b.op(Op::BitsToMask, vec![lowest], mask);
        let mut address = self.b.select(lowest, addresses, zero);
        while self.b.ty(address).lanes > 1 {
            let half = self.b.ty(address).lanes / 2;
            let (low, high) = (
                self.b.slice(address, 0, half),
                self.b.slice(address, half, half),
            );
            address = self.b.bin(BinOp::Or, low, high);
        }
        let same = self.b.icmp(ICond::Eq, addresses, address);
        let go = self.b.bin(BinOp::And, em, same);
        let stay = self.b.and_not(em, same);
        self.add_waiting(b, stay);
        self.b.write(self.em, go);
        Ok(address)
    }

    /// The addresses of an indirect call's channels.
    pub(super) fn lane_addresses(&mut self, src: &Src, lanes: u32) -> Result<Value, Fail> {
        let addresses = self.read(src, lanes)?;
        let addresses = self.int(addresses, Lane::I32)?;
        Ok(self.b.splat(addresses, lanes as u16))
    }

    /// After a call, made or not: a scalar stack call gives the lanes back that it was made by; when lanes of other
    /// addresses wait, they are next, while those that have returned wait.
    pub(super) fn go_on_behind(&mut self, b: usize) {
        if let Some(&saved) = self.ctl.saved.get(&b) {
            let em = self.b.read(saved);
            self.b.write(self.em, em);
        }
        let fall = self.fall_target(b);
        let repeats = self.flow.blocks[b].repeats;
        let Some(others) = repeats.then(|| self.waiting_at(b)).flatten() else {
            self.b.jump(fall);
            return;
        };
        let any = self.b.any(others);
        let again = self.b.block();
        self.b.branch(any, again, fall);
        self.b.seal(again);
        self.b.switch_to(again);
        let em = self.b.read(self.em);
        match self.flow.next(b) {
            Some(n) => self.add_waiting(n, em),
            None => self.finish_lanes(b, em),
        }
        let none = self.empty_mask();
        self.b.write(self.em, none);
        self.b.jump(self.ctl.heads[b]);
    }

    /// Lets the lanes that do not make a call wait after it, and goes on where some do.
    fn leave_lanes(&mut self, b: usize, inst: &Inst) -> Result<(), Fail> {
        let wide = inst.exec.lanes() > 1 && inst.op != Opcode::Call;
        let taken = if wide || decision(inst) == Decision::Lanes {
            self.taken_lanes(inst)?
        } else {
            let em = self.b.read(self.em);
            match self.uniform_condition(inst.pred, inst.exec.mask.first_lane())? {
                Some(c) => {
                    let wide = self.b.splat(c, self.simd);
                    self.b.bin(BinOp::And, em, wide)
                }
                None => em,
            }
        };
        let em = self.b.read(self.em);
        let rest = self.b.and_not(em, taken);
        match self.flow.next(b) {
            Some(n) => self.add_waiting(n, rest),
            None => self.finish_lanes(b, rest),
        }
        self.b.write(self.em, taken);
        let any = self.b.any(taken);
        let body = self.b.block();
        let fall = self.fall_target(b);
        self.b.branch(any, body, fall);
        self.b.seal(body);
        self.b.switch_to(body);
        Ok(())
    }

    /// Goes to the callee, which comes back to `back`. An address that is no function's calls nothing.
    fn enter_callees(
        &mut self,
        b: usize,
        inst: &Inst,
        address: Option<Value>,
        back: Block,
    ) -> Result<(), Fail> {
        self.ctl.returns.insert(b, back);
        self.enter_activation(b, inst, back)?;
        let callees: Vec<usize> = self.flow.callees(b).collect();
        let Some(address) = address else {
            if let Some(&sub) = callees.first() {
                self.enter_callee(b, sub);
            }
            return Ok(());
        };
        let functions = &self.kernel.module().functions;
        let functions: Vec<_> = functions.iter().filter(|f| f.address_taken).collect();
        let (first, step) = ADDRESS_FORM;
        let most = functions.iter().map(|f| f.address).max().unwrap_or(0);
        let count = most.saturating_sub(first) / step + 1;
        let numbers: Vec<(u32, usize)> = functions
            .iter()
            .zip(&callees)
            .map(|(f, &sub)| ((f.address - first) / step, sub))
            .collect();
        // Rotated by the step's bits, an address that is none has a large number.
        let number = self.b.bin_imm(BinOp::Sub, address, i64::from(first));
        let number = self
            .b
            .bin_imm(BinOp::Rotr, number, i64::from(step.trailing_zeros()));
        let mut doors = vec![back; count as usize];
        let mut entries = Vec::new();
        for &(n, sub) in &numbers {
            let door = self.b.block();
            doors[n as usize] = door;
            entries.push((door, sub));
        }
        self.b.switch(number, &doors, back);
        for (door, sub) in entries {
            self.b.seal(door);
            self.b.switch_to(door);
            self.enter_callee(b, sub);
        }
        Ok(())
    }

    fn enter_callee(&mut self, b: usize, sub: usize) {
        let site = self
            .flow
            .calls
            .iter()
            .filter(|&&(_, s)| s == sub)
            .position(|&(c, _)| c == b)
            .unwrap_or(0);
        if let Some(sel) = self.ctl.selector[sub] {
            let v = self.b.i32(site as u32);
            self.b.write(sel, v);
        }
        let first = self.flow.subs[sub].first;
        self.b.jump(self.ctl.heads[first]);
    }
}

fn is_scalar_call(inst: &Inst) -> bool {
    matches!(inst.op, Opcode::Fcall | Opcode::Ifcall) && inst.exec.lanes() == 1
}
