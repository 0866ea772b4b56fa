//! What is made of addresses of some shapes, in LLVM's terms. That it is right the tests shared with Cranelift show
//! (`several.rs`, `memory.rs`); these fail where it is not done.

use visa_jit::backend::{Bounds, CodegenOptions};
use visa_jit::passes::run_pass;

use crate::generator::host;
use crate::rig::{SPEED, function};

const HEAD: &str = r#"function "f" simd 16 frame 1024
site 0 = read surface 4 "gather4_scaled" line 1

bb0:
  %0: <16 x i1> = vconst [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
  %1: i32 = const 1
  %2: i32 = const 2
  %3: <16 x i32> = input.payload[64]
  %4: i32 = input.payload[0]
  %5: <16 x i32> = splat %4
"#;

/// LLVM's IR of a block behind [`HEAD`].
fn ir(body: &str, options: &CodegenOptions) -> String {
    let mut f = function(&format!("{HEAD}{body}  return\n"));
    assert!(run_pass(&mut f, "shape"));
    host().ir(&f, options).unwrap()
}

fn count(ir: &str, what: &str) -> usize {
    ir.matches(what).count()
}

/// Sixty-four bytes of each lane, from one surface to another, by four messages each.
fn copy(from: &str) -> String {
    let results = |n: u32| {
        let all: Vec<String> = (0..4).map(|c| format!("%{}", 20 + 4 * n + c)).collect();
        all
    };
    let (mut loads, mut stores) = (String::new(), String::new());
    for n in 0..4 {
        let (at, distance) = (12 + n, 16 * n);
        let lanes = vec![distance.to_string(); 16].join(", ");
        let typed: Vec<_> = results(n)
            .iter()
            .map(|v| format!("{v}: <16 x i32>"))
            .collect();
        loads += &format!("  %{}: <16 x i32> = vconst [{lanes}]\n", 40 + n);
        loads += &format!("  %{at}: <16 x i32> = add {from}, %{}\n", 40 + n);
        let typed = typed.join(", ");
        loads += &format!("  {typed} = load.surface.i32x4[0] %0, %{at}, %1\n");
        let data = results(n).join(", ");
        stores += &format!("  store.surface.i32x4[0] %0, %{at}, %2, {data}\n");
    }
    loads + &stores
}

const EVEN: &str = "  %6: <16 x i32> = vconst [0, 64, 128, 192, 256, 320, 384, 448, 512, 576, 640, 704, 768, 832, 896, 960]
  %7: <16 x i32> = add %5, %6
";

#[test]
fn records_that_are_copied_stay_whole() {
    let body = EVEN.to_owned() + &copy("%7");
    let whole = ir(&body, &SPEED);
    assert_eq!(count(&whole, "load <16 x i32>"), 16 + 1, "{whole}");
    // And addresses and data of four messages, for when a test fails.
    assert_eq!(count(&whole, "store <16 x i32>"), 16 + 4 * 5, "{whole}");
    // Lanes anywhere may lie over each other, so that the order of stores counts.
    let parts = ir(&copy("%3"), &SPEED);
    assert_eq!(count(&parts, "load <4 x i32>"), 64, "{parts}");
    assert_eq!(count(&parts, "store <4 x i32>"), 64, "{parts}");
}

#[test]
fn records_are_transposed_where_components_are_wanted() {
    let body = "  %8: <16 x i32>, %9: <16 x i32>, %10: <16 x i32>, %11: <16 x i32> = load.surface.i32x4[0] %0, %3, %1
  framestore[0] %8
  framestore[64] %9
  framestore[128] %10
  framestore[192] %11
";
    let made = ir(body, &SPEED);
    assert_eq!(count(&made, "load <4 x i32>"), 16, "{made}");
}

/// One test in front of all, one for each, and each where it is.
#[test]
fn tests_are_shared_as_the_strategy_says() {
    let body = EVEN.to_owned() + &copy("%7");
    let tests = |bounds| {
        let made = ir(&body, &CodegenOptions { bounds, ..SPEED });
        // Scalar comparisons with limits.
        count(&made, "icmp ult i32")
    };
    let [hoisted, separate, inline] =
        [Bounds::Hoisted, Bounds::Separate, Bounds::Inline].map(tests);
    assert_eq!((hoisted, separate), (2, 8));
    assert!(inline < separate, "{inline}");
}

#[test]
fn lanes_that_a_mask_chooses_are_looked_at() {
    let body =
        "  %6: <16 x i32> = vconst [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60]
  %7: <16 x i32> = add %5, %6
  %8: <16 x i32> = vconst [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  %9: <16 x i1> = icmp.slt %3, %5
  %10: <16 x i32> = select %9, %7, %8
  %11: <16 x i32> = load.surface.i32x1[0] %9, %10, %1
  store.surface.i32x1[0] %9, %10, %2, %11
";
    let made = ir(body, &SPEED);
    if made.contains("+avx512f") {
        assert!(made.contains("call <16 x i32> @llvm.masked.load"), "{made}");
        assert!(made.contains("call void @llvm.masked.store"), "{made}");
    }
}

/// Where stores under masks would need all lanes, loads beside them went to gathers whenever a lane was missing.
#[test]
fn stores_under_masks_need_no_version_with_all_lanes() {
    let body =
        "  %6: <16 x i32> = vconst [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60]
  %7: <16 x i32> = add %5, %6
  %8: <16 x i32> = vconst [64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64]
  %9: <16 x i32> = add %7, %8
  %10: <16 x i1> = icmp.slt %3, %5
  store.surface.i32x1[0] %10, %7, %2, %3
  store.surface.i32x1[0] %10, %9, %2, %3
";
    let made = ir(body, &SPEED);
    if made.contains("+avx512f") {
        let stores = count(&made, "call void @llvm.masked.store");
        assert_eq!(stores, 2, "{made}");
    }
}

#[test]
fn gathers_take_eight_offsets_as_they_are() {
    let body = "  %8: <16 x i32> = load.surface.i32x1[0] %0, %3, %1
  framestore[0] %8
";
    let made = ir(body, &SPEED);
    if made.contains("+avx2") {
        assert_eq!(
            count(&made, "call <8 x i32> @llvm.masked.gather"),
            2,
            "{made}"
        );
        assert_eq!(count(&made, "zext <16 x i32>"), 0, "{made}");
    }
}
