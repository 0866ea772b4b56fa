//! The names that `ocloc -device` takes, and the class of devices that each belongs to.
//!
//! A [`Platform`] stands for a class of devices, whose kernels are treated alike. The vendor's compiler has a name for each device and
//! each stepping, and makes code for exactly that one. So a name is kept as it was given.
//!
//! The table is that of two versions, 22.43 and 26.27. Each name was tried with them: the class is the one that the compiler's zebin
//! says it is for.

use std::fmt;
use std::str::FromStr;

use super::Platform;
use Platform::{Bmg, Dg2, Ptl, Pvc, Skl, Tgllp};

/// Every name, by class and then by device; a class's own name is among them.
const DEVICES: &[(&str, Platform)] = &[
    // Gen8 and Gen9.
    ("bdw", Skl),
    ("skl", Skl),
    ("kbl", Skl),
    ("cfl", Skl),
    ("apl", Skl),
    ("bxt", Skl),
    ("glk", Skl),
    ("whl", Skl),
    ("aml", Skl),
    ("cml", Skl),
    // Gen11 and Xe-LP.
    ("icllp", Tgllp),
    ("lkf", Tgllp),
    ("ehl", Tgllp),
    ("jsl", Tgllp),
    ("tgllp", Tgllp),
    ("tgl", Tgllp),
    ("rkl", Tgllp),
    ("adl-s", Tgllp),
    ("rpl-s", Tgllp),
    ("adl-p", Tgllp),
    ("rpl-p", Tgllp),
    ("adl-n", Tgllp),
    ("dg1", Tgllp),
    // Xe-HPG.
    ("acm-g10", Dg2),
    ("ats-m150", Dg2),
    ("dg2", Dg2),
    ("dg2-g10", Dg2),
    ("dg2-g10-a0", Dg2),
    ("dg2-g10-a1", Dg2),
    ("dg2-g10-b0", Dg2),
    ("dg2-g10-c0", Dg2),
    ("acm-g11", Dg2),
    ("ats-m75", Dg2),
    ("dg2-g11", Dg2),
    ("dg2-g11-a0", Dg2),
    ("dg2-g11-b0", Dg2),
    ("dg2-g11-b1", Dg2),
    ("acm-g12", Dg2),
    ("dg2-g12", Dg2),
    ("dg2-g12-a0", Dg2),
    // Xe-LPG and, with matrix instructions, Xe-LPG+ (arl-h). Their zebins name the core family of Xe-HPG, and their compilers use no
    // instruction that Xe-HPG has not.
    ("mtl", Dg2),
    ("mtl-u", Dg2),
    ("mtl-u-a0", Dg2),
    ("mtl-u-b0", Dg2),
    ("mtl-h", Dg2),
    ("mtl-h-a0", Dg2),
    ("mtl-h-b0", Dg2),
    ("mtl-m", Dg2),
    ("mtl-p", Dg2),
    ("mtl-s", Dg2),
    ("arl-s", Dg2),
    ("arl-u", Dg2),
    ("arl-h", Dg2),
    ("arl-h-a0", Dg2),
    ("arl-h-b0", Dg2),
    // Xe-HPC.
    ("pvc", Pvc),
    ("pvc-sdv", Pvc),
    ("pvc-xl-a0", Pvc),
    ("pvc-xl-a0p", Pvc),
    ("pvc-xt-a0", Pvc),
    ("pvc-xt-b0", Pvc),
    ("pvc-xt-b1", Pvc),
    ("pvc-xt-c0", Pvc),
    ("pvc-vg", Pvc),
    ("pvc-xt-c0-vg", Pvc),
    // Xe2.
    ("bmg", Bmg),
    ("bmg-g21", Bmg),
    ("bmg-g21-a0", Bmg),
    ("bmg-g21-a1", Bmg),
    ("bmg-g21-b0", Bmg),
    ("bmg-g31", Bmg),
    ("bmg-g31-a0", Bmg),
    ("lnl-m", Bmg),
    ("lnl-a0", Bmg),
    ("lnl-a1", Bmg),
    ("lnl-b0", Bmg),
    // Xe3.
    ("ptl-h", Ptl),
    ("ptl-h-a0", Ptl),
    ("ptl-h-b0", Ptl),
    ("ptl", Ptl),
    ("ptl-u", Ptl),
    ("ptl-u-a0", Ptl),
    ("wcl", Ptl),
    ("wcl-a0", Ptl),
    ("wcl-a1", Ptl),
    ("nvl-s", Ptl),
    ("nvl-s-a0", Ptl),
    ("nvl-s-b0", Ptl),
    ("nvl-hx", Ptl),
    ("nvl-ul", Ptl),
    ("nvl-u", Ptl),
    ("nvl-u-a0", Ptl),
    ("nvl-u-a1", Ptl),
    ("nvl-u-b0", Ptl),
    ("nvl-h", Ptl),
];

/// Names that people use and no compiler knows, with the compiler's.
const SHORT: &[(&str, &str)] = &[("lnl", "lnl-m")];

/// Names that the compiler takes and this program does not.
const REFUSED: &[(&str, &[&str])] = &[
    (
        "is for Xe3P, which is not supported",
        &[
            "nvl-p", "nvl-p-a0", "nvl-p-b0", "cri", "cri-a0", "xe3p", "xe3p-lpg", "xe3p-xpc",
        ],
    ),
    // It has macros of doubles (`sqrtm`, `divm`) that Xe-HPG has not.
    (
        "is for Xe-HP, which is not supported",
        &["xe_hp_sdv", "xe-hp"],
    ),
    (
        "is several devices; name one",
        &[
            "gen8",
            "gen9",
            "gen11",
            "gen12lp",
            "xe",
            "xe-lp",
            "xe-hpg",
            "xe-hpc",
            "xe-hpc-vg",
            "xe-lpg",
            "xe-lpgplus",
            "xe2",
            "xe2-hpg",
            "xe2-lpg",
            "xe3",
            "xe3-lpg",
        ],
    ),
];

/// A device, as `ocloc -device` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceName {
    name: &'static str,
    platform: Platform,
}

impl DeviceName {
    /// Every name, oldest class first.
    pub fn all() -> impl Iterator<Item = DeviceName> {
        DEVICES
            .iter()
            .map(|&(name, platform)| DeviceName { name, platform })
    }

    /// What to give `ocloc -device`.
    pub const fn as_str(self) -> &'static str {
        self.name
    }

    /// The class.
    pub const fn platform(self) -> Platform {
        self.platform
    }
}

/// The name that stands for the class.
impl From<Platform> for DeviceName {
    fn from(platform: Platform) -> Self {
        DeviceName {
            name: platform.device(),
            platform,
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let long = SHORT.iter().find(|(short, _)| *short == given);
        let name = long.map_or(given, |(_, long)| long);
        if let Some(found) = DeviceName::all().find(|device| device.name == name) {
            return Ok(found);
        }
        if let Some((why, _)) = REFUSED.iter().find(|(_, names)| names.contains(&name)) {
            return Err(format!("`{name}` {why}: {}", expected()));
        }
        // `arl` stands for devices that differ.
        let longer: Vec<_> = DeviceName::all()
            .map(DeviceName::as_str)
            .filter(|known| {
                known
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with('-'))
            })
            .collect();
        let meant = match longer.as_slice() {
            [] => String::new(),
            longer => format!(" (there are {})", longer.join(", ")),
        };
        Err(format!("unknown device `{name}`{meant}: {}", expected()))
    }
}

/// What may stand instead of a wrong name.
fn expected() -> String {
    let main = Platform::ALL.map(Platform::device);
    let (last, others) = main.split_last().unwrap_or((&"", &[]));
    format!(
        "expected {} or {last}, or another name that ocloc has for such a device (`visa-jit ocloc` lists them)",
        others.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn platform(name: &str) -> Platform {
        name.parse::<DeviceName>().unwrap().platform()
    }

    #[test]
    fn every_name_is_there_once() {
        let refused = REFUSED.iter().flat_map(|(_, names)| names.iter().copied());
        let short = SHORT.iter().map(|(short, _)| *short);
        let known = DeviceName::all().map(DeviceName::as_str);
        let all: Vec<_> = known.chain(refused).chain(short).collect();
        let once: BTreeSet<_> = all.iter().collect();
        assert_eq!(all.len(), once.len());
    }

    #[test]
    fn a_name_is_kept_as_it_was_given() {
        for device in DeviceName::all() {
            assert_eq!(device.as_str().parse(), Ok(device));
            assert_eq!(device.to_string(), device.as_str());
        }
        let lnl: DeviceName = "lnl".parse().unwrap();
        assert_eq!(lnl.as_str(), "lnl-m");
    }

    /// Results name the class, and what is read back is the class.
    #[test]
    fn classes_have_a_name_of_their_own() {
        for platform in Platform::ALL {
            assert_eq!(
                platform.device().parse(),
                Ok(DeviceName::from(platform)),
                "{platform}"
            );
        }
    }

    #[test]
    fn devices_are_in_their_class() {
        for (class, names) in [
            (Skl, &["kbl", "cfl", "glk"][..]),
            (Tgllp, &["rkl", "adl-s", "adl-p", "dg1", "icllp"]),
            (Dg2, &["acm-g11", "acm-g12", "dg2", "mtl-h", "mtl", "arl-h"]),
            (Pvc, &["pvc-sdv", "pvc-xt-c0", "pvc-vg"]),
            (Bmg, &["bmg-g21", "lnl-m", "lnl"]),
            (Ptl, &["ptl", "ptl-u", "wcl", "nvl-s"]),
        ] {
            for name in names {
                assert_eq!(platform(name), class, "{name}");
            }
        }
    }

    #[test]
    fn what_is_refused_says_why() {
        let error = |name: &str| name.parse::<DeviceName>().unwrap_err();
        for name in ["cri", "nvl-p", "xe3p"] {
            assert!(error(name).starts_with(&format!("`{name}` is for Xe3P")));
        }
        assert!(error("xe_hp_sdv").starts_with("`xe_hp_sdv` is for Xe-HP, "));
        assert!(error("xe-hpg").starts_with("`xe-hpg` is several devices"));
        assert!(error("arl").contains("(there are arl-s, arl-u, arl-h, arl-h-a0"));
        let text = error("gen13");
        assert!(text.starts_with(
            "unknown device `gen13`: expected skl, tgllp, acm-g10, pvc, bmg or ptl-h, or"
        ));
        assert!(text.contains("`visa-jit ocloc`"));
        assert!(
            error("").starts_with("unknown device ``: "),
            "{}",
            error("")
        );
    }
}
