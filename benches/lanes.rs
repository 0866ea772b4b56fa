//! Indirect loads and stores beside C loops with the same bounds tests.
//!
//! `cargo bench --bench lanes [DEVICE [PART-OF-A-NAME]] [--gather=WAY]`: five patterns of indices on tables of three sizes,
//! loads and stores; then a kernel whose addresses are known to be contiguous. Each launch and its C counterpart are run in
//! turn, and the median of the ratios is printed. Results are compared word for word. The C side is built with
//! `clang -O3 -march=native`.

mod support;

use libloading::{Library, Symbol};
use visa_jit::backend::{Choice as _, Gather, OobPolicy, Strategy};
use visa_jit::{Engine, EngineOptions, Launch, Prepared};
use visa_runtime::Buffer;

use support::{ROUNDS, c_library, median, paired, root, time};

/// Bytes of the table that is read, or written.
const SETS: [(&str, usize); 3] = [
    ("32 KiB", 32 << 10),
    ("1 MiB", 1 << 20),
    ("64 MiB", 64 << 20),
];

/// Largest ratio that is wanted of a launch that records faults, where there are none, and one that does not.
const REPORT: f64 = 1.1;

/// How indices run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    Random,
    /// Four elements from lane to lane.
    Strided,
    Contiguous,
    /// Random, one in ten outside.
    Outside,
    /// Random, under a mask in which half of the lanes are enabled, at random.
    Divergent,
}

const PATTERNS: [Pattern; 5] = [
    Pattern::Random,
    Pattern::Strided,
    Pattern::Contiguous,
    Pattern::Outside,
    Pattern::Divergent,
];

impl Pattern {
    /// Largest ratio that is wanted.
    fn target(self) -> f64 {
        match self {
            Pattern::Contiguous => 1.3,
            _ => 1.5,
        }
    }

    fn index(self, i: usize, table: usize) -> u32 {
        let k = match self {
            Pattern::Contiguous => i % table,
            Pattern::Strided => 4 * i % table,
            _ => hash(i as u64) as usize % table,
        };
        match self {
            // By address, the neighbour of a table is another array: far outside.
            Pattern::Outside if hash(!(i as u64)).is_multiple_of(10) => u32::MAX - k as u32,
            _ => k as u32,
        }
    }
}

/// Mixes all bits.
fn hash(i: u64) -> u64 {
    let x = (i ^ (i >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) >> 8
}

/// Arrays of a case, as the C side has them.
struct Case {
    table: Vec<u32>,
    values: Vec<u32>,
    index: Vec<u32>,
    keep: Option<Vec<u32>>,
}

impl Case {
    /// `n` lanes: enough to touch every line of the table, and no fewer than make a launch's own cost small.
    fn new(pattern: Pattern, table: usize) -> Case {
        let n = (table / 16).max(1 << 16);
        let index: Vec<u32> = (0..n).map(|i| pattern.index(i, table)).collect();
        Case {
            table: (0..table as u32).collect(),
            // Where several lanes write one element, they write the same.
            values: index.iter().map(|&k| k.wrapping_mul(0x9E37_79B9)).collect(),
            index,
            keep: (pattern == Pattern::Divergent)
                .then(|| (0..n).map(|i| (hash(!(i as u64)) & 1) as u32).collect()),
        }
    }
}

type Plain = unsafe extern "C" fn(*mut u32, u32, *const u32, u32, *const u32, u32, u32);
type Kept =
    unsafe extern "C" fn(*mut u32, u32, *const u32, u32, *const u32, u32, u32, *const u32, u32);

struct Bench {
    engine: Engine,
    device: String,
    c: Option<Library>,
    /// Names of what is slower than wanted.
    slow: Vec<String>,
}

impl Bench {
    fn prepare(&self, file: &str, kernel: &str, launch: Launch) -> Prepared {
        let path = root(&format!("tests/kernels/bin/{}/{file}.zebin", self.device));
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let program = self.engine.program_from_zebin(&bytes, None);
        let program = program.expect("checked-in zebin");
        let kernel = program.kernel(kernel);
        kernel.and_then(|k| k.prepare(&launch)).expect("prepares")
    }

    fn buffer<T: visa_runtime::Element>(&self, data: &[T]) -> Buffer {
        self.engine.memory().alloc_from(data).expect("memory")
    }

    /// One launch and the C loop in turn, then both results.
    fn gather_or_scatter(&mut self, store: bool, pattern: Pattern, set: (&str, usize)) {
        let case = Case::new(pattern, set.1 / 4);
        let (to, from) = match store {
            false => (vec![0u32; case.index.len()], &case.table),
            true => (vec![0u32; case.table.len()], &case.values),
        };
        let out = self.buffer(&to);
        let mut launch = Launch::new([case.index.len() as u32, 1, 1])
            .local([256, 1, 1])
            .arg(0, &out)
            .arg(1, self.buffer(from))
            .arg(2, self.buffer(&case.index));
        if let Some(keep) = &case.keep {
            launch = launch.arg(3, self.buffer(keep));
        }
        let (file, suffix) = match case.keep {
            None => ("gather", ""),
            Some(_) => ("kept", "_kept"),
        };
        let name = if store { "scatter" } else { "gather" };
        let prepared = self.prepare(file, &format!("{name}{suffix}"), launch);
        let what = format!("{name}, {pattern:?}, {}", set.0);
        let mut c_out = to;
        let (n, c) = (case.index.len() as u32, &self.c);
        let mut call = c.as_ref().map(|lib| {
            let (to, to_n) = (c_out.as_mut_ptr(), c_out.len() as u32);
            let (from, from_n) = (from.as_ptr(), from.len() as u32);
            let (index, keep) = (case.index.as_ptr(), case.keep.as_deref());
            let symbol = format!("{name}{suffix}");
            move || {
                // SAFETY: the symbols have these types in lanes.c but for floats, which are copied only; sizes are
                // those of the arrays, which outlive the call.
                unsafe {
                    match keep {
                        None => {
                            let f: Symbol<'_, Plain> =
                                lib.get(symbol.as_bytes()).expect("in lanes.c");
                            f(to, to_n, from, from_n, index, n, n);
                        }
                        Some(k) => {
                            let f: Symbol<'_, Kept> =
                                lib.get(symbol.as_bytes()).expect("in lanes.c");
                            f(to, to_n, from, from_n, index, n, n, k.as_ptr(), n);
                        }
                    }
                }
            }
        });
        let call = call.as_mut().map(|c| c as &mut dyn FnMut());
        let slow = report(&what, pattern.target(), &prepared, call);
        self.slow.extend(slow.then(|| what.clone()));
        if self.c.is_some() {
            assert!(out.to_vec_of::<u32>() == c_out, "{what}: results differ");
        }
    }

    /// Addresses that are contiguous whatever the launch is given.
    fn saxpy(&mut self, (set, bytes): (&str, usize)) {
        let n = bytes / 4;
        let ones = vec![1.0f32; n];
        let y = self.buffer(&ones);
        let launch = Launch::new([n as u32, 1, 1]).local([256, 1, 1]);
        let launch = launch.arg(0, &y).arg(1, self.buffer(&ones)).arg(2, 0.0f32);
        let prepared = self.prepare("saxpy", "saxpy", launch);
        let mut c_y = ones.clone();
        type F = unsafe extern "C" fn(*mut f32, u32, *const f32, u32, f32, u32);
        let mut call = self.c.as_ref().map(|lib| {
            // SAFETY: the symbol has this type in lanes.c.
            let f: Symbol<'_, F> = unsafe { lib.get(b"saxpy") }.expect("in lanes.c");
            let (c_y, x, n) = (&mut c_y, &ones, n as u32);
            // SAFETY: both arrays have `n` elements.
            move || unsafe { f(c_y.as_mut_ptr(), n, x.as_ptr(), n, 0.0, n) }
        });
        let what = format!("saxpy, {set}");
        let call = call.as_mut().map(|c| c as &mut dyn FnMut());
        let slow = report(&what, 1.3, &prepared, call);
        self.slow.extend(slow.then(|| what.clone()));
        if self.c.is_some() {
            assert!(y.to_vec_of::<f32>() == c_y, "{what}: results differ");
        }
    }

    /// What a record of faults costs where there are none.
    fn policies(&mut self) {
        for (pattern, set) in [
            (Pattern::Random, SETS[0]),
            (Pattern::Contiguous, SETS[1]),
            (Pattern::Divergent, SETS[0]),
        ] {
            for (name, store) in [("gather", false), ("scatter", true)] {
                let case = Case::new(pattern, set.1 / 4);
                let to = vec![0u32; case.index.len().max(case.table.len())];
                let from = if store { &case.values } else { &case.table };
                let mut launch = Launch::new([case.index.len() as u32, 1, 1])
                    .local([256, 1, 1])
                    .arg(0, self.buffer(&to))
                    .arg(1, self.buffer(from))
                    .arg(2, self.buffer(&case.index));
                let mut file = ("gather", name.to_owned());
                if let Some(keep) = &case.keep {
                    launch = launch.arg(3, self.buffer(keep));
                    file = ("kept", format!("{name}_kept"));
                }
                let what = format!("{name}, {pattern:?}, {}", set.0);
                self.policies_of((file.0, &file.1), &what, launch);
            }
        }
        let ones = vec![1.0f32; 4096];
        let launch = Launch::new([4096, 1, 1]).local([256, 1, 1]);
        let launch = launch.arg(0, self.buffer(&ones));
        let launch = launch.arg(1, self.buffer(&ones)).arg(2, 0.0f32);
        self.policies_of(("saxpy", "saxpy"), "saxpy, 32 KiB", launch);
    }

    fn policies_of(&mut self, (file, kernel): (&str, &str), what: &str, launch: Launch) {
        let prepare = |b: &Bench, oob| b.prepare(file, kernel, launch.clone().oob(oob));
        let zero = prepare(self, OobPolicy::ReadZeroSkipWrite);
        for policy in [OobPolicy::Report, OobPolicy::Trap] {
            let other = prepare(self, policy);
            let mut a = || drop(other.run().expect("launch"));
            let mut b = || drop(zero.run().expect("launch"));
            let (.., ratio) = paired(&mut a, &mut b);
            let over = policy == OobPolicy::Report && ratio > REPORT;
            let verdict = if over { "  over" } else { "" };
            println!("{what:<34} {policy:?} beside ReadZeroSkipWrite: ratio {ratio:.2}{verdict}");
            self.slow.extend(over.then(|| format!("{what}, report")));
        }
    }
}

/// True when a launch is slower than wanted.
fn report(what: &str, target: f64, prepared: &Prepared, c: Option<&mut dyn FnMut()>) -> bool {
    let mut run = || drop(prepared.run().expect("launch"));
    let Some(c) = c else {
        run();
        let t = median((0..ROUNDS).map(|_| time(&mut run)).collect());
        println!("{what:<34} {t:>10.1} us");
        return false;
    };
    let (ours, theirs, ratio) = paired(&mut run, c);
    let slow = ratio > target;
    let verdict = if slow { "  over" } else { "" };
    println!(
        "{what:<34} {ours:>10.1} us   C {theirs:>10.1} us   ratio {ratio:.2} of {target}{verdict}"
    );
    slow
}

fn main() {
    let mut words = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let device = words.next().unwrap_or_else(|| "skl".to_owned());
    let only = words.next().unwrap_or_default();
    let given = std::env::args().find_map(|a| Some(a.strip_prefix("--gather=")?.to_owned()));
    let gather = given.map(|name| Gather::parse(&name).expect("--gather"));
    let strategy = Strategy::default().tuned(|t| t.gather = gather.unwrap_or_default());
    let options = EngineOptions {
        strategy,
        ..EngineOptions::default()
    };
    let mut bench = Bench {
        engine: Engine::with_options(options).expect("engine"),
        device,
        c: c_library("benches/lanes.c", &[]),
        slow: Vec::new(),
    };
    println!(
        "device {}, one thread, gather {}, medians of {ROUNDS} rounds",
        bench.device,
        strategy.tuning.gather.name()
    );
    for set in SETS {
        for store in [false, true] {
            for pattern in PATTERNS {
                let name = format!("{store} {pattern:?} {}", set.0);
                if name.contains(&only) {
                    bench.gather_or_scatter(store, pattern, set);
                }
            }
        }
        if only.is_empty() {
            bench.saxpy(set);
        }
    }
    if only.is_empty() {
        bench.policies();
    }
    match bench.slow.as_slice() {
        [] => println!("everything is as fast as wanted"),
        slow => println!("slower than wanted: {}", slow.join("; ")),
    }
}
