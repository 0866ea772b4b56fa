//! The edges of a process: it may end at any time, and without having released anything.

use std::process::Command;

use super::{Rig, SUCCESS, set};

/// What a child process of this test does; the parent names it.
const CHILD: &str = "VISA_JIT_TEST_CHILD";

fn work(rig: &Rig) {
    let program = rig.program("saxpy");
    let kernel = rig.kernel(program, "saxpy");
    let buffer = rig.buffer(&[1_f32; 1 << 16]);
    for index in [0, 1] {
        assert_eq!(set(kernel, index, &buffer), SUCCESS);
    }
    assert_eq!(set(kernel, 2, &2.0_f32), SUCCESS);
    for _ in 0..50 {
        assert_eq!(rig.launch(kernel, 1 << 16, None), SUCCESS);
    }
}

/// Does what a child was started for. Nothing when the tests run as usual.
#[test]
fn child() {
    let Ok(what) = std::env::var(CHILD) else {
        return;
    };
    let rig = Rig::new();
    if what != "beyond" {
        work(&rig);
    }
    match what.as_str() {
        // Commands are still in the queue.
        "exit" => std::process::exit(0),
        "flush" => {
            // SAFETY: it is the rig's own.
            let flushed = unsafe { visa_jit_opencl::api::queue::clFlush(rig.queue) };
            assert_eq!(flushed, SUCCESS);
            std::process::exit(0);
        }
        "main" => std::mem::forget(rig),
        "beyond" => {
            let kernel = rig.kernel(rig.program("saxpy"), "saxpy");
            for index in [0, 1] {
                assert_eq!(set(kernel, index, &rig.buffer(&[1_f32; 64])), SUCCESS);
            }
            assert_eq!(set(kernel, 2, &2.0_f32), SUCCESS);
            assert_eq!(rig.launch(kernel, 65, None), SUCCESS);
            // SAFETY: it is the rig's own.
            let done = unsafe { visa_jit_opencl::api::queue::clFinish(rig.queue) };
            assert_eq!(done, SUCCESS);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn programs_end_as_they_like() {
    let me = std::env::current_exe().unwrap();
    for what in ["exit", "flush", "main"] {
        for _ in 0..10 {
            let output = Command::new(&me)
                .args(["--exact", "process::child", "--quiet", "--nocapture"])
                .env(CHILD, what)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{what}: {:?}: {said}",
                output.status
            );
            assert_eq!(said, "", "{what}");
        }
    }
}

#[test]
fn checks_are_told() {
    let me = std::env::current_exe().unwrap();
    let told = |check: &str| {
        let name = format!("visa-jit-checks-{}-{check}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let output = Command::new(&me)
            .args(["--exact", "process::child", "--quiet", "--nocapture"])
            .envs([(CHILD, "beyond"), ("VISA_JIT_CHECK", check)])
            .env("VISA_JIT_REPORT", &file)
            .output()
            .unwrap();
        let lines = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        (output.status.success(), lines)
    };
    let (fine, lines) = told("memory");
    assert!(fine, "{lines}");
    // A load and a store of one work-item in each of the buffers: the first argument is read and written.
    for part in [
        r#""kind":"bounds""#,
        "reaching 4 bytes past the end of `y` (256 bytes, argument 0)",
        "reaching 4 bytes past the end of `x` (256 bytes, argument 1)",
        r#""local_id":[64,0,0]"#,
        r#""count":3"#,
    ] {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    for wrong in ["race", "nonsense"] {
        let (fine, lines) = told(wrong);
        assert!(!fine, "{lines}");
        assert!(lines.contains(wrong), "{lines}");
    }
}
