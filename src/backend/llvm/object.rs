//! From the ELF object that LLVM writes to self-contained bytes.
//!
//! Code comes first, the constants it reads behind it, and every relocation between the two is applied: they are
//! relative, so the bytes run wherever they are put. A symbol from outside is an error: nothing would resolve it.

use object::elf::{R_X86_64_PC32, R_X86_64_PC64, R_X86_64_PLT32};
use object::{
    Object, ObjectSection, ObjectSymbol, Relocation, RelocationFlags, RelocationTarget,
    SectionIndex, SectionKind,
};

/// Linked code.
pub(super) struct Linked {
    /// Machine code and constants; entry point at offset 0.
    pub code: Vec<u8>,
    /// Bytes of machine code at the start.
    pub code_bytes: u64,
    /// Required alignment.
    pub align: u64,
    /// `.debug_line`.
    pub lines: Vec<u8>,
}

/// Lays out and links an object whose only function is `entry`.
pub(super) fn link(file: &[u8], entry: &str) -> Result<Linked, String> {
    let file = object::File::parse(file).map_err(|e| e.to_string())?;
    let entry = file
        .symbols()
        .find(|s| s.is_definition() && s.name() == Ok(entry))
        .ok_or("the object lacks its function")?;
    let text = entry.section_index().ok_or("the function has no section")?;
    if entry.address() != 0 {
        return Err("the function does not start its section".to_owned());
    }
    let mut out = Layout::default();
    let mut code_bytes = 0;
    let sections: Vec<_> = file
        .sections()
        .filter(|s| s.index() == text || is_constant(s.kind()))
        .collect();
    for section in sections.iter().filter(|s| s.index() == text) {
        out.place(section)?;
        code_bytes = out.bytes.len() as u64;
    }
    for section in sections.iter().filter(|s| s.index() != text) {
        out.place(section)?;
    }
    for section in &sections {
        for (at, relocation) in section.relocations() {
            out.apply(&file, section.index(), at, &relocation)?;
        }
    }
    let lines = file.section_by_name(".debug_line");
    let lines = lines.and_then(|s| s.uncompressed_data().ok());
    Ok(Linked {
        code: out.bytes,
        code_bytes,
        align: out.align,
        lines: lines.map_or_else(Vec::new, |d| d.into_owned()),
    })
}

const fn is_constant(kind: SectionKind) -> bool {
    matches!(
        kind,
        SectionKind::ReadOnlyData | SectionKind::ReadOnlyString | SectionKind::ReadOnlyDataWithRel
    )
}

#[derive(Default)]
struct Layout {
    bytes: Vec<u8>,
    align: u64,
    /// Where each section starts.
    starts: Vec<(SectionIndex, u64)>,
}

impl Layout {
    fn place<'d>(&mut self, section: &impl ObjectSection<'d>) -> Result<(), String> {
        let align = section.align().max(16);
        self.align = self.align.max(align);
        let start = (self.bytes.len() as u64).next_multiple_of(align);
        self.bytes.resize(start as usize, 0xCC);
        let data = section.data().map_err(|e| e.to_string())?;
        self.bytes.extend_from_slice(data);
        self.starts.push((section.index(), start));
        Ok(())
    }

    fn start(&self, section: SectionIndex) -> Option<u64> {
        let found = self.starts.iter().find(|s| s.0 == section);
        found.map(|s| s.1)
    }

    fn apply<'d>(
        &mut self,
        file: &impl Object<'d>,
        section: SectionIndex,
        at: u64,
        relocation: &Relocation,
    ) -> Result<(), String> {
        let target = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = file.symbol_by_index(index).map_err(|e| e.to_string())?;
                let start = symbol.section_index().and_then(|s| self.start(s));
                let start = start
                    .ok_or_else(|| format!("external symbol `{}`", symbol.name().unwrap_or("?")))?;
                start + symbol.address()
            }
            RelocationTarget::Section(index) => {
                self.start(index).ok_or("a relocation to another section")?
            }
            other => return Err(format!("relocation to {other:?}")),
        };
        let place = self.start(section).ok_or("a section without a place")? + at;
        let value = target
            .wrapping_add_signed(relocation.addend())
            .wrapping_sub(place);
        let bytes = value.to_le_bytes();
        let size = match relocation.flags() {
            RelocationFlags::Elf { r_type } if r_type == R_X86_64_PC64 => 8,
            RelocationFlags::Elf { r_type }
                if r_type == R_X86_64_PC32 || r_type == R_X86_64_PLT32 =>
            {
                i32::try_from(value.cast_signed()).map_err(|_| "a relocation out of range")?;
                4
            }
            other => return Err(format!("relocation {other:?}")),
        };
        let place = place as usize;
        let to = self.bytes.get_mut(place..place + size);
        to.ok_or("a relocation outside its section")?
            .copy_from_slice(&bytes[..size]);
        Ok(())
    }
}
