//! Instructions: their number, execution size and predicate, and what follows by form.

use super::codec::Codec;
use super::error::{Problem, Walk};
use super::operands::guard_word;
use super::{LAST_OPCODE, alu, flow, lsc, messages, sampler};
use crate::isa::lsc::{LscOp, Scope, Sfid};
use crate::isa::{Exec, Form, Opcode, PredKind, Status};
use crate::module::*;

/// An instruction to read into.
pub(super) fn blank() -> Inst {
    Inst {
        op: Opcode::Label,
        pred: None,
        exec: Exec::SCALAR,
        body: Body::Nullary,
        written: None,
        pos: Pos::default(),
    }
}

/// An instruction.
pub(super) fn walk<C: Codec>(io: &mut C, inst: &mut Inst) -> Walk {
    opcode(io, inst)?;
    let row = inst.op.info();
    if matches!(row.form, Form::Sample3d | Form::Load3d | Form::Info3d) {
        return sampler::walk(io, inst);
    }
    messages::leading(io, &mut inst.body)?;
    if has_exec(row.form) {
        io.exec(&mut inst.exec)?;
    }
    let guarded = !matches!(row.predicate, PredKind::None | PredKind::Ignored);
    if guarded || row.form == Form::LscFence {
        guard_word(io, &mut inst.pred)?;
    } else if inst.pred.is_some() {
        return Err(Problem::unwritable("a predicate where there is none"));
    }
    let op = inst.op;
    match &mut inst.body {
        Body::Alu(a) => alu::walk(io, &mut inst.op, a),
        Body::Mem(m) => messages::mem(io, op, &mut inst.exec, m),
        Body::Svm(s) => messages::svm(io, s),
        Body::RawSend(s) => messages::raw_send(io, s),
        Body::Dpas(d) => messages::dpas(io, d),
        Body::Lsc(l) => lsc::untyped(io, l),
        Body::LscTyped(t) => lsc::typed(io, t),
        Body::LscBlock2d(b) => lsc::block2d(io, b),
        Body::LscFence {
            sfid,
            op: kind,
            scope,
        } => {
            inst.exec = Exec::SCALAR;
            inst.pred = None;
            lsc::fence(io, sfid, kind, scope)
        }
        body => flow::walk(io, body),
    }
}

/// Whether an execution size follows the number. Those of `gather` and `scatter` come later.
fn has_exec(form: Form) -> bool {
    !matches!(
        form,
        Form::Label
            | Form::Faddr
            | Form::Oword
            | Form::Media
            | Form::Gather
            | Form::SvmBlock
            | Form::Fence
            | Form::Nullary
            | Form::Wait
            | Form::Sbarrier
            | Form::Nbarrier
            | Form::File
            | Form::Loc
            | Form::Lifetime
    )
}

/// Number of the row and, where messages share one, of the operation.
fn opcode<C: Codec>(io: &mut C, inst: &mut Inst) -> Walk {
    let row = inst.op.info();
    if !io.reading() && (row.number > LAST_OPCODE || inst.written.is_some()) {
        return Err(Problem::unwritable("an instruction of later versions"));
    }
    let mut number = row.number;
    io.u8(&mut number)?;
    if !io.reading() {
        let mut sub = match lsc::operation(&inst.body) {
            Some(op) => op.spelling().map(|(_, code)| code),
            None => is_svm(inst.op).then_some(row.sub),
        };
        return match &mut sub {
            Some(sub) => io.u8(sub),
            None => Ok(()),
        };
    }
    let unknown = || {
        Problem::malformed(format!(
            "an instruction with the opcode {number:#04x}, which does not exist"
        ))
    };
    let first = Opcode::ALL.iter().find(|o| o.info().number == number);
    let first = first.filter(|_| number <= LAST_OPCODE);
    inst.op = *first.ok_or_else(unknown)?;
    if is_svm(inst.op) {
        let mut sub = 0;
        io.u8(&mut sub)?;
        inst.op = Opcode::from_number(number, sub).ok_or_else(unknown)?;
    }
    inst.body = body(io, inst.op)?;
    Ok(())
}

/// Messages on 64-bit addresses are told apart by a byte after their number.
fn is_svm(op: Opcode) -> bool {
    matches!(
        op.info().form,
        Form::SvmBlock | Form::SvmGather | Form::SvmGather4Scaled | Form::SvmAtomic
    )
}

/// A blank of the opcode, after its operation where the operation decides.
fn body<C: Codec>(io: &mut C, op: Opcode) -> Walk<Body> {
    let row = op.info();
    if row.status == Status::Rejected {
        return Err(Problem::unsupported(format!(
            "`{}` (opcode {:#04x}) is not supported: {}",
            op.mnemonic(),
            row.number,
            row.semantics
        )));
    }
    match row.form {
        Form::Alu | Form::AluPair | Form::Cmp | Form::Bfn => Ok(alu::blank(row)),
        Form::Lsc => {
            let mut code = 0;
            io.u8(&mut code)?;
            lsc_body(op, code)
        }
        Form::LscFence => Ok(Body::LscFence {
            sfid: Sfid::Ugm,
            op: 0,
            scope: Scope::Group,
        }),
        _ => {
            let blank = flow::blank(row).or_else(|| messages::blank(row));
            let blank = blank.or_else(|| sampler::blank(row));
            blank.ok_or_else(|| {
                Problem::unsupported(format!("`{}` is not supported", op.mnemonic()))
            })
        }
    }
}

fn lsc_body(opcode: Opcode, code: u8) -> Walk<Body> {
    let typed = |op| matches!(op, LscOp::LoadQuad | LscOp::StoreQuad | LscOp::Atomic(_));
    match LscOp::from_code(code) {
        Some(op) if opcode == Opcode::Lsc || typed(op) => Ok(lsc::blank(opcode, op)),
        _ => Err(Problem::unsupported(format!(
            "operation {code:#04x} of {} messages is not supported",
            match opcode {
                Opcode::LscTyped => "typed LSC",
                _ => "untyped LSC",
            }
        ))),
    }
}
