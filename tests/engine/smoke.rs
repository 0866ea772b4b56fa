//! End to end on checked-in zebins: every kernel lowers and compiles; saxpy computes.

use visa_jit::{Engine, Launch};

const DEVICES: [&str; 4] = ["skl", "tgllp", "acm-g10", "pvc"];

fn zebins(device: &str) -> Vec<std::path::PathBuf> {
    let dir = format!(
        "{}/tests/kernels/bin/{device}",
        concat!(env!("CARGO_MANIFEST_DIR"), "/..")
    );
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn saxpy_everywhere() {
    for device in DEVICES {
        let engine = Engine::new().unwrap();
        let path = format!(
            "{}/tests/kernels/bin/{device}/saxpy.zebin",
            concat!(env!("CARGO_MANIFEST_DIR"), "/..")
        );
        let program = engine
            .program_from_zebin(&std::fs::read(path).unwrap(), None)
            .unwrap();
        for n in [1usize, 31, 32, 33, 1000, 4096] {
            let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let y: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
            let bx = engine.memory().alloc_from(&x).unwrap();
            let by = engine.memory().alloc_from(&y).unwrap();
            let launch = Launch::new([n as u32, 1, 1])
                .arg(0, &by)
                .arg(1, &bx)
                .arg(2, 3.0f32);
            let report = program.kernel("saxpy").unwrap().launch(&launch).unwrap();
            let want: Vec<f32> = x
                .iter()
                .zip(&y)
                .map(|(x, y)| 3.0f32.mul_add(*x, *y))
                .collect();
            assert_eq!(by.to_vec_of::<f32>(), want, "{device} n={n} {report:?}");
        }
    }
}

#[test]
#[ignore = "long: all kernels of four devices"]
fn every_kernel_compiles() {
    let mut failures = Vec::new();
    let mut count = 0;
    for device in DEVICES {
        let engine = Engine::new().unwrap();
        for path in zebins(device) {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let program = match engine.program_from_zebin(&std::fs::read(&path).unwrap(), None) {
                Ok(p) => p,
                Err(e) => {
                    failures.push(format!("{device} {name}: {e}"));
                    continue;
                }
            };
            for k in program.kernels() {
                count += 1;
                if let Err(e) = k.code(Default::default()) {
                    failures.push(format!("{device} {name} {}: {e}", k.name()));
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count}:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
