//! Colours of findings, if standard error is a terminal with colours and `NO_COLOR` is not set. The text itself is always the same.

use anstyle::{AnsiColor, Style};

/// What is wrong.
const WRONG: Style = AnsiColor::Red.on_default().bold();

/// Names of kernels.
const KERNEL: Style = Style::new().bold();

/// Other names: of instructions, buffers, and registers.
const NAME: Style = AnsiColor::Cyan.on_default();

/// Whether there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colours(bool);

impl Colours {
    /// None.
    #[cfg(test)]
    pub const NONE: Colours = Colours(false);

    /// Those of standard error. `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and `TERM` count as usual.
    pub fn of_errors() -> Colours {
        let choice = anstream::AutoStream::choice(&std::io::stderr());
        Colours(choice != anstream::ColorChoice::Never)
    }

    fn styled(self, style: Style, text: &str) -> String {
        match self.0 && !text.is_empty() {
            true => format!("{style}{text}{style:#}"),
            false => text.to_owned(),
        }
    }

    /// The word for what is wrong.
    pub fn wrong(self, text: &str) -> String {
        self.styled(WRONG, text)
    }

    /// A sentence about what was found in a kernel, whose name it may begin with. Other names are in backticks.
    pub fn finding(self, kernel: &str, text: &str) -> String {
        let begins = text.strip_prefix(kernel);
        let (kernel, rest) = match begins.filter(|rest| rest.starts_with(' ')) {
            Some(rest) => (kernel, rest),
            None => ("", text),
        };
        let mut painted = self.styled(KERNEL, kernel);
        let mut rest = rest;
        while let Some((before, name, after)) = next_name(rest) {
            painted.push_str(before);
            painted.push_str(&self.styled(NAME, name));
            rest = after;
        }
        painted.push_str(rest);
        painted
    }
}

/// The first name of a text, with its backticks, and what is around it.
fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (name, after) = rest.split_once('`')?;
    let (start, end) = (before.len(), text.len().checked_sub(after.len())?);
    // With the backticks around it.
    text.get(start..end)
        .filter(|_| !name.is_empty())
        .map(|name| (before, name, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENTENCE: &str = "k line 3 (k.cl:1): `lsc_store` write of 4 bytes, 4 bytes past the end of `o` (8 bytes, argument 0): k ` and";

    #[test]
    fn names_are_marked_and_nothing_else_changes() {
        let painted = Colours(true).finding("k", SENTENCE);
        let wanted = "\u{1b}[1mk\u{1b}[0m line 3 (k.cl:1): \u{1b}[36m`lsc_store`\u{1b}[0m write of 4 bytes, 4 bytes past the end of \
             \u{1b}[36m`o`\u{1b}[0m (8 bytes, argument 0): k ` and";
        assert_eq!(painted, wanted);
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), SENTENCE);
        assert_eq!(
            Colours(true).wrong("fault"),
            "\u{1b}[1m\u{1b}[31mfault\u{1b}[0m"
        );
    }

    #[test]
    fn other_kernels_names_are_no_beginning() {
        let text = "kernels line 3: `` no name, `one";
        assert_eq!(Colours(true).finding("k", text), text);
        assert_eq!(Colours(true).finding("", "x"), "x");
    }

    #[test]
    fn without_colours_the_text_is_the_same() {
        assert_eq!(Colours::NONE.finding("k", SENTENCE), SENTENCE);
        assert_eq!(Colours::NONE.wrong("fault"), "fault");
    }
}
