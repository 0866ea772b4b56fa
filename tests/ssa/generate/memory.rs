//! Accesses of random functions to memory, and addresses for them.

use visa_jit::isa::AtomicOp;
use visa_jit::ssa::*;

use super::{Generator, INTS};

impl Generator {
    /// Addresses as kernels make them: `base + (id + c) * size`.
    pub(super) fn address(&mut self) {
        let ids = self.value(Ty::vector(Lane::I16, self.lanes));
        let ty = Ty::vector(Lane::I32, self.lanes);
        let conv = *self.rng.pick(&[Conv::ZExt, Conv::SExt]);
        let ids = self.push(Op::Convert(conv), vec![ids], ty);
        let base = self.value(Ty::I32);
        let base = self.push(Op::Splat, vec![base], ty);
        let sum = self.push(Op::Binary(BinOp::Add), vec![ids, base], ty);
        let two = self.push(
            Op::VecConst(vec![2; usize::from(self.lanes)].into()),
            vec![],
            ty,
        );
        self.push(Op::Binary(BinOp::Shl), vec![sum, two], ty);
        if self.rng.chance(50) {
            self.push(Op::Convert(conv), vec![sum], ty.with_lane(Lane::I64));
        }
    }

    pub(super) fn addresses(&mut self) -> Value {
        let ty = Ty::vector(Lane::I32, self.lanes);
        let a = self.value(ty);
        let limit = self.push(
            Op::VecConst(vec![255; usize::from(self.lanes)].into()),
            vec![],
            ty,
        );
        if self.rng.chance(70) {
            self.push(Op::Binary(BinOp::And), vec![a, limit], ty)
        } else {
            a
        }
    }

    fn access(&mut self, elem: Lane, comps: u8) -> MemAccess {
        MemAccess {
            space: *self.rng.pick(&[Space::Surface, Space::Slm]),
            elem,
            comps,
            site: 0,
        }
    }

    fn operands(&mut self, mask: Value, space: Space) -> Vec<Value> {
        let mut args = vec![mask, self.addresses()];
        if space == Space::Surface {
            args.push(self.push(Op::Const(0), vec![], Ty::I32));
        }
        args
    }

    pub(super) fn store(&mut self, mask: Value, data: Value) {
        let m = self.access(self.f.ty(data).lane, 1);
        let mut args = self.operands(mask, m.space);
        args.push(data);
        self.f.push(self.block, Op::Store(m), args, &[], 0);
    }

    pub(super) fn memory(&mut self) {
        let lane = *self.rng.pick(&INTS);
        let (ty, mask) = (Ty::vector(lane, self.lanes), self.mask());
        match self.rng.below(7) {
            4.. => self.registers(lane, mask),
            0 => {
                let data = self.value(ty);
                self.store(mask, data);
            }
            1 => {
                let op = *self
                    .rng
                    .pick(&[AtomicOp::Add, AtomicOp::Umax, AtomicOp::Xchg]);
                let (space, elem) = (Space::Slm, Lane::I32);
                let mut args = self.operands(mask, space);
                args.push(self.value(ty.with_lane(elem)));
                let access = AtomicAccess {
                    space,
                    op,
                    elem,
                    site: 0,
                };
                self.push(Op::Atomic(access), args, ty.with_lane(elem));
            }
            _ => {
                let comps = 1 + self.rng.below(2) as u8;
                let m = self.access(lane, comps);
                let args = self.operands(mask, m.space);
                let results = vec![ty; usize::from(comps)];
                let i = self.f.push(self.block, Op::Load(m), args, &results, 0);
                self.pool.extend(self.f.inst(i).results.clone());
            }
        }
    }

    /// An access to the storage of registers, mostly at one of few places, some of which overlap.
    fn registers(&mut self, elem: Lane, mask: Value) {
        let (space, n, site) = (Space::Regs, self.lanes, 0);
        let ty = Ty::vector(elem, n);
        let load = self.rng.chance(50);
        if self.rng.chance(15) {
            let (comps, at) = (1, self.addresses());
            let access = MemAccess {
                space,
                elem,
                comps,
                site,
            };
            if load {
                self.push(Op::Load(access), vec![mask, at], ty);
            } else {
                let data = self.value(ty);
                self.f
                    .push(self.block, Op::Store(access), vec![mask, at, data], &[], 0);
            }
            return;
        }
        let always = self.push(Op::Const(1), vec![], Ty::scalar(Lane::I1));
        let offset = 16 * self.rng.below(5) as u64;
        let at = self.push(Op::Const(offset), vec![], Ty::I32);
        let access = BlockAccess {
            space,
            elem,
            n,
            site,
        };
        if load {
            self.push(Op::BlockLoad(access), vec![always, at], ty);
        } else {
            let data = self.value(ty);
            self.f.push(
                self.block,
                Op::BlockStore(access),
                vec![always, at, data],
                &[],
                0,
            );
        }
    }
}
