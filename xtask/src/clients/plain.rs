//! Programs that are only started, and say themselves how it went.

use std::fs;

use super::bench::{Bench, Case};

/// Passes if it says nothing on standard error.
pub fn clinfo(bench: &Bench) -> Result<Vec<Case>, String> {
    let said = bench.exec("clinfo", 60, &["clinfo"])?;
    let clean = said.fine() && said.err.is_empty() && said.out.contains("[visa-jit]");
    Ok(vec![Case::one("clinfo", clean)])
}

/// Tests of `clpeak` that are short and can be chosen.
const CLPEAK_SHORT: [&str; 2] = ["--kernel-latency", "--transfer-bandwidth"];
/// Seconds for all of its tests: they give a GPU's work.
const CLPEAK_SECONDS: u32 = 3600;

/// A test passes if it ends, and with numbers. A whole run has all tests; half precision cannot be chosen.
pub fn clpeak(bench: &Bench) -> Result<Vec<Case>, String> {
    if !bench.short {
        let said = bench.exec("clpeak", CLPEAK_SECONDS, &["clpeak"])?;
        let mut cases = clpeak_tests(&said.both());
        cases.push(Case::one("its end", said.fine()));
        return Ok(cases);
    }
    let cases = CLPEAK_SHORT.iter().map(|test| {
        let said = bench.exec(&format!("clpeak{test}"), 600, &["clpeak", test])?;
        let mut tests = clpeak_tests(&said.both()).into_iter().peekable();
        let passed = tests.peek().is_some() && tests.all(|t| t.passed > 0);
        Ok(Case::one(*test, said.fine() && passed))
    });
    cases.collect()
}

/// What `clpeak` says of a device, in front of the tests and in the same form.
const CLPEAK_DEVICE: [&str; 3] = ["Driver version", "Compute units", "Clock frequency"];

/// The tests in what `clpeak` prints: a heading each with rows `what : number`, or one line with the number. It ends with 0 too when a
/// call of the driver failed, and then prints words instead of numbers.
fn clpeak_tests(said: &str) -> Vec<Case> {
    let mut tests: Vec<(&str, Vec<bool>)> = Vec::new();
    for line in said.lines().filter(|l| l.starts_with("    ")) {
        let (name, value) = match line.split_once(" : ") {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (line.trim(), None),
        };
        // What takes no time that can be measured is infinitely fast.
        let number = value.map(|v| v == "inf" || v.starts_with(|c: char| c.is_ascii_digit()));
        match tests.last_mut() {
            Some((_, rows)) if line.starts_with("      ") => rows.extend(number),
            _ => tests.push((name, number.into_iter().collect())),
        }
    }
    let tests = tests
        .into_iter()
        .filter(|(name, _)| !CLPEAK_DEVICE.contains(name));
    tests
        .map(|(name, rows)| Case::one(name, !rows.is_empty() && rows.iter().all(|&r| r)))
        .collect()
}

/// Tests of a short run, as piglit's `-t` takes them.
const PIGLIT_SHORT: &str =
    "api|program@execute@(calls|sizeof|attributes|scalar-arithmetic-(int|float))";

/// Piglit's own verdicts.
pub fn piglit(bench: &Bench) -> Result<Vec<Case>, String> {
    let results = bench.folder.join("piglit");
    let _ = fs::remove_dir_all(&results);
    let path = results.display().to_string();
    let mut command = vec!["piglit", "run", "--no-concurrency", "--timeout", "60"];
    if bench.short {
        command.extend(["-t", PIGLIT_SHORT]);
    }
    command.extend(["cl", &path]);
    bench.exec("piglit", 6 * 3600, &command)?;
    let said = bench.run(
        "piglit-summary",
        60,
        false,
        &bench.folder,
        &["piglit", "summary", "console", &path],
    )?;
    // Lines `folder/name: verdict`, a test of a program each, then sums such as `pass: 3`.
    let cases = said.out.lines().filter_map(|line| {
        let (name, verdict) = line.rsplit_once(": ")?;
        let skip = verdict == "skip";
        let known = [
            "pass",
            "fail",
            "crash",
            "timeout",
            "warn",
            "skip",
            "incomplete",
        ];
        (name.contains('/') && known.contains(&verdict)).then(|| Case {
            name: name.to_owned(),
            passed: usize::from(verdict == "pass"),
            failed: usize::from(verdict != "pass" && !skip),
            skipped: usize::from(skip),
        })
    });
    let cases: Vec<Case> = cases.collect();
    if cases.is_empty() {
        return Err(
            "piglit ran nothing; target/clients/logs/piglit.log has what it said".to_owned(),
        );
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_clpeak_are_read() {
        let said = "\nPlatform: p\n  Device: d\n    Driver version  : 1 (x)\n    Compute units   : 8\n    Clock frequency : 1 MHz\n\n    \
            Bandwidth (GBPS)\n      float   : 31.46\n      float2  : inf\n\n    Half (GFLOPS)\n      half   : clErr\n\n    \
            No double precision support! Skipped\n\n    Integer compute (GIOPS)\n\n    Kernel launch latency : 2.72 us\n";
        let cases = clpeak_tests(said);
        let all: Vec<(&str, usize)> = cases.iter().map(|c| (c.name.as_str(), c.passed)).collect();
        let expected = [
            ("Bandwidth (GBPS)", 1),
            ("Half (GFLOPS)", 0),
            ("No double precision support! Skipped", 0),
            ("Integer compute (GIOPS)", 0),
            ("Kernel launch latency", 1),
        ];
        assert_eq!(all, expected);
        assert!(cases.iter().all(|c| c.passed + c.failed == 1));
    }
}
