//! Links the command so that it starts quickly.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if is_measured() {
        link_at_fixed_address();
        link_unwinder();
    }
}

/// True when this is for x86-64 Linux with glibc and for the machine that builds, where starts were measured.
fn is_measured() -> bool {
    let is = |key: &str, wanted: &str| std::env::var(key).is_ok_and(|value| value == wanted);
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && std::env::var("TARGET") == std::env::var("HOST")
        && !features.split(',').any(|feature| feature == "crt-static")
}

/// A start from the cache takes about a millisecond, of which the loader spent a sixth on the 17,000 pointers of a
/// position-independent program (SECURITY.md says what that costs). Libraries and everything else stay as they are.
fn link_at_fixed_address() {
    println!("cargo::rustc-link-arg-bin=visa-jit=-no-pie");
}

/// GCC's library for unwinding as an archive, where there is one: a library less to load is a twentieth of such a start.
/// Shared libraries that are loaded keep theirs.
fn link_unwinder() {
    let linker = std::env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let mut question = Command::new(linker);
    let answer = question.arg("-print-file-name=libgcc_eh.a").output();
    let found = answer.map(|a| String::from_utf8_lossy(&a.stdout).into_owned());
    // A name without a directory says that there is none.
    if found.is_ok_and(|path| Path::new(path.trim()).is_absolute()) {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}
