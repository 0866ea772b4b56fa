//! From `.ze_info` to what lowering and the launcher need: where inputs come from, what arguments there are.

use std::collections::BTreeMap;

use super::error::Error;
use crate::container::{ArgInfo, KernelInfo, PayloadLayout, PayloadSource};
use crate::container::{ArgType, ImageType, MemoryAddressing, MemorySpace};
use crate::interp;
use crate::lower::{InputSource, LocalIdShape, PayloadMap};
use crate::module::{Body, InputVar, Module};
use visa_runtime::ImageKind;
use visa_runtime::linked::{ArgKind, Argument};

// What the passes rely on is what the runtime keeps to.
const _: () = assert!(crate::ssa::MAX_LOCAL_ID + 1 == visa_runtime::limits::MAX_GROUP_LANES as u64);

/// Cross-thread payload with room for the addresses of symbols behind the arguments.
#[derive(Clone, Debug, Default)]
pub(crate) struct PayloadPlan {
    pub map: PayloadMap,
    /// Bytes, symbols included.
    pub bytes: u32,
}

/// Symbols that a program asks the address of.
pub(crate) fn symbols(module: &Module) -> Vec<String> {
    let mut names: Vec<String> = module
        .insts
        .iter()
        .filter_map(|i| {
            if let Body::Faddr { name, .. } = &i.body {
                Some(name.clone())
            } else {
                None
            }
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

fn with_symbols(inputs: Vec<InputSource>, size: u32, known: &[String]) -> PayloadPlan {
    let mut at = size.next_multiple_of(8);
    let mut slots = BTreeMap::new();
    for name in known {
        slots.insert(name.clone(), at);
        at += 8;
    }
    PayloadPlan {
        map: PayloadMap {
            inputs,
            local_ids: LocalIdShape::General,
            symbols: slots,
        },
        bytes: at,
    }
}

/// The plan of a zebin kernel. `known` are the symbols whose address the program has.
pub(crate) fn plan(
    kernel: &str,
    module: &Module,
    layout: &PayloadLayout,
    known: &[String],
) -> Result<PayloadPlan, Error> {
    let mut inputs = Vec::new();
    for input in &module.inputs {
        let source = match input.var {
            InputVar::General(_) => match layout.classify(input.offset, input.size) {
                Some(PayloadSource::R0 { offset }) => InputSource::R0(offset),
                Some(PayloadSource::Unused) => InputSource::Zero,
                Some(PayloadSource::LocalId {
                    dim, first_lane, ..
                }) => InputSource::LocalIds {
                    dim: dim as u8,
                    lane: first_lane as u8,
                },
                Some(PayloadSource::PackedLocalIds { .. }) => {
                    return Err(Error::Unsupported {
                        kernel: kernel.into(),
                        what: "packed local ids (SIMD1)".into(),
                    });
                }
                Some(PayloadSource::CrossThread { payload_offset }) => {
                    InputSource::Payload(payload_offset)
                }
                None => {
                    return Err(Error::Arguments {
                        kernel: kernel.into(),
                        what: format!(
                            ".input at offset {} size {} is neither r0, local ids nor an argument of .ze_info",
                            input.offset, input.size
                        ),
                    });
                }
            },
            _ => InputSource::Zero,
        };
        inputs.push(source);
    }
    let size = layout
        .cross_thread_size
        .next_multiple_of(layout.grf_bytes.max(1));
    Ok(with_symbols(inputs, size, known))
}

/// Where the interpreter finds what a kernel reads at its start.
pub(crate) fn interp_inputs(map: &PayloadMap) -> interp::Inputs {
    let source = |s: &InputSource| match *s {
        InputSource::R0(at) => interp::Input::R0(at),
        InputSource::LocalIds { dim, lane } => interp::Input::LocalIds { dim, lane },
        InputSource::Payload(at) => interp::Input::Payload(at),
        InputSource::Zero => interp::Input::Zero,
    };
    interp::Inputs {
        inputs: map.inputs.iter().map(source).collect(),
        symbols: map.symbols.clone(),
    }
}

/// The plan of a kernel without `.ze_info`: inputs are bound by name at launch, each at its own register offset.
///
/// 16-bit inputs in the rows right behind `r0` are taken for local ids, as the compiler lays them out.
pub(crate) fn plan_text(module: &Module, grf: u32, simd: u32) -> PayloadPlan {
    let per_dim = (2 * simd.max(16)).next_multiple_of(grf);
    let ids = 3 * per_dim;
    let mut size = 0;
    let mut inputs = Vec::new();
    for input in &module.inputs {
        let words = match input.var {
            InputVar::General(v) => module.vars.ty(v).is_some_and(|t| t.bytes() == 2),
            _ => false,
        };
        let source = if !matches!(input.var, InputVar::General(_)) {
            InputSource::Zero
        } else if input.offset + input.size <= grf {
            InputSource::R0(input.offset)
        } else if words
            && input.offset >= grf
            && input.offset + input.size <= grf + ids
            && input.size >= 16
        {
            let at = input.offset - grf;
            InputSource::LocalIds {
                dim: (at / per_dim) as u8,
                lane: ((at % per_dim) / 2) as u8,
            }
        } else {
            size = size.max(input.offset.saturating_add(input.size));
            InputSource::Payload(input.offset)
        };
        inputs.push(source);
    }
    with_symbols(inputs, size, &[])
}

/// More than any compiler lets pass.
const MAX_ARGUMENTS: u32 = 4096;

/// Source-level arguments.
pub(crate) fn arguments(info: &KernelInfo, names: &[ArgInfo]) -> Vec<Argument> {
    // The compiler drops trailing arguments that it does not need from one list but not from the other.
    let count = names
        .iter()
        .map(|a| a.index.saturating_add(1))
        .max()
        .unwrap_or(0)
        .max(info.arg_count());
    (0..count.min(MAX_ARGUMENTS))
        .map(|index| {
            let named = names.iter().find(|a| a.index == index);
            Argument {
                index,
                name: named.map_or_else(String::new, |a| a.name.clone()),
                type_name: named.map_or_else(String::new, |a| a.type_and_size().0.to_owned()),
                kind: kind(info, index),
            }
        })
        .collect()
}

fn image_kind(ty: &ImageType) -> Option<ImageKind> {
    Some(match ty {
        ImageType::Buffer => ImageKind::Buffer,
        ImageType::D1 => ImageKind::D1,
        ImageType::D1Array => ImageKind::D1Array,
        ImageType::D2 | ImageType::D2Media | ImageType::D2MediaBlock => ImageKind::D2,
        ImageType::D2Array => ImageKind::D2Array,
        ImageType::D3 => ImageKind::D3,
        _ => return None,
    })
}

fn kind(info: &KernelInfo, index: u32) -> ArgKind {
    let stateful = info
        .binding_table_indices
        .iter()
        .find(|b| b.arg_index == index)
        .map(|b| b.bti_value);
    let mut kind = ArgKind::Unused;
    for p in info
        .payload_arguments
        .iter()
        .filter(|p| p.arg_index == Some(index))
    {
        match (&p.arg_type, &p.addrspace, &p.addrmode) {
            (ArgType::ByValue, ..) => {
                let end = p.source_offset.unwrap_or(0).saturating_add(p.size);
                let size = if let ArgKind::Value { size } = kind {
                    size.max(end)
                } else {
                    end
                };
                kind = ArgKind::Value { size };
            }
            (ArgType::ByPointer, Some(MemorySpace::Image), _) => {
                kind = ArgKind::Image {
                    kind: p.image_type.as_ref().and_then(image_kind),
                    surface: stateful.or(p.bti_value),
                };
            }
            (ArgType::ByPointer, Some(MemorySpace::Sampler), _) => kind = ArgKind::Sampler,
            (ArgType::ByPointer, _, Some(MemoryAddressing::Slm)) => {
                kind = ArgKind::Local {
                    alignment: p.slm_alignment.unwrap_or(16),
                };
            }
            (ArgType::ByPointer, space, mode) => {
                let before = matches!(kind, ArgKind::Buffer { address: true, .. });
                kind = ArgKind::Buffer {
                    surface: stateful,
                    address: before || (*mode == Some(MemoryAddressing::Stateless) && p.size > 0),
                    constant: *space == Some(MemorySpace::Constant),
                };
            }
            _ => {}
        }
    }
    kind
}
