//! One lane at a time, as a scalar program.

use super::{FACTOR, Form, Given, Graph, How, Lanes, Term, Test, Trace, Uniform};

/// Blocks after which a lane is given up: no graph comes near it.
const MOST_STEPS: u32 = 1 << 20;

struct Lane<'a> {
    given: &'a Given,
    hash: u32,
    fuel: i32,
    steps: u32,
}

impl Lane<'_> {
    fn lanes(&self, l: Lanes) -> bool {
        let holds = match l.test {
            Test::Hash { mask, value } => self.hash & mask == value,
            Test::Tired => self.fuel <= 0,
        };
        (holds != l.inverted) && (!l.fuel || self.fuel > 0)
    }

    fn uniform(&self, u: Uniform) -> bool {
        let Uniform {
            bit,
            inverted,
            form,
        } = u;
        // All bits of the predicate are equal, so that the three forms say the same.
        let (Form::Scalar | Form::Any | Form::All) = form;
        (self.given.uniform >> bit & 1 != 0) != inverted
    }

    fn takes(&self, how: How) -> bool {
        match how {
            How::Always { .. } => true,
            How::Uniform(u) => self.uniform(u),
            How::Lanes(l) => self.lanes(l),
        }
    }

    /// Walks from the entry to the end.
    fn walk(&mut self, graph: &Graph, marks: &mut [u32; 4]) -> Option<()> {
        let mut callers = Vec::new();
        let (mut sub, mut at) = (0, 0);
        while self.steps < MOST_STEPS {
            let block = &graph.subs[sub][at];
            let mixed = self.hash.wrapping_mul(FACTOR);
            self.hash = if block.xor {
                mixed ^ block.id
            } else {
                mixed.wrapping_add(block.id)
            };
            self.steps += 1;
            self.fuel -= 1;
            marks[block.id as usize / 32] |= 1 << (block.id % 32);
            match &block.term {
                Term::Goto(how, to) if self.takes(*how) => at = *to,
                Term::Jmp(how, to) if how.is_none_or(|u| self.uniform(u)) => at = *to,
                Term::Switch { shift, targets } => {
                    at = targets[(self.given.uniform >> shift) as usize % targets.len()];
                }
                Term::Call(how, callee) if self.takes(*how) => {
                    callers.push((sub, at + 1));
                    (sub, at) = (*callee, 0);
                }
                Term::Ret(how) if self.takes(*how) => match callers.pop() {
                    Some(back) => (sub, at) = back,
                    None => return Some(()),
                },
                _ => at += 1,
            }
        }
        None
    }
}

/// The trace that every engine must leave; `None` for a graph that does not end.
pub fn run(graph: &Graph, given: &Given) -> Option<Trace> {
    let mut trace = Trace {
        hash: given.hash,
        marks: [0; 4],
        steps: 0,
    };
    for l in 0..given.lanes as usize {
        let mut lane = Lane {
            given,
            hash: given.hash[l],
            fuel: given.fuel[l],
            steps: 0,
        };
        lane.walk(graph, &mut trace.marks)?;
        trace.hash[l] = lane.hash;
        trace.steps += u64::from(lane.steps);
    }
    Some(trace)
}
