//! `list` and `disasm`: what a file holds.
//!
//! Zebins are described from the container alone, so that files whose kernels cannot be run can still be
//! looked at.

use std::fmt::Write as _;

use serde::Serialize;

use super::exit::{Exit, Failure};
use super::load::{Contents, Loaded};
use visa_jit::artifact::{self, object};
use visa_jit::container::{
    ArgInfo, ArgType, KernelInfo, MemoryAddressing, MemorySpace, PayloadArgument, Zebin,
    ZebinKernel, infer_device,
};
use visa_jit::engine::Error;
use visa_jit::front::text;
use visa_jit::isa::Versions;
use visa_jit::module::{InputVar, Module, ModuleKind};
use visa_runtime::linked::{Argument, KernelRecord};

/// What a file holds. Scripts rely on the keys.
#[derive(Serialize)]
struct Listing {
    file: String,
    /// `zebin`, `visa` or `library`.
    kind: &'static str,
    /// The device, where it is known; of libraries each kernel has one.
    device: Option<String>,
    #[serde(skip)]
    title: String,
    kernels: Vec<Entry>,
}

/// A kernel of it.
#[derive(Serialize)]
struct Entry {
    name: String,
    /// Lanes of a hardware thread; none where a text does not say.
    simd: Option<u32>,
    local_bytes: Option<u32>,
    barriers: Option<u32>,
    required_local_size: Option<[u32; 3]>,
    #[serde(skip)]
    summary: String,
    arguments: Vec<Row>,
}

/// An argument, or an `.input` variable of a text.
#[derive(Serialize)]
struct Row {
    /// None of an `.input` variable.
    index: Option<u32>,
    name: String,
    #[serde(rename = "type")]
    ty: String,
    /// How it reaches the kernel, for people.
    passing: String,
}

/// The text of `list`, or its JSON object.
pub fn list(file: &Loaded, json: bool) -> Result<String, Failure> {
    let listing = match &file.contents {
        Contents::Text(source) => list_text(file, &parse(&file.name, source, file.versions)?),
        Contents::Zebin(bytes) => list_zebin(file, &file.zebin(bytes)?),
        Contents::Library(_, bytes) => list_library(&file.name, bytes)?,
    };
    if json {
        let text = serde_json::to_string(&listing).map_err(|error| Failure {
            exit: Exit::Internal,
            message: error.to_string(),
        })?;
        return Ok(format!("{text}\n"));
    }
    let mut out = format!("{}: {}\n", listing.file, listing.title);
    for kernel in &listing.kernels {
        let _ = writeln!(out, "\n{}: {}", kernel.name, kernel.summary);
        out.push_str(&columns(&kernel.arguments));
    }
    Ok(out)
}

/// The text of `disasm`: the vISA of every kernel, or of one and the functions compiled with it.
pub fn disasm(file: &Loaded, kernel: Option<&str>) -> Result<String, Failure> {
    match &file.contents {
        Contents::Text(source) => {
            let modules = super::binary::chosen(file, source, kernel)?;
            let texts: Vec<String> = modules.iter().map(text::print).collect();
            Ok(texts.join("\n"))
        }
        Contents::Zebin(bytes) => disasm_zebin(file, &file.zebin(bytes)?, kernel),
        Contents::Library(..) => Err(Failure::unsupported(format!(
            "{}: compiled kernels have no vISA text any more",
            file.name
        ))),
    }
}

/// Checks that a kernel that was asked for exists.
pub fn choose(file: &str, known: &[&String], wanted: Option<&str>) -> Result<(), Failure> {
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

/// The modules of a text.
pub fn parse(name: &str, source: &str, versions: Versions) -> Result<Vec<Module>, Failure> {
    text::parse_all(name, source, versions)
        .map_err(|diagnostics| Failure::from(Error::from(diagnostics)))
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
    // The vendor's assembler wants one `.version`, at the head of the file.
    let first = out.is_empty();
    let gap = if first { "" } else { "\n" };
    let _ = writeln!(out, "{gap}// {what} {name}");
    for line in text.trim_end().lines() {
        if first || !line.starts_with(".version") {
            let _ = writeln!(out, "{line}");
        }
    }
}

fn list_zebin(file: &Loaded, zebin: &Zebin) -> Listing {
    let inferred = infer_device(zebin);
    let known = file.device.or(inferred.device);
    let device = match (file.device, known) {
        (Some(device), _) => format!("{device} (as asked for)"),
        (None, Some(device)) => format!("{device} ({})", inferred.reason),
        (None, None) => format!("a device that cannot be told ({})", inferred.reason),
    };
    let kernel = |kernel: &ZebinKernel| {
        let env = &kernel.info.execution_env;
        Entry {
            name: kernel.name.clone(),
            simd: Some(env.simd_size),
            local_bytes: Some(env.slm_size),
            barriers: Some(env.barrier_count),
            required_local_size: env.required_work_group_size,
            summary: summary(&kernel.info),
            arguments: arguments(&kernel.info, zebin.ze_info.args_of(&kernel.name)),
        }
    };
    let kernels: Vec<Entry> = zebin.launchable().map(kernel).collect();
    Listing {
        file: file.name.clone(),
        kind: "zebin",
        device: known.map(|device| device.device().to_owned()),
        title: format!("{} for {device}", counted(kernels.len(), "kernel")),
        kernels,
    }
}

fn list_library(name: &str, bytes: &[u8]) -> Result<Listing, Failure> {
    let records = object::records(bytes).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
    let kernel = |record: &KernelRecord| {
        let meta = record.variants.first().map(|variant| &variant.meta);
        let row = |a: &Argument| Row {
            index: Some(a.index),
            name: or(&a.name, "?"),
            ty: or(&a.type_name, "?"),
            passing: artifact::passing(a),
        };
        Entry {
            name: record.name.clone(),
            simd: meta.map(|meta| meta.simd.into()),
            local_bytes: meta.map(|meta| meta.slm_bytes),
            barriers: meta.map(|meta| meta.barriers()),
            required_local_size: meta.and_then(|meta| meta.required_local_size),
            summary: library_summary(record),
            arguments: record.plan.arguments.iter().map(row).collect(),
        }
    };
    Ok(Listing {
        file: name.to_owned(),
        kind: "library",
        device: records.first().map(|record| record.device.clone()),
        title: format!("{}, compiled", counted(records.len(), "kernel")),
        kernels: records.iter().map(kernel).collect(),
    })
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

/// One row an argument.
fn arguments(info: &KernelInfo, args: &[ArgInfo]) -> Vec<Row> {
    let named = args.iter().map(|arg| arg.index.saturating_add(1)).max();
    let count = info.arg_count().max(named.unwrap_or(0));
    (0..count)
        .map(|index| {
            let source = args.iter().find(|arg| arg.index == index);
            let (name, ty) = source.map_or(("?", "?".to_owned()), |arg| {
                (arg.name.as_str(), declared(arg))
            });
            let size = source.and_then(|arg| arg.type_and_size().1);
            Row {
                index: Some(index),
                name: name.to_owned(),
                ty,
                passing: passing(info, index, size),
            }
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

fn list_text(file: &Loaded, modules: &[Module]) -> Listing {
    let kernels = modules.iter().filter(|m| m.kind == ModuleKind::Kernel);
    // A text of functions alone has these to show.
    let alone = kernels.clone().next().is_none();
    let shown = modules
        .iter()
        .filter(|m| alone || m.kind == ModuleKind::Kernel);
    let entries: Vec<Entry> = shown.map(text_entry).collect();
    Listing {
        file: file.name.clone(),
        kind: "visa",
        device: file.device.map(|device| device.device().to_owned()),
        title: format!("{} (vISA text)", counted(entries.len(), "kernel")),
        kernels: entries,
    }
}

fn text_entry(module: &Module) -> Entry {
    let simd = module.int_attr("SimdSize");
    let inputs = module.inputs.iter().filter_map(|input| match input.var {
        InputVar::General(id) => Some((module.vars.general(id)?, input)),
        _ => None,
    });
    let rows = inputs.map(|(variable, input)| Row {
        index: None,
        name: variable.name.clone(),
        ty: format!("{} x {}", variable.elements, variable.ty),
        passing: format!("{} bytes at {}", input.size, input.offset),
    });
    Entry {
        name: module.name.clone(),
        simd: simd.and_then(|simd| u32::try_from(simd).ok()),
        local_bytes: None,
        barriers: None,
        required_local_size: None,
        summary: match simd {
            Some(simd) => format!("SIMD{simd}"),
            None => "width not stated".to_owned(),
        },
        arguments: rows.collect(),
    }
}

/// Rows with aligned columns, indented.
fn columns(rows: &[Row]) -> String {
    let index = |row: &Row| {
        row.index
            .map_or("input".to_owned(), |index| index.to_string())
    };
    let width = |text: &dyn Fn(&Row) -> usize| rows.iter().map(text).max().unwrap_or(0);
    let first = width(&|row| index(row).len());
    let second = width(&|row| row.name.chars().count());
    let third = width(&|row| row.ty.chars().count());
    let mut out = String::new();
    for row in rows {
        let (name, ty, passing) = (&row.name, &row.ty, &row.passing);
        let _ = writeln!(
            out,
            "  {:first$}  {name:second$}  {ty:third$}  {passing}",
            index(row)
        );
    }
    out
}
