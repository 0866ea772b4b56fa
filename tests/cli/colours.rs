//! Colours of what was found: on a terminal, unless `NO_COLOR` says otherwise, and nowhere else.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::command;

const RUN: [&str; 12] = [
    "run",
    "tests/checks/pvc.zebin",
    "--kernel",
    "store_int",
    "--global",
    "64",
    "--arg",
    "zero:252",
    "--arg",
    "i32:0",
    "--check",
    "memory",
];

/// What the driver tells `exec`.
const TOLD: &str = r#"{"kind":"faults","kernel":"k","count":1,"first":[{"text":"k line 3: `lsc_load` here","kind":"buffer","allocated":["main (a.c:3)"]}]}"#;

fn run() -> Command {
    command(&RUN)
}

fn exec() -> Command {
    let script = format!("echo '{TOLD}' >> \"$VISA_JIT_REPORT\"");
    command(&["exec", "--library", "/bin/sh", "--", "sh", "-c", &script])
}

/// What a command says on standard error if that is a terminal, with the ends of lines as they are elsewhere.
fn on_terminal(mut command: Command, settings: &[(&str, &str)]) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = File::options().read(true).write(true).open(name).unwrap();
    // `CI` counts too: logs of continuous integration show colours whatever `TERM` says.
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(variable);
    }
    command.env("TERM", "xterm").envs(settings.iter().copied());
    command.stdout(Stdio::null()).stderr(theirs);
    let mut child = command.spawn().unwrap();
    // It has the other end open.
    drop(command);
    let (mut said, mut part) = (Vec::new(), [0; 4096]);
    // The end of a terminal is an error.
    let mut ours = File::from(ours);
    while let Ok(n @ 1..) = ours.read(&mut part) {
        said.extend(&part[..n]);
    }
    child.wait().unwrap();
    String::from_utf8(said).unwrap().replace("\r\n", "\n")
}

/// The same text without a terminal, but for what differs from run to run.
fn elsewhere(mut command: Command) -> String {
    let output = command.env("TERM", "xterm").output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

/// Lines about what was found.
fn found(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("compiled by"));
    let lines = lines.map(|line| match line.find(" at 0x") {
        Some(at) => &line[..at],
        None => line,
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn terminals_get_colours() {
    let said = on_terminal(run(), &[]);
    let begins = "\u{1b}[1m\u{1b}[31mfault\u{1b}[0m: \u{1b}[1mstore_int\u{1b}[0m line ";
    assert!(said.contains(begins), "{said:?}");
    for name in ["lsc_store", "o"] {
        let name = format!("\u{1b}[36m`{name}`\u{1b}[0m");
        assert!(said.contains(&name), "{said:?}");
    }
    let said = on_terminal(exec(), &[]);
    let wanted = "visa-jit: kernel \u{1b}[36m`k`\u{1b}[0m: \u{1b}[1m\u{1b}[31m1 access(es) out of bounds\u{1b}[0m in 1 launch(es)\n  \
        \u{1b}[1mk\u{1b}[0m line 3: \u{1b}[36m`lsc_load`\u{1b}[0m here\n    allocated by main (a.c:3)\n";
    assert_eq!(said, wanted);
}

#[test]
fn nothing_else_gets_colours() {
    for make in [run, exec] {
        let plain = elsewhere(make());
        assert!(!plain.contains('\u{1b}'), "{plain:?}");
        assert!(plain.contains("store_int line") || plain.contains("k line 3: `lsc_load` here\n"));
        for setting in [("NO_COLOR", "1"), ("TERM", "dumb"), ("CLICOLOR", "0")] {
            let said = on_terminal(make(), &[setting]);
            assert_eq!(found(&said), found(&plain), "{setting:?}");
        }
        // Colours are all that a terminal gets more.
        let mut said = on_terminal(make(), &[]);
        for code in ["0", "1", "31", "36"] {
            said = said.replace(&format!("\u{1b}[{code}m"), "");
        }
        assert_eq!(found(&said), found(&plain));
    }
}
