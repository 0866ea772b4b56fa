//! Keys: what compiled code depends on, in a form that can be hashed, stored and compared part by part.

use serde::Serialize;
use serde_json::Value;

/// The canonical text of everything that compiled code depends on, and its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    text: String,
    digest: [u8; 32],
}

/// A part in which two keys differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Names of fields from the outermost in, joined by dots.
    pub path: String,
    /// Value in the first key; empty if it has no such part.
    pub left: String,
    /// Value in the second key.
    pub right: String,
}

impl Key {
    /// The key of `parts`. Fields are written in the order of their declaration, so maps must be ordered.
    ///
    /// # Errors
    /// When `parts` cannot be written as JSON: a map whose keys are not strings.
    pub fn new(parts: &impl Serialize) -> Result<Key, serde_json::Error> {
        Ok(Key::from_text(serde_json::to_string(parts)?))
    }

    /// The key with this canonical text.
    pub fn from_text(text: String) -> Key {
        let digest = *blake3::hash(text.as_bytes()).as_bytes();
        Key { text, digest }
    }

    /// The canonical text, a JSON object.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Digest of the text.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The digest in hexadecimal.
    pub fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.digest).to_hex().to_string()
    }

    /// The part at a path of field names.
    pub fn part(&self, path: &[&str]) -> Option<String> {
        let value: Value = serde_json::from_str(&self.text).ok()?;
        let found = path.iter().try_fold(&value, |value, name| value.get(name));
        found.map(shown)
    }

    /// Every part that differs, in the order of names.
    pub fn differences(&self, other: &Key) -> Vec<Difference> {
        let mut found = Vec::new();
        let parsed = |key: &Key| serde_json::from_str(&key.text).unwrap_or(Value::Null);
        compare(String::new(), &parsed(self), &parsed(other), &mut found);
        found
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn compare(path: String, left: &Value, right: &Value, found: &mut Vec<Difference>) {
    if left == right {
        return;
    }
    let (Value::Object(l), Value::Object(r)) = (left, right) else {
        found.push(Difference {
            path,
            left: shown(left),
            right: shown(right),
        });
        return;
    };
    let mut names: Vec<&String> = l.keys().chain(r.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let dot = if path.is_empty() { "" } else { "." };
        let get = |map: &serde_json::Map<String, Value>| map.get(name).cloned();
        let (l, r) = (get(l).unwrap_or(Value::Null), get(r).unwrap_or(Value::Null));
        compare(format!("{path}{dot}{name}"), &l, &r, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::from_text(text.to_owned())
    }

    #[test]
    fn differences_are_leaves() {
        let a = key(r#"{"a":{"b":1,"c":[1,2]},"d":"x"}"#);
        let b = key(r#"{"a":{"b":1,"c":[1,3]},"e":"x"}"#);
        let found = a.differences(&b);
        let paths: Vec<_> = found.iter().map(|d| d.path.as_str()).collect();
        assert_eq!(paths, ["a.c", "d", "e"]);
        assert_eq!((&*found[0].left, &*found[0].right), ("[1,2]", "[1,3]"));
        assert_eq!((&*found[1].left, &*found[1].right), ("x", ""));
        assert!(a.differences(&a).is_empty());
    }

    #[test]
    fn parts_are_found_by_name() {
        let a = key(r#"{"a":{"b":"k"}}"#);
        assert_eq!(a.part(&["a", "b"]).as_deref(), Some("k"));
        assert_eq!(a.part(&["a", "c"]), None);
    }
}
