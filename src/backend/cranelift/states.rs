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
//! The loop for each state has its own copy of the entry block, in which the state is known.

use std::mem::{offset_of, size_of};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, BlockCall as ClifCall, InstBuilder, JumpTableData, Value as V, types,
};
use visa_runtime::abi::{GroupCtx, Status, THREAD_DONE, ThreadCtx};

use super::context::Threads;
use super::emit::{CraneliftEmitter, DATA};
use super::value::Val;
use crate::backend::states::{State, end_bit, is_state};
use crate::ssa::{Function, Value};

/// Where the loop of a state is entered, with the first thread, the thread after the last one, and the status of the threads before.
#[derive(Clone, Copy)]
struct Enter {
    block: ir::Block,
    params: [V; 3],
}

impl CraneliftEmitter<'_> {
    /// Translates the whole function with a loop for each state.
    pub(super) fn program_by_state(&mut self, states: &[State]) {
        let entry = self.ctx.entry;
        let [group, first, end] = self.entry_params();
        self.ctx.group = Some(group);
        let [round, scan] = [self.new_block(), self.new_block()];
        let enters: Vec<Enter> = states
            .iter()
            .map(|_| {
                let block = self.new_block();
                let params = std::array::from_fn(|_| self.param_of(block));
                Enter { block, params }
            })
            .collect();
        self.find_run((scan, round), (first, end), &enters);
        for (number, state) in (0..).zip(states) {
            self.loop_of(number, state, scan, &enters);
            if self.func.dfg.num_insts() > super::MAX_INSTS {
                // The caller refuses the function; what is missing does not matter.
                return;
            }
        }
        self.set_line(0);
        self.block = round;
        let done = self.iconst(types::I32, Status::Done as u64);
        self.jump(scan, &[first, done]);
        self.block = entry;
        self.jump(round, &[]);
    }

    fn param_of(&mut self, block: ir::Block) -> V {
        self.func.dfg.append_block_param(block, types::I32)
    }

    /// The state that the code is for, if a value says in which one the thread was resumed.
    pub(super) fn resumed_in(&self, v: Value) -> Option<u32> {
        let state = self.ctx.threads.only_state?;
        is_state(self.f, v).then_some(state)
    }

    /// Finds the next threads to run, which all have the same state.
    fn find_run(
        &mut self,
        (scan, round): (ir::Block, ir::Block),
        (first, end): (V, V),
        enters: &[Enter],
    ) {
        let [look, skip, over] = std::array::from_fn(|_| self.new_block());
        let [run, extend, found] = std::array::from_fn(|_| self.new_block());
        let [thread, status] = std::array::from_fn(|_| self.param_of(scan));
        self.block = scan;
        let at_end = IntCC::UnsignedGreaterThanOrEqual;
        let none = self.ins().icmp(at_end, thread, end);
        self.branch(none, over, look);

        self.block = look;
        let state = self.state_of(thread);
        let following = self.ins().iadd_imm_u(thread, 1);
        let finished = self
            .ins()
            .icmp_imm_u(IntCC::Equal, state, i64::from(THREAD_DONE));
        self.ins()
            .brif(finished, skip, &[], run, &[following.into()]);
        self.block = skip;
        self.jump(scan, &[following, status]);

        let to = self.param_of(run);
        self.block = run;
        let none = self.ins().icmp(at_end, to, end);
        self.branch(none, found, extend);
        self.block = extend;
        let its = self.state_of(to);
        let same = self.ins().icmp(IntCC::Equal, its, state);
        let longer = self.ins().iadd_imm_u(to, 1);
        self.ins().brif(same, run, &[longer.into()], found, &[]);

        self.block = found;
        let args = [thread, to, status].map(Into::into);
        let lists = &mut self.func.dfg.value_lists;
        let calls: Vec<_> = enters
            .iter()
            .map(|enter| ClifCall::new(enter.block, args, lists))
            .collect();
        match calls.first() {
            Some(&first) => {
                let table = JumpTableData::new(first, &calls);
                let table = self.func.create_jump_table(table);
                self.ins().br_table(state, table);
            }
            None => self.bug("a function without a start"),
        }
        self.block = over;
        self.end_round((first, end), status, |e| e.jump(round, &[]));
    }

    /// The `ThreadCtx` of a thread.
    pub(super) fn context_of(&mut self, thread: V) -> V {
        let threads = self.group_field(offset_of!(GroupCtx, threads), types::I64);
        let wide = self.ins().uextend(types::I64, thread);
        let offset = self.ins().imul_imm_u(wide, size_of::<ThreadCtx>() as i64);
        self.ins().iadd(threads, offset)
    }

    fn state_of(&mut self, thread: V) -> V {
        let context = self.context_of(thread);
        let at = offset_of!(ThreadCtx, state) as i32;
        self.ins().load(types::I32, DATA, context, at)
    }

    /// The loop over the threads of a run.
    fn loop_of(&mut self, number: u32, state: &State, scan: ir::Block, enters: &[Enter]) {
        let Some(&enter) = enters.get(number as usize) else {
            return self.bug("no such state");
        };
        let [from, to, _] = enter.params;
        let [head, start, next, done] = std::array::from_fn(|_| self.new_block());
        self.block = enter.block;
        let none = self.iconst(types::I32, 0);
        self.jump(head, &[from, none]);
        let [index, ends] = std::array::from_fn(|_| self.param_of(head));
        self.block = head;
        let over = self
            .ins()
            .icmp(IntCC::UnsignedGreaterThanOrEqual, index, to);
        self.branch(over, done, start);
        let ended = self.param_of(next);
        self.block = next;
        let following = self.ins().iadd_imm_u(index, 1);
        self.jump(head, &[following, ended]);

        self.block = start;
        let thread = self.context_of(index);
        let resumed = self.iconst(types::I32, number.into());
        self.vals = vec![Val::None; self.f.values.len()];
        self.blocks = vec![None; self.f.blocks.len()];
        self.left_out.clone_from(&state.left_out);
        self.ctx.begin_threads(Threads {
            start: Some(start),
            next: Some(next),
            index: Some(index),
            thread: Some(thread),
            state: Some(resumed),
            only_state: Some(number),
            status: Some(ends),
        });
        self.bodies(|block| state.blocks.contains(&block));
        self.set_line(0);
        let body = self.blocks[Function::ENTRY.0 as usize];
        self.block = start;
        self.jump(body.unwrap_or(start), &[]);
        self.block = done;
        self.end_run(&state.ends, ends, enter, (scan, enters));
    }

    /// After a run of threads, goes on with all that wait in one state if they are the whole group, or looks at the threads after them.
    fn end_run(
        &mut self,
        possible: &[u32],
        ends: V,
        run: Enter,
        (scan, enters): (ir::Block, &[Enter]),
    ) {
        let [from, to, status] = run.params;
        let [all, back] = [self.new_block(), self.new_block()];
        let whole = self.is_group(from, to);
        self.branch(whole, all, back);
        self.block = all;
        for &end in possible {
            let [this, other] = [self.new_block(), self.new_block()];
            let only = i64::from(end_bit(end));
            let only = self.ins().icmp_imm_u(IntCC::Equal, ends, only);
            self.branch(only, this, other);
            self.block = this;
            let done = self.iconst(types::I32, Status::Done as u64);
            match enters.get(end as usize) {
                Some(next) => {
                    self.poll();
                    self.jump(next.block, &[from, to, done]);
                }
                None => {
                    self.ins().return_(&[done]);
                }
            }
            self.block = other;
        }
        self.jump(back, &[]);
        self.block = back;
        let waiting = !end_bit(THREAD_DONE);
        let waiting = self.ins().band_imm_u(ends, i64::from(waiting));
        let suspended = self.iconst(types::I32, Status::Suspended as u64);
        let status = self.ins().select(waiting, suspended, status);
        self.jump(scan, &[to, status]);
    }
}
