//! The typed `.ze_info`: YAML that tells a launcher what each kernel expects.
//!
//! Keys and names that are not known are tolerated (newer compilers add some with every release); keys that
//! are known must have the right shape. Anchors, aliases, merge keys and duplicate keys are refused: the
//! compiler writes none, and they are how YAML bombs are built.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};

use super::error::ContainerError;
use super::limits;
use super::names::{
    AccessType, ArgType, BufferType, BufferUsage, FilterMode, ImageType, MemoryAddressing,
    MemorySpace, PerThreadArgType, SamplerAddressing, SamplerType,
};
use crate::isa::Versions;
use crate::isa::versions::OVERRIDE;

/// Versions with this number in front differ in what was added only (the specification's `version.md`).
const MAJOR_VERSION: &str = "1";

/// The pseudo-kernel the compiler adds to hold functions whose address is taken; it cannot be launched.
const SYMBOL_TABLE_KERNEL: &str = "Intel_Symbol_Table_Void_Program";

/// All of `.ze_info`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ZeInfo {
    /// Version of the format, for instance `1.20`.
    pub version: Option<String>,
    /// Kernels, in the order of the `.visaasm` sections.
    pub kernels: Vec<KernelInfo>,
    /// Functions other modules may call. Functions local to a kernel are not listed.
    pub functions: Vec<FunctionInfo>,
    /// Source-level names and types of the arguments, by kernel name.
    pub kernels_misc_info: Vec<MiscInfo>,
    /// Program-scope variables the host may address by name.
    pub global_host_access_table: Vec<HostAccess>,
}

/// One kernel.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct KernelInfo {
    /// Kernel name as in the source.
    pub name: String,
    /// What the hardware must provide.
    pub execution_env: ExecutionEnv,
    /// What the cross-thread payload holds. The same kind may occur twice (`local_size` in the header and
    /// again as an argument), and one pointer argument may have a stateful and a stateless entry.
    #[serde(default)]
    pub payload_arguments: Vec<PayloadArgument>,
    /// What the per-thread payload holds.
    #[serde(default)]
    pub per_thread_payload_arguments: Vec<PerThreadArgument>,
    /// Which argument each binding-table index stands for.
    #[serde(default)]
    pub binding_table_indices: Vec<BindingTableEntry>,
    /// Scratch and private memory of each thread.
    #[serde(default)]
    pub per_thread_memory_buffers: Vec<PerThreadBuffer>,
    /// Attributes written in the source.
    #[serde(default)]
    pub user_attributes: UserAttributes,
    /// Samplers initialised in the source.
    #[serde(default)]
    pub inline_samplers: Vec<InlineSampler>,
}

impl KernelInfo {
    /// Whether this is the compiler's holder of address-taken functions and not a kernel to launch.
    pub fn is_symbol_table(&self) -> bool {
        self.name == SYMBOL_TABLE_KERNEL
    }

    /// The payload argument that covers byte `offset` of the cross-thread payload.
    pub fn payload_argument_at(&self, offset: u32) -> Option<&PayloadArgument> {
        self.payload_arguments.iter().find(|argument| {
            offset
                .checked_sub(argument.offset)
                .is_some_and(|within| within < argument.size)
        })
    }

    /// One more than the highest argument index mentioned anywhere.
    pub fn arg_count(&self) -> u32 {
        let payload = self
            .payload_arguments
            .iter()
            .filter_map(|argument| argument.arg_index);
        let bound = self
            .binding_table_indices
            .iter()
            .map(|entry| entry.arg_index);
        payload
            .chain(bound)
            .max()
            .map_or(0, |highest| highest.saturating_add(1))
    }
}

/// `execution_env`. A missing flag is false, a missing number 0 unless it is an option.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
#[expect(
    missing_docs,
    reason = "keys of the vendor's format, which the fields are named after"
)]
pub struct ExecutionEnv {
    /// Lanes of one hardware thread: 8, 16 or 32 (1 for explicitly vectorised kernels).
    pub simd_size: u32,
    /// Registers of one thread on the GPU.
    pub grf_count: u32,
    /// Work-group barriers in use; 0 when the kernel has none.
    pub barrier_count: u32,
    /// Bytes of `__local` variables; `__local` arguments come on top.
    pub slm_size: u32,
    pub required_work_group_size: Option<[u32; 3]>,
    pub required_sub_group_size: u32,
    /// Which dimension local ids run through first, second and third.
    pub work_group_walk_order_dimensions: Option<[u32; 3]>,
    /// Leading bytes of the cross-thread payload that arrive in registers.
    pub inline_data_payload_size: u32,
    pub offset_to_skip_per_thread_data_load: u32,
    pub offset_to_skip_set_ffid_gp: u32,
    pub private_size: u32,
    pub spill_size: u32,
    pub indirect_stateless_count: u32,
    pub eu_thread_count: u32,
    pub hw_preemption_mode: Option<i32>,
    pub thread_scheduling_mode: Option<String>,
    pub slm_alloc_mode: Option<String>,
    pub has_4gb_buffers: bool,
    pub has_device_enqueue: bool,
    pub has_dpas: bool,
    pub has_fence_for_image_access: bool,
    pub has_global_atomics: bool,
    pub has_multi_scratch_spaces: bool,
    pub has_no_stateless_write: bool,
    pub has_stack_calls: bool,
    pub has_printf_calls: bool,
    pub has_indirect_calls: bool,
    pub has_rtcalls: bool,
    pub has_sample: bool,
    pub generate_local_id: bool,
    pub require_disable_eufusion: bool,
    pub require_iab: bool,
    pub require_assert_buffer: bool,
    pub require_sync_buffer: bool,
    pub disable_mid_thread_preemption: bool,
    pub subgroup_independent_forward_progress: bool,
}

/// One entry of `payload_arguments`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PayloadArgument {
    /// What goes there.
    pub arg_type: ArgType,
    /// Offset in the cross-thread payload. Meaningless when `size` is 0.
    #[serde(default)]
    pub offset: u32,
    /// Size in bytes; 0 when the argument reaches the kernel through the binding table only.
    #[serde(default)]
    pub size: u32,
    /// Source argument this belongs to, where it belongs to one.
    pub arg_index: Option<u32>,
    /// How a pointer reaches memory.
    pub addrmode: Option<MemoryAddressing>,
    /// What a pointer points at.
    pub addrspace: Option<MemorySpace>,
    /// What the kernel may do with it.
    pub access_type: Option<AccessType>,
    /// For parts of a structure passed by value: offset in the source argument. Absent means 0.
    pub source_offset: Option<u32>,
    /// Alignment of a `__local` pointer's memory.
    pub slm_alignment: Option<u32>,
    /// Sampler register of a sampler argument.
    pub sampler_index: Option<u32>,
    /// Kind of sampler.
    pub sampler_type: Option<SamplerType>,
    /// Kind of image.
    pub image_type: Option<ImageType>,
    /// Binding-table index, where newer compilers write it here.
    pub bti_value: Option<u32>,
    /// Whether an image may be transformed to another layout.
    #[serde(default)]
    pub image_transformable: bool,
    /// Whether a by-value argument is a pointer inside a structure.
    #[serde(default)]
    pub is_ptr: bool,
    /// Whether a buffer's contents do not matter after the kernel.
    #[serde(default)]
    pub is_pipe: bool,
}

/// One entry of `per_thread_payload_arguments`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PerThreadArgument {
    /// What goes there.
    pub arg_type: PerThreadArgType,
    /// Offset in the per-thread payload.
    #[serde(default)]
    pub offset: u32,
    /// Size in bytes, whole registers.
    pub size: u32,
}

/// One entry of `binding_table_indices`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct BindingTableEntry {
    /// Binding-table index.
    pub bti_value: u32,
    /// The argument bound there.
    pub arg_index: u32,
}

/// One entry of `per_thread_memory_buffers`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PerThreadBuffer {
    /// Where it lives.
    #[serde(rename = "type")]
    pub kind: BufferType,
    /// What it is for.
    pub usage: BufferUsage,
    /// Bytes, for each lane if `is_simt_thread`, else for each hardware thread.
    pub size: u32,
    /// Whether `size` counts one lane.
    #[serde(default)]
    pub is_simt_thread: bool,
    /// Scratch slot, where there are several.
    #[serde(default)]
    pub slot: u32,
}

/// `user_attributes`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
#[expect(missing_docs, reason = "OpenCL's own attribute names")]
pub struct UserAttributes {
    pub intel_reqd_sub_group_size: Option<u32>,
    pub intel_reqd_workgroup_walk_order: Option<[u32; 3]>,
    pub intel_reqd_thread_group_dispatch_size: Option<u32>,
    pub reqd_work_group_size: Option<[u32; 3]>,
    pub work_group_size_hint: Option<[u32; 3]>,
    pub vec_type_hint: Option<String>,
    pub invalid_kernel: Option<String>,
}

/// One entry of `inline_samplers`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct InlineSampler {
    /// Sampler register.
    pub sampler_index: u32,
    /// Addressing outside the image.
    pub addrmode: SamplerAddressing,
    /// Filter.
    pub filtermode: FilterMode,
    /// Whether coordinates run from 0 to 1.
    #[serde(default)]
    pub normalized: bool,
}

/// One entry of `functions`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct FunctionInfo {
    /// Function name.
    pub name: String,
    /// What the hardware must provide.
    #[serde(default)]
    pub execution_env: ExecutionEnv,
}

/// One entry of `kernels_misc_info`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct MiscInfo {
    /// Kernel name.
    pub name: String,
    /// Arguments as the source declares them.
    #[serde(default)]
    pub args_info: Vec<ArgInfo>,
}

/// One source-level argument.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct ArgInfo {
    /// Position.
    pub index: u32,
    /// Name; empty when the source came without names.
    #[serde(default)]
    pub name: String,
    /// `__global`, `__local`, `__constant` or `__private`.
    #[serde(default)]
    pub address_qualifier: String,
    /// `NONE`, `__read_only`, `__write_only` or `__read_write`.
    #[serde(default)]
    pub access_qualifier: String,
    /// Type and its size: `float*;8`. See [`ArgInfo::type_and_size`].
    #[serde(default)]
    pub type_name: String,
    /// `NONE`, or words such as `const restrict volatile`.
    #[serde(default)]
    pub type_qualifiers: String,
}

impl ArgInfo {
    /// `type_name` split into the type as written and its size in bytes.
    pub fn type_and_size(&self) -> (&str, Option<u32>) {
        match self.type_name.rsplit_once(';') {
            Some((name, size)) => (name, size.parse().ok()),
            None => (&self.type_name, None),
        }
    }
}

/// One entry of `global_host_access_table`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct HostAccess {
    /// Symbol in the zebin.
    pub device_name: String,
    /// Name the host uses.
    pub host_name: String,
}

impl ZeInfo {
    /// Reads the text of a `.ze_info` section.
    ///
    /// # Errors
    /// When it is not well-formed, and when its version is not one of `versions`.
    pub fn parse(yaml: &str, versions: Versions) -> Result<Self, ContainerError> {
        let bytes = yaml.len() as u64;
        ContainerError::check_limit(".ze_info bytes", bytes, limits::MAX_ZE_INFO_BYTES as u64)?;
        let info: Self = serde_saphyr::from_str_with_options(yaml, yaml_options())
            .map_err(|error| yaml_error(&error))?;
        info.check(versions)?;
        Ok(info)
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&KernelInfo> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// Source-level arguments of a kernel; empty when the file does not tell.
    pub fn args_of(&self, kernel: &str) -> &[ArgInfo] {
        let found = self
            .kernels_misc_info
            .iter()
            .find(|misc| misc.name == kernel);
        found.map_or(&[], |misc| misc.args_info.as_slice())
    }

    /// What a reader of this structure may rely on.
    fn check(&self, versions: Versions) -> Result<(), ContainerError> {
        if let Some(version) = &self.version
            && versions == Versions::Known
            && version.split('.').next() != Some(MAJOR_VERSION)
        {
            return Err(ContainerError::Unsupported(format!(
                ".ze_info of version {version} is not known; versions {MAJOR_VERSION}.x are supported, and {OVERRIDE} reads it as \
                 one of them"
            )));
        }
        let count = self.kernels.len() as u64;
        ContainerError::check_limit("kernels in .ze_info", count, limits::MAX_KERNELS as u64)?;
        let mut names = HashSet::new();
        for kernel in &self.kernels {
            if !names.insert(kernel.name.as_str()) {
                return Err(kernel.wrong("two kernels have this name".to_owned()));
            }
            kernel.check()?;
        }
        Ok(())
    }
}

impl KernelInfo {
    fn wrong(&self, message: String) -> ContainerError {
        ContainerError::KernelInfo {
            kernel: self.name.clone(),
            message,
        }
    }

    fn check(&self) -> Result<(), ContainerError> {
        if self.name.is_empty() {
            return Err(self.wrong("a kernel must have a name".to_owned()));
        }
        let simd = self.execution_env.simd_size;
        if !matches!(simd, 1 | 8 | 16 | 32) {
            return Err(self.wrong(format!("simd_size is {simd}, expected 1, 8, 16 or 32")));
        }
        let cross = self
            .payload_arguments
            .iter()
            .map(|arg| (arg.offset, arg.size));
        let thread = self
            .per_thread_payload_arguments
            .iter()
            .map(|arg| (arg.offset, arg.size));
        for (offset, size) in cross.chain(thread) {
            let end = u64::from(offset).saturating_add(u64::from(size));
            let limit = u64::from(limits::MAX_PAYLOAD_BYTES);
            ContainerError::check_limit("end of a payload argument", end, limit)?;
        }
        self.check_overlap()
    }

    /// Which of two arguments in the same bytes a kernel gets is not defined, so there must be none.
    fn check_overlap(&self) -> Result<(), ContainerError> {
        let arguments = self.payload_arguments.iter().filter(|arg| arg.size > 0);
        let mut ranges: Vec<_> = arguments.map(|arg| (arg.offset, arg.size)).collect();
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            if let [(first, size), (second, _)] = pair
                && first.saturating_add(*size) > *second
            {
                return Err(self.wrong(format!(
                    "payload arguments at offsets {first} ({size} bytes) and {second} overlap"
                )));
            }
        }
        Ok(())
    }
}

fn yaml_options() -> serde_saphyr::Options {
    let budget = serde_saphyr::budget! {
        max_nodes: limits::MAX_ZE_INFO_NODES,
        max_events: limits::MAX_ZE_INFO_NODES.saturating_mul(2),
        max_depth: limits::MAX_ZE_INFO_DEPTH,
        flow_nesting_limit: limits::MAX_ZE_INFO_DEPTH,
        max_aliases: 0,
        max_anchors: 0,
        max_documents: 1,
        max_inclusion_depth: 0,
        max_total_scalar_bytes: limits::MAX_ZE_INFO_BYTES,
    };
    serde_saphyr::options! {
        budget: budget,
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        with_snippet: false,
    }
}

fn yaml_error(error: &serde_saphyr::Error) -> ContainerError {
    let place = error.location();
    ContainerError::ZeInfo {
        line: place.map_or(0, |place| place.line()),
        column: place.map_or(0, |place| place.column()),
        message: error.without_snippet().to_string(),
    }
}
