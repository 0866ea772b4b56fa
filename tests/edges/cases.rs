//! Offsets worth testing.

use super::kernel::{Scalar, Shape};
use super::machine::{Case, Space};
use visa_test_common::Rng;

/// Masks that every shape sees; the rest is random.
const MASKS: [u32; 6] = [u32::MAX, 0, 1, 0x8000_8080, 0x5555_5555, 0xfffe_fefe];

/// Where a lane's access begins, relative to the start of memory, as 64-bit two's complement.
fn place(rng: &mut Rng, shape: &Shape, size: u64, kind: u32) -> u64 {
    let w = shape.reach.bytes;
    let last = size.saturating_sub(w);
    let flat = shape.space == Space::Flat;
    let far: &[u64] = if flat {
        &[
            1 << 32,
            1 << 31,
            1 << 46,
            1 << 47,
            0xffff_0000_0000,
            1 << 12,
            1 << 20,
        ]
    } else {
        &[
            0x1000_0000,
            0x4000_0000,
            0x8000_0000,
            0xc000_0000,
            0x7fff_ffff,
            1 << 12,
            1 << 20,
        ]
    };
    match kind {
        // Inside.
        0 => u64::from(rng.word_below((last + 1) as u32)),
        // The last one.
        1 => last,
        // Straddling the end.
        2 => last + 1 + u64::from(rng.word_below(w.min(size).max(1) as u32)),
        // Just past it.
        3 => size + u64::from(rng.word_below(4)),
        // Far, also where some widths wrap round to the start.
        4 => {
            far[rng.word_below(far.len() as u32) as usize]
                + u64::from(rng.word_below((last + 1) as u32))
        }
        // Straddling the start.
        5 => u64::from(rng.word_below(w as u32 + 1)).wrapping_neg(),
        // Before it.
        6 => u64::from(rng.word_below(4096) + 1).wrapping_neg(),
        // Anything.
        _ => rng.bits(),
    }
}

/// One case. `base` is the address of the first byte.
pub fn case(rng: &mut Rng, shape: &Shape, size: u64, base: u64, n: usize) -> Case {
    let r = &shape.reach;
    let lanes = shape.lanes as usize;
    let width = 64 - 8 * u64::from(shape.offset_bytes);
    let wrap = |v: u64| v << width >> width;
    // The same for all lanes, one odd lane, all different.
    let style = n % 4;
    let common = (n / 4 % 8) as u32;
    let odd = rng.word_below(lanes as u32) as usize;
    let mut places: Vec<u64> = (0..lanes)
        .map(|i| {
            let kind = match style {
                0 => common,
                1 if i == odd => common,
                1 => 0,
                _ => rng.word_below(8),
            };
            place(rng, shape, size, kind)
        })
        .collect();
    if style == 3 {
        // Consecutive accesses around the end.
        let start = (size.wrapping_sub(r.bytes * u64::from(rng.word_below(lanes as u32 + 2))))
            / r.unit
            * r.unit;
        for (i, p) in places.iter_mut().enumerate() {
            *p = start.wrapping_add(r.bytes * i as u64);
        }
    }
    if let Some(stride) = shape.stride {
        // The first lane somewhere, or any lane at the edge.
        let lane = i64::from(rng.word_below(lanes as u32));
        let kind = [1, 2, 3, 5][rng.word_below(4) as usize];
        let edge = place(rng, shape, size, kind);
        let start = match style {
            0 | 2 => places[0],
            _ => edge.wrapping_sub((stride * lane) as u64),
        };
        for (i, p) in places.iter_mut().enumerate() {
            *p = start.wrapping_add((stride * i as i64) as u64);
        }
    } else if !r.overlap {
        spread(&mut places, shape);
    }
    let scalar_bits = if shape.space == Space::Flat { 64 } else { 32 };
    let scalar = match r.scalar {
        Scalar::None => 0,
        _ if rng.word_below(3) == 0 => 0,
        _ => rng.bits() >> ((64 - scalar_bits) / r.unit * r.unit),
    };
    let step = r.unit * r.align;
    let unit = |p: u64| -> u64 {
        // Round to what the message can address, then to units.
        let p = if step > 1 {
            p.wrapping_sub(p % step)
        } else {
            p
        };
        if r.unit == 1 {
            p
        } else {
            ((p as i64) / r.unit as i64) as u64
        }
    };
    let tag = |rng: &mut Rng, v: u64| {
        if shape.space == Space::Flat && rng.word_below(8) == 0 {
            v & 0x0000_ffff_ffff_ffff | u64::from(rng.word() >> 16) << 48
        } else {
            v
        }
    };
    let mut out = Case {
        mask: if n < 2 * MASKS.len() {
            MASKS[n / 2]
        } else {
            rng.word()
        },
        ..Case::default()
    };
    match r.scalar {
        Scalar::Alone => {
            out.scalar = unit(places[0]);
            if shape.space == Space::Flat {
                out.scalar = tag(rng, base.wrapping_add(places[0]));
            }
            out.offsets = vec![0; lanes];
        }
        _ => {
            // Offsets of a 64-bit base are unsigned 32-bit numbers.
            let narrow = shape.space == Space::Flat && shape.offset_bytes == 4;
            out.scalar = if narrow {
                {
                    let below = 4 * u64::from(rng.word_below(4));
                    tag(rng, base.wrapping_sub(below))
                }
            } else {
                scalar
            };
            let from = if narrow {
                out.scalar
            } else {
                out.scalar.wrapping_add_signed(r.immediate)
            };
            for p in &places {
                let target = if shape.space == Space::Flat {
                    base.wrapping_add(*p)
                } else {
                    unit(*p)
                };
                let o = wrap(target.wrapping_sub(from));
                let plain = narrow || shape.stride.is_some() || shape.space != Space::Flat;
                out.offsets.push(if plain { o } else { tag(rng, o) });
            }
        }
    }
    out.data = rng.bytes(shape.data_bytes as usize);
    out.sources = [rng.bytes(256), rng.bytes(256)];
    out
}

/// Moves lanes away that would touch a byte of an earlier one: who wins is not defined.
fn spread(places: &mut [u64], shape: &Shape) {
    let r = &shape.reach;
    let bits = match shape.space {
        Space::Slm => 28,
        // Offsets from a 64-bit base.
        Space::Flat if shape.offset_bytes == 4 => 32,
        _ => 64,
    };
    let step = r.unit * r.align;
    for i in 0..places.len() {
        let clash = |a: u64, b: u64| {
            let d = (a.wrapping_sub(b) << (64 - bits)) as i64 >> (64 - bits);
            d.unsigned_abs() < r.bytes + step
        };
        if (0..i).any(|k| clash(places[i], places[k])) {
            places[i] = 0x0900_0000 + 256 * i as u64;
        }
    }
}
