//! Every format that is advertised, read and written by kernels, against what OpenCL's tables say of its bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::ptr::{null, null_mut, with_exposed_provenance_mut};
use std::sync::LazyLock;

use visa_jit_opencl::abi::*;
use visa_jit_opencl::abi::{CL_sBGRA as CL_SBGRA, CL_sRGBA as CL_SRGBA};
use visa_jit_opencl::api::{image, kernel, mem};

use super::{Rig, SUCCESS, set};

const ACROSS: usize = 4;
const TEXELS: usize = 16;

/// What kernels get of a texel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Numbers {
    Float,
    Int,
    Uint,
}

/// A channel in memory.
struct Channel {
    bytes: usize,
    numbers: Numbers,
    /// What the greatest number stands for, of those that are normalised.
    scale: Option<f64>,
}

fn channel(ty: u32) -> Channel {
    let (bytes, numbers, scale) = match ty {
        CL_UNORM_INT8 => (1, Numbers::Float, Some(255.0)),
        CL_UNORM_INT16 => (2, Numbers::Float, Some(65535.0)),
        CL_SNORM_INT8 => (1, Numbers::Float, Some(127.0)),
        CL_SNORM_INT16 => (2, Numbers::Float, Some(32767.0)),
        CL_HALF_FLOAT => (2, Numbers::Float, None),
        CL_FLOAT => (4, Numbers::Float, None),
        CL_SIGNED_INT8 => (1, Numbers::Int, None),
        CL_SIGNED_INT16 => (2, Numbers::Int, None),
        CL_SIGNED_INT32 => (4, Numbers::Int, None),
        CL_UNSIGNED_INT8 => (1, Numbers::Uint, None),
        CL_UNSIGNED_INT16 => (2, Numbers::Uint, None),
        CL_UNSIGNED_INT32 => (4, Numbers::Uint, None),
        other => panic!("{other:#x} is advertised"),
    };
    Channel {
        bytes,
        numbers,
        scale,
    }
}

/// The components that channels are, in the order of memory: 0 for red to 3 for alpha; all that are one.
fn order(order: u32) -> &'static [&'static [usize]] {
    match order {
        CL_R | CL_DEPTH => &[&[0]],
        CL_RG => &[&[0], &[1]],
        CL_RGBA | CL_SRGBA => &[&[0], &[1], &[2], &[3]],
        CL_BGRA | CL_SBGRA => &[&[2], &[1], &[0], &[3]],
        CL_A => &[&[3]],
        CL_LUMINANCE => &[&[0, 1, 2]],
        CL_INTENSITY => &[&[0, 1, 2, 3]],
        other => panic!("{other:#x} is advertised"),
    }
}

/// The value of a channel, as a kernel sees it.
fn value(ty: u32, raw: u32, srgb: bool) -> f64 {
    let Channel { bytes, scale, .. } = channel(ty);
    let bits = 8 * bytes as u32;
    let signed = f64::from((raw << (32 - bits)).cast_signed() >> (32 - bits));
    let value = match ty {
        CL_SNORM_INT8 | CL_SNORM_INT16 => (signed / scale.unwrap()).max(-1.0),
        CL_UNORM_INT8 | CL_UNORM_INT16 => f64::from(raw) / scale.unwrap(),
        CL_HALF_FLOAT => half(raw),
        CL_FLOAT => f64::from(f32::from_bits(raw)),
        CL_SIGNED_INT8 | CL_SIGNED_INT16 | CL_SIGNED_INT32 => signed,
        _ => f64::from(raw),
    };
    match srgb {
        true if value <= 0.04045 => value / 12.92,
        true => ((value + 0.055) / 1.055).powf(2.4),
        false => value,
    }
}

/// The value of a normal number of 16 bits.
fn half(raw: u32) -> f64 {
    let (sign, exponent, rest) = (raw >> 15, raw >> 10 & 31, raw & 1023);
    assert!(exponent != 0 && exponent != 31);
    let size = (1.0 + f64::from(rest) / 1024.0) * 2_f64.powi(exponent as i32 - 15);
    if sign == 1 { -size } else { size }
}

/// Bits of channel `i`: of all kinds, but floats are normal numbers.
fn bits(ty: u32, i: usize) -> u32 {
    let mixed = (i as u32 + 1).wrapping_mul(0x9E37_79B9);
    match ty {
        CL_HALF_FLOAT => 0x3000 | mixed & 0x8FFF,
        CL_FLOAT => 0x3F00_0000 | mixed & 0x807F_FFFF,
        _ => mixed >> (32 - 8 * channel(ty).bytes),
    }
}

fn advertised(rig: &Rig, flags: u32) -> Vec<cl_image_format> {
    let (mut count, flags, kind) = (0, u64::from(flags), CL_MEM_OBJECT_IMAGE2D);
    let none = cl_image_format {
        image_channel_order: 0,
        image_channel_data_type: 0,
    };
    // SAFETY: there is room for as many formats as are said.
    unsafe {
        let get = image::clGetSupportedImageFormats;
        assert_eq!(
            get(rig.context, flags, kind, 0, null_mut(), &mut count),
            SUCCESS
        );
        let mut all = vec![none; count as usize];
        let got = get(
            rig.context,
            flags,
            kind,
            count,
            all.as_mut_ptr(),
            null_mut(),
        );
        assert_eq!(got, SUCCESS);
        all
    }
}

/// An image with these bytes.
fn image_of(rig: &Rig, format: &cl_image_format, flags: u32, bytes: &mut [u8]) -> cl_mem {
    let flags = u64::from(flags | CL_MEM_COPY_HOST_PTR);
    let (host, mut code) = (bytes.as_mut_ptr().cast::<c_void>(), 1);
    // SAFETY: the image has as many bytes.
    let made = unsafe {
        image::clCreateImage2D(
            rig.context,
            flags,
            format,
            ACROSS,
            TEXELS / ACROSS,
            0,
            host,
            &mut code,
        )
    };
    assert_eq!(code, SUCCESS, "{format:x?}");
    made
}

fn bytes_of(rig: &Rig, image: cl_mem, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let region = [ACROSS, TEXELS / ACROSS, 1];
    // SAFETY: the image has as many bytes.
    let read = unsafe {
        image::clEnqueueReadImage(
            rig.queue,
            image,
            CL_TRUE,
            [0; 3].as_ptr(),
            region.as_ptr(),
            0,
            0,
            bytes.as_mut_ptr().cast(),
            0,
            null(),
            null_mut(),
        )
    };
    assert_eq!(read, SUCCESS);
    bytes
}

/// What texels with these bits are for kernels: four words each.
fn texels(format: cl_image_format) -> Vec<[f64; 4]> {
    let (ty, name) = (format.image_channel_data_type, format.image_channel_order);
    let channels = order(name);
    let texel = |t: usize| {
        let mut all = [0.0, 0.0, 0.0, 1.0];
        for (c, components) in channels.iter().enumerate() {
            for &to in *components {
                let srgb = matches!(name, CL_SRGBA | CL_SBGRA) && to < 3;
                all[to] = value(ty, bits(ty, t * channels.len() + c), srgb);
            }
        }
        all
    };
    (0..TEXELS).map(texel).collect()
}

fn words(numbers: Numbers, texel: [f64; 4]) -> [u32; 4] {
    texel.map(|value| match numbers {
        Numbers::Float => (value as f32).to_bits(),
        Numbers::Int => (value as i32).cast_unsigned(),
        Numbers::Uint => value as u32,
    })
}

#[test]
fn formats_that_are_read() {
    let (read, written) = advertised_formats_work(CL_MEM_READ_ONLY);
    assert!(read > 40 && written == 0, "{read}, {written}");
}

#[test]
fn formats_that_are_written() {
    let (read, written) = advertised_formats_work(CL_MEM_WRITE_ONLY);
    assert!(read == 0 && written > 35, "{read}, {written}");
}

#[test]
fn formats_that_are_read_and_written() {
    let (read, written) = advertised_formats_work(CL_MEM_READ_WRITE);
    assert!(read > 35 && written == read, "{read}, {written}");
}

/// The program's kernels are compiled once for all tests.
static SHARED: LazyLock<(Rig, usize)> = LazyLock::new(|| {
    let rig = Rig::new();
    let program = rig.program("image_access").expose_provenance();
    (rig, program)
});

/// Reads each format of images with some flags that may be read, and writes each that may be written. Returns how many of both.
fn advertised_formats_work(flags: u32) -> (usize, usize) {
    let (rig, program) = &*SHARED;
    let program = with_exposed_provenance_mut(*program);
    let places: Vec<[i32; 2]> = (0..TEXELS)
        .map(|t| [(t % ACROSS) as i32, (t / ACROSS) as i32])
        .collect();
    let places = rig.buffer(&places);
    // To make a kernel is to read the whole file.
    let made = |name| rig.kernel(program, name);
    let mut kernels = BTreeMap::new();
    let (mut read, mut written) = (0, 0);
    for format in advertised(rig, flags) {
        let ty = format.image_channel_data_type;
        let Channel { bytes, numbers, .. } = channel(ty);
        let channels = order(format.image_channel_order).len();
        let all = (0..TEXELS * channels).map(|i| bits(ty, i).to_le_bytes());
        let mut all: Vec<u8> = all.flat_map(|w| w.into_iter().take(bytes)).collect();
        let expected = texels(format).into_iter();
        let expected: Vec<[u32; 4]> = expected.map(|texel| words(numbers, texel)).collect();
        let (load, store) = match numbers {
            Numbers::Float => ("load_float", "store_float"),
            Numbers::Int => ("load_int", "store_int"),
            Numbers::Uint => ("load_uint", "store_uint"),
        };
        if flags != CL_MEM_WRITE_ONLY {
            let image = image_of(rig, &format, flags, &mut all);
            let out = rig.buffer(&vec![[0_u32; 4]; TEXELS]);
            let kernel = *kernels.entry(load).or_insert_with(|| made(load));
            let codes = [
                set(kernel, 0, &out),
                set(kernel, 1, &image),
                set(kernel, 2, &places),
                rig.launch(kernel, TEXELS, None),
            ];
            assert_eq!(codes, [SUCCESS; 4], "{format:x?}");
            let got: Vec<[u32; 4]> = rig.read(out, TEXELS);
            // Colours that are not linear are rounded before and after they are made so.
            let srgb = matches!(format.image_channel_order, CL_SRGBA | CL_SBGRA);
            let unlike = if srgb { 4 } else { 0 };
            for (got, expected) in got.iter().zip(&expected) {
                let near = |(a, b): (&u32, &u32)| match numbers {
                    // Units in the last place.
                    Numbers::Float => a.abs_diff(*b) <= unlike,
                    _ => a == b,
                };
                let same = got.iter().zip(expected).all(near);
                assert!(same, "{format:x?}: {got:x?} instead of {expected:x?}");
            }
            release(&[image, out]);
            read += 1;
        }
        if flags != CL_MEM_READ_ONLY {
            let image = image_of(rig, &format, flags, &mut vec![0; all.len()]);
            let values = rig.buffer(&expected);
            let kernel = *kernels.entry(store).or_insert_with(|| made(store));
            let codes = [
                set(kernel, 0, &image),
                set(kernel, 1, &places),
                set(kernel, 2, &values),
                rig.launch(kernel, TEXELS, None),
            ];
            assert_eq!(codes, [SUCCESS; 4], "{format:x?}");
            let got = bytes_of(rig, image, all.len());
            assert_eq!(
                same_numbers(ty, &got),
                same_numbers(ty, &all),
                "{format:x?}"
            );
            release(&[image, values]);
            written += 1;
        }
    }
    println!("{read} formats read, {written} written");
    release(&[places]);
    for kernel in kernels.into_values() {
        // SAFETY: it was made here.
        assert_eq!(unsafe { kernel::clReleaseKernel(kernel) }, SUCCESS);
    }
    (read, written)
}

/// The bytes, but the two that stand for -1 are one.
fn same_numbers(ty: u32, bytes: &[u8]) -> Vec<u8> {
    match ty {
        CL_SNORM_INT8 => bytes
            .iter()
            .map(|b| if *b == 0x80 { 0x81 } else { *b })
            .collect(),
        _ => bytes.to_vec(),
    }
}

fn release(mems: &[cl_mem]) {
    for one in mems {
        // SAFETY: they were made by the caller.
        assert_eq!(unsafe { mem::clReleaseMemObject(*one) }, SUCCESS);
    }
}

/// All that Intel's driver has, but for video and stencils.
#[test]
fn formats_are_those_of_intel() {
    let rig = Rig::new();
    let of = |flags| -> BTreeSet<(u32, u32)> {
        let all = advertised(&rig, flags).into_iter();
        all.map(|f| (f.image_channel_order, f.image_channel_data_type))
            .collect()
    };
    let (read, both) = (of(CL_MEM_READ_ONLY), of(CL_MEM_READ_WRITE));
    assert_eq!(of(CL_MEM_WRITE_ONLY), both);
    assert!(both.is_subset(&read));
    for (order, types) in [
        (CL_BGRA, &[CL_UNORM_INT8][..]),
        (CL_A, &[CL_UNORM_INT8]),
        (CL_DEPTH, &[CL_UNORM_INT16, CL_FLOAT]),
    ] {
        assert!(
            types.iter().all(|ty| both.contains(&(order, *ty))),
            "{order:#x}"
        );
    }
    for (order, types) in [
        (CL_SRGBA, &[CL_UNORM_INT8][..]),
        (CL_SBGRA, &[CL_UNORM_INT8]),
        (CL_A, &[CL_UNORM_INT16, CL_HALF_FLOAT, CL_FLOAT]),
        (
            CL_LUMINANCE,
            &[CL_UNORM_INT8, CL_UNORM_INT16, CL_HALF_FLOAT, CL_FLOAT],
        ),
        (
            CL_INTENSITY,
            &[CL_UNORM_INT8, CL_UNORM_INT16, CL_HALF_FLOAT, CL_FLOAT],
        ),
    ] {
        for ty in types {
            assert!(read.contains(&(order, *ty)) && !both.contains(&(order, *ty)));
        }
    }
}
