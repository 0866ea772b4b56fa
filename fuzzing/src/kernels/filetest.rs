//! A kernel with a launch as a file test (`tests/filetests/README.md`).

use std::fmt::Write;

use visa_jit::isa::Type;
use visa_runtime::{Addressing, ImageShape, SamplerState};

use super::{Kernel, RESULT};
use crate::engines::{Input, Launch, bits};

/// Numbers of `size` bytes, repetitions gathered.
fn numbers(bytes: &[u8], size: usize) -> String {
    let mut out = String::new();
    let mut items = bytes.chunks(size).map(bits).peekable();
    while let Some(v) = items.next() {
        let mut n = 1;
        while items.peek() == Some(&v) {
            items.next();
            n += 1;
        }
        let _ = write!(out, " {v:#x}");
        if n > 1 {
            let _ = write!(out, "*{n}");
        }
    }
    out
}

fn name(ty: Type) -> (&'static str, usize) {
    match ty {
        Type::Ub | Type::B | Type::Bool => ("u8", 1),
        Type::Uw | Type::W | Type::V | Type::Uv => ("u16", 2),
        Type::Ud | Type::D => ("u32", 4),
        Type::Uq | Type::Q => ("u64", 8),
        Type::Hf => ("f16", 2),
        Type::Bf => ("bf16", 2),
        Type::F | Type::Vf => ("f32", 4),
        Type::Df => ("f64", 8),
    }
}

fn image_text(index: usize, shape: &ImageShape) -> String {
    let axes = shape.kind.axes() as usize;
    let sizes: Vec<String> = shape.extent[..axes].iter().map(u32::to_string).collect();
    let (kind, format) = (shape.kind.name(), shape.format);
    format!("image {index} {kind} {format} {}", sizes.join("x"))
}

fn sampler_text(state: SamplerState) -> String {
    let address = match state.addressing {
        Addressing::None => "none",
        Addressing::Border => "clamp",
        Addressing::Edge => "clamp_to_edge",
        Addressing::Repeat => "repeat",
        Addressing::Mirror => "mirrored_repeat",
    };
    let flag = |yes, name| if yes { name } else { "" };
    let linear = flag(state.linear, " linear");
    let normalized = flag(state.normalized, " normalized");
    format!("{address}{linear}{normalized} {}", state.comparison.name())
}

/// The text of the file; `expected` are the surfaces after the launch.
pub fn text(kernel: &Kernel, launch: &Launch, expected: &[Vec<u8>], why: &str) -> String {
    let text = kernel.text();
    let mut out = String::new();
    for line in why.lines() {
        let _ = writeln!(out, "// {line}");
    }
    let lanes = launch.lanes;
    let _ = write!(
        out,
        "// platform: {}\n// policy: zero\n// global: {lanes}\n// local: {lanes}\n",
        kernel.platform
    );
    for (i, surface) in launch.surfaces.iter().enumerate() {
        let n = surface.len() / 4;
        let image = launch.images.iter().find(|(at, _)| *at == i as u32);
        let what = image.map_or_else(|| format!("surface {i}"), |(_, s)| image_text(i, s));
        let _ = writeln!(out, "// {what}: u32[{n}] ={}", numbers(surface, 4));
    }
    for (i, state) in launch.samplers.iter().enumerate() {
        let _ = writeln!(out, "// sampler {i}: {}", sampler_text(*state));
    }
    for (var, value) in &launch.inputs {
        let _ = match value {
            // Repetitions are for arrays only.
            Input::Bytes(b) => {
                let all: String = b.iter().map(|b| format!(" {b:#x}")).collect();
                writeln!(out, "// input {var}: u8{all}")
            }
            Input::Address(s) => writeln!(out, "// input {var}: address {s}"),
        };
    }
    for region in kernel.regions() {
        let (ty, size) = name(region.ty);
        let bytes = &expected[region.surface][region.at..region.at + region.count * size];
        // Variables that the kernel does not use are not stored.
        if region.surface == RESULT && bytes.iter().all(|b| *b == 0) {
            continue;
        }
        let (s, at, n) = (region.surface, region.at, region.count);
        let _ = writeln!(
            out,
            "// expect surface {s} at {at}: {ty}[{n}] ={}",
            numbers(bytes, size)
        );
    }
    out + &text
}
