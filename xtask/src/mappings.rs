//! No memory is writable and executable: every test under `strace`, which sees each call that maps or protects memory.
//!
//! Cargo runs each test program through this one ([`traced`]), which runs it under `strace`, leaves a line in a file, and fails
//! if the program or a process it started asked for such memory. Processes of other programs, such as compilers and
//! emulators that tests start, do not count. What no call asks for, such as a stack that a program's header makes
//! executable, is seen in `/proc/self/maps`, at which debug builds look whenever they seal code.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitStatus};

/// Where [`traced`] leaves its lines.
const SUMMARY: &str = "VISA_JIT_MAPPINGS_SUMMARY";
/// Looks at `/proc/self/maps` at each sealing, not now and then.
const WATCH: &str = "VISA_JIT_WATCH_MAPPINGS";
/// Calls that make memory executable, and those that tell which program a process is.
const CALLS: &str = "trace=mmap,mprotect,pkey_mprotect,execve,clone,clone3,fork,vfork";

/// Runs `cargo test --workspace` with these arguments, and prints what it saw.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let here = std::env::current_exe().map_err(|e| e.to_string())?;
    let summary = std::env::temp_dir().join(format!("visa-jit-mappings-{}", std::process::id()));
    let runner = format!("target.'cfg(all())'.runner = [{here:?}, \"traced\"]");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--workspace", "--no-fail-fast", "--config", &runner])
        .args(arguments)
        .env(SUMMARY, &summary)
        .env(WATCH, "1")
        .status()
        .map_err(|e| format!("cargo: {e}"))?;
    let lines = fs::read_to_string(&summary).unwrap_or_default();
    let _ = fs::remove_file(&summary);
    println!("{lines}");
    let sum = |column: usize| -> u64 {
        let numbers = lines
            .lines()
            .filter_map(|l| l.split_whitespace().nth(column));
        numbers.filter_map(|n| n.parse::<u64>().ok()).sum()
    };
    let (calls, bad) = (sum(1), sum(3));
    println!(
        "{} programs, {calls} calls that map or protect memory -> {bad} of them for memory both writable and executable",
        lines.lines().count()
    );
    if bad > 0 || calls == 0 {
        return Err("memory was writable and executable, or nothing was seen".to_owned());
    }
    passed(status)
}

fn passed(status: ExitStatus) -> Result<(), String> {
    if status.success() {
        return Ok(());
    }
    Err(format!("tests failed: {status}"))
}

/// Runs a program under `strace`.
pub fn traced(command: &[String]) -> Result<(), String> {
    let Some(program) = command.first() else {
        return Err("there is no program to run".to_owned());
    };
    let log = std::env::temp_dir().join(format!("visa-jit-strace-{}", std::process::id()));
    let status = Command::new("strace")
        // Only the calls in question stop the program.
        .args([
            "-f",
            "-qq",
            "--seccomp-bpf",
            "-s",
            "256",
            "-e",
            "signal=none",
            "-e",
            CALLS,
            "-o",
        ])
        .arg(&log)
        .args(command)
        .status()
        .map_err(|e| format!("strace (of the package strace): {e}"))?;
    let seen = File::open(&log).map(|file| examine(BufReader::new(file), program));
    let _ = fs::remove_file(&log);
    let seen = seen.map_err(|e| e.to_string())?;
    let name = Path::new(program).file_name().unwrap_or_default();
    let line = format!(
        "{:48} {:9} calls, {} writable and executable\n",
        name.to_string_lossy(),
        seen.calls,
        seen.bad.len()
    );
    for bad in seen.bad.iter().take(8) {
        eprintln!("writable and executable: {bad}");
    }
    if let Some(summary) = std::env::var_os(SUMMARY) {
        let file = OpenOptions::new().create(true).append(true).open(summary);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
    passed(status)
}

#[derive(Default)]
struct Seen {
    /// Calls of our programs that map or protect memory.
    calls: u64,
    /// Those for memory that is writable and executable.
    bad: Vec<String>,
}

/// Reads what `strace` wrote. Ours are programs of the directory that `program` is built in, or the one above.
fn examine(log: impl BufRead, program: &str) -> Seen {
    let deps = Path::new(program).parent().unwrap_or(Path::new(""));
    let ours = match deps.ends_with("deps") {
        true => deps.parent().unwrap_or(deps),
        false => deps,
    };
    let mut seen = Seen::default();
    // Processes that run something else.
    let mut foreign: HashMap<String, bool> = HashMap::new();
    for line in log.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let Some((process, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        let is_foreign = foreign.get(process).copied().unwrap_or(false);
        if let Some(arguments) = call.strip_prefix("execve(\"") {
            if !call.ends_with("= 0") && !call.ends_with("<unfinished ...>") {
                continue;
            }
            let path = arguments.split('"').next().unwrap_or("");
            foreign.insert(process.to_owned(), !Path::new(path).starts_with(ours));
        } else if call.contains("clone") || call.contains("fork") {
            let child = call.rsplit("= ").next().unwrap_or("");
            if child.parse::<u32>().is_ok() {
                foreign.entry(child.to_owned()).or_insert(is_foreign);
            }
        } else if !is_foreign && (call.starts_with("mmap") || call.contains("mprotect(")) {
            seen.calls += 1;
            if call.contains("PROT_WRITE") && call.contains("PROT_EXEC") {
                seen.bad.push(line.into_owned());
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strace_writes_is_understood() {
        let log = "\
1  execve(\"/t/debug/deps/a-12\", [\"a\"], 0x7f /* 9 vars */) = 0
1  mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f00
1  mprotect(0x7f00, 4096, PROT_READ|PROT_EXEC) = 0
1  clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD}, 88) = 2
2  execve(\"/usr/bin/qemu\", [\"qemu\"], 0x7f /* 9 vars */) = 0
2  mmap(NULL, 4096, PROT_READ|PROT_WRITE|PROT_EXEC, MAP_PRIVATE, -1, 0) = 0x7f00
2  clone(child_stack=NULL, flags=SIGCHLD) = 3
3  mprotect(0x7f00, 4096, PROT_READ|PROT_WRITE|PROT_EXEC) = 0
1  clone3({flags=CLONE_VM|CLONE_VFORK} <unfinished ...>
4  execve(\"/usr/bin/none\", [\"none\"], 0x7f /* 9 vars */) = -1 ENOENT (No such file or directory)
4  execve(\"/t/debug/visa-jit\", [\"visa-jit\"], 0x7f /* 9 vars */) = 0
1  <... clone3 resumed> => {parent_tid=[0]}, 88) = 4
4  pkey_mprotect(0x7f00, 4096, PROT_READ|PROT_WRITE|PROT_EXEC, 1 <unfinished ...>
";
        let seen = examine(log.as_bytes(), "/t/debug/deps/a-12");
        assert_eq!(seen.calls, 3);
        assert_eq!(seen.bad.len(), 1, "{:?}", seen.bad);
        assert!(seen.bad[0].starts_with("4  pkey_mprotect"));
    }
}
