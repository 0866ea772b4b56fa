//! State of one function's translation and the small tools every other file uses.

use rustc_hash::{FxHashMap, FxHashSet};

use cranelift_codegen::ir::{
    self, BlockArg, DataFlowGraph, Endianness, Inst as ClifInst, InstBuilder, InstBuilderBase,
    InstructionData, MemFlagsData, SourceLoc, StackSlot, StackSlotData, StackSlotKind, Type,
    Value as V, types,
};

use super::cache::BlockCache;
use super::mask_plan::MaskPlan;
use super::value::{Val, piece_type, scalar_type};
use super::versioning::Version;
use super::{Target, context::EmitContext, internal};
use crate::backend::access::{AccessPlan, Limits, MaskedStores, Scope, Speculation, auto_gather};
use crate::backend::calls::Call;
use crate::backend::states::states;
use crate::backend::{BackendError, CodegenOptions, barrier_loop, uses};
use crate::ssa::{Function, Inst, Lane, Ty};

/// Translates one SSA function. Fields that other files need are visible to them; the methods
/// here know Cranelift, not the SSA.
pub(super) struct CraneliftEmitter<'a> {
    /// The SSA.
    pub f: &'a Function,
    /// Policies.
    pub options: &'a CodegenOptions,
    /// What the target has.
    pub target: Target,
    /// The Cranelift function under construction.
    pub func: ir::Function,
    /// Block that new instructions go to.
    pub block: ir::Block,
    loc: SourceLoc,
    /// Translation of every SSA value met so far.
    pub vals: Vec<Val>,
    /// Which form each mask is kept in.
    pub plan: MaskPlan,
    /// Cranelift block of every SSA block.
    pub blocks: Vec<Option<ir::Block>>,
    /// Blocks and values of the thread loop, and loads from the contexts.
    pub ctx: EmitContext,
    /// Constants and mask conversions made in the current SSA block. Empty in side blocks.
    pub cache: BlockCache,
    /// How accesses are done, and which blocks have two versions.
    pub access_plan: &'a AccessPlan,
    /// What is known in the version of a block that is translated.
    pub version: Version,
    /// Values that other blocks use than the one they are made in.
    pub escapes: Vec<bool>,
    /// Rows that columns were made of: who wants them back needs no transposing.
    pub rows_of: FxHashMap<Vec<V>, Vec<V>>,
    /// Blocks that anchors cut into segments.
    pub segmented: FxHashSet<ir::Block>,
    /// Instructions that the state which is translated does without.
    pub left_out: FxHashSet<Inst>,
    /// Calls of the runtime, in order.
    pub calls: Vec<Call>,
    bug: Option<String>,
}

/// What a function is translated to.
pub(super) struct Built {
    pub func: ir::Function,
    pub plan: AccessPlan,
    pub calls: Vec<Call>,
    /// Blocks that are in an order of their own.
    pub ordered: FxHashSet<ir::Block>,
}

/// What this code generator can do with accesses.
fn limits(f: &Function, options: &CodegenOptions, target: Target) -> Limits {
    let (gather, many) = auto_gather(f, options.tuning.gather);
    Limits {
        oob: options.oob,
        bounds: options.tuning.bounds,
        gather,
        many,
        scope: Scope::Block,
        gathers: false,
        scatters: false,
        slow_gathers: false,
        masked_stores: MaskedStores::Branch,
        speculation: Speculation::Affine,
        tests_local_ids: true,
        long_runs: false,
        whole_rows: true,
        vec4_versions: false,
        rolls: true,
        store_loops: false,
        inline_faults: true,
        rare_messages: true,
        rare_addresses: false,
        asks_once: true,
        unaligned_atomics: target.x64,
    }
}

/// Translates `f`.
pub(super) fn build(
    f: &Function,
    target: Target,
    options: &CodegenOptions,
) -> Result<Built, BackendError> {
    let order = crate::ssa::dom::reverse_post_order(f);
    let barrier_loop = barrier_loop::plan(super::NAME, f, &order, options.tuning)?;
    let access_plan = AccessPlan::new(f, limits(f, options, target), &order);
    let mut func = ir::Function::new();
    func.signature = super::helper::entry_signature(target.call_conv);
    let entry = func.dfg.make_block();
    func.layout.append_block(entry);
    let mut emit = CraneliftEmitter {
        f,
        options,
        target,
        func,
        block: entry,
        loc: SourceLoc::default(),
        vals: vec![Val::None; f.values.len()],
        plan: MaskPlan::new(f),
        blocks: vec![None; f.blocks.len()],
        ctx: EmitContext::new(entry, barrier_loop),
        cache: BlockCache::default(),
        access_plan: &access_plan,
        version: Version::default(),
        escapes: uses::escapes(f),
        rows_of: FxHashMap::default(),
        segmented: FxHashSet::default(),
        left_out: FxHashSet::default(),
        calls: Vec::new(),
        bug: None,
    };
    emit.program(states(f, &order, barrier_loop).as_deref());
    if let Some(what) = emit.bug {
        return Err(internal(f, what));
    }
    let (func, ordered, calls) = (emit.func, emit.segmented, emit.calls);
    Ok(Built {
        func,
        plan: access_plan,
        calls,
        ordered,
    })
}

/// Appends instructions to one block.
pub(super) struct Ins<'f> {
    func: &'f mut ir::Function,
    block: ir::Block,
    loc: SourceLoc,
}

impl<'f> InstBuilderBase<'f> for Ins<'f> {
    fn data_flow_graph(&self) -> &DataFlowGraph {
        &self.func.dfg
    }

    fn data_flow_graph_mut(&mut self) -> &mut DataFlowGraph {
        &mut self.func.dfg
    }

    fn build(mut self, data: InstructionData, ctrl: Type) -> (ClifInst, &'f mut DataFlowGraph) {
        let inst = self.build_aux_inst(data, ctrl);
        (inst, &mut self.func.dfg)
    }

    fn build_aux_inst(&mut self, data: InstructionData, ctrl: Type) -> ClifInst {
        let inst = self.func.dfg.make_inst(data);
        self.func.dfg.make_inst_results(inst, ctrl);
        self.func.layout.append_inst(inst, self.block);
        if !self.loc.is_default() {
            self.func.set_srcloc(inst, self.loc);
        }
        inst
    }
}

/// Memory that kernels read and write: unaligned, checked by us.
pub(super) const DATA: MemFlagsData = MemFlagsData::new().with_notrap();

/// Context fields that nothing changes while the entry point runs.
pub(super) const READONLY: MemFlagsData = MemFlagsData::new()
    .with_notrap()
    .with_readonly()
    .with_can_move();

impl CraneliftEmitter<'_> {
    /// Appends to the current block.
    pub(super) fn ins(&mut self) -> Ins<'_> {
        self.at(self.block)
    }

    /// Appends to `block`.
    fn at(&mut self, block: ir::Block) -> Ins<'_> {
        Ins {
            func: &mut self.func,
            block,
            loc: self.loc,
        }
    }

    /// Records that the input or this code generator is wrong; the first report is returned to
    /// the caller in place of code.
    pub(super) fn bug(&mut self, what: impl Into<String>) {
        let what = what.into();
        self.bug.get_or_insert(what);
    }

    /// Source line of the instructions that follow, 0 for none.
    pub(super) fn set_line(&mut self, line: u32) {
        self.loc = if line == 0 {
            SourceLoc::default()
        } else {
            SourceLoc::new(line)
        };
    }

    /// Source line of the instructions that follow, 0 for none.
    pub(super) fn line(&self) -> u32 {
        if self.loc.is_default() {
            return 0;
        }
        self.loc.bits()
    }

    /// A new block at the end of the layout.
    pub(super) fn new_block(&mut self) -> ir::Block {
        let block = self.func.dfg.make_block();
        self.func.layout.append_block(block);
        block
    }

    /// A new block that is rarely reached.
    pub(super) fn new_cold_block(&mut self) -> ir::Block {
        let block = self.new_block();
        self.func.layout.set_cold(block);
        block
    }

    /// Jumps with plain arguments.
    pub(super) fn jump(&mut self, to: ir::Block, args: &[V]) {
        let args: Vec<BlockArg> = args.iter().map(|&v| v.into()).collect();
        self.ins().jump(to, &args);
    }

    /// Branches without arguments.
    pub(super) fn branch(&mut self, cond: V, then: ir::Block, other: ir::Block) {
        self.ins().brif(cond, then, &[], other, &[]);
    }

    /// Type of a Cranelift value.
    pub(super) fn type_of(&self, v: V) -> Type {
        self.func.dfg.value_type(v)
    }

    /// An integer constant.
    pub(super) fn iconst(&mut self, ty: Type, value: u64) -> V {
        let bits = ty.bits();
        let value = if bits < 64 {
            value & ((1 << bits) - 1)
        } else {
            value
        };
        self.ins().iconst(ty, value.cast_signed())
    }

    /// A 128-bit constant of piece type `ty`; the low byte is the low end of lane 0.
    pub(super) fn vconst(&mut self, ty: Type, bytes: u128) -> V {
        if let Some(v) = self.cache.constant(ty, bytes) {
            return v;
        }
        let data = bytes.to_le_bytes();
        let handle = self.func.dfg.constants.insert(data.as_slice().into());
        let v = self.ins().vconst(ty, handle);
        self.cache.keep_constant(ty, bytes, v);
        v
    }

    /// A piece with `bits` in every lane.
    pub(super) fn vsplat(&mut self, lane: Lane, bits: u64) -> V {
        self.vconst(piece_type(lane), splat_bits(lane, bits))
    }

    /// A scalar constant.
    pub(super) fn sconst(&mut self, lane: Lane, bits: u64) -> V {
        match lane {
            Lane::F32 => self
                .ins()
                .f32const(ir::immediates::Ieee32::with_bits(bits as u32)),
            Lane::F64 => self.ins().f64const(ir::immediates::Ieee64::with_bits(bits)),
            _ => self.iconst(scalar_type(lane), bits),
        }
    }

    /// `bits` as a scalar or in every lane of a piece.
    pub(super) fn konst(&mut self, lane: Lane, vector: bool, bits: u64) -> V {
        if vector {
            self.vsplat(lane, bits)
        } else {
            self.sconst(lane, bits)
        }
    }

    /// The same bits as another type of the same size.
    pub(super) fn cast(&mut self, v: V, ty: Type) -> V {
        if self.type_of(v) == ty {
            return v;
        }
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.ins().bitcast(ty, flags, v)
    }

    /// The same bits as pieces of `lane`.
    pub(super) fn cast_piece(&mut self, v: V, lane: Lane) -> V {
        self.cast(v, piece_type(lane))
    }

    /// Zero-extends or truncates a scalar integer.
    pub(super) fn resize(&mut self, v: V, ty: Type) -> V {
        let have = self.type_of(v).bits();
        match have.cmp(&ty.bits()) {
            std::cmp::Ordering::Less => self.ins().uextend(ty, v),
            std::cmp::Ordering::Equal => v,
            std::cmp::Ordering::Greater => self.ins().ireduce(ty, v),
        }
    }

    /// Byte shuffle of two pieces; the result has the type of the first.
    pub(super) fn shuffle_bytes(&mut self, a: V, b: V, bytes: [u8; 16]) -> V {
        let ty = self.type_of(a);
        let a8 = self.cast(a, types::I8X16);
        let b8 = self.cast(b, types::I8X16);
        let mask = self.func.dfg.immediates.push(bytes.as_slice().into());
        let v = self.ins().shuffle(a8, b8, mask);
        self.cast(v, ty)
    }

    /// Lane shuffle of two pieces of the same lane; indices count through both.
    pub(super) fn shuffle_lanes(&mut self, lane: Lane, a: V, b: V, lanes: &[u8]) -> V {
        let width = lane.bytes() as u8;
        let mut bytes = [0u8; 16];
        for (i, byte) in bytes.iter_mut().enumerate() {
            let from = lanes[i / usize::from(width)];
            *byte = from * width + i as u8 % width;
        }
        self.shuffle_bytes(a, b, bytes)
    }

    /// A stack slot of at least `bytes` bytes, a multiple of 16, aligned for pieces.
    pub(super) fn slot(&mut self, bytes: u32) -> StackSlot {
        let size = bytes.next_multiple_of(16).max(16);
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, 4);
        self.func.create_sized_stack_slot(data)
    }

    /// Address of a byte of a stack slot.
    pub(super) fn slot_addr(&mut self, slot: StackSlot, offset: u32) -> V {
        self.ins()
            .stack_addr(types::I64, slot, offset.cast_signed())
    }

    /// Stores whole pieces (or a scalar) to byte `at` of a slot.
    pub(super) fn spill(&mut self, slot: StackSlot, at: u32, parts: &[V]) {
        let addr = self.slot_addr(slot, at);
        for (i, &v) in parts.iter().enumerate() {
            self.ins().store(DATA, v, addr, 16 * i as i32);
        }
    }

    /// Loads what [`CraneliftEmitter::spill`] stored, for a value of type `ty`.
    pub(super) fn unspill(&mut self, slot: StackSlot, at: u32, ty: Ty) -> Vec<V> {
        let addr = self.slot_addr(slot, at);
        if ty.is_scalar() {
            return vec![self.ins().load(scalar_type(ty.lane), DATA, addr, 0)];
        }
        (0..super::value::piece_count(ty))
            .map(|i| {
                self.ins()
                    .load(piece_type(ty.lane), DATA, addr, 16 * i as i32)
            })
            .collect()
    }
}

/// 128 bits with `bits` in every lane.
pub(super) fn splat_bits(lane: Lane, bits: u64) -> u128 {
    let width = lane.bytes() * 8;
    let one = u128::from(bits) & ((1u128 << width) - 1);
    (0..128 / width).fold(0, |all, i| all | one << (i * width))
}
