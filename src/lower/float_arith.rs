//! Float arithmetic under whatever `%cr0` says: plain operations where it is known to be nearest-even with
//! denormals kept, operations under a control register elsewhere.

use super::Lowerer;
use super::convert::FloatKind;
use super::error::Fail;
use super::math;
use super::operand::{Operand, lane_of};
use crate::isa::{Opcode, Type};
use crate::ssa::*;

impl Lowerer<'_> {
    /// Kind that float operations on these operands are computed in.
    ///
    /// There are no bf units: bf operands are computed with as f, which the vendor's assembler shows by
    /// widening them (`mad bf` becomes a shift and a `mad` with an f addend).
    pub(super) fn kind(&self, s: &[Operand]) -> Result<FloatKind, Fail> {
        let mut kind: Option<FloatKind> = None;
        for o in s {
            let k = match FloatKind::of(o.ty) {
                Some(FloatKind::Bf) => FloatKind::F,
                Some(k) => k,
                None => return Fail::malformed("integer and float sources in one instruction"),
            };
            kind = Some(match kind {
                None => k,
                Some(old) if old == k => k,
                Some(FloatKind::Df) => FloatKind::Df,
                Some(_) if k == FloatKind::Df => FloatKind::Df,
                Some(_) => FloatKind::F,
            });
        }
        kind.map_or_else(|| Fail::malformed("no float source"), Ok)
    }

    /// The result of float arithmetic and its type, before conversion to the destination.
    pub(super) fn float_compute(
        &mut self,
        op: Opcode,
        s: &[Operand],
        dst: Type,
    ) -> Result<(Value, Type), Fail> {
        // Mixed mode: hf operands with an f among sources or destination are computed in f, so that an f
        // destination receives what only one rounding, to f, has changed.
        let kind = match (self.kind(s)?, dst) {
            (FloatKind::Hf, Type::F) => FloatKind::F,
            (k, _) => k,
        };
        let types: Vec<Type> = s.iter().map(|o| o.ty).chain([kind.ty(), dst]).collect();
        if self.cr0.plain(&types) {
            return self.float_plain(op, s, kind);
        }
        self.float_env(op, s, kind)
    }

    /// Nearest-even, denormals kept.
    fn float_plain(
        &mut self,
        op: Opcode,
        s: &[Operand],
        kind: FloatKind,
    ) -> Result<(Value, Type), Fail> {
        // Sums and products of binary16 in binary32 lose nothing that a second rounding could show;
        // a fused product does, so it goes through binary64.
        let wide = match (kind, op) {
            (FloatKind::Hf, Opcode::Mad) => FloatKind::Df,
            (FloatKind::Hf, _) => FloatKind::F,
            (k, _) => k,
        };
        let v = s
            .iter()
            .map(|o| self.float(*o, wide))
            .collect::<Result<Vec<_>, _>>()?;
        let r = self.float_op(op, &v)?;
        // The result keeps the computing type's name only when nothing is rounded away: a 16-bit operation
        // rounds once, here, to its own type.
        if wide == kind {
            Ok((r, kind.ty()))
        } else {
            Ok((self.convert(r, wide.ty(), kind.ty(), false)?, kind.ty()))
        }
    }

    fn float_op(&mut self, op: Opcode, v: &[Value]) -> Result<Value, Fail> {
        use Opcode as O;
        let b = &mut self.b;
        Ok(match (op, v) {
            (O::Add, [x, y]) => b.bin(BinOp::FAdd, *x, *y),
            (O::Mul, [x, y]) => b.bin(BinOp::FMul, *x, *y),
            (O::Mad, [x, y, z]) => b.fma(*x, *y, *z),
            (O::Div | O::Divm, [x, y]) => b.bin(BinOp::FDiv, *x, *y),
            (O::Sqrt | O::Sqrtm, [x]) => b.un(UnOp::FSqrt, *x),
            (O::Rndd, [x]) => b.un(UnOp::FFloor, *x),
            (O::Rndu, [x]) => b.un(UnOp::FCeil, *x),
            (O::Rnde, [x]) => b.un(UnOp::FNearest, *x),
            (O::Rndz, [x]) => b.un(UnOp::FTrunc, *x),
            (O::Frc, [x]) => {
                let floor = b.un(UnOp::FFloor, *x);
                b.bin(BinOp::FSub, *x, floor)
            }
            (O::Inv | O::Exp | O::Log | O::Sin | O::Cos | O::Rsqrt | O::Pow, _) => {
                match math::expand(b, op, v) {
                    Some(r) => r,
                    None => return Fail::unsupported("this operand type of a math function"),
                }
            }
            _ => return Fail::malformed("float operands"),
        })
    }

    /// Under a rounding or denormal mode that plain operations do not have.
    fn float_env(
        &mut self,
        op: Opcode,
        s: &[Operand],
        kind: FloatKind,
    ) -> Result<(Value, Type), Fail> {
        use Opcode as O;
        let v = s
            .iter()
            .map(|o| self.float(*o, kind))
            .collect::<Result<Vec<_>, _>>()?;
        let lane = lane_of(kind.ty());
        let env = match (op, v.as_slice()) {
            (O::Add, _) => FpEnvOp::Add,
            (O::Mul, _) => FpEnvOp::Mul,
            (O::Div | O::Divm, _) => FpEnvOp::Div,
            (O::Mad, _) => FpEnvOp::Fma,
            (O::Sqrt | O::Sqrtm, _) => FpEnvOp::Sqrt,
            (O::Frc, [x]) => {
                // The difference from the floor rounds for numbers just below zero.
                let x = self.fp_env(FpEnvOp::Flush, &[*x], lane)?;
                let floor = self.b.un(UnOp::FFloor, x);
                let minus = self.b.un(UnOp::FNeg, floor);
                return Ok((self.fp_env(FpEnvOp::Add, &[x, minus], lane)?, kind.ty()));
            }
            _ => return self.float_env_approximate(op, &v, kind),
        };
        Ok((self.fp_env(env, &v, lane)?, kind.ty()))
    }

    /// The approximate functions and the roundings to integers do not depend on the rounding mode;
    /// denormals are flushed around them.
    fn float_env_approximate(
        &mut self,
        op: Opcode,
        v: &[Value],
        kind: FloatKind,
    ) -> Result<(Value, Type), Fail> {
        let lane = lane_of(kind.ty());
        let half = kind == FloatKind::Hf;
        let mut args = Vec::new();
        for &x in v {
            let x = self.fp_env(FpEnvOp::Flush, &[x], lane)?;
            args.push(if half {
                self.b.conv(Conv::F16ToF, x, Lane::F32)
            } else {
                x
            });
        }
        let r = self.float_op(op, &args)?;
        let r = if half {
            self.b.conv(Conv::FToF16, r, Lane::I16)
        } else {
            r
        };
        Ok((self.fp_env(FpEnvOp::Flush, &[r], lane)?, kind.ty()))
    }

    /// One step of a formula on f lanes, as `%cr0` has it: `Add`, `Mul` or `Fma`.
    pub(super) fn f_step(&mut self, op: FpEnvOp, args: &[Value]) -> Result<Value, Fail> {
        if !self.cr0.plain(&[Type::F]) {
            return self.fp_env(op, args, Lane::F32);
        }
        Ok(match (op, args) {
            (FpEnvOp::Add, [x, y]) => self.b.bin(BinOp::FAdd, *x, *y),
            (FpEnvOp::Mul, [x, y]) => self.b.bin(BinOp::FMul, *x, *y),
            (FpEnvOp::Fma, [x, y, z]) => self.b.fma(*x, *y, *z),
            _ => return Fail::malformed("internal: not a step of a formula"),
        })
    }
}
