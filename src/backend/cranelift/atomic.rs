//! Lane-wise atomics: a loop over the lanes that are enabled and in bounds.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, StackSlot, Value as V, types};

use super::emit::{DATA, Emit};
use super::memory::Lanes;
use super::value::{piece_count, scalar_type};
use crate::isa::AtomicOp;
use crate::ssa::{AtomicAccess, Lane, Ty, Value};

/// Atomics are aligned by definition: the address is rounded down first.
const ALIGNED: cranelift_codegen::ir::MemFlagsData = cranelift_codegen::ir::MemFlagsData::trusted();

impl Emit<'_> {
    /// A lane-wise atomic.
    pub fn atomic(&mut self, access: AtomicAccess, args: &[Value], out: Value) {
        let elem = access.elem;
        let ty = Ty::vector(elem, self.ty(args[1]).lanes);
        let mut lanes = self.lanes(access.space, args);
        let low = !u64::from(elem.bytes() - 1);
        let align = self.konst(lanes.addr_lane(), lanes.count > 1, low);
        lanes.offset = self.lanewise(std::slice::from_ref(&lanes.offset), |e, v| {
            e.ins().band(v[0], align)
        });
        self.check_lanes(&lanes, elem, 1, access.site, access.space);
        let guards = self.guards(&lanes, &lanes.offset, elem.bytes());
        let guards = self.guard_mask(&lanes, guards);
        let bits = self.repr_bits(&guards, lanes.count);

        let offsets = self.slot(16 * lanes.offset.len() as u32);
        self.spill(offsets, &lanes.offset);
        let mut sources = Vec::new();
        for &v in Self::data_args(access.space, args) {
            let parts = self.parts(v);
            let slot = self.slot(16 * parts.len() as u32);
            self.spill(slot, &parts);
            sources.push(slot);
        }
        let result = self.slot(16 * piece_count(ty) as u32);
        self.clear_slot(result, 16 * piece_count(ty) as u32);
        self.set_bits_loop(bits, |e, lane| {
            let offset = e.slot_lane(offsets, lanes.addr_lane(), lane);
            let pointer = e.lane_pointer(&lanes, offset);
            let operands: Vec<V> = sources
                .iter()
                .map(|&s| e.slot_lane(s, elem, lane))
                .collect();
            let old = e.atomic_one(access.op, elem, pointer, &operands);
            let at = e.slot_lane_addr(result, elem, lane);
            e.ins().store(DATA, old, at, 0);
        });
        let parts = self.unspill(result, ty);
        self.bind(out, parts);
    }

    /// Runs `each` for every set bit, lowest first, with its number as `i64`.
    pub fn set_bits_loop(&mut self, bits: V, each: impl FnOnce(&mut Self, V)) {
        let head = self.new_block();
        let body = self.new_block();
        let end = self.new_block();
        let left = self.func.dfg.append_block_param(head, types::I32);
        self.jump(head, &[bits]);
        self.block = head;
        let any = self.ins().icmp_imm_u(IntCC::NotEqual, left, 0);
        self.branch(any, body, end);
        self.block = body;
        let off = std::mem::replace(&mut self.cache.off, true);
        let lane = self.ins().ctz(left);
        let lane = self.ins().uextend(types::I64, lane);
        each(self, lane);
        let less = self.ins().iadd_imm_s(left, -1);
        let rest = self.ins().band(left, less);
        self.jump(head, &[rest]);
        self.cache.off = off;
        self.block = end;
    }

    /// Address of one lane of a vector in a slot.
    pub fn slot_lane_addr(&mut self, slot: StackSlot, elem: Lane, lane: V) -> V {
        let base = self.slot_addr(slot, 0);
        let offset = self.ins().imul_imm_u(lane, i64::from(elem.bytes()));
        self.ins().iadd(base, offset)
    }

    /// One lane of a vector in a slot.
    pub fn slot_lane(&mut self, slot: StackSlot, elem: Lane, lane: V) -> V {
        let at = self.slot_lane_addr(slot, elem, lane);
        self.ins().load(scalar_type(elem), DATA, at, 0)
    }

    /// Pointer of an offset that is in bounds.
    pub fn lane_pointer(&mut self, lanes: &Lanes, offset: V) -> V {
        let base = self.base(lanes.region);
        let wide = self.resize(offset, types::I64);
        self.ins().iadd(base, wide)
    }

    fn atomic_one(&mut self, op: AtomicOp, elem: Lane, pointer: V, operands: &[V]) -> V {
        let ty = scalar_type(elem);
        let first = operands.first().copied();
        let rmw = |e: &mut Self, op: AtomicRmwOp, v: Option<V>| {
            let v = v.unwrap_or_else(|| e.iconst(ty, 1));
            e.ins().atomic_rmw(ty, ALIGNED, op, pointer, v)
        };
        match op {
            AtomicOp::Add => rmw(self, AtomicRmwOp::Add, first),
            AtomicOp::Sub => rmw(self, AtomicRmwOp::Sub, first),
            AtomicOp::Inc => rmw(self, AtomicRmwOp::Add, None),
            AtomicOp::Dec => rmw(self, AtomicRmwOp::Sub, None),
            AtomicOp::PreDec => {
                let old = rmw(self, AtomicRmwOp::Sub, None);
                self.ins().iadd_imm_s(old, -1)
            }
            AtomicOp::Umin => rmw(self, AtomicRmwOp::Umin, first),
            AtomicOp::Umax => rmw(self, AtomicRmwOp::Umax, first),
            AtomicOp::Smin => rmw(self, AtomicRmwOp::Smin, first),
            AtomicOp::Smax => rmw(self, AtomicRmwOp::Smax, first),
            AtomicOp::Xchg => rmw(self, AtomicRmwOp::Xchg, first),
            AtomicOp::And => rmw(self, AtomicRmwOp::And, first),
            AtomicOp::Or => rmw(self, AtomicRmwOp::Or, first),
            AtomicOp::Xor => rmw(self, AtomicRmwOp::Xor, first),
            AtomicOp::Load => self.ins().atomic_load(ty, ALIGNED, pointer),
            AtomicOp::CmpXchg => match *operands {
                [compare, new, ..] => self.ins().atomic_cas(ALIGNED, pointer, compare, new),
                _ => self.missing_operand(ty),
            },
            AtomicOp::Fadd => self.float_atomic(0, elem, pointer, operands),
            AtomicOp::Fsub => self.float_atomic(1, elem, pointer, operands),
            AtomicOp::Fmin => self.float_atomic(2, elem, pointer, operands),
            AtomicOp::Fmax => self.float_atomic(3, elem, pointer, operands),
            AtomicOp::FcmpXchg => self.float_atomic(4, elem, pointer, operands),
        }
    }

    fn missing_operand(&mut self, ty: cranelift_codegen::ir::Type) -> V {
        self.bug("atomic without enough operands");
        self.iconst(ty, 0)
    }

    /// The helper takes operand, then compare; the instruction has compare, then new.
    fn float_atomic(&mut self, op: u32, elem: Lane, pointer: V, operands: &[V]) -> V {
        let (operand, compare) = match *operands {
            [compare, new, ..] => (new, Some(compare)),
            [operand] => (operand, None),
            [] => return self.missing_operand(scalar_type(elem)),
        };
        let operand = self.resize(operand, types::I64);
        let compare = match compare {
            Some(c) => self.resize(c, types::I64),
            None => self.iconst(types::I64, 0),
        };
        let old = self.call_float_atomic(op, elem.bytes(), pointer, operand, compare);
        self.resize(old, scalar_type(elem))
    }
}
