//! What functions called through the stack are told of the launch, where its address is an argument.

use super::stop::engines;
use visa_jit::{Engine, Launch};

/// What `call_ids` of `tests/kernels/call_ids.cl` writes.
fn ids(engine: &Engine, zebin: &[u8]) -> Vec<i32> {
    let program = engine.program_from_zebin(zebin, None).unwrap();
    let out = engine.memory().alloc_from(&[0_i32; 32]).unwrap();
    let depths: Vec<i32> = (0..32).collect();
    let depths = engine.memory().alloc_from(&depths).unwrap();
    let launch = Launch::new([16, 2, 1])
        .local([8, 2, 1])
        .offset([3, 5, 0])
        .arg(0, &out)
        .arg(1, &depths);
    program.kernel("call_ids").unwrap().launch(&launch).unwrap();
    out.to_vec_of()
}

/// `call_ids_tgllp.zebin` is by version 26.27 of ocloc, which gives it an `implicit_arg_buffer`; the other zebin has the same in
/// its payload, and is compared with the reference on the host elsewhere.
#[test]
fn implicit_arguments_by_address() {
    for (name, engine) in engines() {
        let by_address = ids(&engine, include_bytes!("call_ids_tgllp.zebin"));
        let in_payload = ids(
            &engine,
            include_bytes!("../kernels/bin/acm-g10/call_ids.zebin"),
        );
        assert_eq!(by_address, in_payload, "{name}");
    }
}

/// The compiler leaves no instructions in the vISA text of kernels in explicit SIMD. They are not run as if they did nothing.
#[test]
fn text_without_instructions_is_refused() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/kernels/bin/skl/saxpy.zebin"
    );
    let whole = std::fs::read(path).unwrap();
    let mut bytes = whole.clone();
    let text = |bytes: &[u8], what: &[u8], from: usize| {
        let found = bytes[from..].windows(what.len()).position(|w| w == what);
        found.map(|at| from + at)
    };
    let mut from = 0;
    while let Some(start) = text(&bytes, b".version ", from) {
        let last = text(&bytes, b"    ret (M1, 1)", start).unwrap();
        let end = text(&bytes, b"\n", last).unwrap();
        let mut at = start;
        for line in whole[start..end].split(|byte| *byte == b'\n') {
            let kept = matches!(line.first(), None | Some(b'.' | b'/'));
            if !kept {
                bytes[at..at + line.len()].fill(b' ');
            }
            at += line.len() + 1;
        }
        from = end;
    }
    let engine = Engine::new().unwrap();
    let Err(error) = engine.program_from_zebin(&bytes, None) else {
        panic!("it is loaded");
    };
    assert!(error.to_string().contains("explicit SIMD"), "{error}");
}
