//! A process that forks after it used the driver: parent and child both go on.

use std::path::Path;
use std::process::Command;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fork.c");

#[test]
fn a_child_after_fork_uses_the_driver() {
    let dir = std::env::current_exe().expect("this test's own file");
    let library = dir.with_file_name("libvisa_jit_opencl.so");
    assert!(library.is_file(), "cargo builds {}", library.display());
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fork");
    let mut compiler = Command::new("cc");
    compiler.arg(SOURCE).arg("-o").arg(&program).arg("-lOpenCL");
    if !compiler.output().is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: there is no C compiler or no OpenCL loader with headers");
        return;
    }
    let mut client = Command::new(program);
    client.env("OCL_ICD_VENDORS", &library);
    client.env("OCL_ICD_FILENAMES", &library);
    client.env("VISA_JIT_DEVICE", "skl");
    let status = client.status().expect("it runs");
    assert!(status.success(), "{status}");
}
