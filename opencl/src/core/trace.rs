//! Where the program was when it called the driver: kept of allocations where `VISA_JIT_BACKTRACE=1` asks for it, and told with wrong
//! accesses to them.
//!
//! To keep one is to walk the stack. Names and lines are looked up when something is told, once for each. Frames of the driver, of the loader
//! and of the language's runtime are left out. The standard library gives the frames of a trace as text only, which is read here; a test with a
//! program finds out if that text changes.

use std::backtrace::Backtrace;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::engine::Settings;

/// Frames that are told of one.
const MOST: usize = 6;

/// Libraries that a program is not meant by: how their names begin.
const LIBRARIES: [&str; 10] = [
    "libOpenCL.so",
    "libsycl.so",
    "libur_",
    "libpi_",
    "libc.so",
    "libc-",
    "libpthread",
    "libstdc++.so",
    "libgcc_s.so",
    "ld-linux",
];

/// Functions of no program's own: how their names begin.
const FUNCTIONS: [&str; 11] = [
    "_start",
    "__libc_start",
    "std::",
    "<std::",
    "core::",
    "<core::",
    "alloc::",
    "<alloc::",
    "test::",
    "__rust",
    "visa_jit_opencl::",
];

/// A place in the program.
#[derive(Clone, Debug)]
pub struct Trace(Arc<(Backtrace, OnceLock<Vec<String>>)>);

impl Trace {
    /// Where the program is, if that is asked for.
    pub fn here() -> Option<Trace> {
        let made = || Trace(Arc::new((Backtrace::force_capture(), OnceLock::new())));
        (Settings::get().backtrace == Ok(true)).then(made)
    }

    /// The program's own frames, the innermost first: `function (file:line)`.
    pub fn frames(&self) -> &[String] {
        let (trace, frames) = &*self.0;
        frames.get_or_init(|| {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
            let own: fn() -> Option<Trace> = Trace::here;
            let program = std::env::current_exe().unwrap_or_default();
            let modules = Modules::new(&maps, own as usize as u64, &program);
            told(&format!("{trace:#}"), &modules)
        })
    }
}

/// A function on the stack.
#[derive(Debug, Default)]
struct Frame {
    address: u64,
    name: String,
    /// `file:line`.
    place: Option<String>,
}

/// The files that code was loaded from.
struct Modules {
    /// First address, the one after the last, and path.
    all: Vec<(u64, u64, String)>,
    /// The driver's, unless it is linked into the program.
    driver: Option<String>,
}

impl Modules {
    /// By the process's map of memory; `own` is an address of the driver.
    fn new(maps: &str, own: u64, program: &Path) -> Modules {
        let line = |line: &str| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let path = rest.get(rest.find('/')?..)?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            Some((number(start)?, number(end)?, path.to_owned()))
        };
        let mut modules = Modules {
            all: maps.lines().filter_map(line).collect(),
            driver: None,
        };
        let driver = modules.of(own).filter(|path| Path::new(path) != program);
        modules.driver = driver.map(str::to_owned);
        modules
    }

    /// The file that code at an address is from.
    fn of(&self, address: u64) -> Option<&str> {
        let found = self.all.iter().find(|m| (m.0..m.1).contains(&address));
        found.map(|(_, _, path)| path.as_str())
    }

    /// What is said of a frame; nothing of those that are not the program's own.
    fn told(&self, frame: &Frame) -> Option<String> {
        let module = self.of(frame.address);
        if module.is_some() && module == self.driver.as_deref() {
            return None;
        }
        let file = module.and_then(|path| path.rsplit('/').next());
        let library = |name: &&str| file.is_some_and(|file| file.starts_with(name));
        let function = |name: &&str| frame.name.starts_with(name);
        if LIBRARIES.iter().any(library) || FUNCTIONS.iter().any(function) {
            return None;
        }
        // Of a driver that is linked into the program.
        let entry = frame.name.strip_prefix("cl");
        if entry.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
            && self.driver.is_none()
        {
            return None;
        }
        let name = match frame.name.as_str() {
            "<unknown>" => "?",
            name => name,
        };
        Some(match (&frame.place, file) {
            (Some(place), _) => format!("{name} ({place})"),
            (None, Some(file)) => format!("{name} ({file})"),
            // The walk ends in such a one.
            (None, None) if name == "?" => return None,
            (None, None) => name.to_owned(),
        })
    }
}

/// What is told of a trace as the standard library writes it in full.
fn told(text: &str, modules: &Modules) -> Vec<String> {
    let frames = frames(text);
    let mut told: Vec<String> = frames.iter().filter_map(|f| modules.told(f)).collect();
    told.dedup();
    told.truncate(MOST);
    told
}

/// Reads a trace. A frame is `number: address - name`, a function that was inlined into it a name alone, and a line `at file:line:column` may
/// follow either.
fn frames(text: &str) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(place) = line.strip_prefix("at ") {
            // Without the column.
            let place = place.rsplit_once(':').map_or(place, |(place, _)| place);
            if let Some(last) = frames.last_mut() {
                last.place = Some(place.to_owned());
            }
            continue;
        }
        let address = frames.last().map_or(0, |frame| frame.address);
        let (address, name) = numbered(line).unwrap_or((address, line));
        frames.push(Frame {
            address,
            name: without_hash(name).to_owned(),
            place: None,
        });
    }
    frames
}

/// Address and name of a line that begins a frame.
fn numbered(line: &str) -> Option<(u64, &str)> {
    let (number, rest) = line.split_once(':')?;
    number.parse::<u32>().ok()?;
    let (address, name) = rest.split_once(" - ")?;
    let digits = address.trim().strip_prefix("0x")?;
    Some((u64::from_str_radix(digits, 16).ok()?, name.trim()))
}

/// A name without what the compiler of Rust adds.
fn without_hash(name: &str) -> &str {
    let hash = |hash: &str| hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit());
    match name.rsplit_once("::h") {
        Some((name, rest)) if hash(rest) => name,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-2000 r-xp 00000000 08:01 1  /usr/bin/program
3000-4000 r-xp 00000000 08:01 2  /opt/libvisa_jit_opencl.so
5000-6000 r-xp 00000000 08:01 3  /usr/lib/libOpenCL.so.1.0.0
7000-8000 r-xp 00000000 08:01 4  /usr/lib/libc.so.6
9000-a000 r-xp 00000000 08:01 5  /usr/lib/libhelp er.so
b000-c000 rw-p 00000000 00:00 0
";

    const TRACE: &str =
        "   0:             0x3100 - std::backtrace::Backtrace::create::h0123456789abcdef
   1:             0x3200 - clCreateBuffer
                               at /src/opencl/src/api/mem.rs:7:1
   2:             0x5100 - clCreateBuffer
   3:             0x1100 - inner
                               at /src/a.c:5:12
                           outer
                               at /src/a.c:9:3
   4:             0x9100 - <unknown>
   5:             0x9200 - <unknown>
   6:             0xb100 - jitted
   7:             0x1200 - mine::work::h0123456789abcdef
                               at src/main.rs:70:5
   8:             0x7100 - __libc_start_call_main
   9:             0x1300 - _start
  10:                0x0 - <unknown>
";

    #[test]
    fn frames_of_others_are_left_out() {
        let modules = Modules::new(MAPS, 0x3333, Path::new("/usr/bin/program"));
        let wanted = [
            "inner (/src/a.c:5)",
            "outer (/src/a.c:9)",
            "? (libhelp er.so)",
            "jitted",
            "mine::work (src/main.rs:70)",
        ];
        assert_eq!(told(TRACE, &modules), wanted);
        let many = TRACE.replace("<unknown>", "f").repeat(3);
        assert_eq!(told(&many, &modules).len(), MOST);
    }

    /// As in tests, in which the driver is a part of the program.
    #[test]
    fn a_driver_within_the_program_is_known_by_names() {
        let program = Path::new("/opt/libvisa_jit_opencl.so");
        let modules = Modules::new(MAPS, 0x3333, program);
        let trace = "   0:  0x3200 - clCreateBuffer\n   1:  0x3300 - visa_jit_opencl::core::mem::allocate\n   2:  0x3400 - clumsy\n";
        assert_eq!(told(trace, &modules), ["clumsy (libvisa_jit_opencl.so)"]);
    }

    #[test]
    fn nothing_is_kept_unless_asked_for() {
        assert!(Trace::here().is_none());
    }
}
