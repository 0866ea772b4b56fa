//! Sums of products of four bytes.
//!
//! The processor's instruction for it multiplies unsigned bytes by signed ones. Bytes of the other kind are 128 less or more than what stands in
//! the same bits with the highest one changed, so that 128 times the sum of the other operand's bytes is left, which the instruction gives as well.
//! Without it, even and odd bytes become lanes of 16 bits, for the sum of products of two of these.

use inkwell::values::InstructionOpcode as I;
use target_lexicon::Architecture;

use super::emit::{EmitResult, LlvmEmitter, V};
use super::types::padded_lanes;
use crate::ssa::{ByteSigns, Lane, Op, Ty, Value};

/// The highest bit of each byte.
const HIGHEST: u64 = 0x8080_8080;

impl<'c> LlvmEmitter<'c, '_> {
    /// [`Op::Dot4`].
    pub(super) fn dot4(&mut self, signs: ByteSigns, ty: Ty, args: &[Value]) -> EmitResult<V<'c>> {
        let operands = [args[0], args[1], args[2]].map(|v| self.get(v));
        let [sum, a, b] = operands;
        let (sum, mut a, mut b) = (sum?, a?, b?);
        let x86 = self.cpu.target.architecture == Architecture::X86_64;
        if !x86 || ty.is_scalar() {
            return self.dot4_by_bytes(signs, ty, [sum, a, b]);
        }
        let most = match (self.cpu.vnni, self.cpu.avx2) {
            (false, false) => 4,
            _ => self.cpu.vectors / 32,
        };
        let piece = most.min(u32::from(padded_lanes(ty.lanes)).max(4));
        if !self.cpu.vnni {
            return self.in_pieces(piece, ty.lanes, &[sum, a, b], |e, v| {
                e.dot4_by_words(signs, piece, v)
            });
        }
        // What is the same in all lanes is the operand whose bytes are summed, which is done once then.
        let same = |v: Value| {
            let data = self.f.def_inst(v);
            data.is_some_and(|d| matches!(d.op, Op::Splat | Op::VecConst(_)))
        };
        let summed = if signs.a { args[2] } else { args[1] };
        let other = if signs.a { args[1] } else { args[2] };
        let turns = match signs.a == signs.b {
            true => same(other) && !same(summed),
            false => signs.a,
        };
        if turns {
            (a, b) = (b, a);
        }
        self.in_pieces(piece, ty.lanes, &[sum, a, b], |e, v| {
            e.dot4_by_bytes_of_both_kinds(signs, piece, v)
        })
    }

    /// By the instruction for unsigned times signed bytes.
    fn dot4_by_bytes_of_both_kinds(
        &mut self,
        signs: ByteSigns,
        lanes: u32,
        operands: &[V<'c>],
    ) -> EmitResult<V<'c>> {
        let name = match lanes {
            4 => "llvm.x86.avx512.vpdpbusd.128",
            8 => "llvm.x86.avx512.vpdpbusd.256",
            _ => "llvm.x86.avx512.vpdpbusd.512",
        };
        let &[sum, a, b] = operands else {
            return Err("a sum of products without three operands".into());
        };
        if signs.a != signs.b {
            return self.intrinsic(name, &[], &[sum, a, b]);
        }
        let ty = Ty::vector(Lane::I32, lanes as u16);
        let (zero, highest) = (self.konst(ty, 0)?, self.konst(ty, HIGHEST)?);
        let (unsigned, signed, summed) = match signs.a {
            true => (self.op2(I::Xor, a, highest)?, b, [highest, b]),
            false => (a, self.op2(I::Xor, b, highest)?, [a, highest]),
        };
        let more = self.intrinsic(name, &[], &[zero, summed[0], summed[1]])?;
        let sum = self.op2(I::Sub, sum, more)?;
        self.intrinsic(name, &[], &[sum, unsigned, signed])
    }

    /// By the instruction for sums of products of two words.
    fn dot4_by_words(
        &mut self,
        signs: ByteSigns,
        lanes: u32,
        operands: &[V<'c>],
    ) -> EmitResult<V<'c>> {
        let name = match lanes {
            4 => "llvm.x86.sse2.pmadd.wd",
            8 => "llvm.x86.avx2.pmadd.wd",
            _ => "llvm.x86.avx512.pmaddw.d.512",
        };
        let &[sum, a, b] = operands else {
            return Err("a sum of products without three operands".into());
        };
        let ty = Ty::vector(Lane::I16, 2 * lanes as u16);
        let words = self.type_of(ty);
        let eight = self.konst(ty, 8)?;
        let mut parts = [[a; 2], [b; 2]];
        for (part, signed) in parts.iter_mut().zip([signs.a, signs.b]) {
            let v = self.cast_bits(part[0], words)?;
            let down = if signed { I::AShr } else { I::LShr };
            let even = self.op2(I::Shl, v, eight)?;
            *part = [self.op2(down, even, eight)?, self.op2(down, v, eight)?];
        }
        let [a, b] = parts;
        let even = self.intrinsic(name, &[], &[a[0], b[0]])?;
        let odd = self.intrinsic(name, &[], &[a[1], b[1]])?;
        let both = self.op2(I::Add, even, odd)?;
        self.op2(I::Add, sum, both)
    }

    /// One product after the other.
    fn dot4_by_bytes(
        &mut self,
        signs: ByteSigns,
        ty: Ty,
        [sum, a, b]: [V<'c>; 3],
    ) -> EmitResult<V<'c>> {
        let mut sum = sum;
        for k in 0..4 {
            let (up, down) = (self.konst(ty, 24 - 8 * k)?, self.konst(ty, 24)?);
            let mut bytes = [a, b];
            for (v, signed) in bytes.iter_mut().zip([signs.a, signs.b]) {
                let high = self.op2(I::Shl, *v, up)?;
                *v = self.op2(if signed { I::AShr } else { I::LShr }, high, down)?;
            }
            let product = self.op2(I::Mul, bytes[0], bytes[1])?;
            sum = self.op2(I::Add, sum, product)?;
        }
        Ok(sum)
    }
}
