//! Messages by themselves: kernels of nothing but messages of one row (of fences, with a store and a load around them), on engines that must agree on registers, surfaces and images.
//!
//! `OPCODE=mnemonic` restricts it to one row, `FORMS=n` changes the number of messages a row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use visa_fuzzing::engines::{ENGINES, Engine, Machine, difference, named};
use visa_fuzzing::kernels::generate::{message_rows, messages};
use visa_fuzzing::kernels::mnemonics;
use visa_jit::front::text::parse;
use visa_jit::isa::lsc::{CACHE_CONTROLS, LSC_OPS};
use visa_jit::isa::send::{LSC_FENCE, cache_0, cache_1, function};
use visa_jit::isa::{Form, OpcodeInfo};
use visa_jit::module::{Body, RawSend, Src};
use visa_jit::valid::{Target, validate};
use visa_test_common::full;

/// Messages of a kernel.
const BATCH: usize = 8;
/// The same where none is run: most of a text is the same for any number.
const MANY: usize = 32;

/// Messages of a row, at which every spelling must have been there.
const USUAL: usize = 48;

/// What was tried of a row.
#[derive(Default)]
struct Tally {
    /// Messages times launches, by mnemonic.
    cases: BTreeMap<String, usize>,
    kernels: usize,
    mismatches: Vec<String>,
}

type Machines = Vec<(&'static str, Box<dyn Machine>)>;

/// One kernel; what engines disagree about.
fn kernel(
    seed: u64,
    row: &'static OpcodeInfo,
    launches: u64,
    machines: &mut Machines,
    tally: &mut Tally,
) -> Result<(), String> {
    let kernel = messages(seed, row, BATCH);
    let text = kernel.text();
    let mut loaded = Vec::new();
    for (name, machine) in machines.iter_mut() {
        if kernel.images && !machine.images() {
            continue;
        }
        let program = machine.load(&text, kernel.platform);
        loaded.push((*name, program.map_err(|e| format!("{name}: {e}\n{text}"))?));
    }
    if loaded.len() < 2 {
        return Err(format!("fewer than two engines run it\n{text}"));
    }
    for n in 0..launches {
        let launch = kernel.launch(seed * 64 + n);
        let mut results = Vec::new();
        for (name, program) in &loaded {
            let result = program.run(&launch);
            results.push((*name, result.map_err(|e| format!("{name}: {e}\n{text}"))?));
        }
        let Some(((first, want), rest)) = results.split_first() else {
            return Err("no engine".into());
        };
        for (name, got) in rest {
            let Some((r, element, want, got)) = difference(want, got, &kernel.regions()) else {
                continue;
            };
            return Err(format!(
                "{} simd {} lanes {}, region {r} element {element}: {first} {want:#x}, {name} {got:#x}\n{text}",
                kernel.platform, kernel.simd, launch.lanes
            ));
        }
    }
    let body: String = kernel.lines().map(|l| format!("    {l}\n")).collect();
    for (line, name) in body.lines().zip(mnemonics(&body)) {
        let typed = if line.contains(".tgm") { ".tgm" } else { "" };
        if row.mnemonics.iter().any(|m| named_by(m, &name, typed)) {
            *tally.cases.entry(format!("{name}{typed}")).or_default() += launches as usize;
        }
    }
    tally.kernels += 1;
    Ok(())
}

/// True when a spelling of the table covers a message.
fn named_by(spelling: &str, name: &str, typed: &str) -> bool {
    match spelling.strip_suffix("*.tgm") {
        Some(stem) => typed == ".tgm" && name.starts_with(stem),
        None => spelling == format!("{name}{typed}"),
    }
}

/// Spellings of a row that run.
fn spellings(row: &OpcodeInfo) -> Vec<&'static str> {
    // What ends a thread is no message to memory.
    let runs = |m: &&str| !m.ends_with("_eot");
    row.mnemonics.iter().copied().filter(runs).collect()
}

fn sweep(engines: &[Engine], count: usize, launches: u64) {
    let start = Instant::now();
    let filter = std::env::var("OPCODE").ok();
    let count = std::env::var("FORMS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(count);
    let mut rows = message_rows();
    rows.retain(|r| {
        filter
            .as_ref()
            .is_none_or(|f| r.mnemonics.contains(&f.as_str()))
    });
    assert!(!rows.is_empty(), "no row of messages is {filter:?}");
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let mut machines: Machines = engines.iter().map(|e| (e.name, e.make())).collect();
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut tally = Tally::default();
                    // Rows of many messages get as many of each.
                    let many = |m: &&str| if m.contains('*') { 12 } else { 1 };
                    let spelled: usize = spellings(row).iter().map(many).sum();
                    let kernels = (count * spelled.div_ceil(2)).div_ceil(BATCH);
                    for seed in 0..kernels as u64 {
                        let run = kernel(seed, row, launches, &mut machines, &mut tally);
                        tally.mismatches.extend(run.err());
                        if tally.mismatches.len() == 3 {
                            break;
                        }
                    }
                    done.lock().unwrap().push((*row, tally));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(row, _)| row.opcode);
    let (mut failures, mut cases, mut kernels) = (Vec::new(), 0, 0);
    for (row, tally) in &done {
        for (name, n) in &tally.cases {
            println!("{name:24} {n:>7} cases");
            cases += n;
        }
        kernels += tally.kernels;
        failures.extend(
            tally
                .mismatches
                .iter()
                .map(|m| format!("{}: {m}", row.opcode.mnemonic())),
        );
        // A few messages need not be of every kind.
        for m in spellings(row).into_iter().filter(|_| count >= USUAL) {
            let covered = tally.cases.keys().any(|k| {
                let (name, typed) = k
                    .split_once('.')
                    .map_or((k.as_str(), ""), |(n, _)| (n, ".tgm"));
                named_by(m, name, typed)
            });
            if !covered {
                failures.push(format!("no case of `{m}`"));
            }
        }
    }
    let names: Vec<&str> = engines.iter().map(|e| e.name).collect();
    println!(
        "{} rows, {kernels} kernels, {cases} cases on {}, {} mismatches, {:.1} s",
        done.len(),
        names.join(", "),
        failures.len(),
        start.elapsed().as_secs_f64()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn engines_agree_on_every_message() {
    let count = if full() { USUAL } else { USUAL / 12 };
    sweep(&named(&["interp", "cranelift"]), count, 4);
}

#[test]
#[cfg(feature = "llvm-codegen")]
fn llvm_agrees_on_every_message() {
    sweep(&named(&["interp", "llvm"]), 16, 4);
}

#[test]
#[ignore = "minutes: more messages on every engine"]
fn every_engine_agrees_on_every_message() {
    let mut engines = named(&["interp"]);
    engines.extend(ENGINES.iter().filter(|e| e.name != "interp"));
    sweep(&engines, 1024, 8);
}

/// What today's compiler writes of messages is drawn: every cache control, blocks described by a payload, bindless samplers and
/// surfaces, and the second surface of version 4.2. All of it reads as it is printed.
#[test]
fn forms_of_new_compilers_are_drawn() {
    let mut missing: BTreeSet<String> = CACHE_CONTROLS.iter().map(|c| format!(".{c}.")).collect();
    let others = ["flat[HEAD + (", " S31 T", " S31 %bss ", " %null.0 F"];
    missing.extend(others.map(str::to_owned));
    let forms = [Form::Lsc, Form::Sample3d];
    let mut rows = message_rows();
    rows.retain(|r| forms.contains(&r.form));
    for seed in 0..200 {
        // A plain run ends when it has seen all, after a few of each row.
        if missing.is_empty() && seed >= 8 && !full() {
            break;
        }
        for row in &rows {
            let text = messages(seed, row, BATCH).text();
            parse("random", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            missing.retain(|form| !text.contains(form.as_str()));
        }
    }
    assert!(missing.is_empty(), "not drawn: {missing:?}");
}

/// Messages by their descriptors that no instruction is, so that they are refused.
const REFUSED: [(u8, u32); 3] = [
    (function::DATA_CACHE_0, cache_0::ATOMIC),
    (function::DATA_CACHE_1, cache_1::COUNTER),
    (function::DATA_CACHE_1, cache_1::COUNTER_16),
];

/// Every message of the data ports by its shared function and type, with its name.
fn kinds() -> Vec<(u8, u32, &'static str)> {
    let mut out = Vec::new();
    for (port, all) in [
        (function::DATA_CACHE_0, cache_0::ALL),
        (function::DATA_CACHE_1, cache_1::ALL),
    ] {
        out.extend(all.iter().map(|&(code, name)| (port, code, name)));
    }
    let written = 1 << 3;
    out.push((
        function::DATA_CACHE_0,
        cache_0::SCRATCH,
        "scratch block read",
    ));
    out.push((
        function::DATA_CACHE_0,
        cache_0::SCRATCH | written,
        "scratch block write",
    ));
    for port in [
        function::TYPED_GLOBAL,
        function::SHARED_LOCAL,
        function::UNTYPED_GLOBAL,
    ] {
        out.push((port, LSC_FENCE, "lsc_fence"));
        for &(name, code, ..) in LSC_OPS {
            let exists = match port {
                function::TYPED_GLOBAL => name.contains("_quad") || name.contains("_atomic"),
                // Local memory has any bits, and what becomes of those of a NaN is not defined.
                function::SHARED_LOCAL => {
                    let defined = |f: &str| !name.ends_with(f);
                    !name.contains("block2d")
                        && ["fadd", "fsub", "fmin", "fmax"].iter().all(|f| defined(f))
                }
                _ => true,
            };
            out.extend(exists.then_some((port, code.into(), name)));
        }
    }
    out.retain(|(port, code, _)| !REFUSED.contains(&(*port, *code)));
    out
}

fn number(s: &Src) -> Option<u32> {
    match s {
        Src::Imm { bits, .. } => Some(*bits as u32),
        _ => None,
    }
}

fn descriptor(send: &RawSend) -> u32 {
    number(&send.desc).expect("a constant descriptor")
}

/// Shared function and type of a message.
fn kind(send: &RawSend) -> (u8, u32) {
    let desc = descriptor(send);
    let port = match send.sfid {
        0 => number(&send.ex_desc).expect("a constant") as u8 & 0xf,
        port => port,
    };
    match port {
        // Of blocks of scratch memory, a bit says that they are written; the others are of something else.
        function::DATA_CACHE_0 if desc >> 18 & 1 != 0 => (port, desc >> 14 & 0x18),
        function::DATA_CACHE_0 | function::DATA_CACHE_1 => (port, desc >> 14 & 0x1f),
        _ => (port, desc & 0x3f),
    }
}

/// Messages that were drawn.
#[derive(Default)]
struct Drawn {
    seen: BTreeMap<(u8, u32), usize>,
    /// Those with a header.
    headed: BTreeSet<(u8, u32)>,
}

impl Drawn {
    /// The messages of one kernel: it is read, and nothing in it is refused.
    fn add(&mut self, seed: u64, row: &'static OpcodeInfo) {
        let kernel = messages(seed, row, MANY);
        let text = kernel.text();
        let module = parse("random", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for inst in &module.insts {
            if let Body::RawSend(send) = &inst.body {
                *self.seen.entry(kind(send)).or_default() += 1;
                let headed = descriptor(send) >> 19 & 1 != 0;
                self.headed.extend(headed.then(|| kind(send)));
            }
        }
        let platform = kernel.platform;
        let valid = validate(module, Target { platform }).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for inst in &valid.module().insts {
            if let Body::RawSend(send) = &inst.body {
                panic!("{}\n{text}", send.refusal());
            }
        }
    }

    /// What there is, but was not drawn yet.
    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for message in OF_LANES {
            if !self.headed.contains(&message) {
                missing.push(format!("{message:x?} with a header"));
            }
        }
        for (port, code, name) in kinds() {
            if !self.seen.contains_key(&(port, code)) {
                missing.push(format!("{name} of {}", function::name(port).unwrap_or("?")));
            }
        }
        missing
    }
}

/// Messages of lanes, which are sent with headers and without.
const OF_LANES: [(u8, u32); 7] = [
    (function::DATA_CACHE_0, cache_0::DWORD_READ),
    (function::DATA_CACHE_0, cache_0::BYTE_READ),
    (function::DATA_CACHE_1, cache_1::READ),
    (function::DATA_CACHE_1, cache_1::ATOMIC),
    (function::DATA_CACHE_1, cache_1::TYPED_READ),
    (function::DATA_CACHE_1, cache_1::TYPED_WRITE),
    (function::DATA_CACHE_1, cache_1::TYPED_ATOMIC),
];

/// Random messages by their descriptors are of every kind that some instruction is sent as, and none is one that is refused. A plain run
/// ends when all were drawn.
#[test]
fn every_message_by_its_descriptor_is_drawn() {
    let mut drawn = Drawn::default();
    let sends = |r: &OpcodeInfo| matches!(r.form, Form::RawSend | Form::RawSends);
    let mut rows = message_rows();
    rows.retain(|r| sends(r));
    for seed in 0..300 {
        if !full() && seed % 10 == 0 && drawn.missing().is_empty() {
            break;
        }
        for row in &rows {
            drawn.add(seed, row);
        }
    }
    let missing = drawn.missing();
    assert!(missing.is_empty(), "not drawn: {missing:?}");
}
