//! What the vendor's assembler, `GenX_IR` of IGC 1.0.12504, makes of our files.
//!
//! Its own files are no measure: that version leaves the last operands of most instructions away when it writes binaries, and does
//! not read these itself. Later ones do not, and still later ones write none at all. See `tests/binary/vendor/README.md`.

use super::round_trips::{as_binary, lines, programs, without_names, zebins};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use visa_jit::front::{binary, text};
use visa_jit::isa::Platform;
use visa_jit::module::{Body, Module};

/// The text that the vendor's assembler prints of a file. It compiles kernels too, which may fail or not end; the text is
/// there before.
fn printed(dir: &Path, bytes: &[u8], platform: Platform) -> Result<String, String> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let device = match platform {
        Platform::Dg2 => "dg2",
        Platform::Pvc | Platform::Bmg | Platform::Ptl => "pvc",
        Platform::Tgllp => "tgllp",
        Platform::Skl => "skl",
    };
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(dir.join("k.isa"), bytes).unwrap();
    let mut run = Command::new("GenX_IR")
        .args(["k.isa", "-platform", device, "-dumpcommonisa"])
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("GenX_IR: {e}"))?;
    let start = Instant::now();
    while run.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            run.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // The name of a kernel's text would be an attribute; functions are numbered.
    let kernel = std::fs::read_to_string(dir.join(".visaasm"));
    let mut text = kernel.map_err(|e| format!("nothing printed: {e}"))?;
    for number in 0.. {
        match std::fs::read_to_string(dir.join(format!("_f{number}.visaasm"))) {
            Ok(function) => text += &function,
            Err(_) => break,
        }
    }
    Ok(text)
}

/// What its text says as it likes: it adds a target, labels have other names, and of the coordinates of typed messages it leaves the
/// offsets away.
fn as_printed(modules: &[Module]) -> Vec<Module> {
    let mut modules = as_binary(modules);
    for module in &mut modules {
        for (label, number) in module.labels.iter_mut().zip(0..) {
            label.name = format!("L{number}");
        }
        module.attrs.retain(|a| a.name != "Target");
        for inst in &mut module.insts {
            if let Body::LscTyped(message) = &mut inst.body {
                message.coords.iter_mut().for_each(|c| c.offset = 0);
            }
        }
    }
    modules
}

#[test]
#[ignore = "needs the vendor's assembler, GenX_IR"]
fn the_vendors_assembler_reads_what_we_write() {
    let dir = std::env::temp_dir().join(format!("visa-binary-{}", std::process::id()));
    let (mut good, mut refused, mut wrong) = (0, 0, Vec::new());
    for (platform, path) in zebins() {
        for (name, modules) in programs(&path) {
            let Ok(bytes) = binary::write(&modules, Some(platform)) else {
                refused += 1;
                continue;
            };
            let read = printed(&dir, &bytes, platform)
                .and_then(|t| text::parse_all("printed", &t).map_err(|e| e.to_string()));
            match read {
                Ok(read) if as_printed(&read) == as_printed(&modules) => good += 1,
                Ok(read) => {
                    let (a, b) = (as_printed(&modules), as_printed(&read));
                    let at = a.iter().zip(&b).find_map(|(a, b)| {
                        let mut pairs = a.insts.iter().zip(&b.insts);
                        pairs.find(|(a, b)| a != b)
                    });
                    wrong.push(format!("{name} differs: {at:?}"));
                }
                Err(e) => wrong.push(format!("{name}: {e}")),
            }
        }
    }
    let _ = std::fs::remove_dir_all(dir);
    println!("{good} as written, {refused} not written");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Lines of which the vendor's assembler makes something else, or nothing.
const DIFFERENT: &str = include_str!("different.txt");

#[test]
#[ignore = "needs the vendor's assembler, GenX_IR"]
fn the_vendors_assembler_reads_every_construct() {
    let dir = std::env::temp_dir().join(format!("visa-lines-{}", std::process::id()));
    let (mut good, mut different) = (0, String::new());
    for (line, module) in lines() {
        let modules = [module];
        let want = without_names(&as_printed(&modules));
        let platforms = [Platform::Pvc, Platform::Dg2, Platform::Tgllp, Platform::Skl];
        let mut why = "not written".to_owned();
        for platform in platforms {
            let Ok(bytes) = binary::write(&modules, Some(platform)) else {
                break;
            };
            let read = printed(&dir, &bytes, platform)
                .and_then(|t| text::parse("printed", &t).map_err(|e| e.to_string()));
            match read.map(|m| without_names(&as_printed(&[m]))) {
                Ok(read) if read == want => {
                    why.clear();
                    break;
                }
                Ok(read) => why = text::print(&read[0]),
                Err(e) => why = e,
            }
        }
        if why.is_empty() {
            good += 1;
        } else {
            println!("{line}\n{why}");
            different += line;
            different.push('\n');
        }
    }
    let _ = std::fs::remove_dir_all(dir);
    println!("{good} as written");
    let listed = DIFFERENT.lines().filter(|l| !l.starts_with('#'));
    assert!(listed.eq(different.lines()), "{different}");
}
