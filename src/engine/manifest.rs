//! What is known of a program without its instructions: all that a launch of code from the cache needs, in a form that can be
//! kept beside that code.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use visa_runtime::linked::{DataImage, LaunchPlan, ProgramData};
use visa_runtime::{DeviceMemory, KernelMeta};

use super::abi::PayloadPlan;
use super::error::Error;
use super::key::KernelPart;
use crate::container::{BufferType, KernelInfo};
use crate::isa::Platform;
use crate::limits::TEXT_SCRATCH_BYTES;
use crate::valid::ValidKernel;

/// A kernel without its instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KernelManifest {
    /// What code depends on.
    pub key: KernelPart,
    /// How arguments reach it.
    pub plan: LaunchPlan,
    /// Barriers that the file declares.
    pub barriers: u32,
    /// Buffers that it only reads, by the positions of arguments.
    pub read_only: Vec<u32>,
}

/// A program without its instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProgramManifest {
    /// Device it was compiled for.
    pub platform: Platform,
    /// How that is known.
    pub reason: String,
    /// Kernels in the file's order.
    pub kernels: Vec<KernelManifest>,
    /// Its variables.
    pub data: DataImage,
}

/// A program's variables: what they hold at first, and where they are.
#[derive(Debug, Default)]
pub(crate) struct LoadedData {
    pub image: DataImage,
    pub data: Arc<ProgramData>,
}

impl LoadedData {
    pub(crate) fn new(image: DataImage, memory: &DeviceMemory) -> Result<LoadedData, Error> {
        let data = ProgramData::load(&image, memory).map_err(|e| Error::Memory(e.to_string()))?;
        Ok(LoadedData {
            image,
            data: Arc::new(data),
        })
    }
}

impl KernelManifest {
    /// What the runtime has to know, apart from what code generation decides. Text does not say how much scratch memory it
    /// needs; it gets some if it uses `scratch`.
    pub(crate) fn meta(&self, scratch: bool) -> KernelMeta {
        let mut meta = self.key.meta.clone();
        if self.plan.binds_surfaces && !scratch {
            meta.scratch_bytes = 0;
        }
        meta
    }
}

/// What the runtime has to know of a zebin kernel.
pub(super) fn info_meta(
    info: &KernelInfo,
    valid: &ValidKernel,
    platform: Platform,
    payload: &PayloadPlan,
) -> KernelMeta {
    let env = &info.execution_env;
    let buffers = info.per_thread_memory_buffers.iter();
    let scratch = buffers.filter(|b| b.kind == BufferType::Scratch);
    KernelMeta {
        name: info.name.clone(),
        slm_bytes: env.slm_size,
        scratch_bytes: scratch.map(|b| b.size).max().unwrap_or(0),
        walk_order: walk_order(env.work_group_walk_order_dimensions),
        required_local_size: env.required_work_group_size,
        ..meta(valid, platform, payload)
    }
}

/// The order in which ids are counted. The compiler writes zeros when the source requires, or hints at, groups of one work-item. A hint
/// may be broken: the kernel takes its ids from the payload, so the order of OpenCL serves groups of every size.
fn walk_order(written: Option<[u32; 3]>) -> [u8; 3] {
    match written {
        None | Some([0, 0, 0]) => [0, 1, 2],
        Some(order) => order.map(|d| u8::try_from(d).unwrap_or(u8::MAX)),
    }
}

/// The same of vISA text, which says little.
pub(super) fn text_meta(
    name: &str,
    valid: &ValidKernel,
    platform: Platform,
    payload: &PayloadPlan,
) -> KernelMeta {
    let local = valid.module().int_attr("SLMSize");
    KernelMeta {
        name: name.to_owned(),
        slm_bytes: local.map_or(0, |kb| kb.clamp(0, 128) as u32 * 1024),
        scratch_bytes: TEXT_SCRATCH_BYTES,
        ..meta(valid, platform, payload)
    }
}

fn meta(valid: &ValidKernel, platform: Platform, payload: &PayloadPlan) -> KernelMeta {
    KernelMeta {
        simd: valid.simd() as u16,
        grf_bytes: platform.grf_bytes() as u16,
        payload_bytes: payload.bytes,
        args_offset: payload.args.as_ref().map_or(0, |a| a.offset),
        args_bytes: payload.args.as_ref().map_or(0, |a| a.bytes),
        sr0_bits: sr0_bits(platform),
        eu_threads: platform.eu_threads(),
        ..KernelMeta::default()
    }
}

/// Bits of `%sr0` that stack-call kernels keep when they number hardware threads; the others are squeezed out.
const fn sr0_bits(platform: Platform) -> u32 {
    match platform {
        Platform::Dg2 => 0x3FB7,
        Platform::Pvc => 0x7F37,
        // No kernel of the older ones compacts the number; the later ones have `KernelMeta::eu_threads`.
        Platform::Skl | Platform::Tgllp | Platform::Bmg | Platform::Ptl => u32::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::walk_order;

    #[test]
    fn zeros_are_the_order_of_opencl() {
        assert_eq!(walk_order(Some([0; 3])), [0, 1, 2]);
        assert_eq!(walk_order(Some([1, 0, 2])), [1, 0, 2]);
        assert_eq!(walk_order(Some([0, 0, 1])), [0, 0, 1]);
        assert_eq!(walk_order(None), [0, 1, 2]);
    }
}
