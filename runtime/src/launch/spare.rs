//! What launches of one kernel and shape share: programs launch a kernel again and again with other arguments, and tables of
//! local ids and memory for groups take longer to make than a small launch runs.
//!
//! A kernel knows what its last launch was made with, as long as any launch has it, and keeps it after that if it is small.

use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

use super::RunState;
use super::pace::{Begin, Did, Pace};
use super::shape::{Groups, LaunchShape};

/// Bytes that a kernel keeps.
const MOST_BYTES: usize = 64 << 10;

/// What depends on a kernel and a shape, and not on arguments.
#[derive(Debug)]
pub(super) struct Shared {
    pub groups: Groups,
    /// How runs on several threads begin.
    pace: Mutex<Pace>,
    /// States of launches that do not run now.
    idle: Mutex<Vec<RunState>>,
}

impl Shared {
    pub(super) fn new(groups: Groups) -> Shared {
        Shared {
            groups,
            pace: Mutex::default(),
            idle: Mutex::new(Vec::new()),
        }
    }

    /// A state that no launch has, if there is one.
    pub(super) fn check_out(&self) -> Option<RunState> {
        let idle = self.idle.lock();
        idle.unwrap_or_else(PoisonError::into_inner).pop()
    }

    pub(super) fn put_back(&self, state: RunState) {
        let idle = self.idle.lock();
        idle.unwrap_or_else(PoisonError::into_inner).push(state);
    }

    /// How a run begins. Never waits, as [`Spare::take`].
    pub(super) fn begin(&self) -> Begin {
        let pace = self.pace.try_lock();
        pace.map_or(Begin::Shared, |pace| pace.begin())
    }

    /// A run is over; with `fine`, one group is a small part of it.
    pub(super) fn end(&self, did: Did, fine: bool) {
        if let Ok(mut pace) = self.pace.try_lock() {
            pace.end(did, fine);
        }
    }

    /// Lets go of what belongs to launches. Returns the bytes that are left.
    fn let_go(&self) -> usize {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let workers = idle.iter_mut().flat_map(|state| &mut state.workers);
        workers.fold(self.groups.bytes(), |sum, worker| {
            sum.saturating_add(worker.let_go())
        })
    }
}

/// A kernel's last launch.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Last>);

#[derive(Debug, Default)]
struct Last {
    made: Weak<Shared>,
    /// The same, when no launch has it.
    kept: Option<Arc<Shared>>,
}

impl Spare {
    /// What the last launch was made with, if it had this shape.
    pub(super) fn take(&self, shape: &LaunchShape) -> Option<Arc<Shared>> {
        let shared = self.with(|last| last.kept.take().or_else(|| last.made.upgrade()))??;
        // In a child process, the thread that holds the lock may not exist. Elsewhere it is seldom held.
        let is_free = !matches!(shared.idle.try_lock(), Err(TryLockError::WouldBlock));
        (shared.groups.shape == *shape && is_free).then_some(shared)
    }

    /// A launch was made with this.
    pub(super) fn made(&self, shared: &Arc<Shared>) {
        self.with(|last| last.made = Arc::downgrade(shared));
    }

    /// A launch does not need this any more.
    pub(super) fn keep(&self, shared: &Arc<Shared>) {
        // Launches that end at the same time each see the other one; it is not kept then.
        if Arc::strong_count(shared) == 1 && shared.let_go() <= MOST_BYTES {
            let before = self.with(|last| last.kept.replace(shared.clone()));
            drop(before);
        }
    }

    /// Never waits, for the same reason as [`Spare::take`].
    fn with<T>(&self, look: impl FnOnce(&mut Last) -> T) -> Option<T> {
        match self.0.try_lock() {
            Ok(mut last) => Some(look(&mut last)),
            Err(TryLockError::Poisoned(last)) => Some(look(&mut last.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Status;
    use crate::error::ProgramError;
    use crate::group::{GroupProgram, GroupView};
    use crate::{Arguments, DeviceMemory, Kernel, KernelMeta, LaunchOptions, PreparedLaunch};

    #[derive(Debug)]
    struct Nothing;

    impl GroupProgram for Nothing {
        fn run(&self, group: &mut GroupView<'_>) -> Result<Status, ProgramError> {
            group.kept::<u32>();
            Ok(Status::Done)
        }
    }

    fn kernel(frame_bytes: u32) -> Kernel {
        let meta = KernelMeta {
            frame_bytes,
            ..KernelMeta::default()
        };
        Kernel::from_program(meta, Arc::new(Nothing)).unwrap()
    }

    const A: ([u32; 3], [u32; 3]) = ([64, 2, 1], [16, 1, 1]);
    const B: ([u32; 3], [u32; 3]) = ([64, 2, 1], [32, 1, 1]);

    fn launch(kernel: &Kernel, (global, local): ([u32; 3], [u32; 3])) -> PreparedLaunch {
        PreparedLaunch::new(kernel, LaunchShape::new(global, local)).unwrap()
    }

    fn same(a: &PreparedLaunch, b: &PreparedLaunch) -> bool {
        Arc::ptr_eq(&a.shared, &b.shared)
    }

    fn states(launch: &PreparedLaunch) -> usize {
        launch.shared.idle.lock().unwrap().len()
    }

    #[test]
    fn launches_of_a_kernel_and_shape_share_tables_and_memory() {
        let (kernel, other) = (kernel(0), kernel(0));
        let [first, again] = [A, A].map(|shape| launch(&kernel, shape));
        assert!(same(&first, &again) && states(&again) == 1);
        assert!(!same(&first, &launch(&other, A)));
        let wide = launch(&kernel, B);
        assert!(!same(&first, &wide));
        assert_eq!(wide.shape().local, [32, 1, 1]);
        // Only the last one is known.
        assert!(!same(&first, &launch(&kernel, A)));
        let moved = LaunchShape {
            offset: [1, 0, 0],
            ..LaunchShape::new(A.0, A.1)
        };
        let moved = PreparedLaunch::new(&kernel, moved).unwrap();
        assert!(!same(&moved, &launch(&kernel, A)));
    }

    #[test]
    fn the_last_launch_leaves_what_it_had() {
        let kernel = kernel(0);
        let place = |launch: &PreparedLaunch| Arc::as_ptr(&launch.shared);
        let (a, b) = (launch(&kernel, A), launch(&kernel, B));
        let at = place(&a);
        drop(a);
        let again = launch(&kernel, A);
        assert_eq!((place(&again), states(&again)), (at, 1));
        drop((again, b));
        assert_ne!(place(&launch(&kernel, A)), at, "that of `b` was kept");
    }

    /// Neither much memory nor what belongs to a launch stays with a kernel.
    #[test]
    fn large_launches_and_what_they_were_given_are_let_go() {
        let large = kernel(MOST_BYTES as u32);
        drop(launch(&large, A));
        let last = large.spare().0.lock().unwrap();
        assert!(last.kept.is_none() && last.made.upgrade().is_none());

        let small = kernel(0);
        let launch = launch(&small, A);
        let arguments = Arguments {
            memory: Some(DeviceMemory::checked(1 << 20).unwrap()),
            ..Arguments::default()
        };
        launch.run(&arguments, &LaunchOptions::default()).unwrap();
        let of_launch = |shared: &Shared| {
            let idle = shared.idle.lock().unwrap();
            let faults = &idle[0].workers[0].faults;
            (faults.memory.is_some(), faults.kept.is_some())
        };
        assert_eq!(of_launch(&launch.shared), (true, true));
        drop(launch);
        let last = small.spare().0.lock().unwrap();
        assert_eq!(of_launch(last.kept.as_ref().unwrap()), (false, false));
    }

    /// As in a child process, when another thread of its parent held a lock.
    #[test]
    fn a_lock_that_stays_held_is_not_waited_for() {
        let kernel = kernel(0);
        let first = launch(&kernel, A);
        let held = first.shared.idle.lock().unwrap();
        let second = launch(&kernel, A);
        assert!(!same(&first, &second));
        drop(held);
        let held = kernel.spare().0.lock().unwrap();
        let third = launch(&kernel, A);
        assert!(!same(&second, &third));
        third
            .run(&Arguments::default(), &LaunchOptions::default())
            .unwrap();
        drop(third);
        drop(held);
    }
}
