//! Float divisions jump over what only unusual divisors need.
//!
//! Since version 2, the kernel's compiler writes the quotient of two floats as a product with a reciprocal. It scales divisors that are so
//! small or large that their reciprocal is no normal number, and it puts 1 in place of the quotient of equal numbers:
//!
//! ```text
//! E = bits(b) & 0x7f800000
//! s = E >= 200 << 23 ? 2^-32 : E == 0 ? 2^32 : 1
//! q = s * (a * (1 / (b * s)))
//! r = E != 0 && bits(b) & 0x7fffff != 0 && a == b ? 1 : q
//! ```
//!
//! Here the quotient is `a == b ? 1 : a * (1 / b)`, and code under the mask of the lanes with another exponent `E` has the whole for these. A
//! divisor that was converted from an integer needs no such code.
//!
//! Guarantees: every result is the same. Proof, by the exponent `E >> 23`:
//!
//! * From 1 to 199, `s` is 1, and multiplying by 1 changes nothing. The mantissa is 0 for powers of two alone. If `b` is one and equals `a`, its
//!   reciprocal is exact, and `q` is 1 anyway.
//! * Other lanes have what they had.
//! * An integer of up to 64 bits is 0, or its exponent is from 127 to 191. For 0, `b * s` is the 0 that `b` is. Its reciprocal is infinite, so the
//!   product with `a` is infinite or NaN, and multiplying that by `s` changes nothing. Equal numbers are tested for 0 there, as 0 / 0 is NaN.

use rustc_hash::FxHashMap;

use super::edit::{binary, const_op, copied, unary, uniform_const};
use crate::ssa::{
    BinOp, Block, BlockCall, Conv, FCond, Function, ICond, Inst, InstData, Lane, Op, Term, Ty,
    UnOp, Value,
};

/// Bits of a float.
const EXPONENT: u64 = 0x7f80_0000;
const MANTISSA: u64 = 0x007f_ffff;
/// A float's bits with the exponent 1, and with 200.
const LEAST: u64 = 1 << 23;
const LARGE: u64 = 200 << 23;

/// Most divisions of a function that are changed, as each is code of its own.
const MOST: usize = 16;

/// A division as the compiler writes it.
#[derive(Clone, Copy)]
struct Division {
    a: Value,
    b: Value,
    /// The divisor as an integer.
    bits: Value,
    result: Value,
}

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let mut changes = 0;
    for block in f.order.clone() {
        // The last one first: what stands in front of it keeps its place.
        for at in (0..f.block(block).insts.len()).rev() {
            let found = division(f, f.block(block).insts[at]);
            if let Some(found) = found.filter(|_| changes < MOST) {
                Rewrite::new(f, block, at, found).run();
                changes += 1;
            }
        }
    }
    f.resolve_aliases();
    changes
}

/// The division whose last operation this is.
fn division(f: &Function, i: Inst) -> Option<Division> {
    let result = *f.inst(i).results.first()?;
    let (special, one, quotient) = select(f, result)?;
    if f.ty(one).lane != Lane::F32 || !is_power(f, one, 0) {
        return None;
    }
    let (s, product) = binary(f, quotient, BinOp::FMul)?;
    let (a, inverse) = binary(f, product, BinOp::FMul)?;
    let (numerator, divisor) = binary(f, inverse, BinOp::FDiv)?;
    let (b, factor) = binary(f, divisor, BinOp::FMul)?;
    let inverts = factor == s && is_power(f, numerator, 0);

    let (large, down, rest) = select(f, s)?;
    let (small, up, unscaled) = select(f, rest)?;
    let scales = is_power(f, down, -32) && is_power(f, up, 32) && is_power(f, unscaled, 0);
    let exponent = compared(f, large, ICond::Uge, LARGE)?;
    let bits = masked(f, exponent, EXPONENT)?;
    let tests = compared(f, small, ICond::Eq, 0) == Some(exponent);

    let (is_usual, equal) = binary(f, special, BinOp::And)?;
    let (zero, round) = binary(f, unary(f, is_usual, UnOp::Not)?, BinOp::Or)?;
    let mantissa = masked(f, compared(f, round, ICond::Eq, 0)?, MANTISSA);
    let compares = |d: &InstData| d.op == Op::FCmp(FCond::Eq) && *d.args == [a, b];
    let is_equal = f.def_inst(equal).is_some_and(compares);
    let is_one = is_equal && zero == small && mantissa == Some(bits);

    let is_bits = bitcast(f, bits) == Some(b) || bitcast(f, b) == Some(bits);
    (inverts && scales && tests && is_one && is_bits).then_some(Division { a, b, bits, result })
}

fn select(f: &Function, v: Value) -> Option<(Value, Value, Value)> {
    let data = f.def_inst(v).filter(|d| d.op == Op::Select)?;
    Some((data.args[0], data.args[1], data.args[2]))
}

fn bitcast(f: &Function, v: Value) -> Option<Value> {
    let data = f.def_inst(v).filter(|d| d.op == Op::Bitcast)?;
    Some(data.args[0])
}

/// Whether `v` is 2 to this power.
fn is_power(f: &Function, v: Value, exponent: i32) -> bool {
    uniform_const(f, v) == Some(2f32.powi(exponent).to_bits().into())
}

/// What is compared with a number.
fn compared(f: &Function, v: Value, cond: ICond, with: u64) -> Option<Value> {
    let data = f.def_inst(v).filter(|d| d.op == Op::ICmp(cond))?;
    (uniform_const(f, data.args[1]) == Some(with)).then_some(data.args[0])
}

/// What has only these bits left.
fn masked(f: &Function, v: Value, bits: u64) -> Option<Value> {
    let (x, mask) = binary(f, v, BinOp::And)?;
    (uniform_const(f, mask) == Some(bits)).then_some(x)
}

/// A change of one division.
struct Rewrite<'f> {
    f: &'f mut Function,
    block: Block,
    /// What followed the division in its block.
    rest: Vec<Inst>,
    line: u32,
    d: Division,
    /// Type of the quotient, and of its bits.
    ty: Ty,
    ints: Ty,
}

impl<'f> Rewrite<'f> {
    fn new(f: &'f mut Function, block: Block, at: usize, d: Division) -> Rewrite<'f> {
        let mut rest = f.block_mut(block).insts.split_off(at);
        let last = rest.remove(0);
        let ty = f.ty(d.result);
        Rewrite {
            line: f.inst(last).line,
            f,
            block,
            rest,
            d,
            ty,
            ints: ty.with_lane(Lane::I32),
        }
    }

    fn run(mut self) {
        let usual = self.usual();
        if self.was_integer() {
            let rest = std::mem::take(&mut self.rest);
            self.f.block_mut(self.block).insts.extend(rest);
            self.f.replace(self.d.result, usual);
        } else {
            self.branch(usual);
        }
    }

    fn push(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        self.f.push1(self.block, op, args.to_vec(), ty, self.line)
    }

    fn konst(&mut self, ty: Ty, bits: u64) -> Value {
        self.push(const_op(ty, bits), &[], ty)
    }

    fn mask(&self) -> Ty {
        self.ty.with_lane(Lane::I1)
    }

    /// The divisor is the value of an integer.
    fn was_integer(&self) -> bool {
        let converts = |op: &Op| matches!(op, Op::Convert(Conv::SIToF | Conv::UIToF));
        self.f.def_inst(self.d.b).is_some_and(|d| converts(&d.op))
    }

    /// The quotient for usual divisors.
    fn usual(&mut self) -> Value {
        let (Division { a, b, .. }, ty) = (self.d, self.ty);
        let one = self.konst(ty, 1f32.to_bits().into());
        let inverse = self.push(Op::Binary(BinOp::FDiv), &[one, b], ty);
        let product = self.push(Op::Binary(BinOp::FMul), &[a, inverse], ty);
        let mut equal = self.push(Op::FCmp(FCond::Eq), &[a, b], self.mask());
        if self.was_integer() {
            let zero = self.konst(ty, 0);
            let other = self.push(Op::FCmp(FCond::Ne), &[b, zero], self.mask());
            equal = self.push(Op::Binary(BinOp::And), &[equal, other], self.mask());
        }
        self.push(Op::Select, &[equal, one, product], ty)
    }

    /// Lanes whose divisor is not usual.
    fn unusual(&mut self) -> Value {
        let ints = self.ints;
        let exponent = self.konst(ints, EXPONENT);
        let exponent = self.push(Op::Binary(BinOp::And), &[self.d.bits, exponent], ints);
        let down = self.konst(ints, LEAST.wrapping_neg() & ints.lane.mask());
        let above = self.push(Op::Binary(BinOp::Add), &[exponent, down], ints);
        let limit = self.konst(ints, LARGE - LEAST);
        self.push(Op::ICmp(ICond::Uge), &[above, limit], self.mask())
    }

    /// Ends the block by a branch to a copy of the division, and puts what followed into a block where both meet.
    fn branch(mut self, usual: Value) {
        let unusual = self.unusual();
        let cond = match self.ty.is_scalar() {
            true => unusual,
            false => self.push(Op::MaskAny, &[unusual], Ty::mask(1)),
        };
        let (block, line) = (self.block, self.line);
        let [copy, join] = [(); 2].map(|()| self.f.new_block());
        // Down to the operands of the division.
        let ends = [self.d.a, self.d.b, self.d.bits].map(|v| (v, v));
        let other = copied(self.f, copy, self.d.result, &mut FxHashMap::from_iter(ends));
        let args = vec![unusual, other, usual];
        let merged = self.f.push1(copy, Op::Select, args, self.ty, line);
        let to_join = |v| BlockCall {
            block: join,
            args: vec![v],
        };
        let f = self.f;
        f.block_mut(copy).term = Term::Jump(to_join(merged));
        f.block_mut(copy).term_line = line;
        let then = BlockCall {
            block: copy,
            args: Vec::new(),
        };
        let other = to_join(usual);
        let branch = Term::Branch { cond, then, other };
        let term = std::mem::replace(&mut f.block_mut(block).term, branch);
        let term_line = std::mem::replace(&mut f.block_mut(block).term_line, line);
        let quotient = f.add_param(join, self.ty);
        f.block_mut(join).insts = self.rest;
        f.block_mut(join).term = term;
        f.block_mut(join).term_line = term_line;
        f.replace(self.d.result, quotient);
    }
}
