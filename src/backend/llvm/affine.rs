//! Fast paths of affine accesses: lane `i` accesses `base + i * stride`.
//!
//! One test decides for all lanes: it holds if the addresses are affine and all bytes between the lowest and the highest lane are
//! inside. Packed lanes are then one vector load or store, and a stride of zero is one scalar load. Stores need a full mask.
//! Loads do not, because reading disabled lanes that are inside has no effect.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::types::{BasicType, VectorType};
use inkwell::values::{InstructionOpcode as I, InstructionValue, PointerValue};

use super::emit::{EmitResult, LlvmEmitter, V};
use super::memory::Lanes;
use super::types::{lanes_of, padded_lanes};
use crate::backend::access::{self, AffineAccess, Stored, Strided, StridedKind};
use crate::backend::prefetch;
use crate::ssa::{Inst, MemAccess, Ty, Value};

/// Distance of what is fetched ahead in bytes: a few threads, whose loads take about as long as memory does.
const AHEAD: i64 = 512;

/// Addresses of lanes as LLVM values.
pub(super) type Affine<'c> = access::Affine<V<'c>>;

impl<'c> LlvmEmitter<'c, '_> {
    /// How addresses are spaced that the function's table knows.
    pub(super) fn affine(&mut self, inst: Inst) -> EmitResult<Affine<'c>> {
        let known = self.f.shapes.get(&inst).and_then(|s| s.addr);
        let known = known.ok_or("an access without a shape")?;
        Ok(Affine {
            base: self.get(known.base)?,
            guard: known.guard.map(|v| self.get(v)).transpose()?,
        })
    }

    /// Load through one address.
    pub(super) fn load_strided(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        inst: Inst,
        alone: &AffineAccess,
    ) -> EmitResult<Vec<V<'c>>> {
        let shape = self.affine(inst)?;
        let strided = alone.strided;
        let undef = self.f.inactive_undef.contains(&inst) || self.is_full(lanes.mask);
        if alone.is_certain() {
            return self.read_strided((inst, access), lanes, shape, strided, undef);
        }
        let ok = self.strided_inside(lanes, shape, strided)?;
        let (fast, other, done) = self.two_ways(ok)?;
        self.at(fast);
        let a = self.read_strided((inst, access), lanes, shape, strided, undef)?;
        let fast = self.here()?;
        self.jump(done)?;
        self.at(other);
        let b = self.load_any(access, lanes, alone.other)?;
        let other = self.here()?;
        self.jump(done)?;
        self.at(done);
        a.into_iter()
            .zip(b)
            .map(|(a, b)| {
                let phi = self.b.build_phi(a.get_type(), "\0")?;
                phi.add_incoming(&[(&a, fast), (&b, other)]);
                Ok(phi.as_basic_value())
            })
            .collect()
    }

    /// Store through one address.
    pub(super) fn store_strided(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        data: &[V<'c>],
        (inst, alone): (Inst, &AffineAccess),
    ) -> EmitResult<()> {
        let shape = self.affine(inst)?;
        let strided = alone.strided;
        if alone.is_certain() {
            return self.write_strided(access, lanes, shape, strided, data);
        }
        let mut ok = self.strided_inside(lanes, shape, strided)?;
        if let Stored::Tested(all) = alone.stored {
            let all = self.all_lanes(all)?;
            ok = self.op2(I::And, ok, all)?;
        }
        let (fast, other, done) = self.two_ways(ok)?;
        self.at(fast);
        match alone.stored {
            Stored::Enabled => {
                let to = self.affine_pointer(lanes, shape.base)?;
                let mask = self.get(lanes.mask)?;
                self.store_some(access, (lanes.count, mask), data, to)?;
            }
            _ => self.write_strided(access, lanes, shape, strided, data)?,
        }
        self.jump(done)?;
        self.at(other);
        self.store_any(access, lanes, data, alone.other)?;
        self.jump(done)?;
        self.at(done);
        Ok(())
    }

    /// What says that all lanes are enabled: a scalar, or a mask that must be full.
    pub(super) fn all_lanes(&mut self, all: Value) -> EmitResult<V<'c>> {
        match self.ty(all).is_scalar() {
            true => self.get(all),
            false => self.mask_is_full(all),
        }
    }

    /// Blocks for the usual way, the other, and after both.
    pub(super) fn two_ways(
        &mut self,
        ok: V<'c>,
    ) -> EmitResult<(BasicBlock<'c>, BasicBlock<'c>, BasicBlock<'c>)> {
        let (fast, other, done) = (self.new_block(), self.new_block(), self.new_block());
        self.branch_likely(ok, fast, other, true)?;
        Ok((fast, other, done))
    }

    fn strided_inside(
        &mut self,
        lanes: &Lanes<'c>,
        shape: Affine<'c>,
        strided: Strided,
    ) -> EmitResult<V<'c>> {
        let base = self.add_const(self.as_int(shape.base)?, strided.lowest)?;
        let offset = if lanes.flat {
            self.flat_offset(base.into())?
        } else {
            base.into()
        };
        let limit = self.limit(lanes.region, strided.bytes as u32)?;
        let inside = self.icmp(IntPredicate::ULT, offset, limit)?;
        self.with_guard(inside, shape.guard)
    }

    /// A condition, and that under which addresses are affine, if there is one.
    pub(super) fn with_guard(&mut self, ok: V<'c>, guard: Option<V<'c>>) -> EmitResult<V<'c>> {
        match guard {
            Some(guard) => self.op2(I::And, ok, guard),
            None => Ok(ok),
        }
    }

    fn affine_pointer(&mut self, lanes: &Lanes<'c>, base: V<'c>) -> EmitResult<PointerValue<'c>> {
        let offset = if lanes.flat {
            self.flat_offset(base)?
        } else {
            self.resize(base, 64)?
        };
        let start = self.base(lanes.region)?;
        self.offset(start, self.as_int(offset)?)
    }

    /// A load whose bytes are known to be inside.
    fn read_strided(
        &mut self,
        (inst, access): (Inst, MemAccess),
        lanes: &Lanes<'c>,
        shape: Affine<'c>,
        strided: Strided,
        undef: bool,
    ) -> EmitResult<Vec<V<'c>>> {
        let pointer = self.affine_pointer(lanes, shape.base)?;
        if !self.is_full(lanes.mask) {
            self.fetch_first((inst, !undef), access, lanes.count, strided.kind, pointer)?;
        }
        let mut parts = match strided.kind {
            StridedKind::Same => self.read_same(access, lanes.count, pointer)?,
            StridedKind::Packed => self.read_packed(inst, access, lanes.count, pointer)?,
            StridedKind::Run => self.read_run(access, lanes.count, pointer, strided)?,
            StridedKind::Overlap => {
                self.read_overlap(access, lanes.count, pointer, strided.stride)?
            }
            StridedKind::Spread => {
                self.read_spread(access, lanes.count, pointer, strided.stride)?
            }
        };
        if !undef {
            let mask = self.get(lanes.mask)?;
            for part in &mut parts {
                *part = self.select(mask, *part, part.get_type().const_zero())?;
            }
        }
        Ok(parts)
    }

    /// The same components for all lanes.
    pub(super) fn read_same(
        &mut self,
        access: MemAccess,
        count: u16,
        pointer: PointerValue<'c>,
    ) -> EmitResult<Vec<V<'c>>> {
        // Where a thread is one register wide, each of these vectors is used once.
        let one_register = count == self.f.simd && 32 * u32::from(count) == self.cpu.vectors;
        let four_words = (access.comps, access.elem.bytes()) == (4, 4);
        if four_words && one_register && self.cpu.avx512 && self.cpu.prefers_shuffles {
            return self.read_same_four(access, count, pointer);
        }
        let ty = self.type_of(Ty::scalar(access.elem));
        (0..i64::from(access.comps))
            .map(|c| {
                let at = self.offset_const(pointer, c * i64::from(access.elem.bytes()))?;
                let v = self.load(ty, at)?;
                self.splat(v, count)
            })
            .collect()
    }

    /// Four words that all lanes read: one load of a vector that repeats them, and a shuffle for each. Code with many such words waits for
    /// its loads, and four loads would be needed otherwise.
    fn read_same_four(
        &mut self,
        access: MemAccess,
        count: u16,
        pointer: PointerValue<'c>,
    ) -> EmitResult<Vec<V<'c>>> {
        let words = self.load(self.exact(Ty::vector(access.elem, 4)), pointer)?;
        let lanes = || 0..u32::from(count);
        let in_turn: Vec<_> = lanes().map(|i| Some(i % 4)).collect();
        let in_turn = self.shuffle(words, None, &in_turn)?;
        let in_turn = self.opaque(in_turn)?;
        (0..4)
            .map(|c| {
                let beside: Vec<_> = lanes().map(|i| Some(i / 4 * 4 + c)).collect();
                self.shuffle(in_turn, None, &beside)
            })
            .collect()
    }

    /// The same vector, through an empty assembly instruction. If LLVM saw that the vector comes from memory, it would load each word by
    /// itself again.
    fn opaque(&self, v: V<'c>) -> EmitResult<V<'c>> {
        let ty = v.get_type().fn_type(&[v.get_type().into()], false);
        let nothing = self.cx.create_inline_asm(
            ty,
            String::new(),
            "=v,0".to_owned(),
            false,
            false,
            None,
            false,
        );
        let same = self
            .b
            .build_indirect_call(ty, nothing, &[v.into()], "\0")?
            .try_as_basic_value()
            .basic();
        same.ok_or_else(|| "no instruction without a result".into())
    }

    /// The components of one lane after those of the other.
    pub(super) fn read_packed(
        &mut self,
        inst: Inst,
        access: MemAccess,
        count: u16,
        pointer: PointerValue<'c>,
    ) -> EmitResult<Vec<V<'c>>> {
        let comps = u16::from(access.comps);
        let ty = Ty::vector(access.elem, count * comps);
        if self.fetches.is_ahead(inst) {
            self.fetch(pointer, AHEAD, ty.bytes())?;
        }
        if comps == 1 {
            return Ok(vec![self.load_value(ty, pointer)?]);
        }
        let all = self.load(self.exact(ty), pointer)?;
        (0..comps)
            .map(|c| {
                let lanes = (0..padded_lanes(count)).map(|i| i.min(count - 1) * comps + c);
                let lanes = lanes.map(|i| Some(u32::from(i)));
                self.shuffle(all, None, &lanes.collect::<Vec<_>>())
            })
            .collect()
    }

    /// Fetches the lines of a load under a mask, of which LLVM makes a masked load: also of a plain load and a select. With `zeros`, that
    /// select follows, since lanes that are off get zero.
    pub(super) fn fetch_first(
        &mut self,
        (inst, zeros): (Inst, bool),
        access: MemAccess,
        count: u16,
        kind: StridedKind,
        pointer: PointerValue<'c>,
    ) -> EmitResult<()> {
        let bytes = access.elem.bytes() * u32::from(count);
        // Components are taken out of plain loads.
        let in_order = access.comps == 1 && matches!(kind, StridedKind::Packed | StridedKind::Run);
        match in_order && self.fetches.is_first(inst, zeros, access.space, bytes) {
            true => self.fetch(pointer, 0, bytes),
            false => Ok(()),
        }
    }

    /// Fetches lines that will be read, at a distance from a pointer. It is no access: nothing is tested.
    fn fetch(&mut self, from: PointerValue<'c>, distance: i64, bytes: u32) -> EmitResult<()> {
        /// Of data that is read, which all caches keep.
        const HOW: [u32; 3] = [0, 3, 1];
        let fetch = self.declare("llvm.prefetch", &[from.get_type().into()])?;
        for line in (0..bytes).step_by(prefetch::LINE as usize) {
            let at = self.offset_const(from, distance + i64::from(line))?;
            let [writes, locality, data] = HOW.map(|n| self.i32(n).into());
            self.call(fetch, &[at.into(), writes, locality, data])?;
        }
        Ok(())
    }

    /// Lanes that are few elements from each other: vectors of all that lies between them, the last of which ends where they do.
    pub(super) fn read_run(
        &mut self,
        access: MemAccess,
        count: u16,
        pointer: PointerValue<'c>,
        strided: Strided,
    ) -> EmitResult<Vec<V<'c>>> {
        let (bytes, ty) = (access.elem.bytes(), Ty::vector(access.elem, count));
        let first = self.offset_const(pointer, strided.lowest)?;
        let part = |e: &Self, element: u16| {
            let at = e.offset_const(first, i64::from(element) * i64::from(bytes))?;
            e.load_value(ty, at)
        };
        if strided.stride == i64::from(bytes) {
            return (0..u16::from(access.comps))
                .map(|c| part(self, c))
                .collect();
        }
        let elements = strided.elements(bytes);
        let last = elements - count;
        let starts = (0..last).step_by(usize::from(count)).chain([last]);
        let parts: Vec<V> = starts.map(|at| part(self, at)).collect::<EmitResult<_>>()?;
        (0..u16::from(access.comps))
            .map(|c| {
                let place = |i| strided.element(bytes, i, c);
                let places: Vec<u16> = (0..count).map(place).collect();
                self.taken_out(&parts, count, last, &places)
            })
            .collect()
    }

    /// Elements at some places of vectors that follow each other, but for the last one, which starts at `last`.
    fn taken_out(
        &self,
        parts: &[V<'c>],
        count: u16,
        last: u16,
        places: &[u16],
    ) -> EmitResult<V<'c>> {
        let mut all = parts[0];
        for (n, &part) in parts.iter().enumerate() {
            let start = if n + 1 == parts.len() {
                last
            } else {
                n as u16 * count
            };
            let lanes = places.iter().zip(0u16..).map(|(&place, i)| {
                let here = place >= start && place - start < count;
                match (here, n) {
                    (true, 0) => u32::from(place),
                    (true, _) => u32::from(count + (place - start)),
                    // Taken before or later.
                    (false, _) => u32::from(i),
                }
            });
            let lanes: Vec<_> = lanes.map(Some).collect();
            all = match n {
                0 => self.shuffle(part, None, &lanes)?,
                _ => self.shuffle(all, Some(part), &lanes)?,
            };
        }
        Ok(all)
    }

    /// Elements that share bytes: a vector of the first part of each, one of the second, and so on, where parts are as wide as lanes
    /// are apart.
    pub(super) fn read_overlap(
        &mut self,
        access: MemAccess,
        count: u16,
        pointer: PointerValue<'c>,
        stride: i64,
    ) -> EmitResult<Vec<V<'c>>> {
        let (bits, lanes) = (8 * stride as u32, u32::from(count));
        let whole = access.elem.bits();
        let ty = self.int(whole).vec_type(lanes);
        let mut all: V = ty.const_zero().into();
        for k in 0..whole / bits {
            let from = self.offset_const(pointer, i64::from(k) * stride)?;
            let part = self.load(self.int(bits).vec_type(lanes).into(), from)?;
            let wide = self.resize(part, whole)?;
            let by = self.int(whole).const_int(u64::from(k * bits), false);
            let by = VectorType::const_vector(&vec![by; usize::from(count)]);
            let moved = self.op2(I::Shl, wide, by)?;
            all = self.op2(I::Or, all, moved)?;
        }
        let to = self.type_of(Ty::vector(access.elem, count));
        Ok(vec![self.cast_bits(all, to)?])
    }

    /// Lanes at equal distances.
    pub(super) fn read_spread(
        &mut self,
        access: MemAccess,
        count: u16,
        pointer: PointerValue<'c>,
        stride: i64,
    ) -> EmitResult<Vec<V<'c>>> {
        let ty = self.type_of(Ty::vector(access.elem, count));
        let elem = self.type_of(Ty::scalar(access.elem));
        (0..i64::from(access.comps))
            .map(|c| {
                let mut v: V = ty.const_zero();
                for i in 0..count {
                    let at = c * i64::from(access.elem.bytes()) + i64::from(i) * stride;
                    let at = self.offset_const(pointer, at)?;
                    let one = self.load(elem, at)?;
                    v = self.with_lane(v, one, u32::from(i))?;
                }
                Ok(v)
            })
            .collect()
    }

    /// A store of all lanes whose bytes are known to be inside.
    fn write_strided(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        shape: Affine<'c>,
        strided: Strided,
        data: &[V<'c>],
    ) -> EmitResult<()> {
        let pointer = self.affine_pointer(lanes, shape.base)?;
        let stride = (strided.kind != StridedKind::Packed).then_some(strided.stride);
        self.write_at(access, lanes.count, stride, data, pointer)
    }

    /// Stores lanes one after the other, or at equal distances.
    pub(super) fn write_at(
        &mut self,
        access: MemAccess,
        count: u16,
        stride: Option<i64>,
        data: &[V<'c>],
        pointer: PointerValue<'c>,
    ) -> EmitResult<()> {
        let Some(stride) = stride else {
            let all = self.interleave(data, count)?;
            return self.store(all, pointer);
        };
        for i in 0..count {
            for (c, &v) in data.iter().enumerate() {
                let at = c as i64 * i64::from(access.elem.bytes()) + i64::from(i) * stride;
                let at = self.offset_const(pointer, at)?;
                let one = self.lane(v, u32::from(i))?;
                self.store(one, at)?;
            }
        }
        Ok(())
    }

    /// Stores the enabled lanes one after the other, each as one number of all its components.
    pub(super) fn store_some(
        &mut self,
        access: MemAccess,
        (count, mask): (u16, V<'c>),
        data: &[V<'c>],
        pointer: PointerValue<'c>,
    ) -> EmitResult<()> {
        if let &[v] = data {
            return self.store_masked(mask, v, pointer);
        }
        let bits = 8 * access.elem.bytes() * u32::from(access.comps);
        let all = self.interleave(data, count)?;
        let all = self.cast_bits(all, lanes_of(self.int(bits).into(), count))?;
        self.store_masked(mask, all, pointer)
    }

    /// The components of one lane after those of the other.
    fn interleave(&mut self, data: &[V<'c>], count: u16) -> EmitResult<V<'c>> {
        if let &[low, high] = data
            && let Some(whole) = self.whole(low, high)?
        {
            return self.narrow(whole, count);
        }
        let first = *data.first().ok_or("a store of nothing")?;
        let mut all = self.narrow(first, count)?;
        let mut width = count;
        for &v in &data[1..] {
            let v = self.narrow(v, count)?;
            let v = self.widen(v, count, width)?;
            // The second operand's lanes count from `width`.
            let ends = (0..u32::from(width + count)).map(Some);
            all = self.shuffle(all, Some(v), &ends.collect::<Vec<_>>())?;
            width += count;
        }
        let comps = data.len() as u16;
        if comps == 1 {
            return Ok(all);
        }
        let order = (0..width).map(|i| Some(u32::from(i % comps * count + i / comps)));
        self.shuffle(all, None, &order.collect::<Vec<_>>())
    }

    /// The lanes of twice the size whose halves these are: they lie in memory as they are.
    fn whole(&self, low: V<'c>, high: V<'c>) -> EmitResult<Option<V<'c>>> {
        let (Some(whole), Some(shifted)) = (truncated(low), truncated(high)) else {
            return Ok(None);
        };
        let bits = match low {
            V::VectorValue(v) => v.get_type().get_element_type().into_int_type(),
            _ => return Ok(None),
        }
        .get_bit_width();
        let V::VectorValue(wide) = whole else {
            return Ok(None);
        };
        let lane = wide.get_type().get_element_type().into_int_type();
        let by = lane.const_int(u64::from(bits), false);
        let by = vec![by; wide.get_type().get_size() as usize];
        let by = VectorType::const_vector(&by);
        let shift = operation(shifted, I::LShr);
        let is_high = shift.is_some_and(|shift| {
            operand(shift, 0) == Some(whole) && operand(shift, 1) == Some(by.into())
        });
        Ok((lane.get_bit_width() == 2 * bits && is_high).then_some(whole))
    }
}

/// What the low bits are taken of.
fn truncated<'c>(v: V<'c>) -> Option<V<'c>> {
    operand(operation(v, I::Trunc)?, 0)
}

fn operation<'c>(v: V<'c>, op: I) -> Option<InstructionValue<'c>> {
    let V::VectorValue(v) = v else {
        return None;
    };
    let made = v.as_instruction()?;
    (made.get_opcode() == op).then_some(made)
}

fn operand<'c>(of: InstructionValue<'c>, n: u32) -> Option<V<'c>> {
    of.get_operand(n)?.value()
}
