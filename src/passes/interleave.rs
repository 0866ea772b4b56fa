//! The order of operations between two effects, for code generators that keep it.
//!
//! The kernel's compiler writes independent chains one after the other, such as three exponentials of which two wait for a logarithm. A
//! processor that waits for the logarithm has no room for all that comes before the third. Here operations are put in order as
//! [`schedule`](crate::schedule) says.
//!
//! Guarantees: the same operations, each in its block, behind its operands and between the same effects.
//!
//! Not done: operations do not pass effects or branches.

use rustc_hash::FxHashMap;

use crate::schedule::{Class, Effect, Graph, Node, Vectors};
use crate::ssa::{BinOp, Function, Inst, Lane, Op, ValueDef, dom};

/// Runs with fewer operations on vectors are left alone: a processor holds all of them at once.
const LEAST: usize = 42;

/// Runs where fewer than one in `SHARE` of these is float arithmetic are left alone: most others take a cycle.
const SHARE: usize = 3;

/// Runs the pass.
pub(super) fn run(f: &mut Function, vectors: Vectors) -> usize {
    let uses = dom::use_counts(f);
    let mut changes = 0;
    let mut ordered = Vec::new();
    for b in f.order.clone() {
        let insts = std::mem::take(&mut f.block_mut(b).insts);
        let mut out = Vec::with_capacity(insts.len());
        let no_effect = |i: Inst| !f.inst(i).op.has_effect();
        for run in insts.chunk_by(|&a, &b| no_effect(a) && no_effect(b)) {
            if run.len() > 1 && (vectors.all || pays(f, run)) {
                out.extend(in_order(f, vectors, &uses, run));
                ordered.extend_from_slice(run);
            } else {
                out.extend(run);
            }
        }
        changes += usize::from(out != insts);
        f.block_mut(b).insts = out;
    }
    f.in_order.extend(ordered);
    changes
}

/// Whether there are many operations on vectors, and enough float arithmetic among them.
fn pays(f: &Function, run: &[Inst]) -> bool {
    let vectors = run.iter().filter(|&&i| class(f, i) == Class::Vector);
    let (mut all, mut slow) = (0, 0);
    for &i in vectors {
        all += 1;
        slow += usize::from(f.inst(i).op.float_latency() > 0);
    }
    all >= LEAST && slow * SHARE >= all
}

const fn is_constant(op: &Op) -> bool {
    matches!(op, Op::Const(_) | Op::VecConst(_))
}

fn class(f: &Function, inst: Inst) -> Class {
    let data = f.inst(inst);
    match *data.results.as_slice() {
        [v] if is_constant(&data.op) || f.ty(v).lane == Lane::I1 => Class::None,
        [v] if f.ty(v).is_scalar() => Class::Scalar,
        [_] => Class::Vector,
        _ => Class::None,
    }
}

/// Half cycles from an operation to the first that can use its result, as on today's processors.
const fn latency(op: &Op) -> u32 {
    match op {
        op if op.float_latency() > 0 => op.float_latency(),
        Op::Binary(BinOp::Mul | BinOp::MulHiS | BinOp::MulHiU) => 10,
        Op::FCmp(_) | Op::ICmp(_) => 8,
        Op::Convert(_) | Op::Splat | Op::ExtractLane(_) | Op::Shuffle(_) => 6,
        Op::Bitcast => 0,
        _ => 2,
    }
}

/// Registers of an operation's result, at least one.
fn size(f: &Function, inst: Inst, vectors: Vectors) -> u32 {
    let Some(&v) = f.inst(inst).results.first() else {
        return 1;
    };
    let ty = f.ty(v);
    let bits = u32::from(ty.lanes) * ty.lane.bits();
    bits.div_ceil(vectors.bits.max(1)).max(1)
}

fn in_order(f: &Function, vectors: Vectors, uses: &[u32], run: &[Inst]) -> Vec<Inst> {
    let number: FxHashMap<Inst, u32> = run.iter().copied().zip(0..).collect();
    let mut used_inside = vec![0u32; run.len()];
    let mut graph = Graph::default();
    for &inst in run {
        let data = f.inst(inst);
        let operands = data.args.iter().filter_map(|&a| match f.def(f.resolve(a)) {
            ValueDef::Result(def, _) => number.get(&def).copied(),
            _ => None,
        });
        let operands: Vec<u32> = operands.collect();
        for &n in &operands {
            used_inside[n as usize] += 1;
        }
        graph.push(Node {
            operands,
            effect: Effect::None,
            constant: is_constant(&data.op),
            class: class(f, inst),
            latency: latency(&data.op),
            size: size(f, inst, vectors),
        });
    }
    let is_used_outside = |n: u32| {
        let results = f.inst(run[n as usize]).results.iter();
        let all: u32 = results.map(|v| uses[v.0 as usize]).sum();
        all > used_inside[n as usize]
    };
    let ends = (0..run.len() as u32).filter(|&n| is_used_outside(n));
    let order = graph.order(ends.collect(), vectors.registers);
    order.into_iter().map(|n| run[n as usize]).collect()
}
