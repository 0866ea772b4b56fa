//! What can be said of a dword of a header without running the program: sizes of blocks are numbers of instructions, but lie
//! in registers of messages.

use super::Sent;
use crate::isa::SrcModifier;
use crate::isa::{Opcode, Type};
use crate::module::{Alu, Body, Dst, InputVar, Inst, Module, Operand, Origin, Raw, Src, VarId};

/// Low bits of `r0.5`, which number the thread; the rest is the address of its scratch memory, from which offsets count here.
const THREAD: u32 = 0x3FF;

/// Chains of aliases end before; validation has seen to it.
const DEPTH: usize = 64;

/// A range of bytes of a variable that is no alias.
#[derive(Clone, Copy, PartialEq)]
struct Bytes {
    root: VarId,
    from: u64,
    to: u64,
}

impl Bytes {
    fn overlaps(self, other: Bytes) -> bool {
        self.root == other.root && self.from < other.to && other.from < self.to
    }
}

fn bytes_of(module: &Module, var: VarId, offset: u64, bytes: u64) -> Option<Bytes> {
    let (mut root, mut from) = (var, offset);
    for _ in 0..DEPTH {
        match root.user_index().and_then(|i| module.vars.general.get(i)) {
            Some(v) => match v.alias {
                Some((parent, at)) => (root, from) = (parent, from.checked_add(at.into())?),
                None => break,
            },
            None => break,
        }
    }
    let to = from.checked_add(bytes)?;
    Some(Bytes { root, from, to })
}

/// True for instructions that compute registers from registers, or leave the straight way: what these write is not said by
/// their payloads.
fn is_no_message(body: &Body) -> bool {
    matches!(
        body,
        Body::Alu(_)
            | Body::Label(_)
            | Body::Branch(_)
            | Body::Ret
            | Body::SwitchJmp { .. }
            | Body::Fcall { .. }
            | Body::Ifcall { .. }
            | Body::Faddr { .. }
    )
}

impl Sent<'_> {
    fn place(&self, origin: Origin, bytes: u64) -> Option<Bytes> {
        let ty = self.module.vars.ty(origin.var)?;
        let row = u64::from(origin.row).checked_mul(self.platform.grf_bytes().into())?;
        let col = u64::from(origin.col).checked_mul(ty.bytes().into())?;
        bytes_of(self.module, origin.var, row.checked_add(col)?, bytes)
    }

    /// Bytes that an instruction among registers writes; `None` where that is not known.
    fn written(&self, inst: &Inst, a: &Alu) -> Option<Vec<Bytes>> {
        let mut out = Vec::new();
        for d in [Some(&a.dst), a.dst2.as_ref()].into_iter().flatten() {
            match d {
                Dst::General { origin, region } => {
                    let size = u64::from(self.module.vars.ty(origin.var)?.bytes());
                    let last = u64::from(inst.exec.lanes().saturating_sub(1))
                        .checked_mul(region.hstride.into())?;
                    let bytes = last.checked_add(1)?.checked_mul(size)?;
                    out.push(self.place(*origin, bytes)?);
                }
                Dst::Indirect { .. } => return None,
                Dst::Pred(_) | Dst::Address { .. } | Dst::Surface(..) | Dst::Sampler(..) => {}
            }
        }
        Some(out)
    }

    /// Counts an instruction that is looked at; `None` when enough have been for all messages of a program.
    fn step(&self) -> Option<()> {
        self.steps.set(self.steps.get().checked_sub(1)?);
        Some(())
    }

    /// True when an instruction is carried out whenever the message is sent.
    fn always(&self, inst: &Inst) -> bool {
        inst.pred.is_none() && inst.exec.mask.no_mask
    }

    /// The instruction that wrote a dword last, if the way from there to the message is straight and the instruction is carried
    /// out whenever the message is.
    fn last_writer(&self, dword: Bytes) -> Option<(&Inst, &Alu, Bytes)> {
        let before = self.module.insts.get(..self.at)?;
        for inst in before.iter().rev() {
            self.step()?;
            match &inst.body {
                Body::Alu(a) => {
                    let all = self.written(inst, a)?;
                    if let Some(b) = all.iter().find(|b| b.overlaps(dword)) {
                        return self.always(inst).then_some((inst, a, *b));
                    }
                }
                _ if self.message_writes(inst, dword)? => return None,
                _ => {}
            }
        }
        None
    }

    /// Whether a message writes a dword; `None` of what is no message.
    fn message_writes(&self, inst: &Inst, dword: Bytes) -> Option<bool> {
        if is_no_message(&inst.body) {
            return None;
        }
        let reaches = |r: Raw| {
            let end = u64::from(u32::MAX);
            bytes_of(self.module, r.var, r.offset.into(), end).is_none_or(|b| b.overlaps(dword))
        };
        let mut writes = false;
        inst.operands(|operand| {
            if let Operand::Written(r) = operand {
                writes |= reaches(*r);
            }
        });
        Some(writes)
    }

    /// The number that an instruction puts into dwords side by side, this one among them.
    fn number(&self, inst: &Inst, a: &Alu, written: Bytes, dword: Bytes) -> Option<u32> {
        let [Src::Imm { bits, ty }] = a.srcs.as_slice() else {
            return None;
        };
        let Dst::General { origin, region } = &a.dst else {
            return None;
        };
        let to = self.module.vars.ty(origin.var)?;
        let plain = inst.op == Opcode::Mov && !a.sat && matches!(to, Type::D | Type::Ud);
        let at = dword.from.checked_sub(written.from)?;
        let whole = dword.to <= written.to && at.is_multiple_of(4);
        if !plain || !whole || region.hstride != 1 {
            return None;
        }
        match ty {
            Type::D | Type::Ud => Some(*bits as u32),
            Type::Uw => Some(u32::from(*bits as u16)),
            Type::W => Some(i32::from(*bits as u16 as i16) as u32),
            _ => None,
        }
    }

    /// The number in a dword of a header, which is the same whenever the message is sent.
    pub(super) fn known(&self, header: Raw, byte: u32) -> Option<u32> {
        let at = u64::from(header.offset).checked_add(byte.into())?;
        let dword = bytes_of(self.module, header.var, at, 4)?;
        match self.last_writer(dword) {
            Some((inst, a, b)) => self.number(inst, a, b, dword),
            None => self.only(dword),
        }
    }

    /// The number of all instructions of the program that write a dword, if they agree; headers are often made in front of
    /// loops.
    fn only(&self, dword: Bytes) -> Option<u32> {
        let input = |i: &crate::module::Input| match i.var {
            InputVar::General(v) => {
                bytes_of(self.module, v, 0, i.size.into()).is_none_or(|b| b.overlaps(dword))
            }
            _ => false,
        };
        if dword.root.is_predefined() || self.module.inputs.iter().any(input) {
            return None;
        }
        let mut found = None;
        for inst in &self.module.insts {
            self.step()?;
            match &inst.body {
                Body::Alu(a) => {
                    for b in self.written(inst, a)? {
                        if !b.overlaps(dword) {
                            continue;
                        }
                        let number = self.number(inst, a, b, dword)?;
                        if !self.always(inst) || found.is_some_and(|n| n != number) {
                            return None;
                        }
                        found = Some(number);
                    }
                }
                Body::Faddr { .. } => return None,
                // What is no message writes no variable but those that calls share.
                _ if self.message_writes(inst, dword) == Some(true) => return None,
                _ => {}
            }
        }
        found
    }

    /// True when bits 31:10 of the sixth dword of a header, from which offsets without a surface count, are those of the
    /// thread's own scratch memory: none at all, or a copy of `r0`.
    pub(super) fn own_scratch(&self, header: Raw) -> bool {
        const BASE: u32 = 20;
        if self.known(header, BASE).is_some_and(|n| n & !THREAD == 0) {
            return true;
        }
        let at = u64::from(header.offset).saturating_add(BASE.into());
        let Some(dword) = bytes_of(self.module, header.var, at, 4) else {
            return false;
        };
        let Some((inst, a, written)) = self.last_writer(dword) else {
            return dword.root == VarId::R0 && dword.from == u64::from(BASE);
        };
        match (inst.op, a.srcs.as_slice()) {
            (Opcode::And, [_, Src::Imm { bits, ty: Type::Ud }]) => {
                let ud = |d: &Dst| match d {
                    Dst::General { origin, .. } => {
                        self.module.vars.ty(origin.var) == Some(Type::Ud)
                    }
                    _ => false,
                };
                *bits as u32 & !THREAD == 0 && written == dword && ud(&a.dst)
            }
            (Opcode::Mov, [s]) => self.reads_r0(inst, a, s, (dword, BASE)),
            _ => false,
        }
    }

    /// True when a dword of a payload is that of `r0` with these bits left and no others.
    pub(super) fn masked_r0(&self, payload: Raw, byte: u32, mask: u32) -> bool {
        let at = u64::from(payload.offset).saturating_add(byte.into());
        let Some(dword) = bytes_of(self.module, payload.var, at, 4) else {
            return false;
        };
        match self.last_writer(dword) {
            Some((inst, a, _)) if inst.op == Opcode::And => match a.srcs.as_slice() {
                [s, Src::Imm { bits, ty: Type::Ud }] => {
                    *bits as u32 == mask && self.reads_r0(inst, a, s, (dword, byte))
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// True when the upper half of a dword of a payload is the byte of `r0` at `from`, twice, and the lower half is 0.
    pub(super) fn byte_of_r0_twice(&self, payload: Raw, byte: u32, from: u32) -> bool {
        let half = |skipped: u32| {
            let at = u64::from(payload.offset).checked_add(byte.into())?;
            bytes_of(self.module, payload.var, at.checked_add(skipped.into())?, 2)
        };
        let (Some(low), Some(high)) = (half(0), half(2)) else {
            return false;
        };
        let number = |(inst, a, written)| self.number(inst, a, written, low);
        let copied = |(inst, a, written)| written == high && self.copies_byte_of_r0(inst, a, from);
        let low = self.last_writer(low).and_then(number);
        low.is_some_and(|n| n & 0xFFFF == 0) && self.last_writer(high).is_some_and(copied)
    }

    /// True when an instruction puts the byte of `r0` at some place into two bytes side by side.
    fn copies_byte_of_r0(&self, inst: &Inst, a: &Alu, from: u32) -> bool {
        let (
            Dst::General { origin: to, region },
            [
                Src::General {
                    origin,
                    region: read,
                    modifier,
                },
            ],
        ) = (&a.dst, a.srcs.as_slice())
        else {
            return false;
        };
        let ub = |o: &Origin| self.module.vars.ty(o.var) == Some(Type::Ub);
        let plain = inst.op == Opcode::Mov && !a.sat && *modifier == SrcModifier::None;
        let one = read.element(0) == 0 && read.element(1) == 0;
        let there = Bytes {
            root: VarId::R0,
            from: from.into(),
            to: u64::from(from).saturating_add(1),
        };
        plain
            && inst.exec.lanes() == 2
            && ub(to)
            && ub(origin)
            && region.hstride == 1
            && one
            && self.place(*origin, 1) == Some(there)
    }

    /// True where what an instruction puts into the place of a dword comes from the dword of `r0` at some byte.
    fn reads_r0(&self, inst: &Inst, a: &Alu, s: &Src, (dword, byte): (Bytes, u32)) -> bool {
        let (
            Dst::General {
                origin: to,
                region: strides,
            },
            false,
        ) = (&a.dst, a.sat)
        else {
            return false;
        };
        let Src::General {
            origin: from,
            region,
            modifier: SrcModifier::None,
        } = s
        else {
            return false;
        };
        let ud = |o: &Origin| self.module.vars.ty(o.var) == Some(Type::Ud);
        if !ud(to) || !ud(from) || strides.hstride != 1 {
            return false;
        }
        let Some(start) = self.place(*to, 4) else {
            return false;
        };
        let lane = dword.from.saturating_sub(start.from) / 4;
        let element = (lane < u64::from(inst.exec.lanes())).then(|| region.element(lane as u32));
        let read = element.and_then(|e| {
            let first = self.place(*from, 4)?;
            Some((
                first.root,
                first.from.checked_add(u64::from(e).checked_mul(4)?)?,
            ))
        });
        start.from.checked_add(lane.saturating_mul(4)) == Some(dword.from)
            && read == Some((VarId::R0, byte.into()))
    }
}
