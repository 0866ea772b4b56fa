//! Which GPU a zebin was compiled for, from what the file itself says.

use super::Device;
use super::names::PerThreadArgType;
use super::ze_info::KernelInfo;
use super::zebin::{Target, Zebin};

/// `e_machine` of files whose device is in the notes.
const EM_INTELGT: u16 = 205;

/// The device, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inference {
    /// `None` when the file does not tell, or contradicts itself: ask the person.
    pub device: Option<Device>,
    /// One clause: the evidence, or what is missing.
    pub reason: String,
}

impl Inference {
    fn of(device: Device, reason: impl Into<String>) -> Self {
        Self {
            device: Some(device),
            reason: reason.into(),
        }
    }

    fn none(reason: impl Into<String>) -> Self {
        Self {
            device: None,
            reason: reason.into(),
        }
    }
}

/// Derives the device from the compatibility notes, checked against the kernels' payload sizes.
///
/// A [`Device`] stands for a class: Gen8 and Gen9 count as `skl`, Gen11 and other Gen12 LP parts as `tgllp`,
/// other Xe-HP and Xe-HPG parts as `acm-g10`, Xe2 parts as `bmg`, Xe3 parts as `ptl-h`. Later ones are in no class.
pub fn infer_device(zebin: &Zebin) -> Inference {
    let told = from_target(&zebin.target);
    let evidence = || {
        zebin
            .kernels
            .iter()
            .filter_map(|kernel| Some((kernel, grf_bytes(&kernel.info)?)))
    };
    let Some(device) = told.device else {
        // Of a device that is later than this program nothing is known.
        let number = |n: Option<u32>| n.is_some_and(|n| n != 0);
        if number(zebin.target.gfx_core) || number(zebin.target.product_family) {
            return told;
        }
        return match evidence().next() {
            Some((kernel, grf)) => from_register_size(
                &zebin.kernels.iter().map(|k| &k.info).collect::<Vec<_>>(),
                &kernel.name,
                grf,
            ),
            None => told,
        };
    };
    match evidence().find(|(_, grf)| *grf != device.grf_bytes()) {
        Some((kernel, grf)) => Inference::none(format!(
            "{}, but the local ids of kernel `{}` are laid out for {grf}-byte registers",
            told.reason, kernel.name
        )),
        None => told,
    }
}

/// The register size that a kernel's local ids prove, if they do: three dimensions of at most 16 lanes take
/// 96 bytes with 32-byte registers and 192 with 64-byte ones; 32 lanes take 192 with both.
fn grf_bytes(info: &KernelInfo) -> Option<u32> {
    let ids = info.per_thread_payload_arguments.iter();
    let size = ids
        .filter(|arg| arg.arg_type == PerThreadArgType::LocalId)
        .map(|arg| arg.size)
        .next()?;
    match (info.execution_env.simd_size, size) {
        (8 | 16, 32 | 96) => Some(32),
        (8 | 16, 192) => Some(64),
        _ => None,
    }
}

fn from_target(target: &Target) -> Inference {
    if let Some(core) = target.gfx_core.filter(|&core| core != 0) {
        return class(
            by_core(core),
            format!(".note.intelgt.compat names core family {core:#x}"),
        );
    }
    if let Some(product) = target.product_family.filter(|&product| product != 0) {
        return class(
            by_product(product),
            format!(".note.intelgt.compat names product family {product}"),
        );
    }
    // Before the notes existed, e_machine held the product family and e_type one of the vendor's own values.
    if target.elf_machine != EM_INTELGT && target.elf_type >= 0xff00 {
        let product = u32::from(target.elf_machine);
        return class(
            by_product(product),
            format!("e_machine names product family {product}"),
        );
    }
    Inference::none("the file has no .note.intelgt.compat naming a device")
}

fn class(device: Option<Device>, reason: String) -> Inference {
    match device {
        Some(device) => Inference::of(device, reason),
        None => {
            let known = Device::ALL.map(Device::device).join(", ");
            Inference::none(format!(
                "{reason}, which is no known device; classes of known ones are {known}"
            ))
        }
    }
}

/// Numbers of the driver's PRODUCT_FAMILY. Those between Gen9 and DG1 were assigned twice (29 is Tiger Lake
/// to this compiler, 33 to newer ones), but all of them are one class here.
fn by_product(product: u32) -> Option<Device> {
    match product {
        16..=23 => Some(Device::Skl),
        24..=38 | 1210 => Some(Device::Tgllp),
        1250 | 1270 | 1272 | 1273 => Some(Device::Dg2),
        1271 => Some(Device::Pvc),
        _ => None,
    }
}

/// Numbers of the driver's GFXCORE_FAMILY.
fn by_core(core: u32) -> Option<Device> {
    match core {
        11 | 12 => Some(Device::Skl),
        13..=18 => Some(Device::Tgllp),
        0x0c05 | 0x0c07 => Some(Device::Dg2),
        0x0c08 => Some(Device::Pvc),
        0x0c09 => Some(Device::Bmg),
        0x1e00 => Some(Device::Ptl),
        _ => None,
    }
}

/// Without notes: the register size is proven by one kernel; the class may follow from it.
fn from_register_size(kernels: &[&KernelInfo], proof: &str, grf: u32) -> Inference {
    let shown = format!("the local ids of kernel `{proof}` are laid out for {grf}-byte registers");
    let xe_hp = |info: &&KernelInfo| {
        let env = &info.execution_env;
        env.inline_data_payload_size > 0 || env.offset_to_skip_per_thread_data_load > 0
    };
    match grf {
        64 => Inference::none(format!("{shown}, which pvc, bmg and ptl-h have")),
        _ if kernels.iter().any(xe_hp) => Inference::of(
            Device::Dg2,
            format!("{shown}, and arguments are loaded as on Xe-HP and later"),
        ),
        _ => Inference::none(format!("{shown}, which skl and tgllp both have")),
    }
}
