//! Kernels of the same name, as two versions of the compiler made them, launched on the same arguments.
//!
//! Integers must be equal. Floating-point numbers may differ as far as OpenCL lets its functions differ, since the compilers expand
//! them in different ways.

use std::time::Duration;

use visa_jit::{ArgKind, Class, Engine, EngineOptions, Kernel, Program};
use visa_runtime::{DeviceMemory, LaunchStatus};

use super::{Place, Recipe};
use visa_test_common::Rng;

/// Bytes of device memory, most of which is never touched.
const MEMORY: u64 = 1 << 32;
/// How far two results may be apart, relative to the larger: a function of single precision may be wrong by 16 units in the last
/// place (OpenCL C 3.0, section 7.4), and kernels use several of them, one after the other.
const RELATIVE: f64 = 1e-5;
/// How far results near zero may be apart, which come of subtractions.
const ABSOLUTE: f64 = 1e-5;

/// How the results of a kernel by both compilers compare, over all its launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pair {
    /// The same bytes.
    Equal {
        /// Whether a launch changed a buffer.
        changed: bool,
    },
    /// Some numbers differ within the tolerance.
    Near,
    /// Something differs, as said.
    Differs(String),
    /// There is nothing to compare, for a reason.
    LeftOut(String),
}

/// Compares the kernels of the first container with those of the second, by name, in a number of random launches each of which may take
/// a time.
///
/// # Errors
/// Of a container that does not load.
pub fn compare_pair(
    old: &[u8],
    new: &[u8],
    launches: u64,
    limit: Duration,
) -> Result<Vec<(String, Pair)>, String> {
    let memory = DeviceMemory::with_capacity(MEMORY).map_err(|e| e.to_string())?;
    let load = |bytes: &[u8]| -> Result<Program, String> {
        let engine = Engine::with_memory(EngineOptions::default(), memory.clone());
        let program = engine.and_then(|engine| engine.program_from_zebin(bytes, None));
        program.map_err(|e| e.to_string())
    };
    let (first, second) = (load(old)?, load(new)?);
    let mut all = Vec::new();
    for kernel in first.kernels() {
        let pair = match second.kernel(kernel.name()) {
            Ok(other) => over_launches(kernel, other, &memory, (launches, limit)),
            Err(_) => Pair::LeftOut("the second compiler's file has no such kernel".to_owned()),
        };
        all.push((kernel.name().to_owned(), pair));
    }
    Ok(all)
}

fn over_launches(
    old: &Kernel,
    new: &Kernel,
    memory: &DeviceMemory,
    (launches, limit): (u64, Duration),
) -> Pair {
    let mut all = Pair::Equal { changed: false };
    for seed in 0..launches {
        let one = launch(old, new, memory, (seed, limit)).unwrap_or_else(Pair::LeftOut);
        match (&all, &one) {
            (_, Pair::Differs(_) | Pair::LeftOut(_)) => return one,
            (Pair::Near, _) | (_, Pair::Equal { changed: false }) => {}
            _ => all = one,
        }
    }
    all
}

/// One launch by both. Errors say why there is nothing to compare.
fn launch(
    old: &Kernel,
    new: &Kernel,
    memory: &DeviceMemory,
    (seed, limit): (u64, Duration),
) -> Result<Pair, String> {
    let recipe = Recipe::with_addresses(old, &mut Rng::new(seed));
    let mut recipe = recipe.ok_or("images that a random launch cannot be given")?;
    recipe.limit = limit;
    let buffers = recipe.allocate(memory).map_err(|e| e.to_string())?;
    let mut results = Vec::new();
    for kernel in [old, new] {
        match recipe.run(kernel, &buffers) {
            Ok((LaunchStatus::Completed, bytes)) => results.push(bytes),
            Ok((status, _)) => return Err(format!("a launch ended as {status:?}")),
            Err(e) if results.is_empty() => return Err(e.to_string()),
            // Version 22.43 passes a `half` in four bytes.
            Err(e) if e.exit_class() == Class::Input => {
                return Err("the second compiler's kernel takes other arguments".to_owned());
            }
            Err(e) => return Ok(Pair::Differs(format!("only the second is refused: {e}"))),
        }
    }
    let mut found = Pair::Equal {
        changed: results[0] != recipe.contents,
    };
    for (n, (a, b)) in results[0].iter().zip(&results[1]).enumerate() {
        if a == b {
            continue;
        }
        let element = element(old, &recipe, n);
        match apart(element, a, b) {
            None => found = Pair::Near,
            Some(at) => {
                let size = element.map_or(4, Element::bytes);
                let at = at / size * size;
                let (a, b) = (&a[at..at + size], &b[at..at + size]);
                return Ok(Pair::Differs(format!(
                    "seed {seed}, {recipe}: byte {at:#x} of buffer {n}: {a:02x?} and {b:02x?}"
                )));
            }
        }
    }
    Ok(found)
}

/// A type of floating-point numbers.
#[derive(Clone, Copy)]
enum Element {
    Half,
    Single,
    Double,
}

impl Element {
    fn bytes(self) -> usize {
        match self {
            Element::Half => 2,
            Element::Single => 4,
            Element::Double => 8,
        }
    }

    fn value(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (Element::Half, &[a, b]) => half(u16::from_le_bytes([a, b])),
            (Element::Single, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).into(),
            (Element::Double, bytes) => bytes.try_into().map_or(f64::NAN, f64::from_le_bytes),
            _ => f64::NAN,
        }
    }

    /// Precision relative to that of single precision.
    fn coarser(self) -> f64 {
        match self {
            Element::Half => f64::from(1 << 13),
            Element::Single | Element::Double => 1.0,
        }
    }
}

/// The value of a number of 16 bits.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction * f64::powi(2.0, -24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * f64::powi(2.0, exponent - 25),
    };
    if bits >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// What a buffer holds by the type of its argument; none for integers.
fn element(kernel: &Kernel, recipe: &Recipe, buffer: usize) -> Option<Element> {
    let place = recipe
        .given
        .iter()
        .find(|(_, given)| given.buffer() == Some(buffer));
    let Some((Place::Argument(index), _)) = place else {
        return None;
    };
    let argument = kernel.arguments().iter().find(|a| a.index == *index)?;
    match (argument.kind, argument.type_name.as_str()) {
        (ArgKind::Image { .. }, _) => None,
        (_, name) if name.contains("half") => Some(Element::Half),
        (_, name) if name.contains("float") => Some(Element::Single),
        (_, name) if name.contains("double") => Some(Element::Double),
        _ => None,
    }
}

/// The first byte of the first number that is not near the other, if there is one.
fn apart(element: Option<Element>, a: &[u8], b: &[u8]) -> Option<usize> {
    let Some(element) = element else {
        return (0..a.len()).find(|&at| a[at] != b[at]);
    };
    let size = element.bytes();
    let far = |(x, y): (&[u8], &[u8])| {
        let (p, q) = (element.value(x), element.value(y));
        let room = (RELATIVE * p.abs().max(q.abs())).max(ABSOLUTE) * element.coarser();
        x != y && !(p.is_nan() && q.is_nan()) && (p - q).abs().total_cmp(&room).is_gt()
    };
    let at = a.chunks_exact(size).zip(b.chunks_exact(size)).position(far);
    at.map(|n| n * size)
}
