//! Errors of the math instructions, in units of the last place, on any engine.
//!
//! An instruction is run as users' kernels run it, in a kernel that applies it to arrays, and compared with the
//! `f64` function of the standard library. Those are wrong by less than one ulp of `f64`, which is 2^-29 ulp of `f`.
//! An ulp is the distance of adjacent numbers of the type at the exact result; in the denormal range it is constant.

use visa_jit::isa::{Platform, Type};
use visa_jit::{EngineOptions, Error, Kernel, Launch};
use visa_runtime::{Buffer, LaunchStatus};

use visa_test_common::Rng;

/// Arguments of a launch.
pub const BATCH: usize = 1 << 14;
/// Bytes that the kernel handles in a turn of its loop.
const TURN: usize = 128;
/// Channels of an instruction.
const LANES: usize = 16;

/// Arguments that share a bound.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// As the documentation writes it.
    pub name: &'static str,
    /// Largest magnitude of the first argument, and the most that the next smaller range has.
    pub above: f64,
    /// See `above`.
    pub upto: f64,
    /// Largest error allowed, in ulp; infinite where results only have to stay within -1 and 1.
    pub bound: f64,
}

const ONE: &[Range] = &[range("all", -1.0, f64::INFINITY, 1.0)];
const TWO: &[Range] = &[range("all", -1.0, f64::INFINITY, 2.0)];
const SIXTEEN: &[Range] = &[range("all", -1.0, f64::INFINITY, 16.0)];

const fn range(name: &'static str, above: f64, upto: f64, bound: f64) -> Range {
    Range {
        name,
        above,
        upto,
        bound,
    }
}

/// Logarithms: near 1 they are small.
const LOGS: &[Range] = &[
    range("abs <= 1/2", -1.0, 0.5, 2.0),
    range("1/2 < abs <= 2", 0.5, 2.0, 2.0),
    range("2 < abs", 2.0, f64::INFINITY, 2.0),
];

/// Angles of `f`: argument reduction gets worse with the magnitude.
const ANGLES: &[Range] = &[
    range("abs <= 1e4", -1.0, 1e4, 4.0),
    range("1e4 < abs <= 1e5", 1e4, 1e5, 4.0),
    range("1e5 < abs <= 1e6", 1e5, 1e6, 4.0),
    range("beyond 1e6", 1e6, f64::INFINITY, f64::INFINITY),
];

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Mnemonic.
    pub name: &'static str,
    /// What it approximates; functions of one argument ignore the second.
    pub exact: fn(f64, f64) -> f64,
    /// Number of arguments.
    pub arguments: usize,
    /// Bounds for `f`.
    pub single: &'static [Range],
    /// Bounds for `hf`.
    pub half: &'static [Range],
}

const fn function(
    name: &'static str,
    single: &'static [Range],
    half: &'static [Range],
    exact: fn(f64, f64) -> f64,
) -> Function {
    Function {
        name,
        exact,
        arguments: 1,
        single,
        half,
    }
}

/// Every instruction with a bound. The bounds are those that the project promises, not what is reached.
pub const FUNCTIONS: &[Function] = &[
    function("inv", ONE, ONE, |x, _| x.recip()),
    function("sqrt", ONE, ONE, |x, _| x.sqrt()),
    function("rsqrt", ONE, ONE, |x, _| inverse_root(x)),
    function("exp", TWO, ONE, |x, _| x.exp2()),
    function("log", LOGS, ONE, |x, _| x.log2()),
    function("sin", ANGLES, ONE, |x, _| x.sin()),
    function("cos", ANGLES, ONE, |x, _| x.cos()),
    Function {
        arguments: 2,
        ..function("pow", SIXTEEN, ONE, |x, y| x.abs().powf(y))
    },
];

fn inverse_root(x: f64) -> f64 {
    x.sqrt().recip()
}

/// A float type by its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `f`.
    Single,
    /// `hf`.
    Half,
}

impl Format {
    /// vISA's type.
    pub fn ty(self) -> Type {
        match self {
            Format::Single => Type::F,
            Format::Half => Type::Hf,
        }
    }

    /// The number that bits stand for.
    pub fn number(self, bits: u32) -> f64 {
        match self {
            Format::Single => f64::from(f32::from_bits(bits)),
            Format::Half => half(bits as u16),
        }
    }

    /// Error of `got`; infinite where only one side is NaN, or is infinite without reason.
    pub fn error(self, got: f64, want: f64) -> f64 {
        let (precision, least, largest) = match self {
            Format::Single => (24, -126, f64::from(f32::MAX)),
            Format::Half => (11, -14, 65504.0),
        };
        if got == want || (got.is_nan() && want.is_nan()) {
            return 0.0;
        }
        if !got.is_finite() || !want.is_finite() {
            // Beyond the largest number, infinity is as good as what is nearest.
            let overflow = got.is_infinite() && want.abs() > largest;
            let right = overflow && got.is_sign_positive() == want.is_sign_positive();
            return if right { 0.0 } else { f64::INFINITY };
        }
        let exponent = (want.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        let ulp = exponent.max(least) - precision + 1;
        (got - want).abs() * f64::from_bits(((1023 - ulp) as u64) << 52)
    }
}

fn half(bits: u16) -> f64 {
    let (exponent, mantissa) = (bits >> 10 & 31, f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        e => (1024.0 + mantissa) * 2f64.powi(i32::from(e) - 25),
    };
    if bits >> 15 == 0 { size } else { -size }
}

/// Runs an instruction on arrays.
pub struct Rig {
    kernel: Kernel,
    launch: Launch,
    arguments: Vec<Buffer>,
    result: Buffer,
    format: Format,
}

impl Rig {
    /// A rig for an instruction.
    ///
    /// # Errors
    /// What the engine says about the kernel.
    pub fn new(options: EngineOptions, f: &Function, format: Format) -> Result<Rig, Error> {
        let engine = visa_jit::Engine::with_options(options)?;
        let size = format.ty().bytes() as usize;
        let bytes = (BATCH * size) as u64;
        let text = kernel(f, format);
        let program = engine.program_from_text("accuracy", &text, Platform::Skl)?;
        let arguments: Vec<Buffer> = (0..f.arguments)
            .map(|_| engine.memory().alloc(bytes))
            .collect::<Result<_, _>>()?;
        let result = engine.memory().alloc(bytes)?;
        let lanes = LANES as u32;
        let mut launch = Launch::new([lanes, 1, 1]).local([lanes, 1, 1]);
        for (bti, buffer) in (0..).zip(arguments.iter().chain([&result])) {
            launch = launch.surface(bti, buffer.clone());
        }
        Ok(Rig {
            kernel: program.kernels()[0].clone(),
            launch,
            arguments,
            result,
            format,
        })
    }

    /// Results for up to [`BATCH`] arguments, all as bits.
    ///
    /// # Errors
    /// When the launch does not end well.
    pub fn run(&self, arguments: &[&[u32]]) -> Result<Vec<u32>, Error> {
        let n = arguments.first().map_or(0, |a| a.len());
        for (buffer, bits) in self.arguments.iter().zip(arguments) {
            match self.format {
                Format::Single => buffer.write_slice(0, bits)?,
                Format::Half => {
                    let halves: Vec<u16> = bits.iter().map(|&b| b as u16).collect();
                    buffer.write_slice(0, &halves)?;
                }
            }
        }
        let report = self.kernel.launch(&self.launch)?;
        assert!(matches!(report.status, LaunchStatus::Completed));
        let mut out = match self.format {
            Format::Single => self.result.to_vec_of::<u32>(),
            Format::Half => {
                let halves = self.result.to_vec_of::<u16>();
                halves.into_iter().map(u32::from).collect()
            }
        };
        out.truncate(n);
        Ok(out)
    }
}

/// A thread that goes through the arrays.
fn kernel(f: &Function, format: Format) -> String {
    let (ty, size) = (format.ty(), format.ty().bytes() as usize);
    let (count, last) = (TURN / size, BATCH * size / 16);
    let mut t = format!(
        ".version 4.1\n.kernel \"accuracy\"\n.kernel_attr SimdSize={LANES}\n\
         .decl AT v_type=G type=ud num_elts=1 align=GRF\n.decl P v_type=P num_elts=1\n"
    );
    let names = ["X", "Y"].iter().take(f.arguments);
    for name in names.clone().chain([&"R"]) {
        t += &format!(".decl {name} v_type=G type={ty} num_elts={count} align=GRF\n");
    }
    for surface in 0..=f.arguments {
        t += &format!(".decl T{} v_type=T num_elts=1\n", surface + 6);
    }
    t += ".function \"main\"\n\nmain:\n    mov (M1_NM, 1) AT(0,0)<1> 0x0:ud\n";
    for surface in 0..=f.arguments {
        t += &format!("    movs (M1_NM, 1) T{}(0) {surface:#x}:ud\n", surface + 6);
    }
    // Denormals are kept, as compilers set it up.
    t += "    or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> 0x4c0:ud\nturn:\n";
    for (surface, name) in (6..).zip(names.clone()) {
        t += &format!("    oword_ld (8) T{surface} AT(0,0)<0;1,0> {name}.0\n");
    }
    // Operands are named by register of 32 bytes and element.
    let place = |i: usize| format!("{},{}", i * size / 32, i * size % 32 / size);
    for i in (0..count).step_by(LANES) {
        let at = place(i);
        t += &format!("    {} (M1_NM, {LANES}) R({at})<1>", f.name);
        for name in names.clone() {
            t += &format!(" {name}({at})<1;1,0>");
        }
        t += "\n";
    }
    t += &format!(
        "    oword_st (8) T{} AT(0,0)<0;1,0> R.0\n    add (M1_NM, 1) AT(0,0)<1> AT(0,0)<0;1,0> 0x8:ud\n    \
         cmp.lt (M1_NM, 1) P AT(0,0)<0;1,0> {last:#x}:ud\n    (P) jmp (M1, 1) turn\n    ret (M1, 1)\n",
        f.arguments + 6
    );
    t
}

/// The worst that was seen in a range.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worst {
    /// Arguments that were tried.
    pub count: u64,
    /// Error in ulp.
    pub ulp: f64,
    /// Arguments as bits.
    pub at: [u32; 2],
    /// Largest difference to the exact result, where both are finite.
    pub absolute: f64,
    /// Largest finite magnitude of a result.
    pub magnitude: f64,
    /// Results that are NaN or infinite without reason, and those that should be.
    pub wrong: u64,
}

impl Worst {
    /// Takes in what was seen elsewhere.
    pub fn add(&mut self, other: &Worst) {
        if other.ulp > self.ulp {
            (self.ulp, self.at) = (other.ulp, other.at);
        }
        self.count += other.count;
        self.wrong += other.wrong;
        self.absolute = self.absolute.max(other.absolute);
        self.magnitude = self.magnitude.max(other.magnitude);
    }
}

/// Bounds of a function for a format.
pub fn ranges(f: &Function, format: Format) -> &'static [Range] {
    match format {
        Format::Single => f.single,
        Format::Half => f.half,
    }
}

/// Measures arguments; one entry for each range.
///
/// # Errors
/// Those of [`Rig::run`].
pub fn measure(rig: &Rig, f: &Function, arguments: &[Vec<u32>]) -> Result<Vec<Worst>, Error> {
    let slices: Vec<&[u32]> = arguments.iter().map(Vec::as_slice).collect();
    let results = rig.run(&slices)?;
    let format = rig.format;
    let ranges = ranges(f, format);
    let mut worst = vec![Worst::default(); ranges.len()];
    for (i, &got) in results.iter().enumerate() {
        let bits = [arguments[0][i], arguments.get(1).map_or(0, |a| a[i])];
        let [x, y] = bits.map(|b| format.number(b));
        let in_range = |r: &Range| x.abs() > r.above && x.abs() <= r.upto;
        let at = ranges.iter().position(in_range);
        let w = &mut worst[at.unwrap_or(0)];
        w.count += 1;
        let (got, want) = (format.number(got), (f.exact)(x, y));
        let ulp = format.error(got, want);
        if ulp > w.ulp {
            (w.ulp, w.at) = (ulp, bits);
        }
        w.wrong += u64::from(ulp.is_infinite());
        if got.is_finite() {
            w.magnitude = w.magnitude.max(got.abs());
            if want.is_finite() {
                w.absolute = w.absolute.max((got - want).abs());
            }
        }
    }
    Ok(worst)
}

/// True if what was seen keeps the promise.
pub fn within(w: &Worst, r: &Range) -> bool {
    let bounded = r.bound.is_finite() || w.magnitude <= 1.0;
    w.wrong == 0 && w.ulp <= r.bound && bounded
}

/// Pairs for `pow` on `f`: any `x`; three quarters of the `y` spread the results evenly over 2^-155 … 2^155, the
/// others are any.
pub fn pairs(rng: &mut Rng, count: usize) -> Vec<Vec<u32>> {
    let mut out = vec![Vec::with_capacity(count), Vec::with_capacity(count)];
    for k in 0..count {
        let bits = rng.bits();
        let (x, y) = (bits as u32, (bits >> 32) as u32);
        let log = (f64::from(y) / f64::from(u32::MAX) - 0.5) * 310.0;
        let near = (log / f64::from(f32::from_bits(x)).abs().log2()) as f32;
        out[0].push(x);
        out[1].push(if k % 4 == 0 { y } else { near.to_bits() });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_in_units_of_the_exact_result() {
        let single = |got: f32, want: f64| Format::Single.error(f64::from(got), want);
        assert_eq!(single(1.0f32.next_up(), 1.0), 1.0);
        assert_eq!(single(1.0, 1.0 + 2f64.powi(-25)), 0.25);
        assert_eq!(single(f32::INFINITY, 1e39), 0.0);
        assert_eq!(single(f32::INFINITY, 1e30), f64::INFINITY);
        assert_eq!(single(f32::NEG_INFINITY, 1e39), f64::INFINITY);
        assert_eq!(single(f32::NAN, 1.0), f64::INFINITY);
        assert_eq!(single(0.0, 2f64.powi(-149)), 1.0);
        assert_eq!(Format::Half.error(0.0, 2f64.powi(-24)), 1.0);
        assert_eq!(Format::Half.error(1.0 + 2f64.powi(-10), 1.0), 1.0);
        assert_eq!(Format::Half.error(f64::INFINITY, 65536.0), 0.0);
    }

    #[test]
    fn halves() {
        assert_eq!(half(0x3c00), 1.0);
        assert_eq!(half(0xc000), -2.0);
        assert_eq!(half(0x0001), 2f64.powi(-24));
        assert_eq!(half(0x7bff), 65504.0);
        assert_eq!(half(0xfc00), f64::NEG_INFINITY);
        assert!(half(0x7c01).is_nan());
    }

    /// All halves, and a sample of `f`, stay within the bounds.
    #[test]
    fn bounds_hold() {
        let mut rng = Rng::new(1);
        for f in FUNCTIONS {
            for format in [Format::Single, Format::Half] {
                let rig = Rig::new(EngineOptions::default(), f, format).unwrap();
                let batches = if f.arguments == 1 && format == Format::Half {
                    (1 << 16) / BATCH
                } else {
                    16
                };
                let mut worst = vec![Worst::default(); ranges(f, format).len()];
                for batch in 0..batches {
                    let first = (batch * BATCH) as u32;
                    let arguments = match (f.arguments, format) {
                        (1, Format::Half) => vec![(first..first + BATCH as u32).collect()],
                        (_, Format::Single) if f.arguments == 2 => pairs(&mut rng, BATCH),
                        (n, _) => {
                            let one = |_| (0..BATCH).map(|_| rng.bits() as u32).collect();
                            (0..n).map(one).collect()
                        }
                    };
                    let seen = measure(&rig, f, &arguments).unwrap();
                    worst.iter_mut().zip(&seen).for_each(|(w, s)| w.add(s));
                }
                for (w, r) in worst.iter().zip(ranges(f, format)) {
                    let name = f.name;
                    assert!(w.count > 0, "{name} {}: nothing tried", r.name);
                    assert!(within(w, r), "{name} {format:?} {}: {w:?}", r.name);
                }
            }
        }
    }
}
