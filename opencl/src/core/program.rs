//! Programs: sources, what the compiler makes of them, and what the engine does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use visa_jit::container::{
    ContainerError, DataKind, Product, SourceKind, SymbolPlace, UserAttributes, Zebin, infer_device,
};
use visa_runtime::Buffer;

use super::compiler::{self, Request};
use super::context::Context;
use super::device::Device;
use super::engine::engine;
use super::error::{Cl, ClError, ensure, err};
use super::object::{Ref, lock};
use super::options::{absolute, words};
use super::ranges::{Known, Range};
use super::report;
use crate::abi::{
    CL_BUILD_ERROR, CL_BUILD_IN_PROGRESS, CL_BUILD_NONE, CL_BUILD_PROGRAM_FAILURE,
    CL_BUILD_SUCCESS, CL_COMPILE_PROGRAM_FAILURE, CL_COMPILER_NOT_AVAILABLE, CL_INVALID_ARG_VALUE,
    CL_INVALID_BINARY, CL_INVALID_BUILD_OPTIONS, CL_INVALID_COMPILER_OPTIONS,
    CL_INVALID_LINKER_OPTIONS, CL_INVALID_OPERATION, CL_INVALID_PROGRAM_EXECUTABLE,
    CL_LINK_PROGRAM_FAILURE, CL_LINKER_NOT_AVAILABLE, CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT,
    CL_PROGRAM_BINARY_TYPE_EXECUTABLE, CL_PROGRAM_BINARY_TYPE_LIBRARY, CL_PROGRAM_BINARY_TYPE_NONE,
    cl_build_status, cl_int, cl_program_binary_type,
};

/// What a program is made from.
#[derive(Clone)]
pub enum Source {
    /// OpenCL C.
    Text(Arc<Vec<u8>>),
    /// A SPIR-V module.
    Il(Arc<Vec<u8>>),
    /// Zebins, one for each device.
    Binaries,
}

/// What to give the compiler.
#[derive(Clone)]
pub struct Unit {
    source: Source,
    /// Headers; beside SPIR-V, modules to link it with.
    headers: Arc<Vec<(String, Vec<u8>)>>,
    options: String,
}

/// SPIR-V modules of sources that were compiled, to be linked later: one, or those of a library.
#[derive(Clone, Default)]
pub struct Modules {
    /// The modules.
    pub all: Vec<Arc<Vec<u8>>>,
    /// Options that they were compiled with.
    pub options: String,
    /// Whether they are a library.
    pub library: bool,
}

/// What a program is for one device.
#[derive(Clone, Default)]
pub struct Build {
    /// `CL_BUILD_…`.
    pub status: cl_build_status,
    /// Options of the last build.
    pub options: String,
    /// What the compiler said.
    pub log: String,
    /// The zebin, if it was built.
    pub zebin: Option<Arc<Vec<u8>>>,
    /// The same for the engine.
    pub loaded: Option<visa_jit::Program>,
    /// If it was compiled only.
    modules: Option<Modules>,
    /// Whether the program asked for names and types of arguments. The compiler always tells them, for reports.
    pub tells_arguments: bool,
}

/// A program.
pub struct Program {
    /// Whose it is.
    pub context: Ref<Context>,
    /// The devices it is for.
    pub devices: Vec<Ref<Device>>,
    /// What it is made from; none if it was linked.
    pub source: Option<Source>,
    /// Values of specialisation constants, by number.
    pub constants: Mutex<BTreeMap<u32, Vec<u8>>>,
    builds: Mutex<Vec<Build>>,
    /// Whether it is being built.
    busy: AtomicBool,
    /// Kernels of it that there are: it cannot be built again.
    pub kernels: AtomicUsize,
    /// Variables that the program has addresses of.
    shown: Mutex<Vec<(Buffer, Known)>>,
}

/// Asks for names and types of arguments.
const ARGUMENTS: &str = "-cl-kernel-arg-info";
/// What Intel's compiler says before options that it does not know.
const UNKNOWN_OPTIONS: &str = "Unrecognized build options";
/// Options that say what linking makes, and mean nothing to the compiler.
const LINKER_OPTIONS: [&str; 2] = ["-create-library", "-enable-link-options"];
/// How others begin that linking takes: OpenCL's, and those of Intel's compiler for code. It ignores what it does not know.
const KNOWN_TO_LINK: [&str; 7] = ["-cl-", "-ze-", "-igc", "-vc", "-ftranslate", "-g", "-O"];

/// How names begin that compiled code has from drivers.
const DRIVERS: [&str; 3] = ["__", "INTEL_PATCH", "_implicit"];

/// What to do with a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Build,
    Compile,
    Link,
}

impl Stage {
    fn failure(self) -> cl_int {
        match self {
            Stage::Build => CL_BUILD_PROGRAM_FAILURE,
            Stage::Compile => CL_COMPILE_PROGRAM_FAILURE,
            Stage::Link => CL_LINK_PROGRAM_FAILURE,
        }
    }

    /// The code for what the compiler refused, by what it said.
    fn refusal(self, log: &str) -> cl_int {
        let options = log.lines().any(|line| line.starts_with(UNKNOWN_OPTIONS));
        match self {
            _ if !options => self.failure(),
            Stage::Build => CL_INVALID_BUILD_OPTIONS,
            Stage::Compile => CL_INVALID_COMPILER_OPTIONS,
            Stage::Link => CL_INVALID_LINKER_OPTIONS,
        }
    }
}

impl Build {
    /// The zebin, read. Few programs ask for what only it says, so it is not kept.
    fn read(&self) -> Option<Zebin> {
        Zebin::parse(self.zebin.as_deref()?).ok()
    }

    /// Bytes of program-scope variables that kernels may write.
    pub fn global_variable_bytes(&self) -> usize {
        let zebin = self.read();
        let sections = zebin.iter().flat_map(|zebin| &zebin.data);
        let variables = sections.filter(|section| section.kind == DataKind::Global);
        variables.fold(0, |sum, section| {
            usize::saturating_add(sum, usize::try_from(section.size).unwrap_or(usize::MAX))
        })
    }

    /// The memory of a program-scope variable, by its name for the host.
    ///
    /// # Errors
    /// `CL_INVALID_PROGRAM_EXECUTABLE` if it is not built, `CL_INVALID_ARG_VALUE` if it has no such variable.
    pub fn variable(&self, name: &str) -> Cl<Buffer> {
        let (Some(loaded), Some(zebin)) = (&self.loaded, self.read()) else {
            return err(CL_INVALID_PROGRAM_EXECUTABLE);
        };
        let found = loaded.variable(&zebin, name);
        found.ok_or(ClError(CL_INVALID_ARG_VALUE))
    }

    /// What the source of a kernel says of it for the compiler; none if there is no such kernel.
    pub fn attributes(&self, kernel: &str) -> Option<UserAttributes> {
        let kernels = self.read()?.kernels;
        let found = kernels.into_iter().find(|k| k.name == kernel);
        found.map(|k| k.info.user_attributes)
    }

    /// Access qualifiers of a kernel's arguments, as its source has them, by index.
    pub fn access(&self, kernel: &str) -> Vec<(u32, String)> {
        let Some(zebin) = self.read() else {
            return Vec::new();
        };
        let all = zebin.ze_info.args_of(kernel).iter();
        all.map(|info| (info.index, info.access_qualifier.clone()))
            .collect()
    }

    /// Lanes that the source of a kernel asks for; 0 if it leaves that to the compiler.
    pub fn required_sub_group_size(&self, kernel: &str) -> usize {
        let size = self
            .attributes(kernel)
            .and_then(|a| a.intel_reqd_sub_group_size);
        size.unwrap_or(0) as usize
    }

    /// `CL_PROGRAM_BINARY_TYPE_…`.
    pub fn binary_type(&self) -> cl_program_binary_type {
        match (&self.zebin, &self.modules) {
            (_, Some(modules)) if modules.library => CL_PROGRAM_BINARY_TYPE_LIBRARY,
            (_, Some(_)) => CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT,
            (Some(_), None) => CL_PROGRAM_BINARY_TYPE_EXECUTABLE,
            (None, None) => CL_PROGRAM_BINARY_TYPE_NONE,
        }
    }
}

impl Build {
    fn of_modules(modules: Modules, options: &str) -> Build {
        Build {
            status: CL_BUILD_SUCCESS as cl_build_status,
            options: options.to_owned(),
            modules: Some(modules),
            ..Build::default()
        }
    }

    /// Takes what the program has for a device: what was compiled before, or a zebin. One without vISA text, or for another device,
    /// is compiled again from the SPIR-V that compilers leave in it, as Intel's driver does.
    ///
    /// # Errors
    /// What is wrong with it.
    fn take(&mut self, device: &Device, binary: &[u8]) -> Result<(), String> {
        if let Some(modules) = super::modules::read(binary) {
            self.modules = Some(modules);
            return Ok(());
        }
        let why = match Zebin::parse(binary) {
            Ok(zebin) => {
                let told = infer_device(&zebin);
                match told.device {
                    Some(class) if class != device.class => {
                        let (of, reason, name) = (class, told.reason, &device.name);
                        format!("the zebin is for {of} ({reason}), not for {name}")
                    }
                    _ => {
                        self.zebin = Some(Arc::new(binary.to_vec()));
                        return Ok(());
                    }
                }
            }
            Err(error) => error.to_string(),
        };
        let module = Zebin::spirv(binary).ok_or_else(|| {
            format!(
                "{why}; nor is there SPIR-V in it to compile for {}",
                device.name
            )
        })?;
        report::log(&format!("{why}: the SPIR-V in it is compiled instead"));
        self.modules = Some(Modules::of(Arc::new(module), ""));
        Ok(())
    }

    /// What programs get to keep: a zebin, or what was compiled only.
    pub fn binary(&self) -> Vec<u8> {
        match (&self.modules, &self.zebin) {
            (Some(modules), _) => super::modules::write(modules),
            (None, Some(zebin)) => zebin.to_vec(),
            (None, None) => Vec::new(),
        }
    }
}

impl Program {
    /// A program that is not built.
    pub fn new(
        context: Ref<Context>,
        devices: Vec<Ref<Device>>,
        source: Option<Source>,
    ) -> Program {
        let none = Build {
            status: CL_BUILD_NONE,
            ..Build::default()
        };
        Program {
            context,
            builds: Mutex::new(vec![none; devices.len()]),
            devices,
            source,
            constants: Mutex::default(),
            busy: AtomicBool::new(false),
            kernels: AtomicUsize::new(0),
            shown: Mutex::default(),
        }
    }

    /// The source, if it is OpenCL C.
    pub fn text(&self) -> Option<Arc<Vec<u8>>> {
        match &self.source {
            Some(Source::Text(text)) => Some(text.clone()),
            _ => None,
        }
    }

    /// A program of zebins, one for each device. They still have to be built.
    ///
    /// # Errors
    /// `CL_INVALID_BINARY` if one cannot be read or is for another device; which, is in the list, and the log says why.
    pub fn of_binaries(
        context: Ref<Context>,
        devices: Vec<Ref<Device>>,
        binaries: &[Vec<u8>],
    ) -> (Program, Vec<Cl<()>>) {
        let program = Program::new(context, devices, Some(Source::Binaries));
        let mut builds = lock(&program.builds);
        let given = program.devices.iter().zip(binaries);
        let read = |(build, (device, binary)): (&mut Build, (&Ref<Device>, &Vec<u8>))| {
            let taken = build.take(device, binary);
            taken.map_err(|why| {
                report::problem("clCreateProgramWithBinary", &why);
                ClError(CL_INVALID_BINARY)
            })
        };
        let statuses = builds.iter_mut().zip(given).map(read).collect();
        drop(builds);
        (program, statuses)
    }

    /// What it is for a device.
    ///
    /// # Errors
    /// `CL_INVALID_DEVICE`.
    pub fn build_of(&self, device: &Ref<Device>) -> Cl<Build> {
        let at = self.devices.iter().position(|d| Ref::ptr_eq(d, device));
        let at = at.ok_or(ClError(crate::abi::CL_INVALID_DEVICE))?;
        lock(&self.builds)
            .get(at)
            .cloned()
            .ok_or(ClError(crate::abi::CL_INVALID_DEVICE))
    }

    /// A variable whose address the program gets: commands may use it as long as the program is there.
    ///
    /// # Errors
    /// As [`Program::build_of`] and [`Build::variable`].
    pub fn show(&self, device: &Ref<Device>, name: &str) -> Cl<Buffer> {
        let found = self.build_of(device)?.variable(name)?;
        let mut shown = lock(&self.shown);
        let known = shown.iter().any(|(b, _)| b.address() == found.address());
        if !known {
            let range = Range {
                start: found.address(),
                len: found.len(),
                made_by: "clGetDeviceGlobalVariablePointerINTEL",
            };
            shown.push((found.clone(), Known::new(range)));
        }
        Ok(found)
    }

    /// Has the build log for a device, by its place, say why a kernel is not taken: once, however often the program asks for it.
    pub fn refuses(&self, at: usize, kernel: &str, why: &str) {
        let line = refusal(kernel, why);
        if let Some(build) = lock(&self.builds).get_mut(at)
            && !build.log.contains(&line)
        {
            build.log.push_str(&line);
        }
    }

    /// What it is for each device.
    pub fn builds(&self) -> Vec<Build> {
        lock(&self.builds).clone()
    }

    /// Names of its kernels, with semicolons between.
    ///
    /// # Errors
    /// `CL_INVALID_PROGRAM_EXECUTABLE` if it is not built.
    pub fn kernel_names(&self) -> Cl<Vec<String>> {
        let builds = lock(&self.builds);
        let loaded = builds.iter().find_map(|build| build.loaded.as_ref());
        let loaded = loaded.ok_or(ClError(CL_INVALID_PROGRAM_EXECUTABLE))?;
        let good = loaded.kernels().iter().map(|k| k.name().to_owned());
        let broken = loaded.broken().iter().map(|(name, _)| name.clone());
        Ok(good.chain(broken).collect())
    }

    /// Begins to compile and load it for some of its devices.
    ///
    /// # Errors
    /// `CL_INVALID_OPERATION` for programs that were linked, that have kernels, or that are being built.
    pub fn build(this: &Ref<Program>, devices: &[Ref<Device>], options: &str) -> Cl<Begun> {
        let unit = this.specialised().map(|source| Unit {
            source,
            headers: Arc::default(),
            options: String::new(),
        });
        let unit = unit.ok_or(ClError(CL_INVALID_OPERATION))?;
        Program::begin(this, devices, options, Stage::Build, &unit)
    }

    /// The source, with the values of specialisation constants.
    fn specialised(&self) -> Option<Source> {
        match &self.source {
            Some(Source::Il(il)) => {
                let il = super::spirv::specialised(il, &lock(&self.constants));
                Some(Source::Il(Arc::new(il)))
            }
            other => other.clone(),
        }
    }

    /// Begins to compile it, to be linked later.
    ///
    /// # Errors
    /// As [`Program::build`], and `CL_INVALID_OPERATION` for programs without source.
    pub fn compile(
        this: &Ref<Program>,
        devices: &[Ref<Device>],
        options: &str,
        headers: Vec<(String, Vec<u8>)>,
    ) -> Cl<Begun> {
        let source = match this.specialised() {
            Some(source @ (Source::Text(_) | Source::Il(_))) => source,
            _ => return err(CL_INVALID_OPERATION),
        };
        let unit = Unit {
            source,
            headers: Arc::new(headers),
            options: options.to_owned(),
        };
        Program::begin(this, devices, "", Stage::Compile, &unit)
    }

    /// Begins to make a program, or with `-create-library` a library, of what was compiled before.
    ///
    /// # Errors
    /// `CL_INVALID_OPERATION` for programs that were not compiled, `CL_INVALID_LINKER_OPTIONS`.
    pub fn link(
        this: &Ref<Program>,
        devices: &[Ref<Device>],
        options: &str,
        inputs: &[Ref<Program>],
    ) -> Cl<Begun> {
        let words = words(options);
        let library = words.contains(&"-create-library");
        let enabled = words.contains(&"-enable-link-options");
        let known = |word: &&str| {
            LINKER_OPTIONS.contains(word)
                || KNOWN_TO_LINK.iter().any(|start| word.starts_with(start))
        };
        let mut flags = words.iter().filter(|word| word.starts_with('-'));
        ensure(
            flags.all(known) && (library || !enabled),
            CL_INVALID_LINKER_OPTIONS,
        )?;
        let mut jobs = Vec::new();
        for at in this.places(devices) {
            let device = this.devices[at].clone();
            let mut together = Modules {
                library,
                ..Modules::default()
            };
            for input in inputs {
                let modules = input.build_of(&device).ok().and_then(|b| b.modules);
                let modules = modules.ok_or(ClError(CL_INVALID_OPERATION))?;
                together.all.extend(modules.all);
                if together.options.is_empty() {
                    together.options = modules.options;
                }
            }
            let (old, unit) = if library {
                (Build::of_modules(together, options), None)
            } else {
                let unit = together.unit().ok_or(ClError(CL_INVALID_OPERATION))?;
                (Build::default(), Some(unit))
            };
            jobs.push(Job { at, old, unit });
        }
        Begun::new(this, jobs, options, Stage::Link)
    }

    /// Places of some of its devices.
    fn places(&self, devices: &[Ref<Device>]) -> Vec<usize> {
        let all = self.devices.iter().enumerate();
        let some = all.filter(|(_, own)| devices.iter().any(|d| Ref::ptr_eq(d, own)));
        some.map(|(at, _)| at).collect()
    }

    /// Begins a build.
    ///
    /// # Errors
    /// `CL_INVALID_OPERATION` while it has kernels, and while it is being built.
    fn begin(
        this: &Ref<Program>,
        devices: &[Ref<Device>],
        options: &str,
        stage: Stage,
        unit: &Unit,
    ) -> Cl<Begun> {
        ensure(
            this.kernels.load(Ordering::Relaxed) == 0,
            CL_INVALID_OPERATION,
        )?;
        let job = |at: usize| Job {
            at,
            old: Build::default(),
            unit: Some(unit.clone()),
        };
        let jobs = this.places(devices).into_iter().map(job).collect();
        Begun::new(this, jobs, options, stage)
    }
}

/// A device's part of a build.
struct Job {
    /// The device, by its place.
    at: usize,
    /// What there was before; when programs are linked, what comes out if there is nothing to compile.
    old: Build,
    unit: Option<Unit>,
}

/// A build that has begun. While it is there, no other of the program begins. One that is dropped has failed.
pub struct Begun {
    program: Ref<Program>,
    jobs: Vec<Job>,
    options: String,
    stage: Stage,
}

impl Begun {
    fn new(program: &Ref<Program>, mut jobs: Vec<Job>, options: &str, stage: Stage) -> Cl<Begun> {
        let busy = program.busy.swap(true, Ordering::Acquire);
        ensure(!busy, CL_INVALID_OPERATION)?;
        let mut builds = lock(&program.builds);
        for job in &mut jobs {
            let Some(build) = builds.get_mut(job.at) else {
                continue;
            };
            let begun = Build {
                status: CL_BUILD_IN_PROGRESS,
                ..Build::default()
            };
            let before = std::mem::replace(build, begun);
            if stage != Stage::Link {
                job.old = before;
            }
        }
        drop(builds);
        Ok(Begun {
            program: program.clone(),
            jobs,
            options: options.to_owned(),
            stage,
        })
    }

    /// Carries it out.
    ///
    /// # Errors
    /// What the stage gives for failures and for wrong options, with a log in the program; `CL_COMPILER_NOT_AVAILABLE` and
    /// `CL_LINKER_NOT_AVAILABLE`, which are one.
    pub fn finish(mut self) -> Cl<()> {
        let mut result = Ok(());
        for job in std::mem::take(&mut self.jobs) {
            let Some(device) = self.program.devices.get(job.at) else {
                continue;
            };
            let (build, done) = match &job.unit {
                Some(unit) => one(device, &job.old, &self.options, self.stage, unit),
                None => (job.old, Ok(())),
            };
            if let Some(place) = lock(&self.program.builds).get_mut(job.at) {
                *place = build;
            }
            result = result.and(done);
        }
        result
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        for build in lock(&self.program.builds).iter_mut() {
            if build.status == CL_BUILD_IN_PROGRESS {
                build.status = CL_BUILD_ERROR;
            }
        }
        self.program.busy.store(false, Ordering::Release);
    }
}

/// One device's part of a build.
fn one(device: &Device, old: &Build, options: &str, stage: Stage, unit: &Unit) -> (Build, Cl<()>) {
    let mut build = Build {
        status: CL_BUILD_ERROR,
        options: match stage {
            Stage::Compile => unit.options.clone(),
            Stage::Build | Stage::Link => options.to_owned(),
        },
        ..Build::default()
    };
    let all = [unit.options.as_str(), options].join(" ");
    build.tells_arguments = match (&unit.source, stage) {
        (Source::Binaries, _) | (Source::Il(_), Stage::Build) => true,
        _ => words(&all).contains(&ARGUMENTS),
    };
    let (source, kind) = match &unit.source {
        // An empty source is a program without kernels; the compiler wants contents.
        Source::Text(text) if text.is_empty() => (&Arc::new(vec![b'\n']), SourceKind::OpenClC),
        Source::Text(text) => (text, SourceKind::OpenClC),
        Source::Il(il) if stage == Stage::Compile => {
            let modules = Modules::of(il.clone(), &unit.options);
            return (Build::of_modules(modules, &build.options), Ok(()));
        }
        Source::Il(il) => (il, SourceKind::SpirV),
        Source::Binaries => {
            if let Some(unit) = old.modules.as_ref().and_then(Modules::unit) {
                return one(device, &Build::default(), options, stage, &unit);
            }
            let Some(zebin) = old.zebin.clone() else {
                return (build, err(CL_INVALID_BINARY));
            };
            let done = load(device, &mut build, zebin, stage);
            return (build, done);
        }
    };
    let options = effective(device, &all, kind);
    let request = Request {
        source,
        kind,
        headers: &unit.headers,
        options: &options,
        device: device.name,
        product: if stage == Stage::Compile {
            Product::SpirV
        } else {
            Product::Zebin
        },
    };
    let made = match compiler::compile_for_reports(&request) {
        Ok(made) => made,
        Err(error) => {
            let missing = matches!(
                error,
                ContainerError::OclocMissing { .. } | ContainerError::Worker(_)
            );
            build.log = match error {
                ContainerError::CompileFailed { log, .. } => log,
                other => other.to_string(),
            };
            if let Some(version) = too_new(&unit.source) {
                build.log.push_str(&version);
            }
            report::log(&format!("build failed: {}", build.log));
            let code = match stage {
                _ if !missing => stage.refusal(&build.log),
                Stage::Build | Stage::Compile => CL_COMPILER_NOT_AVAILABLE,
                Stage::Link => CL_LINKER_NOT_AVAILABLE,
            };
            return (build, err(code));
        }
    };
    build.log = made.log;
    if stage == Stage::Compile {
        let log = std::mem::take(&mut build.log);
        let modules = Modules::of(Arc::new(made.zebin), &unit.options);
        let build = Build {
            log,
            ..Build::of_modules(modules, &build.options)
        };
        return (build, Ok(()));
    }
    let missing = unresolved(&made.zebin);
    if !missing.is_empty() {
        for name in missing {
            let line = format!("error: undefined reference to `{name}`\n");
            build.log.push_str(&line);
        }
        report::log(&format!("build failed: {}", build.log));
        return (build, err(stage.failure()));
    }
    let done = load(device, &mut build, Arc::new(made.zebin), stage);
    (build, done)
}

/// What to say of a module whose version the compiler does not take.
fn too_new(source: &Source) -> Option<String> {
    let Source::Il(il) = source else {
        return None;
    };
    let (major, minor) = super::spirv::version_of(il)?;
    let last = compiler::last_spirv_minor();
    let known = major == 1 && minor <= last;
    (!known).then(|| {
        format!("error: the module is SPIR-V {major}.{minor}; this compiler takes SPIR-V 1.0 to 1.{last}\n")
    })
}

/// Functions and variables that a zebin uses and does not have. Names that drivers have to know begin with two underscores, which
/// the sources of programs may not.
fn unresolved(zebin: &[u8]) -> Vec<String> {
    let zebin = Zebin::parse(zebin);
    let symbols = zebin.into_iter().flat_map(|zebin| zebin.symbols);
    let outside = symbols.filter(|symbol| symbol.place == SymbolPlace::Undefined);
    let names = outside.map(|symbol| symbol.name);
    let known = |name: &str| name.is_empty() || DRIVERS.iter().any(|start| name.starts_with(start));
    names.filter(|name| !known(name)).collect()
}

impl Modules {
    fn of(module: Arc<Vec<u8>>, options: &str) -> Modules {
        Modules {
            all: vec![module],
            options: for_code(options),
            library: false,
        }
    }

    /// All that there are, as the compiler is given them; none if there are none.
    fn unit(&self) -> Option<Unit> {
        let (first, others) = self.all.split_first()?;
        let others = others.iter().enumerate();
        let named = others.map(|(i, module)| (format!("{i}"), module.to_vec()));
        Some(Unit {
            source: Source::Il(first.clone()),
            headers: Arc::new(named.collect()),
            options: self.options.clone(),
        })
    }
}

/// Those of the options of a source that matter after it was read.
fn for_code(options: &str) -> String {
    let words = words(options).into_iter();
    let words = words.filter(|w| w.starts_with("-cl-") && !w.starts_with("-cl-std"));
    words.collect::<Vec<_>>().join(" ")
}

/// Options as the compiler is given them: with names and types of arguments, macros for extensions that it does not know the
/// device has.
fn effective(device: &Device, options: &str, kind: SourceKind) -> String {
    // The compiler runs elsewhere.
    let here = std::env::current_dir().unwrap_or_default();
    let mut words = absolute(options, &here);
    words.retain(|word| !LINKER_OPTIONS.contains(&word.as_str()));
    if kind == SourceKind::OpenClC {
        words.push(ARGUMENTS.to_owned());
        if words.iter().any(|word| word == "-cl-std=CL3.0") {
            let features = device.float_atomic_features().into_iter();
            words.extend(features.map(|name| format!("-D{name}=1")));
        }
    }
    words.join(" ")
}

/// A line of a build log.
fn refusal(kernel: &str, why: &str) -> String {
    format!("kernel `{kernel}` is refused: {why}\n")
}

/// Hands a zebin to the engine.
fn load(device: &Device, build: &mut Build, zebin: Arc<Vec<u8>>, stage: Stage) -> Cl<()> {
    match engine()?.program_from_zebin(&zebin, Some(device.class)) {
        Ok(loaded) => {
            for (name, error) in loaded.broken() {
                build.log.push_str(&refusal(name, &error.to_string()));
                report::refused(name, &error.to_string());
            }
            build.status = CL_BUILD_SUCCESS as cl_build_status;
            build.loaded = Some(loaded);
            build.zebin = Some(zebin);
            Ok(())
        }
        Err(error) => {
            let what = error.to_string();
            build.log.push_str(&what);
            report::refused("", &what);
            err(stage.failure())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_the_compiler_does_not_know_have_codes() {
        let options = "-cl-std OpenCLC version greater than OpenCL (API) version\nUnrecognized build options: -cl-std=CL9.9\n";
        let source = "1:1:35: error: Unrecognized build options\n";
        assert_eq!(Stage::Build.refusal(options), CL_INVALID_BUILD_OPTIONS);
        assert_eq!(Stage::Compile.refusal(options), CL_INVALID_COMPILER_OPTIONS);
        assert_eq!(Stage::Link.refusal(options), CL_INVALID_LINKER_OPTIONS);
        assert_eq!(Stage::Build.refusal(source), CL_BUILD_PROGRAM_FAILURE);
        assert_eq!(Stage::Compile.refusal(source), CL_COMPILE_PROGRAM_FAILURE);
        assert_eq!(Stage::Link.refusal(source), CL_LINK_PROGRAM_FAILURE);
    }
}
