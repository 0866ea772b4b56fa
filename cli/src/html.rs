//! What pages have in common.

/// How a page begins. Nothing may be asked for from outside.
pub const HEAD: &str = include_str!("head.html");

/// Characters of a line on a page.
pub const MAX_TEXT: usize = 400;

/// The start of a long line.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or("")),
        None => text.to_owned(),
    }
}

/// Text as it is written in HTML, also inside of quotes.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_between_characters() {
        let cut = shortened(&"é".repeat(MAX_TEXT + 100));
        assert!(cut.ends_with("é…") && cut.chars().count() == MAX_TEXT + 1);
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            escaped("<a href='x'>\"&\"</a>"),
            "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&quot;&lt;/a&gt;"
        );
    }
}
