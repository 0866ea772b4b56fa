//! Every bound on input in one place. Exceeding one is a typed error, never a crash.

/// Defines bounds and the list of them.
macro_rules! bounds {
    ($($(#[$doc:meta])* pub const $name:ident: $ty:ty = $value:expr;)*) => {
        $($(#[$doc])* pub const $name: $ty = $value;)*

        /// Every bound with its name: part of cache keys.
        pub const ALL: &[(&str, u64)] = &[$((stringify!($name), $name as u64),)*];
    };
}

pub(crate) use bounds;

bounds! {
/// Bytes of a text file.
pub const MAX_TEXT_BYTES: usize = 64 << 20;
/// Instructions of one kernel or function, labels included.
pub const MAX_INSTS: usize = 1 << 20;
/// Variables of one kernel or function, of each class.
pub const MAX_VARS: usize = 1 << 20;
/// Labels of one kernel or function.
pub const MAX_LABELS: usize = 1 << 20;
/// `.input`, `.kernel_attr` and `.funcdecl` lines, each.
pub const MAX_DIRECTIVES: usize = 1 << 16;
/// Scratch bytes of a hardware thread of a kernel from text that uses scratch memory; text does not say how many it needs.
pub const TEXT_SCRATCH_BYTES: u32 = 8192;
/// Bytes of an identifier.
pub const MAX_NAME_BYTES: usize = 1024;
/// Bytes of a string literal, before escapes are decoded.
pub const MAX_STRING_BYTES: usize = 4096;
/// Declaration scopes inside each other.
pub const MAX_SCOPES: usize = 64;
/// Parentheses and operators inside each other in an integer expression.
pub const MAX_EXPR_DEPTH: usize = 32;
/// Tokens of one statement.
pub const MAX_TOKENS: usize = 1 << 16;
/// Targets of `switchjmp`.
pub const MAX_SWITCH_TARGETS: usize = 255;
/// Parameters of a sampler message.
pub const MAX_SAMPLE_PARAMS: usize = 16;
/// Elements of a general variable.
pub const MAX_ELEMENTS: u32 = 65535;
/// Errors reported for one file.
pub const MAX_ERRORS: usize = 100;

/// Basic blocks of one kernel that lowering takes; the plan of joins is quadratic in them at worst. The largest
/// kernel seen in the wild has 57,000 instructions and a few thousand blocks.
pub const MAX_BLOCKS: usize = 20_000;

/// Recursive calls inside each other; one more is not made and counts as an access out of bounds.
pub const MAX_CALL_DEPTH: u32 = 256;
/// Instructions after which straight-line code asks again whether its launch was interrupted.
pub const POLL_EVERY: usize = 2048;
/// Subroutines of one kernel that call each other in circles.
pub const MAX_RECURSIVE_SUBS: usize = 64;

/// LLVM instructions of one kernel above which LLVM generates code with its least effort and none of its passes, and of
/// one block, in whose length its usual effort is superlinear: some 70 us an instruction in blocks of 10,000.
pub const LLVM_FULL_INSTS: usize = 20_000;
/// See [`LLVM_FULL_INSTS`].
pub const LLVM_FULL_BLOCK: usize = 5_000;
/// LLVM instructions of one block above which LLVM does not order instructions a second time, after register allocation. That took half of the
/// time to compile the slowest kernel of `tests/kernels`.
pub const LLVM_REORDERED_BLOCK: usize = 2_000;
/// LLVM instructions above which a kernel is refused.
pub const LLVM_MAX_INSTS: usize = 1_000_000;

/// Results of SSA instructions of one kernel while it is lowered: each takes about 1 kB until the kernel is compiled.
pub const MAX_SSA_VALUES: usize = 1_000_000;
/// Parameters of SSA blocks of one kernel while it is lowered: about 0.2 kB each.
pub const MAX_BLOCK_PARAMS: usize = 6_000_000;
/// Most instructions that are looked at to find what headers of hardware messages hold, all messages of a program together.
pub const MAX_HEADER_STEPS: u64 = 1 << 26;
}
