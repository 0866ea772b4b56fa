//! Real kernels, as the vendor's compiler emits them for each device, against references written in Rust: every out-of-bounds
//! policy, one and several threads, sizes from nothing to large, on the compiled engine and on the interpreter.

mod algorithms;
mod comparing;
mod division;
mod flow;
mod groups;
mod images;
mod math;
mod program;
mod types;

/// All of the above from shared libraries: what is compiled ahead of time does the same, with the same arguments, variables,
/// images and texts.
#[test]
#[ignore = "compiles every kernel to a library: minutes"]
fn from_libraries() {
    let again = std::process::Command::new(std::env::current_exe().unwrap())
        .env("VISA_JIT_TEST_BACKEND", "library")
        .args(["--include-ignored", "--skip", "from_libraries"])
        .args(["--skip", "divisions_are_exact"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stdout);
    let line = said.lines().find(|l| l.starts_with("test result"));
    println!("from libraries: {}", line.unwrap_or("nothing"));
    assert!(again.status.success(), "{said}");
}
