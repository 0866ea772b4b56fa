//! Processor features by the code generator's names.

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
        "has_avx" "avx"
        "has_avx2" "avx2"
        "has_avx512f" "avx512f"
        "has_avx512vl" "avx512vl"
        "has_avx512dq" "avx512dq"
        "has_avx512bitalg" "avx512bitalg"
        "has_avx512vbmi" "avx512vbmi"
    )
}

/// Whether this processor has a feature; a name that is not known counts as missing.
#[cfg(target_arch = "aarch64")]
fn has(name: &str) -> bool {
    detect!(is_aarch64_feature_detected, name,
        "has_lse" "lse"
        "has_pauth" "paca"
        "has_fp16" "fp16"
    )
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
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
