//! If-conversion: code under an empty mask is executed without effect instead of being jumped over.
//!
//! A branch on `maskany m` around a block that does nothing observable when `m` is empty becomes straight code. That saves
//! the branch and lets both sides be scheduled together; it costs the work where the mask was empty. So all blocks are converted only where
//! that is asked for ([`super::PassOptions::if_convert`]). The pass `short-branches` converts those of a few cheap operations. Both run before mask facts are used: these drop selects that have to be seen.
//!
//! Guarantees: with an empty mask the block's memory accesses have no enabled lane, and what it hands on is what the branch
//! around it would have handed on. Both are proven from the operations, nothing is assumed about who made them.
//!
//! Not done: loops, blocks that wait or end, branches around several blocks whose inner branches cannot be converted.

use super::cfg;
use super::edit::{float_const, unary, uniform_const};
use crate::ssa::dom::DomTree;
use crate::ssa::{
    BinOp, Block, BlockCall, FCond, Function, InstData, Lane, Op, Term, UnOp, Value, ValueDef,
};

/// Longest block that is executed under an empty mask, in instructions.
const MAX_INSTS: usize = 200;

/// Most operations of a block that is not worth a branch. Of 8 to 12, 16 and 24, this was the best number with LLVM.
const MAX_SHORT: usize = 10;

/// Expansions of sines and the like have code of their own for numbers that are larger than this one, which kernels are expected to have seldom.
const LARGE: f32 = 1000.0;

/// How far chains of selects and conjunctions are followed.
const DEPTH: usize = 8;

/// Times that the whole is gone through, as what was nested comes to the surface.
const ROUNDS: usize = 8;

/// Runs the pass `if-convert`.
pub(super) fn run(f: &mut Function) -> usize {
    converted(f, &|f, b, _| f.block(b).insts.len() <= MAX_INSTS)
}

/// Runs the pass `short-branches`: only blocks of a few cheap operations.
pub(super) fn run_short(f: &mut Function) -> usize {
    converted(f, &|f, b, mask| {
        if is_of_large_numbers(f, mask, DEPTH) {
            return false;
        }
        let costs = f.block(b).insts.iter().map(|&i| cost(f, f.inst(i)));
        costs
            .sum::<Option<usize>>()
            .is_some_and(|sum| sum <= MAX_SHORT)
    })
}

/// What an operation costs in a short block, in operations on 32-bit lanes; none, if it does not belong there: accesses, divisions, roots.
fn cost(f: &Function, data: &InstData) -> Option<usize> {
    use BinOp::{FDiv, SDiv, SRem, UDiv, URem};
    let wide = data.results.iter().any(|&r| f.ty(r).lane.bits() == 64);
    match data.op {
        Op::Const(_) | Op::VecConst(_) => Some(0),
        Op::Load(_) | Op::FpEnv(_) | Op::Unary(UnOp::FSqrt) => None,
        Op::Binary(FDiv | SDiv | SRem | UDiv | URem) => None,
        _ if data.op.has_effect() => None,
        _ => Some(if wide { 2 } else { 1 }),
    }
}

/// Whether a mask is of lanes whose numbers are above [`LARGE`].
fn is_of_large_numbers(f: &Function, mask: Value, depth: usize) -> bool {
    let Some(data) = f.def_inst(f.resolve(mask)).filter(|_| depth > 0) else {
        return false;
    };
    let is_large = |v: Value| float_const(f, f.resolve(v)).is_some_and(|limit| limit >= LARGE);
    match (&data.op, data.args.as_slice()) {
        (Op::Binary(BinOp::And), args) => {
            let mut args = args.iter();
            args.any(|&mask| is_of_large_numbers(f, mask, depth - 1))
        }
        (Op::FCmp(FCond::Gt | FCond::Ge), &[_, limit]) => is_large(limit),
        (Op::FCmp(FCond::Lt | FCond::Le), &[limit, _]) => is_large(limit),
        _ => false,
    }
}

/// Which blocks may be executed under an empty mask, and that mask.
type Fits<'a> = &'a dyn Fn(&Function, Block, Value) -> bool;

fn converted(f: &mut Function, fits: Fits) -> usize {
    let mut changes = 0;
    for _ in 0..ROUNDS {
        let converted = round(f, fits);
        if converted == 0 {
            break;
        }
        changes += converted;
        // Straight lines become blocks.
        cfg::run(f);
    }
    changes
}

fn round(f: &mut Function, fits: Fits) -> usize {
    let dom = DomTree::new(f);
    let mut changes = 0;
    let mut touched = vec![false; f.blocks.len()];
    for &b in dom.rpo() {
        let skipped = skipped(f, &dom, b);
        let Some((inner, join, _)) = skipped.filter(|&(inner, _, mask)| fits(f, inner, mask))
        else {
            continue;
        };
        // The tree speaks of what was there before.
        if touched[b.0 as usize] || touched[inner.0 as usize] {
            continue;
        }
        touched[b.0 as usize] = true;
        touched[inner.0 as usize] = true;
        let insts = std::mem::take(&mut f.block_mut(inner).insts);
        let line = f.block(inner).term_line;
        let block = f.block_mut(b);
        block.insts.extend(insts);
        block.term = Term::Jump(join);
        block.term_line = line;
        changes += 1;
    }
    f.resolve_aliases();
    changes
}

/// The block that the end of `b` jumps over when a mask is empty, how it goes on after it, and the mask.
fn skipped(f: &Function, dom: &DomTree, b: Block) -> Option<(Block, BlockCall, Value)> {
    let Term::Branch { cond, then, other } = &f.block(b).term else {
        return None;
    };
    let data = f.def_inst(*cond).filter(|d| d.op == Op::MaskAny)?;
    let inner = then.block;
    let Term::Jump(join) = &f.block(inner).term else {
        return None;
    };
    let alone = dom.preds(inner) == [b] && inner != Function::ENTRY;
    let forward = join.block == other.block && join.block != inner && join.block != b;
    if !alone || !forward {
        return None;
    }
    // Blocks with one predecessor need no parameters; `cfg` has removed them.
    if !f.block(inner).params.is_empty() || !then.args.is_empty() {
        return None;
    }
    let check = Check {
        f,
        mask: f.resolve(data.args[0]),
    };
    let no_effect = f
        .block(inner)
        .insts
        .iter()
        .all(|&i| check.has_no_effect(f.inst(i)));
    let mut handed = join.args.iter().zip(&other.args);
    let same = handed.all(|(&v, &old)| check.same(f.resolve(v), f.resolve(old), DEPTH));
    (no_effect && same).then(|| (inner, join.clone(), check.mask))
}

/// What holds when a mask has no lanes.
struct Check<'a> {
    f: &'a Function,
    mask: Value,
}

impl Check<'_> {
    /// Nothing sees that the instruction was carried out.
    fn has_no_effect(&self, data: &InstData) -> bool {
        match data.op {
            Op::Load(_) | Op::Store(_) | Op::Atomic(_) | Op::Image(_) => {
                let mask = self.f.resolve(data.args[0]);
                !self.f.ty(mask).is_scalar() && self.empty(mask, DEPTH)
            }
            _ => !data.op.has_effect(),
        }
    }

    /// A mask that has no lanes then.
    fn empty(&self, v: Value, depth: usize) -> bool {
        if v == self.mask || uniform_const(self.f, v) == Some(0) {
            return true;
        }
        let Some(args) = self.args(v, depth) else {
            return false;
        };
        let empty = |n: usize| self.empty(args.1[n], depth - 1);
        match args.0 {
            Op::Binary(BinOp::And) => empty(0) || empty(1),
            Op::Binary(BinOp::Or | BinOp::Xor) => empty(0) && empty(1),
            _ => false,
        }
    }

    /// `v` is in every lane what `old` is then.
    fn same(&self, v: Value, old: Value, depth: usize) -> bool {
        if v == old {
            return true;
        }
        let is_mask = self.f.ty(v).lane == Lane::I1 && !self.f.ty(v).is_scalar();
        if is_mask && self.empty(v, depth) && self.empty(old, depth) {
            return true;
        }
        if let (Some(a), Some(b)) = (uniform_const(self.f, v), uniform_const(self.f, old)) {
            return a == b && self.f.ty(v) == self.f.ty(old);
        }
        let Some((op, args)) = self.args(v, depth) else {
            return false;
        };
        let same = |n: usize| self.same(args[n], old, depth - 1);
        let empty = |n: usize| self.empty(args[n], depth - 1);
        let none_off =
            |n: usize| unary(self.f, args[n], UnOp::Not).is_some_and(|m| self.empty(m, depth - 1));
        match op {
            Op::Select if !self.f.ty(args[0]).is_scalar() => {
                empty(0) && same(2) || same(1) && same(2)
            }
            Op::Binary(BinOp::Or | BinOp::Xor) if is_mask => {
                empty(0) && same(1) || empty(1) && same(0)
            }
            Op::Binary(BinOp::And) if is_mask => none_off(0) && same(1) || none_off(1) && same(0),
            _ => false,
        }
    }

    fn args(&self, v: Value, depth: usize) -> Option<(&Op, Vec<Value>)> {
        if depth == 0 || !matches!(self.f.def(v), ValueDef::Result(..)) {
            return None;
        }
        let data = self.f.def_inst(v)?;
        Some((
            &data.op,
            data.args.iter().map(|&a| self.f.resolve(a)).collect(),
        ))
    }
}
