//! A plan as text: a line for each access, the same for every code generator.

use std::fmt;

use serde::Serialize;

use super::atomic::{AtomicHow, AtomicWay};
use super::candidate::Access;
use super::copies::Apart;
use super::group::Root;
use super::how::{AffineAccess, Any, By, How, Stored, lane_wise};
use super::limits::Limits;
use super::plan::{AccessPlan, Segment, Step, Versions};
use crate::backend::Gather;
use crate::ssa::remark::{BoundsTest, Way, fixed_way};
use crate::ssa::{Function, Inst};

/// What was planned for an access, or for a part of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanLine {
    /// Line of vISA, 0 for none.
    pub line: u32,
    /// Parts of blocks with versions that it is in.
    pub depth: usize,
    /// Its operation and lanes, or `versions`.
    pub kind: String,
    /// How it is done.
    pub how: String,
    /// Why.
    pub reason: String,
}

impl fmt::Display for PlanLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indent = 2 * self.depth;
        write!(
            f,
            "{:indent$}line {:<5} {}: {}",
            "", self.line, self.kind, self.how
        )?;
        match self.reason.as_str() {
            "" => Ok(()),
            reason => write!(f, " ({reason})"),
        }
    }
}

/// Why an access is a call where a test failed that was about it.
pub(in crate::backend) const AFTER: &str = "after a test that failed";

/// Functions of the runtime for lane-wise accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend) enum Called {
    Load,
    Store,
    Atomic,
}

impl AccessPlan {
    /// Why the accesses of a line call such a function, each reason once. None say nothing about it: they are calls if a test fails.
    pub(in crate::backend) fn calls(
        &self,
        f: &Function,
        line: u32,
        called: Called,
    ) -> Vec<&'static str> {
        let mut found = Vec::new();
        for (_, segment) in self.blocks() {
            self.calls_of(f, &segment.steps, (line, called), &mut found);
        }
        if found.is_empty() {
            found.push(AFTER);
        }
        found
    }

    fn calls_of(
        &self,
        f: &Function,
        steps: &[Step],
        (line, called): (u32, Called),
        found: &mut Vec<&'static str>,
    ) {
        for step in steps {
            if let Step::Versions(v) = step {
                let apart = v.apart.as_ref().map(|(_, segment)| segment);
                let segments = [Some(&v.fast), apart, v.other.as_ref()];
                self.calls_of(f, &v.first, (line, called), found);
                for segment in segments.into_iter().flatten() {
                    self.calls_of(f, &segment.steps, (line, called), found);
                }
                continue;
            }
            let of_line = step.inst().filter(|&inst| f.inst(inst).line == line);
            let why = of_line.and_then(|inst| match (step, called) {
                (Step::Atomic(_, how), Called::Atomic) => {
                    (how.way == AtomicWay::Message).then(|| atomic_reason(*how))
                }
                (Step::Access(_, How::Any(any)), _) if is_called(f, inst, called) => {
                    (*any == Any::Message).then(|| any_reason(&self.limits, f, inst, *any))
                }
                _ => None,
            });
            if let Some(why) = why.filter(|why| !found.contains(why)) {
                found.push(why);
            }
        }
    }

    /// What was planned for a function, in the order of its code: the usual way of each access, and what is done where a test fails.
    pub fn lines(&self, f: &Function) -> Vec<PlanLine> {
        let mut text = Text {
            f,
            plan: self,
            lines: Vec::new(),
            around: Vec::new(),
        };
        for (_, segment) in self.blocks() {
            text.steps(&segment.steps);
        }
        text.lines
    }
}

struct Text<'a> {
    f: &'a Function,
    plan: &'a AccessPlan,
    lines: Vec<PlanLine>,
    around: Vec<&'a Versions>,
}

impl<'a> Text<'a> {
    fn push(&mut self, inst: Inst, kind: String, how: String, reason: String) {
        self.lines.push(PlanLine {
            line: self.f.inst(inst).line,
            depth: self.around.len(),
            kind,
            how,
            reason,
        });
    }

    fn access(&mut self, inst: Inst, how: String, reason: String) {
        let kind = match lanes(self.f, inst) {
            1 => self.f.op_name(inst),
            n => format!("{}, {n} lanes", self.f.op_name(inst)),
        };
        self.push(inst, kind, how, reason);
    }

    fn steps(&mut self, steps: &'a [Step]) {
        for step in steps {
            match step {
                Step::Plain(inst) => {
                    let data = self.f.inst(*inst);
                    if let Some((way, bounds)) = fixed_way(self.f, &data.op, &data.args) {
                        let why = fixed_reason(way, bounds);
                        self.access(*inst, way.to_string(), why.to_owned());
                    }
                }
                Step::Access(inst, How::Any(any)) => {
                    let (way, _) = any.way(lanes(self.f, *inst));
                    let why = any_reason(&self.plan.limits, self.f, *inst, *any);
                    self.access(*inst, way.to_string(), why.to_owned());
                }
                Step::Access(inst, How::Affine(alone)) => {
                    let way = alone.strided.way(lanes(self.f, *inst));
                    let why = alone_reason(&self.plan.limits, alone, lanes(self.f, *inst));
                    self.access(*inst, way.to_string(), why);
                }
                Step::Atomic(inst, how) => {
                    let (way, _) = how.way(lanes(self.f, *inst));
                    self.access(*inst, way.to_string(), atomic_reason(*how).to_owned());
                }
                // The access after it says where it goes.
                Step::Check(..) | Step::AffineRace(..) | Step::Checked(_) => {}
                Step::Inside(access) => {
                    let why = self.inside_reason(access);
                    self.access(access.inst, access.way().to_string(), why);
                }
                Step::Copied(inst) => {
                    self.access(*inst, "part of a copy".to_owned(), String::new());
                }
                Step::LoadCopy(inst, copy) | Step::StoreCopy { inst, copy, .. } => {
                    let bytes = self.plan.copy(*copy).map_or(0, |copied| copied.bytes());
                    let how = format!("copy of {bytes} bytes for each lane");
                    let why = "nothing else reads what is loaded";
                    self.access(*inst, how, why.to_owned());
                }
                Step::Versions(versions) => self.versions(versions),
            }
        }
    }

    fn versions(&mut self, versions: &'a Versions) {
        self.steps(&versions.first);
        if let Some(first) = versions.accesses.first() {
            let count = versions.accesses.len();
            let (how, why) = match &versions.other {
                None => (
                    format!("one, without a test, of {count} accesses"),
                    "all are surely inside".to_owned(),
                ),
                Some(other) => (
                    format!("two; a test in front is about {count} accesses"),
                    test(versions, other),
                ),
            };
            self.push(first.inst, "versions".to_owned(), how, why);
        }
        self.around.push(versions);
        self.steps(&versions.fast.steps);
        self.around.pop();
    }

    fn inside_reason(&self, a: &Access) -> String {
        let about = |v: &&&Versions| v.accesses.iter().any(|other| other.inst == a.inst);
        let Some(versions) = self.around.iter().rev().find(about) else {
            return String::new();
        };
        let shape = match (a.stride(), a.reach.root) {
            (Some(stride), _) => affine(stride),
            (None, Root::Scaled(_)) => "scaled 32-bit numbers".to_owned(),
            (None, _) => "any addresses".to_owned(),
        };
        let bounds = match versions.bounds(a) {
            BoundsTest::Tested | BoundsTest::Lanes => "tested in front",
            BoundsTest::Shared => "in the bounds test of an access before",
            _ => "surely inside",
        };
        let stored = match (a.enabled, a.all) {
            (true, _) => "; stores enabled lanes",
            (_, Some(_)) => "; all lanes enabled, tested in front",
            _ => "",
        };
        let other = versions.other.as_ref().and_then(|s| other_way(s, a.inst));
        let other = other.map_or_else(String::new, |any| format!("; else {}", any.way(a.lanes).0));
        format!("{shape}; {bounds}{stored}{other}")
    }
}

fn is_called(f: &Function, inst: Inst, called: Called) -> bool {
    let load = lane_wise(&f.inst(inst).op).map(|(_, load)| load);
    load == Some(called == Called::Load)
}

/// The tests in front of versions.
fn test(versions: &Versions, other: &Segment) -> String {
    let many = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let mut parts = vec![many(versions.groups.len(), "bounds test")];
    if !versions.conditions.is_empty() {
        parts.push(many(versions.conditions.len(), "condition"));
    }
    if !versions.checks.is_empty() {
        parts.push(many(versions.checks.len(), "check"));
    }
    let twice = many(other.steps.len(), "instruction");
    match versions.apart {
        Some((Apart::Surfaces(_), _)) => {
            parts.push("a third version where surfaces are apart".to_owned());
        }
        Some((Apart::Lanes { .. }, _)) => {
            parts.push("a third version where no load overlaps the store".to_owned());
        }
        None => {}
    }
    format!("{}; {twice} in the other", parts.join(", "))
}

fn other_way(other: &Segment, inst: Inst) -> Option<Any> {
    other.steps.iter().find_map(|step| match step {
        Step::Access(i, How::Any(any)) if *i == inst => Some(*any),
        _ => None,
    })
}

fn lanes(f: &Function, inst: Inst) -> u16 {
    f.inst(inst).args.get(1).map_or(1, |&v| f.ty(v).lanes)
}

fn affine(stride: i64) -> String {
    match stride {
        0 => "one address".to_owned(),
        stride => format!("affine, {stride} bytes from lane to lane"),
    }
}

fn alone_reason(limits: &Limits, alone: &AffineAccess, lanes: u16) -> String {
    let shape = affine(alone.strided.stride);
    let by = match &alone.by {
        By::Table => "",
        By::Local(sum) if sum.is_tested() => ", where local ids are in rows",
        By::Local(_) => ", by its definition",
        By::Speculation(_) => ", where a comparison of the lanes finds that",
    };
    let bounds = match alone.bounds(limits) {
        BoundsTest::Removed => "; surely inside",
        BoundsTest::Lanes => "; a bounds test for each lane",
        _ => "; a bounds test of its own",
    };
    let stored = match alone.stored {
        Stored::All => "",
        Stored::Tested(_) => "; all lanes enabled, as tested",
        Stored::Enabled => "; stores enabled lanes",
    };
    let other = match alone.is_certain() {
        true => String::new(),
        false => format!("; else {}", alone.other.way(lanes).0),
    };
    format!("{shape}{by}{bounds}{stored}{other}")
}

/// Why an access is done in the only way there is.
fn fixed_reason(way: Way, bounds: BoundsTest) -> &'static str {
    match (way, bounds) {
        (Way::Runtime(_), _) => "no instruction does this",
        (_, BoundsTest::Removed) => "a block; surely inside",
        _ => "a block; a bounds test of its own",
    }
}

fn atomic_reason(how: AtomicHow) -> &'static str {
    match (how.way, how.locked) {
        (AtomicWay::Message, _) => "no instruction does this",
        (_, true) if how.gathered => {
            "atomic instructions of the processor, for lanes that change what a gather sees"
        }
        (AtomicWay::Straight, true) => {
            "atomic instructions of the processor; straight code where all lanes are enabled and inside"
        }
        (_, true) => "atomic instructions of the processor",
        (AtomicWay::Straight, _) => {
            "threads of a group take turns; straight code where all lanes are enabled and inside"
        }
        _ => "threads of a group take turns",
    }
}

/// Why an access is not done as one of affine addresses, or why not inline.
fn any_reason(limits: &Limits, f: &Function, inst: Inst, any: Any) -> &'static str {
    let Some((access, load)) = lane_wise(&f.inst(inst).op) else {
        return "";
    };
    match any {
        Any::Scalar => "one lane",
        Any::Gather if load && access.elem.bytes() < 4 => {
            "any addresses: gathers of the words of 4 bytes around the elements"
        }
        Any::Gather if load => "any addresses: the processor's gathers take such elements",
        Any::Gather => "any addresses: the processor's scatters take such elements",
        Any::GatherPairs if load => {
            "any addresses: the processor's gathers take two such elements at once"
        }
        Any::GatherPairs => {
            "any addresses: the processor's scatters take two such elements at once"
        }
        Any::GatherScaled { .. } if load && access.elem.bytes() < 4 => {
            "scaled 32-bit numbers, which bounds are tested on: gathers of the words of 4 bytes from there on"
        }
        Any::GatherScaled { .. } if load => {
            "scaled 32-bit numbers, which bounds are tested on: the processor's gathers take them"
        }
        Any::GatherScaled { .. } => {
            "scaled 32-bit numbers, which bounds are tested on: the processor's scatters take them"
        }
        Any::Loop(None) => "any addresses: a loop over the lanes that are enabled and inside",
        Any::Loop(Some(_)) => {
            "scaled 32-bit numbers, which bounds are tested on: a loop over the lanes that are enabled and inside"
        }
        Any::Inline { once: true } => {
            "any addresses: few such accesses; one test whether all lanes are inside"
        }
        Any::Inline { once: false } => "any addresses: few such accesses; a test for each lane",
        Any::Rolled => {
            "any addresses: a loop over the lanes; one test whether all enabled ones are inside"
        }
        Any::RareMessage => AFTER,
        Any::Message if limits.gather == Gather::Call => "any addresses: calls are asked for",
        Any::Message
            if matches!(limits.gather, Gather::Select | Gather::Branch)
                && !limits.inline_faults
                && limits.records_faults(access.space) =>
        {
            "any addresses: faults are recorded"
        }
        Any::Message if access.comps == 1 && limits.many => {
            "any addresses: the function has many such accesses"
        }
        Any::Message if access.comps > 1 => "any addresses: several components a lane",
        Any::Message => "any addresses: no instruction takes such elements",
    }
}
