//! The register file as SSA values: reads and writes of any byte pattern.
//!
//! Cells (see [`super::cells`]) are SSA variables; a read gathers lanes out of them, a write puts
//! lanes in. Roots reached through address variables live in memory instead
//! ([`crate::ssa::Space::Regs`]). In the recording run nothing is emitted but the shape of every
//! access is noted.

use std::collections::BTreeMap;
use std::ops::Range;

use super::build::Builder;
use super::cells::{Cell, Recorder};
use super::error::Fail;
use super::variables::Var;
use crate::module::VarId;
use crate::ssa::*;
use crate::valid::{Root, RootId};

/// Where lanes of an access lie: byte offset of each lane in the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Root.
    pub root: RootId,
    /// Byte offset of each lane, in lane order.
    pub offsets: Vec<u32>,
    /// Lane type.
    pub lane: Lane,
    /// The access is a block message.
    pub soft: bool,
}

impl Pattern {
    /// `n` lanes `stride` bytes apart.
    pub(super) fn strided(root: RootId, start: u32, n: u32, stride: u32, lane: Lane) -> Pattern {
        Pattern {
            root,
            offsets: (0..n).map(|i| start + i * stride).collect(),
            lane,
            soft: false,
        }
    }

    /// `n` consecutive lanes.
    pub(super) fn packed(root: RootId, start: u32, n: u32, lane: Lane) -> Pattern {
        Pattern::strided(root, start, n, lane.bytes(), lane)
    }

    fn hull(&self) -> (u32, u32) {
        let lo = self.offsets.iter().copied().min().unwrap_or(0);
        let hi = self.offsets.iter().copied().max().unwrap_or(0) + self.lane.bytes();
        (lo, hi)
    }
}

enum Storage {
    Cells(Vec<(Cell, Var)>),
    /// Byte offset in the thread's register storage.
    Memory(u32),
}

/// All storage roots of a kernel.
pub(super) struct RegFile {
    roots: Vec<Root>,
    storage: BTreeMap<RootId, Storage>,
    /// Set in the recording run.
    pub recorder: Option<Recorder>,
    memory_bytes: u32,
}

impl RegFile {
    /// For the recording run.
    pub(super) fn recording(roots: &[Root]) -> RegFile {
        RegFile {
            roots: roots.to_vec(),
            storage: BTreeMap::new(),
            recorder: Some(Recorder::default()),
            memory_bytes: 0,
        }
    }

    /// For the real run: declares a variable for each cell.
    pub(super) fn new(roots: &[Root], recorder: &Recorder, b: &mut Builder) -> RegFile {
        let mut storage = BTreeMap::new();
        let mut memory_bytes = 0u32;
        for &root in &recorder.indirect {
            storage.insert(root, Storage::Memory(memory_bytes));
            let bytes = roots.get(root.0 as usize).map_or(0, |r| r.bytes);
            memory_bytes = memory_bytes.saturating_add(bytes.next_multiple_of(64));
        }
        for (root, cells) in recorder.partition() {
            if !recorder.indirect.contains(&root) {
                let predefined = roots
                    .get(root.0 as usize)
                    .is_some_and(|r| r.var.is_predefined());
                let declare = if predefined {
                    Builder::var
                } else {
                    Builder::register
                };
                let cells = cells.into_iter().map(|c| (c, declare(b, c.ty())));
                let cells = cells.collect();
                storage.insert(root, Storage::Cells(cells));
            }
        }
        RegFile {
            roots: roots.to_vec(),
            storage,
            recorder: None,
            memory_bytes,
        }
    }

    /// Bytes of register storage in memory.
    pub(super) fn memory_bytes(&self) -> u32 {
        self.memory_bytes
    }

    /// Every cell with the variable at the origin of its root.
    pub(super) fn cells(&self) -> impl Iterator<Item = (VarId, Var)> + '_ {
        self.storage.iter().flat_map(move |(root, s)| {
            let var = self.roots.get(root.0 as usize).map(|r| r.var);
            let cells = match s {
                Storage::Cells(cells) => cells.as_slice(),
                Storage::Memory(_) => &[],
            };
            cells
                .iter()
                .filter_map(move |(_, cell)| Some((var?, *cell)))
        })
    }

    /// Variables whose roots live in memory, and where.
    pub(super) fn memory_vars(&self) -> impl Iterator<Item = (VarId, Range<u32>)> + '_ {
        self.storage.iter().filter_map(|(root, s)| match s {
            Storage::Memory(at) => {
                let root = self.roots.get(root.0 as usize)?;
                Some((root.var, *at..at.saturating_add(root.bytes)))
            }
            Storage::Cells(_) => None,
        })
    }

    /// Position of a root in register storage, for address-of. Takes the address in the recording run.
    pub(super) fn address(&mut self, root: RootId) -> u32 {
        if let Some(r) = &mut self.recorder {
            r.indirect.insert(root);
        }
        match self.storage.get(&root) {
            Some(Storage::Memory(at)) => *at,
            _ => 0,
        }
    }

    fn check(&mut self, p: &Pattern) -> Result<(), Fail> {
        let (lo, hi) = p.hull();
        let room = self.roots.get(p.root.0 as usize).map_or(0, |r| r.bytes);
        if hi > room {
            return Fail::malformed(format!(
                "operand reaches byte {hi} of a variable that has {room}"
            ));
        }
        if let Some(r) = &mut self.recorder {
            r.touch(p.root, lo, hi, p.lane, p.offsets.len() as u32, p.soft);
        }
        Ok(())
    }

    /// Reads lanes. When all lanes read the same bytes the result is a scalar.
    pub(super) fn read(&mut self, b: &mut Builder, p: &Pattern) -> Result<Value, Fail> {
        self.check(p)?;
        let uniform = p.offsets.iter().all(|&o| Some(&o) == p.offsets.first());
        let offsets = if uniform {
            &p.offsets[..1]
        } else {
            &p.offsets[..]
        };
        if self.recorder.is_some() {
            let zero = b.bits(p.lane, 0);
            return Ok(b.splat(zero, offsets.len() as u16));
        }
        match self.storage.get(&p.root) {
            Some(Storage::Memory(at)) => Ok(read_memory(b, *at, offsets, p.lane)),
            Some(Storage::Cells(cells)) => Ok(read_cells(b, cells, offsets, p.lane)),
            None => Fail::malformed("internal: access was not recorded"),
        }
    }

    /// Writes lanes: `value` has one lane for each offset, or is a scalar for all of them. Lanes whose mask
    /// bit is clear keep their bytes. When several lanes name the same bytes the last one wins.
    pub(super) fn write(
        &mut self,
        b: &mut Builder,
        p: &Pattern,
        value: Value,
        mask: Option<Value>,
    ) -> Result<(), Fail> {
        self.check(p)?;
        if self.recorder.is_some() {
            return Ok(());
        }
        let lanes = p.offsets.len() as u16;
        let value = b.splat(value, lanes);
        let value = match mask {
            Some(m) => {
                let recorder = self.recorder.take();
                let old = self.read(b, p)?;
                self.recorder = recorder;
                let old = b.splat(old, lanes);
                b.select(m, value, old)
            }
            None => value,
        };
        match self.storage.get(&p.root) {
            Some(Storage::Memory(at)) => write_memory(b, *at, &p.offsets, value),
            Some(Storage::Cells(cells)) => write_cells(b, cells, &p.offsets, value),
            None => return Fail::malformed("internal: access was not recorded"),
        }
        Ok(())
    }

    /// Defines bytes `lo..hi` of a root from the launch payload at `payload`, cell by cell.
    pub(super) fn define_input(
        &mut self,
        b: &mut Builder,
        root: RootId,
        lo: u32,
        hi: u32,
        payload: impl Fn(&mut Builder, u32, Ty) -> Value,
    ) -> Result<(), Fail> {
        if self.recorder.is_some() {
            return Ok(());
        }
        match self.storage.get(&root) {
            None => {}
            Some(Storage::Memory(at)) => {
                let at = *at;
                for o in (lo..hi).step_by(4) {
                    let n = (hi - o).min(4);
                    let lane = if n == 4 { Lane::I32 } else { Lane::I8 };
                    for k in (0..n).step_by(lane.bytes() as usize) {
                        let v = payload(b, o + k - lo, Ty::scalar(lane));
                        write_memory(b, at, &[o + k], v);
                    }
                }
            }
            Some(Storage::Cells(cells)) => {
                let hit: Vec<(Cell, Var)> = cells
                    .iter()
                    .copied()
                    .filter(|(c, _)| c.lo < hi && c.hi > lo)
                    .collect();
                for (c, var) in hit {
                    if c.lo >= lo && c.hi <= hi {
                        let v = payload(b, c.lo - lo, c.ty());
                        b.write(var, v);
                        continue;
                    }
                    let e = c.lane.bytes();
                    for o in (c.lo..c.hi).step_by(e as usize) {
                        if o >= lo && o + e <= hi {
                            let v = payload(b, o - lo, Ty::scalar(c.lane));
                            write_cells(b, &[(c, var)], &[o], v);
                            continue;
                        }
                        // What of the element lies outside stays as it is.
                        for o in o.max(lo)..(o + e).min(hi) {
                            let v = payload(b, o - lo, Ty::scalar(Lane::I8));
                            write_cells(b, &[(c, var)], &[o], v);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn consecutive(offsets: &[u32], lane: Lane) -> bool {
    offsets
        .windows(2)
        .all(|w| w[1] == w[0].wrapping_add(lane.bytes()))
}

const REGS_SITE: u32 = u32::MAX;

fn read_memory(b: &mut Builder, at: u32, offsets: &[u32], lane: Lane) -> Value {
    let n = offsets.len() as u16;
    let int = lane.as_int();
    let v = if consecutive(offsets, lane) {
        let yes = b.bool(true);
        let addr = b.i32(at + offsets[0]);
        let access = BlockAccess {
            space: Space::Regs,
            elem: int,
            n,
            site: REGS_SITE,
        };
        b.op(Op::BlockLoad(access), vec![yes, addr], Ty::vector(int, n))
    } else {
        let mask = b.vec_const(Lane::I1, vec![1; n as usize]);
        let addr = b.vec_const(
            Lane::I32,
            offsets.iter().map(|&o| u64::from(at + o)).collect(),
        );
        let access = MemAccess {
            space: Space::Regs,
            elem: int,
            comps: 1,
            site: REGS_SITE,
        };
        b.op(Op::Load(access), vec![mask, addr], Ty::vector(int, n))
    };
    b.recast(v, lane)
}

fn write_memory(b: &mut Builder, at: u32, offsets: &[u32], value: Value) {
    let lane = b.ty(value).lane;
    let n = offsets.len() as u16;
    let value = b.recast(value, lane.as_int());
    if consecutive(offsets, lane) {
        let yes = b.bool(true);
        let addr = b.i32(at + offsets[0]);
        let access = BlockAccess {
            space: Space::Regs,
            elem: lane.as_int(),
            n,
            site: REGS_SITE,
        };
        b.effect(Op::BlockStore(access), vec![yes, addr, value]);
    } else {
        let mask = b.vec_const(Lane::I1, vec![1; n as usize]);
        let addr = b.vec_const(
            Lane::I32,
            offsets.iter().map(|&o| u64::from(at + o)).collect(),
        );
        let access = MemAccess {
            space: Space::Regs,
            elem: lane.as_int(),
            comps: 1,
            site: REGS_SITE,
        };
        b.effect(Op::Store(access), vec![mask, addr, value]);
    }
}

/// The cells that hold any byte of an access, as one value of integer lanes, with the root offset of its start.
///
/// Gaps between cells cannot hold accessed bytes: every access was recorded before the cut.
fn read_cells(b: &mut Builder, cells: &[(Cell, Var)], offsets: &[u32], lane: Lane) -> Value {
    let size = lane.bytes();
    let lo = offsets.iter().copied().min().unwrap_or(0);
    let hi = offsets.iter().copied().max().unwrap_or(0) + size;
    let first = cells.partition_point(|(c, _)| c.hi <= lo);
    let hit = &cells[first..];
    let count = hit.partition_point(|(c, _)| c.lo < hi);
    let hit = &hit[..count];
    if let [(cell, var)] = hit {
        let v = b.read(*var);
        return read_lanes(b, v, *cell, offsets, lane);
    }
    // Several cells: take each lane from the cell it starts in; lanes that straddle cells go byte by byte.
    let straddles = offsets
        .iter()
        .any(|&o| !hit.iter().any(|(c, _)| c.lo <= o && o + size <= c.hi));
    if straddles && size > 1 {
        let half = Lane::int(size / 2).unwrap_or(Lane::I8);
        let parts: Vec<u32> = offsets.iter().flat_map(|&o| [o, o + size / 2]).collect();
        let v = read_cells(b, cells, &parts, half);
        return b.bitcast(v, Ty::vector(lane, offsets.len() as u16));
    }
    let mut acc: Option<Value> = None;
    let mut order: Vec<usize> = Vec::new();
    for (cell, var) in hit {
        let here: Vec<usize> = (0..offsets.len())
            .filter(|&i| cell.lo <= offsets[i] && offsets[i] + size <= cell.hi)
            .collect();
        if here.is_empty() {
            continue;
        }
        let mine: Vec<u32> = here.iter().map(|&i| offsets[i]).collect();
        let v = b.read(*var);
        let v = read_lanes(b, v, *cell, &mine, lane);
        order.extend(here);
        acc = Some(match acc {
            None => v,
            Some(a) => b.concat(a, v),
        });
    }
    let Some(all) = acc else {
        return b.bits(lane, 0);
    };
    let mut place = vec![0u16; offsets.len()];
    for (at, &i) in order.iter().enumerate() {
        place[i] = at as u16;
    }
    b.shuffle(all, place)
}

/// Lanes at root `offsets` out of the value of one cell that holds them all.
fn read_lanes(b: &mut Builder, v: Value, cell: Cell, offsets: &[u32], lane: Lane) -> Value {
    let (e, s) = (cell.lane.bytes(), lane.bytes());
    let rel: Vec<u32> = offsets.iter().map(|o| o - cell.lo).collect();
    if s == e && rel.iter().all(|r| r % e == 0) {
        let v = b.shuffle(v, rel.iter().map(|r| (r / e) as u16).collect());
        return b.recast(v, lane);
    }
    let phase = rel[0] % e;
    if s < e && rel.iter().all(|r| r % e == phase) && phase.is_multiple_of(s) {
        // The same part of each lane: arithmetic keeps facts about the lanes visible.
        let v = b.recast(v, cell.lane.as_int());
        let v = b.shuffle(v, rel.iter().map(|r| (r / e) as u16).collect());
        let v = b.bin_imm(BinOp::LShr, v, i64::from(phase * 8));
        let v = b.conv(Conv::Trunc, v, lane.as_int());
        return b.recast(v, lane);
    }
    let bytes = cell.hi - cell.lo;
    if bytes.is_multiple_of(s) && rel.iter().all(|r| r % s == 0) {
        let v = b.bitcast(v, Ty::vector(lane.as_int(), (bytes / s) as u16));
        let v = b.shuffle(v, rel.iter().map(|r| (r / s) as u16).collect());
        return b.recast(v, lane);
    }
    // Misaligned against the cell: gather the bytes.
    let view = b.bitcast(v, Ty::vector(Lane::I8, bytes as u16));
    let idx: Vec<u16> = rel
        .iter()
        .flat_map(|&r| (r..r + s).map(|k| k as u16))
        .collect();
    let v = b.shuffle(view, idx);
    b.bitcast(v, Ty::vector(lane, offsets.len() as u16))
}

fn write_cells(b: &mut Builder, cells: &[(Cell, Var)], offsets: &[u32], value: Value) {
    let lane = b.ty(value).lane;
    let s = lane.bytes();
    let straddles = offsets
        .iter()
        .any(|&o| !cells.iter().any(|(c, _)| c.lo <= o && o + s <= c.hi));
    if straddles && s > 1 {
        let half = Lane::int(s / 2).unwrap_or(Lane::I8);
        let parts: Vec<u32> = offsets.iter().flat_map(|&o| [o, o + s / 2]).collect();
        let v = b.bitcast(value, Ty::vector(half, parts.len() as u16));
        return write_cells(b, cells, &parts, v);
    }
    let lo = offsets.iter().copied().min().unwrap_or(0);
    let hi = offsets.iter().copied().max().unwrap_or(0) + s;
    for (cell, var) in cells.iter().filter(|(c, _)| c.lo < hi && c.hi > lo) {
        let here: Vec<u16> = (0..offsets.len())
            .filter(|&i| cell.lo <= offsets[i] && offsets[i] < cell.hi)
            .map(|i| i as u16)
            .collect();
        if here.is_empty() {
            continue;
        }
        let rel: Vec<u32> = here
            .iter()
            .map(|&i| offsets[i as usize] - cell.lo)
            .collect();
        let part = b.shuffle(value, here);
        write_lanes(b, *cell, *var, &rel, part);
    }
}

/// Puts lanes at cell-relative byte offsets into one cell.
fn write_lanes(b: &mut Builder, cell: Cell, var: Var, rel: &[u32], value: Value) {
    let lane = b.ty(value).lane;
    let (e, s) = (cell.lane.bytes(), lane.bytes());
    let bytes = cell.hi - cell.lo;
    let total = (bytes / e) as usize;
    if s == e && rel.iter().all(|r| r % e == 0) {
        let value = b.recast(value, cell.lane);
        let whole = rel.len() == total && rel.iter().enumerate().all(|(i, &r)| r == i as u32 * e);
        let new = if whole {
            value
        } else {
            let old = b.read(var);
            put(
                b,
                old,
                value,
                &rel.iter().map(|r| (r / e) as usize).collect::<Vec<_>>(),
            )
        };
        b.write(var, new);
        return;
    }
    let phase = rel[0] % e;
    let distinct = rel.windows(2).all(|w| w[0] / e < w[1] / e);
    if s < e && distinct && rel.iter().all(|r| r % e == phase) && phase.is_multiple_of(s) {
        let old = b.read(var);
        let old_int = b.recast(old, cell.lane.as_int());
        let at: Vec<usize> = rel.iter().map(|r| (r / e) as usize).collect();
        let picked = b.shuffle(old_int, at.iter().map(|&i| i as u16).collect());
        let value = b.recast(value, lane.as_int());
        let wide = b.conv(Conv::ZExt, value, cell.lane.as_int());
        let wide = b.bin_imm(BinOp::Shl, wide, i64::from(phase * 8));
        let hole = !(((1u128 << (s * 8)) - 1) as u64) as i64;
        let keep = b.bin_imm(BinOp::And, picked, hole.rotate_left(phase * 8));
        let merged = b.bin(BinOp::Or, keep, wide);
        let new = put(b, old_int, merged, &at);
        let new = b.recast(new, cell.lane);
        b.write(var, new);
        return;
    }
    // Another view of the cell: lanes of the access where they are aligned, else bytes.
    let old = b.read(var);
    let ty = b.ty(old);
    let view = if bytes.is_multiple_of(s) && rel.iter().all(|r| r % s == 0) {
        s
    } else {
        1
    };
    let view_lane = Lane::int(view).unwrap_or(Lane::I8);
    let old = b.bitcast(old, Ty::vector(view_lane, (bytes / view) as u16));
    let n = rel.len() as u32 * s / view;
    let value = b.bitcast(value, Ty::vector(view_lane, n as u16));
    let at: Vec<usize> = rel
        .iter()
        .flat_map(|&r| (0..s / view).map(move |k| (r / view + k) as usize))
        .collect();
    let new = put(b, old, value, &at);
    let new = b.bitcast(new, ty);
    b.write(var, new);
}

/// `old` with lane `at[i]` replaced by lane `i` of `value`; later lanes win.
fn put(b: &mut Builder, old: Value, value: Value, at: &[usize]) -> Value {
    let ty = b.ty(old);
    if ty.is_scalar() {
        return b.lane(value, at.len() as u16 - 1);
    }
    if let [one] = at {
        return b.op(Op::InsertLane(*one as u16), vec![old, value], ty);
    }
    let n = ty.lanes;
    let mut indices: Vec<u16> = (0..n).collect();
    for (i, &k) in at.iter().enumerate() {
        indices[k] = n + i as u16;
    }
    if indices.iter().all(|&k| k >= n) {
        return b.shuffle(value, indices.iter().map(|k| k - n).collect());
    }
    b.shuffle2(old, value, indices)
}
