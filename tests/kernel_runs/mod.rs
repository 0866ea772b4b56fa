//! Real kernels, as the vendor's compiler emits them for each device, against references written in Rust: every out-of-bounds
//! policy, one and several threads, sizes from nothing to large, on the compiled engine and on the interpreter.

mod reference;
#[macro_use]
mod support;

#[path = "kernel_runs/algorithms.rs"]
mod algorithms;
#[path = "kernel_runs/comparing.rs"]
mod comparing;
#[path = "kernel_runs/division.rs"]
mod division;
#[path = "kernel_runs/flow.rs"]
mod flow;
#[path = "kernel_runs/groups.rs"]
mod groups;
#[path = "kernel_runs/images.rs"]
mod images;
#[path = "kernel_runs/math.rs"]
mod math;
#[path = "kernel_runs/program.rs"]
mod program;
#[path = "kernel_runs/types.rs"]
mod types;

/// All of the above from shared libraries: what is compiled ahead of time does the same, with the same arguments, variables,
/// images and texts.
#[test]
#[ignore = "compiles every kernel to a library: minutes"]
fn from_libraries() {
    let again = std::process::Command::new(std::env::current_exe().unwrap())
        .env("VISA_JIT_TEST_BACKEND", "library")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stdout);
    let line = said.lines().find(|l| l.starts_with("test result"));
    println!("from libraries: {}", line.unwrap_or("nothing"));
    assert!(again.status.success(), "{said}");
}
