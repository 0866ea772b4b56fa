//! The engine of all devices, made when it is first needed: they share memory, threads and the cache of code.

use std::sync::OnceLock;
use std::time::Duration;

use visa_jit::artifact::Store;
use visa_jit::backend::{BackendKind, Check, Checks, OobPolicy};
use visa_jit::engine::Suppressions;
use visa_jit::interp::InterpOptions;
use visa_jit::{DiskCache, Engine, EngineOptions};
use visa_runtime::{DeviceMemory, MemoryError};

use super::error::{Cl, ClError};
use super::report;
use crate::abi::CL_OUT_OF_RESOURCES;

/// Addresses of device memory that are too few for anything.
const LEAST_ADDRESSES: u64 = 512 << 20;

/// What the environment says about how kernels run.
pub struct Settings {
    /// What accesses out of bounds do.
    pub oob: OobPolicy,
    /// What of accesses is checked, or why what was asked for is not.
    pub check: Result<Checks, String>,
    /// Threads to spread work-groups over.
    pub threads: usize,
    /// What the order of work-groups and their threads is drawn from; `None` for the usual order.
    pub schedule: Option<u64>,
    /// Where the program allocates and frees memory is kept for reports.
    pub backtrace: Result<bool, String>,
    /// LLVM's code takes the place of Cranelift's when it is there.
    pub tier: Result<bool, String>,
    /// How long a kernel may run.
    pub timeout: Option<Duration>,
    backend: String,
}

/// A variable of the environment that is set to something.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A time that a variable of the environment says, in seconds; none if that is no positive number.
pub fn seconds(name: &str) -> Option<Duration> {
    let number: f64 = variable(name)?.parse().ok()?;
    let time = Duration::try_from_secs_f64(number).ok();
    time.filter(|time| !time.is_zero())
}

impl Settings {
    /// True if faults are told with their lines.
    pub fn wants_lines(&self) -> bool {
        self.oob != OobPolicy::ReadZeroSkipWrite || self.check != Ok(Checks::NONE)
    }

    /// Those of the process.
    pub fn get() -> &'static Settings {
        static SETTINGS: OnceLock<Settings> = OnceLock::new();
        SETTINGS.get_or_init(|| {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            let threads = variable("VISA_JIT_THREADS").and_then(|text| text.parse().ok());
            let oob = variable("VISA_JIT_OOB").unwrap_or_default();
            Settings {
                oob: match oob.as_str() {
                    "trap" => OobPolicy::Trap,
                    "report" => OobPolicy::Report,
                    _ => OobPolicy::ReadZeroSkipWrite,
                },
                check: variable("VISA_JIT_CHECK")
                    .map_or(Ok(Checks::NONE), |names| Checks::parse(&names)),
                threads: threads.filter(|n| *n > 0).unwrap_or(processors),
                schedule: variable("VISA_JIT_SCHEDULE").and_then(|text| text.parse().ok()),
                backtrace: switch("VISA_JIT_BACKTRACE"),
                tier: switch("VISA_JIT_TIER"),
                timeout: seconds("VISA_JIT_TIMEOUT"),
                backend: variable("VISA_JIT_BACKEND").unwrap_or_default(),
            }
        })
    }
}

fn disk_cache() -> Option<DiskCache> {
    match std::env::var("VISA_JIT_CACHE_DIR") {
        Ok(text) if text == "off" => None,
        Ok(text) if !text.is_empty() => Some(DiskCache::at(text)),
        _ => DiskCache::user(),
    }
}

/// The directory of compiled kernels and sources, if there is one.
pub fn store() -> Option<&'static Store> {
    static STORE: OnceLock<Option<Store>> = OnceLock::new();
    STORE
        .get_or_init(|| disk_cache().map(|cache| cache.store()))
        .as_ref()
}

/// A variable that turns something on.
fn switch(name: &str) -> Result<bool, String> {
    match variable(name).as_deref() {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => Err(format!("{name}: `{other}` is neither 0 nor 1")),
    }
}

fn options() -> Result<EngineOptions, String> {
    let mut options = EngineOptions {
        disk: disk_cache(),
        ..EngineOptions::default()
    };
    match Settings::get().backend.as_str() {
        "interp" => options.interpret = Some(InterpOptions::default()),
        "llvm" => options.strategy.backend = BackendKind::Llvm,
        _ => {}
    }
    if let Some(text) = variable("VISA_JIT_SCHEDULE")
        && Settings::get().schedule.is_none()
    {
        return Err(format!(
            "VISA_JIT_SCHEDULE: `{text}` is not a whole number from 0 to 18446744073709551615"
        ));
    }
    if let Some(text) = variable("VISA_JIT_SUPPRESS") {
        let rules = Suppressions::parse(&text);
        options.suppress = rules.map_err(|error| format!("VISA_JIT_SUPPRESS: {error}"))?;
    }
    options.race_same_value = switch("VISA_JIT_RACE_SAME_VALUE")?;
    options.tier = Settings::get().tier.clone()?;
    Settings::get().backtrace.clone()?;
    let check = Settings::get().check.clone();
    let check = check.map_err(|error| format!("VISA_JIT_CHECK: {error}"))?;
    Ok(options.check(check))
}

/// Addresses for device memory: as many as engines have usually, or fewer where the process may not have them, as under a limit of its
/// address space and in tools that watch programs.
fn memory(options: &EngineOptions) -> Result<DeviceMemory, MemoryError> {
    let mut bytes = options.memory_bytes;
    loop {
        let check = options.strategy.tuning.check;
        let made = match check.contains(Check::Memory) {
            true => DeviceMemory::checked(bytes),
            false => DeviceMemory::with_capacity(bytes),
        };
        let made = match check.contains(Check::Init) {
            true => made.and_then(DeviceMemory::tracked),
            false => made,
        };
        match made {
            Err(MemoryError::System(_)) if bytes > LEAST_ADDRESSES => bytes /= 2,
            made => return made,
        }
    }
}

fn make() -> Result<Engine, String> {
    let options = options()?;
    let memory = memory(&options).map_err(|error| error.to_string())?;
    Engine::with_memory(options, memory).map_err(|error| error.to_string())
}

/// The engine.
///
/// # Errors
/// `CL_OUT_OF_RESOURCES` when there can be none; the log says why.
pub fn engine() -> Cl<&'static Engine> {
    static ENGINE: OnceLock<Option<Engine>> = OnceLock::new();
    let made = ENGINE.get_or_init(|| {
        let made = make();
        made.map_err(|error| report::problem("engine", &error)).ok()
    });
    made.as_ref().ok_or(ClError(CL_OUT_OF_RESOURCES))
}
