//! Block versioning: parts of a block in two versions: one for when every access that can be tested in front is inside memory and every store
//! has its lanes, and one for everything else.
//!
//! A test for each access cuts a block into pieces with a branch each, and values that live across them. One test for all
//! leaves straight code, in which accesses at constant distances share a pointer; the other version is small, as it sends its
//! accesses to gathers, scatters and the runtime. In the first version, accesses whose addresses are made from what it
//! loads are tested when it gets there, and the rest of it is there twice again.
//!
//! ```text
//!  what the tests need ─► all inside? ─┬─► straight accesses ─┬─► end, or what follows
//!                                      └─► any addresses     ─┘
//! ```

use std::collections::{HashMap, HashSet};

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{InstructionOpcode as I, PhiValue, PointerValue};

use super::emit::{Emit, EmitResult, V};
use super::vec4::Copies;
use crate::backend::access::{AccessGroup, Kind, Reach, Strided, access_groups};
use crate::backend::{self as options, uses};
use crate::ssa::remark::{Bounds, Decision};
use crate::ssa::{Block, Inst, MemAccess, Op, Remark, Space, Value};

/// Accesses from which a version of their own pays; of those that are slow otherwise, one.
const MIN_ACCESSES: usize = 2;

/// Instructions beside the accesses that are translated twice, for each access.
const TWICE: usize = 6;

/// Instructions after the last access up to which versions go on to the end of their block.
const REST: usize = 8;

/// Instructions that are looked at.
const WINDOW: usize = 1000;

/// Versions in versions.
const DEPTH: usize = 3;

/// An access that one test of its addresses may find to be inside.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub inst: Inst,
    pub access: MemAccess,
    pub load: bool,
    pub lanes: u16,
    /// Its bytes; the root is a vector where nothing says that addresses run evenly.
    pub reach: Reach,
    /// Bytes from lane to lane, where that is known.
    pub stride: Option<i64>,
    pub kind: Kind,
    guard: Option<Value>,
    /// A mask or a scalar that says whether all lanes are enabled, where they must be.
    all: Option<Value>,
}

/// Where the bytes of an access are that is inside.
#[derive(Clone, Copy)]
pub(super) enum At<'c> {
    /// Lane 0; the others at even distances.
    Strided(PointerValue<'c>),
    /// The base of the region, offsets of the lanes as words of 64 bits, one or two of them a word, and the distance from there.
    Lanes(PointerValue<'c>, V<'c>, i64),
}

/// What is known in the version that is being translated.
#[derive(Clone, Default)]
pub(super) struct Versioning<'c> {
    /// Versions around.
    depth: usize,
    /// Nothing about addresses: the version for when a test failed.
    pub any: bool,
    /// Accesses that are inside.
    pub inside: HashMap<Inst, (Access, At<'c>)>,
    /// Masks with all lanes.
    pub full: HashSet<Value>,
    /// Records that are copied from memory to memory.
    pub copies: Copies<'c>,
}

/// Where instructions go on.
enum End<'c> {
    /// To the end of their block.
    Block(Block),
    /// To what follows, with values.
    Join(BasicBlock<'c>, Vec<(Value, PhiValue<'c>)>),
}

/// What is there twice.
struct Plan {
    /// In front of the test.
    first: Vec<Inst>,
    /// In both versions.
    rest: Vec<Inst>,
    accesses: Vec<Access>,
    /// Instructions of the block that these are, from the first one on.
    len: usize,
}

/// True for accesses of which the version for when a test failed does not ask how their addresses run: all but those to register
/// storage, which are known to be inside in most places.
const fn goes_anywhere(op: &Op) -> bool {
    matches!(op, Op::Load(access) | Op::Store(access) if !matches!(access.space, Space::Regs))
}

/// Instructions after which a long block goes on in another one: the least effort takes time in proportion to the square of the
/// length of a block, 15 s for one of 70,000 LLVM instructions.
const PART: usize = 512;

impl<'c> Emit<'c, '_> {
    /// Translates a block.
    pub fn versioned(&mut self, block: Block) -> EmitResult<()> {
        let insts = &self.f.block(block).insts;
        self.segment(insts, &End::Block(block))
    }

    fn segment(&mut self, insts: &[Inst], end: &End<'c>) -> EmitResult<()> {
        let mut at = 0;
        while let Some(&inst) = insts.get(at) {
            let Some(plan) = self.plan(&insts[at..]) else {
                self.instruction(inst)?;
                at += 1;
                if at % PART == 0 {
                    self.cut()?;
                }
                continue;
            };
            at += plan.len;
            if self.split(plan, &insts[at..], end)? {
                return Ok(());
            }
        }
        self.leave_to(end)
    }

    fn leave_to(&mut self, end: &End<'c>) -> EmitResult<()> {
        match end {
            End::Block(block) => {
                let data = self.f.block(*block);
                self.lines.set(&self.b, data.term_line);
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

    /// Versions from the first of these instructions on.
    fn plan(&mut self, insts: &[Inst]) -> Option<Plan> {
        if self.options.tuning.bounds == options::Bounds::Inline
            || self.versioning.any
            || self.versioning.depth >= DEPTH
        {
            return None;
        }
        self.access(*insts.first()?)?;
        let insts = &insts[..insts.len().min(WINDOW)];
        let f = self.f;
        let mut late: HashSet<Value> = HashSet::new();
        let mut accesses = Vec::new();
        for (n, &i) in insts.iter().enumerate() {
            let data = f.inst(i);
            if data.op.waits() {
                break;
            }
            if let Some(access) = self.access(i)
                && !self.operands(&access).iter().any(|v| late.contains(v))
            {
                accesses.push((n, access));
            }
            if data.op.has_effect() || data.args.iter().any(|a| late.contains(a)) {
                late.extend(&data.results);
            }
        }
        // As many accesses as there may be with what is between them.
        while let Some(&(last, _)) = accesses.last() {
            let early = self.early(&insts[..=last], &accesses);
            let twice = early.iter().filter(|&&early| !early).count();
            if twice <= accesses.len() * (TWICE + 1) {
                break;
            }
            accesses.pop();
        }
        let slow = |(_, a): &(usize, Access)| self.is_record(a) || a.stride.is_none();
        if accesses.is_empty() || accesses.len() < MIN_ACCESSES && !accesses.iter().any(slow) {
            return None;
        }
        let mut len = accesses.last()?.0 + 1;
        // What is known to be inside goes on with what it was loaded from.
        for (n, i) in insts.iter().enumerate().skip(len) {
            let known = self.versioning.inside.contains_key(i);
            if !known && f.inst(*i).op.has_effect() || n - len > TWICE {
                break;
            }
            if known {
                len = n + 1;
            }
        }
        let plain = |&i: &Inst| !f.inst(i).op.has_effect();
        if insts.len() - len <= REST && insts[len..].iter().all(plain) {
            len = insts.len();
        }
        let early = self.early(&insts[..len], &accesses);
        let part = |first: bool| {
            let chosen = insts.iter().zip(&early).filter(move |&(_, &e)| e == first);
            chosen.map(|(&i, _)| i).collect()
        };
        Some(Plan {
            first: part(true),
            rest: part(false),
            accesses: accesses.into_iter().map(|(_, access)| access).collect(),
            len,
        })
    }

    /// Which instructions make what the tests read.
    fn early(&self, insts: &[Inst], accesses: &[(usize, Access)]) -> Vec<bool> {
        let operands = accesses
            .iter()
            .flat_map(|(_, access)| self.operands(access));
        let mut wanted: HashSet<Value> = operands.collect();
        let mut early = vec![false; insts.len()];
        for (n, &i) in insts.iter().enumerate().rev() {
            let data = self.f.inst(i);
            early[n] = data.results.iter().any(|r| wanted.contains(r));
            if early[n] {
                wanted.extend(&data.args);
            }
        }
        early
    }

    /// What the test of an access reads.
    fn operands(&self, a: &Access) -> Vec<Value> {
        let values = [Some(a.reach.root), a.guard, a.all, a.reach.surface];
        values.into_iter().flatten().collect()
    }

    /// An access that can be tested by itself, if nothing is known about it yet.
    fn access(&self, inst: Inst) -> Option<Access> {
        let data = self.f.inst(inst);
        let (access, load) = match data.op {
            Op::Load(access) => (access, true),
            Op::Store(access) => (access, false),
            _ => return None,
        };
        let (mask, addr) = (data.args[0], data.args[1]);
        let lanes = self.ty(addr).lanes;
        if lanes == 1 || self.versioning.inside.contains_key(&inst) {
            return None;
        }
        let shape = self.f.shapes.get(&inst).copied().unwrap_or_default();
        let surface = access.space.has_surface().then(|| data.args[2]);
        let record = self.has_vec4(access, lanes);
        let (address, bytes, stride, kind, guard) = if let Some(known) = shape.addr {
            let strided = Strided::new(access, lanes, known.stride, false)?;
            let one_by_one = match load {
                true => self.gathers(access, lanes),
                false => self.scatters(access, lanes),
            };
            let fits = match strided.kind {
                Kind::Packed => true,
                Kind::Same => load,
                Kind::Spread => record || !one_by_one || load && self.reads_lanes(access, lanes),
            };
            let known_place =
                access.space == Space::Regs && self.scalar_const(known.base).is_some();
            if !fits || known_place {
                return None;
            }
            let bytes = (strided.lowest, strided.bytes);
            let stride = Some(known.stride);
            (known.base, bytes, stride, strided.kind, known.guard)
        } else if record || load && shape.speculative.is_none() && self.reads_lanes(access, lanes) {
            let bytes = u64::from(access.elem.bytes()) * u64::from(access.comps);
            (addr, (0, bytes), None, Kind::Spread, None)
        } else {
            return None;
        };
        let at_hand = |v: Value| !self.lost[v.0 as usize];
        let masked = kind == Kind::Packed && self.stores_masked(access, lanes);
        let asks = !load && !self.is_full(mask) && !masked;
        Some(Access {
            inst,
            access,
            load,
            lanes,
            reach: Reach::new(self.f, (access.space, surface), address, bytes, at_hand),
            stride,
            kind,
            guard,
            all: asks.then(|| shape.mask_all.unwrap_or(mask)),
        })
    }

    /// Translates versions; true when they went on to the end by themselves.
    fn split(&mut self, plan: Plan, after: &[Inst], end: &End<'c>) -> EmitResult<bool> {
        for &i in &plan.first {
            self.instruction(i)?;
        }
        self.part_copies(&plan.rest);
        let reaches = plan.accesses.iter().map(|a| (a.inst, a.reach));
        let groups = access_groups(reaches, self.options.tuning.bounds);
        let (ok, offsets) = self.all_inside(&plan.accesses, &groups)?;
        self.remark_versioning(&plan.accesses, &groups);
        let out = self.handed_on(&plan.rest, after, end);
        let join = self.join(&plan.rest, after, &out, end)?;
        let to = join.as_ref().unwrap_or(end);
        let (fast, other) = (self.new_block(), self.new_block());
        self.branch_likely(ok, fast, other, true)?;
        let outside = self.versioning.clone();

        self.at(fast);
        self.forget(&plan.rest, false);
        self.versioning.depth += 1;
        self.enter(&plan, &groups, &offsets)?;
        let needed = self.needed(&plan.rest, &out);
        self.plan_copies(&needed);
        if let Some(apart) = self.copies_apart(&needed)? {
            let (late, others) = (self.new_block(), self.new_block());
            self.branch_likely(apart, late, others, true)?;
            let entered = self.versioning.clone();
            self.at(late);
            self.copy_late(&needed);
            self.segment(&needed, to)?;
            self.versioning = entered;
            self.forget(&needed, false);
            self.at(others);
        }
        self.segment(&needed, to)?;
        self.versioning = outside;

        self.at(other);
        self.forget(&plan.rest, false);
        self.versioning.any = true;
        let needed = self.needed(&plan.rest, &out);
        self.segment(&needed, to)?;
        self.versioning.any = false;
        self.forget(&plan.rest, true);

        let Some(End::Join(block, values)) = join else {
            return Ok(true);
        };
        self.at(block);
        for (v, phi) in values {
            self.bind(v, phi.as_basic_value());
        }
        if after.is_empty() {
            self.leave_to(end)?;
        }
        Ok(after.is_empty())
    }

    /// Drops what these instructions made: another version makes it anew, and after the versions there is only what they hand
    /// on. There the rest is lost to those who find a value through the definition of another.
    fn forget(&mut self, insts: &[Inst], lost: bool) {
        let f = self.f;
        for v in insts.iter().flat_map(|&i| &f.inst(i).results) {
            self.vals[v.0 as usize] = None;
            self.lost[v.0 as usize] = lost;
        }
    }

    /// Values of `rest` that somebody after it reads.
    fn handed_on(&mut self, rest: &[Inst], after: &[Inst], end: &End<'c>) -> Vec<Value> {
        let f = self.f;
        let mut used: HashSet<Value> = after.iter().flat_map(|&i| uses::read(f, i)).collect();
        match end {
            End::Block(block) => used.extend(uses::ending(f, *block)),
            End::Join(_, values) => used.extend(values.iter().map(|(v, _)| *v)),
        }
        if self.escapes.is_empty() {
            self.escapes = uses::escapes(f);
        }
        // Nothing but a copy reads what it loads, and not as components.
        let read = rest.iter().filter(|&&i| !self.is_copied(i));
        let made = read.flat_map(|&i| &f.inst(i).results);
        made.filter(|v| used.contains(v) || self.escapes[v.0 as usize])
            .copied()
            .collect()
    }

    /// Where the versions meet; nowhere if both can go to the end by themselves.
    fn join(
        &mut self,
        rest: &[Inst],
        after: &[Inst],
        out: &[Value],
        end: &End<'c>,
    ) -> EmitResult<Option<End<'c>>> {
        let mut made = rest.iter().flat_map(|&i| &self.f.inst(i).results);
        let escapes = made.any(|v| self.escapes[v.0 as usize]);
        let direct = match end {
            End::Block(_) => !escapes,
            End::Join(..) => true,
        };
        if after.is_empty() && direct {
            return Ok(None);
        }
        let (here, join) = (self.here()?, self.new_block());
        self.at(join);
        let mut values = Vec::new();
        for &v in out {
            let phi = self.b.build_phi(self.type_of(self.ty(v)), "\0")?;
            values.push((v, phi));
        }
        self.at(here);
        Ok(Some(End::Join(join, values)))
    }

    /// Whether all accesses are inside and have their lanes, and offsets of the groups in their regions.
    fn all_inside(
        &mut self,
        accesses: &[Access],
        groups: &[AccessGroup],
    ) -> EmitResult<(V<'c>, Vec<V<'c>>)> {
        let (mut tests, mut offsets) = (Vec::new(), Vec::new());
        for s in groups {
            let (inside, offset) = self.group_inside(s)?;
            tests.push(inside);
            offsets.push(offset);
        }
        let mut seen: HashSet<Value> = HashSet::new();
        for v in accesses.iter().flat_map(|a| [a.guard, a.all]).flatten() {
            if seen.insert(v) {
                let whole = !self.ty(v).is_scalar();
                tests.push(if whole {
                    self.mask_is_full(v)?
                } else {
                    self.get(v)?
                });
            }
        }
        let mut tests = tests.into_iter();
        let first = tests.next().ok_or("versions without a test")?;
        let all = tests.try_fold(first, |all, test| self.op2(I::And, all, test))?;
        Ok((all, offsets))
    }

    /// Whether all bytes of a group are inside, and the offset of the lowest one in the region.
    fn group_inside(&mut self, s: &AccessGroup) -> EmitResult<(V<'c>, V<'c>)> {
        let all = s.all;
        let ty = self.ty(all.root);
        let mut start = self.get(all.root)?;
        if all.from != 0 {
            let by = self.konst(ty, all.from.cast_unsigned())?;
            start = self.op2(I::Add, start, by)?;
        }
        let space = all.space;
        if space == Space::Flat {
            start = self.flat_offset(start)?;
        }
        let region = self.region(space, all.surface)?;
        let limit = self.limit(region, s.bytes())?;
        let limit = self.splat(limit.into(), ty.lanes)?;
        let inside = self.icmp(IntPredicate::ULT, start, limit)?;
        if ty.is_scalar() {
            return Ok((inside, start));
        }
        let word = self.int(u32::from(ty.lanes));
        let bits = self.cast_bits(inside, word.into())?;
        let inside = self.icmp(IntPredicate::EQ, bits, word.const_all_ones())?;
        Ok((inside, start))
    }

    /// Notes where the accesses are and which masks are full.
    fn enter(&mut self, plan: &Plan, groups: &[AccessGroup], offsets: &[V<'c>]) -> EmitResult<()> {
        for (s, &offset) in groups.iter().zip(offsets) {
            let region = self.region(s.all.space, s.all.surface)?;
            let base = self.base(region)?;
            let ty = self.ty(s.all.root);
            let start = if ty.is_scalar() {
                let offset = self.resize(offset, 64)?;
                At::Strided(self.offset(base, self.as_int(offset)?)?)
            } else {
                At::Lanes(base, self.lane_words(offset, ty)?, 0)
            };
            for a in plan.accesses.iter().filter(|a| s.bounds(a.inst).is_some()) {
                let distance = a.reach.at - s.all.from;
                let at = match start {
                    At::Strided(start) => At::Strided(self.offset_const(start, distance)?),
                    At::Lanes(base, words, _) => At::Lanes(base, words, distance),
                };
                self.versioning.inside.insert(a.inst, (*a, at));
            }
        }
        let stores = plan.accesses.iter().filter(|a| a.all.is_some());
        let masks = stores.map(|a| self.f.inst(a.inst).args[0]);
        self.versioning.full.extend(masks);
        Ok(())
    }

    /// Instructions of which somebody sees something.
    fn needed(&self, rest: &[Inst], out: &[Value]) -> Vec<Inst> {
        let f = self.f;
        let mut used: HashSet<Value> = out.iter().copied().collect();
        let mut needed = Vec::new();
        for &i in rest.iter().rev() {
            let data = f.inst(i);
            if !data.op.has_effect() && !data.results.iter().any(|r| used.contains(r)) {
                continue;
            }
            needed.push(i);
            if self.versioning.inside.contains_key(&i) {
                let args = data.args.iter().enumerate();
                used.extend(args.filter(|(n, _)| *n != 1).map(|(_, &v)| v));
            } else if self.versioning.any && goes_anywhere(&data.op) {
                used.extend(&data.args);
            } else {
                used.extend(uses::read(f, i));
            }
        }
        needed.reverse();
        needed
    }

    fn remark_versioning(&mut self, accesses: &[Access], groups: &[AccessGroup]) {
        if let (Some(first), true) = (accesses.first(), accesses.len() >= MIN_ACCESSES) {
            self.remarks.push(Remark {
                line: self.f.inst(first.inst).line,
                inst: Some(first.inst),
                decision: Decision::Versioned {
                    accesses: accesses.len() as u32,
                },
            });
        }
        for a in accesses {
            let bounds = match groups.iter().find_map(|s| s.bounds(a.inst)) {
                Some(Bounds::Tested) if a.stride.is_none() => Bounds::Lanes,
                bounds => bounds.unwrap_or(Bounds::Removed),
            };
            let way = self.way(a);
            self.remark_access(a.inst, way, bounds);
        }
    }
}
