//! Fused threads that exchange what they offer, as compiled `dpasw` does.

use super::DONE;
use crate::common::{kernel, meta};
use visa_runtime::abi::{GroupCtx, Status, THREAD_DONE};
use visa_runtime::{
    Arguments, Exchange, KernelMeta, LaunchError, LaunchOptions, LaunchShape, PreparedLaunch,
    WorkerPool,
};

/// Threads of pair `k` give each other numbers `k + 1` times; all others wait at a barrier meanwhile. State 1 is the barrier, 2 the
/// exchange; a thread of an odd number leaves early where local memory is of 512 bytes.
unsafe extern "C" fn fused(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
    let mut status = DONE;
    // SAFETY: called by the launch with a valid group of the metadata below.
    unsafe {
        for number in first..end {
            let thread = &mut *(*group).threads.add(number as usize);
            let words = thread.frame.cast::<u32>();
            let turn = &mut *words;
            match thread.state {
                THREAD_DONE => continue,
                0 => *turn = 0,
                1 => {
                    let pairs = (*group).thread_count / 2;
                    let all: u32 = (0..pairs).map(|k| 2 * (k + 1)).sum();
                    let met = (*group).slm.cast::<u32>().read();
                    assert_eq!(met, all, "all exchanges come before the barrier");
                    thread.state = THREAD_DONE;
                    continue;
                }
                _ => {
                    let got = words.add(16 + 4).read();
                    assert_eq!(got, (number ^ 1) << 8 | *turn, "what the other one gave");
                    *turn += 1;
                    *(*group).slm.cast::<u32>() += 1;
                }
            }
            status = Status::Suspended as u32;
            thread.state = if *turn > number / 2 { 1 } else { 2 };
            if (*group).slm_size == 512 && number % 2 == 1 && *turn == 1 {
                thread.state = THREAD_DONE;
            }
            words.add(16).write(number << 8 | *turn);
        }
    }
    status
}

#[test]
fn fused_threads_exchange_what_they_offer() {
    let run = |threads: u32, slm_bytes| {
        let meta = KernelMeta {
            simd: 8,
            frame_bytes: 128,
            states: 2,
            slm_bytes,
            exchange: Some(Exchange {
                offset: 64,
                bytes: 16,
                lines: vec![77],
            }),
            ..meta()
        };
        let items = 8 * threads;
        let shape = LaunchShape::new([items * 5, 1, 1], [items, 1, 1]);
        let launch = PreparedLaunch::new(&kernel(meta, fused), shape).unwrap();
        let pool = WorkerPool::new(2).unwrap();
        [None, Some(&pool)].map(|pool| {
            let options = LaunchOptions {
                pool,
                ..LaunchOptions::default()
            };
            launch.run(&Arguments::default(), &options)
        })
    };
    for threads in [2, 4, 10] {
        for report in run(threads, 256) {
            let report = report.unwrap();
            assert_eq!((report.groups, report.threads), (5, 5 * u64::from(threads)));
        }
    }
    // One thread too few, and one that is at its end.
    for (threads, slm) in [(1, 256), (5, 256), (4, 512)] {
        for report in run(threads, slm) {
            match report {
                Err(LaunchError::Alone { line: 77, .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}
