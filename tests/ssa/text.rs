//! Printer and parser are inverses; bad text is a typed error with a place.

use visa_jit::ssa::parse::ParseErrorKind;
use visa_jit::ssa::{parse, verify};

const ALL: &str = r#"function "every \"op\"" simd 16 regs 64 frame 256 states 2 slm 1024
site 0 = read surface 4 "gather4_scaled" line 12
site 1 = write flat 8 "svm_scatter" line 13
site 2 = atomic slm 4 "dword_atomic" line 14

bb0:
  %0: <16 x i1> = input.dispatchmask
  %1: i32 = const -1
  %2: i64 = const 0x123456789abcdef0
  %3: f32 = const 1.5
  %4: f64 = const -0.25
  %5: f32 = const 0x7fc00000
  %6: <16 x i32> = vconst [7 ...]
  %7: <4 x i16> = vconst [0, 1, -2, 3]
  %8: <16 x i16> = input.localids.x[0]
  %9: i16 = input.localid.z[3]
  %10: i32 = input.payload[32]
  %11: i32 = input.r0[1]
  %12: i32 = input.sr0[0]
  %13: i32 = input.hwid
  %14: i64 = input.tsc
  %15: i32 = input.state
  switch %15, [bb1, bb2(%1)], bb3(%6, %0)  ; line 3
bb1:
  %16: <16 x i32> = zext %8  ; line 4
  %17: <16 x i32> = add %16, %6
  %18: <16 x i32> = shl %17, %1
  %19: <16 x i1> = icmp.slt %17, %18
  %20: <16 x i32> = select %19, %17, %18
  %21: <16 x f32> = sitof %20
  %22: <16 x f32> = fma %21, %21, %21
  %23: <16 x i1> = fcmp.ge %21, %22
  %24: <16 x f32> = splat %3
  %25: <16 x f32> = fpenv.add %1, %24, %22
  %26: <32 x i16> = bitcast %25
  %27: i16 = extractlane[31] %26
  %28: <32 x i16> = insertlane[0] %26, %27
  %29: <2 x i16> = shuffle[31, 33] %28, %7
  %30: i1 = maskany %23
  %31: i1 = maskall %23
  %32: i32 = masktobits %23
  %33: <16 x i1> = bitstomask %32
  %34: <16 x i32>, %35: <16 x i32> = load.surface.i32x2[0] %0, %16, %1  ; line 12 gather4_scaled
  %36: <16 x i64> = sext %34
  store.flat.i64x1[1] %0, %36, %36  ; line 13 svm_scatter
  %37: <16 x i32> = atomic.slm.cmpxchg.i32[2] %0, %34, %35, %34  ; line 14 dword_atomic
  %38: <64 x i8> = blockload.scratch.i8x64[0] %30, %1  ; gather4_scaled
  blockstore.regs.i8x64[1] %31, %1, %38  ; svm_scatter
  framestore[64] %37
  %39: <16 x i32> = frameload[64]
  fence
  poll
  branch %30, bb2(%1), bb3(%39, %33)
bb2(%40: i32):
  suspend 2
bb3(%41: <16 x i32>, %42: <16 x i1>):
  return  ; line 99
"#;

#[test]
fn printing_a_parsed_function_gives_the_same_text() {
    let f = parse(ALL).unwrap();
    assert_eq!(f.to_string(), ALL);
    verify(&f).unwrap();
}

#[test]
fn rectangles_have_a_text_form() {
    let text = r#"function "f" simd 8
site 0 = read flat 2 "lsc_load_block2d" line 3
site 1 = write flat 8 "lsc_store_block2d" line 4

bb0:
  %0: i1 = const 1
  %1: i64 = const 4096
  %2: i32 = const 63
  %3: <32 x i16>, %4: <32 x i16> = load2d.i16.1x16x4nt.64[0] %0, %1, %2, %2, %2, %2, %2  ; line 3 lsc_load_block2d
  %5: <4 x i64> = vconst [1, 2, 3, 4]
  store2d.i64.1x3x2nn.32[1] %0, %1, %2, %2, %2, %2, %2, %5, %5  ; line 4 lsc_store_block2d
  return
"#;
    let f = parse(text).unwrap();
    assert_eq!(f.to_string(), text);
    verify(&f).unwrap();
    // The operation says how many registers there are, and of what.
    for (from, to) in [
        ("16x4nt.64", "16x8nt.64"),
        ("16x4nt.64", "16x3nt.64"),
        ("%5, %5  ;", "%5  ;"),
        ("load2d.i16", "load2d.i32"),
        ("[0] %0, %1", "[0] %0, %2"),
        ("1x3x2nn.32", "1x3x2nn.48"),
    ] {
        let text = text.replace(from, to);
        assert!(verify(&parse(&text).unwrap()).is_err(), "{to}");
    }
}

/// A function has barriers or suspends, not both.
#[test]
fn barriers_have_a_text_form() {
    let text = "function \"f\" simd 8\n\nbb0:\n  barrier  ; line 7\n  return\n";
    let f = parse(text).unwrap();
    assert_eq!(f.to_string(), text);
    verify(&f).unwrap();
}

#[test]
fn exchanges_have_a_text_form() {
    let text = "function \"f\" simd 8\n\nbb0:\n  %0: <4 x i32> = vconst [7 ...]\n  \
                %1: <4 x i32> = exchange %0  ; line 7\n  return\n";
    let f = parse(text).unwrap();
    assert_eq!(f.to_string(), text);
    verify(&f).unwrap();
    let text = "function \"f\" simd 8\n\nbb0:\n  %0: i32 = const 32\n  \
                %1: i32 = namedbarrier.signal %0, %0, %0, %0\n  \
                %2: i32 = namedbarrier.pass %0, %0, %0, %0\n  return\n";
    let f = parse(text).unwrap();
    assert_eq!(f.to_string(), text);
    let text = "function \"f\" simd 8\nsite 0 = barrier regs 0 \"sbarrier\" line 3\n\nbb0:\n  \
                %0: i32 = const 255\n  check.signal[0] %0  ; sbarrier\n  \
                check.barrier[0] %0  ; sbarrier\n  return\n";
    let f = parse(text).unwrap();
    assert_eq!(f.to_string(), text);
    verify(&f).unwrap();
    let text = "function \"f\" simd 8 frame 64 states 3\nexchange 16 bytes at 32 lines [7, 12]\n\nbb0:\n  return\n";
    let f = parse(text).unwrap();
    assert_eq!(f.to_string(), text);
    verify(&f).unwrap();
}

#[test]
fn gaps_in_numbers_are_kept() {
    let text = "function \"f\" simd 8\n\nbb0:\n  %7: i32 = const 1\n  jump bb5(%7)\n\
                bb5(%3: i32):\n  return\n";
    let f = parse(text).unwrap();
    assert_eq!(f.to_string(), text);
    verify(&f).unwrap();
}

fn error(body: &str) -> (u32, u32, ParseErrorKind) {
    let text = format!("function \"f\" simd 8\n\nbb0:\n{body}");
    let e = parse(&text).expect_err(body);
    (e.line, e.column, e.kind)
}

#[test]
fn errors_name_the_place() {
    use ParseErrorKind::{BadNumber, Duplicate, Expected, TooLarge, UnknownOperation};
    assert_eq!(
        error("  %0: i32 = addd %0\n"),
        (4, 13, UnknownOperation("addd".into()))
    );
    assert_eq!(
        error("  %0: i33 = const 1\n"),
        (4, 10, Expected("a lane type"))
    );
    assert_eq!(
        error("  %0: i32 = const x\n  return\n"),
        (4, 19, BadNumber("x".into()))
    );
    let twice = "  %0: i1 = const 1\n  %0: i1 = const 1\n  return\n";
    assert_eq!(error(twice), (5, 3, Duplicate("%0".into())));
    assert_eq!(
        error("  jump bb1\n").2,
        ParseErrorKind::Undefined("bb1".into())
    );
    assert_eq!(
        error("  suspend 1\nbb3000000:\n  return\n").2,
        TooLarge("bb3000000".into())
    );
    assert_eq!(error("  return now\n").2, Expected("the end of the line"));
    assert!(parse("").is_err() && parse("function \"f\" simd 8").is_err());
}

/// Every cut and every changed byte of a text gives a function or an error, and what it gives prints
/// and verifies without a panic.
#[test]
fn damaged_text_never_panics() {
    for at in (0..ALL.len()).step_by(if visa_test_common::full() { 1 } else { 7 }) {
        let _ = parse(&ALL[..at]);
        for byte in [b'0', b'%', b'9', b'x', b'"', b'\n', b','] {
            let mut bytes = ALL.as_bytes().to_vec();
            bytes[at] = byte;
            if let Ok(f) = parse(std::str::from_utf8(&bytes).unwrap()) {
                let _ = verify(&f);
                let again = parse(&f.to_string());
                assert_eq!(again.map(|g| g.to_string()), Ok(f.to_string()));
            }
        }
    }
}
