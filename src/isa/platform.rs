//! Target platforms as far as they change the meaning of a program.

use std::fmt;
use std::str::FromStr;

use super::DeviceName;

/// A class of GPUs whose kernels are treated alike. Decides the register size and which opcodes exist.
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
    /// Xe2 (Battlemage and Lunar Lake, `bmg` and `lnl-m`).
    Bmg,
    /// Xe3 (Panther Lake, `ptl-h`).
    Ptl,
}

impl Platform {
    /// Lowest bit of the number of a surface's state in the word that legacy messages find bindless surfaces by.
    pub const fn bindless_shift(self) -> u32 {
        match self {
            Platform::Skl | Platform::Tgllp => 12,
            Platform::Dg2 | Platform::Pvc | Platform::Bmg | Platform::Ptl => 6,
        }
    }

    /// Every platform, oldest first.
    pub const ALL: [Platform; 6] = [
        Platform::Skl,
        Platform::Tgllp,
        Platform::Dg2,
        Platform::Pvc,
        Platform::Bmg,
        Platform::Ptl,
    ];

    /// Whether it is Xe-HPC or later: registers of 64 bytes, and messages and instructions of 16 lanes.
    pub const fn has_wide_registers(self) -> bool {
        match self {
            Platform::Skl | Platform::Tgllp | Platform::Dg2 => false,
            Platform::Pvc | Platform::Bmg | Platform::Ptl => true,
        }
    }

    /// Whether it has the messages of the load/store cache (`lsc_*`).
    pub const fn has_lsc(self) -> bool {
        match self {
            Platform::Skl | Platform::Tgllp => false,
            Platform::Dg2 | Platform::Pvc | Platform::Bmg | Platform::Ptl => true,
        }
    }

    /// Bytes in one general register: 32, or 64 on PVC and later.
    pub const fn grf_bytes(self) -> u32 {
        if self.has_wide_registers() { 64 } else { 32 }
    }

    /// Minimum lane count to which LSC payload components are padded (docs/visa.md, "Memory"). Devices before LSC have messages of
    /// 8 lanes that are the same otherwise.
    pub const fn lsc_min_lanes(self) -> u32 {
        if self.has_wide_registers() { 16 } else { 8 }
    }

    /// Hardware threads of an execution unit, where code numbers them by unit and thread: Xe2 and later. 0 elsewhere.
    pub const fn eu_threads(self) -> u8 {
        match self {
            Platform::Bmg => 8,
            Platform::Ptl => 10,
            Platform::Skl | Platform::Tgllp | Platform::Dg2 | Platform::Pvc => 0,
        }
    }

    /// The name `ocloc -device` knows the device by that stands for the class; [`DeviceName`] has the others.
    pub const fn device(self) -> &'static str {
        match self {
            Platform::Skl => "skl",
            Platform::Tgllp => "tgllp",
            Platform::Dg2 => "acm-g10",
            Platform::Pvc => "pvc",
            Platform::Bmg => "bmg",
            Platform::Ptl => "ptl-h",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.device())
    }
}

/// By any name of one of its devices.
impl FromStr for Platform {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        s.parse().map(DeviceName::platform)
    }
}
