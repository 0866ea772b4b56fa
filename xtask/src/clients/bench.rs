//! What runs a program on the virtual GPU, and what comes of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Package;
use super::python;

/// A part of a client that passes or fails, such as a routine or a mode, with its tests.
pub struct Case {
    pub name: String,
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Case {
    /// A case that is one test.
    pub fn one(name: impl Into<String>, passed: bool) -> Self {
        Self {
            name: name.into(),
            passed: usize::from(passed),
            failed: usize::from(!passed),
            skipped: 0,
        }
    }
}

/// Passed, failed, skipped.
pub fn sums(cases: &[Case]) -> (usize, usize, usize) {
    cases.iter().fold((0, 0, 0), |(p, f, s), c| {
        (p + c.passed, f + c.failed, s + c.skipped)
    })
}

/// What a program said.
pub struct Said {
    /// `None` if a signal or the time limit ended it.
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn fine(&self) -> bool {
        self.status == Some(0)
    }

    pub fn both(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

pub struct Bench {
    pub short: bool,
    /// Files that programs need, environments and logs.
    pub folder: PathBuf,
    exec: PathBuf,
}

impl Bench {
    pub fn new(short: bool) -> Result<Self, String> {
        let said = |e: std::io::Error| e.to_string();
        let here = std::env::current_exe().map_err(said)?;
        let exec = here.with_file_name("visa-jit");
        if !exec.is_file() {
            return Err(format!(
                "no {}; build it with the same profile: cargo build -p visa-jit-cli -p visa-jit-opencl",
                exec.display()
            ));
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/clients");
        fs::create_dir_all(folder.join("logs")).map_err(said)?;
        let folder = folder.canonicalize().map_err(said)?;
        Ok(Self {
            short,
            folder,
            exec,
        })
    }

    /// The version that is installed.
    pub fn version(&self, package: Package) -> Option<String> {
        let mut command = match package {
            Package::Debian(name) => {
                let mut dpkg = Command::new("dpkg-query");
                dpkg.args(["-W", "-f", "${db:Status-Abbrev}|${Version}", name]);
                dpkg
            }
            Package::Python(name) => {
                let mut python = Command::new(python::interpreter(self));
                let ask = format!(
                    "from importlib.metadata import version; print('ii |' + version('{name}'))"
                );
                python.args(["-c", &ask]);
                python
            }
        };
        let answer = command.stderr(Stdio::null()).output().ok()?;
        let answer = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        let version = answer.strip_prefix("ii")?.trim().strip_prefix('|')?;
        Some(version.to_owned())
    }

    /// Runs a program in a directory, on the virtual GPU or without it, and ends it after `seconds`. What it says is kept as `logs/NAME.log`.
    pub fn run(
        &self,
        name: &str,
        seconds: u32,
        virtual_gpu: bool,
        directory: &Path,
        program: &[&str],
    ) -> Result<Said, String> {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", &seconds.to_string()]);
        if virtual_gpu {
            command.arg(&self.exec).args(["exec", "--"]);
        }
        let output = command
            .args(program)
            .current_dir(directory)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("timeout: {e}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = Said {
            status: output.status.code().filter(|s| *s < 124),
            out: text(&output.stdout),
            err: text(&output.stderr),
        };
        let log = self.folder.join("logs").join(format!("{name}.log"));
        let line = format!("{}: {}\n", program.join(" "), output.status);
        fs::write(&log, line + &said.both()).map_err(|e| format!("{}: {e}", log.display()))?;
        Ok(said)
    }

    /// As [`Bench::run`], on the virtual GPU in the folder of files.
    pub fn exec(&self, name: &str, seconds: u32, program: &[&str]) -> Result<Said, String> {
        self.run(name, seconds, true, &self.folder, program)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), String> {
        let path = self.folder.join(name);
        fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))
    }
}
