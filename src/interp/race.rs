//! Checks of races, `--check race`: the definition of what an error is (docs/checking.md).
//!
//! Two accesses to one byte of local memory or of memory that all groups share conflict, if
//!
//! * different hardware threads make them, in one launch,
//! * at least one of them writes, and
//! * they are not both atomic.
//!
//! They are a race if nothing orders them. Within a group its barriers do: accesses before and after one are ordered. Between
//! groups of a launch nothing does. Lanes of one thread run in lock step and in the order of its program, so there is no race between two of its
//! instructions. Two lanes of one instruction that write different values to a byte are an error of their own kind.
//!
//! A write of an element that is there already, all of it, counts as no access. Atomics always write, but for loads. Scratch and private memory belong to a
//! thread, and images are not looked at.
//!
//! What is known of a byte is its last plain write, its last write by an atomic, its last read, and the last read by another thread than that one. A race with an
//! access that is no longer known is not found. An element of a lane is at most one error, at its first such byte.
//!
//! The accesses of a group count as ordered by a barrier when any of its threads has gone on from one, a numbered one
//! included, between them: some races are missed by that, and none is made up.

use std::collections::HashMap;

use visa_runtime::{FaultKind, GroupView, MemoryRef, OtherAccess};

use super::Program;
use super::access::{LaneAccess, Memory, Space, site};
use super::error::Halt;
use super::init::Local;
use super::lanes::{ChannelBits, bits};
use super::live::AccessMode;
use super::machine::Machine;
use crate::module::Inst;

/// What an access does to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Read,
    AtomicRead,
    /// It leaves this there.
    Write(u64),
    AtomicWrite,
}

impl Does {
    const fn mode(self) -> AccessMode {
        match self {
            Does::Read => AccessMode::Read,
            Does::AtomicRead => AccessMode::AtomicRead,
            Does::Write(_) => AccessMode::Write,
            Does::AtomicWrite => AccessMode::AtomicWrite,
        }
    }
}

/// An access in the past.
#[derive(Clone, Copy, Debug)]
struct Past {
    by: OtherAccess,
    /// Barriers that the group had passed.
    epoch: u64,
    atomic: bool,
}

impl Past {
    fn same_thread(&self, later: &Past) -> bool {
        (self.by.group, self.by.thread) == (later.by.group, later.by.thread)
    }

    /// Whether two accesses, one of which writes, are a race.
    fn races(&self, later: &Past) -> bool {
        let ordered = self.by.group == later.by.group && self.epoch != later.epoch;
        let fine = self.same_thread(later) || ordered || (self.atomic && later.atomic);
        !fine
    }
}

/// What is known of a byte.
#[derive(Clone, Copy, Debug, Default)]
struct Byte {
    write: Option<Past>,
    atomic: Option<Past>,
    read: Option<Past>,
    /// By another thread than `read`.
    other: Option<Past>,
}

impl Byte {
    /// An access; what it races with.
    fn access(&mut self, now: Past, writes: bool) -> Option<OtherAccess> {
        let reads = [self.read, self.other].into_iter().filter(|_| writes);
        let writes_before = [self.write, self.atomic].into_iter();
        let known = writes_before.chain(reads).flatten();
        let race = known.into_iter().find(|past| past.races(&now));
        if writes && now.atomic {
            self.atomic = Some(now);
        } else if writes {
            self.write = Some(now);
        } else {
            if let Some(read) = self.read.filter(|read| !read.same_thread(&now)) {
                self.other = Some(read);
            }
            self.read = Some(now);
        }
        race.map(|past| past.by)
    }
}

/// What checks keep from group to group.
#[derive(Debug, Default)]
pub(super) struct Kept {
    races: Known,
    /// For checks of initialisation.
    pub(super) local_unset: Local,
}

/// What is known of the memory of a launch.
#[derive(Debug, Default)]
struct Known {
    local: HashMap<u64, Byte>,
    shared: HashMap<u64, Byte>,
    /// Barriers that the group has passed.
    epoch: u64,
}

impl Program {
    /// Before a group: its local memory is new.
    pub(super) fn start_of_races(&self, group: &mut GroupView<'_>) {
        if let Some(known) = self.known(group) {
            known.local.clear();
            known.epoch = 0;
        }
    }

    /// Threads have gone on from a barrier.
    pub(super) fn barrier_of_races(&self, group: &mut GroupView<'_>) {
        if let Some(known) = self.known(group) {
            known.epoch = known.epoch.wrapping_add(1);
        }
    }

    fn known<'a>(&self, group: &'a mut GroupView<'_>) -> Option<&'a mut Known> {
        match self.options.check_races {
            true => group.kept::<Kept>().map(|kept| &mut kept.races),
            false => None,
        }
    }
}

impl Machine<'_, '_, '_> {
    /// Checks the enabled lanes of an access before it is made; `does` says what each does to an element.
    pub(super) fn check_races(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        does: impl Fn(usize, usize) -> Does,
    ) -> Result<(), Halt> {
        if !self.program.options.check_races {
            return Ok(());
        }
        for lane in bits(a.enabled) {
            for k in 0..a.count {
                self.check_element(inst, a, (lane, a.element_address(lane, k)), does(lane, k))?;
            }
        }
        Ok(())
    }

    /// Checks a lane's access to an element at an address.
    fn check_element(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        (lane, address): (usize, u64),
        does: Does,
    ) -> Result<(), Halt> {
        let Some((region, place)) = self.shared(a, address, does) else {
            return Ok(());
        };
        let old = self.group.read(region, address, a.bytes);
        if let Does::Write(new) = does
            && !self.program.options.race_same_value
            && (0..a.bytes).all(|i| old.is_some_and(|old| byte(old, i) == byte(new, i)))
        {
            return Ok(());
        }
        let by = self.accessing(inst, a, lane);
        let mut race = None;
        let Some(known) = self.program.known(self.group) else {
            return Ok(());
        };
        let now = Past {
            by,
            epoch: known.epoch,
            atomic: does.mode().is_atomic(),
        };
        let map = match a.memory.space {
            Space::Local => &mut known.local,
            _ => &mut known.shared,
        };
        for i in 0..a.bytes {
            let known = map.entry(place.wrapping_add(i.into())).or_default();
            let found = known.access(now, does.mode().writes());
            race = race.or(found);
        }
        match race {
            Some(other) => self.report_race(FaultKind::Race, a, (by, address), other),
            None => Ok(()),
        }
    }

    /// Checks that no two lanes of a store leave different values at one byte.
    pub(super) fn check_lanes(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        values: &[ChannelBits],
    ) -> Result<(), Halt> {
        if !self.program.options.check_races {
            return Ok(());
        }
        let mut left: HashMap<u64, (usize, u8)> = HashMap::new();
        for lane in bits(a.enabled) {
            for (k, v) in values.iter().enumerate() {
                let (address, v) = (a.element_address(lane, k), v.get(lane));
                let Some((_, place)) = self.shared(a, address, Does::Write(v)) else {
                    continue;
                };
                let mut other = None;
                for i in 0..a.bytes {
                    let at = place.wrapping_add(i.into());
                    let before = left.insert(at, (lane, byte(v, i)));
                    let differs = |&(l, b): &(usize, u8)| l != lane && b != byte(v, i);
                    other = other.or(before.filter(differs));
                }
                if let Some((first, _)) = other {
                    let [by, first] = [lane, first].map(|lane| self.accessing(inst, a, lane));
                    self.report_race(FaultKind::LaneRace, a, (by, address), first)?;
                }
            }
        }
        Ok(())
    }

    /// Where an element is that other threads can reach, if it is in bounds.
    fn shared(&self, a: &LaneAccess, address: u64, does: Does) -> Option<(MemoryRef, u64)> {
        let region = match a.memory.space {
            Space::Surface => MemoryRef::Surface(a.memory.surface),
            Space::Local => MemoryRef::Local,
            Space::Device => MemoryRef::Device,
            Space::Scratch | Space::Args => return None,
        };
        let place = self
            .group
            .shared_place(region, address, a.bytes, does.mode().is_atomic())?;
        Some((region, place))
    }

    /// An access of a lane of this thread.
    fn accessing(&self, inst: &Inst, a: &LaneAccess, lane: usize) -> OtherAccess {
        OtherAccess {
            group: self.group.id(),
            thread: self.number,
            lane: (lane as u32).wrapping_add(inst.exec.mask.first_lane()),
            site: site(self.at, a.part, a.memory.space),
        }
    }

    fn report_race(
        &mut self,
        kind: FaultKind,
        a: &LaneAccess,
        (by, address): (OtherAccess, u64),
        other: OtherAccess,
    ) -> Result<(), Halt> {
        let at = (address, a.memory.surface);
        match self.group.fault_of_race(kind, by, at, other) {
            true => Err(Halt::Fault),
            false => Ok(()),
        }
    }

    /// Checks one element of a rectangle, which channel 0 reaches.
    pub(super) fn check_texel(
        &mut self,
        inst: &Inst,
        address: u64,
        bytes: u32,
        does: Does,
    ) -> Result<(), Halt> {
        let a = super::message::one(Memory::DEVICE, ChannelBits::all(address), bytes, 1);
        self.check_races(inst, &a, |_, _| does)
    }
}

/// A byte of an element.
fn byte(v: u64, i: u32) -> u8 {
    v.wrapping_shr(i.wrapping_mul(8)) as u8
}
