//! Formats and shapes of images.

use visa_runtime::{Channel, ImageFormat, ImageKind, ImageShape};

use super::error::{Cl, ClError, ensure, err};
use super::mem::{Description, Image};
use crate::abi::{
    CL_FLOAT, CL_HALF_FLOAT, CL_IMAGE_FORMAT_NOT_SUPPORTED, CL_INVALID_IMAGE_DESCRIPTOR,
    CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, CL_INVALID_IMAGE_SIZE, CL_MEM_OBJECT_IMAGE1D,
    CL_MEM_OBJECT_IMAGE1D_ARRAY, CL_MEM_OBJECT_IMAGE1D_BUFFER, CL_MEM_OBJECT_IMAGE2D,
    CL_MEM_OBJECT_IMAGE2D_ARRAY, CL_MEM_OBJECT_IMAGE3D, CL_R, CL_RG, CL_RGBA, CL_SIGNED_INT8,
    CL_SIGNED_INT16, CL_SIGNED_INT32, CL_SNORM_INT8, CL_SNORM_INT16, CL_UNORM_INT8, CL_UNORM_INT16,
    CL_UNSIGNED_INT8, CL_UNSIGNED_INT16, CL_UNSIGNED_INT32, cl_image_desc, cl_image_format,
    cl_mem_object_type,
};
use crate::core::copy::Layout;

/// Texels along each side of an image.
pub const MAX_SIDE: usize = 16384;
/// Texels along each side of an image of three dimensions, and layers of an array.
pub const MAX_DEPTH: usize = 2048;
/// Texels of an image in a buffer.
pub const MAX_BUFFER: usize = 1 << 27;

const ORDERS: [(u32, u32); 3] = [(CL_R, 1), (CL_RG, 2), (CL_RGBA, 4)];

const TYPES: [(u32, u32, Channel); 12] = [
    (CL_SNORM_INT8, 8, Channel::Snorm),
    (CL_SNORM_INT16, 16, Channel::Snorm),
    (CL_UNORM_INT8, 8, Channel::Unorm),
    (CL_UNORM_INT16, 16, Channel::Unorm),
    (CL_SIGNED_INT8, 8, Channel::Int),
    (CL_SIGNED_INT16, 16, Channel::Int),
    (CL_SIGNED_INT32, 32, Channel::Int),
    (CL_UNSIGNED_INT8, 8, Channel::Uint),
    (CL_UNSIGNED_INT16, 16, Channel::Uint),
    (CL_UNSIGNED_INT32, 32, Channel::Uint),
    (CL_HALF_FLOAT, 16, Channel::Float),
    (CL_FLOAT, 32, Channel::Float),
];

/// Orders and types that OpenCL has and devices here do not: from `CL_R` and `CL_SNORM_INT8` on.
const LAST_ORDER: u32 = 0x10C3;
const LAST_TYPE: u32 = 0x10E1;

/// Every format of every device with images.
pub fn formats() -> impl Iterator<Item = cl_image_format> {
    ORDERS.into_iter().flat_map(|(order, _)| {
        TYPES.into_iter().map(move |(ty, ..)| cl_image_format {
            image_channel_order: order,
            image_channel_data_type: ty,
        })
    })
}

/// A format for kernels.
///
/// # Errors
/// `CL_INVALID_IMAGE_FORMAT_DESCRIPTOR`, `CL_IMAGE_FORMAT_NOT_SUPPORTED`.
pub fn format(format: cl_image_format) -> Cl<ImageFormat> {
    let (order, ty) = (format.image_channel_order, format.image_channel_data_type);
    let exists = (CL_R..=LAST_ORDER).contains(&order) && (CL_SNORM_INT8..=LAST_TYPE).contains(&ty);
    ensure(exists, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR)?;
    let order = ORDERS.into_iter().find(|(name, _)| *name == order);
    let ty = TYPES.into_iter().find(|(name, ..)| *name == ty);
    let known = order.zip(ty);
    let (channels, bits, channel) = match known {
        Some(((_, channels), (_, bits, channel))) => (channels, bits, channel),
        None => return err(CL_IMAGE_FORMAT_NOT_SUPPORTED),
    };
    ImageFormat::new(channels, bits, channel).ok_or(ClError(CL_IMAGE_FORMAT_NOT_SUPPORTED))
}

/// How coordinates of a kind of image count, and which of its sizes are used.
fn kind(of: cl_mem_object_type) -> Cl<ImageKind> {
    Ok(match of {
        CL_MEM_OBJECT_IMAGE1D => ImageKind::D1,
        CL_MEM_OBJECT_IMAGE1D_ARRAY => ImageKind::D1Array,
        CL_MEM_OBJECT_IMAGE1D_BUFFER => ImageKind::Buffer,
        CL_MEM_OBJECT_IMAGE2D => ImageKind::D2,
        CL_MEM_OBJECT_IMAGE2D_ARRAY => ImageKind::D2Array,
        CL_MEM_OBJECT_IMAGE3D => ImageKind::D3,
        _ => return err(CL_INVALID_IMAGE_DESCRIPTOR),
    })
}

impl Image {
    /// An image as described.
    ///
    /// # Errors
    /// `CL_INVALID_IMAGE_FORMAT_DESCRIPTOR`, `CL_IMAGE_FORMAT_NOT_SUPPORTED`, `CL_INVALID_IMAGE_DESCRIPTOR`, `CL_INVALID_IMAGE_SIZE`.
    pub fn new(given: cl_image_format, desc: cl_image_desc) -> Cl<Image> {
        let format = format(given)?;
        let kind = kind(desc.image_type)?;
        let plain = desc.num_mip_levels == 0 && desc.num_samples == 0;
        ensure(plain, CL_INVALID_IMAGE_DESCRIPTOR)?;
        let extent = match kind {
            ImageKind::D1 | ImageKind::Buffer => [desc.image_width, 1, 1],
            ImageKind::D1Array => [desc.image_width, desc.image_array_size, 1],
            ImageKind::D2 => [desc.image_width, desc.image_height, 1],
            ImageKind::D2Array => [desc.image_width, desc.image_height, desc.image_array_size],
            ImageKind::D3 => [desc.image_width, desc.image_height, desc.image_depth],
        };
        ensure(!extent.contains(&0), CL_INVALID_IMAGE_DESCRIPTOR)?;
        let most = match kind {
            ImageKind::Buffer => [MAX_BUFFER, 1, 1],
            ImageKind::D1 | ImageKind::D2 => [MAX_SIDE, MAX_SIDE, 1],
            ImageKind::D1Array => [MAX_SIDE, MAX_DEPTH, 1],
            ImageKind::D2Array => [MAX_SIDE, MAX_SIDE, MAX_DEPTH],
            ImageKind::D3 => [MAX_DEPTH; 3],
        };
        let fits = extent.iter().zip(most).all(|(n, most)| *n <= most);
        ensure(fits, CL_INVALID_IMAGE_SIZE)?;
        let shape = ImageShape {
            kind,
            format,
            extent: extent.map(|n| n as u32),
        };
        Ok(Image {
            format: given,
            desc: Description {
                image_type: desc.image_type,
                image_width: desc.image_width,
                image_height: desc.image_height,
                image_depth: desc.image_depth,
                image_array_size: desc.image_array_size,
                image_row_pitch: desc.image_row_pitch,
                image_slice_pitch: desc.image_slice_pitch,
            },
            shape,
        })
    }

    /// Bytes of a texel.
    pub fn texel(&self) -> usize {
        self.shape.format.texel_bytes() as usize
    }

    /// Bytes from a row to the next.
    pub fn row(&self) -> usize {
        self.texel() * self.shape.extent[0] as usize
    }

    /// Bytes from a slice or layer to the next.
    pub fn slice(&self) -> usize {
        match self.shape.kind {
            ImageKind::D1 | ImageKind::Buffer | ImageKind::D1Array => self.row(),
            _ => self.row() * self.shape.extent[1] as usize,
        }
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        let extents = self.shape.extents().map(|n| n as usize);
        self.texel() * extents.iter().product::<usize>()
    }

    /// Where memory of the program has the image's first byte, with the pitches that it named: 0 for without gaps.
    ///
    /// # Errors
    /// `CL_INVALID_IMAGE_DESCRIPTOR` if they are too small.
    pub fn host_layout(&self, given: bool) -> Cl<(Layout, [usize; 3])> {
        let bad = CL_INVALID_IMAGE_DESCRIPTOR;
        let (mut row, mut slice) = (self.desc.image_row_pitch, self.desc.image_slice_pitch);
        let texel = self.texel();
        if !given {
            ensure(row == 0 && slice == 0, bad)?;
        }
        ensure(
            row == 0 || (row >= self.row() && row.is_multiple_of(texel)),
            bad,
        )?;
        if row == 0 {
            row = self.row();
        }
        let [_, y, z] = self.shape.extents().map(|n| n as usize);
        let rows = if self.shape.kind == ImageKind::D1Array {
            1
        } else {
            y
        };
        let whole = slice >= row * rows && slice.is_multiple_of(row);
        ensure(slice == 0 || rows * z <= 1 || whole, bad)?;
        if slice == 0 {
            slice = row * rows;
        }
        let layout = if self.shape.kind == ImageKind::D1Array {
            Layout {
                offset: 0,
                row: slice,
                slice: slice * y,
            }
        } else {
            Layout {
                offset: 0,
                row,
                slice,
            }
        };
        Ok((layout, [self.row(), y, z]))
    }

    /// Checks a region, in texels; for copies, in bytes, rows, slices.
    ///
    /// # Errors
    /// `CL_INVALID_VALUE`.
    pub fn region(&self, origin: [usize; 3], region: [usize; 3]) -> Cl<(Layout, [usize; 3])> {
        let extents = self.shape.extents().map(|n| n as usize);
        let bad = crate::abi::CL_INVALID_VALUE;
        ensure(!region.contains(&0), bad)?;
        for k in 0..3 {
            let end = origin[k].checked_add(region[k]);
            ensure(end.is_some_and(|end| end <= extents[k]), bad)?;
        }
        let row = self.row();
        let slice = row * extents[1];
        let offset = origin[0] * self.texel() + origin[1] * row + origin[2] * slice;
        let [x, y, z] = region;
        Ok((Layout { offset, row, slice }, [x * self.texel(), y, z]))
    }
}
