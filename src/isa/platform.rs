//! Target platforms as far as they change the meaning of a program.

use std::fmt;
use std::str::FromStr;

/// A GPU generation. Decides the register size and which opcodes exist.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Platform {
    /// Gen9 (Skylake).
    Skl,
    /// Gen12 LP (Tiger Lake).
    Tgllp,
    /// Xe-HPG (Alchemist, `acm-g10`).
    Dg2,
    /// Xe-HPC (Ponte Vecchio, XT stepping).
    Pvc,
}

impl Platform {
    /// Lowest bit of the number of a surface's state in the word that legacy messages find bindless surfaces by.
    pub const fn bindless_shift(self) -> u32 {
        match self {
            Platform::Skl | Platform::Tgllp => 12,
            Platform::Dg2 | Platform::Pvc => 6,
        }
    }

    /// Every platform, oldest first.
    pub const ALL: [Platform; 4] = [Platform::Skl, Platform::Tgllp, Platform::Dg2, Platform::Pvc];

    /// Bytes in one general register: 32, or 64 on PVC.
    pub const fn grf_bytes(self) -> u32 {
        match self {
            Platform::Pvc => 64,
            _ => 32,
        }
    }

    /// Minimum lane count to which LSC payload components are padded (VISA.md 2.6). Devices before LSC have messages of
    /// 8 lanes that are the same otherwise.
    pub const fn lsc_min_lanes(self) -> u32 {
        match self {
            Platform::Pvc => 16,
            Platform::Skl | Platform::Tgllp | Platform::Dg2 => 8,
        }
    }

    /// The name `ocloc -device` knows it by.
    pub const fn device(self) -> &'static str {
        match self {
            Platform::Skl => "skl",
            Platform::Tgllp => "tgllp",
            Platform::Dg2 => "acm-g10",
            Platform::Pvc => "pvc",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.device())
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "skl" => Ok(Platform::Skl),
            "tgllp" => Ok(Platform::Tgllp),
            "acm-g10" | "dg2" => Ok(Platform::Dg2),
            "pvc" => Ok(Platform::Pvc),
            _ => Err(format!(
                "unknown device `{s}`: expected skl, tgllp, acm-g10 or pvc"
            )),
        }
    }
}
