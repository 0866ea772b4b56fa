//! One cache entry as bytes: header, key, metadata, code. Manifests of programs are entries too, without code.
//!
//! ```text
//!  0  magic            8 bytes, another one for manifests
//!  8  format           u32
//! 12  alignment        u32, of the code
//! 16  key bytes        u64
//! 24  metadata bytes   u64
//! 32  code bytes       u64
//! 40  digest           32 bytes, of all other bytes
//! 72  key, metadata, code
//! ```
//!
//! Numbers are little-endian. The key is the text it was hashed from, so that an entry can say what it was made for.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use visa_runtime::KernelMeta;

use super::error::Defect;
use super::key::Key;
use crate::isa::known_opcode;
use crate::lines::LineTable;
use crate::ssa::{AccessKind, Site, Space};

/// Version of this layout and of the metadata's.
pub(super) const FORMAT: u32 = 5;
const DIGEST_AT: usize = 40;
const HEADER: usize = 72;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Code of a kernel.
    Code,
    /// What is known of a program without reading its instructions.
    Manifest,
}

impl EntryKind {
    /// All of them.
    pub const ALL: [EntryKind; 2] = [EntryKind::Code, EntryKind::Manifest];

    const fn magic(self) -> [u8; 8] {
        match self {
            EntryKind::Code => *b"VISAJITc",
            EntryKind::Manifest => *b"VISAJITo",
        }
    }

    /// Ending of its files.
    pub const fn suffix(self) -> &'static str {
        match self {
            EntryKind::Code => ".code",
            EntryKind::Manifest => ".manifest",
        }
    }
}

/// What a compiled kernel consists of, apart from what its key says.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// Machine code; entry point at offset 0.
    pub code: Vec<u8>,
    /// Required alignment of the first byte.
    pub align: u64,
    /// Lines that the code came from.
    pub lines: LineTable,
    /// What the runtime has to know.
    pub meta: KernelMeta,
    /// Memory instructions by the numbers that fault records have.
    pub sites: Vec<Site>,
    /// What the code generator did other than asked for, and why.
    pub note: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    meta: KernelMeta,
    lines: LineTable,
    sites: Vec<StoredSite>,
    note: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct StoredSite {
    line: u32,
    opcode: String,
    space: Space,
    kind: AccessKind,
    bytes: u32,
    alignment: u32,
    first_lane: u8,
}

impl From<&Site> for StoredSite {
    fn from(site: &Site) -> StoredSite {
        StoredSite {
            line: site.line,
            opcode: site.opcode.to_owned(),
            space: site.space,
            kind: site.kind,
            bytes: site.bytes,
            alignment: site.alignment,
            first_lane: site.first_lane,
        }
    }
}

impl StoredSite {
    fn site(self) -> Option<Site> {
        Some(Site {
            line: self.line,
            opcode: known_opcode(&self.opcode)?,
            space: self.space,
            kind: self.kind,
            bytes: self.bytes,
            alignment: self.alignment,
            first_lane: self.first_lane,
            // Records name sites of instructions only.
            parts: Vec::new(),
        })
    }
}

/// The bytes of an entry.
///
/// # Errors
/// [`Defect::Metadata`] when the metadata cannot be encoded.
pub fn seal(key: &Key, artifact: &Artifact) -> Result<Vec<u8>, Defect> {
    let metadata = postcard::to_allocvec(&Metadata {
        meta: artifact.meta.clone(),
        lines: artifact.lines.clone(),
        sites: artifact.sites.iter().map(StoredSite::from).collect(),
        note: artifact.note.clone(),
    })
    .map_err(|_| Defect::Metadata)?;
    let align = u32::try_from(artifact.align).map_err(|_| Defect::Metadata)?;
    Ok(sealed(
        EntryKind::Code,
        key,
        align,
        &metadata,
        &artifact.code,
    ))
}

/// The bytes of a manifest's entry.
///
/// # Errors
/// [`Defect::Metadata`] when it cannot be encoded.
pub fn seal_manifest(key: &Key, manifest: &impl Serialize) -> Result<Vec<u8>, Defect> {
    let metadata = postcard::to_allocvec(manifest).map_err(|_| Defect::Metadata)?;
    Ok(sealed(EntryKind::Manifest, key, 1, &metadata, &[]))
}

fn sealed(kind: EntryKind, key: &Key, align: u32, metadata: &[u8], code: &[u8]) -> Vec<u8> {
    let body = [key.text().as_bytes(), metadata, code];
    let mut bytes = Vec::with_capacity(HEADER + body.iter().map(|p| p.len()).sum::<usize>());
    bytes.extend(kind.magic());
    bytes.extend(FORMAT.to_le_bytes());
    bytes.extend(align.to_le_bytes());
    for part in body {
        bytes.extend((part.len() as u64).to_le_bytes());
    }
    bytes.extend([0; 32]);
    for part in body {
        bytes.extend_from_slice(part);
    }
    let digest = digest(&bytes);
    if let Some(place) = bytes.get_mut(DIGEST_AT..HEADER) {
        place.copy_from_slice(&digest);
    }
    bytes
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(bytes.get(..DIGEST_AT).unwrap_or(&[]));
    hasher.update(bytes.get(HEADER..).unwrap_or(&[]));
    *hasher.finalize().as_bytes()
}

/// Bytes `at..at + N`.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The parts of an entry whose header and digest are right.
struct Parts<'a> {
    align: u32,
    key: &'a str,
    metadata: &'a [u8],
    code: &'a [u8],
}

fn parts(kind: EntryKind, bytes: &[u8]) -> Result<Parts<'_>, Defect> {
    let found = bytes.len() as u64;
    let short = Defect::Length {
        found,
        wanted: HEADER as u64,
    };
    if bytes.len() < HEADER {
        return Err(short);
    }
    if array(bytes, 0) != Some(kind.magic()) {
        return Err(Defect::Magic);
    }
    let word = |at| array(bytes, at).map_or(0, u32::from_le_bytes);
    if word(8) != FORMAT {
        return Err(Defect::Format(word(8)));
    }
    let lengths = [16, 24, 32].map(|at| array(bytes, at).map_or(0, u64::from_le_bytes));
    let wanted = lengths
        .iter()
        .fold(HEADER as u64, |sum, part| sum.saturating_add(*part));
    if wanted != found {
        return Err(Defect::Length { found, wanted });
    }
    if array(bytes, DIGEST_AT) != Some(digest(bytes)) {
        return Err(Defect::Digest);
    }
    let body = bytes.get(HEADER..).unwrap_or(&[]);
    // Both are at most the length of the file.
    let (key, rest) = body
        .split_at_checked(lengths[0] as usize)
        .ok_or(short.clone())?;
    let (metadata, code) = rest.split_at_checked(lengths[1] as usize).ok_or(short)?;
    Ok(Parts {
        align: word(12),
        key: std::str::from_utf8(key).map_err(|_| Defect::Key)?,
        metadata,
        code,
    })
}

/// The artifact in an entry, if it was made for `key`.
///
/// # Errors
/// What is wrong with it.
pub fn open(bytes: &[u8], key: &Key) -> Result<Artifact, Defect> {
    let parts = parts(EntryKind::Code, bytes)?;
    if parts.key != key.text() {
        return Err(Defect::Key);
    }
    decode(&parts).ok_or(Defect::Metadata)
}

/// The manifest in an entry, if it was made for `key`.
///
/// # Errors
/// What is wrong with it.
pub fn open_manifest<T: DeserializeOwned>(bytes: &[u8], key: &Key) -> Result<T, Defect> {
    let parts = parts(EntryKind::Manifest, bytes)?;
    if parts.key != key.text() {
        return Err(Defect::Key);
    }
    postcard::from_bytes(parts.metadata).map_err(|_| Defect::Metadata)
}

fn decode(parts: &Parts<'_>) -> Option<Artifact> {
    let metadata: Metadata = postcard::from_bytes(parts.metadata).ok()?;
    metadata.meta.check().ok()?;
    let sites: Option<Vec<Site>> = metadata.sites.into_iter().map(StoredSite::site).collect();
    Some(Artifact {
        code: parts.code.to_vec(),
        align: u64::from(parts.align),
        lines: metadata.lines,
        meta: metadata.meta,
        sites: sites?,
        note: metadata.note,
    })
}

/// The key that an entry was made for and the bytes of its code, once all of it has been checked.
///
/// # Errors
/// What is wrong with it.
pub(super) fn inspect(kind: EntryKind, bytes: &[u8]) -> Result<(Key, u64), Defect> {
    let parts = parts(kind, bytes)?;
    // What manifests hold is for those who read them to know.
    if kind == EntryKind::Code {
        decode(&parts).ok_or(Defect::Metadata)?;
    }
    Ok((
        Key::from_text(parts.key.to_owned()),
        parts.code.len() as u64,
    ))
}
