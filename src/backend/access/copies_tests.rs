//! Which lanes are only copied, and where they are loaded.

use super::copies::Apart;
use super::tests::{ANY, PARTS, affine, inside, plan, steps, versions};
use super::*;

const COPY: &str = "  %10: i32 = const 1\n  %11: i32 = const 2\n  \
     %12: <16 x i32>, %13: <16 x i32>, %14: <16 x i32>, %15: <16 x i32> = load.surface.i32x4[0] %0, %3, %10\n  \
     store.surface.i32x4[0] %0, %3, %11, %12, %13, %14, %15\n";

#[test]
fn lanes_that_are_only_copied_stay_as_they_are() {
    let (_, copied) = plan(COPY, &[ANY, affine(2, 16)], &PARTS);
    let two = versions(steps(&copied));
    let load = |s: &Step| matches!(s, Step::LoadCopy(..));
    let store = |s: &Step| matches!(s, Step::StoreCopy { late: false, .. });
    assert!(two.fast.steps.iter().any(load) && two.fast.steps.iter().any(store));
    // Where surfaces are apart, lines are written as they are read.
    let (places, late) = two.apart.as_ref().unwrap();
    let surfaces = vec![(Place::Surface(1), Place::Surface(2))];
    assert_eq!(*places, Apart::Surfaces(surfaces));
    let late = &late.steps;
    assert!(
        late.iter()
            .any(|s| matches!(s, Step::StoreCopy { late: true, .. }))
    );
    assert!(!late.iter().any(load));
    // In device memory, where a lane is not read from what is stored.
    let addresses = "  %9: <16 x i64> = zext %3\n";
    let flat = COPY.replace("surface", "flat");
    let flat = flat.replace("%3, %10", "%9").replace("%3, %11", "%9");
    let flat = format!("{addresses}{flat}");
    let (_, flat) = plan(&flat, &[ANY, affine(8, 16)], &PARTS);
    let apart = versions(steps(&flat)).apart.as_ref().map(|(what, _)| what);
    assert!(matches!(apart, Some(Apart::Lanes { .. })), "{apart:?}");
    // Another instruction reads a component.
    let read = format!("{COPY}  framestore[0] %12\n");
    let (_, read) = plan(&read, &[ANY, affine(2, 16)], &PARTS);
    let two = versions(steps(&read));
    assert_eq!((inside(&two.fast), two.apart.is_none()), (2, true));
    // No store to the surface that is read is moved.
    let (_, same) = plan(
        &COPY.replace("%3, %11", "%3, %10"),
        &[ANY, affine(2, 16)],
        &PARTS,
    );
    assert!(versions(steps(&same)).apart.is_none());
}
