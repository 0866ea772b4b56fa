//! What a code generator goes through: the steps of each block, and what is known at each.

use rustc_hash::{FxHashMap, FxHashSet};

use super::atomic::{AtomicHow, Atomics};
use super::candidate::{Access, Finder};
use super::check::{
    AffineRace, BufferChecks, CheckHow, CheckInFront, Spacing, race_reads, race_twin,
};
use super::consts;
use super::copies::{Apart, Copied, CopyId};
use super::group::{AccessGroup, access_groups};
use super::how::{By, Decider, How, lane_wise};
use super::limits::{Limits, Scope};
use super::rare::Rare;
use super::versions::{MIN_ACCESSES, Part};
use crate::backend::uses;
use crate::ssa::remark::{self, BoundsTest, Decision, Remark, Why};
use crate::ssa::{Block, Function, Inst, Op, Value};

/// How the memory accesses of a function are done.
#[derive(Clone, Debug)]
pub struct AccessPlan {
    /// What it was made for.
    pub(in crate::backend) limits: Limits,
    blocks: Vec<(Block, Segment)>,
    copies: Vec<Copied>,
    rare: Rare,
}

/// Instructions one after the other.
#[derive(Clone, Debug, Default)]
pub(in crate::backend) struct Segment {
    /// In order.
    pub steps: Vec<Step>,
}

/// What is to be translated.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "llvm-codegen"),
    allow(
        dead_code,
        reason = "Cranelift's versions go to the end of their block, and it copies nothing"
    )
)]
pub(in crate::backend) enum Step {
    /// An instruction that is no lane-wise load, store or atomic, and no check of one.
    Plain(Inst),
    /// A load or store that no test of others decides.
    Access(Inst, How),
    /// An atomic.
    Atomic(Inst, AtomicHow),
    /// A check that no test of others decides.
    Check(Inst, Box<CheckHow>),
    /// A check of races whose lanes are affine.
    AffineRace(Inst, Box<AffineRace>),
    /// A check that one before it has done as well.
    Checked(Inst),
    /// An access in the version for when its test held.
    Inside(Box<Access>),
    /// An access of a copy that others do.
    Copied(Inst),
    /// The first load of a copy that is met: all that it loads.
    LoadCopy(Inst, CopyId),
    /// The last store of a copy: all that it stores.
    StoreCopy {
        /// The store.
        inst: Inst,
        /// The copy.
        copy: CopyId,
        /// It is loaded here: nothing loaded it before.
        late: bool,
    },
    /// A part of a block in two versions.
    Versions(Box<Versions>),
}

impl Step {
    /// The instruction; none for versions.
    pub(in crate::backend) fn inst(&self) -> Option<Inst> {
        match self {
            Step::Inside(a) => Some(a.inst),
            Step::Plain(inst)
            | Step::Access(inst, _)
            | Step::Atomic(inst, _)
            | Step::Check(inst, _)
            | Step::AffineRace(inst, _)
            | Step::Checked(inst)
            | Step::Copied(inst)
            | Step::LoadCopy(inst, _)
            | Step::StoreCopy { inst, .. } => Some(*inst),
            Step::Versions(_) => None,
        }
    }
}

/// A part of a block in two versions.
///
/// ```text
///  first ─► all inside? ─┬─► fast  ─┬─► what follows, with `out`, or the end of the block
///                        └─► other ─┘
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "llvm-codegen"),
    allow(
        dead_code,
        reason = "Cranelift's versions go to the end of their block, and it copies nothing"
    )
)]
pub(in crate::backend) struct Versions {
    /// In front of the test.
    pub first: Vec<Step>,
    /// Accesses that the test is about.
    pub accesses: Vec<Access>,
    /// Their bounds tests.
    pub groups: Vec<AccessGroup>,
    /// What else must hold: scalars, and masks that must be full.
    pub conditions: Vec<Value>,
    /// Checks of these accesses that the test decides as well.
    pub checks: Vec<(Inst, CheckInFront)>,
    /// Results that are not kept after each version.
    pub made: Vec<Value>,
    /// Values that are read after the versions.
    pub out: Vec<Value>,
    /// True if the versions meet again. Else each goes to where the segment around them goes.
    pub meet: bool,
    /// The version for when the test holds.
    pub fast: Segment,
    /// One that comes before it, for when these are apart as well: copies are loaded where they are stored.
    pub apart: Option<(Apart, Segment)>,
    /// The version for when the test fails; none where nothing has to be tested.
    pub other: Option<Segment>,
    /// Instructions that these are.
    pub len: usize,
}

impl Versions {
    /// How the bounds of an access of the fast version are known.
    pub(super) fn bounds(&self, a: &Access) -> BoundsTest {
        let known = self.groups.iter().find_map(|group| group.bounds(a.inst));
        match known {
            Some(BoundsTest::Tested) if a.strided.is_none() => BoundsTest::Lanes,
            known => known.unwrap_or(BoundsTest::Removed),
        }
    }

    /// Masks that have all lanes in the fast version.
    pub(in crate::backend) fn full<'a>(
        &'a self,
        f: &'a Function,
    ) -> impl Iterator<Item = Value> + 'a {
        full_masks(f, &self.accesses)
    }

    /// True if there are versions because several accesses share a test, which is worth to be mentioned.
    pub(super) fn are_many(&self) -> bool {
        self.other.is_some() && self.accesses.len() >= MIN_ACCESSES
    }
}

fn full_masks<'a>(f: &'a Function, accesses: &'a [Access]) -> impl Iterator<Item = Value> + 'a {
    let stores = accesses.iter().filter(|a| a.all.is_some());
    stores.map(|a| f.inst(a.inst).args[0])
}

impl AccessPlan {
    /// Plans a function whose blocks are translated in this order.
    pub(in crate::backend) fn new(f: &Function, limits: Limits, order: &[Block]) -> AccessPlan {
        let decider = Decider::new(f, &limits);
        let rare = match limits.rare_addresses {
            true => Rare::of(f, |i| decider.is_by_base(i)),
            false => Rare::default(),
        };
        let mut planner = Planner {
            f,
            finder: Finder::new(f, &limits),
            decider,
            atomics: Atomics::new(f, &limits),
            checks: BufferChecks::new(f),
            limits: &limits,
            lost: vec![false; f.values.len()],
            escapes: rare.escapes(f),
            rare: &rare,
            uses: match limits.vec4_versions {
                true => uses::counts(f),
                false => Vec::new(),
            },
            known: Known::default(),
            copies: Vec::new(),
        };
        let segments = order.iter().map(|&b| (b, planner.block(b)));
        AccessPlan {
            blocks: segments.collect(),
            copies: planner.copies,
            rare,
            limits,
        }
    }

    /// The blocks, in the order in which they are translated, and their steps.
    pub(in crate::backend) fn blocks(&self) -> &[(Block, Segment)] {
        &self.blocks
    }

    /// The parts of a block.
    #[cfg(any(test, feature = "llvm-codegen"))]
    pub(in crate::backend) fn segment(&self, block: Block) -> Option<&Segment> {
        let found = self.blocks.iter().find(|(b, _)| *b == block);
        found.map(|(_, segment)| segment)
    }

    /// A copy from memory to memory.
    pub(in crate::backend) fn copy(&self, id: CopyId) -> Option<&Copied> {
        self.copies.get(id.0)
    }

    /// Values that are made where they are read, and their instructions nowhere else.
    #[cfg_attr(
        not(feature = "llvm-codegen"),
        allow(
            dead_code,
            reason = "Cranelift makes addresses where they are read by itself"
        )
    )]
    pub(in crate::backend) const fn rare(&self) -> &Rare {
        &self.rare
    }

    /// What was decided about accesses. What is done where a test fails is not how an access is done.
    pub(in crate::backend) fn remarks(&self, f: &Function) -> Vec<Remark> {
        let mut remarks = Vec::new();
        for (_, segment) in &self.blocks {
            remark_steps((f, &self.limits), &segment.steps, &mut remarks);
        }
        remarks
    }
}

fn note(f: &Function, inst: Inst, decision: Decision) -> Remark {
    Remark {
        line: f.inst(inst).line,
        inst: Some(inst),
        decision,
    }
}

fn remark_steps(of: (&Function, &Limits), steps: &[Step], out: &mut Vec<Remark>) {
    let (f, _) = of;
    for step in steps {
        match step {
            Step::Access(inst, how) => remark_alone(of, *inst, how, out),
            Step::Atomic(inst, how) => {
                let (way, bounds) = how.way(f.ty(f.inst(*inst).args[1]).lanes);
                out.push(note(f, *inst, Decision::Access { way, bounds }));
            }
            Step::Versions(versions) => {
                remark_steps(of, &versions.first, out);
                for a in &versions.accesses {
                    let (way, bounds) = (a.way(), versions.bounds(a));
                    out.push(note(f, a.inst, Decision::Access { way, bounds }));
                }
                if let (Some(first), true) = (versions.accesses.first(), versions.are_many()) {
                    let accesses = versions.accesses.len() as u32;
                    out.push(note(f, first.inst, Decision::Versioned { accesses }));
                }
                remark_steps(of, &versions.fast.steps, out);
            }
            Step::Plain(inst) => {
                let data = f.inst(*inst);
                if let Some((way, bounds)) = remark::fixed_way(f, &data.op, &data.args) {
                    out.push(note(f, *inst, Decision::Access { way, bounds }));
                }
            }
            _ => {}
        }
    }
}

fn remark_alone((f, limits): (&Function, &Limits), inst: Inst, how: &How, out: &mut Vec<Remark>) {
    let lanes = f.ty(f.inst(inst).args[1]).lanes;
    let (way, bounds) = match how {
        How::Any(any) => any.way(lanes),
        How::Affine(alone) => (alone.strided.way(lanes), alone.bounds(limits)),
    };
    if let How::Affine(alone) = how
        && let By::Local(sum) = &alone.by
    {
        let why = match sum.is_tested() {
            true => Why::TestedIds,
            false => Why::Proven,
        };
        let stride = Some(sum.stride);
        out.push(note(f, inst, Decision::Addresses { stride, why }));
    }
    out.push(note(f, inst, Decision::Access { way, bounds }));
}

/// What is known in the version that is planned.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// Versions around.
    pub depth: usize,
    /// In the version for when a test failed, the accesses that it was about.
    pub outside: Option<FxHashSet<Inst>>,
    /// Accesses that are inside.
    pub inside: FxHashMap<Inst, Access>,
    /// Checks that were made in front.
    pub cleared: FxHashSet<Inst>,
    /// Checks of races that those before them do as well.
    pub checked: FxHashSet<Inst>,
    /// Masks with all lanes.
    pub full: FxHashSet<Value>,
    /// Copies from memory to memory, by their accesses.
    pub copies: FxHashMap<Inst, CopyId>,
    /// Copies that have been loaded.
    pub loaded: FxHashSet<CopyId>,
    /// Copies that are loaded where they are stored.
    pub late: FxHashSet<CopyId>,
}

/// Where steps go on.
pub(super) enum End {
    /// To the end of their block.
    Block(Block),
    /// To what follows, with values.
    Meet(Vec<Value>),
}

/// What an instruction reads in a version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// It is left out.
    Nothing,
    /// All operands but the address.
    Data,
    /// Its operands.
    Operands,
    /// These, and what its shape names.
    Shape,
}

pub(super) struct Planner<'a> {
    pub f: &'a Function,
    finder: Finder<'a>,
    decider: Decider<'a>,
    atomics: Atomics<'a>,
    checks: BufferChecks<'a>,
    pub limits: &'a Limits,
    /// Values that only versions made which are left.
    lost: Vec<bool>,
    /// Values that other blocks use than the one they are made in.
    pub escapes: Vec<bool>,
    pub rare: &'a Rare,
    /// How often each value is read; empty for code generators without vec4 versions, the only use of it.
    pub uses: Vec<u32>,
    pub known: Known,
    pub copies: Vec<Copied>,
}

impl Planner<'_> {
    fn block(&mut self, block: Block) -> Segment {
        let f = self.f;
        self.segment(&f.block(block).insts, &End::Block(block))
    }

    fn segment(&mut self, insts: &[Inst], end: &End) -> Segment {
        let mut segment = Segment::default();
        let mut at = 0;
        while let Some(&inst) = insts.get(at) {
            // Whole blocks are looked at once.
            let begins = self.limits.scope == Scope::Parts || at == 0;
            let part = if begins {
                self.part(&insts[at..], end)
            } else {
                None
            };
            let Some(part) = part else {
                at += 1;
                let mut step = self.step(inst);
                if let Step::AffineRace(_, race) = &mut step {
                    let twin = race_twin(self.f, inst, &insts[at..]);
                    race.twin = twin.map(|(_, check)| check);
                    self.known.checked.extend(twin.map(|(inst, _)| inst));
                    if race.spacing == Spacing::Table
                        && let Some((reads, done)) = race_reads(self.f, &insts[at - 1..])
                    {
                        race.reads = Some(reads);
                        self.known.checked.extend(done);
                    }
                }
                segment.steps.push(step);
                continue;
            };
            at += part.len;
            let versions = self.versions(part, &insts[at..], end);
            let meet = versions.meet;
            segment.steps.push(Step::Versions(Box::new(versions)));
            if !meet {
                break;
            }
        }
        segment
    }

    fn step(&mut self, inst: Inst) -> Step {
        if self.known.checked.contains(&inst) {
            return Step::Checked(inst);
        }
        if let Some(&access) = self.known.inside.get(&inst) {
            return self.step_inside(access);
        }
        if let Some(how) = self.atomics.how(inst) {
            return Step::Atomic(inst, how);
        }
        let at_hand = |v| self.is_at_hand(v);
        if let Some(how) = self.checks.how(inst, &self.decider, &at_hand) {
            return Step::Check(inst, Box::new(how));
        }
        if let Some(race) = AffineRace::of(self.f, inst, &self.decider, &at_hand) {
            return Step::AffineRace(inst, Box::new(race));
        }
        match self.how(inst) {
            Some(how) => Step::Access(inst, how),
            None => Step::Plain(inst),
        }
    }

    /// How a load or store is done by itself.
    fn how(&self, inst: Inst) -> Option<How> {
        let f = self.f;
        let data = f.inst(inst);
        lane_wise(&data.op)?;
        if self.is_outside(inst) {
            let any = self.limits.other_way(self.decider.any(inst)?);
            // Affine addresses are hardly ever outside, so what gathers by numbers keep in registers would be in the way.
            let affine = f
                .shapes
                .get(&inst)
                .is_some_and(|shape| shape.addr.is_some());
            return Some(How::Any(match affine {
                true => any,
                false => self.decider.scaled(inst, any, &|v| self.is_at_hand(v)),
            }));
        }
        let at_hand = |v| self.is_at_hand(v);
        let how = self
            .decider
            .how(inst, &at_hand, self.is_full(data.args[0]))?;
        let speculative = matches!(&how, How::Affine(alone) if alone.is_speculative());
        // Short versions do not speculate.
        if speculative && self.known.outside.is_some() && self.limits.scope == Scope::Parts {
            return self.decider.any(inst).map(How::Any);
        }
        Some(how)
    }

    fn step_inside(&mut self, access: Access) -> Step {
        let inst = access.inst;
        let Some(&copy) = self.known.copies.get(&inst) else {
            return Step::Inside(Box::new(access));
        };
        let late = self.known.late.contains(&copy);
        if access.load {
            return match !late && self.known.loaded.insert(copy) {
                true => Step::LoadCopy(inst, copy),
                false => Step::Copied(inst),
            };
        }
        match self.copies.get(copy.0).is_some_and(|c| c.last == inst) {
            true => Step::StoreCopy { inst, copy, late },
            false => Step::Copied(inst),
        }
    }

    /// True in the version for when a test failed, of accesses that it was about, or that nothing is known of there.
    fn is_outside(&self, inst: Inst) -> bool {
        let outside = self.known.outside.as_ref();
        outside.is_some_and(|tested| match self.limits.scope {
            Scope::Block => tested.contains(&inst),
            Scope::Parts => self.limits.forgets(&self.f.inst(inst).op),
        })
    }

    /// The access of an instruction, if it can be tested by itself and nothing is known about it yet.
    pub(super) fn access(&self, inst: Inst) -> Option<Access> {
        if self.known.inside.contains_key(&inst) {
            return None;
        }
        let data = self.f.inst(inst);
        lane_wise(&data.op)?;
        let at_hand = |v| self.is_at_hand(v);
        self.finder
            .access(inst, &at_hand, self.is_full(data.args[0]))
    }

    /// True for masks that are known to have all lanes.
    pub(super) fn is_full(&self, mask: Value) -> bool {
        consts::is_full(self.f, mask) || self.known.full.contains(&mask)
    }

    /// True for values that code can use here: not for what only versions made that are left. Constants can always be made again.
    fn is_at_hand(&self, v: Value) -> bool {
        let op = self.f.def_inst(v).map(|data| &data.op);
        let constant = matches!(op, Some(Op::Const(_) | Op::VecConst(_)));
        constant || !self.lost[v.0 as usize]
    }

    /// Plans versions of a part, which is followed by `after` and then `end`.
    fn versions(&mut self, part: Part, after: &[Inst], end: &End) -> Versions {
        let first = part.first.iter().map(|&i| self.step(i)).collect();
        self.part_copies(&part.rest);
        let tested = part.accesses.iter().filter(|a| !a.inside);
        let groups = access_groups(tested.map(|a| (a.inst, a.reach)), self.limits.bounds);
        let conditions = conditions(&part.accesses);
        let tested = !(groups.is_empty() && conditions.is_empty());
        let out = self.handed_on(&part.rest, after, end);
        let meet = tested && self.meets(&part.rest, after, end);
        let inner = End::Meet(out.clone());
        let to = if meet { &inner } else { end };
        let around = self.known.clone();

        self.forget(&part.rest, false);
        self.enter(&part, tested);
        let needed = self.needed(&part.rest, &out, |i| self.reads(i));
        self.plan_copies(&needed);
        let apart = self.copies_apart(&needed).map(|places| {
            let entered = self.known.clone();
            self.load_late(&needed);
            let segment = self.segment(&needed, to);
            self.known = entered;
            self.forget(&needed, false);
            (places, segment)
        });
        let fast = self.segment(&needed, to);
        self.known = around.clone();

        let other = tested.then(|| {
            self.forget(&part.rest, false);
            let accesses = part.accesses.iter().map(|a| a.inst);
            self.known.outside = Some(accesses.collect());
            let needed = self.needed(&part.rest, &out, |i| self.reads(i));
            self.segment(&needed, to)
        });
        self.known = around;
        self.forget(&part.rest, true);
        if !tested {
            self.forget(&needed, false);
        }
        if meet {
            for v in &out {
                self.lost[v.0 as usize] = false;
            }
        }
        let made = part.rest.iter().flat_map(|&i| &self.f.inst(i).results);
        Versions {
            first,
            groups,
            conditions,
            made: made.copied().collect(),
            out,
            meet,
            fast,
            apart,
            other,
            len: part.len,
            accesses: part.accesses,
            checks: part.checks,
        }
    }

    /// Notes what holds in the fast version.
    fn enter(&mut self, part: &Part, tested: bool) {
        self.known.depth += 1;
        let inside = part.accesses.iter().map(|a| (a.inst, *a));
        self.known.inside.extend(inside);
        self.known.full.extend(full_masks(self.f, &part.accesses));
        if tested {
            self.known
                .cleared
                .extend(part.checks.iter().map(|(check, _)| check));
        }
    }

    /// Says of what these instructions made whether it can be used: another version makes it anew, and after the versions there is only what they
    /// hand on.
    fn forget(&mut self, insts: &[Inst], lost: bool) {
        for v in insts.iter().flat_map(|&i| &self.f.inst(i).results) {
            self.lost[v.0 as usize] = lost;
        }
    }

    /// Whether versions meet again; they do not if both can go to the end by themselves.
    fn meets(&self, rest: &[Inst], after: &[Inst], end: &End) -> bool {
        let mut made = rest.iter().flat_map(|&i| &self.f.inst(i).results);
        let direct = match end {
            End::Block(_) => !made.any(|v| self.escapes[v.0 as usize]),
            End::Meet(_) => true,
        };
        !(after.is_empty() && direct)
    }

    fn reads(&self, inst: Inst) -> Reads {
        if self.known.cleared.contains(&inst) {
            Reads::Nothing
        } else if self.known.inside.contains_key(&inst) {
            Reads::Data
        } else if self.is_outside(inst) {
            Reads::Operands
        } else {
            Reads::Shape
        }
    }
}

/// What must hold beside the bounds: each condition once.
fn conditions(accesses: &[Access]) -> Vec<Value> {
    let mut conditions: Vec<Value> = Vec::new();
    let guard = |a: &Access| a.affine.and_then(|affine| affine.guard);
    for v in accesses.iter().flat_map(|a| [guard(a), a.all]).flatten() {
        if !conditions.contains(&v) {
            conditions.push(v);
        }
    }
    conditions
}
