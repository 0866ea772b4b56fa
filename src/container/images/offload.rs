//! Offload binaries: the format of LLVM's new offloading driver, `llvm/Object/OffloadBinary.h`.

use super::super::error::ContainerError;
use super::Found;

/// First bytes.
pub(super) const MAGIC: &[u8] = b"\x10\xff\x10\xad";
/// The version that is read here.
const VERSION: u64 = 1;

/// Little-endian number of `size` bytes.
fn number(bytes: &[u8], at: u64, size: u64) -> Option<u64> {
    let start = usize::try_from(at).ok()?;
    let end = usize::try_from(at.checked_add(size)?).ok()?;
    let bytes = bytes.get(start..end)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |n, &byte| n << 8 | u64::from(byte)),
    )
}

/// Bytes of a range.
fn range(bytes: &[u8], start: u64, size: u64) -> Option<&[u8]> {
    let end = usize::try_from(start.checked_add(size)?).ok()?;
    bytes.get(usize::try_from(start).ok()?..end)
}

/// A string that ends with a zero.
fn string(bytes: &[u8], at: u64) -> Option<String> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(rest.get(..end)?).into_owned())
}

/// Adds the images of the offload binaries that lie one after the other in `bytes`, which start at `offset` of the file.
pub(super) fn read<'d>(
    mut bytes: &'d [u8],
    mut offset: u64,
    found: &mut Found<'d>,
) -> Result<(), ContainerError> {
    while bytes.starts_with(MAGIC) {
        let broken = || ContainerError::malformed(offset, "offload binary: a range outside of it");
        let version = number(bytes, 4, 4).ok_or_else(broken)?;
        if version != VERSION {
            return Err(ContainerError::Unsupported(format!(
                "offload binary of version {version}; version {VERSION} is read"
            )));
        }
        let size = number(bytes, 8, 8).ok_or_else(broken)?;
        let whole = range(bytes, 0, size).filter(|whole| !whole.is_empty());
        let whole = whole.ok_or_else(broken)?;
        let (target, image) = entry(whole).ok_or_else(broken)?;
        found.add(&target, image)?;
        // Each is aligned to 8 bytes in the section.
        let next = size.next_multiple_of(8);
        offset = offset.saturating_add(next);
        bytes = usize::try_from(next)
            .ok()
            .and_then(|next| bytes.get(next..))
            .unwrap_or_default();
    }
    Ok(())
}

/// The target and the image of one.
fn entry(whole: &[u8]) -> Option<(String, &[u8])> {
    let entry = number(whole, 16, 8)?;
    let field = |at: u64| number(whole, entry.checked_add(at)?, 8);
    let (strings, count) = (field(8)?, field(16)?);
    let image = range(whole, field(24)?, field(32)?)?;
    let mut target = Vec::new();
    // Each takes 16 bytes, so a count that is too large ends at the end of the bytes.
    for n in 0..count {
        let at = strings.checked_add(n.checked_mul(16)?)?;
        let key = string(whole, number(whole, at, 8)?)?;
        let value = string(whole, number(whole, at.checked_add(8)?, 8)?)?;
        if matches!(key.as_str(), "triple" | "arch") && !value.is_empty() {
            target.push((key, value));
        }
    }
    // The triple comes first.
    target.sort_by(|a, b| b.0.cmp(&a.0));
    let target: Vec<_> = target.into_iter().map(|(_, value)| value).collect();
    Some((target.join(" "), image))
}
