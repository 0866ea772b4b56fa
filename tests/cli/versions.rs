//! Files of versions that are not known, and the option that has them read.

use super::{SAXPY, SAXPY_ARGS, SAXPY_RESULT, ok, repository, visa_jit};
use std::fs;
use tempfile::TempDir;

/// A file that says version `to` where `from` stands.
fn rewritten(dir: &TempDir, name: &str, bytes: &[u8], from: &str, to: &str) -> String {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let mut found = 0;
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from.as_bytes()) {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            found += 1;
        }
    }
    assert!(found > 0, "no {from}");
    let file = dir.path().join(name);
    fs::write(&file, bytes).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Fails as unsupported, with all of `told` in the message, and works with `--any-version`.
#[track_caller]
fn refused_without_the_option(args: &[&str], told: &[&str]) -> String {
    let failed = visa_jit(args);
    assert_eq!(failed.code, 3, "{args:?}: {}", failed.stderr);
    for told in told.iter().chain(&["--any-version"]) {
        assert!(failed.stderr.contains(told), "{args:?}: {}", failed.stderr);
    }
    ok(&[args, &["--any-version"]].concat()).stdout
}

#[test]
fn text() {
    let dir = TempDir::new().unwrap();
    let source = "\n.version 9.9\n.kernel \"k\"\n.kernel_attr SimdSize=8\n.decl V v_type=G type=ud num_elts=8\n\
                  .function \"main\"\n    ret (M1, 1)\n";
    let file = dir.path().join("new.visaasm");
    fs::write(&file, source).unwrap();
    let file = file.to_str().unwrap();
    let told = [
        "new.visaasm:2:10",
        "vISA of version 9.9 is not known",
        "3.0 to 4.2",
    ];
    let listed = refused_without_the_option(&["list", file], &told);
    assert!(listed.contains("\nk: "), "{listed}");
    let printed = refused_without_the_option(&["disasm", file], &told);
    assert!(printed.starts_with(".version 4.2\n"), "{printed}");
    let object = dir.path().join("new.o");
    let object = object.to_str().unwrap();
    let place = dir.path().join("cache");
    let place = place.to_str().unwrap();
    for args in [
        &["ssa", file][..],
        &["asm", file],
        &["explain", file],
        &["run", file, "--global", "8"],
        &["run", file, "--global", "8", "--backend", "interp"],
        &["compare", file, "--global", "8", "--repeat", "1"],
        &["compile", file, "-o", object],
        &["cache", "why", file, "--cache-dir", place],
    ] {
        refused_without_the_option(&[args, &["--platform", "skl"]].concat(), &told);
    }
}

#[test]
fn sections_of_a_zebin() {
    let dir = TempDir::new().unwrap();
    let zebin = fs::read(repository(SAXPY)).unwrap();
    let file = rewritten(&dir, "new.zebin", &zebin, ".version 4.1", ".version 9.9");
    let args = [&["run", &file][..], &SAXPY_ARGS, &["--print", "0=f32:8"]].concat();
    let told = [
        "saxpy (.visaasm):1:10",
        "version 9.9 is not known",
        "3.0 to 4.2",
    ];
    assert_eq!(refused_without_the_option(&args, &told), SAXPY_RESULT);
}

#[test]
fn information_of_a_zebin() {
    let dir = TempDir::new().unwrap();
    let zebin = fs::read(repository(SAXPY)).unwrap();
    let file = rewritten(&dir, "new.zebin", &zebin, "'1.20'", "'2.20'");
    let args = [&["run", &file][..], &SAXPY_ARGS, &["--print", "0=f32:8"]].concat();
    let told = [".ze_info of version 2.20 is not known", "versions 1.x"];
    assert_eq!(refused_without_the_option(&args, &told), SAXPY_RESULT);
    refused_without_the_option(&["list", &file], &told);
    refused_without_the_option(&["disasm", &file], &told);
    // What is new in a minor version does not change what was there before.
    let file = rewritten(&dir, "minor.zebin", &zebin, "'1.20'", "'1.99'");
    let args = [&["run", &file][..], &SAXPY_ARGS, &["--print", "0=f32:8"]].concat();
    assert_eq!(ok(&args).stdout, SAXPY_RESULT);
}

#[test]
fn binaries() {
    let dir = TempDir::new().unwrap();
    let known = dir.path().join("known.isa");
    ok(&["disasm", SAXPY, "--isa", known.to_str().unwrap()]);
    let bytes = fs::read(known).unwrap();
    let file = rewritten(&dir, "new.isa", &bytes, "CISA\x04\x01", "CISA\x09\x09");
    let told = [
        "byte 0x5: binary vISA of version 9.9 is not known",
        "3.4 to 4.1",
    ];
    let printed = refused_without_the_option(&["disasm", &file], &told);
    assert!(printed.starts_with(".version 4.1\n"), "{printed}");
    refused_without_the_option(
        &["ssa", &file, "--kernel", "saxpy", "--platform", "skl"],
        &told,
    );
}
