//! Elements of one and two bytes at any addresses, around both ends of memory that has a page which cannot be accessed before or behind it.
//! Gathers of the words of 4 bytes around them must not fault there, and must not read what is not theirs.

use visa_runtime::CodeHandle;

use crate::rig::{Guarded, Rig, SPEED, function, install, install_base};

const PAGE: usize = 4096;

/// Where numbers, and data of stores, are in the payload.
const NUMBERS: usize = 64;
const DATA: usize = 256;

/// Memory in a page: first byte and length. One end is an end of the page, and the other is anywhere.
fn places() -> impl Iterator<Item = (usize, usize)> {
    (1..10).flat_map(|len| [(0, len), (PAGE - len, len)])
}

/// The offset of number zero, enabled lanes, and their numbers.
type Lanes<'a> = (i64, u32, &'a [u32]);

/// A load or store.
#[derive(Clone, Copy, Debug)]
struct Case {
    flat: bool,
    load: bool,
    /// Bytes of an element.
    bytes: usize,
    lanes: usize,
    signed: bool,
    shift: u32,
}

impl Case {
    /// Code for this processor, and for one that has no masked stores.
    fn codes(self) -> [CodeHandle; 2] {
        let Case { lanes, shift, .. } = self;
        let ty = format!("<{lanes} x i{}>", 8 * self.bytes);
        let space = ["surface", "flat"][usize::from(self.flat)];
        let op = format!("{space}.i{}x1[0] %0, %7", 8 * self.bytes);
        let surface = ["", ", %8"][usize::from(!self.flat)];
        let access = match self.load {
            true => format!("  %9: {ty} = load.{op}{surface}\n  framestore[0] %9\n"),
            false => {
                format!("  %9: {ty} = input.payload[{DATA}]\n  store.{op}{surface}, %9\n")
            }
        };
        let wide = format!("<{lanes} x i64>");
        let conv = ["zext", "sext"][usize::from(self.signed)];
        let addresses = match self.flat {
            true => format!(
                "  %1: i64 = input.payload[8]\n  %2: <{lanes} x i32> = input.payload[{NUMBERS}]\n  %3: {wide} = {conv} %2\n  \
                 %4: {wide} = vconst [{shift} ...]\n  %5: {wide} = shl %3, %4\n  %6: {wide} = splat %1\n  %7: {wide} = add %5, %6\n"
            ),
            false => {
                format!("  %7: <{lanes} x i32> = input.payload[{NUMBERS}]\n  %8: i32 = const 1\n")
            }
        };
        let head = "function \"f\" simd 32 frame 64\nsite 0 = read surface 4 \"gather_scaled\" line 1\n\nbb0:\n";
        let f = function(&format!(
            "{head}  %10: i32 = input.payload[0]\n  %0: <{lanes} x i1> = bitstomask %10\n{addresses}{access}  return\n"
        ));
        [install(&f, &SPEED), install_base(&f)]
    }

    /// The offset in memory that a number is about.
    fn offset(self, from: i64, number: u32) -> i64 {
        match (self.flat, self.signed) {
            (true, true) => from + (i64::from(number.cast_signed()) << self.shift),
            _ => from + (i64::from(number) << self.shift),
        }
    }

    /// Offsets of number zero: near the memory, and so that its ends are reached by the least and the largest numbers.
    fn starts(self, len: usize) -> Vec<i64> {
        if !self.flat {
            return vec![0];
        }
        let ends = match self.signed {
            true => [i64::from(i32::MIN), i64::from(i32::MAX)],
            false => [0, i64::from(u32::MAX)],
        };
        let near = -4..len as i64 + 4;
        let far = ends.into_iter().flat_map(|end| {
            (-3..4)
                .chain(len as i64 - 4..len as i64 + 4)
                .map(move |by| (end, by))
        });
        near.chain(far.map(|(end, by)| by - (end << self.shift)))
            .collect()
    }

    /// Numbers for what is around the memory, each once; those that do not fit wrap.
    fn numbers(self, from: i64, len: usize) -> Vec<u32> {
        let offsets = -9..len as i64 + 9;
        let shift = if self.flat { self.shift } else { 0 };
        let mut numbers: Vec<u32> = offsets.map(|at| ((at - from) >> shift) as u32).collect();
        numbers.dedup();
        numbers.resize(numbers.len().next_multiple_of(self.lanes), 0x4000_0000);
        numbers
    }

    /// All places and numbers.
    fn check(self) {
        let codes = self.codes();
        let page = Guarded::new(PAGE);
        let contents: Vec<u8> = (0..PAGE).map(|i| (7 * i + 3) as u8 | 1).collect();
        for (first, len) in places() {
            for from in self.starts(len) {
                for numbers in self.numbers(from, len).chunks(self.lanes) {
                    for mask in [u32::MAX, 0x5A3C_96E5] {
                        let of = (from, mask, numbers);
                        let model = self.model(&contents, (first, len), of);
                        for code in &codes {
                            page.write(&contents);
                            let got = self.run(code, &page, (first, len), of);
                            assert!(got == model, "{self:?} {first} {len} {of:x?}");
                        }
                    }
                }
            }
        }
    }

    /// What lanes read, and the page afterwards.
    fn run(
        self,
        code: &CodeHandle,
        page: &Guarded,
        (first, len): (usize, usize),
        (from, mask, numbers): Lanes<'_>,
    ) -> (Vec<u8>, Vec<u8>) {
        let mut rig = Rig::new(1, 64);
        // SAFETY: inside of the page.
        let base = unsafe { page.base().add(first) };
        rig.flat_at = (base, len as u64);
        (rig.surfaces[1].base, rig.surfaces[1].size) = (base, len as u64);
        let address = (base as u64).wrapping_add_signed(from);
        self.give(&mut rig, mask, address, numbers);
        assert_eq!(rig.run(code.entry()), 0);
        let read = rig.frames[0].read();
        (read[..self.read_bytes()].to_vec(), page.read())
    }

    const fn read_bytes(self) -> usize {
        if self.load {
            self.bytes * self.lanes
        } else {
            0
        }
    }

    fn give(self, rig: &mut Rig, mask: u32, address: u64, numbers: &[u32]) {
        let mut payload = vec![0; 512];
        payload[..4].copy_from_slice(&mask.to_le_bytes());
        payload[8..16].copy_from_slice(&address.to_le_bytes());
        for (lane, number) in numbers.iter().enumerate() {
            payload[NUMBERS + 4 * lane..][..4].copy_from_slice(&number.to_le_bytes());
        }
        let data = (0..64).map(|i| 0x80 + i as u8);
        payload.splice(DATA..DATA + 64, data);
        rig.payload.write(&payload);
    }

    /// What they have to be.
    fn model(
        self,
        contents: &[u8],
        (first, len): (usize, usize),
        (from, mask, numbers): Lanes<'_>,
    ) -> (Vec<u8>, Vec<u8>) {
        let (mut page, bytes) = (contents.to_vec(), self.bytes);
        let mut read = vec![0; self.read_bytes()];
        for (lane, &number) in numbers.iter().enumerate() {
            let at = self.offset(from, number);
            if mask >> lane & 1 == 0 || at < 0 || at + bytes as i64 > len as i64 {
                continue;
            }
            let at = first + at as usize;
            for byte in 0..bytes {
                match self.load {
                    true => read[bytes * lane + byte] = page[at + byte],
                    false => page[at + byte] = 0x80 + (bytes * lane + byte) as u8,
                }
            }
        }
        (read, page)
    }
}

/// All elements and numbers, loads or stores.
fn scaled(load: bool) {
    for bytes in [1, 2] {
        for signed in [false, true] {
            for (shift, lanes) in [(0, 32), (1, 16), (2, 8), (3, 16)] {
                let case = Case {
                    flat: true,
                    load,
                    bytes,
                    lanes,
                    signed,
                    shift,
                };
                case.check();
            }
        }
    }
}

#[test]
fn narrow_loads_by_scaled_numbers() {
    scaled(true);
}

#[test]
fn narrow_stores_by_scaled_numbers() {
    scaled(false);
}

#[test]
fn narrow_elements_of_surfaces() {
    for bytes in [1, 2] {
        for (load, lanes) in [(true, 8), (true, 16), (true, 32), (false, 16)] {
            let case = Case {
                flat: false,
                load,
                bytes,
                lanes,
                signed: false,
                shift: 0,
            };
            case.check();
        }
    }
}
