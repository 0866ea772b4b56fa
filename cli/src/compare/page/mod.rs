//! `--html`: the comparison as one page, which asks for nothing from outside and can be sent around.
//!
//! It holds the table with a plot of run and compile times, which need no script, and the code of a few strategies: vISA,
//! IR and machine code side by side, where the line under the pointer lights up what came from the same line of vISA in
//! the others.
//!
//! Guarantees: text of the kernel and of the command line is text on the page, whatever it says; the size is bounded by
//! [`MAX_SHOWN`], [`MAX_ROWS`] and [`MAX_TEXT`](crate::html::MAX_TEXT), and what is left out is said.

mod plot;

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::Candidate;
use super::table::{LEGEND, Row, Table};
use crate::asm;
use crate::exit::{Exit, Failure};
use crate::html::{HEAD, escaped, shortened};
use visa_jit::lines::SourceMap;

/// Strategies whose code is on the page: the baseline and the fastest others.
const MAX_SHOWN: usize = 8;
/// Lines of a listing.
const MAX_ROWS: usize = 5_000;

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Lines with the lines of vISA that they came from.
#[derive(Serialize)]
struct Listing {
    rows: Vec<(u32, String)>,
    /// Lines that are not on the page.
    left: usize,
}

#[derive(Serialize)]
struct Shown {
    name: String,
    launches: &'static str,
    /// Numbers of listings.
    ssa: usize,
    machine: usize,
}

/// What the page's script reads.
#[derive(Serialize)]
struct Data {
    visa: Listing,
    listings: Vec<Listing>,
    strategies: Vec<Shown>,
}

/// The page; `source` is the kernel's text, `about` says what ran, `reference` what it was compared with.
pub fn page(
    table: &Table,
    candidates: &[Candidate],
    source: &str,
    about: &str,
    reference: &str,
) -> Result<String, Failure> {
    let data = data(table, candidates, source);
    let data = serde_json::to_string(&data).map_err(|error| Failure {
        exit: Exit::Internal,
        message: error.to_string(),
    })?;
    // In a script element only `<` could end it or start a comment.
    let data = data.replace('<', "\\u003c");
    let kernel = escaped(&table.kernel);
    let mut out = format!(
        "{HEAD}\
         <title>visa-jit compare: {kernel}</title>\n<style>\n{CSS}</style>\n\
         <h1>Strategies for <code>{kernel}</code></h1>\n<p>{}</p>\n<p>{}</p>\n",
        escaped(about),
        escaped(&verdict(table, reference)),
    );
    plot::write(&mut out, table);
    counts(&mut out, table);
    refused(&mut out, table);
    let more = table.strategies.len().saturating_sub(MAX_SHOWN);
    let few = if more == 0 {
        String::new()
    } else {
        format!(" The baseline and the fastest are here, {more} others are not.")
    };
    let _ = write!(
        out,
        "<h2>Code</h2>\n<p>Point at a line to light up what came from the same line of vISA; click to keep it and bring \
         the others into view.{few}</p>\n\
         <noscript><p class=\"wrong\">The listings need JavaScript.</p></noscript>\n\
         <div id=\"choose\"></div>\n<div id=\"panes\"></div>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n</html>\n",
    );
    Ok(out)
}

/// Whether the results are right.
fn verdict(table: &Table, reference: &str) -> String {
    let wrong = table.strategies.iter().filter(|row| !row.same).count();
    match wrong {
        0 => format!("All results are what {reference} gives."),
        1 => format!("WRONG: the results of one strategy are not what {reference} gives."),
        n => format!("WRONG: the results of {n} strategies are not what {reference} gives."),
    }
}

/// The table of counts.
fn counts(out: &mut String, table: &Table) {
    out.push_str("<h2>Code in numbers</h2>\n<div class=\"wide\"><table>\n<tr><th>strategy</th>");
    for count in Row::COUNTS {
        let _ = write!(out, "<th class=\"number\">{}</th>", escaped(count.name));
    }
    out.push_str("</tr>\n");
    for row in &table.strategies {
        let _ = write!(out, "<tr><td>{}</td>", escaped(&row.strategy));
        for count in Row::COUNTS {
            let _ = write!(out, "<td class=\"number\">{}</td>", (count.of)(row));
        }
        out.push_str("</tr>\n");
    }
    let _ = writeln!(out, "</table></div>\n<p>{}</p>", escaped(LEGEND));
}

fn refused(out: &mut String, table: &Table) {
    if table.refused.is_empty() {
        return;
    }
    out.push_str("<h2>Not possible</h2>\n<ul>\n");
    for (name, why) in &table.refused {
        let _ = writeln!(out, "<li><b>{}</b>: {}</li>", escaped(name), escaped(why));
    }
    out.push_str("</ul>\n");
}

/// Numbers of the strategies whose code is shown: the baseline, then the others as they are fast.
fn shown(table: &Table) -> Vec<usize> {
    let mut order: Vec<usize> = (0..table.strategies.len()).collect();
    let key = |n: &usize| {
        let row = table.strategies.get(*n);
        let baseline = row.is_some_and(|row| row.strategy == table.baseline);
        (!baseline, row.map_or(f64::INFINITY, |row| row.run_ms))
    };
    order.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    order.truncate(MAX_SHOWN);
    order
}

fn data(table: &Table, candidates: &[Candidate], source: &str) -> Data {
    let map = candidates.first().map(|c| c.made.object().lines.source());
    let visa = visa(source, map.unwrap_or(&SourceMap::default()));
    let mut listings = Listings::default();
    let mut strategies = Vec::new();
    for candidate in shown(table).into_iter().filter_map(|n| candidates.get(n)) {
        let made = &candidate.made;
        let ssa = made.ssa_lines().into_iter().map(|l| (l.line, l.text));
        let machine = asm::rows(made.object()).unwrap_or_default().into_iter();
        let machine = machine.map(|row| (row.line, format!("{:06x}  {}", row.at, row.text)));
        strategies.push(Shown {
            name: candidate.choice.name.clone(),
            launches: made.launches(),
            ssa: listings.number(ssa),
            machine: listings.number(machine),
        });
    }
    Data {
        visa: listing(visa.into_iter()),
        listings: listings.all,
        strategies,
    }
}

/// Lines of vISA, each that begins something else with the place in the source that it came from.
fn visa(source: &str, map: &SourceMap) -> Vec<(u32, String)> {
    let mut last = None;
    let lines = (1..).zip(source.lines()).map(|(number, text)| {
        let from = map.at(number);
        let new = from != last;
        last = from;
        match from.filter(|_| new) {
            Some((file, line)) => (number, format!("{text}  ; {file}:{line}")),
            None => (number, text.to_owned()),
        }
    });
    lines.collect()
}

/// Listings, each once: strategies that differ in the code generator alone have the same IR.
#[derive(Default)]
struct Listings {
    all: Vec<Listing>,
    known: HashMap<Vec<(u32, String)>, usize>,
}

impl Listings {
    fn number(&mut self, rows: impl Iterator<Item = (u32, String)>) -> usize {
        let made = listing(rows);
        if let Some(&n) = self.known.get(&made.rows) {
            return n;
        }
        let n = self.all.len();
        self.known.insert(made.rows.clone(), n);
        self.all.push(made);
        n
    }
}

fn listing(rows: impl Iterator<Item = (u32, String)>) -> Listing {
    let mut rows = rows.map(|(line, text)| (line, shortened(&text)));
    let kept = rows.by_ref().take(MAX_ROWS).collect();
    Listing {
        rows: kept,
        left: rows.count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_where_they_came_from() {
        let map = SourceMap::new([(2, Some(("k.cl", 7))), (4, None)]);
        let lines = visa("a\nb\nc\nd", &map);
        let texts: Vec<&str> = lines.iter().map(|l| l.1.as_str()).collect();
        assert_eq!(texts, ["a", "b  ; k.cl:7", "c", "d"]);
    }

    #[test]
    fn listings_are_bounded() {
        let rows = (0..7_000).map(|n| (n, "x".repeat(1_000)));
        let made = listing(rows);
        assert_eq!((made.rows.len(), made.left), (5_000, 2_000));
        assert!(made.rows[0].1.ends_with("x…"));
    }

    #[test]
    fn equal_listings_are_there_once() {
        let mut listings = Listings::default();
        let rows = |text: &str| std::iter::once((1, text.to_owned()));
        let numbers = ["a", "b", "a"].map(|text| listings.number(rows(text)));
        assert_eq!(numbers, [0, 1, 0]);
    }
}
