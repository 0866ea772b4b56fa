//! Machines that code is made for ahead of time: their processor features, by the runtime's names and by LLVM's.
//!
//! A kernel that is compiled ahead of time says which features its code needs. The runtime looks for them by name before it calls
//! any of the code. So LLVM is told of an architecture without extensions, and of each feature by itself: it may use what the
//! kernel says, and nothing else.

use std::collections::BTreeSet;

use target_lexicon::{Architecture, BinaryFormat, Triple};

use super::cpu::TargetCpu;
use super::{NAME, environment};
use crate::backend::BackendError;

/// A feature: the runtime's name, LLVM's, and what comes with it.
type Feature = (&'static str, &'static str, &'static [&'static str]);

const X86_64: &[Feature] = &[
    ("has_sse3", "sse3", &[]),
    ("has_ssse3", "ssse3", &["has_sse3"]),
    ("has_sse41", "sse4.1", &["has_ssse3"]),
    ("has_sse42", "sse4.2", &["has_sse41"]),
    ("has_popcnt", "popcnt", &[]),
    ("has_cmpxchg16b", "cx16", &[]),
    ("has_lzcnt", "lzcnt", &[]),
    ("has_bmi1", "bmi", &[]),
    ("has_bmi2", "bmi2", &[]),
    ("has_avx", "avx", &["has_sse42"]),
    ("has_avx2", "avx2", &["has_avx"]),
    ("has_avx_vnni", "avxvnni", &["has_avx2"]),
    ("has_f16c", "f16c", &["has_avx"]),
    ("has_fma", "fma", &["has_avx"]),
    (
        "has_avx512f",
        "avx512f",
        &["has_avx2", "has_f16c", "has_fma"],
    ),
    ("has_avx512bw", "avx512bw", &["has_avx512f"]),
    ("has_avx512dq", "avx512dq", &["has_avx512f"]),
    ("has_avx512vl", "avx512vl", &["has_avx512f"]),
    ("has_avx512bitalg", "avx512bitalg", &["has_avx512bw"]),
    ("has_avx512vbmi", "avx512vbmi", &["has_avx512bw"]),
    ("has_avx512vnni", "avx512vnni", &["has_avx512f"]),
];

const AARCH64: &[Feature] = &[
    ("has_lse", "lse", &[]),
    ("has_pauth", "pauth", &[]),
    ("has_fp16", "fullfp16", &[]),
    ("has_dotprod", "dotprod", &[]),
    ("has_i8mm", "i8mm", &[]),
];

/// Base and vector extension, which includes the rest.
const RISCV64: &[Feature] = &[
    ("has_m", "m", &[]),
    ("has_a", "a", &[]),
    ("has_f", "f", &[]),
    ("has_d", "d", &["has_f"]),
    ("has_v", "v", &["has_d"]),
];

/// Features that no processor with certain others lacks, but lists for another code generator leave out.
const COMPANIONS: &[(&[&str], &str)] = &[
    (&["has_avx2", "has_fma"], "has_f16c"),
    (&["has_avx512dq", "has_avx512vl"], "has_avx512bw"),
];

/// How LLVM sees an architecture: its triple, and its processor without extensions.
struct Machine {
    triple: &'static str,
    cpu: &'static str,
    features: &'static [Feature],
}

fn machine(triple: &Triple) -> Option<Machine> {
    // The code refers to nothing outside itself, so that of Linux is that of macOS.
    let macho = triple.binary_format == BinaryFormat::Macho;
    if !macho && triple.binary_format != BinaryFormat::Elf {
        return None;
    }
    Some(match triple.architecture {
        Architecture::X86_64 => Machine {
            triple: "x86_64-unknown-linux-gnu",
            cpu: "x86-64",
            features: X86_64,
        },
        Architecture::Aarch64(_) => Machine {
            triple: "aarch64-unknown-linux-gnu",
            cpu: "generic",
            features: AARCH64,
        },
        Architecture::Riscv64(_) if !macho => Machine {
            triple: "riscv64-unknown-linux-gnu",
            cpu: "generic-rv64",
            features: RISCV64,
        },
        _ => return None,
    })
}

/// A processor of another machine, or of this one, with the named features (`has_avx2`) and no others.
pub(super) fn cpu(triple: &Triple, features: &[String]) -> Result<TargetCpu, BackendError> {
    let machine = machine(triple).ok_or_else(|| {
        environment(format!(
            "no code for {triple}: Linux and macOS on x86-64 and AArch64 have it, and Linux on RISC-V"
        ))
    })?;
    let mut needs = BTreeSet::new();
    for name in features {
        add(name, machine.features, &mut needs)?;
    }
    for (present, companion) in COMPANIONS {
        if present.iter().all(|name| needs.contains(*name)) {
            add(companion, machine.features, &mut needs)?;
        }
    }
    let llvms = |(name, llvms, _): &Feature| needs.contains(*name).then(|| format!("+{llvms}"));
    let mut list: Vec<String> = machine.features.iter().filter_map(llvms).collect();
    if triple.binary_format == BinaryFormat::Macho && machine.cpu == "generic" {
        // The platform's own register.
        list.push("+reserve-x18".to_owned());
    }
    let mut cpu = TargetCpu {
        target: triple.clone(),
        triple: machine.triple.to_owned(),
        ..TargetCpu::new(triple.architecture, machine.cpu.to_owned(), list.join(","))?
    };
    // Of instructions that are there either way, those that are fast on processors that have these features.
    let tune = [("has_avx512bw", "x86-64-v4"), ("has_avx2", "x86-64-v3")];
    let tune = tune.iter().find(|(name, _)| needs.contains(*name));
    cpu.tune = tune.map(|(_, tune)| (*tune).to_owned());
    cpu.needs = Some(needs.into_iter().collect());
    Ok(cpu)
}

fn add(name: &str, features: &[Feature], to: &mut BTreeSet<String>) -> Result<(), BackendError> {
    let Some((name, _, with)) = features.iter().find(|f| f.0 == name) else {
        return Err(BackendError::Strategy {
            backend: NAME,
            what: format!("the processor feature `{name}` has no name there"),
        });
    };
    if to.insert((*name).to_owned()) {
        for name in *with {
            add(name, features, to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(triple: &str, features: &[&str]) -> Result<TargetCpu, BackendError> {
        let features: Vec<_> = features.iter().map(|f| (*f).to_owned()).collect();
        cpu(&triple.parse().unwrap(), &features)
    }

    #[test]
    fn features_bring_what_they_build_on() {
        let cpu = made(
            "x86_64-unknown-linux-gnu",
            &["has_avx512dq", "has_avx512vl"],
        )
        .unwrap();
        let needs = cpu.needs.unwrap();
        for name in ["has_avx512bw", "has_avx512f", "has_f16c", "has_sse3"] {
            assert!(needs.iter().any(|n| n == name), "{name}: {needs:?}");
        }
        assert!(cpu.avx512 && cpu.f16c && cpu.features.contains("+avx512bw"));
        assert_eq!(needs.len(), cpu.features.split(',').count());
    }

    #[test]
    fn macos_keeps_its_register() {
        let list = |triple| made(triple, &[]).unwrap().features;
        assert_eq!(list("aarch64-apple-darwin"), "+reserve-x18");
        assert_eq!(list("aarch64-unknown-linux-gnu"), "");
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        let error = |triple, features: &[&str]| made(triple, features).unwrap_err().to_string();
        let said = error("aarch64-unknown-linux-gnu", &["has_sve"]);
        assert!(said.contains("has_sve"), "{said}");
        for triple in ["x86_64-pc-windows-msvc", "s390x-unknown-linux-gnu"] {
            let said = error(triple, &[]);
            assert!(said.contains(triple), "{said}");
        }
    }
}
