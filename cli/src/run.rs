//! `run`: binds the arguments of one kernel, runs it, and hands the results out.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use visa_runtime::{Buffer, DeviceMemory, ImageShape, LaunchStatus};

use super::argument::{BUFFER_FORMS, Passed, described, example, name_and_nature, passed};
use super::backend::BackendArgs;
use super::cache::OptionalCache;
use super::colour::Colours;
use super::content::{Content, is_npy};
use super::exit::{Exit, Failure, tell};
use super::findings::{Finding, FindingArgs, on_disk};
use super::image::{check_png, is_png, write_png};
use super::images::{Choice, ReadArgs};
use super::load::load;
use super::report::Summary;
use super::spec::{ArgSpec, BufferId, Extent, NamedSpec, Print, Save, Seconds, Spec, SurfaceSpec};
use super::suppress::SuppressArgs;
use super::tools::ToolArgs;
use super::values::{ElementType, Scalar};
use super::{list, npy};
use visa_jit::FaultRecord;
use visa_jit::backend::OobPolicy;
use visa_jit::engine::{Arg, ArgKind, Engine, EngineOptions, Error, Kernel, Launch, Program};
use visa_jit::isa::{DeviceName, Platform};
use visa_jit::lines::SourceLine;

/// Bytes of an `--input`; all registers of a thread together have fewer.
const MAX_INPUT_BYTES: u64 = 64 << 10;
/// Arguments of `run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// A zebin, a .cl or .spv source, .visaasm text, an ocloc archive, or a SYCL program or library
    file: PathBuf,
    /// The kernel to run; may be left out if the file has one
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    #[command(flatten)]
    read: ReadArgs,
    /// Work-items in each dimension
    #[arg(long, value_name = "X[,Y[,Z]]")]
    global: Extent,
    /// Work-items of a group; chosen to fit if left out
    #[arg(long, value_name = "X[,Y[,Z]]")]
    local: Option<Extent>,
    /// An argument; without INDEX, the next one that is not given
    #[arg(long = "arg", value_name = "[INDEX=]SPEC", allow_hyphen_values = true)]
    args: Vec<ArgSpec>,
    /// Write a buffer or image to a file after the run: raw bytes, or .npy or .png by the path's ending. INDEX is that of the
    /// argument or surface, or the name of an --input that points to a buffer
    #[arg(long, value_name = "INDEX=PATH")]
    save: Vec<Save>,
    /// Print the first COUNT elements of a buffer after the run; INDEX is that of --save
    #[arg(long, value_name = "INDEX=TYPE:COUNT")]
    print: Vec<Print>,
    #[command(flatten)]
    backend: BackendArgs,
    #[command(flatten)]
    cache: OptionalCache,
    #[command(flatten)]
    tools: ToolArgs,
    /// OS threads to spread work-groups over; one for each processor if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Run work-groups, and the threads of each between barriers, in a random order that SEED decides, on one OS thread. A result that
    /// depends on SEED depends on an order that no GPU promises
    #[arg(long, value_name = "SEED")]
    schedule: Option<u64>,
    /// What an access out of bounds does: read zero and skip the write, stop, or go on and report
    #[arg(long, value_enum, default_value = "zero")]
    oob: Oob,
    /// Stop the kernel after this time and exit with 5; fractions such as 0.5 are allowed
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<Seconds>,
    /// Run the kernel N times, each time from the same buffer contents; only what the last run prints with printf is shown
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    /// Print one JSON object on standard output; --print then goes to standard error
    #[arg(long)]
    json: bool,
    /// The device to compile sources for, or what a zebin was compiled for
    #[arg(
        long,
        value_name = "skl|tgllp|acm-g10|pvc|bmg|ptl-h|…",
        visible_alias = "platform"
    )]
    device: Option<DeviceName>,
    /// .visaasm only: the contents of a surface
    #[arg(long = "surface", value_name = "BTI=SPEC")]
    surfaces: Vec<SurfaceSpec>,
    /// .visaasm only: a sampler
    #[arg(long = "sampler", value_name = "INDEX=SPEC")]
    samplers: Vec<SurfaceSpec>,
    /// .visaasm only: the bytes of an .input variable; with `buffer:` before SPEC, the 64-bit address of a buffer that holds them
    #[arg(long = "input", value_name = "NAME=[buffer:]SPEC")]
    inputs: Vec<NamedSpec>,
}

/// `--oob`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Oob {
    /// Read zero, skip the write
    Zero,
    /// Stop
    Trap,
    /// Go on, and report
    Report,
}

impl From<Oob> for OobPolicy {
    fn from(oob: Oob) -> OobPolicy {
        match oob {
            Oob::Zero => OobPolicy::ReadZeroSkipWrite,
            Oob::Trap => OobPolicy::Trap,
            Oob::Report => OobPolicy::Report,
        }
    }
}

/// Arguments of `run` itself, beside those that say what to launch.
#[derive(Args, Debug)]
pub struct RunOneArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Run Cranelift's code at once, and LLVM's as soon as a thread in the background has compiled it: with --repeat, or in the next run,
    /// which finds it in the cache. In builds with the cargo feature `llvm`
    #[arg(long)]
    tier: bool,
    #[command(flatten)]
    suppress: SuppressArgs,
    #[command(flatten)]
    findings: FindingArgs,
}

/// How long `--tier` keeps the command for LLVM's code, for which the next run looks in the cache. Results are out before.
const TIER_WAIT: Duration = Duration::from_millis(500);

/// Runs.
pub fn run(all: &RunOneArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let args = &all.run;
    let mut options = args.engine_options()?;
    options.tier = all.tier;
    options.disk = args.cache.find();
    options.suppress = all.suppress.rules()?;
    options.race_same_value = all.suppress.race_same_value;
    let caches = options.disk.is_some();
    args.tools.apply(&mut options)?;
    let file = load(&args.file, args.choice())?;
    let engine = Engine::with_options(options)?;
    let program = file.program(&engine)?;
    let kernel = pick(&file.name, &program, args.kernel.as_deref())?;
    for warning in kernel.warnings() {
        tell(&format!("warning: {warning}"));
    }
    let mut binding = Binding::new(engine.memory());
    let launch = launch(args, kernel, &mut binding)?;
    binding.check_results(args)?;
    let summary = execute(all, kernel, program.platform(), &launch, &binding)?;
    let faulted = summary.last.status == LaunchStatus::Faulted;

    let mut printed = String::new();
    for print in &args.print {
        printed.push_str(&binding.shown(print)?);
    }
    for save in &args.save {
        binding.save(save)?;
    }
    let about = format!("run {}", args.file.display());
    let found = found_in(&args.file, summary.findings());
    all.findings.write(&found, &about)?;
    if !args.json {
        out.write_all(&summary.last.printed)
            .map_err(Failure::output)?;
        out.write_all(printed.as_bytes()).map_err(Failure::output)?;
        out.flush().map_err(Failure::output)?;
        tell(&summary.human());
    } else {
        if !printed.is_empty() {
            tell(&printed);
        }
        let json = summary.json().map_err(|error| Failure {
            exit: Exit::Internal,
            message: error.to_string(),
        })?;
        writeln!(out, "{json}").map_err(Failure::output)?;
    }
    if summary.last.status == LaunchStatus::DeadlineExceeded {
        return Err(Failure {
            exit: Exit::Stopped,
            message: format!("kernel `{}` was stopped by --timeout", kernel.name()),
        });
    }
    if let Some(problem) = &summary.last.print_problem {
        tell(&format!("warning: printf: {problem}"));
    }
    if let Some(text) = &summary.last.failed_assertions {
        tell(&summary.assertions(text));
    }
    let faults = summary.faults(Colours::of_errors());
    if !faults.is_empty() {
        tell(&faults);
    }
    if caches && all.tier {
        out.flush().map_err(Failure::output)?;
        engine.wait_for_tier(TIER_WAIT);
    }
    let found = !args.backend.check().is_empty() && summary.last.fault_count != 0;
    Ok(match faulted || found {
        true => Exit::Faulted,
        false => Exit::Fine,
    })
}

/// The launch that the arguments ask for, with its buffers bound.
pub fn launch(args: &RunArgs, kernel: &Kernel, binding: &mut Binding) -> Result<Launch, Failure> {
    let launch = Launch::new(args.global.0)
        .dimensions(args.global.1)
        .oob(args.oob.into());
    let launch = match args.timeout {
        Some(Seconds(limit)) => launch.deadline(limit),
        None => launch,
    };
    let launch = match args.threads {
        // Lines of several threads would mix.
        _ if args.backend.traces() => launch.threads(1),
        Some(threads) => launch.threads(usize::from(threads)),
        None => launch.threads_of_machine(),
    };
    let launch = match args.schedule {
        Some(seed) => launch.schedule(seed),
        None => launch,
    };
    let launch = match args.local {
        Some(local) => launch.local(local.0),
        None => launch,
    };
    if kernel.takes_surfaces() {
        binding.text(args, launch)
    } else {
        binding.arguments(args, kernel, launch)
    }
}

impl RunArgs {
    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// How an image of the file is chosen.
    pub fn choice(&self) -> Choice<'_> {
        Choice {
            image: self.read.image.as_deref(),
            kernel: self.kernel.as_deref(),
            device: self.device,
            versions: self.read.versions(),
            lines: !self.backend.check().is_empty() || matches!(self.oob, Oob::Report),
        }
    }

    /// `--kernel`.
    pub fn kernel(&self) -> Option<&str> {
        self.kernel.as_deref()
    }

    /// `--repeat`.
    pub fn rounds(&self) -> Option<u32> {
        self.repeat
    }

    /// The launch's shape, for people.
    pub fn shape(&self) -> String {
        let text = |extent: &Extent| extent.0.map(|n| n.to_string()).join(" × ");
        let groups = self.local.as_ref().map_or_else(String::new, |local| {
            format!(" in groups of {}", text(local))
        });
        format!("{} work-items{groups}", text(&self.global))
    }

    /// `--json`.
    pub fn json(&self) -> bool {
        self.json
    }

    /// An option that shows results, if one is given.
    pub fn shows_results(&self) -> Option<&'static str> {
        let save = (!self.save.is_empty()).then_some("--save");
        save.or((!self.print.is_empty()).then_some("--print"))
    }

    /// An option for profilers and debuggers, if one is given.
    pub fn tools(&self) -> Option<&'static str> {
        self.tools.given()
    }

    /// How the engine is to be made, without a disk cache.
    pub fn engine_options(&self) -> Result<EngineOptions, Failure> {
        Ok(EngineOptions {
            versions: self.read.versions(),
            ..self.backend.options()?
        })
    }
}

/// The kernel asked for, or the only one.
pub fn pick<'a>(
    file: &str,
    program: &'a Program,
    name: Option<&str>,
) -> Result<&'a Kernel, Failure> {
    let kernels = program.kernels();
    let names = || kernels.iter().map(Kernel::name).collect::<Vec<_>>();
    match (name, kernels) {
        (Some(name), _) => program.kernel(name).map_err(|error| match error {
            Error::NoKernel { .. } => Failure::usage(list::no_kernel(file, name, &names())),
            error => error.into(),
        }),
        (None, [only]) => Ok(only),
        (None, []) => Err(Failure::usage(format!("{file} has no kernels"))),
        (None, _) => Err(Failure::usage(format!(
            "{file} has {} kernels; choose one with --kernel: {}",
            kernels.len(),
            names().join(", ")
        ))),
    }
}

/// Runs as often as asked for, or until a fault stops it.
/// Findings, which name a source that was compiled here as the user did.
fn found_in(file: &Path, mut findings: Vec<Finding>) -> Vec<Finding> {
    let compiled = |source: &&mut SourceLine| {
        let name = Path::new(&source.file);
        name.parent() == Some(Path::new("")) && file.file_name() == name.file_name()
    };
    let text = || on_disk(&file.canonicalize().ok()?);
    for finding in &mut findings {
        if let Some(source) = finding.source.as_mut().filter(compiled) {
            source.file = file.display().to_string();
            finding.source_text = text();
        }
    }
    findings
}

/// Launches the kernel as often as it was asked for.
fn execute<'a>(
    RunOneArgs {
        run: args, tier, ..
    }: &RunOneArgs,
    kernel: &'a Kernel,
    device: Platform,
    launch: &Launch,
    binding: &Binding,
) -> Result<Summary<'a>, Failure> {
    let prepared = kernel.prepare(launch)?;
    let mut last = prepared.run()?;
    let (mut runs, mut backends) = (vec![last.run], vec![last.backend]);
    for _ in 1..args.repeat.unwrap_or(1) {
        if last.status != LaunchStatus::Completed {
            break;
        }
        binding.refill()?;
        last = prepared.run()?;
        runs.push(last.run);
        backends.push(last.backend);
    }
    let faults = last.faults.into_iter();
    last.faults = faults.map(FaultRecord::without_compiler_folder).collect();
    Ok(Summary {
        kernel: kernel.name(),
        device,
        simd: kernel.simd(),
        last,
        runs,
        backends: tier.then_some(backends),
    })
}

/// A buffer that results can be taken from.
struct Bound {
    id: BufferId,
    buffer: Buffer,
    content: Content,
    /// Element type for `.npy`.
    ty: ElementType,
    /// For `.png`.
    image: Option<ImageShape>,
}

/// The buffers of a launch, by argument or binding-table index.
pub struct Binding {
    memory: DeviceMemory,
    /// "arg" or "surface".
    noun: &'static str,
    bound: Vec<Bound>,
}

impl Binding {
    /// Without buffers.
    pub fn new(memory: &DeviceMemory) -> Binding {
        Binding {
            memory: memory.clone(),
            noun: "arg",
            bound: Vec::new(),
        }
    }

    /// Binds surfaces and inputs of vISA text.
    fn text(&mut self, args: &RunArgs, mut launch: Launch) -> Result<Launch, Failure> {
        if !args.args.is_empty() {
            return Err(Failure::usage(
                "a kernel from vISA text has no arguments: use --surface BTI=SPEC and --input NAME=SPEC",
            ));
        }
        self.noun = "surface";
        let mut seen = BTreeSet::new();
        for SurfaceSpec { bti, spec } in &args.surfaces {
            if !seen.insert(*bti) {
                return Err(Failure::usage(format!("--surface {bti} is given twice")));
            }
            let Some(content) = Content::of(spec)? else {
                return Err(Failure::usage(format!(
                    "--surface {bti}={spec}: {} cannot be a surface; write {}",
                    spec.noun(),
                    BUFFER_FORMS.trim_end_matches(" or null"),
                )));
            };
            let buffer = self.bind(BufferId::Index(*bti), content, None)?;
            if let Spec::Image(image) = spec {
                self.is_image(image.shape);
                launch = launch.image(*bti, buffer, image.shape);
            } else {
                launch = launch.surface(*bti, buffer);
            }
        }
        let mut seen = BTreeSet::new();
        for SurfaceSpec { bti: index, spec } in &args.samplers {
            if !seen.insert(index) {
                return Err(Failure::usage(format!("--sampler {index} is given twice")));
            }
            let Spec::Sampler(state) = spec else {
                return Err(Failure::usage(format!(
                    "--sampler {index}={spec}: {} is no sampler; write sampler:ADDRESS",
                    spec.noun()
                )));
            };
            launch = launch.sampler(*index, *state);
        }
        let mut seen = BTreeSet::new();
        for given in &args.inputs {
            let name = &given.name;
            if !seen.insert(name) {
                return Err(Failure::usage(format!("--input {name} is given twice")));
            }
            let bytes = match given.pointer {
                true => self.pointee(name, &given.spec)?,
                false => input(name, &given.spec)?,
            };
            launch = launch.input(name.clone(), bytes);
        }
        Ok(launch)
    }

    /// Makes the buffer that an input points to; the bytes of its address.
    fn pointee(&mut self, name: &str, spec: &Spec) -> Result<Vec<u8>, Failure> {
        let Some(content) = Content::of(spec)? else {
            return Err(Failure::usage(format!(
                "--input {name}=buffer:{spec}: {} cannot be a buffer; write {}",
                spec.noun(),
                BUFFER_FORMS.trim_end_matches(" or null"),
            )));
        };
        let buffer = self.bind(BufferId::Input(name.to_owned()), content, None)?;
        Ok(buffer.address().to_le_bytes().to_vec())
    }

    /// Binds the arguments of a compiled kernel.
    fn arguments(
        &mut self,
        args: &RunArgs,
        kernel: &Kernel,
        mut launch: Launch,
    ) -> Result<Launch, Failure> {
        if !args.surfaces.is_empty() || !args.samplers.is_empty() || !args.inputs.is_empty() {
            return Err(Failure::usage(
                "--surface, --sampler and --input are for vISA text; a compiled kernel takes --arg",
            ));
        }
        let known = kernel.arguments();
        let given = numbered(&args.args)?;
        let mut problems = Vec::new();
        let mut unsupported = Vec::new();
        for (index, spec) in &given {
            let Some(argument) = known.iter().find(|argument| argument.index == *index) else {
                problems.push(format!(
                    "there is no argument {index}: kernel `{}` has {}",
                    kernel.name(),
                    known.len()
                ));
                continue;
            };
            match passed(argument, spec) {
                Ok(Passed::Bytes(bytes)) => launch = launch.arg(*index, Arg::Bytes(bytes)),
                Ok(Passed::Image(shape)) => {
                    if let Some(content) = Content::of(spec)? {
                        let buffer = self.bind(BufferId::Index(*index), content, None)?;
                        self.is_image(shape);
                        launch = launch.arg(*index, Arg::Image(buffer, shape));
                    }
                }
                Ok(Passed::Sampler(state)) => launch = launch.arg(*index, Arg::Sampler(state)),
                Ok(Passed::Local(bytes)) => launch = launch.arg(*index, Arg::Local(bytes)),
                Ok(Passed::Null) => launch = launch.arg(*index, Arg::Null),
                Ok(Passed::Buffer) => {
                    if let Some(content) = Content::of(spec)? {
                        let buffer =
                            self.bind(BufferId::Index(*index), content, Some(&argument.type_name))?;
                        launch = launch.arg(*index, Arg::Buffer(buffer));
                    }
                }
                Ok(Passed::Nothing) => {}
                Err(problem) => problems.push(problem),
            }
        }
        for argument in known {
            if matches!(argument.kind, ArgKind::Image { kind: None, .. }) {
                unsupported.push(format!("{}: not supported", described(argument)));
            } else if argument.kind != ArgKind::Unused
                && !given.iter().any(|(index, _)| *index == argument.index)
            {
                let (name, nature) = name_and_nature(argument);
                problems.push(format!(
                    "{name} is missing: {nature}, for example --arg {}={}",
                    argument.index,
                    example(argument)
                ));
            }
        }
        match (unsupported.is_empty(), problems.is_empty()) {
            (false, _) => Err(Failure::unsupported(unsupported.join("\n"))),
            (true, false) => Err(Failure::usage(problems.join("\n"))),
            (true, true) => Ok(launch),
        }
    }

    fn bind(
        &mut self,
        id: BufferId,
        content: Content,
        type_name: Option<&str>,
    ) -> Result<Buffer, Failure> {
        let declared = type_name.and_then(ElementType::from_opencl);
        let ty = content.ty.or(declared.map(|(ty, _)| ty));
        let buffer = content.alloc(&self.memory)?;
        self.bound.push(Bound {
            id,
            buffer: buffer.clone(),
            content,
            ty: ty.unwrap_or(ElementType::U8),
            image: None,
        });
        Ok(buffer)
    }

    /// The buffer bound last is an image.
    fn is_image(&mut self, shape: ImageShape) {
        if let Some(bound) = self.bound.last_mut() {
            bound.image = Some(shape);
        }
    }

    fn noun_of(&self, id: &BufferId) -> &'static str {
        match id {
            BufferId::Index(_) => self.noun,
            BufferId::Input(_) => "input",
        }
    }

    fn find(&self, option: &str, id: &BufferId) -> Result<&Bound, Failure> {
        let found = self.bound.iter().find(|bound| bound.id == *id);
        found.ok_or_else(|| {
            let known: Vec<_> = self.bound.iter().map(|b| b.id.to_string()).collect();
            let known = match known.as_slice() {
                [] => "there are none".to_owned(),
                known => format!("there is {}", known.join(", ")),
            };
            Failure::usage(format!(
                "{option} {id}: {} {id} is not a buffer of this launch; {known}",
                self.noun_of(id)
            ))
        })
    }

    /// Checks what can be checked of `--print` and `--save` before the run.
    fn check_results(&self, args: &RunArgs) -> Result<(), Failure> {
        for print in &args.print {
            let bound = self.find("--print", &print.id)?;
            let wanted = print.count.saturating_mul(print.ty.size() as u64);
            if wanted > bound.buffer.len() {
                return Err(Failure::usage(format!(
                    "--print {}={}:{} wants {wanted} bytes, but the buffer has {}",
                    print.id,
                    print.ty,
                    print.count,
                    bound.buffer.len()
                )));
            }
        }
        for save in &args.save {
            let bound = self.find("--save", &save.id)?;
            if is_png(&save.path) {
                check_png(bound.image.as_ref()).map_err(|message| {
                    Failure::usage(format!(
                        "--save {}={}: {message}",
                        save.id,
                        save.path.display()
                    ))
                })?;
            }
        }
        Ok(())
    }

    /// Gives every buffer its first contents again.
    pub fn refill(&self) -> Result<(), Failure> {
        for bound in &self.bound {
            bound.content.fill(&bound.buffer)?;
        }
        Ok(())
    }

    /// What is in every buffer, by argument or binding-table index.
    pub fn contents(&self) -> Vec<(BufferId, Vec<u8>)> {
        let bound = self.bound.iter();
        bound.map(|b| (b.id.clone(), b.buffer.to_vec())).collect()
    }

    /// The line of one `--print`.
    fn shown(&self, print: &Print) -> Result<String, Failure> {
        let bound = self.find("--print", &print.id)?;
        let wanted = print.count.saturating_mul(print.ty.size() as u64);
        let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(usize::MAX)];
        bound.buffer.read(0, &mut bytes)?;
        let mut line = format!(
            "{} {}: {}[{}] =",
            self.noun_of(&print.id),
            print.id,
            print.ty,
            print.count
        );
        for element in bytes.chunks_exact(print.ty.size()) {
            line.push(' ');
            line.push_str(&Scalar::from_bytes(print.ty, element).to_string());
        }
        line.push('\n');
        Ok(line)
    }

    /// Carries one `--save` out.
    fn save(&self, save: &Save) -> Result<(), Failure> {
        let bound = self.find("--save", &save.id)?;
        let data = bound.buffer.to_vec();
        let write = || {
            if let (Some(shape), true) = (&bound.image, is_png(&save.path)) {
                return write_png(std::fs::File::create(&save.path)?, shape, &data);
            }
            if !is_npy(&save.path) {
                return std::fs::write(&save.path, &data);
            }
            let file = std::fs::File::create(&save.path)?;
            npy::write(std::io::BufWriter::new(file), bound.ty, &data)
        };
        write().map_err(|error| Failure::file("write", &save.path, error))
    }
}

/// Gives specs without an index the lowest indexes that are free.
fn numbered(args: &[ArgSpec]) -> Result<Vec<(u32, &Spec)>, Failure> {
    let mut taken = BTreeSet::new();
    for index in args.iter().filter_map(|arg| arg.index) {
        if !taken.insert(index) {
            return Err(Failure::usage(format!("argument {index} is given twice")));
        }
    }
    let mut free = (0..=u32::MAX).filter(|index| !taken.contains(index));
    let place = |arg: &ArgSpec| arg.index.or_else(|| free.next());
    let indexes: Vec<_> = args.iter().filter_map(place).collect();
    Ok(indexes
        .into_iter()
        .zip(args.iter().map(|arg| &arg.spec))
        .collect())
}

/// The bytes of an `--input`.
fn input(name: &str, spec: &Spec) -> Result<Vec<u8>, Failure> {
    let Some(content) = Content::of(spec)? else {
        return Err(Failure::usage(format!(
            "--input {name}={spec}: {} has no bytes; write TYPE:VALUE[,VALUE…], file:PATH or another buffer",
            spec.noun()
        )));
    };
    if content.len() > MAX_INPUT_BYTES {
        return Err(Failure::usage(format!(
            "--input {name}={spec} has {} bytes; registers hold at most {MAX_INPUT_BYTES}",
            content.len()
        )));
    }
    content.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_indexes_are_filled_in_order() {
        let args: Vec<ArgSpec> = ["1=null", "zero:1", "zero:2", "0=zero:3"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let given = numbered(&args).unwrap();
        let indexes: Vec<_> = given.iter().map(|(index, _)| *index).collect();
        assert_eq!(indexes, [1, 2, 3, 0]);
        let twice: Vec<ArgSpec> = vec!["1=null".parse().unwrap(), "1=null".parse().unwrap()];
        assert_eq!(
            numbered(&twice).unwrap_err().message,
            "argument 1 is given twice"
        );
    }

    #[test]
    fn inputs_are_bytes() {
        let bytes = input("V0040", &"u16:1,2".parse().unwrap());
        assert_eq!(bytes, Ok(vec![1, 0, 2, 0]));
        let failure = input("V0040", &Spec::Null).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        let failure = input("V0040", &"zero:65537".parse().unwrap()).unwrap_err();
        assert!(failure.message.contains("at most 65536"));
    }
}
