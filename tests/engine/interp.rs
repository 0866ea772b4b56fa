//! The interpreter where file tests do not reach: fuel, call depth, traces, interruption; and control flow on which
//! it has to agree with compiled code.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use visa_jit::interp::{InterpError, InterpOptions, Trace};
use visa_jit::isa::Platform;
use visa_jit::{Class, Engine, EngineOptions, Error, Launch, Report};
use visa_runtime::LaunchStatus;

const HEAD: &str = ".version 4.1
.kernel \"k\"
.kernel_attr SimdSize=16
.decl V v_type=G type=ud num_elts=16 align=GRF
.decl N v_type=G type=ud num_elts=16 align=GRF
.decl P1 v_type=P num_elts=16
.decl P2 v_type=P num_elts=16
.decl T6 v_type=T num_elts=1
.function \"main\"
    movs (M1_NM, 1) T6(0) 0x0:ud
    mov (M1_NM, 8) N(0,0)<1> 0x76543210:v
    add (M1_NM, 8) N(0,8)<1> N(0,0)<1;1,0> 0x8:ud
    mov (M1_NM, 16) V(0,0)<1> 0x0:ud
";

fn interpreter(options: InterpOptions) -> Engine {
    Engine::with_options(EngineOptions {
        interpret: Some(options),
        ..EngineOptions::default()
    })
    .unwrap()
}

/// One group of 16 lanes; what surface 0 holds afterwards.
fn run(engine: &Engine, body: &str) -> Result<(Report, Vec<u32>), Error> {
    let text = format!("{HEAD}{body}");
    let program = engine.program_from_text("k", &text, Platform::Skl)?;
    let buffer = engine.memory().alloc_from(&[0u32; 16])?;
    let launch = Launch::new([16, 1, 1])
        .local([16, 1, 1])
        .surface(0, buffer.clone())
        .deadline(Duration::from_secs(20));
    let report = program.kernels()[0].launch(&launch)?;
    Ok((report, buffer.to_vec_of::<u32>()))
}

const STORE: &str = "    oword_st (4) T6 0x0:ud V.0\n    ret (M1, 1)\n";

/// Runs on both engines, which must leave the same.
fn both(body: &str) -> Vec<u32> {
    let (_, interpreted) = run(&interpreter(InterpOptions::default()), body).unwrap();
    let (_, compiled) = run(&Engine::new().unwrap(), body).unwrap();
    assert_eq!(interpreted, compiled, "interpreted, compiled");
    interpreted
}

#[test]
fn fuel_runs_out() {
    let endless = "L:\n    add (M1, 16) V(0,0)<1> V(0,0)<1;1,0> 0x1:ud\n    goto (M1, 1) L\n";
    let engine = interpreter(InterpOptions {
        fuel: Some(1000),
        ..InterpOptions::default()
    });
    let error = run(&engine, endless).unwrap_err();
    assert_eq!(error.exit_class(), Class::Input);
    let Error::Interp { error, .. } = error else {
        panic!("{error}")
    };
    assert!(matches!(error, InterpError::Fuel { limit: 1000, pos } if pos.line > 13));
    // What needs less is not stopped, whatever the number of lanes.
    assert!(run(&engine, STORE).is_ok());
}

#[test]
fn recursion_is_bounded() {
    let again =
        "    add (M1, 16) V(0,0)<1> V(0,0)<1;1,0> 0x1:ud\n    call (M1, 16) F\n    ret (M1, 16)\n";
    let engine = interpreter(InterpOptions {
        max_call_depth: 50,
        ..InterpOptions::default()
    });
    let body = format!("    call (M1, 16) F\n{STORE}.function \"F\"\nF:\n{again}");
    let (_, out) = run(&engine, &body).unwrap();
    // The kernel's call, and 50 more.
    assert_eq!(out, [51; 16]);
}

/// Each lane calls itself as often as its number says: lanes return at different depths.
#[test]
fn lanes_recur_to_different_depths() {
    let body = "    call (M1, 16) F\n    oword_st (4) T6 0x0:ud V.0\n    ret (M1, 1)\n.function \"F\"\nF:\n    \
        cmp.eq (M1, 16) P1 N(0,0)<1;1,0> 0x0:ud\n    (P1) ret (M1, 16)\n    \
        add (M1, 16) N(0,0)<1> N(0,0)<1;1,0> 0xffffffff:ud\n    \
        add (M1, 16) V(0,0)<1> V(0,0)<1;1,0> 0x2:ud\n    call (M1, 16) F\n    ret (M1, 16)\n";
    let (_, out) = run(&interpreter(InterpOptions::default()), body).unwrap();
    assert_eq!(out, (0..16).map(|i| 2 * i).collect::<Vec<u32>>());
}

/// A loop that each lane leaves after another number of turns, with a skipped part inside.
#[test]
fn loops_with_lanes_that_leave() {
    let body = format!(
        "L:\n    and (M1, 16) V(0,0)<1> V(0,0)<1;1,0> 0xffff:ud\n    cmp.gt (M1, 16) P1 N(0,0)<1;1,0> 0x3:ud\n    \
         (P1) goto (M1, 16) SKIP\n    add (M1, 16) V(0,0)<1> V(0,0)<1;1,0> 0x100:ud\nSKIP:\n    \
         add (M1, 16) V(0,0)<1> V(0,0)<1;1,0> 0x1:ud\n    add (M1, 16) N(0,0)<1> N(0,0)<1;1,0> 0xffffffff:ud\n    \
         cmp.lt (M1, 16) P2 N(0,0)<1;1,0> 0xf0:ud\n    (P2) goto (M1, 16) L\n{STORE}"
    );
    let out = both(&body);
    let want = |n: u32| (n + 1) + 0x100 * (n + 1).min(4);
    assert_eq!(out, (0..16).map(want).collect::<Vec<u32>>());
}

/// A jump is taken by the active lanes and loses none of those that wait on the way.
#[test]
fn jumps_pass_over_waiting_lanes() {
    let conditional = "setp (M1_NM, 16) P2 0x1:ud\n    (P2) jmp (M1, 1) ALL";
    let never = "setp (M1_NM, 16) P2 0xfffe:ud\n    (P2) jmp (M1, 1) ALL\n    goto (M1, 1) ALL";
    for jump in [
        "jmp (M1, 1) ALL",
        conditional,
        never,
        "switchjmp (M1, 1) 0x1:ud (SOME, ALL)",
        "switchjmp (M1, 1) 0x5:ud (ALL, SOME)",
    ] {
        let body = format!(
            "    cmp.lt (M1, 16) P1 N(0,0)<1;1,0> 0x4:ud\n    (P1) goto (M1, 16) SOME\n    \
             add (M1, 16) V(0,0)<1> V(0,0)<1;1,0> 0x10:ud\n    {jump}\nSOME:\n    \
             add (M1, 16) V(0,0)<1> V(0,0)<1;1,0> 0x1:ud\nALL:\n    \
             add (M1, 16) V(0,0)<1> V(0,0)<1;1,0> 0x100:ud\n{STORE}"
        );
        let want = |n: u32| if n < 4 { 0x101 } else { 0x110 };
        assert_eq!(
            both(&body),
            (0..16).map(want).collect::<Vec<u32>>(),
            "{jump}"
        );
    }
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn traces_of_two_runs_are_equal() {
    let body = format!(
        "    cmp.lt (M1, 16) P1 N(0,0)<1;1,0> 0x2:ud\n    (P1) mov (M1, 16) V(0,0)<1> 0x7:ud\n{STORE}"
    );
    let trace = || {
        let text = Text::default();
        let engine = interpreter(InterpOptions {
            trace: Some(Trace::new(text.clone())),
            ..InterpOptions::default()
        });
        run(&engine, &body).unwrap();
        drop(engine);
        let bytes = text.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    };
    let first = trace();
    assert_eq!(first, trace());
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(lines.len(), 8);
    assert_eq!(
        lines[5],
        "group 0,0,0 thread 0 line 15: mov mask=0x0000ffff V[0]=0x00000007 V[4]=0x00000007"
    );
    assert!(lines[4].contains("P1=0x3&0xffff"), "{}", lines[4]);
    assert!(lines[6].contains("surface0[0x4]=0x7"), "{}", lines[6]);
}

#[test]
fn a_deadline_stops_it() {
    let engine = interpreter(InterpOptions::default());
    let text = format!("{HEAD}L:\n    goto (M1, 1) L\n");
    let program = engine.program_from_text("k", &text, Platform::Pvc).unwrap();
    let launch = Launch::new([16, 1, 1]).deadline(Duration::from_millis(20));
    let report = program.kernels()[0].launch(&launch).unwrap();
    assert_eq!(report.status, LaunchStatus::DeadlineExceeded);
    assert_eq!(report.backend, "interp");
}

#[test]
fn unsupported_instructions_are_named() {
    let engine = interpreter(InterpOptions::default());
    let text = "    raw_send (M1_NM, 1) 0x3 1 0 0x2000004:ud V.0 %null.0\n    ret (M1, 1)\n";
    let error = run(&engine, text).unwrap_err();
    assert_eq!(error.exit_class(), Class::Unsupported);
    let message = error.to_string();
    assert!(
        message.contains("line 14") && message.contains("`raw_send`"),
        "{message}"
    );
}
