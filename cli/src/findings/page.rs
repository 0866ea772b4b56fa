//! `--html`: one page with all findings and the sources, which asks for nothing from outside and can be sent around.
//!
//! Guarantees: text of sources, kernels and the command line is text on the page, whatever it says; the size is bounded by
//! [`MAX_FINDINGS`], [`MAX_LINES`], [`MAX_TEXT`](crate::html::MAX_TEXT) and [`MAX_SOURCE`], and what is left out is said.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::{Finding, RULES};
use crate::html::{HEAD, escaped, shortened};

const CSS: &str = include_str!("page.css");

/// Findings on a page.
const MAX_FINDINGS: usize = 1_000;
/// Lines of a source.
const MAX_LINES: usize = 20_000;
/// Bytes of a source that is read from disk.
const MAX_SOURCE: u64 = 4 << 20;

/// A source with the findings in it.
struct Source<'a> {
    file: &'a str,
    /// As the finding has it.
    given: Option<&'a Arc<str>>,
    text: Option<Arc<str>>,
    /// Findings by line, with their numbers on the page.
    lines: BTreeMap<u32, Vec<usize>>,
}

/// The page; `about` says what ran.
pub fn page(findings: &[Finding], about: &str) -> String {
    let shown = findings.get(..MAX_FINDINGS).unwrap_or(findings);
    let about = escaped(about);
    let mut out = format!(
        "{HEAD}<title>visa-jit: {about}</title>\n<style>\n{CSS}</style>\n<h1>What was found in kernels</h1>\n<p><code>{about}</code></p>\n"
    );
    if findings.is_empty() {
        out.push_str("<p>Nothing was found.</p>\n</html>\n");
        return out;
    }
    let sources = sources(shown);
    table(&mut out, shown, &sources);
    let more = findings.len().saturating_sub(shown.len());
    if more > 0 {
        let _ = writeln!(out, "<p>{more} more are not on this page.</p>");
    }
    for (number, source) in sources.iter().enumerate() {
        listing(&mut out, number, source, shown);
    }
    out.push_str("</html>\n");
    out
}

/// Sources, in the order in which findings name them. Two programs may have sources of the same name.
fn sources(findings: &[Finding]) -> Vec<Source<'_>> {
    let mut all: Vec<Source<'_>> = Vec::new();
    for (number, finding) in findings.iter().enumerate() {
        let Some(place) = &finding.source else {
            continue;
        };
        let given = finding.source_text.as_ref();
        let is_same = |source: &Source<'_>| source.file == place.file && source.given == given;
        let known = all.iter().position(is_same);
        let at = known.unwrap_or(all.len());
        if known.is_none() {
            all.push(Source {
                file: &place.file,
                given,
                text: given.cloned().or_else(|| on_disk(Path::new(&place.file))),
                lines: BTreeMap::new(),
            });
        }
        if let Some(source) = all.get_mut(at) {
            source.lines.entry(place.line).or_default().push(number);
        }
    }
    all
}

/// The text of a file, if there is one of moderate size. A relative name is no place: it may be a program's name for what it holds in memory.
pub fn on_disk(path: &Path) -> Option<Arc<str>> {
    if !path.is_absolute() {
        return None;
    }
    let about = std::fs::metadata(path).ok()?;
    let file = (about.is_file() && about.len() <= MAX_SOURCE).then_some(path)?;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(file).ok()?;
    file.take(MAX_SOURCE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into())
}

/// All findings, with links to their lines.
fn table(out: &mut String, findings: &[Finding], sources: &[Source<'_>]) {
    let lanes = |of: &Finding| of.count.max(1);
    for (kind, what) in RULES {
        let of_kind = || findings.iter().filter(|f| f.kind == kind);
        if of_kind().next().is_some() {
            let all: u64 = of_kind().fold(0, |sum, f| sum.saturating_add(lanes(f)));
            let places = of_kind().count();
            let _ = writeln!(
                out,
                "<p><b>{kind}</b>: {}: {all} at {places} instruction(s)</p>",
                escaped(what)
            );
        }
    }
    out.push_str(
        "<table>\n<tr><th>kind<th>kernel<th>line<th class=\"number\">count<th>what</tr>\n",
    );
    for (number, finding) in findings.iter().enumerate() {
        let at = sources.iter().position(|source| {
            let mut numbers = source.lines.values().flatten();
            numbers.any(|n| *n == number)
        });
        let source = at.and_then(|at| sources.get(at));
        let has_text = source.is_some_and(|source| source.text.is_some());
        let line = match (&finding.source, at) {
            (None, _) => format!("vISA {}", finding.line),
            (Some(place), Some(at)) if has_text => {
                let (file, line) = (escaped(&place.file), place.line);
                format!("<a href=\"#s{at}-{line}\">{file}:{line}</a>")
            }
            (Some(place), _) => escaped(&place.to_string()),
        };
        let _ = writeln!(
            out,
            "<tr id=\"f{number}\"><td>{}<td><code>{}</code><td>{line}<td class=\"number\">{}<td>{}</tr>",
            escaped(&finding.kind),
            escaped(&shortened(&finding.kernel)),
            lanes(finding),
            escaped(&shortened(&finding.text)),
        );
    }
    out.push_str("</table>\n");
}

/// A source, with marks at its lines.
fn listing(out: &mut String, number: usize, source: &Source<'_>, findings: &[Finding]) {
    let _ = writeln!(
        out,
        "<h2><code>{}</code></h2>",
        escaped(&shortened(source.file))
    );
    let Some(text) = &source.text else {
        out.push_str("<p>The text of this source is not known.</p>\n");
        return;
    };
    out.push_str("<div class=\"code\">\n");
    let mut lines = (1_u32..).zip(text.lines());
    for (line, text) in lines.by_ref().take(MAX_LINES) {
        let here = source.lines.get(&line);
        let class = if here.is_some() { " class=\"hot\"" } else { "" };
        let _ = writeln!(
            out,
            "<div{class} id=\"s{number}-{line}\"><b>{line}</b>{}</div>",
            escaped(&shortened(text))
        );
        for finding in here.into_iter().flatten().filter_map(|&n| findings.get(n)) {
            let _ = writeln!(
                out,
                "<div class=\"note\"><b>{}×</b>{}: {}</div>",
                finding.count.max(1),
                escaped(&finding.kind),
                escaped(&shortened(&finding.text))
            );
        }
    }
    out.push_str("</div>\n");
    let left = lines.count();
    if left > 0 {
        let _ = writeln!(out, "<p>{left} more lines are not on this page.</p>");
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding;
    use super::*;

    fn in_text(kind: &str, line: u32, text: &str) -> Finding {
        Finding {
            source_text: Some(text.into()),
            ..finding(kind, Some(("program.cl", line)))
        }
    }

    #[test]
    fn lines_with_findings_are_marked() {
        let text = "kernel void k() {\n    a[i < n] = 1;\n}\n";
        let page = page(&[in_text("race", 2, text), finding("init", None)], "x & y");
        for part in [
            "<code>x &amp; y</code>",
            "<a href=\"#s0-2\">program.cl:2</a>",
            "<div class=\"hot\" id=\"s0-2\"><b>2</b>    a[i &lt; n] = 1;</div>\n<div class=\"note\"><b>3×</b>race: what is wrong</div>",
            "<div id=\"s0-3\"><b>3</b>}</div>",
            "<td>vISA 7<td",
            "<b>race</b>: Accesses of the same bytes that no barrier orders: 3 at 1 instruction(s)",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }

    #[test]
    fn programs_whose_sources_have_one_name_are_apart() {
        let page = page(
            &[
                in_text("race", 1, "first"),
                in_text("race", 1, "second"),
                in_text("init", 1, "first"),
                finding("init", Some(("program.cl", 1))),
            ],
            "",
        );
        // The last one's is not known.
        assert_eq!(page.matches("<h2>").count(), 3);
        assert!(
            page.contains("id=\"s0-1\"><b>1</b>first")
                && page.contains("id=\"s1-1\"><b>1</b>second")
        );
        assert_eq!(page.matches("href=\"#s0-1\"").count(), 2);
    }

    #[test]
    fn nothing_found_is_said() {
        assert!(page(&[], "x").contains("Nothing was found."));
    }

    #[test]
    fn what_is_left_out_is_said() {
        let many = vec![finding("race", Some(("/nowhere/k.cl", 1))); MAX_FINDINGS + 5];
        let page = page(&many, "x");
        assert!(page.contains("5 more are not on this page"));
        assert!(page.contains("The text of this source is not known."));
        assert!(!page.contains("<a href"), "no line to go to");
        // Neither a directory nor a device is read.
        assert!(on_disk(Path::new("/")).is_none() && on_disk(Path::new("/dev/zero")).is_none());
    }
}
