//! Operations on both halves of 64-bit lanes, done once on the whole lanes.
//!
//! Compilers leave away the half that an operation does not change: `x | 1` is an operation on the low halves alone. It is made one on
//! the whole lanes, with a constant that changes nothing in the other half, where a pair has its result as an operand.
//!
//! Halves that were computed by themselves and put together, maybe for a shift of the whole lanes, are halves of these from there on: `x | x << n`
//! takes both. An operation needs one operand that is known to be a half of lanes without that, so that nothing is split that was not.

use rustc_hash::{FxHashMap, FxHashSet};

use super::halves::put_together;
use super::words::{half_of, is_low_half, scalar_half};
use crate::passes::edit::{binary, const_lanes, lanes_op, uniform_const};
use crate::ssa::dom::reverse_post_order;
use crate::ssa::{BinOp, Block, Conv, Function, Inst, Lane, Op, Ty, Value, ValueDef};

/// How deep it is looked for what low halves were computed from.
const DEPTH: usize = 4;

/// 64-bit lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum WholeLanes {
    /// A vector that is there.
    Value(Value),
    /// What a pair of this block becomes, by its number.
    Pair(usize),
}

/// What a value is a half of.
#[derive(Clone, Copy)]
struct Half {
    whole: WholeLanes,
    /// Lanes with the same other half: those that operations on this half alone began with.
    root: WholeLanes,
    high: bool,
    /// Whether it was there before the lanes, which were put together from it.
    is_source: bool,
}

/// An operand of an operation on halves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// Halves of lanes with this root.
    Wide(WholeLanes),
    /// The same for both halves: a mask.
    Same(Value),
    /// A constant for each half.
    Const,
}

/// An operation on halves, which the one on the other halves has too.
type Key = (Op, Vec<Part>);

/// One on halves of a kind that was seen.
struct Seen {
    inst: Inst,
    high: bool,
    args: Vec<Arg>,
}

/// An operand of an operation on halves, as far as the one on the other halves may have another.
enum Arg {
    Half(Half),
    Mask(Value),
    Const(Vec<u64>),
}

/// Two operations that become one, placed where the first of them is; or one on halves that the other halves do not have.
struct Pair {
    at: Inst,
    low: Option<Value>,
    high: Option<Value>,
    made: Made,
}

impl Pair {
    fn is_single(&self) -> bool {
        self.low.is_none() || self.high.is_none()
    }
}

/// What they become.
enum Made {
    /// The same operation on whole lanes.
    Same(Op, Vec<Whole>),
    /// The product of a vector and what is the same in all lanes.
    Product(Factor, By),
}

/// A vector of 64-bit lanes that is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Factor {
    /// One that is there.
    Whole(Value),
    /// Lanes of 32 bits, extended with their sign.
    Signed(Value),
}

/// What all lanes are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum By {
    /// A constant.
    Const(u64),
    /// A scalar of 32 bits, extended with its sign.
    Signed(Value),
    /// A scalar of 32 bits, extended with zeros.
    Unsigned(Value),
    /// A scalar of 64 bits.
    Wide(Value),
}

/// An operand of it.
enum Whole {
    Lanes(WholeLanes),
    Mask(Value),
    Const(Vec<u64>),
}

/// Halves that pairs of a block make. A chain of operations is found in one go so.
type Halves = FxHashMap<Value, Half>;

/// Replaces pairs.
pub(super) fn run(f: &mut Function) -> usize {
    let mut changes = 0;
    for b in reverse_post_order(f) {
        // What is in a pair as it stands is not taken for an operation on one half.
        let paired: FxHashSet<Value> = find(f, b, |_| false)
            .iter()
            .flat_map(|pair| pair.low.into_iter().chain(pair.high))
            .collect();
        let pairs = find(f, b, |v| !paired.contains(&v));
        let needed = needed(&pairs);
        changes += needed.iter().filter(|&&n| n).count();
        if needed.contains(&true) {
            place(f, b, &pairs, &needed);
        }
    }
    f.resolve_aliases();
    changes
}

/// Pairs of a block, each value in at most one, and operations on one half that `single` allows.
fn find(f: &Function, b: Block, single: impl Fn(Value) -> bool) -> Vec<Pair> {
    let mut seen: FxHashMap<Key, Seen> = FxHashMap::default();
    let mut products: FxHashMap<(Factor, By), Inst> = FxHashMap::default();
    let mut pairs: Vec<Pair> = Vec::new();
    let mut halves = Halves::default();
    let position: FxHashMap<Inst, usize> = f.block(b).insts.iter().copied().zip(0..).collect();
    // The same by the operands themselves: low halves may have been computed by themselves.
    let mut words: FxHashMap<(Value, Value), Inst> = FxHashMap::default();
    for &i in &f.block(b).insts {
        for product in low_products(f, i) {
            products.entry(product).or_insert(i);
        }
        if let Some(product) = word_product(f, i) {
            words.entry(product).or_insert(i);
        }
    }
    for &i in &f.block(b).insts {
        put_halves(f, i, &mut halves);
        if let Some((x, c, carried)) = high_product(f, i)
            && let Some(&low) = carried
                .and_then(|product| words.get(&product))
                .or_else(|| products.get(&(x, c)))
            && is_made_before(f, &position, x, low)
        {
            // It is in no other pair.
            for product in low_products(f, low) {
                products.remove(&product);
            }
            if let Some(product) = word_product(f, low) {
                words.remove(&product);
            }
            let at = if position.get(&low) < position.get(&i) {
                low
            } else {
                i
            };
            add(
                f,
                (&mut pairs, &mut halves),
                at,
                (low, i),
                Made::Product(x, c),
            );
            continue;
        }
        let Some((key, high, args)) = on_halves(f, &halves, i) else {
            continue;
        };
        if let Some(other) = seen.get(&key)
            && other.high != high
        {
            let (low, low_args, upper, high_args) = match high {
                true => (other.inst, &other.args, i, &args),
                false => (i, &args, other.inst, &other.args),
            };
            let at = other.inst;
            let made_before = |operand: &Whole| match operand {
                Whole::Lanes(WholeLanes::Pair(n)) => {
                    position.get(&pairs[*n].at) <= position.get(&at)
                }
                _ => true,
            };
            if let Some(operands) = whole_operands(low_args, high_args)
                && operands.iter().all(made_before)
            {
                let made = Made::Same(key.0.clone(), operands);
                seen.remove(&key);
                add(f, (&mut pairs, &mut halves), at, (low, upper), made);
                continue;
            }
        }
        if let Some(&result) = f.inst(i).results.first()
            && single(result)
            && let Some((operands, half)) = single_operands(&key.0, &args)
        {
            let number = pairs.len();
            let whole = WholeLanes::Pair(number);
            halves.insert(result, Half { whole, ..half });
            pairs.push(Pair {
                at: i,
                low: (!high).then_some(result),
                high: high.then_some(result),
                made: Made::Same(key.0.clone(), operands),
            });
        }
        seen.entry(key).or_insert(Seen {
            inst: i,
            high,
            args,
        });
    }
    pairs
}

/// False if the vector is made after the product of the low halves: these were computed by themselves then.
fn is_made_before(
    f: &Function,
    position: &FxHashMap<Inst, usize>,
    factor: Factor,
    low: Inst,
) -> bool {
    let (Factor::Whole(x) | Factor::Signed(x)) = factor;
    match f.def(x) {
        ValueDef::Result(made, _) => position
            .get(&made)
            .is_none_or(|at| position.get(&low).is_some_and(|low| at < low)),
        _ => true,
    }
}

/// Notes halves that an instruction puts together as halves of what it makes.
fn put_halves(f: &Function, i: Inst, halves: &mut Halves) {
    let Some(&lanes) = f.inst(i).results.first() else {
        return;
    };
    let Some((low, high)) = put_together(f, lanes).filter(|(low, high)| low != high) else {
        return;
    };
    for (v, high) in [(low, false), (high, true)] {
        let whole = WholeLanes::Value(lanes);
        let half = Half {
            whole,
            root: whole,
            high,
            is_source: true,
        };
        if half_of(f, v).is_none() {
            halves.entry(v).or_insert(half);
        }
    }
}

fn add(
    f: &Function,
    (pairs, halves): (&mut Vec<Pair>, &mut Halves),
    at: Inst,
    (low, high): (Inst, Inst),
    made: Made,
) {
    let (low, high) = (f.inst(low).results[0], f.inst(high).results[0]);
    let whole = WholeLanes::Pair(pairs.len());
    for (v, high) in [(low, false), (high, true)] {
        let root = whole;
        let half = Half {
            whole,
            root,
            high,
            is_source: false,
        };
        halves.insert(v, half);
    }
    pairs.push(Pair {
        at,
        low: Some(low),
        high: Some(high),
        made,
    });
}

/// Which of them are done: those on one half only if another takes what they make.
fn needed(pairs: &[Pair]) -> Vec<bool> {
    let mut needed: Vec<bool> = pairs.iter().map(|pair| !pair.is_single()).collect();
    for n in (0..pairs.len()).rev() {
        if let (true, Made::Same(_, operands)) = (needed[n], &pairs[n].made) {
            for operand in operands {
                if let Whole::Lanes(WholeLanes::Pair(taken)) = operand {
                    needed[*taken] = true;
                }
            }
        }
    }
    needed
}

/// An operation on low (false) or high halves that can be done on both at once.
fn on_halves(f: &Function, halves: &Halves, i: Inst) -> Option<(Key, bool, Vec<Arg>)> {
    let data = f.inst(i);
    let bitwise = matches!(data.op, Op::Binary(BinOp::And | BinOp::Or | BinOp::Xor));
    let result = *data.results.first()?;
    if !bitwise && data.op != Op::Select || f.ty(result).lane != Lane::I32 {
        return None;
    }
    let (mut parts, mut args, mut kind) = (Vec::new(), Vec::new(), None);
    for &a in &data.args {
        let a = f.resolve(a);
        let (part, arg) = if f.ty(a).lane == Lane::I1 {
            (Part::Same(a), Arg::Mask(a))
        } else if let Some(half) = half_in(f, halves, a) {
            if kind.is_some_and(|other| other != half.high) {
                return None;
            }
            kind = Some(half.high);
            (Part::Wide(half.root), Arg::Half(half))
        } else {
            (Part::Const, Arg::Const(const_lanes(f, a)?.to_vec()))
        };
        parts.push(part);
        args.push(arg);
    }
    let from_lanes = |arg: &Arg| matches!(arg, Arg::Half(half) if !half.is_source);
    if !args.iter().any(from_lanes) {
        return None;
    }
    Some(((data.op.clone(), parts), kind?, args))
}

/// As [`half_of`], also for what pairs make.
fn half_in(f: &Function, halves: &Halves, v: Value) -> Option<Half> {
    halves.get(&v).copied().or_else(|| {
        let (x, high) = half_of(f, v)?;
        let whole = WholeLanes::Value(x);
        Some(Half {
            whole,
            root: whole,
            high,
            is_source: false,
        })
    })
}

/// The operands of an operation on whole lanes, if those on the halves are halves of the same.
fn whole_operands(low: &[Arg], high: &[Arg]) -> Option<Vec<Whole>> {
    let operand = |(low, high): (&Arg, &Arg)| match (low, high) {
        (Arg::Mask(v), Arg::Mask(_)) => Some(Whole::Mask(*v)),
        (Arg::Const(low), Arg::Const(high)) => Some(Whole::Const(
            low.iter().zip(high).map(|(l, h)| l | h << 32).collect(),
        )),
        // One that was changed in one half only has the other half of its root.
        (Arg::Half(low), Arg::Half(high)) if high.whole == high.root => {
            Some(Whole::Lanes(low.whole))
        }
        (Arg::Half(low), Arg::Half(high)) if low.whole == low.root => {
            Some(Whole::Lanes(high.whole))
        }
        _ => None,
    };
    low.iter().zip(high).map(operand).collect()
}

/// The operands of an operation of a half and a constant on whole lanes, and the half.
fn single_operands(op: &Op, args: &[Arg]) -> Option<(Vec<Whole>, Half)> {
    let (half, consts) = match args {
        [Arg::Half(half), Arg::Const(consts)] | [Arg::Const(consts), Arg::Half(half)] => {
            (*half, consts)
        }
        _ => return None,
    };
    let low = u64::from(u32::MAX);
    let bits = consts.iter().map(|bits| {
        let placed = if half.high { bits << 32 } else { *bits };
        let kept = if half.high { low } else { !low };
        match op {
            Op::Binary(BinOp::And) => placed | kept,
            _ => placed,
        }
    });
    let operands = vec![Whole::Lanes(half.whole), Whole::Const(bits.collect())];
    Some((operands, half))
}

/// The products that this may be of the low halves of.
fn low_products(f: &Function, i: Inst) -> Vec<(Factor, By)> {
    let data = f.inst(i);
    if data.op != Op::Binary(BinOp::Mul) {
        return Vec::new();
    }
    let args = (data.args[0], data.args[1]);
    let whole = half_times(f, args, false).map(|(x, c)| (Factor::Whole(x), By::Const(c)));
    let words = times(f, args);
    let signed = words.filter(|&(x, _)| f.ty(x).lane == Lane::I32 && !f.ty(x).is_scalar());
    let signed = signed.map(|(x, c)| (Factor::Signed(x), By::Const(c)));
    let scalar = half_times_scalar(f, args, false).into_iter();
    let scalar = scalar.flat_map(|(x, y)| {
        let wide = scalar_half(f, y).filter(|&(_, high)| !high);
        let by = [By::Signed(y), By::Unsigned(y)].into_iter();
        let by = by.chain(wide.map(|(n, _)| By::Wide(n)));
        by.map(move |by| (Factor::Whole(x), by))
    });
    whole.into_iter().chain(signed).chain(scalar).collect()
}

/// A value and the constant that it is multiplied by.
fn times(f: &Function, (a, b): (Value, Value)) -> Option<(Value, u64)> {
    let (a, b) = (f.resolve(a), f.resolve(b));
    match uniform_const(f, b) {
        Some(c) => Some((a, c)),
        None => Some((b, uniform_const(f, a)?)),
    }
}

fn half_times(f: &Function, args: (Value, Value), high: bool) -> Option<(Value, u64)> {
    let (half, c) = times(f, args)?;
    let (x, kind) = half_of(f, half)?;
    (kind == high).then_some((x, c))
}

/// The same of a scalar that is not known.
fn half_times_scalar(f: &Function, args: (Value, Value), high: bool) -> Option<(Value, Value)> {
    let (half, scalar) = times_scalar(f, args)?;
    let (x, kind) = half_of(f, half)?;
    (kind == high).then_some((x, scalar))
}

/// A vector and the scalar that it is multiplied by.
fn times_scalar(f: &Function, (a, b): (Value, Value)) -> Option<(Value, Value)> {
    let of = |a: Value, b: Value| {
        let splat = f.def_inst(f.resolve(b)).filter(|d| d.op == Op::Splat)?;
        Some((f.resolve(a), f.resolve(splat.args[0])))
    };
    of(a, b).or_else(|| of(b, a))
}

/// The vector whose signs are multiplied: what its extension has in the high halves.
fn signs_times(f: &Function, args: (Value, Value)) -> Option<(Value, u64)> {
    let (signs, c) = times(f, args)?;
    let x = signs_of(f, signs)?;
    Some((x, c))
}

/// What a value has the signs of, of 32 bits.
fn signs_of(f: &Function, signs: Value) -> Option<Value> {
    let (x, count) = binary(f, signs, BinOp::AShr)?;
    let whole = uniform_const(f, f.resolve(count)) == Some(31);
    (whole && f.ty(x).lane == Lane::I32).then(|| f.resolve(x))
}

/// A product of a vector and a scalar.
fn word_product(f: &Function, i: Inst) -> Option<(Value, Value)> {
    let data = f.inst(i);
    let multiplies = data.op == Op::Binary(BinOp::Mul);
    multiplies.then(|| times_scalar(f, (data.args[0], data.args[1])))?
}

/// A 64-bit product, and of which words its low halves are the product if one is a scalar.
type Product = (Factor, By, Option<(Value, Value)>);

/// The 64-bit product that this is the high halves of: what the low halves' product carries, and the product of the high ones.
fn high_product(f: &Function, i: Inst) -> Option<Product> {
    let data = f.inst(i);
    (data.op == Op::Binary(BinOp::Add)).then_some(())?;
    let (a, b) = (f.resolve(data.args[0]), f.resolve(data.args[1]));
    let of = |v, w| {
        let (low, high) = (binary(f, v, BinOp::MulHiU)?, binary(f, w, BinOp::Mul)?);
        let whole = half_times(f, low, false).filter(|&x| half_times(f, high, true) == Some(x));
        let whole = whole.map(|(x, c)| (Factor::Whole(x), By::Const(c), None));
        let signed = || {
            let of = times(f, low)?;
            let same = signs_times(f, high) == Some(of);
            same.then_some((Factor::Signed(of.0), By::Const(of.1), None))
        };
        let scalar = || {
            let (x, scalar) = half_times_scalar(f, high, true)?;
            let (half, carried) = times_scalar(f, low)?;
            let same = carried == scalar && is_low_half(f, half, x, DEPTH);
            same.then_some((
                Factor::Whole(x),
                By::Unsigned(scalar),
                Some((half, carried)),
            ))
        };
        whole.or_else(signed).or_else(scalar)
    };
    let of = |v, w| of(v, w).or_else(|| high_product_of_scalar(f, v, w));
    of(a, b).or_else(|| of(b, a))
}

/// The same where the scalar has a high half that counts: it multiplies the low halves.
fn high_product_of_scalar(f: &Function, sum: Value, w: Value) -> Option<Product> {
    let (x, scalar) = half_times_scalar(f, binary(f, w, BinOp::Mul)?, true)?;
    let (a, b) = binary(f, sum, BinOp::Add)?;
    let of = |a, b| {
        let (half, carried) = times_scalar(f, binary(f, f.resolve(a), BinOp::MulHiU)?)?;
        let (other, upper) = times_scalar(f, binary(f, f.resolve(b), BinOp::Mul)?)?;
        if carried != scalar || ![half, other].iter().all(|&v| is_low_half(f, v, x, DEPTH)) {
            return None;
        }
        if signs_of(f, upper) == Some(scalar) {
            return Some((Factor::Whole(x), By::Signed(scalar), Some((half, carried))));
        }
        let (n, is_high) = scalar_half(f, scalar)?;
        let halves = !is_high && scalar_half(f, upper) == Some((n, true));
        halves.then_some((Factor::Whole(x), By::Wide(n), Some((half, carried))))
    };
    of(a, b).or_else(|| of(b, a))
}

/// Places what pairs become in front of the first of each.
fn place(f: &mut Function, b: Block, pairs: &[Pair], needed: &[bool]) {
    let insts = std::mem::take(&mut f.block_mut(b).insts);
    let mut out = Vec::with_capacity(insts.len());
    let mut here: FxHashMap<Inst, Vec<usize>> = FxHashMap::default();
    for (number, pair) in pairs.iter().enumerate().filter(|&(n, _)| needed[n]) {
        here.entry(pair.at).or_default().push(number);
    }
    // A pair stands in front of its first half, which an operand's pair stands in front of.
    let mut wholes: FxHashMap<usize, Value> = FxHashMap::default();
    for i in insts {
        for &number in here.get(&i).into_iter().flatten() {
            let pair = &pairs[number];
            let Some(narrow) = pair.low.or(pair.high).map(|v| f.ty(v)) else {
                continue;
            };
            let lanes = narrow.lanes;
            let line = f.inst(i).line;
            let mut emit = |f: &mut Function, op, args, ty| {
                let new = f.make(op, args, &[ty], line);
                out.push(new);
                f.inst(new).results[0]
            };
            let wide = Ty::vector(Lane::I64, lanes);
            let constant = |bits: u64| lanes_op(vec![bits; usize::from(lanes)]);
            let whole = match &pair.made {
                Made::Product(x, c) => {
                    let mut extended = |f: &mut Function, conv, s| {
                        let n = emit(f, Op::Convert(conv), vec![s], Ty::scalar(Lane::I64));
                        (Op::Splat, vec![n])
                    };
                    let (op, args) = match *c {
                        By::Const(c) => (constant(c), Vec::new()),
                        By::Signed(s) => extended(f, Conv::SExt, s),
                        By::Unsigned(s) => extended(f, Conv::ZExt, s),
                        By::Wide(n) => (Op::Splat, vec![n]),
                    };
                    let c = emit(f, op, args, wide);
                    let x = match *x {
                        Factor::Whole(x) => x,
                        Factor::Signed(x) => emit(f, Op::Convert(Conv::SExt), vec![x], wide),
                    };
                    emit(f, Op::Binary(BinOp::Mul), vec![x, c], wide)
                }
                Made::Same(op, operands) => {
                    let args = operands.iter().map(|operand| match operand {
                        Whole::Mask(v) | Whole::Lanes(WholeLanes::Value(v)) => Some(*v),
                        Whole::Lanes(WholeLanes::Pair(number)) => wholes.get(number).copied(),
                        Whole::Const(bits) => {
                            Some(emit(f, lanes_op(bits.clone()), Vec::new(), wide))
                        }
                    });
                    let Some(args) = args.collect::<Option<Vec<Value>>>() else {
                        continue;
                    };
                    emit(f, op.clone(), args, wide)
                }
            };
            wholes.insert(number, whole);
            let trunc = Op::Convert(Conv::Trunc);
            if let Some(v) = pair.low {
                let low = emit(f, trunc.clone(), vec![whole], narrow);
                f.replace(v, low);
            }
            if let Some(v) = pair.high {
                let count = emit(f, constant(32), Vec::new(), wide);
                let upper = emit(f, Op::Binary(BinOp::LShr), vec![whole, count], wide);
                let high = emit(f, trunc, vec![upper], narrow);
                f.replace(v, high);
            }
        }
        if !f.is_replaced(i) {
            out.push(i);
        }
    }
    f.block_mut(b).insts = out;
}
