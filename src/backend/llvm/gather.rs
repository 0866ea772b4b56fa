//! Gathers and scatters: lanes at any addresses, by instructions of the processor that have a mask.
//!
//! [`LaneAddresses`] says where lanes are: at an offset in the region, or in device memory at a scaled 32-bit number. The bounds
//! of such a number are two scalars, so nothing is computed in 64 bits for each lane.

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{InstructionOpcode as I, IntValue, PointerValue};

use super::context::Key;
use super::emit::{EmitResult, InternalError, LlvmEmitter, V};
use super::memory::{Lanes, Region};
use super::narrow::{Units, Window, Words};
use super::types::{lanes_of, padded_lanes};
use crate::backend::access::{AccessGroup, FLAT_OFFSET, Place, Scaled};
use crate::ssa::{Input, Lane, MemAccess, Op, Ty};

/// Values of a [`Range`].
const RANGE_PARTS: u8 = 3;

/// Where the lanes of an access are.
#[derive(Clone, Copy)]
pub(super) enum Lead<'c> {
    /// At offsets in the region.
    Offsets(V<'c>),
    /// In device memory, at a base and scaled numbers; the numbers are signed here.
    Scaled(Scaled, V<'c>),
}

/// Numbers for which an element is inside.
struct Range<V> {
    /// The least one, 32 bits, and signed.
    first: V,
    /// The largest; below the least if there is none.
    last: V,
    /// Where the element of number zero is, or would be.
    start: V,
}

/// Where one component of all lanes is.
#[derive(Clone, Copy)]
pub(super) enum LaneAddresses<'c> {
    /// At offsets in the region.
    Offsets(V<'c>),
    /// Each lane's signed index, in elements whose size in bytes is given, from a pointer.
    Units(PointerValue<'c>, V<'c>, u32),
    /// At addresses of the process.
    Addresses(V<'c>),
    /// In words of 4 bytes.
    Words(Words<'c>),
}

impl<'c> LlvmEmitter<'c, '_> {
    /// Where the lanes of an access are; `scaled` is what its addresses are made of, if they are made so.
    pub(super) fn lead(
        &mut self,
        lanes: &Lanes<'c>,
        scaled: Option<Scaled>,
    ) -> EmitResult<Lead<'c>> {
        let Some(scaled) = scaled else {
            return Ok(Lead::Offsets(self.offsets(lanes)?));
        };
        let mut index = self.get(scaled.index)?;
        if !scaled.signed {
            let half = self.konst(Ty::vector(Lane::I32, lanes.count), 1 << 31)?;
            index = self.op2(I::Xor, index, half)?;
        }
        Ok(Lead::Scaled(scaled, index))
    }

    /// Where component `c` is, and for which lanes it is inside.
    pub(super) fn led(
        &mut self,
        lanes: &Lanes<'c>,
        lead: Lead<'c>,
        (elem, c): (Lane, u32),
    ) -> EmitResult<(LaneAddresses<'c>, V<'c>)> {
        let (scaled, index) = match lead {
            Lead::Offsets(offsets) => {
                let (at, inside) = self.component_at(lanes, offsets, elem, c)?;
                return Ok((LaneAddresses::Offsets(at), inside));
            }
            Lead::Scaled(scaled, index) => (scaled, index),
        };
        let range = self.range_once(scaled, elem, c)?;
        let first = self.splat(range.first, lanes.count)?;
        let last = self.splat(range.last, lanes.count)?;
        let above = self.icmp(IntPredicate::SGE, index, first)?;
        let below = self.icmp(IntPredicate::SLE, index, last)?;
        let inside = self.op2(I::And, above, below)?;
        let start = self.as_ptr(range.start)?;
        Ok((
            LaneAddresses::Units(start, index, 1 << scaled.shift),
            inside,
        ))
    }

    /// True where what is made of scaled numbers' base can be made once a call.
    fn is_given(&self, scaled: Scaled) -> bool {
        let given = self.f.def_inst(scaled.base).map(|data| &data.op);
        matches!(given, Some(Op::Input(Input::Payload(_))))
    }

    /// Where words of component `c` are, made once a call where the base is an argument.
    fn window_once(&mut self, scaled: Scaled, elem: Lane, c: u32) -> EmitResult<Window<'c>> {
        let units = Units::new(scaled.shift, elem);
        let make = |e: &mut Self| {
            let from = e.from(scaled, elem, c)?;
            e.window(Region::Known(Place::Flat), from, units)
        };
        if !self.is_given(scaled) {
            return make(self);
        }
        let mut part = |n| {
            let key = Key::Range {
                part: RANGE_PARTS + n,
                scale: scaled.scale(),
                component: (elem, c),
            };
            self.hoisted(key, |e| Ok(make(e)?.part(n)))
        };
        Window::of_parts([part(0)?, part(1)?, part(2)?])
    }

    /// [`LlvmEmitter::range`], made once a call where the base is an argument.
    fn range_once(&mut self, scaled: Scaled, elem: Lane, c: u32) -> EmitResult<Range<V<'c>>> {
        if !self.is_given(scaled) {
            return self.range(scaled, elem, c);
        }
        let key = |part| Key::Range {
            part,
            scale: scaled.scale(),
            component: (elem, c),
        };
        Ok(Range {
            first: self.hoisted(key(0), |e| Ok(e.range(scaled, elem, c)?.first))?,
            last: self.hoisted(key(1), |e| Ok(e.range(scaled, elem, c)?.last))?,
            start: self.hoisted(key(2), |e| Ok(e.range(scaled, elem, c)?.start))?,
        })
    }

    /// Bytes from the start of memory to component `c` of the element of number zero; numbers are signed here.
    fn from(&mut self, scaled: Scaled, elem: Lane, c: u32) -> EmitResult<IntValue<'c>> {
        let middle = match scaled.signed {
            true => 0,
            false => 1 << (31 + scaled.shift),
        };
        self.from_base(scaled, middle + i64::from(c * elem.bytes()))
    }

    /// Signed distance from the start of memory to what is as many bytes after number zero as given.
    fn from_base(&mut self, scaled: Scaled, distance: i64) -> EmitResult<IntValue<'c>> {
        let base = self.get(scaled.base)?;
        let from = self.flat_offset(base)?;
        let unused = self.i64(FLAT_OFFSET.leading_zeros().into());
        let from = self.op2(I::Shl, from, unused)?;
        let from = self.op2(I::AShr, from, unused)?;
        self.add_const(self.as_int(from)?, scaled.distance + distance)
    }

    /// Whether all bytes of a group that counts from scaled numbers are inside, with one comparison of each number. It may say no of bytes
    /// that are inside, where the base is not or where a number is negative.
    pub(super) fn numbers_inside(
        &mut self,
        scaled: Scaled,
        group: &AccessGroup,
    ) -> EmitResult<V<'c>> {
        let count = self.room_once(scaled, group, false)?;
        let index = self.get(scaled.index)?;
        let count = self.splat(count, self.ty(scaled.index).lanes)?;
        self.icmp(IntPredicate::ULT, index, count)
    }

    /// Where the bytes of number zero of a group that counts from scaled numbers are.
    pub(super) fn numbers_start(
        &mut self,
        scaled: Scaled,
        group: &AccessGroup,
    ) -> EmitResult<PointerValue<'c>> {
        let start = self.room_once(scaled, group, true)?;
        self.as_ptr(start)
    }

    /// See [`Key::Room`]; made once a call where the base is an argument.
    fn room_once(&mut self, scaled: Scaled, group: &AccessGroup, start: bool) -> EmitResult<V<'c>> {
        let (from, bytes) = (group.all.from, group.bytes());
        let make = |e: &mut Self| match start {
            true => {
                let from = e.from_base(scaled, from)?;
                let base = e.base(Region::Known(Place::Flat))?;
                Ok(e.offset(base, from)?.into())
            }
            false => e.room(scaled, from, bytes),
        };
        if !self.is_given(scaled) {
            return make(self);
        }
        let key = Key::Room {
            start,
            scale: scaled.scale(),
            bytes: (from, bytes),
        };
        self.hoisted(key, make)
    }

    /// How many numbers, from zero on, have all of as many bytes inside, of which the lowest is `distance` bytes from the place of the
    /// number: 0 where the bytes of number zero are not. What is said of [`LlvmEmitter::range`] holds here.
    fn room(&mut self, scaled: Scaled, distance: i64, bytes: u32) -> EmitResult<V<'c>> {
        let from = self.from_base(scaled, distance)?;
        let limit = self.limit(Region::Known(Place::Flat), bytes)?;
        let room = self.op2(I::Sub, limit, from)?;
        let room = self.add_const(self.as_int(room)?, (1 << scaled.shift) - 1)?;
        let count = self.op2(I::AShr, room, self.i64(scaled.shift.into()))?;
        let most = match scaled.signed {
            true => 1 << 31,
            false => u64::from(u32::MAX),
        };
        let wide = [Ty::scalar(Lane::I64)];
        let (none, most) = (self.i64(0).into(), self.i64(most).into());
        let count = self.intrinsic("llvm.smax", &wide, &[count, none])?;
        let count = self.intrinsic("llvm.smin", &wide, &[count, most])?;
        let before = self.icmp(IntPredicate::SLT, from, self.i64(0))?;
        let count = self.select(before, none, count)?;
        self.resize(count, 32)
    }

    /// For which numbers component `c` is inside. An element is inside if `0 <= from + (index << shift) < limit`, `from` being the signed
    /// distance of number zero from the start of memory in the bits of an address that count. Memory has at most 2^45 bytes, numbers reach
    /// 2^38 bytes far and constants 2^32, so nothing comes round from the other end.
    fn range(&mut self, scaled: Scaled, elem: Lane, c: u32) -> EmitResult<Range<V<'c>>> {
        let (shift, bytes) = (scaled.shift, elem.bytes());
        let from = self.from(scaled, elem, c)?;
        let limit = self.limit(Region::Known(Place::Flat), bytes)?;
        let end = self.add_const(limit, -1)?;
        let room = self.op2(I::Sub, end, from)?;
        let by = self.i64(shift.into());
        // From the quotient of `-from`, rounded up, to that of what is left, rounded down.
        let first = self.op2(I::AShr, from, by)?;
        let first = self.op2(I::Sub, self.i64(0), first)?;
        let last = self.op2(I::AShr, room, by)?;
        let wide = [Ty::scalar(Lane::I64)];
        let least = self.i64(i64::from(i32::MIN).cast_unsigned()).into();
        let most = self.i64(i64::from(i32::MAX).cast_unsigned()).into();
        let first = self.intrinsic("llvm.smax", &wide, &[first, least])?;
        let last = self.intrinsic("llvm.smin", &wide, &[last, most])?;
        let some = self.icmp(IntPredicate::SLE, first, last)?;
        let first = self.select(some, first, self.i64(1))?;
        let last = self.select(some, last, self.i64(0))?;
        let start = self.base(Region::Known(Place::Flat))?;
        Ok(Range {
            first: self.resize(first, 32)?,
            last: self.resize(last, 32)?,
            start: self.offset(start, from)?.into(),
        })
    }

    /// Lanes of a vector of places.
    fn some_of(
        &self,
        at: LaneAddresses<'c>,
        part: &[Option<u32>],
    ) -> EmitResult<LaneAddresses<'c>> {
        Ok(match at {
            LaneAddresses::Offsets(v) => LaneAddresses::Offsets(self.shuffle(v, None, part)?),
            LaneAddresses::Units(from, v, unit) => {
                LaneAddresses::Units(from, self.shuffle(v, None, part)?, unit)
            }
            LaneAddresses::Addresses(v) => LaneAddresses::Addresses(self.shuffle(v, None, part)?),
            LaneAddresses::Words(_) => return Err("words are gathered by their numbers".into()),
        })
    }

    /// Pointers to lanes of a region. Offsets of 32 bits stay so wide, which is twice as many at a time: processors take them for
    /// signed, so they count from the middle of what they reach.
    fn pointers(&mut self, region: Region<'c>, at: LaneAddresses<'c>) -> EmitResult<V<'c>> {
        let offsets = match at {
            LaneAddresses::Offsets(offsets) => offsets,
            LaneAddresses::Units(from, index, unit) => {
                return Ok(self.units_from(from, self.as_vector(index)?, unit));
            }
            LaneAddresses::Addresses(addresses) => {
                let lanes = self.as_vector(addresses)?.get_type().get_size() as u16; // a power of two
                return self.cast(I::IntToPtr, addresses, lanes_of(self.ptr_type(), lanes));
            }
            LaneAddresses::Words(_) => return Err("words are gathered by their numbers".into()),
        };
        let base = self.base(region)?;
        let index = self.as_vector(offsets)?;
        let lanes = index.get_type().get_size() as u16; // a power of two
        if index.get_type() == self.int(64).vec_type(u32::from(lanes)) {
            return Ok(self.units_from(base, index, 1));
        }
        let middle = self.middle(region, base)?;
        let half = self.splat(self.i32(1 << 31).into(), lanes)?;
        let index = self.op2(I::Xor, index, half)?;
        Ok(self.units_from(middle, self.as_vector(index)?, 1))
    }

    /// What is 2 GiB after the base.
    fn middle(
        &mut self,
        region: Region<'c>,
        base: PointerValue<'c>,
    ) -> EmitResult<PointerValue<'c>> {
        let make = |e: &mut Self| e.offset_const(base, 1 << 31).map(V::from);
        let middle = self.placed(region, Key::Middle, make)?;
        self.as_ptr(middle)
    }

    /// Gathers components one after the other.
    pub(super) fn gather_each(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        lead: Lead<'c>,
    ) -> EmitResult<Vec<V<'c>>> {
        let places = self.places(access, lanes, lead)?;
        self.report_outside(access, lanes, places.iter().map(|place| place.1))?;
        self.gather_places(access, lanes, &places)
    }

    /// Where each component is, and for which lanes it is inside.
    fn places(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        lead: Lead<'c>,
    ) -> EmitResult<Vec<(LaneAddresses<'c>, V<'c>)>> {
        let components = 0..u32::from(access.comps);
        let elem = access.elem;
        let mut place = |c| {
            let (at, inside) = self.led(lanes, lead, (elem, c))?;
            Ok((self.to_gather(lanes, lead, at, (elem, c))?, inside))
        };
        components.map(&mut place).collect()
    }

    /// Where component `c` is, as gathers take it: narrow elements by the words that have them.
    pub(super) fn to_gather(
        &mut self,
        lanes: &Lanes<'c>,
        lead: Lead<'c>,
        at: LaneAddresses<'c>,
        (elem, c): (Lane, u32),
    ) -> EmitResult<LaneAddresses<'c>> {
        let Lead::Scaled(scaled, index) = lead else {
            return Ok(at);
        };
        if elem.bytes() >= 4 {
            return Ok(at);
        }
        let window = self.window_once(scaled, elem, c)?;
        let units = Units::new(scaled.shift, elem);
        let words = self.words(window, index, lanes.count, units)?;
        Ok(LaneAddresses::Words(words))
    }

    fn gather_places(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        places: &[(LaneAddresses<'c>, V<'c>)],
    ) -> EmitResult<Vec<V<'c>>> {
        let mut gather = |&(at, inside): &(LaneAddresses<'c>, V<'c>)| {
            let mask = self.guard(lanes, inside)?;
            self.gather_lanes(access.elem, lanes, at, mask)
        };
        places.iter().map(&mut gather).collect()
    }

    /// Where faults are recorded, reports enabled lanes of which some component is not inside; `inside` has the lanes of each component.
    pub(super) fn report_outside(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        mut inside: impl Iterator<Item = V<'c>>,
    ) -> EmitResult<()> {
        if !self.records_faults(access.space) {
            return Ok(());
        }
        let mut every = inside.next().ok_or("an access of nothing")?;
        for component in inside {
            every = self.op2(I::And, every, component)?;
        }
        let every = self.mask_bits(every, lanes.count)?;
        let outside = self.op2(I::Xor, every, self.i32(u32::MAX))?;
        let enabled = self.get(lanes.mask)?;
        let enabled = self.mask_bits(enabled, lanes.count)?;
        let faulting = self.op2(I::And, enabled, outside)?;
        let place = (self.addresses(lanes)?, lanes.count, lanes.surface);
        self.report(place, faulting, access.site, |_| Ok(()))
    }

    /// Gathers components of 4 bytes, two at a time, but for when the end of the region is between two of them.
    pub(super) fn gather_pairs(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        lead: Lead<'c>,
    ) -> EmitResult<Vec<V<'c>>> {
        let (mut places, mut cut): (Vec<(LaneAddresses<'c>, V<'c>)>, Option<V<'c>>) =
            (Vec::new(), None);
        let mut pairs = Vec::new();
        for c in (0..u32::from(access.comps)).step_by(2) {
            let (at, first) = self.led(lanes, lead, (access.elem, c))?;
            let (_, second) = self.led(lanes, lead, (access.elem, c + 1))?;
            pairs.push((at, first, second));
        }
        let inside = pairs.iter().flat_map(|&(_, first, second)| [first, second]);
        self.report_outside(access, lanes, inside)?;
        for (at, first, second) in pairs {
            let both = self.op2(I::And, first, second)?;
            places.push((at, self.guard(lanes, both)?));
            let one = self.op2(I::Xor, first, second)?;
            let one = self.guard(lanes, one)?;
            cut = Some(match cut {
                Some(cut) => self.op2(I::Or, cut, one)?,
                None => one,
            });
        }
        let cut = cut.ok_or("a gather of nothing")?;
        let cut = self.mask_bits(cut, lanes.count)?;
        let whole = self.icmp(IntPredicate::EQ, cut, self.i32(0))?;
        let (fast, other, done) = self.two_ways(whole)?;
        self.at(fast);
        let mut a = Vec::new();
        for (at, mask) in places {
            let pairs = self.gather_one(Lane::I64, (lanes.region, lanes.count), at, mask)?;
            let words = 2 * u32::from(padded_lanes(lanes.count));
            let all = self.cast_bits(pairs, self.int(32).vec_type(words).into())?;
            for half in 0..2 {
                let of: Vec<_> = (half..words).step_by(2).map(Some).collect();
                a.push(self.shuffle(all, None, &of)?);
            }
        }
        let fast = self.here()?;
        self.jump(done)?;
        self.at(other);
        let b = self.places(access, lanes, lead)?;
        let b = self.gather_places(access, lanes, &b)?;
        let other = self.here()?;
        self.jump(done)?;
        self.at(done);
        let ways = a.into_iter().zip(b);
        ways.map(|(a, b)| {
            let phi = self.b.build_phi(a.get_type(), "\0")?;
            phi.add_incoming(&[(&a, fast), (&b, other)]);
            Ok(phi.as_basic_value())
        })
        .collect()
    }

    /// Gathers one component, in steps of the number of lanes that is fastest.
    pub(super) fn gather_lanes(
        &mut self,
        elem: Lane,
        lanes: &Lanes<'c>,
        at: LaneAddresses<'c>,
        mask: V<'c>,
    ) -> EmitResult<V<'c>> {
        let count = lanes.count;
        if elem.bytes() < 4 {
            return self.gather_narrow(elem, lanes, at, mask);
        }
        let step = self.cpu.gathered();
        if count <= step || elem.bytes() > 4 {
            return self.gather_one(elem, (lanes.region, count), at, mask);
        }
        let mut parts = Vec::new();
        for first in (0..count).step_by(usize::from(step)) {
            let part: Vec<_> = (first..first + step).map(|i| Some(u32::from(i))).collect();
            let (at, mask) = (self.some_of(at, &part)?, self.shuffle(mask, None, &part)?);
            parts.push(self.gather_one(elem, (lanes.region, step), at, mask)?);
        }
        self.end_to_end(parts, step)
    }

    fn gather_one(
        &mut self,
        elem: Lane,
        (region, lanes): (Region<'c>, u16),
        at: LaneAddresses<'c>,
        mask: V<'c>,
    ) -> EmitResult<V<'c>> {
        let ty = self.type_of(Ty::vector(elem, lanes));
        let from = self.pointers(region, at)?;
        let callee = self.declare("llvm.masked.gather", &[ty, from.get_type()])?;
        let v = self.call_masked(callee, &[from], &[mask, ty.const_zero()])?;
        v.ok_or_else(|| InternalError::from("a gather without a result"))
    }

    /// Writes two components of 4 bytes at once, but for when the end of the region is between those of a lane.
    pub(super) fn scatter_pairs(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        lead: Lead<'c>,
        data: [V<'c>; 2],
    ) -> EmitResult<()> {
        let (at, first) = self.led(lanes, lead, (access.elem, 0))?;
        let (_, second) = self.led(lanes, lead, (access.elem, 1))?;
        self.report_outside(access, lanes, [first, second].into_iter())?;
        let one = self.op2(I::Xor, first, second)?;
        let one = self.guard(lanes, one)?;
        let cut = self.mask_bits(one, lanes.count)?;
        let whole = self.icmp(IntPredicate::EQ, cut, self.i32(0))?;
        let (fast, other, done) = self.two_ways(whole)?;
        self.at(fast);
        // Of each enabled lane both are inside here, or none.
        let inside = self.guard(lanes, first)?;
        let width = u32::from(padded_lanes(lanes.count));
        let in_turn: Vec<_> = (0..width)
            .flat_map(|k| [Some(k), Some(width + k)])
            .collect();
        let pairs = self.shuffle(data[0], Some(data[1]), &in_turn)?;
        let pairs = self.cast_bits(pairs, self.type_of(Ty::vector(Lane::I64, lanes.count)))?;
        self.scatter_lanes(lanes, at, inside, pairs)?;
        self.jump(done)?;
        self.at(other);
        self.store_message(access, lanes, &data)?;
        self.jump(done)?;
        self.at(done);
        Ok(())
    }

    /// Writes enabled lanes, in order.
    pub(super) fn scatter(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        lead: Lead<'c>,
        data: V<'c>,
    ) -> EmitResult<()> {
        let (at, inside) = self.led(lanes, lead, (access.elem, 0))?;
        self.report_outside(access, lanes, [inside].into_iter())?;
        let mask = self.guard(lanes, inside)?;
        self.scatter_lanes(lanes, at, mask, data)
    }

    /// Writes lanes of a mask, in order.
    pub(super) fn scatter_lanes(
        &mut self,
        lanes: &Lanes<'c>,
        at: LaneAddresses<'c>,
        mask: V<'c>,
        data: V<'c>,
    ) -> EmitResult<()> {
        let to = self.pointers(lanes.region, at)?;
        let types: [BasicTypeEnum; 2] = [data.get_type(), to.get_type()];
        let callee = self.declare("llvm.masked.scatter", &types)?;
        self.call_masked(callee, &[data, to], &[mask])?;
        Ok(())
    }
}
