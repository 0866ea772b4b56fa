//! As much of SPIR-V as it takes to find where a module ends and what its kernels are called. SPIR-V specification, 2.3
//! "Physical Layout of a SPIR-V Module and Instruction".

/// First word, in the byte order of all modules that compilers write here.
const MAGIC: [u8; 4] = [0x03, 0x02, 0x23, 0x07];
/// Words before the first instruction.
const HEADER_WORDS: usize = 5;
const OP_ENTRY_POINT: u32 = 15;
const EXECUTION_MODEL_KERNEL: u32 = 6;

/// Whether a module starts here.
pub(super) fn is_module(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Instructions of the module at the start of `bytes`: opcode, and words after the first. They end where no instruction can
/// start: at padding, or at another module.
fn instructions(bytes: &[u8]) -> impl Iterator<Item = (u32, &[[u8; 4]])> {
    let (words, _) = bytes.as_chunks::<4>();
    let mut rest = words.get(HEADER_WORDS..).unwrap_or_default();
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        let word = u32::from_le_bytes(first);
        let (count, opcode) = ((word >> 16) as usize, word & 0xffff);
        if first == MAGIC || count == 0 {
            return None;
        }
        let (whole, after) = rest.split_at_checked(count)?;
        rest = after;
        Some((opcode, whole.get(1..)?))
    })
}

/// Bytes of the module at the start of `bytes`.
pub(super) fn length(bytes: &[u8]) -> usize {
    let words = instructions(bytes).map(|(_, operands)| operands.len().saturating_add(1));
    let words = words.fold(HEADER_WORDS, usize::saturating_add);
    words.saturating_mul(4).min(bytes.len())
}

/// Names of the kernels of a module.
pub(super) fn kernels(bytes: &[u8]) -> Vec<String> {
    let entries = instructions(bytes).filter(|(opcode, _)| *opcode == OP_ENTRY_POINT);
    entries
        .filter_map(|(_, operands)| {
            let model = u32::from_le_bytes(*operands.first()?);
            // After the execution model and the function's id comes the name, which ends with a zero.
            let name = operands.get(2..)?.as_flattened();
            let end = name.iter().position(|&byte| byte == 0)?;
            let name = String::from_utf8_lossy(name.get(..end)?);
            (model == EXECUTION_MODEL_KERNEL).then(|| name.into_owned())
        })
        .collect()
}
