//! How a kernel's arguments become payload and surfaces, for programs that have no compiler to ask.

use super::argument::{ArgKind, ArgValue, Argument};
use super::data::ProgramData;
use super::facts::{ImageFact, SamplerFact};
use super::implicit;
use super::own::LaunchMemory;
use crate::error::LaunchError;
use crate::image::{ImageShape, SamplerState};
use crate::launch::{Arguments, LaunchShape};
use crate::limits::MAX_SLM_BYTES;
use crate::memory::{Buffer, DeviceMemory};
use crate::payload::{Payload, PayloadPatch};
use crate::printf::PrintBuffer;
use crate::surface::SurfaceTable;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// Address of the buffer that the kernel prints to.
    PrintBuffer,
    /// Address in the program's variables.
    Data {
        /// Section.
        section: u32,
        /// Byte of it.
        offset: u64,
    },
    /// What stands at another place of the payload from this byte on. All slots of that place come before.
    Copy {
        /// First byte.
        from: u32,
    },
    /// The sizes of the launch, for functions that are called through the stack: the driver's `ImplicitArgs`, version 0.
    ImplicitArgs {
        /// Lanes of a hardware thread.
        simd: u8,
    },
    /// The address of memory with the same.
    ImplicitArgsAddress {
        /// Lanes of a hardware thread.
        simd: u8,
    },
    /// A property of an argument that is an image.
    Image {
        /// Argument.
        argument: u32,
        /// Property.
        fact: ImageFact,
    },
    /// A property of an argument that is a sampler.
    Sampler {
        /// Argument.
        argument: u32,
        /// Property.
        fact: SamplerFact,
    },
    /// The word by which messages find the state of a surface or sampler that is bound to no index.
    State {
        /// Its bits.
        word: u32,
    },
    /// Address of the buffer where failed assertions print to.
    AssertBuffer,
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
    pub arguments: Vec<Argument>,
    /// The payload.
    pub slots: Vec<Slot>,
    /// Binding-table indices and the arguments bound there, buffers or images.
    pub bindings: Vec<(u32, u32)>,
    /// Binding-table indices and the sections of the program's variables bound there.
    pub data_bindings: Vec<(u32, u32)>,
    /// Sampler indices and the arguments bound there.
    pub sampler_bindings: Vec<(u32, u32)>,
    /// Samplers that are written in the source, by index.
    pub samplers: Vec<(u32, SamplerState)>,
    /// Surfaces are bound by index, not as arguments: the kernel was written in vISA.
    pub binds_surfaces: bool,
    /// Bytes of private memory of a hardware thread that can exist.
    pub private_bytes: u64,
    /// What the kernel wants of its launcher that no launcher here does. It can be looked at, not launched.
    pub unsupported: Option<String>,
}

/// What a launch binds by index, of kernels that were written in vISA.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// Buffers by binding-table index.
    pub surfaces: BTreeMap<u32, Buffer>,
    /// Images by binding-table index.
    pub images: BTreeMap<u32, (Buffer, ImageShape)>,
    /// Samplers by index.
    pub samplers: BTreeMap<u32, SamplerState>,
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
    /// The kernel wants what no launcher here does.
    #[error("{0} is not supported")]
    Unsupported(String),
}

impl LaunchPlan {
    /// Checks that every argument is given, and of the right kind.
    ///
    /// # Errors
    /// [`PlanError::Arguments`], and [`PlanError::Unsupported`] for kernels that cannot be launched.
    pub fn check(&self, given: &BTreeMap<u32, ArgValue>) -> Result<(), PlanError> {
        let strange = |a: &&Argument| matches!(a.kind, ArgKind::Image { kind: None, .. });
        if let Some(argument) = self.arguments.iter().find(strange) {
            let what = format!(
                "{}, an image of a kind that is not known,",
                argument.described()
            );
            return Err(PlanError::Unsupported(what));
        }
        if let Some(what) = &self.unsupported {
            return Err(PlanError::Unsupported(what.clone()));
        }
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

    /// Whether the kernel prints: it needs a buffer for that, and its groups must run one after the other.
    pub fn prints(&self) -> bool {
        self.wants(|source| *source == SlotSource::PrintBuffer)
    }

    /// Whether the kernel has assertions, which need a buffer too. Their order is not kept: a launch where one fails is lost.
    pub fn asserts(&self) -> bool {
        self.wants(|source| *source == SlotSource::AssertBuffer)
    }

    /// Whether the address of something that belongs to the launch begins at a byte of the payload.
    pub fn has_address(&self, offset: u32) -> bool {
        let address = |s: &Slot| {
            use SlotSource::{Address, Data, PrivateBase};
            let known = matches!(s.source, Address { .. } | PrivateBase | Data { .. });
            known && s.offset == offset && s.size == 8
        };
        self.slots.iter().any(address)
    }

    /// Whether a part of the payload is this.
    pub(super) fn wants(&self, wanted: impl Fn(&SlotSource) -> bool) -> bool {
        self.slots.iter().any(|slot| wanted(&slot.source))
    }

    /// Lays arguments out for a launch, with the memory that no argument names and the program's variables. What is bound by
    /// index comes on top of what arguments bind.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn layout(
        &self,
        payload_bytes: u32,
        given: &BTreeMap<u32, ArgValue>,
        bound: &Bindings,
        shape: &LaunchShape,
        memory: &DeviceMemory,
        own: (&LaunchMemory, Option<&ProgramData>),
    ) -> Result<Arguments, PlanError> {
        self.check(given)?;
        let mut out = Arguments {
            payload: Payload::new(payload_bytes as usize)?,
            surfaces: SurfaceTable::new(),
            memory: Some(memory.clone()),
            extra_slm: 0,
            private: own
                .0
                .private
                .as_ref()
                .map_or(0..0, |b| b.address()..b.address().saturating_add(b.len())),
        };
        for &(surface, section) in &self.data_bindings {
            let buffer = own.1.and_then(|data| data.section(section));
            let buffer = buffer.ok_or_else(|| missing("section of variables"))?;
            out.surfaces.bind(surface, buffer)?;
        }
        self.bind(given, bound, &mut out.surfaces)?;
        let mut slm = 0;
        for slot in &self.slots {
            slot.fill(given, shape, own, &mut slm, &mut out)?;
        }
        // As the driver rounds: the declared part comes first, arguments after it.
        if slm > 0 {
            out.extra_slm = slm.next_multiple_of(1024).min(MAX_SLM_BYTES);
        }
        Ok(out)
    }

    fn bind(
        &self,
        given: &BTreeMap<u32, ArgValue>,
        bound: &Bindings,
        table: &mut SurfaceTable,
    ) -> Result<(), LaunchError> {
        for (surface, argument) in &self.bindings {
            match given.get(argument) {
                Some(ArgValue::Buffer(buffer)) => table.bind(*surface, buffer)?,
                Some(ArgValue::Image(buffer, shape)) => {
                    table.bind_image(*surface, buffer, shape)?
                }
                _ => {}
            }
        }
        for (index, state) in &self.samplers {
            table.bind_sampler(*index, *state)?;
        }
        for (index, argument) in &self.sampler_bindings {
            if let Some(ArgValue::Sampler(state)) = given.get(argument) {
                table.bind_sampler(*index, *state)?;
            }
        }
        for (&surface, buffer) in &bound.surfaces {
            table.bind(surface, buffer)?;
        }
        for (&surface, (buffer, shape)) in &bound.images {
            table.bind_image(surface, buffer, shape)?;
        }
        for (&index, &state) in &bound.samplers {
            table.bind_sampler(index, state)?;
        }
        Ok(())
    }
}

impl Slot {
    fn fill(
        &self,
        given: &BTreeMap<u32, ArgValue>,
        shape: &LaunchShape,
        (own, data): (&LaunchMemory, Option<&ProgramData>),
        slm: &mut u32,
        out: &mut Arguments,
    ) -> Result<(), PlanError> {
        let bytes: Bytes<'_> = match self.source {
            SlotSource::GlobalOffset => Bytes::Three(shape.offset),
            SlotSource::LocalSize => {
                let offset = self.offset;
                out.payload.patch(PayloadPatch::LocalSize { offset })?;
                Bytes::Three(shape.local)
            }
            SlotSource::EnqueuedLocalSize => Bytes::Three(shape.local),
            SlotSource::GlobalSize => Bytes::Three(shape.global),
            SlotSource::GroupCount => Bytes::Three(shape.groups()),
            SlotSource::Dimensions => Bytes::Word(dimensions(shape).into()),
            SlotSource::Value { argument, from } => match given.get(&argument) {
                // Narrow types are shorter than their place; the rest of it stays zero.
                Some(ArgValue::Bytes(b)) => Bytes::Given(b.get(from as usize..).unwrap_or(&[])),
                _ => Bytes::Given(&[]),
            },
            SlotSource::Local {
                argument,
                alignment,
            } => match given.get(&argument) {
                Some(ArgValue::Local(bytes)) => Bytes::Long(local(*bytes, alignment, slm)?),
                _ => Bytes::Given(&[]),
            },
            SlotSource::Address { argument } => match given.get(&argument) {
                Some(ArgValue::Buffer(b)) => Bytes::Long(b.address()),
                _ => Bytes::Given(&[]),
            },
            SlotSource::PrivateBase => {
                let private = own.private.as_ref();
                private.map_or(Bytes::Given(&[]), |b| Bytes::Long(b.address()))
            }
            SlotSource::PrintBuffer => address(own.printing(), "buffer to print to")?,
            SlotSource::AssertBuffer => address(own.asserting(), "buffer for assertions")?,
            SlotSource::Data { section, offset } => {
                let address = data.and_then(|data| data.address(section, offset));
                Bytes::Long(address.ok_or_else(|| missing("program-scope variable"))?)
            }
            SlotSource::Copy { from } => {
                return Ok(out.payload.mirror(from, self.size, self.offset)?);
            }
            SlotSource::ImplicitArgs { simd } => Bytes::Made(implicit::bytes(shape, simd, own)),
            SlotSource::ImplicitArgsAddress { simd } => {
                let buffer = own.implicit.as_ref();
                let buffer = buffer.ok_or_else(|| missing("memory for implicit arguments"))?;
                let bytes = implicit::bytes(shape, simd, own);
                buffer.write(0, &bytes).map_err(LaunchError::from)?;
                Bytes::Long(buffer.address())
            }
            SlotSource::State { word } => Bytes::Word(word),
            SlotSource::Image { argument, fact } => match given.get(&argument) {
                Some(ArgValue::Image(_, shape)) => Bytes::Word(fact.of(shape)),
                _ => return Err(missing(&format!("image as argument {argument}"))),
            },
            SlotSource::Sampler { argument, fact } => match given.get(&argument) {
                Some(ArgValue::Sampler(state)) => Bytes::Word(fact.of(*state)),
                _ => return Err(missing(&format!("sampler as argument {argument}"))),
            },
        };
        let (offset, size) = (self.offset as usize, self.size as usize);
        bytes.with(|bytes| out.payload.set(offset, &bytes[..bytes.len().min(size)]))?;
        Ok(())
    }
}

/// What a slot is filled with.
enum Bytes<'a> {
    Word(u32),
    Long(u64),
    Three([u32; 3]),
    Given(&'a [u8]),
    Made(Vec<u8>),
}

impl Bytes<'_> {
    fn with<T>(&self, take: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Bytes::Word(word) => take(&word.to_le_bytes()),
            Bytes::Long(long) => take(&long.to_le_bytes()),
            Bytes::Three(three) => take(three.map(u32::to_le_bytes).as_flattened()),
            Bytes::Given(bytes) => take(bytes),
            Bytes::Made(bytes) => take(bytes),
        }
    }
}

/// Dimensions of a launch: those that it names, and never fewer than its sizes need.
pub(super) fn dimensions(shape: &LaunchShape) -> u8 {
    let [_, y, z] = shape.global;
    let needed = if z > 1 { 3 } else { 1 + u8::from(y > 1) };
    // Arithmetic throughout: a branch on a number that is absent is what memory checkers report.
    shape.dimensions.unwrap_or(0).max(needed).min(3)
}

/// The address of a buffer that has to be there.
fn address(buffer: Option<&PrintBuffer>, what: &str) -> Result<Bytes<'static>, PlanError> {
    let buffer = buffer.ok_or_else(|| missing(what))?;
    Ok(Bytes::Long(buffer.address()))
}

fn missing(what: &str) -> PlanError {
    PlanError::Arguments(format!("the kernel needs a {what}"))
}

/// The offset of `bytes` bytes of local memory after `used`.
fn local(bytes: u32, alignment: u32, used: &mut u32) -> Result<u64, LaunchError> {
    let too_much = || LaunchError::GroupMemory {
        what: "local memory",
        wanted: u64::from(*used) + u64::from(bytes),
        limit: MAX_SLM_BYTES.into(),
    };
    let start = used.checked_next_multiple_of(alignment.max(1));
    let start = start.ok_or_else(too_much)?;
    let end = start.checked_add(bytes).filter(|end| *end <= MAX_SLM_BYTES);
    *used = end.ok_or_else(too_much)?;
    Ok(start.into())
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

    fn argument(index: u32, kind: ArgKind) -> Argument {
        Argument {
            index,
            name: format!("a{index}"),
            type_name: if index == 0 { "uchar" } else { "" }.to_owned(),
            kind,
        }
    }

    fn plan() -> LaunchPlan {
        LaunchPlan {
            arguments: vec![
                argument(0, ArgKind::Value { size: 4 }),
                argument(1, ArgKind::Local { alignment: 64 }),
                argument(2, ArgKind::Local { alignment: 64 }),
                argument(3, ArgKind::Unused),
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
        let own = LaunchMemory::default();
        plan().layout(
            36,
            &given,
            &Bindings::default(),
            &shape,
            &memory,
            (&own, None),
        )
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

    /// Groups of another size have another copy of their size.
    #[test]
    fn copies_follow_what_they_are_copies_of() {
        let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
        let shape = LaunchShape::new([10, 3, 1], [4, 3, 1]);
        let copy = SlotSource::Copy { from: 4 };
        let plan = LaunchPlan {
            slots: vec![slot(4, 12, SlotSource::LocalSize), slot(20, 16, copy)],
            ..LaunchPlan::default()
        };
        let (given, own) = (BTreeMap::new(), LaunchMemory::default());
        let lay = |bytes| {
            plan.layout(
                bytes,
                &given,
                &Bindings::default(),
                &shape,
                &memory,
                (&own, None),
            )
        };
        let words = |payload: &Payload| -> Vec<u32> {
            let words = payload.as_slice().chunks_exact(4);
            words
                .map(|w| u32::from_le_bytes(w.try_into().unwrap()))
                .collect()
        };
        let out = lay(36).unwrap();
        assert_eq!(words(&out.payload), [0, 4, 3, 1, 0, 4, 3, 1, 0]);
        let other = out.payload.for_group([2, 3, 1]).unwrap();
        assert_eq!(words(&other), [0, 2, 3, 1, 0, 2, 3, 1, 0]);
        assert!(out.payload.varies());
        assert!(lay(35).unwrap_err().to_string().contains("20..20+16"));
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
            "argument 0 (`uchar a0`) takes 4 bytes by value, not 3",
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

    #[test]
    fn what_no_argument_names_must_be_there() {
        let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
        let shape = LaunchShape::new([1, 1, 1], [1, 1, 1]);
        let layout = |source| {
            let plan = LaunchPlan {
                slots: vec![slot(0, 8, source)],
                ..LaunchPlan::default()
            };
            let (given, own) = (BTreeMap::new(), LaunchMemory::default());
            let out = plan.layout(
                8,
                &given,
                &Bindings::default(),
                &shape,
                &memory,
                (&own, None),
            );
            out.unwrap_err().to_string()
        };
        let data = SlotSource::Data {
            section: 0,
            offset: 0,
        };
        assert!(layout(data).contains("program-scope variable"));
        assert!(layout(SlotSource::PrintBuffer).contains("print"));
        assert!(layout(SlotSource::AssertBuffer).contains("assertions"));
        let image = SlotSource::Image {
            argument: 3,
            fact: ImageFact::Width,
        };
        assert!(layout(image).contains("image as argument 3"));
        let plan = LaunchPlan {
            unsupported: Some("a wish".to_owned()),
            ..LaunchPlan::default()
        };
        let error = plan.check(&BTreeMap::new()).unwrap_err();
        assert_eq!(error.to_string(), "a wish is not supported");
    }
}
