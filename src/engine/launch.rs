//! Launches: arguments into payload and surfaces, then run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cache::Compiled;
use super::error::Error;
use super::kernel::{ArgKind, Interpreted, Kernel};
use crate::backend::OobPolicy;
use crate::container::PayloadArgument;
use crate::container::{ArgType, BufferType, BufferUsage, MemoryAddressing};
use crate::interp;
use crate::lower::{InputSource, LocalIdShape};
use crate::module::InputVar;
use crate::ssa::{AccessKind, Site, Space};
use visa_runtime::{
    Arguments, Buffer, FaultAction, Interrupter, LaunchOptions, LaunchShape, LaunchStatus, Payload,
    PayloadPatch, PreparedLaunch, SurfaceTable, WorkerPool,
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
    args: BTreeMap<u32, Arg>,
    surfaces: BTreeMap<u32, Buffer>,
    inputs: BTreeMap<String, Vec<u8>>,
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
    /// The code was in the cache.
    pub cache_hit: bool,
    /// Run time.
    pub run: Duration,
    /// Code generator.
    pub backend: &'static str,
}

/// What runs.
enum Code {
    Compiled { code: Arc<Compiled>, hit: bool },
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
}

impl Kernel {
    /// Compiles (or finds) the code and lays out the arguments.
    ///
    /// # Errors
    /// For arguments and shapes that do not fit, and kernels that cannot be compiled.
    pub fn prepare(&self, launch: &Launch) -> Result<Prepared, Error> {
        self.check_arguments(launch)?;
        let local = launch
            .local
            .or(self.required_local_size())
            .unwrap_or_else(|| default_local(launch.global));
        // Partial groups keep one dimension, but in several they may break rows that whole groups keep.
        let whole_rows = local[0] != 0
            && local[0].is_multiple_of(self.simd())
            && launch.global[0].is_multiple_of(local[0]);
        let ids = if (local[1] == 1 && local[2] == 1) || whole_rows {
            self.row_shape()
        } else {
            LocalIdShape::General
        };
        let code = match &self.parts().engine.0.options.interpret {
            Some(options) => Code::Interpreted(self.interpreted(options, launch.oob)?),
            None => {
                let (code, hit) = self.compiled(ids, launch.oob)?;
                Code::Compiled { code, hit }
            }
        };
        let shape = LaunchShape {
            offset: launch.offset,
            ..LaunchShape::new(launch.global, local)
        };
        let prepared = PreparedLaunch::new(code.kernel(), shape)?;
        let engine = &self.parts().engine;
        let pool = engine.pool(launch.threads)?;
        let private = self.private_memory(&prepared, pool.as_deref())?;
        let arguments = self.layout(launch, shape, private.as_ref())?;
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
        })
    }

    /// Prepares and runs once.
    ///
    /// # Errors
    /// As [`Kernel::prepare`]. Faults are part of the report.
    pub fn launch(&self, launch: &Launch) -> Result<Report, Error> {
        self.prepare(launch)?.run()
    }

    /// Other walk orders number lanes along another dimension.
    fn row_shape(&self) -> LocalIdShape {
        let walk = self
            .parts()
            .info
            .as_ref()
            .and_then(|i| i.execution_env.work_group_walk_order_dimensions);
        if walk.is_none_or(|w| w == [0, 1, 2]) {
            LocalIdShape::Row
        } else {
            LocalIdShape::General
        }
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
                (ArgKind::Image | ArgKind::Sampler, _) => {
                    return Err(Error::Unsupported {
                        kernel: self.name().into(),
                        what: format!("{what} is an image or a sampler"),
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

    /// Memory behind `private_base_stateless`: so many bytes for each lane of each hardware thread that can exist.
    fn private_memory(
        &self,
        launch: &PreparedLaunch,
        pool: Option<&WorkerPool>,
    ) -> Result<Option<Buffer>, Error> {
        let Some(info) = &self.parts().info else {
            return Ok(None);
        };
        let each: u64 = info
            .per_thread_memory_buffers
            .iter()
            .filter(|b| b.kind == BufferType::Global && b.usage == BufferUsage::PrivateSpace)
            .map(|b| {
                u64::from(b.size)
                    * if b.is_simt_thread {
                        u64::from(self.simd())
                    } else {
                        1
                    }
            })
            .sum();
        if each == 0 {
            return Ok(None);
        }
        let bytes = each.saturating_mul(launch.hw_threads(pool));
        Ok(Some(self.parts().engine.memory().alloc(bytes)?))
    }

    /// Builds the payload and the surface table.
    fn layout(
        &self,
        launch: &Launch,
        shape: LaunchShape,
        private: Option<&Buffer>,
    ) -> Result<Arguments, Error> {
        let parts = self.parts();
        let mut out = Arguments {
            payload: Payload::new(parts.plan.bytes as usize)?,
            surfaces: SurfaceTable::new(),
            memory: Some(parts.engine.memory().clone()),
            extra_slm: 0,
        };
        for (name, &at) in &parts.plan.map.symbols {
            if let Some((_, address)) = parts.data.symbols.iter().find(|(n, _)| n == name) {
                out.payload.set(at as usize, &address.to_le_bytes())?;
            }
        }
        let Some(info) = &parts.info else {
            self.layout_text(launch, &mut out)?;
            return Ok(out);
        };
        for b in &info.binding_table_indices {
            if let Some(Arg::Buffer(buffer)) = launch.args.get(&b.arg_index) {
                out.surfaces.bind(b.bti_value, buffer)?;
            }
        }
        let mut slm = 0u32;
        for p in &info.payload_arguments {
            self.fill(p, launch, shape, private, &mut slm, &mut out)?;
        }
        // The runtime rounds as the driver does: the declared part comes first, arguments behind it.
        out.extra_slm = slm.next_multiple_of(1024).min(1 << 20) * u32::from(slm > 0);
        Ok(out)
    }

    fn fill(
        &self,
        p: &PayloadArgument,
        launch: &Launch,
        shape: LaunchShape,
        private: Option<&Buffer>,
        slm: &mut u32,
        out: &mut Arguments,
    ) -> Result<(), Error> {
        let unsupported = |what: String| Error::Unsupported {
            kernel: self.name().into(),
            what,
        };
        let at = p.offset as usize;
        let three = |v: [u32; 3]| -> Vec<u8> {
            v.iter()
                .flat_map(|x| x.to_le_bytes())
                .take(p.size as usize)
                .collect()
        };
        let arg = p.arg_index.and_then(|i| launch.args.get(&i));
        match &p.arg_type {
            ArgType::GlobalIdOffset => out.payload.set(at, &three(shape.offset))?,
            ArgType::LocalSize => {
                out.payload.set(at, &three(shape.local))?;
                out.payload
                    .patch(PayloadPatch::LocalSize { offset: p.offset })?;
            }
            ArgType::EnqueuedLocalSize => out.payload.set(at, &three(shape.local))?,
            ArgType::GlobalSize => out.payload.set(at, &three(shape.global))?,
            ArgType::GroupCount => out.payload.set(at, &three(shape.groups()))?,
            ArgType::WorkDimensions => {
                let dims = if shape.global[2] > 1 {
                    3u32
                } else if shape.global[1] > 1 {
                    2
                } else {
                    1
                };
                out.payload.set(at, &dims.to_le_bytes())?;
            }
            ArgType::ByValue => {
                if let Some(Arg::Bytes(bytes)) = arg {
                    let from = p.source_offset.unwrap_or(0) as usize;
                    // Narrow types are shorter than their place; the rest of it stays zero.
                    let end = (from + p.size as usize).min(bytes.len());
                    if let Some(part) = bytes.get(from..end) {
                        out.payload.set(at, part)?;
                    }
                }
            }
            ArgType::ByPointer => match p.addrmode {
                Some(MemoryAddressing::Slm) => {
                    if let Some(Arg::Local(bytes)) = arg {
                        let start = slm.next_multiple_of(p.slm_alignment.unwrap_or(16).max(1));
                        out.payload.set(
                            at,
                            &u64::from(start).to_le_bytes()[..(p.size as usize).min(8)],
                        )?;
                        *slm = start.saturating_add(*bytes);
                    }
                }
                Some(MemoryAddressing::Bindless) => {
                    return Err(unsupported("bindless buffer arguments".into()));
                }
                _ if p.size > 0 => {
                    if let Some(Arg::Buffer(b)) = arg {
                        out.payload
                            .set(at, &b.address().to_le_bytes()[..(p.size as usize).min(8)])?;
                    }
                }
                _ => {}
            },
            ArgType::BufferAddress => {
                if let Some(Arg::Buffer(b)) = arg {
                    out.payload
                        .set(at, &b.address().to_le_bytes()[..(p.size as usize).min(8)])?;
                }
            }
            // Surfaces start exactly at their buffers.
            ArgType::BufferOffset => out.payload.set(at, &[0; 4])?,
            ArgType::PrivateBase => {
                if let Some(b) = private {
                    out.payload.set(at, &b.address().to_le_bytes())?;
                }
            }
            ArgType::ConstBase | ArgType::GlobalBase => {
                let wanted = if p.arg_type == ArgType::ConstBase {
                    ".data.const"
                } else {
                    ".data.global"
                };
                return Err(unsupported(format!(
                    "base address of {wanted} as an argument"
                )));
            }
            // Present in every kernel of a program with some option; harmless unless read.
            ArgType::PrintfBuffer => return Err(unsupported("printf".into())),
            other => return Err(unsupported(format!("implicit argument `{other}`"))),
        }
        Ok(())
    }

    fn layout_text(&self, launch: &Launch, out: &mut Arguments) -> Result<(), Error> {
        let parts = self.parts();
        let module = parts.valid.module();
        for (&bti, buffer) in &launch.surfaces {
            out.surfaces.bind(bti, buffer)?;
        }
        let bad = |what: String| Error::Arguments {
            kernel: self.name().into(),
            what,
        };
        for (name, bytes) in &launch.inputs {
            let found = module.inputs.iter().enumerate().find(|(_, i)| match i.var {
                InputVar::General(v) => module.vars.general(v).is_some_and(|g| g.name == *name),
                _ => false,
            });
            let Some((index, input)) = found else {
                return Err(bad(format!("no .input `{name}`")));
            };
            if bytes.len() as u32 != input.size {
                return Err(bad(format!(
                    "input `{name}` takes {} bytes, not {}",
                    input.size,
                    bytes.len()
                )));
            }
            match parts.plan.map.inputs.get(index) {
                Some(InputSource::Payload(at)) => out.payload.set(*at as usize, bytes)?,
                _ => {
                    return Err(bad(format!(
                        "input `{name}` is filled by the launch (r0 or local ids)"
                    )));
                }
            }
        }
        Ok(())
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
        let r = self.launch.run(&self.arguments, &options)?;
        let run = start.elapsed();
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
            cache_hit: matches!(self.code, Code::Compiled { hit: true, .. }),
            run,
            backend: match &self.code {
                Code::Compiled { code, .. } => code.object.backend,
                Code::Interpreted(_) => super::INTERPRETER,
            },
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
struct Place {
    line: u32,
    opcode: &'static str,
    access: &'static str,
    space: &'static str,
    /// It goes to a surface.
    surface: bool,
    bytes: u32,
}

fn compiled_site(s: &Site) -> Place {
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
