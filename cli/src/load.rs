//! From FILE to a program: finds out what a file is, and compiles sources.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::binary::text_of;
use super::exit::{Failure, tell};
use super::images::{Choice, choose};
use visa_jit::artifact::{Key, object};
use visa_jit::container::{
    CompileRequest, ContainerError, Image, ImageFormat, SourceKind, Zebin, compile_in_worker,
    images, limits::MAX_FILE_BYTES,
};
use visa_jit::engine::{Engine, FileContents, Program};
use visa_jit::front::binary::is_binary;
use visa_jit::isa::{DeviceName, Platform, Versions};

/// Hidden subcommand that runs the vendor's compiler in a process of its own.
pub const WORKER: &str = "__ocloc-worker";
/// How long a compilation may take.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(300);
/// What sources are compiled for by default.
const DEFAULT_DEVICE: Platform = Platform::Skl;

/// A file's contents, by what they are.
#[derive(Clone, Debug)]
pub enum Contents {
    /// A zebin.
    Zebin(Vec<u8>),
    /// vISA text, also that of a binary.
    Text(String),
    /// An object file or library that `compile` made.
    Library(PathBuf, Vec<u8>),
}

/// A file that has been read, and compiled if it was a source.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The path, for messages.
    pub name: String,
    /// What is in it.
    pub contents: Contents,
    /// The device asked for, or compiled for.
    pub device: Option<Platform>,
    /// Versions that are read.
    pub versions: Versions,
}

/// What a file is, before anything is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    Zebin,
    Text,
    Binary,
    Source,
    Library,
}

/// Reads a file, and of a file with several images the one chosen; sources are compiled for the device of the choice.
pub fn load(path: &Path, choice: Choice<'_>) -> Result<Loaded, Failure> {
    load_bytes(path, read(path)?, choice)
}

/// The same of a file that was read.
pub fn load_bytes(path: &Path, bytes: Vec<u8>, choice: Choice<'_>) -> Result<Loaded, Failure> {
    let name = path.display().to_string();
    let asked = choice.device;
    let device = asked.map(DeviceName::platform);
    if let Some(images) = find_images(&name, &bytes)? {
        let (number, image) = choose(&name, &images, choice)?;
        return one_image(format!("{name}, image {number}"), image, choice);
    }
    if choice.image.is_some() {
        return Err(Failure::usage(format!(
            "{name}: --image is for ocloc archives, and for programs and libraries with images for devices"
        )));
    }
    let (contents, device) = match detect(path, &bytes)? {
        FileKind::Zebin => (Contents::Zebin(bytes), device),
        FileKind::Library => (Contents::Library(path.to_owned(), bytes), device),
        FileKind::Text => (Contents::Text(text(&name, bytes)?), device),
        FileKind::Binary => (
            Contents::Text(text_of(&name, &bytes, device, choice.versions)?),
            device,
        ),
        FileKind::Source => {
            let device = asked.unwrap_or_else(|| DEFAULT_DEVICE.into());
            (
                Contents::Zebin(compile(path, &bytes, device, choice.lines)?),
                Some(device.platform()),
            )
        }
    };
    Ok(Loaded {
        name,
        contents,
        device,
        versions: choice.versions,
    })
}

/// The images of a file that holds several.
pub fn find_images<'d>(name: &str, bytes: &'d [u8]) -> Result<Option<Vec<Image<'d>>>, Failure> {
    let failed = |error: ContainerError| {
        let failure = Failure::from(error);
        Failure {
            message: format!("{name}: {}", failure.message),
            ..failure
        }
    };
    // What `compile` makes is an archive or an object file, too.
    if object::holds_kernels(bytes) {
        return Ok(None);
    }
    images(bytes).map_err(failed)
}

fn one_image(name: String, image: &Image<'_>, choice: Choice<'_>) -> Result<Loaded, Failure> {
    let asked = choice.device;
    let (bytes, device) = match image.format {
        ImageFormat::Zebin => (image.bytes.to_vec(), asked.map(DeviceName::platform)),
        ImageFormat::Spirv => {
            let device = asked.unwrap_or_else(|| DEFAULT_DEVICE.into());
            let zebin = compile(Path::new("image.spv"), image.bytes, device, choice.lines)?;
            (zebin, Some(device.platform()))
        }
        ImageFormat::Bitcode | ImageFormat::Other => {
            return Err(Failure::unsupported(format!(
                "{name} is {}; zebins and SPIR-V can be read",
                match image.format {
                    ImageFormat::Bitcode =>
                        "LLVM bitcode, as objects have it before they are linked",
                    _ => "of a format that is not known",
                }
            )));
        }
    };
    Ok(Loaded {
        name,
        contents: Contents::Zebin(bytes),
        device,
        versions: choice.versions,
    })
}

impl Loaded {
    /// Loads it into an engine.
    pub fn program(&self, engine: &Engine) -> Result<Program, Failure> {
        match &self.contents {
            Contents::Zebin(bytes) => engine
                .program_from_zebin(bytes, self.device)
                .map_err(|error| self.failure(error)),
            Contents::Library(path, _) => Ok(Program::open_library(engine, path)?),
            Contents::Text(text) => {
                let Some(device) = self.device else {
                    return Err(Failure::usage(format!(
                        "{}: vISA text does not say which device it is for; \
                         add --platform skl, tgllp, acm-g10, pvc, bmg or ptl-h",
                        self.name
                    )));
                };
                // Diagnostics of the text name the file themselves.
                Ok(engine.program_from_text(&self.name, text, device)?)
            }
        }
    }

    /// Key of its manifest in the disk cache; libraries have none.
    pub fn manifest_key(&self) -> Option<Key> {
        let contents = match &self.contents {
            Contents::Zebin(bytes) => FileContents::Zebin(bytes),
            Contents::Text(text) => FileContents::Text(text),
            Contents::Library(..) => return None,
        };
        Engine::manifest_key(contents, self.device, self.versions)
    }

    /// Reads a zebin.
    pub fn zebin(&self, bytes: &[u8]) -> Result<Zebin, Failure> {
        Zebin::parse_with(bytes, self.versions).map_err(|error| self.failure(error))
    }

    /// Names the file in front of an error.
    fn failure(&self, error: impl Into<Failure>) -> Failure {
        let failure = error.into();
        Failure {
            message: format!("{}: {}", self.name, failure.message),
            ..failure
        }
    }
}

/// Reads a file of at most [`MAX_FILE_BYTES`].
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::file("read", path, error);
    let file = std::fs::File::open(path).map_err(failed)?;
    let limit = MAX_FILE_BYTES as u64;
    let expected = file.metadata().map_or(0, |found| found.len().min(limit));
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or(0).saturating_add(1));
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(Failure::usage(format!(
            "{}: the file is larger than the limit of {limit} bytes",
            path.display()
        )));
    }
    Ok(bytes)
}

/// By its first bytes, else by the ending of its name.
fn detect(path: &Path, bytes: &[u8]) -> Result<FileKind, Failure> {
    // ELF, and Mach-O of 64 bits.
    let compiled = bytes.starts_with(b"\x7fELF") || bytes.starts_with(b"\xcf\xfa\xed\xfe");
    if compiled && object::holds_kernels(bytes) {
        return Ok(FileKind::Library);
    }
    if bytes.starts_with(b"\x7fELF") {
        return Ok(FileKind::Zebin);
    }
    if is_binary(bytes) {
        return Ok(FileKind::Binary);
    }
    // Both byte orders.
    if bytes.starts_with(b"\x03\x02\x23\x07") || bytes.starts_with(b"\x07\x23\x02\x03") {
        return Ok(FileKind::Source);
    }
    let extension = path.extension().map(|ending| ending.to_ascii_lowercase());
    match extension.as_ref().and_then(|ending| ending.to_str()) {
        Some("visaasm" | "asm") => return Ok(FileKind::Text),
        Some("cl") => return Ok(FileKind::Source),
        Some("spv") => {
            return Err(Failure::usage(format!(
                "{}: not SPIR-V, whatever its name says: the file does not start with its magic number",
                path.display()
            )));
        }
        _ => {}
    }
    let start = bytes.trim_ascii_start();
    if start.starts_with(b".version") || start.starts_with(b".kernel") {
        return Ok(FileKind::Text);
    }
    // The container reader knows many other formats by sight, and what to do about them.
    let seen = match Zebin::parse(bytes) {
        Err(error @ ContainerError::NotZebin { .. }) => error.to_string(),
        _ => "not a zebin".to_owned(),
    };
    Err(Failure::usage(format!(
        "{}: {seen}\nexpected a zebin, SPIR-V, binary vISA, or a file named .visaasm or .cl",
        path.display()
    )))
}

fn text(name: &str, bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        Failure::usage(format!(
            "{name}: not UTF-8 text (first bad byte at {:#x})",
            error.utf8_error().valid_up_to()
        ))
    })
}

/// Starts this program once more, to call the vendor's compiler.
pub fn worker() -> Result<Command, Failure> {
    let me = std::env::current_exe().map_err(|error| {
        Failure::environment(format!("cannot start the compiler's process: {error}"))
    })?;
    let mut worker = Command::new(me);
    worker.arg(WORKER);
    Ok(worker)
}

/// Compiles a source in a process of its own: the vendor's compiler may exit or crash. With `lines`, the product says which line of the
/// source its instructions are from.
fn compile(
    path: &Path,
    source: &[u8],
    device: DeviceName,
    lines: bool,
) -> Result<Vec<u8>, Failure> {
    let name = path.file_name().map(|name| name.to_string_lossy());
    let name = name.as_deref().unwrap_or("kernel.cl");
    let compile = |options| -> Result<_, Failure> {
        let request = CompileRequest {
            options,
            ..CompileRequest::new(name, source, device)
        };
        Ok(compile_in_worker(worker()?, &request, COMPILE_TIMEOUT)?)
    };
    let is_text = CompileRequest::new(name, source, device).kind == SourceKind::OpenClC;
    let compiled = match lines && is_text {
        // Version 26.27 crashes on some sources only then.
        true => compile("-g").or_else(|_| compile(""))?,
        false => compile("")?,
    };
    if !compiled.log.is_empty() {
        tell(&compiled.log);
    }
    Ok(compiled.zebin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, bytes: &[u8]) -> Result<FileKind, String> {
        detect(Path::new(name), bytes).map_err(|failure| failure.message)
    }

    #[test]
    fn content_comes_before_the_name() {
        assert_eq!(kind("a.cl", b"\x7fELF"), Ok(FileKind::Zebin));
        assert_eq!(kind("a.bin", b"\x03\x02\x23\x07"), Ok(FileKind::Source));
        assert_eq!(kind("a.VISAASM", b""), Ok(FileKind::Text));
        assert_eq!(kind("a.asm", b"x"), Ok(FileKind::Text));
        assert_eq!(kind("a.cl", b"kernel"), Ok(FileKind::Source));
        assert_eq!(kind("a", b"\n.version 4.1\n"), Ok(FileKind::Text));
        assert_eq!(kind("a.visaasm", b"CISA"), Ok(FileKind::Binary));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let error = kind("a.spv", b"x").unwrap_err();
        assert!(error.starts_with("a.spv: not SPIR-V"), "{error}");
        let error = kind("a.txt", b"hello").unwrap_err();
        assert!(error.starts_with("a.txt: not a zebin: "), "{error}");
        assert!(
            error.ends_with(
                "expected a zebin, SPIR-V, binary vISA, or a file named .visaasm or .cl"
            )
        );
        let error = kind("a", b"").unwrap_err();
        assert!(error.starts_with("a: not a zebin: "), "{error}");
    }
}
