//! Control flow, private memory, contiguous copies and program-scope state, on every device, against the references.

use crate::reference::{call, copy, loops, private, sort, state, switch};
use crate::support::{Target, sizes, sweep};
use visa_jit::Launch;
use visa_test_common::Rng;

fn ints(rng: &mut Rng, count: usize, bound: u32) -> Vec<i32> {
    (0..count)
        .map(|_| rng.word_below(2 * bound) as i32 - bound as i32)
        .collect()
}

on_devices!(loops_kernels, "loops", run_loops);

fn run_loops(t: &Target) {
    let mut rng = Rng::new(11);
    for size in sizes().chain([sweep()]) {
        let n = size.0 as usize;
        let starts: Vec<u32> = (0..n as u32)
            .map(|i| {
                if i % 5 == 0 {
                    i
                } else {
                    rng.word_below(1 << 20)
                }
            })
            .collect();
        if let Some(r) = t
            .job("collatz", size)
            .output::<u32>(n)
            .input(&starts)
            .value(300u32)
            .run()
        {
            r.exact(0, &loops::collatz(&starts, 300));
        }
        let words = rng.words(n);
        if let Some(r) = t.job("nested", size).output::<u32>(n).input(&words).run() {
            r.exact(0, &loops::nested(&words));
        }
        let before = ints(&mut rng, n, 50);
        let values = ints(&mut rng, n, 3000);
        for limit in [0, n / 2, n] {
            let job = t
                .job("early_return", size)
                .in_out(&before)
                .input(&values)
                .value(limit as i32);
            if let Some(r) = job.run() {
                r.exact(0, &loops::early_return(&before, &values, limit));
            }
        }
        let x: Vec<u32> = (0..n)
            .map(|i| {
                if i % 9 == 0 {
                    0
                } else {
                    rng.word() >> rng.word_below(24)
                }
            })
            .collect();
        let y: Vec<u32> = (0..n)
            .map(|i| {
                if i % 7 == 0 {
                    0
                } else {
                    rng.word() >> rng.word_below(24)
                }
            })
            .collect();
        let job = t.job("gcd", size).output::<u32>(n).input(&x).input(&y);
        let job = job.policies();
        if let Some(r) = job.run() {
            r.exact(0, &loops::gcd(&x, &y));
        }
        for length in [0usize, 1, 37] {
            let code = rng.bytes(length);
            let job = t
                .job("machine", size)
                .output::<u32>(2 * n)
                .input(&code)
                .value(length as u32);
            if let Some(r) = job.run() {
                r.exact(0, &loops::machine(n, &code));
            }
        }
        let group = size.1 as usize;
        if n.is_multiple_of(group) {
            for rounds in [0, 1, 6] {
                let job = t
                    .job("divergent_barrier", size)
                    .output::<u32>(n)
                    .input(&words);
                if let Some(r) = job.local_memory(4 * size.1).value(rounds).run() {
                    r.exact(0, &loops::divergent_barrier(&words, group, rounds));
                }
            }
        }
    }
}

on_devices!(switch_kernels, "switch", run_switch);

fn run_switch(t: &Target) {
    let mut rng = Rng::new(12);
    for size in sizes().chain([sweep()]) {
        let n = size.0 as usize;
        let values = ints(&mut rng, n, 1 << 15);
        let dense = ints(&mut rng, n, 12);
        if let Some(r) = t
            .job("switch_dense", size)
            .output::<i32>(n)
            .input(&dense)
            .input(&values)
            .run()
        {
            r.exact(0, &switch::switch_dense(&dense, &values));
        }
        let known = [-1_000_000, -3, 17, 4096, i32::MAX, 0, i32::MIN, 16];
        let sparse: Vec<i32> = (0..n).map(|_| known[rng.word_below(8) as usize]).collect();
        if let Some(r) = t
            .job("switch_sparse", size)
            .output::<i32>(n)
            .input(&sparse)
            .input(&values)
            .run()
        {
            r.exact(0, &switch::switch_sparse(&sparse, &values));
        }
        if let Some(r) = t
            .job("switch_fallthrough", size)
            .output::<i32>(n)
            .input(&dense)
            .run()
        {
            r.exact(0, &switch::switch_fallthrough(&dense));
        }
        let before = ints(&mut rng, n, 1 << 15);
        for selector in [-1, 0, 1, 2, 3, 4, 5, 6, 7] {
            let job = t
                .job("switch_uniform", size)
                .in_out(&before)
                .input(&values)
                .value(selector);
            let job = if selector == 1 { job.policies() } else { job };
            if let Some(r) = job.run() {
                r.exact(0, &switch::switch_uniform(&before, &values, selector));
            }
        }
    }
}

on_devices!(call_kernels, "call", run_call);
on_devices!(stack_call_kernels, "call_stack", run_call);

fn run_call(t: &Target) {
    let mut rng = Rng::new(13);
    for size in sizes().chain([sweep()]) {
        let n = size.0 as usize;
        let values = ints(&mut rng, n, 100_000);
        let job = t.job("call_simple", size).output::<i32>(n).input(&values);
        let job = job.policies();
        if let Some(r) = job.run() {
            r.exact(0, &call::call_simple(&values));
        }
        if let Some(r) = t
            .job("call_nested", size)
            .output::<i32>(2 * n)
            .input(&values)
            .run()
        {
            r.exact(0, &call::call_nested(&values));
        }
        let (x, y) = (rng.floats(n, -100.0, 100.0), rng.floats(n, -100.0, 100.0));
        if let Some(r) = t
            .job("call_float", size)
            .output::<f32>(n)
            .input(&x)
            .input(&y)
            .run()
        {
            r.exact(0, &call::call_float(&x, &y));
        }
    }
}

on_devices!(call_ids_kernel, "call_ids", run_call_ids);

/// Functions that find sizes, local ids and the buffer to print to in memory. Groups of several sizes are refused: there is one in it.
fn run_call_ids(t: &Target) {
    let mut rng = Rng::new(31);
    for (global, local, offset) in [
        ([1, 1], [1, 1], [0, 0]),
        ([7, 1], [7, 1], [0, 0]),
        ([60, 1], [20, 1], [5, 0]),
        ([333, 1], [37, 1], [0, 0]),
        ([12, 10], [6, 5], [0, 0]),
        ([48, 6], [24, 2], [1000, 7]),
        ([5, 3], [9, 4], [0, 0]),
    ] {
        let n = (global[0] * global[1]) as usize;
        let depths = ints(&mut rng, n, 100);
        let [g, l, o] = [global, local, offset].map(|[x, y]| [x, y, 1]);
        let job = t.job_3d("call_ids", g, l).offset([o[0], o[1], 0]);
        let job = job.output::<i32>(n).input(&depths).policies();
        if let Some(r) = job.run() {
            let local = [local[0].min(global[0]), local[1].min(global[1])];
            r.exact(0, &call::call_ids(&depths, global, local, offset));
        }
    }
    for (engine, program) in t.engines() {
        let Ok(kernel) = program.kernel("call_ids") else {
            continue;
        };
        let memory = engine.memory().alloc_from(&[0; 61]).unwrap();
        let launch = Launch::new([61, 1, 1]).local([20, 1, 1]);
        let launch = launch.arg(0, &memory).arg(1, &memory);
        let error = kernel.launch(&launch).unwrap_err().to_string();
        if !error.contains("must be a multiple of the local size") {
            t.fail(error);
        }
        // They print, too: lanes in the order in which they come to the end.
        let Ok(kernel) = program.kernel("print_deep") else {
            t.fail("no kernel `print_deep`".to_owned());
            continue;
        };
        let launch = Launch::new([8, 1, 1]).local([8, 1, 1]).arg(0, &memory);
        let printed = kernel.launch(&launch).unwrap().printed;
        let lines = [0, 4, 1, 5, 2, 6, 3, 7].map(|i| format!("item {i} of 8\n"));
        let printed = String::from_utf8_lossy(&printed);
        if printed != lines.concat() || memory.to_vec_of::<i32>()[..4] != [0, 2, 4, 6] {
            t.fail(format!("printed {printed}"));
        }
    }
}

on_devices!(private_kernels, "private", run_private);

fn run_private(t: &Target) {
    let mut rng = Rng::new(14);
    for size in sizes().chain([sweep()]) {
        let n = size.0 as usize;
        let (values, index) = (ints(&mut rng, n, 1_000_000), ints(&mut rng, n, 1 << 30));
        if let Some(r) = t
            .job("private_small", size)
            .output::<i32>(n)
            .input(&values)
            .input(&index)
            .run()
        {
            r.exact(0, &private::private_small(&values, &index));
        }
        let words = rng.words(n);
        if let Some(r) = t
            .job("constant_table", size)
            .output::<u32>(n)
            .input(&words)
            .run()
        {
            r.exact(0, &private::constant_table(&words));
        }
        let (want, after) = private::generic_pointer(&values);
        let job = t
            .job("generic_pointer", size)
            .output::<i32>(n)
            .in_out(&values)
            .local_memory(4 * size.1);
        let job = job.policies();
        if let Some(r) = job.run() {
            r.exact(0, &want).exact(1, &after);
        }
        if n > 1000 {
            continue;
        }
        let data = ints(&mut rng, 32 * n, 1_000_000);
        if let Some(r) = t.job("private_sort", size).in_out(&data).run() {
            r.exact(0, &sort::sorted_slices(&data, 32));
        }
        let table = rng.words(97);
        if let Some(r) = t
            .job("private_large", size)
            .output::<u32>(n)
            .input(&table)
            .value(97u32)
            .run()
        {
            r.exact(0, &private::private_large(n, &table));
        }
        let bytes = rng.bytes(64 * n);
        if let Some(r) = t
            .job("private_bytes", size)
            .output::<u8>(64 * n)
            .input(&bytes)
            .run()
        {
            r.exact(0, &private::private_bytes(&bytes));
        }
    }
}

on_devices!(copy_kernels, "block_copy", run_copy);

fn run_copy(t: &Target) {
    let mut rng = Rng::new(15);
    for size in sizes().chain([sweep()]) {
        let n = size.0 as usize;
        let plain = [
            ("copy16", 64),
            ("copy16_char", 16),
            ("copy16_short", 32),
            ("copy16_long", 128),
            ("copy8", 32),
            ("copy3", 6),
        ];
        for (kernel, each) in plain {
            let bytes = rng.bytes(each * n);
            if let Some(r) = t
                .job(kernel, size)
                .output::<u8>(each * n)
                .input(&bytes)
                .run()
            {
                r.exact(0, &bytes);
            }
        }
        for shift in [0usize, 1, 3] {
            let bytes = rng.bytes(4 * n + shift);
            let job = t
                .job("copy_unaligned", size)
                .output::<u8>(4 * n)
                .input(&bytes)
                .value(shift as u32);
            if let Some(r) = job.run() {
                r.exact(0, &copy::copy_unaligned(&bytes, shift, 4 * n));
            }
        }
        let records = rng.bytes(32 * n);
        let job = t
            .job("copy_struct", size)
            .output::<u8>(32 * n)
            .input(&records)
            .value(0x8000_0001u32);
        if let Some(r) = job.run() {
            // Byte 1 of a record is padding.
            let want: Vec<(usize, u8)> = copy::copy_struct(&records, 0x8000_0001)
                .into_iter()
                .enumerate()
                .collect();
            r.all(0, &want, |got: u8, (i, want)| i % 32 == 1 || got == want);
        }
        let cells = rng.floats(16 * n, -1.0, 1.0);
        let job = t
            .job("transpose4", size)
            .output::<f32>(16 * n)
            .input(&cells);
        let job = job.policies();
        if let Some(r) = job.run() {
            r.exact(0, &copy::transpose4(&cells));
        }
        let (a, b, c, d) = (0x9cu8, 0xface_u16, 0xdead_beefu32, 0x0123_4567_89ab_cdefu64);
        let job = t
            .job("fill", size)
            .output::<u8>(n)
            .output::<u16>(n)
            .output::<u32>(n)
            .output::<u64>(n);
        if let Some(r) = job.value(a).value(b).value(c).value(d).run() {
            r.exact(0, &vec![a; n])
                .exact(1, &vec![b; n])
                .exact(2, &vec![c; n])
                .exact(3, &vec![d; n]);
        }
    }
}

on_devices!(state_kernels, "global_state", run_state);

fn run_state(t: &Target) {
    let mut rng = Rng::new(16);
    let mut counted = Vec::new();
    // State outlives a launch, so every launch of `global_count` counts.
    for size in sizes().chain([sweep()]) {
        let n = size.0 as usize;
        let values = rng.floats(n, -10.0, 10.0);
        let job = t.job("global_count", size).output::<f32>(n).input(&values);
        let job = job.policies();
        if let Some(r) = job.run() {
            r.exact(0, &state::global_count(&values));
        }
        counted.extend(vec![n; if size == sweep() { 4 } else { 1 }]);
        let job = t.job("global_read", size).output::<i32>(n);
        let job = job.policies();
        if let Some(r) = job.run() {
            r.exact(0, &state::global_read(n, &counted));
        }
    }
}
