//! Which accesses are by scaled 32-bit numbers.

use super::tests::{ANY, PARTS, WHOLE, one, others, plan, steps, versions, with};
use super::*;
use crate::backend::Gather;
use crate::ssa::{Lane, Ty, Value};

#[test]
fn scaled_numbers_in_device_memory_are_gathered_by_them() {
    const NUMBERS: &str = "  %10: <16 x i64> = sext %3\n  %11: <16 x i64> = shl %10, %9\n  %12: <16 x i64> = splat %8\n  \
                           %13: <16 x i64> = add %11, %12\n";
    let of = |access: &str, limits: &Limits| {
        let body = format!("  %9: i32 = const 2\n{NUMBERS}{access}");
        one(&body, ANY, limits)
    };
    let scaled = Scaled {
        base: Value(8),
        distance: 0,
        index: Value(3),
        shift: 2,
        signed: true,
    };
    let by = |pairs| How::Any(Any::GatherScaled { scaled, pairs });
    let load = "  %14: <16 x i32> = load.flat.i32x1[0] %1, %13\n";
    assert_eq!(of(load, &PARTS), by(false));
    assert_eq!(of("  store.flat.i32x1[0] %1, %13, %3\n", &PARTS), by(false));
    let two = "  %14: <16 x i32>, %15: <16 x i32> = load.flat.i32x2[0] %1, %13\n";
    assert_eq!(of(two, &PARTS), by(true));
    // Elements of one or two bytes are gathered in words, by the same numbers.
    for lane in ["i8", "i16"] {
        let narrow = format!("  %14: <16 x {lane}> = load.flat.{lane}x1[0] %1, %13\n");
        assert_eq!(of(&narrow, &PARTS), by(false), "{lane}");
        let call = with(&PARTS, |l| l.gather = Gather::Call);
        assert_eq!(of(&narrow, &call), How::Any(Any::Message), "{lane}");
    }
    let stored = "  %14: <16 x i8> = trunc %3\n  store.flat.i8x1[0] %1, %13, %14\n";
    let none = with(&PARTS, |l| l.masked_stores = MaskedStores::None);
    assert_eq!(of(stored, &none), How::Any(Any::Loop(Some(scaled))));
    assert_eq!(of(load, &WHOLE), How::Any(Any::Inline { once: true }));
}

/// Where gathers are slow, a test of the numbers finds all lanes inside, and each is a load. Numbers at constant distances share it.
#[test]
fn scaled_numbers_of_all_lanes_are_tested_in_front() {
    let numbers = |conv: &str, last: &str| {
        format!(
            "  %9: i32 = const 2\n  %10: <16 x i64> = {conv} %3\n  %11: <16 x i64> = shl %10, %9\n  %12: <16 x i64> = splat %8\n  \
             %13: <16 x i64> = add %11, %12\n  %14: i64 = const 8\n  %15: <16 x i64> = splat %14\n  \
             %16: <16 x i64> = add %13, %15\n  %17: <16 x i32> = load.flat.i32x1[0] %1, %16\n  \
             %18: <16 x i32> = load.flat.i32x1[0] %1, {last}\n"
        )
    };
    let slow = with(&PARTS, |l| l.slow_gathers = true);
    for (conv, signed) in [("sext", true), ("zext", false)] {
        let scaled = Scaled {
            base: Value(8),
            distance: 0,
            index: Value(3),
            shift: 2,
            signed,
        };
        let (f, made) = plan(&numbers(conv, "%13"), &[ANY, ANY], &slow);
        let two = versions(steps(&made));
        let [group] = two.groups.as_slice() else {
            panic!("{:?}", two.groups);
        };
        assert_eq!(group.all.root, Root::Scaled(scaled));
        assert_eq!((group.all.from, group.all.to), (0, 12));
        assert_eq!(group.all.ty(&f), Ty::vector(Lane::I32, 16));
        // Where the test failed, addresses are made, or the processor's gathers take the numbers.
        let by_numbers = Any::GatherScaled {
            scaled,
            pairs: false,
        };
        assert_eq!(others(two), [Any::Gather, by_numbers]);
        let makes = |steps: &[Step]| steps.iter().any(|s| matches!(s, Step::Plain(_)));
        assert!(!makes(&two.fast.steps));
        let line = made.lines(&f)[1].to_string();
        assert!(
            line.contains("(scaled 32-bit numbers; tested in front; else"),
            "{line}"
        );
    }
    // Other addresses are tested as they are.
    let body = "  %9: <16 x i64> = splat %8\n  %10: <16 x i64> = mul %9, %9\n  %11: <16 x i32> = load.flat.i32x1[0] %1, %10\n";
    let (_, made) = plan(body, &[ANY], &slow);
    let root = versions(steps(&made)).groups[0].all.root;
    assert_eq!(root, Root::Value(Value(10)));
}

/// A constant distance has a range of numbers of its own, so accesses by themselves only take it where elements are narrow.
#[test]
fn distances_from_scaled_numbers() {
    let sum = "  %9: <16 x i64> = sext %3\n  %10: i64 = const 12\n  %11: <16 x i64> = splat %10\n  %12: <16 x i64> = add %9, %11\n  \
               %13: <16 x i64> = splat %8\n  %14: <16 x i64> = add %13, %12\n";
    let of = |lane: &str| {
        let body = format!("{sum}  %15: <16 x {lane}> = load.flat.{lane}x1[0] %1, %14\n");
        one(&body, ANY, &PARTS)
    };
    let scaled = Scaled {
        base: Value(8),
        distance: 12,
        index: Value(3),
        shift: 0,
        signed: true,
    };
    let pairs = false;
    assert_eq!(of("i8"), How::Any(Any::GatherScaled { scaled, pairs }));
    assert_eq!(of("i32"), How::Any(Any::Gather));
    // Two vectors are no numbers, nor are two scalars.
    for (a, b) in [("%12", "%9"), ("%13", "%13")] {
        let two = format!(
            "{sum}  %15: <16 x i64> = add {a}, {b}\n  %16: <16 x i64> = add %15, %12\n  %17: <16 x i8> = load.flat.i8x1[0] %1, %16\n"
        );
        assert_eq!(one(&two, ANY, &PARTS), How::Any(Any::Gather), "{a} {b}");
    }
}

#[test]
fn functions_of_very_many_lanes_gather_them() {
    let body = |n: u32| {
        let load = |i| format!("  %{}: <16 x i32> = load.slm.i32x1[0] %1, %3\n", 9 + i);
        (0..n).map(load).collect::<String>()
    };
    let slow = with(&PARTS, |l| l.slow_gathers = true);
    for (n, each) in [(96, true), (97, false)] {
        let (_, made) = plan(&body(n), &vec![ANY; n as usize], &slow);
        let by_lanes = steps(&made).iter().any(|s| matches!(s, Step::Versions(_)));
        assert_eq!(by_lanes, each, "{n}");
    }
}
