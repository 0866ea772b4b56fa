//! Blocks in two versions: one for when every evenly spaced access stays inside memory and every store of which that is known
//! in front has all its lanes, and one for everything else.
//!
//! A test for each access cuts a block into pieces with a branch each, and values that live across them.
//! One test for all of them leaves straight code, in which loads become operands; the other version
//! may then be small, and sends its accesses to the runtime.
//!
//! ```text
//!  what comes first, what the tests need ─► all inside? ─┬─► runs     ─► end
//!                                                        └─► messages ─► end
//! ```
//!
//! Where other blocks use a value that the versions make, both go on to one block that takes it.

use std::collections::HashSet;

use cranelift_codegen::ir::{self, BlockArg, InstBuilder, Value as V};

use super::emit::Emit;
use super::mask::MaskRepr;
use super::mask_plan::Form;
use super::value::{Val, int_lane, piece_count, piece_type, scalar_type};
use crate::backend::Bounds as Tests;
use crate::backend::access::{AccessGroup, Strided};
use crate::ssa::remark::{Bounds, Decision};
use crate::ssa::{Block, Function, Inst, Lane, Op, Ty, Value, ValueDef};

/// Accesses from which a version of their own pays.
const MIN_ACCESSES: usize = 2;

/// Instructions beside the accesses that are translated twice, or computed twice, for each access: what stands between loads at
/// the start and stores at the end of a long computation is not worth it.
const TWICE: usize = 6;

/// Longest block that is looked at, in instructions.
const MAX_BLOCK: usize = 1000;

/// Which instructions go where.
struct Plan {
    /// In front of the test.
    first: Vec<Inst>,
    /// In both versions.
    rest: Vec<Inst>,
    /// Accesses that the test is about; part of `rest`.
    accesses: Vec<Inst>,
    /// Checks of these accesses that the test decides as well; part of `rest`.
    checks: Vec<Inst>,
    /// Values of `rest` that other blocks use.
    out: Vec<Value>,
}

impl Emit<'_> {
    /// Translates a block in two versions; false, and nothing done, when it is not one for that.
    pub fn versioned(&mut self, block: Block) -> bool {
        let Some(plan) = self.plan_versioning(block) else {
            return false;
        };
        for &i in &plan.first {
            self.instruction(i);
        }
        let groups = self.access_groups(&plan.accesses);
        self.remark_accesses(&plan.accesses, &groups);
        let Some(mut ok) = self.all_hold(&plan.accesses, &groups) else {
            return self.straight(block, &plan, &groups);
        };
        for &i in &plan.checks {
            if let Some(clear) = self.run_is_clear(i) {
                ok = self.ins().band(ok, clear);
                self.cleared.push(i);
            }
        }
        if let Some(&first) = plan.accesses.first() {
            let accesses = plan.accesses.len() as u32;
            self.remark(first, Decision::Versioned { accesses });
        }
        let (accesses, messages) = (self.new_block(), self.new_cold_block());
        let join = (!plan.out.is_empty()).then(|| self.new_block());
        self.branch(ok, accesses, messages);
        let cache = self.cache.clone();

        self.block = accesses;
        self.fast_version(&plan, &groups);
        self.cleared.clear();
        self.leave_version(block, &plan, join);

        self.block = messages;
        self.cache = cache.clone();
        self.by_message.clone_from(&plan.accesses);
        for &i in &plan.rest {
            self.instruction(i);
        }
        self.by_message.clear();
        self.leave_version(block, &plan, join);

        // After the versions there is only what they hand on.
        let made = plan.rest.iter().flat_map(|&i| &self.f.inst(i).results);
        for v in made {
            self.vals[v.0 as usize] = Val::None;
        }
        if let Some(join) = join {
            self.block = join;
            self.cache = cache;
            for &v in &plan.out {
                self.vals[v.0 as usize] = self.joined(join, v);
            }
            self.end(block);
        }
        true
    }

    /// Notes how the accesses of the fast version are done.
    fn remark_accesses(&mut self, accesses: &[Inst], groups: &[AccessGroup]) {
        for &i in accesses {
            let f = self.f;
            let data = f.inst(i);
            let (Some(addr), Op::Load(access) | Op::Store(access)) =
                (f.shapes.get(&i).and_then(|s| s.addr), &data.op)
            else {
                continue;
            };
            let lanes = self.ty(data.args[1]).lanes;
            let load = matches!(data.op, Op::Load(_));
            if let Some(strided) = Strided::new(*access, lanes, addr.stride, load) {
                let bounds = groups.iter().find_map(|s| s.bounds(i));
                self.remark_access(i, strided.way(lanes), bounds.unwrap_or(Bounds::Removed));
            }
        }
    }

    /// Every access is known to be inside: one version.
    fn straight(&mut self, block: Block, plan: &Plan, groups: &[AccessGroup]) -> bool {
        self.fast_version(plan, groups);
        self.end(block);
        true
    }

    fn end(&mut self, block: Block) {
        let data = self.f.block(block);
        self.set_line(data.term_line);
        self.terminator(&data.term);
    }

    /// Condition under which the fast version does all accesses; `None` if it always does.
    fn all_hold(&mut self, accesses: &[Inst], groups: &[AccessGroup]) -> Option<V> {
        let mut tests: Vec<V> = groups.iter().map(|s| self.group_inside(s)).collect();
        for &i in accesses {
            for test in self.run_conditions(i).into_iter().flatten() {
                if !tests.contains(&test) {
                    tests.push(test);
                }
            }
        }
        let (&first, others) = tests.split_first()?;
        Some(others.iter().fold(first, |all, &t| self.ins().band(all, t)))
    }

    /// The fast version; leaves out what only computes addresses.
    fn fast_version(&mut self, plan: &Plan, groups: &[AccessGroup]) {
        let needed = self.needed(plan);
        for s in groups {
            let pointers = self.group_pointers(s);
            self.lane0_pointers.extend(pointers);
        }
        self.full_masks = self.stored_masks(plan);
        let rest = plan.rest.iter().zip(needed);
        let insts: Vec<Inst> = rest
            .filter_map(|(&i, needed)| needed.then_some(i))
            .collect();
        let anchors = self.anchors(&insts, |v| self.leaves(v));
        for (n, &i) in insts.iter().enumerate() {
            self.anchor(&anchors, n);
            if plan.accesses.contains(&i) {
                self.run_access(i);
            } else {
                self.instruction(i);
            }
        }
        self.full_masks.clear();
        self.lane0_pointers.clear();
    }

    fn stored_masks(&self, plan: &Plan) -> Vec<Value> {
        let whole = plan.accesses.iter().filter(|&&i| !self.stores_any_lanes(i));
        let data = whole.map(|&i| self.f.inst(i));
        let stores = data.filter(|d| matches!(d.op, Op::Store(_)));
        stores.map(|d| d.args[0]).collect()
    }

    /// True for masks that are known to be full here.
    pub fn is_full(&self, mask: Value) -> bool {
        self.full_masks.contains(&mask)
    }

    /// Which instructions of `rest` somebody uses when accesses go by their shapes.
    fn needed(&self, plan: &Plan) -> Vec<bool> {
        let mut used: Vec<Value> = plan.out.clone();
        let mut needed = vec![false; plan.rest.len()];
        for (n, &i) in plan.rest.iter().enumerate().rev() {
            let data = self.f.inst(i);
            let strided = plan.accesses.contains(&i);
            let result = |v: &Value| used.contains(v) || self.leaves(*v);
            let cleared = self.cleared.contains(&i);
            let effect = data.op.has_effect() && !cleared;
            needed[n] = strided || effect || data.results.iter().any(result);
            if needed[n] {
                let skipped = usize::from(strided);
                let args = data.args.iter().enumerate();
                used.extend(
                    args.filter(|(k, _)| *k != skipped || !strided)
                        .map(|(_, &a)| a),
                );
                let shape = self.f.shapes.get(&i).copied().unwrap_or_default();
                let addr = shape.addr.map(|a| [Some(a.base), a.guard]);
                let scalars = addr.into_iter().flatten().chain([shape.mask_all]);
                used.extend(scalars.flatten());
            }
        }
        needed
    }

    /// True for values that the end of their block, or another block uses.
    fn leaves(&self, v: Value) -> bool {
        let home = match self.f.def(v) {
            ValueDef::Result(..) => self.ending.as_ref(),
            _ => None,
        };
        self.escapes[v.0 as usize] || home.is_some_and(|used| used.contains(&v))
    }

    /// Goes to the block where the versions meet, or to the end of the block.
    fn leave_version(&mut self, block: Block, plan: &Plan, join: Option<ir::Block>) {
        let Some(join) = join else {
            return self.end(block);
        };
        let mut args: Vec<BlockArg> = Vec::new();
        for &v in &plan.out {
            let parts = match self.mask_form(v) {
                Some(Form::Bits) => vec![self.mask_bits(v)],
                Some(Form::Vec(width)) => self.mask_vec(v, width),
                None => self.parts(v),
            };
            args.extend(parts.into_iter().map(BlockArg::from));
        }
        self.ins().jump(join, &args);
    }

    fn mask_form(&self, v: Value) -> Option<Form> {
        let ty = self.ty(v);
        (ty.lane == Lane::I1 && !ty.is_scalar()).then(|| self.plan.form(v))
    }

    /// Parameters of `join` for a value.
    pub fn joined(&mut self, join: ir::Block, v: Value) -> Val {
        let ty = self.ty(v);
        let mut add = |t: ir::Type, n: usize| -> Vec<V> {
            let dfg = &mut self.func.dfg;
            (0..n).map(|_| dfg.append_block_param(join, t)).collect()
        };
        if ty.lane == Lane::I1 && !ty.is_scalar() {
            return Val::Mask(match self.plan.form(v) {
                Form::Bits => MaskRepr::Bits(add(ir::types::I32, 1)[0]),
                Form::Vec(width) => {
                    let lane = int_lane(width);
                    let n = piece_count(Ty::vector(lane, ty.lanes));
                    MaskRepr::Vec(width, add(piece_type(lane), n))
                }
            });
        }
        Val::Parts(if ty.is_scalar() {
            add(scalar_type(ty.lane), 1)
        } else {
            add(piece_type(ty.lane), piece_count(ty))
        })
    }

    fn plan_versioning(&mut self, block: Block) -> Option<Plan> {
        let f = self.f;
        let data = f.block(block);
        let insts = &data.insts;
        if insts.len() > MAX_BLOCK {
            return None;
        }
        let start = insts.iter().position(|&i| self.has_run(i))?;
        let late = late_values(f, &insts[start..]);
        let is_late = |v: &Value| late.contains(v);
        let accesses: Vec<Inst> = insts[start..]
            .iter()
            .copied()
            .filter(|&i| self.has_run(i) && !self.test_operands(i).iter().any(is_late))
            .collect();
        if accesses.len() < MIN_ACCESSES {
            return None;
        }
        let checks: Vec<Inst> = match self.options.tuning.bounds {
            Tests::Hoisted => checks_of(f, insts, &accesses)
                .filter(|&i| self.check_has_run(i))
                .collect(),
            _ => Vec::new(),
        };
        let start = insts[..start]
            .iter()
            .position(|i| checks.contains(i))
            .unwrap_or(start);
        let mut wanted: Vec<Value> = accesses
            .iter()
            .flat_map(|&i| self.test_operands(i))
            .collect();
        let mut early = vec![false; insts.len()];
        for (n, &i) in insts.iter().enumerate().rev() {
            let data = f.inst(i);
            early[n] = n < start || data.results.iter().any(|r| wanted.contains(r));
            if early[n] {
                wanted.extend(&data.args);
            }
        }
        let part = |first: bool| {
            let chosen = insts.iter().zip(&early).filter(move |&(_, &e)| e == first);
            chosen.map(|(&i, _)| i).collect::<Vec<Inst>>()
        };
        let (first, rest) = (part(true), part(false));
        let most = accesses.len() * (TWICE + 1);
        if rest.len() - checks.len() > most {
            return None;
        }
        let targets = data.term.targets();
        let ending = targets.iter().flat_map(|call| call.args.iter().copied());
        let ending: Vec<Value> = ending.chain(data.term.condition()).collect();
        let made = || rest.iter().flat_map(|&i| f.inst(i).results.iter().copied());
        // With one end for both versions, what the end uses has to get there too.
        let out = if made().any(|v| self.escapes[v.0 as usize]) {
            let leaves = |v: &Value| self.escapes[v.0 as usize] || ending.contains(v);
            made().filter(leaves).collect()
        } else {
            Vec::new()
        };
        let plan = Plan {
            first,
            rest,
            accesses,
            checks,
            out,
        };
        self.ending = Some(ending);
        (plan.rest.len() - plan.checks.len() + self.sinks(&plan) <= most).then_some(plan)
    }

    /// How many vectors that are computed in front of the test nothing needs there, but both versions: Cranelift computes them
    /// in each.
    fn sinks(&self, plan: &Plan) -> usize {
        let f = self.f;
        let mut needed_here: HashSet<Value> = plan
            .accesses
            .iter()
            .flat_map(|&i| self.test_operands(i))
            .collect();
        let mut needed_behind: HashSet<Value> = HashSet::new();
        for (&i, needed) in plan.rest.iter().zip(self.needed(plan)) {
            let data = f.inst(i);
            let address = |n: usize| n == 1 && plan.accesses.contains(&i);
            let args = data.args.iter().enumerate();
            let args = args.filter(|&(n, _)| needed && !address(n));
            needed_behind.extend(args.map(|(_, &a)| a));
        }
        let mut sinks = 0;
        for &i in plan.first.iter().rev() {
            let data = f.inst(i);
            let is_in = |set: &HashSet<Value>| data.results.iter().any(|r| set.contains(r));
            if data.op.has_effect() || is_in(&needed_here) {
                needed_here.extend(&data.args);
            } else if is_in(&needed_behind) {
                needed_behind.extend(&data.args);
                let vector = data.results.iter().any(|&r| !f.ty(r).is_scalar());
                let free = matches!(data.op, Op::Const(_) | Op::VecConst(_) | Op::Input(_));
                sinks += usize::from(vector && !free);
            }
        }
        sinks
    }

    /// What the test of an access reads.
    fn test_operands(&self, i: Inst) -> Vec<Value> {
        let data = self.f.inst(i);
        let shape = self.f.shapes.get(&i).copied().unwrap_or_default();
        let addr = shape.addr.map(|a| [Some(a.base), a.guard]);
        let mut out: Vec<Value> = addr.into_iter().flatten().flatten().collect();
        if let Op::Store(_) = &data.op {
            out.extend(shape.mask_all);
        }
        if let Op::Load(access) | Op::Store(access) = &data.op
            && access.space.has_surface()
        {
            out.push(data.args[2]);
        }
        out
    }
}

/// The checks that stand in front of accesses of a block.
fn checks_of<'a>(
    f: &'a Function,
    insts: &'a [Inst],
    accesses: &'a [Inst],
) -> impl Iterator<Item = Inst> + 'a {
    let pairs = insts.windows(2);
    let checks = move |pair: &[Inst]| {
        let check = matches!(f.inst(pair[0]).op, Op::CheckBuffer(_));
        (check && accesses.contains(&pair[1])).then_some(pair[0])
    };
    pairs.filter_map(checks)
}

/// Results that depend on an effect of these instructions.
fn late_values(f: &Function, insts: &[Inst]) -> Vec<Value> {
    let mut late: Vec<Value> = Vec::new();
    for &i in insts {
        let data = f.inst(i);
        if data.op.has_effect() || data.args.iter().any(|a| late.contains(a)) {
            late.extend(&data.results);
        }
    }
    late
}
