//! `explain`: why a kernel's code is as it is.
//!
//! Everything that is said here was noted by the pass or the code generator that decided it, apart from spills, of
//! which Cranelift says which part of the stack is not theirs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;

use super::KernelArgs;
use super::backend::BackendArgs;
use super::compare::Machine;
use super::exit::{Exit, Failure};
use super::run::{self, Oob};
use super::spec::Extent;
use visa_jit::engine::{
    AccessReport, AddressShape, BoundsTest, Decision, Engine, Kernel, Launch, PlanLine, Remark,
    RuntimeCall, Specialised, Way, Why,
};

/// Which code of a kernel is looked at.
#[derive(Args, Debug)]
pub struct CodeArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    #[command(flatten)]
    backend: BackendArgs,
    /// Show the code that a launch of this size runs; without it, the code for launches of any shape
    #[arg(long, value_name = "X[,Y[,Z]]")]
    global: Option<Extent>,
    /// Work-items of a group of that launch; chosen to fit if left out
    #[arg(long, value_name = "X[,Y[,Z]]", requires = "global")]
    local: Option<Extent>,
    /// What an access out of bounds does
    #[arg(long, value_enum, default_value = "zero", requires = "global")]
    oob: Oob,
}

impl CodeArgs {
    /// Compiles that code and looks at it.
    pub fn look(
        &self,
        look: impl FnOnce(&Kernel, &Engine, &Specialised) -> Result<String, Failure>,
    ) -> Result<String, Failure> {
        let mut options = self.backend.options()?;
        if options.interpret.is_some() {
            return Err(Failure::usage(
                "the interpreter makes no code: leave out --backend interp",
            ));
        }
        let file = self.kernel.load()?;
        options.versions = file.versions;
        let engine = Engine::with_options(options)?;
        let program = file.program(&engine)?;
        let kernel = run::pick(&file.name, &program, self.kernel.kernel.as_deref())?;
        let launch = self.global.map(|global| {
            let launch = Launch::new(global.0).oob(self.oob.into());
            match self.local {
                Some(local) => launch.local(local.0),
                None => launch,
            }
        });
        let made = kernel.specialised(launch.as_ref())?;
        look(kernel, &engine, &made)
    }
}

/// Arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    #[command(flatten)]
    code: CodeArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The whole of it. Scripts rely on the keys.
#[derive(Serialize)]
struct Report {
    kernel: String,
    backend: &'static str,
    /// The launches that this code is for.
    launches: &'static str,
    ssa: usize,
    #[serde(flatten)]
    machine: Machine,
    accesses: Vec<Row>,
    bounds: BTreeMap<&'static str, usize>,
    /// The access plan, in the order of the code.
    plan: Vec<PlanLine>,
    /// Calls of the runtime that are left.
    calls: Vec<RuntimeCall>,
    masks: Vec<Mask>,
    split: Vec<Split>,
    /// What the code generator did other than asked for.
    note: Option<String>,
}

#[derive(Serialize)]
struct Row {
    line: u32,
    /// Of upper lanes, where several instructions are one access.
    upper_lines: Vec<u32>,
    opcode: &'static str,
    op: String,
    lanes: u16,
    shape: &'static str,
    stride: Option<i64>,
    why: Option<String>,
    way: Way,
    /// Lanes that are accessed one by one.
    one_by_one: u16,
    bounds: BoundsTest,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Mask {
    line: u32,
    used: bool,
    what: &'static str,
    times: usize,
}

#[derive(Serialize)]
struct Split {
    line: u32,
    split: bool,
    what: String,
}

/// Explains.
pub fn explain(args: &ExplainArgs) -> Result<String, Failure> {
    args.code.look(|kernel, engine, made| {
        let report = report(kernel.name(), engine.backend(), made);
        if args.json {
            let text = serde_json::to_string(&report).map_err(|error| Failure {
                exit: Exit::Internal,
                message: error.to_string(),
            })?;
            return Ok(format!("{text}\n"));
        }
        Ok(text(&report, &made.accesses(), kernel.text()))
    })
}

fn report(kernel: &str, backend: &'static str, made: &Specialised) -> Report {
    let accesses = made.accesses();
    let mut bounds = BTreeMap::new();
    for access in &accesses {
        let n: &mut usize = bounds.entry(access.bounds.name()).or_default();
        *n = n.saturating_add(1);
    }
    Report {
        kernel: kernel.to_owned(),
        backend,
        launches: made.launches(),
        ssa: made.instructions(),
        machine: Machine::of(made.object(), made.stack()),
        accesses: accesses.iter().map(row).collect(),
        bounds,
        plan: made.plan().to_vec(),
        calls: made.calls().to_vec(),
        masks: masks(made.remarks()),
        split: made.remarks().filter_map(split).collect(),
        note: made.object().note.clone(),
    }
}

fn row(access: &AccessReport) -> Row {
    let stride = match access.shape {
        AddressShape::Strided(stride) => Some(stride),
        _ => None,
    };
    Row {
        line: access.line,
        upper_lines: access.upper_lines.clone(),
        opcode: access.opcode,
        op: access.op.clone(),
        lanes: access.lanes,
        shape: access.shape.name(),
        stride,
        why: access.why.as_ref().map(Why::to_string),
        way: access.way,
        one_by_one: access.way.one_by_one(),
        bounds: access.bounds,
    }
}

/// Facts about masks, equal ones together.
fn masks<'a>(remarks: impl Iterator<Item = &'a Remark>) -> Vec<Mask> {
    let mut found: BTreeMap<(u32, bool, &'static str), usize> = BTreeMap::new();
    for remark in remarks {
        let (used, what) = match remark.decision {
            Decision::MaskUsed(what) => (true, what),
            Decision::MaskMissed(what) => (false, what),
            _ => continue,
        };
        let n = found.entry((remark.line, used, what)).or_default();
        *n = n.saturating_add(1);
    }
    let mask = |((line, used, what), times)| Mask {
        line,
        used,
        what,
        times,
    };
    found.into_iter().map(mask).collect()
}

fn split(remark: &Remark) -> Option<Split> {
    let (split, what) = match remark.decision {
        Decision::StripMined { strips } => {
            (true, format!("the loop runs in {strips} strips of lanes"))
        }
        Decision::NotStripMined(why) => {
            (false, format!("the loop runs for all lanes at once: {why}"))
        }
        Decision::StartInStrips { strips } => (
            true,
            format!(
                "what comes before the first store, barrier or branch on a mask runs in {strips} strips of lanes"
            ),
        ),
        Decision::ScalarTail { lanes } => (
            true,
            format!(
                "once at most {lanes} lanes are left in the loop, they run one after the other"
            ),
        ),
        Decision::NoScalarTail(why) => (
            false,
            format!("the loop runs for all lanes until the last has left: {why}"),
        ),
        Decision::Versioned { accesses } => (
            true,
            format!(
                "two versions: one for when one test holds for {accesses} accesses, one by the runtime"
            ),
        ),
        Decision::Barriers { count, saved } => (
            true,
            format!("cut at {count} barriers, across which {saved} values are saved"),
        ),
        _ => return None,
    };
    Some(Split {
        line: remark.line,
        split,
        what,
    })
}

fn text(report: &Report, accesses: &[AccessReport], source: &str) -> String {
    let m = &report.machine;
    let mut out = format!(
        "{}: code of {} for {}: {} bytes, {} instructions, made from {} of the IR\n",
        report.kernel, report.backend, report.launches, m.bytes, m.instructions, report.ssa
    );
    if let Some(note) = &report.note {
        let _ = writeln!(out, "note: {note}");
    }
    let lines: Vec<&str> = source.lines().collect();
    out.push_str("\nmemory\n");
    for access in accesses {
        memory(&mut out, access, &lines);
    }
    let bounds = report.bounds.iter().map(|(name, n)| format!("{n} {name}"));
    let bounds: Vec<String> = bounds.collect();
    let _ = writeln!(
        out,
        "  bounds tests: {}",
        if bounds.is_empty() {
            "none".to_owned()
        } else {
            bounds.join(", ")
        }
    );
    out.push_str("\naccess plan\n");
    for line in &report.plan {
        let _ = writeln!(out, "  {line}");
    }
    if report.plan.is_empty() {
        out.push_str("  no loads and stores of lanes\n");
    }
    calls(&mut out, &report.calls);
    out.push_str("\nmasks\n");
    for mask in &report.masks {
        let used = if mask.used { "used" } else { "missed" };
        let times = match mask.times {
            1 => String::new(),
            n => format!(" ({n} times)"),
        };
        let _ = writeln!(
            out,
            "  line {:<5} {used:<7} {}{times}",
            mask.line, mask.what
        );
    }
    if report.masks.is_empty() {
        out.push_str("  nothing to know or to miss\n");
    }
    out.push_str("\nsplit\n");
    for split in &report.split {
        let _ = writeln!(out, "  line {:<5} {}", split.line, split.what);
    }
    if report.split.is_empty() {
        out.push_str("  nothing\n");
    }
    let _ = writeln!(
        out,
        "\nspills\n  {} loads and stores of spilled values; {} of {} instructions access the stack",
        m.spills, m.stack, m.instructions
    );
    out
}

/// Calls of the runtime: each of the usual path, and the others by what is called and why.
fn calls(out: &mut String, calls: &[RuntimeCall]) {
    out.push_str("\ncalls of the runtime\n");
    for call in calls.iter().filter(|call| !call.rare) {
        let _ = writeln!(out, "  {call}");
    }
    let mut rare: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.rare) {
        let lines = rare.entry((call.function, &call.reason)).or_default();
        lines.push(call.line.to_string());
    }
    for ((function, reason), lines) in rare {
        let _ = writeln!(
            out,
            "  rarely, {function}: {reason}; lines {}",
            lines.join(", ")
        );
    }
    if calls.is_empty() {
        out.push_str("  none\n");
    }
}

fn memory(out: &mut String, access: &AccessReport, lines: &[&str]) {
    let index = usize::try_from(access.line).unwrap_or(0).checked_sub(1);
    let source = index
        .and_then(|n| lines.get(n))
        .map_or("", |text| text.trim());
    // Comments of the compiler follow a wide gap.
    let source = source.split("  ").next().unwrap_or("");
    let stride = match access.shape {
        AddressShape::Strided(stride) => format!(", {stride} bytes from lane to lane"),
        _ => String::new(),
    };
    let why = access
        .why
        .as_ref()
        .map_or_else(String::new, |why| format!(": {why}"));
    let lanes = match access.lanes {
        1 => String::new(),
        n => format!(", {n} lanes"),
    };
    let uppers = access.upper_lines.iter().map(|line| format!(" and {line}"));
    let uppers = match uppers.collect::<String>() {
        lines if lines.is_empty() => lines,
        lines => format!(", with those of line{}", lines.trim_start_matches(" and")),
    };
    let _ = writeln!(
        out,
        "  line {:<5} {source}\n    {}{lanes}{uppers}\n    {}{stride}{why}\n    {}; {}",
        access.line,
        access.op,
        access.shape.name(),
        access.way,
        access.bounds
    );
}
