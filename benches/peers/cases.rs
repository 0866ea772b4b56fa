//! What is run: kernels of `tests/kernels` with their inputs, and the same work in C.

use std::ffi::c_int;

use libloading::{Library, Symbol};

/// Sixty-four bytes, so that arrays of every type and width are aligned.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// Bytes that start at a multiple of 64.
#[derive(Clone)]
pub struct Bytes {
    lines: Vec<Line>,
    len: usize,
}

impl Bytes {
    pub fn zero(len: usize) -> Bytes {
        let lines = vec![Line([0; 64]); len.div_ceil(64)];
        Bytes { lines, len }
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `lines` holds at least `len` initialised bytes without gaps.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }

    fn of<T: Copy, const N: usize>(values: &[T], bytes: fn(T) -> [u8; N]) -> Bytes {
        let mut all = Bytes::zero(values.len() * N);
        let places = all.as_mut_slice().chunks_exact_mut(N);
        for (place, value) in places.zip(values) {
            place.copy_from_slice(&bytes(*value));
        }
        all
    }
}

fn floats(values: impl Iterator<Item = f32>) -> Argument {
    let values: Vec<f32> = values.collect();
    Argument::Buffer(Bytes::of(&values, f32::to_le_bytes))
}

fn words(values: impl Iterator<Item = u32>) -> Argument {
    let values: Vec<u32> = values.collect();
    Argument::Buffer(Bytes::of(&values, u32::to_le_bytes))
}

fn zeros(bytes: usize) -> Argument {
    Argument::Buffer(Bytes::zero(bytes))
}

fn float(value: f32) -> Argument {
    Argument::Value(value.to_le_bytes().to_vec())
}

fn int(value: u32) -> Argument {
    Argument::Value(value.to_le_bytes().to_vec())
}

/// Well mixed bits.
fn hash(i: usize) -> u32 {
    let x = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32) as u32
}

/// From 0 to 1.
fn unit(i: usize) -> f32 {
    (hash(i) >> 8) as f32 / (1 << 24) as f32
}

/// An argument of a kernel.
#[derive(Clone)]
pub enum Argument {
    Buffer(Bytes),
    Value(Vec<u8>),
    /// Local memory, in bytes.
    Local(usize),
}

/// When results are the same.
#[derive(Clone, Copy)]
pub enum Same {
    Bits,
    /// Floats that differ by at most so much of one plus their size.
    Near(f32),
    /// Words of which at most this share differs: iterations that end where rounding decides.
    Mostly(f32),
}

impl Same {
    /// The first difference, as text.
    pub fn difference(self, wanted: &[u8], found: &[u8]) -> Option<String> {
        if wanted.len() != found.len() {
            return Some(format!("{} bytes for {}", found.len(), wanted.len()));
        }
        let word = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        let pairs = || {
            wanted
                .chunks_exact(4)
                .zip(found.chunks_exact(4))
                .enumerate()
        };
        match self {
            Same::Bits => pairs()
                .find(|(_, (a, b))| a != b)
                .map(|(i, (a, b))| format!("[{i}] is {:#x} for {:#x}", word(b), word(a))),
            Same::Near(tolerance) => pairs().find_map(|(i, (a, b))| {
                let (a, b) = (f32::from_bits(word(a)), f32::from_bits(word(b)));
                let near = (a - b).abs() <= tolerance * (1.0 + a.abs());
                (!near).then(|| format!("[{i}] is {b} for {a}"))
            }),
            Same::Mostly(share) => {
                let differ = pairs().filter(|(_, (a, b))| a != b).count();
                let most = share * (wanted.len() / 4) as f32;
                (differ as f32 > most).then(|| format!("{differ} words differ"))
            }
        }
    }
}

/// Does a case's work in C, on its arguments.
pub type InC = fn(&Library, &mut [Argument]) -> Option<()>;

pub struct Case {
    pub name: &'static str,
    /// Of `tests/kernels`, without ending.
    pub file: &'static str,
    pub kernel: &'static str,
    pub global: [usize; 3],
    pub local: [usize; 3],
    pub arguments: fn() -> Vec<Argument>,
    /// Arguments that are results.
    pub results: &'static [usize],
    pub same: Same,
    pub c: InC,
}

const M: usize = 1 << 20;

fn pointer(argument: &mut Argument) -> *mut u8 {
    match argument {
        Argument::Buffer(bytes) => bytes.as_mut_slice().as_mut_ptr(),
        _ => std::ptr::null_mut(),
    }
}

/// Calls a function of `loops.c` with some of the arguments, by number, as pointers, and with other values.
macro_rules! c_call {
    ($name:literal, [$($at:literal),*], [$($ty:ty: $value:expr),*]) => {
        |library, arguments| {
            type F = unsafe extern "C" fn($(c_call!(@pointer $at)),*, $($ty),*);
            // SAFETY: the function in loops.c has these parameters.
            let f: Symbol<'_, F> = unsafe { library.get($name) }.ok()?;
            // SAFETY: buffers are as long as the kernel's, which does the same work, and aligned to 64 bytes.
            unsafe { f($(pointer(&mut arguments[$at])),*, $($value),*) }
            Some(())
        }
    };
    (@pointer $at:literal) => { *mut u8 };
}

fn black_scholes() -> Vec<Argument> {
    vec![
        zeros(4 * M),
        zeros(4 * M),
        floats((0..M).map(|i| 5.0 + 25.0 * unit(i))),
        floats((0..M).map(|i| 1.0 + 99.0 * unit(i + M))),
        floats((0..M).map(|i| 0.25 + 9.75 * unit(i + 2 * M))),
        float(0.02),
        float(0.3),
    ]
}

fn bitonic(distance: u32) -> Vec<Argument> {
    vec![words((0..M).map(hash)), int(distance), int(512)]
}

fn gather(table: usize) -> Vec<Argument> {
    let index = (0..M).map(move |i| hash(i) % table as u32);
    vec![zeros(4 * M), floats((0..table).map(unit)), words(index)]
}

/// Numbers of all elements, each once, in no order.
fn permutation() -> Argument {
    let mut all: Vec<u32> = (0..M as u32).collect();
    for i in (1..M).rev() {
        all.swap(i, hash(i) as usize % (i + 1));
    }
    words(all.into_iter())
}

fn histogram() -> Vec<Argument> {
    let mut input = Bytes::zero(4 * M);
    for (i, b) in input.as_mut_slice().iter_mut().enumerate() {
        *b = hash(i) as u8;
    }
    vec![zeros(1024), Argument::Buffer(input), int(4 << 20)]
}

pub const CASES: &[Case] = &[
    Case {
        name: "saxpy, 1M",
        file: "saxpy",
        kernel: "saxpy",
        global: [M, 1, 1],
        local: [256, 1, 1],
        arguments: || {
            vec![
                floats((0..M).map(unit)),
                floats((0..M).map(unit)),
                float(0.5),
            ]
        },
        results: &[0],
        same: Same::Near(1e-6),
        c: c_call!(b"saxpy", [0, 1], [f32: 0.5, c_int: M as c_int]),
    },
    Case {
        name: "gather, table 32 KiB",
        file: "gather",
        kernel: "gather",
        global: [M, 1, 1],
        local: [256, 1, 1],
        arguments: || gather(8 << 10),
        results: &[0],
        same: Same::Bits,
        c: c_call!(b"gather", [0, 1, 2], [c_int: M as c_int]),
    },
    Case {
        name: "gather, table 1 MiB",
        file: "gather",
        kernel: "gather",
        global: [M, 1, 1],
        local: [256, 1, 1],
        arguments: || gather(256 << 10),
        results: &[0],
        same: Same::Bits,
        c: c_call!(b"gather", [0, 1, 2], [c_int: M as c_int]),
    },
    Case {
        name: "scatter, permutation 4 MiB",
        file: "gather",
        kernel: "scatter",
        global: [M, 1, 1],
        local: [256, 1, 1],
        arguments: || vec![zeros(4 * M), words((0..M).map(hash)), permutation()],
        results: &[0],
        same: Same::Bits,
        c: c_call!(b"scatter", [0, 1, 2], [c_int: M as c_int]),
    },
    Case {
        name: "gather4 (float4), 32 KiB",
        file: "gather",
        kernel: "gather4",
        global: [M, 1, 1],
        local: [256, 1, 1],
        arguments: || {
            let table = floats((0..8 << 10).map(unit));
            vec![
                zeros(16 * M),
                table,
                words((0..M).map(|i| hash(i) % (2 << 10))),
            ]
        },
        results: &[0],
        same: Same::Bits,
        c: c_call!(b"gather4", [0, 1, 2], [c_int: M as c_int]),
    },
    Case {
        name: "block copy, 256 KiB",
        file: "block_copy",
        kernel: "copy16",
        global: [4096, 1, 1],
        local: [256, 1, 1],
        arguments: || vec![zeros(256 << 10), floats((0..64 << 10).map(unit))],
        results: &[0],
        same: Same::Bits,
        c: c_call!(b"copy16", [0, 1], [c_int: 4096]),
    },
    Case {
        name: "reduction, 4M, groups of 256",
        file: "reduction",
        kernel: "reduce_sum",
        global: [4 * M, 1, 1],
        local: [256, 1, 1],
        arguments: || {
            let input = floats((0..4 * M).map(unit));
            vec![zeros(4 * M / 64), input, Argument::Local(1024)]
        },
        results: &[0],
        same: Same::Near(1e-5),
        c: c_call!(b"reduce_sum", [0, 1], [c_int: 4 * M as c_int, c_int: 256]),
    },
    Case {
        name: "sgemm 512, tiles of 16x16",
        file: "sgemm",
        kernel: "sgemm_tiled",
        global: [512, 512, 1],
        local: [16, 16, 1],
        arguments: || {
            let n = 512 * 512;
            let (a, b) = (floats((0..n).map(unit)), floats((n..2 * n).map(unit)));
            vec![zeros(4 * n), a, b, int(512), int(512)]
        },
        results: &[0],
        same: Same::Near(1e-4),
        c: c_call!(b"sgemm", [0, 1, 2], [c_int: 512]),
    },
    Case {
        name: "Mandelbrot 1024x1024, 256 steps",
        file: "mandelbrot",
        kernel: "mandelbrot",
        global: [1024, 1024, 1],
        local: [256, 1, 1],
        arguments: || {
            let step = 2.5 / 1024.0;
            let place = [float(-2.0), float(-1.25), float(step), float(step)];
            let out = std::iter::once(zeros(4 * M));
            out.chain(place).chain([int(1024), int(256)]).collect()
        },
        results: &[0],
        same: Same::Mostly(2e-3),
        c: c_call!(b"mandelbrot", [0], [f32: -2.0, f32: -1.25, f32: 2.5 / 1024.0, f32: 2.5 / 1024.0,
                                       c_int: 1024, c_int: 1024, c_int: 256]),
    },
    Case {
        name: "histogram, global atomics, 4M",
        file: "histogram",
        kernel: "histogram_global",
        global: [4 * M, 1, 1],
        local: [256, 1, 1],
        arguments: histogram,
        results: &[0],
        same: Same::Bits,
        c: c_call!(b"histogram", [0, 1], [c_int: 4 * M as c_int]),
    },
    Case {
        name: "histogram, local atomics, 4M",
        file: "histogram",
        kernel: "histogram_local_array",
        global: [64 << 10, 1, 1],
        local: [256, 1, 1],
        arguments: histogram,
        results: &[0],
        same: Same::Bits,
        c: c_call!(b"histogram", [0, 1], [c_int: 4 * M as c_int]),
    },
    Case {
        name: "Black-Scholes, 1M",
        file: "black_scholes",
        kernel: "black_scholes",
        global: [M, 1, 1],
        local: [256, 1, 1],
        arguments: black_scholes,
        results: &[0, 1],
        same: Same::Near(2e-4),
        c: c_call!(b"black_scholes", [0, 1, 2, 3, 4], [f32: 0.02, f32: 0.3, c_int: M as c_int]),
    },
    Case {
        name: "n-body, 4096",
        file: "nbody",
        kernel: "nbody",
        global: [4096, 1, 1],
        local: [256, 1, 1],
        arguments: || {
            let n = 4 * 4096;
            let (to, speed) = (zeros(4 * n), zeros(4 * n));
            let tail = [int(4096), float(0.001), float(0.01)];
            let place = floats((0..n).map(unit));
            [to, speed, place].into_iter().chain(tail).collect()
        },
        results: &[0, 1],
        same: Same::Near(2e-3),
        c: c_call!(b"nbody", [0, 1, 2], [c_int: 4096, f32: 0.001, f32: 0.01]),
    },
    Case {
        name: "3x3 stencil, 2048x2048",
        file: "stencil",
        kernel: "stencil_mean",
        global: [2048, 2048, 1],
        local: [256, 1, 1],
        arguments: || {
            let input = words((0..4 * M).map(|i| hash(i) % 1000));
            vec![zeros(16 * M), input, int(2048), int(2048)]
        },
        results: &[0],
        same: Same::Bits,
        c: c_call!(b"stencil_mean", [0, 1], [c_int: 2048, c_int: 2048]),
    },
    Case {
        name: "bitonic step, distance 256, 1M",
        file: "bitonic",
        kernel: "bitonic_step",
        global: [M, 1, 1],
        local: [256, 1, 1],
        arguments: || bitonic(256),
        results: &[0],
        same: Same::Bits,
        c: c_call!(b"bitonic_step", [0], [u32: 256, u32: 512, c_int: M as c_int]),
    },
    Case {
        name: "bitonic step, distance 1, 1M",
        file: "bitonic",
        kernel: "bitonic_step",
        global: [M, 1, 1],
        local: [256, 1, 1],
        arguments: || bitonic(1),
        results: &[0],
        same: Same::Bits,
        c: c_call!(b"bitonic_step", [0], [u32: 1, u32: 512, c_int: M as c_int]),
    },
    Case {
        name: "SHA-256, 64K messages",
        file: "sha256",
        kernel: "sha256",
        global: [64 << 10, 1, 1],
        local: [256, 1, 1],
        arguments: || vec![zeros(2 * M), words((0..M).map(hash)), int(1)],
        results: &[0],
        same: Same::Bits,
        c: c_call!(b"sha256", [0, 1], [c_int: 1, c_int: 64 << 10]),
    },
];
