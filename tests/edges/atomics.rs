//! Atomics: `dword_atomic`, `svm_atomic`, `lsc_atomic_*`.

use half::f16;
use visa_jit::isa::Platform;

use super::kernel::{Guard, Reach, Shape};
use super::layout::{Start, begin};
use super::legacy::{ALL, Lanes, surface};
use super::lsc::address;
use super::machine::{Case, Machine, Space, source};
use super::rig::{Effort, Rig};

/// An operation: legacy name, LSC name, sources, what it stores (old value, first and second source as the
/// legacy message has them, bytes).
pub struct Operation {
    pub legacy: &'static str,
    lsc: &'static str,
    pub sources: usize,
    new: fn(u64, u64, u64, u32) -> u64,
}

fn signed(v: u64, bytes: u32) -> i64 {
    let shift = 64 - 8 * bytes;
    (v << shift) as i64 >> shift
}

fn float(op: fn(f64, f64) -> f64, a: u64, b: u64, bytes: u32) -> u64 {
    if bytes == 8 {
        op(f64::from_bits(a), f64::from_bits(b)).to_bits()
    } else if bytes == 2 {
        let [a, b] = [a, b].map(|v| f16::from_bits(v as u16).to_f64());
        u64::from(f16::from_f64(op(a, b)).to_bits())
    } else {
        // One rounding: sums of two singles are rounded correctly by way of a double.
        let (a, b) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        u64::from((op(f64::from(a), f64::from(b)) as f32).to_bits())
    }
}

const fn op(
    legacy: &'static str,
    lsc: &'static str,
    sources: usize,
    new: fn(u64, u64, u64, u32) -> u64,
) -> Operation {
    Operation {
        legacy,
        lsc,
        sources,
        new,
    }
}

/// Legacy `cmpxchg` names the new value first, `fcmpwr` the value to compare with; LSC always the latter.
pub const OPERATIONS: [Operation; 21] = [
    op("add", "iadd", 1, |o, a, _, _| o.wrapping_add(a)),
    op("sub", "isub", 1, |o, a, _, _| o.wrapping_sub(a)),
    op("inc", "iinc", 0, |o, _, _, _| o.wrapping_add(1)),
    op("dec", "idec", 0, |o, _, _, _| o.wrapping_sub(1)),
    op("predec", "", 0, |o, _, _, _| o.wrapping_sub(1)),
    op("min", "umin", 1, |o, a, _, _| o.min(a)),
    op("max", "umax", 1, |o, a, _, _| o.max(a)),
    op("minsint", "smin", 1, |o, a, _, n| {
        signed(o, n).min(signed(a, n)) as u64
    }),
    op("maxsint", "smax", 1, |o, a, _, n| {
        signed(o, n).max(signed(a, n)) as u64
    }),
    op("xchg", "store", 1, |_, a, _, _| a),
    op("cmpxchg", "", 2, |o, a, b, _| if o == b { a } else { o }),
    op("", "icas", 2, |o, a, b, _| if o == a { b } else { o }),
    op("and", "and", 1, |o, a, _, _| o & a),
    op("or", "or", 1, |o, a, _, _| o | a),
    op("xor", "xor", 1, |o, a, _, _| o ^ a),
    op("", "load", 0, |o, _, _, _| o),
    op("fmax", "fmax", 1, |o, a, _, n| float(f64::max, o, a, n)),
    op("fmin", "fmin", 1, |o, a, _, n| float(f64::min, o, a, n)),
    op("fcmpwr", "fcas", 2, |o, a, b, _| if o == a { b } else { o }),
    op("fadd", "fadd", 1, |o, a, _, n| float(|x, y| x + y, o, a, n)),
    op("fsub", "fsub", 1, |o, a, _, n| float(|x, y| x - y, o, a, n)),
];

/// Where the element of a lane is: the address rounded down.
fn element(start: Start, bytes: u32, case: &Case, m: &Machine, lane: u32) -> (u64, u64) {
    let at = begin(start, m.space, case, lane as usize);
    let base = if m.space == Space::Flat { m.base } else { 0 };
    let offset = at.wrapping_sub(base);
    (at, base.wrapping_add(offset & !u64::from(bytes - 1)))
}

#[allow(
    clippy::too_many_arguments,
    reason = "a table row of facts about one message"
)]
pub fn atomic(
    platform: Platform,
    l: Lanes,
    space: Space,
    text: String,
    opcode: &str,
    o: &'static Operation,
    bytes: u32,
    immediate: i64,
) -> Shape {
    let slot = bytes.max(4);
    let start = if opcode.starts_with("lsc") || space == Space::Flat {
        Start::Lsc(immediate)
    } else {
        Start::Bytes
    };
    let returns = !text.contains("%null:") && !text.contains("%null.0 // none");
    let model = move |case: &Case, m: &mut Machine| {
        for lane in 0..case.offsets.len() as u32 {
            if !m.on(lane) {
                continue;
            }
            let (at, aligned) = element(start, bytes, case, m, lane);
            let mask = u64::MAX >> (64 - 8 * bytes);
            let a = source(&case.sources[0], lane, slot) & mask;
            let b = source(&case.sources[1], lane, slot) & mask;
            let mut back = 0;
            m.change((0, lane, at), aligned, bytes, |old| {
                let new = (o.new)(old, a, b, bytes) & mask;
                back = if o.legacy == "predec" { new } else { old };
                new
            });
            if returns {
                m.set(lane * slot, slot, back);
            }
        }
    };
    let adjust = move |case: &mut Case, m: &Machine, random: u64| {
        // Half of the lanes of a compare-and-exchange find what they expect.
        if o.sources < 2 {
            return;
        }
        let which = usize::from(o.legacy == "cmpxchg");
        for lane in 0..case.offsets.len() as u32 {
            let (_, aligned) = element(start, bytes, case, m, lane);
            if random >> lane & 1 != 0 {
                let v = m.clone().load((0, lane, 0), aligned, bytes);
                let at = (lane * slot) as usize;
                case.sources[which][at..at + bytes as usize]
                    .copy_from_slice(&v.to_le_bytes()[..bytes as usize]);
            }
        }
    };
    Shape {
        platform,
        simd: l.simd,
        first: l.first,
        lanes: l.lanes,
        no_mask: l.no_mask,
        guard: l.guard,
        text,
        opcode: opcode.into(),
        space,
        access: "atomic",
        offset_bytes: if space == Space::Flat { 8 } else { 4 },
        data_bytes: l.lanes.max(16) * slot,
        model: Box::new(model),
        reach: Reach {
            bytes: u64::from(bytes),
            overlap: true,
            immediate,
            ..Reach::default()
        },
        floats: o.legacy.starts_with('f'),
        adjust: Some(Box::new(adjust)),
        stride: None,
    }
}

/// Source operands in text.
fn sources(o: &Operation, dot: &str) -> [String; 2] {
    let name = |i: usize| {
        if i < o.sources {
            format!("SRC{i}{dot}")
        } else {
            format!("%null{dot}")
        }
    };
    [name(0), name(1)]
}

/// An operand as a variable of the type that `dword_atomic` takes.
fn typed(o: &Operation, bytes: u32, operand: &str) -> String {
    let suffix = match o.legacy {
        _ if bytes == 2 || operand.starts_with('%') => "",
        "minsint" | "maxsint" => "_d",
        name if name.starts_with('f') => "_f",
        _ => "",
    };
    operand.replace(".0", &format!("{suffix}.0"))
}

fn width(bytes: u32) -> &'static str {
    match bytes {
        2 => ".16",
        4 => "",
        _ => ".64",
    }
}

/// A message of each kind, with operations of none, one and two operands.
pub fn of_lanes(l: Lanes) -> Vec<Shape> {
    let mut out = Vec::new();
    for o in OPERATIONS
        .iter()
        .filter(|o| matches!(o.legacy, "inc" | "add" | "fcmpwr"))
    {
        let [a, b] = sources(o, ".0");
        let s = Space::Surface;
        let [x, y, data] = [&a, &b, "DATA.0"].map(|v| typed(o, 4, v));
        let text = format!("dword_atomic.{} {{x}} T6 OFF.0 {x} {y} {data}", o.legacy);
        out.push(atomic(Platform::Skl, l, s, text, "dword_atomic", o, 4, 0));
        let text = format!("svm_atomic.{} {{x}} OFF.0 DATA.0 {a} {b}", o.legacy);
        out.push(atomic(
            Platform::Pvc,
            l,
            Space::Flat,
            text,
            "svm_atomic",
            o,
            4,
            0,
        ));
        let [a, b] = sources(o, "");
        let opcode = format!("lsc_atomic_{}", o.lsc);
        for space in [Space::Surface, Space::Slm, Space::Scratch, Space::Flat] {
            let offset = if space == Space::Flat { 8 } else { 4 };
            let (unit, at) = address(space, offset, 0, "");
            let text = format!("{opcode}.{unit} {{x}} DATA:d32 {at} {a} {b}");
            out.push(atomic(Platform::Dg2, l, space, text, &opcode, o, 4, 0));
        }
    }
    out
}

const LESS: Effort = Effort {
    policies: false,
    ..ALL
};

pub fn all(rig: &mut Rig) {
    for (n, o) in OPERATIONS.iter().enumerate() {
        let guard = [Guard::Flow, Guard::Predicate][n % 2];
        let effort = if n % 3 == 0 { ALL } else { LESS };
        let eight = Lanes::new(16, 8 * (n as u32 % 2), 8, guard);
        let sixteen = Lanes::new(32, 16 * (n as u32 % 2), 16, guard);
        if !o.legacy.is_empty() {
            for bytes in [2, 4, 8] {
                let (name, w) = (o.legacy, width(bytes));
                let [a, b] = sources(o, ".0");
                if bytes < 8 {
                    for space in [Space::Surface, Space::Slm, Space::Scratch] {
                        let l = if space == Space::Slm { sixteen } else { eight };
                        let s = surface(space);
                        let [a, b, data] = [&a, &b, "DATA.0"].map(|v| typed(o, bytes, v));
                        let text = format!("dword_atomic.{name}{w} {{x}} {s} OFF.0 {a} {b} {data}");
                        rig.run(
                            &atomic(Platform::Skl, l, space, text, "dword_atomic", o, bytes, 0),
                            effort,
                        );
                    }
                }
                let text = format!("svm_atomic.{name}{w} {{x}} OFF.0 DATA.0 {a} {b}");
                rig.run(
                    &atomic(
                        Platform::Pvc,
                        eight,
                        Space::Flat,
                        text,
                        "svm_atomic",
                        o,
                        bytes,
                        0,
                    ),
                    effort,
                );
            }
        }
        if !o.lsc.is_empty() {
            for bytes in [2, 4, 8] {
                let (name, data) = (o.lsc, ["d16c32", "d32", "d64"][bytes as usize / 4]);
                let [a, b] = sources(o, "");
                for (space, immediate) in [
                    (Space::Surface, 0),
                    (Space::Slm, 16),
                    (Space::Flat, -16),
                    (Space::Scratch, 8),
                ] {
                    let offset = if space == Space::Flat { 8 } else { 4 };
                    let (unit, at) = address(space, offset, immediate, "");
                    let text = format!("lsc_atomic_{name}.{unit} {{x}} DATA:{data} {at} {a} {b}");
                    rig.run(
                        &atomic(
                            Platform::Dg2,
                            sixteen,
                            space,
                            text,
                            &format!("lsc_atomic_{}", o.lsc),
                            o,
                            bytes,
                            immediate,
                        ),
                        effort,
                    );
                }
            }
        }
    }
    // No result wanted.
    let o = &OPERATIONS[0];
    let l = Lanes::new(16, 0, 16, Guard::Flow);
    let text = "lsc_atomic_iadd.ugm {x} %null:d32 flat[OFF]:a64 SRC0 %null".to_owned();
    rig.run(
        &atomic(
            Platform::Pvc,
            l,
            Space::Flat,
            text,
            &format!("lsc_atomic_{}", o.lsc),
            o,
            4,
            0,
        ),
        ALL,
    );
}

#[test]
fn atomics() {
    let mut rig = Rig::new(5);
    all(&mut rig);
    rig.finish("atomics");
}
