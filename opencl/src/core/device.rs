//! Devices: classes of Intel's GPUs, as programs see them.

use std::sync::OnceLock;

use visa_jit::backend::Checks;
use visa_jit::isa::{DeviceName, Platform as Class};

use super::compiler;
use super::engine::{Settings, engine, variable};
use super::report;

/// Chooses devices, by the names that `ocloc -device` takes, with commas between.
pub const DEVICE_ENV: &str = "VISA_JIT_DEVICE";

/// A device.
pub struct Device {
    /// What the compiler calls it.
    pub name: DeviceName,
    /// How its kernels are treated.
    pub class: Class,
}

/// Bytes of device memory of all devices: three quarters of the machine's, or half of the addresses that there are for it, since gaps
/// take some. What checks keep of each byte is part of it.
pub fn memory_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let info = rustix::system::sysinfo();
        let all = info.totalram as u64 * u64::from(info.mem_unit.max(1));
        let addresses = engine().map_or(u64::MAX, |engine| engine.memory().capacity());
        let checks = Settings::get().check.clone();
        let shadow = checks.map_or(0, Checks::shadow_bytes);
        // Whole pages.
        (all / 4 * 3 / (1 + shadow)).min(addresses / 2) & !0xFFF
    })
}

/// Bytes of the largest buffer: a quarter of the memory, and less than 32-bit offsets reach.
pub fn max_alloc_bytes() -> u64 {
    (memory_bytes() / 4).min((4 << 30) - 4096)
}

/// The devices that the environment asks for; else one that has doubles and images, of the compiler that there is.
pub fn asked_for() -> Vec<Device> {
    let names = variable(DEVICE_ENV).unwrap_or_else(|| usual().to_owned());
    let mut devices = Vec::new();
    for name in names.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        match name.parse::<DeviceName>() {
            Ok(name) => devices.push(Device {
                class: name.platform(),
                name,
            }),
            Err(what) => report::problem(DEVICE_ENV, &what),
        }
    }
    devices
}

/// The name of the default device.
fn usual() -> &'static str {
    let offers = |name: &str| {
        let about = compiler::about();
        about.is_some_and(|about| about.devices.iter().any(|device| device == name))
    };
    if offers("bmg") { "bmg" } else { "skl" }
}

impl Device {
    /// What programs show to people.
    pub fn title(&self) -> String {
        format!("Intel(R) Graphics {} [visa-jit]", self.name)
    }

    /// Whether kernels may compute with doubles.
    pub fn has_doubles(&self) -> bool {
        !matches!(self.class, Class::Tgllp | Class::Dg2)
    }

    /// Whether kernels may have images. The compiler for pvc drops what reads them.
    pub fn has_images(&self) -> bool {
        self.class != Class::Pvc
    }

    /// Lanes that hardware threads may have.
    pub fn sub_group_sizes(&self) -> &'static [usize] {
        match self.class {
            Class::Skl | Class::Tgllp | Class::Dg2 => &[8, 16, 32],
            Class::Pvc | Class::Bmg | Class::Ptl => &[16, 32],
        }
    }

    /// Bytes of local memory of a work-group.
    pub fn local_bytes(&self) -> u64 {
        match self.class {
            Class::Pvc | Class::Bmg | Class::Ptl => 128 << 10,
            Class::Skl | Class::Tgllp | Class::Dg2 => 64 << 10,
        }
    }

    /// Work-items of a work-group.
    pub fn max_group(&self) -> usize {
        match self.class {
            Class::Skl => 256,
            Class::Tgllp => 512,
            Class::Dg2 | Class::Pvc | Class::Bmg | Class::Ptl => 1024,
        }
    }

    /// The PCI id of a device of this class.
    pub fn device_id(&self) -> u32 {
        match self.class {
            Class::Skl => 0x1912,
            Class::Tgllp => 0x9A49,
            Class::Dg2 => 0x56A0,
            Class::Pvc => 0x0BD5,
            Class::Bmg => 0xE20B,
            Class::Ptl => 0xB080,
        }
    }

    /// The version of the hardware, as `cl_intel_device_attribute_query` packs it: 10, 8, 8 that are 0, and 6 bits. Those
    /// with a name in Intel's headers for compiling ahead of time have that; skl is of the ninth generation, 9.0.9.
    pub fn ip_version(&self) -> u32 {
        let (architecture, release, revision) = match self.class {
            Class::Skl => (9, 0, 9),
            Class::Tgllp => (12, 0, 0),
            Class::Dg2 => (12, 55, 8),
            Class::Pvc => (12, 60, 7),
            Class::Bmg => (20, 1, 0),
            Class::Ptl => (30, 0, 4),
        };
        architecture << 22 | release << 14 | revision
    }

    /// The highest clock frequency of the device with this id, in megahertz, from Intel's product specifications: HD Graphics 530,
    /// Iris Xe of the i7-1185G7, Arc A770, Data Center GPU Max 1550, Arc B580, Arc B390.
    pub fn clock_megahertz(&self) -> u32 {
        match self.class {
            Class::Skl => 1150,
            Class::Tgllp => 1350,
            Class::Dg2 => 2100,
            Class::Pvc => 1600,
            Class::Bmg => 2670,
            Class::Ptl => 2500,
        }
    }

    /// Execution units: one for each thread that work-groups are spread over, in whole sub-slices. Intel's libraries divide by the
    /// number of those.
    pub fn compute_units(&self) -> u32 {
        let threads = u32::try_from(Settings::get().threads).unwrap_or(u32::MAX / 2);
        threads.next_multiple_of(UNITS_OF_SUB_SLICE)
    }

    /// Sub-slices, all of one slice.
    pub fn sub_slices(&self) -> u32 {
        self.compute_units() / UNITS_OF_SUB_SLICE
    }

    /// Hardware threads of an execution unit.
    pub fn threads_of_unit(&self) -> u32 {
        match self.class {
            Class::Skl | Class::Tgllp => 7,
            Class::Dg2 | Class::Pvc | Class::Bmg => 8,
            Class::Ptl => 10,
        }
    }

    /// Extensions with their versions: what both the compiler and this driver have.
    pub fn extensions(&self) -> Vec<(&'static str, u32)> {
        let usual = super::version::version(1, 0, 0);
        let mut all: Vec<(&str, u32)> = EXTENSIONS.iter().map(|name| (*name, usual)).collect();
        if self.has_doubles() {
            all.push(("cl_khr_fp64", usual));
        }
        if self.has_images() {
            all.push(("cl_khr_3d_image_writes", usual));
        }
        if !matches!(self.class, Class::Skl) || self.has_doubles() {
            all.push(("cl_khr_int64_base_atomics", usual));
            all.push(("cl_khr_int64_extended_atomics", usual));
        }
        if self.float_atomics(Float::Single) != 0 {
            all.push(("cl_ext_float_atomics", usual));
        }
        all
    }

    /// Atomics of floats in global and in local memory, as `cl_ext_float_atomics` has them: bits of
    /// `cl_device_fp_atomic_capabilities_ext`. The current compiler makes loops of compare and exchange where a device has no
    /// instruction; of halves it has no additions.
    pub fn float_atomics(&self, float: Float) -> u64 {
        let there = compiler::year() >= compiler::CURRENT;
        let of = |global: u64| global | global << FP_ATOMIC_LOCAL_SHIFT;
        match float {
            _ if !there => 0,
            Float::Double if !self.has_doubles() => 0,
            Float::Half => of(FP_ATOMIC_LOAD_STORE | FP_ATOMIC_MIN_MAX),
            Float::Single | Float::Double => {
                of(FP_ATOMIC_LOAD_STORE | FP_ATOMIC_ADD | FP_ATOMIC_MIN_MAX)
            }
        }
    }

    /// The same as macros of OpenCL C.
    pub fn float_atomic_features(&self) -> Vec<String> {
        let mut names = Vec::new();
        let spaces = [("global", 0), ("local", FP_ATOMIC_LOCAL_SHIFT)];
        for (float, bits) in [(Float::Single, 32), (Float::Double, 64), (Float::Half, 16)] {
            let can = self.float_atomics(float);
            for (space, shift) in spaces {
                let operations = FP_ATOMICS.iter();
                let there = operations.filter(|(bit, _)| can >> shift & bit != 0);
                names.extend(
                    there.map(|(_, what)| format!("__opencl_c_ext_fp{bits}_{space}_atomic_{what}")),
                );
            }
        }
        names
    }
}

/// A type of floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Float {
    Half,
    Single,
    Double,
}

/// `CL_DEVICE_GLOBAL_FP_ATOMIC_…_EXT`; those of local memory are the same bits further up.
const FP_ATOMIC_LOAD_STORE: u64 = 1;
const FP_ATOMIC_ADD: u64 = 1 << 1;
const FP_ATOMIC_MIN_MAX: u64 = 1 << 2;
const FP_ATOMIC_LOCAL_SHIFT: u32 = 16;
/// The same, and how OpenCL C names them.
const FP_ATOMICS: [(u64, &str); 3] = [
    (FP_ATOMIC_LOAD_STORE, "load_store"),
    (FP_ATOMIC_ADD, "add"),
    (FP_ATOMIC_MIN_MAX, "min_max"),
];

/// Execution units of a sub-slice.
pub const UNITS_OF_SUB_SLICE: u32 = 8;

/// Extensions of every device.
const EXTENSIONS: &[&str] = &[
    "cl_khr_icd",
    "cl_khr_byte_addressable_store",
    "cl_khr_device_uuid",
    "cl_khr_extended_versioning",
    "cl_khr_fp16",
    "cl_khr_global_int32_base_atomics",
    "cl_khr_global_int32_extended_atomics",
    "cl_khr_local_int32_base_atomics",
    "cl_khr_local_int32_extended_atomics",
    "cl_khr_create_command_queue",
    "cl_khr_subgroups",
    "cl_khr_suggested_local_work_size",
    "cl_khr_il_program",
    "cl_intel_device_attribute_query",
    "cl_intel_global_variable_access",
    "cl_intel_required_subgroup_size",
    "cl_intel_subgroups",
    "cl_intel_subgroups_short",
    "cl_intel_unified_shared_memory",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of Intel's headers for compiling ahead of time.
    #[test]
    fn versions_are_packed_as_intel_packs_them() {
        for (name, packed) in [
            ("skl", 0x0240_0009),
            ("tgllp", 0x0300_0000),
            ("dg2", 0x030D_C008),
            ("pvc", 0x030F_0007),
            ("bmg", 0x0500_4000),
            ("ptl", 0x0780_0004),
        ] {
            let name: DeviceName = name.parse().expect("a device");
            let class = name.platform();
            let device = Device { name, class };
            assert_eq!(device.ip_version(), packed, "{name}");
            assert!(device.clock_megahertz() > 1000, "{name}");
        }
    }
}
