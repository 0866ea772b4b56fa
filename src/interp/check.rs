//! What can be refused before anything runs, so that an unsupported kernel is an error and not half a result.
//!
//! Forms that only show while an instruction runs are errors then.

use super::calls::missing;
use super::error::{Halt, InterpError};
use super::{Inputs, NOT_YET};
use crate::isa::lsc::{ARG_WRITTEN, AddrModel, DataSize, LscOp, Sfid};
use crate::isa::{Opcode, Status};
use crate::module::*;
use crate::valid::ValidKernel;

/// Checks every instruction, in textual order.
pub(super) fn program(kernel: &ValidKernel, inputs: &Inputs) -> Result<(), InterpError> {
    let module = kernel.module();
    for inst in &module.insts {
        let checked = instruction(kernel, inst, inputs);
        if let Some(error) = checked
            .err()
            .and_then(|halt| halt.at(inst.pos, inst.mnemonic()))
        {
            return Err(error);
        }
    }
    Ok(())
}

/// A function that was linked to the kernel.
pub(super) fn function<'m>(module: &'m Module, name: &str) -> Option<&'m LinkedFunction> {
    module.functions.iter().find(|f| f.name == name)
}

/// Why a symbol has no address.
pub(super) fn unknown(name: &str) -> String {
    format!(
        "address of `{name}`, which is neither a function nor a program-scope variable of the file"
    )
}

fn instruction(kernel: &ValidKernel, inst: &Inst, inputs: &Inputs) -> Result<(), Halt> {
    let module = kernel.module();
    let row = inst.op.info();
    if row.status == Status::Rejected {
        return Halt::unsupported("not part of compute kernels");
    }
    match &inst.body {
        Body::Alu(_) if row.status == Status::DecodeOnly => Halt::unsupported(NOT_YET),
        Body::Alu(_)
        | Body::Label(_)
        | Body::Branch(_)
        | Body::SwitchJmp { .. }
        | Body::LscFence { .. }
        | Body::Fence(_)
        | Body::File(_)
        | Body::Loc(_)
        | Body::Lifetime { .. } => Ok(()),
        Body::Ret | Body::Ifcall { .. } => Ok(()),
        Body::Fcall { name, .. } if function(module, name).is_some() => Ok(()),
        Body::Fcall { name, .. } => Halt::unsupported(missing(name)),
        Body::Nullary if inst.op != Opcode::Breakpoint => Ok(()),
        Body::Faddr { name, .. } if function(module, name).is_some() => Ok(()),
        Body::Faddr { name, .. } if inputs.symbols.contains_key(name) => Ok(()),
        Body::Faddr { name, .. } => Halt::unsupported(unknown(name)),
        Body::Mem(_) | Body::Svm(_) | Body::Sample(_) | Body::Dpas(_) => Ok(()),
        Body::Lsc(l) => lsc(l),
        Body::RawSend(r) => Halt::unsupported(r.refusal()),
        Body::LscBlock2d(_) | Body::Sbarrier(_) | Body::Nbarrier { .. } | Body::Wait(_) => Ok(()),
        Body::LscTyped(t) => lsc_typed(t),
        _ => Halt::unsupported(NOT_YET),
    }
}

fn lsc_typed(t: &LscTyped) -> Result<(), Halt> {
    match (t.op, t.data_size) {
        (LscOp::LoadQuad | LscOp::StoreQuad | LscOp::Atomic(_), DataSize::D32)
        | (LscOp::Atomic(_), DataSize::D16c32) => Ok(()),
        (_, size) => Halt::unsupported(format!("typed elements of {}", size.name())),
    }
}

fn lsc(l: &Lsc) -> Result<(), Halt> {
    match (l.sfid, l.model) {
        (Sfid::Slm, _) => Ok(()),
        (_, AddrModel::Arg) if l.writes() => Halt::unsupported(ARG_WRITTEN),
        _ => Ok(()),
    }
}

/// True when an instruction names scratch memory.
pub(super) fn uses_scratch(module: &Module) -> bool {
    module.insts.iter().any(|i| match &i.body {
        Body::Mem(m) => m.surface == SurfaceId::SCRATCH,
        Body::Lsc(l) => l.sfid != Sfid::Slm && matches!(l.model, AddrModel::Ss | AddrModel::Bss),
        _ => false,
    })
}
