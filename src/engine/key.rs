//! What compiled code depends on, in one place: the keys of the code caches.
//!
//! [`KeyParts`] is serialised as a whole, so a field added to any structure in it is part of every key from then on.
//! Keys are made from a loaded kernel, without lowering it.

use serde::{Deserialize, Serialize, Serializer};
use visa_runtime::KernelMeta;

use super::abi::PayloadPlan;
use crate::artifact::Key;
use crate::backend::{CodegenOptions, Identity};
use crate::container;
use crate::isa::{Platform, Versions};
use crate::limits;
use crate::lower::{LocalIdShape, PayloadMap};
use crate::passes::PassOptions;

/// Which kernel, whatever it is compiled with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KernelPart {
    /// Device whose instruction set the text is in.
    pub device: Platform,
    /// Digest of the vISA text.
    text: String,
    /// Digest of the functions that were linked in, with their numbers.
    functions: String,
    /// Where inputs come from.
    pub payload: PayloadMap,
    /// Name, and what the container says about launches.
    pub meta: KernelMeta,
}

impl KernelPart {
    pub(crate) fn new(
        device: Platform,
        text: &str,
        functions: &str,
        plan: &PayloadPlan,
        meta: KernelMeta,
    ) -> KernelPart {
        let digest = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
        KernelPart {
            device,
            text: digest(text),
            functions: digest(functions),
            payload: plan.map.clone(),
            meta,
        }
    }

    /// Digest of all of it.
    pub(crate) fn digest(&self) -> [u8; 32] {
        // No map in it has keys that are not strings.
        Key::new(self).map_or([0; 32], |key| *key.digest())
    }
}

/// The program that compiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Build {
    version: &'static str,
    /// Digest of the sources, which change between versions.
    sources: &'static str,
    abi: u32,
}

impl Build {
    fn current() -> Build {
        Build {
            version: env!("CARGO_PKG_VERSION"),
            sources: env!("VISA_JIT_SOURCES"),
            abi: visa_runtime::abi::ABI_VERSION,
        }
    }
}

/// Every bound on what is read, compiled and run, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Limits {
    compiler: Bounds,
    container: Bounds,
    runtime: Bounds,
}

impl Limits {
    const ALL: Limits = Limits {
        compiler: Bounds(limits::ALL),
        container: Bounds(container::limits::ALL),
        runtime: Bounds(visa_runtime::limits::ALL),
    };
}

/// Written as a map, in the order of the source; each start of the command writes two keys.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bounds(&'static [(&'static str, u64)]);

impl Serialize for Bounds {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().copied())
    }
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum FileFormat {
    Zebin,
    Text,
}

/// Everything that a program's manifest depends on: the file as it is, so that nothing of it has to be read to look for the
/// manifest.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FileKey {
    build: Build,
    limits: Limits,
    file: FilePart,
}

#[derive(Clone, Debug, Serialize)]
struct FilePart {
    format: FileFormat,
    /// Digest of its bytes.
    bytes: String,
    /// The device asked for.
    device: Option<Platform>,
    /// Versions that were read without an error.
    versions: Versions,
}

impl FileKey {
    pub(super) fn new(
        format: FileFormat,
        digest: &[u8; 32],
        device: Option<Platform>,
        versions: Versions,
    ) -> FileKey {
        FileKey {
            build: Build::current(),
            limits: Limits::ALL,
            file: FilePart {
                format,
                bytes: blake3::Hash::from_bytes(*digest).to_hex().to_string(),
                device,
                versions,
            },
        }
    }

    /// The key; `None` would be a bug, and costs the cache, not the result.
    pub(super) fn key(&self) -> Option<Key> {
        Key::new(self).ok()
    }
}

/// Everything that compiled code depends on.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct KeyParts<'a> {
    build: Build,
    limits: Limits,
    backend: &'a Identity,
    codegen: &'a CodegenOptions,
    passes: &'a PassOptions,
    kernel: &'a KernelPart,
    local_ids: LocalIdShape,
}

impl<'a> KeyParts<'a> {
    pub(super) fn new(
        backend: &'a Identity,
        codegen: &'a CodegenOptions,
        passes: &'a PassOptions,
        kernel: &'a KernelPart,
        local_ids: LocalIdShape,
    ) -> KeyParts<'a> {
        KeyParts {
            build: Build::current(),
            limits: Limits::ALL,
            backend,
            codegen,
            passes,
            kernel,
            local_ids,
        }
    }

    /// The key; `None` would be a bug, and costs the cache, not the result.
    pub(super) fn key(&self) -> Option<Key> {
        Key::new(self).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{AXES, OobPolicy, Strategy, Tuning};
    use crate::passes::MergeSplits;
    use crate::passes::pipeline::PASSES;
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn identity() -> Identity {
        let backend = crate::backend::cranelift::CraneliftBackend::host().unwrap();
        crate::backend::Backend::identity(&backend)
    }

    fn kernel() -> KernelPart {
        KernelPart::new(
            Platform::Skl,
            "text",
            "",
            &PayloadPlan::default(),
            KernelMeta::default(),
        )
    }

    /// Every leaf of a JSON value, as the path to it.
    fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (name, inner) in map {
                    leaves(inner, &format!("{path}/{name}"), found);
                }
            }
            Value::Array(list) if !list.is_empty() => {
                for (index, inner) in list.iter().enumerate() {
                    leaves(inner, &format!("{path}/{index}"), found);
                }
            }
            _ => found.push(path.to_owned()),
        }
    }

    fn changed(value: &Value) -> Value {
        match value {
            Value::Bool(b) => Value::Bool(!b),
            Value::Number(n) => Value::from(n.as_u64().unwrap() ^ 1),
            Value::String(s) => Value::from(format!("{s}x")),
            Value::Null => Value::from(1),
            Value::Array(_) => serde_json::json!(["x"]),
            Value::Object(_) => serde_json::json!({"x": 1}),
        }
    }

    /// Walks a key's structure as it is written: each field, one at a time, makes another key, and the comparison says which.
    /// Returns the paths of the fields.
    fn walk(key: &Key) -> Vec<String> {
        let value: Value = serde_json::from_str(key.text()).unwrap();
        let mut paths = Vec::new();
        leaves(&value, "", &mut paths);
        let mut seen = BTreeSet::from([key.hex()]);
        for path in &paths {
            let mut other = value.clone();
            let leaf = other.pointer_mut(path).unwrap();
            *leaf = changed(leaf);
            let other = Key::from_text(other.to_string());
            assert!(seen.insert(other.hex()), "{path} does not change the key");
            let found = key.differences(&other);
            let named = found[0].path.replace('.', "/");
            // What was empty is named with what is in it now.
            let path = &path[1..];
            let same = path.starts_with(&named) || named.starts_with(path);
            assert!(same, "{path}: {found:?}");
        }
        paths
    }

    /// Each bound is a leaf by itself, and all the source's bounds are there.
    #[track_caller]
    fn limits_are_in(paths: &[String]) {
        for (part, all, source) in [
            ("compiler", limits::ALL, include_str!("../limits.rs")),
            (
                "container",
                container::limits::ALL,
                include_str!("../container/limits.rs"),
            ),
            (
                "runtime",
                visa_runtime::limits::ALL,
                include_str!("../../runtime/src/limits.rs"),
            ),
        ] {
            let constants = source.lines().filter(|l| l.starts_with("pub const "));
            let functions = source.matches("pub const fn").count();
            assert_eq!(constants.count(), all.len() + functions, "{part}");
            for (limit, _) in all {
                let path = format!("/limits/{part}/{limit}");
                assert!(paths.contains(&path), "{path}");
            }
        }
    }

    #[test]
    fn every_field_is_in_the_key() {
        let (backend, codegen, passes) = (
            identity(),
            CodegenOptions::default(),
            PassOptions::default(),
        );
        let kernel = kernel();
        let parts = KeyParts::new(&backend, &codegen, &passes, &kernel, LocalIdShape::General);
        let paths = walk(&parts.key().unwrap());
        // Each CPU feature and limit is a leaf by itself.
        let named = |path: &str| paths.iter().any(|p| p == path);
        for feature in backend.features.keys() {
            assert!(named(&format!("/backend/features/{feature}")), "{feature}");
        }
        assert!(
            backend
                .features
                .keys()
                .any(|f| f == "has_avx2" || f == "has_lse")
        );
        limits_are_in(&paths);
    }

    #[test]
    fn every_field_is_in_the_key_of_a_file() {
        let device = Some(Platform::Skl);
        let any = |format, digest: [u8; 32], device, versions| {
            let key = FileKey::new(format, &digest, device, versions);
            key.key().unwrap()
        };
        let key = |format, digest, device| any(format, digest, device, Versions::Known);
        let first = key(FileFormat::Zebin, [1; 32], device);
        let paths = walk(&first);
        limits_are_in(&paths);
        let others = [
            key(FileFormat::Text, [1; 32], device),
            key(FileFormat::Zebin, [2; 32], device),
            key(FileFormat::Zebin, [1; 32], None),
            key(FileFormat::Zebin, [1; 32], Some(Platform::Pvc)),
            any(FileFormat::Zebin, [1; 32], device, Versions::Any),
        ];
        let all: BTreeSet<String> = others.iter().map(Key::hex).collect();
        assert!(all.len() == others.len() && !all.contains(&first.hex()));
    }

    /// Every value of every axis but the defaults.
    fn tunings() -> Vec<Tuning> {
        let mut all = Vec::new();
        for axis in AXES.iter().filter(|axis| axis.name != "backend") {
            let usual = axis.value(&Strategy::default());
            for (value, _) in axis.values.iter().filter(|(value, _)| *value != usual) {
                let mut strategy = Strategy::default();
                axis.set(&mut strategy, value).unwrap();
                all.push(strategy.tuning);
            }
        }
        all
    }

    /// The same from the options' side, so that a field that is left out of the key on purpose is seen.
    #[test]
    fn every_choice_makes_another_key() {
        let mut seen = BTreeSet::new();
        let mut see = |backend: &Identity, codegen, passes, kernel: &KernelPart, ids| {
            let parts = KeyParts::new(backend, &codegen, &passes, kernel, ids);
            assert!(seen.insert(parts.key().unwrap().hex()), "{parts:?}");
        };
        let (backend, kernel) = (identity(), kernel());
        let (codegen, passes) = (CodegenOptions::default, PassOptions::default);
        for oob in [
            OobPolicy::ReadZeroSkipWrite,
            OobPolicy::Trap,
            OobPolicy::Report,
        ] {
            for ids in [
                LocalIdShape::General,
                LocalIdShape::Row,
                LocalIdShape::FullRow,
                LocalIdShape::ShortRows(8),
                LocalIdShape::ShortRows(16),
                LocalIdShape::Full1d,
                LocalIdShape::Full2d(16),
                LocalIdShape::Full2d(32),
            ] {
                let mut codegen = codegen();
                codegen.oob = oob;
                see(&backend, codegen, passes(), &kernel, ids);
            }
        }
        for tuning in tunings() {
            let codegen = CodegenOptions {
                tuning,
                ..codegen()
            };
            see(&backend, codegen, passes(), &kernel, LocalIdShape::General);
        }
        let if_convert = PassOptions {
            if_convert: true,
            ..passes()
        };
        see(
            &backend,
            codegen(),
            if_convert,
            &kernel,
            LocalIdShape::General,
        );
        for merge_splits in [
            MergeSplits::Scattered,
            MergeSplits::Loads,
            MergeSplits::Vec4,
        ] {
            let passes = PassOptions {
                merge_splits,
                ..passes()
            };
            see(&backend, codegen(), passes, &kernel, LocalIdShape::General);
        }
        for (name, _) in PASSES {
            let passes = PassOptions {
                disabled: BTreeSet::from([*name]),
                ..passes()
            };
            see(&backend, codegen(), passes, &kernel, LocalIdShape::General);
        }
        let verify = PassOptions {
            verify: !passes().verify,
            ..passes()
        };
        see(&backend, codegen(), verify, &kernel, LocalIdShape::General);
        for feature in backend.features.keys() {
            let mut backend = backend.clone();
            backend
                .features
                .insert(feature.clone(), "changed".to_owned());
            see(
                &backend,
                codegen(),
                passes(),
                &kernel,
                LocalIdShape::General,
            );
        }
        let other = Identity {
            version: "0".to_owned(),
            ..backend.clone()
        };
        see(&other, codegen(), passes(), &kernel, LocalIdShape::General);
        let metas = [
            KernelMeta {
                name: "k".to_owned(),
                ..KernelMeta::default()
            },
            KernelMeta {
                slm_bytes: 1,
                ..KernelMeta::default()
            },
            KernelMeta {
                scratch_bytes: 1,
                ..KernelMeta::default()
            },
            KernelMeta {
                walk_order: [1, 0, 2],
                ..KernelMeta::default()
            },
        ];
        for meta in metas {
            let kernel = KernelPart {
                meta,
                ..kernel.clone()
            };
            see(
                &backend,
                codegen(),
                passes(),
                &kernel,
                LocalIdShape::General,
            );
        }
    }
}
