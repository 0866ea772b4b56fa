//! One SSA instruction at a time: finds the translation of the operands, calls the file that knows the operation, and binds the
//! result.

use inkwell::values::{InstructionOpcode as I, IntValue};
use inkwell::{AtomicOrdering, FloatPredicate, IntPredicate};

use super::emit::{EmitResult, InternalError, LlvmEmitter, V};
use super::types::padded_lanes;
use super::vectors::low_bits;
use crate::backend::SCALE_BIAS;
use crate::ssa::fp_env::CR0_PLAIN;
use crate::ssa::{BinOp, Conv, FCond, FpEnvOp, ICond, Inst, InstData, Lane, Op, Ty, UnOp, Value};

pub(super) const fn int_predicate(cond: ICond) -> IntPredicate {
    match cond {
        ICond::Eq => IntPredicate::EQ,
        ICond::Ne => IntPredicate::NE,
        ICond::Slt => IntPredicate::SLT,
        ICond::Sle => IntPredicate::SLE,
        ICond::Sgt => IntPredicate::SGT,
        ICond::Sge => IntPredicate::SGE,
        ICond::Ult => IntPredicate::ULT,
        ICond::Ule => IntPredicate::ULE,
        ICond::Ugt => IntPredicate::UGT,
        ICond::Uge => IntPredicate::UGE,
    }
}

const fn float_predicate(cond: FCond) -> FloatPredicate {
    match cond {
        FCond::Eq => FloatPredicate::OEQ,
        FCond::Ne => FloatPredicate::UNE,
        FCond::Lt => FloatPredicate::OLT,
        FCond::Le => FloatPredicate::OLE,
        FCond::Gt => FloatPredicate::OGT,
        FCond::Ge => FloatPredicate::OGE,
    }
}

/// Operations in order between two labels: with 3 to 6, Black-Scholes is 1.1 times as fast on skl.
const BETWEEN_LABELS: u32 = 6;

impl<'c> LlvmEmitter<'c, '_> {
    /// Makes a label in front of every few operations of those whose order is to be kept. Without labels, LLVM's scheduler puts chains one
    /// after the other that stand side by side; it moves nothing over labels. A label takes no bytes of code.
    pub(super) fn keep_order(&mut self, inst: Inst) -> EmitResult<()> {
        let constant = matches!(self.f.inst(inst).op, Op::Const(_) | Op::VecConst(_));
        if constant || !self.f.in_order.contains(&inst) {
            return Ok(());
        }
        self.unlabelled += 1;
        if self.unlabelled == BETWEEN_LABELS {
            self.unlabelled = 0;
            let label = self.declare("llvm.codeview.annotation", &[])?;
            let text = self.cx.metadata_string("order").into();
            let text = self.cx.metadata_node(&[text]);
            self.b.build_call(label, &[text.into()], "\0")?;
        }
        Ok(())
    }

    /// Translates an instruction.
    pub(super) fn instruction(&mut self, inst: Inst) -> EmitResult<()> {
        let f = self.f;
        let data = f.inst(inst);
        let args = data.args.as_slice();
        match &data.op {
            Op::Const(_) | Op::VecConst(_) => return Ok(()),
            Op::Load(_) | Op::Store(_) | Op::Atomic(_) | Op::CheckBuffer(_) => {
                return Err("an access without a plan".into());
            }
            Op::BlockStore(access) => return self.block_store(*access, args),
            Op::Image(access) => return self.image(*access, args, &data.results),
            Op::Load2d(access) => return self.load2d(*access, args, &data.results),
            Op::Store2d(access) => return self.store2d(*access, args),
            Op::CheckAligned(check) => return self.check_aligned(*check, args),
            Op::CheckRace(check) => return self.check_race(*check, args),
            Op::Decide => return Ok(()),
            Op::Suspect => return self.suspect(args),
            Op::Initialise(check) => return self.initialise(*check, args),
            Op::CheckBarrier(check) => return self.check_barrier(*check, args[0]),
            Op::Fence => {
                let order = AtomicOrdering::SequentiallyConsistent;
                self.b.build_fence(order, false, "\0")?;
                return Ok(());
            }
            Op::FrameStore(_) | Op::Poll if self.left_out.contains(&inst) => return Ok(()),
            Op::FrameStore(offset) => return self.frame_store(*offset, args[0]),
            Op::Poll => return self.poll(),
            op if op.waits() => return Err("a thread waits at an instruction".into()),
            _ => {}
        }
        let Some(&out) = data.results.first() else {
            return Err(InternalError(format!("{:?} without a result", data.op)));
        };
        let v = self.value(data, out)?;
        self.bind(out, v);
        Ok(())
    }

    /// The result of an instruction that has one.
    pub(super) fn value(&mut self, data: &InstData, out: Value) -> EmitResult<V<'c>> {
        let args = data.args.as_slice();
        let ty = self.ty(out);
        match &data.op {
            Op::Input(input) => self.input(*input, out),
            Op::Unary(op) => self.unary(*op, ty, args[0]),
            Op::Binary(BinOp::And) => match self.rest_of_mask(out)? {
                Some(rest) => Ok(rest),
                None => self.binary(BinOp::And, ty, args[0], args[1]),
            },
            Op::Binary(op) => self.binary(*op, ty, args[0], args[1]),
            Op::Fma => self.fma(ty, args),
            Op::Dot4(signs) => self.dot4(*signs, ty, args),
            Op::ICmp(cond) => {
                if let Some(found) = self.test_of_bits(*cond, args)? {
                    return Ok(found);
                }
                let (a, b) = (self.get(args[0])?, self.get(args[1])?);
                self.icmp(int_predicate(*cond), a, b)
            }
            Op::FCmp(cond) => {
                let (a, b) = (self.get(args[0])?, self.get(args[1])?);
                self.fcmp(float_predicate(*cond), a, b)
            }
            Op::Select => {
                let mask = self.get(args[0])?;
                let (a, b) = (self.get(args[1])?, self.get(args[2])?);
                self.select(mask, a, b)
            }
            Op::Convert(Conv::Trunc) if self.cpu.avx512 && self.words.contains(out) => {
                self.words_of(args[0])
            }
            Op::Convert(conv) => self.convert(*conv, ty, args[0]),
            Op::Bitcast => {
                let (v, from) = (self.get(args[0])?, self.ty(args[0]));
                let v = self.narrow(v, from.lanes)?;
                let v = self.cast_bits(v, self.exact(ty))?;
                self.widen(v, ty.lanes, padded_lanes(ty.lanes))
            }
            Op::Splat => {
                let v = self.get(args[0])?;
                self.splat(v, ty.lanes)
            }
            Op::ExtractLane(k) => {
                let v = self.get(args[0])?;
                match self.lanes_of_blocks.lane(v, *k) {
                    Some(loaded) => Ok(loaded),
                    None => self.lane(v, u32::from(*k)),
                }
            }
            Op::InsertLane(k) => {
                let (v, one) = (self.get(args[0])?, self.get(args[1])?);
                self.with_lane(v, one, u32::from(*k))
            }
            Op::Shuffle(indices) => self.shuffle_values(args, indices),
            Op::MaskAny => {
                let bits = self.mask_word(args[0])?;
                self.icmp(IntPredicate::NE, bits, bits.get_type().const_zero())
            }
            Op::MaskAll => self.mask_is_full(args[0]),
            Op::MaskToBits => {
                let mask = self.get(args[0])?;
                self.mask_bits(mask, self.ty(args[0]).lanes)
            }
            Op::BitsToMask => {
                let bits = self.get(args[0])?;
                self.bits_mask(bits, ty.lanes)
            }
            Op::FpEnv(op) => self.fp_env(*op, ty, args),
            Op::BlockLoad(access) => self.block_load(*access, args, out),
            Op::FrameLoad(offset) => self.frame_load(*offset, out),
            Op::NamedBarrier(step) => self.named_barrier(*step, args),
            other => Err(InternalError(format!("{other:?} with a result"))),
        }
    }

    /// A mask as an integer, of as many bits as it has lanes where that is a power of two.
    fn mask_word(&mut self, mask: Value) -> EmitResult<IntValue<'c>> {
        let lanes = self.ty(mask).lanes;
        let mask = self.get(mask)?;
        let word = if padded_lanes(lanes) == lanes {
            self.cast_bits(mask, self.int(u32::from(lanes)).into())?
        } else {
            self.mask_bits(mask, lanes)?
        };
        self.as_int(word)
    }

    /// Whether every lane of a mask is set.
    pub(super) fn mask_is_full(&mut self, mask: Value) -> EmitResult<V<'c>> {
        let bits = self.mask_word(mask)?;
        let full = u64::from(low_bits(self.ty(mask).lanes));
        self.icmp(
            IntPredicate::EQ,
            bits,
            bits.get_type().const_int(full, false),
        )
    }

    fn unary(&mut self, op: UnOp, ty: Ty, a: Value) -> EmitResult<V<'c>> {
        let v = self.get(a)?;
        match op {
            UnOp::Neg => {
                let zero = self.konst(ty, 0)?;
                self.op2(I::Sub, zero, v)
            }
            UnOp::Not => {
                let ones = self.konst(ty, u64::MAX)?;
                self.op2(I::Xor, v, ones)
            }
            UnOp::FNeg => self.negated(v),
            // The second operand: the result for zero is defined.
            UnOp::Clz => self.intrinsic(
                "llvm.ctlz",
                &[ty],
                &[v, self.cx.bool_type().const_zero().into()],
            ),
            UnOp::Ctz => self.intrinsic(
                "llvm.cttz",
                &[ty],
                &[v, self.cx.bool_type().const_zero().into()],
            ),
            UnOp::Popcnt => self.intrinsic("llvm.ctpop", &[ty], &[v]),
            UnOp::BitRev => self.intrinsic("llvm.bitreverse", &[ty], &[v]),
            UnOp::FAbs => self.intrinsic("llvm.fabs", &[ty], &[v]),
            UnOp::FSqrt => self.intrinsic("llvm.sqrt", &[ty], &[v]),
            UnOp::FFloor => self.intrinsic("llvm.floor", &[ty], &[v]),
            UnOp::FCeil => self.intrinsic("llvm.ceil", &[ty], &[v]),
            UnOp::FTrunc => self.intrinsic("llvm.trunc", &[ty], &[v]),
            UnOp::FNearest => self.intrinsic("llvm.roundeven", &[ty], &[v]),
        }
    }

    fn binary(&mut self, op: BinOp, ty: Ty, a: Value, b: Value) -> EmitResult<V<'c>> {
        if op.is_shift() {
            return self.shift(op, ty, a, b);
        }
        let (x, y) = (self.get(a)?, self.get(b)?);
        match op {
            BinOp::Add => self.op2(I::Add, x, y),
            BinOp::Sub => self.op2(I::Sub, x, y),
            BinOp::Mul => self.op2(I::Mul, x, y),
            BinOp::And => self.op2(I::And, x, y),
            BinOp::Or => self.op2(I::Or, x, y),
            BinOp::Xor => self.op2(I::Xor, x, y),
            BinOp::FAdd => self.op2(I::FAdd, x, y),
            BinOp::FSub => self.op2(I::FSub, x, y),
            BinOp::FMul => self.op2(I::FMul, x, y),
            BinOp::FDiv => self.op2(I::FDiv, x, y),
            BinOp::FScale if self.cpu.avx512 => self.scale(ty, x, y),
            BinOp::FScale => self.scale_by_factors(ty, x, y),
            BinOp::SMin => self.intrinsic("llvm.smin", &[ty], &[x, y]),
            BinOp::SMax => self.intrinsic("llvm.smax", &[ty], &[x, y]),
            BinOp::UMin => self.intrinsic("llvm.umin", &[ty], &[x, y]),
            BinOp::UMax => self.intrinsic("llvm.umax", &[ty], &[x, y]),
            BinOp::SAddSat => self.intrinsic("llvm.sadd.sat", &[ty], &[x, y]),
            BinOp::SSubSat => self.intrinsic("llvm.ssub.sat", &[ty], &[x, y]),
            BinOp::UAddSat => self.intrinsic("llvm.uadd.sat", &[ty], &[x, y]),
            BinOp::USubSat => self.intrinsic("llvm.usub.sat", &[ty], &[x, y]),
            BinOp::MulHiS => self.multiply_high(ty, true, x, y),
            BinOp::MulHiU => self.multiply_high(ty, false, x, y),
            BinOp::SDiv | BinOp::UDiv | BinOp::SRem | BinOp::URem => self.divide(op, ty, x, y),
            BinOp::Shl | BinOp::LShr | BinOp::AShr | BinOp::Rotl | BinOp::Rotr => {
                Err("a shift among other operations".into())
            }
        }
    }

    /// A float or a vector of them with the other sign.
    pub(super) fn negated(&self, v: V<'c>) -> EmitResult<V<'c>> {
        Ok(match v {
            V::FloatValue(x) => self.b.build_float_neg(x, "\0")?.into(),
            other => {
                let x = self.as_vector(other)?;
                self.b.build_float_neg(x, "\0")?.into()
            }
        })
    }

    /// `x * 2^y` by the instruction for it, on pieces of the processor's width.
    fn scale(&mut self, ty: Ty, x: V<'c>, y: V<'c>) -> EmitResult<V<'c>> {
        let piece = (self.cpu.vectors / 32).min(u32::from(padded_lanes(ty.lanes)).max(4));
        let (name, enabled) = match piece {
            4 => ("llvm.x86.avx512.mask.scalef.ps.128", 8),
            8 => ("llvm.x86.avx512.mask.scalef.ps.256", 8),
            _ => ("llvm.x86.avx512.mask.scalef.ps.512", 16),
        };
        let all = self.int(enabled).const_all_ones();
        self.in_pieces(piece, ty.lanes, &[x, y], |e, v| {
            let mut args = vec![v[0], v[1], v[0], all.into()];
            if piece == 16 {
                args.push(e.i32(ROUNDING_OF_MXCSR).into());
            }
            e.intrinsic(name, &[], &args)
        })
    }

    /// The same by two factors, see [`SCALE_BIAS`].
    fn scale_by_factors(&mut self, ty: Ty, x: V<'c>, y: V<'c>) -> EmitResult<V<'c>> {
        let ints = Ty {
            lane: Lane::I32,
            ..ty
        };
        let (floats, words) = (self.type_of(ty), self.type_of(ints));
        let bias = self.konst(ty, u64::from(SCALE_BIAS.to_bits()))?;
        let [one, exponent] = [1, 23].map(|n| self.konst(ints, n));
        let (one, exponent) = (one?, exponent?);
        let sum = self.op2(I::FAdd, y, bias)?;
        let sum = self.cast_bits(sum, words)?;
        let half = self.op2(I::LShr, sum, one)?;
        let first = self.op2(I::Shl, half, exponent)?;
        let both = self.op2(I::Shl, sum, exponent)?;
        let second = self.op2(I::Sub, both, first)?;
        let first = self.cast_bits(first, floats)?;
        let second = self.cast_bits(second, floats)?;
        let product = self.op2(I::FMul, x, first)?;
        self.op2(I::FMul, product, second)
    }

    /// Shifts by counts modulo the width; rotations take them so by themselves.
    fn shift(&mut self, op: BinOp, ty: Ty, a: Value, b: Value) -> EmitResult<V<'c>> {
        let x = self.get(a)?;
        let count_ty = self.ty(b);
        let mut count = self.get(b)?;
        let rotates = match op {
            BinOp::Rotl => Some("llvm.fshl"),
            BinOp::Rotr => Some("llvm.fshr"),
            _ => None,
        };
        if rotates.is_none() {
            let low = self.konst(count_ty, u64::from(ty.lane.bits()) - 1)?;
            count = self.op2(I::And, count, low)?;
        }
        if count_ty.is_scalar() {
            count = self.splat(count, ty.lanes)?;
        }
        match (rotates, op) {
            (Some(name), _) => self.intrinsic(name, &[ty], &[x, x, count]),
            (_, BinOp::Shl) => self.op2(I::Shl, x, count),
            (_, BinOp::LShr) => self.op2(I::LShr, x, count),
            _ => self.op2(I::AShr, x, count),
        }
    }

    /// `a * b + c` with one rounding; the runtime does it where the processor has no instruction.
    fn fma(&mut self, ty: Ty, args: &[Value]) -> EmitResult<V<'c>> {
        let operands = self.get_all(args)?;
        if self.cpu.fma {
            return self.intrinsic("llvm.fma", &[ty], &operands);
        }
        let cr0 = self.i32(CR0_PLAIN).into();
        self.call_fp_env(FpEnvOp::Fma, cr0, ty, &operands, ty)
    }

    fn shuffle_values(&mut self, args: &[Value], indices: &[u16]) -> EmitResult<V<'c>> {
        let (first, second) = (args[0], args.get(1).copied());
        let n = self.ty(first).lanes;
        if let &[index] = indices {
            let (from, lane) = match second {
                Some(second) if index >= n => (second, index - n),
                _ => (first, index),
            };
            let v = self.get(from)?;
            return self.lane(v, u32::from(lane));
        }
        let m = second.map_or(0, |v| self.ty(v).lanes);
        let a = self.get(first)?;
        let Some(second) = second else {
            if n == 1 {
                return self.splat(a, indices.len() as u16);
            }
            return self.shuffle(a, None, &pad(indices.iter().map(|&i| u32::from(i))));
        };
        // Both operands of LLVM's shuffle have one type.
        let b = self.get(second)?;
        let (from_a, from_b) = (padded_lanes(n), padded_lanes(m));
        let width = from_a.max(from_b).max(2);
        let (a, b) = (self.widen(a, from_a, width)?, self.widen(b, from_b, width)?);
        let picked = indices
            .iter()
            .map(|&i| u32::from(if i < n { i } else { i - n + width }));
        self.shuffle(a, Some(b), &pad(picked))
    }
}

/// Operand of instructions of AVX-512: they round as is set in the control register.
pub(super) const ROUNDING_OF_MXCSR: u32 = 4;

/// Indices of a shuffle, padded with the last one.
fn pad(indices: impl ExactSizeIterator<Item = u32> + Clone) -> Vec<Option<u32>> {
    let padding = usize::from(padded_lanes(indices.len() as u16)) - indices.len();
    let last = indices.clone().last().unwrap_or(0);
    let padding = std::iter::repeat_n(last, padding);
    indices.chain(padding).map(Some).collect()
}
