//! Loads and stores described by where lanes find their elements: the section "Memory" of docs/visa.md, as data.

use super::machine::{Case, Machine, Space};

/// Where a lane's access begins.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// `(scalar + offset) * size`: added in 32 bits, not wrapped by the multiplication.
    Elements(u64),
    /// `scalar + offset`, in 32 bits.
    Bytes,
    /// `scalar * size`, alone.
    Block(u64),
    /// A 64-bit scalar, alone.
    Block64,
    /// `offset`, 64 bits.
    Address,
    /// `scalar + offset`: 64 bits, and the bits of this mask.
    BasePlus(u64),
    /// `offset + immediate`.
    Lsc(i64),
    /// `offset * scale + immediate`.
    Scaled(u64, i64),
    /// Offset 0 plus `lane * stride`.
    Strided(i64, u64),
}

/// Elements in memory and in registers.
#[derive(Clone, Debug)]
pub struct Layout {
    pub start: Start,
    /// Bytes of an element in memory.
    pub memory: u32,
    /// Bytes of a lane's slot in the register.
    pub register: u32,
    /// The value sits in the upper half of its slot.
    pub upper: bool,
    /// Elements of a lane, counted from where its access begins.
    pub elements: Vec<u32>,
    /// Bytes from one of a lane's elements to the next in the register.
    pub stride: u32,
    /// A block: each element is an access by itself.
    pub block: bool,
}

/// Where the access of a lane begins.
pub fn begin(start: Start, space: Space, case: &Case, lane: usize) -> u64 {
    let offset = case.offsets[lane];
    let sum32 = u64::from((case.scalar as u32).wrapping_add(offset as u32));
    let at = match start {
        Start::Elements(size) => sum32 * size,
        Start::Bytes => sum32,
        Start::Block(size) => u64::from(case.scalar as u32) * size,
        Start::Block64 => case.scalar,
        Start::Address => offset,
        Start::BasePlus(bits) => case.scalar.wrapping_add(offset & bits),
        Start::Lsc(imm) => offset.wrapping_add_signed(imm),
        Start::Scaled(scale, imm) => offset.wrapping_mul(scale).wrapping_add_signed(imm),
        Start::Strided(imm, stride) => case.offsets[0]
            .wrapping_add_signed(imm)
            .wrapping_add(stride.wrapping_mul(lane as u64)),
    };
    match (space, start) {
        (Space::Flat, _) => at,
        (Space::Slm, _) => at & 0x0fff_ffff,
        (_, Start::Lsc(_) | Start::Scaled(..) | Start::Strided(..)) => at & 0xffff_ffff,
        _ => at,
    }
}

impl Layout {
    /// Runs of up to eight neighbouring elements are one access each, as far as fault records go.
    fn access(&self, c: usize) -> (u32, usize) {
        let mut number = 0;
        let mut first = 0;
        for k in 1..=c {
            if self.elements[k] != self.elements[k - 1] + 1 || k - first == 8 {
                number += 1;
                first = k;
            }
        }
        (number, first)
    }

    /// Calls `each` with who, address and payload position of every element of the enabled lanes.
    fn each(
        &self,
        case: &Case,
        m: &mut Machine,
        mut each: impl FnMut(&mut Machine, (u32, u32, u64), u64, u32),
    ) {
        for lane in 0..case.offsets.len() as u32 {
            if !m.on(lane) {
                continue;
            }
            let from = begin(self.start, m.space, case, lane as usize);
            for (c, &element) in self.elements.iter().enumerate() {
                let at = from.wrapping_add(u64::from(element * self.memory));
                let (number, first) = if self.block {
                    (c as u32, c)
                } else {
                    self.access(c)
                };
                let address = from.wrapping_add(u64::from(self.elements[first] * self.memory));
                let slot = c as u32 * self.stride + lane * self.register;
                each(m, (number, lane, address), at, slot);
            }
        }
    }

    pub fn load(&self, case: &Case, m: &mut Machine) {
        self.each(case, m, |m, who, at, slot| {
            let v = m.load(who, at, self.memory);
            let v = if self.upper { v << 16 } else { v };
            m.set(slot, self.register, v);
        });
    }

    pub fn store(&self, case: &Case, m: &mut Machine) {
        self.each(case, m, |m, who, at, slot| {
            let v = m.get(slot, self.register);
            let v = if self.upper { v >> 16 } else { v };
            m.store(who, at, self.memory, v);
        });
    }

    /// Bytes from where an access begins to the end of its last element.
    pub fn reach(&self) -> u64 {
        u64::from((self.elements[self.elements.len() - 1] + 1) * self.memory)
    }

    /// Bytes of the data payload.
    pub fn data_bytes(&self, lanes: u32) -> u32 {
        (self.elements.len() as u32 - 1) * self.stride + lanes.max(16) * self.register
    }
}
