//! The buffers that kernels print to: one for `printf`, one for what failed assertions say.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Output, render};
use crate::limits::{ASSERT_BUFFER_BYTES, MAX_PRINTF_STRING, PRINTF_BUFFER_BYTES};
use crate::memory::{Buffer, DeviceMemory, MemoryError};

/// What is printed, which decides what stands before the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BufferKind {
    /// By `printf`: the number of bytes in use, that the kernel counts up.
    Text,
    /// By `assert`: the bytes of the buffer, why the kernel failed, and the number of bytes in use.
    Assertions,
}

impl BufferKind {
    /// Bytes of the buffer.
    fn bytes(self) -> u64 {
        match self {
            BufferKind::Text => PRINTF_BUFFER_BYTES,
            BufferKind::Assertions => ASSERT_BUFFER_BYTES,
        }
    }

    /// What stands there before a launch. The last word counts the bytes in use, itself included.
    fn header(self) -> Vec<u8> {
        match self {
            BufferKind::Text => 4_u32.to_le_bytes().to_vec(),
            BufferKind::Assertions => {
                let words = [ASSERT_BUFFER_BYTES as u32, 0, 12];
                words.map(u32::to_le_bytes).as_flattened().to_vec()
            }
        }
    }
}

/// Where the reason stands why a kernel failed, zero if it did not.
const REASON: u64 = 4;
/// Bytes read of a string at a time.
const STEP: usize = 64;

/// A printing kernel's buffer. One launch at a time has it.
#[derive(Debug)]
pub struct PrintBuffer {
    kind: BufferKind,
    address: u64,
    buffer: Mutex<Buffer>,
}

/// The buffer during a launch.
#[derive(Debug)]
pub struct Printing<'a>(BufferKind, MutexGuard<'a, Buffer>);

impl PrintBuffer {
    /// An empty one for `printf`.
    ///
    /// # Errors
    /// When there is no room.
    pub fn new(memory: &DeviceMemory) -> Result<PrintBuffer, MemoryError> {
        PrintBuffer::of(BufferKind::Text, memory)
    }

    /// An empty one for assertions.
    ///
    /// # Errors
    /// When there is no room.
    pub fn for_assertions(memory: &DeviceMemory) -> Result<PrintBuffer, MemoryError> {
        PrintBuffer::of(BufferKind::Assertions, memory)
    }

    fn of(kind: BufferKind, memory: &DeviceMemory) -> Result<PrintBuffer, MemoryError> {
        let buffer = memory.alloc(kind.bytes())?;
        Ok(PrintBuffer {
            kind,
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
        buffer.write(0, &self.kind.header())?;
        Ok(Printing(self.kind, buffer))
    }
}

impl Printing<'_> {
    /// The text. Leaves zeros, so that no later launch finds remains of this one.
    ///
    /// # Errors
    /// None that an allocated buffer has.
    pub fn finish(self) -> Result<Output, MemoryError> {
        let buffer = &*self.1;
        let first = self.0.header().len() as u64;
        let mut used = [0; 4];
        buffer.read(first.saturating_sub(4), &mut used)?;
        let used = u64::from(u32::from_le_bytes(used));
        let end = used.clamp(first, buffer.len());
        let mut records = vec![0; end.saturating_sub(first) as usize];
        buffer.read(first, &mut records)?;
        buffer.write(first, &vec![0; records.len()])?;
        Ok(render(&records, &|address| {
            string(buffer.memory(), address)
        }))
    }

    /// As [`Printing::finish`], of a buffer for assertions: `None` when none failed. A last line says why there is no more.
    ///
    /// # Errors
    /// None that an allocated buffer has.
    pub fn failed(self) -> Result<Option<Vec<u8>>, MemoryError> {
        let mut reason = [0; 4];
        self.1.read(REASON, &mut reason)?;
        let failed = reason != [0; 4];
        let Output { mut text, problem } = self.finish()?;
        if let Some(problem) = problem {
            text.extend(format!("({problem})\n").into_bytes());
        }
        Ok(failed.then_some(text))
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
