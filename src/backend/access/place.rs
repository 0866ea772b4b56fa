//! Where accesses go.

use visa_runtime::abi::message;

use super::consts;
use crate::ssa::{BinOp, Function, Input, Lane, Op, Space, Ty, Value};

pub(in crate::backend) use visa_runtime::abi::FLAT_OFFSET;

/// A region of memory that is known while compiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::backend) enum Place {
    /// Surface with this index.
    Surface(u8),
    /// Shared local memory.
    Slm,
    /// Scratch of the thread.
    Scratch,
    /// Register storage of the thread.
    Regs,
    /// Device memory.
    Flat,
    /// Indirect data of the launch.
    Args,
    /// Marks of one of these: for each byte a byte, at the same offset.
    Marks(Marked),
}

/// What has marks of what is not initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::backend) enum Marked {
    /// Surface with this index.
    Surface(u8),
    /// Shared local memory.
    Slm,
    /// Scratch of the thread.
    Scratch,
    /// Register storage of the thread.
    Regs,
    /// Device memory.
    Flat,
}

impl Marked {
    /// The memory itself, which has the same size.
    pub(in crate::backend) const fn data(self) -> Place {
        match self {
            Marked::Surface(index) => Place::Surface(index),
            Marked::Slm => Place::Slm,
            Marked::Scratch => Place::Scratch,
            Marked::Regs => Place::Regs,
            Marked::Flat => Place::Flat,
        }
    }
}

impl Place {
    /// True for what each thread has by itself.
    pub(in crate::backend) const fn is_of_thread(self) -> bool {
        matches!(
            self,
            Place::Scratch | Place::Regs | Place::Marks(Marked::Scratch | Marked::Regs)
        )
    }

    /// The memory itself, of marks too.
    pub(in crate::backend) const fn data(self) -> Place {
        match self {
            Place::Marks(marked) => marked.data(),
            other => other,
        }
    }

    /// The place of an access; `None` for a surface whose index is computed.
    pub(in crate::backend) fn of(
        f: &Function,
        space: Space,
        surface: Option<Value>,
    ) -> Option<Place> {
        Some(match space {
            Space::Surface => Place::Surface(consts::scalar(f, surface?)? as u8), // as many as there are
            Space::Slm => Place::Slm,
            Space::Scratch => Place::Scratch,
            Space::Regs => Place::Regs,
            Space::Flat => Place::Flat,
            Space::Args => Place::Args,
            Space::SurfaceMarks => Place::Marks(Marked::Surface(
                consts::scalar(f, surface?)? as u8, // as many as there are
            )),
            Space::SlmMarks => Place::Marks(Marked::Slm),
            Space::ScratchMarks => Place::Marks(Marked::Scratch),
            Space::RegsMarks => Place::Marks(Marked::Regs),
            Space::FlatMarks => Place::Marks(Marked::Flat),
        })
    }
}

/// How an access reaches memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend) enum Region<V> {
    /// Known while compiling.
    Known(Place),
    /// Surface whose index is computed: base and size.
    Computed(V, V),
}

/// Operands of a lane-wise access, common to loads, stores and atomics. `A` is a vector of a code generator, `V` one of its scalars.
#[derive(Clone, Copy)]
pub(in crate::backend) struct Lanes<A, V> {
    /// Lane count.
    pub count: u16,
    /// Mask operand.
    pub mask: Value,
    /// Address operand, where there is one for all lanes.
    pub addresses: Option<Value>,
    /// Addresses as the program gave them, for fault records: `i64` for flat accesses, else `i32`.
    pub addr: A,
    /// Where.
    pub region: Region<V>,
    /// Surface index for fault records, 0 where there is none.
    pub surface: V,
    /// Device memory: 64-bit addresses.
    pub flat: bool,
    /// The region for the runtime.
    pub place: u32,
}

impl<A, V> Lanes<A, V> {
    /// Lane type of the addresses.
    pub(in crate::backend) const fn addr_lane(&self) -> Lane {
        if self.flat { Lane::I64 } else { Lane::I32 }
    }
}

/// The number of a space in messages to the runtime.
pub(in crate::backend) const fn message_place(space: Space) -> u32 {
    match space {
        Space::Surface => message::SURFACE,
        Space::Slm => message::SLM,
        Space::Scratch => message::SCRATCH,
        Space::Regs => message::REGS,
        Space::Flat => message::FLAT,
        Space::Args => message::ARGS,
        Space::SurfaceMarks => message::SURFACE | message::MARKS,
        Space::SlmMarks => message::SLM | message::MARKS,
        Space::ScratchMarks => message::SCRATCH | message::MARKS,
        Space::RegsMarks => message::REGS | message::MARKS,
        Space::FlatMarks => message::FLAT | message::MARKS,
    }
}

/// The pointer that a scalar address is a sum with, and its offset in the payload.
pub(in crate::backend) fn pointer_of(f: &Function, address: Value) -> Option<(Value, u32)> {
    let sum = f.def_inst(address)?;
    let pointer = |&v: &Value| match f.def_inst(v)?.op {
        Op::Input(Input::Payload(offset)) if f.ty(v) == Ty::I64 => Some((v, offset)),
        _ => None,
    };
    match sum.op {
        Op::Binary(BinOp::Add) => sum.args.iter().find_map(pointer),
        _ => None,
    }
}
