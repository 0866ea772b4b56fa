//! Array-of-structs accesses: each lane moves its consecutive components 16 (or 8) bytes at a time, and the pieces are
//! transposed.

use cranelift_codegen::ir::{InstBuilder, Value as V};

use super::emit::{CraneliftEmitter, DATA};
use super::value::{per_piece, piece_type, scalar_type};
use crate::ssa::{Lane, MemAccess, Ty};

/// A run of components that is moved together.
#[derive(Clone, Copy)]
struct Group {
    /// First component.
    first: usize,
    /// Components.
    count: usize,
    /// Bytes read.
    bytes: u32,
}

/// Splits a struct into groups of 16 bytes, and what is left.
fn groups(elem: Lane, comps: u8) -> Vec<Group> {
    let per = per_piece(elem);
    (0..usize::from(comps))
        .step_by(per)
        .map(|first| {
            let count = per.min(usize::from(comps) - first);
            let bytes = count as u32 * elem.bytes();
            Group {
                first,
                count,
                bytes: if bytes == 12 { 16 } else { bytes },
            }
        })
        .collect()
}

impl CraneliftEmitter<'_> {
    /// All components of the structs at `pointers`, one a lane, of which as many bytes as
    /// [`crate::backend::access`] says are inside.
    pub(super) fn load_from(&mut self, elem: Lane, comps: u8, pointers: &[V]) -> Vec<Vec<V>> {
        if comps > 1 && elem.bytes() >= 4 {
            return self.load_groups(elem, pointers, &groups(elem, comps));
        }
        (0..i32::from(comps))
            .map(|c| {
                let at = c * elem.bytes().cast_signed();
                pointers
                    .chunks(per_piece(elem))
                    .map(|chunk| self.load_piece(elem, chunk, at))
                    .collect()
            })
            .collect()
    }

    fn load_groups(&mut self, elem: Lane, pointers: &[V], split: &[Group]) -> Vec<Vec<V>> {
        let mut out: Vec<Vec<V>> = Vec::new();
        for group in split {
            let at = (group.first as u32 * elem.bytes()).cast_signed();
            let mut comps: Vec<Vec<V>> = vec![Vec::new(); group.count];
            for chunk in pointers.chunks(per_piece(elem)) {
                let pieces = self.load_chunk(elem, *group, chunk, at);
                for (comp, piece) in comps.iter_mut().zip(pieces) {
                    comp.push(piece);
                }
            }
            out.extend(comps);
        }
        out
    }

    /// The components of a group for as many lanes as a piece has.
    fn load_chunk(&mut self, elem: Lane, group: Group, pointers: &[V], at: i32) -> Vec<V> {
        let last = pointers.len() - 1;
        let per = per_piece(elem);
        if group.bytes == 16 {
            let rows: Vec<V> = (0..per)
                .map(|i| {
                    let pointer = pointers[i.min(last)];
                    self.ins().load(piece_type(elem), DATA, pointer, at)
                })
                .collect();
            let mut columns = self.transpose(elem, &rows);
            columns.truncate(group.count);
            return columns;
        }
        let part = super::value::int_lane(group.bytes);
        let scalars: Vec<V> = pointers
            .iter()
            .map(|&p| self.ins().load(scalar_type(part), DATA, p, at))
            .collect();
        let pieces = self.from_lanes(part, &scalars);
        if group.count == 1 {
            return pieces;
        }
        let a = self.cast_piece(pieces[0], elem);
        let b = self.cast_piece(pieces[pieces.len() - 1], elem);
        vec![
            self.shuffle_lanes(elem, a, b, &[0, 2, 4, 6]),
            self.shuffle_lanes(elem, a, b, &[1, 3, 5, 7]),
        ]
    }

    /// Rows to columns of a square of as many pieces as a piece has lanes.
    fn transpose(&mut self, elem: Lane, rows: &[V]) -> Vec<V> {
        if let Some(back) = self.rows_of.get(rows) {
            return back.clone();
        }
        let columns = self.columns(elem, rows);
        self.rows_of.insert(columns.clone(), rows.to_vec());
        columns
    }

    fn columns(&mut self, elem: Lane, rows: &[V]) -> Vec<V> {
        if let [a, b] = *rows {
            return vec![
                self.shuffle_lanes(elem, a, b, &[0, 2]),
                self.shuffle_lanes(elem, a, b, &[1, 3]),
            ];
        }
        let [a, b, c, d] = [rows[0], rows[1], rows[2], rows[3]];
        let low = [0, 4, 1, 5];
        let high = [2, 6, 3, 7];
        let ab = self.shuffle_lanes(elem, a, b, &low);
        let cd = self.shuffle_lanes(elem, c, d, &low);
        let ab2 = self.shuffle_lanes(elem, a, b, &high);
        let cd2 = self.shuffle_lanes(elem, c, d, &high);
        vec![
            self.shuffle_lanes(elem, ab, cd, &[0, 1, 4, 5]),
            self.shuffle_lanes(elem, ab, cd, &[2, 3, 6, 7]),
            self.shuffle_lanes(elem, ab2, cd2, &[0, 1, 4, 5]),
            self.shuffle_lanes(elem, ab2, cd2, &[2, 3, 6, 7]),
        ]
    }

    /// Stores structs, each to the pointer that `pointer` gives for its lane.
    pub(super) fn store_to(
        &mut self,
        access: MemAccess,
        count: u16,
        data: &[Vec<V>],
        mut pointer: impl FnMut(&mut Self, usize) -> V,
    ) {
        let elem = access.elem;
        if data.len() == 1 || elem.bytes() < 4 {
            for i in 0..usize::from(count) {
                let to = pointer(self, i);
                for (c, parts) in data.iter().enumerate() {
                    let v = self.lane_of(elem, parts, i);
                    let at = c as u32 * elem.bytes();
                    self.ins().store(DATA, v, to, at.cast_signed());
                }
            }
            return;
        }
        let per = per_piece(elem);
        let split = groups(elem, access.comps);
        #[expect(
            clippy::needless_range_loop,
            reason = "indexes every component's pieces, not one list"
        )]
        for p in 0..data[0].len() {
            let rows: Vec<Vec<V>> = split
                .iter()
                .map(|group| {
                    let columns: Vec<V> = (0..per)
                        .map(|c| data[group.first + c.min(group.count - 1)][p])
                        .collect();
                    self.transpose(elem, &columns)
                })
                .collect();
            for i in (0..per).take_while(|i| p * per + i < usize::from(count)) {
                let to = pointer(self, p * per + i);
                for (group, rows) in split.iter().zip(&rows) {
                    self.store_row(elem, rows[i], *group, to);
                }
            }
        }
    }

    /// The first components of a row, exactly.
    fn store_row(&mut self, elem: Lane, row: V, group: Group, pointer: V) {
        let at = (group.first as u32 * elem.bytes()).cast_signed();
        let ty = Ty::vector(elem, group.count as u16);
        if ty.is_scalar() {
            let v = self.ins().extractlane(row, 0);
            self.ins().store(DATA, v, pointer, at);
        } else {
            self.store_value(pointer, at, ty, &[row]);
        }
    }

    /// One element from each of as many pointers as a piece has lanes, or fewer.
    fn load_piece(&mut self, elem: Lane, pointers: &[V], at: i32) -> V {
        self.load_piece_of(elem, pointers.len(), at, |_, i| pointers[i])
    }

    /// The same from as many pointers as `count` says. Each is made where it is used.
    pub(super) fn load_piece_of(
        &mut self,
        elem: Lane,
        count: usize,
        at: i32,
        mut pointer: impl FnMut(&mut Self, usize) -> V,
    ) -> V {
        let (ty, scalar) = (piece_type(elem), scalar_type(elem));
        let mut piece: Option<V> = None;
        for i in 0..count {
            let pointer = pointer(self, i);
            let v = self.ins().load(scalar, DATA, pointer, at);
            piece = Some(match piece {
                None if elem.bytes() >= 4 => self.ins().scalar_to_vector(ty, v),
                None => {
                    let zero = self.vconst(ty, 0);
                    self.ins().insertlane(zero, v, 0)
                }
                Some(p) => self.ins().insertlane(p, v, i as u8),
            });
        }
        piece.unwrap_or_else(|| self.vconst(ty, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::access::row_bytes;

    /// The bounds test covers what is read.
    #[test]
    fn rows_end_where_the_bounds_test_does() {
        for elem in [Lane::I32, Lane::I64] {
            for comps in 2..=8 {
                let last = groups(elem, comps).last().copied().unwrap();
                let end = last.first as u32 * elem.bytes() + last.bytes;
                assert_eq!(row_bytes(elem, comps), end, "{elem:?} x {comps}");
            }
        }
    }
}
