//! Runs OpenCL programs as the distribution and PyPI have them on the virtual GPU, and writes the table of `docs/clients.md`.
//!
//! [`CLIENTS`] is all there is: a program is asked for by name, what is not installed is named, and what fails has to be in
//! `known.txt`. A run of some programs leaves the others' lines of the table as they are. A short run, for CI, writes no table.

mod bench;
mod clblast;
mod darktable;
mod hashcat;
mod plain;
mod python;
mod table;

use bench::{Bench, Case};

/// A program, and how it is asked.
struct Client {
    name: &'static str,
    package: Package,
    /// What a full run runs, for the table.
    ran: &'static str,
    /// Part of short runs.
    short: bool,
    run: fn(&Bench) -> Result<Vec<Case>, String>,
}

/// Where a program comes from.
#[derive(Clone, Copy)]
enum Package {
    Debian(&'static str),
    /// With its own tests, from PyPI.
    Python(&'static str),
}

const CLIENTS: &[Client] = &[
    Client {
        name: "clinfo",
        package: Package::Debian("clinfo"),
        ran: "everything, nothing on standard error",
        short: true,
        run: plain::clinfo,
    },
    Client {
        name: "clpeak",
        package: Package::Debian("clpeak"),
        ran: "all tests in one run, at most an hour",
        short: true,
        run: plain::clpeak,
    },
    Client {
        name: "clblast-tests",
        package: Package::Debian("clblast-tests"),
        ran: "all routines, half to double and complex, at most 600 s a routine",
        short: false,
        run: clblast::run,
    },
    Client {
        name: "hashcat",
        package: Package::Debian("hashcat"),
        ran: "self-test and example of 60 fast modes, by a list of words, at most 600 s each",
        short: false,
        run: hashcat::run,
    },
    Client {
        name: "darktable-cli",
        package: Package::Debian("darktable"),
        ran: "an export with each of 10 modules, against its own CPU path",
        short: false,
        run: darktable::run,
    },
    Client {
        name: "piglit",
        package: Package::Debian("piglit"),
        ran: "`piglit run cl`, at most 60 s a program",
        short: true,
        run: plain::piglit,
    },
    Client {
        name: "PyOpenCL's tests",
        package: Package::Python("pyopencl"),
        ran: "all files, at most 120 s a test",
        short: true,
        run: python::pyopencl,
    },
    Client {
        name: "loopy's tests",
        package: Package::Python("loopy"),
        ran: "files that need no Fortran compiler, but two tests; at most 600 s a test",
        short: false,
        run: python::loopy,
    },
];

/// Runs the programs that are named, or all. With `--short` those of CI, and with `--install` gets PyPI's first.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let (options, names): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|a| a.starts_with("--"));
    if let Some(odd) = options
        .iter()
        .find(|o| !["--short", "--install"].contains(&o.as_str()))
    {
        return Err(format!(
            "unknown option {odd}; there are --short and --install"
        ));
    }
    let asked = |option: &str| options.iter().any(|o| *o == option);
    if let Some(odd) = names.iter().find(|n| CLIENTS.iter().all(|c| c.name != **n)) {
        let all: Vec<&str> = CLIENTS.iter().map(|c| c.name).collect();
        return Err(format!("no client {odd}; there are {}", all.join(", ")));
    }
    let bench = Bench::new(asked("--short"))?;
    let mut bad = Vec::new();
    let chosen = CLIENTS.iter().filter(|c| match names.as_slice() {
        [] => c.short || !bench.short,
        some => some.iter().any(|n| *n == c.name),
    });
    for client in chosen {
        if asked("--install")
            && let Package::Python(package) = client.package
            && let Err(e) = python::install(&bench, package)
        {
            println!("{}: cannot be installed: {e}", client.name);
            continue;
        }
        let Some(version) = bench.version(client.package) else {
            println!("{}: not installed", client.name);
            continue;
        };
        println!("{} {version}:", client.name);
        let cases = (client.run)(&bench)?;
        bad.extend(judge(client.name, &cases));
        if !bench.short {
            table::write(client.name, &version, client.ran, &cases)?;
        }
    }
    match bad.as_slice() {
        [] => Ok(()),
        some => Err(format!("failed, and not in known.txt: {}", some.join(", "))),
    }
}

/// Prints what the cases came to, and returns those that fail and are not known to.
fn judge(client: &str, cases: &[Case]) -> Vec<String> {
    let mut bad = Vec::new();
    for case in cases {
        let why = known(client, &case.name);
        match (case.failed > 0, why) {
            (true, Some(why)) => println!("  {}: fails as known: {why}", case.name),
            (true, None) => bad.push(format!("{client} {}", case.name)),
            (false, Some(_)) => println!("  {}: passes now; take it out of known.txt", case.name),
            (false, None) => {}
        }
    }
    let (passed, failed, skipped) = bench::sums(cases);
    println!("  {passed} passed, {failed} failed, {skipped} skipped");
    bad
}

/// Why a case fails, if it is known to: lines `client | case | whose: why`.
fn known(client: &str, case: &str) -> Option<&'static str> {
    let lines = include_str!("known.txt").lines();
    lines.filter(|l| !l.starts_with('#')).find_map(|line| {
        let mut cells = line.splitn(3, '|').map(str::trim);
        (cells.next() == Some(client) && cells.next() == Some(case)).then(|| cells.next())?
    })
}
