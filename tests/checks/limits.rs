//! What checks refuse, what they cost, and what they do with very many errors.

use super::{bytes_of, counted, engine, files, kernel, program_of, strategy};
use visa_jit::backend::{Check, Checks, CodeObject, OobPolicy};
use visa_jit::engine::Suppressions;
use visa_jit::{DiskCache, Engine, EngineOptions, Launch, Program};
use visa_runtime::{DeviceMemory, FaultKind, LaunchStatus};
use visa_test_common::full;

#[test]
fn a_million_errors_are_counted() {
    for file in files().iter().copied() {
        let engine = engine(Check::Memory, false);
        let o = engine.memory().alloc(16).unwrap();
        let launch = Launch::new([1 << 20, 1, 1]).local([256, 1, 1]);
        let launch = launch.arg(0, &o).arg(1, 0);
        let report = kernel(&engine, file, "store_int").launch(&launch).unwrap();
        assert_eq!(report.fault_count, (1 << 20) - 4, "{file}");
        // Beyond device memory it is an access out of bounds.
        let kinds: Vec<FaultKind> = report.faults.iter().map(|f| f.kind).collect();
        assert!(kinds.contains(&FaultKind::Allocation) && kinds.contains(&FaultKind::Bounds));
        assert!(report.faults.len() <= 16, "{file}");
        assert_eq!(counted(&report), report.fault_count, "{file}");
    }
}

#[test]
fn a_trap_stops_before_the_access() {
    let engine = engine(Check::Memory, false);
    let o = engine.memory().alloc(256).unwrap();
    let launch = Launch::new([64, 1, 1]).arg(0, &o).arg(1, 64);
    let launch = launch.oob(OobPolicy::Trap);
    let report = kernel(&engine, "pvc", "store_int").launch(&launch).unwrap();
    assert_eq!(report.status, LaunchStatus::Faulted);
    assert_eq!(o.to_vec(), vec![0; 256]);
    assert_eq!(report.faults[0].kind, FaultKind::Allocation);
}

#[test]
fn code_compiled_ahead_of_time_has_no_checks() {
    for check in [Check::Memory, Check::Barrier] {
        let backend = strategy().host().unwrap();
        let kernel = kernel(&engine(check, false), "pvc", "store_int");
        let made = kernel.ahead_of_time(backend.as_ref(), OobPolicy::default());
        let error = made.err().map(|e| e.to_string()).unwrap();
        let says = format!("--check {} for code compiled ahead of time", check.name());
        assert!(error.contains(&says), "{error}");
    }
}

#[test]
fn memory_without_shadow_is_refused() {
    let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
    let options = EngineOptions::default().check(Check::Memory);
    let error = Engine::with_memory(options, memory).err().unwrap();
    assert!(
        error.to_string().contains("DeviceMemory::checked"),
        "{error}"
    );
    let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
    let options = EngineOptions {
        interpret: Some(Default::default()),
        ..EngineOptions::default()
    };
    let error = Engine::with_memory(options.check(Check::Init), memory).err();
    let error = error.map(|e| e.to_string()).unwrap();
    assert!(error.contains("DeviceMemory::tracked"), "{error}");
}

/// Kernels of each source, with barriers and without, and what begins the names of their files. A plain run takes the first two.
const OF_EACH_SOURCE: [(&str, &str); 5] = [
    ("", "gather"),
    ("barrier-", "tree"),
    ("init-", "private_array"),
    ("", "store_int"),
    ("race-", "local_read"),
];

/// The SSA and the machine code of kernels, of programs that are found by the names of their files.
fn made(file: &str, program: impl Fn(&str) -> Program) -> Vec<(String, CodeObject)> {
    let kernels = &OF_EACH_SOURCE[..if full() { 5 } else { 2 }];
    let made = kernels.iter().map(|(prefix, name)| {
        let program = program(&format!("{prefix}{file}"));
        let kernel = program.kernel(name).unwrap();
        let code = kernel.code(OobPolicy::default()).unwrap();
        (kernel.ssa(true).unwrap().to_string(), code.object().clone())
    });
    made.collect()
}

/// Engines with checks that work in the same process, and with the same directory of compiled code, memory that they keep account in, and
/// options that only they look at: code without checks is always the same, byte for byte, and theirs is always another.
#[test]
fn code_without_checks_is_what_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let options = || EngineOptions {
        strategy: strategy(),
        memory_bytes: 1 << 28,
        disk: Some(DiskCache::at(dir.path())),
        ..EngineOptions::default()
    };
    let before = engine(Check::None, false);
    // Those that a plain run leaves out are parts of all.
    let checks = ["barrier", "all", "memory", "init", "race"];
    let checks = checks.into_iter().take(if full() { 5 } else { 2 });
    let checked = checks.map(|checks| {
        let options = options().check(Checks::parse(checks).unwrap());
        (checks, Engine::with_options(options).unwrap())
    });
    let checked: Vec<_> = checked.collect();
    let looked_at = EngineOptions {
        race_same_value: true,
        suppress: Suppressions::parse("all").unwrap(),
        ..options()
    };
    let accounted = DeviceMemory::checked(1 << 28).unwrap().tracked().unwrap();
    for file in files().iter().copied() {
        let wanted = made(file, |file| program_of(&before, file));
        for (ssa, _) in &wanted {
            assert!(!ssa.contains("check.") && !ssa.contains("suspect") && !ssa.contains("marks"));
        }
        for (checks, engine) in &checked {
            for ((ssa, object), (with, more)) in wanted
                .iter()
                .zip(made(file, |file| program_of(engine, file)))
            {
                // A check of barriers changes nothing where there are none.
                let same = *checks == "barrier" && !ssa.contains("suspend");
                assert_eq!(*ssa == with, same, "{file} {checks}: {with}");
                assert_eq!(*object == more, same, "{file} {checks}");
            }
        }
        for without in [
            Engine::with_options(options()).unwrap(),
            // Once more, from the directory.
            Engine::with_options(options()).unwrap(),
            Engine::with_options(looked_at.clone()).unwrap(),
            Engine::with_memory(options(), accounted.clone()).unwrap(),
        ] {
            let read = |file: &str| without.program_from_zebin(&bytes_of(file), None);
            let made = made(file, |file| read(file).unwrap());
            assert!(made == wanted, "{file}: other code without checks");
        }
    }
}
