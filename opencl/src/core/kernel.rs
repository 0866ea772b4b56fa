//! Kernels: arguments, and launches.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use visa_jit::{Arg, ArgKind, Argument, Launch, Prepared};
use visa_runtime::{Buffer, LaunchStatus};

use super::device::Device;
use super::engine::Settings;
use super::error::{Cl, ClError, ensure, err};
use super::mem::Mem;
use super::object::{Ref, lock};
use super::program::Program;
use super::queue::Work;
use super::report;
use super::sampler::Sampler;
use crate::abi::fork::Process;
use crate::abi::{
    CL_INVALID_ARG_INDEX, CL_INVALID_ARG_SIZE, CL_INVALID_ARG_VALUE, CL_INVALID_KERNEL_ARGS,
    CL_INVALID_KERNEL_DEFINITION, CL_INVALID_KERNEL_NAME, CL_INVALID_MEM_OBJECT,
    CL_INVALID_PROGRAM_EXECUTABLE, CL_INVALID_SAMPLER, CL_INVALID_WORK_GROUP_SIZE,
    CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY, CL_OUT_OF_RESOURCES, cl_mem_flags,
};

/// What an argument is set to.
#[derive(Clone)]
pub enum Setting {
    /// Bytes by value.
    Bytes(Vec<u8>),
    /// Bytes of local memory.
    Local(u32),
    /// A buffer or image.
    Mem(Ref<Mem>),
    /// A sampler.
    Sampler(Ref<Sampler>),
    /// Memory that is shared by address.
    Shared(Buffer),
    /// A null pointer.
    Null,
}

/// How often arguments were set, and what launches were made ready with them.
#[derive(Clone, Default)]
struct Settable {
    values: Vec<Option<Setting>>,
    /// Changes with each argument that is set.
    version: u64,
    ready: Option<Ready>,
}

/// A launch that is ready, for the next one that is the same.
#[derive(Clone)]
struct Ready {
    version: u64,
    range: Range,
    device: usize,
    /// Where it was made: a child process cannot tell whether its parent was in the middle of it.
    process: Process,
    launch: Arc<OneAtATime>,
}

/// Some memory of a launch belongs to all its runs.
struct OneAtATime {
    prepared: Prepared,
    running: Mutex<()>,
    /// The text of the program, for reports.
    source: Option<Arc<Vec<u8>>>,
    /// What kernels get addresses of.
    _used: Vec<Setting>,
}

/// What to run a kernel on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Dimensions.
    pub dimensions: u8,
    /// Work-items.
    pub global: [u32; 3],
    /// Of a group; chosen if there is none.
    pub local: Option<[u32; 3]>,
    /// First ids.
    pub offset: [u32; 3],
}

/// A kernel.
pub struct Kernel {
    /// Whose it is.
    pub program: Ref<Program>,
    /// Name.
    pub name: String,
    /// The same for each device that it was built for, by its place among those of the program.
    pub built: Vec<(usize, visa_jit::Kernel)>,
    /// Flags that memory may not have for an argument: of images that the source only reads, or only writes.
    forbidden: Arc<Vec<(u32, cl_mem_flags)>>,
    arguments: Mutex<Settable>,
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.program.kernels.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Kernel {
    /// A kernel of a program.
    ///
    /// # Errors
    /// `CL_INVALID_PROGRAM_EXECUTABLE`, `CL_INVALID_KERNEL_NAME`, and `CL_OUT_OF_RESOURCES` for one that is refused; the log and
    /// the program's build log say why.
    pub fn new(program: &Ref<Program>, name: &str) -> Cl<Kernel> {
        let mut built = Vec::new();
        let mut known = false;
        for (at, build) in program.builds().into_iter().enumerate() {
            let Some(loaded) = build.loaded else { continue };
            known = true;
            match loaded.kernel(name) {
                Ok(kernel) => built.push((at, kernel.clone())),
                Err(visa_jit::Error::NoKernel { .. }) => return err(CL_INVALID_KERNEL_NAME),
                // The build log says it since the build.
                Err(error) => {
                    report::refused(name, &error.to_string());
                    return err(CL_OUT_OF_RESOURCES);
                }
            }
        }
        ensure(known, CL_INVALID_PROGRAM_EXECUTABLE)?;
        for (at, kernel) in &built {
            // What most launches run; also tells whether it can be compiled.
            let simd = kernel.simd();
            let local = kernel.required_local_size().unwrap_or([simd, 1, 1]);
            let launch = Launch::new(local).local(local).oob(Settings::get().oob);
            kernel.compile_for(&launch).map_err(|error| {
                let why = error.to_string();
                program.refuses(*at, name, &why);
                report::refused(name, &why);
                ClError(CL_OUT_OF_RESOURCES)
            })?;
        }
        let all = built.iter().map(|(_, kernel)| signature(kernel));
        let same = all.collect::<std::collections::BTreeSet<_>>().len() <= 1;
        ensure(same, CL_INVALID_KERNEL_DEFINITION)?;
        program.kernels.fetch_add(1, Ordering::Relaxed);
        let count = built.first().map_or(0, |(_, k)| k.arguments().len());
        Ok(Kernel {
            program: program.clone(),
            name: name.to_owned(),
            forbidden: Arc::new(forbidden(program, name, &built)),
            built,
            arguments: Mutex::new(Settable {
                values: vec![None; count],
                ..Settable::default()
            }),
        })
    }

    /// The same kernel again, with the same arguments.
    pub fn copy(&self) -> Kernel {
        self.program.kernels.fetch_add(1, Ordering::Relaxed);
        let arguments = lock(&self.arguments).clone();
        Kernel {
            program: self.program.clone(),
            name: self.name.clone(),
            built: self.built.clone(),
            forbidden: self.forbidden.clone(),
            arguments: Mutex::new(arguments),
        }
    }

    /// Its arguments.
    pub fn arguments(&self) -> &[Argument] {
        self.built.first().map_or(&[], |(_, k)| k.arguments())
    }

    /// An argument.
    ///
    /// # Errors
    /// `CL_INVALID_ARG_INDEX`.
    pub fn argument(&self, index: u32) -> Cl<&Argument> {
        let found = self.arguments().iter().find(|a| a.index == index);
        found.ok_or(ClError(CL_INVALID_ARG_INDEX))
    }

    /// Flags that memory for an argument may not have.
    pub fn forbidden_flags(&self, index: u32) -> cl_mem_flags {
        let mut all = self.forbidden.iter();
        all.find(|(of, _)| *of == index)
            .map_or(0, |(_, flags)| *flags)
    }

    /// The kernel as it was built for a device.
    ///
    /// # Errors
    /// `CL_INVALID_PROGRAM_EXECUTABLE`.
    pub fn on(&self, device: &Ref<Device>) -> Cl<(usize, &visa_jit::Kernel)> {
        let devices = &self.program.devices;
        let at = devices.iter().position(|d| Ref::ptr_eq(d, device));
        let found = self.built.iter().find(|(place, _)| Some(*place) == at);
        let (at, kernel) = found.ok_or(ClError(CL_INVALID_PROGRAM_EXECUTABLE))?;
        Ok((*at, kernel))
    }

    /// Sets an argument.
    pub fn set(&self, index: u32, setting: Setting) {
        let mut arguments = lock(&self.arguments);
        arguments.version += 1;
        if let Some(place) = arguments.values.get_mut(index as usize) {
            *place = Some(setting);
        }
    }

    /// What a launch on a device does when its turn comes.
    ///
    /// # Errors
    /// `CL_INVALID_KERNEL_ARGS` if one is not set, and what is wrong with the range.
    pub fn work(&self, device: &Ref<Device>, range: Range) -> Cl<Work> {
        let (at, kernel) = self.on(device)?;
        let process = Process::current();
        let mut arguments = lock(&self.arguments);
        let same = arguments.ready.as_ref().filter(|ready| {
            ready.version == arguments.version
                && ready.range == range
                && ready.device == at
                && ready.process == process
        });
        let launch = match same {
            Some(ready) => ready.launch.clone(),
            None => {
                let launch = Arc::new(self.prepare(kernel, range, &arguments.values)?);
                arguments.ready = Some(Ready {
                    version: arguments.version,
                    range,
                    device: at,
                    process,
                    launch: launch.clone(),
                });
                launch
            }
        };
        drop(arguments);
        let name = self.name.clone();
        Ok(Box::new(move || launch.run(&name)))
    }

    fn prepare(
        &self,
        kernel: &visa_jit::Kernel,
        range: Range,
        values: &[Option<Setting>],
    ) -> Cl<OneAtATime> {
        let settings = Settings::get();
        let local = range
            .local
            .unwrap_or_else(|| suggested(kernel, range.global));
        let mut launch = Launch::new(range.global)
            .local(local)
            .offset(range.offset)
            .dimensions(range.dimensions)
            .threads(settings.threads)
            .context(self.program.context.number)
            .oob(settings.oob);
        if let Some(seed) = settings.schedule {
            launch = launch.schedule(seed);
        }
        if let Some(timeout) = settings.timeout {
            launch = launch.deadline(timeout);
        }
        let mut used = Vec::new();
        for argument in self.arguments() {
            let value = values.get(argument.index as usize).cloned().flatten();
            let value = value.ok_or(ClError(CL_INVALID_KERNEL_ARGS))?;
            launch = launch.arg(argument.index, for_engine(argument, &value)?);
            used.push(value);
        }
        let prepared = kernel.prepare(&launch).map_err(|error| {
            report::launch_failed(&self.name, &error.to_string());
            ClError(CL_OUT_OF_RESOURCES)
        })?;
        Ok(OneAtATime {
            prepared,
            running: Mutex::new(()),
            source: self.program.text(),
            _used: used,
        })
    }
}

/// What the source says of a kernel's arguments, which is the same for all devices: number and types.
fn signature(kernel: &visa_jit::Kernel) -> Vec<(u32, String)> {
    let all = kernel.arguments().iter();
    all.map(|a| (a.index, a.type_name.clone())).collect()
}

fn forbidden(
    program: &Program,
    name: &str,
    built: &[(usize, visa_jit::Kernel)],
) -> Vec<(u32, cl_mem_flags)> {
    let Some((at, kernel)) = built.first() else {
        return Vec::new();
    };
    let image = |a: &Argument| matches!(a.kind, ArgKind::Image { .. });
    if !kernel.arguments().iter().any(image) {
        // Few kernels have images: others need not be read again.
        return Vec::new();
    }
    let build = program.builds().into_iter().nth(*at);
    let qualifiers = build.map(|build| build.access(name)).unwrap_or_default();
    let flags = |(index, qualifier): (u32, String)| match qualifier.as_str() {
        "__read_only" => Some((index, u64::from(CL_MEM_WRITE_ONLY))),
        "__write_only" => Some((index, u64::from(CL_MEM_READ_ONLY))),
        _ => None,
    };
    qualifiers.into_iter().filter_map(flags).collect()
}

/// The size of groups that are chosen for the program: those that divide the size in x, with at most 256 work-items.
pub fn suggested(kernel: &visa_jit::Kernel, global: [u32; 3]) -> [u32; 3] {
    if let Some(required) = kernel.required_local_size() {
        return required;
    }
    let x = global[0].max(1);
    let divisor = (1..=x.min(256)).rev().find(|d| x.is_multiple_of(*d));
    let row = divisor.unwrap_or(1);
    // Short rows are joined to larger groups.
    let y = global[1].max(1);
    let most = (256 / row).min(y).max(1);
    let rows = (1..=most).rev().find(|d| y.is_multiple_of(*d));
    [row, rows.unwrap_or(1), 1]
}

/// An argument's value as the engine takes it.
fn for_engine(argument: &Argument, value: &Setting) -> Cl<Arg> {
    Ok(match (argument.kind, value) {
        (ArgKind::Value { size }, Setting::Bytes(bytes)) => {
            let mut bytes = bytes.clone();
            if argument.narrow_bytes() != Some(bytes.len()) {
                bytes.resize(size as usize, 0);
            }
            Arg::Bytes(bytes)
        }
        (_, Setting::Bytes(bytes)) => Arg::Bytes(bytes.clone()),
        (_, Setting::Local(bytes)) => Arg::Local(*bytes),
        (_, Setting::Shared(buffer)) => Arg::Buffer(buffer.clone()),
        (_, Setting::Sampler(sampler)) => Arg::Sampler(sampler.state),
        (_, Setting::Null) => Arg::Null,
        (_, Setting::Mem(mem)) => match &mem.image {
            Some(image) => Arg::Image(mem.buffer.clone(), image.shape),
            None => Arg::Buffer(mem.buffer.clone()),
        },
    })
}

/// The bytes of a value that the program gives wider than the argument is: as Intel's driver does, and programs rely on it, integers
/// lose bytes that are zero. Other sizes stay as they are, and [`check`] refuses them.
pub fn narrowed(argument: &Argument, mut bytes: Vec<u8>) -> Vec<u8> {
    let place = match (argument.kind, argument.type_name.as_str()) {
        (_, "float") => return bytes,
        // Names of types may be the program's own.
        (ArgKind::Value { size }, _) => size as usize,
        _ => return bytes,
    };
    let wider = place == 4 && bytes.len() == 8;
    if wider && bytes.iter().skip(place).all(|byte| *byte == 0) {
        bytes.truncate(place);
    }
    bytes
}

/// What a program may set an argument to: checks the kind, and the size that it names.
///
/// # Errors
/// `CL_INVALID_ARG_SIZE`, `CL_INVALID_ARG_VALUE`, `CL_INVALID_MEM_OBJECT`, `CL_INVALID_SAMPLER`.
pub fn check(argument: &Argument, size: usize, has_value: bool) -> Cl<()> {
    let handle = size == size_of::<usize>();
    match argument.kind {
        ArgKind::Value { size: place } => {
            ensure(has_value, CL_INVALID_ARG_VALUE)?;
            let fits = match argument.narrow_bytes() {
                Some(narrow) => size == narrow,
                None if argument.type_name.is_empty() => size <= place as usize && size != 0,
                None => size == place as usize,
            };
            if !fits {
                let what = argument.described();
                report::log(&format!("{what} takes {place} bytes, not {size}"));
            }
            ensure(fits, CL_INVALID_ARG_SIZE)
        }
        ArgKind::Buffer { .. } => ensure(handle, CL_INVALID_ARG_SIZE),
        ArgKind::Local { .. } => {
            ensure(!has_value, CL_INVALID_ARG_VALUE)?;
            ensure(
                size != 0 && u32::try_from(size).is_ok(),
                CL_INVALID_ARG_SIZE,
            )
        }
        ArgKind::Image { .. } => {
            ensure(has_value, CL_INVALID_MEM_OBJECT)?;
            ensure(handle, CL_INVALID_ARG_SIZE)
        }
        ArgKind::Sampler => {
            ensure(has_value, CL_INVALID_SAMPLER)?;
            ensure(handle, CL_INVALID_ARG_SIZE)
        }
        ArgKind::Unused => ensure(size != 0, CL_INVALID_ARG_SIZE),
    }
}

/// Checks the size of groups.
///
/// # Errors
/// `CL_INVALID_WORK_GROUP_SIZE`.
pub fn check_local(device: &Device, kernel: &visa_jit::Kernel, local: [u32; 3]) -> Cl<()> {
    if let Some(required) = kernel.required_local_size() {
        ensure(local == required, CL_INVALID_WORK_GROUP_SIZE)?;
    }
    let items = local.iter().map(|n| u64::from(*n)).product::<u64>();
    let fits = items != 0 && items <= device.max_group() as u64;
    ensure(fits, CL_INVALID_WORK_GROUP_SIZE)
}

impl OneAtATime {
    fn run(&self, name: &str) -> Cl<()> {
        let running = lock(&self.running);
        let done = self.prepared.run();
        drop(running);
        let done = done.map_err(|error| {
            report::launch_failed(name, &error.to_string());
            ClError(CL_OUT_OF_RESOURCES)
        })?;
        if Settings::get().tier == Ok(true) {
            report::tier(name, &done);
        }
        if !done.printed.is_empty() {
            crate::api::print::standard_output(&done.printed);
        }
        if let Some(problem) = &done.print_problem {
            report::problem(name, problem);
        }
        if done.fault_count != 0 {
            report::faults(name, &done, self.source.as_ref().map(|s| s.as_slice()));
        }
        if let Some(said) = &done.failed_assertions {
            report::launch_failed(name, &String::from_utf8_lossy(said));
        }
        match done.status {
            LaunchStatus::Completed => Ok(()),
            status => {
                report::launch_failed(name, &format!("ended early: {status:?}"));
                err(CL_OUT_OF_RESOURCES)
            }
        }
    }
}
