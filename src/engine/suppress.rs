//! Findings of checks that are known and left out of reports.

use std::fmt;

use super::fault::{FaultArgument, FaultRecord};
use crate::lines::SourceLine;

/// Kinds that a rule can name: those of [`FaultRecord::kind_name`], and `all`.
const KINDS: [&str; 8] = [
    "bounds",
    "buffer",
    "read-only",
    "alignment",
    "barrier",
    "race",
    "init",
    "all",
];

/// Which findings are left out of a report, by kind, and by kernel, file or line, and by argument.
///
/// A rule is `KIND` or `KIND:WHERE`, and may end with `@ARGUMENT`. KIND is `bounds`, `buffer`, `read-only`, `alignment`, `barrier`, `race`, `init` or `all`. WHERE is the name of a kernel, a source
/// file, or one of these with a line: `FILE:LINE` of the source, `KERNEL:LINE` of the vISA text. A file may be named by the end of its
/// path. The findings of an instruction are left out if it is in that place; of a race, this is the later access. ARGUMENT is the name or the
/// number of the argument that the program passed the buffer by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// `None` for all.
    kind: Option<&'static str>,
    place: Option<Where>,
    argument: Option<Which>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Which {
    Index(u32),
    Name(String),
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

    /// Whether a rule asks for an argument.
    pub(super) fn name_arguments(&self) -> bool {
        self.0.iter().any(|rule| rule.argument.is_some())
    }

    /// Whether a finding is left out.
    pub fn cover(&self, fault: &FaultRecord) -> bool {
        let (source, argument) = (fault.source.as_ref(), fault.argument.as_ref());
        self.covers(
            (fault.kind_name(), &fault.kernel),
            (fault.line, source),
            argument,
        )
    }

    /// Whether findings of a kind are left out at an instruction of a kernel: its line in the vISA text, and in the source.
    pub(super) fn covers(
        &self,
        (kind, kernel): (&str, &str),
        (line, source): (u32, Option<&SourceLine>),
        argument: Option<&FaultArgument>,
    ) -> bool {
        self.0.iter().any(|rule| {
            let place = |place: &Where| place.covers(kernel, line, source);
            let meant = |which: &Which| argument.is_some_and(|argument| which.is(argument));
            rule.kind.is_none_or(|k| k == kind)
                && rule.place.as_ref().is_none_or(place)
                && rule.argument.as_ref().is_none_or(meant)
        })
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Rule, &'static str> {
        let (text, argument) = match text.rsplit_once('@') {
            // Else it belongs to the name of a file.
            Some((before, which)) if !which.contains(['/', '.', ':']) => {
                (before, Some(Which::parse(which)?))
            }
            _ => (text, None),
        };
        let (kind, place) = match text.split_once(':') {
            Some((kind, place)) => (kind, Some(place)),
            None => (text, None),
        };
        let kind = KINDS.into_iter().find(|k| *k == kind);
        let kind = kind.ok_or(
            "a rule is KIND or KIND:WHERE, and KIND is bounds, buffer, read-only, alignment, barrier, race, init or all",
        )?;
        Ok(Rule {
            kind: (kind != "all").then_some(kind),
            place: place.map(Where::parse).transpose()?,
            argument,
        })
    }
}

impl Which {
    fn parse(text: &str) -> Result<Which, &'static str> {
        let name = |c: char| c.is_alphanumeric() || c == '_';
        if text.is_empty() || !text.chars().all(name) {
            return Err("what follows @ is not the name or the number of an argument");
        }
        Ok(match text.parse() {
            Ok(index) => Which::Index(index),
            Err(_) => Which::Name(text.to_owned()),
        })
    }

    fn is(&self, argument: &FaultArgument) -> bool {
        match self {
            Which::Index(index) => *index == argument.index,
            Which::Name(name) => *name == argument.name,
        }
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
            match &rule.argument {
                None => {}
                Some(Which::Index(index)) => write!(f, "@{index}")?,
                Some(Which::Name(name)) => write!(f, "@{name}")?,
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
        let argument = FaultArgument {
            index: 2,
            name: "out".to_owned(),
        };
        let at = (100 + line, Some(&source));
        let known = rules.covers((kind, "sum"), at, Some(&argument));
        // Rules that name no argument do not ask for it.
        let unknown = rules.covers((kind, "sum"), at, None);
        assert_eq!(unknown, known && !rules.name_arguments());
        known
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
            ("race@out", "race", 1, true),
            ("race@2", "race", 1, true),
            ("race@in", "race", 1, false),
            ("race@1", "race", 1, false),
            ("buffer@out", "race", 1, false),
            ("race:sum@out", "race", 1, true),
            ("race:other@out", "race", 1, false),
            ("all:a.cl:7@2", "race", 7, true),
            ("all:a.cl:7@2", "race", 8, false),
            ("race:x@y/a.cl", "race", 1, false),
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
            ("race@", 1),
            ("race:sum@a-b", 1),
        ] {
            let error = Suppressions::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.to_string().contains(&error.rule), "{error}");
        }
    }

    #[test]
    fn rules_are_text_again() {
        let text = "all\nrace:sum\ninit:a.cl:7\nall@3\nrace:src@2/a.cl:7@out\n";
        let rules = Suppressions::parse(text).unwrap();
        assert_eq!(rules.to_string(), text);
        assert!(!rules.is_empty());
    }
}
