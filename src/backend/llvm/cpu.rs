//! The processor that code is made for, and LLVM's machinery for it.

use inkwell::OptimizationLevel;
use inkwell::targets::{
    CodeModel, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple,
};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use target_lexicon::{Architecture, Triple};

use super::NAME;
use crate::backend::{BackendError, VectorWidth};

/// A processor, by its name and features.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    /// LLVM's name.
    pub name: String,
    /// LLVM's feature list, `+avx2,-sse4a,…`.
    pub features: String,
    /// Target triple, LLVM's spelling.
    triple: String,
    /// 512-bit vectors, with lane masks for all element sizes and vector lengths.
    pub avx512: bool,
    /// Gathers.
    pub avx2: bool,
    /// Fused multiply-add is one instruction.
    pub fma: bool,
    /// Conversions from and to binary16.
    pub f16c: bool,
    /// Bits of the widest vectors.
    pub vectors: u32,
}

fn environment(what: impl Into<String>) -> BackendError {
    BackendError::Environment {
        backend: NAME,
        what: what.into(),
    }
}

impl Cpu {
    /// The processor this runs on.
    pub fn host() -> Result<Cpu, BackendError> {
        let name = TargetMachine::get_host_cpu_name().to_string();
        let features = TargetMachine::get_host_cpu_features().to_string();
        Cpu::new(name, features)
    }

    /// A processor of this machine's architecture by LLVM's name, with these features.
    pub fn new(name: String, features: String) -> Result<Cpu, BackendError> {
        if Triple::host().architecture != Architecture::X86_64 {
            let what = format!(
                "architecture {} is not supported; use cranelift",
                Triple::host().architecture
            );
            return Err(environment(what));
        }
        let on = |feature: &str| {
            features
                .split(',')
                .any(|f| f.strip_prefix('+') == Some(feature))
        };
        let levels: &[&str] = match name.as_str() {
            "x86-64-v2" => &["sse4.1"],
            "x86-64-v3" => &["sse4.1", "avx2", "fma", "f16c"],
            "x86-64-v4" => &[
                "sse4.1", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl",
            ],
            _ => &[],
        };
        let has = |feature: &str| on(feature) || levels.contains(&feature);
        if !has("sse4.1") {
            return Err(environment("x86-64 without SSE4.1"));
        }
        let avx512 = ["avx512f", "avx512bw", "avx512dq", "avx512vl"]
            .iter()
            .all(|f| has(f));
        Ok(Cpu {
            avx512,
            vectors: if avx512 { 512 } else { 256 },
            avx2: has("avx2"),
            fma: has("fma"),
            f16c: has("f16c"),
            triple: TargetMachine::get_default_triple()
                .as_str()
                .to_string_lossy()
                .into_owned(),
            name,
            features,
        })
    }

    /// The same with vectors no wider than that. What AVX brings comes with vectors of 256 bits, so 128 is without it.
    pub fn with_vectors(&self, width: VectorWidth) -> Result<Cpu, BackendError> {
        let mut cpu = self.clone();
        let Some(bits) = width.bits() else {
            return Ok(cpu);
        };
        if bits == 512 && !self.avx512 || bits == 256 && !self.avx2 {
            return Err(BackendError::Strategy {
                backend: NAME,
                what: format!("{} has no vectors of {bits} bits", self.name),
            });
        }
        cpu.vectors = bits;
        if bits == 128 {
            (cpu.avx512, cpu.avx2, cpu.fma, cpu.f16c) = (false, false, false, false);
            let comma = if cpu.features.is_empty() { "" } else { "," };
            cpu.features.push_str(comma);
            cpu.features.push_str("-avx");
        }
        Ok(cpu)
    }

    /// Everything about it that decides which code is made, by name.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut settings: BTreeMap<String, String> = self
            .features
            .split(',')
            .filter_map(|f| f.split_at_checked(1))
            .map(|(sign, name)| (name.to_owned(), sign.to_owned()))
            .collect();
        settings.insert("cpu".to_owned(), self.name.clone());
        settings
    }

    /// LLVM's code generator for this processor.
    pub fn machine(&self, level: OptimizationLevel) -> Result<TargetMachine, BackendError> {
        static READY: OnceLock<()> = OnceLock::new();
        READY.get_or_init(|| Target::initialize_x86(&InitializationConfig::default()));
        let triple = TargetTriple::create(&self.triple);
        let target = Target::from_triple(&triple).map_err(|e| environment(e.to_string()))?;
        target
            .create_target_machine(
                &triple,
                &self.name,
                &self.features,
                level,
                RelocMode::PIC,
                CodeModel::Small,
            )
            .ok_or_else(|| environment(format!("LLVM has no code generator for {}", self.triple)))
    }
}
