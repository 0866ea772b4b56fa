//! Programs around single instructions.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Declarations for the names a line uses, told by how they start.
fn declarations(line: &str) -> String {
    let words: BTreeSet<&str> = line
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '%' || c == '"'))
        .filter(|w| w.ends_with(|c: char| c.is_ascii_digit()) || *w == "BIG")
        .collect();
    let mut out = String::new();
    let classes = [
        ("UD", "ud", 64),
        ("UW", "uw", 64),
        ("UB", "ub", 64),
        ("HF", "hf", 64),
        ("BIG", "ud", 512),
        ("V", "d", 512),
        ("W", "w", 64),
        ("F", "f", 64),
        ("Q", "uq", 64),
    ];
    for word in words {
        let tail = |p: &str| {
            word.strip_prefix(p)
                .is_some_and(|t| t.chars().all(|c| c.is_ascii_digit()))
        };
        if let Some((_, ty, n)) = classes.iter().find(|(p, ..)| tail(p)) {
            let _ = writeln!(
                out,
                ".decl {word} v_type=G type={ty} num_elts={n} align=GRF"
            );
        }
        for (class, n) in [("A", 16), ("P", 32), ("S", 1), ("T", 1)] {
            if tail(class) {
                let _ = writeln!(out, ".decl {word} v_type={class} num_elts={n}");
            }
        }
    }
    out
}

/// A whole program around one instruction; every label the lines use is defined.
pub fn program(line: &str) -> String {
    format!(
        ".version 4.1\n.kernel \"k\"\n{}.kernel_attr SimdSize=16\n.function \"main\"\n    {line}\n\
         L1:\nL-1$a:\n_0_019:\n_0_021:\n_0_023:\n    ret (M1, 1)\n.function \"foo_1\"\n    ret (M1, 8)\n",
        declarations(line)
    )
}
