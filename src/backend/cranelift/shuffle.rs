//! Lane shuffles: each result piece is built from the source pieces that it needs.
//!
//! One source piece in order costs nothing. One or two source pieces take one byte shuffle, which Cranelift turns into the
//! cheapest instruction that matches. More pieces are combined pair by pair.

use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::CraneliftEmitter;
use super::mask::MaskRepr;
use super::value::{per_piece, piece_count};
use crate::ssa::{Lane, Ty, Value};

/// Where a result lane comes from: index into the list of source pieces, lane of that piece.
type Source = (usize, u8);

impl CraneliftEmitter<'_> {
    /// A shuffle instruction.
    pub(super) fn shuffle(&mut self, out: Value, args: &[Value], indices: &[u16]) {
        let ty = self.ty(out);
        if ty.lane == Lane::I1 {
            return self.shuffle_mask(out, args, indices);
        }
        if ty.is_scalar() {
            let v = self.shuffled_lane(args, usize::from(indices[0]));
            return self.bind(out, vec![v]);
        }
        let mut pieces: Vec<V> = Vec::new();
        let mut starts: Vec<(usize, usize, bool)> = Vec::new();
        let mut lanes = 0;
        for &arg in args {
            let from = self.ty(arg);
            let scalar = from.is_scalar();
            starts.push((lanes, pieces.len(), scalar));
            lanes += usize::from(from.lanes);
            if scalar {
                let v = self.scalar(arg);
                let piece = self.ins().splat(super::value::piece_type(ty.lane), v);
                pieces.push(piece);
            } else {
                let parts = self.parts(arg);
                pieces.extend(parts);
            }
        }
        let per = per_piece(ty.lane);
        let locate = |index: u16| -> Source {
            let index = usize::from(index);
            let &(first, piece, _) = starts
                .iter()
                .rev()
                .find(|s| s.0 <= index)
                .unwrap_or(&starts[0]);
            let lane = index - first;
            (piece + lane / per, (lane % per) as u8)
        };
        let sources: Vec<Source> = indices.iter().map(|&i| locate(i)).collect();
        let result = self.pieces_from(ty, &pieces, &sources);
        self.bind(out, result);
    }

    fn shuffled_lane(&mut self, args: &[Value], index: usize) -> V {
        let mut index = index;
        for &arg in args {
            let from = self.ty(arg);
            let lanes = usize::from(from.lanes);
            if index < lanes {
                let parts = self.parts(arg);
                return if from.is_scalar() {
                    parts[0]
                } else {
                    self.lane_of(from.lane, &parts, index)
                };
            }
            index -= lanes;
        }
        self.bug("shuffle index out of range");
        self.iconst(types::I8, 0)
    }

    /// Pieces of `ty` whose lanes are taken from `pieces`.
    pub(super) fn pieces_from(&mut self, ty: Ty, pieces: &[V], sources: &[Source]) -> Vec<V> {
        let per = per_piece(ty.lane);
        let mut out: Vec<V> = Vec::with_capacity(piece_count(ty));
        let mut last: Option<Vec<(V, u8)>> = None;
        for chunk in sources.chunks(per) {
            let wanted: Vec<(V, u8)> = chunk.iter().map(|&(p, l)| (pieces[p], l)).collect();
            let v = match (&last, out.last()) {
                (Some(before), Some(&v)) if *before == wanted => v,
                _ => self.piece_of(ty.lane, &wanted),
            };
            last = Some(wanted);
            out.push(v);
        }
        out
    }

    /// One piece with the given lanes; lanes beyond them are unspecified.
    fn piece_of(&mut self, lane: Lane, wanted: &[(V, u8)]) -> V {
        let per = per_piece(lane);
        let mut distinct: Vec<V> = Vec::new();
        for &(v, _) in wanted {
            if !distinct.contains(&v) {
                distinct.push(v);
            }
        }
        if let [only] = distinct[..]
            && wanted
                .iter()
                .enumerate()
                .all(|(i, w)| usize::from(w.1) == i)
        {
            return only;
        }
        // Each pair of sources puts its lanes in place; then the pairs are merged.
        let mut partial: Vec<(V, Vec<bool>)> = distinct
            .chunks(2)
            .map(|pair| {
                let (a, b) = (pair[0], pair[pair.len() - 1]);
                let mut next = 0u8;
                let lanes: Vec<u8> = (0..per)
                    .map(|i| {
                        let from = match wanted.get(i) {
                            Some(&(v, l)) if v == a => l,
                            Some(&(v, l)) if v == b => l + per as u8,
                            _ => next % (2 * per as u8),
                        };
                        next = from + 1;
                        from
                    })
                    .collect();
                let owned = (0..per)
                    .map(|i| wanted.get(i).is_some_and(|w| pair.contains(&w.0)))
                    .collect();
                let lanes = if a == b {
                    lanes.iter().map(|l| l % per as u8).collect()
                } else {
                    lanes
                };
                (self.shuffle_lanes(lane, a, b, &lanes), owned)
            })
            .collect();
        while partial.len() > 1 {
            partial = partial
                .chunks(2)
                .map(|pair| match pair {
                    [(a, own_a), (b, own_b)] => {
                        let lanes: Vec<u8> = (0..per)
                            .map(|i| (i + if own_b[i] { per } else { 0 }) as u8)
                            .collect();
                        let owned = own_a.iter().zip(own_b).map(|(x, y)| x | y).collect();
                        (self.shuffle_lanes(lane, *a, *b, &lanes), owned)
                    }
                    _ => pair[0].clone(),
                })
                .collect();
        }
        partial[0].0
    }

    /// Shuffles masks: runs of consecutive lanes move as bits, anything else as bytes.
    fn shuffle_mask(&mut self, out: Value, args: &[Value], indices: &[u16]) {
        let ty = self.ty(out);
        let total: u16 = args.iter().map(|&a| self.ty(a).lanes).sum();
        if total <= 32 {
            let all = self.joined_bits(args);
            if let Some(bits) = self.consecutive_bits(all, indices) {
                return self.bind_mask(out, MaskRepr::Bits(bits));
            }
        }
        let mut pieces: Vec<V> = Vec::new();
        let mut starts: Vec<(usize, usize)> = Vec::new();
        let mut lanes = 0;
        for &arg in args {
            let from = self.ty(arg);
            starts.push((lanes, pieces.len()));
            lanes += usize::from(from.lanes);
            let mask = self.mask(arg);
            let bytes = self.repr_vec(&mask, from.lanes, 1);
            pieces.extend(bytes);
        }
        let sources: Vec<Source> = indices
            .iter()
            .map(|&index| {
                let index = usize::from(index);
                let &(first, piece) = starts
                    .iter()
                    .rev()
                    .find(|s| s.0 <= index)
                    .unwrap_or(&starts[0]);
                let lane = index - first;
                (piece + lane / 16, (lane % 16) as u8)
            })
            .collect();
        let bytes = self.pieces_from(ty.with_lane(Lane::I8), &pieces, &sources);
        self.bind_mask(out, MaskRepr::Vec(1, bytes));
    }

    fn joined_bits(&mut self, args: &[Value]) -> V {
        let mut all: Option<V> = None;
        let mut at = 0;
        for &arg in args {
            let bits = self.mask_bits(arg);
            all = Some(match all {
                None => bits,
                Some(low) => {
                    let up = self.shift_left_by(bits, at);
                    self.ins().bor(low, up)
                }
            });
            at += u64::from(self.ty(arg).lanes);
        }
        all.unwrap_or_else(|| self.iconst(types::I32, 0))
    }

    fn consecutive_bits(&mut self, all: V, indices: &[u16]) -> Option<V> {
        let first = *indices.first()?;
        let run = indices
            .iter()
            .enumerate()
            .all(|(i, &index)| usize::from(index) == usize::from(first) + i);
        if !run {
            return None;
        }
        let low = if first == 0 {
            all
        } else {
            self.shift_right_by(all, u64::from(first))
        };
        let keep = super::mask::full(indices.len() as u16);
        Some(self.ins().band_imm_u(low, keep.cast_signed()))
    }
}
