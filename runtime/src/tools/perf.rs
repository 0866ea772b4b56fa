//! The two ways in which Linux' `perf` learns of code that no file on disk holds.
//!
//! * The map `/tmp/perf-PID.map` has one line a function: address, size and name. `perf report` reads it when it meets an
//!   address in memory that belongs to no file.
//! * A jitdump `jit-PID.dump` has code and lines too. The process maps its first page executable, which is an event that
//!   `perf record -k mono` notes; `perf inject --jit` then makes an ELF file of each function.
//!
//! Files are appended to, one record a write, and stay behind for `perf`. Records of code that is gone stay as well: of two
//! functions at one address perf takes the one that was there at the time (jitdump), or the later one (map).

use std::fs::{File, OpenOptions, remove_file};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::{Mutex, PoisonError};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::time::{ClockId, clock_gettime};

use super::CodeInfo;
use crate::memory::map::page_size;

const MAGIC: u32 = 0x4A69_5444;
const VERSION: u32 = 1;
const HEADER_BYTES: u32 = 40;
/// Bytes at the start of every record.
const PREFIX_BYTES: usize = 16;
const CODE_LOAD: u32 = 0;
const DEBUG_INFO: u32 = 2;

/// ELF's number for this processor.
const MACHINE: u32 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else if cfg!(target_arch = "riscv64") {
    243
} else {
    0
};

/// A new file, in place of what an earlier process of this number left; never through a link that another user put there.
fn create(path: &Path) -> io::Result<File> {
    let _ = remove_file(path);
    let mut options = OpenOptions::new();
    options.create_new(true).read(true).append(true);
    options.mode(0o600).open(path)
}

/// A C string: up to the first zero byte.
fn c_string(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().take_while(|b| *b != 0));
    out.push(0);
}

/// A `perf-PID.map`.
#[derive(Debug)]
pub struct PerfMap {
    file: Mutex<File>,
    path: PathBuf,
}

impl PerfMap {
    /// The map of this process, where perf looks for it.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create() -> io::Result<PerfMap> {
        PerfMap::create_in(Path::new("/tmp"))
    }

    /// The same in another directory.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create_in(dir: &Path) -> io::Result<PerfMap> {
        let path = dir.join(format!("perf-{}.map", std::process::id()));
        let file = Mutex::new(create(&path)?);
        Ok(PerfMap { file, path })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a function.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&self, code: &CodeInfo<'_>) -> io::Result<()> {
        let name: String = code.name.chars().filter(|c| !c.is_control()).collect();
        let line = format!("{:x} {:x} {name}\n", code.address, code.bytes.len());
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes())
    }
}

/// A `jit-PID.dump`.
#[derive(Debug)]
pub struct JitDump {
    state: Mutex<DumpState>,
    path: PathBuf,
    /// Tells perf where the file is, for as long as there may be samples.
    _marker: Marker,
}

#[derive(Debug)]
struct DumpState {
    file: File,
    /// Functions so far.
    count: u64,
}

impl JitDump {
    /// The dump of this process, in `dir`.
    ///
    /// # Errors
    /// When the file cannot be made or mapped; mapping fails on file systems that hold no programs (`noexec`).
    pub fn create(dir: &Path) -> io::Result<JitDump> {
        let path = dir.join(format!("jit-{}.dump", std::process::id()));
        let mut file = create(&path)?;
        let words = [MAGIC, VERSION, HEADER_BYTES, MACHINE, 0, std::process::id()];
        let mut header: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        header.extend(now().to_ne_bytes());
        header.extend(0_u64.to_ne_bytes());
        file.write_all(&header)?;
        let marker = Marker::new(&file)?;
        Ok(JitDump {
            state: Mutex::new(DumpState { file, count: 0 }),
            path,
            _marker: marker,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a function with its lines.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&self, code: &CodeInfo<'_>) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // In one piece, so that a process that ends meanwhile leaves whole records; lines precede their code.
        let mut records = Vec::new();
        if !code.lines.is_empty() {
            record(&mut records, DEBUG_INFO, &lines(code));
        }
        record(&mut records, CODE_LOAD, &load(code, state.count));
        state.file.write_all(&records)?;
        state.count += 1;
        Ok(())
    }
}

fn lines(code: &CodeInfo<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(code.address.to_ne_bytes());
    body.extend((code.lines.len() as u64).to_ne_bytes());
    for line in &code.lines {
        let address = code.address.wrapping_add(u64::from(line.offset));
        body.extend(address.to_ne_bytes());
        body.extend(line.line.to_ne_bytes());
        body.extend(0_u32.to_ne_bytes()); // discriminator
        c_string(&mut body, line.file);
    }
    body
}

fn load(code: &CodeInfo<'_>, index: u64) -> Vec<u8> {
    let mut body = Vec::new();
    // The thread does not matter: all of a process see its code.
    for id in [std::process::id(); 2] {
        body.extend(id.to_ne_bytes());
    }
    let size = code.bytes.len() as u64;
    for word in [code.address, code.address, size, index] {
        body.extend(word.to_ne_bytes());
    }
    c_string(&mut body, code.name);
    body.extend_from_slice(code.bytes);
    body
}

fn record(out: &mut Vec<u8>, id: u32, body: &[u8]) {
    let size = (PREFIX_BYTES + body.len()) as u32;
    out.extend(id.to_ne_bytes());
    out.extend(size.to_ne_bytes());
    out.extend(now().to_ne_bytes());
    out.extend_from_slice(body);
}

/// The clock of `perf record -k mono`.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// The first page of a dump, mapped executable.
#[derive(Debug)]
struct Marker(NonNull<u8>);

// SAFETY: nothing reads or writes the page.
unsafe impl Send for Marker {}
// SAFETY: as above.
unsafe impl Sync for Marker {}

impl Marker {
    fn new(file: &File) -> io::Result<Marker> {
        let protection = ProtFlags::READ | ProtFlags::EXEC;
        // SAFETY: a new private mapping at an address of the system's choice, which nothing refers to.
        let start = unsafe {
            mmap(
                null_mut(),
                page_size(),
                protection,
                MapFlags::PRIVATE,
                file,
                0,
            )
        }?;
        NonNull::new(start.cast())
            .map(Marker)
            .ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        // SAFETY: the page was mapped by `new`, and nothing refers to it.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), page_size()) };
    }
}
