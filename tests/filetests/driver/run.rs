//! Runs one file and compares.

use std::collections::BTreeMap;
use std::time::Duration;

use visa_jit::backend::OobPolicy;
use visa_jit::interp::InterpOptions;
use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions, Error, FaultRecord, Launch, Report};
use visa_runtime::{Buffer, LaunchStatus};
use visa_test_common::{full, turn};

use super::spec::{Expect, Input, Spec};

/// Instructions that the interpreter gives each hardware thread, so that what does not end fails and does not hang.
const FUEL: u64 = 1_000_000;
/// Time that a launch of compiled code has, for the same reason.
const DEADLINE: Duration = Duration::from_secs(60);

/// Every engine, by name; one of each for all files of a fuel.
pub struct Engines(Vec<(&'static str, Engine)>);

impl Default for Engines {
    fn default() -> Engines {
        Engines::with_fuel(FUEL)
    }
}

impl Engines {
    /// As in the directive `engine`.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().map(|&(name, _)| name)
    }

    fn with_fuel(fuel: u64) -> Engines {
        let interpret = EngineOptions {
            interpret: Some(InterpOptions {
                fuel: Some(fuel),
                ..InterpOptions::default()
            }),
            ..EngineOptions::default()
        };
        let all = [
            EngineOptions::default(),
            #[cfg(feature = "llvm-codegen")]
            EngineOptions {
                strategy: visa_jit::backend::BackendKind::Llvm.into(),
                ..EngineOptions::default()
            },
            interpret,
        ];
        let made = all.into_iter().map(|options| {
            let engine = Engine::with_options(options).unwrap();
            (engine.backend(), engine)
        });
        Engines(made.collect())
    }
}

/// Its platforms; of several a plain run has one, which follows from the name, as they differ in little.
fn platforms(name: &str, spec: &Spec) -> Vec<Platform> {
    let all = &spec.platforms;
    if full() || all.is_empty() {
        return all.clone();
    }
    vec![all[turn(name) % all.len()]]
}

/// Whether a file runs under a policy: in a plain run under one of its policies, as each means that it is compiled.
fn has_turn(name: &str, spec: &Spec, policy: OobPolicy) -> bool {
    let all = &spec.policies;
    full() || all[turn(name) / 7 % all.len()] == policy
}

/// Runs a file on its platforms; adds what fails. Returns how many expectations were looked at.
pub fn file(
    name: &str,
    text: &str,
    spec: &Spec,
    engines: &Engines,
    failures: &mut Vec<String>,
) -> u64 {
    let mut assertions = 0;
    let own = spec.fuel.map(Engines::with_fuel);
    let engines = own.as_ref().unwrap_or(engines);
    for platform in platforms(name, spec) {
        let runs = spec
            .policies
            .iter()
            .flat_map(|&policy| engines.0.iter().map(move |(name, e)| (policy, *name, e)));
        for (policy, which, engine) in runs {
            let named = spec.engines.is_empty() || spec.engines.iter().any(|e| e == which);
            if !named || !has_turn(name, spec, policy) {
                continue;
            }
            let mut run = Run {
                spec,
                platform,
                policy,
                assertions: &mut assertions,
                problems: Vec::new(),
            };
            run.go(name, text, engine);
            for p in std::mem::take(&mut run.problems) {
                failures.push(format!("{name} on {platform}, {which}, {policy:?}: {p}"));
            }
        }
    }
    assertions
}

struct Run<'a> {
    spec: &'a Spec,
    platform: Platform,
    policy: OobPolicy,
    assertions: &'a mut u64,
    problems: Vec<String>,
}

impl Run<'_> {
    fn check(&mut self, ok: bool, what: impl FnOnce() -> String) {
        *self.assertions += 1;
        if !ok {
            self.problems.push(what());
        }
    }

    fn go(&mut self, name: &str, text: &str, engine: &Engine) {
        let result = self.launch(name, text, engine);
        match result {
            Err(e) => {
                let message = e.to_string();
                if self.spec.errors.is_empty() {
                    self.check(false, || message.clone());
                }
                for wanted in &self.spec.errors {
                    self.check(message.contains(wanted), || {
                        format!("expected an error with `{wanted}`, got: {message}")
                    });
                }
            }
            Ok(_) if !self.spec.errors.is_empty() => {
                self.check(false, || {
                    format!("ran, but expected {:?}", self.spec.errors)
                });
            }
            Ok((report, surfaces)) => self.results(&report, &surfaces),
        }
    }

    fn launch(
        &self,
        name: &str,
        text: &str,
        engine: &Engine,
    ) -> Result<(Report, BTreeMap<u32, Buffer>), Error> {
        let program = engine.program_from_text(name, text, self.platform)?;
        let mut launch = Launch::new(self.spec.global)
            .oob(self.policy)
            .deadline(DEADLINE);
        if let Some(local) = self.spec.local {
            launch = launch.local(local);
        }
        let mut surfaces = BTreeMap::new();
        for (&index, surface) in &self.spec.surfaces {
            let buffer = engine.memory().alloc_from(&surface.bytes)?;
            surfaces.insert(index, buffer.clone());
            launch = match surface.image {
                Some(shape) => launch.image(index, buffer, shape),
                None => launch.surface(index, buffer),
            };
        }
        for (&index, &state) in &self.spec.samplers {
            launch = launch.sampler(index, state);
        }
        for (var, value) in &self.spec.inputs {
            let bytes = match value {
                Input::Bytes(b) => b.clone(),
                Input::Address(s, offset) => {
                    let address = surfaces.get(s).map_or(0, Buffer::address);
                    address.wrapping_add_signed(*offset).to_le_bytes().to_vec()
                }
            };
            launch = launch.input(var.clone(), bytes);
        }
        let report = program.kernels()[0].launch(&launch)?;
        Ok((report, surfaces))
    }

    fn results(&mut self, report: &Report, surfaces: &BTreeMap<u32, Buffer>) {
        let wanted = self.spec.faults.clone().unwrap_or_default();
        let stops = wanted.count > 0 && self.policy == OobPolicy::Trap;
        let status = if stops {
            LaunchStatus::Faulted
        } else {
            LaunchStatus::Completed
        };
        self.check(report.status == status, || {
            format!(
                "ended {:?}, expected {status:?}; {}",
                report.status,
                first(report)
            )
        });
        if self.policy == OobPolicy::Report {
            self.check(report.fault_count == wanted.count, || {
                format!(
                    "{} faults, expected {}; {}",
                    report.fault_count,
                    wanted.count,
                    first(report)
                )
            });
        }
        if self.policy != OobPolicy::ReadZeroSkipWrite && wanted.count > 0 {
            for (field, value) in &wanted.first {
                let got = report
                    .faults
                    .first()
                    .map_or_else(String::new, |f| part(f, field));
                self.check(got == *value, || {
                    format!(
                        "first fault has {field}={got}, expected {value}; {}",
                        first(report)
                    )
                });
            }
        }
        // A stopped launch may leave anything that was written before it stopped.
        if stops {
            return;
        }
        let before = &self.spec.surfaces;
        for e in &self.spec.expects {
            if e.platform.is_some_and(|p| p != self.platform) {
                continue;
            }
            let (Some(old), Some(buffer)) = (before.get(&e.surface), surfaces.get(&e.surface))
            else {
                self.check(false, || {
                    format!("line {}: no surface {}", e.line, e.surface)
                });
                continue;
            };
            self.compare(e, &old.bytes, &buffer.to_vec());
        }
    }

    fn compare(&mut self, e: &Expect, old: &[u8], new: &[u8]) {
        let want = e.bytes.as_deref().unwrap_or(old);
        let Some(got) = new.get(e.at..e.at + want.len()) else {
            self.check(false, || {
                format!("line {}: beyond the end of surface {}", e.line, e.surface)
            });
            return;
        };
        let mut wrong = Vec::new();
        let mut count = 0;
        for (i, (w, g)) in want
            .chunks(e.ty.bytes)
            .zip(got.chunks(e.ty.bytes))
            .enumerate()
        {
            *self.assertions += 1;
            if !e.ty.near(w, g, e.within) {
                count += 1;
                if wrong.len() < 6 {
                    wrong.push(format!(
                        "[{i}] is {}, expected {}",
                        e.ty.show(g),
                        e.ty.show(w)
                    ));
                }
            }
        }
        if count > 0 {
            self.problems.push(format!(
                "line {}: surface {}: {count} of {} elements differ: {}",
                e.line,
                e.surface,
                want.len() / e.ty.bytes,
                wrong.join("; ")
            ));
        }
    }
}

fn first(report: &Report) -> String {
    report
        .faults
        .first()
        .map_or_else(|| "no fault".into(), |f| format!("first fault: {f}"))
}

fn part(f: &FaultRecord, field: &str) -> String {
    match field {
        "line" => f.line.to_string(),
        "opcode" => f.opcode.to_owned(),
        "access" => f.access.to_owned(),
        "space" => f.space.replace(' ', "-"),
        "surface" => f.surface.map_or_else(String::new, |s| s.to_string()),
        "address" => format!("{:#x}", f.address),
        "bytes" => f.bytes.to_string(),
        "thread" => f.thread.to_string(),
        "lane" => f.lane.to_string(),
        "group" => f.group[0].to_string(),
        "local_id" => f.local_id[0].to_string(),
        "global_id" => f.global_id[0].to_string(),
        _ => format!("(no field `{field}`)"),
    }
}
