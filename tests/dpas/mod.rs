//! `dpas` on random matrices against a reference that walks the ISA's definition element by element: every
//! pair of precisions, every repeat count and depth, on both register sizes. `dpasw` is in `fused`.

mod fused;

use half::{bf16, f16};
use visa_jit::interp::InterpOptions;
use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions, Launch};
use visa_test_common::{Rng, full};

const INTS: [(&str, u32, bool); 8] = [
    ("u1", 1, false),
    ("s1", 1, true),
    ("u2", 2, false),
    ("s2", 2, true),
    ("u4", 4, false),
    ("s4", 4, true),
    ("u8", 8, false),
    ("s8", 8, true),
];

/// One instruction.
#[derive(Clone, Debug)]
struct Shape {
    platform: Platform,
    precisions: [&'static str; 2],
    depth: u32,
    repeat: u32,
    /// Types of dst and src0; `None` for `%null`.
    dst: &'static str,
    src0: Option<&'static str>,
}

impl Shape {
    fn lanes(&self) -> u32 {
        self.platform.grf_bytes() / 4
    }

    fn operations(&self) -> u32 {
        match self.precisions.map(width) {
            [32, _] => 1,
            [16, _] => 2,
            [a, b] if a.max(b) == 8 => 4,
            _ => 8,
        }
    }

    fn k(&self) -> u32 {
        self.operations() * self.depth
    }
}

fn width(precision: &str) -> u32 {
    match precision {
        "bf" | "hf" => 16,
        "tf32" => 32,
        p => p[1..].parse().unwrap(),
    }
}

fn size(ty: &str) -> u32 {
    if matches!(ty, "hf" | "bf") { 2 } else { 4 }
}

/// Registers of the four operands.
struct Data {
    src0: Vec<u32>,
    src1: Vec<u32>,
    src2: Vec<u32>,
}

fn bits(words: &[u32], at: u32, count: u32) -> u32 {
    let word = words[(at / 32) as usize] >> (at % 32);
    if count == 32 {
        word
    } else {
        word & ((1 << count) - 1)
    }
}

fn integer(raw: u32, precision: &str) -> i64 {
    let n = width(precision);
    if precision.starts_with('s') && raw >> (n - 1) != 0 {
        i64::from(raw) - (1 << n)
    } else {
        i64::from(raw)
    }
}

fn float(raw: u32, format: &str) -> f32 {
    match format {
        "hf" => f16::from_bits(raw as u16).to_f32(),
        "bf" => bf16::from_bits(raw as u16).to_f32(),
        "tf32" => f32::from_bits(raw & !0x1fff),
        _ => f32::from_bits(raw),
    }
}

fn narrow(x: f32, ty: &str) -> u32 {
    match ty {
        "hf" => u32::from(f16::from_f32(x).to_bits()),
        "bf" => u32::from(bf16::from_f32(x).to_bits()),
        _ => x.to_bits(),
    }
}

/// Raw elements of dst, row by row.
fn expected(s: &Shape, d: &Data) -> Vec<u32> {
    let (n, k) = (s.lanes(), s.k());
    let [p1, p2] = s.precisions;
    let ops = s.operations();
    let per_dword = 32 / (ops * width(p1)).min(32);
    let mut out = Vec::new();
    for m in 0..s.repeat {
        for lane in 0..n {
            let start = s.src0.map_or(0, |ty| {
                bits(&d.src0, (m * n + lane) * size(ty) * 8, size(ty) * 8)
            });
            let mut int = i64::from(start);
            let mut sum = float(start, s.src0.unwrap_or("f"));
            for depth in 0..s.depth {
                for j in 0..ops {
                    // The register of src1 and the element in the lane's dword, as the ISA counts them.
                    let register = depth / per_dword;
                    let element = (depth % per_dword) * ops + j;
                    let b = bits(
                        &d.src1,
                        (register * n + lane) * 32 + element * width(p1),
                        width(p1),
                    );
                    let a = bits(&d.src2, (m * k + depth * ops + j) * width(p2), width(p2));
                    if width(p1) <= 8 {
                        int += integer(a, p2) * integer(b, p1);
                    } else {
                        sum = float(a, p2).mul_add(float(b, p1), sum);
                    }
                }
            }
            out.push(if width(p1) <= 8 {
                int as u32
            } else {
                narrow(sum, s.dst)
            });
        }
    }
    out
}

/// A float near one, or now and then anything.
fn element(r: &mut Rng, format: &str) -> u32 {
    let v = r.word();
    if v.is_multiple_of(97) {
        return v >> 3;
    }
    let x = (v as i32 >> 8) as f32 / 1e6;
    match format {
        "hf" => u32::from(f16::from_f32(x).to_bits()),
        "bf" => u32::from(bf16::from_f32(x).to_bits()),
        _ => x.to_bits() | v & 0xff,
    }
}

fn fill(r: &mut Rng, words: usize, format: &str) -> Vec<u32> {
    (0..words)
        .map(|_| match format {
            "hf" | "bf" => element(r, format) & 0xffff | element(r, format) << 16,
            "tf32" | "f" => element(r, format),
            _ => r.word(),
        })
        .collect()
}

fn text(s: &Shape, mask: &str) -> String {
    let n = s.lanes();
    let [p1, p2] = s.precisions;
    let (depth, repeat, dst) = (s.depth, s.repeat, s.dst);
    let src0 = s.src0.map_or("%null.0", |_| "C.0");
    let acc = s.src0.unwrap_or("ud");
    // 2048 bytes of A (the largest is 8 x 8 dwords) and C, 512 bytes of B columns at most.
    let mut body = String::new();
    for (index, var, owords) in [(0, "C", 32), (1, "B", 32), (2, "A", 16), (3, "D", 32)] {
        body += &format!("    movs (M1_NM, 1) T6(0) {index:#x}:ud\n");
        for at in (0..owords).step_by(8) {
            body += &format!("    oword_ld (8) T6 {at:#x}:ud {var}.{}\n", at * 16);
        }
    }
    body += &format!("    dpas.{p1}.{p2}.{depth}.{repeat} ({mask}, {n}) D.0 {src0} B.0 A(0,0)\n");
    for at in (0..32).step_by(8) {
        body += &format!("    oword_st (8) T6 {at:#x}:ud D.{}\n", at * 16);
    }
    format!(
        ".version 4.1
.kernel \"dpas\"
.kernel_attr SimdSize={n}
.decl C v_type=G type={acc} num_elts={} align=GRF
.decl B v_type=G type=ud num_elts=128 align=GRF
.decl A v_type=G type=ud num_elts=64 align=GRF
.decl D v_type=G type={dst} num_elts={} align=GRF
.decl T6 v_type=T num_elts=1
.function \"main\"
{body}    ret (M1, 1)
",
        512 / size(acc),
        512 / size(dst),
    )
}

fn same(ty: &str, a: u32, b: u32) -> bool {
    a == b || !matches!(ty, "d" | "ud") && float(a, ty).is_nan() && float(b, ty).is_nan()
}

/// Compiled code and the interpreter.
fn engines() -> Vec<Engine> {
    let interpret = EngineOptions {
        interpret: Some(InterpOptions::default()),
        ..EngineOptions::default()
    };
    let all = [
        EngineOptions::default(),
        #[cfg(feature = "llvm-codegen")]
        EngineOptions {
            strategy: visa_jit::backend::BackendKind::Llvm.into(),
            ..EngineOptions::default()
        },
        interpret,
    ];
    let made = all.into_iter().map(|o| Engine::with_options(o).unwrap());
    made.collect()
}

fn check(engines: &[Engine], s: &Shape, r: &mut Rng, lanes: Option<u32>) {
    let int = width(s.precisions[0]) <= 8;
    let data = Data {
        src0: fill(r, 128, if int { "ud" } else { s.src0.unwrap_or("ud") }),
        src1: fill(r, 128, s.precisions[0]),
        src2: fill(r, 64, s.precisions[1]),
    };
    for engine in engines {
        check_on(engine, s, &data, lanes);
    }
}

fn check_on(engine: &Engine, s: &Shape, data: &Data, lanes: Option<u32>) {
    let alloc = |words: &[u32]| engine.memory().alloc_from(words).unwrap();
    let out = alloc(&[0xa5a5_a5a5; 128]);
    let program = engine
        .program_from_text(
            "dpas",
            &text(s, if lanes.is_some() { "M1" } else { "M1_NM" }),
            s.platform,
        )
        .unwrap_or_else(|e| panic!("{s:?}: {e}"));
    let items = lanes.unwrap_or(s.lanes());
    let launch = Launch::new([items, 1, 1])
        .local([items, 1, 1])
        .surface(0, alloc(&data.src0))
        .surface(1, alloc(&data.src1))
        .surface(2, alloc(&data.src2))
        .surface(3, out.clone());
    program.kernels()[0]
        .launch(&launch)
        .unwrap_or_else(|e| panic!("{s:?}: {e}"));
    let got = out.to_vec_of::<u32>();
    let want = expected(s, data);
    let wide = size(s.dst) * 8;
    for i in 0..512 / size(s.dst) {
        let new = bits(&got, i * wide, wide);
        let lane = i % s.lanes();
        let written = (i as usize) < want.len() && lane < items;
        let want = if written {
            want[i as usize]
        } else {
            bits(&[0xa5a5_a5a5], 0, wide)
        };
        assert!(
            same(s.dst, new, want),
            "{s:?}: element {i} is {new:#x}, not {want:#x}"
        );
    }
}

/// Both platforms that have the instruction.
fn platforms() -> [Platform; 2] {
    [Platform::Dg2, Platform::Pvc]
}

#[test]
fn integers_are_exact() {
    let engines = engines();
    let mut r = Rng::new(0x1234_5678_9abc_def1);
    for (n, platform) in platforms().into_iter().enumerate() {
        for (i, (p1, ..)) in INTS.into_iter().enumerate() {
            for (j, (p2, ..)) in INTS.into_iter().enumerate() {
                // Of the pairs of formats, one in sixteen in a plain run; the platforms have different ones.
                if !full() && (i + 3 * j + 8 * n) % 16 != 0 {
                    continue;
                }
                let repeat = 1 + ((i + 3 * j) % 8) as u32;
                let s = Shape {
                    platform,
                    precisions: [p1, p2],
                    depth: 8,
                    repeat,
                    dst: if i % 2 == 0 { "d" } else { "ud" },
                    src0: [None, Some("d"), Some("ud")][(i + j) % 3],
                };
                check(&engines, &s, &mut r, None);
            }
        }
    }
}

#[test]
fn floats_accumulate_in_the_stated_order() {
    let engines = engines();
    let mut r = Rng::new(0xfeed_f00d_1234_5677);
    for (mut n, platform) in platforms().into_iter().enumerate() {
        for (p, types) in [
            ("bf", &["f", "bf"][..]),
            ("hf", &["f", "hf"]),
            ("tf32", &["f"]),
        ] {
            for &dst in types {
                for src0 in types.iter().map(|t| Some(*t)).chain([None]) {
                    // A plain run has each combination of types on one platform only.
                    n += 1;
                    let skipped = match full() {
                        true => 0,
                        false => 1 + n % 2,
                    };
                    for repeat in [1, 5].into_iter().skip(skipped) {
                        let s = Shape {
                            platform,
                            precisions: [p, p],
                            depth: 8,
                            repeat,
                            dst,
                            src0,
                        };
                        check(&engines, &s, &mut r, None);
                    }
                }
            }
        }
    }
}

#[test]
fn depths_repeats_and_masks() {
    let engines = engines();
    let mut r = Rng::new(0x0dd0_5eed_0dd0_5eed);
    for platform in platforms() {
        for repeat in (1..=8).step_by(if full() { 1 } else { 3 }) {
            for depth in [[2, 4, 8][repeat as usize % 3]] {
                let precisions = [["s8", "u8"], ["s4", "u2"], ["hf", "hf"]];
                for (n, [p1, p2]) in precisions.into_iter().enumerate() {
                    if !full() && !(n + repeat as usize / 3).is_multiple_of(2) {
                        continue;
                    }
                    let float = p1 == "hf";
                    let s = Shape {
                        platform,
                        precisions: [p1, p2],
                        depth,
                        repeat,
                        dst: if float { "f" } else { "d" },
                        src0: Some(if float { "f" } else { "d" }),
                    };
                    let lanes = (repeat % 2 == 0).then(|| s.lanes() - repeat / 2);
                    check(&engines, &s, &mut r, lanes);
                }
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let engine = Engine::new().unwrap();
    let base = Shape {
        platform: Platform::Pvc,
        precisions: ["bf", "bf"],
        depth: 8,
        repeat: 2,
        dst: "f",
        src0: None,
    };
    let refuse_on = |platform, text: &str, why: &str| {
        let program = match engine.program_from_text("dpas", text, platform) {
            Ok(program) => program,
            Err(e) => return assert!(e.to_string().contains(why), "{e}"),
        };
        let launch = Launch::new([16, 1, 1]);
        let e = program.kernels()[0]
            .launch(&launch)
            .unwrap_err()
            .to_string();
        assert!(e.contains("dpas") && e.contains(why), "{e}");
    };
    let refuse = |text: &str, why: &str| refuse_on(Platform::Pvc, text, why);
    refuse(&text(&base, "M1").replace("bf.bf", "bf.hf"), "differ");
    refuse(
        &text(&base, "M1").replace("type=f ", "type=d "),
        "a `d` matrix",
    );
    refuse(
        &text(&base, "M1").replace("(M1, 16) D", "(M1, 8) D"),
        "execution size is 16",
    );
    refuse(&text(&base, "M1").replace("bf.bf", "bf8.bf8"), "`bf8`");
}
