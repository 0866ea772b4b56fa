//! What profilers and debuggers are told about installed code: perf's map and jitdump, GDB's list of images.
//!
//! Nothing here runs unless it is asked for, and no launch depends on it: what cannot be written costs a profile, not a
//! result.

mod gdb;
#[cfg(target_os = "linux")]
mod perf;

pub use gdb::DebugImage;
#[cfg(target_os = "linux")]
pub use perf::{JitDump, PerfMap};

/// Installed code as profilers see it.
#[derive(Clone, Debug)]
pub struct CodeInfo<'a> {
    /// Symbol.
    pub name: &'a str,
    /// First address.
    pub address: u64,
    /// The code.
    pub bytes: &'a [u8],
    /// Lines, in ascending order of offset; each holds up to the next.
    pub lines: Vec<CodeLine<'a>>,
}

/// Where code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeLine<'a> {
    /// First byte of the code.
    pub offset: u32,
    /// File.
    pub file: &'a str,
    /// Line, 0 for none.
    pub line: u32,
}
