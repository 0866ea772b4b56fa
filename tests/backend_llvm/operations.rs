//! How some operations are made, in LLVM's terms. That they are right the tests shared with Cranelift and those of kernels show; these
//! fail where it is not done.

use visa_jit::backend::VectorWidth;
use visa_jit::backend::llvm::LlvmBackend;

use crate::rig::{SPEED, function};
use crate::shapes::{count, ir_for, named};

#[test]
fn pairs_are_scattered_as_they_are() {
    let body = "  %6: <16 x i1> = icmp.slt %3, %5
  store.surface.i32x2[0] %6, %3, %2, %3, %5
";
    let made = ir_for(&named("sapphirerapids"), body, &SPEED);
    assert_eq!(
        count(&made, "call void @llvm.masked.scatter.v16i64"),
        1,
        "{made}"
    );
    let narrow = SPEED.tuned(|t| t.vector_width = VectorWidth::Bits128);
    let made = ir_for(&named("sapphirerapids"), body, &narrow);
    assert_eq!(count(&made, "@llvm.masked.scatter"), 0, "{made}");
}

/// A lane of a loaded block is a load by itself, so that a vector of it takes it from memory.
#[test]
fn lanes_of_uniform_blocks_come_from_memory() {
    let body = "  %6: i1 = const 1
  %7: <8 x i32> = blockload.surface.i32x8[0] %6, %4, %1
  %8: i32 = extractlane[3] %7
  %9: i32 = extractlane[5] %7
  %10: i32 = add %8, %9
  framestore[0] %10
";
    let made = ir_for(&named("sapphirerapids"), body, &SPEED);
    assert_eq!(count(&made, "extractelement <8 x i32>"), 0, "{made}");
}

#[test]
fn quotients_are_products_with_reciprocals() {
    let quotient = |lane: &str| {
        format!(
            "  %6: <16 x {lane}> = input.payload[128]
  %7: <16 x {lane}> = input.payload[192]
  %8: <16 x {lane}> = udiv %6, %7
  framestore[0] %8
"
        )
    };
    for (lane, instruction, calls) in [
        ("i32", "call <8 x double> @llvm.x86.avx512.rcp14.pd.512", 2),
        ("i16", "call <16 x float> @llvm.x86.avx512.rcp14.ps.512", 1),
        ("i8", "call <16 x float> @llvm.x86.avx512.rcp14.ps.512", 1),
    ] {
        let made = ir_for(&named("sapphirerapids"), &quotient(lane), &SPEED);
        assert_eq!(count(&made, instruction), calls, "{made}");
        assert_eq!(count(&made, "fdiv"), 0, "{made}");
    }
}

#[test]
fn halves_are_calculated_by_instructions_for_them() {
    let text = "function \"f\" simd 16 frame 1024

bb0:
  %1: i32 = const 0x4c0
  %2: <16 x i16> = input.payload[64]
  %3: <16 x i16> = fpenv.fma %1, %2, %2, %2
  %4: <16 x i16> = fpenv.add %1, %3, %2
  %5: <16 x i16> = fpenv.mul %1, %3, %4
  framestore[0] %5
  return
";
    let with = "+sse4.1,+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512fp16";
    let generator = LlvmBackend::for_cpu("sapphirerapids", with).unwrap();
    let made = generator.ir(&function(text), &SPEED).unwrap();
    for operation in [
        "call <16 x half> @llvm.fma",
        "fadd <16 x half>",
        "fmul <16 x half>",
    ] {
        assert_eq!(count(&made, operation), 1, "{made}");
    }
    let made = named("sapphirerapids").ir(&function(text), &SPEED).unwrap();
    assert_eq!(count(&made, "half"), 0, "{made}");
}

/// Of a mask, the lanes for which a comparison holds, and the others: it is made once.
#[test]
fn comparisons_are_not_made_twice() {
    let body = "  %6: <16 x i1> = icmp.slt %3, %5
  %7: <16 x i32> = vconst [9 ...]
  %8: <16 x i1> = icmp.slt %3, %7
  %9: <16 x i1> = and %6, %8
  %10: <16 x i1> = not %8
  %11: <16 x i1> = and %6, %10
  %12: <16 x i32> = select %9, %3, %5
  %13: <16 x i32> = select %11, %5, %12
  framestore[0] %13
";
    let made = ir_for(&named("sapphirerapids"), body, &SPEED);
    let xors: Vec<&str> = made
        .lines()
        .filter(|line| line.contains("xor <16 x i1>"))
        .collect();
    assert!(
        xors.iter()
            .any(|line| !line.contains("splat") && !line.contains("i1 true")),
        "{made}"
    );
}

#[test]
fn bits_of_wide_lanes_are_tested_there() {
    let test = |read: &str| {
        format!(
            "  %6: <16 x i64> = input.payload[128]
  %7: <16 x i32> = trunc %6
  %8: <16 x i32> = vconst [1 ...]
  %9: <16 x i32> = and %7, %8
  %10: <16 x i32> = vconst [0 ...]
  %11: <16 x i1> = icmp.ne %9, %10
  %12: <16 x i32> = select %11, {read}, %5
  framestore[0] %12
"
        )
    };
    let made = ir_for(&named("sapphirerapids"), &test("%3"), &SPEED);
    assert_eq!(count(&made, "icmp ne <16 x i64>"), 1, "{made}");
    // What else reads the low halves has them made anyway.
    let made = ir_for(&named("sapphirerapids"), &test("%7"), &SPEED);
    assert_eq!(count(&made, "icmp ne <16 x i64>"), 0, "{made}");
}
