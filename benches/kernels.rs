//! Compile time, launch overhead and throughput on checked-in zebins, next to the same work in C.
//!
//! `cargo bench --bench kernels [DEVICE]`: each measurement and its C counterpart are run in turn, A B A B …, and the
//! median of the ratios is printed, so that a change of the machine's speed hits both. The C side is built with
//! `clang -O3 -march=native -mprefer-vector-width=512` when a clang is installed and left out otherwise.

mod support;

use std::ffi::c_int;

use libloading::{Library, Symbol};
use visa_jit::{Engine, Launch, Prepared, Program};

use support::{ROUNDS, c_library, median, paired, root, time};

/// The C loops with vectors of a given number of bits, if a clang is there to build them.
fn c_loops(bits: u32) -> Option<Library> {
    let width = format!("-mprefer-vector-width={bits}");
    c_library("benches/loops.c", &[&width, "-ffp-contract=fast"])
}

struct Bench {
    engine: Engine,
    device: String,
    c: Option<Library>,
    /// The same in vectors as wide as Cranelift has: what the default code generator can come near to.
    narrow: Option<Library>,
}

impl Bench {
    fn program(&self, name: &str) -> Program {
        let path = root(&format!("tests/kernels/bin/{}/{name}.zebin", self.device));
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self.engine
            .program_from_zebin(&bytes, None)
            .expect("checked-in zebin")
    }

    fn report(&self, what: &str, prepared: &Prepared, c: Option<&mut dyn FnMut()>) {
        let mut run = || {
            prepared.run().expect("launch");
        };
        match c {
            Some(c) => {
                let (ours, theirs, ratio) = paired(&mut run, c);
                println!("{what:<28} {ours:>10.2} us   C {theirs:>10.2} us   ratio {ratio:.2}");
            }
            None => {
                run();
                let t = median((0..ROUNDS).map(|_| time(&mut run)).collect());
                println!("{what:<28} {t:>10.2} us");
            }
        }
    }

    fn launch_overhead(&self) {
        let program = self.program("empty");
        let launch = Launch::new([16, 1, 1]).local([16, 1, 1]);
        let prepared = program
            .kernel("empty")
            .and_then(|k| k.prepare(&launch))
            .expect("empty");
        let batch = 1000;
        let t = time(&mut || (0..batch).for_each(|_| drop(prepared.run())));
        println!(
            "{:<28} {:>10.3} us a launch",
            "empty group, prepared",
            t / f64::from(batch)
        );
        let kernel = program.kernel("empty").expect("empty");
        let t = time(&mut || (0..batch).for_each(|_| drop(kernel.launch(&launch))));
        println!(
            "{:<28} {:>10.3} us a launch",
            "empty group, from arguments",
            t / f64::from(batch)
        );
    }

    fn saxpy(&self) {
        let program = self.program("saxpy");
        for n in [4096usize, 32768, 65536, 1 << 20] {
            let x = self
                .engine
                .memory()
                .alloc_from(&vec![1.0f32; n])
                .expect("memory");
            let y = self
                .engine
                .memory()
                .alloc_from(&vec![1.0f32; n])
                .expect("memory");
            let launch = Launch::new([n as u32, 1, 1])
                .local([256, 1, 1])
                .arg(0, &y)
                .arg(1, &x)
                .arg(2, 0.5f32);
            let prepared = program
                .kernel("saxpy")
                .and_then(|k| k.prepare(&launch))
                .expect("saxpy");
            let (cx, mut cy) = (vec![1.0f32; n], vec![1.0f32; n]);
            type F = unsafe extern "C" fn(*mut f32, *const f32, f32, c_int);
            for (library, what) in [(&self.c, ""), (&self.narrow, ", C in 128 bits")] {
                let mut call = library.as_ref().map(|lib| {
                    // SAFETY: the symbol has this type in loops.c, and both arrays have `n` elements.
                    let f: Symbol<'_, F> = unsafe { lib.get(b"saxpy") }.expect("saxpy in loops.c");
                    let cy = &mut cy;
                    let cx = &cx;
                    move || {
                        // SAFETY: as above.
                        unsafe { f(cy.as_mut_ptr(), cx.as_ptr(), 0.5, n as c_int) }
                    }
                });
                self.report(
                    &format!("saxpy {n}{what}"),
                    &prepared,
                    call.as_mut().map(|c| c as &mut dyn FnMut()),
                );
            }
        }
    }

    fn gather(&self) {
        let program = self.program("gather");
        let (n, table) = (1usize << 20, 8192usize);
        let index: Vec<u32> = (0..n as u64)
            .map(|i| ((i.wrapping_mul(0x9E37_79B9_7F4A_7C15)) >> 40) as u32 % table as u32)
            .collect();
        let values: Vec<f32> = (0..table).map(|i| i as f32).collect();
        let memory = self.engine.memory();
        let (out, t, ix) = (
            memory.alloc(4 * n as u64),
            memory.alloc_from(&values),
            memory.alloc_from(&index),
        );
        let (out, t, ix) = (
            out.expect("memory"),
            t.expect("memory"),
            ix.expect("memory"),
        );
        let launch = Launch::new([n as u32, 1, 1])
            .local([256, 1, 1])
            .arg(0, &out)
            .arg(1, &t)
            .arg(2, &ix);
        let prepared = program
            .kernel("gather")
            .and_then(|k| k.prepare(&launch))
            .expect("gather");
        let mut cout = vec![0.0f32; n];
        type F = unsafe extern "C" fn(*mut f32, *const f32, *const u32, c_int);
        let mut call = self.c.as_ref().map(|lib| {
            // SAFETY: the symbol has this type in loops.c.
            let f: Symbol<'_, F> = unsafe { lib.get(b"gather") }.expect("gather in loops.c");
            let (cout, values, index) = (&mut cout, &values, &index);
            move || {
                // SAFETY: arrays of `n` elements, every index is inside the table.
                unsafe {
                    f(
                        cout.as_mut_ptr(),
                        values.as_ptr(),
                        index.as_ptr(),
                        n as c_int,
                    )
                }
            }
        });
        self.report(
            "gather 1M of 32 KiB",
            &prepared,
            call.as_mut().map(|c| c as &mut dyn FnMut()),
        );
    }

    fn mandelbrot(&self) {
        let program = self.program("mandelbrot");
        let (w, h, limit) = (1024u32, 1024u32, 256i32);
        let out = self
            .engine
            .memory()
            .alloc(u64::from(w * h) * 4)
            .expect("memory");
        let (dx, dy) = (2.5f32 / w as f32, 2.5f32 / h as f32);
        let launch = Launch::new([w, h, 1])
            .local([256, 1, 1])
            .arg(0, &out)
            .arg(1, -2.0f32)
            .arg(2, -1.25f32);
        let launch = launch.arg(3, dx).arg(4, dy).arg(5, w as i32).arg(6, limit);
        let prepared = program
            .kernel("mandelbrot")
            .and_then(|k| k.prepare(&launch))
            .expect("mandelbrot");
        let mut counts = vec![0i32; (w * h) as usize];
        type F = unsafe extern "C" fn(*mut i32, f32, f32, f32, f32, c_int, c_int, c_int);
        let mut call = self.c.as_ref().map(|lib| {
            // SAFETY: the symbol has this type in loops.c.
            let f: Symbol<'_, F> =
                unsafe { lib.get(b"mandelbrot") }.expect("mandelbrot in loops.c");
            let counts = &mut counts;
            move || {
                // SAFETY: `w * h` counts; the width is a multiple of 16.
                unsafe {
                    f(
                        counts.as_mut_ptr(),
                        -2.0,
                        -1.25,
                        dx,
                        dy,
                        w as c_int,
                        h as c_int,
                        limit,
                    )
                }
            }
        });
        self.report(
            "mandelbrot 1024x1024 x256",
            &prepared,
            call.as_mut().map(|c| c as &mut dyn FnMut()),
        );
        if self.c.is_some() {
            let ours = out.to_vec_of::<i32>();
            let differ = ours.iter().zip(&counts).filter(|(a, b)| a != b).count();
            println!(
                "{:<28} {differ} of {} counts differ (the C compiler may contract otherwise)",
                "",
                counts.len()
            );
        }
    }

    fn sgemm(&self) {
        let program = self.program("sgemm");
        let n = 256usize;
        let a: Vec<f32> = (0..n * n).map(|i| (i % 7) as f32).collect();
        let memory = self.engine.memory();
        let (ba, bb, bc) = (
            memory.alloc_from(&a),
            memory.alloc_from(&a),
            memory.alloc(4 * (n * n) as u64),
        );
        let (ba, bb, bc) = (
            ba.expect("memory"),
            bb.expect("memory"),
            bc.expect("memory"),
        );
        let launch = Launch::new([n as u32, n as u32, 1])
            .local([16, 16, 1])
            .arg(0, &bc)
            .arg(1, &ba)
            .arg(2, &bb);
        let launch = launch.arg(3, n as i32).arg(4, n as i32);
        let prepared = program
            .kernel("sgemm_tiled")
            .and_then(|k| k.prepare(&launch))
            .expect("sgemm_tiled");
        let mut c = vec![0.0f32; n * n];
        type F = unsafe extern "C" fn(*mut f32, *const f32, *const f32, c_int);
        let mut call = self.c.as_ref().map(|lib| {
            // SAFETY: the symbol has this type in loops.c.
            let f: Symbol<'_, F> = unsafe { lib.get(b"sgemm") }.expect("sgemm in loops.c");
            let (c, a) = (&mut c, &a);
            move || {
                // SAFETY: three matrices of `n * n` elements.
                unsafe { f(c.as_mut_ptr(), a.as_ptr(), a.as_ptr(), n as c_int) }
            }
        });
        self.report(
            "sgemm 256, 16x16 tiles",
            &prepared,
            call.as_mut().map(|c| c as &mut dyn FnMut()),
        );
    }

    /// Time from vISA text in memory to installed code, without the cache.
    fn compile(&self) {
        let mut per_inst = Vec::new();
        for name in [
            "empty",
            "saxpy",
            "gather",
            "mandelbrot",
            "reduction",
            "sgemm",
            "stencil",
            "bitonic",
            "black_scholes",
            "sha256",
        ] {
            for k in self.program(name).kernels() {
                let n = k.valid().expect("has vISA").module().insts.len();
                let times = (0..5).map(|_| {
                    let engine = Engine::new().expect("engine");
                    let path = root(&format!("tests/kernels/bin/{}/{name}.zebin", self.device));
                    let program = engine
                        .program_from_zebin(&std::fs::read(path).expect("file"), None)
                        .expect("zebin");
                    let code = program
                        .kernel(k.name())
                        .and_then(|k| k.code(Default::default()))
                        .expect("compiles");
                    (
                        code.compile_time().as_secs_f64() * 1e6,
                        code.object().code.len(),
                    )
                });
                let (times, sizes): (Vec<f64>, Vec<usize>) = times.unzip();
                let t = median(times);
                per_inst.push(t / n as f64);
                println!(
                    "compile {:<24} {n:>5} instructions {t:>10.0} us {:>8.1} us each {:>8} bytes",
                    k.name(),
                    t / n as f64,
                    sizes[0]
                );
            }
        }
        println!("compile: median {:.1} us an instruction", median(per_inst));
    }
}

/// Both code generators on the same launches, in turn.
#[cfg(feature = "llvm-codegen")]
mod generators {
    use visa_jit::backend::BackendKind;
    use visa_jit::{Engine, EngineOptions, Launch, Prepared};

    use super::{ROUNDS, median, paired, root};

    /// Arguments of a launch whose buffers lie in an engine's memory.
    type Arguments = fn(&Engine, Launch) -> Launch;

    fn ones(engine: &Engine, n: usize) -> visa_runtime::Buffer {
        engine
            .memory()
            .alloc_from(&vec![1.0f32; n])
            .expect("memory")
    }

    /// File, kernel, global and local size.
    type Case = (&'static str, &'static str, [u32; 3], [u32; 3], Arguments);

    const CASES: &[Case] = &[
        ("saxpy", "saxpy", [65536, 1, 1], [256, 1, 1], |e, l| {
            let n = 65536;
            l.arg(0, ones(e, n)).arg(1, ones(e, n)).arg(2, 0.5f32)
        }),
        ("gather", "gather", [1 << 20, 1, 1], [256, 1, 1], |e, l| {
            let index = |i: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u32 % 8192;
            let index: Vec<u32> = (0..1 << 20).map(index).collect();
            let index = e.memory().alloc_from(&index).expect("memory");
            let l = l.arg(0, ones(e, 1 << 20));
            l.arg(1, ones(e, 8192)).arg(2, index)
        }),
        (
            "mandelbrot",
            "mandelbrot",
            [512, 512, 1],
            [256, 1, 1],
            |e, l| {
                let step = 2.5f32 / 512.0;
                let l = l.arg(0, ones(e, 512 * 512));
                let l = l.arg(1, -2.0f32).arg(2, -1.25f32).arg(3, step);
                l.arg(4, step).arg(5, 512i32).arg(6, 256i32)
            },
        ),
        (
            "sgemm",
            "sgemm_tiled",
            [256, 256, 1],
            [16, 16, 1],
            |e, l| {
                let n = 256 * 256;
                let l = l.arg(0, ones(e, n)).arg(1, ones(e, n));
                l.arg(2, ones(e, n)).arg(3, 256i32).arg(4, 256i32)
            },
        ),
    ];

    fn engine(kind: BackendKind) -> Engine {
        let options = EngineOptions {
            strategy: kind.into(),
            ..EngineOptions::default()
        };
        Engine::with_options(options).expect("engine")
    }

    /// Run times.
    pub fn run(device: &str) {
        let engines = [BackendKind::Cranelift, BackendKind::Llvm].map(engine);
        for (file, kernel, global, local, arguments) in CASES {
            let path = root(&format!("tests/kernels/bin/{device}/{file}.zebin"));
            let bytes = std::fs::read(path).expect("checked-in zebin");
            let prepare = |e: &Engine| -> Prepared {
                let launch = arguments(e, Launch::new(*global).local(*local));
                let program = e.program_from_zebin(&bytes, None).expect("zebin");
                let kernel = program.kernel(kernel).expect("kernel");
                kernel.prepare(&launch).expect("prepares")
            };
            let [a, b] = [prepare(&engines[0]), prepare(&engines[1])];
            let (ta, tb, ratio) = paired(&mut || drop(a.run()), &mut || drop(b.run()));
            println!("{kernel:<28} cranelift {ta:>9.1} us   llvm {tb:>9.1} us   ratio {ratio:.2}");
        }
    }

    /// Compile times, from text in memory to installed code.
    pub fn compile(device: &str) {
        let mut ratios = Vec::new();
        for file in [
            "saxpy",
            "gather",
            "mandelbrot",
            "reduction",
            "sgemm",
            "stencil",
            "black_scholes",
            "sha256",
        ] {
            let path = root(&format!("tests/kernels/bin/{device}/{file}.zebin"));
            let bytes = std::fs::read(path).expect("checked-in zebin");
            let names: Vec<String> = engine(BackendKind::Cranelift)
                .program_from_zebin(&bytes, None)
                .map(|p| p.kernels().iter().map(|k| k.name().to_owned()).collect())
                .expect("zebin");
            for name in names {
                let time = |kind| {
                    let program = engine(kind)
                        .program_from_zebin(&bytes, None)
                        .expect("zebin");
                    let kernel = program.kernel(&name).expect("kernel");
                    let code = kernel.code(Default::default()).expect("compiles");
                    let valid = kernel.valid().expect("a kernel from a file");
                    let n = valid.module().insts.len() as f64;
                    code.compile_time().as_secs_f64() * 1e6 / n
                };
                let pairs = (0..ROUNDS.min(5))
                    .map(|_| (time(BackendKind::Cranelift), time(BackendKind::Llvm)));
                let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
                let (a, b) = (median(a), median(b));
                ratios.push(b / a);
                println!("compile {name:<24} cranelift {a:>8.1}   llvm {b:>8.1} us an instruction");
            }
        }
        println!(
            "compile: llvm takes {:.1} times as long, median",
            median(ratios)
        );
    }
}

fn main() {
    let device = std::env::args()
        .skip(1)
        .find(|a| !a.starts_with('-'))
        .unwrap_or_else(|| "skl".to_owned());
    let bench = Bench {
        engine: Engine::new().expect("engine"),
        device,
        c: c_loops(512),
        narrow: c_loops(128),
    };
    println!(
        "device {}, one thread, medians of {ROUNDS} rounds",
        bench.device
    );
    #[cfg(feature = "llvm-codegen")]
    {
        generators::run(&bench.device);
        generators::compile(&bench.device);
    }
    bench.launch_overhead();
    bench.saxpy();
    bench.gather();
    bench.mandelbrot();
    bench.sgemm();
    bench.compile();
}
