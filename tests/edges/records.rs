//! Fault records of both engines are the same, field by field and in the same order: every message, in groups of several
//! threads with a partial last one.

use crate::support::faults_as_text;
use visa_jit::backend::{OobPolicy, SplitAccesses, Strategy};
use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions, Launch, Report};
use visa_runtime::LaunchStatus;
use visa_test_common::full;

/// Messages of which some lanes or elements are outside: `OFF` runs over the end of surface 0 (84 bytes) and of local
/// memory, addresses are outside of device memory.
const MESSAGES: [&str; 34] = [
    "gather.4 (M1, 16) T6 0x1:ud OFF.0 V.0",
    "scatter.2 (M1, 16) T6 0x1:ud OFF.0 V.0",
    "gather_scaled.4 (M1, 16) T6 0x4:ud OFF.0 V.0",
    "(P1) gather_scaled.1 (M1, 16) T6 0x20:ud OFF.0 V.0",
    "scatter_scaled.2 (M1, 16) T6 0x10:ud OFF.0 V.0",
    "gather4_scaled.RGA (M1, 16) T6 0x0:ud OFF.0 V.0",
    "(!P1) scatter4_scaled.RG (M1, 16) T6 0x0:ud OFF.0 V.0",
    "oword_ld (4) T6 0x4:ud V.0",
    "oword_ld_unaligned (2) T6 OFF(0,3)<0;1,0> V.0",
    "oword_st (4) T6 0x4:ud V.0",
    "qw_gather.2 (M1, 16) T6 OFF.0 Q.0",
    "qw_scatter.1 (M1, 16) T6 OFF.0 Q.0",
    "dword_atomic.add (M1, 16) T6 OFF.0 V.0 %null.0 W.0",
    "dword_atomic.cmpxchg (M1, 16) %slm FAR.0 V.0 W.0 W.0",
    "svm_gather.4.2 (M1, 16) ADDR.0 V.0",
    "svm_scatter.1.2 (M1, 16) ADDR.0 V.0",
    "svm_block_ld (2) ADDR(0,0)<0;1,0> V.0",
    "svm_block_st (1) ADDR(0,1)<0;1,0> V.0",
    "svm_gather4scaled.RB (M1, 16) ADDR(0,0)<0;1,0> OFF.0 V.0",
    "svm_atomic.inc.64 (M1, 16) ADDR.0 Q.0 %null.0 %null.0",
    "lsc_load.ugm (M1, 16) V:d32x3 bti(0x0)[OFF+0x10]:a32",
    "lsc_load.ugm (M3, 8) V:d16c32 bss(0x40)[OFF]:a32",
    "lsc_store.ugm (M1, 16) flat[ADDR]:a64 V:d32x2",
    "(P1) lsc_store.slm (M1, 16) flat[FAR]:a32 V:d8c32",
    "lsc_load.ugm (M1_NM, 1) V:d32x16t bti(0x0)[OFF+0x40]:a32",
    "lsc_store.ugm (M1_NM, 1) flat[ADDR]:a64 V:d64x4t",
    "lsc_load_quad.ugm (M1, 16) V:d32.xw bti(0x0)[OFF]:a32",
    "lsc_load_strided.ugm (M1, 16) V:d32 bti(0x0)[OFF, 0x9]:a32",
    "lsc_load.ugm (M1_NM, 1) V:d32x16 bti(0x0)[OFF+0x40]:a32",
    "lsc_atomic_fadd.ugm (M1, 16) W:d32 flat[ADDR]:a64 V %null",
    "lsc_atomic_iinc.slm (M1, 16) W:d32 flat[FAR]:a32 %null %null",
    "lsc_load.ugm (M1, 16) V:d32 ss(0x0)[FAR]:a32",
    "lsc_load_block2d.ugm (M1, 16) V:d16.16x4nn flat[ADDR, 0x1f, 0x3, 0x1f, 0x1, 0x1]",
    "lsc_store_block2d.ugm (M1_NM, 1) flat[ADDR, 0x1f, 0x3, 0x1f, 0x0, 0x2] V:d32.4x4nn",
];

fn kernel(message: &str) -> String {
    format!(
        ".version 4.1\n.kernel \"records\"\n.kernel_attr SimdSize=16\n.kernel_attr SLMSize=1\n\
         .decl X v_type=G type=uw num_elts=16 align=GRF\n.decl Y v_type=G type=uw num_elts=16 align=GRF\n\
         .decl OFF v_type=G type=ud num_elts=16 align=GRF\n.decl FAR v_type=G type=ud num_elts=16 align=GRF\n\
         .decl ADDR v_type=G type=uq num_elts=16 align=GRF\n.decl V v_type=G type=ud num_elts=256 align=GRF\n\
         .decl W v_type=G type=ud num_elts=16 align=GRF\n.decl Q v_type=G type=uq num_elts=32 align=GRF\n\
         .decl P1 v_type=P num_elts=16\n.decl T6 v_type=T num_elts=1\n\
         .input X offset=64 size=32\n.input Y offset=128 size=32\n.function \"main\"\n    \
         movs (M1_NM, 1) T6(0) 0x0:ud\n    setp (M1_NM, 16) P1 0x9b31:ud\n    \
         mul (M1, 16) OFF(0,0)<1> X(0,0)<1;1,0> 0x5:ud\n    \
         add (M1, 16) OFF(0,0)<1> OFF(0,0)<1;1,0> %r0(0,1)<0;1,0>\n    \
         add (M1, 16) OFF(0,0)<1> OFF(0,0)<1;1,0> Y(0,0)<1;1,0>\n    \
         mul (M1, 16) FAR(0,0)<1> OFF(0,0)<1;1,0> 0x100:ud\n    \
         mul (M1, 16) ADDR(0,0)<1> OFF(0,0)<1;1,0> 0x10:ud\n    {message}\n    ret (M1, 1)\n"
    )
}

fn run(engine: &Engine, message: &str, oob: OobPolicy) -> Report {
    let program = engine
        .program_from_text("records", &kernel(message), Platform::Pvc)
        .unwrap_or_else(|e| panic!("{message}: {e}"));
    let surface = engine.memory().alloc(84).unwrap();
    let launch = Launch::new([40, 4, 1])
        .local([20, 2, 1])
        .oob(oob)
        .surface(0, surface);
    program.kernels()[0]
        .launch(&launch)
        .unwrap_or_else(|e| panic!("{message}: {e}"))
}

#[test]
fn both_engines_record_the_same_faults() {
    let engine = |interpret: bool| {
        Engine::with_options(EngineOptions {
            memory_bytes: 1 << 20,
            interpret: interpret.then(Default::default),
            ..EngineOptions::default()
        })
        .unwrap()
    };
    let (compiled, interpreted) = (engine(false), engine(true));
    let line = kernel("HERE")
        .lines()
        .position(|l| l.contains("HERE"))
        .unwrap() as u32
        + 1;
    let mut records = 0;
    for message in MESSAGES {
        let name = message
            .trim_start_matches("(P1) ")
            .trim_start_matches("(!P1) ");
        let name = name.split(['.', ' ']).next().unwrap();
        for oob in [OobPolicy::Report, OobPolicy::Trap] {
            let (a, b) = (
                run(&compiled, message, oob),
                run(&interpreted, message, oob),
            );
            assert_eq!(a.status, b.status, "{message}");
            assert_eq!(a.fault_count, b.fault_count, "{message} {oob:?}");
            let stops = oob == OobPolicy::Trap;
            assert_eq!(a.status == LaunchStatus::Faulted, stops, "{message}");
            let [a_faults, b_faults] = [&a, &b].map(|r| faults_as_text(&r.faults));
            assert_eq!(a_faults, b_faults, "{message} {oob:?}");
            for f in &a.faults {
                let id = [0, 1].map(|d| u64::from(f.group[d] * [20, 2][d] + f.local_id[d]));
                assert_eq!(f.global_id[..2], id, "{message}: {f:?}");
                let lane = f.local_id[0] + 20 * f.local_id[1];
                assert_eq!(16 * f.thread + f.lane, lane, "{message}: {f:?}");
                assert_eq!((f.line, f.opcode), (line, name), "{message}: {f:?}");
            }
            assert!(!a.faults.is_empty(), "{message} does not fault");
            records += a.faults.len();
        }
    }
    println!("{} messages, {records} records", MESSAGES.len());
}

/// A kernel whose threads of 32 lanes send a message of 16 in two halves.
fn kernel_in_halves(message: &str) -> String {
    let upper = message.replace("(M1, 16)", "(M5, 16)");
    let upper = ["OFF", "FAR", "ADDR"]
        .iter()
        .fold(upper, |text, name| text.replace(name, &format!("{name}2")));
    let half = |suffix: &str, from: u32| {
        format!(
            "mul (M1_NM, 16) OFF{suffix}(0,0)<1> X(0,{from})<1;1,0> 0x5:ud\n    \
             add (M1_NM, 16) OFF{suffix}(0,0)<1> OFF{suffix}(0,0)<1;1,0> %r0(0,1)<0;1,0>\n    \
             mul (M1_NM, 16) FAR{suffix}(0,0)<1> OFF{suffix}(0,0)<1;1,0> 0x100:ud\n    \
             mul (M1_NM, 16) ADDR{suffix}(0,0)<1> OFF{suffix}(0,0)<1;1,0> 0x10:ud\n    "
        )
    };
    let decl = |suffix: &str| {
        format!(
            ".decl OFF{suffix} v_type=G type=ud num_elts=16 align=GRF\n\
             .decl FAR{suffix} v_type=G type=ud num_elts=16 align=GRF\n\
             .decl ADDR{suffix} v_type=G type=uq num_elts=16 align=GRF\n"
        )
    };
    format!(
        ".version 4.1\n.kernel \"records\"\n.kernel_attr SimdSize=32\n.kernel_attr SLMSize=1\n\
         .decl X v_type=G type=uw num_elts=32 align=GRF\n{}{}\
         .decl V v_type=G type=ud num_elts=256 align=GRF\n.decl W v_type=G type=ud num_elts=16 align=GRF\n\
         .decl Q v_type=G type=uq num_elts=32 align=GRF\n.decl P1 v_type=P num_elts=32\n\
         .decl T6 v_type=T num_elts=1\n.input X offset=64 size=64\n.function \"main\"\n    \
         movs (M1_NM, 1) T6(0) 0x0:ud\n    setp (M1_NM, 32) P1 0xe6c49b31:ud\n    {}{}\
         {message}\n    {upper}\n    ret (M1, 1)\n",
        decl(""),
        decl("2"),
        half("", 0),
        half("2", 16)
    )
}

/// Of messages in halves that became one access, records name the instruction of the lane, in the order of the program.
#[test]
fn halves_that_are_one_record_the_same_faults() {
    let engine = |interpret: bool, halves| {
        let mut strategy = Strategy::default();
        strategy.tuning.split_accesses = halves;
        Engine::with_options(EngineOptions {
            memory_bytes: 1 << 20,
            interpret: interpret.then(Default::default),
            strategy,
            ..EngineOptions::default()
        })
        .unwrap()
    };
    let interpreted = engine(true, SplitAccesses::Auto);
    let compiled = [SplitAccesses::Merge, SplitAccesses::Auto].map(|halves| engine(false, halves));
    let mut made_one = 0;
    let messages = MESSAGES.iter().filter(|m| m.contains("(M1, 16)"));
    for message in messages.step_by(if full() { 1 } else { 2 }) {
        let text = kernel_in_halves(message);
        let program = |engine: &Engine| {
            let program = engine.program_from_text("records", &text, Platform::Pvc);
            program.unwrap_or_else(|e| panic!("{message}: {e}"))
        };
        for oob in [OobPolicy::Report, OobPolicy::Trap] {
            let run = |engine: &Engine| {
                let surface = engine.memory().alloc(84).unwrap();
                let launch = Launch::new([75, 2, 1]).local([40, 2, 1]).oob(oob);
                let launch = launch.threads(1).surface(0, surface.clone());
                let report = program(engine).kernels()[0].launch(&launch).unwrap();
                let faults = faults_as_text(&report.faults);
                (report.status, report.fault_count, faults, surface.to_vec())
            };
            let want = run(&interpreted);
            assert!(want.1 > 0, "{message} does not fault");
            for engine in &compiled {
                assert_eq!(run(engine), want, "{message} {oob:?}");
            }
        }
        let made = program(&compiled[0]).kernels()[0]
            .specialised(None)
            .unwrap();
        made_one += made
            .accesses()
            .iter()
            .filter(|a| !a.upper_lines.is_empty())
            .count();
    }
    assert!(
        made_one > if full() { 15 } else { 7 },
        "{made_one} accesses are made of two"
    );
}
