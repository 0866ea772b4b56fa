//! What is known about `%cr0` before each block: it decides whether float operations are plain.
//!
//! A forward data-flow over the plan's blocks. The register starts at zero (docs/visa.md, "Types and conversions"); kernels
//! set it with `or`/`and`/`xor`/`mov` of immediates, so that it is a constant nearly everywhere.

use super::flow::Flow;
use crate::isa::{Opcode, Type};
use crate::module::{Alu, Body, Dst, Inst, Src, VarId};
use crate::valid::ValidKernel;

pub(super) use crate::ssa::fp_env::CR0_ROUNDING as ROUNDING;
/// Denormals of `df` kept.
pub(super) const KEEP_DF: u32 = 0x40;
/// Denormals of `f` kept.
pub(super) const KEEP_F: u32 = 0x80;
/// Denormals of `hf` kept.
pub(super) const KEEP_HF: u32 = 0x400;

/// Knowledge about the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cr0 {
    /// Always this value.
    Known(u32),
    /// Anything.
    Unknown,
    /// Anything, with up and down exchanged; only while one operation is lowered.
    Mirrored,
}

impl Cr0 {
    /// The mode that rounds a magnitude as this one rounds the negative number.
    pub(crate) fn mirrored(self) -> Cr0 {
        match self {
            Cr0::Known(v) if matches!(v & ROUNDING, 0x10 | 0x20) => Cr0::Known(v ^ ROUNDING),
            Cr0::Unknown => Cr0::Mirrored,
            known => known,
        }
    }

    /// True when operations on these types round to nearest even and keep denormals.
    pub(crate) fn plain(self, types: &[Type]) -> bool {
        let Cr0::Known(v) = self else { return false };
        v & ROUNDING == 0
            && types.iter().all(|t| match t {
                Type::F | Type::Bf | Type::Vf => v & KEEP_F != 0,
                Type::Df => v & KEEP_DF != 0,
                Type::Hf => v & KEEP_HF != 0,
                _ => true,
            })
    }
}

/// Value after an instruction.
pub(super) fn step(kernel: &ValidKernel, state: Cr0, inst: &Inst) -> Cr0 {
    let Body::Alu(a) = &inst.body else {
        return state;
    };
    let Dst::General { origin, .. } = &a.dst else {
        return state;
    };
    let place = kernel.root_offset(origin.var);
    if kernel.roots().get(place.root.0 as usize).map(|r| r.var) != Some(VarId::CR0) {
        return state;
    }
    if inst.pred.is_some() || inst.exec.lanes() != 1 || origin.col != 0 || origin.row != 0 {
        return Cr0::Unknown;
    }
    operation(inst.op, a, state)
}

fn operation(op: Opcode, a: &Alu, state: Cr0) -> Cr0 {
    let value = |s: &Src| match (s, state) {
        // Others are vectors, or do not have the bits that are written.
        (
            Src::Imm {
                bits,
                ty: Type::Ud | Type::D | Type::Uw,
            },
            _,
        ) => Some(*bits as u32),
        (Src::General { origin, .. }, Cr0::Known(v))
            if origin.var == VarId::CR0 && origin.col == 0 =>
        {
            Some(v)
        }
        _ => None,
    };
    let known = match (op, a.srcs.as_slice()) {
        (Opcode::Mov, [s]) => value(s),
        (Opcode::Or, [x, y]) => value(x).zip(value(y)).map(|(x, y)| x | y),
        (Opcode::And, [x, y]) => value(x).zip(value(y)).map(|(x, y)| x & y),
        (Opcode::Xor, [x, y]) => value(x).zip(value(y)).map(|(x, y)| x ^ y),
        _ => None,
    };
    known.map_or(Cr0::Unknown, Cr0::Known)
}

/// State on entry to each block; `None` for unreachable blocks.
pub(super) fn analyse(kernel: &ValidKernel, flow: &Flow) -> Vec<Option<Cr0>> {
    let insts = &kernel.module().insts;
    let mut states: Vec<Option<Cr0>> = vec![None; flow.blocks.len()];
    let mut work = Vec::new();
    if let Some(first) = states.first_mut() {
        *first = Some(Cr0::Known(0));
        work.push(0);
    }
    while let Some(b) = work.pop() {
        let Some(mut state) = states[b] else { continue };
        for inst in &insts[flow.blocks[b].first..flow.blocks[b].end] {
            state = step(kernel, state, inst);
        }
        for s in flow.successors(b, insts) {
            let merged = match states[s] {
                None => state,
                Some(old) if old == state => old,
                Some(_) => Cr0::Unknown,
            };
            if states[s] != Some(merged) {
                states[s] = Some(merged);
                work.push(s);
            }
        }
    }
    states
}
