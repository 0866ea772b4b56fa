//! Atomics that many threads send to one place at once: nothing may be lost or happen twice, and what is beside it stays.
//!
//! Every operation on words, dwords and quadwords (floats of those widths), in LSC spelling and in that of the messages before, on a
//! surface, on local and on device memory. a full run has 32 times as many groups.

use std::collections::BTreeSet;

use half::f16;
use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions, Launch};

/// Items of a group.
const LOCAL: u32 = 64;

/// Bytes of the buffer around the contended element.
const ROOM: usize = 24;

/// Where the contended element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Surface,
    Flat,
    /// Each group has its own.
    Local,
}

/// What items put in, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operand {
    None,
    /// Number + 1.
    Number,
    Hash,
    /// One bit.
    Bit,
    /// All bits but one.
    NotBit,
    /// 1.0.
    One,
    /// The number as a float.
    Float,
    /// Number + 1 in place of 0.
    Swap,
    /// The same as floats.
    FloatSwap,
}

/// What items saw, and what is there now, of elements of `bytes` bytes.
struct Seen<'a> {
    bytes: u32,
    ids: &'a [u32],
    olds: &'a [u64],
    now: u64,
}

/// An operation, and what must be there afterwards.
struct Contest {
    lsc: &'static str,
    legacy: &'static str,
    operand: Operand,
    initial: fn(u32) -> u64,
    check: fn(&Seen<'_>) -> bool,
}

const fn mask(bytes: u32) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}

fn hash(id: u32, bytes: u32) -> u64 {
    let short = id.wrapping_mul(0x9e37_79b1);
    match bytes {
        8 => (u64::from(short) << 32) + u64::from(id),
        _ => u64::from(short) & mask(bytes),
    }
}

fn signed(v: u64, bytes: u32) -> i64 {
    let shift = 64 - 8 * bytes;
    (v << shift) as i64 >> shift
}

fn float(v: f64, bytes: u32) -> u64 {
    match bytes {
        2 => f16::from_f64(v).to_bits().into(),
        4 => (v as f32).to_bits().into(),
        _ => v.to_bits(),
    }
}

impl Seen<'_> {
    fn is(&self, v: u64) -> bool {
        self.now == v & mask(self.bytes)
    }

    fn sum(&self) -> u64 {
        self.ids.iter().map(|&id| u64::from(id) + 1).sum()
    }

    fn hashes(&self) -> impl Iterator<Item = u64> {
        self.ids.iter().map(|&id| hash(id, self.bytes))
    }

    /// Each item saw another number: together all from `first` on, one step after the other.
    fn counted(&self, first: u64, step: i64) -> bool {
        let place = |o: &u64| {
            let distance = signed(o.wrapping_sub(first) & mask(self.bytes), self.bytes);
            distance.wrapping_mul(step) as u64 & mask(self.bytes)
        };
        let mut seen: Vec<u64> = self.olds.iter().map(place).collect();
        seen.sort_unstable();
        seen.iter().enumerate().all(|(i, &s)| s == i as u64)
    }

    /// One item saw the initial zero, and all others what that one left.
    fn one_winner(&self, left: impl Fn(u64) -> u64) -> bool {
        let items = self.ids.iter().zip(self.olds);
        let winners: Vec<u64> = items
            .filter(|(_, old)| **old == 0)
            .map(|(id, _)| left(u64::from(*id) + 1))
            .collect();
        let after = |o: &u64| *o == 0 || *o == self.now;
        winners == [self.now] && self.olds.iter().all(after)
    }

    /// How often ones can be added until the next is too small to count.
    fn ones(&self) -> f64 {
        let most: f64 = if self.bytes == 2 { 2048.0 } else { f64::MAX };
        most.min(self.ids.len() as f64)
    }
}

const fn contest(
    lsc: &'static str,
    legacy: &'static str,
    operand: Operand,
    initial: fn(u32) -> u64,
    check: fn(&Seen<'_>) -> bool,
) -> Contest {
    Contest {
        lsc,
        legacy,
        operand,
        initial,
        check,
    }
}

const CONTESTS: [Contest; 20] = [
    contest("iadd", "add", Operand::Number, |_| 7, |s| s.is(s.sum() + 7)),
    contest(
        "isub",
        "sub",
        Operand::Number,
        |_| 7,
        |s| s.is(7u64.wrapping_sub(s.sum())),
    ),
    contest(
        "iinc",
        "inc",
        Operand::None,
        |_| 5,
        |s| s.is(5 + s.ids.len() as u64) && s.counted(5, 1),
    ),
    contest(
        "idec",
        "dec",
        Operand::None,
        |_| 5,
        |s| s.is(5u64.wrapping_sub(s.ids.len() as u64)) && s.counted(5, -1),
    ),
    contest(
        "",
        "predec",
        Operand::None,
        |_| 5,
        |s| s.is(5u64.wrapping_sub(s.ids.len() as u64)) && s.counted(4, -1),
    ),
    contest(
        "umin",
        "min",
        Operand::Hash,
        |_| u64::MAX,
        |s| s.hashes().min() == Some(s.now),
    ),
    contest(
        "umax",
        "max",
        Operand::Hash,
        |_| 0,
        |s| s.hashes().max() == Some(s.now),
    ),
    contest(
        "smin",
        "minsint",
        Operand::Hash,
        |bytes| mask(bytes) >> 1,
        |s| s.hashes().min_by_key(|h| signed(*h, s.bytes)) == Some(s.now),
    ),
    contest(
        "smax",
        "maxsint",
        Operand::Hash,
        |bytes| 1 << (8 * bytes - 1),
        |s| s.hashes().max_by_key(|h| signed(*h, s.bytes)) == Some(s.now),
    ),
    contest(
        "and",
        "and",
        Operand::NotBit,
        |_| u64::MAX,
        |s| s.is(0) && s.olds.contains(&mask(s.bytes)),
    ),
    contest(
        "or",
        "or",
        Operand::Bit,
        |_| 0,
        |s| s.is(u64::MAX) && s.olds.contains(&0),
    ),
    contest(
        "xor",
        "xor",
        Operand::Hash,
        |_| 0x1234,
        |s| s.is(s.hashes().fold(0x1234, |x, h| x ^ h)),
    ),
    contest(
        "store",
        "xchg",
        Operand::Number,
        |_| 0,
        |s| {
            // What was put in came out once, or is still there.
            let mut all: Vec<u64> = s.olds.iter().copied().chain([s.now]).collect();
            let put = s.ids.iter().map(|id| u64::from(*id) + 1);
            let mut put: Vec<u64> = put.chain([0]).collect();
            all.sort_unstable();
            put.sort_unstable();
            all == put
        },
    ),
    contest(
        "icas",
        "cmpxchg",
        Operand::Swap,
        |_| 0,
        |s| s.one_winner(|n| n),
    ),
    contest(
        "load",
        "",
        Operand::None,
        |_| 0x4711,
        |s| s.is(0x4711) && s.olds.iter().all(|o| *o == 0x4711),
    ),
    contest(
        "fcas",
        "fcmpwr",
        Operand::FloatSwap,
        |_| 0,
        |s| s.one_winner(|n| float(n as f64, s.bytes)),
    ),
    contest(
        "fadd",
        "fadd",
        Operand::One,
        |_| 0,
        |s| s.is(float(s.ones(), s.bytes)),
    ),
    contest(
        "fsub",
        "fsub",
        Operand::One,
        |_| 0,
        |s| s.is(float(-s.ones(), s.bytes)),
    ),
    contest(
        "fmin",
        "fmin",
        Operand::Float,
        |bytes| float(f64::INFINITY, bytes),
        |s| s.ids.iter().min().map(|&id| float(id.into(), s.bytes)) == Some(s.now),
    ),
    contest(
        "fmax",
        "fmax",
        Operand::Float,
        |bytes| float(f64::NEG_INFINITY, bytes),
        |s| s.ids.iter().max().map(|&id| float(id.into(), s.bytes)) == Some(s.now),
    ),
];

/// Instructions that make the operands in `A` and `B`. Of words, what is in the upper half of a dword must not matter.
fn operands(operand: Operand, bytes: u32) -> String {
    let line = |text: &str| format!("    {text}\n");
    let number = |to: &str| {
        line("add (M1, 16) H(0,0)<1> GID(0,0)<1;1,0> 0x1:ud")
            + &line(&format!("mov (M1, 16) {to}(0,0)<1> H(0,0)<1;1,0>"))
    };
    let zero = line("mov (M1, 16) A(0,0)<1> 0x0:ud");
    let to_float = |to: &str| match bytes {
        2 => {
            line(&format!("mov (M1, 16) {to}(0,0)<1> 0xbad00000:ud"))
                + &line(&format!("mov (M1, 16) {to}_h(0,0)<2> F(0,0)<1;1,0>"))
        }
        _ => line(&format!("mov (M1, 16) {to}_f(0,0)<1> F(0,0)<1;1,0>")),
    };
    let bit = line("mov (M1, 16) A(0,0)<1> 0x1:ud")
        + &line("shl (M1, 16) A(0,0)<1> A(0,0)<1;1,0> GID(0,0)<1;1,0>");
    match operand {
        Operand::None => String::new(),
        Operand::Number => number("A"),
        Operand::Hash => {
            let mut t = line("mul (M1, 16) H(0,0)<1> GID(0,0)<1;1,0> 0x9e3779b1:ud")
                + &line("mov (M1, 16) A(0,0)<1> H(0,0)<1;1,0>");
            if bytes == 8 {
                t += &line("shl (M1, 16) A(0,0)<1> A(0,0)<1;1,0> 0x20:ud");
                t += &line("add (M1, 16) A(0,0)<1> A(0,0)<1;1,0> GID(0,0)<1;1,0>");
            }
            t
        }
        Operand::Bit => bit,
        Operand::NotBit => bit + &line("not (M1, 16) A(0,0)<1> A(0,0)<1;1,0>"),
        Operand::One => line("mov (M1, 16) F(0,0)<1> 0x3f800000:f") + &to_float("A"),
        Operand::Float => line("mov (M1, 16) F(0,0)<1> GID(0,0)<1;1,0>") + &to_float("A"),
        Operand::Swap => zero + &number("B"),
        Operand::FloatSwap => {
            let n = line("add (M1, 16) H(0,0)<1> GID(0,0)<1;1,0> 0x1:ud")
                + &line("mov (M1, 16) F(0,0)<1> H(0,0)<1;1,0>");
            zero + &n + &to_float("B")
        }
    }
}

/// The atomic in LSC spelling, at `OFF` or `ADDR`.
fn lsc(c: &Contest, place: Place, bytes: u32) -> Option<String> {
    let (unit, at) = match place {
        Place::Surface => ("ugm", "bti(0x0)[OFF]:a32"),
        Place::Flat => ("ugm", "flat[ADDR]:a64"),
        Place::Local => ("slm", "flat[OFF]:a32"),
    };
    let sources = match c.operand {
        Operand::None => "%null %null",
        Operand::Swap | Operand::FloatSwap => "A B",
        _ => "A %null",
    };
    let (name, size) = (c.lsc, size(bytes));
    let exists = !name.is_empty();
    exists.then(|| format!("lsc_atomic_{name}.{unit} (M1, 16) OLD:{size} {at} {sources}"))
}

/// The same as before LSC: quadwords are in device memory alone.
fn legacy(c: &Contest, place: Place, bytes: u32) -> Option<String> {
    let name = c.legacy;
    if name.is_empty() || bytes == 8 && place != Place::Flat {
        return None;
    }
    // `dword_atomic` looks at types.
    let suffix = match c.operand {
        _ if bytes != 4 || place == Place::Flat => "",
        _ if name.ends_with("sint") => "_d",
        Operand::One | Operand::Float | Operand::FloatSwap => "_f",
        _ => "",
    };
    let [a, b, old] = ["A", "B", "OLD"].map(|v| format!("{v}{suffix}.0"));
    let sources = match c.operand {
        Operand::None => "%null.0 %null.0".to_owned(),
        // The new value comes first.
        Operand::Swap => format!("{b} {a}"),
        Operand::FloatSwap => format!("{a} {b}"),
        _ => format!("{a} %null.0"),
    };
    let width = ["", ".16", "", "", ".64"][bytes as usize / 2];
    let width = if bytes == 4 { "" } else { width };
    Some(match place {
        Place::Flat => format!("svm_atomic.{name}{width} (M1, 16) ADDR.0 {old} {sources}"),
        Place::Surface => format!("dword_atomic.{name}{width} (M1, 16) T6 OFF.0 {sources} {old}"),
        Place::Local => format!("dword_atomic.{name}{width} (M1, 16) %slm OFF.0 {sources} {old}"),
    })
}

fn size(bytes: u32) -> &'static str {
    ["d16c32", "d32", "d64"][bytes as usize / 4]
}

fn kernel(c: &Contest, place: Place, bytes: u32, atomic: &str) -> String {
    let ty = if bytes == 8 { "uq" } else { "ud" };
    let float = if bytes == 8 { "df" } else { "f" };
    let mut t = ".version 4.1\n.kernel \"contention\"\n.kernel_attr SimdSize=16\n.kernel_attr SLMSize=1\n\
         .decl IDS v_type=G type=uw num_elts=16 align=GRF\n.decl BASE v_type=G type=uq num_elts=1 align=qword\n\
         .decl FIRST v_type=G type=uq num_elts=1 align=qword\n\
         .decl G v_type=G type=ud num_elts=1 align=dword\n.decl GID v_type=G type=ud num_elts=16 align=GRF\n\
         .decl H v_type=G type=ud num_elts=16 align=GRF\n.decl F v_type=G type=f num_elts=16 align=GRF\n\
         .decl OFF v_type=G type=ud num_elts=16 align=GRF\n.decl ADDR v_type=G type=uq num_elts=16 align=GRF\n\
         .decl T6 v_type=T num_elts=1\n"
        .to_owned();
    for v in ["A", "B", "OLD", "NOW"] {
        t += &format!(".decl {v} v_type=G type={ty} num_elts=16 align=GRF\n");
        t += &format!(".decl {v}_f v_type=G type={float} num_elts=16 alias=<{v}, 0>\n");
        t += &format!(".decl {v}_d v_type=G type=d num_elts=16 alias=<{v}, 0>\n");
        t += &format!(".decl {v}_h v_type=G type=hf num_elts=32 alias=<{v}, 0>\n");
    }
    t += ".input IDS offset=64 size=32\n.input BASE offset=256 size=8\n.input FIRST offset=264 size=8\n\
          .function \"main\"\n    movs (M1_NM, 1) T6(0) 0x0:ud\n    \
          shl (M1_NM, 1) G(0,0)<1> %r0(0,1)<0;1,0> 0x6:ud\n    \
          add (M1, 16) GID(0,0)<1> IDS(0,0)<1;1,0> G(0,0)<0;1,0>\n";
    t += &format!("    mov (M1, 16) OFF(0,0)<1> {bytes:#x}:ud\n");
    t += "    add (M1, 16) ADDR(0,0)<1> BASE(0,0)<0;1,0> OFF(0,0)<1;1,0>\n";
    t += &operands(c.operand, bytes);
    let size = size(bytes);
    if place == Place::Local {
        t += &format!(
            "    mov (M1, 16) NOW(0,0)<1> FIRST(0,0)<0;1,0>\n    lsc_store.slm (M1, 16) flat[OFF]:a32 NOW:{size}\n    \
             lsc_fence.slm.none.group\n    barrier\n    {atomic}\n    lsc_fence.slm.none.group\n    barrier\n    \
             lsc_load.slm (M1, 16) NOW:{size} flat[OFF]:a32\n    shl (M1, 16) OFF(0,0)<1> %r0(0,1)<0;1,0> 0x3:ud\n    \
             lsc_store.ugm (M1, 16) bti(0x2)[OFF]:a32 NOW:{size}\n"
        );
    } else {
        t += &format!("    {atomic}\n");
    }
    t += &format!(
        "    shl (M1, 16) OFF(0,0)<1> GID(0,0)<1;1,0> 0x3:ud\n    \
         lsc_store.ugm (M1, 16) bti(0x1)[OFF]:a32 OLD:{size}\n    ret (M1, 1)\n"
    );
    t
}

/// Two threads and what they work on.
struct Arena {
    engine: Engine,
    groups: u32,
    ids: Vec<u32>,
}

impl Arena {
    fn new() -> Arena {
        let interpret = std::env::var_os("VISA_JIT_TEST_INTERP").map(|_| Default::default());
        let groups = match (&interpret, visa_test_common::full()) {
            (Some(_), _) => 12,
            (None, false) => 25,
            (None, true) => 800,
        };
        let engine = Engine::with_options(EngineOptions {
            memory_bytes: 1 << 24,
            interpret,
            ..super::rig::options()
        });
        Arena {
            engine: engine.unwrap(),
            groups,
            ids: (0..groups * LOCAL).collect(),
        }
    }

    fn run(&self, c: &Contest, place: Place, bytes: u32, atomic: &str) {
        let memory = self.engine.memory();
        let text = kernel(c, place, bytes, atomic);
        let program = self
            .engine
            .program_from_text("contention", &text, Platform::Pvc)
            .unwrap_or_else(|e| panic!("{atomic}: {e}\n{text}"));
        let initial = (c.initial)(bytes) & mask(bytes);
        let at = bytes as usize..2 * bytes as usize;
        let mut before = [0x5a; ROOM];
        before[at.clone()].copy_from_slice(&initial.to_le_bytes()[..bytes as usize]);
        let word = memory.alloc_from(&before).unwrap();
        let olds = memory.alloc_from(&vec![0u64; self.ids.len()]).unwrap();
        let locals = memory
            .alloc_from(&vec![0u64; self.groups as usize])
            .unwrap();
        let launch = Launch::new([self.ids.len() as u32, 1, 1])
            .local([LOCAL, 1, 1])
            .threads(2)
            .surface(0, word.clone())
            .surface(1, olds.clone())
            .surface(2, locals.clone())
            .input("BASE", word.address().to_le_bytes().to_vec())
            .input("FIRST", initial.to_le_bytes().to_vec());
        let report = program.kernels()[0].launch(&launch);
        report.unwrap_or_else(|e| panic!("{atomic}: {e}"));
        let olds = olds.to_vec_of::<u64>();
        let check = |range: std::ops::Range<usize>, now: u64| {
            let seen = Seen {
                bytes,
                ids: &self.ids[range.clone()],
                olds: &olds[range.clone()],
                now,
            };
            assert!((c.check)(&seen), "{atomic}, items {range:?}: {now:#x}");
        };
        let after = word.to_vec();
        if place == Place::Local {
            let own = LOCAL as usize;
            for (g, now) in locals.to_vec_of::<u64>().into_iter().enumerate() {
                check(g * own..(g + 1) * own, now);
            }
        } else {
            let mut wide = [0; 8];
            wide[..bytes as usize].copy_from_slice(&after[at.clone()]);
            check(0..olds.len(), u64::from_le_bytes(wide));
        }
        for (i, (now, was)) in after.iter().zip(before).enumerate() {
            let beside = !at.contains(&i);
            assert!(!beside || *now == was, "{atomic}: byte {i} beside it");
        }
    }
}

#[test]
fn atomics_under_contention() {
    let arena = Arena::new();
    // A plain run takes a fifth of each operation's, another one from operation to operation.
    let every = if visa_test_common::full() { 1 } else { 5 };
    let (mut runs, mut all) = (0, 0);
    let (mut seen, mut there) = (BTreeSet::new(), BTreeSet::new());
    for (n, c) in CONTESTS.iter().enumerate() {
        for place in [Place::Surface, Place::Flat, Place::Local] {
            for bytes in [2, 4, 8] {
                let messages = [lsc(c, place, bytes), legacy(c, place, bytes)];
                for (of, atomic) in messages.into_iter().enumerate() {
                    let Some(atomic) = atomic else { continue };
                    all += 1;
                    let form = (format!("{place:?}"), bytes, of);
                    if (all + n) % every == 0 {
                        arena.run(c, place, bytes, &atomic);
                        runs += 1;
                        seen.insert(form.clone());
                    }
                    there.insert(form);
                }
            }
        }
    }
    assert_eq!(seen, there, "places, widths and spellings");
    println!("contention: {runs} atomics, {} items each", arena.ids.len());
}
