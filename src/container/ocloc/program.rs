//! Compiles by running a program with `ocloc`'s command line, for compilers that this process cannot load.
//!
//! Sources and results go through files of a directory of its own, which is also the program's working directory: it leaves files
//! there. Results are found by what they are: versions do not agree on names, and some make `NAME.bin.bin`.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

#[cfg(target_os = "linux")]
use rustix::process::{Signal, set_parent_process_death_signal};

use super::{Call, Files, LOG_NAME, Output};

/// Where results go.
const RESULTS: &str = "out";

/// Runs the program: its exit code, what it printed, and the zebin it made. A call without a source is a question; its results are all
/// files that the program made.
pub(super) fn run(program: &Path, call: &Call) -> io::Result<(i32, Vec<Output>)> {
    let directory = tempfile::tempdir()?;
    let root = directory.path();
    std::fs::create_dir(root.join(RESULTS))?;
    write(root, &call.source, call.terminator)?;
    write(root, &call.headers, 0)?;
    // The first argument is the program's own name.
    let arguments = call
        .argv
        .iter()
        .skip(1)
        .map(|a| a.to_string_lossy().into_owned());
    let question = call.source.names.is_empty();
    // Only compilations have a place for results.
    let compiles = call
        .argv
        .get(1)
        .is_some_and(|word| word.as_bytes() == b"compile");
    let place: &[&str] = if compiles {
        &["-out_dir", RESULTS]
    } else {
        &[]
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .args(place)
        .current_dir(root)
        .stdin(Stdio::null());
    end_with_this_process(&mut command);
    let done = command.output()?;
    let mut log = [done.stdout, done.stderr].concat();
    if done.status.code().is_none() {
        let crash = format!("the compiler crashed ({})\n", done.status);
        log.extend(crash.into_bytes());
    }
    let mut outputs = vec![Output {
        name: LOG_NAME.to_vec(),
        data: log,
    }];
    let results = if compiles {
        root.join(RESULTS)
    } else {
        root.to_owned()
    };
    for entry in std::fs::read_dir(results)? {
        let entry = entry?;
        if !entry.file_type()?.is_file() {
            continue;
        }
        let data = std::fs::read(entry.path())?;
        // Beside the zebin there may be SPIR-V.
        if question || data.starts_with(call.magic) {
            outputs.push(Output {
                name: entry.file_name().into_encoded_bytes(),
                data,
            });
        }
    }
    Ok((done.status.code().unwrap_or(-1), outputs))
}

/// Has a program end when this process does, which is killed when it takes too long.
#[cfg(target_os = "linux")]
fn end_with_this_process(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let tie = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: all that is done between fork and exec is one system call.
    unsafe { command.pre_exec(tie) };
}

#[cfg(not(target_os = "linux"))]
fn end_with_this_process(_: &mut Command) {}

/// Writes files without the last bytes of each.
fn write(root: &Path, files: &Files, without: usize) -> io::Result<()> {
    for (name, data) in files.names.iter().zip(&files.data) {
        let name = PathBuf::from(name.to_string_lossy().into_owned());
        if !name.components().all(|c| matches!(c, Component::Normal(_))) {
            let message = format!("`{}` is no name of a file in a directory", name.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let path = root.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let end = data.len().saturating_sub(without);
        std::fs::write(path, data.get(..end).unwrap_or_default())?;
    }
    Ok(())
}
