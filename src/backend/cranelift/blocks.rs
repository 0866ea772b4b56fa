//! The thread loop and control flow.
//!
//! ```text
//! entry(group, first, end) -> head(index, status) -> check -> thread_start -> body ... -> next -> head
//! ```
//!
//! In functions with barriers, `check` skips finished threads, `Return` marks the thread as finished, and `Suspend` remembers the
//! barrier. Both go on with the next thread. Code for whole groups ([`BarrierLoop::Code`]) returns to `head` until no thread waits, or has
//! a loop for each state (`states.rs`).
//! Functions without barriers run group after group, and row after row of groups:
//!
//! ```text
//! entry -> row(id) -> groups(id) -> head ... -> exit -> groups(id + 1), or after the last of a row -> row(0)
//! ```

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, BlockArg, BlockCall as ClifCall, InstBuilder, JumpTableData, MemFlagsData, Type,
    Value as V, types,
};
use visa_runtime::abi::{GroupCtx, LaunchCtx, Status, THREAD_DONE, ThreadCtx};

use super::context::{Key, Threads};
use super::emit::{CraneliftEmitter, DATA};
use super::mask::MaskRepr;
use super::mask_plan::Form;
use super::value::{Val, int_lane, piece_count, piece_type, scalar_type};
use crate::backend::access::{Segment, Step};
use crate::backend::barrier_loop::BarrierLoop;
use crate::backend::states::{State, end_bit};
use crate::ssa::{Block, BlockCall, Function, Lane, Term, Ty, Value};

/// Offsets of the group's number in x, y and z.
const GROUP_X: i32 = offset_of!(GroupCtx, r0) as i32 + 4;
const GROUP_Y: i32 = offset_of!(GroupCtx, r0) as i32 + 4 * 6;
const GROUP_Z: i32 = offset_of!(GroupCtx, r0) as i32 + 4 * 7;

/// Lanes a mask can have in bits form.
const MAX_MASK_LANES: u16 = 32;

impl CraneliftEmitter<'_> {
    /// Translates the whole function.
    pub(super) fn program(&mut self, states: Option<&[State]>) {
        let f = self.f;
        let too_wide = f
            .values
            .iter()
            .find(|v| v.ty.lane == Lane::I1 && v.ty.lanes > MAX_MASK_LANES);
        if let Some(v) = too_wide {
            return self.bug(format!("a mask of type {}", v.ty));
        }
        if let Some(states) = states {
            return self.program_by_state(states);
        }
        let waits = self.ctx.barrier_loop != BarrierLoop::None;
        let head = self.thread_loop(waits);
        self.bodies(|_| true);
        self.close(head);
    }

    /// Translates the wanted blocks. Stops when there are more than [`super::MAX_INSTS`] instructions: the caller refuses the function then.
    pub(super) fn bodies(&mut self, wanted: impl Fn(Block) -> bool) {
        let plan = self.access_plan;
        let all = || plan.blocks().iter().filter(|(block, _)| wanted(*block));
        for &(block, _) in all() {
            self.declare(block);
        }
        for (block, segment) in all() {
            self.body(*block, segment);
            if self.func.dfg.num_insts() > super::MAX_INSTS {
                return;
            }
        }
    }

    /// Parameters of the function: the group's context, the first thread, and the thread after the last one.
    pub(super) fn entry_params(&mut self) -> [V; 3] {
        let entry = self.ctx.entry;
        [types::I64, types::I32, types::I32].map(|ty| self.func.dfg.append_block_param(entry, ty))
    }

    /// Everything around the body; returns the loop head.
    fn thread_loop(&mut self, waits: bool) -> ir::Block {
        let [group, first, end] = self.entry_params();
        self.ctx.group = Some(group);
        let groups = (!waits).then(|| self.new_block());
        let id = groups.map(|b| self.func.dfg.append_block_param(b, types::I32));
        self.ctx.row = groups.map(|_| self.new_block());
        let head = self.new_block();
        let check = self.new_block();
        let start = self.new_block();
        let exit = self.new_block();
        let next = self.new_block();
        let index = self.func.dfg.append_block_param(head, types::I32);
        let status = waits.then(|| self.func.dfg.append_block_param(head, types::I32));

        self.block = head;
        let over = self
            .ins()
            .icmp(IntCC::UnsignedGreaterThanOrEqual, index, end);
        self.branch(over, exit, check);

        self.block = check;
        let thread = self.context_of(index);
        let mut state = None;
        match status {
            Some(status) => state = Some(self.skip_finished(thread, status, start, next)),
            None => self.jump(start, &[]),
        }

        self.block = exit;
        match (groups, id, status) {
            (Some(groups), Some(id), _) => {
                self.next_group(groups, id);
                self.block = groups;
                self.jump(head, &[first]);
            }
            (_, _, Some(status)) if self.ctx.barrier_loop == BarrierLoop::Code => {
                self.end_round((first, end), status, |e| {
                    let done = e.iconst(types::I32, Status::Done as u64);
                    e.jump(head, &[first, done]);
                });
            }
            (_, _, status) => {
                let result = status.unwrap_or(group);
                self.ins().return_(&[result]);
            }
        }

        self.block = next;
        let carried = waits.then(|| self.func.dfg.append_block_param(next, types::I32));
        let following = self.ins().iadd_imm_u(index, 1);
        let args: Vec<V> = [following].into_iter().chain(carried).collect();
        self.jump(head, &args);

        self.ctx.begin_threads(Threads {
            start: Some(start),
            next: Some(next),
            index: Some(index),
            thread: Some(thread),
            state,
            only_state: None,
            status,
        });
        self.ctx.group_x = id;
        groups.unwrap_or(head)
    }

    /// Goes to the next thread if this one is finished. Returns its state.
    fn skip_finished(&mut self, thread: V, status: V, start: ir::Block, next: ir::Block) -> V {
        let at = offset_of!(ThreadCtx, state) as i32;
        let state = self.ins().load(types::I32, DATA, thread, at);
        let done = self
            .ins()
            .icmp_imm_u(IntCC::Equal, state, i64::from(THREAD_DONE));
        self.ins().brif(done, next, &[status.into()], start, &[]);
        state
    }

    /// Lets all threads go on if any of them waits, by a jump; returns when they are finished, or where the call is not for the whole group.
    pub(super) fn end_round(
        &mut self,
        (first, end): (V, V),
        status: V,
        jump: impl FnOnce(&mut Self),
    ) {
        let (wait, again, over) = (self.new_block(), self.new_block(), self.new_block());
        self.branch(status, wait, over);
        self.block = wait;
        let all = self.is_group(first, end);
        self.branch(all, again, over);
        self.block = again;
        self.poll();
        jump(self);
        self.block = over;
        self.ins().return_(&[status]);
    }

    /// Whether these are all threads of the group.
    pub(super) fn is_group(&mut self, from: V, to: V) -> V {
        let threads = self.ins().isub(to, from);
        let group = self.group_field(offset_of!(GroupCtx, thread_count), types::I32);
        self.ins().icmp(IntCC::Equal, threads, group)
    }

    /// Goes on with the next group of the row, or after the last one with the next row.
    fn next_group(&mut self, groups: ir::Block, id: V) {
        let last = self.last_group();
        let done = self.ins().icmp(IntCC::Equal, id, last);
        let (last_in_row, more) = (self.new_block(), self.new_block());
        self.branch(done, last_in_row, more);
        self.block = more;
        let following = self.ins().iadd_imm_u(id, 1);
        let group = self.group();
        // For fault records, and to tell how far the call came.
        self.ins().store(DATA, following, group, GROUP_X);
        self.jump(groups, &[following]);
        self.block = last_in_row;
        self.next_row();
    }

    /// Goes on with the next row of groups, or returns after the last one.
    fn next_row(&mut self) {
        let group = self.group();
        let at = offset_of!(GroupCtx, rows) as i32;
        let left = self.ins().load(types::I32, DATA, group, at);
        let (over, more) = (self.new_block(), self.new_block());
        self.branch(left, more, over);
        self.block = more;
        let left = self.ins().iadd_imm_s(left, -1);
        self.ins().store(DATA, left, group, at);
        let zero = self.iconst(types::I32, 0);
        self.ins().store(DATA, zero, group, GROUP_X);
        let y = self.ins().load(types::I32, DATA, group, GROUP_Y);
        let y = self.ins().iadd_imm_u(y, 1);
        // Not a field like others: kept from the function's start, it would take a register.
        let at = offset_of!(GroupCtx, height) as i32;
        let height = self.ins().load(types::I32, DATA, group, at);
        let wraps = self.ins().icmp(IntCC::Equal, y, height);
        let y = self.ins().select(wraps, zero, y);
        self.ins().store(DATA, y, group, GROUP_Y);
        let z = self.ins().load(types::I32, DATA, group, GROUP_Z);
        let carry = self.ins().uextend(types::I32, wraps);
        let z = self.ins().iadd(z, carry);
        self.ins().store(DATA, z, group, GROUP_Z);
        if let Some(row) = self.ctx.row {
            self.jump(row, &[zero]);
        }
        self.block = over;
        let result = self.iconst(types::I32, Status::Done as u64);
        self.ins().return_(&[result]);
    }

    /// Number in x of the last group of each row of this call.
    fn last_group(&mut self) -> V {
        self.hoisted(Key::LastGroup, |e| {
            let group = e.group();
            let first = e.ins().load(types::I32, DATA, group, GROUP_X);
            let at = offset_of!(GroupCtx, following) as i32;
            let more = e.ins().load(types::I32, DATA, group, at);
            e.ins().iadd(first, more)
        })
    }

    /// Terminates the blocks that grew on demand.
    fn close(&mut self, head: ir::Block) {
        self.set_line(0);
        self.block = self.ctx.entry;
        if let Some(row) = self.ctx.row {
            let group = self.group();
            let first = self.ins().load(types::I32, DATA, group, GROUP_X);
            let id = self.func.dfg.append_block_param(row, types::I32);
            self.jump(row, &[first]);
            self.block = row;
            self.jump(head, &[id]);
        } else {
            let first = self.func.dfg.block_params(self.ctx.entry)[1];
            let done = self.iconst(types::I32, Status::Done as u64);
            self.jump(head, &[first, done]);
        }
        let body = self.blocks[Function::ENTRY.0 as usize];
        if let (Some(start), Some(body)) = (self.ctx.threads.start, body) {
            self.block = start;
            self.jump(body, &[]);
        }
    }

    /// Creates a block with its parameters.
    fn declare(&mut self, block: Block) {
        let f = self.f;
        let here = self.new_block();
        self.blocks[block.0 as usize] = Some(here);
        for &param in &f.block(block).params {
            let ty = f.ty(param);
            let mut add = |t: Type, n: usize| -> Vec<V> {
                (0..n)
                    .map(|_| self.func.dfg.append_block_param(here, t))
                    .collect()
            };
            let val = if ty.lane == Lane::I1 && !ty.is_scalar() {
                Val::Mask(match self.plan.form(param) {
                    Form::Bits => MaskRepr::Bits(add(types::I32, 1)[0]),
                    Form::Vec(width) => {
                        let lane = int_lane(width);
                        let n = piece_count(Ty::vector(lane, ty.lanes));
                        MaskRepr::Vec(width, add(piece_type(lane), n))
                    }
                })
            } else if ty.is_scalar() {
                Val::Parts(add(scalar_type(ty.lane), 1))
            } else {
                Val::Parts(add(piece_type(ty.lane), piece_count(ty)))
            };
            self.vals[param.0 as usize] = val;
        }
    }

    fn body(&mut self, block: Block, segment: &Segment) {
        let Some(here) = self.blocks[block.0 as usize] else {
            return;
        };
        self.block = here;
        self.cache = Default::default();
        if let [Step::Versions(versions)] = segment.steps.as_slice() {
            return self.versioned(block, versions);
        }
        let f = self.f;
        let targets = f.block(block).term.targets();
        let ending: Vec<Value> = targets
            .iter()
            .flat_map(|call| call.args.iter().copied())
            .collect();
        let leaves = |v: Value| self.escapes[v.0 as usize] || ending.contains(&v);
        let anchors = self.anchors(&f.block(block).insts, leaves);
        for (n, step) in segment.steps.iter().enumerate() {
            self.anchor(&anchors, n);
            self.step(step);
            if self.func.dfg.num_insts() > super::MAX_INSTS {
                return;
            }
        }
        self.end(block);
    }

    /// The end of a block.
    pub(super) fn end(&mut self, block: Block) {
        let data = self.f.block(block);
        self.set_line(data.term_line);
        self.terminator(&data.term);
    }

    fn terminator(&mut self, term: &Term) {
        match term {
            Term::None => {
                self.bug("block without a terminator");
                self.finish_thread(0);
            }
            Term::Jump(call) => {
                let (to, args) = self.edge(call);
                self.ins().jump(to, &args);
            }
            Term::Branch { cond, then, other } => {
                let cond = self.scalar(*cond);
                let (then, then_args) = self.edge(then);
                let (other, other_args) = self.edge(other);
                self.ins().brif(cond, then, &then_args, other, &other_args);
            }
            Term::Switch {
                index,
                targets,
                default,
            } => {
                if let Some(state) = self.resumed_in(*index) {
                    let (to, args) = self.edge(targets.get(state as usize).unwrap_or(default));
                    self.ins().jump(to, &args);
                    return;
                }
                let index = self.scalar(*index);
                let default = self.clif_call(default);
                let calls: Vec<ClifCall> = targets.iter().map(|t| self.clif_call(t)).collect();
                let table = JumpTableData::new(default, &calls);
                let table = self.func.create_jump_table(table);
                self.ins().br_table(index, table);
            }
            Term::Return => self.finish_thread(THREAD_DONE),
            Term::Suspend(state) => self.finish_thread(*state),
        }
    }

    /// Stores the thread's state and goes on with the next thread.
    fn finish_thread(&mut self, state: u32) {
        let threads = &self.ctx.threads;
        let (only, before) = (threads.only_state, threads.status);
        let (Some(thread), Some(next)) = (threads.thread, threads.next) else {
            return;
        };
        let Some(before) = before else {
            return self.jump(next, &[]);
        };
        let v = self.iconst(types::I32, state.into());
        let at = offset_of!(ThreadCtx, state) as i32;
        self.ins().store(DATA, v, thread, at);
        let status = match only {
            Some(_) => self.ins().bor_imm_u(before, i64::from(end_bit(state))),
            None if state == THREAD_DONE => before,
            None => self.iconst(types::I32, Status::Suspended as u64),
        };
        self.jump(next, &[status]);
    }

    fn clif_call(&mut self, call: &BlockCall) -> ClifCall {
        let (to, args) = self.edge(call);
        ClifCall::new(to, args, &mut self.func.dfg.value_lists)
    }

    /// Target and arguments of a branch, each mask in the form its parameter has.
    fn edge(&mut self, call: &BlockCall) -> (ir::Block, Vec<BlockArg>) {
        let f = self.f;
        let mut args = Vec::new();
        for (&param, &arg) in f.block(call.block).params.iter().zip(&call.args) {
            let ty = f.ty(param);
            if ty.lane == Lane::I1 && !ty.is_scalar() {
                match self.plan.form(param) {
                    Form::Bits => args.push(self.mask_bits(arg).into()),
                    Form::Vec(width) => {
                        args.extend(self.mask_vec(arg, width).into_iter().map(BlockArg::from));
                    }
                }
            } else {
                args.extend(self.parts(arg).into_iter().map(BlockArg::from));
            }
        }
        let to = self.blocks[call.block.0 as usize];
        (to.unwrap_or(self.ctx.entry), args)
    }

    /// Leaves when the launch was interrupted.
    pub(super) fn poll(&mut self) {
        let flag = self.launch_field(offset_of!(LaunchCtx, interrupt), types::I64);
        // An atomic load: a plain one could be merged with the poll of an earlier loop.
        let set = self
            .ins()
            .atomic_load(types::I32, MemFlagsData::trusted(), flag);
        let leave = match self.ctx.interrupted {
            Some(block) => block,
            None => {
                let block = self.leave_block(Status::Interrupted);
                self.ctx.interrupted = Some(block);
                block
            }
        };
        let go_on = self.new_block();
        self.branch(set, leave, go_on);
        self.block = go_on;
    }

    /// Block that returns with `Fault`.
    pub(super) fn fault_exit(&mut self) -> ir::Block {
        if let Some(block) = self.ctx.fault {
            return block;
        }
        let block = self.leave_block(Status::Fault);
        self.ctx.fault = Some(block);
        block
    }

    /// Block that returns with a status.
    pub(super) fn leave_block(&mut self, status: Status) -> ir::Block {
        let block = self.new_cold_block();
        let here = std::mem::replace(&mut self.block, block);
        let v = self.iconst(types::I32, status as u64);
        self.ins().return_(&[v]);
        self.block = here;
        block
    }
}
