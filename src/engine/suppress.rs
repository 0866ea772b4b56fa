//! Findings of checks that are known and left out of reports.

use std::fmt;

use super::fault::FaultRecord;
use crate::lines::SourceLine;

/// Kinds that a rule can name: those of [`FaultRecord::kind_name`], and `all`.
const KINDS: [&str; 6] = ["bounds", "buffer", "barrier", "race", "init", "all"];

/// Which findings are left out of a report, by kind, and by kernel, file or line.
///
/// A rule is `KIND` or `KIND:WHERE`. KIND is `bounds`, `buffer`, `barrier`, `race`, `init` or `all`. WHERE is the name of a kernel, a source
/// file, or one of these with a line: `FILE:LINE` of the source, `KERNEL:LINE` of the vISA text. A file may be named by the end of its
/// path. The findings of an instruction are left out if it is in that place; of a race, this is the later access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// `None` for all.
    kind: Option<&'static str>,
    place: Option<Where>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Where {
    /// A kernel, or a file.
    name: String,
    line: Option<u32>,
}

/// A line that is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: `{rule}` is not a suppression rule: {why}")]
pub struct SuppressionError {
    /// Of the text, from 1.
    pub line: usize,
    /// What it says.
    pub rule: String,
    /// What is wrong.
    pub why: &'static str,
}

impl Suppressions {
    /// Reads rules, one on a line. Empty lines, and those that begin with `#`, do not count.
    ///
    /// # Errors
    /// For the first line that is no rule.
    pub fn parse(text: &str) -> Result<Suppressions, SuppressionError> {
        let lines = (1..).zip(text.lines().map(str::trim));
        let rules = lines.filter(|(_, rule)| !rule.is_empty() && !rule.starts_with('#'));
        let rules = rules.map(|(line, rule)| {
            Rule::parse(rule).map_err(|why| SuppressionError {
                line,
                rule: rule.to_owned(),
                why,
            })
        });
        Ok(Suppressions(rules.collect::<Result<_, _>>()?))
    }

    /// True if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a finding is left out.
    pub fn cover(&self, fault: &FaultRecord) -> bool {
        let source = fault.source.as_ref();
        self.covers((fault.kind_name(), &fault.kernel), (fault.line, source))
    }

    /// Whether findings of a kind are left out at an instruction of a kernel: its line in the vISA text, and in the source.
    pub(super) fn covers(
        &self,
        (kind, kernel): (&str, &str),
        (line, source): (u32, Option<&SourceLine>),
    ) -> bool {
        self.0.iter().any(|rule| {
            let place = |place: &Where| place.covers(kernel, line, source);
            rule.kind.is_none_or(|k| k == kind) && rule.place.as_ref().is_none_or(place)
        })
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Rule, &'static str> {
        let (kind, place) = match text.split_once(':') {
            Some((kind, place)) => (kind, Some(place)),
            None => (text, None),
        };
        let kind = KINDS.into_iter().find(|k| *k == kind);
        let kind = kind.ok_or(
            "a rule is KIND or KIND:WHERE, and KIND is bounds, buffer, barrier, race, init or all",
        )?;
        Ok(Rule {
            kind: (kind != "all").then_some(kind),
            place: place.map(Where::parse).transpose()?,
        })
    }
}

impl Where {
    fn parse(text: &str) -> Result<Where, &'static str> {
        let (name, line) = match text.rsplit_once(':') {
            Some((name, line)) => (
                name,
                Some(
                    line.parse()
                        .map_err(|_| "what follows the last colon is not a line number")?,
                ),
            ),
            None => (text, None),
        };
        if name.is_empty() {
            return Err("WHERE is a kernel or a source file, and may have a line after a colon");
        }
        Ok(Where {
            name: name.to_owned(),
            line,
        })
    }

    fn covers(&self, kernel: &str, line: u32, source: Option<&SourceLine>) -> bool {
        let at = |there: u32| self.line.is_none_or(|line| line == there);
        let is_file = |file: &str| {
            let before = file.strip_suffix(&self.name);
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        (kernel == self.name && at(line)) || source.is_some_and(|s| is_file(&s.file) && at(s.line))
    }
}

impl fmt::Display for Suppressions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.0 {
            f.write_str(rule.kind.unwrap_or("all"))?;
            if let Some(place) = &rule.place {
                write!(f, ":{}", place.name)?;
                if let Some(line) = place.line {
                    write!(f, ":{line}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(rules: &str, kind: &str, line: u32) -> bool {
        let source = SourceLine {
            file: "src/a.cl".to_owned(),
            line,
        };
        let rules = Suppressions::parse(rules).unwrap();
        rules.covers((kind, "sum"), (100 + line, Some(&source)))
    }

    #[test]
    fn rules_name_kinds_and_places() {
        for (rules, kind, line, covered) in [
            ("", "race", 1, false),
            ("# all\n\n", "race", 1, false),
            ("all", "race", 1, true),
            ("race", "race", 1, true),
            ("race", "buffer", 1, false),
            ("race:sum", "race", 1, true),
            ("race:su", "race", 1, false),
            ("race:a.cl", "race", 1, true),
            ("race:src/a.cl", "race", 1, true),
            ("race:.cl", "race", 1, false),
            ("race:a.cl:7", "race", 7, true),
            ("race:a.cl:7", "race", 8, false),
            ("race:sum:108", "race", 8, true),
            ("race:sum:8", "race", 8, false),
            ("init\n  all:a.cl:8  \n", "race", 8, true),
        ] {
            assert_eq!(covers(rules, kind, line), covered, "{rules} {kind} {line}");
        }
    }

    #[test]
    fn what_is_no_rule_is_named() {
        for (text, line) in [
            ("rase:sum", 1),
            ("race\nrace:", 2),
            ("race:a.cl:x", 1),
            ("#\n\n:sum", 3),
        ] {
            let error = Suppressions::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.to_string().contains(&error.rule), "{error}");
        }
    }

    #[test]
    fn rules_are_text_again() {
        let text = "all\nrace:sum\ninit:a.cl:7\n";
        let rules = Suppressions::parse(text).unwrap();
        assert_eq!(rules.to_string(), text);
        assert!(!rules.is_empty());
    }
}
