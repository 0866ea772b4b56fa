//! Compiles OpenCL C and SPIR-V to zebins by calling the installed `libocloc`.
//!
//! The library is loaded at run time and stays loaded: it drags in LLVM, which does not survive being unloaded.
//! Sources and results are passed in memory. Calls are serialised, because the library
//! keeps global state, and run on a thread of their own with a large stack.
//!
//! What cannot be helped in one process: on SPIR-V that it cannot read the library ends the process; after a
//! failed build it prints its command line; and while it emits vISA it writes `kernel.visaasm` and the like
//! to the working directory. [`compile_in_worker`](super::compile_in_worker) has none of these effects.
#![allow(unsafe_code, reason = "calls a C library through pointers")]

mod about;
mod find;
mod link;
mod program;

pub use about::{About, Interface};
pub use find::{Attempt, FoundBy, Survey};

use std::error::Error as _;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_uint};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Mutex;

use libloading::Library;

use super::error::ContainerError;
use super::limits;
use crate::isa::DeviceName;

/// Environment variable that names the library to load instead of the system's, or a program to run in its place. A name with
/// `.so` in it is a library's.
pub const OCLOC_ENV: &str = "VISA_JIT_OCLOC";

/// Makes the compiler keep the vISA it generated.
const EMIT_VISA: &str = "-ze-emit-zebin-visa-sections";
/// The output that holds everything the compiler had to say.
const LOG_NAME: &[u8] = b"stdout.log";
const ELF_MAGIC: &[u8] = b"\x7fELF";
/// What versions of the compiler say about a device that they do not know.
const UNKNOWN_DEVICE: [&str; 2] = ["Cannot get HW Info", "Could not determine device target"];

/// One call at a time: the library keeps global state.
static CALLS: Mutex<()> = Mutex::new(());

type InvokeFn = unsafe extern "C" fn(
    c_uint,
    *const *const c_char,
    u32,
    *const *const u8,
    *const u64,
    *const *const c_char,
    u32,
    *const *const u8,
    *const u64,
    *const *const c_char,
    *mut u32,
    *mut *mut *mut u8,
    *mut *mut u64,
    *mut *mut *mut c_char,
) -> c_int;
type FreeFn = unsafe extern "C" fn(
    *mut u32,
    *mut *mut *mut u8,
    *mut *mut u64,
    *mut *mut *mut c_char,
) -> c_int;
type VersionFn = unsafe extern "C" fn() -> c_int;

/// The loaded compiler.
#[derive(Clone, Debug)]
pub struct Ocloc {
    path: PathBuf,
    found_by: FoundBy,
    version: (u16, u16),
    how: How,
}

/// How the compiler is called.
#[derive(Clone, Copy, Debug)]
enum How {
    Library { invoke: InvokeFn, free: FreeFn },
    Program,
}

/// Language of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// OpenCL C text.
    #[default]
    OpenClC,
    /// A SPIR-V module.
    SpirV,
}

/// What to compile, and how.
#[derive(Clone, Copy, Debug)]
pub struct CompileRequest<'a> {
    /// Name that appears in messages, such as `saxpy.cl`. No file of this name is read.
    pub name: &'a str,
    /// The source.
    pub source: &'a [u8],
    /// Its language.
    pub kind: SourceKind,
    /// Headers that `#include` finds, by name. Beside SPIR-V: modules to link it with first.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// What to compile for.
    pub device: DeviceName,
    /// OpenCL build options, such as `-cl-std=CL2.0 -DN=4`.
    pub options: &'a str,
    /// Further internal compiler options, added to the one that keeps the vISA.
    pub internal_options: &'a str,
    /// What to make.
    pub product: Product,
}

/// What a compilation makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Product {
    /// Code for the device, with vISA.
    #[default]
    Zebin,
    /// A SPIR-V module, to be linked with others. Only from OpenCL C.
    SpirV,
}

impl<'a> CompileRequest<'a> {
    /// A request without headers or options; the language follows from the first bytes of `source`. The device is a name, or a
    /// class, which has a name.
    pub fn new(name: &'a str, source: &'a [u8], device: impl Into<DeviceName>) -> Self {
        let spirv = source.starts_with(b"\x03\x02\x23\x07");
        let kind = if spirv {
            SourceKind::SpirV
        } else {
            SourceKind::OpenClC
        };
        Self {
            name,
            source,
            kind,
            headers: &[],
            device: device.into(),
            options: "",
            internal_options: "",
            product: Product::Zebin,
        }
    }
}

/// What a successful compilation gives.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The zebin, with vISA sections; [`Zebin::parse`](super::Zebin::parse) reads it. Or SPIR-V, if that was asked for.
    pub zebin: Vec<u8>,
    /// Warnings; empty when there are none.
    pub log: String,
}

impl Ocloc {
    /// Loads one particular library.
    pub fn load_from(path: &Path) -> Result<Self, ContainerError> {
        let library = open(path.as_os_str()).map_err(|error| {
            let said = find::attempt(path, &error);
            let detail = format!("{}: {}", said.name, said.message);
            ContainerError::OclocMissing { detail }
        })?;
        Self::bind(library, path, FoundBy::Variable)
    }

    /// Takes a program to run for each source, as `ocloc` itself or what starts it in another system's directories.
    ///
    /// # Errors
    /// [`ContainerError::OclocMissing`] when there is no such file.
    pub fn run_from(path: &Path) -> Result<Self, ContainerError> {
        let missing = |detail| ContainerError::OclocMissing { detail };
        let found = path.canonicalize();
        let path = found.map_err(|e| missing(format!("{}: {e}", path.display())))?;
        if !path.is_file() {
            return Err(missing(format!("{}: not a file", path.display())));
        }
        Ok(Self {
            path,
            found_by: FoundBy::Variable,
            version: (0, 0),
            how: How::Program,
        })
    }

    /// The name or path it was loaded by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Version of the library's interface, major and minor; zeros for a program.
    pub fn version(&self) -> (u16, u16) {
        self.version
    }

    fn bind(library: Library, path: &Path, found_by: FoundBy) -> Result<Self, ContainerError> {
        let broken = |message: String| ContainerError::OclocBroken {
            path: path.into(),
            message,
        };
        let symbol = |error: libloading::Error| broken(said(&error));
        // SAFETY: the types are those of ocloc_api.h (interface 1.x, checked below).
        let (invoke, free, version) = unsafe {
            (
                *library.get::<InvokeFn>(b"oclocInvoke\0").map_err(symbol)?,
                *library
                    .get::<FreeFn>(b"oclocFreeOutput\0")
                    .map_err(symbol)?,
                *library
                    .get::<VersionFn>(b"oclocVersion\0")
                    .map_err(symbol)?,
            )
        };
        // The function pointers are used for as long as the process lives.
        std::mem::forget(library);
        // SAFETY: takes no arguments and only returns a number.
        let version = unsafe { version() }.cast_unsigned().to_be_bytes();
        let [a, b, c, d] = version;
        let version = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        if version.0 != 1 {
            return Err(broken(format!(
                "its interface is version {}, expected 1",
                version.0
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            found_by,
            version,
            how: How::Library { invoke, free },
        })
    }

    /// Compiles one source for one device, in this process.
    ///
    /// Only for sources one trusts, and where stray output and files do no harm; see the module's
    /// [`compile_in_worker`](super::compile_in_worker) for all others.
    pub fn compile(&self, request: &CompileRequest<'_>) -> Result<Compiled, ContainerError> {
        let name = match self.how {
            How::Library { .. } => None,
            How::Program => Path::new(request.name).file_name().and_then(OsStr::to_str),
        };
        let request = CompileRequest {
            name: name.unwrap_or(request.name),
            ..*request
        };
        if request.kind == SourceKind::SpirV && !request.headers.is_empty() {
            return self.link(&request);
        }
        let (code, outputs) = self.call(&Call::new(&request)?)?;
        self.result(&request, code, outputs)
    }

    /// One call, whatever it asks for.
    fn call(&self, call: &Call) -> Result<(i32, Vec<Output>), ContainerError> {
        let broken = |message| ContainerError::OclocBroken {
            path: self.path.clone(),
            message,
        };
        let (invoke, free) = match self.how {
            How::Library { invoke, free } => (invoke, free),
            How::Program => {
                return program::run(&self.path, call).map_err(|error| broken(error.to_string()));
            }
        };
        // A call that died under the lock leaves nothing of ours half-done.
        let _one_at_a_time = CALLS
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let run = std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().name("ocloc".to_owned());
            let thread = builder
                .stack_size(limits::OCLOC_STACK_BYTES)
                .spawn_scoped(scope, || run(invoke, free, call))
                .map_err(|error| format!("no thread to run it on: {error}"))?;
            thread.join().map_err(|_| "the call panicked".to_owned())
        });
        run.map_err(broken)
    }

    /// Sorts the outputs of a call into a result.
    fn result(
        &self,
        request: &CompileRequest<'_>,
        code: i32,
        outputs: Vec<Output>,
    ) -> Result<Compiled, ContainerError> {
        let (mut log, mut zebin) = (String::new(), None);
        let magic = request.product.magic();
        for Output { name, data } in outputs {
            if name == LOG_NAME {
                let text = String::from_utf8_lossy(&data);
                text.trim_matches(['\0', '\n']).clone_into(&mut log);
            } else if data.starts_with(magic) {
                zebin = Some(data);
            }
        }
        match zebin {
            Some(zebin) if code == 0 => Ok(Compiled { zebin, log }),
            None if code == 0 => Err(ContainerError::OclocBroken {
                path: self.path.clone(),
                message: format!("it reported success but returned nothing:\n{log}"),
            }),
            _ => {
                if log.is_empty() {
                    "(no build log)".clone_into(&mut log);
                }
                if UNKNOWN_DEVICE.iter().any(|said| log.contains(said)) {
                    log.push_str("\n`visa-jit ocloc` lists the devices that this compiler offers");
                }
                Err(ContainerError::CompileFailed {
                    name: request.name.to_owned(),
                    device: request.device.to_string(),
                    code,
                    log,
                })
            }
        }
    }
}

/// The call itself: return code, and name and contents of each output.
fn run(invoke: InvokeFn, free: FreeFn, call: &Call) -> (i32, Vec<Output>) {
    let argv: Vec<_> = call.argv.iter().map(|arg| arg.as_ptr()).collect();
    let source = call.source.pointers();
    let headers = call.headers.pointers();
    let mut count = 0_u32;
    let (mut data, mut lengths, mut names) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: every array outlives the call and has as many elements as its count says; strings end in
    // NUL; the last four point to variables the library fills in.
    let code = unsafe {
        invoke(
            c_uint::try_from(argv.len()).unwrap_or(0),
            argv.as_ptr(),
            source.count(),
            source.data.as_ptr(),
            source.lengths.as_ptr(),
            source.names.as_ptr(),
            headers.count(),
            headers.data.as_ptr(),
            headers.lengths.as_ptr(),
            headers.names.as_ptr(),
            &raw mut count,
            &raw mut data,
            &raw mut lengths,
            &raw mut names,
        )
    };
    let mut outputs = Vec::new();
    if !data.is_null() && !lengths.is_null() && !names.is_null() {
        for index in 0..count as usize {
            // SAFETY: the library returned arrays of `count` elements, each a buffer of the stated length
            // and a NUL-terminated name (null pointers are sorted out in `copy`).
            outputs.push(unsafe { copy(*data.add(index), *lengths.add(index), *names.add(index)) });
        }
    }
    // SAFETY: exactly what `oclocInvoke` filled in, and not used afterwards.
    unsafe {
        free(
            &raw mut count,
            &raw mut data,
            &raw mut lengths,
            &raw mut names,
        )
    };
    (code, outputs)
}

/// Copies one output.
///
/// # Safety
/// `data` is null or points to `length` bytes; `name` is null or points to a NUL-terminated string.
unsafe fn copy(data: *const u8, length: u64, name: *const c_char) -> Output {
    let name = if name.is_null() {
        &[]
    } else {
        // SAFETY: as the caller promises.
        unsafe { CStr::from_ptr(name) }.to_bytes()
    };
    let data = match usize::try_from(length) {
        // SAFETY: as the caller promises.
        Ok(length) if !data.is_null() => unsafe { std::slice::from_raw_parts(data, length) },
        _ => &[],
    };
    Output {
        name: name.to_vec(),
        data: data.to_vec(),
    }
}

fn open(name: &OsStr) -> Result<Library, String> {
    // SAFETY: loading runs the library's initialisers, which is what the person asked for by installing it
    // or naming it.
    unsafe { Library::new(OsString::from(name)) }.map_err(|error| said(&error))
}

/// What the system's loader reported; libloading's own message only names the function that failed.
fn said(error: &libloading::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

/// One file the compiler made.
struct Output {
    name: Vec<u8>,
    data: Vec<u8>,
}

/// A call's arguments, owned.
struct Call {
    argv: Vec<CString>,
    /// Bytes after the source that the library wants and no file has.
    terminator: usize,
    /// Results are told by these bytes; none of a question.
    magic: &'static [u8],
    source: Files,
    headers: Files,
}

impl Product {
    /// First bytes of it.
    fn magic(self) -> &'static [u8] {
        match self {
            Product::Zebin => ELF_MAGIC,
            Product::SpirV => link::SPIRV_MAGIC,
        }
    }
}

/// In-memory files.
#[derive(Default)]
struct Files {
    names: Vec<CString>,
    data: Vec<Vec<u8>>,
}

/// The same as C arrays.
struct FilePointers {
    data: Vec<*const u8>,
    lengths: Vec<u64>,
    names: Vec<*const c_char>,
}

impl Call {
    /// A question, which needs no source.
    fn asking(question: &[&str]) -> Result<Self, ContainerError> {
        let argv = ["ocloc"].iter().chain(question);
        Ok(Self {
            argv: argv.copied().map(c_string).collect::<Result<_, _>>()?,
            terminator: 0,
            magic: &[],
            source: Files::default(),
            headers: Files::default(),
        })
    }

    fn new(request: &CompileRequest<'_>) -> Result<Self, ContainerError> {
        if request.name.is_empty() || request.source.is_empty() {
            return Err(ContainerError::BadRequest(
                "a source needs a name and contents".to_owned(),
            ));
        }
        let internal = format!("{EMIT_VISA} {}", request.internal_options);
        let mut argv = vec![
            "ocloc",
            "compile",
            "-q",
            "-file",
            request.name,
            "-device",
            request.device.as_str(),
            "--format",
            "zebin",
            "-internal_options",
            internal.trim_end(),
        ];
        if request.kind == SourceKind::SpirV {
            argv.push("-spirv_input");
        }
        if request.product == Product::SpirV {
            argv.push("-spv_only");
        }
        if !request.options.is_empty() {
            argv.extend(["-options", request.options]);
        }
        let mut call = Self {
            argv: argv.into_iter().map(c_string).collect::<Result<_, _>>()?,
            terminator: usize::from(request.kind == SourceKind::OpenClC),
            magic: request.product.magic(),
            source: Files::default(),
            headers: Files::default(),
        };
        match request.kind {
            SourceKind::SpirV => call.source.add(request.name, request.source)?,
            // The library copies exactly the bytes it is given and then reads one more as the terminator.
            SourceKind::OpenClC => {
                call.source
                    .add(request.name, &[request.source, &[0]].concat())?;
            }
        }
        for (name, data) in request.headers {
            call.headers.add(name, data)?;
        }
        Ok(call)
    }
}

impl Files {
    fn add(&mut self, name: &str, data: &[u8]) -> Result<(), ContainerError> {
        self.names.push(c_string(name)?);
        self.data.push(data.to_vec());
        Ok(())
    }

    fn pointers(&self) -> FilePointers {
        FilePointers {
            data: self.data.iter().map(|data| data.as_ptr()).collect(),
            lengths: self.data.iter().map(|data| data.len() as u64).collect(),
            names: self.names.iter().map(|name| name.as_ptr()).collect(),
        }
    }
}

impl FilePointers {
    fn count(&self) -> u32 {
        u32::try_from(self.data.len()).unwrap_or(0)
    }
}

fn c_string(text: &str) -> Result<CString, ContainerError> {
    CString::new(text)
        .map_err(|_| ContainerError::BadRequest(format!("{text:?} contains a NUL character")))
}

#[cfg(test)]
mod tests {
    use super::super::Blame;
    use super::*;
    use crate::isa::Platform;

    // What compiles something is tested through a worker, which removes its files.

    #[test]
    fn a_missing_library_says_what_to_install() {
        let error = Ocloc::load_from(Path::new("/nonexistent/libocloc.so")).unwrap_err();
        assert_eq!(error.blame(), Blame::Environment);
        let text = error.to_string();
        assert!(
            text.contains("apt-get install intel-opencl-icd") && text.contains(OCLOC_ENV),
            "{text}"
        );
    }

    #[test]
    fn another_library_is_refused() {
        // Every Linux process can load this one, and it is not the compiler.
        let Err(error) = Ocloc::load_from(Path::new("libc.so.6")) else {
            panic!("libc accepted")
        };
        assert_eq!(error.blame(), Blame::Environment);
    }

    #[test]
    fn a_nul_in_the_request_is_refused() {
        let request = CompileRequest {
            options: "a\0b",
            ..CompileRequest::new("t.cl", b"kernel", Platform::Skl)
        };
        assert!(matches!(
            Call::new(&request),
            Err(ContainerError::BadRequest(_))
        ));
    }
}
