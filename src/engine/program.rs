//! Loaded files.

use std::sync::Arc;

use super::Engine;
use super::abi;
use super::error::Error;
use super::kernel::{Kernel, KernelParts};
use crate::container::{
    ContainerError, PayloadLayout, RelocationKind, RelocationPlace, SymbolPlace, VisaText, Zebin,
    ZebinFunction, ZebinKernel, infer_device,
};
use crate::front::text;
use crate::isa::Platform;
use crate::module::link::{Function, function_address, references};
use crate::module::{Module, ModuleKind, link};
use crate::valid::{Target, ValidKernel, validate};
use visa_runtime::Buffer;

/// A loaded file: its kernels, and its program-scope variables in device memory.
#[derive(Clone)]
pub struct Program {
    kernels: Arc<Vec<Kernel>>,
    /// Kernels that could not be loaded; the others are none the worse for it.
    broken: Arc<Vec<(String, Error)>>,
    platform: Platform,
    reason: String,
}

/// Program-scope data of a zebin, uploaded.
#[derive(Debug, Default)]
pub(crate) struct ProgramData {
    /// One buffer for each data section.
    pub sections: Vec<Buffer>,
    /// Address of each variable.
    pub symbols: Vec<(String, u64)>,
}

fn upload(engine: &Engine, zebin: &Zebin, functions: &[&str]) -> Result<ProgramData, Error> {
    let mut data = ProgramData::default();
    for section in &zebin.data {
        let buffer = engine
            .memory()
            .alloc(section.size.max(section.bytes.len() as u64))?;
        buffer.write(0, &section.bytes)?;
        data.sections.push(buffer);
    }
    for s in &zebin.symbols {
        if let SymbolPlace::Data(i) = s.place
            && let Some(b) = data.sections.get(i)
        {
            data.symbols
                .push((s.name.clone(), b.address().wrapping_add(s.value)));
        }
    }
    for r in &zebin.relocations {
        let RelocationPlace::Data(i) = r.place else {
            continue;
        };
        let Some(buffer) = data.sections.get(i) else {
            continue;
        };
        let symbol = r.symbol.and_then(|s| zebin.symbols.get(s));
        let target = symbol.and_then(|s| match s.place {
            SymbolPlace::Data(d) => Some(data.sections.get(d)?.address().wrapping_add(s.value)),
            _ => functions
                .binary_search(&s.name.as_str())
                .ok()
                .map(|i| u64::from(function_address(i as u32))),
        });
        let unsupported = |what: String| {
            let section = zebin.data.get(i).map_or("data", |s| s.name.as_str());
            let at = r.offset;
            Error::Container(ContainerError::Unsupported(format!(
                "{section} at {at:#x}: {what}"
            )))
        };
        let target = target.ok_or_else(|| {
            let name = symbol.map_or("?", |s| s.name.as_str());
            unsupported(format!(
                "address of `{name}`, which the file does not define"
            ))
        })?;
        let bytes = match r.kind {
            RelocationKind::Address => 8,
            RelocationKind::AddressLow32 | RelocationKind::AddressHigh32 => 4,
            other => return Err(unsupported(format!("relocation {other:?}"))),
        };
        let mut old = [0u8; 8];
        buffer.read(r.offset, &mut old[..bytes])?;
        let value = target.wrapping_add(r.addend.map_or(u64::from_le_bytes(old), |a| a as u64));
        let value = if r.kind == RelocationKind::AddressHigh32 {
            value >> 32
        } else {
            value
        };
        buffer.write(r.offset, &value.to_le_bytes()[..bytes])?;
    }
    Ok(data)
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

impl Program {
    pub(super) fn from_zebin(
        engine: Engine,
        zebin: Zebin,
        platform: Option<Platform>,
    ) -> Result<Program, Error> {
        let (platform, reason) = match platform {
            Some(p) => (p, "as asked for".to_owned()),
            None => {
                let told = infer_device(&zebin);
                match told.device {
                    Some(p) => (p, told.reason),
                    None => {
                        return Err(Error::UnknownPlatform {
                            reason: told.reason,
                        });
                    }
                }
            }
        };
        let data = Arc::new(upload(&engine, &zebin, &function_names(&zebin))?);
        let mut kernels = Vec::new();
        let mut broken = Vec::new();
        for k in zebin.launchable() {
            match zebin_kernel(&engine, &zebin, k, platform, &data) {
                Ok(kernel) => kernels.push(kernel),
                Err(error) => broken.push((k.name.clone(), error)),
            }
        }
        if let (true, Some((_, error))) = (kernels.is_empty(), broken.first()) {
            return Err(error.clone());
        }
        Ok(Program {
            kernels: Arc::new(kernels),
            broken: Arc::new(broken),
            platform,
            reason,
        })
    }

    pub(super) fn from_text(
        engine: Engine,
        file: &str,
        source: &str,
        platform: Platform,
    ) -> Result<Program, Error> {
        let modules = text::parse_all(file, source)?;
        let (functions, kernels): (Vec<Module>, Vec<Module>) = modules
            .into_iter()
            .partition(|m| m.kind == ModuleKind::Function);
        // A lone function is loaded like a kernel, so that it can be looked at.
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
        let mut loaded = Vec::new();
        for module in kernels {
            let name = module.name.clone();
            let valid = check(&name, link(module, functions.clone()), platform)?;
            let plan = abi::plan_text(valid.module(), platform.grf_bytes(), valid.simd());
            loaded.push(Kernel::new(KernelParts {
                engine: engine.clone(),
                name,
                text: source.to_owned(),
                functions: String::new(),
                valid: Some(Arc::new(valid)),
                platform,
                plan,
                info: None,
                arguments: Vec::new(),
                data: Arc::default(),
                linked: None,
            }));
        }
        Ok(Program {
            kernels: Arc::new(loaded),
            broken: Arc::default(),
            platform,
            reason: "as asked for".into(),
        })
    }

    /// A program of kernels that are complete.
    pub(super) fn of_kernels(kernels: Vec<Kernel>, platform: Platform, reason: String) -> Program {
        Program {
            kernels: Arc::new(kernels),
            broken: Arc::default(),
            platform,
            reason,
        }
    }

    /// Kernels that could not be loaded, and why.
    pub fn broken(&self) -> &[(String, Error)] {
        &self.broken
    }

    /// Kernels in file order, as far as they could be loaded.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// [`Error::NoKernel`] with the names there are; the kernel's own error when it could not be loaded.
    pub fn kernel(&self, name: &str) -> Result<&Kernel, Error> {
        if let Some((_, error)) = self.broken.iter().find(|(n, _)| n == name) {
            return Err(error.clone());
        }
        self.kernels
            .iter()
            .find(|k| k.name() == name)
            .ok_or_else(|| Error::NoKernel {
                name: name.into(),
                known: self.kernels.iter().map(|k| k.name().to_owned()).collect(),
            })
    }

    /// Device the program was compiled for.
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// How the device is known.
    pub fn platform_reason(&self) -> &str {
        &self.reason
    }
}

/// Names of the program's stack-call functions in the order of their addresses.
fn function_names(zebin: &Zebin) -> Vec<&str> {
    let mut names: Vec<&str> = zebin.functions.iter().map(|f| f.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
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

fn zebin_kernel(
    engine: &Engine,
    zebin: &Zebin,
    k: &ZebinKernel,
    platform: Platform,
    data: &Arc<ProgramData>,
) -> Result<Kernel, Error> {
    let parse = |name: &str, visa: &VisaText| {
        text::parse(&format!("{name} ({})", visa.section_name), &visa.text)
    };
    let module = parse(&k.name, &k.visa)?;
    let caller = zebin.kernels.iter().position(|other| other.name == k.name);
    let mut functions = Vec::new();
    let mut texts = String::new();
    for (index, f) in reachable(zebin, caller.unwrap_or(0), &module, parse)? {
        let shared = zebin.is_shared(&f.name);
        texts.push_str(&format!("{index} {} {shared}\n{}\n", f.name, f.visa.text));
        functions.push(Function {
            index,
            address_taken: shared,
            module: parse(&f.name, &f.visa)?,
        });
    }
    let valid = check(&k.name, link(module, functions), platform)?;
    let layout = PayloadLayout::new(&k.info, platform)?;
    let known: Vec<String> = abi::symbols(valid.module())
        .into_iter()
        .filter(|s| data.symbols.iter().any(|(n, _)| n == s))
        .collect();
    let plan = abi::plan(&k.name, valid.module(), &layout, &known)?;
    let arguments = abi::arguments(&k.info, zebin.ze_info.args_of(&k.name));
    Ok(Kernel::new(KernelParts {
        engine: engine.clone(),
        name: k.name.clone(),
        text: k.visa.text.clone(),
        functions: texts,
        valid: Some(Arc::new(valid)),
        platform,
        plan,
        info: Some(k.info.clone()),
        arguments,
        data: data.clone(),
        linked: None,
    }))
}
