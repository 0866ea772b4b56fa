//! Which instructions of a block exist twice: for the case that one test finds all of its accesses inside, and for the other.
//!
//! A test for each access would cut a block into pieces, with a branch after each and values that live across them. One test for
//! all of them leaves straight code. In it, accesses at constant distances share a pointer, and loads become operands. The other
//! version is small, because it sends its accesses to the runtime or to gathers and scatters.
//!
//! The first version may load what other addresses are made from. Accesses to these are tested when the code gets there, and the
//! rest of the version exists twice again ([`Scope::Parts`]).

use rustc_hash::FxHashSet;

use super::candidate::Access;
use super::check::CheckInFront;
use super::limits::Scope;
use super::plan::{End, Planner, Reads};
use crate::backend::{Bounds as Tests, uses};
use crate::ssa::{Function, Inst, Op, Value};

/// Accesses from which a version of their own pays; of those that are slow otherwise, one.
pub(super) const MIN_ACCESSES: usize = 2;

/// Instructions beside the accesses that are translated twice, or computed twice, for each access: what stands between loads at
/// the start and stores at the end of a long computation is not worth it.
const TWICE: usize = 6;

/// Instructions after the last access up to which versions go on to the end of their block.
const REST: usize = 8;

/// Instructions that are looked at.
const WINDOW: usize = 1000;

/// What is there twice.
pub(super) struct Part {
    /// In front of the test.
    pub first: Vec<Inst>,
    /// In both versions.
    pub rest: Vec<Inst>,
    /// Accesses that the test is about; part of `rest`.
    pub accesses: Vec<Access>,
    /// Checks of these accesses that the test decides as well; part of `rest`.
    pub checks: Vec<(Inst, CheckInFront)>,
    /// Instructions that these are, from the first one on.
    pub len: usize,
}

impl Planner<'_> {
    /// Versions from the first of these instructions on, which `end` follows.
    pub(super) fn part(&self, insts: &[Inst], end: &End) -> Option<Part> {
        let limits = self.limits;
        let deep = self.known.depth >= limits.depth();
        if limits.bounds == Tests::Inline || self.known.outside.is_some() || deep {
            return None;
        }
        match limits.scope {
            Scope::Block => self.whole_block(insts, end),
            Scope::Parts => self.short_part(insts),
        }
    }

    /// Versions to the end of a block.
    fn whole_block(&self, insts: &[Inst], end: &End) -> Option<Part> {
        let f = self.f;
        if insts.len() > WINDOW {
            return None;
        }
        let found: Vec<Option<Access>> = insts.iter().map(|&i| self.access(i)).collect();
        let start = found.iter().position(Option::is_some)?;
        let late = late_values(f, &insts[start..]);
        let accesses: Vec<Access> = found
            .into_iter()
            .flatten()
            .filter(|a| !self.operands(a).iter().any(|v| late.contains(v)))
            .collect();
        if accesses.len() < MIN_ACCESSES {
            return None;
        }
        let checks: Vec<_> = match self.limits.bounds {
            Tests::Hoisted => checks_of(f, insts, &accesses, &late).collect(),
            _ => Vec::new(),
        };
        let start = insts[..start]
            .iter()
            .position(|i| checks.iter().any(|(check, _)| check == i))
            .unwrap_or(start);
        let (first, rest) = self.in_front(insts, start, (&accesses, &checks));
        let part = Part {
            first,
            rest,
            accesses,
            checks,
            len: insts.len(),
        };
        let most = part.accesses.len() * (TWICE + 1);
        let twice = part.rest.len() - part.checks.len();
        (twice <= most && twice + self.sinks(&part, end) <= most).then_some(part)
    }

    /// Versions from the first instruction, which is an access, to the last one that they are worth.
    fn short_part(&self, insts: &[Inst]) -> Option<Part> {
        let f = self.f;
        self.access(*insts.first()?)?;
        let insts = &insts[..insts.len().min(WINDOW)];
        let mut late: FxHashSet<Value> = FxHashSet::default();
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
            let (_, rest) =
                self.in_front(&insts[..=last], 0, (accesses.iter().map(|(_, a)| a), &[]));
            if rest.len() <= accesses.len() * (TWICE + 1) {
                break;
            }
            accesses.pop();
        }
        let slow = |(_, a): &(usize, Access)| a.vec4 || a.strided.is_none();
        if accesses.is_empty() || accesses.len() < MIN_ACCESSES && !accesses.iter().any(slow) {
            return None;
        }
        let mut len = accesses.last()?.0 + 1;
        // What is known to be inside goes on with what it was loaded from.
        for (n, i) in insts.iter().enumerate().skip(len) {
            let known = self.known.inside.contains_key(i);
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
        let (first, rest) = self.in_front(&insts[..len], 0, (accesses.iter().map(|(_, a)| a), &[]));
        Some(Part {
            first,
            rest,
            accesses: accesses.into_iter().map(|(_, access)| access).collect(),
            checks: Vec::new(),
            len,
        })
    }

    fn operands(&self, a: &Access) -> Vec<Value> {
        a.operands(self.f, self.limits)
    }

    /// Instructions up to `start` and those that make what the tests of some accesses read, and all others.
    fn in_front<'a>(
        &self,
        insts: &[Inst],
        start: usize,
        (accesses, checks): (
            impl IntoIterator<Item = &'a Access>,
            &[(Inst, CheckInFront)],
        ),
    ) -> (Vec<Inst>, Vec<Inst>) {
        let operands = accesses.into_iter().flat_map(|a| self.operands(a));
        let mut wanted: FxHashSet<Value> = operands.collect();
        wanted.extend(checks.iter().filter_map(|(_, check)| check.operand()));
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for (n, &i) in insts.iter().enumerate().rev() {
            let data = self.f.inst(i);
            if n < start || data.results.iter().any(|r| wanted.contains(r)) {
                wanted.extend(&data.args);
                first.push(i);
            } else {
                rest.push(i);
            }
        }
        first.reverse();
        rest.reverse();
        (first, rest)
    }

    /// How many vectors that are computed in front of the test nothing needs there, but both versions: such code generators compute
    /// them in each.
    fn sinks(&self, part: &Part, end: &End) -> usize {
        let f = self.f;
        let operands = part.accesses.iter().flat_map(|a| self.operands(a));
        let mut needed_here: FxHashSet<Value> = operands.collect();
        let mut needed_after: FxHashSet<Value> = FxHashSet::default();
        let out = self.handed_on(&part.rest, &[], end);
        let accesses: FxHashSet<Inst> = part.accesses.iter().map(|a| a.inst).collect();
        let reads = |i: Inst| match accesses.contains(&i) {
            true => Reads::Data,
            false => Reads::Shape,
        };
        for i in self.needed(&part.rest, &out, reads) {
            let data = f.inst(i);
            let address = |n: usize| n == 1 && accesses.contains(&i);
            let args = data.args.iter().enumerate();
            needed_after.extend(args.filter(|&(n, _)| !address(n)).map(|(_, &a)| a));
        }
        let mut sinks = 0;
        for &i in part.first.iter().rev() {
            let data = f.inst(i);
            let is_in = |set: &FxHashSet<Value>| data.results.iter().any(|r| set.contains(r));
            if data.op.has_effect() || is_in(&needed_here) {
                needed_here.extend(&data.args);
            } else if is_in(&needed_after) {
                needed_after.extend(&data.args);
                let vector = data.results.iter().any(|&r| !f.ty(r).is_scalar());
                let free = matches!(data.op, Op::Const(_) | Op::VecConst(_) | Op::Input(_));
                sinks += usize::from(vector && !free);
            }
        }
        sinks
    }

    /// Values of `rest` that are read after it.
    pub(super) fn handed_on(&self, rest: &[Inst], after: &[Inst], end: &End) -> Vec<Value> {
        let f = self.f;
        let after = after.iter().filter(|&&i| !self.rare.is_made_by(f, i));
        let mut used: FxHashSet<Value> = after.flat_map(|&i| uses::read(f, i)).collect();
        match end {
            End::Block(block) => used.extend(uses::ending(f, *block)),
            End::Meet(values) => used.extend(values),
        }
        self.rare.expand(f, &mut used);
        // Only a copy reads what it loads, and not as components.
        let read = rest.iter().filter(|i| !self.known.copies.contains_key(i));
        let made = read.flat_map(|&i| &f.inst(i).results);
        made.filter(|v| used.contains(v) || self.escapes[v.0 as usize])
            .filter(|&&v| !self.rare.contains(v))
            .copied()
            .collect()
    }

    /// Instructions with an effect, or with a result that is read.
    pub(super) fn needed(
        &self,
        rest: &[Inst],
        out: &[Value],
        reads: impl Fn(Inst) -> Reads,
    ) -> Vec<Inst> {
        let f = self.f;
        let mut used: FxHashSet<Value> = out.iter().copied().collect();
        let mut needed = Vec::new();
        for &i in rest.iter().rev() {
            let (data, reads) = (f.inst(i), reads(i));
            let seen = data.op.has_effect() && reads != Reads::Nothing;
            if !seen && !data.results.iter().any(|r| used.contains(r)) {
                continue;
            }
            needed.push(i);
            match reads {
                Reads::Nothing => {}
                Reads::Data => {
                    let args = data.args.iter().enumerate();
                    used.extend(args.filter(|(n, _)| *n != 1).map(|(_, &v)| v));
                }
                Reads::Operands => used.extend(&data.args),
                Reads::Shape => used.extend(uses::read(f, i)),
            }
        }
        needed.reverse();
        needed
    }
}

/// The checks that stand in front of accesses of a block and that one test in front decides as well.
fn checks_of<'a>(
    f: &'a Function,
    insts: &'a [Inst],
    accesses: &'a [Access],
    late: &'a FxHashSet<Value>,
) -> impl Iterator<Item = (Inst, CheckInFront)> + 'a {
    let is_access = |i: &Inst| accesses.iter().any(|a| a.inst == *i);
    insts.iter().enumerate().filter_map(move |(n, &i)| {
        let mut after = insts[n + 1..].iter();
        let checks = |i: &&Inst| matches!(f.inst(**i).op, Op::CheckBuffer(_));
        after.find(|i| !checks(i)).filter(|i| is_access(i))?;
        let check = CheckInFront::of(f, i)?;
        (!check.operand().is_some_and(|v| late.contains(&v))).then_some((i, check))
    })
}

/// Results that depend on an effect of these instructions.
fn late_values(f: &Function, insts: &[Inst]) -> FxHashSet<Value> {
    let mut late: FxHashSet<Value> = FxHashSet::default();
    for &i in insts {
        let data = f.inst(i);
        if data.op.has_effect() || data.args.iter().any(|a| late.contains(a)) {
            late.extend(&data.results);
        }
    }
    late
}
