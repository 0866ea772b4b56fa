//! Puts a digest of the compiler's sources into the program, for the keys of the disk cache: what another build of the
//! same version compiled is not taken for this one's.

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
}
