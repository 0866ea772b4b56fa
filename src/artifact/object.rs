//! Object files of kernels that were compiled ahead of time, and reading what such files say.
//!
//! For each kernel there is its code, as it would be installed at run time; a record in a section of its own; and a descriptor
//! with pointers to both, which is the only symbol that other files see. The code refers to nothing: what it calls it is
//! handed. ELF files have DWARF with lines too. The bytes depend on the kernels alone, not on time, place or order of compilation.

use std::collections::BTreeMap;

use gimli::write::RelocationTarget;
use object::elf::{EF_RISCV_FLOAT_ABI_DOUBLE, ELFOSABI_NONE};
use object::macho::{PLATFORM_MACOS, Version};
use object::read::{File, Object as _, ObjectSection as _};
use object::write::{
    MachOBuildVersion, Object, Relocation, SectionId, StandardSection, Symbol, SymbolId,
    SymbolSection,
};
use object::{
    BinaryFormat, Endianness, FileFlags, RelocationEncoding, RelocationFlags, RelocationKind,
    SectionKind, SymbolFlags, SymbolKind, SymbolScope,
};
use target_lexicon::{Architecture, Triple};
use visa_runtime::abi::ABI_VERSION;
use visa_runtime::linked::{DESCRIPTOR_MAGIC, KernelRecord, RecordError, Records, digest, encode};

use super::dwarf::{self, DebugFunction, Start};
use crate::lines::{LineTable, Places, Text};

/// Bytes of a descriptor (`visa_runtime::linked::Descriptor`), and where its pointers are.
const DESCRIPTOR_BYTES: usize = 72;
const RECORD_AT: u64 = 16;
const ENTRIES_AT: u64 = 32;
const DATA_AT: u64 = 56;
/// Section of records on Mach-O, whose names have two parts.
const MACHO_SECTION: &str = "__visa_jit";
/// macOS 11.0, the first on both architectures.
const MACOS: Version = Version(11 << 16);

/// A kernel to be written: its record, and the code of each of the record's variants with its alignment.
#[derive(Clone, Debug)]
pub struct ObjectKernel {
    /// The record.
    pub record: KernelRecord,
    /// Code and alignment.
    pub codes: Vec<(Vec<u8>, u64)>,
    /// Lines of each of them.
    pub lines: Vec<LineTable>,
    /// Which lines the file has.
    pub text: Text,
    /// The program's variables as bytes, if the kernel uses any.
    pub data: Option<Vec<u8>>,
}

/// Why an object file cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// There is no object format for the target.
    #[error(
        "no object files for {0}: Linux and macOS on x86-64 and AArch64 have them, and Linux on RISC-V"
    )]
    Target(String),
    /// Two kernels want the same symbol.
    #[error("two kernels are named `{0}`; compile them to files of their own")]
    Duplicate(String),
    /// The record cannot be encoded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The file is not what it should be.
    #[error("{0}")]
    File(String),
}

fn failed(error: impl std::fmt::Display) -> ObjectError {
    ObjectError::File(error.to_string())
}

/// A C identifier for the name of a kernel: what C does not allow becomes `_x` and its code.
pub fn identifier(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_ascii_alphabetic() || c == '_' || (i > 0 && c.is_ascii_digit()) {
            out.push(c);
        } else {
            out.push_str(&format!("_x{:x}", u32::from(c)));
        }
    }
    out
}

/// The symbol of a kernel's descriptor.
pub fn descriptor_symbol(name: &str) -> String {
    format!("visa_jit_kernel_{}", identifier(name))
}

/// The object file of `kernels`.
///
/// # Errors
/// [`ObjectError`] for targets without a format and kernels of the same name.
pub fn write(triple: &Triple, kernels: &[ObjectKernel]) -> Result<Vec<u8>, ObjectError> {
    let unknown = || ObjectError::Target(triple.to_string());
    let architecture = match triple.architecture {
        Architecture::X86_64 => object::Architecture::X86_64,
        Architecture::Aarch64(_) => object::Architecture::Aarch64,
        Architecture::Riscv64(_) => object::Architecture::Riscv64,
        _ => return Err(unknown()),
    };
    let format = match triple.binary_format {
        target_lexicon::BinaryFormat::Elf => BinaryFormat::Elf,
        target_lexicon::BinaryFormat::Macho if architecture != object::Architecture::Riscv64 => {
            BinaryFormat::MachO
        }
        _ => return Err(unknown()),
    };
    let mut file = Object::new(format, architecture, Endianness::Little);
    if architecture == object::Architecture::Riscv64 {
        // Linkers refuse to join files of different conventions for floats.
        file.flags = FileFlags::Elf {
            os_abi: ELFOSABI_NONE,
            abi_version: 0,
            e_flags: EF_RISCV_FLOAT_ABI_DOUBLE,
        };
    }
    if format == BinaryFormat::MachO {
        let mut version = MachOBuildVersion::default();
        (version.platform, version.minos, version.sdk) = (PLATFORM_MACOS, MACOS, MACOS);
        file.set_macho_build_version(version);
    }
    let mut writer = Writer::new(file, format);
    let mut names: Vec<&str> = kernels.iter().map(|k| k.record.symbol.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair.first() == pair.get(1)) {
        return Err(ObjectError::Duplicate(twice.concat()));
    }
    for kernel in kernels {
        writer.kernel(kernel)?;
    }
    if format == BinaryFormat::Elf {
        writer.debug_information(kernels)?;
    }
    writer.file.write().map_err(failed)
}

struct Writer {
    file: Object<'static>,
    records: SectionId,
    descriptors: SectionId,
    /// Variables of programs by their digests.
    data: BTreeMap<[u8; 32], SymbolId>,
    /// The kernels' code.
    codes: Vec<SymbolId>,
}

impl Writer {
    fn new(mut file: Object<'static>, format: BinaryFormat) -> Writer {
        let (segment, name) = match format {
            BinaryFormat::MachO => ("__DATA", MACHO_SECTION),
            _ => ("", KernelRecord::SECTION),
        };
        if format == BinaryFormat::Elf {
            // Without it linkers assume that the file wants an executable stack.
            let note = b".note.GNU-stack".to_vec();
            file.add_section(Vec::new(), note, SectionKind::Other);
        }
        let segment = segment.as_bytes().to_vec();
        let records =
            file.add_section(segment, name.as_bytes().to_vec(), SectionKind::ReadOnlyData);
        let descriptors = file.section_id(StandardSection::ReadOnlyDataWithRel);
        Writer {
            file,
            records,
            descriptors,
            data: BTreeMap::new(),
            codes: Vec::new(),
        }
    }

    fn symbol(
        &mut self,
        name: &str,
        kind: SymbolKind,
        scope: SymbolScope,
        section: SectionId,
        (value, size): (u64, u64),
    ) -> SymbolId {
        self.file.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value,
            size,
            kind,
            scope,
            weak: false,
            section: SymbolSection::Section(section),
            flags: SymbolFlags::None,
        })
    }

    /// The symbol of a program's variables, which all its kernels point to.
    fn data(&mut self, data: &[u8]) -> SymbolId {
        let digest = digest(data);
        if let Some(symbol) = self.data.get(&digest) {
            return *symbol;
        }
        let section = self.file.section_id(StandardSection::ReadOnlyData);
        let at = self.file.append_section_data(section, data, 8);
        let name = format!("visa_jit_data_{}", self.data.len());
        let range = (at, data.len() as u64);
        let hidden = SymbolScope::Compilation;
        let symbol = self.symbol(&name, SymbolKind::Data, hidden, section, range);
        self.data.insert(digest, symbol);
        symbol
    }

    fn kernel(&mut self, kernel: &ObjectKernel) -> Result<(), ObjectError> {
        let text = self.file.section_id(StandardSection::Text);
        let record = &kernel.record;
        let mut pointers = Vec::new();
        let hidden = SymbolScope::Linkage;
        for (i, (variant, (code, align))) in record.variants.iter().zip(&kernel.codes).enumerate() {
            let at = self.file.append_section_data(text, code, *align);
            let range = (at, code.len() as u64);
            let symbol = self.symbol(&variant.symbol, SymbolKind::Text, hidden, text, range);
            pointers.push((ENTRIES_AT.saturating_add(8 * i as u64), symbol));
            self.codes.push(symbol);
        }
        let bytes = encode(record)?;
        let at = self.file.append_section_data(self.records, &bytes, 8);
        let name = format!("visa_jit_record_{}", identifier(&record.name));
        let range = (at, bytes.len() as u64);
        let records = self.records;
        let symbol = self.symbol(&name, SymbolKind::Data, hidden, records, range);
        pointers.push((RECORD_AT, symbol));

        let mut descriptor = Vec::new();
        descriptor.extend(DESCRIPTOR_MAGIC.to_le_bytes());
        descriptor.extend(ABI_VERSION.to_le_bytes());
        descriptor.extend([0; 12]);
        descriptor.extend((bytes.len() as u64).to_le_bytes());
        descriptor.resize(DATA_AT as usize + 8, 0);
        let data = kernel.data.as_deref();
        descriptor.extend(data.map_or(0, |data| data.len() as u64).to_le_bytes());
        if let Some(data) = data {
            pointers.push((DATA_AT, self.data(data)));
        }
        let at = self
            .file
            .append_section_data(self.descriptors, &descriptor, 8);
        let (range, section) = ((at, DESCRIPTOR_BYTES as u64), self.descriptors);
        self.symbol(
            &record.symbol,
            SymbolKind::Data,
            SymbolScope::Dynamic,
            section,
            range,
        );
        for (offset, symbol) in pointers {
            let relocation = Relocation {
                offset: at.saturating_add(offset),
                symbol,
                addend: 0,
                flags: RelocationFlags::Generic {
                    kind: RelocationKind::Absolute,
                    encoding: RelocationEncoding::Generic,
                    size: 64,
                },
            };
            self.file
                .add_relocation(self.descriptors, relocation)
                .map_err(failed)?;
        }
        Ok(())
    }
}

impl Writer {
    /// DWARF of all code. Files have relative names, so that the bytes do not depend on where they are made.
    fn debug_information(&mut self, kernels: &[ObjectKernel]) -> Result<(), ObjectError> {
        let places = |kernel: &ObjectKernel| -> Vec<Places> {
            let visa = format!("{}.visaasm", identifier(&kernel.record.name));
            let lines = kernel.lines.iter();
            lines
                .map(|lines| lines.places(kernel.text, &visa))
                .collect()
        };
        let places: Vec<Vec<Places>> = kernels.iter().map(places).collect();
        let variants = kernels.iter().zip(&places).flat_map(|(kernel, places)| {
            let variants = kernel.record.variants.iter().zip(&kernel.codes);
            variants.zip(places)
        });
        let functions = variants.enumerate();
        let functions = functions.map(|(i, ((variant, (code, _)), places))| DebugFunction {
            name: &variant.symbol,
            start: Start::Symbol(i),
            bytes: code.len() as u64,
            places,
        });
        let functions: Vec<_> = functions.collect();
        let sections = dwarf::sections("kernels", ".", &functions).map_err(failed)?;
        let named: Vec<_> = sections
            .iter()
            .map(|section| {
                let name = section.id.name().as_bytes().to_vec();
                let id = self.file.add_section(Vec::new(), name, SectionKind::Debug);
                self.file.set_section_data(id, section.bytes.clone(), 1);
                (section.id, id)
            })
            .collect();
        for (section, (_, id)) in sections.iter().zip(&named) {
            for r in &section.relocations {
                let symbol = match r.target {
                    RelocationTarget::Symbol(i) => self.codes.get(i).copied(),
                    RelocationTarget::Section(to) => {
                        let found = named.iter().find(|(id, _)| *id == to);
                        found.map(|(_, id)| self.file.section_symbol(*id))
                    }
                };
                let relocation = Relocation {
                    offset: r.offset as u64,
                    symbol: symbol.ok_or_else(|| failed("a reference to nothing"))?,
                    addend: r.addend,
                    flags: RelocationFlags::Generic {
                        kind: RelocationKind::Absolute,
                        encoding: RelocationEncoding::Generic,
                        size: r.size.saturating_mul(8),
                    },
                };
                self.file.add_relocation(*id, relocation).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// Whether a file is an object file or a library with kernels in it.
pub fn holds_kernels(bytes: &[u8]) -> bool {
    section(bytes).is_ok_and(|section| section.is_some())
}

fn section(bytes: &[u8]) -> Result<Option<Vec<u8>>, ObjectError> {
    let file = File::parse(bytes).map_err(failed)?;
    let named = |name| file.section_by_name(name);
    let Some(section) = named(KernelRecord::SECTION).or_else(|| named(MACHO_SECTION)) else {
        return Ok(None);
    };
    Ok(Some(section.data().map_err(failed)?.to_vec()))
}

/// Whether a file has to be linked before its code can run.
pub fn is_relocatable(bytes: &[u8]) -> bool {
    File::parse(bytes).is_ok_and(|file| file.kind() == object::ObjectKind::Relocatable)
}

/// The records of an object file or library, checked.
///
/// # Errors
/// [`ObjectError`] for files without any, and for damaged records.
pub fn records(bytes: &[u8]) -> Result<Vec<KernelRecord>, ObjectError> {
    let missing = ObjectError::Record(RecordError::Missing);
    let section = section(bytes)?.ok_or(missing.clone())?;
    let found: Result<Vec<KernelRecord>, RecordError> = Records::new(&section).collect();
    let found = found?;
    if found.is_empty() {
        return Err(missing);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_of_c() {
        assert_eq!(identifier("saxpy_2"), "saxpy_2");
        assert_eq!(identifier("2a"), "_x32a");
        assert_eq!(identifier("a::b"), "a_x3a_x3ab");
    }

    #[test]
    fn descriptors_are_laid_out_as_the_runtime_reads_them() {
        use std::mem::{offset_of, size_of};
        use visa_runtime::linked::Descriptor;
        assert_eq!(size_of::<Descriptor>(), DESCRIPTOR_BYTES);
        assert_eq!(offset_of!(Descriptor, abi), 8);
        assert_eq!(offset_of!(Descriptor, record), RECORD_AT as usize);
        assert_eq!(offset_of!(Descriptor, record_bytes), 24);
        assert_eq!(offset_of!(Descriptor, entries), ENTRIES_AT as usize);
        assert_eq!(offset_of!(Descriptor, data), DATA_AT as usize);
        assert_eq!(offset_of!(Descriptor, data_bytes), DATA_AT as usize + 8);
    }
}
