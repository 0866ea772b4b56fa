//! Compilation ahead of time: kernels as they go into object files.

use super::error::Error;
use super::kernel::{ArgKind, Kernel};
use super::launch::compiled_site;
use crate::artifact::object::{ObjectKernel, descriptor_symbol, identifier};
use crate::backend::{Backend, CodegenOptions, OobPolicy, cranelift};
use crate::container::PayloadArgument;
use crate::container::{ArgType, BufferType, BufferUsage, KernelInfo, MemoryAddressing};
use crate::lower::{InputSource, LocalIdShape};
use crate::module::InputVar;
use crate::ssa::Site;
use visa_runtime::Lanes;
use visa_runtime::linked::{
    KernelRecord, LaunchPlan, PlanArgument, PlanKind, SiteRecord, Slot, SlotSource, Variant, digest,
};

/// A policy's name in records and on the command line.
pub(crate) const fn policy_name(oob: OobPolicy) -> &'static str {
    match oob {
        OobPolicy::ReadZeroSkipWrite => "zero",
        OobPolicy::Trap => "trap",
        OobPolicy::Report => "report",
    }
}

impl Kernel {
    /// Compiles for an object file, for any target of Cranelift: for any launch, and again for launches whose lanes lie in rows.
    ///
    /// # Errors
    /// When the kernel cannot be compiled, or needs of its caller what a program without a compiler does not do.
    pub fn ahead_of_time(
        &self,
        backend: &dyn Backend,
        oob: OobPolicy,
    ) -> Result<ObjectKernel, Error> {
        let plan = self.launch_plan()?;
        let identity = backend.identity();
        if identity.name != cranelift::NAME {
            // The runtime could not tell whether a processor has what the code uses: it knows Cranelift's names.
            return Err(self.unsupported(format_args!("the code generator {}", identity.name)));
        }
        let codegen = CodegenOptions {
            oob,
            ..self.codegen(oob)
        };
        let any = (LocalIdShape::General, Lanes::Any, "any");
        let shapes = if self.walks_rows() {
            vec![
                (LocalIdShape::FullRow, Lanes::FullRows, "full_rows"),
                (LocalIdShape::Row, Lanes::Rows, "rows"),
                any,
            ]
        } else {
            vec![any]
        };
        let (mut variants, mut codes) = (Vec::new(), Vec::new());
        for (shape, lanes, suffix) in shapes {
            let artifact = self.generate(backend, shape, &codegen)?;
            variants.push(Variant {
                lanes,
                symbol: format!("visa_jit_code_{}_{suffix}", identifier(self.name())),
                meta: artifact.meta,
                code_bytes: artifact.code.len() as u64,
                code_digest: digest(&artifact.code),
                sites: artifact.sites.iter().map(site_record).collect(),
            });
            codes.push((artifact.code, artifact.align));
        }
        let enabled = |(name, value): (String, String)| {
            (name.starts_with("has_") && value == "true").then_some(name)
        };
        let record = KernelRecord {
            name: self.name().to_owned(),
            symbol: descriptor_symbol(self.name()),
            device: self
                .valid()
                .map_or_else(String::new, |v| v.target().platform.device().to_owned()),
            triple: identity.triple.to_string(),
            features: identity.features.into_iter().filter_map(enabled).collect(),
            backend: identity.name.to_owned(),
            oob: policy_name(oob).to_owned(),
            plan,
            variants,
        };
        Ok(ObjectKernel { record, codes })
    }

    fn unsupported(&self, what: impl std::fmt::Display) -> Error {
        Error::Unsupported {
            kernel: self.name().into(),
            what: format!("{what} in a kernel that is compiled ahead of time"),
        }
    }

    /// How arguments reach the code, for a program that has no container to ask.
    fn launch_plan(&self) -> Result<LaunchPlan, Error> {
        let parts = self.parts();
        if !parts.plan.map.symbols.is_empty() {
            return Err(self.unsupported("program-scope variables"));
        }
        let Some(info) = &parts.info else {
            return Ok(self.text_plan());
        };
        let arguments = self.arguments().iter().map(|a| {
            let kind = match a.kind {
                ArgKind::Value { size } => PlanKind::Value {
                    size,
                    narrow: a.narrow_bytes().map(|n| n as u32),
                },
                ArgKind::Buffer {
                    stateful,
                    stateless,
                    constant,
                } => PlanKind::Buffer {
                    surface: stateful,
                    address: stateless,
                    constant,
                },
                ArgKind::Local { alignment } => PlanKind::Local { alignment },
                ArgKind::Unused => PlanKind::Unused,
                _ => return Err(self.unsupported("images and samplers")),
            };
            Ok(PlanArgument {
                index: a.index,
                name: a.name.clone(),
                type_name: a.type_name.clone(),
                kind,
            })
        });
        let mut slots = Vec::new();
        for p in &info.payload_arguments {
            if let Some(source) = self.slot(p)? {
                slots.push(Slot {
                    offset: p.offset,
                    size: p.size,
                    source,
                });
            }
        }
        Ok(LaunchPlan {
            arguments: arguments.collect::<Result<_, _>>()?,
            slots,
            bindings: info
                .binding_table_indices
                .iter()
                .map(|b| (b.bti_value, b.arg_index))
                .collect(),
            binds_surfaces: false,
            private_bytes: self.private_bytes(info),
        })
    }

    /// What fills a part of the payload; `None` for what stays zero.
    fn slot(&self, p: &PayloadArgument) -> Result<Option<SlotSource>, Error> {
        let index = p.arg_index;
        Ok(match &p.arg_type {
            ArgType::GlobalIdOffset => Some(SlotSource::GlobalOffset),
            ArgType::LocalSize => Some(SlotSource::LocalSize),
            ArgType::EnqueuedLocalSize => Some(SlotSource::EnqueuedLocalSize),
            ArgType::GlobalSize => Some(SlotSource::GlobalSize),
            ArgType::GroupCount => Some(SlotSource::GroupCount),
            ArgType::WorkDimensions => Some(SlotSource::Dimensions),
            ArgType::ByValue => index.map(|argument| SlotSource::Value {
                argument,
                from: p.source_offset.unwrap_or(0),
            }),
            ArgType::ByPointer => match p.addrmode {
                Some(MemoryAddressing::Slm) => index.map(|argument| SlotSource::Local {
                    argument,
                    alignment: p.slm_alignment.unwrap_or(16),
                }),
                Some(MemoryAddressing::Bindless) => {
                    return Err(self.unsupported("bindless buffer arguments"));
                }
                _ if p.size > 0 => index.map(|argument| SlotSource::Address { argument }),
                _ => None,
            },
            ArgType::BufferAddress => index.map(|argument| SlotSource::Address { argument }),
            // Surfaces start exactly at their buffers.
            ArgType::BufferOffset => None,
            ArgType::PrivateBase => Some(SlotSource::PrivateBase),
            other => return Err(self.unsupported(format_args!("implicit argument `{other}`"))),
        })
    }

    fn private_bytes(&self, info: &KernelInfo) -> u64 {
        let buffers = info.per_thread_memory_buffers.iter();
        buffers
            .filter(|b| b.kind == BufferType::Global && b.usage == BufferUsage::PrivateSpace)
            .map(|b| {
                let lanes = if b.is_simt_thread { self.simd() } else { 1 };
                u64::from(b.size).saturating_mul(lanes.into())
            })
            .sum()
    }

    /// Of vISA text: inputs in their order are arguments by value, surfaces are bound by index.
    fn text_plan(&self) -> LaunchPlan {
        let mut plan = LaunchPlan {
            binds_surfaces: true,
            ..LaunchPlan::default()
        };
        let Some(valid) = self.valid() else {
            return plan;
        };
        let module = valid.module();
        for (input, source) in module.inputs.iter().zip(&self.parts().plan.map.inputs) {
            let (InputVar::General(var), InputSource::Payload(offset)) = (input.var, source) else {
                continue;
            };
            let index = plan.arguments.len() as u32;
            let variable = module.vars.general(var);
            plan.arguments.push(PlanArgument {
                index,
                name: variable.map_or_else(String::new, |v| v.name.clone()),
                type_name: variable.map_or_else(String::new, |v| v.ty.to_string()),
                kind: PlanKind::Value {
                    size: input.size,
                    narrow: None,
                },
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
        plan
    }
}

fn site_record(site: &Site) -> SiteRecord {
    let place = compiled_site(site);
    SiteRecord {
        line: place.line,
        opcode: place.opcode.to_owned(),
        access: place.access.to_owned(),
        space: place.space.to_owned(),
        surface: place.surface,
        bytes: place.bytes,
    }
}
