//! How a kernel's arguments become payload and surfaces, for programs that have no compiler to ask.

use crate::error::LaunchError;
use crate::launch::{Arguments, LaunchShape};
use crate::limits::MAX_SLM_BYTES;
use crate::memory::{Buffer, DeviceMemory};
use crate::payload::{Payload, PayloadPatch};
use crate::surface::SurfaceTable;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanKind {
    /// Bytes by value.
    Value {
        /// Bytes of its place in the payload.
        size: u32,
        /// Bytes of its type, where that is smaller.
        narrow: Option<u32>,
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
    /// The code does not use it.
    Unused,
}

/// An argument as the source declares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanArgument {
    /// Position.
    pub index: u32,
    /// Name, empty when unknown.
    pub name: String,
    /// Type in the source, empty when unknown.
    pub type_name: String,
    /// What it is.
    pub kind: PlanKind,
}

/// What some bytes of the payload are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SlotSource {
    /// First global id.
    GlobalOffset,
    /// Size of the group at hand.
    LocalSize,
    /// Size of a full group.
    EnqueuedLocalSize,
    /// Work-items.
    GlobalSize,
    /// Groups.
    GroupCount,
    /// Dimensions, as a number.
    Dimensions,
    /// Bytes of an argument from byte `from` on.
    Value {
        /// Argument.
        argument: u32,
        /// First byte.
        from: u32,
    },
    /// Offset of an argument's local memory.
    Local {
        /// Argument.
        argument: u32,
        /// Alignment in bytes.
        alignment: u32,
    },
    /// Address of an argument's buffer.
    Address {
        /// Argument.
        argument: u32,
    },
    /// Address of the threads' private memory.
    PrivateBase,
}

/// Some bytes of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// First byte.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// What goes there.
    pub source: SlotSource,
}

/// How a kernel's arguments reach its code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// Arguments in order.
    pub arguments: Vec<PlanArgument>,
    /// The payload.
    pub slots: Vec<Slot>,
    /// Binding-table indices and the arguments bound there.
    pub bindings: Vec<(u32, u32)>,
    /// Surfaces are bound by index, not as arguments: the kernel was written in vISA.
    pub binds_surfaces: bool,
    /// Bytes of private memory of a hardware thread that can exist.
    pub private_bytes: u64,
}

/// Value of one argument.
#[derive(Clone, Debug)]
pub enum ArgValue {
    /// By value: the bytes in memory order.
    Bytes(Vec<u8>),
    /// A buffer.
    Buffer(Buffer),
    /// Local memory of this many bytes.
    Local(u32),
    /// A null pointer.
    Null,
}

/// Why arguments do not make a launch.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Arguments do not fit the kernel; all problems in one message.
    #[error("{0}")]
    Arguments(String),
    /// The launch does not fit.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl PlanArgument {
    fn described(&self) -> String {
        match (self.name.as_str(), self.type_name.as_str()) {
            ("", _) => format!("argument {}", self.index),
            (name, "") => format!("argument {} (`{name}`)", self.index),
            (name, ty) => format!("argument {} (`{ty} {name}`)", self.index),
        }
    }

    /// What is wrong with a value, if anything.
    fn problem(&self, value: Option<&ArgValue>) -> Option<String> {
        let what = self.described();
        match (self.kind, value) {
            (PlanKind::Unused, _)
            | (PlanKind::Buffer { .. }, Some(ArgValue::Buffer(_) | ArgValue::Null))
            | (PlanKind::Local { .. }, Some(ArgValue::Local(_))) => None,
            (_, None) => Some(format!("{what} is missing")),
            (PlanKind::Value { size, narrow }, Some(ArgValue::Bytes(b)))
                if b.len() == size as usize || narrow.is_some_and(|n| b.len() == n as usize) =>
            {
                None
            }
            (PlanKind::Value { size, .. }, Some(ArgValue::Bytes(b))) => Some(format!(
                "{what} takes {size} bytes by value, not {}",
                b.len()
            )),
            (PlanKind::Value { size, .. }, Some(_)) => {
                Some(format!("{what} takes {size} bytes by value"))
            }
            (PlanKind::Buffer { .. }, Some(_)) => Some(format!("{what} takes a buffer")),
            (PlanKind::Local { .. }, Some(_)) => {
                Some(format!("{what} takes a size of local memory"))
            }
        }
    }
}

impl LaunchPlan {
    /// Checks that every argument is given, and of the right kind.
    ///
    /// # Errors
    /// [`PlanError::Arguments`].
    pub fn check(&self, given: &BTreeMap<u32, ArgValue>) -> Result<(), PlanError> {
        let mut problems: Vec<String> = self
            .arguments
            .iter()
            .filter_map(|a| a.problem(given.get(&a.index)))
            .collect();
        for index in given.keys() {
            if !self.arguments.iter().any(|a| a.index == *index) {
                let count = self.arguments.len();
                problems.push(format!(
                    "there is no argument {index}; the kernel has {count}"
                ));
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(PlanError::Arguments(problems.join("; ")))
    }

    /// Lays arguments out for a launch. `surfaces` are bound by index, behind those of arguments.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn layout(
        &self,
        payload_bytes: u32,
        given: &BTreeMap<u32, ArgValue>,
        surfaces: &BTreeMap<u32, Buffer>,
        shape: &LaunchShape,
        memory: &DeviceMemory,
        private: Option<&Buffer>,
    ) -> Result<Arguments, PlanError> {
        self.check(given)?;
        let mut out = Arguments {
            payload: Payload::new(payload_bytes as usize)?,
            surfaces: SurfaceTable::new(),
            memory: Some(memory.clone()),
            extra_slm: 0,
        };
        for (surface, argument) in &self.bindings {
            if let Some(ArgValue::Buffer(buffer)) = given.get(argument) {
                out.surfaces.bind(*surface, buffer)?;
            }
        }
        for (&surface, buffer) in surfaces {
            out.surfaces.bind(surface, buffer)?;
        }
        let mut slm = 0;
        for slot in &self.slots {
            slot.fill(given, shape, private, &mut slm, &mut out)?;
        }
        // As the driver rounds: the declared part comes first, arguments behind it.
        if slm > 0 {
            out.extra_slm = slm.next_multiple_of(1024).min(MAX_SLM_BYTES);
        }
        Ok(out)
    }
}

impl Slot {
    fn fill(
        &self,
        given: &BTreeMap<u32, ArgValue>,
        shape: &LaunchShape,
        private: Option<&Buffer>,
        slm: &mut u32,
        out: &mut Arguments,
    ) -> Result<(), LaunchError> {
        let three = |v: [u32; 3]| v.iter().flat_map(|x| x.to_le_bytes()).collect();
        let bytes: Vec<u8> = match self.source {
            SlotSource::GlobalOffset => three(shape.offset),
            SlotSource::LocalSize => {
                let offset = self.offset;
                out.payload.patch(PayloadPatch::LocalSize { offset })?;
                three(shape.local)
            }
            SlotSource::EnqueuedLocalSize => three(shape.local),
            SlotSource::GlobalSize => three(shape.global),
            SlotSource::GroupCount => three(shape.groups()),
            SlotSource::Dimensions => {
                let [_, y, z] = shape.global;
                let dimensions: u32 = if z > 1 { 3 } else { 1 + u32::from(y > 1) };
                dimensions.to_le_bytes().to_vec()
            }
            SlotSource::Value { argument, from } => match given.get(&argument) {
                // Narrow types are shorter than their place; the rest of it stays zero.
                Some(ArgValue::Bytes(b)) => b.get(from as usize..).unwrap_or(&[]).to_vec(),
                _ => Vec::new(),
            },
            SlotSource::Local {
                argument,
                alignment,
            } => match given.get(&argument) {
                Some(ArgValue::Local(bytes)) => {
                    let too_much = || LaunchError::GroupMemory {
                        what: "local memory",
                        wanted: u64::from(*slm) + u64::from(*bytes),
                        limit: MAX_SLM_BYTES.into(),
                    };
                    let start = slm.checked_next_multiple_of(alignment.max(1));
                    let start = start.ok_or_else(too_much)?;
                    let end = start
                        .checked_add(*bytes)
                        .filter(|end| *end <= MAX_SLM_BYTES);
                    *slm = end.ok_or_else(too_much)?;
                    u64::from(start).to_le_bytes().to_vec()
                }
                _ => Vec::new(),
            },
            SlotSource::Address { argument } => match given.get(&argument) {
                Some(ArgValue::Buffer(b)) => b.address().to_le_bytes().to_vec(),
                _ => Vec::new(),
            },
            SlotSource::PrivateBase => {
                private.map_or_else(Vec::new, |b| b.address().to_le_bytes().to_vec())
            }
        };
        let fitting = bytes.len().min(self.size as usize);
        out.payload.set(self.offset as usize, &bytes[..fitting])
    }
}
