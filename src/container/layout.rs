//! Where launch arguments and local ids sit in the registers a kernel starts with.
//!
//! A thread's registers start with `r0`, then the per-thread payload (local ids), then the cross-thread
//! payload that `.ze_info` offsets count from. `.input` directives name byte offsets in this space; this
//! module goes from one to the other. It says where things are, not what to put there.

use super::Device;
use super::error::ContainerError;
use super::names::PerThreadArgType;
use super::ze_info::KernelInfo;

/// Bytes of one local id.
const ID_BYTES: u32 = 2;

/// How a kernel's local ids arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocalIds {
    /// They do not.
    None,
    /// One block of `block_bytes` for each of `dims` dimensions, x first, 16 bits a lane from lane 0 up.
    PerDimension {
        /// Dimensions present, 1 to 3.
        dims: u32,
        /// Distance from one dimension to the next; whole registers.
        block_bytes: u32,
    },
    /// Three 16-bit words x, y, z for the single lane of an explicitly vectorised kernel.
    Packed,
}

/// The register layout of one kernel on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadLayout {
    /// Bytes of a register.
    pub grf_bytes: u32,
    /// Lanes of a hardware thread.
    pub simd: u32,
    /// Where the per-thread payload starts.
    pub per_thread_offset: u32,
    /// Its size in bytes, whole registers; 0 if there is none.
    pub per_thread_size: u32,
    /// How local ids arrive.
    pub local_ids: LocalIds,
    /// Where byte 0 of the cross-thread payload lands.
    pub cross_thread_offset: u32,
    /// Bytes of cross-thread payload in use.
    pub cross_thread_size: u32,
    /// Leading payload bytes that the hardware places itself (`inline_data_payload_size`); 0 for none.
    pub inline_bytes: u32,
    /// Register bytes skipped after the inline part: not 0 only where the inline data does not fill its
    /// registers (32 bytes in a 64-byte register).
    pub inline_gap: u32,
}

/// What a range of start registers holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayloadSource {
    /// Part of `r0`.
    R0 {
        /// First byte within it.
        offset: u32,
    },
    /// The register before the payload of pre-Xe-HP kernels without local ids; nothing is in it.
    Unused,
    /// Local ids of one dimension.
    LocalId {
        /// 0, 1, 2 for x, y, z.
        dim: u32,
        /// Lane of the first id.
        first_lane: u32,
        /// Ids of real lanes in the range; the rest of it is padding.
        lanes: u32,
    },
    /// Packed local ids of a one-lane kernel.
    PackedLocalIds {
        /// Dimension of the first word.
        first_dim: u32,
        /// Words.
        count: u32,
    },
    /// Cross-thread payload.
    CrossThread {
        /// Offset in the sense of `.ze_info`.
        payload_offset: u32,
    },
}

impl PayloadLayout {
    /// The layout of `info` on `device`.
    ///
    /// Fails when the sizes in `info` cannot be those of a kernel for this device.
    pub fn new(info: &KernelInfo, device: Device) -> Result<Self, ContainerError> {
        let grf_bytes = device.grf_bytes();
        let simd = info.execution_env.simd_size;
        let wrong = |message| ContainerError::KernelInfo {
            kernel: info.name.clone(),
            message,
        };
        let (local_ids, per_thread_size) = per_thread(info, simd, grf_bytes).map_err(wrong)?;
        let registers_before = match (per_thread_size, device >= Device::Dg2) {
            (0, false) => 2_u32,
            _ => 1,
        };
        let sizes = info.payload_arguments.iter().filter(|arg| arg.size > 0);
        let cross_thread_size = sizes
            .map(|arg| arg.offset.saturating_add(arg.size))
            .max()
            .unwrap_or(0);
        let inline_bytes = info.execution_env.inline_data_payload_size;
        let inline_gap = inline_bytes
            .checked_next_multiple_of(grf_bytes)
            .and_then(|end| end.checked_sub(inline_bytes));
        let inline_gap = inline_gap
            .ok_or_else(|| wrong(format!("inline_data_payload_size is {inline_bytes}")))?;
        Ok(Self {
            grf_bytes,
            simd,
            per_thread_offset: grf_bytes,
            per_thread_size,
            local_ids,
            cross_thread_offset: grf_bytes
                .saturating_mul(registers_before)
                .saturating_add(per_thread_size),
            cross_thread_size,
            inline_bytes,
            inline_gap,
        })
    }

    /// Where byte `payload_offset` of the cross-thread payload lands, as `.input` counts. `None` on overflow.
    pub fn grf_offset_of(&self, payload_offset: u32) -> Option<u32> {
        let gap = if payload_offset < self.inline_bytes {
            0
        } else {
            self.inline_gap
        };
        self.cross_thread_offset
            .checked_add(payload_offset)?
            .checked_add(gap)
    }

    /// What the `size` bytes of start registers at `offset` hold; `None` if they are not one thing, or lie
    /// beyond the payload.
    pub fn classify(&self, offset: u32, size: u32) -> Option<PayloadSource> {
        let end = offset.checked_add(size)?;
        if end <= self.grf_bytes {
            return Some(PayloadSource::R0 { offset });
        }
        if let Some(within) = offset.checked_sub(self.cross_thread_offset) {
            return self.classify_cross_thread(within, size);
        }
        if end > self.cross_thread_offset {
            return None;
        }
        let within = offset.checked_sub(self.per_thread_offset)?;
        match self.local_ids {
            LocalIds::None => Some(PayloadSource::Unused),
            LocalIds::PerDimension { block_bytes, .. } => {
                self.classify_local_id(within, size, block_bytes)
            }
            LocalIds::Packed => {
                let (first_dim, odd) =
                    (within.checked_div(ID_BYTES)?, within.checked_rem(ID_BYTES)?);
                let count = size
                    .checked_div(ID_BYTES)?
                    .min(3_u32.saturating_sub(first_dim));
                (odd == 0 && count > 0)
                    .then_some(PayloadSource::PackedLocalIds { first_dim, count })
            }
        }
    }

    /// `within` counts from the start of the per-thread payload.
    fn classify_local_id(&self, within: u32, size: u32, block_bytes: u32) -> Option<PayloadSource> {
        let dim = within.checked_div(block_bytes)?;
        let in_block = within.checked_rem(block_bytes)?;
        if in_block.checked_add(size)? > block_bytes || in_block.checked_rem(ID_BYTES)? != 0 {
            return None;
        }
        let first_lane = in_block.checked_div(ID_BYTES)?;
        let lanes = size
            .checked_div(ID_BYTES)?
            .min(self.simd.saturating_sub(first_lane));
        (lanes > 0).then_some(PayloadSource::LocalId {
            dim,
            first_lane,
            lanes,
        })
    }

    /// `within` counts registers from the start of the cross-thread part, the gap included.
    fn classify_cross_thread(&self, within: u32, size: u32) -> Option<PayloadSource> {
        let end = within.checked_add(size)?;
        let resume = self.inline_bytes.checked_add(self.inline_gap)?;
        let payload_offset = if end <= self.inline_bytes || self.inline_gap == 0 {
            within
        } else if within >= resume {
            within.checked_sub(self.inline_gap)?
        } else {
            return None;
        };
        // An input may be declared wider than its argument, up to the end of the last register.
        let total = self
            .cross_thread_size
            .checked_next_multiple_of(self.grf_bytes)?;
        let inside = payload_offset.checked_add(size)? <= total;
        inside.then_some(PayloadSource::CrossThread { payload_offset })
    }
}

/// Local ids and the size of the per-thread payload.
fn per_thread(info: &KernelInfo, simd: u32, grf_bytes: u32) -> Result<(LocalIds, u32), String> {
    let argument = match info.per_thread_payload_arguments.as_slice() {
        [] => return Ok((LocalIds::None, 0)),
        [argument] => argument,
        more => {
            return Err(format!(
                "{} per-thread arguments, expected at most one",
                more.len()
            ));
        }
    };
    if argument.offset != 0 {
        return Err(format!(
            "the per-thread argument is at offset {}, expected 0",
            argument.offset
        ));
    }
    let size = argument.size;
    match &argument.arg_type {
        PerThreadArgType::PackedLocalIds => {
            let whole = size
                .checked_next_multiple_of(grf_bytes)
                .filter(|_| simd == 1 && size >= 6);
            let whole = whole.ok_or(format!("packed local ids of {size} bytes with SIMD{simd}"))?;
            Ok((LocalIds::Packed, whole))
        }
        PerThreadArgType::LocalId => {
            let block_bytes = simd.saturating_mul(ID_BYTES).next_multiple_of(grf_bytes);
            match (size.checked_div(block_bytes), size.checked_rem(block_bytes)) {
                (Some(dims @ 1..=3), Some(0)) => {
                    Ok((LocalIds::PerDimension { dims, block_bytes }, size))
                }
                _ => Err(format!(
                    "local ids of {size} bytes with SIMD{simd} are not 1 to 3 blocks of {block_bytes} bytes; \
                     is the kernel for a device with {grf_bytes}-byte registers?"
                )),
            }
        }
        PerThreadArgType::Unknown(name) => Err(format!("unknown per-thread argument `{name}`")),
    }
}
