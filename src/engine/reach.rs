//! What a launch's arguments let it access, for checks of memory.

use super::error::Error;
use super::launch::Launch;
use visa_runtime::linked::ArgValue as Arg;
use visa_runtime::{Buffer, DeviceMemory, Entered};

/// Buffers, and values that may be addresses.
pub(super) struct Reach {
    context: Option<u64>,
    buffers: Vec<Buffer>,
    numbers: Vec<u64>,
}

impl Reach {
    /// Of a launch.
    pub(super) fn of(launch: &Launch) -> Reach {
        let mut reach = Reach {
            context: launch.context,
            buffers: launch.bound.surfaces.values().cloned().collect(),
            numbers: Vec::new(),
        };
        let images = launch.bound.images.values();
        reach.buffers.extend(images.map(|(b, _)| b.clone()));
        for arg in launch.args.values() {
            match arg {
                Arg::Buffer(b) | Arg::Image(b, _) => reach.buffers.push(b.clone()),
                Arg::Bytes(bytes) => reach.add_numbers(bytes),
                _ => {}
            }
        }
        launch.inputs.values().for_each(|b| reach.add_numbers(b));
        reach
    }

    fn add_numbers(&mut self, bytes: &[u8]) {
        let numbers = bytes.chunks_exact(8).filter_map(|b| b.try_into().ok());
        self.numbers.extend(numbers.map(u64::from_le_bytes));
    }

    /// Begins the launch; see [`DeviceMemory::enter`].
    ///
    /// # Errors
    /// As that.
    pub(super) fn enter(&self, memory: &DeviceMemory) -> Result<Option<Entered>, Error> {
        let numbers = self.numbers.iter().copied();
        let entered = memory.enter(self.context, self.buffers.iter(), numbers);
        entered.map_err(|error| Error::Memory(error.to_string()))
    }
}
