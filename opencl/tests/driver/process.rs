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
    work(&rig);
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
