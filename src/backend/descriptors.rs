//! Message descriptors: dwords that tell the runtime's helpers what a message does. Code generators pack them, and helpers unpack
//! them.

use visa_runtime::abi::{image, rectangle};

use crate::ssa::{Access2d, ImageAccess, ImageOp};

/// Descriptor of a two-dimensional block message.
///
/// `first_lane` is the lane that its fault records name, `reports` says whether they are wanted.
pub(super) fn rectangle_descriptor(
    access: Access2d,
    store: bool,
    first_lane: u32,
    reports: bool,
) -> u32 {
    let [blocks, width, height] = [access.blocks, access.width, access.height].map(u32::from);
    let flag = |yes: bool, bit: u32| if yes { bit } else { 0 };
    rectangle::shape(access.elem.bytes(), blocks, width, height, first_lane)
        | flag(store, rectangle::STORE)
        | flag(access.transpose, rectangle::TRANSPOSE)
        | flag(access.packed, rectangle::PACKED)
        | flag(access.register == 64, rectangle::WIDE)
        | flag(reports, rectangle::REPORT)
}

/// Descriptor of an image message for `lanes` lanes.
pub(super) fn image_descriptor(access: ImageAccess, lanes: u16) -> u32 {
    let (op, atomic) = match access.op {
        ImageOp::Read => (image::READ, 0),
        ImageOp::Write => (image::WRITE, 0),
        ImageOp::Fetch => (image::FETCH, 0),
        ImageOp::Sample => (image::SAMPLE, 0),
        ImageOp::Info => (image::INFO, 0),
        ImageOp::BlockRead => (image::BLOCK_READ, 0),
        ImageOp::BlockWrite => (image::BLOCK_WRITE, 0),
        ImageOp::FetchOffset => (image::FETCH_OFFSET, 0),
        ImageOp::SampleOffset => (image::SAMPLE_OFFSET, 0),
        ImageOp::Gather => (image::GATHER, 0),
        ImageOp::Samples => (image::SAMPLES, 0),
        ImageOp::Compare => (image::COMPARE, 0),
        ImageOp::GatherCompare => (image::GATHER_COMPARE, 0),
        ImageOp::Lod => (image::LOD, 0),
        ImageOp::Atomic(op) => (image::ATOMIC, op as u32),
        ImageOp::AtomicShort(op) => (image::ATOMIC_SHORT, op as u32),
    };
    op | u32::from(lanes) << 8
        | u32::from(access.channels) << image::CHANNEL_SHIFT
        | atomic << image::ATOMIC_SHIFT
}

/// True for image messages of which an access outside is a fault; others have rules of their own for it.
pub(super) fn image_faults(op: ImageOp) -> bool {
    matches!(
        op,
        ImageOp::Read
            | ImageOp::Write
            | ImageOp::Atomic(_)
            | ImageOp::AtomicShort(_)
            | ImageOp::Compare
            | ImageOp::GatherCompare
    )
}
