//! Fast paths of accesses whose addresses run evenly over the lanes: `base + lane * stride`.
//!
//! One test decides for all lanes: the shape holds, and the whole run of bytes is inside. A packed
//! run is then a few vector loads or stores, a stride of zero one scalar load. Loads need no full
//! mask, since reading memory that is inside disturbs nobody; stores do.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Value as V, types};

use super::emit::{DATA, Emit};
use super::mask::full;
use super::memory::{Lanes, Place, Region};
use super::value::{piece_count, piece_type, scalar_type};
use crate::ssa::{BinOp, MemAccess, Op, Space, Ty, Value};

/// How the addresses of an access run.
#[derive(Clone, Copy)]
pub(super) struct Affine {
    /// Address of lane 0.
    base: V,
    /// The same, when it is a constant.
    known: Option<u64>,
    /// Bytes from lane to lane.
    stride: u64,
    /// Condition under which it holds; always when there is none.
    guard: Option<V>,
}

/// `scalars + offset + lane * stride`.
#[derive(Default)]
struct Sum {
    scalars: Vec<Value>,
    offset: u64,
    stride: u64,
}

/// Depth to which address expressions are followed.
const MAX_DEPTH: u32 = 4;

impl Emit<'_> {
    /// Shape of a vector of addresses.
    fn affine(&mut self, addr: Value) -> Option<Affine> {
        let ty = self.ty(addr);
        if ty.is_scalar() {
            return None;
        }
        let sum = self.sum_of(addr, MAX_DEPTH)?;
        let low = ty.lane.mask();
        let mut base: Option<V> = None;
        for &s in &sum.scalars {
            let v = self.scalar(s);
            base = Some(match base {
                None => v,
                Some(b) => self.ins().iadd(b, v),
            });
        }
        let known = sum.scalars.is_empty().then_some(sum.offset & low);
        let offset = sum.offset & low;
        let base = match base {
            None => self.iconst(scalar_type(ty.lane), offset),
            Some(b) if offset == 0 => b,
            Some(b) => self.ins().iadd_imm_u(b, offset.cast_signed()),
        };
        Some(Affine {
            base,
            known,
            stride: sum.stride & low,
            guard: None,
        })
    }

    fn sum_of(&self, v: Value, depth: u32) -> Option<Sum> {
        let def = self.def_op(v)?;
        match &def.op {
            Op::Splat => Some(match self.scalar_const(def.args[0]) {
                Some(offset) => Sum {
                    offset,
                    ..Sum::default()
                },
                None => Sum {
                    scalars: vec![def.args[0]],
                    ..Sum::default()
                },
            }),
            Op::VecConst(lanes) => {
                let low = self.ty(v).lane.mask();
                let stride = lanes.get(1)?.wrapping_sub(lanes[0]) & low;
                let even = lanes
                    .windows(2)
                    .all(|pair| pair[1].wrapping_sub(pair[0]) & low == stride);
                even.then_some(Sum {
                    offset: lanes[0],
                    stride,
                    ..Sum::default()
                })
            }
            Op::Binary(BinOp::Add) if depth > 0 => {
                let mut a = self.sum_of(def.args[0], depth - 1)?;
                let b = self.sum_of(def.args[1], depth - 1)?;
                a.scalars.extend(b.scalars);
                a.offset = a.offset.wrapping_add(b.offset);
                a.stride = a.stride.wrapping_add(b.stride);
                Some(a)
            }
            _ => None,
        }
    }

    /// Load through one address; `None` where no shape is known that helps.
    pub fn load_affine(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        addr: Value,
    ) -> Option<Vec<Vec<V>>> {
        let shape = self.affine(addr)?;
        let record = u64::from(access.elem.bytes()) * u64::from(access.comps);
        let broadcast = shape.stride == 0;
        if !(broadcast || shape.stride == record) {
            return None;
        }
        let count = if broadcast { 1 } else { u64::from(lanes.count) };
        let bytes = (record * count) as u32;
        let inside = |e: &mut Self| {
            let pointer = e.run_pointer(lanes, shape.base);
            let parts = if broadcast {
                e.load_broadcast(access, lanes.count, pointer)
            } else {
                e.load_packed(access, lanes.count, pointer)
            };
            e.clear_disabled(access, lanes, parts)
        };
        if self.surely_inside(access.space, shape, bytes) {
            return Some(inside(self));
        }
        let ok = self.run_inside(lanes, shape, bytes);
        let (fast, other, done) = self.two_ways(ok, shape.guard.is_none());
        let ty = Ty::vector(access.elem, lanes.count);
        let results: Vec<Vec<V>> = (0..access.comps)
            .map(|_| {
                (0..piece_count(ty))
                    .map(|_| self.func.dfg.append_block_param(done, piece_type(ty.lane)))
                    .collect()
            })
            .collect();
        let off = std::mem::replace(&mut self.cache.off, true);
        self.block = fast;
        let parts = inside(self);
        self.jump(done, &parts.concat());
        self.block = other;
        let parts = if shape.guard.is_none() {
            self.check_lanes(lanes, access.elem, access.comps, access.site, access.space);
            self.slow_load(lanes, access.elem, access.comps)
        } else {
            self.load_any(access, lanes)
        };
        self.jump(done, &parts.concat());
        self.cache.off = off;
        self.block = done;
        Some(results)
    }

    /// Store through one address; false where no shape is known that helps.
    pub fn store_affine(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        addr: Value,
        data: &[Vec<V>],
    ) -> bool {
        let Some(shape) = self.affine(addr) else {
            return false;
        };
        let record = u64::from(access.elem.bytes()) * u64::from(access.comps);
        if shape.stride != record {
            return false;
        }
        let bytes = (record * u64::from(lanes.count)) as u32;
        let every = self.mask_const(lanes.mask) == Some(full(lanes.count));
        let packed = |e: &mut Self| {
            let pointer = e.run_pointer(lanes, shape.base);
            e.store_packed(access, lanes.count, pointer, data);
        };
        if every && self.surely_inside(access.space, shape, bytes) {
            packed(self);
            return true;
        }
        let mut ok = self.run_inside(lanes, shape, bytes);
        if !every {
            let all = self.mask_test(lanes.mask, true);
            ok = self.ins().band(ok, all);
        }
        let (fast, other, done) = self.two_ways(ok, every && shape.guard.is_none());
        let off = std::mem::replace(&mut self.cache.off, true);
        self.block = fast;
        packed(self);
        self.jump(done, &[]);
        self.block = other;
        self.store_any(access, lanes, data);
        self.jump(done, &[]);
        self.cache.off = off;
        self.block = done;
        true
    }

    fn two_ways(&mut self, ok: V, rarely: bool) -> (ir::Block, ir::Block, ir::Block) {
        let fast = self.new_block();
        let other = if rarely {
            self.new_cold_block()
        } else {
            self.new_block()
        };
        let done = self.new_block();
        self.branch(ok, fast, other);
        (fast, other, done)
    }

    /// A run whose place is known while compiling.
    fn surely_inside(&self, space: Space, shape: Affine, bytes: u32) -> bool {
        space == Space::Regs
            && shape.guard.is_none()
            && shape
                .known
                .is_some_and(|at| at + u64::from(bytes) <= u64::from(self.f.regs_bytes))
    }

    fn run_inside(&mut self, lanes: &Lanes, shape: Affine, bytes: u32) -> V {
        let (offset, limit) = if lanes.flat {
            (self.flat_offset(shape.base), self.flat_limit(bytes))
        } else {
            (shape.base, self.limit(lanes.region, bytes))
        };
        let inside = self.ins().icmp(IntCC::UnsignedLessThan, offset, limit);
        match shape.guard {
            Some(guard) => self.ins().band(inside, guard),
            None => inside,
        }
    }

    fn run_pointer(&mut self, lanes: &Lanes, base: V) -> V {
        let region = if lanes.flat {
            Region::Known(Place::Flat)
        } else {
            lanes.region
        };
        let start = self.base(region);
        let offset = if lanes.flat {
            self.flat_offset(base)
        } else {
            self.ins().uextend(types::I64, base)
        };
        self.ins().iadd(start, offset)
    }

    fn load_broadcast(&mut self, access: MemAccess, count: u16, pointer: V) -> Vec<Vec<V>> {
        let ty = Ty::vector(access.elem, count);
        (0..i32::from(access.comps))
            .map(|c| {
                let at = c * access.elem.bytes().cast_signed();
                let v = self.ins().load(scalar_type(access.elem), DATA, pointer, at);
                let piece = self.ins().splat(piece_type(access.elem), v);
                vec![piece; piece_count(ty)]
            })
            .collect()
    }

    fn load_packed(&mut self, access: MemAccess, count: u16, pointer: V) -> Vec<Vec<V>> {
        let comps = u16::from(access.comps);
        let all = Ty::vector(access.elem, count * comps);
        let parts = self.load_value(pointer, 0, all, DATA);
        let ty = Ty::vector(access.elem, count);
        (0..comps)
            .map(|c| {
                let indices: Vec<u16> = (0..count).map(|i| i * comps + c).collect();
                self.take_lanes(ty, &parts, &indices)
            })
            .collect()
    }

    fn store_packed(&mut self, access: MemAccess, count: u16, pointer: V, data: &[Vec<V>]) {
        let comps = u16::from(access.comps);
        let all = Ty::vector(access.elem, count * comps);
        let padded = data[0].len() as u16 * super::value::per_piece(access.elem) as u16;
        let indices: Vec<u16> = (0..all.lanes)
            .map(|i| i % comps * padded + i / comps)
            .collect();
        let parts = self.take_lanes(all, &data.concat(), &indices);
        self.store_value(pointer, 0, all, &parts);
    }

    /// Zeroes the lanes of loaded components that are disabled.
    fn clear_disabled(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        parts: Vec<Vec<V>>,
    ) -> Vec<Vec<V>> {
        if self.mask_const(lanes.mask) == Some(full(lanes.count)) {
            return parts;
        }
        let mask = self.mask_vec(lanes.mask, access.elem.bytes());
        parts
            .into_iter()
            .map(|pieces| self.mask_pieces(&mask, pieces))
            .collect()
    }

    /// Lanes of pieces put end to end, by their numbers.
    fn take_lanes(&mut self, ty: Ty, pieces: &[V], indices: &[u16]) -> Vec<V> {
        let per = super::value::per_piece(ty.lane) as u16;
        let sources: Vec<(usize, u8)> = indices
            .iter()
            .map(|&i| (usize::from(i / per), (i % per) as u8))
            .collect();
        self.pieces_from(ty, pieces, &sources)
    }
}
