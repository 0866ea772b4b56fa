//! ELF images of code in memory, for debuggers: one function at its address, its symbol and its lines.

use gimli::write::RelocationTarget;
use object::read::{File, Object as _, ObjectSection as _};
use object::write::{Object, Symbol, SymbolSection};
use object::{BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope};
use target_lexicon::{Architecture, Triple};

use super::dwarf::{self, DebugFunction, DebugSection, Start};
use super::object::ObjectError;
use crate::lines::Places;

/// Where a section header of a 64-bit ELF file has the section's address, and how long a header is.
const ADDRESS_AT: usize = 16;
const HEADER_BYTES: usize = 64;
/// Where the file says where its section headers are.
const HEADERS_AT: usize = 40;

fn failed(error: impl std::fmt::Display) -> ObjectError {
    ObjectError::File(error.to_string())
}

/// The image of a function whose code is at `address`.
///
/// # Errors
/// For processors without an ELF format, and when the writers refuse.
pub fn image(
    triple: &Triple,
    name: &str,
    address: u64,
    code: &[u8],
    places: &Places,
) -> Result<Vec<u8>, ObjectError> {
    let architecture = match triple.architecture {
        Architecture::X86_64 => object::Architecture::X86_64,
        Architecture::Aarch64(_) => object::Architecture::Aarch64,
        Architecture::Riscv64(_) => object::Architecture::Riscv64,
        _ => return Err(ObjectError::Target(triple.to_string())),
    };
    let mut file = Object::new(BinaryFormat::Elf, architecture, Endianness::Little);
    let text = file.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
    file.set_section_data(text, code.to_vec(), 16);
    file.add_symbol(Symbol {
        name: name.bytes().filter(|b| *b != 0).collect(),
        value: 0,
        size: code.len() as u64,
        kind: SymbolKind::Text,
        scope: SymbolScope::Linkage,
        weak: false,
        section: SymbolSection::Section(text),
        flags: SymbolFlags::None,
    });
    let function = DebugFunction {
        name,
        start: Start::Address(address),
        bytes: code.len() as u64,
        places,
    };
    let unit = places.files.first().map_or("", String::as_str);
    for section in dwarf::sections(unit, "/", &[function]).map_err(failed)? {
        let name = section.id.name().as_bytes().to_vec();
        let id = file.add_section(Vec::new(), name, SectionKind::Debug);
        file.set_section_data(id, resolved(section)?, 1);
    }
    let mut bytes = file.write().map_err(failed)?;
    set_address(&mut bytes, address)?;
    Ok(bytes)
}

/// The bytes of a section with its references in place. They are to other sections, each of which is there once.
fn resolved(section: DebugSection) -> Result<Vec<u8>, ObjectError> {
    let mut bytes = section.bytes;
    for r in &section.relocations {
        let place = bytes.get_mut(r.offset..).unwrap_or_default();
        let place = place.get_mut(..usize::from(r.size));
        let value = r.addend.to_le_bytes();
        match (place, value.get(..usize::from(r.size)), r.target) {
            (Some(place), Some(value), RelocationTarget::Section(_)) => {
                place.copy_from_slice(value);
            }
            _ => return Err(failed("a reference that cannot be resolved")),
        }
    }
    Ok(bytes)
}

/// Puts the code's section at its address; the writer knows none, as linkers decide them for files.
fn set_address(bytes: &mut [u8], address: u64) -> Result<(), ObjectError> {
    let file = File::parse(&*bytes).map_err(failed)?;
    let text = file.section_by_name(".text");
    let index = text.ok_or_else(|| failed("no .text"))?.index().0;
    let headers = bytes
        .get(HEADERS_AT..)
        .and_then(|b| b.first_chunk().copied());
    let headers = usize::try_from(u64::from_le_bytes(headers.unwrap_or_default()));
    let at = headers.ok().and_then(|headers| {
        let header = index.checked_mul(HEADER_BYTES)?.checked_add(headers)?;
        header.checked_add(ADDRESS_AT)
    });
    let place = at.and_then(|at| bytes.get_mut(at..)?.first_chunk_mut::<8>());
    *place.ok_or_else(|| failed("no section header"))? = address.to_le_bytes();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::{LineTable, Text};
    use object::ObjectSymbol as _;

    const ADDRESS: u64 = 0x7f12_3456_7000;

    /// An image read by another implementation than the one that wrote it, as far as there is one.
    #[test]
    fn images_say_where_code_is() {
        let places = LineTable::new([(0, 0), (2, 7), (5, 9)]).places(Text::Visa, "/tmp/k.visaasm");
        let triple: Triple = "x86_64-unknown-linux-gnu".parse().unwrap();
        let bytes = image(&triple, "k\0ernel", ADDRESS, &[0xC3; 9], &places).unwrap();
        let file = File::parse(&*bytes).unwrap();
        let text = file.section_by_name(".text").unwrap();
        assert_eq!((text.address(), text.size()), (ADDRESS, 9));
        assert_eq!(text.data().unwrap(), [0xC3; 9]);
        let symbol = file.symbols().find(|s| s.name() == Ok("kernel")).unwrap();
        assert_eq!(
            (symbol.size(), symbol.section_index()),
            (9, Some(text.index()))
        );

        let load = |id: gimli::SectionId| {
            let section = file.section_by_name(id.name());
            let data = section.map_or(Ok(&[][..]), |s| s.data()).unwrap();
            Ok::<_, gimli::Error>(gimli::EndianSlice::new(data, gimli::LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(load).unwrap();
        let header = dwarf.units().next().unwrap().unwrap();
        let unit = dwarf.unit(header).unwrap();
        let mut ranges = dwarf.unit_ranges(&unit).unwrap();
        let range = ranges.next().unwrap().unwrap();
        assert_eq!((range.begin, range.end), (ADDRESS, ADDRESS + 9));
        let program = unit.line_program.clone().unwrap();
        let mut rows = program.rows();
        let mut found = Vec::new();
        while let Some((header, row)) = rows.next_row().unwrap() {
            if row.end_sequence() {
                assert_eq!(row.address(), ADDRESS + 9);
                continue;
            }
            let name = row.file(header).unwrap().path_name();
            let name = dwarf.attr_string(&unit, name).unwrap();
            assert_eq!(name.slice(), b"/tmp/k.visaasm");
            found.push((row.address() - ADDRESS, row.line().map_or(0, |l| l.get())));
        }
        assert_eq!(found, [(0, 7), (2, 7), (5, 9)]);
    }
}
