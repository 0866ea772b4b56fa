//! Every instruction that computes, in every form, on engines that must agree bit for bit.
//!
//! `OPCODE=mnemonic` restricts the sweep to one row, `FORMS=n` changes the number of instructions a row.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use visa_fuzzing::engines::{ENGINES, Engine, named};
use visa_fuzzing::sweep::kernel::{Setting, case};
use visa_fuzzing::sweep::{Effort, elsewhere, machines, row, rows, running};
use visa_test_common::Rng;

fn sweep(engines: &[Engine], effort: Effort) {
    let start = Instant::now();
    let filter = std::env::var("OPCODE").ok();
    let mut rows = rows();
    rows.retain(|r| filter.as_ref().is_none_or(|f| r.opcode.mnemonic() == f));
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let mut machines = machines(engines);
                while let Some(r) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let tally = row(r, effort, &mut machines);
                    done.lock().unwrap().push((r.opcode, tally));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(op, _)| *op);
    println!(
        "{:10} {:>11} {:>8} {:>8} {:>8} mismatches",
        "opcode", "types", "forms", "cases", "refused"
    );
    let mut failures = Vec::new();
    let mut cases = 0;
    for (op, t) in &done {
        let types = format!("{}/{}", t.types.1, t.types.0);
        println!(
            "{:10} {types:>11} {:>8} {:>8} {:>8} {}",
            op.mnemonic(),
            t.instructions,
            t.cases,
            t.refused,
            t.mismatches.len()
        );
        for why in &t.reasons {
            println!("           refused: {why}");
        }
        cases += t.cases;
        let shown = if filter.is_some() { 20 } else { 3 };
        failures.extend(
            t.mismatches
                .iter()
                .take(shown)
                .map(|m| format!("{}: {m}", op.mnemonic())),
        );
        if t.cases < effort.instructions * effort.launches {
            failures.push(format!("{}: only {} cases", op.mnemonic(), t.cases));
        }
    }
    let names: Vec<&str> = engines.iter().map(|e| e.name).collect();
    if filter.is_none() {
        print_others();
    }
    println!(
        "{} opcodes, {cases} cases on {}, {:.1} s",
        done.len(),
        names.join(", "),
        start.elapsed().as_secs_f64()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Rows that run and are not in the sweep, by where they are tested.
fn print_others() {
    let swept = rows();
    let mut others = BTreeMap::<_, Vec<&str>>::new();
    for row in running().filter(|r| !swept.iter().any(|s| s.opcode == r.opcode)) {
        let place = elsewhere(row).unwrap_or("nowhere");
        others.entry(place).or_default().push(row.opcode.mnemonic());
    }
    for (place, names) in others {
        println!("in {place}: {}", names.join(" "));
    }
}

/// No row that runs is left out without a word.
#[test]
fn every_row_that_runs_is_tested_somewhere() {
    let swept = rows();
    for row in running() {
        let here = swept.iter().any(|s| s.opcode == row.opcode);
        let there = elsewhere(row).is_some();
        assert!(here != there, "{}", row.opcode.mnemonic());
    }
}

/// Rows whose destination may be an address register are tried with one.
#[test]
fn moves_into_address_registers_are_drawn() {
    let mut rng = Rng::new(5);
    let among: Vec<_> = rows().into_iter().filter(|r| r.dst.address()).collect();
    assert!(!among.is_empty());
    for row in among {
        let types = visa_fuzzing::sweep::inst::types(row);
        let into = (0..500).any(|_| {
            let setting = Setting::any(&mut rng, row);
            let at = rng.below(types.len());
            let case = case(&mut rng, row, &types[at], setting);
            let mut lines = case.iter().flat_map(|c| &c.lines);
            lines.any(|l| l.starts_with(row.opcode.mnemonic()) && l.contains(" A3(0)<1> E_"))
        });
        assert!(into, "{}", row.opcode.mnemonic());
    }
}

#[test]
fn engines_agree_on_every_instruction() {
    let forms = std::env::var("FORMS").ok().and_then(|n| n.parse().ok());
    let effort = Effort {
        instructions: forms.unwrap_or(visa_test_common::share(128, 128) as usize),
        launches: 8,
    };
    sweep(&named(&["interp", "cranelift"]), effort);
}

#[test]
#[cfg(feature = "llvm-codegen")]
fn llvm_agrees_on_every_instruction() {
    let forms = std::env::var("FORMS").ok().and_then(|n| n.parse().ok());
    let effort = Effort {
        instructions: forms.unwrap_or(12),
        launches: 8,
    };
    sweep(&named(&["interp", "llvm"]), effort);
}

#[test]
#[ignore = "minutes: more forms on every engine"]
fn every_engine_agrees_on_every_instruction() {
    let effort = Effort {
        instructions: 4096,
        launches: 8,
    };
    let mut engines = named(&["interp"]);
    engines.extend(ENGINES.iter().filter(|e| e.name != "interp"));
    sweep(&engines, effort);
}
