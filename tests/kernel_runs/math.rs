//! Mathematical functions on every device, within the error that OpenCL allows.

use crate::reference::{half, math, ulp};
use crate::support::{SIZES, Target, same_half, sweep};
use visa_test_common::{Rng, full};

/// In a plain run only the last one.
fn few_sizes() -> impl Iterator<Item = (u32, u32)> {
    let all = [SIZES[0], SIZES[1], SIZES[3], sweep()];
    all.into_iter().skip(if full() { 0 } else { 3 })
}

/// Numbers between `low` and `high`: whole and half numbers, values near 1 and of all magnitudes.
fn floats(rng: &mut Rng, count: usize, low: f32, high: f32) -> Vec<f32> {
    let value = |rng: &mut Rng| match rng.word_below(4) {
        0 => rng.float(low, high),
        1 => (rng.float(low.max(-100.0), high.min(100.0)) * 2.0).round() / 2.0,
        2 => 1.0 + rng.float(-0.01, 0.01),
        _ => f32::from_bits(rng.word()),
    };
    (0..count)
        .map(|_| {
            loop {
                let v = value(rng);
                if v >= low && v <= high && (v == 0.0 || v.is_normal()) {
                    break v;
                }
            }
        })
        .collect()
}

/// The same, with special values in front when there is room.
fn with_edges(rng: &mut Rng, count: usize, low: f32, high: f32) -> Vec<f32> {
    let edges = [
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1.0,
        -1.0,
        f32::MAX,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        -f32::from_bits(0x007f_ffff),
    ];
    let mut all = floats(rng, count, low, high);
    if count > 20 {
        all[..edges.len()].copy_from_slice(&edges);
    }
    all
}

on_devices!(math_kernels, "math", run_math);

fn run_math(t: &Target) {
    let mut rng = Rng::new(31);
    for size in few_sizes() {
        precise(t, &mut rng, size);
        native(t, &mut rng, size);
        two_arguments(t, &mut rng, size);
        exact(t, &mut rng, size);
    }
    // All magnitudes of the functions that other kernels rest on.
    let n = 20_000;
    for (f, limit) in [("sqrt", 3.0), ("rsqrt", 2.0), ("exp", 3.0), ("log", 3.0)] {
        let low = if f == "exp" { -100.0 } else { 0.0 };
        let x = floats(&mut rng, n, low, if f == "exp" { 100.0 } else { f32::MAX });
        unary(
            t,
            (n as u32, 256),
            &format!("math_{f}"),
            f,
            &x,
            |got, want, _| ulp::error_f32(got, want) <= limit,
        );
    }
}

fn unary(
    t: &Target,
    size: (u32, u32),
    kernel: &str,
    function: &str,
    x: &[f32],
    close: impl Fn(f32, f64, f32) -> bool,
) {
    let job = t.job(kernel, size).output::<f32>(x.len()).input(x);
    let job = if kernel == "math_sqrt" {
        job.policies()
    } else {
        job
    };
    if let Some(r) = job.run() {
        let function = math::unary(function).expect("a known function");
        let want: Vec<(f64, f32)> = math::math_unary(function, x)
            .into_iter()
            .zip(x.iter().copied())
            .collect();
        r.all(0, &want, |got: f32, (want, x)| close(got, want, x));
    }
}

fn precise(t: &Target, rng: &mut Rng, size: (u32, u32)) {
    let n = size.0 as usize;
    let functions = [
        ("exp", 3.0, -100.0, 100.0),
        ("log", 3.0, 0.0, f32::MAX),
        ("sin", 4.0, -1e6, 1e6),
        ("cos", 4.0, -1e6, 1e6),
        ("sqrt", 3.0, 0.0, f32::MAX),
        ("rsqrt", 2.0, 0.0, f32::MAX),
        ("atan", 5.0, -1e10, 1e10),
    ];
    for (f, limit, low, high) in functions {
        let x = with_edges(rng, n, low, high);
        unary(t, size, &format!("math_{f}"), f, &x, |got, want, _| {
            ulp::error_f32(got, want) <= limit
        });
    }
}

fn native(t: &Target, rng: &mut Rng, size: (u32, u32)) {
    let n = size.0 as usize;
    for (f, low, high) in [
        ("exp2", -120.0, 120.0),
        ("log2", 1e-30, 1e30),
        ("sqrt", 0.0, 1e30),
        ("rsqrt", 1e-30, 1e30),
        ("recip", 1e-30, 1e30),
    ] {
        let x = floats(rng, n, low, high);
        unary(t, size, &format!("native_{f}_"), f, &x, |got, want, x| {
            let near_one = f == "log2" && (x - 1.0).abs() < 0.5;
            if near_one {
                (f64::from(got) - want).abs() <= 2f64.powi(-20)
            } else {
                ulp::error_f32(got, want) <= 4.0
            }
        });
    }
    let x = floats(rng, n, -80.0, 80.0);
    unary(t, size, "native_exp_", "exp", &x, |got, want, x| {
        ulp::error_f32(got, want) <= 4.0 + 2.0 * f64::from(x.abs())
    });
    let x = floats(rng, n, 1e-30, 1e30);
    unary(t, size, "native_log_", "log", &x, |got, want, x| {
        let near_one = (x - 1.0).abs() < 0.5;
        if near_one {
            (f64::from(got) - want).abs() <= 2f64.powi(-20)
        } else {
            ulp::error_f32(got, want) <= 4.0
        }
    });
    for f in ["sin", "cos"] {
        let x = floats(rng, n, -3.0, 3.0);
        unary(t, size, &format!("native_{f}_"), f, &x, |got, want, _| {
            (f64::from(got) - want).abs() <= 2f64.powi(-20)
        });
    }
}

fn two_arguments(t: &Target, rng: &mut Rng, size: (u32, u32)) {
    let n = size.0 as usize;
    let (mut x, mut y) = (floats(rng, n, 0.0, 1e6), floats(rng, n, -12.0, 12.0));
    if n > 20 {
        x[..6].copy_from_slice(&[-2.0, -2.0, 1.0, 0.0, f32::INFINITY, 5.0]);
        y[..6].copy_from_slice(&[3.0, 4.0, 7.5, 2.0, -1.0, 0.0]);
    }
    if let Some(r) = t
        .job("math_pow", size)
        .output::<f32>(n)
        .input(&x)
        .input(&y)
        .run()
    {
        r.ulp(0, &math::math_pow(&x, &y), 16.0);
    }
    let (x, y) = (floats(rng, n, 1e-3, 1e3), floats(rng, n, -8.0, 8.0));
    if let Some(r) = t
        .job("native_powr_", size)
        .output::<f32>(n)
        .input(&x)
        .input(&y)
        .run()
    {
        let want: Vec<(f64, f64)> = math::math_pow(&x, &y)
            .into_iter()
            .zip(
                x.iter()
                    .zip(&y)
                    .map(|(&x, &y)| (f64::from(y) * f64::from(x).log2()).abs()),
            )
            .collect();
        r.all(0, &want, |got: f32, (want, size)| {
            (f64::from(got) - want).abs() <= want.abs() * (8.0 + size) * 2f64.powi(-22)
        });
    }
    let (x, y) = (floats(rng, n, -1e15, 1e15), floats(rng, n, 1e-15, 1e15));
    if let Some(r) = t
        .job("math_divide", size)
        .output::<f32>(n)
        .output::<f32>(n)
        .input(&x)
        .input(&y)
        .run()
    {
        let want = math::math_divide(&x, &y);
        r.ulp(0, &want, 2.5).ulp(1, &want, 2.5);
    }
}

fn exact(t: &Target, rng: &mut Rng, size: (u32, u32)) {
    let n = size.0 as usize;
    let mut inputs = [(); 3].map(|()| with_edges(rng, n, -1e12, 1e12));
    if n > 20 {
        // Special values in all combinations of neighbours.
        inputs[1][..11].rotate_left(1);
        inputs[2][..11].rotate_left(4);
    }
    let [x, y, z] = &inputs;
    if let Some(r) = t
        .job("math_exact", size)
        .output::<f32>(11 * n)
        .input(x)
        .input(y)
        .input(z)
        .run()
    {
        r.exact(0, &math::math_exact(x, y, z));
    }
    if let Some(r) = t
        .job("math_mad", size)
        .output::<f32>(3 * n)
        .input(x)
        .input(y)
        .input(z)
        .run()
    {
        r.all(0, &math::math_mad(x, y, z), |got: f32, either| {
            either
                .iter()
                .any(|&w| got == w || (got.is_nan() && w.is_nan()))
        });
    }
    if let Some(r) = t
        .job("math_classify", size)
        .output::<i32>(8 * n)
        .input(x)
        .run()
    {
        let want: Vec<(i32, bool)> = math::math_classify(x)
            .into_iter()
            .enumerate()
            .map(|(i, w)| (w, i % 8 >= 5 && (!x[i / 8].is_finite() || x[i / 8] == 0.0)))
            .collect();
        r.all(0, &want, |got: i32, (want, open)| open || got == want);
    }
    let v = rng.floats(4 * n, -4.0, 4.0);
    if let Some(r) = t
        .job("math_geometry", size)
        .output::<f32>(6 * n)
        .input(&v)
        .run()
    {
        r.within(0, &math::math_geometry(&v), 1e-5);
    }
}

on_devices!(half_kernels, "math_half", run_half);

fn run_half(t: &Target) {
    let mut rng = Rng::new(32);
    for size in few_sizes() {
        let n = size.0 as usize;
        for (f, low, high) in [
            ("exp2", -14.0, 15.0),
            ("log2", 0.0, 6e4),
            ("sqrt", 0.0, 6e4),
            ("rsqrt", 1e-4, 6e4),
        ] {
            let x: Vec<u16> = floats(&mut rng, n, low, high)
                .into_iter()
                .map(half::from_f32)
                .collect();
            let function = math::unary(f).expect("a known function");
            if let Some(r) = t
                .job(&format!("half_{f}_"), size)
                .output::<u16>(n)
                .input(&x)
                .run()
            {
                r.all(0, &math::half_unary(function, &x), |got: u16, want| {
                    ulp::error_half(half::to_f64(got), want) <= 2.0
                });
            }
        }
        let (x, y): (Vec<u16>, Vec<u16>) = (0..n)
            // Dividends may be anything.
            .map(|_| (rng.word() as u16, half::from_f32(rng.float(0.01, 100.0))))
            .unzip();
        let job = t
            .job("half_exact", size)
            .output::<u16>(5 * n)
            .input(&x)
            .input(&y)
            .policies();
        if let Some(r) = job.run() {
            let want: Vec<(usize, u16)> =
                math::half_exact(&x, &y).into_iter().enumerate().collect();
            r.all(0, &want, |got: u16, (i, want)| {
                if i % 5 == 4 {
                    ulp::distance_half(got, want) <= 1
                } else {
                    same_half(got, want)
                }
            });
        }
        let x = with_edges(&mut rng, n, -7e4, 7e4);
        if let Some(r) = t
            .job("half_store", size)
            .output::<u16>(n)
            .output::<f32>(n)
            .input(&x)
            .run()
        {
            let (halves, back) = math::half_store(&x);
            r.halves(0, &halves).exact(1, &back);
        }
    }
}
