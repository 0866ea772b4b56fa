//! Errors of preparing and starting a launch.

use crate::limits::MAX_GROUP_LANES;
use crate::memory::MemoryError;
use std::sync::Arc;

/// Why a program gave up; whoever made the program knows the type.
pub type ProgramError = Arc<dyn std::error::Error + Send + Sync>;

/// Why a launch could not be prepared or started. What happens while it runs is in the report.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A field of the kernel's metadata is out of range.
    #[error("kernel `{kernel}`: metadata field {field} = {value} is out of range")]
    Meta {
        /// Kernel.
        kernel: String,
        /// Field of [`crate::KernelMeta`].
        field: &'static str,
        /// Its value.
        value: u64,
    },
    /// A local size of zero.
    #[error("local size {0:?} has a zero")]
    ZeroLocal([u32; 3]),
    /// Too many work-items in a group.
    #[error("local size {0:?} has more than {MAX_GROUP_LANES} work-items")]
    GroupTooLarge([u32; 3]),
    /// The kernel was compiled for another group size.
    #[error("local size {given:?} given, but the kernel requires {required:?}")]
    RequiredLocal {
        /// Size asked for.
        given: [u32; 3],
        /// Size the kernel was compiled for.
        required: [u32; 3],
    },
    /// The kernel's functions take every group for as large as the others.
    #[error(
        "kernel `{kernel}` calls functions that ask for their group's size, of which there is one for all groups: the global \
         size must be a multiple of the local size"
    )]
    MixedGroups {
        /// Kernel.
        kernel: String,
    },
    /// Global ids do not fit 32 bits.
    #[error("dimension {dim}: global size {global} at offset {offset} does not fit 32 bits")]
    GlobalRange {
        /// Dimension.
        dim: usize,
        /// Work-items.
        global: u32,
        /// First global id.
        offset: u32,
    },
    /// The number of groups does not fit 64 bits.
    #[error("groups {0:?} are too many to count")]
    TooManyGroups([u32; 3]),
    /// Frames, scratch and local memory of one group are over a limit.
    #[error("a work-group needs {wanted} bytes of {what}, the limit is {limit}")]
    GroupMemory {
        /// Which memory.
        what: &'static str,
        /// Bytes wanted.
        wanted: u64,
        /// Limit in bytes.
        limit: u64,
    },
    /// More hardware threads than `%sr0` can number.
    #[error("{wanted} hardware threads are more than the kernel can number ({limit})")]
    TooManyThreads {
        /// Hardware threads at one time.
        wanted: u64,
        /// Distinct numbers.
        limit: u64,
    },
    /// The payload is shorter than the kernel reads, or over the limit.
    #[error("payload of {given} bytes given, {wanted} wanted")]
    Payload {
        /// Bytes given.
        given: usize,
        /// Bytes the kernel reads, or the limit.
        wanted: usize,
    },
    /// A write or patch outside the payload.
    #[error("payload bytes {offset}..{offset}+{len} are outside {size} bytes")]
    PayloadRange {
        /// First byte.
        offset: usize,
        /// Bytes.
        len: usize,
        /// Bytes of the payload.
        size: usize,
    },
    /// No such binding-table index.
    #[error("surface index {0} is over 255")]
    SurfaceIndex(u32),
    /// Device memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A kernel that is a program gave up.
    #[error("kernel `{kernel}`: {error}")]
    Program {
        /// Kernel.
        kernel: String,
        /// Why.
        error: ProgramError,
    },
    /// A thread waits for the one that it is fused with, which does not come there: it is at its end or elsewhere, or does not
    /// exist.
    #[error(
        "kernel `{kernel}`: line {line}: malformed: `dpasw`: the fused thread, which has half of the matrix, does not come here"
    )]
    Alone {
        /// Kernel.
        kernel: String,
        /// Line of the vISA text.
        line: u32,
    },
    /// Threads of a work-group wait at barriers, and no other thread runs that could let them go on.
    #[error("kernel `{kernel}`: threads wait at named barriers that no other thread will come to")]
    Deadlock {
        /// Kernel.
        kernel: String,
    },
    /// Our bug: the code returned something that is no status.
    #[error("internal error: kernel `{kernel}` returned status {status}")]
    Status {
        /// Kernel.
        kernel: String,
        /// What it returned.
        status: u32,
    },
}
