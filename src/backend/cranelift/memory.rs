//! Memory regions and bounds.
//!
//! For an element of `b` bytes a region has a *limit*: the number of offsets at which the element
//! is wholly inside, `max(size - b + 1, 0)`. An access is in bounds iff its offset is below the
//! limit, one unsigned comparison. 32-bit spaces count a region as at most `u32::MAX` bytes long.
//! The *safe base* is the region's base, or the sink when not even offset 0 can be read.

use std::mem::{offset_of, size_of};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V, types};
use visa_runtime::abi::{GroupCtx, LaunchCtx, SURFACES, Surface, ThreadCtx};

use super::context::Key;
use super::emit::{Emit, READONLY};
use super::mask::{MaskRepr, full};
use crate::ssa::{Lane, MemAccess, Space, Value};

/// Bits of a flat address that count.
pub(super) const FLAT_OFFSET: u64 = (1 << 48) - 1;

/// A region known while compiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// Surface with this index.
    Surface(u8),
    /// Shared local memory.
    Slm,
    /// Scratch of the thread.
    Scratch,
    /// Register storage of the thread.
    Regs,
    /// Device memory.
    Flat,
}

/// How an access reaches memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Region {
    /// Known while compiling.
    Known(Place),
    /// Surface whose index is computed: base and size.
    Computed(V, V),
}

/// Operands of a lane-wise access, common to loads, stores and atomics.
pub(super) struct Lanes {
    /// Lane count.
    pub count: u16,
    /// Mask operand.
    pub mask: Value,
    /// Addresses as the program gave them, for fault records: scalar or pieces, `i64` for flat
    /// accesses, else `i32`.
    pub addr: Vec<V>,
    /// Offsets in the region, of the same types.
    pub offset: Vec<V>,
    /// Where.
    pub region: Region,
    /// Surface index for fault records, 0 where there is none.
    pub surface: V,
    /// Device memory: 64-bit addresses.
    pub flat: bool,
}

impl Lanes {
    /// Lane type of the addresses.
    pub fn addr_lane(&self) -> Lane {
        if self.flat { Lane::I64 } else { Lane::I32 }
    }
}

impl Emit<'_> {
    /// Reads mask, address and surface operands.
    pub fn lanes(&mut self, space: Space, args: &[Value]) -> Lanes {
        let surface = space.has_surface().then(|| args[2]);
        let region = self.region(space, surface);
        let surface = match surface {
            Some(s) => self.scalar(s),
            None => self.iconst(types::I32, 0),
        };
        let flat = space == Space::Flat;
        let count = self.ty(args[1]).lanes;
        let addr = self.parts(args[1]);
        let offset = if flat {
            self.flat_offsets(&addr, count > 1)
        } else {
            addr.clone()
        };
        Lanes {
            count,
            mask: args[0],
            addr,
            offset,
            region,
            surface,
            flat,
        }
    }

    /// Offsets in device memory; address bits 63:48 may hold a tag and do not count.
    fn flat_offsets(&mut self, addr: &[V], vector: bool) -> Vec<V> {
        let base = self.base(Region::Known(Place::Flat));
        let base = if vector {
            self.splat_pointer(Region::Known(Place::Flat), base)
        } else {
            base
        };
        let keep = self.konst(Lane::I64, vector, FLAT_OFFSET);
        self.lanewise(&[addr.to_vec()], |e, v| {
            let offset = e.ins().isub(v[0], base);
            e.ins().band(offset, keep)
        })
    }

    /// Offset in device memory of a scalar address.
    pub fn flat_offset(&mut self, addr: V) -> V {
        self.flat_offsets(&[addr], false)[0]
    }

    /// Operands after mask, address and surface.
    pub fn data_args(access: Space, args: &[Value]) -> &[Value] {
        &args[2 + usize::from(access.has_surface())..]
    }

    /// The region of a space.
    pub fn region(&mut self, space: Space, surface: Option<Value>) -> Region {
        match space {
            Space::Slm => Region::Known(Place::Slm),
            Space::Scratch => Region::Known(Place::Scratch),
            Space::Regs => Region::Known(Place::Regs),
            Space::Flat => Region::Known(Place::Flat),
            Space::Surface => match surface.and_then(|s| self.scalar_const(s)) {
                Some(index) => Region::Known(Place::Surface(index as u8)),
                None => self.computed_surface(surface),
            },
        }
    }

    fn computed_surface(&mut self, surface: Option<Value>) -> Region {
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
    pub fn base(&mut self, region: Region) -> V {
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
        }
    }

    /// Size of a region in bytes; at most `u32::MAX` except for device memory.
    pub fn size(&mut self, region: Region) -> V {
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
            Region::Known(place @ (Place::Scratch | Place::Regs)) => {
                self.per_thread(key(place), make)
            }
            Region::Known(place) => self.hoisted(key(place), make),
        }
    }

    /// Number of offsets at which `bytes` bytes are inside, as `i64`.
    pub fn wide_limit(&mut self, region: Region, bytes: u32) -> V {
        let size = self.size(region);
        let short = self
            .ins()
            .icmp_imm_u(IntCC::UnsignedLessThan, size, i64::from(bytes));
        let limit = self.ins().iadd_imm_s(size, 1 - i64::from(bytes));
        let none = self.iconst(types::I64, 0);
        self.ins().select(short, none, limit)
    }

    /// The limit for 32-bit offsets.
    pub fn limit(&mut self, region: Region, bytes: u32) -> V {
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

    fn limit_splat(&mut self, region: Region, bytes: u32) -> V {
        if let Region::Known(Place::Regs) = region {
            let limit = (self.f.regs_bytes + 1).saturating_sub(bytes);
            return self.vsplat(Lane::I32, u64::from(limit));
        }
        let limit = self.limit(region, bytes);
        self.placed(
            region,
            |place| Key::LimitSplat(place, bytes),
            |e| e.ins().splat(types::I32X4, limit),
        )
    }

    /// Base that can be accessed at offset 0 with `bytes` bytes, whatever the size.
    pub fn safe_base(&mut self, region: Region, bytes: u32) -> V {
        let base = self.base(region);
        if let Region::Known(Place::Regs) = region
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

    /// A pointer of the launch or group in both lanes of a piece.
    pub fn splat_pointer(&mut self, region: Region, pointer: V) -> V {
        self.placed(
            region,
            |_| Key::Splat(pointer),
            |e| e.ins().splat(types::I64X2, pointer),
        )
    }

    /// The sink in both lanes of a piece.
    pub fn sink_splat(&mut self) -> V {
        let sink = self.sink();
        self.hoisted(Key::Splat(sink), |e| e.ins().splat(types::I64X2, sink))
    }

    /// Offsets of component `c`.
    pub fn component(&mut self, lanes: &Lanes, elem: Lane, c: u8) -> Vec<V> {
        let distance = u64::from(elem.bytes()) * u64::from(c);
        if distance == 0 {
            return lanes.offset.clone();
        }
        let vector = lanes.count > 1;
        let by = self.konst(lanes.addr_lane(), vector, distance);
        let keep = lanes
            .flat
            .then(|| self.konst(Lane::I64, vector, FLAT_OFFSET));
        self.lanewise(std::slice::from_ref(&lanes.offset), |e, v| {
            let sum = e.ins().iadd(v[0], by);
            match keep {
                Some(keep) => e.ins().band(sum, keep),
                None => sum,
            }
        })
    }

    /// Offset and bytes that must be inside for component `c`, which is at `component`: as 32-bit offsets
    /// may wrap, there it is everything from the lane's offset to the end of the component.
    pub fn extent(&self, lanes: &Lanes, elem: Lane, c: u8, component: &[V]) -> (Vec<V>, u32) {
        if lanes.flat {
            (component.to_vec(), elem.bytes())
        } else {
            (lanes.offset.clone(), elem.bytes() * (u32::from(c) + 1))
        }
    }

    /// Lanes whose element of `bytes` bytes is inside: `i8`, or pieces as wide as the addresses.
    pub fn in_bounds(&mut self, lanes: &Lanes, offset: &[V], bytes: u32) -> Vec<V> {
        if lanes.count == 1 {
            let limit = if lanes.flat {
                self.flat_limit(bytes)
            } else {
                self.limit(lanes.region, bytes)
            };
            return vec![self.ins().icmp(IntCC::UnsignedLessThan, offset[0], limit)];
        }
        if lanes.flat {
            // Offsets and limits are below 2^63: the signed comparison is one instruction.
            let limit = self.flat_limit(bytes);
            let limit = self.hoisted(Key::Splat(limit), |e| e.ins().splat(types::I64X2, limit));
            return self.lanewise(&[offset.to_vec()], |e, v| {
                e.ins().icmp(IntCC::SignedGreaterThan, limit, v[0])
            });
        }
        let limit = self.limit_splat(lanes.region, bytes);
        self.lanewise(&[offset.to_vec()], |e, v| {
            // Two instructions and a complement that folds into the `and` which follows.
            let outside = e.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, v[0], limit);
            e.ins().bnot(outside)
        })
    }

    /// The limit in device memory.
    pub fn flat_limit(&mut self, bytes: u32) -> V {
        self.hoisted(Key::Limit(Place::Flat, bytes), |e| {
            e.wide_limit(Region::Known(Place::Flat), bytes)
        })
    }

    /// In-bounds lanes that are also enabled.
    pub fn guards(&mut self, lanes: &Lanes, offset: &[V], bytes: u32) -> Vec<V> {
        let inside = self.in_bounds(lanes, offset, bytes);
        if let Some(bits) = self.mask_const(lanes.mask)
            && bits == full(lanes.count)
        {
            return inside;
        }
        if lanes.count == 1 {
            let mask = self.scalar(lanes.mask);
            return vec![self.ins().band(mask, inside[0])];
        }
        let mask = self.mask_vec(lanes.mask, lanes.addr_lane().bytes());
        self.lanewise(&[mask, inside], |e, v| e.ins().band(v[0], v[1]))
    }

    /// Guards as a mask.
    pub fn guard_mask(&mut self, lanes: &Lanes, guards: Vec<V>) -> MaskRepr {
        if lanes.count == 1 {
            MaskRepr::Bits(self.resize(guards[0], types::I32))
        } else {
            MaskRepr::Vec(lanes.addr_lane().bytes(), guards)
        }
    }

    /// Checks that an access is one this generator knows.
    pub fn known_access(&mut self, access: MemAccess) -> bool {
        let ok = matches!(access.elem, Lane::I8 | Lane::I16 | Lane::I32 | Lane::I64);
        if !ok {
            self.bug(format!("access of {} elements", access.elem.name()));
        }
        ok
    }
}
