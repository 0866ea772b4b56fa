//! Operations with their immediates, as part of the text form.

use super::names::{self, find};
use super::op::{
    Access2d, AlignCheck, AtomicAccess, BarrierCheck, BarrierStep, BlockAccess, BufferCheck,
    ByteSigns, ImageAccess, ImageOp, Input, MemAccess, Op, RaceAccess, RaceCheck,
};
use super::parse::{Cursor, ParseErrorKind, Parsed};
use super::types::{Lane, Ty};

/// Reads `icmp.slt`, `shuffle[0, 1]`, `const 5` and the like; operands follow. `ty` is the type of
/// the first result.
pub(super) fn operation(c: &mut Cursor, ty: Option<Ty>) -> Parsed<Op> {
    let at = c.mark();
    let word = c.word();
    let parts: Vec<&str> = word.split('.').collect();
    let lane = ty.map_or(Lane::I64, |t| t.lane);
    let op = match parts.as_slice() {
        ["const"] => Some(Op::Const(c.literal(lane)?)),
        ["vconst"] => Some(Op::VecConst(vec_const(c, ty)?)),
        ["input", name] => input(c, name)?.map(Op::Input),
        ["input", name, dim] => local_id(c, name, dim)?.map(Op::Input),
        ["extractlane"] => Some(Op::ExtractLane(index(c)?)),
        ["insertlane"] => Some(Op::InsertLane(index(c)?)),
        ["shuffle"] => Some(Op::Shuffle(indices(c)?)),
        ["framestore"] => Some(Op::FrameStore(index(c)?)),
        ["frameload"] => Some(Op::FrameLoad(index(c)?)),
        [_] | ["namedbarrier", _] => plain(word),
        ["icmp", cond] => find(names::ICOND, cond).map(Op::ICmp),
        ["fcmp", cond] => find(names::FCOND, cond).map(Op::FCmp),
        ["fpenv", op] => find(names::FPENV, op).map(Op::FpEnv),
        _ => memory(c, &parts)?,
    };
    match op {
        Some(op) => Ok(op),
        None => c.error_at(at, ParseErrorKind::UnknownOperation(word.into())),
    }
}

fn plain(name: &str) -> Option<Op> {
    let fixed = match name {
        "fma" => Some(Op::Fma),
        "dot4.uu" => Some(Op::Dot4(ByteSigns { a: false, b: false })),
        "dot4.us" => Some(Op::Dot4(ByteSigns { a: false, b: true })),
        "dot4.su" => Some(Op::Dot4(ByteSigns { a: true, b: false })),
        "dot4.ss" => Some(Op::Dot4(ByteSigns { a: true, b: true })),
        "select" => Some(Op::Select),
        "bitcast" => Some(Op::Bitcast),
        "splat" => Some(Op::Splat),
        "maskany" => Some(Op::MaskAny),
        "maskall" => Some(Op::MaskAll),
        "masktobits" => Some(Op::MaskToBits),
        "bitstomask" => Some(Op::BitsToMask),
        "fence" => Some(Op::Fence),
        "decide" => Some(Op::Decide),
        "suspect" => Some(Op::Suspect),
        "barrier" => Some(Op::Barrier),
        "exchange" => Some(Op::Exchange),
        "namedbarrier.signal" => Some(Op::NamedBarrier(BarrierStep::Signal)),
        "namedbarrier.pass" => Some(Op::NamedBarrier(BarrierStep::Pass)),
        "poll" => Some(Op::Poll),
        _ => None,
    };
    fixed
        .or_else(|| find(names::UNARY, name).map(Op::Unary))
        .or_else(|| find(names::BINARY, name).map(Op::Binary))
        .or_else(|| find(names::CONVERT, name).map(Op::Convert))
}

fn index<T: TryFrom<u64>>(c: &mut Cursor) -> Parsed<T> {
    c.need("[")?;
    let n = c.number()?;
    c.need("]")?;
    Ok(n)
}

/// `[1, 2]`.
pub(super) fn indices<T: TryFrom<u64>>(c: &mut Cursor) -> Parsed<Box<[T]>> {
    c.need("[")?;
    let mut out = Vec::new();
    while !c.eat("]") {
        if !out.is_empty() {
            c.need(",")?;
        }
        out.push(c.number()?);
    }
    Ok(out.into())
}

/// `[1, 2]`, or `[5 ...]` for as many as the type has.
fn vec_const(c: &mut Cursor, ty: Option<Ty>) -> Parsed<Box<[u64]>> {
    let ty = ty.unwrap_or(Ty::I64);
    c.need("[")?;
    let mut out = Vec::new();
    while !c.eat("]") {
        if c.eat("...") {
            let last = out.last().copied().unwrap_or(0);
            out.resize(usize::from(ty.lanes), last);
            c.need("]")?;
            break;
        }
        if !out.is_empty() {
            c.need(",")?;
        }
        out.push(c.literal(ty.lane)?);
    }
    Ok(out.into())
}

fn input(c: &mut Cursor, name: &str) -> Parsed<Option<Input>> {
    Ok(Some(match name {
        "thread" => Input::Thread,
        "dispatchmask" => Input::DispatchMask,
        "payload" => Input::Payload(index(c)?),
        "r0" => Input::R0(index(c)?),
        "sr0" => Input::Sr0(index(c)?),
        "hwid" => Input::HwId,
        "tsc" => Input::Tsc,
        "state" => Input::State,
        "unset" => Input::Unset,
        _ => return Ok(None),
    }))
}

fn local_id(c: &mut Cursor, name: &str, dim: &str) -> Parsed<Option<Input>> {
    let Some(dim) = names::DIMS.iter().position(|&d| d == dim) else {
        return Ok(None);
    };
    let dim = dim as u8;
    Ok(match name {
        "localid" => Some(Input::LocalId {
            dim,
            lane: index(c)?,
        }),
        "localids" => Some(Input::LocalIds {
            dim,
            first: index(c)?,
        }),
        _ => None,
    })
}

/// `i16`, `2x16x8nt`, `64`.
fn rectangle(elem: &str, block: &str, register: &str) -> Option<Access2d> {
    let flag = |c: char| match c {
        't' => Some(true),
        'n' => Some(false),
        _ => None,
    };
    let mut chars = block.chars();
    let packed = flag(chars.next_back()?)?;
    let transpose = flag(chars.next_back()?)?;
    let mut sizes = chars.as_str().split('x').map(str::parse);
    let mut size = || sizes.next()?.ok();
    Some(Access2d {
        elem: find(names::LANE, elem)?,
        blocks: size()?,
        width: size()?,
        height: size()?,
        transpose,
        packed,
        register: register.parse().ok()?,
        site: 0,
    })
}

/// Elements of an access that is checked: their type, how many, and whether they are a block.
fn elements(shape: &str) -> Option<(Lane, u16, bool)> {
    let (each, block) = match shape.strip_suffix('b') {
        Some(each) => (each, true),
        None => (shape, false),
    };
    let (elem, n) = each.split_once('x')?;
    Some((find(names::LANE, elem)?, n.parse().ok()?, block))
}

fn memory(c: &mut Cursor, parts: &[&str]) -> Parsed<Option<Op>> {
    if let ["atomic", space, op, elem] = parts {
        let (Some(space), Some(op), Some(elem)) = (
            find(names::SPACE, space),
            find(names::ATOMIC, op),
            find(names::LANE, elem),
        ) else {
            return Ok(None);
        };
        let site = index(c)?;
        return Ok(Some(Op::Atomic(AtomicAccess {
            space,
            op,
            elem,
            site,
        })));
    }
    if let [name @ ("load2d" | "store2d"), elem, block, register] = parts {
        let Some(mut access) = rectangle(elem, block, register) else {
            return Ok(None);
        };
        access.site = index(c)?;
        return Ok(Some(match *name {
            "load2d" => Op::Load2d(access),
            _ => Op::Store2d(access),
        }));
    }
    if let ["check" | "init", ..] = parts {
        return check(c, parts);
    }
    if let ["image", .., last] = parts {
        let Some((name, channels)) = last.rsplit_once('x') else {
            return Ok(None);
        };
        let op = match parts.len() {
            2 => find(names::IMAGE, name),
            3 if parts.get(1) == Some(&"atomic") => find(names::ATOMIC, name).map(ImageOp::Atomic),
            3 if parts.get(1) == Some(&"atomic16") => {
                find(names::ATOMIC, name).map(ImageOp::AtomicShort)
            }
            _ => None,
        };
        let (Some(op), Ok(channels)) = (op, channels.parse()) else {
            return Ok(None);
        };
        let site = index(c)?;
        return Ok(Some(Op::Image(ImageAccess { op, channels, site })));
    }
    let [name, space, shape] = parts else {
        return Ok(None);
    };
    let (Some(space), Some((elem, count))) = (find(names::SPACE, space), shape.split_once('x'))
    else {
        return Ok(None);
    };
    let (Some(elem), Ok(n)) = (find(names::LANE, elem), count.parse::<u16>()) else {
        return Ok(None);
    };
    let site = match *name {
        "load" | "store" | "blockload" | "blockstore" => index(c)?,
        _ => return Ok(None),
    };
    let lanes = |comps| MemAccess {
        space,
        elem,
        comps,
        site,
    };
    let block = BlockAccess {
        space,
        elem,
        n,
        site,
    };
    Ok(match (*name, u8::try_from(n)) {
        ("load", Ok(comps)) => Some(Op::Load(lanes(comps))),
        ("store", Ok(comps)) => Some(Op::Store(lanes(comps))),
        ("blockload", _) => Some(Op::BlockLoad(block)),
        ("blockstore", _) => Some(Op::BlockStore(block)),
        _ => None,
    })
}

/// Where the pointer of a check of races stands, if it says so.
fn pointer_of(parts: &[&str]) -> Result<Option<u32>, ()> {
    match parts {
        [] => Ok(None),
        [pointer] => {
            let digits = pointer.strip_prefix('p').ok_or(())?;
            digits.parse().map(Some).map_err(|_| ())
        }
        _ => Err(()),
    }
}

/// Operations of checks.
fn check(c: &mut Cursor, parts: &[&str]) -> Parsed<Option<Op>> {
    if let ["check", "barrier" | "signal"] = parts {
        let waits = parts.last() == Some(&"barrier");
        let site = index(c)?;
        return Ok(Some(Op::CheckBarrier(BarrierCheck { waits, site })));
    }
    if let ["check", access, space, shape, pointer @ ..] = parts
        && let Ok(pointer) = pointer_of(pointer)
    {
        let (Some((elem, count, block)), Some(space), Some(access)) = (
            elements(shape),
            find(names::SPACE, space),
            find(names::RACE, access),
        ) else {
            return Ok(None);
        };
        let site = index(c)?;
        return Ok(Some(Op::CheckRace(RaceCheck {
            space,
            elem,
            count,
            access,
            block,
            site,
            pointer,
        })));
    }
    if let ["init", space, shape] = parts {
        let (Some((elem, count, block)), Some(space)) =
            (elements(shape), find(names::SPACE, space))
        else {
            return Ok(None);
        };
        let site = index(c)?;
        return Ok(Some(Op::Initialise(RaceCheck {
            space,
            elem,
            count,
            access: RaceAccess::Write,
            block,
            site,
            pointer: None,
        })));
    }
    if let ["check", "aligned", at] = parts {
        let Some(space) = find(names::SPACE, at) else {
            return Ok(None);
        };
        let site = index(c)?;
        return Ok(Some(Op::CheckAligned(AlignCheck { space, site })));
    }
    if let ["check", shape] = parts {
        let (shape, writes) = match shape.strip_suffix('w') {
            Some(shape) => (shape, true),
            None => (*shape, false),
        };
        let (shape, aligned) = match shape.strip_suffix('a') {
            Some(shape) => (shape, true),
            None => (shape, false),
        };
        let parsed = shape.split_once('x');
        let parsed = parsed.and_then(|(elem, n)| Some((find(names::LANE, elem)?, n.parse().ok()?)));
        let Some((elem, count)) = parsed else {
            return Ok(None);
        };
        let site = index(c)?;
        return Ok(Some(Op::CheckBuffer(BufferCheck {
            elem,
            count,
            aligned,
            writes,
            site,
        })));
    }
    Ok(None)
}
