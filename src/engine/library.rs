//! Kernels from libraries that were compiled ahead of time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Engine;
use super::abi::PayloadPlan;
use super::aot::policy_name;
use super::cache::{Compiled, Origin};
use super::error::Error;
use super::kernel::{ArgKind, Argument, Kernel, KernelParts};
use super::launch::{Arg, Launch};
use super::program::Program;
use crate::artifact::object;
use crate::backend::{CodeObject, LibraryError, OobPolicy, load_library};
use crate::isa::{Platform, known_opcode};
use crate::lower::LocalIdShape;
use crate::ssa::{AccessKind, Site, Space};
use visa_runtime::linked::{
    ArgValue, KernelRecord, LinkedKernel, PlanError, PlanKind, SiteRecord, Variant,
};
use visa_runtime::{Arguments, Buffer, KernelMeta, Lanes, LaunchShape};

/// A kernel that came with its code.
pub(crate) struct Linked {
    kernel: LinkedKernel,
    /// In the order of the record's variants.
    codes: Vec<Arc<Compiled>>,
}

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
        let bytes = fs::read(path).map_err(|e| failed(true, e.to_string()))?;
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
        let kernels = kernels
            .into_iter()
            .map(|kernel| Kernel::new(parts(engine, kernel, start.elapsed())))
            .collect();
        Ok(Program::of_kernels(
            kernels,
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

fn parts(engine: &Engine, kernel: LinkedKernel, time: Duration) -> KernelParts {
    let record = kernel.record();
    let codes = record.variants.iter().enumerate().map(|(i, variant)| {
        Arc::new(Compiled {
            object: CodeObject {
                code: Vec::new(),
                align: 1,
                lines: Vec::new(),
                triple: engine.0.identity.triple.clone(),
                backend: backend_name(&record.backend),
                note: None,
            },
            kernel: kernel.kernels()[i].clone(),
            sites: variant.sites.iter().map(site).collect(),
            time,
            from_disk: false,
        })
    });
    KernelParts {
        engine: engine.clone(),
        name: record.name.clone(),
        text: String::new(),
        functions: String::new(),
        valid: None,
        platform: record.device.parse().unwrap_or(Platform::Skl),
        plan: PayloadPlan::default(),
        info: None,
        arguments: arguments(record),
        data: Arc::default(),
        linked: Some(Linked {
            codes: codes.collect(),
            kernel,
        }),
    }
}

/// The table's copy of a code generator's name.
fn backend_name(name: &str) -> &'static str {
    ["cranelift", "llvm"]
        .into_iter()
        .find(|known| *known == name)
        .unwrap_or("library")
}

fn arguments(record: &KernelRecord) -> Vec<Argument> {
    if record.plan.binds_surfaces {
        // Inputs of vISA text have names and no positions.
        return Vec::new();
    }
    let argument = |a: &visa_runtime::linked::PlanArgument| Argument {
        index: a.index,
        name: a.name.clone(),
        type_name: a.type_name.clone(),
        kind: match a.kind {
            PlanKind::Value { size, .. } => ArgKind::Value { size },
            PlanKind::Buffer {
                surface,
                address,
                constant,
            } => ArgKind::Buffer {
                stateful: surface,
                stateless: address,
                constant,
            },
            PlanKind::Local { alignment } => ArgKind::Local { alignment },
            PlanKind::Unused => ArgKind::Unused,
        },
    };
    record.plan.arguments.iter().map(argument).collect()
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
            _ => Space::Regs,
        },
        kind: match record.access.as_str() {
            "read" => AccessKind::Read,
            "write" => AccessKind::Write,
            _ => AccessKind::Atomic,
        },
        bytes: record.bytes,
        first_lane: 0,
    }
}

impl Linked {
    /// Metadata of its code.
    pub fn meta(&self) -> KernelMeta {
        self.kernel
            .record()
            .variants
            .last()
            .map_or_else(KernelMeta::default, |v| v.meta.clone())
    }

    /// Whether surfaces are bound by index.
    pub fn binds_surfaces(&self) -> bool {
        self.kernel.record().plan.binds_surfaces
    }

    /// Bytes of private memory of a hardware thread that can exist.
    pub fn private_bytes(&self) -> u64 {
        self.kernel.record().plan.private_bytes
    }

    /// Code for launches of a shape. There is one policy, which the library was compiled with.
    pub fn code(
        &self,
        shape: LocalIdShape,
        oob: OobPolicy,
    ) -> Result<(Arc<Compiled>, Origin), Error> {
        let record = self.kernel.record();
        if record.oob != policy_name(oob) {
            return Err(Error::Unsupported {
                kernel: record.name.clone(),
                what: format!(
                    "accesses out of bounds handled as `{}`: the library was compiled for `{}`",
                    policy_name(oob),
                    record.oob
                ),
            });
        }
        let lanes = match shape {
            LocalIdShape::General => Lanes::Any,
            LocalIdShape::Row => Lanes::Rows,
            LocalIdShape::FullRow => Lanes::FullRows,
        };
        let fits = |v: &Variant| v.lanes <= lanes;
        let found = record.variants.iter().position(fits);
        let code = found.and_then(|i| self.codes.get(i));
        code.map(|code| (code.clone(), Origin::Library))
            .ok_or_else(|| Error::Internal {
                kernel: record.name.clone(),
                what: "no code for this launch in the library".to_owned(),
            })
    }

    /// Lays arguments out.
    pub fn layout(
        &self,
        engine: &Engine,
        launch: &Launch,
        shape: &LaunchShape,
        private: Option<&Buffer>,
    ) -> Result<Arguments, Error> {
        let record = self.kernel.record();
        let bad = |what: String| Error::Arguments {
            kernel: record.name.clone(),
            what,
        };
        let mut given = BTreeMap::new();
        for (&index, arg) in &launch.args {
            given.insert(
                index,
                value(arg).ok_or_else(|| bad(format!("argument {index}: unsupported")))?,
            );
        }
        for (name, bytes) in &launch.inputs {
            let found = record.plan.arguments.iter().find(|a| a.name == *name);
            let found =
                found.ok_or_else(|| bad(format!("no .input `{name}` that a launch sets")))?;
            given.insert(found.index, ArgValue::Bytes(bytes.clone()));
        }
        if record.plan.binds_surfaces {
            // Inputs that are not given are zero, as with vISA text.
            for a in &record.plan.arguments {
                if let PlanKind::Value { size, .. } = a.kind {
                    let zeros = || ArgValue::Bytes(vec![0; size as usize]);
                    given.entry(a.index).or_insert_with(zeros);
                }
            }
        }
        let bytes = self.meta().payload_bytes;
        let plan = &record.plan;
        plan.layout(
            bytes,
            &given,
            &launch.surfaces,
            shape,
            engine.memory(),
            private,
        )
        .map_err(|error| match error {
            PlanError::Launch(error) => error.into(),
            other => bad(other.to_string()),
        })
    }
}

fn value(arg: &Arg) -> Option<ArgValue> {
    Some(match arg {
        Arg::Bytes(bytes) => ArgValue::Bytes(bytes.clone()),
        Arg::Buffer(buffer) => ArgValue::Buffer(buffer.clone()),
        Arg::Local(bytes) => ArgValue::Local(*bytes),
        Arg::Null => ArgValue::Null,
        #[allow(unreachable_patterns, reason = "kinds that libraries do not have")]
        _ => return None,
    })
}
