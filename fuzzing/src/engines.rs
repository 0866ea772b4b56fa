//! What can run a program: [`ENGINES`]. Strategies of the code generators come from the table of axes (`strategies.rs`).

use std::fmt;
use std::sync::LazyLock;

use visa_jit::backend::{BackendKind, CodegenEffort, Strategy};
use visa_jit::isa::{Platform, Type};
use visa_runtime::{ImageShape, SamplerState};

use crate::{evaluator, native, strategies};

/// Value of an `.input` variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Flat address of a surface.
    Address(u32),
}

/// What a launch of one hardware thread is given.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Lanes that exist.
    pub lanes: u32,
    /// Surface `i` is bound at binding-table index `i`.
    pub surfaces: Vec<Vec<u8>>,
    /// Surfaces that are images.
    pub images: Vec<(u32, ImageShape)>,
    /// Sampler `i` has index `i`.
    pub samplers: Vec<SamplerState>,
    /// `.input` variables by name.
    pub inputs: Vec<(String, Input)>,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The program is not accepted.
    Refused(String),
    /// Bug of the engine.
    Broken(String),
    /// An access was out of bounds, under a policy that records it.
    Faulted(String),
    /// It did not end in time.
    Timeout,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Refused(why) => write!(f, "refused: {why}"),
            Stop::Broken(why) => write!(f, "broken: {why}"),
            Stop::Faulted(why) => write!(f, "faulted: {why}"),
            Stop::Timeout => f.write_str("did not end in time"),
        }
    }
}

/// Contents of the surfaces after a launch.
pub type Outcome = Result<Vec<Vec<u8>>, Stop>;

/// An engine of one test thread.
pub trait Machine {
    /// Loads (and compiles) a program.
    ///
    /// # Errors
    /// When the engine does not accept it.
    fn load(&mut self, text: &str, platform: Platform) -> Result<Box<dyn Loaded>, Stop>;

    /// Whether it has images.
    fn images(&self) -> bool {
        true
    }
}

/// A program that can be run any number of times.
pub trait Loaded {
    /// Runs one hardware thread.
    fn run(&self, launch: &Launch) -> Outcome;
}

/// An engine by name.
#[derive(Clone, Copy)]
pub struct Engine {
    /// Name in reports.
    pub name: &'static str,
    runs: Runs,
}

/// What runs programs.
#[derive(Clone, Copy)]
enum Runs {
    /// Code that a strategy makes of what lowering or all passes leave. `rows`: threads that have all their lanes lie in rows that
    /// are shorter.
    Code {
        strategy: Strategy,
        passes: bool,
        rows: bool,
    },
    Interpreter,
    Evaluator {
        passes: bool,
    },
}

impl Engine {
    const fn new(name: &'static str, runs: Runs) -> Engine {
        Engine { name, runs }
    }

    /// Makes one for the calling thread.
    ///
    /// # Panics
    /// When this computer cannot run generated code.
    pub fn make(&self) -> Box<dyn Machine> {
        match self.runs {
            Runs::Code {
                strategy,
                passes,
                rows,
            } => native::generated(strategy, passes, rows),
            Runs::Interpreter => native::interpreter(),
            Runs::Evaluator { passes } => evaluator::machine(passes),
        }
    }
}

/// The code of a strategy after all passes.
const fn code(strategy: Strategy) -> Runs {
    Runs::Code {
        strategy,
        passes: true,
        rows: false,
    }
}

/// The code generator's least effort.
fn plain(backend: BackendKind) -> Strategy {
    Strategy::from(backend).tuned(|t| t.codegen = CodegenEffort::None)
}

/// What lowering makes, as it is, with the code generator's least effort.
fn unoptimised(backend: BackendKind) -> Runs {
    Runs::Code {
        strategy: plain(backend),
        passes: false,
        rows: false,
    }
}

/// Every engine of this build. The first is what users run, and the last ones are independent of code generators. Those in between
/// are one for each strategy that the table of axes asks for, and those that no strategy describes.
pub static ENGINES: LazyLock<Vec<Engine>> = LazyLock::new(|| {
    let (cranelift, llvm) = (BackendKind::Cranelift, BackendKind::Llvm);
    let usual = Strategy::from(cranelift);
    let rows = Runs::Code {
        strategy: usual,
        passes: true,
        rows: true,
    };
    let mut all = vec![
        Engine::new("cranelift", code(usual)),
        Engine::new("cranelift-plain", code(plain(cranelift))),
        Engine::new("cranelift-unoptimised", unoptimised(cranelift)),
        Engine::new("cranelift-rows", rows),
    ];
    all.extend(from_axes(cranelift));
    if llvm.available().is_ok() {
        all.push(Engine::new("llvm", code(llvm.into())));
        all.push(Engine::new("llvm-unoptimised", unoptimised(llvm)));
        all.extend(from_axes(llvm));
    }
    all.extend([
        Engine::new("interp", Runs::Interpreter),
        Engine::new("ssa", Runs::Evaluator { passes: false }),
        Engine::new("ssa-optimised", Runs::Evaluator { passes: true }),
    ]);
    all
});

/// Engines that between them have every value of every axis that a code generator honours, if it is not the usual one.
pub fn from_axes(backend: BackendKind) -> Vec<Engine> {
    let strategies = strategies::of(backend).into_iter();
    let engine = |s| Engine::new(strategies::name(&s).leak(), code(s));
    strategies.map(engine).collect()
}

/// Engines by name.
///
/// # Panics
/// For names that [`ENGINES`] does not have.
pub fn named(names: &[&str]) -> Vec<Engine> {
    let find = |name: &&str| ENGINES.iter().find(|e| e.name == *name).copied();
    names
        .iter()
        .map(|n| find(n).unwrap_or_else(|| panic!("no engine `{n}`")))
        .collect()
}

/// Runs part of an engine; a panic is a bug of its.
///
/// # Errors
/// Those of `run`, and [`Stop::Broken`] for a panic.
pub fn guarded<T>(run: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    result.unwrap_or_else(|p| {
        let text = p.downcast_ref::<String>().cloned();
        let text = text.or_else(|| p.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(Stop::Broken(format!("panic: {}", text.unwrap_or_default())))
    })
}

/// Elements of one type in a surface, for comparison: NaNs of a float type equal each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Surface.
    pub surface: usize,
    /// First byte.
    pub at: usize,
    /// Elements.
    pub count: usize,
    /// Type.
    pub ty: Type,
}

/// Little-endian bits of an element.
pub fn bits(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b))
}

/// True for bits of a NaN.
pub fn is_nan(ty: Type, bits: u64) -> bool {
    let (exponent, mantissa) = match ty {
        Type::F | Type::Vf => (8, 23),
        Type::Df => (11, 52),
        Type::Hf => (5, 10),
        Type::Bf => (8, 7),
        _ => return false,
    };
    let size = bits & ((1 << (exponent + mantissa)) - 1);
    size > ((1 << exponent) - 1) << mantissa
}

/// First difference between two results: region index, element, and the two values.
pub fn difference(
    a: &[Vec<u8>],
    b: &[Vec<u8>],
    regions: &[Region],
) -> Option<(usize, usize, u64, u64)> {
    for (r, region) in regions.iter().enumerate() {
        let size = region.ty.bytes() as usize;
        let bytes = region.at..region.at + region.count * size;
        let (x, y) = (&a[region.surface][bytes.clone()], &b[region.surface][bytes]);
        if x == y {
            continue;
        }
        for (i, (x, y)) in x.chunks(size).zip(y.chunks(size)).enumerate() {
            let (x, y) = (bits(x), bits(y));
            if x != y && !(is_nan(region.ty, x) && is_nan(region.ty, y)) {
                return Some((r, i, x, y));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use visa_jit::backend::Choice as _;

    /// A new axis, or a new value of one, takes part by itself.
    #[test]
    fn every_value_of_every_axis_that_is_honoured_is_in_an_engine() {
        let built = |backend: &&BackendKind| backend.available().is_ok();
        for &backend in BackendKind::ALL.iter().filter(built) {
            for choice @ (axis, value) in strategies::choices() {
                let takes = |engine: &Engine| match engine.runs {
                    Runs::Code { strategy, .. } => {
                        strategy.backend == backend && strategies::has(&strategy, choice)
                    }
                    _ => false,
                };
                let honoured = strategies::with(backend, choice).is_some();
                let what = format!("{} --{} {value}", backend.name(), axis.name);
                assert_eq!(ENGINES.iter().any(takes), honoured, "{what}");
            }
        }
    }

    #[test]
    fn names_are_different() {
        let names: std::collections::BTreeSet<_> = ENGINES.iter().map(|e| e.name).collect();
        assert_eq!(names.len(), ENGINES.len());
    }
}
