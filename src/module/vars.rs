//! Declarations: general, address, predicate, sampler and surface variables.

use super::{Attr, Pos};
use crate::isa::Type;

/// A general variable, predefined ones included. The index is the ISA's variable id:
/// 0 … 31 are predefined (docs/visa.md, "Registers and regions"), user variables start at 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// An address variable (`A0` is 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddrId(pub u32);

/// A predicate variable. Ids start at 1 (`P1`), as in the binary format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PredId(pub u32);

/// A sampler variable (`S0` is 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SamplerId(pub u32);

/// A surface variable. 0 … 5 are predefined (`%slm T1 T2 TSS %bss %scratch`), user ones start at 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SurfaceId(pub u32);

impl SurfaceId {
    /// `T0`, `%slm`.
    pub const SLM: SurfaceId = SurfaceId(0);
    /// `T4`, `%bss`.
    pub const BSS: SurfaceId = SurfaceId(4);
    /// `T5`, `%scratch`: stateless.
    pub const SCRATCH: SurfaceId = SurfaceId(5);
    /// First id of a declared surface.
    pub const FIRST_USER: u32 = 6;

    /// Ids from here on are words in registers that say which, as the extended descriptors of messages have them.
    const FIRST_WORD: u32 = 1 << 31;

    /// Ids from here on are entries of the binding table themselves, which messages name without a variable.
    const FIRST_ENTRY: u32 = u32::MAX - 0xFF;

    /// A surface by its entry in the binding table.
    pub const fn entry(index: u8) -> SurfaceId {
        SurfaceId(Self::FIRST_ENTRY + index as u32)
    }

    /// A surface by a word as in `%bss`: the first element of a variable of dwords.
    pub const fn word(var: VarId) -> SurfaceId {
        SurfaceId(Self::FIRST_WORD | var.0)
    }

    /// The variable with the word, of surfaces that are named so.
    pub const fn as_word(self) -> Option<VarId> {
        if self.0 >= Self::FIRST_WORD && self.0 < Self::FIRST_ENTRY {
            return Some(VarId(self.0 & !Self::FIRST_WORD));
        }
        None
    }

    /// True where it is found in the heap of surfaces, not in the binding table.
    pub fn in_heap(self) -> bool {
        self == SurfaceId::BSS || self.as_word().is_some()
    }

    /// The entry, of surfaces that are named so.
    pub const fn as_entry(self) -> Option<u32> {
        self.0.checked_sub(Self::FIRST_ENTRY)
    }
}

/// Ids of predefined general variables.
impl VarId {
    /// `%null`.
    pub const NULL: VarId = VarId(0);
    /// `%thread_x`.
    pub const THREAD_X: VarId = VarId(1);
    /// `%thread_y`.
    pub const THREAD_Y: VarId = VarId(2);
    /// `%group_id_x` = `r0.1`.
    pub const GROUP_ID_X: VarId = VarId(3);
    /// `%group_id_y` = `r0.6`.
    pub const GROUP_ID_Y: VarId = VarId(4);
    /// `%group_id_z` = `r0.7`.
    pub const GROUP_ID_Z: VarId = VarId(5);
    /// `%tsc`, five dwords.
    pub const TSC: VarId = VarId(6);
    /// `%r0`.
    pub const R0: VarId = VarId(7);
    /// `%arg`, stack-call arguments.
    pub const ARG: VarId = VarId(8);
    /// `%retval`.
    pub const RETVAL: VarId = VarId(9);
    /// `%sp`.
    pub const SP: VarId = VarId(10);
    /// `%fp`.
    pub const FP: VarId = VarId(11);
    /// `%hw_id`.
    pub const HW_ID: VarId = VarId(12);
    /// `%sr0`.
    pub const SR0: VarId = VarId(13);
    /// `%cr0`.
    pub const CR0: VarId = VarId(14);
    /// `%ce0`, the execution mask.
    pub const CE0: VarId = VarId(15);
    /// `%dbg0`.
    pub const DBG0: VarId = VarId(16);
    /// `%color`.
    pub const COLOR: VarId = VarId(17);
    /// `%impl_arg_buf_ptr`.
    pub const IMPL_ARG_BUF_PTR: VarId = VarId(18);
    /// `%local_id_buf_ptr`.
    pub const LOCAL_ID_BUF_PTR: VarId = VarId(19);
    /// `%msg0`.
    pub const MSG0: VarId = VarId(20);
    /// First id of a declared variable.
    pub const FIRST_USER: u32 = 32;

    /// True for a predefined variable.
    pub const fn is_predefined(self) -> bool {
        self.0 < Self::FIRST_USER
    }

    /// Index into [`Vars::general`] of a declared variable.
    pub fn user_index(self) -> Option<usize> {
        self.0.checked_sub(Self::FIRST_USER).map(|i| i as usize)
    }
}

/// A predefined general variable: name, element type, element count on a 32-byte-GRF platform.
#[derive(Clone, Copy, Debug)]
pub struct Predefined {
    /// Id.
    pub id: VarId,
    /// Name with its `%`.
    pub name: &'static str,
    /// Element type.
    pub ty: Type,
    /// Elements.
    pub elements: u32,
}

/// The predefined general variables (docs/visa.md, "Registers and regions"), indexed by id.
pub const PREDEFINED: [Predefined; 21] = {
    const fn p(id: u32, name: &'static str, ty: Type, elements: u32) -> Predefined {
        Predefined {
            id: VarId(id),
            name,
            ty,
            elements,
        }
    }
    [
        p(0, "%null", Type::Ud, 512),
        p(1, "%thread_x", Type::Uw, 1),
        p(2, "%thread_y", Type::Uw, 1),
        p(3, "%group_id_x", Type::Ud, 1),
        p(4, "%group_id_y", Type::Ud, 1),
        p(5, "%group_id_z", Type::Ud, 1),
        p(6, "%tsc", Type::Ud, 5),
        p(7, "%r0", Type::Ud, 16),
        p(8, "%arg", Type::Ud, 512),
        p(9, "%retval", Type::Ud, 192),
        p(10, "%sp", Type::Uq, 1),
        p(11, "%fp", Type::Uq, 1),
        p(12, "%hw_id", Type::Ud, 1),
        p(13, "%sr0", Type::Ud, 4),
        p(14, "%cr0", Type::Ud, 4),
        p(15, "%ce0", Type::Ud, 1),
        p(16, "%dbg0", Type::Ud, 2),
        p(17, "%color", Type::Uw, 1),
        p(18, "%impl_arg_buf_ptr", Type::Uq, 1),
        p(19, "%local_id_buf_ptr", Type::Uq, 1),
        p(20, "%msg0", Type::Ud, 3),
    ]
};

/// Names of the predefined surfaces, indexed by id.
pub const PREDEFINED_SURFACES: [&str; 6] = ["%slm", "T1", "T2", "TSS", "%bss", "%scratch"];

/// Minimum alignment of a general variable (codes of the binary form).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Align {
    /// 1.
    #[default]
    Byte,
    /// 2.
    Word,
    /// 4.
    Dword,
    /// 8.
    Qword,
    /// 16.
    Oword,
    /// One register.
    Grf,
    /// Two registers.
    Grf2,
    /// 32.
    Hword,
    /// 64.
    Word32,
    /// 128.
    Word64,
}

impl Align {
    /// Every alignment, in the order of the binary format's codes, with its spelling.
    pub const ALL: [(Align, &'static str); 10] = [
        (Align::Byte, "byte"),
        (Align::Word, "word"),
        (Align::Dword, "dword"),
        (Align::Qword, "qword"),
        (Align::Oword, "oword"),
        (Align::Grf, "GRF"),
        (Align::Grf2, "GRFx2"),
        (Align::Hword, "hword"),
        (Align::Word32, "wordx32"),
        (Align::Word64, "wordx64"),
    ];

    /// Spelling in text.
    pub fn name(self) -> &'static str {
        Align::ALL
            .into_iter()
            .find(|(a, _)| *a == self)
            .map_or("byte", |(_, name)| name)
    }

    /// The alignment with this spelling; a number of bytes is one too.
    pub fn from_name(name: &str) -> Option<Align> {
        match name {
            "1" => Some(Align::Byte),
            "2" => Some(Align::Word),
            "4" => Some(Align::Dword),
            "8" => Some(Align::Qword),
            "16" => Some(Align::Oword),
            "32" => Some(Align::Hword),
            "64" | "32word" => Some(Align::Word32),
            "128" | "64word" => Some(Align::Word64),
            "2GRF" => Some(Align::Grf2),
            _ => Align::ALL
                .into_iter()
                .find(|(_, n)| *n == name)
                .map(|(a, _)| a),
        }
    }
}

/// A declared general variable.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneralVar {
    /// Name.
    pub name: String,
    /// Element type.
    pub ty: Type,
    /// Element count, 1 … 65535.
    pub elements: u32,
    /// Alignment; without meaning for execution.
    pub align: Align,
    /// Shares storage with this variable, starting at this byte of it.
    pub alias: Option<(VarId, u32)>,
    /// `attrs={…}`.
    pub attrs: Vec<Attr>,
    /// Where it was declared.
    pub pos: Pos,
}

/// A declared address, predicate, sampler or surface variable.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherVar {
    /// Name.
    pub name: String,
    /// Element count (bits for predicates).
    pub elements: u32,
    /// `v_name=` of samplers and surfaces.
    pub v_name: Option<String>,
    /// `attrs={…}`.
    pub attrs: Vec<Attr>,
    /// It exists without a declaration: the bindless sampler.
    pub predefined: bool,
    /// Where it was declared.
    pub pos: Pos,
}

/// The sampler whose state is anywhere in the heap of sampler states: what it holds is a byte offset in it.
pub const BINDLESS_SAMPLER: &str = "S31";

/// Every variable of a module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vars {
    /// Declared general variables; element 0 has id 32.
    pub general: Vec<GeneralVar>,
    /// Address variables; element 0 is `A0`.
    pub address: Vec<OtherVar>,
    /// Predicates; element 0 is `P1`.
    pub predicate: Vec<OtherVar>,
    /// Samplers; element 0 is `S0`.
    pub sampler: Vec<OtherVar>,
    /// Declared surfaces; element 0 is `T6`.
    pub surface: Vec<OtherVar>,
}

impl Vars {
    /// A declared general variable.
    pub fn general(&self, id: VarId) -> Option<&GeneralVar> {
        self.general.get(id.user_index()?)
    }

    /// Element type of any general variable, predefined or declared.
    pub fn ty(&self, id: VarId) -> Option<Type> {
        if id.is_predefined() {
            PREDEFINED.get(id.0 as usize).map(|p| p.ty)
        } else {
            self.general(id).map(|v| v.ty)
        }
    }

    /// Element count of any general variable.
    pub fn elements(&self, id: VarId) -> Option<u32> {
        if id.is_predefined() {
            PREDEFINED.get(id.0 as usize).map(|p| p.elements)
        } else {
            self.general(id).map(|v| v.elements)
        }
    }

    /// Bit count of a predicate variable.
    pub fn pred_bits(&self, id: PredId) -> Option<u32> {
        self.predicate
            .get((id.0 as usize).checked_sub(1)?)
            .map(|p| p.elements)
    }
}

/// What an `.input` fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputVar {
    /// General variable.
    General(VarId),
    /// Sampler.
    Sampler(SamplerId),
    /// Surface.
    Surface(SurfaceId),
}

/// `.input NAME offset=O size=S`, or `.implicit_KIND …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Variable filled.
    pub var: InputVar,
    /// Byte offset in the thread's GRF payload; r0 is bytes 0 … GRF-1.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Implicit kind number, 0 for `.input`; bits 7:3 of the kind byte in the binary form.
    pub implicit: u8,
    /// Source position.
    pub pos: Pos,
}

/// A label or subroutine name.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Name.
    pub name: String,
    /// Started by `.function`.
    pub subroutine: bool,
    /// Index of the `label:` / `.function` instruction in [`super::Module::insts`], when defined.
    pub def: Option<u32>,
}

/// A label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u32);
