//! The vISA of kernels, read from a file: a kernel's own and that of the functions which it calls.

use std::sync::Arc;

use super::error::Error;
use super::key::FileFormat;
use super::variables::function_names;
use crate::container::{VisaText, Zebin, ZebinFunction, ZebinKernel};
use crate::front::text;
use crate::isa::{Platform, Versions};
use crate::module::link::{Function, references};
use crate::module::{Module, ModuleKind, link};
use crate::valid::{Target, ValidKernel, validate};

/// A kernel's vISA.
pub(crate) struct Visa {
    /// As it is in the file.
    pub text: String,
    /// Decoded and checked.
    pub valid: Arc<ValidKernel>,
}

/// A file whose kernels are read when they are needed: its manifest was in the cache.
pub(crate) struct ProgramFile {
    pub format: FileFormat,
    /// For messages.
    pub name: String,
    pub bytes: Vec<u8>,
    pub platform: Platform,
    /// Versions that it is read in.
    pub versions: Versions,
}

impl ProgramFile {
    /// The vISA of a kernel. It was read before, from the same bytes, when the manifest was made.
    pub(crate) fn visa(&self, index: usize) -> Result<Arc<Visa>, Error> {
        let missing = || Error::NoKernel {
            name: format!("number {index}"),
            known: Vec::new(),
        };
        match self.format {
            FileFormat::Zebin => {
                let zebin = Zebin::parse_with(&self.bytes, self.versions)?;
                let kernel = zebin.launchable().nth(index).ok_or_else(missing)?;
                let read = zebin_visa(&zebin, kernel, self.platform, self.versions)?;
                Ok(Arc::new(read.visa))
            }
            FileFormat::Text => {
                let source = std::str::from_utf8(&self.bytes).map_err(|_| missing())?;
                let mut all = text_visas(&self.name, source, self.platform, self.versions)?;
                if index >= all.len() {
                    return Err(missing());
                }
                Ok(Arc::new(all.swap_remove(index).1))
            }
        }
    }
}

fn check(
    name: &str,
    module: crate::module::Module,
    platform: Platform,
) -> Result<ValidKernel, Error> {
    validate(module, Target { platform }).map_err(|errors| Error::Valid {
        kernel: name.into(),
        errors,
    })
}

/// Functions that a kernel may call, with their numbers: those that it or they name, and those whose address
/// is taken anywhere if it or they call by address.
fn reachable<'z>(
    zebin: &'z Zebin,
    caller: usize,
    kernel: &Module,
    parse: impl Fn(&str, &VisaText) -> Result<Module, text::Diagnostics>,
) -> Result<Vec<(u32, &'z ZebinFunction)>, Error> {
    let all = function_names(zebin);
    let mut wanted = vec![false; all.len()];
    let mut found = Vec::new();
    let mut work = Vec::new();
    let visit = |module: &Module, wanted: &mut Vec<bool>, work: &mut Vec<usize>| {
        let (names, indirect) = references(module);
        let shared = all.iter().filter(|n| indirect && zebin.is_shared(n));
        for name in names.iter().chain(shared) {
            if let Ok(i) = all.binary_search(name)
                && !std::mem::replace(&mut wanted[i], true)
            {
                work.push(i);
            }
        }
    };
    visit(kernel, &mut wanted, &mut work);
    while let Some(i) = work.pop() {
        let Some(f) = zebin.function(caller, all[i]) else {
            continue;
        };
        found.push((i as u32, f));
        visit(&parse(&f.name, &f.visa)?, &mut wanted, &mut work);
    }
    found.sort_unstable_by_key(|(i, _)| *i);
    Ok(found)
}

/// A kernel's vISA with all that it calls.
pub(super) struct ZebinVisa {
    pub visa: Visa,
    /// The functions that were linked in: how, and their texts.
    pub functions: String,
}

pub(super) fn zebin_visa(
    zebin: &Zebin,
    k: &ZebinKernel,
    platform: Platform,
    versions: Versions,
) -> Result<ZebinVisa, Error> {
    let parse = |name: &str, visa: &VisaText| {
        let file = format!("{name} ({})", visa.section_name);
        text::parse_with(&file, &visa.text, versions)
    };
    let module = parse(&k.name, &k.visa)?;
    let caller = zebin.kernels.iter().position(|other| other.name == k.name);
    let mut functions = Vec::new();
    let (mut texts, mut text) = (String::new(), k.visa.text.clone());
    for (index, f) in reachable(zebin, caller.unwrap_or(0), &module, parse)? {
        let shared = zebin.is_shared(&f.name);
        texts.push_str(&format!("{index} {} {shared}\n{}\n", f.name, f.visa.text));
        let mut module = parse(&f.name, &f.visa)?;
        append_text(&mut text, &f.visa.text, &mut module);
        functions.push(Function {
            index,
            address_taken: shared,
            module,
        });
    }
    Ok(ZebinVisa {
        visa: Visa {
            text,
            valid: Arc::new(check(&k.name, link(module, functions), platform)?),
        },
        functions: texts,
    })
}

/// Puts a function's text after a kernel's, and its instructions to the lines where they are then.
fn append_text(text: &mut String, function: &str, module: &mut Module) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let lines = text.lines().count() as u32;
    text.push_str(function);
    for inst in module.insts.iter_mut().filter(|i| i.pos.line != 0) {
        inst.pos.line = inst.pos.line.saturating_add(lines);
    }
}

/// The kernels of a text with their names. A lone function is loaded like a kernel, so that it can be looked at.
pub(super) fn text_visas(
    file: &str,
    source: &str,
    platform: Platform,
    versions: Versions,
) -> Result<Vec<(String, Visa)>, Error> {
    let modules = text::parse_all(file, source, versions)?;
    let (functions, kernels): (Vec<Module>, Vec<Module>) = modules
        .into_iter()
        .partition(|m| m.kind == ModuleKind::Function);
    let (kernels, functions) = if kernels.is_empty() {
        (functions, Vec::new())
    } else {
        (kernels, functions)
    };
    let functions: Vec<Function> = (0..)
        .zip(functions)
        .map(|(index, module)| Function {
            index,
            address_taken: false,
            module,
        })
        .collect();
    let kernels = kernels.into_iter().map(|module| {
        let name = module.name.clone();
        let valid = check(&name, link(module, functions.clone()), platform)?;
        let text = source.to_owned();
        let valid = Arc::new(valid);
        Ok((name, Visa { text, valid }))
    });
    kernels.collect()
}
