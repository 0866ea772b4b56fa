//! Logarithms jump over what only unusual arguments need.
//!
//! The kernel's compiler scales arguments of a logarithm that are denormal. It does that under a mask of the lanes whose argument is positive
//! and finite, behind code for the other lanes:
//!
//! ```text
//! A: M = x > 0 & |x| < inf;  maskall(M) ? T(args) : B
//! B: what other lanes need;  jump T
//! T: maskany(M) ? X : J
//! X: s = x < 2^-126 ? x * 2^23 : x;  e = x < 2^-126 ? -23 : 0;  ...;  jump J
//! ```
//!
//! Here `A` goes to a copy of `X` where each argument is a positive normal number. `M` is true there for all lanes, and no argument is below
//! 2^-126. In other threads everything is as before.
//!
//! Guarantees: every result is the same. Proof: `bits(x) - 2^23`, unsigned, is below `(255 << 23) - 2^23` for the bits from `1 << 23` to
//! `(255 << 23) - 1`, which are those of positive normal numbers. For these both comparisons of `M` hold. So `A` went to `T` with its arguments, and
//! `T` to `X`, as a thread has lanes. `T` does nothing else.

use rustc_hash::FxHashMap;

use super::edit::{binary, const_op, copied, float_const, unary, uniform_const};
use crate::ssa::dom::{DomTree, use_counts};
use crate::ssa::{
    BinOp, Block, BlockCall, FCond, Function, ICond, Inst, InstData, Lane, Op, Term, Ty, UnOp,
    Value,
};

/// Bits of the least normal number, of infinity, and of all but the sign.
const LEAST: u64 = 1 << 23;
const INFINITY: u64 = 0xff << 23;
const MAGNITUDE: u64 = 0x7fff_ffff;

/// Most blocks of a function that are copied, as each is code of its own.
const MOST: usize = 16;

/// How far the conjunctions and shuffles of a mask are followed: each step doubles what is looked at.
const DEPTH: usize = 6;

/// Where logarithms are computed.
struct Found {
    a: Block,
    /// What `A` goes to `T` with.
    args: Vec<Value>,
    t: Block,
    x: Block,
    mask: Value,
    /// Arguments of logarithms, at least one, and the masks of those that are denormal.
    scaled: Vec<(Value, Value)>,
}

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let mut changes = 0;
    let (mut dom, mut uses) = (DomTree::new(f), use_counts(f));
    for x in f.order.clone() {
        if changes == MOST {
            break;
        }
        if let Some(found) = logarithms(f, &dom, &uses, x) {
            Copy::new(f, &found).run();
            dom = DomTree::new(f);
            behind(f, &dom, &found);
            uses = use_counts(f);
            changes += 1;
        }
    }
    changes
}

/// The blocks around `x`, if logarithms are computed there.
fn logarithms(f: &Function, dom: &DomTree, uses: &[u32], x: Block) -> Option<Found> {
    let Term::Jump(end) = &f.block(x).term else {
        return None;
    };
    let &[t] = dom.preds(x) else {
        return None;
    };
    let (any, then, other) = branch(f, t)?;
    let mask = mask_of(f, any, &Op::MaskAny)?;
    let meets = other.block == end.block && then.block == x && then.args.is_empty();
    let empty = f.block(t).insts.iter().all(|&i| f.inst(i).results == [any]);
    let acts = |&i: &Inst| f.inst(i).op.has_effect();
    if !meets || !empty || f.block(x).insts.iter().any(acts) {
        return None;
    }
    let tested = tested(f, mask, DEPTH)?;
    // What is tested in `A` can be tested there once more.
    let mut scaled = scaled(f, x);
    scaled.retain(|(arg, _)| tested.contains(arg));
    let known = |v: &Value| scaled.iter().any(|(arg, _)| arg == v);
    let same = |v: &Value| f.ty(*v) == f.ty(tested[0]);
    if !tested.iter().all(known) || !tested.iter().all(same) || used_elsewhere(f, uses, [t, x]) {
        return None;
    }
    let begins = |&a: &Block| {
        let (all, then, other) = branch(f, a)?;
        let all = mask_of(f, all, &Op::MaskAll)?;
        let goes = then.block == t && other.block != t && all == mask;
        goes.then(|| then.args.clone())
    };
    let (a, args) = dom.preds(t).iter().find_map(|a| Some((*a, begins(a)?)))?;
    Some(Found {
        a,
        args,
        t,
        x,
        mask,
        scaled,
    })
}

fn branch(f: &Function, b: Block) -> Option<(Value, &BlockCall, &BlockCall)> {
    match &f.block(b).term {
        Term::Branch { cond, then, other } => Some((*cond, then, other)),
        _ => None,
    }
}

fn mask_of(f: &Function, v: Value, op: &Op) -> Option<Value> {
    let data = f.def_inst(v).filter(|d| d.op == *op)?;
    Some(data.args[0])
}

/// Whether another block than `t` and `x` needs parameters of `t`, or the test in it, which the copy goes around.
fn used_elsewhere(f: &Function, uses: &[u32], [t, x]: [Block; 2]) -> bool {
    let results = f.block(t).insts.iter().flat_map(|&i| &f.inst(i).results);
    let mut made = f.block(t).params.iter().chain(results);
    let here = [t, x].map(|b| operands(f, b)).concat();
    let mut count: FxHashMap<Value, u32> = FxHashMap::default();
    here.iter().for_each(|&v| *count.entry(v).or_default() += 1);
    made.any(|v| uses[v.0 as usize] > count.get(v).copied().unwrap_or(0))
}

/// Everything that a block uses.
fn operands(f: &Function, b: Block) -> Vec<Value> {
    let data = f.block(b);
    let insts = data.insts.iter().flat_map(|&i| &f.inst(i).args);
    let calls = data.term.targets().into_iter().flat_map(|call| &call.args);
    let all = insts.chain(calls).copied();
    all.chain(data.term.condition()).collect()
}

/// Values that are scaled up in this block where they are denormal, with the masks of the lanes where they are.
fn scaled(f: &Function, b: Block) -> Vec<(Value, Value)> {
    let mut all: Vec<(Value, Value)> = Vec::new();
    for &i in &f.block(b).insts {
        let pair = scales(f, f.inst(i));
        all.extend(pair.filter(|pair| !all.contains(pair)));
    }
    all
}

/// `select(x < 2^-126, x * 2^23, x)`.
fn scales(f: &Function, data: &InstData) -> Option<(Value, Value)> {
    let (Op::Select, &[small, up, x]) = (&data.op, data.args.as_slice()) else {
        return None;
    };
    let (same, factor) = binary(f, up, BinOp::FMul)?;
    let is_scaled = same == x && float_const(f, factor) == Some(8_388_608.0);
    let test = f.def_inst(small)?;
    let is_small = test.op == Op::FCmp(FCond::Lt)
        && test.args[0] == x
        && float_const(f, test.args[1]) == Some(f32::MIN_POSITIVE);
    (is_scaled && is_small).then_some((x, small))
}

/// The values that are positive and finite where a mask is true, if that is all that it says.
fn tested(f: &Function, mask: Value, depth: usize) -> Option<Vec<Value>> {
    let data = f.def_inst(mask).filter(|_| depth > 0)?;
    let args = data.args.as_slice();
    match data.op {
        Op::Binary(BinOp::And) | Op::Shuffle(_) => {
            let each = args.iter().map(|&m| tested(f, m, depth - 1));
            Some(each.collect::<Option<Vec<_>>>()?.concat())
        }
        Op::FCmp(FCond::Gt) => {
            let positive = float_const(f, args[1]) == Some(0.0);
            positive.then(|| vec![args[0]])
        }
        Op::FCmp(FCond::Lt) => {
            let finite = float_const(f, args[1]) == Some(f32::INFINITY);
            magnitude_of(f, args[0]).filter(|_| finite).map(|v| vec![v])
        }
        _ => None,
    }
}

/// `x` of `|x|`.
fn magnitude_of(f: &Function, v: Value) -> Option<Value> {
    let bitcast = |v| {
        let data = f.def_inst(v).filter(|d| d.op == Op::Bitcast)?;
        Some(data.args[0])
    };
    let of_bits = || {
        let (bits, kept) = binary(f, bitcast(v)?, BinOp::And)?;
        bitcast(bits).filter(|_| uniform_const(f, kept) == Some(MAGNITUDE))
    };
    unary(f, v, UnOp::FAbs).or_else(of_bits)
}

/// The copy of a block for usual arguments.
struct Copy<'f> {
    f: &'f mut Function,
    found: &'f Found,
    line: u32,
}

impl<'f> Copy<'f> {
    fn new(f: &'f mut Function, found: &'f Found) -> Copy<'f> {
        let line = f.block(found.a).term_line;
        Copy { f, found, line }
    }

    fn push(&mut self, to: Block, op: Op, args: &[Value], ty: Ty) -> Value {
        self.f.push1(to, op, args.to_vec(), ty, self.line)
    }

    /// Goes from `A` to the copy, or to what ended `A` before.
    fn run(mut self) {
        let a = self.found.a;
        let cond = self.usual();
        let [copy, before] = [(); 2].map(|()| self.f.new_block());
        let to = |block| BlockCall {
            block,
            args: Vec::new(),
        };
        let (then, other) = (to(copy), to(before));
        let branch = Term::Branch { cond, then, other };
        let old = std::mem::replace(&mut self.f.block_mut(a).term, branch);
        self.f.block_mut(before).term = old;
        self.f.block_mut(before).term_line = self.line;
        self.fill(copy);
    }

    /// Whether all arguments are positive normal numbers.
    fn usual(&mut self) -> Value {
        let (a, ty) = (self.found.a, self.f.ty(self.found.scaled[0].0));
        let (ints, mask) = (ty.with_lane(Lane::I32), ty.with_lane(Lane::I1));
        let minus_least = LEAST.wrapping_neg() & ints.lane.mask();
        let down = self.push(a, const_op(ints, minus_least), &[], ints);
        let limit = self.push(a, const_op(ints, INFINITY - LEAST), &[], ints);
        let mut all = self.push(a, const_op(mask, 1), &[], mask);
        for &(x, _) in &self.found.scaled {
            let bits = self.push(a, Op::Bitcast, &[x], ints);
            let above = self.push(a, Op::Binary(BinOp::Add), &[bits, down], ints);
            let usual = self.push(a, Op::ICmp(ICond::Ult), &[above, limit], mask);
            all = self.push(a, Op::Binary(BinOp::And), &[all, usual], mask);
        }
        self.push(a, Op::MaskAll, &[all], Ty::mask(1))
    }

    /// What `T` and `X` do, with the masks that are known.
    fn fill(&mut self, copy: Block) {
        let (found, mut now) = (self.found, FxHashMap::default());
        let params = self.f.block(found.t).params.clone();
        now.extend(params.into_iter().zip(found.args.iter().copied()));
        let small = found.scaled.iter().map(|&(_, small)| (small, 0));
        let parts = parts(self.f, found.mask).into_iter().map(|part| (part, 1));
        for (v, bits) in small.chain(parts) {
            let ty = self.f.ty(v);
            now.insert(v, self.push(copy, const_op(ty, bits), &[], ty));
        }
        let get = |now: &FxHashMap<Value, Value>, v| now.get(&v).copied().unwrap_or(v);
        for i in self.f.block(found.x).insts.clone() {
            let InstData {
                op,
                args,
                results,
                line,
                ..
            } = self.f.inst(i).clone();
            if results.iter().any(|v| now.contains_key(v)) {
                continue;
            }
            let args = args.iter().map(|&v| get(&now, v)).collect();
            let types: Vec<Ty> = results.iter().map(|&v| self.f.ty(v)).collect();
            let new = self.f.push(copy, op, args, &types, line);
            let new: Vec<Value> = self.f.inst(new).results.to_vec();
            now.extend(results.iter().copied().zip(new));
        }
        let mut term = self.f.block(found.x).term.clone();
        for call in term.targets_mut() {
            for arg in &mut call.args {
                *arg = get(&now, *arg);
            }
        }
        self.f.block_mut(copy).term = term;
        self.f.block_mut(copy).term_line = self.f.block(found.x).term_line;
    }
}

/// What a mask that was found to be a test is made of, itself included.
fn parts(f: &Function, mask: Value) -> Vec<Value> {
    let (mut all, mut next) = (Vec::new(), vec![mask]);
    while let Some(mask) = next.pop() {
        all.push(mask);
        let data = f.def_inst(mask);
        let joins = data.filter(|d| !matches!(d.op, Op::FCmp(_)));
        next.extend(joins.iter().flat_map(|d| &d.args));
    }
    all
}

/// Computes the mask of `A` behind the new test, for the blocks that come after it.
fn behind(f: &mut Function, dom: &DomTree, found: &Found) {
    let Some((_, _, other)) = branch(f, found.a) else {
        return;
    };
    let (before, line) = (other.block, f.block(found.a).term_line);
    let ends = found.scaled.iter().map(|&(x, _)| (x, x));
    let mut copies = ends.collect();
    let mask = copied(f, before, found.mask, &mut copies);
    let all = f.push1(before, Op::MaskAll, vec![mask], Ty::mask(1), line);
    if let Term::Branch { cond, .. } = &mut f.block_mut(before).term {
        *cond = all;
    }
    let replace = |v: &mut Value| *v = copies.get(v).copied().unwrap_or(*v);
    let after = f.order.clone().into_iter();
    for b in after.filter(|&b| b != before && dom.dominates(before, b)) {
        for i in f.block(b).insts.clone() {
            f.inst_mut(i).args.iter_mut().for_each(replace);
        }
        let calls = f.block_mut(b).term.targets_mut().into_iter();
        calls.for_each(|call| call.args.iter_mut().for_each(replace));
    }
}
