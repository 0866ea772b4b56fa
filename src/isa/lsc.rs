//! Vocabulary of LSC messages (docs/visa.md, "Text" and "Memory").

use super::{AtomicOp, Effect};

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
    /// Indirect data of the launch: kernel arguments. Loads only.
    Arg,
}

/// Why writes by the address model `arg` are refused.
pub const ARG_WRITTEN: &str =
    "writes by address model arg: what becomes of a launch's arguments then is not part of the ISA";

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

macro_rules! lsc_ops {
    ($($text:literal $code:literal $effect:ident $op:expr,)*) => {
        /// Mnemonics of LSC messages other than the fence.
        pub const LSC_MNEMONICS: &[&str] = &[$($text),*];

        /// Mnemonic, sub-opcode of the binary format, operation and effect of every LSC message.
        pub const LSC_OPS: &[(&str, u8, LscOp, Effect)] = &[$(($text, $code, $op, Effect::$effect),)*];
    };
}

lsc_ops! {
    "lsc_load" 0x00 Load LscOp::Load,
    "lsc_load_strided" 0x01 Load LscOp::LoadStrided,
    "lsc_load_quad" 0x02 Load LscOp::LoadQuad,
    "lsc_load_block2d" 0x03 Load LscOp::LoadBlock2d,
    "lsc_store" 0x04 Store LscOp::Store,
    "lsc_store_strided" 0x05 Store LscOp::StoreStrided,
    "lsc_store_quad" 0x06 Store LscOp::StoreQuad,
    "lsc_store_block2d" 0x07 Store LscOp::StoreBlock2d,
    "lsc_atomic_iinc" 0x08 Atomic LscOp::Atomic(AtomicOp::Inc),
    "lsc_atomic_idec" 0x09 Atomic LscOp::Atomic(AtomicOp::Dec),
    "lsc_atomic_load" 0x0A Atomic LscOp::Atomic(AtomicOp::Load),
    "lsc_atomic_store" 0x0B Atomic LscOp::Atomic(AtomicOp::Xchg),
    "lsc_atomic_iadd" 0x0C Atomic LscOp::Atomic(AtomicOp::Add),
    "lsc_atomic_isub" 0x0D Atomic LscOp::Atomic(AtomicOp::Sub),
    "lsc_atomic_smin" 0x0E Atomic LscOp::Atomic(AtomicOp::Smin),
    "lsc_atomic_smax" 0x0F Atomic LscOp::Atomic(AtomicOp::Smax),
    "lsc_atomic_umin" 0x10 Atomic LscOp::Atomic(AtomicOp::Umin),
    "lsc_atomic_umax" 0x11 Atomic LscOp::Atomic(AtomicOp::Umax),
    "lsc_atomic_icas" 0x12 Atomic LscOp::Atomic(AtomicOp::CmpXchg),
    "lsc_atomic_fadd" 0x13 Atomic LscOp::Atomic(AtomicOp::Fadd),
    "lsc_atomic_fsub" 0x14 Atomic LscOp::Atomic(AtomicOp::Fsub),
    "lsc_atomic_fmin" 0x15 Atomic LscOp::Atomic(AtomicOp::Fmin),
    "lsc_atomic_fmax" 0x16 Atomic LscOp::Atomic(AtomicOp::Fmax),
    "lsc_atomic_fcas" 0x17 Atomic LscOp::Atomic(AtomicOp::FcmpXchg),
    "lsc_atomic_and" 0x18 Atomic LscOp::Atomic(AtomicOp::And),
    "lsc_atomic_or" 0x19 Atomic LscOp::Atomic(AtomicOp::Or),
    "lsc_atomic_xor" 0x1A Atomic LscOp::Atomic(AtomicOp::Xor),
    "lsc_load_status" 0x1B Load LscOp::LoadStatus,
}

impl LscOp {
    /// The operation a mnemonic names.
    pub fn from_mnemonic(text: &str) -> Option<LscOp> {
        LSC_OPS
            .iter()
            .find(|(t, ..)| *t == text)
            .map(|(_, _, op, _)| *op)
    }

    /// The operation of a binary sub-opcode.
    pub fn from_code(code: u8) -> Option<LscOp> {
        LSC_OPS
            .iter()
            .find(|(_, c, ..)| *c == code)
            .map(|(_, _, op, _)| *op)
    }

    /// What it does to memory.
    pub fn effect(self) -> Effect {
        let row = LSC_OPS.iter().find(|(_, _, op, _)| *op == self);
        // Atomics that LSC has no spelling for come from raw sends.
        row.map_or(Effect::Atomic, |(.., effect)| *effect)
    }

    /// True for stores; atomics are none.
    pub fn stores(self) -> bool {
        self.effect() == Effect::Store
    }

    /// Mnemonic and binary sub-opcode; `None` for atomics that LSC does not have.
    pub fn spelling(self) -> Option<(&'static str, u8)> {
        LSC_OPS
            .iter()
            .find(|(_, _, op, _)| *op == self)
            .map(|(t, c, ..)| (*t, *c))
    }
}

/// Gives an enum its spelling in text and its code in the binary form.
macro_rules! spelled {
    ($ty:ident { $($variant:ident $name:literal $code:literal,)* }) => {
        impl $ty {
            /// Every value with its spelling and binary code.
            pub const SPELLINGS: &'static [(&'static str, u8, $ty)] = &[$(($name, $code, $ty::$variant),)*];

            /// Spelling in text.
            pub const fn name(self) -> &'static str {
                match self {
                    $($ty::$variant => $name,)*
                }
            }

            /// Code in the binary format.
            pub const fn code(self) -> u8 {
                match self {
                    $($ty::$variant => $code,)*
                }
            }

            /// The value with this spelling.
            pub fn from_name(name: &str) -> Option<$ty> {
                Self::SPELLINGS.iter().find(|(n, ..)| *n == name).map(|(.., v)| *v)
            }

            /// The value with this binary code.
            pub fn from_code(code: u8) -> Option<$ty> {
                Self::SPELLINGS.iter().find(|(_, c, _)| *c == code).map(|(.., v)| *v)
            }
        }
    };
}

spelled! { Sfid { Ugm "ugm" 0, Ugml "ugml" 1, Tgm "tgm" 2, Slm "slm" 3, Urb "urb" 4, } }
spelled! { AddrModel { Flat "flat" 1, Bss "bss" 2, Ss "ss" 3, Bti "bti" 4, Arg "arg" 5, } }
spelled! { AddrSize { A16 "a16" 1, A32 "a32" 2, A64 "a64" 3, } }
spelled! { DataSize {
    D8 "d8" 1, D16 "d16" 2, D32 "d32" 3, D64 "d64" 4, D8c32 "d8c32" 5, D16c32 "d16c32" 6, D16c32h "d16c32h" 7,
} }
spelled! { Scope {
    Group "group" 0, Local "local" 1, Tile "tile" 2, Gpu "gpu" 3, Gpus "gpus" 4, Sysrel "sysrel" 5, Sysacq "sysacq" 6,
} }

/// Spelling of cache controls; the index is the binary code (`module::Caching`).
pub const CACHE_CONTROLS: [&str; 8] = ["df", "uc", "ca", "wb", "wt", "st", "ri", "cc"];

/// Spelling of the cache operations of a fence; the index is the binary code.
pub const FENCE_OPS: [&str; 7] = [
    "none",
    "evict",
    "invalidate",
    "discard",
    "clean",
    "flushl3",
    "type6",
];

/// Vector lengths that a message may have.
pub const VECTOR_LENGTHS: [u8; 8] = [1, 2, 3, 4, 8, 16, 32, 64];
