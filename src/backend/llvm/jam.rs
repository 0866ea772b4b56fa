//! Unroll and jam of the loop over the threads of a state: several threads side by side, as [`Straight`] says.
//!
//! ```text
//! enter(s) -> jam: as many threads left? -> starts -> bodies, step by step -> jam
//!               └-> head(s) -> ..
//! ```
//!
//! What a thread's translation consists of is kept in [`Thread`], and changes places with the emitter's own for each step.

use std::cell::OnceCell;
use std::mem::{offset_of, swap};

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{InstructionOpcode as I, IntValue, PhiValue};
use rustc_hash::FxHashMap;
use visa_runtime::abi::ThreadCtx;

use super::context::Key;
use super::emit::{EmitResult, LlvmEmitter, V};
use super::thread::ThreadLoop;
use super::values::Values;
use super::versioning::Version;
use crate::backend::access::{Step, Versions};
use crate::backend::straight::Straight;
use crate::ssa::Block;

/// What one of the threads side by side has for itself.
struct Thread<'c> {
    /// Its first block, which reads its fields.
    start: BasicBlock<'c>,
    threads: OnceCell<ThreadLoop<'c>>,
    of_thread: FxHashMap<Key, V<'c>>,
    values: Values<'c>,
    version: Version<'c>,
}

/// The way that all of them go.
#[derive(Clone, Copy)]
struct Way<'c, 's> {
    straight: &'s Straight,
    /// Goes on with the threads after them.
    next: BasicBlock<'c>,
}

/// A step of one of a state's blocks.
#[derive(Clone, Copy)]
struct Place {
    block: usize,
    step: usize,
}

/// The loop over the threads of a state.
pub(super) struct StateLoop<'c> {
    /// Number of the state.
    pub number: u32,
    /// The thread after the last one.
    pub to: V<'c>,
    /// First block of the loop that runs one thread after the other, and its parameters: the thread, and bits of the states in which
    /// threads ended.
    pub head: BasicBlock<'c>,
    pub params: [PhiValue<'c>; 2],
}

/// Threads side by side. With two, sgemm on skl was 1.09 times as fast as with one, with four 1.19 times.
const TOGETHER: u32 = 4;

/// Vector registers that there must be.
const REGISTERS: u32 = 32;

impl<'c> LlvmEmitter<'c, '_> {
    /// Whether the chains of several threads have room in the registers: a thread's vectors have one or two each.
    pub(super) fn may_jam(&self) -> bool {
        let bits = 32 * u32::from(self.f.simd);
        self.cpu.registers() >= REGISTERS && bits <= 2 * self.cpu.vectors
    }

    /// Translates a loop over several threads at a time, which goes on to that over single threads. Returns its first block, and the same
    /// parameters of it.
    pub(super) fn jammed(
        &mut self,
        straight: &Straight,
        looped: &StateLoop<'c>,
    ) -> EmitResult<(BasicBlock<'c>, [PhiValue<'c>; 2])> {
        let [head, next] = [self.new_block(), self.new_block()];
        self.at(head);
        let ty = self.cx.i32_type();
        let params = [self.b.build_phi(ty, "\0")?, self.b.build_phi(ty, "\0")?];
        let [index, ends] = params.map(|param| param.as_basic_value());
        let left = self.op2(I::Sub, looped.to, index)?;
        let enough = self.icmp(IntPredicate::UGE, left, self.i32(TOGETHER))?;
        let first = self.as_int(index)?;
        let mut threads = self.threads_beside(looped.number, first, next)?;
        let start = threads.first().ok_or("no threads")?.start;
        self.at(head);
        self.branch(enough, start, looped.head)?;
        for (param, v) in looped.params.iter().zip([index, ends]) {
            param.add_incoming(&[(&v, head)]);
        }
        let body = self.new_block();
        self.at(body);
        let way = Way { straight, next };
        self.rest(way, Place { block: 0, step: 0 }, &mut threads)?;
        // Each thread's block leads to that of the next one.
        let mut after = body;
        for thread in threads.iter().rev() {
            self.at(thread.start);
            self.jump(after)?;
            after = thread.start;
        }
        self.at(next);
        let following = self.op2(I::Add, index, self.i32(TOGETHER))?;
        let ended = self.with_end(ends, straight.end)?;
        self.jump(head)?;
        for (param, v) in params.iter().zip([following, ended]) {
            param.add_incoming(&[(&v, next)]);
        }
        Ok((head, params))
    }

    fn threads_beside(
        &mut self,
        number: u32,
        first: IntValue<'c>,
        next: BasicBlock<'c>,
    ) -> EmitResult<Vec<Thread<'c>>> {
        let thread = |n| {
            let start = self.new_block();
            self.at(start);
            let index = self.add_const(first, n)?;
            let context = self.context_of(index)?;
            Ok(Thread {
                start,
                threads: OnceCell::from(ThreadLoop {
                    start,
                    next,
                    index,
                    thread: context,
                    state: Some(self.i32(number).into()),
                    only_state: Some(number),
                    status: None,
                    groups: None,
                }),
                of_thread: FxHashMap::default(),
                values: Values::new(self.f),
                version: Version::default(),
            })
        };
        (0..i64::from(TOGETHER)).map(thread).collect()
    }

    /// Does something for one of the threads.
    fn of_thread<T>(
        &mut self,
        thread: &mut Thread<'c>,
        what: impl FnOnce(&mut Self) -> EmitResult<T>,
    ) -> EmitResult<T> {
        self.change_places(thread);
        let made = what(self);
        self.change_places(thread);
        made
    }

    fn change_places(&mut self, thread: &mut Thread<'c>) {
        swap(&mut self.threads, &mut thread.threads);
        swap(self.ctx.of_thread_mut(), &mut thread.of_thread);
        swap(&mut self.values, &mut thread.values);
        swap(&mut self.version, &mut thread.version);
    }

    /// What follows a step of a block, for all threads, to their end.
    fn rest(&mut self, way: Way<'c, '_>, at: Place, threads: &mut [Thread<'c>]) -> EmitResult<()> {
        let (f, plan) = (self.f, self.access_plan);
        for (n, &block) in way.straight.blocks.iter().enumerate().skip(at.block) {
            let segment = plan.segment(block).ok_or("a block without a plan")?;
            let done = if n == at.block { at.step } else { 0 };
            for (step, what) in segment.steps.iter().enumerate().skip(done) {
                if let Step::Versions(versions) = what {
                    let after = Place {
                        block: n,
                        step: step + 1,
                    };
                    return self.versions_beside(versions, (way, after), threads);
                }
                self.for_each(threads, |e| e.step(what))?;
            }
            self.set_line(f.block(block).term_line);
            if let Some(&next) = way.straight.blocks.get(n + 1) {
                self.for_each(threads, |e| e.pass_on(block, next))?;
            }
        }
        self.for_each(threads, |e| {
            let at = offset_of!(ThreadCtx, state) as i64;
            let at = e.offset_const(e.thread()?, at)?;
            e.store(e.i32(way.straight.end), at)
        })?;
        self.set_line(0);
        self.jump(way.next)
    }

    /// Gives the parameters of a block their values on the only way to it.
    fn pass_on(&mut self, from: Block, to: Block) -> EmitResult<()> {
        let f = self.f;
        let targets = f.block(from).term.targets();
        let call = targets.iter().find(|call| call.block == to);
        let call = call.ok_or("a way that leads elsewhere")?;
        for (&param, &arg) in f.block(to).params.iter().zip(&call.args) {
            let v = self.get(arg)?;
            self.bind(param, v);
        }
        Ok(())
    }

    fn for_each(
        &mut self,
        threads: &mut [Thread<'c>],
        mut what: impl FnMut(&mut Self) -> EmitResult<()>,
    ) -> EmitResult<()> {
        let mut threads = threads.iter_mut();
        threads.try_for_each(|thread| self.of_thread(thread, &mut what))
    }

    /// A part of a block in two versions: for when its test holds for all threads, and for when it fails for one. Each has what follows the
    /// part, too. If they met behind it, what the part makes for all threads would not fit into registers.
    fn versions_beside(
        &mut self,
        versions: &Versions,
        (way, after): (Way<'c, '_>, Place),
        threads: &mut [Thread<'c>],
    ) -> EmitResult<()> {
        let mut all: Option<V<'c>> = None;
        let mut offsets = Vec::new();
        for thread in &mut *threads {
            let (ok, at) = self.of_thread(thread, |e| {
                for step in &versions.first {
                    e.step(step)?;
                }
                e.all_inside(versions)
            })?;
            offsets.push(at);
            all = Some(match all {
                Some(others) => self.op2(I::And, others, ok)?,
                None => ok,
            });
        }
        let [fast, other] = [self.new_block(), self.new_block()];
        self.branch_likely(all.ok_or("no threads")?, fast, other, true)?;

        let mut offsets = offsets.iter();
        let around: Vec<_> = threads.iter().map(|t| t.version.clone()).collect();
        self.at(fast);
        self.for_each(threads, |e| {
            e.enter(versions, offsets.next().ok_or("a thread too many")?)
        })?;
        for step in &versions.fast.steps {
            self.for_each(threads, |e| e.step(step))?;
        }
        self.rest(way, after, threads)?;
        for (thread, version) in threads.iter_mut().zip(around) {
            thread.version = version;
        }

        self.at(other);
        let general = versions.other.as_ref();
        let general = general.ok_or("versions without a test")?;
        // One thread after the other, as they may have faults.
        self.for_each(threads, |e| {
            general.steps.iter().try_for_each(|step| e.step(step))
        })?;
        self.rest(way, after, threads)
    }
}
