//! The buffer that kernels print to.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::Error;
use crate::limits::{MAX_PRINTF_STRING, PRINTF_BUFFER_BYTES};
use crate::printf::{Output, render};
use visa_runtime::{Buffer, DeviceMemory};

/// Where the first record goes: behind the number of bytes in use, that the kernel counts up.
const FIRST: u32 = 4;
/// Bytes read of a string at a time.
const STEP: usize = 64;

/// A printing kernel's buffer. One launch at a time has it.
pub(super) struct PrintBuffer {
    address: u64,
    buffer: Mutex<Buffer>,
}

/// The buffer during a launch.
pub(super) struct Printing<'a>(MutexGuard<'a, Buffer>);

impl PrintBuffer {
    pub(super) fn new(memory: &DeviceMemory) -> Result<PrintBuffer, Error> {
        let buffer = memory.alloc(PRINTF_BUFFER_BYTES)?;
        Ok(PrintBuffer {
            address: buffer.address(),
            buffer: Mutex::new(buffer),
        })
    }

    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Waits until no other launch has the buffer, and empties it.
    pub(super) fn start(&self) -> Result<Printing<'_>, Error> {
        let buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.write(0, &FIRST.to_le_bytes())?;
        Ok(Printing(buffer))
    }
}

impl Printing<'_> {
    /// The text. Leaves zeros, so that no later launch finds remains of this one.
    pub(super) fn finish(self) -> Result<Output, Error> {
        let buffer = &*self.0;
        let mut used = [0; 4];
        buffer.read(0, &mut used)?;
        let used = u64::from(u32::from_le_bytes(used));
        let end = used.clamp(u64::from(FIRST), buffer.len());
        let mut records = vec![0; (end - u64::from(FIRST)) as usize];
        buffer.read(u64::from(FIRST), &mut records)?;
        buffer.write(u64::from(FIRST), &vec![0; records.len()])?;
        Ok(render(&records, &|address| {
            string(buffer.memory(), address)
        }))
    }
}

/// The bytes before the NUL at an address; `None` when it is not in device memory.
fn string(memory: &DeviceMemory, address: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while out.len() < MAX_PRINTF_STRING {
        let at = address.checked_add(out.len() as u64)?;
        // Near the end of memory, byte by byte.
        let mut part = [0; STEP];
        let part = match memory.read_at(at, &mut part) {
            Ok(()) => &part[..],
            Err(_) => {
                memory.read_at(at, &mut part[..1]).ok()?;
                &part[..1]
            }
        };
        match part.iter().position(|&byte| byte == 0) {
            Some(end) => {
                out.extend_from_slice(&part[..end]);
                return Some(out);
            }
            None => out.extend_from_slice(part),
        }
    }
    Some(out)
}
