//! Programs that reach the driver through the SYCL runtime: it must take OpenCL's devices, and find its own libraries.
//!
//! The wheels of PyPI put the runtime into the `lib` folder of an environment. Its loader of OpenCL there needs libraries beside it
//! that it does not name, so that folder must be among those of the system's loader.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Chooses devices in the SYCL runtime.
const SELECTOR: &str = "ONEAPI_DEVICE_SELECTOR";
/// OpenCL's GPUs.
const DEVICES: &str = "opencl:gpu";
const LIBRARIES: &str = "LD_LIBRARY_PATH";
/// The file of the SYCL runtime, before its version.
const RUNTIME: &str = "libsycl.so";
/// Folders of environments, as `activate` and conda say them.
const ENVIRONMENTS: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// What the SYCL runtime is told, for a program if there is one.
pub fn variables(program: Option<&OsStr>) -> Vec<(&'static str, OsString)> {
    let mut all = Vec::new();
    // Who chose one device of several has a reason.
    if std::env::var_os(SELECTOR).is_none_or(|text| text.is_empty()) {
        all.push((SELECTOR, DEVICES.into()));
    }
    let file =
        program.and_then(|program| found(program, &std::env::var_os("PATH").unwrap_or_default()));
    let of_program = file.as_deref().and_then(Path::parent);
    let environments = ENVIRONMENTS.into_iter().filter_map(std::env::var_os);
    let prefixes = of_program.and_then(Path::parent).map(Path::to_owned);
    let prefixes = prefixes.into_iter().chain(environments.map(PathBuf::from));
    let mut folders = prefixes.map(|prefix| prefix.join("lib"));
    if let Some(folder) = folders.find(|folder| has_runtime(folder)) {
        let old = std::env::var_os(LIBRARIES);
        all.push((LIBRARIES, in_front(folder, old.as_deref())));
    }
    all
}

/// The program's file, as the system finds it. Links are kept: Python is one in an environment.
fn found(program: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let runs = |file: &PathBuf| {
        let data = file.metadata();
        data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let program = Path::new(program);
    if program.components().count() > 1 {
        return std::path::absolute(program).ok().filter(runs);
    }
    let mut files = std::env::split_paths(path).map(|folder| folder.join(program));
    files.find(runs)
}

fn has_runtime(folder: &Path) -> bool {
    let files = folder.read_dir().into_iter().flatten().flatten();
    let mut names = files.map(|file| file.file_name());
    names.any(|name| name.as_encoded_bytes().starts_with(RUNTIME.as_bytes()))
}

/// A list of folders with one more at its start.
fn in_front(folder: PathBuf, list: Option<&OsStr>) -> OsString {
    let mut all = folder.into_os_string();
    if let Some(list) = list.filter(|list| !list.is_empty()) {
        all.push(":");
        all.push(list);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn environments_are_found_by_their_programs() {
        let root = tempfile::tempdir().unwrap();
        let (bin, lib) = (root.path().join("bin"), root.path().join("lib"));
        fs::create_dir(&bin).unwrap();
        fs::create_dir(&lib).unwrap();
        assert!(!has_runtime(&lib));
        fs::write(lib.join("libsycl.so.9"), "").unwrap();
        assert!(has_runtime(&lib));
        let python = bin.join("python");
        let path = std::env::join_paths(["/nowhere", bin.to_str().unwrap()]).unwrap();
        assert_eq!(found(OsStr::new("python"), &path), None);
        std::os::unix::fs::symlink("/bin/sh", &python).unwrap();
        assert_eq!(found(OsStr::new("python"), &path), Some(python.clone()));
        assert_eq!(found(python.as_os_str(), OsStr::new("")), Some(python));
        let told = variables(Some(bin.join("python").as_os_str()));
        let folders = told.iter().find(|(name, _)| *name == LIBRARIES);
        let first = folders.map(|(_, list)| std::env::split_paths(list).next());
        assert_eq!(first.flatten(), Some(lib));
    }

    #[test]
    fn folders_that_were_there_stay() {
        let list = in_front("/a".into(), Some(OsStr::new("/b:/c")));
        assert_eq!(list, "/a:/b:/c");
        assert_eq!(in_front("/a".into(), Some(OsStr::new(""))), "/a");
    }
}
