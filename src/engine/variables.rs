//! Program-scope variables of a zebin: what their memory holds when the program is loaded.

use visa_runtime::linked::{DataImage, DataPatch, DataSection, PatchPart};

use super::error::Error;
use super::plan::Variables;
use crate::container::{
    ContainerError, Relocation, RelocationKind, RelocationPlace, SymbolPlace, Zebin,
};
use crate::module::link::function_address;

/// Where each variable is, by name.
pub(super) fn places(zebin: &Zebin) -> Variables {
    let symbols = zebin.symbols.iter();
    let place = symbols.filter_map(|s| match s.place {
        SymbolPlace::Data(i) if i < zebin.data.len() => Some((s.name.clone(), (i as u32, s.value))),
        _ => None,
    });
    place.collect()
}

/// Names of the program's stack-call functions in the order of their addresses.
pub(super) fn function_names(zebin: &Zebin) -> Vec<&str> {
    let mut names: Vec<&str> = zebin.functions.iter().map(|f| f.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// First contents of the variables of the program whose file has this digest.
pub(super) fn image(zebin: &Zebin, digest: [u8; 32]) -> Result<DataImage, Error> {
    let sections = zebin.data.iter().map(|section| DataSection {
        size: section.size,
        bytes: section.bytes.clone(),
    });
    let functions = function_names(zebin);
    let mut patches = Vec::new();
    for r in &zebin.relocations {
        if let RelocationPlace::Data(i) = r.place
            && i < zebin.data.len()
        {
            patches.push(patch(zebin, &functions, i, r)?);
        }
    }
    Ok(DataImage {
        program: digest,
        sections: sections.collect(),
        patches,
    })
}

fn patch(
    zebin: &Zebin,
    functions: &[&str],
    section: usize,
    r: &Relocation,
) -> Result<DataPatch, Error> {
    let place = zebin.data.get(section);
    let unsupported = |what: String| {
        let name = place.map_or("data", |s| s.name.as_str());
        let at = r.offset;
        Error::Container(ContainerError::Unsupported(format!(
            "{name} at {at:#x}: {what}"
        )))
    };
    let symbol = r.symbol.and_then(|s| zebin.symbols.get(s));
    let target = symbol.and_then(|s| match s.place {
        SymbolPlace::Data(d) if d < zebin.data.len() => Some((Some(d as u32), s.value)),
        _ => functions
            .binary_search(&s.name.as_str())
            .ok()
            .map(|i| (None, u64::from(function_address(i as u32)))),
    });
    let (target, value) = target.ok_or_else(|| {
        let name = symbol.map_or("?", |s| s.name.as_str());
        unsupported(format!(
            "address of `{name}`, which the file does not define"
        ))
    })?;
    let part = match r.kind {
        RelocationKind::Address => PatchPart::Whole,
        RelocationKind::AddressLow32 => PatchPart::Low,
        RelocationKind::AddressHigh32 => PatchPart::High,
        other => return Err(unsupported(format!("relocation {other:?}"))),
    };
    let addend = r.addend.map_or_else(
        || {
            // It stands where the address goes.
            let bytes = place.map_or(&[][..], |s| &s.bytes);
            let at = usize::try_from(r.offset).unwrap_or(usize::MAX);
            let width = if part == PatchPart::Whole { 8 } else { 4 };
            let there = bytes.get(at..).unwrap_or(&[]).iter().take(width);
            let shifted = there.zip(0..).map(|(byte, i)| u64::from(*byte) << (8 * i));
            shifted.fold(0, |sum, byte| sum | byte)
        },
        |addend| addend as u64,
    );
    Ok(DataPatch {
        section: section as u32,
        offset: r.offset,
        part,
        target,
        value: value.wrapping_add(addend),
    })
}
