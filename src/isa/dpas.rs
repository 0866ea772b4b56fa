//! Operand precisions of `dpas` and `dpasw`.

/// Spelling and binary code of every precision.
pub const PRECISIONS: &[(&str, u8)] = &[
    ("u1", 1),
    ("s1", 2),
    ("u2", 3),
    ("s2", 4),
    ("u4", 5),
    ("s4", 6),
    ("u8", 7),
    ("s8", 8),
    ("bf", 9),
    ("hf", 10),
    ("bf8", 11),
    ("tf32", 12),
    ("hf8", 14),
    ("e2m1", 15),
];

/// Binary code of a precision.
pub fn precision_code(name: &str) -> Option<u8> {
    PRECISIONS.iter().find(|(n, _)| *n == name).map(|(_, c)| *c)
}

/// Spelling of a precision.
pub fn precision_name(code: u8) -> Option<&'static str> {
    PRECISIONS.iter().find(|(_, c)| *c == code).map(|(n, _)| *n)
}
