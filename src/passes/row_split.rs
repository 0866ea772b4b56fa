//! Splitting by local-id row: vectors of a thread become vectors of one row of local ids each.
//!
//! In a 16x16 group under 32 lanes, the rows of the group are shorter than the thread is wide. No address that depends on local
//! ids is affine over all lanes then, but many are affine over the lanes of one row. This pass splits the vectors, so that the
//! pass `shape` finds those addresses.
//!
//! Guarantees: every lane-wise operation on more lanes than a row is replaced by one for each row, in the order of the lanes.
//! Operations that mix lanes stay, between vectors put together and cut up. Functions that know nothing of rows
//! ([`Function::row`]), or in which no more addresses are affine then, are left alone: narrower vectors are more work. So are
//! those where the work grows by far more than these addresses can save.
//!
//! Not done: views of a vector in other lanes (`bitcast` to narrower ones) are not followed.

use rustc_hash::{FxHashMap, FxHashSet};

use super::edit::{const_lanes, lanes_op};
use super::shape;
use crate::ssa::dom::{drop_unreachable, reverse_post_order};
use crate::ssa::{BinOp, Block, BlockCall, Function, Input, Inst, InstData, Op, Term, Ty, Value};

/// Most instructions that are added for each lane of which the address is affine then. Large functions that store little, such as
/// loops that the kernel's compiler unrolled, would grow beyond what code generators optimise.
const WORTH: usize = 64;

/// A lane of a vector, or a scalar.
type Source = (Value, u16);

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let Some(row) = f.row.filter(|&row| row > 1 && row < f.simd) else {
        return 0;
    };
    let whole = f.clone();
    let cut = cut(f, row);
    let gained = shape::affine_lanes(f).saturating_sub(shape::affine_lanes(&whole));
    let added = size(f).saturating_sub(size(&whole));
    if cut == 0 || gained == 0 || added > WORTH * gained {
        *f = whole;
        return 0;
    }
    cut
}

fn size(f: &Function) -> usize {
    f.order.iter().map(|&b| f.block(b).insts.len()).sum()
}

/// Cuts all there is; how many instructions.
fn cut(f: &mut Function, row: u16) -> usize {
    let order = reverse_post_order(f);
    let mut rows = Rows {
        row,
        parts: FxHashMap::default(),
        kept: FxHashSet::default(),
        first: FxHashMap::default(),
        out: Vec::new(),
        line: 0,
        f,
    };
    if !rows.has_wide_accesses(&order) {
        return 0;
    }
    drop_unreachable(rows.f, &order);
    for &b in &order {
        rows.params(b);
    }
    for &b in &order {
        rows.block(b);
    }
    rows.remarks();
    let cut = rows.first.iter().filter(|(from, to)| from != to).count();
    f.resolve_aliases();
    cut
}

struct Rows<'f> {
    f: &'f mut Function,
    /// Lanes of a row.
    row: u16,
    /// What wide values have become.
    parts: FxHashMap<Value, Vec<Value>>,
    /// Wide values that are still made.
    kept: FxHashSet<Value>,
    /// What stands in the place of an instruction, or the first of it.
    first: FxHashMap<Inst, Inst>,
    /// Instructions of the current block.
    out: Vec<Inst>,
    line: u32,
}

impl Rows<'_> {
    /// True for vectors that are cut.
    fn is_wide(&self, v: Value) -> bool {
        let lanes = self.f.ty(v).lanes;
        lanes > self.row && lanes <= self.f.simd && lanes.is_multiple_of(self.row)
    }

    fn has_wide_accesses(&self, order: &[Block]) -> bool {
        let insts = order.iter().flat_map(|&b| &self.f.block(b).insts);
        insts.map(|&i| self.f.inst(i)).any(|data| {
            matches!(data.op, Op::Load(_) | Op::Store(_) | Op::Atomic(_))
                && self.is_wide(data.args[0])
        })
    }

    fn part_ty(&self, v: Value) -> Ty {
        self.f.ty(v).with_lanes(self.row)
    }

    /// Parameters of rows in the places of wide ones.
    fn params(&mut self, b: Block) {
        for p in std::mem::take(&mut self.f.block_mut(b).params) {
            if self.is_wide(p) {
                let (ty, count) = (self.part_ty(p), self.count(p));
                let parts = (0..count).map(|_| self.f.add_param(b, ty)).collect();
                self.parts.insert(p, parts);
            } else {
                self.f.place_param(b, p);
            }
        }
    }

    /// Rows of a wide vector.
    fn count(&self, v: Value) -> u16 {
        self.f.ty(v).lanes / self.row
    }

    fn block(&mut self, b: Block) {
        for i in std::mem::take(&mut self.f.block_mut(b).insts) {
            let mut data = self.f.inst(i).clone();
            for a in &mut data.args {
                *a = self.f.resolve(*a);
            }
            self.line = data.line;
            let from = self.out.len();
            if data
                .args
                .iter()
                .chain(&data.results)
                .any(|&v| self.is_wide(v))
            {
                self.instruction(i, &data);
            } else {
                self.f.inst_mut(i).args = data.args;
                self.out.push(i);
            }
            if let Some(&first) = self.out.get(from) {
                self.first.insert(i, first);
            }
        }
        self.terminator(b);
        self.f.block_mut(b).insts = std::mem::take(&mut self.out);
    }

    fn terminator(&mut self, b: Block) {
        let mut term = std::mem::replace(&mut self.f.block_mut(b).term, Term::None);
        self.line = self.f.block(b).term_line;
        for call in term.targets_mut() {
            self.arguments(call);
        }
        self.f.block_mut(b).term = term;
    }

    fn arguments(&self, call: &mut BlockCall) {
        let args = std::mem::take(&mut call.args);
        for a in args {
            let a = self.f.resolve(a);
            match self.parts.get(&a) {
                Some(parts) => call.args.extend(parts),
                None => call.args.push(a),
            }
        }
    }

    /// An instruction with a wide operand or result.
    fn instruction(&mut self, i: Inst, data: &InstData) {
        match &data.op {
            Op::VecConst(lanes) => self.constant(data, lanes),
            Op::Splat => {
                let ty = self.part_ty(data.results[0]);
                let part = self.emit1(Op::Splat, data.args.clone(), ty);
                self.set(data.results[0], |_| part);
            }
            Op::Input(Input::LocalIds { dim, first }) => {
                for_rows(self, data.results[0], |rows, n, ty| {
                    let first = first + (n * rows.row) as u8;
                    let input = Input::LocalIds { dim: *dim, first };
                    rows.emit1(Op::Input(input), Vec::new(), ty)
                });
            }
            Op::Load(_) | Op::Store(_) | Op::Atomic(_) if self.is_wide(data.args[0]) => {
                self.access(i, data);
            }
            Op::MaskAny => self.reduce(data, BinOp::Or),
            Op::MaskAll => self.reduce(data, BinOp::And),
            Op::ExtractLane(k) => {
                let (part, lane) = self.source(data.args[0], *k);
                let v = self.emit1(
                    Op::ExtractLane(lane),
                    vec![part],
                    self.f.ty(data.results[0]),
                );
                self.f.replace(data.results[0], v);
            }
            Op::InsertLane(k) => self.insert(data, *k),
            Op::Shuffle(indices) => self.shuffle(data, indices),
            op if self.is_lane_wise(op, data) => {
                for_rows(self, data.results[0], |rows, n, ty| {
                    let args = rows.args_of_row(&data.args, n);
                    rows.emit1(data.op.clone(), args, ty)
                });
            }
            _ => self.whole(i, data),
        }
    }

    /// True if each lane of the result is made of the same lane of the operands.
    fn is_lane_wise(&self, op: &Op, data: &InstData) -> bool {
        let lanes = |v: Value| self.f.ty(v).lanes;
        let (&[result], &[first, ..]) = (data.results.as_slice(), data.args.as_slice()) else {
            return false;
        };
        match op {
            Op::Bitcast => lanes(first) == lanes(result),
            _ => {
                let fits = |&a: &Value| [1, lanes(result)].contains(&lanes(a));
                op.is_lane_wise() && data.args.iter().all(fits)
            }
        }
    }

    fn emit(&mut self, op: Op, args: Vec<Value>, results: &[Ty]) -> Inst {
        let i = self.f.make(op, args, results, self.line);
        self.out.push(i);
        i
    }

    fn emit1(&mut self, op: Op, args: Vec<Value>, ty: Ty) -> Value {
        let i = self.emit(op, args, &[ty]);
        self.f.inst(i).results[0]
    }

    /// Says what the rows of a wide value are.
    fn set(&mut self, v: Value, row: impl FnMut(u16) -> Value) {
        let parts = (0..self.count(v)).map(row).collect();
        self.parts.insert(v, parts);
    }

    /// Operands for a row: its part of vectors, and scalars as they are.
    fn args_of_row(&self, args: &[Value], n: u16) -> Vec<Value> {
        let of_row = |v: &Value| match self.parts.get(v) {
            Some(parts) => parts[usize::from(n)],
            None => *v,
        };
        args.iter().map(of_row).collect()
    }

    fn constant(&mut self, data: &InstData, lanes: &[u64]) {
        let row = usize::from(self.row);
        for_rows(self, data.results[0], |rows, n, ty| {
            let lanes = lanes.iter().skip(usize::from(n) * row).take(row);
            rows.emit1(lanes_op(lanes.copied().collect()), Vec::new(), ty)
        });
    }

    /// One access for each row, in the order of the lanes.
    fn access(&mut self, i: Inst, data: &InstData) {
        let types: Vec<Ty> = data.results.iter().map(|&r| self.part_ty(r)).collect();
        let mut results: Vec<Vec<Value>> = vec![Vec::new(); types.len()];
        for n in 0..self.count(data.args[0]) {
            let mut op = data.op.clone();
            match &mut op {
                Op::Load(m) | Op::Store(m) => m.site = self.site(m.site, n),
                Op::Atomic(m) => m.site = self.site(m.site, n),
                _ => {}
            }
            let args = self.args_of_row(&data.args, n);
            let part = self.emit(op, args, &types);
            if self.f.inactive_undef.contains(&i) {
                self.f.inactive_undef.insert(part);
            }
            for (all, &r) in results.iter_mut().zip(&self.f.inst(part).results) {
                all.push(r);
            }
        }
        self.parts.extend(data.results.iter().copied().zip(results));
    }

    /// The site of an access for lanes of a later row.
    fn site(&mut self, site: u32, n: u16) -> u32 {
        let Some(whole) = self.f.sites.get(site as usize).filter(|_| n > 0) else {
            return site;
        };
        let mut part = whole.clone();
        part.first_lane += (n * self.row) as u8;
        if part.parts.is_empty() {
            part.parts.push(site);
        }
        self.f.sites.push(part);
        self.f.sites.len() as u32 - 1
    }

    /// What holds of any lane, or of all.
    fn reduce(&mut self, data: &InstData, op: BinOp) {
        let parts = self.parts[&data.args[0]].clone();
        let mut of_rows = Vec::new();
        for part in parts {
            of_rows.push(self.emit1(data.op.clone(), vec![part], Ty::BOOL));
        }
        let together = |rows: &mut Self, a, b| rows.emit1(Op::Binary(op), vec![a, b], Ty::BOOL);
        let first = of_rows[0];
        let v = of_rows[1..]
            .iter()
            .fold(first, |a, &b| together(self, a, b));
        self.f.replace(data.results[0], v);
    }

    fn insert(&mut self, data: &InstData, k: u16) {
        let (part, lane) = self.source(data.args[0], k);
        let ty = self.f.ty(part);
        let changed = self.emit1(Op::InsertLane(lane), vec![part, data.args[1]], ty);
        let mut parts = self.parts[&data.args[0]].clone();
        parts[usize::from(k / self.row)] = changed;
        self.parts.insert(data.results[0], parts);
    }

    /// Where a lane is to be found now.
    fn source(&self, v: Value, lane: u16) -> Source {
        match self.parts.get(&v) {
            Some(parts) => (parts[usize::from(lane / self.row)], lane % self.row),
            None => (v, lane),
        }
    }

    fn shuffle(&mut self, data: &InstData, indices: &[u16]) {
        let lanes = self.f.ty(data.args[0]).lanes;
        let from = |&k: &u16| match k < lanes {
            true => self.source(data.args[0], k),
            false => self.source(data.args[1], k - lanes),
        };
        let sources: Vec<Source> = indices.iter().map(from).collect();
        let v = data.results[0];
        if self.is_wide(v) {
            let row = usize::from(self.row);
            for_rows(self, v, |rows, n, _| {
                rows.pick(&sources[usize::from(n) * row..][..row])
            });
        } else {
            let picked = self.pick(&sources);
            self.f.replace(v, picked);
        }
    }

    /// A vector of lanes of others.
    fn pick(&mut self, lanes: &[Source]) -> Value {
        let mut from: Vec<Value> = Vec::new();
        for &(v, _) in lanes {
            if !from.contains(&v) {
                from.push(v);
            }
        }
        let ty = self.f.ty(from[0]);
        let to = ty.with_lanes(lanes.len() as u16);
        if from.len() > 2 {
            let (low, high) = lanes.split_at(lanes.len() / 2);
            let (low, high) = (self.pick(low), self.pick(high));
            return self.emit1(Op::Shuffle((0..to.lanes).collect()), vec![low, high], to);
        }
        let index = |&(v, k): &Source| if v == from[0] { k } else { ty.lanes + k };
        let indices: Vec<u16> = lanes.iter().map(index).collect();
        if to == ty && indices.iter().copied().eq(0..to.lanes) {
            return from[0];
        }
        match indices.as_slice() {
            [k] => self.emit1(Op::ExtractLane(*k), from, to),
            _ => self.emit1(Op::Shuffle(indices.into()), from, to),
        }
    }

    /// An instruction that stays, between operands put together and results cut up.
    fn whole(&mut self, i: Inst, data: &InstData) {
        let args = data.args.iter().map(|&a| self.joined(a)).collect();
        self.f.inst_mut(i).args = args;
        self.out.push(i);
        for &r in &data.results {
            if self.is_wide(r) {
                self.kept.insert(r);
                let row = self.row;
                for_rows(self, r, |rows, n, ty| {
                    let lanes = (n * row..(n + 1) * row).collect();
                    rows.emit1(Op::Shuffle(lanes), vec![r], ty)
                });
            }
        }
    }

    /// All lanes of a value.
    fn joined(&mut self, v: Value) -> Value {
        if !self.is_wide(v) {
            return v;
        }
        if self.kept.contains(&v) {
            return v;
        }
        if let Some(lanes) = const_lanes(self.f, v) {
            let op = lanes_op(lanes.to_vec());
            return self.emit1(op, Vec::new(), self.f.ty(v));
        }
        let lanes: Vec<Source> = (0..self.f.ty(v).lanes).map(|k| self.source(v, k)).collect();
        self.pick(&lanes)
    }

    /// Decisions about accesses are about their first rows.
    fn remarks(&mut self) {
        for remark in &mut self.f.remarks {
            remark.inst = remark.inst.map(|i| *self.first.get(&i).unwrap_or(&i));
        }
    }
}

/// Makes the rows of a wide value, each from its number and type.
fn for_rows(rows: &mut Rows, v: Value, mut make: impl FnMut(&mut Rows, u16, Ty) -> Value) {
    let ty = rows.part_ty(v);
    let parts = (0..rows.count(v)).map(|n| make(rows, n, ty)).collect();
    rows.parts.insert(v, parts);
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::ssa::{Function, parse};

    /// A function with one store, whose data takes this many operations to compute.
    fn computing(operations: usize) -> Function {
        let mut text = String::from(
            "function \"f\" simd 16 row 8 frame 64\n\
             site 0 = write surface 4 \"scatter4_scaled\" line 2\n\nbb0:\n\
             %0: <16 x i1> = input.dispatchmask\n\
             %1: <16 x i32> = vconst [0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28]\n\
             %2: <16 x i32> = input.payload[0]\n\
             %3: i32 = const 0\n",
        );
        for n in 4..4 + operations {
            text += &format!(
                "%{n}: <16 x i32> = mul %{}, %2\n",
                if n == 4 { 2 } else { n - 1 }
            );
        }
        let last = 3 + operations;
        text += &format!("store.surface.i32x1[0] %0, %1, %3, %{last}\nreturn\n");
        parse(&text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn large_functions_that_store_little_are_left_alone() {
        for (operations, cuts) in [(900, true), (1100, false)] {
            let mut f = computing(operations);
            let before = f.to_string();
            assert_eq!(run(&mut f) > 0, cuts, "{operations}");
            assert_eq!(f.to_string() != before, cuts, "{operations}");
        }
    }
}
