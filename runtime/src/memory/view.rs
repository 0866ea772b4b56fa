//! Views of checked memory: which buffers, and which parts of them, the launches that run may access.
//!
//! A launch enters checked memory with its view. Launches with equal views run together; one with another view waits until those that run have
//! left, and then the shadows change. Launches enter in the order in which they asked, so none waits forever.

use super::checks::{Block, Checks, List};
use super::{Buffer, DeviceMemory, MemoryError, Origin};
use crate::abi::check::GRANULE;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Condvar, Mutex, PoisonError};

/// What a launch may access, apart from what every launch may. Places are offsets in the flat range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    /// Buffers of other contexts are hidden.
    context: Option<u64>,
    /// Buffers of which the launch has only parts, by their first bytes.
    parts: BTreeMap<u64, Parts>,
}

/// Parts of a buffer, in order. They neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parts {
    all: Vec<Range<u64>>,
    /// Those that kernels may write.
    writable: Vec<Range<u64>>,
}

/// Adds a range, which begins where its granule does, as the shadow has no other beginnings.
fn add(list: &mut Vec<Range<u64>>, range: Range<u64>) {
    let mut range = range.start / GRANULE * GRANULE..range.end;
    list.retain(|old| {
        let apart = old.end < range.start || range.end < old.start;
        if !apart {
            range = range.start.min(old.start)..range.end.max(old.end);
        }
        apart
    });
    let at = list.partition_point(|old| old.start < range.start);
    list.insert(at, range);
}

impl View {
    /// What of a buffer may be accessed, or written.
    pub(super) fn ranges(&self, offset: u64, block: &Block, writes: bool) -> Vec<Range<u64>> {
        let parts = self.parts.get(&offset);
        match parts {
            _ if self.hides(block) || writes && block.read_only => Vec::new(),
            Some(parts) if writes => parts.writable.clone(),
            Some(parts) => parts.all.clone(),
            None => std::iter::once(offset..offset + block.len).collect(),
        }
    }

    /// Whether a buffer is one of another context.
    pub(super) fn hides(&self, block: &Block) -> bool {
        let both = block.context.zip(self.context);
        both.is_some_and(|(whose, ours)| whose != ours)
    }

    /// The range of a buffer that a byte lies in and that may be accessed, or written.
    pub(super) fn around(
        &self,
        (offset, block): (u64, &Block),
        writes: bool,
        at: u64,
    ) -> Option<Range<u64>> {
        if self.hides(block) || writes && block.read_only {
            return None;
        }
        let whole = offset..offset + block.len;
        let Some(parts) = self.parts.get(&offset) else {
            return whole.contains(&at).then_some(whole);
        };
        let list = if writes { &parts.writable } else { &parts.all };
        list.iter().find(|range| range.contains(&at)).cloned()
    }

    /// Forgets a buffer that was freed.
    pub(super) fn forget(&mut self, offset: u64) {
        self.parts.remove(&offset);
    }

    /// Whether it has parts that kernels only read.
    fn protects(&self) -> bool {
        self.parts.values().any(|parts| parts.all != parts.writable)
    }
}

/// Launches that are in a checked memory, or wait.
#[derive(Debug, Default)]
pub(super) struct Gate {
    turns: Mutex<Turns>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Turns {
    /// Numbers given out to launches that asked.
    given: u64,
    /// The number of the next one that gets in.
    next: u64,
    inside: u64,
}

/// A launch in a checked memory, which it leaves when this is dropped.
#[derive(Debug)]
pub struct Entered(DeviceMemory);

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(checks) = &self.0.0.checks {
            checks.gate.leave();
        }
    }
}

impl Gate {
    fn leave(&self) {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.inside -= 1;
        self.changed.notify_all();
    }
}

impl Checks {
    /// Waits until the launches that run have this view, or none runs.
    fn enter(&self, view: View) -> Result<(), MemoryError> {
        let gate = &self.gate;
        let mut turns = gate.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = turns.given;
        turns.given += 1;
        while turns.next != ours || turns.inside != 0 && self.lock().view != view {
            let waited = gate.changed.wait(turns);
            turns = waited.unwrap_or_else(PoisonError::into_inner);
        }
        turns.next += 1;
        gate.changed.notify_all();
        self.show(view)?;
        turns.inside += 1;
        Ok(())
    }

    /// Gives the shadows another view, if it is one.
    fn show(&self, view: View) -> Result<(), MemoryError> {
        let mut list = self.lock();
        if view == list.view {
            return Ok(());
        }
        if view.protects() {
            self.separate_writes(&list)?;
        }
        let old = std::mem::replace(&mut list.view, view);
        let list: &List = &list;
        for (&offset, block) in &list.live {
            let same = |writes| {
                old.ranges(offset, block, writes) == list.view.ranges(offset, block, writes)
            };
            if !same(false) || !same(true) {
                self.paint(list, offset, block);
            }
        }
        Ok(())
    }
}

impl DeviceMemory {
    /// Begins a launch whose arguments are these buffers and pointers. Keep what it returns until the launch has ended. In memory that is
    /// [`DeviceMemory::checked`], these accesses of the launch are errors:
    ///
    /// * to a buffer of another context ([`Buffer::set_context`]), if the launch belongs to a context;
    /// * to a buffer of which the launch only has sub-buffers ([`Buffer::sub_buffer`]), outside of them;
    /// * a write to a sub-buffer that kernels only read, unless another argument gives the same bytes to write.
    ///
    /// Waits until launches that may access other memory have ended.
    ///
    /// Other memory keeps no account of launches.
    ///
    /// # Errors
    /// [`MemoryError::System`] when there is no room for the marks of parts that kernels only read.
    pub fn enter<'b>(
        &self,
        context: Option<u64>,
        buffers: impl Iterator<Item = &'b Buffer>,
        pointers: impl Iterator<Item = u64>,
    ) -> Result<Option<Entered>, MemoryError> {
        let Some(checks) = &self.0.checks else {
            return Ok(None);
        };
        let mut view = View {
            context,
            parts: BTreeMap::new(),
        };
        let mut wholes = BTreeSet::new();
        for buffer in buffers {
            let Origin::Flat(offset, _) = buffer.origin() else {
                continue;
            };
            let Some(writes) = buffer.of_sub_buffer() else {
                wholes.insert(offset);
                continue;
            };
            let start = self.position(buffer.address());
            let parts = view.parts.entry(offset).or_default();
            add(&mut parts.all, start..start + buffer.len());
            if writes {
                add(&mut parts.writable, start..start + buffer.len());
            }
        }
        if !view.parts.is_empty() {
            let found = pointers.filter_map(|address| checks.start_of(self.position(address)));
            wholes.extend(found);
        }
        view.parts.retain(|offset, _| !wholes.contains(offset));
        checks.enter(view)?;
        Ok(Some(Entered(self.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::checks::first_closed;
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;
    use visa_test_common::Rng;

    /// A buffer, and what a launch gets of it.
    struct Made {
        whole: Buffer,
        context: Option<u64>,
        read_only: bool,
        /// Offset, length and whether it is only read; nothing where the launch gets the whole buffer or nothing of it.
        parts: Vec<(u64, u64, bool)>,
        given: Vec<Buffer>,
    }

    fn make(memory: &DeviceMemory, rng: &mut Rng) -> Made {
        let whole = memory.alloc(1 + rng.below(700) as u64).unwrap();
        let context = [None, Some(1), Some(2)][rng.below(3)];
        if let Some(context) = context {
            whole.set_context(context);
        }
        let read_only = rng.below(4) == 0;
        if read_only {
            whole.mark_read_only().unwrap();
        }
        let count = [0, 1, 2, 3][rng.below(4)];
        let parts: Vec<_> = (0..count)
            .map(|_| {
                let from = rng.below(whole.len() as usize) as u64;
                let len = 1 + rng.below((whole.len() - from) as usize) as u64;
                (from, len, rng.below(3) == 0)
            })
            .collect();
        let mut given: Vec<_> = parts
            .iter()
            .map(|&(from, len, only)| whole.sub_buffer(from, len, only).unwrap())
            .collect();
        let mut parts = parts;
        if rng.below(4) == 0 {
            given.push(whole.clone());
            parts.clear();
        }
        Made {
            whole,
            context,
            read_only,
            parts,
            given,
        }
    }

    impl Made {
        /// Whether a launch of a context may access a byte, or write it.
        fn allows(&self, context: Option<u64>, at: u64, writes: bool) -> bool {
            let ours = self.context.zip(context).is_none_or(|(a, b)| a == b);
            let among = |&(from, len, only): &(u64, u64, bool)| {
                (from / GRANULE * GRANULE..from + len).contains(&at) && !(writes && only)
            };
            let part = self.parts.is_empty() || self.parts.iter().any(among);
            ours && part && at < self.whole.len() && !(writes && self.read_only)
        }
    }

    /// Shadow, list and the rules say the same of each byte, in view after view.
    #[test]
    fn views_show_what_launches_have() {
        let mut rng = Rng::new(17);
        for _ in 0..visa_test_common::share(12, 4) {
            let memory = DeviceMemory::checked(1 << 22).unwrap();
            let mut all: Vec<_> = (0..6).map(|_| make(&memory, &mut rng)).collect();
            for round in 0..6 {
                let context = [None, Some(1), Some(2)][rng.below(3)];
                let given = all.iter().flat_map(|made| &made.given);
                let entered = memory.enter(context, given, std::iter::empty());
                let entered = entered.unwrap().unwrap();
                for made in &all {
                    compare(&memory, made, context);
                }
                drop(entered);
                // A buffer less and a new one, which may be at the other's place after a while.
                all.remove(rng.below(all.len()));
                all.push(make(&memory, &mut rng));
                if round % 2 == 0 {
                    all[0].parts.clear();
                    all[0].given = vec![all[0].whole.clone()];
                }
            }
        }
    }

    fn compare(memory: &DeviceMemory, made: &Made, context: Option<u64>) {
        let first = made.whole.address();
        let mut last = [0..0, 0..0];
        for at in 0..made.whole.len() + 16 {
            for bytes in [1, 4, 8] {
                let address = first + at;
                let allowed = [false, true]
                    .map(|writes| (at..at + bytes).all(|at| made.allows(context, at, writes)));
                let offset = address - memory.base();
                // SAFETY: the memory is open there, and so is its shadow.
                let open = [memory.shadow(), memory.write_shadow()]
                    .map(|shadow| unsafe { first_closed(shadow, offset, bytes, 1) }.is_none());
                let live = memory.is_live(address, bytes);
                assert_eq!((open[0], live), (allowed[0], allowed[0]), "{at} {bytes}");
                let writable = live && !memory.is_read_only(address, bytes);
                assert_eq!(
                    (open[1], writable),
                    (allowed[1], allowed[1]),
                    "{at} {bytes}"
                );
            }
            // Where code may access without looking at the shadow.
            for writes in [false, true] {
                let found = &memory.pointees(&(first + at).to_le_bytes(), writes)[0];
                let range = found.start..found.start + found.bytes;
                assert_eq!(
                    range.contains(&(first + at)),
                    made.allows(context, at, writes)
                );
                // Most bytes have the range of the byte before.
                if range != last[usize::from(writes)] {
                    for inside in range.clone() {
                        assert!(made.allows(context, inside - first, writes));
                    }
                    last[usize::from(writes)] = range;
                }
            }
        }
    }

    /// A pointer among the arguments gives the whole buffer.
    #[test]
    fn pointers_give_the_whole_buffer() {
        let memory = DeviceMemory::checked(1 << 20).unwrap();
        let whole = memory.alloc(256).unwrap();
        let part = whole.sub_buffer(128, 64, false).unwrap();
        for (pointer, live) in [(0, false), (whole.address() + 200, true)] {
            let pointers = std::iter::once(pointer);
            let entered = memory.enter(None, [&part].into_iter(), pointers).unwrap();
            assert_eq!(memory.is_live(whole.address(), 4), live);
            assert!(memory.is_live(part.address(), 64));
            drop(entered);
        }
        // A part of a sub-buffer is one, too.
        let less = part.part(16, 16).unwrap();
        let entered = memory.enter(None, [&less].into_iter(), std::iter::empty());
        assert!(memory.is_live(less.address(), 16) && !memory.is_live(less.address() + 16, 1));
        drop(entered);
        let unchecked = DeviceMemory::with_capacity(1 << 20).unwrap();
        let entered = unchecked.enter(Some(1), [&part].into_iter(), std::iter::empty());
        assert!(entered.unwrap().is_none());
    }

    /// Launches of one view run together; one of another waits for them, and those that come later wait for it.
    #[test]
    fn another_view_waits_for_its_turn() {
        let memory = DeviceMemory::checked(1 << 20).unwrap();
        let enter = |memory: &DeviceMemory, context| {
            let entered = memory.enter(Some(context), [].into_iter(), [].into_iter());
            entered.unwrap()
        };
        let ours = [enter(&memory, 1), enter(&memory, 1)];
        let (sender, events) = mpsc::channel();
        let start = |context: u64| {
            let (memory, sender) = (memory.clone(), sender.clone());
            let asked = memory.0.checks.as_ref().unwrap();
            let given = || asked.gate.turns.lock().unwrap().given;
            let before = given();
            let handle = std::thread::spawn({
                let memory = memory.clone();
                move || {
                    let entered = memory.enter(Some(context), [].into_iter(), [].into_iter());
                    sender.send(context).unwrap();
                    drop(entered.unwrap());
                }
            });
            while given() == before {
                std::thread::yield_now();
            }
            handle
        };
        let waiting = [start(2), start(1)];
        let quiet = Duration::from_millis(20);
        assert!(events.recv_timeout(quiet).is_err());
        let [first, second] = ours;
        drop(first);
        assert!(events.recv_timeout(quiet).is_err());
        drop(second);
        assert_eq!([(); 2].map(|()| events.recv().unwrap()), [2, 1]);
        for handle in waiting {
            handle.join().unwrap();
        }
    }
}
