//! What compiled code reads from the launch, group and thread contexts.
//!
//! Fields that stay the same while the entry point runs are loaded once, in its first block. Fields that stay the same in a row of
//! groups are loaded once in a block that every row passes, and fields of the thread once in a block that every thread passes. These
//! blocks grow on demand while the body is translated.

use std::mem::offset_of;

use rustc_hash::FxHashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, IntValue, PointerValue};
use visa_runtime::abi::{GroupCtx, LOCAL_ID_ROW, LaunchCtx, ThreadCtx};

use super::emit::{EmitResult, InternalError, LlvmEmitter, V};
use super::memory::Place;
use super::types::padded_lanes;
use crate::backend::shadow::PointeeOf;
use crate::ssa::{Input, Lane, Ty, Value};

/// Type of a context field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Field {
    /// Pointer.
    Ptr,
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
}

/// A value made once, in the first block of the function, of a row of groups or of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Field of the group.
    Group(usize, Field),
    /// Field of the launch.
    Launch(usize, Field),
    /// Field of the thread.
    Thread(usize, Field),
    /// Number in x of the last group that the call runs.
    LastGroup,
    /// Bytes of the payload.
    Payload(u32, Ty),
    /// A pointer of the payload, less the base of device memory.
    FromBase(u32),
    /// The function's slot for messages.
    Message,
    /// Base of a surface with a constant index.
    SurfaceBase(u8),
    /// Its size, at most `u32::MAX`.
    SurfaceSize(u8),
    /// A pointer that may be accessed, whatever the size.
    SafeBase(Place, u32),
    /// Base of marks.
    MarksBase(Place),
    /// What is 2 GiB after the base of a region.
    Middle(Place),
    /// First offset that is out of bounds for an element of a given number of bytes.
    Limit(Place, u32),
    /// First address of the buffer that a pointer in the payload points into.
    PointeeStart(PointeeOf),
    /// First offset in that buffer that is out of bounds for an access of a given number of bytes.
    PointeeLimit(PointeeOf, u64),
    /// Whether two regions have no byte in common.
    Apart(Place, Place),
    /// Where words are that have elements of a number of bytes; one of the values that say it.
    Window(Place, u32, u8),
    /// Of scaled numbers, for which an element is inside, or where words are that have elements.
    Range {
        /// Which of the values that say it.
        part: u8,
        /// Where the numbers count from and how: `Scaled::scale`.
        scale: (Value, i64, u8, bool),
        /// Elements, and which of a lane.
        component: (Lane, u32),
    },
    /// Of scaled numbers, up to where the bytes of a group are inside, or where those of number zero are.
    Room {
        /// Whether it is the place.
        start: bool,
        /// Where the numbers count from and how: `Scaled::scale`.
        scale: (Value, i64, u8, bool),
        /// Distance of the lowest byte, and how many there are.
        bytes: (i64, u32),
    },
}

/// What is made once a call of the function, once a row of groups or once a thread, and stays to its end.
pub(super) struct EmitContext<'c> {
    /// First block of the function.
    pub entry: BasicBlock<'c>,
    /// The `GroupCtx`.
    group: PointerValue<'c>,
    made: FxHashMap<Key, V<'c>>,
    /// What is made once a thread.
    of_thread: FxHashMap<Key, V<'c>>,
}

impl<'c> EmitContext<'c> {
    /// With nothing made yet.
    pub(super) fn new(entry: BasicBlock<'c>, group: PointerValue<'c>) -> EmitContext<'c> {
        EmitContext {
            entry,
            group,
            made: FxHashMap::default(),
            of_thread: FxHashMap::default(),
        }
    }

    /// What is made once a thread, where several are translated side by side.
    pub(super) const fn of_thread_mut(&mut self) -> &mut FxHashMap<Key, V<'c>> {
        &mut self.of_thread
    }

    /// Another loop over the threads begins.
    pub(super) fn forget_thread(&mut self) {
        self.of_thread.clear();
    }
}

impl<'c> LlvmEmitter<'c, '_> {
    /// The `GroupCtx`.
    pub(super) fn group(&self) -> PointerValue<'c> {
        self.ctx.group
    }

    /// The thread's number.
    pub(super) fn thread_index(&self) -> EmitResult<IntValue<'c>> {
        Ok(self.threads()?.index)
    }

    /// The `ThreadCtx`.
    pub(super) fn thread(&self) -> EmitResult<PointerValue<'c>> {
        Ok(self.threads()?.thread)
    }

    /// A value that is made once in the entry block.
    pub(super) fn hoisted(
        &mut self,
        key: Key,
        make: impl FnOnce(&mut Self) -> EmitResult<V<'c>>,
    ) -> EmitResult<V<'c>> {
        self.once(key, self.ctx.entry, make)
    }

    /// A value that is made once a thread.
    pub(super) fn per_thread(
        &mut self,
        key: Key,
        make: impl FnOnce(&mut Self) -> EmitResult<V<'c>>,
    ) -> EmitResult<V<'c>> {
        if let Some(&v) = self.ctx.of_thread.get(&key) {
            return Ok(v);
        }
        let v = self.aside(self.threads()?.start, make)?;
        self.ctx.of_thread.insert(key, v);
        Ok(v)
    }

    fn once(
        &mut self,
        key: Key,
        block: BasicBlock<'c>,
        make: impl FnOnce(&mut Self) -> EmitResult<V<'c>>,
    ) -> EmitResult<V<'c>> {
        if let Some(&v) = self.ctx.made.get(&key) {
            return Ok(v);
        }
        let v = self.aside(block, make)?;
        self.ctx.made.insert(key, v);
        Ok(v)
    }

    fn field_type(&self, field: Field) -> BasicTypeEnum<'c> {
        match field {
            Field::Ptr => self.ptr_type(),
            Field::I32 => self.int(32).into(),
            Field::I64 => self.int(64).into(),
        }
    }

    /// Loads what nothing changes while the entry point runs.
    pub(super) fn load_constant(
        &self,
        ty: BasicTypeEnum<'c>,
        base: V<'c>,
        offset: usize,
    ) -> EmitResult<V<'c>> {
        let at = self.offset_const(self.as_ptr(base)?, offset as i64)?;
        let v = self.load(ty, at)?;
        let inst = v
            .as_instruction_value()
            .ok_or("a load that is no instruction")?;
        let kind = self.cx.get_kind_id("invariant.load");
        inst.set_metadata(self.cx.metadata_node(&[]), kind)
            .map_err(|e| InternalError(e.to_string()))?;
        Ok(v)
    }

    /// Field of the group.
    pub(super) fn group_field(&mut self, offset: usize, field: Field) -> EmitResult<V<'c>> {
        self.hoisted(Key::Group(offset, field), |e| {
            e.load_constant(e.field_type(field), e.group().into(), offset)
        })
    }

    /// Field of the launch.
    pub(super) fn launch_field(&mut self, offset: usize, field: Field) -> EmitResult<V<'c>> {
        let launch = self.group_field(offset_of!(GroupCtx, launch), Field::Ptr)?;
        self.hoisted(Key::Launch(offset, field), |e| {
            e.load_constant(e.field_type(field), launch, offset)
        })
    }

    /// Dword of `r0` that is the same for all threads of a group.
    fn r0(&mut self, word: u8) -> EmitResult<V<'c>> {
        let at = offset_of!(GroupCtx, r0) + 4 * usize::from(word);
        match (word, &self.threads()?.groups) {
            (1, Some(groups)) => Ok(groups.id),
            (6 | 7, Some(groups)) => self.once(Key::Group(at, Field::I32), groups.row, |e| {
                let at = e.offset_const(e.group(), at as i64)?;
                e.load(e.cx.i32_type().into(), at)
            }),
            _ => self.group_field(at, Field::I32),
        }
    }

    /// Field of the thread.
    pub(super) fn thread_field(&mut self, offset: usize, field: Field) -> EmitResult<V<'c>> {
        let thread = self.thread()?;
        self.per_thread(Key::Thread(offset, field), |e| {
            e.load_constant(e.field_type(field), thread.into(), offset)
        })
    }

    /// Where masked-off stores go.
    pub(super) fn sink(&mut self) -> EmitResult<V<'c>> {
        self.group_field(offset_of!(GroupCtx, sink), Field::Ptr)
    }

    /// The thread's frame.
    pub(super) fn frame(&mut self) -> EmitResult<V<'c>> {
        self.thread_field(offset_of!(ThreadCtx, frame), Field::Ptr)
    }

    /// A launch-provided value.
    pub(super) fn input(&mut self, input: Input, out: Value) -> EmitResult<V<'c>> {
        let ty = self.ty(out);
        Ok(match input {
            Input::LocalId { dim, lane } => self.local_ids(Ty::scalar(Lane::I16), dim, lane)?,
            Input::LocalIds { dim, first } => self.local_ids(ty, dim, first)?,
            Input::Thread => self.threads()?.index.into(),
            Input::DispatchMask => {
                let at = offset_of!(ThreadCtx, dispatch_mask);
                let bits = self.thread_field(at, Field::I32)?;
                self.bits_mask(bits, ty.lanes)?
            }
            Input::Payload(offset) => {
                let at = offset_of!(LaunchCtx, payload);
                let payload = self.launch_field(at, Field::Ptr)?;
                let load = |e: &mut Self| e.load_constant(e.exact(ty), payload, offset as usize);
                if ty.is_scalar() {
                    self.hoisted(Key::Payload(offset, ty), load)?
                } else {
                    let v = load(self)?;
                    self.widen(v, ty.lanes, padded_lanes(ty.lanes))?
                }
            }
            Input::R0(2) => self.thread_field(offset_of!(ThreadCtx, r0_2), Field::I32)?,
            Input::R0(5) => self.thread_field(offset_of!(ThreadCtx, r0_5), Field::I32)?,
            Input::R0(word) if word < 16 => self.r0(word)?,
            Input::Sr0(0) => self.thread_field(offset_of!(ThreadCtx, sr0), Field::I32)?,
            Input::R0(_) | Input::Sr0(_) => self.i32(0).into(),
            Input::HwId => self.thread_field(offset_of!(ThreadCtx, hw_id), Field::I32)?,
            Input::Tsc => self.call_tsc()?,
            // The pass `check-init` has made zeros of them.
            Input::Unset => return Err("a register that was not written".into()),
            Input::State => self.threads()?.state.unwrap_or_else(|| self.i32(0).into()),
        })
    }

    fn local_ids(&mut self, ty: Ty, dim: u8, lane: u8) -> EmitResult<V<'c>> {
        let ids = self.thread_field(offset_of!(ThreadCtx, local_ids), Field::Ptr)?;
        let word = usize::from(dim) * LOCAL_ID_ROW + usize::from(lane);
        let at = self.offset_const(self.as_ptr(ids)?, 2 * word as i64)?;
        self.load_value(ty, at)
    }

    fn frame_at(&mut self, offset: u32) -> EmitResult<PointerValue<'c>> {
        let frame = self.frame()?;
        self.offset_const(self.as_ptr(frame)?, i64::from(offset))
    }

    /// Saves a value in the thread's frame; masks are 32-bit words.
    pub(super) fn frame_store(&mut self, offset: u32, v: Value) -> EmitResult<()> {
        let at = self.frame_at(offset)?;
        let (data, ty) = (self.get(v)?, self.ty(v));
        if ty.lane == Lane::I1 {
            let bits = self.mask_bits(data, ty.lanes)?;
            return self.store(bits, at);
        }
        self.store_value(data, ty, at)
    }

    /// Reads what [`LlvmEmitter::frame_store`] saved.
    pub(super) fn frame_load(&mut self, offset: u32, out: Value) -> EmitResult<V<'c>> {
        let at = self.frame_at(offset)?;
        let ty = self.ty(out);
        if ty.lane != Lane::I1 {
            return self.load_value(ty, at);
        }
        let bits = self.load(self.int(32).into(), at)?;
        self.bits_mask(bits, ty.lanes)
    }
}
