//! Text to bytes and back.

use std::path::{Path, PathBuf};
use visa_jit::container::Zebin;
use visa_jit::front::{binary, text};
use visa_jit::isa::Platform;
use visa_jit::module::{Module, ModuleKind};

/// Zebins that are checked in, by device.
pub fn zebins() -> Vec<(Platform, PathBuf)> {
    let bin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/bin");
    let mut found = Vec::new();
    for folder in std::fs::read_dir(bin).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let device = name.strip_suffix("-26").unwrap_or(&name);
        let platform = device.parse().unwrap_or_else(|e| panic!("{device}: {e:?}"));
        for file in std::fs::read_dir(folder.path()).unwrap() {
            found.push((platform, file.unwrap().path()));
        }
    }
    found.sort();
    found
}

/// Kernels of a zebin and their functions, with what names them in messages.
pub fn modules(path: &Path) -> Vec<(String, Module)> {
    let zebin = Zebin::parse(&std::fs::read(path).unwrap()).unwrap();
    let kernels = zebin.kernels.iter().map(|k| (&k.name, &k.visa.text));
    let functions = zebin.functions.iter().map(|f| (&f.name, &f.visa.text));
    let name = |n: &String| format!("{}: {n}", path.display());
    let read = |(n, t): (&String, &String)| (name(n), text::parse(n, t).unwrap());
    kernels.chain(functions).map(read).collect()
}

/// As every binary has it: of its version, without declarations of functions that are not in the file.
pub fn as_binary(module: &Module) -> Module {
    let mut module = module.clone();
    module.version = (4, 1);
    module.funcdecls.clear();
    module
}

#[test]
fn kernels_come_back() {
    let (mut good, mut refused) = (0, Vec::new());
    for (platform, path) in zebins() {
        for (name, module) in modules(&path) {
            let module = as_binary(&module);
            let bytes = match binary::write(&[module.clone()], Some(platform)) {
                Ok(bytes) => bytes,
                Err(e) => {
                    refused.push(format!("{name}: {e}"));
                    continue;
                }
            };
            let back = binary::read(&bytes, Some(platform)).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(back == [module.clone()], "{name}");
            good += 1;
        }
    }
    println!("{good} kernels and functions, {} refused", refused.len());
    panic!("{}", refused.join("\n"));
}
