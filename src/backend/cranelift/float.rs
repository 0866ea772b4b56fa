//! Float comparison and fused multiply-add.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::FloatCC;

use super::emit::CraneliftEmitter;
use super::mask::MaskRepr;
use crate::ssa::fp_env::CR0_PLAIN;
use crate::ssa::{FCond, FpEnvOp, Op, Value};

const fn float_cc(cond: FCond) -> FloatCC {
    match cond {
        FCond::Eq => FloatCC::Equal,
        FCond::Ne => FloatCC::NotEqual,
        FCond::Lt => FloatCC::LessThan,
        FCond::Le => FloatCC::LessThanOrEqual,
        FCond::Gt => FloatCC::GreaterThan,
        FCond::Ge => FloatCC::GreaterThanOrEqual,
    }
}

impl CraneliftEmitter<'_> {
    /// Float comparison.
    pub(super) fn fcmp(&mut self, cond: FCond, out: Value, a: Value, b: Value) {
        let ty = self.ty(a);
        let cc = float_cc(cond);
        let operands = [self.parts(a), self.parts(b)];
        let parts = self.lanewise(&operands, |e, v| e.ins().fcmp(cc, v[0], v[1]));
        if ty.is_scalar() {
            return self.bind(out, parts);
        }
        self.bind_mask(out, MaskRepr::Vec(ty.lane.bytes(), parts));
    }

    /// `a * b + c` with one rounding; the helper does it where the target has no instruction.
    pub(super) fn fma(&mut self, out: Value, args: &[Value]) {
        let mut operands: Vec<_> = args.iter().map(|&a| self.parts(a)).collect();
        let ty = self.ty(out);
        // The first operand's register takes the result: better not one that is the same for every thread.
        let stays = |v: Value| {
            matches!(
                self.def_op(v).map(|d| &d.op),
                Some(Op::Splat | Op::VecConst(_))
            )
        };
        if stays(args[0]) && !stays(args[1]) {
            operands.swap(0, 1);
        }
        let result = if self.target.fma {
            self.lanewise(&operands, |e, v| e.ins().fma(v[0], v[1], v[2]))
        } else {
            let cr0 = self.iconst(cranelift_codegen::ir::types::I32, CR0_PLAIN.into());
            self.call_fp_env(FpEnvOp::Fma, cr0, ty, &operands, ty)
        };
        self.bind(out, result);
    }
}
