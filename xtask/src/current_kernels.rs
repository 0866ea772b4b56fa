//! Compiles the kernels of `tests/kernels` with today's `ocloc` for more devices than are checked in, and runs their tests.

use std::path::Path;
use std::process::Command;

use super::current_ocloc;

/// Every device that both know.
const DEVICES: [&str; 5] = ["tgllp", "acm-g10", "pvc", "bmg", "ptl-h"];

/// For the devices named, or all.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let program = current_ocloc::program()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let kernels = root.join("target/kernels-26");
    let known: Vec<String> = DEVICES.map(str::to_owned).to_vec();
    let devices = match arguments {
        [] => &known,
        some => some,
    };
    // The compiler has no sampler messages to test for some devices, and says so; tests pass over files that are not there.
    let built = Command::new(root.join("tests/kernels/build.sh"))
        .env("OCLOC", &program)
        .env("SUFFIX", "-26")
        .env("DEVICES", devices.join(" "))
        .env("BIN", &kernels)
        .status();
    let built = built.map_err(|e| format!("build.sh: {e}"))?;
    if !built.success() {
        println!("some kernels were not compiled, as said above: they are not tested");
    }
    let mut failed = Vec::new();
    for device in devices {
        println!("{device}:");
        let tests = Command::new("cargo")
            .current_dir(&root)
            .args(["test", "--test", "engine", "::bmg_26"])
            .env("VISA_JIT_TEST_FULL", "1")
            .env(
                "VISA_JIT_TEST_KERNELS",
                kernels.join(format!("{device}-26")),
            )
            .status();
        if !tests.map_err(|e| format!("cargo: {e}"))?.success() {
            failed.push(device.as_str());
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        some => Err(format!("tests failed for {}", some.join(", "))),
    }
}
