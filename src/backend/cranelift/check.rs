//! Checks of device memory against its buffers.
//!
//! The usual path compares lanes with the bounds of the buffer that their pointer points into, if the pointer is among the
//! arguments. Else it reads the shadow of all bytes that the lanes reach, enabled or not. Zeros there mean that all of these
//! bytes are a buffer's. Lanes with affine addresses take one test, others one for each lane.
//!
//! Where the test fails, the code calls the runtime, which looks at enabled lanes exactly and records what is wrong. Most often
//! nothing is, as at the end of a buffer whose size is no multiple of eight.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Type, Value as V, types};
use visa_runtime::abi::{Helpers, Pointee};

use super::affine::Affine;
use super::context::Key;
use super::emit::{CraneliftEmitter, DATA, READONLY};
use super::memory::{Lanes, Place, Region};
use crate::backend::access::{CheckHow, CheckSpan, FLAT_OFFSET, Spacing};
use crate::backend::fault_records::FaultRecords;
use crate::backend::shadow::{
    self, GRANULE, LEAD, LaneShadow, Pieces, PointeeOf, lane_bytes, shape,
};
use crate::ssa::{BufferCheck, Inst, Lane, Op, Space, Value};

/// Widest piece of the shadow that is read, in bytes.
const WIDEST: u64 = 16;

impl CraneliftEmitter<'_> {
    /// A check.
    pub(super) fn check_buffer(&mut self, inst: Inst, how: &CheckHow) {
        let data = self.f.inst(inst);
        self.set_line(data.line);
        let Op::CheckBuffer(check) = data.op else {
            return self.bug("no check of a buffer");
        };
        let args = data.args.as_slice();
        let go_on = self.new_block();
        let cold = self.new_cold_block();
        let lanes = self.affine_lanes(Space::Flat, args);
        let one_by_one = match &how.span {
            Some(span) => {
                let other = (!span.is_certain()).then(|| self.new_block());
                self.check_span(inst, check, span, (go_on, other.unwrap_or(cold)));
                other
            }
            None => Some(self.block),
        };
        let one_by_one = match (one_by_one, how.pointer) {
            (Some(here), Some(at)) => {
                let other = self.new_block();
                self.side(here, |e| {
                    let pointee = PointeeOf::new(check, at);
                    let within = e.are_within(pointee, lane_bytes(check), &lanes, args);
                    e.branch(within, go_on, other);
                });
                Some(other)
            }
            (here, _) => here,
        };
        if let Some(here) = one_by_one {
            self.side(here, |e| match how.each {
                Some(each) => e.scattered((check, each), &lanes, args, go_on, cold),
                None => e.jump(cold, &[]),
            });
        }
        self.side(cold, |e| {
            e.look(check, lanes, args);
            e.jump(go_on, &[]);
        });
        self.block = go_on;
    }

    /// Branches to `clear` if all lanes of a check are surely in buffers, else to `other`.
    fn check_span(
        &mut self,
        inst: Inst,
        check: BufferCheck,
        span: &CheckSpan,
        (clear, other): (ir::Block, ir::Block),
    ) {
        let (lowest, guard) = self.lowest(inst, span);
        let branch = |e: &mut Self, ok: V, to| {
            let ok = e.with_guard(ok, guard);
            e.branch(ok, clear, to);
        };
        let Some(pointer) = span.pointer else {
            let ok = self.shadow_is_clear(check, lowest, span.bytes);
            return branch(self, ok, other);
        };
        let by_shadow = self.new_cold_block();
        let ok = self.is_within(PointeeOf::new(check, pointer), (lowest, span.bytes));
        branch(self, ok, by_shadow);
        self.side(by_shadow, |e| {
            let ok = e.shadow_is_clear(check, lowest, span.bytes);
            branch(e, ok, other);
        });
    }

    /// Whether all lanes of a check are surely in the buffer that their pointer points into, or in buffers at all if it is not known; one test.
    pub(super) fn span_is_clear(&mut self, inst: Inst, check: BufferCheck, span: &CheckSpan) -> V {
        let (lowest, guard) = self.lowest(inst, span);
        let clear = match span.pointer {
            Some(pointer) => self.is_within(PointeeOf::new(check, pointer), (lowest, span.bytes)),
            None => self.shadow_is_clear(check, lowest, span.bytes),
        };
        self.with_guard(clear, guard)
    }

    /// Address of the lowest byte that a check's lanes reach, and the condition under which they are spaced as planned.
    fn lowest(&mut self, inst: Inst, span: &CheckSpan) -> (V, Option<V>) {
        let Affine { base, guard } = self.spacing_of(inst, &span.spacing);
        let lowest = match span.lowest {
            0 => base,
            below => self.ins().iadd_imm_s(base, below),
        };
        (lowest, guard)
    }

    /// Address of lane 0, and the condition under which the lanes are spaced from there as planned.
    pub(super) fn spacing_of(&mut self, inst: Inst, spacing: &Spacing) -> Affine {
        let args = self.f.inst(inst).args.as_slice();
        match spacing {
            Spacing::One => Affine {
                base: self.scalar(args[1]),
                guard: None,
            },
            Spacing::Table => self.shape_of(inst),
            Spacing::Local(sum) => self.local_shape(args[1], sum),
            Spacing::Beside(scaled) => {
                let lanes = self.lanes(Space::Flat, args);
                let (base, guard) = self.scaled_beside(&lanes, scaled);
                Affine {
                    base,
                    guard: Some(guard),
                }
            }
        }
    }

    /// Whether bytes from an address on are in the buffer that a pointer in the payload points into.
    pub(super) fn is_within(&mut self, pointee: PointeeOf, (address, bytes): (V, u64)) -> V {
        let start = self.pointee_start(pointee);
        let limit = self.hoisted(Key::PointeeLimit(pointee, bytes), |e| {
            let most = e.pointee_most(pointee, bytes);
            e.ins().iadd_imm_s(most, 1)
        });
        let mut distance = self.ins().isub(address, start);
        if pointee.ignores_tags {
            distance = self.ins().band_imm_u(distance, FLAT_OFFSET.cast_signed());
        }
        self.ins().icmp(IntCC::UnsignedLessThan, distance, limit)
    }

    /// First address of the buffer that a pointer in the payload points into.
    fn pointee_start(&mut self, pointee: PointeeOf) -> V {
        let all = self.launch_field(pointee.all, types::I64);
        let at = pointee.at + offset_of!(Pointee, start);
        self.hoisted(Key::PointeeStart(pointee), |e| {
            e.ins().load(types::I64, READONLY, all, at as i32)
        })
    }

    /// Largest offset in the buffer at which an access of some bytes is inside, or -1 if the buffer is smaller than the access.
    fn pointee_most(&mut self, pointee: PointeeOf, bytes: u64) -> V {
        let all = self.launch_field(pointee.all, types::I64);
        let at = pointee.at + offset_of!(Pointee, bytes);
        let size = self.ins().load(types::I64, READONLY, all, at as i32);
        let most = self.ins().iadd_imm_s(size, -(bytes as i64));
        let none = self.iconst(types::I64, u64::MAX);
        self.ins().smax(most, none)
    }

    /// Whether all enabled lanes are in the buffer that a pointer in the payload points into.
    pub(super) fn are_within(
        &mut self,
        pointee: PointeeOf,
        bytes: u64,
        lanes: &Lanes,
        args: &[Value],
    ) -> V {
        let start = self.pointee_start(pointee);
        // Not negative, so that no number less that it is taken from overflows.
        let most = self.pointee_most(pointee, bytes);
        let [start, most] = [start, most].map(|v| self.ins().splat(types::I64X2, v));
        let mask = self.lane_masks(lanes);
        let mut outside: Option<V> = None;
        for (i, a) in self.parts(args[1]).into_iter().enumerate() {
            // Both are signed, and one is negative if the lane is outside.
            let mut distance = self.ins().isub(a, start);
            if pointee.ignores_tags {
                let low = self.vsplat(Lane::I64, FLAT_OFFSET);
                distance = self.ins().band(distance, low);
            }
            let left = self.ins().isub(most, distance);
            let mut odd = self.ins().bor(distance, left);
            if let Some(mask) = &mask {
                let enabled = self.cast(mask[i], types::I64X2);
                odd = self.ins().band(odd, enabled);
            }
            outside = Some(match outside {
                Some(any) => self.ins().bor(any, odd),
                None => odd,
            });
        }
        let Some(outside) = outside else {
            return self.iconst(types::I8, 0);
        };
        let sign = self.vsplat(Lane::I64, 1 << 63);
        let outside = self.ins().band(outside, sign);
        let any = self.ins().vany_true(outside);
        self.ins().icmp_imm_u(IntCC::Equal, any, 0)
    }

    /// Masks of the lanes' addresses, unless all lanes are enabled.
    fn lane_masks(&mut self, lanes: &Lanes) -> Option<Vec<V>> {
        match self.is_const_full(lanes.mask) || self.is_full(lanes.mask) {
            true => None,
            false => Some(self.mask_vec(lanes.mask, 8)),
        }
    }

    /// Branches to `clear` if the shadow of each enabled lane is zero, else to `other`.
    fn scattered(
        &mut self,
        (check, of_lane): (BufferCheck, LaneShadow),
        lanes: &Lanes,
        args: &[Value],
        clear: ir::Block,
        other: ir::Block,
    ) {
        let ty = Type::int(of_lane.bytes as u16 * 8).unwrap_or(types::I64);
        let addresses = self.parts(args[1]);
        let base = self.base(Region::Known(Place::Flat));
        let limit = self.flat_limit(lane_bytes(check) as u32);
        let [base, limit] = [(base, -LEAD), (limit, LEAD)].map(|(v, by)| {
            let moved = self.ins().iadd_imm_s(v, by);
            self.ins().splat(types::I64X2, moved)
        });
        let mask = self.lane_masks(lanes);
        let mut places = Vec::with_capacity(addresses.len());
        for (i, &a) in addresses.iter().enumerate() {
            let distance = self.ins().isub(a, base);
            places.push(match &mask {
                Some(mask) => {
                    let enabled = self.cast(mask[i], types::I64X2);
                    self.ins().band(distance, enabled)
                }
                None => distance,
            });
        }
        let inside: Vec<V> = places
            .iter()
            .map(|&p| self.ins().icmp(IntCC::SignedGreaterThan, limit, p))
            .collect();
        let inside = self.pieces_test(&inside, true);
        // As signed numbers, addresses below are negative.
        let any = places[1..]
            .iter()
            .fold(places[0], |any, &p| self.ins().bor(any, p));
        let bits = self.vsplat(Lane::I64, 1 << 63 | of_lane.low);
        let any = self.ins().band(any, bits);
        let odd = self.ins().vany_true(any);
        let good = self.ins().band_not(inside, odd);
        let there = self.new_block();
        self.branch(good, there, other);
        self.side(there, |e| {
            let shadow = e.launch_field(shadow::shadow(check), types::I64);
            let shadow = e.ins().iadd_imm_s(shadow, -LEAD / GRANULE as i64);
            let mut all: Option<V> = None;
            for lane in 0..lanes.count {
                let place = places[usize::from(lane / 2)];
                let at = e.ins().extractlane(place, (lane % 2) as u8);
                let granule = i64::from(GRANULE.trailing_zeros());
                let at = e.ins().ushr_imm_u(at, granule);
                let at = e.ins().iadd(shadow, at);
                let byte = e.ins().load(ty, DATA, at, 0);
                all = Some(match all {
                    Some(all) => e.ins().bor(all, byte),
                    None => byte,
                });
            }
            if let Some(all) = all {
                let zero = e.ins().icmp_imm_u(IntCC::Equal, all, 0);
                e.branch(zero, clear, other);
            }
        });
    }

    /// Whether `bytes` bytes are in device memory and their shadow is zero.
    fn shadow_is_clear(&mut self, check: BufferCheck, address: V, bytes: u64) -> V {
        let offset = self.flat_offset(address);
        let limit = self.flat_limit(bytes as u32);
        let inside = self.ins().icmp(IntCC::UnsignedLessThan, offset, limit);
        let zero = self.iconst(types::I64, 0);
        let offset = self.ins().select(inside, offset, zero);
        let last = self.ins().iadd_imm_u(offset, bytes as i64 - 1);
        let first = self.shadow_of(check, offset);
        let last = self.shadow_of(check, last);
        let pieces = Pieces::new(bytes, WIDEST);
        let width = pieces.width;
        let ty = match width {
            WIDEST => types::I8X16,
            _ => Type::int(width as u16 * 8).unwrap_or(types::I8),
        };
        let mut all = self.ins().load(ty, DATA, last, 1 - width as i32);
        if bytes > 1 {
            for at in pieces.starts() {
                let piece = self.ins().load(ty, DATA, first, at as i32);
                all = self.ins().bor(all, piece);
            }
        }
        if width == WIDEST {
            let set = self.ins().vany_true(all);
            return self.ins().band_not(inside, set);
        }
        let clear = self.ins().icmp_imm_u(IntCC::Equal, all, 0);
        self.ins().band(clear, inside)
    }

    /// Pointer to the shadow of an offset in device memory, for the access of a check.
    fn shadow_of(&mut self, check: BufferCheck, offset: V) -> V {
        let shadow = self.launch_field(shadow::shadow(check), types::I64);
        let at = self
            .ins()
            .ushr_imm_u(offset, i64::from(GRANULE.trailing_zeros()));
        self.ins().iadd(shadow, at)
    }

    /// Asks the runtime about each enabled lane.
    fn look(&mut self, check: BufferCheck, lanes: Lanes, args: &[Value]) {
        let lanes = Lanes {
            addr: self.parts(args[1]),
            ..lanes
        };
        let enabled = self.enabled_lanes(&lanes);
        let addresses = self.wide_addresses(&lanes);
        let records = FaultRecords::new(self.f, check.site, lanes.count);
        let addresses = self.ins().iadd_imm_s(addresses, records.addresses());
        let shape = shape(check);
        for &part in &records.parts {
            let ours = self.lanes_of_part(enabled, part);
            let args = [
                self.group(),
                self.thread_index(),
                self.iconst(types::I32, u64::from(part.site)),
                self.iconst(types::I32, u64::from(shape)),
                self.ins().ishl_imm_u(ours, i64::from(records.first_lane)),
                addresses,
            ];
            let stop = if self.keeps_registers() {
                self.call_preserve_all(offset_of!(Helpers, check_preserve_all), &args);
                Some(self.answer())
            } else {
                self.call_helper(offset_of!(Helpers, check), Some(types::I32), &args)
            };
            self.stop_on_fault(stop);
        }
    }
}
