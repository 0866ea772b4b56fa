//! Programs in C, as others write them: through the system's loader, and linked with the driver itself. Many threads at once, and the
//! edges of a process.
//!
//! They need a C compiler and OpenCL's headers, and say so when they are skipped.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use visa_test_common::{Rng, full, share, zebin_path};

/// What a program is linked with.
#[derive(Clone, Copy, Debug)]
enum With {
    /// The system's loader.
    Loader,
    /// The driver.
    Driver,
    /// Neither.
    Nothing,
}

/// A program that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(100);

fn driver() -> PathBuf {
    let tests = std::env::current_exe().expect("this test's own file");
    let library = tests.with_file_name("libvisa_jit_opencl.so");
    assert!(library.is_file(), "cargo builds {}", library.display());
    library
}

/// Compiles a program; none if there is nothing to compile it with.
fn compile(name: &str, with: With) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c_programs");
    // Tests of one name run side by side.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("main").replace("::", "-");
    let program = format!("{name}-{test}-{with:?}");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program);
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-g",
        "-pthread",
    ]);
    compiler.arg(source.join(name).with_extension("c"));
    compiler.arg("-o").arg(&program);
    let driver = driver();
    let folder = driver.parent().expect("a folder").display();
    match with {
        With::Loader => compiler.arg("-lOpenCL"),
        With::Driver => compiler.args([
            format!("-L{folder}"),
            "-lvisa_jit_opencl".to_owned(),
            format!("-Wl,-rpath,{folder}"),
        ]),
        With::Nothing => compiler.arg("-ldl"),
    };
    let Ok(made) = compiler.output() else {
        eprintln!("skipped: there is no C compiler");
        return None;
    };
    let said = String::from_utf8_lossy(&made.stderr);
    if said.contains("CL/cl.h") || said.contains("-lOpenCL") {
        eprintln!("skipped: there are no OpenCL headers, or no loader to link with");
        return None;
    }
    assert!(made.status.success(), "{said}");
    Some(program)
}

/// A program that finds the driver, and compiles all kernels anew.
fn finding(mut program: Command) -> Command {
    program.env("OCL_ICD_VENDORS", driver());
    program.env("OCL_ICD_FILENAMES", driver());
    program.env("VISA_JIT_DEVICE", "skl");
    program.env("VISA_JIT_CACHE_DIR", "off");
    // Cargo's has a folder in front in which an older driver may be.
    program.env_remove("LD_LIBRARY_PATH");
    program
}

/// Waits for a program's end.
fn end(mut child: Child, what: &str) -> Output {
    let start = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if start.elapsed() > LIMIT {
            child.kill().expect("it can be killed");
            panic!("{what} hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().expect("it has ended")
}

fn start(mut program: Command) -> Child {
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    program.spawn().expect("it starts")
}

/// Runs a program to its end; what it says on standard output. It has to end with a code and say nothing else.
fn run(program: Command, code: i32) -> String {
    let what = format!("{program:?}");
    let output = end(start(program), &what);
    let said = String::from_utf8_lossy(&output.stderr);
    let status = output.status;
    assert_eq!(
        (status.code(), &*said),
        (Some(code), ""),
        "{what}: {status}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The stress test's command, with its numbers.
fn stress(program: &Path, numbers: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg(zebin_path("skl", "saxpy")).args(numbers);
    finding(command)
}

/// Runs it; how many commands there were.
fn commands(command: Command) -> u64 {
    let said = run(command, 0);
    let number = said
        .strip_suffix(" commands\n")
        .and_then(|n| n.parse().ok());
    number.unwrap_or_else(|| panic!("{said}"))
}

#[test]
fn threads_use_everything_at_once() {
    for with in [With::Loader, With::Driver] {
        let Some(program) = compile("stress", with) else {
            return;
        };
        let rounds = share(6, 3).to_string();
        let enough = commands(stress(&program, &["8", &rounds, "1"]));
        assert!(enough > share(1000, 3), "{enough}");
    }
}

#[test]
#[ignore = "half a minute: half a million commands"]
fn threads_use_everything_for_long() {
    for with in [With::Loader, With::Driver] {
        let Some(program) = compile("stress", with) else {
            return;
        };
        let all = (1..=8).map(|seed| {
            let seed = seed.to_string();
            commands(stress(&program, &["8", "150", &seed]))
        });
        let all: u64 = all.sum();
        println!("{all} commands, {with:?}");
        assert!(all > 250_000, "{all}");
    }
}

#[test]
#[ignore = "half a minute: valgrind"]
fn valgrind_finds_nothing() {
    let Some(program) = compile("stress", With::Loader) else {
        return;
    };
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("skipped: there is no valgrind");
        return;
    }
    for (threads, rounds, seed) in [("2", "2", "1"), ("8", "2", "2")] {
        let mut command = Command::new("valgrind");
        // Code is made while the program runs.
        command.args(["--smc-check=all-non-file", "--fair-sched=yes", "--quiet"]);
        command.args([
            "--error-exitcode=9",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
        ]);
        // What the process keeps to its end is reached by pointers into the middle, which valgrind takes for possible leaks.
        command.arg("--show-leak-kinds=definite").arg(&program);
        command
            .arg(zebin_path("skl", "saxpy"))
            .args([threads, rounds, seed]);
        let done = commands(finding(command));
        println!("{done} commands under valgrind");
        assert!(done > 50);
    }
}

#[test]
#[ignore = "a minute: a thousand processes"]
fn a_thousand_processes_end_in_the_middle() {
    let Some(program) = compile("stress", With::Loader) else {
        return;
    };
    let mut rng = Rng::new(20);
    for seed in 0..1000 {
        // Some end while kernels are compiled, some long after.
        let time = rng.below(40_000).to_string();
        let said = run(
            stress(&program, &["8", "1000", &seed.to_string(), &time]),
            0,
        );
        assert_eq!(said, "");
    }
}

fn edge(program: &Path, name: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(name).arg(zebin_path("skl", "mandelbrot"));
    finding(command)
}

/// The process ends, with the code that it wants to end with, whatever there is still to do.
#[test]
fn processes_end_as_they_like() {
    let Some(program) = compile("edges", With::Loader) else {
        return;
    };
    for (name, code) in [
        ("keep", 0),
        ("exit", 3),
        ("return", 3),
        ("quick_exit", 3),
        ("released", 3),
        ("fork-running", 3),
        ("fork-anew", 3),
        ("fork-running-anew", 3),
        ("fork-running-wait", 3),
        ("fork-running-poll", 3),
        ("fork-flushed", 3),
    ] {
        assert_eq!(run(edge(&program, name), code), "", "{name}");
    }
}

/// The same while LLVM compiles in the background; a child that `fork` makes then has Cranelift's code.
#[test]
#[cfg(feature = "llvm")]
fn processes_end_while_llvm_compiles() {
    let Some(program) = compile("edges", With::Loader) else {
        return;
    };
    for name in [
        "keep",
        "exit",
        "quick_exit",
        "fork-running",
        "fork-anew",
        "fork-running-anew",
        "fork-running-wait",
        "fork-running-poll",
        "fork-flushed",
    ] {
        for _ in 0..3 {
            let mut command = edge(&program, name);
            command.env("VISA_JIT_TIER", "1");
            let code = if name == "keep" { 0 } else { 3 };
            assert_eq!(run(command, code), "", "{name}");
        }
    }
}

/// On whatever thread a kernel runs, an interrupt ends the process at once.
#[test]
fn interrupts_end_kernels() {
    let Some(program) = compile("edges", With::Loader) else {
        return;
    };
    for name in ["for-ever", "for-ever-here"] {
        let mut child = start(edge(&program, name));
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        output.read_line(&mut line).expect("a line");
        assert_eq!(line, "running\n");
        std::thread::sleep(Duration::from_millis(50));
        assert!(child.try_wait().expect("a child").is_none(), "it runs");
        let sent = Instant::now();
        kill_process(Pid::from_child(&child), Signal::INT).expect("it is there");
        let ended = end(child, name);
        assert_eq!(ended.status.signal(), Some(Signal::INT.as_raw()), "{name}");
        assert!(
            sent.elapsed() < Duration::from_secs(5),
            "{:?}",
            sent.elapsed()
        );
        output.read_to_string(&mut line).expect("text");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((line.as_str(), &*said), ("running\n", ""));
    }
}

/// A launch that is stopped, by time or by a fault, ends its event with an error, and all else goes on.
#[test]
fn stopped_launches_stop_nothing_else() {
    let Some(program) = compile("edges", With::Loader) else {
        return;
    };
    // They wait most of the time, in a plain run for less.
    let seconds = if full() { "0.7" } else { "0.4" };
    std::thread::scope(|scope| {
        for (how, setting, code) in [
            ("timeout", ("VISA_JIT_TIMEOUT", seconds), 0),
            ("fork-timeout", ("VISA_JIT_TIMEOUT", seconds), 3),
            ("trap", ("VISA_JIT_OOB", "trap"), 0),
        ] {
            let mut command = edge(&program, how);
            command.env(setting.0, setting.1);
            scope.spawn(move || assert_eq!(run(command, code), "", "{how}"));
        }
    });
}

/// The driver, and a loader with it, may be unloaded.
#[test]
fn libraries_may_be_unloaded() {
    let Some(program) = compile("unload", With::Nothing) else {
        return;
    };
    let driver = driver();
    for library in [driver.as_path(), Path::new("libOpenCL.so.1")] {
        for how in ["idle", "used"] {
            let mut command = Command::new(&program);
            command.arg(library).arg(how);
            assert_eq!(run(finding(command), 0), "", "{library:?} {how}");
        }
    }
}

/// Line of `allocated.c` with a mark.
fn line_of(mark: &str) -> usize {
    let mut lines = include_str!("allocated.c").lines();
    let found = lines.position(|line| line.contains(mark));
    found.expect("a marked line") + 1
}

/// The report of a run of `allocated.c`: frames of each fault that name a function of it, as `what function line`.
fn told_of_allocations(program: &Path, settings: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
    let report = tempfile::NamedTempFile::new().expect("a file");
    let zebin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/checks/skl.zebin");
    let mut command = Command::new(program);
    command.arg(zebin);
    let mut command = finding(command);
    command.env("VISA_JIT_CHECK", "memory");
    command.env("VISA_JIT_REPORT", report.path());
    command.envs(settings.iter().copied());
    run(command, 0);
    let lines = std::fs::read_to_string(report.path()).expect("a report");
    let all = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let faults = all.filter(|line: &serde_json::Value| line["kind"] == "faults");
    let told = faults.map(|line| {
        let first = &line["first"][0];
        let of = |what: &'static str| {
            let frames = first[what].as_array().into_iter().flatten();
            frames.map(move |frame| format!("{what} {}", frame.as_str().expect("a text")))
        };
        let text = first["text"].as_str().expect("a text").to_owned();
        (text, of("allocated").chain(of("freed")).collect())
    });
    told.collect()
}

#[test]
fn findings_say_where_memory_is_from() {
    for with in [With::Loader, With::Driver] {
        let Some(program) = compile("allocated", with) else {
            return;
        };
        let place = |function: &str, mark: &str| {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c_programs/allocated.c");
            format!("{function} ({}:{})", source.display(), line_of(mark))
        };
        let told = told_of_allocations(&program, &[("VISA_JIT_BACKTRACE", "1")]);
        let [kept, missed, freed] = told.as_slice() else {
            panic!("{told:?}");
        };
        for (what, (text, frames)) in [("read-only", kept), ("past the end of", missed)] {
            assert!(text.contains(what), "{text}");
            let made = place("allocated make_buffer", "buffers are made here");
            assert_eq!(frames[0], made, "{with:?}: {text}");
            assert_eq!(frames.len(), 2, "{with:?}: {frames:?}");
        }
        let asked = place("allocated main", "the kept buffer is asked for here");
        assert_eq!(kept.1[1], asked, "{with:?}");
        assert!(
            freed
                .0
                .contains("and freed after 2 launches, from clSVMAlloc"),
            "{}",
            freed.0
        );
        let made = place("allocated make_shared", "shared memory is made here");
        let gone = place("freed give_back", "shared memory is freed here");
        let main = |frame: &String| frame.contains(" main (");
        let [first, second, third, fourth] = freed.1.as_slice() else {
            panic!("{with:?}: {freed:?}");
        };
        assert_eq!((first, third), (&made, &gone), "{with:?}");
        assert!(main(second) && main(fourth), "{with:?}: {freed:?}");
        // Not unless it is asked for.
        let settings = [&[][..], &[("VISA_JIT_BACKTRACE", "0")]];
        // In a plain run one way with each library.
        let (from, every) = match (full(), with) {
            (true, _) => (0, 1),
            (false, With::Loader) => (0, 2),
            (false, _) => (1, 2),
        };
        for settings in settings.into_iter().skip(from).step_by(every) {
            let told = told_of_allocations(&program, settings);
            assert_eq!(told.len(), 3);
            assert!(told.iter().all(|(_, frames)| frames.is_empty()), "{told:?}");
        }
    }
}
