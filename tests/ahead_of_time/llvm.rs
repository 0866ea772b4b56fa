//! The same with LLVM, and what it refuses.

use super::*;

/// Runs `compile` on saxpy, which must refuse.
#[track_caller]
fn refused(to: &str, options: &[&str], exit: i32, says: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join(to);
    let args = ["compile", SAXPY, "-o", out.to_str().unwrap()];
    let (code, _, errors) = output(command(&[&args, options].concat()));
    assert_eq!(code, exit, "{options:?}: {errors}");
    for part in says {
        assert!(errors.contains(part), "{options:?}: {part}: {errors}");
    }
    assert!(!out.exists());
}

#[test]
fn code_generators_have_names() {
    refused(
        "x.o",
        &["--backend", "gcc"],
        2,
        &["gcc", "cranelift", "llvm"],
    );
    refused("x.o", &["--backend", "interp"], 2, &["interp", "cranelift"]);
    refused(
        "x.ll",
        &["--backend", "cranelift"],
        3,
        &["llvm-ir", "--backend cranelift"],
    );
}

#[test]
#[cfg(not(feature = "llvm-codegen"))]
fn without_llvm_compile_says_how_to_get_it() {
    let says = ["llvm-19-dev", "libpolly-19-dev", "--features llvm"];
    refused("x.o", &["--backend", "llvm"], 3, &says);
    refused("x.so", &["--backend", "llvm"], 3, &says);
    refused("x.ll", &[], 3, &says);
    refused("x.o", &["--emit", "llvm-ir"], 3, &says);
}

#[cfg(feature = "llvm-codegen")]
mod with {
    use super::*;
    use std::collections::BTreeSet;
    use visa_jit::backend::llvm::LlvmBackend;

    const LLVM: &[&str] = &["--backend", "llvm"];

    fn text(name: &str, options: &[&str]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        compile(&file, options);
        fs::read_to_string(file).unwrap()
    }

    #[test]
    fn llvm_libraries_run() {
        saxpy_runs("llvm", LLVM);
        reduction_runs(LLVM);
        reduction_runs(&["--backend", "llvm", "--cpu", "native"]);
    }

    #[test]
    fn llvm_output_is_the_same_everywhere() {
        every_output_is_the_same("ll", LLVM);
    }

    #[test]
    fn llvm_compiles_for_other_machines() {
        objects_for_each_machine(LLVM);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.o");
        let riscv = "riscv64gc-unknown-linux-gnu";
        compile(&file, &[LLVM, &["--target", riscv]].concat());
        let found = records(&fs::read(&file).unwrap()).unwrap();
        assert!(
            found
                .iter()
                .all(|r| r.triple == riscv && r.backend == "llvm")
        );
        for target in ["x86_64-pc-windows-msvc", "s390x-unknown-linux-gnu"] {
            refused("x.o", &[LLVM, &["--target", target]].concat(), 3, &[target]);
        }
        let clif = &[LLVM, &["--emit", "clif"]].concat();
        refused("x.clif", clif, 3, &["clif", "--backend llvm"]);
    }

    #[test]
    fn llvm_ir_needs_no_name_of_a_code_generator() {
        let ir = text("x.ll", &["--kernel", "saxpy"]);
        assert!(
            ir.contains("define") && ir.contains("target triple"),
            "{ir}"
        );
        assert_eq!(ir, text("y.ll", &[LLVM, &["--kernel", "saxpy"]].concat()));
    }

    /// Of each machine: its assembler may leave the addresses of lines to the linker.
    #[test]
    fn llvm_code_has_lines() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let zebin = fs::read(format!("{root}/{SAXPY}")).unwrap();
        let program = engine().program_from_zebin(&zebin, None).unwrap();
        let kernel = program.kernel("saxpy").unwrap();
        let riscv = ["has_m", "has_a", "has_f", "has_d", "has_v"].map(str::to_owned);
        let found = [
            ("x86_64-unknown-linux-gnu", &["has_sse42".to_owned()][..]),
            ("aarch64-unknown-linux-gnu", &[]),
            ("riscv64gc-unknown-linux-gnu", &riscv),
        ]
        .map(|(triple, features)| {
            let backend = LlvmBackend::for_target(&triple.parse().unwrap(), features).unwrap();
            let made = kernel
                .ahead_of_time(&backend, OobPolicy::default())
                .unwrap();
            let (rows, bytes) = (made.lines[0].rows(), made.codes[0].0.len());
            assert!(rows.iter().all(|row| row.0 as usize <= bytes), "{triple}");
            rows.iter().map(|row| row.1).collect::<BTreeSet<u32>>()
        });
        println!("{found:?}");
        // Instruction selection may leave out a line, not many.
        assert!(found[0].len() > 10);
        for other in &found[1..] {
            assert!(found[0].difference(other).count() <= 3, "{found:?}");
        }
    }

    /// Code uses what its record says and nothing else, and runs where that is.
    #[test]
    fn llvm_code_is_for_the_processor_asked_for() {
        for (cpu, registers, needs) in [
            ("x86-64-v2", "xmm", "has_sse42"),
            ("x86-64-v3", "ymm", "has_f16c"),
            ("x86-64-v4", "zmm", "has_avx512bw"),
        ] {
            let options = [LLVM, &["--cpu", cpu]].concat();
            let listing = text("x.s", &options);
            for (name, wide) in [("ymm", cpu > "x86-64-v2"), ("zmm", cpu > "x86-64-v3")] {
                assert!(wide || !listing.contains(name), "{cpu}: {name}");
            }
            assert!(listing.contains(registers), "{cpu}: {registers}");
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("x.o");
            compile(&file, &options);
            let record = records(&fs::read(&file).unwrap()).unwrap().remove(0);
            let here = visa_runtime::linked::missing_features(&record.features).is_empty();
            assert!(record.features.iter().any(|f| f == needs), "{record:?}");
            println!("{cpu}: {}", if here { "runs here" } else { "not run here" });
            if here {
                saxpy_runs("llvm", &options);
            }
        }
        for cpu in [
            "haswell",
            "skylake-avx512",
            "icelake-server",
            "alderlake",
            "znver4",
        ] {
            text(
                "x.s",
                &[LLVM, &["--kernel", "saxpy", "--cpu", cpu]].concat(),
            );
        }
        let strange = [LLVM, &["--cpu", "pentium9"]].concat();
        refused("x.o", &strange, 3, &["pentium9"]);
    }
}
