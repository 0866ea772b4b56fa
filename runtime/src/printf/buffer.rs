//! The buffer that kernels print to.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Output, render};
use crate::limits::{MAX_PRINTF_STRING, PRINTF_BUFFER_BYTES};
use crate::memory::{Buffer, DeviceMemory, MemoryError};

/// Where the first record goes: behind the number of bytes in use, that the kernel counts up.
const FIRST: u32 = 4;
/// Bytes read of a string at a time.
const STEP: usize = 64;

/// A printing kernel's buffer. One launch at a time has it.
#[derive(Debug)]
pub struct PrintBuffer {
    address: u64,
    buffer: Mutex<Buffer>,
}

/// The buffer during a launch.
#[derive(Debug)]
pub struct Printing<'a>(MutexGuard<'a, Buffer>);

impl PrintBuffer {
    /// An empty one.
    ///
    /// # Errors
    /// When there is no room.
    pub fn new(memory: &DeviceMemory) -> Result<PrintBuffer, MemoryError> {
        let buffer = memory.alloc(PRINTF_BUFFER_BYTES)?;
        Ok(PrintBuffer {
            address: buffer.address(),
            buffer: Mutex::new(buffer),
        })
    }

    /// Its address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Waits until no other launch has the buffer, and empties it.
    ///
    /// # Errors
    /// None that an allocated buffer has.
    pub fn start(&self) -> Result<Printing<'_>, MemoryError> {
        let buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.write(0, &FIRST.to_le_bytes())?;
        Ok(Printing(buffer))
    }
}

impl Printing<'_> {
    /// The text. Leaves zeros, so that no later launch finds remains of this one.
    ///
    /// # Errors
    /// None that an allocated buffer has.
    pub fn finish(self) -> Result<Output, MemoryError> {
        let buffer = &*self.0;
        let mut used = [0; 4];
        buffer.read(0, &mut used)?;
        let used = u64::from(u32::from_le_bytes(used));
        let end = used.clamp(u64::from(FIRST), buffer.len());
        let mut records = vec![0; end.saturating_sub(FIRST.into()) as usize];
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
        let text = part.iter().take_while(|&&byte| byte != 0);
        let before = out.len();
        out.extend(text);
        if out.len().saturating_sub(before) < part.len() {
            return Some(out);
        }
    }
    Some(out)
}
