//! Every instruction that computes on registers, in every form: types, execution sizes, masks, predicates,
//! saturation, modifiers, regions, on edge values and random ones.

pub mod inst;
pub mod kernel;
pub mod values;

use visa_jit::isa::{Family, Form, Opcode, OpcodeInfo, Platform, Status};

use crate::engines::{Engine, Loaded, Machine, Stop, difference};
use kernel::{Case, Setting};
use visa_test_common::Rng;

/// Rows of the sweep: whatever runs and computes on registers. [`elsewhere`] says where the others are tested.
pub fn rows() -> Vec<&'static OpcodeInfo> {
    let computes = |row: &&OpcodeInfo| {
        matches!(row.form, Form::Alu | Form::AluPair | Form::Cmp | Form::Bfn)
            && row.opcode != Opcode::AddrAdd
    };
    running().filter(computes).collect()
}

/// Where a row that runs but is not in the sweep is tested; `None` for rows that belong into it.
pub fn elsewhere(row: &OpcodeInfo) -> Option<&'static str> {
    match row.family {
        Family::Arith | Family::Logic | Family::Move | Family::Compare => None,
        // Its result is an address, which shows through the indirect operands that the sweep gives other rows.
        Family::Address => Some("operands of other rows"),
        Family::Flow => Some(match row.form {
            Form::Fcall | Form::Ifcall | Form::Faddr => "filetests/calls, kernels",
            _ if row.opcode == Opcode::Fret => "filetests/calls, kernels",
            _ => "random graphs",
        }),
        Family::Memory | Family::Svm | Family::Lsc | Family::Sampler => {
            Some("the sweep of messages, random kernels, edges")
        }
        Family::Sync => Some("kernels, filetests"),
        Family::Misc if row.form == Form::Dpas => Some("dpas"),
        Family::Misc => Some("front_text, kernels"),
    }
}

/// Rows that run.
pub fn running() -> impl Iterator<Item = &'static OpcodeInfo> {
    let runs = |row: &&OpcodeInfo| {
        matches!(row.status, Status::Full | Status::Partial)
            && Platform::ALL.iter().any(|p| row.platforms.contains(*p))
    };
    Opcode::ALL.iter().map(|op| op.info()).filter(runs)
}

/// How much to try.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Instructions of a row.
    pub instructions: usize,
    /// Launches of each.
    pub launches: usize,
}

/// What was tried of a row.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Combinations of types that the row allows, and those of them that were tried.
    pub types: (usize, usize),
    /// Instructions that ran.
    pub instructions: usize,
    /// Instructions times launches.
    pub cases: usize,
    /// Instructions that every engine refuses.
    pub refused: usize,
    /// Why, one message of each kind.
    pub reasons: Vec<String>,
    /// What went wrong.
    pub mismatches: Vec<String>,
}

/// Instructions in a kernel.
const BATCH: usize = 24;

/// A sweep of one row. The first engine is what the others are compared with.
pub struct Sweep<'m> {
    machines: &'m mut [(&'static str, Box<dyn Machine>)],
    rng: Rng,
    tally: Tally,
}

/// Machines of some engines for the calling thread.
pub fn machines(engines: &[Engine]) -> Vec<(&'static str, Box<dyn Machine>)> {
    engines.iter().map(|e| (e.name, e.make())).collect()
}

/// Tries a row on machines.
pub fn row(
    row: &'static OpcodeInfo,
    effort: Effort,
    machines: &mut [(&'static str, Box<dyn Machine>)],
) -> Tally {
    let mut sweep = Sweep {
        machines,
        rng: Rng::new(row.opcode as u64 * 7919),
        tally: Tally::default(),
    };
    sweep.row(row, effort);
    sweep.tally
}

impl Sweep<'_> {
    fn row(&mut self, row: &'static OpcodeInfo, effort: Effort) {
        let mut types = inst::types(row);
        for i in (1..types.len()).rev() {
            types.swap(i, self.rng.below(i + 1));
        }
        self.tally.types = (types.len(), types.len().min(effort.instructions));
        let mut at = 0;
        // Refused forms do not count; the bound is for rows of which most are refused.
        while self.tally.instructions < effort.instructions && at < 40 * effort.instructions {
            let setting = Setting::any(&mut self.rng, row);
            let mut batch = Vec::new();
            for _ in 0..BATCH.min(effort.instructions) {
                let types = &types[at % types.len()];
                at += 1;
                batch.extend(kernel::case(&mut self.rng, row, types, setting));
            }
            self.batch(batch, setting, effort.launches);
        }
        self.tally.types.1 = types.len().min(at);
    }

    /// Runs a batch without the instructions that are refused.
    fn batch(&mut self, mut cases: Vec<Case>, setting: Setting, launches: usize) {
        while !cases.is_empty() {
            let kernel = kernel::kernel(&cases, setting);
            match self.load(&kernel.text, setting.platform) {
                Ok(programs) => {
                    let outcome = self.compare(&cases, &kernel, &programs, setting, launches);
                    // Some refuse a form only when it is about to run.
                    let Err(stop) = outcome else { return };
                    if !self.without(&mut cases, &kernel, setting, &stop) {
                        return;
                    }
                }
                Err(stop) => {
                    if !self.without(&mut cases, &kernel, setting, &stop) {
                        return;
                    }
                }
            }
        }
    }

    /// Takes out the instruction that a message is about; false if that cannot be told.
    fn without(
        &mut self,
        cases: &mut Vec<Case>,
        kernel: &kernel::Kernel,
        setting: Setting,
        stop: &Stop,
    ) -> bool {
        let bad = line_of(stop).and_then(|l| owner(&kernel.text, cases, l));
        let Some(bad) = bad else {
            let list: Vec<&str> = cases.iter().map(Case::text).collect();
            self.wrong(format!("{stop}, one of\n{}", list.join("\n")));
            return false;
        };
        let case = cases.remove(bad);
        self.refused(&case, setting);
        true
    }

    fn wrong(&mut self, what: String) {
        if self.tally.mismatches.len() < 20 {
            self.tally.mismatches.push(what);
        } else {
            self.tally.mismatches.push(String::new());
        }
    }

    fn load(&mut self, text: &str, platform: Platform) -> Result<Vec<Box<dyn Loaded>>, Stop> {
        let each = self
            .machines
            .iter_mut()
            .map(|(_, m)| m.load(text, platform));
        each.collect()
    }

    /// An instruction that one engine refuses must be refused by all.
    fn refused(&mut self, case: &Case, setting: Setting) {
        let kernel = kernel::kernel(std::slice::from_ref(case), setting);
        let launch = kernel.launch(&mut self.rng, setting);
        let mut ends = Vec::new();
        for (name, machine) in self.machines.iter_mut() {
            let end = machine
                .load(&kernel.text, setting.platform)
                .and_then(|p| p.run(&launch).map(drop));
            ends.push((*name, end));
        }
        let refused = ends
            .iter()
            .filter(|(_, e)| matches!(e, Err(Stop::Refused(_))))
            .count();
        if refused == ends.len() {
            self.tally.refused += 1;
            if let Some((_, Err(Stop::Refused(why)))) = ends.first()
                && let Some((_, why)) = why.split_once("line ")
            {
                let why = why
                    .split_once(": ")
                    .map_or(why, |(_, rest)| rest)
                    .to_owned();
                if !self.tally.reasons.contains(&why) {
                    self.tally.reasons.push(why);
                }
            }
            return;
        }
        let ends: Vec<String> = ends
            .iter()
            .map(|(name, e)| match e {
                Ok(()) => format!("  {name} runs it"),
                Err(stop) => format!("  {name}: {stop}"),
            })
            .collect();
        self.wrong(format!(
            "{} on {}:\n{}",
            case.text(),
            setting.platform,
            ends.join("\n")
        ));
    }

    /// Runs launches and compares; the first reason why one did not end is an error.
    fn compare(
        &mut self,
        cases: &[Case],
        kernel: &kernel::Kernel,
        programs: &[Box<dyn Loaded>],
        setting: Setting,
        launches: usize,
    ) -> Result<(), Stop> {
        let names: Vec<&str> = self.machines.iter().map(|(n, _)| *n).collect();
        for n in 0..launches {
            let launch = kernel.launch(&mut self.rng, setting);
            let results: Vec<_> = programs
                .iter()
                .map(|p| p.run(&launch))
                .collect::<Result<_, _>>()?;
            for (name, got) in names.iter().zip(&results).skip(1) {
                let Some(d) = difference(&results[0], got, &kernel.regions) else {
                    continue;
                };
                let (r, element, want, is) = d;
                let (case, ty) = (&cases[kernel.owners[r]], kernel.regions[r].ty);
                self.wrong(format!(
                    "{} on {} simd {} lanes {} cr0 {:#x}\n  element {element} ({ty}): {} {want:#x}, {name} {is:#x}",
                    case.lines.join("; "),
                    setting.platform,
                    setting.simd,
                    launch.lanes,
                    setting.mode,
                    names[0],
                ));
            }
            self.tally.instructions += if n == 0 { cases.len() } else { 0 };
            self.tally.cases += cases.len();
        }
        Ok(())
    }
}

/// Line that a message names.
fn line_of(stop: &Stop) -> Option<usize> {
    let (Stop::Refused(text) | Stop::Broken(text)) = stop else {
        return None;
    };
    if let Some((_, rest)) = text.split_once("line ") {
        return rest
            .split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok();
    }
    // `12:5: message`, as the parser and validation write it.
    text.lines().find_map(|l| {
        let mut parts = l
            .trim_start_matches(|c: char| !c.is_ascii_digit())
            .split(':');
        let line = parts.next()?.parse().ok()?;
        parts.next()?.parse::<usize>().ok()?;
        Some(line)
    })
}

/// The instruction on a line.
fn owner(text: &str, cases: &[Case], line: usize) -> Option<usize> {
    let wanted = text.lines().nth(line.checked_sub(1)?)?.trim();
    cases
        .iter()
        .position(|c| c.lines.iter().any(|l| l == wanted))
}
