//! What can run a program: one line an engine in [`ENGINES`].

use std::fmt;

use visa_jit::backend::Gather;
#[cfg(feature = "llvm-codegen")]
use visa_jit::backend::OptLevel;
use visa_jit::isa::{Platform, Type};
use visa_runtime::{ImageShape, SamplerState};

use crate::{evaluator, native};

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
    /// Makes one for the calling thread.
    pub make: fn() -> Box<dyn Machine>,
}

/// Every engine. The first is what users run; the last ones are independent of code generators.
pub const ENGINES: &[Engine] = &[
    Engine {
        name: "cranelift",
        make: || native::machine(native::optimised()),
    },
    Engine {
        name: "cranelift-plain",
        make: || native::machine(native::plain()),
    },
    Engine {
        name: "cranelift-if-converted",
        make: || native::machine(native::if_converted()),
    },
    Engine {
        name: "cranelift-unoptimised",
        make: || native::machine(native::unoptimised()),
    },
    Engine {
        name: "cranelift-separate",
        make: || native::machine(native::separate()),
    },
    Engine {
        name: "cranelift-rows",
        make: native::in_rows,
    },
    Engine {
        name: "cranelift-select",
        make: || native::machine(native::gathering(Gather::Select)),
    },
    Engine {
        name: "cranelift-branch",
        make: || native::machine(native::gathering(Gather::Branch)),
    },
    #[cfg(feature = "llvm-codegen")]
    Engine {
        name: "llvm",
        make: || native::machine(native::llvm(OptLevel::None)),
    },
    #[cfg(feature = "llvm-codegen")]
    Engine {
        name: "llvm-o2",
        make: || native::machine(native::llvm(OptLevel::O2)),
    },
    #[cfg(feature = "llvm-codegen")]
    Engine {
        name: "llvm-unoptimised",
        make: || native::machine(native::llvm_unoptimised()),
    },
    Engine {
        name: "interp",
        make: || native::machine(native::interpreted()),
    },
    Engine {
        name: "ssa",
        make: || evaluator::machine(false),
    },
    Engine {
        name: "ssa-optimised",
        make: || evaluator::machine(true),
    },
];

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
