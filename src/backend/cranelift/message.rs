//! Lane-wise loads, stores and atomics for addresses of any shape.
//!
//! Scalars are inline. Vectors go to the runtime in one call for each message, which keeps the code short, unless `lanes.rs` is
//! asked for.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, StackSlot, Value as V, types};
use cranelift_codegen::isa::CallConv;
use visa_runtime::abi::{Helpers, message};

use super::emit::{CraneliftEmitter, DATA};
use super::memory::Lanes;
use super::rolled::Rows;
use super::value::{piece_count, scalar_type};
use crate::backend::access::{Any, How};
use crate::ssa::{Inst, Lane, MemAccess, Op, Space, Ty, Value};

/// A call of a [`visa_runtime::abi::Message`].
#[derive(Clone, Copy)]
pub(super) struct MessageCall {
    /// Offset in the table.
    helper: usize,
    /// The function keeps all registers.
    preserve_all: bool,
    pub shape: u32,
    /// Surface index, or size of register storage.
    index: V,
    enabled: V,
    /// Data; addresses are in front of it.
    pub rows: Rows,
}

impl CraneliftEmitter<'_> {
    /// A load or store that shares no test with others.
    pub(super) fn access_alone(&mut self, inst: Inst, how: &How) {
        let f = self.f;
        let data = f.inst(inst);
        self.set_line(data.line);
        match &data.op {
            Op::Load(access) => self.load(*access, &data.args, &data.results, (inst, how)),
            Op::Store(access) => self.store(*access, &data.args, (inst, how)),
            _ => self.bug("no access"),
        }
    }

    fn load(
        &mut self,
        access: MemAccess,
        args: &[Value],
        out: &[Value],
        (inst, how): (Inst, &How),
    ) {
        if !self.known_access(access) {
            return;
        }
        let lanes = self.lanes(access.space, args);
        let results = match how {
            How::Affine(alone) => self.load_affine(access, &lanes, inst, alone),
            How::Any(any) => self.load_any(access, &lanes, *any),
        };
        for (&v, parts) in out.iter().zip(results) {
            self.bind(v, parts);
        }
    }

    fn store(&mut self, access: MemAccess, args: &[Value], (inst, how): (Inst, &How)) {
        if !self.known_access(access) {
            return;
        }
        let lanes = self.lanes(access.space, args);
        let data: Vec<Vec<V>> = Self::data_args(access.space, args)
            .iter()
            .map(|&v| self.parts(v))
            .collect();
        match how {
            How::Affine(alone) => self.store_affine(access, &lanes, &data, (inst, alone)),
            How::Any(any) => self.store_any(access, &lanes, &data, *any),
        }
    }

    /// Load from addresses of unknown shape.
    pub(super) fn load_any(&mut self, access: MemAccess, lanes: &Lanes, any: Any) -> Vec<Vec<V>> {
        match any {
            Any::Scalar => return self.load_scalar(access, lanes),
            Any::Inline { once: true } => return vec![self.load_all_in_bounds(access, lanes)],
            Any::Inline { once: false } => return vec![self.load_each(access, lanes)],
            Any::Rolled => return self.load_rolled(access, lanes),
            Any::Gather
            | Any::GatherPairs
            | Any::GatherScaled { .. }
            | Any::Loop(_)
            | Any::Message
            | Any::RareMessage => {}
        }
        let call = self.send_load(access, lanes, any);
        let ty = Ty::vector(access.elem, lanes.count);
        self.message_results(call.rows, access.comps, ty)
    }

    /// Calls the runtime for a load.
    pub(super) fn send_load(&mut self, access: MemAccess, lanes: &Lanes, any: Any) -> MessageCall {
        let rows = usize::from(access.comps);
        let mut call = self.message(offset_of!(Helpers, load), lanes, access.elem, rows, &[]);
        if any == Any::RareMessage && self.keeps_registers() {
            call.preserve_all = true;
            call.helper = offset_of!(Helpers, load_preserve_all);
        }
        let faulting = self.send(call);
        if self.records_faults(access.space) {
            self.report(lanes, faulting, access.site, |_| ());
        }
        call
    }

    /// What the runtime has loaded, or inline code in its place.
    pub(super) fn message_results(&mut self, rows: Rows, comps: u8, ty: Ty) -> Vec<Vec<V>> {
        (0..u32::from(comps))
            .map(|row| self.message_row(rows, row, ty))
            .collect()
    }

    /// Store to addresses of unknown shape.
    pub(super) fn store_any(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        data: &[Vec<V>],
        any: Any,
    ) {
        match (any, data) {
            (Any::Scalar, data) => return self.store_scalar(access, lanes, data),
            (Any::Inline { once: true }, [v]) => return self.store_all_in_bounds(access, lanes, v),
            (Any::Inline { once: false }, [v]) => return self.store_inline(access, lanes, v),
            (Any::Rolled, data) => return self.store_rolled(access, lanes, data),
            _ => {}
        }
        self.send_store(access, lanes, data, any);
    }

    /// Calls the runtime for a store. Without data, that is where the message has it.
    pub(super) fn send_store(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        data: &[Vec<V>],
        any: Any,
    ) {
        let helper = offset_of!(Helpers, store);
        let rows = usize::from(access.comps);
        let mut call = self.message(helper, lanes, access.elem, rows, data);
        if any == Any::RareMessage && self.keeps_registers() {
            call.preserve_all = true;
            call.helper = offset_of!(Helpers, store_preserve_all);
        }
        self.send_or_report(call, lanes, access.space, access.site);
    }

    /// True when an access of a space that faults must be reported.
    pub(super) fn records_faults(&self, space: Space) -> bool {
        self.access_plan.limits.records_faults(space)
    }

    /// True where helpers that keep all registers are there.
    pub(super) fn keeps_registers(&self) -> bool {
        self.target.x64 && self.target.call_conv == CallConv::SystemV
    }

    /// Writes a message's addresses and data, `rows` vectors of which `data` are the first.
    pub(super) fn message(
        &mut self,
        helper: usize,
        lanes: &Lanes,
        elem: Lane,
        rows: usize,
        data: &[Vec<V>],
    ) -> MessageCall {
        let at = self.message_rows(lanes, elem, rows);
        let row = 16 * piece_count(Ty::vector(elem, lanes.count));
        let to = self.slot_addr(at.block, 0);
        let vectors = std::iter::once((0, &lanes.addr));
        let vectors = vectors.chain((at.first..).step_by(row).zip(data));
        for (at, parts) in vectors {
            for (i, &v) in parts.iter().enumerate() {
                let at = at + 16 * i as u32;
                self.ins().store(DATA, v, to, at.cast_signed());
            }
        }
        let (place, count) = (lanes.place, u32::from(lanes.count));
        let index = match place & !message::MARKS {
            message::REGS => self.iconst(types::I32, u64::from(self.f.regs_bytes)),
            _ => lanes.surface,
        };
        let enabled = self.enabled_lanes(lanes);
        MessageCall {
            helper,
            preserve_all: false,
            shape: message::shape(place, elem.bytes(), rows as u32, count),
            index,
            enabled,
            rows: at,
        }
    }

    /// Where a message has its rows.
    pub(super) fn message_rows(&mut self, lanes: &Lanes, elem: Lane, rows: usize) -> Rows {
        let first = 16 * piece_count(Ty::vector(lanes.addr_lane(), lanes.count)) as u32;
        let row = 16 * piece_count(Ty::vector(elem, lanes.count)) as u32;
        let block = self.message_block(first + row * rows as u32);
        Rows { block, first }
    }

    /// The function's slot for what a helper reads and writes, made as large as the largest call needs.
    pub(super) fn message_block(&mut self, bytes: u32) -> StackSlot {
        let slot = match self.ctx.message {
            Some(slot) => slot,
            None => self.slot(bytes),
        };
        let data = &mut self.func.sized_stack_slots[slot];
        data.size = data.size.max(bytes);
        self.ctx.message = Some(slot);
        slot
    }

    /// Calls the runtime; returns the lanes that fault.
    fn send(&mut self, call: MessageCall) -> V {
        let thread = self.thread();
        let args = [
            self.group(),
            thread,
            self.iconst(types::I32, u64::from(call.shape)),
            call.index,
            call.enabled,
            self.slot_addr(call.rows.block, 0),
        ];
        if call.preserve_all {
            self.call_preserve_all(call.helper, &args);
            return self.answer();
        }
        let faulting = self.call_helper(call.helper, Some(types::I32), &args);
        faulting.unwrap_or(call.enabled)
    }

    /// Calls the runtime for something that changes memory: after faults were reported, when it
    /// goes on then.
    pub(super) fn send_or_report(
        &mut self,
        mut call: MessageCall,
        lanes: &Lanes,
        space: Space,
        site: u32,
    ) {
        if !self.records_faults(space) {
            self.send(call);
            return;
        }
        call.shape |= message::ALL_OR_NONE;
        let faulting = self.send(call);
        call.shape &= !message::ALL_OR_NONE;
        self.report(lanes, faulting, site, |e| {
            e.send(call);
        });
    }

    /// A vector of a message that the runtime has answered.
    pub(super) fn message_row(&mut self, rows: Rows, row: u32, ty: Ty) -> Vec<V> {
        let from = self.slot_addr(rows.block, 0);
        let at = rows.first + row * 16 * piece_count(ty) as u32;
        let whole = Ty::vector(
            ty.lane,
            ty.lanes.next_multiple_of(16 / ty.lane.bytes() as u16),
        );
        let ty = if ty.is_scalar() { ty } else { whole };
        self.load_value(from, at.cast_signed(), ty, DATA)
    }

    fn load_scalar(&mut self, access: MemAccess, lanes: &Lanes) -> Vec<Vec<V>> {
        let elem = access.elem;
        self.check_scalar(access, lanes);
        let offset = self.offset(lanes);
        (0..access.comps)
            .map(|c| {
                let (at, inside) = self.component(lanes, offset, elem, c);
                let guard = self.guard(lanes, inside);
                let base = self.safe_base(lanes.region, elem.bytes());
                let zero = self.iconst(scalar_type(lanes.addr_lane()), 0);
                let safe = self.ins().select(guard, at, zero);
                let wide = self.resize(safe, types::I64);
                let pointer = self.ins().iadd(base, wide);
                let ty = scalar_type(elem);
                let v = self.ins().load(ty, DATA, pointer, 0);
                let zero = self.iconst(ty, 0);
                vec![self.ins().select(guard, v, zero)]
            })
            .collect()
    }

    fn store_scalar(&mut self, access: MemAccess, lanes: &Lanes, data: &[Vec<V>]) {
        self.check_scalar(access, lanes);
        let offset = self.offset(lanes);
        for (c, parts) in data.iter().enumerate() {
            let (at, inside) = self.component(lanes, offset, access.elem, c as u8);
            let guard = self.guard(lanes, inside);
            let sink = self.sink();
            let base = self.base(lanes.region);
            let wide = self.resize(at, types::I64);
            let pointer = self.ins().iadd(base, wide);
            let pointer = self.ins().select(guard, pointer, sink);
            self.ins().store(DATA, parts[0], pointer, 0);
        }
    }

    /// Reports a scalar access of which any component is outside.
    fn check_scalar(&mut self, access: MemAccess, lanes: &Lanes) {
        if !self.records_faults(access.space) {
            return;
        }
        let offset = self.offset(lanes);
        let enabled = self.scalar(lanes.mask);
        let mut faulting: Option<V> = None;
        for c in 0..access.comps {
            let (_, inside) = self.component(lanes, offset, access.elem, c);
            let outside = self.ins().band_not(enabled, inside);
            faulting = Some(match faulting {
                Some(f) => self.ins().bor(f, outside),
                None => outside,
            });
        }
        if let Some(faulting) = faulting {
            let faulting = self.resize(faulting, types::I32);
            self.report(lanes, faulting, access.site, |_| ());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::isa::AtomicOp;
    use visa_runtime::abi::atomic as code;

    #[test]
    fn barriers_have_the_numbers_of_the_runtime() {
        use visa_runtime::abi::named_barrier;
        assert_eq!(crate::ssa::GROUP_BARRIER, named_barrier::GROUP);
        assert_eq!(crate::ssa::BOTH_ROLES, named_barrier::BOTH);
        assert_eq!(crate::ssa::SITE_SHIFT, named_barrier::SITE_SHIFT);
    }

    #[test]
    fn atomic_operations_have_the_numbers_of_the_runtime() {
        let pairs = [
            (AtomicOp::Add, code::ADD),
            (AtomicOp::Sub, code::SUB),
            (AtomicOp::Inc, code::INC),
            (AtomicOp::Dec, code::DEC),
            (AtomicOp::PreDec, code::PRE_DEC),
            (AtomicOp::Umin, code::UMIN),
            (AtomicOp::Umax, code::UMAX),
            (AtomicOp::Smin, code::SMIN),
            (AtomicOp::Smax, code::SMAX),
            (AtomicOp::Xchg, code::XCHG),
            (AtomicOp::CmpXchg, code::CMP_XCHG),
            (AtomicOp::And, code::AND),
            (AtomicOp::Or, code::OR),
            (AtomicOp::Xor, code::XOR),
            (AtomicOp::Fmax, code::FMAX),
            (AtomicOp::Fmin, code::FMIN),
            (AtomicOp::FcmpXchg, code::FCMP_XCHG),
            (AtomicOp::Fadd, code::FADD),
            (AtomicOp::Fsub, code::FSUB),
            (AtomicOp::Load, code::LOAD),
        ];
        for (op, number) in pairs {
            assert_eq!(op as u32, number, "{op:?}");
        }
    }
}
