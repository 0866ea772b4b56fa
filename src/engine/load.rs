//! Engines load files: zebins and vISA text, from the file itself or from the manifest that the disk cache kept of it.

use super::error::Error;
use super::key::{FileFormat, FileKey};
use super::program::Program;
use super::source::ProgramFile;
use super::state::Engine;
use crate::container::Zebin;
use crate::isa::{Platform, Versions};

/// What is in a file.
#[derive(Clone, Copy, Debug)]
pub enum FileContents<'a> {
    /// A zebin.
    Zebin(&'a [u8]),
    /// vISA text.
    Text(&'a str),
}

/// A file as it was handed over.
struct Unread<'a> {
    format: FileFormat,
    name: &'a str,
    bytes: &'a [u8],
    platform: Option<Platform>,
}

impl Engine {
    /// Loads a zebin with vISA sections. `platform` overrides what the file says it was built for.
    ///
    /// # Errors
    /// For malformed files, and when the platform can neither be read off the file nor was given.
    pub fn program_from_zebin(
        &self,
        bytes: &[u8],
        platform: Option<Platform>,
    ) -> Result<Program, Error> {
        let digest = *blake3::hash(bytes).as_bytes();
        let file = Unread {
            format: FileFormat::Zebin,
            name: "",
            bytes,
            platform,
        };
        self.with_manifest(&file, &digest, || {
            let zebin = Zebin::parse_with(bytes, self.0.options.versions)?;
            Program::from_zebin(self.clone(), zebin, digest, platform)
        })
    }

    /// Loads vISA text. `file` names it in messages.
    ///
    /// # Errors
    /// All syntax and validation errors of the text.
    pub fn program_from_text(
        &self,
        file: &str,
        text: &str,
        platform: Platform,
    ) -> Result<Program, Error> {
        let unread = Unread {
            format: FileFormat::Text,
            name: file,
            bytes: text.as_bytes(),
            platform: Some(platform),
        };
        let digest = *blake3::hash(text.as_bytes()).as_bytes();
        self.with_manifest(&unread, &digest, || {
            Program::from_text(self.clone(), file, text, platform)
        })
    }

    /// Key under which the disk cache keeps what a launch from the cache needs to know of a file: a zebin, or vISA text. `platform`
    /// is the device given with the file. `None` where the key cannot be formed.
    pub fn manifest_key(
        contents: FileContents<'_>,
        platform: Option<Platform>,
        versions: Versions,
    ) -> Option<crate::artifact::Key> {
        let (format, bytes) = match contents {
            FileContents::Zebin(bytes) => (FileFormat::Zebin, bytes),
            FileContents::Text(text) => (FileFormat::Text, text.as_bytes()),
        };
        FileKey::new(format, blake3::hash(bytes).as_bytes(), platform, versions).key()
    }

    /// The program of a file: from the manifest that was kept of it, else as `read` reads it.
    fn with_manifest(
        &self,
        file: &Unread<'_>,
        digest: &[u8; 32],
        read: impl FnOnce() -> Result<Program, Error>,
    ) -> Result<Program, Error> {
        let versions = self.0.options.versions;
        let key = || FileKey::new(file.format, digest, file.platform, versions).key();
        let place = self.0.disk.as_ref().and_then(|disk| Some((disk, key()?)));
        let Some((disk, key)) = place else {
            return read();
        };
        if let Some(manifest) = disk.load_manifest(&key) {
            let file = ProgramFile {
                format: file.format,
                name: file.name.to_owned(),
                bytes: file.bytes.to_vec(),
                platform: manifest.platform,
                versions,
            };
            return Program::from_manifest(self, manifest, file);
        }
        let program = read()?;
        if let Some(manifest) = program.manifest() {
            disk.save_manifest(&key, &manifest);
        }
        Ok(program)
    }
}
