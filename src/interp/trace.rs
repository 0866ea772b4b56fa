//! The trace: one line for each executed instruction, the same in every run on one OS thread.
//!
//! `group x,y,z thread t line n: opcode mask=0x… written…`. Written registers are given as `variable[byte]=value` of
//! the variable that owns the storage, predicates as `P1=bits&written`,
//! address elements as `A0[element]=value`, memory as `space[address]=value`, lane by lane in
//! the order of writing.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::InterpError;
use super::state::Layout;
use crate::module::{AddrId, PredId};

/// Where a trace goes. Cloning gives another handle.
#[derive(Clone)]
pub struct Trace(Arc<Mutex<dyn Write + Send>>);

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Trace")
    }
}

impl Trace {
    /// A trace that is written to `out`.
    pub fn new(out: impl Write + Send + 'static) -> Trace {
        Trace(Arc::new(Mutex::new(out)))
    }

    pub(super) fn line(&self, line: &str) -> Result<(), InterpError> {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(out, "{line}").map_err(|e| InterpError::Trace {
            what: e.to_string(),
        })
    }
}

/// What an instruction has written so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Written(String);

impl Written {
    fn add(&mut self, what: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, " {what}");
    }

    /// Bytes of the register file.
    pub(super) fn register(&mut self, layout: &Layout, at: usize, bytes: usize, v: u64) {
        match layout.root_at(at) {
            Some((root, offset)) => self.add(format_args!(
                "{root}[{offset}]={v:#0width$x}",
                width = bytes.saturating_mul(2).saturating_add(2)
            )),
            None => self.add(format_args!("r[{at}]={v:#x}")),
        }
    }

    /// Bits of a predicate.
    pub(super) fn pred(&mut self, p: PredId, v: u32, written: u32) {
        self.add(format_args!("P{}={v:#x}&{written:#x}", p.0));
    }

    /// An address element.
    pub(super) fn address(&mut self, a: AddrId, k: usize, v: u16) {
        self.add(format_args!("A{}[{k}]={v:#x}", a.0));
    }

    /// The first of some state elements.
    pub(super) fn state(&mut self, sampler: bool, v: u64) {
        let name = if sampler { "sampler" } else { "surface" };
        self.add(format_args!("{name}={v:#x}"));
    }

    /// An element of memory.
    pub(super) fn memory(&mut self, space: &str, address: u64, v: u64) {
        self.add(format_args!("{space}[{address:#x}]={v:#x}"));
    }

    /// The text.
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}
