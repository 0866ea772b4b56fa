//! Execution size and execution-mask control of an instruction.

use std::fmt;

/// Number of channels an instruction works on: 1, 2, 4, 8, 16 or 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecSize(u8);

impl ExecSize {
    /// Accepts 1, 2, 4, 8, 16, 32.
    pub const fn new(lanes: u32) -> Option<ExecSize> {
        match lanes {
            1 | 2 | 4 | 8 | 16 | 32 => Some(ExecSize(lanes as u8)),
            _ => None,
        }
    }

    /// One channel.
    pub const ONE: ExecSize = ExecSize(1);

    /// Number of channels.
    pub const fn lanes(self) -> u32 {
        self.0 as u32
    }
}

/// `M1` … `M8`, each with a no-mask form (docs/visa.md, "Lanes and masks").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExecMask {
    /// 0 for M1 … 7 for M8.
    pub quarter: u8,
    /// `_NM`: the execution mask is treated as all ones.
    pub no_mask: bool,
}

impl ExecMask {
    /// `M1`.
    pub const M1: ExecMask = ExecMask {
        quarter: 0,
        no_mask: false,
    };
    /// `M1_NM`.
    pub const M1_NM: ExecMask = ExecMask {
        quarter: 0,
        no_mask: true,
    };

    /// First dispatch lane that the instruction covers: `4 * (k - 1)` for `Mk`.
    pub const fn first_lane(self) -> u32 {
        4 * self.quarter as u32
    }
}

impl fmt::Display for ExecMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "M{}{}",
            self.quarter + 1,
            if self.no_mask { "_NM" } else { "" }
        )
    }
}

/// The `(Mk, N)` in front of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exec {
    /// Mask control.
    pub mask: ExecMask,
    /// Channel count.
    pub size: ExecSize,
}

impl Exec {
    /// `(M1_NM, 1)`.
    pub const SCALAR: Exec = Exec {
        mask: ExecMask::M1_NM,
        size: ExecSize::ONE,
    };

    /// Number of channels.
    pub const fn lanes(self) -> u32 {
        self.size.lanes()
    }
}

impl fmt::Display for Exec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.mask, self.size.lanes())
    }
}
