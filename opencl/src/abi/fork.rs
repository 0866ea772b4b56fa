//! Copies of this process that `fork` makes.
//!
//! A copy has the memory of its parent and only the thread that called `fork`. What another thread was doing then never ends
//! there, and a lock that another thread held is never free again. A program knows of its own threads, and does not fork while
//! they use OpenCL. It does not know of the driver's. So `fork` waits until each of those is at a place where it holds none of the
//! driver's locks: asleep, or in a command's work, or in a function of the program.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Counts the calls of `fork` between the process that loaded the driver and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Held for reading by the driver's threads while they may hold locks, and for writing by a thread in `fork`.
static GATE: RwLock<()> = RwLock::new(());

thread_local! {
    /// This thread is one of the driver's, and may hold locks.
    static AT_WORK: Cell<Option<RwLockReadGuard<'static, ()>>> = const { Cell::new(None) };
    /// This thread is in `fork`.
    static FORKING: Cell<Option<RwLockWriteGuard<'static, ()>>> = const { Cell::new(None) };
}

type Handler = Option<unsafe extern "C" fn()>;

unsafe extern "C" {
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
}

fn enter() -> RwLockReadGuard<'static, ()> {
    GATE.read().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn before() {
    let gate = GATE.write().unwrap_or_else(PoisonError::into_inner);
    // A thread that is ending has no such place any more. The lock is free at once then.
    let _ = FORKING.try_with(|place| place.set(Some(gate)));
}

unsafe extern "C" fn in_parent() {
    let _ = FORKING.try_with(|place| drop(place.take()));
}

unsafe extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let _ = FORKING.try_with(|place| drop(place.take()));
}

/// Keeps `fork` from being carried out while `work`, of a thread that the driver made, may hold locks.
pub fn with_locks<T>(work: impl FnOnce() -> T) -> T {
    struct AtWork;
    impl Drop for AtWork {
        fn drop(&mut self) {
            AT_WORK.with(|place| drop(place.take()));
        }
    }
    Process::current();
    AT_WORK.with(|place| place.set(Some(enter())));
    let _at_work = AtWork;
    work()
}

/// Lets `fork` be carried out while `work` sleeps, or runs a command or a function of the program. The thread must hold no lock
/// of the driver. On a thread that is not in [`with_locks`] it does nothing else.
pub fn without_locks<T>(work: impl FnOnce() -> T) -> T {
    struct Away(bool);
    impl Drop for Away {
        fn drop(&mut self) {
            if self.0 {
                let _ = AT_WORK.try_with(|place| place.set(Some(enter())));
            }
        }
    }
    // A thread of the program may be ending, and has no such place any more.
    let _away = Away(
        AT_WORK
            .try_with(Cell::take)
            .is_ok_and(|gate| gate.is_some()),
    );
    work()
}

/// A process, as far as its own memory can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The one that runs this.
    pub fn current() -> Process {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| {
            // SAFETY: the handlers only take and leave a lock and add to a number. The thread that left the lock in the parent is
            // the one that leaves it in the child. The C library forgets the handlers when the driver is unloaded. Without memory for
            // them, copies are not told apart.
            let _ = unsafe { pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        });
        Process(FORKS.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    unsafe extern "C" {
        fn fork() -> c_int;
        fn waitpid(child: c_int, status: *mut c_int, options: c_int) -> c_int;
        fn _exit(code: c_int) -> !;
    }

    /// What `flag` is in a child.
    fn in_a_child(flag: &AtomicBool) -> bool {
        // SAFETY: the child only reads an atomic and ends; the parent waits for it.
        let status = unsafe {
            let child = fork();
            if child == 0 {
                _exit(c_int::from(flag.load(Ordering::SeqCst)));
            }
            assert!(child > 0, "a child");
            let mut status = 0;
            assert_eq!(waitpid(child, &raw mut status, 0), child);
            status
        };
        status == 1 << 8
    }

    #[test]
    fn fork_waits_for_threads_with_locks_only() {
        let (ready, wait) = mpsc::channel();
        let (resume, resumed) = mpsc::channel();
        let left = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let left = &left;
            scope.spawn(move || {
                with_locks(|| {
                    // Away, for as long as the other side likes.
                    without_locks(|| {
                        ready.send(()).expect("a receiver");
                        resumed.recv().expect("a sender");
                    });
                    ready.send(()).expect("a receiver");
                    std::thread::sleep(Duration::from_millis(100));
                    left.store(true, Ordering::SeqCst);
                });
            });
            wait.recv().expect("it is away");
            assert!(!in_a_child(left), "it has not gone on");
            resume.send(()).expect("it waits");
            wait.recv().expect("it is back");
            assert!(in_a_child(left), "fork waited");
        });
        // A thread that the driver did not make is never waited for.
        without_locks(|| assert!(in_a_child(&left)));
    }
}
