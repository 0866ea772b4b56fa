//! From `.ze_info`, or from vISA text, to the plan by which the runtime lays arguments out.

use super::abi::{self, PayloadPlan};
use crate::container::{
    ArgInfo, ArgType, BufferType, BufferUsage, FilterMode, InlineSampler, KernelInfo,
    MemoryAddressing, MemorySpace, PayloadArgument, SamplerAddressing,
};
use crate::lower::InputSource;
use crate::module::{InputVar, Module};
use visa_runtime::linked::{
    ArgKind, Argument, IMPLICIT_ARGS_BYTES, ImageFact, LaunchPlan, SamplerFact, Slot, SlotSource,
};
use visa_runtime::{Addressing, Comparison, SamplerState};

/// Where a program's variables are: section and byte of each by name.
pub(super) type Variables = Vec<(String, (u32, u64))>;

/// The plan of a zebin kernel of `simd` lanes.
pub(super) fn of_info(
    info: &KernelInfo,
    names: &[ArgInfo],
    payload: &PayloadPlan,
    variables: &Variables,
    simd: u32,
) -> LaunchPlan {
    let mut plan = LaunchPlan {
        arguments: abi::arguments(info, names),
        bindings: info
            .binding_table_indices
            .iter()
            .map(|b| (b.bti_value, b.arg_index))
            .collect(),
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
        if let (Some(argument), Some(index), Some(MemorySpace::Sampler), 0) =
            (p.arg_index, p.sampler_index, &p.addrspace, p.size)
        {
            plan.sampler_bindings.push((index, argument));
        }
        match slot(p) {
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
        let found = variables.iter().find(|(n, _)| n == name);
        if let Some((_, (section, at))) = found {
            plan.slots.push(Slot {
                offset,
                size: 8,
                source: SlotSource::Data {
                    section: *section,
                    offset: *at,
                },
            });
        }
    }
    plan.slots.extend(indirect(payload, simd));
    plan
}

/// What fills the indirect data, behind all that it holds copies of.
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
fn slot(p: &PayloadArgument) -> Result<Option<SlotSource>, String> {
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
        ArgType::ByPointer => return pointer(p),
        ArgType::BufferAddress => argument.map(|argument| SlotSource::Address { argument }),
        // Surfaces start exactly at their buffers.
        ArgType::BufferOffset => None,
        ArgType::PrivateBase => Some(SlotSource::PrivateBase),
        ArgType::PrintfBuffer => Some(SlotSource::PrintBuffer),
        ArgType::ConstBase => return Err("base address of .data.const as an argument".to_owned()),
        ArgType::GlobalBase => return Err("base address of .data.global as an argument".to_owned()),
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

fn pointer(p: &PayloadArgument) -> Result<Option<SlotSource>, String> {
    let Some(argument) = p.arg_index else {
        return Ok(None);
    };
    Ok(match (&p.addrmode, &p.addrspace) {
        (_, Some(MemorySpace::Sampler)) if p.size == 0 => None,
        (Some(MemoryAddressing::Slm), _) => Some(SlotSource::Local {
            argument,
            alignment: p.slm_alignment.unwrap_or(16),
        }),
        (Some(MemoryAddressing::Bindless), _) => {
            return Err("bindless buffer arguments".to_owned());
        }
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

/// Private memory of a hardware thread: so many bytes for each of its lanes, or for it.
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
