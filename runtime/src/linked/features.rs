//! Processor features by the code generator's names.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! detect {
    ($macro:ident, $name:expr, $($known:literal $feature:tt)*) => {
        match $name {
            $($known => std::arch::$macro!($feature),)*
            _ => false,
        }
    };
}

/// Whether this processor has a feature; a name that is not known counts as missing.
#[cfg(target_arch = "x86_64")]
fn has(name: &str) -> bool {
    detect!(is_x86_feature_detected, name,
        "has_sse3" "sse3"
        "has_ssse3" "ssse3"
        "has_sse41" "sse4.1"
        "has_sse42" "sse4.2"
        "has_popcnt" "popcnt"
        "has_cmpxchg16b" "cmpxchg16b"
        "has_lzcnt" "lzcnt"
        "has_bmi1" "bmi1"
        "has_bmi2" "bmi2"
        "has_fma" "fma"
        "has_f16c" "f16c"
        "has_avx" "avx"
        "has_avx2" "avx2"
        "has_avx_vnni" "avxvnni"
        "has_avx512f" "avx512f"
        "has_avx512bw" "avx512bw"
        "has_avx512vl" "avx512vl"
        "has_avx512dq" "avx512dq"
        "has_avx512bitalg" "avx512bitalg"
        "has_avx512vbmi" "avx512vbmi"
        "has_avx512vnni" "avx512vnni"
    )
}

/// Whether this processor has a feature; a name that is not known counts as missing.
#[cfg(target_arch = "aarch64")]
fn has(name: &str) -> bool {
    detect!(is_aarch64_feature_detected, name,
        "has_lse" "lse"
        "has_pauth" "paca"
        "has_fp16" "fp16"
        "has_dotprod" "dotprod"
        "has_i8mm" "i8mm"
    )
}

/// Whether this processor has a feature; a name that is not known counts as missing.
#[cfg(all(target_arch = "riscv64", target_os = "linux"))]
fn has(name: &str) -> bool {
    // Of extensions with one letter the kernel tells in the auxiliary vector; others count as missing.
    let letter = match name {
        "has_m" => b'm',
        "has_a" => b'a',
        "has_f" => b'f',
        "has_d" => b'd',
        "has_v" => b'v',
        _ => return false,
    };
    let (hwcap, _) = rustix::param::linux_hwcap();
    hwcap >> (letter - b'a') & 1 != 0
}

#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "riscv64", target_os = "linux")
)))]
fn has(_: &str) -> bool {
    false
}

/// Those of the named features that this processor does not have.
pub fn missing_features(wanted: &[String]) -> Vec<String> {
    wanted.iter().filter(|name| !has(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_features_are_missing() {
        assert_eq!(missing_features(&["has_what".to_owned()]), ["has_what"]);
        assert!(missing_features(&[]).is_empty());
        #[cfg(target_arch = "x86_64")]
        assert!(missing_features(&["has_sse3".to_owned()]).is_empty());
    }
}
