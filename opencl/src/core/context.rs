//! Contexts.

use std::sync::Mutex;

use super::device::Device;
use super::error::{Cl, ensure};
use super::object::{Ref, lock};
use super::svm::Shared;
use crate::abi::CL_INVALID_DEVICE;

/// What is called when something is destroyed, the last first.
pub type Destructor = Box<dyn FnOnce() + Send>;

/// A context: devices and what is shared between them.
pub struct Context {
    /// Its devices.
    pub devices: Vec<Ref<Device>>,
    /// The list of properties it was made with.
    pub given: Vec<isize>,
    /// Memory that is shared with the program by address.
    pub shared: Shared,
    destructors: Mutex<Vec<Destructor>>,
}

impl Context {
    /// A context of these devices.
    pub fn new(devices: Vec<Ref<Device>>, given: Vec<isize>) -> Context {
        Context {
            devices,
            given,
            shared: Shared::default(),
            destructors: Mutex::default(),
        }
    }

    /// Has a function called at the end.
    pub fn at_end(&self, destructor: Destructor) {
        lock(&self.destructors).push(destructor);
    }

    /// Whether a device belongs to it.
    ///
    /// # Errors
    /// `CL_INVALID_DEVICE`.
    pub fn check(&self, device: &Ref<Device>) -> Cl<()> {
        ensure(
            self.devices.iter().any(|own| Ref::ptr_eq(own, device)),
            CL_INVALID_DEVICE,
        )
    }

    /// Whether a device of it has images.
    pub fn has_images(&self) -> bool {
        self.devices.iter().any(|device| device.has_images())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let all = std::mem::take(&mut *lock(&self.destructors));
        all.into_iter().rev().for_each(|destructor| destructor());
    }
}
