//! The last lanes of a divergent loop run one by one.
//!
//! Lanes that leave a loop early wait for the one that stays longest, and each iteration costs the same for one lane as for all. Loads at
//! any addresses make it cost most: a gather takes about as long as a load for each lane. So where few lanes are left, the loop goes on as a
//! scalar loop for the first of them to its end, then for the next.
//!
//! ```text
//!  entry edges ─► header ─► body … (as before, back to header, or to exit)
//!                   └─► store ─► lane ─► copy of the loop ─► next ─► join ─► exit
//!                          │      ▲                            │     ▲
//!                          │      └────────────────────────────┘     │
//!                          └─────────────────────────────────────────┘
//! ```
//!
//! What lanes bring with them is stored to the storage of registers, from which each lane takes its own, and to which it gives what it leaves
//! with.
//!
//! Guarantees: what leaves the loop is the same in every lane, for any input, as for `strip-mine`. The loop may load, but not store: lanes see no
//! stores of each other then.
//!
//! Only loops in which lanes load from addresses that come from memory gain: neighbouring rows of a sparse matrix are of very different
//! length, and affine loads cost the same for one lane and for all.
//!
//! Not done: where faults are recorded, as a scalar load does not have its lane; loops around loops.

use rustc_hash::FxHashMap;

use super::legal::{self, Purpose};
use super::{Leaving, Loop, innermost, line, with_ways_out};
use crate::passes::edit::{grow_registers, in_registers, registers_may_grow, uniform_const};
use crate::ssa::dom::DomTree;
use crate::ssa::remark::Decision;
use crate::ssa::{
    BinOp, Block, BlockAccess, BlockCall, Conv, Function, ICond, Inst, InstData, Lane, MemAccess,
    Op, Remark, Term, Ty, UnOp, Value,
};

/// The scalar loop begins when at most this part of the lanes is left: 2 is a half.
///
/// Five thresholds were tried on bmg with LLVM, in lanes of 32: 0 (without the pass), 8, 16, 24 and 32. Rows of a sparse matrix were fastest
/// with 24 or 32, and took 3 % longer with 16. Page rank was fastest with 8 or 16, and took longer with 24 than without the pass.
const ONE_IN: u16 = 2;

/// Runs the pass.
pub(in crate::passes) fn run(f: &mut Function) -> usize {
    let mut changes = 0;
    if !registers_may_grow(f) {
        return 0;
    }
    let dom = DomTree::new(f);
    for blocks in innermost(&dom) {
        let blocks = with_ways_out(f, &dom, blocks);
        if !legal::loads_where_loads_say(f, &blocks) {
            continue;
        }
        let line = line(f, &blocks);
        let plan = legal::check(f, &dom, blocks, Purpose::Tail).and_then(Plan::new);
        let decision = match plan {
            Ok(plan) => {
                let few = plan.l.lanes / ONE_IN;
                Tail::new(f, &plan).run(f, few);
                changes += 1;
                Decision::ScalarTail { lanes: few }
            }
            Err(why) => Decision::NoScalarTail(why),
        };
        f.remarks.push(Remark {
            line,
            inst: None,
            decision,
        });
    }
    changes
}

/// What leaves the loop as a parameter of the exit.
enum Out {
    Outside(Value),
    /// A vector that is put together in the storage of registers.
    Slot(u32),
    /// A mask: its number among those that are put together in words.
    Bits(usize),
}

/// What a parameter of the exit has for lanes outside of the loop.
enum Leaves {
    /// As for all others: it is made outside.
    Outside(Value),
    /// What this parameter of the header has.
    Kept(Value),
}

/// A loop that gets a tail.
struct Plan {
    l: Loop,
    live: Value,
    leaves: Vec<Leaves>,
}

impl Plan {
    fn new(l: Loop) -> Result<Plan, &'static str> {
        let live = l.live.ok_or("no lane leaves before the others")?;
        let mut carriers = l.carriers.iter();
        let leaves = l.leaving.iter().map(|leaving| match *leaving {
            Leaving::Outside(v) => Some(Leaves::Outside(v)),
            Leaving::Vector => carriers.next().map(|&v| Leaves::Kept(v)),
        });
        let leaves = leaves.collect::<Option<_>>();
        let leaves = leaves.ok_or("lanes may change after they have left, while others go on")?;
        Ok(Plan { l, live, leaves })
    }
}

/// The scalar loop under construction.
struct Tail<'l> {
    plan: &'l Plan,
    l: &'l Loop,
    line: u32,
    /// Stores what lanes bring.
    store: Block,
    /// Takes the next lane's part. Its first parameter has the lanes that are left, a bit each; the others are masks that leave.
    lane: Block,
    /// Gives what the lane leaves with.
    next: Block,
    join: Block,
    blocks: FxHashMap<Block, Block>,
    values: FxHashMap<Value, Value>,
    /// Number of the lane, and one if the lane is valid.
    number: Value,
    always: [Value; 2],
    offsets: FxHashMap<u32, Value>,
}

impl<'l> Tail<'l> {
    fn new(f: &mut Function, plan: &'l Plan) -> Tail<'l> {
        let l = &plan.l;
        let line = f.block(l.header).term_line;
        let [store, lane, next, join] = [(); 4].map(|()| f.new_block());
        let rest = f.add_param(lane, Ty::I32);
        let number = f.push1(lane, Op::Unary(UnOp::Ctz), vec![rest], Ty::I32, line);
        let always = [store, lane].map(|b| f.push1(b, Op::Const(1), vec![], Ty::mask(1), line));
        Tail {
            plan,
            l,
            line,
            store,
            lane,
            next,
            join,
            blocks: l.blocks.iter().map(|&b| (b, f.new_block())).collect(),
            values: FxHashMap::default(),
            number,
            always,
            offsets: FxHashMap::default(),
        }
    }

    fn run(mut self, f: &mut Function, few: u16) {
        let l = self.l;
        let (outs, masks) = self.outs(f);
        let params = f.block(l.header).params.clone();
        // A lane that comes here is in the loop.
        self.values.insert(self.plan.live, self.always[1]);
        let starts: Vec<Value> = params.iter().map(|&p| self.outside(f, p)).collect();
        for &b in &l.blocks {
            for p in f.block(b).params.clone() {
                let ty = Ty::scalar(f.ty(p).lane);
                let copy = f.add_param(self.blocks[&b], ty);
                self.values.insert(p, copy);
            }
        }
        for &b in &l.blocks {
            for i in f.block(b).insts.clone() {
                self.instruction(f, i, self.blocks[&b]);
            }
        }
        for &b in &l.blocks {
            self.terminator(f, b);
        }
        self.give(f, &outs);
        self.close(f, &starts, masks);
        self.join(f, &outs);
        self.gate(f, few);
    }

    fn push(&self, f: &mut Function, b: Block, op: Op, args: &[Value], ty: Ty) -> Value {
        f.push1(b, op, args.to_vec(), ty, self.line)
    }

    fn i32(&self, f: &mut Function, b: Block, number: u32) -> Value {
        self.push(f, b, Op::Const(number.into()), &[], Ty::I32)
    }

    fn end(&self, f: &mut Function, b: Block, term: Term) {
        f.block_mut(b).term = term;
        f.block_mut(b).term_line = self.line;
    }

    /// Places for what leaves, which hold what lanes outside of the loop leave with; and masks at first, a bit for each lane.
    fn outs(&mut self, f: &mut Function) -> (Vec<Out>, Vec<Value>) {
        let (mut outs, mut masks) = (Vec::new(), Vec::new());
        for leaves in &self.plan.leaves {
            let start = match *leaves {
                Leaves::Outside(v) => {
                    outs.push(Out::Outside(v));
                    continue;
                }
                Leaves::Kept(v) => v,
            };
            let ty = f.ty(start);
            f.add_param(self.next, Ty::scalar(ty.lane));
            if ty.lane == Lane::I1 {
                outs.push(Out::Bits(masks.len()));
                masks.push(self.push(f, self.store, Op::MaskToBits, &[start], Ty::I32));
                f.add_param(self.lane, Ty::I32);
            } else {
                outs.push(Out::Slot(self.save(f, start)));
            }
        }
        for _ in &masks {
            f.add_param(self.join, Ty::I32);
        }
        (outs, masks)
    }

    /// Stores a vector; returns where.
    fn save(&self, f: &mut Function, v: Value) -> u32 {
        let ty = f.ty(v);
        let slot = grow_registers(f, ty.bytes());
        let v = self.bits(f, self.store, v);
        let at = self.i32(f, self.store, slot);
        let op = Op::BlockStore(in_registers(ty));
        f.push(self.store, op, vec![self.always[0], at, v], &[], self.line);
        slot
    }

    /// The value as integers.
    fn bits(&self, f: &mut Function, b: Block, v: Value) -> Value {
        let ty = f.ty(v);
        self.cast(f, b, v, ty.with_lane(ty.lane.as_int()))
    }

    fn cast(&self, f: &mut Function, b: Block, v: Value, ty: Ty) -> Value {
        match f.ty(v) == ty {
            true => v,
            false => self.push(f, b, Op::Bitcast, &[v], ty),
        }
    }

    /// The lane's place in a vector of such elements.
    fn at(&mut self, f: &mut Function, slot: u32, bytes: u32) -> Value {
        let offset = match self.offsets.get(&bytes) {
            Some(&known) => known,
            None => {
                let by = self.i32(f, self.lane, bytes.trailing_zeros());
                let op = Op::Binary(BinOp::Shl);
                let offset = self.push(f, self.lane, op, &[self.number, by], Ty::I32);
                self.offsets.insert(bytes, offset);
                offset
            }
        };
        let slot = self.i32(f, self.lane, slot);
        self.push(
            f,
            self.lane,
            Op::Binary(BinOp::Add),
            &[offset, slot],
            Ty::I32,
        )
    }

    /// The lane's part of a value that is made outside of the scalar loop.
    fn outside(&mut self, f: &mut Function, v: Value) -> Value {
        let ty = f.ty(v);
        if ty.is_scalar() {
            return v;
        }
        if let Some(&known) = self.values.get(&v) {
            return known;
        }
        let scalar = Ty::scalar(ty.lane);
        let splat = f.def_inst(v).filter(|data| data.op == Op::Splat);
        let part = if let Some(data) = splat {
            data.args[0]
        } else if let Some(bits) = uniform_const(f, v) {
            self.push(f, self.lane, Op::Const(bits), &[], scalar)
        } else if ty.lane == Lane::I1 {
            let bits = self.push(f, self.store, Op::MaskToBits, &[v], Ty::I32);
            let args = [bits, self.number];
            let bit = self.push(f, self.lane, Op::Binary(BinOp::LShr), &args, Ty::I32);
            self.push(f, self.lane, Op::Convert(Conv::Trunc), &[bit], scalar)
        } else {
            let slot = self.save(f, v);
            let at = self.at(f, slot, scalar.bytes());
            let op = Op::BlockLoad(in_registers(scalar));
            let args = [self.always[1], at];
            let integer = scalar.with_lane(ty.lane.as_int());
            let bits = self.push(f, self.lane, op, &args, integer);
            self.cast(f, self.lane, bits, scalar)
        };
        self.values.insert(v, part);
        part
    }

    fn value(&mut self, f: &mut Function, v: Value) -> Value {
        match self.values.get(&v) {
            Some(&copy) => copy,
            None => self.outside(f, v),
        }
    }

    fn instruction(&mut self, f: &mut Function, i: Inst, to: Block) {
        let data = f.inst(i).clone();
        let args: Vec<Value> = data.args.iter().map(|&a| self.value(f, a)).collect();
        match data.op {
            Op::Splat | Op::MaskAny => {
                self.values.insert(data.results[0], args[0]);
            }
            Op::VecConst(ref lanes) => {
                let ty = f.ty(data.results[0]);
                let uniform = uniform_const(f, data.results[0]);
                let part = match uniform {
                    Some(bits) => {
                        f.push1(to, Op::Const(bits), vec![], Ty::scalar(ty.lane), data.line)
                    }
                    None => {
                        let op = Op::VecConst(lanes.clone());
                        let copy = self.push(f, self.store, op, &[], ty);
                        self.outside(f, copy)
                    }
                };
                self.values.insert(data.results[0], part);
            }
            Op::Load(m) => self.load(f, m, args, &data, to),
            op => {
                let results = data.results.iter().map(|&r| Ty::scalar(f.ty(r).lane));
                let results: Vec<Ty> = results.collect();
                let copy = f.push(to, op, args, &results, data.line);
                for (n, &r) in data.results.iter().enumerate() {
                    let v = f.inst(copy).results[n];
                    self.values.insert(r, v);
                }
            }
        }
    }

    /// A load by the lane alone.
    fn load(
        &mut self,
        f: &mut Function,
        m: MemAccess,
        args: Vec<Value>,
        data: &InstData,
        to: Block,
    ) {
        let n = u16::from(m.comps);
        let op = Op::BlockLoad(BlockAccess {
            space: m.space,
            elem: m.elem,
            n,
            site: m.site,
        });
        let all = f.push1(to, op, args, Ty::vector(m.elem, n), data.line);
        for (k, &r) in data.results.iter().enumerate() {
            let part = match n {
                1 => all,
                _ => {
                    let op = Op::ExtractLane(k as u16);
                    f.push1(to, op, vec![all], Ty::scalar(m.elem), data.line)
                }
            };
            self.values.insert(r, part);
        }
    }

    fn terminator(&mut self, f: &mut Function, b: Block) {
        let (mut term, line) = (f.block(b).term.clone(), f.block(b).term_line);
        if let Term::Branch { cond: v, .. } | Term::Switch { index: v, .. } = &mut term {
            *v = self.value(f, *v);
        }
        let taken = match term {
            Term::Branch { cond, .. } => Some(cond),
            _ => None,
        };
        for (to, call) in term.targets_mut().into_iter().enumerate() {
            let inside = self.blocks.get(&call.block).copied();
            let mut args = Vec::new();
            for (n, &a) in call.args.iter().enumerate() {
                if inside.is_some() || self.l.leaving[n] == Leaving::Vector {
                    let v = self.value(f, a);
                    // The lane is in the mask that it goes on for.
                    let goes_on = to == 0 && taken == Some(v);
                    args.push(if goes_on { self.always[1] } else { v });
                }
            }
            let block = inside.unwrap_or(self.next);
            *call = BlockCall { block, args };
        }
        let copy = self.blocks[&b];
        f.block_mut(copy).term = term;
        f.block_mut(copy).term_line = line;
    }

    /// Gives what the lane leaves with, and goes on to the next lane.
    fn give(&mut self, f: &mut Function, outs: &[Out]) {
        let mut given = f.block(self.next).params.clone().into_iter();
        let one = self.i32(f, self.next, 1);
        let binary = |tail: &Self, f: &mut Function, op, a, b| {
            tail.push(f, tail.next, Op::Binary(op), &[a, b], Ty::I32)
        };
        let rest = f.block(self.lane).params[0];
        let less = binary(self, f, BinOp::Sub, rest, one);
        let mut args = vec![binary(self, f, BinOp::And, rest, less)];
        for out in outs {
            let v = match out {
                Out::Outside(_) => None,
                _ => given.next(),
            };
            match (out, v) {
                (Out::Slot(slot), Some(v)) => {
                    let v = self.bits(f, self.next, v);
                    let ty = f.ty(v);
                    let at = self.at(f, *slot, ty.bytes());
                    let args = vec![self.always[1], at, v];
                    f.push(
                        self.next,
                        Op::BlockStore(in_registers(ty)),
                        args,
                        &[],
                        self.line,
                    );
                }
                (Out::Bits(n), Some(v)) => {
                    let old = f.block(self.lane).params[1 + n];
                    let bit = binary(self, f, BinOp::Shl, one, self.number);
                    let not = self.push(f, self.next, Op::Unary(UnOp::Not), &[bit], Ty::I32);
                    let others = binary(self, f, BinOp::And, old, not);
                    let word = Op::Convert(Conv::ZExt);
                    let word = self.push(f, self.next, word, &[v], Ty::I32);
                    let set = binary(self, f, BinOp::Shl, word, self.number);
                    args.push(binary(self, f, BinOp::Or, others, set));
                }
                _ => {}
            }
        }
        self.again(f, self.next, args);
    }

    /// Goes to the next lane of those in the first argument, or on if there are none.
    fn again(&self, f: &mut Function, from: Block, args: Vec<Value>) {
        let none = self.i32(f, from, 0);
        let cond = self.push(f, from, Op::ICmp(ICond::Ne), &[args[0], none], Ty::mask(1));
        let other = BlockCall {
            block: self.join,
            args: args[1..].to_vec(),
        };
        let block = self.lane;
        let then = BlockCall { block, args };
        self.end(f, from, Term::Branch { cond, then, other });
    }

    /// Ends the blocks around the scalar loop.
    fn close(&self, f: &mut Function, starts: &[Value], masks: Vec<Value>) {
        let all = self.push(f, self.store, Op::MaskToBits, &[self.plan.live], Ty::I32);
        let args = std::iter::once(all).chain(masks).collect();
        self.again(f, self.store, args);
        let first = BlockCall {
            block: self.blocks[&self.l.header],
            args: starts.to_vec(),
        };
        self.end(f, self.lane, Term::Jump(first));
    }

    /// Takes vectors that were put together, and leaves the loop.
    fn join(&self, f: &mut Function, outs: &[Out]) {
        let types = f.block(self.l.exit).params.iter().map(|&p| f.ty(p));
        let types: Vec<Ty> = types.collect();
        let always = self.push(f, self.join, Op::Const(1), &[], Ty::mask(1));
        let mut args = Vec::new();
        for (out, ty) in outs.iter().zip(types) {
            args.push(match *out {
                Out::Outside(v) => v,
                Out::Bits(n) => {
                    let word = f.block(self.join).params[n];
                    self.push(f, self.join, Op::BitsToMask, &[word], ty)
                }
                Out::Slot(slot) => {
                    let at = self.i32(f, self.join, slot);
                    let integers = ty.with_lane(ty.lane.as_int());
                    let op = Op::BlockLoad(in_registers(ty));
                    let v = self.push(f, self.join, op, &[always, at], integers);
                    self.cast(f, self.join, v, ty)
                }
            });
        }
        let block = self.l.exit;
        self.end(f, self.join, Term::Jump(BlockCall { block, args }));
    }

    /// Lets the loop's header go to the tail where few lanes are left.
    fn gate(&self, f: &mut Function, few: u16) {
        let header = self.l.header;
        let body = f.new_block();
        let line = f.block(header).term_line;
        let (insts, term) = {
            let block = f.block_mut(header);
            (std::mem::take(&mut block.insts), block.term.clone())
        };
        f.block_mut(body).insts = insts;
        f.block_mut(body).term = term;
        f.block_mut(body).term_line = line;
        let bits = self.push(f, header, Op::MaskToBits, &[self.plan.live], Ty::I32);
        let count = self.push(f, header, Op::Unary(UnOp::Popcnt), &[bits], Ty::I32);
        let most = self.i32(f, header, few.into());
        let cond = self.push(f, header, Op::ICmp(ICond::Ule), &[count, most], Ty::mask(1));
        let [then, other] = [self.store, body].map(|block| BlockCall {
            block,
            args: Vec::new(),
        });
        self.end(f, header, Term::Branch { cond, then, other });
    }
}
