//! Sums of products of four bytes: even and odd bytes become lanes of 16 bits, and sums of products of two of these are one instruction on
//! x86-64.

use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::CraneliftEmitter;
use crate::ssa::{ByteSigns, Value};

impl CraneliftEmitter<'_> {
    /// [`crate::ssa::Op::Dot4`].
    pub(super) fn dot4(&mut self, signs: ByteSigns, out: Value, args: &[Value]) {
        let operands = [
            self.parts(args[0]),
            self.parts(args[1]),
            self.parts(args[2]),
        ];
        let vector = !self.ty(out).is_scalar();
        let starts = self.uniform_const(args[0]) == Some(0);
        let result = self.lanewise(&operands, |e, v| {
            let products = if vector {
                e.dot4_of_piece(signs, v[1], v[2])
            } else {
                e.dot4_of_word(signs, v[1], v[2])
            };
            match starts {
                true => products,
                false => e.ins().iadd(v[0], products),
            }
        });
        self.bind(out, result);
    }

    fn dot4_of_piece(&mut self, signs: ByteSigns, a: V, b: V) -> V {
        let (a, b) = (self.words(signs.a, a), self.words(signs.b, b));
        let [even, odd] = [0, 1].map(|k| {
            let [low, high] = [false, true].map(|high| {
                let [x, y] = [a[k], b[k]].map(|v| match high {
                    true => self.ins().swiden_high(v),
                    false => self.ins().swiden_low(v),
                });
                self.ins().imul(x, y)
            });
            self.ins().iadd_pairwise(low, high)
        });
        self.ins().iadd(even, odd)
    }

    /// The even and the odd bytes of a piece, extended to 16 bits.
    fn words(&mut self, signed: bool, v: V) -> [V; 2] {
        let v = self.cast(v, types::I16X8);
        let even = self.ins().ishl_imm_u(v, 8);
        [even, v].map(|v| match signed {
            true => self.ins().sshr_imm_u(v, 8),
            false => self.ins().ushr_imm_u(v, 8),
        })
    }

    fn dot4_of_word(&mut self, signs: ByteSigns, a: V, b: V) -> V {
        let products = [0, 1, 2, 3].map(|k| {
            let [x, y] = [(signs.a, a), (signs.b, b)].map(|(signed, v)| {
                let high = self.ins().ishl_imm_u(v, 24 - 8 * k);
                match signed {
                    true => self.ins().sshr_imm_u(high, 24),
                    false => self.ins().ushr_imm_u(high, 24),
                }
            });
            self.ins().imul(x, y)
        });
        let [p, q, r, s] = products;
        let (p, r) = (self.ins().iadd(p, q), self.ins().iadd(r, s));
        self.ins().iadd(p, r)
    }
}
