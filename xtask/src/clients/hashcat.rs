//! `hashcat`: its self-test, and the example of its own documentation, for many modes.

use super::bench::{Bench, Case};

/// Modes of a full run: the first that need no long chain of hashes.
const MODES: usize = 60;

struct Mode {
    number: String,
    hash: String,
    password: String,
    /// hashcat tests the mode before it uses it.
    self_test: bool,
}

/// A mode passes if its self-test did, where it has one, and it found the password among others.
pub fn run(bench: &Bench) -> Result<Vec<Case>, String> {
    let examples = bench.run(
        "hashcat-examples",
        60,
        false,
        &bench.folder,
        &["hashcat", "--example-hashes"],
    )?;
    let modes = modes(&examples.out);
    modes.iter().take(MODES).map(|m| crack(bench, m)).collect()
}

/// Reads blocks of lines `Name.....: value`.
fn modes(text: &str) -> Vec<Mode> {
    let blocks = text.split("Hash mode #").skip(1);
    let modes = blocks.filter_map(|block| {
        let value = |name: &str| {
            let lines = block.lines().filter_map(|l| l.split_once(": "));
            let mut values = lines.filter(|(n, _)| n.trim().trim_end_matches('.') == name);
            values.next().map(|(_, v)| v.to_owned())
        };
        let plain = value("Example.Hash.Format")? == "plain" && value("Slow.Hash")? == "No";
        plain.then_some(())?;
        Some(Mode {
            number: block.lines().next()?.trim().to_owned(),
            hash: value("Example.Hash")?,
            password: value("Example.Pass")?,
            self_test: value("Self.Test.Enabled")? == "Yes",
        })
    });
    modes.collect()
}

fn crack(bench: &Bench, mode: &Mode) -> Result<Case, String> {
    bench.write("hash.txt", format!("{}\n", mode.hash))?;
    bench.write(
        "words.txt",
        format!("wrong\nnothing\n{}\nother\n", mode.password),
    )?;
    let command = [
        "hashcat",
        "-m",
        &mode.number,
        "-a",
        "0",
        "--force",
        "-D",
        "2",
        "--potfile-disable",
        "--restore-disable",
        // Small launches: the device is a CPU.
        "-u",
        "16",
        "-n",
        "1",
        "-T",
        "32",
        "hash.txt",
        "words.txt",
    ];
    let said = bench.exec(&format!("hashcat-{}", mode.number), 600, &command)?;
    let all = said.both();
    let tested = (!mode.self_test || all.contains("Finished self-test"))
        && !all.contains("self-test failed");
    let passed = tested && said.fine() && all.contains("Status...........: Cracked");
    if !passed {
        println!("  mode {} failed", mode.number);
    }
    Ok(Case::one(mode.number.clone(), passed))
}
