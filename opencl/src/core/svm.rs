//! Memory that the program has the address of: shared virtual memory, and the unified shared memory of
//! `cl_intel_unified_shared_memory`. Kernels see the same addresses, and reach
//! them whether or not the program announces it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use visa_runtime::Buffer;

use super::device::Device;
use super::error::{Cl, ensure};
use super::mem::{Taken, allocate, only_read};
use super::object::{Ref, lock};
use super::ranges::owned_by_device;
use crate::abi::{
    CL_INVALID_VALUE, CL_MEM_TYPE_DEVICE_INTEL, CL_MEM_TYPE_HOST_INTEL, CL_MEM_TYPE_SHARED_INTEL,
    CL_MEM_TYPE_UNKNOWN_INTEL, cl_unified_shared_memory_type_intel,
};

/// What an allocation was made as. All is the same memory: this only answers queries.
#[derive(Clone)]
pub enum Usage {
    /// By `clSVMAlloc`.
    Svm,
    /// By `clHostMemAllocINTEL`.
    Host,
    /// By `clDeviceMemAllocINTEL`, for this device.
    Device(Ref<Device>),
    /// By `clSharedMemAllocINTEL`, for this device or any.
    Shared(Option<Ref<Device>>),
}

impl Usage {
    /// `CL_MEM_TYPE_…_INTEL`.
    pub fn code(&self) -> cl_unified_shared_memory_type_intel {
        match self {
            Usage::Svm => CL_MEM_TYPE_UNKNOWN_INTEL,
            Usage::Host => CL_MEM_TYPE_HOST_INTEL,
            Usage::Device(_) => CL_MEM_TYPE_DEVICE_INTEL,
            Usage::Shared(_) => CL_MEM_TYPE_SHARED_INTEL,
        }
    }

    /// The function that makes it.
    fn made_by(&self) -> &'static str {
        match self {
            Usage::Svm => "clSVMAlloc",
            Usage::Host => "clHostMemAllocINTEL",
            Usage::Device(_) => "clDeviceMemAllocINTEL",
            Usage::Shared(_) => "clSharedMemAllocINTEL",
        }
    }

    /// The device that it was made for.
    pub fn device(&self) -> Option<&Ref<Device>> {
        match self {
            Usage::Device(device) | Usage::Shared(Some(device)) => Some(device),
            _ => None,
        }
    }
}

/// An allocation.
#[derive(Clone)]
pub struct Allocation {
    /// The bytes.
    pub buffer: Buffer,
    /// What it was made as.
    pub usage: Usage,
    /// `CL_MEM_ALLOC_FLAGS_INTEL`, as given.
    pub flags: u64,
}

/// Allocations of a context, by first address.
pub struct Shared {
    context: u64,
    all: Mutex<BTreeMap<u64, (Allocation, Taken)>>,
}

impl Shared {
    /// Of the context with this number, which has none yet.
    pub fn of_context(context: u64) -> Shared {
        Shared {
            context,
            all: Mutex::default(),
        }
    }

    /// Allocates; the address.
    ///
    /// # Errors
    /// As [`allocate`] and [`only_read`].
    pub fn allocate(&self, len: usize, alignment: u64, usage: Usage, flags: u64) -> Cl<u64> {
        let (buffer, taken) = allocate(len, alignment, usage.made_by())?;
        let address = buffer.address();
        buffer.set_context(self.context);
        // The program writes to the others as it likes, which nothing sees.
        if let Usage::Device(_) = usage {
            buffer.mark_uninitialised();
        }
        // The flags of the others say nothing of this.
        if let Usage::Svm = usage {
            only_read(&buffer, flags)?;
        }
        let allocation = Allocation {
            buffer,
            usage,
            flags,
        };
        lock(&self.all).insert(address, (allocation, taken));
        Ok(address)
    }

    /// Frees what begins at an address. False if no allocation for which `is` holds begins there.
    pub fn free(&self, address: u64, is: impl FnOnce(&Usage) -> bool) -> bool {
        let mut all = lock(&self.all);
        let known = all.get(&address).is_some_and(|(a, _)| is(&a.usage));
        let freed = if known { all.remove(&address) } else { None };
        drop(all);
        // Without the lock: large memory is given back to the system here.
        freed.is_some()
    }

    /// The allocation that has this address, and which byte of it that is. One past the last byte does not count.
    pub fn find(&self, address: u64) -> Option<(Allocation, u64)> {
        let all = lock(&self.all);
        let (first, (allocation, _)) = all.range(..=address).next_back()?;
        let offset = address - first;
        (offset < allocation.buffer.len()).then(|| (allocation.clone(), offset))
    }

    /// What is at an address to the end of the allocation, which kernels get as an argument.
    pub fn rest(&self, address: u64) -> Option<Buffer> {
        let (Allocation { buffer, .. }, offset) = self.find(address)?;
        buffer.part(offset, buffer.len() - offset).ok()
    }

    /// Checks bytes that a command is to use: those of an allocation, or memory that the program has from elsewhere.
    ///
    /// # Errors
    /// `CL_INVALID_VALUE` for what reaches beyond an allocation, and for device memory that is not allocated, or no longer.
    pub fn check(&self, address: usize, len: usize) -> Cl<()> {
        let (address, len) = (address as u64, len as u64);
        let fine = match self.find(address) {
            Some((allocation, offset)) => len <= allocation.buffer.len() - offset,
            None => len == 0 || owned_by_device(address, len) != Some(false),
        };
        ensure(fine, CL_INVALID_VALUE)
    }
}
