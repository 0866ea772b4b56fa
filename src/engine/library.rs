//! Kernels from libraries that were compiled ahead of time.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::abi::PayloadPlan;
use super::cache::Compiled;
use super::error::Error;
use super::kernel::{Kernel, KernelParts, Source};
use super::key::KernelPart;
use super::linked::Linked;
use super::manifest::{KernelManifest, LoadedData};
use super::program::Program;
use super::state::Engine;
use crate::artifact::{closing, object};
use crate::backend::{CodeObject, LibraryError, load_library};
use crate::container::limits::MAX_FILE_BYTES;
use crate::isa::{Platform, known_opcode};
use crate::lines::LineTable;
use crate::ssa::{AccessKind, Site, Space};
use visa_runtime::KernelMeta;
use visa_runtime::linked::{DataImage, LinkedKernel, LoadedPrograms, SiteRecord};

impl Program {
    /// Loads a shared library that `visa-jit compile` made. The file's records, the runtime's ABI, the processor's features
    /// and the digest of the code are checked before anything in it is called.
    ///
    /// The system's loader runs what initialisers a library has: name only files whose code may run.
    ///
    /// # Errors
    /// [`Error::Library`] when the file is not such a library, is damaged, or is not for this machine.
    pub fn open_library(engine: &Engine, path: &Path) -> Result<Program, Error> {
        let start = Instant::now();
        let failed = |unusable: bool, what: String| Error::Library {
            file: path.display().to_string(),
            what,
            unusable,
        };
        let found = fs::metadata(path).map_err(|e| failed(true, e.to_string()))?;
        if !found.is_file() || found.len() > MAX_FILE_BYTES as u64 {
            let what = format!("not a regular file of at most {MAX_FILE_BYTES} bytes");
            return Err(failed(false, what));
        }
        let bytes = fs::read(path).map_err(|e| failed(true, e.to_string()))?;
        if !closing::is_intact(&bytes) {
            let what = "the file is damaged: its contents do not fit the digest at its end";
            return Err(failed(false, what.to_owned()));
        }
        let records = object::records(&bytes).map_err(|e| failed(false, e.to_string()))?;
        if object::is_relocatable(&bytes) {
            let what = "an object file; link it to a shared library, or compile to one (-o x.so)";
            return Err(failed(false, what.to_owned()));
        }
        // A path without a slash would be searched for elsewhere.
        let whole = path
            .canonicalize()
            .map_err(|e| failed(true, e.to_string()))?;
        let symbols: Vec<&str> = records.iter().map(|r| r.symbol.as_str()).collect();
        let kernels = load_library(&whole, &symbols).map_err(|e| {
            let damaged = matches!(e, LibraryError::Kernel(_)) && !is_machine(&e);
            failed(!damaged, e.to_string())
        })?;
        let device = records.first().map_or("", |r| r.device.as_str());
        let platform: Platform = device
            .parse()
            .map_err(|_| failed(false, format!("unknown device `{device}`")))?;
        // Kernels of one program share its variables.
        let programs = LoadedPrograms::default();
        let kernels: Result<Vec<Kernel>, Error> = kernels
            .into_iter()
            .map(|kernel| {
                let time = start.elapsed();
                parts(engine, platform, kernel, &programs, time).map(Kernel::new)
            })
            .collect();
        Ok(Program::of_kernels(
            kernels?,
            platform,
            "as the library says".to_owned(),
        ))
    }
}

/// Whether the fault is the machine's and not the file's.
fn is_machine(error: &LibraryError) -> bool {
    use visa_runtime::linked::LinkError::{Abi, Architecture, Features};
    matches!(
        error,
        LibraryError::Kernel(Abi { .. } | Architecture { .. } | Features { .. })
    )
}

fn parts(
    engine: &Engine,
    platform: Platform,
    kernel: LinkedKernel,
    programs: &LoadedPrograms,
    time: Duration,
) -> Result<KernelParts, Error> {
    let record = kernel.record();
    let codes = record.variants.iter().enumerate().map(|(i, variant)| {
        Arc::new(Compiled {
            image: None,
            object: CodeObject {
                code: Vec::new(),
                align: 1,
                lines: LineTable::default(),
                triple: engine.0.identity.triple.clone(),
                backend: backend_name(&record.backend),
                stack_bytes: variant.meta.stack_bytes,
                note: None,
            },
            kernel: kernel.kernels()[i].clone(),
            sites: variant.sites.iter().map(site).collect(),
            time,
            from_disk: false,
        })
    });
    let codes = codes.collect();
    let data = match kernel.data() {
        Some(image) => programs
            .get(image, engine.memory())
            .map_err(|e| Error::Memory(e.to_string()))?,
        None => Arc::default(),
    };
    let any = record.variants.last();
    let meta = any.map_or_else(KernelMeta::default, |v| v.meta.clone());
    Ok(KernelParts {
        engine: engine.clone(),
        manifest: KernelManifest {
            plan: record.plan.clone(),
            barriers: meta.barriers(),
            read_only: Vec::new(),
            key: KernelPart::new(platform, "", "", &PayloadPlan::default(), meta),
        },
        data: Arc::new(LoadedData {
            image: DataImage::default(),
            data,
        }),
        source: Source::Library(Linked { codes, kernel }),
    })
}

/// The table's copy of a code generator's name.
fn backend_name(name: &str) -> &'static str {
    ["cranelift", "llvm"]
        .into_iter()
        .find(|known| *known == name)
        .unwrap_or("library")
}

fn site(record: &SiteRecord) -> Site {
    Site {
        line: record.line,
        opcode: known_opcode(&record.opcode).unwrap_or("?"),
        space: match record.space.as_str() {
            "surface" => Space::Surface,
            "local memory" => Space::Slm,
            "device memory" => Space::Flat,
            "scratch" => Space::Scratch,
            "arguments" => Space::Args,
            _ => Space::Regs,
        },
        kind: match record.access.as_str() {
            "read" => AccessKind::Read,
            "write" => AccessKind::Write,
            _ => AccessKind::Atomic,
        },
        bytes: record.bytes,
        // Code that was compiled ahead of time has no checks.
        alignment: 1,
        first_lane: 0,
        parts: Vec::new(),
    }
}
