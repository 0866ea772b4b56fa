//! How some operations are made, in LLVM's terms. That they are right the tests shared with Cranelift and those of kernels show; these
//! fail where it is not done.

use visa_jit::backend::VectorWidth;
use visa_jit::backend::llvm::LlvmBackend;

use crate::rig::{Rig, SPEED, function, install};
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

/// Low and high words of 64-bit lanes, and what follows.
fn words(lanes: usize, wide: &str, end: &str) -> String {
    format!(
        "  %6: <{lanes} x i64> = input.payload[0]
  %7: <{lanes} x i32> = input.payload[256]
  %8: <{lanes} x i64> = zext %7
  %9: <{lanes} x i64> = {wide}
  %10: i64 = const 32
  %11: <{lanes} x i64> = lshr %9, %10
  %12: <{lanes} x i32> = trunc %9
  %13: <{lanes} x i32> = trunc %11
{end}"
    )
}

const BOTH_WORDS: &str = "  framestore[0] %12\n  framestore[128] %13\n";

#[test]
fn words_are_permuted_where_there_is_no_narrower_way() {
    let small = LlvmBackend::for_cpu("haswell", "+sse4.1,+avx2,+fma").unwrap();
    let permuted = |lanes: usize, wide: &str, cpu: &LlvmBackend| {
        let made = ir_for(cpu, &words(lanes, wide, BOTH_WORDS), &SPEED);
        let all = count(&made, "shufflevector <");
        assert_eq!(all + count(&made, "= trunc <"), 2, "{made}");
        all
    };
    for (lanes, wide, cpu, want) in [
        (16, "add %6, %8", &named("znver4"), 2),
        (32, "xor %6, %8", &named("sapphirerapids"), 2),
        // One register holds the lanes, or LLVM's way is as short, or there is no such permutation.
        (8, "add %6, %8", &named("znver4"), 0),
        (16, "mul %6, %8", &named("znver4"), 0),
        (16, "neg %8", &named("znver4"), 0),
        (16, "add %6, %8", &small, 0),
    ] {
        assert_eq!(permuted(lanes, wide, cpu), want, "{lanes} {wide}");
    }
    // Both halves of a lane are stored as they are.
    let end = "  store.surface.i32x2[0] %0, %3, %2, %12, %13\n";
    let made = ir_for(&named("znver4"), &words(16, "add %6, %8", end), &SPEED);
    assert!(count(&made, "= trunc <") >= 2, "{made}");
}

#[test]
fn permuted_words_are_the_words() {
    for lanes in [16usize, 24, 32] {
        let body = words(lanes, "xor %6, %8", BOTH_WORDS);
        let f = function(&format!(
            "function \"f\" simd 32 frame 256\n\nbb0:\n{body}  return\n"
        ));
        let code = install(&f, &SPEED);
        let mut rig = Rig::new(1, f.frame_bytes as usize);
        let wide = |n: usize| 0x0123_4567_89ab_cdef_u64.wrapping_mul(2 * n as u64 + 1);
        let narrow = |n: usize| 0x9e37_79b9_u32.wrapping_mul(n as u32 + 1);
        let mut payload: Vec<u8> = (0..32).flat_map(|n| wide(n).to_le_bytes()).collect();
        payload.extend((0..32).flat_map(|n| narrow(n).to_le_bytes()));
        rig.payload.write(&payload);
        assert_eq!(rig.run(code.entry()), 0);
        let frame = rig.frames[0].read();
        for n in 0..lanes {
            let want = wide(n) ^ u64::from(narrow(n));
            let word = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap());
            let found = [word(4 * n), word(128 + 4 * n)];
            assert_eq!(found, [want as u32, (want >> 32) as u32], "{lanes} {n}");
        }
    }
}
