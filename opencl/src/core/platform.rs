//! The platform: one, with the devices that the environment asks for.

use std::sync::OnceLock;

use super::device::{self, Device};
use super::object::{Object, Ref};
use super::report;

/// Name.
pub const NAME: &str = "visa-jit";
/// Whose it is.
pub const VENDOR: &str = "visa-jit";
/// Version of OpenCL.
pub const VERSION: &str = concat!("OpenCL 3.0 visa-jit ", env!("CARGO_PKG_VERSION"));
/// What programs append to names of functions that only this driver has.
pub const SUFFIX: &str = "VJ";

/// The platform.
pub struct Platform {
    devices: Vec<Ref<Device>>,
}

impl Platform {
    /// The one platform of the process.
    pub fn get() -> &'static Ref<Platform> {
        static PLATFORM: OnceLock<Ref<Platform>> = OnceLock::new();
        PLATFORM.get_or_init(|| {
            let devices = device::asked_for();
            let devices = devices.into_iter().map(Object::hidden);
            let devices: Vec<_> = devices.inspect(Object::publish).collect();
            report::loaded(devices.iter().map(|device| device.name.as_str()));
            let platform = Object::hidden(Platform { devices });
            platform.publish();
            platform
        })
    }

    /// Its devices; the first is the default.
    pub fn devices(&self) -> &[Ref<Device>] {
        &self.devices
    }
}
