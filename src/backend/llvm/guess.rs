//! Accesses whose enabled lanes probably lie side by side, though nothing says so: addresses that masks choose, or that come on
//! different ways.
//!
//! From the first lane that is enabled and inside follows where the others would be. One comparison tells whether they are there,
//! and a masked load or store does the access; otherwise it is a gather or a scatter.

use inkwell::IntPredicate;
use inkwell::values::{InstructionOpcode as I, PointerValue};

use super::emit::{Emit, Made, V};
use super::memory::Lanes;
use crate::ssa::remark::{Bounds, Way};
use crate::ssa::{Inst, MemAccess, Ty};

/// An access by what is guessed.
#[derive(Clone, Copy)]
struct Guess<'c> {
    /// Offsets of the lanes.
    at: V<'c>,
    /// Lanes that are enabled and inside.
    mask: V<'c>,
    /// Whether these lie side by side.
    holds: V<'c>,
    /// Where lane 0 is then, if it is anywhere.
    first: PointerValue<'c>,
}

impl<'c> Emit<'c, '_> {
    /// True where it is worth to look.
    fn guesses(&self, access: MemAccess, lanes: u16, inst: Inst) -> bool {
        let guess = self.f.shapes.get(&inst).and_then(|s| s.guess);
        let beside = guess == Some(i64::from(access.elem.bytes()));
        let plain = !self.versions.any && self.stores_masked(access, lanes);
        beside && plain && self.gathers(access, lanes)
    }

    fn guess(&mut self, access: MemAccess, lanes: &Lanes<'c>) -> Made<Guess<'c>> {
        let n = lanes.count;
        let bytes = u64::from(access.elem.bytes());
        let offsets = self.offsets(lanes)?;
        let (at, inside) = self.component_at(lanes, offsets, access.elem, 0)?;
        let mask = self.guard(lanes, inside)?;
        let steps: Vec<u64> = (0..u64::from(n)).map(|i| i * bytes).collect();
        let steps = self.vector_bits(lanes.addr_lane(), &steps)?;
        let start = self.op2(I::Sub, at, steps)?;

        // The first lane of the mask; any one if there is none.
        let bits = self.mask_bits(mask, n)?;
        let never = self.cx.bool_type().const_zero().into();
        let first = self.intrinsic("llvm.cttz", &[Ty::I32], &[bits, never])?;
        let first = self.op2(I::And, first, self.i32(u32::from(n) - 1))?;
        let index = self.as_int(first)?;
        let from = self
            .b
            .build_extract_element(self.as_vector(start)?, index, "\0")?;
        let all = self.splat(from, n)?;
        let elsewhere = self.icmp(IntPredicate::NE, start, all)?;
        let wrong = self.op2(I::And, mask, elsewhere)?;
        let wrong = self.mask_bits(wrong, n)?;
        let mut holds = self.icmp(IntPredicate::EQ, wrong, self.i32(0))?;

        // In 64 bits the offset of lane 0 may be below zero. Of lanes that are looked at, none is before the first one, and
        // none may be behind the end of 32 bits.
        let lead = self.resize(first, 64)?;
        let lead = self.op2(I::Mul, lead, self.i64(bytes))?;
        let mut offset = from;
        if !lanes.flat {
            let there = self.op2(I::Add, from, self.resize(lead, 32)?)?;
            let there = self.resize(there, 64)?;
            let most = self.i64((1 << 32) - u64::from(n) * bytes);
            let near = self.icmp(IntPredicate::ULE, there, most)?;
            holds = self.op2(I::And, holds, near)?;
            offset = self.op2(I::Sub, there, lead)?;
        }
        let base = self.base(lanes.region)?;
        Ok(Guess {
            at,
            mask,
            holds,
            first: self.offset(base, self.as_int(offset)?)?,
        })
    }

    /// A load of which enabled lanes may lie side by side.
    pub fn load_guess(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        inst: Inst,
    ) -> Made<Option<Vec<V<'c>>>> {
        if !self.guesses(access, lanes.count, inst) {
            return Ok(None);
        }
        self.remark_access(inst, Way::Vector, Bounds::Lanes);
        let guess = self.guess(access, lanes)?;
        let (beside, other, done) = self.two_ways(guess.holds)?;
        self.at(beside);
        let ty = self.type_of(Ty::vector(access.elem, lanes.count));
        let callee = self.declare("llvm.masked.load", &[ty, self.ptr_type()])?;
        let others = [guess.mask, ty.const_zero()];
        let a = self.call_masked(callee, &[guess.first.into()], &others)?;
        let a = a.ok_or("a load without a result")?;
        self.jump(done)?;
        self.at(other);
        let b = self.gather_lanes(access.elem, lanes, guess.at, guess.mask)?;
        let end = self.here()?;
        self.jump(done)?;
        self.at(done);
        let phi = self.b.build_phi(ty, "\0")?;
        phi.add_incoming(&[(&a, beside), (&b, end)]);
        Ok(Some(vec![phi.as_basic_value()]))
    }

    /// A store of which enabled lanes may lie side by side; false where it is not worth to look.
    pub fn store_guess(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        data: &[V<'c>],
        inst: Inst,
    ) -> Made<bool> {
        let (&[v], true) = (data, self.guesses(access, lanes.count, inst)) else {
            return Ok(false);
        };
        self.remark_access(inst, Way::Vector, Bounds::Lanes);
        let guess = self.guess(access, lanes)?;
        let (beside, other, done) = self.two_ways(guess.holds)?;
        self.at(beside);
        self.store_masked(guess.mask, v, guess.first)?;
        self.jump(done)?;
        self.at(other);
        self.store_any(access, lanes, data)?;
        self.jump(done)?;
        self.at(done);
        Ok(true)
    }
}
