//! Whole algorithms without communication between work-items, on every device, against the references.

use crate::reference::fractal::{self, View};
use crate::reference::options::{self, Market};
use crate::reference::sort::sorted;
use crate::reference::{gather, linear, nbody, sha256, sort, stencil};
use crate::support::{Target, large, sizes, sweep};
use visa_jit::Launch;
use visa_test_common::{Rng, full};

on_devices!(saxpy_kernels, "saxpy", run_saxpy);

fn run_saxpy(t: &Target) {
    let mut rng = Rng::new(1);
    for size in sizes().chain([sweep(), large()]) {
        let n = size.0 as usize;
        let mut x = rng.floats(n, -100.0, 100.0);
        let y = rng.floats(n, -100.0, 100.0);
        let edges = [
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NAN,
            f32::MIN_POSITIVE / 4.0,
            f32::MAX,
        ];
        for (v, e) in x.iter_mut().skip(3).step_by(5).zip(edges) {
            *v = e;
        }
        let (a, b) = (2.5f32, -0.375f32);
        t.job("saxpy", size)
            .in_out(&y)
            .input(&x)
            .value(a)
            .policies()
            .check(|r| {
                r.exact(0, &linear::saxpy(&y, &x, a));
            });
        t.job("saxpy_scaled", size)
            .in_out(&y)
            .input(&x)
            .value(a)
            .value(b)
            .check(|r| {
                r.exact(0, &linear::saxpy_scaled(&y, &x, a, b));
            });
        for limit in [0, n / 3, n.saturating_sub(1), n] {
            // Buffers of exactly `limit` elements: items beyond touch nothing.
            let (y, x) = (&y[..limit], &x[..limit]);
            t.job("saxpy_guarded", size)
                .in_out(y)
                .input(x)
                .value(a)
                .value(limit as i32)
                .policies()
                .check(|r| {
                    r.exact(0, &linear::saxpy_guarded(y, x, a, limit));
                });
        }
    }
}

on_devices!(gather_kernels, "gather", run_gather);

fn run_gather(t: &Target) {
    let mut rng = Rng::new(2);
    for size in sizes().chain([sweep(), large()]) {
        let n = size.0 as usize;
        for entries in [1usize, 301] {
            let index: Vec<u32> = (0..n).map(|_| rng.word_below(entries as u32)).collect();
            let table = rng.floats(entries, -1e6, 1e6);
            t.job("gather", size)
                .output::<f32>(n)
                .input(&table)
                .input(&index)
                .policies()
                .check(|r| {
                    r.exact(0, &gather::gather(&table, &index));
                });
            let before = rng.floats(n, -1.0, 1.0);
            t.job("gather_odd_masked", size)
                .in_out(&before)
                .input(&table)
                .input(&index)
                .policies()
                .check(|r| {
                    r.exact(0, &gather::gather_odd_masked(&before, &table, &index));
                });
            let wide: Vec<u64> = (0..entries).map(|_| rng.bits()).collect();
            t.job("gather_wide", size)
                .output::<u64>(n)
                .input(&wide)
                .input(&index)
                .check(|r| {
                    r.exact(0, &gather::gather(&wide, &index));
                });
            let narrow8 = rng.bytes(entries);
            let narrow16: Vec<u16> = (0..entries).map(|_| rng.word() as u16).collect();
            t.job("gather_narrow", size)
                .output::<u8>(n)
                .output::<u16>(n)
                .input(&narrow8)
                .input(&narrow16)
                .input(&index)
                .policies()
                .check(|r| {
                    r.exact(0, &gather::gather(&narrow8, &index));
                    r.exact(1, &gather::gather(&narrow16, &index));
                });
            let vectors = rng.floats(4 * entries, -1e6, 1e6);
            t.job("gather4", size)
                .output::<f32>(4 * n)
                .input(&vectors)
                .input(&index)
                .policies()
                .check(|r| {
                    r.exact(0, &gather::gather4(&vectors, &index));
                });
        }
        let values = rng.words(n);
        let permutation = rng.permutation(size.0);
        t.job("scatter", size)
            .output::<u32>(n)
            .input(&values)
            .input(&permutation)
            .policies()
            .check(|r| {
                r.exact(0, &gather::scatter(&values, &permutation));
            });
        for steps in [0, 1, 19] {
            t.job("chase", size)
                .output::<u32>(n)
                .input(&permutation)
                .value(steps)
                .policies()
                .check(|r| {
                    r.exact(0, &gather::chase(&permutation, n, steps));
                });
        }
    }
}

on_devices!(kept_kernels, "kept", run_kept);

fn run_kept(t: &Target) {
    let mut rng = Rng::new(12);
    for size in sizes().chain([sweep()]) {
        let n = size.0 as usize;
        // Blocks of lanes that all stay, that all go, and mixed ones.
        let keep: Vec<u32> = (0..n)
            .map(|i| match i / 64 % 3 {
                0 => rng.word_below(2) * 7,
                blocks => blocks as u32 - 1,
            })
            .collect();
        let index: Vec<u32> = (0..n).map(|_| rng.word_below(301)).collect();
        let (table, before) = (rng.floats(301, -1e6, 1e6), rng.floats(n, -1.0, 1.0));
        t.job("gather_kept", size)
            .in_out(&before)
            .input(&table)
            .input(&index)
            .input(&keep)
            .policies()
            .check(|r| {
                r.exact(0, &gather::gather_kept(&before, &table, &index, &keep));
            });
        let (values, before) = (rng.words(n), rng.words(n));
        let permutation = rng.permutation(size.0);
        t.job("scatter_kept", size)
            .in_out(&before)
            .input(&values)
            .input(&permutation)
            .input(&keep)
            .policies()
            .check(|r| {
                r.exact(
                    0,
                    &gather::scatter_kept(&before, &values, &permutation, &keep),
                );
            });
    }
}

on_devices!(sgemm_kernels, "sgemm", run_sgemm);

fn run_sgemm(t: &Target) {
    let mut rng = Rng::new(3);
    let mut run = |kernel: &str, [n, m, k]: [usize; 3], local: [u32; 2], columns: usize| {
        let a = rng.floats(m * k, -2.0, 2.0);
        let b = rng.floats(k * n, -2.0, 2.0);
        let global = [(n / columns) as u32, m as u32, 1];
        let job = t
            .job_3d(kernel, global, [local[0], local[1], 1])
            .output::<f32>(m * n)
            .input(&a)
            .input(&b)
            .value((n / columns) as i32)
            .value(k as i32);
        job.every_way(n == 48).check(|r| {
            r.exact(0, &linear::sgemm(&a, &b, n, k));
        });
    };
    for (size, local) in [
        ([1, 1, 1], [1, 1]),
        ([17, 5, 9], [17, 1]),
        ([17, 5, 9], [8, 2]),
        ([33, 20, 31], [16, 4]),
        ([64, 16, 8], [32, 2]),
        ([48, 32, 16], [16, 16]),
    ] {
        run("sgemm_naive", size, local, 1);
        run("sgemm_wide", [size[0] * 4, size[1], size[2]], local, 4);
    }
    for size in [[16, 16, 16], [48, 32, 64], [64, 16, 128]] {
        run("sgemm_tiled", size, [16, 16], 1);
    }
}

on_devices!(gemm_tile_kernels, "gemm_tile", run_gemm_tile);

/// Tiles at the edges of matrices read zeros and write nothing outside.
fn run_gemm_tile(t: &Target) {
    let mut rng = Rng::new(31);
    for [m, n, k] in [
        [8usize, 16, 32],
        [1, 1, 1],
        [13, 24, 40],
        [21, 40, 100],
        [64, 48, 64],
    ] {
        let global = [16 * n.div_ceil(16) as u32, m.div_ceil(8) as u32, 1];
        let all = m == 13;
        let mut half = |len: usize| -> Vec<u16> {
            let floats = rng.floats(len, -2.0, 2.0);
            floats.iter().map(|f| (f.to_bits() >> 16) as u16).collect()
        };
        let (a, b) = (half(m * k), half(k * n));
        t.job_3d("gemm_bf16", global, [16, 1, 1])
            .output::<f32>(m * n)
            .input(&a)
            .input(&b)
            .value(m as i32)
            .value(n as i32)
            .value(k as i32)
            .every_way(all)
            .check(|r| {
                r.exact(0, &linear::gemm_bf16(&a, &b, n, k));
            });
        let mut bytes =
            |len: usize| -> Vec<i8> { (0..len).map(|_| rng.word_below(256) as i8).collect() };
        let (a, b) = (bytes(m * k), bytes(k * n));
        t.job_3d("gemm_int8", global, [16, 1, 1])
            .output::<i32>(m * n)
            .input(&a)
            .input(&b)
            .value(m as i32)
            .value(n as i32)
            .value(k as i32)
            .every_way(all)
            .check(|r| {
                r.exact(0, &linear::gemm_int8(&a, &b, n, k));
            });
    }
}

/// Sizes of pictures, and group sizes: of one row, of several, not dividing the picture.
const PICTURES: [([u32; 2], [u32; 2]); 5] = [
    ([1, 1], [1, 1]),
    ([33, 7], [33, 1]),
    ([40, 9], [8, 4]),
    ([64, 20], [32, 2]),
    ([100, 31], [10, 3]),
];

on_devices!(mandelbrot_kernels, "mandelbrot", run_mandelbrot);

fn run_mandelbrot(t: &Target) {
    for ([width, height], [lx, ly]) in PICTURES {
        let (w, h) = (width as usize, height as usize);
        let float = View {
            x0: -2.1f32,
            y0: -1.3,
            dx: 2.8 / width as f32,
            dy: 2.6 / height as f32,
        };
        let fixed = View {
            x0: (f64::from(float.x0) * f64::from(1 << 28)) as i32,
            y0: (f64::from(float.y0) * f64::from(1 << 28)) as i32,
            dx: (f64::from(float.dx) * f64::from(1 << 28)) as i32,
            dy: (f64::from(float.dy) * f64::from(1 << 28)) as i32,
        };
        for limit in [0, 1, 60] {
            let job = t
                .job_3d("mandelbrot", [width, height, 1], [lx, ly, 1])
                .output::<i32>(w * h)
                .value(float.x0)
                .value(float.y0)
                .value(float.dx)
                .value(float.dy)
                .value(width as i32)
                .value(limit);
            let all = limit == 60 && width == 64;
            job.every_way(all).check(|r| {
                r.exact(0, &fractal::mandelbrot(float, w, h, limit));
            });
            let job = t
                .job_3d("mandelbrot_fixed", [width, height, 1], [lx, ly, 1])
                .output::<i32>(w * h)
                .value(fixed.x0)
                .value(fixed.y0)
                .value(fixed.dx)
                .value(fixed.dy)
                .value(width as i32)
                .value(limit);
            job.every_way(all).check(|r| {
                r.exact(0, &fractal::mandelbrot_fixed(fixed, w, h, limit));
            });
        }
    }
}

on_devices!(stencil_kernels, "stencil", run_stencil);

fn run_stencil(t: &Target) {
    let mut rng = Rng::new(4);
    for ([width, height], [lx, ly]) in PICTURES {
        let (w, h) = (width as usize, height as usize);
        let size = w * h;
        // Once exactly, once with whole groups over the edge.
        let over = [width.next_multiple_of(lx), height.next_multiple_of(ly)];
        for [gx, gy] in [[width, height], over] {
            let all = width == 100 && gx == over[0];
            let ints: Vec<i32> = (0..size)
                .map(|_| rng.word_below(2000) as i32 - 1000)
                .collect();
            let job = |name| t.job_3d(name, [gx, gy, 1], [lx, ly, 1]);
            let mean = job("stencil_mean")
                .output::<i32>(size)
                .input(&ints)
                .value(width as i32)
                .value(height as i32);
            mean.every_way(all).check(|r| {
                r.exact(0, &stencil::stencil_mean(&ints, w, h));
            });
            let floats = rng.floats(size, -10.0, 10.0);
            let weights: [f32; 9] = rng.floats(9, -1.0, 1.0).try_into().unwrap();
            let weighted = job("stencil_weighted")
                .output::<f32>(size)
                .input(&floats)
                .input(&weights)
                .value(width as i32)
                .value(height as i32);
            weighted.every_way(all).check(|r| {
                r.exact(0, &stencil::stencil_weighted(&floats, &weights, w, h));
            });
            let cells: Vec<u8> = rng.bytes(size).iter().map(|b| b & 1).collect();
            job("life")
                .output::<u8>(size)
                .input(&cells)
                .value(width as i32)
                .value(height as i32)
                .every_way(all)
                .check(|r| {
                    r.exact(0, &stencil::life(&cells, w, h));
                });
        }
    }
}

on_devices!(black_scholes_kernels, "black_scholes", run_black_scholes);

fn run_black_scholes(t: &Target) {
    let mut rng = Rng::new(5);
    for size in sizes().chain([sweep()]) {
        let n = size.0 as usize;
        let spot = rng.floats(n, 5.0, 30.0);
        let strike = rng.floats(n, 1.0, 100.0);
        let years = rng.floats(n, 0.25, 10.0);
        let (rate, volatility) = (0.02f32, 0.3f32);
        let market = Market {
            rate: rate.into(),
            volatility: volatility.into(),
        };
        let (calls, puts) = options::black_scholes(&spot, &strike, &years, market);
        let limits: Vec<f64> = spot
            .iter()
            .zip(&strike)
            .map(|(&s, &x)| 2e-5 * (f64::from(s) + f64::from(x)))
            .collect();
        let with = |want: &[f64]| -> Vec<(f64, f64)> {
            want.iter().copied().zip(limits.iter().copied()).collect()
        };
        let (calls, puts) = (with(&calls), with(&puts));
        for kernel in ["black_scholes", "black_scholes_native"] {
            let near = |got: f32, (want, limit): (f64, f64)| (f64::from(got) - want).abs() <= limit;
            t.job(kernel, size)
                .output::<f32>(n)
                .output::<f32>(n)
                .input(&spot)
                .input(&strike)
                .input(&years)
                .value(rate)
                .value(volatility)
                .check(|r| {
                    r.all(0, &calls, near);
                    r.all(1, &puts, near);
                });
        }
    }
}

on_devices!(nbody_kernels, "nbody", run_nbody);

fn run_nbody(t: &Target) {
    let mut rng = Rng::new(6);
    for (n, local) in [(1u32, 1u32), (7, 7), (64, 16), (99, 33), (256, 64)] {
        let count = n as usize * 4;
        let position: Vec<f32> = (0..count)
            .map(|i| {
                if i % 4 == 3 {
                    rng.float(0.1, 3.0)
                } else {
                    rng.float(-5.0, 5.0)
                }
            })
            .collect();
        let velocity: Vec<f32> = (0..count)
            .map(|i| {
                if i % 4 == 3 {
                    9.0
                } else {
                    rng.float(-1.0, 1.0)
                }
            })
            .collect();
        let (dt, softening) = (0.01f32, 0.05f32);
        let (places, speeds) = nbody::nbody(&position, &velocity, dt.into(), softening.into());
        let limit = |want: &[f64]| 1e-4 * want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for tiled in [false, true] {
            let name = if tiled { "nbody_tiled" } else { "nbody" };
            let job = t
                .job(name, (n, local))
                .output::<f32>(count)
                .in_out(&velocity)
                .input(&position)
                .value(n)
                .value(dt)
                .value(softening);
            let job = if tiled {
                job.local_memory(16 * local)
            } else {
                job
            };
            job.every_way(n == 99).check(|r| {
                r.within(0, &places, limit(&places));
                r.within(1, &speeds, limit(&speeds));
            });
        }
    }
}

on_devices!(sha256_kernel, "sha256", run_sha256);

fn run_sha256(t: &Target) {
    let mut rng = Rng::new(7);
    let sizes = [
        ((0, 1), 1u32),
        ((1, 1), 1),
        ((1, 1), 40),
        ((7, 7), 2),
        ((33, 33), 3),
        (sweep(), 2),
    ];
    // It is long, and each size means that it is compiled for it.
    for (size, blocks) in sizes.into_iter().skip(if full() { 0 } else { 4 }) {
        let n = size.0 as usize;
        let messages: Vec<u32> = (0..n)
            .flat_map(|_| {
                // Any length that pads to a given number of blocks.
                let length = 64 * (blocks - 1) + rng.word_below(56);
                sha256::pad(&rng.bytes(length as usize))
            })
            .collect();
        t.job("sha256", size)
            .output::<u32>(8 * n)
            .input(&messages)
            .value(blocks)
            .policies()
            .check(|r| {
                r.exact(0, &sha256::sha256(&messages, blocks as usize));
            });
    }
}

on_devices!(bitonic_kernels, "bitonic", run_bitonic);

fn run_bitonic(t: &Target) {
    let mut rng = Rng::new(8);
    for (n, local) in [(1u32, 1u32), (2, 2), (64, 16), (256, 128), (2048, 256)] {
        bitonic_steps(t, &rng.words(n as usize), local, 1 + (n > 256) as usize);
        let data: Vec<i32> = rng.words(n as usize).iter().map(|&v| v as i32).collect();
        let job = t
            .job("bitonic_group", (n, local))
            .in_out(&data)
            .local_memory(4 * local);
        job.every_way(n == 256).check(|r| {
            r.exact(0, &sort::sorted_slices(&data, local as usize));
        });
    }
}

/// Sorts with one launch a step, as a host would; small arrays are compared after each.
fn bitonic_steps(t: &Target, data: &[u32], local: u32, threads: usize) {
    let Some(kernel) = t.kernel("bitonic_step") else {
        return;
    };
    let n = data.len();
    let what = || format!("{} bitonic_step size {n} local {local}", t.device);
    let buffer = t.engine.memory().alloc_from(data).unwrap();
    let mut want = data.to_vec();
    let mut k = 2;
    while k <= n {
        let mut j = k / 2;
        while j > 0 {
            let launch = Launch::new([n as u32, 1, 1])
                .local([local, 1, 1])
                .threads(threads)
                .arg(0, &buffer)
                .arg(1, j as u32)
                .arg(2, k as u32);
            match kernel.launch(&launch) {
                Ok(report) if report.fault_count == 0 => {}
                other => return t.fail(format!("{}: {other:?}", what())),
            }
            if n <= 256 {
                want = sort::bitonic_step(&want, j, k);
                if buffer.to_vec_of::<u32>() != want {
                    return t.fail(format!("{}: wrong after j {j} k {k}", what()));
                }
            }
            j /= 2;
        }
        k *= 2;
    }
    if buffer.to_vec_of::<u32>() != sorted(data) {
        t.fail(format!("{}: not sorted", what()));
    }
}
