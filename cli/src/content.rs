//! What a buffer is filled with: the bytes of a SPEC, made piece by piece.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use visa_runtime::{Buffer, DeviceMemory};

use super::exit::Failure;
use super::image::{ImageSpec, is_png, read_png};
use super::npy;
use super::spec::Spec;
use super::values::{ElementType, Random, Scalar};

/// Bytes made at a time.
const PIECE: usize = 1 << 20;

/// Bytes of a file that an argument is filled with.
const MAX_CONTENT_BYTES: u64 = 8 << 30;

/// Opens a regular file of a bounded size for reading: devices may never end, and pipes may never begin.
fn open_regular(path: &Path) -> Result<File, Failure> {
    let failed = |error| Failure::file("read", path, error);
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        // Opening a pipe would wait for its writer.
        options.custom_flags(OFlags::NONBLOCK.bits() as i32);
    }
    let file = options.open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    let refused = |what: String| Err(Failure::usage(format!("{}: {what}", path.display())));
    if !found.is_file() {
        return refused("not a regular file".to_owned());
    }
    if found.len() > MAX_CONTENT_BYTES {
        return refused(format!(
            "the file has {} bytes, an argument at most {MAX_CONTENT_BYTES}",
            found.len()
        ));
    }
    Ok(file)
}

/// Initial contents.
#[derive(Clone, Debug)]
pub struct Content {
    bytes: Bytes,
    /// Element type, where the SPEC or the file tells.
    pub ty: Option<ElementType>,
    /// Kernels only read it.
    read_only: bool,
}

#[derive(Clone, Debug)]
enum Bytes {
    Known(Vec<u8>),
    Zero(u64),
    Uninit(u64),
    Fill(Scalar, u64),
    Iota(ElementType, u64),
    Random(ElementType, u64, u64),
}

impl Content {
    /// The contents that `spec` asks for; `None` for local memory, samplers and null pointers.
    pub fn of(spec: &Spec) -> Result<Option<Content>, Failure> {
        let bytes = match spec {
            Spec::File(path) => return Content::of_file(path).map(Some),
            Spec::Values(_, values) => {
                let bytes = values.iter().flat_map(|value| value.bytes().to_vec());
                Bytes::Known(bytes.collect())
            }
            Spec::Zero(bytes) => Bytes::Zero(*bytes),
            Spec::Uninit(bytes) => Bytes::Uninit(*bytes),
            Spec::Fill(value, count) => Bytes::Fill(*value, *count),
            Spec::Iota(ty, count) => Bytes::Iota(*ty, *count),
            Spec::Rand { ty, count, seed } => Bytes::Random(*ty, *count, *seed),
            Spec::Image(image) => Content::image_bytes(image)?,
            Spec::ReadOnly(spec) => {
                let content = Content::of(spec)?;
                return Ok(content.map(|content| Content {
                    read_only: true,
                    ..content
                }));
            }
            Spec::Local(_) | Spec::Sampler(_) | Spec::Null => return Ok(None),
        };
        Ok(Some(Content {
            bytes,
            ty: spec.element_type(),
            read_only: false,
        }))
    }

    fn of_file(path: &Path) -> Result<Content, Failure> {
        let mut bytes = Vec::new();
        open_regular(path)?
            .take(MAX_CONTENT_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::file("read", path, error))?;
        if !is_npy(path) {
            return Ok(Content {
                bytes: Bytes::Known(bytes),
                ty: None,
                read_only: false,
            });
        }
        let (ty, bytes) = npy::read(&bytes)
            .map_err(|message| Failure::usage(format!("{}: {message}", path.display())))?;
        Ok(Content {
            bytes: Bytes::Known(bytes),
            ty: Some(ty),
            read_only: false,
        })
    }

    /// What an image holds, as many bytes as it has.
    fn image_bytes(image: &ImageSpec) -> Result<Bytes, Failure> {
        let wanted = image.shape.bytes().unwrap_or(u64::MAX);
        let Some(path) = &image.path else {
            return Ok(Bytes::Zero(wanted));
        };
        if is_png(path) {
            return read_png(open_regular(path)?, &image.shape)
                .map(Bytes::Known)
                .map_err(|message| Failure::usage(format!("{}: {message}", path.display())));
        }
        let content = Content::of_file(path)?;
        if content.len() != wanted {
            return Err(Failure::usage(format!(
                "{} has {} bytes, the image {wanted}",
                path.display(),
                content.len()
            )));
        }
        Ok(content.bytes)
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        let (ty, count) = match &self.bytes {
            Bytes::Known(bytes) => return bytes.len() as u64,
            Bytes::Zero(bytes) | Bytes::Uninit(bytes) => return *bytes,
            Bytes::Fill(value, count) => (value.ty(), *count),
            Bytes::Iota(ty, count) | Bytes::Random(ty, count, _) => (*ty, *count),
        };
        count.saturating_mul(ty.size() as u64)
    }

    /// A new buffer with these contents.
    pub fn alloc(&self, memory: &DeviceMemory) -> Result<Buffer, Failure> {
        let buffer = memory.alloc(self.len())?;
        if !matches!(self.bytes, Bytes::Zero(_)) {
            self.fill(&buffer)?;
        }
        if self.read_only {
            buffer.mark_read_only()?;
        }
        Ok(buffer)
    }

    /// Fills a buffer of this length.
    pub fn fill(&self, buffer: &Buffer) -> Result<(), Failure> {
        if let Bytes::Zero(_) | Bytes::Uninit(_) = self.bytes {
            buffer.fill(0);
            if let Bytes::Uninit(_) = self.bytes {
                buffer.mark_uninitialised();
            }
            return Ok(());
        }
        let mut at = 0_u64;
        self.pieces(|piece| {
            buffer.write(at, piece)?;
            at = at.saturating_add(piece.len() as u64);
            Ok(())
        })
    }

    /// All bytes; for contents of a bounded length.
    pub fn to_vec(&self) -> Result<Vec<u8>, Failure> {
        let mut all = Vec::new();
        self.pieces(|piece| {
            all.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(all)
    }

    fn pieces(&self, mut take: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
        match &self.bytes {
            Bytes::Known(bytes) => take(bytes),
            Bytes::Zero(bytes) | Bytes::Uninit(bytes) => {
                elements(*bytes, take, |_| Scalar::from_bits(ElementType::U8, 0))
            }
            Bytes::Fill(value, count) => elements(*count, take, |_| *value),
            Bytes::Iota(ty, count) => elements(*count, take, |index| Scalar::iota(*ty, index)),
            Bytes::Random(ty, count, seed) => {
                let mut random = Random::new(*seed);
                elements(*count, take, |_| random.scalar(*ty))
            }
        }
    }
}

/// Hands `count` elements over in pieces of bytes.
fn elements(
    count: u64,
    mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
    mut element: impl FnMut(u64) -> Scalar,
) -> Result<(), Failure> {
    let mut piece = Vec::new();
    for index in 0..count {
        piece.extend_from_slice(element(index).bytes());
        if piece.len() >= PIECE {
            take(&piece)?;
            piece.clear();
        }
    }
    take(&piece)
}

/// Whether a path names a `.npy` file.
pub fn is_npy(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("npy"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(spec: &str) -> Vec<u8> {
        let content = Content::of(&spec.parse().unwrap()).unwrap().unwrap();
        let bytes = content.to_vec().unwrap();
        assert_eq!(bytes.len() as u64, content.len(), "{spec}");
        bytes
    }

    #[test]
    fn contents() {
        assert_eq!(bytes("u8:1,2"), [1, 2]);
        assert_eq!(bytes("zero:3"), [0, 0, 0]);
        assert_eq!(bytes("fill:i16:-1:2"), [0xff; 4]);
        assert_eq!(bytes("iota:u16:3"), [0, 0, 1, 0, 2, 0]);
        assert_eq!(bytes("rand:u32:100:5"), bytes("rand:u32:100:5"));
        assert_ne!(bytes("rand:u32:100:5"), bytes("rand:u32:100:6"));
        assert!(bytes("iota:f32:0").is_empty());
    }

    #[test]
    fn pieces_join_without_a_seam() {
        let memory = DeviceMemory::new().unwrap();
        let content = Content::of(&"iota:u32:600000".parse().unwrap())
            .unwrap()
            .unwrap();
        let values: Vec<u32> = content.alloc(&memory).unwrap().to_vec_of();
        assert!(values.iter().copied().eq(0..600_000));
    }

    #[test]
    fn memory_that_cannot_be_had_is_the_environment() {
        use crate::exit::Exit;
        let memory = DeviceMemory::new().unwrap();
        let content = Content::of(&Spec::Zero(u64::MAX)).unwrap().unwrap();
        let failure = content.alloc(&memory).unwrap_err();
        assert_eq!(failure.exit, Exit::Environment);
        let failure = Content::of(&Spec::File("/nowhere/x.bin".into())).unwrap_err();
        assert_eq!(failure.exit, Exit::Environment);
        assert!(failure.message.starts_with("cannot read /nowhere/x.bin: "));
    }
}
