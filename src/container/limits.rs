//! Every bound the container readers keep, on one screen.

crate::limits::bounds! {
/// Bytes in a zebin file.
pub const MAX_FILE_BYTES: usize = 256 << 20;
/// Images of a file that holds several.
pub const MAX_IMAGES: usize = 65_536;
/// Sections in a zebin file (ELF's own limit without extended numbering).
pub const MAX_SECTIONS: usize = 0xff00;
/// Entries of the symbol table.
pub const MAX_SYMBOLS: usize = 1 << 20;
/// Relocations, all sections together.
pub const MAX_RELOCATIONS: usize = 4 << 20;
/// Bytes in one section or symbol name.
pub const MAX_NAME_BYTES: usize = 64 << 10;
/// Bytes of one data section, zero-initialised ones included.
pub const MAX_DATA_BYTES: u64 = 1 << 30;
/// Bytes of `.ze_info` text.
pub const MAX_ZE_INFO_BYTES: usize = 32 << 20;
/// YAML nodes in `.ze_info`.
pub const MAX_ZE_INFO_NODES: usize = 2_000_000;
/// Nesting of YAML collections in `.ze_info`; the real ones use five.
pub const MAX_ZE_INFO_DEPTH: usize = 16;
/// Kernels in `.ze_info`.
pub const MAX_KERNELS: usize = 65_536;
/// Bytes of one kernel's cross-thread or per-thread payload.
pub const MAX_PAYLOAD_BYTES: u32 = 64 << 10;
/// Bytes of stack for the thread `libocloc` runs on; its optimiser recurses deeply.
pub const OCLOC_STACK_BYTES: usize = 64 << 20;
/// Bytes exchanged with a compiler worker in one direction.
pub const MAX_WORKER_BYTES: u64 = 1 << 30;
}

/// How many bytes may be copied out of a file of `len` bytes. Sections and names of a real file do not
/// overlap; those of a hostile one may all be the same megabyte.
pub const fn copy_budget(len: usize) -> u64 {
    (len as u64).saturating_mul(8).saturating_add(1 << 20)
}
