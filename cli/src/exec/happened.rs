//! What the driver reported: lines of JSON, one for each event, from all processes of a run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::colour::Colours;
use crate::exit::{Exit, Failure};
use crate::findings::Finding;
use visa_jit::lines::SourceLine;

/// Faults of a kernel that are shown to people.
const SHOWN: usize = 4;
/// Faults of a kernel that a report has.
const KEPT: usize = 256;

/// One line of the driver's file.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    Loaded {
        devices: Vec<String>,
    },
    Problem {
        #[serde(rename = "where")]
        place: String,
        what: String,
    },
    Refused {
        kernel: String,
        why: String,
    },
    Launch {
        kernel: String,
        why: String,
    },
    /// The text of a program that has faults.
    Source {
        id: String,
        file: String,
        text: String,
    },
    Faults {
        kernel: String,
        /// Of the program's text, if it is known.
        #[serde(default)]
        source: Option<String>,
        count: u64,
        first: Vec<Fault>,
    },
}

/// The text of a program, and what the compiler calls it.
struct Text {
    file: String,
    text: Arc<str>,
}

/// An access out of bounds, or an error at a barrier: a sentence about it, and its parts as the driver has them.
#[derive(Deserialize, Serialize, PartialEq)]
struct Fault {
    text: String,
    /// Which [`Text`] its source is.
    #[serde(skip)]
    of: Option<String>,
    #[serde(flatten)]
    parts: serde_json::Map<String, Value>,
}

impl Fault {
    /// What is wrong, in a word.
    fn kind(&self) -> &str {
        let kind = self.parts.get("kind").and_then(Value::as_str);
        kind.unwrap_or("bounds")
    }

    /// Functions of the program, the innermost first, that allocated or freed what it is about.
    fn trace(&self, what: &str) -> impl Iterator<Item = &str> {
        let frames = self.parts.get(what).and_then(Value::as_array);
        frames.into_iter().flatten().filter_map(Value::as_str)
    }

    /// What is wrong, and where the memory is from.
    fn long_text(&self) -> String {
        let mut text = self.text.clone();
        for what in ["allocated", "freed"] {
            let frames: Vec<&str> = self.trace(what).collect();
            if !frames.is_empty() {
                let _ = write!(text, "; {what} by {}", frames.join(", by "));
            }
        }
        text
    }

    /// A line for each of them.
    fn traces(&self) -> String {
        let mut text = String::new();
        for what in ["allocated", "freed"] {
            let first = [what].into_iter().chain(std::iter::repeat(""));
            for (what, frame) in first.zip(self.trace(what)) {
                let _ = writeln!(text, "    {what:9} by {frame}");
            }
        }
        text
    }

    fn finding(&self, kernel: &str, sources: &BTreeMap<String, Text>) -> Finding {
        let number = |name: &str| self.parts.get(name).and_then(Value::as_u64);
        let source = self.parts.get("source").cloned();
        let source: Option<SourceLine> = source.and_then(|s| serde_json::from_value(s).ok());
        let of = self.of.as_ref().and_then(|id| sources.get(id));
        let is_of = |text: &&Text| source.as_ref().is_some_and(|s| s.file == text.file);
        let text = of.filter(is_of).map(|text| text.text.clone());
        Finding {
            kind: self.kind().to_owned(),
            kernel: kernel.to_owned(),
            text: self.long_text(),
            source_text: text,
            source,
            line: number("line").unwrap_or(0),
            count: number("count").unwrap_or(1),
        }
    }
}

/// Faults of a kernel.
#[derive(Default, Serialize)]
struct Faults {
    /// Launches that had some.
    launches: u64,
    /// All faults of those.
    count: u64,
    /// The first.
    first: Vec<Fault>,
}

impl Faults {
    /// What they are.
    fn what(&self) -> &'static str {
        let mut whats = self.first.iter().map(|fault| match fault.kind() {
            "barrier" => "error(s) at barriers",
            "race" => "race(s)",
            "init" => "use(s) of what was never written",
            "read-only" => "write(s) to read-only memory",
            "alignment" => "misaligned access(es)",
            _ => "access(es) out of bounds",
        });
        let first = whats.next().unwrap_or("access(es) out of bounds");
        match whats.all(|what| what == first) {
            true => first,
            false => "error(s)",
        }
    }
}

/// What happened, by kernel where there is one. Each message counts how often it was told.
#[derive(Default)]
pub struct Happened {
    loaded: u64,
    devices: Vec<String>,
    faults: BTreeMap<String, Faults>,
    sources: BTreeMap<String, Text>,
    refused: BTreeMap<(String, String), u64>,
    failed: BTreeMap<(String, String), u64>,
    problems: BTreeMap<(String, String), u64>,
}

fn count(of: &mut BTreeMap<(String, String), u64>, key: (String, String)) {
    let times = of.entry(key).or_default();
    *times = times.saturating_add(1);
}

impl Happened {
    /// Reads the driver's file. There is none if the driver was not loaded.
    pub fn read(path: &Path) -> io::Result<Happened> {
        let mut all = Happened::default();
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(all),
            other => other?,
        };
        for line in BufReader::new(file).split(b'\n') {
            // A process that was killed may leave half a line.
            if let Ok(line) = serde_json::from_slice(&line?) {
                all.add(line);
            }
        }
        Ok(all)
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Loaded { devices } => {
                self.loaded = self.loaded.saturating_add(1);
                self.devices = devices;
            }
            Line::Problem { place, what } => count(&mut self.problems, (place, what)),
            Line::Refused { kernel, why } => count(&mut self.refused, (kernel, why)),
            Line::Launch { kernel, why } => count(&mut self.failed, (kernel, why)),
            Line::Source { id, file, text } => {
                let text = text.into();
                self.sources.insert(id, Text { file, text });
            }
            Line::Faults {
                kernel,
                source,
                count,
                first,
            } => {
                let faults = self.faults.entry(kernel).or_default();
                faults.launches = faults.launches.saturating_add(1);
                faults.count = faults.count.saturating_add(count);
                for mut fault in first {
                    fault.of.clone_from(&source);
                    if faults.first.len() < KEPT && !faults.first.contains(&fault) {
                        faults.first.push(fault);
                    }
                }
            }
        }
    }

    /// True if an access was out of bounds, or a check found something.
    pub fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// The faults that were told, for code review tools.
    pub fn findings(&self) -> Vec<Finding> {
        let all = self.faults.iter();
        let of = |fault: &Fault, kernel: &str| fault.finding(kernel, &self.sources);
        all.flat_map(|(kernel, faults)| faults.first.iter().map(move |f| of(f, kernel)))
            .collect()
    }

    /// For people; empty if nothing happened.
    pub fn text(&self, colours: Colours) -> String {
        let mut text = String::new();
        let times = |n: u64| match n {
            1 => String::new(),
            n => format!(" ({n} times)"),
        };
        for ((place, what), n) in &self.problems {
            let _ = writeln!(text, "visa-jit: {place}: {what}{}", times(*n));
        }
        for ((kernel, why), n) in &self.refused {
            let what = match kernel.as_str() {
                "" => "a program".to_owned(),
                name => format!("kernel `{name}`"),
            };
            let _ = writeln!(text, "visa-jit: {what} was refused: {why}{}", times(*n));
        }
        for ((kernel, why), n) in &self.failed {
            let _ = writeln!(text, "visa-jit: kernel `{kernel}`: {why}{}", times(*n));
        }
        for (kernel, faults) in &self.faults {
            let what = colours.wrong(&format!("{} {}", faults.count, faults.what()));
            let who = colours.finding("", &format!("kernel `{kernel}`"));
            let launches = faults.launches;
            let _ = writeln!(text, "visa-jit: {who}: {what} in {launches} launch(es)");
            let mut shown = 0_u64;
            for fault in faults.first.iter().take(SHOWN) {
                let _ = writeln!(text, "  {}", colours.finding(kernel, &fault.text));
                text.push_str(&fault.traces());
                // A checked instruction's first record stands for others, as its text says.
                let count = fault.parts.get("count").and_then(Value::as_u64);
                shown = shown.saturating_add(count.unwrap_or(1));
            }
            if faults.count > shown {
                let _ = writeln!(text, "  and {} more", faults.count.saturating_sub(shown));
            }
        }
        text
    }

    /// The object of `--report`. Scripts rely on its keys.
    pub fn json(
        &self,
        command: &[OsString],
        code: u8,
        signal: Option<i32>,
    ) -> Result<String, Failure> {
        let messages = |of: &BTreeMap<(String, String), u64>, place: &str, what: &str| {
            let all = of.iter();
            let all = all.map(|((a, b), n)| json!({ place: a, what: b, "times": n }));
            Value::Array(all.collect())
        };
        let command: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        let object = json!({
            "command": command,
            "exit_code": code,
            "signal": signal,
            "processes": self.loaded,
            "devices": self.devices,
            "faults": self.faults,
            "refused": messages(&self.refused, "kernel", "why"),
            "failed": messages(&self.failed, "kernel", "why"),
            "problems": messages(&self.problems, "where", "what"),
        });
        let mut text = serde_json::to_string_pretty(&object).map_err(|error| Failure {
            exit: Exit::Internal,
            message: error.to_string(),
        })?;
        text.push('\n');
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &str) -> Happened {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines).unwrap();
        Happened::read(file.path()).unwrap()
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        assert_eq!(of("").text(Colours::NONE), "");
        assert_eq!(
            of(r#"{"kind":"loaded","devices":["skl"]}"#).text(Colours::NONE),
            ""
        );
        let missing = Happened::read(Path::new("/nowhere/report")).unwrap();
        assert_eq!(missing.text(Colours::NONE), "");
    }

    #[test]
    fn errors_at_barriers_are_no_accesses() {
        let text = of(concat!(
            r#"{"kind":"faults","kernel":"k","count":9,"first":["#,
            r#"{"text":"here; 5 more like it","kind":"barrier","count":6},{"text":"there","kind":"barrier","count":1}]}"#,
        ))
        .text(Colours::NONE);
        let says = "kernel `k`: 9 error(s) at barriers in 1 launch(es)\n  here; 5 more like it\n  there\n  and 2 more\n";
        assert!(text.ends_with(says), "{text}");
    }

    #[test]
    fn errors_of_several_kinds_have_no_name_in_common() {
        let told = |kinds: [&str; 2]| {
            let first = kinds.map(|kind| format!(r#"{{"text":"here","kind":"{kind}"}}"#));
            let first = first.join(",");
            of(&format!(
                r#"{{"kind":"faults","kernel":"k","count":2,"first":[{first}]}}"#
            ))
            .text(Colours::NONE)
        };
        for (kinds, says) in [
            (["race", "race"], "2 race(s) in"),
            (["init", "init"], "2 use(s) of what was never written in"),
            (["bounds", "buffer"], "2 access(es) out of bounds in"),
            (["read-only"; 2], "2 write(s) to read-only memory in"),
            (["alignment"; 2], "2 misaligned access(es) in"),
            (["alignment", "buffer"], "2 error(s) in"),
            (["race", "barrier"], "2 error(s) in"),
        ] {
            let text = told(kinds);
            assert!(text.contains(says), "{text}");
        }
    }

    #[test]
    fn findings_have_what_the_driver_told() {
        let all = of(concat!(
            r#"{"kind":"faults","kernel":"k","count":9,"first":[{"text":"here","kind":"race","line":3,"count":6,"#,
            r#""source":{"file":"a.cl","line":2}},{"text":"there","kind":"race","line":4,"source":null,"count":null}]}"#,
        ))
        .findings();
        let [here, there] = all.as_slice() else {
            panic!("{all:?}");
        };
        let source = here.source.as_ref().map(|s| (s.file.as_str(), s.line));
        assert_eq!((source, here.line, here.count), (Some(("a.cl", 2)), 3, 6));
        assert_eq!(
            (there.source.is_none(), there.line, there.count),
            (true, 4, 1)
        );
    }

    #[test]
    fn memory_has_the_functions_that_allocated_it() {
        let all = of(concat!(
            r#"{"kind":"faults","kernel":"k","count":1,"first":[{"text":"here","kind":"buffer","#,
            r#""allocated":["make (a.c:3)","main (a.c:9)"],"freed":["main (a.c:12)"]}]}"#,
        ));
        let says = "  here\n    allocated by make (a.c:3)\n              by main (a.c:9)\n    freed     by main (a.c:12)\n";
        assert!(
            all.text(Colours::NONE).ends_with(says),
            "{}",
            all.text(Colours::NONE)
        );
        let says = "here; allocated by make (a.c:3), by main (a.c:9); freed by main (a.c:12)";
        assert_eq!(all.findings()[0].text, says);
        let json: Value = serde_json::from_str(&all.json(&[], 1, None).unwrap()).unwrap();
        let first = &json["faults"]["k"]["first"][0];
        assert_eq!(first["freed"][0], "main (a.c:12)");
    }

    #[test]
    fn faults_are_counted_by_kernel() {
        let line = r#"{"kind":"faults","kernel":"k","count":9,"first":[{"text":"here","line":3}]}"#;
        let all = of(&format!("{line}\nhalf a l\n{line}\n"));
        let text = all.text(Colours::NONE);
        assert!(text.contains("kernel `k`: 18 access(es) out of bounds in 2 launch(es)\n  here\n"));
        assert!(text.contains("and 17 more"), "{text}");
        let json: Value = serde_json::from_str(&all.json(&[], 3, None).unwrap()).unwrap();
        assert_eq!(json["faults"]["k"]["count"], 18);
        assert_eq!(json["faults"]["k"]["first"][0]["line"], 3);
        assert_eq!(json["exit_code"], 3);
    }

    #[test]
    fn messages_are_said_once() {
        let line = r#"{"kind":"refused","kernel":"k","why":"`dpas` is unknown"}"#;
        let text = of(&format!("{line}\n{line}\n")).text(Colours::NONE);
        let said = "visa-jit: kernel `k` was refused: `dpas` is unknown (2 times)\n";
        assert_eq!(text, said);
    }
}
