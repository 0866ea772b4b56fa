//! Errors of kernels as SARIF 2.1.0, the format that code review tools take: `--sarif`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Finding, RULES};
use crate::exit::{Exit, Failure};

/// The file's text.
pub fn document(findings: &[Finding]) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(&log(findings)).map_err(|error| Failure {
        exit: Exit::Internal,
        message: error.to_string(),
    })?;
    text.push('\n');
    Ok(text)
}

fn log(findings: &[Finding]) -> Value {
    let rules = RULES.map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } }));
    json!({
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
    })
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
    use super::super::finding;
    use super::*;

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
