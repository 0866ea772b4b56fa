//! The table of `docs/clients.md`, between two comments.

use std::fs;
use std::path::Path;

use super::bench::{Case, sums};

const BEGIN: &str =
    "<!-- clients: the table from here is written by `cargo run -p xtask -- clients` -->\n";
const END: &str = "<!-- clients: to here -->\n";
const HEAD: &str = "| client | version | what ran | passed | failed |\n|---|---|---|---|---|\n";
/// More failing cases than these are only counted.
const NAMED: usize = 12;

/// Puts in the line of a client, in place of the one there was.
pub fn write(client: &str, version: &str, ran: &str, cases: &[Case]) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/clients.md");
    let said = |e: std::io::Error| format!("{}: {e}", path.display());
    let text = fs::read_to_string(&path).map_err(said)?;
    let new = with_line(&text, client, &line(client, version, ran, cases))
        .ok_or_else(|| format!("{}: the comments around the table are gone", path.display()))?;
    fs::write(&path, new).map_err(said)
}

fn line(client: &str, version: &str, ran: &str, cases: &[Case]) -> String {
    let (passed, failed, skipped) = sums(cases);
    let mut cells = format!("{passed} of {}", passed + failed);
    if skipped > 0 {
        cells += &format!(", {skipped} skipped");
    }
    let bad: Vec<String> = cases
        .iter()
        .filter(|c| c.failed > 0)
        .map(|c| format!("`{}`", c.name))
        .collect();
    let names = match bad.len() {
        0 => "0".to_owned(),
        n if n <= NAMED => format!("{failed}: {}", bad.join(", ")),
        _ => failed.to_string(),
    };
    format!("| {client} | {version} | {ran} | {cells} | {names} |\n")
}

/// The text with this line for the client; others keep theirs.
fn with_line(text: &str, client: &str, line: &str) -> Option<String> {
    let (front, rest) = text.split_once(BEGIN)?;
    let (table, back) = rest.split_once(END)?;
    let start = format!("| {client} |");
    let mut lines: Vec<String> = table.lines().skip(2).map(|l| format!("{l}\n")).collect();
    match lines.iter_mut().find(|l| l.starts_with(&start)) {
        Some(old) => line.clone_into(old),
        None => lines.push(line.to_owned()),
    }
    Some(format!("{front}{BEGIN}{HEAD}{}{END}{back}", lines.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_the_place_of_the_old() {
        let row = |name: &str, passed| {
            line(
                name,
                "1",
                "all",
                &[Case::one("a", passed), Case::one("b", true)],
            )
        };
        let text = format!(
            "front\n{BEGIN}{HEAD}{}{}{END}back\n",
            row("x", true),
            row("y", true)
        );
        let new = with_line(&text, "x", &row("x", false)).expect("a table");
        let expected = "| x | 1 | all | 1 of 2 | 1: `a` |\n| y | 1 | all | 2 of 2 | 0 |\n";
        assert_eq!(new, format!("front\n{BEGIN}{HEAD}{expected}{END}back\n"));
        let more = with_line(&new, "z", &row("z", true)).expect("a table");
        assert_eq!(more.replace(&row("z", true), ""), new);
        assert_eq!(with_line("no table", "x", ""), None);
    }
}
