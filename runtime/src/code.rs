//! Installs finished machine code. The only place that makes memory executable.
//!
//! Bytes go through `cranelift-jit` into pages of their own: written while the pages are
//! read-write, the rest of the last page filled with trap instructions, then sealed read-execute.
//! No mapping is ever writable and executable. The pages are unmapped with the last handle.
//!
//! It does not know what the bytes do; whoever calls the entry vouches for them.

use crate::abi::Entry;
use crate::limits::{MAX_CODE_ALIGN, MAX_CODE_BYTES};
use crate::memory::map::{Mapping, page_size};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_jit::{BranchProtection, JITBuilder, JITMemoryKind, JITMemoryProvider, JITModule};
use cranelift_module::{Linkage, Module, ModuleError, ModuleResult, default_libcall_names};
use rustix::mm::{MprotectFlags, mprotect};
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Why code could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// There are no bytes.
    #[error("no machine code to install")]
    Empty,
    /// Over a limit.
    #[error("{len} bytes of machine code are over the limit of {MAX_CODE_BYTES}")]
    TooLarge {
        /// Bytes of code.
        len: usize,
    },
    /// An alignment that is not a power of two up to [`MAX_CODE_ALIGN`].
    #[error("machine code cannot be aligned to {0} bytes")]
    Alignment(u64),
    /// This processor is not known to the installer.
    #[error("this processor cannot run installed code: {0}")]
    Host(String),
    /// The installer or the operating system refused.
    #[error("machine code could not be installed: {0}")]
    Install(#[source] Box<ModuleError>),
    /// Our bug: the installer reported success and left no code.
    #[error("internal error: the installer left no code")]
    Lost,
}

impl From<ModuleError> for CodeError {
    fn from(error: ModuleError) -> CodeError {
        CodeError::Install(Box::new(error))
    }
}

/// Installed machine code. Cloning gives another handle to the same code.
#[derive(Clone, Debug)]
pub struct CodeHandle {
    pages: Arc<CodePages>,
    entry: Entry,
}

impl CodeHandle {
    /// Installs position-independent `bytes`, whose first byte is the entry point.
    ///
    /// # Errors
    /// See [`CodeError`].
    pub fn install(bytes: &[u8], align: u64) -> Result<CodeHandle, CodeError> {
        CodeHandle::install_named("kernel", bytes, align)
    }

    /// The same with a name for profilers: under `perf record` the installer writes it to perf's map of the process.
    ///
    /// # Errors
    /// See [`CodeError`].
    pub fn install_named(name: &str, bytes: &[u8], align: u64) -> Result<CodeHandle, CodeError> {
        if bytes.is_empty() {
            return Err(CodeError::Empty);
        }
        if bytes.len() > MAX_CODE_BYTES {
            return Err(CodeError::TooLarge { len: bytes.len() });
        }
        if !align.is_power_of_two() || align > MAX_CODE_ALIGN {
            return Err(CodeError::Alignment(align));
        }
        let slot = Slot::default();
        let mut builder = JITBuilder::with_isa(host_isa()?, default_libcall_names());
        builder.memory_provider(Box::new(Provider { slot: slot.clone() }));
        let mut module = JITModule::new(builder);
        let start = define(&mut module, name, bytes, align)?;
        let pages = slot.take().ok_or(CodeError::Lost)?;
        // SAFETY: `start` is the first of the installed bytes, in pages sealed executable that live
        // as long as the handle. That they are a function of this type is the promise of whoever
        // calls it: `Entry` is an unsafe function.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(start) };
        Ok(CodeHandle {
            pages: Arc::new(pages),
            entry,
        })
    }

    /// The function. Valid as long as a handle to this code lives.
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// First address and length in bytes of the pages that hold the code.
    pub fn pages(&self) -> (usize, usize) {
        let mapping = &self.pages.mapping;
        (mapping.start() as usize, mapping.len())
    }
}

fn define(
    module: &mut JITModule,
    name: &str,
    bytes: &[u8],
    align: u64,
) -> Result<*const u8, CodeError> {
    let signature = module.make_signature();
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    let id = module.declare_function(&name, Linkage::Local, &signature)?;
    module.define_function_bytes(id, align, bytes, &[])?;
    module.finalize_definitions()?;
    Ok(module.get_finalized_function(id))
}

/// The ISA that a module wants; it generates nothing here, so one serves all.
fn host_isa() -> Result<OwnedTargetIsa, CodeError> {
    static ISA: OnceLock<Result<OwnedTargetIsa, String>> = OnceLock::new();
    ISA.get_or_init(|| {
        let mut flags = settings::builder();
        flags.set("is_pic", "false").map_err(|e| e.to_string())?;
        cranelift_native::builder()
            .map_err(str::to_owned)?
            .finish(settings::Flags::new(flags))
            .map_err(|e| e.to_string())
    })
    .clone()
    .map_err(CodeError::Host)
}

/// Sealed pages.
#[derive(Debug)]
struct CodePages {
    mapping: Mapping,
}

/// Where the provider leaves its pages for the handle: the module itself is dropped after use.
#[derive(Clone, Default)]
struct Slot(Arc<Mutex<Option<CodePages>>>);

impl Slot {
    fn put(&self, pages: CodePages) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(pages);
    }

    fn take(&self) -> Option<CodePages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Memory of one module with one function.
struct Provider {
    slot: Slot,
}

impl JITMemoryProvider for Provider {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        let page = page_size();
        let mut slot = self.slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_some() || !matches!(kind, JITMemoryKind::Executable) || align > page as u64 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let len = size.max(1).checked_next_multiple_of(page);
        let mapping = Mapping::reserve(len.ok_or(io::ErrorKind::InvalidInput)?)?;
        mapping.open(0..mapping.len())?;
        // The module copies the code over the start, the tail stays.
        fill_with_traps(&mapping, size);
        let start = mapping.start();
        *slot = Some(CodePages { mapping });
        Ok(start)
    }

    unsafe fn free_memory(&mut self) {
        self.slot.take();
    }

    fn finalize(&mut self, protection: BranchProtection) -> ModuleResult<()> {
        let Some(pages) = self.slot.take() else {
            return Ok(());
        };
        let mapping = &pages.mapping;
        flush_instruction_cache(mapping);
        let mut flags = MprotectFlags::READ | MprotectFlags::EXEC;
        if protection == BranchProtection::BTI {
            // PROT_BTI of aarch64 Linux.
            flags |= MprotectFlags::from_bits_retain(0x10);
        }
        // SAFETY: the pages are owned, hold finished code, and no reference points into them.
        unsafe { mprotect(mapping.start().cast(), mapping.len(), flags) }
            .map_err(|e| ModuleError::Allocation { err: e.into() })?;
        self.slot.put(pages);
        #[cfg(all(debug_assertions, target_os = "linux"))]
        watch_mappings();
        Ok(())
    }
}

/// Looks, now and then while a test suite runs, for a mapping of this process that is writable and executable; each time if
/// `VISA_JIT_WATCH_MAPPINGS` is set, as `cargo run -p xtask -- mappings` does.
#[cfg(all(debug_assertions, target_os = "linux"))]
fn watch_mappings() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static INSTALLED: AtomicU32 = AtomicU32::new(0);
    static EACH: OnceLock<bool> = OnceLock::new();
    let each = *EACH.get_or_init(|| std::env::var_os("VISA_JIT_WATCH_MAPPINGS").is_some());
    if each || INSTALLED.fetch_add(1, Ordering::Relaxed).is_multiple_of(64) {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        if maps.contains("/vgpreload_") {
            // Valgrind runs this process: what it translates code to is in such mappings.
            return;
        }
        let bad = maps.lines().find(|line| {
            let protection = line.split(' ').nth(1).unwrap_or("");
            protection.contains('w') && protection.contains('x')
        });
        debug_assert!(bad.is_none(), "writable and executable: {bad:?}");
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
const TRAP: &[u8] = &[0xCC];
#[cfg(target_arch = "aarch64")]
const TRAP: &[u8] = &0xD420_0000_u32.to_le_bytes();
#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
const TRAP: &[u8] = &[0];

/// Fills the tail of open pages with trap instructions, from the first whole one after `used` bytes.
fn fill_with_traps(mapping: &Mapping, used: usize) {
    let from = used.next_multiple_of(TRAP.len());
    for at in from..mapping.len() {
        // SAFETY: within pages that were just opened for writing and are not shared yet.
        unsafe { mapping.start().add(at).write(TRAP[at % TRAP.len()]) }
    }
}

/// Makes written code visible to instruction fetch; nothing to do where caches are coherent.
#[cfg(not(target_arch = "aarch64"))]
fn flush_instruction_cache(_: &Mapping) {}

/// Makes written code visible to instruction fetch, by the smallest line any processor has.
#[cfg(target_arch = "aarch64")]
fn flush_instruction_cache(mapping: &Mapping) {
    const LINE: usize = 16;
    let start = mapping.start() as usize;
    for address in (start..start + mapping.len()).step_by(LINE) {
        // SAFETY: cache maintenance of owned, mapped addresses changes no data.
        unsafe { std::arch::asm!("dc cvau, {0}", in(reg) address, options(nostack)) }
    }
    // SAFETY: a barrier.
    unsafe { std::arch::asm!("dsb ish", options(nostack)) }
    for address in (start..start + mapping.len()).step_by(LINE) {
        // SAFETY: as above.
        unsafe { std::arch::asm!("ic ivau, {0}", in(reg) address, options(nostack)) }
    }
    // SAFETY: barriers.
    unsafe { std::arch::asm!("dsb ish", "isb", options(nostack)) }
}
