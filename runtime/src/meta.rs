//! What the runtime has to know about a kernel beside its code.

use crate::bytes::round_line;
use crate::error::LaunchError;
use crate::limits::{
    MAX_FRAME_BYTES, MAX_PAYLOAD_BYTES, MAX_SCRATCH_BYTES, MAX_SIMD, MAX_SLM_BYTES, MAX_STACK_BYTES,
};

/// What fused threads (2k and 2k + 1 of a group) exchange. A thread whose [`crate::abi::ThreadCtx::state`] is one of the last states
/// has stored `bytes` bytes at `offset` of its frame for the other; it finds those of the other after them when it goes on, which it
/// does when both are there.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Exchange {
    /// Offset in the frame.
    pub offset: u32,
    /// Bytes that each thread gives.
    pub bytes: u32,
    /// Line of the vISA text of each place where threads exchange, in the order of their states.
    pub lines: Vec<u32>,
}

/// Metadata of a compiled kernel, filled in by the code that compiled or loaded it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KernelMeta {
    /// Name, for messages.
    pub name: String,
    /// Lanes of a hardware thread: 1, 8, 16 or 32 (any count up to [`MAX_SIMD`] is accepted).
    pub simd: u16,
    /// Bytes of a register: 32 or 64. Informative.
    pub grf_bytes: u16,
    /// Bytes of a thread's frame; the first `regs_bytes` are zeroed at thread start.
    pub frame_bytes: u32,
    /// Bytes of indirect register storage at the start of the frame.
    pub regs_bytes: u32,
    /// Bytes of the frame of the code itself, on the stack of the processor's thread: one for each worker.
    pub stack_bytes: u32,
    /// Number of places where threads wait, 0 for kernels that never do: first the barriers, then the exchanges.
    pub states: u32,
    /// The exchanges, if there are any.
    pub exchange: Option<Exchange>,
    /// A call runs the groups of [`crate::abi::GroupCtx::following`] and [`crate::abi::GroupCtx::rows`] too; kernels that wait never do.
    pub runs_following: bool,
    /// Bytes of shared local memory of a group; [`crate::Arguments::extra_slm`] comes on top.
    pub slm_bytes: u32,
    /// Bytes of scratch memory of a hardware thread.
    pub scratch_bytes: u32,
    /// Dimensions from the fastest to the slowest in which lanes are numbered: a permutation of 0, 1, 2.
    pub walk_order: [u8; 3],
    /// Bytes of cross-thread payload that the code may read.
    pub payload_bytes: u32,
    /// Where in the payload the indirect data is, which kernels read by the address model `arg`.
    pub args_offset: u32,
    /// Bytes of it; 0 for kernels that do not.
    pub args_bytes: u32,
    /// Group size that the kernel was compiled for.
    pub required_local_size: Option<[u32; 3]>,
    /// True when the code reads local ids.
    pub needs_local_ids: bool,
    /// Bits of `%sr0` that number hardware threads, in which thread numbers 0, 1, 2 … are spread
    /// out from the lowest bit: the inverse of the compaction in kernels with stack calls, which
    /// is `0x3FB7` in code for DG2 (bits 3 and 6 drop out of 14) and `0x7F37` for PVC (3, 6 and 7
    /// of 15).
    pub sr0_bits: u32,
    /// Hardware threads of an execution unit, of devices whose code numbers them by three digits instead: the thread in bits 3:0
    /// of `%sr0`, the unit in bits 6:4, and the rest in `%msg0`, which generated code takes from bits 15:8 here. 0 for others.
    pub eu_threads: u8,
    /// Of code with checks of initialisation: it may find something that is not initialised in memory of its groups and threads, or in registers.
    pub suspects: bool,
    /// Of such code: it may reach device memory by addresses that come from memory.
    pub follows_pointers: bool,
    /// Of such code: offsets in the payload of 64-bit values that addresses are computed from. Unless all of them are addresses, it may reach any
    /// device memory, too.
    pub bases: Vec<u32>,
    /// Of code with checks of races: offsets in the payload of the pointers that its writes to device memory go through, and which it does not leave
    /// ([`crate::abi::LaunchCtx::confined_pointees`]). `None` of code that does not know them, or has nothing of it.
    pub written: Option<Vec<u32>>,
}

impl Default for KernelMeta {
    fn default() -> KernelMeta {
        KernelMeta {
            name: String::new(),
            simd: 16,
            grf_bytes: 32,
            frame_bytes: 0,
            regs_bytes: 0,
            stack_bytes: 0,
            states: 0,
            exchange: None,
            runs_following: false,
            slm_bytes: 0,
            scratch_bytes: 0,
            walk_order: [0, 1, 2],
            payload_bytes: 0,
            args_offset: 0,
            args_bytes: 0,
            required_local_size: None,
            needs_local_ids: true,
            sr0_bits: u32::MAX,
            eu_threads: 0,
            suspects: false,
            follows_pointers: false,
            bases: Vec::new(),
            written: None,
        }
    }
}

impl KernelMeta {
    /// Checks every field against its limit.
    ///
    /// # Errors
    /// [`LaunchError::Meta`] naming the field.
    pub fn check(&self) -> Result<(), LaunchError> {
        let limited = [
            ("simd", u64::from(self.simd), u64::from(MAX_SIMD)),
            (
                "frame_bytes",
                self.frame_bytes.into(),
                MAX_FRAME_BYTES.into(),
            ),
            (
                "regs_bytes",
                self.regs_bytes.into(),
                self.frame_bytes.into(),
            ),
            (
                "stack_bytes",
                self.stack_bytes.into(),
                MAX_STACK_BYTES.into(),
            ),
            ("slm_bytes", self.slm_bytes.into(), MAX_SLM_BYTES.into()),
            (
                "scratch_bytes",
                self.scratch_bytes.into(),
                MAX_SCRATCH_BYTES.into(),
            ),
            (
                "payload_bytes",
                self.payload_bytes.into(),
                MAX_PAYLOAD_BYTES as u64,
            ),
        ];
        let bad = |field, value| LaunchError::Meta {
            kernel: self.name.clone(),
            field,
            value,
        };
        for (field, value, limit) in limited {
            if value > limit {
                return Err(bad(field, value));
            }
        }
        if self.simd == 0 {
            return Err(bad("simd", 0));
        }
        let args_end = u64::from(self.args_offset) + u64::from(self.args_bytes);
        if args_end > u64::from(self.payload_bytes) {
            return Err(bad("args_bytes", self.args_bytes.into()));
        }
        if let Some(e) = &self.exchange {
            let end = u64::from(e.offset) + 2 * u64::from(e.bytes);
            if e.offset < self.regs_bytes || end > u64::from(self.frame_bytes) {
                return Err(bad("exchange", end));
            }
            if e.lines.len() > self.states as usize {
                return Err(bad("exchange", e.lines.len() as u64));
            }
        }
        let mut dims = self.walk_order;
        dims.sort_unstable();
        if dims != [0, 1, 2] {
            let [x, y, z] = self.walk_order.map(u64::from);
            return Err(bad("walk_order", x * 100 + y * 10 + z));
        }
        Ok(())
    }

    /// Barriers of the kernel.
    pub fn barriers(&self) -> u32 {
        let exchanges = self.exchange.as_ref().map_or(0, |e| e.lines.len());
        self.states.saturating_sub(exchanges as u32)
    }

    /// Bytes from one thread's frame to the next.
    pub(crate) fn frame_stride(&self) -> u64 {
        round_line(self.frame_bytes.into())
    }

    /// Bytes from one thread's scratch to the next.
    pub(crate) fn scratch_stride(&self) -> u64 {
        round_line(self.scratch_bytes.into())
    }

    /// Hardware threads that `%sr0` tells apart.
    pub(crate) fn thread_numbers(&self) -> u64 {
        match self.eu_threads {
            0 => 1 << self.sr0_bits.count_ones(),
            threads => u64::from(threads) << 11,
        }
    }

    /// `%sr0` of hardware thread `number`: its bits spread over [`KernelMeta::sr0_bits`], or its digits.
    pub(crate) fn sr0(&self, mut number: u32) -> u32 {
        let threads = u32::from(self.eu_threads);
        if let (Some(thread), Some(unit)) =
            (number.checked_rem(threads), number.checked_div(threads))
        {
            return thread | (unit & 7) << 4 | (unit >> 3) << 8;
        }
        let mut places = self.sr0_bits;
        let mut sr0 = 0;
        while places != 0 && number != 0 {
            let place = places & places.wrapping_neg();
            if number & 1 != 0 {
                sr0 |= place;
            }
            number >>= 1;
            places &= !place;
        }
        sr0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The compaction in kernels of DG2 and PVC, as the compiler writes it.
    #[test]
    fn compaction_gives_the_thread_number_back() {
        for (sr0_bits, mask, shift) in [(0x3FB7, 0x3FFF, 1), (0x7F37, 0x7FFF, 2)] {
            let meta = KernelMeta {
                sr0_bits,
                ..KernelMeta::default()
            };
            for number in 0..1 << sr0_bits.count_ones() {
                let x = meta.sr0(number) & mask;
                let x = x & 0x3F | x >> shift & 0xFFFF_FFC0;
                let x = x & 7 | x >> 1 & 0xFFFF_FFF8;
                assert_eq!(x, number);
            }
        }
        assert_eq!(KernelMeta::default().sr0(0xDEAD_BEEF), 0xDEAD_BEEF);
        // As code for bmg and ptl-h computes it.
        for threads in [8, 10] {
            let meta = KernelMeta {
                eu_threads: threads,
                ..KernelMeta::default()
            };
            let threads = u32::from(threads);
            assert_eq!(meta.thread_numbers(), u64::from(threads * 8 * 256));
            for number in 0..meta.thread_numbers() as u32 {
                let (sr0, msg0) = (meta.sr0(number) & 0x7F, meta.sr0(number) >> 8);
                assert_eq!((msg0 << 3 | sr0 >> 4) * threads + (sr0 & 15), number);
            }
        }
    }

    #[test]
    fn bad_fields_are_named() {
        let check = |change: fn(&mut KernelMeta)| {
            let mut meta = KernelMeta::default();
            change(&mut meta);
            match meta.check() {
                Err(LaunchError::Meta { field, .. }) => field,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(check(|m| m.simd = 0), "simd");
        assert_eq!(check(|m| m.simd = 33), "simd");
        assert_eq!(check(|m| m.regs_bytes = 1), "regs_bytes");
        assert_eq!(check(|m| m.stack_bytes = u32::MAX), "stack_bytes");
        assert_eq!(check(|m| m.slm_bytes = u32::MAX), "slm_bytes");
        assert_eq!(check(|m| m.walk_order = [0, 1, 1]), "walk_order");
        assert!(KernelMeta::default().check().is_ok());
    }

    #[test]
    fn exchanges_lie_in_the_frame_and_are_states() {
        let check = |offset, bytes, lines: &[u32]| {
            let meta = KernelMeta {
                frame_bytes: 96,
                regs_bytes: 16,
                states: 3,
                exchange: Some(Exchange {
                    offset,
                    bytes,
                    lines: lines.to_vec(),
                }),
                ..KernelMeta::default()
            };
            meta.check().map(|()| meta.barriers()).ok()
        };
        assert_eq!(check(32, 32, &[7, 8]), Some(1));
        assert_eq!(check(16, 40, &[7, 8, 9]), Some(0));
        assert_eq!(check(16, 41, &[7]), None);
        assert_eq!(check(8, 32, &[7]), None);
        assert_eq!(check(u32::MAX, u32::MAX, &[7]), None);
        assert_eq!(check(32, 32, &[7, 8, 9, 10]), None);
    }
}
