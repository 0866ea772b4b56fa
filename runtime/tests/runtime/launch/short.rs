//! Runs that are too short for a second thread.

use crate::common::{kernel, meta, threads_of};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use visa_runtime::abi::{GroupCtx, Status, THREAD_DONE};
use visa_runtime::{Arguments, LaunchOptions, LaunchShape, PreparedLaunch, WorkerPool};

/// Microseconds that each group takes.
static TAKES: AtomicU64 = AtomicU64::new(0);
/// Groups that run at the moment, and the most of a run.
static RUNNING: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);
/// Groups that began before any two of a run overlapped.
static ALONE: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn wait(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
    let running = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
    if MOST.fetch_max(running, Ordering::SeqCst).max(running) == 1 {
        ALONE.fetch_add(1, Ordering::SeqCst);
    }
    match TAKES.load(Ordering::SeqCst) {
        0 => {}
        time => std::thread::sleep(Duration::from_micros(time)),
    }
    // SAFETY: called by the launch with a valid group.
    for thread in unsafe { threads_of(group, first, end) } {
        thread.state = THREAD_DONE;
    }
    RUNNING.fetch_sub(1, Ordering::SeqCst);
    Status::Done as u32
}

/// A program prepares a launch each time that it has other arguments.
#[test]
fn a_run_after_a_short_one_begins_on_one_thread() {
    const GROUPS: u64 = 16;
    let pool = WorkerPool::new(2).unwrap();
    let shape = LaunchShape::new([8 * GROUPS as u32, 1, 1], [8, 1, 1]);
    let kernel = kernel(meta(), wait);
    let options = LaunchOptions {
        pool: Some(&pool),
        ..LaunchOptions::default()
    };
    let run = |takes| {
        TAKES.store(takes, Ordering::SeqCst);
        MOST.store(0, Ordering::SeqCst);
        ALONE.store(0, Ordering::SeqCst);
        let launch = PreparedLaunch::new(&kernel, shape).unwrap();
        let report = launch.run(&Arguments::default(), &options).unwrap();
        assert_eq!(report.groups, GROUPS);
        [&MOST, &ALONE].map(|number| number.load(Ordering::SeqCst))
    };
    // A busy machine may make a short run long, and a thread that is woken late.
    let (mut alone, mut shared, mut again) = (0, 0, 0);
    for _ in 0..20 {
        // As many as are shared after a long one.
        for _ in 0..40 {
            run(0);
        }
        let [most, first] = run(1000);
        // The first group is over before another thread is woken.
        alone += u64::from(first > 1);
        shared += u64::from(most == 2);
        let [_, first] = run(1000);
        again += u64::from(first == 1);
    }
    assert!(alone >= 10, "{alone} runs began alone");
    assert!(shared >= 5, "{shared} were shared when they took long");
    assert!(
        again >= 5,
        "{again} runs after a long one were shared at once"
    );
}
