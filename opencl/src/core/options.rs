//! Build options: words, which may have blanks in double quotes, and paths, which the compiler sees from another folder.

use std::path::Path;

/// Splits options at blanks that are not in double quotes. Words keep their quotes. A quote after a backslash does not count.
pub fn words(options: &str) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    let ends = |c: char| {
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = c == '\\' && !escaped;
        c.is_whitespace() && !quoted
    };
    options
        .split(ends)
        .filter(|word| !word.is_empty())
        .collect()
}

/// A path as a word: absolute, and in quotes if it needs them.
fn path(word: &str, here: &Path) -> String {
    let inner = word.strip_prefix('"').and_then(|w| w.strip_suffix('"'));
    let full = here.join(inner.unwrap_or(word));
    let full = full.to_string_lossy();
    if full.contains(char::is_whitespace) {
        format!("\"{full}\"")
    } else {
        full.into_owned()
    }
}

/// Words of options, with folders for headers as seen from `here`.
pub fn absolute(options: &str, here: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut given = words(options).into_iter();
    while let Some(word) = given.next() {
        // The whole word may be quoted.
        let inner = word.strip_prefix('"').and_then(|w| w.strip_suffix('"'));
        match inner.unwrap_or(word).strip_prefix("-I") {
            Some("") => {
                all.push("-I".to_owned());
                all.extend(given.next().map(|word| path(word, here)));
            }
            Some(folder) => all.extend(["-I".to_owned(), path(folder, here)]),
            None => all.push(word.to_owned()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_quotes_do_not_end_words() {
        let all = words(" -D A=\"b c\"  -I \"d e\"\t-D F=\\\"g h\\\" -w");
        let expected = [
            "-D",
            "A=\"b c\"",
            "-I",
            "\"d e\"",
            "-D",
            "F=\\\"g",
            "h\\\"",
            "-w",
        ];
        assert_eq!(all, expected);
        assert_eq!(words("-I \"never closed"), ["-I", "\"never closed"]);
        assert_eq!(words("  "), [""; 0]);
    }

    #[test]
    fn folders_for_headers_are_absolute() {
        let all = |options| absolute(options, Path::new("/my home")).join(" ");
        assert_eq!(all("-I a -w"), "-I \"/my home/a\" -w");
        assert_eq!(all("-Ia"), "-I \"/my home/a\"");
        assert_eq!(all("-I \"a b\""), "-I \"/my home/a b\"");
        assert_eq!(all("-I\"a b\""), "-I \"/my home/a b\"");
        assert_eq!(all("\"-Ia b\""), "-I \"/my home/a b\"");
        assert_eq!(all("-I /a -I /b\\c"), "-I /a -I /b\\c");
        assert_eq!(all("-I"), "-I");
        assert_eq!(all("-DI=-I"), "-DI=-I");
    }
}
