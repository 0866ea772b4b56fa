//! What a run did, as one JSON object or as a few lines for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::colour::Colours;
use crate::findings::Finding;
use visa_jit::engine::{FaultRecord, Origin, Report};
use visa_jit::isa::Platform;
use visa_jit::lines::SourceLine;

/// Faults shown to people; the rest is a number.
const SHOWN_FAULTS: usize = 16;

/// What one invocation of `run` did.
#[derive(Clone, Debug)]
pub struct Summary<'a> {
    /// Kernel.
    pub kernel: &'a str,
    /// Device it was compiled for.
    pub device: Platform,
    /// Lanes of a hardware thread.
    pub simd: u32,
    /// The last run, which is the only one that can have faulted under `--oob trap`.
    pub last: Report,
    /// Run time of each repeat.
    pub runs: Vec<Duration>,
    /// Code generator of each, where that may change from one to the next.
    pub backends: Option<Vec<&'static str>>,
}

/// The object of `--json`. Scripts rely on its keys and their types.
#[derive(Serialize)]
struct Json<'a> {
    kernel: &'a str,
    backend: &'a str,
    device: &'a str,
    simd: u32,
    groups: u64,
    threads: u64,
    compile_ms: f64,
    cache: &'a str,
    run_ms: Vec<f64>,
    /// Code generators, one for each of these times; absent without `--tier`.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_backends: Option<&'a [&'static str]>,
    printf: &'a str,
    /// Of failed assertions; absent when none failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_assertions: Option<&'a str>,
    faults: Vec<JsonFault<'a>>,
}

#[derive(Serialize)]
struct JsonFault<'a> {
    kernel: &'a str,
    line: u32,
    source: Option<&'a SourceLine>,
    opcode: &'a str,
    access: &'a str,
    space: &'a str,
    surface: Option<u32>,
    address: u64,
    bytes: u32,
    group: [u32; 3],
    local_id: [u32; 3],
    global_id: [u64; 3],
    thread: u32,
    lane: u32,
    /// What is wrong, in a word, and the buffer that is meant, of checked launches.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<&'a str>,
    /// Faults of the instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

impl<'a> From<&'a FaultRecord> for JsonFault<'a> {
    fn from(fault: &'a FaultRecord) -> JsonFault<'a> {
        JsonFault {
            kernel: &fault.kernel,
            line: fault.line,
            source: fault.source.as_ref(),
            opcode: fault.opcode,
            access: fault.access,
            space: fault.space,
            surface: fault.surface,
            address: fault.address,
            bytes: fault.bytes,
            group: fault.group,
            local_id: fault.local_id,
            global_id: fault.global_id,
            thread: fault.thread,
            lane: fault.lane,
            kind: fault.count.map(|_| fault.kind_name()),
            about: fault.about.as_deref(),
            count: fault.count,
        }
    }
}

impl Summary<'_> {
    /// The object of `--json`, on one line.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let failed = self.last.failed_assertions.as_deref();
        let failed = failed.map(String::from_utf8_lossy);
        serde_json::to_string(&Json {
            kernel: self.kernel,
            backend: self.last.backend,
            device: self.device.device(),
            simd: self.simd,
            groups: self.last.groups,
            threads: self.last.threads,
            compile_ms: milliseconds(self.last.compile),
            cache: self.cache(),
            run_ms: self.runs.iter().copied().map(milliseconds).collect(),
            run_backends: self.backends.as_deref(),
            printf: &String::from_utf8_lossy(&self.last.printed),
            failed_assertions: failed.as_deref(),
            faults: self.last.faults.iter().map(JsonFault::from).collect(),
        })
    }

    /// One line for people.
    pub fn human(&self) -> String {
        let mut text = format!(
            "{}: SIMD{} of {}, {} group(s), {} thread(s); {} {} in {} ({}); ran in {}",
            self.kernel,
            self.simd,
            self.device,
            self.last.groups,
            self.last.threads,
            if self.last.backend == "interp" {
                "prepared by"
            } else {
                "compiled by"
            },
            self.last.backend,
            shown(self.last.compile),
            self.cache(),
            shown(self.median()),
        );
        if self.runs.len() > 1 {
            let least = self.runs.iter().min().copied().unwrap_or_default();
            let most = self.runs.iter().max().copied().unwrap_or_default();
            let _ = write!(
                text,
                " (median of {}; {} to {})",
                self.runs.len(),
                shown(least),
                shown(most)
            );
        }
        if let Some(backends) = &self.backends {
            let _ = write!(text, "\ntiers: {}", tiers(backends));
        }
        if let Some(note) = &self.last.note {
            let _ = write!(text, "\nnote: {note}");
        }
        text
    }

    /// What failed assertions say, for people.
    pub fn assertions(&self, text: &[u8]) -> String {
        let text = String::from_utf8_lossy(text);
        let lines: Vec<&str> = text.lines().collect();
        let (shown, more) = lines.split_at(lines.len().min(SHOWN_FAULTS));
        let mut said = format!("error: an assertion of kernel `{}` failed", self.kernel);
        for line in shown {
            let _ = write!(said, "\n{line}");
        }
        if !more.is_empty() {
            let _ = write!(said, "\n… and {} more", more.len());
        }
        said
    }

    /// The faults for people; empty when there are none.
    pub fn faults(&self, colours: Colours) -> String {
        let checked = self.last.faults.iter().any(|fault| fault.count.is_some());
        if checked {
            return self.checked_faults(colours);
        }
        let word = colours.wrong("fault");
        let mut text = String::new();
        for fault in self.last.faults.iter().take(SHOWN_FAULTS) {
            let fault = colours.finding(&fault.kernel, &fault.to_string());
            let _ = writeln!(text, "{word}: {fault}");
        }
        let listed = self.last.faults.len().min(SHOWN_FAULTS) as u64;
        let more = self.last.fault_count.saturating_sub(listed);
        if more > 0 {
            let _ = writeln!(text, "{word}: … and {more} more");
        }
        text
    }

    /// The first fault of each instruction and kind that are counted, with how many there are.
    fn checked_faults(&self, colours: Colours) -> String {
        let word = colours.wrong("fault");
        let mut text = String::new();
        let mut seen = BTreeSet::new();
        let (mut told, mut shown) = (0_u64, 0_usize);
        for fault in &self.last.faults {
            let key = (fault.site, fault.kind);
            // Only where faults are counted by instruction does the first record stand for others.
            let again = fault.count.is_some() && seen.contains(&key);
            if again || shown >= SHOWN_FAULTS {
                continue;
            }
            seen.insert(key);
            shown = shown.saturating_add(1);
            let count = fault.count.unwrap_or(1);
            told = told.saturating_add(count);
            let fault = colours.finding(&fault.kernel, &fault.to_string());
            let _ = write!(text, "{word}: {fault}");
            let _ = match count {
                1 => writeln!(text),
                n => writeln!(text, "; {} more like it", n.saturating_sub(1)),
            };
        }
        let more = self.last.fault_count.saturating_sub(told);
        if more > 0 {
            let _ = writeln!(text, "{word}: … and {more} more at other instructions");
        }
        text
    }

    /// The faults as findings: one for each instruction and kind.
    pub fn findings(&self) -> Vec<Finding> {
        let mut all: Vec<Finding> = Vec::new();
        let mut places: BTreeMap<_, usize> = BTreeMap::new();
        for fault in &self.last.faults {
            let key = (fault.site, fault.kind);
            let place = places.get(&key).and_then(|&n| all.get_mut(n));
            match (place, fault.count) {
                // Its first record has the number of all.
                (Some(_), Some(_)) => {}
                (Some(finding), None) => finding.count = finding.count.saturating_add(1),
                (None, count) => {
                    places.insert(key, all.len());
                    all.push(Finding {
                        kind: fault.kind_name().to_owned(),
                        kernel: fault.kernel.clone(),
                        text: fault.to_string(),
                        source: fault.source.clone(),
                        source_text: None,
                        line: fault.line.into(),
                        count: count.unwrap_or(1),
                    });
                }
            }
        }
        all
    }

    fn cache(&self) -> &'static str {
        match self.last.origin {
            Origin::Compiled => "miss",
            Origin::Memory => "hit",
            Origin::Disk => "disk",
            Origin::Library => "library",
        }
    }

    fn median(&self) -> Duration {
        let mut runs = self.runs.clone();
        runs.sort_unstable();
        runs.get(runs.len().wrapping_div(2))
            .copied()
            .unwrap_or_default()
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn shown(time: Duration) -> String {
    format!("{:.3} ms", milliseconds(time))
}

/// How many runs one after the other had code of the same code generator: `cranelift 3, llvm 97`.
fn tiers(backends: &[&str]) -> String {
    let same = backends.chunk_by(|a, b| a == b);
    let counted = same.map(|runs| format!("{} {}", runs.first().unwrap_or(&""), runs.len()));
    counted.collect::<Vec<_>>().join(", ")
}
