//! Errors of kernels as SARIF 2.1.0, the format that code review tools take: `--sarif`.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use visa_jit::lines::SourceLine;

/// An error of a kernel, at one instruction.
#[derive(Clone, Debug)]
pub struct Finding {
    /// `bounds`, `buffer`, `barrier`, `race` or `init`.
    pub kind: String,
    /// Kernel.
    pub kernel: String,
    /// A sentence about it.
    pub text: String,
    /// Line of the source, where the compiler said so.
    pub source: Option<SourceLine>,
    /// Line of the vISA text.
    pub line: u64,
    /// Lanes that it was seen in.
    pub count: u64,
}

/// What is reported: identifier and short description.
const RULES: [(&str, &str); 5] = [
    ("bounds", "An access out of bounds"),
    ("buffer", "An access that misses its buffer"),
    (
        "barrier",
        "A barrier that not all work-items of a work-group reach",
    ),
    ("race", "Accesses of the same bytes that no barrier orders"),
    ("init", "A use of a value that was never written"),
];

/// Writes a file.
///
/// # Errors
/// Where it cannot be written.
pub fn write(path: &Path, findings: &[Finding]) -> Result<(), Failure> {
    let text = document(findings).map_err(|error| Failure {
        exit: Exit::Internal,
        message: error.to_string(),
    })?;
    std::fs::write(path, text).map_err(|error| Failure::file("write", path, error))
}

fn document(findings: &[Finding]) -> Result<String, serde_json::Error> {
    let rules = RULES.map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } }));
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "visa-jit",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "results": findings.iter().map(result).collect::<Vec<Value>>(),
        }],
    });
    let mut text = serde_json::to_string_pretty(&log)?;
    text.push('\n');
    Ok(text)
}

fn result(finding: &Finding) -> Value {
    let kernel = json!([{ "name": finding.kernel, "kind": "function" }]);
    let location = match &finding.source {
        Some(source) => json!({
            "physicalLocation": {
                "artifactLocation": { "uri": uri(&source.file) },
                "region": { "startLine": source.line.max(1) },
            },
            "logicalLocations": kernel,
        }),
        None => json!({ "logicalLocations": kernel }),
    };
    let rule = RULES.iter().position(|(id, _)| *id == finding.kind);
    json!({
        "ruleId": finding.kind,
        "ruleIndex": rule.map_or(json!(-1), |index| json!(index)),
        "level": "error",
        "message": { "text": finding.text },
        "locations": [location],
        "occurrenceCount": finding.count.max(1),
        "properties": { "visaLine": finding.line },
    })
}

/// A file's name as a URI: absolute ones with their scheme, others as they are, with what a URI may not contain escaped.
fn uri(file: &str) -> String {
    let mut text = match file.starts_with('/') {
        true => "file://".to_owned(),
        false => String::new(),
    };
    for &byte in file.as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            b if b.is_ascii_alphanumeric() => text.push(char::from(b)),
            b => {
                let _ = write!(text, "%{b:02X}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(kind: &str, source: Option<(&str, u32)>) -> Finding {
        Finding {
            kind: kind.to_owned(),
            kernel: "k".to_owned(),
            text: "what is wrong".to_owned(),
            source: source.map(|(file, line)| SourceLine {
                file: file.to_owned(),
                line,
            }),
            line: 7,
            count: 3,
        }
    }

    fn read(findings: &[Finding]) -> Value {
        serde_json::from_str(&document(findings).unwrap()).unwrap()
    }

    #[test]
    fn nothing_found_is_a_run_without_results() {
        let log = read(&[]);
        assert_eq!(log["version"], "2.1.0");
        assert_eq!(log["runs"][0]["results"], json!([]));
    }

    #[test]
    fn findings_name_their_line_and_rule() {
        let log = read(&[
            finding("race", Some(("a b.cl", 12))),
            finding("buffer", None),
        ]);
        let run = &log["runs"][0];
        let [race, buffer] = [0, 1].map(|n| &run["results"][n]);
        let place = &race["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20b.cl");
        assert_eq!(place["region"]["startLine"], 12);
        assert_eq!(
            (&race["occurrenceCount"], &race["message"]["text"]),
            (&json!(3), &json!("what is wrong"))
        );
        for found in [race, buffer] {
            let index = found["ruleIndex"].as_u64().unwrap() as usize;
            assert_eq!(run["tool"]["driver"]["rules"][index]["id"], found["ruleId"]);
            assert_eq!(found["locations"][0]["logicalLocations"][0]["name"], "k");
            assert_eq!(found["properties"]["visaLine"], 7);
        }
        assert!(buffer["locations"][0].get("physicalLocation").is_none());
    }

    #[test]
    fn absolute_files_have_a_scheme() {
        assert_eq!(uri("/home/me/a+b.cl"), "file:///home/me/a%2Bb.cl");
        assert_eq!(uri("inc/ö.h"), "inc/%C3%B6.h");
    }
}
