//! Words of the text form that are no part of the instruction set: what parser and printer must agree on.

/// First version with today's layout of the text: sampler messages name a second, paired surface or null after the destination,
/// and headers and comments are laid out as the compilers of IGC 2.x write them.
pub(crate) const LAYOUT_4_2: (u32, u32) = (4, 2);

/// Versions that are read, the first and the last. Of what was before 3.0, neither the specification nor the vendor's reader says
/// what was different; 4.2 is what compilers write since 2023.
pub(crate) const VERSIONS: [(u32, u32); 2] = [(3, 0), LAYOUT_4_2];

/// Names of implicit inputs with a name of their own; others are `UNDEFINED_<n>`.
pub(super) const IMPLICIT_KINDS: [(&str, u8); 4] = [
    ("LOCAL_SIZE", 1),
    ("GROUP_COUNT", 2),
    ("LOCAL_ID", 3),
    ("PSEUDO_INPUT", 16),
];

/// Modifiers of `media_ld` and `media_st`; the index is the binary code.
pub(super) const MEDIA_MODIFIERS: [&str; 6] = [
    "nomod",
    "modified",
    "top",
    "bottom",
    "top_mod",
    "bottom_mod",
];

/// Letters of a `fence_*` suffix with their bit, in the order they are written.
pub(super) const FENCE_LETTERS: [(&str, u8); 6] = [
    ("E", 1 << 0),
    ("I", 1 << 1),
    ("S", 1 << 2),
    ("C", 1 << 3),
    ("R", 1 << 4),
    ("L1", 1 << 6),
];

/// Bit of `fence_local`.
pub(super) const FENCE_LOCAL: u8 = 1 << 5;
/// Bit of `fence_sw`.
pub(super) const FENCE_SOFTWARE: u8 = 1 << 7;

/// Channel letters of sampler and `*4*` messages.
pub(super) const RGBA: [char; 4] = ['R', 'G', 'B', 'A'];
/// Channel letters of LSC quad messages.
pub(super) const XYZW: [char; 4] = ['x', 'y', 'z', 'w'];

/// Suffixes of sampler messages with their bit, in the order they are written.
pub(super) const SAMPLE_FLAGS: [(&str, u8); 3] = [("pixel_null_mask", 1), ("cps", 2), ("divS", 4)];

/// Words that cannot name a variable although they are no mnemonic.
pub(super) const KEYWORDS: [&str; 6] = ["flat", "bti", "bss", "ss", "arg", "surf"];

/// True when `name` can be written without quotes.
pub(in super::super) fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// True when `name` can stand in front of a colon in the first column.
pub(in super::super) fn is_label(name: &str) -> bool {
    let special = |b: u8| matches!(b, b'_' | b'$' | b'@' | b'?');
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || special(b))
        && bytes.all(|b| b.is_ascii_alphanumeric() || special(b) || b == b'-')
}

/// True when `name` is a keyword of the vendor's assembler.
pub(in super::super) fn is_reserved(name: &str) -> bool {
    KEYWORDS.contains(&name) || crate::isa::Opcode::from_mnemonic(name).is_some()
}
