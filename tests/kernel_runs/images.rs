//! Images: every format read and written, every kind, every sampler, whole pictures.

use std::fmt::Debug;

use crate::reference::image::{Picture, Texel};
use crate::support::Target;
use visa_runtime::{
    Addressing, Channel, Element, ImageFormat, ImageKind, ImageShape, SamplerState,
};
use visa_test_common::Rng;

fn formats() -> Vec<ImageFormat> {
    use Channel::{Float, Int, Snorm, Uint, Unorm};
    let mut out = Vec::new();
    for channel in [Unorm, Snorm, Int, Uint, Float] {
        for bits in [8, 16, 32] {
            out.extend(
                [1, 2, 4]
                    .iter()
                    .filter_map(|&n| ImageFormat::new(n, bits, channel)),
            );
        }
    }
    out
}

fn shape(kind: ImageKind, format: ImageFormat, extent: [u32; 3]) -> ImageShape {
    ImageShape {
        kind,
        format,
        extent,
    }
}

fn flat(format: ImageFormat) -> ImageShape {
    shape(ImageKind::D2, format, [8, 5, 1])
}

/// What kernels for a format are called by, and whether texels are integers.
fn suffix(format: ImageFormat) -> &'static str {
    match format.channel() {
        Channel::Int => "int",
        Channel::Uint => "uint",
        _ => "float",
    }
}

/// Coordinates on all sides of an image.
fn around(shape: ImageShape, rng: &mut Rng, count: usize) -> Vec<[i64; 3]> {
    let mut one = |k: usize| i64::from(rng.word_below(shape.extents()[k] + 4)) - 2;
    (0..count).map(|_| [one(0), one(1), one(2)]).collect()
}

/// Coordinates as vectors of `n`; the layers and depths of vectors of four are the third.
fn vectors(at: &[[i64; 3]], n: usize) -> Vec<i32> {
    let four = |a: &[i64; 3]| [a[0] as i32, a[1] as i32, a[2] as i32, 0];
    at.iter().flat_map(|a| four(a)[..n].to_vec()).collect()
}

fn floats(at: &[[f32; 3]], n: usize) -> Vec<f32> {
    let four = |a: &[f32; 3]| [a[0], a[1], a[2], 0.0];
    at.iter().flat_map(|a| four(a)[..n].to_vec()).collect()
}

/// Values of texels as a kernel writes them out.
fn words(texels: &[Texel], format: ImageFormat) -> Vec<u32> {
    let word = |&v: &f64| match format.channel() {
        Channel::Int => (v as i32).cast_unsigned(),
        Channel::Uint => v as u32,
        _ => (v as f32).to_bits(),
    };
    texels.iter().flatten().map(word).collect()
}

on_devices!(texels, "image_access", run_texels);

fn run_texels(t: &Target) {
    let mut rng = Rng::new(50);
    for format in formats() {
        let picture = Picture::random(flat(format), &mut rng);
        let at = around(picture.shape, &mut rng, 50);
        let want: Vec<Texel> = at.iter().map(|&a| picture.texel(a)).collect();
        t.job(&format!("load_{}", suffix(format)), (50, 25))
            .output::<u32>(200)
            .input_image(picture.shape, &picture.bytes)
            .input(&vectors(&at, 2))
            .check(|r| {
                r.exact(0, &words(&want, format));
            });
        store(t, &mut rng, format);
    }
}

/// Each texel is written once, and some beside the image; values are out of range as often as not.
fn store(t: &Target, rng: &mut Rng, format: ImageFormat) {
    let mut picture = Picture::random(flat(format), rng);
    let before = picture.bytes.clone();
    let mut at: Vec<[i64; 3]> = rng
        .permutation(8 * 5)
        .into_iter()
        .map(|i| [i64::from(i % 8), i64::from(i / 8), 0])
        .collect();
    at.extend([[-1, 0, 0], [0, -1, 0], [8, 2, 0], [3, 5, 0]]);
    at.truncate(30 + rng.word_below(14) as usize);
    let texels: Vec<Texel> = at
        .iter()
        .map(|_| {
            std::array::from_fn(|_| match format.channel() {
                Channel::Int => f64::from(rng.word().cast_signed() >> rng.word_below(32)),
                Channel::Uint => f64::from(rng.word() >> rng.word_below(32)),
                _ => f64::from(rng.float(-2.0, 2.0)),
            })
        })
        .collect();
    for (&a, &texel) in at.iter().zip(&texels) {
        picture.write(a, texel);
    }
    let n = at.len() as u32;
    t.job(&format!("store_{}", suffix(format)), (n, n))
        .output_image(picture.shape, &before)
        .input(&vectors(&at, 2))
        .input(&words(&texels, format))
        .check(|r| {
            r.exact(0, &picture.bytes);
        });
}

on_devices!(kinds, "image_access", run_kinds);

fn run_kinds(t: &Target) {
    let mut rng = Rng::new(51);
    let format = |name: &str| name.parse::<ImageFormat>().unwrap();
    let loads = [
        ("load_1d", ImageKind::D1, "rg16float", 0, false),
        ("load_buffer", ImageKind::Buffer, "rgba32float", 0, false),
        ("load_1d_array", ImageKind::D1Array, "rgba8unorm", 2, true),
        ("load_3d", ImageKind::D3, "r32float", 4, true),
        ("load_2d_array", ImageKind::D2Array, "rg16uint", 4, true),
    ];
    for (kernel, kind, name, n, given) in loads {
        let picture = Picture::random(shape(kind, format(name), [7, 3, 4]), &mut rng);
        let mut at = around(picture.shape, &mut rng, 40);
        if kind.layer_axis().is_some() {
            // Layers that there are: the specification leaves the others open.
            let layers = i64::from(picture.shape.extents()[n.min(3) - 1]);
            at.iter_mut().for_each(|a| {
                let layer = if n == 2 { &mut a[1] } else { &mut a[2] };
                *layer = (*layer).clamp(0, layers - 1);
            });
        }
        if !given {
            at = (0..40).map(|i| [i, 0, 0]).collect();
        }
        let want: Vec<Texel> = at.iter().map(|&a| picture.texel(a)).collect();
        let mut job = t
            .job(kernel, (40, 40))
            .output::<u32>(160)
            .input_image(picture.shape, &picture.bytes);
        if given {
            job = job.input(&vectors(&at, n));
        }
        job.check(|r| {
            r.exact(0, &words(&want, picture.shape.format));
        });
    }
    let stores = [
        ("store_1d", ImageKind::D1, "rgba8snorm", 0),
        ("store_3d", ImageKind::D3, "rg16float", 4),
        ("store_2d_array", ImageKind::D2Array, "rgba32uint", 4),
    ];
    for (kernel, kind, name, n) in stores {
        written(t, kernel, shape(kind, format(name), [6, 5, 3]), n, &mut rng);
    }
    sizes(t);
    brighten(t, &mut rng);
}

/// Each texel is written once, and some beside the image; coordinates have `n` elements, none for those of the items.
fn written(t: &Target, kernel: &str, shape: ImageShape, n: usize, rng: &mut Rng) {
    let mut picture = Picture::random(shape, rng);
    let before = picture.bytes.clone();
    let count = shape.bytes().unwrap() as u32 / shape.format.texel_bytes();
    let at: Vec<[i64; 3]> = match n {
        0 => (0..i64::from(count) + 5).map(|i| [i, 0, 0]).collect(),
        _ => rng
            .permutation(count)
            .into_iter()
            .map(|i| [i % 6, i / 6 % 5, i / 30].map(i64::from))
            .chain([[6, 0, 0], [0, 5, 0], [-1, 0, 0]])
            .chain((n == 4).then_some([0, 0, 3]))
            .collect(),
    };
    let value = |rng: &mut Rng| match shape.format.channel() {
        Channel::Uint => f64::from(rng.word()),
        Channel::Int => f64::from(rng.word().cast_signed()),
        _ => f64::from(rng.float(-1.0, 1.0)),
    };
    let texels: Vec<Texel> = at
        .iter()
        .map(|_| std::array::from_fn(|_| value(rng)))
        .collect();
    for (&a, &texel) in at.iter().zip(&texels) {
        picture.write(a, texel);
    }
    let mut job = t
        .job(kernel, (at.len() as u32, at.len() as u32))
        .output_image(shape, &before);
    if n != 0 {
        job = job.input(&vectors(&at, n));
    }
    job.input(&words(&texels, shape.format)).check(|r| {
        r.exact(0, &picture.bytes);
    });
}

on_devices!(writes, "image_write", run_writes);

/// Devices without a sampler write images too.
fn run_writes(t: &Target) {
    let mut rng = Rng::new(54);
    for (kernel, kind, name, n) in [
        ("fill_float", ImageKind::D2, "rgba8unorm", 2),
        ("fill_float", ImageKind::D2, "rg16float", 2),
        ("fill_float", ImageKind::D2, "r16snorm", 2),
        ("fill_int", ImageKind::D2Array, "rgba32int", 4),
        ("fill_int", ImageKind::D2Array, "rg8int", 4),
        ("fill_uint", ImageKind::D3, "r16uint", 4),
        ("fill_uint", ImageKind::D3, "rgba32uint", 4),
    ] {
        let format = name.parse().unwrap();
        written(t, kernel, shape(kind, format, [6, 5, 3]), n, &mut rng);
    }
    let image = shape(ImageKind::D2, "r8uint".parse().unwrap(), [7, 3, 1]);
    t.job("width_height", (1, 1))
        .output::<u32>(2)
        .input_image(image, &[0; 21])
        .check(|r| {
            r.exact(0, &[7_u32, 3]);
        });
}

fn sizes(t: &Target) {
    let format: ImageFormat = "rg16float".parse().unwrap();
    let image = |kind, extent| {
        let shape = shape(kind, format, extent);
        (shape, vec![0; shape.bytes().unwrap() as usize])
    };
    let images = [
        image(ImageKind::D3, [2, 3, 4]),
        image(ImageKind::D2Array, [5, 6, 7]),
        image(ImageKind::D2, [8, 9, 1]),
        image(ImageKind::D1, [10, 1, 1]),
    ];
    let mut job = t.job("sizes", (1, 1)).output::<u32>(11);
    for (shape, bytes) in &images {
        job = job.input_image(*shape, bytes);
    }
    job.check(|r| {
        r.exact(0, &[2, 3, 4, 5, 6, 7, 8, 9, 10, 0x10DD, 0x10B2_u32]);
    });
}

fn brighten(t: &Target, rng: &mut Rng) {
    let mut picture = Picture::random(flat("rgba32float".parse().unwrap()), rng);
    let before = picture.bytes.clone();
    for at in (0..40).map(|i| [i % 8, i / 8, 0]) {
        let texel = picture.texel(at);
        let brighter = texel.map(|v| f64::from(v as f32 + 0.75));
        picture.write(at, brighter);
    }
    t.job_3d("brighten", [8, 5, 1], [4, 5, 1])
        .output_image(picture.shape, &before)
        .value(0.75_f32)
        .check(|r| {
            r.exact(0, &picture.bytes);
        });
}

on_devices!(samples, "image_samples", run_samples);

/// Whatever the number of the sample, the texel.
fn run_samples(t: &Target) {
    let mut rng = Rng::new(54);
    let format = |name: &str| name.parse::<ImageFormat>().unwrap();
    for (kernel, kind, name, n) in [
        ("samples_float", ImageKind::D2, "rgba8unorm", 2),
        ("samples_float", ImageKind::D2, "rg32float", 2),
        ("samples_int", ImageKind::D2, "rgba16int", 2),
        ("samples_array", ImageKind::D2Array, "rgba16snorm", 4),
        ("samples_depth", ImageKind::D2, "r32float", 2),
    ] {
        let picture = Picture::random(shape(kind, format(name), [8, 5, 3]), &mut rng);
        let at = around(picture.shape, &mut rng, 64);
        let want: Vec<Texel> = at.iter().map(|&a| picture.texel(a)).collect();
        let mut want = words(&want, picture.shape.format);
        if kernel == "samples_depth" {
            want = want.into_iter().step_by(4).collect();
        }
        t.job(kernel, (64, 32))
            .output::<u32>(want.len())
            .input_image(picture.shape, &picture.bytes)
            .input(&vectors(&at, n))
            .value(3_i32)
            .check(|r| {
                r.exact(0, &want);
            });
    }
}

on_devices!(samplers, "image_sample", run_samplers);

pub fn states(normalized: bool) -> Vec<SamplerState> {
    use Addressing::{Border, Edge, Mirror, None, Repeat};
    let modes: &[Addressing] = if normalized {
        &[None, Border, Edge, Repeat, Mirror]
    } else {
        &[None, Border, Edge]
    };
    let state = |&addressing, linear| SamplerState {
        addressing,
        linear,
        normalized,
        ..SamplerState::default()
    };
    modes
        .iter()
        .flat_map(|a| [state(a, false), state(a, true)])
        .collect()
}

/// Coordinates in steps that single precision multiplies exactly, so that no texel is missed by rounding; inside of the image
/// where what is outside does not matter.
pub fn spots(picture: &Picture, state: SamplerState, rng: &mut Rng, count: usize) -> Vec<[f32; 3]> {
    let extents = picture.shape.extents();
    let mut one = |k: usize| {
        let (low, high) = match state.addressing {
            Addressing::None => (8, 56),
            _ => (-100, 164),
        };
        let s = (rng.word_below((high - low) as u32) as i32 + low) as f32 / 64.0;
        match (picture.shape.kind.layer_axis(), state.normalized) {
            (Some(axis), _) if axis as usize == k => (s * extents[k] as f32).round(),
            (_, true) => s,
            // Not on the edges between texels.
            (_, false) => s * extents[k] as f32 + 1.0 / 1024.0,
        }
    };
    (0..count).map(|_| [one(0), one(1), one(2)]).collect()
}

/// Mixed texels, up to the last bits of single precision.
pub fn close(got: f32, want: f64) -> bool {
    (f64::from(got) - want).abs() <= 2e-6 * want.abs().max(1.0)
}

fn run_samplers(t: &Target) {
    let mut rng = Rng::new(52);
    let format = |name: &str| name.parse::<ImageFormat>().unwrap();
    for name in ["rgba8unorm", "r32float", "rg16snorm"] {
        let picture = Picture::random(flat(format(name)), &mut rng);
        for state in [states(true), states(false)].concat() {
            sampled(
                t,
                "sample_argument",
                &picture,
                Some(state),
                state,
                2,
                &mut rng,
            );
        }
    }
    let inline = |addressing, linear, normalized| SamplerState {
        addressing,
        linear,
        normalized,
        ..SamplerState::default()
    };
    let picture = Picture::random(flat(format("rgba16float")), &mut rng);
    for (kernel, state) in [
        ("linear_repeat", inline(Addressing::Repeat, true, true)),
        ("nearest_clamp_edge", inline(Addressing::Edge, false, true)),
        (
            "plain_linear_clamp",
            inline(Addressing::Border, true, false),
        ),
        ("plain_nearest_none", inline(Addressing::None, false, false)),
        (
            "plain_nearest_clamp",
            inline(Addressing::Border, false, false),
        ),
    ] {
        sampled(t, kernel, &picture, None, state, 2, &mut rng);
    }
    for (kernel, kind, n) in [
        ("sample_1d", ImageKind::D1, 1),
        ("sample_1d_array", ImageKind::D1Array, 2),
        ("sample_2d_array", ImageKind::D2Array, 4),
        ("sample_3d", ImageKind::D3, 4),
    ] {
        let picture = Picture::random(shape(kind, format("rg8unorm"), [8, 4, 2]), &mut rng);
        for state in states(true) {
            sampled(t, kernel, &picture, Some(state), state, n, &mut rng);
        }
    }
    whole_numbers(t, &mut rng);
}

fn sampled(
    t: &Target,
    kernel: &str,
    picture: &Picture,
    argument: Option<SamplerState>,
    state: SamplerState,
    n: usize,
    rng: &mut Rng,
) {
    let at = spots(picture, state, rng, 64);
    let want: Vec<f64> = at
        .iter()
        .flat_map(|a| picture.sample(state, a.map(f64::from)))
        .collect();
    let mut job = t
        .job(kernel, (64, 32))
        .output::<f32>(256)
        .input_image(picture.shape, &picture.bytes);
    if let Some(state) = argument {
        job = job.sampler(state);
    }
    job.input(&floats(&at, n)).check(|r| {
        r.all(0, &want, close);
    });
}

/// Integer formats, which are never mixed, and integer coordinates, which are never normalised.
fn whole_numbers(t: &Target, rng: &mut Rng) {
    let format = |name: &str| name.parse::<ImageFormat>().unwrap();
    for state in states(false).into_iter().filter(|s| !s.linear) {
        let picture = Picture::random(flat(format("rgba16int")), rng);
        let mut at = around(picture.shape, rng, 64);
        if state.addressing == Addressing::None {
            at.iter_mut()
                .for_each(|a| *a = [a[0].clamp(0, 7), a[1].clamp(0, 4), 0]);
        }
        let want: Vec<Texel> = at
            .iter()
            .map(|a| picture.sample(state, a.map(|c| c as f64)))
            .collect();
        check_words(
            t,
            "sample_integers",
            &picture,
            state,
            &vectors(&at, 2),
            &want,
        );
        let picture = Picture::random(flat(format("r32uint")), rng);
        let at = spots(&picture, state, rng, 64);
        let want: Vec<Texel> = at
            .iter()
            .map(|a| picture.sample(state, a.map(f64::from)))
            .collect();
        check_words(
            t,
            "sample_unsigned",
            &picture,
            state,
            &floats(&at, 2),
            &want,
        );
    }
}

fn check_words<T: Element + Debug>(
    t: &Target,
    kernel: &str,
    picture: &Picture,
    state: SamplerState,
    at: &[T],
    want: &[Texel],
) {
    t.job(kernel, (64, 64))
        .output::<u32>(256)
        .input_image(picture.shape, &picture.bytes)
        .sampler(state)
        .input(at)
        .check(|r| {
            r.exact(0, &words(want, picture.shape.format));
        });
}

/// Texel of a result.
type Filter<'a> = &'a dyn Fn([i64; 3]) -> Texel;

on_devices!(pictures, "image_filter", run_pictures);

fn run_pictures(t: &Target) {
    let mut rng = Rng::new(53);
    let shape_of = |name: &str, w, h| shape(ImageKind::D2, name.parse().unwrap(), [w, h, 1]);
    let from = Picture::random(shape_of("rgba8unorm", 19, 13), &mut rng);
    let edge = |at: [i64; 3]| from.texel([at[0].clamp(0, 18), at[1].clamp(0, 12), 0]);
    let places = |w: i64, h: i64| (0..w * h).map(move |i| [i % w, i / w, 0]);
    let blurred = |at: [i64; 3]| -> Texel {
        std::array::from_fn(|c| {
            let mut sum = 0.0;
            for (dx, dy) in (0..9).map(|k| (k % 3 - 1, k / 3 - 1)) {
                let weight = ((2 - i64::abs(dx)) * (2 - i64::abs(dy))) as f64;
                sum += weight * edge([at[0] + dx, at[1] + dy, 0])[c];
            }
            sum / 16.0
        })
    };
    let grey = |at: [i64; 3]| -> Texel {
        let [r, g, b, a] = from.texel(at);
        let grey = 0.25 * r + 0.5 * g + 0.25 * b;
        [grey, grey, grey, a]
    };
    let linear = SamplerState {
        addressing: Addressing::Edge,
        linear: true,
        normalized: true,
        ..SamplerState::default()
    };
    let resized = |at: [i64; 3]| -> Texel {
        let [x, y, _] = at.map(|c| c as f64 + 0.5);
        from.sample(linear, [x / 32.0, y / 16.0, 0.0])
    };
    let jobs: [(&str, ImageShape, Filter<'_>); 4] = [
        ("blur", shape_of("rgba32float", 19, 13), &blurred),
        ("convert_image", shape_of("rg32float", 19, 13), &grey),
        ("convert_image", shape_of("r32float", 19, 13), &grey),
        ("resize", shape_of("rgba32float", 32, 16), &resized),
    ];
    for (kernel, shape, want) in jobs {
        let [w, h, _] = shape.extent;
        let channels = shape.format.channels() as usize;
        let want: Vec<f64> = places(w.into(), h.into())
            .flat_map(|at| want(at)[..channels].to_vec())
            .collect();
        t.job_3d(kernel, [w, h, 1], [w, 1, 1])
            .input_image(from.shape, &from.bytes)
            .output_image(shape, &vec![0; shape.bytes().unwrap() as usize])
            .check(|r| {
                r.all(1, &want, close);
            });
    }
    narrow(t, &from, &blurred);
}

/// The blur into bytes: at most one step away, as the kernel adds in single precision.
fn narrow(t: &Target, from: &Picture, blurred: Filter<'_>) {
    let want: Vec<f64> = (0..19 * 13)
        .flat_map(|i| blurred([i % 19, i / 19, 0]))
        .map(|v| 255.0 * v)
        .collect();
    t.job_3d("blur", [19, 13, 1], [19, 13, 1])
        .input_image(from.shape, &from.bytes)
        .output_image(from.shape, &vec![0; from.bytes.len()])
        .check(|r| {
            r.all(1, &want, |got: u8, want| {
                (f64::from(got) - want).abs() < 0.501
            });
        });
}
