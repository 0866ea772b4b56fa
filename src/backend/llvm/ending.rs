//! LLVM's global data, in processes that end or `fork` while threads in the background compile.
//!
//! The first function that LLVM compiles makes most of that data: registries of targets and passes, and what it looks up. When a
//! process ends, the data is destroyed, the latest first. So a small function is compiled before any thread begins ([`prepare`]).
//! Nothing changes the data afterwards, and a child made by `fork` has all of it. A handler that is registered then runs before
//! the data is destroyed. It waits for the functions that are being compiled, and no further ones are begun.
//!
//! Two cases remain. A process may end on one thread while another is in [`prepare`], which takes a few milliseconds; it may then
//! destroy data that was made since the handler was registered. The same can happen when a process ends while a function takes
//! longer to compile than the handler waits.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::targets::FileType;

use super::cpu::TargetCpu;
use super::environment;
use crate::backend::BackendError;

/// How long the end of the process waits: longer than any function of a real kernel takes.
const LONGEST: Duration = Duration::from_secs(10);

/// How often it looks.
const LOOKS_EVERY: Duration = Duration::from_millis(1);

/// Threads that compile.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// The process ends.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The process whose threads are counted: a child that `fork` made has none of them.
static PROCESS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    fn atexit(handler: extern "C" fn()) -> c_int;
}

extern "C" fn wait_for_threads() {
    if PROCESS.load(SeqCst) != std::process::id() {
        return;
    }
    ENDING.store(true, SeqCst);
    let start = Instant::now();
    while INSIDE.load(SeqCst) != 0 && start.elapsed() < LONGEST {
        std::thread::sleep(LOOKS_EVERY);
    }
}

/// The handler that is registered last runs first: before the destructors of all data that is there already.
fn register() {
    PROCESS.store(std::process::id(), SeqCst);
    // SAFETY: the handler uses statics of this library only, and never unwinds. Without memory for it the end does not wait.
    let _ = unsafe { atexit(wait_for_threads) };
}

/// Has LLVM make its data, once.
///
/// # Errors
/// When it cannot generate code for this processor.
pub(super) fn prepare(cpu: &TargetCpu) -> Result<(), BackendError> {
    static DONE: OnceLock<()> = OnceLock::new();
    if DONE.get().is_some() {
        return Ok(());
    }
    // This makes the registries, which what follows looks at: the process may end meanwhile.
    let machine = cpu.machine(OptimizationLevel::Default)?;
    register();
    let inside = Inside::enter()?;
    let cx = Context::create();
    let module = cx.create_module("first");
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let word = cx.i32_type();
    let function = module.add_function("first", word.fn_type(&[], false), None);
    let b = cx.create_builder();
    b.position_at_end(cx.append_basic_block(function, ""));
    let made = b.build_return(Some(&word.const_zero()));
    made.map_err(|e| environment(e.to_string()))?;
    let made = machine.write_to_memory_buffer(&module, FileType::Object);
    made.map_err(|e| environment(e.to_string()))?;
    DONE.get_or_init(register);
    drop(inside);
    Ok(())
}

/// A thread that compiles, until dropped.
pub(super) struct Inside(());

impl Inside {
    /// Begins, unless the process ends.
    pub(super) fn enter() -> Result<Inside, BackendError> {
        INSIDE.fetch_add(1, SeqCst);
        let inside = Inside(());
        match ENDING.load(SeqCst) {
            true => Err(environment("the process ends")),
            false => Ok(inside),
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, SeqCst);
    }
}
