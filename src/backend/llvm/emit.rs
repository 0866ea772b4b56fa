//! State of one function's translation and the small tools every other file uses.

use std::cell::OnceCell;
use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::llvm_sys::core::LLVMBuildGEP2;
use inkwell::module::Module;
use inkwell::types::{AsTypeRef, BasicTypeEnum, VectorType};
use inkwell::values::{
    AsValueRef, BasicMetadataValueEnum, BasicValue, BasicValueEnum, FunctionValue,
    InstructionOpcode, IntValue, PointerValue, ValueKind, VectorValue,
};
use inkwell::{FloatPredicate, IntPredicate};
use target_lexicon::Architecture;

use super::blocks::Blocks;
use super::context;
use super::cpu::Cpu;
use super::lines::Lines;
use super::thread::{Exits, ThreadLoop};
use super::types::{padded_lanes, vector_of};
use super::values::Values;
use super::versioning::Version;
use crate::backend::CodegenOptions;
use crate::backend::access::{AccessPlan, Limits, MaskedStores, Scope, Speculation};
use crate::ssa::{Function, Lane, Ty};

/// Name of blocks that only go on with the one in front, see [`Emit::cut`].
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

/// A bit for each of a given number of lanes, of which there are 1 to 32.
pub(super) const fn low_bits(lanes: u16) -> u32 {
    u32::MAX >> (32 - lanes as u32)
}

/// What code for a processor can do with accesses.
pub(super) fn limits(options: &CodegenOptions, cpu: &Cpu) -> Limits {
    Limits {
        oob: options.oob,
        bounds: options.tuning.bounds,
        gather: options.tuning.gather,
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
        whole_rows: false,
        vec4_versions: true,
        vec4_inline: false,
        inline_faults: false,
        rare_messages: false,
        asks_once: false,
        unaligned_atomics: cpu.target.architecture == Architecture::X86_64,
    }
}

/// Translates one SSA function into one LLVM function.
///
/// What changes on the way, and what changes it:
/// * Of the function: `threads` is there once; `blocks` are declared in front of the body; `ctx`, `exits` and intrinsics grow where
///   code first needs something.
/// * Of a version of a part of a block: `version`, and those of the `values` that are made there. [`Emit::in_version`] gives back what
///   was there before. Of a block as a whole there is nothing.
/// * Of an instruction: where it goes and its line, by [`Emit::at`], [`Emit::aside`] and [`Emit::set_line`].
pub(super) struct Emit<'c, 'f> {
    /// The SSA.
    pub f: &'f Function,
    /// Policies.
    pub options: &'f CodegenOptions,
    /// What the processor has.
    pub cpu: &'f Cpu,
    /// Owner of types and constants.
    pub cx: &'c Context,
    /// Owner of the function.
    module: &'f Module<'c>,
    /// The LLVM function.
    pub func: FunctionValue<'c>,
    /// How accesses are done, and which parts of blocks have two versions.
    pub access_plan: &'f AccessPlan,
    /// Appends instructions.
    pub b: Builder<'c>,
    lines: Lines<'c>,
    /// What is made once a call or once a thread.
    pub ctx: context::Context<'c>,
    /// The thread that the body is for; none in front of the body.
    pub threads: OnceCell<ThreadLoop<'c>>,
    /// Blocks that leave the function early.
    pub exits: Exits<'c>,
    /// Blocks of the SSA.
    pub blocks: Blocks<'c>,
    /// Values of the SSA.
    pub values: Values<'c>,
    /// What is known in the version that is translated.
    pub version: Version<'c>,
    intrinsics: HashMap<(&'static str, Vec<Ty>), FunctionValue<'c>>,
}

impl<'c, 'f> Emit<'c, 'f> {
    /// Ready to translate `f` into `func`.
    pub fn new(
        f: &'f Function,
        options: &'f CodegenOptions,
        cpu: &'f Cpu,
        cx: &'c Context,
        (module, func): (&'f Module<'c>, FunctionValue<'c>),
        access_plan: &'f AccessPlan,
    ) -> EmitResult<Emit<'c, 'f>> {
        let Some(V::PointerValue(group)) = func.get_nth_param(0) else {
            return Err("a function without the group's context".into());
        };
        let entry = cx.append_basic_block(func, "\0");
        Ok(Emit {
            f,
            options,
            cpu,
            cx,
            module,
            func,
            access_plan,
            b: cx.create_builder(),
            lines: Lines::new(cx, module, func),
            ctx: context::Context::new(entry, group),
            threads: OnceCell::new(),
            exits: Exits::default(),
            blocks: Blocks::new(f),
            values: Values::new(f),
            version: Version::default(),
            intrinsics: HashMap::new(),
        })
    }

    /// A new block at the end of the function.
    pub fn new_block(&self) -> BasicBlock<'c> {
        self.cx.append_basic_block(self.func, "\0")
    }

    /// The block that instructions are appended to.
    pub fn here(&self) -> EmitResult<BasicBlock<'c>> {
        self.b
            .get_insert_block()
            .ok_or_else(|| "no current block".into())
    }

    /// Goes on in another block.
    pub fn at(&self, block: BasicBlock<'c>) {
        self.b.position_at_end(block);
    }

    /// Fills another block, and goes on here.
    pub fn aside<T>(
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
    pub fn set_line(&self, line: u32) {
        self.lines.set(&self.b, line);
    }

    /// No instruction follows any more.
    pub fn finish_lines(&self) {
        self.lines.finish();
    }

    /// Jumps.
    pub fn jump(&self, to: BasicBlock<'c>) -> EmitResult<()> {
        self.b.build_unconditional_branch(to)?;
        Ok(())
    }

    /// Goes on in a new block that comes after this one only. LLVM's usual effort makes one block of both.
    pub fn cut(&self) -> EmitResult<()> {
        let next = self.cx.append_basic_block(self.func, CUT);
        self.jump(next)?;
        self.at(next);
        Ok(())
    }

    /// Branches.
    pub fn branch(
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
    pub fn branch_likely(
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
    pub fn as_int(&self, v: V<'c>) -> EmitResult<IntValue<'c>> {
        match v {
            V::IntValue(i) => Ok(i),
            _ => Err("not a scalar integer".into()),
        }
    }

    /// A vector.
    pub fn as_vector(&self, v: V<'c>) -> EmitResult<VectorValue<'c>> {
        match v {
            V::VectorValue(v) => Ok(v),
            _ => Err("not a vector".into()),
        }
    }

    /// A pointer.
    pub fn as_ptr(&self, v: V<'c>) -> EmitResult<PointerValue<'c>> {
        match v {
            V::PointerValue(p) => Ok(p),
            _ => Err("not a pointer".into()),
        }
    }

    /// An instruction of two operands of one type.
    pub fn op2(
        &self,
        op: InstructionOpcode,
        a: impl Into<V<'c>>,
        b: impl Into<V<'c>>,
    ) -> EmitResult<V<'c>> {
        Ok(self.b.build_binop(op, a.into(), b.into(), "\0")?)
    }

    /// A conversion.
    pub fn cast(
        &self,
        op: InstructionOpcode,
        v: impl Into<V<'c>>,
        to: BasicTypeEnum<'c>,
    ) -> EmitResult<V<'c>> {
        let v = v.into();
        if v.get_type() == to {
            return Ok(v);
        }
        Ok(self.b.build_cast(op, v, to, "\0")?)
    }

    /// The same bits as another type.
    pub fn cast_bits(&self, v: V<'c>, to: BasicTypeEnum<'c>) -> EmitResult<V<'c>> {
        if v.get_type() == to {
            return Ok(v);
        }
        Ok(self.b.build_bit_cast(v, to, "\0")?)
    }

    /// Integer comparison, scalar or lane-wise.
    pub fn icmp(
        &self,
        cc: IntPredicate,
        a: impl Into<V<'c>>,
        b: impl Into<V<'c>>,
    ) -> EmitResult<V<'c>> {
        Ok(match (a.into(), b.into()) {
            (V::IntValue(a), V::IntValue(b)) => self.b.build_int_compare(cc, a, b, "\0")?.into(),
            (V::VectorValue(a), V::VectorValue(b)) => {
                self.b.build_int_compare(cc, a, b, "\0")?.into()
            }
            _ => return Err("comparison of other things than integers".into()),
        })
    }

    /// Float comparison, scalar or lane-wise.
    pub fn fcmp(&self, cc: FloatPredicate, a: V<'c>, b: V<'c>) -> EmitResult<V<'c>> {
        Ok(match (a, b) {
            (V::FloatValue(a), V::FloatValue(b)) => {
                self.b.build_float_compare(cc, a, b, "\0")?.into()
            }
            (V::VectorValue(a), V::VectorValue(b)) => {
                self.b.build_float_compare(cc, a, b, "\0")?.into()
            }
            _ => return Err("comparison of other things than floats".into()),
        })
    }

    /// `cond ? a : b`; the condition is scalar or a mask.
    pub fn select(
        &self,
        cond: V<'c>,
        a: impl Into<V<'c>>,
        b: impl Into<V<'c>>,
    ) -> EmitResult<V<'c>> {
        let (a, b) = (a.into(), b.into());
        Ok(match cond {
            V::IntValue(c) => self.b.build_select(c, a, b, "\0")?,
            V::VectorValue(c) => self.b.build_select(c, a, b, "\0")?,
            _ => return Err("selection by neither condition nor mask".into()),
        })
    }

    /// Zero-extends or truncates integers to lanes of a given number of bits.
    pub fn resize(&self, v: impl Into<V<'c>>, bits: u32) -> EmitResult<V<'c>> {
        let v = v.into();
        let (have, to): (u32, BasicTypeEnum) = match v {
            V::IntValue(i) => (i.get_type().get_bit_width(), self.int(bits).into()),
            V::VectorValue(x) => {
                let lane = x.get_type().get_element_type();
                let BasicTypeEnum::IntType(lane) = lane else {
                    return Err("resizes other lanes than integers".into());
                };
                let to = self.int(bits).vec_type(x.get_type().get_size());
                (lane.get_bit_width(), to.into())
            }
            _ => return Err("resizes other things than integers".into()),
        };
        let op = if have < bits {
            InstructionOpcode::ZExt
        } else {
            InstructionOpcode::Trunc
        };
        self.cast(op, v, to)
    }

    /// `a + constant`.
    pub fn add_const(&self, a: IntValue<'c>, constant: i64) -> EmitResult<IntValue<'c>> {
        if constant == 0 {
            return Ok(a);
        }
        let by = a.get_type().const_int(constant.cast_unsigned(), false);
        self.as_int(self.op2(InstructionOpcode::Add, a, by)?)
    }

    /// A pointer moved by bytes.
    pub fn offset(
        &self,
        ptr: PointerValue<'c>,
        bytes: IntValue<'c>,
    ) -> EmitResult<PointerValue<'c>> {
        // SAFETY: this only builds the instruction, which does not claim to stay inside an object; whoever
        // accesses memory through the result has tested the offset.
        let moved = unsafe { self.b.build_gep(self.cx.i8_type(), ptr, &[bytes], "\0") };
        Ok(moved?)
    }

    /// A pointer moved by each lane's bytes, which are signed.
    pub fn offsets_from(&self, ptr: PointerValue<'c>, bytes: VectorValue<'c>) -> V<'c> {
        let mut index = bytes.as_value_ref();
        let byte = self.cx.i8_type().as_type_ref();
        // SAFETY: the builder is at the end of a block, and everything is of one context. The instruction does not claim to
        // stay inside an object, and its result is a vector, as the index is one.
        unsafe {
            let from = ptr.as_value_ref();
            let moved = LLVMBuildGEP2(self.b.as_mut_ptr(), byte, from, &mut index, 1, c"".as_ptr());
            VectorValue::new(moved).into()
        }
    }

    /// A pointer moved by a constant.
    pub fn offset_const(&self, ptr: PointerValue<'c>, bytes: i64) -> EmitResult<PointerValue<'c>> {
        if bytes == 0 {
            return Ok(ptr);
        }
        self.offset(ptr, self.i64(bytes.cast_unsigned()))
    }

    /// Reads memory, at any alignment.
    pub fn load(&self, to: BasicTypeEnum<'c>, ptr: PointerValue<'c>) -> EmitResult<V<'c>> {
        let v = self.b.build_load(to, ptr, "\0")?;
        let inst = v
            .as_instruction_value()
            .ok_or("a load that is no instruction")?;
        inst.set_alignment(1)
            .map_err(|e| InternalError(e.to_string()))?;
        Ok(v)
    }

    /// Writes memory, at any alignment.
    pub fn store(&self, v: impl Into<V<'c>>, ptr: PointerValue<'c>) -> EmitResult<()> {
        let inst = self.b.build_store(ptr, v.into())?;
        inst.set_alignment(1)
            .map_err(|e| InternalError(e.to_string()))
    }

    /// Room on the stack, allocated when the function is entered.
    pub fn slot(&mut self, bytes: u32) -> EmitResult<PointerValue<'c>> {
        let ty = self.cx.i8_type().array_type(bytes.max(1));
        let entry = self.ctx.entry;
        let slot = self.aside(entry, |e| Ok(e.b.build_alloca(ty, "\0")?))?;
        let inst = slot
            .as_instruction()
            .ok_or("a slot that is no instruction")?;
        inst.set_alignment(64)
            .map_err(|e| InternalError(e.to_string()))?;
        Ok(slot)
    }

    /// A lane of a vector.
    pub fn lane(&self, v: V<'c>, lane: u32) -> EmitResult<V<'c>> {
        match v {
            V::VectorValue(v) => Ok(self.b.build_extract_element(v, self.i32(lane), "\0")?),
            scalar => Ok(scalar),
        }
    }

    /// A vector with one lane replaced.
    pub fn with_lane(&self, v: V<'c>, one: V<'c>, lane: u32) -> EmitResult<V<'c>> {
        match v {
            V::VectorValue(v) => {
                let index = self.i32(lane);
                Ok(self.b.build_insert_element(v, one, index, "\0")?.into())
            }
            _ => Ok(one),
        }
    }

    /// Vectors of one element type and length put end to end, and lanes taken from that. `None` is any value.
    pub fn shuffle(
        &self,
        a: V<'c>,
        b: Option<V<'c>>,
        indices: &[Option<u32>],
    ) -> EmitResult<V<'c>> {
        let a = self.as_vector(a)?;
        let b = match b {
            Some(b) => self.as_vector(b)?,
            None => a.get_type().get_poison(),
        };
        let i32_type = self.cx.i32_type();
        let lanes: Vec<IntValue> = indices
            .iter()
            .map(|i| i.map_or(i32_type.get_poison(), |i| self.i32(i)))
            .collect();
        let mask = VectorType::const_vector(&lanes);
        Ok(self.b.build_shuffle_vector(a, b, mask, "\0")?.into())
    }

    /// Reads a value from memory, exactly its bytes.
    pub fn load_value(&self, ty: Ty, ptr: PointerValue<'c>) -> EmitResult<V<'c>> {
        let v = self.load(self.exact(ty), ptr)?;
        self.widen(v, ty.lanes, padded_lanes(ty.lanes))
    }

    /// Writes a value to memory, exactly its bytes.
    pub fn store_value(&self, v: V<'c>, ty: Ty, ptr: PointerValue<'c>) -> EmitResult<()> {
        let v = self.narrow(v, ty.lanes)?;
        self.store(v, ptr)
    }

    /// The first lanes of a vector.
    pub fn narrow(&self, v: V<'c>, lanes: u16) -> EmitResult<V<'c>> {
        match v {
            V::VectorValue(x) if x.get_type().get_size() != u32::from(lanes) => {
                let first = (0..u32::from(lanes)).map(Some);
                self.shuffle(v, None, &first.collect::<Vec<_>>())
            }
            _ => Ok(v),
        }
    }

    /// A vector of `from` lanes (or a scalar) with lanes of zero after it.
    pub fn widen(&self, v: V<'c>, from: u16, to: u16) -> EmitResult<V<'c>> {
        if from == to {
            return Ok(v);
        }
        if from == 1 {
            let zero = vector_of(v.get_type(), u32::from(to)).const_zero();
            return self.with_lane(zero.into(), v, 0);
        }
        let zero = v.get_type().const_zero();
        let lanes = (0..u32::from(to)).map(|i| Some(i.min(u32::from(from))));
        self.shuffle(v, Some(zero), &lanes.collect::<Vec<_>>())
    }

    /// A scalar in every lane.
    pub fn splat(&self, v: V<'c>, lanes: u16) -> EmitResult<V<'c>> {
        let lanes = padded_lanes(lanes);
        if lanes == 1 {
            return Ok(v);
        }
        let ty = vector_of(v.get_type(), u32::from(lanes));
        let first = self.with_lane(ty.get_poison().into(), v, 0)?;
        self.shuffle(first, None, &vec![Some(0); usize::from(lanes)])
    }

    /// Calls an LLVM intrinsic overloaded by `types`.
    pub fn intrinsic(
        &mut self,
        name: &'static str,
        types: &[Ty],
        args: &[V<'c>],
    ) -> EmitResult<V<'c>> {
        let key = (name, types.to_vec());
        let callee = match self.intrinsics.get(&key) {
            Some(&known) => known,
            None => {
                let types: Vec<BasicTypeEnum> = types.iter().map(|&t| self.type_of(t)).collect();
                let callee = self.declare(name, &types)?;
                self.intrinsics.insert(key, callee);
                callee
            }
        };
        self.call(callee, args)?
            .ok_or_else(|| InternalError(format!("{name} without a result")))
    }

    /// Declares an LLVM intrinsic.
    pub fn declare(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'c>],
    ) -> EmitResult<FunctionValue<'c>> {
        Intrinsic::find(name)
            .and_then(|i| i.get_declaration(self.module, types))
            .ok_or_else(|| InternalError(format!("LLVM has no {name}")))
    }

    /// Calls one of `llvm.masked.*`, for elements at any address: before LLVM 22 that is said in an operand after the pointer.
    pub fn call_masked(
        &self,
        callee: FunctionValue<'c>,
        up_to_pointer: &[V<'c>],
        others: &[V<'c>],
    ) -> EmitResult<Option<V<'c>>> {
        let align = cfg!(not(feature = "llvm22")).then(|| self.i32(1).into());
        let args = up_to_pointer.iter().copied().chain(align);
        let args: Vec<V> = args.chain(others.iter().copied()).collect();
        self.call(callee, &args)
    }

    /// Calls a function of the module.
    pub fn call(&self, callee: FunctionValue<'c>, args: &[V<'c>]) -> EmitResult<Option<V<'c>>> {
        let args: Vec<BasicMetadataValueEnum> = args.iter().map(|&a| a.into()).collect();
        let call = self.b.build_direct_call(callee, &args, "\0")?;
        Ok(match call.try_as_basic_value() {
            ValueKind::Basic(v) => Some(v),
            ValueKind::Instruction(_) => None,
        })
    }

    /// Bits of a mask of a given number of lanes as `i32`, lane 0 lowest.
    pub fn mask_bits(&self, mask: V<'c>, lanes: u16) -> EmitResult<V<'c>> {
        let word = self.int(u32::from(padded_lanes(lanes)));
        let bits = self.cast_bits(mask, word.into())?;
        let bits = self.resize(bits, 32)?;
        if padded_lanes(lanes) == lanes {
            return Ok(bits);
        }
        self.op2(InstructionOpcode::And, bits, self.i32(low_bits(lanes)))
    }

    /// A mask from the low bits of an `i32`.
    pub fn bits_mask(&self, bits: V<'c>, lanes: u16) -> EmitResult<V<'c>> {
        let low = self.resize(bits, u32::from(padded_lanes(lanes)))?;
        self.cast_bits(low, self.type_of(Ty::vector(Lane::I1, lanes)))
    }
}
