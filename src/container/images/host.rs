//! Programs, libraries and objects for the host that hold images.

use object::{File, Object as _, ObjectSection as _};

use super::super::error::ContainerError;
use super::{Found, offload, spirv};

/// Prefix of the names of sections with images; the rest is the offloading kind and the target.
const BUNDLE: &str = "__CLANG_OFFLOAD_BUNDLE__";
/// The section that lists the ranges of images: address and size of each.
const RANGES: &str = ".tgtimg";
/// The section of the new offloading driver.
const OFFLOADING: &str = ".llvm.offloading";

/// A section of images.
struct Part<'d> {
    target: String,
    address: u64,
    data: &'d [u8],
}

/// Adds the images of a file; returns whether it is one that may have some.
pub(super) fn read<'d>(bytes: &'d [u8], found: &mut Found<'d>) -> Result<bool, ContainerError> {
    // What is no object file, or is a zebin, is judged elsewhere.
    let Ok(file @ (File::Elf64(_) | File::Elf32(_))) = File::parse(bytes) else {
        return Ok(false);
    };
    let (mut parts, mut ranges, mut any) = (Vec::new(), None, false);
    for section in file.sections() {
        let Ok(name) = section.name() else { continue };
        let offset = section.file_range().map_or(0, |(at, _)| at);
        let data = || {
            let broken = |error| ContainerError::malformed(offset, format!("{name}: {error}"));
            section.data().map_err(broken)
        };
        if let Some(target) = name.strip_prefix(BUNDLE) {
            // The host's own entry is empty.
            if !target.starts_with("host") {
                parts.push(Part {
                    target: target.split_once('-').map_or(target, |(_, t)| t).to_owned(),
                    address: section.address(),
                    data: data()?,
                });
            }
        } else if name == RANGES {
            ranges = Some(data()?);
        } else if name == OFFLOADING {
            any = true;
            offload::read(data()?, offset, found)?;
        }
    }
    if parts.is_empty() {
        return Ok(any);
    }
    let listed = ranges.and_then(|ranges| listed(ranges, &parts));
    for (target, image) in listed.unwrap_or_else(|| scanned(&parts)) {
        found.add(target, image)?;
    }
    Ok(true)
}

/// The ranges that the file lists; `None` if one is no range of a section, as before relocations are applied.
fn listed<'p, 'd>(ranges: &[u8], parts: &'p [Part<'d>]) -> Option<Vec<(&'p str, &'d [u8])>> {
    let (pairs, rest) = ranges.as_chunks::<16>();
    if pairs.is_empty() || !rest.is_empty() {
        return None;
    }
    let range = |pair: &[u8; 16]| {
        let (numbers, _) = pair.as_chunks::<8>();
        let [address, size] = numbers else {
            return None;
        };
        let (address, size) = (u64::from_le_bytes(*address), u64::from_le_bytes(*size));
        parts.iter().find_map(|part| {
            let start = usize::try_from(address.checked_sub(part.address)?).ok()?;
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            Some((part.target.as_str(), part.data.get(start..end)?))
        })
    };
    let found: Option<Vec<_>> = pairs.iter().map(range).collect();
    // The list has an empty range where a file has no image of a target.
    Some(
        found?
            .into_iter()
            .filter(|(_, image)| !image.is_empty())
            .collect(),
    )
}

/// The images one after the other in each section, aligned by zeros.
fn scanned<'p, 'd>(parts: &'p [Part<'d>]) -> Vec<(&'p str, &'d [u8])> {
    let mut found = Vec::new();
    for part in parts {
        let mut rest = part.data;
        while let Some(start) = rest.iter().position(|&byte| byte != 0) {
            let here = rest.get(start..).unwrap_or_default();
            // Only modules say where they end.
            let length = if spirv::is_module(here) {
                spirv::length(here)
            } else {
                here.len()
            };
            let (image, after) = here.split_at_checked(length).unwrap_or((here, &[]));
            found.push((part.target.as_str(), image));
            rest = after;
        }
    }
    found
}
