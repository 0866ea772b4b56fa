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

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(offset: u32, size: u32, source: SlotSource) -> Slot {
        Slot {
            offset,
            size,
            source,
        }
    }

    fn argument(index: u32, kind: PlanKind) -> PlanArgument {
        PlanArgument {
            index,
            name: format!("a{index}"),
            type_name: String::new(),
            kind,
        }
    }

    fn plan() -> LaunchPlan {
        let value = |size, narrow| PlanKind::Value { size, narrow };
        LaunchPlan {
            arguments: vec![
                argument(0, value(4, Some(1))),
                argument(1, PlanKind::Local { alignment: 64 }),
                argument(2, PlanKind::Local { alignment: 64 }),
                argument(3, PlanKind::Unused),
            ],
            slots: vec![
                slot(
                    0,
                    4,
                    SlotSource::Value {
                        argument: 0,
                        from: 0,
                    },
                ),
                slot(4, 4, SlotSource::Dimensions),
                slot(
                    8,
                    8,
                    SlotSource::Local {
                        argument: 1,
                        alignment: 64,
                    },
                ),
                slot(
                    16,
                    8,
                    SlotSource::Local {
                        argument: 2,
                        alignment: 64,
                    },
                ),
                slot(24, 12, SlotSource::GroupCount),
            ],
            ..LaunchPlan::default()
        }
    }

    fn layout(given: &[(u32, ArgValue)]) -> Result<Arguments, PlanError> {
        let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
        let given = given.iter().cloned().collect();
        let shape = LaunchShape::new([10, 3, 1], [4, 1, 1]);
        plan().layout(36, &given, &BTreeMap::new(), &shape, &memory, None)
    }

    #[test]
    fn values_and_local_memory_are_laid_out() {
        let local = |bytes| ArgValue::Local(bytes);
        let narrow = ArgValue::Bytes(vec![7]);
        let out = layout(&[(0, narrow), (1, local(10)), (2, local(5))]).unwrap();
        let words: Vec<u32> = out
            .payload
            .as_slice()
            .chunks_exact(4)
            .map(|w| u32::from_le_bytes(w.try_into().unwrap()))
            .collect();
        assert_eq!(words, [7, 2, 0, 0, 64, 0, 3, 3, 1]);
        assert_eq!(out.extra_slm, 1024);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let value = ArgValue::Bytes(vec![0; 4]);
        let problems = |given: &[(u32, ArgValue)]| layout(given).unwrap_err().to_string();
        let said = problems(&[
            (0, ArgValue::Bytes(vec![0; 3])),
            (1, value.clone()),
            (9, value.clone()),
        ]);
        for part in [
            "argument 0 (`a0`) takes 4 bytes by value, not 3",
            "argument 1 (`a1`) takes a size of local memory",
            "argument 2 (`a2`) is missing",
            "there is no argument 9; the kernel has 4",
        ] {
            assert!(said.contains(part), "{said}");
        }
        let huge = [
            (0, value),
            (1, ArgValue::Local(1)),
            (2, ArgValue::Local(u32::MAX)),
        ];
        assert!(problems(&huge).contains("local memory"));
    }
}
