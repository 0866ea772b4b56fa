//! Registers of memory messages that depend on types and devices, from vISA text.

use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions, Launch};

const HEAD: &str = ".version 4.1
.kernel \"k\"
.decl IDS v_type=G type=uw num_elts=16 align=GRF
.decl OUT v_type=G type=uq num_elts=1 align=qword
.decl IN v_type=G type=uq num_elts=1 align=qword
";

const PAYLOAD: &str = "
.kernel_attr SimdSize=SIMD
.function \"_main_0\"

_main_0:
";

/// Runs a kernel of `simd` lanes on `items` items, with `IN` the address of `input`; what is at `OUT` afterwards.
fn run(
    platform: Platform,
    simd: u32,
    items: u32,
    decls: &str,
    body: &str,
    input: &[u32],
) -> Vec<u32> {
    let grf = platform.grf_bytes();
    let args = 4 * grf;
    let inputs = format!(
        ".input IDS offset={grf} size=32\n.input OUT offset={args} size=8\n.input IN offset={} size=8\n",
        args + 8
    );
    let payload = PAYLOAD.replace("SIMD\n", &format!("{simd}\n"));
    let text = format!("{HEAD}{decls}{inputs}{payload}{body}    ret (M1, 1)\n");
    let engine = Engine::new().unwrap();
    let out = engine.memory().alloc(4096).unwrap();
    let input = engine.memory().alloc_from(input).unwrap();
    let program = engine
        .program_from_text("test", &text, platform)
        .unwrap_or_else(|e| panic!("{e}"));
    let launch = Launch::new([items, 1, 1])
        .local([items, 1, 1])
        .input("OUT", out.address().to_le_bytes().to_vec())
        .input("IN", input.address().to_le_bytes().to_vec());
    let report = program.kernels()[0]
        .launch(&launch)
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(report.fault_count, 0, "{report:?}");
    out.to_vec_of::<u32>()
}

/// `svm_gather4scaled` takes addresses instead of offsets when their variable has 64-bit elements.
#[test]
fn offsets_of_64_bits_are_addresses() {
    let decls = "
.decl WORD v_type=G type=ud num_elts=16 align=GRF
.decl LONG v_type=G type=uq num_elts=16 align=GRF
.decl FROM v_type=G type=uq num_elts=16 align=GRF
.decl TO v_type=G type=uq num_elts=16 align=GRF
.decl DATA v_type=G type=ud num_elts=64 align=GRF
";
    let addresses = "
    mul (M1, 16) WORD(0,0)<1> IDS(0,0)<1;1,0> 0x8:uw
    mov (M1, 16) LONG(0,0)<1> WORD(0,0)<1;1,0>
    add (M1, 16) FROM(0,0)<1> LONG(0,0)<1;1,0> IN(0,0)<0;1,0>
    add (M1, 16) TO(0,0)<1> LONG(0,0)<1;1,0> OUT(0,0)<0;1,0>
";
    let input: Vec<u32> = (0..64).map(|i| 1000 + i).collect();
    for (what, load) in [
        (
            "64 bits",
            "    svm_gather4scaled.RG (M1, 16) 0x0:ud FROM.0 DATA.0\n",
        ),
        (
            "32 bits",
            "    svm_gather4scaled.RG (M1, 16) IN(0,0)<0;1,0> WORD.0 DATA.0\n",
        ),
    ] {
        let body = format!("{addresses}{load}    svm_scatter.4.2 (M1, 16) TO.0 DATA.0\n");
        let out = run(Platform::Skl, 16, 16, decls, &body, &input);
        assert_eq!(out[..32], input[..32], "{what}");
    }
}

/// Components of LSC vectors are padded to 8 lanes on DG2, to 16 on PVC.
#[test]
fn lsc_vectors_of_eight_lanes() {
    for platform in [Platform::Dg2, Platform::Pvc] {
        let decls = "
.decl WORD v_type=G type=ud num_elts=16 align=GRF
.decl LONG v_type=G type=uq num_elts=16 align=GRF
.decl TO v_type=G type=uq num_elts=16 align=GRF
.decl DATA v_type=G type=ud num_elts=32 align=GRF
";
        // The second component is one register after the first on both: 8 lanes of 32 bytes, 16 of 64.
        let body = "
    mov (M1, 8) WORD(0,0)<1> IDS(0,0)<1;1,0>
    mul (M1, 8) LONG(0,0)<1> WORD(0,0)<1;1,0> 0x8:ud
    add (M1, 8) TO(0,0)<1> LONG(0,0)<1;1,0> OUT(0,0)<0;1,0>
    add (M1, 8) DATA(0,0)<1> WORD(0,0)<1;1,0> 0x64:ud
    add (M1, 8) DATA(1,0)<1> WORD(0,0)<1;1,0> 0xc8:ud
    lsc_store.ugm (M1, 8)  flat[TO]:a64  DATA:d32x2
";
        let out = run(platform, 8, 8, decls, body, &[]);
        let want: Vec<u32> = (0..8).flat_map(|i| [100 + i, 200 + i]).collect();
        assert_eq!(out[..16], want[..], "{platform}");
    }
}

/// Every hardware thread of a group has its own `%hw_id`.
#[test]
fn hardware_threads_differ() {
    let decls = "
.decl ID v_type=G type=ud num_elts=1 align=dword
.decl WORD v_type=G type=ud num_elts=16 align=GRF
.decl LONG v_type=G type=uq num_elts=16 align=GRF
.decl TO v_type=G type=uq num_elts=16 align=GRF
.decl DATA v_type=G type=ud num_elts=16 align=GRF
";
    let body = "
    mov (M1_NM, 1) ID(0,0)<1> %hw_id(0,0)<0;1,0>
    mul (M1, 16) WORD(0,0)<1> IDS(0,0)<1;1,0> 0x4:uw
    mov (M1, 16) LONG(0,0)<1> WORD(0,0)<1;1,0>
    add (M1, 16) TO(0,0)<1> LONG(0,0)<1;1,0> OUT(0,0)<0;1,0>
    mov (M1, 16) DATA(0,0)<1> ID(0,0)<0;1,0>
    svm_scatter.4.1 (M1, 16) TO.0 DATA.0
";
    let out = run(Platform::Skl, 16, 40, decls, body, &[]);
    let want: Vec<u32> = (0..40).map(|i| i / 16).collect();
    assert_eq!(out[..40], want[..]);
}

/// Messages that are none to memory, or whose descriptors say what is not decoded, are refused by name on every engine.
#[test]
fn other_hardware_messages_are_named() {
    let cases = [
        (
            "raw_send (M1_NM, 1) 0x2 1 1 0x2420000:ud V.0 W.0",
            "sampler",
        ),
        (
            "raw_send (M1_NM, 1) 0x3 1 0 0x2000004:ud V.0 %null.0",
            "gateway",
        ),
        (
            "raw_sends.6.1.1.0 (M1, 8) 0x6:ud 0x2080007:ud V.0 W.0 %null.0",
            "unified return buffer",
        ),
        (
            "raw_sends.5.1.1.0 (M1, 8) 0x5:ud 0x20a0000:ud V.0 W.0 %null.0",
            "render cache",
        ),
        (
            "raw_sends.7.1.0.0 (M1, 8) 0x7:ud 0x2000010:ud V.0 %null.0 %null.0",
            "thread spawner",
        ),
        (
            "raw_sends.8.1.0.1 (M1, 8) 0x8:ud 0x2100000:ud V.0 %null.0 W.0",
            "video motion estimation",
        ),
        (
            "raw_sends.9.1.0.1 (M1, 8) 0x9:ud 0x2100000:ud V.0 %null.0 W.0",
            "constant cache",
        ),
        (
            "raw_sends.10.1.0.1 (M1, 8) 0xa:ud 0x2118000:ud V.0 %null.0 W.0",
            "untyped atomic",
        ),
        (
            "raw_sends.10.1.0.1 (M1, 8) 0xa:ud 0x2190000:ud V.0 %null.0 W.0",
            "byte scattered read",
        ),
        (
            "raw_sends.12.1.0.1 (M1, 8) 0xc:ud 0x2112e02:ud V.0 %null.0 W.0",
            "media block read",
        ),
        (
            "raw_sends.12.1.0.1 (M1, 8) 0xc:ud 0x2114002:ud V.0 %null.0 W.0",
            "typed surface read",
        ),
        (
            "raw_sends.11.1.0.1 (M1, 8) 0xb:ud 0x2112e02:ud V.0 %null.0 W.0",
            "shared function 0xb",
        ),
        (
            "raw_sends.12.1.0.1 (M1, 8) V(0,0)<0;1,0> 0x2106e02:ud V.0 %null.0 W.0",
            "is not a constant",
        ),
        (
            "raw_sends.12.1.0.1 (M1, 8) 0xc:ud V(0,0)<0;1,0> V.0 %null.0 W.0",
            "only known when the kernel runs",
        ),
        (
            "raw_sends_eot.3.1.0.0 (M1, 1) 0x0:ud 0x2000010:ud V.0 %null.0 %null.0",
            "ends the thread",
        ),
    ];
    let interpreted = EngineOptions {
        interpret: Some(Default::default()),
        ..EngineOptions::default()
    };
    for options in [EngineOptions::default(), interpreted] {
        let engine = Engine::with_options(options).unwrap();
        for (line, name) in cases {
            let text = format!(
                ".version 4.1\n.kernel \"k\"\n.kernel_attr SimdSize=8\n\
                 .decl V v_type=G type=ud num_elts=32 align=GRF\n\
                 .decl W v_type=G type=ud num_elts=32 align=GRF\n\
                 .function \"main\"\n    {line}\n    ret (M1, 1)\n"
            );
            let program = engine.program_from_text("k", &text, Platform::Skl).unwrap();
            let launch = Launch::new([8, 1, 1]).local([8, 1, 1]);
            let error = program.kernels()[0]
                .launch(&launch)
                .unwrap_err()
                .to_string();
            let says = error.contains("line 7") && error.contains("unsupported");
            assert!(says && error.contains(name), "{line}: {error}");
        }
    }
}
