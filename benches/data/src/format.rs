//! The files: read with serde, then checked against themselves.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use crate::compare::Tolerance;
use crate::content::{Fill, Type, columns};

/// What a driver must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Doubles.
    Fp64,
    /// Halves.
    Fp16,
    /// Sub-groups.
    Subgroups,
    /// Images.
    Images,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    about: String,
    kind: String,
    #[serde(default)]
    options: String,
    #[serde(default)]
    needs: Vec<Need>,
    rounds: Option<Spanned<usize>>,
    buffer: Vec<RawBuffer>,
    launch: Vec<RawLaunch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBuffer {
    name: Spanned<String>,
    #[serde(rename = "type")]
    ty: Spanned<String>,
    count: Option<Spanned<usize>>,
    like: Option<Spanned<String>>,
    image: Option<Spanned<[usize; 2]>>,
    fill: Spanned<String>,
    seed: Option<u64>,
    #[serde(default)]
    output: bool,
    tolerance: Option<Spanned<String>>,
    #[serde(default)]
    restore: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLaunch {
    kernel: Spanned<String>,
    global: Spanned<Vec<usize>>,
    local: Option<Spanned<Vec<usize>>>,
    args: Vec<Spanned<String>>,
    repeat: Option<Spanned<usize>>,
    #[serde(default)]
    setup: bool,
}

/// Memory of a case.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// What arguments call it.
    pub name: String,
    /// Of an element.
    pub ty: Type,
    /// Width and height in pixels of four elements, where it is an image.
    pub image: Option<[usize; 2]>,
    /// It is compared.
    pub output: bool,
    /// How near a result has to be.
    pub tolerance: Tolerance,
    /// It is written anew before each run, as runs change it.
    pub restore: bool,
    fill: Fill,
    count: Count,
    seed: u64,
}

#[derive(Clone, Debug)]
enum Count {
    Number(usize),
    /// As many elements as the buffer of this number.
    Like(usize),
    /// As the rows of that buffer have.
    Columns(usize),
}

/// What a kernel is given.
#[derive(Clone, Debug)]
pub enum Argument {
    /// Buffers by number; the launches take them in turn.
    Buffer(Vec<usize>),
    /// Bytes of numbers; the launches take them in turn.
    Value(Vec<Vec<u8>>),
    /// A number that counts launches: its type, the first, and the step.
    Counter(Type, i64, i64),
    /// Local memory, in bytes.
    Local(usize),
}

/// What a kernel is given in one launch.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<'a> {
    /// A buffer by number.
    Buffer(usize),
    /// The bytes of a number.
    Value(std::borrow::Cow<'a, [u8]>),
    /// Local memory, in bytes.
    Local(usize),
}

impl Argument {
    /// That of the launch of this number.
    pub fn at(&self, number: usize) -> Step<'_> {
        match self {
            Argument::Buffer(all) => Step::Buffer(all[number % all.len()]),
            Argument::Value(all) => Step::Value((&all[number % all.len()][..]).into()),
            Argument::Local(bytes) => Step::Local(*bytes),
            Argument::Counter(ty, start, step) => {
                let value = start + step * number as i64;
                Step::Value(value.to_le_bytes()[..ty.bytes()].to_vec().into())
            }
        }
    }
}

/// Launches of one kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel's name.
    pub kernel: String,
    /// Work-items.
    pub global: Vec<usize>,
    /// Work-items of a group, where it is not the driver's choice.
    pub local: Option<Vec<usize>>,
    /// In the kernel's order.
    pub args: Vec<Argument>,
    /// Number of launches, one after the other.
    pub repeat: usize,
    /// It prepares a run, and its time does not count.
    pub setup: bool,
}

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of its files.
    pub name: String,
    /// What it does, in a line.
    pub about: String,
    /// The kind of work.
    pub kind: String,
    /// OpenCL C.
    pub source: String,
    /// Build options.
    pub options: String,
    /// What a driver must have.
    pub needs: Vec<Need>,
    /// How often the launches that are no set-up follow each other in one run.
    pub rounds: usize,
    /// Memory.
    pub buffers: Vec<Buffer>,
    /// In order.
    pub launches: Vec<Launch>,
}

/// Files of cases in a directory, by name.
///
/// # Errors
/// The directory cannot be read, or has no case.
pub fn cases_in(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let at = |error| format!("{}: {error}", dir.display());
    let entries = std::fs::read_dir(dir).map_err(|error| at(error.to_string()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut found: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    found.sort();
    match found.is_empty() {
        true => Err(at(
            "there is no case here: a .toml file and a .cl file of one name".to_owned(),
        )),
        false => Ok(found),
    }
}

/// Says of an error where it is.
struct Place<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Place<'_> {
    fn error(&self, span: Range<usize>, what: impl std::fmt::Display) -> String {
        let before = self.text.get(..span.start).unwrap_or("");
        let line = 1 + before.matches('\n').count();
        format!("{}:{line}: {what}", self.path.display())
    }

    fn of<T>(&self, spanned: &Spanned<T>, what: impl std::fmt::Display) -> String {
        self.error(spanned.span(), what)
    }
}

impl Case {
    /// Reads a case from its `.toml` file, and the `.cl` file beside it.
    ///
    /// # Errors
    /// File, line, and what is wrong there.
    pub fn read(path: &Path) -> Result<Case, String> {
        let file = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let text = file(path)?;
        let source = file(&path.with_extension("cl"))?;
        Case::parse(path, &text, source)
    }

    /// The same of texts; `path` is for the name and for errors.
    ///
    /// # Errors
    /// As [`Case::read`].
    pub fn parse(path: &Path, text: &str, source: String) -> Result<Case, String> {
        let place = Place { path, text };
        let raw: RawCase = toml::from_str(text)
            .map_err(|error| place.error(error.span().unwrap_or(0..0), error.message()))?;
        let mut buffers: Vec<Buffer> = Vec::new();
        for raw in &raw.buffer {
            let buffer = buffer(&place, raw, &buffers)?;
            buffers.push(buffer);
        }
        if !buffers.iter().any(|buffer| buffer.output) {
            return Err(place.error(
                0..0,
                "no buffer is an `output`, so that nothing would be compared",
            ));
        }
        let kernels = kernels(&source);
        let launches = raw
            .launch
            .iter()
            .map(|raw| launch(&place, raw, &buffers, &kernels));
        let launches: Vec<Launch> = launches.collect::<Result<_, _>>()?;
        if launches.iter().all(|launch| launch.setup) {
            return Err(place.error(0..0, "no launch would be timed"));
        }
        let rounds = positive(&place, raw.rounds.as_ref(), "rounds")?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Case {
            name: name.into_owned(),
            about: raw.about,
            kind: raw.kind,
            source,
            options: raw.options,
            needs: raw.needs,
            rounds,
            buffers,
            launches,
        })
    }

    /// First contents of the buffers.
    pub fn contents(&self) -> Vec<Vec<u8>> {
        let mut made: Vec<Vec<u8>> = Vec::new();
        for buffer in &self.buffers {
            let elements = |at: usize| made[at].len() / self.buffers[at].ty.bytes();
            let count = match buffer.count {
                Count::Number(count) => count,
                Count::Like(at) => elements(at),
                Count::Columns(at) => {
                    let ty = self.buffers[at].ty;
                    let rows = made[at].chunks_exact(ty.bytes());
                    let rows: Vec<usize> = rows.map(|b| ty.number(b) as usize).collect();
                    if let Fill::Columns(_, below) = buffer.fill {
                        made.push(columns(buffer.ty, &rows, below, buffer.seed));
                    }
                    continue;
                }
            };
            made.push(buffer.fill.make(buffer.ty, count, buffer.seed));
        }
        made
    }
}

fn positive(
    place: &Place<'_>,
    number: Option<&Spanned<usize>>,
    what: &str,
) -> Result<usize, String> {
    match number {
        Some(zero) if *zero.get_ref() == 0 => {
            Err(place.of(zero, format!("`{what}` should be above 0")))
        }
        number => Ok(number.map_or(1, |n| *n.get_ref())),
    }
}

fn buffer(place: &Place<'_>, raw: &RawBuffer, before: &[Buffer]) -> Result<Buffer, String> {
    let find = |name: &str| before.iter().position(|buffer| buffer.name == name);
    let name = raw.name.get_ref();
    if find(name).is_some() || name.contains([':', ' ', ',']) {
        return Err(place.of(
            &raw.name,
            format!("`{name}` is another buffer, or has one of `:, `"),
        ));
    }
    let ty = Type::parse(raw.ty.get_ref())
        .ok_or_else(|| place.of(&raw.ty, format!("there is no type `{}`", raw.ty.get_ref())))?;
    let fill = Fill::parse(raw.fill.get_ref()).map_err(|what| place.of(&raw.fill, what))?;
    let unknown =
        |at, name: &str| place.of(at, format!("no buffer before this is called `{name}`"));
    let count = match (&fill, &raw.count, &raw.like, &raw.image) {
        (Fill::Columns(rows, _), None, None, None) => {
            Count::Columns(find(rows).ok_or_else(|| unknown(&raw.fill, rows))?)
        }
        (Fill::Columns(..), ..) => {
            return Err(place.of(&raw.name, "the rows say how many columns there are"));
        }
        (_, Some(count), None, None) => Count::Number(positive(place, Some(count), "count")?),
        (_, None, Some(like), None) => {
            let name = like.get_ref();
            Count::Like(find(name).ok_or_else(|| unknown(like, name))?)
        }
        (_, None, None, Some(size)) => {
            let [width, height] = *size.get_ref();
            if width * height == 0 || !matches!(ty, Type::U8 | Type::F32) {
                return Err(place.of(
                    size,
                    "an image has a width, a height, and pixels of `u8` or `f32`",
                ));
            }
            Count::Number(4 * width * height)
        }
        _ => {
            return Err(place.of(
                &raw.name,
                "it should have one of `count`, `like` and `image`",
            ));
        }
    };
    let tolerance = match &raw.tolerance {
        Some(at) if !raw.output || !ty.is_float() && raw.image.is_none() => {
            return Err(place.of(at, "only outputs of floats have a tolerance"));
        }
        Some(text) => Tolerance::parse(text.get_ref()).map_err(|what| place.of(text, what))?,
        None => Tolerance::default(),
    };
    Ok(Buffer {
        name: name.clone(),
        ty,
        image: raw.image.as_ref().map(|size| *size.get_ref()),
        output: raw.output,
        tolerance,
        restore: raw.restore,
        fill,
        count,
        seed: raw.seed.unwrap_or(before.len() as u64 + 1),
    })
}

/// Names of the kernels of a source.
fn kernels(source: &str) -> BTreeSet<&str> {
    let words = source
        .match_indices("kernel ")
        .map(|(at, word)| &source[at + word.len()..]);
    let heads = words.filter_map(|rest| rest.split_once('('));
    heads
        .filter_map(|(head, _)| match head.contains("__attribute__") {
            // What stands between `kernel` and the name.
            true => None,
            false => head.split_whitespace().last(),
        })
        .chain(
            source.match_indices("void ").filter_map(|(at, word)| {
                source[at + word.len()..].split('(').next().map(str::trim)
            }),
        )
        .collect()
}

fn launch(
    place: &Place<'_>,
    raw: &RawLaunch,
    buffers: &[Buffer],
    kernels: &BTreeSet<&str>,
) -> Result<Launch, String> {
    let kernel = raw.kernel.get_ref();
    if !kernels.contains(kernel.as_str()) {
        return Err(place.of(&raw.kernel, format!("the source has no kernel `{kernel}`")));
    }
    let global = raw.global.get_ref().clone();
    if !(1..=3).contains(&global.len()) || global.contains(&0) {
        return Err(place.of(
            &raw.global,
            "`global` should have one to three sizes above 0",
        ));
    }
    if let Some(local) = &raw.local {
        let sizes = local.get_ref();
        let divide = |(all, one): (&usize, &usize)| *one > 0 && all % one == 0;
        if sizes.len() != global.len() || !global.iter().zip(sizes).all(divide) {
            return Err(place.of(local, "each size of `local` should divide that of `global`"));
        }
    }
    let args = raw
        .args
        .iter()
        .map(|text| argument(text.get_ref(), buffers).map_err(|what| place.of(text, what)));
    Ok(Launch {
        kernel: kernel.clone(),
        args: args.collect::<Result<_, _>>()?,
        global,
        local: raw.local.as_ref().map(|local| local.get_ref().clone()),
        repeat: positive(place, raw.repeat.as_ref(), "repeat")?,
        setup: raw.setup,
    })
}

/// `name`, `name, name`, `TYPE: number, number`, `TYPE: from START by STEP`, or `local: bytes`.
fn argument(text: &str, buffers: &[Buffer]) -> Result<Argument, String> {
    let Some((kind, rest)) = text.split_once(':') else {
        let find = |name: &str| {
            let found = buffers.iter().position(|buffer| buffer.name == name);
            found.ok_or(format!("there is no buffer `{name}`"))
        };
        let all = text.split(',').map(|name| find(name.trim()));
        return all.collect::<Result<_, _>>().map(Argument::Buffer);
    };
    if kind == "local" {
        let bytes = rest.trim().parse().ok().filter(|bytes| *bytes > 0);
        return bytes
            .map(Argument::Local)
            .ok_or("local memory has a number of bytes".to_owned());
    }
    let ty = Type::parse(kind).ok_or(format!("there is no type `{kind}`"))?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    if let ["from", start, "by", step] = words[..] {
        let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no integer"));
        return match ty.is_float() {
            true => Err("only integers count launches".to_owned()),
            false => Ok(Argument::Counter(ty, number(start)?, number(step)?)),
        };
    }
    let all = rest.split(',').map(|word| ty.literal(word.trim()));
    all.collect::<Result<_, _>>().map(Argument::Value)
}
