//! Runs kernels on engines with checks and without.

use std::fmt;

#[cfg(feature = "llvm-codegen")]
use visa_jit::backend::BackendKind;
use visa_jit::backend::Check;
use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions, FaultRecord, Launch, Report};
use visa_runtime::Buffer;

use super::{Error, ITEMS, LOCAL, Planted, STORES};

/// Programs after which engines are made anew: they keep the code of all they have seen.
const FRESH_AFTER: usize = 50;

/// What came of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every engine that has the check reports the error.
    Found,
    /// None does, and results are what they are without the check.
    Dead,
    /// None does, as stray accesses lie in other buffers, which `docs/checking.md` says that no check finds.
    Hidden,
    /// Engines differ, or an error that is known to be one is not found.
    Differs(String),
}

/// An engine with a check and the same one without.
struct Pair {
    name: &'static str,
    checked: Vec<(Check, Engine)>,
    plain: Engine,
}

/// Engines that run kernels with errors.
pub struct Bench {
    llvm: bool,
    pairs: Vec<Pair>,
    programs: usize,
}

/// What a launch reports and leaves.
struct Outcome {
    bytes: Vec<u8>,
    count: u64,
    records: Vec<String>,
}

impl Bench {
    /// The interpreter and Cranelift, and LLVM too if it is asked for and built in.
    pub fn new(llvm: bool) -> Bench {
        Bench {
            llvm,
            pairs: Vec::new(),
            programs: 0,
        }
    }

    /// Runs a kernel on all engines, with its check and without.
    pub fn run(&mut self, planted: &Planted) -> Verdict {
        match self.outcome(planted) {
            Ok(verdict) => verdict,
            Err(why) => Verdict::Differs(format!("{why}\n{}", planted.text())),
        }
    }

    fn outcome(&mut self, planted: &Planted) -> Result<Verdict, String> {
        if self.programs.is_multiple_of(FRESH_AFTER) {
            self.pairs = pairs(self.llvm)?;
        }
        self.programs += 1;
        let text = planted.text();
        let wanted = self.compared(planted, &text, planted.error.check())?;
        // Reads of buffers that a launch does not write are not recorded for races, unless a write strays into one.
        if planted.error == Error::Memory {
            self.compared(planted, &text, Check::Race)?;
        }
        let found = wanted.count != 0;
        match planted.certain {
            Some(true) if !found && planted.far => Ok(Verdict::Hidden),
            Some(certain) if certain != found => {
                Err(format!("there is an error: {certain}, found: {found}"))
            }
            _ if found => Ok(Verdict::Found),
            _ => Ok(Verdict::Dead),
        }
    }

    /// What all engines report under a check.
    fn compared(&self, planted: &Planted, text: &str, check: Check) -> Result<Outcome, String> {
        let mut first: Option<(Vec<u8>, Outcome)> = None;
        for pair in &self.pairs {
            let plain = launch(&pair.plain, planted, text)?;
            let engine = pair.checked.iter().find(|(c, _)| *c == check);
            let (_, engine) = engine.ok_or("no engine with this check")?;
            let checked = launch(engine, planted, text)?;
            // Buffers lie farther apart under this check, so that what stray accesses meet is something else.
            let stray = check == Check::Memory && planted.certain == Some(true);
            if checked.bytes != plain.bytes && !stray {
                return Err(format!("{}: the check changes results", pair.name));
            }
            match &first {
                None => {
                    first = Some((plain.bytes, checked));
                }
                Some((bytes, wanted)) => {
                    if *bytes != plain.bytes || wanted.bytes != checked.bytes {
                        return Err(format!("{}: other results", pair.name));
                    }
                    let same = (wanted.count, &wanted.records) == (checked.count, &checked.records);
                    if !same {
                        return Err(format!(
                            "{}: reports {} {:#?}, and not {} {:#?}",
                            pair.name, checked.count, checked.records, wanted.count, wanted.records
                        ));
                    }
                }
            }
        }
        first
            .map(|(_, outcome)| outcome)
            .ok_or_else(|| "no engine".into())
    }
}

fn pairs(llvm: bool) -> Result<Vec<Pair>, String> {
    let options = |interpret: bool| EngineOptions {
        interpret: interpret.then(Default::default),
        memory_bytes: 1 << 26,
        ..EngineOptions::default()
    };
    let mut all = vec![("interp", options(true)), ("cranelift", options(false))];
    #[cfg(feature = "llvm-codegen")]
    if llvm {
        let options = EngineOptions {
            strategy: BackendKind::Llvm.into(),
            ..options(false)
        };
        all.push(("llvm", options));
    }
    #[cfg(not(feature = "llvm-codegen"))]
    let _ = (llvm, &mut all);
    let make = |options: EngineOptions| Engine::with_options(options).map_err(|e| e.to_string());
    all.into_iter()
        .map(|(name, options)| {
            let checks = Error::ALL.map(Error::check).into_iter();
            let checked = checks.map(|check| Ok((check, make(options.clone().check(check))?)));
            Ok(Pair {
                name,
                checked: checked.collect::<Result<_, String>>()?,
                plain: make(options)?,
            })
        })
        .collect()
}

fn launch(engine: &Engine, planted: &Planted, text: &str) -> Result<Outcome, String> {
    let memory = engine.memory();
    let alloc = |words: u32| {
        memory
            .alloc(4 * u64::from(words))
            .map_err(|e| e.to_string())
    };
    let (a, o, g) = (alloc(ITEMS)?, alloc(ITEMS * STORES)?, alloc(ITEMS * 8)?);
    let values: Vec<u8> = (0..ITEMS)
        .flat_map(|i| i.wrapping_mul(0x0101_6b2f).to_le_bytes())
        .collect();
    memory
        .write_at(a.address(), &values)
        .map_err(|e| e.to_string())?;
    if planted.uninitialised {
        a.mark_uninitialised();
    }
    let program = engine.program_from_text("planted", text, Platform::Pvc);
    let program = program.map_err(|e| e.to_string())?;
    let address = |buffer: &Buffer| buffer.address().to_le_bytes().to_vec();
    let launch = Launch::new([ITEMS, 1, 1])
        .local([LOCAL, 1, 1])
        .threads(1)
        .input("A", address(&a))
        .input("O", address(&o))
        .input("G", address(&g))
        // So that the launch knows the buffers.
        .surface(0, a)
        .surface(1, o.clone())
        .surface(2, g.clone());
    let kernel = program.kernels().first().ok_or("no kernel")?;
    let report: Report = kernel.launch(&launch).map_err(|e| e.to_string())?;
    let base = memory.base();
    Ok(Outcome {
        bytes: [o.to_vec(), g.to_vec()].concat(),
        count: report.fault_count,
        records: report.faults.iter().map(|f| record(f, base)).collect(),
    })
}

/// A record that is the same in each engine's memory.
fn record(fault: &FaultRecord, base: u64) -> String {
    let at = match fault.is_by_address() {
        true => fault.address.wrapping_sub(base),
        false => fault.address,
    };
    let about = fault.about.clone().unwrap_or_default();
    let about = about.replace(&format!("{:#x}", fault.address), "that");
    format!(
        "{} line {} {} {} bytes at {at:#x} group {:?} thread {} lane {} {} count {:?}",
        fault.kind_name(),
        fault.line,
        fault.access,
        fault.bytes,
        fault.group,
        fault.thread,
        fault.lane,
        about,
        fault.count
    )
}

/// How many kernels there were, by what came of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Found.
    pub found: u64,
    /// No error.
    pub dead: u64,
    /// In another buffer.
    pub hidden: u64,
    /// Something is wrong.
    pub differ: u64,
}

impl Counts {
    /// One more.
    pub fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Found => self.found += 1,
            Verdict::Dead => self.dead += 1,
            Verdict::Hidden => self.hidden += 1,
            Verdict::Differs(_) => self.differ += 1,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            found,
            dead,
            hidden,
            differ,
        } = self;
        write!(
            f,
            "{found} found, {dead} without an error, {hidden} in another buffer, {differ} differ"
        )
    }
}
