//! Programs built to make lowering explode end in a typed error in bounded time.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions};

fn lower(name: &str, text: &str) -> (Result<(), String>, Duration) {
    let options = EngineOptions {
        memory_bytes: 1 << 20,
        ..EngineOptions::default()
    };
    let engine = Engine::with_options(options).expect("engine");
    let program = engine
        .program_from_text(name, text, Platform::Skl)
        .expect("valid text");
    let start = Instant::now();
    let result = program.kernels()[0]
        .ssa(false)
        .map(|_| ())
        .map_err(|e| e.to_string());
    (result, start.elapsed())
}

const HEAD: &str = ".version 4.1\n.kernel \"k\"\n";
const MAIN: &str = ".kernel_attr SimdSize=16\n.function \"_main_0\"\n\n_main_0:\n";

#[test]
#[ignore = "seconds: thousands of variables"]
fn many_variables_through_many_joins() {
    let (variables, joins) = (3000, 3000);
    let mut text = HEAD.to_owned();
    for v in 0..variables {
        let _ = writeln!(text, ".decl X{v} v_type=G type=d num_elts=16 align=hword");
    }
    text += ".decl P1 v_type=P num_elts=16\n";
    text += MAIN;
    for j in 0..joins {
        let v = j % variables;
        let _ = writeln!(text, "    cmp.lt (M1, 16) P1 X{v}(0,0)<1;1,0> 0x5:d");
        let _ = writeln!(text, "    (P1) goto (M1, 16) L{j}\n");
        let _ = writeln!(
            text,
            "B{j}:\n    add (M1, 16) X{v}(0,0)<1> X{v}(0,0)<1;1,0> 0x1:d\n"
        );
        let _ = writeln!(text, "L{j}:");
    }
    // Every variable is still wanted at the end.
    for v in 1..variables {
        let _ = writeln!(
            text,
            "    add (M1, 16) X0(0,0)<1> X0(0,0)<1;1,0> X{v}(0,0)<1;1,0>"
        );
    }
    text += "    ret (M1, 1)\n";
    let (result, time) = lower("joins", &text);
    result.expect("few of the 9 million pairs need a block parameter");
    assert!(time < Duration::from_secs(20), "{time:?}");
}

/// Uniform jumps go back and forth between two columns of blocks, in which all variables differ: each block is a join that
/// needs a parameter for each variable.
#[test]
#[ignore = "seconds: thousands of variables"]
fn joins_that_need_too_many_parameters() {
    let (variables, rungs) = (2000, 2000);
    let mut text = HEAD.to_owned();
    for v in 0..variables {
        let _ = writeln!(text, ".decl X{v} v_type=G type=d num_elts=1");
    }
    text += ".decl P1 v_type=P num_elts=1\n";
    text += MAIN;
    text += "    (P1) jmp (M1, 1) B\n";
    for column in ["A", "B"] {
        let other = if column == "A" { "B" } else { "A" };
        let _ = writeln!(text, "{column}:");
        for v in 0..variables {
            let _ = writeln!(text, "    mov (M1_NM, 1) X{v}(0,0)<1> 0x1:d");
        }
        for rung in 0..rungs {
            let next = rung + 1;
            let _ = writeln!(text, "{column}{rung}:\n    (P1) jmp (M1, 1) {other}{next}");
        }
        let _ = writeln!(text, "{column}{rungs}:");
        for v in 1..variables {
            let _ = writeln!(
                text,
                "    add (M1_NM, 1) X0(0,0)<1> X0(0,0)<0;1,0> X{v}(0,0)<0;1,0>"
            );
        }
        text += "    ret (M1, 1)\n";
    }
    let (result, time) = lower("ladder", &text);
    let error = result.expect_err("8 million parameters are too many");
    assert!(error.contains("too large"), "{error}");
    assert!(time < Duration::from_secs(20), "{time:?}");
}

#[test]
#[ignore = "seconds: thousands of variables"]
fn more_variables_live_at_a_join_than_sixteen_bits_count() {
    let variables = 70_000;
    let mut text = HEAD.to_owned();
    for v in 0..variables {
        let _ = writeln!(text, ".decl X{v} v_type=G type=d num_elts=1");
    }
    text += ".decl P1 v_type=P num_elts=1\n";
    text += MAIN;
    text += "    (P1) jmp (M1, 1) L\n";
    for v in 0..variables {
        let _ = writeln!(text, "    mov (M1_NM, 1) X{v}(0,0)<1> 0x{v:x}:d");
    }
    text += "L:\n";
    for v in 1..variables {
        let _ = writeln!(
            text,
            "    add (M1_NM, 1) X0(0,0)<1> X0(0,0)<0;1,0> X{v}(0,0)<0;1,0>"
        );
    }
    text += "    ret (M1, 1)\n";
    let (result, _) = lower("wide", &text);
    result.expect("each variable has its parameter");
}

#[test]
fn too_many_blocks() {
    let mut text = format!("{HEAD}{MAIN}");
    for j in 0..20_001 {
        let _ = writeln!(text, "    goto (M1, 1) L{j}\n\nL{j}:");
    }
    text += "    ret (M1, 1)\n";
    let (result, time) = lower("blocks", &text);
    let error = result.expect_err("over the limit");
    assert!(error.contains("basic blocks"), "{error}");
    assert!(time < Duration::from_secs(2), "{time:?}");
}

#[test]
fn calls_in_a_circle() {
    let mut text = format!("{HEAD}{MAIN}    call (M1, 16) f0_1\n    ret (M1, 1)\n");
    let n = 2000;
    for f in 0..n {
        let next = (f + 1) % n;
        let _ = write!(
            text,
            "\n.function \"f{f}_1\"\n\nf{f}_1:\n    call (M1, 16) f{next}_1\n    ret (M1, 16)\n"
        );
    }
    let (result, time) = lower("circle", &text);
    let error = result.expect_err("recursion");
    assert!(error.contains("recursive"), "{error}");
    assert!(time < Duration::from_secs(2), "{time:?}");
}
