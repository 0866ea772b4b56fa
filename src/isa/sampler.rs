//! Sampler messages: mnemonics and sub-opcodes.

use super::Opcode;

/// One spelling of a sampler message.
#[derive(Clone, Copy, Debug)]
pub struct SamplerOp {
    /// Mnemonic.
    pub mnemonic: &'static str,
    /// Row of the opcode table.
    pub opcode: Opcode,
    /// Sub-opcode in the binary form.
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

/// Where a message's parameters stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadParams {
    /// What texels are compared with.
    pub reference: Option<usize>,
    /// u, v, r.
    pub coords: [usize; 3],
    /// Level of detail, of messages that do not filter.
    pub level: Option<usize>,
    /// Texels to move along u and v, lane by lane.
    pub offsets: Option<[usize; 2]>,
}

/// Parameters of a message, of `words` where its payloads, of which the first that there is tells, have 16-bit integers; `None` for
/// what is none. Levels, biases and
/// gradients of filtered reads have no say where images have one level, nor have samples and their control data where texels
/// have one sample.
pub fn read_params(opcode: Opcode, code: u8, words: bool) -> Option<ReadParams> {
    const NONE: usize = usize::MAX;
    // Control data has 64 bits: two dwords or four words.
    let control = if words { 4 } else { 2 };
    let (reference, coords, level, offsets) = match (opcode, code) {
        (Opcode::Sample3d, 0 | 9 | 24) | (Opcode::Load3d, 26) => (None, [0, 1, 2], None, None),
        (Opcode::Sample3d, 1 | 2) => (None, [1, 2, 3], None, None),
        (Opcode::Sample3d, 4) => (None, [0, 3, 6], None, None),
        (Opcode::Sample3d, 3 | 25) => (Some(0), [1, 2, 3], None, None),
        (Opcode::Sample3d, 5 | 6) => (Some(0), [2, 3, 4], None, None),
        (Opcode::Sample3d, 20) => (Some(0), [1, 4, 7], None, None),
        (Opcode::Load3d, 7) => (None, [0, 1, 3], Some(2), None),
        (Opcode::Load3d, 28) => {
            let u = 1 + control;
            (None, [u, u + 1, u + 2], Some(u + 3), None)
        }
        (Opcode::Load3d, LOAD_MCS) => (None, [0, 1, 2], Some(3), None),
        (Opcode::Gather43d, 8) => (None, [0, 1, 2], None, None),
        (Opcode::Gather43d, 13) => (None, [1, 2, 3], None, None),
        (Opcode::Gather43d, 16) => (Some(0), [1, 2, 3], None, None),
        (Opcode::Gather43d, 17) => (None, [0, 1, 4], None, Some([2, 3])),
        (Opcode::Gather43d, 18) => (Some(0), [1, 2, 5], None, Some([3, 4])),
        (Opcode::Info3d, 10) => (None, [0, NONE, NONE], None, None),
        (Opcode::Info3d, SAMPLEINFO) => (None, [NONE; 3], None, None),
        _ => return None,
    };
    Some(ReadParams {
        reference,
        coords,
        level,
        offsets,
    })
}

/// Sub-opcode of `lod`.
pub const LOD: u8 = 9;

/// Sub-opcode of `load_mcs`.
pub const LOAD_MCS: u8 = 29;

/// Lanes that are neighbours: side by side the first and the second, and the third below the first.
pub const QUAD: u32 = 4;

/// Sub-opcode of `sampleinfo`.
pub const SAMPLEINFO: u8 = 11;

/// Bits of `flags` of sampler messages that only concern how lanes share samplers and how levels are chosen: nothing where each
/// thread reads its own sampler and images have one level.
pub const IGNORED_FLAGS: u8 = 6;

/// Lowest bit of the number of a sampler's state in the byte offset that bindless samplers are found by: a state has 16 bytes.
pub const SAMPLER_STATE_SHIFT: u32 = 4;

/// Bit of `flags` that asks for a register more, in which each lane has a bit unless its texels come from a page that does not
/// exist.
pub const PIXEL_NULL_MASK: u8 = 1;

/// Where the texel offsets of u, v and r stand in a message's immediate, four bits each.
pub const OFFSET_SHIFTS: [u32; 3] = [8, 4, 0];
