//! Plans of checks.

use super::tests::{ANY, PARTS, WHOLE, affine, plan, speculative, steps};
use super::*;
use crate::backend::shadow::LaneShadow;
use crate::ssa::shape::Shape;
use crate::ssa::{Op, Value};

/// How the checks of a body are done.
fn checks(body: &str, shapes: &[Shape], limits: &Limits) -> Vec<CheckHow> {
    let (_, plan) = plan(body, shapes, limits);
    let steps = steps(&plan).iter();
    let how = |step: &Step| match step {
        Step::Check(_, how) => Some((**how).clone()),
        _ => None,
    };
    steps.filter_map(how).collect()
}

/// Addresses that are a scalar and scaled numbers, %13, and a check of them.
const CHECK: &str = "  %9: <16 x i64> = splat %8\n  %10: <16 x i64> = zext %3\n  %11: <16 x i64> = vconst [2 ...]\n  \
                     %12: <16 x i64> = shl %10, %11\n  %13: <16 x i64> = add %12, %9\n  check.i32x1[0] %1, %13\n";

#[test]
fn one_test_checks_all_lanes_where_they_are_affine() {
    let each = |bytes, low| Some(LaneShadow { bytes, low });
    let how = |shape: Shape, limits: &Limits| checks(CHECK, &[shape], limits).remove(0);
    // Addresses are computed from %8, which is in the payload.
    let pointer = Some(8);
    let span = |spacing, lowest, bytes| {
        Some(CheckSpan {
            spacing,
            lowest,
            bytes,
            pointer,
        })
    };
    for limits in [&WHOLE, &PARTS] {
        // What such a test finds odd is so, and the runtime looks at once.
        let down = how(affine(8, -8), limits);
        assert_eq!(
            (down.span, down.each),
            (span(Spacing::Table, -120, 124), None)
        );
        let any = how(ANY, limits);
        assert_eq!((any.span, any.each), (None, each(1, 3)));
        let scalar = checks("  check.i32x4[0] %5, %8\n", &[ANY], limits).remove(0);
        assert_eq!(
            (scalar.span, scalar.each),
            (span(Spacing::One, 0, 16), None)
        );
        // Too far for one test.
        let far = how(affine(8, 1 << 20), limits);
        assert_eq!((far.span, far.each), (None, each(1, 3)));
    }
    let beside = how(speculative(4), &WHOLE);
    let Some(Spacing::Beside(scaled)) = beside.span.as_ref().map(|span| &span.spacing) else {
        panic!("{beside:?}");
    };
    assert_eq!((scaled.base, scaled.shift), (Value(8), 2));
    assert!(
        beside
            .span
            .is_some_and(|span| !span.is_certain() && span.bytes == 64)
    );
    assert_eq!(beside.each, each(1, 3));
    assert_eq!(how(speculative(4), &PARTS).span, None);
}

#[test]
fn many_checks_of_any_lanes_are_calls() {
    let many = CHECK.to_owned() + &"  check.i32x1[0] %1, %13\n".repeat(48);
    let all = checks(&many, &[ANY; 49], &WHOLE);
    assert!(
        all.iter()
            .all(|how| how.each.is_none() && how.span.is_none())
    );
    let few = checks(&many, &[affine(8, 4); 49], &WHOLE);
    assert!(few.iter().all(|how| how.span.is_some()));
}

/// Checks of reads at the same addresses, with what may stand between them, and whether the second is done with the first.
#[test]
fn reads_at_the_same_addresses_are_checked_at_once() {
    let first = "  check.read.slm.i32x1[0] %0, %3\n";
    let load = "  %9: <16 x i32> = load.slm.i32x1[0] %0, %3\n  %10: i32 = add %2, %4\n";
    let store = "  store.slm.i32x1[0] %0, %3, %3\n";
    for (between, second, twins) in [
        ("", first, true),
        (load, first, true),
        (store, first, false),
        ("", "  check.read.slm.i32x1[0] %1, %3\n", false),
        ("", "  check.aread.slm.i32x1[0] %0, %3\n", false),
        ("", "  check.read.slm.i32x2[0] %0, %3\n", false),
        ("", "  check.write.slm.i32x1[0] %0, %3, %3\n", false),
    ] {
        let body = format!("{first}{between}{second}");
        let shape = affine(2, 4);
        let shapes = vec![shape; 2 + usize::from(!between.is_empty())];
        for limits in [&WHOLE, &PARTS] {
            let (_, plan) = plan(&body, &shapes, limits);
            // Versions have their own steps.
            let text = format!("{:?}", steps(&plan));
            let [affine, done] = ["AffineRace(", "Checked("].map(|step| text.matches(step).count());
            assert_eq!(done > 0, twins, "{body}");
            assert!(!twins || affine == 1, "{body}");
        }
    }
}

fn first_race(steps: &[Step]) -> Option<&AffineRace> {
    steps.iter().find_map(|step| match step {
        Step::AffineRace(_, race) => Some(&**race),
        Step::Versions(two) => first_race(&two.first).or_else(|| first_race(&two.fast.steps)),
        _ => None,
    })
}

/// Checks of reads at equal distances, with what may stand between them, and how many one call does.
#[test]
fn reads_at_even_distances_are_checked_at_once() {
    let sums = "  %9: i32 = const 128\n  %10: i32 = add %2, %9\n  %11: i32 = const 192\n  %12: i32 = add %2, %11\n  \
                %13: <16 x i32> = splat %2\n  %14: <16 x i32> = splat %7\n  %15: <16 x i32> = splat %10\n  \
                %16: <16 x i32> = splat %12\n";
    let read = "  check.read.slm.i32x1[0] %0, %A\n";
    let twin = "  check.read.slm.i32x1[1] %0, %A\n";
    let sum = "  %N: i32 = add %2, %4\n";
    let store = "  store.slm.i32x1[0] %0, %A, %3\n";
    let other = "  check.read.slm.i32x1[0] %1, %A\n";
    let long = "  check.read.slm.i32x2[0] %0, %A\n";
    // Values that are 0, 64, 128 and 192 more than the first.
    let bases = [2, 7, 10, 12];
    for (parts, of, done, distance) in [
        (&[read, read, read, read][..], &[0, 1, 2, 3][..], 4, 64),
        (&[read, sum, read, sum, read], &[0, 0, 1, 1, 2], 3, 64),
        (&[read, read, read], &[3, 2, 1], 3, -64),
        (&[read, read, read], &[0, 2, 3], 2, 128),
        (&[read, read, store, read], &[0, 1, 2, 2], 2, 64),
        (&[read, store, read], &[0, 0, 1], 1, 0),
        (&[read, other], &[0, 1], 1, 0),
        (&[read, long], &[0, 1], 1, 0),
        // Twins count with their reads, and the call enters them.
        (&[read, twin, read, twin], &[0, 0, 1, 1], 2, 64),
        (&[read, twin, read, read], &[0, 0, 1, 2], 1, 0),
    ] {
        let numbered = parts.iter().zip(of).enumerate();
        let body = numbered.map(|(at, (part, &base))| {
            let part = part.replace("%N", &format!("%{}", 17 + at));
            part.replace("%A", &format!("%{}", 13 + base))
        });
        let body = sums.to_owned() + &body.collect::<String>();
        let stride = |part: &str| if part == long { 8 } else { 4 };
        let accesses = parts.iter().zip(of).filter(|(part, _)| **part != sum);
        let shapes: Vec<_> = accesses
            .map(|(part, &base)| affine(bases[base], stride(part)))
            .collect();
        let (_, plan) = plan(&body, &shapes, &WHOLE);
        let reads = first_race(steps(&plan)).expect("a check").reads.clone();
        assert_eq!(
            reads.as_ref().map_or(1, |r| r.others.len() + 1),
            done,
            "{body}"
        );
        let Some(reads) = reads else { continue };
        assert_eq!(i64::from(reads.step.distance), distance, "{body}");
        let twins = parts[1] == twin;
        assert!(
            reads.others.iter().all(|(_, t)| t.is_some() == twins),
            "{body}"
        );
    }
}

/// What a test in front of two versions says, and how many checks are left in the version for when it holds.
#[test]
fn one_test_in_front_decides_checks_of_buffers_and_alignment() {
    // Whether %8 is a multiple of four, of all lanes.
    let odd = "  %14: i64 = const 3\n  %15: i64 = and %8, %14\n  %16: i64 = const 0\n  %17: i1 = icmp.ne %15, %16\n  \
               %18: <16 x i1> = splat %17\n  %19: <16 x i1> = and %1, %18\n";
    let checks = "  check.aligned.flat[0] %19, %13\n  check.i32x1[0] %1, %13\n";
    let (address, _) = CHECK.rsplit_once("  check").unwrap();
    let body = |odd: &str| {
        let load = "  %20: <16 x i32> = load.flat.i32x1[0] %1, %13\n";
        let store = "  store.flat.i32x1[0] %1, %13, %20\n";
        [address, odd, checks, load, checks, store].concat()
    };
    // The shapes of checks of buffers and of the accesses.
    let shapes = [affine(8, 4); 4];
    let (_, plan) = plan(&body(odd), &shapes, &WHOLE);
    let Some(two) = steps(&plan).iter().find_map(|step| match step {
        Step::Versions(two) => Some(two),
        _ => None,
    }) else {
        panic!("{:?}", steps(&plan));
    };
    let aligned = CheckInFront::Aligned(Value(17));
    let kinds: Vec<bool> = two
        .checks
        .iter()
        .map(|(_, test)| *test == aligned)
        .collect();
    assert_eq!(kinds, [true, false, true, false]);
    let is_checked = |step: &Step| two.checks.iter().any(|(i, _)| step.inst() == Some(*i));
    assert!(!two.fast.steps.iter().any(is_checked));
    let other = two.other.as_ref().unwrap();
    assert_eq!(other.steps.iter().filter(|s| is_checked(s)).count(), 4);
    // Alignment by lanes is tested in each version.
    let lanes = odd.replace(
        "%17: i1 = icmp.ne %15, %16",
        "%17: <16 x i1> = input.dispatchmask",
    );
    let lanes = lanes.replace(
        "  %18: <16 x i1> = splat %17\n",
        "  %18: <16 x i1> = and %17, %17\n",
    );
    let (_, plan) = super::tests::plan(&body(&lanes), &shapes, &WHOLE);
    let text = format!("{:?}", steps(&plan));
    assert!(!text.contains("Aligned("), "{text}");
}

#[test]
fn a_run_reaches_all_reads_that_are_done_with_it() {
    let body = "  %9: i32 = const 128\n  %10: i32 = add %2, %9\n  %11: <16 x i32> = splat %2\n  %12: <16 x i32> = splat %7\n  \
                %13: <16 x i32> = splat %10\n";
    let check = |of: u32| format!("  check.read.slm.i32x1[0] %0, %{of}\n");
    let reach = |order: [u32; 3], stride: i64| {
        let checks: String = order.iter().map(|of| check(*of)).collect();
        let bases = order.map(|of| [2, 7, 10][of as usize - 11]);
        let shapes = bases.map(|base| affine(base, stride));
        let (f, plan) = plan(&(body.to_owned() + &checks), &shapes, &WHOLE);
        let race = first_race(steps(&plan)).expect("a check").clone();
        let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
        let mut checks = insts.filter_map(|&i| match f.inst(i).op {
            Op::CheckRace(check) => Some(check),
            _ => None,
        });
        race.reach(checks.next().expect("a check"), 16)
    };
    assert_eq!(reach([11, 12, 13], 4), Some((0, 128 + 64)));
    assert_eq!(reach([13, 12, 11], 4), Some((-128, 128 + 64)));
    assert_eq!(reach([13, 12, 11], 0), Some((-128, 128 + 4)));
    // These share no call.
    assert_eq!(reach([11, 13, 12], 0), Some((0, 128 + 4)));
    assert_eq!(reach([11, 12, 13], -8), Some((-120, 124)));
    assert_eq!(reach([11, 12, 13], 1 << 45), None);
}
