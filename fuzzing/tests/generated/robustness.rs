//! Broken input: truncated, bit-flipped and token-edited programs, containers and files of several containers end in a typed error or
//! in success, never in a panic, a hang or an internal error. Some of those that load are run by the interpreter.
//!
//! Every case is a pure function of its number, so a failure names what to run again:
//! `CASE=123 cargo test -p visa-fuzzing robustness::`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use visa_fuzzing::files::edit::{edit_bytes, edit_text};
use visa_jit::backend::OobPolicy;
use visa_jit::container::images;
use visa_jit::front::{binary, text};
use visa_jit::interp::InterpOptions;
use visa_jit::isa::{Platform, Versions};
use visa_jit::module::InputVar;
use visa_jit::{Class, Engine, EngineOptions, Error, Kernel, Launch, Program};
use visa_runtime::LaunchStatus;
use visa_test_common::images::{archive, host, offload};
use visa_test_common::{Rng, full};

/// Damaged inputs of a full run.
const CASES: u64 = 60_000;
/// Longest time one case may take.
const LIMIT: Duration = Duration::from_secs(1);
/// One case in this many goes through the code generator as well.
const COMPILED: u64 = 100;
/// One case in this many runs on the interpreter.
const INTERPRETED: u64 = 16;
/// Instructions that a hardware thread may execute there.
const FUEL: u64 = 20_000;

/// Cases whose number ends with this are binary vISA.
const BINARY: u64 = 9;

struct Corpus {
    texts: Vec<(Platform, String)>,
    zebins: Vec<Vec<u8>>,
    /// Binary vISA.
    binaries: Vec<(Platform, Vec<u8>)>,
    /// Files of several of them.
    collections: Vec<Vec<u8>>,
}

/// Small kernels of every kind, so that a case is cheap and an edit hits something.
fn corpus(engine: &Engine) -> Corpus {
    let names = [
        "saxpy",
        "gather",
        "mandelbrot",
        "reduction",
        "histogram",
        "loops",
        "switch",
        "private",
        "call",
        "stencil",
        "block_copy",
        "atomics",
        "tables",
        "assert",
        "call_ids",
        "image_filter",
    ];
    let mut out = Corpus {
        texts: Vec::new(),
        zebins: Vec::new(),
        binaries: Vec::new(),
        collections: Vec::new(),
    };
    let mut least: BTreeMap<&'static str, Vec<u8>> = BTreeMap::new();
    // Of the devices' files of a name a plain run has every eighth: to read all takes longer than its cases.
    let every = if full() { 1 } else { 8 };
    let mut turn = 0;
    for file in visa_fuzzing::files::checked_in() {
        let name = file.name.rsplit('/').next().unwrap_or_default();
        turn += usize::from(names.contains(&name));
        if names.contains(&name) && turn % every == 0 {
            let (bytes, platform) = (file.bytes, file.platform);
            let program = engine
                .program_from_zebin(&bytes, None)
                .expect("checked-in zebin loads");
            let texts = program
                .kernels()
                .iter()
                .map(|k| (platform, k.text().to_owned()));
            out.texts
                .extend(texts.filter(|(_, t)| t.lines().count() < 260));
            if bytes.len() < 150_000 {
                let small = least.entry(platform.device()).or_default();
                if small.is_empty() || bytes.len() < small.len() {
                    small.clone_from(&bytes);
                }
                out.zebins.push(bytes);
            }
        }
    }
    for (platform, text) in &out.texts {
        let module = text::parse("checked in", text).expect("loaded before");
        if let Ok(bytes) = binary::write(&[module], Some(*platform)) {
            out.binaries.push((*platform, bytes));
        }
    }
    let least_of = |full_run: usize| full_run / every;
    assert!(
        out.binaries.len() > least_of(40),
        "{} binaries",
        out.binaries.len()
    );
    let members: Vec<(&str, &[u8])> = least.iter().map(|(d, b)| (*d, &b[..])).collect();
    let (device, image) = members[0];
    let bundle = "__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen";
    out.collections = vec![
        archive(&members),
        offload(&[("arch", device)], image),
        host(&[(bundle, &archive(&members))]),
        host(&[(".llvm.offloading", &offload(&[("arch", device)], image))]),
    ];
    for file in &out.collections {
        let found = images(file).expect("images").expect("a file of images");
        let loads = |b: &[u8]| engine.program_from_zebin(b, None).is_ok();
        assert!(!found.is_empty() && found.iter().all(|i| loads(i.bytes)));
    }
    assert!(
        out.texts.len() > least_of(40) && out.zebins.len() > least_of(8),
        "{} texts, {} zebins",
        out.texts.len(),
        out.zebins.len()
    );
    out
}

/// What cases are loaded with: one that compiles, and the interpreter.
struct Engines {
    compiling: Engine,
    interpreting: Engine,
}

impl Engines {
    fn new() -> Engines {
        let compiling = EngineOptions {
            memory_bytes: 1 << 32,
            ..EngineOptions::default()
        };
        let interpreting = EngineOptions {
            interpret: Some(InterpOptions {
                fuel: Some(FUEL),
                ..InterpOptions::default()
            }),
            ..compiling.clone()
        };
        Engines {
            compiling: Engine::with_options(compiling).expect("engine"),
            interpreting: Engine::with_options(interpreting).expect("engine"),
        }
    }
}

/// Runs a kernel of a text on surfaces of its own; true if it came to its end.
fn interpret(engine: &Engine, kernel: &Kernel, rng: &mut Rng) -> Result<bool, Error> {
    let policies = [
        OobPolicy::ReadZeroSkipWrite,
        OobPolicy::Trap,
        OobPolicy::Report,
    ];
    let mut launch = Launch::new([24, 1, 1])
        .local([24, 1, 1])
        .threads(1)
        .oob(policies[rng.below(3)]);
    for bti in 0..4 {
        let words: Vec<u32> = (0..64).map(|_| rng.bits() as u32 & 31).collect();
        launch = launch.surface(bti, engine.memory().alloc_from(&words)?);
    }
    // Larger ones are local ids and the like, which the launch fills.
    let module = kernel
        .valid()
        .expect("loaded from text or a zebin")
        .module();
    for input in module.inputs.iter().filter(|i| i.size <= 8) {
        let words = (0..input.size.div_ceil(4)).flat_map(|_| [rng.bits() as u8 & 15, 0, 0, 0]);
        let bytes: Vec<u8> = words.take(input.size as usize).collect();
        if let InputVar::General(var) = input.var
            && let Some(v) = module.vars.general(var)
        {
            launch = launch.input(v.name.clone(), bytes);
        }
    }
    Ok(kernel.launch(&launch)?.status == LaunchStatus::Completed)
}

/// One image of a damaged file of several; `None` if there is none any more.
fn collection(engine: &Engine, corpus: &Corpus, rng: &mut Rng) -> Result<Option<Program>, Error> {
    let mut bytes = corpus.collections[rng.below(corpus.collections.len())].clone();
    // What holds the images together is small beside them.
    if rng.chance(60) {
        let ends = [0, bytes.len().saturating_sub(512)];
        let start = *rng.pick(&ends);
        let end = bytes.len().min(start + 512);
        let part = edit_bytes(&bytes[start..end], rng);
        bytes.splice(start..end, part);
    } else {
        bytes = edit_bytes(&bytes, rng);
    }
    let found = images(&bytes)?.unwrap_or_default();
    match found.len() {
        0 => Ok(None),
        n => engine
            .program_from_zebin(found[rng.below(n)].bytes, None)
            .map(Some),
    }
}

/// Runs one case through everything; the counters say how far cases get.
fn case(engines: &Engines, corpus: &Corpus, n: u64, reached: &[AtomicU64; 4]) -> Result<(), Error> {
    let interpreted = n % INTERPRETED == 3;
    let engine = if interpreted {
        &engines.interpreting
    } else {
        &engines.compiling
    };
    let mut rng = Rng::new(n);
    let program = if n % 40 == 10 {
        match collection(engine, corpus, &mut rng)? {
            Some(program) => program,
            None => return Ok(()),
        }
    } else if n.is_multiple_of(10) {
        let bytes = edit_bytes(&corpus.zebins[rng.below(corpus.zebins.len())], &mut rng);
        engine.program_from_zebin(&bytes, None)?
    } else if n % 10 == BINARY {
        let (platform, bytes) = &corpus.binaries[rng.below(corpus.binaries.len())];
        match binary::to_text(&edit_bytes(bytes, &mut rng), Some(*platform), Versions::Any) {
            Ok(text) => engine.program_from_text("case.isa", &text, *platform)?,
            Err(_) => return Ok(()),
        }
    } else {
        let (platform, text) = &corpus.texts[rng.below(corpus.texts.len())];
        let text = if rng.below(6) == 0 {
            String::from_utf8_lossy(&edit_bytes(text.as_bytes(), &mut rng)).into_owned()
        } else {
            edit_text(text, &mut rng)
        };
        engine.program_from_text("case.visaasm", &text, *platform)?
    };
    reached[0].fetch_add(1, Ordering::Relaxed);
    // A container holds many kernels; one of them is enough.
    let count = program.kernels().len();
    let Some(kernel) = program.kernels().get(rng.below(count)) else {
        return Ok(());
    };
    if interpreted {
        let ended = interpret(engine, kernel, &mut rng)?;
        reached[3].fetch_add(u64::from(ended), Ordering::Relaxed);
        return Ok(());
    }
    kernel.ssa(true)?;
    reached[1].fetch_add(1, Ordering::Relaxed);
    if n % COMPILED == 1 {
        kernel.code(Default::default())?;
        reached[2].fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

#[test]
fn broken_input_is_a_typed_error() {
    let engines = Engines::new();
    let corpus = corpus(&engines.compiling);
    let (first, last) = match std::env::var("CASE").ok().and_then(|s| s.parse().ok()) {
        Some(n) => (n, n + 1),
        None => (0, visa_test_common::share(CASES, 240)),
    };
    let next = AtomicU64::new(first);
    let reached = [(); 4].map(|()| AtomicU64::new(0));
    let failures: Mutex<Vec<String>> = Mutex::new(Vec::new());
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= last || failures.lock().is_ok_and(|f| f.len() >= 20) {
                        return;
                    }
                    if std::env::var_os("LOG").is_some() {
                        eprintln!("case {n}");
                    }
                    let start = Instant::now();
                    let result =
                        catch_unwind(AssertUnwindSafe(|| case(&engines, &corpus, n, &reached)));
                    // Other tests share the processors: only a case that is slow twice is slow.
                    let slow = start.elapsed() > LIMIT && {
                        let start = Instant::now();
                        let _ =
                            catch_unwind(AssertUnwindSafe(|| case(&engines, &corpus, n, &reached)));
                        start.elapsed() > LIMIT
                    };
                    let problem = match result {
                        Err(p) => Some(format!(
                            "panic: {}",
                            p.downcast_ref::<String>()
                                .cloned()
                                .or_else(|| p.downcast_ref::<&str>().map(|s| (*s).to_owned()))
                                .unwrap_or_default()
                        )),
                        Ok(Err(e)) if e.exit_class() == Class::Internal => Some(e.to_string()),
                        _ if slow => Some(format!("took longer than {LIMIT:?}, twice")),
                        _ => None,
                    };
                    if let (Some(p), Ok(mut f)) = (problem, failures.lock()) {
                        f.push(format!("case {n}: {p}"));
                    }
                }
            });
        }
    });
    let _ = std::panic::take_hook();
    let [loaded, lowered, compiled, ended] = reached.map(AtomicU64::into_inner);
    println!(
        "{} cases: {loaded} loaded, {lowered} lowered, {compiled} compiled, {ended} interpreted to their end",
        last - first
    );
    let failures = failures.into_inner().unwrap_or_default();
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
    // Edits that all fail in the parser would prove nothing about the rest.
    assert!(
        last - first == 1 || lowered > last / 10,
        "only {lowered} cases reached lowering"
    );
    assert!(
        last - first == 1 || ended > last / INTERPRETED / 10,
        "only {ended} cases were interpreted to their end"
    );
}
