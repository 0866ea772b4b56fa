//! Decides, before translation, which form each lane mask is kept in.
//!
//! Masks that logic operations and block parameters connect form a class. A class takes the form that most of its readers and
//! writers want. Comparisons write lanes of a certain width; selects and memory accesses read them. `MaskAny` takes either form.

use super::value::{int_lane, piece_count};
use crate::ssa::{BinOp, Function, Inst, Lane, Op, Space, Ty, UnOp, Value, ValueDef};

/// Form of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One bit a lane in a scalar register.
    Bits,
    /// Lanes of this many bytes.
    Vec(u32),
}

/// Most vector registers a mask may take; x86-64 without AVX-512 encoding has 16.
const MAX_PIECES: usize = 8;

/// Votes of one class: bits, then lanes of 1, 2, 4 and 8 bytes.
type Votes = [u32; 5];

/// The chosen forms.
pub(super) struct MaskPlan {
    parent: Vec<u32>,
    forms: Vec<Form>,
}

impl MaskPlan {
    /// Plans all masks of `f`.
    pub(super) fn new(f: &Function) -> MaskPlan {
        let mut plan = MaskPlan {
            parent: (0..f.values.len() as u32).collect(),
            forms: Vec::new(),
        };
        let mut ballots: Vec<(Value, usize, u32)> = Vec::new();
        for &block in &f.order {
            for &inst in &f.block(block).insts {
                plan.connect(f, inst);
                vote(f, inst, &mut ballots);
            }
            for call in f.block(block).term.targets() {
                let params = &f.block(call.block).params;
                for (&param, &arg) in params.iter().zip(&call.args) {
                    plan.unite(f, param, arg);
                }
            }
        }
        let mut votes: Vec<Votes> = vec![[0; 5]; f.values.len()];
        for (value, slot, weight) in ballots {
            let root = plan.root(value.0);
            votes[root as usize][slot] += weight;
        }
        plan.forms = (0..f.values.len() as u32)
            .map(|v| {
                let root = plan.root(v) as usize;
                winner(&votes[root], f.ty(Value(v)).lanes)
            })
            .collect();
        plan
    }

    /// The planned form of a mask.
    pub(super) fn form(&self, v: Value) -> Form {
        self.forms[v.0 as usize]
    }

    fn connect(&mut self, f: &Function, inst: Inst) {
        let data = f.inst(inst);
        let Some(&out) = data.results.first() else {
            return;
        };
        if f.ty(out).lane != Lane::I1 {
            return;
        }
        if let Op::Binary(BinOp::And | BinOp::Or | BinOp::Xor) | Op::Unary(UnOp::Not) | Op::Select =
            data.op
        {
            for &arg in &data.args {
                self.unite(f, out, arg);
            }
        }
    }

    fn unite(&mut self, f: &Function, a: Value, b: Value) {
        let (ta, tb) = (f.ty(a), f.ty(b));
        if ta.lane != Lane::I1 || ta.lanes == 1 || ta != tb || is_const(f, b) {
            return;
        }
        let (ra, rb) = (self.root(a.0), self.root(b.0));
        self.parent[ra as usize] = rb;
    }

    fn root(&mut self, mut v: u32) -> u32 {
        while self.parent[v as usize] != v {
            let up = self.parent[self.parent[v as usize] as usize];
            self.parent[v as usize] = up;
            v = up;
        }
        v
    }
}

fn is_const(f: &Function, v: Value) -> bool {
    match f.def(v) {
        ValueDef::Result(i, _) => matches!(f.inst(i).op, Op::Const(_) | Op::VecConst(_)),
        _ => false,
    }
}

fn slot_of(width: u32) -> usize {
    1 + width.trailing_zeros() as usize
}

fn vote(f: &Function, inst: Inst, ballots: &mut Vec<(Value, usize, u32)>) {
    let data = f.inst(inst);
    let first = data.args.first().copied();
    let is_mask = |v: Value| f.ty(v).lane == Lane::I1 && f.ty(v).lanes > 1;
    match &data.op {
        Op::ICmp(_) | Op::FCmp(_) => {
            let operand = first.map_or(Lane::I1, |v| f.ty(v).lane);
            if operand != Lane::I1 {
                for &out in &data.results {
                    ballots.push((out, slot_of(operand.bytes()), 2));
                }
            }
        }
        Op::Select => {
            if let (Some(mask), Some(&out)) = (first, data.results.first())
                && is_mask(mask)
                && f.ty(out).lane != Lane::I1
            {
                ballots.push((mask, slot_of(f.ty(out).lane.bytes()), 2));
            }
        }
        Op::Load(a) => ballots.extend(first.map(|m| (m, access_slot(a.space), 2))),
        Op::Store(a) => ballots.extend(first.map(|m| (m, access_slot(a.space), 2))),
        Op::Atomic(_) | Op::CheckAligned(_) | Op::Image(_) | Op::MaskToBits | Op::FrameStore(_) => {
            ballots.extend(first.filter(|&v| is_mask(v)).map(|v| (v, 0, 1)));
        }
        Op::BitsToMask | Op::Input(_) | Op::FrameLoad(_) => {
            let out = data.results.iter().copied().filter(|&v| is_mask(v));
            ballots.extend(out.map(|v| (v, 0, 1)));
        }
        _ => {}
    }
}

fn access_slot(space: Space) -> usize {
    slot_of(space.addr().bytes())
}

fn winner(votes: &Votes, lanes: u16) -> Form {
    let fits = |width: u32| piece_count(Ty::vector(int_lane(width), lanes)) <= MAX_PIECES;
    let mut best = (votes[0], Form::Bits);
    for (i, &count) in votes.iter().enumerate().skip(1) {
        let width = 1 << (i - 1);
        if count > best.0 && fits(width) {
            best = (count, Form::Vec(width));
        }
    }
    best.1
}
