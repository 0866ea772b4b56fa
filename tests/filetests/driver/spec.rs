//! Directives: comment lines `// name arguments: value`.

use std::collections::BTreeMap;

use visa_jit::backend::OobPolicy;
use visa_jit::isa::Platform;

use visa_runtime::{Addressing, Comparison, ImageKind, ImageShape, SamplerState};

use super::data::{Type, array, values};

/// A surface before the launch.
#[derive(Clone, Debug)]
pub struct Surface {
    pub bytes: Vec<u8>,
    /// What is in it, if it is an image.
    pub image: Option<ImageShape>,
}

/// Bytes of an `.input`.
#[derive(Clone, Debug)]
pub enum Input {
    Bytes(Vec<u8>),
    /// Flat address of a surface, plus an offset.
    Address(u32, i64),
}

/// Expected contents of a part of a surface.
#[derive(Clone, Debug)]
pub struct Expect {
    /// Line of the directive.
    pub line: usize,
    /// Only on this platform.
    pub platform: Option<Platform>,
    pub surface: u32,
    /// First byte.
    pub at: usize,
    /// Units in the last place that floats may differ by.
    pub within: u64,
    pub ty: Type,
    /// `None`: as before the launch.
    pub bytes: Option<Vec<u8>>,
}

/// Expected fault records.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Number under `report`.
    pub count: u64,
    /// Fields of the first record, `name=value`.
    pub first: Vec<(String, String)>,
}

/// All directives of a file.
#[derive(Clone, Debug)]
pub struct Spec {
    pub platforms: Vec<Platform>,
    pub policies: Vec<OobPolicy>,
    /// Names of the engines to run on; empty for all.
    pub engines: Vec<String>,
    /// Instructions that the interpreter gives each hardware thread, if not the usual number.
    pub fuel: Option<u64>,
    pub global: [u32; 3],
    pub local: Option<[u32; 3]>,
    pub surfaces: BTreeMap<u32, Surface>,
    pub samplers: BTreeMap<u32, SamplerState>,
    pub inputs: Vec<(String, Input)>,
    pub expects: Vec<Expect>,
    pub faults: Option<Faults>,
    pub errors: Vec<String>,
}

const NAMES: [&str; 13] = [
    "platform", "policy", "engine", "fuel", "global", "local", "surface", "image", "sampler",
    "input", "expect", "faults", "error",
];

const POLICIES: [(&str, OobPolicy); 3] = [
    ("zero", OobPolicy::ReadZeroSkipWrite),
    ("trap", OobPolicy::Trap),
    ("report", OobPolicy::Report),
];

/// Reads all directives of a file.
pub fn parse(text: &str) -> Result<Spec, String> {
    let mut spec = Spec {
        platforms: Platform::ALL.to_vec(),
        policies: POLICIES.map(|p| p.1).to_vec(),
        engines: Vec::new(),
        fuel: None,
        global: [1; 3],
        local: None,
        surfaces: BTreeMap::new(),
        samplers: BTreeMap::new(),
        inputs: Vec::new(),
        expects: Vec::new(),
        faults: None,
        errors: Vec::new(),
    };
    for (n, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            continue;
        };
        let Some((head, value)) = comment.split_once(':') else {
            continue;
        };
        let words: Vec<&str> = head.split_whitespace().collect();
        if let Some((name, args)) = words.split_first()
            && NAMES.contains(name)
        {
            directive(&mut spec, n + 1, name, args, value.trim())
                .map_err(|e| format!("line {}: {e}", n + 1))?;
        }
    }
    if spec.expects.is_empty() && spec.errors.is_empty() && spec.faults.is_none() {
        return Err("nothing is expected: no `expect`, `faults` or `error`".into());
    }
    Ok(spec)
}

fn directive(
    spec: &mut Spec,
    line: usize,
    name: &str,
    args: &[&str],
    value: &str,
) -> Result<(), String> {
    match (name, args) {
        ("platform", []) => {
            let platforms: Result<_, _> = value.split_whitespace().map(str::parse).collect();
            spec.platforms = platforms?;
        }
        ("policy", []) => {
            let find = |w: &str| POLICIES.iter().find(|p| p.0 == w).map(|p| p.1);
            let policies: Option<Vec<_>> = value.split_whitespace().map(find).collect();
            spec.policies = policies.ok_or("expected zero, trap or report")?;
        }
        ("engine", []) => spec
            .engines
            .extend(value.split_whitespace().map(str::to_owned)),
        ("fuel", []) => spec.fuel = Some(number(value)?.into()),
        ("global", []) => spec.global = three(value)?,
        ("local", []) => spec.local = Some(three(value)?),
        ("surface", [index]) => {
            let (_, bytes) = typed(value)?;
            let bytes = bytes.ok_or("a surface needs values")?;
            let image = None;
            spec.surfaces
                .insert(number(index)?, Surface { bytes, image });
        }
        ("image", [index, kind, format, size]) => {
            let (_, bytes) = typed(value)?;
            let bytes = bytes.ok_or("an image needs values")?;
            let shape = image_shape(kind, format, size)?;
            if shape.bytes() != Some(bytes.len() as u64) {
                return Err(format!("{} bytes for {shape:?}", bytes.len()));
            }
            let image = Some(shape);
            spec.surfaces
                .insert(number(index)?, Surface { bytes, image });
        }
        ("sampler", [index]) => {
            spec.samplers.insert(number(index)?, sampler(value)?);
        }
        ("input", [var]) => spec.inputs.push(((*var).to_owned(), input(value)?)),
        ("expect", ["surface", index, rest @ ..]) => {
            let mut expect = Expect {
                line,
                platform: None,
                surface: number(index)?,
                at: 0,
                within: 0,
                ty: Type::parse("u8")?,
                bytes: None,
            };
            for pair in rest.chunks(2) {
                match pair {
                    ["on", platform] => expect.platform = Some(platform.parse()?),
                    ["within", units] => expect.within = number(units)?.into(),
                    ["at", byte] => expect.at = number(byte)? as usize,
                    _ => return Err(format!("unknown part `{}` of expect", pair.join(" "))),
                }
            }
            if value != "unchanged" {
                (expect.ty, expect.bytes) = typed(value)?;
            }
            spec.expects.push(expect);
        }
        ("faults", []) => {
            let mut words = value.split_whitespace();
            let mut faults = Faults {
                count: u64::from(number(words.next().unwrap_or(""))?),
                first: Vec::new(),
            };
            for w in words {
                let (k, v) = w
                    .split_once('=')
                    .ok_or_else(|| format!("`{w}`: expected name=value"))?;
                faults.first.push((k.to_owned(), v.to_owned()));
            }
            spec.faults = Some(faults);
        }
        ("error", []) => spec.errors.push(value.to_owned()),
        _ => return Err(format!("bad arguments of `{name}`")),
    }
    Ok(())
}

/// `image2d rgba8unorm 4x3`.
fn image_shape(kind: &str, format: &str, size: &str) -> Result<ImageShape, String> {
    use ImageKind::{Buffer, D1, D1Array, D2, D2Array, D3};
    let kinds = [D1, D1Array, Buffer, D2, D2Array, D3];
    let known = kinds.into_iter().find(|k| k.name() == kind);
    let mut extent = [1; 3];
    for (to, from) in extent.iter_mut().zip(size.split('x')) {
        *to = number(from)?;
    }
    Ok(ImageShape {
        kind: known.ok_or_else(|| format!("unknown kind `{kind}`"))?,
        format: format.parse().map_err(|e| format!("{e}"))?,
        extent,
    })
}

/// An address mode, then `linear`, `normalized` and a comparison.
fn sampler(text: &str) -> Result<SamplerState, String> {
    let mut state = SamplerState::default();
    for word in text.split_whitespace() {
        match word {
            "none" => state.addressing = Addressing::None,
            "clamp" => state.addressing = Addressing::Border,
            "clamp_to_edge" => state.addressing = Addressing::Edge,
            "repeat" => state.addressing = Addressing::Repeat,
            "mirrored_repeat" => state.addressing = Addressing::Mirror,
            "linear" => state.linear = true,
            "normalized" => state.normalized = true,
            _ => match Comparison::from_name(word) {
                Some(comparison) => state.comparison = comparison,
                None => return Err(format!("`{word}` says nothing of a sampler")),
            },
        }
    }
    Ok(state)
}

fn number(text: &str) -> Result<u32, String> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    }
    .map_err(|_| format!("`{text}` is no number"))
}

fn three(text: &str) -> Result<[u32; 3], String> {
    let mut out = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("more than three dimensions".into());
    }
    for (o, p) in out.iter_mut().zip(parts) {
        *o = number(p.trim())?;
    }
    Ok(out)
}

/// `TYPE[COUNT] = values`.
fn typed(text: &str) -> Result<(Type, Option<Vec<u8>>), String> {
    let (head, list) = text
        .split_once('=')
        .ok_or("expected TYPE[COUNT] = values")?;
    let (ty, count) = array(head.trim())?;
    Ok((ty, Some(values(ty, count, list)?)))
}

/// `TYPE values…`, or `address SURFACE [± offset]`.
fn input(text: &str) -> Result<Input, String> {
    let (head, rest) = text.split_once(' ').ok_or("expected TYPE values")?;
    if head == "address" {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let offset = match words.get(1) {
            Some(t) => t.parse().map_err(|_| format!("`{t}` is no offset"))?,
            None => 0,
        };
        return Ok(Input::Address(
            number(words.first().unwrap_or(&""))?,
            offset,
        ));
    }
    let ty = Type::parse(head)?;
    let mut bytes = Vec::new();
    for word in rest.split_whitespace() {
        bytes.extend(ty.value(word)?);
    }
    Ok(Input::Bytes(bytes))
}
