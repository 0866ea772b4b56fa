//! Memory accesses of messages: elements in and out of bounds, faults, atomics (docs/visa.md, "Memory").
//!
//! Each element is checked by itself: one that is not wholly inside its region reads zero and is not written. A
//! fault record is made for each lane of an access; a message may consist of several accesses (`part`).

use visa_runtime::MemoryRef;

use super::error::Halt;
use super::lanes::{ChannelBits, MAX, bits, up};
use super::live::AccessMode;
use super::machine::Machine;
use super::race::Does;
use crate::isa::AtomicOp;
use crate::module::{Inst, Raw};

/// Local-memory addresses may carry bit 28; only the low 28 bits count (docs/visa.md, "Memory").
pub(super) const LOCAL_MASK: u64 = 0x0FFF_FFFF;

/// Kinds of memory, in the order of their codes in site numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A bound surface.
    Surface,
    /// Shared local memory.
    Local,
    /// Scratch of the thread.
    Scratch,
    /// Device memory.
    Device,
    /// Indirect data of the launch, which is only read.
    Args,
}

impl Space {
    /// All of them.
    pub const ALL: [Space; 5] = [
        Space::Surface,
        Space::Local,
        Space::Scratch,
        Space::Device,
        Space::Args,
    ];

    /// Name in traces.
    const fn name(self) -> &'static str {
        match self {
            Space::Surface => "surface",
            Space::Local => "local",
            Space::Scratch => "scratch",
            Space::Device => "device",
            Space::Args => "arguments",
        }
    }
}

/// Numbers of one part of an instruction: more than there are spaces.
const SPACES: u32 = 8;
const _: () = assert!(Space::ALL.len() < USE as usize);

/// In place of a space: the instruction uses what is not initialised.
const USE: u32 = SPACES - 2;

/// Parts of one instruction that have sites of their own.
const PARTS: u32 = 16;

/// Sites of one instruction.
pub(super) const SITES: u32 = PARTS * SPACES;

/// Number of a site: where an access stands in the program and what it reaches.
pub(super) fn site(at: usize, part: u32, space: Space) -> u32 {
    (at as u32)
        .wrapping_mul(SITES)
        .wrapping_add((part % PARTS).wrapping_mul(SPACES))
        .wrapping_add(space as u32)
}

/// Number of a barrier's site.
pub(super) fn site_of_barrier(at: usize) -> u32 {
    (at as u32).wrapping_mul(SITES).wrapping_add(SPACES - 1)
}

/// Number of the site of an instruction that uses what is not initialised.
pub(super) fn site_of_use(at: usize) -> u32 {
    (at as u32).wrapping_mul(SITES).wrapping_add(USE)
}

/// True for a site of [`site_of_use`].
pub(super) fn is_use(site: u32) -> bool {
    site % SPACES == USE
}

/// What a site reaches; `None` of a barrier's and a use's.
pub(super) fn space_of(site: u32) -> Option<Space> {
    Space::ALL.get((site % SPACES) as usize).copied()
}

/// Memory that a message names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// What it is.
    pub space: Space,
    /// Binding-table index of surfaces, else 0.
    pub surface: u32,
}

impl Memory {
    /// Device memory.
    pub(super) const DEVICE: Memory = Memory {
        space: Space::Device,
        surface: 0,
    };
    /// Shared local memory.
    pub(super) const LOCAL: Memory = Memory {
        space: Space::Local,
        surface: 0,
    };
    /// Indirect data.
    pub(super) const ARGS: Memory = Memory {
        space: Space::Args,
        surface: 0,
    };
    /// Scratch.
    pub(super) const SCRATCH: Memory = Memory {
        space: Space::Scratch,
        surface: 0,
    };

    /// An address `bytes` further. Offsets have 32 bits: one beyond becomes the last, which is outside of any region.
    pub(super) fn beyond(self, address: u64, bytes: u64) -> u64 {
        let sum = address.wrapping_add(bytes);
        match self.space {
            Space::Device => sum,
            _ => sum.min(u32::MAX.into()),
        }
    }

    /// `index * scale`, limited likewise. Local memory wraps, as only the low bits of its offsets count.
    pub(super) fn scaled(self, index: u64, scale: u64) -> u64 {
        let product = index.wrapping_mul(scale);
        match self.space {
            Space::Local => product & LOCAL_MASK,
            _ => product.min(u32::MAX.into()),
        }
    }

    /// An address as it is looked up.
    pub(super) fn masked(self, address: u64) -> u64 {
        match self.space {
            Space::Local => address & LOCAL_MASK,
            _ => address,
        }
    }
}

/// A lane-wise access.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneAccess {
    /// Where to.
    pub memory: Memory,
    /// Address of each channel.
    pub address: ChannelBits,
    /// Bytes of an element.
    pub bytes: u32,
    /// Consecutive elements of a lane.
    pub count: usize,
    /// Enabled channels.
    pub enabled: u32,
    /// Which access of the message.
    pub part: u32,
}

impl LaneAccess {
    /// The same of a block, which channel 0 alone does.
    fn of_block(&self) -> LaneAccess {
        LaneAccess {
            enabled: u32::from(self.enabled != 0),
            ..*self
        }
    }

    pub(super) fn element_address(&self, lane: usize, element: usize) -> u64 {
        let distance = (element as u64).wrapping_mul(self.bytes.into());
        self.address.get(lane).wrapping_add(distance)
    }
}

/// Where elements of one component are in registers, one for each channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The payload.
    pub data: Raw,
    /// Byte of it that channel 0 begins at.
    pub at: usize,
    /// Bytes from channel to channel.
    pub register: usize,
    /// Bits of the register below the element.
    pub high: u32,
}

/// Operands of an atomic, the compare value before the new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Atomic {
    /// Operation.
    pub op: AtomicOp,
    /// First operand.
    pub first: Raw,
    /// Second operand.
    pub second: Raw,
    /// Old value.
    pub dst: Raw,
    /// Bytes of an operand in a register.
    pub register: usize,
}

impl Slot {
    /// Elements of a block, one after the other.
    pub(super) const fn block(data: Raw, register: usize, high: u32) -> Slot {
        Slot {
            data,
            at: 0,
            register,
            high,
        }
    }
}

impl Machine<'_, '_, '_> {
    pub(super) fn region(&self, memory: Memory) -> MemoryRef {
        match memory.space {
            Space::Surface => MemoryRef::Surface(memory.surface),
            Space::Local => MemoryRef::Local,
            Space::Scratch => MemoryRef::Scratch(self.number),
            Space::Device => MemoryRef::Device,
            Space::Args => MemoryRef::Args,
        }
    }

    /// Records faulting channels, if faults are recorded.
    pub(super) fn report(
        &mut self,
        inst: &Inst,
        memory: Memory,
        part: u32,
        channels: u32,
        address: &ChannelBits,
    ) -> Result<(), Halt> {
        if channels == 0 || !self.program.options.report {
            return Ok(());
        }
        // Records number lanes as the thread does.
        let first = inst.exec.mask.first_lane();
        let mut addresses = [0; MAX];
        for (lane, to) in addresses.iter_mut().enumerate() {
            *to = address.get(lane.saturating_sub(first as usize));
        }
        let site = site(self.at, part, memory.space);
        let lanes = up(channels, first);
        if self
            .group
            .fault(self.number, site, lanes, &addresses, memory.surface)
        {
            return Err(Halt::Fault);
        }
        Ok(())
    }

    fn check(&mut self, inst: &Inst, a: &LaneAccess, does: AccessMode) -> Result<(), Halt> {
        let region = self.region(a.memory);
        let aligned = does.is_atomic();
        let mut outside = 0;
        for lane in bits(a.enabled) {
            let whole = (0..a.count).all(|k| {
                self.group
                    .inside(region, a.element_address(lane, k), a.bytes, aligned)
            });
            if !whole {
                outside |= up(1, lane as u32);
            }
        }
        self.report(inst, a.memory, a.part, outside, &a.address)?;
        self.check_aligned(inst, a)?;
        self.check_buffers(inst, a, does)
    }

    /// Loads element `k` of the enabled lanes into slot `k`.
    pub(super) fn load_into(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        slots: &[Slot],
    ) -> Result<(), Halt> {
        for (k, (slot, v)) in slots.iter().zip(self.load(inst, a)?).enumerate() {
            let v = ChannelBits::each(|i| v.get(i).wrapping_shl(slot.high));
            self.set_payload_lanes(slot.data, slot.at, slot.register, &v, a.enabled)?;
            self.init_loaded(a, k, slot)?;
        }
        Ok(())
    }

    /// Stores element `k` of the enabled lanes from slot `k`.
    pub(super) fn store_from(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        slots: &[Slot],
    ) -> Result<(), Halt> {
        let read = |slot: &Slot| {
            let lanes = inst.exec.lanes();
            let v = self.payload_lanes(slot.data, slot.at, lanes, slot.register)?;
            Ok(ChannelBits::each(|i| v.get(i).wrapping_shr(slot.high)))
        };
        let values = slots.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        self.store_lanes(inst, a, &values)?;
        self.init_stored(a, slots)
    }

    /// Loads `count` elements a lane; element `k` of all lanes is entry `k`.
    fn load(&mut self, inst: &Inst, a: &LaneAccess) -> Result<Vec<ChannelBits>, Halt> {
        self.check(inst, a, AccessMode::Read)?;
        self.check_races(inst, a, |_, _| Does::Read)?;
        let region = self.region(a.memory);
        let mut out = vec![ChannelBits::default(); a.count];
        for lane in bits(a.enabled) {
            for (k, values) in out.iter_mut().enumerate() {
                let v = self.group.read(region, a.element_address(lane, k), a.bytes);
                values.set(lane, v.unwrap_or(0));
            }
        }
        Ok(out)
    }

    /// Stores; of lanes that overlap the highest wins.
    fn store_lanes(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        values: &[ChannelBits],
    ) -> Result<(), Halt> {
        self.check(inst, a, AccessMode::Write)?;
        let left = |lane, k: usize| values.get(k).map_or(0, |v: &ChannelBits| v.get(lane));
        self.check_lanes(inst, a, values)?;
        self.check_races(inst, a, |lane, k| Does::Write(left(lane, k)))?;
        let region = self.region(a.memory);
        for lane in bits(a.enabled) {
            for (k, v) in values.iter().enumerate() {
                let (at, v) = (a.element_address(lane, k), v.get(lane));
                if self.group.write(region, at, a.bytes, v) {
                    self.note(a.memory, at, v, a.bytes);
                }
            }
        }
        Ok(())
    }

    /// Notes a write for the trace.
    pub(super) fn note(&mut self, memory: Memory, at: u64, v: u64, bytes: u32) {
        if let Some(w) = &mut self.written {
            let v = v & super::number::mask(bytes);
            match memory.space {
                // Addresses differ from run to run, positions in device memory do not.
                Space::Device => w.memory("device", self.group.position(at), v),
                Space::Surface => w.memory(&format!("surface{}", memory.surface), at, v),
                other => w.memory(other.name(), at, v),
            }
        }
    }

    /// Consecutive elements of channel 0 into a payload, each in `register` bytes, `high` bits up. Each element out of
    /// bounds is a fault of its own.
    pub(super) fn load_block(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        data: Raw,
        register: usize,
        high: u32,
    ) -> Result<(), Halt> {
        let region = self.region(a.memory);
        self.check_aligned(inst, &a.of_block())?;
        self.check_buffers(inst, &a.of_block(), AccessMode::Read)?;
        self.check_races(inst, &a.of_block(), |_, _| Does::Read)?;
        let mut all = Vec::with_capacity(a.count);
        for k in 0..a.count {
            let at = a.element_address(0, k);
            let v = self.group.read(region, at, a.bytes);
            if v.is_none() && a.enabled != 0 {
                self.report(inst, a.memory, a.part, 1, &ChannelBits::all(at))?;
            }
            all.push(v.unwrap_or(0));
        }
        if a.enabled != 0 {
            for (k, v) in all.into_iter().enumerate() {
                self.set_payload(data, 0, k, register, v.wrapping_shl(high))?;
                self.init_block(a, (k, k), &Slot::block(data, register, high), false)?;
            }
        }
        Ok(())
    }

    /// A payload to consecutive elements from channel 0's address on.
    pub(super) fn store_block(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        data: Raw,
        register: usize,
        high: u32,
    ) -> Result<(), Halt> {
        let region = self.region(a.memory);
        let values = (0..a.count)
            .map(|k| self.payload(data, 0, k, register))
            .collect::<Result<Vec<_>, _>>()?;
        if a.enabled == 0 {
            return Ok(());
        }
        self.check_aligned(inst, &a.of_block())?;
        self.check_buffers(inst, &a.of_block(), AccessMode::Write)?;
        let left = |k: usize| values.get(k).map_or(0, |v: &u64| v.wrapping_shr(high));
        self.check_races(inst, &a.of_block(), |_, k| Does::Write(left(k)))?;
        for (k, v) in values.into_iter().enumerate() {
            let (at, v) = (a.element_address(0, k), v.wrapping_shr(high));
            if self.group.write(region, at, a.bytes, v) {
                self.note(a.memory, at, v, a.bytes);
                self.init_block(a, (k, k), &Slot::block(data, register, high), true)?;
            } else {
                self.report(inst, a.memory, a.part, 1, &ChannelBits::all(at))?;
            }
        }
        Ok(())
    }

    /// One atomic a lane, in ascending order. Offsets are rounded down to a multiple of the element.
    pub(super) fn atomic(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        atomic: &Atomic,
    ) -> Result<(), Halt> {
        let n = atomic.op.sources();
        if (n >= 1 && atomic.first.is_null()) || (n == 2 && atomic.second.is_null()) {
            return Halt::malformed("an atomic operand is missing");
        }
        if !matches!(a.bytes, 2 | 4 | 8) {
            return Halt::unsupported(format!("atomics on {} bytes", a.bytes));
        }
        let operand = |m: &Self, raw: Raw, lane: usize| {
            let v = m.payload(raw, 0, lane, atomic.register)?;
            Ok(v & super::number::mask(a.bytes))
        };
        let (mut first, mut second) = (ChannelBits::default(), ChannelBits::default());
        for lane in bits(a.enabled) {
            first.set(lane, operand(self, atomic.first, lane)?);
            second.set(lane, operand(self, atomic.second, lane)?);
        }
        let (way, does) = match atomic.op {
            AtomicOp::Load => (AccessMode::AtomicRead, Does::AtomicRead),
            _ => (AccessMode::AtomicWrite, Does::AtomicWrite),
        };
        self.check(inst, a, way)?;
        self.check_races(inst, a, |_, _| does)?;
        let unset = self.init_atomic(inst, a, atomic)?;
        let region = self.region(a.memory);
        let mut out = ChannelBits::default();
        for lane in bits(a.enabled) {
            let (x, y) = (first.get(lane), second.get(lane));
            let new = |old| super::atomic::result(atomic.op, a.bytes, old, x, y);
            let old = self.group.update(region, a.address.get(lane), a.bytes, new);
            if let Some(old) = old {
                let predec = atomic.op == AtomicOp::PreDec;
                let back = if predec { new(old) } else { old };
                out.set(lane, back);
                self.note(a.memory, a.address.get(lane), new(old), a.bytes);
            }
        }
        self.set_payload_lanes(atomic.dst, 0, atomic.register, &out, a.enabled)?;
        self.init_got(a, atomic, &unset)
    }
}
