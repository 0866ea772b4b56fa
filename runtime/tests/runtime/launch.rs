//! Launches with hand-written entries: shapes, local ids, barriers, memory of a group, workers,
//! faults and interruption.

mod fused;
mod short;

use crate::common::{kernel, meta, threads_of};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use visa_runtime::abi::{GroupCtx, LOCAL_ID_ROW, Status, THREAD_DONE};
use visa_runtime::{
    Arguments, DeviceMemory, FaultAction, Interrupter, KernelMeta, LaunchError, LaunchOptions,
    LaunchShape, LaunchStatus, Payload, PayloadPatch, PreparedLaunch, Schedule, WorkerPool,
};

const DONE: u32 = Status::Done as u32;

/// Appends `gx gy gz lx ly lz` of every lane to the buffer in the payload: an address of records
/// and, as its first dword, their count.
unsafe extern "C" fn log_ids(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
    // SAFETY: called by the launch with a valid group; the payload holds the log's address.
    unsafe {
        let launch = &*(*group).launch;
        let log = launch.payload.cast::<u64>().read() as *mut u32;
        let count = AtomicU32::from_ptr(log);
        for thread in threads_of(group, first, end) {
            for lane in (0..32).filter(|l| thread.dispatch_mask >> l & 1 != 0) {
                let slot = count.fetch_add(1, Ordering::Relaxed) as usize;
                let record = log.add(1 + 6 * slot);
                let r0 = (*group).r0;
                for (i, id) in [r0[1], r0[6], r0[7]].into_iter().enumerate() {
                    record.add(i).write(id);
                }
                for dim in 0..3 {
                    let id = thread.local_ids.add(dim * LOCAL_ID_ROW + lane).read();
                    record.add(3 + dim).write(id.into());
                }
            }
            thread.state = THREAD_DONE;
        }
    }
    DONE
}

/// Ids of all lanes that ran, in order.
fn ids(shape: LaunchShape, meta: KernelMeta, pool: Option<&WorkerPool>) -> Vec<[u32; 6]> {
    let options = LaunchOptions {
        pool,
        ..LaunchOptions::default()
    };
    ids_with(shape, meta, &options)
}

fn ids_with(shape: LaunchShape, meta: KernelMeta, options: &LaunchOptions<'_>) -> Vec<[u32; 6]> {
    let items: u64 = shape.global.into_iter().map(u64::from).product();
    let memory = DeviceMemory::new().unwrap();
    let log = memory.alloc(4 + 24 * items).unwrap();
    let arguments = Arguments {
        payload: Payload::from_bytes(&log.address().to_le_bytes()).unwrap(),
        ..Arguments::default()
    };
    let launch = PreparedLaunch::new(&kernel(meta, log_ids), shape).unwrap();
    let report = launch.run(&arguments, options).unwrap();
    assert_eq!(report.status, LaunchStatus::Completed);
    assert_eq!(report.groups, launch.groups());
    let words = log.to_vec_of::<u32>();
    assert_eq!(u64::from(words[0]), items, "{shape:?}");
    words[1..]
        .chunks_exact(6)
        .map(|r| r.try_into().unwrap())
        .collect()
}

/// All workers of a pool would give many orders: one thread runs a schedule.
#[test]
fn a_schedule_is_another_order_of_the_same_groups_and_threads() {
    let pool = WorkerPool::new(3).unwrap();
    let shape = LaunchShape::new([70, 6, 1], [20, 3, 1]);
    let meta = || KernelMeta { simd: 8, ..meta() };
    let run = |seed: Option<u64>| {
        let options = LaunchOptions {
            pool: seed.map(|_| &pool),
            schedule: seed.map(|seed| Schedule { seed }),
            ..LaunchOptions::default()
        };
        ids_with(shape, meta(), &options)
    };
    let usual = run(None);
    let [a, again, b] = [1, 1, 2].map(|seed| run(Some(seed)));
    assert!(a == again && a != b && a != usual && b != usual);
    // A group runs to its end before another one.
    for order in [&a, &b] {
        let mut groups: Vec<&[u32]> = order.iter().map(|id| &id[..3]).collect();
        groups.dedup();
        assert_eq!(groups.len(), 8);
    }
    for mut order in [a, b] {
        order.sort_unstable();
        let mut usual = usual.clone();
        usual.sort_unstable();
        assert_eq!(order, usual);
    }
}

#[test]
fn every_work_item_runs_once_in_every_shape() {
    let pool = WorkerPool::new(3).unwrap();
    let shapes = [
        ([1, 1, 1], [1, 1, 1]),
        ([100, 1, 1], [16, 1, 1]),
        ([7, 1, 1], [33, 1, 1]),
        ([17, 5, 1], [5, 3, 1]),
        ([9, 7, 5], [4, 3, 2]),
        ([3, 2, 50], [5, 1, 7]),
        ([64, 64, 1], [8, 8, 1]),
        ([1, 1, 1000], [1, 1, 1000]),
    ];
    for (global, local) in shapes {
        for simd in [1, 8, 16, 32] {
            for pool in [None, Some(&pool)] {
                let meta = KernelMeta { simd, ..meta() };
                let ids = ids(LaunchShape::new(global, local), meta, pool);
                let global_ids: HashSet<[u32; 3]> = ids
                    .iter()
                    .map(|r| std::array::from_fn(|d| r[d] * local[d] + r[3 + d]))
                    .collect();
                assert_eq!(
                    global_ids.len(),
                    ids.len(),
                    "distinct {global:?} {local:?} {simd}"
                );
                for id in &global_ids {
                    assert!(
                        (0..3).all(|d| id[d] < global[d]),
                        "{id:?} {global:?} {local:?}"
                    );
                }
                for r in &ids {
                    assert!((0..3).all(|d| r[3 + d] < local[d]));
                }
            }
        }
    }
}

#[test]
fn lanes_are_numbered_in_walk_order() {
    let first_six = |walk_order| {
        let meta = KernelMeta {
            walk_order,
            ..meta()
        };
        let ids = ids(LaunchShape::new([2, 2, 3], [2, 2, 3]), meta, None);
        ids.iter()
            .take(6)
            .map(|r| r[3] * 100 + r[4] * 10 + r[5])
            .collect::<Vec<_>>()
    };
    assert_eq!(first_six([0, 1, 2]), [0, 100, 10, 110, 1, 101]);
    assert_eq!(first_six([2, 0, 1]), [0, 1, 2, 100, 101, 102]);
    assert_eq!(first_six([1, 2, 0]), [0, 10, 1, 11, 2, 12]);
}

/// Local ids of lanes beyond the group run on, and the dispatch mask leaves them out.
#[test]
fn lanes_beyond_the_group() {
    unsafe extern "C" fn check(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
        // SAFETY: called by the launch with a valid group.
        unsafe {
            assert_eq!((*group).thread_count, 2);
            for thread in threads_of(group, first, end) {
                let rows: Vec<[u16; 3]> = (0..8)
                    .map(|l| {
                        std::array::from_fn(|d| thread.local_ids.add(d * LOCAL_ID_ROW + l).read())
                    })
                    .collect();
                assert_eq!(thread.r0_2, thread.r0_5);
                match thread.r0_5 {
                    0 => assert_eq!(thread.dispatch_mask, 0xFF),
                    _ => {
                        assert_eq!(thread.dispatch_mask, 0b1);
                        assert_eq!(rows[0], [2, 2, 0]);
                        assert_eq!(rows[1], [0, 0, 1], "runs on");
                    }
                }
                thread.state = THREAD_DONE;
            }
        }
        DONE
    }
    let kernel = kernel(KernelMeta { simd: 8, ..meta() }, check);
    let launch = PreparedLaunch::new(&kernel, LaunchShape::new([3, 3, 1], [3, 3, 1])).unwrap();
    let report = launch
        .run(&Arguments::default(), &LaunchOptions::default())
        .unwrap();
    assert_eq!((report.groups, report.threads), (1, 2));
}

#[test]
fn partial_groups_see_their_own_size() {
    /// Adds the local size in the payload and the number of lanes to a table by group id.
    unsafe extern "C" fn sizes(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
        // SAFETY: called by the launch with a valid group; the payload holds the table's address.
        unsafe {
            let payload = (*(*group).launch).payload;
            let table = payload.cast::<u64>().read() as *mut u32;
            let lanes: u32 = threads_of(group, first, end)
                .map(|t| t.dispatch_mask.count_ones())
                .sum();
            let [.., x, y] = [(*group).r0[1], (*group).r0[6]];
            let record = table.add(4 * (y * 3 + x) as usize);
            for i in 0..3 {
                record
                    .add(i)
                    .write(payload.add(8).cast::<u32>().add(i).read());
            }
            record.add(3).write(lanes);
        }
        DONE
    }
    let memory = DeviceMemory::new().unwrap();
    let table = memory.alloc(6 * 16).unwrap();
    let mut payload = Payload::new(20).unwrap();
    payload.set(0, &table.address().to_le_bytes()).unwrap();
    for (i, size) in [4u32, 3, 1].into_iter().enumerate() {
        payload.set(8 + 4 * i, &size.to_le_bytes()).unwrap();
    }
    payload
        .patch(PayloadPatch::LocalSize { offset: 8 })
        .unwrap();
    assert!(
        payload
            .patch(PayloadPatch::LocalSize { offset: 9 })
            .is_err()
    );
    let kernel = kernel(
        KernelMeta {
            payload_bytes: 20,
            ..meta()
        },
        sizes,
    );
    let launch = PreparedLaunch::new(&kernel, LaunchShape::new([10, 5, 1], [4, 3, 1])).unwrap();
    let arguments = Arguments {
        payload,
        ..Arguments::default()
    };
    launch.run(&arguments, &LaunchOptions::default()).unwrap();
    let expected = [
        [4, 3, 1, 12],
        [4, 3, 1, 12],
        [2, 3, 1, 6],
        [4, 2, 1, 8],
        [4, 2, 1, 8],
        [2, 2, 1, 4],
    ];
    assert_eq!(table.to_vec_of::<u32>(), expected.concat());
}

/// Thread `t` adds `t + round` to word `round` of local memory, waits, then checks the sum that
/// all threads made. Threads stop after a number of rounds that differs.
unsafe extern "C" fn rounds(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
    let mut status = DONE;
    // SAFETY: called by the launch with a valid group of the metadata below.
    unsafe {
        let count = (*group).thread_count;
        let slm = (*group).slm.cast::<u32>();
        let threads = (*group).threads;
        for number in first..end {
            let thread = &mut *threads.add(number as usize);
            if thread.state == THREAD_DONE {
                continue;
            }
            let saved = thread.frame.add(64).cast::<u32>();
            let round = thread.state;
            if round == 0 {
                assert_eq!(
                    thread.frame.cast::<u64>().read(),
                    0,
                    "register storage reads zero"
                );
                thread.frame.cast::<u64>().write(u64::MAX);
            } else {
                assert_eq!(saved.read(), number ^ round, "saved value");
                let alive = count.min(count + 3 - round);
                let expected: u32 = (count - alive..count).map(|t| t + round - 1).sum();
                assert_eq!(
                    slm.add(round as usize - 1).read(),
                    expected,
                    "all threads arrived"
                );
            }
            // Thread t runs t + 3 rounds at most.
            if round == number + 3 {
                thread.state = THREAD_DONE;
                continue;
            }
            let word = slm.add(round as usize);
            word.write(word.read() + number + round);
            thread.state = round + 1;
            saved.write(number ^ (round + 1));
            status = Status::Suspended as u32;
        }
    }
    status
}

#[test]
fn barriers_run_all_threads_in_rounds() {
    let meta = KernelMeta {
        simd: 8,
        frame_bytes: 68,
        regs_bytes: 64,
        states: 10,
        slm_bytes: 256,
        ..meta()
    };
    let kernel = kernel(meta, rounds);
    let launch = PreparedLaunch::new(&kernel, LaunchShape::new([160, 1, 1], [32, 1, 1])).unwrap();
    let pool = WorkerPool::new(2).unwrap();
    let orders = [None, Some(1), Some(2), None].map(|seed| seed.map(|seed| Schedule { seed }));
    for (pool, schedule) in [None, Some(&pool), None, Some(&pool)]
        .into_iter()
        .zip(orders)
    {
        let options = LaunchOptions {
            pool,
            schedule,
            ..LaunchOptions::default()
        };
        let report = launch.run(&Arguments::default(), &options).unwrap();
        assert_eq!((report.groups, report.threads), (5, 20));
    }
}

#[test]
fn memory_of_a_group_reads_zero_and_is_its_own() {
    unsafe extern "C" fn dirty(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
        // SAFETY: called by the launch with a valid group of the metadata below.
        unsafe {
            assert_eq!((*group).slm_size, 1000 + 24);
            let zero = |p: *mut u8, n: usize| (0..n).all(|i| p.add(i).read() == 0);
            assert!(zero((*group).slm, 1024), "local memory");
            (*group).slm.write_bytes(0xAA, 1024);
            (*group)
                .sink
                .write_bytes(0xBB, visa_runtime::abi::SINK_BYTES);
            for (i, thread) in threads_of(group, first, end).enumerate() {
                assert!(zero(thread.frame, 40), "registers");
                assert!(zero(thread.scratch, 100), "scratch");
                assert_eq!(thread.scratch_size, 100);
                assert_eq!(thread.frame as usize % 64, 0);
                thread.frame.write_bytes(i as u8 + 1, 48);
                thread.scratch.write_bytes(i as u8 + 1, 100);
            }
            for (i, thread) in threads_of(group, first, end).enumerate() {
                assert_eq!(thread.frame.add(47).read(), i as u8 + 1);
                assert_eq!(thread.scratch.add(99).read(), i as u8 + 1);
                thread.state = THREAD_DONE;
            }
        }
        DONE
    }
    let meta = KernelMeta {
        frame_bytes: 48,
        regs_bytes: 40,
        slm_bytes: 1000,
        scratch_bytes: 100,
        ..meta()
    };
    let launch = PreparedLaunch::new(
        &kernel(meta, dirty),
        LaunchShape::new([4096, 1, 1], [64, 1, 1]),
    )
    .unwrap();
    let arguments = Arguments {
        extra_slm: 24,
        ..Arguments::default()
    };
    let pool = WorkerPool::new(2).unwrap();
    for pool in [None, Some(&pool)] {
        let options = LaunchOptions {
            pool,
            ..LaunchOptions::default()
        };
        assert_eq!(launch.run(&arguments, &options).unwrap().groups, 64);
    }
    let arguments = Arguments {
        extra_slm: u32::MAX,
        ..Arguments::default()
    };
    let result = launch.run(&arguments, &LaunchOptions::default());
    assert!(matches!(result, Err(LaunchError::GroupMemory { .. })));
}

#[test]
fn many_workers_run_every_group_once() {
    static SEEN: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
    static NUMBERS: Mutex<Vec<(std::thread::ThreadId, u32)>> = Mutex::new(Vec::new());
    unsafe extern "C" fn count(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
        // SAFETY: called by the launch with a valid group.
        unsafe {
            let id = u64::from((*group).r0[1]);
            SEEN[0].fetch_add(1, Ordering::Relaxed);
            SEEN[1].fetch_add(id, Ordering::Relaxed);
            SEEN[2].fetch_xor(id.wrapping_mul(0x9E37_79B9_7F4A_7C15), Ordering::Relaxed);
            let me = std::thread::current().id();
            let mut numbers = NUMBERS.lock().unwrap();
            for thread in threads_of(group, first, end) {
                if !numbers.contains(&(me, thread.sr0)) {
                    numbers.push((me, thread.sr0));
                }
                thread.state = THREAD_DONE;
            }
        }
        DONE
    }
    const GROUPS: u64 = 100_003;
    let pool = WorkerPool::new(4).unwrap();
    let launch = PreparedLaunch::new(
        &kernel(meta(), count),
        LaunchShape::new([GROUPS as u32 * 20, 1, 1], [20, 1, 1]),
    )
    .unwrap();
    assert_eq!(launch.hw_threads(Some(&pool)), 8);
    let options = LaunchOptions {
        pool: Some(&pool),
        ..LaunchOptions::default()
    };
    let report = launch.run(&Arguments::default(), &options).unwrap();
    assert_eq!((report.groups, report.threads), (GROUPS, 2 * GROUPS));
    assert_eq!(SEEN[0].load(Ordering::Relaxed), GROUPS);
    assert_eq!(SEEN[1].load(Ordering::Relaxed), GROUPS * (GROUPS - 1) / 2);
    let mix = (0..GROUPS).fold(0, |x, id| x ^ id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    assert_eq!(SEEN[2].load(Ordering::Relaxed), mix);
    // No two threads of the system ever used one hardware-thread number in this launch.
    let numbers = NUMBERS.lock().unwrap();
    let distinct: HashSet<u32> = numbers.iter().map(|n| n.1).collect();
    assert_eq!(distinct.len(), numbers.len());
    assert!(distinct.iter().all(|&n| n < 8));
}

/// Runs until the launch is interrupted, as a compiled loop does.
unsafe extern "C" fn spin(group: *mut GroupCtx, _: u32, _: u32) -> u32 {
    // SAFETY: called by the launch with a valid group.
    let word = unsafe { &*(*(*group).launch).interrupt };
    while word.load(Ordering::Relaxed) == 0 {
        std::hint::spin_loop();
    }
    Status::Interrupted as u32
}

#[test]
fn interruption_from_another_thread_and_at_a_deadline() {
    let pool = WorkerPool::new(2).unwrap();
    let launch = PreparedLaunch::new(
        &kernel(meta(), spin),
        LaunchShape::new([64, 1, 1], [16, 1, 1]),
    )
    .unwrap();
    for pool in [None, Some(&pool)] {
        let interrupter = Interrupter::new();
        let options = LaunchOptions {
            pool,
            interrupter: Some(&interrupter),
            ..LaunchOptions::default()
        };
        let report = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                interrupter.interrupt();
            });
            launch.run(&Arguments::default(), &options).unwrap()
        });
        assert_eq!(
            (report.status, report.groups),
            (LaunchStatus::Interrupted, 0)
        );
        let again = launch.run(&Arguments::default(), &options).unwrap();
        assert_eq!(
            again.status,
            LaunchStatus::Interrupted,
            "stays interrupted until reset"
        );
        interrupter.reset();
        let start = Instant::now();
        let deadline = Some(start + Duration::from_millis(30));
        let report = launch
            .run(
                &Arguments::default(),
                &LaunchOptions {
                    deadline,
                    ..options
                },
            )
            .unwrap();
        assert_eq!(report.status, LaunchStatus::DeadlineExceeded);
        let elapsed = start.elapsed();
        assert!(
            elapsed >= Duration::from_millis(30) && elapsed < Duration::from_secs(2),
            "{elapsed:?}"
        );
        let report = launch
            .run(
                &Arguments::default(),
                &LaunchOptions {
                    deadline: Some(start),
                    ..options
                },
            )
            .unwrap();
        assert_eq!(
            report.status,
            LaunchStatus::DeadlineExceeded,
            "already past"
        );
    }
}

#[test]
fn a_barrier_loop_that_never_ends_is_interrupted() {
    unsafe extern "C" fn wait(_: *mut GroupCtx, _: u32, _: u32) -> u32 {
        Status::Suspended as u32
    }
    let launch = PreparedLaunch::new(
        &kernel(meta(), wait),
        LaunchShape::new([16, 1, 1], [16, 1, 1]),
    )
    .unwrap();
    let deadline = Some(Instant::now() + Duration::from_millis(5));
    let options = LaunchOptions {
        deadline,
        ..LaunchOptions::default()
    };
    let report = launch.run(&Arguments::default(), &options).unwrap();
    assert_eq!(report.status, LaunchStatus::DeadlineExceeded);
}

/// Reports lanes 1 and 3 of every thread; ends as the helper says.
unsafe extern "C" fn faulty(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
    // SAFETY: called by the launch with a valid group.
    unsafe {
        let helpers = &*(*(*group).launch).helpers;
        for number in first..end {
            let addresses: [u64; 4] = std::array::from_fn(|l| 0x1000 + l as u64);
            if (helpers.fault)(group, number, 7, 0b1010, addresses.as_ptr(), 3) != 0 {
                return Status::Fault as u32;
            }
        }
    }
    DONE
}

#[test]
fn faults_are_counted_and_the_first_ones_kept() {
    let shape = LaunchShape {
        global: [8, 8, 3],
        local: [4, 4, 1],
        offset: [100, 0, 7],
        dimensions: None,
    };
    let launch =
        PreparedLaunch::new(&kernel(KernelMeta { simd: 8, ..meta() }, faulty), shape).unwrap();
    let pool = WorkerPool::new(2).unwrap();
    for pool in [None, Some(&pool)] {
        let options = LaunchOptions {
            pool,
            ..LaunchOptions::default()
        };
        let report = launch.run(&Arguments::default(), &options).unwrap();
        assert_eq!(
            (report.status, report.fault_count),
            (LaunchStatus::Completed, 12 * 2 * 2)
        );
        assert_eq!(report.faults.len(), 48);
        let fault = report
            .faults
            .iter()
            .find(|f| f.group == [1, 0, 2] && f.thread == 1 && f.lane == 3)
            .unwrap();
        assert_eq!((fault.site, fault.surface, fault.address), (7, 3, 0x1003));
        assert_eq!(fault.local_id, [3, 2, 0]);
        assert_eq!(fault.global_id, [107, 2, 9]);
        let stop = LaunchOptions {
            on_fault: FaultAction::Stop,
            ..options
        };
        let report = launch.run(&Arguments::default(), &stop).unwrap();
        assert_eq!(report.status, LaunchStatus::Faulted);
        assert!(report.groups < 12 && (2..=4).contains(&report.fault_count));
    }
    let many = LaunchShape::new([100_000, 1, 1], [16, 1, 1]);
    let launch = PreparedLaunch::new(&kernel(meta(), faulty), many).unwrap();
    let report = launch
        .run(&Arguments::default(), &LaunchOptions::default())
        .unwrap();
    assert_eq!(report.fault_count, 12_500);
    assert_eq!(report.faults.len(), visa_runtime::limits::MAX_FAULT_RECORDS);
}

#[test]
fn bad_shapes_and_arguments_are_errors() {
    let plain = kernel(meta(), log_ids);
    let error = |global, local, offset| {
        PreparedLaunch::new(
            &plain,
            LaunchShape {
                global,
                local,
                offset,
                dimensions: None,
            },
        )
        .unwrap_err()
    };
    assert!(matches!(
        error([1; 3], [1, 0, 1], [0; 3]),
        LaunchError::ZeroLocal(_)
    ));
    assert!(matches!(
        error([1; 3], [1025, 1, 1], [0; 3]),
        LaunchError::GroupTooLarge(_)
    ));
    assert!(matches!(
        error([1; 3], [u32::MAX; 3], [0; 3]),
        LaunchError::GroupTooLarge(_)
    ));
    assert!(matches!(
        error([u32::MAX, 1, 1], [1; 3], [2, 0, 0]),
        LaunchError::GlobalRange { dim: 0, .. }
    ));
    assert!(matches!(
        error([u32::MAX; 3], [1; 3], [0; 3]),
        LaunchError::TooManyGroups(_)
    ));
    let nothing = PreparedLaunch::new(&plain, LaunchShape::new([5, 0, 5], [1; 3])).unwrap();
    let report = nothing
        .run(&Arguments::default(), &LaunchOptions::default())
        .unwrap();
    assert_eq!((report.groups, report.status), (0, LaunchStatus::Completed));
    let required = kernel(
        KernelMeta {
            required_local_size: Some([8, 1, 1]),
            ..meta()
        },
        log_ids,
    );
    let result = PreparedLaunch::new(&required, LaunchShape::new([8, 1, 1], [4, 1, 1]));
    assert!(matches!(result, Err(LaunchError::RequiredLocal { .. })));
    let needy = kernel(
        KernelMeta {
            payload_bytes: 16,
            ..meta()
        },
        log_ids,
    );
    let launch = PreparedLaunch::new(&needy, LaunchShape::new([1; 3], [1; 3])).unwrap();
    let result = launch.run(&Arguments::default(), &LaunchOptions::default());
    assert!(matches!(
        result,
        Err(LaunchError::Payload {
            given: 0,
            wanted: 16
        })
    ));
}

#[test]
fn a_status_that_is_none_is_an_error() {
    unsafe extern "C" fn bad(_: *mut GroupCtx, _: u32, _: u32) -> u32 {
        77
    }
    let launch = PreparedLaunch::new(
        &kernel(meta(), bad),
        LaunchShape::new([16, 1, 1], [16, 1, 1]),
    )
    .unwrap();
    let result = launch.run(&Arguments::default(), &LaunchOptions::default());
    assert!(matches!(
        result,
        Err(LaunchError::Status { status: 77, .. })
    ));
}

#[test]
fn one_launch_on_many_threads_at_once() {
    unsafe extern "C" fn add(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
        // SAFETY: called by the launch with a valid group; the payload holds an address.
        unsafe {
            let word = (*(*group).launch).payload.cast::<u64>().read() as *mut u32;
            let lanes: u32 = threads_of(group, first, end)
                .map(|t| t.dispatch_mask.count_ones())
                .sum();
            AtomicU32::from_ptr(word).fetch_add(lanes, Ordering::Relaxed);
        }
        DONE
    }
    let memory = DeviceMemory::new().unwrap();
    let pool = WorkerPool::new(2).unwrap();
    let launch = PreparedLaunch::new(
        &kernel(meta(), add),
        LaunchShape::new([1001, 1, 1], [16, 1, 1]),
    )
    .unwrap();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let (memory, launch, pool) = (&memory, &launch, &pool);
            scope.spawn(move || {
                let buffer = memory.alloc(4).unwrap();
                let payload = Payload::from_bytes(&buffer.address().to_le_bytes()).unwrap();
                let arguments = Arguments {
                    payload,
                    ..Arguments::default()
                };
                let pool = (n % 2 == 0).then_some(pool);
                let options = LaunchOptions {
                    pool,
                    ..LaunchOptions::default()
                };
                for _ in 0..50 {
                    launch.run(&arguments, &options).unwrap();
                }
                assert_eq!(buffer.to_vec_of::<u32>(), [50 * 1001]);
            });
        }
    });
}

/// A launch whose pool is busy does its work alone instead of waiting.
#[test]
fn a_busy_pool_does_not_hold_up_other_launches() {
    unsafe extern "C" fn finish(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
        // SAFETY: called by the launch with a valid group.
        unsafe { threads_of(group, first, end).for_each(|t| t.state = THREAD_DONE) };
        DONE
    }
    let pool = WorkerPool::new(2).unwrap();
    let shape = LaunchShape::new([64, 1, 1], [16, 1, 1]);
    let endless = PreparedLaunch::new(&kernel(meta(), spin), shape).unwrap();
    let short = PreparedLaunch::new(&kernel(meta(), finish), shape).unwrap();
    let interrupter = Interrupter::new();
    std::thread::scope(|scope| {
        let (pool, interrupter, endless) = (&pool, &interrupter, &endless);
        scope.spawn(move || {
            let options = LaunchOptions {
                pool: Some(pool),
                interrupter: Some(interrupter),
                ..LaunchOptions::default()
            };
            let report = endless.run(&Arguments::default(), &options).unwrap();
            assert_eq!(
                (report.status, report.groups),
                (LaunchStatus::Interrupted, 0)
            );
        });
        std::thread::sleep(Duration::from_millis(20));
        for _ in 0..100 {
            let options = LaunchOptions {
                pool: Some(pool),
                ..LaunchOptions::default()
            };
            let report = short.run(&Arguments::default(), &options).unwrap();
            assert_eq!((report.status, report.groups), (LaunchStatus::Completed, 4));
        }
        interrupter.interrupt();
    });
}

/// Kernels round to nearest and keep denormals whatever the host program does.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_hosts_float_mode_does_not_reach_kernels() {
    fn mxcsr() -> u32 {
        let mut value = 0u32;
        // SAFETY: stores a register to a local.
        unsafe { std::arch::asm!("stmxcsr [{0}]", in(reg) &raw mut value) };
        value
    }
    fn set(value: u32) {
        // SAFETY: a valid control word.
        unsafe { std::arch::asm!("ldmxcsr [{0}]", in(reg) &raw const value) };
    }
    unsafe extern "C" fn look(_: *mut GroupCtx, _: u32, _: u32) -> u32 {
        assert_eq!(mxcsr() & 0xFFC0, 0x1F80);
        DONE
    }
    let shape = LaunchShape::new([16, 1, 1], [16, 1, 1]);
    let launch = PreparedLaunch::new(&kernel(meta(), look), shape).unwrap();
    let before = mxcsr();
    // Toward zero, both flushes on.
    set(0xFFC0);
    let report = launch.run(&Arguments::default(), &LaunchOptions::default());
    let after = mxcsr();
    set(before);
    assert_eq!(report.unwrap().groups, 1);
    assert_eq!(after & 0xFFC0, 0xFFC0);
}
