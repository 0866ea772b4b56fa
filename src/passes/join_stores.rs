//! Scalar stores, one for each lane, become one store of all lanes.
//!
//! The kernel's compiler writes an array in registers lane by lane, at an index that differs from lane to lane. The pass
//! `one-lane-stores` makes these scalar stores.
//!
//! Guarantees: the same lanes are written under the same conditions; where two are the same place, the later one stays, as lanes are
//! stored in order. Nothing else happens in memory between the first and the last of them.
//!
//! Not done: other memory than registers, where accesses out of bounds are reported one by one.

use rustc_hash::FxHashMap;

use super::edit::{const_lanes, lanes_op};
use crate::ssa::{BinOp, Block, Conv, Function, Inst, Lane, MemAccess, Op, Space, Ty, Value};

/// Fewest lanes that become one store.
const FEWEST: usize = 8;

/// Makes an instruction and gives its result.
trait MakeInst: FnMut(&mut Function, Op, Vec<Value>, Ty) -> Value {}
impl<E: FnMut(&mut Function, Op, Vec<Value>, Ty) -> Value> MakeInst for E {}

/// A lane of a vector.
type Source = (Value, u16);

/// A number that differs from lane to lane: an element of a vector plus a constant, maybe extended, plus another.
#[derive(Clone, Copy)]
struct Number {
    from: Source,
    /// What is added to the element before it is extended, where sums wrap earlier.
    narrow_plus: u64,
    extended: bool,
    plus: u64,
}

/// What is stored.
#[derive(Clone, Copy)]
enum Data {
    /// An element of a vector.
    Lane(Source),
    /// The same for all lanes.
    Scalar(Value),
}

/// A scalar store that may be a lane of one of vectors.
#[derive(Clone, Copy)]
struct LaneStore {
    access: MemAccess,
    mask: Source,
    addr: Number,
    data: Data,
}

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let mut changes = 0;
    for b in f.order.clone() {
        let groups = groups(f, b);
        changes += groups.len();
        if !groups.is_empty() {
            replace(f, b, groups);
        }
    }
    changes
}

/// Stores of a block that become one, by the last of them.
fn groups(f: &Function, b: Block) -> FxHashMap<Inst, Vec<(Inst, LaneStore)>> {
    let most = usize::from(f.simd);
    let mut found = FxHashMap::default();
    let mut run: Vec<(Inst, LaneStore)> = Vec::new();
    for &i in &f.block(b).insts {
        if !f.inst(i).op.has_effect() {
            continue;
        }
        let store = lane_store(f, i);
        let goes_on = store.is_some_and(|s| run.first().is_none_or(|(_, first)| alike(first, &s)));
        if !goes_on || run.len() == most {
            close(&mut run, &mut found);
        }
        run.extend(store.map(|s| (i, s)));
    }
    close(&mut run, &mut found);
    found
}

/// Ends a run of stores. Those that are too many for a power of two stay as they are.
fn close(run: &mut Vec<(Inst, LaneStore)>, found: &mut FxHashMap<Inst, Vec<(Inst, LaneStore)>>) {
    let mut group = std::mem::take(run);
    if group.len() < FEWEST {
        return;
    }
    group.truncate(1 << group.len().ilog2());
    let masks = group.iter().map(|(_, s)| s.mask);
    let addresses = group.iter().map(|(_, s)| s.addr.from);
    let data = group.iter().filter_map(|(_, s)| match s.data {
        Data::Lane(from) => Some(from),
        Data::Scalar(_) => None,
    });
    let few =
        sources(masks).len() <= 2 && sources(addresses).len() <= 2 && sources(data).len() <= 2;
    if let (true, Some(&(last, _))) = (few, group.last()) {
        found.insert(last, group);
    }
}

/// The vectors that lanes come from.
fn sources(lanes: impl Iterator<Item = Source>) -> Vec<Value> {
    let mut all = Vec::new();
    for (v, _) in lanes {
        if !all.contains(&v) {
            all.push(v);
        }
    }
    all
}

/// True for stores that can be lanes of one.
fn alike(a: &LaneStore, b: &LaneStore) -> bool {
    let data = match (a.data, b.data) {
        (Data::Lane(_), Data::Lane(_)) => true,
        (Data::Scalar(v), Data::Scalar(w)) => v == w,
        _ => false,
    };
    data && (a.access, a.addr.extended) == (b.access, b.addr.extended)
}

fn lane_store(f: &Function, i: Inst) -> Option<LaneStore> {
    let data = f.inst(i);
    let Op::BlockStore(access) = data.op else {
        return None;
    };
    if access.space != Space::Regs || access.n != 1 {
        return None;
    }
    let stored = data.args[2];
    Some(LaneStore {
        access: MemAccess {
            space: access.space,
            elem: access.elem,
            comps: 1,
            site: access.site,
        },
        mask: element(f, data.args[0])?,
        addr: number(f, data.args[1])?,
        data: element(f, stored).map_or(Data::Scalar(stored), Data::Lane),
    })
}

fn element(f: &Function, v: Value) -> Option<Source> {
    let data = f.def_inst(v)?;
    match data.op {
        Op::ExtractLane(lane) => Some((data.args[0], lane)),
        _ => None,
    }
}

/// An address of 32 bits.
fn number(f: &Function, mut v: Value) -> Option<Number> {
    let (mut narrow_plus, mut extended) = (0, false);
    let plus = added(f, &mut v);
    if let Some(wide) = f.def_inst(v)
        && wide.op == Op::Convert(Conv::ZExt)
    {
        (v, extended) = (wide.args[0], true);
        narrow_plus = added(f, &mut v);
    }
    let from = element(f, v)?;
    Some(Number {
        from,
        narrow_plus,
        extended,
        plus,
    })
}

/// Takes the constant off a sum.
fn added(f: &Function, v: &mut Value) -> u64 {
    match f.def_inst(*v) {
        Some(sum) if sum.op == Op::Binary(BinOp::Add) => {
            let Some(&[by]) = const_lanes(f, sum.args[1]) else {
                return 0;
            };
            *v = sum.args[0];
            by
        }
        _ => 0,
    }
}

/// Puts a store of all lanes where the last of each group stands, and removes them.
fn replace(f: &mut Function, b: Block, groups: FxHashMap<Inst, Vec<(Inst, LaneStore)>>) {
    let gone: Vec<Inst> = groups.values().flatten().map(|&(i, _)| i).collect();
    let insts = std::mem::take(&mut f.block_mut(b).insts);
    let mut out = Vec::with_capacity(insts.len());
    for i in insts {
        if let Some(group) = groups.get(&i) {
            store_all(f, i, group, &mut out);
        }
        if !gone.contains(&i) {
            out.push(i);
        }
    }
    f.block_mut(b).insts = out;
}

fn store_all(f: &mut Function, last: Inst, group: &[(Inst, LaneStore)], out: &mut Vec<Inst>) {
    let line = f.inst(last).line;
    let lanes = group.len() as u16; // at most those of a thread
    let first = group[0].1;
    let masks: Vec<Source> = group.iter().map(|(_, s)| s.mask).collect();
    let from: Vec<Source> = group.iter().map(|(_, s)| s.addr.from).collect();
    let mut emit = |f: &mut Function, op: Op, args: Vec<Value>, ty: Ty| {
        let new = f.make(op, args, &[ty], line);
        out.push(new);
        f.inst(new).results[0]
    };
    let mask = joined(f, &masks, &mut emit);
    let mut addr = joined(f, &from, &mut emit);
    let wide = Ty::vector(Lane::I32, lanes);
    if first.addr.extended {
        let distances = group.iter().map(|(_, s)| s.addr.narrow_plus).collect();
        addr = plus(f, addr, distances, &mut emit);
        addr = emit(f, Op::Convert(Conv::ZExt), vec![addr], wide);
    }
    let distances = group.iter().map(|(_, s)| s.addr.plus).collect();
    let addr = plus(f, addr, distances, &mut emit);
    let data = match first.data {
        Data::Scalar(v) => {
            let ty = f.ty(v).with_lanes(lanes);
            emit(f, Op::Splat, vec![v], ty)
        }
        Data::Lane(_) => {
            let data = group.iter().filter_map(|(_, s)| match s.data {
                Data::Lane(from) => Some(from),
                Data::Scalar(_) => None,
            });
            let data: Vec<Source> = data.collect();
            joined(f, &data, &mut emit)
        }
    };
    out.push(f.make(Op::Store(first.access), vec![mask, addr, data], &[], line));
}

/// A vector and a constant for each lane.
fn plus(f: &mut Function, v: Value, distances: Vec<u64>, emit: &mut impl MakeInst) -> Value {
    if distances.iter().all(|&by| by == 0) {
        return v;
    }
    let ty = f.ty(v);
    let distances = emit(f, lanes_op(distances), Vec::new(), ty);
    emit(f, Op::Binary(BinOp::Add), vec![v, distances], ty)
}

/// A vector of lanes of at most two others.
fn joined(f: &mut Function, lanes: &[Source], emit: &mut impl MakeInst) -> Value {
    let from = sources(lanes.iter().copied());
    let first = f.ty(from[0]).lanes;
    let index = |&(v, lane): &Source| if v == from[0] { lane } else { first + lane };
    let indices: Vec<u16> = lanes.iter().map(index).collect();
    let ty = f.ty(from[0]).with_lanes(lanes.len() as u16);
    let same = from.len() == 1 && ty == f.ty(from[0]);
    if same && indices.iter().zip(0..).all(|(&k, n)| k == n) {
        return from[0];
    }
    emit(f, Op::Shuffle(indices.into()), from, ty)
}
