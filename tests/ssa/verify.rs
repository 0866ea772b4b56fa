//! Each rule of the verifier has a function that breaks it and no other.

use visa_jit::ssa::shape::{Affine, Shape};
use visa_jit::ssa::verify::Rule;
use visa_jit::ssa::{Block, Exchange, Function, Inst, Op, Ty, Value, ValueDef, parse, verify};

/// The rules that a function breaks.
fn broken(f: &Function) -> Vec<Rule> {
    match verify(f) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(|e| e.rule).collect(),
    }
}

const HEAD: &str = "function \"f\" simd 8 regs 16 frame 64
site 0 = read surface 4 \"gather\" line 1

bb0:
  %0: <8 x i1> = input.dispatchmask
  %1: i32 = const 1
  %2: <8 x i32> = splat %1
  %3: i1 = const 1
  %4: f32 = const 1.0
  %5: i64 = const 1
";

fn body(lines: &[&str]) -> Function {
    let mut text = HEAD.to_string();
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn assert_breaks(rule: Rule, lines: &[&str]) {
    assert_eq!(broken(&body(lines)), [rule], "{lines:?}");
}

fn assert_op_breaks(rule: Rule, op: &str) {
    assert_breaks(rule, &[op, "return"]);
}

#[test]
fn v1_layout() {
    let mut f = body(&["jump bb1", "bb1:", "return"]);
    f.order.pop();
    assert_eq!(broken(&f), [Rule::Layout]);
    f.order.extend([Block(1), Block(1)]);
    assert_eq!(broken(&f), [Rule::Layout]);
    f.order = vec![Block(1), Block(0)];
    assert_eq!(broken(&f), [Rule::Layout]);
    f.order = vec![Block(0), Block(1), Block(7)];
    assert_eq!(broken(&f), [Rule::Layout]);
}

#[test]
fn v2_entry() {
    assert_breaks(Rule::Entry, &["jump bb0"]);
    let mut f = body(&["return"]);
    f.add_param(Function::ENTRY, Ty::I32);
    assert_eq!(broken(&f), [Rule::Entry]);
}

#[test]
fn v3_end() {
    assert_breaks(Rule::End, &["none"]);
}

#[test]
fn v4_owner() {
    let mut f = body(&["return"]);
    let first = f.block(Function::ENTRY).insts[0];
    f.block_mut(Function::ENTRY).insts.push(first);
    assert_eq!(broken(&f), [Rule::Owner]);
    let mut f = body(&["return"]);
    f.values[1].def = ValueDef::Result(Inst(0), 0);
    assert_eq!(broken(&f), [Rule::Owner]);
}

#[test]
fn v5_dominance() {
    assert_breaks(
        Rule::Dominance,
        &["%6: i32 = neg %7", "%7: i32 = neg %1", "return"],
    );
    assert_breaks(
        Rule::Dominance,
        &[
            "branch %3, bb1, bb2",
            "bb1:",
            "%6: i32 = neg %1",
            "jump bb2",
            "bb2:",
            "%7: i32 = neg %6",
            "return",
        ],
    );
}

#[test]
fn v6_alias() {
    let mut f = body(&["%6: i32 = neg %1", "%7: i32 = neg %6", "return"]);
    f.replace(Value(6), Value(1));
    assert_eq!(broken(&f), [Rule::Alias]);
    let mut resolved = f.clone();
    resolved.resolve_aliases();
    assert_eq!(broken(&resolved), []);
    // Without the instruction that made it, the operand alone is wrong.
    f.block_mut(Function::ENTRY).insts.remove(6);
    assert_eq!(broken(&f), [Rule::Alias]);
}

#[test]
fn v7_arguments() {
    assert_breaks(Rule::Arguments, &["jump bb1", "bb1(%6: i32):", "return"]);
    assert_breaks(
        Rule::Arguments,
        &["jump bb1(%2)", "bb1(%6: i32):", "return"],
    );
}

#[test]
fn v8_condition() {
    assert_breaks(Rule::Condition, &["branch %0, bb1, bb1", "bb1:", "return"]);
    assert_breaks(
        Rule::Condition,
        &["switch %3, [bb1], bb1", "bb1:", "return"],
    );
}

#[test]
fn v9_suspend() {
    assert_breaks(Rule::Suspend, &["suspend 1"]);
    assert_op_breaks(Rule::Suspend, "%6: i32 = input.state");
    assert_eq!(broken(&body(&["barrier", "return"])), []);
    let mut both = body(&["barrier", "suspend 1"]);
    both.states = 1;
    assert_eq!(broken(&both), [Rule::Suspend]);
    let mut both = body(&["%6: i32 = exchange %1", "return"]);
    assert_eq!(broken(&both), []);
    both.states = 1;
    assert_eq!(broken(&both), [Rule::Suspend]);
    assert_op_breaks(Rule::Types, "%6: f32 = exchange %4");
    let exchange = |offset, bytes, lines: &[u32]| {
        let mut f = body(&["suspend 1"]);
        f.states = 1;
        f.exchange = Some(Exchange {
            offset,
            bytes,
            lines: lines.to_vec(),
        });
        broken(&f)
    };
    assert_eq!(exchange(16, 24, &[7]), []);
    assert_eq!(exchange(16, 25, &[7]), [Rule::Frame]);
    assert_eq!(exchange(8, 16, &[7]), [Rule::Frame]);
    assert_eq!(exchange(16, 16, &[7, 8]), [Rule::Suspend]);
}

#[test]
fn v10_types() {
    for op in [
        "%6: i32 = add %1, %5",
        "%6: f32 = add %4, %4",
        "%6: i1 = add %3, %3",
        "%6: i32 = fadd %1, %1",
        "%6: i64 = neg %1",
        "%6: i32 = fneg %1",
        "%6: f32 = not %4",
        "%6: <8 x i32> = add %2, %1",
        "%6: <8 x i32> = shl %2, %5",
        "%6: f32 = fma %4, %4, %1",
        "%6: i1 = icmp.eq %4, %4",
        "%6: i1 = icmp.slt %3, %3",
        "%6: i1 = fcmp.eq %1, %1",
        "%6: i1 = icmp.eq %2, %2",
        "%6: i32 = select %0, %1, %1",
        "%6: i32 = sext %5",
        "%6: i64 = trunc %1",
        "%6: i32 = ftosi %1",
        "%6: f32 = fdemote %4",
        "%6: f32 = f16tof %1",
        "%6: i64 = bitcast %1",
        "%6: i8 = bitcast %0",
        "%6: f32 = fpenv.add %1, %4",
        "%6: f32 = fpenv.add %5, %4, %4",
        "%6: f32 = fpenv.ftof %1, %5",
        "%6: <8 x i32> = splat %5",
        "%6: i64 = extractlane[0] %2",
        "%6: <8 x i32> = insertlane[0] %2, %5",
        "%6: <2 x i32> = shuffle[0, 1, 2] %2",
        "%6: <2 x i64> = shuffle[0, 1] %2",
        "%6: i1 = maskany %2",
        "%6: i64 = masktobits %0",
        "%6: <16 x i32> = bitstomask %1",
        "fence %1",
        "%6: i64 = input.r0[1]",
        "%6: i32 = const 1 %1",
        "add %1, %1",
    ] {
        assert_op_breaks(Rule::Types, op);
    }
}

#[test]
fn v11_constants() {
    assert_op_breaks(Rule::Constants, "%6: i8 = const 256");
    assert_op_breaks(Rule::Constants, "%6: <2 x i8> = vconst [0, 0x100]");
    assert_op_breaks(Rule::Constants, "%6: <2 x i8> = vconst [0]");
    assert_op_breaks(Rule::Constants, "%6: <2 x i8> = const 0");
}

#[test]
fn v12_lane_numbers() {
    assert_op_breaks(Rule::LaneNumbers, "%6: i32 = extractlane[8] %2");
    assert_op_breaks(Rule::LaneNumbers, "%6: <8 x i32> = insertlane[8] %2, %1");
    assert_op_breaks(Rule::LaneNumbers, "%6: <2 x i32> = shuffle[8, 9] %2, %1");
}

#[test]
fn v13_lanes() {
    assert_op_breaks(Rule::Lanes, "%6: <513 x i32> = splat %1");
    assert_op_breaks(Rule::Lanes, "%6: <0 x i32> = splat %1");
    let mut f = body(&["return"]);
    f.simd = 7;
    assert!(broken(&f).contains(&Rule::Lanes));
    for row in [0, 1, 3, 8, 16] {
        let mut f = body(&["return"]);
        f.row = Some(row);
        assert!(broken(&f).contains(&Rule::Lanes), "{row}");
    }
}

#[test]
fn v14_inputs() {
    for op in [
        "%6: <32 x i16> = input.localids.x[1]",
        "%6: <8 x i32> = input.localids.x[0]",
        "%6: i16 = input.localid.x[32]",
        "%6: <16 x i1> = input.dispatchmask",
        "%6: i1 = input.payload[0]",
        "%6: i32 = input.r0[16]",
        "%6: i32 = input.sr0[4]",
    ] {
        assert_op_breaks(Rule::Inputs, op);
    }
}

#[test]
fn v15_memory() {
    for op in [
        "%6: <8 x i32> = load.surface.i32x1[0] %0, %2",
        "%6: <8 x i32> = load.surface.i32x1[0] %2, %2, %1",
        "%6: <8 x i32> = load.flat.i32x1[0] %0, %2",
        "%6: <8 x i32> = load.slm.i32x1[0] %3, %2",
        "%6: <8 x i32> = load.surface.i32x1[0] %0, %2, %5",
        "%6: <8 x i64> = load.slm.i32x1[0] %0, %2",
        "%6: <8 x i32> = load.slm.i32x2[0] %0, %2",
        "%6: <8 x i32> = load.slm.i32x0[0] %0, %2",
        "%6: <8 x f32> = load.slm.f32x1[0] %0, %2",
        "store.slm.i32x2[0] %0, %2, %2",
        "store.slm.i32x9[0] %0, %2, %2",
        "%6: <8 x i32> = store.slm.i32x1[0] %0, %2, %2",
        "%6: <4 x i32> = blockload.slm.i32x5[0] %3, %1",
        "%6: <4 x i32> = blockload.slm.i32x4[0] %0, %2",
        "blockstore.slm.i32x4[0] %3, %1, %2",
        "%6: <8 x i32> = atomic.slm.add.i32[0] %0, %2",
        "%6: <8 x i32> = atomic.slm.cmpxchg.i32[0] %0, %2, %2",
        "%6: <8 x i32> = atomic.regs.inc.i32[0] %0, %2",
    ] {
        assert_op_breaks(Rule::Memory, op);
    }
}

#[test]
fn v16_sites() {
    assert_op_breaks(Rule::Sites, "%6: <8 x i32> = load.slm.i32x1[1] %0, %2");
    // Made of parts that are not there, that are made of parts, or in another order than their lanes.
    for (lane, parts, fine) in [
        (4, "0, 1", true),
        (4, "0, 3", false),
        (4, "0, 2", false),
        (4, "1, 0", false),
        (0, "0, 1", false),
    ] {
        let site = |more: &str| format!("read slm 4 \"gather\" line 1{more}");
        let text = format!(
            "function \"f\" simd 8\nsite 0 = {}\nsite 1 = {}\nsite 2 = {}\n\nbb0:\n  return\n",
            site(""),
            site(&format!(" lane {lane}")),
            site(&format!(" of [{parts}]")),
        );
        let broken = verify(&parse(&text).unwrap()).err();
        let rules: Option<Vec<Rule>> = broken.map(|e| e.iter().map(|e| e.rule).collect());
        assert_eq!(rules, (!fine).then(|| vec![Rule::Sites]), "{text}");
    }
}

#[test]
fn v17_frame() {
    assert_op_breaks(Rule::Frame, "framestore[61] %1");
    assert_op_breaks(Rule::Frame, "framestore[0] %1");
    assert_op_breaks(Rule::Frame, "%6: <8 x i64> = frameload[16]");
    assert_op_breaks(Rule::Frame, "framestore[61] %0");
    assert_eq!(broken(&body(&["framestore[60] %0", "return"])), []);
}

#[test]
fn v18_shapes() {
    let store = "store.slm.i32x1[0] %0, %2, %2";
    let mut f = body(&[store, "%6: i32 = const 1", "return"]);
    let access = f.block(Function::ENTRY).insts[6];
    let mut shape = |base: Option<Value>, mask_all| {
        let addr = base.map(|base| Affine {
            base,
            stride: 4,
            guard: None,
        });
        f.shapes.insert(
            access,
            Shape {
                addr,
                mask_all,
                ..Shape::default()
            },
        );
        broken(&f)
    };
    assert_eq!(shape(Some(Value(1)), Some(Value(3))), []);
    assert_eq!(shape(Some(Value(5)), None), [Rule::Shapes]);
    assert_eq!(shape(None, Some(Value(1))), [Rule::Shapes]);
    assert_eq!(shape(Some(Value(6)), None), [Rule::Dominance]);
}

/// Operations that passes and lowering build by hand keep the rules too.
#[test]
fn built_functions_verify() {
    let mut f = Function::new("f", 16);
    let b = Function::ENTRY;
    let x = f.push1(b, Op::Const(3), vec![], Ty::I32, 0);
    f.push1(b, Op::Splat, vec![x], Ty::I32.with_lanes(16), 0);
    f.block_mut(b).term = visa_jit::ssa::Term::Return;
    assert_eq!(broken(&f), []);
}
