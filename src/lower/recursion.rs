//! Calls that may come back to where they stand: subroutines and functions that call themselves, directly or
//! through others.
//!
//! An activation's values are SSA values of the one copy of the code, so a call inside a circle first saves what
//! its activation reads after the return: on a stack in the thread's register storage, at a place that the
//! call depth gives. The depth is limited; a call beyond [`MAX_CALL_DEPTH`] is not made, and reported as an
//! access out of bounds.
//!
//! An activation of a function owns the function's variables. Subroutines of `call` share theirs with whoever
//! calls them (docs/visa.md, "Control flow"), so that only masks and return sites are theirs. Variables that are reached by address
//! have one place in storage for all activations: they are copied to the stack before the call, and back after it.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::Lowerer;
use super::build::Builder;
use super::error::Fail;
use super::variables::Var;
use crate::isa::Opcode;
use crate::limits::{MAX_CALL_DEPTH, MAX_RECURSIVE_SUBS};
use crate::module::Inst as VisaInst;
use crate::ssa::*;

/// What a variable belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Number of the function, 0 for the kernel.
    pub unit: usize,
    /// Mask or return site, as opposed to a variable of the program.
    pub control: bool,
}

/// A return point of a recursive call.
#[derive(Debug)]
pub(super) struct Restore {
    from: Block,
    /// Address of the saved values, before the call and after it.
    base: [Value; 2],
    owner: Owner,
    /// Variables read after it, and their offsets from the base.
    loads: Vec<(Var, u32)>,
    bytes: u32,
}

/// Stack of saved activations.
#[derive(Debug, Default)]
pub(crate) struct CallStack {
    owners: FxHashMap<Var, Owner>,
    restores: FxHashMap<Block, Restore>,
    /// Constants that are known at the end: bytes of an activation, and where the stack starts.
    sizes: Vec<Inst>,
    starts: Vec<Inst>,
}

impl CallStack {
    /// Says whose a variable is.
    pub(crate) fn own(&mut self, var: Var, owner: Owner) {
        self.owners.insert(var, owner);
    }
}

/// Type in which a variable is saved.
fn saved_type(ty: Ty) -> Ty {
    if ty.lane == Lane::I1 {
        Ty::I32
    } else {
        ty.with_lane(ty.lane.as_int())
    }
}

/// The largest type that copies a part of this many bytes.
fn piece(bytes: u32) -> Ty {
    let lane = [Lane::I64, Lane::I32, Lane::I16, Lane::I8];
    let lane = lane.into_iter().find(|l| l.bytes() <= bytes);
    let lane = lane.unwrap_or(Lane::I8);
    let lanes = (bytes / lane.bytes()).clamp(1, 32);
    Ty::vector(lane, 1 << lanes.ilog2())
}

fn stack_access(ty: Ty) -> BlockAccess {
    BlockAccess {
        space: Space::Regs,
        elem: ty.lane,
        n: ty.lanes,
        site: u32::MAX,
    }
}

impl Builder {
    /// The value of a variable after a return that restores it.
    pub(crate) fn restored(&mut self, var: Var, block: Block) -> Option<Value> {
        let owner = *self.stack.owners.get(&var)?;
        let ty = self.var_ty(var);
        let r = self.stack.restores.get_mut(&block)?;
        if owner.unit != r.owner.unit || r.owner.control && !owner.control {
            return None;
        }
        let offset = r.bytes;
        let saved = saved_type(ty);
        r.loads.push((var, offset));
        r.bytes += saved.bytes().next_multiple_of(16);
        let base = r.base[1];
        let at = self.stack_address(block, base, offset);
        let yes = self.f.push1(block, Op::Const(1), vec![], Ty::BOOL, 0);
        let v = self.f.push1(
            block,
            Op::BlockLoad(stack_access(saved)),
            vec![yes, at],
            saved,
            0,
        );
        Some(match (ty.lane, ty.is_scalar()) {
            (Lane::I1, true) => self
                .f
                .push1(block, Op::Convert(Conv::Trunc), vec![v], ty, 0),
            (Lane::I1, false) => self.f.push1(block, Op::BitsToMask, vec![v], ty, 0),
            _ if saved != ty => self.f.push1(block, Op::Bitcast, vec![v], ty, 0),
            _ => v,
        })
    }

    /// Copies ranges of register storage one after the other to an address of the stack, or back from it.
    fn copy_storage(&mut self, ranges: &[Range<u32>], stack: Value, save: bool) {
        let mut offset = 0;
        for range in ranges {
            let mut at = range.start;
            while at < range.end {
                let ty = piece(range.end - at);
                let place = self.i32(at);
                let other = self.bin_imm(BinOp::Add, stack, i64::from(offset));
                let (from, to) = if save { (place, other) } else { (other, place) };
                let access = stack_access(ty);
                let yes = self.bool(true);
                let v = self.op(Op::BlockLoad(access), vec![yes, from], ty);
                self.effect(Op::BlockStore(access), vec![yes, to, v]);
                at += ty.bytes();
                offset += ty.bytes();
            }
        }
    }

    fn stack_address(&mut self, block: Block, base: Value, offset: u32) -> Value {
        let k = self
            .f
            .push1(block, Op::Const(u64::from(offset)), vec![], Ty::I32, 0);
        self.f
            .push1(block, Op::Binary(BinOp::Add), vec![base, k], Ty::I32, 0)
    }

    /// Saves before each recursive call what is read after it. A value saved at one call may itself have to be
    /// restored after another, so this runs to a fixpoint. Gives the bytes of the stack.
    pub(crate) fn save_activations(&mut self, start: u32) -> u32 {
        let mut blocks: Vec<Block> = self.stack.restores.keys().copied().collect();
        blocks.sort_unstable();
        let mut done = vec![0; blocks.len()];
        loop {
            let mut changed = false;
            for (i, b) in blocks.iter().enumerate() {
                let r = &self.stack.restores[b];
                let (from, base) = (r.from, r.base[0]);
                let new = r.loads.get(done[i]..).unwrap_or(&[]).to_vec();
                done[i] += new.len();
                changed |= !new.is_empty();
                for (var, offset) in new {
                    self.save(var, from, base, offset);
                }
            }
            if !changed || self.too_large {
                break;
            }
        }
        let frames = self.stack.restores.values().map(|r| r.bytes);
        let frame = frames.max().unwrap_or(0);
        for (list, value) in [(&self.stack.sizes, frame), (&self.stack.starts, start)] {
            for &i in list {
                self.f.inst_mut(i).op = Op::Const(u64::from(value));
            }
        }
        frame.saturating_mul(MAX_CALL_DEPTH)
    }

    fn save(&mut self, var: Var, from: Block, base: Value, offset: u32) {
        let v = self.value_at_end(var, from);
        let ty = self.f.ty(v);
        let saved = saved_type(ty);
        let v = match (ty.lane, ty.is_scalar()) {
            (Lane::I1, true) => self
                .f
                .push1(from, Op::Convert(Conv::ZExt), vec![v], saved, 0),
            (Lane::I1, false) => self.f.push1(from, Op::MaskToBits, vec![v], saved, 0),
            _ if saved != ty => self.f.push1(from, Op::Bitcast, vec![v], saved, 0),
            _ => v,
        };
        let at = self.stack_address(from, base, offset);
        let yes = self.f.push1(from, Op::Const(1), vec![], Ty::BOOL, 0);
        self.f.push(
            from,
            Op::BlockStore(stack_access(saved)),
            vec![yes, at, v],
            &[],
            0,
        );
    }

    /// Address of the saved values of the activation at a depth.
    fn activation(&mut self, depth: Value) -> Value {
        let size = self.i32(0);
        let start = self.i32(0);
        let at = self.bin(BinOp::Mul, depth, size);
        let at = self.bin(BinOp::Add, at, start);
        for (v, list) in [(size, true), (start, false)] {
            if let ValueDef::Result(i, _) = self.f.def(v) {
                if list {
                    self.stack.sizes.push(i);
                } else {
                    self.stack.starts.push(i);
                }
            }
        }
        at
    }
}

impl Lowerer<'_> {
    /// Function that a subroutine belongs to: 0 is the kernel.
    fn unit_of(&self, sub: usize) -> usize {
        let first = self.flow.subs.get(sub).map_or(0, |s| s.first);
        let functions = &self.kernel.module().functions;
        functions
            .iter()
            .take_while(|f| self.flow.target(f.entry) <= first)
            .count()
    }

    /// Says of every variable whose it is, when there are circles of calls.
    pub(super) fn plan_recursion(&mut self) -> Result<(), Fail> {
        let circles = self.flow.circles();
        if circles.is_empty() {
            return Ok(());
        }
        if circles.len() > MAX_RECURSIVE_SUBS {
            return Fail::unsupported(format!(
                "more than {MAX_RECURSIVE_SUBS} recursive subroutines"
            ));
        }
        for s in 0..self.flow.subs.len() {
            let owner = Owner {
                unit: self.unit_of(s),
                control: true,
            };
            for var in self.control_vars(s) {
                self.b.stack.own(var, owner);
            }
        }
        for unit in 1..=self.kernel.module().functions.len() {
            let owner = Owner {
                unit,
                control: false,
            };
            for var in self.program_vars(unit) {
                self.b.stack.own(var, owner);
            }
        }
        self.ctl.depth = Some(self.b.var(Ty::I32));
        Ok(())
    }

    /// Variables that a function's text declares.
    fn program_vars(&self, unit: usize) -> Vec<Var> {
        let functions = &self.kernel.module().functions;
        let Some(f) = functions.get(unit - 1) else {
            return Vec::new();
        };
        let ends = functions.get(unit).map(|f| f.first_vars);
        let range = |class: usize, len: usize| {
            let first = f.first_vars[class] as usize;
            first..ends.map_or(len, |e| e[class] as usize)
        };
        let vars = &self.kernel.module().vars;
        let general = range(0, vars.general.len());
        let mut out: Vec<Var> = self
            .regs
            .cells()
            .filter(|(var, _)| var.user_index().is_some_and(|i| general.contains(&i)))
            .map(|(_, cell)| cell)
            .collect();
        out.extend(&self.addrs[range(1, vars.address.len())]);
        out.extend(&self.preds[range(2, vars.predicate.len())]);
        out.extend(self.samplers[range(3, vars.sampler.len())].iter().flatten());
        out.extend(self.surfaces[range(4, vars.surface.len())].iter().flatten());
        out
    }

    /// Before a call inside a circle: saves, counts the depth, and lets go of what waits in this activation.
    /// Afterwards the current block is where the callee is entered. Returns nothing for other calls.
    pub(super) fn enter_activation(
        &mut self,
        b: usize,
        inst: &VisaInst,
        back: Block,
    ) -> Result<(), Fail> {
        let caller = self.flow.blocks[b].func;
        let circles = self.flow.circles().clone();
        let callees: Vec<usize> = self.flow.callees(b).collect();
        let circular = circles.contains(&caller) && callees.iter().any(|s| circles.contains(s));
        let (true, Some(depth_var)) = (circular, self.ctl.depth) else {
            return Ok(());
        };
        let owner = Owner {
            unit: self.unit_of(caller),
            control: inst.op == Opcode::Call,
        };
        let storage = match owner.control {
            true => Vec::new(),
            false => self.storage_of(owner.unit),
        };
        let depth = self.b.read(depth_var);
        let limit = self.b.i32(MAX_CALL_DEPTH);
        let fits = self.b.icmp(ICond::Ult, depth, limit);
        let (go, over) = (self.b.block(), self.b.block());
        self.b.branch(fits, go, over);
        self.b.seal(go);
        self.b.seal(over);
        self.b.switch_to(over);
        self.depth_fault(inst);
        self.go_on_behind(b);
        self.b.switch_to(go);
        let base = self.b.activation(depth);
        self.b.copy_storage(&storage, base, true);
        let enter = self.b.block();
        self.b.jump(enter);
        self.b.seal(enter);
        self.b.switch_to(enter);
        let deeper = self.b.bin_imm(BinOp::Add, depth, 1);
        self.b.write(depth_var, deeper);
        // The new activation starts without waiting lanes.
        let units: Vec<usize> = callees.iter().map(|&s| self.unit_of(s)).collect();
        for s in 0..self.flow.subs.len() {
            if circles.contains(&s) && units.contains(&self.unit_of(s)) {
                for var in self.waiting_vars(s) {
                    let ty = self.b.var_ty(var);
                    let none = self.b.vec_const(ty.lane, vec![0; usize::from(ty.lanes)]);
                    self.b.write(var, none);
                }
            }
        }
        self.b.switch_to(back);
        let depth = self.b.read(depth_var);
        let depth = self.b.bin_imm(BinOp::Sub, depth, 1);
        self.b.write(depth_var, depth);
        let base_after = self.b.activation(depth);
        self.b.copy_storage(&storage, base_after, false);
        let bytes: u32 = storage.iter().map(|r| r.end - r.start).sum();
        self.b.stack.restores.insert(
            back,
            Restore {
                from: go,
                base: [base, base_after],
                owner,
                loads: Vec::new(),
                bytes: bytes.next_multiple_of(16),
            },
        );
        self.b.switch_to(enter);
        Ok(())
    }

    /// Where the variables of a function that are reached by address lie in register storage.
    fn storage_of(&self, unit: usize) -> Vec<Range<u32>> {
        let functions = &self.kernel.module().functions;
        let Some(f) = functions.get(unit.wrapping_sub(1)) else {
            return Vec::new();
        };
        let first = f.first_vars[0] as usize;
        let end = functions
            .get(unit)
            .map_or(usize::MAX, |f| f.first_vars[0] as usize);
        let places = self.regs.memory_vars();
        places
            .filter(|(var, _)| var.user_index().is_some_and(|i| (first..end).contains(&i)))
            .map(|(_, place)| place)
            .collect()
    }

    /// A call that is not made shows as a store at the null address.
    fn depth_fault(&mut self, inst: &VisaInst) {
        let site = self.site(inst, Space::Flat, AccessKind::Write, 4);
        let access = BlockAccess {
            space: Space::Flat,
            elem: Lane::I32,
            n: 1,
            site,
        };
        let yes = self.b.bool(true);
        let null = self.b.bits(Lane::I64, 0);
        let zero = self.b.i32(0);
        self.b.effect(Op::BlockStore(access), vec![yes, null, zero]);
    }
}
