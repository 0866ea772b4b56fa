//! From the ELF object that LLVM writes to self-contained bytes.
//!
//! Code comes first, and the constants that it reads after it. Every relocation between the two is applied. They are relative, so
//! the bytes run wherever they are put. A symbol from outside is an error, because nothing would resolve it.

use object::{
    Object, ObjectSection, ObjectSymbol, Relocation, RelocationTarget, SectionIndex, SectionKind,
};

use super::reloc::RelocationKind;

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
    let mut fixes = Vec::new();
    for section in &sections {
        for (at, relocation) in section.relocations() {
            fixes.push(out.fix(&file, section.index(), at, &relocation)?);
        }
    }
    for fix in &fixes {
        out.apply(fix, &fixes)?;
    }
    let lines = match file.section_by_name(".debug_line") {
        Some(section) => out.lines(&file, &section)?,
        None => Vec::new(),
    };
    Ok(Linked {
        code: out.bytes,
        code_bytes,
        align: out.align,
        lines,
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

    /// Line information, in which some architectures leave differences of addresses to the linker.
    fn lines<'d>(
        &self,
        file: &impl Object<'d>,
        section: &impl ObjectSection<'d>,
    ) -> Result<Vec<u8>, String> {
        let data = section.uncompressed_data().map_err(|e| e.to_string())?;
        let mut bytes = data.into_owned();
        for (at, relocation) in section.relocations() {
            let kind = RelocationKind::of(file.architecture(), relocation.flags());
            let Some(kind) = kind.filter(|kind| kind.is_sum()) else {
                continue;
            };
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let to = bytes.get_mut(at..).unwrap_or(&mut []);
            kind.write(to, self.target(file, &relocation)?, 0)?;
        }
        Ok(bytes)
    }

    /// What a relocation refers to.
    fn target<'d>(&self, file: &impl Object<'d>, relocation: &Relocation) -> Result<u64, String> {
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
        Ok(target.wrapping_add_signed(relocation.addend()))
    }

    /// Where a relocation stands and what it refers to.
    fn fix<'d>(
        &self,
        file: &impl Object<'d>,
        section: SectionIndex,
        at: u64,
        relocation: &Relocation,
    ) -> Result<Fix, String> {
        let flags = relocation.flags();
        Ok(Fix {
            place: self.start(section).ok_or("a section without a place")? + at,
            target: self.target(file, relocation)?,
            kind: RelocationKind::of(file.architecture(), flags)
                .ok_or_else(|| format!("relocation {flags:?}"))?,
        })
    }

    fn apply(&mut self, fix: &Fix, all: &[Fix]) -> Result<(), String> {
        let distance = match fix.kind {
            // Refers to the instruction with the upper bits, whose distance it is.
            RelocationKind::Low => {
                let upper = |f: &&Fix| f.kind == RelocationKind::High && f.place == fix.target;
                let upper = all.iter().find(upper);
                upper.ok_or("lower bits without upper ones")?.distance()
            }
            _ => fix.distance(),
        };
        let place = usize::try_from(fix.place).unwrap_or(usize::MAX);
        let to = self.bytes.get_mut(place..).unwrap_or(&mut []);
        fix.kind
            .write(to, fix.target, distance)
            .map_err(str::to_owned)
    }
}

/// A relocation, in bytes from the start of the code.
struct Fix {
    place: u64,
    target: u64,
    kind: RelocationKind,
}

impl Fix {
    fn distance(&self) -> i64 {
        self.target.wrapping_sub(self.place).cast_signed()
    }
}
