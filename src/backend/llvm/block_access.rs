//! Uniform accesses to consecutive elements.
//!
//! One test decides for the whole block. If it fails, a loop goes through the elements.

use std::mem::offset_of;

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::values::{AsValueRef as _, InstructionOpcode as I, PointerValue};
use rustc_hash::{FxHashMap, FxHashSet};

use visa_runtime::abi::LaunchCtx;

use super::context::{Field, Key};
use super::emit::{EmitResult, LlvmEmitter, V};
use super::memory::Region;
use crate::backend::access::{FLAT_OFFSET, Place, pointer_of};
use crate::ssa::{BlockAccess, Function, Op, Ty, Value};

/// Lanes of block loads that are read one by one.
pub(super) struct LanesOfBlocks<'c> {
    /// Of each load, by its result: those that are read in its block of the SSA.
    wanted: FxHashMap<Value, Vec<u16>>,
    /// Those that have been loaded by themselves, by the vector and their number.
    loaded: FxHashMap<(LLVMValueRef, u16), V<'c>>,
}

impl<'c> LanesOfBlocks<'c> {
    pub(super) fn new(f: &Function) -> LanesOfBlocks<'c> {
        let mut wanted: FxHashMap<Value, Vec<u16>> = FxHashMap::default();
        for &b in &f.order {
            let mut loads: FxHashSet<Value> = FxHashSet::default();
            for data in f.block(b).insts.iter().map(|&i| f.inst(i)) {
                match data.op {
                    Op::BlockLoad(access) if access.n > 1 => loads.extend(data.results.first()),
                    Op::ExtractLane(k) if loads.contains(&data.args[0]) => {
                        wanted.entry(data.args[0]).or_default().push(k);
                    }
                    _ => {}
                }
            }
        }
        LanesOfBlocks {
            wanted,
            loaded: FxHashMap::default(),
        }
    }

    /// A lane of a vector, if it has been loaded by itself.
    pub(super) fn lane(&self, vector: V<'c>, k: u16) -> Option<V<'c>> {
        self.loaded.get(&(vector.as_value_ref(), k)).copied()
    }
}

/// Operands of a block access.
#[derive(Clone, Copy)]
struct BlockOperands<'c> {
    access: BlockAccess,
    cond: V<'c>,
    addr: V<'c>,
    address: Value,
    surface: V<'c>,
    region: Region<'c>,
}

impl BlockOperands<'_> {
    const fn ty(&self) -> Ty {
        Ty::vector(self.access.elem, self.access.n)
    }

    fn flat(&self) -> bool {
        self.access.space.is_flat()
    }
}

impl<'c> LlvmEmitter<'c, '_> {
    fn block_operands(
        &mut self,
        access: BlockAccess,
        args: &[Value],
    ) -> EmitResult<BlockOperands<'c>> {
        let surface = access.space.has_surface().then(|| args[2]);
        Ok(BlockOperands {
            access,
            cond: self.get(args[0])?,
            addr: self.get(args[1])?,
            address: args[1],
            region: self.region(access.space, surface)?,
            surface: match surface {
                Some(s) => self.get(s)?,
                None => self.i32(0).into(),
            },
        })
    }

    /// A block load with the result `out`.
    pub(super) fn block_load(
        &mut self,
        access: BlockAccess,
        args: &[Value],
        out: Value,
    ) -> EmitResult<V<'c>> {
        if let Some(at) = self.f.fixed_registers(access, args) {
            let pointer = self.register(at)?;
            return self.load_value(Ty::vector(access.elem, access.n), pointer);
        }
        let block = self.block_operands(access, args)?;
        let ty = block.ty();
        if let Some(lanes) = self.lanes_of_blocks.wanted.get(&out).cloned() {
            return self.block_in_lanes(&block, &lanes);
        }
        let (whole, fast, slow) = self.whole_block(&block)?;
        let done = self.new_block();
        let a = self.load_value(ty, whole)?;
        self.jump(done)?;
        self.at(slow);
        let b = if self.is_all_or_nothing(access) {
            self.type_of(ty).const_zero()
        } else {
            let slot = self.load_elements(&block)?;
            self.load_value(ty, slot)?
        };
        let end = self.here()?;
        self.jump(done)?;
        self.at(done);
        let phi = self.b.build_phi(self.type_of(ty), "\0")?;
        phi.add_incoming(&[(&a, fast), (&b, end)]);
        Ok(phi.as_basic_value())
    }

    /// A block load of which lanes are read one by one. They are loaded one by one, too: an operation on vectors takes a number for all lanes
    /// from memory as it is, but not from a lane of another vector.
    fn block_in_lanes(&mut self, block: &BlockOperands<'c>, lanes: &[u16]) -> EmitResult<V<'c>> {
        let (whole, fast, slow) = self.whole_block(block)?;
        let done = self.new_block();
        self.jump(done)?;
        self.at(slow);
        let slot = self.load_elements(block)?;
        let end = self.here()?;
        self.jump(done)?;
        self.at(done);
        let phi = self.b.build_phi(whole.get_type(), "\0")?;
        phi.add_incoming(&[(&whole, fast), (&slot, end)]);
        let from = self.as_ptr(phi.as_basic_value())?;
        let all = self.load_value(block.ty(), from)?;
        let elem = self.type_of(Ty::scalar(block.access.elem));
        for &k in lanes {
            let at = i64::from(block.access.elem.bytes()) * i64::from(k);
            let one = self.load(elem, self.offset_const(from, at)?)?;
            self.lanes_of_blocks
                .loaded
                .insert((all.as_value_ref(), k), one);
        }
        Ok(all)
    }

    /// What the elements that are inside hold, and zero for the others: where that is put.
    fn load_elements(&mut self, block: &BlockOperands<'c>) -> EmitResult<PointerValue<'c>> {
        let ty = block.ty();
        let slot = self.slot(ty.bytes())?;
        self.store(self.exact(ty).const_zero(), slot)?;
        let elem = self.type_of(Ty::scalar(block.access.elem));
        self.element_loop(block, |e, pointer, at| {
            let v = e.load(elem, pointer)?;
            let to = e.offset(slot, e.as_int(at)?)?;
            e.store(v, to)
        })?;
        Ok(slot)
    }

    /// A block store.
    pub(super) fn block_store(&mut self, access: BlockAccess, args: &[Value]) -> EmitResult<()> {
        let data = self.get(Self::data_args(access.space, args)[0])?;
        if let Some(at) = self.f.fixed_registers(access, args) {
            let pointer = self.register(at)?;
            return self.store_value(data, Ty::vector(access.elem, access.n), pointer);
        }
        let block = self.block_operands(access, args)?;
        let (whole, _, slow) = self.whole_block(&block)?;
        let done = self.new_block();
        self.store_value(data, block.ty(), whole)?;
        self.jump(done)?;
        self.at(slow);
        if !self.is_all_or_nothing(access) {
            let slot = self.slot(block.ty().bytes())?;
            self.store_value(data, block.ty(), slot)?;
            let elem = self.type_of(Ty::scalar(access.elem));
            self.element_loop(&block, |e, pointer, at| {
                let from = e.offset(slot, e.as_int(at)?)?;
                let v = e.load(elem, from)?;
                e.store(v, pointer)
            })?;
        }
        self.jump(done)?;
        self.at(done);
        Ok(())
    }

    /// Where the whole is not accessed, nothing is, and nothing is reported.
    fn is_all_or_nothing(&self, access: BlockAccess) -> bool {
        access.n == 1 && !self.records_faults(access.space)
    }

    /// Pointer to a byte of the registers.
    fn register(&mut self, at: u32) -> EmitResult<PointerValue<'c>> {
        let registers = self.base(Region::Known(Place::Regs))?;
        self.offset_const(registers, i64::from(at))
    }

    /// Goes on where the condition holds and all bytes are inside, with the pointer to them: in the first block, and in the other where not.
    ///
    /// An address without a tag is inside if its whole distance from the base is. The tag is taken off where it is not.
    fn whole_block(
        &mut self,
        block: &BlockOperands<'c>,
    ) -> EmitResult<(PointerValue<'c>, BasicBlock<'c>, BasicBlock<'c>)> {
        let base = self.base(block.region)?;
        let limit = self.limit(block.region, block.ty().bytes())?.into();
        let (fast, slow) = (self.new_block(), self.new_block());
        let offset = if block.flat() {
            let tagged = self.new_block();
            let distance = self.distance_from_base(block)?;
            let ok = self.enabled_below(block, distance, limit)?;
            let here = self.here()?;
            self.branch_likely(ok, fast, tagged, true)?;
            self.at(tagged);
            let plain = self.op2(I::And, distance, self.i64(FLAT_OFFSET))?;
            let ok = self.enabled_below(block, plain, limit)?;
            self.branch(ok, fast, slow)?;
            self.at(fast);
            let phi = self.b.build_phi(self.cx.i64_type(), "\0")?;
            phi.add_incoming(&[(&distance, here), (&plain, tagged)]);
            phi.as_basic_value()
        } else {
            let ok = self.enabled_below(block, block.addr, limit)?;
            let offset = self.resize(block.addr, 64)?;
            self.branch_likely(ok, fast, slow, true)?;
            self.at(fast);
            offset
        };
        Ok((self.offset(base, self.as_int(offset)?)?, fast, slow))
    }

    fn enabled_below(
        &mut self,
        block: &BlockOperands<'c>,
        offset: V<'c>,
        limit: V<'c>,
    ) -> EmitResult<V<'c>> {
        let inside = self.icmp(IntPredicate::ULT, offset, limit)?;
        match self.as_int(block.cond)?.get_zero_extended_constant() {
            Some(1) => Ok(inside),
            _ => self.op2(I::And, inside, block.cond),
        }
    }

    /// A scalar address less the base of device memory, with what is in the tag. Pointers of the payload are taken from the base once a call.
    fn distance_from_base(&mut self, block: &BlockOperands<'c>) -> EmitResult<V<'c>> {
        let at = offset_of!(LaunchCtx, flat_base);
        let Some((payload, pointer, rest)) = self.pointer_and_rest(block)? else {
            let base = self.launch_field(at, Field::I64)?;
            return self.op2(I::Sub, block.addr, base);
        };
        let pointer = self.hoisted(Key::FromBase(payload), |e| {
            let base = e.launch_field(at, Field::I64)?;
            e.op2(I::Sub, pointer, base)
        })?;
        self.op2(I::Add, pointer, rest)
    }

    /// The address as a pointer, with its offset in the payload, and the rest. That is taken from the sum that was made, as only that is sure to
    /// be there in all versions of a block.
    fn pointer_and_rest(
        &mut self,
        block: &BlockOperands<'c>,
    ) -> EmitResult<Option<(u32, V<'c>, V<'c>)>> {
        let Some((pointer, payload)) = pointer_of(self.f, block.address) else {
            return Ok(None);
        };
        let pointer = self.get(pointer)?;
        let sum = self.as_int(block.addr)?.as_instruction();
        let Some(sum) = sum.filter(|sum| sum.get_opcode() == I::Add) else {
            return Ok(None);
        };
        let [a, b] = [0, 1].map(|n| sum.get_operand(n).and_then(|operand| operand.value()));
        Ok(match (a, b) {
            (Some(a), Some(b)) if a == pointer => Some((payload, pointer, b)),
            (Some(a), Some(b)) if b == pointer => Some((payload, pointer, a)),
            _ => None,
        })
    }

    /// Calls `each` with pointer and byte offset of every element that is inside, when the condition holds; under a fault
    /// policy, reports those that are not.
    fn element_loop(
        &mut self,
        block: &BlockOperands<'c>,
        each: impl FnOnce(&mut Self, PointerValue<'c>, V<'c>) -> EmitResult<()>,
    ) -> EmitResult<()> {
        let elem = block.access.elem.bytes();
        let limit = self.wide_limit(block.region, elem)?;
        let base = self.base(block.region)?;
        let (head, test, access) = (self.new_block(), self.new_block(), self.new_block());
        let (next, end) = (self.new_block(), self.new_block());
        let before = self.here()?;
        self.branch(block.cond, head, end)?;

        self.at(head);
        let phi = self.b.build_phi(self.cx.i64_type(), "\0")?;
        let index = phi.as_basic_value();
        let bytes = self.i64(u64::from(block.ty().bytes()));
        let more = self.icmp(IntPredicate::ULT, index, bytes)?;
        self.branch(more, test, end)?;

        self.at(test);
        let first = self.resize(block.addr, 64)?;
        let address = self.op2(I::Add, first, index)?;
        let offset = if block.flat() {
            self.flat_offset(address)?
        } else {
            address
        };
        let inside = self.icmp(IntPredicate::ULT, offset, limit)?;
        if self.records_faults(block.access.space) {
            let outside = self.new_block();
            self.branch(inside, access, outside)?;
            self.at(outside);
            let one = self.i32(1).into();
            let place = (address, 1, block.surface);
            self.report(place, one, block.access.site, |_| Ok(()))?;
            self.jump(next)?;
        } else {
            self.branch(inside, access, next)?;
        }

        self.at(access);
        let pointer = self.offset(base, self.as_int(offset)?)?;
        each(self, pointer, index)?;
        self.jump(next)?;

        self.at(next);
        let following = self.add_const(self.as_int(index)?, i64::from(elem))?;
        phi.add_incoming(&[(&self.i64(0), before), (&following, next)]);
        self.jump(head)?;
        self.at(end);
        Ok(())
    }
}
