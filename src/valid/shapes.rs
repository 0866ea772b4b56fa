//! Rules of single instructions that are about numbers, not about classes or types: precisions and sizes of
//! matrices, elements of messages, elements of address and state variables.

use super::{Target, ValidError};
use crate::isa::dpas::precision_name;
use crate::isa::lsc::{AddrModel, AddrSize, LscOp, Sfid};
use crate::isa::sampler::read_params;
use crate::isa::{AtomicOp, Family, Opcode, Platform, Type};
use crate::module::*;

/// Rules that an instruction breaks.
pub(super) fn check(module: &Module, target: Target, inst: &Inst, errors: &mut Vec<ValidError>) {
    let broken = match &inst.body {
        Body::Alu(a) => alu(module, inst, a),
        Body::SwitchJmp { targets, .. } if targets.is_empty() => Some("no targets".into()),
        Body::Dpas(d) => dpas(module, target, inst, d),
        Body::Lsc(l) => lsc(inst, l),
        Body::LscTyped(t) => typed(t),
        Body::Mem(m) => mem(module, &m.kind),
        Body::Svm(s) => svm(s),
        Body::Sample(s) => sampler(target, inst, s),
        _ => None,
    };
    if let Some(rule) = broken {
        errors.push(ValidError {
            pos: inst.pos,
            message: format!("`{}`: {rule}", inst.mnemonic()),
        });
    }
}

fn alu(module: &Module, inst: &Inst, a: &Alu) -> Option<String> {
    let n = inst.exec.lanes();
    let address = |id: &AddrId, index: u8| {
        let elements = module.vars.address.get(id.0 as usize)?.elements;
        (u32::from(index) + n > elements)
            .then(|| "an address operand is shorter than the execution size".to_owned())
    };
    let state = |elements: Option<u32>, index: u8| {
        (u32::from(index) + n > elements?)
            .then(|| "more elements than the state variable has".to_owned())
    };
    let surface = |id: &SurfaceId, index: u8| {
        let user = id.0.checked_sub(SurfaceId::FIRST_USER)?;
        state(
            module.vars.surface.get(user as usize).map(|s| s.elements),
            index,
        )
    };
    let sampler = |id: &SamplerId, index: u8| {
        state(
            module.vars.sampler.get(id.0 as usize).map(|s| s.elements),
            index,
        )
    };
    // Bits of the flag register, from the instruction's first lane on.
    let end = inst.exec.mask.first_lane() + n;
    let bits = |p: &PredId| {
        let bits = module.vars.pred_bits(*p)?;
        let narrow = inst.op.info().family == Family::Logic && bits != 1 && bits < end;
        narrow.then(|| "a predicate operand is narrower than the execution size".to_owned())
    };
    let dst = match &a.dst {
        Dst::Address { addr, index, .. } => address(addr, *index),
        Dst::Surface(SurfaceId::BSS, index) => state(Some(1), *index),
        Dst::Surface(s, _) if s.0 < SurfaceId::FIRST_USER => {
            Some("a predefined surface other than `%bss` is not written".into())
        }
        Dst::Surface(s, index) => surface(s, *index),
        Dst::Sampler(s, index) => sampler(s, *index),
        _ => None,
    };
    dst.or_else(|| {
        a.srcs.iter().find_map(|s| match s {
            Src::Address { addr, index, .. } => address(addr, *index),
            Src::Surface(s, index) => surface(s, *index),
            Src::Sampler(s, index) => sampler(s, *index),
            Src::Pred(p) => bits(p),
            _ => None,
        })
    })
}

fn dpas(module: &Module, target: Target, inst: &Inst, d: &Dpas) -> Option<String> {
    let wanted = target.grf() / 4;
    if inst.exec.lanes() != wanted {
        return Some(format!(
            "the execution size is {wanted} on {}",
            target.platform
        ));
    }
    let name = |code| precision_name(code).unwrap_or("");
    let (b, a) = (name(d.precision1), name(d.precision2));
    let is_int = |p: &str| {
        p.strip_prefix(['u', 's'])
            .is_some_and(|n| n.parse::<u8>().is_ok())
    };
    if a != b && !(is_int(a) && is_int(b)) {
        return Some("the precisions of the two matrices differ, and are not both integers".into());
    }
    let fits = |ty: Type| match a {
        "bf" => matches!(ty, Type::F | Type::Bf),
        "hf" => matches!(ty, Type::F | Type::Hf),
        "tf32" => ty == Type::F,
        _ if is_int(a) => matches!(ty, Type::D | Type::Ud),
        // Formats of other devices, refused by name where they would be computed with.
        _ => true,
    };
    let types = [d.dst, d.src0].into_iter().filter(|r| !r.is_null());
    let wrong = types
        .filter_map(|r| module.vars.ty(r.var))
        .find(|t| !fits(*t));
    wrong.map(|t| format!("a `{t}` matrix does not go with precision `{a}`"))
}

/// An atomic's data operands are there.
fn operands(op: AtomicOp, first: Raw, second: Raw) -> Option<String> {
    let n = op.sources();
    let missing = (n >= 1 && first.is_null()) || (n == 2 && second.is_null());
    missing.then(|| format!("takes {n} data operands beside the address"))
}

fn lsc(inst: &Inst, l: &Lsc) -> Option<String> {
    if l.transposed && inst.exec.lanes() != 1 {
        return Some("a transposed message has execution size 1".into());
    }
    if l.model == AddrModel::Arg && l.sfid != Sfid::Slm && l.addr_size != AddrSize::A32 {
        return Some("addresses by `arg` are dwords, `a32`".into());
    }
    match l.op {
        LscOp::Atomic(op) => operands(op, l.src1, l.src2),
        _ => None,
    }
}

fn sampler(target: Target, inst: &Inst, s: &Sample) -> Option<String> {
    if inst.op != Opcode::Info3d && inst.exec.lanes() < 8 {
        return Some("the execution size is 8, 16 or 32".into());
    }
    if inst.op != Opcode::Gather43d {
        return None;
    }
    // Only fetches have words.
    let params = read_params(inst.op, s.variant, false)?;
    if params.reference.is_some() && s.channels != Channels(1) {
        return Some("what is compared is the red channel, `.R`".into());
    }
    if params.offsets.is_some() && !matches!(target.platform, Platform::Skl | Platform::Tgllp) {
        return Some(format!(
            "platform {} has no texel offsets of each lane",
            target.platform
        ));
    }
    let none = match &s.aoffimmi {
        None => true,
        Some(Src::Imm { bits, .. }) => bits & 0xFFF == 0,
        Some(_) => false,
    };
    (params.offsets.is_some() && !none)
        .then(|| "lanes have texel offsets of their own; the immediate is 0".into())
}

fn typed(t: &LscTyped) -> Option<String> {
    if t.addr_size != AddrSize::A32 {
        return Some("coordinates are dwords, `a32`".into());
    }
    if !matches!(t.model, AddrModel::Bti | AddrModel::Bss | AddrModel::Ss) {
        return Some("texels are those of a surface: `bti`, `bss` or `ss`".into());
    }
    match t.op {
        LscOp::Atomic(op) => operands(op, t.src1, t.src2),
        _ => None,
    }
}

fn one_of(what: &str, value: u8, allowed: &[u8]) -> Option<String> {
    let list: Vec<String> = allowed.iter().map(u8::to_string).collect();
    (!allowed.contains(&value)).then(|| format!("{what} are {}, not {value}", list.join(", ")))
}

fn channels(c: Channels) -> Option<String> {
    (c.count() == 0).then(|| "no channel is enabled".into())
}

/// Data of an atomic on dwords, as the vendor's assembler has it.
fn atomic_types(module: &Module, op: AtomicOp, width: AtomicWidth, data: &[Raw]) -> Option<String> {
    let allowed: &[Type] = match op {
        _ if width == AtomicWidth::W16 => &[Type::Ud],
        AtomicOp::Add | AtomicOp::Sub => &[Type::Ud, Type::D],
        AtomicOp::Smin | AtomicOp::Smax => &[Type::D],
        _ if op.is_float() => &[Type::F],
        _ => &[Type::Ud],
    };
    let mut types = data.iter().filter(|r| !r.is_null());
    let wrong = types.find_map(|r| module.vars.ty(r.var).filter(|t| !allowed.contains(t)))?;
    let names: Vec<String> = allowed.iter().map(Type::to_string).collect();
    Some(format!(
        "data of type `{wrong}`; allowed for this operation: {}",
        names.join(", ")
    ))
}

fn mem(module: &Module, kind: &MemKind) -> Option<String> {
    match kind {
        MemKind::Gather { bytes, .. } | MemKind::GatherScaled { bytes, .. } => {
            one_of("bytes of an element", *bytes, &[1, 2, 4])
        }
        MemKind::Gather4Scaled { channels: c, .. } | MemKind::Typed { channels: c, .. } => {
            channels(*c)
        }
        MemKind::Oword { owords, .. } => one_of("owords", *owords, &[1, 2, 4, 8, 16]),
        MemKind::DwordAtomic {
            op,
            width,
            src0,
            src1,
            dst,
            ..
        } => operands(*op, *src0, *src1)
            .or_else(|| atomic_types(module, *op, *width, &[*src0, *src1, *dst])),
        MemKind::TypedAtomic { op, src0, src1, .. } => operands(*op, *src0, *src1),
        MemKind::Qword { .. } | MemKind::Media { .. } => None,
    }
}

fn svm(s: &Svm) -> Option<String> {
    match s {
        Svm::Block { owords, .. } => one_of("owords", *owords, &[1, 2, 4, 8, 16]),
        Svm::Gather { bytes, blocks, .. } => one_of("bytes of a block", *bytes, &[1, 4, 8])
            .or_else(|| one_of("blocks", *blocks, &[1, 2, 4, 8])),
        Svm::Gather4Scaled { channels: c, .. } => channels(*c),
        Svm::Atomic { op, src0, src1, .. } => operands(*op, *src0, *src1),
    }
}
