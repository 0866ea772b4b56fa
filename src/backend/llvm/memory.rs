//! Memory regions and bounds.
//!
//! For an element of `b` bytes a region has a *limit*: the number of offsets at which the element is wholly inside,
//! `max(size - b + 1, 0)`. An access is in bounds if and only if its offset is below the limit, which is one unsigned comparison.
//! 32-bit spaces count a region as at most `u32::MAX` bytes long. The *safe base* is the region's base, or the sink if not even
//! offset 0 can be read.

use std::mem::{offset_of, size_of};

use inkwell::IntPredicate;
use inkwell::values::{InstructionOpcode as I, IntValue, PointerValue};
use visa_runtime::abi::{GroupCtx, LaunchCtx, SURFACES, Surface, ThreadCtx};

use super::context::{Field, Key};
use super::emit::{EmitResult, LlvmEmitter, V};
use crate::backend::access::{self, FLAT_OFFSET};
pub(super) use crate::backend::access::{Marked, Place};
use crate::backend::fault_records::FaultPart;
use crate::ssa::{Lane, Space, Ty, Value};

/// How an access reaches memory.
pub(super) type Region<'c> = access::Region<V<'c>>;

/// Operands of a lane-wise access.
pub(super) type Lanes<'c> = access::Lanes<Address<'c>, V<'c>>;

/// Addresses of lanes.
#[derive(Clone, Copy)]
pub(super) enum Address<'c> {
    /// As they are here.
    Made(V<'c>),
    /// Those of a value, which is made where they are read.
    Rare(Value),
}

impl<'c> LlvmEmitter<'c, '_> {
    /// Reads mask, address and surface operands.
    pub(super) fn lanes(&mut self, space: Space, args: &[Value]) -> EmitResult<Lanes<'c>> {
        let surface = space.has_surface().then(|| args[2]);
        let region = self.region(space, surface)?;
        Ok(Lanes {
            count: self.ty(args[1]).lanes,
            mask: args[0],
            addresses: Some(args[1]),
            addr: match self.access_plan.rare().contains(args[1]) {
                true => Address::Rare(args[1]),
                false => Address::Made(self.get(args[1])?),
            },
            region,
            surface: match surface {
                Some(s) => self.get(s)?,
                None => self.i32(0).into(),
            },
            flat: space.is_flat(),
            place: access::message_place(space),
        })
    }

    /// Addresses of the lanes.
    pub(super) fn addresses(&mut self, lanes: &Lanes<'c>) -> EmitResult<V<'c>> {
        match lanes.addr {
            Address::Made(v) => Ok(v),
            Address::Rare(v) => self.get(v),
        }
    }

    /// A bit for each enabled lane.
    pub(super) fn enabled_lanes(&mut self, lanes: &Lanes<'c>) -> EmitResult<V<'c>> {
        let mask = self.get(lanes.mask)?;
        match lanes.count {
            1 => self.resize(mask, 32),
            n => self.mask_bits(mask, n),
        }
    }

    /// Those of the enabled lanes that are recorded together.
    pub(super) fn lanes_of_part(&self, enabled: V<'c>, part: FaultPart) -> EmitResult<V<'c>> {
        match part.lanes {
            None => Ok(enabled),
            Some(bits) => self.op2(I::And, enabled, self.i32(bits)),
        }
    }

    /// Operands after mask, address and surface.
    pub(super) fn data_args(space: Space, args: &[Value]) -> &[Value] {
        &args[2 + usize::from(space.has_surface())..]
    }

    /// Offset in device memory; address bits 63:48 may hold a tag and do not count.
    pub(super) fn flat_offset(&mut self, addr: V<'c>) -> EmitResult<V<'c>> {
        let at = offset_of!(LaunchCtx, flat_base);
        let base = self.launch_field(at, Field::I64)?;
        let lanes = match addr {
            V::VectorValue(v) => v.get_type().get_size() as u16, // a power of two
            _ => 1,
        };
        let base = self.splat(base, lanes)?;
        let low = self.splat(self.i64(FLAT_OFFSET).into(), lanes)?;
        let offset = self.op2(I::Sub, addr, base)?;
        self.op2(I::And, offset, low)
    }

    /// The region of a space.
    pub(super) fn region(
        &mut self,
        space: Space,
        surface: Option<Value>,
    ) -> EmitResult<Region<'c>> {
        match (Place::of(self.f, space, surface), surface) {
            (Some(place), _) => Ok(Region::Known(place)),
            (None, Some(surface)) => self.computed_surface(space, surface),
            (None, None) => Err("a surface access without its index".into()),
        }
    }

    fn computed_surface(&mut self, space: Space, surface: Value) -> EmitResult<Region<'c>> {
        let index = self.get(surface)?;
        let index = self.op2(I::And, index, self.i32(SURFACES as u32 - 1))?;
        let wide = self.resize(index, 64)?;
        let size = self.i64(size_of::<Surface>() as u64);
        let at = self.op2(I::Mul, wide, size)?;
        let table = self.launch_field(offset_of!(LaunchCtx, surfaces), Field::Ptr)?;
        let entry = self.offset(self.as_ptr(table)?, self.as_int(at)?)?;
        let base = self.load_constant(self.ptr_type(), entry.into(), offset_of!(Surface, base))?;
        let size = offset_of!(Surface, size);
        let size = self.load_constant(self.int(64).into(), entry.into(), size)?;
        let size = self.clamp_size(size)?;
        if space.is_marks() {
            let distance = self.distance_of_marks(Marked::Flat)?;
            let base = self.offset(self.as_ptr(base)?, self.as_int(distance)?)?;
            return Ok(Region::Computed(base.into(), size));
        }
        Ok(Region::Computed(base, size))
    }

    fn clamp_size(&mut self, size: V<'c>) -> EmitResult<V<'c>> {
        let most = self.i64(u64::from(u32::MAX));
        let over = self.icmp(IntPredicate::UGT, size, most)?;
        self.select(over, most, size)
    }

    fn surface_at(&mut self, index: u8, field: usize, ty: Field) -> EmitResult<V<'c>> {
        let table = self.launch_field(offset_of!(LaunchCtx, surfaces), Field::Ptr)?;
        let at = usize::from(index) * size_of::<Surface>() + field;
        let key = match ty {
            Field::Ptr => Key::SurfaceBase(index),
            _ => Key::SurfaceSize(index),
        };
        self.hoisted(key, |e| match ty {
            Field::Ptr => e.load_constant(e.ptr_type(), table, at),
            _ => {
                let size = e.load_constant(e.int(64).into(), table, at)?;
                e.clamp_size(size)
            }
        })
    }

    /// First byte of a region.
    pub(super) fn base(&mut self, region: Region<'c>) -> EmitResult<PointerValue<'c>> {
        let v = match region {
            Region::Computed(base, _) => base,
            Region::Known(Place::Surface(index)) => {
                self.surface_at(index, offset_of!(Surface, base), Field::Ptr)?
            }
            Region::Known(Place::Slm) => self.group_field(offset_of!(GroupCtx, slm), Field::Ptr)?,
            Region::Known(Place::Scratch) => {
                self.thread_field(offset_of!(ThreadCtx, scratch), Field::Ptr)?
            }
            Region::Known(Place::Regs) => self.frame()?,
            Region::Known(Place::Flat) => {
                self.launch_field(offset_of!(LaunchCtx, flat_base), Field::Ptr)?
            }
            Region::Known(Place::Args) => {
                self.launch_field(offset_of!(LaunchCtx, args), Field::Ptr)?
            }
            Region::Known(place @ Place::Marks(marked)) => {
                let base = self.base(Region::Known(marked.data()))?;
                let distance = self.distance_of_marks(marked)?;
                self.placed(
                    region,
                    |_| Key::MarksBase(place),
                    |e| Ok(e.offset(base, e.as_int(distance)?)?.into()),
                )?
            }
        };
        self.as_ptr(v)
    }

    /// Bytes from a place in memory to its mark.
    fn distance_of_marks(&mut self, marked: Marked) -> EmitResult<V<'c>> {
        match marked {
            Marked::Surface(_) | Marked::Flat => {
                self.launch_field(offset_of!(LaunchCtx, marks), Field::I64)
            }
            Marked::Slm => self.group_field(offset_of!(GroupCtx, slm_marks), Field::I64),
            Marked::Scratch => self.group_field(offset_of!(GroupCtx, scratch_marks), Field::I64),
            Marked::Regs => Ok(self.i64(u64::from(self.f.regs_bytes)).into()),
        }
    }

    /// Size of a region in bytes; at most `u32::MAX` except for device memory.
    pub(super) fn size(&mut self, region: Region<'c>) -> EmitResult<V<'c>> {
        match region {
            Region::Computed(_, size) => Ok(size),
            Region::Known(Place::Surface(index)) => {
                self.surface_at(index, offset_of!(Surface, size), Field::I64)
            }
            Region::Known(Place::Slm) => {
                let size = self.group_field(offset_of!(GroupCtx, slm_size), Field::I64)?;
                self.clamp_size(size)
            }
            Region::Known(Place::Scratch) => {
                let size = self.thread_field(offset_of!(ThreadCtx, scratch_size), Field::I64)?;
                self.clamp_size(size)
            }
            Region::Known(Place::Regs) => Ok(self.i64(u64::from(self.f.regs_bytes)).into()),
            Region::Known(Place::Flat) => {
                self.launch_field(offset_of!(LaunchCtx, flat_size), Field::I64)
            }
            Region::Known(Place::Args) => {
                self.launch_field(offset_of!(LaunchCtx, args_size), Field::I64)
            }
            Region::Known(Place::Marks(marked)) => self.size(Region::Known(marked.data())),
        }
    }

    /// Whether two regions have no byte in common.
    pub(super) fn apart(&mut self, a: Place, b: Place) -> EmitResult<V<'c>> {
        self.hoisted(Key::Apart(a, b), |e| {
            let ends = |e: &mut Self, place| -> EmitResult<(V<'c>, V<'c>)> {
                let region = Region::Known(place);
                let base = e.base(region)?;
                let start = e.cast(I::PtrToInt, base, e.int(64).into())?;
                let size = e.size(region)?;
                Ok((start, e.op2(I::Add, start, size)?))
            };
            let (a_start, a_end) = ends(e, a)?;
            let (b_start, b_end) = ends(e, b)?;
            let before = e.icmp(IntPredicate::ULE, a_end, b_start)?;
            let behind = e.icmp(IntPredicate::ULE, b_end, a_start)?;
            e.op2(I::Or, before, behind)
        })
    }

    /// Makes a value where the region's fields are known: once a call, once a thread, or here.
    pub(super) fn placed(
        &mut self,
        region: Region<'c>,
        key: impl FnOnce(Place) -> Key,
        make: impl FnOnce(&mut Self) -> EmitResult<V<'c>>,
    ) -> EmitResult<V<'c>> {
        match region {
            Region::Computed(..) => make(self),
            Region::Known(place) if place.is_of_thread() => self.per_thread(key(place), make),
            Region::Known(place) => self.hoisted(key(place), make),
        }
    }

    /// Number of offsets at which `bytes` bytes are inside, as `i64`.
    pub(super) fn wide_limit(&mut self, region: Region<'c>, bytes: u32) -> EmitResult<V<'c>> {
        let size = self.size(region)?;
        let bytes = i64::from(bytes);
        let short = self.icmp(IntPredicate::ULT, size, self.i64(bytes.cast_unsigned()))?;
        let limit = self.add_const(self.as_int(size)?, 1 - bytes)?;
        self.select(short, self.i64(0), limit)
    }

    /// The limit, in the width of the region's addresses.
    pub(super) fn limit(&mut self, region: Region<'c>, bytes: u32) -> EmitResult<IntValue<'c>> {
        let region = match region {
            Region::Known(place) => Region::Known(place.data()),
            computed => computed,
        };
        let v = match region {
            Region::Known(Place::Regs) => {
                let limit = (self.f.regs_bytes + 1).saturating_sub(bytes);
                self.i32(limit).into()
            }
            Region::Known(Place::Flat) => self.hoisted(Key::Limit(Place::Flat, bytes), |e| {
                e.wide_limit(region, bytes)
            })?,
            _ => self.placed(
                region,
                |place| Key::Limit(place, bytes),
                |e| {
                    let wide = e.wide_limit(region, bytes)?;
                    e.resize(wide, 32)
                },
            )?,
        };
        self.as_int(v)
    }

    /// Base that can be accessed at offset 0 with `bytes` bytes, whatever the size.
    pub(super) fn safe_base(
        &mut self,
        region: Region<'c>,
        bytes: u32,
    ) -> EmitResult<PointerValue<'c>> {
        let base = self.base(region)?;
        if let Region::Known(Place::Regs | Place::Marks(Marked::Regs)) = region
            && bytes <= self.f.regs_bytes
        {
            return Ok(base);
        }
        let sink = self.sink()?;
        let safe = self.placed(
            region,
            |place| Key::SafeBase(place, bytes),
            |e| {
                let size = e.size(region)?;
                let least = e.i64(u64::from(bytes));
                let short = e.icmp(IntPredicate::ULT, size, least)?;
                e.select(short, sink, base)
            },
        )?;
        self.as_ptr(safe)
    }

    /// Offsets in the region, in the width of its addresses.
    pub(super) fn offsets(&mut self, lanes: &Lanes<'c>) -> EmitResult<V<'c>> {
        let addresses = self.addresses(lanes)?;
        match lanes.flat {
            true => self.flat_offset(addresses),
            false => Ok(addresses),
        }
    }

    /// Offsets of component `c` as `i64`, and whether it is inside. As 32-bit offsets do not wrap, there everything
    /// from the first component on must be.
    pub(super) fn component(
        &mut self,
        lanes: &Lanes<'c>,
        offsets: V<'c>,
        elem: Lane,
        c: u32,
    ) -> EmitResult<(V<'c>, V<'c>)> {
        let distance = elem.bytes() * c;
        let (at, inside) = self.component_at(lanes, offsets, elem, c)?;
        if lanes.flat || distance == 0 {
            return Ok((self.resize(at, 64)?, inside));
        }
        let wide = self.resize(offsets, 64)?;
        let by = self.splat(self.i64(u64::from(distance)).into(), lanes.count)?;
        Ok((self.op2(I::Add, wide, by)?, inside))
    }

    /// The same in the width of the region's addresses, in which what is outside may wrap.
    pub(super) fn component_at(
        &mut self,
        lanes: &Lanes<'c>,
        offsets: V<'c>,
        elem: Lane,
        c: u32,
    ) -> EmitResult<(V<'c>, V<'c>)> {
        let distance = elem.bytes() * c;
        let n = lanes.count;
        let mut at = offsets;
        if distance > 0 {
            let ty = Ty::vector(lanes.addr_lane(), n);
            let by = self.konst(ty, u64::from(distance))?;
            at = self.op2(I::Add, offsets, by)?;
        }
        let (tested, limit) = if lanes.flat {
            if distance > 0 {
                let low = self.splat(self.i64(FLAT_OFFSET).into(), n)?;
                at = self.op2(I::And, at, low)?;
            }
            (at, self.limit(lanes.region, elem.bytes())?)
        } else {
            (offsets, self.limit(lanes.region, distance + elem.bytes())?)
        };
        let limit = self.splat(limit.into(), n)?;
        Ok((at, self.icmp(IntPredicate::ULT, tested, limit)?))
    }

    /// Which lanes of an access that is `inside` are also enabled.
    pub(super) fn guard(&mut self, lanes: &Lanes<'c>, inside: V<'c>) -> EmitResult<V<'c>> {
        if self.is_full(lanes.mask) {
            return Ok(inside);
        }
        let mask = self.get(lanes.mask)?;
        self.op2(I::And, mask, inside)
    }
}
