//! The processor that code is made for, and LLVM's machinery for it.

use inkwell::OptimizationLevel;
use inkwell::llvm_sys::target_machine::{
    LLVMCodeGenOptLevel, LLVMCodeModel, LLVMCreateTargetMachine, LLVMRelocMode,
};
use inkwell::targets::{InitializationConfig, Target, TargetMachine, TargetTriple};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::OnceLock;
use target_lexicon::{Architecture, Triple};

use super::{NAME, environment};
use crate::backend::{BackendError, VectorWidth};

/// A processor, by its name and features.
#[derive(Clone, Debug)]
pub(super) struct TargetCpu {
    /// LLVM's name.
    pub name: String,
    /// LLVM's feature list, `+avx2,-sse4a,…`.
    pub features: String,
    /// The processor that instructions are chosen for among those that are there; none for the first one.
    pub tune: Option<String>,
    /// The machine.
    pub target: Triple,
    /// Target triple that LLVM is given.
    pub triple: String,
    /// The features that code may use, by the names that the runtime knows; none where LLVM knows more of them.
    pub needs: Option<Vec<String>>,
    /// 512-bit vectors, with lane masks for all element sizes and vector lengths.
    pub avx512: bool,
    /// Sums of products of bytes, of all vector lengths.
    pub vnni: bool,
    /// Gathers.
    pub avx2: bool,
    /// A gather takes longer than a load for each lane.
    pub slow_gathers: bool,
    /// A shuffle of a register takes less time than a load of one.
    pub prefers_shuffles: bool,
    /// Fused multiply-add is one instruction.
    pub fma: bool,
    /// Arithmetic of binary16.
    pub halves: bool,
    /// Conversions from and to binary16.
    pub f16c: bool,
    /// Bits of the widest vectors.
    pub vectors: u32,
}

impl TargetCpu {
    /// The processor this runs on.
    pub(super) fn host() -> Result<TargetCpu, BackendError> {
        let name = TargetMachine::get_host_cpu_name().to_string();
        let features = TargetMachine::get_host_cpu_features().to_string();
        TargetCpu::here(name, features)
    }

    /// A processor of this machine's architecture by LLVM's name, with these features.
    pub(super) fn here(name: String, features: String) -> Result<TargetCpu, BackendError> {
        let architecture = Triple::host().architecture;
        if architecture != Architecture::X86_64 {
            let what = format!("architecture {architecture} is not supported; use cranelift");
            return Err(environment(what));
        }
        TargetCpu::new(architecture, name, features)
    }

    /// A processor of an architecture. The machine is this one.
    pub(super) fn new(
        architecture: Architecture,
        name: String,
        features: String,
    ) -> Result<TargetCpu, BackendError> {
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
        let x86 = architecture == Architecture::X86_64;
        if x86 && !has("sse4.1") {
            return Err(environment("x86-64 without SSE4.1"));
        }
        if matches!(architecture, Architecture::Riscv64(_)) && !has("v") {
            return Err(environment("RISC-V without the vector extension"));
        }
        let avx512 = ["avx512f", "avx512bw", "avx512dq", "avx512vl"]
            .iter()
            .all(|f| has(f));
        Ok(TargetCpu {
            avx512,
            vectors: match (x86, avx512) {
                (false, _) => 128,
                (true, false) => 256,
                (true, true) => 512,
            },
            vnni: avx512 && has("avx512vnni"),
            avx2: has("avx2"),
            // AMD's are microcode, in front of which everything waits.
            slow_gathers: name.starts_with("znver"),
            // With shuffles, sgemm was 1.05 to 1.07 times as fast on AMD's, and 0.94 to 0.97 times on Intel's.
            prefers_shuffles: name.starts_with("znver"),
            fma: !x86 || has("fma"),
            halves: avx512 && has("avx512fp16"),
            f16c: has("f16c"),
            tune: None,
            target: Triple::host(),
            needs: None,
            triple: TargetMachine::get_default_triple()
                .as_str()
                .to_string_lossy()
                .into_owned(),
            name,
            features,
        })
    }

    /// The same with vectors no wider than that. What AVX brings comes with vectors of 256 bits, so 128 is without it.
    pub(super) fn with_vectors(&self, width: VectorWidth) -> Result<TargetCpu, BackendError> {
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
        if bits == 128 && self.target.architecture == Architecture::X86_64 {
            (cpu.avx512, cpu.vnni, cpu.halves) = (false, false, false);
            (cpu.avx2, cpu.fma, cpu.f16c) = (false, false, false);
            let comma = if cpu.features.is_empty() { "" } else { "," };
            cpu.features.push_str(comma);
            cpu.features.push_str("-avx");
        }
        Ok(cpu)
    }

    /// How many registers for vectors there are.
    pub(super) fn registers(&self) -> u32 {
        let few = self.target.architecture == Architecture::X86_64 && !self.avx512;
        if few { 16 } else { 32 }
    }

    /// Lanes of 32 bits that are gathered at a time. Where gathers are slow, twice as many take a little more than twice as long.
    pub(super) fn gathered(&self) -> u16 {
        match self.avx512 && self.vectors == 512 && !self.slow_gathers {
            true => 16,
            false => 8,
        }
    }

    /// Everything about it that decides which code is made, by name.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
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
    pub(super) fn machine(&self, level: OptimizationLevel) -> Result<TargetMachine, BackendError> {
        static READY: OnceLock<()> = OnceLock::new();
        READY.get_or_init(|| {
            let all = InitializationConfig::default();
            Target::initialize_x86(&all);
            Target::initialize_aarch64(&all);
            Target::initialize_riscv(&all);
        });
        let triple = TargetTriple::create(&self.triple);
        let target = Target::from_triple(&triple).map_err(|e| environment(e.to_string()))?;
        let text = |text: &str| CString::new(text).map_err(|e| environment(e.to_string()));
        let (name, features) = (text(&self.name)?, text(&self.features)?);
        let level = match level {
            OptimizationLevel::None => LLVMCodeGenOptLevel::LLVMCodeGenLevelNone,
            OptimizationLevel::Less => LLVMCodeGenOptLevel::LLVMCodeGenLevelLess,
            OptimizationLevel::Default => LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
            OptimizationLevel::Aggressive => LLVMCodeGenOptLevel::LLVMCodeGenLevelAggressive,
        };
        let model = match self.target.architecture {
            // Constants are reached from the instruction, not from its page: code may be put anywhere.
            Architecture::Aarch64(_) => LLVMCodeModel::LLVMCodeModelTiny,
            Architecture::Riscv64(_) => LLVMCodeModel::LLVMCodeModelMedium,
            _ => LLVMCodeModel::LLVMCodeModelSmall,
        };
        // SAFETY: target and strings live until the call is over, and LLVM copies what it keeps.
        let made = unsafe {
            LLVMCreateTargetMachine(
                target.as_mut_ptr(),
                triple.as_ptr(),
                name.as_ptr(),
                features.as_ptr(),
                level,
                LLVMRelocMode::LLVMRelocPIC,
                model,
            )
        };
        if made.is_null() {
            let what = format!("LLVM has no code generator for {}", self.triple);
            return Err(environment(what));
        }
        // SAFETY: it was made just now, and nothing else has it.
        Ok(unsafe { TargetMachine::new(made) })
    }
}
