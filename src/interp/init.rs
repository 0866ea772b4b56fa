//! Checks of initialisation, `--check init`: the definition of what an error is (docs/checking.md).
//!
//! Each bit of registers, local memory, scratch and device memory is initialised or not. A thread starts with its inputs and the predefined
//! variables initialised, a group with no local memory, a thread with no scratch. Of device memory that is not initialised which the host says
//! is not. What an instruction writes is initialised, unless it depends on bits that are not (`alu`, `rules`); only lanes that are enabled
//! write. Copies keep what they copy as it is, bit by bit, through memory too.
//!
//! To read and copy what is not initialised is no error. These uses of it are, each for the enabled lanes that it concerns:
//!
//! * The address of a message.
//! * The condition of a branch, call or return; of one decision for all lanes, the first of them.
//! * The predicate of a store or an atomic.
//! * The operand of an atomic, and the memory that it changes. Exchanges are copies and loads are loads; after any other atomic the memory
//!   counts as initialised.
//!
//! What lanes do under a condition does not depend on it in this sense. Images are initialised, and so is what comes from outside of memory.

mod alu;
mod memory;
mod rules;
mod shadow;

pub(super) use memory::Local;
pub(super) use shadow::{Kept, Registers, Unset};

use visa_runtime::{FaultKind, OtherAccess, Uninit};

use super::Program;
use super::access::site_of_use;
use super::error::Halt;
use super::lanes::{bit, bits, down, first};
use super::machine::Machine;
use crate::isa::lsc::AddrSize;
use crate::isa::{Effect, Opcode};
use crate::module::*;

/// An operand of a message that says where it goes.
enum Part<'i> {
    /// One element for each lane; the number is its size in bytes.
    Lanes(Raw, usize),
    /// Bytes from one on, for all lanes together.
    Bytes(Raw, usize, usize),
    /// A number for all lanes.
    Scalar(&'i Src),
    /// The same in a register.
    At(Origin),
}

/// Which bits a predicate's channels have from a variable.
fn of_channels(value: u32, width: u32, control: PredControl, unset: u32, lane: u32) -> u32 {
    let all = |yes: bool| if yes { u32::MAX } else { 0 };
    let (unset, whole) = (unset & first(width), first(width));
    match control {
        // A bit that is known may decide.
        PredControl::Any => all(unset != 0 && value & !unset == 0),
        PredControl::All => all(unset != 0 && !value & whole & !unset == 0),
        PredControl::Lanes if width == 1 => all(unset != 0),
        PredControl::Lanes => down(unset, lane),
    }
}

impl Machine<'_, '_, '_> {
    /// Looks at what an instruction is about to use.
    pub(super) fn check_init(&mut self, inst: &Inst) -> Result<(), Halt> {
        if self.t.init.is_none() {
            return Ok(());
        }
        match &inst.body {
            Body::Branch(_) | Body::Ret | Body::Fcall { .. } => self.check_branch(inst),
            Body::Ifcall { addr, .. } => {
                self.check_branch(inst)?;
                let unset = self.unset_of(addr, inst.exec.lanes())?;
                let lanes = self.callers(inst)?;
                let first = inst.exec.mask.first_lane() as usize;
                let scalar = inst.exec.lanes() == 1;
                for lane in bits(lanes).take(if scalar { 1 } else { usize::MAX }) {
                    let i = if scalar {
                        0
                    } else {
                        lane.saturating_sub(first)
                    };
                    self.report_init(FaultKind::UninitBranch, lane, &unset.get(i))?;
                }
                Ok(())
            }
            Body::SwitchJmp { index, .. } => {
                let unset = self.unset_of(index, 1)?.get(0);
                self.report_first(FaultKind::UninitBranch, &unset)
            }
            Body::Alu(a) => match &a.dst {
                Dst::Indirect { indirect, .. } if self.enabled(inst)? != 0 => {
                    let unset = self.unset_address(indirect.addr, indirect.index.into());
                    self.report_first(FaultKind::UninitAddress, &unset)
                }
                _ => Ok(()),
            },
            _ => self.check_message(inst),
        }
    }

    /// The predicate of a branch.
    fn check_branch(&mut self, inst: &Inst) -> Result<(), Halt> {
        let Some(p) = inst.pred else {
            return Ok(());
        };
        let lane = inst.exec.mask.first_lane();
        let per_lane = inst.op != Opcode::Jmp && inst.exec.lanes() > 1;
        let unset = self.unset_pred(p.var);
        if per_lane && p.control == PredControl::Lanes {
            let all = self.exec_mask(inst) & self.unset_guard(inst)?;
            let channels = all & down(self.t.control.active, lane);
            return self.report_guard(FaultKind::UninitBranch, inst, p, channels);
        }
        let (value, width) = self.pred(p.var)?;
        let lane = if inst.op == Opcode::Jmp { 0 } else { lane };
        let lane = lane.min(width.saturating_sub(1));
        let channels = of_channels(value, width, p.control, unset.bits as u32, lane);
        match bit(channels, 0) {
            true => self.report_first(FaultKind::UninitBranch, &unset),
            false => Ok(()),
        }
    }

    /// Channels whose guard depends on what is not initialised.
    fn unset_guard(&self, inst: &Inst) -> Result<u32, Halt> {
        let Some(p) = inst.pred else {
            return Ok(0);
        };
        let (value, width) = self.pred(p.var)?;
        let (unset, lane) = (
            self.unset_pred(p.var).bits as u32,
            inst.exec.mask.first_lane(),
        );
        let channels = of_channels(value, width, p.control, unset, lane);
        Ok(channels & first(inst.exec.lanes()))
    }

    /// Address and predicate of a message.
    fn check_message(&mut self, inst: &Inst) -> Result<(), Halt> {
        let parts = self.places(inst)?;
        if parts.is_empty() {
            return Ok(());
        }
        if matches!(inst.effect(), Effect::Store | Effect::Atomic)
            && let Some(p) = inst.pred
        {
            let channels = self.exec_mask(inst) & self.unset_guard(inst)?;
            self.report_guard(FaultKind::UninitMask, inst, p, channels)?;
        }
        // No mask has a say in blocks of the old messages.
        let blocks = matches!(
            &inst.body,
            Body::Svm(Svm::Block { .. })
                | Body::Mem(Mem {
                    kind: MemKind::Oword { .. } | MemKind::Media { .. },
                    ..
                })
        );
        let enabled = if blocks { 1 } else { self.enabled(inst)? };
        for part in parts {
            if enabled == 0 {
                break;
            }
            let one = match part {
                Part::Lanes(raw, bytes) => {
                    for i in bits(enabled) {
                        let unset = self.unset_payload(raw, 0, i, bytes)?;
                        let first = inst.exec.mask.first_lane() as usize;
                        let lane = i.wrapping_add(first);
                        self.report_init(FaultKind::UninitAddress, lane, &unset)?;
                    }
                    continue;
                }
                Part::Bytes(raw, at, len) => {
                    let each = (0..len).map(|i| self.unset_payload(raw, at, i, 1));
                    each.reduce(|all, one| Ok(all?.or(one?)))
                        .unwrap_or(Ok(Unset::NONE))?
                }
                Part::Scalar(src) => self.unset_of(src, 1)?.get(0),
                Part::At(origin) => self.unset_at(origin)?,
            };
            self.report_first(FaultKind::UninitAddress, &one)?;
        }
        Ok(())
    }

    /// The operands that say where a message goes.
    fn places<'i>(&self, inst: &'i Inst) -> Result<Vec<Part<'i>>, Halt> {
        let lanes = |raws: &[Raw], bytes: usize| -> Vec<Part<'i>> {
            let raws = raws.iter().filter(|raw| !raw.is_null());
            raws.map(|raw| Part::Lanes(*raw, bytes)).collect()
        };
        Ok(match &inst.body {
            Body::Mem(_) | Body::Svm(_) => {
                let bytes = match &inst.body {
                    Body::Mem(_) => 4,
                    Body::Svm(Svm::Gather4Scaled { offsets, .. }) => {
                        let wide = self.var_type(offsets.var)?.bytes() == 8;
                        if wide { 8 } else { 4 }
                    }
                    _ => 8,
                };
                let mut parts = Vec::new();
                inst.operands(|operand| match operand {
                    Operand::Scalar(src) => parts.push(Part::Scalar(src)),
                    Operand::Address(raw) if !raw.is_null() => {
                        parts.push(Part::Lanes(*raw, bytes));
                    }
                    _ => {}
                });
                parts
            }
            Body::Lsc(l) if l.prefetches() => Vec::new(),
            Body::Lsc(l) => lsc(l),
            Body::LscBlock2d(b) if b.data.is_null() => Vec::new(),
            Body::LscBlock2d(b) => match &b.address {
                BlockAddress::Operands(all) => all.iter().filter_map(in_register).collect(),
                BlockAddress::Payload { payload, .. } => vec![Part::Bytes(*payload, 0, 28)],
            },
            Body::LscTyped(t) => lanes(&t.coords, 4),
            Body::Sample(s) => {
                let mut parts = Vec::new();
                for raw in s.params.iter().filter(|raw| !raw.is_null()) {
                    let bytes = self.var_type(raw.var)?.bytes().clamp(2, 4);
                    parts.push(Part::Lanes(*raw, bytes as usize));
                }
                parts
            }
            _ => Vec::new(),
        })
    }

    /// Reports a use for the first active lane.
    fn report_first(&mut self, kind: FaultKind, unset: &Unset) -> Result<(), Halt> {
        let lane = self.t.control.active.trailing_zeros() as usize;
        self.report_init(kind, lane, unset)
    }

    /// Reports the use of a guard for each channel of a mask.
    fn report_guard(
        &mut self,
        kind: FaultKind,
        inst: &Inst,
        p: Predicate,
        channels: u32,
    ) -> Result<(), Halt> {
        for i in bits(channels) {
            let lane = i.wrapping_add(inst.exec.mask.first_lane() as usize);
            self.report_init(kind, lane, &self.unset_bit(inst, p, i))?;
        }
        Ok(())
    }

    /// Reports what a lane of the thread uses, if it is not initialised.
    pub(super) fn report_init(
        &mut self,
        kind: FaultKind,
        lane: usize,
        unset: &Unset,
    ) -> Result<(), Halt> {
        let Some(from) = unset.origin() else {
            return Ok(());
        };
        let by = OtherAccess {
            group: self.group.id(),
            thread: self.number,
            lane: lane as u32,
            site: site_of_use(self.at),
        };
        match self.group.fault_of_init(kind, by, from) {
            true => Err(Halt::Fault),
            false => Ok(()),
        }
    }
}

/// Where an untyped message goes.
fn lsc(l: &Lsc) -> Vec<Part<'static>> {
    use crate::isa::lsc::LscOp as O;
    let bytes = match l.addr_size {
        AddrSize::A16 => 2,
        AddrSize::A32 => 4,
        AddrSize::A64 => 8,
    };
    let strided = matches!(l.op, O::LoadStrided | O::StoreStrided);
    let mut parts = vec![match strided || l.transposed {
        true => Part::Bytes(l.addr, 0, bytes),
        false => Part::Lanes(l.addr, bytes),
    }];
    parts.extend(l.stride.as_ref().and_then(in_register));
    if let LscSurface::Var(origin) = &l.surface {
        parts.push(Part::At(*origin));
    }
    parts
}

fn in_register(scalar: &LscScalar) -> Option<Part<'static>> {
    match scalar {
        LscScalar::Imm(_) => None,
        LscScalar::Var(origin) => Some(Part::At(*origin)),
    }
}

impl Program {
    /// What a register of [`Uninit::Register`] is called, and which byte of it that is.
    fn register(&self, number: u32) -> Option<(String, Option<u32>)> {
        let vars = &self.kernel.module().vars;
        match shadow::register(number) {
            shadow::Register::Byte(at) => {
                let (name, byte) = self.layout.root_at(at)?;
                Some((name.to_owned(), Some(byte as u32)))
            }
            shadow::Register::Pred(p) => {
                let var = vars.predicate.get(p.checked_sub(1)? as usize)?;
                Some((var.name.clone(), None))
            }
            shadow::Register::Address(a) => {
                let var = vars.address.get(a as usize)?;
                Some((var.name.clone(), None))
            }
        }
    }

    /// What a thread knows of its registers at its start.
    pub(super) fn registers(&self) -> Option<Box<Registers>> {
        self.options.check_init.then(|| {
            let mut registers = Registers::new(&self.kernel, &self.layout);
            for input in &self.kernel.module().inputs {
                if let InputVar::General(var) = input.var {
                    let place = self.kernel.root_offset(var);
                    let at = self.layout.byte_offset(
                        place.root,
                        place.offset as usize,
                        input.size as usize,
                    );
                    if let Ok(at) = at {
                        registers.clear(at, input.size as usize);
                    }
                }
            }
            Box::new(registers)
        })
    }

    /// What the origin of a value is called, without the name of a buffer.
    pub fn uninit(&self, from: Uninit) -> String {
        match from {
            Uninit::Register(number) => match self.register(number) {
                Some((name, Some(byte))) => format!("variable `{name}` (byte {byte})"),
                Some((name, None)) => format!("variable `{name}`"),
                None => "registers".to_owned(),
            },
            Uninit::Local(at) => format!("local memory at {at:#x}"),
            Uninit::Scratch(at) => format!("scratch at {at:#x}"),
            Uninit::Memory(at) => format!("device memory at {at:#x}"),
        }
    }
}
