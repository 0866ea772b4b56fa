//! Objects for macOS, which no machine here runs: what is in them, and what LLVM's linker for that system makes of them.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use object::read::{File, Object as _, ObjectSection as _, ObjectSymbol as _};
use object::{Architecture, BinaryFormat, RelocationKind, RelocationTarget};
use visa_jit::artifact::object::records;
use visa_runtime::linked::{KernelRecord, digest, encode};

use super::{command, output};

const TARGETS: [(&str, &str, Architecture); 2] = [
    ("x86_64-apple-darwin", "x86_64", Architecture::X86_64),
    ("aarch64-apple-darwin", "arm64", Architecture::Aarch64),
];
/// Where a descriptor points to its record, to its code and to the program's variables.
const POINTERS: [u64; 5] = [16, 32, 40, 48, 56];

/// An object of every kernel of two programs, one of which has variables.
fn compiled(dir: &Path, target: &str) -> Vec<u8> {
    let object = dir.join(format!("{target}.o"));
    let args = [
        "compile",
        "tests/kernels/bin/skl/saxpy.zebin",
        "tests/kernels/bin/skl/global_state.zebin",
        "--target",
        target,
        "-o",
        object.to_str().unwrap(),
    ];
    let (code, _, errors) = output(command(&args));
    assert_eq!(code, 0, "{errors}");
    fs::read(object).unwrap()
}

fn section_of(file: &File<'_>, index: object::SectionIndex) -> (String, String) {
    let section = file.section_by_index(index).unwrap();
    let segment = section.segment_name().unwrap().unwrap_or("").to_owned();
    (segment, section.name().unwrap().to_owned())
}

#[test]
fn objects_are_what_linkers_take() {
    let dir = tempfile::tempdir().unwrap();
    for (target, _, architecture) in TARGETS {
        let bytes = compiled(dir.path(), target);
        let file = File::parse(&*bytes).unwrap();
        assert_eq!(
            (file.format(), file.architecture()),
            (BinaryFormat::MachO, architecture)
        );
        let mut places = HashMap::new();
        for symbol in file.symbols() {
            assert!(!symbol.is_undefined(), "{target}: {:?}", symbol.name());
            let name = symbol.name().unwrap();
            let (segment, section) = section_of(&file, symbol.section_index().unwrap());
            let expected = match name {
                _ if name.starts_with("_visa_jit_code_") => ("__TEXT", "__text"),
                _ if name.starts_with("_visa_jit_record_") => ("__DATA", "__visa_jit"),
                _ if name.starts_with("_visa_jit_data_") => ("__TEXT", "__const"),
                _ if name.starts_with("_visa_jit_kernel_") => ("__DATA", "__const"),
                other => panic!("{target}: {other}"),
            };
            assert_eq!((&*segment, &*section), expected, "{target}: {name}");
            places.insert(symbol.index(), (name.to_owned(), symbol.address()));
        }
        let kernels = records(&bytes).unwrap();
        let descriptors: Vec<u64> = kernels
            .iter()
            .map(|k| format!("_{}", k.symbol))
            .map(|name| places.values().find(|p| p.0 == name).unwrap().1)
            .collect();
        let mut count = 0;
        for section in file.sections() {
            for (offset, relocation) in section.relocations() {
                let at = section.address() + offset;
                let inside = |d: &&u64| POINTERS.contains(&at.wrapping_sub(**d));
                assert!(descriptors.iter().any(|d| inside(&d)), "{target}: {at:#x}");
                assert_eq!(
                    (relocation.kind(), relocation.size(), relocation.addend()),
                    (RelocationKind::Absolute, 64, 0)
                );
                match relocation.target() {
                    RelocationTarget::Symbol(symbol) => assert!(places.contains_key(&symbol)),
                    other => panic!("{target}: {other:?}"),
                }
                count += 1;
            }
        }
        let with_data = kernels.iter().filter(|k| k.data_digest.is_some()).count();
        let pointers: usize = kernels.iter().map(|k| 1 + k.variants.len()).sum();
        assert_eq!(count, pointers + with_data);
        assert!(with_data > 0);
        println!("{target}: {count} relocations of {} kernels", kernels.len());
    }
}

/// Bytes of a linked file from an address to the end of its section.
fn from<'a>(file: &File<'a>, address: u64) -> &'a [u8] {
    let mut sections = file.sections();
    let section = sections.find(|s| (s.address()..s.address() + s.size()).contains(&address));
    let section = section.unwrap_or_else(|| panic!("nothing at {address:#x}"));
    &section.data().unwrap()[(address - section.address()) as usize..]
}

fn word(bytes: &[u8], at: u64) -> u64 {
    u64::from_le_bytes(bytes[at as usize..][..8].try_into().unwrap())
}

/// Follows a descriptor's pointers in a linked library: they lead to what the digests in its record are of.
fn check(file: &File<'_>, record: &KernelRecord) {
    let name = format!("_{}", record.symbol);
    let exported = file.symbol_by_name(&name).expect("exported");
    assert!(exported.is_global(), "{name}");
    let descriptor = from(file, exported.address());
    assert_eq!(&descriptor[..8], b"VISAJITd");
    let encoded = encode(record).unwrap();
    assert!(from(file, word(descriptor, POINTERS[0])).starts_with(&encoded));
    for (variant, at) in record.variants.iter().zip(&POINTERS[1..]) {
        let code = &from(file, word(descriptor, *at))[..variant.code_bytes as usize];
        assert_eq!(digest(code), variant.code_digest, "{}", variant.symbol);
    }
    if let Some(wanted) = record.data_digest {
        let data = from(file, word(descriptor, 56));
        assert_eq!(digest(&data[..word(descriptor, 64) as usize]), wanted);
    }
}

#[test]
fn libraries_are_linked_whole() {
    let installed = |name: &&&str| {
        let found = Command::new(name).arg("--version").output();
        found.is_ok_and(|output| output.status.success())
    };
    let Some(linker) = ["ld64.lld", "ld64.lld-19"].iter().find(installed) else {
        println!("skipped: ld64.lld is not installed");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    for (target, arch, _) in TARGETS {
        compiled(dir.path(), target);
        let library = dir.path().join(format!("{arch}.dylib"));
        let linked = Command::new(linker)
            .args(["-dylib", "-arch", arch, "-no_fixup_chains"])
            .args(["-platform_version", "macos", "11.0", "11.0", "-o"])
            .arg(&library)
            .arg(dir.path().join(format!("{target}.o")))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&linked.stderr);
        assert!(linked.status.success() && errors.is_empty(), "{errors}");
        let bytes = fs::read(&library).unwrap();
        let file = File::parse(&*bytes).unwrap();
        let kernels = records(&bytes).unwrap();
        kernels.iter().for_each(|record| check(&file, record));
        let (code, listed, errors) = output(command(&["list", library.to_str().unwrap()]));
        assert_eq!(code, 0, "{errors}");
        assert!(listed.contains("saxpy: SIMD") && listed.contains(target));
        println!("{target}: {} kernels linked", kernels.len());
    }
}
