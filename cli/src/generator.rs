//! The code generator that `compile` uses, for a machine of its own choice.

use std::str::FromStr;

#[cfg(feature = "llvm-codegen")]
use target_lexicon::Architecture;
use target_lexicon::Triple;

use super::compile::OutputKind;
use super::exit::Failure;
use visa_jit::backend::cranelift::CraneliftBackend;
#[cfg(feature = "llvm-codegen")]
use visa_jit::backend::cranelift::base_features;
#[cfg(feature = "llvm-codegen")]
use visa_jit::backend::llvm::LlvmBackend;
use visa_jit::backend::{Backend, BackendError, BackendKind, Choice as _, CodegenOptions};
use visa_jit::engine::Kernel;

/// A code generator for a machine.
pub enum Generator {
    /// Cranelift.
    Cranelift(CraneliftBackend),
    /// LLVM.
    #[cfg(feature = "llvm-codegen")]
    Llvm(LlvmBackend),
}

/// `--backend`, as far as it goes with what is written.
pub fn kind(backend: Option<&str>, emit: OutputKind) -> Result<BackendKind, Failure> {
    let kind = match backend {
        None if emit == OutputKind::LlvmIr => BackendKind::Llvm,
        None => BackendKind::Cranelift,
        Some(name) => {
            let named = |kind: &BackendKind| kind.name() == name;
            BackendKind::ALL.iter().copied().find(named).ok_or_else(|| {
                Failure::usage(format!(
                    "--backend {name}: `compile` works with the code generators cranelift and llvm"
                ))
            })?
        }
    };
    kind.available()
        .map_err(|e| Failure::unsupported(e.to_string()))?;
    let refused = |what: &str, of: BackendKind| {
        let (asked, of) = (kind.name(), of.name());
        Err(Failure::unsupported(format!(
            "--emit {what} is what {of} works on: leave out --backend {asked}, or ask for another kind of output"
        )))
    };
    match (emit, kind) {
        (OutputKind::LlvmIr, BackendKind::Cranelift) => refused("llvm-ir", BackendKind::Llvm),
        (OutputKind::Clif, BackendKind::Llvm) => refused("clif", BackendKind::Cranelift),
        _ => Ok(kind),
    }
}

impl Generator {
    /// For the machine of `--target` and `--cpu`.
    pub fn new(
        kind: BackendKind,
        target: Option<&str>,
        cpu: Option<&str>,
    ) -> Result<Generator, Failure> {
        let host = Triple::host();
        let triple = match target {
            Some(name) => Triple::from_str(name)
                .map_err(|error| Failure::usage(format!("--target {name}: {error}")))?,
            None => host.clone(),
        };
        if cpu == Some("native") && triple.architecture != host.architecture {
            return Err(Failure::usage(format!(
                "--cpu native is {}, not {triple}",
                host.architecture
            )));
        }
        let made = match kind {
            BackendKind::Cranelift => cranelift(triple, cpu).map(Generator::Cranelift),
            BackendKind::Llvm => llvm(&triple, cpu),
        };
        made.map_err(|error| match (target, cpu) {
            (None, None) => visa_jit::engine::Error::from(error).into(),
            _ => Failure::unsupported(error.to_string()),
        })
    }

    /// What generates code.
    pub fn backend(&self) -> &dyn Backend {
        match self {
            Generator::Cranelift(backend) => backend,
            #[cfg(feature = "llvm-codegen")]
            Generator::Llvm(backend) => backend,
        }
    }

    /// A kernel in the code generator's own intermediate representation, as text.
    pub fn ir(&self, kernel: &Kernel, options: &CodegenOptions) -> Result<String, Failure> {
        let function = kernel.ssa(true)?;
        let ir = match self {
            Generator::Cranelift(backend) => backend.clif(&function, options),
            #[cfg(feature = "llvm-codegen")]
            Generator::Llvm(backend) => backend.ir(&function, options),
        };
        Ok(ir.map_err(visa_jit::engine::Error::from)?)
    }
}

fn cranelift(triple: Triple, cpu: Option<&str>) -> Result<CraneliftBackend, BackendError> {
    match cpu {
        Some("native") if triple == Triple::host() => CraneliftBackend::host(),
        Some("native") => {
            let here = CraneliftBackend::host()?.needs().unwrap_or_default();
            let here: Vec<&str> = here.iter().map(String::as_str).collect();
            CraneliftBackend::for_triple(triple, &here)
        }
        Some(cpu) => CraneliftBackend::for_triple(triple, &[cpu]),
        None => CraneliftBackend::for_triple(triple, &[]),
    }
}

/// Processors have the same names with both, and what they have Cranelift knows.
#[cfg(feature = "llvm-codegen")]
fn llvm(triple: &Triple, cpu: Option<&str>) -> Result<Generator, BackendError> {
    let features = match (cpu, triple.architecture) {
        (None, Architecture::Riscv64(_)) => {
            let base = base_features(triple.architecture).iter();
            base.map(|name| (*name).to_owned()).collect()
        }
        _ => cranelift(triple.clone(), cpu)?.needs().unwrap_or_default(),
    };
    LlvmBackend::for_target(triple, &features).map(Generator::Llvm)
}

#[cfg(not(feature = "llvm-codegen"))]
fn llvm(_: &Triple, _: Option<&str>) -> Result<Generator, BackendError> {
    Err(visa_jit::backend::without_llvm())
}
