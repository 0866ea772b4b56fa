//! The expansions on single numbers: the same operations, carried out at once.

use super::formula;
use super::ops::{Arith, Ops, Types};
use crate::isa::Opcode;
use crate::ssa::scalar::scale;

/// Carries operations out.
pub(crate) struct Scalar;

impl Types for Scalar {
    type Mask = bool;
    type F = f32;
    type D = f64;
    type I = u32;
}

macro_rules! arith {
    ($t:ty) => {
        impl Arith<$t> for Scalar {
            fn num(&mut self, v: f64) -> $t {
                v as $t
            }
            fn add(&mut self, a: $t, b: $t) -> $t {
                a + b
            }
            fn sub(&mut self, a: $t, b: $t) -> $t {
                a - b
            }
            fn mul(&mut self, a: $t, b: $t) -> $t {
                a * b
            }
            fn div(&mut self, a: $t, b: $t) -> $t {
                a / b
            }
            fn fma(&mut self, a: $t, b: $t, c: $t) -> $t {
                a.mul_add(b, c)
            }
            fn sqrt(&mut self, a: $t) -> $t {
                a.sqrt()
            }
            fn abs(&mut self, a: $t) -> $t {
                a.abs()
            }
            fn lt(&mut self, a: $t, b: $t) -> bool {
                a < b
            }
            fn eq(&mut self, a: $t, b: $t) -> bool {
                a == b
            }
            fn select(&mut self, m: bool, a: $t, b: $t) -> $t {
                if m { a } else { b }
            }
        }
    };
}

arith!(f32);
arith!(f64);

impl Ops for Scalar {
    fn or(&mut self, a: bool, b: bool) -> bool {
        a | b
    }
    fn int(&mut self, v: u32) -> u32 {
        v
    }
    fn iadd(&mut self, a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }
    fn isub(&mut self, a: u32, b: u32) -> u32 {
        a.wrapping_sub(b)
    }
    fn iand(&mut self, a: u32, b: u32) -> u32 {
        a & b
    }
    fn ixor(&mut self, a: u32, b: u32) -> u32 {
        a ^ b
    }
    fn shl(&mut self, a: u32, n: u32) -> u32 {
        a << n
    }
    fn ashr(&mut self, a: u32, n: u32) -> u32 {
        (a as i32 >> n) as u32
    }
    fn nearest(&mut self, a: f32) -> f32 {
        a.round_ties_even()
    }
    fn scale(&mut self, a: f32, n: f32) -> f32 {
        scale(a, n)
    }
    fn bits(&mut self, a: f32) -> u32 {
        a.to_bits()
    }
    fn of_bits(&mut self, a: u32) -> f32 {
        f32::from_bits(a)
    }
    fn to_float(&mut self, a: u32) -> f32 {
        a as i32 as f32
    }
    fn promote(&mut self, a: f32) -> f64 {
        f64::from(a)
    }
    fn demote(&mut self, a: f64) -> f32 {
        a as f32
    }
}

/// What the expansion of `op` gives for one `f32` lane; `None` when it is no expanded function.
pub(crate) fn evaluate(op: Opcode, v: &[f32]) -> Option<f32> {
    let o = &mut Scalar;
    Some(match (op, v) {
        (Opcode::Exp, &[x]) => formula::exp2(o, x),
        (Opcode::Log, &[x]) => formula::log2(o, x),
        (Opcode::Sin, &[x]) => formula::sin(o, x),
        (Opcode::Cos, &[x]) => formula::cos(o, x),
        (Opcode::Pow, &[x, y]) => formula::pow(o, x, y),
        (Opcode::Inv, &[x]) => formula::inv(o, x),
        (Opcode::Rsqrt, &[x]) => formula::rsqrt(o, x),
        _ => return None,
    })
}
