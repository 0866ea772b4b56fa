//! Block parameters that equal a condition or mask which dominates their block: each edge passes that value, or a constant that the value is
//! known to have on that edge.

use rustc_hash::FxHashMap;

use crate::passes::edit::uniform_const;
use crate::ssa::dom::DomTree;
use crate::ssa::{Block, Function, Lane, Op, Term, Ty, UnOp, Value};

/// A parameter: its block, and its place there.
type Param = (Block, usize);

/// Values that parameters may be replaced by: those that equal the parameter on all edges seen so far.
#[derive(Default)]
pub(super) struct Candidates(FxHashMap<Param, Candidate>);

#[derive(Clone, Copy)]
struct Candidate {
    value: Value,
    /// For a parameter that gets constants only: the block that branches on the value.
    tested: Option<Block>,
    /// Each edge so far passes the value.
    same: bool,
    /// Each edge so far passes its complement.
    opposite: bool,
}

/// The arguments that a parameter gets.
#[derive(Clone, Copy, PartialEq)]
enum Arguments {
    Constants,
    /// This one, and perhaps constants.
    One(Value),
    Different,
}

impl Candidates {
    pub(super) fn new(f: &Function, dom: &DomTree) -> Candidates {
        let mut homes = FxHashMap::default();
        let mut arguments: FxHashMap<Param, Arguments> = FxHashMap::default();
        let is_bit = |v: &Value| f.ty(*v).lane == Lane::I1;
        for &b in dom.rpo() {
            let block = f.block(b);
            let results = block.insts.iter().flat_map(|&i| &f.inst(i).results);
            let bits = block.params.iter().chain(results).filter(|v| is_bit(v));
            homes.extend(bits.map(|&v| (v, b)));
            for target in block.term.targets() {
                let params = f.block(target.block).params.iter();
                let pairs = params.zip(&target.args).enumerate();
                for (n, (&param, &v)) in pairs.filter(|(_, (param, _))| is_bit(param)) {
                    let v = f.resolve(v);
                    let so_far = arguments
                        .entry((target.block, n))
                        .or_insert(Arguments::Constants);
                    if v != param && uniform_const(f, v).is_none() {
                        *so_far = match *so_far {
                            Arguments::Constants => Arguments::One(v),
                            Arguments::One(other) if other == v => *so_far,
                            _ => Arguments::Different,
                        };
                    }
                }
            }
        }
        let there = |v: Value, b: Block| {
            let home = homes.get(&v);
            home.is_some_and(|&home| home != b && dom.dominates(home, b))
        };
        let candidate = |(param, arguments): (Param, Arguments)| {
            let (value, tested) = match arguments {
                Arguments::One(v) => (v, None),
                Arguments::Constants => {
                    let above = dom.idom(param.0)?;
                    let Term::Branch { cond, .. } = f.block(above).term else {
                        return None;
                    };
                    (f.resolve(cond), Some(above))
                }
                Arguments::Different => return None,
            };
            let candidate = Candidate {
                value,
                tested,
                same: true,
                opposite: tested.is_some(),
            };
            there(value, param.0).then_some((param, candidate))
        };
        Candidates(arguments.into_iter().filter_map(candidate).collect())
    }

    /// The value that a parameter, or its complement, may be.
    pub(super) fn value(&self, param: Param) -> Option<Value> {
        Some(self.0.get(&param)?.value)
    }

    /// An edge passes `v` to a parameter. `known` is the bit that each lane of the parameter's candidate has on that edge, if it is known.
    pub(super) fn test(&mut self, f: &Function, param: Param, v: Value, known: Option<bool>) {
        let Some(candidate) = self.0.get_mut(&param) else {
            return;
        };
        let v = f.resolve(v);
        let given = uniform_const(f, v).map(|bits| bits != 0);
        candidate.same &= v == candidate.value || given.is_some() && given == known;
        candidate.opposite &= given.is_some() && given == known.map(|bit| !bit);
        if !candidate.same && !candidate.opposite {
            self.0.remove(&param);
        }
    }

    /// Makes all edges pass the candidates that are left; returns how many arguments changed.
    pub(super) fn pass(&self, f: &mut Function, dom: &DomTree) -> usize {
        let mut values: FxHashMap<Param, Value> = FxHashMap::default();
        let mut changes = 0;
        for &b in dom.rpo() {
            let mut term = std::mem::replace(&mut f.block_mut(b).term, Term::None);
            for target in term.targets_mut() {
                for (n, v) in target.args.iter_mut().enumerate() {
                    let param = (target.block, n);
                    let Some(&candidate) = self.0.get(&param) else {
                        continue;
                    };
                    let ty = f.ty(*v);
                    let value = *values.entry(param).or_insert_with(|| candidate.make(f, ty));
                    changes += usize::from(*v != value);
                    *v = value;
                }
            }
            f.block_mut(b).term = term;
        }
        changes
    }
}

impl Candidate {
    /// The value of the parameter, of type `ty`.
    fn make(self, f: &mut Function, ty: Ty) -> Value {
        let Some(b) = self.tested else {
            return self.value;
        };
        let mut value = self.value;
        if !self.same {
            value = f.push1(b, Op::Unary(UnOp::Not), vec![value], Ty::BOOL, 0);
        }
        if !ty.is_scalar() {
            value = f.push1(b, Op::Splat, vec![value], ty, 0);
        }
        value
    }
}
