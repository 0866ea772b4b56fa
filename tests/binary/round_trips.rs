//! Text to bytes and back.

use crate::program::program;
use std::path::{Path, PathBuf};
use visa_jit::container::{Zebin, ZebinKernel};
use visa_jit::front::binary::{self, Fault};
use visa_jit::front::text;
use visa_jit::isa::Platform;
use visa_jit::module::Module;

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

/// The first `most` kernels of a zebin, each with its functions, and what names it in messages.
pub fn programs(path: &Path, most: usize) -> Vec<(String, Vec<Module>)> {
    let zebin = Zebin::parse(&std::fs::read(path).unwrap()).unwrap();
    let read = |name: &String, text: &String| text::parse(name, text).unwrap();
    let program = |(index, kernel): (usize, &ZebinKernel)| {
        let own = zebin.functions.iter().filter(|f| f.owner == Some(index));
        let functions = own.map(|f| read(&f.name, &f.visa.text));
        let kernel = (&kernel.name, read(&kernel.name, &kernel.visa.text));
        let modules = std::iter::once(kernel.1).chain(functions).collect();
        (format!("{}: {}", path.display(), kernel.0), modules)
    };
    let kernels = zebin.kernels.iter().enumerate();
    kernels.take(most).map(program).collect()
}

/// As every binary has it: of its version.
pub fn as_binary(modules: &[Module]) -> Vec<Module> {
    let mut modules = modules.to_vec();
    for module in &mut modules {
        module.version = (4, 1);
    }
    modules
}

#[test]
fn kernels_come_back() {
    let (mut good, mut refused) = (0, Vec::new());
    // Other files of each device, in a plain run.
    let every = if visa_test_common::full() { 1 } else { 13 };
    for (platform, path) in zebins().into_iter().step_by(every) {
        for (name, modules) in programs(&path, usize::MAX) {
            let bytes = match binary::write(&modules, Some(platform)) {
                Ok(bytes) => bytes,
                Err(e) => {
                    assert_eq!(e.fault, Fault::Unwritable, "{name}: {e}");
                    refused.push(format!("{name}: {e}"));
                    continue;
                }
            };
            let back =
                binary::read(&bytes, Some(platform)).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(back == as_binary(&modules), "{name}");
            good += modules.len();
        }
    }
    println!("{good} kernels and functions, {} refused", refused.len());
    for why in &refused {
        let known = ["its address in one register", "a cache control of code 7"];
        assert!(known.iter().any(|k| why.contains(k)), "{why}");
    }
    // Files have different numbers of kernels, so a plain run asks for half of its share.
    let least = visa_test_common::share(1951, 26) as usize;
    assert!(good >= least && refused.len() <= 11, "{good}");
}

/// Names of surfaces and samplers are their numbers where a binary was read, and more so in what the vendor's assembler prints.
pub fn without_names(modules: &[Module]) -> Vec<Module> {
    let mut modules = as_binary(modules);
    for module in &mut modules {
        let vars = &mut module.vars;
        let lists = [
            &mut vars.surface,
            &mut vars.sampler,
            &mut vars.predicate,
            &mut vars.address,
        ];
        for var in lists.into_iter().flatten() {
            var.name.clear();
            var.v_name = None;
        }
    }
    modules
}

/// A program for each line of `tests/front/lines.txt`.
pub fn lines() -> Vec<(&'static str, Module)> {
    let lines = include_str!("../front/lines.txt").lines();
    let lines = lines.filter(|l| !l.is_empty() && !l.starts_with('#'));
    let inputs = lines.map(|l| l.split_once(" => ").map_or(l, |(input, _)| input));
    let parsed = inputs.map(|l| (l, text::parse("line", &program(l)).unwrap()));
    parsed.collect()
}

/// Lines that the format has no place for.
const UNWRITABLE: &str = include_str!("unwritable.txt");

#[test]
fn every_construct_comes_back() {
    let (mut good, mut refused) = (0, String::new());
    for (line, module) in lines() {
        let modules = [module];
        let bytes = match binary::write(&modules, Some(Platform::Skl)) {
            Ok(bytes) => bytes,
            Err(e) => {
                assert_eq!(e.fault, Fault::Unwritable, "{line}: {e}");
                let why = e.message.split_once(": ").map_or("", |(_, why)| why);
                refused += &format!("{line} => {why}\n");
                continue;
            }
        };
        let back = binary::read(&bytes, Some(Platform::Skl));
        let back = back.unwrap_or_else(|e| panic!("{line}: {e}"));
        let (got, want) = (without_names(&back), without_names(&modules));
        assert!(
            got == want,
            "{line}\n{:?}\n{:?}",
            got[0].insts[1],
            want[0].insts[1]
        );
        good += 1;
    }
    assert!(good > 200, "{good}");
    if std::env::var_os("BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/binary/unwritable.txt");
        std::fs::write(path, &refused).unwrap();
    } else {
        assert_eq!(
            refused, UNWRITABLE,
            "BLESS=1 rewrites tests/binary/unwritable.txt"
        );
    }
}
