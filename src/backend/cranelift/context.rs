//! What compiled code reads from the launch, group and thread contexts.
//!
//! Fields that stay the same while the entry point runs are loaded once, in its first block. Fields that stay the same in a row of
//! groups are loaded once in a block that every row passes, and fields of the thread once in a block that every thread passes. These
//! blocks grow on demand while the body is translated, and get their terminators at the end.

use std::mem::offset_of;

use rustc_hash::FxHashMap;

use cranelift_codegen::ir::{self, InstBuilder, Type, Value as V, types};
use visa_runtime::abi::{GroupCtx, LOCAL_ID_ROW, LaunchCtx, ThreadCtx};

use super::emit::{CraneliftEmitter, DATA, READONLY};
use super::mask::{MaskRepr, full};
use super::value::{is_padded, piece_count, piece_type, scalar_type};
use crate::backend::barrier_loop::BarrierLoop;
use crate::backend::shadow::PointeeOf;
use crate::ssa::{Input, Lane, Ty, Value};

/// Blocks of the thread loop and what is known in them.
pub(super) struct EmitContext {
    /// First block of the function: group and launch fields.
    pub entry: ir::Block,
    /// First block of a row of groups, where one call runs several: the row's number in y and z.
    pub row: Option<ir::Block>,
    /// Leaves with `Interrupted`.
    pub interrupted: Option<ir::Block>,
    /// Leaves with `Fault`.
    pub fault: Option<ir::Block>,
    /// Leaves with `Suspect`.
    pub suspect: Option<ir::Block>,
    /// The `GroupCtx`.
    pub group: Option<V>,
    /// The loop over threads that is translated.
    pub threads: Threads,
    /// Addresses and data of lane-wise accesses, one after the other.
    pub message: Option<ir::StackSlot>,
    /// Who lets waiting threads go on.
    pub barrier_loop: BarrierLoop,
    /// Number of the group in x, where one call runs several.
    pub group_x: Option<V>,
    cached: FxHashMap<Key, V>,
    /// What is made once a thread.
    of_thread: FxHashMap<Key, V>,
}

/// A loop over threads.
#[derive(Default)]
pub(super) struct Threads {
    /// First block of a thread: its fields.
    pub start: Option<ir::Block>,
    /// Increments the thread number.
    pub next: Option<ir::Block>,
    /// Number of the thread.
    pub index: Option<V>,
    /// Its `ThreadCtx`.
    pub thread: Option<V>,
    /// Its state when it was resumed.
    pub state: Option<V>,
    /// That state, where the code is for one.
    pub only_state: Option<u32>,
    /// Status so far, when threads can wait. Where the code is for one state, bits of the states that threads ended in instead.
    pub status: Option<V>,
}

/// A value made once, in the first block of the function, of a row of groups or of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Field of the group.
    Group(usize, Type),
    /// Field of the launch.
    Launch(usize, Type),
    /// Field of the thread.
    Thread(usize, Type),
    /// Number in x of the last group that the call runs.
    LastGroup,
    /// Bytes of the payload.
    Payload(u32, Type),
    /// A pointer of the payload, less the base of device memory.
    FromBase(u32),
    /// Base of a surface with a constant index.
    SurfaceBase(u8),
    /// Its size, at most `u32::MAX`.
    SurfaceSize(u8),
    /// See `memory.rs`: a pointer that may be accessed, whatever the size.
    SafeBase(super::memory::Place, u32),
    /// First offset that is out of bounds for an element of a given number of bytes.
    Limit(super::memory::Place, u32),
    /// First address of the buffer that a pointer in the payload points into.
    PointeeStart(PointeeOf),
    /// First offset in that buffer that is out of bounds for an access of a given number of bytes.
    PointeeLimit(PointeeOf, u64),
    /// Base of marks.
    MarksBase(super::memory::Place),
    /// Distance of the marks of register storage.
    RegsMarks,
    /// Test of local ids.
    AffineIds(crate::backend::access::Ids),
}

impl EmitContext {
    /// Empty, with the function's first block.
    pub(super) fn new(entry: ir::Block, barrier_loop: BarrierLoop) -> EmitContext {
        EmitContext {
            entry,
            row: None,
            interrupted: None,
            fault: None,
            suspect: None,
            group: None,
            threads: Threads::default(),
            message: None,
            barrier_loop,
            group_x: None,
            cached: FxHashMap::default(),
            of_thread: FxHashMap::default(),
        }
    }

    /// Another loop over threads begins.
    pub(super) fn begin_threads(&mut self, threads: Threads) {
        self.threads = threads;
        self.of_thread.clear();
    }
}

impl CraneliftEmitter<'_> {
    /// A value that is made once in the entry block.
    pub(super) fn hoisted(&mut self, key: Key, make: impl FnOnce(&mut Self) -> V) -> V {
        self.once(key, self.ctx.entry, make)
    }

    /// A value that is made once a thread.
    pub(super) fn per_thread(&mut self, key: Key, make: impl FnOnce(&mut Self) -> V) -> V {
        let Some(start) = self.ctx.threads.start else {
            return make(self);
        };
        if let Some(&v) = self.ctx.of_thread.get(&key) {
            return v;
        }
        let v = self.made_in(start, make);
        self.ctx.of_thread.insert(key, v);
        v
    }

    fn once(&mut self, key: Key, block: ir::Block, make: impl FnOnce(&mut Self) -> V) -> V {
        if let Some(&v) = self.ctx.cached.get(&key) {
            return v;
        }
        let v = self.made_in(block, make);
        self.ctx.cached.insert(key, v);
        v
    }

    fn made_in(&mut self, block: ir::Block, make: impl FnOnce(&mut Self) -> V) -> V {
        let here = self.block;
        let cache = std::mem::take(&mut self.cache);
        let v = self.side(block, make);
        self.cache = cache;
        self.block = here;
        v
    }

    fn need(&mut self, v: Option<V>) -> V {
        v.unwrap_or_else(|| {
            self.bug("context value used outside the thread loop");
            self.iconst(types::I64, 0)
        })
    }

    /// The `GroupCtx`.
    pub(super) fn group(&mut self) -> V {
        self.need(self.ctx.group)
    }

    /// The thread's number.
    pub(super) fn thread_index(&mut self) -> V {
        self.need(self.ctx.threads.index)
    }

    /// The thread's `ThreadCtx`.
    pub(super) fn thread(&mut self) -> V {
        self.need(self.ctx.threads.thread)
    }

    /// Field of the group.
    pub(super) fn group_field(&mut self, offset: usize, ty: Type) -> V {
        self.hoisted(Key::Group(offset, ty), |e| {
            let group = e.group();
            e.ins().load(ty, READONLY, group, offset as i32)
        })
    }

    /// Field of the launch.
    pub(super) fn launch_field(&mut self, offset: usize, ty: Type) -> V {
        let launch = self.group_field(offset_of!(GroupCtx, launch), types::I64);
        self.hoisted(Key::Launch(offset, ty), |e| {
            e.ins().load(ty, READONLY, launch, offset as i32)
        })
    }

    /// Dword of `r0` that is the same for all threads of a group.
    fn r0(&mut self, word: u8) -> V {
        let at = offset_of!(GroupCtx, r0) + 4 * usize::from(word);
        match (word, self.ctx.row) {
            (6 | 7, Some(row)) => self.once(Key::Group(at, types::I32), row, |e| {
                let group = e.group();
                e.ins().load(types::I32, DATA, group, at as i32)
            }),
            _ => self.group_field(at, types::I32),
        }
    }

    /// Field of the thread.
    pub(super) fn thread_field(&mut self, offset: usize, ty: Type) -> V {
        let thread = self.thread();
        self.per_thread(Key::Thread(offset, ty), |e| {
            e.ins().load(ty, DATA, thread, offset as i32)
        })
    }

    /// Where masked-off stores go.
    pub(super) fn sink(&mut self) -> V {
        self.group_field(offset_of!(GroupCtx, sink), types::I64)
    }

    /// The thread's frame.
    pub(super) fn frame(&mut self) -> V {
        self.thread_field(offset_of!(ThreadCtx, frame), types::I64)
    }

    /// A launch-provided value.
    pub(super) fn input(&mut self, input: Input, out: Value) {
        let ty = self.ty(out);
        let v = match input {
            Input::LocalId { dim, lane } => {
                let ids = self.thread_field(offset_of!(ThreadCtx, local_ids), types::I64);
                let at = local_id_offset(dim, lane);
                self.ins().load(types::I16, DATA, ids, at)
            }
            Input::LocalIds { dim, first } => {
                let ids = self.thread_field(offset_of!(ThreadCtx, local_ids), types::I64);
                let parts = self.load_value(ids, local_id_offset(dim, first), ty, DATA);
                return self.bind(out, parts);
            }
            Input::Thread => self.need(self.ctx.threads.index),
            Input::DispatchMask => {
                let bits = self.thread_field(offset_of!(ThreadCtx, dispatch_mask), types::I32);
                let bits = if ty.lanes >= 32 {
                    bits
                } else {
                    self.ins().band_imm_u(bits, full(ty.lanes).cast_signed())
                };
                return self.bind_mask(out, MaskRepr::Bits(bits));
            }
            Input::Payload(offset) => {
                let parts = self.payload(offset, ty);
                return self.bind(out, parts);
            }
            Input::R0(2) => self.thread_field(offset_of!(ThreadCtx, r0_2), types::I32),
            Input::R0(5) => self.thread_field(offset_of!(ThreadCtx, r0_5), types::I32),
            Input::R0(1) if self.ctx.group_x.is_some() => self.need(self.ctx.group_x),
            Input::R0(word) if word < 16 => self.r0(word),
            Input::Sr0(0) => self.thread_field(offset_of!(ThreadCtx, sr0), types::I32),
            Input::R0(_) | Input::Sr0(_) => self.iconst(types::I32, 0),
            Input::HwId => self.thread_field(offset_of!(ThreadCtx, hw_id), types::I32),
            // The pass `check-init` has made zeros of them.
            Input::Unset => {
                self.bug("a register that was not written");
                self.iconst(types::I32, 0)
            }
            Input::Tsc => self.call_tsc(),
            Input::State => match self.ctx.threads.state {
                Some(state) => state,
                None => self.iconst(types::I32, 0),
            },
        };
        self.bind(out, vec![v]);
    }

    fn payload(&mut self, offset: u32, ty: Ty) -> Vec<V> {
        let payload = self.launch_field(offset_of!(LaunchCtx, payload), types::I64);
        if ty.is_scalar() {
            let want = scalar_type(ty.lane);
            let v = self.hoisted(Key::Payload(offset, want), |e| {
                e.ins().load(want, READONLY, payload, offset.cast_signed())
            });
            return vec![v];
        }
        self.load_value(payload, offset.cast_signed(), ty, READONLY)
    }

    /// Loads exactly the bytes of a scalar or vector.
    pub(super) fn load_value(
        &mut self,
        addr: V,
        offset: i32,
        ty: Ty,
        flags: ir::MemFlagsData,
    ) -> Vec<V> {
        if ty.is_scalar() {
            return vec![self.ins().load(scalar_type(ty.lane), flags, addr, offset)];
        }
        let whole = ty.bytes() as usize / 16;
        let mut parts: Vec<V> = (0..whole)
            .map(|i| {
                let at = offset + 16 * i as i32;
                self.ins().load(piece_type(ty.lane), flags, addr, at)
            })
            .collect();
        if is_padded(ty) {
            let at = offset + 16 * whole as i32;
            let tail = ty.bytes() % 16;
            parts.push(self.load_tail(addr, at, tail, ty.lane, flags));
        }
        debug_assert_eq!(parts.len(), piece_count(ty));
        parts
    }

    /// A piece of which only the first `bytes` bytes are in memory.
    fn load_tail(
        &mut self,
        addr: V,
        offset: i32,
        bytes: u32,
        lane: Lane,
        flags: ir::MemFlagsData,
    ) -> V {
        let mut piece: Option<V> = None;
        let mut at = 0;
        for width in [8, 4, 2, 1] {
            if bytes & width == 0 {
                continue;
            }
            let part = super::value::int_lane(width);
            let v = self
                .ins()
                .load(scalar_type(part), flags, addr, offset + at as i32);
            let ty = piece_type(part);
            let into = match piece {
                None => self.vconst(ty, 0),
                Some(p) => self.cast(p, ty),
            };
            piece = Some(self.ins().insertlane(into, v, (at / width) as u8));
            at += width;
        }
        let piece = piece.unwrap_or_else(|| self.vconst(types::I8X16, 0));
        self.cast(piece, piece_type(lane))
    }

    /// Stores exactly the bytes of a scalar or vector.
    pub(super) fn store_value(&mut self, addr: V, offset: i32, ty: Ty, parts: &[V]) {
        if ty.is_scalar() {
            self.ins().store(DATA, parts[0], addr, offset);
            return;
        }
        let whole = ty.bytes() as usize / 16;
        for (i, &piece) in parts.iter().take(whole).enumerate() {
            self.ins().store(DATA, piece, addr, offset + 16 * i as i32);
        }
        if let Some(&piece) = parts.get(whole) {
            let mut at = 0;
            for width in [8, 4, 2, 1] {
                if (ty.bytes() % 16) & width == 0 {
                    continue;
                }
                let part = super::value::int_lane(width);
                let cast = self.cast_piece(piece, part);
                let v = self.ins().extractlane(cast, (at / width) as u8);
                let to = offset + 16 * whole as i32 + at as i32;
                self.ins().store(DATA, v, addr, to);
                at += width;
            }
        }
    }

    /// Saves a value in the thread's frame; masks are 32-bit words.
    pub(super) fn frame_store(&mut self, offset: u32, v: Value) {
        let ty = self.ty(v);
        let frame = self.frame();
        if ty.lane == Lane::I1 && !ty.is_scalar() {
            let bits = self.mask_bits(v);
            self.ins().store(DATA, bits, frame, offset.cast_signed());
            return;
        }
        let mut parts = self.parts(v);
        if ty.lane == Lane::I1 {
            parts[0] = self.resize(parts[0], types::I32);
        }
        self.store_value(frame, offset.cast_signed(), ty, &parts);
    }

    /// Reads what [`CraneliftEmitter::frame_store`] saved.
    pub(super) fn frame_load(&mut self, offset: u32, out: Value) {
        let ty = self.ty(out);
        let frame = self.frame();
        if ty.lane == Lane::I1 && !ty.is_scalar() {
            let bits = self
                .ins()
                .load(types::I32, DATA, frame, offset.cast_signed());
            return self.bind_mask(out, MaskRepr::Bits(bits));
        }
        // A condition is a word too; its low byte is the value.
        let parts = self.load_value(frame, offset.cast_signed(), ty, DATA);
        self.bind(out, parts);
    }
}

/// Byte offset of a local id in the thread's rows.
pub(super) fn local_id_offset(dim: u8, lane: u8) -> i32 {
    let word = usize::from(dim) * LOCAL_ID_ROW + usize::from(lane);
    2 * word as i32
}
