//! Errors of the text front end: where, what was found, what was expected, what to do.

use crate::module::Pos;
use std::fmt;

/// Longest part of a source line that is shown.
const EXCERPT: usize = 120;

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is not vISA.
    Syntax,
    /// A name is unknown, defined twice, or of the wrong class.
    Name,
    /// A number is out of range.
    Value,
    /// Valid vISA that this project does not model.
    Unsupported,
    /// A bound of [`crate::limits`] is exceeded.
    Limit,
}

/// One error.
#[derive(Clone, Debug, PartialEq)]
pub struct TextError {
    /// Class of the error.
    pub kind: ErrorKind,
    /// Line and column of the first character at fault.
    pub pos: Pos,
    /// Characters at fault, at least 1.
    pub len: u32,
    /// The source line.
    pub line: String,
    /// What is wrong.
    pub message: String,
    /// What was expected there; empty if the message says it all.
    pub label: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Every error of a file, in order of position.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostics {
    /// Name of the file as given by the caller.
    pub file: String,
    /// The errors; never empty.
    pub errors: Vec<TextError>,
    /// The limit on errors was reached and reading stopped.
    pub stopped: bool,
}

impl TextError {
    /// Renders the error with its source line; `file` is shown in front of the position.
    fn render(&self, file: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, col, len) = self.excerpt();
        let number = self.pos.line.to_string();
        let gutter = " ".repeat(number.len());
        writeln!(f, "error: {}", self.message)?;
        writeln!(f, "{gutter}--> {file}:{}:{}", self.pos.line, self.pos.col)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{}", format!("{number} | {line}").trim_end())?;
        // Tabs are kept so that the caret stands under its character whatever the tab width.
        let pad: String = line
            .chars()
            .take(col)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        write!(f, "{gutter} | {pad}{}", "^".repeat(len))?;
        if self.label.is_empty() {
            writeln!(f)?;
        } else {
            writeln!(f, " {}", self.label)?;
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "{gutter} = help: {hint}")?;
        }
        Ok(())
    }

    /// The part of the line to show, the column of the caret in it (from 0) and the caret's length.
    fn excerpt(&self) -> (String, usize, usize) {
        let col = (self.pos.col as usize).saturating_sub(1);
        let total = self.line.chars().count();
        let clean = |c: char| if c.is_control() && c != '\t' { ' ' } else { c };
        let (skip, lead) = if total <= EXCERPT.saturating_mul(2) || col <= EXCERPT {
            (0, "")
        } else {
            (col.saturating_sub(EXCERPT / 2), "…")
        };
        let shown: String = self
            .line
            .chars()
            .skip(skip)
            .take(EXCERPT * 2)
            .map(clean)
            .collect();
        let shown = shown.trim_end();
        let cut = if skip.saturating_add(EXCERPT * 2) < total {
            "…"
        } else {
            ""
        };
        let at = col
            .saturating_sub(skip)
            .saturating_add(lead.chars().count());
        let room = shown
            .chars()
            .count()
            .saturating_add(lead.chars().count())
            .saturating_sub(at);
        let len = (self.len as usize).min(room).max(1);
        (format!("{lead}{shown}{cut}"), at, len)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.errors {
            error.render(&self.file, f)?;
            writeln!(f)?;
        }
        match self.errors.len() {
            1 => write!(f, "{}: 1 error", self.file)?,
            n => write!(f, "{}: {n} errors", self.file)?,
        }
        if self.stopped {
            write!(f, "; stopped, there may be more")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str, col: u32, len: u32) -> String {
        Diagnostics {
            file: "f".into(),
            errors: vec![TextError {
                kind: ErrorKind::Syntax,
                pos: Pos { line: 7, col },
                len,
                line: line.into(),
                message: "m".into(),
                label: "l".into(),
                hint: Some("h".into()),
            }],
            stopped: false,
        }
        .to_string()
    }

    #[test]
    fn caret_stands_under_the_token() {
        let text = error("\tmov x", 6, 1);
        assert_eq!(
            text,
            "error: m\n --> f:7:6\n  |\n7 | \tmov x\n  | \t    ^ l\n  = help: h\n\nf: 1 error"
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let line = "x".repeat(10_000);
        let text = error(&line, 5000, 20_000);
        assert!(text.len() < 1200, "{}", text.len());
        assert!(text.contains('…'));
    }

    #[test]
    fn caret_past_the_end_is_one_character() {
        assert!(error("ab", 3, 1).contains("  |   ^ l"));
    }
}
