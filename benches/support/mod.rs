//! What benches that compare with C have in common: runs in turn, medians, building the C side.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use libloading::Library;

pub const ROUNDS: usize = 31;

pub fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}

/// Microseconds of one call.
pub fn time(f: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64() * 1e6
}

/// Runs two things in turn; returns the median time of each and the median ratio.
pub fn paired(a: &mut dyn FnMut(), b: &mut dyn FnMut()) -> (f64, f64, f64) {
    a();
    b();
    let (mut ta, mut tb, mut ratio) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (x, y) = (time(a), time(b));
        ta.push(x);
        tb.push(y);
        ratio.push(x / y);
    }
    (median(ta), median(tb), median(ratio))
}

pub fn root(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A C file as a library, built by the first clang that is there with `-O3 -march=native` and `flags`; nothing, and a line
/// that says so, without one.
pub fn c_library(source: &str, flags: &[&str]) -> Option<Library> {
    let name = format!(
        "visa-jit-bench-{}{}.so",
        std::process::id(),
        flags.concat().replace(|c: char| !c.is_alphanumeric(), "-")
    );
    let out = std::env::temp_dir().join(name);
    for clang in [
        "clang-19", "clang", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14",
    ] {
        let built = Command::new(clang)
            .args(["-O3", "-march=native", "-shared", "-fPIC"])
            .args(flags)
            .arg("-o")
            .arg(&out)
            .arg(root(source))
            .status();
        if built.is_ok_and(|s| s.success()) {
            println!("C: {clang} -O3 -march=native {}", flags.join(" "));
            // SAFETY: our own library, which runs no code when it is loaded.
            let library = unsafe { Library::new(&out) }.ok();
            let _ = std::fs::remove_file(&out);
            return library;
        }
    }
    println!("C: no clang found, its column is left out (apt-get install clang-19)");
    None
}
