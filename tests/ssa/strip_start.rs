//! Random functions whose starts may or may not run strip by strip mean the same when they do: with loads of lanes and of lists, branches and
//! loops that no lane decides, early exits, and what ends a start, such as stores and shuffles.

use std::collections::BTreeSet;
use std::fmt::Write;

use visa_jit::passes::pipeline::PASSES;
use visa_jit::passes::{PassOptions, optimize};
use visa_jit::ssa::{Function, Op, parse};
use visa_test_common::{Rng, share};

use crate::observe::observe;

/// Writes the text of one function.
struct Text {
    rng: Rng,
    out: String,
    next: u32,
    blocks: u32,
    lanes: u32,
    /// What is in scope.
    vectors: Vec<String>,
    scalars: Vec<String>,
    masks: Vec<String>,
    /// A mask, and a vector and a scalar that a branch left for code under it.
    last: Option<[String; 3]>,
}

impl Text {
    fn name(&mut self) -> String {
        self.next += 1;
        format!("%{}", self.next - 1)
    }

    fn block(&mut self) -> u32 {
        self.blocks += 1;
        self.blocks - 1
    }

    fn line(&mut self, lanes: u32, lane: &str, op: &str) -> String {
        let v = self.name();
        let ty = match lanes {
            1 => lane.to_owned(),
            _ => format!("<{lanes} x {lane}>"),
        };
        let _ = writeln!(self.out, "  {v}: {ty} = {op}");
        v
    }

    fn effect(&mut self, text: &str) {
        let _ = writeln!(self.out, "  {text}");
    }

    fn vector(&mut self) -> String {
        self.rng.pick(&self.vectors).clone()
    }

    fn scalar(&mut self) -> String {
        self.rng.pick(&self.scalars).clone()
    }

    fn mask(&mut self) -> String {
        self.rng.pick(&self.masks).clone()
    }

    fn number(&mut self, n: u32) -> String {
        self.line(1, "i32", &format!("const {n}"))
    }

    fn constant(&mut self, lane: impl Fn(u32, &mut Rng) -> u32) -> String {
        let lanes = (0..self.lanes).map(|n| lane(n, &mut self.rng).to_string());
        let lanes: Vec<String> = lanes.collect();
        let op = format!("vconst [{}]", lanes.join(", "));
        self.line(self.lanes, "i32", &op)
    }

    /// Offsets that are mostly inside of memory.
    fn address(&mut self) -> String {
        let (at, bits) = (self.vector(), self.constant(|_, _| 127));
        self.line(self.lanes, "i32", &format!("and {at}, {bits}"))
    }

    /// Something that a start may have.
    fn lane_wise(&mut self) {
        let n = self.lanes;
        let (a, b, m, s) = (self.vector(), self.vector(), self.mask(), self.scalar());
        let v = match self.rng.below(9) {
            0 | 1 => {
                let op = ["add", "sub", "mul", "xor", "umin"][self.rng.below(5)];
                self.line(n, "i32", &format!("{op} {a}, {b}"))
            }
            2 => self.line(n, "i32", &format!("splat {s}")),
            3 => {
                let m = match self.rng.below(2) {
                    0 => self.line(n, "i1", &format!("icmp.ult {a}, {b}")),
                    // Set in few lanes.
                    _ => {
                        let (ids, one) = (self.vectors[0].clone(), self.rng.word_below(n));
                        let one = self.constant(|_, _| one);
                        self.line(n, "i1", &format!("icmp.eq {ids}, {one}"))
                    }
                };
                self.masks.push(m);
                return;
            }
            4 => self.line(n, "i32", &format!("select {m}, {a}, {b}")),
            5 => {
                let (at, surface) = (self.address(), self.number(0));
                self.line(
                    n,
                    "i32",
                    &format!("load.surface.i32x1[0] {m}, {at}, {surface}"),
                )
            }
            6 => {
                let wide = self.line(n, "i64", &format!("zext {a}"));
                let other = self.line(n, "i64", &format!("zext {b}"));
                let product = self.line(n, "i64", &format!("mul {wide}, {other}"));
                self.line(n, "i32", &format!("trunc {product}"))
            }
            7 => {
                let [first, step] = [(); 2].map(|()| self.rng.word_below(9));
                let odd = self.rng.below(2) as u32;
                self.constant(|n, rng| first + step * n + odd * rng.word_below(3))
            }
            _ => {
                self.list();
                return;
            }
        };
        self.vectors.push(v);
    }

    /// Elements that are loaded for all lanes at once.
    fn list(&mut self) {
        let (always, surface) = (self.line(1, "i1", "const 1"), self.number(0));
        let at = self.scalar();
        let bits = self.number(63);
        let at = self.line(1, "i32", &format!("and {at}, {bits}"));
        let n = self.lanes;
        let op = format!("blockload.surface.i32x{n}[0] {always}, {at}, {surface}");
        let list = self.line(n, "i32", &op);
        let element = self.rng.below(n as usize);
        let element = self.line(1, "i32", &format!("extractlane[{element}] {list}"));
        self.scalars.push(element);
        if self.rng.below(8) == 0 {
            self.vectors.push(list);
        }
    }

    /// Something that ends a start.
    fn other(&mut self) {
        let (v, m) = (self.vector(), self.mask());
        match self.rng.below(4) {
            0 => {
                let (at, surface) = (self.address(), self.number(0));
                self.effect(&format!("store.surface.i32x1[1] {m}, {at}, {surface}, {v}"));
            }
            1 => {
                let (always, s) = (self.line(1, "i1", "const 1"), self.scalar());
                let (at, surface) = (self.number(8), self.number(0));
                self.effect(&format!(
                    "blockstore.surface.i32x1[1] {always}, {at}, {surface}, {s}"
                ));
            }
            2 => {
                let turned: Vec<String> = (0..self.lanes)
                    .map(|n| ((n + 1) % self.lanes).to_string())
                    .collect();
                let op = format!("shuffle[{}] {v}", turned.join(", "));
                let v = self.line(self.lanes, "i32", &op);
                self.vectors.push(v);
            }
            _ => {
                let (always, at) = (self.line(1, "i1", "const 1"), self.number(0));
                let v = self.line(
                    self.lanes,
                    "i32",
                    &format!("blockload.regs.i32x{}[0] {always}, {at}", self.lanes),
                );
                self.vectors.push(v);
            }
        }
    }

    fn steps(&mut self, n: usize, other: usize) {
        for _ in 0..n {
            match self.rng.below(other) {
                0 => self.other(),
                _ => self.lane_wise(),
            }
        }
    }

    /// A branch on a scalar, or on a mask; one way computes more.
    fn branch(&mut self, other: usize) {
        if self.rng.below(3) > 0 {
            let old = [self.vector(), self.scalar(), self.mask()];
            return self.branch_on_mask(other, 2, old);
        }
        let (then, join) = (self.block(), self.block());
        let (old, old_scalar) = (self.vector(), self.scalar());
        let [a, b] = [self.scalar(), self.scalar()];
        let cond = self.line(1, "i1", &format!("icmp.slt {a}, {b}"));
        self.effect(&format!(
            "branch {cond}, bb{then}, bb{join}({old}, {old_scalar})"
        ));
        let scope = self.scope();
        let _ = writeln!(self.out, "bb{then}:");
        self.steps(3, other);
        let (new, new_scalar) = (self.vector(), self.scalar());
        self.effect(&format!("jump bb{join}({new}, {new_scalar})"));
        self.leave(scope);
        self.join(join);
    }

    fn scope(&self) -> [Vec<String>; 3] {
        [&self.vectors, &self.scalars, &self.masks].map(Vec::clone)
    }

    fn leave(&mut self, scope: [Vec<String>; 3]) {
        [self.vectors, self.scalars, self.masks] = scope;
        self.last = None;
    }

    fn mask_line(&mut self, op: &str) -> String {
        self.line(self.lanes, "i1", op)
    }

    /// A vector that is `new` in lanes of a mask, or mostly so, or everywhere.
    fn merged(&mut self, m: &str, new: &str, old: &str) -> String {
        let other = self.mask();
        let m = match self.rng.below(12) {
            0 => return new.to_owned(),
            1 => other,
            2 => self.mask_line(&format!("and {m}, {other}")),
            _ => m.to_owned(),
        };
        self.line(self.lanes, "i32", &format!("select {m}, {new}, {old}"))
    }

    /// Jumps to `join` or goes on in a new block where a mask has no lane, or where it has all, and gives the mask of what the code that is jumped over is for.
    fn jump_over(&mut self, m: String, join: &str) -> String {
        let then = self.block();
        let inner = if self.rng.below(2) == 0 {
            let cond = self.line(1, "i1", &format!("maskany {m}"));
            self.effect(&format!("branch {cond}, bb{then}, {join}"));
            m
        } else {
            let inner = self.mask_line(&format!("not {m}"));
            let cond = self.line(1, "i1", &format!("maskall {m}"));
            self.effect(&format!("branch {cond}, {join}, bb{then}"));
            inner
        };
        let _ = writeln!(self.out, "bb{then}:");
        self.masks.push(inner.clone());
        inner
    }

    /// A vector, a scalar and a mask that code for lanes of a mask leaves.
    fn left(&mut self, inner: &str, old: &str) -> [String; 3] {
        let (new, scalar, m) = (self.vector(), self.scalar(), self.mask());
        let new = self.merged(inner, &new, old);
        let part = match self.rng.below(4) {
            0 => m,
            1 => inner.to_owned(),
            _ => self.mask_line(&format!("and {m}, {inner}")),
        };
        [new, scalar, part]
    }

    /// A branch that jumps over code for lanes of a mask. What the code leaves is a vector, a scalar and a mask, which mostly code under the same mask reads
    /// only, as compilers of kernels have it.
    fn branch_on_mask(&mut self, other: usize, depth: usize, old: [String; 3]) {
        let (join, n) = (self.block(), self.lanes);
        let [old, old_scalar, m] = old;
        let none = self.mask_line("vconst [0 ...]");
        let to_join = format!("bb{join}({old}, {old_scalar}, {none})");
        let scope = self.scope();
        let inner = self.jump_over(m, &to_join);
        self.steps(3, other);
        if depth > 0 && self.rng.below(4) == 0 {
            let old = [self.vector(), self.scalar(), self.mask()];
            self.branch_on_mask(other, depth - 1, old);
        }
        let mut left = self.left(&inner, &old);
        // To the same block from further inside.
        let mut inmost = inner.clone();
        if self.rng.below(3) == 0 {
            let m = self.mask_line(&format!("and {inner}, {}", left[2]));
            inmost = self.jump_over(m, &format!("bb{join}({})", left.join(", ")));
            self.steps(2, other);
            left = self.left(&inmost, &left[0]);
        }
        self.effect(&format!("jump bb{join}({})", left.join(", ")));
        self.leave(scope);
        let [v, s, part] = [(); 3].map(|()| self.name());
        let _ = writeln!(
            self.out,
            "bb{join}({v}: <{n} x i32>, {s}: i32, {part}: <{n} x i1>):"
        );
        if self.rng.below(6) == 0 {
            self.vectors.push(v.clone());
            self.scalars.push(s.clone());
        }
        self.masks.push(part.clone());
        let under = match inmost == inner && self.rng.below(2) == 0 {
            true => inner,
            false => part.clone(),
        };
        if depth > 0 && self.rng.below(3) == 0 {
            return self.branch_on_mask(other, depth - 1, [v, s, part]);
        }
        let from = self.vector();
        let splat = self.line(n, "i32", &format!("splat {s}"));
        let read = match self.rng.below(3) {
            0 => self.line(n, "i32", &format!("add {v}, {splat}")),
            1 => v,
            _ => splat,
        };
        let merged = self.merged(&under, &read, &from);
        self.vectors.push(merged);
        self.last = Some([part, read, s]);
    }

    /// A loop that runs a few times.
    fn repeat(&mut self, other: usize) {
        let (body, exit) = (self.block(), self.block());
        let (start, zero) = (self.vector(), self.number(0));
        self.effect(&format!("jump bb{body}({start}, {zero})"));
        let scope = self.scope();
        self.join(body);
        let count = self.scalars[self.scalars.len() - 1].clone();
        self.steps(4, other);
        if self.rng.below(3) == 0 {
            let old = [self.vector(), self.scalar(), self.mask()];
            self.branch_on_mask(other, 1, old);
        }
        let (one, most) = (self.number(1), self.number(3));
        let next = self.line(1, "i32", &format!("add {count}, {one}"));
        let more = self.line(1, "i1", &format!("icmp.ult {next}, {most}"));
        let (v, s) = (self.vector(), self.scalar());
        self.effect(&format!(
            "branch {more}, bb{body}({v}, {next}), bb{exit}({v}, {s})"
        ));
        self.leave(scope);
        self.join(exit);
    }

    /// Begins a block with a vector and a scalar.
    fn join(&mut self, block: u32) {
        let (v, s, n) = (self.name(), self.name(), self.lanes);
        let _ = writeln!(self.out, "bb{block}({v}: <{n} x i32>, {s}: i32):");
        self.vectors.push(v);
        self.scalars.push(s);
    }
}

fn function(seed: u64) -> Function {
    let mut rng = Rng::new(seed);
    let lanes = *rng.pick(&[16, 32]);
    let mut t = Text {
        rng,
        out: String::new(),
        next: 0,
        blocks: 2,
        lanes,
        vectors: Vec::new(),
        scalars: Vec::new(),
        masks: Vec::new(),
        last: None,
    };
    let _ = writeln!(
        t.out,
        "function \"random\" simd {lanes} regs 1024 frame 1024\nsite 0 = read surface 4 \"gather\" line 1\nsite 1 = write surface 4 \"scatter\" line 2\n\nbb0:"
    );
    let dispatched = t.line(lanes, "i1", "input.dispatchmask");
    let ids = t.line(lanes, "i16", "input.localids.x[0]");
    let ids = t.line(lanes, "i32", &format!("zext {ids}"));
    let scalars = [0, 4, 8].map(|at| t.line(1, "i32", &format!("input.payload[{at}]")));
    (t.masks, t.vectors, t.scalars) = (vec![dispatched], vec![ids], scalars.into());
    // How rare it is that a start ends.
    let other = *t.rng.pick(&[10, 40, 1000]);
    if t.rng.below(3) == 0 {
        let (a, b) = (t.scalar(), t.scalar());
        let leaves = t.line(1, "i1", &format!("icmp.ult {a}, {b}"));
        let next = t.block();
        t.effect(&format!("branch {leaves}, bb1, bb{next}"));
        let _ = writeln!(t.out, "bb{next}:");
    }
    for _ in 0..3 {
        t.steps(4, other);
        match t.rng.below(4) {
            0 | 1 => t.branch(other),
            2 => t.repeat(other),
            _ => {}
        }
    }
    t.steps(2, 3);
    if let Some([m, v, s]) = t.last.clone() {
        let v = match t.rng.below(2) {
            0 => v,
            _ => t.line(lanes, "i32", &format!("splat {s}")),
        };
        let (at, surface) = (t.address(), t.number(0));
        t.effect(&format!("store.surface.i32x1[1] {m}, {at}, {surface}, {v}"));
    }
    let always = t.line(1, "i1", "const 1");
    for (n, v) in t.vectors.clone().into_iter().rev().take(6).enumerate() {
        let at = t.number(n as u32 * 128);
        t.effect(&format!(
            "blockstore.regs.i32x{lanes}[1] {always}, {at}, {v}"
        ));
    }
    let m = t.mask();
    let bits = t.line(1, "i32", &format!("masktobits {m}"));
    let at = t.number(900);
    let (s, at_scalar) = (t.scalar(), t.number(904));
    t.effect(&format!("blockstore.regs.i32x1[1] {always}, {at}, {bits}"));
    t.effect(&format!(
        "blockstore.regs.i32x1[1] {always}, {at_scalar}, {s}"
    ));
    t.effect("jump bb1");
    let _ = writeln!(t.out, "bb1:\n  return");
    parse(&t.out).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", t.out))
}

/// True if strips branch on masks.
fn branches_on_masks(f: &Function) -> bool {
    let mut conditions = f.order.iter().filter_map(|&b| f.block(b).term.condition());
    conditions.any(|v| {
        let data = f
            .def_inst(v)
            .filter(|data| matches!(data.op, Op::MaskAny | Op::MaskAll));
        data.is_some_and(|data| f.ty(data.args[0]).lanes < f.simd)
    })
}

#[test]
fn random_starts_keep_the_meaning() {
    let others = PASSES.iter().map(|&(name, _)| name);
    let others: BTreeSet<_> = others.filter(|&name| name != "strip-start").collect();
    let (seeds, mut cut, mut on_masks) = (share(20_000, 50), [0, 0], 0);
    for seed in 0..seeds {
        let f = function(seed);
        for (n, disabled) in [others.clone(), BTreeSet::new()].into_iter().enumerate() {
            let options = PassOptions {
                always_strip: true,
                disabled,
                ..PassOptions::default()
            };
            let mut g = f.clone();
            let stats = optimize(&mut g, &options);
            let stats = stats.unwrap_or_else(|e| panic!("seed {seed}: {e}\n{f}"));
            let starts = stats.iter().filter(|s| s.name == "strip-start");
            cut[n] += starts.map(|s| s.changes as u64).sum::<u64>();
            on_masks += u64::from(n == 0 && branches_on_masks(&g));
            for s in [seed, seed + 1] {
                assert!(observe(&f, s) == observe(&g, s), "seed {seed}\n{f}\n{g}");
            }
        }
    }
    assert!(cut.iter().all(|&n| n > seeds / 2), "{cut:?} of {seeds}");
    assert!(on_masks > seeds / 10, "{on_masks} of {seeds}");
}
