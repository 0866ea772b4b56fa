//! Every operation without effect, on all lane types and counts.

use visa_jit::ssa::{BinOp, ByteSigns, Conv, FCond, FpEnvOp, ICond, Lane, Op, Ty, UnOp};

use crate::cases::{Arg, Case, FLOATS, INTS, lane_counts};
use visa_test_common::{Rng, full};

const ROUNDS: usize = 12;

fn each_ty(lanes: &[Lane], mut body: impl FnMut(Ty)) {
    for &lane in lanes {
        for &n in lane_counts() {
            body(Ty::vector(lane, n));
        }
    }
}

#[test]
fn integer_unary() {
    let mut rng = Rng::new(11);
    each_ty(&INTS, |ty| {
        use UnOp::{BitRev, Clz, Ctz, Neg, Not, Popcnt};
        for op in [Neg, Not, Clz, Ctz, Popcnt, BitRev] {
            Case::new(Op::Unary(op), &[ty], ty).check(&mut rng, ROUNDS);
        }
    });
}

#[test]
fn float_unary() {
    let mut rng = Rng::new(12);
    each_ty(&FLOATS, |ty| {
        use UnOp::{FAbs, FCeil, FFloor, FNearest, FNeg, FSqrt, FTrunc};
        for op in [FNeg, FAbs, FSqrt, FFloor, FCeil, FTrunc, FNearest] {
            Case::new(Op::Unary(op), &[ty], ty).check(&mut rng, ROUNDS);
        }
    });
}

#[test]
fn integer_arithmetic() {
    use BinOp::{
        Add, And, Mul, MulHiS, MulHiU, Or, SAddSat, SMax, SMin, SSubSat, Sub, UAddSat, UMax, UMin,
        USubSat, Xor,
    };
    let mut rng = Rng::new(13);
    each_ty(&INTS, |ty| {
        for op in [
            Add, Sub, Mul, MulHiS, MulHiU, And, Or, Xor, SMin, SMax, UMin, UMax, SAddSat, SSubSat,
            UAddSat, USubSat,
        ] {
            Case::new(Op::Binary(op), &[ty, ty], ty).check(&mut rng, ROUNDS);
        }
    });
}

#[test]
fn division() {
    let mut rng = Rng::new(14);
    each_ty(&INTS, |ty| {
        for op in [BinOp::SDiv, BinOp::UDiv, BinOp::SRem, BinOp::URem] {
            Case::new(Op::Binary(op), &[ty, ty], ty).check(&mut rng, 3 * ROUNDS);
        }
    });
}

#[test]
fn shifts() {
    let mut rng = Rng::new(15);
    let mut turn = 0;
    each_ty(&INTS, |ty| {
        use BinOp::{AShr, LShr, Rotl, Rotr, Shl};
        let uneven: Vec<u64> = (0..u64::from(ty.lanes)).map(|i| i * 7 % 97).collect();
        for op in [Shl, LShr, AShr, Rotl, Rotr] {
            let counts = [
                Arg::Input(ty),
                Arg::Splat(ty),
                Arg::Input(Ty::scalar(ty.lane)),
                Arg::Const(ty, vec![3; usize::from(ty.lanes)]),
                Arg::Const(ty, vec![77; usize::from(ty.lanes)]),
                Arg::Const(ty, uneven.clone()),
            ];
            for count in counts {
                // Kinds of counts take turns in a plain run.
                turn += 1;
                if !full() && turn % 7 % 2 != 0 {
                    continue;
                }
                let case = Case {
                    op: Op::Binary(op),
                    args: vec![Arg::Input(ty), count],
                    results: vec![ty],
                };
                case.check(&mut rng, ROUNDS);
            }
        }
    });
}

#[test]
fn sums_of_products_of_bytes() {
    let mut rng = Rng::new(17);
    each_ty(&[Lane::I32], |ty| {
        for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
            let op = Op::Dot4(ByteSigns { a, b });
            let zero = Arg::Const(ty, vec![0; usize::from(ty.lanes)]);
            for args in [
                [Arg::Input(ty), Arg::Input(ty), Arg::Input(ty)],
                [zero, Arg::Input(ty), Arg::Splat(ty)],
                [Arg::Input(ty), Arg::Splat(ty), Arg::Input(ty)],
            ] {
                let case = Case {
                    op: op.clone(),
                    args: args.into(),
                    results: vec![ty],
                };
                case.check(&mut rng, ROUNDS);
            }
        }
    });
}

#[test]
fn float_arithmetic() {
    let mut rng = Rng::new(16);
    each_ty(&FLOATS, |ty| {
        for op in [BinOp::FAdd, BinOp::FSub, BinOp::FMul, BinOp::FDiv] {
            Case::new(Op::Binary(op), &[ty, ty], ty).check(&mut rng, ROUNDS);
        }
        Case::new(Op::Fma, &[ty, ty, ty], ty).check(&mut rng, ROUNDS);
    });
}

const ICONDS: [ICond; 10] = [
    ICond::Eq,
    ICond::Ne,
    ICond::Slt,
    ICond::Sle,
    ICond::Sgt,
    ICond::Sge,
    ICond::Ult,
    ICond::Ule,
    ICond::Ugt,
    ICond::Uge,
];

#[test]
fn comparisons() {
    let mut rng = Rng::new(17);
    each_ty(&[Lane::I1], |ty| {
        for cond in [ICond::Eq, ICond::Ne] {
            Case::new(Op::ICmp(cond), &[ty, ty], ty).check(&mut rng, ROUNDS);
        }
    });
    each_ty(&INTS, |ty| {
        for cond in ICONDS {
            let mask = ty.with_lane(Lane::I1);
            Case::new(Op::ICmp(cond), &[ty, ty], mask).check(&mut rng, ROUNDS);
        }
    });
    each_ty(&FLOATS, |ty| {
        use FCond::{Eq, Ge, Gt, Le, Lt, Ne};
        for cond in [Eq, Ne, Lt, Le, Gt, Ge] {
            let mask = ty.with_lane(Lane::I1);
            Case::new(Op::FCmp(cond), &[ty, ty], mask).check(&mut rng, ROUNDS);
        }
    });
}

#[test]
fn selects() {
    let mut rng = Rng::new(18);
    let lanes = [INTS.as_slice(), &FLOATS, &[Lane::I1]].concat();
    each_ty(&lanes, |ty| {
        let mask = ty.with_lane(Lane::I1);
        Case::new(Op::Select, &[mask, ty, ty], ty).check(&mut rng, ROUNDS);
        Case::new(Op::Select, &[Ty::BOOL, ty, ty], ty).check(&mut rng, ROUNDS);
    });
}

/// The comparison may be made the other way round for the choice.
#[test]
fn selects_by_comparisons() {
    let mut rng = Rng::new(28);
    each_ty(&INTS, |ty| {
        for cond in ICONDS {
            // Zeros elsewhere are a case of their own.
            let same = |bits| Arg::Const(ty, vec![bits; usize::from(ty.lanes)]);
            for other in [Arg::Input(ty), same(0), same(5)] {
                let case = Case {
                    op: Op::Select,
                    args: vec![Arg::Compared(cond, ty), Arg::Input(ty), other],
                    results: vec![ty],
                };
                case.check(&mut rng, ROUNDS);
            }
        }
    });
}

#[test]
fn masks() {
    let mut rng = Rng::new(19);
    each_ty(&[Lane::I1], |ty| {
        Case::new(Op::Unary(UnOp::Not), &[ty], ty).check(&mut rng, ROUNDS);
        for op in [BinOp::And, BinOp::Or, BinOp::Xor] {
            Case::new(Op::Binary(op), &[ty, ty], ty).check(&mut rng, ROUNDS);
        }
        Case::new(Op::MaskAny, &[ty], Ty::BOOL).check(&mut rng, ROUNDS);
        Case::new(Op::MaskAll, &[ty], Ty::BOOL).check(&mut rng, ROUNDS);
        Case::new(Op::MaskToBits, &[ty], Ty::I32).check(&mut rng, ROUNDS);
        Case::new(Op::BitsToMask, &[Ty::I32], ty).check(&mut rng, ROUNDS);
        Case::new(Op::Splat, &[Ty::BOOL], ty).check(&mut rng, ROUNDS);
        for &lane in &INTS {
            let ints = ty.with_lane(lane);
            Case::new(Op::Convert(Conv::SExt), &[ty], ints).check(&mut rng, ROUNDS);
            Case::new(Op::Convert(Conv::ZExt), &[ty], ints).check(&mut rng, ROUNDS);
            Case::new(Op::Convert(Conv::Trunc), &[ints], ty).check(&mut rng, ROUNDS);
        }
    });
}

/// Of which every lane is the same bit, at the widths of what is chosen and compared.
#[test]
fn masks_of_one_bit() {
    let mut rng = Rng::new(29);
    each_ty(&INTS, |ty| {
        let mask = ty.with_lane(Lane::I1);
        let mut check = |op, others: &[Arg], result| {
            let mut args = vec![Arg::Splat(mask)];
            args.extend_from_slice(others);
            let results = vec![result];
            Case { op, args, results }.check(&mut rng, 4 * ROUNDS);
        };
        check(Op::Select, &[Arg::Input(ty), Arg::Input(ty)], ty);
        for op in [BinOp::And, BinOp::Or, BinOp::Xor] {
            let compared = Arg::Compared(ICond::Slt, ty);
            check(Op::Binary(op), &[compared], mask);
        }
        check(Op::Unary(UnOp::Not), &[], mask);
        check(Op::MaskToBits, &[], Ty::I32);
    });
}

#[test]
fn conversions() {
    let mut rng = Rng::new(20);
    let mut check = |conv: Conv, from: Lane, to: Lane| {
        for &n in lane_counts() {
            let (from, to) = (Ty::vector(from, n), Ty::vector(to, n));
            Case::new(Op::Convert(conv), &[from], to).check(&mut rng, 2 * ROUNDS);
        }
    };
    for a in INTS {
        for b in INTS {
            if a.bits() < b.bits() {
                check(Conv::SExt, a, b);
                check(Conv::ZExt, a, b);
                check(Conv::Trunc, b, a);
            }
        }
        for float in FLOATS {
            check(Conv::SIToF, a, float);
            check(Conv::UIToF, a, float);
            check(Conv::FToSI, float, a);
            check(Conv::FToUI, float, a);
        }
    }
    check(Conv::FPromote, Lane::F32, Lane::F64);
    check(Conv::FDemote, Lane::F64, Lane::F32);
    for float in FLOATS {
        check(Conv::F16ToF, Lane::I16, float);
        check(Conv::FToF16, float, Lane::I16);
    }
}

/// All halves to float and back; all floats near the edges of binary16.
#[test]
fn halves() {
    let mut rng = Rng::new(21);
    let ty = Ty::vector(Lane::I16, 32);
    for float in FLOATS {
        let wide = ty.with_lane(float);
        for first in (0..=0xFFFFu64).step_by(if full() { 2048 } else { 3 * 2048 }) {
            let values: Vec<u64> = (0..32).map(|i| first + i * 64 + rng.bits() % 64).collect();
            let case = Case {
                op: Op::Convert(Conv::F16ToF),
                args: vec![Arg::Const(ty, values)],
                results: vec![wide],
            };
            case.check(&mut rng, 1);
        }
        for exponent in (-30..18).step_by(if full() { 1 } else { 3 }) {
            let values: Vec<u64> = (0..32)
                .map(|i| {
                    let step = f64::from(i % 16) / 16.0;
                    let near = if i < 16 { 0.0 } else { 2f64.powi(-40) };
                    let x = (1.0 + step / 64.0 + near) * 2f64.powi(exponent);
                    match float {
                        Lane::F32 => u64::from((x as f32).to_bits()),
                        _ => x.to_bits(),
                    }
                })
                .collect();
            let case = Case {
                op: Op::Convert(Conv::FToF16),
                args: vec![Arg::Const(wide, values)],
                results: vec![ty],
            };
            case.check(&mut rng, 1);
        }
    }
}

#[test]
fn bitcasts() {
    let mut rng = Rng::new(22);
    let lanes = [INTS.as_slice(), &FLOATS].concat();
    for &from in &lanes {
        for &n in lane_counts() {
            let bits = from.bits() * u32::from(n);
            for &to in &lanes {
                if bits.is_multiple_of(to.bits()) {
                    let to = Ty::vector(to, (bits / to.bits()) as u16);
                    let from = Ty::vector(from, n);
                    Case::new(Op::Bitcast, &[from], to).check(&mut rng, 4);
                }
            }
        }
    }
}

#[test]
fn lanes() {
    let mut rng = Rng::new(23);
    let all = [INTS.as_slice(), &FLOATS, &[Lane::I1]].concat();
    each_ty(&all, |ty| {
        let one = Ty::scalar(ty.lane);
        Case::new(Op::Splat, &[one], ty).check(&mut rng, 4);
        for k in [0, 1, 2, 7, 15, 31] {
            if k < ty.lanes {
                Case::new(Op::ExtractLane(k), &[ty], one).check(&mut rng, 4);
                Case::new(Op::InsertLane(k), &[ty, one], ty).check(&mut rng, 4);
            }
        }
    });
}

#[test]
fn shuffles() {
    let mut rng = Rng::new(24);
    let all = [INTS.as_slice(), &FLOATS, &[Lane::I1]].concat();
    let mut turn = 0;
    for &lane in &all {
        for (a, b) in [
            (8, 0),
            (16, 0),
            (32, 0),
            (8, 8),
            (16, 16),
            (4, 1),
            (1, 1),
            (5, 3),
            (24, 8),
        ] {
            for (name, n, pick) in patterns(a + b) {
                turn += 1;
                // Seven types of lanes take turns in a plain run.
                if !full() && turn % 9 != 0 {
                    continue;
                }
                let indices: Vec<u16> = (0..n).map(|i| pick(i, &mut rng)).collect();
                let mut args = vec![Ty::vector(lane, a)];
                if b > 0 {
                    args.push(Ty::vector(lane, b));
                }
                assert!(indices.iter().all(|&i| i < a + b), "{name}");
                let case = Case::new(Op::Shuffle(indices.into()), &args, Ty::vector(lane, n));
                case.check(&mut rng, 3);
            }
        }
    }
}

type Pick = Box<dyn Fn(u16, &mut Rng) -> u16>;
type Pattern = (&'static str, u16, Pick);

fn patterns(total: u16) -> Vec<Pattern> {
    let mut all: Vec<Pattern> = Vec::new();
    let mut add = |name, n: u16, f: Pick| {
        if (1..=32).contains(&n) {
            all.push((name, n, f));
        }
    };
    add("same", total, Box::new(|i, _| i));
    add("low half", total / 2, Box::new(|i, _| i));
    add("high half", total / 2, Box::new(move |i, _| i + total / 2));
    add("even", total / 2, Box::new(|i, _| 2 * i));
    add("odd", total / 2, Box::new(|i, _| 2 * i + 1));
    add("stride 4", total / 4, Box::new(|i, _| 4 * i));
    add("twice", total, Box::new(|i, _| i / 2));
    add(
        "interleave",
        total,
        Box::new(move |i, _| (i / 2 + i % 2 * (total / 2)) % total),
    );
    add("reverse", total, Box::new(move |i, _| total - 1 - i));
    add("rotate", total, Box::new(move |i, _| (i + 3) % total));
    add("splat", 16, Box::new(move |_, _| total - 1));
    add("one", 1, Box::new(move |_, _| total / 2));
    add(
        "any",
        5,
        Box::new(move |_, r| r.below(usize::from(total)) as u16),
    );
    add(
        "any",
        16,
        Box::new(move |_, r| r.below(usize::from(total)) as u16),
    );
    add(
        "any",
        32,
        Box::new(move |_, r| r.below(usize::from(total)) as u16),
    );
    all
}

#[test]
fn operations_under_a_control_register() {
    let mut rng = Rng::new(25);
    let mut turn = 0;
    let mut check = |op: FpEnvOp, args: &[Ty], to: Ty| {
        // In a plain run an operation meets each value at some numbers of lanes.
        turn += 1;
        for (n, cr0) in [0u64, 0x4C0, 0x10, 0x20, 0x30, 0x4F0]
            .into_iter()
            .enumerate()
        {
            if !full() && (turn + n) % 6 != 0 {
                continue;
            }
            let mut all = vec![Arg::Const(Ty::I32, vec![cr0])];
            all.extend(args.iter().map(|&ty| Arg::Input(ty)));
            let case = Case {
                op: Op::FpEnv(op),
                args: all,
                results: vec![to],
            };
            case.check(&mut rng, 3);
        }
    };
    for n in [1, 3, 8, 16, 32] {
        for float in FLOATS {
            let ty = Ty::vector(float, n);
            for op in [FpEnvOp::Add, FpEnvOp::Mul, FpEnvOp::Div] {
                check(op, &[ty, ty], ty);
            }
            check(FpEnvOp::Fma, &[ty, ty, ty], ty);
            check(FpEnvOp::Sqrt, &[ty], ty);
            check(FpEnvOp::Flush, &[ty], ty);
            for int in INTS {
                check(FpEnvOp::SIToF, &[ty.with_lane(int)], ty);
                check(FpEnvOp::UIToF, &[ty.with_lane(int)], ty);
            }
        }
        let (half, single, double) = (
            Ty::vector(Lane::I16, n),
            Ty::vector(Lane::F32, n),
            Ty::vector(Lane::F64, n),
        );
        for (from, to) in [
            (half, single),
            (single, half),
            (single, double),
            (double, single),
            (double, half),
        ] {
            check(FpEnvOp::FToF, &[from], to);
        }
    }
}
