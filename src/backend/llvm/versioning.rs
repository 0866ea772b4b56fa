//! Parts of a block in two versions, as the access plan says.
//!
//! ```text
//!  what the tests need ─► all inside? ─┬─► straight accesses ─┬─► end, or what follows
//!                                      └─► any addresses     ─┘
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{InstructionOpcode as I, PhiValue, PointerValue};

use super::emit::{EmitResult, LlvmEmitter, V};
use super::memory::Place;
use crate::backend::access::{
    AccessGroup, Apart, CopyId, Root, Segment, Step, VEC4_BYTES, Versions,
};
use crate::ssa::{Block, Inst, Value};

/// Where the bytes of an access are that is inside.
#[derive(Clone, Copy)]
pub(super) enum InsideAddresses<'c> {
    /// Lane 0; the others at equal distances.
    Strided(PointerValue<'c>),
    /// At any distances from a pointer.
    Lanes(LaneOffsets<'c>),
}

/// Unsigned offsets of lanes from a pointer.
#[derive(Clone, Copy)]
pub(super) struct LaneOffsets<'c> {
    /// Offset zero.
    pub start: PointerValue<'c>,
    /// The offsets as words of 64 bits, one or two of them a word.
    pub words: V<'c>,
    /// How far they are shifted.
    pub shift: u8,
    /// Bytes from there.
    pub distance: i64,
}

/// What is known in the version of a part of a block that is translated; nothing outside of versions. [`LlvmEmitter::in_version`] gives
/// back what was known around it.
#[derive(Clone, Default)]
pub(super) struct Version<'c> {
    inside: FxHashMap<Inst, InsideAddresses<'c>>,
    kept: FxHashMap<Inst, Vec<V<'c>>>,
    full: FxHashSet<Value>,
    rows: FxHashMap<CopyId, Vec<V<'c>>>,
}

impl<'c> Version<'c> {
    /// Where an access is that is inside.
    pub(super) fn inside(&self, inst: Inst) -> EmitResult<InsideAddresses<'c>> {
        let known = self.inside.get(&inst).copied();
        known.ok_or_else(|| "an access that is not inside".into())
    }

    /// The components of a load that was done in front of the loop over the threads.
    pub(super) fn kept(&self, inst: Inst) -> Option<&[V<'c>]> {
        self.kept.get(&inst).map(Vec::as_slice)
    }

    /// Notes that a load was done there.
    pub(super) fn keep(&mut self, inst: Inst, parts: Vec<V<'c>>) {
        self.kept.insert(inst, parts);
    }

    /// True for masks with all lanes.
    pub(super) fn is_full(&self, mask: Value) -> bool {
        self.full.contains(&mask)
    }

    /// What was loaded for each lane of a copy.
    pub(super) fn rows(&self, copy: CopyId) -> Option<&[V<'c>]> {
        self.rows.get(&copy).map(Vec::as_slice)
    }

    /// Notes what was loaded for each lane of a copy.
    pub(super) fn keep_rows(&mut self, copy: CopyId, rows: Vec<V<'c>>) {
        self.rows.insert(copy, rows);
    }
}

/// Where instructions go on.
pub(super) enum End<'c> {
    /// To the end of their block.
    Block(Block),
    /// To what follows, with values.
    Join(BasicBlock<'c>, Vec<(Value, PhiValue<'c>)>),
}

/// Instructions after which a long block goes on in another one: the least effort takes time in proportion to the square of the
/// length of a block, 15 s for one of 70,000 LLVM instructions.
const PART: usize = 512;

impl<'c> LlvmEmitter<'c, '_> {
    /// Translates steps of a block, and goes on to their end.
    pub(super) fn segment(&mut self, segment: &Segment, end: &End<'c>) -> EmitResult<()> {
        let mut at = 0;
        for step in &segment.steps {
            if let Step::Versions(versions) = step {
                at += versions.len;
                if self.versions(versions, end)? {
                    return Ok(());
                }
                continue;
            }
            self.step(step)?;
            at += 1;
            if at % PART == 0 {
                self.cut()?;
            }
        }
        self.leave_to(end)
    }

    pub(super) fn step(&mut self, step: &Step) -> EmitResult<()> {
        let f = self.f;
        if let Some(inst) = step.inst() {
            self.set_line(f.inst(inst).line);
        }
        match step {
            Step::Plain(inst) if self.access_plan.rare().is_made_by(f, *inst) => Ok(()),
            Step::Plain(inst) => {
                self.keep_order(*inst)?;
                self.instruction(*inst)
            }
            Step::Access(inst, how) => self.access_alone(*inst, how),
            Step::Atomic(inst, how) => self.atomic(*inst, *how),
            Step::Check(inst, how) => self.check_buffer(*inst, how),
            Step::AffineRace(inst, race) => self.check_affine_race(*inst, race),
            Step::Inside(access) => {
                let data = f.inst(access.inst);
                let at = self.version.inside(access.inst)?;
                match access.load {
                    true => self.load_inside(access, at, &data.args, &data.results),
                    false => self.store_inside(access, at, &data.args),
                }
            }
            Step::Copied(_) | Step::Checked(_) => Ok(()),
            Step::LoadCopy(_, copy) => self.load_copy(*copy),
            Step::StoreCopy { copy, late, .. } => self.store_copy(*copy, *late),
            Step::Versions(_) => Err("versions in front of versions".into()),
        }
    }

    fn leave_to(&mut self, end: &End<'c>) -> EmitResult<()> {
        match end {
            End::Block(block) => {
                let data = self.f.block(*block);
                self.set_line(data.term_line);
                self.terminator(&data.term)
            }
            End::Join(join, values) => {
                let from = self.here()?;
                for (v, phi) in values {
                    let v = self.get(*v)?;
                    phi.add_incoming(&[(&v, from)]);
                }
                self.jump(*join)
            }
        }
    }

    /// Translates versions; true when they went on to the end by themselves.
    fn versions(&mut self, versions: &Versions, end: &End<'c>) -> EmitResult<bool> {
        for step in &versions.first {
            self.step(step)?;
        }
        let (ok, offsets) = self.all_inside(versions)?;
        let join = self.join(versions)?;
        let to = join.as_ref().unwrap_or(end);
        let (fast, other) = (self.new_block(), self.new_block());
        self.branch_likely(ok, fast, other, true)?;
        let general = versions.other.as_ref();
        let general = general.ok_or("versions without a test")?;
        self.in_version(versions, fast, |e| e.fast_version(versions, &offsets, to))?;
        self.in_version(versions, other, |e| e.segment(general, to))?;

        let Some(End::Join(block, values)) = join else {
            return Ok(true);
        };
        self.at(block);
        for (v, phi) in values {
            self.bind(v, phi.as_basic_value());
        }
        Ok(false)
    }

    /// Translates a version, into a block. What it learns is forgotten after it, and what it makes: another version makes it anew,
    /// and after the versions, only the values that they pass on exist.
    fn in_version(
        &mut self,
        versions: &Versions,
        block: BasicBlock<'c>,
        translate: impl FnOnce(&mut Self) -> EmitResult<()>,
    ) -> EmitResult<()> {
        let around = self.version.clone();
        self.at(block);
        translate(self)?;
        self.version = around;
        self.values.forget(&versions.made);
        Ok(())
    }

    /// The version for when all accesses are inside, and in front of it the one for when surfaces are apart as well.
    fn fast_version(
        &mut self,
        versions: &Versions,
        offsets: &[V<'c>],
        to: &End<'c>,
    ) -> EmitResult<()> {
        self.enter(versions, offsets)?;
        if let Some((what, segment)) = &versions.apart {
            let apart = match what {
                Apart::Surfaces(pairs) => self.all_apart(pairs)?,
                Apart::Lanes { load, store } => self.lanes_apart(*load, *store)?,
            };
            let (late, others) = (self.new_block(), self.new_block());
            self.branch_likely(apart, late, others, true)?;
            self.in_version(versions, late, |e| e.segment(segment, to))?;
            self.at(others);
        }
        self.segment(&versions.fast, to)
    }

    /// Where the versions meet; nowhere if both go to the end by themselves.
    fn join(&mut self, versions: &Versions) -> EmitResult<Option<End<'c>>> {
        if !versions.meet {
            return Ok(None);
        }
        let join = self.new_block();
        let values = self.aside(join, |e| {
            let phi = |&v: &Value| Ok((v, e.b.build_phi(e.type_of(e.ty(v)), "\0")?));
            versions.out.iter().map(phi).collect::<EmitResult<_>>()
        })?;
        Ok(Some(End::Join(join, values)))
    }

    /// Whether all accesses are inside and have their lanes, and offsets of the groups in their regions.
    pub(super) fn all_inside(&mut self, versions: &Versions) -> EmitResult<(V<'c>, Vec<V<'c>>)> {
        let (mut tests, mut offsets) = (Vec::new(), Vec::new());
        for s in &versions.groups {
            let (inside, offset) = self.group_inside(s)?;
            tests.push(inside);
            offsets.push(offset);
        }
        for &condition in &versions.conditions {
            tests.push(self.all_lanes(condition)?);
        }
        let mut tests = tests.into_iter();
        let first = tests.next().ok_or("versions without a test")?;
        let all = tests.try_fold(first, |all, test| self.op2(I::And, all, test))?;
        Ok((all, offsets))
    }

    /// Whether the surfaces of each pair have no byte in common.
    fn all_apart(&mut self, places: &[(Place, Place)]) -> EmitResult<V<'c>> {
        let mut all: Option<V<'c>> = None;
        for &(a, b) in places {
            let test = self.apart(a, b)?;
            all = Some(match all {
                Some(others) => self.op2(I::And, others, test)?,
                None => test,
            });
        }
        all.ok_or_else(|| "nothing that may be apart".into())
    }

    /// Whether no lane that is loaded has a byte in common with what is stored to lanes side by side. It may say no where they have
    /// none: 32-bit offsets are compared modulo 2^32.
    fn lanes_apart(&mut self, load: Inst, store: Inst) -> EmitResult<V<'c>> {
        let (InsideAddresses::Lanes(from), InsideAddresses::Strided(to)) =
            (self.version.inside(load)?, self.version.inside(store)?)
        else {
            return Err("a copy that is not scattered".into());
        };
        let lanes = u32::from(self.ty(self.f.inst(load).args[1]).lanes);
        let words = self.as_vector(from.words)?.get_type().get_size();
        let bits = 64 * words / lanes;
        let ty = self.int(bits).vec_type(lanes);
        let mut offsets = self.cast_bits(from.words, ty.into())?;
        let number = |e: &Self, n: u64| e.int(bits).const_int(n, false);
        if from.shift > 0 {
            let by = self.splat(number(self, from.shift.into()).into(), lanes as u16)?;
            offsets = self.op2(I::Shl, offsets, by)?;
        }
        // A lane meets the store from one byte less than its length before it to the store's end.
        let before = VEC4_BYTES - 1;
        let start = self.offset_const(from.start, from.distance + before)?;
        let [start, to] = [start, to].map(|p| self.cast(I::PtrToInt, p, self.int(64).into()));
        let first = self.op2(I::Sub, to?, start?)?;
        let first = self.resize(first, bits)?;
        let first = self.splat(first, lanes as u16)?;
        let distance = self.op2(I::Sub, offsets, first)?;
        let length = i64::from(lanes) * VEC4_BYTES + before;
        let length = self.splat(number(self, length as u64).into(), lanes as u16)?;
        let meets = self.icmp(IntPredicate::ULT, distance, length)?;
        let meets = self.cast_bits(meets, self.int(lanes).into())?;
        self.icmp(IntPredicate::EQ, meets, self.int(lanes).const_zero())
    }

    /// Whether all bytes of a group are inside, and the offset of the lowest one in the region, or the numbers that the group counts from.
    pub(super) fn group_inside(&mut self, s: &AccessGroup) -> EmitResult<(V<'c>, V<'c>)> {
        let all = s.all;
        let ty = all.ty(self.f);
        let by = self.konst(ty, all.from.cast_unsigned() & ty.lane.mask())?;
        let mut start = match all.root {
            Root::Zero => by,
            Root::Value(root) => self.get(root)?,
            Root::Scaled(scaled) => {
                let inside = self.numbers_inside(scaled, s)?;
                return Ok((self.all_ones(inside, ty.lanes)?, self.get(scaled.index)?));
            }
        };
        if all.root != Root::Zero && all.from != 0 {
            start = self.op2(I::Add, start, by)?;
        }
        let space = all.space;
        if space.is_flat() {
            start = self.flat_offset(start)?;
        }
        let region = self.region(space, all.surface)?;
        let limit = self.limit(region, s.bytes())?;
        let limit = self.splat(limit.into(), ty.lanes)?;
        let inside = self.icmp(IntPredicate::ULT, start, limit)?;
        if ty.is_scalar() {
            return Ok((inside, start));
        }
        Ok((self.all_ones(inside, ty.lanes)?, start))
    }

    /// Whether all lanes of a comparison are set.
    fn all_ones(&mut self, lanes: V<'c>, count: u16) -> EmitResult<V<'c>> {
        let word = self.int(u32::from(count));
        let bits = self.cast_bits(lanes, word.into())?;
        self.icmp(IntPredicate::EQ, bits, word.const_all_ones())
    }

    /// Notes where the accesses are and which masks are full.
    pub(super) fn enter(&mut self, versions: &Versions, offsets: &[V<'c>]) -> EmitResult<()> {
        for (s, &offset) in versions.groups.iter().zip(offsets) {
            self.keep_loads(versions, s)?;
            let region = self.region(s.all.space, s.all.surface)?;
            let base = self.base(region)?;
            let ty = s.all.ty(self.f);
            let start = if ty.is_scalar() {
                let offset = self.resize(offset, 64)?;
                InsideAddresses::Strided(self.offset(base, self.as_int(offset)?)?)
            } else {
                let (start, shift) = match s.all.root {
                    Root::Scaled(scaled) => (self.numbers_start(scaled, s)?, scaled.shift),
                    _ => (base, 0),
                };
                InsideAddresses::Lanes(LaneOffsets {
                    start,
                    words: self.lane_words(offset, ty)?,
                    shift,
                    distance: 0,
                })
            };
            for a in &versions.accesses {
                if s.bounds(a.inst).is_none() {
                    continue;
                }
                let distance = a.reach.at - s.all.from;
                let at = match start {
                    InsideAddresses::Strided(start) => {
                        InsideAddresses::Strided(self.offset_const(start, distance)?)
                    }
                    InsideAddresses::Lanes(offsets) => InsideAddresses::Lanes(LaneOffsets {
                        distance,
                        ..offsets
                    }),
                };
                self.version.inside.insert(a.inst, at);
            }
        }
        self.version.full.extend(versions.full(self.f));
        Ok(())
    }
}
