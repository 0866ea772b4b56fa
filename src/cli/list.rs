//! `list` and `disasm`: what a file holds.
//!
//! Zebins are described from the container alone, so that files whose kernels cannot be run can still be
//! looked at.

use std::fmt::Write as _;

use super::exit::Failure;
use super::load::{Contents, Loaded};
use crate::artifact::{self, object};
use crate::container::{
    ArgInfo, ArgType, KernelInfo, MemoryAddressing, MemorySpace, PayloadArgument, Zebin,
    infer_device,
};
use crate::engine::Error;
use crate::front::text;
use crate::module::{InputVar, Module};
use visa_runtime::linked::{Argument, KernelRecord};

/// The text of `list`.
pub fn list(file: &Loaded) -> Result<String, Failure> {
    match &file.contents {
        Contents::Text(source) => Ok(list_text(&file.name, &parse(&file.name, source)?)),
        Contents::Zebin(bytes) => Ok(list_zebin(file, &file.zebin(bytes)?)),
        Contents::Library(_, bytes) => list_library(&file.name, bytes),
    }
}

/// The text of `disasm`: the vISA of every kernel, or of one and the functions compiled with it.
pub fn disasm(file: &Loaded, kernel: Option<&str>) -> Result<String, Failure> {
    match &file.contents {
        Contents::Text(source) => {
            let module = parse(&file.name, source)?;
            choose(&file.name, &[&module.name], kernel)?;
            Ok(text::print(&module))
        }
        Contents::Zebin(bytes) => disasm_zebin(file, &file.zebin(bytes)?, kernel),
        Contents::Library(..) => Err(Failure::unsupported(format!(
            "{}: compiled kernels have no vISA text any more",
            file.name
        ))),
    }
}

/// Checks that a kernel that was asked for exists.
fn choose(file: &str, known: &[&String], wanted: Option<&str>) -> Result<(), Failure> {
    match wanted {
        Some(name) if !known.iter().any(|known| *known == name) => {
            Err(Failure::usage(no_kernel(file, name, known)))
        }
        _ => Ok(()),
    }
}

/// Says which kernels a file has instead of the one asked for.
pub fn no_kernel(file: &str, name: &str, known: &[impl AsRef<str>]) -> String {
    let known: Vec<_> = known.iter().map(AsRef::as_ref).collect();
    format!(
        "{file} has no kernel `{name}`; it has: {}",
        known.join(", ")
    )
}

fn parse(name: &str, source: &str) -> Result<Module, Failure> {
    text::parse(name, source).map_err(|diagnostics| Failure::from(Error::from(diagnostics)))
}

fn disasm_zebin(file: &Loaded, zebin: &Zebin, kernel: Option<&str>) -> Result<String, Failure> {
    let known: Vec<_> = zebin.kernels.iter().map(|kernel| &kernel.name).collect();
    choose(&file.name, &known, kernel)?;
    let mut out = String::new();
    for (index, each) in zebin.kernels.iter().enumerate() {
        if kernel.is_some_and(|name| name != each.name) {
            continue;
        }
        section(&mut out, "kernel", &each.name, &each.visa.text);
        let own = zebin.functions.iter().filter(|f| f.owner == Some(index));
        for function in own {
            section(&mut out, "function", &function.name, &function.visa.text);
        }
    }
    Ok(out)
}

fn section(out: &mut String, what: &str, name: &str, text: &str) {
    let gap = if out.is_empty() { "" } else { "\n" };
    let _ = writeln!(out, "{gap}// {what} {name}");
    out.push_str(text.trim_end());
    out.push('\n');
}

fn list_zebin(file: &Loaded, zebin: &Zebin) -> String {
    let inferred = infer_device(zebin);
    let device = match (file.device, inferred.device) {
        (Some(device), _) => format!("{device} (as asked for)"),
        (None, Some(device)) => format!("{device} ({})", inferred.reason),
        (None, None) => format!("a device that cannot be told ({})", inferred.reason),
    };
    let kernels: Vec<_> = zebin.launchable().collect();
    let mut out = format!(
        "{}: {} for {device}\n",
        file.name,
        counted(kernels.len(), "kernel")
    );
    for kernel in kernels {
        let _ = writeln!(out, "\n{}: {}", kernel.name, summary(&kernel.info));
        let args = zebin.ze_info.args_of(&kernel.name);
        out.push_str(&columns(&arguments(&kernel.info, args)));
    }
    out
}

fn list_library(name: &str, bytes: &[u8]) -> Result<String, Failure> {
    let records = object::records(bytes).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
    let mut out = format!("{name}: {}, compiled\n", counted(records.len(), "kernel"));
    for record in records {
        let _ = writeln!(out, "\n{}: {}", record.name, library_summary(&record));
        let row = |a: &Argument| {
            [
                a.index.to_string(),
                or(&a.name, "?"),
                or(&a.type_name, "?"),
                artifact::passing(a),
            ]
        };
        let rows: Vec<_> = record.plan.arguments.iter().map(row).collect();
        out.push_str(&columns(&rows));
    }
    Ok(out)
}

fn or(text: &str, other: &str) -> String {
    if text.is_empty() { other } else { text }.to_owned()
}

fn library_summary(record: &KernelRecord) -> String {
    let mut parts = Vec::new();
    if let Some(variant) = record.variants.first() {
        parts.push(format!("SIMD{}", variant.meta.simd));
        parts.push(match variant.meta.slm_bytes {
            0 => "no local memory".to_owned(),
            bytes => format!("{bytes} bytes of local memory"),
        });
        parts.push(match variant.meta.barriers() {
            0 => "no barriers".to_owned(),
            count => counted(usize::try_from(count).unwrap_or(usize::MAX), "barrier"),
        });
        if let Some([x, y, z]) = variant.meta.required_local_size {
            parts.push(format!("local size must be {x},{y},{z}"));
        }
    }
    let code: u64 = record.variants.iter().map(|v| v.code_bytes).sum();
    parts.push(format!(
        "{code} bytes of code for {} by {}",
        record.triple, record.backend
    ));
    parts.push(format!("from {}", record.device));
    parts.push(format!("out of bounds: {}", record.oob));
    parts.join(", ")
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Width, local memory, barriers and what else a launch must know.
fn summary(info: &KernelInfo) -> String {
    let env = &info.execution_env;
    let mut parts = vec![format!("SIMD{}", env.simd_size)];
    parts.push(match env.slm_size {
        0 => "no local memory".to_owned(),
        bytes => format!("{bytes} bytes of local memory"),
    });
    parts.push(match env.barrier_count {
        0 => "no barriers".to_owned(),
        count => counted(usize::try_from(count).unwrap_or(usize::MAX), "barrier"),
    });
    if let Some([x, y, z]) = env.required_work_group_size {
        parts.push(format!("local size must be {x},{y},{z}"));
    }
    let private = info.per_thread_memory_buffers.iter();
    for buffer in private.filter(|buffer| buffer.size > 0) {
        let per = if buffer.is_simt_thread {
            "lane"
        } else {
            "thread"
        };
        parts.push(format!("{} bytes of {} a {per}", buffer.size, buffer.usage));
    }
    parts.join(", ")
}

/// One row an argument: index, name, type, how it is passed.
fn arguments(info: &KernelInfo, args: &[ArgInfo]) -> Vec<[String; 4]> {
    let named = args.iter().map(|arg| arg.index.saturating_add(1)).max();
    let count = info.arg_count().max(named.unwrap_or(0));
    (0..count)
        .map(|index| {
            let source = args.iter().find(|arg| arg.index == index);
            let (name, ty) = source.map_or(("?", "?".to_owned()), |arg| {
                (arg.name.as_str(), declared(arg))
            });
            let size = source.and_then(|arg| arg.type_and_size().1);
            [
                index.to_string(),
                name.to_owned(),
                ty,
                passing(info, index, size),
            ]
        })
        .collect()
}

/// Type as the source declares it.
fn declared(arg: &ArgInfo) -> String {
    let (name, _) = arg.type_and_size();
    match arg.type_qualifiers.as_str() {
        "" | "NONE" => name.to_owned(),
        qualifiers => format!("{qualifiers} {name}"),
    }
}

/// How the argument reaches the kernel; `size` is that of its type.
fn passing(info: &KernelInfo, index: u32, size: Option<u32>) -> String {
    let entries: Vec<_> = info
        .payload_arguments
        .iter()
        .filter(|entry| entry.arg_index == Some(index))
        .collect();
    if let Some(pointer) = entries.iter().find(|e| e.arg_type == ArgType::ByPointer) {
        return pointer_passing(info, index, pointer, &entries);
    }
    let slot = entries
        .iter()
        .filter(|entry| entry.arg_type == ArgType::ByValue)
        .map(|e| e.source_offset.unwrap_or(0).saturating_add(e.size))
        .max();
    match slot.map(|slot| size.unwrap_or(slot)) {
        Some(1) => "value, 1 byte".to_owned(),
        Some(bytes) => format!("value, {bytes} bytes"),
        None => match entries.first() {
            Some(entry) => entry.arg_type.to_string(),
            None => "not used".to_owned(),
        },
    }
}

fn pointer_passing(
    info: &KernelInfo,
    index: u32,
    pointer: &PayloadArgument,
    entries: &[&PayloadArgument],
) -> String {
    if pointer.addrmode == Some(MemoryAddressing::Slm)
        || pointer.addrspace == Some(MemorySpace::Local)
    {
        let alignment = pointer.slm_alignment.unwrap_or(1);
        return format!("local memory, aligned to {alignment}");
    }
    let space = pointer.addrspace.as_ref().map_or("global", |s| s.as_str());
    let mut text = format!("{space} buffer");
    let mut modes: Vec<String> = Vec::new();
    for entry in entries.iter().filter(|e| e.arg_type == ArgType::ByPointer) {
        let mode = entry.addrmode.as_ref().map_or("stateless", |m| m.as_str());
        modes.push(mode.to_owned());
    }
    modes.dedup();
    for mode in modes {
        let _ = write!(text, ", {mode}");
        let bound = info.binding_table_indices.iter();
        if let (true, Some(entry)) = (
            mode == MemoryAddressing::Stateful.as_str(),
            bound.clone().find(|entry| entry.arg_index == index),
        ) {
            let _ = write!(text, " (surface {})", entry.bti_value);
        }
    }
    if let Some(access) = &pointer.access_type {
        let _ = write!(text, ", {access}");
    }
    text
}

fn list_text(name: &str, module: &Module) -> String {
    let simd = match module.int_attr("SimdSize") {
        Some(simd) => format!("SIMD{simd}"),
        None => "width not stated".to_owned(),
    };
    let mut out = format!("{name}: 1 kernel (vISA text)\n\n{}: {simd}\n", module.name);
    let inputs = module.inputs.iter().filter_map(|input| match input.var {
        InputVar::General(id) => Some((module.vars.general(id)?, input)),
        _ => None,
    });
    let rows: Vec<_> = inputs
        .map(|(variable, input)| {
            [
                "input".to_owned(),
                variable.name.clone(),
                format!("{} x {}", variable.elements, variable.ty),
                format!("{} bytes at {}", input.size, input.offset),
            ]
        })
        .collect();
    out.push_str(&columns(&rows));
    out
}

/// Rows with aligned columns, indented.
fn columns(rows: &[[String; 4]]) -> String {
    let mut widths = [0; 4];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let [first, second, third, _] = widths;
    let mut out = String::new();
    for [a, b, c, d] in rows {
        let _ = writeln!(out, "  {a:first$}  {b:second$}  {c:third$}  {d}");
    }
    out
}
