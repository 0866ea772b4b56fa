//! Files that hold several images for devices: archives that `ocloc` makes for several devices, and programs, libraries and
//! objects of SYCL.
//!
//! | file | where its images are |
//! |---|---|
//! | `ar` archive | its members |
//! | ELF, linked by DPC++'s `clang-offload-wrapper` | the ranges that the section `.tgtimg` lists, in sections `__CLANG_OFFLOAD_BUNDLE__KIND-TARGET` |
//! | ELF, linked with the new offloading driver | offload binaries in the section `.llvm.offloading` |
//! | offload binary | its entry |

mod host;
mod offload;
mod spirv;

use object::read::archive::ArchiveFile;

use super::device::infer_device;
use super::error::ContainerError;
use super::limits::MAX_IMAGES;
use super::{Device, Zebin};
use crate::isa::Versions;

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image<'d> {
    /// What the file says that it is for: the name of a member, or the target of a section.
    pub target: String,
    /// What it is.
    pub format: ImageFormat,
    /// The device that a zebin names.
    pub device: Option<Device>,
    /// Names of its kernels; empty where they cannot be told.
    pub kernels: Vec<String>,
    /// Its bytes.
    pub bytes: &'d [u8],
}

/// What an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// Native code, with vISA if it was asked for.
    Zebin,
    /// SPIR-V, to be compiled.
    Spirv,
    /// LLVM bitcode, as objects have it before they are linked.
    Bitcode,
    /// Something else.
    Other,
}

impl ImageFormat {
    /// A word for listings.
    pub fn name(self) -> &'static str {
        match self {
            ImageFormat::Zebin => "zebin",
            ImageFormat::Spirv => "SPIR-V",
            ImageFormat::Bitcode => "LLVM bitcode",
            ImageFormat::Other => "other",
        }
    }
}

/// Finds the images of a file; `None` if it is no file of images.
///
/// # Errors
/// [`ContainerError::Malformed`] for broken structures, [`ContainerError::Limit`] for more than [`MAX_IMAGES`] images or images
/// that overlap, and [`ContainerError::Unsupported`] for an offload binary of a version that is not known.
pub fn images(bytes: &[u8]) -> Result<Option<Vec<Image<'_>>>, ContainerError> {
    let mut found = Found {
        images: Vec::new(),
        bytes: 0,
        limit: bytes.len() as u64,
    };
    let any = if bytes.starts_with(b"!<arch>\n") {
        found.archive("", bytes)?;
        true
    } else if bytes.starts_with(offload::MAGIC) {
        offload::read(bytes, 0, &mut found)?;
        true
    } else {
        host::read(bytes, &mut found)?
    };
    Ok(any.then_some(found.images))
}

/// What was found so far.
struct Found<'d> {
    images: Vec<Image<'d>>,
    /// Bytes of all images together.
    bytes: u64,
    /// Bytes of the file. Images of a real file do not overlap; those of a hostile one may all be the same megabyte.
    limit: u64,
}

impl<'d> Found<'d> {
    /// Adds an image, or those of an archive.
    fn add(&mut self, target: &str, bytes: &'d [u8]) -> Result<(), ContainerError> {
        if bytes.starts_with(b"!<arch>\n") {
            return self.archive(target, bytes);
        }
        self.push(target, bytes)
    }

    fn push(&mut self, target: &str, bytes: &'d [u8]) -> Result<(), ContainerError> {
        let count = (self.images.len() as u64).saturating_add(1);
        ContainerError::check_limit("images", count, MAX_IMAGES as u64)?;
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        ContainerError::check_limit("bytes of all images", self.bytes, self.limit)?;
        self.images.push(image(target, bytes));
        Ok(())
    }

    /// Adds the members of an archive, whose names follow that of the archive.
    fn archive(&mut self, target: &str, bytes: &'d [u8]) -> Result<(), ContainerError> {
        let broken =
            |error: object::Error| ContainerError::malformed(0, format!("archive: {error}"));
        let archive = ArchiveFile::parse(bytes).map_err(broken)?;
        for member in archive.members() {
            let member = member.map_err(broken)?;
            let name = String::from_utf8_lossy(member.name());
            // ocloc aligns members by others in front of them.
            if name.starts_with("pad_") {
                continue;
            }
            let data = member.data(bytes).map_err(broken)?;
            let gap = if target.is_empty() { "" } else { " " };
            // No compiler makes archives in archives.
            self.push(&format!("{target}{gap}{name}"), data)?;
        }
        Ok(())
    }
}

fn image<'d>(target: &str, bytes: &'d [u8]) -> Image<'d> {
    let (format, device, kernels) = if spirv::is_module(bytes) {
        (ImageFormat::Spirv, None, spirv::kernels(bytes))
    } else if bytes.starts_with(b"BC\xc0\xde") {
        (ImageFormat::Bitcode, None, Vec::new())
    } else {
        // Its version matters to who reads it.
        match Zebin::parse_with(bytes, Versions::Any) {
            Ok(zebin) => {
                let names = zebin.launchable().map(|kernel| kernel.name.clone());
                let device = infer_device(&zebin).device;
                (ImageFormat::Zebin, device, names.collect())
            }
            Err(ContainerError::NotZebin { .. }) => (ImageFormat::Other, None, Vec::new()),
            // One without vISA, say: reading it tells what is wrong.
            Err(_) => (ImageFormat::Zebin, None, Vec::new()),
        }
    };
    Image {
        target: target.to_owned(),
        format,
        device,
        kernels,
        bytes,
    }
}

#[cfg(test)]
mod tests;
