//! The container readers against every zebin under `tests/kernels/bin`, whole and damaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use visa_test_common::{Rng, share};

use visa_jit::container::{
    ArgType, Blame, ContainerError, Device, PayloadLayout, PayloadSource, Zebin, infer_device,
};

/// Every checked-in zebin with the device its directory names.
fn corpus() -> Vec<(Device, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/bin");
    let mut found = Vec::new();
    for folder in fs::read_dir(root).expect("kernels") {
        let folder = folder.expect("readable directory").path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let device = Device::ALL
            .into_iter()
            .find(|d| name.starts_with(d.device()));
        let device = device.unwrap_or_else(|| panic!("{name} is no device"));
        for entry in fs::read_dir(&folder).expect("a directory for each device") {
            let path = entry.expect("readable directory").path();
            if path
                .extension()
                .is_some_and(|extension| extension == "zebin")
            {
                found.push((device, path));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 100, "only {} zebins", found.len());
    found
}

/// All, or every sixth in a plain run, read once for all tests.
static ZEBINS: LazyLock<Vec<(Device, String, Zebin)>> = LazyLock::new(|| {
    let every = if visa_test_common::full() { 1 } else { 6 };
    let chosen = corpus().into_iter().step_by(every);
    let read = chosen.map(|(device, path)| {
        let bytes = fs::read(&path).expect("readable zebin");
        let zebin =
            Zebin::parse(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (device, path.display().to_string(), zebin)
    });
    read.collect()
});

fn each_zebin(mut check: impl FnMut(Device, &str, &Zebin)) {
    for (device, path, zebin) in ZEBINS.iter() {
        check(*device, path, zebin);
    }
}

/// Value of `key=` in a directive line.
fn number_of(line: &str, key: &str) -> Option<u32> {
    let rest = line.split_once(key)?.1.strip_prefix('=')?;
    rest.split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[test]
fn every_zebin_names_its_device() {
    each_zebin(|device, path, zebin| {
        let inference = infer_device(zebin);
        assert_eq!(
            inference.device,
            Some(device),
            "{path}: {}",
            inference.reason
        );
    });
}

#[test]
fn texts_belong_to_their_kernels() {
    each_zebin(|_, path, zebin| {
        for kernel in &zebin.kernels {
            let text = &kernel.visa.text;
            assert!(text.starts_with(".version"), "{path}: {}", kernel.name);
            assert!(text.contains("\n.kernel "), "{path}: {}", kernel.name);
            let simd = text
                .lines()
                .find_map(|line| number_of(line, ".kernel_attr SimdSize"));
            assert_eq!(
                simd,
                Some(kernel.info.execution_env.simd_size),
                "{path}: {}",
                kernel.name
            );
        }
        for function in &zebin.functions {
            let directive = format!("\n.global_function \"{}\"", function.name);
            assert!(
                function.visa.text.contains(&directive),
                "{path}: {}",
                function.name
            );
            let owner = function.owner.expect("functions follow a kernel");
            assert!(
                zebin.function(owner, &function.name).is_some(),
                "{path}: {}",
                function.name
            );
        }
    });
}

#[test]
fn text_offsets_point_into_the_file() {
    each_zebin(|_, path, zebin| {
        let bytes = fs::read(path).expect("readable zebin");
        for kernel in &zebin.kernels {
            let start = usize::try_from(kernel.visa.file_offset).expect("small file");
            let end = start + kernel.visa.text.len();
            assert_eq!(&bytes[start..end], kernel.visa.text.as_bytes(), "{path}");
        }
    });
}

#[test]
fn nothing_in_ze_info_is_unknown() {
    each_zebin(|_, path, zebin| {
        for kernel in &zebin.kernels {
            for argument in &kernel.info.payload_arguments {
                let unknown = matches!(argument.arg_type, ArgType::Unknown(_));
                assert!(!unknown, "{path}: {}: {}", kernel.name, argument.arg_type);
            }
            let args = zebin.ze_info.args_of(&kernel.name);
            assert!(
                kernel.info.arg_count() as usize <= args.len(),
                "{path}: {}",
                kernel.name
            );
        }
    });
}

#[test]
fn every_input_is_classified() {
    let (mut local_ids, mut arguments) = (0, 0);
    each_zebin(|device, path, zebin| {
        for kernel in &zebin.kernels {
            let layout = PayloadLayout::new(&kernel.info, device)
                .unwrap_or_else(|error| panic!("{path}: {error}"));
            for line in kernel
                .visa
                .text
                .lines()
                .filter(|line| line.starts_with(".input "))
            {
                let offset = number_of(line, "offset").expect("an offset");
                let size = number_of(line, "size").expect("a size");
                let place = format!("{path}: {}: {line}", kernel.name);
                match layout
                    .classify(offset, size)
                    .unwrap_or_else(|| panic!("{place}"))
                {
                    PayloadSource::LocalId {
                        dim,
                        first_lane,
                        lanes,
                    } => {
                        assert!(dim < 3 && first_lane + lanes <= layout.simd, "{place}");
                        local_ids += 1;
                    }
                    PayloadSource::CrossThread { payload_offset } => {
                        assert_eq!(
                            layout.grf_offset_of(payload_offset),
                            Some(offset),
                            "{place}"
                        );
                        let argument = kernel.info.payload_argument_at(payload_offset);
                        let argument = argument.unwrap_or_else(|| panic!("{place}: no argument"));
                        let header = argument.arg_type == ArgType::GlobalIdOffset;
                        let inside = payload_offset + size <= argument.offset + argument.size;
                        assert!(header || inside, "{place}: {argument:?}");
                        arguments += 1;
                    }
                    other => panic!("{place}: {other:?}"),
                }
            }
        }
    });
    assert!(
        local_ids > 1000 && arguments > 1000,
        "{local_ids} {arguments}"
    );
}

#[test]
fn layouts_of_the_wrong_device_are_noticed_or_differ() {
    each_zebin(|device, path, zebin| {
        let other = if device.has_wide_registers() {
            Device::Skl
        } else {
            Device::Pvc
        };
        for kernel in &zebin.kernels {
            let right = PayloadLayout::new(&kernel.info, device).expect("checked above");
            let wrong = PayloadLayout::new(&kernel.info, other);
            assert!(
                wrong.is_err() || wrong != Ok(right),
                "{path}: {}",
                kernel.name
            );
        }
    });
}

/// The smallest zebins that together have kernels, data, relocations and functions.
static SMALL_AND_VARIED: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut files: Vec<Vec<u8>> = corpus()
        .iter()
        .map(|(_, path)| fs::read(path).expect("readable zebin"))
        .collect();
    files.sort_by_key(Vec::len);
    let smallest = |wanted: fn(&Zebin) -> bool| {
        files
            .iter()
            .find(|bytes| wanted(&Zebin::parse(bytes).expect("valid zebin")))
            .cloned()
    };
    [
        smallest(|zebin| !zebin.kernels.is_empty()),
        smallest(|zebin| !zebin.functions.is_empty()),
        smallest(|zebin| !zebin.data.is_empty()),
    ]
    .into_iter()
    .map(|found| found.expect("the corpus has one"))
    .collect()
});

/// Reads damaged bytes to the end of everything this layer does with them.
fn read_all(bytes: &[u8]) -> Result<(), ContainerError> {
    let zebin = Zebin::parse(bytes)?;
    let device = infer_device(&zebin).device.unwrap_or(Device::Skl);
    for (index, kernel) in zebin.kernels.iter().enumerate() {
        let layout = PayloadLayout::new(&kernel.info, device)?;
        for offset in [0, 31, 32, 64, 4096, u32::MAX] {
            for size in [0, 1, 64, u32::MAX] {
                layout.classify(offset, size);
            }
            layout.grf_offset_of(offset);
            kernel.info.payload_argument_at(offset);
        }
        zebin.function(index, "f");
    }
    zebin.variable("x");
    Ok(())
}

fn assert_typed(result: Result<(), ContainerError>) -> bool {
    let Err(error) = result else { return false };
    assert_ne!(error.blame(), Blame::Environment, "{error}");
    assert!(!error.to_string().is_empty());
    true
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = &SMALL_AND_VARIED[0];
    read_all(bytes).expect("the whole file");
    // The section headers and the string table stand at the end, so nothing that is cut reads.
    for end in 0..bytes.len() {
        assert!(assert_typed(read_all(&bytes[..end])), "cut at {end}");
    }
}

#[test]
fn bit_flips_never_panic() {
    let mut random = Rng::new(1);
    let mut refused = 0;
    for bytes in SMALL_AND_VARIED.iter() {
        for _ in 0..share(2000, 16) {
            let mut damaged = bytes.clone();
            let at = random.below(damaged.len());
            damaged[at] ^= 1 << random.below(8);
            refused += usize::from(assert_typed(read_all(&damaged)));
        }
    }
    assert!(refused > 10, "only {refused} of the flips were noticed");
}

#[test]
fn flips_in_headers_never_panic() {
    let mut random = Rng::new(2);
    for bytes in SMALL_AND_VARIED.iter() {
        let table = usize::try_from(u64::from_le_bytes(
            bytes[40..48].try_into().expect("8 bytes"),
        ))
        .expect("small file");
        for round in 0..share(2000, 16) {
            let mut damaged = bytes.clone();
            for _ in 0..=round % 4 {
                let at = match random.below(2) {
                    0 => random.below(64),
                    _ => table + random.below(damaged.len() - table),
                };
                damaged[at] = random.bits().to_le_bytes()[0];
            }
            assert_typed(read_all(&damaged));
        }
    }
}
