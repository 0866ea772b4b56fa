//! Memory regions and bounds.
//!
//! For an element of `b` bytes a region has a *limit*: the number of offsets at which the element is wholly inside,
//! `max(size - b + 1, 0)`. An access is in bounds if and only if its offset is below the limit, which is one unsigned comparison.
//! 32-bit spaces count a region as at most `u32::MAX` bytes long. The *safe base* is the region's base, or the sink if not even
//! offset 0 can be read.

use std::mem::{offset_of, size_of};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V, types};
use visa_runtime::abi::{GroupCtx, LaunchCtx, SURFACES, Surface, ThreadCtx};

use super::context::Key;
use super::emit::{CraneliftEmitter, READONLY};
use crate::backend::access::{self, FLAT_OFFSET};
pub(super) use crate::backend::access::{Marked, Place};
use crate::backend::fault_records::FaultPart;
use crate::ssa::{Lane, MemAccess, Space, Value};

/// How an access reaches memory.
pub(super) type Region = access::Region<V>;

/// Operands of a lane-wise access, with its addresses as a scalar or pieces.
pub(super) type Lanes = access::Lanes<Vec<V>, V>;

impl CraneliftEmitter<'_> {
    /// Reads mask, address and surface operands.
    pub(super) fn lanes(&mut self, space: Space, args: &[Value]) -> Lanes {
        Lanes {
            addr: self.parts(args[1]),
            ..self.affine_lanes(space, args)
        }
    }

    /// The same without the addresses, for accesses that go by their shape.
    pub(super) fn affine_lanes(&mut self, space: Space, args: &[Value]) -> Lanes {
        let surface = space.has_surface().then(|| args[2]);
        let region = self.region(space, surface);
        let surface = match surface {
            Some(s) => self.scalar(s),
            None => self.iconst(types::I32, 0),
        };
        let flat = space.is_flat();
        let count = self.ty(args[1]).lanes;
        let place = access::message_place(space);
        Lanes {
            count,
            mask: args[0],
            addresses: Some(args[1]),
            addr: Vec::new(),
            region,
            surface,
            flat,
            place,
        }
    }

    /// A bit for each enabled lane.
    pub(super) fn enabled_lanes(&mut self, lanes: &Lanes) -> V {
        match lanes.count {
            1 => {
                let bit = self.scalar(lanes.mask);
                self.resize(bit, types::I32)
            }
            _ => self.mask_bits(lanes.mask),
        }
    }

    /// Those of the enabled lanes that are recorded together.
    pub(super) fn lanes_of_part(&mut self, enabled: V, part: FaultPart) -> V {
        match part.lanes {
            None => enabled,
            Some(bits) => self.ins().band_imm_u(enabled, i64::from(bits)),
        }
    }

    /// Offset in device memory; address bits 63:48 may hold a tag and do not count.
    pub(super) fn flat_offset(&mut self, addr: V) -> V {
        let base = self.base(Region::Known(Place::Flat));
        let offset = self.ins().isub(addr, base);
        self.ins().band_imm_u(offset, FLAT_OFFSET.cast_signed())
    }

    /// Operands after mask, address and surface.
    pub(super) fn data_args(access: Space, args: &[Value]) -> &[Value] {
        &args[2 + usize::from(access.has_surface())..]
    }

    /// The region of a space.
    pub(super) fn region(&mut self, space: Space, surface: Option<Value>) -> Region {
        match Place::of(self.f, space, surface) {
            Some(place) => Region::Known(place),
            None => self.computed_surface(space, surface),
        }
    }

    fn computed_surface(&mut self, space: Space, surface: Option<Value>) -> Region {
        let index = match surface {
            Some(s) => self.scalar(s),
            None => self.iconst(types::I32, 0),
        };
        let index = self.ins().band_imm_u(index, SURFACES as i64 - 1);
        let wide = self.ins().uextend(types::I64, index);
        let offset = self.ins().imul_imm_u(wide, size_of::<Surface>() as i64);
        let table = self.launch_field(offset_of!(LaunchCtx, surfaces), types::I64);
        let entry = self.ins().iadd(table, offset);
        let base = self.surface_field(entry, offset_of!(Surface, base));
        let size = self.surface_field(entry, offset_of!(Surface, size));
        let size = self.clamp_size(size);
        if space.is_marks() {
            let distance = self.distance_of_marks(Marked::Flat);
            let base = self.ins().iadd(base, distance);
            return Region::Computed(base, size);
        }
        Region::Computed(base, size)
    }

    fn surface_field(&mut self, entry: V, offset: usize) -> V {
        self.ins().load(types::I64, READONLY, entry, offset as i32)
    }

    fn clamp_size(&mut self, size: V) -> V {
        let most = self.iconst(types::I64, u64::from(u32::MAX));
        let over = self.ins().icmp(IntCC::UnsignedGreaterThan, size, most);
        self.ins().select(over, most, size)
    }

    /// First byte of a region.
    pub(super) fn base(&mut self, region: Region) -> V {
        match region {
            Region::Computed(base, _) => base,
            Region::Known(Place::Surface(index)) => {
                let table = self.launch_field(offset_of!(LaunchCtx, surfaces), types::I64);
                let at = usize::from(index) * size_of::<Surface>() + offset_of!(Surface, base);
                self.hoisted(Key::SurfaceBase(index), |e| e.surface_field(table, at))
            }
            Region::Known(Place::Slm) => self.group_field(offset_of!(GroupCtx, slm), types::I64),
            Region::Known(Place::Scratch) => {
                self.thread_field(offset_of!(ThreadCtx, scratch), types::I64)
            }
            Region::Known(Place::Regs) => self.frame(),
            Region::Known(Place::Flat) => {
                self.launch_field(offset_of!(LaunchCtx, flat_base), types::I64)
            }
            Region::Known(Place::Args) => {
                self.launch_field(offset_of!(LaunchCtx, args), types::I64)
            }
            Region::Known(place @ Place::Marks(marked)) => {
                let base = self.base(Region::Known(marked.data()));
                let distance = self.distance_of_marks(marked);
                self.placed(
                    region,
                    |_| Key::MarksBase(place),
                    |e| e.ins().iadd(base, distance),
                )
            }
        }
    }

    /// Bytes from a place in memory to its mark.
    pub(super) fn distance_of_marks(&mut self, marked: Marked) -> V {
        match marked {
            Marked::Surface(_) | Marked::Flat => {
                self.launch_field(offset_of!(LaunchCtx, marks), types::I64)
            }
            Marked::Slm => self.group_field(offset_of!(GroupCtx, slm_marks), types::I64),
            Marked::Scratch => self.group_field(offset_of!(GroupCtx, scratch_marks), types::I64),
            Marked::Regs => {
                let bytes = self.f.regs_bytes.into();
                self.hoisted(Key::RegsMarks, |e| e.iconst(types::I64, bytes))
            }
        }
    }

    /// Size of a region in bytes; at most `u32::MAX` except for device memory.
    pub(super) fn size(&mut self, region: Region) -> V {
        match region {
            Region::Computed(_, size) => size,
            Region::Known(Place::Surface(index)) => {
                let table = self.launch_field(offset_of!(LaunchCtx, surfaces), types::I64);
                let at = usize::from(index) * size_of::<Surface>() + offset_of!(Surface, size);
                self.hoisted(Key::SurfaceSize(index), |e| {
                    let size = e.surface_field(table, at);
                    e.clamp_size(size)
                })
            }
            Region::Known(Place::Slm) => {
                let size = self.group_field(offset_of!(GroupCtx, slm_size), types::I64);
                self.clamp_size(size)
            }
            Region::Known(Place::Scratch) => {
                let size = self.thread_field(offset_of!(ThreadCtx, scratch_size), types::I64);
                self.clamp_size(size)
            }
            Region::Known(Place::Regs) => self.iconst(types::I64, u64::from(self.f.regs_bytes)),
            Region::Known(Place::Flat) => {
                self.launch_field(offset_of!(LaunchCtx, flat_size), types::I64)
            }
            Region::Known(Place::Args) => {
                self.launch_field(offset_of!(LaunchCtx, args_size), types::I64)
            }
            Region::Known(Place::Marks(marked)) => self.size(Region::Known(marked.data())),
        }
    }

    /// Makes a value where the region's fields are known: once a launch, once a thread, or here.
    fn placed(
        &mut self,
        region: Region,
        key: impl FnOnce(Place) -> Key,
        make: impl FnOnce(&mut Self) -> V,
    ) -> V {
        match region {
            Region::Computed(..) => make(self),
            Region::Known(place) if place.is_of_thread() => self.per_thread(key(place), make),
            Region::Known(place) => self.hoisted(key(place), make),
        }
    }

    /// Number of offsets at which `bytes` bytes are inside, as `i64`.
    pub(super) fn wide_limit(&mut self, region: Region, bytes: u32) -> V {
        let size = self.size(region);
        let short = self
            .ins()
            .icmp_imm_u(IntCC::UnsignedLessThan, size, i64::from(bytes));
        let limit = self.ins().iadd_imm_s(size, 1 - i64::from(bytes));
        let none = self.iconst(types::I64, 0);
        self.ins().select(short, none, limit)
    }

    /// The limit for 32-bit offsets.
    pub(super) fn limit(&mut self, region: Region, bytes: u32) -> V {
        let region = match region {
            Region::Known(place) => Region::Known(place.data()),
            computed => computed,
        };
        if let Region::Known(Place::Regs) = region {
            let limit = (self.f.regs_bytes + 1).saturating_sub(bytes);
            return self.iconst(types::I32, u64::from(limit));
        }
        self.placed(
            region,
            |place| Key::Limit(place, bytes),
            |e| {
                let wide = e.wide_limit(region, bytes);
                e.ins().ireduce(types::I32, wide)
            },
        )
    }

    /// Base that can be accessed at offset 0 with `bytes` bytes, whatever the size.
    pub(super) fn safe_base(&mut self, region: Region, bytes: u32) -> V {
        let base = self.base(region);
        if let Region::Known(Place::Regs | Place::Marks(Marked::Regs)) = region
            && bytes <= self.f.regs_bytes
        {
            return base;
        }
        let sink = self.sink();
        self.placed(
            region,
            |place| Key::SafeBase(place, bytes),
            |e| {
                let size = e.size(region);
                let short = e
                    .ins()
                    .icmp_imm_u(IntCC::UnsignedLessThan, size, i64::from(bytes));
                e.ins().select(short, sink, base)
            },
        )
    }

    /// Offset in the region of a scalar access.
    pub(super) fn offset(&mut self, lanes: &Lanes) -> V {
        if lanes.flat {
            self.flat_offset(lanes.addr[0])
        } else {
            lanes.addr[0]
        }
    }

    /// Offset of component `c` of a scalar access, and whether it is inside. As 32-bit offsets may
    /// wrap, there everything from the first component on must be.
    pub(super) fn component(&mut self, lanes: &Lanes, offset: V, elem: Lane, c: u8) -> (V, V) {
        let distance = elem.bytes() * u32::from(c);
        let mut at = offset;
        if distance > 0 {
            at = self.ins().iadd_imm_u(at, i64::from(distance));
        }
        let (from, limit) = if lanes.flat {
            if distance > 0 {
                at = self.ins().band_imm_u(at, FLAT_OFFSET.cast_signed());
            }
            (at, self.flat_limit(elem.bytes()))
        } else {
            (offset, self.limit(lanes.region, distance + elem.bytes()))
        };
        (at, self.ins().icmp(IntCC::UnsignedLessThan, from, limit))
    }

    /// Whether a scalar access that is `inside` is also enabled.
    pub(super) fn guard(&mut self, lanes: &Lanes, inside: V) -> V {
        if self.mask_const(lanes.mask) == Some(1) {
            return inside;
        }
        let mask = self.scalar(lanes.mask);
        self.ins().band(mask, inside)
    }

    /// The limit in device memory.
    pub(super) fn flat_limit(&mut self, bytes: u32) -> V {
        self.hoisted(Key::Limit(Place::Flat, bytes), |e| {
            e.wide_limit(Region::Known(Place::Flat), bytes)
        })
    }

    /// Checks that an access is one this generator knows.
    pub(super) fn known_access(&mut self, access: MemAccess) -> bool {
        let ok = matches!(access.elem, Lane::I8 | Lane::I16 | Lane::I32 | Lane::I64);
        if !ok {
            self.bug(format!("access of {} elements", access.elem.name()));
        }
        ok
    }
}
