//! One SSA instruction at a time: finds the translation of the operands, calls the file that knows the operation, and binds the
//! result.

use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::CraneliftEmitter;
use super::mask::MaskRepr;
use super::value::scalar_type;
use crate::backend::SCALE_BIAS;
use crate::ssa::{BinOp, FCond, Inst, Lane, Op, Ty, UnOp, Value};

impl CraneliftEmitter<'_> {
    /// Translates an instruction.
    pub(super) fn instruction(&mut self, inst: Inst) {
        let f = self.f;
        let data = f.inst(inst);
        let args = data.args.as_slice();
        self.set_line(data.line);
        match &data.op {
            Op::Load(_) | Op::Store(_) | Op::CheckBuffer(_) => {
                return self.bug("an access without a plan");
            }
            Op::BlockStore(access) => return self.block_store(*access, args),
            Op::Load2d(access) => return self.load2d(*access, args, &data.results),
            Op::Store2d(access) => return self.store2d(*access, args),
            Op::Fence => {
                self.ins().fence();
                return;
            }
            Op::FrameStore(_) | Op::Poll if self.left_out.contains(&inst) => return,
            Op::FrameStore(offset) => return self.frame_store(*offset, args[0]),
            Op::Poll => return self.poll(),
            Op::Image(access) => return self.image(*access, args, &data.results),
            Op::CheckAligned(check) => return self.check_aligned(*check, args),
            Op::CheckRace(check) => return self.check_race(*check, args),
            Op::Decide => return,
            Op::Suspect => return self.suspect(args),
            Op::Initialise(check) => return self.initialise(*check, args),
            Op::CheckBarrier(check) => return self.check_barrier(*check, args[0]),
            _ => {}
        }
        let Some(&out) = data.results.first() else {
            return self.bug(format!("{:?} without a result", data.op));
        };
        match &data.op {
            Op::Const(_) | Op::VecConst(_) => {}
            Op::Input(input) => self.input(*input, out),
            Op::Unary(op) => self.unary(*op, out, args[0]),
            Op::Binary(op) => self.binary(*op, out, args[0], args[1]),
            Op::Fma => self.fma(out, args),
            Op::Dot4(signs) => self.dot4(*signs, out, args),
            Op::ICmp(cond) => self.icmp(*cond, out, args[0], args[1]),
            Op::FCmp(cond) => self.fcmp(*cond, out, args[0], args[1]),
            Op::Select => self.select(out, args[0], args[1], args[2]),
            Op::Convert(conv) => self.convert(*conv, out, args[0]),
            Op::Bitcast => self.bitcast(out, args[0]),
            Op::Splat => self.splat(out, args[0]),
            Op::ExtractLane(k) => self.extract_lane(out, args[0], *k),
            Op::InsertLane(k) => self.insert_lane(out, args[0], args[1], *k),
            Op::Shuffle(indices) => self.shuffle(out, args, indices),
            Op::MaskAny | Op::MaskAll => {
                let v = self.mask_test(args[0], matches!(data.op, Op::MaskAll));
                self.bind(out, vec![v]);
            }
            Op::MaskToBits => {
                let bits = self.mask_bits(args[0]);
                self.bind(out, vec![bits]);
            }
            Op::BitsToMask => self.bits_to_mask(out, args[0]),
            Op::FpEnv(op) => self.fp_env(*op, out, args),
            Op::BlockLoad(access) => self.block_load(*access, args, out),
            Op::FrameLoad(offset) => self.frame_load(*offset, out),
            Op::Atomic(_) => self.bug("an atomic without a plan"),
            Op::Exchange => self.bug("an exchange that is still an instruction"),
            Op::NamedBarrier(step) => self.named_barrier(*step, args, out),
            Op::Load(_)
            | Op::Store(_)
            | Op::BlockStore(_)
            | Op::Load2d(_)
            | Op::Store2d(_)
            | Op::CheckBuffer(_)
            | Op::CheckAligned(_)
            | Op::CheckRace(_)
            | Op::Decide
            | Op::Suspect
            | Op::Initialise(_)
            | Op::CheckBarrier(_)
            | Op::Image(_)
            | Op::Fence
            | Op::Barrier
            | Op::FrameStore(_)
            | Op::Poll => {}
        }
    }

    fn unary(&mut self, op: UnOp, out: Value, a: Value) {
        let ty = self.ty(out);
        if ty.lane == Lane::I1 {
            if !ty.is_scalar() {
                return self.mask_not(out, a);
            }
            let bit = self.scalar(a);
            let v = self.ins().bxor_imm_u(bit, 1);
            return self.bind(out, vec![v]);
        }
        let parts = self.parts(a);
        let vector = !ty.is_scalar();
        let result = match op {
            UnOp::Clz | UnOp::Ctz | UnOp::Popcnt | UnOp::BitRev => {
                self.lanewise(&[parts], |e, v| e.bit_count(op, ty.lane, vector, v[0]))
            }
            _ => self.lanewise(&[parts], |e, v| e.simple_unary(op, v[0])),
        };
        self.bind(out, result);
    }

    fn simple_unary(&mut self, op: UnOp, v: V) -> V {
        match op {
            UnOp::Neg => self.ins().ineg(v),
            UnOp::Not => self.ins().bnot(v),
            UnOp::FNeg => self.ins().fneg(v),
            UnOp::FAbs => self.ins().fabs(v),
            UnOp::FSqrt => self.ins().sqrt(v),
            UnOp::FFloor => self.ins().floor(v),
            UnOp::FCeil => self.ins().ceil(v),
            UnOp::FTrunc => self.ins().trunc(v),
            UnOp::FNearest => self.ins().nearest(v),
            UnOp::Clz | UnOp::Ctz | UnOp::Popcnt | UnOp::BitRev => v,
        }
    }

    fn binary(&mut self, op: BinOp, out: Value, a: Value, b: Value) {
        let ty = self.ty(out);
        if ty.lane == Lane::I1 {
            return self.logic(op, out, a, b);
        }
        match op {
            BinOp::Shl | BinOp::LShr | BinOp::AShr | BinOp::Rotl | BinOp::Rotr => {
                self.shift(op, out, a, b);
            }
            BinOp::SDiv | BinOp::UDiv | BinOp::SRem | BinOp::URem => self.divide(op, out, a, b),
            _ => {
                let operands = [self.parts(a), self.parts(b)];
                let vector = !ty.is_scalar();
                let result = self.lanewise(&operands, |e, v| {
                    e.simple_binary(op, ty.lane, vector, v[0], v[1])
                });
                self.bind(out, result);
            }
        }
    }

    fn simple_binary(&mut self, op: BinOp, lane: Lane, vector: bool, a: V, b: V) -> V {
        match op {
            BinOp::Add => self.ins().iadd(a, b),
            BinOp::Sub => self.ins().isub(a, b),
            BinOp::Mul => self.multiply(lane, vector, a, b),
            BinOp::MulHiS => self.multiply_high(lane, vector, true, a, b),
            BinOp::MulHiU => self.multiply_high(lane, vector, false, a, b),
            BinOp::And => self.ins().band(a, b),
            BinOp::Or => self.ins().bor(a, b),
            BinOp::Xor => self.ins().bxor(a, b),
            BinOp::SMin | BinOp::SMax | BinOp::UMin | BinOp::UMax => {
                self.min_max(op, lane, vector, a, b)
            }
            BinOp::SAddSat | BinOp::SSubSat => self.saturated(op, lane, vector, a, b),
            BinOp::UAddSat | BinOp::USubSat => self.saturated_unsigned(op, lane, vector, a, b),
            BinOp::FAdd => self.ins().fadd(a, b),
            BinOp::FSub => self.ins().fsub(a, b),
            BinOp::FMul => self.ins().fmul(a, b),
            BinOp::FDiv => self.ins().fdiv(a, b),
            BinOp::FScale => self.scale(vector, a, b),
            _ => {
                self.bug(format!("{op:?} is not a simple operation"));
                a
            }
        }
    }

    /// `a * 2^b` by two factors, see [`SCALE_BIAS`].
    fn scale(&mut self, vector: bool, a: V, b: V) -> V {
        let bias = self.konst(Lane::F32, vector, u64::from(SCALE_BIAS.to_bits()));
        let floats = self.type_of(a);
        let ints = floats.as_int();
        let sum = self.ins().fadd(b, bias);
        let sum = self.cast(sum, ints);
        let half = self.ins().ushr_imm_u(sum, 1);
        let first = self.ins().ishl_imm_u(half, 23);
        let both = self.ins().ishl_imm_u(sum, 23);
        let second = self.ins().isub(both, first);
        let (first, second) = (self.cast(first, floats), self.cast(second, floats));
        let product = self.ins().fmul(a, first);
        self.ins().fmul(product, second)
    }

    fn logic(&mut self, op: BinOp, out: Value, a: Value, b: Value) {
        if !matches!(op, BinOp::And | BinOp::Or | BinOp::Xor) {
            return self.bug(format!("{op:?} of conditions"));
        }
        if !self.ty(out).is_scalar() {
            return self.mask_binary(op, out, a, b);
        }
        let (x, y) = (self.scalar(a), self.scalar(b));
        let v = self.simple_binary(op, Lane::I8, false, x, y);
        self.bind(out, vec![v]);
    }

    fn select(&mut self, out: Value, c: Value, a: Value, b: Value) {
        let ty = self.ty(out);
        let uniform = self.ty(c).is_scalar();
        if ty.lane == Lane::I1 && !ty.is_scalar() {
            return self.mask_select(out, c, a, b);
        }
        let operands = (self.parts(a), self.parts(b));
        let result = if uniform {
            let cond = self.scalar(c);
            if ty.is_scalar() {
                vec![self.ins().select(cond, operands.0[0], operands.1[0])]
            } else {
                self.select_uniform(cond, operands.0, operands.1)
            }
        } else {
            let mask = self.mask_vec(c, ty.lane.bytes());
            if let Some(result) = self.select_count(ty.lane, &mask, a, b) {
                return self.bind(out, result);
            }
            let direct = self.is_min_max(c, a, b);
            let kept = self.uniform_const(b) == Some(0);
            self.lanewise(&[mask, operands.0, operands.1], |e, v| {
                if kept {
                    e.kept(v[0], v[1])
                } else if direct {
                    let m = e.cast_piece(v[0], ty.lane);
                    e.ins().bitselect(m, v[1], v[2])
                } else {
                    e.blend(v[0], v[1], v[2])
                }
            })
        };
        self.bind(out, result);
    }

    /// `mask ? b + 1 : b` is `b - mask`, a set lane being -1; likewise `b - 1`.
    fn select_count(&mut self, lane: Lane, mask: &[V], a: Value, b: Value) -> Option<Vec<V>> {
        let def = self.def_op(a)?;
        let step = match (&def.op, def.args.as_slice()) {
            (Op::Binary(BinOp::Add), &[x, k]) if x == b => k,
            (Op::Binary(BinOp::Add), &[k, x]) if x == b => k,
            _ => return None,
        };
        let up = match self.uniform_const(step)? {
            1 => true,
            bits if bits == super::value::low_bits(lane) => false,
            _ => return None,
        };
        let operands = [mask.to_vec(), self.parts(b)];
        Some(self.lanewise(&operands, |e, v| {
            if up {
                e.ins().isub(v[1], v[0])
            } else {
                e.ins().iadd(v[1], v[0])
            }
        }))
    }

    /// Compare-and-select that Cranelift knows as one minimum or maximum instruction.
    fn is_min_max(&self, c: Value, a: Value, b: Value) -> bool {
        self.def_op(c).is_some_and(|d| {
            matches!(d.op, Op::FCmp(FCond::Lt | FCond::Gt))
                && (d.args == [a, b] || d.args == [b, a])
        })
    }

    fn splat(&mut self, out: Value, a: Value) {
        let ty = self.ty(out);
        let v = self.scalar(a);
        if ty.is_scalar() {
            return self.bind(out, vec![v]);
        }
        if ty.lane == Lane::I1 {
            return self.bind_mask(out, MaskRepr::Same(v));
        }
        let piece = self.ins().splat(super::value::piece_type(ty.lane), v);
        self.bind(out, vec![piece; super::value::piece_count(ty)]);
    }

    fn extract_lane(&mut self, out: Value, a: Value, k: u16) {
        let from = self.ty(a);
        let v = if from.is_scalar() {
            self.scalar(a)
        } else if from.lane == Lane::I1 {
            let bits = self.mask_bits(a);
            let low = self.ins().ushr_imm_u(bits, i64::from(k));
            let bit = self.ins().band_imm_u(low, 1);
            self.ins().ireduce(types::I8, bit)
        } else {
            let parts = self.parts(a);
            self.lane_of(from.lane, &parts, usize::from(k))
        };
        self.bind(out, vec![v]);
    }

    fn insert_lane(&mut self, out: Value, a: Value, s: Value, k: u16) {
        let ty = self.ty(out);
        let v = self.scalar(s);
        if ty.is_scalar() {
            return self.bind(out, vec![v]);
        }
        if ty.lane == Lane::I1 {
            let bits = self.mask_bits(a);
            let kept = self.ins().band_imm_u(bits, i64::from(!(1u32 << k)));
            let wide = self.ins().uextend(types::I32, v);
            let placed = self.ins().ishl_imm_u(wide, i64::from(k));
            let merged = self.ins().bor(kept, placed);
            return self.bind_mask(out, MaskRepr::Bits(merged));
        }
        let mut parts = self.parts(a);
        self.set_lane(ty.lane, &mut parts, usize::from(k), v);
        self.bind(out, parts);
    }

    fn bits_to_mask(&mut self, out: Value, a: Value) {
        let ty = self.ty(out);
        let v = self.scalar(a);
        let bits = if ty.lanes >= 32 {
            v
        } else {
            self.ins()
                .band_imm_u(v, super::mask::full(ty.lanes).cast_signed())
        };
        self.bind_mask(out, MaskRepr::Bits(bits));
    }

    fn bitcast(&mut self, out: Value, a: Value) {
        let (from, to) = (self.ty(a), self.ty(out));
        let source = if from.lane == Lane::I1 {
            if to.lane == Lane::I1 {
                let mask = self.mask(a);
                return self.bind_mask(out, mask);
            }
            let bits = self.mask_bits(a);
            let ty = scalar_type(super::value::int_lane(u32::from(from.lanes).div_ceil(8)));
            vec![self.resize(bits, ty)]
        } else {
            self.parts(a)
        };
        if to.lane == Lane::I1 {
            let word = self.to_scalar_bits(from, &source);
            let bits = self.resize(word, types::I32);
            return self.bind_mask(out, MaskRepr::Bits(bits));
        }
        let result = self.recast(from, &source, to);
        self.bind(out, result);
    }

    /// Parts of one type as parts of another of the same total size.
    fn recast(&mut self, from: Ty, source: &[V], to: Ty) -> Vec<V> {
        let from_scalar = from.is_scalar() || from.lane == Lane::I1;
        match (from_scalar, to.is_scalar()) {
            (true, true) => vec![self.cast(source[0], scalar_type(to.lane))],
            (false, false) => self.lanewise(&[source.to_vec()], |e, v| e.cast_piece(v[0], to.lane)),
            (false, true) => {
                let word = self.to_scalar_bits(from, source);
                vec![self.cast(word, scalar_type(to.lane))]
            }
            (true, false) => {
                let bits = self.type_of(source[0]).bits();
                let int = super::value::int_lane(bits / 8);
                let word = self.cast(source[0], scalar_type(int));
                let piece = self.from_lanes(int, &[word]);
                vec![self.cast_piece(piece[0], to.lane)]
            }
        }
    }

    /// A value of at most 64 bits as a scalar integer of its size.
    fn to_scalar_bits(&mut self, from: Ty, source: &[V]) -> V {
        let int = super::value::int_lane(from.bytes());
        if from.is_scalar() {
            return self.cast(source[0], scalar_type(int));
        }
        let piece = self.cast_piece(source[0], int);
        self.ins().extractlane(piece, 0)
    }
}
