//! Runs that are too short for a second thread.

use crate::common::{kernel, meta, threads_of};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::Duration;
use visa_runtime::abi::{GroupCtx, Status, THREAD_DONE};
use visa_runtime::{Arguments, LaunchOptions, LaunchShape, PreparedLaunch, WorkerPool};

/// Microseconds that each group takes.
static TAKES: AtomicU64 = AtomicU64::new(0);
static THREADS: Mutex<Option<HashSet<ThreadId>>> = Mutex::new(None);

unsafe extern "C" fn wait(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
    let mut threads = THREADS.lock().unwrap();
    threads
        .get_or_insert_default()
        .insert(std::thread::current().id());
    drop(threads);
    match TAKES.load(Ordering::Relaxed) {
        0 => {}
        time => std::thread::sleep(Duration::from_micros(time)),
    }
    // SAFETY: called by the launch with a valid group.
    for thread in unsafe { threads_of(group, first, end) } {
        thread.state = THREAD_DONE;
    }
    Status::Done as u32
}

#[test]
fn a_run_after_a_short_one_wakes_no_worker() {
    let pool = WorkerPool::new(2).unwrap();
    let shape = LaunchShape::new([16, 1, 1], [8, 1, 1]);
    let launch = PreparedLaunch::new(&kernel(meta(), wait), shape).unwrap();
    let options = LaunchOptions {
        pool: Some(&pool),
        ..LaunchOptions::default()
    };
    let threads = |takes| {
        TAKES.store(takes, Ordering::Relaxed);
        *THREADS.lock().unwrap() = None;
        let report = launch.run(&Arguments::default(), &options).unwrap();
        assert_eq!(report.groups, 2);
        THREADS.lock().unwrap().as_ref().unwrap().len()
    };
    // A busy machine may make a short run long, and a thread that is woken late.
    let alone = (0..200).any(|_| {
        threads(0);
        threads(1000) == 1
    });
    assert!(alone);
    assert!((0..200).any(|_| threads(1000) == 2));
}
