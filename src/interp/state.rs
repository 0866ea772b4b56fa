//! A hardware thread: its registers, bytes exactly as the ISA lays them out, and where its lanes are.

use std::collections::BTreeSet;

use super::barrier::Barriers;
use super::control::Control;
use super::error::{Halt, InterpError};
use super::init::Registers;
use crate::module::{Body, Inst, OtherVar, PREDEFINED, Src, SurfaceId, VarId};
use crate::valid::{RootId, ValidKernel};

/// Largest part of the register file that address registers can reach: they have 16 bits.
const MAX_ADDRESSABLE: usize = 1 << 16;
/// Bytes of one thread's register file.
const MAX_FILE: usize = 64 << 20;

/// Where each storage root starts in the register file.
///
/// Roots whose address is taken come first, in order and aligned to 64 bytes, so that an address element is a
/// position in the file. What an indirect access finds beyond its own variable is nowhere defined; here it is the
/// neighbour in this order, and beyond the last one zeros that cannot be written.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    start: Vec<usize>,
    end: Vec<usize>,
    /// Names of the roots, for traces.
    names: Vec<String>,
    /// Bytes that indirect accesses reach.
    pub addressable: usize,
    /// Bytes of the file.
    pub bytes: usize,
}

impl Layout {
    /// Lays the roots of a kernel out.
    pub(super) fn new(kernel: &ValidKernel) -> Result<Layout, InterpError> {
        let taken: BTreeSet<RootId> = kernel
            .module()
            .insts
            .iter()
            .filter_map(addressed)
            .flatten()
            .map(|var| kernel.root_offset(var).root)
            .collect();
        let roots = kernel.roots();
        let mut layout = Layout {
            start: vec![0; roots.len()],
            end: vec![0; roots.len()],
            names: roots.iter().map(|r| name(kernel, r.var)).collect(),
            addressable: 0,
            bytes: 0,
        };
        let ids = || (0..roots.len() as u32).map(RootId);
        for id in ids().filter(|id| taken.contains(id)) {
            layout.put(kernel, id);
        }
        layout.addressable = layout.bytes;
        if layout.addressable > MAX_ADDRESSABLE {
            return Err(InterpError::TooLarge {
                what: format!(
                    "{} bytes of registers reached by address",
                    layout.addressable
                ),
            });
        }
        for id in ids().filter(|id| !taken.contains(id)) {
            layout.put(kernel, id);
        }
        if layout.bytes > MAX_FILE {
            return Err(InterpError::TooLarge {
                what: format!("{} bytes of registers", layout.bytes),
            });
        }
        Ok(layout)
    }

    fn put(&mut self, kernel: &ValidKernel, id: RootId) {
        let at = id.0 as usize;
        let bytes = kernel.roots().get(at).map_or(0, |r| r.bytes as usize);
        if let (Some(start), Some(end)) = (self.start.get_mut(at), self.end.get_mut(at)) {
            *start = self.bytes;
            *end = self.bytes.saturating_add(bytes);
            self.bytes = end.next_multiple_of(64);
        }
    }

    /// Positions of `bytes` bytes from byte `offset` of a root.
    pub(super) fn byte_offset(
        &self,
        root: RootId,
        offset: usize,
        bytes: usize,
    ) -> Result<usize, Halt> {
        let id = root.0 as usize;
        let start = self.start.get(id).copied().unwrap_or(0);
        let room = self.end.get(id).copied().unwrap_or(0).saturating_sub(start);
        match offset.checked_add(bytes) {
            Some(end) if end <= room => Ok(start.saturating_add(offset)),
            _ => Halt::malformed(format!(
                "operand reaches byte {} of a variable that has {room}",
                offset.saturating_add(bytes)
            )),
        }
    }

    /// Name of the root that has a position, and the byte in it.
    pub(super) fn root_at(&self, at: usize) -> Option<(&str, usize)> {
        let spans = self.start.iter().zip(&self.end).zip(&self.names);
        let mut found = spans.filter(|((start, end), _)| (**start..**end).contains(&at));
        let ((start, _), name) = found.next()?;
        Some((name, at.wrapping_sub(*start)))
    }

    /// Positions that a root has in the file.
    pub(super) fn span(&self, root: RootId) -> std::ops::Range<usize> {
        let id = root.0 as usize;
        let start = self.start.get(id).copied().unwrap_or(0);
        start..self.end.get(id).copied().unwrap_or(start)
    }

    /// Address of a root whose address is taken.
    pub(super) fn address(&self, root: RootId) -> usize {
        self.start.get(root.0 as usize).copied().unwrap_or(0)
    }
}

fn name(kernel: &ValidKernel, var: VarId) -> String {
    let predefined = PREDEFINED.iter().find(|p| p.id == var);
    match (predefined, kernel.module().vars.general(var)) {
        (Some(p), _) => p.name.to_owned(),
        (_, Some(v)) => v.name.clone(),
        _ => format!("V{}", var.0),
    }
}

/// Variables whose address an instruction takes.
fn addressed(inst: &Inst) -> Option<Vec<VarId>> {
    let Body::Alu(a) = &inst.body else {
        return None;
    };
    let var = |s: &Src| match s {
        Src::AddressOf { var, .. } => Some(*var),
        _ => None,
    };
    Some(a.srcs.iter().filter_map(var).collect())
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing: it runs.
    Nothing,
    /// A barrier: one with a number, or [`super::barrier::GROUP`] of all threads.
    Barrier(u8),
    /// The thread that it is fused with, at `dpasw`.
    Fused,
}

/// State of a hardware thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// The register file.
    pub file: Vec<u8>,
    /// Bits of each predicate variable.
    pub preds: Vec<u32>,
    /// Elements of each address variable.
    pub addrs: Vec<Vec<u16>>,
    /// Binding-table indices in each declared surface variable.
    pub surfaces: Vec<Vec<u32>>,
    /// Handles in each sampler variable.
    pub samplers: Vec<Vec<u32>>,
    /// Where the lanes are.
    pub control: Control,
    /// Instructions executed.
    pub executed: u64,
    /// All lanes are at their end.
    pub done: bool,
    /// Why it does not run.
    pub wait: Wait,
    /// Its half of a matrix, while it waits at `dpasw`, and the instruction.
    pub offered: (usize, Vec<u8>),
    /// Both halves, when it goes on.
    pub received: Option<Vec<u8>>,
    /// What it does at barriers.
    pub barriers: Barriers,
    /// Which of its registers are initialised, where that is checked.
    pub init: Option<Box<Registers>>,
}

impl Thread {
    /// A thread at its start, all registers zero.
    pub(super) fn new(kernel: &ValidKernel, layout: &Layout, mask: u32) -> Thread {
        let vars = &kernel.module().vars;
        Thread {
            file: vec![0; layout.bytes],
            preds: vec![0; vars.predicate.len()],
            addrs: vars
                .address
                .iter()
                .map(|a| vec![0; a.elements as usize])
                .collect(),
            // After those of the kernel, `%bss`.
            surfaces: states(&vars.surface).into_iter().chain([vec![0]]).collect(),
            samplers: states(&vars.sampler),
            control: Control::new(mask),
            executed: 0,
            done: mask == 0,
            wait: Wait::Nothing,
            offered: (0, Vec::new()),
            received: None,
            barriers: Barriers::default(),
            init: None,
        }
    }

    /// After an instruction: see [`Control::settle`]. Activations that are returned to have their variables again.
    pub(super) fn settle(&mut self) -> bool {
        let more = self.control.settle();
        for kept in std::mem::take(&mut self.control.returned_to) {
            kept.restore(self);
        }
        more
    }

    /// A little-endian number of up to 8 bytes; bytes past the file are zero.
    pub(super) fn get(&self, at: usize, bytes: usize) -> u64 {
        let end = at.saturating_add(bytes);
        let part = self.file.get(at..end).unwrap_or(&[]);
        let mut all = [0; 8];
        for (to, from) in all.iter_mut().zip(part) {
            *to = *from;
        }
        u64::from_le_bytes(all)
    }

    /// Stores the low `bytes` bytes of a number.
    pub(super) fn set(&mut self, at: usize, bytes: usize, bits: u64) {
        let end = at.saturating_add(bytes);
        for (to, from) in self
            .file
            .get_mut(at..end)
            .unwrap_or(&mut [])
            .iter_mut()
            .zip(bits.to_le_bytes())
        {
            *to = from;
        }
    }

    /// The binding-table index that messages through a declared surface variable use, or the word of `%bss`.
    pub(super) fn surface(&self, s: SurfaceId) -> Option<u32> {
        if s == SurfaceId::BSS {
            return self.surfaces.last()?.first().copied();
        }
        let index = s.0.checked_sub(SurfaceId::FIRST_USER)?;
        self.surfaces.get(index as usize)?.first().copied()
    }
}

/// Elements of state variables, as many as operands can name.
fn states(vars: &[OtherVar]) -> Vec<Vec<u32>> {
    const MOST: u32 = 256 + 32;
    vars.iter()
        .map(|v| vec![0; v.elements.clamp(1, MOST) as usize])
        .collect()
}
