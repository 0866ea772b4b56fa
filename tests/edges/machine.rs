//! What an instruction should do, on plain bytes: memory with bounds, a data payload, faults.

/// Memory that an instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A bound surface; 32-bit byte offsets.
    Surface,
    /// Shared local memory; 28 bits of the offset count.
    Slm,
    /// Scratch; 32-bit byte offsets.
    Scratch,
    /// Device memory; 48 bits of the address count.
    Flat,
}

/// Inputs of one run of an instruction.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Bit per lane of the thread.
    pub mask: u32,
    /// Scalar operand.
    pub scalar: u64,
    /// Offset or address of each lane of the instruction.
    pub offsets: Vec<u64>,
    /// Data payload before.
    pub data: Vec<u8>,
    /// Sources of atomics.
    pub sources: [Vec<u8>; 2],
}

/// A lane's element that was not wholly inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Which of the accesses that the instruction consists of.
    pub access: u32,
    /// Lane of the thread.
    pub lane: u32,
    /// Where the lane's access begins.
    pub address: u64,
}

/// State that a model changes.
#[derive(Clone, Debug)]
pub struct Machine {
    pub space: Space,
    /// First address of device memory.
    pub base: u64,
    pub memory: Vec<u8>,
    pub data: Vec<u8>,
    pub faults: Vec<Fault>,
    /// First lane of the instruction in its thread.
    pub first: u32,
    /// Lanes of the instruction that are enabled.
    pub enabled: u32,
}

/// Who accesses, for faults: access number, lane of the instruction, address where the access begins.
pub type Who = (u32, u32, u64);

fn little(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

impl Machine {
    pub fn on(&self, lane: u32) -> bool {
        self.enabled >> lane & 1 != 0
    }

    /// Index of the first byte of an element, unless a byte of it is outside.
    fn place(&self, at: u64, bytes: u32) -> Option<usize> {
        let offset = if self.space == Space::Flat {
            at.wrapping_sub(self.base) & 0xffff_ffff_ffff
        } else {
            at
        };
        let end = offset.checked_add(u64::from(bytes))?;
        (end <= self.memory.len() as u64).then_some(offset as usize)
    }

    fn fault(&mut self, who: Who) {
        let f = Fault {
            access: who.0,
            lane: self.first + who.1,
            // Offsets beyond 32 bits are reported as the last one.
            address: if self.space == Space::Flat {
                who.2
            } else {
                who.2.min(0xffff_ffff)
            },
        };
        if !self.faults.contains(&f) {
            self.faults.push(f);
        }
    }

    /// Reads an element; zero outside.
    pub fn load(&mut self, who: Who, at: u64, bytes: u32) -> u64 {
        match self.place(at, bytes) {
            Some(i) => little(&self.memory[i..i + bytes as usize]),
            None => {
                self.fault(who);
                0
            }
        }
    }

    /// Writes an element; nothing outside.
    pub fn store(&mut self, who: Who, at: u64, bytes: u32, v: u64) {
        match self.place(at, bytes) {
            Some(i) => self.memory[i..i + bytes as usize]
                .copy_from_slice(&v.to_le_bytes()[..bytes as usize]),
            None => self.fault(who),
        }
    }

    /// Changes an element, if it is inside.
    pub fn change(&mut self, who: Who, at: u64, bytes: u32, new: impl FnOnce(u64) -> u64) {
        match self.place(at, bytes) {
            Some(i) => {
                let element = &mut self.memory[i..i + bytes as usize];
                let new = new(little(element));
                element.copy_from_slice(&new.to_le_bytes()[..bytes as usize]);
            }
            None => self.fault(who),
        }
    }

    /// Element of the data payload.
    pub fn get(&self, at: u32, bytes: u32) -> u64 {
        little(&self.data[at as usize..(at + bytes) as usize])
    }

    /// Sets an element of the data payload.
    pub fn set(&mut self, at: u32, bytes: u32, v: u64) {
        self.data[at as usize..(at + bytes) as usize]
            .copy_from_slice(&v.to_le_bytes()[..bytes as usize]);
    }
}

/// Element of a source payload.
pub fn source(bytes: &[u8], lane: u32, size: u32) -> u64 {
    little(&bytes[(lane * size) as usize..((lane + 1) * size) as usize])
}
