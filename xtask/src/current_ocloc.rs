//! Gets today's `ocloc` without changing the system: packages of Debian's development branch, unpacked into a directory, and a program
//! that runs the compiler under the C library that came with it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The compiler and everything that it loads.
const PACKAGES: [&str; 7] = [
    "intel-ocloc",
    "libigc2",
    "libigdfcl2",
    "libc6",
    "libstdc++6",
    "libgcc-s1",
    "zlib1g",
];

/// Prints the program.
pub fn run() -> Result<(), String> {
    println!("{}", program()?.display());
    Ok(())
}

/// Unpacks it, unless it is there, and returns the program.
pub fn program() -> Result<PathBuf, String> {
    let target = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/ocloc");
    let said = |e: std::io::Error| format!("{target}: {e}");
    std::fs::create_dir_all(target).map_err(said)?;
    let directory = Path::new(target).canonicalize().map_err(said)?;
    let program = directory.join("ocloc");
    if !program.is_file() {
        unpack(&directory)?;
        let compiler = compiler(&directory.join("root/usr/bin"))?;
        let root = directory.join("root/usr").display().to_string();
        let text = format!(
            "#!/bin/sh\nexec {root}/lib64/ld-linux-x86-64.so.2 --library-path {root}/lib/x86_64-linux-gnu {} \"$@\"\n",
            compiler.display()
        );
        std::fs::write(&program, text).map_err(said)?;
        command(Command::new("chmod").arg("+x").arg(&program))?;
    }
    command(Command::new(&program).arg("--version"))?;
    Ok(program)
}

fn unpack(directory: &Path) -> Result<(), String> {
    let said = |e: std::io::Error| format!("{}: {e}", directory.display());
    let sites = command(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(SITE)",
        "Created-By: Packages",
    ]))?;
    let site = sites.lines().next();
    let site = site.ok_or("apt-get knows no archive to take packages from")?;
    let sources = directory.join("sources.list");
    std::fs::write(&sources, format!("deb {site} sid main\n")).map_err(said)?;
    std::fs::create_dir_all(directory.join("lists/partial")).map_err(said)?;
    let options = [
        format!("Dir::Etc::sourcelist={}", sources.display()),
        "Dir::Etc::sourceparts=/dev/null".to_owned(),
        format!("Dir::State::lists={}", directory.join("lists").display()),
        "APT::Get::List-Cleanup=0".to_owned(),
        "Dir::Cache::pkgcache=".to_owned(),
        "Dir::Cache::srcpkgcache=".to_owned(),
    ];
    let options: Vec<&str> = options.iter().flat_map(|o| ["-o", o.as_str()]).collect();
    command(Command::new("apt-get").args(&options).arg("update"))?;
    let mut download = Command::new("apt-get");
    command(
        download
            .args(&options)
            .arg("download")
            .args(PACKAGES)
            .current_dir(directory),
    )?;
    for entry in std::fs::read_dir(directory).map_err(said)? {
        let path = entry.map_err(said)?.path();
        if path.extension().is_some_and(|e| e == "deb") {
            let mut unpack = Command::new("dpkg");
            command(unpack.arg("-x").arg(&path).arg(directory.join("root")))?;
        }
    }
    Ok(())
}

/// The file, whose name has the version.
fn compiler(folder: &Path) -> Result<PathBuf, String> {
    let said = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(said)? {
        let entry = entry.map_err(said)?;
        if entry.file_name().to_string_lossy().starts_with("ocloc") {
            return Ok(entry.path());
        }
    }
    Err(format!("{}: no ocloc", folder.display()))
}

/// What a command prints on standard output.
fn command(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let done = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    let done = done.map_err(|e| format!("{shown}: {e}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!("{shown}: {}", done.status)),
    }
}
