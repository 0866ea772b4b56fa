//! Copies of rectangles.

use super::error::Cl;
use crate::abi::host::Place;

/// How a rectangle lies in memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Of its first byte.
    pub offset: usize,
    /// From a row to the next.
    pub row: usize,
    /// From a slice to the next.
    pub slice: usize,
}

impl Layout {
    /// The byte behind a rectangle; none if there is no such number.
    pub fn end(&self, [width, rows, slices]: [usize; 3]) -> Option<usize> {
        if width == 0 || rows == 0 || slices == 0 {
            return Some(self.offset);
        }
        let last_row = self.row.checked_mul(rows - 1)?;
        let last_slice = self.slice.checked_mul(slices - 1)?;
        let last = last_row.checked_add(last_slice)?.checked_add(width)?;
        self.offset.checked_add(last)
    }
}

/// Copies `region`: bytes of a row, rows, slices.
///
/// # Errors
/// `CL_INVALID_VALUE` when a byte is outside.
pub fn rectangle(
    to: &Place,
    there: Layout,
    from: &Place,
    here: Layout,
    region: [usize; 3],
) -> Cl<()> {
    let [width, rows, slices] = region;
    let whole_rows = there.row == width && here.row == width;
    for slice in 0..slices {
        let to_slice = there.offset + slice * there.slice;
        let from_slice = here.offset + slice * here.slice;
        if whole_rows {
            to.copy_from(to_slice, from, from_slice, width * rows)?;
            continue;
        }
        for row in 0..rows {
            let (a, b) = (to_slice + row * there.row, from_slice + row * here.row);
            to.copy_from(a, from, b, width)?;
        }
    }
    Ok(())
}

/// Repeats a pattern over a rectangle.
///
/// # Errors
/// As [`rectangle`].
pub fn fill(to: &Place, there: Layout, region: [usize; 3], pattern: &[u8]) -> Cl<()> {
    let [width, rows, slices] = region;
    for slice in 0..slices {
        for row in 0..rows {
            let at = there.offset + slice * there.slice + row * there.row;
            to.fill(at, width, pattern)?;
        }
    }
    Ok(())
}
