//! What checks refuse, what they cost, and what they do with very many errors.

use super::{counted, engine, files, kernel, strategy};
use visa_jit::backend::{Check, OobPolicy};
use visa_jit::{Engine, EngineOptions, Launch};
use visa_runtime::{DeviceMemory, FaultKind, LaunchStatus};

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

#[test]
fn code_without_checks_is_what_it_was() {
    let [plain, checked] = [Check::None, Check::Memory].map(|check| engine(check, false));
    for file in files().iter().copied() {
        let code = |engine: &Engine| {
            let kernel = kernel(engine, file, "store_int");
            let ssa = kernel.ssa(true).unwrap().to_string();
            (
                ssa,
                kernel
                    .code(OobPolicy::default())
                    .unwrap()
                    .object()
                    .code
                    .clone(),
            )
        };
        let ((ssa, bytes), (with, more)) = (code(&plain), code(&checked));
        assert!(!ssa.contains("check."), "{ssa}");
        assert!(with.contains("check."), "{with}");
        assert!(bytes.len() < more.len());
    }
}
