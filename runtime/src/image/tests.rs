//! Formats, sizes and samplers by themselves.

use super::compare::Test;
use super::format::{Texel, border, decode, encode, encode_texel, missing, ordered};
use super::*;
use crate::{DeviceMemory, SurfaceTable};

fn format(text: &str) -> ImageFormat {
    text.parse().unwrap()
}

#[test]
fn formats_have_names_and_numbers() {
    let mut count = 0;
    for channels in 0..6 {
        for bits in [8, 16, 24, 32, 64] {
            for (channel, _) in Channel::ALL {
                let Some(f) = ImageFormat::new(channels, bits, channel) else {
                    continue;
                };
                count += 1;
                assert_eq!(f.to_string().parse(), Ok(f));
                assert_eq!(ImageFormat::from_code(f.code()), Some(f));
            }
        }
    }
    assert_eq!(count, 3 * (2 + 2 + 3 + 3 + 2));
    assert_eq!(ImageFormat::from_code(0), None);
    for wrong in [
        "",
        "rgba",
        "rgba8",
        "r32unorm",
        "r8float",
        "bgra8unorm",
        "r08uint x",
    ] {
        assert!(wrong.parse::<ImageFormat>().is_err(), "{wrong}");
    }
}

/// Every narrow channel survives being read and written.
#[test]
fn channels_survive() {
    for name in [
        "r8unorm", "r8snorm", "r8int", "r8uint", "r16unorm", "r16snorm", "r16int", "r16uint",
        "r16float",
    ] {
        let f = format(name);
        let all = 1u32 << (8 * f.channel_bytes());
        for raw in 0..all {
            let value = decode(f, raw);
            if f.channel() == Channel::Float && f32::from_bits(value).is_nan() {
                continue;
            }
            let least = all / 2;
            // The least number stands for -1 as well.
            let want = if f.channel() == Channel::Snorm && raw == least {
                raw + 1
            } else {
                raw
            };
            assert_eq!(encode(f, value), want, "{name} {raw:#x}");
        }
    }
}

#[test]
fn values_are_rounded_and_clamped() {
    let encoded = |name: &str, v: f32| encode(format(name), v.to_bits());
    assert_eq!(encoded("r8unorm", 0.5), 128);
    assert_eq!(encoded("r8unorm", 2.0), 255);
    assert_eq!(encoded("r8unorm", -1.0), 0);
    assert_eq!(encoded("r8unorm", f32::NAN), 0);
    assert_eq!(encoded("r8snorm", -2.0), 0x81);
    assert_eq!(encoded("r16float", 1e9), 0x7C00);
    let whole = |name: &str, v: i32| encode(format(name), v.cast_unsigned());
    assert_eq!(whole("r8int", -1000), 0x80);
    assert_eq!(whole("r8int", 1000), 0x7F);
    assert_eq!(whole("r16uint", -1), 0xFFFF);
    assert_eq!(whole("r32int", -5), 0xFFFF_FFFB);
    assert_eq!(decode(format("r8snorm"), 0x80), (-1_f32).to_bits());
    assert_eq!(decode(format("r8int"), 0x80).cast_signed(), -128);
}

#[test]
fn missing_channels() {
    let one = 1_f32.to_bits();
    assert_eq!(missing(format("rgba8unorm")), [0, 0, 0, one]);
    assert_eq!(border(format("rgba8unorm")), [0; 4]);
    assert_eq!(border(format("rg8unorm")), [0, 0, 0, one]);
    assert_eq!(border(format("r32int")), [0, 0, 0, 1]);
}

#[test]
fn images_must_fit_their_buffers() {
    let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
    let buffer = memory.alloc(4 * 12).unwrap();
    let mut table = SurfaceTable::new();
    let shape = |kind, extent| ImageShape {
        kind,
        format: format("rgba8unorm"),
        extent,
    };
    table
        .bind_image(3, &buffer, &shape(ImageKind::D2, [4, 3, 99]))
        .unwrap();
    table
        .bind_image(4, &buffer, &shape(ImageKind::D3, [2, 3, 2]))
        .unwrap();
    for wrong in [[4, 4, 1], [u32::MAX; 3]] {
        let error = table.bind_image(3, &buffer, &shape(ImageKind::D3, wrong));
        assert!(error.is_err(), "{wrong:?}");
    }
    assert!(
        table
            .bind_image(256, &buffer, &shape(ImageKind::D1, [1, 1, 1]))
            .is_err()
    );
}

#[test]
fn comparisons_have_names_and_numbers() {
    for (n, (comparison, name)) in Comparison::ALL.into_iter().enumerate() {
        assert_eq!(comparison as usize, n);
        assert_eq!(comparison.name(), name);
        assert_eq!(Comparison::from_name(name), Some(comparison));
    }
    assert_eq!(Comparison::from_name("less_equal"), None);
    assert_eq!(Comparison::default(), Comparison::Never);
}

/// What a sampler with this comparison answers of a texel: `Less` of `reference < texel`, for numbers below, at and above it.
fn answers(comparison: Comparison, name: &str, reference: f32, texel: f32) -> Texel {
    let sampler = crate::abi::Sampler {
        comparison: comparison as u32,
        ..crate::abi::Sampler::default()
    };
    let format = format(name);
    let texel = [decode(format, encode(format, texel.to_bits())), 7, 8, 9];
    Test::new(sampler, format, reference.to_bits()).answer(texel)
}

#[test]
fn comparisons_are_reference_first() {
    // Below, equal, above, not a number.
    let rows = [
        (Comparison::Never, [0, 0, 0, 0]),
        (Comparison::Less, [1, 0, 0, 0]),
        (Comparison::Equal, [0, 1, 0, 0]),
        (Comparison::LessEqual, [1, 1, 0, 0]),
        (Comparison::Greater, [0, 0, 1, 0]),
        (Comparison::NotEqual, [1, 0, 1, 1]),
        (Comparison::GreaterEqual, [0, 1, 1, 0]),
        (Comparison::Always, [1, 1, 1, 1]),
    ];
    for (comparison, want) in rows {
        for (reference, want) in [-3.5, 0.25, 1e9, f32::NAN].into_iter().zip(want) {
            let got = answers(comparison, "r32float", reference, 0.25).map(f32::from_bits);
            assert_eq!(
                got,
                [want as f32, 0.0, 0.0, 1.0],
                "{comparison:?} {reference}"
            );
        }
    }
}

/// References are rounded as texels are when they are written, and clamped.
#[test]
fn references_have_the_format_of_texels() {
    let red = |comparison, name, reference, texel| {
        f32::from_bits(answers(comparison, name, reference, texel)[0])
    };
    let (equal, less) = (Comparison::Equal, Comparison::Less);
    assert_eq!(red(equal, "r16unorm", 0.3, 0.3), 1.0);
    assert_eq!(red(less, "r16unorm", 0.3, 0.3), 0.0);
    assert_eq!(red(less, "r16unorm", 0.3, 0.300_02), 1.0);
    assert_eq!(red(equal, "r16unorm", 7.0, 1.0), 1.0);
    assert_eq!(red(equal, "r16unorm", -7.0, 0.0), 1.0);
    assert_eq!(red(less, "r16unorm", -7.0, 0.0), 0.0);
    assert_eq!(red(equal, "r32float", 7.0, 1.0), 0.0);
    assert_eq!(red(less, "r32float", -7.0, 0.0), 1.0);
    // NaN counts as 0 where there is none.
    assert_eq!(red(equal, "r16unorm", f32::NAN, 0.0), 1.0);
    assert_eq!(red(less, "r16unorm", f32::NAN, 0.3), 1.0);
    assert_eq!(red(equal, "r32float", f32::NAN, 0.0), 0.0);
    assert_eq!(red(less, "r32float", f32::NAN, 0.3), 0.0);
}

#[test]
fn few_formats_can_be_compared() {
    for (name, yes) in [
        ("r16unorm", true),
        ("r32float", true),
        ("r8unorm", false),
        ("r16snorm", false),
        ("r16float", false),
        ("r32uint", false),
        ("r16uint", false),
        ("rg16unorm", false),
        ("rgba32float", false),
    ] {
        assert_eq!(format(name).compares(), yes, "{name}");
    }
}

/// Twenty samplers: bits 0 and 1 of their number are filters and normalised coordinates, the others how coordinates beyond the edges count.
fn bind_samplers(table: &mut SurfaceTable) {
    for bits in 0..20_u32 {
        let state = SamplerState {
            addressing: [
                Addressing::None,
                Addressing::Border,
                Addressing::Edge,
                Addressing::Repeat,
                Addressing::Mirror,
            ][bits as usize / 4],
            linear: bits & 1 != 0,
            normalized: bits & 2 != 0,
            comparison: Comparison::ALL[bits as usize % 8].0,
        };
        table.bind_sampler(bits, state).unwrap();
    }
}

/// Images flush against unreadable pages on either side, at coordinates of every size: what is outside is never touched.
#[test]
fn coordinates_of_every_size_stay_inside() {
    use super::sample::{ImageLane, access, bound};
    use crate::abi::image as op;
    let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
    let shapes = [
        (ImageKind::D1, "r8uint", [3, 1, 1]),
        (ImageKind::D1Array, "rgba32float", [5, 2, 1]),
        (ImageKind::D2, "rg16snorm", [4, 3, 1]),
        (ImageKind::D2Array, "r32int", [2, 2, 3]),
        (ImageKind::D3, "rgba8unorm", [3, 2, 4]),
        (ImageKind::Buffer, "rgba16float", [7, 1, 1]),
        (ImageKind::D2, "r16unorm", [3, 4, 1]),
        (ImageKind::D1Array, "r32float", [2, 3, 1]),
    ];
    let odd = [
        0,
        1,
        2,
        3,
        7,
        0x7FFF_FFFF,
        0x8000_0000,
        u32::MAX,
        u32::MAX - 3,
    ];
    let floats = [
        0.0,
        -0.0,
        0.5,
        1.0,
        -1.0,
        2.75,
        1e10,
        -1e30,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
    ];
    let numbers: Vec<u32> = odd.into_iter().chain(floats.map(f32::to_bits)).collect();
    let sampling = [
        op::SAMPLE,
        op::SAMPLE_OFFSET,
        op::GATHER,
        op::COMPARE,
        op::GATHER_COMPARE,
        op::LOD,
    ];
    // A plain run has other samplers of the twenty at each place.
    let every = if visa_test_common::full() { 1 } else { 5 };
    let mut count = 0;
    for (kind, name, extent) in shapes {
        let shape = ImageShape {
            kind,
            format: format(name),
            extent,
        };
        let bytes = shape.bytes().unwrap();
        for end in [false, true] {
            let buffer = if end {
                memory.alloc_flush_end(bytes)
            } else {
                memory.alloc_flush_start(bytes)
            };
            let mut table = SurfaceTable::new();
            table.bind_image(0, &buffer.unwrap(), &shape).unwrap();
            bind_samplers(&mut table);
            // SAFETY: the table has images and lives on.
            let images = unsafe { &*table.images() };
            for (i, &u) in numbers.iter().enumerate() {
                for (k, &v) in numbers.iter().enumerate() {
                    let at = [u, v, numbers[(i + k) % numbers.len()]];
                    for op in [
                        op::READ,
                        op::WRITE,
                        op::FETCH,
                        op::FETCH_OFFSET,
                        op::SAMPLES,
                        op::BLOCK_READ,
                        op::BLOCK_WRITE,
                    ] {
                        let (view, sampler) = bound(images, 0, 0);
                        let lane = ImageLane {
                            op,
                            channels: 15,
                            at,
                            data: [4, 7, 0, 1],
                        };
                        // SAFETY: the buffer lives on.
                        unsafe { access(view, sampler, &lane) };
                        count += 1;
                    }
                    let samplers = ((i + k) % every..20).step_by(every);
                    for (bits, op) in samplers.flat_map(|bits| sampling.map(|op| (bits as u32, op)))
                    {
                        let (view, sampler) = bound(images, 0, bits);
                        let lane = ImageLane {
                            op,
                            channels: 8,
                            at,
                            data: [v, 7, u, 0],
                        };
                        // SAFETY: as above.
                        unsafe { access(view, sampler, &lane) };
                        count += 1;
                    }
                }
            }
        }
    }
    assert_eq!(count, 8 * 2 * 400 * (7 + 6 * 20 / every));
}

#[test]
fn channels_have_orders() {
    let of = |text: &str, order| format(text).ordered(order);
    for order in [Order::Bgra, Order::Srgba, Order::Sbgra] {
        assert_eq!(of("rg8unorm", order), None);
    }
    assert_eq!(of("rgba16unorm", Order::Srgba), None);
    assert_eq!(of("rgba8unorm", Order::Alpha), None);
    let [one, half] = [1_f32, 0.5].map(f32::to_bits);
    let bgra = of("rgba32uint", Order::Bgra).unwrap();
    assert_eq!(ImageFormat::from_code(bgra.code()), Some(bgra));
    assert_eq!(bgra.to_string(), "bgra32uint");
    assert_eq!(ordered(bgra, &[1, 2, 3, 4]), [3, 2, 1, 4]);
    assert_eq!(encode_texel(bgra, [3, 2, 1, 4]), [1, 2, 3, 4]);
    for (order, texel, edge) in [
        (Order::Alpha, [0, 0, 0, half], 0),
        (Order::Luminance, [half, half, half, one], one),
        (Order::Intensity, [half; 4], 0),
    ] {
        let format = of("r32float", order).unwrap();
        assert_eq!(ImageFormat::from_code(format.code()), Some(format));
        assert_eq!(ordered(format, &[half]), texel);
        assert_eq!(encode_texel(format, texel), [half]);
        assert_eq!(border(format), [0, 0, 0, edge]);
        assert!(!format.compares());
    }
}

/// Each of the 256 colours is itself again, and some are what IEC 61966-2-1 has them be.
#[test]
fn colours_of_srgb_are_linear() {
    let format = format("rgba8unorm").ordered(Order::Sbgra).unwrap();
    for colour in 0..256 {
        let texel = ordered(format, &[decode(format, colour); 4]);
        let alpha = f32::from_bits(texel[3]);
        assert_eq!(alpha, colour as f32 / 255.0);
        assert_eq!(encode_texel(format, texel), [colour; 4]);
    }
    let linear = |colour| f32::from_bits(ordered(format, &[decode(format, colour); 4])[0]);
    for (colour, expected) in [(0, 0.0), (10, 0.003_035_27), (128, 0.215_860_5), (255, 1.0)] {
        assert!((linear(colour) - expected).abs() < 1e-7, "{colour}");
    }
}

/// A small generator of random numbers.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u32 {
        let state = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = state.wrapping_add(1);
        (self.0 >> 33) as u32
    }

    /// A coordinate: odd ones, halves, and such as are mostly inside of an image.
    fn coordinate(&mut self, most: f32) -> u32 {
        let odd = [0.0, -0.0, 0.5, 1e10, -1e30, f32::INFINITY, -3e9, f32::NAN];
        let x = match self.bits() % 8 {
            0 => odd[self.bits() as usize % odd.len()],
            1 => (self.bits() % 16) as f32 * 0.5,
            _ => self.bits() as f32 / (1_u64 << 31) as f32 * most - 0.3,
        };
        x.to_bits()
    }
}

/// Samples with each sampler for all lanes at once, and compares with each lane by itself. How often that was done, and not.
fn compare_lanes(images: &crate::abi::ImageTable, what: &str, random: &mut Random) -> [u32; 2] {
    use super::sample::{ImageLane, access, bound};
    let mut counts = [0; 2];
    for (bits, lanes) in (0..20).flat_map(|bits| [4, 8, 12, 16, 32].map(|lanes| (bits, lanes))) {
        let (view, sampler) = bound(images, 0, bits);
        let most = if bits & 2 != 0 { 1.5 } else { 9.0 };
        let mut before: Vec<u32> = (0..7 * lanes).map(|_| random.coordinate(most)).collect();
        if random.bits().is_multiple_of(2) {
            // Neighbours of a row, some of them beyond its end, as most programs have them.
            let first = random.bits() % 4;
            for lane in 0..lanes {
                before[lane] = ((first + lane as u32) as f32).to_bits();
                before[lanes + lane] = before[lanes];
                before[2 * lanes + lane] = before[2 * lanes];
            }
        }
        let enabled = random.bits() << 3 ^ random.bits();
        for vectors in [false, super::lanes::vectors()] {
            let mut block = before.clone();
            let at = block.as_mut_ptr();
            let view = view.unwrap();
            // SAFETY: the image lives on, and the block has seven rows.
            let done =
                unsafe { super::lanes::sample_in(vectors, view, sampler, (lanes, enabled), at) };
            counts[usize::from(!done)] += 1;
            if !done {
                assert_eq!(block, before);
                continue;
            }
            for lane in 0..lanes {
                let one = ImageLane {
                    op: crate::abi::image::SAMPLE,
                    channels: 15,
                    at: [0, 1, 2].map(|k| before[k * lanes + lane]),
                    data: [0; 4],
                };
                let want = match enabled >> lane & 1 {
                    0 => [0; 4],
                    // SAFETY: the image lives on.
                    _ => unsafe { access(Some(view), sampler, &one) },
                };
                let got = [3, 4, 5, 6].map(|k| block[k * lanes + lane]);
                let at = one.at.map(f32::from_bits);
                assert_eq!(got, want, "{what}, sampler {bits}, lane {lane} at {at:?}");
            }
        }
    }
    counts
}

/// Images of several kinds in each of the formats with each of the orders that it can have.
fn shapes(names: &str, orders: &[Order]) -> Vec<ImageShape> {
    let kinds = [
        (ImageKind::D1, [13, 1, 1]),
        (ImageKind::D2, [7, 5, 1]),
        (ImageKind::D3, [3, 4, 5]),
        (ImageKind::D2Array, [3, 4, 2]),
    ];
    let formats = names.split_whitespace().flat_map(|name| {
        let ordered = orders.iter();
        ordered.filter_map(move |&order| format(name).ordered(order))
    });
    let shape = |format| {
        kinds.map(|(kind, extent)| ImageShape {
            kind,
            format,
            extent,
        })
    };
    formats.flat_map(shape).collect()
}

/// Texels of random bits, in formats and images with and without what [`super::lanes`] knows, at coordinates of all kinds.
#[test]
fn all_lanes_are_each_lane() {
    let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
    let mut random = Random(1);
    let names = "r8unorm rg8unorm rgba8unorm rgba8snorm rgba8uint r8int r16unorm rg16snorm rgba16unorm rgba16int r32float \
                 rg32float rgba32float rgba32uint r32int rgba16float";
    let mut counts = [0; 2];
    for shape in shapes(names, &[Order::Rgba, Order::Bgra, Order::Alpha]) {
        let ImageShape { kind, format, .. } = shape;
        let bytes = shape.bytes().unwrap();
        let buffer = memory.alloc_flush_end(bytes + 1).unwrap();
        let contents: Vec<u8> = (0..=bytes).map(|_| random.bits() as u8).collect();
        buffer.write(0, &contents).unwrap();
        let mut table = SurfaceTable::new();
        table.bind_image(0, &buffer, &shape).unwrap();
        bind_samplers(&mut table);
        // SAFETY: the table has images and lives on.
        let mut images = unsafe { (*table.images()).clone() };
        let first = images.images[0].base;
        // Only one of two such images can have aligned texels, unless they are single bytes.
        for by in 0..2 {
            images.images[0].base = first.wrapping_add(by);
            let what = format!("{format} {kind:?} from byte {by} on");
            let found = compare_lanes(&images, &what, &mut random);
            counts = [counts[0] + found[0], counts[1] + found[1]];
        }
    }
    assert!(counts.iter().all(|&n| n > 1000), "{counts:?}");
}

/// A texel's component: of all kinds for integers, and mostly near the limits of normalised ones, or between two of their numbers.
fn component(random: &mut Random) -> u32 {
    let odd = [f32::NAN, -f32::NAN, f32::INFINITY, -0.0, 1e-40, 0.5, 1e30];
    match random.bits() % 4 {
        0 => odd[random.bits() as usize % odd.len()].to_bits(),
        1 => (((random.bits() % 512) as f32 - 128.0) / 255.0 * 0.5).to_bits(),
        2 => (random.bits() as f32 / (1_u64 << 30) as f32 - 1.0).to_bits(),
        _ => random.bits() << (random.bits() % 2) >> (random.bits() % 32),
    }
}

/// Writes texels for all lanes at once and for each lane by itself, and compares what is in memory. Whether it was done.
fn compare_writes(
    (images, memory): (&crate::abi::ImageTable, [&mut [u8]; 2]),
    what: &str,
    random: &mut Random,
) -> bool {
    use super::sample::{ImageLane, access, bound, outside};
    use crate::abi::image::WRITE;
    let lanes = [1, 4, 7, 8, 16, 32][random.bits() as usize % 6];
    let row = usize::next_multiple_of(lanes, 4);
    let coordinates = (0..3 * row).map(|_| match random.bits() % 16 {
        0 => u32::MAX - random.bits() % 2,
        1 => 1 << (random.bits() % 32),
        _ => random.bits() % 8,
    });
    let mut block: Vec<u32> = coordinates.collect();
    block.extend((0..4 * row).map(|_| component(random)));
    let enabled = random.bits() << 3 ^ random.bits();
    let channels = if random.bits().is_multiple_of(4) {
        random.bits() & 15
    } else {
        15
    };
    let [at_once, each] = memory;
    let mut table = images.clone();
    table.images[0].base = at_once.as_mut_ptr();
    let (view, sampler) = bound(&table, 0, 0);
    let lanes_of = (lanes, enabled);
    // SAFETY: the memory has the image's bytes, and the block seven rows.
    let done = unsafe { super::write::write(view.unwrap(), channels, lanes_of, block.as_ptr()) };
    let Some(beyond) = done else {
        return false;
    };
    table.images[0].base = each.as_mut_ptr();
    let (view, _) = bound(&table, 0, 0);
    let mut expected = 0;
    for lane in (0..lanes).filter(|&lane| enabled >> lane & 1 != 0) {
        let at = [0, 1, 2].map(|k| block[k * row + lane]);
        let data = [3, 4, 5, 6].map(|k| block[k * row + lane]);
        let op = WRITE;
        expected |= u32::from(outside(view, op, at)) << lane;
        let one = ImageLane {
            op,
            channels,
            at,
            data,
        };
        // SAFETY: the memory has the image's bytes.
        unsafe { access(view, sampler, &one) };
    }
    assert_eq!(beyond, expected, "{what}, {lanes} lanes");
    assert_eq!(at_once, each, "{what}, {lanes} lanes");
    true
}

/// In formats and images with and without what [`super::write`] knows, aligned and not.
#[test]
fn all_lanes_write_as_each_lane() {
    let device = DeviceMemory::with_capacity(1 << 20).unwrap();
    let mut random = Random(2);
    let names = "r8unorm rg8unorm rgba8unorm rgba8snorm rgba8uint r8int r16unorm rg16snorm rgba16unorm rgba16int r32float \
                 rg32float rgba32float rgba32uint r32int rgba16float rg16float rgba8int r16uint";
    let mut counts = [0; 2];
    for shape in shapes(
        names,
        &[Order::Rgba, Order::Bgra, Order::Alpha, Order::Srgba],
    ) {
        let ImageShape { kind, format, .. } = shape;
        let bytes = shape.bytes().unwrap();
        let buffer = device.alloc_flush_end(bytes).unwrap();
        let mut table = SurfaceTable::new();
        table.bind_image(0, &buffer, &shape).unwrap();
        // SAFETY: the table has images and lives on.
        let images = unsafe { (*table.images()).clone() };
        let size = bytes as usize + 1;
        let mut memory: [Vec<u8>; 2] = [0; 2].map(|byte| vec![byte; size]);
        for n in 0..24 {
            let first = n % 2;
            let parts = memory.each_mut().map(|all| &mut all[first..][..size - 1]);
            let what = format!("{format} {kind:?} from byte {first} on");
            let done = compare_writes((&images, parts), &what, &mut random);
            counts[usize::from(done)] += 1;
        }
    }
    assert!(counts.iter().all(|&n| n > 500), "{counts:?}");
}
