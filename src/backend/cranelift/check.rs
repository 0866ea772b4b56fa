//! Checks of device memory against its buffers.
//!
//! The usual path reads the shadow of all bytes that the lanes reach, enabled or not: zeros say that all are a buffer's. Anything
//! else is a call of the runtime, which looks at enabled lanes exactly and records what is wrong; most often nothing is, as at the end
//! of a buffer whose size is no multiple of eight. Lanes whose addresses run evenly are one test; others one for each, or the call.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Type, Value as V, types};
use visa_runtime::abi::{Helpers, LaunchCtx, check};

use super::emit::{DATA, Emit};
use super::memory::{Lanes, Place, Region};
use crate::backend::access::local_shape;
use crate::backend::records::Records;
use crate::backend::shadow::{GRANULE, LEAD, LaneShadow, Pieces, record, span};
use crate::ssa::{BufferCheck, Inst, Lane, Op, Space, Value};

/// Widest piece of the shadow that is read, in bytes.
const WIDEST: u64 = 16;

impl Emit<'_> {
    /// A check.
    pub fn check_buffer(&mut self, check: BufferCheck, args: &[Value], inst: Inst) {
        let go_on = self.new_block();
        let cold = self.new_cold_block();
        let lanes = self.lanes_of_run(Space::Flat, args);
        if let Some(clear) = self.run_is_clear(inst) {
            self.branch(clear, go_on, cold);
        } else {
            let here = match self.likely_run(check, args, inst) {
                Some((clear, other)) => {
                    self.branch(clear, go_on, other);
                    other
                }
                None => self.block,
            };
            self.side(here, |e| {
                if !e.access_plan.few_checks || !e.scattered(check, &lanes, args, go_on, cold) {
                    e.jump(cold, &[]);
                }
            });
        }
        self.side(cold, |e| {
            e.look(check, lanes, args);
            e.jump(go_on, &[]);
        });
        self.block = go_on;
    }

    /// Whether all lanes of a check are surely in buffers, as one test; `None` where their addresses do not run evenly, or too far.
    pub fn run_is_clear(&mut self, inst: Inst) -> Option<V> {
        let data = self.f.inst(inst);
        let Op::CheckBuffer(check) = data.op else {
            return None;
        };
        let record = record(check);
        let addr = data.args[1];
        let count = self.ty(addr).lanes;
        let (base, bytes, guard) = self.run_of(addr, count, record, inst)?;
        let clear = self.shadow_is_clear(base, bytes);
        Some(match guard {
            Some(guard) => self.ins().band(clear, guard),
            None => clear,
        })
    }

    /// Whether lanes that are probably beside each other are, and are surely in buffers; with a new block for when not.
    /// `None` where nothing is known of how they lie.
    fn likely_run(
        &mut self,
        check: BufferCheck,
        args: &[Value],
        inst: Inst,
    ) -> Option<(V, ir::Block)> {
        let scaled = self.access_plan.check(inst)?;
        let lanes = self.lanes(Space::Flat, args);
        let shape = self.speculate(check.elem.bytes(), &lanes, Some(scaled));
        let (0, bytes) = span(shape.stride, lanes.count, check.elem.bytes().into())? else {
            return None;
        };
        let mut ok = self.shadow_is_clear(shape.base, bytes);
        if let Some(guard) = shape.guard {
            ok = self.ins().band(ok, guard);
        }
        Some((ok, self.new_block()))
    }

    /// Branches to `clear` if the shadow of each enabled lane is zero, else to `other`; false, and nothing done, where lanes are too large.
    fn scattered(
        &mut self,
        check: BufferCheck,
        lanes: &Lanes,
        args: &[Value],
        clear: ir::Block,
        other: ir::Block,
    ) -> bool {
        let record = record(check);
        let Some(of_lane) = LaneShadow::new(check) else {
            return false;
        };
        let ty = Type::int(of_lane.bytes as u16 * 8).unwrap_or(types::I64);
        let addresses = self.parts(args[1]);
        let base = self.base(Region::Known(Place::Flat));
        let limit = self.flat_limit(record as u32);
        let [base, limit] = [(base, -LEAD), (limit, LEAD)].map(|(v, by)| {
            let moved = self.ins().iadd_imm_s(v, by);
            self.ins().splat(types::I64X2, moved)
        });
        let mask = match self.is_const_full(lanes.mask) || self.is_full(lanes.mask) {
            true => None,
            false => Some(self.mask_vec(lanes.mask, 8)),
        };
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
            let shadow = e.launch_field(offset_of!(LaunchCtx, shadow), types::I64);
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
        true
    }

    /// Lowest address and bytes of lanes whose addresses run evenly, and the condition under which they do.
    fn run_of(
        &mut self,
        addr: Value,
        count: u16,
        record: u64,
        inst: Inst,
    ) -> Option<(V, u64, Option<V>)> {
        if count == 1 {
            return span(0, 1, record).map(|(_, bytes)| (self.scalar(addr), bytes, None));
        }
        let shape = match self.shape_of(inst) {
            Some(shape) => shape,
            None => {
                let sum = local_shape(self.f, addr, &|v| self.is_at_hand(v))?;
                self.local_shape(addr, &sum)
            }
        };
        let (below, bytes) = span(shape.stride, count, record)?;
        let lowest = match below {
            0 => shape.base,
            below => self.ins().iadd_imm_s(shape.base, below),
        };
        Some((lowest, bytes, shape.guard))
    }

    /// Whether `bytes` bytes are in device memory and their shadow is zero.
    fn shadow_is_clear(&mut self, address: V, bytes: u64) -> V {
        let offset = self.flat_offset(address);
        let limit = self.flat_limit(bytes as u32);
        let inside = self.ins().icmp(IntCC::UnsignedLessThan, offset, limit);
        let zero = self.iconst(types::I64, 0);
        let offset = self.ins().select(inside, offset, zero);
        let last = self.ins().iadd_imm_u(offset, bytes as i64 - 1);
        let first = self.shadow_of(offset);
        let last = self.shadow_of(last);
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

    /// Pointer to the shadow of an offset in device memory.
    fn shadow_of(&mut self, offset: V) -> V {
        let shadow = self.launch_field(offset_of!(LaunchCtx, shadow), types::I64);
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
        let records = Records::new(self.f, check.site, lanes.count);
        let addresses = self.ins().iadd_imm_s(addresses, records.addresses());
        let shape = check::shape(check.elem.bytes(), check.count.into(), check.aligned);
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
