//! What an object file says about a kernel, as bytes in the section [`SECTION`](KernelRecord::SECTION).
//!
//! A record is a header (magic, format, ABI, length, digest) and its contents; a section holds any number of them, each
//! at a multiple of eight bytes, as linkers join sections.

use crate::abi::ABI_VERSION;
use crate::launch::LocalIdLayout;
use crate::linked::{LaunchPlan, LinkError, missing_features};
use crate::meta::KernelMeta;
use serde::{Deserialize, Serialize};

const MAGIC: [u8; 8] = *b"VISAJITr";
/// Version of the records' layout.
const FORMAT: u32 = 2;
const HEADER: usize = 56;

/// A memory instruction, for fault records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteRecord {
    /// Line of the vISA text, 0 when unknown.
    pub line: u32,
    /// Opcode.
    pub opcode: String,
    /// Read, write or atomic.
    pub access: String,
    /// Address space.
    pub space: String,
    /// It goes to a surface.
    pub surface: bool,
    /// Bytes of one element.
    pub bytes: u32,
}

/// Code of a kernel for some of its launches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// For launches whose lanes lie so, or better ([`crate::LaunchShape::lanes`]).
    pub lanes: LocalIdLayout,
    /// Symbol of the code.
    pub symbol: String,
    /// What the runtime has to know.
    pub meta: KernelMeta,
    /// Bytes of code.
    pub code_bytes: u64,
    /// Their digest.
    pub code_digest: [u8; 32],
    /// Memory instructions by number.
    pub sites: Vec<SiteRecord>,
}

/// A kernel in an object file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRecord {
    /// Name.
    pub name: String,
    /// Symbol of its descriptor.
    pub symbol: String,
    /// Device whose vISA it was compiled from.
    pub device: String,
    /// Target.
    pub triple: String,
    /// Processor features that the code uses, by the code generator's names.
    pub features: Vec<String>,
    /// Code generator.
    pub backend: String,
    /// What accesses out of bounds do: `zero`, `trap` or `report`.
    pub oob: String,
    /// How arguments reach the code.
    pub plan: LaunchPlan,
    /// Digest of the program's variables, if the kernel uses any.
    pub data_digest: Option<[u8; 32]>,
    /// Code; what is for fewest launches comes first.
    pub variants: Vec<Variant>,
}

/// Why a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Too short, or not a record.
    #[error("no kernel record")]
    Missing,
    /// Another version of the records' layout.
    #[error("kernel record of format {0} instead of {FORMAT}")]
    Format(u32),
    /// For another version of the runtime.
    #[error(
        "compiled for version {0} of the runtime's ABI; this runtime has version {ABI_VERSION}"
    )]
    Abi(u32),
    /// The digest does not match.
    #[error("damaged kernel record: the digest does not match")]
    Digest,
    /// The contents cannot be decoded.
    #[error("malformed kernel record")]
    Malformed,
}

/// The digest that records are checked by.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

fn header_digest(bytes: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(bytes.get(..24).unwrap_or(&[]));
    hasher.update(bytes.get(HEADER..).unwrap_or(&[]));
    *hasher.finalize().as_bytes()
}

/// A record as bytes, a multiple of eight of them.
///
/// # Errors
/// [`RecordError::Malformed`] when it cannot be encoded.
pub fn encode(record: &KernelRecord) -> Result<Vec<u8>, RecordError> {
    let contents = postcard::to_allocvec(record).map_err(|_| RecordError::Malformed)?;
    let mut bytes = Vec::with_capacity(HEADER + contents.len() + 8);
    bytes.extend(MAGIC);
    bytes.extend(FORMAT.to_le_bytes());
    bytes.extend(ABI_VERSION.to_le_bytes());
    bytes.extend((contents.len() as u64).to_le_bytes());
    bytes.extend([0; 32]);
    bytes.extend(contents);
    let digest = header_digest(&bytes);
    bytes[24..HEADER].copy_from_slice(&digest);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    Ok(bytes)
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

impl KernelRecord {
    /// Name of the section on ELF; on Mach-O it is `__visa_jit` in segment `__DATA`.
    pub const SECTION: &str = ".visa_jit";

    /// The record that `bytes` start with.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn decode(bytes: &[u8]) -> Result<KernelRecord, RecordError> {
        KernelRecord::decode_one(bytes).map(|(record, _)| record)
    }

    /// The record at the start and the number of bytes it takes.
    fn decode_one(bytes: &[u8]) -> Result<(KernelRecord, usize), RecordError> {
        if word(bytes, 0) != Some(MAGIC) || bytes.len() < HEADER {
            return Err(RecordError::Missing);
        }
        let number = |at| word(bytes, at).map_or(0, u32::from_le_bytes);
        if number(8) != FORMAT {
            return Err(RecordError::Format(number(8)));
        }
        if number(12) != ABI_VERSION {
            return Err(RecordError::Abi(number(12)));
        }
        let length = word(bytes, 16).map_or(u64::MAX, u64::from_le_bytes);
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_add(HEADER));
        let whole = end.and_then(|end| bytes.get(..end));
        let whole = whole.ok_or(RecordError::Missing)?;
        if word(whole, 24) != Some(header_digest(whole)) {
            return Err(RecordError::Digest);
        }
        let record = postcard::from_bytes(&whole[HEADER..]).map_err(|_| RecordError::Malformed)?;
        Ok((record, whole.len().next_multiple_of(8)))
    }

    /// Whether this machine can run the code.
    pub(super) fn check_machine(&self) -> Result<(), LinkError> {
        let architecture = self.triple.split('-').next().unwrap_or("");
        if architecture != std::env::consts::ARCH {
            return Err(LinkError::Architecture {
                kernel: self.name.clone(),
                triple: self.triple.clone(),
            });
        }
        let missing = missing_features(&self.features);
        if !missing.is_empty() {
            return Err(LinkError::Features {
                kernel: self.name.clone(),
                missing,
            });
        }
        Ok(())
    }
}

/// Every record of a section.
#[derive(Clone, Debug)]
pub struct Records<'a>(&'a [u8]);

impl<'a> Records<'a> {
    /// Over the bytes of a section.
    pub fn new(section: &'a [u8]) -> Records<'a> {
        Records(section)
    }
}

impl Iterator for Records<'_> {
    type Item = Result<KernelRecord, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Linkers may leave a gap after a file's part.
        let start = self.0.iter().position(|byte| *byte != 0)?;
        self.0 = &self.0[start / 8 * 8..];
        match KernelRecord::decode_one(self.0) {
            Ok((record, length)) => {
                self.0 = self.0.get(length..).unwrap_or(&[]);
                Some(Ok(record))
            }
            Err(error) => {
                self.0 = &[];
                Some(Err(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str) -> KernelRecord {
        KernelRecord {
            name: name.to_owned(),
            symbol: format!("visa_jit_kernel_{name}"),
            device: "skl".to_owned(),
            triple: "x86_64-unknown-linux-gnu".to_owned(),
            features: vec!["has_sse3".to_owned()],
            backend: "cranelift".to_owned(),
            oob: "zero".to_owned(),
            plan: LaunchPlan::default(),
            data_digest: None,
            variants: Vec::new(),
        }
    }

    #[test]
    fn sections_hold_any_number() {
        let mut section = Vec::new();
        let records = ["a", "bc", "def"].map(record);
        for record in &records {
            section.extend(encode(record).unwrap());
            section.extend([0; 16]);
        }
        let found: Result<Vec<_>, _> = Records::new(&section).collect();
        assert_eq!(found.unwrap(), records);
        assert_eq!(Records::new(&[]).count(), 0);
        assert_eq!(Records::new(&[0; 24]).count(), 0);
    }

    #[test]
    fn damage_is_seen() {
        let bytes = encode(&record("k")).unwrap();
        let length = u64::from_le_bytes(word(&bytes, 16).unwrap()) as usize + HEADER;
        for bit in 0..length * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(KernelRecord::decode(&bytes).is_err(), "bit {bit}");
        }
        for end in 0..length {
            assert!(KernelRecord::decode(&bytes[..end]).is_err(), "{end} bytes");
        }
    }
}
