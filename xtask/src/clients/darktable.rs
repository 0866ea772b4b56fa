//! `darktable-cli`: an image exported through OpenCL kernels against what darktable's own code for CPUs makes of it.

use std::fs;

use super::bench::{Bench, Case};

const WIDTH: usize = 384;
const HEIGHT: usize = 256;

/// Darktable's two paths are two programs: a mean difference of a fifth of a step of 8 bits, of values from 0 to 1.
const MEAN: f32 = 0.2 / 255.0;

/// A module of darktable with its parameters, as its structure `dt_iop_…_params_t` has them.
struct Module {
    name: &'static str,
    version: u32,
    parameters: &'static [Word],
}

enum Word {
    I(i32),
    F(f32),
}
use Word::{F, I};

const MODULES: &[Module] = &[
    // Mode, black, exposure, two of the deflicker, bias.
    module(
        "exposure",
        6,
        &[I(0), F(0.0), F(0.5), F(50.0), F(-4.0), I(0)],
    ),
    // Radius, amount, threshold.
    module("sharpen", 1, &[F(2.0), F(0.5), F(0.5)]),
    // Sharpness, contrast.
    module("highpass", 1, &[F(50.0), F(50.0)]),
    // Size, threshold, strength.
    module("bloom", 1, &[F(20.0), F(90.0), F(25.0)]),
    // Size, saturation, brightness, amount.
    module("soften", 1, &[F(50.0), F(100.0), F(0.33), F(50.0)]),
    // Strength, bias.
    module("velvia", 2, &[F(25.0), F(1.0)]),
    // Amount.
    module("vibrance", 2, &[F(25.0)]),
    // Slopes and offsets of two colours, whether out of range is kept.
    module("colorcontrast", 2, &[F(1.2), F(0.0), F(1.1), F(0.0), I(1)]),
    // Radius of a patch, strength, luma, chroma.
    module("nlmeans", 2, &[F(2.0), F(50.0), F(0.5), F(1.0)]),
    // Local Laplacian; two strengths, detail, midtones.
    module("bilat", 3, &[I(1), F(0.5), F(0.5), F(0.25), F(0.5)]),
];

const fn module(name: &'static str, version: u32, parameters: &'static [Word]) -> Module {
    Module {
        name,
        version,
        parameters,
    }
}

pub fn run(bench: &Bench) -> Result<Vec<Case>, String> {
    bench.write("in.pfm", picture())?;
    MODULES.iter().map(|m| compare(bench, m)).collect()
}

/// Waves, a slope and squares: smooth parts and edges.
fn picture() -> Vec<u8> {
    let mut bytes = format!("PF\n{WIDTH} {HEIGHT}\n-1.0\n").into_bytes();
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            let red = 0.5 + 0.4 * (x as f32 * 0.05).sin() * (y as f32 * 0.03).cos();
            let green = 0.9 * x as f32 / WIDTH as f32;
            let blue = if (x / 16 + y / 16) % 2 == 1 { 0.7 } else { 0.1 };
            for value in [red, green, blue] {
                bytes.extend(f32::to_le_bytes(value));
            }
        }
    }
    bytes
}

/// The history of an image with this module alone.
fn history(module: &Module) -> String {
    let bytes = module.parameters.iter().flat_map(|word| match word {
        I(value) => value.to_le_bytes(),
        F(value) => value.to_le_bytes(),
    });
    let parameters: String = bytes.map(|b| format!("{b:02x}")).collect();
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:darktable="http://darktable.sf.net/" darktable:xmp_version="5" darktable:raw_params="0"
 darktable:auto_presets_applied="1" darktable:history_end="1" darktable:iop_order_version="2"><darktable:history><rdf:Seq>
<rdf:li darktable:num="0" darktable:operation="{}" darktable:enabled="1" darktable:modversion="{}" darktable:params="{parameters}"
 darktable:multi_name="" darktable:multi_priority="0"/>
</rdf:Seq></darktable:history></rdf:Description></rdf:RDF></x:xmpmeta>
"#,
        module.name, module.version
    )
}

/// Passes if all modules ran in OpenCL and the images are alike.
fn compare(bench: &Bench, module: &Module) -> Result<Case, String> {
    bench.write("in.xmp", history(module))?;
    let log = |path: &str| format!("darktable-{}-{path}", module.name);
    let (expected, _) = export(bench, &log("cpu"), false)?;
    let (pixels, said) = export(bench, &log("opencl"), true)?;
    let on = |path: &str| said.matches(&format!("on {path}, blended")).count();
    let differences: Vec<f32> = std::iter::zip(&expected, &pixels)
        .map(|(a, b)| (a - b).abs())
        .collect();
    let most = differences.iter().copied().fold(0.0, f32::max);
    let mean = differences.iter().sum::<f32>() / differences.len().max(1) as f32;
    println!(
        "  {}: {} parts by OpenCL, {} not; mean difference {mean:.6}, largest {most:.6}",
        module.name,
        on("GPU"),
        on("CPU")
    );
    let whole = expected.len() == 3 * WIDTH * HEIGHT && pixels.len() == expected.len();
    // A NaN is no difference that is small.
    let passed = whole && on("GPU") > 0 && on("CPU") == 0 && mean <= MEAN;
    Ok(Case::one(module.name, passed))
}

/// The numbers of the exported image, or none if there is none, and what was said.
fn export(bench: &Bench, log: &str, opencl: bool) -> Result<(Vec<f32>, String), String> {
    let out = bench.folder.join("out.pfm");
    let _ = fs::remove_file(&out);
    let switch = format!("opencl={}", if opencl { "TRUE" } else { "FALSE" });
    let command = [
        "darktable-cli",
        "in.pfm",
        "in.xmp",
        "out.pfm",
        "--core",
        "--configdir",
        "darktable",
        "--library",
        ":memory:",
        "--conf",
        &switch,
        "-d",
        "opencl",
        "-d",
        "perf",
    ];
    let said = bench.run(log, 900, opencl, &bench.folder, &command)?;
    let bytes = fs::read(&out).unwrap_or_default();
    // Three lines of text, then the numbers.
    let body = bytes.splitn(4, |b| *b == b'\n').nth(3).unwrap_or_default();
    let numbers = body
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    Ok((numbers.collect(), said.both()))
}
