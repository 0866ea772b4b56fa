//! Makes a region the body of a loop over strips.

use rustc_hash::{FxHashMap, FxHashSet};

use super::region::{Region, is_computed};
use crate::passes::edit::{const_lanes, grow_registers, in_registers, lanes_op, uniform_const};
use crate::ssa::dom::reverse_post_order;
use crate::ssa::{
    BinOp, Block, BlockCall, Conv, Function, ICond, Inst, Lane, Op, Term, Ty, Value, ValueDef,
};

/// Most values that a vector is computed from, for it to be computed again.
const AGAIN: usize = 32;

/// Runs the region strip by strip.
pub(super) fn strips(f: &mut Function, region: &Region) {
    let line = f.block(region.end).term_line;
    let [strip, body, done, out, rest] = [(); 5].map(|()| f.new_block());
    let number = f.add_param(strip, Ty::I32);
    let gate = region.blocks.first().copied().unwrap_or(region.end);
    let loops = Loop {
        line,
        strip,
        done,
        number,
        lanes: region.strip,
        whole: f.simd,
        always: FxHashMap::default(),
        offsets: FxHashMap::default(),
    };
    Strips {
        region,
        l: loops,
        gate,
        body,
        out,
        rest,
        inside: FxHashSet::default(),
        made: FxHashSet::default(),
        cut: FxHashMap::default(),
        cut_from: FxHashMap::default(),
    }
    .run(f);
    f.order = reverse_post_order(f);
}

/// The loop over strips.
struct Loop {
    line: u32,
    /// Its header.
    strip: Block,
    /// Its last block.
    done: Block,
    /// Parameter of the header: the number of the strip.
    number: Value,
    /// Lanes of a strip.
    lanes: u16,
    /// Lanes of a thread.
    whole: u16,
    /// The scalar mask of accesses, by block.
    always: FxHashMap<Block, Value>,
    /// How far the strip's part is from the start of a vector, by block and bytes of an element.
    offsets: FxHashMap<(Block, u32), Value>,
}

impl Loop {
    fn push(&self, f: &mut Function, b: Block, op: Op, args: &[Value], ty: Ty) -> Value {
        f.push1(b, op, args.to_vec(), ty, self.line)
    }

    fn constant(&self, f: &mut Function, b: Block, ty: Ty, bits: u64) -> Value {
        self.push(f, b, Op::Const(bits), &[], ty)
    }

    fn jump(&self, f: &mut Function, from: Block, to: Block, args: Vec<Value>) {
        f.block_mut(from).term = Term::Jump(BlockCall { block: to, args });
        f.block_mut(from).term_line = self.line;
    }

    fn always(&mut self, f: &mut Function, b: Block) -> Value {
        if let Some(&v) = self.always.get(&b) {
            return v;
        }
        let v = self.constant(f, b, Ty::BOOL, 1);
        self.always.insert(b, v);
        v
    }

    /// Where a strip's part of a vector of this type is.
    fn part_of(&mut self, f: &mut Function, b: Block, slot: u32, ty: Ty) -> Value {
        let bytes = Self::stored(ty).lane.bytes();
        let offset = match self.offsets.get(&(b, bytes)) {
            Some(&known) => known,
            None => {
                let part = self.constant(f, b, Ty::I32, (bytes * u32::from(self.lanes)).into());
                let offset = self.push(f, b, Op::Binary(BinOp::Mul), &[self.number, part], Ty::I32);
                self.offsets.insert((b, bytes), offset);
                offset
            }
        };
        let slot = self.constant(f, b, Ty::I32, slot.into());
        self.push(f, b, Op::Binary(BinOp::Add), &[offset, slot], Ty::I32)
    }

    /// How a vector is stored: as integers, masks as bytes.
    fn stored(ty: Ty) -> Ty {
        match ty.lane {
            Lane::I1 => ty.with_lane(Lane::I8),
            lane => ty.with_lane(lane.as_int()),
        }
    }

    fn to_stored(&self, f: &mut Function, b: Block, v: Value) -> Value {
        let (ty, stored) = (f.ty(v), Self::stored(f.ty(v)));
        match ty {
            _ if ty == stored => v,
            _ if ty.lane == Lane::I1 => {
                let bits = [1, 0]
                    .map(|bit| self.push(f, b, lanes_op(vec![bit; ty.lanes.into()]), &[], stored));
                self.push(f, b, Op::Select, &[v, bits[0], bits[1]], stored)
            }
            _ => self.push(f, b, Op::Bitcast, &[v], stored),
        }
    }

    fn from_stored(&self, f: &mut Function, b: Block, v: Value, ty: Ty) -> Value {
        match ty {
            _ if ty == f.ty(v) => v,
            _ if ty.lane == Lane::I1 => {
                let zero = self.push(f, b, lanes_op(vec![0; ty.lanes.into()]), &[], f.ty(v));
                self.push(f, b, Op::ICmp(ICond::Ne), &[v, zero], ty)
            }
            _ => self.push(f, b, Op::Bitcast, &[v], ty),
        }
    }

    fn store(&mut self, f: &mut Function, b: Block, v: Value, at: Value) {
        let v = self.to_stored(f, b, v);
        let always = self.always(f, b);
        let op = Op::BlockStore(in_registers(f.ty(v)));
        f.push(b, op, vec![always, at, v], &[], self.line);
    }

    fn load(&mut self, f: &mut Function, b: Block, ty: Ty, at: Value) -> Value {
        let stored = Self::stored(ty);
        let always = self.always(f, b);
        let v = self.push(
            f,
            b,
            Op::BlockLoad(in_registers(stored)),
            &[always, at],
            stored,
        );
        self.from_stored(f, b, v, ty)
    }

    /// Room for a vector of all lanes.
    fn slot(&self, f: &mut Function, ty: Ty) -> u32 {
        grow_registers(f, Self::stored(ty).bytes())
    }
}

/// The region on its way into the loop.
struct Strips<'r> {
    region: &'r Region,
    l: Loop,
    /// In front of the loop.
    gate: Block,
    /// What the region's first block had.
    body: Block,
    /// Where vectors are whole again.
    out: Block,
    /// What the region's end had behind the region.
    rest: Block,
    /// Blocks of the region, without the gate.
    inside: FxHashSet<Block>,
    /// Instructions of these.
    made: FxHashSet<Inst>,
    /// Parts of vectors that are made in front of the region.
    cut: FxHashMap<Value, Value>,
    /// The vectors by these parts.
    cut_from: FxHashMap<Value, Value>,
}

impl Strips<'_> {
    fn run(mut self, f: &mut Function) {
        self.enclose(f);
        self.hoist_inputs(f);
        self.made = self
            .inside
            .iter()
            .flat_map(|&b| f.block(b).insts.iter().copied())
            .collect();
        let narrow = self.narrow(f);
        self.cut_operands(f, &narrow);
        self.give(f, &narrow);
        self.close(f);
    }

    /// Moves all but the parameters of the start behind the gate, and what does not belong to the region to the rest.
    fn enclose(&mut self, f: &mut Function) {
        let (l, start, end) = (&self.l, self.gate, self.region.end);
        let tail = f.block_mut(end).insts.split_off(self.region.prefix);
        let term = std::mem::replace(&mut f.block_mut(end).term, Term::None);
        let term_line = f.block(end).term_line;
        let rest = f.block_mut(self.rest);
        (rest.insts, rest.term, rest.term_line) = (tail, term, term_line);
        l.jump(f, end, l.done, Vec::new());
        self.inside.extend(&self.region.blocks);
        self.inside.insert(end);
        self.inside.remove(&start);
        self.inside.insert(self.body);
        let insts = std::mem::take(&mut f.block_mut(start).insts);
        let term = std::mem::replace(&mut f.block_mut(start).term, Term::None);
        let term_line = f.block(start).term_line;
        let body = f.block_mut(self.body);
        (body.insts, body.term, body.term_line) = (insts, term, term_line);
    }

    /// Those of the region, in order.
    fn blocks(&self, f: &Function) -> Vec<Block> {
        let order = f.order.iter().copied();
        order.filter(|b| self.inside.contains(b)).collect()
    }

    /// What differs between lanes from the start on is made in the gate.
    fn hoist_inputs(&self, f: &mut Function) {
        for b in self.blocks(f) {
            let insts = std::mem::take(&mut f.block_mut(b).insts);
            let (inputs, others): (Vec<Inst>, Vec<Inst>) = insts.into_iter().partition(|&i| {
                let data = f.inst(i);
                let wide = data.results.iter().any(|&r| f.ty(r).lanes == self.l.whole);
                match &data.op {
                    Op::Input(_) => wide,
                    Op::VecConst(_) => wide && uniform_const(f, data.results[0]).is_none(),
                    _ => false,
                }
            });
            f.block_mut(b).insts = others;
            f.block_mut(self.gate).insts.extend(inputs);
        }
    }

    /// Makes what the region computes as wide as a strip; returns all these values.
    fn narrow(&self, f: &mut Function) -> FxHashSet<Value> {
        let mut narrow = FxHashSet::default();
        for b in self.blocks(f) {
            let insts = f.block(b).insts.iter().map(|&i| f.inst(i));
            let lanes = insts.filter(|data| !matches!(data.op, Op::BlockLoad(_)));
            let results = lanes.flat_map(|data| &data.results);
            let made: Vec<Value> = f.block(b).params.iter().chain(results).copied().collect();
            for v in made {
                let ty = &mut f.values[v.0 as usize].ty;
                if ty.lanes == self.l.whole {
                    *ty = ty.with_lanes(self.l.lanes);
                    narrow.insert(v);
                }
            }
            for i in f.block(b).insts.clone() {
                if let Op::VecConst(lanes) = &f.inst(i).op
                    && lanes.len() == usize::from(self.l.whole)
                {
                    f.inst_mut(i).op = Op::VecConst(lanes[..self.l.lanes.into()].into());
                }
            }
        }
        narrow
    }

    /// Vectors from outside are read strip by strip.
    fn cut_operands(&mut self, f: &mut Function, narrow: &FxHashSet<Value>) {
        for b in self.blocks(f) {
            // Elements are taken out of lists alone, which are no lanes.
            let lanes = |op: &Op| !matches!(op, Op::ExtractLane(_));
            change_operands(f, b, lanes, |f, v| self.part(f, v, narrow));
        }
    }

    fn part(&mut self, f: &mut Function, v: Value, narrow: &FxHashSet<Value>) -> Value {
        let ty = f.ty(v);
        if ty.lanes != self.l.whole || narrow.contains(&v) {
            return v;
        }
        if let Some(&known) = self.cut.get(&v) {
            return known;
        }
        let (strip, part) = (self.l.strip, ty.with_lanes(self.l.lanes));
        let splat = f
            .def_inst(v)
            .filter(|data| data.op == Op::Splat)
            .map(|data| data.args[0]);
        let part = if let Some(bits) = uniform_const(f, v) {
            self.l
                .push(f, strip, lanes_op(vec![bits; part.lanes.into()]), &[], part)
        } else if let Some(number) = splat {
            self.l.push(f, strip, Op::Splat, &[number], part)
        } else if let Some((first, step)) = sequence(f, v) {
            self.count(f, part, first, step)
        } else {
            let slot = self.l.slot(f, ty);
            let at = self.l.constant(f, self.gate, Ty::I32, slot.into());
            self.l.store(f, self.gate, v, at);
            let at = self.l.part_of(f, strip, slot, ty);
            self.l.load(f, strip, part, at)
        };
        self.cut.insert(v, part);
        self.cut_from.insert(part, v);
        part
    }

    /// A strip's part of numbers with equal distances.
    fn count(&self, f: &mut Function, ty: Ty, first: u64, step: u64) -> Value {
        let (l, b) = (&self.l, self.l.strip);
        let scalar = Ty::scalar(ty.lane);
        let number = match ty.lane {
            Lane::I32 => l.number,
            Lane::I64 => l.push(f, b, Op::Convert(Conv::ZExt), &[l.number], scalar),
            _ => l.push(f, b, Op::Convert(Conv::Trunc), &[l.number], scalar),
        };
        let mask = ty.lane.mask();
        let by = l.constant(f, b, scalar, step.wrapping_mul(u64::from(l.lanes)) & mask);
        let skipped = l.push(f, b, Op::Binary(BinOp::Mul), &[number, by], scalar);
        let skipped = l.push(f, b, Op::Splat, &[skipped], ty);
        let lanes =
            (0..u64::from(ty.lanes)).map(|n| first.wrapping_add(step.wrapping_mul(n)) & mask);
        let lanes = l.push(f, b, lanes_op(lanes.collect()), &[], ty);
        l.push(f, b, Op::Binary(BinOp::Add), &[lanes, skipped], ty)
    }

    /// What is read behind the region is put together.
    fn give(&mut self, f: &mut Function, narrow: &FxHashSet<Value>) {
        let mut given: FxHashMap<Value, Value> = FxHashMap::default();
        for b in f.order.clone() {
            if self.inside.contains(&b) || b == self.l.done || b == self.out {
                continue;
            }
            change_operands(
                f,
                b,
                |_| true,
                |f, v| match narrow.contains(&v) {
                    true => self.whole(f, v, &mut given),
                    false => v,
                },
            );
        }
    }

    /// A vector of the region with all its lanes.
    fn whole(&mut self, f: &mut Function, v: Value, given: &mut FxHashMap<Value, Value>) -> Value {
        if let Some(&known) = given.get(&v) {
            return known;
        }
        let ty = f.ty(v).with_lanes(self.l.whole);
        let whole = match self.is_known_outside(f, v) {
            true => self.again(f, v, ty, given),
            false => self.put_together(f, v, ty),
        };
        given.insert(v, whole);
        whole
    }

    /// True for what little is computed from values outside of the region, as addresses mostly are.
    fn is_known_outside(&self, f: &Function, v: Value) -> bool {
        let (mut seen, mut work) = (FxHashSet::from_iter([v]), vec![v]);
        while let Some(v) = work.pop() {
            if self.is_outside(f, v) {
                continue;
            }
            if self.region.differing.contains(&v) {
                return false;
            }
            if f.ty(v).is_scalar() {
                continue;
            }
            let data = f.def_inst(v).filter(|data| is_computed(&data.op));
            let Some(data) = data.filter(|_| seen.len() <= AGAIN) else {
                return false;
            };
            work.extend(data.args.iter().filter(|&&a| seen.insert(a)));
        }
        true
    }

    fn is_outside(&self, f: &Function, v: Value) -> bool {
        match f.def(v) {
            ValueDef::Param(b, _) => !self.inside.contains(&b),
            ValueDef::Result(i, _) => !self.made.contains(&i),
            ValueDef::Alias(to) => self.is_outside(f, to),
        }
    }

    /// Computes a vector again, for all lanes.
    fn again(
        &mut self,
        f: &mut Function,
        v: Value,
        ty: Ty,
        given: &mut FxHashMap<Value, Value>,
    ) -> Value {
        if let Some(&whole) = self.cut_from.get(&v) {
            return whole;
        }
        let Some(data) = f.def_inst(v).cloned() else {
            return v;
        };
        let op = match data.op {
            Op::VecConst(lanes) => lanes_op(vec![lanes[0]; ty.lanes.into()]),
            op => op,
        };
        let args = data.args.iter().map(|&a| match f.ty(a).is_scalar() {
            true => a,
            false => self.whole(f, a, given),
        });
        let args = args.collect();
        f.push1(self.out, op, args, ty, data.line)
    }

    fn put_together(&mut self, f: &mut Function, v: Value, ty: Ty) -> Value {
        let (slot, done) = (self.l.slot(f, ty), self.l.done);
        let at = self.l.part_of(f, done, slot, ty);
        self.l.store(f, done, v, at);
        let at = self.l.constant(f, self.out, Ty::I32, slot.into());
        self.l.load(f, self.out, ty, at)
    }

    fn close(&mut self, f: &mut Function) {
        let (strip, done, out) = (self.l.strip, self.l.done, self.out);
        let zero = self.l.constant(f, self.gate, Ty::I32, 0);
        self.l.jump(f, self.gate, strip, vec![zero]);
        self.l.jump(f, strip, self.body, Vec::new());
        let one = self.l.constant(f, done, Ty::I32, 1);
        let next = self.l.push(
            f,
            done,
            Op::Binary(BinOp::Add),
            &[self.l.number, one],
            Ty::I32,
        );
        let all = self
            .l
            .constant(f, done, Ty::I32, (self.l.whole / self.l.lanes).into());
        let more = self
            .l
            .push(f, done, Op::ICmp(ICond::Ult), &[next, all], Ty::BOOL);
        f.block_mut(done).term = Term::Branch {
            cond: more,
            then: BlockCall {
                block: strip,
                args: vec![next],
            },
            other: BlockCall {
                block: out,
                args: Vec::new(),
            },
        };
        f.block_mut(done).term_line = self.l.line;
        self.l.jump(f, out, self.rest, Vec::new());
    }
}

/// Changes what some instructions of a block read, and what it passes on.
fn change_operands(
    f: &mut Function,
    b: Block,
    of: impl Fn(&Op) -> bool,
    mut change: impl FnMut(&mut Function, Value) -> Value,
) {
    for i in f.block(b).insts.clone() {
        if !of(&f.inst(i).op) {
            continue;
        }
        for n in 0..f.inst(i).args.len() {
            let v = f.inst(i).args[n];
            f.inst_mut(i).args[n] = change(f, v);
        }
    }
    let mut term = std::mem::replace(&mut f.block_mut(b).term, Term::None);
    for call in term.targets_mut() {
        for a in &mut call.args {
            *a = change(f, *a);
        }
    }
    f.block_mut(b).term = term;
}

/// First element and distance of integers with equal distances.
fn sequence(f: &Function, v: Value) -> Option<(u64, u64)> {
    let lanes = const_lanes(f, v)?;
    let lane = f.ty(v).lane;
    if lane.is_float() || lane == Lane::I1 {
        return None;
    }
    let (&first, &second) = (lanes.first()?, lanes.get(1)?);
    let step = second.wrapping_sub(first) & lane.mask();
    let mut pairs = lanes.windows(2);
    pairs
        .all(|w| w[1].wrapping_sub(w[0]) & lane.mask() == step)
        .then_some((first, step))
}
