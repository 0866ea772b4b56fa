//! Random control flow, and what each lane must make of it.
//!
//! A [`Graph`] is a kernel whose blocks write a trace: each lane that comes through a block mixes the block's
//! number into its hash and loses one unit of fuel; the block itself leaves a mark that it ran at all. Lanes decide by their hash, all lanes together by bits that the launch gives, so that a
//! lane's way never depends on other lanes: [`oracle`] walks it alone, as a scalar program. Backward branches
//! are taken only with fuel left, so every graph ends.

pub mod census;
pub mod generate;
pub mod oracle;
pub mod text;

use visa_jit::isa::Platform;

/// How a lane decides at the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// `hash & mask == value`.
    Hash {
        /// Bits that count.
        mask: u32,
        /// What they must be.
        value: u32,
    },
    /// No fuel is left.
    Tired,
}

/// A decision of every lane for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// The predicate.
    pub test: Test,
    /// `!P`.
    pub inverted: bool,
    /// Taken only with fuel left.
    pub fuel: bool,
}

/// How a predicate with equal bits is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `(P) … (M1, 1)`.
    Scalar,
    /// `(P.any) … (M1, N)`.
    Any,
    /// `(P.all) … (M1, N)`.
    All,
}

/// A decision of all lanes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniform {
    /// Bit of the launch's input.
    pub bit: u8,
    /// `!P`.
    pub inverted: bool,
    /// Spelling.
    pub form: Form,
}

/// Which lanes take a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// All that are there; `wide` writes the full execution size instead of 1.
    Always {
        /// Execution size.
        wide: bool,
    },
    /// All or none.
    Uniform(Uniform),
    /// Each for itself.
    Lanes(Lanes),
}

/// End of a block. Blocks are named by their index in their subroutine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// On to the next block.
    Fall,
    /// `goto`.
    Goto(How, usize),
    /// `jmp`, never over a place where lanes may wait.
    Jmp(Option<Uniform>, usize),
    /// `switchjmp` on bits `shift ..` of the launch's input; the number of targets is a power of two.
    Switch {
        /// First bit.
        shift: u8,
        /// Targets.
        targets: Vec<usize>,
    },
    /// `call` of a later subroutine.
    Call(How, usize),
    /// `ret`.
    Ret(How),
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number that it leaves in the traces; also its bit in the marks.
    pub id: u32,
    /// `hash * K ^ id` instead of `hash * K + id`.
    pub xor: bool,
    /// Where control goes.
    pub term: Term,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Device.
    pub platform: Platform,
    /// Lanes of a thread: 8, 16 or 32.
    pub simd: u32,
    /// Work on lanes is split into instructions of this many.
    pub split: u32,
    /// Subroutines, the kernel's body first. Each calls only later ones.
    pub subs: Vec<Vec<Block>>,
    /// Deepest nesting of branches and loops, in bodies that are nested.
    pub depth: u32,
}

/// What a launch gives: a hash and fuel for each lane, and the bits of uniform decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Lanes that exist.
    pub lanes: u32,
    /// First hash of each lane.
    pub hash: [u32; 32],
    /// Fuel of each lane.
    pub fuel: [i32; 32],
    /// Uniform decisions.
    pub uniform: u32,
}

/// What is left at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Hash of each lane.
    pub hash: [u32; 32],
    /// Bit per block that ran.
    pub marks: [u32; 4],
    /// Blocks that lanes went through, all together. Memory does not have it.
    pub steps: u64,
}

/// Multiplier of the hash.
pub const FACTOR: u32 = 0x0193_4c65;

impl Graph {
    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.subs.iter().map(Vec::len).sum()
    }
}
