//! Code generation through LLVM: SSA in, position-independent bytes out.
//!
//! An SSA vector is an LLVM vector of the same length, and a mask is a vector of `i1`. LLVM splits what the processor has no
//! instructions for. Our own passes have optimised the function already, so by default none of LLVM's run; only its instruction
//! selection and register allocation do.
//!
//! Guarantees: the bytes refer to no external symbol and need no relocation. Floats are computed as the SSA says, without
//! contraction or other licence. What LLVM reports comes back as a [`BackendError`]. No code is made executable here.
#![allow(
    unsafe_code,
    reason = "a diagnostic handler, and pointer arithmetic in the IR"
)]

mod access;
mod affine;
mod atomic;
mod block_access;
mod blocks;
mod calls;
mod check;
mod compare;
mod context;
mod convert;
mod cpu;
mod dot;
mod each;
mod emit;
mod ending;
mod fault;
mod gather;
mod helper;
mod image;
mod init;
mod insts;
mod int;
mod jam;
mod kept;
mod lines;
mod memory;
mod narrow;
mod object;
mod ops;
mod race;
mod rectangle;
mod reloc;
mod speculative;
mod states;
mod target;
mod thread;
mod types;
mod values;
mod vec4;
mod vectors;
mod versioning;
mod words;

use std::ffi::{CStr, c_void};

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription,
    LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::module::{FlagBehavior, Linkage, Module};
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};
use inkwell::values::FunctionValue;
use inkwell::{AddressSpace, OptimizationLevel};
use target_lexicon::{Architecture, OperatingSystem, Triple};

use super::access::AccessPlan;
use super::calls::Call;
use super::{
    Backend, BackendError, Bounds, CodeObject, CodegenEffort, CodegenOptions, Explained, Identity,
    OptLevel, Order, StackUse, barrier_loop,
};
use crate::limits::{LLVM_FULL_BLOCK, LLVM_FULL_INSTS, LLVM_MAX_INSTS, LLVM_REORDERED_BLOCK};
use crate::schedule::Vectors;
use crate::ssa::{Function, Remark};
use crate::steps::step;
use cpu::TargetCpu;
use emit::{CUT, LlvmEmitter};
use ending::Inside;
use visa_runtime::abi::{MAX_HOST_STACK_BYTES, MAX_STACK_BYTES, STACK_ALIGN};

/// Name of this backend.
pub const NAME: &str = "llvm";

/// Name of the LLVM function.
const ENTRY: &str = "kernel";

/// The LLVM code generator for one processor.
pub struct LlvmBackend {
    cpu: TargetCpu,
}

impl LlvmBackend {
    /// A generator for the machine it runs on, using the features that machine has.
    ///
    /// # Errors
    /// [`BackendError::Environment`] when the machine is not supported.
    pub fn host() -> Result<LlvmBackend, BackendError> {
        Ok(LlvmBackend {
            cpu: TargetCpu::host()?,
        })
    }

    /// A generator for a processor of this machine's architecture by LLVM's name, for example `x86-64-v3`, with LLVM's list
    /// of further features, for example `+avx512f,-fma`.
    ///
    /// # Errors
    /// [`BackendError::Environment`] when the processor is not supported.
    pub fn for_cpu(name: &str, features: &str) -> Result<LlvmBackend, BackendError> {
        let cpu = TargetCpu::here(name.to_owned(), features.to_owned())?;
        Ok(LlvmBackend { cpu })
    }

    /// A generator for another machine, or this one, whose code uses the named processor features and no others. The names
    /// are those that the runtime knows ([`visa_runtime::linked::missing_features`]).
    ///
    /// # Errors
    /// [`BackendError`] when the machine or a feature is not supported.
    pub fn for_target(triple: &Triple, features: &[String]) -> Result<LlvmBackend, BackendError> {
        let cpu = target::cpu(triple, features)?;
        Ok(LlvmBackend { cpu })
    }

    /// Text of the LLVM IR made for a function, after LLVM's passes if any run.
    ///
    /// # Errors
    /// As [`Backend::compile`].
    pub fn ir(
        &self,
        function: &Function,
        options: &CodegenOptions,
    ) -> Result<String, BackendError> {
        let text = |module: &Module, _: &TargetMachine| Ok(module.print_to_string().to_string());
        LlvmBackend::caught(function, || self.with_module(function, options, text))
            .map(|made| made.value)
    }

    /// Makes and optimises a module, and hands it on.
    fn with_module<T>(
        &self,
        function: &Function,
        options: &CodegenOptions,
        then: impl FnOnce(&Module, &TargetMachine) -> Result<T, BackendError>,
    ) -> Result<Emitted<T>, BackendError> {
        let cpu = self.cpu.with_vectors(options.tuning.vector_width)?;
        let order = crate::ssa::dom::reverse_post_order(function);
        let barrier_loop = barrier_loop::plan(NAME, function, &order, options.tuning)?;
        let states = super::states::states(function, &order, barrier_loop);
        let cx = Context::create();
        let said = Said::default();
        said.listen(&cx);
        // What comes before code generation is the same on every level.
        let machine = cpu.machine(OptimizationLevel::None)?;
        let module = cx.create_module("kernel");
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        align_stack(&cpu, &cx, &module);
        let func = declare(&cpu, &cx, &module);
        let building = step(NAME, "build LLVM IR");
        let plan = AccessPlan::new(function, emit::limits(options, &cpu), &order);
        let calls = LlvmEmitter::new(function, options, &cpu, &cx, (&module, func), &plan)
            .and_then(|mut emit| {
                emit.program(barrier_loop, states.as_deref())?;
                Ok(emit.calls)
            })
            .map_err(|bug| internal(function, bug.0))?;
        drop(building);
        let remarks = plan.remarks(function);
        if cfg!(debug_assertions) {
            module
                .verify()
                .map_err(|e| internal(function, e.to_string()))?;
        }
        let Size {
            note,
            longest_block,
        } = size(function, func)?;
        let (codegen, opt) = match note {
            Some(_) => (CodegenEffort::None, OptLevel::None),
            None => (options.tuning.codegen, options.tuning.opt),
        };
        let machine = match codegen {
            CodegenEffort::None => machine,
            // LLVM's levels differ in the order of instructions after register allocation.
            CodegenEffort::Speed if longest_block > LLVM_REORDERED_BLOCK => {
                cpu.machine(OptimizationLevel::Less)?
            }
            CodegenEffort::Speed => cpu.machine(OptimizationLevel::Default)?,
        };
        let running = step(NAME, "LLVM passes");
        run_passes(function, &module, &machine, opt)?;
        drop(running);
        let result = then(&module, &machine);
        let stack_bytes = said.judge(function)?;
        Ok(Emitted {
            value: result?,
            stack_bytes,
            note,
            remarks,
            plan,
            calls,
        })
    }

    /// Generates code; `count` also counts spills, which generates it a second time.
    fn generate(
        &self,
        function: &Function,
        options: &CodegenOptions,
        count: bool,
    ) -> Result<Explained, BackendError> {
        let made = self.with_module(function, options, |module, machine| {
            let write = |module: &Module, kind| {
                let made = machine.write_to_memory_buffer(module, kind);
                made.map_err(|e| internal(function, e.to_string()))
            };
            // Code generation changes the module.
            let copy = count.then(|| module.clone());
            let generating = step(NAME, "instruction selection and register allocation");
            let object = write(module, FileType::Object)?;
            drop(generating);
            machine.set_asm_verbosity(true);
            let text = copy.map(|copy| write(&copy, FileType::Assembly));
            Ok((object, text.transpose()?))
        })?;
        let (object, text) = made.value;
        let linking = step(NAME, "link");
        let linked =
            object::link(object.as_slice(), ENTRY).map_err(|e| match options.tuning.opt {
                _ if e == reloc::TOO_FAR => BackendError::TooLarge {
                    backend: NAME,
                    function: function.name.clone(),
                    what: format!(
                        "{} bytes for {}: {e}",
                        object.as_slice().len(),
                        self.cpu.target
                    ),
                },
                OptLevel::None => internal(function, e),
                // LLVM's passes may find a library function in what they are given; there is no library.
                level => BackendError::Strategy {
                    backend: NAME,
                    what: format!(
                        "at pass level {}: `{}`: {e}; use level none",
                        level.name(),
                        function.name
                    ),
                },
            })?;
        drop(linking);
        let object = CodeObject {
            code: linked.code,
            align: linked.align,
            lines: lines::read(&linked.lines, linked.code_bytes).unwrap_or_default(),
            triple: self.cpu.target.clone(),
            backend: NAME,
            stack_bytes: made.stack_bytes,
            note: made.note,
        };
        let text = text.as_ref().map_or(&[][..], |text| text.as_slice());
        Ok(Explained {
            object,
            remarks: made.remarks,
            plan: Some(made.plan),
            calls: made.calls,
            stack: spills(&String::from_utf8_lossy(text)),
        })
    }

    fn caught<T>(
        function: &Function,
        make: impl FnOnce() -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        let _inside = Inside::enter()?;
        super::guarded(make, |what| internal(function, what))
    }
}

/// What came of a module.
struct Emitted<T> {
    value: T,
    /// Of the stack frame, where it is a large one.
    stack_bytes: u32,
    /// What was done with less effort than asked for.
    note: Option<String>,
    remarks: Vec<Remark>,
    plan: AccessPlan,
    calls: Vec<Call>,
}

/// Spills in the text of machine code, by LLVM's comments: `64-byte Spill`, `8-byte Folded Reload`.
fn spills(text: &str) -> StackUse {
    let count = |what: &str| {
        let comments = text.lines().filter_map(|line| line.split_once('#'));
        comments
            .filter(|(_, said)| said.trim_end().ends_with(what))
            .count()
    };
    StackUse::Counted {
        stores: count("Spill"),
        loads: count("Reload"),
    }
}

impl Backend for LlvmBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn identity(&self) -> Identity {
        let (major, minor, patch) = inkwell::support::get_llvm_version();
        Identity {
            name: NAME,
            version: format!("{major}.{minor}.{patch}"),
            triple: self.cpu.target.clone(),
            features: self.cpu.settings(),
        }
    }

    fn needs(&self) -> Option<Vec<String>> {
        self.cpu.needs.clone()
    }

    fn prepare(&self) -> Result<(), BackendError> {
        ending::prepare(&self.cpu)
    }

    fn scales_by_any(&self, options: &CodegenOptions) -> bool {
        let cpu = self.cpu.with_vectors(options.tuning.vector_width);
        cpu.is_ok_and(|cpu| cpu.avx512)
    }

    fn joins_halves(&self, options: &CodegenOptions) -> bool {
        let cpu = self.cpu.with_vectors(options.tuning.vector_width);
        cpu.is_ok_and(|cpu| cpu.halves)
    }

    fn interleaves(&self, options: &CodegenOptions) -> Option<Vectors> {
        let all = match (options.tuning.order, options.tuning.codegen) {
            (Order::Given, _) | (Order::Auto, CodegenEffort::None) => return None,
            (Order::Auto, CodegenEffort::Speed) => false,
            (Order::Interleaved, _) => true,
        };
        let cpu = self.cpu.with_vectors(options.tuning.vector_width).ok()?;
        Some(Vectors {
            bits: cpu.vectors,
            registers: cpu.registers(),
            all,
        })
    }

    fn plainer(&self, options: &CodegenOptions) -> Vec<(CodegenOptions, &'static str)> {
        let inline = options.tuned(|t| t.bounds = Bounds::Inline);
        let none = inline.tuned(|t| (t.codegen, t.opt) = (CodegenEffort::None, OptLevel::None));
        vec![
            (inline, "bounds=inline"),
            (none, "codegen=none, opt=none, bounds=inline"),
        ]
    }

    fn compile(
        &self,
        function: &Function,
        options: &CodegenOptions,
    ) -> Result<CodeObject, BackendError> {
        LlvmBackend::caught(function, || self.generate(function, options, false))
            .map(|made| made.object)
    }

    fn explain(
        &self,
        function: &Function,
        options: &CodegenOptions,
    ) -> Result<Explained, BackendError> {
        LlvmBackend::caught(function, || self.generate(function, options, true))
    }
}

/// Says how the stack is aligned where the entry point is called.
fn align_stack<'c>(cpu: &TargetCpu, cx: &'c Context, module: &Module<'c>) {
    let target = &cpu.target;
    if target.architecture == Architecture::X86_64
        && target.operating_system != OperatingSystem::Windows
    {
        let align = cx.i32_type().const_int(STACK_ALIGN.into(), false);
        module.add_basic_value_flag("override-stack-alignment", FlagBehavior::Error, align);
    }
}

/// The entry point, for the processor and with all of its vectors.
fn declare<'c>(cpu: &TargetCpu, cx: &'c Context, module: &Module<'c>) -> FunctionValue<'c> {
    let (ptr, word) = (cx.ptr_type(AddressSpace::default()), cx.i32_type());
    let ty = word.fn_type(&[ptr.into(), word.into(), word.into()], false);
    let func = module.add_function(ENTRY, ty, Some(Linkage::External));
    // Larger frames are reported with their size.
    let stack = MAX_HOST_STACK_BYTES.to_string();
    let width = cpu.vectors.to_string();
    let attributes = [
        ("target-cpu", cpu.name.as_str()),
        ("target-features", cpu.features.as_str()),
        ("prefer-vector-width", width.as_str()),
        ("min-legal-vector-width", width.as_str()),
        ("warn-stack-size", stack.as_str()),
        // No calls of memset and the like: there is nothing to call.
        ("no-builtins", ""),
    ];
    let tune = cpu.tune.as_deref().map(|tune| ("tune-cpu", tune));
    for (name, value) in attributes.into_iter().chain(tune) {
        let attribute = cx.create_string_attribute(name, value);
        func.add_attribute(AttributeLoc::Function, attribute);
    }
    let nounwind = Attribute::get_named_enum_kind_id("nounwind");
    let nounwind = cx.create_enum_attribute(nounwind, 0);
    func.add_attribute(AttributeLoc::Function, nounwind);
    if let Some(extended) = extended(cpu, cx) {
        func.add_attribute(AttributeLoc::Return, extended);
    }
    func
}

/// The attribute of 32-bit numbers that are handed over in registers, where the calling convention says what is above them.
fn extended(cpu: &TargetCpu, cx: &Context) -> Option<Attribute> {
    let riscv = matches!(cpu.target.architecture, Architecture::Riscv64(_));
    riscv.then(|| cx.create_enum_attribute(Attribute::get_named_enum_kind_id("signext"), 0))
}

fn environment(what: impl Into<String>) -> BackendError {
    BackendError::Environment {
        backend: NAME,
        what: what.into(),
    }
}

/// What the size of a function decides.
struct Size {
    /// Why it gets less effort than asked for, if it is that large.
    note: Option<String>,
    /// LLVM instructions of its longest block.
    longest_block: usize,
}

/// Counts LLVM instructions; too many are an error.
fn size(function: &Function, func: FunctionValue) -> Result<Size, BackendError> {
    let (mut total, mut longest, mut length) = (0, 0, 0);
    for block in func.get_basic_block_iter() {
        let n = block.get_instructions().count();
        let goes_on = block.get_name().to_bytes().starts_with(CUT.as_bytes());
        length = if goes_on { length + n } else { n };
        total += n;
        longest = longest.max(length);
    }
    if total > LLVM_MAX_INSTS {
        return Err(BackendError::TooLarge {
            backend: NAME,
            function: function.name.clone(),
            what: format!("{total} LLVM instructions, at most {LLVM_MAX_INSTS}"),
        });
    }
    let over = |what: &str, n: usize, limit: usize| {
        (n > limit).then(|| {
            format!(
                "{n} LLVM instructions in {what} are over the limit of {limit} for full effort: code was generated with the \
                 least, and is slower"
            )
        })
    };
    let block = || over("a block", longest, LLVM_FULL_BLOCK);
    Ok(Size {
        note: over("the kernel", total, LLVM_FULL_INSTS).or_else(block),
        longest_block: longest,
    })
}

/// Runs LLVM's passes on a module. Its vectorisers stay off: what can be a vector is one, and they turn scalar loads into
/// gathers, which are slower.
fn run_passes(
    function: &Function,
    module: &Module,
    machine: &TargetMachine,
    level: OptLevel,
) -> Result<(), BackendError> {
    let passes = match level {
        OptLevel::None => return Ok(()),
        OptLevel::O1 => "default<O1>",
        OptLevel::O2 => "default<O2>",
        OptLevel::O3 => "default<O3>",
    };
    let options = PassBuilderOptions::create();
    options.set_loop_vectorization(false);
    options.set_loop_slp_vectorization(false);
    module
        .run_passes(passes, machine, options)
        .map_err(|e| internal(function, e.to_string()))
}

fn internal(function: &Function, what: impl Into<String>) -> BackendError {
    BackendError::Internal {
        backend: NAME,
        function: function.name.clone(),
        what: what.into(),
    }
}

/// What LLVM had to complain of while it worked. Without a listener it prints, and exits on errors.
#[derive(Default)]
struct Said(Box<std::cell::RefCell<Vec<String>>>);

impl Said {
    fn listen(&self, cx: &Context) {
        let to: *const std::cell::RefCell<Vec<String>> = &raw const *self.0;
        // SAFETY: the box outlives the context's use: both belong to one call, and nothing is reported
        // after it. Reports come on the thread that asked for the work.
        unsafe { LLVMContextSetDiagnosticHandler(cx.raw(), Some(hear), to.cast_mut().cast()) }
    }

    /// Bytes of a large stack frame, 0 where it is none; errors, of which one that is too large is the input's.
    fn judge(&self, function: &Function) -> Result<u32, BackendError> {
        let mut largest = 0;
        for what in self.0.borrow().iter() {
            match frame_bytes(what) {
                Some(bytes) if bytes <= MAX_STACK_BYTES.into() => {
                    largest = largest.max(bytes as u32);
                }
                Some(bytes) => {
                    return Err(BackendError::TooLarge {
                        backend: NAME,
                        function: function.name.clone(),
                        what: format!("a stack frame of {bytes} bytes, at most {MAX_STACK_BYTES}"),
                    });
                }
                None => return Err(internal(function, what.clone())),
            }
        }
        Ok(largest)
    }
}

/// The size in LLVM's words about a large frame: `stack frame size (539024) exceeds limit (524288) in function 'kernel'`.
fn frame_bytes(said: &str) -> Option<u64> {
    let (_, rest) = said.split_once("stack frame size (")?;
    rest.split_once(')')?.0.parse().ok()
}

extern "C" fn hear(info: LLVMDiagnosticInfoRef, to: *mut c_void) {
    // SAFETY: `info` is what LLVM reports, whose description is a string of ours to dispose of; `to` is what
    // `listen` gave.
    unsafe {
        use LLVMDiagnosticSeverity::{LLVMDSNote, LLVMDSRemark};
        if matches!(LLVMGetDiagInfoSeverity(info), LLVMDSNote | LLVMDSRemark) {
            return;
        }
        let text = LLVMGetDiagInfoDescription(info);
        let said = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        let to = &*to.cast::<std::cell::RefCell<Vec<String>>>();
        to.borrow_mut().push(said);
    }
}
