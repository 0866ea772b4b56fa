//! Code for whole groups with barriers: a loop over the threads for each state.
//!
//! ```text
//! entry -> round -> scan -> look -> run .. -> found -> enter(s) -> head(s) -> start(s) -> body(s) .. -> next(s) -> head(s)
//! ```
//!
//! `scan` looks for the longest run of threads that were resumed in the same state, and the loop of that state runs them. After the last
//! thread, another round begins if a thread waits. Where a run is the whole group and all its threads then wait in one state, the
//! loop of that state follows without a look at the threads.
//!
//! The loop for each state has its own copy of the entry block, in which the state is known. LLVM sees what stays the same in the loop.

use std::mem::{offset_of, size_of};

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{InstructionOpcode as I, IntValue, PhiValue, PointerValue};
use visa_runtime::abi::{GroupCtx, Status, THREAD_DONE, ThreadCtx};

use super::blocks::Blocks;
use super::context::Field;
use super::emit::{EmitResult, LlvmEmitter, V};
use super::jam::StateLoop;
use super::kept::Kept;
use super::thread::ThreadLoop;
use super::values::Values;
use crate::backend::states::{State, end_bit, is_state};
use crate::backend::straight::Straight;
use crate::ssa::{Function, Value};

/// Where the loop of a state is entered.
struct Enter<'c> {
    block: BasicBlock<'c>,
    /// The first thread.
    from: PhiValue<'c>,
    /// The thread after the last one.
    to: PhiValue<'c>,
    /// Status of the threads before them.
    status: PhiValue<'c>,
}

impl<'c> Enter<'c> {
    fn add(&self, before: BasicBlock<'c>, [from, to, status]: [V<'c>; 3]) {
        self.from.add_incoming(&[(&from, before)]);
        self.to.add_incoming(&[(&to, before)]);
        self.status.add_incoming(&[(&status, before)]);
    }
}

/// Where threads are looked at.
struct Scan<'c> {
    block: BasicBlock<'c>,
    thread: PhiValue<'c>,
    status: PhiValue<'c>,
}

impl<'c> Scan<'c> {
    fn add(&self, before: BasicBlock<'c>, thread: V<'c>, status: V<'c>) {
        self.thread.add_incoming(&[(&thread, before)]);
        self.status.add_incoming(&[(&status, before)]);
    }
}

impl<'c> LlvmEmitter<'c, '_> {
    /// Translates the whole function with a loop for each state.
    pub(super) fn program_by_state(&mut self, states: &[State]) -> EmitResult<()> {
        let [round, scan] = [self.new_block(), self.new_block()];
        self.at(scan);
        let scan = Scan {
            block: scan,
            thread: self.b.build_phi(self.cx.i32_type(), "\0")?,
            status: self.b.build_phi(self.cx.i32_type(), "\0")?,
        };
        let enters: Vec<_> = states
            .iter()
            .map(|_| self.entrance())
            .collect::<EmitResult<_>>()?;
        self.find_run(&scan, &enters, round)?;
        for (number, state) in (0..).zip(states) {
            self.loop_of(number, state, &scan, &enters)?;
        }
        self.set_line(0);
        self.at(round);
        self.jump(scan.block)?;
        scan.add(round, self.param(1)?, self.i32(Status::Done as u32).into());
        self.at(self.ctx.entry);
        self.jump(round)?;
        self.finish_lines();
        Ok(())
    }

    /// The state that the code is for, if a value says in which one the thread was resumed.
    pub(super) fn resumed_in(&self, v: Value) -> Option<u32> {
        let state = self.threads.get()?.only_state?;
        is_state(self.f, v).then_some(state)
    }

    fn entrance(&self) -> EmitResult<Enter<'c>> {
        let block = self.new_block();
        self.at(block);
        let ty = self.cx.i32_type();
        Ok(Enter {
            block,
            from: self.b.build_phi(ty, "\0")?,
            to: self.b.build_phi(ty, "\0")?,
            status: self.b.build_phi(ty, "\0")?,
        })
    }

    /// Finds the next threads to run, which all have the same state.
    fn find_run(
        &mut self,
        scan: &Scan<'c>,
        enters: &[Enter<'c>],
        round: BasicBlock<'c>,
    ) -> EmitResult<()> {
        let end = self.param(2)?;
        let [look, skip, over] = std::array::from_fn(|_| self.new_block());
        let [run, extend, found] = std::array::from_fn(|_| self.new_block());
        self.at(scan.block);
        let thread = self.as_int(scan.thread.as_basic_value())?;
        let status = scan.status.as_basic_value();
        let none = self.icmp(IntPredicate::UGE, thread, end)?;
        self.branch(none, over, look)?;

        self.at(look);
        let state = self.state_of(thread)?;
        let following = self.add_const(thread, 1)?;
        let finished = self.icmp(IntPredicate::EQ, state, self.i32(THREAD_DONE))?;
        self.branch(finished, skip, run)?;
        self.at(skip);
        self.jump(scan.block)?;
        scan.add(skip, following.into(), status);

        self.at(run);
        let to = self.b.build_phi(self.cx.i32_type(), "\0")?;
        to.add_incoming(&[(&following, look)]);
        let more = self.icmp(IntPredicate::ULT, to.as_basic_value(), end)?;
        self.branch(more, extend, found)?;
        self.at(extend);
        let next = self.as_int(to.as_basic_value())?;
        let its = self.state_of(next)?;
        let same = self.icmp(IntPredicate::EQ, its, state)?;
        let next = self.add_const(next, 1)?;
        to.add_incoming(&[(&next, extend)]);
        self.branch(same, run, found)?;

        self.at(found);
        let cases: Vec<_> = (0..)
            .zip(enters)
            .skip(1)
            .map(|(state, enter)| (self.i32(state), enter.block))
            .collect();
        let first = enters.first().ok_or("a function without a start")?;
        let state = self.as_int(state)?;
        self.b.build_switch(state, first.block, &cases)?;
        for enter in enters {
            enter.add(found, [thread.into(), to.as_basic_value(), status]);
        }
        self.at(over);
        self.end_round(status, |e| e.jump(round))
    }

    /// Whether these are all threads of the group.
    pub(super) fn is_group(&mut self, from: V<'c>, to: V<'c>) -> EmitResult<V<'c>> {
        let threads = self.op2(I::Sub, to, from)?;
        let group = self.group_field(offset_of!(GroupCtx, thread_count), Field::I32)?;
        self.icmp(IntPredicate::EQ, threads, self.as_int(group)?)
    }

    /// The `ThreadCtx` of a thread.
    pub(super) fn context_of(&mut self, thread: IntValue<'c>) -> EmitResult<PointerValue<'c>> {
        let threads = self.group_field(offset_of!(GroupCtx, threads), Field::Ptr)?;
        let size = self.i64(size_of::<ThreadCtx>() as u64);
        let wide = self.resize(thread, 64)?;
        let distance = self.op2(I::Mul, wide, size)?;
        self.offset(self.as_ptr(threads)?, self.as_int(distance)?)
    }

    /// The state of a thread.
    fn state_of(&mut self, thread: IntValue<'c>) -> EmitResult<V<'c>> {
        let context = self.context_of(thread)?;
        let at = self.offset_const(context, offset_of!(ThreadCtx, state) as i64)?;
        self.load(self.cx.i32_type().into(), at)
    }

    /// The loop over the threads of a run.
    fn loop_of(
        &mut self,
        number: u32,
        state: &State,
        scan: &Scan<'c>,
        enters: &[Enter<'c>],
    ) -> EmitResult<()> {
        let enter = enters.get(number as usize).ok_or("no such state")?;
        let [head, start, next, done] = std::array::from_fn(|_| self.new_block());
        let ty = self.cx.i32_type();
        self.at(head);
        let (index, ends) = (self.b.build_phi(ty, "\0")?, self.b.build_phi(ty, "\0")?);
        let thread = self.as_int(index.as_basic_value())?;
        let over = self.icmp(IntPredicate::UGE, thread, enter.to.as_basic_value())?;
        self.branch(over, done, start)?;
        self.at(next);
        let ended = self.b.build_phi(ty, "\0")?;
        let following = self.add_const(thread, 1)?;
        self.jump(head)?;
        index.add_incoming(&[(&following, next)]);
        ends.add_incoming(&[(&ended.as_basic_value(), next)]);

        self.at(start);
        let context = self.context_of(thread)?;
        self.left_out.clone_from(&state.left_out);
        self.kept = state
            .keeps_local
            .then(|| Kept::new(enter.block, self.cpu.registers() / 2));
        self.begin_again(ThreadLoop {
            start,
            next,
            index: thread,
            thread: context,
            state: Some(self.i32(number).into()),
            only_state: Some(number),
            status: Some((ends, ended)),
            groups: None,
        });
        let plan = self.access_plan;
        let mut blocks = Vec::new();
        for (block, segment) in plan.blocks() {
            if state.blocks.contains(block) {
                self.declare_block(*block)?;
                blocks.push((*block, segment));
            }
        }
        for (block, segment) in blocks {
            self.body(block, segment)?;
        }
        self.set_line(0);
        self.at(start);
        self.jump(self.blocks.of(Function::ENTRY)?)?;
        let looped = StateLoop {
            number,
            to: enter.to.as_basic_value(),
            head,
            params: [index, ends],
        };
        let straight = self
            .may_jam()
            .then(|| Straight::new(self.f, plan, number, state));
        let (first, params) = match straight.flatten() {
            Some(straight) => self.jammed(&straight, &looped)?,
            None => (head, looped.params),
        };
        let before = self
            .kept
            .take()
            .map_or(enter.block, |kept| kept.last_block());
        self.at(before);
        self.jump(first)?;
        let from = [enter.from.as_basic_value(), self.i32(0).into()];
        for (param, v) in params.iter().zip(from) {
            param.add_incoming(&[(&v, before)]);
        }
        self.at(done);
        self.end_run(&state.ends, ends.as_basic_value(), enter, (scan, enters))
    }

    /// After a run of threads, goes on with all that wait in one state if they are the whole group, or looks at the threads after them.
    fn end_run(
        &mut self,
        possible: &[u32],
        ends: V<'c>,
        run: &Enter<'c>,
        (scan, enters): (&Scan<'c>, &[Enter<'c>]),
    ) -> EmitResult<()> {
        let [all, back, over] = std::array::from_fn(|_| self.new_block());
        let (from, to) = (run.from.as_basic_value(), run.to.as_basic_value());
        let done = self.i32(Status::Done as u32);
        let whole = self.is_group(from, to)?;
        self.branch_likely(whole, all, back, true)?;
        let mut cases = Vec::new();
        for &end in possible {
            let block = self.new_block();
            cases.push((self.i32(end_bit(end)), block));
            self.at(block);
            if end == THREAD_DONE {
                self.jump(over)?;
                continue;
            }
            let next = enters.get(end as usize).ok_or("no such state")?;
            self.poll()?;
            next.add(self.here()?, [from, to, done.into()]);
            self.jump(next.block)?;
        }
        self.at(all);
        self.b.build_switch(self.as_int(ends)?, back, &cases)?;
        self.at(over);
        self.b.build_return(Some(&done))?;
        self.at(back);
        let waiting = self.op2(I::And, ends, self.i32(!end_bit(THREAD_DONE)))?;
        let none = self.icmp(IntPredicate::EQ, waiting, self.i32(0))?;
        let suspended = self.i32(Status::Suspended as u32);
        let status = self.select(none, run.status.as_basic_value(), suspended)?;
        scan.add(back, to, status);
        self.jump(scan.block)
    }

    /// Bits of the states that threads ended in, with that of one more.
    pub(super) fn with_end(&self, ends: V<'c>, state: u32) -> EmitResult<V<'c>> {
        self.op2(I::Or, ends, self.i32(end_bit(state)))
    }

    /// Nothing is translated yet for these threads.
    fn begin_again(&mut self, threads: ThreadLoop<'c>) {
        self.threads = threads.into();
        self.ctx.forget_thread();
        self.blocks = Blocks::new(self.f);
        self.values = Values::new(self.f);
    }
}
