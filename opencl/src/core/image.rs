//! Formats and shapes of images.

use visa_runtime::{Channel, ImageFormat, ImageKind, ImageShape, Order};

use super::error::{Cl, ClError, ensure, err};
use super::mem::{Description, Image};
use crate::abi::{
    CL_A, CL_ABGR, CL_ARGB, CL_BGRA, CL_DEPTH, CL_FLOAT, CL_HALF_FLOAT,
    CL_IMAGE_FORMAT_NOT_SUPPORTED, CL_INTENSITY, CL_INVALID_IMAGE_DESCRIPTOR,
    CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, CL_INVALID_IMAGE_SIZE, CL_LUMINANCE, CL_MEM_OBJECT_IMAGE1D,
    CL_MEM_OBJECT_IMAGE1D_ARRAY, CL_MEM_OBJECT_IMAGE1D_BUFFER, CL_MEM_OBJECT_IMAGE2D,
    CL_MEM_OBJECT_IMAGE2D_ARRAY, CL_MEM_OBJECT_IMAGE3D, CL_MEM_READ_ONLY, CL_R, CL_RG, CL_RGB,
    CL_RGBA, CL_RGBx as CL_RGBX, CL_SIGNED_INT8, CL_SIGNED_INT16, CL_SIGNED_INT32, CL_SNORM_INT8,
    CL_SNORM_INT16, CL_UNORM_INT_101010, CL_UNORM_INT8, CL_UNORM_INT16, CL_UNORM_SHORT_555,
    CL_UNORM_SHORT_565, CL_UNSIGNED_INT8, CL_UNSIGNED_INT16, CL_UNSIGNED_INT32,
    CL_sBGRA as CL_SBGRA, CL_sRGB as CL_SRGB, CL_sRGBA as CL_SRGBA, CL_sRGBx as CL_SRGBX,
    cl_image_desc, cl_image_format, cl_mem_object_type,
};
use crate::core::copy::Layout;

/// Texels along each side of an image.
pub const MAX_SIDE: usize = 16384;
/// Texels along each side of an image of three dimensions, and layers of an array.
pub const MAX_DEPTH: usize = 2048;
/// Texels of an image in a buffer.
pub const MAX_BUFFER: usize = 1 << 27;

/// Orders of channels: their names, how many there are, which components they are.
const ORDERS: [(u32, u32, Order); 10] = [
    (CL_R, 1, Order::Rgba),
    (CL_RG, 2, Order::Rgba),
    (CL_RGBA, 4, Order::Rgba),
    (CL_DEPTH, 1, Order::Rgba),
    (CL_BGRA, 4, Order::Bgra),
    (CL_A, 1, Order::Alpha),
    (CL_LUMINANCE, 1, Order::Luminance),
    (CL_INTENSITY, 1, Order::Intensity),
    (CL_SRGBA, 4, Order::Srgba),
    (CL_SBGRA, 4, Order::Sbgra),
];

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

/// Orders and types that OpenCL has: from `CL_R` and `CL_SNORM_INT8` on.
const LAST_ORDER: u32 = CL_ABGR;
const LAST_TYPE: u32 = 0x10E1;

/// What kernels may do with images of an order and type; none if it is not there. Formats are those of Intel's driver, which has
/// these on all devices, but for those of video.
fn access(order: u32, ty: u32) -> Option<AccessQualifier> {
    let all = TYPES.iter().any(|(known, ..)| *known == ty);
    match order {
        CL_R | CL_RG | CL_RGBA if all => Some(AccessQualifier::Any),
        CL_BGRA if ty == CL_UNORM_INT8 => Some(AccessQualifier::Any),
        CL_A if ty == CL_UNORM_INT8 => Some(AccessQualifier::Any),
        CL_DEPTH if matches!(ty, CL_UNORM_INT16 | CL_FLOAT) => Some(AccessQualifier::Any),
        CL_SRGBA | CL_SBGRA if ty == CL_UNORM_INT8 => Some(AccessQualifier::Read),
        CL_A | CL_LUMINANCE | CL_INTENSITY
            if matches!(
                ty,
                CL_UNORM_INT8 | CL_UNORM_INT16 | CL_HALF_FLOAT | CL_FLOAT
            ) =>
        {
            Some(AccessQualifier::Read)
        }
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AccessQualifier {
    Read,
    Any,
}

/// Whether an order and type belong together, as OpenCL's tables of orders and types have it.
fn exists(order: u32, ty: u32) -> bool {
    let known = (CL_R..=LAST_ORDER).contains(&order) && (CL_SNORM_INT8..=LAST_TYPE).contains(&ty);
    let packed = matches!(
        ty,
        CL_UNORM_SHORT_565 | CL_UNORM_SHORT_555 | CL_UNORM_INT_101010
    );
    let normalised = matches!(
        ty,
        CL_SNORM_INT8 | CL_SNORM_INT16 | CL_UNORM_INT8 | CL_UNORM_INT16
    );
    let bytes = matches!(
        ty,
        CL_SNORM_INT8 | CL_UNORM_INT8 | CL_SIGNED_INT8 | CL_UNSIGNED_INT8
    );
    let float = matches!(ty, CL_HALF_FLOAT | CL_FLOAT);
    known
        && match order {
            CL_RGB | CL_RGBX => packed,
            CL_INTENSITY | CL_LUMINANCE => normalised || float,
            CL_ARGB | CL_BGRA | CL_ABGR => bytes,
            CL_DEPTH => matches!(ty, CL_UNORM_INT16 | CL_FLOAT),
            CL_SRGB | CL_SRGBX | CL_SRGBA | CL_SBGRA => ty == CL_UNORM_INT8,
            _ => !packed,
        }
}

/// Every format that images of these flags and this type may have, on every device with images.
pub fn formats(flags: u64, kind: cl_mem_object_type) -> impl Iterator<Item = cl_image_format> {
    let all = ORDERS.into_iter().flat_map(|(order, ..)| {
        TYPES.into_iter().map(move |(ty, ..)| cl_image_format {
            image_channel_order: order,
            image_channel_data_type: ty,
        })
    });
    all.filter(move |format| may_be(*format, flags, kind))
}

/// Whether images of these flags and this type may have a format.
fn may_be(format: cl_image_format, flags: u64, kind: cl_mem_object_type) -> bool {
    let (order, ty) = (format.image_channel_order, format.image_channel_data_type);
    let only_read = flags & u64::from(CL_MEM_READ_ONLY) != 0;
    let flat = matches!(kind, CL_MEM_OBJECT_IMAGE2D | CL_MEM_OBJECT_IMAGE2D_ARRAY);
    let access = access(order, ty);
    (flat || order != CL_DEPTH)
        && access.is_some_and(|access| access == AccessQualifier::Any || only_read)
}

/// A format for kernels.
///
/// # Errors
/// `CL_INVALID_IMAGE_FORMAT_DESCRIPTOR`, `CL_IMAGE_FORMAT_NOT_SUPPORTED`.
fn format(format: cl_image_format, flags: u64, kind: cl_mem_object_type) -> Cl<ImageFormat> {
    let (order, ty) = (format.image_channel_order, format.image_channel_data_type);
    ensure(exists(order, ty), CL_INVALID_IMAGE_FORMAT_DESCRIPTOR)?;
    ensure(may_be(format, flags, kind), CL_IMAGE_FORMAT_NOT_SUPPORTED)?;
    let order = ORDERS.into_iter().find(|(name, ..)| *name == order);
    let ty = TYPES.into_iter().find(|(name, ..)| *name == ty);
    let known = order
        .zip(ty)
        .and_then(|((_, channels, order), (_, bits, channel))| {
            ImageFormat::new(channels, bits, channel)?.ordered(order)
        });
    known.ok_or(ClError(CL_IMAGE_FORMAT_NOT_SUPPORTED))
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
    pub fn new(given: cl_image_format, desc: cl_image_desc, flags: u64) -> Cl<Image> {
        let kind = kind(desc.image_type)?;
        let format = format(given, flags, desc.image_type)?;
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
