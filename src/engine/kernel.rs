//! Kernels: what they want, and their code.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Engine;
use super::abi::{self, PayloadPlan};
use super::cache::{self, Compiled, Origin};
use super::error::Error;
use super::key::{KernelPart, KeyParts};
use super::library::Linked;
use super::program::ProgramData;
use crate::artifact::Artifact;
use crate::backend::{Backend, CodeObject, CodegenOptions, OobPolicy, install};
use crate::container::BufferType;
use crate::container::KernelInfo;
use crate::interp::{self, InterpOptions};
use crate::isa::Platform;
use crate::limits::TEXT_SCRATCH_BYTES;
use crate::lower::{self, LocalIdShape};
use crate::passes;
use crate::ssa::{self, Space, verify};
use crate::valid::ValidKernel;
use visa_runtime::{ImageKind, KernelMeta};

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// Bytes by value.
    Value {
        /// Bytes of its slot in the payload.
        size: u32,
    },
    /// Pointer to global or constant memory.
    Buffer {
        /// Bound at this binding-table index.
        stateful: Option<u32>,
        /// Its address is passed as well, or only that.
        stateless: bool,
        /// In the constant address space.
        constant: bool,
    },
    /// Pointer to local memory, whose size the launch decides.
    Local {
        /// Bytes.
        alignment: u32,
    },
    /// Image.
    Image {
        /// How its coordinates count; `None` for kinds that cannot be given.
        kind: Option<ImageKind>,
        /// Binding-table index.
        bti: Option<u32>,
    },
    /// Sampler.
    Sampler,
    /// The compiled code does not use it.
    Unused,
}

/// A source-level argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Position.
    pub index: u32,
    /// Name, empty when the file does not say.
    pub name: String,
    /// OpenCL type, empty when the file does not say.
    pub type_name: String,
    /// What it is.
    pub kind: ArgKind,
}

impl Argument {
    /// Bytes of a scalar type below 32 bits. `.ze_info` gives such arguments the size of their place, 4.
    pub(crate) fn narrow_bytes(&self) -> Option<usize> {
        match self.type_name.as_str() {
            "bool" | "char" | "uchar" => Some(1),
            "short" | "ushort" | "half" => Some(2),
            _ => None,
        }
    }
}

/// A kernel ready to be interpreted.
pub(crate) struct Interpreted {
    pub program: Arc<interp::Program>,
    pub kernel: visa_runtime::Kernel,
    pub time: Duration,
}

pub(crate) struct KernelParts {
    pub engine: Engine,
    pub name: String,
    pub text: String,
    /// Functions that were linked in from other sections: how they are linked, and their texts.
    pub functions: String,
    /// The program; none of a kernel that came compiled.
    pub valid: Option<Arc<ValidKernel>>,
    pub platform: Platform,
    pub plan: PayloadPlan,
    pub info: Option<KernelInfo>,
    pub arguments: Vec<Argument>,
    pub data: Arc<ProgramData>,
    /// Code that came with it.
    pub linked: Option<Linked>,
}

struct Inner {
    parts: KernelParts,
    key: KernelPart,
    digest: [u8; 32],
}

/// A kernel of a program. Cloning gives another handle.
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

impl Kernel {
    pub(crate) fn new(parts: KernelParts) -> Kernel {
        let key = KernelPart::new(
            parts.platform,
            &parts.text,
            &parts.functions,
            &parts.plan,
            parts.meta(true),
        );
        let digest = key.digest();
        Kernel(Arc::new(Inner { parts, key, digest }))
    }

    pub(crate) fn parts(&self) -> &KernelParts {
        &self.0.parts
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.0.parts.name
    }

    /// Lanes of a hardware thread.
    pub fn simd(&self) -> u32 {
        match &self.0.parts.valid {
            Some(valid) => valid.simd(),
            None => self.0.parts.meta(false).simd.into(),
        }
    }

    /// The vISA text.
    pub fn text(&self) -> &str {
        &self.0.parts.text
    }

    /// The decoded, checked program; none of a kernel from a library, which has code only.
    pub fn valid(&self) -> Option<&ValidKernel> {
        self.0.parts.valid.as_deref()
    }

    /// Whether launches bind surfaces by index, as with kernels from vISA text.
    pub fn takes_surfaces(&self) -> bool {
        match &self.0.parts.linked {
            Some(linked) => linked.binds_surfaces(),
            None => self.0.parts.info.is_none(),
        }
    }

    /// The program, where one is needed.
    fn visa(&self) -> Result<&Arc<ValidKernel>, Error> {
        let parts = self.parts();
        parts.valid.as_ref().ok_or_else(|| Error::Unsupported {
            kernel: parts.name.clone(),
            what: "the library has machine code only, no vISA".to_owned(),
        })
    }

    /// Arguments in order; empty for kernels from text.
    pub fn arguments(&self) -> &[Argument] {
        &self.0.parts.arguments
    }

    /// Shared local memory that the kernel declares, in bytes.
    pub fn slm_bytes(&self) -> u32 {
        self.0.parts.slm_bytes()
    }

    /// Number of barriers the file declares.
    pub fn barriers(&self) -> u32 {
        self.0
            .parts
            .info
            .as_ref()
            .map_or(0, |i| i.execution_env.barrier_count)
    }

    /// Group size that the kernel was compiled for.
    pub fn required_local_size(&self) -> Option<[u32; 3]> {
        self.0.parts.required_local_size()
    }

    /// Scratch bytes of a hardware thread, as the file declares them.
    pub fn scratch_bytes(&self) -> u32 {
        self.0.parts.scratch_bytes()
    }

    fn lowered(&self, shape: LocalIdShape) -> Result<ssa::Function, Error> {
        let p = self.parts();
        let map = lower::PayloadMap {
            local_ids: shape,
            ..p.plan.map.clone()
        };
        lower::lower(self.visa()?, &p.name, &map).map_err(|error| Error::Lower {
            kernel: p.name.clone(),
            error,
        })
    }

    pub(super) fn optimised(&self, shape: LocalIdShape) -> Result<ssa::Function, Error> {
        let mut f = self.lowered(shape)?;
        let internal = |what: String| Error::Internal {
            kernel: self.name().into(),
            what,
        };
        verify(&f).map_err(|e| internal(format!("lowering made malformed SSA: {}", e[0])))?;
        passes::optimize(&mut f, &self.parts().engine.0.options.passes)
            .map_err(|e| internal(e.to_string()))?;
        Ok(f)
    }

    /// The SSA of the general specialisation.
    ///
    /// # Errors
    /// When the kernel cannot be lowered.
    pub fn ssa(&self, optimised: bool) -> Result<ssa::Function, Error> {
        if optimised {
            self.optimised(LocalIdShape::General)
        } else {
            self.lowered(LocalIdShape::General)
        }
    }

    /// Code of the general specialisation.
    ///
    /// # Errors
    /// When the kernel cannot be lowered or compiled.
    pub fn code(&self, oob: OobPolicy) -> Result<Arc<Compiled>, Error> {
        self.compiled(LocalIdShape::General, oob).map(|(c, _)| c)
    }

    /// Code of a specialisation, and where it was.
    pub(crate) fn compiled(
        &self,
        shape: LocalIdShape,
        oob: OobPolicy,
    ) -> Result<(Arc<Compiled>, Origin), Error> {
        if let Some(linked) = &self.parts().linked {
            return linked.code(shape, oob);
        }
        let engine = &self.parts().engine.0;
        let codegen = self.codegen(oob);
        let key = cache::Key {
            kernel: self.0.digest,
            local_ids: shape,
            codegen: codegen.clone(),
            backend: engine.identity.name,
        };
        let (code, origin) = engine.cache.get(key, || self.compile(shape, &codegen));
        Ok((code?, origin))
    }

    pub(super) fn codegen(&self, oob: OobPolicy) -> CodegenOptions {
        let strategy = self.parts().engine.0.options.strategy;
        CodegenOptions {
            oob,
            opt: strategy.opt,
            passes: strategy.passes,
        }
    }

    /// Key of a specialisation in the disk cache.
    pub(crate) fn disk_key(
        &self,
        shape: LocalIdShape,
        oob: OobPolicy,
    ) -> Option<crate::artifact::Key> {
        let engine = &self.parts().engine.0;
        let codegen = self.codegen(oob);
        let passes = &engine.options.passes;
        KeyParts::new(&engine.identity, &codegen, passes, &self.0.key, shape).key()
    }

    /// Keys of all specialisations under a policy, each with the launches it is for.
    pub(crate) fn cache_keys(&self, oob: OobPolicy) -> Vec<(&'static str, crate::artifact::Key)> {
        let general = (LocalIdShape::General, LocalIdShape::General.launches());
        let mut shapes = vec![general];
        if self.walks_rows() {
            shapes = vec![
                (LocalIdShape::FullRow, LocalIdShape::FullRow.launches()),
                (LocalIdShape::Row, LocalIdShape::Row.launches()),
                general,
            ];
        }
        let key = |(shape, name)| Some((name, self.disk_key(shape, oob)?));
        shapes.into_iter().filter_map(key).collect()
    }

    fn compile(&self, shape: LocalIdShape, codegen: &CodegenOptions) -> Result<Compiled, Error> {
        let start = Instant::now();
        let engine = &self.parts().engine.0;
        let place = engine
            .disk
            .as_ref()
            .and_then(|disk| Some((disk, self.disk_key(shape, codegen.oob)?)));
        if let Some((disk, key)) = &place
            && let Some(found) = disk.load(key)
            && let Ok(code) = self.installed(found, true, start)
        {
            return Ok(code);
        }
        let artifact = self.generate(engine.backend.as_ref(), shape, codegen)?;
        if let Some((disk, key)) = &place {
            disk.save(key, &artifact);
        }
        self.installed(artifact, false, start)
    }

    /// Lowers and compiles.
    pub(crate) fn generate(
        &self,
        backend: &dyn Backend,
        shape: LocalIdShape,
        codegen: &CodegenOptions,
    ) -> Result<Artifact, Error> {
        let f = self.optimised(shape)?;
        let object = backend.compile(&f, codegen)?;
        let meta = KernelMeta {
            frame_bytes: f.frame_bytes,
            regs_bytes: f.regs_bytes,
            states: f.states,
            exchange: f.exchange.as_ref().map(exchange),
            runs_following: f.states == 0,
            ..self
                .parts()
                .meta(f.sites.iter().any(|s| s.space == Space::Scratch))
        };
        Ok(Artifact {
            code: object.code,
            align: object.align,
            lines: object.lines,
            meta,
            sites: f.sites,
            note: object.note,
        })
    }

    /// Makes an artifact of this engine's backend callable.
    fn installed(
        &self,
        artifact: Artifact,
        from_disk: bool,
        start: Instant,
    ) -> Result<Compiled, Error> {
        let identity = &self.parts().engine.0.identity;
        let object = CodeObject {
            code: artifact.code,
            align: artifact.align,
            lines: artifact.lines,
            triple: identity.triple.clone(),
            backend: identity.name,
            note: artifact.note,
        };
        let kernel = install(&object, artifact.meta)?;
        Ok(Compiled {
            object,
            kernel,
            sites: artifact.sites,
            time: start.elapsed(),
            from_disk,
        })
    }

    /// The kernel as a program of the interpreter.
    pub(crate) fn interpreted(
        &self,
        options: &InterpOptions,
        oob: OobPolicy,
    ) -> Result<Interpreted, Error> {
        let start = Instant::now();
        let p = self.parts();
        let options = InterpOptions {
            report: oob != OobPolicy::ReadZeroSkipWrite,
            ..options.clone()
        };
        let program = interp::Program::new(
            self.visa()?.clone(),
            abi::interp_inputs(&p.plan.map),
            options,
        )
        .map_err(|error| Error::Interp {
            kernel: p.name.clone(),
            error,
        })?;
        let program = Arc::new(program);
        let meta = self.parts().meta(program.uses_scratch());
        let kernel = visa_runtime::Kernel::from_program(meta, program.clone())?;
        Ok(Interpreted {
            program,
            kernel,
            time: start.elapsed(),
        })
    }
}

impl KernelParts {
    fn slm_bytes(&self) -> u32 {
        if let Some(info) = &self.info {
            return info.execution_env.slm_size;
        }
        let declared = self
            .valid
            .as_ref()
            .and_then(|v| v.module().int_attr("SLMSize"));
        declared.map_or(0, |kb| kb.clamp(0, 128) as u32 * 1024)
    }

    fn required_local_size(&self) -> Option<[u32; 3]> {
        if let Some(linked) = &self.linked {
            return linked.meta().required_local_size;
        }
        self.info.as_ref()?.execution_env.required_work_group_size
    }

    fn scratch_bytes(&self) -> u32 {
        let buffers = self
            .info
            .as_ref()
            .map(|i| i.per_thread_memory_buffers.as_slice());
        buffers
            .unwrap_or(&[])
            .iter()
            .filter(|b| b.kind == BufferType::Scratch)
            .map(|b| b.size)
            .max()
            .unwrap_or(0)
    }

    /// What the runtime has to know, apart from what code generation decides.
    fn meta(&self, scratch: bool) -> KernelMeta {
        if let Some(linked) = &self.linked {
            return linked.meta();
        }
        let walk = self
            .info
            .as_ref()
            .and_then(|i| i.execution_env.work_group_walk_order_dimensions);
        KernelMeta {
            name: self.name.clone(),
            simd: self.valid.as_ref().map_or(0, |v| v.simd()) as u16,
            grf_bytes: self.platform.grf_bytes() as u16,
            slm_bytes: self.slm_bytes(),
            scratch_bytes: match self.info {
                Some(_) => self.scratch_bytes(),
                None if scratch => TEXT_SCRATCH_BYTES,
                None => 0,
            },
            walk_order: walk.map_or([0, 1, 2], |w| w.map(|d| d as u8)),
            payload_bytes: self.plan.bytes,
            required_local_size: self.required_local_size(),
            sr0_bits: sr0_bits(self.platform),
            ..KernelMeta::default()
        }
    }
}

/// As the runtime has it.
fn exchange(e: &crate::ssa::Exchange) -> visa_runtime::Exchange {
    visa_runtime::Exchange {
        offset: e.offset,
        bytes: e.bytes,
        lines: e.lines.clone(),
    }
}

/// Bits of `%sr0` that stack-call kernels keep when they number hardware threads (VISA.md 4.2: the others
/// are squeezed out).
const fn sr0_bits(platform: Platform) -> u32 {
    match platform {
        Platform::Dg2 => 0x3FB7,
        Platform::Pvc => 0x7F37,
        // No kernel of these platforms compacts the number.
        Platform::Skl | Platform::Tgllp => u32::MAX,
    }
}
