//! What a launch did.

use std::ffi::c_char;

/// How a launch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum visa_jit_end {
    /// All groups ran to their end.
    VISA_JIT_COMPLETED = 0,
    /// An access out of bounds stopped it (kernels compiled with `--oob trap`), or an assertion of the kernel failed.
    VISA_JIT_FAULTED = 1,
    /// Another thread stopped it.
    VISA_JIT_INTERRUPTED = 2,
}

/// What a launch did.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct visa_jit_report {
    /// How it ended.
    pub end: visa_jit_end,
    /// Work-groups that ran to their end.
    pub groups: u64,
    /// Hardware threads of those.
    pub threads: u64,
    /// Accesses out of bounds, one for each lane; 0 for kernels compiled with `--oob zero`, which do not count them.
    pub faults: u64,
    /// How many of them `visa_jit_launch_fault` describes.
    pub described: usize,
}

/// An access out of bounds of one lane. The strings are valid until the launch runs again or is freed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct visa_jit_fault {
    /// Line in the vISA text.
    pub line: u32,
    /// Instruction.
    pub opcode: *const c_char,
    /// Read, write or atomic.
    pub access: *const c_char,
    /// Address space.
    pub space: *const c_char,
    /// Binding-table index of accesses to surfaces, else -1.
    pub surface: i64,
    /// Byte offset, or address.
    pub address: u64,
    /// Bytes of the element.
    pub bytes: u32,
    /// Work-group.
    pub group: [u32; 3],
    /// Local id of the lane.
    pub local_id: [u32; 3],
    /// Global id of the lane.
    pub global_id: [u64; 3],
    /// Hardware thread of the group.
    pub thread: u32,
    /// Lane of it.
    pub lane: u32,
}
