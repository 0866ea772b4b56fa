//! The closed vocabularies of `.ze_info`, each open at the end: a name that is not known is kept, so that a
//! newer compiler's file can be read and the unknown part reported where it matters.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! open_names {
    ($($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal,)+ })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $variant,)+
            /// A name this version does not know, as written.
            Unknown(String),
        }

        impl $name {
            /// The name as `.ze_info` spells it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Unknown(name) => name,
                }
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                match name {
                    $($text => Self::$variant,)+
                    _ => Self::Unknown(name.to_owned()),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(|name| Self::from(name.as_str()))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )+};
}

open_names! {
    /// `arg_type` of a payload argument: what the launcher puts there.
    ArgType {
        GlobalIdOffset = "global_id_offset",
        LocalSize = "local_size",
        EnqueuedLocalSize = "enqueued_local_size",
        GlobalSize = "global_size",
        GroupCount = "group_count",
        WorkDimensions = "work_dimensions",
        ByValue = "arg_byvalue",
        ByPointer = "arg_bypointer",
        BufferAddress = "buffer_address",
        BufferOffset = "buffer_offset",
        BufferSize = "buffer_size",
        PrivateBase = "private_base_stateless",
        PrintfBuffer = "printf_buffer",
        ImplicitArgBuffer = "implicit_arg_buffer",
        ConstBase = "const_base",
        GlobalBase = "global_base",
        AssertBuffer = "assert_buffer",
        SyncBuffer = "sync_buffer",
        RtGlobalBuffer = "rt_global_buffer",
        ScratchPointer = "scratch_pointer",
        IndirectDataPointer = "indirect_data_pointer",
        ImageHeight = "image_height",
        ImageWidth = "image_width",
        ImageDepth = "image_depth",
        ImageChannelDataType = "image_channel_data_type",
        ImageChannelOrder = "image_channel_order",
        ImageArraySize = "image_array_size",
        ImageNumSamples = "image_num_samples",
        ImageNumMipLevels = "image_num_mip_levels",
        ImageSrgbChannelOrder = "image_srgb_channel_order",
        FlatImageBaseOffset = "flat_image_baseoffset",
        FlatImageWidth = "flat_image_width",
        FlatImageHeight = "flat_image_height",
        FlatImagePitch = "flat_image_pitch",
        SamplerAddress = "sampler_address",
        SamplerNormalized = "sampler_normalized",
        SamplerSnapWa = "sampler_snap_wa",
        InlineSampler = "inline_sampler",
        RegionGroupSize = "region_group_size",
        RegionGroupDimension = "region_group_dimension",
        RegionGroupWgCount = "region_group_wg_count",
        RegionGroupBarrierBuffer = "region_group_barrier_buffer",
        VmeMbBlockType = "vme_mb_block_type",
        VmeSubpixelMode = "vme_subpixel_mode",
        VmeSadAdjustMode = "vme_sad_adjust_mode",
        VmeSearchPathType = "vme_search_path_type",
    }
    /// `arg_type` of a per-thread payload argument.
    PerThreadArgType {
        LocalId = "local_id",
        PackedLocalIds = "packed_local_ids",
    }
    /// `addrmode`: how a pointer argument reaches memory.
    MemoryAddressing {
        Stateless = "stateless",
        Stateful = "stateful",
        Bindless = "bindless",
        Slm = "slm",
    }
    /// `addrspace`: what a pointer argument points at.
    MemorySpace {
        Global = "global",
        Local = "local",
        Constant = "constant",
        Image = "image",
        Sampler = "sampler",
    }
    /// `access_type` of a pointer argument.
    AccessType {
        ReadOnly = "readonly",
        WriteOnly = "writeonly",
        ReadWrite = "readwrite",
    }
    /// `image_type` of an image argument.
    ImageType {
        Buffer = "image_buffer",
        D1 = "image_1d",
        D1Array = "image_1d_array",
        D2 = "image_2d",
        D2Array = "image_2d_array",
        D3 = "image_3d",
        Cube = "image_cube",
        CubeArray = "image_cube_array",
        D2Depth = "image_2d_depth",
        D2ArrayDepth = "image_2d_array_depth",
        D2Msaa = "image_2d_msaa",
        D2MsaaDepth = "image_2d_msaa_depth",
        D2ArrayMsaa = "image_2d_array_msaa",
        D2ArrayMsaaDepth = "image_2d_array_msaa_depth",
        D2Media = "image_2d_media",
        D2MediaBlock = "image_2d_media_block",
    }
    /// `sampler_type` of a sampler argument.
    SamplerType {
        Texture = "texture",
        Sample8x8 = "sample_8x8",
    }
    /// `addrmode` of an inline sampler.
    SamplerAddressing {
        None = "none",
        Repeat = "repeat",
        ClampEdge = "clamp_edge",
        ClampBorder = "clamp_border",
        Mirror = "mirror",
    }
    /// `filtermode` of an inline sampler.
    FilterMode {
        Nearest = "nearest",
        Linear = "linear",
    }
    /// `type` of a per-thread memory buffer.
    BufferType {
        Global = "global",
        Scratch = "scratch",
        Slm = "slm",
    }
    /// `usage` of a per-thread memory buffer.
    BufferUsage {
        PrivateSpace = "private_space",
        SpillFillSpace = "spill_fill_space",
        SingleSpace = "single_space",
    }
}
