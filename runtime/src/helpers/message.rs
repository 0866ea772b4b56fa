//! Lane-wise loads and stores with arbitrary addresses, one call for each message.
//!
//! Generated code writes the operands in pieces of 16 bytes and reads the results in such pieces.
//! A processor forwards what was just stored to a load that lies within one store, so operands are
//! read in pieces at most and results are put together before they are written.

use crate::abi::{GroupCtx, ThreadCtx, message};

pub(super) use crate::abi::FLAT_OFFSET;

/// Most components of a lane.
const MAX_COMPS: usize = 64;

/// Lanes of a message at most.
const MAX_LANES: u32 = 32;

/// What lanes read that read nothing.
static ZEROS: [u64; MAX_COMPS] = [0; MAX_COMPS];

/// The memory that an access goes to.
#[derive(Clone, Copy)]
pub(super) struct MemorySpan {
    pub base: *mut u8,
    /// Bytes.
    pub size: u64,
    /// Address of the first byte; offsets count from it.
    pub first: u64,
}

/// Operands of one call, decoded.
#[derive(Clone, Copy)]
pub(super) struct MessageCall {
    pub region: MemorySpan,
    /// 64-bit addresses.
    pub flat: bool,
    pub all_or_none: bool,
    pub bytes_log2: u32,
    /// Lane count.
    pub count: usize,
    pub comps: usize,
    /// Enabled lanes.
    pub enabled: u32,
    pub addresses: *const u8,
    /// First component.
    pub data: *mut u8,
}

impl MessageCall {
    /// # Safety
    /// The arguments must be those of a [`crate::abi::Message`] from the group that runs.
    #[inline(always)]
    pub(super) unsafe fn new(
        group: *mut GroupCtx,
        thread: *const ThreadCtx,
        shape: u32,
        index: u32,
        enabled: u32,
        block: *mut u8,
    ) -> MessageCall {
        let place = shape >> 2 & 7;
        let count = (shape >> 8 & 63) as usize;
        let flat = place == message::FLAT;
        let address_bytes = count << if flat { 3 } else { 2 };
        MessageCall {
            // SAFETY: as promised.
            region: unsafe { MemorySpan::new(group, thread, place, index) }
                // SAFETY: as promised.
                .marks(shape, place, index, unsafe { &*group }),
            flat,
            all_or_none: shape & message::ALL_OR_NONE != 0,
            bytes_log2: shape & 3,
            count,
            comps: (shape >> 16 & 127) as usize,
            enabled,
            addresses: block,
            data: block.wrapping_add(address_bytes.next_multiple_of(16)),
        }
    }

    /// Offset of a lane in the region; `FLAT` as the access says.
    ///
    /// # Safety
    /// `lane` must be below the lane count.
    #[inline(always)]
    pub(super) unsafe fn offset<const FLAT: bool>(&self, lane: usize) -> u64 {
        // SAFETY: the block has an address for each lane, aligned as the block is.
        unsafe {
            if FLAT {
                let address = self.addresses.cast::<u64>().add(lane).read();
                address.wrapping_sub(self.region.first) & FLAT_OFFSET
            } else {
                self.addresses.cast::<u32>().add(lane).read().into()
            }
        }
    }

    /// [`MessageCall::offset`] where the kind of address is not known while compiling.
    ///
    /// # Safety
    /// The same.
    #[inline(always)]
    pub(super) unsafe fn any_offset(&self, lane: usize) -> u64 {
        // SAFETY: as promised.
        unsafe {
            if self.flat {
                self.offset::<true>(lane)
            } else {
                self.offset::<false>(lane)
            }
        }
    }

    /// Offset of component `c` of a lane that is at `offset`.
    #[inline(always)]
    fn component(&self, offset: u64, c: usize, bytes: u64) -> u64 {
        let at = offset + c as u64 * bytes;
        if self.flat { at & FLAT_OFFSET } else { at }
    }

    /// Number of offsets at which `bytes` bytes are inside.
    #[inline(always)]
    pub(super) fn limit(&self, bytes: u64) -> u64 {
        (self.region.size + 1).saturating_sub(bytes)
    }

    /// Bytes from component to component in the block.
    #[inline(always)]
    pub(super) fn row(&self, bytes: usize) -> usize {
        (self.count * bytes).next_multiple_of(16)
    }
}

impl MemorySpan {
    /// The marks of this place, if the shape of a message asks for them.
    #[inline(always)]
    fn marks(mut self, shape: u32, place: u32, index: u32, group: &GroupCtx) -> MemorySpan {
        if shape & message::MARKS << 2 != 0 {
            let distance = match place {
                message::SLM => group.slm_marks,
                message::SCRATCH => group.scratch_marks,
                message::REGS => index.into(),
                // SAFETY: a group has a launch.
                _ => unsafe { (*group.launch).marks },
            };
            self.base = self.base.wrapping_add(distance as usize);
        }
        self
    }

    /// # Safety
    /// As [`MessageCall::new`].
    #[inline(always)]
    pub(super) unsafe fn new(
        group: *mut GroupCtx,
        thread: *const ThreadCtx,
        place: u32,
        index: u32,
    ) -> MemorySpan {
        // SAFETY: group, thread, launch and the whole surface table are valid by the caller's promise.
        let (base, size) = unsafe {
            match place {
                message::SURFACE => {
                    let surfaces = (*(*group).launch).surfaces;
                    let surface = surfaces.add(usize::from(index as u8));
                    ((*surface).base, (*surface).size)
                }
                message::SLM => ((*group).slm, (*group).slm_size),
                message::SCRATCH => ((*thread).scratch, (*thread).scratch_size),
                message::REGS => ((*thread).frame, index.into()),
                message::ARGS => {
                    let launch = (*group).launch;
                    ((*launch).args.cast_mut(), (*launch).args_size)
                }
                _ => {
                    let launch = (*group).launch;
                    let first = (*launch).flat_base;
                    return MemorySpan {
                        base: first as *mut u8,
                        size: (*launch).flat_size,
                        first,
                    };
                }
            }
        };
        MemorySpan {
            base,
            size: size.min(u32::MAX.into()),
            first: 0,
        }
    }
}

/// An element, and 16 bytes of them.
trait Element: Copy + Default {
    /// Elements in a piece.
    const PER: usize;

    /// Writes a piece made of the elements that `each` gives, in one store where possible.
    ///
    /// # Safety
    /// `to` must be valid for 16 bytes and aligned to them.
    unsafe fn write_piece(to: *mut u8, each: impl FnMut(usize) -> Self);
}

macro_rules! element {
    ($t:ty, $signed:ty, $per:literal, $set:ident, $($i:literal)*) => {
        impl Element for $t {
            const PER: usize = $per;

            #[inline(always)]
            unsafe fn write_piece(to: *mut u8, mut each: impl FnMut(usize) -> Self) {
                let lanes: [$t; $per] = std::array::from_fn(&mut each);
                #[cfg(target_arch = "x86_64")]
                {
                    // An array of elements may be written one by one; a vector is not.
                    use std::arch::x86_64 as x86;
                    // SAFETY: writable and aligned by the caller's promise; every x86-64 has SSE2.
                    unsafe {
                        let piece = x86::$set($(lanes[$i] as $signed),*);
                        x86::_mm_store_si128(to.cast(), piece);
                    }
                }
                #[cfg(not(target_arch = "x86_64"))]
                // SAFETY: as promised.
                unsafe {
                    to.cast::<[$t; $per]>().write(lanes);
                }
            }
        }
    };
}
element!(u8, i8, 16, _mm_set_epi8, 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0);
element!(u16, i16, 8, _mm_set_epi16, 7 6 5 4 3 2 1 0);
element!(u32, i32, 4, _mm_set_epi32, 3 2 1 0);
element!(u64, i64, 2, _mm_set_epi64x, 1 0);

/// [`crate::abi::Helpers::load`].
///
/// # Safety
/// The arguments must be as [`crate::abi::Message`] says, from the group that runs.
pub(crate) unsafe extern "C" fn load(
    group: *mut GroupCtx,
    thread: *const ThreadCtx,
    shape: u32,
    index: u32,
    enabled: u32,
    block: *mut u8,
) -> u32 {
    // SAFETY: as promised.
    unsafe {
        load_access(&MessageCall::new(
            group, thread, shape, index, enabled, block,
        ))
    }
}

/// Loads of every shape.
///
/// # Safety
/// The access must be of the group that runs.
pub(super) unsafe fn load_access(a: &MessageCall) -> u32 {
    let whole = a.limit(a.comps as u64 * (1 << a.bytes_log2));
    // SAFETY: as promised.
    unsafe {
        let outside = match a.flat {
            true => outside::<true>(a, whole),
            false => outside::<false>(a, whole),
        };
        load_known(a, outside)
    }
}

/// Loads of every shape, given the enabled lanes that are not wholly inside; returns those.
///
/// # Safety
/// The access must be of the group that runs, and the lanes right.
pub(super) unsafe fn load_known(a: &MessageCall, outside: u32) -> u32 {
    // SAFETY: as promised.
    unsafe {
        match (a.bytes_log2, a.flat) {
            (0, false) => load_lanes::<u8, false>(a, outside),
            (0, true) => load_lanes::<u8, true>(a, outside),
            (1, false) => load_lanes::<u16, false>(a, outside),
            (1, true) => load_lanes::<u16, true>(a, outside),
            (2, false) => load_lanes::<u32, false>(a, outside),
            (2, true) => load_lanes::<u32, true>(a, outside),
            (_, false) => load_lanes::<u64, false>(a, outside),
            (_, true) => load_lanes::<u64, true>(a, outside),
        }
    }
    outside
}

/// # Safety
/// As [`load_known`], with elements of type `T`; `FLAT` as the access says.
unsafe fn load_lanes<T: Element, const FLAT: bool>(a: &MessageCall, outside: u32) {
    let inside = a.enabled & !outside;
    let every = inside == u32::MAX >> (MAX_LANES - a.count as u32);
    let mut first = 0;
    while first < a.count {
        // SAFETY: as promised; the branches give whole pieces loops of known length, without tests
        // when nothing is to be tested.
        unsafe {
            if first + T::PER > a.count {
                load_piece::<T, FLAT, false>(a, inside, first, a.count - first);
            } else if every {
                load_piece::<T, FLAT, true>(a, inside, first, T::PER);
            } else {
                load_piece::<T, FLAT, false>(a, inside, first, T::PER);
            }
        }
        first += T::PER;
    }
    if a.comps > 1 && outside != 0 {
        // SAFETY: as promised.
        unsafe { load_elements::<T>(a, outside) };
    }
}

/// Loads `lanes` lanes from `first` on, which make one piece of each component. Those that are not
/// `inside` read zero; when `EVERY`, all are.
///
/// # Safety
/// As [`load_lanes`].
#[inline(always)]
unsafe fn load_piece<T: Element, const FLAT: bool, const EVERY: bool>(
    a: &MessageCall,
    inside: u32,
    first: usize,
    lanes: usize,
) {
    let mut pointers = [ZEROS.as_ptr().cast::<u8>(); 16];
    for (i, pointer) in pointers.iter_mut().enumerate().take(lanes) {
        // SAFETY: the lane exists.
        let offset = unsafe { a.offset::<FLAT>(first + i) };
        let from = a.region.base.wrapping_add(offset as usize).cast_const();
        let inside = EVERY || inside >> (first + i) & 1 != 0;
        *pointer = std::hint::select_unpredictable(inside, from, *pointer);
    }
    let row = a.row(size_of::<T>());
    let to = a.data.wrapping_add(first * size_of::<T>());
    for c in 0..a.comps {
        // SAFETY: a pointer has all components inside, or is that of the zeros. The block has room for
        // all components in whole pieces.
        unsafe {
            T::write_piece(to.wrapping_add(c * row), |i| {
                pointers[i].cast::<T>().add(c).read_unaligned()
            });
        }
    }
}

/// Loads the elements that are inside of lanes that are not wholly so.
///
/// # Safety
/// As [`load_lanes`], for enabled lanes.
#[cold]
unsafe fn load_elements<T: Element>(a: &MessageCall, lanes: u32) {
    let bytes = size_of::<T>();
    let limit = a.limit(bytes as u64);
    for lane in (0..a.count).filter(|lane| lanes >> lane & 1 != 0) {
        // SAFETY: the lane exists, an element is read when it is inside, and the block has room for it.
        unsafe {
            let offset = a.any_offset(lane);
            for c in 0..a.comps {
                let at = a.component(offset, c, bytes as u64);
                let v = if at < limit {
                    let from = a.region.base.add(at as usize);
                    from.cast::<T>().read_unaligned()
                } else {
                    T::default()
                };
                let to = a.data.add(c * a.row(bytes) + lane * bytes);
                to.cast::<T>().write(v);
            }
        }
    }
}

/// [`crate::abi::Helpers::store`].
///
/// # Safety
/// The arguments must be as [`crate::abi::Message`] says, from the group that runs.
pub(crate) unsafe extern "C" fn store(
    group: *mut GroupCtx,
    thread: *const ThreadCtx,
    shape: u32,
    index: u32,
    enabled: u32,
    block: *mut u8,
) -> u32 {
    // SAFETY: as promised.
    unsafe {
        store_access(&MessageCall::new(
            group, thread, shape, index, enabled, block,
        ))
    }
}

/// Stores of every shape.
///
/// # Safety
/// The access must be of the group that runs.
pub(super) unsafe fn store_access(a: &MessageCall) -> u32 {
    // SAFETY: as promised.
    unsafe {
        match (a.bytes_log2, a.flat) {
            (0, false) => store_lanes::<u8, false>(a),
            (0, true) => store_lanes::<u8, true>(a),
            (1, false) => store_lanes::<u16, false>(a),
            (1, true) => store_lanes::<u16, true>(a),
            (2, false) => store_lanes::<u32, false>(a),
            (2, true) => store_lanes::<u32, true>(a),
            (_, false) => store_lanes::<u64, false>(a),
            (_, true) => store_lanes::<u64, true>(a),
        }
    }
}

/// # Safety
/// As [`store_access`], with elements of type `T`; `FLAT` as the access says.
unsafe fn store_lanes<T: Element, const FLAT: bool>(a: &MessageCall) -> u32 {
    let bytes = size_of::<T>();
    let whole = a.limit((bytes * a.comps) as u64);
    let row = a.row(bytes);
    if a.all_or_none {
        // SAFETY: as promised.
        let faulting = unsafe { outside::<FLAT>(a, whole) };
        if faulting != 0 {
            return faulting;
        }
    }
    let mut faulting = 0;
    let mut left = a.enabled;
    while left != 0 {
        let lane = left.trailing_zeros() as usize;
        left &= left - 1;
        // SAFETY: the lane exists. All its components are inside, or each is tested.
        unsafe {
            let offset = a.offset::<FLAT>(lane);
            let from = a.data.add(lane * bytes);
            if offset < whole {
                let to = a.region.base.add(offset as usize).cast::<T>();
                for c in 0..a.comps {
                    let v = from.add(c * row).cast::<T>().read();
                    to.add(c).write_unaligned(v);
                }
            } else {
                faulting |= 1 << lane;
                if a.comps > 1 {
                    store_elements::<T>(a, offset, from);
                }
            }
        }
    }
    faulting
}

/// Enabled lanes that are at or over a limit; `FLAT` as the access says.
///
/// # Safety
/// The access must be of the group that runs.
#[inline(always)]
pub(super) unsafe fn outside<const FLAT: bool>(a: &MessageCall, limit: u64) -> u32 {
    let bits = (0..a.count).fold(0, |bits, lane| {
        // SAFETY: the lane exists.
        let outside = unsafe { a.offset::<FLAT>(lane) } >= limit;
        bits | u32::from(outside) << lane
    });
    bits & a.enabled
}

/// Stores the elements that are inside of a lane that is not wholly so.
///
/// # Safety
/// As [`store_lanes`]; `from` points at the lane's first component.
#[cold]
unsafe fn store_elements<T: Element>(a: &MessageCall, offset: u64, from: *const u8) {
    let bytes = size_of::<T>();
    let limit = a.limit(bytes as u64);
    for c in 0..a.comps {
        let at = a.component(offset, c, bytes as u64);
        if at < limit {
            // SAFETY: the element is inside.
            unsafe {
                let v = from.add(c * a.row(bytes)).cast::<T>().read();
                let to = a.region.base.add(at as usize);
                to.cast::<T>().write_unaligned(v);
            }
        }
    }
}
