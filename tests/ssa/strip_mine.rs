//! Random loops without memory, legal and illegal ones, mean the same when they run strip by strip.

use std::fmt::Write;
use visa_test_common::Rng;

use crate::observe::observe;
use visa_jit::passes::run_pass;
use visa_jit::ssa::{Function, parse, verify};

/// Writes the text of one function.
struct Text {
    rng: Rng,
    out: String,
    next: u32,
    lanes: u32,
}

impl Text {
    fn line(&mut self, ty: &str, op: &str) -> String {
        let v = format!("%{}", self.next);
        self.next += 1;
        let _ = writeln!(self.out, "  {v}: {ty} = {op}");
        v
    }

    fn vector(&self) -> String {
        format!("<{} x i32>", self.lanes)
    }

    fn mask(&self) -> String {
        format!("<{} x i1>", self.lanes)
    }

    fn constant(&mut self, lanes: &[u64]) -> String {
        let lanes: Vec<String> = lanes.iter().map(ToString::to_string).collect();
        let ty = self.vector();
        self.line(&ty, &format!("vconst [{}]", lanes.join(", ")))
    }

    /// A comparison or arithmetic of vectors in scope.
    fn compute(&mut self, vectors: &[String]) -> String {
        let (a, b) = (
            self.rng.pick(vectors).clone(),
            self.rng.pick(vectors).clone(),
        );
        let op = ["add", "sub", "mul", "xor", "and", "umin"][self.rng.below(6)];
        let ty = self.vector();
        self.line(&ty, &format!("{op} {a}, {b}"))
    }

    fn compare(&mut self, vectors: &[String]) -> String {
        let (a, b) = (
            self.rng.pick(vectors).clone(),
            self.rng.pick(vectors).clone(),
        );
        let op = ["icmp.ult", "icmp.sgt", "icmp.ne"][self.rng.below(3)];
        let ty = self.mask();
        self.line(&ty, &format!("{op} {a}, {b}"))
    }
}

/// A loop that lanes leave one by one, with a counter; `carried` vectors.
fn function(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let lanes = if rng.below(3) == 0 { 32 } else { 16 };
    let carried = 3 + rng.below(3);
    let mut t = Text {
        rng,
        out: format!(
            "function \"f\" simd {lanes} frame 64\nsite 0 = write surface 4 \"scatter\" line 1\n\nbb0:\n"
        ),
        next: 0,
        lanes,
    };
    let (vector, mask) = (t.vector(), t.mask());
    let em = t.line(&mask, "input.dispatchmask");
    let ids = t.line(&format!("<{lanes} x i16>"), "input.localids.x[0]");
    let ids = t.line(&vector, &format!("zext {ids}"));
    let spread: Vec<u64> = (0..u64::from(lanes)).map(|n| n * n % 7).collect();
    let spread = t.constant(&spread);
    let mut outside = vec![ids.clone(), spread];
    for _ in 0..carried {
        let v = t.compute(&outside);
        outside.push(v);
    }
    let zero = t.line("i32", "const 0");
    let starts = outside[outside.len() - carried..].join(", ");
    let _ = writeln!(t.out, "  jump bb1({em}, {starts}, {zero})");
    let exit_args = body(&mut t, carried, &outside, &vector, &mask);
    let _ = writeln!(t.out, "bb4({exit_args}):");
    let leaving: Vec<String> = exit_args
        .split(", ")
        .map(|p| p.split(':').next().unwrap_or_default().to_owned())
        .collect();
    let surface = t.line("i32", "const 0");
    let four = t.line("i32", "const 2");
    let at = t.line(&vector, &format!("shl {ids}, {four}"));
    let seen = if t.rng.below(2) == 0 {
        em
    } else {
        t.line(
            &mask,
            &format!("vconst [{}]", vec!["1"; lanes as usize].join(", ")),
        )
    };
    let mut sum = at.clone();
    for v in leaving {
        let three = t.line("i32", "const 3");
        let turned = t.line(&vector, &format!("rotl {sum}, {three}"));
        sum = t.line(&vector, &format!("xor {turned}, {v}"));
    }
    let _ = writeln!(
        t.out,
        "  store.surface.i32x1[0] {seen}, {at}, {surface}, {sum}\n  return"
    );
    t.out
}

/// Blocks 1 to 3: the loop. Returns the parameters of the exit.
fn body(t: &mut Text, carried: usize, outside: &[String], vector: &str, mask: &str) -> String {
    let first = t.next;
    t.next += carried as u32 + 2;
    let (em, counter) = (
        format!("%{first}"),
        format!("%{}", first + 1 + carried as u32),
    );
    let params: Vec<String> = (0..carried)
        .map(|n| format!("%{}", first + 1 + n as u32))
        .collect();
    let list: Vec<String> = params.iter().map(|p| format!("{p}: {vector}")).collect();
    let _ = writeln!(
        t.out,
        "bb1({em}: {mask}, {}, {counter}: i32):",
        list.join(", ")
    );
    let mut scope = [params.clone(), outside.to_vec()].concat();
    let count = t.line(vector, &format!("splat {counter}"));
    scope.push(count);
    let mut now = Vec::new();
    for p in &params {
        let new = t.compute(&scope);
        scope.push(new.clone());
        now.push(updated(t, &em, &new, p, &scope, mask));
    }
    let leave = t.compare(&scope);
    let stay = t.line(mask, &format!("not {leave}"));
    let rest = t.line(mask, &format!("and {em}, {stay}"));
    let any = t.line("i1", &format!("maskany {rest}"));
    let out = 1 + t.rng.below(carried);
    let _ = writeln!(t.out, "  branch {any}, bb2, bb4({})", now[..out].join(", "));
    let _ = writeln!(t.out, "bb2:");
    let one = t.line("i32", "const 1");
    let next = t.line("i32", &format!("add {counter}, {one}"));
    let limit = t.line("i32", "const 5");
    let more = t.line("i1", &format!("icmp.slt {next}, {limit}"));
    let mut later = now.clone();
    if t.rng.below(2) == 0 {
        for v in &mut later {
            let new = t.compute(&scope);
            *v = updated(t, &rest, &new, &v.clone(), &scope, mask);
        }
    }
    let _ = writeln!(
        t.out,
        "  branch {more}, bb3, bb4({})",
        later[..out].join(", ")
    );
    let _ = writeln!(
        t.out,
        "bb3:\n  poll\n  jump bb1({rest}, {}, {next})",
        later.join(", ")
    );
    let exits = (0..out).map(|_| {
        t.next += 1;
        format!("%{}: {vector}", t.next - 1)
    });
    exits.collect::<Vec<String>>().join(", ")
}

/// Mostly under the mask, now and then not: then lanes that left are changed by those that stay.
fn updated(t: &mut Text, em: &str, new: &str, old: &str, scope: &[String], mask: &str) -> String {
    let vector = t.vector();
    match t.rng.below(24) {
        0 => new.to_owned(),
        1 => {
            let other = t.compare(scope);
            t.line(&vector, &format!("select {other}, {new}, {old}"))
        }
        2..8 => {
            let some = t.compare(scope);
            let under = t.line(mask, &format!("and {some}, {em}"));
            t.line(&vector, &format!("select {under}, {new}, {old}"))
        }
        _ => t.line(&vector, &format!("select {em}, {new}, {old}")),
    }
}

fn parsed(seed: u64) -> Function {
    let text = function(seed);
    let f = parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    verify(&f).unwrap_or_else(|e| panic!("seed {seed}: {}\n{text}", e[0]));
    f
}

#[test]
fn loops_in_strips_keep_the_meaning() {
    let (mut cut, seeds) = (0, visa_test_common::share(1500, 16));
    for seed in 0..seeds {
        let before = parsed(seed);
        let mut after = before.clone();
        assert!(run_pass(&mut after, "strip-mine"));
        // Loops that stay whole are noted too.
        after.remarks.clear();
        if after == before {
            continue;
        }
        cut += 1;
        verify(&after).unwrap_or_else(|e| panic!("seed {seed}: {}\n{after}", e[0]));
        for s in 0..6 {
            assert!(
                observe(&before, s) == observe(&after, s),
                "seed {seed}, inputs {s}\n{before}\n{after}"
            );
        }
    }
    assert!(
        (seeds / 5..seeds * 14 / 15).contains(&cut),
        "{cut} of {seeds} loops cut"
    );
}
