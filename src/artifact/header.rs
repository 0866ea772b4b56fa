//! C headers for object files: a declaration for each kernel, with what its caller has to know.

use std::fmt::Write as _;

use visa_runtime::linked::{ArgKind, Argument, KernelRecord};

use super::object::identifier;

/// The header of `records`; `guard` names it.
pub fn c_header(guard: &str, records: &[KernelRecord]) -> String {
    let guard = format!("VISA_JIT_{}_H", identifier(guard).to_uppercase());
    let mut out = format!(
        "/* Made by visa-jit {}; do not edit. */\n#ifndef {guard}\n#define {guard}\n\n\
         #include \"visa_jit.h\"\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n",
        env!("CARGO_PKG_VERSION")
    );
    for record in records {
        out.push('\n');
        kernel(&mut out, record);
    }
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    out
}

/// Text that cannot end a comment.
fn safe(text: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(printable).collect();
    text.replace("*/", "* /")
}

fn kernel(out: &mut String, record: &KernelRecord) {
    let name = identifier(&record.name);
    let upper = name.to_uppercase();
    let _ = writeln!(out, "/**\n * Kernel `{}`.\n *", safe(&record.name));
    let _ = writeln!(
        out,
        " * Compiled from vISA for {} by {}, for {}{}.",
        safe(&record.device),
        safe(&record.backend),
        safe(&record.triple),
        features(record)
    );
    let oob = match record.oob.as_str() {
        "trap" => "end the launch with a fault record",
        "report" => "read zero or are not written, and are recorded",
        _ => "read zero or are not written",
    };
    let _ = writeln!(out, " * Accesses out of bounds {oob}.\n *");
    if let Some(variant) = record.variants.first() {
        let meta = &variant.meta;
        let local = match meta.required_local_size {
            Some([x, y, z]) => format!("{x} x {y} x {z}, no other"),
            None => "any".to_owned(),
        };
        let _ = writeln!(out, " * Work-group size: {local}.");
        let _ = writeln!(out, " * Lanes of a hardware thread: {}.", meta.simd);
        let _ = writeln!(out, " * Local memory: {} bytes.", meta.slm_bytes);
        let _ = writeln!(out, " * Barriers: {}.", meta.barriers());
        let _ = writeln!(out, " * Payload: {} bytes.", meta.payload_bytes);
    }
    if record.plan.binds_surfaces {
        let _ = writeln!(
            out,
            " * Surfaces are bound by index: visa_jit_launch_surface."
        );
    }
    let _ = writeln!(out, " *\n * Arguments:");
    if record.plan.arguments.is_empty() {
        let _ = writeln!(out, " *   none");
    }
    for argument in &record.plan.arguments {
        let _ = writeln!(
            out,
            " *   {:>2}  {} {}: {}",
            argument.index,
            safe(if argument.type_name.is_empty() {
                "?"
            } else {
                &argument.type_name
            }),
            safe(if argument.name.is_empty() {
                "?"
            } else {
                &argument.name
            }),
            passing(argument)
        );
    }
    let _ = writeln!(
        out,
        " */\nextern const visa_jit_descriptor {};",
        record.symbol
    );
    for argument in &record.plan.arguments {
        if !argument.name.is_empty() {
            let argument_name = identifier(&argument.name).to_uppercase();
            let _ = writeln!(
                out,
                "#define {upper}_ARG_{argument_name} {}",
                argument.index
            );
        }
    }
    if let Some(variant) = record.variants.first() {
        let _ = writeln!(out, "#define {upper}_SIMD {}", variant.meta.simd);
        let _ = writeln!(
            out,
            "#define {upper}_LOCAL_MEMORY {}",
            variant.meta.slm_bytes
        );
        let _ = writeln!(out, "#define {upper}_BARRIERS {}", variant.meta.barriers());
    }
}

fn features(record: &KernelRecord) -> String {
    if record.features.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = record
        .features
        .iter()
        .map(|f| f.strip_prefix("has_").unwrap_or(f))
        .collect();
    format!(" with {}", names.join(", "))
}

/// How an argument is passed, for people.
pub fn passing(argument: &Argument) -> String {
    let bound = |text: &mut String, surface: Option<u32>| {
        if let Some(surface) = surface {
            let _ = write!(text, ", surface {surface}");
        }
    };
    match argument.kind {
        ArgKind::Value { size } => match argument.narrow_bytes().unwrap_or(size as usize) {
            1 => "value, 1 byte".to_owned(),
            bytes => format!("value, {bytes} bytes"),
        },
        ArgKind::Buffer {
            surface,
            address,
            constant,
        } => {
            let space = if constant { "constant" } else { "global" };
            let mut text = format!("{space} buffer");
            bound(&mut text, surface);
            if address {
                text.push_str(", by address");
            }
            text
        }
        ArgKind::Local { alignment } => format!("local memory, aligned to {alignment}"),
        ArgKind::Image { kind, surface } => {
            let mut text = kind.map_or("image", |kind| kind.name()).to_owned();
            bound(&mut text, surface);
            text
        }
        ArgKind::Sampler => "sampler".to_owned(),
        ArgKind::Unused => "not used".to_owned(),
    }
}
