//! State of one function's translation, and where its instructions go.

use std::cell::{Cell, OnceCell};

use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{
    BasicMetadataValueEnum, BasicValueEnum, FunctionValue, IntValue, PointerValue, VectorValue,
};
use rustc_hash::FxHashSet;
use target_lexicon::Architecture;

use super::block_access::LanesOfBlocks;
use super::blocks::Blocks;
use super::calls::Intrinsics;
use super::compare::Comparisons;
use super::context;
use super::cpu::TargetCpu;
use super::kept::Kept;
use super::lines::Lines;
use super::thread::{Exits, ThreadLoop};
use super::values::Values;
use super::versioning::Version;
use super::words::Words;
use crate::backend::CodegenOptions;
use crate::backend::access::{AccessPlan, Limits, MaskedStores, Scope, Speculation};
use crate::backend::calls::Call;
use crate::backend::prefetch::Fetches;
use crate::ssa::{Function, Inst};

/// Name of blocks that only go on with the one in front, see [`LlvmEmitter::cut`].
pub(super) const CUT: &str = "cut";

/// An LLVM value.
pub(super) type V<'c> = BasicValueEnum<'c>;

/// Why translation stopped: a bug of this code generator or of whatever made the SSA.
#[derive(Debug)]
pub(super) struct InternalError(pub String);

/// A result of translation.
pub(super) type EmitResult<T> = Result<T, InternalError>;

impl From<BuilderError> for InternalError {
    fn from(error: BuilderError) -> InternalError {
        InternalError(error.to_string())
    }
}

impl From<&str> for InternalError {
    fn from(what: &str) -> InternalError {
        InternalError(what.to_owned())
    }
}

/// What code for a processor can do with accesses.
pub(super) fn limits(options: &CodegenOptions, cpu: &TargetCpu) -> Limits {
    Limits {
        oob: options.oob,
        bounds: options.tuning.bounds,
        gather: options.tuning.gather,
        many: false,
        scope: Scope::Parts,
        gathers: cpu.avx2,
        scatters: cpu.avx512,
        slow_gathers: cpu.slow_gathers,
        masked_stores: match cpu.avx512 {
            true => MaskedStores::Instruction,
            false => MaskedStores::None,
        },
        speculation: Speculation::Masked,
        tests_local_ids: false,
        long_runs: true,
        whole_rows: false,
        vec4_versions: true,
        rolls: false,
        store_loops: true,
        inline_faults: false,
        rare_messages: false,
        rare_addresses: true,
        asks_once: false,
        unaligned_atomics: cpu.target.architecture == Architecture::X86_64,
    }
}

/// Translates one SSA function into one LLVM function.
///
/// What changes on the way, and what changes it:
/// * Of the function: `threads` is there once; `blocks` are declared in front of the body; `ctx`, `exits` and intrinsics grow where
///   code first needs something.
/// * Of a version of a part of a block: `version`, and those of the `values` that are made there. [`LlvmEmitter::in_version`] gives back what
///   was there before. Of a block as a whole there is nothing.
/// * Of an instruction: where it goes and its line, by [`LlvmEmitter::at`], [`LlvmEmitter::aside`] and [`LlvmEmitter::set_line`].
pub(super) struct LlvmEmitter<'c, 'f> {
    /// The SSA.
    pub f: &'f Function,
    /// Policies.
    pub options: &'f CodegenOptions,
    /// What the processor has.
    pub cpu: &'f TargetCpu,
    /// Owner of types and constants.
    pub cx: &'c Context,
    /// Owner of the function.
    pub module: &'f Module<'c>,
    /// The LLVM function.
    pub func: FunctionValue<'c>,
    /// How accesses are done, and which parts of blocks have two versions.
    pub access_plan: &'f AccessPlan,
    /// Appends instructions.
    pub b: Builder<'c>,
    lines: Lines<'c>,
    /// Line of what is translated.
    pub line: Cell<u32>,
    /// Calls of the runtime, in order.
    pub calls: Vec<Call>,
    /// What is made once a call or once a thread.
    pub ctx: context::EmitContext<'c>,
    /// The thread that the body is for; none in front of the body.
    pub threads: OnceCell<ThreadLoop<'c>>,
    /// Operations since the last label, of those whose order is to be kept.
    pub unlabelled: u32,
    /// Instructions that the state which is translated does without.
    pub left_out: FxHashSet<Inst>,
    /// Loads in front of the loop over the threads of a state; none where a thread may change what they read.
    pub kept: Option<Kept<'c>>,
    /// Blocks that leave the function early.
    pub exits: Exits<'c>,
    /// Blocks of the SSA.
    pub blocks: Blocks<'c>,
    /// Values of the SSA.
    pub values: Values<'c>,
    /// What is known in the version that is translated.
    pub version: Version<'c>,
    /// Intrinsics that code calls.
    pub intrinsics: Intrinsics<'c>,
    /// What loads fetch.
    pub fetches: Fetches,
    /// What is known about comparisons.
    pub comparisons: Comparisons,
    /// Truncations that are done by permutations.
    pub words: Words,
    /// Lanes of block loads.
    pub lanes_of_blocks: LanesOfBlocks<'c>,
}

impl<'c, 'f> LlvmEmitter<'c, 'f> {
    /// Ready to translate `f` into `func`.
    pub(super) fn new(
        f: &'f Function,
        options: &'f CodegenOptions,
        cpu: &'f TargetCpu,
        cx: &'c Context,
        (module, func): (&'f Module<'c>, FunctionValue<'c>),
        access_plan: &'f AccessPlan,
    ) -> EmitResult<LlvmEmitter<'c, 'f>> {
        let Some(V::PointerValue(group)) = func.get_nth_param(0) else {
            return Err("a function without the group's context".into());
        };
        let entry = cx.append_basic_block(func, "\0");
        Ok(LlvmEmitter {
            f,
            options,
            cpu,
            cx,
            module,
            func,
            access_plan,
            b: cx.create_builder(),
            lines: Lines::new(cx, module, func),
            line: Cell::new(0),
            calls: Vec::new(),
            ctx: context::EmitContext::new(entry, group),
            threads: OnceCell::new(),
            unlabelled: 0,
            left_out: FxHashSet::default(),
            kept: None,
            exits: Exits::default(),
            blocks: Blocks::new(f),
            values: Values::new(f),
            version: Version::default(),
            intrinsics: Intrinsics::default(),
            fetches: Fetches::new(f, options.tuning.prefetch),
            comparisons: Comparisons::new(f),
            words: Words::new(f),
            lanes_of_blocks: LanesOfBlocks::new(f),
        })
    }

    /// A new block at the end of the function.
    pub(super) fn new_block(&self) -> BasicBlock<'c> {
        self.cx.append_basic_block(self.func, "\0")
    }

    /// The block that instructions are appended to.
    pub(super) fn here(&self) -> EmitResult<BasicBlock<'c>> {
        self.b
            .get_insert_block()
            .ok_or_else(|| "no current block".into())
    }

    /// Goes on in another block.
    pub(super) fn at(&self, block: BasicBlock<'c>) {
        self.b.position_at_end(block);
    }

    /// Fills another block, and goes on here.
    pub(super) fn aside<T>(
        &mut self,
        block: BasicBlock<'c>,
        fill: impl FnOnce(&mut Self) -> EmitResult<T>,
    ) -> EmitResult<T> {
        let here = self.here()?;
        self.at(block);
        let made = fill(self)?;
        self.at(here);
        Ok(made)
    }

    /// Source line of the instructions that follow, 0 for none.
    pub(super) fn set_line(&self, line: u32) {
        self.line.set(line);
        self.lines.set(&self.b, line);
    }

    /// No instruction follows any more.
    pub(super) fn finish_lines(&self) {
        self.lines.finish();
    }

    /// Jumps.
    pub(super) fn jump(&self, to: BasicBlock<'c>) -> EmitResult<()> {
        self.b.build_unconditional_branch(to)?;
        Ok(())
    }

    /// Goes on in a new block that comes after this one only. LLVM's usual effort makes one block of both.
    pub(super) fn cut(&self) -> EmitResult<()> {
        let next = self.cx.append_basic_block(self.func, CUT);
        self.jump(next)?;
        self.at(next);
        Ok(())
    }

    /// Branches.
    pub(super) fn branch(
        &self,
        cond: V<'c>,
        then: BasicBlock<'c>,
        other: BasicBlock<'c>,
    ) -> EmitResult<()> {
        let cond = self.as_int(cond)?;
        self.b.build_conditional_branch(cond, then, other)?;
        Ok(())
    }

    /// Branches to `then` nearly always, or nearly never.
    pub(super) fn branch_likely(
        &self,
        cond: V<'c>,
        then: BasicBlock<'c>,
        other: BasicBlock<'c>,
        likely: bool,
    ) -> EmitResult<()> {
        let cond = self.as_int(cond)?;
        let branch = self.b.build_conditional_branch(cond, then, other)?;
        let weights = if likely { [2000, 1] } else { [1, 2000] };
        let name: BasicMetadataValueEnum = self.cx.metadata_string("branch_weights").into();
        let [a, b] = weights.map(|w| BasicMetadataValueEnum::from(self.i32(w)));
        let node = self.cx.metadata_node(&[name, a, b]);
        let kind = self.cx.get_kind_id("prof");
        branch
            .set_metadata(node, kind)
            .map_err(|e| InternalError(e.to_string()))
    }

    /// A scalar integer.
    pub(super) fn as_int(&self, v: V<'c>) -> EmitResult<IntValue<'c>> {
        match v {
            V::IntValue(i) => Ok(i),
            _ => Err("not a scalar integer".into()),
        }
    }

    /// A vector.
    pub(super) fn as_vector(&self, v: V<'c>) -> EmitResult<VectorValue<'c>> {
        match v {
            V::VectorValue(v) => Ok(v),
            _ => Err("not a vector".into()),
        }
    }

    /// A pointer.
    pub(super) fn as_ptr(&self, v: V<'c>) -> EmitResult<PointerValue<'c>> {
        match v {
            V::PointerValue(p) => Ok(p),
            _ => Err("not a pointer".into()),
        }
    }
}
