//! DWARF for compiled kernels: which line of which file an address belongs to, and which function.
//!
//! There is one unit with one entry a function, in version 4, which every tool reads. Addresses are known (code in memory) or
//! symbols (object files); references to symbols and between sections are left to the caller as relocations.

use gimli::write::{
    Address, AttributeValue, Dwarf, EndianVec, LineProgram, LineString, Range, RangeList,
    RelocateWriter, Relocation, Sections, Unit,
};
use gimli::{
    DW_AT_comp_dir, DW_AT_decl_file, DW_AT_decl_line, DW_AT_external, DW_AT_high_pc,
    DW_AT_language, DW_AT_low_pc, DW_AT_name, DW_AT_producer, DW_AT_ranges, DW_LANG_Mips_Assembler,
    DW_TAG_subprogram, Encoding, Format, LineEncoding, LittleEndian, SectionId,
};

use crate::lines::Places;

/// A function to be described.
#[derive(Clone, Debug)]
pub struct DebugFunction<'a> {
    /// Name.
    pub name: &'a str,
    /// Where it starts.
    pub start: Start,
    /// Bytes of code.
    pub bytes: u64,
    /// Its lines.
    pub places: &'a Places,
}

/// Where a function starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At an address.
    Address(u64),
    /// At a symbol, which has a number of the caller's.
    Symbol(usize),
}

impl Start {
    const fn address(self) -> Address {
        match self {
            Start::Address(at) => Address::Constant(at),
            Start::Symbol(symbol) => Address::Symbol { symbol, addend: 0 },
        }
    }
}

/// A section: its bytes, and what has to be put into them.
#[derive(Clone, Debug)]
pub struct DebugSection {
    /// Which one.
    pub id: SectionId,
    /// Contents.
    pub bytes: Vec<u8>,
    /// References to symbols and to other sections.
    pub relocations: Vec<Relocation>,
}

/// Bytes with the places of references among them.
#[derive(Clone)]
struct Writer {
    bytes: EndianVec<LittleEndian>,
    relocations: Vec<Relocation>,
}

impl RelocateWriter for Writer {
    type Writer = EndianVec<LittleEndian>;

    fn writer(&self) -> &Self::Writer {
        &self.bytes
    }

    fn writer_mut(&mut self) -> &mut Self::Writer {
        &mut self.bytes
    }

    fn relocate(&mut self, relocation: Relocation) {
        self.relocations.push(relocation);
    }
}

const ENCODING: Encoding = Encoding {
    format: Format::Dwarf32,
    version: 4,
    address_size: 8,
};

/// A string as the format can hold it: without zero bytes, and not empty.
fn text(name: &str) -> Vec<u8> {
    let kept: Vec<u8> = name.bytes().filter(|b| *b != 0).collect();
    if kept.is_empty() { b"?".to_vec() } else { kept }
}

/// The sections that describe `functions`, without those that are empty. `name` is the unit's, and files with relative
/// names are in `dir`.
///
/// # Errors
/// What the writer refuses, such as more than fits into 32-bit offsets.
pub fn sections(
    name: &str,
    dir: &str,
    functions: &[DebugFunction<'_>],
) -> Result<Vec<DebugSection>, gimli::write::Error> {
    let string = |s: &str| LineString::String(text(s));
    let (at, file) = (string(dir), string(name));
    let encoding = LineEncoding::default();
    let mut program = LineProgram::new(ENCODING, encoding, at, None, file, None);
    let opened: Vec<_> = functions
        .iter()
        .map(|function| lines(&mut program, function))
        .collect();
    let mut unit = Unit::new(ENCODING, program);
    let ranges = functions.iter().filter(|f| f.bytes != 0).map(|function| {
        let (begin, length) = (function.start.address(), function.bytes);
        Range::StartLength { begin, length }
    });
    let ranges = unit.ranges.add(RangeList(ranges.collect()));
    let root = unit.root();
    let entry = unit.get_mut(root);
    entry.set(DW_AT_producer, AttributeValue::String(b"visa-jit".to_vec()));
    entry.set(
        DW_AT_language,
        AttributeValue::Language(DW_LANG_Mips_Assembler),
    );
    entry.set(DW_AT_name, AttributeValue::String(text(name)));
    entry.set(DW_AT_comp_dir, AttributeValue::String(text(dir)));
    // Entries below give whole addresses.
    entry.set(DW_AT_low_pc, AttributeValue::Address(Address::Constant(0)));
    entry.set(DW_AT_ranges, AttributeValue::RangeListRef(ranges));
    for (function, opened) in functions.iter().zip(opened) {
        let id = unit.add(root, DW_TAG_subprogram);
        let entry = unit.get_mut(id);
        let (start, bytes) = (function.start.address(), function.bytes);
        entry.set(DW_AT_external, AttributeValue::Flag(true));
        entry.set(DW_AT_name, AttributeValue::String(text(function.name)));
        entry.set(DW_AT_low_pc, AttributeValue::Address(start));
        entry.set(DW_AT_high_pc, AttributeValue::Udata(bytes));
        if let Some((file, line)) = opened {
            entry.set(DW_AT_decl_file, AttributeValue::FileIndex(Some(file)));
            entry.set(DW_AT_decl_line, AttributeValue::Udata(u64::from(line)));
        }
    }
    written(unit)
}

/// Writes a function's rows; gives file and line where it opens.
fn lines(
    program: &mut LineProgram,
    function: &DebugFunction<'_>,
) -> Option<(gimli::write::FileId, u32)> {
    let dir = program.default_directory();
    let names = function.places.files.iter();
    let files: Vec<_> = names
        .map(|name| program.add_file(LineString::String(text(name)), dir, None))
        .collect();
    program.begin_sequence(Some(function.start.address()));
    let inside = |offset: u32| u64::from(offset) < function.bytes;
    for place in function.places.rows.iter().filter(|p| inside(p.offset)) {
        let row = program.row();
        row.address_offset = u64::from(place.offset);
        row.line = u64::from(place.line);
        if let Some(file) = files.get(place.file as usize) {
            row.file = *file;
        }
        program.generate_row();
    }
    program.end_sequence(function.bytes);
    let first = function.places.rows.first().filter(|p| p.line != 0)?;
    Some((*files.get(first.file as usize)?, first.line))
}

fn written(unit: Unit) -> Result<Vec<DebugSection>, gimli::write::Error> {
    let mut dwarf = Dwarf::new();
    dwarf.units.add(unit);
    let mut sections = Sections::new(Writer {
        bytes: EndianVec::new(LittleEndian),
        relocations: Vec::new(),
    });
    dwarf.write(&mut sections)?;
    let mut found = Vec::new();
    sections.for_each(|id, section: &Writer| {
        if !section.bytes.slice().is_empty() {
            found.push(DebugSection {
                id,
                bytes: section.bytes.slice().to_vec(),
                relocations: section.relocations.clone(),
            });
        }
        Ok::<(), gimli::write::Error>(())
    })?;
    Ok(found)
}
