//! Rectangles of elements: what two-dimensional block messages read and write.
//!
//! Which bytes of a row lie in the matrix is decided once for the row. Elements are tested one by one only where a row leaves device
//! memory.

use super::message::FLAT_OFFSET;
use super::{check, race};
use crate::abi::{GroupCtx, Rectangle, rectangle as code};
use crate::element;
use crate::fault::{FaultKind, FaultSink, report};
use crate::memory::checks::{closed, first_closed};

/// Shape of a block, decoded.
#[derive(Clone, Copy)]
struct RectangleShape {
    bytes: u64,
    store: bool,
    transpose: bool,
    report: bool,
    lane: u32,
    blocks: usize,
    width: usize,
    height: usize,
    /// Elements packed into a dword.
    k: usize,
    /// Elements from one row or column to the next in registers.
    run: usize,
    /// Elements from one block to the next.
    pitch: usize,
}

impl RectangleShape {
    fn new(shape: u32) -> RectangleShape {
        let log2 = shape & 3;
        let (width, height) = ((shape >> 10 & 255) as usize, (shape >> 18 & 255) as usize);
        let transpose = shape & code::TRANSPOSE != 0;
        let (count, length) = if transpose {
            (width, height)
        } else {
            (height, width)
        };
        let register = if shape & code::WIDE != 0 { 64 } else { 32 };
        let run = length.next_power_of_two();
        RectangleShape {
            bytes: 1 << log2,
            store: shape & code::STORE != 0,
            transpose,
            report: shape & code::REPORT != 0,
            lane: (shape >> 7 & 7) * 4,
            blocks: (shape >> 26 & 31) as usize,
            width,
            height,
            k: match shape & code::PACKED {
                0 => 1,
                _ => (4usize >> log2).max(1),
            },
            run,
            pitch: (count * run).next_multiple_of(register >> log2),
        }
    }

    /// Element of the payload.
    fn position(&self, block: usize, y: usize, x: usize) -> usize {
        let (line, along) = if self.transpose { (x, y) } else { (y, x) };
        let k = self.k;
        block * self.pitch + line / k * k * self.run + along * k + line % k
    }
}

/// The part of a row of a block that is in the surface.
struct Row {
    block: usize,
    y: usize,
    /// First column of the block, and the one after the last.
    columns: std::ops::Range<usize>,
    /// Address of column 0, if it were there.
    address: u64,
}

/// One call.
struct Transfer {
    shape: RectangleShape,
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    data: *mut u8,
    first: u64,
    size: u64,
    /// Shadow of checked memory, of what may be accessed so.
    shadow: Option<*const u8>,
    /// The launch looks for races.
    races: bool,
    /// Bytes from device memory to the marks of what is not initialised; 0 in launches that do not look for it.
    marks: u64,
}

/// [`crate::abi::Helpers::rectangle`].
///
/// # Safety
/// The arguments must be as [`crate::abi::Helpers::rectangle`] says, from the group that runs.
pub(crate) unsafe extern "C" fn rectangle(
    group: *mut GroupCtx,
    thread: u32,
    shape: u32,
    block: *mut u8,
) -> u32 {
    let s = RectangleShape::new(shape);
    let data = block.wrapping_add(code::DATA as usize);
    // SAFETY: the block starts with the operands; group and launch are valid; the payload has room for all blocks.
    unsafe {
        let r = block.cast::<Rectangle>().read();
        if !s.store {
            data.write_bytes(0, s.blocks * s.pitch * s.bytes as usize);
        }
        if r.enabled == 0 {
            return 0;
        }
        let launch = (*group).launch;
        let transfer = Transfer {
            shape: s,
            group,
            thread,
            site: r.site,
            data,
            first: (*launch).flat_base,
            size: (*launch).flat_size,
            shadow: Some(match s.store {
                true => (*launch).write_shadow,
                false => (*launch).shadow,
            })
            .filter(|&shadow| !shadow.is_null() && shadow != closed()),
            races: !(*group).races.is_null(),
            marks: (*launch).marks,
        };
        if transfer.marks != 0 {
            transfer.look_at_marks(&r);
        }
        if transfer.check(&r) {
            return 1;
        }
        match s.bytes {
            1 => transfer.all::<u8>(&r),
            2 => transfer.all::<u16>(&r),
            4 => transfer.all::<u32>(&r),
            _ => transfer.all::<u64>(&r),
        }
    }
}

impl Transfer {
    /// # Safety
    /// The transfer must be of the group that runs, with elements of type `T`.
    unsafe fn all<T: Copy>(&self, r: &Rectangle) -> u32 {
        let s = &self.shape;
        for block in 0..s.blocks {
            for y in 0..s.height {
                let Some(row) = self.row(r, block, y) else {
                    continue;
                };
                // SAFETY: as promised.
                if unsafe { self.move_row::<T>(&row) } {
                    return 1;
                }
            }
        }
        0
    }

    /// Records the first element that is in device memory but not in a buffer, or that must not be written, where that is known; true when the
    /// launch has to stop.
    ///
    /// # Safety
    /// The transfer must be of the group that runs.
    unsafe fn check(&self, r: &Rectangle) -> bool {
        let (s, Some(shadow)) = (&self.shape, self.shadow) else {
            return false;
        };
        for (block, y) in (0..s.blocks).flat_map(|block| (0..s.height).map(move |y| (block, y))) {
            let Some(row) = self.row(r, block, y) else {
                continue;
            };
            let inside = |x: &usize| {
                let offset = self.offset(&row, *x);
                // SAFETY: the element is in device memory, whose shadow is open.
                let closed = || unsafe { first_closed(shadow, offset, s.bytes, 1) }.is_some();
                s.bytes <= self.size && offset <= self.size - s.bytes && closed()
            };
            if let Some(x) = row.columns.clone().find(inside) {
                let offset = self.offset(&row, x);
                // SAFETY: the launch is valid, and the element is in its memory.
                let kind = unsafe { check::kind_of(&*(*self.group).launch, offset, s.bytes) };
                return self.report(&row, x, kind);
            }
        }
        false
    }

    /// What is loaded has to be initialised, what is stored is from now on.
    ///
    /// # Safety
    /// The transfer must be of the group that runs, in a launch on tracked memory.
    unsafe fn look_at_marks(&self, r: &Rectangle) {
        let s = &self.shape;
        for (block, y) in (0..s.blocks).flat_map(|block| (0..s.height).map(move |y| (block, y))) {
            let Some(row) = self.row(r, block, y) else {
                continue;
            };
            for x in row.columns.clone() {
                let offset = self.offset(&row, x);
                if s.bytes > self.size || offset > self.size - s.bytes {
                    continue;
                }
                let mark = self.first.wrapping_add(offset).wrapping_add(self.marks) as *mut u8;
                let bytes = s.bytes as u32;
                // SAFETY: the element is in device memory, and its mark in that of tracked memory. The sink belongs to the worker that runs
                // this group, and only this call uses it now.
                unsafe {
                    if element::load(mark, bytes) == 0 {
                        continue;
                    }
                    if s.store {
                        element::store(mark, bytes, 0);
                    } else if let Some(sink) = (*self.group).faults.cast::<FaultSink>().as_mut() {
                        sink.suspect = true;
                        return;
                    }
                }
            }
        }
    }

    fn row(&self, r: &Rectangle, block: usize, y: usize) -> Option<Row> {
        let s = &self.shape;
        let row = i64::from(r.y) + y as i64;
        if !(0..=i64::from(r.height)).contains(&row) {
            return None;
        }
        let left = i64::from(r.x) + (block * s.width) as i64;
        // Elements that fit into a row of the surface.
        let there = (i64::from(r.width) + 1) / s.bytes as i64;
        let clip = |column: i64| column.clamp(0, s.width as i64) as usize;
        let columns = clip(-left)..clip(there - left);
        let pitch = u64::from(r.pitch) + 1;
        let offset = (row as u64)
            .wrapping_mul(pitch)
            .wrapping_add((left as u64).wrapping_mul(s.bytes));
        (!columns.is_empty()).then_some(Row {
            block,
            y,
            columns,
            address: r.base.wrapping_add(offset),
        })
    }

    /// Offset of a column in device memory.
    fn offset(&self, row: &Row, x: usize) -> u64 {
        let address = row.address.wrapping_add(x as u64 * self.shape.bytes);
        address.wrapping_sub(self.first) & FLAT_OFFSET
    }

    /// Moves a row; true when the launch has to stop.
    ///
    /// # Safety
    /// As [`Transfer::all`].
    unsafe fn move_row<T: Copy>(&self, row: &Row) -> bool {
        let bytes = self.shape.bytes;
        let start = self.offset(row, row.columns.start);
        let whole = row.columns.len() as u64 * bytes <= self.size
            && start <= self.size - row.columns.len() as u64 * bytes;
        for x in row.columns.clone() {
            let offset = self.offset(row, x);
            if whole || (bytes <= self.size && offset <= self.size - bytes) {
                let at = (self.first as *mut u8).wrapping_add(offset as usize);
                let to = self.shape.position(row.block, row.y, x);
                let register = self.data.cast::<T>().wrapping_add(to);
                if self.races && self.check_race(at, register.cast()) {
                    return true;
                }
                // SAFETY: the element is inside device memory, which is shared with other threads and never
                // referenced; the position is one of the payload.
                unsafe {
                    if self.shape.store {
                        at.cast::<T>().write_unaligned(register.read());
                    } else {
                        register.write(at.cast::<T>().read_unaligned());
                    }
                }
            } else if self.shape.report && self.report(row, x, FaultKind::Bounds) {
                return true;
            }
        }
        false
    }

    /// Checks an element that is about to be moved to or from a register; true when the launch has to stop.
    fn check_race(&self, at: *mut u8, register: *mut u8) -> bool {
        let s = &self.shape;
        let bytes = s.bytes as u32;
        // SAFETY: the register is one of the payload.
        let left = s.store.then(|| unsafe { element::load(register, bytes) });
        let by = (self.thread, self.site, s.lane);
        // SAFETY: the group is the one that runs; the caller looked at the bounds.
        unsafe { race::texel(self.group, by, (at, bytes), left) }
    }

    fn report(&self, row: &Row, x: usize, kind: FaultKind) -> bool {
        let address = row.address.wrapping_add(x as u64 * self.shape.bytes);
        let addresses = [address; 32];
        let lane = 1 << self.shape.lane;
        // SAFETY: the group is the one that runs; there is an address for each lane.
        let stop = unsafe {
            report(
                self.group,
                self.thread,
                self.site,
                lane,
                addresses.as_ptr(),
                0,
                kind,
            )
        };
        stop != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_documented_layouts() {
        let at =
            |flags: u32, bytes, w, h| RectangleShape::new(code::shape(bytes, 2, w, h, 0) | flags);
        // Rows are padded to a power of two, blocks to registers.
        let rows = at(code::WIDE, 2, 12, 3);
        assert_eq!(rows.position(0, 1, 2), 16 + 2);
        assert_eq!(rows.position(1, 0, 0), 64);
        // Two rows of words, or four of bytes, share dwords.
        let packed = at(code::WIDE | code::PACKED, 2, 16, 16);
        assert_eq!(packed.position(0, 3, 5), 2 * 16 + 5 * 2 + 1);
        let bytes = at(code::WIDE | code::PACKED, 1, 16, 32);
        assert_eq!(bytes.position(1, 6, 5), 512 + 4 * 16 + 5 * 4 + 2);
        // A column of three is padded to four.
        let columns = at(code::TRANSPOSE, 4, 8, 3);
        assert_eq!(columns.position(0, 2, 5), 5 * 4 + 2);
        assert_eq!(columns.position(1, 0, 0), 32);
        assert_eq!(
            size_of::<Rectangle>().next_multiple_of(16),
            code::DATA as usize
        );
    }
}
