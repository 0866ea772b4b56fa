//! From machine code to lines of vISA and of the source.

use std::collections::BTreeSet;

use super::*;
use visa_jit::backend::OobPolicy;
use visa_jit::front::text;
use visa_jit::interp::InterpOptions;
use visa_jit::{DiskCache, Launch};

/// The source as it was when the zebin was made.
const SOURCE: &str = include_str!("lines.cl");

/// Line of the source that has this text.
pub fn line(text: &str) -> u32 {
    let found = SOURCE.lines().position(|l| l.contains(text));
    1 + found.unwrap() as u32
}

fn faults(options: EngineOptions) -> Vec<String> {
    let engine = Engine::with_options(options).unwrap();
    let memory = engine.memory();
    let (out, input) = (memory.alloc(60).unwrap(), memory.alloc(64).unwrap());
    let launch = Launch::new([16, 1, 1]).arg(0, &out).arg(1, &input);
    let launch = launch.oob(OobPolicy::Report);
    let report = kernel(&engine).launch(&launch).unwrap();
    report.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn code_has_lines_of_visa_and_source() {
    for backend in backends() {
        let engine = Engine::with_options(options(backend)).unwrap();
        let kernel = kernel(&engine);
        let code = kernel.code(OobPolicy::default()).unwrap();
        let lines = &code.object().lines;
        let rows = lines.rows();
        assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
        assert!(
            rows.iter()
                .all(|r| (r.0 as usize) <= code.object().code.len())
        );
        let visa: Vec<&str> = kernel.text().lines().collect();
        let used: BTreeSet<u32> = rows.iter().map(|r| r.1).filter(|l| *l != 0).collect();
        let named = |name: &str| {
            let mut of = used
                .iter()
                .filter(|l| visa[**l as usize - 1].contains(name));
            let line = *of
                .next()
                .unwrap_or_else(|| panic!("{backend:?}: no {name}"));
            lines.source().at(line)
        };
        let file = "/src/lines.cl";
        // The function's text is after the kernel's.
        assert_eq!(
            named("xor ("),
            Some((file, line("return r ^"))),
            "{backend:?}"
        );
        assert_eq!(
            named("lsc_store.ugm.wb.wb (M1, 8)"),
            Some((file, line("out[i] =")))
        );
        assert_eq!(lines.source().files(), [file]);
        // `LOC 0`, and what precedes the first one.
        let first = kernel
            .text()
            .lines()
            .position(|l| l.contains("or (M1_NM"))
            .unwrap();
        assert_eq!(lines.source().at(first as u32 + 1), None);
    }
}

/// As the vendor's assembler has it: `GenX_IR -output -emitLocation` names line 9 for `add`, whatever is between.
#[test]
fn locations_hold_up_to_the_next() {
    let source = "\
        .version 3.6\n.kernel \"k\"\n.kernel_attr SimdSize=8\n.decl V32 v_type=G type=d num_elts=8\n\
        .function \"k\"\nk:\n\
        mov (M1,8) V32(0,0)<1> 0x1:d\n\
        FILE \"a.cl\"\nLOC 9\nlabel:\nadd (M1,8) V32(0,0)<1> V32(0,0)<1;1,0> 0x1:d\n\
        LOC 0\nadd (M1,8) V32(0,0)<1> V32(0,0)<1;1,0> 0x2:d\n\
        FILE \"b.h\"\nLOC 2\n.loc 3\nret (M1,1)\n";
    let module = text::parse("t", source).unwrap();
    let map = module.source_map();
    let at = |needle: &str| {
        let found = source.lines().position(|l| l.contains(needle)).unwrap();
        map.at(found as u32 + 1)
    };
    assert_eq!(at("mov"), None);
    assert_eq!(at("add (M1,8)"), Some(("a.cl", 9)));
    assert_eq!(at("0x2:d"), None);
    assert_eq!(at("ret"), Some(("b.h", 3)));
    assert_eq!(map.files(), ["a.cl", "b.h"]);
}

#[test]
fn faults_name_the_source() {
    let place = format!("(/src/lines.cl:{}): `lsc_store` write", line("out[i] ="));
    let expected = faults(EngineOptions {
        interpret: Some(InterpOptions::default()),
        ..options(BackendKind::Cranelift)
    });
    assert_eq!(expected.len(), 1);
    assert!(expected[0].contains(&place), "{}", expected[0]);
    for backend in backends() {
        assert_eq!(faults(options(backend)), expected);
    }
}

/// Lines of code from the disk are those of code that was compiled.
#[test]
fn lines_survive_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let made = || {
        let engine = Engine::with_options(EngineOptions {
            disk: Some(DiskCache::at(dir.path().join("cache"))),
            ..options(BackendKind::Cranelift)
        });
        let engine = engine.unwrap();
        let code = kernel(&engine).code(OobPolicy::default()).unwrap();
        (code.object().lines.clone(), engine.cache_stats().disk_hits)
    };
    let (cold, warm) = (made(), made());
    assert_eq!((cold.1, warm.1), (0, 1));
    assert!(!cold.0.source().is_empty());
    assert_eq!(cold.0, warm.0);
}
