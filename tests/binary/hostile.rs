//! Damaged files: an answer, not a crash, quickly and without much memory.

use super::round_trips::{programs, zebins};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use visa_jit::front::binary::{self, BinaryError, Fault};
use visa_jit::front::text;
use visa_jit::isa::{Platform, Versions};
use visa_test_common::{Rng, full, share};

/// Some files, as they are.
static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let wanted = ["saxpy", "call_stack", "private", "image_sample", "atomics"];
    let mut files = vec![include_bytes!("vendor/blocks.isa").to_vec()];
    for (platform, path) in zebins() {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let device = path.parent().unwrap().file_name().unwrap();
        if wanted.contains(&stem) && (device == "skl" || device == "bmg-26") {
            for (name, modules) in programs(&path, 2) {
                if let Ok(bytes) = binary::write(&modules, Some(platform)) {
                    assert!(binary::read(&bytes, Some(platform)).is_ok(), "{name}");
                    files.push(bytes);
                }
            }
        }
    }
    assert!(files.len() > 10, "{}", files.len());
    files
});

/// Reads damaged bytes. What can be read is text that means the same.
fn survives(bytes: &[u8]) -> Result<(), BinaryError> {
    let start = Instant::now();
    let read = binary::read(bytes, Some(Platform::Skl));
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    let modules = read.inspect_err(|e| {
        assert!(matches!(
            e.fault,
            Fault::Malformed | Fault::Unsupported | Fault::Limit
        ));
        assert!(e.offset.is_some_and(|o| o <= bytes.len()), "{e}");
        assert!(e.to_string().len() < 5000, "{e}");
    })?;
    for module in &modules {
        let printed = text::print(module);
        match text::parse("printed", &printed) {
            Ok(again) if again == *module => {}
            // Not all that has a code has a spelling.
            Ok(again) => assert_eq!(printed, text::print(&again)),
            Err(e) => assert!(e.errors.len() < 100, "{e}"),
        }
    }
    Ok(())
}

#[test]
fn files_that_end_early_are_refused() {
    let every = if full() { 1 } else { 5 };
    for (first, file) in FILES.iter().take(4).enumerate() {
        for end in (first % every..file.len()).step_by(every) {
            // The vendor's files end with native code, which is not read.
            if let Ok(()) = survives(&file[..end]) {
                assert_eq!(file[..], *include_bytes!("vendor/blocks.isa"), "{end}");
            }
        }
    }
}

#[test]
fn damaged_files_are_survived() {
    let mut random = Rng::new(7);
    let (mut read, mut cases) = (0, 0);
    for _ in 0..share(3000, 4) {
        let mut bytes = FILES[random.below(FILES.len())].clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(5) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = random.bits() as u8,
                2 => drop(bytes.remove(at)),
                3 => bytes.insert(at, random.bits() as u8),
                // A number of 32 bits that is large.
                _ => bytes.iter_mut().skip(at).take(4).for_each(|b| *b = 0xFF),
            }
        }
        cases += 1;
        read += usize::from(survives(&bytes).is_ok());
    }
    println!("{read} of {cases} could be read");
    // Damage that never gets past the header would prove nothing.
    assert!(read > cases / 20, "{read}");
}

/// Tables that claim to be large, and parts that lie on each other, take no memory.
#[test]
fn counts_are_not_believed() {
    let file = include_bytes!("vendor/blocks.isa");
    let kernel = u32::from_le_bytes(file[16..20].try_into().unwrap()) as usize;
    let mut bytes = file.to_vec();
    bytes[kernel..kernel + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(survives(&bytes).unwrap_err().fault, Fault::Limit);
    bytes[kernel..kernel + 4].copy_from_slice(&0x10_0000u32.to_le_bytes());
    assert_eq!(survives(&bytes).unwrap_err().fault, Fault::Malformed);

    // Many kernels in one place.
    let mut bytes = b"CISA\x04\x01".to_vec();
    bytes.extend(u16::MAX.to_le_bytes());
    for _ in 0..u16::MAX {
        bytes.extend([
            1, 0, b'k', 0, 0, 0, 0, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ]);
    }
    bytes.extend([0; 4]);
    let error = survives(&bytes).unwrap_err();
    assert!(error.message.contains("overlaps"), "{error}");

    // A name that a file mentions as often as it likes.
    let long = "x".repeat(1000);
    let mut pool = 1u32.to_le_bytes().to_vec();
    pool.extend(long.as_bytes());
    pool.extend([0; 5]);
    let count = 100_000u32;
    pool.extend(count.to_le_bytes());
    for _ in 0..count {
        pool.extend([0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    let mut bytes = b"CISA\x04\x01\x01\x00\x01\x00k".to_vec();
    let start = bytes.len() as u32 + 4 + 4 + 4 + 4 + 1 + 4;
    bytes.extend(start.to_le_bytes());
    bytes.extend((pool.len() as u32).to_le_bytes());
    bytes.extend([0; 13]);
    bytes.extend(&pool);
    assert_eq!(survives(&bytes).unwrap_err().fault, Fault::Limit);
}

#[test]
fn versions_are_told() {
    let mut bytes = include_bytes!("vendor/blocks.isa").to_vec();
    bytes[4..6].copy_from_slice(&[4, 2]);
    let error = binary::read(&bytes, None).unwrap_err();
    let want =
        "byte 0x5: binary vISA of version 4.2 is not known; versions 3.4 to 4.1 are supported";
    assert!(error.to_string().starts_with(want), "{error}");
    assert_eq!(error.fault, Fault::Unsupported);
    let read = binary::read_with(&bytes, None, Versions::Any).unwrap();
    let known = binary::read(include_bytes!("vendor/blocks.isa"), None).unwrap();
    assert!(read == known && known[0].version == (4, 1));
}

/// What the vendor's assembler writes, as its text.
#[test]
fn files_of_the_vendor_are_read() {
    let read = binary::read(include_bytes!("vendor/blocks.isa"), None).unwrap();
    let want = text::parse("blocks", include_str!("vendor/blocks.visaasm")).unwrap();
    assert!(read == [want]);
    // And where it leaves operands away, nothing is made of what is there.
    let error = binary::read(include_bytes!("vendor/cut.isa"), None).unwrap_err();
    assert_eq!(error.fault, Fault::Malformed);
    assert!(
        error.place.contains("kernel `cut`, instruction 1"),
        "{error}"
    );
}

#[test]
fn opcodes_that_are_not_known_are_named() {
    let source = ".version 4.1\n.kernel \"k\"\n.function \"main\"\n    yield\n    ret (M1, 1)\n";
    let module = text::parse("k", source).unwrap();
    let bytes = binary::write(&[module], None).unwrap();
    // `yield`, and `ret` with execution size and predicate.
    let at = bytes.len() - 5;
    for (opcode, fault, why) in [
        (
            0x3D,
            Fault::Malformed,
            "an instruction with the opcode 0x3d, which does not exist",
        ),
        (
            0x96,
            Fault::Malformed,
            "an instruction with the opcode 0x96, which does not exist",
        ),
        (
            0x43,
            Fault::Unsupported,
            "`avs` (opcode 0x43) is not supported: adaptive video scaler",
        ),
    ] {
        let mut bytes = bytes.clone();
        assert_eq!(bytes[at], 0x5F);
        bytes[at] = opcode;
        let error = binary::read(&bytes, None).unwrap_err();
        assert_eq!((error.fault, error.message.as_str()), (fault, why));
        assert_eq!(error.offset, Some(at));
        assert_eq!(error.place, "kernel `k`, instruction 1");
    }
}
