//! Comparisons whose result is a mask: each is made once, and low bits of 64-bit lanes are tested without cutting them out first.

use inkwell::values::InstructionOpcode as I;
use rustc_hash::FxHashMap;

use super::emit::{EmitResult, LlvmEmitter, V};
use super::ops::int_predicate;
use crate::backend::uses;
use crate::ssa::{BinOp, Conv, Function, ICond, Lane, Op, UnOp, Value};

/// What is known about the comparisons of a function.
pub(super) struct Comparisons {
    /// Of `m & !c`, `m`, and `m & c`, which the same block has made before.
    rests: FxHashMap<Value, (Value, Value)>,
    /// How often each value is read.
    reads: Vec<u32>,
}

impl Comparisons {
    pub(super) fn new(f: &Function) -> Comparisons {
        let mut rests = FxHashMap::default();
        for &b in &f.order {
            let mut both: FxHashMap<(Value, Value), Value> = FxHashMap::default();
            for data in f.block(b).insts.iter().map(|&i| f.inst(i)) {
                let (Op::Binary(BinOp::And), &[x, y], &[out]) =
                    (&data.op, data.args.as_slice(), data.results.as_slice())
                else {
                    continue;
                };
                let ty = f.ty(out);
                if ty.lane != Lane::I1 || ty.is_scalar() {
                    continue;
                }
                for (mask, other) in [(x, y), (y, x)] {
                    let inverted = f.def_inst(other);
                    let inverted = inverted.filter(|data| data.op == Op::Unary(UnOp::Not));
                    if let Some(&made) = inverted.and_then(|data| both.get(&(mask, data.args[0]))) {
                        rests.insert(out, (mask, made));
                    }
                    both.insert((mask, other), out);
                }
            }
        }
        Comparisons {
            rests,
            reads: uses::counts(f),
        }
    }
}

impl<'c> LlvmEmitter<'c, '_> {
    /// `m & !c`, where the block has made `m & c`: what that leaves of `m`. LLVM would invert the comparison, which is then made twice.
    pub(super) fn rest_of_mask(&mut self, out: Value) -> EmitResult<Option<V<'c>>> {
        let Some(&(mask, part)) = self.comparisons.rests.get(&out) else {
            return Ok(None);
        };
        let (mask, part) = (self.get(mask)?, self.get(part)?);
        self.op2(I::Xor, mask, part).map(Some)
    }

    /// A test of bits that are cut out of 64-bit lanes for it alone, in the lanes as they are.
    pub(super) fn test_of_bits(
        &mut self,
        cond: ICond,
        args: &[Value],
    ) -> EmitResult<Option<V<'c>>> {
        let Some((wide, bits)) = self.cut_bits(cond, args) else {
            return Ok(None);
        };
        let ty = self.ty(wide);
        let (wide, bits, zero) = (self.get(wide)?, self.konst(ty, bits)?, self.konst(ty, 0)?);
        let found = self.op2(I::And, wide, bits)?;
        self.icmp(int_predicate(cond), found, zero).map(Some)
    }

    /// The 64-bit lanes of which a comparison tests some low bits, and those bits.
    fn cut_bits(&self, cond: ICond, args: &[Value]) -> Option<(Value, u64)> {
        let f = self.f;
        let once = |v: Value| self.comparisons.reads[v.0 as usize] == 1;
        let &[tested, zero] = args else { return None };
        if !matches!(cond, ICond::Eq | ICond::Ne)
            || self.uniform_const(zero) != Some(0)
            || !once(tested)
        {
            return None;
        }
        let and = f.def_inst(tested)?;
        let (Op::Binary(BinOp::And), &[cut, bits]) = (&and.op, and.args.as_slice()) else {
            return None;
        };
        let bits = self.uniform_const(bits)?;
        let trunc = f.def_inst(cut).filter(|_| once(cut))?;
        let wide = *trunc.args.first()?;
        let fits = trunc.op == Op::Convert(Conv::Trunc) && f.ty(wide).lane == Lane::I64;
        fits.then_some((wide, bits))
    }
}
