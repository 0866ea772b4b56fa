//! Line tables: from machine code to lines of vISA, and from these to lines of the source that was compiled to vISA.
//!
//! Code generators make the first half, from the lines that the IR carries; the second is in vISA text that was compiled with
//! debug information (`ocloc … -options -g`), as `FILE` and `LOC`, and is the same for all code of a kernel.
//!
//! Lines of vISA count from 1 in what [`Kernel::text`](crate::Kernel::text) gives; 0 is code that belongs to none, such as the
//! loop over threads.

use serde::{Deserialize, Serialize};

/// Lines that machine code came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineTable {
    rows: Vec<(u32, u32)>,
    source: SourceMap,
}

impl LineTable {
    /// A table of `(code offset, vISA line)`, where each row holds up to the next one's offset. Rows out of order and rows
    /// that say nothing new are left out.
    pub fn new(rows: impl IntoIterator<Item = (u32, u32)>) -> LineTable {
        let mut kept: Vec<(u32, u32)> = Vec::new();
        for (offset, line) in rows {
            match kept.last_mut() {
                Some((at, last)) if *at == offset => *last = line,
                Some((at, last)) if *at > offset || *last == line => {}
                _ => kept.push((offset, line)),
            }
        }
        kept.dedup_by_key(|row| row.1);
        LineTable {
            rows: kept,
            source: SourceMap::default(),
        }
    }

    /// The same with the lines that the vISA was compiled from.
    #[must_use]
    pub fn with_source(self, source: SourceMap) -> LineTable {
        LineTable { source, ..self }
    }

    /// `(code offset, vISA line)` in ascending order of offset.
    pub fn rows(&self) -> &[(u32, u32)] {
        &self.rows
    }

    /// Line of vISA that the code at `offset` came from, 0 for none.
    pub fn line_at(&self, offset: u32) -> u32 {
        let after = self.rows.partition_point(|row| row.0 <= offset);
        let row = after.checked_sub(1).and_then(|i| self.rows.get(i));
        row.map_or(0, |row| row.1)
    }

    /// The lines of one text, for profilers and debuggers: of the vISA, which is in `visa`, or of the source. Code without a
    /// line has line 0, but for a function's first instructions: they belong to its first line, as C compilers have it.
    pub fn places(&self, text: Text, visa: &str) -> Places {
        let source = (text == Text::Source && !self.source.is_empty()).then_some(&self.source);
        let place = |line: u32| match source {
            None => (0, line),
            Some(map) => map.mark(line).unwrap_or_default(),
        };
        let mut rows: Vec<PlaceRow> = Vec::new();
        for &(offset, line) in &self.rows {
            let (file, line) = place(line);
            let same = |last: &PlaceRow| (last.file, last.line) == (file, line);
            if !rows.last().is_some_and(same) {
                rows.push(PlaceRow { offset, file, line });
            }
        }
        let lines = self.rows.iter().filter(|row| place(row.1).1 != 0);
        let opening = lines.map(|row| row.1).min().map_or((0, 0), place);
        let (file, line) = opening;
        match rows.first_mut() {
            Some(row) if row.offset == 0 && row.line == 0 => (row.file, row.line) = opening,
            Some(row) if row.offset == 0 => {}
            _ => rows.insert(
                0,
                PlaceRow {
                    offset: 0,
                    file,
                    line,
                },
            ),
        }
        let files = match source {
            None => vec![visa.to_owned()],
            Some(map) => map.files.clone(),
        };
        Places { files, rows }
    }

    /// What the vISA was compiled from.
    pub fn source(&self) -> &SourceMap {
        &self.source
    }
}

/// Which text profilers and debuggers show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Text {
    /// The vISA.
    #[default]
    Visa,
    /// What it was compiled from; the vISA where it does not say that.
    Source,
}

/// Lines of machine code in the form of profilers and debuggers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Files.
    pub files: Vec<String>,
    /// Lines in ascending order of offset; each holds up to the next, the last one to the end.
    pub rows: Vec<PlaceRow>,
}

/// One row of [`Places`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceRow {
    /// First byte of the code.
    pub offset: u32,
    /// Index into [`Places::files`].
    pub file: u32,
    /// Line, 0 for none.
    pub line: u32,
}

/// Which lines of source files the lines of vISA came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceMap {
    files: Vec<String>,
    /// Where something else begins, in ascending order of the line of vISA: `(vISA line, file, line)`, the line 0 for none.
    marks: Vec<(u32, u32, u32)>,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourceLine {
    /// The file, as the compiler named it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl std::fmt::Display for SourceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl SourceMap {
    /// The map in which each of these lines of vISA, and those after it up to the next one, came from a line of a file.
    pub fn new<'a>(lines: impl IntoIterator<Item = (u32, Option<(&'a str, u32)>)>) -> SourceMap {
        let mut map = SourceMap::default();
        for (visa, source) in lines {
            let mark = match source.filter(|(_, line)| *line != 0) {
                Some((file, line)) => (visa, map.number(file), line),
                None => (visa, 0, 0),
            };
            map.marks.push(mark);
        }
        map.marks.sort_by_key(|mark| mark.0);
        map.marks
            .dedup_by(|later, kept| (later.1, later.2) == (kept.1, kept.2));
        if map.files.is_empty() {
            map.marks.clear();
        }
        map
    }

    fn number(&mut self, file: &str) -> u32 {
        let known = self.files.iter().position(|f| f == file);
        let number = known.unwrap_or_else(|| {
            self.files.push(file.to_owned());
            self.files.len() - 1
        });
        number as u32
    }

    /// True without any line of a source.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The source files.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// File and line that a line of vISA came from.
    pub fn at(&self, visa: u32) -> Option<(&str, u32)> {
        let (file, line) = self.mark(visa)?;
        let file = self.files.get(file as usize)?;
        Some((file.as_str(), line))
    }

    /// Index of a file, and a line.
    fn mark(&self, visa: u32) -> Option<(u32, u32)> {
        let after = self.marks.partition_point(|mark| mark.0 <= visa);
        let &(_, file, line) = self.marks.get(after.checked_sub(1)?)?;
        (line != 0 && (file as usize) < self.files.len()).then_some((file, line))
    }

    /// The same as a value of its own.
    pub fn line_at(&self, visa: u32) -> Option<SourceLine> {
        let (file, line) = self.at(visa)?;
        let file = file.to_owned();
        Some(SourceLine { file, line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_say_something_new() {
        let table = LineTable::new([(0, 4), (2, 4), (5, 6), (5, 7), (4, 9), (8, 7), (9, 0)]);
        assert_eq!(table.rows(), [(0, 4), (5, 7), (9, 0)]);
        let at = [0, 4, 5, 8, 9, 100].map(|offset| table.line_at(offset));
        assert_eq!(at, [4, 4, 7, 7, 0, 0]);
        assert_eq!(LineTable::new([(3, 1)]).line_at(2), 0);
        // A row that is replaced may say what the one before it says.
        assert_eq!(LineTable::new([(0, 4), (5, 6), (5, 4)]).rows(), [(0, 4)]);
    }

    #[test]
    fn places_are_of_one_text() {
        let map = SourceMap::new([(4, Some(("a.cl", 9))), (6, None), (7, Some(("b.h", 2)))]);
        let table = LineTable::new([(0, 0), (3, 7), (5, 4), (8, 5), (9, 6), (12, 0)]);
        let table = table.with_source(map);
        let rows = |places: &Places| -> Vec<_> {
            let row = |r: &PlaceRow| (r.offset, places.files[r.file as usize].clone(), r.line);
            places.rows.iter().map(row).collect()
        };
        let named = |rows: &[(u32, &str, u32)]| -> Vec<_> {
            let row = |r: &(u32, &str, u32)| (r.0, r.1.to_owned(), r.2);
            rows.iter().map(row).collect()
        };
        let visa = table.places(Text::Visa, "v");
        let expected = [(0, 4), (3, 7), (5, 4), (8, 5), (9, 6), (12, 0)].map(|(a, l)| (a, "v", l));
        assert_eq!(rows(&visa), named(&expected));
        let source = table.places(Text::Source, "v");
        let expected = [
            (0, "a.cl", 9),
            (3, "b.h", 2),
            (5, "a.cl", 9),
            (9, "a.cl", 0),
        ];
        assert_eq!(rows(&source), named(&expected));
        let without = LineTable::new([(2, 3)]).places(Text::Source, "v");
        assert_eq!(rows(&without), named(&[(0, "v", 3), (2, "v", 3)]));
        assert_eq!(LineTable::default().places(Text::Visa, "v").rows[0].line, 0);
    }

    #[test]
    fn sources_hold_up_to_the_next() {
        let (a, b) = (Some(("a.cl", 3)), Some(("b.h", 1)));
        let map = SourceMap::new([(20, b), (10, a), (11, a), (15, None), (30, a)]);
        let at = |visa| map.line_at(visa).map(|s| s.to_string());
        assert_eq!(map.marks.len(), 4);
        assert_eq!((at(9), at(15)), (None, None));
        assert_eq!(at(14).as_deref(), Some("a.cl:3"));
        assert_eq!(at(29).as_deref(), Some("b.h:1"));
        assert_eq!(at(1000).as_deref(), Some("a.cl:3"));
        assert!(SourceMap::new([(1, None), (2, Some(("x", 0)))]) == SourceMap::default());
    }
}
