use super::*;
use visa_test_common::images::{archive, host, offload, spirv};
use visa_test_common::zebin;

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
    let (skl, pvc) = (zebin("skl", "saxpy"), zebin("pvc", "saxpy"));
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
    let (one, two) = (spirv(&["a"]), spirv(&["b", "c"]));
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
    // Ranges that are no ranges are not changed.
    let wild = host(&[(bundle, &both), (".tgtimg", &[0xff; 16])]);
    assert_eq!(shown(&wild), wanted);
}

#[test]
fn offload_binaries() {
    let module = spirv(&["a"]);
    let mut file = offload(&[("triple", "spir64"), ("arch", "")], &module);
    assert_eq!(shown(&file), ["spir64: SPIR-V - a"]);
    file.resize(file.len().next_multiple_of(8), 0);
    file.extend(offload(
        &[("triple", "spir64_gen"), ("arch", "bmg")],
        b"BC\xc0\xde",
    ));
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
        zebin("skl", "saxpy"),
        spirv(&["a"]),
        host(&[(".data", b"x")]),
        b"kernel".to_vec(),
    ] {
        assert_eq!(images(&file), Ok(None));
    }
}

#[test]
fn ranges_that_overlap_are_refused() {
    let module = spirv(&["a"]);
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
    let modules = [spirv(&["a"]), spirv(&["b"])].concat();
    let listed = [0_u64.to_le_bytes(), 40_u64.to_le_bytes()].concat();
    let files = [
        archive(&[("64.9.0.9", &modules)]),
        offload(&[("triple", "spir64"), ("arch", "bmg")], &modules),
        host(&[
            ("__CLANG_OFFLOAD_BUNDLE__sycl-spir64", &modules),
            (".tgtimg", &listed),
            (
                ".llvm.offloading",
                &offload(&[("triple", "spir64"), ("arch", "")], b"x"),
            ),
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
