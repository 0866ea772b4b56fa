//! What is made of accesses, in Cranelift's terms. That it is right other tests show (`several.rs`, `memory.rs`); these fail where
//! it is not done.

use visa_jit::backend::cranelift::CraneliftBackend;
use visa_jit::passes::run_pass;

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
  %6: <16 x i32> = vconst [0, 64, 128, 192, 256, 320, 384, 448, 512, 576, 640, 704, 768, 832, 896, 960]
  %7: <16 x i32> = add %5, %6
"#;

/// How often the code of a block after [`HEAD`] says something, before Cranelift optimises it.
fn count(body: &str, what: &str) -> usize {
    let mut f = function(&format!("{HEAD}{body}  return\n"));
    assert!(run_pass(&mut f, "shape"));
    let clif = CraneliftBackend::host().unwrap().clif(&f, &SPEED).unwrap();
    clif.matches(what).count()
}

const STRUCTS: &str =
    "  %8: <16 x i32>, %9: <16 x i32>, %10: <16 x i32>, %11: <16 x i32> = load.surface.i32x4[0] %0, %7, %1
";

#[test]
fn structs_that_are_copied_are_not_transposed_back() {
    let store = |data: &str| format!("{STRUCTS}  store.surface.i32x4[0] %0, %7, %2, {data}\n");
    let copied = count(&store("%8, %9, %10, %11"), "shuffle ");
    // Of each four lanes, one way; turned round they are put together anew.
    assert_eq!(copied, 4 * 8);
    assert_eq!(count(&store("%11, %10, %9, %8"), "shuffle "), 2 * copied);
}

#[test]
fn distances_of_several_sums_share_a_test() {
    let splat = |n: u32| vec![n.to_string(); 16].join(", ");
    let far = format!(
        "{STRUCTS}  %20: <16 x i32> = vconst [{}]
  %21: <16 x i32> = add %7, %20
  %22: <16 x i32> = vconst [{}]
  %23: <16 x i32> = add %21, %22
  %12: <16 x i32>, %13: <16 x i32>, %14: <16 x i32>, %15: <16 x i32> = load.surface.i32x4[0] %0, %21, %1
  %16: <16 x i32>, %17: <16 x i32>, %18: <16 x i32>, %19: <16 x i32> = load.surface.i32x4[0] %0, %23, %1
  framestore[0] %8
  framestore[64] %12
  framestore[128] %16
",
        splat(1024),
        splat(16)
    );
    let near = format!("{STRUCTS}  framestore[0] %8\n");
    assert_eq!(count(&far, "icmp ult"), count(&near, "icmp ult"));
}

/// Of few atomics of local memory there is straight code for all lanes; their loop reads lanes from memory.
#[test]
fn atomics_of_all_lanes_are_straight_code() {
    let some = |n: u32| {
        let one = |i| format!("  %{}: <16 x i32> = atomic.slm.inc.i32[0] %0, %3\n", 8 + i);
        (0..n).map(one).collect::<String>()
    };
    let (one, eight, nine) = (some(1), some(8), some(9));
    let loads = |body: &str| count(body, "load.i32");
    let each = loads(&one) - loads("");
    assert!(each >= 16, "{each}");
    assert_eq!(loads(&eight) - loads(""), 8 * each);
    assert!(loads(&nine) < loads(&eight));
}

/// Structs at any addresses: each as a vector, in a loop over four lanes at a time, where they are not very many.
#[test]
fn scattered_records_are_loaded_inline() {
    let some = |n: u32| {
        let one = |i: u32| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|k| 8 + 4 * i + k);
            let typed = "<16 x i32>";
            format!(
                "  %{a}: {typed}, %{b}: {typed}, %{c}: {typed}, %{d}: {typed} = load.surface.i32x4[0] %0, %3, %1\n"
            )
        };
        (0..n).map(one).collect::<String>()
    };
    let loads = |body: &str| count(body, "load.i32x4 notrap");
    // Beside four rows of the answer to the message.
    assert_eq!(loads(&some(64)) - loads(""), 64 * (4 + 4 * 4));
    assert_eq!(loads(&some(65)) - loads(""), 65 * 4 * 4);
}

/// Where x86 has only the opposite comparison, a choice takes its operands the other way round and needs no complement; a store of the
/// mask does.
#[cfg(target_arch = "x86_64")]
#[test]
fn choices_take_the_opposite_comparison() {
    let complements_read = |cond: &str, read: &str| {
        let body = format!("  %8: <16 x i1> = icmp.{cond} %3, %7\n{read}");
        let mut f = function(&format!("{HEAD}{body}  return\n"));
        assert!(run_pass(&mut f, "shape"));
        let clif = CraneliftBackend::host().unwrap().clif(&f, &SPEED).unwrap();
        let made = clif.lines().filter_map(|l| l.split_once(" = bnot "));
        let made: Vec<&str> = made.map(|(name, _)| name.trim()).collect();
        let words = || clif.split(|c: char| !c.is_alphanumeric());
        let read = |name: &&&str| words().filter(|w| w == *name).count() > 1;
        (made.len(), made.iter().filter(read).count())
    };
    let choice = "  %9: <16 x i32> = select %8, %5, %6\n  framestore[0] %9\n";
    let store = "  framestore[0] %8\n";
    for cond in ["ult", "ugt", "ne"] {
        assert_eq!(complements_read(cond, choice), (4, 0), "{cond}");
        assert_eq!(complements_read(cond, store), (4, 4), "{cond}");
    }
    for cond in ["slt", "sle", "uge", "eq"] {
        assert_eq!(complements_read(cond, choice), (0, 0), "{cond}");
    }
}

/// A mask of which all lanes are one bit is the same piece for all of them. Elsewhere each lane's bit is compared.
#[test]
fn masks_of_one_bit_are_not_taken_apart() {
    let chosen = |mask: &str| {
        let body = format!(
            "  %8: i1 = icmp.eq %4, %1
  %9: <16 x i1> = {mask}
  %10: <16 x i1> = icmp.slt %3, %7
  %11: <16 x i1> = or %9, %10
  %12: <16 x i32> = select %11, %5, %6
  framestore[0] %12
"
        );
        count(&body, "icmp eq")
    };
    assert_eq!(chosen("splat %8"), 1);
    assert_eq!(chosen("bitstomask %4"), 1 + 4);
}
