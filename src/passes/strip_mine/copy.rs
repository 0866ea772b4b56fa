//! Copies a loop once a strip.
//!
//! ```text
//!  entry edges ─► gate ─► enter 0 ─► loop 0 ─► leave 0 ─► enter 1 ─► loop 1 ─► leave 1 ─► … ─► exit
//! ```
//!
//! The gate takes what the header's parameters were given. Each strip cuts its lanes out of that and of the
//! vectors it reads; the last one puts the lanes of all strips together again.

use rustc_hash::FxHashMap;

use super::{Leaving, Loop, STRIP};
use crate::passes::edit::{const_lanes, lanes_op};
use crate::ssa::{Block, BlockCall, Function, Inst, Op, Term, Ty, Value};

/// Replaces the loop by one copy for each strip.
pub(super) fn strip_mine(f: &mut Function, l: &Loop) {
    let gate = f.new_block();
    let starts: Vec<Value> = types(f, &f.block(l.header).params)
        .into_iter()
        .map(|ty| f.add_param(gate, ty))
        .collect();
    redirect(f, l, gate);
    let line = f.block(l.header).term_line;
    let mut from = gate;
    let mut done: Vec<Vec<Value>> = vec![Vec::new(); l.leaving.len()];
    for strip in 0..l.lanes / STRIP {
        let copy = Copy::new(f, l, strip, line);
        from = copy.run(f, from, &starts, &mut done);
    }
    let args = l
        .leaving
        .iter()
        .zip(&done)
        .map(|(leaving, parts)| match leaving {
            Leaving::Outside(v) => *v,
            Leaving::Vector => joined(f, from, parts, line),
        });
    let args = args.collect();
    f.block_mut(from).term = Term::Jump(BlockCall {
        block: l.exit,
        args,
    });
    f.block_mut(from).term_line = line;
    f.order.retain(|b| !l.blocks.contains(b));
}

fn types(f: &Function, values: &[Value]) -> Vec<Ty> {
    values.iter().map(|&v| f.ty(v)).collect()
}

/// Sends the edges into the loop to the gate.
fn redirect(f: &mut Function, l: &Loop, gate: Block) {
    for n in 0..f.order.len() {
        let b = f.order[n];
        if l.blocks.contains(&b) {
            continue;
        }
        for call in f.block_mut(b).term.targets_mut() {
            if call.block == l.header {
                call.block = gate;
            }
        }
    }
}

/// Lanes of all strips as one vector.
fn joined(f: &mut Function, b: Block, parts: &[Value], line: u32) -> Value {
    let mut parts = parts.to_vec();
    while parts.len() > 1 {
        let pairs = parts.chunks(2).map(|pair| match *pair {
            [low, high] => {
                let (x, y) = (f.ty(low), f.ty(high));
                let lanes = x.lanes + y.lanes;
                let op = Op::Shuffle((0..lanes).collect());
                f.push1(b, op, vec![low, high], x.with_lanes(lanes), line)
            }
            _ => pair[0],
        });
        parts = pairs.collect();
    }
    parts[0]
}

/// One strip's copy of the loop.
struct Copy<'l> {
    l: &'l Loop,
    strip: u16,
    line: u32,
    enter: Block,
    leave: Block,
    blocks: FxHashMap<Block, Block>,
    values: FxHashMap<Value, Value>,
}

impl<'l> Copy<'l> {
    fn new(f: &mut Function, l: &'l Loop, strip: u16, line: u32) -> Copy<'l> {
        let enter = f.new_block();
        let blocks = l.blocks.iter().map(|&b| (b, f.new_block())).collect();
        Copy {
            l,
            strip,
            line,
            enter,
            leave: f.new_block(),
            blocks,
            values: FxHashMap::default(),
        }
    }

    /// Fills the blocks; returns the one that the strip ends in.
    fn run(
        mut self,
        f: &mut Function,
        from: Block,
        starts: &[Value],
        done: &mut [Vec<Value>],
    ) -> Block {
        f.block_mut(from).term = Term::Jump(BlockCall {
            block: self.enter,
            args: Vec::new(),
        });
        f.block_mut(from).term_line = self.line;
        let args = starts.iter().map(|&v| self.cut(f, v)).collect();
        for (n, leaving) in self.l.leaving.iter().enumerate() {
            if *leaving == Leaving::Vector {
                let ty = f.ty(f.block(self.l.exit).params[n]);
                done[n].push(f.add_param(self.leave, ty.with_lanes(STRIP)));
            }
        }
        for &b in &self.l.blocks {
            for p in f.block(b).params.clone() {
                let ty = self.narrow(f.ty(p));
                let copy = f.add_param(self.blocks[&b], ty);
                self.values.insert(p, copy);
            }
        }
        // Definitions come before uses in this order, apart from what goes around the loop.
        for &b in &self.l.blocks {
            for i in f.block(b).insts.clone() {
                self.instruction(f, i, self.blocks[&b]);
            }
        }
        for &b in &self.l.blocks {
            self.terminator(f, b);
        }
        // Last, as cutting values out appends to the block.
        f.block_mut(self.enter).term = Term::Jump(BlockCall {
            block: self.blocks[&self.l.header],
            args,
        });
        f.block_mut(self.enter).term_line = self.line;
        self.leave
    }

    fn narrow(&self, ty: Ty) -> Ty {
        if ty.is_scalar() {
            ty
        } else {
            ty.with_lanes(STRIP)
        }
    }

    /// The strip's lanes of a value from outside.
    fn cut(&mut self, f: &mut Function, v: Value) -> Value {
        let ty = f.ty(v);
        if ty.is_scalar() {
            return v;
        }
        if let Some(&known) = self.values.get(&v) {
            return known;
        }
        let first = self.strip * STRIP;
        let narrow = ty.with_lanes(STRIP);
        let splat = f.def_inst(v).filter(|data| data.op == Op::Splat);
        let (op, args) = if let Some(lanes) = const_lanes(f, v) {
            (lanes_op(self.lanes_of(lanes)), Vec::new())
        } else if let Some(data) = splat {
            (Op::Splat, data.args.clone())
        } else {
            (Op::Shuffle((first..first + STRIP).collect()), vec![v])
        };
        let part = f.push1(self.enter, op, args, narrow, self.line);
        self.values.insert(v, part);
        part
    }

    fn lanes_of(&self, lanes: &[u64]) -> Vec<u64> {
        let lanes = lanes.iter().skip(usize::from(self.strip * STRIP));
        lanes.take(usize::from(STRIP)).copied().collect()
    }

    fn value(&mut self, f: &mut Function, v: Value) -> Value {
        match self.values.get(&v) {
            Some(&copy) => copy,
            None => self.cut(f, v),
        }
    }

    fn instruction(&mut self, f: &mut Function, i: Inst, to: Block) {
        let data = f.inst(i).clone();
        let op = match data.op {
            Op::VecConst(lanes) => Op::VecConst(self.lanes_of(&lanes).into()),
            op => op,
        };
        let args = data.args.iter().map(|&a| self.value(f, a)).collect();
        let results: Vec<Ty> = data.results.iter().map(|&r| self.narrow(f.ty(r))).collect();
        let copy = f.push(to, op, args, &results, data.line);
        for (n, &r) in data.results.iter().enumerate() {
            let v = f.inst(copy).results[n];
            self.values.insert(r, v);
        }
    }

    fn terminator(&mut self, f: &mut Function, b: Block) {
        let (mut term, line) = (f.block(b).term.clone(), f.block(b).term_line);
        if let Term::Branch { cond: v, .. } | Term::Switch { index: v, .. } = &mut term {
            *v = self.value(f, *v);
        }
        for call in term.targets_mut() {
            let mut args = Vec::new();
            let inside = self.blocks.get(&call.block).copied();
            for (n, &a) in call.args.iter().enumerate() {
                if inside.is_some() || self.l.leaving[n] == Leaving::Vector {
                    args.push(self.value(f, a));
                }
            }
            *call = BlockCall {
                block: inside.unwrap_or(self.leave),
                args,
            };
        }
        let copy = self.blocks[&b];
        f.block_mut(copy).term = term;
        f.block_mut(copy).term_line = line;
    }
}
