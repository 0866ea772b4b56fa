//! Kinds of memory.

use super::types::Lane;

/// Memory that an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Space {
    /// A bound surface: 32-bit byte offsets; the access has a scalar `i32` binding-table operand.
    Surface,
    /// Shared local memory of the work-group: 32-bit byte offsets, already masked with `0x0FFF_FFFF`.
    Slm,
    /// Device memory: 64-bit addresses of which bits 63:48 are ignored (generic pointers carry tags there):
    /// the offset that is checked is `(addr - flat_base) mod 2^48`.
    Flat,
    /// Per-thread scratch: 32-bit byte offsets.
    Scratch,
    /// Storage of register variables that are reached indirectly: 32-bit byte offsets. Never faults:
    /// out-of-range elements read zero and are not written.
    Regs,
    /// Indirect data of the launch: 32-bit byte offsets. There are only loads.
    Args,
    /// Marks of a surface: for each of its bytes one, at the same offset, which is not 0 where the byte is not initialised. Only code with checks
    /// of initialisation reaches these and the following. Accesses to marks are never reported.
    SurfaceMarks,
    /// Marks of local memory.
    SlmMarks,
    /// Marks of device memory.
    FlatMarks,
    /// Marks of scratch.
    ScratchMarks,
    /// Marks of the storage of register variables.
    RegsMarks,
}

impl Space {
    /// Lane type of addresses.
    pub const fn addr(self) -> Lane {
        match self.data() {
            Space::Flat => Lane::I64,
            _ => Lane::I32,
        }
    }

    /// The memory itself, of marks too.
    #[must_use]
    pub const fn data(self) -> Space {
        match self {
            Space::SurfaceMarks => Space::Surface,
            Space::SlmMarks => Space::Slm,
            Space::FlatMarks => Space::Flat,
            Space::ScratchMarks => Space::Scratch,
            Space::RegsMarks => Space::Regs,
            other => other,
        }
    }

    /// The marks of a memory; none of what is always initialised.
    pub const fn marks(self) -> Option<Space> {
        match self {
            Space::Surface => Some(Space::SurfaceMarks),
            Space::Slm => Some(Space::SlmMarks),
            Space::Flat => Some(Space::FlatMarks),
            Space::Scratch => Some(Space::ScratchMarks),
            Space::Regs => Some(Space::RegsMarks),
            _ => None,
        }
    }

    /// True for marks.
    pub fn is_marks(self) -> bool {
        self != self.data()
    }

    /// True where addresses are those of device memory.
    pub fn is_flat(self) -> bool {
        self.data() == Space::Flat
    }

    /// True when accesses carry a surface operand.
    pub const fn has_surface(self) -> bool {
        matches!(self.data(), Space::Surface)
    }
}
