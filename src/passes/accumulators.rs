//! Sums that a loop carries side by side, and that are added up after it, become one.
//!
//! A kernel that sums vectors of its own, such as an `int16`, has a sum for each of their elements, and adds these up in the end. One sum of
//! all terms keeps fewer registers, and what is added in one iteration is a sum in which `dot-products` finds products of bytes.
//!
//! Guarantees: sums wrap in the width of a lane, so the order of terms does not matter. Nothing is added that was not, and as often.
//!
//! Not done: floating point, where the order matters; sums that grow under a mask, in several blocks, or on several ways back.

use rustc_hash::FxHashMap;

use super::edit::const_op;
use crate::ssa::{BinOp, Block, Function, Inst, Lane, Op, Ty, Value};

/// Where a value is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// By an instruction of a block.
    Inst(Block, Inst),
    /// As an argument of a target of a block's terminator.
    Arg(Edge, usize),
    /// As the condition of a terminator.
    Condition,
}

/// A block, and which target of its terminator.
type Edge = (Block, usize);

/// A parameter that grows by some terms around a loop.
struct Sum {
    header: Block,
    /// Which parameter of the header.
    number: usize,
    /// The edge that it comes back on.
    back: Edge,
    /// The block that adds the terms, and the last sum there.
    adds: (Block, Inst),
    terms: Vec<Value>,
    /// What is read after the loop: the parameter, or the last sum.
    read: Value,
    /// The sum after the loop that reads it.
    reader: (Block, Inst),
    /// The sum that this one is a part of in the end.
    total: Value,
}

impl Sum {
    /// What sums have in common that become one.
    fn key(&self, f: &Function) -> (Block, Edge, Block, bool, Value, Ty) {
        let param = f.block(self.header).params[self.number];
        let before = self.read == param;
        let ty = f.ty(param);
        (self.header, self.back, self.adds.0, before, self.total, ty)
    }
}

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let uses = uses(f);
    let mut groups: Vec<Vec<Sum>> = Vec::new();
    for &header in &f.order {
        for number in 0..f.block(header).params.len() {
            let Some(sum) = sum(f, &uses, header, number) else {
                continue;
            };
            let key = sum.key(f);
            match groups.iter_mut().find(|group| group[0].key(f) == key) {
                Some(group) => group.push(sum),
                None => groups.push(vec![sum]),
            }
        }
    }
    groups.retain(|group| group.len() > 1);
    for group in &groups {
        join(f, group);
    }
    groups.iter().map(|group| group.len() - 1).sum()
}

fn uses(f: &Function) -> FxHashMap<Value, Vec<Use>> {
    let mut uses: FxHashMap<Value, Vec<Use>> = FxHashMap::default();
    for &b in &f.order {
        let block = f.block(b);
        for &i in &block.insts {
            for &v in &f.inst(i).args {
                uses.entry(v).or_default().push(Use::Inst(b, i));
            }
        }
        if let Some(v) = block.term.condition() {
            uses.entry(v).or_default().push(Use::Condition);
        }
        for (n, call) in block.term.targets().into_iter().enumerate() {
            for (k, &v) in call.args.iter().enumerate() {
                uses.entry(v).or_default().push(Use::Arg((b, n), k));
            }
        }
    }
    uses
}

/// The sum that a parameter is, if it is one whose steps are read by nothing else than a sum after the loop.
fn sum(
    f: &Function,
    uses: &FxHashMap<Value, Vec<Use>>,
    header: Block,
    number: usize,
) -> Option<Sum> {
    let param = *f.block(header).params.get(number)?;
    let ty = f.ty(param);
    if ty.lane.is_float() || ty.lane == Lane::I1 {
        return None;
    }
    let add = |u: &Use| match *u {
        Use::Inst(b, i) if f.inst(i).op == Op::Binary(BinOp::Add) => Some((b, i)),
        _ => None,
    };
    let returns = |u: &Use| match *u {
        Use::Arg(edge, k) if k == number && target(f, edge) == header => Some(edge),
        _ => None,
    };
    let (mut at, mut terms, mut read, mut adds) = (param, Vec::new(), None, None);
    let back = loop {
        let all = uses.get(&at)?;
        let back = all.iter().find_map(returns);
        // Steps are in one block, what reads the sum is in another.
        let here = |&(b, _): &(Block, Inst)| adds.is_none_or(|(home, _)| home == b);
        let mut others: Vec<(Block, Inst)> = Vec::new();
        for u in all.iter().filter(|u| back.is_none() || returns(u) != back) {
            others.push(add(u)?);
        }
        let step = match (back, others.as_slice()) {
            (Some(edge), []) => break edge,
            (Some(edge), &[reader]) if read.is_none() => {
                read = Some((at, reader));
                break edge;
            }
            (None, &[step]) => step,
            // Before the first step the parameter may be read, too.
            (None, &[x, y]) if at == param => {
                let [x_grows, y_grows] = [x, y].map(|(_, i)| grows(f, uses, i, header, number));
                let (step, reader) = match (x_grows, y_grows) {
                    (true, false) => (x, y),
                    (false, true) => (y, x),
                    _ => return None,
                };
                read = Some((param, reader));
                step
            }
            _ => return None,
        };
        if !here(&step) {
            return None;
        }
        let &[x, y] = f.inst(step.1).args.as_slice() else {
            return None;
        };
        // A number added to itself is no term that the others could have.
        if x == y {
            return None;
        }
        terms.push(if x == at { y } else { x });
        adds = Some(step);
        at = f.inst(step.1).results[0];
    };
    let (adds, (read, reader)) = (adds?, read?);
    if reader.0 == adds.0 || reader.0 == header {
        return None;
    }
    Some(Sum {
        header,
        number,
        back,
        adds,
        terms,
        read,
        reader,
        total: total(f, uses, reader.1, add),
    })
}

fn target(f: &Function, (from, n): Edge) -> Block {
    f.block(from).term.targets()[n].block
}

/// True for a sum that comes back to a parameter, after others maybe.
fn grows(
    f: &Function,
    uses: &FxHashMap<Value, Vec<Use>>,
    mut i: Inst,
    header: Block,
    number: usize,
) -> bool {
    loop {
        let Some([only]) = uses.get(&f.inst(i).results[0]).map(Vec::as_slice) else {
            return false;
        };
        match *only {
            Use::Arg(edge, k) => return k == number && target(f, edge) == header,
            Use::Inst(_, next) if f.inst(next).op == Op::Binary(BinOp::Add) => i = next,
            _ => return false,
        }
    }
}

/// The largest sum that a sum is part of and nothing else reads parts of.
fn total(
    f: &Function,
    uses: &FxHashMap<Value, Vec<Use>>,
    mut i: Inst,
    add: impl Fn(&Use) -> Option<(Block, Inst)>,
) -> Value {
    loop {
        let result = f.inst(i).results[0];
        match uses.get(&result).map(Vec::as_slice) {
            Some([only]) => match add(only) {
                Some((_, next)) => i = next,
                None => return result,
            },
            _ => return result,
        }
    }
}

/// The first sum gets the terms of all; the others are zero from then on, and read by nothing.
fn join(f: &mut Function, group: &[Sum]) {
    let [first, rest @ ..] = group else {
        return;
    };
    let param = f.block(first.header).params[first.number];
    let ty = f.ty(param);
    let (block, _) = first.adds;
    // All terms are there after the last step of all.
    let position = |i: Inst| f.block(block).insts.iter().position(|&j| j == i);
    let last = group.iter().filter_map(|sum| position(sum.adds.1)).max();
    let Some(last) = last else {
        return;
    };
    let line = f.inst(f.block(block).insts[last]).line;
    let mut made = Vec::new();
    let mut add = |f: &mut Function, x: Value, y: Value| {
        let i = f.make(Op::Binary(BinOp::Add), vec![x, y], &[ty], line);
        made.push(i);
        f.inst(i).results[0]
    };
    let terms: Vec<Value> = group.iter().flat_map(|sum| sum.terms.clone()).collect();
    // What is carried around is added last, so that an iteration waits for one sum only.
    let sum = terms[1..].iter().fold(terms[0], |x, &y| add(f, x, y));
    let sum = add(f, param, sum);
    let after = last + 1;
    f.block_mut(block).insts.splice(after..after, made);
    if first.read != param {
        substitute(f, first.reader.1, first.read, sum);
    }
    first_values(f, group, ty);
    let mut back = vec![(first.number, sum)];
    for other in rest {
        let zero = zero(f, other.reader.0, ty);
        substitute(f, other.reader.1, other.read, zero);
    }
    let zero = zero(f, block, ty);
    back.extend(rest.iter().map(|other| (other.number, zero)));
    let (from, n) = first.back;
    for (number, v) in back {
        f.block_mut(from).term.targets_mut()[n].args[number] = v;
    }
}

fn substitute(f: &mut Function, i: Inst, from: Value, to: Value) {
    for v in &mut f.inst_mut(i).args {
        if *v == from {
            *v = to;
        }
    }
}

/// In front of the loop, the first sum begins with what all do.
fn first_values(f: &mut Function, group: &[Sum], ty: Ty) {
    let first = &group[0];
    for from in f.order.clone() {
        for n in 0..f.block(from).term.targets().len() {
            if target(f, (from, n)) != first.header || (from, n) == first.back {
                continue;
            }
            let args = f.block(from).term.targets()[n].args.clone();
            let mut sum = args[first.number];
            for other in &group[1..] {
                let add = Op::Binary(BinOp::Add);
                sum = f.push1(from, add, vec![sum, args[other.number]], ty, 0);
            }
            f.block_mut(from).term.targets_mut()[n].args[first.number] = sum;
        }
    }
}

/// A zero at the start of a block.
fn zero(f: &mut Function, b: Block, ty: Ty) -> Value {
    let i = f.make(const_op(ty, 0), Vec::new(), &[ty], 0);
    f.block_mut(b).insts.insert(0, i);
    f.inst(i).results[0]
}
