//! Launches: arguments into payload and surfaces, then run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cache::{Compiled, Origin};
use super::error::Error;
use super::kernel::{ArgKind, Interpreted, Kernel};
use super::layout::Own;
use super::printed::PrintBuffer;
use crate::backend::OobPolicy;
use crate::interp;
use crate::lower::LocalIdShape;
use crate::printf::Output;
use crate::ssa::{AccessKind, Site, Space};
use visa_runtime::{
    Arguments, Buffer, FaultAction, ImageKind, ImageShape, Interrupter, LaunchOptions, LaunchShape,
    LaunchStatus, PreparedLaunch, SamplerState, WorkerPool,
};

/// One argument of a launch.
#[derive(Clone, Debug)]
pub enum Arg {
    /// By value: the bytes in memory order.
    Bytes(Vec<u8>),
    /// A buffer of the engine's device memory.
    Buffer(Buffer),
    /// Local memory of this many bytes.
    Local(u32),
    /// An image, which a buffer holds from its start: rows and slices without gaps.
    Image(Buffer, ImageShape),
    /// A sampler.
    Sampler(SamplerState),
    /// A null pointer.
    Null,
}

impl From<Vec<u8>> for Arg {
    fn from(bytes: Vec<u8>) -> Arg {
        Arg::Bytes(bytes)
    }
}

impl From<Buffer> for Arg {
    fn from(buffer: Buffer) -> Arg {
        Arg::Buffer(buffer)
    }
}

impl From<&Buffer> for Arg {
    fn from(buffer: &Buffer) -> Arg {
        Arg::Buffer(buffer.clone())
    }
}

macro_rules! scalars {
    ($($t:ty)*) => { $(impl From<$t> for Arg {
        fn from(v: $t) -> Arg {
            Arg::Bytes(v.to_le_bytes().to_vec())
        }
    })* };
}
scalars!(i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);

/// What to run a kernel on.
#[derive(Clone, Debug)]
pub struct Launch {
    pub(crate) global: [u32; 3],
    local: Option<[u32; 3]>,
    offset: [u32; 3],
    pub(super) args: BTreeMap<u32, Arg>,
    pub(super) surfaces: BTreeMap<u32, Buffer>,
    pub(super) images: BTreeMap<u32, (Buffer, ImageShape)>,
    pub(super) samplers: BTreeMap<u32, SamplerState>,
    pub(super) inputs: BTreeMap<String, Vec<u8>>,
    threads: usize,
    oob: OobPolicy,
    interrupter: Option<Interrupter>,
    deadline: Option<Duration>,
}

impl Launch {
    /// A launch of `global` work-items in x, y and z.
    pub fn new(global: [u32; 3]) -> Launch {
        Launch {
            global,
            local: None,
            offset: [0; 3],
            args: BTreeMap::new(),
            surfaces: BTreeMap::new(),
            images: BTreeMap::new(),
            samplers: BTreeMap::new(),
            inputs: BTreeMap::new(),
            threads: 1,
            oob: OobPolicy::default(),
            interrupter: None,
            deadline: None,
        }
    }

    /// Work-group size; chosen by the engine when not given.
    #[must_use]
    pub fn local(mut self, local: [u32; 3]) -> Launch {
        self.local = Some(local);
        self
    }

    /// First global id.
    #[must_use]
    pub fn offset(mut self, offset: [u32; 3]) -> Launch {
        self.offset = offset;
        self
    }

    /// Sets an argument.
    #[must_use]
    pub fn arg(mut self, index: u32, arg: impl Into<Arg>) -> Launch {
        self.args.insert(index, arg.into());
        self
    }

    /// Binds a surface of a kernel from text.
    #[must_use]
    pub fn surface(mut self, bti: u32, buffer: Buffer) -> Launch {
        self.surfaces.insert(bti, buffer);
        self
    }

    /// Binds a typed surface of a kernel from text.
    #[must_use]
    pub fn image(mut self, bti: u32, buffer: Buffer, shape: ImageShape) -> Launch {
        self.images.insert(bti, (buffer, shape));
        self
    }

    /// Sets a sampler of a kernel from text.
    #[must_use]
    pub fn sampler(mut self, index: u32, state: SamplerState) -> Launch {
        self.samplers.insert(index, state);
        self
    }

    /// Sets an `.input` variable of a kernel from text.
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, bytes: Vec<u8>) -> Launch {
        self.inputs.insert(name.into(), bytes);
        self
    }

    /// OS threads to spread work-groups over.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Launch {
        self.threads = threads;
        self
    }

    /// What out-of-bounds accesses do.
    #[must_use]
    pub fn oob(mut self, oob: OobPolicy) -> Launch {
        self.oob = oob;
        self
    }

    /// What out-of-bounds accesses do.
    pub(super) fn policy(&self) -> OobPolicy {
        self.oob
    }

    /// Lets another thread stop the launch.
    #[must_use]
    pub fn interrupter(mut self, interrupter: Interrupter) -> Launch {
        self.interrupter = Some(interrupter);
        self
    }

    /// Stops the launch after this long.
    #[must_use]
    pub fn deadline(mut self, after: Duration) -> Launch {
        self.deadline = Some(after);
        self
    }
}

/// An out-of-bounds access of one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRecord {
    /// Kernel.
    pub kernel: String,
    /// Line in the vISA text.
    pub line: u32,
    /// Instruction.
    pub opcode: &'static str,
    /// Read, write or atomic.
    pub access: &'static str,
    /// Address space.
    pub space: &'static str,
    /// Binding-table index of surface accesses.
    pub surface: Option<u32>,
    /// Byte offset, or flat address.
    pub address: u64,
    /// Bytes of the element.
    pub bytes: u32,
    /// Work-group.
    pub group: [u32; 3],
    /// Local id of the lane.
    pub local_id: [u32; 3],
    /// Global id of the lane.
    pub global_id: [u64; 3],
    /// Hardware thread in the group.
    pub thread: u32,
    /// Lane of it.
    pub lane: u32,
}

impl std::fmt::Display for FaultRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} line {}: `{}` {} of {} bytes out of bounds: {}",
            self.kernel, self.line, self.opcode, self.access, self.bytes, self.space
        )?;
        if let Some(s) = self.surface {
            write!(f, " {s}")?;
        }
        let (at, l, g) = (self.address, self.local_id, self.group);
        write!(
            f,
            " at {at:#x}, group ({}, {}, {}), local id ({}, {}, {}), thread {} lane {}",
            g[0], g[1], g[2], l[0], l[1], l[2], self.thread, self.lane
        )
    }
}

/// What a launch did.
#[derive(Clone, Debug)]
pub struct Report {
    /// How it ended.
    pub status: LaunchStatus,
    /// Work-groups that ran to their end.
    pub groups: u64,
    /// Hardware threads of those.
    pub threads: u64,
    /// First faults.
    pub faults: Vec<FaultRecord>,
    /// All faults.
    pub fault_count: u64,
    /// Time to make the code, whenever that was.
    pub compile: Duration,
    /// Where the code was.
    pub origin: Origin,
    /// Run time.
    pub run: Duration,
    /// Code generator.
    pub backend: &'static str,
    /// What the code generator did other than asked for, and why.
    pub note: Option<String>,
    /// What the kernel printed.
    pub printed: Vec<u8>,
    /// Why that is not all, or not what the kernel meant.
    pub print_problem: Option<String>,
}

/// What runs.
enum Code {
    Compiled { code: Arc<Compiled>, origin: Origin },
    Interpreted(Interpreted),
}

impl Code {
    fn kernel(&self) -> &visa_runtime::Kernel {
        match self {
            Code::Compiled { code, .. } => &code.kernel,
            Code::Interpreted(code) => &code.kernel,
        }
    }
}

/// A launch with everything ready; may be run again and again, also from several threads.
pub struct Prepared {
    kernel: Kernel,
    code: Code,
    launch: PreparedLaunch,
    arguments: Arguments,
    pool: Option<Arc<WorkerPool>>,
    oob: OobPolicy,
    interrupter: Option<Interrupter>,
    deadline: Option<Duration>,
    /// Keeps private memory alive.
    _private: Option<Buffer>,
    printing: Option<PrintBuffer>,
}

impl Kernel {
    /// Compiles (or finds) the code and lays out the arguments.
    ///
    /// # Errors
    /// For arguments and shapes that do not fit, and kernels that cannot be compiled.
    pub fn prepare(&self, launch: &Launch) -> Result<Prepared, Error> {
        self.check_arguments(launch)?;
        let (local, ids) = self.groups_of(launch);
        let code = match &self.parts().engine.0.options.interpret {
            Some(options) => Code::Interpreted(self.interpreted(options, launch.oob)?),
            None => {
                let (code, origin) = self.compiled(ids, launch.oob)?;
                Code::Compiled { code, origin }
            }
        };
        let shape = LaunchShape {
            offset: launch.offset,
            ..LaunchShape::new(launch.global, local)
        };
        let prepared = PreparedLaunch::new(code.kernel(), shape)?;
        let engine = &self.parts().engine;
        let printing = self.print_buffer()?;
        // What is printed has an order only if groups run one after the other.
        let pool = engine.pool(if printing.is_some() {
            1
        } else {
            launch.threads
        })?;
        let private = self.private_memory(&prepared, pool.as_deref())?;
        let own = Own {
            private: private.as_ref(),
            printing: printing.as_ref(),
        };
        let arguments = self.layout(launch, shape, &own)?;
        Ok(Prepared {
            kernel: self.clone(),
            code,
            launch: prepared,
            arguments,
            pool,
            oob: launch.oob,
            interrupter: launch.interrupter.clone(),
            deadline: launch.deadline,
            _private: private,
            printing,
        })
    }

    /// Size of a launch's groups, and which specialisation it runs.
    pub(super) fn groups_of(&self, launch: &Launch) -> ([u32; 3], LocalIdShape) {
        let local = launch
            .local
            .or(self.required_local_size())
            .unwrap_or_else(|| default_local(launch.global));
        // Partial groups keep one dimension, but in several they may break rows that whole groups keep.
        let whole_rows = local[0] != 0
            && local[0].is_multiple_of(self.simd())
            && launch.global[0].is_multiple_of(local[0]);
        let ids = if !self.walks_rows() {
            LocalIdShape::General
        } else if whole_rows {
            LocalIdShape::FullRow
        } else if local[1] == 1 && local[2] == 1 {
            LocalIdShape::Row
        } else {
            LocalIdShape::General
        };
        (local, ids)
    }

    /// Prepares and runs once.
    ///
    /// # Errors
    /// As [`Kernel::prepare`]. Faults are part of the report.
    pub fn launch(&self, launch: &Launch) -> Result<Report, Error> {
        self.prepare(launch)?.run()
    }

    /// Lanes are numbered along x first; other walk orders take another dimension.
    pub(super) fn walks_rows(&self) -> bool {
        let walk = self
            .parts()
            .info
            .as_ref()
            .and_then(|i| i.execution_env.work_group_walk_order_dimensions);
        walk.is_none_or(|w| w == [0, 1, 2])
    }

    /// Every argument given, of the right kind; all problems in one message.
    fn check_arguments(&self, launch: &Launch) -> Result<(), Error> {
        let mut problems = Vec::new();
        for a in self.arguments() {
            let what = if a.name.is_empty() {
                format!("argument {}", a.index)
            } else {
                format!("argument {} (`{} {}`)", a.index, a.type_name, a.name)
            };
            match (a.kind, launch.args.get(&a.index)) {
                (ArgKind::Image { kind: None, .. }, _) => {
                    return Err(Error::Unsupported {
                        kernel: self.name().into(),
                        what: format!("{what} is an image of a kind that is not known"),
                    });
                }
                (ArgKind::Unused, _) => {}
                (_, None) => problems.push(format!("{what} is missing")),
                (ArgKind::Value { size }, Some(Arg::Bytes(b)))
                    if b.len() as u32 == size || a.narrow_bytes() == Some(b.len()) => {}
                (ArgKind::Value { size }, Some(Arg::Bytes(b))) => {
                    problems.push(format!(
                        "{what} takes {size} bytes by value, not {}",
                        b.len()
                    ));
                }
                (ArgKind::Value { size }, Some(_)) => {
                    problems.push(format!("{what} takes {size} bytes by value"))
                }
                (ArgKind::Buffer { .. }, Some(Arg::Buffer(_) | Arg::Null)) => {}
                (ArgKind::Buffer { .. }, Some(_)) => {
                    problems.push(format!("{what} takes a buffer"))
                }
                (ArgKind::Image { kind, .. }, Some(Arg::Image(_, s))) if kind == Some(s.kind) => {}
                (ArgKind::Image { kind, .. }, Some(_)) => {
                    let name = kind.map_or("", ImageKind::name);
                    problems.push(format!("{what} takes an {name}"));
                }
                (ArgKind::Sampler, Some(Arg::Sampler(_))) => {}
                (ArgKind::Sampler, Some(_)) => problems.push(format!("{what} takes a sampler")),
                (ArgKind::Local { .. }, Some(Arg::Local(_))) => {}
                (ArgKind::Local { .. }, Some(_)) => {
                    problems.push(format!("{what} takes a size of local memory"))
                }
            }
        }
        if self.parts().info.is_some() {
            for index in launch
                .args
                .keys()
                .filter(|&&i| i as usize >= self.arguments().len())
            {
                problems.push(format!(
                    "there is no argument {index}; the kernel has {}",
                    self.arguments().len()
                ));
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::Arguments {
            kernel: self.name().into(),
            what: problems.join("; "),
        })
    }
}

/// The largest divisor of the x size up to 256, or 256 with a partial last group when that is small.
fn default_local(global: [u32; 3]) -> [u32; 3] {
    let x = global[0].max(1);
    let best = (1..=x.min(256))
        .rev()
        .find(|d| x.is_multiple_of(*d))
        .unwrap_or(1);
    [
        if best >= 32 || best == x {
            best
        } else {
            256.min(x)
        },
        1,
        1,
    ]
}

impl Prepared {
    /// Runs.
    ///
    /// # Errors
    /// When memory for the workers cannot be had. Faults are part of the report.
    pub fn run(&self) -> Result<Report, Error> {
        let start = Instant::now();
        let options = LaunchOptions {
            pool: self.pool.as_deref(),
            interrupter: self.interrupter.as_ref(),
            deadline: self.deadline.map(|d| start + d),
            on_fault: if self.oob == OobPolicy::Trap {
                FaultAction::Stop
            } else {
                FaultAction::Record
            },
            ..LaunchOptions::default()
        };
        let printing = self.printing.as_ref().map(PrintBuffer::start).transpose()?;
        let r = self.launch.run(&self.arguments, &options);
        let run = start.elapsed();
        // Also after an error, so that the next launch finds the buffer empty.
        let printed = match printing {
            Some(printing) => printing.finish()?,
            None => Output::default(),
        };
        let r = r?;
        Ok(Report {
            status: r.status,
            groups: r.groups,
            threads: r.threads,
            faults: r.faults.iter().map(|f| self.record(f)).collect(),
            fault_count: r.fault_count,
            compile: match &self.code {
                Code::Compiled { code, .. } => code.time,
                Code::Interpreted(code) => code.time,
            },
            origin: match self.code {
                Code::Compiled { origin, .. } => origin,
                Code::Interpreted(_) => Origin::Compiled,
            },
            run,
            backend: match &self.code {
                Code::Compiled { code, .. } => code.object.backend,
                Code::Interpreted(_) => super::INTERPRETER,
            },
            note: match &self.code {
                Code::Compiled { code, .. } => code.object.note.clone(),
                Code::Interpreted(_) => None,
            },
            printed: printed.text,
            print_problem: printed.problem,
        })
    }

    /// The code that runs; `None` when the kernel is interpreted.
    pub fn code(&self) -> Option<&Compiled> {
        match &self.code {
            Code::Compiled { code, .. } => Some(code),
            Code::Interpreted(_) => None,
        }
    }

    fn record(&self, f: &visa_runtime::Fault) -> FaultRecord {
        let place = match &self.code {
            Code::Compiled { code, .. } => code.sites.get(f.site as usize).map(compiled_site),
            Code::Interpreted(code) => code.program.site(f.site).map(interpreted_site),
        };
        let place = place.unwrap_or(Place {
            line: 0,
            opcode: "?",
            access: "access",
            space: "registers",
            surface: false,
            bytes: 0,
        });
        FaultRecord {
            kernel: self.kernel.name().to_owned(),
            line: place.line,
            opcode: place.opcode,
            access: place.access,
            space: place.space,
            surface: place.surface.then_some(f.surface),
            address: f.address,
            bytes: place.bytes,
            group: f.group,
            local_id: f.local_id,
            global_id: f.global_id,
            thread: f.thread,
            lane: f.lane,
        }
    }
}

/// Where in a kernel an access is, in the words of fault records.
pub(super) struct Place {
    pub line: u32,
    pub opcode: &'static str,
    pub access: &'static str,
    pub space: &'static str,
    /// It goes to a surface.
    pub surface: bool,
    pub bytes: u32,
}

pub(super) fn compiled_site(s: &Site) -> Place {
    Place {
        line: s.line,
        opcode: s.opcode,
        access: match s.kind {
            AccessKind::Read => "read",
            AccessKind::Write => "write",
            AccessKind::Atomic => "atomic",
        },
        space: match s.space {
            Space::Surface => "surface",
            Space::Slm => "local memory",
            Space::Flat => "device memory",
            Space::Scratch => "scratch",
            Space::Regs => "registers",
        },
        surface: s.space == Space::Surface,
        bytes: s.bytes,
    }
}

fn interpreted_site(s: interp::Site) -> Place {
    Place {
        line: s.line,
        opcode: s.opcode,
        access: s.access,
        space: match s.space {
            interp::Space::Surface => "surface",
            interp::Space::Local => "local memory",
            interp::Space::Device => "device memory",
            interp::Space::Scratch => "scratch",
        },
        surface: s.space == interp::Space::Surface,
        bytes: s.bytes,
    }
}
