//! Code generation through Cranelift: SSA in, position-independent bytes out.
//!
//! Cranelift's vectors have 128 bits, and it lacks many vector operations or panics on them. So everything is legalised before
//! Cranelift sees it. A vector value is an array of 128-bit *pieces*; the last one is padded with lanes that nothing reads. A
//! lane mask is either a bit for each lane in one register, or pieces of lanes that are all ones or all zeros.
//!
//! Guarantees: the bytes refer to no external symbol and need no relocation. A panic inside Cranelift comes back as
//! [`BackendError::Internal`]. No code is made executable here.

mod affine;
mod anchors;
mod atomic;
mod bits;
mod block_access;
mod blocks;
mod cache;
mod check;
mod constants;
mod context;
mod convert;
mod copies;
mod div;
mod dot;
mod emit;
mod fault;
mod float;
mod half;
mod helper;
mod image;
mod init;
mod int;
mod lanes;
mod local_shape;
mod mask;
mod mask_plan;
mod memory;
mod message;
mod ops;
mod pressure;
mod profile;
mod race;
mod schedule;
mod speculative;

mod access_group;
mod all_in_bounds;
mod rectangle;
mod rolled;
mod scaled;
mod shift;
mod shuffle;
mod states;
mod value;
mod vec4;
mod versioning;

use std::sync::Arc;

use cranelift_codegen::isa::{self, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable, OptLevel};
use cranelift_codegen::{CodegenError, CodegenResult, CompiledCode, Context, ir};
use target_lexicon::{Architecture, Triple};

use self::emit::Built;
use self::schedule::Schedule;
use super::{
    Backend, BackendError, Bounds, CodeObject, CodegenEffort, CodegenOptions, Cpu, Explained,
    Identity, Order, RegAlloc, StackUse,
};
use crate::lines::LineTable;
use crate::ssa::Function;
use crate::steps::step;
use visa_runtime::abi::MAX_STACK_BYTES;

/// Name of this backend.
pub const NAME: &str = "cranelift";

/// Cranelift instructions above which registers are allocated in a single pass: backtracking
/// allocation takes seconds there (CODEGEN figures: 100,000 instructions take 0.7 s).
const SINGLE_PASS_INSTS: usize = 150_000;

/// Sum of the lengths of all lives, in instructions, above which the same is done: a second for 512 vectors that all live across
/// 36,000 instructions, ten for 1,600 across 44,000. SHA-256 has 6 million. A kernel that sorts 16 keys an item in registers has 39: with
/// full effort it is compiled in 0.7 s instead of 0.2, and runs in 19 ms instead of 59 (bench case `insertion-private`, bmg).
const BACKTRACKED_LENGTHS: u64 = 40_000_000;

/// What is done to large code, for notes.
const SINGLE_PASS: &str = "registers were allocated in a single pass, which makes slower code";

/// Cranelift instructions above which a function is refused.
const MAX_INSTS: usize = 1_500_000;

/// What legalisation must know about the target.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// x86-64, as opposed to AArch64 and RISC-V.
    x64: bool,
    /// Registers for vectors.
    registers: u32,
    /// Fused multiply-add is one instruction.
    fma: bool,
    /// Vectors can be stored under a mask, by [`visa_runtime::abi::Helpers::store_enabled`].
    masked_stores: bool,
    /// Calling convention of the entry point and the helpers.
    call_conv: isa::CallConv,
}

/// The ways one target is compiled for: effort of optimisation, and of register allocation.
struct Isas {
    none: OwnedTargetIsa,
    speed: OwnedTargetIsa,
    none_fast: OwnedTargetIsa,
    speed_fast: OwnedTargetIsa,
}

/// The Cranelift code generator for one target.
pub struct CraneliftBackend {
    isas: Isas,
    target: Target,
    triple: Triple,
}

impl CraneliftBackend {
    /// A generator for the machine it runs on, using the features that machine has.
    ///
    /// # Errors
    /// [`BackendError::Environment`] when the machine is not supported.
    pub fn host() -> Result<CraneliftBackend, BackendError> {
        let builder = || {
            cranelift_native::builder().map_err(|what| BackendError::Environment {
                backend: NAME,
                what: what.to_owned(),
            })
        };
        CraneliftBackend::from_builders(&builder)
    }

    /// A generator for this machine's operating system and a processor of a level, which it has to have.
    ///
    /// # Errors
    /// [`BackendError::Environment`] when the level is not one of this architecture.
    pub fn for_cpu(cpu: Cpu) -> Result<CraneliftBackend, BackendError> {
        match cpu {
            Cpu::Native => CraneliftBackend::host(),
            level => CraneliftBackend::for_triple(Triple::host(), &[level.name()]),
        }
    }

    /// A generator for another target. `features` are Cranelift's names of target settings to
    /// enable, for example `has_avx2`; on x86-64 the base is SSE4.2 (x86-64-v2), on RISC-V it is RV64GC with the vector extension.
    ///
    /// # Errors
    /// [`BackendError::Environment`] when the target or a feature is not known.
    pub fn for_triple(triple: Triple, features: &[&str]) -> Result<CraneliftBackend, BackendError> {
        let environment = |what: String| BackendError::Environment {
            backend: NAME,
            what,
        };
        let builder = || {
            let mut b = isa::lookup(triple.clone())
                .map_err(|e| environment(format!("target {triple}: {}", no_target(&triple, &e))))?;
            for name in base_features(triple.architecture).iter().chain(features) {
                b.enable(name)
                    .map_err(|e| environment(format!("feature `{name}`: {e}")))?;
            }
            Ok(b)
        };
        // Every processor with AVX2 has AVX, but levels such as x86-64-v3 leave it out, and much with it.
        let flags = shared_flags("none", "backtracking").map_err(|e| environment(e.to_string()))?;
        let made = builder()?.finish(flags);
        let avx = made.is_ok_and(|isa| has(isa.as_ref(), "has_avx2"));
        let builder = || {
            let mut b = builder()?;
            if avx {
                b.enable("has_avx")
                    .map_err(|e| environment(format!("feature `has_avx`: {e}")))?;
            }
            Ok(b)
        };
        CraneliftBackend::from_builders(&builder)
    }

    fn from_builders(
        builder: &dyn Fn() -> Result<isa::Builder, BackendError>,
    ) -> Result<CraneliftBackend, BackendError> {
        let finish = |opt: &str, regalloc: &str| -> Result<OwnedTargetIsa, BackendError> {
            let environment = |what: String| BackendError::Environment {
                backend: NAME,
                what,
            };
            let flags = shared_flags(opt, regalloc).map_err(|e| environment(e.to_string()))?;
            builder()?
                .finish(flags)
                .map_err(|e| environment(e.to_string()))
        };
        let isas = Isas {
            none: finish("none", "backtracking")?,
            speed: finish("speed", "backtracking")?,
            none_fast: finish("none", "single_pass")?,
            speed_fast: finish("speed", "single_pass")?,
        };
        let triple = isas.speed.triple().clone();
        let target = describe(isas.speed.as_ref())?;
        Ok(CraneliftBackend {
            isas,
            target,
            triple,
        })
    }

    /// The target that code is generated for.
    pub fn triple(&self) -> &Triple {
        &self.triple
    }

    /// Target settings that are enabled, in a fixed order: part of a cache key.
    pub fn features(&self) -> Vec<String> {
        self.isas
            .speed
            .isa_flags()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Text of the Cranelift IR made for a function before Cranelift optimises it.
    ///
    /// # Errors
    /// As [`Backend::compile`].
    pub fn clif(
        &self,
        function: &Function,
        options: &CodegenOptions,
    ) -> Result<String, BackendError> {
        guarded(function, || {
            emit::build(function, self.target, options)
                .map(|built| built.func.display().to_string())
        })
    }

    /// How much work to put into a function; a note if that is less than was asked for.
    fn effort(
        &self,
        func: &mut ir::Function,
        options: &CodegenOptions,
    ) -> (&Arc<dyn TargetIsa>, Option<String>) {
        let insts = func.dfg.num_insts();
        if insts > SINGLE_PASS_INSTS {
            let note = format!(
                "{insts} Cranelift instructions are over the limit of {SINGLE_PASS_INSTS} for full effort: {SINGLE_PASS}"
            );
            return (&self.isas.none_fast, Some(note));
        }
        let fast = options.tuning.regalloc == RegAlloc::Fast;
        let unoptimised = if fast {
            &self.isas.none_fast
        } else {
            &self.isas.none
        };
        if options.tuning.codegen == CodegenEffort::None {
            return (unoptimised, None);
        }
        if !copies::compute_once(func) {
            let note = format!(
                "Cranelift's optimiser would compute most values again for each of their uses: it was not run, and {SINGLE_PASS}"
            );
            return (&self.isas.none_fast, Some(note));
        }
        let optimised = if fast {
            &self.isas.speed_fast
        } else {
            &self.isas.speed
        };
        (optimised, None)
    }

    fn generate(
        &self,
        function: &Function,
        options: &CodegenOptions,
    ) -> Result<Explained, BackendError> {
        let building = step(NAME, "build Cranelift IR");
        let Built {
            mut func,
            plan,
            calls,
            ordered,
        } = emit::build(function, self.target, options)?;
        drop(building);
        let insts = func.dfg.num_insts();
        if insts > MAX_INSTS {
            let what = format!("{insts} Cranelift instructions, at most {MAX_INSTS}");
            return Err(too_large(function, what));
        }
        let (isa, note) = self.effort(&mut func, options);
        let isas = (isa.as_ref(), self.isas.none_fast.as_ref());
        let optimised = isa.flags().opt_level() != OptLevel::None;
        let order = match options.tuning.order {
            Order::Interleaved => Some(Schedule::all(self.target.registers)),
            Order::Auto if optimised => Some(Schedule::large(self.target.registers, ordered)),
            Order::Auto | Order::Given => None,
        };
        let (object, stack) = finish(function, func, isas, &self.triple, order.as_ref())?;
        let note = note.or_else(|| object.note.clone());
        Ok(Explained {
            object: CodeObject { note, ..object },
            remarks: plan.remarks(function),
            calls,
            plan: Some(plan),
            stack,
        })
    }
}

impl Backend for CraneliftBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn identity(&self) -> Identity {
        let flags = self.isas.speed.isa_flags();
        Identity {
            name: NAME,
            version: cranelift_codegen::VERSION.to_owned(),
            triple: self.triple.clone(),
            features: flags
                .iter()
                .map(|flag| (flag.name.to_owned(), flag.value_string()))
                .collect(),
        }
    }

    fn needs(&self) -> Option<Vec<String>> {
        let flags = self.isas.speed.isa_flags();
        let enabled = flags.iter().filter(|f| f.as_bool() == Some(true));
        let names = enabled.map(|f| f.name.to_owned());
        Some(names.filter(|name| name.starts_with("has_")).collect())
    }

    fn plainer(&self, options: &CodegenOptions) -> Vec<(CodegenOptions, &'static str)> {
        let none = options.tuned(|t| t.codegen = CodegenEffort::None);
        let fast = none.tuned(|t| t.regalloc = RegAlloc::Fast);
        let inline = fast.tuned(|t| t.bounds = Bounds::Inline);
        vec![
            (none, "codegen=none"),
            (fast, "codegen=none, regalloc=fast"),
            (inline, "codegen=none, regalloc=fast, bounds=inline"),
        ]
    }

    fn explain(
        &self,
        function: &Function,
        options: &CodegenOptions,
    ) -> Result<Explained, BackendError> {
        guarded(function, || self.generate(function, options))
    }
}

/// Runs `body`, turning a panic into an internal error.
fn guarded<T>(
    function: &Function,
    body: impl FnOnce() -> Result<T, BackendError>,
) -> Result<T, BackendError> {
    super::guarded(body, |what| internal(function, what))
}

fn internal(function: &Function, what: String) -> BackendError {
    BackendError::Internal {
        backend: NAME,
        function: function.name.clone(),
        what,
    }
}

fn too_large(function: &Function, what: String) -> BackendError {
    BackendError::TooLarge {
        backend: NAME,
        function: function.name.clone(),
        what,
    }
}

fn shared_flags(opt: &str, regalloc: &str) -> settings::SetResult<settings::Flags> {
    let mut flags = settings::builder();
    flags.set("opt_level", opt)?;
    flags.set("regalloc_algorithm", regalloc)?;
    flags.set("is_pic", "true")?;
    flags.set("enable_probestack", "false")?;
    flags.set("preserve_frame_pointers", "false")?;
    flags.set("unwind_info", "false")?;
    // It would verify after each of Cranelift's passes: `compiled` has it done before and after all of them.
    flags.set("enable_verifier", "false")?;
    Ok(settings::Flags::new(flags))
}

/// Features that every processor is taken to have, by the names of Cranelift's settings.
///
/// `compile --target` gives LLVM the same ones, so that both backends' objects run on the same machines.
pub fn base_features(architecture: Architecture) -> &'static [&'static str] {
    match architecture {
        Architecture::X86_64 => &[
            "has_sse3",
            "has_ssse3",
            "has_sse41",
            "has_sse42",
            "has_popcnt",
        ],
        // Cranelift has no vectors there but those of the vector extension, and panics where it meets others.
        Architecture::Riscv64(_) => &["has_m", "has_a", "has_f", "has_d", "has_v"],
        _ => &[],
    }
}

/// Why there is no code generator for a target.
fn no_target(triple: &Triple, error: &isa::LookupError) -> String {
    match (triple.architecture, error) {
        (Architecture::Riscv64(_), isa::LookupError::SupportDisabled) => {
            "this program was built without its code generator: build with `cargo build --features riscv64`"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

/// Whether a target has a feature.
fn has(isa: &dyn TargetIsa, name: &str) -> bool {
    let flags = isa.isa_flags();
    flags
        .iter()
        .any(|v| v.name == name && v.as_bool() == Some(true))
}

fn describe(isa: &dyn TargetIsa) -> Result<Target, BackendError> {
    let on = |name: &str| has(isa, name);
    let environment = |what: String| BackendError::Environment {
        backend: NAME,
        what,
    };
    let call_conv = isa::CallConv::triple_default(isa.triple());
    match isa.triple().architecture {
        Architecture::X86_64 => {
            if !(on("has_ssse3") && on("has_sse41")) {
                return Err(environment("x86-64 without SSE4.1".to_owned()));
            }
            Ok(Target {
                x64: true,
                registers: 16,
                fma: on("has_fma") && on("has_avx"),
                masked_stores: on("has_avx512f") && on("has_avx512vl"),
                call_conv,
            })
        }
        Architecture::Riscv64(_) if !on("has_v") => Err(environment(
            "RISC-V without the vector extension".to_owned(),
        )),
        Architecture::Aarch64(_) | Architecture::Riscv64(_) => Ok(Target {
            x64: false,
            registers: 32,
            fma: true,
            masked_stores: false,
            call_conv,
        }),
        other => Err(environment(format!(
            "architecture {other} is not supported"
        ))),
    }
}

/// What `Context::compile` does, with a pass of our own between Cranelift's and register allocation. Registers are allocated
/// by `quick` where `isa` would take too long, which is said.
fn compiled(
    ctx: &mut Context,
    (isa, quick): (&dyn TargetIsa, &dyn TargetIsa),
    schedule: Option<&Schedule>,
) -> CodegenResult<(CompiledCode, Option<String>)> {
    let control = &mut Default::default();
    let _profile = profile::Steps::begin();
    if cfg!(debug_assertions) {
        ctx.verify(isa)?;
    }
    ctx.optimize(isa, control)?;
    if let Some(schedule) = schedule {
        let _step = step(NAME, "schedule");
        schedule.run(&mut ctx.func);
    }
    constants::bring_near(&mut ctx.func);
    if cfg!(debug_assertions) {
        ctx.verify(isa)?;
    }
    let (func, domtree) = (&ctx.func, &ctx.domtree);
    let lengths = pressure::lengths(func);
    let long = lengths > BACKTRACKED_LENGTHS;
    let isa = if long { quick } else { isa };
    let stencil = isa.compile_function(func, domtree, &mut Default::default(), false, control)?;
    let note = long.then(|| {
        format!(
            "values live across {lengths} instructions, added up, which is over the limit of {BACKTRACKED_LENGTHS} for full \
             effort: {SINGLE_PASS}"
        )
    });
    Ok((stencil.apply_params(&func.params), note))
}

/// Machine code of a finished Cranelift function.
fn finish(
    function: &Function,
    func: ir::Function,
    isas: (&dyn TargetIsa, &dyn TargetIsa),
    triple: &Triple,
    schedule: Option<&Schedule>,
) -> Result<(CodeObject, StackUse), BackendError> {
    let sizes: Vec<u32> = func.sized_stack_slots.values().map(|s| s.size).collect();
    let mut ctx = Context::for_function(func);
    let (compiled, note) = compiled(&mut ctx, isas, schedule).map_err(|e| match e {
        CodegenError::CodeTooLarge | CodegenError::ImplLimitExceeded => {
            too_large(function, e.to_string())
        }
        other => internal(function, format!("{other:?}")),
    })?;
    if let Some(reloc) = compiled.buffer.relocs().first() {
        return Err(internal(function, format!("relocation {reloc:?}")));
    }
    let stack = compiled
        .buffer
        .frame_layout()
        .map_or(0, |l| l.frame_to_fp_offset);
    if stack > MAX_STACK_BYTES {
        let what = format!("a stack frame of {stack} bytes, at most {MAX_STACK_BYTES}");
        return Err(too_large(function, what));
    }
    let stack_bytes = stack;
    let slots = compiled.buffer.frame_layout().into_iter();
    let slots = slots.flat_map(|l| l.stackslots.values().map(|slot| slot.offset));
    let own = slots.zip(sizes).map(|(at, size)| at..at + size);
    let stack = StackUse::Program(own.collect());
    let object = CodeObject {
        code: compiled.buffer.data().to_vec(),
        align: u64::from(compiled.buffer.alignment).max(16),
        lines: line_map(&compiled),
        triple: triple.clone(),
        backend: NAME,
        stack_bytes,
        note,
    };
    Ok((object, stack))
}

/// Lines of the code, from the ranges that have one; what is between them has none.
fn line_map(compiled: &cranelift_codegen::CompiledCode) -> LineTable {
    let line = |loc: ir::SourceLoc| if loc.is_default() { 0 } else { loc.bits() };
    let ranges = compiled.buffer.get_srclocs_sorted().iter();
    LineTable::new(ranges.flat_map(|range| [(range.start, line(range.loc)), (range.end, 0)]))
}
