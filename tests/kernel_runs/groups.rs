//! Work-items that meet: local memory, barriers, sub-groups, atomics; and where they are. On every device, against the
//! references.

use crate::reference::ndrange::Shape;
use crate::reference::{atomics, half, histogram, ndrange, reduce, scan, subgroup};
use crate::support::{Same, Target, large, sizes, sweep};
use visa_test_common::Rng;

/// Whole groups of powers of two.
const POWERS: [(u32, u32); 7] = [
    (0, 16),
    (1, 1),
    (8, 8),
    (64, 16),
    (96, 32),
    (1024, 128),
    (1024, 1024),
];

/// The power that runs every way.
const POWER: (u32, u32) = (1024, 128);

fn ints(rng: &mut Rng, count: usize) -> Vec<i32> {
    rng.words(count).iter().map(|&v| v as i32).collect()
}

fn small_floats(rng: &mut Rng, count: usize) -> Vec<f32> {
    (0..count)
        .map(|_| rng.word_below(201) as f32 - 100.0)
        .collect()
}

on_devices!(reduction_kernels, "reduction", run_reduction);

fn run_reduction(t: &Target) {
    let mut rng = Rng::new(21);
    for size @ (n, local) in POWERS {
        let groups = (n / local) as usize;
        let floats = rng.floats(n as usize, -10.0, 10.0);
        let job = t
            .job("reduce_sum", size)
            .output::<f32>(groups)
            .input(&floats)
            .local_memory(4 * local);
        job.every_way(size == POWER).check(|r| {
            r.exact(0, &reduce::reduce_sum(&floats, local as usize));
        });
        // Few values, so that there are ties.
        let values: Vec<i32> = (0..n).map(|_| rng.word_below(40) as i32 - 50).collect();
        let (best, value) = reduce::reduce_argmax(&values, local as usize);
        t.job("reduce_argmax", size)
            .output::<u32>(groups)
            .output::<i32>(groups)
            .input(&values)
            .local_memory(4 * local)
            .local_memory(4 * local)
            .every_way(size == POWER)
            .check(|r| {
                r.exact(0, &best);
                r.exact(1, &value);
            });
    }
    for (groups, n) in [(1usize, 0usize), (1, 1), (1, 64), (3, 100), (5, 3001)] {
        let values = ints(&mut rng, n);
        let job = t
            .job("reduce_sum_fixed", (64 * groups as u32, 64))
            .output::<i32>(groups)
            .input(&values)
            .value(n as u32);
        job.every_way(groups == 5).check(|r| {
            r.exact(0, &reduce::reduce_sum_fixed(&values, groups, n));
        });
    }
}

on_devices!(scan_kernels, "scan", run_scan);

fn run_scan(t: &Target) {
    let mut rng = Rng::new(22);
    for size @ (n, local) in sizes().chain([sweep(), large()]) {
        let (items, group) = (n as usize, local as usize);
        let values = ints(&mut rng, items);
        t.job("scan_inclusive", size)
            .output::<i32>(items)
            .input(&values)
            .local_memory(4 * local)
            .policies()
            .check(|r| {
                r.exact(0, &scan::scan_inclusive(&values, group));
            });
        let want = scan::scan_builtin(&values, group);
        t.job("scan_builtin", size)
            .output::<i32>(items)
            .output::<i32>(items)
            .output::<i32>(items)
            .output::<i32>(items)
            .input(&values)
            .check(|r| {
                r.exact(0, &want.inclusive);
                r.exact(1, &want.exclusive);
                r.exact(2, &want.total);
                r.exact(3, &want.largest);
            });
        for bias in [-2i32, 0, 2] {
            let votes: Vec<i32> = (0..n).map(|_| rng.word_below(4) as i32 + bias).collect();
            let [any, all, first] = scan::vote_builtin(&votes, group);
            t.job("vote_builtin", size)
                .output::<i32>(items)
                .output::<i32>(items)
                .output::<i32>(items)
                .input(&votes)
                .check(|r| {
                    r.exact(0, &any);
                    r.exact(1, &all);
                    r.exact(2, &first);
                });
        }
    }
    for size @ (n, local) in POWERS {
        let values = rng.words(n as usize);
        t.job("scan_exclusive", size)
            .output::<u32>(n as usize)
            .input(&values)
            .local_memory(4 * local)
            .every_way(size == POWER)
            .check(|r| {
                r.exact(0, &scan::scan_exclusive(&values, local as usize));
            });
    }
}

on_devices!(histogram_kernels, "histogram", run_histogram);

fn run_histogram(t: &Target) {
    let mut rng = Rng::new(23);
    for size @ (items, local) in sizes().chain([sweep(), large()]) {
        for n in [0, items as usize / 2, items as usize] {
            let input = rng.bytes(n);
            let bins = rng.words(256).iter().map(|b| b >> 8).collect::<Vec<_>>();
            t.job("histogram_global", size)
                .in_out(&bins)
                .input(&input)
                .value(n as u32)
                .policies()
                .check(|r| {
                    r.exact(0, &histogram::histogram(&bins, &input, n));
                });
        }
        // These stride: more values than items.
        let n = if items == 0 {
            0
        } else {
            2 * items as usize + 5
        };
        let input = rng.bytes(n);
        let bins = rng.words(256).iter().map(|b| b >> 8).collect::<Vec<_>>();
        let want = histogram::histogram(&bins, &input, n);
        t.job("histogram_local_array", size)
            .in_out(&bins)
            .input(&input)
            .value(n as u32)
            .policies()
            .check(|r| {
                r.exact(0, &want);
            });
        for count in [1u32, 100, 256] {
            let bins = &bins[..count as usize];
            t.job("histogram_local_pointer", size)
                .in_out(bins)
                .input(&input)
                .value(n as u32)
                .local_memory(4 * count)
                .value(count)
                .check(|r| {
                    r.exact(0, &histogram::histogram(bins, &input, n));
                });
        }
        if items % local == 0 {
            let groups = (items / local) as usize;
            t.job("histogram_local_mixed", size)
                .in_out(&bins)
                .output::<u32>(groups)
                .input(&input)
                .value(n as u32)
                .local_memory(4 * 128)
                .local_memory(4 * 128)
                .every_way(items == 1000)
                .check(|r| {
                    r.exact(0, &want);
                    r.exact(
                        1,
                        &histogram::histogram_sums(&input, n, local as usize, groups),
                    );
                });
        }
    }
}

/// Whole sub-groups of 16.
const SIXTEENS: [(u32, u32); 5] = [(0, 16), (16, 16), (144, 48), (192, 64), (2048, 256)];

on_devices!(subgroup_kernels, "subgroup", run_subgroup);

fn run_subgroup(t: &Target) {
    let mut rng = Rng::new(24);
    if let Some(kernel) = t.kernel("subgroup_ids") {
        let simd = kernel.simd() as usize;
        for size @ (n, local) in [(1, 1), (40, 40), (99, 33), (192, 64), (50, 10), (512, 256)] {
            t.job("subgroup_ids", size)
                .output::<u32>(6 * n as usize)
                .check(|r| {
                    r.exact(0, &subgroup::subgroup_ids(n as usize, local as usize, simd));
                });
        }
    }
    for size @ (n, _) in SIXTEENS {
        let all = n == 192;
        let n = n as usize;
        let values = ints(&mut rng, n);
        let job = t
            .job("subgroup_reduce", size)
            .output::<i32>(7 * n)
            .input(&values);
        job.every_way(all).check(|r| {
            r.exact(0, &subgroup::subgroup_reduce(&values));
        });
        let floats = small_floats(&mut rng, n);
        let [sum, smallest, largest] = subgroup::subgroup_reduce_float(&floats);
        t.job("subgroup_reduce_float", size)
            .output::<f32>(n)
            .output::<f32>(n)
            .output::<f32>(n)
            .input(&floats)
            .every_way(all)
            .check(|r| {
                r.exact(0, &sum);
                r.exact(1, &smallest);
                r.exact(2, &largest);
            });
        let longs: Vec<i64> = (0..n).map(|_| rng.bits() as i64).collect();
        let (sum, largest) = subgroup::subgroup_reduce_long(&longs);
        t.job("subgroup_reduce_long", size)
            .output::<i64>(n)
            .output::<u64>(n)
            .input(&longs)
            .every_way(all)
            .check(|r| {
                r.exact(0, &sum);
                r.exact(1, &largest);
            });
        let words = rng.words(n);
        let index = rng.words(n);
        for lane in [0u32, 7, 31] {
            let job = t
                .job("subgroup_shuffle", size)
                .output::<u32>(5 * n)
                .input(&words)
                .input(&index)
                .value(lane);
            job.every_way(all && lane == 7).check(|r| {
                r.exact(
                    0,
                    &subgroup::subgroup_shuffle(&words, &index, lane as usize),
                );
            });
        }
        let wide: Vec<u64> = (0..n).map(|_| rng.bits()).collect();
        t.job("subgroup_shuffle_wide", size)
            .output::<u64>(n)
            .input(&wide)
            .input(&index)
            .every_way(all)
            .check(|r| {
                r.exact(0, &subgroup::subgroup_shuffle_wide(&wide, &index));
            });
        for bias in [0i32, -1, -14, -16] {
            let votes: Vec<i32> = (0..n)
                .map(|_| 1 + rng.word_below(16) as i32 + bias)
                .collect();
            let [any, all] = subgroup::subgroup_vote(&votes);
            t.job("subgroup_vote", size)
                .output::<i32>(n)
                .output::<i32>(n)
                .input(&votes)
                .check(|r| {
                    r.exact(0, &any);
                    r.exact(1, &all);
                });
        }
        let blocks = rng.words(2 * n);
        t.job("subgroup_block", size)
            .output::<u32>(2 * n)
            .input(&blocks)
            .every_way(all)
            .check(|r| {
                r.exact(0, &subgroup::subgroup_block(&blocks));
            });
        t.job("subgroup_divergent", size)
            .output::<i32>(n)
            .input(&values)
            .every_way(all)
            .check(|r| {
                r.exact(0, &subgroup::subgroup_divergent(&values));
            });
    }
}

on_devices!(ndrange_kernels, "ndrange", run_ndrange);

fn run_ndrange(t: &Target) {
    let shapes = [
        (1, [0, 1, 1], [1, 1, 1], [0; 3]),
        (1, [1, 1, 1], [1, 1, 1], [0; 3]),
        (1, [100, 1, 1], [25, 1, 1], [7, 0, 0]),
        (1, [61, 1, 1], [20, 1, 1], [1000, 0, 0]),
        (1, [1000, 1, 1], [256, 1, 1], [0; 3]),
        (2, [32, 6, 1], [32, 2, 1], [0; 3]),
        (2, [40, 7, 1], [8, 4, 1], [3, 5, 0]),
        (2, [5, 3, 1], [4, 2, 1], [10, 0, 0]),
        (2, [64, 4, 1], [16, 2, 1], [0; 3]),
        (3, [7, 5, 3], [4, 2, 2], [0; 3]),
        (3, [12, 6, 4], [4, 3, 2], [1, 2, 3]),
        (3, [2, 3, 64], [1, 1, 32], [0, 0, 9]),
    ];
    for (dimensions, global, local, offset) in shapes {
        let shape = Shape {
            dimensions,
            global,
            local,
            offset,
        };
        let items = global.iter().product::<u32>() as usize;
        let job = |name, offset| t.job_3d(name, global, local).offset(offset);
        let every = [[40, 7, 1], [12, 6, 4]].contains(&global);
        job("ndrange", offset)
            .output::<u32>(26 * items)
            .every_way(every)
            .check(|r| {
                r.exact(0, &ndrange::ndrange(shape));
            });
        if dimensions == 1 {
            job("ndrange_1d", offset).output::<u32>(items).check(|r| {
                r.exact(0, &ndrange::ndrange_1d(shape));
            });
            let groups = global[0].div_ceil(local[0]) as usize;
            job("group_only", [0; 3])
                .output::<u32>(groups)
                .threads(true)
                .check(|r| {
                    r.exact(0, &ndrange::group_only(shape));
                });
        }
        let centred = Shape {
            offset: [0; 3],
            ..shape
        };
        if dimensions <= 2 {
            job("ndrange_2d", [0; 3])
                .output::<u32>(items)
                .value(global[0])
                .check(|r| {
                    r.exact(0, &ndrange::ndrange_2d(centred));
                });
        }
        let job = job("ndrange_3d", [0; 3])
            .output::<u32>(items)
            .value(global[0])
            .value(global[1]);
        job.every_way(every).check(|r| {
            r.exact(0, &ndrange::ndrange_3d(centred));
        });
    }
}

on_devices!(empty_kernels, "empty", run_empty);

fn run_empty(t: &Target) {
    for size in sizes().chain([sweep()]) {
        t.job("empty", size).policies().check(|_| {});
        let untouched = [0x1234_5678u32; 5];
        t.job("empty_with_arguments", size)
            .input(&untouched)
            .local_memory(64)
            .value(1.0f32)
            .value(7u64)
            .value(3i8)
            .policies()
            .check(|_| {});
    }
}

on_devices!(atomics_kernels, "atomics", run_atomics);

fn run_atomics(t: &Target) {
    let mut rng = Rng::new(25);
    for size @ (n, local) in sizes().chain([sweep(), large()]) {
        let n = n as usize;
        let words = rng.words(n);
        let cells: [u32; 8] = rng.words(8).try_into().unwrap();
        t.job("atomics_shared", size)
            .in_out(&cells)
            .input(&words)
            .policies()
            .check(|r| {
                r.exact(0, &atomics::atomics_shared(&cells, &words));
            });
        let values = ints(&mut rng, n);
        let cells: [i32; 4] = ints(&mut rng, 4).try_into().unwrap();
        t.job("atomics_shared_signed", size)
            .in_out(&cells)
            .input(&values)
            .check(|r| {
                r.exact(0, &atomics::atomics_shared_signed(&cells, &values));
            });
        let longs: Vec<u64> = (0..n).map(|_| rng.bits()).collect();
        let cells: [u64; 4] = std::array::from_fn(|_| rng.bits());
        t.job("atomics_shared_long", size)
            .in_out(&cells)
            .input(&longs)
            .check(|r| {
                r.exact(0, &atomics::atomics_shared_long(&cells, &longs));
            });
        own_cells(t, size, &mut rng);
        let floats = small_floats(&mut rng, n);
        t.job("atomics_float", size)
            .in_out(&[3.0f32, -1e6])
            .input(&floats)
            .check(|r| {
                r.exact(0, &atomics::atomics_float([3.0, -1e6], &floats));
            });
        t.job("atomics_local_own", size)
            .output::<u32>(4 * n)
            .input(&words)
            .local_memory(4 * local)
            .policies()
            .check(|r| {
                r.exact(0, &atomics::atomics_local_own(&words, local as usize));
            });
        let last = n as u32 % local;
        if n > 0 && local >= 10 && (last == 0 || last >= 10) {
            t.job("atomics_local", size)
                .output::<i32>(10 * n.div_ceil(local as usize))
                .input(&values)
                .check(|r| {
                    r.exact(0, &atomics::atomics_local(&values, local as usize));
                });
        }
        for workers in [1, 2] {
            order_decides(t, size, &values, workers, &mut rng);
        }
    }
}

/// Each item has cells of its own, so old values are known.
fn own_cells(t: &Target, size: (u32, u32), rng: &mut Rng) {
    let n = size.0 as usize;
    let values = ints(rng, n);
    let mut cells = ints(rng, 12 * n);
    for i in 0..n {
        // Half of the exchanges find what they expect, the others do not.
        cells[12 * i + 5] = if i % 2 == 0 { i as i32 } else { -1 };
        cells[12 * i + 6] = if i % 3 == 0 { !(i as i32) } else { 5 };
    }
    let (after, old) = atomics::atomics_own(&cells, &values);
    t.job("atomics_own", size)
        .in_out(&cells)
        .output::<i32>(12 * n)
        .input(&values)
        .policies()
        .check(|r| {
            r.exact(0, &after);
            r.exact(1, &old);
        });
    let wide = |v: i32| i64::from(v) << 20 ^ i64::from(v);
    let values: Vec<i64> = values.iter().map(|&v| wide(v)).collect();
    let mut cells: Vec<i64> = cells.iter().map(|&v| wide(v)).collect();
    for i in 0..n {
        cells[12 * i + 5] = if i % 2 == 0 {
            i as i64
        } else {
            i as i64 | 1 << 40
        };
        cells[12 * i + 6] = if i % 3 == 0 { !(i as i64) } else { 5 };
    }
    let (after, old) = atomics::atomics_own(&cells, &values);
    t.job("atomics_own_long", size)
        .in_out(&cells)
        .output::<i64>(12 * n)
        .input(&values)
        .check(|r| {
            r.exact(0, &after);
            r.exact(1, &old);
        });
}

/// Kernels whose results depend on the order of items in a known way.
fn order_decides(t: &Target, size: (u32, u32), values: &[i32], workers: usize, rng: &mut Rng) {
    let tickets = rng.permutation(size.0 + 4);
    let (before, tickets) = tickets.split_at(4);
    let before: [u32; 4] = before.try_into().unwrap();
    t.job("atomics_exchange", size)
        .in_out(&before)
        .output::<u32>(tickets.len())
        .input(tickets)
        .threads(false)
        .workers(workers)
        .check(|r| {
            let after: [u32; 4] = r.get(0).try_into().unwrap();
            if !atomics::exchange_conserves(&before, &after, &r.get::<u32>(1), tickets) {
                r.fail("tickets were lost or doubled");
            }
        });
    let (counters, slots) = atomics::atomics_ordered([0, -5], values);
    t.job("atomics_ordered", size)
        .in_out(&[0, -5])
        .output::<i32>(slots.len())
        .input(values)
        .threads(false)
        .workers(workers)
        .check(|r| {
            r.exact(0, &counters);
            let mut got = r.get::<i32>(1);
            got.sort_unstable();
            if got != slots {
                r.fail("slots differ");
            }
        });
}

on_devices!(float_atomics_kernels, "float_atomics", run_float_atomics);

fn run_float_atomics(t: &Target) {
    floats_meet(t, "float", |v| v as f32);
    floats_meet(t, "double", |v| v);
    floats_meet(t, "half", half::from_f64);
}

/// Atomics of one type of floats, which `from` makes of whole numbers. Kernels that a device does not have are skipped.
fn floats_meet<T: Same>(t: &Target, name: &str, from: fn(f64) -> T) {
    let mut rng = Rng::new(26);
    let narrow = |values: &[f64]| -> Vec<T> { values.iter().map(|&v| from(v)).collect() };
    let adds = t.program.kernel(&format!("add_own_{name}")).is_ok();
    let there = t.program.kernel(&format!("min_max_own_{name}")).is_ok();
    for size @ (n, local) in sizes().chain([sweep()]).filter(|_| there) {
        let items = n as usize;
        let mut floats = |count: usize| -> Vec<f64> {
            let all = small_floats(&mut rng, count).into_iter();
            all.map(f64::from).collect()
        };
        let values = floats(items);
        let input = narrow(&values);
        let job = |kernel: &str| t.job(&format!("{kernel}_{name}"), size);
        let own = |kernel: &str, cells: &[f64], after: &[f64]| {
            job(kernel)
                .in_out(&narrow(cells))
                .output::<T>(cells.len())
                .input(&input)
                .policies()
                .check(|r| {
                    r.exact(0, &narrow(after));
                    r.exact(1, &narrow(cells));
                });
        };
        let (pairs, fours) = (floats(2 * items), floats(4 * items));
        own(
            "min_max_own",
            &fours,
            &atomics::min_max_own(&fours, &values),
        );
        let shared = |kernel: &str, cells: &[f64], after: &[f64]| {
            let job = job(kernel).in_out(&narrow(cells)).input(&input);
            job.threads(true).check(|r| {
                r.exact(0, &narrow(after));
            });
        };
        let cells = [1.0, 2.0];
        let after = atomics::min_max_shared(cells, &values);
        shared("min_max_shared", &cells, &after);
        if adds {
            own("add_own", &pairs, &atomics::add_own(&pairs, &values));
            let cells = [3.0, -7.0, 1.0, 2.0];
            let after = atomics::add_shared(cells, &values);
            shared("add_shared", &cells, &after);
        }
        let last = n % local;
        if local < 4 || n == 0 || (last != 0 && last < 4) {
            continue;
        }
        let in_groups = |kernel: &str, want: &[f64]| {
            job(kernel)
                .output::<T>(want.len())
                .input(&input)
                .check(|r| {
                    r.exact(0, &narrow(want));
                });
        };
        let group = local as usize;
        in_groups("min_max_local", &atomics::min_max_local(&values, group));
        if adds {
            in_groups("add_local", &atomics::add_local(&values, group));
        }
    }
}
