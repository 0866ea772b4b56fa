//! Block parameters that receive one value from outside, also through each other.
//!
//! A value carried unchanged around a loop with branches in it is passed by the parameters of all its joins,
//! each of which receives another one on some edge. All that do not surely receive two values are taken to be one
//! until two are seen; what is left when nothing changes any more is redundant. The value dominates such parameters:
//! every way to them passes an edge where it is an argument.
//!
//! Not found: some that receive one parameter, which only later turned out to be none of these.

use super::edit::{const_lanes, lanes_op};
use crate::ssa::dom::reverse_post_order;
use crate::ssa::{Block, Function, Value, ValueDef};

/// What a parameter is known to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing arrived yet.
    Unseen,
    /// This value.
    One(Value),
    /// This constant or others with the same lanes.
    Constant(Value),
    /// Several: itself.
    Own,
}

/// Lets aliases stand for redundant parameters; the caller drops these. Returns how many there are.
pub(super) fn replace_redundant(f: &mut Function) -> usize {
    let order = reverse_post_order(f);
    let mut state = surely_own(f, &order);
    loop {
        let mut changed = false;
        for &b in &order {
            for call in f.block(b).term.targets() {
                for (&p, &a) in f.block(call.block).params.iter().zip(&call.args) {
                    let new = joined(f, &state, p, f.resolve(a));
                    changed |= std::mem::replace(&mut state[p.0 as usize], new) != new;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let mut replaced = 0;
    for n in 0..f.order.len() {
        let b = f.order[n];
        for p in f.block(b).params.clone() {
            let one = match state[p.0 as usize] {
                State::One(v) => Some(v),
                State::Constant(v) => constant_here(f, b, v),
                State::Unseen | State::Own => None,
            };
            if let Some(v) = one {
                f.replace(p, v);
                replaced += 1;
            }
        }
    }
    replaced
}

/// Marks parameters that receive two values which are no parameters or are marked.
fn surely_own(f: &Function, order: &[Block]) -> Vec<State> {
    let mut state = vec![State::Unseen; f.values.len()];
    loop {
        let mut changed = false;
        let mut seen: Vec<Option<Value>> = vec![None; f.values.len()];
        for &b in order {
            for call in f.block(b).term.targets() {
                for (&p, &a) in f.block(call.block).params.iter().zip(&call.args) {
                    let a = f.resolve(a);
                    let param = matches!(f.def(a), ValueDef::Param(..));
                    if a == p || param && state[a.0 as usize] != State::Own {
                        continue;
                    }
                    let first = *seen[p.0 as usize].get_or_insert(a);
                    if first != a && !same_constant(f, first, a) {
                        changed |= state[p.0 as usize] != State::Own;
                        state[p.0 as usize] = State::Own;
                    }
                }
            }
        }
        if !changed {
            return state;
        }
    }
}

/// State of `p` when it receives `a`, too.
fn joined(f: &Function, state: &[State], p: Value, a: Value) -> State {
    let is_param = matches!(f.def(a), ValueDef::Param(..));
    let a = match state[a.0 as usize] {
        _ if a == p => return state[p.0 as usize],
        State::Unseen if is_param => return state[p.0 as usize],
        State::One(_) | State::Constant(_) if is_param => state[a.0 as usize],
        _ => State::One(a),
    };
    match (state[p.0 as usize], a) {
        (State::Unseen, a) => a,
        (State::One(v), State::One(w)) if v == w => a,
        (State::One(v) | State::Constant(v), State::One(w) | State::Constant(w))
            if v == w || same_constant(f, v, w) =>
        {
            State::Constant(v)
        }
        _ => State::Own,
    }
}

fn same_constant(f: &Function, a: Value, b: Value) -> bool {
    let lanes = const_lanes(f, a);
    lanes.is_some() && lanes == const_lanes(f, b)
}

/// A constant may come from several places, so it is made anew.
fn constant_here(f: &mut Function, b: Block, v: Value) -> Option<Value> {
    let op = lanes_op(const_lanes(f, v)?.to_vec());
    let i = f.make(op, Vec::new(), &[f.ty(v)], 0);
    f.block_mut(b).insts.insert(0, i);
    Some(f.inst(i).results[0])
}
