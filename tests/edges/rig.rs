//! Runs shapes on memory flush against unreadable pages and compares with their models.

use std::collections::BTreeSet;
use std::time::Instant;

use visa_jit::backend::{BackendKind, OobPolicy};
use visa_jit::{Engine, EngineOptions, Launch, Prepared, Program, Report};
use visa_runtime::{Buffer, DeviceMemory, LaunchStatus};

use super::cases::case;
use super::kernel::{DATA_AT, SCRATCH_BYTES, SLM_BYTES, Shape};
use super::machine::{Case, Fault, Machine, Space};
use visa_test_common::{Rng, full};

/// Sizes of surfaces.
pub const SIZES: [u64; 8] = [0, 1, 3, 4, 63, 64, 4095, 4096];

/// Sizes of device memory, and whether its end (or its start) is flush.
const FLAT: [(u64, bool); 6] = [
    (4096, true),
    (4095, true),
    (63, true),
    (1, true),
    (64, false),
    (4095, false),
];

const POLICIES: [OobPolicy; 3] = [
    OobPolicy::ReadZeroSkipWrite,
    OobPolicy::Report,
    OobPolicy::Trap,
];

/// How much to run.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Cases for each memory of the default policy; the others get a quarter.
    pub cases: usize,
    /// All sizes, or two of them.
    pub sizes: &'static [u64],
    /// All policies, or the default one.
    pub policies: bool,
    /// Masks are counted through.
    pub all_masks: bool,
}

/// What was run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub shapes: u64,
    pub compiled: u64,
    pub cases: u64,
    pub faults: u64,
}

/// Engines and memory that shapes share.
pub struct Rig {
    engine: Engine,
    outside: DeviceMemory,
    rng: Rng,
    pub tally: Tally,
    /// Messages of the shapes so far.
    pub opcodes: BTreeSet<String>,
    /// Shapes are only looked at.
    dry: bool,
    failures: Vec<String>,
    start: Instant,
    /// The program that was read last.
    read: Option<(String, Program)>,
}

/// With `VISA_JIT_TEST_INTERP` set, everything runs on the interpreter, with `VISA_JIT_TEST_BACKEND=llvm` on LLVM's code:
/// they have the same edges and the same records.
pub fn options() -> EngineOptions {
    let llvm = std::env::var("VISA_JIT_TEST_BACKEND").as_deref() == Ok("llvm");
    let kind = if llvm {
        BackendKind::Llvm
    } else {
        BackendKind::Cranelift
    };
    EngineOptions {
        strategy: kind.into(),
        memory_bytes: 1 << 24,
        interpret: std::env::var_os("VISA_JIT_TEST_INTERP").map(|_| Default::default()),
        ..EngineOptions::default()
    }
}

/// Numbers that tell every byte from its neighbours.
fn pattern(size: usize, floats: bool) -> Vec<u8> {
    let byte = |i: u32| (i.wrapping_mul(0x9e37_79b1) >> 19) as u8 | 1;
    (0..size as u32)
        .map(|i| if floats { float_byte(byte(i)) } else { byte(i) })
        .collect()
}

/// A byte of which floats of any width are ordinary ones.
fn float_byte(b: u8) -> u8 {
    (0x3c + (b & 7)) | (b & 0x80)
}

struct Bench<'a> {
    shape: &'a Shape,
    prepared: Prepared,
    inputs: Buffer,
    target: Buffer,
    results: Buffer,
    policy: OobPolicy,
    line: u32,
    before: Vec<u8>,
}

/// True for one of 32 numbers, with no period that loops over shapes may have too.
fn scattered(number: u64) -> bool {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59 == 0
}

impl Rig {
    pub fn new(seed: u64) -> Rig {
        Rig {
            engine: Engine::with_options(options()).unwrap(),
            outside: DeviceMemory::with_capacity(1 << 24).unwrap(),
            rng: Rng::new(seed),
            tally: Tally::default(),
            opcodes: BTreeSet::new(),
            dry: false,
            failures: Vec::new(),
            start: Instant::now(),
            read: None,
        }
    }

    /// One that runs nothing, to see which messages there are.
    pub fn dry() -> Rig {
        Rig {
            dry: true,
            ..Rig::new(0)
        }
    }

    /// Panics with what went wrong, and says how much was run.
    pub fn finish(self, what: &str) {
        let t = self.tally;
        println!(
            "{what}: {} shapes, {} compilations, {} cases, {} faults expected, {:.1} s",
            t.shapes,
            t.compiled,
            t.cases,
            t.faults,
            self.start.elapsed().as_secs_f64()
        );
        assert!(
            self.failures.is_empty(),
            "{what}: {} shapes wrong, first ones:\n{}",
            self.failures.len(),
            self.failures[..self.failures.len().min(12)].join("\n")
        );
    }

    /// Runs a shape on all its memories and policies. A plain run takes the first of each message and one of 32 others.
    pub fn run(&mut self, shape: &Shape, effort: Effort) {
        self.tally.shapes += 1;
        let new = self.opcodes.insert(shape.opcode.clone());
        if self.dry || !(new || full() || scattered(self.tally.shapes)) {
            return;
        }
        if let Err(e) = self.shape(shape, effort) {
            let at = shape.text.replace("{x}", "");
            self.failures.push(format!(
                "{} {:?} simd {} (lane {} x {}{}) `{at}`: {e}",
                shape.platform,
                shape.guard,
                shape.simd,
                shape.first,
                shape.lanes,
                if shape.no_mask { " NM" } else { "" }
            ));
        }
    }

    fn shape(&mut self, shape: &Shape, effort: Effort) -> Result<(), String> {
        let policies = if effort.policies {
            &POLICIES[..]
        } else {
            &POLICIES[..1]
        };
        match shape.space {
            Space::Surface => {
                for &policy in policies {
                    self.tally.compiled += 1;
                    for &size in effort.sizes {
                        for end in [true, false] {
                            let memory = self.outside.clone();
                            let target = if end {
                                memory.alloc_flush_end(size)
                            } else {
                                memory.alloc_flush_start(size)
                            };
                            let engine = self.engine.clone();
                            self.memory(shape, &engine, target.unwrap(), policy, effort)?;
                        }
                    }
                }
            }
            Space::Slm | Space::Scratch => {
                for &policy in policies {
                    self.tally.compiled += 1;
                    let bytes = if shape.space == Space::Slm {
                        SLM_BYTES
                    } else {
                        SCRATCH_BYTES
                    };
                    let target = self.outside.alloc(bytes as u64).unwrap();
                    let engine = self.engine.clone();
                    let effort = Effort {
                        cases: 4 * effort.cases,
                        ..effort
                    };
                    self.memory(shape, &engine, target, policy, effort)?;
                }
            }
            Space::Flat => {
                for &policy in policies {
                    let sizes = if policy == OobPolicy::ReadZeroSkipWrite
                        && effort.policies
                        && effort.sizes.len() > 2
                    {
                        &FLAT[..]
                    } else {
                        &FLAT[1..2]
                    };
                    // Each memory has an engine of its own, and each engine compiles: in a plain run shapes take turns.
                    let turn = self.tally.shapes as usize;
                    let every = if full() { 1 } else { 3 };
                    let sizes = sizes
                        .iter()
                        .enumerate()
                        .filter(|(n, _)| sizes.len() == 1 || (n + turn).is_multiple_of(every));
                    for (_, &(size, end)) in sizes {
                        self.tally.compiled += 1;
                        let memory = if end {
                            DeviceMemory::exact(size)
                        } else {
                            DeviceMemory::exact_start(size)
                        }
                        .unwrap();
                        let target = if end {
                            memory.alloc_flush_end(size)
                        } else {
                            memory.alloc_flush_start(size)
                        };
                        let engine = Engine::with_memory(options(), memory).unwrap();
                        self.memory(shape, &engine, target.unwrap(), policy, effort)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The program of a shape, which is read once for all its memories.
    fn program(&mut self, shape: &Shape, engine: &Engine) -> Result<Program, String> {
        let text = shape.kernel(SCRATCH_BYTES);
        let error = |e: visa_jit::Error| e.to_string();
        if let Some((last, program)) = &self.read
            && *last == text
            && program.platform() == shape.platform
        {
            return program.on(engine).map_err(error);
        }
        let program = engine.program_from_text("edge", &text, shape.platform);
        let program = program.map_err(error)?;
        self.read = Some((text, program.clone()));
        Ok(program)
    }

    fn memory(
        &mut self,
        shape: &Shape,
        engine: &Engine,
        target: Buffer,
        policy: OobPolicy,
        effort: Effort,
    ) -> Result<(), String> {
        let inputs = self
            .outside
            .alloc((DATA_AT + shape.data_size()) as u64)
            .unwrap();
        let results = self.outside.alloc(shape.data_size() as u64).unwrap();
        let program = self.program(shape, engine)?;
        let mut launch = Launch::new([shape.simd, 1, 1])
            .local([shape.simd, 1, 1])
            .oob(policy)
            .surface(1, inputs.clone())
            .surface(2, results.clone());
        if shape.space != Space::Flat {
            launch = launch.surface(0, target.clone());
        }
        let prepared = program.kernels()[0]
            .prepare(&launch)
            .map_err(|e| e.to_string())?;
        let bench = Bench {
            before: pattern(target.len() as usize, shape.floats),
            line: shape.line(),
            shape,
            prepared,
            inputs,
            target,
            results,
            policy,
        };
        let cases = if policy == OobPolicy::ReadZeroSkipWrite {
            effort.cases
        } else {
            effort.cases.div_ceil(4)
        };
        let (size, base) = (bench.target.len(), bench.target.address());
        // Which cases a policy sees differs, so that they do not all test the same ones.
        let first = self.rng.word_below(1000) as usize * usize::from(cases < 12);
        for n in 0..cases {
            let mut case = case(&mut self.rng, shape, size, base, first + n);
            if effort.all_masks {
                case.mask = n as u32;
            }
            if shape.floats {
                for s in &mut case.sources {
                    s.iter_mut().for_each(|b| *b = float_byte(*b));
                }
            }
            if let Some(adjust) = &shape.adjust {
                let machine = bench.machine(&case);
                adjust(&mut case, &machine, self.rng.bits());
            }
            self.tally.cases += 1;
            self.tally.faults += bench
                .run(&case)
                .map_err(|e| format!("{policy:?}, {size} bytes: {e}\n  {}", bench.show(&case)))?;
        }
        Ok(())
    }
}

impl Bench<'_> {
    fn show(&self, case: &Case) -> String {
        let s = self.shape;
        let on = s.enabled(case.mask);
        let base = self.target.address();
        let mut out = format!(
            "enabled {on:#x}, base {base:#x}, scalar {:#x}, offsets",
            case.scalar
        );
        for (i, o) in case.offsets.iter().enumerate() {
            let off = if on >> i & 1 == 0 { "off:" } else { "" };
            out.push_str(&format!(" {off}{o:#x}"));
        }
        out
    }

    /// State before the instruction.
    fn machine(&self, case: &Case) -> Machine {
        let s = self.shape;
        let mut machine = Machine {
            space: s.space,
            base: self.target.address(),
            memory: self.before.clone(),
            data: vec![0; s.data_size()],
            faults: Vec::new(),
            first: s.first,
            enabled: s.enabled(case.mask),
        };
        machine.data[..case.data.len()].copy_from_slice(&case.data);
        machine
    }

    /// Runs one case; the number of faults it should have.
    fn run(&self, case: &Case) -> Result<u64, String> {
        let s = self.shape;
        let mut want = self.machine(case);
        (s.model)(case, &mut want);

        self.inputs.write(0, &s.inputs(case)).unwrap();
        self.target.write(0, &self.before).unwrap();
        self.results.fill(0xa5);
        let report = self.prepared.run().map_err(|e| e.to_string())?;
        let (memory, data) = (self.target.to_vec(), self.results.to_vec());

        let stops = self.policy == OobPolicy::Trap && !want.faults.is_empty();
        let status = if stops {
            LaunchStatus::Faulted
        } else {
            LaunchStatus::Completed
        };
        if report.status != status {
            return Err(format!(
                "ended {:?}, expected {status:?}: {:?}",
                report.status, want.faults
            ));
        }
        let count = want.faults.len() as u64;
        if self.policy != OobPolicy::ReadZeroSkipWrite {
            self.faults(&report, &want)?;
        } else if report.fault_count != 0 {
            return Err("faults are reported under the default policy".into());
        }
        if stops {
            if data.iter().any(|&b| b != 0xa5) {
                return Err("the kernel went on after a fault".into());
            }
            for (i, &b) in memory.iter().enumerate() {
                if b != self.before[i] && b != want.memory[i] {
                    return Err(format!("memory byte {i} is {b:#x} after a fault"));
                }
            }
            return Ok(count);
        }
        differ("memory", &memory, &want.memory)?;
        differ("payload", &data, &want.data)?;
        Ok(count)
    }

    fn faults(&self, report: &Report, want: &Machine) -> Result<(), String> {
        let s = self.shape;
        // Models do not count 32-bit offsets any further, either.
        let cap = |a: u64| {
            if s.space == Space::Flat {
                a
            } else {
                a.min(0xffff_ffff)
            }
        };
        let space = match s.space {
            Space::Surface => "surface",
            Space::Slm => "local memory",
            Space::Scratch => "scratch",
            Space::Flat => "device memory",
        };
        for f in &report.faults {
            let known = want
                .faults
                .iter()
                .any(|w| (w.lane, w.address) == (f.lane, cap(f.address)));
            let ok = known
                && f.line == self.line
                && f.opcode == s.opcode
                && f.access == s.access
                && f.space == space
                && f.surface == (s.space == Space::Surface).then_some(0)
                && f.local_id == [f.lane, 0, 0]
                && f.global_id == [u64::from(f.lane), 0, 0];
            if !ok {
                return Err(format!(
                    "unexpected record `{f}`, want line {} of {:?}",
                    self.line, want.faults
                ));
            }
        }
        let count = want.faults.len() as u64;
        if self.policy == OobPolicy::Report {
            if report.fault_count != count {
                return Err(format!(
                    "{} faults, expected {count}: {:?}",
                    report.fault_count, want.faults
                ));
            }
            // Every lane is named, unless there are too many.
            let named = |w: &Fault| {
                report
                    .faults
                    .iter()
                    .any(|f| (f.lane, cap(f.address)) == (w.lane, w.address))
            };
            if report.faults.len() as u64 == count && !want.faults.iter().all(named) {
                return Err(format!(
                    "records {:?}, expected {:?}",
                    report.faults, want.faults
                ));
            }
        }
        Ok(())
    }
}

fn differ(what: &str, got: &[u8], want: &[u8]) -> Result<(), String> {
    if got[..want.len()] == *want {
        return Ok(());
    }
    let wrong: Vec<usize> = (0..want.len()).filter(|&i| got[i] != want[i]).collect();
    let i = wrong[0];
    let end = (i + 16).min(want.len());
    Err(format!(
        "{what}: {} bytes differ, first at {i}: {:02x?}, expected {:02x?}",
        wrong.len(),
        &got[i..end],
        &want[i..end]
    ))
}
