//! Control flow, synchronisation and what computes nothing.

use super::codec::{Codec, each, length};
use super::error::{Problem, Walk};
use super::operands::{BLANK, BLANK_DST, dst, src};
use crate::isa::{Form, OpcodeInfo};
use crate::module::*;

/// A blank of the row, of forms of this file.
pub(super) fn blank(row: &OpcodeInfo) -> Option<Body> {
    Some(match row.form {
        Form::Label => Body::Label(LabelId(0)),
        Form::Branch => Body::Branch(LabelId(0)),
        Form::Ret => Body::Ret,
        Form::SwitchJmp => Body::SwitchJmp {
            index: BLANK,
            targets: Vec::new(),
        },
        Form::Fcall => Body::Fcall {
            name: String::new(),
            args: 0,
            rets: 0,
        },
        Form::Ifcall => Body::Ifcall {
            addr: BLANK,
            args: 0,
            rets: 0,
        },
        Form::Faddr => Body::Faddr {
            name: String::new(),
            dst: BLANK_DST,
        },
        Form::Fence => Body::Fence(0),
        Form::Nullary => Body::Nullary,
        Form::Wait => Body::Wait(BLANK),
        Form::Sbarrier => Body::Sbarrier(false),
        Form::Nbarrier => Body::Nbarrier {
            id: BLANK,
            step: NamedBarrier::Wait,
        },
        Form::File => Body::File(String::new()),
        Form::Loc => Body::Loc(0),
        Form::Lifetime => Body::Lifetime {
            start: true,
            var: LifetimeVar::General(VarId::NULL),
        },
        _ => return None,
    })
}

/// What follows execution size and predicate.
pub(super) fn walk<C: Codec>(io: &mut C, body: &mut Body) -> Walk {
    match body {
        Body::Label(id) | Body::Branch(id) => io.label(id),
        Body::Ret | Body::Nullary => Ok(()),
        Body::SwitchJmp { index, targets } => switch(io, index, targets),
        Body::Fcall { name, args, rets } => {
            io.string(name, true)?;
            io.u8(args)?;
            io.u8(rets)
        }
        Body::Ifcall { addr, args, rets } => {
            src(io, addr)?;
            io.u8(args)?;
            io.u8(rets)
        }
        Body::Faddr { name, dst: to } => {
            io.string(name, true)?;
            dst(io, to, &mut false)
        }
        Body::Fence(mask) => io.u8(mask),
        Body::Wait(mask) => src(io, mask),
        Body::Sbarrier(signal) => io.flag("an action of a barrier", signal),
        Body::Nbarrier { id, step } => named_barrier(io, id, step),
        Body::File(name) => io.string(name, false),
        Body::Loc(line) => io.u32(line),
        Body::Lifetime { start, var } => lifetime(io, start, var),
        _ => Err(Problem::unwritable("an instruction of another form")),
    }
}

fn switch<C: Codec>(io: &mut C, index: &mut Src, targets: &mut Vec<LabelId>) -> Walk {
    /// As many as the vendor's tools take.
    const TARGETS: u8 = 32;
    let mut count = length("targets", targets.len())?;
    io.small("the number of targets", &mut count)?;
    if count == 0 || count > u32::from(TARGETS) {
        let message = format!("{count} targets; there are 1 to {TARGETS}");
        return Err(match io.reading() {
            true => Problem::malformed(message),
            false => Problem::unwritable(message),
        });
    }
    src(io, index)?;
    let blank = || LabelId(0);
    each(io, targets, count as usize, blank, |io, _, target| {
        io.label(target)
    })
}

/// Waiting has a second operand that says nothing.
fn named_barrier<C: Codec>(io: &mut C, id: &mut Src, step: &mut NamedBarrier) -> Walk {
    let mut signal = !matches!(step, NamedBarrier::Wait);
    io.flag("an action of a barrier", &mut signal)?;
    src(io, id)?;
    match step {
        NamedBarrier::SignalAs { .. } => Err(Problem::unwritable(
            "a barrier that distinguishes producers and consumers",
        )),
        NamedBarrier::Signal { threads } => src(io, threads),
        NamedBarrier::Wait => {
            let mut second = id.clone();
            src(io, &mut second)?;
            if io.reading() && signal {
                *step = NamedBarrier::Signal { threads: second };
            }
            Ok(())
        }
    }
}

/// Classes as operands have them.
const GENERAL: u8 = 0;
const ADDRESS: u8 = 1;
const PREDICATE: u8 = 2;

fn lifetime<C: Codec>(io: &mut C, start: &mut bool, var: &mut LifetimeVar) -> Walk {
    let (class, mut number) = match var {
        LifetimeVar::General(v) => (GENERAL, v.0),
        LifetimeVar::Address(v) => (ADDRESS, v.0),
        LifetimeVar::Pred(v) => (PREDICATE, v.0),
    };
    let mut byte = class << 4 | u8::from(!*start);
    io.u8(&mut byte)?;
    *start = byte & 1 == 0;
    if byte >> 4 == GENERAL {
        let mut id = VarId(number);
        io.general(&mut id)?;
        *var = LifetimeVar::General(id);
        return Ok(());
    }
    io.u32(&mut number)?;
    *var = match byte >> 4 {
        ADDRESS => {
            let known = io.vars().address.get(number as usize);
            let name = known.map(|v| v.name.len());
            io.known("address variable", number, name)?;
            LifetimeVar::Address(AddrId(number))
        }
        PREDICATE => {
            io.known_predicate(PredId(number))?;
            LifetimeVar::Pred(PredId(number))
        }
        class => {
            return Err(Problem::malformed(format!(
                "a lifetime of a variable of class {class}, which has none"
            )));
        }
    };
    Ok(())
}
