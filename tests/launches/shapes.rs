//! Launches whose code two code generators once could not make, compared with the interpreter.

use visa_jit::{Engine, Launch, Program};

use super::stop::engines;

/// What is in all buffers after a launch, on each engine.
fn same_everywhere(
    file: &str,
    kernel: &str,
    launch: impl Fn(&Engine) -> (Launch, Vec<visa_runtime::Buffer>),
) -> Vec<Vec<u8>> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let bytes = std::fs::read(format!("{root}/{file}")).unwrap();
    let mut expected: Option<Vec<Vec<u8>>> = None;
    for (name, engine) in engines() {
        let program: Program = engine.program_from_zebin(&bytes, None).unwrap();
        let (launch, buffers) = launch(&engine);
        program.kernel(kernel).unwrap().launch(&launch).unwrap();
        let found: Vec<Vec<u8>> = buffers.iter().map(|b| b.to_vec()).collect();
        let want = expected.get_or_insert_with(|| found.clone());
        assert!(*want == found, "{name} of {kernel}");
    }
    expected.unwrap()
}

/// A value that was found through a definition in one version of a block was used in the other one.
#[test]
fn rows_of_a_group_of_two() {
    let file = "tests/kernels/bin/pvc/pointers.zebin";
    for (global, local) in [([16, 4, 1], [16, 2, 1]), ([32, 8, 1], [8, 4, 1])] {
        same_everywhere(file, "arrays", |engine| {
            let buffers: Vec<_> = (0..5)
                .map(|_| engine.memory().alloc_from(&[0u32; 1024]).unwrap())
                .collect();
            let mut launch = Launch::new(global).local(local);
            for (index, buffer) in buffers.iter().enumerate() {
                launch = launch.arg(index as u32, buffer);
            }
            (launch, buffers)
        });
    }
}

/// Components of a record that is only copied were handed on without having been made.
#[test]
fn unoptimised_copies() {
    let input: Vec<f32> = (0..64u8).map(f32::from).collect();
    let out = same_everywhere("tests/launches/unoptimised.zebin", "k", |engine| {
        let a = engine.memory().alloc_from(&input).unwrap();
        let b = engine.memory().alloc_from(&[0f32; 64]).unwrap();
        let launch = Launch::new([16, 1, 1]).local([8, 1, 1]);
        let launch = launch.arg(0, &a).arg(1, &b).arg(2, 52i32);
        (launch, vec![b])
    });
    let want = (0..64u8).map(|i| if i < 52 { f32::from(i) } else { 0.0 });
    let want: Vec<u8> = want.flat_map(f32::to_le_bytes).collect();
    assert!(out[0] == want);
}
