//! What is known about masks: a decision procedure for subset and equality.
//!
//! A mask is expanded through `and`, `or`, `xor`, `not`, `select` and shuffles that cut out
//! consecutive lanes into a truth table over at most eight *atoms*, masks that are not looked into.
//! Facts about atoms (subsets, unions) restrict the rows that count. A claim that holds in every
//! remaining row holds for every lane; one that does not is merely unknown.

use rustc_hash::FxHashMap;

use super::super::edit::{const_lanes, unary, uniform_const};
use crate::ssa::{BinOp, Function, Op, UnOp, Value};

/// Lanes of a mask from `first` on; how many follows from what they are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    pub(super) mask: Value,
    pub(super) first: u16,
}

/// Masks whose lanes do not count.
pub(super) type Without = [Option<Part>; 2];

/// A relation that holds lane by lane wherever its values are defined.
#[derive(Clone, Debug)]
pub(in crate::passes) enum Fact {
    /// The first has no lane that the second has not.
    Subset(Value, Value),
    /// The masks together are the last one.
    Union(Vec<Value>, Value),
    /// No lane is in both.
    Disjoint(Value, Value),
}

impl Fact {
    fn values(&self) -> Vec<Value> {
        match self {
            Fact::Subset(a, b) | Fact::Disjoint(a, b) => vec![*a, *b],
            Fact::Union(parts, whole) => parts.iter().copied().chain([*whole]).collect(),
        }
    }
}

const ATOMS: usize = 8;
/// Depths of expansion that are tried in turn.
const DEPTHS: [usize; 3] = [6, 3, 1];
/// Most atoms of a cut, so that facts have room for some more.
const CUT: usize = 6;
/// Most masks that are looked into for a cut.
const STEPS: usize = 32;
/// Facts about one atom that are looked at.
const FACTS: usize = 8;

/// A boolean function of eight atoms: bit `n` is its value where atom `k` is bit `k` of `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Table([u64; 4]);

impl Table {
    const FALSE: Table = Table([0; 4]);
    const TRUE: Table = Table([u64::MAX; 4]);

    fn atom(k: usize) -> Table {
        const LOW: [u64; 6] = [
            0xaaaa_aaaa_aaaa_aaaa,
            0xcccc_cccc_cccc_cccc,
            0xf0f0_f0f0_f0f0_f0f0,
            0xff00_ff00_ff00_ff00,
            0xffff_0000_ffff_0000,
            0xffff_ffff_0000_0000,
        ];
        match k {
            6 => Table([0, u64::MAX, 0, u64::MAX]),
            7 => Table([0, 0, u64::MAX, u64::MAX]),
            _ => Table([LOW[k]; 4]),
        }
    }

    fn zip(self, other: Table, f: impl Fn(u64, u64) -> u64) -> Table {
        Table(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    fn and(self, other: Table) -> Table {
        self.zip(other, |a, b| a & b)
    }

    fn or(self, other: Table) -> Table {
        self.zip(other, |a, b| a | b)
    }

    fn xor(self, other: Table) -> Table {
        self.zip(other, |a, b| a ^ b)
    }

    fn not(self) -> Table {
        self.xor(Table::TRUE)
    }
}

/// The known facts, by the values they are about.
#[derive(Default)]
pub(in crate::passes) struct Facts {
    about: FxHashMap<Value, Vec<Fact>>,
    /// Answers to subset questions since the last new fact.
    answers: FxHashMap<(Part, Without, Part, u16), bool>,
    /// The dispatch mask, if something reads it.
    dispatched: Option<Value>,
    /// Masks, the dispatch mask first and inner loops last, and which values are masks with lanes of each only.
    ceilings: Vec<(Value, Vec<bool>)>,
    /// Constants with all lanes that are there everywhere, of different widths.
    full: Vec<Value>,
}

impl Facts {
    pub(in crate::passes) fn add(&mut self, fact: Fact) {
        for v in fact.values() {
            self.about.entry(v).or_default().push(fact.clone());
        }
        self.answers.clear();
    }

    /// Adds that `v` is part of a mask that has too many other parts for all of them to be looked at.
    pub(super) fn add_part(&mut self, v: Value, whole: Value) {
        let list = self.about.entry(v).or_default();
        list.push(Fact::Subset(v, whole));
        self.answers.clear();
    }

    /// Adds that two masks together are one that may have been split in other places, too.
    pub(super) fn add_split(&mut self, parts: [Value; 2], whole: Value) {
        let fact = Fact::Union(parts.to_vec(), whole);
        for v in parts {
            self.about.entry(v).or_default().push(fact.clone());
        }
        self.answers.clear();
    }

    /// Keeps which of the ceilings is the dispatch mask.
    pub(super) fn set_dispatched(&mut self, whole: Value) {
        self.dispatched = Some(whole);
    }

    /// Keeps which values have only lanes of a mask: a question about these needs no proof.
    pub(super) fn add_ceiling(&mut self, whole: Value, part: Vec<bool>) {
        self.ceilings.push((whole, part));
    }

    /// Keeps constants with all lanes, so that unions can be replaced by one.
    pub(super) fn set_full(&mut self, full: Vec<Value>) {
        self.full = full;
    }

    /// The same lanes of the dispatch mask, if `part` is a part of it.
    pub(super) fn dispatched(&self, part: Part) -> Option<Part> {
        let first = self.ceilings.first();
        below(
            first.filter(|(mask, _)| Some(*mask) == self.dispatched)?,
            part,
        )
    }

    /// The same lanes of the masks that `part` is known to be a part of, those of inner loops first and the dispatch mask last.
    pub(super) fn ceilings(&self, part: Part) -> impl Iterator<Item = Part> + '_ {
        let ceilings = self.ceilings.iter().rev();
        ceilings.filter_map(move |ceiling| below(ceiling, part))
    }

    /// Forgets the last fact added, which was about `values`.
    pub(super) fn remove_last(&mut self, fact: &Fact) {
        for v in fact.values() {
            if let Some(list) = self.about.get_mut(&v) {
                list.pop();
            }
        }
        self.answers.clear();
    }

    /// True when a fact mentions the mask.
    pub(super) fn known(&self, v: Value) -> bool {
        self.about.get(&v).is_some_and(|l| !l.is_empty())
    }

    /// True when a union that `v` is a part of is known.
    pub(super) fn is_union_known(&self, v: Value) -> bool {
        let mut facts = self.about.get(&v).into_iter().flatten();
        facts.any(|fact| matches!(fact, Fact::Union(parts, _) if parts.first() == Some(&v)))
    }

    /// Masks that contain `v` by a fact.
    pub(in crate::passes) fn supersets(&self, v: Value) -> impl Iterator<Item = Value> + '_ {
        let facts = self.about.get(&v).into_iter().flatten();
        facts.filter_map(move |fact| match fact {
            Fact::Subset(a, b) if *a == v => Some(*b),
            Fact::Union(parts, whole) if parts.contains(&v) => Some(*whole),
            _ => None,
        })
    }

    /// Every lane of `a` is a lane of `b`, looking at `lanes` lanes.
    pub(super) fn subset(&mut self, f: &Function, a: Part, b: Part, lanes: u16) -> bool {
        if a == b || self.ceilings(a).any(|ceiling| ceiling == b) {
            return true;
        }
        self.subset_without(f, a, [None; 2], b, lanes)
    }

    /// Every lane of `a` that is in none of the masks `without` is a lane of `b`.
    pub(super) fn subset_without(
        &mut self,
        f: &Function,
        a: Part,
        without: Without,
        b: Part,
        lanes: u16,
    ) -> bool {
        let key = (a, without, b, lanes);
        if let Some(&known) = self.answers.get(&key) {
            return known;
        }
        let answer = self.never(f, lanes, |q| {
            let (mut a, b) = (q.table(a, q.depth), q.table(b, q.depth));
            for but in without.into_iter().flatten() {
                a = a.and(q.table(but, q.depth).not());
            }
            a.and(b.not())
        });
        self.answers.insert(key, answer);
        answer
    }

    /// No lane is in both.
    pub(super) fn disjoint(&self, f: &Function, a: Part, b: Part, lanes: u16) -> bool {
        self.never(f, lanes, |q| q.table(a, q.depth).and(q.table(b, q.depth)))
    }

    /// No lane is in all of some masks. A mask with the flag stands for the lanes outside of it.
    pub(in crate::passes) fn nowhere(&self, f: &Function, masks: &[(Value, bool)]) -> bool {
        let lanes = masks.first().map_or(0, |&(mask, _)| f.ty(mask).lanes);
        let claim = |q: &mut Query, masks: &mut dyn Iterator<Item = &(Value, bool)>| {
            masks.fold(Table::TRUE, |all, &(mask, outside)| {
                let table = q.table(Part { mask, first: 0 }, q.depth);
                all.and(if outside { table.not() } else { table })
            })
        };
        let parts: Vec<Value> = masks.iter().map(|&(mask, _)| mask).collect();
        // There may be room for facts about the first masks only.
        self.never(f, lanes, |q| claim(q, &mut masks.iter()))
            || self.never(f, lanes, |q| claim(q, &mut masks.iter().rev()))
            || Query::at_cut(f, self, lanes, &parts).is_never(|q| claim(q, &mut masks.iter()))
    }

    /// The union of some masks is `whole`.
    pub(super) fn is_union(&self, f: &Function, parts: &[Value], whole: Value) -> bool {
        self.never(f, f.ty(whole).lanes, |q| {
            let union = q.union(parts);
            union.xor(q.union(&[whole]))
        })
    }

    /// Every lane of `a` is in one of `parts`.
    pub(super) fn covered(&self, f: &Function, a: Value, parts: &[Value]) -> bool {
        self.never(f, f.ty(a).lanes, |q| {
            let union = q.union(parts);
            q.union(&[a]).and(union.not())
        })
    }

    fn never(&self, f: &Function, lanes: u16, claim: impl Fn(&mut Query) -> Table) -> bool {
        let mut depths = DEPTHS.iter();
        depths.any(|&depth| Query::new(f, self, lanes, depth).is_never(&claim))
    }

    /// Masks that equal the union of `parts` when the masks `empty` have no lane, those first that were made first.
    pub(super) fn unions(&self, f: &Function, parts: &[Value], empty: &[Value]) -> Vec<Value> {
        let Some(&first) = parts.first() else {
            return Vec::new();
        };
        let lanes = f.ty(first).lanes;
        let deep = Query::new(f, self, lanes, DEPTHS[0]);
        let mut out = self.unions_in(deep, parts, empty);
        for mask in self.unions_in(Query::at_cut(f, self, lanes, parts), parts, empty) {
            if !out.contains(&mask) {
                out.push(mask);
            }
        }
        out
    }

    /// As [`Facts::unions`], of the masks that a query comes upon.
    fn unions_in(&self, mut q: Query<'_>, parts: &[Value], empty: &[Value]) -> Vec<Value> {
        let (f, lanes) = (q.f, q.lanes);
        let union = q.union(parts);
        let none = q.union(empty);
        if q.full {
            return Vec::new();
        }
        let rows = q.related_rows(none.not());
        let whole = |part: &Part| part.first == 0 && f.ty(part.mask).lanes == lanes;
        let same = |table: Table| union.xor(table).and(rows) == Table::FALSE;
        let atoms = (0..q.atoms.len()).filter(|&k| same(Table::atom(k)));
        let nodes = q.nodes.iter().filter(|(_, table)| same(*table));
        let parts_of = atoms
            .map(|k| q.atoms[k])
            .chain(nodes.map(|(part, _)| *part));
        let mut out: Vec<Value> = parts_of.filter(whole).map(|part| part.mask).collect();
        out.sort();
        if same(Table::TRUE) {
            out.extend(self.full_mask(f, parts, &q.atoms, lanes));
        }
        out
    }

    /// A constant with all lanes, which is no atom: one of `parts`, what a union of atoms is known to be, or one that is there
    /// everywhere.
    fn full_mask(
        &self,
        f: &Function,
        parts: &[Value],
        atoms: &[Part],
        lanes: u16,
    ) -> Option<Value> {
        let about = atoms.iter().filter_map(|a| self.about.get(&a.mask));
        let wholes = about.flatten().filter_map(|fact| match fact {
            Fact::Union(_, whole) => Some(*whole),
            Fact::Subset(..) | Fact::Disjoint(..) => None,
        });
        let full = |&v: &Value| f.ty(v).lanes == lanes && uniform_const(f, v) == Some(1);
        let everywhere = self.full.iter().copied();
        parts
            .iter()
            .copied()
            .chain(wholes)
            .chain(everywhere)
            .find(full)
    }
}

struct Query<'a> {
    f: &'a Function,
    facts: &'a Facts,
    lanes: u16,
    depth: usize,
    atoms: Vec<Part>,
    /// There were more atoms than there is room for: nothing is known.
    full: bool,
    /// Masks that are atoms though they could be looked into.
    stops: Vec<Part>,
    /// Masks between the atoms and what is asked for, where there are stops.
    nodes: Vec<(Part, Table)>,
}

impl<'a> Query<'a> {
    fn new(f: &'a Function, facts: &'a Facts, lanes: u16, depth: usize) -> Self {
        Query {
            f,
            facts,
            lanes,
            depth,
            atoms: Vec::new(),
            full: false,
            stops: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// One whose atoms are masks that `parts` are made from, found by looking into the last that was made, as long as there is room.
    /// A mask is looked into wherever it is come upon, or nowhere.
    fn at_cut(f: &'a Function, facts: &'a Facts, lanes: u16, parts: &[Value]) -> Self {
        let mut q = Query::new(f, facts, lanes, STEPS);
        let first = parts.iter().map(|&mask| Part { mask, first: 0 });
        let mut leaves: Vec<Part> = first.map(|part| window(f, part, lanes)).collect();
        let mut kept: Vec<Part> = Vec::new();
        for _ in 0..STEPS {
            let inner = |part: &&Part| !kept.contains(part) && q.operands(**part).is_some();
            let Some(&last) = leaves.iter().filter(inner).max_by_key(|part| part.mask) else {
                break;
            };
            let operands = q.operands(last).unwrap_or_default();
            let mut next: Vec<Part> = leaves.iter().copied().filter(|p| *p != last).collect();
            let cut = |mask| window(f, Part { mask, ..last }, lanes);
            next.extend(operands.into_iter().map(cut));
            next.retain(|part| const_lanes(f, part.mask).is_none());
            next.sort_by_key(|part| (part.mask, part.first));
            next.dedup();
            match next.len() <= CUT {
                true => leaves = next,
                false => kept.push(last),
            }
        }
        q.stops = leaves;
        q
    }

    /// True if a claim holds in no row.
    fn is_never(mut self, claim: impl Fn(&mut Query) -> Table) -> bool {
        let rows = claim(&mut self);
        !self.full && (rows == Table::FALSE || self.related_rows(rows) == Table::FALSE)
    }

    /// The masks that an operation makes a mask from, if it is one that is looked into.
    fn operands(&self, part: Part) -> Option<Vec<Value>> {
        let data = self.f.def_inst(part.mask)?;
        let all = data.args.iter().map(|&a| self.f.resolve(a));
        match data.op {
            Op::Binary(BinOp::And) => {
                let [a, b] = [0, 1].map(|n| self.f.resolve(data.args[n]));
                let [x, y] = [(b, a), (a, b)].map(|(m, v)| chosen(self.f, m, v));
                Some(vec![x.map_or(a, |(x, _)| x), y.map_or(b, |(y, _)| y)])
            }
            Op::Binary(BinOp::Or | BinOp::Xor) | Op::Unary(UnOp::Not) => Some(all.collect()),
            Op::Select if self.f.ty(data.args[0]) == self.f.ty(data.args[1]) => Some(all.collect()),
            _ => None,
        }
    }

    fn union(&mut self, parts: &[Value]) -> Table {
        parts.iter().fold(Table::FALSE, |sum, &mask| {
            let t = self.table(Part { mask, first: 0 }, self.depth);
            sum.or(t)
        })
    }

    /// `rows` without those that facts about the atoms, and about atoms these bring in, rule out.
    fn related_rows(&mut self, mut rows: Table) -> Table {
        let mut next = 0;
        while let Some(&atom) = self.atoms.get(next) {
            next += 1;
            let facts = self.facts.about.get(&atom.mask);
            for fact in facts.into_iter().flatten().take(FACTS) {
                let (atoms, nodes) = (self.atoms.len(), self.nodes.len());
                let holds = self.holds(fact, atom.first);
                if self.full {
                    // No room for this fact.
                    self.full = false;
                    self.atoms.truncate(atoms);
                    self.nodes.truncate(nodes);
                } else {
                    rows = rows.and(holds);
                }
            }
        }
        rows
    }

    /// Rows in which a fact holds for the lanes from `first` on.
    fn holds(&mut self, fact: &Fact, first: u16) -> Table {
        let mut table = |&mask: &Value| self.table(Part { mask, first }, 2);
        match fact {
            Fact::Subset(a, b) => table(a).not().or(table(b)),
            Fact::Disjoint(a, b) => table(a).and(table(b)).not(),
            Fact::Union(parts, whole) => {
                let union = parts.iter().fold(Table::FALSE, |sum, p| sum.or(table(p)));
                union.xor(table(whole)).not()
            }
        }
    }

    fn table(&mut self, part: Part, depth: usize) -> Table {
        let part = window(self.f, part, self.lanes);
        let range = usize::from(part.first)..usize::from(part.first + self.lanes);
        if let Some(lanes) = const_lanes(self.f, part.mask).and_then(|l| l.get(range)) {
            if lanes.iter().all(|&m| m == 0) {
                return Table::FALSE;
            }
            if lanes.iter().all(|&m| m != 0) {
                return Table::TRUE;
            }
        }
        let f = self.f;
        let data = match f.def_inst(part.mask) {
            Some(data) if depth > 0 && !self.stops.contains(&part) => data,
            _ => return self.atom(part),
        };
        if let Some((_, table)) = self.nodes.iter().find(|(node, _)| *node == part) {
            return *table;
        }
        // Masks that were found to be others a moment ago.
        let of = |n: usize| f.resolve(data.args[n]);
        let mut look = |mask| self.table(Part { mask, ..part }, depth - 1);
        let table = match data.op {
            Op::Binary(BinOp::And) => {
                let mut under = |m, v| match chosen(f, m, v) {
                    Some((mask, false)) => look(mask),
                    Some((mask, true)) => look(mask).not(),
                    None => look(v),
                };
                under(of(1), of(0)).and(under(of(0), of(1)))
            }
            Op::Binary(BinOp::Or) => look(of(0)).or(look(of(1))),
            Op::Binary(BinOp::Xor) => look(of(0)).xor(look(of(1))),
            Op::Unary(UnOp::Not) => look(of(0)).not(),
            Op::Select if f.ty(data.args[0]) == f.ty(data.args[1]) => {
                let m = look(of(0));
                m.and(look(of(1))).or(m.not().and(look(of(2))))
            }
            _ => return self.atom(part),
        };
        if !self.stops.is_empty() {
            self.nodes.push((part, table));
        }
        table
    }

    fn atom(&mut self, part: Part) -> Table {
        let k = self.atoms.iter().position(|&a| a == part);
        let k = k.unwrap_or_else(|| {
            self.atoms.push(part);
            self.atoms.len() - 1
        });
        self.full |= k >= ATOMS;
        Table::atom(k.min(ATOMS - 1))
    }
}

/// Of `v` in a conjunction with `m`, the first side of a select by `m`, or, if the bool says so, its complement. Nothing sees the second side there,
/// which is often an old value of a register.
fn chosen(f: &Function, m: Value, v: Value) -> Option<(Value, bool)> {
    let not = unary(f, v, UnOp::Not).map(|inner| f.resolve(inner));
    let data = f.def_inst(not.unwrap_or(v))?;
    let by = data.op == Op::Select && f.resolve(data.args[0]) == m;
    by.then(|| (f.resolve(data.args[1]), not.is_some()))
}

/// Looks through shuffles that cut out consecutive lanes.
pub(super) fn window(f: &Function, mut part: Part, lanes: u16) -> Part {
    while let Some(data) = f.def_inst(part.mask) {
        let Op::Shuffle(indices) = &data.op else {
            break;
        };
        let range = usize::from(part.first)..usize::from(part.first + lanes);
        let Some([start, rest @ ..]) = indices.get(range) else {
            break;
        };
        if !rest.iter().zip(1..).all(|(&i, n)| i == start + n) {
            break;
        }
        let (first, end) = (*start, start + lanes);
        let width = f.ty(data.args[0]).lanes;
        part = match *data.args.as_slice() {
            [a, ..] if end <= width => Part { mask: a, first },
            [_, b] if first >= width => Part {
                mask: b,
                first: first - width,
            },
            _ => break,
        };
    }
    part
}

/// The same lanes of a ceiling, if `part` is a part of it.
fn below((whole, known): &(Value, Vec<bool>), part: Part) -> Option<Part> {
    let is_part = known.get(part.mask.0 as usize).copied().unwrap_or(false);
    is_part.then_some(Part {
        mask: *whole,
        ..part
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::parse;

    #[test]
    fn subsets_through_algebra_windows_and_facts() {
        let f = parse(
            "function \"f\" simd 16
bb0:
  %0: <16 x i1> = input.dispatchmask
  %1: i32 = input.payload[0]
  %2: <16 x i1> = bitstomask %1
  %3: <16 x i1> = and %0, %2
  %4: <16 x i1> = not %3
  %5: <16 x i1> = and %0, %4
  %6: <8 x i1> = shuffle[8, 9, 10, 11, 12, 13, 14, 15] %3
  %7: i32 = input.payload[4]
  %8: <16 x i1> = bitstomask %7
  return
",
        )
        .unwrap();
        let at = |n, first| Part {
            mask: Value(n),
            first,
        };
        let mut facts = Facts::default();
        assert!(facts.subset(&f, at(3, 0), at(0, 0), 16));
        assert!(!facts.subset(&f, at(0, 0), at(3, 0), 16));
        assert!(facts.disjoint(&f, at(3, 0), at(5, 0), 16));
        assert!(facts.subset(&f, at(6, 0), at(0, 8), 8));
        assert!(!facts.subset(&f, at(6, 0), at(0, 0), 8));
        assert!(facts.is_union(&f, &[Value(3), Value(5)], Value(0)));
        assert!(!facts.subset(&f, at(8, 0), at(0, 0), 16));
        facts.add(Fact::Subset(Value(8), Value(3)));
        assert!(facts.subset(&f, at(8, 0), at(0, 0), 16));
        facts.add(Fact::Union(vec![Value(8), Value(2)], Value(0)));
        let union = [Value(8), Value(2)];
        // The facts make the second mask equal to the whole, so either name is right.
        let found = facts.unions(&f, &union, &[]).first().copied();
        assert!(matches!(found, Some(Value(0 | 2))), "{found:?}");
    }

    /// A fact that needs more atoms than there is room for leaves nothing behind that a later fact gives another meaning.
    #[test]
    fn facts_without_room_are_forgotten() {
        let masks: String = (1..=11)
            .map(|n| format!("  %{n}: <16 x i1> = bitstomask %0\n"))
            .collect();
        let f = parse(&format!(
            "function \"f\" simd 16
bb0:
  %0: i32 = input.payload[0]
{masks}  %12: <16 x i1> = and %1, %2
  %13: <16 x i1> = and %12, %3
  %14: <16 x i1> = and %13, %4
  %15: <16 x i1> = and %14, %5
  %16: <16 x i1> = and %15, %6
  %17: <16 x i1> = or %8, %9
  %18: <16 x i1> = or %7, %17
  return
"
        ))
        .unwrap();
        let (whole, wider) = (Value(1), Value(18));
        let mut facts = Facts::default();
        facts.add(Fact::Subset(whole, wider));
        facts.add(Fact::Union(vec![Value(10), Value(11)], whole));
        let unions = facts.unions(&f, &[whole, Value(16)], &[]);
        assert!(
            unions.contains(&whole) && !unions.contains(&wider),
            "{unions:?}"
        );
    }
}
