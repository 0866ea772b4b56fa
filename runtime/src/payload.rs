//! The cross-thread payload: a kernel's arguments as bytes at the offsets its metadata gives.

use crate::error::LaunchError;
use crate::limits::MAX_PAYLOAD_BYTES;

/// A value in the payload that is not the same for all groups of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadPatch {
    /// Three dwords: the group's own size, smaller in partial groups.
    LocalSize {
        /// Byte offset in the payload.
        offset: u32,
    },
    /// Bytes that stand at another place of the payload too: they are copied there when all patches before it are made.
    Copy {
        /// First byte.
        from: u32,
        /// Bytes.
        bytes: u32,
        /// Where else they stand.
        to: u32,
    },
}

impl PayloadPatch {
    /// The range that it writes.
    fn written(&self) -> (u32, u32) {
        match *self {
            PayloadPatch::LocalSize { offset } => (offset, 12),
            PayloadPatch::Copy { to, bytes, .. } => (to, bytes),
        }
    }
}

/// Payload bytes, aligned to a cache line and zero at first.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    lines: Vec<Line>,
    len: usize,
    patches: Vec<PayloadPatch>,
}

/// A cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Payload {
    /// `len` zero bytes.
    ///
    /// # Errors
    /// [`LaunchError::Payload`] over [`MAX_PAYLOAD_BYTES`].
    pub fn new(len: usize) -> Result<Payload, LaunchError> {
        if len > MAX_PAYLOAD_BYTES {
            return Err(LaunchError::Payload {
                given: len,
                wanted: MAX_PAYLOAD_BYTES,
            });
        }
        // A whole spare line, so that a vector load of the last argument stays inside.
        Ok(Payload {
            lines: vec![Line([0; 64]); len.div_ceil(64) + 1],
            len,
            patches: Vec::new(),
        })
    }

    /// A copy of `bytes`.
    ///
    /// # Errors
    /// As [`Payload::new`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Payload, LaunchError> {
        let mut payload = Payload::new(bytes.len())?;
        payload.as_mut_slice().copy_from_slice(bytes);
        Ok(payload)
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the lines are initialised and at least `len` bytes; compiled code only reads them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    /// The bytes, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, exclusively borrowed; a running launch borrows the payload shared.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }

    /// Writes `value` at byte `offset`.
    ///
    /// # Errors
    /// [`LaunchError::PayloadRange`] when it does not fit.
    pub fn set(&mut self, offset: usize, value: &[u8]) -> Result<(), LaunchError> {
        let range = LaunchError::PayloadRange {
            offset,
            len: value.len(),
            size: self.len,
        };
        let end = offset.checked_add(value.len());
        match end.and_then(|end| self.as_mut_slice().get_mut(offset..end)) {
            Some(to) => {
                to.copy_from_slice(value);
                Ok(())
            }
            None => Err(range),
        }
    }

    /// Names a value that the runtime writes for groups of another size.
    ///
    /// The value for full groups is written by the caller like any other.
    ///
    /// # Errors
    /// [`LaunchError::PayloadRange`] when it is outside.
    pub fn patch(&mut self, patch: PayloadPatch) -> Result<(), LaunchError> {
        let (offset, len) = patch.written();
        self.range(offset, len)?;
        if let PayloadPatch::Copy { from, bytes, .. } = patch {
            self.range(from, bytes)?;
        }
        self.patches.push(patch);
        Ok(())
    }

    /// Copies bytes to another place, here and in the payloads of groups of other sizes.
    ///
    /// # Errors
    /// [`LaunchError::PayloadRange`] when either place is outside.
    pub fn mirror(&mut self, from: u32, bytes: u32, to: u32) -> Result<(), LaunchError> {
        self.patch(PayloadPatch::Copy { from, bytes, to })?;
        let from = from as usize..from as usize + bytes as usize;
        self.as_mut_slice().copy_within(from, to as usize);
        Ok(())
    }

    fn range(&self, offset: u32, len: u32) -> Result<(), LaunchError> {
        let (offset, len) = (offset as usize, len as usize);
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(LaunchError::PayloadRange {
                offset,
                len,
                size: self.len,
            }),
        }
    }

    /// True when groups of another size need another payload.
    pub(crate) fn varies(&self) -> bool {
        let copies = |p: &PayloadPatch| matches!(p, PayloadPatch::Copy { .. });
        !self.patches.iter().all(copies)
    }

    /// The payload of groups of `local` work-items.
    pub(crate) fn for_group(&self, local: [u32; 3]) -> Result<Payload, LaunchError> {
        let mut payload = self.clone();
        for &patch in &self.patches {
            match patch {
                PayloadPatch::LocalSize { offset } => {
                    for (dim, size) in local.into_iter().enumerate() {
                        payload.set(offset as usize + 4 * dim, &size.to_le_bytes())?;
                    }
                }
                PayloadPatch::Copy { from, bytes, to } => {
                    let from = from as usize..from as usize + bytes as usize;
                    payload.as_mut_slice().copy_within(from, to as usize);
                }
            }
        }
        Ok(payload)
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.lines.as_ptr().cast()
    }
}
