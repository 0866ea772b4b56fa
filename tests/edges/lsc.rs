//! Untyped LSC messages.

use visa_jit::isa::Platform;

use super::kernel::{Guard, Reach, Shape};
use super::layout::{Layout, Start};
use super::legacy::{ALL, Lanes, access, channels};
use super::machine::Space;
use super::rig::{Effort, Rig};

/// Name, bytes in memory, bytes in the register, upper half.
pub type Size = (&'static str, u32, u32, bool);

const D8C32: Size = ("d8c32", 1, 4, false);
pub const D16C32: Size = ("d16c32", 2, 4, false);
const D16C32H: Size = ("d16c32h", 2, 4, true);
pub const D32: Size = ("d32", 4, 4, false);
pub const D64: Size = ("d64", 8, 8, false);
const D8: Size = ("d8", 1, 1, false);
const D16: Size = ("d16", 2, 2, false);

/// Address operand with an immediate, and the unit that serves it.
pub fn address(space: Space, bytes: u32, immediate: i64, stride: &str) -> (&'static str, String) {
    let imm = match immediate {
        0 => String::new(),
        i if i > 0 => format!("+{i:#x}"),
        i => format!("-{:#x}", -i),
    };
    let inside = format!("[OFF{imm}{stride}]:a{}", 8 * bytes);
    match space {
        Space::Flat => ("ugm", format!("flat{inside}")),
        Space::Slm => ("slm", format!("flat{inside}")),
        Space::Surface => ("ugm", format!("bti(0x0){inside}")),
        Space::Scratch => ("ugm", format!("ss(BASE){inside}")),
    }
}

/// Bytes from one component to the next: lanes are padded to eight on DG2, else to sixteen.
fn component(platform: Platform, lanes: u32, register: u32) -> u32 {
    let least = if platform == Platform::Dg2 { 8 } else { 16 };
    (lanes.max(least) * register).max(platform.grf_bytes())
}

#[derive(Clone, Copy)]
pub struct Message {
    platform: Platform,
    lanes: Lanes,
    space: Space,
    store: bool,
    /// `lsc_load`, `lsc_load_quad` …
    suffix: &'static str,
    immediate: i64,
    narrow: bool,
    scale: u64,
    /// How a surface is named, if not by its index.
    model: Option<&'static str>,
}

impl Message {
    pub fn new(platform: Platform, lanes: Lanes, space: Space, store: bool) -> Message {
        Message {
            platform,
            lanes,
            space,
            store,
            suffix: "",
            immediate: 0,
            narrow: false,
            scale: 1,
            model: None,
        }
    }

    fn shape(&self, data: &str, stride: &str, layout: Layout, reach: Reach) -> Shape {
        let opcode = match (self.suffix, self.store) {
            ("_quad", false) => "lsc_load_quad",
            ("_quad", true) => "lsc_store_quad",
            ("_strided", false) => "lsc_load_strided",
            ("_strided", true) => "lsc_store_strided",
            (_, false) => "lsc_load",
            (_, true) => "lsc_store",
        };
        let bytes = match self.space {
            Space::Flat => 8,
            _ if self.narrow => 2,
            _ => 4,
        };
        let (unit, mut at) = address(self.space, bytes, self.immediate, stride);
        if self.scale != 1 {
            at = at.replace("[OFF", &format!("[{:#x}*OFF", self.scale));
        }
        if let Some(model) = self.model {
            at = at.replace("bti(0x0)", model).replace("ss(BASE)", model);
        }
        let text = if self.store {
            format!("{opcode}.{unit} {{x}} {at} DATA:{data}")
        } else {
            format!("{opcode}.{unit} {{x}} DATA:{data} {at}")
        };
        let mut shape = access(
            self.platform,
            self.lanes,
            self.space,
            text,
            opcode,
            layout,
            self.store,
            Reach {
                immediate: self.immediate,
                unit: self.scale,
                ..reach
            },
        );
        shape.offset_bytes = bytes;
        shape
    }

    /// `n` elements a lane.
    pub fn vector(&self, size: Size, n: u32) -> Shape {
        let (name, memory, register, upper) = size;
        let layout = Layout {
            start: if self.scale == 1 {
                Start::Lsc(self.immediate)
            } else {
                Start::Scaled(self.scale, self.immediate)
            },
            memory,
            register,
            upper,
            elements: (0..n).collect(),
            stride: component(self.platform, self.lanes.lanes, register),
            block: false,
        };
        let data = if n == 1 {
            name.into()
        } else {
            format!("{name}x{n}")
        };
        self.shape(&data, "", layout, Reach::default())
    }

    /// `n` elements one after the other.
    fn transposed(&self, size: Size, n: u32) -> Shape {
        let layout = Layout {
            start: Start::Lsc(self.immediate),
            memory: size.1,
            register: size.2,
            upper: size.3,
            elements: (0..n).collect(),
            stride: size.2,
            block: true,
        };
        self.shape(&format!("{}x{n}t", size.0), "", layout, Reach::default())
    }

    /// Channels; each is an access of its own.
    pub fn quad(&self, (name, memory, register, upper): Size, set: u32) -> Shape {
        let names: String = channels(set)
            .iter()
            .map(|&c| ['x', 'y', 'z', 'w'][c as usize])
            .collect();
        let layout = Layout {
            start: Start::Lsc(self.immediate),
            memory,
            register,
            upper,
            elements: channels(set),
            stride: component(self.platform, self.lanes.lanes, register),
            block: true,
        };
        let m = Message {
            suffix: "_quad",
            ..*self
        };
        m.shape(&format!("{name}.{names}"), "", layout, Reach::default())
    }

    pub fn strided(&self, size: Size, n: u32, stride: Option<u64>) -> Shape {
        let packed = u64::from(size.1 * n);
        let layout = Layout {
            start: Start::Strided(self.immediate, stride.unwrap_or(packed)),
            memory: size.1,
            register: size.2,
            upper: size.3,
            elements: (0..n).collect(),
            stride: component(self.platform, self.lanes.lanes, size.2),
            block: false,
        };
        let text = stride.map_or_else(String::new, |s| format!(", {s:#x}"));
        let m = Message {
            suffix: "_strided",
            ..*self
        };
        m.shape(&format!("{}x{n}", size.0), &text, layout, Reach::default())
    }
}

const SPACES: [Space; 4] = [Space::Flat, Space::Surface, Space::Slm, Space::Scratch];
const GUARDS: [Guard; 3] = [Guard::Flow, Guard::Predicate, Guard::Inverted];

/// Policies and all sizes for part of the shapes.
fn effort(n: usize) -> Effort {
    if n.is_multiple_of(4) {
        ALL
    } else {
        Effort {
            policies: false,
            ..ALL
        }
    }
}

pub fn vectors(rig: &mut Rig) {
    let mut n = 0usize;
    for store in [false, true] {
        for space in SPACES {
            for size in [D8C32, D16C32, D16C32H, D32, D64, D8, D16] {
                let lengths: &[u32] = if size.2 < 4 || size.1 < 4 {
                    &[1]
                } else {
                    &[1, 2, 3, 4, 8]
                };
                for &length in lengths {
                    n += 1;
                    let (platform, simd) = if n.is_multiple_of(2) {
                        (Platform::Dg2, 16)
                    } else {
                        (Platform::Pvc, 32)
                    };
                    let lanes = if length < 4 && n.is_multiple_of(5) {
                        simd
                    } else {
                        [8, 16, 1][n % 3]
                    };
                    let first = if lanes + 4 <= simd {
                        4 * (n as u32 % 2)
                    } else {
                        0
                    };
                    let l = Lanes::new(simd, first, lanes, GUARDS[n % 3]);
                    let immediate = [0, 0, 0x10, -0x10][n % 4];
                    let m = Message {
                        immediate,
                        ..Message::new(platform, l, space, store)
                    };
                    rig.run(&m.vector(size, length), effort(n));
                }
            }
        }
        let l = Lanes::new(16, 0, 16, Guard::Predicate);
        let m = Message::new(Platform::Dg2, l, Space::Surface, store);
        let m = Message { narrow: true, ..m };
        rig.run(&m.vector(D32, 2), ALL);
        // Every mask.
        let l = Lanes::new(8, 0, 8, Guard::Flow);
        for space in [Space::Flat, Space::Surface] {
            let m = Message::new(Platform::Dg2, l, space, store);
            let effort = Effort {
                cases: 256,
                all_masks: true,
                policies: true,
                sizes: &[63, 4096],
            };
            rig.run(&m.vector(D32, 1), effort);
            rig.run(&m.vector(D32, 4), effort);
        }
    }
}

#[test]
fn lsc_vectors() {
    let mut rig = Rig::new(3);
    vectors(&mut rig);
    rig.finish("LSC vectors");
}

pub fn blocks(rig: &mut Rig) {
    let mut n = 0usize;
    for store in [false, true] {
        for space in SPACES {
            for (size, lengths) in [(D32, [1, 2, 8, 16, 64]), (D64, [1, 3, 4, 16, 32])] {
                for length in lengths {
                    n += 1;
                    if length == 1 {
                        continue;
                    }
                    let guard = if n.is_multiple_of(2) {
                        Guard::None
                    } else {
                        Guard::Predicate
                    };
                    let l = Lanes {
                        no_mask: true,
                        ..Lanes::new(16, 0, 1, guard)
                    };
                    let m = Message::new(Platform::Pvc, l, space, store);
                    rig.run(&m.transposed(size, length), effort(n));
                }
            }
            for set in 1..16 {
                n += 1;
                let (platform, lanes) = [(Platform::Dg2, 8), (Platform::Pvc, 16)][n % 2];
                let l = Lanes::new(16, 0, lanes, GUARDS[n % 3]);
                let m = Message::new(platform, l, space, store);
                rig.run(&m.quad(D32, set), effort(n));
            }
            for (size, stride) in [
                (D32, None),
                (D32, Some(8)),
                (D64, Some(24)),
                (D32, Some(1000)),
                (D8C32, Some(3)),
            ] {
                n += 1;
                let l = Lanes::new(16, 0, 16, GUARDS[n % 3]);
                let m = Message::new(Platform::Dg2, l, space, store);
                rig.run(&m.strided(size, 1, stride), effort(n));
            }
        }
    }
}

#[test]
fn lsc_blocks_quads_strides() {
    let mut rig = Rig::new(4);
    blocks(&mut rig);
    rig.finish("LSC blocks, quads and strides");
}

/// Long vectors, narrow elements in every arrangement, scaled addresses, surfaces by their place in the heap.
pub fn others(rig: &mut Rig) {
    let mut n = 0usize;
    const LESS: Effort = Effort {
        cases: 24,
        sizes: &[63, 4096],
        policies: false,
        all_masks: false,
    };
    let mut run = |shape: &Shape, policies: bool| {
        rig.run(shape, Effort { policies, ..LESS });
    };
    for store in [false, true] {
        for (k, space) in SPACES.into_iter().enumerate() {
            let mut next = || {
                n += 1;
                let lanes = Lanes::new(16, 0, [8, 16][n % 2], GUARDS[n % 3]);
                Message::new([Platform::Dg2, Platform::Pvc][n % 2], lanes, space, store)
            };
            // One lane: a long vector of all sixteen is larger than the register file.
            let scalar = Lanes::new(16, 4, 1, Guard::Predicate);
            let long = Message::new(Platform::Dg2, scalar, space, store);
            run(&long.vector([D32, D64][k % 2], 64), k == 0);
            run(&next().vector([D32, D8C32, D16, D16C32][k], 16), k == 1);
            for size in [D8, D16, D8C32, D16C32, D16C32H] {
                run(&next().vector(size, [2, 3, 4][k % 3]), false);
                let one = Lanes {
                    no_mask: true,
                    ..scalar
                };
                let block = Message::new(Platform::Pvc, one, space, store);
                run(&block.transposed(size, [4, 64, 8, 16][k]), k == 2);
            }
            for size in [D64, D8C32, D16C32H] {
                run(&next().quad(size, [0xb, 0x5, 0xf, 0xc][k]), false);
            }
            run(&next().strided(D32, 3, None), false);
            run(&next().strided(D64, 2, Some(5)), k == 3);
            for (scale, immediate) in [(4, 0), (3, -16)] {
                let m = Message {
                    scale,
                    immediate,
                    ..next()
                };
                run(&m.vector(D32, 2), scale == 4);
            }
        }
        let l = Lanes::new(16, 0, 16, Guard::Flow);
        let m = Message::new(Platform::Pvc, l, Space::Surface, store);
        for model in ["bss(0x40)", "ss(0x40)", "bss(HEAP)", "ss(HEAP)"] {
            let model = Some(model);
            run(&Message { model, ..m }.vector(D32, 2), true);
        }
        let m = Message::new(Platform::Pvc, l, Space::Scratch, store);
        for model in ["ss(0x0)", "ss(0x3f)"] {
            let model = Some(model);
            run(&Message { model, ..m }.vector(D32, 1), false);
        }
    }
}

#[test]
fn lsc_other_forms() {
    let mut rig = Rig::new(12);
    others(&mut rig);
    rig.finish("other LSC forms");
}
