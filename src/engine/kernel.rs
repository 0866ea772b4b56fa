//! Kernels: their arguments and requirements, and their code.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::abi;
use super::cache::{self, Compiled, Origin};
use super::disk::Disk;
use super::error::Error;
use super::key::KeyParts;
use super::linked::Linked;
use super::manifest::{KernelManifest, LoadedData};
use super::source::{ProgramFile, Visa};
use super::state::Engine;
use super::tools::Announcement;
use crate::artifact::Artifact;
use crate::backend::{
    Backend, BackendKind, Check, Checks, CodeObject, CodegenOptions, Gather, OobPolicy,
    SplitAccesses, Strategy, install, or_plainer,
};
use crate::interp::{self, InterpOptions};
use crate::isa::{Form, Platform};
use crate::lines::SourceMap;
use crate::lower::{self, LocalIdShape};
use crate::module::Inst;
use crate::passes::{self, MergeSplits};
use crate::ssa::{self, Space, verify};
use crate::steps::step;
use crate::valid::ValidKernel;
use visa_runtime::KernelMeta;
use visa_runtime::linked::{ArgKind, Argument, LaunchPlan};

/// A kernel ready to be interpreted.
pub(crate) struct Interpreted {
    pub program: Arc<interp::Program>,
    pub kernel: visa_runtime::Kernel,
    pub time: Duration,
}

/// Where a kernel's program is.
#[derive(Clone)]
pub(crate) enum Source {
    /// Here.
    Visa(Arc<Visa>),
    /// Still in the file: the cache had all that a launch needs.
    File {
        file: Arc<ProgramFile>,
        /// Place among the file's kernels.
        index: usize,
        read: OnceLock<Result<Arc<Visa>, Error>>,
    },
    /// There is none, but code that came with the kernel.
    Library(Linked),
}

pub(crate) struct KernelParts {
    pub engine: Engine,
    pub manifest: KernelManifest,
    pub data: Arc<LoadedData>,
    pub source: Source,
}

pub(super) struct Inner {
    parts: KernelParts,
    /// Of the key; made when it is first asked for.
    digest: OnceLock<[u8; 32]>,
    /// The same on the engine with the better code generator, where launches are tiered; made when it is first needed.
    pub(super) better: OnceLock<Kernel>,
    /// A launch had a write outside of the buffer that its pointer points into, which was looked for.
    pub(super) unconfined: AtomicBool,
}

/// A kernel of a program. Cloning gives another handle.
#[derive(Clone)]
pub struct Kernel(pub(super) Arc<Inner>);

impl Kernel {
    pub(crate) fn new(parts: KernelParts) -> Kernel {
        Kernel(Arc::new(Inner {
            parts,
            digest: OnceLock::new(),
            better: OnceLock::new(),
            unconfined: AtomicBool::new(false),
        }))
    }

    pub(crate) fn parts(&self) -> &KernelParts {
        &self.0.parts
    }

    pub(super) fn plan(&self) -> &LaunchPlan {
        &self.0.parts.manifest.plan
    }

    fn meta(&self) -> &KernelMeta {
        &self.0.parts.manifest.key.meta
    }

    pub(super) fn linked(&self) -> Option<&Linked> {
        match &self.0.parts.source {
            Source::Library(linked) => Some(linked),
            _ => None,
        }
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.meta().name
    }

    /// Lanes of a hardware thread.
    pub fn simd(&self) -> u32 {
        self.meta().simd.into()
    }

    /// The vISA text, after it that of the functions which the kernel calls through the stack: what lines of vISA refer to.
    /// Empty for a kernel from a library, which has code only.
    pub fn text(&self) -> &str {
        self.visa().map_or("", |visa| &visa.text)
    }

    /// The decoded, checked program; none of a kernel from a library, which has code only.
    pub fn valid(&self) -> Option<&ValidKernel> {
        self.visa().ok().map(|visa| visa.valid.as_ref())
    }

    /// What is suspicious about the kernel, one sentence each: results may not be what its source says.
    ///
    /// On `pvc` the vendor's compiler drops reads of images, and code goes on with values that were never written.
    pub fn warnings(&self) -> Vec<String> {
        let image = |a: &&Argument| matches!(a.kind, ArgKind::Image { .. });
        let Some(argument) = self.arguments().iter().find(image) else {
            return Vec::new();
        };
        let accesses = |inst: &Inst| {
            let row = inst.op.info();
            row.accesses_images() || matches!(row.form, Form::RawSend | Form::RawSends)
        };
        match self.valid() {
            Some(valid)
                if valid.target().platform == Platform::Pvc
                    && !valid.module().insts.iter().any(accesses) =>
            {
                vec![format!(
                    "kernel `{}` has an image, {}, and no instruction that accesses images: the compiler for pvc drops image reads",
                    self.name(),
                    argument.described()
                )]
            }
            _ => Vec::new(),
        }
    }

    /// Whether launches bind surfaces by index, as with kernels from vISA text.
    pub fn takes_surfaces(&self) -> bool {
        self.plan().binds_surfaces
    }

    /// The program, where one is needed; read now if it was not yet.
    fn visa(&self) -> Result<&Arc<Visa>, Error> {
        match &self.parts().source {
            Source::Visa(visa) => Ok(visa),
            Source::File { file, index, read } => {
                let visa = read.get_or_init(|| file.visa(*index));
                visa.as_ref().map_err(Clone::clone)
            }
            Source::Library(_) => Err(Error::Unsupported {
                kernel: self.name().to_owned(),
                what: "the library has machine code only, no vISA".to_owned(),
            }),
        }
    }

    /// Arguments in order. Of kernels from vISA text they are the inputs that launches set, by name.
    pub fn arguments(&self) -> &[Argument] {
        match self.takes_surfaces() {
            true => &[],
            false => &self.plan().arguments,
        }
    }

    /// Shared local memory that the kernel declares, in bytes.
    pub fn slm_bytes(&self) -> u32 {
        self.meta().slm_bytes
    }

    /// Number of barriers the file declares.
    pub fn barriers(&self) -> u32 {
        self.0.parts.manifest.barriers
    }

    /// Group size that the kernel was compiled for.
    pub fn required_local_size(&self) -> Option<[u32; 3]> {
        self.meta().required_local_size
    }

    /// Scratch bytes of a hardware thread, as the file declares them.
    pub fn scratch_bytes(&self) -> u32 {
        match self.takes_surfaces() {
            true => 0,
            false => self.meta().scratch_bytes,
        }
    }

    fn lowered(&self, shape: LocalIdShape) -> Result<ssa::Function, Error> {
        let map = lower::PayloadMap {
            local_ids: shape,
            ..self.parts().manifest.key.payload.clone()
        };
        let additions = lower::Additions {
            check_barriers: self.checks_barriers(),
            check_init: self.parts().engine.0.checks(Check::Init),
        };
        let lowered = lower::lower(&self.visa()?.valid, self.name(), &map, additions);
        lowered.map_err(|error| Error::Lower {
            kernel: self.name().to_owned(),
            error,
        })
    }

    pub(super) fn optimised(
        &self,
        shape: LocalIdShape,
        backend: &dyn Backend,
        oob: OobPolicy,
    ) -> Result<ssa::Function, Error> {
        let lowering = step("lowering", "lower");
        let mut f = self.lowered(shape)?;
        drop(lowering);
        let internal = |what: String| Error::Internal {
            kernel: self.name().into(),
            what,
        };
        verify(&f).map_err(|e| internal(format!("lowering made malformed SSA: {}", e[0])))?;
        let mut options = self.parts().engine.0.options.passes.clone();
        let codegen = self.codegen(oob);
        options.any_exponent = backend.scales_by_any(&codegen);
        options.interleave = backend.interleaves(&codegen);
        if !backend.joins_halves(&codegen) {
            options.disabled.insert("half-calls");
        }
        match merge_splits(&self.parts().engine.0.options.strategy, backend.name(), oob) {
            Some(splits) => options.merge_splits = splits,
            None => drop(options.disabled.insert("merge-splits")),
        }
        // Faults are recorded with their lanes, which scalar loads do not have.
        if oob != OobPolicy::ReadZeroSkipWrite {
            options.disabled.extend(["scalar-tails", "strip-start"]);
        }
        passes::optimize(&mut f, &options).map_err(|e| internal(e.to_string()))?;
        Ok(f)
    }

    /// The SSA of the general specialisation.
    ///
    /// # Errors
    /// When the kernel cannot be lowered.
    pub fn ssa(&self, optimised: bool) -> Result<ssa::Function, Error> {
        if optimised {
            self.optimised(
                LocalIdShape::General,
                self.parts().engine.0.backend.as_ref(),
                OobPolicy::default(),
            )
        } else {
            self.lowered(LocalIdShape::General)
        }
    }

    /// Code of a specialisation by the engine's own code generator, and where it was.
    pub(super) fn own_code(
        &self,
        shape: LocalIdShape,
        oob: OobPolicy,
    ) -> Result<(Arc<Compiled>, Origin), Error> {
        let key = self.cache_key(shape, oob);
        let codegen = key.codegen.clone();
        let cache = &self.parts().engine.0.cache;
        let (code, origin) = cache.get(key, || self.compile(shape, &codegen));
        Ok((code?, origin))
    }

    pub(super) fn cache_key(&self, shape: LocalIdShape, oob: OobPolicy) -> cache::Key {
        let digest = || self.parts().manifest.key.digest();
        cache::Key {
            kernel: *self.0.digest.get_or_init(digest),
            local_ids: shape,
            codegen: self.codegen(oob),
            backend: self.parts().engine.0.identity.name,
        }
    }

    pub(super) fn codegen(&self, oob: OobPolicy) -> CodegenOptions {
        let engine = &self.parts().engine.0;
        let strategy = engine.options.strategy;
        CodegenOptions {
            oob: engine.policy(oob),
            tuning: strategy.tuning,
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
        let kernel = &self.parts().manifest.key;
        KeyParts::new(&engine.identity, &codegen, passes, kernel, shape).key()
    }

    fn checks_barriers(&self) -> bool {
        self.parts().engine.0.checks(Check::Barrier)
    }

    /// Refuses checks for code that has none.
    pub(super) fn unchecked(&self, what: &str) -> Result<(), Error> {
        match self.parts().engine.0.options.strategy.tuning.check {
            Checks::NONE => Ok(()),
            check => Err(Error::Unsupported {
                kernel: self.name().to_owned(),
                what: format!("--check {} for {what}", check.name()),
            }),
        }
    }

    /// Code of a specialisation from the disk, or made now.
    pub(super) fn compile(
        &self,
        shape: LocalIdShape,
        codegen: &CodegenOptions,
    ) -> Result<Compiled, Error> {
        let start = Instant::now();
        let place = self.disk_place(shape, codegen.oob);
        if let Some(found) = self.loaded(&place, start) {
            return Ok(found);
        }
        let backend = self.parts().engine.0.backend.as_ref();
        let artifact = self.generate(backend, shape, codegen)?;
        if let Some((disk, key)) = &place {
            disk.save(key, &artifact);
        }
        self.installed(artifact, false, start)
    }

    /// Code of a specialisation that an earlier process left on the disk.
    pub(super) fn from_disk(&self, shape: LocalIdShape, oob: OobPolicy) -> Option<Compiled> {
        self.loaded(&self.disk_place(shape, oob), Instant::now())
    }

    /// Where the disk cache has a specialisation.
    fn disk_place(
        &self,
        shape: LocalIdShape,
        oob: OobPolicy,
    ) -> Option<(&Disk, crate::artifact::Key)> {
        let disk = self.parts().engine.0.disk.as_ref()?;
        Some((disk, self.disk_key(shape, oob)?))
    }

    fn loaded(
        &self,
        place: &Option<(&Disk, crate::artifact::Key)>,
        start: Instant,
    ) -> Option<Compiled> {
        let (disk, key) = place.as_ref()?;
        self.installed(disk.load(key)?, true, start).ok()
    }

    /// Lowers and compiles.
    pub(crate) fn generate(
        &self,
        backend: &dyn Backend,
        shape: LocalIdShape,
        codegen: &CodegenOptions,
    ) -> Result<Artifact, Error> {
        let f = self.optimised(shape, backend, codegen.oob)?;
        let (object, plainer) = or_plainer(backend, codegen, |o| backend.compile(&f, o))?;
        let meta = KernelMeta {
            frame_bytes: f.frame_bytes,
            regs_bytes: f.regs_bytes,
            stack_bytes: object.stack_bytes,
            states: f.states,
            exchange: f.exchange.as_ref().map(exchange),
            runs_following: f.states == 0,
            suspects: f.suspects,
            follows_pointers: f.follows_pointers,
            bases: f.bases.iter().copied().collect(),
            written: f.written.map(|all| all.into_iter().collect()),
            ..self
                .parts()
                .manifest
                .meta(f.sites.iter().any(|s| s.space == Space::Scratch))
        };
        Ok(Artifact {
            code: object.code,
            align: object.align,
            lines: object.lines.with_source(self.sources()?),
            meta,
            sites: f.sites,
            note: plainer.or(object.note),
        })
    }

    /// Source lines of the kernel's vISA.
    pub(super) fn sources(&self) -> Result<SourceMap, Error> {
        Ok(self.visa()?.valid.module().source_map())
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
            stack_bytes: artifact.meta.stack_bytes,
            note: artifact.note,
        };
        let kernel = install(&object, artifact.meta)?;
        let observers = self.parts().engine.0.observers.as_ref();
        let image = match (observers, kernel.address()) {
            (Some(observers), Some(address)) => observers.announce(&Announcement {
                name: self.name(),
                text: self.text(),
                object: &object,
                address,
            })?,
            _ => None,
        };
        Ok(Compiled {
            image,
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
        let manifest = &self.parts().manifest;
        let options = InterpOptions {
            report: self.parts().engine.0.policy(oob) != OobPolicy::ReadZeroSkipWrite,
            check_barriers: self.checks_barriers(),
            check_races: self.parts().engine.0.checks(Check::Race),
            race_same_value: self.parts().engine.0.options.race_same_value,
            check_init: self.parts().engine.0.checks(Check::Init),
            ..options.clone()
        };
        let program = interp::Program::new(
            self.visa()?.valid.clone(),
            abi::interp_inputs(&manifest.key.payload),
            options,
        )
        .map_err(|error| Error::Interp {
            kernel: self.name().to_owned(),
            error,
        })?;
        let program = Arc::new(program);
        let meta = manifest.meta(program.uses_scratch());
        let kernel = visa_runtime::Kernel::from_program(meta, program.clone())?;
        Ok(Interpreted {
            program,
            kernel,
            time: start.elapsed(),
        })
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

/// Which split accesses are merged in code of a code generator, if any. Split accesses share tests and pointers already. Merged
/// vectors take more registers, and are not jumped over where one half has no enabled lanes. Merging pays for accesses with full
/// masks at arbitrary addresses: on LLVM for most of them, on Cranelift for those that call the runtime anyway, and for loads
/// where faults are recorded, because one test decides for all their lanes then.
///
/// Under `--oob trap` nothing is merged: a lower half must have its effect if the upper half traps.
fn merge_splits(strategy: &Strategy, backend: &str, oob: OobPolicy) -> Option<MergeSplits> {
    let cranelift =
        backend == BackendKind::Cranelift.name() && strategy.tuning.gather != Gather::Call;
    match (strategy.tuning.split_accesses, oob) {
        (SplitAccesses::Keep, _) | (_, OobPolicy::Trap) => None,
        (SplitAccesses::Merge, _) => Some(MergeSplits::All),
        (SplitAccesses::Auto, _) if !cranelift => Some(MergeSplits::Scattered),
        (SplitAccesses::Auto, OobPolicy::Report) => Some(MergeSplits::Loads),
        (SplitAccesses::Auto, _) => Some(MergeSplits::Vec4),
    }
}
