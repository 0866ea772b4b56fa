//! Blocks in two versions, as the access plan says.
//!
//! The first version is for the case that every access in the test is inside, and every store of which the test says so has all
//! its lanes. The other one is for everything else, and sends these accesses to the runtime.
//!
//! ```text
//!  what comes first, what the tests need ─► all inside? ─┬─► straight code ─► end
//!                                                        └─► messages ──────► end
//! ```
//!
//! Where other blocks use a value that the versions make, both go on to one block that takes it.

use rustc_hash::{FxHashMap, FxHashSet};

use cranelift_codegen::ir::{self, BlockArg, InstBuilder, Value as V};

use super::emit::CraneliftEmitter;
use super::mask::MaskRepr;
use super::mask_plan::Form;
use super::value::{Val, int_lane, piece_count, piece_type, scalar_type};
use crate::backend::access::{CheckInFront, Step, Versions};
use crate::ssa::{Block, Inst, Lane, Ty, Value};

/// What is known in the version of a block that is translated; nothing outside of versions.
#[derive(Default)]
pub(super) struct Version {
    /// Pointers to lane 0 of accesses that share one.
    lane0: FxHashMap<Inst, V>,
    /// Masks that are full.
    full: FxHashSet<Value>,
}

impl Version {
    /// Pointer to lane 0 of an access that shares it with others.
    pub(super) fn lane0(&self, inst: Inst) -> Option<V> {
        self.lane0.get(&inst).copied()
    }
}

impl CraneliftEmitter<'_> {
    /// Translates a step of a block.
    pub(super) fn step(&mut self, step: &Step) {
        match step {
            Step::Plain(inst) => self.instruction(*inst),
            Step::Access(inst, how) => self.access_alone(*inst, how),
            Step::Atomic(inst, how) => self.atomic(*inst, *how),
            Step::Check(inst, how) => self.check_buffer(*inst, how),
            Step::AffineRace(inst, race) => self.check_affine_race(*inst, race),
            Step::Checked(_) => {}
            Step::Inside(access) => self.access_inside(access),
            Step::Copied(_) | Step::LoadCopy(..) | Step::StoreCopy { .. } | Step::Versions(_) => {
                self.bug("a step for another code generator");
            }
        }
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
        }
    }

    /// Translates a block in versions.
    pub(super) fn versioned(&mut self, block: Block, versions: &Versions) {
        self.steps(&versions.first);
        let (Some(other), Some(mut ok)) = (&versions.other, self.all_hold(versions)) else {
            // Every access is known to be inside: one version.
            self.fast_version(versions);
            return self.end(block);
        };
        for (check, test) in &versions.checks {
            ok = match test {
                CheckInFront::Buffer(of, span) => {
                    let clear = self.span_is_clear(*check, *of, span);
                    self.ins().band(ok, clear)
                }
                CheckInFront::Aligned(odd) => {
                    let odd = self.scalar(*odd);
                    self.ins().band_not(ok, odd)
                }
            };
        }
        let (accesses, messages) = (self.new_block(), self.new_cold_block());
        let join = versions.meet.then(|| self.new_block());
        self.branch(ok, accesses, messages);
        let cache = self.cache.clone();

        self.block = accesses;
        self.fast_version(versions);
        self.leave_version(block, &versions.out, join);

        self.block = messages;
        self.cache = cache.clone();
        self.steps(&other.steps);
        self.leave_version(block, &versions.out, join);

        // After the versions, only the values that they pass on exist.
        for v in &versions.made {
            self.vals[v.0 as usize] = Val::None;
        }
        if let Some(join) = join {
            self.block = join;
            self.cache = cache;
            for &v in &versions.out {
                self.vals[v.0 as usize] = self.joined(join, v);
            }
            self.end(block);
        }
    }

    /// Condition under which the fast version does all accesses; `None` if it always does.
    fn all_hold(&mut self, versions: &Versions) -> Option<V> {
        let groups = &versions.groups;
        let mut tests: Vec<V> = groups.iter().map(|s| self.group_inside(s)).collect();
        for &condition in &versions.conditions {
            let test = self.scalar(condition);
            if !tests.contains(&test) {
                tests.push(test);
            }
        }
        let (&first, others) = tests.split_first()?;
        Some(others.iter().fold(first, |all, &t| self.ins().band(all, t)))
    }

    /// The fast version.
    fn fast_version(&mut self, versions: &Versions) {
        let pointers = versions.groups.iter();
        let pointers = pointers.flat_map(|s| self.group_pointers(s));
        self.version = Version {
            lane0: pointers.collect(),
            full: versions.full(self.f).collect(),
        };
        let steps = &versions.fast.steps;
        let insts: Vec<Inst> = steps.iter().filter_map(Step::inst).collect();
        let anchors = self.anchors(&insts, |v| versions.out.contains(&v));
        for (n, step) in steps.iter().enumerate() {
            self.anchor(&anchors, n);
            self.step(step);
        }
        self.version = Version::default();
    }

    /// True for masks that are known to be full here.
    pub(super) fn is_full(&self, mask: Value) -> bool {
        self.version.full.contains(&mask)
    }

    /// Goes to the block where the versions meet, with these values, or to the end of the block.
    fn leave_version(&mut self, block: Block, out: &[Value], join: Option<ir::Block>) {
        let Some(join) = join else {
            return self.end(block);
        };
        let mut args: Vec<BlockArg> = Vec::new();
        for &v in out {
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
    fn joined(&mut self, join: ir::Block, v: Value) -> Val {
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
}
