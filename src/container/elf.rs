//! The ELF side of a zebin: recognises the file, lists its sections, keeps track of how much was copied.

use object::LittleEndian;
use object::elf::{self, FileHeader64, SectionHeader64};
use object::read::elf::{FileHeader as _, SectionHeader as _, SectionTable};

use super::error::ContainerError;
use super::limits;

type Header = FileHeader64<LittleEndian>;

const LE: LittleEndian = LittleEndian;
const SECTION_HEADER_BYTES: u64 = 64;
/// Section type of an OpenCL program binary's device part.
const SHT_OPENCL_DEVICE_BINARY: u32 = 0xff00_0005;

/// A section with its bytes.
pub(super) struct Section<'d> {
    pub index: usize,
    pub name: &'d str,
    pub kind: elf::SectionType,
    pub info: u32,
    pub file_offset: u64,
    pub size: u64,
    /// Empty for sections without file contents.
    pub data: &'d [u8],
    pub raw: &'d SectionHeader64<LittleEndian>,
}

/// A recognised file.
pub(super) struct Elf<'d> {
    pub bytes: &'d [u8],
    pub header: &'d Header,
    pub table: SectionTable<'d, Header>,
    pub sections: Vec<Section<'d>>,
}

impl<'d> Elf<'d> {
    pub(super) fn parse(bytes: &'d [u8]) -> Result<Self, ContainerError> {
        let (found, limit) = (bytes.len() as u64, limits::MAX_FILE_BYTES as u64);
        ContainerError::check_limit("zebin bytes", found, limit)?;
        recognise(bytes)?;
        let header = Header::parse(bytes).map_err(|error| broken(0, &error))?;
        let table_offset = header.e_shoff.get(LE);
        let table = header
            .sections(LE, bytes)
            .map_err(|error| broken(table_offset, &error))?;
        let (found, limit) = (table.len() as u64, limits::MAX_SECTIONS as u64);
        ContainerError::check_limit("sections", found, limit)?;
        let sections = table
            .iter()
            .enumerate()
            .map(|(index, raw)| {
                let at = (index as u64)
                    .saturating_mul(SECTION_HEADER_BYTES)
                    .saturating_add(table_offset);
                section(bytes, &table, index, raw, at)
            })
            .collect::<Result<Vec<_>, _>>()?;
        if sections
            .iter()
            .any(|section| section.kind.0 == SHT_OPENCL_DEVICE_BINARY)
        {
            return Err(not_zebin(
                "an OpenCL program binary, which wraps the zebin",
                "compile with `ocloc … --format zebin` and pass the .bin file",
            ));
        }
        Ok(Self {
            bytes,
            header,
            table,
            sections,
        })
    }
}

fn section<'d>(
    bytes: &'d [u8],
    table: &SectionTable<'d, Header>,
    index: usize,
    raw: &'d SectionHeader64<LittleEndian>,
    at: u64,
) -> Result<Section<'d>, ContainerError> {
    let kind = raw.sh_type(LE);
    let name = match kind {
        elf::SHT_NULL => "",
        _ => {
            let name = table
                .section_name(LE, raw)
                .map_err(|error| broken(at, &error))?;
            text_name(name, at)?
        }
    };
    let data = match kind {
        elf::SHT_NULL => &[],
        _ => raw.data(LE, bytes).map_err(|error| {
            ContainerError::malformed(at, format!("section {index} ({name}): {error}"))
        })?,
    };
    Ok(Section {
        index,
        name,
        kind,
        info: raw.sh_info(LE),
        file_offset: raw.sh_offset(LE),
        size: raw.sh_size(LE),
        data,
        raw,
    })
}

/// Refuses everything that is not a 64-bit little-endian ELF file, with advice where the kind is known.
fn recognise(bytes: &[u8]) -> Result<(), ContainerError> {
    const KNOWN: [(&[u8], &str, &str); 5] = [
        (
            b"CTNI",
            "a patch-token binary",
            "compile with `ocloc … --format zebin`",
        ),
        (
            b"!<ar",
            "an archive (a fat binary for several devices)",
            "compile for one `-device`",
        ),
        (
            b"\x03\x02\x23\x07",
            "SPIR-V",
            "compile it with ocloc (`-spirv_input`) first",
        ),
        (b".ver", "vISA text", "read it with the text front end"),
        (
            b"CISA",
            "a vISA binary (.isa)",
            "read it with the binary front end",
        ),
    ];
    if !bytes.starts_with(&elf::ELFMAG) {
        let known = KNOWN.iter().find(|(magic, ..)| bytes.starts_with(magic));
        return Err(match known {
            Some((_, found, hint)) => not_zebin(found, hint),
            None if bytes.is_empty() => not_zebin("an empty file", ""),
            None => not_zebin("no ELF magic at the start", ""),
        });
    }
    match (bytes.get(4), bytes.get(5)) {
        (Some(2), Some(1)) => Ok(()),
        (Some(1), _) => Err(not_zebin(
            "a 32-bit ELF file",
            "compile for 64-bit pointers (`-64`)",
        )),
        (_, Some(2)) => Err(not_zebin("a big-endian ELF file", "")),
        _ => Err(ContainerError::malformed(
            4,
            "truncated or unknown ELF identification",
        )),
    }
}

fn not_zebin(found: &str, hint: &str) -> ContainerError {
    ContainerError::NotZebin {
        found: found.to_owned(),
        hint: hint.to_owned(),
    }
}

/// The `object` crate's error with the offset of the structure it arose in.
pub(super) fn broken(offset: u64, error: &object::read::Error) -> ContainerError {
    ContainerError::malformed(offset, error.to_string())
}

/// A name from a string table; `at` is where the reference to it stands.
pub(super) fn text_name(name: &[u8], at: u64) -> Result<&str, ContainerError> {
    ContainerError::check_limit(
        "name bytes",
        name.len() as u64,
        limits::MAX_NAME_BYTES as u64,
    )?;
    std::str::from_utf8(name).map_err(|_| ContainerError::malformed(at, "a name is not UTF-8"))
}

/// Counts copied bytes, so that overlapping sections cannot make a small file large.
pub(super) struct CopyBudget {
    limit: u64,
    used: u64,
}

impl CopyBudget {
    pub(super) fn new(file_bytes: usize) -> Self {
        Self {
            limit: limits::copy_budget(file_bytes),
            used: 0,
        }
    }

    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), ContainerError> {
        self.used = self.used.saturating_add(bytes as u64);
        ContainerError::check_limit(
            "bytes in overlapping sections or names",
            self.used,
            self.limit,
        )
    }
}
