//! Puts a digest of the compiler's sources into the program, for the keys of the disk cache: what another build of the
//! same version compiled is not taken for this one's. Links the command so that it
//! starts quickly.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything that generated code may depend on. What is not there (in a packaged crate) does not count.
const PARTS: [&str; 5] = [
    "src",
    "runtime/src",
    "Cargo.toml",
    "runtime/Cargo.toml",
    "Cargo.lock",
];

fn collect(path: PathBuf, files: &mut Vec<PathBuf>) {
    match fs::read_dir(&path) {
        Ok(entries) => {
            for entry in entries.flatten() {
                collect(entry.path(), files);
            }
        }
        Err(_) if path.is_file() => files.push(path),
        Err(_) => {}
    }
}

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut files = Vec::new();
    for part in PARTS {
        let path = root.join(part);
        if path.exists() {
            println!("cargo::rerun-if-changed={part}");
        }
        collect(path, &mut files);
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in &files {
        let name = file.strip_prefix(&root).unwrap_or(Path::new(""));
        let bytes = fs::read(file).unwrap_or_default();
        for part in [name.as_os_str().as_encoded_bytes(), &bytes] {
            hasher.write_usize(part.len());
            hasher.write(part);
        }
    }
    println!("cargo::rustc-env=VISA_JIT_SOURCES={:016x}", hasher.finish());
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
/// Cargo takes it for the library of this package, so for every program that is linked with it; shared libraries that are loaded keep
/// theirs.
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
