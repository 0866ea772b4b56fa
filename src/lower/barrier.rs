//! Barriers and fences.
//!
//! Threads of a group take turns on one thread of the host, each from wait to wait, so all that one has done is there when
//! the next goes on. Only what reaches other groups is a fence ([`Op::Fence`]).
//!
//! In a kernel without `nbarrier` the barrier of all threads is [`Op::Barrier`]: threads of a group take turns, and go on when
//! none can. With named barriers that is not enough, as some threads go on while others wait: there every wait is a
//! loop that asks whether the thread may pass and lets the others run while it may not, and the barrier of all threads
//! is one of them.
//!
//! A barrier covers no lanes of its own. Checks of barriers are told which lanes are enabled where it stands.

use super::Lowerer;
use super::error::Fail;
use crate::isa::Platform;
use crate::isa::lsc::{Scope, Sfid};
use crate::module::{Body, Inst, Module, NamedBarrier, Src};
use crate::ssa::{
    AccessKind, BOTH_ROLES, BarrierCheck, BarrierStep, BinOp, Conv, GROUP_BARRIER, ICond, Lane, Op,
    SITE_SHIFT, Space, Ty, Value,
};

/// True for kernels with barriers for a part of the threads.
pub(super) fn has_named(module: &Module) -> bool {
    let mut insts = module.insts.iter();
    insts.any(|i| matches!(i.body, Body::Nbarrier { .. }))
}

/// Mask bits of `fence_*`: for local memory, and for the vendor's compiler only.
const LOCAL: u8 = 1 << 5;
const SOFTWARE: u8 = 1 << 7;

/// True for fences that order what threads of other groups may see.
fn reaches_other_groups(body: &Body, platform: Platform) -> bool {
    match *body {
        // Before Ice Lake the bit has no meaning.
        Body::Fence(mask) => {
            let local = mask & LOCAL != 0 && platform != Platform::Skl;
            !local && mask & SOFTWARE == 0
        }
        Body::LscFence { sfid, scope, .. } => sfid != Sfid::Slm && scope != Scope::Group,
        _ => true,
    }
}

impl Lowerer<'_> {
    /// `fence_*`, `lsc_fence`.
    pub(super) fn fence(&mut self, body: &Body) {
        if reaches_other_groups(body, self.kernel.target().platform) {
            self.b.effect(Op::Fence, vec![]);
        }
    }

    /// `barrier`, or a half of `sbarrier`: comes to the barrier of all threads, and may wait there.
    pub(super) fn group_barrier(&mut self, inst: &Inst, wait: bool) {
        if self.additions.check_barriers {
            self.check_barrier(inst, wait);
        }
        let op = match (has_named(self.kernel.module()), wait) {
            // A thread that has signalled may as well be said to have done so when it waits: nothing that it does in
            // between makes another thread go on.
            (false, false) => return,
            (false, true) => Op::Barrier,
            (true, _) => {
                let id = self.b.i32(GROUP_BARRIER);
                match wait {
                    true => self.wait_to_pass(id),
                    false => {
                        self.barrier_step(BarrierStep::Signal, [id; 4]);
                    }
                }
                return;
            }
        };
        self.b.effect(op, vec![]);
    }

    /// Says which lanes come to a barrier.
    fn check_barrier(&mut self, inst: &Inst, waits: bool) {
        let site = self.site(inst, Space::Regs, AccessKind::Barrier, 0);
        let em = self.b.read(self.em);
        let lanes = match self.b.ty(em).is_scalar() {
            true => self.b.conv(Conv::ZExt, em, Lane::I32),
            false => self.b.op(Op::MaskToBits, vec![em], Ty::I32),
        };
        let check = BarrierCheck { waits, site };
        self.b.effect(Op::CheckBarrier(check), vec![lanes]);
    }

    /// `nbarrier`.
    pub(super) fn nbarrier(
        &mut self,
        inst: &Inst,
        id: &Src,
        step: &NamedBarrier,
    ) -> Result<(), Fail> {
        let id = self.low_bits(id, 31)?;
        let [role, producers, consumers] = match step {
            NamedBarrier::Wait => {
                self.wait_to_pass(id);
                return Ok(());
            }
            NamedBarrier::Signal { threads } => {
                let both = self.b.i32(BOTH_ROLES);
                let all = self.low_bits(threads, 0xFF)?;
                [both, all, all]
            }
            NamedBarrier::SignalAs {
                role,
                producers,
                consumers,
            } => {
                let role = self.low_bits(role, 3)?;
                let producers = self.low_bits(producers, 0xFF)?;
                [role, producers, self.low_bits(consumers, 0xFF)?]
            }
        };
        let role = match self.additions.check_barriers {
            true => {
                let site = self.site(inst, Space::Regs, AccessKind::Barrier, 0);
                let number = self.b.i32((site + 1) << SITE_SHIFT);
                self.b.bin(BinOp::Or, role, number)
            }
            false => role,
        };
        self.barrier_step(BarrierStep::Signal, [id, role, producers, consumers]);
        Ok(())
    }

    fn barrier_step(&mut self, step: BarrierStep, args: [Value; 4]) -> Value {
        self.b.op(Op::NamedBarrier(step), args.to_vec(), Ty::I32)
    }

    /// Lets other threads run until this one may go on after a barrier.
    fn wait_to_pass(&mut self, id: Value) {
        let [ask, others, on] = [(); 3].map(|()| self.b.block());
        self.b.jump(ask);
        self.b.switch_to(ask);
        let pass = self.barrier_step(BarrierStep::Pass, [id; 4]);
        let none = self.b.i32(0);
        let pass = self.b.icmp(ICond::Ne, pass, none);
        self.b.branch(pass, on, others);
        self.b.seal(others);
        self.b.switch_to(others);
        self.b.effect(Op::Barrier, vec![]);
        self.b.jump(ask);
        self.b.seal(ask);
        self.b.seal(on);
        self.b.switch_to(on);
    }

    fn low_bits(&mut self, s: &Src, mask: u32) -> Result<Value, Fail> {
        let v = self.scalar_int(s, Lane::I32)?;
        let mask = self.b.i32(mask);
        Ok(self.b.bin(BinOp::And, v, mask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_for_the_own_group_are_none() {
        let reaches = reaches_other_groups;
        for platform in Platform::ALL {
            // `fence_global.E`, `.EL1`, `fence_sw`, `fence_local.E`.
            assert!(reaches(&Body::Fence(1), platform));
            assert!(reaches(&Body::Fence(1 | 1 << 6), platform));
            assert!(!reaches(&Body::Fence(1 << 7), platform));
            let local = reaches(&Body::Fence(1 | 1 << 5), platform);
            assert_eq!(local, platform == Platform::Skl);
            for (sfid, scope, beyond) in [
                (Sfid::Slm, Scope::Group, false),
                (Sfid::Slm, Scope::Gpu, false),
                (Sfid::Ugm, Scope::Group, false),
                (Sfid::Ugm, Scope::Local, true),
                (Sfid::Ugm, Scope::Gpu, true),
                (Sfid::Ugml, Scope::Tile, true),
                (Sfid::Tgm, Scope::Gpu, true),
                (Sfid::Ugm, Scope::Sysacq, true),
            ] {
                let body = Body::LscFence { sfid, op: 0, scope };
                assert_eq!(reaches(&body, platform), beyond, "{body:?}");
            }
        }
    }
}
