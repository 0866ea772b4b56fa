//! Random graphs: half of them nested as compilers make them (branches, loops, breaks, continues, early
//! returns), half with edges between any blocks.
//!
//! Code generation costs time in proportion to blocks and lanes, and what can go wrong between lanes shows in
//! eight of them as well. So most graphs are small; each [`LARGE`]th has many blocks and up to 32 lanes.

use visa_jit::isa::Platform;

use super::{Block, Form, Given, Graph, How, Lanes, Term, Test, Uniform};
use visa_test_common::Rng;

/// One seed in this many has a large graph.
pub const LARGE: u64 = 8;

/// What graphs are drawn from.
struct Size {
    /// Lanes of a thread.
    simd: &'static [u32],
    /// Subroutines, apart from one that the body may be put into.
    subs: &'static [usize],
    /// How often, in percent, it is: then lanes that return early wait for the others instead of ending, and the
    /// traces are stored in one place.
    wrapped: usize,
    /// Most statements of a nested body, and of a nested subroutine, less two.
    budget: (usize, usize),
    /// Most blocks of an arbitrary body, and of an arbitrary subroutine, less three.
    blocks: (usize, usize),
}

const SMALL: Size = Size {
    simd: &[8, 8, 8, 8, 8, 8, 8, 16],
    subs: &[1, 1, 1, 2],
    wrapped: 70,
    budget: (5, 2),
    blocks: (4, 2),
};

const BIG: Size = Size {
    simd: &[8, 16, 16, 32],
    subs: &[1, 1, 2, 3],
    wrapped: 40,
    budget: (6, 3),
    blocks: (7, 4),
};

/// The graph of a seed.
pub fn graph(seed: u64) -> Graph {
    let size = if seed.is_multiple_of(LARGE) {
        &BIG
    } else {
        &SMALL
    };
    let mut rng = Rng::new(seed);
    let platform = *rng.pick(&[Platform::Skl, Platform::Skl, Platform::Dg2, Platform::Pvc]);
    let simd = *rng.pick(size.simd);
    let split = if rng.chance(75) {
        simd
    } else {
        *rng.pick(&[8, 16])
    };
    let mut count = *rng.pick(size.subs);
    let wrapped = rng.chance(size.wrapped);
    count += usize::from(wrapped);
    let (mut subs, mut depth) = (Vec::new(), 0);
    for s in 0..count {
        let mut b = Body::new(&mut rng, s, count, platform);
        if s == 0 && wrapped {
            b.push(Term::Call(How::Always { wide: true }, 1));
            b.push(Term::Ret(How::Always { wide: false }));
        } else if b.rng.chance(50) {
            let budget = 2 + b
                .rng
                .below(if s == 0 { size.budget.0 } else { size.budget.1 });
            b.structured(budget);
        } else {
            let blocks = 3 + b
                .rng
                .below(if s == 0 { size.blocks.0 } else { size.blocks.1 });
            b.arbitrary(blocks);
        }
        depth = depth.max(b.deepest);
        subs.push(b.finish());
    }
    for (id, block) in (0..).zip(subs.iter_mut().flatten()) {
        block.id = id;
    }
    Graph {
        platform,
        simd,
        split,
        subs,
        depth,
    }
}

/// A launch of a graph.
pub fn given(graph: &Graph, seed: u64) -> Given {
    let mut rng = Rng::new(seed ^ 0x5eed);
    let short = rng.below(graph.simd as usize) as u32;
    Given {
        lanes: if rng.chance(70) {
            graph.simd
        } else {
            graph.simd - short
        },
        hash: std::array::from_fn(|_| rng.bits() as u32),
        fuel: std::array::from_fn(|_| rng.below(24) as i32),
        uniform: rng.bits() as u32,
    }
}

/// A subroutine in the making. Targets are labels until the end.
struct Body<'r> {
    rng: &'r mut Rng,
    sub: usize,
    subs: usize,
    platform: Platform,
    blocks: Vec<Block>,
    /// Block of each label.
    labels: Vec<Option<usize>>,
    /// Labels to leave and to repeat the loops around.
    loops: Vec<(usize, usize)>,
    /// Nested statements around, and the most of them.
    depth: u32,
    deepest: u32,
}

impl<'r> Body<'r> {
    fn new(rng: &'r mut Rng, sub: usize, subs: usize, platform: Platform) -> Body<'r> {
        Body {
            rng,
            sub,
            subs,
            platform,
            blocks: Vec::new(),
            labels: Vec::new(),
            loops: Vec::new(),
            depth: 0,
            deepest: 0,
        }
    }

    fn push(&mut self, term: Term) {
        let xor = self.rng.chance(30);
        self.blocks.push(Block { id: 0, xor, term });
    }

    fn label(&mut self) -> usize {
        self.labels.push(None);
        self.labels.len() - 1
    }

    fn bind(&mut self, label: usize) {
        self.labels[label] = Some(self.blocks.len());
    }

    fn lanes(&mut self, fuel: bool) -> How {
        let mask = *self.rng.pick(&[1, 1, 2, 4, 0x18, 0x30, 0x40, 0x80000000]);
        let value = if self.rng.chance(50) { mask } else { 0 };
        How::Lanes(Lanes {
            test: Test::Hash { mask, value },
            inverted: self.rng.chance(40),
            fuel,
        })
    }

    fn uniform(&mut self) -> Uniform {
        Uniform {
            bit: self.rng.below(32) as u8,
            inverted: self.rng.chance(50),
            form: *self
                .rng
                .pick(&[Form::Scalar, Form::Scalar, Form::Any, Form::All]),
        }
    }

    /// A forward decision.
    fn forward(&mut self) -> How {
        match self.rng.below(10) {
            0 => How::Always {
                wide: self.rng.chance(50),
            },
            1 | 2 => How::Uniform(self.uniform()),
            _ => self.lanes(false),
        }
    }

    fn callable(&self) -> bool {
        self.sub + 1 < self.subs
    }

    fn call(&mut self) -> Term {
        let callee = self.sub + 1 + self.rng.below(self.subs - self.sub - 1);
        let how = match self.rng.below(5) {
            0 => How::Uniform(self.uniform()),
            1 | 2 => self.lanes(false),
            _ => How::Always { wide: true },
        };
        Term::Call(how, callee)
    }

    fn early_return(&mut self) -> Term {
        Term::Ret(if self.rng.chance(25) {
            How::Uniform(self.uniform())
        } else {
            self.lanes(false)
        })
    }

    /// Lanes without fuel leave for `to`, so that the uniform backward branch after it ends.
    fn tired(to: usize) -> Term {
        let test = Test::Tired;
        Term::Goto(
            How::Lanes(Lanes {
                test,
                inverted: false,
                fuel: false,
            }),
            to,
        )
    }

    fn back(&mut self) -> How {
        if self.rng.chance(60) {
            How::Always {
                wide: self.rng.chance(30),
            }
        } else {
            How::Uniform(self.uniform())
        }
    }

    // Nested statements.

    fn structured(&mut self, budget: usize) {
        self.statements(budget);
        self.push(Term::Ret(How::Always { wide: false }));
    }

    fn statements(&mut self, mut budget: usize) {
        while budget > 0 {
            // All in one statement now and then, for the sake of nesting.
            let part = if self.rng.chance(40) {
                budget
            } else {
                1 + self.rng.below(budget)
            };
            self.statement(part);
            budget -= part;
        }
    }

    fn statement(&mut self, budget: usize) {
        if budget == 1 {
            return self.simple();
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        match self.rng.below(4) {
            0 => self.branch(budget - 1, false),
            1 => self.branch(budget - 1, true),
            2 => self.repeat(budget - 1),
            _ => self.while_loop(budget - 1),
        }
        self.depth -= 1;
    }

    fn simple(&mut self) {
        let term = match self.rng.below(10) {
            0..=2 if !self.loops.is_empty() => {
                let (leave, again) = self.loops[self.rng.below(self.loops.len())];
                let how = if self.rng.chance(20) {
                    How::Uniform(self.uniform())
                } else {
                    self.lanes(false)
                };
                Term::Goto(how, if self.rng.chance(50) { leave } else { again })
            }
            3 => self.early_return(),
            4 | 5 if self.callable() => self.call(),
            _ => Term::Fall,
        };
        self.push(term);
    }

    fn branch(&mut self, budget: usize, both: bool) {
        let (other, end) = (self.label(), self.label());
        let how = if self.rng.chance(20) {
            How::Uniform(self.uniform())
        } else {
            self.lanes(false)
        };
        self.push(Term::Goto(how, other));
        self.statements(budget.div_ceil(2));
        if both {
            let wide = self.rng.chance(40);
            self.push(Term::Goto(How::Always { wide }, end));
            self.bind(other);
            self.statements(budget - budget.div_ceil(2));
            self.push(Term::Fall);
            self.bind(end);
        } else {
            self.bind(other);
        }
        self.push(Term::Fall);
    }

    /// A loop with its decision at the end.
    fn repeat(&mut self, budget: usize) {
        let (head, leave, again) = (self.label(), self.label(), self.label());
        self.bind(head);
        self.loops.push((leave, again));
        self.statements(budget);
        self.loops.pop();
        self.bind(again);
        let how = self.lanes(true);
        self.push(Term::Goto(how, head));
        self.bind(leave);
        self.push(Term::Fall);
    }

    /// A loop with its decision at the start and a branch of all lanes at the end.
    fn while_loop(&mut self, budget: usize) {
        let (head, leave, again) = (self.label(), self.label(), self.label());
        self.bind(head);
        self.push(Body::tired(leave));
        if self.rng.chance(60) {
            let how = self.lanes(false);
            self.push(Term::Goto(how, leave));
        }
        self.loops.push((leave, again));
        self.statements(budget);
        self.loops.pop();
        self.bind(again);
        let how = self.back();
        self.push(Term::Goto(how, head));
        self.bind(leave);
        self.push(Term::Fall);
    }

    // Any edges.

    fn arbitrary(&mut self, count: usize) {
        let labels: Vec<usize> = (0..count).map(|_| self.label()).collect();
        let last = labels[count - 1];
        for i in 0..count - 1 {
            self.bind(labels[i]);
            let ahead = labels[i + 1 + self.rng.below(count - 1 - i)];
            let behind = labels[self.rng.below(i + 1)];
            match self.rng.below(20) {
                0..=6 => {
                    let how = self.forward();
                    self.push(Term::Goto(how, ahead));
                }
                7..=9 => {
                    let how = self.lanes(true);
                    self.push(Term::Goto(how, behind));
                }
                10..=12 => {
                    // Nothing branches between the two blocks, which would get around the first.
                    self.push(Body::tired(ahead));
                    let how = self.back();
                    self.push(Term::Goto(how, behind));
                }
                13 => {
                    let term = self.early_return();
                    self.push(term);
                }
                14 | 15 if self.callable() => {
                    let term = self.call();
                    self.push(term);
                }
                16 if self.platform != Platform::Dg2 => {
                    let n = *self.rng.pick(&[2, 4]);
                    let targets = (0..n).map(|_| labels[i + 1 + self.rng.below(count - 1 - i)]);
                    let targets = targets.collect();
                    let shift = self.rng.below(28) as u8;
                    self.push(Term::Switch { shift, targets });
                }
                17 => self.push(Term::Ret(How::Always { wide: true })),
                _ => self.push(Term::Fall),
            }
        }
        self.bind(last);
        self.push(Term::Ret(How::Always { wide: false }));
    }

    /// Resolves labels, and turns some uniform branches into jumps.
    fn finish(mut self) -> Vec<Block> {
        let labels = std::mem::take(&mut self.labels);
        let at = |l: &mut usize| *l = labels[*l].unwrap_or(0);
        for block in &mut self.blocks {
            match &mut block.term {
                Term::Goto(_, to) | Term::Jmp(_, to) => at(to),
                Term::Switch { targets, .. } => targets.iter_mut().for_each(at),
                _ => {}
            }
        }
        let joins = joins(&self.blocks);
        let clear = |from: usize, to: usize| to <= from || !(from + 1..to).any(|b| joins[b]);
        for i in 0..self.blocks.len() {
            let jump = match &self.blocks[i].term {
                Term::Goto(How::Always { .. }, to) if clear(i, *to) => Some((None, *to)),
                Term::Goto(How::Uniform(u), to) if clear(i, *to) && u.form == Form::Scalar => {
                    Some((Some(*u), *to))
                }
                Term::Switch { targets, .. } if targets.iter().any(|&t| !clear(i, t)) => {
                    self.blocks[i].term = Term::Fall;
                    None
                }
                _ => None,
            };
            if let Some((how, to)) = jump
                && self.rng.chance(35)
            {
                self.blocks[i].term = Term::Jmp(how, to);
            }
        }
        self.blocks
    }
}

/// Blocks where lanes may wait, which `jmp` and `switchjmp` must not pass: they take all lanes along only if
/// none waits on the way.
fn joins(blocks: &[Block]) -> Vec<bool> {
    let mut joins = vec![false; blocks.len() + 1];
    for (i, block) in blocks.iter().enumerate() {
        match &block.term {
            Term::Goto(How::Lanes(_), to) => joins[if *to > i { *to } else { i + 1 }] = true,
            Term::Call(How::Lanes(_) | How::Uniform(_), _) => joins[i + 1] = true,
            _ => {}
        }
    }
    // A forward branch of all lanes over such a block makes them wait at its target.
    loop {
        let mut changed = false;
        for (i, block) in blocks.iter().enumerate() {
            if let Term::Goto(How::Always { .. } | How::Uniform(_), to) = block.term
                && to > i
                && joins[i + 1..to].contains(&true)
                && !joins[to]
            {
                joins[to] = true;
                changed = true;
            }
        }
        if !changed {
            return joins;
        }
    }
}
