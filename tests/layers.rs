//! The architecture's rules, checked by reading the source: dependencies point one way, `unsafe`
//! and foreign crates stay where they belong, files stay small enough to read.
//!
//! The rules and their reasons are in `ARCHITECTURE.md`. Comments do not count; everything else of
//! a file does, its unit tests too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules of the compiler crate, and those each may name.
const LAYERS: &[(&str, &[&str])] = &[
    ("limits", &[]),
    ("isa", &[]),
    ("lines", &[]),
    ("steps", &[]),
    ("schedule", &[]),
    ("module", &["isa", "limits", "lines"]),
    ("front", &["module", "isa", "limits"]),
    ("container", &["isa", "limits"]),
    ("valid", &["module", "isa", "limits"]),
    ("interp", &["valid", "module", "isa", "limits"]),
    ("ssa", &["isa"]),
    ("lower", &["valid", "module", "isa", "ssa", "limits"]),
    ("passes", &["schedule", "ssa", "steps"]),
    (
        "backend",
        &["ssa", "isa", "limits", "lines", "schedule", "steps"],
    ),
    ("artifact", &["ssa", "isa", "lines"]),
    (
        "engine",
        &[
            "artifact",
            "backend",
            "container",
            "front",
            "interp",
            "isa",
            "limits",
            "lines",
            "lower",
            "module",
            "passes",
            "ssa",
            "steps",
            "valid",
        ],
    ),
];

/// Foreign crates, and the only places that may name them.
const FENCED: &[(&str, &[&str])] = &[
    (
        "cranelift_codegen",
        &["src/backend/", "runtime/src/code.rs"],
    ),
    ("cranelift_frontend", &["src/backend/"]),
    ("cranelift_jit", &["runtime/src/code.rs"]),
    ("cranelift_module", &["runtime/src/code.rs"]),
    ("cranelift_native", &["src/backend/", "runtime/src/code.rs"]),
    ("inkwell", &["src/backend/"]),
    ("iced_x86", &["cli/"]),
    ("yaxpeax_arm", &["cli/"]),
    ("yaxpeax_arch", &["cli/"]),
    ("png", &["cli/", "examples/"]),
    ("clap", &["cli/"]),
    ("indicatif", &["cli/"]),
    (
        "libloading",
        &["src/container/ocloc/", "src/backend/library.rs"],
    ),
    ("etcetera", &["src/engine/disk.rs"]),
    ("postcard", &["src/artifact/", "runtime/src/linked/"]),
    ("serde_saphyr", &["src/container/"]),
    (
        "visa_jit",
        &["cli/", "opencl/", "fuzzing/", "xtask/", "examples/"],
    ),
    (
        "visa_runtime",
        &[
            "src/artifact/",
            "src/backend/",
            "src/engine/",
            "src/interp/",
            "cli/",
            "opencl/",
            "fuzzing/",
            "examples/",
        ],
    ),
];

/// Where `unsafe` may stand in what is shipped.
const UNSAFE: &[&str] = &[
    "runtime/",
    "src/backend/",
    "src/container/ocloc/",
    // The C boundary of the OpenCL driver.
    "opencl/src/abi/",
    "opencl/src/api/",
];

/// Lines of a file.
const MAX_LINES: usize = 800;
/// Files that may be longer: tables and other lists, nothing with logic in it.
const LONG: &[&str] = &[
    // Generated from C headers.
    "opencl/src/abi/bindings.rs",
];

/// Folders, and of how many files a circle of imports in them may be. Where one file is the head of a folder, others may import from it
/// what they have in common; the head of `src/engine` has nothing of its own.
const CIRCLES: &[(&str, usize)] = &[
    ("src/container", 2),
    ("src/engine", 1),
    ("src/lower", 3),
    ("src/passes", 3),
    ("src/ssa", 3),
    ("runtime/src", 5),
];

struct Source {
    /// Path from the root of the repository.
    path: String,
    lines: usize,
    /// The text without line comments.
    code: String,
}

impl Source {
    /// Module of the compiler crate that the file belongs to.
    fn layer(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("src/")?;
        let name = inside.split('/').next()?;
        Some(name.strip_suffix(".rs").unwrap_or(name))
    }

    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }

    /// What follows each occurrence of a whole word.
    fn after<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        self.code.match_indices(word).filter_map(move |(at, _)| {
            let (before, rest) = (&self.code[..at], &self.code[at + word.len()..]);
            let whole = !inside(before.chars().next_back()) && !inside(rest.chars().next());
            whole.then_some(rest)
        })
    }
}

fn collect(root: &Path, dir: &Path, found: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(dir) else {
        return; // Not every directory exists at all times.
    };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = |line: &str| line.split("//").next().unwrap_or("").to_owned();
            found.push(Source {
                path: path.strip_prefix(root).unwrap().display().to_string(),
                lines: text.lines().count(),
                code: text.lines().map(code).collect::<Vec<_>>().join("\n"),
            });
        }
    }
}

fn sources(dirs: &[&str]) -> Vec<Source> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for dir in dirs {
        collect(&root, &root.join(dir), &mut found);
    }
    assert!(!found.is_empty());
    found
}

/// What is built into programs, not their tests.
fn shipped() -> Vec<Source> {
    sources(&[
        "src",
        "cli/src",
        "runtime/src",
        "opencl/src",
        "fuzzing/src",
        "xtask/src",
        "examples",
    ])
}

/// The identifier that a path goes on with; empty for `{` and `*`.
fn next_name(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix("::")?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// The paths that a text names, `use a::{b, c}` as two.
fn paths(code: &str) -> Vec<Vec<&str>> {
    let starts = ["crate", "self", "super"].into_iter().flat_map(|word| {
        let alone = move |(at, _): &(usize, &str)| {
            let ends = code[at + word.len()..].starts_with("::");
            let within = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            ends && !code[..*at].ends_with(within)
        };
        code.match_indices(word).filter(alone).map(|(at, _)| at)
    });
    let mut found = Vec::new();
    for at in starts {
        expand(&code[at..], &[], &mut found);
    }
    found
}

/// Adds the paths that a text begins with, and returns what follows.
fn expand<'a>(mut rest: &'a str, before: &[&'a str], found: &mut Vec<Vec<&'a str>>) -> &'a str {
    let mut path = before.to_vec();
    loop {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        if !name.is_empty() {
            path.push(name);
        }
        let Some(inner) = after.strip_prefix("::") else {
            found.push(path);
            return after;
        };
        let Some(mut inner) = inner.strip_prefix('{') else {
            rest = inner;
            continue;
        };
        loop {
            inner = expand(inner.trim_start(), &path, found).trim_start();
            let item = inner.find([',', '}']).unwrap_or(inner.len());
            let last = inner[item..].starts_with('}') || item == inner.len();
            inner = inner.get(item + 1..).unwrap_or_default();
            if last {
                return inner;
            }
        }
    }
}

/// The module of a file, and for each file of a crate the modules that it names. Unit tests do not count, nor does what a head of a folder
/// names below it.
fn imports(root: &str) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let files = sources(&[root]);
    let module = |file: &Source| {
        let inside = file.path.strip_prefix(root).unwrap().trim_matches('/');
        let mut names: Vec<String> = inside.split('/').map(str::to_owned).collect();
        let last = names.pop().unwrap();
        names.extend(match last.trim_end_matches(".rs") {
            "mod" | "lib" | "main" => None,
            name => Some(name.to_owned()),
        });
        names
    };
    let known: BTreeSet<Vec<String>> = files.iter().map(&module).collect();
    let of_file = |file: &Source| {
        let own = module(file);
        let code = file.code.split("#[cfg(test)]\nmod tests").next().unwrap();
        let named = paths(code).into_iter().map(|path| {
            let mut at = if path[0] == "crate" {
                Vec::new()
            } else {
                own.clone()
            };
            for name in path
                .iter()
                .filter(|name| !matches!(**name, "crate" | "self"))
            {
                match *name {
                    "super" => drop(at.pop()),
                    name => at.push(name.to_owned()),
                }
            }
            while !known.contains(&at) {
                at.pop();
            }
            at
        });
        let named = named.filter(|to| !to.is_empty() && *to != own).collect();
        (own, named)
    };
    files.iter().map(of_file).collect()
}

/// The modules below `inside` that a module reaches through imports.
fn reached<'a>(
    all: &'a BTreeMap<Vec<String>, BTreeSet<Vec<String>>>,
    from: &'a Vec<String>,
    inside: &[String],
) -> BTreeSet<&'a Vec<String>> {
    let (mut seen, mut work) = (BTreeSet::new(), vec![from]);
    while let Some(module) = work.pop() {
        let next = all.get(module).into_iter().flatten();
        work.extend(next.filter(|to| to.starts_with(inside) && seen.insert(*to)));
    }
    seen
}

#[track_caller]
fn none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn layers_name_only_what_lies_below_them() {
    let mut problems = Vec::new();
    for file in sources(&["src"]) {
        let layer = file.layer().unwrap();
        if layer == "lib" {
            continue;
        }
        let Some((_, below)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
            problems.push(format!("{}: no rule for the module `{layer}`", file.path));
            continue;
        };
        for name in file.after("crate").filter_map(next_name) {
            if name != layer && !below.contains(&name) {
                problems.push(format!("{}: names crate::{name}", file.path));
            }
        }
    }
    none(&problems);
}

/// Of the instruction set a backend knows one thing, the names of atomic operations, which the IR uses too; of
/// the runtime the layout of what compiled code is handed. `install.rs` and `library.rs` are where both sides meet.
#[test]
fn backends_see_the_ir_and_the_abi() {
    let mut problems = Vec::new();
    for file in sources(&["src/backend"]) {
        let isa = file
            .after("crate")
            .filter_map(|rest| rest.strip_prefix("::isa"));
        for name in isa.filter_map(next_name).filter(|name| *name != "AtomicOp") {
            problems.push(format!("{}: names crate::isa::{name}", file.path));
        }
        if !matches!(
            &*file.path,
            "src/backend/install.rs" | "src/backend/library.rs"
        ) {
            let runtime = file.after("visa_runtime").filter_map(next_name);
            for name in runtime.filter(|name| *name != "abi") {
                problems.push(format!("{}: names visa_runtime::{name}", file.path));
            }
        }
    }
    none(&problems);
}

#[test]
fn foreign_crates_stay_where_they_belong() {
    let mut problems = Vec::new();
    for file in shipped() {
        for (name, places) in FENCED {
            if !file.is_in(places) && file.after(name).filter_map(next_name).next().is_some() {
                problems.push(format!("{}: names {name}", file.path));
            }
        }
    }
    none(&problems);
}

#[test]
fn the_runtime_knows_no_compiler() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/runtime/Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    assert!(
        !manifest.contains("visa-jit"),
        "runtime depends on visa-jit"
    );
}

/// Those who depend on the library do not build what only the command needs.
#[test]
fn the_library_knows_no_command() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let (_, rest) = manifest.split_once("\n[dependencies]\n").unwrap();
    let (shipped, _) = rest.split_once("\n[").unwrap();
    let named = |name: &&str| {
        let mut lines = shipped.lines();
        lines.any(|line| line.split([' ', '.', '=']).next() == Some(name))
    };
    assert!(named(&"visa-runtime"), "no dependencies found");
    let of_the_command = [
        "clap",
        "half",
        "iced-x86",
        "indicatif",
        "npyz",
        "png",
        "visa-jit-cli",
        "visa-test-common",
        "yaxpeax-arch",
        "yaxpeax-arm",
    ];
    let found: Vec<&str> = of_the_command.into_iter().filter(named).collect();
    assert!(found.is_empty(), "the library depends on {found:?}");
}

#[test]
fn unsafe_code_is_fenced() {
    let outside = |file: &Source| !file.is_in(UNSAFE) && file.after("unsafe").next().is_some();
    let found: Vec<String> = shipped()
        .into_iter()
        .filter(outside)
        .map(|file| format!("{}: unsafe", file.path))
        .collect();
    none(&found);
}

/// `SECURITY.md` names each file of the backends that has unsafe code.
#[test]
fn the_list_of_unsafe_code_is_complete() {
    let security = concat!(env!("CARGO_MANIFEST_DIR"), "/SECURITY.md");
    let security = fs::read_to_string(security).unwrap();
    let row = security
        .lines()
        .find(|row| row.starts_with("| `src/backend`"));
    let named: Vec<&str> = row
        .unwrap()
        .split('`')
        .filter(|part| part.ends_with(".rs"))
        .collect();
    let mut found = Vec::new();
    for file in sources(&["src/backend"]) {
        if file.after("unsafe").next().is_some() {
            found.push(file.path["src/backend/".len()..].to_owned());
        }
    }
    found.sort();
    assert_eq!(named, found);
}

#[test]
fn paths_in_braces_are_paths() {
    let found = paths("use super::{a::{self, B}, c::D as E};\nfn f(x: crate::g::H) {}");
    let joined: BTreeSet<String> = found.iter().map(|path| path.join("::")).collect();
    let all = [
        "crate::g::H",
        "super::a::B",
        "super::a::self",
        "super::c::D",
    ];
    assert_eq!(joined.iter().collect::<Vec<_>>(), all);
}

#[test]
fn files_import_each_other_in_small_circles() {
    let mut problems = Vec::new();
    for &(folder, most) in CIRCLES {
        let (root, inside) = match folder.strip_prefix("src/") {
            Some(inside) => ("src", vec![inside.to_owned()]),
            None => (folder, Vec::new()),
        };
        let all = imports(root);
        let files: Vec<&Vec<String>> = all.keys().filter(|m| m.starts_with(&inside)).collect();
        assert!(files.len() > 5, "{folder}");
        let reach: BTreeMap<_, _> = files
            .iter()
            .map(|file| (*file, reached(&all, file, &inside)))
            .collect();
        for file in &files {
            let circle = reach[file].iter().filter(|to| reach[**to].contains(file));
            let circle: Vec<String> = circle.map(|module| module.join("::")).collect();
            if circle.len() > most {
                problems.push(format!(
                    "{}: in a circle of {}",
                    file.join("::"),
                    circle.join(", ")
                ));
            }
        }
        if folder == "src/engine" {
            let head = files.iter().filter(|file| all[**file].contains(&inside));
            problems.extend(head.map(|f| format!("{}: imports from mod.rs", f.join("::"))));
        }
    }
    none(&problems);
}

#[test]
fn files_are_small() {
    let mut problems = Vec::new();
    for file in sources(&[
        "src", "cli", "runtime", "opencl", "fuzzing", "xtask", "examples", "benches", "tests",
    ]) {
        let exempt = LONG.contains(&file.path.as_str());
        if file.lines > MAX_LINES && !exempt {
            problems.push(format!("{}: {} lines", file.path, file.lines));
        }
        if file.lines <= MAX_LINES && exempt {
            problems.push(format!("{}: need not be in LONG", file.path));
        }
    }
    none(&problems);
}
