//! Random loops, legal and illegal ones, mean the same when they run strip by strip, or when their last lanes run one by one. The latter load.

use std::fmt::Write;
use visa_test_common::{Rng, share};

use crate::observe::observe;
use visa_jit::passes::run_pass;
use visa_jit::ssa::{Function, parse, verify};

/// Writes the text of one function.
struct Text {
    rng: Rng,
    out: String,
    next: u32,
    lanes: u32,
    /// Whether the loop loads.
    loads: bool,
}

impl Text {
    fn line(&mut self, ty: &str, op: &str) -> String {
        let v = format!("%{}", self.next);
        self.next += 1;
        let _ = writeln!(self.out, "  {v}: {ty} = {op}");
        v
    }

    fn vector(&self) -> String {
        self.lanes_of("i32")
    }

    fn mask(&self) -> String {
        self.lanes_of("i1")
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

    /// What a lane loads from an address that is mostly inside of memory, in one of two words.
    fn load(&mut self, mask: &str, vectors: &[String]) -> String {
        let at = self.rng.pick(vectors).clone();
        let ty = self.vector();
        let bits = [255, 65535, 31][self.rng.below(3)];
        let bits = self.constant(&vec![bits; self.lanes as usize]);
        let at = self.line(&ty, &format!("and {at}, {bits}"));
        let surface = self.line("i32", "const 0");
        if self.rng.below(2) == 0 {
            return self.line(
                &ty,
                &format!("load.surface.i32x1[1] {mask}, {at}, {surface}"),
            );
        }
        let (a, b) = (self.next, self.next + 1);
        self.next += 2;
        let _ = writeln!(
            self.out,
            "  %{a}: {ty}, %{b}: {ty} = load.surface.i32x2[1] {mask}, {at}, {surface}"
        );
        format!("%{}", if self.rng.below(2) == 0 { a } else { b })
    }

    /// The value as a lane of this type, in which it is carried around the loop.
    fn packed(&mut self, v: &str, lane: &str) -> String {
        let op = match lane {
            "i32" => return v.to_owned(),
            "f32" => "bitcast",
            "i64" => "sext",
            _ => "trunc",
        };
        self.line(&self.lanes_of(lane), &format!("{op} {v}"))
    }

    /// The other way round.
    fn unpacked(&mut self, v: &str, lane: &str) -> String {
        let op = match lane {
            "i32" => return v.to_owned(),
            "f32" => "bitcast",
            "i64" => "trunc",
            _ => "zext",
        };
        self.line(&self.vector(), &format!("{op} {v}"))
    }

    fn lanes_of(&self, lane: &str) -> String {
        format!("<{} x {lane}>", self.lanes)
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

/// A loop that lanes leave one by one, with a counter, and several vectors that it carries.
fn function(seed: u64, loads: bool) -> String {
    let mut rng = Rng::new(seed);
    let lanes = if rng.below(3) == 0 { 32 } else { 16 };
    let carried = 3 + rng.below(3);
    let kinds: Vec<&str> = (0..carried)
        .map(|_| match loads {
            true => ["i32", "f32", "i16", "i64", "i1"][rng.below(5)],
            false => "i32",
        })
        .collect();
    let frame = if loads { 0 } else { 64 };
    let mut t = Text {
        rng,
        out: format!(
            "function \"f\" simd {lanes} frame {frame}\nsite 0 = write surface 4 \"scatter\" line 1\n\
             site 1 = read surface 4 \"gather\" line 2\n\nbb0:\n"
        ),
        next: 0,
        lanes,
        loads,
    };
    let (vector, mask) = (t.vector(), t.mask());
    let em = t.line(&mask, "input.dispatchmask");
    let ids = t.line(&format!("<{lanes} x i16>"), "input.localids.x[0]");
    let ids = t.line(&vector, &format!("zext {ids}"));
    let spread: Vec<u64> = (0..u64::from(lanes)).map(|n| n * n % 7).collect();
    let spread = t.constant(&spread);
    let mut outside = vec![ids.clone(), spread];
    if loads {
        outside[1] = t.load(&em, &outside);
    }
    for _ in 0..carried {
        let v = t.compute(&outside);
        outside.push(v);
    }
    let zero = t.line("i32", "const 0");
    let starts = outside[outside.len() - carried..].iter().zip(&kinds);
    let starts: Vec<String> = starts.map(|(v, kind)| t.packed(v, kind)).collect();
    let _ = writeln!(t.out, "  jump bb1({em}, {}, {zero})", starts.join(", "));
    let exit_args = body(&mut t, &kinds, &outside, &mask);
    let _ = writeln!(t.out, "bb4({exit_args}):");
    let leaving: Vec<String> = exit_args
        .split(", ")
        .zip(&kinds)
        .map(|(p, kind)| t.unpacked(p.split(':').next().unwrap_or_default(), kind))
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
fn body(t: &mut Text, kinds: &[&str], outside: &[String], mask: &str) -> String {
    let (carried, vector) = (kinds.len(), t.vector());
    let first = t.next;
    t.next += carried as u32 + 2;
    let (em, counter) = (
        format!("%{first}"),
        format!("%{}", first + 1 + carried as u32),
    );
    let params: Vec<String> = (0..carried)
        .map(|n| format!("%{}", first + 1 + n as u32))
        .collect();
    let list = params.iter().zip(kinds);
    let list: Vec<String> = list
        .map(|(p, kind)| format!("{p}: {}", t.lanes_of(kind)))
        .collect();
    let _ = writeln!(
        t.out,
        "bb1({em}: {mask}, {}, {counter}: i32):",
        list.join(", ")
    );
    let mut scope: Vec<String> = params
        .iter()
        .zip(kinds)
        .map(|(p, kind)| t.unpacked(p, kind))
        .collect();
    scope.extend_from_slice(outside);
    let count = t.line(&vector, &format!("splat {counter}"));
    scope.push(count);
    let mut now = Vec::new();
    for (p, kind) in params.iter().zip(kinds) {
        let new = match t.loads && t.rng.below(2) == 0 {
            true => t.load(&em, &scope),
            false => t.compute(&scope),
        };
        scope.push(new.clone());
        now.push(updated(t, &em, (&new, p, kind), &scope, mask));
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
        for (v, kind) in later.iter_mut().zip(kinds) {
            let new = t.compute(&scope);
            *v = updated(t, &rest, (&new, &v.clone(), kind), &scope, mask);
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
    let exits = kinds[..out].iter().map(|kind| {
        t.next += 1;
        format!("%{}: {}", t.next - 1, t.lanes_of(kind))
    });
    exits.collect::<Vec<String>>().join(", ")
}

/// Mostly under the mask, now and then not: then lanes that left are changed by those that stay. A mask gets lanes.
fn updated(
    t: &mut Text,
    em: &str,
    (new, old, kind): (&str, &str, &str),
    scope: &[String],
    mask: &str,
) -> String {
    let ty = t.lanes_of(kind);
    let new = t.packed(new, kind);
    let under = match t.rng.below(24) {
        0 => return new,
        1 => t.compare(scope),
        2..8 => {
            let some = t.compare(scope);
            t.line(mask, &format!("and {some}, {em}"))
        }
        _ => em.to_owned(),
    };
    if kind == "i1" && t.rng.below(2) == 0 {
        let added = t.line(mask, &format!("and {new}, {under}"));
        return t.line(mask, &format!("or {added}, {old}"));
    }
    t.line(&ty, &format!("select {under}, {new}, {old}"))
}

fn parsed(seed: u64, loads: bool) -> Function {
    let text = function(seed, loads);
    let f = parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    verify(&f).unwrap_or_else(|e| panic!("seed {seed}: {}\n{text}", e[0]));
    f
}

/// Whatever a pass changes means the same; returns how many it changed of how many.
fn changed_by(pass: &str, loads: bool, seeds: u64) -> (u64, u64) {
    let mut changed = 0;
    for seed in 0..seeds {
        let before = parsed(seed, loads);
        let mut after = before.clone();
        assert!(run_pass(&mut after, pass));
        // Loops that stay as they are are noted too.
        after.remarks.clear();
        if after == before {
            continue;
        }
        changed += 1;
        verify(&after).unwrap_or_else(|e| panic!("seed {seed}: {}\n{after}", e[0]));
        for s in 0..6 {
            assert!(
                observe(&before, s) == observe(&after, s),
                "seed {seed}, inputs {s}\n{before}\n{after}"
            );
        }
    }
    (changed, seeds)
}

#[test]
fn loops_in_strips_keep_the_meaning() {
    let (cut, seeds) = changed_by("strip-mine", false, share(1500, 16));
    assert!(
        (seeds / 5..seeds * 14 / 15).contains(&cut),
        "{cut} of {seeds} loops cut"
    );
}

#[test]
fn last_lanes_one_by_one_keep_the_meaning() {
    let (changed, seeds) = changed_by("scalar-tails", true, share(6000, 8));
    assert!(
        (seeds / 5..seeds * 14 / 15).contains(&changed),
        "{changed} of {seeds} loops got a tail"
    );
}
