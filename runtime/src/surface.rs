//! The surface table of a launch: what each binding-table index stands for.

use crate::abi::{Image, ImageTable, SURFACES, Sampler, Surface};
use crate::error::LaunchError;
use crate::image::{ImageShape, SamplerState};
use crate::memory::{Buffer, MemoryError};
use std::collections::BTreeMap;

/// What empty slots point at: readable, so that not even a speculated load of a wrong index faults.
static NOTHING: [u8; 64] = [0; 64];

/// The entries of a table, and those of tables without any surface.
#[derive(Clone, Debug)]
struct Entries([Surface; SURFACES]);
static EMPTY: Entries = Entries([empty(); SURFACES]);

/// A table of [`SURFACES`] surfaces. Bound buffers live at least as long as the table.
#[derive(Debug)]
pub struct SurfaceTable {
    /// [`EMPTY`] as long as there are none: most kernels take addresses.
    entries: Option<Box<Entries>>,
    /// Keeps bound buffers alive.
    buffers: BTreeMap<u8, Buffer>,
    /// Images and samplers, and what keeps them alive.
    images: Option<Box<ImageTable>>,
    image_buffers: BTreeMap<u8, Buffer>,
}

// SAFETY: the pointers are into buffers that the table keeps alive, or the caller of `bind_raw`
// vouches for them; kernels access them as shared memory.
unsafe impl Send for SurfaceTable {}
// SAFETY: as above; `&SurfaceTable` only reads the entries.
unsafe impl Sync for SurfaceTable {}
// SAFETY: the pointers are to `NOTHING`, which is never written.
unsafe impl Sync for Entries {}

impl Default for SurfaceTable {
    fn default() -> SurfaceTable {
        SurfaceTable::new()
    }
}

impl Clone for SurfaceTable {
    fn clone(&self) -> SurfaceTable {
        SurfaceTable {
            entries: self.entries.clone(),
            buffers: self.buffers.clone(),
            images: self.images.clone(),
            image_buffers: self.image_buffers.clone(),
        }
    }
}

impl SurfaceTable {
    /// A table of empty slots: every access through it is out of bounds.
    pub fn new() -> SurfaceTable {
        SurfaceTable {
            entries: None,
            buffers: BTreeMap::new(),
            images: None,
            image_buffers: BTreeMap::new(),
        }
    }

    /// Binds an image that a buffer holds from its start. Images have a table of their own: what is bound as a buffer at the
    /// index stays so.
    ///
    /// # Errors
    /// [`LaunchError::SurfaceIndex`], or [`LaunchError::Memory`] when the buffer is too small.
    pub fn bind_image(
        &mut self,
        index: u32,
        buffer: &Buffer,
        shape: &ImageShape,
    ) -> Result<(), LaunchError> {
        let slot = self.slot(index)?;
        let size = buffer.len();
        let (Some(len), Some(pitch)) = (shape.bytes(), shape.pitches()) else {
            let (offset, len) = (0, u64::MAX);
            return Err(MemoryError::OutOfRange { offset, len, size }.into());
        };
        if len > size {
            return Err(MemoryError::OutOfRange {
                offset: 0,
                len,
                size,
            }
            .into());
        }
        self.image_table().images[usize::from(slot)] = Image {
            base: buffer.start(),
            pitch,
            extent: shape.extents(),
            // An image without texels has no border either.
            format: if len == 0 { 0 } else { shape.format.code() },
            axes: shape.kind.axes(),
            layer_axis: shape.kind.layer_axis().unwrap_or(3),
        };
        self.image_buffers.insert(slot, buffer.clone());
        Ok(())
    }

    /// Sets a sampler.
    ///
    /// # Errors
    /// [`LaunchError::SurfaceIndex`].
    pub fn bind_sampler(&mut self, index: u32, state: SamplerState) -> Result<(), LaunchError> {
        let slot = self.slot(index)?;
        self.image_table().samplers[usize::from(slot)] = Sampler {
            address: state.addressing as u32,
            linear: state.linear.into(),
            normalized: state.normalized.into(),
            comparison: state.comparison as u32,
        };
        Ok(())
    }

    fn image_table(&mut self) -> &mut ImageTable {
        self.images.get_or_insert_with(|| {
            Box::new(ImageTable {
                images: [NO_IMAGE; SURFACES],
                samplers: [Sampler::default(); SURFACES],
            })
        })
    }

    pub(crate) fn images(&self) -> *const ImageTable {
        self.images
            .as_deref()
            .map_or(std::ptr::null(), std::ptr::from_ref)
    }

    /// Binds a whole buffer.
    ///
    /// # Errors
    /// [`LaunchError::SurfaceIndex`] when there is no such index.
    pub fn bind(&mut self, index: u32, buffer: &Buffer) -> Result<(), LaunchError> {
        self.bind_range(index, buffer, 0, buffer.len())
    }

    /// Binds `len` bytes of a buffer from byte `offset`.
    ///
    /// # Errors
    /// [`LaunchError::SurfaceIndex`], or [`LaunchError::Memory`] when the range is not in the buffer.
    pub fn bind_range(
        &mut self,
        index: u32,
        buffer: &Buffer,
        offset: u64,
        len: u64,
    ) -> Result<(), LaunchError> {
        let size = buffer.len();
        if offset > size || len > size - offset {
            return Err(MemoryError::OutOfRange { offset, len, size }.into());
        }
        let slot = self.slot(index)?;
        *self.entry(slot) = Surface {
            base: buffer.start().wrapping_add(offset as usize),
            size: len,
        };
        self.buffers.insert(slot, buffer.clone());
        Ok(())
    }

    /// Binds any memory.
    ///
    /// # Errors
    /// [`LaunchError::SurfaceIndex`].
    ///
    /// # Safety
    /// `surface.base` must stay readable and writable for `surface.size` bytes, and no Rust
    /// reference may cover them, whenever a launch uses this table or a clone of it.
    pub unsafe fn bind_raw(&mut self, index: u32, surface: Surface) -> Result<(), LaunchError> {
        let slot = self.slot(index)?;
        *self.entry(slot) = surface;
        self.buffers.remove(&slot);
        Ok(())
    }

    /// Empties a slot.
    ///
    /// # Errors
    /// [`LaunchError::SurfaceIndex`].
    pub fn clear(&mut self, index: u32) -> Result<(), LaunchError> {
        let slot = self.slot(index)?;
        *self.entry(slot) = empty();
        self.buffers.remove(&slot);
        Ok(())
    }

    /// Address and length in bytes of a bound surface.
    pub fn get(&self, index: u32) -> Option<(u64, u64)> {
        let surface = self.entries.as_ref()?.0.get(index as usize)?;
        (surface.size != 0).then_some((surface.base as u64, surface.size))
    }

    pub(crate) fn as_ptr(&self) -> *const Surface {
        self.entries.as_deref().unwrap_or(&EMPTY).0.as_ptr()
    }

    fn entry(&mut self, slot: u8) -> &mut Surface {
        let entries = self.entries.get_or_insert_with(|| Box::new(EMPTY.clone()));
        &mut entries.0[usize::from(slot)]
    }

    fn slot(&self, index: u32) -> Result<u8, LaunchError> {
        u8::try_from(index).map_err(|_| LaunchError::SurfaceIndex(index))
    }
}

const NO_IMAGE: Image = Image {
    base: std::ptr::null_mut(),
    pitch: [0; 3],
    extent: [0; 3],
    format: 0,
    axes: 0,
    layer_axis: 0,
};

const fn empty() -> Surface {
    Surface {
        base: nothing(),
        size: 0,
    }
}

/// Address of [`NOTHING`]; never written, as its surface has no bytes.
pub(crate) const fn nothing() -> *mut u8 {
    NOTHING.as_ptr().cast_mut()
}
