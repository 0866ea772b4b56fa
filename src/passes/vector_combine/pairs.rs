//! Operations on both halves of 64-bit lanes, done once on the whole lanes.

use std::collections::HashMap;

use super::whole::half_of;
use crate::passes::edit::{binary, const_lanes, lanes_op, uniform_const};
use crate::ssa::dom::reverse_post_order;
use crate::ssa::{BinOp, Block, Conv, Function, ICond, Inst, Lane, Op, Ty, Value};

/// An operand of an operation on halves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// Halves of this vector.
    Wide(Value),
    /// The same for both halves: a mask.
    Same(Value),
    /// A constant for each half.
    Const,
}

/// An operation on halves, which the one on the other halves has too.
type Key = (Op, Vec<Part>);

/// One on halves of a kind that was seen, and its constants.
struct Seen {
    inst: Inst,
    high: bool,
    consts: Vec<Bits>,
}

/// Lanes of an operand, if it is a constant.
type Bits = Option<Vec<u64>>;

/// Two operations that become one, placed where the first of them is.
struct Pair {
    at: Inst,
    low: Value,
    high: Value,
    made: Made,
}

/// What they become.
enum Made {
    /// The same operation on whole lanes.
    Same(Op, Vec<Whole>),
    /// The product of a vector and a constant.
    Product(Value, u64),
}

/// An operand of it.
enum Whole {
    Value(Value),
    Const(Vec<u64>),
}

/// Replaces pairs.
pub(super) fn run(f: &mut Function) -> usize {
    let mut changes = 0;
    for b in reverse_post_order(f) {
        let pairs = find(f, b);
        changes += pairs.len();
        if !pairs.is_empty() {
            place(f, b, &pairs);
        }
        changes += comparisons(f, b);
    }
    f.resolve_aliases();
    changes
}

/// Pairs of a block, each value in at most one.
fn find(f: &Function, b: Block) -> Vec<Pair> {
    let mut seen: HashMap<Key, Seen> = HashMap::new();
    let mut products: HashMap<(Value, u64), Inst> = HashMap::new();
    let mut pairs = Vec::new();
    let position: HashMap<Inst, usize> = f.block(b).insts.iter().copied().zip(0..).collect();
    for &i in &f.block(b).insts {
        if let Some((x, c)) = low_product(f, i) {
            products.entry((x, c)).or_insert(i);
        }
    }
    for &i in &f.block(b).insts {
        if let Some((x, c)) = high_product(f, i)
            && let Some(&low) = products.get(&(x, c))
        {
            let at = if position.get(&low) < position.get(&i) {
                low
            } else {
                i
            };
            products.remove(&(x, c));
            pairs.push(Pair {
                at,
                low: f.inst(low).results[0],
                high: f.inst(i).results[0],
                made: Made::Product(x, c),
            });
            continue;
        }
        let Some((key, high, consts)) = on_halves(f, i) else {
            continue;
        };
        match seen.remove(&key) {
            Some(other) if other.high != high => {
                let [low, high] = if high {
                    [other.inst, i]
                } else {
                    [i, other.inst]
                };
                let (low_consts, high_consts) = match low == i {
                    true => (&consts, &other.consts),
                    false => (&other.consts, &consts),
                };
                pairs.push(Pair {
                    at: other.inst,
                    low: f.inst(low).results[0],
                    high: f.inst(high).results[0],
                    made: Made::Same(key.0, whole_operands(&key.1, low_consts, high_consts)),
                });
            }
            Some(other) => drop(seen.insert(key, other)),
            None => drop(seen.insert(
                key,
                Seen {
                    inst: i,
                    high,
                    consts,
                },
            )),
        }
    }
    pairs
}

/// An operation on low (false) or high halves that can be done on both at once.
fn on_halves(f: &Function, i: Inst) -> Option<(Key, bool, Vec<Bits>)> {
    let data = f.inst(i);
    let bitwise = matches!(data.op, Op::Binary(BinOp::And | BinOp::Or | BinOp::Xor));
    let result = *data.results.first()?;
    if !bitwise && data.op != Op::Select || f.ty(result).lane != Lane::I32 {
        return None;
    }
    let (mut parts, mut consts, mut kind) = (Vec::new(), Vec::new(), None);
    for &a in &data.args {
        let a = f.resolve(a);
        let mut bits = None;
        parts.push(if f.ty(a).lane == Lane::I1 {
            Part::Same(a)
        } else if let Some((x, high)) = half_of(f, a) {
            if kind.is_some_and(|other| other != high) {
                return None;
            }
            kind = Some(high);
            Part::Wide(x)
        } else {
            bits = Some(const_lanes(f, a)?.to_vec());
            Part::Const
        });
        consts.push(bits);
    }
    Some(((data.op.clone(), parts), kind?, consts))
}

fn whole_operands(parts: &[Part], low: &[Bits], high: &[Bits]) -> Vec<Whole> {
    let operand = |(part, (low, high)): (&Part, (&Bits, &Bits))| match part {
        Part::Wide(v) | Part::Same(v) => Whole::Value(*v),
        Part::Const => {
            let lanes = low.iter().flatten().zip(high.iter().flatten());
            Whole::Const(lanes.map(|(l, h)| l | h << 32).collect())
        }
    };
    parts
        .iter()
        .zip(low.iter().zip(high))
        .map(operand)
        .collect()
}

/// The vector and the constant of a product of its low halves.
fn low_product(f: &Function, i: Inst) -> Option<(Value, u64)> {
    let data = f.inst(i);
    (data.op == Op::Binary(BinOp::Mul)).then_some(())?;
    half_times(f, (data.args[0], data.args[1]), false)
}

fn half_times(f: &Function, (a, b): (Value, Value), high: bool) -> Option<(Value, u64)> {
    let (a, b) = (f.resolve(a), f.resolve(b));
    let (half, c) = match uniform_const(f, b) {
        Some(c) => (a, c),
        None => (b, uniform_const(f, a)?),
    };
    let (x, kind) = half_of(f, half)?;
    (kind == high).then_some((x, c))
}

/// The same of the high halves of the 64-bit product: what the low halves' product carries, and the product of the high ones.
fn high_product(f: &Function, i: Inst) -> Option<(Value, u64)> {
    let data = f.inst(i);
    (data.op == Op::Binary(BinOp::Add)).then_some(())?;
    let (a, b) = (f.resolve(data.args[0]), f.resolve(data.args[1]));
    let carried = |v| half_times(f, binary(f, v, BinOp::MulHiU)?, false);
    let product = |v| half_times(f, binary(f, v, BinOp::Mul)?, true);
    let of = |v, w| {
        let (low, high) = (carried(v)?, product(w)?);
        (low == high).then_some(low)
    };
    of(a, b).or_else(|| of(b, a))
}

/// Places what pairs become in front of the first of each.
fn place(f: &mut Function, b: Block, pairs: &[Pair]) {
    let insts = std::mem::take(&mut f.block_mut(b).insts);
    let mut out = Vec::with_capacity(insts.len());
    for i in insts {
        for pair in pairs.iter().filter(|pair| pair.at == i) {
            let lanes = f.ty(pair.low).lanes;
            let line = f.inst(i).line;
            let mut emit = |f: &mut Function, op, args, ty| {
                let new = f.make(op, args, &[ty], line);
                out.push(new);
                f.inst(new).results[0]
            };
            let (narrow, wide) = (f.ty(pair.low), Ty::vector(Lane::I64, lanes));
            let constant = |bits: u64| lanes_op(vec![bits; usize::from(lanes)]);
            let whole = match &pair.made {
                Made::Product(x, c) => {
                    let c = emit(f, constant(*c), Vec::new(), wide);
                    emit(f, Op::Binary(BinOp::Mul), vec![*x, c], wide)
                }
                Made::Same(op, operands) => {
                    let mut args = Vec::new();
                    for operand in operands {
                        args.push(match operand {
                            Whole::Value(v) => *v,
                            Whole::Const(bits) => emit(f, lanes_op(bits.clone()), Vec::new(), wide),
                        });
                    }
                    emit(f, op.clone(), args, wide)
                }
            };
            let trunc = Op::Convert(Conv::Trunc);
            let low = emit(f, trunc.clone(), vec![whole], narrow);
            let count = emit(f, constant(32), Vec::new(), wide);
            let upper = emit(f, Op::Binary(BinOp::LShr), vec![whole, count], wide);
            let high = emit(f, trunc, vec![upper], narrow);
            f.replace(pair.low, low);
            f.replace(pair.high, high);
        }
        if !f.is_replaced(i) {
            out.push(i);
        }
    }
    f.block_mut(b).insts = out;
}

/// Conjunctions of "equal" of both halves, and disjunctions of "not equal".
fn comparisons(f: &mut Function, b: Block) -> usize {
    let mut changes = 0;
    for i in f.block(b).insts.clone() {
        let Some((cmp, x, y)) = compared(f, i) else {
            continue;
        };
        let (line, ty) = (f.inst(i).line, f.ty(x));
        let y = match y {
            Whole::Value(y) => y,
            Whole::Const(bits) => {
                let new = f.make(lanes_op(bits), Vec::new(), &[ty], line);
                let at = f.block(b).insts.iter().position(|&k| k == i).unwrap_or(0);
                f.block_mut(b).insts.insert(at, new);
                f.inst(new).results[0]
            }
        };
        let data = f.inst_mut(i);
        (data.op, data.args) = (Op::ICmp(cmp), vec![x, y]);
        changes += 1;
    }
    changes
}

fn compared(f: &Function, i: Inst) -> Option<(ICond, Value, Whole)> {
    let data = f.inst(i);
    let cmp = match data.op {
        Op::Binary(BinOp::And) => ICond::Eq,
        Op::Binary(BinOp::Or) => ICond::Ne,
        _ => return None,
    };
    let side = |v: Value| {
        let data = f.def_inst(f.resolve(v)).filter(|d| d.op == Op::ICmp(cmp))?;
        let (a, b) = (f.resolve(data.args[0]), f.resolve(data.args[1]));
        let (x, high) = half_of(f, a)?;
        Some((x, high, b))
    };
    let (x, first_high, a) = side(data.args[0])?;
    let (y, second_high, b) = side(data.args[1])?;
    if x != y || first_high == second_high {
        return None;
    }
    let (low, high) = if first_high { (b, a) } else { (a, b) };
    if let (Some((u, false)), Some((v, true))) = (half_of(f, low), half_of(f, high)) {
        return (u == v).then_some((cmp, x, Whole::Value(u)));
    }
    let lanes = const_lanes(f, low)?.iter().zip(const_lanes(f, high)?);
    Some((
        cmp,
        x,
        Whole::Const(lanes.map(|(l, h)| l | h << 32).collect()),
    ))
}
