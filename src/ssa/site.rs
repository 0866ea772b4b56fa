//! Memory instructions, and barriers that are checked, as fault records and `explain` name them.

use super::space::Space;

/// What kind of access a site is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum AccessKind {
    /// Load.
    Read,
    /// Store.
    Write,
    /// Atomic.
    Atomic,
    /// No access: a barrier.
    Barrier,
}

/// A memory instruction, or a barrier that is checked, for fault records and `explain`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Source line in the vISA text, 0 when unknown.
    pub line: u32,
    /// Opcode as written, e.g. `gather4_scaled`.
    pub opcode: &'static str,
    /// Memory.
    pub space: Space,
    /// Read, write, atomic or barrier.
    pub kind: AccessKind,
    /// Bytes of one element.
    pub bytes: u32,
    /// Bytes that the address of an element has to be a multiple of.
    pub alignment: u32,
    /// Lane of the thread that lane 0 of the access is.
    pub first_lane: u8,
    /// Sites of the instructions that lanes come from, where passes made one access of several or several of one: each from
    /// its first lane on, in the order of the lanes. Empty where it is the instruction's own.
    pub parts: Vec<u32>,
}

impl Site {
    /// The alignment that the text form does not show.
    pub const fn usual_alignment(kind: AccessKind, bytes: u32) -> u32 {
        match kind {
            AccessKind::Atomic => bytes,
            _ => 1,
        }
    }
}
