//! Every bound of the runtime, on one screen. Exceeding one is a typed error, never a panic.

/// Defines bounds, and `ALL`, the list of them with their names.
macro_rules! bounds {
    ($($(#[$doc:meta])* pub const $name:ident: $ty:ty = $value:expr;)*) => {
        $($(#[$doc])* pub const $name: $ty = $value;)*

        /// Every bound with its name: part of cache keys.
        pub const ALL: &[(&str, u64)] = &[$((stringify!($name), $name as u64),)*];
    };
}

bounds! {
/// Work-items of a work-group: product of the local sizes.
pub const MAX_GROUP_LANES: u32 = 1024;

/// Lanes of a hardware thread.
pub const MAX_SIMD: u16 = 32;

/// Bytes of shared local memory of a work-group (the largest device has 128 KiB).
pub const MAX_SLM_BYTES: u32 = 1 << 20;

/// Bytes of a hardware thread's frame: indirect register storage, what recursive calls save of it and of other
/// registers, and values saved at barriers.
pub const MAX_FRAME_BYTES: u32 = 32 << 20;

/// Bytes of generated code's frame on the stack of the thread that launches; larger ones have stacks of their own.
pub const MAX_HOST_STACK_BYTES: u32 = 512 << 10;

/// Bytes of generated code's frame.
pub const MAX_STACK_BYTES: u32 = 64 << 20;

/// Bytes of a hardware thread's scratch memory.
pub const MAX_SCRATCH_BYTES: u32 = 4 << 20;

/// Bytes of all frames, scratch and local memory that one worker holds for a launch.
pub const MAX_WORKER_BYTES: u64 = 1 << 30;

/// Bytes of the cross-thread payload.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 16;

/// Fault records kept of one launch; all faults are counted.
pub const MAX_FAULT_RECORDS: usize = 64;

/// Fault records kept of one memory instruction and kind, of launches on checked memory.
pub const MAX_SITE_RECORDS: usize = 4;

/// Memory instructions and kinds of faults that are told apart in one launch on checked memory.
pub const MAX_FAULT_SITES: usize = 4096;

/// Workers of a pool.
pub const MAX_WORKERS: usize = 256;

/// Bytes of machine code of one kernel.
pub const MAX_CODE_BYTES: usize = 256 << 20;

/// Largest alignment of machine code, in bytes.
pub const MAX_CODE_ALIGN: u64 = 4096;

/// Address range reserved by [`crate::DeviceMemory::new`], in bytes.
pub const DEFAULT_MEMORY_BYTES: u64 = 64 << 30;

/// Largest address range of a device memory, in bytes.
pub const MAX_MEMORY_BYTES: u64 = 1 << 45;

/// Part of a device memory's reservation set aside for buffers flush against unreadable pages, in bytes.
pub const GUARDED_BYTES: u64 = 1 << 30;

/// First address that device memory never reaches: user addresses stay below 2^47, so that bit 47
/// is clear and stripping or sign-extending to 48 bits changes nothing.
pub const ADDRESS_END: u64 = 1 << 47;

/// Bytes of the buffer for `printf`. Compiled kernels test their records against this number.
pub const PRINTF_BUFFER_BYTES: u64 = 4 << 20;

/// Bytes of the buffer for what failed assertions say. It begins with this number, which kernels test their records against.
pub const ASSERT_BUFFER_BYTES: u64 = 64 << 10;

/// Bytes of a format string, or of a string that `%s` prints; longer ones are cut.
pub const MAX_PRINTF_STRING: usize = 16 << 10;

/// Width and precision of a conversion.
pub const MAX_PRINTF_FIELD: usize = 4096;

/// Elements of a vector that is printed.
pub const MAX_PRINTF_VECTOR: u32 = 16;

/// Bytes of text that one launch prints.
pub const MAX_PRINTED_BYTES: usize = 64 << 20;
}
