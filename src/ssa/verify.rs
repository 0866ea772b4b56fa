//! Checks that a function is well formed. Passes and backends rely on each of these rules:
//!
//! | rule | what holds |
//! |---|---|
//! | V1 layout | the entry comes first in `order`, no block is there twice, every branch target is there |
//! | V2 entry | the entry has no parameters and no predecessors |
//! | V3 end | every block has a terminator other than `None` |
//! | V4 owner | an instruction stands at one place; its results and a block's parameters say so |
//! | V5 dominance | a value is used where its definition dominates, later in the same block or in dominated blocks |
//! | V6 alias | no operand is an alias, nor the result of an operation without effect |
//! | V7 arguments | a branch passes one value of the right type to each parameter |
//! | V8 condition | a branch tests a scalar `i1`, a switch a scalar `i32` |
//! | V9 suspend | states are 1 … `states`, and the state is read only if there are any; then no operation waits; exchanges are the last of them |
//! | V10 types | operand and result types follow the operation's rule |
//! | V11 constants | a constant has one literal a lane, with no bits above the lane |
//! | V12 lane numbers | extracted, inserted and shuffled lanes exist |
//! | V13 lanes | lane counts are 1 … `MAX_LANES`, `simd` is 1, 8, 16 or 32, a row is an even part of it |
//! | V14 inputs | dimensions, lanes and register numbers of inputs exist, with a type they can have |
//! | V15 memory | mask, address, surface and elements of an access fit its memory |
//! | V16 sites | the site of an access exists (register storage has none); sites that others are made of exist, are of instructions, and in the order of their lanes |
//! | V17 frame | saved values lie between the register storage and the end of the frame |
//! | V18 shapes | the scalars of an access's shape are defined above it, with the type of its addresses or `i1` |
//!
//! Not checked: that the program means what the kernel says, or that values are saved before they
//! are loaded from the frame.

use super::dom::DomTree;
use super::func::{Block, Function, Inst, Term, Value, ValueDef};
use super::types::{Lane, Ty};
use super::typing;

/// A rule; the number in the table above is its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "the table at the head of the file is the documentation"
)]
pub enum Rule {
    Layout = 1,
    Entry,
    End,
    Owner,
    Dominance,
    Alias,
    Arguments,
    Condition,
    Suspend,
    Types,
    Constants,
    LaneNumbers,
    Lanes,
    Inputs,
    Memory,
    Sites,
    Frame,
    Shapes,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("V{}: {block}: {what}", *rule as u32)]
pub struct VerifyError {
    /// Which rule.
    pub rule: Rule,
    /// Where.
    pub block: Block,
    /// Instruction, when it is about one.
    pub inst: Option<Inst>,
    /// What is wrong.
    pub what: String,
}

/// Most errors that are reported.
const MAX_ERRORS: usize = 50;

/// Checks every rule.
///
/// # Errors
/// The first errors found, in layout order; structural ones (V1–V4) hide the others.
pub fn verify(f: &Function) -> Result<(), Vec<VerifyError>> {
    let mut v = Verifier {
        f,
        errors: Vec::new(),
    };
    v.structure();
    if v.errors.is_empty() {
        v.contents();
    }
    if v.errors.is_empty() {
        Ok(())
    } else {
        Err(v.errors)
    }
}

struct Verifier<'f> {
    f: &'f Function,
    errors: Vec<VerifyError>,
}

impl Verifier<'_> {
    fn error(&mut self, rule: Rule, block: Block, inst: Option<Inst>, what: String) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(VerifyError {
                rule,
                block,
                inst,
                what,
            });
        }
    }

    fn structure(&mut self) {
        let f = self.f;
        let entry = Function::ENTRY;
        if f.order.first() != Some(&entry) {
            self.error(Rule::Layout, entry, None, "the entry is not first".into());
        }
        if ![1, 8, 16, 32].contains(&f.simd) {
            let text = format!("{} lanes a thread", f.simd);
            self.error(Rule::Lanes, entry, None, text);
        }
        if let Some(row) = f.row
            && (row < 2 || row >= f.simd || !f.simd.is_multiple_of(row))
        {
            let text = format!("rows of {row} lanes in a thread of {}", f.simd);
            self.error(Rule::Lanes, entry, None, text);
        }
        if let Some(e) = &f.exchange {
            let end = u64::from(e.offset) + 2 * u64::from(e.bytes);
            if e.offset < f.regs_bytes || end > u64::from(f.frame_bytes) {
                let text = "what threads exchange is outside of the frame".into();
                self.error(Rule::Frame, entry, None, text);
            }
            if e.lines.len() > f.states as usize {
                let text = format!("{} exchanges in {} states", e.lines.len(), f.states);
                self.error(Rule::Suspend, entry, None, text);
            }
        }
        if f.regs_bytes > f.frame_bytes {
            let text = "register storage is larger than the frame".into();
            self.error(Rule::Frame, entry, None, text);
        }
        self.sites();
        let mut placed = vec![false; f.blocks.len()];
        for &b in &f.order {
            match placed.get_mut(b.0 as usize) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => self.error(Rule::Layout, b, None, "placed twice".into()),
                None => self.error(Rule::Layout, b, None, "does not exist".into()),
            }
        }
        if !self.errors.is_empty() {
            return;
        }
        if !f.block(entry).params.is_empty() {
            self.error(Rule::Entry, entry, None, "the entry has parameters".into());
        }
        for &b in &f.order {
            self.end(b, &placed);
        }
        self.owners();
    }

    fn sites(&mut self) {
        let sites = &self.f.sites;
        for (n, site) in sites.iter().enumerate() {
            let parts: Option<Vec<_>> = site
                .parts
                .iter()
                .map(|&part| sites.get(part as usize))
                .collect();
            let fine = parts.is_some_and(|parts| {
                parts.iter().all(|part| part.parts.is_empty())
                    && parts.is_sorted_by(|a, b| a.first_lane < b.first_lane)
            });
            if !fine {
                let text = format!("site {n} is made of {:?}", site.parts);
                self.error(Rule::Sites, Function::ENTRY, None, text);
            }
        }
    }

    fn end(&mut self, b: Block, placed: &[bool]) {
        let term = &self.f.block(b).term;
        if matches!(term, Term::None) {
            self.error(Rule::End, b, None, "has no terminator".into());
        }
        for call in term.targets() {
            if placed.get(call.block.0 as usize) != Some(&true) {
                let text = format!("branches to {}, which is not placed", call.block);
                self.error(Rule::Layout, b, None, text);
            }
            if call.block == Function::ENTRY {
                self.error(Rule::Entry, b, None, "branches to the entry".into());
            }
        }
    }

    fn owners(&mut self) {
        let f = self.f;
        let mut placed = vec![false; f.insts.len()];
        for &b in &f.order {
            for (n, &p) in f.block(b).params.iter().enumerate() {
                if !self.defined_as(p, ValueDef::Param(b, n as u32)) {
                    self.error(
                        Rule::Owner,
                        b,
                        None,
                        format!("{p} is not its parameter {n}"),
                    );
                }
            }
            for &i in &f.block(b).insts {
                match placed.get_mut(i.0 as usize) {
                    Some(seen) if !*seen => *seen = true,
                    Some(_) => {
                        self.error(Rule::Owner, b, Some(i), "instruction placed twice".into());
                        continue;
                    }
                    None => {
                        self.error(Rule::Owner, b, Some(i), "no such instruction".into());
                        continue;
                    }
                }
                if f.is_replaced(i) {
                    let text = "the result is an alias".into();
                    self.error(Rule::Alias, b, Some(i), text);
                }
                for (n, &r) in f.inst(i).results.iter().enumerate() {
                    let def = ValueDef::Result(i, n as u16);
                    if !self.defined_as(r, def) {
                        let text = format!("{r} is not result {n} of its instruction");
                        self.error(Rule::Owner, b, Some(i), text);
                    }
                }
                if f.inst(i)
                    .args
                    .iter()
                    .any(|a| a.0 as usize >= f.values.len())
                {
                    self.error(Rule::Owner, b, Some(i), "operand does not exist".into());
                }
            }
            let term = &f.block(b).term;
            let args = term
                .targets()
                .into_iter()
                .flat_map(|c| c.args.iter().copied());
            if args
                .chain(term.condition())
                .any(|a| a.0 as usize >= f.values.len())
            {
                self.error(Rule::Owner, b, None, "operand does not exist".into());
            }
        }
    }

    fn defined_as(&self, v: Value, def: ValueDef) -> bool {
        let alias = |d: ValueDef| matches!(d, ValueDef::Alias(_));
        let data = self.f.values.get(v.0 as usize);
        data.is_some_and(|d| d.def == def || alias(d.def))
    }

    fn contents(&mut self) {
        let f = self.f;
        let dom = DomTree::new(f);
        let places = places(f);
        for &b in &f.order {
            for (n, &i) in f.block(b).insts.iter().enumerate() {
                for &a in &f.inst(i).args {
                    self.use_of(a, (b, n as u32 + 1), Some(i), &dom, &places);
                }
                self.shape(i, (b, n as u32 + 1), &dom, &places);
                if let Err((rule, text)) = typing::check(f, f.inst(i)) {
                    let text = format!("{}: {text}", self.name(i));
                    self.error(rule, b, Some(i), text);
                }
            }
            let term = &f.block(b).term;
            let args = term
                .targets()
                .into_iter()
                .flat_map(|c| c.args.iter().copied());
            for a in args.chain(term.condition()) {
                self.use_of(a, (b, u32::MAX), None, &dom, &places);
            }
            self.term(b);
        }
    }

    fn shape(&mut self, i: Inst, at: (Block, u32), dom: &DomTree, places: &[Option<(Block, u32)>]) {
        let f = self.f;
        let Some(shape) = f.shapes.get(&i) else {
            return;
        };
        let Some(&addr) = f.inst(i).args.get(1) else {
            self.error(Rule::Shapes, at.0, Some(i), "shape of no access".into());
            return;
        };
        let lane = Ty::scalar(f.ty(addr).lane);
        let base = shape.addr.map(|a| (a.base, lane));
        let guard = shape.addr.and_then(|a| a.guard).map(|v| (v, Ty::BOOL));
        let all = shape.mask_all.map(|v| (v, Ty::BOOL));
        for (v, ty) in [base, guard, all].into_iter().flatten() {
            if v.0 as usize >= f.values.len() || f.ty(v) != ty {
                self.error(Rule::Shapes, at.0, Some(i), format!("{v} is no {ty}"));
            } else {
                self.use_of(v, at, Some(i), dom, places);
            }
        }
    }

    fn name(&self, i: Inst) -> String {
        match self.f.inst(i).results.first() {
            Some(r) => r.to_string(),
            None => format!("instruction {}", i.0),
        }
    }

    fn use_of(
        &mut self,
        v: Value,
        at: (Block, u32),
        inst: Option<Inst>,
        dom: &DomTree,
        places: &[Option<(Block, u32)>],
    ) {
        if matches!(self.f.def(v), ValueDef::Alias(_)) {
            self.error(Rule::Alias, at.0, inst, format!("uses the alias {v}"));
            return;
        }
        let ok = match places[v.0 as usize] {
            None => false,
            Some((b, n)) if b == at.0 => n < at.1,
            Some((b, _)) => dom.dominates(b, at.0),
        };
        if !ok {
            let text = format!("uses {v} where it is not defined");
            self.error(Rule::Dominance, at.0, inst, text);
        }
    }

    fn term(&mut self, b: Block) {
        let f = self.f;
        let wrong = match &f.block(b).term {
            Term::Branch { cond, .. } => f.ty(*cond) != Ty::BOOL,
            Term::Switch { index, .. } => f.ty(*index) != Ty::scalar(Lane::I32),
            Term::Suspend(state) if !(1..=f.states).contains(state) => {
                let text = format!("suspends with state {state} of {}", f.states);
                self.error(Rule::Suspend, b, None, text);
                false
            }
            _ => false,
        };
        if wrong {
            self.error(
                Rule::Condition,
                b,
                None,
                "tests a value of another type".into(),
            );
        }
        for call in f.block(b).term.targets() {
            let params = &f.block(call.block).params;
            let same = params.len() == call.args.len()
                && params
                    .iter()
                    .zip(&call.args)
                    .all(|(&p, &a)| f.ty(p) == f.ty(a));
            if !same {
                let text = format!("arguments do not fit the parameters of {}", call.block);
                self.error(Rule::Arguments, b, None, text);
            }
        }
    }
}

/// Block and position of each value's definition; parameters come before all instructions.
fn places(f: &Function) -> Vec<Option<(Block, u32)>> {
    let mut places = vec![None; f.values.len()];
    for &b in &f.order {
        for p in &f.block(b).params {
            places[p.0 as usize] = Some((b, 0));
        }
        for (n, &i) in f.block(b).insts.iter().enumerate() {
            for r in &f.inst(i).results {
                places[r.0 as usize] = Some((b, n as u32 + 1));
            }
        }
    }
    places
}
