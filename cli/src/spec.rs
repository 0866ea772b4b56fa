//! The SPEC grammar: what an argument, a surface or an input is filled with.
//!
//! ```text
//! SPEC  = TYPE ":" V {"," V}          a value or a vector of values
//!       | "file:" PATH                a buffer: the file's bytes, or the elements of a .npy
//!       | "zero:" BYTES               a buffer of zeros
//!       | "uninit:" BYTES             a buffer that nothing was written to, as --check init has it; else as zero
//!       | "fill:" TYPE ":" V ":" COUNT
//!       | "iota:" TYPE ":" COUNT      0, 1, 2, …
//!       | "rand:" TYPE ":" COUNT ":" SEED
//!       | "read-only:" SPEC           one of these buffers, which --check memory lets kernels only read
//!       | "local:" BYTES              local memory
//!       | "image2d:" FORMAT ":" WxH [":" PATH]   and other images and samplers, see [`super::image`]
//!       | "null"                      a null pointer
//! TYPE  = i8 u8 i16 u16 i32 u32 i64 u64 f16 f32 f64
//! ```
//!
//! [`Spec`]'s text form reads back as the same value.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use visa_runtime::SamplerState;

use super::image::{ImageSpec, element_type, sampler, sampler_text};
use super::values::{ElementType, Scalar, TYPE_NAMES, parse_count};

/// A parsed SPEC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// Values, all of one type; at least one.
    Values(ElementType, Vec<Scalar>),
    /// Contents of a file.
    File(PathBuf),
    /// This many zero bytes.
    Zero(u64),
    /// This many bytes that are not initialised.
    Uninit(u64),
    /// One value, this many times.
    Fill(Scalar, u64),
    /// Consecutive numbers from 0 up, this many.
    Iota(ElementType, u64),
    /// Random numbers.
    Rand {
        /// Element type.
        ty: ElementType,
        /// Elements.
        count: u64,
        /// Seed of the sequence.
        seed: u64,
    },
    /// A buffer that kernels only read.
    ReadOnly(Box<Spec>),
    /// Bytes of local memory.
    Local(u32),
    /// An image.
    Image(ImageSpec),
    /// A sampler.
    Sampler(SamplerState),
    /// A null pointer.
    Null,
}

impl Spec {
    /// The element type that the text names.
    pub fn element_type(&self) -> Option<ElementType> {
        match self {
            Spec::Values(ty, _) | Spec::Iota(ty, _) | Spec::Rand { ty, .. } => Some(*ty),
            Spec::Fill(value, _) => Some(value.ty()),
            Spec::Image(image) => Some(element_type(image.shape.format)),
            Spec::ReadOnly(spec) => spec.element_type(),
            Spec::File(_)
            | Spec::Zero(_)
            | Spec::Uninit(_)
            | Spec::Local(_)
            | Spec::Sampler(_)
            | Spec::Null => None,
        }
    }

    /// What kind of thing it is, for messages: "a value", "a buffer", ….
    pub fn noun(&self) -> &'static str {
        match self {
            Spec::Values(..) => "a value",
            Spec::Local(_) => "local memory",
            Spec::Image(_) => "an image",
            Spec::Sampler(_) => "a sampler",
            Spec::Null => "a null pointer",
            _ => "a buffer",
        }
    }
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Spec, String> {
        if text == "null" {
            return Ok(Spec::Null);
        }
        let Some((word, rest)) = text.split_once(':') else {
            return Err(unknown(text));
        };
        match word {
            "file" if rest.is_empty() => Err("file: needs a path: file:PATH".to_owned()),
            "file" => Ok(Spec::File(rest.into())),
            "zero" => fields(rest, "zero:BYTES").and_then(|[bytes]| Ok(Spec::Zero(count(bytes)?))),
            "uninit" => {
                fields(rest, "uninit:BYTES").and_then(|[bytes]| Ok(Spec::Uninit(count(bytes)?)))
            }
            "fill" => fields(rest, "fill:TYPE:VALUE:COUNT").and_then(|[ty, value, n]| {
                let value = Scalar::parse(element(ty)?, value)?;
                Ok(Spec::Fill(value, sized(value.ty(), n)?))
            }),
            "iota" => fields(rest, "iota:TYPE:COUNT").and_then(|[ty, n]| {
                let ty = element(ty)?;
                Ok(Spec::Iota(ty, sized(ty, n)?))
            }),
            "rand" => fields(rest, "rand:TYPE:COUNT:SEED").and_then(|[ty, n, seed]| {
                let ty = element(ty)?;
                let (count, seed) = (sized(ty, n)?, parse_count(seed)?);
                Ok(Spec::Rand { ty, count, seed })
            }),
            "read-only" => match rest.parse()? {
                Spec::ReadOnly(_) => Err(format!("`{text}` says read-only twice")),
                spec if spec.noun() == "a buffer" => Ok(Spec::ReadOnly(Box::new(spec))),
                spec => Err(format!(
                    "`{text}` is {}, and read-only: needs a buffer",
                    spec.noun()
                )),
            },
            "local" => fields(rest, "local:BYTES").and_then(|[bytes]| {
                let bytes = u32::try_from(count(bytes)?);
                Ok(Spec::Local(bytes.map_err(|_| {
                    format!("local:{rest} is too large (at most {} bytes)", u32::MAX)
                })?))
            }),
            "sampler" => sampler(rest).map(Spec::Sampler),
            name => match (ElementType::from_name(name), ImageSpec::parse(name, rest)) {
                (Some(ty), _) => values(ty, rest),
                (None, Some(image)) => image.map(Spec::Image),
                (None, None) => Err(unknown(text)),
            },
        }
    }
}

fn unknown(text: &str) -> String {
    format!(
        "`{text}` is not a SPEC; write TYPE:VALUE (such as f32:2.5), file:PATH, zero:BYTES, \
         uninit:BYTES, fill:TYPE:VALUE:COUNT, iota:TYPE:COUNT, rand:TYPE:COUNT:SEED, read-only:SPEC, local:BYTES, \
         image2d:FORMAT:WxH[:PATH], sampler:ADDRESS or null"
    )
}

fn values(ty: ElementType, text: &str) -> Result<Spec, String> {
    let values = text.split(',').map(|value| Scalar::parse(ty, value));
    Ok(Spec::Values(ty, values.collect::<Result<_, _>>()?))
}

/// Exactly `N` fields between colons.
fn fields<'a, const N: usize>(text: &'a str, form: &str) -> Result<[&'a str; N], String> {
    let fields: Vec<_> = text.split(':').collect();
    <[&str; N]>::try_from(fields).map_err(|_| {
        let word = form.split(':').next().unwrap_or(form);
        format!("`{word}:{text}` is not of the form {form}")
    })
}

fn element(name: &str) -> Result<ElementType, String> {
    ElementType::from_name(name)
        .ok_or_else(|| format!("unknown element type `{name}`: expected {TYPE_NAMES}"))
}

fn count(text: &str) -> Result<u64, String> {
    parse_count(text)
}

/// A number of elements whose bytes can be counted.
fn sized(ty: ElementType, text: &str) -> Result<u64, String> {
    let n = count(text)?;
    match n.checked_mul(ty.size() as u64) {
        Some(_) => Ok(n),
        None => Err(format!(
            "{n} elements of {ty} are more than memory can hold"
        )),
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spec::Values(ty, values) => {
                write!(f, "{ty}")?;
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i == 0 { ':' } else { ',' })?;
                }
                Ok(())
            }
            Spec::File(path) => write!(f, "file:{}", path.display()),
            Spec::Zero(bytes) => write!(f, "zero:{bytes}"),
            Spec::Uninit(bytes) => write!(f, "uninit:{bytes}"),
            Spec::Fill(value, count) => write!(f, "fill:{}:{value}:{count}", value.ty()),
            Spec::Iota(ty, count) => write!(f, "iota:{ty}:{count}"),
            Spec::Rand { ty, count, seed } => write!(f, "rand:{ty}:{count}:{seed}"),
            Spec::ReadOnly(spec) => write!(f, "read-only:{spec}"),
            Spec::Local(bytes) => write!(f, "local:{bytes}"),
            Spec::Image(image) => write!(f, "{image}"),
            Spec::Sampler(state) => write!(f, "sampler:{}", sampler_text(*state)),
            Spec::Null => f.write_str("null"),
        }
    }
}

/// `[INDEX=]SPEC` of `--arg`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgSpec {
    /// Argument index; `None` takes the next one that is free.
    pub index: Option<u32>,
    /// What to pass.
    pub spec: Spec,
}

impl FromStr for ArgSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<ArgSpec, String> {
        // A path may contain `=`; only digits in front of one are an index.
        match text.split_once('=') {
            Some((index, spec)) if is_number(index) => Ok(ArgSpec {
                index: Some(number(index)?),
                spec: spec.parse()?,
            }),
            _ => Ok(ArgSpec {
                index: None,
                spec: text.parse()?,
            }),
        }
    }
}

/// `KEY=SPEC` of `--input`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSpec {
    /// Name of the input.
    pub name: String,
    /// What it holds, or what the buffer holds to which it points.
    pub spec: Spec,
    /// `buffer:SPEC`: the variable holds the 64-bit address of a buffer.
    pub pointer: bool,
}

impl FromStr for NamedSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedSpec, String> {
        match text.split_once('=') {
            Some((name, spec)) if !name.is_empty() => {
                let pointee = spec.strip_prefix("buffer:");
                Ok(NamedSpec {
                    name: name.to_owned(),
                    spec: pointee.unwrap_or(spec).parse()?,
                    pointer: pointee.is_some(),
                })
            }
            _ => Err(format!(
                "`{text}` is not of the form NAME=SPEC or NAME=buffer:SPEC"
            )),
        }
    }
}

/// `BTI=SPEC` of `--surface`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurfaceSpec {
    /// Binding-table index.
    pub bti: u32,
    /// What the surface holds.
    pub spec: Spec,
}

impl FromStr for SurfaceSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<SurfaceSpec, String> {
        let (bti, spec) = indexed(text, "BTI=SPEC")?;
        let spec = spec.parse()?;
        Ok(SurfaceSpec { bti, spec })
    }
}

/// Which buffer of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferId {
    /// An argument by its index, or a surface by its binding-table index.
    Index(u32),
    /// The `.input` variable of a vISA text that points to it.
    Input(String),
}

impl fmt::Display for BufferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BufferId::Index(index) => index.fmt(f),
            BufferId::Input(name) => f.write_str(name),
        }
    }
}

/// `BUFFER=REST`, where BUFFER is an index or the name of an input.
fn of_buffer<'a>(text: &'a str, form: &str) -> Result<(BufferId, &'a str), String> {
    match text.split_once('=') {
        Some((index, rest)) if is_number(index) => Ok((BufferId::Index(number(index)?), rest)),
        Some((name, rest)) if !name.is_empty() => Ok((BufferId::Input(name.to_owned()), rest)),
        _ => Err(format!("`{text}` is not of the form {form}")),
    }
}

/// `INDEX=PATH` of `--save`, or `NAME=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Save {
    /// The buffer.
    pub id: BufferId,
    /// Where to.
    pub path: PathBuf,
}

impl FromStr for Save {
    type Err = String;

    fn from_str(text: &str) -> Result<Save, String> {
        match of_buffer(text, "INDEX=PATH")? {
            (_, "") => Err(format!("`{text}` names no file: write INDEX=PATH")),
            (id, path) => Ok(Save {
                id,
                path: path.into(),
            }),
        }
    }
}

/// `INDEX=TYPE:COUNT` of `--print`, or `NAME=TYPE:COUNT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Print {
    /// The buffer.
    pub id: BufferId,
    /// Element type.
    pub ty: ElementType,
    /// Elements.
    pub count: u64,
}

impl FromStr for Print {
    type Err = String;

    fn from_str(text: &str) -> Result<Print, String> {
        const FORM: &str = "INDEX=TYPE:COUNT";
        let (id, what) = of_buffer(text, FORM)?;
        let Some((ty, n)) = what.split_once(':') else {
            return Err(format!("`{text}` is not of the form {FORM}"));
        };
        let ty = element(ty)?;
        let count = sized(ty, n)?;
        Ok(Print { id, ty, count })
    }
}

/// `INDEX=REST`.
fn indexed<'a>(text: &'a str, form: &str) -> Result<(u32, &'a str), String> {
    match text.split_once('=') {
        Some((index, rest)) if is_number(index) => Ok((number(index)?, rest)),
        _ => Err(format!("`{text}` is not of the form {form}")),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("index {text} is too large"))
}

/// `X[,Y[,Z]]` of `--global` and `--local`: sizes, of which those left out are 1, and how many are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent(pub [u32; 3], pub u8);

impl FromStr for Extent {
    type Err = String;

    fn from_str(text: &str) -> Result<Extent, String> {
        let mut extent = [1; 3];
        let mut places = extent.iter_mut();
        let mut given = 0_u8;
        for part in text.split(',') {
            let Some(place) = places.next() else {
                return Err(format!("`{text}` has more than three dimensions"));
            };
            let size = parse_count(part)
                .map_err(|_| format!("`{text}` is not of the form X[,Y[,Z]] with whole numbers"))?;
            *place = u32::try_from(size)
                .map_err(|_| format!("{size} is too large (at most {})", u32::MAX))?;
            given = given.saturating_add(1);
        }
        Ok(Extent(extent, given))
    }
}

/// A length of time in seconds, above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seconds(pub Duration);

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seconds, String> {
        let seconds: Option<f64> = text.parse().ok().filter(|s| *s > 0.0);
        let time = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
        time.map(Seconds)
            .ok_or_else(|| format!("`{text}` is not a number of seconds above zero"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use visa_test_common::Rng;

    fn read(text: &str) -> Spec {
        text.parse().unwrap()
    }

    fn error(text: &str) -> String {
        text.parse::<Spec>().unwrap_err()
    }

    #[test]
    fn every_form() {
        let scalar = |ty, text| Scalar::parse(ty, text).unwrap();
        let (f32, u8) = (ElementType::F32, ElementType::U8);
        assert_eq!(
            read("f32:1.5,-2"),
            Spec::Values(f32, vec![scalar(f32, "1.5"), scalar(f32, "-2")])
        );
        assert_eq!(read("file:a:b=c.npy"), Spec::File("a:b=c.npy".into()));
        assert_eq!(read("zero:16"), Spec::Zero(16));
        assert_eq!(read("uninit:16"), Spec::Uninit(16));
        assert_eq!(read("fill:u8:0xff:3"), Spec::Fill(scalar(u8, "255"), 3));
        assert_eq!(read("iota:f32:4"), Spec::Iota(f32, 4));
        assert_eq!(
            read("rand:u8:4:99"),
            Spec::Rand {
                ty: u8,
                count: 4,
                seed: 99
            }
        );
        let spec = read("read-only:iota:f32:4");
        assert_eq!(spec, Spec::ReadOnly(Box::new(Spec::Iota(f32, 4))));
        assert_eq!((spec.element_type(), spec.noun()), (Some(f32), "a buffer"));
        assert_eq!(read("local:64"), Spec::Local(64));
        assert_eq!(read("null"), Spec::Null);
    }

    const NOT_A_SPEC: &str = "is not a SPEC; write TYPE:VALUE (such as f32:2.5), file:PATH, zero:BYTES, uninit:BYTES, \
        fill:TYPE:VALUE:COUNT, iota:TYPE:COUNT, rand:TYPE:COUNT:SEED, read-only:SPEC, local:BYTES, \
         image2d:FORMAT:WxH[:PATH], sampler:ADDRESS or null";

    #[test]
    fn every_error() {
        for text in ["", "7", "nul", "float:1", "f128:1", ":", "NULL"] {
            assert_eq!(error(text), format!("`{text}` {NOT_A_SPEC}"));
        }
        for (text, what) in [
            ("read-only:u8:1", "a value"),
            ("read-only:local:4", "local memory"),
            ("read-only:null", "a null pointer"),
        ] {
            let wanted = format!("`{text}` is {what}, and read-only: needs a buffer");
            assert_eq!(error(text), wanted);
        }
        assert_eq!(
            error("read-only:read-only:zero:4"),
            "`read-only:read-only:zero:4` says read-only twice"
        );
        assert_eq!(error("file:"), "file: needs a path: file:PATH");
        assert_eq!(error("f32:"), "`` is not a number of type f32");
        assert_eq!(
            error("u8:1,,2"),
            "`` is not an integer (decimal, 0x… or 0b…)"
        );
        assert_eq!(error("u8:300"), "`300` does not fit u8 (0 to 255)");
        assert_eq!(error("zero:x"), "`x` is not a whole number");
        assert_eq!(
            error("zero:1:2"),
            "`zero:1:2` is not of the form zero:BYTES"
        );
        assert_eq!(
            error("fill:f32:1"),
            "`fill:f32:1` is not of the form fill:TYPE:VALUE:COUNT"
        );
        assert_eq!(
            error("fill:float:1:2"),
            "unknown element type `float`: expected i8, u8, i16, u16, i32, u32, i64, u64, f16, f32 or f64"
        );
        assert_eq!(
            error("iota:f32"),
            "`iota:f32` is not of the form iota:TYPE:COUNT"
        );
        assert_eq!(
            error("iota:f64:0x4000000000000000"),
            "4611686018427387904 elements of f64 are more than memory can hold"
        );
        assert_eq!(
            error("rand:f32:4"),
            "`rand:f32:4` is not of the form rand:TYPE:COUNT:SEED"
        );
        assert_eq!(
            error("rand:f32:4:-1"),
            "`-1` is out of range (0 to 18446744073709551615)"
        );
        assert_eq!(
            error("local:4294967296"),
            "local:4294967296 is too large (at most 4294967295 bytes)"
        );
    }

    #[test]
    fn an_index_is_digits_before_an_equals_sign() {
        let read = |text: &str| text.parse::<ArgSpec>();
        assert_eq!(read("3=null").unwrap().index, Some(3));
        assert_eq!(read("null").unwrap().index, None);
        let path = read("file:x=1").unwrap();
        assert_eq!((path.index, path.spec), (None, Spec::File("x=1".into())));
        assert_eq!(
            read("99999999999=null").unwrap_err(),
            "index 99999999999 is too large"
        );
        assert_eq!(
            read("x=null").unwrap_err(),
            format!("`x=null` {NOT_A_SPEC}")
        );
    }

    #[test]
    fn the_other_pairs() {
        let save = "1=out.npy".parse::<Save>().unwrap();
        assert_eq!(
            (save.id, save.path),
            (BufferId::Index(1), PathBuf::from("out.npy"))
        );
        let error = |text: &str| text.parse::<Save>().unwrap_err();
        assert_eq!(error("out.npy"), "`out.npy` is not of the form INDEX=PATH");
        assert_eq!(error("1="), "`1=` names no file: write INDEX=PATH");

        let print = "2=u16:8".parse::<Print>().unwrap();
        assert_eq!(
            (print.id, print.ty, print.count),
            (BufferId::Index(2), ElementType::U16, 8)
        );
        let error = |text: &str| text.parse::<Print>().unwrap_err();
        assert_eq!(
            error("2=u16"),
            "`2=u16` is not of the form INDEX=TYPE:COUNT"
        );
        assert_eq!(
            error("u16:8"),
            "`u16:8` is not of the form INDEX=TYPE:COUNT"
        );
        assert_eq!(error("2=u16:x"), "`x` is not a whole number");

        let surface = "0=zero:4".parse::<SurfaceSpec>().unwrap();
        assert_eq!((surface.bti, surface.spec), (0, Spec::Zero(4)));
        let error = "zero:4".parse::<SurfaceSpec>().unwrap_err();
        assert_eq!(error, "`zero:4` is not of the form BTI=SPEC");

        let input = "V0040=u32:4".parse::<NamedSpec>().unwrap();
        assert_eq!(input.name, "V0040");
        let error = "=u32:4".parse::<NamedSpec>().unwrap_err();
        assert_eq!(
            error,
            "`=u32:4` is not of the form NAME=SPEC or NAME=buffer:SPEC"
        );
    }

    #[test]
    fn extents() {
        let read = |text: &str| text.parse::<Extent>().map(|extent| extent.0);
        assert_eq!(read("7"), Ok([7, 1, 1]));
        assert_eq!(read("0,0x10,3"), Ok([0, 16, 3]));
        assert_eq!(
            read("1,2,3,4").unwrap_err(),
            "`1,2,3,4` has more than three dimensions"
        );
        assert_eq!(
            read("1,,2").unwrap_err(),
            "`1,,2` is not of the form X[,Y[,Z]] with whole numbers"
        );
        assert_eq!(
            read("4294967296").unwrap_err(),
            "4294967296 is too large (at most 4294967295)"
        );
    }

    /// Any value but NaN, whose payload has no text.
    fn scalar_of(rng: &mut Rng, ty: ElementType) -> Scalar {
        loop {
            let value = Scalar::from_bits(ty, rng.bits());
            if value.to_string() != "NaN" {
                return value;
            }
        }
    }

    fn text_of(rng: &mut Rng, letters: &str, longest: usize) -> String {
        let letters: Vec<char> = letters.chars().collect();
        let count = rng.below(longest + 1);
        (0..count).map(|_| *rng.pick(&letters)).collect()
    }

    /// Numbers of all magnitudes, 0 and the largest among them.
    fn number(rng: &mut Rng, bits: u32) -> u64 {
        let shift = u64::BITS - bits + rng.below(bits as usize + 1) as u32;
        u64::MAX.checked_shr(shift).unwrap_or(0)
            & (rng.bits() | (u64::from(rng.chance(10)) * u64::MAX))
    }

    fn spec(rng: &mut Rng) -> Spec {
        let ty = *rng.pick(&ElementType::all().collect::<Vec<_>>());
        match rng.below(8) {
            0 => {
                let count = 1 + rng.below(5);
                Spec::Values(ty, (0..count).map(|_| scalar_of(rng, ty)).collect())
            }
            1 => Spec::Fill(scalar_of(rng, ty), number(rng, 40)),
            2 => Spec::Rand {
                ty,
                count: number(rng, 40),
                seed: number(rng, 64),
            },
            3 => Spec::File(format!("a{}", text_of(rng, "az09/.:=,", 20)).into()),
            4 => Spec::Zero(number(rng, 64)),
            5 => Spec::Iota(ty, number(rng, 40)),
            6 => Spec::Local(number(rng, 32) as u32),
            _ => Spec::Null,
        }
    }

    #[test]
    fn text_reads_back() {
        let mut rng = Rng::new(1);
        for _ in 0..2000 {
            let spec = spec(&mut rng);
            assert_eq!(spec.to_string().parse::<Spec>(), Ok(spec));
        }
    }

    #[test]
    fn any_text_is_read_or_refused() {
        let mut rng = Rng::new(2);
        for _ in 0..2000 {
            let text = text_of(
                &mut rng,
                "az:=,.-+ 0123456789xbefi[]{}\"'\\é🦀\u{a0}\u{301}",
                24,
            );
            let _ = text.parse::<Spec>();
            let _ = text.parse::<ArgSpec>();
            let _ = text.parse::<Print>();
            let _ = text.parse::<Extent>();
        }
    }

    #[test]
    fn near_specs_are_read_or_refused() {
        let mut rng = Rng::new(3);
        let names = [
            "fill", "iota", "rand", "zero", "local", "file", "f32", "u8", "i64", "image2d",
            "sampler",
        ];
        let mut taken = 0;
        for _ in 0..4000 {
            let mut text = (*rng.pick(&names)).to_owned();
            for _ in 0..rng.below(5) {
                text.push(':');
                match rng.chance(30) {
                    true => text.push_str(rng.pick::<&str>(&names)),
                    false => text.push_str(&text_of(&mut rng, "-0123456789afx.,", 6)),
                }
            }
            taken += usize::from(text.parse::<Spec>().is_ok());
        }
        assert!(taken > 200, "{taken}");
    }
}
