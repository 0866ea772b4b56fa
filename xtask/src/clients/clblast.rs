//! CLBlast's tests: a program a routine, which tests every precision against CBLAS.

use std::fs;

use super::bench::{Bench, Case};

pub fn run(bench: &Bench) -> Result<Vec<Case>, String> {
    let programs = fs::read_dir("/usr/bin").map_err(|e| format!("/usr/bin: {e}"))?;
    let names = programs.filter_map(|p| p.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|n| n.starts_with("clblast_test_")).collect();
    names.sort();
    names.iter().map(|name| routine(bench, name)).collect()
}

/// A routine that does not end has failed once more.
fn routine(bench: &Bench, name: &str) -> Result<Case, String> {
    let said = bench.exec(name, 600, &[name])?;
    // `36 test(s) passed`, once a precision. An escape sequence for a colour may stand in front.
    let sum = |verdict: &str| -> usize {
        let end = format!(" test(s) {verdict}");
        let lines = said.out.lines().filter_map(|l| l.split_once(&end));
        lines
            .filter_map(|(number, _)| number.split_whitespace().last()?.parse::<usize>().ok())
            .sum()
    };
    let (passed, failed) = (sum("passed"), sum("failed"));
    let ended = said.fine() && passed > 0;
    let case = Case {
        name: name.trim_start_matches("clblast_test_").to_owned(),
        passed,
        failed: failed + usize::from(!ended && failed == 0),
        skipped: sum("skipped"),
    };
    println!("  {}: {passed} passed, {} failed", case.name, case.failed);
    Ok(case)
}
