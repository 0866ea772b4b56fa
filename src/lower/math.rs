//! Expansions of the transcendental functions.

use super::build::Builder;
use crate::isa::Opcode;
use crate::ssa::*;

/// Expands a math function on `F32` (or, for `inv` and `rsqrt`, `F64`) lanes; `None` for other lanes.
pub fn expand(b: &mut Builder, op: Opcode, v: &[Value]) -> Option<Value> {
    match (op, v) {
        (Opcode::Inv, [x]) => {
            let one = if b.ty(*x).lane == Lane::F64 {
                b.f64(1.0)
            } else {
                b.f32(1.0)
            };
            Some(b.bin(BinOp::FDiv, one, *x))
        }
        _ => None,
    }
}
