//! What functions that are called through the stack are told of the launch (docs/visa.md, "Launch information": `ImplicitArgs`, version 0).
//!
//! The driver puts it where indirect data starts, before the kernel's own arguments. It does not depend on the kernel, only on the
//! launch; addresses of what does not exist here (ray tracing) or is not used are zero. There is one size of groups in it, which
//! functions multiply group ids by: it is for launches whose groups are all of one size.

use super::own::LaunchMemory;
use super::plan::dimensions;
use crate::launch::LaunchShape;
use crate::printf::PrintBuffer;

/// Bytes of the structure that mean something.
const BYTES: u8 = 112;
/// Bytes up to what comes after it.
pub const IMPLICIT_ARGS_BYTES: u32 = 128;

/// The structure.
pub(super) fn bytes(shape: &LaunchShape, simd: u8, own: &LaunchMemory) -> Vec<u8> {
    let mut out = vec![BYTES, 0, dimensions(shape), simd];
    let printing = own.printing().map_or(0, PrintBuffer::address);
    let asserting = own.asserting().map_or(0, PrintBuffer::address);
    let local = own
        .local_ids
        .as_ref()
        .map_or(shape.local, |table| table.local);
    let table = own
        .local_ids
        .as_ref()
        .map_or(0, |table| table.ids.address());
    let wide = |v: [u32; 3]| v.map(|n| u64::from(n).to_le_bytes());
    out.extend(local.map(u32::to_le_bytes).as_flattened());
    out.extend(wide(shape.global).as_flattened());
    out.extend(printing.to_le_bytes());
    out.extend(wide(shape.offset).as_flattened());
    out.extend(table.to_le_bytes());
    out.extend(shape.groups().map(u32::to_le_bytes).as_flattened());
    // Padding, and the address of ray tracing's globals.
    out.extend([0; 12]);
    out.extend(asserting.to_le_bytes());
    out.resize(IMPLICIT_ARGS_BYTES as usize, 0);
    out
}
