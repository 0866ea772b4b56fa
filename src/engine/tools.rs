//! Profilers and debuggers: tells them of every kernel that is compiled or loaded from the disk.
//!
//! They need files: the map and the dump are where perf looks for them, and vISA texts are written next to the dump, so that
//! `perf annotate` and GDB can show them. The files stay when the process ends.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::Error;
use crate::artifact::{image, object::identifier};
use crate::backend::CodeObject;
use crate::lines::Text;
use visa_runtime::tools::DebugImage;
#[cfg(target_os = "linux")]
use visa_runtime::tools::{CodeInfo, CodeLine, JitDump, PerfMap};

/// Environment variable that names the directory for jitdumps, as for other compilers that write them.
pub const DUMP_DIR_ENV: &str = "JITDUMPDIR";
/// Characters of a kernel's name that are part of a file's name.
const MAX_NAME: usize = 100;
/// Directories of one process.
const MAX_DIRS: u32 = 1000;

/// Profilers and debuggers that are told of compiled code. They are told of none unless asked to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// `/tmp/perf-PID.map`, for `perf report`. One for a process, Linux only.
    pub perf_map: bool,
    /// `jit-PID.dump`, for `perf record -k mono` and `perf inject --jit`. One for a process, Linux only.
    pub jitdump: bool,
    /// GDB's (and LLDB's) interface for code that was compiled at run time.
    pub gdb: bool,
    /// Which lines they show.
    pub text: Text,
    /// Where dump and texts are written; else `$JITDUMPDIR`, else the directory for temporary files.
    pub dir: Option<PathBuf>,
}

impl Tools {
    fn any(&self) -> bool {
        self.perf_map || self.jitdump || self.gdb
    }

    fn dir(&self) -> PathBuf {
        let asked = self.dir.clone();
        let usual = || std::env::var_os(DUMP_DIR_ENV).map(PathBuf::from);
        asked.or_else(usual).unwrap_or_else(std::env::temp_dir)
    }
}

/// Tells them.
pub(crate) struct Observers {
    tools: Tools,
    #[cfg(target_os = "linux")]
    map: Option<Arc<PerfMap>>,
    #[cfg(target_os = "linux")]
    dump: Option<Arc<JitDump>>,
    texts: Mutex<Texts>,
}

/// Texts that were written.
#[derive(Default)]
struct Texts {
    dir: Option<PathBuf>,
    written: HashMap<[u8; 32], PathBuf>,
}

/// Files of this process, which later engines go on with.
#[cfg(target_os = "linux")]
static MAP: Mutex<Option<Arc<PerfMap>>> = Mutex::new(None);
#[cfg(target_os = "linux")]
static DUMP: Mutex<Option<Arc<JitDump>>> = Mutex::new(None);

#[cfg(target_os = "linux")]
fn shared<T>(
    wanted: bool,
    place: &Mutex<Option<Arc<T>>>,
    make: impl FnOnce() -> io::Result<T>,
) -> io::Result<Option<Arc<T>>> {
    if !wanted {
        return Ok(None);
    }
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    let file = match &*place {
        Some(file) => file.clone(),
        None => Arc::new(make()?),
    };
    Ok(Some(place.insert(file).clone()))
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::Tools {
        what: format!("{what}: {error}"),
    }
}

/// A compiled kernel.
pub(crate) struct Announcement<'a> {
    /// Name.
    pub name: &'a str,
    /// Its vISA.
    pub text: &'a str,
    /// The code.
    pub object: &'a CodeObject,
    /// Where the code is.
    pub address: u64,
}

impl Observers {
    /// Those that are asked for.
    pub(crate) fn new(tools: &Tools) -> Result<Option<Observers>, Error> {
        if !tools.any() {
            return Ok(None);
        }
        if !cfg!(target_os = "linux") && (tools.perf_map || tools.jitdump) {
            let what = "perf maps and jitdumps are for Linux".to_owned();
            return Err(Error::Tools { what });
        }
        Ok(Some(Observers {
            #[cfg(target_os = "linux")]
            map: shared(tools.perf_map, &MAP, PerfMap::create).map_err(failed("perf map"))?,
            #[cfg(target_os = "linux")]
            dump: shared(tools.jitdump, &DUMP, || JitDump::create(&tools.dir()))
                .map_err(failed(&format!("jitdump in {}", tools.dir().display())))?,
            tools: tools.clone(),
            texts: Mutex::default(),
        }))
    }

    /// Tells of a kernel; debuggers know it as long as the result lives.
    pub(crate) fn announce(&self, kernel: &Announcement<'_>) -> Result<Option<DebugImage>, Error> {
        let shows = self.tools.jitdump || self.tools.gdb;
        let text = match shows {
            true => self.written(kernel).map_err(failed("vISA text"))?,
            false => PathBuf::new(),
        };
        let text = text.to_string_lossy();
        let places = kernel.object.lines.places(self.tools.text, &text);
        #[cfg(target_os = "linux")]
        self.profile(kernel, &places)?;
        if !self.tools.gdb {
            return Ok(None);
        }
        let (name, code) = (kernel.name, &kernel.object.code);
        let triple = &kernel.object.triple;
        let image = image::image(triple, name, kernel.address, code, &places);
        let image = image.map_err(|error| Error::Tools {
            what: format!("image for debuggers: {error}"),
        })?;
        Ok(Some(DebugImage::register(image)))
    }

    #[cfg(target_os = "linux")]
    fn profile(
        &self,
        kernel: &Announcement<'_>,
        places: &crate::lines::Places,
    ) -> Result<(), Error> {
        let file = |index: u32| places.files.get(index as usize).map_or("", String::as_str);
        let bytes = kernel.object.code.len();
        let inside = places.rows.iter().filter(|p| (p.offset as usize) < bytes);
        let lines = inside.map(|place| CodeLine {
            offset: place.offset,
            file: file(place.file),
            line: place.line,
        });
        let info = CodeInfo {
            name: kernel.name,
            address: kernel.address,
            bytes: &kernel.object.code,
            lines: lines.collect(),
        };
        if let Some(map) = &self.map {
            map.add(&info).map_err(failed("perf map"))?;
        }
        if let Some(dump) = &self.dump {
            dump.add(&info).map_err(failed("jitdump"))?;
        }
        Ok(())
    }

    /// The file with a kernel's vISA, which is written when it is first asked for.
    fn written(&self, kernel: &Announcement<'_>) -> io::Result<PathBuf> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let named = format!("{}\0{}", kernel.name, kernel.text);
        let digest = *blake3::hash(named.as_bytes()).as_bytes();
        if let Some(path) = texts.written.get(&digest) {
            return Ok(path.clone());
        }
        let dir = match &texts.dir {
            Some(dir) => dir.clone(),
            None => texts.dir.insert(new_dir(&self.tools.dir())?).clone(),
        };
        let name: String = identifier(kernel.name).chars().take(MAX_NAME).collect();
        // Other programs may have a kernel of the same name.
        let names = (1..).map(|n: u32| match n {
            1 => format!("{name}.visaasm"),
            n => format!("{name}-{n}.visaasm"),
        });
        let taken = |path: &PathBuf| texts.written.values().any(|other| other == path);
        let mut paths = names.map(|name| dir.join(name));
        let path = paths.find(|path| !taken(path)).unwrap_or(dir);
        fs::write(&path, kernel.text)?;
        texts.written.insert(digest, path.clone());
        Ok(path)
    }
}

/// A directory that nothing else had, by an absolute path.
fn new_dir(parent: &Path) -> io::Result<PathBuf> {
    let parent = parent.canonicalize()?;
    let pid = std::process::id();
    let mut last = io::ErrorKind::AlreadyExists.into();
    for n in 1..=MAX_DIRS {
        let name = match n {
            1 => format!("visa-jit-{pid}"),
            n => format!("visa-jit-{pid}-{n}"),
        };
        let path = parent.join(name);
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}
