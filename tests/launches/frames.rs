//! Straight-line code that spills more than the stack of a thread has room for.

use std::fmt::Write as _;

use visa_jit::Launch;
use visa_jit::isa::Platform;
use visa_runtime::abi::MAX_HOST_STACK_BYTES;

use super::stop::engines;

/// Variables of 32 lanes.
const VARIABLES: usize = 1024;

/// `adds` sums of variables chosen at random, and a store of each variable.
fn kernel(adds: usize) -> String {
    let mut text = ".version 4.1\n.kernel \"k\"\n.kernel_attr SimdSize=32\n".to_owned();
    for v in 0..VARIABLES {
        writeln!(text, ".decl V{v} v_type=G type=ud num_elts=32 align=GRF").unwrap();
    }
    text += ".decl T6 v_type=T num_elts=1\n.function \"main\"\n    movs (M1_NM, 1) T6(0) 0x0:ud\n";
    for v in 0..VARIABLES {
        writeln!(text, "    oword_ld (8) T6 0x{:x}:ud V{v}.0", v * 8).unwrap();
    }
    let mut random = 12345_u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random as usize >> 16 & (VARIABLES - 1)
    };
    for _ in 0..adds {
        let (to, a, b) = (next(), next(), next());
        writeln!(
            text,
            "    add (M1_NM, 32) V{to}(0,0)<1> V{a}(0,0)<1;1,0> V{b}(0,0)<1;1,0>"
        )
        .unwrap();
    }
    for v in 0..VARIABLES {
        writeln!(text, "    oword_st (8) T6 0x{:x}:ud V{v}.0", v * 8).unwrap();
    }
    text + "    ret (M1, 1)\n"
}

#[test]
#[ignore = "it is compiled for seconds"]
fn large_frames_have_stacks_of_their_own() {
    let text = kernel(300);
    let input: Vec<u32> = (0..VARIABLES as u32 * 32).collect();
    let mut expected: Option<Vec<u32>> = None;
    for (name, engine) in engines() {
        let program = engine.program_from_text("k", &text, Platform::Pvc).unwrap();
        let buffer = engine.memory().alloc_from(&input).unwrap();
        let launch = Launch::new([32, 1, 1])
            .local([32, 1, 1])
            .surface(0, buffer.clone());
        let prepared = program.kernels()[0].prepare(&launch).unwrap();
        if name == "cranelift" {
            let stack = prepared.code().unwrap().object().stack_bytes;
            assert!(stack > MAX_HOST_STACK_BYTES, "{stack}");
        }
        prepared.run().unwrap();
        let found = buffer.to_vec_of::<u32>();
        assert_ne!(found, input);
        let expected = expected.get_or_insert_with(|| found.clone());
        assert!(*expected == found, "{name}");
        // Many groups at once, each worker with a stack of its own: what they leave is a matter of order.
        let launch = Launch::new([512, 1, 1])
            .local([32, 1, 1])
            .threads(2)
            .surface(0, buffer);
        let report = program.kernels()[0].launch(&launch).unwrap();
        assert_eq!(report.groups, 16);
    }
}
