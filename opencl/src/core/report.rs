//! Reports of what error codes do not tell the program: faults and refusals, for people and for `visa-jit exec`.
//!
//! Nothing is printed unless it was asked for: `VISA_JIT_LOG` names a file (`-` for standard error) for lines of text,
//! `VISA_JIT_REPORT` one for lines of JSON. Each line is written at once, so that a crash loses none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, OnceLock};

use serde_json::{Value, json};
use visa_jit::{FaultRecord, Report};

use super::compiler::SOURCE_FILE;
use super::engine::variable;
use super::object::lock;
use super::ranges::missed;
use super::trace::Trace;

/// Where lines of text go.
pub const LOG_ENV: &str = "VISA_JIT_LOG";
/// Where lines of JSON go.
pub const REPORT_ENV: &str = "VISA_JIT_REPORT";

/// Fault records of a launch that are written out; all are counted.
const MOST_FAULTS: usize = 16;

/// Launches of a kernel whose faults are written out; those of others are counted.
const MOST_LAUNCHES: u32 = 16;

fn open(path: &str) -> Option<File> {
    File::options().append(true).create(true).open(path).ok()
}

/// Where lines of text go, if anywhere.
fn log_file() -> Option<&'static Mutex<Box<dyn Write + Send>>> {
    static LOG: OnceLock<Option<Mutex<Box<dyn Write + Send>>>> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let path = variable(LOG_ENV)?;
        let to: Box<dyn Write + Send> = match path.as_str() {
            "-" | "1" => Box::new(std::io::stderr()),
            path => Box::new(open(path)?),
        };
        Some(Mutex::new(to))
    });
    log.as_ref()
}

/// Writes a line of text, if there is a log.
pub fn log(text: &str) {
    if let Some(log) = log_file() {
        // There is no place left to say that the log cannot be written.
        let _ = writeln!(lock(log), "visa-jit: {text}");
    }
}

fn report(line: &Value) {
    static REPORT: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    let file = REPORT.get_or_init(|| Some(Mutex::new(open(&variable(REPORT_ENV)?)?)));
    if let Some(file) = file {
        let mut text = line.to_string();
        text.push('\n');
        // As above.
        let _ = lock(file).write_all(text.as_bytes());
    }
}

/// Something is missing or cannot be done, and not because of a kernel.
pub fn problem(where_: &str, what: &str) {
    log(&format!("{where_}: {what}"));
    report(&json!({ "kind": "problem", "where": where_, "what": what }));
}

/// A kernel that is not taken.
pub fn refused(kernel: &str, why: &str) {
    log(&format!("kernel `{kernel}` refused: {why}"));
    report(&json!({ "kind": "refused", "kernel": kernel, "why": why }));
}

/// A launch that could not be made, or did not end well.
pub fn launch_failed(kernel: &str, why: &str) {
    log(&format!("kernel `{kernel}`: {why}"));
    report(&json!({ "kind": "launch", "kernel": kernel, "why": why }));
}

/// The driver is in use, with these devices.
pub fn loaded<'a>(devices: impl Iterator<Item = &'a str>) {
    let devices: Vec<&str> = devices.collect();
    report(&json!({ "kind": "loaded", "pid": std::process::id(), "devices": devices }));
}

/// Whose code a kernel runs, when that changes, and why it does not.
pub fn tier(kernel: &str, done: &Report) {
    static TOLD: Mutex<BTreeMap<String, (&str, Option<String>)>> = Mutex::new(BTreeMap::new());
    if log_file().is_none() {
        return;
    }
    let now = (done.backend, done.note.clone());
    let before = lock(&TOLD).insert(kernel.to_owned(), now.clone());
    if before.as_ref() != Some(&now) {
        let note = now.1.map(|note| format!(": {note}")).unwrap_or_default();
        log(&format!("kernel `{kernel}` runs code by {}{note}", now.0));
    }
}

/// Accesses out of bounds of a launch, and what checks found; `source` is the text of the program, if it was made from one.
pub fn faults(kernel: &str, done: &Report, source: Option<&[u8]>) {
    static LAUNCHES: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());
    let mut launches = lock(&LAUNCHES);
    let told = launches.entry(kernel.to_owned()).or_default();
    let shown = if *told < MOST_LAUNCHES {
        MOST_FAULTS
    } else {
        0
    };
    *told = told.saturating_add(1);
    drop(launches);
    let mut sites = BTreeSet::new();
    // Where faults are counted by instruction, its first record stands for all.
    let mut first = |f: &&FaultRecord| f.count.is_none() || sites.insert((f.site, f.kind));
    let records = done.faults.iter().filter(|f| first(f)).take(shown);
    let records = records.cloned();
    let records: Vec<Told> = records
        .map(FaultRecord::without_compiler_folder)
        .map(Told::new)
        .collect();
    for told in &records {
        log(&told.lines());
    }
    let first: Vec<Value> = records.iter().map(Told::json).collect();
    report(&json!({
        "kind": "faults",
        "kernel": kernel,
        "source": source.map(source_of_faults),
        "count": done.fault_count,
        "first": first,
    }));
}

/// Tells the text of a program that has faults, once; what it is called in reports.
fn source_of_faults(text: &[u8]) -> String {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let id = blake3::hash(text).to_hex().to_string();
    if lock(&TOLD).insert(id.clone()) {
        report(&json!({
            "kind": "source",
            "id": id,
            "file": SOURCE_FILE,
            "text": String::from_utf8_lossy(text),
        }));
    }
    id
}

/// What is told of a fault.
struct Told {
    record: FaultRecord,
    /// What happened to the memory that it names, and where the program was then, the innermost function first.
    traces: Vec<(&'static str, Trace)>,
}

impl Told {
    /// The record of an access by address gets the function that the program has the memory from which it misses.
    fn new(mut record: FaultRecord) -> Told {
        let mut traces = Vec::new();
        if record.is_by_address()
            && let Some(found) = missed(record.address, record.bytes)
        {
            let (start, len, made_by) = (found.range.start, found.range.len, found.range.made_by);
            record.about = Some(match record.about {
                Some(about) => format!("{about}, from {made_by}"),
                None => {
                    let place = record.beside(start, len);
                    format!("{place} a buffer of {len} bytes from {made_by}")
                }
            });
            traces.extend(found.made_at.map(|at| ("allocated", at)));
            traces.extend(found.freed_at.map(|at| ("freed", at)));
            traces.retain(|(_, at)| !at.frames().is_empty());
        }
        Told { record, traces }
    }

    /// For people, with the number of those that it stands for.
    fn text(&self) -> String {
        let record = &self.record;
        match record.count {
            None | Some(0 | 1) => record.to_string(),
            Some(n) => format!("{record}; {} more like it", n - 1),
        }
    }

    /// The same, and a line for each function.
    fn lines(&self) -> String {
        let mut lines = self.text();
        for (what, trace) in &self.traces {
            let mut what = *what;
            for frame in trace.frames() {
                lines.push_str(&format!("\n    {what:9} by {frame}"));
                what = "";
            }
        }
        lines
    }

    fn json(&self) -> Value {
        let record = &self.record;
        let mut json = json!({
            "text": self.text(),
            "line": record.line,
            "source": record.source,
            "opcode": record.opcode,
            "access": record.access,
            "space": record.space,
            "surface": record.surface,
            "address": record.address,
            "bytes": record.bytes,
            "group": record.group,
            "local_id": record.local_id,
            "global_id": record.global_id,
            "thread": record.thread,
            "lane": record.lane,
            "kind": record.kind_name(),
            "about": record.about,
            "count": record.count,
        });
        for (what, trace) in &self.traces {
            json[*what] = json!(trace.frames());
        }
        json
    }
}
