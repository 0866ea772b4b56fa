//! Sums of products of bytes.
//!
//! Where four of the products of a sum are of the bytes of two words, the first byte of one by the first of the other and so on, they are the
//! operation that sums such products ([`Op::Dot4`]). Processors have instructions for that, and code generators else extract bytes in pairs.
//! Kernels come with such sums because lowering makes them of `dp4a`, and because compilers for devices without it do.
//!
//! Guarantees: sums of 32-bit lanes wrap around, so that their order does not matter. A sum is made as it was, without three of the four
//! products, and with the operation instead of the last one.
//!
//! Not done: sums of fewer than four bytes of a word, sums over several blocks.

use rustc_hash::{FxHashMap, FxHashSet};

use super::edit::{Rewriter, binary as bin, uniform_const};
use crate::ssa::dom::{reverse_post_order, use_counts};
use crate::ssa::{BinOp, Block, ByteSigns, Conv, Function, Inst, Lane, Op, Ty, Value, ValueDef};

/// Products of a sum that are looked at.
const MOST: usize = 4096;

/// A vector of words, or a word that is the same in all lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Word {
    /// A vector.
    Lanes(Value),
    /// A scalar.
    Scalar(Value),
    /// A lane of another vector.
    Lane(Value, u16),
}

/// A byte of each word, extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Byte {
    of: Word,
    signed: bool,
    /// 0 for the lowest one.
    place: u32,
}

/// Two words, and whether their bytes are signed.
type Words = [(Word, bool); 2];

/// What a term of a sum becomes.
#[derive(Clone, Copy)]
enum Term {
    /// Nothing.
    Gone,
    /// The sum of the products of the bytes of two words.
    Dot(Words),
}

/// What is found in a block.
#[derive(Default)]
struct Plan {
    /// Terms that become something else; later also sums of such.
    terms: FxHashMap<Value, Term>,
    /// The largest sums that these are part of.
    roots: FxHashSet<Value>,
}

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let uses = use_counts(f);
    let order = reverse_post_order(f);
    let plans: Vec<(Block, Plan)> = order.iter().map(|&b| (b, plan(f, b, &uses))).collect();
    let mut rewriter = Rewriter::new(f);
    for (b, mut plan) in plans {
        if !plan.terms.is_empty() {
            rewriter.block(b, |r, i| rewritten(r, &mut plan, i));
        }
    }
    let changes = rewriter.changes;
    f.resolve_aliases();
    changes
}

/// Sums of a block that have products of bytes, as large as can be.
fn plan(f: &Function, b: Block, uses: &[u32]) -> Plan {
    let insts = &f.block(b).insts;
    let position: FxHashMap<Inst, usize> = insts.iter().copied().zip(0..).collect();
    let here = |v: Value| match f.def(v) {
        ValueDef::Result(i, _) => position.get(&i).copied(),
        _ => None,
    };
    let ty = |v: Value| f.ty(v).lane == Lane::I32 && !f.ty(v).is_scalar();
    let sum = |v: Value| bin(f, v, BinOp::Add).filter(|_| ty(v) && here(v).is_some());
    let once = |v: Value| uses[v.0 as usize] == 1;
    let mut plan = Plan::default();
    // Sums that are part of another one.
    let mut inner = vec![false; insts.len()];
    for (at, &root) in insts.iter().enumerate().rev() {
        let Some(&result) = f.inst(root).results.first() else {
            continue;
        };
        if inner[at] || sum(result).is_none() {
            continue;
        }
        let (mut terms, mut left) = (Vec::new(), vec![result]);
        while let Some(v) = left.pop() {
            let opens = v == result || once(v) && terms.len() + left.len() < MOST;
            match sum(v).filter(|_| opens) {
                Some((x, y)) => {
                    if let Some(at) = here(v) {
                        inner[at] = true;
                    }
                    left.extend([y, x]);
                }
                None => terms.push(v),
            }
        }
        let place = |v: Value| here(v).filter(|_| once(v));
        if find(f, &terms, place, &mut plan.terms) {
            plan.roots.insert(result);
        }
    }
    plan
}

/// Finds four products of bytes of two words among the terms of a sum; true if there are. `place` is where a product is, if it is in the block
/// and has no other use.
fn find(
    f: &Function,
    terms: &[Value],
    place: impl Fn(Value) -> Option<usize>,
    become_of: &mut FxHashMap<Value, Term>,
) -> bool {
    let mut open: FxHashMap<Words, [Vec<Value>; 4]> = FxHashMap::default();
    for &term in terms {
        let product = bin(f, term, BinOp::Mul).filter(|_| place(term).is_some());
        let bytes = product.and_then(|(x, y)| Some((byte(f, x)?, byte(f, y)?)));
        let Some((x, y)) = bytes.filter(|(x, y)| x.place == y.place) else {
            continue;
        };
        let (x, y) = (x.min(y), x.max(y));
        let words = [(x.of, x.signed), (y.of, y.signed)];
        open.entry(words).or_default()[x.place as usize].push(term);
    }
    let mut found = false;
    for (words, mut products) in open {
        let whole = products.iter().map(Vec::len).min().unwrap_or(0);
        for _ in 0..whole {
            let four: Vec<Value> = products.iter_mut().filter_map(Vec::pop).collect();
            let last = four.iter().copied().max_by_key(|&v| place(v));
            become_of.extend(four.into_iter().map(|v| (v, Term::Gone)));
            become_of.extend(last.map(|v| (v, Term::Dot(words))));
            found = true;
        }
    }
    found
}

/// The byte that a value is in each lane.
fn byte(f: &Function, v: Value) -> Option<Byte> {
    if f.ty(v).is_scalar() {
        return None;
    }
    let splat = f.def_inst(v).filter(|d| d.op == Op::Splat);
    let (v, word): (_, fn(Value) -> Word) = match splat {
        Some(d) => (f.resolve(d.args[0]), Word::Scalar),
        None => (v, Word::Lanes),
    };
    let of = |(x, place, signed): (Value, u32, bool)| Byte {
        of: word(x),
        signed,
        place,
    };
    shifted(f, v).map(of).or_else(|| extended(f, v))
}

/// A byte of a word by shifts, or a mask: the word, the byte's place, and whether it was extended with its sign.
fn shifted(f: &Function, v: Value) -> Option<(Value, u32, bool)> {
    let by = |v: Value, op: BinOp| {
        let (x, by) = bin(f, v, op)?;
        Some((f.resolve(x), uniform_const(f, f.resolve(by))?))
    };
    let place = |bits: u64| (bits < 32 && bits.is_multiple_of(8)).then_some(bits as u32 / 8);
    if let Some((x, mask)) = by(v, BinOp::And) {
        let (x, down) = by(x, BinOp::LShr).unwrap_or((x, 0));
        return (mask == 0xFF).then_some((x, place(down)?, false));
    }
    let (down, signed) = match by(v, BinOp::AShr) {
        Some(down) => (down, true),
        None => (by(v, BinOp::LShr)?, false),
    };
    let (x, up) = by(down.0, BinOp::Shl).unwrap_or((down.0, 0));
    (down.1 == 24).then_some((x, 3 - place(up)?, signed))
}

/// A scalar byte of a vector of words, in all lanes.
fn extended(f: &Function, v: Value) -> Option<Byte> {
    let data = f.def_inst(v)?;
    let signed = match data.op {
        Op::Convert(Conv::SExt) => true,
        Op::Convert(Conv::ZExt) => false,
        _ => return None,
    };
    let taken = f.def_inst(f.resolve(data.args[0]))?;
    let Op::ExtractLane(lane) = taken.op else {
        return None;
    };
    let bytes = f.resolve(*taken.args.first()?);
    let view = f.def_inst(bytes).filter(|d| d.op == Op::Bitcast)?;
    let words = f.resolve(view.args[0]);
    if f.ty(bytes).lane != Lane::I8 || f.ty(words).lane != Lane::I32 || !f.ty(v).is_scalar() {
        return None;
    }
    Some(Byte {
        of: match f.ty(words).is_scalar() {
            true => Word::Scalar(words),
            false => Word::Lane(words, lane / 4),
        },
        signed,
        place: u32::from(lane % 4),
    })
}

/// Makes sums with what their terms became; false where an instruction is not needed any more.
fn rewritten(r: &mut Rewriter, plan: &mut Plan, i: Inst) -> bool {
    let data = r.f.inst(i);
    let (Op::Binary(BinOp::Add), &[x, y]) = (&data.op, data.args.as_slice()) else {
        return true;
    };
    let result = data.results[0];
    let ty = r.f.ty(result);
    let term = match [x, y].map(|v| plan.terms.get(&v).copied()) {
        [None, None] => return true,
        [Some(Term::Gone), Some(term)] | [Some(term), Some(Term::Gone)] => term,
        [Some(Term::Gone), None] => return replace(r, result, y),
        [None, Some(Term::Gone)] => return replace(r, result, x),
        [Some(Term::Dot(words)), None] => {
            let sum = dot(r, words, y, ty);
            return replace(r, result, sum);
        }
        [None, Some(Term::Dot(words))] => {
            let sum = dot(r, words, x, ty);
            return replace(r, result, sum);
        }
        [Some(Term::Dot(first)), Some(Term::Dot(second))] => {
            let zero = r.constant(ty, 0);
            let sum = dot(r, first, zero, ty);
            let sum = dot(r, second, sum, ty);
            return replace(r, result, sum);
        }
    };
    match term {
        Term::Dot(words) if plan.roots.contains(&result) => {
            let zero = r.constant(ty, 0);
            let sum = dot(r, words, zero, ty);
            replace(r, result, sum)
        }
        _ => {
            plan.terms.insert(result, term);
            false
        }
    }
}

fn replace(r: &mut Rewriter, old: Value, new: Value) -> bool {
    r.f.replace(old, new);
    r.changes += 1;
    false
}

/// The sum of products of bytes, and of something else.
fn dot(r: &mut Rewriter, words: Words, sum: Value, ty: Ty) -> Value {
    let [(x, a), (y, b)] = words;
    let (x, y) = (word(r, x, ty), word(r, y, ty));
    r.emit(Op::Dot4(ByteSigns { a, b }), vec![sum, x, y], ty)
}

/// The words as a vector.
fn word(r: &mut Rewriter, word: Word, ty: Ty) -> Value {
    let scalar = match word {
        Word::Lanes(v) => return r.f.resolve(v),
        Word::Scalar(v) => r.f.resolve(v),
        Word::Lane(v, k) => {
            let words = r.f.resolve(v);
            r.emit(Op::ExtractLane(k), vec![words], Ty::I32)
        }
    };
    r.emit(Op::Splat, vec![scalar], ty)
}
