//! Plans of small functions, for code generators of both kinds.

use super::*;
use crate::backend::{Bounds as Tests, Gather, OobPolicy};
use crate::ssa::shape::{Affine as Addresses, Shape};
use crate::ssa::{Function, Inst, Op, Value, parse};

/// A full mask, any mask, a scalar, any addresses, another scalar and a condition.
pub(super) const HEAD: &str = r#"function "f" simd 16 regs 256 frame 64
site 0 = read slm 4 "gather4_scaled" line 1

bb0:
  %0: <16 x i1> = vconst [1 ...]
  %1: <16 x i1> = input.dispatchmask
  %2: i32 = input.payload[0]
  %3: <16 x i32> = input.payload[64]
  %4: i32 = input.payload[4]
  %5: i1 = icmp.eq %2, %4
  %6: i32 = const 64
  %7: i32 = add %2, %6
  %8: i64 = input.payload[8]
"#;

/// Vectors of 128 bits, versions of whole blocks, calls that cost little where a test fails.
pub(super) const WHOLE: Limits = Limits {
    oob: OobPolicy::ReadZeroSkipWrite,
    bounds: Tests::Hoisted,
    gather: Gather::Select,
    many: false,
    scope: Scope::Block,
    gathers: false,
    scatters: false,
    slow_gathers: false,
    masked_stores: MaskedStores::Branch,
    speculation: Speculation::Affine,
    tests_local_ids: true,
    long_runs: false,
    whole_rows: true,
    vec4_versions: false,
    rolls: true,
    store_loops: false,
    inline_faults: true,
    rare_messages: true,
    rare_addresses: false,
    asks_once: true,
    unaligned_atomics: true,
};

/// Gathers and masked stores, versions of parts of blocks.
pub(in crate::backend) const PARTS: Limits = Limits {
    gather: Gather::Auto,
    scope: Scope::Parts,
    gathers: true,
    scatters: true,
    masked_stores: MaskedStores::Instruction,
    speculation: Speculation::Masked,
    tests_local_ids: false,
    long_runs: true,
    whole_rows: false,
    vec4_versions: true,
    rolls: false,
    store_loops: true,
    inline_faults: false,
    rare_messages: false,
    rare_addresses: true,
    asks_once: false,
    ..WHOLE
};

/// Affine addresses from `%base` on.
pub(super) fn affine(base: u32, stride: i64) -> Shape {
    Shape {
        addr: Some(Addresses {
            base: Value(base),
            stride,
            guard: None,
        }),
        ..Shape::default()
    }
}

pub(super) fn speculative(stride: i64) -> Shape {
    Shape {
        speculative: Some(stride),
        ..Shape::default()
    }
}

pub(super) const ANY: Shape = Shape {
    addr: None,
    speculative: None,
    mask_all: None,
};

/// The function of a body and its plan; shapes are those of its lane-wise loads, stores and checks, in order.
pub(super) fn plan(body: &str, shapes: &[Shape], limits: &Limits) -> (Function, AccessPlan) {
    let text = format!("{HEAD}{body}  return\n");
    plan_text(&text, shapes, limits)
}

fn plan_text(text: &str, shapes: &[Shape], limits: &Limits) -> (Function, AccessPlan) {
    let mut f = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let insts = f.order.iter().flat_map(|&b| f.block(b).insts.clone());
    let accesses: Vec<Inst> = insts
        .filter(|&i| how::lane_wise(&f.inst(i).op).is_some() || is_check(&f.inst(i).op))
        .collect();
    assert_eq!(accesses.len(), shapes.len());
    let known = accesses.into_iter().zip(shapes.iter().copied());
    f.shapes
        .extend(known.filter(|(_, shape)| *shape != Shape::default()));
    let order = f.order.clone();
    let plan = AccessPlan::new(&f, limits.clone(), &order);
    (f, plan)
}

const fn is_check(op: &Op) -> bool {
    matches!(op, Op::CheckBuffer(_) | Op::CheckRace(_))
}

pub(super) fn steps(plan: &AccessPlan) -> &[Step] {
    &plan.blocks()[0].1.steps
}

/// How the accesses of the first block are done that share no test.
fn alone(plan: &AccessPlan) -> Vec<&How> {
    let steps = steps(plan).iter();
    steps
        .filter_map(|step| match step {
            Step::Access(_, how) => Some(how),
            _ => None,
        })
        .collect()
}

/// The only access of a body.
pub(super) fn one(body: &str, shape: Shape, limits: &Limits) -> How {
    let (_, plan) = plan(body, &[shape], limits);
    let all = alone(&plan);
    assert_eq!(all.len(), 1);
    all[0].clone()
}

#[track_caller]
fn strided(how: How) -> AffineAccess {
    match how {
        How::Affine(alone) => *alone,
        how => panic!("{how:?}"),
    }
}

#[track_caller]
pub(super) fn versions(steps: &[Step]) -> &Versions {
    let found = steps.iter().find_map(|step| match step {
        Step::Versions(versions) => Some(versions),
        _ => None,
    });
    found.expect("versions")
}

fn has_versions(plan: &AccessPlan) -> bool {
    let versions = |step: &Step| matches!(step, Step::Versions(_));
    steps(plan).iter().any(versions)
}

const LOAD: &str = "  %10: <16 x i32> = load.slm.i32x1[0] %0, %3\n";
const STORE: &str = "  store.slm.i32x1[0] %1, %3, %3\n";
const VEC4: &str = "  %10: <16 x i32>, %11: <16 x i32>, %12: <16 x i32>, %13: <16 x i32> = load.slm.i32x4[0] %0, %3\n";

pub(super) fn with(limits: &Limits, change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = limits.clone();
    change(&mut limits);
    limits
}

#[test]
fn lanes_at_any_addresses() {
    let any = |body: &str, limits: &Limits| one(body, ANY, limits);
    // Without device memory, faults and masks, one test in front does not pay.
    assert_eq!(any(LOAD, &WHOLE), How::Any(Any::Inline { once: false }));
    assert_eq!(any(STORE, &WHOLE), How::Any(Any::Inline { once: true }));
    assert_eq!(any(VEC4, &WHOLE), How::Any(Any::Rolled));
    let call = with(&WHOLE, |l| l.gather = Gather::Call);
    assert_eq!(any(LOAD, &call), How::Any(Any::Message));
    assert_eq!(any(VEC4, &call), How::Any(Any::Message));
    assert_eq!(any(LOAD, &PARTS), How::Any(Any::Gather));
    assert_eq!(any(STORE, &PARTS), How::Any(Any::Gather));
    let two = "  %10: <16 x i32>, %11: <16 x i32> = load.slm.i32x2[0] %0, %3\n";
    assert_eq!(any(two, &PARTS), How::Any(Any::GatherPairs));
    let two = "  store.slm.i32x2[0] %1, %3, %3, %3\n";
    assert_eq!(any(two, &PARTS), How::Any(Any::GatherPairs));
    let no_scatters = with(&PARTS, |l| l.scatters = false);
    assert_eq!(any(two, &no_scatters), How::Any(Any::Message));
    let reports = |limits: &Limits| with(limits, |l| l.oob = OobPolicy::Trap);
    assert_eq!(any(LOAD, &reports(&PARTS)), How::Any(Any::Gather));
    let once = How::Any(Any::Inline { once: true });
    assert_eq!(any(LOAD, &reports(&WHOLE)), once);
    let bytes = "  %10: <16 x i8> = load.slm.i8x1[0] %0, %3\n";
    assert_eq!(any(bytes, &WHOLE), How::Any(Any::Inline { once: false }));
    assert_eq!(any(bytes, &PARTS), How::Any(Any::Gather));
    assert_eq!(any(bytes, &reports(&PARTS)), How::Any(Any::Gather));
    let stored = "  %10: <16 x i8> = trunc %3\n  store.slm.i8x1[0] %1, %3, %10\n";
    let none = with(&PARTS, |l| l.masked_stores = MaskedStores::None);
    assert_eq!(any(stored, &none), How::Any(Any::Loop(None)));
    // Before a loop, lanes are compared: they may be side by side.
    let compared = strided(any(stored, &PARTS));
    assert_eq!(compared.by, By::Speculation(None));
    assert_eq!(
        (compared.stored, compared.other),
        (Stored::Enabled, Any::Loop(None))
    );
    let call = with(&PARTS, |l| l.gather = Gather::Call);
    assert_eq!(any(stored, &call), How::Any(Any::Message));
    let none = with(&none, |l| l.scatters = false);
    assert_eq!(any(STORE, &none), How::Any(Any::Loop(None)));
    let scalar = "  %10: i1 = const 1\n  %11: i32 = load.slm.i32x1[0] %10, %2\n";
    assert_eq!(any(scalar, &WHOLE), How::Any(Any::Scalar));
}

#[test]
fn only_few_accesses_go_inline() {
    let loads = |n: u32, op: &str, results: u32| {
        let values = |n: u32| {
            let of = |i| format!("%{}: <16 x i32>", 10 + n * results + i);
            (0..results).map(of).collect::<Vec<_>>().join(", ")
        };
        let lines = (0..n).map(|n| format!("  {} = load.slm.{op}[0] %0, %3\n", values(n)));
        lines.collect::<String>()
    };
    let chosen = |n: u32| {
        let f = parse(&format!("{HEAD}{}  return\n", loads(n, "i32x1", 1))).unwrap();
        auto_gather(&f, Gather::Auto)
    };
    assert_eq!(
        [chosen(8), chosen(9)],
        [(Gather::Select, false), (Gather::Select, true)]
    );
    let first = |n: u32, (op, results), limits: &Limits| {
        let shapes = vec![ANY; n as usize];
        let (_, plan) = plan(&loads(n, op, results), &shapes, limits);
        alone(&plan)[0].clone()
    };
    let many = with(&WHOLE, |l| l.many = true);
    let (one, four) = (("i32x1", 1), ("i32x4", 4));
    assert_eq!(first(9, one, &WHOLE), How::Any(Any::Inline { once: false }));
    for of in [one, four] {
        assert_eq!(first(64, of, &many), How::Any(Any::Rolled));
        assert_eq!(first(65, of, &many), How::Any(Any::Message));
    }
    let reason = |limits: &Limits| {
        let (f, plan) = plan(&loads(65, "i32x1", 1), &vec![ANY; 65], limits);
        plan.lines(&f)[0].reason.clone()
    };
    assert!(reason(&many).contains("many such accesses"));
    let asked = with(&WHOLE, |l| l.gather = Gather::Call);
    assert!(reason(&asked).contains("calls are asked for"));
    assert_eq!(first(1, four, &WHOLE), How::Any(Any::Rolled));
    assert_eq!(first(1, ("i32x5", 5), &WHOLE), How::Any(Any::Message));
    for gather in [Gather::Call, Gather::Branch] {
        let asked = with(&WHOLE, |l| l.gather = gather);
        assert_eq!(first(1, four, &asked), How::Any(Any::Message));
    }
}

#[test]
fn a_stride_decides_what_an_access_is() {
    let of = |stride: i64, limits: &Limits| one(LOAD, affine(2, stride), limits);
    for limits in [&WHOLE, &PARTS] {
        assert_eq!(strided(of(0, limits)).strided.kind, StridedKind::Same);
        assert_eq!(strided(of(4, limits)).strided.kind, StridedKind::Packed);
    }
    assert_eq!(strided(of(12, &WHOLE)).strided.kind, StridedKind::Spread);
    assert_eq!(of(20, &PARTS), How::Any(Any::Gather));
    // What one test cannot cover.
    assert_eq!(of(1 << 24, &WHOLE), How::Any(Any::Inline { once: false }));
    let packed = strided(of(4, &WHOLE));
    assert_eq!((packed.by, packed.inside), (By::Table, false));
    assert_eq!(packed.other, Any::RareMessage);
    assert_eq!(strided(of(4, &PARTS)).other, Any::Gather);
    // Of lanes that store to one address, the last one wins: no vector store does that.
    let store = one(STORE, affine(2, 0), &WHOLE);
    assert_eq!(store, How::Any(Any::Inline { once: true }));
}

#[test]
fn lanes_near_each_other_are_a_run() {
    let kind = |body: &str, stride: i64, limits: &Limits| match one(body, affine(2, stride), limits)
    {
        How::Affine(alone) => Some(alone.strided.kind),
        How::Any(_) => None,
    };
    let run = Some(StridedKind::Run);
    for (stride, whole, parts) in [
        (8, run, run),
        (-4, run, run),
        (16, Some(StridedKind::Spread), run),
    ] {
        assert_eq!(kind(LOAD, stride, &WHOLE), whole, "{stride}");
        assert_eq!(kind(LOAD, stride, &PARTS), parts, "{stride}");
    }
    // Where one element ends, no other begins; and a store with gaps would write these.
    assert_eq!(kind(LOAD, 6, &PARTS), None);
    assert_eq!(kind(STORE, 8, &WHOLE), Some(StridedKind::Spread));
    // Of several components, neighbours have some in common.
    let three = "  %10: <16 x i32>, %11: <16 x i32>, %12: <16 x i32> = load.slm.i32x3[0] %0, %3\n";
    for limits in [&WHOLE, &PARTS] {
        assert_eq!(kind(three, 4, limits), run);
        assert_eq!(kind(three, 12, limits), Some(StridedKind::Packed));
    }
    assert_eq!(kind(three, 16, &WHOLE), Some(StridedKind::Spread));
    let window = strided(one(three, affine(2, 4), &WHOLE)).strided;
    assert_eq!(
        (window.lowest, window.bytes, window.elements(4)),
        (0, 72, 18)
    );
    assert_eq!(window.element(4, 15, 2), 17);
    let down = strided(one(LOAD, affine(2, -8), &WHOLE)).strided;
    assert_eq!((down.lowest, down.bytes, down.elements(4)), (-120, 124, 31));
    assert_eq!([down.element(4, 0, 0), down.element(4, 15, 0)], [30, 0]);
}

#[test]
fn register_storage_at_a_known_place_needs_no_test() {
    let body = |at: u32| {
        format!("  %10: i32 = const {at}\n  %11: <16 x i32> = load.regs.i32x1[0] %0, %3\n")
    };
    let of = |at: u32| strided(one(&body(at), affine(10, 4), &WHOLE));
    assert!(of(192).is_certain());
    assert!(!of(193).is_certain());
}

#[test]
fn a_store_asks_for_all_lanes_where_it_has_to() {
    let stored = |shape: Shape, limits: &Limits| strided(one(STORE, shape, limits)).stored;
    let all = Shape {
        mask_all: Some(Value(5)),
        ..affine(2, 4)
    };
    assert_eq!(stored(all, &WHOLE), Stored::Tested(Value(5)));
    assert_eq!(stored(all, &PARTS), Stored::Tested(Value(5)));
    assert_eq!(stored(affine(2, 4), &WHOLE), Stored::Enabled);
    assert_eq!(stored(affine(2, 4), &PARTS), Stored::Enabled);
    let none = with(&PARTS, |l| l.masked_stores = MaskedStores::None);
    assert_eq!(stored(affine(2, 4), &none), Stored::Tested(Value(1)));
    let full = STORE.replace("%1", "%0");
    assert_eq!(strided(one(&full, all, &none)).stored, Stored::All);
    // Components of a lane are stored under its mask as one number, if they make one.
    let two = STORE
        .replace("i32x1", "i32x2")
        .replace(", %3\n", ", %3, %3\n");
    let stored = |text: &str, shape| strided(one(text, shape, &PARTS)).stored;
    assert_eq!(stored(&two, affine(2, 8)), Stored::Enabled);
    let four = two
        .replace("i32x2", "i32x4")
        .replace(", %3\n", ", %3, %3, %3\n");
    assert_eq!(stored(&four, affine(2, 16)), Stored::Tested(Value(1)));
}

#[test]
fn speculation_about_lanes_side_by_side() {
    let local = one(LOAD, speculative(4), &WHOLE);
    assert_eq!(strided(local.clone()).by, By::Speculation(None));
    assert_eq!(strided(local).other, Any::Inline { once: false });
    assert!(strided(one(LOAD, speculative(4), &PARTS)).is_speculative());
    // With gaps a gather is as good.
    assert_eq!(one(LOAD, speculative(8), &PARTS), How::Any(Any::Gather));
    let none = with(&PARTS, |l| l.masked_stores = MaskedStores::None);
    assert_eq!(one(LOAD, speculative(4), &none), How::Any(Any::Gather));
    // In device memory the numbers are compared that addresses are made of.
    let sum = |shift: u32| {
        format!(
            "  %10: <16 x i64> = splat %8\n  %11: <16 x i64> = zext %3\n  %12: <16 x i64> = vconst [{shift} ...]\n  \
             %13: <16 x i64> = shl %11, %12\n  %14: <16 x i64> = add %10, %13\n  %15: <16 x i32> = load.flat.i32x1[0] %0, %14\n"
        )
    };
    for limits in [&WHOLE, &PARTS] {
        let By::Speculation(Some(scaled)) = strided(one(&sum(2), speculative(4), limits)).by else {
            panic!("no speculation");
        };
        assert_eq!((scaled.base, scaled.index), (Value(8), Value(3)));
        assert_eq!((scaled.shift, scaled.signed), (2, false));
    }
    let other = one(&sum(3), speculative(4), &WHOLE);
    assert_eq!(other, How::Any(Any::Inline { once: true }));
    // Those of elements with gaps are not one apart.
    let gaps = strided(one(&sum(3), speculative(4), &PARTS)).by;
    assert_eq!(gaps, By::Speculation(None));
}

#[test]
fn functions_with_many_accesses_do_not_speculate() {
    let first = |n: u32| {
        let load = |i| format!("  %{}: <16 x i32> = load.slm.i32x1[0] %0, %3\n", 10 + i);
        let body: String = (0..n).map(load).collect();
        let (_, plan) = plan(&body, &vec![speculative(4); n as usize], &WHOLE);
        matches!(alone(&plan)[0], How::Affine(_))
    };
    assert!(first(64) && !first(65));
}

#[test]
fn local_ids_are_followed_where_that_is_wanted() {
    let body = "  %10: <16 x i16> = input.localids.x[0]\n  %11: <16 x i32> = zext %10\n  %12: <16 x i32> = vconst [2 ...]\n  \
                %13: <16 x i32> = shl %11, %12\n  %14: <16 x i32> = splat %2\n  %15: <16 x i32> = add %13, %14\n  \
                %16: <16 x i32> = load.slm.i32x1[0] %0, %15\n";
    let By::Local(sum) = strided(one(body, ANY, &WHOLE)).by else {
        panic!("not followed");
    };
    assert_eq!((sum.stride, sum.ids.len(), sum.is_tested()), (4, 1, true));
    assert_eq!(one(body, ANY, &PARTS), How::Any(Any::Gather));
    // Rows of lanes in y are one address each; a product with what is not constant is not followed.
    let same = body.replace("localids.x", "localids.y");
    assert_eq!(
        strided(one(&same, ANY, &WHOLE)).strided.kind,
        StridedKind::Same
    );
    let other = body.replace("shl %11, %12", "mul %11, %3");
    assert_eq!(
        one(&other, ANY, &WHOLE),
        How::Any(Any::Inline { once: false })
    );
}

const TWO: &str =
    "  %10: <16 x i32> = load.slm.i32x1[0] %0, %3\n  %11: <16 x i32> = load.slm.i32x1[0] %0, %3\n";

/// Instructions of the accesses that are done as known to be inside.
pub(super) fn inside(segment: &Segment) -> usize {
    let inside = |step: &&Step| matches!(step, Step::Inside(_));
    segment.steps.iter().filter(inside).count()
}

/// What is done with the accesses of a version for when the test failed.
pub(super) fn others(versions: &Versions) -> Vec<Any> {
    let steps = versions.other.iter().flat_map(|other| &other.steps);
    let any = |step: &Step| match step {
        Step::Access(_, How::Any(any)) => Some(*any),
        _ => None,
    };
    steps.filter_map(any).collect()
}

#[test]
fn accesses_that_can_be_tested_in_front_share_versions() {
    for (limits, other) in [(&WHOLE, Any::RareMessage), (&PARTS, Any::Gather)] {
        let near = [affine(2, 4), affine(7, 4)];
        let (_, plan) = plan(TWO, &near, limits);
        let two = versions(steps(&plan));
        assert_eq!((two.accesses.len(), two.groups.len()), (2, 1));
        assert_eq!(two.groups[0].members.len(), 2);
        assert_eq!((inside(&two.fast), others(two)), (2, vec![other; 2]));
        assert!(!two.meet && two.are_many());
    }
    let (_, separate) = plan(
        TWO,
        &[affine(2, 4), affine(7, 4)],
        &with(&WHOLE, |l| l.bounds = Tests::Separate),
    );
    assert_eq!(versions(steps(&separate)).groups.len(), 2);
    let inline = with(&WHOLE, |l| l.bounds = Tests::Inline);
    let (_, inline) = plan(TWO, &[affine(2, 4), affine(7, 4)], &inline);
    assert!(!has_versions(&inline));
    let (_, single) = plan(LOAD, &[affine(2, 4)], &WHOLE);
    assert!(!has_versions(&single));
}

#[test]
fn conditions_are_tested_with_the_bounds() {
    let guarded = |base, mask_all: Option<u32>| Shape {
        addr: Some(Addresses {
            base: Value(base),
            stride: 4,
            guard: Some(Value(5)),
        }),
        mask_all: mask_all.map(Value),
        ..Shape::default()
    };
    let body = "  %10: <16 x i32> = load.slm.i32x1[0] %0, %3\n  %11: i1 = icmp.eq %4, %2\n  store.slm.i32x1[0] %1, %3, %10\n";
    let shapes = [guarded(2, None), guarded(4, Some(11))];
    let (f, tested) = plan(body, &shapes, &WHOLE);
    let two = versions(steps(&tested));
    assert_eq!(two.conditions, [Value(5), Value(11)]);
    assert_eq!(two.full(&f).collect::<Vec<_>>(), [Value(1)]);
    // Where only the mask says so, the store writes enabled lanes, or the mask is tested.
    let unknown = [guarded(2, None), guarded(4, None)];
    let (_, enabled) = plan(body, &unknown, &WHOLE);
    let two = versions(steps(&enabled));
    assert_eq!(two.conditions, [Value(5)]);
    assert!(two.accesses[1].enabled);
    let none = with(&PARTS, |l| l.masked_stores = MaskedStores::None);
    let (_, whole) = plan(body, &unknown, &none);
    assert_eq!(versions(steps(&whole)).conditions, [Value(5), Value(1)]);
}

#[test]
fn surely_inside_accesses_are_one_version() {
    let body = "  %10: i32 = const 0\n  %11: <16 x i32> = load.regs.i32x1[0] %0, %3\n  %12: <16 x i32> = load.regs.i32x1[0] %0, %3\n";
    let shapes = [affine(10, 4), affine(10, 8)];
    let (_, whole) = plan(body, &shapes, &WHOLE);
    let one = versions(steps(&whole));
    assert!(one.other.is_none() && one.groups.is_empty() && !one.are_many());
    let (_, parts) = plan(body, &shapes, &PARTS);
    assert!(!has_versions(&parts));
}

/// Values that are made from what is loaded cannot be tested in front of the load.
#[test]
fn late_addresses_are_tested_where_they_are_known() {
    let body = "  %10: i1 = const 1\n  %11: i32 = load.slm.i32x1[0] %10, %2\n  %12: <16 x i32> = load.slm.i32x1[0] %0, %3\n  \
                %13: i32 = load.slm.i32x1[0] %10, %4\n  %14: <16 x i32> = load.slm.i32x1[0] %0, %3\n  \
                %15: <16 x i32> = load.slm.i32x1[0] %0, %3\n  %16: <16 x i32> = load.slm.i32x1[0] %0, %3\n";
    let shapes = [
        ANY,
        affine(2, 4),
        ANY,
        affine(13, 4),
        affine(13, 4),
        affine(4, 4),
    ];
    let (_, whole) = plan(body, &shapes, &WHOLE);
    let two = versions(steps(&whole));
    let tested = |v: &Versions| {
        v.accesses
            .iter()
            .flat_map(|a| a.reach.root.values().map(|v| v.0))
            .collect::<Vec<_>>()
    };
    assert_eq!(tested(two), [2, 4]);
    let (_, parts) = plan(body, &shapes, &PARTS);
    let outer = versions(steps(&parts));
    assert_eq!(tested(outer), [2, 4]);
    // Versions in the first version; the other one knows nothing of addresses.
    assert_eq!(tested(versions(&outer.fast.steps)), [13, 13]);
    let other = outer.other.as_ref().unwrap();
    assert!(!other.steps.iter().any(|s| matches!(s, Step::Versions(_))));
    assert!(others(outer).contains(&Any::Gather));
}

#[test]
fn long_computations_are_not_there_twice() {
    let body = |n: u32| {
        let sums = (0..n).map(|i| format!("  %{}: <16 x i32> = add %{}, %10\n", 11 + i, 10 + i));
        let end = 10 + n;
        let store = format!("  store.slm.i32x1[0] %0, %3, %{end}\n");
        format!("{LOAD}{}{store}", sums.collect::<String>())
    };
    let shapes = [affine(2, 4), affine(4, 4)];
    for (n, there) in [(12, true), (13, false)] {
        for limits in [&WHOLE, &PARTS] {
            let (_, plan) = plan(&body(n), &shapes, limits);
            assert_eq!(has_versions(&plan), there, "{n}");
        }
    }
}

/// Vectors that only versions read would be computed in both.
#[test]
fn vectors_that_sink_count_as_computed_twice() {
    // What comes in front of the first access is in front of the test.
    let body = |n: u32| {
        let sum = |i| match i {
            0 => "  %10: <16 x i32> = add %3, %3\n".to_owned(),
            i => format!("  %{}: <16 x i32> = add %{}, %3\n", 10 + i, 9 + i),
        };
        let (sums, last) = ((0..n).map(sum).collect::<String>(), 9 + n);
        let store = format!("  store.slm.i32x1[0] %0, %3, %{last}\n");
        format!("{sums}{store}{store}")
    };
    let shapes = [affine(2, 4), affine(4, 4)];
    for (n, there) in [(12, true), (13, false)] {
        let (_, whole) = plan(&body(n), &shapes, &WHOLE);
        assert_eq!(has_versions(&whole), there, "{n}");
        let (_, parts) = plan(&body(n), &shapes, &PARTS);
        assert!(has_versions(&parts));
    }
}

#[test]
fn versions_meet_where_others_use_what_they_make() {
    let body = "  %10: <16 x i32> = load.slm.i32x1[0] %0, %3\n  %11: <16 x i32> = load.slm.i32x1[0] %0, %3\n  \
                %12: <16 x i32> = add %10, %11\n  jump bb1\nbb1:\n  framestore[0] %12\n";
    let (_, plan) = plan(body, &[affine(2, 4), affine(4, 4)], &WHOLE);
    let two = versions(steps(&plan));
    assert!(two.meet);
    assert_eq!(two.out, [Value(12)]);
    assert_eq!(two.made, [Value(10), Value(11), Value(12)]);
}

/// What only versions of an earlier block made is not there any more: an access that finds it through the definition of another value
/// must not use it.
#[test]
fn values_of_versions_are_lost_after_them() {
    let body = "  %9: i32 = const 8\n  %10: <16 x i32> = load.slm.i32x1[0] %0, %3\n  %11: <16 x i32> = load.slm.i32x1[0] %0, %3\n  \
                %12: i32 = mul %2, %4\n  %13: i32 = add %12, %9\n  jump bb1\nbb1:\n  framestore[0] %13\n  \
                %14: <16 x i32> = load.slm.i32x1[0] %0, %3\n  %15: <16 x i32> = load.slm.i32x1[0] %0, %3\n";
    let shapes = [affine(2, 4), affine(4, 4), affine(13, 4), affine(13, 4)];
    for limits in [&WHOLE, &PARTS] {
        let (_, plan) = plan(body, &shapes, limits);
        let blocks = plan.blocks();
        assert_eq!(versions(&blocks[0].1.steps).out, [Value(13)]);
        let later = versions(&blocks[1].1.steps);
        assert!(
            later
                .accesses
                .iter()
                .all(|a| a.reach.root == Root::Value(Value(13)))
        );
    }
}

#[test]
fn a_plan_is_a_line_for_each_access() {
    let body = "  %10: <16 x i32> = load.slm.i32x1[0] %0, %3  ; line 3\n  %11: <16 x i32> = load.slm.i32x1[0] %0, %3  ; line 4\n  \
                store.slm.i32x1[0] %1, %3, %3  ; line 5\n";
    let text = |limits: &Limits| {
        let (f, plan) = plan(body, &[affine(2, 4), affine(7, 0), ANY], limits);
        let lines = plan.lines(&f);
        lines.iter().map(|l| format!("{l}\n")).collect::<String>()
    };
    // One kind's versions go on to the end of the block.
    let whole = "\
line 3     versions: two; a test in front is about 2 accesses (1 bounds test; 3 instructions in the other)
  line 3     load.slm.i32x1, 16 lanes: whole vectors (affine, 4 bytes from lane to lane; tested in front; else a call of the runtime, 16 lanes one by one)
  line 4     load.slm.i32x1, 16 lanes: one scalar for all lanes (one address; in the bounds test of an access before; else a call of the runtime, 16 lanes one by one)
  line 5     store.slm.i32x1, 16 lanes: 16 scalars (any addresses: few such accesses; one test whether all lanes are inside)
";
    assert_eq!(text(&WHOLE), whole);
    let parts = "\
line 3     versions: two; a test in front is about 2 accesses (1 bounds test; 2 instructions in the other)
  line 3     load.slm.i32x1, 16 lanes: whole vectors (affine, 4 bytes from lane to lane; tested in front; else gather or scatter)
  line 4     load.slm.i32x1, 16 lanes: one scalar for all lanes (one address; in the bounds test of an access before; else gather or scatter)
line 5     store.slm.i32x1, 16 lanes: gather or scatter (any addresses: the processor's scatters take such elements)
";
    assert_eq!(text(&PARTS), parts);
    let alone = with(&WHOLE, |l| l.bounds = Tests::Inline);
    let inline = "\
line 3     load.slm.i32x1, 16 lanes: whole vectors (affine, 4 bytes from lane to lane; a bounds test of its own; else a call of the runtime, 16 lanes one by one)
line 4     load.slm.i32x1, 16 lanes: one scalar for all lanes (one address; a bounds test of its own; else a call of the runtime, 16 lanes one by one)
line 5     store.slm.i32x1, 16 lanes: 16 scalars (any addresses: few such accesses; one test whether all lanes are inside)
";
    assert_eq!(text(&alone), inline);
}

#[test]
fn a_plan_says_how_narrow_elements_are_accessed() {
    let body = "  %10: <16 x i64> = zext %3\n  %11: <16 x i64> = splat %8\n  %12: <16 x i64> = add %10, %11\n  \
                %13: <16 x i8> = load.flat.i8x1[0] %0, %12  ; line 3\n  %14: <16 x i8> = load.slm.i8x1[0] %0, %3  ; line 4\n  \
                store.flat.i8x1[0] %1, %12, %13  ; line 5\n";
    let text = |limits: &Limits| {
        let (f, plan) = plan(body, &[ANY, ANY, ANY], limits);
        let lines = plan.lines(&f);
        lines.iter().map(|l| format!("{l}\n")).collect::<String>()
    };
    let loads = "\
line 3     load.flat.i8x1, 16 lanes: gather or scatter (scaled 32-bit numbers, which bounds are tested on: gathers of the words of 4 bytes from there on)
line 4     load.slm.i8x1, 16 lanes: gather or scatter (any addresses: gathers of the words of 4 bytes around the elements)
";
    let store = "\
line 5     store.flat.i8x1, 16 lanes: whole vectors (affine, 1 bytes from lane to lane, where a comparison of the lanes finds that; a bounds test for each lane; stores enabled lanes; else 16 scalars)
";
    assert_eq!(text(&PARTS), format!("{loads}{store}"));
    let store = "\
line 5     store.flat.i8x1, 16 lanes: 16 scalars (scaled 32-bit numbers, which bounds are tested on: a loop over the lanes that are enabled and inside)
";
    let none = with(&PARTS, |l| l.masked_stores = MaskedStores::None);
    assert_eq!(text(&none), format!("{loads}{store}"));
}

#[test]
fn remarks_are_those_of_the_usual_way() {
    use crate::ssa::remark::{BoundsTest, Decision, Way};
    let (f, plan) = plan(TWO, &[affine(2, 4), affine(7, 0)], &WHOLE);
    let decisions: Vec<Decision> = plan.remarks(&f).iter().map(|r| r.decision).collect();
    let access = |way, bounds| Decision::Access { way, bounds };
    assert_eq!(
        decisions,
        [
            access(Way::Vector, BoundsTest::Tested),
            access(Way::Broadcast, BoundsTest::Shared),
            Decision::Versioned { accesses: 2 },
        ]
    );
}

/// How the atomics of a body are done.
fn atomics(body: &str, limits: &Limits) -> Vec<AtomicHow> {
    let (_, plan) = plan(body, &[], limits);
    let steps = steps(&plan).iter();
    steps
        .filter_map(|step| match step {
            Step::Atomic(_, how) => Some(*how),
            _ => None,
        })
        .collect()
}

#[test]
fn atomics_are_straight_where_they_are_few() {
    const LOCAL: &str = "  %N: <16 x i32> = atomic.slm.add.i32[0] %1, %3, %3\n";
    const DEVICE: &str = "  %N: i32 = atomic.flat.add.i32[0] %5, %8, %4\n";
    const FLOAT: &str = "  %N: <16 x i32> = atomic.slm.fadd.i32[0] %1, %3, %3\n";
    let numbered = |parts: &[&str]| -> String {
        let named = parts.iter().enumerate();
        let named = named.map(|(n, part)| part.replace("%N", &format!("%{}", n + 9)));
        named.collect()
    };
    let how = |way, locked, read| AtomicHow {
        way,
        locked,
        read,
        gathered: false,
    };
    let body = numbered(&[LOCAL, &LOCAL.replace("%3, %3", "%3, %9"), DEVICE, FLOAT]);
    let expected = [
        how(AtomicWay::Straight, false, true),
        how(AtomicWay::Straight, false, false),
        how(AtomicWay::Scalar, true, false),
        how(AtomicWay::Message, false, false),
    ];
    assert_eq!(atomics(&body, &WHOLE), expected);
    let on_surface = |op: &str| {
        let atomic = format!("  %9: <16 x i32> = atomic.surface.{op}.i32[0] %1, %3, %4, %3\n");
        atomics(&atomic, &WHOLE)[0]
    };
    assert_eq!(on_surface("add"), how(AtomicWay::Straight, true, false));
    // Each lane asks whether it changes its element, which would be long too.
    assert_eq!(on_surface("umin"), how(AtomicWay::Loop, true, false));
    // Addresses may not be aligned, which the instructions of other processors do not take.
    let aligned = with(&WHOLE, |l| l.unaligned_atomics = false);
    let way = atomics(&body, &aligned)[2].way;
    assert_eq!(way, AtomicWay::Message);
    // Straight code of many would be long. A scalar is no such code.
    let eight = numbered(&[LOCAL; 8]) + &DEVICE.replace("%N", "%17");
    let nine = numbered(&[LOCAL; 9]);
    assert_eq!(atomics(&eight, &WHOLE)[0].way, AtomicWay::Straight);
    assert_eq!(atomics(&nine, &WHOLE)[0].way, AtomicWay::Loop);
    let wide = "  %9: <32 x i1> = vconst [1 ...]\n  %10: <32 x i32> = vconst [0 ...]\n  %11: <32 x i32> = atomic.slm.add.i32[0] %9, %10, %10\n";
    assert_eq!(atomics(wide, &WHOLE)[0].way, AtomicWay::Straight);
}

#[test]
fn a_gather_finds_lanes_that_change_a_minimum() {
    let of = |op: &str, limits: &Limits| {
        let head = "  %9: i32 = const 1\n";
        let atomic = format!("  %10: <16 x i32> = atomic.surface.{op}.i32[0] %1, %3, %9, %3\n");
        atomics(&(head.to_owned() + &atomic), limits)[0]
    };
    for op in ["umin", "umax", "smin", "smax"] {
        assert!(of(op, &PARTS).gathered, "{op}");
        assert!(!of(op, &WHOLE).gathered, "{op}");
        let call = with(&PARTS, |l| l.gather = Gather::Call);
        assert!(!of(op, &call).gathered, "{op}");
    }
    assert!(!of("add", &PARTS).gathered);
    // What is read may come from the lane before; local memory needs no locked instruction.
    let read = "  %9: <16 x i32> = atomic.flat.umin.i32[0] %1, %10, %3\n";
    let body = format!("  %10: <16 x i64> = splat %8\n{read}  framestore[0] %9\n");
    assert!(!atomics(&body, &PARTS)[0].gathered);
    let local = "  %9: <16 x i32> = atomic.slm.umin.i32[0] %1, %3, %3\n";
    assert!(!atomics(local, &PARTS)[0].gathered);
}

#[test]
fn a_plan_names_atomics() {
    let body = "  %9: <16 x i32> = atomic.slm.add.i32[0] %1, %3, %3  ; line 3\n";
    let (f, plan) = plan(body, &[], &WHOLE);
    let lines: Vec<String> = plan.lines(&f).iter().map(|l| l.to_string()).collect();
    let line = "line 3     atomic.slm.add.i32, 16 lanes: 16 scalars (threads of a group take turns; straight code where all lanes are \
                enabled and inside)";
    assert_eq!(lines, [line]);
    let (f, plan) = self::plan(
        &body
            .replace("slm", "surface")
            .replace("%3, %3", "%3, %4, %3"),
        &[],
        &WHOLE,
    );
    let line = plan.lines(&f)[0].to_string();
    assert!(
        line.contains("16 scalars (atomic instructions of the processor; straight code"),
        "{line}"
    );
}
