//! Expansions of the transcendental functions.
//!
//! [`formula`] writes each once, over the operations of [`ops`]; [`emit`] turns those into SSA and
//! the tests also carry them out on plain numbers, with the same bits.

mod emit;
mod formula;
mod ops;
#[cfg(test)]
mod scalar;
#[cfg(test)]
mod tests;

use super::build::Builder;
use crate::isa::Opcode;
use crate::ssa::*;
use emit::{BuilderOps, Double, Single};

/// Expands a math function on `F32` (or, for `inv` and `rsqrt`, `F64`) lanes; `None` for other lanes.
///
/// `exp` and `log` have base 2, `sin` and `cos` take radians, `pow` is `|x|^y`.
pub(super) fn expand(b: &mut Builder, op: Opcode, v: &[Value]) -> Option<Value> {
    let lane = b.ty(*v.first()?).lane;
    let o = &mut BuilderOps(b);
    let single = match (lane, op, v) {
        (Lane::F32, Opcode::Exp, &[x]) => formula::exp2(o, Single(x)),
        (Lane::F32, Opcode::Log, &[x]) => formula::log2(o, Single(x)),
        (Lane::F32, Opcode::Sin, &[x]) => formula::sin(o, Single(x)),
        (Lane::F32, Opcode::Cos, &[x]) => formula::cos(o, Single(x)),
        (Lane::F32, Opcode::Pow, &[x, y]) => formula::pow(o, Single(x), Single(y)),
        (Lane::F32, Opcode::Inv, &[x]) => formula::inv(o, Single(x)),
        (Lane::F32, Opcode::Rsqrt, &[x]) => formula::rsqrt(o, Single(x)),
        (Lane::F64, Opcode::Inv, &[x]) => return Some(formula::inv(o, Double(x)).0),
        (Lane::F64, Opcode::Rsqrt, &[x]) => return Some(formula::rsqrt(o, Double(x)).0),
        _ => return None,
    };
    Some(single.0)
}
