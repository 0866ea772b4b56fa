//! Vocabulary of LSC messages (VISA.md 1.8, 3.4).

use super::AtomicOp;

/// What an untyped or typed LSC message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LscOp {
    /// `lsc_load`.
    Load,
    /// `lsc_load_strided`.
    LoadStrided,
    /// `lsc_load_quad`.
    LoadQuad,
    /// `lsc_load_block2d`.
    LoadBlock2d,
    /// `lsc_store`.
    Store,
    /// `lsc_store_strided`.
    StoreStrided,
    /// `lsc_store_quad`.
    StoreQuad,
    /// `lsc_store_block2d`.
    StoreBlock2d,
    /// `lsc_load_status`.
    LoadStatus,
    /// `lsc_atomic_*`.
    Atomic(AtomicOp),
}

/// Shared function that serves the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sfid {
    /// Untyped global memory.
    Ugm,
    /// Untyped global memory across tiles.
    Ugml,
    /// Typed global memory.
    Tgm,
    /// Shared local memory.
    Slm,
    /// Unified return buffer.
    Urb,
}

/// How the surface of an LSC message is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddrModel {
    /// 64-bit (or SLM) address, no surface.
    Flat,
    /// Bindless surface-state offset.
    Bss,
    /// Surface-state heap offset.
    Ss,
    /// Binding-table index.
    Bti,
    /// Argument buffer.
    Arg,
}

/// Width of the address elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddrSize {
    /// 16-bit.
    A16,
    /// 32-bit.
    A32,
    /// 64-bit.
    A64,
}

/// Size of one element in memory and in the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataSize {
    /// 8-bit, packed bytes.
    D8,
    /// 16-bit, packed words.
    D16,
    /// 32-bit.
    D32,
    /// 64-bit.
    D64,
    /// 8-bit in memory, 32-bit in the register.
    D8c32,
    /// 16-bit in memory, 32-bit in the register.
    D16c32,
    /// 16-bit in memory, upper half of 32 bits in the register.
    D16c32h,
}

impl DataSize {
    /// Bytes of one element in memory.
    pub const fn memory_bytes(self) -> u32 {
        match self {
            DataSize::D8 | DataSize::D8c32 => 1,
            DataSize::D16 | DataSize::D16c32 | DataSize::D16c32h => 2,
            DataSize::D32 => 4,
            DataSize::D64 => 8,
        }
    }

    /// Bytes of one element in the register.
    pub const fn register_bytes(self) -> u32 {
        match self {
            DataSize::D8 => 1,
            DataSize::D16 => 2,
            DataSize::D32 | DataSize::D8c32 | DataSize::D16c32 | DataSize::D16c32h => 4,
            DataSize::D64 => 8,
        }
    }
}

/// Scope of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Thread group.
    Group,
    /// Dual subslice.
    Local,
    /// Tile.
    Tile,
    /// One GPU.
    Gpu,
    /// All GPUs.
    Gpus,
    /// System release.
    Sysrel,
    /// System acquire.
    Sysacq,
}
