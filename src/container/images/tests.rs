use super::*;
use object::write::{Object, StandardSegment};
use object::{Architecture, BinaryFormat, Endianness, SectionKind};

/// A module with kernels of these names, and a function that is no kernel's.
fn module(names: &[&str]) -> Vec<u8> {
    let mut words = vec![0x0723_0203_u32, 0x0001_0000, 0, 16, 0];
    let mut entry = |model: u32, name: &str| {
        let mut text = name.as_bytes().to_vec();
        text.push(0);
        text.resize(text.len().next_multiple_of(4), 0);
        let count = 3 + text.len() as u32 / 4;
        words.extend([count << 16 | 15, model, 7]);
        let (text, _) = text.as_chunks::<4>();
        words.extend(text.iter().map(|word| u32::from_le_bytes(*word)));
    };
    entry(4, "shader");
    names.iter().for_each(|name| entry(6, name));
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, data) in members {
        let name = format!("{name}/");
        let size = data.len();
        out.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).bytes());
        out.extend_from_slice(data);
        out.resize(out.len().next_multiple_of(2), b'\n');
    }
    out
}

fn host(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let segment = file.segment_name(StandardSegment::Data).to_vec();
    for (name, data) in sections {
        let section =
            file.add_section(segment.clone(), name.as_bytes().to_vec(), SectionKind::Data);
        file.set_section_data(section, data.to_vec(), 16);
    }
    file.write().unwrap()
}

/// An offload binary as `llvm/Object/OffloadBinary.h` lays it out.
fn offload(triple: &str, arch: &str, image: &[u8]) -> Vec<u8> {
    let text = format!("triple\0{triple}\0arch\0{arch}\0");
    let (entry, strings) = (32_u64, 32 + 40_u64);
    let names = strings + 2 * 16;
    let key = |word: &str| names + text.find(word).unwrap() as u64;
    let second = names + "triple\0".len() as u64 + triple.len() as u64 + 1;
    let at = names + text.len() as u64;
    let mut out = offload::MAGIC.to_vec();
    out.extend(1_u32.to_le_bytes());
    let total = at + image.len() as u64;
    for number in [total, entry, 40] {
        out.extend(number.to_le_bytes());
    }
    // Kinds of image and offloading, flags, strings, their number, the image.
    out.extend([0; 8]);
    for number in [strings, 2, at, image.len() as u64] {
        out.extend(number.to_le_bytes());
    }
    let value = key("triple") + "triple\0".len() as u64;
    for number in [key("triple"), value, second, second + "arch\0".len() as u64] {
        out.extend(number.to_le_bytes());
    }
    out.extend(text.bytes());
    out.extend_from_slice(image);
    out
}

fn zebin(device: &str) -> Vec<u8> {
    let root = env!("CARGO_MANIFEST_DIR");
    std::fs::read(format!("{root}/tests/kernels/bin/{device}/saxpy.zebin")).unwrap()
}

/// Target, format, device and kernels of each.
fn shown(bytes: &[u8]) -> Vec<String> {
    let images = images(bytes).unwrap().unwrap();
    let show = |image: &Image<'_>| {
        let device = image.device.map_or("-", Device::device);
        let (target, format) = (&image.target, image.format.name());
        format!("{target}: {format} {device} {}", image.kernels.join(" "))
    };
    images.iter().map(show).collect()
}

#[test]
fn archives_of_ocloc() {
    let (skl, pvc) = (zebin("skl"), zebin("pvc"));
    let members: [(&str, &[u8]); 5] = [
        ("pad_0", &[0; 8]),
        ("64.9.0.9", &skl),
        ("pad_1", &[0; 8]),
        ("64.12.60.7", &pvc),
        ("notes", b"text"),
    ];
    let file = archive(&members);
    let kernels = "saxpy saxpy_guarded saxpy_scaled";
    let wanted = [
        format!("64.9.0.9: zebin skl {kernels}"),
        format!("64.12.60.7: zebin pvc {kernels}"),
        "notes: other - ".to_owned(),
    ];
    assert_eq!(shown(&file), wanted);
    // As ahead-of-time images of SYCL are.
    let section = "__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen";
    let inside = shown(&host(&[(section, &file)]));
    assert_eq!(
        inside[1],
        format!("spir64_gen 64.12.60.7: zebin pvc {kernels}")
    );
}

#[test]
fn modules_in_a_host_file() {
    let (one, two) = (module(&["a"]), module(&["b", "c"]));
    let mut both = one.clone();
    both.resize(both.len().next_multiple_of(16), 0);
    both.extend(&two);
    let bundle = "__CLANG_OFFLOAD_BUNDLE__sycl-spir64";
    let wanted = ["spir64: SPIR-V - a", "spir64: SPIR-V - b c"];
    assert_eq!(shown(&host(&[(bundle, &both)])), wanted);
    // One right after the other, and the host's own section.
    let tight = [one.as_slice(), &two].concat();
    let sections: [(&str, &[u8]); 2] = [
        ("__CLANG_OFFLOAD_BUNDLE__host-x86_64", b"h"),
        (bundle, &tight),
    ];
    assert_eq!(shown(&host(&sections)), wanted);
    // Where the file lists ranges, they decide. Sections of objects start at address 0.
    let start = (both.len() - two.len()) as u64;
    let list: Vec<u8> = [start, two.len() as u64, 0, 0]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    let listed = host(&[(bundle, &both), (".tgtimg", &list)]);
    assert_eq!(shown(&listed), wanted[1..]);
    // Ranges that are none are left alone.
    let wild = host(&[(bundle, &both), (".tgtimg", &[0xff; 16])]);
    assert_eq!(shown(&wild), wanted);
}

#[test]
fn offload_binaries() {
    let module = module(&["a"]);
    let mut file = offload("spir64", "", &module);
    assert_eq!(shown(&file), ["spir64: SPIR-V - a"]);
    file.resize(file.len().next_multiple_of(8), 0);
    file.extend(offload("spir64_gen", "bmg", b"BC\xc0\xde"));
    let wanted = ["spir64: SPIR-V - a", "spir64_gen bmg: LLVM bitcode - "];
    assert_eq!(shown(&file), wanted);
    assert_eq!(shown(&host(&[(".llvm.offloading", &file)])), wanted);
    file[4] = 9;
    let error = images(&file).unwrap_err().to_string();
    assert_eq!(
        error,
        "unsupported: offload binary of version 9; version 1 is read"
    );
}

#[test]
fn other_files_hold_no_images() {
    for file in [
        zebin("skl"),
        module(&["a"]),
        host(&[(".data", b"x")]),
        b"kernel".to_vec(),
    ] {
        assert_eq!(images(&file), Ok(None));
    }
}

#[test]
fn ranges_that_overlap_are_refused() {
    let module = module(&["a"]);
    let range = [0_u64.to_le_bytes(), (module.len() as u64).to_le_bytes()].concat();
    let ranges = range.repeat(1000);
    let file = host(&[
        ("__CLANG_OFFLOAD_BUNDLE__sycl-spir64", &module),
        (".tgtimg", &ranges),
    ]);
    // The list itself is longer than its images but for the last.
    let error = images(&file).unwrap_err();
    assert!(matches!(error, ContainerError::Limit { .. }), "{error}");
}

/// Any bytes give images, none, or an error.
#[test]
fn damaged_files() {
    let modules = [module(&["a"]), module(&["b"])].concat();
    let listed = [0_u64.to_le_bytes(), 40_u64.to_le_bytes()].concat();
    let files = [
        archive(&[("64.9.0.9", &modules)]),
        offload("spir64", "bmg", &modules),
        host(&[
            ("__CLANG_OFFLOAD_BUNDLE__sycl-spir64", &modules),
            (".tgtimg", &listed),
            (".llvm.offloading", &offload("spir64", "", b"x")),
        ]),
    ];
    for file in &files {
        for length in 0..file.len() {
            let _ = images(&file[..length]);
        }
        for at in 0..file.len() {
            for byte in [0, 1, 0x7f, 0xff, file[at] ^ 0x10] {
                let mut damaged = file.clone();
                damaged[at] = byte;
                let _ = images(&damaged);
            }
        }
    }
}
