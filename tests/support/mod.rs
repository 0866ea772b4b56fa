//! Runs the kernels of `tests/kernels` and compares what they leave in memory.
//!
//! A test file names a zebin and a function; [`on_devices!`] makes one test of it for each device.
//! The function builds [`Job`]s: arguments in order, what each output must be. A mismatch does not
//! stop the test: all of them are reported together, naming device, kernel, size, index and values.
//! A file that uses this also has `mod reference`.

#![allow(dead_code, reason = "each test file uses a part")]

mod narrow;
mod sizes;

pub use sizes::{SIZES, large, sizes, sweep};

use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use std::path::{Path, PathBuf};

use visa_jit::backend::OobPolicy;
use visa_jit::{Arg, Engine, EngineOptions, FaultRecord, Kernel, Launch, Program};
use visa_runtime::{Buffer, Element, FaultKind, ImageShape, LaunchStatus, SamplerState};

use crate::reference::ulp::error_f32;
use visa_test_common::{full, turn};

use narrow::{checks, first_change, from_libraries, interpreted, left_out, library, more_runs};

/// Files that a device has no zebin of: it has no double precision, no sampler, or no 2D blocks; or the compiler gives up, or does
/// not know `assert`.
const ABSENT: [(&str, &str); 6] = [
    ("skl", "gemm_tile call_ids assert float_atomics"),
    (
        "tgllp",
        "double convert_double gemm_tile call_ids assert float_atomics",
    ),
    (
        "acm-g10",
        "double convert_double gemm_tile assert float_atomics",
    ),
    (
        "acm-g10-26",
        "double convert_double gemm_tile image_samples",
    ),
    ("pvc", PVC_ABSENT),
    ("pvc-26", PVC_26_ABSENT),
];
const PVC_ABSENT: &str =
    "image_sample image_access image_filter image_samples assert float_atomics";
const PVC_26_ABSENT: &str = "image_sample image_access image_filter image_samples image_write";

/// Names a folder of zebins to run in place of the checked-in ones, for devices and compilers of which none are checked in. The
/// tests of `bmg-26` run then.
const KERNELS_ENV: &str = "VISA_JIT_TEST_KERNELS";

/// Launches of at most this many work-items also run on the interpreter, which must leave the same bytes.
fn interpreted_items() -> u64 {
    if full() { 400 } else { 100 }
}

/// The file whose kernels keep state from launch to launch: compiled code runs them more often.
const STATEFUL: &str = "global_state";

/// The file whose functions are called through the stack. Today's compiler gives such kernels of some devices a structure that
/// functions read one size of groups from; launches with groups of several sizes are refused then, in these words.
const STACK_CALLS: &str = "call_stack";
const ONE_SIZE: &str = "there is one for all groups";

/// `on_devices!(name, "file", body)`: a module `name` with a test for each device and compiler (`-26` is today's), which calls
/// `body(&Target)` with `tests/kernels/bin/DEVICE/file.zebin`. Plain runs have the device
/// that the OpenCL driver takes by itself.
#[macro_export]
macro_rules! on_devices {
    ($name:ident, $file:literal, $body:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "the body may be named relative to the file")]
            use super::*;
            #[test]
            #[ignore = "one of the devices that plain runs leave out"]
            fn skl() {
                $crate::support::run("skl", $file, $body);
            }
            #[test]
            #[ignore = "one of the devices that plain runs leave out"]
            fn tgllp() {
                $crate::support::run("tgllp", $file, $body);
            }
            #[test]
            #[ignore = "one of the devices that plain runs leave out"]
            fn acm_g10() {
                $crate::support::run("acm-g10", $file, $body);
            }
            #[test]
            #[ignore = "one of the devices that plain runs leave out"]
            fn pvc() {
                $crate::support::run("pvc", $file, $body);
            }
            #[test]
            #[ignore = "one of the devices that plain runs leave out"]
            fn acm_g10_26() {
                $crate::support::run("acm-g10-26", $file, $body);
            }
            #[test]
            #[ignore = "one of the devices that plain runs leave out"]
            fn pvc_26() {
                $crate::support::run("pvc-26", $file, $body);
            }
            #[test]
            fn bmg_26() {
                $crate::support::run("bmg-26", $file, $body);
            }
        }
    };
}

/// A loaded file on a device, and what went wrong so far.
pub struct Target {
    pub device: &'static str,
    pub file: &'static str,
    pub engine: Engine,
    pub program: Program,
    /// The same file on the interpreter.
    interpreted: (Engine, Program),
    failures: RefCell<Vec<String>>,
}

/// Runs a test body on a device; fails with everything that the body found.
pub fn run(device: &'static str, file: &'static str, body: impl Fn(&Target)) {
    let elsewhere = std::env::var_os(KERNELS_ENV);
    let foreign = elsewhere.is_some();
    let here = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .join("tests/kernels/bin")
        .join(device);
    let directory = elsewhere.map_or(here, PathBuf::from);
    let path = directory.join(format!("{file}.zebin"));
    if foreign && (device != "bmg-26" || !path.exists()) {
        return;
    }
    let device = if foreign { "another-26" } else { device };
    let absent = ABSENT.iter().find(|(name, _)| *name == device);
    if absent.is_some_and(|(_, files)| files.split(' ').any(|f| f == file)) {
        assert!(
            !path.exists(),
            "{} exists: drop it from ABSENT",
            path.display()
        );
        return;
    }
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let options = EngineOptions {
        memory_bytes: 1 << 30,
        ..narrow::narrowed()
    };
    let engine = Engine::with_options(options).unwrap();
    let program = match from_libraries() {
        true => Ok(library(&engine, &path)),
        false => engine.program_from_zebin(&bytes, None),
    };
    let program = program.unwrap_or_else(|e| panic!("{device} {file}: {e}"));
    let interpreted = Engine::with_options(EngineOptions {
        memory_bytes: 1 << 30,
        ..interpreted()
    })
    .unwrap();
    let definition = interpreted.program_from_zebin(&bytes, None).unwrap();
    let target = Target {
        device,
        file,
        engine,
        program,
        interpreted: (interpreted, definition),
        failures: RefCell::default(),
    };
    body(&target);
    let failures = target.failures.into_inner();
    let shown = failures
        .iter()
        .take(60)
        .fold(String::new(), |text, f| text + f + "\n");
    assert!(failures.is_empty(), "{} failures:\n{shown}", failures.len());
}

/// Faults as text for comparison between engines, which number their accesses each in its own way.
pub fn faults_as_text(faults: &[FaultRecord]) -> Vec<String> {
    let without_site = |f: &FaultRecord| FaultRecord {
        site: 0,
        ..f.clone()
    };
    let texts = faults.iter().map(|f| format!("{:?}", without_site(f)));
    texts.collect()
}

impl Target {
    /// Kernels by name; the test fails at its end for one that is missing.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        let kernel = self.program.kernel(name);
        if let Err(e) = &kernel {
            self.fail(format!("{} {}: {e}", self.device, self.file));
        }
        kernel.ok()
    }

    /// A launch of a kernel over `global` items in groups of `local`.
    pub fn job(&self, kernel: &str, (global, local): (u32, u32)) -> Job<'_> {
        self.job_3d(kernel, [global, 1, 1], [local, 1, 1])
    }

    /// A launch over three dimensions.
    pub fn job_3d(&self, kernel: &str, global: [u32; 3], local: [u32; 3]) -> Job<'_> {
        Job {
            target: self,
            kernel: kernel.to_owned(),
            global,
            local,
            offset: [0; 3],
            slots: Vec::new(),
            threads: [sweep(), large()].contains(&(global[0], local[0])) && global[1..] == [1, 1],
            policies: false,
            workers: 1,
        }
    }

    /// The compiled engine and the interpreter, each with the program.
    pub fn engines(&self) -> [(&Engine, &Program); 2] {
        let (engine, program) = &self.interpreted;
        [(&self.engine, &self.program), (engine, program)]
    }

    /// Notes a failure.
    pub fn fail(&self, what: String) {
        self.failures.borrow_mut().push(what);
    }
}

/// What becomes of a buffer.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Input,
    Output,
}

type Show = Box<dyn Fn(usize) -> String>;

enum Slot {
    Buffer {
        bytes: Vec<u8>,
        used: Use,
        show: Show,
        length: usize,
        /// Bytes of an element.
        element: usize,
        /// What is in it, if it is an image.
        image: Option<ImageShape>,
    },
    Sampler(SamplerState),
    Value(Vec<u8>),
    Local(u32),
}

/// A launch being put together; arguments are added in order.
pub struct Job<'a> {
    target: &'a Target,
    kernel: String,
    global: [u32; 3],
    local: [u32; 3],
    offset: [u32; 3],
    slots: Vec<Slot>,
    threads: bool,
    policies: bool,
    workers: usize,
}

/// Where two buffers of one size differ. Most do not, and are compared as a whole for that.
fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    if a == b {
        return None;
    }
    (0..a.len().max(b.len())).find(|&k| a.get(k) != b.get(k))
}

/// The bytes of numbers, as memory holds them.
fn bytes_of<T: Element>(engine: &Engine, items: &[T]) -> Vec<u8> {
    engine.memory().alloc_from(items).unwrap().to_vec()
}

impl<'a> Job<'a> {
    fn buffer<T: Element + Debug>(mut self, items: &[T], used: Use) -> Self {
        let bytes = bytes_of(&self.target.engine, items);
        let items = items.to_vec();
        let length = items.len();
        let show =
            Box::new(move |i: usize| items.get(i).map_or_else(String::new, |v| format!("{v:?}")));
        self.slots.push(Slot::Buffer {
            bytes,
            used,
            show,
            length,
            element: size_of::<T>(),
            image: None,
        });
        self
    }

    fn image(mut self, shape: ImageShape, bytes: &[u8], used: Use) -> Self {
        assert_eq!(shape.bytes(), Some(bytes.len() as u64));
        self.slots.push(Slot::Buffer {
            bytes: bytes.to_vec(),
            used,
            show: Box::new(|_| String::new()),
            length: bytes.len(),
            element: shape.format.channel_bytes() as usize,
            image: Some(shape),
        });
        self
    }

    /// An image that the kernel must leave as it is.
    #[must_use]
    pub fn input_image(self, shape: ImageShape, bytes: &[u8]) -> Self {
        self.image(shape, bytes, Use::Input)
    }

    /// An image that the kernel writes.
    #[must_use]
    pub fn output_image(self, shape: ImageShape, bytes: &[u8]) -> Self {
        self.image(shape, bytes, Use::Output)
    }

    /// A sampler.
    #[must_use]
    pub fn sampler(mut self, state: SamplerState) -> Self {
        self.slots.push(Slot::Sampler(state));
        self
    }

    /// A buffer that the kernel must leave as it is.
    #[must_use]
    pub fn input<T: Element + Debug>(self, items: &[T]) -> Self {
        self.buffer(items, Use::Input)
    }

    /// A buffer that the kernel reads and writes.
    #[must_use]
    pub fn in_out<T: Element + Debug>(self, items: &[T]) -> Self {
        self.buffer(items, Use::Output)
    }

    /// A buffer of `length` numbers to write, full of `0xa5` before.
    #[must_use]
    pub fn output<T: Element>(mut self, length: usize) -> Self {
        let bytes = vec![0xa5; length * size_of::<T>()];
        let show = Box::new(|_| String::new());
        self.slots.push(Slot::Buffer {
            bytes,
            used: Use::Output,
            show,
            length,
            element: size_of::<T>(),
            image: None,
        });
        self
    }

    /// An argument by value.
    #[must_use]
    pub fn value(mut self, value: impl Into<Arg>) -> Self {
        match value.into() {
            Arg::Bytes(bytes) => self.slots.push(Slot::Value(bytes)),
            other => panic!("not a value: {other:?}"),
        }
        self
    }

    /// Local memory of `bytes` bytes.
    #[must_use]
    pub fn local_memory(mut self, bytes: u32) -> Self {
        self.slots.push(Slot::Local(bytes));
        self
    }

    /// Global offset.
    #[must_use]
    pub fn offset(mut self, offset: [u32; 3]) -> Self {
        self.offset = offset;
        self
    }

    /// Whether to run again on two threads, which must give the same bytes. Not for kernels whose results depend on
    /// the order of groups. Default: for jobs of size [`sweep`] or [`large`].
    #[must_use]
    pub fn threads(mut self, yes: bool) -> Self {
        self.threads = yes;
        self
    }

    /// If the size is [`sweep`], runs again with each policy for accesses out of bounds, and must give the same bytes
    /// without a fault. Each policy costs a compilation.
    #[must_use]
    pub fn policies(mut self) -> Self {
        let (global, local) = sweep();
        self.policies = [self.global, self.local] == [[global, 1, 1], [local, 1, 1]];
        self
    }

    /// Whether to run again on two threads and with each policy, whatever the size.
    #[must_use]
    pub fn every_way(mut self, yes: bool) -> Self {
        self.threads = yes;
        self.policies = yes;
        self
    }

    /// Runs on this many threads first: for results that depend on the order of groups.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Runs, and looks at what came out unless the launch failed.
    pub fn check(self, look: impl FnOnce(&Done<'_>)) {
        if let Some(done) = self.run() {
            look(&done);
        }
    }

    /// Whether its last group is smaller than the others.
    fn is_uneven(&self) -> bool {
        (0..3).any(|d| !self.global[d].is_multiple_of(self.local[d].max(1)))
    }

    fn context(&self) -> String {
        let size = |v: [u32; 3]| {
            if v[1..] == [1, 1] {
                v[0].to_string()
            } else {
                format!("{v:?}")
            }
        };
        let mut text = format!(
            "{} {} size {}",
            self.target.device,
            self.kernel,
            size(self.global)
        );
        let _ = write!(text, " local {}", size(self.local));
        if self.offset != [0; 3] {
            let _ = write!(text, " offset {:?}", self.offset);
        }
        text
    }

    /// One launch on fresh buffers; what each buffer holds afterwards, `None` for other arguments.
    fn once(&self, oob: OobPolicy, threads: usize) -> Result<Ran, String> {
        self.once_on(&self.target.engine, &self.target.program, oob, threads)
    }

    fn once_on(
        &self,
        engine: &Engine,
        program: &Program,
        oob: OobPolicy,
        threads: usize,
    ) -> Result<Ran, String> {
        let memory = engine.memory();
        let mut launch = Launch::new(self.global)
            .local(self.local)
            .offset(self.offset)
            .oob(oob)
            .threads(threads);
        let mut buffers = Vec::new();
        for (i, slot) in self.slots.iter().enumerate() {
            let (arg, buffer) = match slot {
                Slot::Buffer { bytes, image, .. } => {
                    let buffer = memory.alloc_from(bytes).map_err(|e| e.to_string())?;
                    let arg = match image {
                        Some(shape) => Arg::Image(buffer.clone(), *shape),
                        None => Arg::from(&buffer),
                    };
                    (arg, Some(buffer))
                }
                Slot::Sampler(state) => (Arg::Sampler(*state), None),
                Slot::Value(bytes) => (Arg::Bytes(bytes.clone()), None),
                Slot::Local(bytes) => (Arg::Local(*bytes), None),
            };
            launch = launch.arg(i as u32, arg);
            buffers.push(buffer);
        }
        let kernel = program.kernel(&self.kernel).map_err(|e| e.to_string())?;
        let report = kernel.launch(&launch).map_err(|e| e.to_string())?;
        // Some of the kernels write beyond their images, which misses no buffer.
        let missed = |f: &FaultRecord| f.kind != FaultKind::Bounds;
        let wrong = report.faults.iter().any(|f| !checks() || missed(f));
        if report.status != LaunchStatus::Completed || wrong {
            let (status, n) = (report.status, report.fault_count);
            let first = report.faults.first().map(ToString::to_string);
            return Err(format!("{status:?}, {n} faults: {first:?}"));
        }
        if let Some(problem) = report.print_problem {
            return Err(format!("printf: {problem}"));
        }
        Ok(Ran {
            buffers,
            printed: report.printed,
        })
    }

    /// Runs on the interpreter; what differs from what compiled code did.
    fn interpret(&self, compiled: &Ran) -> Vec<String> {
        let (engine, program) = &self.target.interpreted;
        let ran = match self.once_on(engine, program, OobPolicy::default(), 1) {
            Ok(ran) => ran,
            Err(e) => return vec![format!("interpreter: {e}")],
        };
        let mut problems = Vec::new();
        if ran.printed != compiled.printed {
            let text = |ran: &Ran| String::from_utf8_lossy(&ran.printed).into_owned();
            problems.push(format!(
                "interpreted it prints {:?}, compiled {:?}",
                text(&ran),
                text(compiled)
            ));
        }
        let pairs = ran.buffers.iter().zip(&compiled.buffers);
        for (i, (pair, slot)) in pairs.zip(&self.slots).enumerate() {
            let ((Some(a), Some(b)), Slot::Buffer { element, .. }) = (pair, slot) else {
                continue;
            };
            let (a, b) = (a.to_vec(), b.to_vec());
            let pairs = a.chunks(*element).zip(b.chunks(*element)).enumerate();
            let wrong: Vec<_> = pairs
                .filter(|(_, (a, b))| a != b && !(is_nan(a) && is_nan(b)))
                .collect();
            if let Some((at, (a, b))) = wrong.first() {
                problems.push(format!(
                    "argument {i}: {} elements differ; [{at}] is {a:02x?} interpreted, {b:02x?} compiled",
                    wrong.len()
                ));
            }
        }
        problems
    }

    /// Whether a plain run does this variation of the job: kernels take turns by their names.
    fn has_turn(&self, variation: usize, of: usize) -> bool {
        full() || turn(&self.kernel) % of == variation
    }

    /// Runs, and once more for each variation asked for. `None` when a launch failed, which is noted.
    pub fn run(self) -> Option<Done<'a>> {
        let context = self.context();
        let fail = |what: String| self.target.fail(format!("{context}: {what}"));
        let ran = match self.once(OobPolicy::ReadZeroSkipWrite, self.workers) {
            Ok(ran) => ran,
            Err(e)
                if self.is_uneven() && self.target.file == STACK_CALLS && e.contains(ONE_SIZE) =>
            {
                return None;
            }
            Err(e) => {
                fail(e);
                return None;
            }
        };
        let mut runs = more_runs(self.target, self.workers);
        if self.threads {
            runs.push(("2 threads", OobPolicy::ReadZeroSkipWrite, 2));
        }
        if self.policies {
            // Libraries have one policy; kernels that count their runs are run as often.
            let only = from_libraries().then_some(OobPolicy::ReadZeroSkipWrite);
            let policies = [
                ("policy report", OobPolicy::Report),
                ("policy trap", OobPolicy::Trap),
            ];
            let stateful = self.target.file == STATEFUL;
            let policies = policies.into_iter().enumerate();
            for (_, (what, oob)) in policies.filter(|(n, _)| stateful || self.has_turn(*n, 4)) {
                runs.push((what, only.unwrap_or(oob), 1));
            }
        }
        for (what, oob, threads) in runs {
            match self.once(oob, threads) {
                Err(e) => fail(format!("{what}: {e}")),
                Ok(again) => {
                    if again.printed != ran.printed {
                        fail(format!("{what}: something else is printed"));
                    }
                    for (i, pair) in again.buffers.iter().zip(&ran.buffers).enumerate() {
                        let (Some(a), Some(b)) = pair else { continue };
                        let (a, b) = (a.to_vec(), b.to_vec());
                        if let Some(at) = first_change(&a, &b, &self.slots[i]) {
                            fail(format!(
                                "{what}: argument {i} differs from the first run at byte {at}"
                            ));
                        }
                    }
                }
            }
        }
        let items: u64 = self.global.iter().map(|&n| u64::from(n)).product();
        let stateless = self.target.file != STATEFUL;
        let few = items <= interpreted_items() && self.has_turn(0, 2);
        if self.workers == 1 && few && stateless && !left_out("interp") {
            self.interpret(&ran).into_iter().for_each(&fail);
        }
        for (i, slot) in self.slots.iter().enumerate() {
            if let (
                Slot::Buffer {
                    bytes,
                    used: Use::Input,
                    ..
                },
                Some(b),
            ) = (slot, &ran.buffers[i])
            {
                let now = b.to_vec();
                if let Some(at) = first_difference(&now, bytes) {
                    fail(format!("input argument {i} was written at byte {at}"));
                }
            }
        }
        Some(Done {
            job: self,
            context,
            buffers: ran.buffers,
            printed: ran.printed,
        })
    }
}

/// True for the bytes of a NaN of a float type of that size; the payload does not count.
fn is_nan(bytes: &[u8]) -> bool {
    match *bytes {
        [a, b] => u16::from_le_bytes([a, b]) & 0x7FFF > 0x7C00,
        [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).is_nan(),
        [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]).is_nan(),
        _ => false,
    }
}

/// What a launch left behind.
struct Ran {
    buffers: Vec<Option<Buffer>>,
    printed: Vec<u8>,
}

/// A launch that ran.
pub struct Done<'a> {
    job: Job<'a>,
    context: String,
    buffers: Vec<Option<Buffer>>,
    printed: Vec<u8>,
}

/// Equality of results: all NaNs are equal, and so are both zeros.
pub trait Same: Element + Debug {
    fn same(self, other: Self) -> bool;
}

macro_rules! same {
    ($($t:ty)*) => { $(impl Same for $t {
        #[allow(clippy::eq_op, clippy::float_cmp, reason = "NaN")]
        fn same(self, other: Self) -> bool {
            self == other || (self != self && other != other)
        }
    })* };
}
same!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

impl Done<'_> {
    /// What the buffer at an argument holds now.
    pub fn get<T: Element>(&self, arg: usize) -> Vec<T> {
        self.buffers[arg]
            .as_ref()
            .expect("argument is a buffer")
            .to_vec_of::<T>()
    }

    /// Notes a failure.
    pub fn fail(&self, what: &str) {
        self.job.target.fail(format!("{}: {what}", self.context));
    }

    /// The kernel printed this.
    pub fn prints(&self, want: &str) -> &Self {
        let got = String::from_utf8_lossy(&self.printed);
        if got != want {
            let lines = got.lines().zip(want.lines());
            let first = lines.enumerate().find(|(_, (a, b))| a != b);
            self.fail(&format!(
                "prints {} bytes, the reference {}; first different line: {first:?}",
                got.len(),
                want.len()
            ));
        }
        self
    }

    /// Every number of the buffer is as wanted.
    pub fn exact<T: Same>(&self, arg: usize, want: &[T]) -> &Self {
        self.all(arg, want, |got: T, want: T| got.same(want))
    }

    /// Halves, carried as their bits.
    pub fn halves(&self, arg: usize, want: &[u16]) -> &Self {
        self.all(arg, want, same_half)
    }

    /// Floats within `limit` ulp of exact results.
    pub fn ulp(&self, arg: usize, want: &[f64], limit: f64) -> &Self {
        self.all(arg, want, |got: f32, want| error_f32(got, want) <= limit)
    }

    /// Floats within `limit` of exact results.
    pub fn within(&self, arg: usize, want: &[f64], limit: f64) -> &Self {
        self.all(arg, want, |got: f32, want| {
            let got = f64::from(got);
            got == want || (got - want).abs() <= limit || (got.is_nan() && want.is_nan())
        })
    }

    /// Every number of the buffer passes a comparison with what is wanted in its place.
    pub fn all<T: Element + Debug, W: Copy + Debug>(
        &self,
        arg: usize,
        want: &[W],
        equal: impl Fn(T, W) -> bool,
    ) -> &Self {
        let got = self.get::<T>(arg);
        if got.len() != want.len() {
            self.fail(&format!(
                "argument {arg} has {} results, the reference {}",
                got.len(),
                want.len()
            ));
            return self;
        }
        let bad: Vec<usize> = (0..got.len())
            .filter(|&i| !equal(got[i], want[i]))
            .collect();
        let Some(&first) = bad.first() else {
            return self;
        };
        let mut text = format!("argument {arg}: {} of {} differ", bad.len(), got.len());
        for &i in [first]
            .iter()
            .chain(bad.last().filter(|&&last| last != first))
        {
            let _ = write!(text, "; [{i}] is {:?}, not {:?}", got[i], want[i]);
            text += &self.inputs_at(i, got.len());
        }
        self.fail(&text);
        self
    }

    /// Where a result comes from, when the buffer has a given number of results for each item.
    fn inputs_at(&self, index: usize, length: usize) -> String {
        let items = self.job.global.iter().product::<u32>() as usize;
        if items == 0 || !length.is_multiple_of(items) {
            return String::new();
        }
        let each = length / items;
        let item = index / each;
        let mut text = format!(" (item {item}, result {} of {each}", index % each);
        for (i, slot) in self.job.slots.iter().enumerate() {
            if let Slot::Buffer { show, length, .. } = slot {
                let shown = if *length == items {
                    show(item)
                } else {
                    String::new()
                };
                if !shown.is_empty() {
                    let _ = write!(text, ", argument {i} {shown}");
                }
            }
        }
        text + ")"
    }
}

/// Equal halves: all NaNs, both zeros.
pub fn same_half(a: u16, b: u16) -> bool {
    let nan = |v: u16| v & 0x7fff > 0x7c00;
    a == b || (nan(a) && nan(b)) || (a | b) & 0x7fff == 0
}
