//! What the vendor's assembler, `GenX_IR` of IGC 1.0.12504, makes of our files.
//!
//! It leaves the last operands of most instructions away when it writes binaries (`tests/binary/vendor/README.md`), so that what it
//! writes is compared after a mending of ten bytes of a copy of it.

use super::round_trips::{as_binary, lines, programs, without_names, zebins};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use visa_jit::front::{binary, text};
use visa_jit::isa::{Platform, Versions};
use visa_jit::module::{Body, Module};

/// The vendor's name of a device, or of the one with the same registers.
fn device(platform: Platform) -> &'static str {
    match platform {
        Platform::Dg2 => "dg2",
        Platform::Pvc | Platform::Bmg | Platform::Ptl => "pvc",
        Platform::Tgllp => "tgllp",
        Platform::Skl => "skl",
    }
}

/// The text that the vendor's assembler prints of a file. It compiles kernels too, which may fail or not end; the text is
/// there before.
fn printed(dir: &Path, bytes: &[u8], platform: Platform) -> Result<String, String> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(dir.join("k.isa"), bytes).unwrap();
    let mut run = Command::new("GenX_IR")
        .args(["k.isa", "-platform", device(platform), "-dumpcommonisa"])
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
        for (name, modules) in programs(&path, usize::MAX) {
            let Ok(bytes) = binary::write(&modules, Some(platform)) else {
                refused += 1;
                continue;
            };
            let read = printed(&dir, &bytes, platform).and_then(|t| {
                text::parse_all("printed", &t, Versions::Known).map_err(|e| e.to_string())
            });
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
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
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

/// Where that version compares its counter with a wrong count: in front of a loop over operands, and in it; and what it should do.
/// After the first, operands are counted with execution size and predicate; the second one counts those without, and what it skipped.
const MENDED: [(&[u8], &[u8], &[u8]); 2] = [
    (
        b"\x41\x8b\x46\x18\x48\x89\x4c\x24\x20",
        b"\x39\xc3\x0f\x46\xc3",
        b"\x89\xd8\x90\x90\x90",
    ),
    (
        b"\x41\x8b\x46\x18\x41\x83\xc7\x01",
        b"\x39\xc3\x0f\x46\xc3",
        b"\x01\xe8\x90\x90\x90",
    ),
];

/// A copy of the assembler that writes all operands.
fn mended(dir: &Path) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let mut program = std::fs::read("/usr/bin/GenX_IR").expect("GenX_IR");
    for (before, wrong, right) in MENDED {
        let found = [before, wrong].concat();
        let mut at = program.windows(found.len()).enumerate();
        let at = at.find(|(_, w)| *w == found).expect("IGC 1.0.12504").0;
        program[at + before.len()..at + found.len()].copy_from_slice(right);
    }
    std::fs::create_dir_all(dir).unwrap();
    let path = dir.join("mended");
    std::fs::write(&path, program).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
#[ignore = "needs the vendor's assembler, GenX_IR"]
fn the_vendors_binaries_are_read() {
    let dir = std::env::temp_dir().join(format!("visa-mended-{}", std::process::id()));
    let assembler = mended(&dir);
    // Surfaces and samplers have the name of their number.
    let plain = |modules: &[Module]| without_names(&as_printed(modules));
    let same = |a: &[Module], b: &[Module]| plain(a) == plain(b);
    let (mut good, mut not_assembled, mut wrong) = (0, 0, Vec::new());
    for (platform, path) in zebins() {
        for (name, modules) in programs(&path, usize::MAX) {
            let modules = as_binary(&modules);
            // Of an instruction without operands, the predicate is still left away.
            let returns = |m: &Module| m.insts.iter().rev().skip(1).any(|i| i.body == Body::Ret);
            if modules.iter().any(returns) {
                not_assembled += 1;
                continue;
            }
            let texts: Vec<String> = modules.iter().map(text::print).collect();
            let _ = std::fs::remove_file(dir.join("k.isa"));
            std::fs::write(dir.join("k.visaasm"), texts.concat()).unwrap();
            let run = Command::new("timeout")
                .args(["20", assembler.to_str().unwrap(), "k.visaasm", "-platform"])
                .args([device(platform), "-outputCisaBinaryName", "k.isa"])
                .current_dir(&dir)
                .output();
            run.unwrap();
            let Ok(bytes) = std::fs::read(dir.join("k.isa")) else {
                not_assembled += 1;
                continue;
            };
            match binary::read(&bytes, Some(platform)) {
                Ok(read) if same(&read, &modules) => good += 1,
                Ok(read) => {
                    let (a, b) = (plain(&modules), plain(&read));
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
    println!("{good} read as their text, {not_assembled} not assembled");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
