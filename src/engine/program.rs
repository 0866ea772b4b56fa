//! Loaded files.

use std::sync::Arc;

use super::Engine;
use super::abi;
use super::error::Error;
use super::kernel::{Kernel, KernelParts};
use crate::container::{
    PayloadLayout, RelocationKind, RelocationPlace, SymbolPlace, Zebin, ZebinKernel, infer_device,
};
use crate::front::text;
use crate::isa::Platform;
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

fn upload(engine: &Engine, zebin: &Zebin) -> Result<ProgramData, Error> {
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
        let target = r
            .symbol
            .and_then(|s| zebin.symbols.get(s))
            .and_then(|s| match s.place {
                SymbolPlace::Data(d) => Some(data.sections.get(d)?.address().wrapping_add(s.value)),
                _ => None,
            });
        let (Some(buffer), Some(target)) = (data.sections.get(i), target) else {
            continue;
        };
        let bytes = match r.kind {
            RelocationKind::Address => 8,
            _ => 4,
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
        let data = Arc::new(upload(&engine, &zebin)?);
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
        let module = text::parse(file, source)?;
        let name = module.name.clone();
        let valid = check(&name, module, platform)?;
        let plan = abi::plan_text(valid.module(), platform.grf_bytes(), valid.simd());
        let kernel = Kernel::new(KernelParts {
            engine,
            name,
            text: source.to_owned(),
            valid: Arc::new(valid),
            plan,
            info: None,
            arguments: Vec::new(),
            data: Arc::default(),
        });
        Ok(Program {
            kernels: Arc::new(vec![kernel]),
            broken: Arc::default(),
            platform,
            reason: "as asked for".into(),
        })
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

fn zebin_kernel(
    engine: &Engine,
    zebin: &Zebin,
    k: &ZebinKernel,
    platform: Platform,
    data: &Arc<ProgramData>,
) -> Result<Kernel, Error> {
    let module = text::parse(
        &format!("{} ({})", k.name, k.visa.section_name),
        &k.visa.text,
    )?;
    let valid = check(&k.name, module, platform)?;
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
        valid: Arc::new(valid),
        plan,
        info: Some(k.info.clone()),
        arguments,
        data: data.clone(),
    }))
}
