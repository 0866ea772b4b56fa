//! Two-dimensional blocks: any place of the block in its surface, any place of the surface in device memory.

use visa_jit::isa::Platform;

use super::kernel::{Guard, Reach, Shape};
use super::legacy::{ALL, Lanes};
use super::machine::{Case, Machine, Space};
use super::rig::{Effort, Rig};

/// A block as text has it.
#[derive(Clone, Copy)]
struct Block {
    /// Bytes of an element.
    size: u32,
    blocks: u32,
    width: u32,
    height: u32,
    transpose: bool,
    vnni: bool,
}

impl Block {
    fn letters(self) -> String {
        let letter = |on| if on { 't' } else { 'n' };
        format!("{}{}", letter(self.transpose), letter(self.vnni))
    }

    /// Elements of the payload in the order in which registers hold them, as the message's documentation walks
    /// through them: block, row and column; `None` for padding.
    fn order(self, grf: u32) -> Vec<Option<(u32, u32, u32)>> {
        let per_dword = 4 / self.size.min(4);
        let per_register = grf / self.size;
        let length = if self.transpose {
            self.height
        } else {
            self.width
        };
        let pad = length.next_power_of_two() - length;
        let mut out = Vec::new();
        for b in 0..self.blocks {
            let steps = if self.transpose {
                self.width
            } else {
                self.height
            };
            let step = if self.vnni { per_dword } else { 1 };
            for line in (0..steps).step_by(step as usize) {
                for along in 0..length {
                    for i in 0..step {
                        out.push(Some(if self.transpose {
                            (b, along, line + i)
                        } else {
                            (b, line + i, along)
                        }));
                    }
                }
                out.extend(vec![None; (pad * step) as usize]);
            }
            while !(out.len() as u32).is_multiple_of(per_register) {
                out.push(None);
            }
        }
        out
    }
}

fn param(case: &Case, n: usize) -> u32 {
    u32::from_le_bytes(case.sources[0][4 * n..][..4].try_into().unwrap())
}

/// Address of an element, if it is in the surface.
fn address(b: Block, case: &Case, (block, y, x): (u32, u32, u32)) -> Option<u64> {
    let column = i64::from(param(case, 3) as i32) + i64::from(block * b.width + x);
    let row = i64::from(param(case, 4) as i32) + i64::from(y);
    let left = column * i64::from(b.size);
    let fits = left >= 0 && left + i64::from(b.size) <= i64::from(param(case, 0)) + 1;
    let there = fits && row >= 0 && row <= i64::from(param(case, 1));
    let pitch = u64::from(param(case, 2)) + 1;
    let offset = (row as u64).wrapping_mul(pitch).wrapping_add(left as u64);
    there.then(|| case.offsets[0].wrapping_add(offset))
}

fn shape(platform: Platform, l: Lanes, b: Block, store: bool) -> Shape {
    let block = format!(
        "DATA:d{}.{}x{}x{}{}",
        8 * b.size,
        b.blocks,
        b.width,
        b.height,
        b.letters()
    );
    let at = "flat[OFF, SRC0(0,0), SRC0(0,1), SRC0(0,2), SRC0(0,3), SRC0(0,4)]";
    let (opcode, text) = if store {
        let opcode = "lsc_store_block2d";
        (opcode, format!("{opcode}.ugm {{x}} {at} {block}"))
    } else {
        let opcode = "lsc_load_block2d";
        (opcode, format!("{opcode}.ugm {{x}} {block} {at}"))
    };
    let order = b.order(platform.grf_bytes());
    let data_bytes = order.len() as u32 * b.size;
    let model = move |case: &Case, m: &mut Machine| {
        if !m.on(0) {
            return;
        }
        for (i, element) in order.iter().enumerate() {
            let slot = i as u32 * b.size;
            let at = element.and_then(|e| address(b, case, e));
            // Each element is an access by itself.
            let who = |at| (i as u32, 0, at);
            match (at, store) {
                (Some(at), true) => {
                    let v = m.get(slot, b.size);
                    m.store(who(at), at, b.size, v);
                }
                (Some(at), false) => {
                    let v = m.load(who(at), at, b.size);
                    m.set(slot, b.size, v);
                }
                (None, true) => {}
                (None, false) => m.set(slot, b.size, 0),
            }
        }
    };
    let adjust = move |case: &mut Case, m: &Machine, random: u64| {
        let r = |shift: u32, n: u64| (random >> shift & 0xff) % n;
        let columns = b.width * b.blocks + 8;
        let width = 1 + r(0, u64::from(columns * b.size));
        let height = 1 + r(8, u64::from(b.height) + 4);
        // Rows that overlap would be written in an order that nothing defines.
        let pitch = width + r(16, 9);
        let mut x = r(24, u64::from(b.width) + 8) as i32 - 6;
        let mut y = r(32, u64::from(b.height) + 6) as i32 - 4;
        match r(40, 8) {
            0 | 1 => (x, y) = (0, 0),
            2 => x = i32::MIN,
            3 => y = i32::MAX,
            _ => {}
        }
        let params = [width - 1, height - 1, pitch - 1];
        let params = params.map(|p| p as u32).into_iter();
        for (n, p) in params.chain([x as u32, y as u32]).enumerate() {
            case.sources[0][4 * n..][..4].copy_from_slice(&p.to_le_bytes());
        }
        // Half of the surfaces end with memory, or reach a little beyond.
        if r(48, 2) == 0 {
            let bytes = pitch * (height - 1) + width;
            let end = m.base.wrapping_add(m.memory.len() as u64 + r(52, 3));
            case.offsets[0] = end.wrapping_sub(bytes);
        }
    };
    Shape {
        platform,
        simd: l.simd,
        first: l.first,
        lanes: 1,
        no_mask: l.no_mask,
        guard: l.guard,
        text,
        opcode: opcode.into(),
        space: Space::Flat,
        access: if store { "write" } else { "read" },
        offset_bytes: 8,
        data_bytes,
        floats: false,
        adjust: Some(Box::new(adjust)),
        stride: None,
        reach: Reach {
            bytes: 64,
            overlap: true,
            ..Reach::default()
        },
        model: Box::new(model),
    }
}

const fn block(size: u32, blocks: u32, width: u32, height: u32, order: [bool; 2]) -> Block {
    Block {
        size,
        blocks,
        width,
        height,
        transpose: order[0],
        vnni: order[1],
    }
}

const NN: [bool; 2] = [false, false];
const NT: [bool; 2] = [false, true];
const TN: [bool; 2] = [true, false];
const TT: [bool; 2] = [true, true];

const LOADS: [Block; 18] = [
    block(1, 1, 64, 8, NN),
    block(1, 2, 32, 16, NN),
    block(1, 2, 16, 32, NT),
    block(1, 1, 12, 4, NT),
    block(1, 1, 9, 5, TN),
    block(1, 1, 8, 6, TT),
    block(2, 2, 16, 8, NN),
    block(2, 2, 16, 16, NT),
    block(2, 1, 16, 32, NT),
    block(2, 1, 5, 3, NN),
    block(2, 1, 16, 8, TT),
    block(4, 1, 8, 16, TN),
    block(4, 1, 16, 8, NN),
    block(4, 2, 8, 8, NN),
    block(4, 1, 3, 5, TN),
    block(8, 1, 8, 8, NN),
    block(8, 1, 4, 8, TN),
    block(8, 1, 3, 2, NN),
];

const STORES: [Block; 6] = [
    block(1, 1, 64, 8, NN),
    block(1, 1, 7, 3, NN),
    block(2, 1, 16, 8, NN),
    block(2, 1, 5, 3, NN),
    block(4, 1, 16, 8, NN),
    block(8, 1, 8, 8, NN),
];

pub fn rectangles(rig: &mut Rig) {
    let all = LOADS.iter().map(|b| (b, false));
    for (n, (b, store)) in all.chain(STORES.iter().map(|b| (b, true))).enumerate() {
        let guard = [Guard::Predicate, Guard::Flow, Guard::None][n % 3];
        let l = Lanes {
            no_mask: guard != Guard::Flow,
            ..Lanes::new(16, 4 * (n as u32 % 2), 1, guard)
        };
        // Large blocks do not fit into 32 registers of 32 bytes.
        let small = b.blocks * b.width * b.height * b.size <= 512;
        let platform = if small && n % 2 == 0 {
            Platform::Dg2
        } else {
            Platform::Pvc
        };
        let policies = n % 3 == 0;
        rig.run(&shape(platform, l, *b, store), Effort { policies, ..ALL });
    }
}

#[test]
fn blocks_2d() {
    let mut rig = Rig::new(13);
    rectangles(&mut rig);
    rig.finish("2D blocks");
}
