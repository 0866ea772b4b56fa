//! Correlated value propagation: uses of conditions and masks that a dominating branch has decided.
//!
//! In the blocks that one side of a branch dominates, the branch's condition is known, and so is what follows from it: both parts of a
//! conjunction that holds, each lane of a mask that has this bit in all lanes, and that a mask is empty. Known operands become constants, a
//! conjunction with one known part becomes the other part, and a select becomes one of its arms. A block parameter that equals a mask on each
//! of its edges is replaced by the mask ([`arguments`]), and so is the union of two parameters that equals it ([`unions`]).
//!
//! Runs after `masks`: that pass compares masks with each other, and a constant on one edge would hide that two are equal. Not done: facts
//! about integers or memory.

mod arguments;
mod unions;

use rustc_hash::FxHashMap;

use self::arguments::Candidates;
use super::edit::{const_op, uniform_const};
use crate::ssa::dom::DomTree;
use crate::ssa::{BinOp, Block, Function, Inst, Lane, Op, Term, Ty, UnOp, Value};

/// How many operations to look through, from an operand.
const DEPTH: u32 = 3;

/// How many operations to look through, from a condition.
const LEARNED_DEPTH: u32 = 8;

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let dom = DomTree::new(f);
    let mut pass = Pass::default();
    pass.unions(f, &dom);
    pass.candidates = Candidates::new(f, &dom);
    let mut steps = vec![Step::Enter(Function::ENTRY)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Enter(b) => {
                steps.push(Step::Leave(pass.order.len()));
                if let [p] = dom.preds(b) {
                    pass.learn_on_edge(f, *p, b);
                }
                pass.block(f, b);
                steps.extend(dom.children(b).iter().map(|&child| Step::Enter(child)));
            }
            Step::Leave(known) => pass.forget(known),
        }
    }
    pass.pass_postponed(f);
    pass.changes += pass.candidates.pass(f, &dom);
    let constants = pass.constants.into_values().map(|(i, _)| i);
    f.block_mut(Function::ENTRY).insts.splice(0..0, constants);
    f.resolve_aliases();
    pass.changes
}

/// A step of the walk over the dominator tree.
enum Step {
    Enter(Block),
    /// Back to the first conditions of this number, which are known outside.
    Leave(usize),
}

/// What an operand is.
#[derive(Clone, Copy, PartialEq)]
enum Seen {
    /// This bit, in each lane.
    Bit(bool),
    /// Another value.
    Same(Value),
}

#[derive(Default)]
struct Pass {
    /// Conditions and masks whose lanes all have this bit.
    known: FxHashMap<Value, bool>,
    /// Those in `known`, in the order in which they came.
    order: Vec<Value>,
    /// Constants that were needed, which the entry gets.
    constants: FxHashMap<(Ty, bool), (Inst, Value)>,
    /// What block parameters may be replaced by.
    candidates: Candidates,
    /// Arguments that are their parameter's candidate, and the constant to pass if the candidate fails on another edge: the block of the
    /// edge, its number there, the argument's number, the constant.
    postponed: Vec<(Block, usize, usize, Value)>,
    changes: usize,
}

impl Pass {
    fn forget(&mut self, known: usize) {
        for v in self.order.drain(known..) {
            self.known.remove(&v);
        }
    }

    fn learn_on_edge(&mut self, f: &Function, from: Block, to: Block) {
        if let Term::Branch { cond, then, other } = &f.block(from).term
            && then.block != other.block
        {
            self.learn(f, *cond, then.block == to, LEARNED_DEPTH);
        }
    }

    /// Each lane of `v` is `bit`.
    fn learn(&mut self, f: &Function, v: Value, bit: bool, depth: u32) {
        let v = f.resolve(v);
        if depth == 0 || self.known.contains_key(&v) || uniform_const(f, v).is_some() {
            return;
        }
        self.known.insert(v, bit);
        self.order.push(v);
        let Some(data) = f.def_inst(v) else {
            return;
        };
        let args = data.args.as_slice();
        match (&data.op, args) {
            (Op::Unary(UnOp::Not), &[a]) => self.learn(f, a, !bit, depth - 1),
            (Op::Binary(BinOp::And), &[a, b]) => self.learn_parts(f, [a, b], bit, true, depth),
            (Op::Binary(BinOp::Or), &[a, b]) => self.learn_parts(f, [a, b], bit, false, depth),
            (Op::Splat, &[a]) => self.learn(f, a, bit, depth - 1),
            (Op::MaskAny, &[a]) if !bit => self.learn(f, a, false, depth - 1),
            (Op::MaskAny, &[a]) => self.learn_some(f, a, depth - 1),
            (Op::MaskAll, &[a]) if bit => self.learn(f, a, true, depth - 1),
            _ => {}
        }
    }

    /// Learns of two operands whose conjunction (`all`) or disjunction (not `all`) is `bit`.
    fn learn_parts(&mut self, f: &Function, parts: [Value; 2], bit: bool, all: bool, depth: u32) {
        let [a, b] = parts;
        if bit == all {
            self.learn(f, a, bit, depth - 1);
            self.learn(f, b, bit, depth - 1);
        } else if self.bit(f, a, DEPTH) == Some(all) {
            self.learn(f, b, bit, depth - 1);
        } else if self.bit(f, b, DEPTH) == Some(all) {
            self.learn(f, a, bit, depth - 1);
        }
    }

    /// Some lane of the mask `m` is set, so conditions that all of its lanes share hold.
    fn learn_some(&mut self, f: &Function, m: Value, depth: u32) {
        let Some(data) = f.def_inst(f.resolve(m)).filter(|_| depth > 0) else {
            return;
        };
        match (&data.op, data.args.as_slice()) {
            (Op::Splat, &[a]) => self.learn(f, a, true, depth - 1),
            (Op::Binary(BinOp::And), &[a, b]) => {
                self.learn_some(f, a, depth - 1);
                self.learn_some(f, b, depth - 1);
            }
            _ => {}
        }
    }

    /// What is known of an operand, if anything.
    fn see(&self, f: &Function, v: Value, depth: u32) -> Option<Seen> {
        if let Some(&bit) = self.known.get(&v) {
            return Some(Seen::Bit(bit));
        }
        let data = f.def_inst(v).filter(|_| depth > 0)?;
        let bit = |n: usize| self.bit(f, f.resolve(data.args[n]), depth - 1);
        let other = |n: usize| {
            let value = f.resolve(data.args[n]);
            let seen = self.see(f, value, depth - 1);
            Some(seen.unwrap_or(Seen::Same(value)))
        };
        let is_bit = f.ty(v).lane == Lane::I1;
        match &data.op {
            Op::Unary(UnOp::Not) if is_bit => bit(0).map(|bit| Seen::Bit(!bit)),
            Op::Binary(op @ (BinOp::And | BinOp::Or)) if is_bit => {
                let neutral = *op == BinOp::And;
                match (bit(0), bit(1)) {
                    (Some(a), _) if a != neutral => Some(Seen::Bit(a)),
                    (_, Some(b)) if b != neutral => Some(Seen::Bit(b)),
                    (Some(_), _) => other(1),
                    (_, Some(_)) => other(0),
                    _ => None,
                }
            }
            Op::Splat if is_bit => bit(0).map(Seen::Bit),
            Op::MaskAny | Op::MaskAll => bit(0).map(Seen::Bit),
            Op::Select => other(if bit(0)? { 1 } else { 2 }),
            _ => None,
        }
    }

    /// The bit in each lane of a mask or condition, if it is known or a constant.
    fn bit(&self, f: &Function, v: Value, depth: u32) -> Option<bool> {
        match self.see(f, v, depth).unwrap_or(Seen::Same(v)) {
            Seen::Bit(bit) => Some(bit),
            Seen::Same(v) => uniform_const(f, v).map(|bits| bits != 0),
        }
    }

    /// The value to use in place of `v`.
    fn better(&mut self, f: &mut Function, v: Value) -> Option<Value> {
        let v = f.resolve(v);
        match self.see(f, v, DEPTH)? {
            Seen::Same(other) => Some(other),
            Seen::Bit(bit) => Some(self.constant(f, f.ty(v), bit)),
        }
    }

    /// A constant that the entry gets.
    fn constant(&mut self, f: &mut Function, ty: Ty, bit: bool) -> Value {
        let constant = self.constants.entry((ty, bit)).or_insert_with(|| {
            let i = f.make(const_op(ty, bit.into()), Vec::new(), &[ty], 0);
            (i, f.inst(i).results[0])
        });
        constant.1
    }

    fn replace(&mut self, f: &mut Function, v: &mut Value) {
        if let Some(better) = self.better(f, *v) {
            *v = better;
            self.changes += 1;
        }
    }

    fn block(&mut self, f: &mut Function, b: Block) {
        if !self.known.is_empty() {
            for n in 0..f.block(b).insts.len() {
                let i = f.block(b).insts[n];
                for a in 0..f.inst(i).args.len() {
                    let mut v = f.inst(i).args[a];
                    self.replace(f, &mut v);
                    f.inst_mut(i).args[a] = v;
                }
            }
        }
        self.terminator(f, b);
    }

    /// Passes constants where a parameter's candidate failed.
    fn pass_postponed(&mut self, f: &mut Function) {
        for (b, side, n, better) in std::mem::take(&mut self.postponed) {
            let mut targets = f.block_mut(b).term.targets_mut();
            let target = &mut targets[side];
            if self.candidates.value((target.block, n)).is_none() {
                target.args[n] = better;
                self.changes += 1;
            }
        }
    }

    fn terminator(&mut self, f: &mut Function, b: Block) {
        let mut term = std::mem::replace(&mut f.block_mut(b).term, Term::None);
        let decides = match &mut term {
            Term::Branch { cond, .. } => {
                self.replace(f, cond);
                Some(*cond)
            }
            _ => None,
        };
        for (side, target) in term.targets_mut().into_iter().enumerate() {
            let known = self.order.len();
            if let Some(cond) = decides {
                self.learn(f, cond, side == 0, LEARNED_DEPTH);
            }
            for (n, v) in target.args.iter_mut().enumerate() {
                let param = (target.block, n);
                let known = self.candidates.value(param);
                let known = known.and_then(|candidate| self.bit(f, candidate, DEPTH));
                self.candidates.test(f, param, *v, known);
                if self.candidates.value(param) != Some(f.resolve(*v)) {
                    self.replace(f, v);
                } else if let Some(better) = self.better(f, *v) {
                    self.postponed.push((b, side, n, better));
                }
            }
            self.forget(known);
        }
        f.block_mut(b).term = term;
    }
}
