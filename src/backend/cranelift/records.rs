//! Accesses of several consecutive components a lane, as one record a lane.
//!
//! When the whole record of every enabled lane is inside, each lane moves 16 (or 8) bytes at a
//! time and the pieces are transposed; otherwise a loop goes through the lanes.

use cranelift_codegen::ir::{self, InstBuilder, Value as V};

use super::emit::{DATA, Emit};
use super::mask::full;
use super::memory::Lanes;
use super::value::{per_piece, piece_count, piece_type, scalar_type};
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

/// Splits a record into groups of 16 bytes, and what is left.
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

/// Bytes that loading a record reads, padding of the last group included.
pub(super) fn record_bytes(elem: Lane, comps: u8) -> u32 {
    if comps == 1 || elem.bytes() < 4 {
        return elem.bytes() * u32::from(comps);
    }
    let last = groups(elem, comps).last().copied();
    last.map_or(0, |g| g.first as u32 * elem.bytes() + g.bytes)
}

impl Emit<'_> {
    /// True for accesses that this file speeds up.
    fn is_record(access: MemAccess, lanes: &Lanes) -> bool {
        access.comps > 1 && access.elem.bytes() >= 4 && lanes.count > 1
    }

    /// Load of records; `None` for accesses that are none.
    pub fn load_records(&mut self, access: MemAccess, lanes: &Lanes) -> Option<Vec<Vec<V>>> {
        if !Self::is_record(access, lanes) {
            return None;
        }
        let (elem, comps) = (access.elem, access.comps);
        let ty = Ty::vector(elem, lanes.count);
        let split = groups(elem, comps);
        let bytes = record_bytes(elem, comps);
        let (guards, bad) = self.record_guards(lanes, bytes);
        let (fast, slow, done) = self.fork(bad);
        let results: Vec<Vec<V>> = (0..comps)
            .map(|_| {
                (0..piece_count(ty))
                    .map(|_| self.func.dfg.append_block_param(done, piece_type(elem)))
                    .collect()
            })
            .collect();

        self.block = fast;
        let off = std::mem::replace(&mut self.cache.off, true);
        let pointers = self.safe_pointers(lanes, bytes, &lanes.offset, &guards);
        let mut loaded = self.load_groups(elem, &pointers, &split);
        if self.mask_const(lanes.mask) != Some(full(lanes.count)) {
            let mask = self.guard_mask(lanes, guards);
            let mask = self.repr_vec(&mask, lanes.count, elem.bytes());
            loaded = loaded
                .into_iter()
                .map(|pieces| self.mask_pieces(&mask, pieces))
                .collect();
        }
        self.jump(done, &loaded.concat());

        self.block = slow;
        self.check_lanes(lanes, elem, comps, access.site, access.space);
        let loaded = self.slow_load(lanes, elem, comps);
        self.jump(done, &loaded.concat());
        self.cache.off = off;
        self.block = done;
        Some(results)
    }

    /// Store of records; false for accesses that are none.
    pub fn store_records(&mut self, access: MemAccess, lanes: &Lanes, data: &[Vec<V>]) -> bool {
        if !Self::is_record(access, lanes) {
            return false;
        }
        let bytes = u32::from(access.comps) * access.elem.bytes();
        let (guards, bad) = self.record_guards(lanes, bytes);
        let pointers = self.sink_pointers(lanes, &lanes.offset, &guards);
        let (fast, slow, done) = self.fork(bad);

        self.block = fast;
        let off = std::mem::replace(&mut self.cache.off, true);
        self.store_to(access, lanes.count, data, |e, i| {
            e.lane_of(Lane::I64, &pointers, i)
        });
        self.jump(done, &[]);

        self.block = slow;
        self.check_lanes(lanes, access.elem, access.comps, access.site, access.space);
        self.slow_store(lanes, access.elem, data);
        self.jump(done, &[]);
        self.cache.off = off;
        self.block = done;
        true
    }

    /// Enabled lanes with the whole record inside, and whether any enabled lane is not one.
    fn record_guards(&mut self, lanes: &Lanes, bytes: u32) -> (Vec<V>, V) {
        let width = lanes.addr_lane().bytes();
        let inside = self.in_bounds(lanes, &lanes.offset, bytes);
        let mask = self.mask_vec(lanes.mask, width);
        let operands = [mask, inside];
        let guards = self.lanewise(&operands, |e, v| e.ins().band(v[0], v[1]));
        let missing = self.lanewise(&operands, |e, v| e.ins().band_not(v[0], v[1]));
        let bad = self.any_lane(&missing, width, lanes.count);
        (guards, bad)
    }

    /// Blocks of a branch: usual, rare, and after.
    fn fork(&mut self, rare: V) -> (ir::Block, ir::Block, ir::Block) {
        let fast = self.new_block();
        let slow = self.new_cold_block();
        let done = self.new_block();
        self.branch(rare, slow, fast);
        (fast, slow, done)
    }

    /// All components of the records at `pointers`, one a lane, of which [`record_bytes`] bytes are
    /// inside.
    pub fn load_from(&mut self, elem: Lane, comps: u8, pointers: &[V]) -> Vec<Vec<V>> {
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

    /// Stores records, each to the pointer that `pointer` gives for its lane.
    pub fn store_to(
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

    /// Any lane of a mask in vector form.
    pub fn any_lane(&mut self, pieces: &[V], width: u32, lanes: u16) -> V {
        if u32::from(lanes) * width == 16 * pieces.len() as u32 {
            return self.pieces_test(pieces, false);
        }
        let bits = self.vec_to_bits(width, pieces, lanes);
        self.ins()
            .icmp_imm_u(ir::condcodes::IntCC::NotEqual, bits, 0)
    }
}
