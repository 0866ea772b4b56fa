//! Files with images for several devices.

use super::*;

/// What `ocloc -device skl,pvc` writes: an archive of zebins.
fn archive(dir: &TempDir) -> String {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, device) in [("64.9.0.9", "skl"), ("64.12.60.7", "pvc")] {
        let zebin = fs::read(repository(format!(
            "tests/kernels/bin/{device}/saxpy.zebin"
        )))
        .unwrap();
        let (name, size) = (format!("{name}/"), zebin.len());
        bytes.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).bytes());
        bytes.extend(&zebin);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    let path = dir.path().join("saxpy.ar");
    fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

#[test]
fn images_are_listed_and_chosen() {
    let dir = TempDir::new().unwrap();
    let file = archive(&dir);
    let listed = ok(&["list", &file]).stdout;
    let lines: Vec<_> = listed.lines().collect();
    assert_eq!(lines[0], format!("{file}: 2 images"));
    assert!(
        lines[2].starts_with("0: zebin for 64.9.0.9 (skl), "),
        "{listed}"
    );
    assert!(
        lines[3].ends_with(" bytes, saxpy, saxpy_guarded, saxpy_scaled"),
        "{listed}"
    );
    let json: Value = serde_json::from_str(&ok(&["list", &file, "--json"]).stdout).unwrap();
    assert_eq!(json["kind"], "images");
    assert_eq!(json["images"][1]["device"], "pvc");
    assert_eq!(json["images"][1]["kernels"][0], "saxpy");
    let one = ok(&["list", &file, "--image", "1"]).stdout;
    assert!(
        one.starts_with(&format!("{file}, image 1: 3 kernels for pvc")),
        "{one}"
    );

    let run = [
        "run", &file, "--kernel", "saxpy", "--global", "8", "--arg", "zero:32",
    ];
    let rest = [
        "--arg",
        "iota:f32:8",
        "--arg",
        "f32:2",
        "--print",
        "0=f32:8",
    ];
    for choice in [
        ["--image", "0"],
        ["--image", "64.12.60.7"],
        ["--device", "pvc"],
    ] {
        let output = ok(&[&run[..], &rest, &choice].concat());
        assert_eq!(
            output.stdout, "arg 0: f32[8] = 0 2 4 6 8 10 12 14\n",
            "{choice:?}"
        );
    }
    let text = ok(&["disasm", &file, "--kernel", "saxpy", "--image", "0"]).stdout;
    assert!(text.starts_with("// kernel saxpy\n"), "{text}");
    let object = dir.path().join("saxpy.o").display().to_string();
    ok(&["compile", &file, "--image", "1", "-o", &object]);
}

#[test]
fn what_is_not_chosen_is_said() {
    let dir = TempDir::new().unwrap();
    let file = archive(&dir);
    let cases: [(&[&str], &str); 5] = [
        (
            &[],
            "2 images are possible; choose one with --image, --device or --kernel:\n  0: zebin for 64.9.0.9 (skl)",
        ),
        (
            &["--image", "2"],
            "no image `2` among its 2; `visa-jit list` shows them",
        ),
        (&["--image", "bmg"], "no image `bmg` among its 2"),
        (
            &["--device", "bmg"],
            "none of its 2 images is a zebin or SPIR-V for bmg",
        ),
        (
            &["--kernel", "other"],
            "none of its 2 images is a zebin or SPIR-V with a kernel `other`",
        ),
    ];
    for (options, message) in cases {
        let output = visa_jit(&[&["disasm", &file], options].concat());
        assert_eq!(output.code, 2, "{options:?}");
        assert!(
            output.stderr.contains(message),
            "{options:?}: {}",
            output.stderr
        );
    }
    let output = visa_jit(&["disasm", SAXPY, "--image", "0"]);
    assert_eq!(output.code, 2);
    assert!(
        output.stderr.contains("--image is for ocloc archives"),
        "{}",
        output.stderr
    );
}
