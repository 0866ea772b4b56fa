//! Renders a piece of the Mandelbrot set with a kernel that Intel's GPU compiler built.
//!
//! `cargo run --release --example mandelbrot [PATH]` writes `docs/mandelbrot.png`.
//!
//! The kernel counts iterations; everything here is about making a picture of the counts. Each pixel is the mean
//! of 4x4 samples, taken in linear light, so that fine filaments do not break up.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::thread;

use visa_jit::{Engine, Launch};

const ZEBIN: &[u8] = include_bytes!("../tests/kernels/bin/skl/mandelbrot.zebin");

const WIDTH: usize = 1024;
const HEIGHT: usize = 768;
/// Samples of a pixel in each direction.
const SAMPLES: usize = 4;
/// Iterations after which a point counts as part of the set.
const LIMIT: i32 = 4000;

/// Middle of the picture, and what its width spans.
const CENTRE: (f32, f32) = (-0.745_057, 0.135_234);
const SPAN: f32 = 0.0022;

/// Colours around the wheel, sRGB.
const WHEEL: [[u8; 3]; 8] = [
    [9, 14, 38],
    [18, 52, 106],
    [34, 122, 158],
    [132, 205, 202],
    [252, 244, 214],
    [245, 178, 74],
    [190, 74, 44],
    [74, 18, 48],
];
/// How far a doubling of the count turns the wheel, and where it starts.
const TURN: (f32, f32) = (0.35, 0.6);

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/mandelbrot.png")),
        PathBuf::from,
    );
    let counts = iterate(WIDTH * SAMPLES, HEIGHT * SAMPLES)?;
    write(&path, &shade(&counts))?;
    println!("wrote {}", path.display());
    Ok(())
}

/// Runs the kernel: one count a sample.
fn iterate(width: usize, height: usize) -> Result<Vec<i32>, Box<dyn Error>> {
    let engine = Engine::new()?;
    let program = engine.program_from_zebin(ZEBIN, None)?;
    let counts = engine.memory().alloc((width * height * 4) as u64)?;
    let step = SPAN / width as f32;
    // kernel void mandelbrot(global int *out, float x0, float y0, float dx, float dy, int width, int limit)
    let launch = Launch::new([width as u32, height as u32, 1])
        .local([256, 1, 1])
        .threads(thread::available_parallelism()?.get())
        .arg(0, &counts)
        .arg(1, CENTRE.0 - step * width as f32 / 2.0)
        .arg(2, CENTRE.1 + step * height as f32 / 2.0)
        .arg(3, step)
        .arg(4, -step)
        .arg(5, width as i32)
        .arg(6, LIMIT);
    let report = program.kernel("mandelbrot")?.launch(&launch)?;
    println!(
        "{width}x{height} samples, at most {LIMIT} iterations each: compiled in {:.1?}, ran {:.1?}",
        report.compile, report.run
    );
    Ok(counts.to_vec_of())
}

/// RGB bytes, one pixel for each square of samples.
fn shade(counts: &[i32]) -> Vec<u8> {
    let palette: Vec<[f32; 3]> = (0..=LIMIT).map(colour).collect();
    let mut pixels = Vec::with_capacity(WIDTH * HEIGHT * 3);
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            let mut sum = [0.0f32; 3];
            for sy in 0..SAMPLES {
                let row = ((y * SAMPLES + sy) * WIDTH + x) * SAMPLES;
                for &n in &counts[row..row + SAMPLES] {
                    for (sum, part) in sum.iter_mut().zip(palette[n as usize]) {
                        *sum += part;
                    }
                }
            }
            pixels.extend(sum.map(|s| encode(s / (SAMPLES * SAMPLES) as f32)));
        }
    }
    pixels
}

/// Linear light of a count; points of the set are black.
fn colour(n: i32) -> [f32; 3] {
    if n >= LIMIT {
        return [0.0; 3];
    }
    let turn = ((n as f32 + 1.0).log2() * TURN.0 + TURN.1).fract() * WHEEL.len() as f32;
    let at = turn as usize;
    let t = turn - at as f32;
    let t = t * t * (3.0 - 2.0 * t);
    let (from, to) = (WHEEL[at % WHEEL.len()], WHEEL[(at + 1) % WHEEL.len()]);
    std::array::from_fn(|c| decode(from[c]) * (1.0 - t) + decode(to[c]) * t)
}

/// sRGB to linear light.
fn decode(c: u8) -> f32 {
    (f32::from(c) / 255.0).powf(2.2)
}

/// Linear light to sRGB.
fn encode(c: f32) -> u8 {
    (c.powf(1.0 / 2.2) * 255.0).round() as u8
}

fn write(path: &Path, pixels: &[u8]) -> Result<(), Box<dyn Error>> {
    let file = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(file, WIDTH as u32, HEIGHT as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(())
}
