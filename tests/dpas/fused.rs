//! `dpasw`: every thread has half of its pair's A, and B and C of its own. The reference multiplies with the whole.

use std::time::Duration;

use visa_jit::isa::Platform;
use visa_jit::{Engine, Error, Launch, Program};
use visa_runtime::{LaunchError, LaunchStatus};

use super::{Data, INTS, Rng, Shape, bits, engines, expected, fill, full, same, size, width};

/// Owords of a thread's A, B and C in a turn of the loop, and of its D.
const IN: usize = 8 + 16 + 16;
const OUT: usize = 16;
/// Pair `k` goes round the loop `k + 1` times.
const PAIRS: usize = 3;
const LANES: usize = 8;

/// What stands around the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    Nothing,
    /// The first five lanes come to it.
    Branch,
    /// It is in a subroutine.
    Call,
    /// The lanes come to it in two parts, one after the other.
    Parts,
}

fn shape(precisions: [&'static str; 2], repeat: u32, dst: &'static str) -> Shape {
    Shape {
        platform: Platform::Dg2,
        precisions,
        depth: 8,
        repeat,
        dst,
        src0: Some(dst),
    }
}

fn instruction(s: &Shape) -> String {
    let [p1, p2] = s.precisions;
    let (depth, repeat) = (s.depth, s.repeat);
    let src0 = s.src0.map_or("%null.0", |_| "C.0");
    format!("    dpasw.{p1}.{p2}.{depth}.{repeat} (M1, {LANES}) D.0 {src0} B.0 A(0,0)\n")
}

/// A kernel around statements; thread `N` of group `G` is number `AT` of all.
fn kernel(s: &Shape, threads: usize, statements: &str) -> String {
    let acc = s.src0.unwrap_or("ud");
    format!(
        ".version 4.1
.kernel \"fused\"
.kernel_attr SimdSize={LANES}
.decl C v_type=G type={acc} num_elts={} align=GRF
.decl B v_type=G type=ud num_elts=64 align=GRF
.decl A v_type=G type=ud num_elts=32 align=GRF
.decl D v_type=G type={} num_elts={} align=GRF
.decl RAW v_type=G type=ud num_elts=64 align=GRF alias=<D, 0>
.decl ID v_type=G type=uw num_elts=8 align=GRF
.decl N v_type=G type=ud num_elts=1 align=GRF
.decl AT v_type=G type=ud num_elts=1 align=GRF
.decl FROM v_type=G type=ud num_elts=1 align=GRF
.decl TO v_type=G type=ud num_elts=1 align=GRF
.decl TURNS v_type=G type=ud num_elts=1 align=GRF
.decl T6 v_type=T num_elts=1
.decl P1 v_type=P num_elts=1
.decl P2 v_type=P num_elts=8
.function \"main\"
    mov (M1_NM, 8) ID(0,0)<1> 0x76543210:uv
    and (M1_NM, 1) N(0,0)<1> %r0(0,2)<0;1,0> 0xff:ud
    mul (M1_NM, 1) AT(0,0)<1> %r0(0,1)<0;1,0> {threads:#x}:ud
    add (M1_NM, 1) AT(0,0)<1> AT(0,0)<0;1,0> N(0,0)<0;1,0>
{statements}    ret (M1, 1)
",
        256 / size(acc),
        s.dst,
        256 / size(s.dst),
    )
}

/// Loads A, B and C, computes and stores D, as often as the pair does; threads meet at a barrier before and after.
fn looping(s: &Shape, threads: usize, around: Around) -> String {
    let inst = instruction(s);
    let middle = match around {
        Around::Nothing => inst.clone(),
        Around::Branch => format!(
            "    cmp.ge (M1, 8) P2 ID(0,0)<1;1,0> 0x5:uw\n    (P2) goto (M1, 8) OVER\n{inst}OVER:\n"
        ),
        Around::Parts => format!(
            "    cmp.ge (M1, 8) P2 ID(0,0)<1;1,0> 0x5:uw\n    (P2) goto (M1, 8) OTHER\n{inst}    goto (M1, 8) OVER\n\
             OTHER:\n{inst}OVER:\n"
        ),
        Around::Call => "    call (M1, 8) product\n".to_owned(),
    };
    let mut body = format!(
        "    shr (M1_NM, 1) TURNS(0,0)<1> N(0,0)<0;1,0> 0x1:ud
    mul (M1_NM, 1) FROM(0,0)<1> AT(0,0)<0;1,0> {:#x}:ud
    mul (M1_NM, 1) TO(0,0)<1> AT(0,0)<0;1,0> {:#x}:ud
    barrier
AGAIN:
    movs (M1_NM, 1) T6(0) 0x0:ud
",
        IN * PAIRS,
        OUT * PAIRS,
    );
    for part in ["A.0", "B.0", "B.128", "C.0", "C.128"] {
        body += &format!(
            "    oword_ld (8) T6 FROM(0,0)<0;1,0> {part}
    add (M1_NM, 1) FROM(0,0)<1> FROM(0,0)<0;1,0> 0x8:ud\n"
        );
    }
    for at in (0..64).step_by(16) {
        body += &format!("    mov (M1_NM, 16) RAW(0,{at})<1> 0xa5a5a5a5:ud\n");
    }
    body += &middle;
    body += "    movs (M1_NM, 1) T6(0) 0x1:ud\n";
    for part in ["D.0", "D.128"] {
        body += &format!(
            "    oword_st (8) T6 TO(0,0)<0;1,0> {part}
    add (M1_NM, 1) TO(0,0)<1> TO(0,0)<0;1,0> 0x8:ud\n"
        );
    }
    body += "    cmp.ne (M1_NM, 1) P1 TURNS(0,0)<0;1,0> 0x0:ud
    add (M1_NM, 1) TURNS(0,0)<1> TURNS(0,0)<0;1,0> 0xffffffff:ud
    (P1) jmp (M1, 1) AGAIN
    barrier
";
    let text = kernel(s, threads, &body);
    match around {
        Around::Call => text + ".function \"product\"\n" + &inst + "    ret (M1, 8)\n",
        _ => text,
    }
}

/// What a pair has in a turn: the whole A, and B and C of each thread.
struct Turn {
    a: Vec<u32>,
    own: [(Vec<u32>, Vec<u32>); 2],
}

impl Turn {
    fn new(r: &mut Rng, s: &Shape) -> Turn {
        let int = width(s.precisions[0]) <= 8;
        let c = if int { "ud" } else { s.src0.unwrap_or("ud") };
        let a = fill(r, 64, s.precisions[1]);
        let own = [(); 2].map(|()| (fill(r, 64, s.precisions[0]), fill(r, 64, c)));
        Turn { a, own }
    }

    /// What a thread of the pair loads. After its half of A there is something else.
    fn input(&self, s: &Shape, side: usize) -> Vec<u32> {
        let dwords = (s.repeat * s.k() * width(s.precisions[1])).div_ceil(32) as usize;
        let first = (dwords.div_ceil(LANES).div_ceil(2) * LANES).min(dwords);
        let half = if side == 0 {
            &self.a[..first]
        } else {
            &self.a[first..dwords]
        };
        let mut words = half.to_vec();
        words.resize(32, 0x7e57_7e57);
        let (b, c) = &self.own[side];
        [&words, b.as_slice(), c.as_slice()].concat()
    }

    fn output(&self, s: &Shape, side: usize) -> Vec<u32> {
        let (b, c) = &self.own[side];
        let data = Data {
            src0: c.clone(),
            src1: b.clone(),
            src2: self.a.clone(),
        };
        expected(s, &data)
    }
}

/// Turns of a group's pairs.
fn turns(r: &mut Rng, s: &Shape, pairs: usize) -> Vec<Vec<Turn>> {
    let turns = |k: usize| (0..=k).map(|_| ()).collect::<Vec<()>>();
    (0..pairs)
        .map(|k| turns(k).iter().map(|()| Turn::new(r, s)).collect())
        .collect()
}

fn check(
    programs: &[(Engine, Program)],
    s: &Shape,
    (pairs, groups): (usize, usize),
    around: Around,
    r: &mut Rng,
) {
    let all: Vec<_> = (0..groups).map(|_| turns(r, s, pairs)).collect();
    let mut input = vec![0u32; 4 * IN * PAIRS * 2 * pairs * groups];
    for (g, group) in all.iter().enumerate() {
        for (k, turns) in group.iter().enumerate() {
            for (n, turn) in turns.iter().enumerate() {
                for side in 0..2 {
                    let at = 4 * IN * (PAIRS * (2 * (g * pairs + k) + side) + n);
                    let words = turn.input(s, side);
                    input[at..at + words.len()].copy_from_slice(&words);
                }
            }
        }
    }
    for (engine, program) in programs {
        for workers in [1, 2] {
            let out = vec![0x5a5a_5a5a_u32; 4 * OUT * PAIRS * 2 * pairs * groups];
            let out = engine.memory().alloc_from(&out).unwrap();
            let items = (LANES * 2 * pairs) as u32;
            let launch = Launch::new([items * groups as u32, 1, 1])
                .local([items, 1, 1])
                .threads(workers)
                .surface(0, engine.memory().alloc_from(&input).unwrap())
                .surface(1, out.clone());
            let report = program.kernels()[0].launch(&launch);
            report.unwrap_or_else(|e| panic!("{s:?}: {e}"));
            let got = out.to_vec_of::<u32>();
            for (g, group) in all.iter().enumerate() {
                for (k, turns) in group.iter().enumerate() {
                    for side in 0..2 {
                        let at = 4 * OUT * PAIRS * (2 * (g * pairs + k) + side);
                        let got = &got[at..at + 4 * OUT * PAIRS];
                        compare(s, turns, side, around, got);
                    }
                }
            }
        }
    }
}

fn compare(s: &Shape, turns: &[Turn], side: usize, around: Around, got: &[u32]) {
    let wide = size(s.dst) * 8;
    for (n, got) in got.chunks(4 * OUT).enumerate() {
        let Some(turn) = turns.get(n) else {
            assert!(got.iter().all(|&w| w == 0x5a5a_5a5a), "{s:?}: turn {n}");
            continue;
        };
        let want = turn.output(s, side);
        for i in 0..256 / size(s.dst) {
            let lane = i as usize % LANES;
            let written = (i as usize) < want.len() && (around != Around::Branch || lane < 5);
            let want = if written {
                want[i as usize]
            } else {
                bits(&[0xa5a5_a5a5], 0, wide)
            };
            let new = bits(got, i * wide, wide);
            assert!(
                same(s.dst, new, want),
                "{s:?} {around:?}: turn {n}, side {side}: element {i} is {new:#x}, not {want:#x}"
            );
        }
    }
}

fn programs(s: &Shape, text: &str) -> Vec<(Engine, Program)> {
    let programs = engines().into_iter().map(|engine| {
        let program = engine.program_from_text("fused", text, s.platform);
        let program = program.unwrap_or_else(|e| panic!("{s:?}: {e}\n{text}"));
        (engine, program)
    });
    programs.collect()
}

fn run(s: &Shape, pairs: usize, around: Around, r: &mut Rng) {
    let programs = programs(s, &looping(s, 2 * pairs, around));
    check(&programs, s, (pairs, 3), around, r);
}

#[test]
fn every_precision() {
    let mut r = Rng::new(0x0bad_cafe_1234_5671);
    for (i, (p1, ..)) in INTS.into_iter().enumerate() {
        for (j, (p2, ..)) in INTS
            .into_iter()
            .enumerate()
            .filter(|(j, _)| (i + j) % if full() { 3 } else { 12 } == 0)
        {
            let mut s = shape([p1, p2], 1 + ((i + 3 * j) % 5) as u32, "d");
            s.src0 = [Some("ud"), None][i % 2];
            run(&s, 1 + j % 2, Around::Nothing, &mut r);
        }
    }
    for (p, dst) in [
        ("bf", "f"),
        ("bf", "bf"),
        ("hf", "f"),
        ("hf", "hf"),
        ("tf32", "f"),
    ] {
        run(&shape([p, p], 3, dst), 1, Around::Nothing, &mut r);
    }
}

/// Odd numbers of registers too, and no register at all for the second thread.
#[test]
fn every_repeat_count() {
    let mut r = Rng::new(0x1357_9bdf_0246_8ace);
    for repeat in 1..=8 {
        // A plain run takes one of the two for each count.
        if full() || repeat % 2 == 0 {
            let s = shape(["s8", "u4"], repeat, "d");
            run(&s, 2, Around::Nothing, &mut r);
        }
        if full() || repeat % 2 == 1 {
            let s = shape(["u2", "s8"], repeat, "d");
            run(&s, 1, Around::Nothing, &mut r);
        }
    }
}

/// Pairs that go round a loop more often than others, which wait at a barrier; every turn has other matrices.
#[test]
fn pairs_go_their_own_ways() {
    let mut r = Rng::new(0x7777_1111_3333_9999);
    for around in [Around::Nothing, Around::Branch, Around::Call, Around::Parts] {
        for (p, dst) in [("s8", "d"), ("hf", "f")] {
            run(&shape([p, p], 2, dst), PAIRS, around, &mut r);
        }
    }
}

/// The line of the instruction that a launch of a given number of threads in a group ends at, on every engine.
fn alone(statements: &str, threads: u32) -> u32 {
    let s = shape(["s8", "s8"], 2, "d");
    let text = kernel(&s, 2, statements);
    let mut lines = Vec::new();
    for (_, program) in programs(&s, &text) {
        let items = LANES as u32 * threads;
        let launch = Launch::new([items, 1, 1]).local([items, 1, 1]);
        match program.kernels()[0].launch(&launch) {
            Err(Error::Launch(e)) => match &*e {
                LaunchError::Alone { kernel, line } => {
                    assert_eq!(kernel, "fused");
                    lines.push(*line);
                }
                other => panic!("{other}"),
            },
            other => panic!("{:?}", other.map(|r| r.status)),
        }
    }
    lines.dedup();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let first = 1 + text.lines().position(|l| l.contains("dpasw")).unwrap() as u32;
    lines[0] - first
}

#[test]
fn a_thread_that_waits_in_vain_ends_the_launch() {
    let inst = instruction(&shape(["s8", "s8"], 2, "d"));
    let odd = "    and (M1_NM, 1) N(0,0)<1> N(0,0)<0;1,0> 0x1:ud\n    cmp.ne (M1_NM, 1) P1 N(0,0)<0;1,0> 0x0:ud\n";
    // No thread to be fused with.
    assert_eq!(alone(&inst, 1), 0);
    assert_eq!(alone(&inst, 3), 0);
    // It is at its end, before or after the other comes.
    assert_eq!(alone(&format!("{odd}    (P1) ret (M1, 1)\n{inst}"), 2), 0);
    assert_eq!(alone(&format!("{odd}    (!P1) ret (M1, 1)\n{inst}"), 4), 0);
    // It waits at a barrier.
    let there = format!("{odd}    (P1) jmp (M1, 1) THERE\n{inst}THERE:\n    barrier\n");
    assert_eq!(alone(&there, 2), 0);
    // It is at another such instruction, of another pair's first.
    let other =
        format!("{odd}    (P1) jmp (M1, 1) THERE\n{inst}    jmp (M1, 1) END\nTHERE:\n{inst}END:\n");
    assert_eq!(alone(&other, 4), 0);
    // The second time round.
    let again = format!("{inst}    barrier\n{odd}    (P1) ret (M1, 1)\n{inst}");
    assert_eq!(alone(&again, 6), 5);
}

#[test]
fn endless_exchanges_end_at_the_deadline() {
    let s = shape(["s8", "s8"], 1, "d");
    let text = kernel(
        &s,
        2,
        &format!("AGAIN:\n{}    jmp (M1, 1) AGAIN\n", instruction(&s)),
    );
    for (_, program) in programs(&s, &text) {
        let launch = Launch::new([32, 1, 1]).local([32, 1, 1]);
        let kernel = &program.kernels()[0];
        // The deadline is for the loop, not for its compilation.
        kernel.prepare(&launch).unwrap();
        let launch = launch.deadline(Duration::from_millis(30));
        let report = kernel.launch(&launch).unwrap();
        assert_eq!(report.status, LaunchStatus::DeadlineExceeded);
        assert_ne!(report.run, Duration::ZERO);
    }
}

/// The same from a library that was compiled ahead of time.
#[test]
fn libraries_run_it() {
    let s = shape(["u4", "s8"], 3, "d");
    let dir = tempfile::tempdir().unwrap();
    let [text, library] = ["fused.visaasm", "fused.so"].map(|name| dir.path().join(name));
    std::fs::write(&text, looping(&s, 2 * PAIRS, Around::Nothing)).unwrap();
    let compiled = std::process::Command::new(env!("CARGO_BIN_EXE_visa-jit"))
        .args(["compile", "--device", "acm-g10", "-o"])
        .args([&library, &text])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    let engine = Engine::new().unwrap();
    let program = Program::open_library(&engine, &library).unwrap();
    let mut r = Rng::new(0x2468_ace0_1357_9bdf);
    check(
        &[(engine, program)],
        &s,
        (PAIRS, 2),
        Around::Nothing,
        &mut r,
    );
}
