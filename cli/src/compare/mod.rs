//! `compare`: one launch under several strategies, on the same inputs, with the same results demanded of all.
//!
//! Every strategy runs once, and its buffers are compared with the reference interpreter's. Then all run in turn,
//! A B C A B C …, so that a change of the machine's speed hits each alike.

mod axes;
mod machine;
mod page;
mod table;

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::exit::{Exit, Failure, tell};
use super::load::load;
use super::run::{self, Binding, RunArgs};
use super::spec::BufferId;
use axes::{Axis, Choice};
pub use machine::Machine;
use table::{Row, Table};
use visa_jit::backend::Checks;
use visa_jit::engine::{Engine, EngineOptions, Launch, Prepared, Specialised};
use visa_jit::interp::InterpOptions;
use visa_runtime::{DeviceMemory, LaunchStatus};

/// Times that each strategy is timed when nothing is said.
const ROUNDS: u32 = 11;

/// Arguments of `compare`.
#[derive(Args, Debug)]
pub struct CompareArgs {
    #[command(flatten)]
    run: RunArgs,
    #[arg(long, value_name = "AXIS=VALUE[,VALUE…]", help = axes::help())]
    sweep: Vec<Axis>,
    /// The strategy that ratios refer to, by its name in the table; if left out, the first
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Do not run the reference interpreter; results are compared with the baseline's
    #[arg(long)]
    no_verify: bool,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write a page with a plot, and with vISA, intermediate representation and machine code side by side
    #[arg(long, value_name = "PATH")]
    html: Option<PathBuf>,
}

/// A strategy that runs.
struct Candidate {
    choice: Choice,
    prepared: Prepared,
    compile: Duration,
    /// The code, with what it was made from.
    made: Specialised,
    times: Vec<Duration>,
}

/// What a launch left: its buffers, and what it printed.
#[derive(PartialEq, Eq)]
struct Outcome {
    buffers: Vec<(BufferId, Vec<u8>)>,
    printed: Vec<u8>,
    faults: u64,
}

/// Compares.
pub fn compare(args: &CompareArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    if let Some(option) = args.run.shows_results() {
        return Err(Failure::usage(format!(
            "{option} is for `run`: `compare` shows times"
        )));
    }
    if let Some(option) = args.run.tools() {
        return Err(Failure::usage(format!(
            "{option} is for `run`: `compare` runs many codes of one name"
        )));
    }
    let options = args.run.engine_options()?;
    if options.interpret.is_some() {
        return Err(Failure::usage(
            "`compare` times code generators; the interpreter says what is right: leave out --backend interp",
        ));
    }
    let (choices, refused) = axes::choices(&args.sweep, &options)?;
    let baseline = baseline(&choices, args.baseline.as_deref())?;
    // They share memory, which has to suit all checks.
    let checks = choices.iter().filter_map(|c| checking(&c.options));
    let checks = checks.fold(Checks::NONE, Checks::and);
    let session = Session::new(&args.run, checks)?;

    let rounds = args.run.rounds().unwrap_or(ROUNDS);
    let bar = bar(choices.len(), rounds);
    let mut candidates = Vec::new();
    let mut outcomes = Vec::new();
    for choice in choices {
        let (candidate, outcome) = session.first_run(choice)?;
        candidates.push(candidate);
        outcomes.push(outcome);
        bar.inc(1);
    }
    let (reference, outcome) = if args.no_verify {
        let name = candidates.get(baseline).map_or("", |c| &c.choice.name);
        (format!("`{name}`"), outcomes.get(baseline))
    } else {
        outcomes.push(session.interpreted()?);
        ("the reference interpreter".to_owned(), outcomes.last())
    };
    let differs = |o: &Outcome| outcome.and_then(|expected| difference(o, expected));
    let differences: Vec<Option<String>> = outcomes.iter().map(differs).collect();
    let wrong = bar.suspend(|| report_differences(&candidates, &differences, &reference));

    for _ in 0..rounds {
        for candidate in &mut candidates {
            session.binding.refill()?;
            let report = candidate.prepared.run()?;
            candidate.times.push(report.run);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let same = differences.iter().map(Option::is_none);
    let rows = candidates
        .iter()
        .zip(same)
        .map(|(c, same)| Row::new(c, same));
    let table = Table::new(&session.kernel_name, rows.collect(), baseline, refused);
    if let Some(path) = &args.html {
        let about = session.about();
        let page = page::page(&table, &candidates, &session.source, &about, &reference)?;
        fs::write(path, page).map_err(|error| Failure::file("write", path, error))?;
    }
    let text = match (args.run.json(), args.csv) {
        (true, _) => table.json()?,
        (_, true) => table.csv(),
        _ => table.text(&reference),
    };
    out.write_all(text.as_bytes()).map_err(Failure::output)?;
    Ok(if wrong { Exit::Internal } else { Exit::Fine })
}

/// Progress on standard error, if that is a terminal: of compilations, then of runs.
fn bar(strategies: usize, rounds: u32) -> ProgressBar {
    let each = u64::from(rounds).saturating_add(1);
    let steps = u64::try_from(strategies).unwrap_or(u64::MAX);
    let bar = ProgressBar::new(steps.saturating_mul(each));
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Number of the strategy of this name.
fn baseline(choices: &[Choice], name: Option<&str>) -> Result<usize, Failure> {
    let Some(name) = name else {
        return Ok(0);
    };
    choices.iter().position(|c| c.name == name).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|c| format!("`{}`", c.name)).collect();
        Failure::usage(format!(
            "--baseline {name}: there is no such strategy; there is {}",
            names.join(", ")
        ))
    })
}

/// What a strategy checks, if anything.
fn checking(options: &EngineOptions) -> Option<Checks> {
    let checks = options.strategy.tuning.check;
    (!checks.is_empty()).then_some(checks)
}

/// What all strategies share: the file, device memory and its buffers.
struct Session<'a> {
    args: &'a RunArgs,
    file: super::load::Loaded,
    memory: DeviceMemory,
    binding: Binding,
    launch: Launch,
    kernel_name: String,
    /// Text of the kernel.
    source: String,
}

impl<'a> Session<'a> {
    /// `check` is what some strategy checks: they share memory.
    fn new(args: &'a RunArgs, check: Checks) -> Result<Session<'a>, Failure> {
        let file = load(args.file(), args.choice())?;
        let engine = Engine::with_options(EngineOptions {
            versions: file.versions,
            ..EngineOptions::default().check(check)
        })?;
        let memory = engine.memory().clone();
        let program = file.program(&engine)?;
        let kernel = run::pick(&file.name, &program, args.kernel())?;
        let mut binding = Binding::new(&memory);
        let launch = run::launch(args, kernel, &mut binding)?;
        Ok(Session {
            args,
            memory,
            binding,
            launch,
            kernel_name: kernel.name().to_owned(),
            source: kernel.text().to_owned(),
            file,
        })
    }

    /// Compiles a strategy's code, and runs it once.
    fn first_run(&self, choice: Choice) -> Result<(Candidate, Outcome), Failure> {
        let engine = Engine::with_memory(choice.options.clone(), self.memory.clone())?;
        let program = self.file.program(&engine)?;
        let kernel = run::pick(&self.file.name, &program, self.args.kernel())?;
        let prepared = kernel.prepare(&self.launch)?;
        let (outcome, compile) = self.outcome(&prepared)?;
        if let (Some(check), 1..) = (checking(&choice.options), outcome.faults) {
            let (name, found) = (check.name(), outcome.faults);
            return Err(Failure {
                exit: Exit::Faulted,
                message: format!(
                    "--check {name} finds {found} error(s): see `visa-jit run --check {name}`"
                ),
            });
        }
        let candidate = Candidate {
            choice,
            compile,
            made: kernel.specialised(Some(&self.launch))?,
            prepared,
            times: Vec::new(),
        };
        Ok((candidate, outcome))
    }

    /// What runs, in a sentence.
    fn about(&self) -> String {
        format!("{}, {}", self.file.name, self.args.shape())
    }

    /// The launch as the reference interpreter does it.
    fn interpreted(&self) -> Result<Outcome, Failure> {
        let options = EngineOptions {
            interpret: Some(InterpOptions::default()),
            versions: self.file.versions,
            ..EngineOptions::default()
        };
        let engine = Engine::with_memory(options, self.memory.clone())?;
        let program = self.file.program(&engine)?;
        let kernel = run::pick(&self.file.name, &program, self.args.kernel())?;
        Ok(self.outcome(&kernel.prepare(&self.launch)?)?.0)
    }

    /// Runs from the first contents of the buffers.
    fn outcome(&self, prepared: &Prepared) -> Result<(Outcome, Duration), Failure> {
        self.binding.refill()?;
        let report = prepared.run()?;
        if report.failed_assertions.is_some() {
            return Err(Failure {
                exit: Exit::Faulted,
                message: "an assertion of the kernel fails: see `visa-jit run`".to_owned(),
            });
        }
        if report.status != LaunchStatus::Completed {
            return Err(Failure {
                exit: Exit::Faulted,
                message: format!(
                    "the launch does not complete ({:?}): see `visa-jit run`",
                    report.status
                ),
            });
        }
        let outcome = Outcome {
            buffers: self.binding.contents(),
            printed: report.printed,
            faults: report.fault_count,
        };
        Ok((outcome, report.compile))
    }
}

/// The first thing in which an outcome is another than expected.
fn difference(outcome: &Outcome, expected: &Outcome) -> Option<String> {
    for ((index, got), (_, want)) in outcome.buffers.iter().zip(&expected.buffers) {
        let mut bytes = got.iter().zip(want);
        if let Some(at) = bytes.position(|(a, b)| a != b) {
            let word = |bytes: &[u8]| {
                let start = at.wrapping_sub(at % 4);
                let part: Vec<_> = bytes.iter().skip(start).take(4).collect();
                part.iter()
                    .rev()
                    .fold("0x".to_owned(), |text, b| format!("{text}{b:02x}"))
            };
            return Some(format!(
                "buffer {index} differs first in byte {at}: its dword is {}, and {} there",
                word(got),
                word(want)
            ));
        }
    }
    if outcome.printed != expected.printed {
        return Some("it prints something else".to_owned());
    }
    (outcome.faults != expected.faults).then(|| {
        format!(
            "{} accesses are out of bounds, and {} there",
            outcome.faults, expected.faults
        )
    })
}

/// Tells of every strategy with wrong results; true when there is one.
fn report_differences(
    candidates: &[Candidate],
    differences: &[Option<String>],
    reference: &str,
) -> bool {
    let (red, plain) = if std::io::stderr().is_terminal() {
        ("\x1b[1;31m", "\x1b[0m")
    } else {
        ("", "")
    };
    let mut wrong = false;
    for (candidate, difference) in candidates.iter().zip(differences) {
        if let Some(difference) = difference {
            wrong = true;
            tell(&format!(
                "{red}wrong result{plain}: `{}` is not what {reference} gives: {difference}",
                candidate.choice.name
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(bytes: &[u8], faults: u64) -> Outcome {
        Outcome {
            buffers: vec![
                (BufferId::Index(0), vec![1, 2]),
                (BufferId::Index(3), bytes.to_vec()),
            ],
            printed: Vec::new(),
            faults,
        }
    }

    #[test]
    fn the_first_difference_is_named() {
        let want = outcome(&[0, 0, 0, 0, 4, 3, 2, 1], 0);
        assert_eq!(
            difference(&outcome(&[0, 0, 0, 0, 4, 3, 2, 1], 0), &want),
            None
        );
        assert_eq!(
            difference(&outcome(&[0, 0, 0, 0, 4, 9, 2, 0], 1), &want).unwrap(),
            "buffer 3 differs first in byte 5: its dword is 0x00020904, and 0x01020304 there"
        );
        assert_eq!(
            difference(&outcome(&[0, 0, 0, 0, 4, 3, 2, 1], 2), &want).unwrap(),
            "2 accesses are out of bounds, and 0 there"
        );
        let printed = Outcome {
            printed: b"x".to_vec(),
            ..outcome(&[0, 0, 0, 0, 4, 3, 2, 1], 0)
        };
        assert!(difference(&printed, &want).is_some());
    }
}
