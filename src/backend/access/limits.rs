//! What code generators can do: where their access plans differ, and why.

use super::how::Any;
use super::strided::Strided;
use crate::backend::{Bounds, Gather, OobPolicy};
use crate::ssa::{Lane, MemAccess, Op, Space};

/// Which part of a block exists in two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "llvm-codegen"),
    allow(dead_code, reason = "Cranelift's code generator is of one kind")
)]
pub(in crate::backend) enum Scope {
    /// From the first access to the end of the block. For code generators that place pure operations themselves: they sink
    /// what nothing needs in front of the test into both versions, which costs as much as an instruction that is there twice.
    Block,
    /// From one access to the last one that its test can cover, again and again, and in versions once more. For code generators whose
    /// optimiser cleans up what short versions repeat.
    Parts,
}

/// Stores of some lanes of an access that is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "llvm-codegen"),
    allow(dead_code, reason = "Cranelift's code generator is of one kind")
)]
pub(in crate::backend) enum MaskedStores {
    /// The fast version asks whether all lanes are enabled, and stores them one by one if not. That pays where a message is the other way.
    Branch,
    /// One instruction, for 8, 16 or 32 lanes one after the other, of at most 8 bytes each.
    Instruction,
    /// There are none: the test in front asks whether all lanes are enabled.
    None,
}

/// What is done where lanes are probably side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "llvm-codegen"),
    allow(dead_code, reason = "Cranelift's code generator is of one kind")
)]
pub(in crate::backend) enum Speculation {
    /// The access is tested and then done as one of affine addresses: for code generators whose other way is a message.
    Affine,
    /// A masked load or store, where there are such instructions.
    Masked,
}

/// What a code generator can do, and what was asked of it: all that a plan depends on beside the function.
#[derive(Clone, Debug)]
pub(in crate::backend) struct Limits {
    /// What happens out of bounds.
    pub oob: OobPolicy,
    /// Where bounds are tested.
    pub bounds: Bounds,
    /// How lanes at any addresses are accessed.
    pub gather: Gather,
    /// The function has too many accesses of single elements at any addresses for each to be inline code.
    pub many: bool,
    /// Parts of blocks with versions.
    pub scope: Scope,
    /// The processor gathers elements of 4 and 8 bytes. Vectors of 128 bits are too short for that.
    pub gathers: bool,
    /// It scatters them.
    pub scatters: bool,
    /// A gather takes longer than a load for each lane.
    pub slow_gathers: bool,
    /// Stores of some lanes.
    pub masked_stores: MaskedStores,
    /// Addresses that are only probably affine.
    pub speculation: Speculation,
    /// Local ids whose layout only the launch knows are tested once a thread. It costs compile time for what a launch of
    /// another specialisation seldom needs, so a code generator that takes long leaves it out.
    pub tests_local_ids: bool,
    /// Lanes of single elements are taken out of a run of vectors up to four elements from each other, whatever their size. Of 128
    /// bits, a vector holds so few elements that four loads of 4 bytes are as fast.
    pub long_runs: bool,
    /// Loads of three words a lane read four, which are transposed; without it, the words are loaded by themselves.
    pub whole_rows: bool,
    /// Lanes of 16 bytes at any addresses are tested together in front of versions, and loaded and stored as a vector each.
    pub vec4_versions: bool,
    /// Accesses at any addresses that nothing better is there for are a loop over the lanes, beside a call for when one is not inside.
    pub rolls: bool,
    /// Where lanes at any addresses are not scattered, stores of single elements are a loop over lanes. Compilers that take as long for a
    /// loop as for anything else leave it to the runtime.
    pub store_loops: bool,
    /// Inline accesses of lanes at any addresses can report faults.
    pub inline_faults: bool,
    /// The other way of an access whose test failed is a message that costs the usual path no register. Without such calls it is
    /// done as at any addresses.
    pub rare_messages: bool,
    /// Addresses that only rare paths read are made there: for code generators that leave pure operations where they are.
    pub rare_addresses: bool,
    /// Inline accesses first ask whether all lanes are inside, where that pays.
    pub asks_once: bool,
    /// The processor's atomic instructions take any alignment: regions may start anywhere.
    pub unaligned_atomics: bool,
}

impl Limits {
    /// True when an access of a space that faults must be reported.
    pub(in crate::backend) fn records_faults(&self, space: Space) -> bool {
        let faults = space != Space::Regs && !space.is_marks();
        self.oob != OobPolicy::ReadZeroSkipWrite && faults
    }

    /// True where a gather does a load.
    pub(super) const fn gathers(&self, access: MemAccess, lanes: u16) -> bool {
        let wide = access.elem.bytes() >= 4 && matches!(lanes, 8 | 16 | 32);
        let wanted = matches!(self.gather, Gather::Auto | Gather::Hardware);
        wanted && self.gathers && wide
    }

    /// True where a gather does a load by gathering the words of 4 bytes around its elements.
    pub(super) fn gathers_narrow(&self, access: MemAccess, lanes: u16) -> bool {
        let narrow = access.elem.bytes() < 4 && access.comps == 1;
        let words = MemAccess {
            elem: Lane::I32,
            ..access
        };
        narrow && self.gathers(words, lanes)
    }

    /// Most elements from lane to lane for which a load of affine addresses is done as a run.
    fn longest_run(&self, access: MemAccess) -> u32 {
        match (access.comps, access.elem.bytes()) {
            // Neighbours share elements.
            (2.., _) => u32::from(access.comps) - 1,
            (_, 1 | 2) => 4,
            _ if self.long_runs => 4,
            (_, 4) => 2,
            _ => 1,
        }
    }

    /// Lanes of a load that are near each other as vectors of what lies between them.
    pub(super) fn as_run(&self, strided: Strided, access: MemAccess, lanes: u16) -> Strided {
        strided
            .as_run(access, lanes, self.longest_run(access))
            .as_overlap(access, lanes)
    }

    /// True where a scatter does a store: it writes the lanes in order, so that of lanes that overlap the highest wins. Of several
    /// components, later ones of one lane would win over earlier ones of the next.
    pub(super) fn scatters(&self, access: MemAccess, lanes: u16) -> bool {
        self.scatters && access.comps == 1 && self.gathers(access, lanes)
    }

    /// True where a scatter of pairs does a store of two components: a lane is one element of it, so that lanes that overlap come in order.
    pub(super) fn scatters_pairs(&self, access: MemAccess, lanes: u16) -> bool {
        self.scatters
            && access.comps == 2
            && access.elem.bytes() == 4
            && self.gathers(access, lanes)
    }

    /// True where a loop over lanes does a store that no scatter does.
    pub(super) fn loops_over_stores(&self, access: MemAccess, lanes: u16) -> bool {
        let wanted = matches!(self.gather, Gather::Auto | Gather::Hardware);
        wanted && self.store_loops && access.comps == 1 && lanes > 1
    }

    /// True where an instruction stores the enabled lanes of a packed access. Components that make a number together are one element.
    pub(super) fn stores_masked(&self, access: MemAccess, lanes: u16) -> bool {
        let there = self.masked_stores == MaskedStores::Instruction;
        let bytes = access.elem.bytes() * u32::from(access.comps);
        let one = access.comps == 1 || matches!(bytes, 2 | 4 | 8);
        there && one && matches!(lanes, 8 | 16 | 32)
    }

    /// True for single elements that go inline, lane by lane, whatever their addresses.
    pub(super) fn goes_inline(&self, access: MemAccess, lanes: u16) -> bool {
        let wanted = matches!(self.gather, Gather::Select | Gather::Branch);
        let reported = self.inline_faults || !self.records_faults(access.space);
        wanted && !self.many && access.comps == 1 && lanes > 1 && reported
    }

    /// What is done where a test fails, of an access that is `any` otherwise.
    pub(super) const fn other_way(&self, any: Any) -> Any {
        match any {
            Any::Scalar => Any::Scalar,
            _ if self.rare_messages => Any::RareMessage,
            any => any,
        }
    }

    /// True for accesses whose lanes are a vector each in versions.
    pub(super) fn is_vec4(&self, access: MemAccess, lanes: u16) -> bool {
        let wide = matches!((access.elem.bytes(), access.comps), (4, 4) | (8, 2));
        self.vec4_versions && wide && matches!(lanes, 8 | 16 | 32)
    }

    /// True for accesses of which the version for when the test failed knows nothing, though no test was about them: all where
    /// versions are short. Those of register storage are known to be inside in most places.
    pub(super) const fn forgets(&self, op: &Op) -> bool {
        let access = matches!(op, Op::Load(access) | Op::Store(access) if !matches!(access.space.data(), Space::Regs));
        matches!(self.scope, Scope::Parts) && access
    }

    /// Versions in versions.
    pub(super) const fn depth(&self) -> usize {
        match self.scope {
            Scope::Block => 1,
            Scope::Parts => 3,
        }
    }
}
