//! The parts of a zebin that are read section by section: data, symbols, relocations, notes.

use std::collections::HashMap;

use object::LittleEndian;
use object::elf;
use object::read::elf::{SectionHeader as _, Sym as _, SymbolTable};

use super::elf::{CopyBudget, Elf, Section, broken, text_name};
use super::error::ContainerError;
use super::limits;
use super::ze_info::ZeInfo;
use super::zebin::{
    DataKind, DataSection, NATIVE_PREFIX, Relocation, RelocationKind, RelocationPlace, SectionMap,
    Symbol, SymbolKind, SymbolPlace, Target,
};

const LE: LittleEndian = LittleEndian;
const NOTE_OWNER: &[u8] = b"IntelGT";

/// Section contents as text, without the NULs some writers end it with.
pub(super) fn utf8<'d>(section: &Section<'d>) -> Result<&'d str, ContainerError> {
    match std::str::from_utf8(section.data) {
        Ok(text) => Ok(text.trim_end_matches('\0')),
        Err(error) => Err(ContainerError::NotText {
            section: section.name.to_owned(),
            offset: section
                .file_offset
                .saturating_add(error.valid_up_to() as u64),
        }),
    }
}

fn data_kind(name: &str) -> Option<DataKind> {
    Some(match name {
        ".data.const" | ".bss.const" => DataKind::Const,
        ".data.const.string" => DataKind::ConstString,
        ".data.global" | ".bss.global" => DataKind::Global,
        _ if name.starts_with(".data") || name.starts_with(".bss") => DataKind::Other,
        _ => return None,
    })
}

pub(super) fn read_data(
    elf: &Elf<'_>,
    budget: &mut CopyBudget,
) -> Result<Vec<DataSection>, ContainerError> {
    let mut data = Vec::new();
    for section in &elf.sections {
        let Some(kind) = data_kind(section.name) else {
            continue;
        };
        ContainerError::check_limit(
            "bytes of a data section",
            section.size,
            limits::MAX_DATA_BYTES,
        )?;
        budget.charge(section.data.len().saturating_add(section.name.len()))?;
        data.push(DataSection {
            name: section.name.to_owned(),
            kind,
            section_index: section.index,
            bytes: section.data.to_vec(),
            size: section.size,
            align: section.raw.sh_addralign(LE),
        });
    }
    Ok(data)
}

pub(super) fn read_symbols(
    elf: &Elf<'_>,
    data: &SectionMap,
    budget: &mut CopyBudget,
) -> Result<Vec<Symbol>, ContainerError> {
    let at = elf
        .sections
        .iter()
        .find(|section| section.kind == elf::SHT_SYMTAB);
    let at = at.map_or(0, |section| section.file_offset);
    let table = elf
        .table
        .symbols(LE, elf.bytes, elf::SHT_SYMTAB)
        .map_err(|error| broken(at, &error))?;
    ContainerError::check_limit("symbols", table.len() as u64, limits::MAX_SYMBOLS as u64)?;
    let mut symbols = Vec::with_capacity(table.len());
    for (index, raw) in table.iter().enumerate() {
        let name = table
            .symbol_name(LE, raw)
            .map_err(|error| broken(at, &error))?;
        let name = text_name(name, at)?;
        budget.charge(name.len())?;
        symbols.push(Symbol {
            name: name.to_owned(),
            kind: match raw.st_type() {
                elf::STT_FUNC => SymbolKind::Function,
                elf::STT_OBJECT => SymbolKind::Object,
                _ => SymbolKind::Other,
            },
            is_global: raw.st_bind() != elf::STB_LOCAL,
            place: symbol_place(elf, &table, raw, index, data, at)?,
            value: raw.st_value(LE),
            size: raw.st_size(LE),
        });
    }
    Ok(symbols)
}

fn symbol_place(
    elf: &Elf<'_>,
    table: &SymbolTable<'_, elf::FileHeader64<LittleEndian>>,
    raw: &elf::Sym64<LittleEndian>,
    index: usize,
    data: &SectionMap,
    at: u64,
) -> Result<SymbolPlace, ContainerError> {
    if raw.st_shndx(LE) == elf::SHN_UNDEF {
        return Ok(SymbolPlace::Undefined);
    }
    let section = table
        .symbol_section(LE, raw, object::SymbolIndex(index))
        .map_err(|error| broken(at, &error))?;
    let Some(section) = section.map(|section| section.0) else {
        return Ok(SymbolPlace::Special);
    };
    if section >= elf.sections.len() {
        let message = format!("symbol {index} lies in section {section}, which does not exist");
        return Err(ContainerError::malformed(at, message));
    }
    Ok(data
        .get(&section)
        .map_or(SymbolPlace::Section(section), |&data| {
            SymbolPlace::Data(data)
        }))
}

pub(super) fn read_relocations(
    elf: &Elf<'_>,
    ze_info: &ZeInfo,
    data: &SectionMap,
    symbols: usize,
) -> Result<Vec<Relocation>, ContainerError> {
    let kernels: HashMap<&str, usize> = ze_info
        .kernels
        .iter()
        .enumerate()
        .map(|(index, kernel)| (kernel.name.as_str(), index))
        .collect();
    let place_of = |section: &Section<'_>| {
        let target = elf.sections.get(section.info as usize)?;
        let kernel = target
            .name
            .strip_prefix(NATIVE_PREFIX)
            .and_then(|name| kernels.get(name));
        Some(match (kernel, data.get(&target.index)) {
            (Some(&kernel), _) => RelocationPlace::Kernel(kernel),
            (_, Some(&data)) => RelocationPlace::Data(data),
            _ => RelocationPlace::Section(target.index),
        })
    };
    let mut relocations = Vec::new();
    for section in &elf.sections {
        let at = section.file_offset;
        let rel = section
            .raw
            .rel(LE, elf.bytes)
            .map_err(|error| broken(at, &error))?;
        let rela = section
            .raw
            .rela(LE, elf.bytes)
            .map_err(|error| broken(at, &error))?;
        let (rel, rela) = (
            rel.map_or(&[][..], |found| found.0),
            rela.map_or(&[][..], |found| found.0),
        );
        if rel.is_empty() && rela.is_empty() {
            continue;
        }
        let place = place_of(section).ok_or_else(|| {
            ContainerError::malformed(
                at,
                format!("{} patches a section that does not exist", section.name),
            )
        })?;
        let entries = rel
            .iter()
            .map(|entry| {
                (
                    entry.r_offset.get(LE),
                    entry.r_type(LE).0,
                    entry.r_sym(LE),
                    None,
                )
            })
            .chain(rela.iter().map(|entry| {
                let addend = Some(entry.r_addend.get(LE));
                (
                    entry.r_offset.get(LE),
                    entry.r_type(LE, false).0,
                    entry.r_sym(LE, false),
                    addend,
                )
            }));
        for (offset, kind, symbol, addend) in entries {
            let symbol = symbol_index(symbol, symbols, at)?;
            relocations.push(Relocation {
                place,
                offset,
                kind: relocation_kind(kind),
                symbol,
                addend,
            });
        }
        let (count, limit) = (relocations.len() as u64, limits::MAX_RELOCATIONS as u64);
        ContainerError::check_limit("relocations", count, limit)?;
    }
    Ok(relocations)
}

fn symbol_index(symbol: u32, symbols: usize, at: u64) -> Result<Option<usize>, ContainerError> {
    let symbol = symbol as usize;
    match symbol {
        0 => Ok(None),
        _ if symbol < symbols => Ok(Some(symbol)),
        _ => Err(ContainerError::malformed(
            at,
            format!("a relocation names symbol {symbol} of {symbols}"),
        )),
    }
}

fn relocation_kind(kind: u32) -> RelocationKind {
    match kind {
        1 => RelocationKind::Address,
        2 => RelocationKind::AddressLow32,
        3 => RelocationKind::AddressHigh32,
        4 => RelocationKind::PerThreadPayloadOffset,
        _ => RelocationKind::Other(kind),
    }
}

pub(super) fn read_target(elf: &Elf<'_>) -> Result<Target, ContainerError> {
    let mut target = Target {
        elf_machine: elf.header.e_machine.get(LE).0,
        elf_type: elf.header.e_type.get(LE).0,
        elf_flags: elf.header.e_flags.get(LE).0,
        ..Target::default()
    };
    let notes = elf
        .sections
        .iter()
        .find(|section| section.name == ".note.intelgt.compat");
    let Some(section) = notes else {
        return Ok(target);
    };
    let at = section.file_offset;
    let notes = section
        .raw
        .notes(LE, elf.bytes)
        .map_err(|error| broken(at, &error))?;
    let Some(mut notes) = notes else {
        return Ok(target);
    };
    while let Some(note) = notes.next().map_err(|error| broken(at, &error))? {
        if note.name() != NOTE_OWNER {
            continue;
        }
        let number = || {
            note.desc()
                .first_chunk()
                .map(|bytes| u32::from_le_bytes(*bytes))
        };
        match note.n_type(LE).0 {
            1 => target.product_family = number(),
            2 => target.gfx_core = number(),
            3 => target.metadata = number(),
            4 => {
                let text = String::from_utf8_lossy(note.desc());
                target.zebin_version = Some(text.trim_end_matches('\0').to_owned());
            }
            _ => {}
        }
    }
    Ok(target)
}

pub(super) fn read_build_options(
    elf: &Elf<'_>,
    budget: &mut CopyBudget,
) -> Result<Option<String>, ContainerError> {
    let section = elf
        .sections
        .iter()
        .find(|section| section.name == ".misc.buildOptions");
    let Some(section) = section else {
        return Ok(None);
    };
    budget.charge(section.data.len())?;
    let text = String::from_utf8_lossy(section.data);
    Ok(Some(text.trim_end_matches('\0').trim().to_owned()))
}
