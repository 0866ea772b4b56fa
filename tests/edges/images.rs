//! Typed messages to images flush against unreadable pages, at coordinates inside, at the last texel, just past it, far away and
//! before the first, under every mask of eight lanes and sampled ones of sixteen.

use visa_jit::backend::OobPolicy;
use visa_jit::isa::Platform;
use visa_jit::{Engine, Launch};
use visa_runtime::{
    Buffer, DeviceMemory, ImageFormat, ImageKind, ImageShape, LaunchStatus, SamplerState,
};

use super::rig::options;
use visa_test_common::{Rng, full};

/// What a message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Read,
    /// Reads and never faults; the border outside.
    Fetch,
    /// The same, of one channel of four texels.
    Four,
    /// Whether a reference is less than texels, of images that can be compared; others fault.
    Compare,
    /// The same of four texels.
    CompareFour,
    Write,
    Add,
}

impl Action {
    fn changes(self) -> bool {
        matches!(self, Action::Write | Action::Add)
    }

    fn compares(self) -> bool {
        matches!(self, Action::Compare | Action::CompareFour)
    }

    /// Reads the texels that a filter of two dimensions does.
    fn gathers(self) -> bool {
        matches!(self, Action::Four | Action::CompareFour)
    }
}

pub struct Message {
    action: Action,
    platform: Platform,
    /// Channels in their order.
    channels: &'static [usize],
    /// `{x}` is the execution size.
    pub text: &'static str,
    /// Bytes of a texel that it works on; any if 0.
    texel: u32,
}

const fn message(
    action: Action,
    platform: Platform,
    channels: &'static [usize],
    texel: u32,
    text: &'static str,
) -> Message {
    Message {
        action,
        platform,
        channels,
        text,
        texel,
    }
}

pub const MESSAGES: [Message; 34] = [
    message(
        Action::Read,
        Platform::Skl,
        &[0, 1, 2, 3],
        0,
        "gather4_typed.RGBA {x} T6 U.0 V.0 R.0 %null.0 D.0",
    ),
    message(
        Action::Read,
        Platform::Pvc,
        &[1, 3],
        0,
        "gather4_typed.GA {x} T6 U.0 V.0 R.0 %null.0 D.0",
    ),
    message(
        Action::Read,
        Platform::Dg2,
        &[0, 3],
        0,
        "lsc_load_quad.tgm {x} D:d32.xw bti(0x0)[U, V, R]:a32",
    ),
    message(
        Action::Read,
        Platform::Pvc,
        &[0],
        0,
        "lsc_load_quad.tgm {x} D:d32.x bss(0x40)[U, V, R]:a32",
    ),
    message(
        Action::Fetch,
        Platform::Tgllp,
        &[0, 1, 2, 3],
        0,
        "load_lz.RGBA {x} 0x0:uw T6 D.0 U.0 V.0 R.0",
    ),
    message(
        Action::Fetch,
        Platform::Dg2,
        &[0],
        0,
        "sample_lz.R {x} 0x0:uw S0 T6 D.0 FU.0 FV.0 FR.0",
    ),
    message(
        Action::Fetch,
        Platform::Skl,
        &[0, 1, 2, 3],
        0,
        "load_3d.RGBA {x} 0x0:uw T6 D.0 U.0 V.0 Z.0 R.0",
    ),
    message(
        Action::Fetch,
        Platform::Tgllp,
        &[1, 2],
        0,
        "sample_3d.GB {x} 0x0:uw S0 T6 D.0 FU.0 FV.0 FR.0",
    ),
    message(
        Action::Fetch,
        Platform::Skl,
        &[0],
        0,
        "sample_b.R {x} 0x0:uw S0 T6 D.0 Z.0 FU.0 FV.0 FR.0",
    ),
    message(
        Action::Fetch,
        Platform::Dg2,
        &[3],
        0,
        "sample_l.A {x} 0x0:uw S0 T6 D.0 Z.0 FU.0 FV.0 FR.0",
    ),
    message(
        Action::Fetch,
        Platform::Tgllp,
        &[0, 3],
        0,
        "sample_d.RA {x} 0x0:uw S0 T6 D.0 FU.0 Z.0 Z.0 FV.0 Z.0 Z.0 FR.0",
    ),
    message(
        Action::Four,
        Platform::Skl,
        &[0],
        0,
        "sample4.R {x} 0x0:uw S0 T6 D.0 FU.0 FV.0",
    ),
    message(
        Action::Four,
        Platform::Dg2,
        &[1],
        0,
        "sample4_l.G {x} 0x0:uw S0 T6 D.0 Z.0 FU.0 FV.0",
    ),
    message(
        Action::Four,
        Platform::Tgllp,
        &[0],
        0,
        "sample4_po.R {x} 0x0:uw S0 T6 D.0 FU.0 FV.0 Z.0 Z.0",
    ),
    message(
        Action::Compare,
        Platform::Skl,
        &[0, 1, 2, 3],
        0,
        "sample_c.RGBA {x} 0x0:uw S0 T6 D.0 A.0 FU.0 FV.0 FR.0",
    ),
    message(
        Action::Compare,
        Platform::Dg2,
        &[0],
        0,
        "sample_c_lz.R {x} 0x0:uw S0 T6 D.0 A.0 FU.0 FV.0 FR.0",
    ),
    message(
        Action::Compare,
        Platform::Tgllp,
        &[0, 3],
        0,
        "sample_b_c.RA {x} 0x0:uw S0 T6 D.0 A.0 Z.0 FU.0 FV.0 FR.0",
    ),
    message(
        Action::Compare,
        Platform::Skl,
        &[0],
        0,
        "sample_l_c.R {x} 0x0:uw S0 T6 D.0 A.0 Z.0 FU.0 FV.0 FR.0",
    ),
    message(
        Action::Compare,
        Platform::Dg2,
        &[0],
        0,
        "sample_d_c.R {x} 0x0:uw S0 T6 D.0 A.0 FU.0 Z.0 Z.0 FV.0 Z.0 Z.0 FR.0",
    ),
    message(
        Action::CompareFour,
        Platform::Tgllp,
        &[0],
        0,
        "sample4_c.R {x} 0x0:uw S0 T6 D.0 A.0 FU.0 FV.0",
    ),
    message(
        Action::CompareFour,
        Platform::Skl,
        &[0],
        0,
        "sample4_po_c.R {x} 0x0:uw S0 T6 D.0 A.0 FU.0 FV.0 Z.0 Z.0",
    ),
    message(
        Action::Fetch,
        Platform::Dg2,
        &[0, 1, 2, 3],
        0,
        "load_2dms_w.RGBA {x} 0x0:uw T6 D.0 A.0 A.0 A.0 U.0 V.0 R.0 Z.0",
    ),
    message(
        Action::Write,
        Platform::Tgllp,
        &[0, 1, 2, 3],
        0,
        "scatter4_typed.RGBA {x} T6 U.0 V.0 R.0 %null.0 D.0",
    ),
    message(
        Action::Write,
        Platform::Pvc,
        &[1],
        0,
        "scatter4_typed.G {x} T6 U.0 V.0 R.0 %null.0 D.0",
    ),
    message(
        Action::Write,
        Platform::Dg2,
        &[0, 1],
        0,
        "lsc_store_quad.tgm {x} bti(0x0)[U, V, R]:a32 D:d32.xy",
    ),
    message(
        Action::Write,
        Platform::Pvc,
        &[0],
        0,
        "lsc_store_quad.tgm {x} ss(0x40)[U, V, R]:a32 D:d32.x",
    ),
    message(
        Action::Add,
        Platform::Skl,
        &[0],
        4,
        "typed_atomic.add {x} T6 U.0 V.0 R.0 %null.0 A.0 %null.0 D.0",
    ),
    message(
        Action::Add,
        Platform::Pvc,
        &[0],
        2,
        "typed_atomic.add.16 {x} T6 U.0 V.0 R.0 %null.0 A.0 %null.0 D.0",
    ),
    message(
        Action::Add,
        Platform::Dg2,
        &[0],
        4,
        "lsc_atomic_iadd.tgm {x} D:d32 bti(0x0)[U, V, R]:a32 A %null",
    ),
    message(
        Action::Add,
        Platform::Pvc,
        &[0],
        2,
        "lsc_atomic_iadd.tgm {x} D:d16c32 ss(0x40)[U, V, R]:a32 A %null",
    ),
    // Descriptors of three coordinates, which lie after each other, and the operand after them.
    message(
        Action::Read,
        Platform::Pvc,
        &[0, 1, 2, 3],
        0,
        "raw_send {x} 0xc 3 4 0x06415000:ud U.0 D.0",
    ),
    message(
        Action::Write,
        Platform::Pvc,
        &[0, 1],
        0,
        "raw_sends.13.3.2.0 {x} 0xd:ud 0x66003506:ud U.0 D.0 %null.0",
    ),
    message(
        Action::Add,
        Platform::Pvc,
        &[0],
        4,
        "raw_sends.12.3.1.1 {x} 0xc:ud 0x0611a700:ud U.0 A.0 D.0",
    ),
    message(
        Action::Add,
        Platform::Pvc,
        &[0],
        4,
        "raw_sends.13.3.1.1 {x} 0xd:ud 0x6610050c:ud U.0 A.0 D.0",
    ),
];

/// Kind, format and extent: images of 0, 1, 3, 4, 63, 64, 4095 and 4096 bytes among them.
const IMAGES: [(ImageKind, &str, [u32; 3]); 12] = [
    (ImageKind::D1, "r8uint", [0, 1, 1]),
    (ImageKind::D1, "r8uint", [1, 1, 1]),
    (ImageKind::D2, "r8uint", [1, 3, 1]),
    (ImageKind::D1, "r32uint", [1, 1, 1]),
    (ImageKind::D3, "r8uint", [7, 3, 3]),
    (ImageKind::D2, "r32uint", [4, 4, 1]),
    (ImageKind::D2, "r16uint", [8, 4, 1]),
    (ImageKind::D2Array, "rg8uint", [4, 4, 2]),
    (ImageKind::D1, "r8uint", [4095, 1, 1]),
    (ImageKind::D2, "rgba32uint", [16, 16, 1]),
    (ImageKind::D3, "r16uint", [32, 8, 8]),
    (ImageKind::Buffer, "r32uint", [1024, 1, 1]),
];

/// Bytes of the payload `D`.
const DATA: usize = 256;
/// First byte of it among the inputs; coordinates, operands and the mask come before.
const DATA_AT: usize = 384;
const MASK_AT: usize = 320;

fn kernel(m: &Message, lanes: u32) -> String {
    let mut t = format!(".version 4.1\n.kernel \"images\"\n.kernel_attr SimdSize={lanes}\n");
    // Coordinates follow each other, as messages by descriptors have them.
    let stride = (4 * lanes).max(m.platform.grf_bytes());
    t += ".decl U v_type=G type=ud num_elts=48 align=GRF\n";
    for (name, n) in [("V", 1), ("R", 2)] {
        let at = n * stride;
        t += &format!(".decl {name} v_type=G type=ud num_elts=16 alias=<U, {at}>\n");
    }
    for (name, ty, n) in [
        ("FU", "f", 16),
        ("FV", "f", 16),
        ("FR", "f", 16),
        ("A", "ud", 16),
        ("Z", "ud", 16),
        ("M", "ud", 4),
        ("D", "ud", 64),
    ] {
        t += &format!(".decl {name} v_type=G type={ty} num_elts={n} align=GRF\n");
    }
    t += ".decl P1 v_type=P num_elts=16\n.decl S0 v_type=S num_elts=1\n.decl T6 v_type=T num_elts=1\n.decl T7 v_type=T \
          num_elts=1\n.decl T8 v_type=T num_elts=1\n.function \"main\"\nmain:\n    movs (M1_NM, 1) T6(0) 0x0:ud\n    \
          movs (M1_NM, 1) T7(0) 0x1:ud\n    movs (M1_NM, 1) T8(0) 0x2:ud\n    movs (M1_NM, 1) S0(0) 0x0:ud\n";
    for (i, name) in ["U", "V", "R", "A"].into_iter().enumerate() {
        t += &format!("    oword_ld (4) T7 {:#x}:ud {name}.0\n", 4 * i);
    }
    t += "    mov (M1_NM, 16) Z(0,0)<1> 0x0:ud\n";
    t += &format!("    oword_ld (1) T7 {:#x}:ud M.0\n", MASK_AT / 16);
    for b in [0, 128] {
        t += &format!("    oword_ld (8) T7 {:#x}:ud D.{b}\n", (DATA_AT + b) / 16);
    }
    // In the middle of texels, where nothing is rounded.
    for (from, to) in [("U", "FU"), ("V", "FV"), ("R", "FR")] {
        t += &format!(
            "    mov (M1_NM, 16) {to}(0,0)<1> {from}(0,0)<1;1,0>\n    \
             add (M1_NM, 16) {to}(0,0)<1> {to}(0,0)<1;1,0> 0x3e800000:f\n"
        );
    }
    t += "    setp (M1_NM, 16) P1 M(0,0)<0;1,0>\n    (P1) ";
    t += &m.text.replace("{x}", &format!("(M1, {lanes})"));
    t += "\n    oword_st (8) T8 0x0:ud D.0\n    oword_st (8) T8 0x8:ud D.128\n    ret (M1, 1)\n";
    t
}

/// Inputs of one run.
struct Case {
    mask: u32,
    at: Vec<[u32; 3]>,
    operands: Vec<u32>,
    data: Vec<u8>,
}

/// A coordinate along an axis of a given number of texels.
fn coordinate(rng: &mut Rng, size: u32, kind: u32) -> u32 {
    match kind {
        0..=3 => rng.word_below(size.max(1)),
        4 => size.wrapping_sub(1),
        5 => size,
        6 => size + 1 + rng.word_below(8),
        7 => [1 << 12, 1 << 20, 1 << 30, 0x7fff_ffff][rng.word_below(4) as usize],
        8 => (1 + rng.word_below(4)).wrapping_neg(),
        9 => 0x8000_0000,
        _ => rng.word(),
    }
}

fn case(rng: &mut Rng, shape: &ImageShape, lanes: u32, action: Action, n: u32) -> Case {
    let axes = shape.kind.axes() as usize;
    let mut at: Vec<[u32; 3]> = Vec::new();
    for lane in 0..lanes {
        let mut place = [0; 3];
        for (k, to) in place.iter_mut().enumerate().take(axes) {
            // All inside but for one axis, or any.
            let kind = match n % 3 {
                0 => n / 3 % 11,
                _ => rng.word_below(11),
            };
            let odd = rng.word_below(3) as usize == k || n.is_multiple_of(5);
            *to = coordinate(rng, shape.extent[k], if odd { kind } else { 0 });
        }
        // Of lanes that write one texel, any may win.
        if action.changes() && at.contains(&place) {
            place[0] = 0x4000_0000 + lane;
        }
        at.push(place);
    }
    // References about as large as normalised texels.
    let mut operand = || match action.compares() {
        true => rng.float(-0.1, 1.1).to_bits(),
        false => rng.word(),
    };
    let operands = (0..16).map(|_| operand()).collect();
    Case {
        mask: if lanes == 8 {
            n & 0xff
        } else {
            rng.word() & 0xffff
        },
        at,
        operands,
        data: rng.bytes(DATA),
    }
}

impl Case {
    fn inputs(&self) -> Vec<u8> {
        let mut out = vec![0; DATA_AT + DATA];
        let mut put = |at: usize, v: u32| out[at..at + 4].copy_from_slice(&v.to_le_bytes());
        for (lane, place) in self.at.iter().enumerate() {
            (0..3).for_each(|k| put(64 * k + 4 * lane, place[k]));
        }
        for (lane, v) in self.operands.iter().enumerate() {
            put(192 + 4 * lane, *v);
        }
        put(MASK_AT, self.mask);
        out[DATA_AT..].copy_from_slice(&self.data);
        out
    }
}

/// Memory, payload and faulting lanes after a message.
struct Model {
    memory: Vec<u8>,
    data: Vec<u8>,
    faults: u64,
}

impl Model {
    fn texel(&self, shape: &ImageShape, at: [u32; 3]) -> Option<usize> {
        let e = shape.extents();
        let axes = shape.kind.axes() as usize;
        if (0..axes).any(|k| at[k] >= e[k]) {
            return None;
        }
        let [x, y, z] = at.map(|c| c as usize);
        let y = if axes > 1 { y } else { 0 };
        let z = if axes > 2 { z } else { 0 };
        let index = (z * e[1] as usize + y) * e[0] as usize + x;
        Some(index * shape.format.texel_bytes() as usize)
    }

    fn number(bytes: &[u8]) -> u32 {
        bytes.iter().rev().fold(0, |v, &b| v << 8 | u32::from(b))
    }

    fn run(&mut self, m: &Message, shape: &ImageShape, case: &Case) {
        let lanes = case.at.len();
        let stride = (4 * lanes).max(m.platform.grf_bytes() as usize);
        let size = shape.format.channel_bytes() as usize;
        for (lane, &at) in case.at.iter().enumerate() {
            if case.mask >> lane & 1 == 0 {
                continue;
            }
            let format = shape.format;
            let single = m.texel == format.texel_bytes() && format.channels() == 1;
            let whole = m.texel == 0 || single;
            let place = self.texel(shape, at).filter(|_| whole);
            let samples = matches!(m.action, Action::Fetch | Action::Four);
            if m.action.compares() {
                let reference = f32::from_bits(case.operands[lane]);
                self.compare(m, shape, at, reference, (4 * lane, stride));
                continue;
            }
            self.faults += u64::from(place.is_none() && !samples);
            if m.action == Action::Four {
                self.four(shape, at, m.channels[0], 4 * lane, stride);
                continue;
            }
            for (position, &channel) in m.channels.iter().enumerate() {
                let slot = position * stride + 4 * lane;
                let exists = channel < shape.format.channels() as usize;
                let from = place.filter(|_| exists).map(|p| p + channel * size);
                let data = &mut self.data;
                let mut set = |v: u32| data[slot..slot + 4].copy_from_slice(&v.to_le_bytes());
                match (m.action, from) {
                    (Action::Write, Some(p)) => {
                        let v = Self::number(&self.data[slot..slot + 4]);
                        let most = u32::MAX >> (32 - 8 * size);
                        self.memory[p..p + size]
                            .copy_from_slice(&v.min(most).to_le_bytes()[..size]);
                    }
                    (Action::Write, None) => {}
                    (Action::Add, Some(p)) => {
                        let old = Self::number(&self.memory[p..p + size]);
                        set(old);
                        let new = old.wrapping_add(case.operands[lane]);
                        self.memory[p..p + size].copy_from_slice(&new.to_le_bytes()[..size]);
                    }
                    (Action::Add, None) => set(0),
                    (_, Some(p)) => {
                        let v = Self::number(&self.memory[p..p + size]);
                        set(v);
                    }
                    // An image without texels is as good as none.
                    (_, None) if self.memory.is_empty() => set(0),
                    // Alpha is one where there is none, also in the border.
                    (Action::Fetch, None) if shape.format.channels() == 4 => set(0),
                    (_, None) => set(u32::from(channel == 3)),
                }
            }
        }
    }
}

/// Formats with as many bits that can be compared, where there are any.
fn comparable(format: &str) -> &str {
    match format {
        "r16uint" => "r16unorm",
        "r32uint" => "r32float",
        other => other,
    }
}

/// The texel a point lies in and its neighbours before it, lower left first and round: steps to the left and up.
const AROUND: [(u32, u32); 4] = [(1, 0), (0, 0), (0, 1), (1, 1)];

impl Model {
    /// 1 where a reference is less than the texel, else 0, the border among the texels.
    fn compare(
        &mut self,
        m: &Message,
        shape: &ImageShape,
        at: [u32; 3],
        reference: f32,
        (slot, stride): (usize, usize),
    ) {
        let name = shape.format.to_string();
        let known = matches!(name.as_str(), "r16unorm" | "r32float");
        let known = known && shape.kind != ImageKind::D3;
        // An image without texels is as good as none, which is no fault.
        self.faults += u64::from(!known && !self.memory.is_empty());
        let less = |(left, up): (u32, u32)| {
            let near = [at[0].wrapping_sub(left), at[1].wrapping_sub(up), at[2]];
            let place = self.texel(shape, near);
            let bits = place.map_or(0, |p| {
                Self::number(&self.memory[p..][..shape.format.texel_bytes() as usize])
            });
            match name.as_str() {
                "r16unorm" => {
                    let steps = f64::from(reference).clamp(0.0, 1.0) * 65535.0;
                    (steps.round_ties_even() as u32) < bits
                }
                _ => reference < f32::from_bits(bits),
            }
        };
        let answers: Vec<u32> = match (m.action, known && !self.memory.is_empty()) {
            (_, false) => vec![0; 4],
            (Action::CompareFour, _) => AROUND
                .map(|near| f32::from(u8::from(less(near))).to_bits())
                .to_vec(),
            _ => {
                let first = f32::from(u8::from(less((0, 0)))).to_bits();
                let all = [first, 0, 0, 1_f32.to_bits()];
                m.channels.iter().map(|&c| all[c]).collect()
            }
        };
        let count = match m.action {
            Action::CompareFour => 4,
            _ => m.channels.len(),
        };
        for (position, v) in answers.into_iter().take(count).enumerate() {
            let to = position * stride + slot;
            self.data[to..to + 4].copy_from_slice(&v.to_le_bytes());
        }
    }

    /// One channel of the texels around a point a quarter of a texel after the first corner of one: it and its neighbours
    /// before it, lower left first and round.
    fn four(
        &mut self,
        shape: &ImageShape,
        at: [u32; 3],
        channel: usize,
        slot: usize,
        stride: usize,
    ) {
        let size = shape.format.channel_bytes() as usize;
        let channels = shape.format.channels() as usize;
        for (position, (left, up)) in AROUND.into_iter().enumerate() {
            let near = [at[0].wrapping_sub(left), at[1].wrapping_sub(up), at[2]];
            let v = match self.texel(shape, near).filter(|_| channel < channels) {
                Some(p) => Self::number(&self.memory[p + channel * size..][..size]),
                None => 0,
            };
            let to = position * stride + slot;
            self.data[to..to + 4].copy_from_slice(&v.to_le_bytes());
        }
    }
}

pub fn flush(memory: &DeviceMemory, bytes: u64, end: bool) -> Buffer {
    let buffer = match end {
        true => memory.alloc_flush_end(bytes),
        false => memory.alloc_flush_start(bytes),
    };
    buffer.unwrap()
}

/// Runs cases of one message on one image; how many.
fn message_on(
    engine: &Engine,
    outside: &DeviceMemory,
    m: &Message,
    shape: &ImageShape,
    (lanes, end, policy): (u32, bool, OobPolicy),
    rng: &mut Rng,
) -> u32 {
    let target = flush(outside, shape.bytes().unwrap(), end);
    let inputs = outside.alloc((DATA_AT + DATA) as u64).unwrap();
    let results = outside.alloc(DATA as u64).unwrap();
    let program = engine
        .program_from_text("images", &kernel(m, lanes), m.platform)
        .unwrap_or_else(|e| panic!("{}: {e}", m.text));
    let launch = Launch::new([lanes, 1, 1])
        .local([lanes, 1, 1])
        .oob(policy)
        .image(0, target.clone(), *shape)
        .surface(1, inputs.clone())
        .surface(2, results.clone())
        .sampler(
            0,
            SamplerState {
                addressing: visa_runtime::Addressing::Border,
                comparison: visa_runtime::Comparison::Less,
                ..SamplerState::default()
            },
        );
    let prepared = program.kernels()[0].prepare(&launch).unwrap();
    let before = rng.bytes(target.len() as usize);
    let cases = if lanes == 8 { 256 } else { 64 };
    for n in 0..cases {
        let case = case(rng, shape, lanes, m.action, n);
        let mut want = Model {
            memory: before.clone(),
            data: case.data.clone(),
            faults: 0,
        };
        want.run(m, shape, &case);
        target.write(0, &before).unwrap();
        inputs.write(0, &case.inputs()).unwrap();
        let report = prepared.run().unwrap();
        let what = || {
            format!(
                "{} on {shape:?}, end {end}, mask {:#x}, at {:x?}",
                m.text, case.mask, case.at
            )
        };
        assert_eq!(report.status, LaunchStatus::Completed, "{}", what());
        if policy == OobPolicy::Report {
            assert_eq!(report.fault_count, want.faults, "{}", what());
        }
        assert_eq!(target.to_vec(), want.memory, "{}", what());
        assert_eq!(results.to_vec(), want.data, "{}", what());
    }
    cases
}

#[test]
fn images() {
    let engine = Engine::with_options(options()).unwrap();
    let outside = DeviceMemory::with_capacity(1 << 24).unwrap();
    let mut rng = Rng::new(61);
    let (mut cases, mut n) = (0, 0_u32);
    for m in &MESSAGES {
        for (kind, format, extent) in IMAGES {
            // Filters clamp layers; four texels are those of a plane.
            let layers = m.text.starts_with("sample") && kind.layer_axis().is_some();
            if layers || m.action.gathers() && kind != ImageKind::D2 {
                continue;
            }
            let format = match m.action.compares() {
                true => comparable(format),
                false => format,
            };
            let shape = ImageShape {
                kind,
                format: format.parse::<ImageFormat>().unwrap(),
                extent,
            };
            for end in [true, false] {
                n += 1;
                let policy = match n.is_multiple_of(4) {
                    true => OobPolicy::Report,
                    false => OobPolicy::ReadZeroSkipWrite,
                };
                // A plain run takes two of each 26, others of the next message.
                let lanes = [8, 16]
                    .into_iter()
                    .filter(|l| full() || (n + l / 8) % 13 == 0);
                for lanes in lanes {
                    let how = (lanes, end, policy);
                    cases += message_on(&engine, &outside, m, &shape, how, &mut rng);
                }
            }
        }
    }
    println!("images: {} messages, {cases} cases", MESSAGES.len());
}
