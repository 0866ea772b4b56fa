//! Program-scope variables and constants: what a program's memory holds when it is loaded.

use crate::memory::{Buffer, DeviceMemory, MemoryError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Initial contents of a program's variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataImage {
    /// Tells programs apart: kernels of one share its variables.
    pub program: [u8; 32],
    /// Sections, each a buffer of its own.
    pub sections: Vec<DataSection>,
    /// Numbers that are known only when the sections have addresses.
    pub patches: Vec<DataPatch>,
}

/// A section of variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSection {
    /// Bytes in memory.
    pub size: u64,
    /// The first of them; the others are zero.
    pub bytes: Vec<u8>,
    /// Kernels only read it.
    pub read_only: bool,
}

/// An address among a section's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataPatch {
    /// Section it stands in.
    pub section: u32,
    /// First byte.
    pub offset: u64,
    /// How much of it stands there.
    pub part: PatchPart,
    /// The section that it points into; none for numbers that are no addresses.
    pub target: Option<u32>,
    /// What is added to the target's address.
    pub value: u64,
}

/// Part of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatchPart {
    /// All eight bytes.
    Whole,
    /// The lower four.
    Low,
    /// The upper four.
    High,
}

/// Why a program's variables cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// No room, or an address outside its section.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A section is named that does not exist.
    #[error("an address in the program's variables points to section {0}, which does not exist")]
    Section(u32),
}

/// A program's variables in device memory.
#[derive(Debug, Default)]
pub struct ProgramData {
    sections: Vec<Buffer>,
}

impl ProgramData {
    /// Puts a program's variables into memory.
    ///
    /// # Errors
    /// [`DataError`].
    pub fn load(image: &DataImage, memory: &DeviceMemory) -> Result<ProgramData, DataError> {
        let mut data = ProgramData::default();
        for section in &image.sections {
            let buffer = memory.alloc(section.size.max(section.bytes.len() as u64))?;
            buffer.write(0, &section.bytes)?;
            data.sections.push(buffer);
        }
        for patch in &image.patches {
            let base = match patch.target {
                Some(target) => data.address(target, 0).ok_or(DataError::Section(target))?,
                None => 0,
            };
            let bytes = base.wrapping_add(patch.value).to_le_bytes();
            let bytes = match patch.part {
                PatchPart::Whole => &bytes[..],
                PatchPart::Low => &bytes[..4],
                PatchPart::High => &bytes[4..],
            };
            let section = data.sections.get(patch.section as usize);
            let section = section.ok_or(DataError::Section(patch.section))?;
            section.write(patch.offset, bytes)?;
        }
        let kinds = image.sections.iter().zip(&data.sections);
        for (_, buffer) in kinds.filter(|(section, _)| section.read_only) {
            buffer.mark_read_only()?;
        }
        Ok(data)
    }

    /// The memory of all sections.
    pub fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        self.sections.iter()
    }

    /// The memory of a section.
    pub fn section(&self, section: u32) -> Option<&Buffer> {
        self.sections.get(section as usize)
    }

    /// The address of a byte of a section; it need not lie in it.
    pub fn address(&self, section: u32, offset: u64) -> Option<u64> {
        let buffer = self.sections.get(section as usize)?;
        Some(buffer.address().wrapping_add(offset))
    }
}

/// The programs that were loaded into a device memory: each has its variables once, whichever of its kernels run.
#[derive(Debug, Default)]
pub struct LoadedPrograms(Mutex<BTreeMap<[u8; 32], Arc<ProgramData>>>);

impl LoadedPrograms {
    /// A program's variables, loaded if they were not yet.
    ///
    /// # Errors
    /// As [`ProgramData::load`].
    pub fn get(
        &self,
        image: &DataImage,
        memory: &DeviceMemory,
    ) -> Result<Arc<ProgramData>, DataError> {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(data) = loaded.get(&image.program) {
            return Ok(data.clone());
        }
        let data = Arc::new(ProgramData::load(image, memory)?);
        loaded.insert(image.program, data.clone());
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> DataImage {
        let patch = |offset, part, target, value| DataPatch {
            section: 0,
            offset,
            part,
            target,
            value,
        };
        DataImage {
            program: [1; 32],
            sections: vec![
                DataSection {
                    size: 24,
                    bytes: vec![7; 4],
                    read_only: true,
                },
                DataSection {
                    size: 8,
                    bytes: Vec::new(),
                    read_only: false,
                },
            ],
            patches: vec![
                patch(4, PatchPart::Low, Some(1), 4),
                patch(8, PatchPart::High, Some(1), 4),
                patch(16, PatchPart::Whole, None, 0x1234),
            ],
        }
    }

    #[test]
    fn addresses_are_filled_in() {
        let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
        let data = ProgramData::load(&image(), &memory).unwrap();
        let target = data.address(1, 4).unwrap();
        let mut bytes = [0; 24];
        data.sections[0].read(0, &mut bytes).unwrap();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(bytes[..4], [7; 4]);
        assert_eq!(
            u64::from(word(4)) | u64::from(word(8)) << 32,
            target,
            "{bytes:?}"
        );
        assert_eq!((word(12), word(16), word(20)), (0, 0x1234, 0));
    }

    #[test]
    fn kernels_only_read_constants() {
        let memory = DeviceMemory::checked(1 << 20).unwrap();
        let data = ProgramData::load(&image(), &memory).unwrap();
        let read_only =
            [0, 1].map(|section| memory.is_read_only(data.address(section, 0).unwrap(), 4));
        assert_eq!(read_only, [true, false]);
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
        let mut wrong = image();
        wrong.patches[0].target = Some(2);
        let error = ProgramData::load(&wrong, &memory).unwrap_err();
        assert!(matches!(error, DataError::Section(2)), "{error}");
        let mut wrong = image();
        wrong.patches[0].offset = 21;
        let error = ProgramData::load(&wrong, &memory).unwrap_err();
        assert!(matches!(error, DataError::Memory(_)), "{error}");
        let mut wrong = image();
        wrong.sections[1].size = u64::MAX;
        assert!(ProgramData::load(&wrong, &memory).is_err());
    }

    #[test]
    fn programs_are_loaded_once() {
        let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
        let loaded = LoadedPrograms::default();
        let get = |image: &DataImage| loaded.get(image, &memory).unwrap();
        let image = image();
        let (first, again) = (get(&image), get(&image));
        assert!(Arc::ptr_eq(&first, &again));
        let other = DataImage {
            program: [2; 32],
            ..image
        };
        assert!(!Arc::ptr_eq(&first, &get(&other)));
    }
}
