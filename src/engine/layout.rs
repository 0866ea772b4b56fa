//! Arguments into payload and surfaces.

use super::error::Error;
use super::images;
use super::kernel::Kernel;
use super::launch::{Arg, Launch};
use super::printed::PrintBuffer;
use crate::container::{
    ArgType, BufferType, BufferUsage, MemoryAddressing, MemorySpace, PayloadArgument,
};
use crate::lower::InputSource;
use crate::module::InputVar;
use visa_runtime::{
    Arguments, Buffer, LaunchShape, Payload, PayloadPatch, PreparedLaunch, SurfaceTable, WorkerPool,
};

/// Memory of a launch that no argument names.
pub(super) struct Own<'a> {
    pub private: Option<&'a Buffer>,
    pub printing: Option<&'a PrintBuffer>,
}

impl Kernel {
    /// Memory behind `private_base_stateless`: so many bytes for each lane of each hardware thread that can exist.
    pub(super) fn private_memory(
        &self,
        launch: &PreparedLaunch,
        pool: Option<&WorkerPool>,
    ) -> Result<Option<Buffer>, Error> {
        let parts = self.parts();
        if let (None, Some(linked)) = (&parts.info, &parts.linked) {
            let bytes = linked
                .private_bytes()
                .saturating_mul(launch.hw_threads(pool));
            let buffer = (bytes != 0).then(|| parts.engine.memory().alloc(bytes));
            return Ok(buffer.transpose()?);
        }
        let Some(info) = &parts.info else {
            return Ok(None);
        };
        let each: u64 = info
            .per_thread_memory_buffers
            .iter()
            .filter(|b| b.kind == BufferType::Global && b.usage == BufferUsage::PrivateSpace)
            .map(|b| {
                u64::from(b.size)
                    * if b.is_simt_thread {
                        u64::from(self.simd())
                    } else {
                        1
                    }
            })
            .sum();
        if each == 0 {
            return Ok(None);
        }
        let bytes = each.saturating_mul(launch.hw_threads(pool));
        Ok(Some(self.parts().engine.memory().alloc(bytes)?))
    }

    /// A buffer for what the kernel prints, if it does.
    pub(super) fn print_buffer(&self) -> Result<Option<PrintBuffer>, Error> {
        let info = self.parts().info.as_ref();
        let prints = info.is_some_and(|info| {
            info.payload_arguments
                .iter()
                .any(|p| p.arg_type == ArgType::PrintfBuffer)
        });
        if !prints {
            return Ok(None);
        }
        PrintBuffer::new(self.parts().engine.memory()).map(Some)
    }

    /// Builds the payload and the surface table.
    pub(super) fn layout(
        &self,
        launch: &Launch,
        shape: LaunchShape,
        own: &Own<'_>,
    ) -> Result<Arguments, Error> {
        let parts = self.parts();
        if let Some(linked) = &parts.linked {
            return linked.layout(&parts.engine, launch, &shape, own.private);
        }
        let mut out = Arguments {
            payload: Payload::new(parts.plan.bytes as usize)?,
            surfaces: SurfaceTable::new(),
            memory: Some(parts.engine.memory().clone()),
            extra_slm: 0,
        };
        for (name, &at) in &parts.plan.map.symbols {
            if let Some((_, address)) = parts.data.symbols.iter().find(|(n, _)| n == name) {
                out.payload.set(at as usize, &address.to_le_bytes())?;
            }
        }
        let Some(info) = &parts.info else {
            self.layout_text(launch, &mut out)?;
            return Ok(out);
        };
        for b in &info.binding_table_indices {
            match launch.args.get(&b.arg_index) {
                Some(Arg::Buffer(buffer)) => out.surfaces.bind(b.bti_value, buffer)?,
                Some(Arg::Image(buffer, shape)) => {
                    out.surfaces.bind_image(b.bti_value, buffer, shape)?;
                }
                _ => {}
            }
        }
        for s in &info.inline_samplers {
            let state = self.inline_sampler(s)?;
            out.surfaces.bind_sampler(s.sampler_index, state)?;
        }
        let mut slm = 0u32;
        for p in &info.payload_arguments {
            self.fill(p, launch, shape, own, &mut slm, &mut out)?;
        }
        // The runtime rounds as the driver does: the declared part comes first, arguments behind it.
        out.extra_slm = slm.next_multiple_of(1024).min(1 << 20) * u32::from(slm > 0);
        Ok(out)
    }

    fn fill(
        &self,
        p: &PayloadArgument,
        launch: &Launch,
        shape: LaunchShape,
        own: &Own<'_>,
        slm: &mut u32,
        out: &mut Arguments,
    ) -> Result<(), Error> {
        let unsupported = |what: String| Error::Unsupported {
            kernel: self.name().into(),
            what,
        };
        let at = p.offset as usize;
        let three = |v: [u32; 3]| -> Vec<u8> {
            v.iter()
                .flat_map(|x| x.to_le_bytes())
                .take(p.size as usize)
                .collect()
        };
        let arg = p.arg_index.and_then(|i| launch.args.get(&i));
        match &p.arg_type {
            ArgType::GlobalIdOffset => out.payload.set(at, &three(shape.offset))?,
            ArgType::LocalSize => {
                out.payload.set(at, &three(shape.local))?;
                out.payload
                    .patch(PayloadPatch::LocalSize { offset: p.offset })?;
            }
            ArgType::EnqueuedLocalSize => out.payload.set(at, &three(shape.local))?,
            ArgType::GlobalSize => out.payload.set(at, &three(shape.global))?,
            ArgType::GroupCount => out.payload.set(at, &three(shape.groups()))?,
            ArgType::WorkDimensions => {
                let dims = if shape.global[2] > 1 {
                    3u32
                } else if shape.global[1] > 1 {
                    2
                } else {
                    1
                };
                out.payload.set(at, &dims.to_le_bytes())?;
            }
            ArgType::ByValue => {
                if let Some(Arg::Bytes(bytes)) = arg {
                    let from = p.source_offset.unwrap_or(0) as usize;
                    // Narrow types are shorter than their place; the rest of it stays zero.
                    let end = (from + p.size as usize).min(bytes.len());
                    if let Some(part) = bytes.get(from..end) {
                        out.payload.set(at, part)?;
                    }
                }
            }
            ArgType::ByPointer if p.size == 0 && p.addrspace == Some(MemorySpace::Sampler) => {
                if let (Some(Arg::Sampler(state)), Some(index)) = (arg, p.sampler_index) {
                    out.surfaces.bind_sampler(index, *state)?;
                }
            }
            ArgType::ByPointer => match p.addrmode {
                Some(MemoryAddressing::Slm) => {
                    if let Some(Arg::Local(bytes)) = arg {
                        let start = slm.next_multiple_of(p.slm_alignment.unwrap_or(16).max(1));
                        out.payload.set(
                            at,
                            &u64::from(start).to_le_bytes()[..(p.size as usize).min(8)],
                        )?;
                        *slm = start.saturating_add(*bytes);
                    }
                }
                Some(MemoryAddressing::Bindless) => {
                    return Err(unsupported("bindless buffer arguments".into()));
                }
                _ if p.size > 0 && matches!(arg, Some(Arg::Image(..) | Arg::Sampler(_))) => {
                    return Err(unsupported("images and samplers by address".into()));
                }
                _ if p.size > 0 => {
                    if let Some(Arg::Buffer(b)) = arg {
                        out.payload
                            .set(at, &b.address().to_le_bytes()[..(p.size as usize).min(8)])?;
                    }
                }
                _ => {}
            },
            ArgType::BufferAddress => {
                if let Some(Arg::Buffer(b)) = arg {
                    out.payload
                        .set(at, &b.address().to_le_bytes()[..(p.size as usize).min(8)])?;
                }
            }
            // Surfaces start exactly at their buffers.
            ArgType::BufferOffset => out.payload.set(at, &[0; 4])?,
            ArgType::PrivateBase => {
                if let Some(b) = own.private {
                    out.payload.set(at, &b.address().to_le_bytes())?;
                }
            }
            ArgType::ConstBase | ArgType::GlobalBase => {
                let wanted = if p.arg_type == ArgType::ConstBase {
                    ".data.const"
                } else {
                    ".data.global"
                };
                return Err(unsupported(format!(
                    "base address of {wanted} as an argument"
                )));
            }
            ArgType::PrintfBuffer => {
                if let Some(b) = own.printing {
                    out.payload.set(at, &b.address().to_le_bytes())?;
                }
            }
            other => match arg.and_then(|arg| images::property(other, arg)) {
                Some(value) => out.payload.set(at, &value.to_le_bytes())?,
                None => return Err(unsupported(format!("implicit argument `{other}`"))),
            },
        }
        Ok(())
    }

    fn layout_text(&self, launch: &Launch, out: &mut Arguments) -> Result<(), Error> {
        let parts = self.parts();
        let Some(valid) = &parts.valid else {
            return Ok(());
        };
        let module = valid.module();
        for (&bti, buffer) in &launch.surfaces {
            out.surfaces.bind(bti, buffer)?;
        }
        for (&bti, (buffer, shape)) in &launch.images {
            out.surfaces.bind_image(bti, buffer, shape)?;
        }
        for (&index, &state) in &launch.samplers {
            out.surfaces.bind_sampler(index, state)?;
        }
        let bad = |what: String| Error::Arguments {
            kernel: self.name().into(),
            what,
        };
        for (name, bytes) in &launch.inputs {
            let found = module.inputs.iter().enumerate().find(|(_, i)| match i.var {
                InputVar::General(v) => module.vars.general(v).is_some_and(|g| g.name == *name),
                _ => false,
            });
            let Some((index, input)) = found else {
                return Err(bad(format!("no .input `{name}`")));
            };
            if bytes.len() as u32 != input.size {
                return Err(bad(format!(
                    "input `{name}` takes {} bytes, not {}",
                    input.size,
                    bytes.len()
                )));
            }
            match parts.plan.map.inputs.get(index) {
                Some(InputSource::Payload(at)) => out.payload.set(*at as usize, bytes)?,
                _ => {
                    return Err(bad(format!(
                        "input `{name}` is filled by the launch (r0 or local ids)"
                    )));
                }
            }
        }
        Ok(())
    }
}
