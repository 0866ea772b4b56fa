//! Atomics of integers without a call: a loop over the lanes that are enabled and inside.
//!
//! The code first stores offsets and operands in the slot for messages, where the loop reads them by lane number. Old values come
//! back the same way, if an instruction reads them.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, BlockArg, InstBuilder, Type, Value as V, types};
use visa_runtime::abi::{Helpers, message};

use super::emit::{CraneliftEmitter, DATA};
use super::memory::Lanes;
use super::value::{piece_count, piece_type, scalar_type};
use crate::backend::access::{AtomicHow, AtomicWay, asks_first};
use crate::isa::AtomicOp;
use crate::ssa::{AtomicAccess, Inst, Lane, Op, Ty, Value};

/// Where a lane's operand is.
#[derive(Clone, Copy)]
enum Operand {
    /// The same for all.
    Uniform(V),
    /// In a row of the slot that starts at this byte.
    Row(u32),
}

/// One element that is changed.
struct Element {
    op: AtomicOp,
    locked: bool,
    ty: Type,
    pointer: V,
    operands: [Option<V>; 2],
}

impl CraneliftEmitter<'_> {
    /// A lane-wise atomic.
    pub(super) fn atomic(&mut self, inst: Inst, how: AtomicHow) {
        let f = self.f;
        let data = f.inst(inst);
        self.set_line(data.line);
        let (Op::Atomic(access), [out]) = (&data.op, data.results.as_slice()) else {
            return self.bug("no atomic");
        };
        let lanes = self.lanes(access.space, &data.args);
        let operands = Self::data_args(access.space, &data.args);
        match how.way {
            AtomicWay::Message => self.atomic_by_message(*access, &lanes, operands, *out),
            AtomicWay::Scalar => self.atomic_scalar(*access, &lanes, operands, *out, how.locked),
            AtomicWay::Loop | AtomicWay::Straight => {
                self.atomic_lanes(*access, &lanes, operands, *out, how);
            }
        }
    }

    fn atomic_by_message(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes,
        data: &[Value],
        out: Value,
    ) {
        let data: Vec<Vec<V>> = data.iter().map(|&v| self.parts(v)).collect();
        let rows = data.len().max(1);
        let helper = offset_of!(Helpers, atomic);
        let mut call = self.message(helper, lanes, access.elem, rows, &data);
        call.shape |= (access.op as u32) << message::ATOMIC_SHIFT;
        self.send_or_report(call, lanes, access.space, access.site);
        let parts = self.message_row(call.rows, 0, Ty::vector(access.elem, lanes.count));
        self.bind(out, parts);
    }

    fn atomic_scalar(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes,
        data: &[Value],
        out: Value,
        locked: bool,
    ) {
        let elem = access.elem;
        let offset = self.offset(lanes);
        let low = i64::from(elem.bytes()) - 1;
        let offset = self.ins().band_imm_s(offset, !low);
        let limit = match lanes.flat {
            true => self.flat_limit(elem.bytes()),
            false => self.limit(lanes.region, elem.bytes()),
        };
        let inside = self.ins().icmp(IntCC::UnsignedLessThan, offset, limit);
        if self.records_faults(access.space) {
            let enabled = self.scalar(lanes.mask);
            let faulting = self.ins().band_not(enabled, inside);
            let faulting = self.resize(faulting, types::I32);
            self.report(lanes, faulting, access.site, |_| ());
        }
        let guard = self.guard(lanes, inside);
        let operands = [0, 1].map(|n| data.get(n).copied());
        let operands = operands.map(|v| v.map(|v| self.scalar(v)));
        let base = self.base(lanes.region);
        let zero = self.sconst(elem, 0);
        let (one, done) = (self.new_block(), self.new_block());
        let ty = scalar_type(elem);
        let result = self.func.dfg.append_block_param(done, ty);
        self.ins().brif(guard, one, &[], done, &[zero.into()]);
        self.block = one;
        let wide = self.resize(offset, types::I64);
        let pointer = self.ins().iadd(base, wide);
        let old = self.change(&Element {
            op: access.op,
            locked,
            ty,
            pointer,
            operands,
        });
        self.jump(done, &[old]);
        self.block = done;
        self.bind(out, vec![result]);
    }

    fn atomic_lanes(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes,
        data: &[Value],
        out: Value,
        how: AtomicHow,
    ) {
        let AtomicHow {
            way, locked, read, ..
        } = how;
        let (offsets, bits) = self.atomic_offsets(access, lanes);
        let old = if way == AtomicWay::Straight {
            self.atomic_straight_or_loop(access, lanes, data, (&offsets, bits), (locked, read))
        } else {
            self.atomic_loop(access, lanes, data, (&offsets, bits), (locked, read))
        };
        if read {
            self.bind(out, old);
        }
    }

    /// All lanes, one after the other in straight code; the old values.
    fn atomic_straight(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes,
        data: &[Value],
        offsets: &[V],
        locked: bool,
    ) -> Vec<V> {
        let elem = access.elem;
        let base = self.base(lanes.region);
        let mut all = Vec::new();
        for lane in 0..usize::from(lanes.count) {
            let mut operands = [None; 2];
            for (operand, &v) in operands.iter_mut().zip(data) {
                *operand = Some(match self.same_in_all(elem, v) {
                    Some(one) => one,
                    None => {
                        let parts = self.parts(v);
                        self.lane_of(elem, &parts, lane)
                    }
                });
            }
            let pointer = self.pointer_to_lane(Some((base, 0)), lanes.addr_lane(), offsets, lane);
            all.push(self.change(&Element {
                op: access.op,
                locked,
                ty: scalar_type(elem),
                pointer,
                operands,
            }));
        }
        all
    }

    /// All lanes in straight code if all are enabled, else in a loop over those that are.
    fn atomic_straight_or_loop(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes,
        data: &[Value],
        (offsets, bits): (&[V], V),
        (locked, read): (bool, bool),
    ) -> Vec<V> {
        let elem = access.elem;
        let every = i64::from(u32::MAX >> (32 - u32::from(lanes.count)));
        let full = self.ins().icmp_imm_u(IntCC::Equal, bits, every);
        let (straight, some, done) = (self.new_block(), self.new_block(), self.new_block());
        self.branch(full, straight, some);
        self.side(straight, |e| {
            let all = e.atomic_straight(access, lanes, data, offsets, locked);
            let old = if read {
                e.from_lanes(elem, &all)
            } else {
                Vec::new()
            };
            e.jump(done, &old);
        });
        let old = self.side(some, |e| {
            let old = e.atomic_loop(access, lanes, data, (offsets, bits), (locked, read));
            e.jump(done, &old);
            old
        });
        self.block = done;
        let ty = piece_type(elem);
        let params = old
            .iter()
            .map(|_| self.func.dfg.append_block_param(done, ty));
        params.collect()
    }

    /// The scalar that all lanes of a value have, where its definition says so.
    fn same_in_all(&mut self, elem: Lane, v: Value) -> Option<V> {
        match (self.uniform_const(v), self.splat_of(v)) {
            (Some(bits), _) => Some(self.sconst(elem, bits)),
            (None, Some(scalar)) => Some(self.scalar(scalar)),
            (None, None) => None,
        }
    }

    fn atomic_loop(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes,
        data: &[Value],
        (offsets, bits): (&[V], V),
        (locked, read): (bool, bool),
    ) -> Vec<V> {
        let elem = access.elem;
        let ty = Ty::vector(elem, lanes.count);
        let row = 16 * piece_count(ty) as u32;
        let addresses = 16 * offsets.len() as u32;
        let results = addresses + row * data.len() as u32;
        let block = self.message_block(results + if read { row } else { 0 });
        let at = self.slot_addr(block, 0);
        self.store_pieces(at, 0, offsets);
        let mut operands = [None; 2];
        for (n, &v) in data.iter().enumerate() {
            let start = addresses + row * n as u32;
            operands[n] = Some(match self.same_in_all(elem, v) {
                Some(one) => Operand::Uniform(one),
                None => {
                    let parts = self.parts(v);
                    self.store_pieces(at, start, &parts);
                    Operand::Row(start)
                }
            });
        }
        if read {
            let zero = self.vconst(piece_type(elem), 0);
            self.store_pieces(at, results, &vec![zero; piece_count(ty)]);
        }
        let base = self.base(lanes.region);
        let (each, done) = (self.new_block(), self.new_block());
        let left = self.func.dfg.append_block_param(each, types::I32);
        self.ins().brif(bits, each, &[bits.into()], done, &[]);
        self.side(each, |e| {
            let lane = e.ins().ctz(left);
            let lane = e.ins().uextend(types::I64, lane);
            let offset = e.load_lane(lanes.addr_lane(), at, 0, lane);
            let wide = e.resize(offset, types::I64);
            let pointer = e.ins().iadd(base, wide);
            let operands = operands.map(|operand| match operand? {
                Operand::Uniform(v) => Some(v),
                Operand::Row(start) => Some(e.load_lane(elem, at, start, lane)),
            });
            let old = e.change(&Element {
                op: access.op,
                locked,
                ty: scalar_type(elem),
                pointer,
                operands,
            });
            if read {
                let to = e.lane_at(elem, at, lane);
                e.ins().store(DATA, old, to, results.cast_signed());
            }
            let less = e.ins().iadd_imm_s(left, -1);
            let left = e.ins().band(left, less);
            let again = [BlockArg::from(left)];
            e.ins().brif(left, each, &again, done, &[]);
        });
        self.block = done;
        if !read {
            return Vec::new();
        }
        let whole = Ty::vector(elem, ty.lanes.next_multiple_of(16 / elem.bytes() as u16));
        self.load_value(at, results.cast_signed(), whole, DATA)
    }

    /// Offsets, and a bit for each lane that is enabled and inside; others are reported.
    fn atomic_offsets(&mut self, access: AtomicAccess, lanes: &Lanes) -> (Vec<V>, V) {
        let lane = lanes.addr_lane();
        let low = u64::from(access.elem.bytes()) - 1;
        let aligned = self.vsplat(lane, !low);
        let offsets = self.lane_offsets(lanes);
        let offsets: Vec<V> = offsets
            .iter()
            .map(|&offset| self.ins().band(offset, aligned))
            .collect();
        let outside = self.outside_limit(access.elem.bytes(), lanes, &offsets);
        // Of the lanes only, as vectors may be longer.
        let outside = self.vec_to_bits(lane.bytes(), &outside, lanes.count);
        let enabled = self.mask_bits(lanes.mask);
        if self.records_faults(access.space) {
            let faulting = self.ins().band(enabled, outside);
            self.report(lanes, faulting, access.site, |_| ());
        }
        (offsets, self.ins().band_not(enabled, outside))
    }

    pub(super) fn store_pieces(&mut self, to: V, start: u32, pieces: &[V]) {
        for (i, &v) in pieces.iter().enumerate() {
            let at = start + 16 * i as u32;
            self.ins().store(DATA, v, to, at.cast_signed());
        }
    }

    /// Address of a lane's element in a row that starts at `at`.
    pub(super) fn lane_at(&mut self, elem: Lane, at: V, lane: V) -> V {
        let shift = i64::from(elem.bytes().trailing_zeros());
        let distance = self.ins().ishl_imm_u(lane, shift);
        self.ins().iadd(at, distance)
    }

    fn load_lane(&mut self, elem: Lane, at: V, start: u32, lane: V) -> V {
        let from = self.lane_at(elem, at, lane);
        let ty = scalar_type(elem);
        self.ins().load(ty, DATA, from, start.cast_signed())
    }

    /// Changes an element; gives its old value, or after `PreDec` the new.
    fn change(&mut self, element: &Element) -> V {
        let one = self.iconst(element.ty, 1);
        let a = element.operands[0].unwrap_or(one);
        if element.locked && asks_first(element.op) {
            return self.change_if_needed(element, a, one);
        }
        if element.locked {
            return self.change_locked(element, a, one);
        }
        let old = self.ins().load(element.ty, DATA, element.pointer, 0);
        let pick = |e: &mut Self, cc: IntCC| {
            let keep = e.ins().icmp(cc, old, a);
            e.ins().select(keep, old, a)
        };
        let new = match element.op {
            AtomicOp::Add => self.ins().iadd(old, a),
            AtomicOp::Sub => self.ins().isub(old, a),
            AtomicOp::Inc => self.ins().iadd(old, one),
            AtomicOp::Dec | AtomicOp::PreDec => self.ins().isub(old, one),
            AtomicOp::Umin => pick(self, IntCC::UnsignedLessThan),
            AtomicOp::Umax => pick(self, IntCC::UnsignedGreaterThan),
            AtomicOp::Smin => pick(self, IntCC::SignedLessThan),
            AtomicOp::Smax => pick(self, IntCC::SignedGreaterThan),
            AtomicOp::Xchg => a,
            AtomicOp::CmpXchg => {
                let same = self.ins().icmp(IntCC::Equal, old, a);
                let new = element.operands[1].unwrap_or(old);
                self.ins().select(same, new, old)
            }
            AtomicOp::And => self.ins().band(old, a),
            AtomicOp::Or => self.ins().bor(old, a),
            AtomicOp::Xor => self.ins().bxor(old, a),
            other => {
                self.bug(format!("{other:?} without a call"));
                old
            }
        };
        self.ins().store(DATA, new, element.pointer, 0);
        match element.op {
            AtomicOp::PreDec => new,
            _ => old,
        }
    }

    /// A minimum or maximum that is locked only if it changes the element.
    fn change_if_needed(&mut self, element: &Element, a: V, one: V) -> V {
        let seen = self.ins().atomic_load(element.ty, DATA, element.pointer);
        let changes = match element.op {
            AtomicOp::Umin => IntCC::UnsignedLessThan,
            AtomicOp::Umax => IntCC::UnsignedGreaterThan,
            AtomicOp::Smin => IntCC::SignedLessThan,
            _ => IntCC::SignedGreaterThan,
        };
        let changes = self.ins().icmp(changes, a, seen);
        let (locked, done) = (self.new_block(), self.new_block());
        let old = self.func.dfg.append_block_param(done, element.ty);
        self.ins().brif(changes, locked, &[], done, &[seen.into()]);
        self.block = locked;
        let changed = self.change_locked(element, a, one);
        self.jump(done, &[changed]);
        self.block = done;
        old
    }

    fn change_locked(&mut self, element: &Element, a: V, one: V) -> V {
        let op = match element.op {
            AtomicOp::Add | AtomicOp::Inc => AtomicRmwOp::Add,
            AtomicOp::Sub | AtomicOp::Dec | AtomicOp::PreDec => AtomicRmwOp::Sub,
            AtomicOp::Umin => AtomicRmwOp::Umin,
            AtomicOp::Umax => AtomicRmwOp::Umax,
            AtomicOp::Smin => AtomicRmwOp::Smin,
            AtomicOp::Smax => AtomicRmwOp::Smax,
            AtomicOp::Xchg => AtomicRmwOp::Xchg,
            AtomicOp::And => AtomicRmwOp::And,
            AtomicOp::Or => AtomicRmwOp::Or,
            AtomicOp::Xor => AtomicRmwOp::Xor,
            AtomicOp::CmpXchg => {
                let new = element.operands[1].unwrap_or(a);
                return self.ins().atomic_cas(DATA, element.pointer, a, new);
            }
            other => {
                self.bug(format!("{other:?} without a call"));
                return a;
            }
        };
        let old = self
            .ins()
            .atomic_rmw(element.ty, DATA, op, element.pointer, a);
        match element.op {
            AtomicOp::PreDec => self.ins().isub(old, one),
            _ => old,
        }
    }
}
