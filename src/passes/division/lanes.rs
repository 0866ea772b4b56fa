//! What one lane of a value computes, in a form that does not tell how it was written.
//!
//! A 64-bit number is the same whether it is a lane of 64 bits, two lanes of 32 bits side by side, or a pair of vectors; a lane is the same
//! in a vector of sixteen and in one of thirty-two. Two expressions with the same number compute the same; of others nothing is
//! said.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ssa::{BinOp, Conv, ICond, Op, UnOp, Value};

/// An expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Expr(u32);

/// How an expression is made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// These bits.
    Const(u64),
    /// A lane of a value that is not looked into.
    Leaf(Value, u16),
    /// The low half of 64 bits.
    Low(Expr),
    /// The high half of 64 bits.
    High(Expr),
    /// 64 bits of a low and a high half.
    Concat(Expr, Expr),
    /// A lane-wise operation.
    Op(Op, Vec<Expr>),
    /// The first where any lane of a mask is set, else the second.
    Either(Value, Expr, Expr),
    /// A lane of a value that is made of all these.
    Opaque(Value, u16, Vec<Expr>),
    /// Something of which nothing is known.
    Unknown(u32),
}

/// What is taken to be true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Whether a lane of a mask is set.
    pub mask: Option<((Value, u16), bool)>,
    /// Whether one number is below the other, unsigned.
    pub less: Option<((Expr, Expr), bool)>,
}

/// Expressions by number.
#[derive(Default)]
pub(super) struct Exprs {
    nodes: Vec<(Node, u32)>,
    numbers: FxHashMap<(Node, u32), Expr>,
    /// What is taken to be true.
    pub facts: Facts,
    /// Comparisons of 64-bit numbers that were made.
    pub compared: Vec<(Expr, Expr)>,
    /// Lanes of masks that were looked at.
    pub masks: Vec<(Value, u16)>,
}

impl Exprs {
    fn make(&mut self, node: Node, bits: u32) -> Expr {
        let key = (node, bits);
        if let Some(&known) = self.numbers.get(&key) {
            return known;
        }
        let number = Expr(self.nodes.len() as u32);
        self.nodes.push(key.clone());
        self.numbers.insert(key, number);
        number
    }

    /// Number of expressions.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn node(&self, e: Expr) -> &Node {
        &self.nodes[e.0 as usize].0
    }

    pub(super) fn bits(&self, e: Expr) -> u32 {
        self.nodes[e.0 as usize].1
    }

    pub(super) fn constant(&mut self, bits: u32, value: u64) -> Expr {
        self.make(Node::Const(value), bits)
    }

    fn value(&self, e: Expr) -> Option<u64> {
        match *self.node(e) {
            Node::Const(bits) => Some(bits),
            _ => None,
        }
    }

    /// True for a constant with all bits set.
    pub(super) fn is_ones(&self, e: Expr) -> bool {
        self.value(e) == Some(u64::MAX >> (64 - self.bits(e)))
    }

    pub(super) fn is_zero(&self, e: Expr) -> bool {
        self.value(e) == Some(0)
    }

    pub(super) fn unknown(&mut self, bits: u32) -> Expr {
        let new = self.nodes.len() as u32;
        self.make(Node::Unknown(new), bits)
    }

    pub(super) fn either(&mut self, mask: Value, a: Expr, b: Expr) -> Expr {
        let bits = self.bits(a);
        self.make(Node::Either(mask, a, b), bits)
    }

    pub(super) fn opaque(&mut self, v: Value, lane: u16, of: Vec<Expr>, bits: u32) -> Expr {
        self.make(Node::Opaque(v, lane, of), bits)
    }

    /// True when an expression may depend on another. `without` are some that do not, and those that are found.
    pub(super) fn depends(&self, e: Expr, on: Expr, without: &mut FxHashSet<Expr>) -> bool {
        if e == on {
            return true;
        }
        if !without.insert(e) {
            return false;
        }
        let mut any = |of: &[Expr]| of.iter().any(|&e| self.depends(e, on, without));
        match self.node(e) {
            Node::Const(_) | Node::Leaf(..) => false,
            Node::Low(x) | Node::High(x) => any(&[*x]),
            Node::Concat(x, y) | Node::Either(_, x, y) => any(&[*x, *y]),
            Node::Op(_, of) | Node::Opaque(_, _, of) => any(of),
            Node::Unknown(_) => true,
        }
    }

    pub(super) fn leaf(&mut self, v: Value, lane: u16, bits: u32) -> Expr {
        if bits == 1 {
            if let Some((known, set)) = self.facts.mask
                && known == (v, lane)
            {
                return self.constant(1, set.into());
            }
            if !self.masks.contains(&(v, lane)) {
                self.masks.push((v, lane));
            }
        }
        self.make(Node::Leaf(v, lane), bits)
    }

    pub(super) fn low(&mut self, e: Expr) -> Expr {
        match *self.node(e) {
            Node::Const(bits) => self.constant(32, bits & 0xffff_ffff),
            Node::Concat(low, _) => low,
            _ => self.make(Node::Low(e), 32),
        }
    }

    pub(super) fn high(&mut self, e: Expr) -> Expr {
        match *self.node(e) {
            Node::Const(bits) => self.constant(32, bits >> 32),
            Node::Concat(_, high) => high,
            _ => self.make(Node::High(e), 32),
        }
    }

    pub(super) fn concat(&mut self, low: Expr, high: Expr) -> Expr {
        match self.joined(low, high) {
            Some(whole) => whole,
            None => self.make(Node::Concat(low, high), 64),
        }
    }

    /// The 64 bits of two halves, if they are known as one number.
    fn joined(&mut self, low: Expr, high: Expr) -> Option<Expr> {
        match (self.node(low).clone(), self.node(high).clone()) {
            (Node::Low(x), Node::High(y)) if x == y => Some(x),
            (Node::Const(x), Node::Const(y)) => Some(self.constant(64, x | y << 32)),
            // Of a 64-bit number and a constant without high bits.
            (Node::Op(Op::Binary(BinOp::And), args), Node::Const(0)) => {
                let (x, c) = (args[0], self.value(args[1])?);
                let Node::Low(x) = *self.node(x) else {
                    return None;
                };
                let c = self.constant(64, c);
                Some(self.make(Node::Op(Op::Binary(BinOp::And), vec![x, c]), 64))
            }
            (Node::Op(Op::Binary(BinOp::Or), args), Node::Op(Op::Binary(BinOp::Or), others)) => {
                let ([p, q], [r, s]) = (
                    <[Expr; 2]>::try_from(args).ok()?,
                    <[Expr; 2]>::try_from(others).ok()?,
                );
                let straight = self.joined(p, r).zip(self.joined(q, s));
                let (a, b) = straight.or_else(|| self.joined(p, s).zip(self.joined(q, r)))?;
                Some(self.bitwise(BinOp::Or, a, b))
            }
            // The other operand has no high bits.
            (Node::Op(Op::Binary(BinOp::Or), args), Node::High(whole)) => {
                let zero = self.constant(32, 0);
                let at = args
                    .iter()
                    .position(|&a| *self.node(a) == Node::Low(whole))?;
                let rest = self.joined(args[1 - at], zero)?;
                Some(self.bitwise(BinOp::Or, whole, rest))
            }
            _ => None,
        }
    }

    /// `and`, `or`, `xor` of numbers of any width.
    pub(super) fn bitwise(&mut self, op: BinOp, a: Expr, b: Expr) -> Expr {
        let bits = self.bits(a);
        // Constants stand on the right.
        let (a, b) = if (self.value(a).is_some(), a) > (self.value(b).is_some(), b) {
            (b, a)
        } else {
            (a, b)
        };
        if a == b {
            return if op == BinOp::Xor {
                self.constant(bits, 0)
            } else {
                a
            };
        }
        if let (Some(x), Some(y)) = (self.value(a), self.value(b)) {
            let value = match op {
                BinOp::And => x & y,
                BinOp::Or => x | y,
                _ => x ^ y,
            };
            return self.constant(bits, value);
        }
        match (op, self.is_zero(b), self.is_ones(b)) {
            (BinOp::And, true, _) | (BinOp::Or, _, true) => return b,
            (BinOp::And, _, true) | (BinOp::Or | BinOp::Xor, true, _) => return a,
            (BinOp::Xor, _, true) => return self.not(a),
            _ => {}
        }
        if let Some(known) = self
            .with_complement(op, a, b)
            .or_else(|| self.with_complement(op, b, a))
        {
            return known;
        }
        let pair = |e: Expr| matches!(self.node(e), Node::Concat(..));
        let halves = self
            .value(b)
            .is_some_and(|c| matches!(c, 0xffff_ffff | 0xffff_ffff_0000_0000));
        if bits == 64 && (pair(a) || pair(b) || halves) {
            let (low_a, low_b) = (self.low(a), self.low(b));
            let (high_a, high_b) = (self.high(a), self.high(b));
            let low = self.bitwise(op, low_a, low_b);
            let high = self.bitwise(op, high_a, high_b);
            return self.concat(low, high);
        }
        if bits == 1
            && op == BinOp::Or
            && let Some(known) = self
                .compared_halves(a, b)
                .or_else(|| self.compared_halves(b, a))
        {
            return known;
        }
        self.make(Node::Op(Op::Binary(op), vec![a, b]), bits)
    }

    /// `a ^ (x & !a)` is `a | x`; a number with its complement is none or all bits.
    fn with_complement(&mut self, op: BinOp, a: Expr, b: Expr) -> Option<Expr> {
        let bits = self.bits(a);
        let complement = |s: &Self, e: Expr| match s.node(e) {
            Node::Op(Op::Unary(UnOp::Not), args) => args.first().copied(),
            _ => None,
        };
        if complement(self, b) == Some(a) {
            return Some(match op {
                BinOp::And => self.constant(bits, 0),
                _ => self.constant(bits, u64::MAX >> (64 - bits)),
            });
        }
        match self.node(b) {
            Node::Op(Op::Binary(BinOp::And), args) if op == BinOp::Xor => {
                let [p, q] = [args[0], args[1]];
                let x = match (complement(self, p), complement(self, q)) {
                    (_, Some(n)) if n == a => p,
                    (Some(n), _) if n == a => q,
                    _ => return None,
                };
                Some(self.bitwise(BinOp::Or, a, x))
            }
            _ => None,
        }
    }

    pub(super) fn not(&mut self, e: Expr) -> Expr {
        let bits = self.bits(e);
        match self.node(e) {
            Node::Const(value) => self.constant(bits, !value & (u64::MAX >> (64 - bits))),
            Node::Op(Op::Unary(UnOp::Not), args) => args[0],
            _ => self.make(Node::Op(Op::Unary(UnOp::Not), vec![e]), bits),
        }
    }

    pub(super) fn neg(&mut self, e: Expr) -> Expr {
        let bits = self.bits(e);
        match self.node(e) {
            Node::Const(value) => {
                self.constant(bits, value.wrapping_neg() & (u64::MAX >> (64 - bits)))
            }
            _ => self.make(Node::Op(Op::Unary(UnOp::Neg), vec![e]), bits),
        }
    }

    pub(super) fn add(&mut self, a: Expr, b: Expr) -> Expr {
        if self.is_zero(a) {
            return b;
        }
        if self.is_zero(b) {
            return a;
        }
        let args = if a < b { vec![a, b] } else { vec![b, a] };
        self.make(Node::Op(Op::Binary(BinOp::Add), args), self.bits(a))
    }

    /// A shift, whose count is taken modulo the width.
    pub(super) fn shift(&mut self, op: BinOp, a: Expr, count: Expr) -> Expr {
        let bits = self.bits(a);
        if bits == 64 && self.value(count).is_some_and(|c| c % 64 == 32) {
            let zero = self.constant(32, 0);
            match op {
                BinOp::Shl => {
                    let low = self.low(a);
                    return self.concat(zero, low);
                }
                BinOp::LShr => {
                    let high = self.high(a);
                    return self.concat(high, zero);
                }
                _ => {}
            }
        }
        self.make(Node::Op(Op::Binary(op), vec![a, count]), bits)
    }

    pub(super) fn select(&mut self, mask: Expr, a: Expr, b: Expr) -> Expr {
        match self.value(mask) {
            Some(0) => b,
            Some(_) => a,
            None if a == b => a,
            None => {
                let bits = self.bits(a);
                self.make(Node::Op(Op::Select, vec![mask, a, b]), bits)
            }
        }
    }

    /// `a < b`, unsigned.
    pub(super) fn less(&mut self, a: Expr, b: Expr) -> Expr {
        if self.bits(a) == 64 {
            if let Some((known, less)) = self.facts.less
                && known == (a, b)
            {
                return self.constant(1, less.into());
            }
            if !self.compared.contains(&(a, b)) {
                self.compared.push((a, b));
            }
        }
        self.make(Node::Op(Op::ICmp(ICond::Ult), vec![a, b]), 1)
    }

    pub(super) fn compare(&mut self, cond: ICond, a: Expr, b: Expr) -> Expr {
        match cond {
            ICond::Ult => self.less(a, b),
            ICond::Ugt => self.less(b, a),
            ICond::Uge => {
                let less = self.less(a, b);
                self.not(less)
            }
            ICond::Ule => {
                let less = self.less(b, a);
                self.not(less)
            }
            ICond::Eq | ICond::Ne => {
                let args = if a < b { vec![a, b] } else { vec![b, a] };
                let equal = self.make(Node::Op(Op::ICmp(ICond::Eq), args), 1);
                if cond == ICond::Eq {
                    equal
                } else {
                    self.not(equal)
                }
            }
            _ => self.make(Node::Op(Op::ICmp(cond), vec![a, b]), 1),
        }
    }

    /// A comparison of 64-bit numbers by halves: `both` has the low halves compared where the high ones are equal, `high` compares those.
    fn compared_halves(&mut self, both: Expr, high: Expr) -> Option<Expr> {
        let args = |s: &Self, e: Expr, op: &Op| match s.node(e) {
            Node::Op(o, args) if o == op => <[Expr; 2]>::try_from(args.clone()).ok(),
            _ => None,
        };
        let and = Op::Binary(BinOp::And);
        let [p, q] = args(self, both, &and)?;
        let [high_a, high_b] = args(self, high, &Op::ICmp(ICond::Ult))?;
        let equal = Op::ICmp(ICond::Eq);
        let (low, same) = match args(self, q, &equal) {
            Some(same) => (p, same),
            None => (q, args(self, p, &equal)?),
        };
        if same != [high_a, high_b] && same != [high_b, high_a] {
            return None;
        }
        if let Some([low_a, low_b]) = args(self, low, &Op::ICmp(ICond::Ult)) {
            let (a, b) = (self.concat(low_a, high_a), self.concat(low_b, high_b));
            return Some(self.less(a, b));
        }
        // Not below: the high half above, or equal and the low half not below.
        let Node::Op(Op::Unary(UnOp::Not), inner) = self.node(low).clone() else {
            return None;
        };
        let [low_a, low_b] = args(self, inner[0], &Op::ICmp(ICond::Ult))?;
        let (a, b) = (self.concat(low_a, high_b), self.concat(low_b, high_a));
        let less = self.less(a, b);
        Some(self.not(less))
    }

    /// A lane-wise operation.
    pub(super) fn op(&mut self, op: &Op, args: &[Expr], bits: u32) -> Expr {
        match (op, args) {
            (Op::Binary(op @ (BinOp::And | BinOp::Or | BinOp::Xor)), &[a, b]) => {
                self.bitwise(*op, a, b)
            }
            (Op::Binary(BinOp::Add), &[a, b]) => self.add(a, b),
            (Op::Binary(BinOp::Sub), &[a, b]) => {
                let b = self.neg(b);
                self.add(a, b)
            }
            (Op::Binary(op @ (BinOp::Shl | BinOp::LShr | BinOp::AShr)), &[a, count]) => {
                self.shift(*op, a, count)
            }
            (Op::Unary(UnOp::Not), &[a]) => self.not(a),
            (Op::Unary(UnOp::Neg), &[a]) => self.neg(a),
            (Op::Select, &[mask, a, b]) => self.select(mask, a, b),
            (Op::ICmp(cond), &[a, b]) => self.compare(*cond, a, b),
            (Op::Convert(Conv::Trunc), &[a]) if self.bits(a) == 64 && bits == 32 => self.low(a),
            (Op::Convert(Conv::ZExt), &[a]) if self.bits(a) == 32 && bits == 64 => {
                let zero = self.constant(32, 0);
                self.concat(a, zero)
            }
            _ => self.make(Node::Op(op.clone(), args.to_vec()), bits),
        }
    }
}
