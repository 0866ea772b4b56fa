//! `media_ld` and `media_st` on images flush against unreadable pages: any block at any place, from before the first byte to
//! after the last, in code that all, some or no lanes come to. Beyond the edges the nearest texel is read again, and nothing is
//! written; there is no fault.

use visa_jit::isa::Platform;
use visa_jit::{Engine, Launch};
use visa_runtime::{DeviceMemory, ImageFormat, ImageKind, ImageShape, LaunchStatus};

use super::images::flush;
use super::rig::options;
use visa_test_common::Rng;

/// Messages of this file.
pub const OPCODES: [&str; 4] = ["media_ld", "media_st", "raw_send", "raw_sends"];

/// Kind, format and extent: 0, 1, 3, 4, 63, 64, 4095 and 4096 bytes among them.
const IMAGES: [(ImageKind, &str, [u32; 3]); 11] = [
    (ImageKind::D2, "r8uint", [0, 0, 1]),
    (ImageKind::D2, "r8uint", [1, 1, 1]),
    (ImageKind::D2, "r8uint", [1, 3, 1]),
    (ImageKind::D2, "r8uint", [4, 1, 1]),
    (ImageKind::D2, "r8uint", [9, 7, 1]),
    (ImageKind::D2, "r16uint", [8, 4, 1]),
    (ImageKind::D1, "r8uint", [63, 1, 1]),
    (ImageKind::D2, "rgba8uint", [4, 4, 1]),
    (ImageKind::D2, "r8uint", [65, 63, 1]),
    (ImageKind::D2, "r32uint", [32, 32, 1]),
    (ImageKind::D2, "rgba32uint", [16, 16, 1]),
];

/// Bytes and rows of blocks.
const BLOCKS: [(u32, u32); 9] = [
    (1, 1),
    (1, 5),
    (3, 3),
    (4, 8),
    (7, 4),
    (16, 4),
    (20, 2),
    (32, 8),
    (64, 4),
];

/// Rows of a block: the modifier of instructions, bits 10:8 of descriptors, and which rows of a surface they are, from one on and
/// this far apart.
const ROWS: [(&str, u32, [i64; 2]); 4] = [
    ("nomod", 0, [0, 1]),
    ("top", 6, [0, 2]),
    ("bottom", 7, [1, 2]),
    ("nomod", 4, [0, 1]),
];

/// The image's entry of the binding table.
const IMAGE: u32 = 3;

/// Bytes of the payload.
const DATA: usize = 256;

fn kernel(platform: Platform, opcode: &str, (width, height): (u32, u32), rows: usize) -> String {
    let (modifier, bits, _) = ROWS[rows];
    // The surface of a plane is a given number of entries after the first.
    let plane = (width + height) % (IMAGE + 1);
    let first = match opcode.starts_with("raw") {
        true => 0,
        false => IMAGE - plane,
    };
    let registers = (height * width.next_power_of_two().max(4)).div_ceil(platform.grf_bytes());
    // By a descriptor the size is in the third dword of the header.
    let header = format!(
        "mov (M1_NM, 2) H(0,0)<1> IN(0,0)<1;1,0>\n    mov (M1_NM, 1) H(0,2)<1> {:#x}:ud\n    ",
        (height - 1) << 16 | (width - 1)
    );
    let message = match opcode {
        "raw_send" => format!(
            "{header}raw_send (M1_NM, 8) 0xc 1 1 {:#x}:ud H.0 D.0",
            0x0219_0000 | bits << 8 | IMAGE
        ),
        "raw_sends" => format!(
            "{header}raw_sends.12.1.{registers}.0 (M1_NM, 8) 0xc:ud {:#x}:ud H.0 D.0 %null.0",
            0x020a_8000 | bits << 8 | IMAGE
        ),
        _ => format!(
            "{opcode}.{modifier} ({width},{height}) T6 {plane} IN(0,0)<0;1,0> IN(0,1)<0;1,0> D.0"
        ),
    };
    format!(
        ".version 4.1\n.kernel \"media\"\n.kernel_attr SimdSize=8\n\
         .decl IN v_type=G type=d num_elts=8 align=GRF\n.decl M v_type=G type=ud num_elts=1 alias=<IN, 8>\n\
         .decl H v_type=G type=ud num_elts=8 align=GRF\n\
         .decl D v_type=G type=ud num_elts=64 align=GRF\n.decl P1 v_type=P num_elts=8\n\
         .decl T6 v_type=T num_elts=1\n.decl T7 v_type=T num_elts=1\n.decl T8 v_type=T num_elts=1\n\
         .function \"main\"\n    movs (M1_NM, 1) T6(0) {first:#x}:ud\n    movs (M1_NM, 1) T7(0) 0x1:ud\n    \
         movs (M1_NM, 1) T8(0) 0x2:ud\n    oword_ld (2) T7 0x0:ud IN.0\n    oword_ld (8) T7 0x2:ud D.0\n    \
         oword_ld (8) T7 0xa:ud D.128\n    setp (M1_NM, 8) P1 M(0,0)<0;1,0>\n    (!P1) goto (M1, 8) SKIP\n    \
         {message}\nSKIP:\n    oword_st (8) T8 0x0:ud D.0\n    oword_st (8) T8 0x8:ud D.128\n    ret (M1, 1)\n"
    )
}

/// First byte or row of a block, by its size and the size of the surface.
fn place(rng: &mut Rng, block: u32, size: u32, n: u32) -> i32 {
    let (block, size) = (block as i32, size as i32);
    match n % 8 {
        0 => 0,
        1 => size - block,
        2 => size - 1,
        3 => size,
        4 => -(rng.word_below(block as u32 + 1) as i32),
        5 => rng.word_below(size.unsigned_abs() + 1) as i32,
        6 => [i32::MIN, i32::MAX - 300, -4096, 4096][rng.word_below(4) as usize],
        _ => size - block + 1 + rng.word_below(block as u32) as i32,
    }
}

struct Model {
    memory: Vec<u8>,
    data: Vec<u8>,
}

impl Model {
    fn run(
        &mut self,
        load: bool,
        shape: &ImageShape,
        block: (u32, u32),
        at: [i32; 2],
        [first, step]: [i64; 2],
    ) {
        let texel = i64::from(shape.format.texel_bytes());
        let [w, h, _] = shape.extents().map(i64::from);
        // Rows that are left when others are left out, an odd one at the end among them.
        let h = h / step;
        let row_bytes = w * texel;
        let pitch = block.0.next_power_of_two().max(4);
        for row in 0..block.1 {
            for column in 0..pitch {
                let slot = (row * pitch + column) as usize;
                if column >= block.0 {
                    // Padding.
                    if load {
                        self.data[slot] = 0;
                    }
                    continue;
                }
                let x = i64::from(at[0]) + i64::from(column);
                let y = i64::from(at[1]) + i64::from(row);
                let inside = (0..row_bytes).contains(&x) && (0..h).contains(&y);
                if load {
                    let (x, y) = (
                        x.div_euclid(texel).clamp(0, (w - 1).max(0)) * texel + x.rem_euclid(texel),
                        y.clamp(0, (h - 1).max(0)) * step + first,
                    );
                    let from = (y * row_bytes + x) as usize;
                    self.data[slot] = if w * h == 0 { 0 } else { self.memory[from] };
                } else if inside {
                    self.memory[((y * step + first) * row_bytes + x) as usize] = self.data[slot];
                }
            }
        }
    }
}

#[test]
fn media_blocks() {
    let engine = Engine::with_options(options()).unwrap();
    let outside = DeviceMemory::with_capacity(1 << 24).unwrap();
    let mut rng = Rng::new(67);
    let inputs = outside.alloc(32 + DATA as u64).unwrap();
    let results = outside.alloc(DATA as u64).unwrap();
    let mut cases = 0;
    for (n, opcode) in OPCODES.into_iter().enumerate() {
        for (k, block) in BLOCKS.into_iter().enumerate() {
            let platform = [Platform::Skl, Platform::Dg2, Platform::Pvc][(n + k) % 3];
            let rows = (n + k / 2) % ROWS.len();
            let text = kernel(platform, opcode, block, rows);
            let program = engine
                .program_from_text("media", &text, platform)
                .unwrap_or_else(|e| panic!("{opcode} {block:?}: {e}"));
            for (i, (kind, format, extent)) in IMAGES.into_iter().enumerate() {
                let format = format.parse::<ImageFormat>().unwrap();
                let shape = ImageShape {
                    kind,
                    format,
                    extent,
                };
                let target = flush(&outside, shape.bytes().unwrap(), (i + k) % 2 == 0);
                let launch = Launch::new([8, 1, 1])
                    .local([8, 1, 1])
                    .image(IMAGE, target.clone(), shape)
                    .surface(1, inputs.clone())
                    .surface(2, results.clone());
                let prepared = program.kernels()[0].prepare(&launch).unwrap();
                let before = rng.bytes(target.len() as usize);
                let width = extent[0] * format.texel_bytes();
                for n in 0..64 {
                    let at = [
                        place(&mut rng, block.0, width, n),
                        place(&mut rng, block.1, extent[1], n / 8),
                    ];
                    let mask = [0xff, 0, 0x80, rng.word() & 0xff][n as usize % 4];
                    let data = rng.bytes(DATA);
                    let mut want = Model {
                        memory: before.clone(),
                        data: data.clone(),
                    };
                    if mask != 0 {
                        let load = matches!(opcode, "media_ld" | "raw_send");
                        want.run(load, &shape, block, at, ROWS[rows].2);
                    }
                    let mut input: Vec<u8> = at.iter().flat_map(|v| v.to_le_bytes()).collect();
                    input.extend(u32::to_le_bytes(mask));
                    input.resize(32, 0);
                    input.extend(&data);
                    inputs.write(0, &input).unwrap();
                    target.write(0, &before).unwrap();
                    let report = prepared.run().unwrap();
                    let what = format!(
                        "{opcode} {block:?} of {shape:?} at {at:?}, mask {mask:#x}, rows {rows}"
                    );
                    assert_eq!(report.status, LaunchStatus::Completed, "{what}");
                    assert_eq!(report.fault_count, 0, "{what}");
                    assert_eq!(target.to_vec(), want.memory, "{what}");
                    assert_eq!(results.to_vec(), want.data, "{what}");
                    cases += 1;
                }
            }
        }
    }
    println!("media blocks: {cases} cases");
}
