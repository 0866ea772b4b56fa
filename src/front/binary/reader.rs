//! From bytes to modules.
//!
//! What is read takes memory in proportion to the file: modules may not overlap, and names, of which a binary mentions one as often
//! as it likes, are accounted for as if written out.

use super::codec::Codec;
use super::error::{BinaryError, Fault, Problem, Walk};
use super::names::{BINDLESS, Names};
use super::{Format, MAGIC, VERSIONS, tables, walk};
use crate::isa::versions::OVERRIDE;
use crate::isa::{Opcode, Platform, Versions};
use crate::limits::{MAX_INSTS, MAX_NAME_BYTES, MAX_STRING_BYTES, MAX_TEXT_BYTES, MAX_VARS};
use crate::module::*;

/// A file's table of kernels or functions names one with its place.
struct Part<'d> {
    name: &'d str,
    kind: ModuleKind,
    start: usize,
    end: usize,
}

/// Reads the modules of a file of a known version: kernels, then functions, each in the order of the file's tables.
///
/// Some files hold offsets in rows of registers, whose size depends on the device. These need the `platform`.
///
/// # Errors
/// The first one that is found, with the byte where it is.
pub fn read(bytes: &[u8], platform: Option<Platform>) -> Result<Vec<Module>, BinaryError> {
    read_with(bytes, platform, Versions::Known)
}

/// The same of a file of any of these versions.
///
/// # Errors
/// As [`read`].
pub fn read_with(
    bytes: &[u8],
    platform: Option<Platform>,
    versions: Versions,
) -> Result<Vec<Module>, BinaryError> {
    let mut reader = Reader {
        data: bytes,
        at: 0,
        last: 0,
        end: bytes.len(),
        format: Format {
            version: (0, 0),
            grf: platform.map(Platform::grf_bytes),
        },
        strings: Vec::new(),
        module: Module::empty(),
        text: MAX_TEXT_BYTES,
        insts: MAX_INSTS,
    };
    let failed =
        |reader: &Reader<'_>, place: &str, problem: Problem| problem.at(Some(reader.last), place);
    let parts = reader.header(versions);
    let parts = parts.map_err(|problem| failed(&reader, "", problem))?;
    let functions = parts.iter().filter(|p| p.kind == ModuleKind::Function);
    let functions: Vec<String> = functions.map(|p| p.name.to_owned()).collect();
    let mut modules = Vec::new();
    for part in &parts {
        let place = match part.kind {
            ModuleKind::Kernel => format!("kernel `{}`", part.name),
            ModuleKind::Function => format!("function `{}`", part.name),
        };
        let read = reader.part(part);
        let insts = reader.module.insts.len();
        let module = read.map_err(|(problem, inside)| match inside {
            true => failed(&reader, &format!("{place}, instruction {insts}"), problem),
            false => failed(&reader, &place, problem),
        })?;
        modules.push(Module {
            funcdecls: match part.kind {
                ModuleKind::Kernel => functions.clone(),
                ModuleKind::Function => Vec::new(),
            },
            ..module
        });
    }
    Ok(modules)
}

struct Reader<'d> {
    data: &'d [u8],
    at: usize,
    /// Where the field starts that was read last.
    last: usize,
    /// Where the part ends that is being read.
    end: usize,
    format: Format,
    strings: Vec<&'d str>,
    module: Module,
    /// Bytes of text that the rest may become.
    text: usize,
    /// Instructions that the rest may have.
    insts: usize,
}

impl<'d> Reader<'d> {
    fn take(&mut self, count: usize) -> Walk<&'d [u8]> {
        let stop = self.at.checked_add(count).filter(|s| *s <= self.end);
        self.last = self.at;
        let found = stop.and_then(|stop| self.data.get(self.at..stop));
        let Some(found) = found else {
            return Err(Problem::malformed(format!(
                "the file or this part of it ends where {count} more bytes are expected"
            )));
        };
        self.at = self.at.saturating_add(count);
        Ok(found)
    }

    fn byte(&mut self) -> Walk<u8> {
        let mut value = 0;
        self.u8(&mut value)?;
        Ok(value)
    }

    fn word(&mut self) -> Walk<u16> {
        let mut value = 0;
        self.u16(&mut value)?;
        Ok(value)
    }

    fn dword(&mut self) -> Walk<usize> {
        let mut value = 0;
        self.u32(&mut value)?;
        Ok(value as usize)
    }

    /// The file's own header: version, kernels, functions.
    fn header(&mut self, versions: Versions) -> Walk<Vec<Part<'d>>> {
        if self.take(MAGIC.len())? != MAGIC {
            return Err(Problem::malformed("not binary vISA: it starts with `CISA`"));
        }
        let (major, minor) = (self.byte()?, self.byte()?);
        let [first, last] = VERSIONS;
        let Some(version) = versions.read_as((major, minor), VERSIONS) else {
            return Err(Problem::unsupported(format!(
                "binary vISA of version {major}.{minor} is not known; versions {}.{} to {}.{} are supported, and {OVERRIDE} reads \
                 it as the nearest of them",
                first.0, first.1, last.0, last.1
            )));
        };
        self.format.version = version;
        let mut parts = Vec::new();
        for _ in 0..self.word()? {
            let part = self.entry(ModuleKind::Kernel)?;
            parts.push(part);
            for _ in 0..self.byte()? {
                // Platform, offset and size of native code.
                self.take(9)?;
            }
        }
        if self.word()? != 0 {
            return Err(Problem::unsupported(
                "variables that a whole file shares are not supported",
            ));
        }
        for _ in 0..self.word()? {
            self.byte()?;
            let part = self.entry(ModuleKind::Function)?;
            parts.push(part);
        }
        self.disjoint(&parts)?;
        Ok(parts)
    }

    /// An entry of a table, up to what only kernels have.
    fn entry(&mut self, kind: ModuleKind) -> Walk<Part<'d>> {
        let length = match self.format.long_names() {
            true => usize::from(self.word()?),
            false => usize::from(self.byte()?),
        };
        let name = self.take(length)?;
        let name = text(name)?;
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(Problem::limit(format!(
                "a name of {} bytes; names have 1 to {MAX_NAME_BYTES}",
                name.len()
            )));
        }
        let (start, size) = (self.dword()?, self.dword()?);
        let end = start.checked_add(size).filter(|e| *e <= self.data.len());
        let Some(end) = end else {
            return Err(Problem::malformed(format!(
                "`{name}` is said to have {size} bytes from {start:#x}, but the file has {}",
                self.data.len()
            )));
        };
        if kind == ModuleKind::Kernel {
            self.dword()?;
        }
        for _ in 0..2 {
            if self.word()? != 0 {
                return Err(Problem::unsupported(
                    "relocated variables and functions are not supported",
                ));
            }
        }
        Ok(Part {
            name,
            kind,
            start,
            end,
        })
    }

    fn disjoint(&self, parts: &[Part<'_>]) -> Walk {
        let mut ranges: Vec<(usize, usize)> = parts.iter().map(|p| (p.start, p.end)).collect();
        ranges.sort_unstable();
        let mut last = self.at;
        for (start, end) in ranges {
            if start < last {
                return Err(Problem::malformed(format!(
                    "what starts at {start:#x} overlaps with what is in front of it"
                )));
            }
            last = end;
        }
        Ok(())
    }

    /// A module; with an error, whether it was found in its instructions.
    fn part(&mut self, part: &Part<'d>) -> Result<Module, (Problem, bool)> {
        (self.at, self.end) = (part.start, part.end);
        self.module = Module {
            version: (
                u32::from(self.format.version.0),
                u32::from(self.format.version.1),
            ),
            name: part.name.to_owned(),
            kind: part.kind,
            ..Module::empty()
        };
        let (start, end) = self.tables(part).map_err(|problem| (problem, false))?;
        self.at = start;
        self.end = end;
        while self.at < end {
            self.inst().map_err(|problem| (problem, true))?;
        }
        self.order_labels().map_err(|problem| (problem, false))?;
        Ok(std::mem::replace(&mut self.module, Module::empty()))
    }

    /// Everything in front of the instructions; gives where these start and end.
    fn tables(&mut self, part: &Part<'d>) -> Walk<(usize, usize)> {
        self.pool()?;
        self.string(&mut String::new(), false)?;
        self.declarations()?;
        if self.byte()? != 0 {
            return Err(Problem::unsupported("motion estimation is not supported"));
        }
        if part.kind == ModuleKind::Kernel {
            let mut inputs = Vec::new();
            tables::inputs(self, &mut inputs)?;
            self.module.inputs = inputs;
        }
        let (size, entry) = (self.dword()?, self.dword()?);
        let start = part.start.checked_add(entry);
        let end = start.and_then(|start| start.checked_add(size));
        let (Some(start), Some(end)) = (start, end.filter(|e| *e <= part.end)) else {
            return Err(Problem::malformed(format!(
                "{size} bytes of instructions at {entry:#x} of a module of {} bytes",
                part.end.saturating_sub(part.start)
            )));
        };
        if part.kind == ModuleKind::Function {
            // Registers of arguments and results, which attributes say, too.
            self.take(2)?;
        }
        let mut attrs = Vec::new();
        tables::attrs(self, &mut attrs, false)?;
        self.module.attrs = attrs;
        if start < self.at {
            return Err(Problem::malformed(format!(
                "instructions at {start:#x}, where the tables are"
            )));
        }
        Ok((start, end))
    }

    /// The pool of strings, each of which ends with a zero.
    fn pool(&mut self) -> Walk {
        let count = self.dword()?;
        if count > MAX_VARS.saturating_mul(2) {
            return Err(Problem::limit(format!(
                "{count} strings; the limit is {}",
                MAX_VARS.saturating_mul(2)
            )));
        }
        self.strings.clear();
        for _ in 0..count {
            let rest = self.data.get(self.at..self.end).unwrap_or(&[]);
            let mut room = rest.iter().take(MAX_STRING_BYTES.saturating_add(1));
            let Some(length) = room.position(|b| *b == 0) else {
                self.last = self.at;
                return Err(Problem::malformed(format!(
                    "a string without an end, or of more than {MAX_STRING_BYTES} bytes"
                )));
            };
            let found = self.take(length)?;
            self.strings.push(text(found)?);
            self.take(1)?;
        }
        Ok(())
    }

    fn declarations(&mut self) -> Walk {
        let mut vars = Vars::default();
        tables::general(self, &mut vars.general)?;
        let mut count = u32::from(self.word()?);
        tables::others(
            self,
            &mut vars.address,
            count,
            u32::MAX,
            "address variables",
        )?;
        count = u32::from(self.word()?);
        tables::others(self, &mut vars.predicate, count, u32::MAX, "predicates")?;
        let mut labels = Vec::new();
        tables::labels(self, &mut labels)?;
        count = u32::from(self.byte()?);
        let most = u32::from(BINDLESS);
        tables::others(self, &mut vars.sampler, count, most, "samplers")?;
        count = u32::from(self.byte()?);
        tables::others(self, &mut vars.surface, count, u32::MAX, "surfaces")?;
        name_all(&mut vars);
        let mut names = Names::new();
        for (label, number) in labels.iter_mut().zip(0..) {
            let name = std::mem::take(&mut label.name);
            label.name = names.label(name, label.subroutine, number);
        }
        self.module.vars = vars;
        self.module.labels = labels;
        Ok(())
    }

    fn inst(&mut self) -> Walk {
        let mut inst = walk::blank();
        let start = self.at;
        self.insts = self.insts.checked_sub(1).ok_or_else(|| {
            Problem::limit(format!("more than {MAX_INSTS} instructions in a file"))
        })?;
        let walked = walk::walk(self, &mut inst);
        walked.map_err(|problem| Problem {
            message: match problem.fault {
                Fault::Malformed if self.last != start => {
                    format!("`{}`: {}", inst.mnemonic(), problem.message)
                }
                _ => problem.message,
            },
            ..problem
        })?;
        if let Body::Label(id) = inst.body {
            self.define(id, inst.op == Opcode::Subroutine)?;
        }
        self.module.insts.push(inst);
        Ok(())
    }

    fn define(&mut self, id: LabelId, subroutine: bool) -> Walk {
        let here = u32::try_from(self.module.insts.len()).unwrap_or(u32::MAX);
        let label = self.module.labels.get_mut(id.0 as usize);
        let label = label.ok_or_else(|| Problem::malformed("a label that is not declared"))?;
        let wrong = if label.def.is_some() {
            "twice"
        } else if label.subroutine != subroutine {
            "as a label of another kind"
        } else {
            label.def = Some(here);
            return Ok(());
        };
        Err(Problem::malformed(format!(
            "label `{}` is defined {wrong}",
            label.name
        )))
    }

    /// Numbers labels as text does: in the order of their first appearance, those that appear.
    fn order_labels(&mut self) -> Walk {
        let mut order = vec![None; self.module.labels.len()];
        let mut ordered = Vec::new();
        let labels = &self.module.labels;
        let mut undefined = None;
        let mut renumber = |id: &mut LabelId| {
            let Some(new) = order.get_mut(id.0 as usize) else {
                return;
            };
            let next = u32::try_from(ordered.len()).unwrap_or(u32::MAX);
            if let (None, Some(label)) = (*new, labels.get(id.0 as usize)) {
                if label.def.is_none() {
                    undefined = Some(label.name.clone());
                }
                ordered.push(label.clone());
            }
            *id = LabelId(*new.get_or_insert(next));
        };
        for inst in &mut self.module.insts {
            match &mut inst.body {
                Body::Label(id) | Body::Branch(id) => renumber(id),
                Body::SwitchJmp { targets, .. } => targets.iter_mut().for_each(&mut renumber),
                _ => {}
            }
        }
        if let Some(name) = undefined {
            return Err(Problem::malformed(format!("label `{name}` is not defined")));
        }
        self.module.labels = ordered;
        Ok(())
    }
}

fn text(bytes: &[u8]) -> Walk<&str> {
    std::str::from_utf8(bytes).map_err(|_| Problem::malformed("a name that is not UTF-8"))
}

/// Gives everything a name that text can have. Surfaces and samplers are named by number there, and the name of the source stands
/// beside it.
fn name_all(vars: &mut Vars) {
    let mut names = Names::new();
    for (list, class, first) in [
        (&mut vars.surface, "T", SurfaceId::FIRST_USER),
        (&mut vars.sampler, "S", 0),
    ] {
        for (var, number) in list.iter_mut().zip(first..) {
            let source = std::mem::take(&mut var.name);
            var.name = names.variable(format!("{class}{number}"), class, number);
            var.v_name = Some(source).filter(|s| !s.is_empty());
        }
    }
    for (var, number) in vars.general.iter_mut().zip(VarId::FIRST_USER..) {
        let name = std::mem::take(&mut var.name);
        var.name = names.variable(name, "V", number);
    }
    for (list, class, first) in [(&mut vars.address, "A", 0), (&mut vars.predicate, "P", 1)] {
        for (var, number) in list.iter_mut().zip(first..) {
            let name = std::mem::take(&mut var.name);
            var.name = names.variable(name, class, number);
        }
    }
}

impl Codec for Reader<'_> {
    fn reading(&self) -> bool {
        true
    }

    fn format(&self) -> Format {
        self.format
    }

    fn vars(&self) -> &Vars {
        &self.module.vars
    }

    fn bytes<const N: usize>(&mut self, value: &mut [u8; N]) -> Walk {
        let found = self.take(N)?;
        value.copy_from_slice(found);
        Ok(())
    }

    fn string(&mut self, text: &mut String, short: bool) -> Walk {
        let number = match short {
            true => usize::from(self.word()?),
            false => self.dword()?,
        };
        let Some(found) = self.strings.get(number).copied() else {
            return Err(Problem::malformed(format!(
                "string {number} of {}",
                self.strings.len()
            )));
        };
        self.mention(found.len())?;
        text.clear();
        text.push_str(found);
        Ok(())
    }

    fn label(&mut self, id: &mut LabelId) -> Walk {
        self.medium("the number of a label", &mut id.0)?;
        let label = self.module.labels.get(id.0 as usize);
        let name = label.map(|l| l.name.len());
        self.known("label", id.0, name)
    }

    fn mention(&mut self, bytes: usize) -> Walk {
        let left = self.text.checked_sub(bytes);
        self.text = left.ok_or_else(|| {
            Problem::limit(format!(
                "as text, the file has more than {MAX_TEXT_BYTES} bytes"
            ))
        })?;
        Ok(())
    }

    fn sampler_of(&mut self, number: u8, id: &mut SamplerId) -> Walk {
        let list = &mut self.module.vars.sampler;
        if number == BINDLESS && !list.iter().any(|s| s.predefined) {
            list.push(OtherVar {
                name: BINDLESS_SAMPLER.to_owned(),
                elements: 1,
                v_name: None,
                attrs: Vec::new(),
                predefined: true,
                pos: Pos::default(),
            });
        }
        let index = match number {
            BINDLESS => list.iter().position(|s| s.predefined),
            _ => Some(usize::from(number)),
        };
        let index = index.filter(|i| {
            list.get(*i)
                .is_some_and(|s| s.predefined == (number == BINDLESS))
        });
        let name = index.map(|_| BINDLESS_SAMPLER.len());
        *id = SamplerId(index.and_then(|i| u32::try_from(i).ok()).unwrap_or(0));
        self.known("sampler", u32::from(number), name)
    }
}
