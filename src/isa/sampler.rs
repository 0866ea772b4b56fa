//! Sampler messages: mnemonics and sub-opcodes.

use super::Opcode;

/// One spelling of a sampler message.
#[derive(Clone, Copy, Debug)]
pub struct SamplerOp {
    /// Mnemonic.
    pub mnemonic: &'static str,
    /// Row of the opcode table.
    pub opcode: Opcode,
    /// Sub-opcode (VISA.md 3.4 "3D ops").
    pub code: u8,
}

macro_rules! sampler_ops {
    ($($list:ident $opcode:ident { $($text:literal $code:literal,)* })*) => {
        $(
            /// Mnemonics of the row of the same name.
            pub const $list: &[&str] = &[$($text),*];
        )*

        /// Every sampler message.
        pub const SAMPLER_OPS: &[SamplerOp] = &[$($(
            SamplerOp { mnemonic: $text, opcode: Opcode::$opcode, code: $code },
        )*)*];
    };
}

sampler_ops! {
    SAMPLE_MNEMONICS Sample3d {
        "sample_3d" 0, "sample_b" 1, "sample_l" 2, "sample_c" 3, "sample_d" 4, "sample_b_c" 5, "sample_l_c" 6,
        "lod" 9, "sample_d_c" 20, "sample_lz" 24, "sample_c_lz" 25,
    }
    LOAD_MNEMONICS Load3d { "load_3d" 7, "load_lz" 26, "load_2dms_w" 28, "load_mcs" 29, }
    GATHER4_MNEMONICS Gather43d { "sample4" 8, "sample4_c" 16, "sample4_l" 13, "sample4_po" 17, "sample4_po_c" 18, }
    INFO_MNEMONICS Info3d { "resinfo" 10, "sampleinfo" 11, }
}

impl SamplerOp {
    /// The message with this mnemonic.
    pub fn from_mnemonic(text: &str) -> Option<&'static SamplerOp> {
        SAMPLER_OPS.iter().find(|op| op.mnemonic == text)
    }

    /// The message with this table row and sub-opcode.
    pub fn from_code(opcode: Opcode, code: u8) -> Option<&'static SamplerOp> {
        SAMPLER_OPS
            .iter()
            .find(|op| op.opcode == opcode && op.code == code)
    }
}

/// Where a read's parameters stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadParams {
    /// u, v, r.
    pub coords: [usize; 3],
    /// Level of detail, of messages that do not filter.
    pub level: Option<usize>,
}

/// Parameters of the messages that read plainly; `None` for those that compare, gather or tell something else. Levels, biases and
/// gradients of filtered reads have no say where images have one level.
pub fn read_params(opcode: Opcode, code: u8) -> Option<ReadParams> {
    let (coords, level) = match (opcode, code) {
        (Opcode::Sample3d, 0 | 24) | (Opcode::Load3d, 26) => ([0, 1, 2], None),
        (Opcode::Sample3d, 1 | 2) => ([1, 2, 3], None),
        (Opcode::Sample3d, 4) => ([0, 3, 6], None),
        (Opcode::Load3d, 7) => ([0, 1, 3], Some(2)),
        (Opcode::Info3d, 10) => ([0, usize::MAX, usize::MAX], None),
        _ => return None,
    };
    Some(ReadParams { coords, level })
}
