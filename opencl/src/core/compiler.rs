//! The vendor's compiler: which it is, and zebins of sources. It runs in a process of its own, started from the `visa-jit`
//! command, since it may crash, hang or print. What it made is kept on disk, under everything that it was made from.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use visa_jit::artifact::Key;
use visa_jit::container::{
    About, CompileRequest, ContainerError, OCLOC_ENV, Product, SourceKind, compile_in_worker,
    survey_in_worker,
};
use visa_jit::isa::DeviceName;

use super::engine::{Settings, seconds, store, variable};
use super::report;

/// What the compiler calls a source of OpenCL C.
pub const SOURCE_FILE: &str = "program.cl";

/// Names the `visa-jit` command, which otherwise is looked for beside the library, in `bin` beside its folder, and in `PATH`.
pub const COMMAND_ENV: &str = "VISA_JIT_COMMAND";

/// The subcommand that answers one request to the compiler.
const WORKER: &str = "__ocloc-worker";
const COMMAND: &str = "visa-jit";
/// Seconds that the compiler may take for one program; ten minutes without it.
pub const TIMEOUT_ENV: &str = "VISA_JIT_COMPILE_TIMEOUT";
/// The year of the compiler with which today's devices were tried, 26.27.
pub const CURRENT: u32 = 26;
const COMPILE_TIMEOUT: Duration = Duration::from_secs(600);
const SURVEY_TIMEOUT: Duration = Duration::from_secs(20);

fn digest(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

/// What to compile.
pub struct Request<'a> {
    /// Source text or a SPIR-V module.
    pub source: &'a [u8],
    /// Which of the two.
    pub kind: SourceKind,
    /// Headers by name; beside SPIR-V, modules to link it with.
    pub headers: &'a [(String, Vec<u8>)],
    /// Build options.
    pub options: &'a str,
    /// What for.
    pub device: DeviceName,
    /// What to make.
    pub product: Product,
}

/// What the compiler made.
#[derive(Clone, Serialize, Deserialize)]
pub struct Made {
    /// The zebin, or SPIR-V.
    pub zebin: Vec<u8>,
    /// Warnings.
    pub log: String,
}

/// Everything that a zebin depends on.
#[derive(Serialize)]
struct MadeFrom<'a> {
    what: &'static str,
    driver: &'static str,
    source: [u8; 32],
    spirv: bool,
    headers: Vec<(&'a str, [u8; 32])>,
    options: &'a str,
    device: &'a str,
    compiler: &'a About,
    /// The compiler's file, which may be replaced under the same version.
    stamp: Stamp,
}

/// Tells whether a file is still the same.
#[derive(Serialize, Deserialize, PartialEq, Eq, Clone, Default)]
struct Stamp(Vec<(u64, u64)>);

/// What is kept of the last survey.
#[derive(Serialize, Deserialize)]
struct Surveyed {
    about: About,
    stamp: Stamp,
}

impl Stamp {
    /// Of a file and the folder it is in: other compilers may come to lie beside it.
    fn of(path: &Path) -> Option<Stamp> {
        let one = |path: &Path| {
            let data = path.metadata().ok()?;
            let changed = data.modified().ok()?;
            let changed = changed.duration_since(std::time::UNIX_EPOCH).ok()?;
            Some((changed.as_nanos() as u64, data.len()))
        };
        Some(Stamp(vec![one(path)?, one(path.parent()?)?]))
    }
}

/// The file that this library is.
fn library() -> Option<PathBuf> {
    let address = (library as fn() -> Option<PathBuf> as *const ()).addr() as u64;
    let mappings = std::fs::read_to_string("/proc/self/maps").ok()?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let line = mappings.lines().find(|line| {
        let range = line.split(' ').next().and_then(|r| r.split_once('-'));
        let range = range.and_then(|(start, end)| Some(hex(start)?..hex(end)?));
        range.is_some_and(|range| range.contains(&address))
    })?;
    line.get(line.find('/')?..).map(PathBuf::from)
}

/// The `visa-jit` command.
fn command() -> Option<PathBuf> {
    if let Some(named) = variable(COMMAND_ENV) {
        return Some(named.into());
    }
    let library = library();
    let folder = library.as_deref().and_then(Path::parent);
    let beside = folder.map(|folder| folder.join(COMMAND));
    let above = folder.and_then(Path::parent);
    let installed = above.map(|above| above.join("bin").join(COMMAND));
    // In `target/debug/deps` the library lies one folder below the command.
    let built = above.map(|above| above.join(COMMAND));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path).map(|folder| folder.join(COMMAND));
    let all = beside.into_iter().chain(installed).chain(built).chain(path);
    all.into_iter().find(|file| file.is_file())
}

fn worker() -> Result<Command, ContainerError> {
    let command = command().ok_or_else(|| {
        ContainerError::Worker(format!(
            "the command `{COMMAND}` is needed to compile; it is not beside {}, nor in PATH: set {COMMAND_ENV}",
            library().map_or_else(|| "the library".to_owned(), |path| path.display().to_string())
        ))
    })?;
    let mut worker = Command::new(command);
    worker.arg(WORKER);
    Ok(worker)
}

/// The compiler that there is; none if there is none, and the log says why.
pub fn about() -> Option<&'static About> {
    static ABOUT: OnceLock<Option<About>> = OnceLock::new();
    ABOUT.get_or_init(ask).as_ref()
}

/// The first number of the compiler's version, which is a year; 0 if it does not say.
pub fn year() -> u32 {
    let version = about().and_then(|about| about.version.as_deref());
    let first = version.and_then(|version| version.split('.').next());
    first.and_then(|year| year.parse().ok()).unwrap_or(0)
}

/// The last minor version of SPIR-V 1 whose instructions the compiler takes: of compilers between those that were tried, what the
/// older one takes.
pub fn last_spirv_minor() -> u32 {
    match year() {
        CURRENT.. => 6,
        // 22.43 reads modules of version 1.4 too, but ends at instructions that only 1.4 has.
        22.. => 3,
        _ => 2,
    }
}

fn ask() -> Option<About> {
    let from = |name| std::env::var(name).unwrap_or_default();
    let key = Key::new(&(
        "compiler",
        env!("CARGO_PKG_VERSION"),
        [OCLOC_ENV, "CONDA_PREFIX", "LD_LIBRARY_PATH", "PATH"].map(from),
    ));
    let key = key.ok();
    if let (Some(store), Some(key)) = (store(), &key)
        && let Ok(kept) = store.load_manifest::<Surveyed>(key)
        && Stamp::of(&kept.about.path).as_ref() == Some(&kept.stamp)
    {
        return Some(kept.about);
    }
    let survey = worker().and_then(|worker| survey_in_worker(worker, SURVEY_TIMEOUT));
    let about = match survey {
        Ok(survey) => match survey.compiler {
            Some(about) => about,
            None => {
                let tried = survey.tried.iter();
                let tried: Vec<_> = tried
                    .map(|t| format!("{}: {}", t.name, t.message))
                    .collect();
                report::problem("compiler", &format!("none found: {}", tried.join("; ")));
                return None;
            }
        },
        Err(error) => {
            report::problem("compiler", &error.to_string());
            return None;
        }
    };
    if let (Some(store), Some(key), Some(stamp)) = (store(), &key, Stamp::of(&about.path)) {
        let kept = Surveyed {
            about: about.clone(),
            stamp,
        };
        // A cache that cannot be written is no failure.
        let _ = store.save_manifest(key, &kept);
    }
    Some(about)
}

/// As [`compile`], with lines of the source where reports show them.
///
/// # Errors
/// As there.
pub fn compile_for_reports(request: &Request<'_>) -> Result<Made, ContainerError> {
    if request.kind == SourceKind::OpenClC && Settings::get().wants_lines() {
        let options = format!("{} -g", request.options);
        let with_lines = Request {
            options: &options,
            ..*request
        };
        match compile(&with_lines) {
            Ok(made) => return Ok(made),
            // Version 26.27 crashes on some sources only then.
            Err(_) => report::log("a source is compiled again without -g, as it failed with it"),
        }
    }
    compile(request)
}

/// Compiles, or finds what was compiled before.
///
/// # Errors
/// When the compiler does not take the source, and when there is none.
pub fn compile(request: &Request<'_>) -> Result<Made, ContainerError> {
    let about = about();
    let key = about.and_then(|about| {
        Key::new(&MadeFrom {
            what: match request.product {
                Product::Zebin => "zebin",
                Product::SpirV => "spirv",
            },
            driver: env!("CARGO_PKG_VERSION"),
            source: digest(request.source),
            spirv: request.kind == SourceKind::SpirV,
            headers: request
                .headers
                .iter()
                .map(|(name, text)| (name.as_str(), digest(text)))
                .collect(),
            options: request.options,
            device: request.device.as_str(),
            compiler: about,
            stamp: Stamp::of(&about.path).unwrap_or_default(),
        })
        .ok()
    });
    // What `-I` names may have changed.
    let key = key.filter(|_| !includes(request));
    if let (Some(store), Some(key)) = (store(), &key)
        && let Ok(made) = store.load_manifest::<Made>(key)
    {
        return Ok(made);
    }
    let headers: Vec<(&str, &[u8])> = request
        .headers
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_slice()))
        .collect();
    let ask = CompileRequest {
        name: match request.kind {
            SourceKind::OpenClC => SOURCE_FILE,
            SourceKind::SpirV => "program.spv",
        },
        source: request.source,
        kind: request.kind,
        headers: &headers,
        device: request.device,
        options: request.options,
        internal_options: "",
        product: request.product,
    };
    let limit = seconds(TIMEOUT_ENV).unwrap_or(COMPILE_TIMEOUT);
    let compiled = compile_in_worker(worker()?, &ask, limit)?;
    let made = Made {
        zebin: compiled.zebin,
        log: compiled.log,
    };
    if let (Some(store), Some(key)) = (store(), &key) {
        // As above.
        let _ = store.save_manifest(key, &made);
    }
    Ok(made)
}

/// Whether a source may read files that no key knows.
fn includes(request: &Request<'_>) -> bool {
    let unknown = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        text.lines().any(|line| {
            let line = line.trim_start().strip_prefix('#');
            let name = line.and_then(|rest| rest.trim_start().strip_prefix("include"));
            let name = name.map(|name| name.trim().trim_matches(['"', '<', '>']));
            name.is_some_and(|name| !request.headers.iter().any(|(known, _)| known == name))
        })
    };
    let texts = request.headers.iter().map(|(_, text)| text.as_slice());
    request.kind == SourceKind::OpenClC
        && (request.options.contains("-include") || texts.chain([request.source]).any(unknown))
}
