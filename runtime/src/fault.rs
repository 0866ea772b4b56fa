//! Fault records: accesses that compiled code found to be out of bounds and reported, and barriers that lanes miss.

use crate::abi::GroupCtx;
use crate::helpers::arrive::Meetings;
use crate::launch::shape::GroupShape;
use crate::limits::{MAX_FAULT_RECORDS, MAX_FAULT_SITES, MAX_SITE_RECORDS};
use crate::memory::DeviceMemory;
use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;

/// What is wrong with an access, or a barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// It is outside the memory that it names.
    #[default]
    Bounds,
    /// It is in device memory, but not in a buffer that lives. Only launches on [`DeviceMemory::checked`] tell.
    Allocation,
    /// It writes to a buffer that kernels only read ([`crate::Buffer::mark_read_only`]).
    ReadOnly,
    /// It is at an address that is no multiple of what the hardware needs. Only code with checks of memory tells.
    Misaligned,
    /// It is a barrier, which other lanes of the thread reach without this one. Only code with checks of barriers tells of this and the
    /// next two.
    Barrier,
    /// It is a barrier at which the other threads meet, and the lane's thread has ended.
    MissedBarrier,
    /// It is a barrier, at which the lane meets threads that are at another one.
    OtherBarrier,
    /// It is a signal at a named barrier for other numbers of threads than the first signal there says.
    BarrierCounts,
    /// It is the last signal at a named barrier for more threads than came before the group ended.
    BarrierLeft,
    /// Nothing orders it and an access of another thread to the same byte. Only code with checks of races tells of this and the next.
    Race,
    /// Another lane of the same instruction writes another value to the same byte.
    LaneRace,
    /// Its address depends on what is not initialised. Only code with checks of initialisation tells of this and the next three.
    UninitAddress,
    /// It is a branch that depends on what is not initialised.
    UninitBranch,
    /// Whether it writes at all depends on what is not initialised.
    UninitMask,
    /// It is an atomic, of which an operand or the memory is not initialised.
    UninitOperand,
}

impl FaultKind {
    /// True for races.
    pub const fn is_race(self) -> bool {
        matches!(self, FaultKind::Race | FaultKind::LaneRace)
    }

    /// True for uses of what is not initialised.
    pub const fn is_init(self) -> bool {
        use FaultKind as K;
        matches!(
            self,
            K::UninitAddress | K::UninitBranch | K::UninitMask | K::UninitOperand
        )
    }

    /// True for what is wrong with barriers.
    pub const fn is_barrier(self) -> bool {
        matches!(
            self,
            FaultKind::Barrier
                | FaultKind::MissedBarrier
                | FaultKind::OtherBarrier
                | FaultKind::BarrierCounts
                | FaultKind::BarrierLeft
        )
    }
}

/// The other access of a race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OtherAccess {
    /// Group id.
    pub group: [u32; 3],
    /// Hardware thread of the group.
    pub thread: u32,
    /// Lane of the thread.
    pub lane: u32,
    /// Number of the instruction, or [`OtherAccess::UNKNOWN`].
    pub site: u32,
}

impl OtherAccess {
    /// [`OtherAccess::site`] of an instruction that was not kept.
    pub const UNKNOWN: u32 = u32::MAX;
}

/// Where bits that are not initialised were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Uninit {
    /// A part of a register variable that was not written before, as the compiler numbers it.
    Register(u32),
    /// Local memory at an offset.
    Local(u64),
    /// Scratch of the thread at an offset.
    Scratch(u64),
    /// Device memory at an address.
    Memory(u64),
}

/// An access of one lane that was out of bounds, or a barrier that it misses.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fault {
    /// Group id.
    pub group: [u32; 3],
    /// Hardware thread of the group.
    pub thread: u32,
    /// Lane of the thread.
    pub lane: u32,
    /// Number of the instruction, as the compiler counted them.
    pub site: u32,
    /// Local id of the lane.
    pub local_id: [u32; 3],
    /// Global id of the lane, offset included.
    pub global_id: [u64; 3],
    /// Byte offset in the surface, local or scratch memory, or flat address. Of [`FaultKind::Barrier`], lanes of the thread: in the low
    /// half those that reached the barrier, in the high half those that there are. Of [`FaultKind::OtherBarrier`], the site of the other
    /// barrier in the low half. Of that and [`FaultKind::MissedBarrier`], a thread that is at the barrier in the high half. Of
    /// [`FaultKind::BarrierCounts`], the site of the first signal in the low half, and a byte each in the high half: producers and consumers of the
    /// signal, and those of the first. Of [`FaultKind::BarrierLeft`], a word each: producers and consumers that came, and those that the
    /// signal is for. Of uses of what is not initialised, where in memory that was read; 0 of registers.
    pub address: u64,
    /// Binding-table index; what it says for other memory is up to the compiler.
    pub surface: u32,
    /// What is wrong.
    pub kind: FaultKind,
    /// Of races, what the access conflicts with.
    pub other: Option<OtherAccess>,
    /// Of uses of what is not initialised, where that was read.
    pub uninit: Option<Uninit>,
}

impl Fault {
    /// A record of a thread, to which what differs between lanes is added.
    fn of_thread(
        group: [u32; 3],
        (thread, site): (u32, u32),
        surface: u32,
        kind: FaultKind,
    ) -> Fault {
        Fault {
            group,
            thread,
            lane: 0,
            site,
            local_id: [0; 3],
            global_id: [0; 3],
            address: 0,
            surface,
            kind,
            other: None,
            uninit: None,
        }
    }
}

/// Faults by their sites and kinds.
pub(crate) type SiteCounts = BTreeMap<(u32, FaultKind), u64>;

/// Where one worker's faults go; [`GroupCtx::faults`] points at it.
#[derive(Debug)]
pub(crate) struct FaultSink {
    /// First records, at most [`MAX_FAULT_RECORDS`]; on checked memory, and of barriers, races and initialisation, at most
    /// [`MAX_SITE_RECORDS`] a site.
    pub records: Vec<Fault>,
    /// All faults.
    pub count: u64,
    /// Faults of each site, on checked memory; those of barriers, races and initialisation always.
    pub sites: SiteCounts,
    /// Checked or tracked memory that the launch reaches.
    pub memory: Option<DeviceMemory>,
    /// A fault stops the thread.
    pub stop: bool,
    /// Shape of the group that runs.
    pub shape: *const GroupShape,
    /// First global id of the launch.
    pub offset: [u32; 3],
    /// Local size of a full group.
    pub enqueued: [u32; 3],
    /// Who came to the barriers of the group that runs.
    pub meetings: Meetings,
    /// Addresses of memory that belongs to single threads.
    pub private: Range<u64>,
    /// What a program that is no machine code keeps from group to group of a launch.
    pub kept: Option<Box<dyn Any + Send>>,
    /// Something that is not initialised may be used.
    pub suspect: bool,
}

impl FaultSink {
    /// Counts a fault by its site; whether its record is kept.
    fn keeps(&mut self, base: &Fault) -> bool {
        let kind = base.kind;
        let by_site = self.memory.as_ref().is_some_and(DeviceMemory::is_checked)
            || kind.is_barrier()
            || kind.is_race()
            || kind.is_init();
        if !by_site {
            return self.records.len() < MAX_FAULT_RECORDS;
        }
        let key = (base.site, base.kind);
        if self.sites.len() >= MAX_FAULT_SITES && !self.sites.contains_key(&key) {
            return false;
        }
        let count = self.sites.entry(key).or_default();
        *count += 1;
        *count <= MAX_SITE_RECORDS as u64
    }

    /// Records lanes of a thread that are wrong at a barrier; `place` is the thread and the site, and `said` is what [`Fault::address`] says of them.
    pub(crate) fn barrier(
        &mut self,
        kind: FaultKind,
        group: [u32; 3],
        place: (u32, u32),
        lanes: u32,
        said: u64,
    ) {
        let base = Fault::of_thread(group, place, 0, kind);
        self.record(&base, lanes, [said; 32].as_ptr());
    }

    /// Records a race of one lane at an address, or an offset in a surface; true when the launch has to stop.
    pub(crate) fn race(
        &mut self,
        kind: FaultKind,
        by: OtherAccess,
        (address, surface): (u64, u32),
        other: OtherAccess,
    ) -> bool {
        let base = Fault {
            other: Some(other),
            ..Fault::of_thread(by.group, (by.thread, by.site), surface, kind)
        };
        let lane = 1u32.checked_shl(by.lane).unwrap_or(0);
        self.record(&base, lane, [address; 32].as_ptr());
        self.stop
    }

    /// Records a use of what is not initialised by one lane; true when the launch has to stop.
    pub(crate) fn init(&mut self, kind: FaultKind, by: OtherAccess, from: Uninit) -> bool {
        let base = Fault {
            uninit: Some(from),
            ..Fault::of_thread(by.group, (by.thread, by.site), 0, kind)
        };
        let at = match from {
            Uninit::Register(_) => 0,
            Uninit::Local(at) | Uninit::Scratch(at) | Uninit::Memory(at) => at,
        };
        let lane = 1u32.checked_shl(by.lane).unwrap_or(0);
        self.record(&base, lane, [at; 32].as_ptr());
        self.stop
    }

    /// Lanes of a thread of the group that runs.
    pub(crate) fn lanes(&self, thread: u32) -> u32 {
        // SAFETY: the shape is set before a group runs and lives as long as the launch.
        unsafe { self.shape.as_ref() }.map_or(0, |shape| shape.mask(thread))
    }

    fn record(&mut self, base: &Fault, lanes: u32, addresses: *const u64) {
        for lane in (0..32).filter(|lane| lanes >> lane & 1 != 0) {
            self.count += 1;
            if !self.keeps(base) {
                continue;
            }
            let address = addresses.wrapping_add(lane as usize);
            // SAFETY: the caller passes an address for each lane of the mask. The shape is set
            // before a group runs and lives as long as the launch.
            let (address, shape) = unsafe { (address.read_unaligned(), &*self.shape) };
            let local_id = shape.local_id(base.thread, lane);
            let mut global_id = [0; 3];
            for (dim, id) in global_id.iter_mut().enumerate() {
                *id = u64::from(base.group[dim]) * u64::from(self.enqueued[dim])
                    + u64::from(local_id[dim])
                    + u64::from(self.offset[dim]);
            }
            self.records.push(Fault {
                lane,
                local_id,
                global_id,
                address,
                ..base.clone()
            });
        }
    }
}

/// [`crate::abi::Helpers::fault`].
///
/// # Safety
/// `group` must be the group that runs, `addresses` valid at each lane of `lanes`.
pub(crate) unsafe extern "C" fn fault(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    lanes: u32,
    addresses: *const u64,
    surface: u32,
) -> u32 {
    // SAFETY: as promised.
    unsafe {
        report(
            group,
            thread,
            site,
            lanes,
            addresses,
            surface,
            FaultKind::Bounds,
        )
    }
}

/// [`crate::abi::Helpers::misaligned`].
///
/// # Safety
/// As [`fault`].
pub(crate) unsafe extern "C" fn misaligned(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    lanes: u32,
    addresses: *const u64,
    surface: u32,
) -> u32 {
    let kind = FaultKind::Misaligned;
    // SAFETY: as promised.
    unsafe { report(group, thread, site, lanes, addresses, surface, kind) }
}

/// Records faults of a kind.
///
/// # Safety
/// As [`fault`].
pub(crate) unsafe fn report(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    lanes: u32,
    addresses: *const u64,
    surface: u32,
    kind: FaultKind,
) -> u32 {
    if lanes == 0 {
        return 0;
    }
    // SAFETY: `group` is valid by the caller's promise.
    let (r0, sink) = unsafe { ((*group).r0, (*group).faults.cast::<FaultSink>()) };
    if sink.is_null() {
        return 1;
    }
    let base = Fault::of_thread([r0[1], r0[6], r0[7]], (thread, site), surface, kind);
    // SAFETY: the sink belongs to the worker that runs this group, and only this call uses it now.
    let sink = unsafe { &mut *sink };
    sink.record(&base, lanes, addresses);
    u32::from(sink.stop)
}
