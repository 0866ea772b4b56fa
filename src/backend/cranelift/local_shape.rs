//! Addresses made from local ids, whose layout only the launch knows: code tests once a thread whether the ids are consecutive or
//! equal.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V};

use super::affine::Affine;
use super::context::Key;
use super::emit::{CraneliftEmitter, DATA};
use super::value::{scalar_type, splat_step};
use crate::backend::access::{Ids, Sum};
use crate::ssa::{Lane, Ty, Value};

impl CraneliftEmitter<'_> {
    /// A vector of addresses as the access plan follows it.
    pub(super) fn local_shape(&mut self, addr: Value, sum: &Sum) -> Affine {
        let ty = self.ty(addr);
        let base = self.first_address(addr, sum);
        let mut guard: Option<V> = None;
        let mut tested: Vec<Ids> = Vec::new();
        for &ids in &sum.ids {
            if !tested.contains(&ids) {
                let affine = self.affine_ids(ids);
                guard = Some(self.both(guard, affine));
                tested.push(ids);
            }
        }
        if sum.extensions == 1 {
            let parts = self.parts(addr);
            let last = self.lane_of(ty.lane, &parts, usize::from(ty.lanes) - 1);
            let distance = self.ins().isub(last, base);
            let span = sum.stride.wrapping_mul(i64::from(ty.lanes) - 1);
            let span = span.cast_unsigned() & ty.lane.mask();
            let affine = self
                .ins()
                .icmp_imm_u(IntCC::Equal, distance, span.cast_signed());
            guard = Some(self.both(guard, affine));
        }
        Affine { base, guard }
    }

    fn both(&mut self, a: Option<V>, b: V) -> V {
        match a {
            Some(a) => self.ins().band(a, b),
            None => b,
        }
    }

    /// Address of lane 0.
    fn first_address(&mut self, addr: Value, sum: &Sum) -> V {
        let ty = self.ty(addr);
        if sum.opaque {
            let parts = self.parts(addr);
            return self.lane_of(ty.lane, &parts, 0);
        }
        let offset = sum.offset & ty.lane.mask();
        let mut base: Option<V> = None;
        for &s in &sum.scalars {
            let v = self.scalar(s);
            base = Some(match base {
                None => v,
                Some(b) => self.ins().iadd(b, v),
            });
        }
        match base {
            None => self.iconst(scalar_type(ty.lane), offset),
            Some(b) if offset == 0 => b,
            Some(b) => self.ins().iadd_imm_u(b, offset.cast_signed()),
        }
    }

    /// Whether local ids are consecutive (x) or equal (y, z), and do not wrap; tested once a thread.
    fn affine_ids(&mut self, ids: Ids) -> V {
        let table = self.thread_field(
            std::mem::offset_of!(visa_runtime::abi::ThreadCtx, local_ids),
            cranelift_codegen::ir::types::I64,
        );
        self.per_thread(Key::AffineIds(ids), |e| {
            let ty = Ty::vector(Lane::I16, ids.count);
            let at = super::context::local_id_offset(ids.dim, ids.first);
            let parts = e.load_value(table, at, ty, DATA);
            let first = e.ins().extractlane(parts[0], 0);
            let splat = e.ins().splat(super::value::piece_type(Lane::I16), first);
            let step = u64::from(ids.dim == 0);
            let equal: Vec<V> = parts
                .iter()
                .enumerate()
                .map(|(p, &piece)| {
                    let steps = e.vconst(
                        super::value::piece_type(Lane::I16),
                        splat_step(Lane::I16, p, step),
                    );
                    let wanted = e.ins().iadd(splat, steps);
                    e.ins().icmp(IntCC::Equal, piece, wanted)
                })
                .collect();
            let bits = e.vec_to_bits(2, &equal, ids.count);
            let every = super::mask::full(ids.count).cast_signed();
            let affine = e.ins().icmp_imm_u(IntCC::Equal, bits, every);
            let room = i64::from(i16::MAX) - i64::from(ids.count);
            let low = e.ins().icmp_imm_u(IntCC::UnsignedLessThan, first, room);
            e.ins().band(affine, low)
        })
    }
}
