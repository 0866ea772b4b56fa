//! Loaded files.

use std::collections::BTreeMap;
use std::sync::Arc;

use visa_runtime::Buffer;

use super::abi;
use super::error::Error;
use super::kernel::{Kernel, KernelParts, Source};
use super::key::KernelPart;
use super::manifest::{KernelManifest, LoadedData, ProgramManifest, info_meta, text_meta};
use super::plan::{self, Variables};
use super::source::{ProgramFile, Visa, ZebinVisa, text_visas, zebin_visa};
use super::state::Engine;
use super::variables;
use crate::container::{
    AccessType, ArgType, KernelInfo, PayloadLayout, Zebin, ZebinKernel, infer_device,
};
use crate::isa::{Platform, Versions};

/// A loaded file: its kernels, and its program-scope variables in device memory.
#[derive(Clone)]
pub struct Program {
    kernels: Arc<Vec<Kernel>>,
    /// Kernels that could not be loaded; the others are none the worse for it.
    broken: Arc<Vec<(String, Error)>>,
    platform: Platform,
    reason: String,
}

impl Program {
    pub(super) fn from_zebin(
        engine: Engine,
        zebin: Zebin,
        digest: [u8; 32],
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
        let versions = engine.0.options.versions;
        let variables = variables::places(&zebin);
        let image = variables::image(&zebin, digest)?;
        let data = Arc::new(LoadedData::new(image, engine.memory())?);
        let mut kernels = Vec::new();
        let mut broken = Vec::new();
        for k in zebin.launchable() {
            match zebin_kernel(&zebin, k, (platform, versions), &variables) {
                Ok((manifest, visa)) => kernels.push(Kernel::new(KernelParts {
                    engine: engine.clone(),
                    manifest,
                    data: data.clone(),
                    source: Source::Visa(Arc::new(visa)),
                })),
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
        let versions = engine.0.options.versions;
        let kernels = text_visas(file, source, platform, versions)?.into_iter();
        let kernels = kernels.map(|(name, visa)| {
            let grf = platform.grf_bytes();
            let payload = abi::plan_text(visa.valid.module(), grf, visa.valid.simd());
            let meta = text_meta(&name, &visa.valid, platform, &payload);
            Kernel::new(KernelParts {
                engine: engine.clone(),
                manifest: KernelManifest {
                    plan: plan::of_text(visa.valid.module(), &payload, visa.valid.simd()),
                    key: KernelPart::new(platform, &visa.text, "", &payload, meta),
                    barriers: 0,
                    read_only: Vec::new(),
                },
                data: Arc::default(),
                source: Source::Visa(Arc::new(visa)),
            })
        });
        Ok(Program {
            kernels: Arc::new(kernels.collect()),
            broken: Arc::default(),
            platform,
            reason: "as asked for".into(),
        })
    }

    /// A program whose manifest was kept; its kernels' vISA is read from the file when it is first needed.
    pub(super) fn from_manifest(
        engine: &Engine,
        manifest: ProgramManifest,
        file: ProgramFile,
    ) -> Result<Program, Error> {
        let file = Arc::new(file);
        let data = Arc::new(LoadedData::new(manifest.data, engine.memory())?);
        let kernels = manifest.kernels.into_iter().enumerate();
        let kernels = kernels.map(|(index, manifest)| {
            Kernel::new(KernelParts {
                engine: engine.clone(),
                manifest,
                data: data.clone(),
                source: Source::File {
                    file: file.clone(),
                    index,
                    read: Default::default(),
                },
            })
        });
        Ok(Program {
            kernels: Arc::new(kernels.collect()),
            broken: Arc::default(),
            platform: manifest.platform,
            reason: manifest.reason,
        })
    }

    /// What to keep for [`Program::from_manifest`]; none if a kernel could not be loaded, so that it is said again why.
    pub(super) fn manifest(&self) -> Option<ProgramManifest> {
        if !self.broken.is_empty() {
            return None;
        }
        let parts = || self.kernels.iter().map(Kernel::parts);
        Some(ProgramManifest {
            platform: self.platform,
            reason: self.reason.clone(),
            kernels: parts().map(|p| p.manifest.clone()).collect(),
            data: parts()
                .next()
                .map(|p| p.data.image.clone())
                .unwrap_or_default(),
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

    /// The same program on another engine. The file is not read again, which is most of the time that a large one takes to load.
    /// Program-scope variables have the values there that they begin with.
    ///
    /// # Errors
    /// When the engine's memory has no room for the variables, and for kernels from a library, which are of one engine.
    pub fn on(&self, engine: &Engine) -> Result<Program, Error> {
        if let Some(k) = self.kernels.iter().find(|k| k.linked().is_some()) {
            return Err(Error::Unsupported {
                kernel: k.name().to_owned(),
                what: "another engine for a library that is loaded".to_owned(),
            });
        }
        let image = self.kernels.first().map(|k| k.parts().data.image.clone());
        let data = Arc::new(LoadedData::new(image.unwrap_or_default(), engine.memory())?);
        let kernels = self.kernels.iter().map(|k| {
            Kernel::new(KernelParts {
                engine: engine.clone(),
                manifest: k.parts().manifest.clone(),
                data: data.clone(),
                source: k.parts().source.clone(),
            })
        });
        Ok(Program {
            kernels: Arc::new(kernels.collect()),
            ..self.clone()
        })
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

    /// The memory of a program-scope variable, by the name that `.ze_info` has for the host, or by its symbol's. `zebin` is the file
    /// that the program was loaded from. None if it has no such variable, or no kernel.
    pub fn variable(&self, zebin: &Zebin, name: &str) -> Option<Buffer> {
        let ((section, offset), bytes) = variables::for_host(zebin, name)?;
        let data = &self.kernels.first()?.parts().data.data;
        data.section(section)?.part(offset, bytes).ok()
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

const NO_INSTRUCTIONS: &str = "vISA text without instructions, as the compiler leaves it of kernels in explicit SIMD (ESIMD, CM)";

fn zebin_kernel(
    zebin: &Zebin,
    k: &ZebinKernel,
    (platform, versions): (Platform, Versions),
    variables: &Variables,
) -> Result<(KernelManifest, Visa), Error> {
    let ZebinVisa { visa, functions } = zebin_visa(zebin, k, platform, versions)?;
    if !visa.valid.module().has_instructions() {
        // It would do nothing. Kernels that do nothing have a `ret`.
        return Err(Error::Unsupported {
            kernel: k.name.clone(),
            what: NO_INSTRUCTIONS.to_owned(),
        });
    }
    let layout = PayloadLayout::new(&k.info, platform)?;
    let known: Vec<String> = abi::symbols(visa.valid.module())
        .into_iter()
        .filter(|s| variables.named(s).is_some())
        .collect();
    let payload = {
        let calls = !visa.valid.module().functions.is_empty();
        let env = &k.info.execution_env;
        let calls = calls || env.has_stack_calls || env.require_iab;
        abi::plan(&k.name, visa.valid.module(), &layout, &known, calls)?
    };
    let names = zebin.ze_info.args_of(&k.name);
    let meta = info_meta(&k.info, &visa.valid, platform, &payload);
    let manifest = KernelManifest {
        plan: plan::of_info(
            &k.info,
            names,
            &payload,
            variables,
            (platform, visa.valid.simd()),
        ),
        key: KernelPart::new(platform, &visa.text, &functions, &payload, meta),
        barriers: k.info.execution_env.barrier_count,
        read_only: read_only(&k.info),
    };
    Ok((manifest, visa))
}

/// Arguments of which the compiler says that the kernel only reads what they point at.
fn read_only(info: &KernelInfo) -> Vec<u32> {
    let pointers = info.payload_arguments.iter();
    let pointers = pointers.filter(|p| p.arg_type == ArgType::ByPointer);
    let mut all: BTreeMap<u32, bool> = BTreeMap::new();
    for p in pointers {
        if let Some(index) = p.arg_index {
            *all.entry(index).or_insert(true) &= p.access_type == Some(AccessType::ReadOnly);
        }
    }
    all.retain(|_, reads| *reads);
    all.into_keys().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{DiskCache, EngineOptions, Launch, Origin};

    #[test]
    fn a_program_on_another_engine_has_its_own_variables() {
        let zebin = include_bytes!("../../tests/kernels/bin/skl/global_state.zebin");
        let engines = [(); 2].map(|()| Engine::new().unwrap());
        let first = engines[0].program_from_zebin(zebin, None).unwrap();
        let second = first.on(&engines[1]).unwrap();
        assert_eq!(second.kernels().len(), first.kernels().len());
        for (engine, program) in engines.iter().zip([&first, &second]) {
            let input = engine.memory().alloc_from(&[2f32; 8]).unwrap();
            let out = engine.memory().alloc(32).unwrap();
            let launch = Launch::new([8, 1, 1]).arg(0, &out).arg(1, &input);
            let kernel = program.kernel("global_count").unwrap();
            assert_eq!(kernel.launch(&launch).unwrap().origin, Origin::Compiled);
            assert_eq!(out.to_vec_of::<f32>(), [5f32; 8]);
        }
        let data = |program: &Program| program.kernels[0].parts().data.clone();
        assert!(!Arc::ptr_eq(&data(&first), &data(&second)));
    }

    /// A warm start reads neither `.ze_info` nor vISA before they are asked for.
    #[test]
    fn what_the_cache_has_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let zebin = include_bytes!("../../tests/kernels/bin/skl/saxpy.zebin");
        let run = || {
            let options = EngineOptions {
                memory_bytes: 1 << 30,
                disk: Some(DiskCache::at(dir.path().join("cache"))),
                ..EngineOptions::default()
            };
            let engine = Engine::with_options(options).unwrap();
            let program = engine.program_from_zebin(zebin, None).unwrap();
            let kernel = program.kernel("saxpy").unwrap().clone();
            let y = engine.memory().alloc_from(&[1f32; 8]).unwrap();
            let launch = Launch::new([8, 1, 1]).arg(0, &y).arg(1, &y).arg(2, 2f32);
            let report = kernel.launch(&launch).unwrap();
            assert_eq!(y.to_vec_of::<f32>(), [3f32; 8]);
            (report.origin, kernel)
        };
        let (origin, cold) = run();
        assert_eq!(origin, Origin::Compiled);
        assert!(matches!(cold.parts().source, Source::Visa(_)));
        let (origin, warm) = run();
        assert_eq!(origin, Origin::Disk);
        let unread = || match &warm.parts().source {
            Source::File { read, .. } => read.get().is_none(),
            _ => false,
        };
        assert!(unread(), "launched without its vISA");
        assert_eq!(warm.parts().manifest, cold.parts().manifest);
        assert_eq!(warm.text(), cold.text());
        assert!(!unread() && !warm.text().is_empty());
        let ssa = |kernel: &Kernel| kernel.ssa(true).unwrap().to_string();
        assert_eq!(ssa(&warm), ssa(&cold));
    }
}
