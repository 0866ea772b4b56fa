//! Contexts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::device::Device;
use super::error::{Cl, ensure};
use super::object::{Ref, lock};
use super::queue::Runner;
use super::svm::Shared;
use crate::abi::CL_INVALID_DEVICE;
use crate::abi::fork;

/// What is called when something is destroyed, the last first.
pub type Destructor = Box<dyn FnOnce() + Send>;

/// A context: devices and what is shared between them.
pub struct Context {
    /// Tells it from other contexts.
    pub number: u64,
    /// Its devices.
    pub devices: Vec<Ref<Device>>,
    /// The list of properties it was made with.
    pub given: Vec<isize>,
    /// Memory that is shared with the program by address.
    pub shared: Shared,
    /// Commands of its queues.
    runners: Mutex<Vec<Weak<Runner>>>,
    destructors: Mutex<Vec<Destructor>>,
}

impl Context {
    /// A context of these devices.
    pub fn new(devices: Vec<Ref<Device>>, given: Vec<isize>) -> Context {
        static CONTEXTS: AtomicU64 = AtomicU64::new(0);
        let number = CONTEXTS.fetch_add(1, Ordering::Relaxed);
        Context {
            number,
            devices,
            given,
            shared: Shared::of_context(number),
            runners: Mutex::default(),
            destructors: Mutex::default(),
        }
    }

    /// Has it know a new queue's commands.
    pub fn add(&self, runner: &Arc<Runner>) {
        let mut runners = lock(&self.runners);
        runners.retain(|known| known.strong_count() != 0);
        runners.push(Arc::downgrade(runner));
    }

    /// Waits until no queue has commands.
    pub fn finish(&self) {
        let runners = lock(&self.runners).clone();
        let live = runners.iter().filter_map(Weak::upgrade);
        live.for_each(|runner| runner.finish());
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
        fork::without_locks(|| all.into_iter().rev().for_each(|destructor| destructor()));
    }
}
