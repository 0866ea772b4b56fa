//! From `.ze_info` to what lowering and the launcher need: where inputs come from, what arguments there are.

use std::collections::BTreeMap;

use super::error::Error;
use crate::container::{ArgInfo, KernelInfo, PayloadLayout, PayloadSource};
use crate::container::{ArgType, ImageType, MemoryAddressing, MemorySpace};
use crate::interp;
use crate::isa::lsc::{AddrModel, Sfid};
use crate::lower::{InputSource, LocalIdShape, PayloadMap};
use crate::module::{Body, InputVar, Inst, Module};
use visa_runtime::ImageKind;
use visa_runtime::linked::{ArgKind, Argument, IMPLICIT_ARGS_BYTES};

// What the passes rely on is what the runtime keeps to.
const _: () = assert!(crate::ssa::MAX_LOCAL_ID + 1 == visa_runtime::limits::MAX_GROUP_LANES as u64);

/// Cross-thread payload with room for the addresses of symbols after the arguments.
#[derive(Clone, Debug, Default)]
pub(crate) struct PayloadPlan {
    pub map: PayloadMap,
    /// Bytes, symbols and indirect data included.
    pub bytes: u32,
    /// What kernels read by the address model `arg`, in those that do.
    pub args: Option<Indirect>,
}

/// A copy of what the driver puts into the indirect data of a launch, after everything else in the payload.
#[derive(Clone, Debug)]
pub(crate) struct Indirect {
    /// Where it is in the payload.
    pub offset: u32,
    /// Bytes of it.
    pub bytes: u32,
    /// The sizes of the launch come first, for functions that are called through the stack.
    pub implicit: bool,
    /// The part of the payload that follows.
    pub arguments: std::ops::Range<u32>,
}

impl PayloadPlan {
    fn add_indirect(&mut self, module: &Module, arguments: std::ops::Range<u32>, implicit: bool) {
        let reads = |i: &Inst| match &i.body {
            Body::Lsc(l) => l.sfid != Sfid::Slm && l.model == AddrModel::Arg,
            _ => false,
        };
        if !module.insts.iter().any(reads) {
            return;
        }
        let before = if implicit { IMPLICIT_ARGS_BYTES } else { 0 };
        let bytes = before.saturating_add(arguments.end.saturating_sub(arguments.start));
        let offset = self.bytes.next_multiple_of(64);
        self.bytes = offset.saturating_add(bytes);
        self.args = Some(Indirect {
            offset,
            bytes,
            implicit,
            arguments,
        });
    }
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
        args: None,
    }
}

/// The plan of a zebin kernel. `known` are the symbols whose address the program has.
pub(crate) fn plan(
    kernel: &str,
    module: &Module,
    layout: &PayloadLayout,
    known: &[String],
    calls_functions: bool,
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
    let mut plan = with_symbols(inputs, size, known);
    // The driver leaves away what arrives in registers, and fills the last 32 bytes up.
    let end = layout.cross_thread_size.next_multiple_of(32).min(size);
    plan.add_indirect(module, layout.inline_bytes.min(end)..end, calls_functions);
    Ok(plan)
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
/// 16-bit inputs in the rows right after `r0` are taken for local ids, as the compiler lays them out. Indirect data starts behind
/// them: nothing says that some of it would arrive in registers.
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
    let mut plan = with_symbols(inputs, size, &[]);
    let given = module.int_attr("PerThreadInputSize");
    let has_ids = |s: &InputSource| matches!(s, InputSource::LocalIds { .. });
    let ids = match given.and_then(|bytes| u32::try_from(bytes).ok()) {
        Some(bytes) => bytes.checked_next_multiple_of(grf).unwrap_or(size),
        None if plan.map.inputs.iter().any(has_ids) => ids,
        None => 0,
    };
    let start = grf.saturating_add(ids).min(size);
    plan.add_indirect(module, start..size, !module.functions.is_empty());
    plan
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
            let (type_name, bytes) = named.map_or(("", None), ArgInfo::type_and_size);
            Argument {
                index,
                name: named.map_or_else(String::new, |a| a.name.clone()),
                type_name: type_name.to_owned(),
                kind: match (kind(info, index), bytes) {
                    // The parts of a struct are whole words, the last of which may reach past its end.
                    (ArgKind::Value { size }, Some(bytes)) if parts(info, index) > 1 => {
                        ArgKind::Value {
                            size: size.min(bytes),
                        }
                    }
                    (kind, _) => kind,
                },
            }
        })
        .collect()
}

/// Places in the payload that an argument passed by value is spread over.
fn parts(info: &KernelInfo, index: u32) -> usize {
    let all = info.payload_arguments.iter();
    all.filter(|p| p.arg_index == Some(index) && p.arg_type == ArgType::ByValue)
        .count()
}

fn image_kind(ty: &ImageType) -> Option<ImageKind> {
    Some(match ty {
        ImageType::Buffer => ImageKind::Buffer,
        ImageType::D1 => ImageKind::D1,
        ImageType::D1Array => ImageKind::D1Array,
        ImageType::D2 | ImageType::D2Media | ImageType::D2MediaBlock | ImageType::D2Depth => {
            ImageKind::D2
        }
        ImageType::D2Array | ImageType::D2ArrayDepth => ImageKind::D2Array,
        // Textures with samples have one here.
        ImageType::D2Msaa | ImageType::D2MsaaDepth => ImageKind::D2,
        ImageType::D2ArrayMsaa | ImageType::D2ArrayMsaaDepth => ImageKind::D2Array,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::{LocalIds, ZeInfo};
    use crate::front::text;
    use crate::isa::Versions;

    fn module(body: &str) -> Module {
        let text = format!(
            ".version 4.1\n.kernel \"k\"\n.kernel_attr SimdSize=8\n\
             .decl U v_type=G type=ud num_elts=8 align=GRF\n\
             .function \"main\"\n    {body}\n    ret (M1, 1)\n"
        );
        text::parse("k", &text).unwrap()
    }

    /// What arrives in registers is not in memory; symbols that only we put into the payload are not either.
    #[test]
    fn indirect_data_is_what_does_not_arrive_in_registers() {
        let layout = |inline_bytes| PayloadLayout {
            grf_bytes: 32,
            simd: 8,
            per_thread_offset: 32,
            per_thread_size: 96,
            local_ids: LocalIds::None,
            cross_thread_offset: 128,
            cross_thread_size: 70,
            inline_bytes,
            inline_gap: 0,
        };
        let load = module("lsc_load.ugm (M1, 8) U:d32 arg[U]:a32");
        let symbols = ["table".to_owned()];
        let args = |module: &Module, inline, calls| {
            let plan = plan("k", module, &layout(inline), &symbols, calls).unwrap();
            plan.args
                .map(|a| (a.offset, a.bytes, a.implicit, a.arguments))
        };
        assert_eq!(args(&load, 0, false), Some((128, 96, false, 0..96)));
        assert_eq!(args(&load, 32, false), Some((128, 64, false, 32..96)));
        assert_eq!(args(&load, 128, false), Some((128, 0, false, 96..96)));
        assert_eq!(args(&load, 32, true), Some((128, 192, true, 32..96)));
        let other = module("lsc_load.ugm (M1, 8) U:d32 bti(0x1)[U]:a32");
        assert_eq!(args(&other, 0, true), None);
    }

    /// Version 22.43 passes each byte of a struct's padding as a word, so that the last one reaches past the struct's end.
    #[test]
    fn structs_are_as_long_as_their_type_says() {
        let part = |offset: u32, from: u32| {
            format!(
                "  - {{arg_type: arg_byvalue, offset: {offset}, size: 4, arg_index: 0, source_offset: {from}}}\n"
            )
        };
        let file = |parts: &str, ty: &str| {
            let text = format!(
                "kernels:\n- name: k\n  execution_env: {{simd_size: 16}}\n  payload_arguments:\n{parts}kernels_misc_info:\n\
                 - name: k\n  args_info:\n  - {{index: 0, name: s, type_name: '{ty}'}}\n"
            );
            let info = ZeInfo::parse(&text, Versions::Known).unwrap();
            arguments(&info.kernels[0], info.args_of("k"))
                .remove(0)
                .kind
        };
        let padded = [
            part(32, 0),
            part(36, 4),
            part(40, 5),
            part(44, 6),
            part(48, 7),
        ]
        .concat();
        assert_eq!(file(&padded, "pair_t;8"), ArgKind::Value { size: 8 });
        // A type below 32 bits has a place of 32.
        assert_eq!(file(&part(32, 0), "uchar;1"), ArgKind::Value { size: 4 });
    }
}
