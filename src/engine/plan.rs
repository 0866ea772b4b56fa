//! From `.ze_info`, or from vISA text, to the plan by which the runtime lays arguments out.

use super::abi::{self, PayloadPlan};
use crate::container::{
    ArgInfo, ArgType, BufferType, BufferUsage, FilterMode, InlineSampler, KernelInfo,
    MemoryAddressing, MemorySpace, PayloadArgument, SamplerAddressing,
};
use crate::isa::Platform;
use crate::isa::sampler::SAMPLER_STATE_SHIFT;
use crate::isa::send::reserved;
use crate::lower::InputSource;
use crate::module::{InputVar, Module};
use visa_runtime::linked::{
    ArgKind, Argument, IMPLICIT_ARGS_BYTES, ImageFact, LaunchPlan, SamplerFact, Slot, SlotSource,
};
use visa_runtime::{Addressing, Comparison, SamplerState};

/// Where a program's variables are.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// Section and byte of each by name.
    pub places: Vec<(String, (u32, u64))>,
    /// Sections of constants: `.data.const`, `.bss.const`.
    pub constants: Vec<u32>,
    /// Sections of variables that kernels may write: `.data.global`, `.bss.global`.
    pub globals: Vec<u32>,
}

impl Variables {
    /// The address of a byte, by the name of what is there.
    pub(super) fn named(&self, name: &str) -> Option<SlotSource> {
        let place = self.places.iter().find(|(n, _)| n == name);
        place.map(|(_, (section, offset))| SlotSource::Data {
            section: *section,
            offset: *offset,
        })
    }

    /// The sections that an implicit argument is the base of, if it is one.
    fn base(&self, what: &ArgType) -> Option<&[u32]> {
        match what {
            ArgType::ConstBase => Some(&self.constants),
            ArgType::GlobalBase => Some(&self.globals),
            _ => None,
        }
    }
}

/// Samplers that a launch has room for.
const MAX_SAMPLERS: u32 = visa_runtime::abi::SURFACES as u32;

/// What a surface holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// A buffer or image.
    Argument(u32),
    /// A section of the program's variables.
    Section(u32),
}

/// The indices of a kernel's surfaces.
struct Surfaces {
    bindings: Vec<(u32, Holds)>,
    /// Indices of samplers, and the arguments that are without one in the file.
    samplers: Vec<(u32, Option<u32>)>,
    /// Lowest bit of the place in the heap of surface states, in the word that messages find bindless surfaces by.
    shift: u32,
}

impl Surfaces {
    /// Those that the file gives indices to.
    fn bound(info: &KernelInfo, variables: &Variables, platform: Platform) -> Surfaces {
        let arguments = info.binding_table_indices.iter();
        let arguments = arguments.map(|b| (b.bti_value, Holds::Argument(b.arg_index)));
        let sections = info.payload_arguments.iter().filter_map(|p| {
            let section = section(variables.base(&p.arg_type)?).ok()??;
            Some((p.bti_value?, Holds::Section(section)))
        });
        let inline = info.inline_samplers.iter().map(|s| s.sampler_index);
        let given = info.payload_arguments.iter();
        let given = given.filter_map(|p| p.sampler_index);
        Surfaces {
            bindings: arguments.chain(sections).collect(),
            samplers: inline.chain(given).map(|index| (index, None)).collect(),
            shift: platform.bindless_shift(),
        }
    }

    /// The word by which messages find a surface: it stands where it is bound already, or at the first free index.
    fn word(&mut self, holds: Holds) -> Result<SlotSource, String> {
        let bound = self.bindings.iter().find(|(_, h)| *h == holds);
        let index = match bound {
            Some((index, _)) => *index,
            None => {
                let taken = |index: &u32| self.bindings.iter().any(|(i, _)| i == index);
                let free = (0..u32::from(reserved::BINDLESS)).find(|index| !taken(index));
                let index = free.ok_or("more surfaces than a binding table has")?;
                self.bindings.push((index, holds));
                index
            }
        };
        if index >= visa_runtime::abi::SURFACES as u32 {
            return Err(format!("surface {index}"));
        }
        // Entry 0 of the heap is the thread's scratch space.
        Ok(SlotSource::State {
            word: (index + 1) << self.shift,
        })
    }

    /// The word by which messages find a sampler, by the index that the file gives it, or of an argument without one.
    fn sampler(&mut self, index: Option<u32>, argument: Option<u32>) -> Result<SlotSource, String> {
        let index = match (index, argument) {
            (Some(index), _) => index,
            (None, Some(argument)) => {
                let taken = |index: &u32| self.samplers.iter().any(|(i, _)| i == index);
                let free = (0..MAX_SAMPLERS).find(|index| !taken(index));
                let index = free.ok_or("more samplers than there is room for")?;
                self.samplers.push((index, Some(argument)));
                index
            }
            (None, None) => return Err("a sampler without an index".to_owned()),
        };
        if index >= MAX_SAMPLERS {
            return Err(format!("sampler {index}"));
        }
        Ok(SlotSource::State {
            word: index << SAMPLER_STATE_SHIFT,
        })
    }

    /// Binds them in a plan.
    fn bind(self, plan: &mut LaunchPlan) {
        let samplers = self.samplers.into_iter();
        plan.sampler_bindings
            .extend(samplers.filter_map(|(index, argument)| Some((index, argument?))));
        for (index, holds) in self.bindings {
            match holds {
                Holds::Argument(argument) => plan.bindings.push((index, argument)),
                Holds::Section(section) => plan.data_bindings.push((index, section)),
            }
        }
    }
}

/// The one section that kernels address from a base. Without any there is nothing to address.
fn section(sections: &[u32]) -> Result<Option<u32>, String> {
    match sections {
        [] => Ok(None),
        [section] => Ok(Some(*section)),
        _ => Err("one base address of initialised and zeroed variables".to_owned()),
    }
}

/// The plan of a zebin kernel of `simd` lanes.
pub(super) fn of_info(
    info: &KernelInfo,
    names: &[ArgInfo],
    payload: &PayloadPlan,
    variables: &Variables,
    (platform, simd): (Platform, u32),
) -> LaunchPlan {
    let mut surfaces = Surfaces::bound(info, variables, platform);
    let mut plan = LaunchPlan {
        arguments: abi::arguments(info, names),
        private_bytes: private_bytes(info, simd),
        ..LaunchPlan::default()
    };
    for sampler in &info.inline_samplers {
        match inline_sampler(sampler) {
            Ok(state) => plan.samplers.push((sampler.sampler_index, state)),
            Err(what) => unsupported(&mut plan, what),
        }
    }
    for p in &info.payload_arguments {
        if let (Some(argument), Some(index), Some(MemorySpace::Sampler)) =
            (p.arg_index, p.sampler_index, &p.addrspace)
        {
            plan.sampler_bindings.push((index, argument));
        }
        match slot(p, variables, &mut surfaces, simd) {
            Ok(Some(source)) => plan.slots.push(Slot {
                offset: p.offset,
                size: p.size,
                source,
            }),
            Ok(None) => {}
            Err(what) => unsupported(&mut plan, what),
        }
    }
    for (name, &offset) in &payload.map.symbols {
        if let Some(source) = variables.named(name) {
            plan.slots.push(Slot {
                offset,
                size: 8,
                source,
            });
        }
    }
    surfaces.bind(&mut plan);
    plan.slots.extend(indirect(payload, simd));
    plan
}

/// What fills the indirect data, after all that it holds copies of.
fn indirect(payload: &PayloadPlan, simd: u32) -> Vec<Slot> {
    let Some(args) = &payload.args else {
        return Vec::new();
    };
    let before = if args.implicit {
        IMPLICIT_ARGS_BYTES
    } else {
        0
    };
    let simd = simd as u8;
    let implicit = args.implicit.then_some(Slot {
        offset: args.offset,
        size: before,
        source: SlotSource::ImplicitArgs { simd },
    });
    let copy = Slot {
        offset: args.offset.saturating_add(before),
        size: args.bytes.saturating_sub(before),
        source: SlotSource::Copy {
            from: args.arguments.start,
        },
    };
    implicit.into_iter().chain([copy]).collect()
}

/// Notes what cannot be done; the first such thing is reported.
fn unsupported(plan: &mut LaunchPlan, what: String) {
    plan.unsupported.get_or_insert(what);
}

/// What fills a part of the payload; `None` for what stays zero.
fn slot(
    p: &PayloadArgument,
    variables: &Variables,
    surfaces: &mut Surfaces,
    simd: u32,
) -> Result<Option<SlotSource>, String> {
    if let Some(sections) = variables.base(&p.arg_type) {
        return base(p, section(sections)?, surfaces);
    }
    if p.arg_type == ArgType::InlineSampler {
        return surfaces.sampler(p.sampler_index, None).map(Some);
    }
    if let (None, Some(mode)) = (p.arg_index, &p.addrmode)
        && *mode != MemoryAddressing::Stateless
    {
        return Err(format!("implicit argument `{}`, {mode}", p.arg_type));
    }
    let argument = p.arg_index;
    let image = |fact| argument.map(|argument| SlotSource::Image { argument, fact });
    let sampler = |fact| argument.map(|argument| SlotSource::Sampler { argument, fact });
    Ok(match &p.arg_type {
        ArgType::GlobalIdOffset => Some(SlotSource::GlobalOffset),
        ArgType::LocalSize => Some(SlotSource::LocalSize),
        ArgType::EnqueuedLocalSize => Some(SlotSource::EnqueuedLocalSize),
        ArgType::GlobalSize => Some(SlotSource::GlobalSize),
        ArgType::GroupCount => Some(SlotSource::GroupCount),
        ArgType::WorkDimensions => Some(SlotSource::Dimensions),
        ArgType::ByValue => argument.map(|argument| SlotSource::Value {
            argument,
            from: p.source_offset.unwrap_or(0),
        }),
        ArgType::ByPointer => return pointer(p, surfaces),
        ArgType::BufferAddress => argument.map(|argument| SlotSource::Address { argument }),
        // Surfaces start exactly at their buffers.
        ArgType::BufferOffset => None,
        ArgType::PrivateBase => Some(SlotSource::PrivateBase),
        ArgType::PrintfBuffer => Some(SlotSource::PrintBuffer),
        ArgType::AssertBuffer => Some(SlotSource::AssertBuffer),
        ArgType::ImplicitArgBuffer => Some(SlotSource::ImplicitArgsAddress { simd: simd as u8 }),
        ArgType::ImageWidth => image(ImageFact::Width),
        ArgType::ImageHeight => image(ImageFact::Height),
        ArgType::ImageDepth => image(ImageFact::Depth),
        ArgType::ImageArraySize => image(ImageFact::Layers),
        ArgType::ImageChannelDataType => image(ImageFact::ChannelType),
        ArgType::ImageChannelOrder => image(ImageFact::ChannelOrder),
        ArgType::ImageNumSamples | ArgType::ImageNumMipLevels => image(ImageFact::One),
        ArgType::SamplerAddress => sampler(SamplerFact::Address),
        ArgType::SamplerNormalized => sampler(SamplerFact::Normalized),
        ArgType::SamplerSnapWa => sampler(SamplerFact::SnapBelowZero),
        other => return Err(format!("implicit argument `{other}`")),
    })
}

/// What fills a base of variables: an address, or a surface's word.
fn base(
    p: &PayloadArgument,
    section: Option<u32>,
    surfaces: &mut Surfaces,
) -> Result<Option<SlotSource>, String> {
    let Some(section) = section else {
        return Ok(None);
    };
    Ok(match &p.addrmode {
        Some(MemoryAddressing::Bindless) => Some(surfaces.word(Holds::Section(section))?),
        None | Some(MemoryAddressing::Stateless | MemoryAddressing::Stateful) if p.size == 0 => {
            None
        }
        None | Some(MemoryAddressing::Stateless) => Some(SlotSource::Data { section, offset: 0 }),
        Some(mode) => return Err(format!("implicit argument `{}`, {mode}", p.arg_type)),
    })
}

fn pointer(p: &PayloadArgument, surfaces: &mut Surfaces) -> Result<Option<SlotSource>, String> {
    let Some(argument) = p.arg_index else {
        return Ok(None);
    };
    Ok(match (&p.addrmode, &p.addrspace) {
        (_, Some(MemorySpace::Sampler)) if p.size == 0 => None,
        (Some(MemoryAddressing::Slm), _) => Some(SlotSource::Local {
            argument,
            alignment: p.slm_alignment.unwrap_or(16),
        }),
        (Some(MemoryAddressing::Bindless), Some(MemorySpace::Sampler)) => {
            Some(surfaces.sampler(p.sampler_index, Some(argument))?)
        }
        (Some(MemoryAddressing::Bindless), _) => Some(surfaces.word(Holds::Argument(argument))?),
        (_, Some(MemorySpace::Image | MemorySpace::Sampler)) if p.size > 0 => {
            return Err("images and samplers by address".to_owned());
        }
        _ if p.size > 0 => Some(SlotSource::Address { argument }),
        _ => None,
    })
}

/// A sampler that is written in the source.
fn inline_sampler(s: &InlineSampler) -> Result<SamplerState, String> {
    let addressing = match &s.addrmode {
        SamplerAddressing::None => Addressing::None,
        SamplerAddressing::Repeat => Addressing::Repeat,
        SamplerAddressing::ClampEdge => Addressing::Edge,
        SamplerAddressing::ClampBorder => Addressing::Border,
        SamplerAddressing::Mirror => Addressing::Mirror,
        other => return Err(format!("sampler address mode `{other}`")),
    };
    let linear = match &s.filtermode {
        FilterMode::Nearest => false,
        FilterMode::Linear => true,
        other => return Err(format!("sampler filter `{other}`")),
    };
    Ok(SamplerState {
        addressing,
        linear,
        normalized: s.normalized,
        // OpenCL has none.
        comparison: Comparison::Never,
    })
}

/// Private memory of a hardware thread: a number of bytes for each of its lanes, or for the thread.
fn private_bytes(info: &KernelInfo, simd: u32) -> u64 {
    let buffers = info.per_thread_memory_buffers.iter();
    buffers
        .filter(|b| b.kind == BufferType::Global && b.usage == BufferUsage::PrivateSpace)
        .map(|b| {
            let lanes = if b.is_simt_thread { simd } else { 1 };
            u64::from(b.size).saturating_mul(lanes.into())
        })
        .sum()
}

/// The plan of vISA text: inputs in their order are arguments by value, surfaces are bound by index.
pub(super) fn of_text(module: &Module, payload: &PayloadPlan, simd: u32) -> LaunchPlan {
    let mut plan = LaunchPlan {
        binds_surfaces: true,
        ..LaunchPlan::default()
    };
    for (input, source) in module.inputs.iter().zip(&payload.map.inputs) {
        let (InputVar::General(var), InputSource::Payload(offset)) = (input.var, source) else {
            continue;
        };
        let index = plan.arguments.len() as u32;
        let variable = module.vars.general(var);
        plan.arguments.push(Argument {
            index,
            name: variable.map_or_else(String::new, |v| v.name.clone()),
            type_name: variable.map_or_else(String::new, |v| v.ty.to_string()),
            kind: ArgKind::Value { size: input.size },
        });
        plan.slots.push(Slot {
            offset: *offset,
            size: input.size,
            source: SlotSource::Value {
                argument: index,
                from: 0,
            },
        });
    }
    plan.slots.extend(indirect(payload, simd));
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surfaces(bindings: Vec<(u32, Holds)>) -> Surfaces {
        Surfaces {
            bindings,
            samplers: vec![(0, None)],
            shift: 6,
        }
    }

    #[test]
    fn words_of_surfaces_and_samplers() {
        let mut some = surfaces(vec![(0, Holds::Argument(4)), (1, Holds::Section(4))]);
        let state = |word| Ok(SlotSource::State { word });
        assert_eq!(some.word(Holds::Section(4)), state(2 << 6));
        assert_eq!(some.word(Holds::Argument(7)), state(3 << 6));
        assert_eq!(some.word(Holds::Argument(7)), state(3 << 6));
        assert_eq!(some.sampler(Some(3), Some(1)), state(3 << 4));
        assert_eq!(some.sampler(None, Some(2)), state(1 << 4));
        let mut plan = LaunchPlan::default();
        some.bind(&mut plan);
        assert_eq!(plan.bindings, [(0, 4), (2, 7)]);
        assert_eq!(plan.data_bindings, [(1, 4)]);
        assert_eq!(plan.sampler_bindings, [(1, 2)]);
    }

    /// Numbers of a file may be any.
    #[test]
    fn numbers_beyond_the_tables_are_refused() {
        let mut wild = surfaces(vec![(u32::MAX, Holds::Argument(0))]);
        assert!(wild.word(Holds::Argument(0)).is_err());
        assert!(wild.sampler(Some(u32::MAX), None).is_err());
        assert!(wild.sampler(None, None).is_err());
    }
}
