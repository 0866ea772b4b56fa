//! Where the compiler is looked for.
//!
//! In this order: what the environment variable names; the library by the names that distributions give it, in the loader's search
//! path; libraries in the usual directories, where names have a version; and last the compiler for older devices that current
//! packages put beside the one for newer ones.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{About, OCLOC_ENV, Ocloc, open};
use crate::container::error::ContainerError;

/// Its name in every distribution that is known to have it.
const NAME: &str = "libocloc.so";
/// What the loader is asked for; the second is what a version number would make of the name.
const LIBRARY_NAMES: [&str; 2] = [NAME, "libocloc.so.1"];
/// For Gen8 to Gen11, of Intel's and Gentoo's packages. It knows fewer devices of today than the others.
const LEGACY_NAME: &str = "libocloc_legacy1.so";
/// What every name starts with; builds of one's own are called `libocloc-26.27.1.so`.
const PREFIX: &str = "libocloc";
/// Where packages put it: of Debian, Fedora, Arch, Yocto, and what one installs oneself.
const DIRECTORIES: [&str; 8] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/intel-opencl",
    "/usr/lib64",
    "/usr/lib64/intel-opencl",
    "/usr/lib",
    "/usr/lib/intel-opencl",
    "/usr/local/lib64",
    "/usr/local/lib",
];
/// Names the directory of the conda environment that is in use.
const CONDA_VARIABLE: &str = "CONDA_PREFIX";

/// How the compiler was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// The environment variable names it, or the caller.
    Variable,
    /// By its name, in the loader's search path.
    Loader,
    /// In one of the directories where packages put it.
    Directory,
}

/// A name that was tried and not found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The name or path.
    pub name: String,
    /// What the loader or the system said.
    pub message: String,
}

/// Which compiler is used, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// The compiler.
    pub compiler: Option<About>,
    /// What was tried before it was found, or all that was.
    pub tried: Vec<Attempt>,
}

impl Ocloc {
    /// Loads the library named by [`OCLOC_ENV`], or else the system's.
    ///
    /// # Errors
    /// [`ContainerError::OclocMissing`] with everything that was tried; [`ContainerError::OclocBroken`] if the variable's library is
    /// not the compiler.
    pub fn load() -> Result<Self, ContainerError> {
        if let Some(path) = variable() {
            return Self::named(&path);
        }
        let (found, tried) = Self::search();
        found.ok_or_else(|| {
            let said = |attempt: &Attempt| format!("{}: {}", attempt.name, attempt.message);
            let tried: Vec<_> = tried.iter().map(said).collect();
            ContainerError::OclocMissing {
                detail: tried.join("; "),
            }
        })
    }

    /// Finds the compiler and asks it what it is.
    ///
    /// # Errors
    /// When it was found and cannot be asked.
    pub fn survey() -> Result<Survey, ContainerError> {
        let (found, tried) = match variable() {
            Some(path) => match Self::named(&path) {
                Ok(found) => (Some(found), Vec::new()),
                Err(error) => (None, vec![attempt(Path::new(&path), &reason(error))]),
            },
            None => Self::search(),
        };
        let compiler = found.map(|found| found.about()).transpose()?;
        Ok(Survey { compiler, tried })
    }

    /// What the variable names: a library, or a program.
    fn named(path: &OsStr) -> Result<Self, ContainerError> {
        let path = Path::new(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match name.contains(".so") {
            true => Self::load_from(path),
            false => Self::run_from(path),
        }
    }

    /// The first library that loads and is the compiler, and what was tried before it.
    fn search() -> (Option<Self>, Vec<Attempt>) {
        let mut tried = Vec::new();
        let mut look = |path: &Path, found_by: FoundBy| {
            let found = open(path.as_os_str())
                .and_then(|library| Self::bind(library, path, found_by).map_err(reason));
            match found {
                Ok(found) => Some(found),
                Err(message) => {
                    tried.push(attempt(path, &message));
                    None
                }
            }
        };
        for name in LIBRARY_NAMES {
            if let Some(found) = look(Path::new(name), FoundBy::Loader) {
                return (Some(found), tried);
            }
        }
        let directories = directories();
        let libraries = libraries(&directories);
        for path in &libraries {
            if let Some(found) = look(path, FoundBy::Directory) {
                return (Some(found), tried);
            }
        }
        if let Some(found) = look(Path::new(LEGACY_NAME), FoundBy::Loader) {
            return (Some(found), tried);
        }
        if libraries.is_empty() {
            let looked: Vec<_> = directories
                .iter()
                .map(|d| d.display().to_string())
                .collect();
            let message = format!("no such file in {}", looked.join(", "));
            tried.push(attempt(Path::new("libocloc*.so*"), &message));
        }
        (None, tried)
    }
}

/// A message mostly starts with the name, which need not be said twice.
pub(super) fn attempt(path: &Path, message: &str) -> Attempt {
    let name = path.display().to_string();
    let rest = message.strip_prefix(&name);
    let rest = rest.and_then(|rest| rest.strip_prefix(": "));
    Attempt {
        message: rest.unwrap_or(message).to_owned(),
        name,
    }
}

/// Why a library or program is not taken.
fn reason(error: ContainerError) -> String {
    match error {
        ContainerError::OclocMissing { detail } => detail,
        ContainerError::OclocBroken { message, .. } => message,
        other => other.to_string(),
    }
}

/// What the environment variable names, if it is set.
fn variable() -> Option<OsString> {
    std::env::var_os(OCLOC_ENV).filter(|path| !path.is_empty())
}

fn directories() -> Vec<PathBuf> {
    let conda = std::env::var_os(CONDA_VARIABLE).filter(|path| !path.is_empty());
    let conda = conda.map(|prefix| Path::new(&prefix).join("lib"));
    conda
        .into_iter()
        .chain(DIRECTORIES.map(PathBuf::from))
        .collect()
}

/// The compiler's libraries of these directories: those for older devices last, else the plain name first and the newest next.
fn libraries(directories: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in directories {
        // Most do not exist.
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_library(name))
            .collect();
        names.sort_by_cached_key(|name| (name != NAME, Reverse(version(name))));
        found.extend(names.iter().map(|name| directory.join(name)));
    }
    let legacy = |path: &PathBuf| path.to_string_lossy().contains("_legacy");
    found.sort_by_key(legacy);
    found
}

fn is_library(name: &str) -> bool {
    name.starts_with(PREFIX)
        && (name.ends_with(".so") || name.contains(".so."))
        && !name.ends_with(".debug")
}

/// The numbers in a name.
fn version(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versioned_libraries_are_found() {
        let directory = tempfile::tempdir().unwrap();
        for name in [
            "libocloc_legacy1.so",
            "libocloc-24.9.1.so",
            "libocloc-24.35.1.so",
            "libocloc.so.debug",
            "libocl.so",
            "libocloc.so",
            "libocloc.so.2",
        ] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let found = libraries(&["/nonexistent".into(), directory.path().to_owned()]);
        let names: Vec<_> = found
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "libocloc.so",
                "libocloc-24.35.1.so",
                "libocloc-24.9.1.so",
                "libocloc.so.2",
                "libocloc_legacy1.so"
            ]
        );
    }

    #[test]
    fn what_is_no_library_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("libocloc.so");
        std::fs::write(&path, "no library").unwrap();
        let error = Ocloc::named(path.as_os_str()).unwrap_err();
        assert!(matches!(error, ContainerError::OclocMissing { .. }));
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
    }
}
