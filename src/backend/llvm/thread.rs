//! The thread loop and control flow.
//!
//! ```text
//! entry(group, first, end) -> head(index, status) -> check -> start -> body ... -> next -> head
//! ```
//!
//! As in every code generator of this ABI: in functions with barriers, `check` skips finished threads, `Return` marks the
//! thread finished and `Suspend` remembers the barrier; both go on with the next thread. Functions without run group
//! after group: `head` is reached through `groups(id)`, to which the end of the loop returns until the last group is done.
//! With barriers, code for whole groups ([`BarrierLoop::Code`]) returns to `head` likewise, until no thread waits.

use std::collections::HashMap;
use std::mem::{offset_of, size_of};

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValue, InstructionOpcode, IntValue, PhiValue, PointerValue};
use visa_runtime::abi::{GroupCtx, Status, THREAD_DONE, ThreadCtx};

use super::context::{Field, Key};
use super::emit::{Emit, EmitResult, InternalError, V};
use super::versioning::End;
use crate::backend::access::Segment;
use crate::backend::barrier_loop::BarrierLoop;
use crate::ssa::{Block, BlockCall, Function, Term};

/// Offset of the group's number in x.
const GROUP_X: i64 = offset_of!(GroupCtx, r0) as i64 + 4;

/// Blocks of the thread loop and what is known in them.
#[derive(Default)]
pub(super) struct ThreadLoop<'c> {
    entry: Option<BasicBlock<'c>>,
    /// Reads the fields of a thread.
    pub start: Option<BasicBlock<'c>>,
    next: Option<BasicBlock<'c>>,
    interrupted: Option<BasicBlock<'c>>,
    fault: Option<BasicBlock<'c>>,
    group: Option<PointerValue<'c>>,
    index: Option<IntValue<'c>>,
    thread: Option<PointerValue<'c>>,
    /// State of the thread when it was resumed.
    pub state: Option<V<'c>>,
    /// Status so far, when threads can wait, and that of the thread that ends.
    status: Option<(PhiValue<'c>, PhiValue<'c>)>,
    /// Number of the group in x, where one call runs several.
    pub group_x: Option<IntValue<'c>>,
    /// Addresses and data of lane-wise accesses, one after the other.
    pub message: Option<PointerValue<'c>>,
    /// Values made once a call or once a thread.
    pub made: HashMap<Key, V<'c>>,
    barrier_loop: BarrierLoop,
}

fn need<T>(v: Option<T>) -> EmitResult<T> {
    v.ok_or_else(|| InternalError::from("a context value is used outside the thread loop"))
}

impl<'c> ThreadLoop<'c> {
    /// First block of the function.
    pub fn entry(&self) -> EmitResult<BasicBlock<'c>> {
        need(self.entry)
    }

    /// The `GroupCtx`.
    pub fn group(&self) -> EmitResult<PointerValue<'c>> {
        need(self.group)
    }

    /// The thread's number.
    pub fn index(&self) -> EmitResult<IntValue<'c>> {
        need(self.index)
    }

    /// The `ThreadCtx`.
    pub fn thread(&self) -> EmitResult<PointerValue<'c>> {
        need(self.thread)
    }
}

impl<'c> Emit<'c, '_> {
    /// Translates the whole function.
    pub fn program(&mut self, barrier_loop: BarrierLoop) -> EmitResult<()> {
        self.ctx.barrier_loop = barrier_loop;
        let head = self.thread_loop()?;
        let plan = self.access_plan;
        for &(block, _) in plan.blocks() {
            self.declare_block(block)?;
        }
        for (block, segment) in plan.blocks() {
            self.body(*block, segment)?;
        }
        self.close(head)
    }

    /// Everything around the body. Returns where the first block goes, and the parameter there.
    fn thread_loop(&mut self) -> EmitResult<(BasicBlock<'c>, PhiValue<'c>)> {
        let waits = self.ctx.barrier_loop != BarrierLoop::None;
        let param = |n: u32| self.func.get_nth_param(n).ok_or("a parameter is missing");
        let (group, first, end) = (param(0)?, param(1)?, param(2)?);
        let entry = self.new_block();
        self.ctx.entry = Some(entry);
        self.ctx.group = Some(self.as_ptr(group)?);
        let (head, check, start) = (self.new_block(), self.new_block(), self.new_block());
        let (exit, next) = (self.new_block(), self.new_block());
        let i32_type = self.cx.i32_type();

        self.at(head);
        let index = self.b.build_phi(i32_type, "\0")?;
        let status = if waits {
            let so_far = self.b.build_phi(i32_type, "\0")?;
            self.at(next);
            Some((so_far, self.b.build_phi(i32_type, "\0")?))
        } else {
            None
        };
        self.at(head);
        let number = self.as_int(index.as_basic_value())?;
        let over = self.icmp(IntPredicate::UGE, number, end)?;
        self.branch(over, exit, check)?;
        (self.ctx.index, self.ctx.status) = (Some(number), status);
        (self.ctx.start, self.ctx.next) = (Some(start), Some(next));

        self.at(check);
        let threads = self.group_field(offset_of!(GroupCtx, threads), Field::Ptr)?;
        let size = self.i64(size_of::<ThreadCtx>() as u64);
        let wide = self.resize(number, 64)?;
        let distance = self.op2(InstructionOpcode::Mul, wide, size)?;
        let thread = self.offset(self.as_ptr(threads)?, self.as_int(distance)?)?;
        self.ctx.thread = Some(thread);
        if let Some((so_far, ended)) = status {
            let at = self.offset_const(thread, offset_of!(ThreadCtx, state) as i64)?;
            let state = self.load(i32_type.into(), at)?;
            let done = self.icmp(IntPredicate::EQ, state, self.i32(THREAD_DONE))?;
            self.branch(done, next, start)?;
            ended.add_incoming(&[(&so_far.as_basic_value(), check)]);
            self.ctx.state = Some(state);
        } else {
            self.jump(start)?;
        }

        self.at(next);
        let following = self.add_const(number, 1)?;
        self.jump(head)?;
        index.add_incoming(&[(&following, next)]);
        if let Some((so_far, ended)) = status {
            so_far.add_incoming(&[(&ended.as_basic_value(), next)]);
            self.at(exit);
            if self.ctx.barrier_loop == BarrierLoop::Code {
                self.go_round(head, index, so_far)?;
            } else {
                self.b.build_return(Some(&so_far.as_basic_value()))?;
            }
            return Ok((head, index));
        }
        let groups = self.new_block();
        self.at(groups);
        let id = self.b.build_phi(i32_type, "\0")?;
        self.jump(head)?;
        index.add_incoming(&[(&first, groups)]);
        self.ctx.group_x = Some(self.as_int(id.as_basic_value())?);
        self.at(exit);
        self.next_group(groups, id)?;
        Ok((groups, id))
    }

    /// Lets all threads go on if any of them waits; returns when they are finished.
    fn go_round(
        &mut self,
        head: BasicBlock<'c>,
        index: PhiValue<'c>,
        so_far: PhiValue<'c>,
    ) -> EmitResult<()> {
        let (over, again) = (self.new_block(), self.new_block());
        let done = self.i32(Status::Done as u32);
        let over_now = self.icmp(IntPredicate::EQ, so_far.as_basic_value(), done)?;
        self.branch(over_now, over, again)?;
        self.at(again);
        self.poll()?;
        let first = self.func.get_nth_param(1).ok_or("a parameter is missing")?;
        let from = self.here()?;
        self.jump(head)?;
        index.add_incoming(&[(&first, from)]);
        so_far.add_incoming(&[(&done, from)]);
        self.at(over);
        self.leave(Status::Done)
    }

    /// Goes on with the next group, or returns after the last one.
    fn next_group(&mut self, groups: BasicBlock<'c>, id: PhiValue<'c>) -> EmitResult<()> {
        let last = self.hoisted(Key::LastGroup, |e| {
            let first = e.group_x()?;
            let at = offset_of!(GroupCtx, following) as i64;
            let at = e.offset_const(e.ctx.group()?, at)?;
            let more = e.load(e.cx.i32_type().into(), at)?;
            e.op2(InstructionOpcode::Add, first, more)
        })?;
        let number = self.as_int(id.as_basic_value())?;
        let done = self.icmp(IntPredicate::EQ, number, last)?;
        let (over, more) = (self.new_block(), self.new_block());
        self.branch(done, over, more)?;
        self.at(more);
        let following = self.add_const(number, 1)?;
        // For fault records, and to tell how far the call came.
        let at = self.offset_const(self.ctx.group()?, GROUP_X)?;
        self.store(following, at)?;
        self.jump(groups)?;
        id.add_incoming(&[(&following, more)]);
        self.at(over);
        self.leave(Status::Done)
    }

    fn group_x(&self) -> EmitResult<V<'c>> {
        let at = self.offset_const(self.ctx.group()?, GROUP_X)?;
        self.load(self.cx.i32_type().into(), at)
    }

    fn leave(&self, status: Status) -> EmitResult<()> {
        let status: &dyn BasicValue = &self.i32(status as u32);
        self.b.build_return(Some(status))?;
        Ok(())
    }

    /// Terminates the blocks that grew on demand.
    fn close(&mut self, (to, param): (BasicBlock<'c>, PhiValue<'c>)) -> EmitResult<()> {
        self.lines.set(&self.b, 0);
        let entry = self.ctx.entry()?;
        self.at(entry);
        let first = if let Some((so_far, _)) = self.ctx.status {
            so_far.add_incoming(&[(&self.i32(Status::Done as u32), entry)]);
            let first = self.func.get_nth_param(1);
            first.ok_or("a parameter is missing")?
        } else {
            self.group_x()?
        };
        param.add_incoming(&[(&first, entry)]);
        self.jump(to)?;
        let body = self.blocks.get(Function::ENTRY.0 as usize).copied();
        self.at(need(self.ctx.start)?);
        self.jump(need(body.flatten())?)
    }

    /// Creates a block with its parameters.
    fn declare_block(&mut self, block: Block) -> EmitResult<()> {
        let f = self.f;
        let here = self.new_block();
        self.at(here);
        self.blocks[block.0 as usize] = Some(here);
        for &param in &f.block(block).params {
            let phi = self.b.build_phi(self.type_of(f.ty(param)), "\0")?;
            self.phis[block.0 as usize].push(phi);
            self.bind(param, phi.as_basic_value());
        }
        Ok(())
    }

    fn body(&mut self, block: Block, segment: &Segment) -> EmitResult<()> {
        self.at(need(self.blocks[block.0 as usize])?);
        self.segment(segment, &End::Block(block))
    }

    /// Ends a block.
    pub fn terminator(&mut self, term: &Term) -> EmitResult<()> {
        match term {
            Term::None => Err("a block without a terminator".into()),
            Term::Jump(call) => {
                let to = need(self.blocks[call.block.0 as usize])?;
                self.arguments(call)?;
                self.jump(to)
            }
            Term::Branch { cond, then, other } => {
                let cond = self.get(*cond)?;
                let (then, other) = (self.edge(then)?, self.edge(other)?);
                self.branch(cond, then, other)
            }
            Term::Switch {
                index,
                targets,
                default,
            } => {
                let index = self.get_int(*index)?;
                let default = self.edge(default)?;
                let mut cases = Vec::new();
                for (n, target) in targets.iter().enumerate() {
                    cases.push((self.i32(n as u32), self.edge(target)?));
                }
                self.b.build_switch(index, default, &cases)?;
                Ok(())
            }
            Term::Return => {
                let status = self.ctx.status.map(|(so_far, _)| so_far.as_basic_value());
                self.finish_thread(THREAD_DONE, status)
            }
            Term::Suspend(state) => {
                let status = self.i32(Status::Suspended as u32).into();
                self.finish_thread(*state, Some(status))
            }
        }
    }

    /// Stores the thread's state and goes on with the next thread.
    fn finish_thread(&mut self, state: u32, status: Option<V<'c>>) -> EmitResult<()> {
        if let (Some((_, ended)), Some(status)) = (self.ctx.status, status) {
            let at = offset_of!(ThreadCtx, state) as i64;
            let at = self.offset_const(self.ctx.thread()?, at)?;
            self.store(self.i32(state), at)?;
            ended.add_incoming(&[(&status, self.here()?)]);
        }
        self.jump(need(self.ctx.next)?)
    }

    /// Gives the parameters of a target their values for the jump at the end of the current block.
    fn arguments(&mut self, call: &BlockCall) -> EmitResult<()> {
        let from = self.here()?;
        for (n, &arg) in call.args.iter().enumerate() {
            let v = self.get(arg)?;
            let phi = self.phis[call.block.0 as usize].get(n);
            need(phi)?.add_incoming(&[(&v, from)]);
        }
        Ok(())
    }

    /// Target of one way of a branch. Arguments get a block of their own, since two ways may lead to one block with
    /// different ones; the code generator merges it again.
    fn edge(&mut self, call: &BlockCall) -> EmitResult<BasicBlock<'c>> {
        let to = need(self.blocks[call.block.0 as usize])?;
        if call.args.is_empty() {
            return Ok(to);
        }
        let here = self.here()?;
        let edge = self.new_block();
        self.at(edge);
        self.arguments(call)?;
        self.jump(to)?;
        self.at(here);
        Ok(edge)
    }

    /// Leaves when the launch was interrupted.
    pub fn poll(&mut self) -> EmitResult<()> {
        let at = offset_of!(visa_runtime::abi::LaunchCtx, interrupt);
        let flag = self.launch_field(at, Field::Ptr)?;
        let set = self.load(self.cx.i32_type().into(), self.as_ptr(flag)?)?;
        let inst = set.as_instruction_value().ok_or("no load")?;
        // Acquire, which costs nothing here: what a loop reads must not be taken out of it, as other threads may write it.
        inst.set_alignment(4)
            .map_err(|e| InternalError(e.to_string()))?;
        inst.set_atomic_ordering(inkwell::AtomicOrdering::Acquire)
            .map_err(|e| InternalError(e.to_string()))?;
        let leave = match self.ctx.interrupted {
            Some(block) => block,
            None => self.leave_block(Status::Interrupted)?,
        };
        self.ctx.interrupted = Some(leave);
        let go_on = self.new_block();
        let set = self.icmp(IntPredicate::NE, set, self.i32(0))?;
        self.branch_likely(set, leave, go_on, false)?;
        self.at(go_on);
        Ok(())
    }

    /// Block that returns with `Fault`.
    pub fn fault_exit(&mut self) -> EmitResult<BasicBlock<'c>> {
        let block = match self.ctx.fault {
            Some(block) => block,
            None => self.leave_block(Status::Fault)?,
        };
        self.ctx.fault = Some(block);
        Ok(block)
    }

    fn leave_block(&mut self, status: Status) -> EmitResult<BasicBlock<'c>> {
        let here = self.here()?;
        let block = self.new_block();
        self.at(block);
        self.leave(status)?;
        self.at(here);
        Ok(block)
    }
}
