//! Program-scope variables of a zebin: what their memory holds when the program is loaded.

use visa_runtime::linked::{DataImage, DataPatch, DataSection, PatchPart};

use super::error::Error;
use super::plan::Variables;
use crate::container::{
    ContainerError, DataKind, Relocation, RelocationKind, RelocationPlace, SymbolPlace, Zebin,
};
use crate::module::link::function_address;

/// The sections as they lie in memory: variables that start as zeros come right after the others of their kind, since kernels
/// address both from one base.
struct Layout {
    /// Section in memory, and byte in it, of each section of the file.
    places: Vec<(u32, u64)>,
    sections: Vec<DataSection>,
    kinds: Vec<DataKind>,
}

impl Layout {
    fn new(zebin: &Zebin) -> Layout {
        let mut layout = Layout {
            places: Vec::new(),
            sections: Vec::new(),
            kinds: Vec::new(),
        };
        for section in &zebin.data {
            let shared = matches!(section.kind, DataKind::Const | DataKind::Global);
            let before = layout.kinds.iter().position(|kind| *kind == section.kind);
            let before = before.filter(|_| shared && section.bytes.is_empty());
            if let Some((index, whole)) =
                before.and_then(|i| Some((i, layout.sections.get_mut(i)?)))
            {
                layout.places.push((index as u32, whole.size));
                whole.size = whole.size.saturating_add(section.size);
                continue;
            }
            layout.places.push((layout.sections.len() as u32, 0));
            layout.kinds.push(section.kind);
            layout.sections.push(DataSection {
                size: section.size,
                bytes: section.bytes.clone(),
                read_only: matches!(section.kind, DataKind::Const | DataKind::ConstString),
            });
        }
        layout
    }

    /// Where a byte of a section of the file lies.
    fn section_offset(&self, section: usize, byte: u64) -> Option<(u32, u64)> {
        let (index, offset) = self.places.get(section)?;
        Some((*index, offset.wrapping_add(byte)))
    }

    fn of_kind(&self, kind: DataKind) -> Vec<u32> {
        let kinds = self.kinds.iter().zip(0..);
        kinds
            .filter(|(k, _)| **k == kind)
            .map(|(_, index)| index)
            .collect()
    }
}

/// Where each variable is, by name, and in which sections.
pub(super) fn places(zebin: &Zebin) -> Variables {
    let layout = Layout::new(zebin);
    let place = zebin.symbols.iter().filter_map(|s| match s.place {
        SymbolPlace::Data(i) => Some((s.name.clone(), layout.section_offset(i, s.value)?)),
        _ => None,
    });
    Variables {
        places: place.collect(),
        constants: layout.of_kind(DataKind::Const),
        globals: layout.of_kind(DataKind::Global),
    }
}

/// Where the variable is that the host calls by this name, and its bytes: names that a source gives for the host come first.
pub(super) fn for_host(zebin: &Zebin, name: &str) -> Option<((u32, u64), u64)> {
    let table = &zebin.ze_info.global_host_access_table;
    let told = table.iter().find(|access| access.host_name == name);
    let name = told.map_or(name, |access| access.device_name.as_str());
    let symbol = zebin.symbols.iter().find(|s| s.name == name)?;
    match symbol.place {
        SymbolPlace::Data(i) => Some((
            Layout::new(zebin).section_offset(i, symbol.value)?,
            symbol.size,
        )),
        _ => None,
    }
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
    let layout = Layout::new(zebin);
    let functions = function_names(zebin);
    let mut patches = Vec::new();
    for r in &zebin.relocations {
        if let RelocationPlace::Data(i) = r.place
            && i < zebin.data.len()
        {
            patches.push(patch(zebin, &layout, &functions, i, r)?);
        }
    }
    Ok(DataImage {
        program: digest,
        sections: layout.sections,
        patches,
    })
}

fn patch(
    zebin: &Zebin,
    layout: &Layout,
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
        SymbolPlace::Data(d) if d < zebin.data.len() => {
            let (section, byte) = layout.section_offset(d, s.value)?;
            Some((Some(section), byte))
        }
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
    let (section, offset) = layout
        .section_offset(section, r.offset)
        .ok_or_else(|| unsupported("a section that does not exist".to_owned()))?;
    Ok(DataPatch {
        section,
        offset,
        part,
        target,
        value: value.wrapping_add(addend),
    })
}
