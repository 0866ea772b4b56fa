//! Code that runs groups which follow, and rows of them, in one call.

use crate::common::{kernel, meta, threads_of};
use visa_runtime::abi::{GroupCtx, Status};
use visa_runtime::{
    Arguments, DeviceMemory, KernelMeta, LaunchOptions, LaunchReport, LaunchShape, LaunchStatus,
    Payload, PreparedLaunch, Schedule, WorkerPool,
};

/// Words of a log before its records: groups that ran, calls, the group that faults.
const HEAD: usize = 3;

/// Words of a record: x, y, z, threads, lanes of the last of them, number of the call.
const RECORD: usize = 6;

/// What compiled code does around its threads. Logs each group.
unsafe extern "C" fn rows(group: *mut GroupCtx, first: u32, end: u32) -> u32 {
    // SAFETY: called by the launch with a valid group; the payload holds the log's address.
    unsafe {
        let log = (*(*group).launch).payload.cast::<u64>().read() as *mut u32;
        let g = &mut *group;
        let last = g.r0[1] + g.following;
        loop {
            if *log == *log.add(2) {
                return Status::Fault as u32;
            }
            let lanes = threads_of(group, first, end).last().unwrap().dispatch_mask;
            let record = [
                g.r0[1],
                g.r0[6],
                g.r0[7],
                g.thread_count,
                lanes,
                *log.add(1),
            ];
            let at = log.add(HEAD + RECORD * *log as usize);
            at.cast::<[u32; RECORD]>().write(record);
            *log += 1;
            if !next(g, last) {
                *log.add(1) += 1;
                return Status::Done as u32;
            }
        }
    }
}

/// Goes on with the next group of a call whose rows end at `last`; false if there is none.
fn next(g: &mut GroupCtx, last: u32) -> bool {
    if g.r0[1] != last {
        g.r0[1] += 1;
        return true;
    }
    if g.rows == 0 {
        return false;
    }
    (g.rows, g.r0[1]) = (g.rows - 1, 0);
    g.r0[6] += 1;
    if g.r0[6] == g.height {
        (g.r0[6], g.r0[7]) = (0, g.r0[7] + 1);
    }
    true
}

/// A launch up to a group that faults, and what is logged of each group.
fn run(
    shape: LaunchShape,
    fault: u32,
    options: &LaunchOptions<'_>,
) -> (LaunchReport, Vec<[u32; RECORD]>) {
    let meta = KernelMeta {
        runs_following: true,
        ..meta()
    };
    let launch = PreparedLaunch::new(&kernel(meta, rows), shape).unwrap();
    let memory = DeviceMemory::new().unwrap();
    let bytes = 4 * (HEAD as u64 + RECORD as u64 * launch.groups());
    let log = memory.alloc(bytes).unwrap();
    log.write(8, &fault.to_le_bytes()).unwrap();
    let arguments = Arguments {
        payload: Payload::from_bytes(&log.address().to_le_bytes()).unwrap(),
        ..Arguments::default()
    };
    let report = launch.run(&arguments, options).unwrap();
    let words = log.to_vec_of::<u32>();
    let records = words[HEAD..].chunks_exact(RECORD);
    let records = records.take(words[0] as usize);
    (report, records.map(|r| r.try_into().unwrap()).collect())
}

/// Global and local sizes, and calls that run all groups.
const SHAPES: [([u32; 3], [u32; 3], u32); 16] = [
    ([16, 1, 1], [16, 1, 1], 1),
    ([32, 3, 1], [16, 1, 1], 1),
    ([128, 128, 1], [64, 1, 1], 4),
    // Rows of 33: one in a call, as a second whole one would be too many.
    ([33, 4, 1], [1, 1, 1], 4),
    ([1, 70, 3], [1, 1, 1], 4),
    ([2, 3, 4], [1, 1, 1], 1),
    ([5000, 2, 1], [16, 1, 1], 12),
    // The last group of each row is a smaller one, in a call of its own.
    ([40, 3, 2], [16, 1, 1], 12),
    // Each row is one smaller group.
    ([9, 3, 2], [16, 1, 1], 1),
    // The last row of each layer is of smaller groups.
    ([32, 5, 3], [16, 2, 1], 6),
    ([32, 1, 3], [16, 2, 1], 1),
    // The last layer is.
    ([32, 4, 5], [16, 2, 2], 2),
    ([32, 4, 1], [16, 2, 2], 1),
    ([16, 5, 5], [16, 2, 2], 6),
    ([17, 5, 5], [16, 2, 2], 18),
    ([9, 1, 70], [16, 2, 1], 2),
];

#[test]
fn calls_run_rows_of_groups_of_one_kind() {
    for (global, local, calls) in SHAPES {
        let shape = LaunchShape::new(global, local);
        let (report, ran) = run(shape, u32::MAX, &LaunchOptions::default());
        let [width, height, depth] = shape.groups();
        let ids = (0..depth)
            .flat_map(|z| (0..height).flat_map(move |y| (0..width).map(move |x| [x, y, z])));
        let mut threads = 0;
        let mut all = ran.iter();
        for id in ids {
            let size: [u32; 3] =
                std::array::from_fn(|d| local[d].min(global[d] - id[d] * local[d]));
            let items: u32 = size.iter().product();
            let count = items.div_ceil(16);
            let lanes = u32::MAX >> (32 - (items - 16 * (count - 1)));
            let found = all.next().map(|r| &r[..5]);
            let [x, y, z] = id;
            assert_eq!(found, Some(&[x, y, z, count, lanes][..]), "{shape:?}");
            threads += u64::from(count);
        }
        assert_eq!(report.status, LaunchStatus::Completed);
        assert_eq!((report.groups, report.threads), (ran.len() as u64, threads));
        let made = ran.last().unwrap()[5] + 1;
        assert_eq!(made, calls, "{shape:?}");
        for call in 0..made {
            assert!(ran.iter().filter(|r| r[5] == call).count() <= 64);
        }
    }
}

/// Groups before the one that ends a launch are counted, wherever in a call it is.
#[test]
fn a_fault_in_a_row_that_follows() {
    for (global, local, _) in SHAPES {
        let shape = LaunchShape::new(global, local);
        let (_, all) = run(shape, u32::MAX, &LaunchOptions::default());
        for fault in [0, 1, 2, 3, 5, 8, 63, 64, 65, 100, all.len() - 1] {
            let Some(before) = all.get(..fault) else {
                continue;
            };
            let (report, ran) = run(shape, fault as u32, &LaunchOptions::default());
            assert!(ran.iter().zip(before).all(|(a, b)| a[..5] == b[..5]));
            if fault < all.len() {
                assert_eq!(report.status, LaunchStatus::Faulted);
            }
            let threads: u32 = before.iter().map(|r| r[3]).sum();
            let expected = (fault as u64, u64::from(threads));
            assert_eq!(
                (report.groups, report.threads),
                expected,
                "{shape:?} {fault}"
            );
        }
    }
}

/// Workers take parts of a launch that begin and end anywhere in a row; other orders have no rows.
#[test]
fn parts_of_a_launch_run_each_group_once() {
    let pool = WorkerPool::new(3).unwrap();
    let alone = |schedule| LaunchOptions {
        schedule,
        ..LaunchOptions::default()
    };
    let together = LaunchOptions {
        pool: Some(&pool),
        ..LaunchOptions::default()
    };
    for (global, local, _) in SHAPES {
        let shape = LaunchShape::new(global, local);
        let (usual, _) = run(shape, u32::MAX, &alone(None));
        let (other, ran) = run(shape, u32::MAX, &alone(Some(Schedule { seed: 1 })));
        assert_eq!(other, usual);
        assert!(ran.iter().enumerate().all(|(n, r)| r[5] as usize == n));
    }
    let counted = crate::common::kernel(
        KernelMeta {
            runs_following: true,
            ..meta()
        },
        count,
    );
    for (global, local, _) in SHAPES {
        let launch = PreparedLaunch::new(&counted, LaunchShape::new(global, local)).unwrap();
        for _ in 0..8 {
            let memory = DeviceMemory::new().unwrap();
            let seen = memory.alloc(launch.groups()).unwrap();
            let at = [seen.address(), launch.shape().groups()[0].into()];
            let at: Vec<u8> = at.iter().flat_map(|word| word.to_le_bytes()).collect();
            let arguments = Arguments {
                payload: Payload::from_bytes(&at).unwrap(),
                ..Arguments::default()
            };
            let report = launch.run(&arguments, &together).unwrap();
            assert_eq!(report.groups, launch.groups());
            assert!(seen.to_vec().iter().all(|&times| times == 1));
        }
    }
}

/// Counts each group in a byte of its own.
unsafe extern "C" fn count(group: *mut GroupCtx, _first: u32, _end: u32) -> u32 {
    // SAFETY: called by the launch with a valid group; the payload holds an address with a byte for each group.
    unsafe {
        let g = &mut *group;
        let [seen, width] = (*g.launch).payload.cast::<[u64; 2]>().read();
        let last = g.r0[1] + g.following;
        loop {
            let row = u64::from(g.r0[7] * g.height + g.r0[6]);
            let at = (seen + row * width + u64::from(g.r0[1])) as *mut u8;
            *at += 1;
            if !next(g, last) {
                return Status::Done as u32;
            }
        }
    }
}
