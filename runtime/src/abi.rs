//! Layout shared by compiled code and the runtime. A change here changes [`ABI_VERSION`].
//!
//! Compiled code is reached through one function type, [`Entry`], and reaches everything else
//! through the [`GroupCtx`] it is handed: no external symbol, so that the same bytes serve the
//! JIT, the disk cache and ahead-of-time objects.

use std::sync::atomic::AtomicU32;

pub use crate::limits::{MAX_HOST_STACK_BYTES, MAX_STACK_BYTES};

/// Version of this layout.
pub const ABI_VERSION: u32 = 29;

/// Bits of a flat address, or of its distance from [`LaunchCtx::flat_base`], that count. Generic pointers have tags in the others.
pub const FLAT_OFFSET: u64 = (1 << 48) - 1;

/// Entries of a surface table; an index is a byte, so a look-up needs no check.
pub const SURFACES: usize = 256;

/// A compiled kernel: runs hardware threads `first … end` of one work-group until each is finished
/// or waits, at a barrier or for the thread that it exchanges values with ([`crate::Exchange`]). Returns a [`Status`].
///
/// In kernels whose threads wait, those whose [`ThreadCtx::state`] is [`THREAD_DONE`] are skipped. Kernels without any do not
/// look at it; if their metadata says so, they run the [`GroupCtx::following`] groups as well, and the [`GroupCtx::rows`] after
/// them, all of the same shape, before they return. Code that is called for all threads of a
/// group may also let those go on by itself that wait at barriers, and return when all are finished.
///
/// It is called by [`crate::enter`], which aligns the stack ([`STACK_ALIGN`]).
pub type Entry = unsafe extern "C" fn(group: *mut GroupCtx, first: u32, end: u32) -> u32;

/// Before the call of an [`Entry`] on x86-64 and Unix, the stack pointer is a multiple of this: the length of the widest vectors, so that
/// those that are spilled do not cross lines of the cache. Calling conventions promise 16.
pub const STACK_ALIGN: u32 = 64;

/// Result of [`Entry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// Every thread in range is finished.
    Done = 0,
    /// At least one thread of the range waits.
    Suspended = 1,
    /// An access faulted under the trap policy.
    Fault = 2,
    /// [`LaunchCtx::interrupt`] was set.
    Interrupted = 3,
    /// Something that is not initialised may be used. Only code with checks of initialisation says so; what the launch has done counts for nothing.
    Suspect = 4,
}

/// [`ThreadCtx::state`] of a finished thread.
pub const THREAD_DONE: u32 = u32::MAX;

/// A bound buffer. `size` 0 for an empty slot.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Surface {
    /// First byte; valid for `size` bytes.
    pub base: *mut u8,
    /// Bytes.
    pub size: u64,
}

/// A typed surface. All zeros for an empty slot.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Image {
    /// First texel; all that extents and pitches reach is valid.
    pub base: *mut u8,
    /// Bytes from a texel to the next along each coordinate.
    pub pitch: [u64; 3],
    /// Texels along each coordinate.
    pub extent: [u32; 3],
    /// Channels, bits of a channel << 8, kind of a channel << 16; 0 is no format.
    pub format: u32,
    /// Coordinates in use.
    pub axes: u32,
    /// Coordinate that counts layers; 3 for none.
    pub layer_axis: u32,
}

/// A sampler. All zeros for an empty slot.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Sampler {
    /// Coordinates beyond the edges: 0 and 1 the border, 2 the edge, 3 repeated, 4 mirrored.
    pub address: u32,
    /// Not 0 where neighbours are mixed.
    pub linear: u32,
    /// Not 0 where coordinates run from 0 to 1.
    pub normalized: u32,
    /// A [`crate::Comparison`]: never, less, equal, not greater, greater, not equal, not less, always.
    pub comparison: u32,
}

/// Typed surfaces by binding-table index, samplers by theirs.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct ImageTable {
    /// Typed surfaces.
    pub images: [Image; SURFACES],
    /// Samplers.
    pub samplers: [Sampler; SURFACES],
}

/// What all groups of a launch share.
#[derive(Debug)]
#[repr(C)]
pub struct LaunchCtx {
    /// [`SURFACES`] entries.
    pub surfaces: *const Surface,
    /// Cross-thread payload (kernel arguments).
    pub payload: *const u8,
    /// First address of device memory.
    pub flat_base: u64,
    /// Bytes of device memory.
    pub flat_size: u64,
    /// Non-zero asks running code to stop at the next back edge.
    pub interrupt: *const AtomicU32,
    /// Functions that compiled code may call.
    pub helpers: *const Helpers,
    /// Images and samplers; null for a launch without any.
    pub images: *const ImageTable,
    /// Indirect data ([`crate::KernelMeta::args_offset`]), which nothing writes.
    pub args: *const u8,
    /// Bytes of it.
    pub args_size: u64,
    /// A byte for each eight of device memory ([`crate::DeviceMemory::checked`]): not 0 where not all of them are a buffer's. It is readable
    /// for all of device memory, for 1 KiB at least, and for 64 bytes before, which are 0. Of other memory it is 1 KiB that is not 0.
    pub shadow: *const u8,
    /// Bytes from a byte of device memory to its mark, which is not 0 where the byte is not initialised ([`crate::DeviceMemory::tracked`]). Only
    /// code with checks of initialisation reads it, which runs on such memory.
    pub marks: u64,
    /// For each eight bytes of [`LaunchCtx::payload`]: the buffer of checked memory that they point into. Only code with checks of memory reads
    /// it.
    pub pointees: *const Pointee,
    /// [`LaunchCtx::shadow`] of what may be written: bytes of buffers that kernels only read count as no buffer's
    /// ([`crate::Buffer::mark_read_only`]). The same pointer where there are none.
    pub write_shadow: *const u8,
    /// [`LaunchCtx::pointees`] without the buffers that kernels only read.
    pub write_pointees: *const Pointee,
    /// For each eight bytes of [`LaunchCtx::payload`]: the buffer that they point into, if the launch does not write it. Only code with checks of
    /// races reads it, and does not record reads of these buffers. Bits 63:48 of an address do not count for this and the next.
    pub invariant_pointees: *const Pointee,
    /// The same of buffers that it may write, which its writes do not leave: such code leaves with [`Status::Suspect`] instead. Where there are no
    /// [`LaunchCtx::invariant_pointees`], all addresses.
    pub confined_pointees: *const Pointee,
}

/// A buffer that an argument points into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pointee {
    /// Address of its first byte.
    pub start: u64,
    /// Its bytes; 0 where there is no such buffer.
    pub bytes: u64,
}

/// State of one work-group while it runs on one OS thread.
#[derive(Debug)]
#[repr(C)]
pub struct GroupCtx {
    /// The launch.
    pub launch: *const LaunchCtx,
    /// Shared local memory.
    pub slm: *mut u8,
    /// Bytes of it.
    pub slm_size: u64,
    /// `thread_count` entries.
    pub threads: *mut ThreadCtx,
    /// Writable bytes that nothing reads, [`SINK_BYTES`] long: target of masked-off stores.
    pub sink: *mut u8,
    /// For the fault helper; opaque to compiled code.
    pub faults: *mut u8,
    /// `r0` without dwords 2 and 5. Dwords 1, 6 and 7 are the group's number in x, y and z; they are left at those of the group that
    /// ran last.
    pub r0: [u32; 16],
    /// Hardware threads of this group.
    pub thread_count: u32,
    /// Groups next in x that the call runs too; 0 for kernels with barriers.
    pub following: u32,
    /// For the helper of named barriers; opaque to compiled code.
    pub barriers: *mut u8,
    /// What the helper that keeps all registers and was called last would have returned, see [`Helpers::load_preserve_all`].
    pub answer: u32,
    /// Rows of groups that the call runs after that, from 0 in x to the same last group. The next row is the next one in y, and after
    /// [`GroupCtx::height`] of them the first one of the next z. Code counts it down.
    pub rows: u32,
    /// For the helper of races; opaque to compiled code. Null in launches that do not look for them.
    pub races: *mut u8,
    /// Bytes from a byte of local memory to its mark, as in [`LaunchCtx::marks`].
    pub slm_marks: u64,
    /// Bytes from a byte of a thread's scratch memory to its mark.
    pub scratch_marks: u64,
    /// Groups of the launch in y.
    pub height: u32,
}

/// Length of [`GroupCtx::sink`].
pub const SINK_BYTES: usize = 256;

/// State of one hardware thread.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ThreadCtx {
    /// Three rows (x, y, z) of `simd` 16-bit local ids, rows [`LOCAL_ID_ROW`] words apart.
    pub local_ids: *const u16,
    /// Saved values and indirect register storage, zeroed at thread start as far as register storage goes.
    pub frame: *mut u8,
    /// Scratch memory.
    pub scratch: *mut u8,
    /// Bytes of it.
    pub scratch_size: u64,
    /// Bit per lane that exists.
    pub dispatch_mask: u32,
    /// 0 before the start, the barrier number while waiting, [`THREAD_DONE`] at the end.
    pub state: u32,
    /// Dword 2 of `r0`: from XeHP on its low byte is the thread's number in the group, from which kernels take the
    /// sub-group id.
    pub r0_2: u32,
    /// Dword 5 of `r0`.
    pub r0_5: u32,
    /// Dword 0 of `%sr0`: a distinct hardware-thread number.
    pub sr0: u32,
    /// `%hw_id`: counts the hardware threads that exist at one time.
    pub hw_id: u32,
}

/// Words between the rows of [`ThreadCtx::local_ids`].
pub const LOCAL_ID_ROW: usize = 32;

/// Functions reached by compiled code. Arrays are 8-byte aligned; element `i` of an operand is at
/// `i * element bytes`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Helpers {
    /// Float operation under a control register:
    /// `(op | source bytes << 8 | result bytes << 16, cr0, lanes, operands[3], result)`.
    /// `op` is `FpEnvOp` of the compiler; element bytes 2, 4 or 8 (2 is binary16).
    pub fp_env: unsafe extern "C" fn(u32, u32, u32, *const [*const u8; 3], *mut u8),
    /// Records faulting lanes: `(group, thread, site, lanes, addresses[lane], surface)`; returns non-zero to stop.
    pub fault: Fault,
    /// Time stamp counter.
    pub tsc: unsafe extern "C" fn() -> u64,
    /// Lane-wise atomics, see [`Message`]; operations are the compiler's `AtomicOp`. Addresses are
    /// rounded down to multiples of the element. The vectors are the operands (compare, then
    /// new), and the old values (after [`atomic::PRE_DEC`] the new) replace the first.
    pub atomic: Message,
    /// Lane-wise load, see [`Message`].
    pub load: Message,
    /// Lane-wise store, see [`Message`]. Lanes store one after the other, so that of lanes that
    /// overlap the highest wins, and no byte of another lane's is touched.
    pub store: Message,
    /// [`Helpers::load`] that on x86-64 with the System V convention changes no register and leaves its result in
    /// [`GroupCtx::answer`]: for calls beside a path that should not have to save its registers.
    pub load_preserve_all: Message,
    /// The same of [`Helpers::store`].
    pub store_preserve_all: Message,
    /// Loads or stores a rectangle: `(group, thread, shape, block) -> non-zero to stop`. `shape` is made by
    /// [`rectangle::shape`]. `block` is a [`Rectangle`], 16-byte aligned, with the payload's registers after it, from
    /// [`rectangle::DATA`] on. An element outside the surface reads zero and is not written; one inside that is not
    /// wholly inside device memory likewise, and is recorded as a fault of its own where the shape says so.
    pub rectangle: unsafe extern "C" fn(*mut GroupCtx, u32, u32, *mut u8) -> u32,
    /// Messages to typed surfaces and the sampler, see [`ImageMessage`].
    pub image: ImageMessage,
    /// A step of a thread at a named barrier: `(group, thread, step, id, role, producers, consumers)`, see
    /// [`mod@named_barrier`]; the last three count for signals only.
    pub named_barrier: unsafe extern "C" fn(*mut GroupCtx, u32, u32, u32, u32, u32, u32) -> u32,
    /// [`Helpers::fault`] in the way of [`Helpers::load_preserve_all`].
    pub fault_preserve_all: Fault,
    /// Stores of sixteen dwords, one after the other, those whose bits are set: `(pointer, bits)`, and the dwords in the
    /// first four vector registers. Changes no other registers than the mask registers. For code made for x86-64 with AVX-512 and
    /// the System V convention; elsewhere it is not called.
    pub store_enabled: unsafe extern "C" fn(*mut u8, u32),
    /// Records lanes of which an element in device memory is not wholly in a buffer, see [`Check`].
    pub check: Check,
    /// [`Helpers::check`] in the way of [`Helpers::load_preserve_all`].
    pub check_preserve_all: Check,
    /// A thread comes to a barrier of its group: `(group, thread, site, lanes, waits) -> non-zero to stop`. `lanes` are those that
    /// are enabled, as the thread numbers them. `waits` is 0 at the signal of a split barrier. Records lanes that are missing, and
    /// threads that missed the round before. Only code with checks of barriers calls it, before the barrier itself.
    pub arrive: unsafe extern "C" fn(*mut GroupCtx, u32, u32, u32, u32) -> u32,
    /// Records lanes whose access races with an earlier one, see [`RaceCheck`].
    pub race: RaceCheck,
    /// The same of lanes at equal distances, see [`AffineRaceCheck`].
    pub race_affine: AffineRaceCheck,
    /// The same of several reads, which are entered if they are of the usual kinds and race with nothing, see [`RaceReads`].
    pub race_reads: RaceReads,
    /// Clears the marks of what a store is about to write, with the operands of a [`RaceCheck`] without values. Returns 0.
    pub initialise: RaceCheck,
    /// [`Helpers::fault`] of lanes whose atomics round their addresses down. Only code with checks of memory calls it.
    pub misaligned: Fault,
}

/// A look at what is known of the memory of an access that is about to be made: `(group, thread, site, shape, surface, lanes, block)`; returns
/// non-zero to stop. `shape` is made by [`race::shape`]. `surface`, `lanes` and `block` are as in [`Message`]; the block has values of plain
/// stores only. Elements that are not wholly inside their memory are left to the access.
pub type RaceCheck = unsafe extern "C" fn(*mut GroupCtx, u32, u32, u32, u32, u32, *const u8) -> u32;

/// [`RaceCheck`] with affine addresses: `(group, thread, site, shape, surface, lanes, first, stride, values)`. Lane
/// `i` has `first + i * stride`, in the width of addresses of its place. The values of plain stores are as in a block after its addresses.
pub type AffineRaceCheck =
    unsafe extern "C" fn(*mut GroupCtx, u32, u32, u32, u32, u32, u64, u64, *const u8) -> u32;

/// Several reads with affine addresses, at equal distances from each other: `(group, thread, site, shape, surface, lanes, first, stride, reads)`. Operands are those
/// of [`AffineRaceCheck`] for the first one; `reads` is made by [`race::reads`]. Returns non-zero where not all of them are entered, and records
/// nothing. Each may be made again.
pub type RaceReads =
    unsafe extern "C" fn(*mut GroupCtx, u32, u32, u32, u32, u32, u64, u64, u64) -> u32;

/// Operand `shape` of [`RaceCheck`].
pub mod race {
    /// The access writes.
    pub const WRITES: u32 = 1 << 5;
    /// It is atomic: addresses are rounded down to multiples of the element first.
    pub const ATOMIC: u32 = 1 << 6;
    /// Consecutive elements of one lane; values of a store lie one after the other.
    pub const BLOCK: u32 = 1 << 7;
    /// Returns non-zero and records nothing where more than a few steps are needed, or the access races. It may be made again.
    pub const ATTEMPT: u32 = 1 << 14;
    /// Most elements of a lane.
    pub const MAX_COUNT: u32 = (1 << 11) - 1;
    /// Position of the number of the first lane.
    pub const LANE_SHIFT: u32 = 27;

    /// `count` (up to [`MAX_COUNT`]) consecutive elements of `bytes` (1, 2, 4 or 8) bytes for each of `lanes` (up to 32) lanes, of which the
    /// first has number `first` in the thread. `place` is one of [`super::message`]; flags are to be added.
    pub const fn shape(place: u32, bytes: u32, count: u32, lanes: u32, first: u32) -> u32 {
        bytes.trailing_zeros() | place << 2 | lanes << 8 | count << 16 | first << LANE_SHIFT
    }

    /// What a read of several is more than the one before it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Step {
        /// Number of the access.
        pub site: i16,
        /// Number in the thread of the first lane.
        pub lane: i8,
        /// Address of the first lane.
        pub distance: i32,
    }

    /// Operand `reads` of [`super::RaceReads`].
    pub const fn reads(count: u8, step: Step) -> u64 {
        count as u64
            | (step.lane.cast_unsigned() as u64) << 8
            | (step.site.cast_unsigned() as u64) << 16
            | (step.distance.cast_unsigned() as u64) << 32
    }

    /// What [`reads`] was made of.
    pub const fn count_and_step(reads: u64) -> (u8, Step) {
        let step = Step {
            lane: (reads >> 8) as i8,
            site: (reads >> 16) as i16,
            distance: (reads >> 32) as i32,
        };
        (reads as u8, step)
    }
}

/// A look at the shadow of an access: `(group, thread, site, shape, lanes, addresses[lane])`; returns non-zero to stop. `shape` is made by
/// [`check::shape`]. Lanes with an element outside of device memory are left to the access.
pub type Check = unsafe extern "C" fn(*mut GroupCtx, u32, u32, u32, u32, *const u64) -> u32;

/// Operand `shape` of [`Check`], and the unit of the shadow.
pub mod check {
    /// Bytes of device memory that a byte of [`LaunchCtx::shadow`](super::LaunchCtx::shadow) stands for.
    pub const GRANULE: u64 = 8;
    /// Addresses are rounded down to multiples of the element first.
    pub const ALIGNED: u32 = 1 << 2;
    /// The access writes.
    pub const WRITES: u32 = 1 << 3;
    /// Position of the number of elements.
    pub const COUNT_SHIFT: u32 = 8;

    /// `count` consecutive elements of `bytes` (1, 2, 4 or 8) bytes a lane; flags are to be added.
    pub const fn shape(bytes: u32, count: u32) -> u32 {
        bytes.trailing_zeros() | count << COUNT_SHIFT
    }
}

/// Type of [`Helpers::fault`].
pub type Fault = unsafe extern "C" fn(*mut GroupCtx, u32, u32, u32, *const u64, u32) -> u32;

/// Named barriers of a group: 0 to 31, of whose numbers the low five bits count, and [`named_barrier::GROUP`].
///
/// A barrier waits for a number of producers and one of consumers, of which the low eight bits count; the group's for all
/// threads that are not finished. When the last signals, those that signalled as consumers may pass, once each,
/// and the barrier starts anew.
pub mod named_barrier {
    /// The thread has come.
    pub const SIGNAL: u32 = 0;
    /// Not 0 when the thread may go on after the barrier. At [`GROUP`] a thread that has not signalled does so first.
    pub const PASS: u32 = 1;
    /// The barrier of all threads, in kernels that use others too.
    pub const GROUP: u32 = 32;
    /// Role of a thread that signals and waits. Of roles the low two bits count; above them is 0, or one more than the number of the
    /// instruction, if the signal is checked.
    pub const BOTH: u32 = 0;
    /// Position of that number.
    pub const SITE_SHIFT: u32 = 2;
    /// Role of a thread that only signals.
    pub const PRODUCER: u32 = 1;
    /// Role of a thread that waits for producers.
    pub const CONSUMER: u32 = 2;
}

/// Operands of [`Helpers::rectangle`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Rectangle {
    /// Address of the surface.
    pub base: u64,
    /// Bytes of a row of the surface, less one.
    pub width: u32,
    /// Rows, less one.
    pub height: u32,
    /// Bytes from row to row, less one.
    pub pitch: u32,
    /// First column, in elements.
    pub x: i32,
    /// First row.
    pub y: i32,
    /// Number of the memory instruction, for fault records.
    pub site: u32,
    /// 0: nothing is read or written.
    pub enabled: u32,
}

/// Operand `shape` of [`Helpers::rectangle`].
pub mod rectangle {
    /// Byte at which the payload begins.
    pub const DATA: u32 = 48;
    /// A store.
    pub const STORE: u32 = 1 << 2;
    /// Columns follow each other in registers, not rows.
    pub const TRANSPOSE: u32 = 1 << 3;
    /// Elements of a dword come from neighbouring rows (of transposed blocks: columns).
    pub const PACKED: u32 = 1 << 4;
    /// Registers have 64 bytes, not 32.
    pub const WIDE: u32 = 1 << 5;
    /// Faults are recorded.
    pub const REPORT: u32 = 1 << 6;

    /// `blocks` (up to 31) of `width` x `height` (up to 255) elements of `bytes` bytes, for the thread's lane
    /// `lane`, a multiple of four; flags are to be added.
    pub const fn shape(bytes: u32, blocks: u32, width: u32, height: u32, lane: u32) -> u32 {
        bytes.trailing_zeros() | (lane / 4) << 7 | width << 10 | height << 18 | blocks << 26
    }
}

/// Lane-wise access to memory: `(group, thread, shape, index, lanes, block) -> faulting lanes`.
///
/// `shape` is made by [`message::shape`]. `index` is the binding-table index (its low byte) of a
/// surface, the size of register storage, and ignored elsewhere. `lanes` has a bit for each
/// enabled lane and none beyond the lane count. `block` is 16-byte aligned: the addresses (32 bits
/// each, 64 in device memory), padded to 16 bytes, then component after component a vector of one
/// element a lane, each padded to 16 bytes; operands of a store, results of a load. Padding
/// of results is unspecified.
///
/// Component `c` of a lane is at its offset plus `c` elements, added in 64 bits, modulo 2^48 in device
/// memory. Each element is checked by itself: what is not wholly inside reads zero and is not
/// written, nor is anything of a lane that is not enabled. The result has a bit for each enabled lane of
/// which an element is not inside.
pub type Message =
    unsafe extern "C" fn(*mut GroupCtx, *const ThreadCtx, u32, u32, u32, *mut u8) -> u32;

/// Access to an image: `(group, shape, surface, sampler, lanes, block) -> faulting lanes`.
///
/// `shape` is the operation of [`mod@image`], the lane count << 8 and what else stands there. Of `surface` and `sampler` the
/// low bytes count. `block` is 16-byte aligned and has seven rows of a dword a lane, padded to 16 bytes: coordinates u, v, r,
/// and four channels or operands, which results replace. Lanes that are not enabled touch nothing and get zeros.
/// What a write leaves there is not specified.
///
/// The result has a bit for each enabled lane of a read, write, atomic or comparison that is outside. Reads there give what
/// missing channels give, writes do nothing.
pub type ImageMessage = unsafe extern "C" fn(*const GroupCtx, u32, u32, u32, u32, *mut u32) -> u32;

/// Operations of [`ImageMessage`].
pub mod image {
    /// Texels at integer coordinates.
    pub const READ: u32 = 0;
    /// Writes the channels of which bits are set at [`CHANNEL_SHIFT`].
    pub const WRITE: u32 = 1;
    /// [`READ`] that never faults: outside is the border.
    pub const FETCH: u32 = 2;
    /// Filtered, at float coordinates.
    pub const SAMPLE: u32 = 3;
    /// Width, height, depth or layers, levels; u is the level.
    pub const INFO: u32 = 4;
    /// Atomic of [`super::atomic`] at [`ATOMIC_SHIFT`] on images of one 32-bit channel; others count as outside.
    pub const ATOMIC: u32 = 5;
    /// Up to four bytes of a row, their number in the first operand, from byte u of row v of the rows that r says: all
    /// ([`ALL_ROWS`]), or every other one. Beyond the edges the nearest texel is read again.
    pub const BLOCK_READ: u32 = 6;
    /// The same, written from the second operand, where inside.
    pub const BLOCK_WRITE: u32 = 7;
    /// Rows of a block: all of the image's.
    pub const ALL_ROWS: u32 = 0;
    /// Rows of a block: the first, the third and so on.
    pub const TOP_ROWS: u32 = 2;
    /// Rows of a block: the second, the fourth and so on.
    pub const BOTTOM_ROWS: u32 = 3;
    /// [`ATOMIC`] on images of one 16-bit channel.
    pub const ATOMIC_SHORT: u32 = 8;
    /// [`FETCH`] a given number of texels away: operands u, v, r, signed. Layers stay.
    pub const FETCH_OFFSET: u32 = 9;
    /// [`SAMPLE`] a given number of texels away, likewise.
    pub const SAMPLE_OFFSET: u32 = 10;
    /// One channel, of which a bit is set at [`CHANNEL_SHIFT`], of the four texels that a filter of two dimensions would read, as
    /// many texels away: lower left, lower right, upper right, upper left.
    pub const GATHER: u32 = 11;
    /// Number of samples of a texel.
    pub const SAMPLES: u32 = 12;
    /// [`SAMPLE_OFFSET`] of texels that are 1 where the comparison of the sampler holds between the fourth operand and their red
    /// channel, else 0. Images of which nothing can be compared count as outside.
    pub const COMPARE: u32 = 13;
    /// [`GATHER`] of such texels.
    pub const GATHER_COMPARE: u32 = 14;
    /// Level of detail: 0, of the one level there is, and the logarithm of the longer of two gradients in texels. u, v, r and
    /// the operands are the distances of neighbours.
    pub const LOD: u32 = 15;
    /// Position of the channel mask.
    pub const CHANNEL_SHIFT: u32 = 16;
    /// Only finds the faulting lanes.
    pub const CHECK: u32 = 1 << 20;
    /// Position of an atomic's operation.
    pub const ATOMIC_SHIFT: u32 = 24;
}

/// Operand `shape` of [`Message`].
pub mod message {
    /// A surface.
    pub const SURFACE: u32 = 0;
    /// Shared local memory.
    pub const SLM: u32 = 1;
    /// Scratch memory of the thread.
    pub const SCRATCH: u32 = 2;
    /// Register storage of the thread.
    pub const REGS: u32 = 3;
    /// Device memory: 64-bit addresses of which bits 63:48 are ignored.
    pub const FLAT: u32 = 4;
    /// Indirect data of the launch, for loads only.
    pub const ARGS: u32 = 5;
    /// With one of these: the marks of what is not initialised there, a byte for each byte ([`super::LaunchCtx::marks`]).
    pub const MARKS: u32 = 1 << 4;
    /// A store or atomic that leaves memory as it is when a lane faults.
    pub const ALL_OR_NONE: u32 = 1 << 5;
    /// Position of an atomic's operation.
    pub const ATOMIC_SHIFT: u32 = 24;

    /// Elements of `bytes` (1, 2, 4 or 8) bytes, `comps` of them a lane (up to 64), `lanes` up to
    /// 32, in `place`.
    pub const fn shape(place: u32, bytes: u32, comps: u32, lanes: u32) -> u32 {
        bytes.trailing_zeros() | place << 2 | lanes << 8 | comps << 16
    }
}

/// Codes of [`Helpers::fp_env`]; the compiler's `FpEnvOp` has the same numbers.
pub mod fp_env {
    /// `a + b`.
    pub const ADD: u32 = 0;
    /// `a * b`.
    pub const MUL: u32 = 1;
    /// `a / b`.
    pub const DIV: u32 = 2;
    /// `a * b + c`.
    pub const FMA: u32 = 3;
    /// Square root.
    pub const SQRT: u32 = 4;
    /// Signed integer (of the source bytes, 1 allowed) to float.
    pub const SI_TO_F: u32 = 5;
    /// Unsigned integer to float.
    pub const UI_TO_F: u32 = 6;
    /// Float to float.
    pub const F_TO_F: u32 = 7;
    /// Denormal flush.
    pub const FLUSH: u32 = 8;
}

/// Operations of [`Helpers::atomic`]; the compiler's `AtomicOp` has the same numbers.
pub mod atomic {
    /// `old + a`.
    pub const ADD: u32 = 0;
    /// `old - a`.
    pub const SUB: u32 = 1;
    /// `old + 1`.
    pub const INC: u32 = 2;
    /// `old - 1`.
    pub const DEC: u32 = 3;
    /// `old - 1`; the result is the new value.
    pub const PRE_DEC: u32 = 4;
    /// Unsigned minimum.
    pub const UMIN: u32 = 5;
    /// Unsigned maximum.
    pub const UMAX: u32 = 6;
    /// Signed minimum.
    pub const SMIN: u32 = 7;
    /// Signed maximum.
    pub const SMAX: u32 = 8;
    /// `a`.
    pub const XCHG: u32 = 9;
    /// `b` where `old` is `a`.
    pub const CMP_XCHG: u32 = 10;
    /// `old & a`.
    pub const AND: u32 = 11;
    /// `old | a`.
    pub const OR: u32 = 12;
    /// `old ^ a`.
    pub const XOR: u32 = 13;
    /// Float maximum.
    pub const FMAX: u32 = 14;
    /// Float minimum.
    pub const FMIN: u32 = 15;
    /// `b` where `old` equals `a` as a float.
    pub const FCMP_XCHG: u32 = 16;
    /// Float sum.
    pub const FADD: u32 = 17;
    /// Float difference.
    pub const FSUB: u32 = 18;
    /// `old`.
    pub const LOAD: u32 = 19;
}
