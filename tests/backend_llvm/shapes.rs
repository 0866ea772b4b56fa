//! What is made of addresses of some shapes, in LLVM's terms. That it is right the tests shared with Cranelift show
//! (`several.rs`, `memory.rs`); these fail where it is not done.

use visa_jit::backend::llvm::LlvmBackend;
use visa_jit::backend::{Bounds, CodegenOptions, Dispatch, Gather, Prefetch, VectorWidth};
use visa_jit::passes::run_pass;
use visa_jit::ssa::{Function, Space};

use crate::generator::host;
use crate::rig::{Guarded, Rig, SPEED, function, install};
use crate::tile::{AGAIN, CHANGED, TILE, long_chain};

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

/// LLVM's IR of a block after [`HEAD`].
fn ir(body: &str, options: &CodegenOptions) -> String {
    ir_for(&host(), body, options)
}

pub(super) fn ir_for(generator: &LlvmBackend, body: &str, options: &CodegenOptions) -> String {
    let mut f = function(&format!("{HEAD}{body}  return\n"));
    assert!(run_pass(&mut f, "shape"));
    generator.ir(&f, options).unwrap()
}

/// A processor by its name.
pub(super) fn named(cpu: &str) -> LlvmBackend {
    let features = "+sse4.1,+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512dq,+avx512vl";
    LlvmBackend::for_cpu(cpu, features).unwrap()
}

pub(super) fn count(ir: &str, what: &str) -> usize {
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
fn structs_that_are_copied_stay_whole() {
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
fn structs_are_transposed_where_components_are_wanted() {
    let body = "  %8: <16 x i32>, %9: <16 x i32>, %10: <16 x i32>, %11: <16 x i32> = load.surface.i32x4[0] %0, %3, %1
  framestore[0] %8
  framestore[64] %9
  framestore[128] %10
  framestore[192] %11
";
    let made = ir(body, &SPEED);
    assert_eq!(count(&made, "load <4 x i32>"), 16, "{made}");
}

/// Where a thread has several registers of lanes, each word is used several times.
#[test]
fn words_for_all_lanes_are_loaded_once_for_four() {
    let body = "  %8: <16 x i32>, %9: <16 x i32>, %10: <16 x i32>, %11: <16 x i32> = load.surface.i32x4[0] %0, %5, %1
  framestore[0] %8
  framestore[64] %9
  framestore[128] %10
  framestore[192] %11
";
    let made_for = |cpu, width| ir_for(&named(cpu), body, &SPEED.tuned(|t| t.vector_width = width));
    let made = |width| made_for("znver4", width);
    let wide = made(VectorWidth::Bits512);
    assert_eq!(count(&wide, "load <4 x i32>"), 1, "{wide}");
    assert_eq!(count(&wide, "asm \"\""), 1, "{wide}");
    let narrow = made(VectorWidth::Bits256);
    assert_eq!(count(&narrow, "asm \"\""), 0, "{narrow}");
    // Intel's processors load each word.
    let intel = made_for("sapphirerapids", VectorWidth::Bits512);
    assert_eq!(count(&intel, "asm \"\""), 0, "{intel}");
}

/// One test in front of all, one for each, and each where it is.
#[test]
fn tests_are_shared_as_the_strategy_says() {
    let body = EVEN.to_owned() + &copy("%7");
    let tests = |bounds| {
        let made = ir(&body, &SPEED.tuned(|t| t.bounds = bounds));
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
fn gathers_take_offsets_as_they_are() {
    let body = "  %8: <16 x i32> = load.surface.i32x1[0] %0, %3, %1
  framestore[0] %8
";
    for (cpu, lanes, gathers) in [("znver4", 8, 2), ("sapphirerapids", 16, 1)] {
        let made = ir_for(&named(cpu), body, &SPEED);
        let call = format!("call <{lanes} x i32> @llvm.masked.gather");
        assert_eq!(count(&made, &call), gathers, "{made}");
        assert_eq!(count(&made, "zext <16 x i32>"), 0, "{made}");
    }
}

/// Gathers of one processor take longer than loads, those of another do not.
#[test]
fn lanes_are_loaded_one_by_one_where_gathers_are_slow() {
    let body = "  %8: <16 x i32> = load.surface.i32x1[0] %0, %3, %1
  framestore[0] %8
";
    let loads = |cpu, gather| {
        let options = SPEED.tuned(|t| t.gather = gather);
        count(&ir_for(&named(cpu), body, &options), "load i32, ptr")
    };
    let few = loads("znver4", Gather::Hardware);
    assert_eq!(loads("znver4", Gather::Auto), few + 16);
    assert_eq!(loads("skylake-avx512", Gather::Auto), few);
    // Each takes several times as much code, so of many none does.
    let mut many = String::new();
    for n in 0..97 {
        many += &format!(
            "  %{}: <16 x i32> = load.surface.i32x1[0] %0, %3, %1\n",
            20 + n
        );
        many += &format!("  framestore[{}] %{}\n", 64 * (n % 16), 20 + n);
    }
    let made = ir_for(&named("znver4"), &many, &SPEED);
    assert_eq!(count(&made, "load i32, ptr"), few, "{made}");
}

/// Lanes in device memory are found inside by comparisons of 32-bit numbers.
#[test]
fn numbers_are_compared_instead_of_addresses() {
    let body = "  %8: i64 = input.payload[64]
  %9: <16 x i64> = splat %8
  %10: <16 x i64> = zext %3
  %11: <16 x i64> = vconst [2 ...]
  %12: <16 x i64> = shl %10, %11
  %13: <16 x i64> = add %12, %9
  %14: <16 x i32> = load.flat.i32x1[0] %0, %13
  framestore[0] %14
";
    for cpu in ["znver4", "skylake-avx512"] {
        let made = ir_for(&named(cpu), body, &SPEED);
        let numbers = count(&made, "icmp ult <16 x i32>") + count(&made, "icmp sle <16 x i32>");
        assert!(numbers > 0, "{made}");
        assert_eq!(count(&made, "icmp ult <16 x i64>"), 0, "{made}");
    }
}

/// Addresses that are moved twice are still at a constant distance from where they started.
#[test]
fn distances_of_several_sums_share_a_test() {
    let mut body = EVEN.to_owned();
    for (to, from, distance) in [(8, 7, 1024), (9, 8, 64)] {
        let by = vec![distance.to_string(); 16].join(", ");
        body += &format!("  %{}: <16 x i32> = vconst [{by}]\n", to + 10);
        body += &format!("  %{to}: <16 x i32> = add %{from}, %{}\n", to + 10);
    }
    for (n, at) in [7, 8, 9].into_iter().enumerate() {
        body += &format!(
            "  %{}: <16 x i32>, %{}: <16 x i32>, %{}: <16 x i32>, %{}: <16 x i32> = load.surface.i32x4[0] %0, %{at}, %1\n",
            30 + 4 * n,
            31 + 4 * n,
            32 + 4 * n,
            33 + 4 * n
        );
        body += &format!("  framestore[{}] %{}\n", 64 * n, 30 + 4 * n);
    }
    let made = ir(&body, &SPEED);
    // One of the loop over threads, one of all accesses.
    assert_eq!(count(&made, "icmp ult i32"), 1, "{made}");
}

/// Bytes that probably lie side by side are no call.
#[test]
fn narrow_elements_that_a_mask_chooses_are_looked_at() {
    let body = "  %6: <16 x i32> = vconst [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
  %7: <16 x i32> = add %5, %6
  %8: <16 x i32> = vconst [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  %9: <16 x i1> = icmp.slt %3, %5
  %10: <16 x i32> = select %9, %7, %8
  %11: <16 x i8> = load.surface.i8x1[0] %9, %10, %1
  store.surface.i8x1[0] %9, %10, %2, %11
";
    let made = ir_for(&named("znver4"), body, &SPEED);
    // By the first lane, and by the first one that is enabled.
    let (loads, stores) = (
        "call <16 x i8> @llvm.masked.load",
        "call void @llvm.masked.store",
    );
    assert_eq!(
        (count(&made, loads), count(&made, stores)),
        (2, 2),
        "{made}"
    );
}

/// Lanes of a surface of nearly 4 GiB, of which some are at its end and some at its start: they follow each other in 32 bits, and
/// do not lie side by side.
#[test]
fn lanes_on_both_sides_of_32_bits_do_not_lie_side_by_side() {
    let body = "  %6: <16 x i32> = vconst [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
  %7: <16 x i32> = add %5, %6
  %8: <16 x i32> = vconst [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  %9: <16 x i1> = icmp.slt %3, %5
  %10: <16 x i32> = select %9, %7, %8
  %11: <16 x i8> = load.surface.i8x1[0] %9, %10, %1
  framestore[0] %11
";
    let mut f = function(&format!("{HEAD}{body}  return\n"));
    assert!(run_pass(&mut f, "shape"));
    let code = install(&f, &SPEED);
    for size in [(1usize << 32) - 1, (1 << 32) - 16, (1 << 32) - 17, 4096] {
        let memory = Guarded::new(size);
        let mut rig = Rig::new(1, f.frame_bytes as usize);
        rig.place(Space::Surface, 1, &memory);
        let inside = |at: u32| (at as usize) < size;
        let starts = [0, 5, 16, 8, 40].map(|n: u32| 0u32.wrapping_sub(n));
        for at in starts
            .iter()
            .flat_map(|s| (0..16).map(|i| s.wrapping_add(i)))
        {
            if inside(at) {
                memory.set(at as usize, at as u8 | 1);
            }
        }
        // Enabled lanes are those below the start as signed numbers.
        for (start, enabled) in starts
            .into_iter()
            .flat_map(|s| [0xFFFF, 0xFF00, 0x00FF].map(|m| (s, m)))
        {
            let mut payload = vec![0; rig.payload.len()];
            payload[..4].copy_from_slice(&start.to_le_bytes());
            let mut want = [0; 16];
            for lane in 0..16u32 {
                let on = enabled >> lane & 1 == 1;
                let below = if on { i32::MIN } else { i32::MAX };
                payload[64 + 4 * lane as usize..][..4].copy_from_slice(&below.to_le_bytes());
                let at = start.wrapping_add(lane);
                if on && inside(at) {
                    want[lane as usize] = at as u8 | 1;
                }
            }
            rig.payload.write(&payload);
            rig.threads[0].state = 0;
            assert_eq!(rig.run(code.entry()), 0);
            assert_eq!(
                rig.frames[0].read()[..16],
                want,
                "{size:#x}, {start:#x}, {enabled:#x}"
            );
        }
    }
}

/// Atomics of local memory: straight code for when all lanes are there, beside the loop for some.
#[test]
fn atomics_of_all_lanes_are_straight_code() {
    let body = "  %8: <16 x i32> = atomic.slm.add.i32[0] %0, %3, %3
  framestore[0] %8
";
    let made = ir(body, &SPEED);
    let loads = count(&made, "add i32");
    assert!(loads >= 17, "{made}");
}

const SCATTERED: &str = "  %6: <16 x i32> = vconst [0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240]
  %7: <16 x i32> = add %5, %6
  %8: <16 x i32>, %9: <16 x i32>, %10: <16 x i32>, %11: <16 x i32> = load.surface.i32x4[0] %0, %3, %1
  store.surface.i32x4[0] %0, %7, %2, %8, %9, %10, %11
";

#[test]
fn scattered_records_are_copied_line_by_line() {
    let made = ir(SCATTERED, &SPEED);
    // With all loads in front of the first store, and without.
    assert_eq!(count(&made, "load <4 x i32>"), 32, "{made}");
    // One surface may be written where it is read.
    let one = ir(&SCATTERED.replace("%7, %2, %8", "%7, %1, %8"), &SPEED);
    assert_eq!(count(&one, "load <4 x i32>"), 16, "{one}");
}

/// Structs come from where they were before the first of them is stored.
#[test]
fn scattered_records_of_surfaces_over_each_other() {
    let mut f = function(&format!("{HEAD}{SCATTERED}  return\n"));
    assert!(run_pass(&mut f, "shape"));
    let code = install(&f, &SPEED);
    let before: Vec<u8> = (0..2048u32).map(|i| (i * 7 + i / 256) as u8).collect();
    // Where the second surface starts in the first, and how long both are.
    for (start, size) in [
        (0, 1024),
        (16, 1024),
        (1024, 1024),
        (1023, 1024),
        (512, 600),
    ] {
        let memory = Guarded::of(&before);
        let mut rig = Rig::new(1, f.frame_bytes as usize);
        for (surface, from) in [(1, 0), (2, start)] {
            rig.surfaces[surface].base = memory.base().wrapping_add(from);
            rig.surfaces[surface].size = size as u64;
        }
        let mut payload = vec![0; rig.payload.len()];
        let mut after = before.clone();
        payload[..4].copy_from_slice(&32u32.to_le_bytes());
        for lane in 0..16 {
            let from = (lane * 5 + 3) % 16 * 16 + 24;
            payload[64 + 4 * lane..][..4].copy_from_slice(&(from as u32).to_le_bytes());
            let to = start + 32 + 16 * lane;
            after[to..to + 16].copy_from_slice(&before[from..from + 16]);
        }
        rig.payload.write(&payload);
        assert_eq!(rig.run(code.entry()), 0);
        assert!(memory.read() == after, "{start}, {size}");
    }
}

const FLAT: &str = r#"function "f" simd 16 frame 1024
site 0 = read flat 4 "gather" line 1

bb0:
  %0: <16 x i1> = vconst [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
  %1: i64 = input.payload[0]
  %2: <16 x i64> = splat %1
  %3: <16 x i32> = input.payload[64]
"#;

/// Addresses `%n` of device memory, this far from the scalar in lane 0 and the next ones.
fn addresses(n: u32, start: u64, stride: u64) -> String {
    let lanes: Vec<_> = (0..16).map(|i| (start + stride * i).to_string()).collect();
    let (distances, lanes) = (n + 100, lanes.join(", "));
    format!(
        "  %{distances}: <16 x i64> = vconst [{lanes}]\n  %{n}: <16 x i64> = add %2, %{distances}\n"
    )
}

/// Checks read how addresses run also in the version for when a test failed, which reads it of no access.
#[test]
fn checks_have_what_they_read_in_every_version() {
    // Nothing tests the store of one lane's address in front, so the scalar of it is made in each version.
    let body = [
        FLAT,
        &addresses(10, 0, 4),
        &addresses(12, 64, 4),
        "  %20: <16 x i32> = load.flat.i32x1[0] %0, %10\n",
        &addresses(11, 256, 0),
        "  store.flat.i32x1[0] %0, %11, %20\n",
        "  %21: <16 x i32> = load.flat.i32x1[0] %0, %12\n  framestore[0] %21\n  return\n",
    ];
    let mut f = function(&body.concat());
    assert!(run_pass(&mut f, "shape"));
    assert!(run_pass(&mut f, "check-buffers"));
    let made = host().ir(&f, &SPEED).unwrap();
    // One test for both loads, of 32 lanes.
    assert!(
        made.contains("icmp ult i64") && made.contains("-127"),
        "{f}\n{made}"
    );
}

/// Tags in addresses of device memory do not count: a store far from a copy by its address may write the same bytes.
#[test]
fn copies_are_not_moved_over_stores_with_another_tag() {
    let struct_at = |n: u32| {
        let rows: Vec<_> = (n..n + 4).map(|v| format!("%{v}: <16 x i32>")).collect();
        rows.join(", ")
    };
    let body = [
        FLAT.to_owned(),
        addresses(10, 1024, 64),
        addresses(11, 1040, 64),
        addresses(12, 0, 64),
        addresses(13, 1 << 48, 64),
        addresses(14, 16, 64),
        format!("  {} = load.flat.i32x4[0] %0, %10\n", struct_at(20)),
        format!("  {} = load.flat.i32x4[0] %0, %11\n", struct_at(30)),
        "  store.flat.i32x4[0] %0, %12, %20, %21, %22, %23\n".to_owned(),
        "  store.flat.i32x4[0] %0, %13, %3, %3, %3, %3\n".to_owned(),
        "  store.flat.i32x4[0] %0, %14, %30, %31, %32, %33\n  return\n".to_owned(),
    ];
    let mut f = function(&body.concat());
    assert!(run_pass(&mut f, "shape"));
    let code = install(&f, &SPEED);
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let before: Vec<u32> = (0..512).collect();
    let memory = Guarded::of(&words(&before));
    let mut rig = Rig::new(1, f.frame_bytes as usize);
    rig.place(Space::Flat, 0, &memory);
    let mut payload = (memory.base() as u64).to_le_bytes().to_vec();
    payload.resize(64, 0);
    payload.extend(words(&[7; 16]));
    rig.payload.write(&payload);
    assert_eq!(rig.run(code.entry()), 0);
    let mut want = before;
    for lane in want[..256].chunks_mut(16) {
        let copied = lane[4] + 256;
        lane[..4].fill(7);
        for (word, from) in lane[4..8].iter_mut().zip(copied..) {
            *word = from;
        }
    }
    assert_eq!(memory.read(), words(&want));
}

/// Two loads that share a test, and a store to the first one's addresses in another block. What these addresses are made of is
/// made between the loads.
fn changed_in_place() -> Function {
    let iota: Vec<_> = (0..16).map(|i| i.to_string()).collect();
    let iota = iota.join(", ");
    let body = [
        FLAT,
        "  %4: i32 = input.payload[8]\n  %5: <16 x i32> = splat %4\n",
        &format!("  %6: <16 x i32> = vconst [{iota}]\n"),
        "  %7: i64 = const 2\n",
        &addresses(10, 64, 4),
        "  %20: <16 x i32> = load.flat.i32x1[0] %0, %10\n",
        "  %21: <16 x i32> = add %5, %6\n",
        "  %22: <16 x i64> = sext %21\n  %23: <16 x i64> = shl %22, %7\n",
        "  %24: <16 x i64> = add %2, %23\n",
        "  %25: <16 x i32> = load.flat.i32x1[0] %0, %24\n",
        "  %26: <16 x i32> = add %20, %25\n",
        "  %27: <16 x i1> = icmp.slt %21, %3\n",
        "  %28: i1 = maskany %27\n  branch %28, bb1, bb2\n",
        "bb1:\n  store.flat.i32x1[0] %27, %24, %26\n  jump bb2\nbb2:\n  return\n",
    ];
    let mut f = function(&body.concat());
    assert!(run_pass(&mut f, "shape"));
    f
}

/// The usual path has no addresses of lanes.
#[test]
fn addresses_are_made_where_a_test_failed() {
    let made = named("icelake-server").ir(&changed_in_place(), &SPEED);
    let made = made.unwrap();
    let (rare, usual): (Vec<&str>, Vec<&str>) = made
        .split("\n\n")
        .partition(|block| block.contains("@llvm.masked.gather") || block.contains("scatter"));
    assert!(
        rare.iter().any(|block| block.contains("sext <16 x i32>")),
        "{made}"
    );
    for block in usual {
        assert!(!block.contains("sext <16 x i32>"), "{block}\n{made}");
    }
}

/// They are those that they would have been, whichever test fails.
#[test]
fn addresses_that_are_made_late_are_right() {
    let f = changed_in_place();
    let code = install(&f, &SPEED);
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    // Both loads are inside, or parts of one, or the numbers wrap.
    for (count, first, below) in [
        (64, 8, 100),
        (64, 8, 12),
        (64, 8, 0),
        (64, 56, 100),
        (64, -5, 100),
        (24, 3, 100),
        (24, 16, 20),
        (64, i32::MAX - 7, 100),
    ] {
        let before: Vec<u32> = (0..count).map(|i| 1000 + i).collect();
        let memory = Guarded::of(&words(&before));
        let mut rig = Rig::new(1, f.frame_bytes as usize);
        rig.place(Space::Flat, 0, &memory);
        let mut payload = (memory.base() as u64).to_le_bytes().to_vec();
        payload.extend(first.to_le_bytes());
        payload.resize(64, 0);
        payload.extend(words(&[below as u32; 16]));
        rig.payload.write(&payload);
        assert_eq!(rig.run(code.entry()), 0);
        let mut want = before.clone();
        let word = |at: i64| usize::try_from(at).ok().and_then(|at| before.get(at));
        for lane in 0..16 {
            let at = first.wrapping_add(lane);
            let sum = [word(i64::from(lane) + 16), word(at.into())];
            let sum = sum
                .iter()
                .flatten()
                .fold(0u32, |sum, &&w| sum.wrapping_add(w));
            if at < below && word(at.into()).is_some() {
                want[at as usize] = sum;
            }
        }
        assert_eq!(memory.read(), words(&want), "{count} {first} {below}");
    }
}

/// A long chain of operations that only an address needs is made without deep recursion.
#[test]
fn long_chains_are_made_where_they_are() {
    let mut body = [FLAT, &addresses(10, 0, 4)].concat();
    let last = 21_000;
    for n in 1000..last {
        let from = if n == 1000 { 10 } else { n - 1 };
        let op = ["sub", "add"][n as usize % 2];
        body += &format!("  %{n}: <16 x i64> = {op} %{from}, %110\n");
    }
    body += &format!("  %9: <16 x i32> = load.flat.i32x1[0] %0, %{}\n", last - 1);
    body += "  store.flat.i32x1[0] %0, %10, %9\n  return\n";
    let mut f = function(&body);
    assert!(run_pass(&mut f, "shape"));
    assert!(host().ir(&f, &SPEED).is_ok());
}

/// A load of consecutive words before one at any addresses fetches ahead.
#[test]
fn loads_fetch_ahead_as_the_strategy_says() {
    let load =
        "  %6: <16 x i32> = vconst [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60]
  %7: <16 x i32> = add %5, %6
  %8: <16 x i32> = load.surface.i32x1[0] %0, %7, %1
  framestore[0] %8
";
    let gather = "  %9: <16 x i32> = load.surface.i32x1[0] %0, %8, %2\n  framestore[64] %9\n";
    let fetches = |body: &str, prefetch| {
        let made = ir(body, &SPEED.tuned(|t| t.prefetch = prefetch));
        count(&made, "call void @llvm.prefetch")
    };
    let both = load.to_owned() + gather;
    for prefetch in [Prefetch::Auto, Prefetch::Streams] {
        assert_eq!((fetches(&both, prefetch), fetches(load, prefetch)), (1, 0));
    }
    assert_eq!(fetches(&both, Prefetch::None), 0);
}

/// A masked load fetches its lines first, whether its addresses are affine or only tested to be contiguous. Short loads do not.
#[test]
fn masked_loads_fetch_their_lines_first() {
    let body = |elem: &str, stride: u32, place: &str| {
        let steps: Vec<String> = (0..16).map(|lane| (lane * stride).to_string()).collect();
        format!(
            "  %6: <16 x i32> = vconst [{}]
  %7: <16 x i32> = add %5, %6
  %8: <16 x i32> = splat %1
  %9: <16 x i1> = icmp.slt %3, %5
  %10: <16 x i32> = select %9, %7, %8
  %11: <16 x {elem}> = load.surface.{elem}x1[0] {place}, %1
  store.surface.{elem}x1[0] %0, %7, %2, %11
",
            steps.join(", ")
        )
    };
    let fetches = |body: &str, prefetch| {
        let made = ir_for(
            &named("znver4"),
            body,
            &SPEED.tuned(|t| t.prefetch = prefetch),
        );
        count(&made, "call void @llvm.prefetch")
    };
    // By the first lane or the first one that is enabled; then where an address is known; then where all lanes read.
    for (place, expected) in [("%9, %10", 2), ("%9, %7", 1), ("%0, %7", 0)] {
        let words = body("i32", 4, place);
        assert_eq!(fetches(&words, Prefetch::Auto), expected, "{place}");
        // Two lines each.
        let doubles = body("i64", 8, place);
        assert_eq!(fetches(&doubles, Prefetch::Auto), 2 * expected, "{place}");
        assert_eq!(fetches(&words, Prefetch::None), 0, "{place}");
        assert_eq!(fetches(&body("i8", 1, place), Prefetch::Auto), 0, "{place}");
    }
}

#[test]
fn bytes_are_gathered_by_numbers_of_32_bits() {
    let numbers = "  %6: i64 = input.payload[8]
  %7: <16 x i64> = zext %3
  %8: <16 x i64> = splat %6
  %9: <16 x i64> = add %7, %8
  %10: <16 x i8> = load.flat.i8x1[0] %0, %9
  framestore[0] %10
";
    let offsets = "  %6: <16 x i8> = load.surface.i8x1[0] %0, %3, %1\n  framestore[0] %6\n";
    for body in [numbers, offsets] {
        let made = ir_for(&named("sapphirerapids"), body, &SPEED);
        assert_eq!(count(&made, "@llvm.masked.gather.v16i32"), 1 + 1, "{made}");
        // By no addresses.
        assert_eq!(count(&made, "inttoptr"), 0, "{made}");
    }
}

/// LLVM's IR of a function's code for whole groups.
fn group_ir(text: &str) -> String {
    let mut f = function(text);
    assert!(run_pass(&mut f, "shape"));
    let options = SPEED.tuned(|t| t.dispatch = Dispatch::Group);
    named("icelake-server").ir(&f, &options).unwrap()
}

/// What every thread reads from local memory in a state in which none writes it is loaded in front of the loop over the threads: each
/// value comes from there, or is none where the rows are not all inside.
#[test]
fn rows_that_every_thread_reads_are_loaded_once() {
    let in_front = |text: &str| count(&group_ir(text), "[ poison, ");
    // Three rows, and a word for all lanes.
    assert_eq!(in_front(TILE), 4);
    assert_eq!(in_front(&TILE.replace("  return\n", CHANGED)), 0);
    // One row and a word again, which may be inside where the three rows are not.
    assert_eq!(in_front(&TILE.replace("  return\n", AGAIN)), 6);
    // Twenty rows, in half of the registers.
    let load = |n: u32| {
        let at: Vec<_> = (0..8).map(|lane| (32 * n + 4 * lane).to_string()).collect();
        let (address, row) = (30 + n, 60 + n);
        let at = at.join(", ");
        format!(
            "  %{address}: <8 x i32> = vconst [{at}]\n  %{row}: <8 x i32> = load.slm.i32x1[1] %0, %{address}\n  framestore[32] %{row}\n"
        )
    };
    let rows: String = (0..20).map(load).collect();
    let many = TILE.replace("  return\n", &format!("{rows}  return\n"));
    assert_eq!(in_front(&many), 16);
}

/// Four threads are run side by side where each is a long chain: the chain is there once for a single thread, and for four threads with
/// rows that are all inside and with others.
#[test]
fn threads_with_long_chains_are_run_side_by_side() {
    let links = |links| count(&group_ir(&long_chain(links)), "call <8 x float> @llvm.fma");
    // Eleven are short.
    assert_eq!(links(11), 11);
    assert_eq!(links(12), 9 * 12);
}

/// Labels stand between operations that the pass `interleave` has put in order, and nowhere else.
#[test]
fn labels_keep_the_order_of_operations() {
    let links: String = (10..58)
        .map(|n| format!("  %{}: <16 x f32> = fma %{n}, %{n}, %{n}\n", n + 1))
        .collect();
    let text =
        format!("{HEAD}  %10: <16 x f32> = bitcast %3\n{links}  framestore[0] %58\n  return\n");
    let labels = |f: &Function| {
        let made = host().ir(f, &SPEED).unwrap();
        count(&made, "call void @llvm.codeview.annotation")
    };
    let mut f = function(&text);
    assert_eq!(labels(&f), 0);
    run_pass(&mut f, "interleave");
    // Every six operations.
    assert!((8..=9).contains(&labels(&f)), "{f}");
}
