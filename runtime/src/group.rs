//! Kernels that are not machine code: what such a program sees of the work-group that it runs.
//!
//! A [`GroupProgram`] takes the place of an [`crate::abi::Entry`]; everything around it (groups, partial
//! threads, fault records, interruption, workers) is the same. It reaches memory through a [`GroupView`],
//! whose methods check every access against the region that it names: nothing here is unsafe to call.
//! Elements of 1, 2, 4 and 8 bytes that are aligned are read and written in one piece.

use crate::abi::{FLAT_OFFSET, GroupCtx, LOCAL_ID_ROW, SURFACES, Sampler, Status, ThreadCtx};
use crate::element::{load, store};
use crate::error::ProgramError;
use crate::fault::{FaultKind, FaultSink, OtherAccess, Uninit, report};
use crate::helpers::{self, helpers};
pub use crate::image::sample::ImageLane;
use crate::image::sample::{self, View, bound};
use crate::launch::schedule::GroupSchedule;
use crate::memory::DeviceMemory;
use std::marker::PhantomData;
use std::sync::atomic::{Ordering, fence};

/// Runs work-groups, one call for each, on any thread.
pub trait GroupProgram: Send + Sync + std::fmt::Debug {
    /// Runs all hardware threads of a group to their end.
    ///
    /// # Errors
    /// When the program cannot go on; the launch ends with [`crate::LaunchError::Program`].
    fn run(&self, group: &mut GroupView<'_>) -> Result<Status, ProgramError>;
}

/// Memory that an access names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryRef {
    /// A bound surface; only the low 8 bits of the index count. Addresses are byte offsets.
    Surface(u32),
    /// Shared local memory. Addresses are byte offsets.
    Local,
    /// Scratch of a hardware thread. Addresses are byte offsets.
    Scratch(u32),
    /// Device memory. Bits 63:48 of addresses do not count.
    Device,
    /// Indirect data of the launch: read, never written. Addresses are byte offsets.
    Args,
}

/// A work-group while it runs.
#[derive(Debug)]
pub struct GroupView<'a> {
    group: *mut GroupCtx,
    payload_bytes: u32,
    order: Option<GroupSchedule>,
    _borrow: PhantomData<&'a mut GroupCtx>,
}

impl<'a> GroupView<'a> {
    /// # Safety
    /// `group` and everything it points at must be laid out as [`crate::abi`] says and stay so for `'a`; the
    /// payload has at least `payload_bytes` bytes.
    pub(crate) unsafe fn new(
        group: *mut GroupCtx,
        payload_bytes: u32,
        order: Option<GroupSchedule>,
    ) -> GroupView<'a> {
        GroupView {
            group,
            payload_bytes,
            order,
            _borrow: PhantomData,
        }
    }

    fn ctx(&self) -> &GroupCtx {
        // SAFETY: valid by the constructor's promise; only this thread uses the context.
        unsafe { &*self.group }
    }

    fn thread(&self, thread: u32) -> Option<&ThreadCtx> {
        let ctx = self.ctx();
        // SAFETY: the table has `thread_count` entries.
        (thread < ctx.thread_count).then(|| unsafe { &*ctx.threads.add(thread as usize) })
    }

    /// Hardware threads.
    pub fn threads(&self) -> u32 {
        self.ctx().thread_count
    }

    /// The order in which threads that do not wait run, when they go on together for the `round`-th time.
    pub fn thread_order(&self, round: u32) -> Vec<u32> {
        let threads = self.threads();
        match self.order {
            Some(order) => order.threads(round, threads),
            None => (0..threads).collect(),
        }
    }

    /// Group id.
    pub fn id(&self) -> [u32; 3] {
        let r0 = &self.ctx().r0;
        [r0[1], r0[6], r0[7]]
    }

    /// `r0` of a hardware thread.
    pub fn r0(&self, thread: u32) -> [u32; 16] {
        let mut r0 = self.ctx().r0;
        if let Some(t) = self.thread(thread) {
            (r0[2], r0[5]) = (t.r0_2, t.r0_5);
        }
        r0
    }

    /// Bit for each lane of a hardware thread that exists.
    pub fn dispatch_mask(&self, thread: u32) -> u32 {
        self.thread(thread).map_or(0, |t| t.dispatch_mask)
    }

    /// Dword 0 of `%sr0`.
    pub fn sr0(&self, thread: u32) -> u32 {
        self.thread(thread).map_or(0, |t| t.sr0)
    }

    /// `%hw_id`.
    pub fn hw_id(&self, thread: u32) -> u32 {
        self.thread(thread).map_or(0, |t| t.hw_id)
    }

    /// Local id of a lane in dimension `dim` (0 x, 1 y, 2 z); 0 outside of the table.
    pub fn local_id(&self, thread: u32, dim: usize, lane: usize) -> u16 {
        match self.thread(thread) {
            // SAFETY: a thread's table has three rows of that many words.
            Some(t) if dim < 3 && lane < LOCAL_ID_ROW => unsafe {
                t.local_ids.add(dim * LOCAL_ID_ROW + lane).read()
            },
            _ => 0,
        }
    }

    /// A byte of the cross-thread payload; 0 beyond its end.
    pub fn payload(&self, at: u32) -> u8 {
        if at >= self.payload_bytes {
            return 0;
        }
        // SAFETY: inside the payload, which nothing writes while the launch runs.
        unsafe { (*self.ctx().launch).payload.add(at as usize).read() }
    }

    /// Time stamp counter.
    pub fn tsc(&self) -> u64 {
        // SAFETY: the helper has no requirements.
        unsafe { (helpers().tsc)() }
    }

    /// True once the launch has been asked to stop.
    pub fn interrupted(&self) -> bool {
        // SAFETY: the word outlives the launch.
        unsafe { (*(*self.ctx().launch).interrupt).load(Ordering::Relaxed) != 0 }
    }

    /// Orders this thread's accesses to memory.
    pub fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    /// First byte and bytes of a region. Regions with 32-bit offsets count as at most `u32::MAX` bytes.
    fn region(&self, region: MemoryRef) -> (*mut u8, u64) {
        let ctx = self.ctx();
        let most = u64::from(u32::MAX);
        match region {
            MemoryRef::Surface(index) => {
                let index = index as usize % SURFACES;
                // SAFETY: the table has that many entries and outlives the launch.
                let surface = unsafe { *(*ctx.launch).surfaces.add(index) };
                (surface.base, surface.size.min(most))
            }
            MemoryRef::Local => (ctx.slm, ctx.slm_size.min(most)),
            MemoryRef::Scratch(thread) => match self.thread(thread) {
                Some(t) => (t.scratch, t.scratch_size.min(most)),
                None => (std::ptr::null_mut(), 0),
            },
            MemoryRef::Device => {
                // SAFETY: the launch outlives the group.
                let launch = unsafe { &*ctx.launch };
                (launch.flat_base as *mut u8, launch.flat_size)
            }
            MemoryRef::Args => {
                // SAFETY: the launch outlives the group.
                let launch = unsafe { &*ctx.launch };
                (launch.args.cast_mut(), launch.args_size)
            }
        }
    }

    /// Where an element is, if it is wholly inside its region. `aligned` rounds its offset down to its size first.
    fn element(
        &self,
        region: MemoryRef,
        address: u64,
        bytes: u32,
        aligned: bool,
    ) -> Option<*mut u8> {
        let (base, size) = self.region(region);
        let mut offset = match region {
            MemoryRef::Device => address.wrapping_sub(base as u64) & FLAT_OFFSET,
            _ => address,
        };
        if aligned {
            offset &= !(u64::from(bytes) - 1);
        }
        let inside = u64::from(bytes) <= size && offset <= size - u64::from(bytes);
        inside.then(|| base.wrapping_add(offset as usize))
    }

    /// Offset in device memory of an address.
    pub fn position(&self, address: u64) -> u64 {
        let (base, _) = self.region(MemoryRef::Device);
        address.wrapping_sub(base as u64) & FLAT_OFFSET
    }

    /// The element of 1, 2, 4 or 8 bytes at `address`, zero-extended; `None` unless it is wholly inside.
    pub fn read(&self, region: MemoryRef, address: u64, bytes: u32) -> Option<u64> {
        let at = self.element(region, address, checked(bytes)?, false)?;
        // SAFETY: in bounds.
        Some(unsafe { load(at, bytes) })
    }

    /// Writes the low bytes of `bits`; false (and nothing is written) unless the element is wholly inside.
    pub fn write(&mut self, region: MemoryRef, address: u64, bytes: u32, bits: u64) -> bool {
        let at = match region {
            MemoryRef::Args => None,
            _ => checked(bytes).and_then(|b| self.element(region, address, b, false)),
        };
        match at {
            // SAFETY: in bounds.
            Some(at) => unsafe { store(at, bytes, bits) },
            None => return false,
        }
        true
    }

    /// Replaces an element of 2, 4 or 8 bytes by `new` of it, atomically; the offset is rounded down to a
    /// multiple of the size first. Returns the old bits, `None` unless the element is wholly inside.
    /// `new` may be called several times.
    pub fn update(
        &mut self,
        region: MemoryRef,
        address: u64,
        bytes: u32,
        mut new: impl FnMut(u64) -> u64,
    ) -> Option<u64> {
        if !matches!(bytes, 2 | 4 | 8) || region == MemoryRef::Args {
            return None;
        }
        let at = self.element(region, address, bytes, true)?;
        // SAFETY: in bounds.
        let mut old = unsafe { load(at, bytes) };
        loop {
            // SAFETY: in bounds.
            match unsafe { helpers::swap(bytes, at, old, new(old)) } {
                Ok(()) => return Some(old),
                Err(seen) => old = seen,
            }
        }
    }

    /// The image and the sampler of two indices.
    fn image_and_sampler(&self, surface: u32, sampler: u32) -> (Option<View<'_>>, Sampler) {
        // SAFETY: the table outlives the launch.
        match unsafe { (*self.ctx().launch).images.as_ref() } {
            Some(table) => bound(table, surface, sampler),
            None => (None, Sampler::default()),
        }
    }

    /// What one lane asks of an image, atomics excepted: the four channels it gets.
    pub fn image(&mut self, surface: u32, sampler: u32, lane: &ImageLane) -> [u32; 4] {
        let (view, sampler) = self.image_and_sampler(surface, sampler);
        // SAFETY: images are bound as the ABI says.
        unsafe { sample::access(view, sampler, lane) }
    }

    /// True where a read, write or atomic (an operation of [`crate::abi::image`]) finds no texel.
    pub fn image_outside(&self, op: u32, surface: u32, at: [u32; 3]) -> bool {
        let (view, _) = self.image_and_sampler(surface, 0);
        sample::outside(view, op, at)
    }

    /// Replaces a texel of one channel of `bytes` (2 or 4) bytes by `new` of it, atomically; returns the old bits, `None`
    /// where there is no such texel. `new` may be called several times.
    pub fn image_update(
        &mut self,
        surface: u32,
        at: [u32; 3],
        bytes: u32,
        new: impl FnMut(u32) -> u32,
    ) -> Option<u32> {
        let (view, _) = self.image_and_sampler(surface, 0);
        // SAFETY: images are bound as the ABI says.
        unsafe { view?.update(at, bytes, new) }
    }

    /// True when an element is wholly inside its region, its offset rounded down to its size if `aligned`.
    pub fn inside(&self, region: MemoryRef, address: u64, bytes: u32, aligned: bool) -> bool {
        self.element(region, address, bytes.max(1), aligned)
            .is_some()
    }

    /// True unless an element is in checked device memory, but not in one buffer that lives. The offset is rounded down to the element's
    /// size first if `aligned`.
    pub fn is_live(&self, address: u64, bytes: u32, aligned: bool) -> bool {
        // SAFETY: the sink belongs to the worker that runs this group, on this thread.
        let sink = unsafe { self.ctx().faults.cast::<FaultSink>().as_ref() };
        let Some(memory) = sink.and_then(|sink| sink.memory.as_ref()) else {
            return true;
        };
        let low = if aligned {
            self.position(address) & u64::from(bytes.max(1) - 1)
        } else {
            0
        };
        let inside = self.inside(MemoryRef::Device, address, bytes, aligned);
        !inside || memory.is_live(address.wrapping_sub(low), bytes.into())
    }

    /// True when a byte of an element is in a buffer of checked device memory that kernels only read. As in [`GroupView::is_live`], the
    /// offset is rounded down if `aligned`.
    pub fn is_read_only(&self, address: u64, bytes: u32, aligned: bool) -> bool {
        let low = if aligned {
            self.position(address) & u64::from(bytes.max(1) - 1)
        } else {
            0
        };
        let memory = self.checked_memory();
        memory.is_some_and(|m| m.is_read_only(address.wrapping_sub(low), bytes.into()))
    }

    /// Whether the launch's memory tells its buffers apart.
    pub fn checks_memory(&self) -> bool {
        self.checked_memory().is_some()
    }

    fn checked_memory(&self) -> Option<&DeviceMemory> {
        // SAFETY: the sink belongs to the worker that runs this group, on this thread.
        let sink = unsafe { self.ctx().faults.cast::<FaultSink>().as_ref() };
        let memory = sink.and_then(|sink| sink.memory.as_ref());
        memory.filter(|memory| memory.is_checked())
    }

    /// As [`GroupView::fault`], of what checks of memory find wrong; `surface` is 0 but for surfaces.
    pub fn fault_of_memory(
        &mut self,
        kind: FaultKind,
        (thread, site): (u32, u32),
        lanes: u32,
        addresses: &[u64; 32],
        surface: u32,
    ) -> bool {
        let addresses = addresses.as_ptr();
        // SAFETY: the group is the one that runs; there is an address for each of 32 lanes.
        unsafe { report(self.group, thread, site, lanes, addresses, surface, kind) != 0 }
    }

    /// As [`GroupView::fault`], of a barrier; `said` is what [`crate::Fault::address`] says of its kind.
    pub fn fault_of_barriers(
        &mut self,
        kind: FaultKind,
        (thread, site): (u32, u32),
        lanes: u32,
        said: u64,
    ) -> bool {
        let said = [said; 32];
        // SAFETY: the group is the one that runs; there is a word for each of 32 lanes.
        unsafe { report(self.group, thread, site, lanes, said.as_ptr(), 0, kind) != 0 }
    }

    /// As [`GroupView::fault`], of one lane that races with another access. `at` is an address and the index of a surface.
    pub fn fault_of_race(
        &mut self,
        kind: FaultKind,
        by: OtherAccess,
        at: (u64, u32),
        other: OtherAccess,
    ) -> bool {
        let sink = self.sink();
        sink.is_none_or(|sink| sink.race(kind, by, at, other))
    }

    /// As [`GroupView::fault`], of one lane that uses what is not initialised.
    pub fn fault_of_init(&mut self, kind: FaultKind, by: OtherAccess, from: Uninit) -> bool {
        let sink = self.sink();
        sink.is_none_or(|sink| sink.init(kind, by, from))
    }

    /// Memory that keeps account of what is not initialised, and an element's address there, if it is wholly inside its region.
    fn tracked(
        &self,
        region: MemoryRef,
        address: u64,
        bytes: u32,
        aligned: bool,
    ) -> Option<(&DeviceMemory, u64)> {
        // SAFETY: the sink belongs to the worker that runs this group, on this thread.
        let sink = unsafe { self.ctx().faults.cast::<FaultSink>().as_ref() }?;
        let memory = sink.memory.as_ref().filter(|memory| memory.is_tracked())?;
        let place = self.element(region, address, bytes.max(1), aligned)?;
        Some((memory, place as u64))
    }

    /// Bits of an element that are not initialised, and its address; `None` where that is not known: in memory of the group or a thread, and
    /// out of bounds. `aligned` rounds its offset down to its size first.
    pub fn uninitialised(
        &self,
        region: MemoryRef,
        address: u64,
        bytes: u32,
        aligned: bool,
    ) -> Option<(u64, u64)> {
        let (memory, place) = self.tracked(region, address, bytes, aligned)?;
        Some((memory.uninitialised(place, bytes), place))
    }

    /// Says which bits of an element are not initialised.
    pub fn set_uninitialised(
        &mut self,
        region: MemoryRef,
        address: u64,
        (bytes, aligned): (u32, bool),
        bits: u64,
    ) {
        if let Some((memory, place)) = self.tracked(region, address, bytes, aligned) {
            memory.set_uninitialised(place, bytes, bits);
        }
    }

    fn sink(&mut self) -> Option<&mut FaultSink> {
        // SAFETY: the sink belongs to the worker that runs this group, on this thread.
        unsafe { self.ctx().faults.cast::<FaultSink>().as_mut() }
    }

    /// What the program keeps from group to group of a launch; each worker has its own.
    pub fn kept<T: Default + Send + 'static>(&mut self) -> Option<&mut T> {
        let kept = &mut self.sink()?.kept;
        if !kept.as_ref().is_some_and(|kept| kept.is::<T>()) {
            *kept = Some(Box::new(T::default()));
        }
        kept.as_mut()?.downcast_mut()
    }

    /// Where an element is in the host's memory, if it is wholly inside its region and not in memory of a single thread. `aligned` rounds
    /// its offset down to its size first.
    pub fn shared_place(
        &self,
        region: MemoryRef,
        address: u64,
        bytes: u32,
        aligned: bool,
    ) -> Option<u64> {
        let place = self.element(region, address, bytes.max(1), aligned)? as u64;
        // SAFETY: the sink belongs to the worker that runs this group, on this thread.
        let sink = unsafe { self.ctx().faults.cast::<FaultSink>().as_ref() };
        let private = sink.is_some_and(|sink| sink.private.contains(&place));
        (!private).then_some(place)
    }

    /// Records faults of the lanes in a mask; true when the launch has to stop. `addresses` are indexed by lane,
    /// `surface` is the binding-table index where there is one.
    pub fn fault(
        &mut self,
        thread: u32,
        site: u32,
        lanes: u32,
        addresses: &[u64; 32],
        surface: u32,
    ) -> bool {
        let addresses = addresses.as_ptr();
        // SAFETY: the group is the one that runs; there is an address for each of 32 lanes.
        unsafe { (helpers().fault)(self.group, thread, site, lanes, addresses, surface) != 0 }
    }
}

fn checked(bytes: u32) -> Option<u32> {
    matches!(bytes, 1 | 2 | 4 | 8).then_some(bytes)
}
