//! Puts a digest of the compiler's sources into the program, for the keys of the disk cache: what another build of the
//! same version compiled is not taken for this one's. Links the command at a fixed address.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

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
    link_at_fixed_address();
}

/// A start from the cache takes about a millisecond, of which the loader spent a sixth on the 17,000 pointers of a
/// position-independent program (SECURITY.md says what that costs). Libraries and everything else stay as they are.
fn link_at_fixed_address() {
    let is = |key: &str, wanted: &str| std::env::var(key).is_ok_and(|value| value == wanted);
    let measured = is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64");
    let features = std::env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    if measured && !features.split(',').any(|feature| feature == "crt-static") {
        println!("cargo::rustc-link-arg-bin=visa-jit=-no-pie");
    }
}
