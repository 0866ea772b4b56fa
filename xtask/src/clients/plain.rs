//! Programs that are only started, and say themselves how it went.

use std::fs;

use super::bench::{Bench, Case};

/// Passes if it says nothing on standard error.
pub fn clinfo(bench: &Bench) -> Result<Vec<Case>, String> {
    let said = bench.exec("clinfo", 60, &["clinfo"])?;
    let clean = said.fine() && said.err.is_empty() && said.out.contains("[visa-jit]");
    Ok(vec![Case::one("clinfo", clean)])
}

/// Tests of `clpeak` that can be chosen. Half precision is not among them.
const CLPEAK: [&str; 7] = [
    "--kernel-latency",
    "--transfer-bandwidth",
    "--global-bandwidth",
    "--compute-integer",
    "--compute-intfast",
    "--compute-sp",
    "--compute-dp",
];
/// Of these, the first are short.
const CLPEAK_SHORT: usize = 2;

/// A test passes if it ends, and with numbers.
pub fn clpeak(bench: &Bench) -> Result<Vec<Case>, String> {
    let count = if bench.short {
        CLPEAK_SHORT
    } else {
        CLPEAK.len()
    };
    let cases = CLPEAK.iter().take(count).map(|test| {
        let said = bench.exec(&format!("clpeak{test}"), 600, &["clpeak", test])?;
        let all = said.both();
        // It ends with 0 too when a call of the driver failed.
        let numbers = all.lines().any(|l| {
            let value = l.rsplit_once(" : ").map(|(_, v)| v.trim());
            value.is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()))
        });
        let skipped = all.contains("skipped") || all.contains("rror");
        Ok(Case::one(*test, said.fine() && numbers && !skipped))
    });
    cases.collect()
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
