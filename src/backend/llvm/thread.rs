//! The thread loop.
//!
//! ```text
//! entry(group, first, end) -> head(index, status) -> check -> start -> body ... -> next -> head
//! ```
//!
//! It is that of every code generator for this ABI. In functions with barriers, `check` skips finished threads, `Return` marks
//! the thread as finished, and `Suspend` remembers the barrier. Both go on with the next thread. Code for whole groups
//! ([`BarrierLoop::Code`]) returns to `head` until no thread waits, or has a loop for each state (`states.rs`). Functions without barriers run group after group, and row after
//! row of groups:
//!
//! ```text
//! entry -> row(first) -> groups(id) -> head ... -> exit -> groups(id + 1), or after the last of a row -> row(0)
//! ```

use std::mem::offset_of;

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValue, InstructionOpcode, IntValue, PhiValue, PointerValue};
use visa_runtime::abi::{GroupCtx, Status, THREAD_DONE, ThreadCtx};

use super::context::{Field, Key};
use super::emit::{EmitResult, InternalError, LlvmEmitter, V};
use super::versioning::End;
use crate::backend::access::Segment;
use crate::backend::barrier_loop::BarrierLoop;
use crate::backend::states::State;
use crate::ssa::{Block, Function};

/// Offsets of the group's number in x, y and z.
const GROUP_X: i64 = offset_of!(GroupCtx, r0) as i64 + 4;
const GROUP_Y: i64 = offset_of!(GroupCtx, r0) as i64 + 4 * 6;
const GROUP_Z: i64 = offset_of!(GroupCtx, r0) as i64 + 4 * 7;

/// The thread that is run: made in front of the body, and the same everywhere in it.
pub(super) struct ThreadLoop<'c> {
    /// Reads the fields of the thread.
    pub start: BasicBlock<'c>,
    /// Goes on with the thread after it.
    pub next: BasicBlock<'c>,
    /// Its number.
    pub index: IntValue<'c>,
    /// Its `ThreadCtx`.
    pub thread: PointerValue<'c>,
    /// Its state when it was resumed, when threads can wait.
    pub state: Option<V<'c>>,
    /// That state, where the code is for one.
    pub only_state: Option<u32>,
    /// When threads can wait, the status before the thread that ends and after it. Where the code is for one state, there are bits of the
    /// states that threads ended in instead of a status.
    pub status: Option<(PhiValue<'c>, PhiValue<'c>)>,
    /// Where one call runs several groups.
    pub groups: Option<Groups<'c>>,
}

/// The loop over groups around that over threads.
pub(super) struct Groups<'c> {
    /// First block of a row: the row's number in y and z.
    pub row: BasicBlock<'c>,
    /// First block of a group.
    block: BasicBlock<'c>,
    /// Number of the group in x.
    pub id: V<'c>,
}

/// Where the loop is entered, and the parameter there.
type Head<'c> = (BasicBlock<'c>, PhiValue<'c>);

/// Blocks that leave the function early: one for each status, made where the first code needs it.
#[derive(Default)]
pub(super) struct Exits<'c>(Vec<(Status, BasicBlock<'c>)>);

impl<'c> LlvmEmitter<'c, '_> {
    /// Translates the whole function.
    pub(super) fn program(
        &mut self,
        barrier_loop: BarrierLoop,
        states: Option<&[State]>,
    ) -> EmitResult<()> {
        if let Some(states) = states {
            return self.program_by_state(states);
        }
        let (threads, head) = self.thread_loop(barrier_loop)?;
        self.threads
            .set(threads)
            .map_err(|_| "a second thread loop")?;
        let plan = self.access_plan;
        for &(block, _) in plan.blocks() {
            self.declare_block(block)?;
        }
        for (block, segment) in plan.blocks() {
            self.body(*block, segment)?;
        }
        self.close(head)
    }

    /// The thread that the body is for.
    pub(super) fn threads(&self) -> EmitResult<&ThreadLoop<'c>> {
        let threads = self.threads.get();
        threads.ok_or_else(|| "a thread's value is used outside the thread loop".into())
    }

    pub(super) fn param(&self, n: u32) -> EmitResult<V<'c>> {
        let param = self.func.get_nth_param(n);
        param.ok_or_else(|| "a parameter is missing".into())
    }

    /// Everything around the body.
    fn thread_loop(&mut self, barrier_loop: BarrierLoop) -> EmitResult<(ThreadLoop<'c>, Head<'c>)> {
        let (first, end) = (self.param(1)?, self.param(2)?);
        let [head, check, start, exit, next] = std::array::from_fn(|_| self.new_block());
        let i32_type = self.cx.i32_type();

        self.at(head);
        let index = self.b.build_phi(i32_type, "\0")?;
        let status = match barrier_loop {
            BarrierLoop::None => None,
            BarrierLoop::Runtime | BarrierLoop::Code => {
                let so_far = self.b.build_phi(i32_type, "\0")?;
                let ended = self.aside(next, |e| Ok(e.b.build_phi(i32_type, "\0")?))?;
                Some((so_far, ended))
            }
        };
        let number = self.as_int(index.as_basic_value())?;
        let over = self.icmp(IntPredicate::UGE, number, end)?;
        self.branch(over, exit, check)?;

        self.at(check);
        let thread = self.context_of(number)?;
        let state = if let Some(status) = status {
            Some(self.skip_finished(thread, status, start, next)?)
        } else {
            self.jump(start)?;
            None
        };

        self.at(next);
        let following = self.add_const(number, 1)?;
        self.jump(head)?;
        index.add_incoming(&[(&following, next)]);
        let (head, groups) = if let Some((so_far, ended)) = status {
            so_far.add_incoming(&[(&ended.as_basic_value(), next)]);
            self.at(exit);
            if barrier_loop == BarrierLoop::Code {
                let done = self.i32(Status::Done as u32);
                self.end_round(so_far.as_basic_value(), |e| {
                    let from = e.here()?;
                    index.add_incoming(&[(&first, from)]);
                    so_far.add_incoming(&[(&done, from)]);
                    e.jump(head)
                })?;
            } else {
                self.b.build_return(Some(&so_far.as_basic_value()))?;
            }
            ((head, index), None)
        } else {
            let (row, groups) = (self.new_block(), self.new_block());
            self.at(groups);
            let id = self.b.build_phi(i32_type, "\0")?;
            self.jump(head)?;
            index.add_incoming(&[(&first, groups)]);
            let first_id = self.aside(row, |e| Ok(e.b.build_phi(i32_type, "\0")?))?;
            id.add_incoming(&[(&first_id.as_basic_value(), row)]);
            self.at(exit);
            self.next_group(groups, id)?;
            self.next_row((row, first_id))?;
            let groups = Groups {
                row,
                block: groups,
                id: id.as_basic_value(),
            };
            ((row, first_id), Some(groups))
        };
        let threads = ThreadLoop {
            start,
            next,
            index: number,
            thread,
            state,
            only_state: None,
            status,
            groups,
        };
        Ok((threads, head))
    }

    /// Goes to the next thread if this one is finished. Returns its state.
    fn skip_finished(
        &mut self,
        thread: PointerValue<'c>,
        (so_far, ended): (PhiValue<'c>, PhiValue<'c>),
        start: BasicBlock<'c>,
        next: BasicBlock<'c>,
    ) -> EmitResult<V<'c>> {
        let at = self.offset_const(thread, offset_of!(ThreadCtx, state) as i64)?;
        let state = self.load(self.cx.i32_type().into(), at)?;
        let done = self.icmp(IntPredicate::EQ, state, self.i32(THREAD_DONE))?;
        self.branch(done, next, start)?;
        ended.add_incoming(&[(&so_far.as_basic_value(), self.here()?)]);
        Ok(state)
    }

    /// Lets all threads go on if any of them waits, by a jump; returns when they are finished, or where the call is not for the whole group.
    pub(super) fn end_round(
        &mut self,
        status: V<'c>,
        jump: impl FnOnce(&mut Self) -> EmitResult<()>,
    ) -> EmitResult<()> {
        let (wait, again, over) = (self.new_block(), self.new_block(), self.new_block());
        let done = self.i32(Status::Done as u32);
        let finished = self.icmp(IntPredicate::EQ, status, done)?;
        self.branch(finished, over, wait)?;
        self.at(wait);
        let all = self.is_group(self.param(1)?, self.param(2)?)?;
        self.branch(all, again, over)?;
        self.at(again);
        self.poll()?;
        jump(self)?;
        self.at(over);
        self.b.build_return(Some(&status))?;
        Ok(())
    }

    /// Goes on with the next group of the row, if this is not the last one.
    fn next_group(&mut self, groups: BasicBlock<'c>, id: PhiValue<'c>) -> EmitResult<()> {
        let last = self.hoisted(Key::LastGroup, |e| {
            let first = e.group_word(GROUP_X)?;
            let at = offset_of!(GroupCtx, following) as i64;
            let at = e.offset_const(e.group(), at)?;
            let more = e.load(e.cx.i32_type().into(), at)?;
            e.op2(InstructionOpcode::Add, first, more)
        })?;
        let number = self.as_int(id.as_basic_value())?;
        let done = self.icmp(IntPredicate::EQ, number, last)?;
        let (last_in_row, more) = (self.new_block(), self.new_block());
        self.branch_likely(done, last_in_row, more, false)?;
        self.at(more);
        let following = self.add_const(number, 1)?;
        // For fault records, and to tell how far the call came.
        self.set_group_word(GROUP_X, following)?;
        self.jump(groups)?;
        id.add_incoming(&[(&following, more)]);
        self.at(last_in_row);
        Ok(())
    }

    /// Goes on with the next row of groups, or returns after the last one.
    fn next_row(&mut self, (row, first_id): Head<'c>) -> EmitResult<()> {
        let rows = offset_of!(GroupCtx, rows) as i64;
        let zero = self.i32(0);
        let left = self.group_word(rows)?;
        let done = self.icmp(IntPredicate::EQ, left, zero)?;
        let (over, more) = (self.new_block(), self.new_block());
        self.branch(done, over, more)?;
        self.at(more);
        let left = self.op2(InstructionOpcode::Sub, left, self.i32(1))?;
        self.set_group_word(rows, left)?;
        self.set_group_word(GROUP_X, zero)?;
        let y = self.add_const(self.as_int(self.group_word(GROUP_Y)?)?, 1)?;
        let height = self.group_word(offset_of!(GroupCtx, height) as i64)?;
        let wraps = self.icmp(IntPredicate::EQ, y, height)?;
        let y = self.select(wraps, zero, y)?;
        self.set_group_word(GROUP_Y, y)?;
        let carry = self.resize(self.as_int(wraps)?, 32)?;
        let z = self.op2(InstructionOpcode::Add, self.group_word(GROUP_Z)?, carry)?;
        self.set_group_word(GROUP_Z, z)?;
        self.jump(row)?;
        first_id.add_incoming(&[(&zero, more)]);
        self.at(over);
        self.leave(Status::Done)
    }

    /// A word of the group's context that changes from row to row.
    fn group_word(&self, at: i64) -> EmitResult<V<'c>> {
        let at = self.offset_const(self.group(), at)?;
        self.load(self.cx.i32_type().into(), at)
    }

    fn set_group_word(&self, at: i64, word: impl Into<V<'c>>) -> EmitResult<()> {
        let at = self.offset_const(self.group(), at)?;
        self.store(word.into(), at)
    }

    fn leave(&self, status: Status) -> EmitResult<()> {
        let status: &dyn BasicValue = &self.i32(status as u32);
        self.b.build_return(Some(status))?;
        Ok(())
    }

    /// Terminates the blocks that grew on demand. Nothing follows any more.
    fn close(&mut self, (to, param): Head<'c>) -> EmitResult<()> {
        self.set_line(0);
        let threads = self.threads()?;
        let (start, status) = (threads.start, threads.status);
        let groups = threads.groups.as_ref().map(|all| (all.row, all.block));
        let entry = self.ctx.entry;
        self.at(entry);
        let first = if let Some((so_far, _)) = status {
            so_far.add_incoming(&[(&self.i32(Status::Done as u32), entry)]);
            self.param(1)?
        } else {
            self.group_word(GROUP_X)?
        };
        param.add_incoming(&[(&first, entry)]);
        self.jump(to)?;
        if let Some((row, groups)) = groups {
            self.at(row);
            self.jump(groups)?;
        }
        self.at(start);
        self.jump(self.blocks.of(Function::ENTRY)?)?;
        self.finish_lines();
        Ok(())
    }

    pub(super) fn body(&mut self, block: Block, segment: &Segment) -> EmitResult<()> {
        self.at(self.blocks.of(block)?);
        self.segment(segment, &End::Block(block))
    }

    /// The thread is finished.
    pub(super) fn thread_done(&self) -> EmitResult<()> {
        self.end_thread(THREAD_DONE)
    }

    /// The thread waits, and is called again with this state.
    pub(super) fn thread_waits(&self, state: u32) -> EmitResult<()> {
        self.end_thread(state)
    }

    /// Stores the thread's state and goes on with the next thread.
    fn end_thread(&self, state: u32) -> EmitResult<()> {
        let threads = self.threads()?;
        if let Some((before, after)) = threads.status {
            let at = offset_of!(ThreadCtx, state) as i64;
            let at = self.offset_const(threads.thread, at)?;
            self.store(self.i32(state), at)?;
            let before = before.as_basic_value();
            let status = match threads.only_state {
                Some(_) => self.with_end(before, state)?,
                None if state == THREAD_DONE => before,
                None => self.i32(Status::Suspended as u32).into(),
            };
            after.add_incoming(&[(&status, self.here()?)]);
        }
        self.jump(threads.next)
    }

    /// Leaves when the launch was interrupted.
    pub(super) fn poll(&mut self) -> EmitResult<()> {
        let at = offset_of!(visa_runtime::abi::LaunchCtx, interrupt);
        let flag = self.launch_field(at, Field::Ptr)?;
        let set = self.load(self.cx.i32_type().into(), self.as_ptr(flag)?)?;
        let inst = set.as_instruction_value().ok_or("no load")?;
        // Acquire, which costs nothing here: what a loop reads must not be taken out of it, as other threads may write it.
        inst.set_alignment(4)
            .map_err(|e| InternalError(e.to_string()))?;
        inst.set_atomic_ordering(inkwell::AtomicOrdering::Acquire)
            .map_err(|e| InternalError(e.to_string()))?;
        let leave = self.exit(Status::Interrupted)?;
        let go_on = self.new_block();
        let set = self.icmp(IntPredicate::NE, set, self.i32(0))?;
        self.branch_likely(set, leave, go_on, false)?;
        self.at(go_on);
        Ok(())
    }

    /// Block that returns with `Fault`.
    pub(super) fn fault_exit(&mut self) -> EmitResult<BasicBlock<'c>> {
        self.exit(Status::Fault)
    }

    /// Block that returns with a status.
    pub(super) fn exit(&mut self, status: Status) -> EmitResult<BasicBlock<'c>> {
        if let Some(&(_, block)) = self.exits.0.iter().find(|(of, _)| *of == status) {
            return Ok(block);
        }
        let block = self.new_block();
        self.aside(block, |e| e.leave(status))?;
        self.exits.0.push((status, block));
        Ok(block)
    }
}
