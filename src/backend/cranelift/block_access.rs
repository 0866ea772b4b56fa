//! Uniform accesses to consecutive elements.
//!
//! One test decides for the whole block. If it fails, a loop goes through the elements.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Value as V, types};
use visa_runtime::abi::message;

use super::context::Key;
use super::emit::{CraneliftEmitter, DATA};
use super::memory::Region;
use super::value::{piece_type, scalar_type};
use crate::backend::access::{FLAT_OFFSET, Place, pointer_of};
use crate::ssa::{BlockAccess, Lane, Ty, Value};

/// Operands of a block access.
struct BlockOperands {
    access: BlockAccess,
    cond: Value,
    addr: V,
    address: Value,
    surface: V,
    region: Region,
}

impl BlockOperands {
    fn ty(&self) -> Ty {
        Ty::vector(self.access.elem, self.access.n)
    }
}

impl CraneliftEmitter<'_> {
    fn block_operands(&mut self, access: BlockAccess, args: &[Value]) -> BlockOperands {
        let surface = access.space.has_surface().then(|| args[2]);
        let region = self.region(access.space, surface);
        let surface = match surface {
            Some(s) => self.scalar(s),
            None => self.iconst(types::I32, 0),
        };
        BlockOperands {
            access,
            cond: args[0],
            addr: self.scalar(args[1]),
            address: args[1],
            surface,
            region,
        }
    }

    /// A block load.
    pub(super) fn block_load(&mut self, access: BlockAccess, args: &[Value], out: Value) {
        if let Some(at) = self.f.fixed_registers(access, args) {
            let frame = self.frame();
            let ty = Ty::vector(access.elem, access.n);
            let parts = self.load_value(frame, at as i32, ty, DATA);
            return self.bind(out, parts);
        }
        let block = self.block_operands(access, args);
        let ty = block.ty();
        let done = self.new_block();
        let types: Vec<ir::Type> = if ty.is_scalar() {
            vec![scalar_type(ty.lane)]
        } else {
            vec![piece_type(ty.lane); super::value::piece_count(ty)]
        };
        let results: Vec<V> = types
            .into_iter()
            .map(|t| self.func.dfg.append_block_param(done, t))
            .collect();
        self.whole_or_not(
            &block,
            |e, pointer| {
                let parts = e.load_value(pointer, 0, ty, DATA);
                e.jump(done, &parts);
            },
            |e| {
                if e.is_all_or_nothing(access) {
                    let zero = e.iconst(scalar_type(ty.lane), 0);
                    return e.jump(done, &[zero]);
                }
                let slot = e.slot(ty.bytes());
                e.clear_slot(slot, ty.bytes());
                e.element_loop(&block, |e, pointer, offset| {
                    let v = e.ins().load(scalar_type(ty.lane), DATA, pointer, 0);
                    let at = e.slot_addr(slot, 0);
                    let at = e.ins().iadd(at, offset);
                    e.ins().store(DATA, v, at, 0);
                });
                let parts = e.unspill(slot, 0, ty);
                e.jump(done, &parts);
            },
        );
        self.block = done;
        self.bind(out, results);
    }

    /// A block store.
    pub(super) fn block_store(&mut self, access: BlockAccess, args: &[Value]) {
        let data = Self::data_args(access.space, args)[0];
        let parts = self.parts(data);
        if let Some(at) = self.f.fixed_registers(access, args) {
            let frame = self.frame();
            let ty = Ty::vector(access.elem, access.n);
            return self.store_value(frame, at as i32, ty, &parts);
        }
        let block = self.block_operands(access, args);
        let ty = block.ty();
        let done = self.new_block();
        self.whole_or_not(
            &block,
            |e, pointer| {
                e.store_value(pointer, 0, ty, &parts);
                e.jump(done, &[]);
            },
            |e| {
                if e.is_all_or_nothing(access) {
                    return e.jump(done, &[]);
                }
                let slot = e.slot(ty.bytes());
                e.spill(slot, 0, &parts);
                e.element_loop(&block, |e, pointer, offset| {
                    let at = e.slot_addr(slot, 0);
                    let at = e.ins().iadd(at, offset);
                    let v = e.ins().load(scalar_type(ty.lane), DATA, at, 0);
                    e.ins().store(DATA, v, pointer, 0);
                });
                e.jump(done, &[]);
            },
        );
        self.block = done;
    }

    /// Where the whole is not accessed, nothing is, and nothing is reported.
    fn is_all_or_nothing(&self, access: BlockAccess) -> bool {
        access.n == 1 && !self.records_faults(access.space)
    }

    /// Branches to `whole` with a pointer when the condition holds and all bytes are inside, else
    /// to `not`. Both end with a jump.
    ///
    /// An address without a tag is inside if its whole distance from the base is. The tag is taken off where it is not.
    fn whole_or_not(
        &mut self,
        block: &BlockOperands,
        whole: impl FnOnce(&mut Self, V),
        not: impl FnOnce(&mut Self),
    ) {
        let fast = self.new_block();
        let slow = self.new_cold_block();
        let base = self.base(block.region);
        let bytes = block.ty().bytes();
        let at = self.func.dfg.append_block_param(fast, types::I64);
        if block.access.space.is_flat() {
            let limit = self.flat_limit(bytes);
            let tagged = self.new_cold_block();
            let distance = self.distance_from_base(block);
            let ok = self.enabled_below(block, distance, limit);
            let arg = [ir::BlockArg::Value(distance)];
            self.ins().brif(ok, fast, &arg, tagged, &[]);
            self.block = tagged;
            let plain = self.ins().band_imm_u(distance, FLAT_OFFSET.cast_signed());
            let ok = self.enabled_below(block, plain, limit);
            let arg = [ir::BlockArg::Value(plain)];
            self.ins().brif(ok, fast, &arg, slow, &[]);
        } else {
            let limit = self.limit(block.region, bytes);
            let ok = self.enabled_below(block, block.addr, limit);
            let offset = self.ins().uextend(types::I64, block.addr);
            let arg = [ir::BlockArg::Value(offset)];
            self.ins().brif(ok, fast, &arg, slow, &[]);
        }
        self.side(fast, |e| {
            let pointer = e.ins().iadd(base, at);
            whole(e, pointer);
        });
        self.side(slow, not);
    }

    fn enabled_below(&mut self, block: &BlockOperands, offset: V, limit: V) -> V {
        let inside = self.ins().icmp(IntCC::UnsignedLessThan, offset, limit);
        match self.scalar_const(block.cond) {
            Some(1) => inside,
            _ => {
                let cond = self.scalar(block.cond);
                self.ins().band(inside, cond)
            }
        }
    }

    /// A scalar address less the base of device memory, with what is in the tag. Pointers of the payload are taken from the base once a call.
    fn distance_from_base(&mut self, block: &BlockOperands) -> V {
        let base = Region::Known(Place::Flat);
        let Some((payload, pointer, rest)) = self.pointer_and_rest(block) else {
            let base = self.base(base);
            return self.ins().isub(block.addr, base);
        };
        let pointer = self.hoisted(Key::FromBase(payload), |e| {
            let base = e.base(base);
            e.ins().isub(pointer, base)
        });
        self.ins().iadd(pointer, rest)
    }

    /// The address as a pointer, with its offset in the payload, and the rest. That is taken from the sum that was made, as only that is sure to
    /// be there in all versions of a block.
    fn pointer_and_rest(&mut self, block: &BlockOperands) -> Option<(u32, V, V)> {
        let (pointer, payload) = pointer_of(self.f, block.address)?;
        let pointer = self.scalar(pointer);
        let sum = self.func.dfg.value_def(block.addr).inst()?;
        if self.func.dfg.insts[sum].opcode() != ir::Opcode::Iadd {
            return None;
        }
        match *self.func.dfg.inst_args(sum) {
            [a, b] if a == pointer => Some((payload, pointer, b)),
            [a, b] if b == pointer => Some((payload, pointer, a)),
            _ => None,
        }
    }

    /// Calls `each` with pointer and byte offset of every element that is inside, when the
    /// condition holds; under a fault policy, reports the first that is not.
    fn element_loop(&mut self, block: &BlockOperands, each: impl FnOnce(&mut Self, V, V)) {
        let elem = block.access.elem;
        let head = self.new_cold_block();
        let test = self.new_cold_block();
        let access = self.new_cold_block();
        let next = self.new_cold_block();
        let end = self.new_cold_block();
        let index = self.func.dfg.append_block_param(head, types::I64);
        let zero = self.iconst(types::I64, 0);
        let cond = self.scalar(block.cond);
        let limit = self.wide_limit(block.region, elem.bytes());
        let base = self.base(block.region);
        let args = [ir::BlockArg::Value(zero)];
        self.ins().brif(cond, head, &args, end, &[]);

        self.block = head;
        let bytes = i64::from(block.ty().bytes());
        let more = self.ins().icmp_imm_u(IntCC::UnsignedLessThan, index, bytes);
        self.branch(more, test, end);

        self.block = test;
        let (offset, address) = self.element_offset(block, index);
        let inside = self.ins().icmp(IntCC::UnsignedLessThan, offset, limit);
        let outside = if self.records_faults(block.access.space) {
            self.new_cold_block()
        } else {
            next
        };
        self.branch(inside, access, outside);
        if outside != next {
            self.block = outside;
            self.report_element(block, address);
            self.jump(next, &[]);
        }

        self.block = access;
        let pointer = self.ins().iadd(base, offset);
        each(self, pointer, index);
        self.jump(next, &[]);

        self.block = next;
        let following = self.ins().iadd_imm_u(index, i64::from(elem.bytes()));
        self.jump(head, &[following]);
        self.block = end;
    }

    /// Offset in the region, and address, of the element at a byte index.
    fn element_offset(&mut self, block: &BlockOperands, index: V) -> (V, V) {
        if block.access.space.is_flat() {
            let address = self.ins().iadd(block.addr, index);
            return (self.flat_offset(address), address);
        }
        let first = self.ins().uextend(types::I64, block.addr);
        let offset = self.ins().iadd(first, index);
        (offset, offset)
    }

    fn report_element(&mut self, block: &BlockOperands, address: V) {
        let one = self.iconst(types::I32, 1);
        let lanes = super::memory::Lanes {
            count: 1,
            mask: block.cond,
            addresses: None,
            addr: vec![address],
            region: block.region,
            surface: block.surface,
            flat: true,
            place: message::FLAT,
        };
        self.report(&lanes, one, block.access.site, |_| ());
    }

    /// Zeroes a slot.
    fn clear_slot(&mut self, slot: ir::StackSlot, bytes: u32) {
        let zero = self.vconst(piece_type(Lane::I8), 0);
        let addr = self.slot_addr(slot, 0);
        for i in 0..bytes.div_ceil(16) {
            self.ins().store(DATA, zero, addr, 16 * i as i32);
        }
    }
}
