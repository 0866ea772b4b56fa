//! Arguments of kernels: what they are, and what a launch gives for them.

use crate::image::{ImageKind, ImageShape, SamplerState};
use crate::memory::Buffer;
use serde::{Deserialize, Serialize};

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArgKind {
    /// Bytes by value.
    Value {
        /// Bytes of its place in the payload.
        size: u32,
    },
    /// Pointer to global or constant memory.
    Buffer {
        /// Bound at this binding-table index.
        surface: Option<u32>,
        /// Its address is passed as well, or only that.
        address: bool,
        /// In the constant address space.
        constant: bool,
    },
    /// Pointer to local memory, whose size the launch decides.
    Local {
        /// Bytes.
        alignment: u32,
    },
    /// Image.
    Image {
        /// How its coordinates count; `None` for kinds that cannot be given.
        kind: Option<ImageKind>,
        /// Binding-table index.
        surface: Option<u32>,
    },
    /// Sampler.
    Sampler,
    /// The code does not use it.
    Unused,
}

/// An argument as the source declares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// Position.
    pub index: u32,
    /// Name, empty when unknown.
    pub name: String,
    /// OpenCL type, empty when unknown.
    pub type_name: String,
    /// What it is.
    pub kind: ArgKind,
}

/// Value of one argument.
#[derive(Clone, Debug)]
pub enum ArgValue {
    /// By value: the bytes in memory order.
    Bytes(Vec<u8>),
    /// A buffer of the device memory that the launch is given.
    Buffer(Buffer),
    /// Local memory of this many bytes.
    Local(u32),
    /// An image, which a buffer holds from its start: rows and slices without gaps.
    Image(Buffer, ImageShape),
    /// A sampler.
    Sampler(SamplerState),
    /// A null pointer.
    Null,
}

impl From<Vec<u8>> for ArgValue {
    fn from(bytes: Vec<u8>) -> ArgValue {
        ArgValue::Bytes(bytes)
    }
}

impl From<Buffer> for ArgValue {
    fn from(buffer: Buffer) -> ArgValue {
        ArgValue::Buffer(buffer)
    }
}

impl From<&Buffer> for ArgValue {
    fn from(buffer: &Buffer) -> ArgValue {
        ArgValue::Buffer(buffer.clone())
    }
}

macro_rules! scalars {
    ($($t:ty)*) => { $(impl From<$t> for ArgValue {
        fn from(v: $t) -> ArgValue {
            ArgValue::Bytes(v.to_le_bytes().to_vec())
        }
    })* };
}
scalars!(i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);

impl Argument {
    /// Bytes of a scalar type below 32 bits, whose place in the payload is larger than it: the rest of it stays zero.
    pub fn narrow_bytes(&self) -> Option<usize> {
        match self.type_name.as_str() {
            "bool" | "char" | "uchar" => Some(1),
            "short" | "ushort" | "half" => Some(2),
            _ => None,
        }
    }

    /// For messages.
    pub fn described(&self) -> String {
        match (self.name.as_str(), self.type_name.as_str()) {
            ("", _) => format!("argument {}", self.index),
            (name, "") => format!("argument {} (`{name}`)", self.index),
            (name, ty) => format!("argument {} (`{ty} {name}`)", self.index),
        }
    }

    /// What is wrong with a value, if anything.
    pub(super) fn problem(&self, value: Option<&ArgValue>) -> Option<String> {
        let takes = match (self.kind, value) {
            (ArgKind::Unused, _)
            | (ArgKind::Buffer { .. }, Some(ArgValue::Buffer(_) | ArgValue::Null))
            | (ArgKind::Local { .. }, Some(ArgValue::Local(_)))
            | (ArgKind::Sampler, Some(ArgValue::Sampler(_))) => return None,
            (ArgKind::Value { size }, Some(ArgValue::Bytes(b)))
                if b.len() == size as usize || self.narrow_bytes() == Some(b.len()) =>
            {
                return None;
            }
            (ArgKind::Image { kind, .. }, Some(ArgValue::Image(_, shape)))
                if kind == Some(shape.kind) =>
            {
                return None;
            }
            (_, None) => return Some(format!("{} is missing", self.described())),
            (ArgKind::Value { size }, Some(ArgValue::Bytes(b))) => {
                format!("{size} bytes by value, not {}", b.len())
            }
            (ArgKind::Value { size }, Some(_)) => format!("{size} bytes by value"),
            (ArgKind::Buffer { .. }, Some(_)) => "a buffer".to_owned(),
            (ArgKind::Local { .. }, Some(_)) => "a size of local memory".to_owned(),
            (ArgKind::Image { kind, .. }, Some(_)) => {
                format!("an {}", kind.map_or("image", ImageKind::name))
            }
            (ArgKind::Sampler, Some(_)) => "a sampler".to_owned(),
        };
        Some(format!("{} takes {takes}", self.described()))
    }
}
