//! What belongs to a whole program: `printf`, `assert`, variables and tables at program scope, pointers of every kind.

use crate::reference::{pointers, print, tables};
use crate::support::{Target, sweep};
use visa_jit::{Arg, Launch};
use visa_runtime::LaunchStatus;
use visa_test_common::Rng;

on_devices!(printf, "printf", run_printf);

fn run_printf(t: &Target) {
    for size in [(0, 1), (1, 1), (7, 7), (50, 20)] {
        let n = size.0;
        let want: Vec<u32> = (0..n).collect();
        t.job("print_hello", size)
            .output::<u32>(n as usize)
            // Groups are printed in their order, however many threads are asked for.
            .threads(true)
            .check(|r| {
                r.exact(0, &want).prints(&print::hello(n));
            });
    }
    let ints = [0, 1, -1, 42, i32::MAX, i32::MIN];
    t.job("print_integers", (6, 3))
        .input(&ints)
        .value(-5_000_000_000_i64)
        .value(-3_i8)
        .value(-1000_i16)
        .check(|r| {
            r.prints(print::INTEGERS);
        });
    t.job("print_floats", (4, 4))
        .input(&[0.0, -1.5, 123_456.0, f32::INFINITY])
        .check(|r| {
            r.prints(print::FLOATS);
        });
    t.job("print_strings", (3, 3)).value(b'z').check(|r| {
        r.prints(print::STRINGS);
    });
    t.job("print_vectors", (2, 2))
        .input(&[1.0, -2.5, 0.0, 1e10, 0.1, 0.2, 0.3, 0.4_f32])
        .input(&[1, 2, 3, 4, -1, 255, 256, i32::MIN])
        .check(|r| {
            r.prints(print::VECTORS);
        });
    for (groups, items) in [(1, 5), (3, 40)] {
        t.job("print_loop", (groups * items, items))
            .local_memory(4 * items)
            .check(|r| {
                let simd = t.kernel("print_loop").map_or(32, |k| k.simd());
                r.prints(&print::repeated(groups, items, simd));
            });
    }
}

on_devices!(assertions, "assert", run_assertions);

fn run_assertions(t: &Target) {
    for name in ["assert_range", "assert_in_function"] {
        for size in [(1, 1), (33, 33), (160, 32)] {
            let values: Vec<i32> = (0..size.0 as i32).map(|i| i % 7).collect();
            let want: Vec<i32> = values.iter().map(|v| v * 2).collect();
            let job = t.job(name, size).output::<i32>(values.len());
            job.input(&values).value(6_i32).threads(true).check(|r| {
                r.exact(0, &want);
            });
        }
        for (engine, program) in t.engines() {
            let values = engine.memory().alloc_from(&[9, 7, 8, 9, 9_i32]).unwrap();
            let out = engine.memory().alloc_from(&[0; 5]).unwrap();
            let launch = Launch::new([5, 1, 1]).local([5, 1, 1]);
            let launch = launch.arg(0, &out).arg(1, &values);
            let kernel = program.kernel(name).unwrap();
            // The buffer is as good as new for another launch.
            for (limit, failing) in [(8, &[0, 3, 4][..]), (9, &[]), (8, &[0, 3, 4])] {
                let launch = launch
                    .clone()
                    .arg(2, Arg::Bytes(i32::to_le_bytes(limit).into()));
                let report = kernel.launch(&launch).unwrap();
                let said = report.failed_assertions;
                let said = said.map(|text| String::from_utf8(text).unwrap());
                let want = (!failing.is_empty()).then(|| print::assertions(name, failing));
                let status = match want {
                    Some(_) => LaunchStatus::Faulted,
                    None => LaunchStatus::Completed,
                };
                if (&said, report.status) != (&want, status) {
                    t.fail(format!("{name}, {limit}: {:?}, {said:?}", report.status));
                }
            }
        }
    }
}

on_devices!(program_tables, "tables", run_tables);

fn run_tables(t: &Target) {
    let mut rng = Rng::new(40);
    for size in [(1, 1), (33, 33), sweep()] {
        let n = size.0 as usize;
        let values: Vec<u32> = (0..n).map(|_| rng.word()).collect();
        t.job("table_read", size)
            .output::<u32>(4 * n)
            .input(&values)
            .check(|r| {
                r.exact(0, &tables::table_read(&values));
            });
        let steps: Vec<i32> = (0..n).map(|_| rng.word() as i32 & 7).collect();
        t.job("table_walk", size)
            .output::<i32>(3 * n)
            .input(&steps)
            .check(|r| {
                r.exact(0, &tables::table_walk(&steps));
            });
    }
    // What one launch writes, the next one reads; each engine runs these once.
    let values: Vec<u32> = (0..100).map(|_| rng.word()).collect();
    let counted: [(u32, &[u32]); 2] = [(1000, &values), (2000, &values[..37])];
    for (k, (_, values)) in counted.iter().enumerate() {
        t.job("table_count", (values.len() as u32, 16))
            .input(values)
            .check(|_| ());
        t.job("table_sums", (1, 1)).output::<u32>(4).check(|r| {
            r.exact(0, &tables::table_sums(&counted[..=k]));
        });
    }
}

on_devices!(memory_pointers, "pointers", run_pointers);

fn run_pointers(t: &Target) {
    let mut rng = Rng::new(41);
    for size in [(1, 1), (33, 33), (61, 20), sweep()] {
        let (n, local) = (size.0 as usize, size.1 as usize);
        let values: Vec<i32> = (0..n).map(|_| rng.word() as i32).collect();
        let (out, after) = pointers::generic_both(&values, local);
        t.job("generic_both", size)
            .output::<i32>(2 * n)
            .in_out(&values)
            .local_memory(4 * size.1)
            .check(|r| {
                r.exact(0, &out).exact(1, &after);
            });
        let permutation = rng.permutation(n as u32);
        let a: Vec<i8> = values.iter().map(|v| *v as i8).collect();
        let b: Vec<i16> = values.iter().map(|v| (v >> 8) as i16).collect();
        let (bytes, words) = pointers::arrays(&a, &b, &permutation);
        t.job("arrays", size)
            .input(&a)
            .input(&b)
            .output::<u8>(n)
            .output::<u16>(n)
            .input(&permutation)
            .check(|r| {
                r.exact(2, &bytes).exact(3, &words);
            });
        let input: Vec<u32> = (0..3 * n).map(|_| rng.word() >> 1).collect();
        t.job(
            "group_copy_strided",
            (n.next_multiple_of(local) as u32, size.1),
        )
        .output::<u32>(n.next_multiple_of(local))
        .input(&[&input[..], &vec![0; 3 * local]].concat())
        .value(3_u32)
        .local_memory(4 * size.1)
        .check(|r| {
            let padded = [&input[..], &vec![0; 3 * local]].concat();
            let want = pointers::group_copy_strided(&padded, 3, n.next_multiple_of(local));
            r.exact(0, &want);
        });
    }
    for size in [(4, 4), (192, 64), (512, 128)] {
        let input = rng.floats(size.0 as usize, -4.0, 4.0);
        t.job("group_copy", size)
            .output::<f32>(size.0 as usize)
            .input(&input)
            .local_memory(8 * size.1)
            .check(|r| {
                r.exact(0, &pointers::group_copy(&input, size.1 as usize));
            });
    }
    chase(t, &mut rng);
}

/// A list in device memory: the first launch writes the addresses, the second follows them. Each engine has its
/// own memory and so its own addresses, which is why this is no [`Job`](crate::support::Job).
fn chase(t: &Target, rng: &mut Rng) {
    let n = 200;
    let next = rng.permutation(n as u32);
    let steps: Vec<u32> = (0..n).map(|_| rng.word() % 20).collect();
    let want = pointers::chase_sum(&next, &steps);
    for (engine, program) in t.engines() {
        let memory = engine.memory();
        let nodes = memory.alloc(32 * n as u64).unwrap();
        let out = memory.alloc(4 * n as u64).unwrap();
        let launch = |kernel: &str, launch: Launch| {
            let report = program.kernel(kernel).unwrap().launch(&launch).unwrap();
            assert_eq!(report.fault_count, 0, "{} {kernel}", t.device);
        };
        let shape = || Launch::new([n as u32, 1, 1]).local([40, 1, 1]);
        let first = shape().arg(0, &nodes);
        launch(
            "chase_link",
            first.arg(1, memory.alloc_from(&next).unwrap()),
        );
        let second = shape().arg(0, &out).arg(1, &nodes);
        launch(
            "chase_sum",
            second.arg(2, memory.alloc_from(&steps).unwrap()),
        );
        assert_eq!(out.to_vec_of::<i32>(), want, "{}", t.device);
    }
}
