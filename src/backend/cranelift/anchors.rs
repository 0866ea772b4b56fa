//! Scheduling anchors: where in a block computations are made to happen.
//!
//! Cranelift keeps loads and stores in order, and puts everything else right in front of the first of these that uses it. If a
//! block loads, computes, loads and computes, all loads would come before everything that is computed from them, and their
//! results would wait in spilled registers. So anchors use what has been computed, now and then
//! ([`CraneliftEmitter::compute_here`]).
//!
//! A vector is several pieces. In front of the store at the end of a block, the whole dependence chain of the first piece comes
//! before that of the second. If the chain is longer than a processor's reorder buffer, the processor waits for each operation of
//! one piece. Such chains are interleaved: anchors cut the chain into segments, and each segment is computed for all pieces
//! ([`OpenSegment`]). Shorter chains, and blocks with many of them, are left to `schedule.rs`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::emit::CraneliftEmitter;
use super::value::piece_count;
use crate::backend::CodegenEffort;
use crate::ssa::{BinOp, Function, Inst, Lane, Op, UnOp, Value};

/// Pieces of loaded vectors that nothing needs but what was computed of them, from which on that is computed.
const HELD: usize = 12;

/// Length of a segment of a dependence chain, in cycles of latency. Such a segment of all pieces fits into a reorder buffer.
const SEGMENT_CYCLES: u32 = 64;
/// Blocks with fewer segments are left alone: there, a reorder buffer holds operations of all pieces.
const MIN_SEGMENTS: usize = 4;
/// Operations on pieces in a segment for each piece that is live at its end, at least; an anchor stores what is live.
const MIN_OPS_PER_LIVE: usize = 6;

/// What to compute where in a course of instructions.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    /// By number of an instruction, what to compute in front of it.
    at: FxHashMap<usize, Vec<Value>>,
    /// Whether chains are cut into segments. That is an order of its own, which `schedule.rs` leaves alone.
    segments: bool,
}

/// Pieces of a value in registers of vectors; none for scalars and masks.
fn pieces(f: &Function, v: Value) -> usize {
    let ty = f.ty(v);
    match ty.lane {
        Lane::I1 => 0,
        _ if ty.is_scalar() => 0,
        _ => piece_count(ty),
    }
}

/// Values on their way through a block.
struct Course<'f> {
    f: &'f Function,
    /// Number of the instruction that uses a value last.
    last: FxHashMap<Value, usize>,
    /// Loaded since the last anchors, or the same bits as another type.
    loaded: FxHashSet<Value>,
    /// Computed of these, in order, as far as it was needed when that was last asked; and all of it.
    made: Vec<Value>,
    made_set: FxHashSet<Value>,
    /// Pieces of `loaded` whose last use an instruction is.
    dying: Vec<usize>,
    /// Pieces of `loaded` that have had their last use.
    dead: usize,
    /// How many of these to wait for.
    enough: usize,
}

/// Finds the places in a course of instructions; `leaves` says which values are used after it.
fn find(f: &Function, insts: &[Inst], leaves: impl Fn(Value) -> bool) -> Anchors {
    let mut course = Course {
        f,
        last: FxHashMap::default(),
        loaded: FxHashSet::default(),
        made: Vec::new(),
        made_set: FxHashSet::default(),
        dying: vec![0; insts.len()],
        dead: 0,
        enough: HELD,
    };
    for (n, &i) in insts.iter().enumerate() {
        let data = f.inst(i);
        for &v in &data.args {
            course
                .last
                .entry(v)
                .and_modify(|l| *l = n.max(*l))
                .or_insert(n);
        }
        for &v in data.results.iter().filter(|&&v| leaves(v)) {
            course.last.insert(v, usize::MAX);
        }
    }
    let mut anchors = Anchors::default();
    let (mut segment, mut ends) = (OpenSegment::default(), Vec::new());
    let mut whole = Chain::default();
    for (n, &i) in insts.iter().enumerate() {
        let due = course.dead >= course.enough && f.inst(i).op.has_effect();
        if let Some(values) = due.then(|| course.anchor(n)).flatten() {
            anchors.at.insert(n, values);
        }
        course.pass(n, i);
        whole.pass(f, i);
        if let Some(values) = segment.pass(f, i, |v| course.last.get(&v).is_some_and(|&l| l > n)) {
            ends.push((n + 1, values));
        }
    }
    if ends.len() >= MIN_SEGMENTS && whole.waits() {
        anchors.segments = true;
        anchors.at.extend(ends);
    }
    anchors
}

/// Latency of an operation on vectors in cycles, as on today's processors.
fn latency(op: &Op) -> u32 {
    match op {
        Op::Binary(BinOp::FDiv) | Op::Unary(UnOp::FSqrt) => 12,
        Op::Fma | Op::Convert(_) => 4,
        Op::Dot4(_) => 8,
        Op::Binary(BinOp::FAdd | BinOp::FSub | BinOp::FMul | BinOp::Mul) => 4,
        _ => 1,
    }
}

/// Operations on vectors of several pieces.
#[derive(Default)]
struct Chain {
    /// Length of the longest dependence chain that ends in a result, in cycles of latency.
    cycles: FxHashMap<Value, u32>,
    longest: u32,
    operations: u32,
}

impl Chain {
    /// Goes past an instruction. The length of the chain that ends in its result.
    fn pass(&mut self, f: &Function, i: Inst) -> Option<u32> {
        let data = f.inst(i);
        let &[result] = data.results.as_slice() else {
            return None;
        };
        if data.op.has_effect() || pieces(f, result) < 2 {
            return None;
        }
        let before = data.args.iter().filter_map(|v| self.cycles.get(v)).max();
        let cycles = before.unwrap_or(&0) + latency(&data.op);
        self.cycles.insert(result, cycles);
        self.longest = self.longest.max(cycles);
        self.operations += 1;
        Some(cycles)
    }

    /// Limited by latency, not by the two operations that a processor starts each cycle.
    fn waits(&self) -> bool {
        3 * self.operations / 2 < 2 * self.longest
    }
}

/// Operations on vectors of several pieces, since the last segment ended.
#[derive(Default)]
struct OpenSegment {
    chain: Chain,
    /// Results in order.
    made: Vec<Value>,
    /// Pieces of all of them.
    work: usize,
}

impl OpenSegment {
    /// Goes past an instruction. If the segment ends after it, the values to compute there: those that are `needed` later.
    fn pass(
        &mut self,
        f: &Function,
        i: Inst,
        needed: impl Fn(Value) -> bool,
    ) -> Option<Vec<Value>> {
        let cycles = self.chain.pass(f, i)?;
        let result = f.inst(i).results[0];
        self.made.push(result);
        self.work += pieces(f, result);
        if cycles < SEGMENT_CYCLES {
            return None;
        }
        let OpenSegment { chain, made, work } = std::mem::take(self);
        let live: Vec<Value> = made.into_iter().filter(|&v| needed(v)).collect();
        let kept: usize = live.iter().map(|&v| pieces(f, v)).sum();
        (chain.waits() && MIN_OPS_PER_LIVE * kept <= work).then_some(live)
    }
}

impl Course<'_> {
    /// Pieces of vectors that a loaded value takes.
    fn weight(&self, i: Inst, v: Value) -> usize {
        let shape = self.f.shapes.get(&i).and_then(|s| s.addr);
        match shape {
            // One scalar for all lanes.
            Some(addr) if addr.stride == 0 => 1,
            _ => pieces(self.f, v),
        }
    }

    /// Goes past an instruction.
    fn pass(&mut self, n: usize, i: Inst) {
        let data = self.f.inst(i);
        match &data.op {
            Op::Load(_) | Op::BlockLoad(_) | Op::FrameLoad(_) => {
                for &v in &data.results {
                    self.load(v, self.weight(i, v));
                }
            }
            Op::Bitcast if self.loaded.contains(&data.args[0]) => {
                let (from, to) = (data.args[0], data.results[0]);
                // The bits go on, they do not die here.
                let weight = match self.last.get(&from) {
                    Some(&last) if last == n => std::mem::take(&mut self.dying[n]),
                    _ => 0,
                };
                self.load(to, weight);
            }
            op if !op.has_effect() => {
                let of = |v: &Value| self.loaded.contains(v) || self.made_set.contains(v);
                if data.args.iter().any(of) {
                    self.made.extend(&data.results);
                    self.made_set.extend(&data.results);
                }
            }
            _ => {}
        }
        self.dead += self.dying[n];
    }

    fn load(&mut self, v: Value, weight: usize) {
        self.loaded.insert(v);
        if let Some(dying) = self.last.get(&v).and_then(|&last| self.dying.get_mut(last)) {
            *dying += weight;
        }
    }

    /// What to compute before the instruction with number `n`, if it makes enough loaded vectors superfluous.
    fn anchor(&mut self, n: usize) -> Option<Vec<Value>> {
        let needed = |v: &Value| self.last.get(v).is_some_and(|&last| last >= n);
        self.made.retain(needed);
        let cost: usize = self.made.iter().map(|&v| pieces(self.f, v)).sum();
        if 2 * cost > self.dead {
            self.enough = 2 * self.dead;
            return None;
        }
        (self.dead, self.enough) = (0, HELD);
        self.made_set.clear();
        Some(std::mem::take(&mut self.made))
    }
}

impl CraneliftEmitter<'_> {
    /// Where to compute what in a course of instructions.
    pub(super) fn anchors(&self, insts: &[Inst], leaves: impl Fn(Value) -> bool) -> Anchors {
        match self.options.tuning.codegen {
            // Nothing is moved there.
            CodegenEffort::None => Anchors::default(),
            CodegenEffort::Speed => find(self.f, insts, leaves),
        }
    }

    /// Computes what is to be computed in front of an instruction.
    pub(super) fn anchor(&mut self, anchors: &Anchors, number: usize) {
        let Some(values) = anchors.at.get(&number) else {
            return;
        };
        if anchors.segments {
            self.segmented.insert(self.block);
        }
        let vectors = values.iter().filter(|&&v| pieces(self.f, v) > 0);
        let parts: Vec<_> = vectors.copied().collect();
        let parts: Vec<_> = parts.into_iter().flat_map(|v| self.parts(v)).collect();
        self.compute_here(parts.into_iter());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of products of loaded vectors, several in a row, each of which is used once.
    fn sums(products: usize) -> Function {
        let mut text = String::from(
            "function \"sums\" simd 16 frame 64\nsite 0 = read slm 4 \"gather4_scaled\" line 1\n\nbb0:\n  \
             %0: <16 x i1> = input.dispatchmask\n  %1: <16 x i32> = vconst [0 ...]\n  %2: <16 x i32> = vconst [0 ...]\n",
        );
        let mut sum = 2;
        for n in 0..products {
            let v = 3 + 4 * n;
            let load = "<16 x i32> = load.slm.i32x1[0] %0, %1";
            text.push_str(&format!("  %{v}: {load}\n  %{}: {load}\n", v + 1));
            text.push_str(&format!(
                "  %{}: <16 x i32> = mul %{v}, %{}\n",
                v + 2,
                v + 1
            ));
            text.push_str(&format!(
                "  %{}: <16 x i32> = add %{sum}, %{}\n",
                v + 3,
                v + 2
            ));
            sum = v + 3;
        }
        text.push_str(&format!("  framestore[0] %{sum}\n  return\n"));
        crate::ssa::parse(&text).unwrap()
    }

    #[test]
    fn sums_are_computed_on_the_way() {
        let f = sums(8);
        let insts = &f.block(Function::ENTRY).insts;
        let anchors = find(&f, insts, |_| false);
        // Two products are 16 pieces, their sum four.
        let mut places: Vec<_> = anchors.at.iter().collect();
        places.sort();
        let names: Vec<Vec<u32>> = places
            .iter()
            .map(|(_, v)| v.iter().map(|v| v.0).collect())
            .collect();
        assert_eq!(names, [[10], [18], [26], [34]]);
        for (&n, values) in places {
            // In front of the load after the sum, or of the store.
            assert!(f.inst(insts[n - 1]).results.contains(&values[0]));
        }
    }

    #[test]
    fn what_is_kept_anyway_is_not_computed_early() {
        let f = sums(8);
        let insts = &f.block(Function::ENTRY).insts;
        // All that is loaded is needed after the block.
        let loaded = |v: Value| matches!(f.def_inst(v).map(|d| &d.op), Some(Op::Load(_)));
        assert!(find(&f, insts, loaded).at.is_empty());
        assert!(
            find(&sums(1), &sums(1).block(Function::ENTRY).insts, |_| false)
                .at
                .is_empty()
        );
    }

    /// Chains of products and sums, side by side, each of as many.
    fn chains(side_by_side: usize, long: usize) -> Function {
        let mut text = String::from("function \"chains\" simd 32 frame 4096\n\nbb0:\n");
        for n in 0..side_by_side {
            text.push_str(&format!(
                "  %{n}: <32 x f32> = input.payload[{}]\n",
                128 * n
            ));
        }
        for n in side_by_side..side_by_side * (1 + long) {
            let v = n - side_by_side;
            text.push_str(&format!("  %{n}: <32 x f32> = fma %{v}, %{v}, %{v}\n"));
        }
        for n in 0..side_by_side {
            let v = n + side_by_side * long;
            text.push_str(&format!("  framestore[{}] %{v}\n", 128 * n));
        }
        text.push_str("  return\n");
        crate::ssa::parse(&text).unwrap()
    }

    #[test]
    fn pieces_of_long_chains_are_interleaved() {
        let ends_of = |f: &Function| {
            let anchors = find(f, &f.block(Function::ENTRY).insts, |_| false);
            let mut ends: Vec<_> = anchors.at.into_iter().collect();
            ends.sort();
            ends
        };
        // Sixteen of them make a segment.
        let single = ends_of(&chains(1, 80));
        let expected: Vec<_> = (1..=5)
            .map(|n| (1 + 16 * n, vec![Value(16 * n as u32)]))
            .collect();
        assert_eq!(single, expected);
        let four = ends_of(&chains(4, 80));
        assert!(four.len() >= MIN_SEGMENTS, "{four:?}");
        assert!(four.iter().all(|(_, values)| values.len() == 4), "{four:?}");
        // A short chain; chains enough side by side to hide the latency.
        assert!(ends_of(&chains(1, 60)).is_empty());
        assert!(ends_of(&chains(8, 80)).is_empty());
    }

    #[test]
    fn chains_one_after_the_other_are_left_to_the_scheduler() {
        let in_turn = |number: usize| {
            let mut text = String::from("function \"in_turn\" simd 32 frame 4096\n\nbb0:\n");
            text.push_str("  %0: <32 x f32> = input.payload[0]\n");
            for n in 0..80 * number {
                let v = if n % 80 == 0 { 0 } else { n };
                text.push_str(&format!("  %{}: <32 x f32> = fma %{v}, %{v}, %0\n", n + 1));
            }
            for n in 1..=number {
                text.push_str(&format!("  framestore[{}] %{}\n", 128 * n, 80 * n));
            }
            text.push_str("  return\n");
            let f = crate::ssa::parse(&text).unwrap();
            find(&f, &f.block(Function::ENTRY).insts, |_| false)
        };
        let alone = in_turn(1);
        assert!(alone.segments && !alone.at.is_empty());
        let many = in_turn(6);
        assert!(!many.segments && many.at.is_empty(), "{many:?}");
    }
}
