//! Checked-in kernels of real programs, as they are and damaged, launched at random and compared between engines.

pub mod edit;
mod launch;
mod pair;

use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(feature = "llvm-codegen")]
use visa_jit::backend::{BackendKind, SplitAccesses, Strategy};
use visa_jit::container::Zebin;
use visa_jit::interp::{InterpError, InterpOptions};
use visa_jit::isa::Platform;
use visa_jit::lower::LowerError;
use visa_jit::{Class, Engine, EngineOptions, Error, Kernel, Program};
use visa_runtime::{Buffer, DeviceMemory, LaunchStatus};

pub use launch::{Given, Place, Recipe};
pub use pair::{Pair, compare_pair};
use visa_test_common::Rng;

/// Instructions that a hardware thread of the interpreter may execute.
const FUEL: u64 = 200_000;
/// The background of engines with tiers takes no longer.
const BACKGROUND: Duration = Duration::from_secs(300);
/// Programs after which engines are made anew: they keep the code of all they have seen.
const FRESH_AFTER: usize = 50;

/// Lines of programs that are damaged.
const SMALL: usize = 260;
/// Bytes of containers that are damaged.
const SMALL_BYTES: usize = 150_000;

/// A checked-in container.
pub struct File {
    /// Name with the device in front.
    pub name: String,
    /// Device.
    pub platform: Platform,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// The containers of all devices.
///
/// # Panics
/// When they cannot be read.
pub fn checked_in() -> Vec<File> {
    let mut files = Vec::new();
    let bin = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/kernels/bin");
    let folders = std::fs::read_dir(bin).unwrap_or_else(|e| panic!("{bin}: {e}"));
    let mut folders: Vec<_> = folders.map(|e| e.expect("entry").path()).collect();
    folders.sort();
    for dir in folders {
        let folder = dir
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        // A device, and the compiler's version if there are several.
        let platform = Platform::ALL
            .into_iter()
            .find(|p| folder.starts_with(p.device()));
        let platform = platform.unwrap_or_else(|| panic!("{folder} is no device"));
        let entries = std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        let mut paths: Vec<_> = entries.map(|e| e.expect("entry").path()).collect();
        paths.retain(|path| path.extension().is_some_and(|e| e == "zebin"));
        paths.sort();
        for path in paths {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            files.push(File {
                name: format!("{folder}/{stem}"),
                platform,
                bytes: std::fs::read(&path).expect("readable"),
            });
        }
    }
    files
}

/// What a program is loaded from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A container.
    Container(Vec<u8>),
    /// vISA text for a device.
    Text(Platform, String),
}

impl Source {
    fn load(&self, engine: &Engine) -> Result<Program, Error> {
        match self {
            Source::Container(bytes) => engine.program_from_zebin(bytes, None),
            Source::Text(platform, text) => {
                engine.program_from_text("text.visaasm", text, *platform)
            }
        }
    }
}

/// What came of one launch on all engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same on all of them.
    Same {
        /// Whether a launch changed a buffer.
        wrote: bool,
    },
    /// All refuse the program, or the launch, for a reason.
    Refused(String),
    /// The program does not load, for a reason.
    Unreadable(String),
    /// There is no such kernel.
    Absent,
    /// It did not end in time, or needs more than engines have.
    Skipped,
    /// An engine does something else than the interpreter, or breaks.
    Differs(String),
}

/// The interpreter and engines to compare with it, on one memory.
pub struct Bench {
    memory: DeviceMemory,
    options: Vec<(&'static str, EngineOptions)>,
    engines: Vec<Engine>,
    programs: usize,
    addresses: bool,
    tiers: bool,
}

/// LLVM's code with all split accesses merged.
#[cfg(feature = "llvm-codegen")]
fn llvm_merged() -> EngineOptions {
    EngineOptions {
        strategy: Strategy::from(BackendKind::Llvm)
            .tuned(|t| t.split_accesses = SplitAccesses::Merge),
        ..EngineOptions::default()
    }
}

impl Bench {
    /// The interpreter and Cranelift, and LLVM too if it is asked for and built in.
    ///
    /// # Panics
    /// When this computer cannot run generated code.
    pub fn new(llvm: bool) -> Bench {
        Bench::with_fuel(llvm, FUEL)
    }

    /// As [`Bench::new`], with another number of instructions that a hardware thread of the interpreter may execute.
    ///
    /// # Panics
    /// When this computer cannot run generated code.
    pub fn with_fuel(llvm: bool, fuel: u64) -> Bench {
        let interpreted = |other_nans| EngineOptions {
            interpret: Some(InterpOptions {
                fuel: Some(fuel),
                other_nans,
                ..InterpOptions::default()
            }),
            ..EngineOptions::default()
        };
        let options = vec![
            ("interp", interpreted(false)),
            ("interp with other NaNs", interpreted(true)),
            ("cranelift", EngineOptions::default()),
        ];
        #[cfg(feature = "llvm-codegen")]
        let options = match llvm {
            true => [options, vec![("llvm", llvm_merged())]].concat(),
            false => options,
        };
        #[cfg(not(feature = "llvm-codegen"))]
        let _ = llvm;
        Bench {
            memory: DeviceMemory::with_capacity(1 << 32).expect("address space"),
            options,
            engines: Vec::new(),
            programs: 0,
            addresses: false,
            tiers: false,
        }
    }

    /// As [`Bench::new`], with an engine that takes LLVM's code in place of Cranelift's. Each launch is made with both.
    ///
    /// # Panics
    /// When this computer cannot run generated code.
    #[cfg(feature = "llvm-codegen")]
    pub fn tiered() -> Bench {
        let mut bench = Bench::new(false);
        let options = EngineOptions {
            tier: true,
            ..EngineOptions::default()
        };
        bench.options.push(("tiers", options));
        bench.tiers = true;
        bench
    }

    /// As it is, but structures among the arguments hold addresses of buffers.
    #[must_use]
    pub fn with_addresses(self) -> Bench {
        Bench {
            addresses: true,
            ..self
        }
    }

    /// Launches one kernel of a program, a number of times, each in another way.
    pub fn compare(
        &mut self,
        source: &Source,
        kernel: usize,
        launches: usize,
        rng: &mut Rng,
    ) -> Verdict {
        if self.programs.is_multiple_of(FRESH_AFTER) {
            let make = |(_, options): &(_, EngineOptions)| {
                Engine::with_memory(options.clone(), self.memory.clone()).expect("engine")
            };
            self.engines = self.options.iter().map(make).collect();
        }
        self.programs += 1;
        let mut loaded = Vec::new();
        for engine in &self.engines {
            match source.load(engine) {
                Ok(program) => loaded.push(program),
                Err(e) if e.exit_class() == Class::Internal => {
                    return Verdict::Differs(e.to_string());
                }
                // One reader for all of them.
                Err(e) => return Verdict::Unreadable(e.to_string()),
            }
        }
        let kernels: Option<Vec<Kernel>> = loaded
            .iter()
            .map(|program| program.kernels().get(kernel).cloned())
            .collect();
        let Some(kernels) = kernels else {
            return Verdict::Absent;
        };
        let mut verdict = Verdict::Absent;
        for _ in 0..launches {
            match (self.launch(&kernels, rng), &verdict) {
                (found @ Verdict::Differs(_), _) => return found,
                // What a launch is refused for says nothing about the others.
                (Verdict::Refused(_), Verdict::Same { .. } | Verdict::Skipped) => {}
                (Verdict::Skipped, Verdict::Same { .. }) => {}
                (Verdict::Same { wrote: false }, Verdict::Same { .. }) => {}
                (other, _) => verdict = other,
            }
        }
        verdict
    }

    fn launch(&self, kernels: &[Kernel], rng: &mut Rng) -> Verdict {
        let recipe = match self.addresses {
            true => Recipe::with_addresses(&kernels[0], rng),
            false => Recipe::random(&kernels[0], rng),
        };
        let Some(recipe) = recipe else {
            return Verdict::Skipped;
        };
        let buffers = match recipe.allocate(&self.memory) {
            Ok(buffers) => buffers,
            Err(_) => return Verdict::Skipped,
        };
        match self.on_all_tiers(kernels, &recipe, &buffers) {
            // Flat addresses reach what an engine left after the buffers: the same memory for all then.
            Verdict::Differs(what) => match self.snapshot() {
                Some(memory) => self.engines_agree(kernels, &recipe, &buffers, Some(&memory)),
                None => Verdict::Differs(what),
            },
            verdict => verdict,
        }
    }

    /// Launches on each engine, and once more when there is better code.
    fn on_all_tiers(&self, kernels: &[Kernel], recipe: &Recipe, buffers: &[Buffer]) -> Verdict {
        let verdict = self.engines_agree(kernels, recipe, buffers, None);
        if !self.tiers || !matches!(verdict, Verdict::Same { .. }) {
            return verdict;
        }
        let mut engines = self.engines.iter();
        if !engines.all(|engine| engine.wait_for_tier(BACKGROUND)) {
            return Verdict::Differs("there is no code of the better tier".to_owned());
        }
        self.engines_agree(kernels, recipe, buffers, None)
    }

    /// All that kernels can reach.
    fn snapshot(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.memory.size()).ok()?];
        self.memory.read_at(self.memory.base(), &mut bytes).ok()?;
        Some(bytes)
    }

    /// Launches on each engine, with memory as it is given.
    fn engines_agree(
        &self,
        kernels: &[Kernel],
        recipe: &Recipe,
        buffers: &[Buffer],
        memory: Option<&[u8]>,
    ) -> Verdict {
        let mut outcomes: Vec<Outcome> = Vec::new();
        for (kernel, (name, _)) in kernels.iter().zip(&self.options) {
            if let Some(bytes) = memory
                && let Err(e) = self.memory.write_at(self.memory.base(), bytes)
            {
                return Verdict::Differs(e.to_string());
            }
            outcomes.push(match recipe.run(kernel, buffers) {
                Ok((LaunchStatus::Completed, bytes)) => Ok(bytes),
                // The interpreter has come to the end before.
                Ok(_) if outcomes.len() > 1 => {
                    let kernel = kernels[0].name();
                    return Verdict::Differs(format!("`{kernel}`, {recipe}: {name} does not end"));
                }
                Ok(_) => return Verdict::Skipped,
                Err(error) if is_limit(&error) => return Verdict::Skipped,
                // What has no meaning or is not supported is found when code is made, and by the interpreter when it comes there.
                Err(Error::Lower {
                    error: error @ (LowerError::Malformed { .. } | LowerError::Unsupported { .. }),
                    ..
                }) => {
                    return Verdict::Refused(error.to_string());
                }
                Err(error) if error.exit_class() == Class::Internal => {
                    return Verdict::Differs(format!("{name}: {error}"));
                }
                Err(error) => Err(error.to_string()),
            });
        }
        let [first, other, engines @ ..] = outcomes.as_slice() else {
            return Verdict::Skipped;
        };
        for (engine, (name, _)) in engines.iter().zip(&self.options[2..]) {
            if let Some(what) = difference(first, other, engine) {
                let (kernel, by) = (kernels[0].name(), "interp and");
                return Verdict::Differs(format!(
                    "`{kernel}`, {recipe}: {by} {name} differ: {what}"
                ));
            }
        }
        match first {
            Ok(after) => Verdict::Same {
                wrote: *after != recipe.contents,
            },
            Err(error) => Verdict::Refused(error.clone()),
        }
    }
}

/// Whether an engine stopped for a reason that says nothing about the others.
fn is_limit(error: &Error) -> bool {
    matches!(
        error,
        Error::Interp {
            error: InterpError::Fuel { .. } | InterpError::TooLarge { .. },
            ..
        } | Error::Stopped { .. }
            | Error::Memory(_)
    ) || error.to_string().contains("too large")
}

type Outcome = Result<Vec<Vec<u8>>, String>;

/// What differs between the interpreter and another engine, where the interpreter does the same with other NaNs.
fn difference(want: &Outcome, other: &Outcome, got: &Outcome) -> Option<String> {
    let (want, other, got) = match (want, other, got) {
        (Ok(want), Ok(other), Ok(got)) => (want, other, got),
        (Err(e), _, Ok(_)) => return Some(format!("only the first refuses: {e}")),
        (Ok(_), _, Err(e)) => return Some(format!("only the second refuses: {e}")),
        _ => return None,
    };
    let buffers = want.iter().zip(other).zip(got).enumerate();
    buffers.into_iter().find_map(|(n, ((want, other), got))| {
        let at = (0..want.len()).find(|&at| want[at] != got[at] && want[at] == other[at])?;
        let word = |bytes: &[u8]| {
            let bytes = bytes[at & !3..].iter().take(4);
            bytes.map(|b| format!("{b:02x}")).collect::<String>()
        };
        let (want, got) = (word(want), word(got));
        Some(format!("byte {at:#x} of buffer {n}, {want} and {got}"))
    })
}

/// Programs with small damage, by number.
pub struct Mutants {
    texts: Vec<(Platform, String)>,
    containers: Vec<Vec<u8>>,
}

impl Default for Mutants {
    fn default() -> Self {
        Mutants::new()
    }
}

impl Mutants {
    /// Of small checked-in kernels, so that one is cheap and damage hits something.
    ///
    /// # Panics
    /// When one of them does not load.
    pub fn new() -> Mutants {
        Mutants::of(checked_in())
    }

    /// Of some files.
    ///
    /// # Panics
    /// When one of them does not load.
    pub fn of(files: Vec<File>) -> Mutants {
        let mut mutants = Mutants {
            texts: Vec::new(),
            containers: Vec::new(),
        };
        for file in files {
            let container = Zebin::parse(&file.bytes).expect("valid");
            let texts = container.kernels.into_iter().map(|k| k.visa.text);
            let small = texts.filter(|text| text.lines().count() < SMALL);
            mutants
                .texts
                .extend(small.map(|text| (file.platform, text)));
            if file.bytes.len() < SMALL_BYTES {
                mutants.containers.push(file.bytes);
            }
        }
        mutants
    }

    /// The damaged program of a number.
    pub fn source(&self, rng: &mut Rng) -> Source {
        match rng.below(10) {
            0 => Source::Container(edit::edit_bytes(
                rng.pick(&self.containers).clone().as_slice(),
                rng,
            )),
            1 | 2 => {
                let bytes = rng.pick(&self.containers).clone();
                Source::Container(edit::vary_information(&bytes, rng))
            }
            kind => {
                let (platform, text) = rng.pick(&self.texts).clone();
                let text = match kind {
                    3 => edit::edit_text(&text, rng),
                    _ => edit::vary_text(&text, rng),
                };
                Source::Text(platform, text)
            }
        }
    }

    /// Writes the damaged program of a number to a folder, for a look at it.
    ///
    /// # Errors
    /// Of the file system.
    pub fn save(&self, seed: u64, dir: &Path) -> std::io::Result<PathBuf> {
        let (ending, bytes) = match self.source(&mut Rng::new(seed)) {
            Source::Text(platform, text) => (format!("{platform}.visaasm"), text.into_bytes()),
            Source::Container(bytes) => ("zebin".to_owned(), bytes),
        };
        let path = dir.join(format!("{seed}.{ending}"));
        std::fs::write(&path, bytes)?;
        Ok(path)
    }

    /// Runs one on all engines.
    pub fn run(&self, bench: &mut Bench, seed: u64) -> Verdict {
        let mut rng = Rng::new(seed);
        let source = self.source(&mut rng);
        let kernel = match &source {
            Source::Text(..) => 0,
            Source::Container(_) => rng.below(4),
        };
        let verdict = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            bench.compare(&source, kernel, 1, &mut rng)
        }));
        verdict.unwrap_or_else(|_| Verdict::Differs("panic".to_owned()))
    }
}
