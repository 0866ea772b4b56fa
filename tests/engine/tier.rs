//! Tiering: the first launches run Cranelift's code, later ones LLVM's, and nothing else about them changes.

use visa_jit::backend::BackendKind;
use visa_jit::interp::InterpOptions;
use visa_jit::{Class, Engine, EngineOptions, Error};

fn tiered() -> EngineOptions {
    EngineOptions {
        memory_bytes: 1 << 30,
        tier: true,
        ..EngineOptions::default()
    }
}

fn interpreted() -> EngineOptions {
    EngineOptions {
        memory_bytes: 1 << 30,
        interpret: Some(InterpOptions::default()),
        ..EngineOptions::default()
    }
}

/// Why an engine is refused.
fn refusal(options: EngineOptions) -> Error {
    let error = Engine::with_options(options).err().expect("an error");
    assert_eq!(error.exit_class(), Class::Unsupported);
    assert!(error.to_string().contains("--tier"), "{error}");
    error
}

#[test]
fn only_cranelift_has_a_tier_above() {
    let mut llvm = tiered();
    llvm.strategy = BackendKind::Llvm.into();
    let error = refusal(EngineOptions {
        tier: true,
        ..interpreted()
    });
    assert!(error.to_string().contains("use the backend cranelift"));
    if cfg!(feature = "llvm-codegen") {
        let error = refusal(llvm);
        assert!(error.to_string().contains("use the backend cranelift"));
    } else {
        let error = refusal(tiered());
        assert!(error.to_string().contains("--features llvm"), "{error}");
    }
}

#[cfg(feature = "llvm-codegen")]
mod built_in {
    use std::sync::Barrier;
    use std::time::{Duration, Instant};

    use visa_jit::backend::{Check, OobPolicy, RegAlloc};
    use visa_jit::isa::Platform;
    use visa_jit::{
        Arg, CacheStats, DiskCache, FaultRecord, Kernel, Launch, Origin, Program, Report,
    };
    use visa_runtime::{Buffer, ImageKind, ImageShape};
    use visa_test_common::zebin;

    use super::*;
    use crate::support::faults_as_text;

    /// The background takes no longer than that, however busy the machine is.
    const LIMIT: Duration = Duration::from_secs(300);

    const CRANELIFT: &str = "cranelift";
    const LLVM: &str = "llvm";

    fn engine(options: EngineOptions) -> Engine {
        Engine::with_options(options).unwrap()
    }

    /// An argument of a launch.
    enum Given {
        Buffer(Vec<u8>),
        Image(Vec<u8>, ImageShape),
        Local(u32),
        Value(Vec<u8>),
    }

    /// A launch of a checked-in kernel.
    struct Case {
        file: &'static str,
        kernel: &'static str,
        global: [u32; 3],
        local: [u32; 3],
        given: Vec<Given>,
        oob: OobPolicy,
    }

    impl Case {
        /// With buffers of its own.
        fn launch(&self, engine: &Engine) -> (Launch, Vec<Buffer>) {
            let mut launch = Launch::new(self.global).local(self.local).oob(self.oob);
            let mut buffers = Vec::new();
            for (index, given) in (0..).zip(&self.given) {
                let mut buffer = |bytes: &[u8]| {
                    buffers.push(engine.memory().alloc_from(bytes).unwrap());
                    buffers[buffers.len() - 1].clone()
                };
                let arg = match given {
                    Given::Buffer(bytes) => Arg::Buffer(buffer(bytes)),
                    Given::Image(bytes, shape) => Arg::Image(buffer(bytes), *shape),
                    Given::Local(bytes) => Arg::Local(*bytes),
                    Given::Value(bytes) => Arg::Bytes(bytes.clone()),
                };
                launch = launch.arg(index, arg);
            }
            (launch, buffers)
        }

        fn load(&self, engine: &Engine) -> Program {
            let bytes = zebin("bmg-26", self.file);
            engine.program_from_zebin(&bytes, None).unwrap()
        }

        fn run(&self, engine: &Engine, program: &Program) -> (Report, Vec<Vec<u8>>) {
            let (launch, buffers) = self.launch(engine);
            let report = program.kernel(self.kernel).unwrap().launch(&launch);
            let left = buffers.iter().map(Buffer::to_vec).collect();
            (report.unwrap(), left)
        }
    }

    fn numbers(count: u32) -> Vec<u8> {
        let some = (0..count).map(|n| n.wrapping_mul(2_654_435_761) >> 18);
        some.flat_map(u32::to_le_bytes).collect()
    }

    fn floats(count: u32) -> Vec<u8> {
        let some = (0..count).map(|n| (n.wrapping_mul(2_654_435_761) >> 18) as f32 * 0.37);
        some.flat_map(f32::to_le_bytes).collect()
    }

    fn image(format: &str, width: u32, height: u32) -> Given {
        let shape = ImageShape {
            kind: ImageKind::D2,
            format: format.parse().unwrap(),
            extent: [width, height, 1],
        };
        let count = shape.bytes().unwrap().div_ceil(4);
        let mut bytes = numbers(count as u32);
        bytes.truncate(shape.bytes().unwrap() as usize);
        Given::Image(bytes, shape)
    }

    /// Barriers, local memory, images, loops, and accesses out of bounds.
    fn cases() -> Vec<Case> {
        let case = |file, kernel, (global, local): (u32, u32), given| Case {
            file,
            kernel,
            global: [global, 1, 1],
            local: [local, 1, 1],
            given,
            oob: OobPolicy::default(),
        };
        let value = |n: u32| Given::Value(n.to_le_bytes().to_vec());
        vec![
            case(
                "reduction",
                "reduce_sum",
                (256, 64),
                vec![
                    Given::Buffer(floats(4)),
                    Given::Buffer(floats(256)),
                    Given::Local(256),
                ],
            ),
            case(
                "scan",
                "scan_inclusive",
                (192, 64),
                vec![
                    Given::Buffer(numbers(192)),
                    Given::Buffer(numbers(192)),
                    Given::Local(256),
                ],
            ),
            case(
                "loops",
                "divergent_barrier",
                (128, 32),
                vec![
                    Given::Buffer(numbers(128)),
                    Given::Buffer(numbers(128)),
                    Given::Local(128),
                    value(5),
                ],
            ),
            Case {
                global: [19, 13, 1],
                local: [19, 1, 1],
                ..case(
                    "image_filter",
                    "blur",
                    (19, 19),
                    vec![image("rgba8unorm", 19, 13), image("rgba32float", 19, 13)],
                )
            },
            Case {
                oob: OobPolicy::Report,
                ..case(
                    "saxpy",
                    "saxpy",
                    (200, 40),
                    vec![
                        Given::Buffer(floats(170)),
                        Given::Buffer(floats(190)),
                        Given::Value(2.5_f32.to_le_bytes().to_vec()),
                    ],
                )
            },
        ]
    }

    /// What must not depend on the code generator.
    fn told(report: &Report) -> (u64, u64, u64, Vec<String>) {
        // Each launch has buffers of its own.
        let faults = report.faults.iter().map(|f| FaultRecord {
            address: 0,
            ..f.clone()
        });
        let faults = faults_as_text(&faults.collect::<Vec<_>>());
        (report.groups, report.threads, report.fault_count, faults)
    }

    /// A launch on Cranelift's code, again on LLVM's, and one that is made ready then. None if the background was done before the first.
    fn runs(case: &Case) -> Option<[(Report, Vec<Vec<u8>>); 3]> {
        let engine = engine(tiered());
        let program = case.load(&engine);
        let (launch, buffers) = case.launch(&engine);
        let contents: Vec<_> = buffers.iter().map(Buffer::to_vec).collect();
        let left = || buffers.iter().map(Buffer::to_vec).collect();
        let ready = program.kernel(case.kernel).unwrap().prepare(&launch);
        let ready = ready.unwrap();
        let first = (ready.run().unwrap(), left());
        if first.0.backend != CRANELIFT {
            return None;
        }
        assert!(engine.wait_for_tier(LIMIT));
        for (buffer, bytes) in buffers.iter().zip(&contents) {
            buffer.write(0, bytes).unwrap();
        }
        assert_eq!(ready.code().unwrap().object().backend, LLVM);
        let later = (ready.run().unwrap(), left());
        let fresh = case.run(&engine, &program);
        let stats = engine.cache_stats();
        assert_eq!((stats.misses, stats.disk_hits), (1, 0));
        Some([first, later, fresh])
    }

    #[test]
    fn later_launches_run_llvms_code() {
        let mut faults = 0;
        for case in cases() {
            let definition = engine(interpreted());
            let (meant, wanted) = case.run(&definition, &case.load(&definition));
            let ran = (0..20).find_map(|_| runs(&case));
            let ran = ran.expect("the background is never faster than a launch");
            for ((report, left), name) in ran.iter().zip([CRANELIFT, LLVM, LLVM]) {
                assert_eq!(report.backend, name, "{}", case.kernel);
                assert_eq!(left, &wanted, "{} by {name}", case.kernel);
                assert_eq!(told(report), told(&meant), "{} by {name}", case.kernel);
                assert_eq!(report.note, None);
            }
            assert_eq!(ran[2].0.origin, Origin::Memory);
            faults += meant.fault_count;
        }
        assert!(faults > 0);
    }

    /// Reports of checks are those of the code that ran.
    #[test]
    fn checks_find_the_same() {
        let bytes = include_bytes!("../checks/race-skl.zebin");
        let engine = engine(tiered().check(Check::All));
        let program = engine.program_from_zebin(bytes, None).unwrap();
        let out = engine.memory().alloc_from(&[0_i32; 256]).unwrap();
        let launch = Launch::new([256, 1, 1]).local([128, 1, 1]);
        let launch = launch.arg(0, &out).arg(1, 1_i32);
        let ready = program.kernel("local_read").unwrap().prepare(&launch);
        let ready = ready.unwrap();
        let first = ready.run().unwrap();
        assert!(engine.wait_for_tier(LIMIT));
        let later = ready.run().unwrap();
        assert_eq!(later.backend, LLVM);
        assert!(first.fault_count > 0);
        assert_eq!(told(&first), told(&later));
    }

    fn mandelbrot(engine: &Engine) -> (Kernel, Launch, Buffer) {
        let program = engine.program_from_zebin(&zebin("skl", "mandelbrot"), None);
        let kernel = program.unwrap().kernel("mandelbrot").unwrap().clone();
        let out = engine.memory().alloc_from(&[-1_i32; 32 * 8]).unwrap();
        let launch = Launch::new([32, 8, 1]).local([32, 1, 1]).arg(0, &out);
        let launch = launch.arg(1, -2.0_f32).arg(2, -1.2_f32).arg(3, 0.1_f32);
        (
            kernel,
            launch.arg(4, 0.3_f32).arg(5, 32_i32).arg(6, 100_i32),
            out,
        )
    }

    /// Threads launch the same launch, and launches of their own, while code changes.
    #[test]
    fn code_changes_while_threads_launch() {
        let definition = engine(interpreted());
        let (kernel, launch, wanted) = mandelbrot(&definition);
        kernel.launch(&launch).unwrap();
        let wanted = wanted.to_vec();
        let engine = engine(tiered());
        let (kernel, launch, out) = mandelbrot(&engine);
        let shared = kernel.prepare(&launch).unwrap();
        let start = Barrier::new(2);
        let until_llvms = |run: &dyn Fn() -> Report, out: &Buffer| {
            start.wait();
            let begun = Instant::now();
            let mut left = 50;
            while left > 0 {
                assert!(begun.elapsed() < LIMIT);
                let before_is_llvms = left < 50;
                let report = run();
                assert_eq!(out.to_vec(), wanted, "by {}", report.backend);
                let is_llvms = report.backend == LLVM;
                assert!(is_llvms || !before_is_llvms, "there is no way back");
                left -= i32::from(is_llvms);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| until_llvms(&|| shared.run().unwrap(), &out));
            until_llvms(&|| shared.run().unwrap(), &out);
        });
        std::thread::scope(|scope| {
            let own = || {
                let (_, launch, out) = mandelbrot(&engine);
                until_llvms(&|| kernel.launch(&launch).unwrap(), &out);
            };
            scope.spawn(own);
            own();
        });
        assert_eq!(engine.cache_stats().misses, 1);
    }

    /// The disk has both codes, and LLVM's is taken at once.
    #[test]
    fn the_disk_has_the_better_code() {
        let dir = tempfile::tempdir().unwrap();
        let disk = DiskCache::at(dir.path().join("cache"));
        let options = |tier, strategy| EngineOptions {
            tier,
            strategy,
            disk: Some(disk.clone()),
            ..tiered()
        };
        let run = |tier, backend: BackendKind| {
            let engine = engine(options(tier, backend.into()));
            let (kernel, launch, _) = mandelbrot(&engine);
            let report = kernel.launch(&launch).unwrap();
            assert!(engine.wait_for_tier(LIMIT));
            let again = kernel.launch(&launch).unwrap();
            (report, again, engine.cache_stats())
        };
        let (first, again, _) = run(true, BackendKind::Cranelift);
        assert_eq!(first.origin, Origin::Compiled);
        assert_eq!((again.backend, again.origin), (LLVM, Origin::Memory));
        let (first, _, stats) = run(true, BackendKind::Cranelift);
        assert_eq!((first.backend, first.origin), (LLVM, Origin::Disk));
        let found = CacheStats {
            disk_hits: 1,
            hits: 1,
            ..CacheStats::default()
        };
        assert_eq!(stats, found);
        // It lies under the key that engines have which compile with LLVM only, and Cranelift's code beside it.
        for backend in [BackendKind::Llvm, BackendKind::Cranelift] {
            let (first, ..) = run(false, backend);
            assert_eq!(first.origin, Origin::Disk);
            assert_eq!(first.backend, backend.name());
        }
    }

    /// LLVM makes code of so large a block with the least effort only, which is slower than Cranelift's.
    fn large(engine: &Engine) -> Kernel {
        let line = "    pow (M1, 16) V(0,0)<1> V(0,0)<1;1,0> V(0,0)<1;1,0>\n";
        let text = format!(
            ".version 4.1
.kernel \"k\"
.kernel_attr SimdSize=16
.decl A v_type=G type=ud num_elts=16 align=GRF
.decl V v_type=G type=f num_elts=16 align=GRF
.function \"main\"
    mov (M1_NM, 16) A(0,0)<1> 0x0:ud
    lsc_load.ugm (M1, 16) V:d32 bti(0x0)[A]:a32
{}    lsc_store.ugm (M1, 16) bti(0x0)[A]:a32 V:d32
    ret (M1, 1)
",
            line.repeat(100)
        );
        let program = engine.program_from_text("k", &text, Platform::Dg2);
        program.unwrap().kernels()[0].clone()
    }

    /// The background leaves a launch what it has, and its report says why.
    #[test]
    fn code_with_less_effort_is_not_taken() {
        let engine = engine(tiered());
        let kernel = large(&engine);
        let launch = Launch::new([16, 1, 1]);
        let ready = kernel.prepare(&launch).unwrap();
        assert!(engine.wait_for_tier(LIMIT));
        for report in [ready.run().unwrap(), kernel.launch(&launch).unwrap()] {
            assert_eq!(report.backend, CRANELIFT);
            let note = report.note.unwrap();
            for part in ["--tier", "cranelift stays", "with the least"] {
                assert!(note.contains(part), "{note}");
            }
        }
    }

    /// Neither the engine's end nor a wait with a limit takes as long as the background does.
    #[test]
    fn nobody_waits_for_the_background() {
        let engine = engine(tiered());
        large(&engine).prepare(&Launch::new([16, 1, 1])).unwrap();
        let start = Instant::now();
        assert!(!engine.wait_for_tier(Duration::ZERO));
        drop(engine);
        assert!(start.elapsed() < Duration::from_millis(250));
    }

    /// What LLVM cannot honour is refused before anything runs.
    #[test]
    fn strategies_of_cranelift_alone_are_refused() {
        let mut options = tiered();
        options.strategy.tuning.regalloc = RegAlloc::Fast;
        let error = refusal(options);
        assert!(error.to_string().contains("--regalloc auto"), "{error}");
    }

    #[test]
    fn engines_without_tiers_have_nothing_to_wait_for() {
        let plain = EngineOptions {
            tier: false,
            ..tiered()
        };
        assert!(engine(plain).wait_for_tier(Duration::ZERO));
    }
}
