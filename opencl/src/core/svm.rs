//! Shared virtual memory: device memory that the program has the address of. Kernels see the same address.

use std::collections::BTreeMap;
use std::sync::Mutex;

use visa_runtime::Buffer;

use super::error::Cl;
use super::mem::{Taken, allocate};
use super::object::lock;

/// Shared memory of a context, by first address.
#[derive(Default)]
pub struct Shared(Mutex<BTreeMap<u64, (Buffer, Taken)>>);

impl Shared {
    /// Allocates; the address.
    ///
    /// # Errors
    /// As [`allocate`].
    pub fn allocate(&self, len: usize, alignment: u64) -> Cl<u64> {
        let (buffer, taken) = allocate(len, alignment)?;
        let address = buffer.address();
        lock(&self.0).insert(address, (buffer, taken));
        Ok(address)
    }

    /// Frees what begins at an address, if something does.
    pub fn free(&self, address: u64) {
        let freed = lock(&self.0).remove(&address);
        drop(freed);
    }

    /// The allocation that has this address, and which byte of it that is. One past the last byte does not count.
    pub fn find(&self, address: u64) -> Option<(Buffer, u64)> {
        let all = lock(&self.0);
        let (first, (buffer, _)) = all.range(..=address).next_back()?;
        let offset = address - first;
        (offset < buffer.len()).then(|| (buffer.clone(), offset))
    }

    /// What is at an address to the end of the allocation, which kernels get as an argument.
    pub fn rest(&self, address: u64) -> Option<Buffer> {
        let (buffer, offset) = self.find(address)?;
        buffer.part(offset, buffer.len() - offset).ok()
    }
}
