//! From modules to bytes.

use super::codec::{Codec, length, narrow};
use super::error::{BinaryError, Problem, Walk};
use super::{Format, MAGIC, WRITTEN, tables, walk};
use crate::isa::Platform;
use crate::module::*;
use std::collections::HashMap;

/// Longest string that the vendor's tools read, with its end.
const STRING_BYTES: usize = 1024;

/// Writes modules as a file: kernels, and functions that these call.
///
/// The `platform` is needed where the format has rows of registers for offsets and these do not fit otherwise.
///
/// # Errors
/// The first instruction or declaration that the format has no place for.
pub fn write(modules: &[Module], platform: Option<Platform>) -> Result<Vec<u8>, BinaryError> {
    write_version(modules, platform, WRITTEN)
}

/// The same in another version.
pub(super) fn write_version(
    modules: &[Module],
    platform: Option<Platform>,
    version: (u8, u8),
) -> Result<Vec<u8>, BinaryError> {
    let format = Format {
        version,
        grf: platform.map(Platform::grf_bytes),
    };
    let of = |kind| modules.iter().filter(move |m| m.kind == kind);
    let mut parts = Vec::new();
    for module in of(ModuleKind::Kernel).chain(of(ModuleKind::Function)) {
        parts.push((module, part(module, format)?));
    }
    file(format, &parts).map_err(|problem| problem.at(None, ""))
}

/// A module's bytes, and where in them its inputs are.
struct Part {
    bytes: Vec<u8>,
    inputs: usize,
}

fn file(format: Format, parts: &[(&Module, Part)]) -> Walk<Vec<u8>> {
    // The first run finds out how long the header is.
    let mut start = header(format, parts, 0)?.len();
    let mut out = header(format, parts, start)?;
    for (_, part) in parts {
        out.extend_from_slice(&part.bytes);
        start = start.saturating_add(part.bytes.len());
    }
    match u32::try_from(start) {
        Ok(_) => Ok(out),
        Err(_) => Err(Problem::limit("more than 4 GiB")),
    }
}

fn header(format: Format, parts: &[(&Module, Part)], start: usize) -> Walk<Vec<u8>> {
    let mut out = MAGIC.to_vec();
    out.extend([format.version.0, format.version.1]);
    let mut at = start;
    for kind in [ModuleKind::Kernel, ModuleKind::Function] {
        let group = parts.iter().filter(|(m, _)| m.kind == kind);
        let count = length("modules", group.clone().count())?;
        let count: u16 = narrow("the number of modules", count)?;
        if kind == ModuleKind::Function {
            // No variables that all share.
            out.extend([0, 0]);
        }
        out.extend(count.to_le_bytes());
        for (module, part) in group {
            if kind == ModuleKind::Function {
                out.push(0);
            }
            let name = length("bytes of a name", module.name.len())?;
            if format.long_names() {
                out.extend(narrow::<u16>("the length of a name", name)?.to_le_bytes());
            } else {
                out.push(narrow("the length of a name", name)?);
            }
            out.extend(module.name.as_bytes());
            let size = length("bytes", part.bytes.len())?;
            out.extend(length("bytes", at)?.to_le_bytes());
            out.extend(size.to_le_bytes());
            if kind == ModuleKind::Kernel {
                let inputs = length("bytes", at.saturating_add(part.inputs))?;
                out.extend(inputs.to_le_bytes());
            }
            // No relocations, and of a kernel no native code.
            out.extend([0; 4]);
            if kind == ModuleKind::Kernel {
                out.push(0);
            }
            at = at.saturating_add(part.bytes.len());
        }
    }
    Ok(out)
}

fn part(module: &Module, format: Format) -> Result<Part, BinaryError> {
    let place = match module.kind {
        ModuleKind::Kernel => format!("kernel `{}`", module.name),
        ModuleKind::Function => format!("function `{}`", module.name),
    };
    let mut writer = Writer {
        out: Vec::new(),
        strings: HashMap::new(),
        pool: Vec::new(),
        module,
        format,
    };
    let tables = writer.begin().and_then(|()| writer.tables());
    let (inputs, sizes) = match tables {
        Ok(found) => found,
        Err(problem) => return Err(problem.at(None, place)),
    };
    let entry = writer.out.len();
    for (index, inst) in module.insts.iter().enumerate() {
        let written = walk::walk(&mut writer, &mut inst.clone());
        written.map_err(|problem| {
            let name = inst.mnemonic();
            let line = match inst.pos.line {
                0 => String::new(),
                line => format!(", line {line}"),
            };
            let message = format!(
                "`{name}` cannot be written as binary vISA: {}",
                problem.message
            );
            let place = format!("{place}, instruction {index}{line}");
            Problem { message, ..problem }.at(None, place)
        })?;
    }
    let finished = writer.finish(inputs, sizes, entry);
    finished.map_err(|problem| problem.at(None, place))
}

struct Writer<'m> {
    /// What follows the pool of strings.
    out: Vec<u8>,
    strings: HashMap<String, u32>,
    pool: Vec<u8>,
    module: &'m Module,
    format: Format,
}

impl Writer<'_> {
    /// Strings that have to have small numbers: the empty one, and names of functions in instructions.
    fn begin(&mut self) -> Walk {
        if !self.module.functions.is_empty() {
            return Err(Problem::unwritable("a module with functions linked in"));
        }
        self.number("")?;
        let module = self.module;
        for inst in &module.insts {
            match &inst.body {
                Body::Fcall { name, .. } | Body::Faddr { name, .. } => self.number(name)?,
                _ => 0,
            };
        }
        Ok(())
    }

    /// The number of a string.
    fn number(&mut self, text: &str) -> Walk<u32> {
        if let Some(number) = self.strings.get(text) {
            return Ok(*number);
        }
        if text.len() >= STRING_BYTES || text.contains('\0') {
            return Err(Problem::unwritable(format!(
                "a name of {} bytes, or with a zero inside; names have less than {STRING_BYTES}",
                text.len()
            )));
        }
        let number = length("strings", self.strings.len())?;
        self.strings.insert(text.to_owned(), number);
        self.pool.extend(text.as_bytes());
        self.pool.push(0);
        Ok(number)
    }

    /// Everything in front of the instructions; gives where inputs and sizes are.
    fn tables(&mut self) -> Walk<(usize, usize)> {
        let module = self.module;
        self.string(&mut module.name.clone(), false)?;
        let mut vars = module.vars.clone();
        tables::general(self, &mut vars.general)?;
        for (list, what) in [
            (&mut vars.address, "address variables"),
            (&mut vars.predicate, "predicates"),
        ] {
            let mut count = length(what, list.len())?;
            self.medium(what, &mut count)?;
            tables::others(self, list, count, u32::MAX, what)?;
        }
        tables::labels(self, &mut module.labels.clone())?;
        vars.sampler.retain(|s| !s.predefined);
        for (list, what) in [
            (&mut vars.sampler, "samplers"),
            (&mut vars.surface, "surfaces"),
        ] {
            let mut count = length(what, list.len())?;
            self.small(what, &mut count)?;
            tables::others(self, list, count, u32::MAX, what)?;
        }
        self.ignored()?;
        let inputs = self.out.len();
        match module.kind {
            ModuleKind::Kernel => tables::inputs(self, &mut module.inputs.clone())?,
            ModuleKind::Function if module.inputs.is_empty() => {}
            ModuleKind::Function => return Err(Problem::unwritable("inputs of a function")),
        }
        let sizes = self.out.len();
        self.u64(&mut 0)?;
        if module.kind == ModuleKind::Function {
            for name in ["ArgSize", "RetValSize"] {
                let registers = module.int_attr(name).unwrap_or(0);
                let mut registers = u32::try_from(registers).unwrap_or(u32::MAX);
                self.small(name, &mut registers)?;
            }
        }
        tables::attrs(self, &mut module.attrs.clone(), false)?;
        Ok((inputs, sizes))
    }

    /// Puts the pool of strings in front, and says where the instructions are.
    fn finish(self, inputs: usize, sizes: usize, entry: usize) -> Walk<Part> {
        let count = length("strings", self.strings.len())?;
        let mut bytes = count.to_le_bytes().to_vec();
        bytes.extend(&self.pool);
        let front = bytes.len();
        let size = length("bytes", self.out.len().saturating_sub(entry))?;
        let entry = length("bytes", entry.saturating_add(front))?;
        let (before, behind) = self.out.split_at_checked(sizes).unwrap_or((&self.out, &[]));
        bytes.extend(before);
        bytes.extend(size.to_le_bytes());
        bytes.extend(entry.to_le_bytes());
        bytes.extend(behind.get(8..).unwrap_or(&[]));
        Ok(Part {
            bytes,
            inputs: inputs.saturating_add(front),
        })
    }
}

impl Codec for Writer<'_> {
    fn reading(&self) -> bool {
        false
    }

    fn format(&self) -> Format {
        self.format
    }

    fn vars(&self) -> &Vars {
        &self.module.vars
    }

    fn bytes<const N: usize>(&mut self, value: &mut [u8; N]) -> Walk {
        self.out.extend_from_slice(value);
        Ok(())
    }

    fn string(&mut self, text: &mut String, short: bool) -> Walk {
        let mut number = self.number(text)?;
        match short {
            true => self.medium("the number of a string", &mut number),
            false => self.u32(&mut number),
        }
    }

    fn label(&mut self, id: &mut LabelId) -> Walk {
        self.medium("the number of a label", &mut id.0)?;
        let label = self.module.labels.get(id.0 as usize);
        let name = label.map(|l| l.name.len());
        self.known("label", id.0, name)
    }

    fn mention(&mut self, _: usize) -> Walk {
        Ok(())
    }

    fn sampler_of(&mut self, _: u8, _: &mut SamplerId) -> Walk {
        Ok(())
    }
}
