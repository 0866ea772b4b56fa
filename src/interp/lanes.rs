//! One value for each channel of an instruction.

/// Channels of the widest instruction.
pub(super) const MAX: usize = 32;

/// Bits of up to 32 channels, each zero-extended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChannelBits([u64; MAX]);

impl ChannelBits {
    /// The same for every channel.
    pub(super) fn all(bits: u64) -> ChannelBits {
        ChannelBits([bits; MAX])
    }

    /// Each channel's own.
    pub(super) fn each(mut f: impl FnMut(usize) -> u64) -> ChannelBits {
        let mut lanes = ChannelBits::default();
        for (i, lane) in lanes.0.iter_mut().enumerate() {
            *lane = f(i);
        }
        lanes
    }

    /// A channel.
    pub(super) fn get(&self, i: usize) -> u64 {
        self.0.get(i).copied().unwrap_or(0)
    }

    /// Changes a channel.
    pub(super) fn set(&mut self, i: usize, bits: u64) {
        if let Some(lane) = self.0.get_mut(i) {
            *lane = bits;
        }
    }
}

/// Numbers of the set bits of a mask, ascending.
pub(super) fn bits(mask: u32) -> impl Iterator<Item = usize> {
    (0..MAX).filter(move |&i| bit(mask, i))
}

/// Bit `i` of a mask.
pub(super) fn bit(mask: u32, i: usize) -> bool {
    i < MAX && mask.wrapping_shr(i as u32) & 1 != 0
}

/// A mask of the first `n` bits.
pub(super) fn first(n: u32) -> u32 {
    if n >= 32 {
        u32::MAX
    } else {
        1u32.wrapping_shl(n).wrapping_sub(1)
    }
}

/// `mask >> n`, 0 for large `n`.
pub(super) fn down(mask: u32, n: u32) -> u32 {
    mask.checked_shr(n).unwrap_or(0)
}

/// `mask << n`, 0 for large `n`.
pub(super) fn up(mask: u32, n: u32) -> u32 {
    mask.checked_shl(n).unwrap_or(0)
}
