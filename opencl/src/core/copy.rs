//! Copies of rectangles.

use super::error::Cl;
use crate::abi::host::CopySide;

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
    /// The byte after a rectangle; `None` if there is no such number.
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

/// Whether two rectangles of one size have bytes in common. Offsets are those in the same memory.
pub fn overlap(a: Layout, b: Layout, region: [usize; 3]) -> bool {
    let [width, rows, slices] = region;
    let beyond = |first: Layout, second: Layout| {
        let end = first.end(region);
        end.is_some_and(|end| end <= second.offset)
    };
    if beyond(a, b) || beyond(b, a) {
        return false;
    }
    let start = |of: Layout, i: usize| of.offset + (i / rows) * of.slice + (i % rows) * of.row;
    // Rows of both come in the order of their addresses.
    let (mut i, mut j) = (0, 0);
    while i < rows * slices && j < rows * slices {
        let (first, second) = (start(a, i), start(b, j));
        if first + width <= second {
            i += 1;
        } else if second + width <= first {
            j += 1;
        } else {
            return true;
        }
    }
    false
}

/// Copies `region`: bytes of a row, rows, slices.
///
/// # Errors
/// `CL_INVALID_VALUE` when a byte is outside.
pub fn rectangle(
    to: &CopySide,
    there: Layout,
    from: &CopySide,
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
pub fn fill(to: &CopySide, there: Layout, region: [usize; 3], pattern: &[u8]) -> Cl<()> {
    let [width, rows, slices] = region;
    for slice in 0..slices {
        for row in 0..rows {
            let at = there.offset + slice * there.slice + row * there.row;
            to.fill(at, width, pattern)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of 4 bytes of every other 8: two rectangles may lie in each other's gaps.
    #[test]
    fn rectangles_overlap_by_their_bytes() {
        let at = |offset| Layout {
            offset,
            row: 8,
            slice: 32,
        };
        let region = [4, 4, 2];
        assert!(overlap(at(0), at(0), region));
        assert!(overlap(at(0), at(3), region));
        assert!(overlap(at(11), at(0), region));
        assert!(!overlap(at(0), at(4), region));
        assert!(!overlap(at(4), at(0), region));
        assert!(!overlap(at(0), at(64), region));
        let wide = Layout {
            offset: 0,
            row: 16,
            slice: 64,
        };
        assert!(overlap(wide, at(0), region));
        assert!(!overlap(wide, at(4), region));
    }
}
