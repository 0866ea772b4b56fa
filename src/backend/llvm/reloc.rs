//! Relocations inside one piece of code: what a linker would write, for the kinds that LLVM uses in code that refers only to
//! itself.
//!
//! All are relative to the place where they stand, so the piece may be put anywhere.

use object::elf::{
    R_AARCH64_ADR_PREL_LO21, R_AARCH64_LD_PREL_LO19, R_AARCH64_PREL32, R_AARCH64_PREL64,
    R_RISCV_ADD16, R_RISCV_ADD32, R_RISCV_PCREL_HI20, R_RISCV_PCREL_LO12_I, R_RISCV_SUB16,
    R_RISCV_SUB32, R_X86_64_PC32, R_X86_64_PC64, R_X86_64_PLT32, RelocationType,
};
use object::{Architecture, RelocationFlags};

/// What a relocation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelocationKind {
    /// The distance in bytes, as a number of four bytes.
    Word,
    /// The same in eight.
    Quad,
    /// The distance in an `adr`: 21 bits in two parts.
    Adr,
    /// The distance in words in an `ldr`: 19 bits.
    Literal,
    /// The upper 20 bits of the distance in an `auipc`.
    High,
    /// The lower 12 bits of the distance that the `auipc` at the target has the upper bits of, in an instruction with an
    /// immediate operand.
    Low,
    /// Adds the target to four bytes.
    Add,
    /// Subtracts the target from four bytes.
    Subtract,
    /// Adds the target to two bytes.
    AddShort,
    /// Subtracts the target from two bytes.
    SubtractShort,
}

impl RelocationKind {
    /// The kind that a relocation of an ELF file is of.
    pub(super) fn of(architecture: Architecture, flags: RelocationFlags) -> Option<RelocationKind> {
        let RelocationFlags::Elf { r_type } = flags else {
            return None;
        };
        let kinds: &[(RelocationType, RelocationKind)] = match architecture {
            Architecture::X86_64 => &[
                (R_X86_64_PC32, RelocationKind::Word),
                (R_X86_64_PLT32, RelocationKind::Word),
                (R_X86_64_PC64, RelocationKind::Quad),
            ],
            Architecture::Aarch64 => &[
                (R_AARCH64_PREL32, RelocationKind::Word),
                (R_AARCH64_PREL64, RelocationKind::Quad),
                (R_AARCH64_ADR_PREL_LO21, RelocationKind::Adr),
                (R_AARCH64_LD_PREL_LO19, RelocationKind::Literal),
            ],
            Architecture::Riscv64 => &[
                (R_RISCV_PCREL_HI20, RelocationKind::High),
                (R_RISCV_PCREL_LO12_I, RelocationKind::Low),
                (R_RISCV_ADD32, RelocationKind::Add),
                (R_RISCV_SUB32, RelocationKind::Subtract),
                (R_RISCV_ADD16, RelocationKind::AddShort),
                (R_RISCV_SUB16, RelocationKind::SubtractShort),
            ],
            _ => &[],
        };
        let found = kinds.iter().find(|(number, _)| *number == r_type);
        found.map(|(_, kind)| *kind)
    }

    /// Whether it is a part of a difference, which depends on no place.
    pub(super) fn is_sum(self) -> bool {
        use RelocationKind::{Add, AddShort, Subtract, SubtractShort};
        matches!(self, Add | AddShort | Subtract | SubtractShort)
    }

    /// Writes `distance`, from the place to the target, or for sums the `target` itself, to `bytes` at the place.
    pub(super) fn write(
        self,
        bytes: &mut [u8],
        target: u64,
        distance: i64,
    ) -> Result<(), &'static str> {
        if self == RelocationKind::Quad {
            let to = bytes.first_chunk_mut().ok_or(OUTSIDE)?;
            *to = distance.to_le_bytes();
            return Ok(());
        }
        if matches!(
            self,
            RelocationKind::AddShort | RelocationKind::SubtractShort
        ) {
            let to = bytes.first_chunk_mut().ok_or(OUTSIDE)?;
            let old = u16::from_le_bytes(*to);
            *to = match self {
                RelocationKind::AddShort => old.wrapping_add(target as u16),
                _ => old.wrapping_sub(target as u16),
            }
            .to_le_bytes();
            return Ok(());
        }
        let to: &mut [u8; 4] = bytes.first_chunk_mut().ok_or(OUTSIDE)?;
        let old = u32::from_le_bytes(*to);
        let fits = |bits: u32| {
            let limit = 1i64 << (bits - 1);
            if (-limit..limit).contains(&distance) {
                Ok(distance as u32)
            } else {
                Err(TOO_FAR)
            }
        };
        let new = match self {
            RelocationKind::Word => fits(32)?,
            RelocationKind::Quad | RelocationKind::AddShort | RelocationKind::SubtractShort => {
                return Err("a number of another size");
            }
            RelocationKind::Adr => {
                let d = fits(21)?;
                old & 0x9F00_001F | (d & 3) << 29 | (d >> 2 & 0x7_FFFF) << 5
            }
            RelocationKind::Literal => {
                let d = fits(21)?;
                if d & 3 != 0 {
                    return Err("a literal between words");
                }
                old & 0xFF00_001F | (d >> 2 & 0x7_FFFF) << 5
            }
            RelocationKind::High => {
                let d = fits(31)?;
                old & 0xFFF | d.wrapping_add(0x800) & 0xFFFF_F000
            }
            RelocationKind::Low => old & 0xF_FFFF | fits(31)? << 20,
            RelocationKind::Add => old.wrapping_add(target as u32),
            RelocationKind::Subtract => old.wrapping_sub(target as u32),
        };
        *to = new.to_le_bytes();
        Ok(())
    }
}

/// The code is longer than the architecture's instructions reach.
pub(super) const TOO_FAR: &str = "a constant is too far from the instruction that reads it";
/// The place does not lie in the code.
const OUTSIDE: &str = "a relocation outside its section";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn written(kind: RelocationKind, old: u32, target: u64, distance: i64) -> u32 {
        let mut bytes = old.to_le_bytes();
        kind.write(&mut bytes, target, distance).unwrap();
        u32::from_le_bytes(bytes)
    }

    /// Expected encodings are those of the assemblers.
    #[test]
    fn distances_are_encoded() {
        // adr x0, .+1025
        assert_eq!(
            written(RelocationKind::Adr, 0x1000_0000, 0, 1025),
            0x3000_2000
        );
        // adr x3, .-4
        assert_eq!(
            written(RelocationKind::Adr, 0x1000_0003, 0, -4),
            0x10FF_FFE3
        );
        // ldr q1, .+16
        assert_eq!(
            written(RelocationKind::Literal, 0x9C00_0001, 0, 16),
            0x9C00_0081
        );
        // auipc a0 and addi a0, a0 for a distance of 0x12FFF: 0x13 and -1.
        assert_eq!(
            written(RelocationKind::High, 0x0000_0517, 0, 0x12FFF),
            0x0001_3517
        );
        assert_eq!(
            written(RelocationKind::Low, 0x0005_0513, 0, 0x12FFF),
            0xFFF5_0513
        );
        assert_eq!(written(RelocationKind::Word, 7, 0, -2), 0xFFFF_FFFE);
        assert_eq!(written(RelocationKind::Add, 7, 5, 0), 12);
        assert_eq!(written(RelocationKind::Subtract, 7, 5, 0), 2);
        assert_eq!(written(RelocationKind::AddShort, 0x1_FFFF, 2, 0), 0x1_0001);
        assert_eq!(
            written(RelocationKind::SubtractShort, 0x1_0001, 2, 0),
            0x1_FFFF
        );
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let mut bytes = [0; 4];
        assert_eq!(
            RelocationKind::Adr.write(&mut bytes, 0, 1 << 20),
            Err(TOO_FAR)
        );
        assert!(
            RelocationKind::Adr
                .write(&mut bytes, 0, (1 << 20) - 1)
                .is_ok()
        );
        assert!(RelocationKind::Literal.write(&mut bytes, 0, 6).is_err());
        assert!(RelocationKind::Word.write(&mut bytes, 0, 1 << 31).is_err());
        assert!(RelocationKind::Quad.write(&mut bytes, 0, 0).is_err());
        assert!(RelocationKind::Word.write(&mut bytes[..3], 0, 0).is_err());
    }
}
