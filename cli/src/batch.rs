//! `compile` of many files: compiles several at a time. If one fails, the others are still compiled.

use std::cmp::Reverse;
use std::fs;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::compile::{CompileArgs, Compiler, JsonForm, KernelTime, OutputKind};
use super::exit::{Exit, Failure};
use super::steps;

/// Endings of files that are looked for in directories.
const ENDINGS: [&str; 6] = ["zebin", "cl", "spv", "visaasm", "asm", "bin"];
/// Directories inside each other.
const MAX_DEPTH: u32 = 64;

/// A file to compile and where its output goes.
struct Task {
    input: PathBuf,
    output: PathBuf,
}

/// A kernel, or a whole file, that was not compiled.
#[derive(Serialize)]
struct Failed {
    file: String,
    /// Empty when the file could not be read at all.
    kernel: String,
    /// Exit code that `compile` of this file alone has.
    code: u8,
    error: String,
}

/// What came of one file.
#[derive(Serialize)]
struct Outcome {
    file: String,
    /// Empty when nothing was written.
    output: String,
    kernels: usize,
    bytes: u64,
    ms: f64,
    /// What each kernel took; also those that failed.
    times: Vec<KernelTime>,
    #[serde(skip)]
    failed: Vec<Failed>,
}

/// A line of `--json=lines`.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    file: &'a Outcome,
    failed: &'a [Failed],
}

/// The object of `--json`.
#[derive(Serialize)]
struct Summary<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<&'a [Outcome]>,
    kernels: usize,
    failed: Vec<&'a Failed>,
    seconds: f64,
}

/// Compiles one file; the text is for standard output.
pub fn compile_one(
    args: &CompileArgs,
    file: &Path,
    form: JsonForm,
) -> Result<(String, Exit), Failure> {
    let start = Instant::now();
    let compiler = Compiler::new(args, OutputKind::of(&args.output))?;
    let task = Task {
        input: file.to_owned(),
        output: args.output.clone(),
    };
    let outcome = guarded(&compiler, &task);
    if form == JsonForm::Lines {
        write_line(&outcome)?;
    }
    report(&[outcome], Some(form), (start.elapsed(), args.time_passes))
}

/// Compiles every file; the text is for standard output.
pub fn compile(args: &CompileArgs) -> Result<(String, Exit), Failure> {
    let start = Instant::now();
    let compiler = Compiler::new(args, OutputKind::Obj)?;
    let mut tasks = tasks(args, compiler.emit())?;
    // The largest first: none is begun when the others are nearly done.
    tasks.sort_by_cached_key(|task| Reverse(fs::metadata(&task.input).map_or(0, |m| m.len())));
    let jobs = match args.jobs {
        Some(jobs) => jobs.into(),
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    let bar = bar(tasks.len());
    let next = AtomicUsize::new(0);
    let mut outcomes = Vec::new();
    let (sender, done) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs.min(tasks.len()) {
            let (next, tasks, compiler, sender) = (&next, &tasks, &compiler, sender.clone());
            scope.spawn(move || {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // It is received for as long as there are senders.
                    let _ = sender.send(guarded(compiler, task));
                }
            });
        }
        drop(sender);
        // This thread writes: it holds standard output.
        for outcome in done {
            bar.inc(1);
            if args.json == Some(JsonForm::Lines) {
                bar.suspend(|| write_line(&outcome))?;
            }
            outcomes.push(outcome);
        }
        Ok::<_, Failure>(())
    })?;
    bar.finish_and_clear();
    outcomes.sort_by(|a, b| a.file.cmp(&b.file));
    report(&outcomes, args.json, (start.elapsed(), args.time_passes))
}

/// Writes what came of a file to standard output.
fn write_line(outcome: &Outcome) -> Result<(), Failure> {
    let line = Line {
        file: outcome,
        failed: &outcome.failed,
    };
    let text = json(&line)?;
    writeln!(io::stdout().lock(), "{text}").map_err(Failure::output)
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure {
        exit: Exit::Internal,
        message: error.to_string(),
    })
}

fn bar(files: usize) -> ProgressBar {
    let bar = ProgressBar::new(files as u64);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} files, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Input files with the outputs that go with them, in the order of their names.
fn tasks(args: &CompileArgs, emit: OutputKind) -> Result<Vec<Task>, Failure> {
    let mut tasks = Vec::new();
    for path in &args.files {
        if !path.is_dir() {
            let name = path.file_name().unwrap_or_default();
            tasks.push(Task {
                input: path.clone(),
                output: args.output.join(name),
            });
            continue;
        }
        let mut found = Vec::new();
        collect(path, MAX_DEPTH, &mut found).map_err(|error| Failure::file("read", path, error))?;
        tasks.extend(found.into_iter().map(|input| {
            let inside = input.strip_prefix(path).unwrap_or(&input);
            Task {
                output: args.output.join(inside),
                input,
            }
        }));
    }
    tasks.sort_by(|a, b| a.input.cmp(&b.input));
    tasks.dedup_by(|a, b| a.input == b.input);
    for task in &mut tasks {
        // Files that differ in their ending only keep it.
        let mut name = task.output.as_os_str().to_owned();
        name.push(format!(".{}", emit.ending()));
        let short = task.output.with_extension(emit.ending());
        task.output = if task.input.extension().is_some_and(|e| e == "zebin") {
            short
        } else {
            name.into()
        };
    }
    if tasks.is_empty() {
        return Err(Failure::usage(format!(
            "no files to compile: none ends in .{}",
            ENDINGS.join(", .")
        )));
    }
    Ok(tasks)
}

fn collect(dir: &Path, depth: u32, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let Some(deeper) = depth.checked_sub(1) else {
        return Ok(());
    };
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, deeper, found)?;
        } else if path
            .extension()
            .and_then(|e| e.to_str())
            .is_some_and(|e| ENDINGS.contains(&e))
            // What ocloc writes beside a zebin of that name.
            && !path.to_string_lossy().ends_with(".zebin.spv")
        {
            found.push(path);
        }
    }
    Ok(())
}

/// Compiles one file, whatever happens.
fn guarded(compiler: &Compiler, task: &Task) -> Outcome {
    let start = Instant::now();
    let mut outcome = Outcome {
        file: task.input.display().to_string(),
        output: String::new(),
        kernels: 0,
        bytes: 0,
        ms: 0.0,
        times: Vec::new(),
        failed: Vec::new(),
    };
    let result = catch_unwind(AssertUnwindSafe(|| one(compiler, task, &mut outcome)));
    let failure = match result {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure),
        Err(_) => Some(Failure {
            exit: Exit::Internal,
            message: "the compiler panicked".to_owned(),
        }),
    };
    if let Some(failure) = failure {
        let failed = failed(&outcome.file, "", failure);
        outcome.failed.push(failed);
    }
    outcome.ms = start.elapsed().as_secs_f64() * 1e3;
    outcome
}

fn one(compiler: &Compiler, task: &Task, outcome: &mut Outcome) -> Result<(), Failure> {
    let mut compiled = compiler.file(&task.input)?;
    for (kernel, failure) in compiled.failed.drain(..) {
        outcome.failed.push(failed(&outcome.file, &kernel, failure));
    }
    outcome.times.append(&mut compiled.times);
    if compiled.is_empty() && !outcome.failed.is_empty() {
        return Ok(());
    }
    if let Some(dir) = task.output.parent() {
        fs::create_dir_all(dir).map_err(|error| Failure::file("create", dir, error))?;
    }
    outcome.bytes = compiler.write(&task.output, &compiled)?;
    outcome.kernels = compiled.kernels.len();
    outcome.output = task.output.display().to_string();
    Ok(())
}

fn failed(file: &str, kernel: &str, failure: Failure) -> Failed {
    Failed {
        file: file.to_owned(),
        kernel: kernel.to_owned(),
        code: failure.exit as u8,
        error: failure.message,
    }
}

/// What failed as a table, or all of it as JSON; and the exit code, which is the gravest.
fn report(
    outcomes: &[Outcome],
    form: Option<JsonForm>,
    (time, time_passes): (Duration, bool),
) -> Result<(String, Exit), Failure> {
    let failed: Vec<&Failed> = outcomes.iter().flat_map(|o| &o.failed).collect();
    let kernels = outcomes.iter().map(|o| o.kernels).sum();
    let gravest = [
        Exit::Internal,
        Exit::Environment,
        Exit::Usage,
        Exit::Unsupported,
        Exit::Stopped,
    ]
    .into_iter()
    .find(|exit| failed.iter().any(|f| f.code == *exit as u8));
    let exit = gravest.unwrap_or(Exit::Fine);
    if let Some(form) = form {
        let summary = Summary {
            files: (form == JsonForm::Object).then_some(outcomes),
            kernels,
            failed,
            seconds: time.as_secs_f64(),
        };
        return Ok((format!("{}\n", json(&summary)?), exit));
    }
    let mut text = format!(
        "{kernels} kernels of {} files in {:.2} s; {} failed\n",
        outcomes.len(),
        time.as_secs_f64(),
        failed.len()
    );
    let width = failed.iter().map(|f| f.file.len()).max().unwrap_or(0);
    let names = failed.iter().map(|f| f.kernel.len()).max().unwrap_or(0);
    for f in failed {
        // The whole message is in the JSON.
        let first = f.error.lines().next().unwrap_or("");
        text.push_str(&format!(
            "  {:width$}  {:names$}  {:>2}  {first}\n",
            f.file, f.kernel, f.code
        ));
    }
    if time_passes {
        text.push_str(&steps::table(outcomes.iter().flat_map(|o| &o.times)));
    }
    Ok((text, exit))
}
