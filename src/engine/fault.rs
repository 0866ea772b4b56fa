//! Fault records as text: what an access does wrong, and where in a kernel it is.

use std::path::Path;

use visa_runtime::{Fault, FaultKind, OtherAccess, Uninit};

use crate::interp;
use crate::lines::SourceLine;
use crate::ssa::{AccessKind, Site, Space};

/// What records call memory that is reached by 64-bit addresses.
pub(super) const DEVICE_MEMORY: &str = "device memory";

/// What records call where threads meet, which is no memory.
const WORK_GROUP: &str = "work-group";

/// An out-of-bounds access of one lane, or a barrier that it misses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRecord {
    /// Kernel.
    pub kernel: String,
    /// Line in the vISA text.
    pub line: u32,
    /// Line of the source it was compiled from, where the vISA says so.
    pub source: Option<SourceLine>,
    /// Instruction.
    pub opcode: &'static str,
    /// Read, write, atomic or barrier; `use` of a use of what is not initialised.
    pub access: &'static str,
    /// Address space; `work-group` of barriers. Of a use of what is not initialised, where that was read, `registers` among them.
    pub space: &'static str,
    /// Binding-table index of surface accesses.
    pub surface: Option<u32>,
    /// Byte offset, or flat address; 0 of barriers and registers.
    pub address: u64,
    /// Bytes of the element.
    pub bytes: u32,
    /// Bytes that the address has to be a multiple of.
    pub alignment: u32,
    /// Work-group.
    pub group: [u32; 3],
    /// Local id of the lane.
    pub local_id: [u32; 3],
    /// Global id of the lane.
    pub global_id: [u64; 3],
    /// Hardware thread in the group.
    pub thread: u32,
    /// Lane of it.
    pub lane: u32,
    /// What is wrong.
    pub kind: FaultKind,
    /// The buffer that is meant, where it lies and what it is called, of launches that check their accesses. Of barriers, who reached
    /// them and who did not. Of uses of what is not initialised, what was used and where it was read.
    pub about: Option<String>,
    /// The argument through which the program passed the buffer that is meant, where that is known.
    pub argument: Option<FaultArgument>,
    /// Number of the access in the code.
    pub site: u32,
    /// Faults of this kind of the access in the launch, one for each lane, in launches that check their accesses; of other checks
    /// always.
    pub count: Option<u64>,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultArgument {
    /// From 0.
    pub index: u32,
    /// Empty where it is not known.
    pub name: String,
}

/// See [`FaultRecord::kind_name`].
pub(super) const fn kind_name(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Bounds => "bounds",
        FaultKind::Allocation => "buffer",
        FaultKind::ReadOnly => "read-only",
        FaultKind::Misaligned => "alignment",
        FaultKind::Race | FaultKind::LaneRace => "race",
        FaultKind::UninitAddress
        | FaultKind::UninitBranch
        | FaultKind::UninitMask
        | FaultKind::UninitOperand => "init",
        _ => "barrier",
    }
}

impl FaultRecord {
    /// What is wrong, in a word for reports: `bounds`, `buffer` for an access that misses its buffer, `read-only` for one that writes to what
    /// kernels only read, `alignment` for an address that the hardware does not take, `barrier`, `race` or `init`.
    pub fn kind_name(&self) -> &'static str {
        kind_name(self.kind)
    }

    /// Leaves out the folder in which a compiler in a process of its own was given the source
    /// ([`compile_in_worker`](crate::container::compile_in_worker)). That folder is temporary, and does not exist any more.
    pub fn without_compiler_folder(mut self) -> FaultRecord {
        let Some(source) = &mut self.source else {
            return self;
        };
        let Some(name) = name_of(&source.file, &std::env::temp_dir()) else {
            return self;
        };
        let (folder, name) = (
            source.file.trim_end_matches(name).to_owned(),
            name.to_owned(),
        );
        // The other side of a race is in words.
        self.about = self.about.map(|about| about.replace(&folder, ""));
        source.file = name;
        self
    }

    /// What is wrong at a barrier, after the line.
    fn barrier(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let about = self.about.as_deref().unwrap_or_default();
        let (l, g) = (self.local_id, self.group);
        write!(
            f,
            ": `{}` {about}, group ({}, {}, {})",
            self.opcode, g[0], g[1], g[2]
        )?;
        write!(f, ": local id ({}, {}, {})", l[0], l[1], l[2])?;
        if matches!(self.kind, FaultKind::Barrier | FaultKind::MissedBarrier) {
            f.write_str(" is missing")?;
        }
        write!(f, ", lane {}", self.lane)
    }

    /// A use of what is not initialised, after the line.
    fn init(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let about = self.about.as_deref().unwrap_or_default();
        let (l, g) = (self.local_id, self.group);
        write!(
            f,
            ": `{}` {about}, group ({}, {}, {}), local id ({}, {}, {}), thread {} lane {}",
            self.opcode, g[0], g[1], g[2], l[0], l[1], l[2], self.thread, self.lane
        )
    }

    /// Whether the access was by a 64-bit address, not to a surface or memory of the group.
    pub fn is_by_address(&self) -> bool {
        self.space == DEVICE_MEMORY
    }

    /// Where an access by address lies beside `len` bytes at `start`: "4 bytes past the end of", and the like.
    pub fn beside(&self, start: u64, len: u64) -> String {
        distance(self.address, self.bytes, start, len)
    }
}

/// The name of a file that lies in a folder of the compiler's: a directory of a process, or one for a single compilation.
fn name_of<'f>(file: &'f str, temporary: &Path) -> Option<&'f str> {
    if file.starts_with("/proc/") {
        return file.rsplit_once('/').map(|(_, name)| name);
    }
    let inside = Path::new(file).strip_prefix(temporary).ok()?.to_str()?;
    let (folder, name) = inside.split_once('/')?;
    folder.starts_with(".tmp").then_some(name)
}

impl std::fmt::Display for FaultRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} line {}", self.kernel, self.line)?;
        if let Some(source) = &self.source {
            write!(f, " ({source})")?;
        }
        if self.kind.is_barrier() {
            return self.barrier(f);
        }
        if self.kind.is_init() {
            return self.init(f);
        }
        let (opcode, access, bytes) = (self.opcode, self.access, self.bytes);
        write!(f, ": `{opcode}` {access} of {bytes} bytes")?;
        match (self.kind, &self.about) {
            (FaultKind::Bounds, None) => write!(f, " out of bounds: {}", self.space)?,
            (FaultKind::Bounds, Some(about)) => {
                write!(f, " out of bounds, {about}: {}", self.space)?
            }
            (FaultKind::ReadOnly, about) => {
                let about = about.as_deref().unwrap_or("read-only memory");
                write!(f, " to {about}: {}", self.space)?;
            }
            (FaultKind::Misaligned, about) => {
                write!(
                    f,
                    " at an address that is no multiple of {}",
                    self.alignment
                )?;
                if let Some(about) = about {
                    write!(f, ", {about}")?;
                }
                write!(f, ": {}", self.space)?;
            }
            (_, None) => write!(f, " in no buffer: {}", self.space)?,
            (_, Some(about)) => write!(f, ", {about}: {}", self.space)?,
        }
        if let Some(s) = self.surface {
            write!(f, " {s}")?;
        }
        let (at, l, g) = (self.address, self.local_id, self.group);
        write!(
            f,
            " at {at:#x}, group ({}, {}, {}), local id ({}, {}, {}), thread {} lane {}",
            g[0], g[1], g[2], l[0], l[1], l[2], self.thread, self.lane
        )
    }
}

/// Where an access lies beside `len` bytes at `start`.
pub(super) fn distance(address: u64, bytes: u32, start: u64, len: u64) -> String {
    let end = start.saturating_add(len);
    let last = address.saturating_add(bytes.into());
    if address > end {
        format!("{} bytes past the end of", address - end)
    } else if address < start {
        format!("{} bytes before", start - address)
    } else if last > end {
        format!("reaching {} bytes past the end of", last - end)
    } else {
        format!("at byte {} of", address - start)
    }
}

/// Numbers of producers and consumers.
fn counts(producers: u32, consumers: u32) -> String {
    match producers == consumers {
        true => format!("{producers} thread(s)"),
        false => format!("{producers} producer(s) and {consumers} consumer(s)"),
    }
}

/// Who reached a barrier and who did not, of a record by `thread`; `line` says where a site is.
pub(super) fn meeting(fault: &Fault, line: impl FnOnce(u32) -> String) -> Option<String> {
    let (low, high) = (fault.address as u32, (fault.address >> 32) as u32);
    let thread = fault.thread;
    match fault.kind {
        FaultKind::Barrier => {
            let (some, all) = (low.count_ones(), high.count_ones());
            Some(format!(
                "reached by {some} of {all} work-items of thread {thread}"
            ))
        }
        FaultKind::MissedBarrier => Some(format!(
            "reached by thread {high} after thread {thread} has ended"
        )),
        FaultKind::OtherBarrier => Some(format!(
            "reached by thread {thread} while thread {high} is at the barrier in {}",
            line(low)
        )),
        FaultKind::BarrierCounts => {
            let [p, c, q, d] = high.to_le_bytes().map(u32::from);
            let (ours, first) = (counts(p, c), counts(q, d));
            let there = line(low);
            Some(format!("signalled for {ours}, but for {first} in {there}"))
        }
        FaultKind::BarrierLeft => {
            let words = |word: u32| counts(word & 0xFFFF, word >> 16);
            let (came, wanted) = (words(low), words(high));
            Some(format!(
                "signalled for {wanted}, but {came} came before the group ended"
            ))
        }
        _ => None,
    }
}

/// What an access races with, and where in a buffer; `there` says what the other access is, and in which line.
pub(super) fn race(
    fault: &Fault,
    there: impl FnOnce(u32) -> String,
    buffer: Option<String>,
) -> Option<String> {
    let other = fault.other?;
    let (g, thread, lane) = (other.group, other.thread, other.lane);
    let what = match other.site {
        OtherAccess::UNKNOWN => "an access in a line that is not known".to_owned(),
        site => there(site),
    };
    let with = match fault.kind {
        FaultKind::LaneRace => format!("another value than that of lane {lane}"),
        _ => format!(
            "racing with {what} by group ({}, {}, {}) thread {thread} lane {lane}",
            g[0], g[1], g[2]
        ),
    };
    Some(match buffer {
        Some(buffer) => format!("{with}, {buffer}"),
        None => with,
    })
}

/// What a use depends on that is not initialised; `what` is its name.
pub(super) fn init(kind: FaultKind, what: &str) -> String {
    let part = match kind {
        FaultKind::UninitAddress => "address",
        FaultKind::UninitBranch => "condition",
        FaultKind::UninitMask => "predicate",
        _ => "value",
    };
    format!("{part} depends on uninitialised {what}")
}

/// Memory that something came from, in the words of fault records.
pub(super) const fn space_of(from: Uninit) -> &'static str {
    match from {
        Uninit::Register(_) => "registers",
        Uninit::Local(_) => "local memory",
        Uninit::Scratch(_) => "scratch",
        Uninit::Memory(_) => DEVICE_MEMORY,
    }
}

/// Where in a kernel an access is, in the words of fault records.
pub(super) struct AccessSite {
    pub line: u32,
    pub opcode: &'static str,
    pub access: &'static str,
    pub space: &'static str,
    /// It goes to a surface.
    pub surface: bool,
    pub bytes: u32,
    pub alignment: u32,
}

impl AccessSite {
    /// Of an access that is not known.
    pub(super) const UNKNOWN: AccessSite = AccessSite {
        line: 0,
        opcode: "?",
        access: "access",
        space: "registers",
        surface: false,
        bytes: 0,
        alignment: 1,
    };
}

pub(super) fn compiled_site(s: &Site) -> AccessSite {
    AccessSite {
        line: s.line,
        opcode: s.opcode,
        access: match s.kind {
            AccessKind::Read => "read",
            AccessKind::Write => "write",
            AccessKind::Atomic => "atomic",
            AccessKind::Barrier => "barrier",
        },
        space: match s.space.data() {
            _ if s.kind == AccessKind::Barrier => WORK_GROUP,
            Space::Surface => "surface",
            Space::Slm => "local memory",
            Space::Flat => DEVICE_MEMORY,
            Space::Scratch => "scratch",
            Space::Regs => "registers",
            _ => "arguments",
        },
        surface: s.space == Space::Surface,
        bytes: s.bytes,
        alignment: s.alignment,
    }
}

pub(super) fn interpreted_site(s: interp::Site) -> AccessSite {
    AccessSite {
        line: s.line,
        opcode: s.opcode,
        access: s.access,
        space: match s.space {
            Some(interp::Space::Surface) => "surface",
            Some(interp::Space::Local) => "local memory",
            Some(interp::Space::Device) => DEVICE_MEMORY,
            Some(interp::Space::Scratch) => "scratch",
            Some(interp::Space::Args) => "arguments",
            None => WORK_GROUP,
        },
        surface: s.space == Some(interp::Space::Surface),
        bytes: s.bytes,
        alignment: s.alignment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_compiler_are_not_shown() {
        for (file, name) in [
            ("/proc/self/fdinfo/program.cl", Some("program.cl")),
            ("/tmp/.tmpAbCdEf/program.cl", Some("program.cl")),
            ("/tmp/.tmpAbCdEf/inc/seven.h", Some("inc/seven.h")),
            ("/tmp/seven.h", None),
            ("/tmp/mine/seven.h", None),
            ("/home/me/.tmpA/program.cl", None),
            ("program.cl", None),
        ] {
            assert_eq!(name_of(file, Path::new("/tmp")), name, "{file}");
        }
    }

    #[test]
    fn both_sides_of_a_race_lose_the_folder() {
        let file = std::env::temp_dir().join(".tmpAb12/k.cl");
        let file = file.to_str().unwrap();
        let record = FaultRecord {
            kernel: "k".into(),
            line: 3,
            source: Some(SourceLine {
                file: file.into(),
                line: 7,
            }),
            opcode: "lsc_load",
            access: "read",
            space: DEVICE_MEMORY,
            surface: None,
            address: 0,
            bytes: 4,
            alignment: 1,
            group: [0; 3],
            local_id: [0; 3],
            global_id: [0; 3],
            thread: 0,
            lane: 0,
            kind: FaultKind::Race,
            about: Some(format!("racing with the write in line 2 ({file}:5)")),
            argument: None,
            site: 0,
            count: None,
        };
        let shown = record.without_compiler_folder();
        assert_eq!(shown.source.unwrap().file, "k.cl");
        let about = shown.about.unwrap();
        assert_eq!(about, "racing with the write in line 2 (k.cl:5)");
    }
}
