//! Speed of generated code and of generating it. Run with
//! `cargo test --release --test backend_cranelift speed -- --ignored --nocapture`.

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::rig::{Guarded, NONE, Rig, SPEED, function, install};
use visa_jit::backend::CodegenOptions;
use visa_jit::backend::cranelift::CraneliftBackend;
use visa_jit::backend::{Backend, CodegenEffort};
use visa_jit::ssa::Function;
use visa_runtime::abi::Entry;

const ITERATIONS: u32 = 256;

/// Escape-time loop; `select_all` keeps the coordinates of finished lanes too.
fn mandelbrot(n: u16, select_all: bool) -> String {
    let (v, m, w) = (
        format!("<{n} x f32>"),
        format!("<{n} x i1>"),
        format!("<{n} x i32>"),
    );
    let (nx, ny) = if select_all {
        ("%40", "%41")
    } else {
        ("%31", "%34")
    };
    let mut text = format!(
        r#"function "mandelbrot" simd {n} frame {frame}

bb0:
  %0: {m} = input.dispatchmask
  %1: <{n} x i16> = input.localids.x[0]
  %2: {w} = zext %1
  %3: {v} = sitof %2
  %4: f32 = input.payload[0]
  %5: {v} = splat %4
  %6: {v} = mul_ %3, %5
  %7: f32 = input.payload[4]
  %8: {v} = splat %7
  %9: {v} = vconst [0.0 ...]
  %10: {w} = vconst [0 ...]
  %11: {w} = vconst [1 ...]
  %12: {v} = vconst [4.0 ...]
  %13: i32 = const 0
  %14: i32 = const 1
  %15: i32 = const {ITERATIONS}
  jump bb1(%0, %9, %9, %10, %13)
bb1(%20: {m}, %21: {v}, %22: {v}, %23: {w}, %24: i32):
  poll
  %25: {v} = mul_ %21, %21
  %26: {v} = mul_ %22, %22
  %27: {v} = add_ %25, %26
  %28: {m} = fcmp.le %27, %12
  %29: {m} = and %20, %28
  %19: i1 = maskany %29
  branch %19, bb2, bb3(%23)
bb2:
  %30: {v} = sub_ %25, %26
  %31: {v} = add_ %30, %6
  %32: {v} = mul_ %21, %22
  %33: {v} = add_ %32, %32
  %34: {v} = add_ %33, %8
"#,
        frame = 4 * n
    )
    .replace("mul_", "fmul")
    .replace("add_", "fadd")
    .replace("sub_", "fsub");
    if select_all {
        let _ = write!(
            text,
            "  %40: {v} = select %29, %31, %21\n  %41: {v} = select %29, %34, %22\n"
        );
    }
    let _ = write!(
        text,
        r#"  %42: {w} = add %23, %11
  %43: {w} = select %29, %42, %23
  %44: i32 = add %24, %14
  %45: i1 = icmp.ult %44, %15
  branch %45, bb1(%29, {nx}, {ny}, %43, %44), bb3(%43)
bb3(%50: {w}):
  framestore[0] %50
  return
"#
    );
    text
}

/// `ids` is an operation that gives the position of each lane in its thread.
fn saxpy(n: u16, full: bool, ids: &str) -> String {
    let (v, w, m) = (
        format!("<{n} x f32>"),
        format!("<{n} x i32>"),
        format!("<{n} x i1>"),
    );
    let mask = if full {
        "vconst [1 ...]".to_owned()
    } else {
        "input.dispatchmask".to_owned()
    };
    format!(
        r#"function "saxpy" simd {n}
site 0 = read surface 4 "gather4_scaled" line 12
site 1 = read surface 4 "gather4_scaled" line 13
site 2 = write surface 4 "scatter4_scaled" line 14

bb0:
  %0: {m} = {mask}
  %1: <{n} x i16> = {ids}
  %2: {w} = zext %1
  %3: i32 = input.r0[5]
  %4: {w} = splat %3
  %5: {w} = add %2, %4
  %6: i32 = const 2
  %7: {w} = shl %5, %6
  %8: i32 = const 0
  %9: i32 = const 1
  %10: {w} = load.surface.i32x1[0] %0, %7, %8
  %11: {w} = load.surface.i32x1[1] %0, %7, %9
  %12: {v} = bitcast %10
  %13: {v} = bitcast %11
  %14: f32 = input.payload[0]
  %15: {v} = splat %14
  %16: {v} = fma %12, %15, %13
  %17: {w} = bitcast %16
  store.surface.i32x1[2] %0, %7, %9, %17
  return
"#
    )
}

fn best(rounds: u32, mut body: impl FnMut()) -> Duration {
    (0..rounds)
        .map(|_| {
            let start = Instant::now();
            body();
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn restart(rig: &mut Rig) {
    for t in &mut rig.threads {
        t.state = 0;
    }
}

fn time_mandelbrot(entry: Entry, n: u16) -> f64 {
    let mut rig = Rig::new(8, 4 * usize::from(n));
    let mut payload = (-0.02f32).to_le_bytes().to_vec();
    payload.extend(0.1f32.to_le_bytes());
    rig.payload.write(&payload);
    for t in &mut rig.threads {
        t.dispatch_mask = ((1u64 << n) - 1) as u32;
    }
    let time = best(30, || {
        restart(&mut rig);
        rig.run(entry);
    });
    let work = 8.0 * f64::from(n) * f64::from(ITERATIONS);
    time.as_secs_f64() * 1e9 / work
}

fn time_saxpy(entry: Entry, n: u16, lanes: u32) -> f64 {
    const THREADS: usize = 64;
    let mut rig = Rig::new(THREADS, 0);
    let elements = THREADS * usize::from(n) + 32;
    let (x, y) = (Guarded::new(4 * elements), Guarded::new(4 * elements));
    rig.bind(0, &x);
    rig.bind(1, &y);
    for (i, t) in rig.threads.iter_mut().enumerate() {
        t.dispatch_mask = ((1u64 << n) - 1) as u32 & lanes;
        t.r0_5 = i as u32 * u32::from(n);
    }
    let time = best(300, || {
        restart(&mut rig);
        rig.run(entry);
    });
    time.as_secs_f64() * 1e9 / (THREADS as f64 * f64::from(n))
}

fn compile_time(f: &Function, options: &CodegenOptions) -> (f64, usize) {
    let backend = CraneliftBackend::host().unwrap();
    let mut size = 0;
    let time = best(10, || {
        size = backend.compile(f, options).unwrap().code.len()
    });
    (time.as_secs_f64() * 1e6, size)
}

#[test]
#[ignore = "measures"]
fn speed() {
    let report = |name: &str, f: &Function, run: &dyn Fn(Entry) -> f64| {
        for options in [NONE, SPEED] {
            if let Ok(dir) = std::env::var("VISA_DUMP") {
                let file = format!(
                    "{dir}/{}-{:?}",
                    name.replace(' ', "-"),
                    options.tuning.codegen
                );
                std::fs::write(file, crate::rig::compile(f, &options).code).unwrap();
            }
            let code = install(f, &options);
            let ns = run(code.entry());
            let (us, size) = compile_time(f, &options);
            let insts: usize = f.order.iter().map(|&b| f.block(b).insts.len()).sum();
            let level = if options.tuning.codegen == CodegenEffort::Speed {
                "speed"
            } else {
                "none"
            };
            println!(
                "{name:24} {level:6} {ns:7.3} ns/element  {us:7.0} us  {:6.1} us/instruction  {size} bytes",
                us / insts as f64
            );
        }
    };
    for n in [8, 16, 32] {
        for all in [false, true] {
            let f = function(&mandelbrot(n, all));
            let name = format!("mandelbrot {n} {}", if all { "selected" } else { "free" });
            report(&name, &f, &|entry| time_mandelbrot(entry, n));
        }
        let count: Vec<String> = (0..n).map(|i| i.to_string()).collect();
        let count = format!("vconst [{}]", count.join(", "));
        let shuffled: Vec<String> = (0..n).map(|i| (i * 5 % n).to_string()).collect();
        let shuffled = format!("vconst [{}]", shuffled.join(", "));
        for (name, full, ids, lanes) in [
            ("tested ids", false, "input.localids.x[0]", u32::MAX),
            ("known ids", false, &*count, u32::MAX),
            ("half of lanes", false, &*count, 0x5555_5555),
            ("full mask", true, &*count, u32::MAX),
            ("any order", false, &*shuffled, u32::MAX),
        ] {
            let f = function(&saxpy(n, full, ids));
            let name = format!("saxpy {n} {name}");
            report(&name, &f, &|entry| time_saxpy(entry, n, lanes));
        }
    }
}
