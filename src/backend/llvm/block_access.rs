//! Uniform accesses to consecutive elements.
//!
//! One test decides for the whole block. If it fails, a loop goes through the elements.

use inkwell::IntPredicate;
use inkwell::values::{InstructionOpcode as I, PointerValue};

use super::emit::{EmitResult, LlvmEmitter, V};
use super::memory::Region;
use crate::backend::access::Place;
use crate::ssa::{BlockAccess, Ty, Value};

/// Operands of a block access.
#[derive(Clone, Copy)]
struct BlockOperands<'c> {
    access: BlockAccess,
    cond: V<'c>,
    addr: V<'c>,
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
            region: self.region(access.space, surface)?,
            surface: match surface {
                Some(s) => self.get(s)?,
                None => self.i32(0).into(),
            },
        })
    }

    /// A block load.
    pub(super) fn block_load(&mut self, access: BlockAccess, args: &[Value]) -> EmitResult<V<'c>> {
        if let Some(at) = self.f.fixed_registers(access, args) {
            let pointer = self.register(at)?;
            return self.load_value(Ty::vector(access.elem, access.n), pointer);
        }
        let block = self.block_operands(access, args)?;
        let ty = block.ty();
        let (ok, whole) = self.whole_block(&block)?;
        let (fast, slow, done) = self.two_ways(ok)?;
        self.at(fast);
        let a = self.load_value(ty, whole)?;
        self.jump(done)?;
        self.at(slow);
        let b = if self.is_all_or_nothing(access) {
            self.type_of(ty).const_zero()
        } else {
            self.load_elements(&block)?
        };
        let end = self.here()?;
        self.jump(done)?;
        self.at(done);
        let phi = self.b.build_phi(self.type_of(ty), "\0")?;
        phi.add_incoming(&[(&a, fast), (&b, end)]);
        Ok(phi.as_basic_value())
    }

    /// What the elements that are inside hold, and zero for the others.
    fn load_elements(&mut self, block: &BlockOperands<'c>) -> EmitResult<V<'c>> {
        let ty = block.ty();
        let slot = self.slot(ty.bytes())?;
        self.store(self.exact(ty).const_zero(), slot)?;
        let elem = self.type_of(Ty::scalar(block.access.elem));
        self.element_loop(block, |e, pointer, at| {
            let v = e.load(elem, pointer)?;
            let to = e.offset(slot, e.as_int(at)?)?;
            e.store(v, to)
        })?;
        self.load_value(ty, slot)
    }

    /// A block store.
    pub(super) fn block_store(&mut self, access: BlockAccess, args: &[Value]) -> EmitResult<()> {
        let data = self.get(Self::data_args(access.space, args)[0])?;
        if let Some(at) = self.f.fixed_registers(access, args) {
            let pointer = self.register(at)?;
            return self.store_value(data, Ty::vector(access.elem, access.n), pointer);
        }
        let block = self.block_operands(access, args)?;
        let (ok, whole) = self.whole_block(&block)?;
        let (fast, slow, done) = self.two_ways(ok)?;
        self.at(fast);
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

    /// Whether the condition holds and all bytes are inside, and the pointer to them then.
    fn whole_block(&mut self, block: &BlockOperands<'c>) -> EmitResult<(V<'c>, PointerValue<'c>)> {
        let base = self.base(block.region)?;
        let size = self.size(block.region)?;
        let offset = if block.flat() {
            self.flat_offset(block.addr)?
        } else {
            self.resize(block.addr, 64)?
        };
        let bytes = i64::from(block.ty().bytes());
        // offset <= size - bytes, written so that neither side wraps.
        let fits = self.icmp(IntPredicate::UGE, size, self.i64(bytes.cast_unsigned()))?;
        let room = self.add_const(self.as_int(size)?, -bytes)?;
        let below = self.icmp(IntPredicate::ULE, offset, room)?;
        let ok = self.op2(I::And, fits, below)?;
        let ok = self.op2(I::And, ok, block.cond)?;
        Ok((ok, self.offset(base, self.as_int(offset)?)?))
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
