//! Binary vISA in and out.

use super::{SAXPY, SAXPY_RESULT, ok, visa_jit};
use std::fs;
use tempfile::TempDir;

#[test]
fn binaries_run() {
    let dir = TempDir::new().unwrap();
    // Told by its contents.
    let file = dir.path().join("saxpy.bin");
    let file = file.to_str().unwrap();
    assert_eq!(ok(&["disasm", SAXPY, "--isa", file]).stdout, "");
    assert!(fs::read(file).unwrap().starts_with(b"CISA"));

    let listed = ok(&["list", file]).stdout;
    assert!(listed.contains("\nsaxpy: SIMD32"), "{listed}");
    let printed = ok(&["disasm", file, "--kernel", "saxpy"]).stdout;
    assert!(printed.contains(".kernel \"saxpy\""), "{printed}");
    assert!(printed.contains("gather4_scaled.R (M1, 16)"));
    let ssa = ok(&["ssa", file, "--kernel", "saxpy", "--platform", "skl"]).stdout;
    assert!(ssa.starts_with("function \"saxpy\" simd 32"), "{ssa}");

    let mut args = vec!["run", file, "--kernel", "saxpy", "--platform", "skl"];
    args.extend(["--global", "8", "--local", "32"]);
    args.extend(["--surface", "0=iota:f32:8", "--surface", "1=fill:f32:10:8"]);
    args.extend(["--input", "V0034=f32:2", "--input", "V0038=u32:32,1,1"]);
    args.extend(["--print", "0=f32:8"]);
    assert_eq!(ok(&args).stdout, SAXPY_RESULT.replace("arg", "surface"));

    fs::write(file, b"CISA\x05\x00").unwrap();
    let failed = visa_jit(&["list", file]);
    assert_eq!(failed.code, 3, "{}", failed.stderr);
    let why = "binary vISA of version 5.0 is not known; versions 3.4 to 4.1 are supported";
    assert!(failed.stderr.contains(why), "{}", failed.stderr);
}
