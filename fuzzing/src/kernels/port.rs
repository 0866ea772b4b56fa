//! Random messages of the data caches by their descriptors: bits 28:25 the registers of the first source, 24:20 those that come
//! back, 19 a header, 18:14 the type, 7:0 the surface.

use visa_jit::isa::{Opcode, Platform, Type};

use super::generate::Generator;
use super::message::{ROOM, elements, flat};
use super::send::{Payload, Sent, text};
use super::{FLOATS, MEMORY, MEMORY_BYTES};
use crate::sweep::inst::Shape;

const CACHE_0: u32 = 10;
pub(super) const CACHE_1: u32 = 12;

/// Shared local memory, and memory without a surface, which is scratch of the thread where offsets have 32 bits.
const LOCAL: u32 = 254;
const STATELESS: u32 = 255;
/// The same, of which other devices' caches need not know.
const NONCOHERENT: u32 = 253;
/// A place in the heap of surfaces, in the register of the extended descriptor.
pub(super) const IN_HEAP: u32 = 252;

/// Operations on integers by their codes, with the number of operands; those on floats are 1 to 5.
pub(super) const INTEGERS: [(u32, usize); 14] = [
    (0x1, 1),
    (0x2, 1),
    (0x3, 1),
    (0x4, 1),
    (0x5, 0),
    (0x6, 0),
    (0x7, 1),
    (0x8, 1),
    (0xA, 1),
    (0xB, 1),
    (0xC, 1),
    (0xD, 1),
    (0xE, 2),
    (0xF, 0),
];

/// What an atomic works on.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    Integers,
    Floats,
    Halves,
}

/// What a message is about.
struct Draw<'g, 'r> {
    g: &'g mut Generator<'r>,
    split: bool,
    lines: &'g mut Vec<String>,
}

/// Registers of a given number of bytes.
fn registers(g: &Generator<'_>, bytes: u32) -> u32 {
    bytes.div_ceil(g.kernel.platform.grf_bytes())
}

/// A message of a data cache.
pub(super) fn port(g: &mut Generator<'_>, split: bool, lines: &mut Vec<String>) -> Option<String> {
    let mut d = Draw { g, split, lines };
    let new = d.g.kernel.platform.has_lsc();
    // Registers of 64 bytes are not spilled so.
    let spills = !d.g.kernel.platform.has_wide_registers();
    match d.g.rng.below(if new { 13 } else { 12 }) {
        0 => d.untyped(),
        1 => d.atomic(Numbers::Integers),
        2 => {
            let numbers =
                *d.g.rng
                    .pick(&[Numbers::Floats, Numbers::Floats, Numbers::Halves]);
            d.atomic(numbers)
        }
        3 => d.bytes(),
        4 => d.dwords(),
        5 => d.owords(),
        6 => d.untyped_64(),
        7 => d.scattered_64(),
        8 => d.atomic_64(),
        9 => d.block_64(),
        10 => d.fence(),
        11 if spills => d.scratch(),
        _ => d.qwords(),
    }
}

impl Draw<'_, '_> {
    fn store(&mut self) -> bool {
        self.split && self.g.rng.chance(50)
    }

    fn surface(&mut self) -> u32 {
        let memory = MEMORY as u32;
        let all = [memory, memory, LOCAL, STATELESS, NONCOHERENT, IN_HEAP];
        let all = if self.split { &all[..] } else { &all[..5] };
        let surface = *self.g.rng.pick(all);
        if surface == IN_HEAP {
            let entry = (memory + 1) << self.g.kernel.platform.bindless_shift();
            let line = format!("mov (M1_NM, 1) HEAP(0,0)<1> {entry:#x}:ud");
            self.lines.push(line);
        }
        surface
    }

    /// A message with these numbers of bytes in its first source and in its data.
    fn sent(
        &mut self,
        (port, desc): (u32, u32),
        [first, data]: [u32; 2],
        exec: &str,
        address: &str,
        payload: Payload,
    ) -> String {
        let result = match &payload {
            Payload::Load(data) | Payload::Atomic(None, data) => Some(data.clone()),
            _ => None,
        };
        let lanes = [
            (CACHE_0, 3),
            (CACHE_0, 4),
            (CACHE_1, 1),
            (CACHE_1, 2),
            (CACHE_1, 3),
        ];
        let kind = (port, desc >> 14 & 0x1f);
        if let Some(result) = result
            && self.split
            && lanes.contains(&kind)
            && self.g.rng.chance(20)
        {
            return self.headed((port, desc), first, exec, (address, result));
        }
        let sent = Sent {
            port,
            desc,
            ex: port,
            // Blocks of scratch memory have a place there.
            heap: desc & 0xff == IN_HEAP && (port, desc >> 18 & 1) != (CACHE_0, 1),
            registers: [registers(self.g, first), registers(self.g, data)],
        };
        text(self.g, self.split, sent, exec, address, payload)
    }

    /// A message with a header in front of offsets: for all lanes, and of dwords with an offset for all of them.
    fn headed(
        &mut self,
        (port, desc): (u32, u32),
        bytes: u32,
        exec: &str,
        (address, result): (&str, String),
    ) -> String {
        let together = match desc >> 14 & 0x1f {
            3 if port == CACHE_0 => self.g.rng.below(16),
            _ => 0,
        };
        self.lines.push("mov (M1_NM, 8) HEAD(0,0)<1> 0x0:ud".into());
        for (n, v) in [(2, together), (7, 0xffff)] {
            self.lines
                .push(format!("mov (M1_NM, 1) HEAD(0,{n})<1> {v:#x}:ud"));
        }
        let sent = Sent {
            port,
            desc: desc | 1 << 19,
            ex: port,
            heap: desc & 0xff == IN_HEAP,
            registers: [1, registers(self.g, bytes)],
        };
        let offsets = address.trim_end_matches(".0").to_owned();
        let payload = Payload::Atomic(Some(offsets), result);
        text(self.g, self.split, sent, exec, "HEAD.0", payload)
    }

    fn payload(&mut self, store: bool) -> Option<Payload> {
        let data = self.g.variable(Type::Ud)?;
        Some(match store {
            true => Payload::Store(data),
            false => Payload::Load(data),
        })
    }

    /// A message of lanes with offsets.
    fn lanes(
        &mut self,
        (port, desc): (u32, u32),
        shape: Shape,
        data: u32,
        store: bool,
    ) -> Option<String> {
        let payload = self.payload(store)?;
        let exec = shape.text();
        Some(self.sent(
            (port, desc),
            [4 * shape.lanes, data],
            &exec,
            "OFF.0",
            payload,
        ))
    }

    /// Channels 11:8 that are left out; lanes in 13:12.
    fn channels(&mut self, lanes: u32) -> (u32, u32) {
        let most = ROOM / registers(self.g, 4 * lanes) / self.g.kernel.platform.grf_bytes();
        let sets = [0x1u32, 0x4, 0x3, 0xa, 0x7, 0xf];
        let fit = sets.into_iter().filter(|s| s.count_ones() <= most);
        let fit: Vec<u32> = fit.collect();
        let set = *self.g.rng.pick(&fit);
        let lanes = if lanes == 8 { 2 } else { 1 };
        (lanes << 12 | (0xf ^ set) << 8, set.count_ones())
    }

    fn untyped(&mut self) -> Option<String> {
        let shape = self.g.lanes(&[8, 16]);
        let store = self.store();
        self.g.offsets(store, shape, 16, self.lines);
        let (fields, n) = self.channels(shape.lanes);
        let kind = if store { 9 } else { 1 };
        let desc = kind << 14 | fields | self.surface();
        let data = n * (4 * shape.lanes).next_multiple_of(self.g.kernel.platform.grf_bytes());
        self.lanes((CACHE_1, desc), shape, data, store)
    }

    /// Operation, its operands in one payload, and the old value.
    fn operation(&mut self, numbers: Numbers, ty: Type) -> Option<(u32, usize, Payload)> {
        let all = match numbers {
            Numbers::Integers => INTEGERS.to_vec(),
            // In registers of integers the bits of a NaN can be seen, and only a comparison makes none.
            _ if ty != Type::F => vec![(3, 2)],
            _ => vec![(1, 1), (2, 1), (3, 2), (4, 1), (5, 1)],
        };
        let all: Vec<_> = all
            .into_iter()
            .filter(|(_, n)| self.split || *n == 0)
            .collect();
        if all.is_empty() {
            return None;
        }
        let (operation, n) = *self.g.rng.pick(&all);
        let first = if n > 0 {
            Some(self.g.variable(ty)?)
        } else {
            None
        };
        let old = self.g.variable(ty)?;
        Some((operation, n, Payload::Atomic(first, old)))
    }

    /// Bit 13 asks for the old value, 12 is of eight lanes, 11:8 the operation.
    fn atomic(&mut self, numbers: Numbers) -> Option<String> {
        let numbers = if self.split {
            numbers
        } else {
            Numbers::Integers
        };
        let shape = self.g.lanes(&[8, 16]);
        let ty = match numbers {
            Numbers::Floats => Type::F,
            _ => Type::Ud,
        };
        let (operation, n, payload) = self.operation(numbers, ty)?;
        let returns = u32::from(self.g.rng.chance(70));
        self.g.offsets(true, shape, 4, self.lines);
        let eight = u32::from(shape.lanes == 8);
        let (kind, surface) = match numbers {
            Numbers::Floats => (0x1b, FLOATS as u32),
            Numbers::Halves => (0x1c, self.surface()),
            Numbers::Integers => (*self.g.rng.pick(&[2, 2, 3]), self.surface()),
        };
        let desc = kind << 14 | returns << 13 | eight << 12 | operation << 8 | surface;
        let one = (4 * shape.lanes).next_multiple_of(self.g.kernel.platform.grf_bytes());
        let (exec, first) = (shape.text(), 4 * shape.lanes);
        Some(self.sent(
            (CACHE_1, desc),
            [first, one * n as u32],
            &exec,
            "OFF.0",
            payload,
        ))
    }

    /// Bits 11:10 the bytes of a lane, 8 sixteen lanes.
    fn bytes(&mut self) -> Option<String> {
        let shape = self.g.lanes(&[8, 16]);
        let store = self.store();
        let size = self.g.rng.below(3) as u32;
        self.g.offsets(store, shape, 1 << size, self.lines);
        let kind = if store { 0xc } else { 4 };
        let sixteen = u32::from(shape.lanes == 16);
        let desc = kind << 14 | size << 10 | sixteen << 8 | self.surface();
        self.lanes((CACHE_0, desc), shape, 4 * shape.lanes, store)
    }

    /// Offsets in dwords; bits 9:8 say two of eight lanes, three of sixteen.
    fn dwords(&mut self) -> Option<String> {
        let shape = self.g.lanes(&[8, 16]);
        let store = self.store();
        self.g.offsets(store, shape, 4, self.lines);
        self.lines.push(format!(
            "shr (M1_NM, {}) OFF(0,0)<1> OFF(0,0)<1;1,0> 0x2:ud",
            shape.lanes
        ));
        let kind = if store { 0xb } else { 3 };
        let lanes = if shape.lanes == 16 { 3 } else { 2 };
        let surface = *self.g.rng.pick(&[MEMORY as u32, STATELESS, NONCOHERENT]);
        let desc = kind << 14 | lanes << 8 | surface;
        self.lanes((CACHE_0, desc), shape, 4 * shape.lanes, store)
    }

    /// Bits 11:10 the qwords of a lane.
    fn qwords(&mut self) -> Option<String> {
        let shape = self.g.lanes(&[8, 16]);
        let store = self.store();
        let n = u32::from(shape.lanes == 8 && self.g.rng.chance(50));
        self.g.offsets(store, shape, 8 << n, self.lines);
        let kind = if store { 0xd } else { 5 };
        let sixteen = u32::from(shape.lanes == 16);
        let desc = kind << 14 | n << 10 | 1 << 9 | sixteen << 8 | self.surface();
        self.lanes((CACHE_0, desc), shape, (8 * shape.lanes) << n, store)
    }

    /// A block: bits 10:8 its size, its place in the header.
    fn block(&mut self, port: u32, kind: u32, surface: u32, header: &str) -> Option<String> {
        let store = kind & 8 != 0 || kind == 0x15;
        let (code, owords) = *self.g.rng.pick(&[(0, 1), (2, 2), (3, 4), (4, 8)]);
        let payload = self.payload(store)?;
        let desc = 1 << 19 | kind << 14 | code << 8 | surface;
        let grf = self.g.kernel.platform.grf_bytes();
        Some(self.sent(
            (port, desc),
            [grf, 16 * owords],
            "(M1_NM, 8)",
            header,
            payload,
        ))
    }

    /// A block of scratch memory: bits 13:12 its size in registers, 11:0 the first, 17 that it is written.
    fn scratch(&mut self) -> Option<String> {
        let store = self.store();
        let size = self.g.rng.below(3) as u32;
        let header = *self.g.rng.pick(&["OFF.0", "%r0.0"]);
        if header == "OFF.0" {
            let line = format!(
                "mov (M1_NM, 8) OFF(0,0)<1> {:#x}:ud",
                self.g.rng.below(0x400)
            );
            self.lines.push(line);
        }
        // The last ones are outside.
        let at = self.g.rng.below(0x104) as u32;
        let mode = self.g.rng.below(2) as u32;
        let desc = 1 << 19 | 1 << 18 | u32::from(store) << 17 | mode << 16 | size << 12 | at;
        let payload = self.payload(store)?;
        Some(self.sent(
            (CACHE_0, desc),
            [32, 32 << size],
            "(M1_NM, 8)",
            header,
            payload,
        ))
    }

    fn owords(&mut self) -> Option<String> {
        let kind = match self.store() {
            true => 8,
            false => self.g.rng.below(2) as u32,
        };
        // Local memory has no blocks on the oldest device.
        let surfaces: &[u32] = match self.g.kernel.platform {
            Platform::Skl => &[MEMORY as u32, STATELESS, NONCOHERENT],
            _ => &[MEMORY as u32, STATELESS, NONCOHERENT, LOCAL],
        };
        let surface = *self.g.rng.pick(surfaces);
        let unit = if kind == 1 { 1 } else { 16 };
        let at = self.g.rng.below(MEMORY_BYTES as usize + 64) as u32 / unit;
        let at = if kind == 1 { at & !3 } else { at };
        let dword = |n: u32, v: u32| format!("mov (M1_NM, 1) OFF(0,{n})<1> {v:#x}:ud");
        self.lines.push(dword(2, at));
        if matches!(surface, STATELESS | NONCOHERENT) {
            self.lines.push(dword(5, self.g.rng.below(0x400) as u32));
        }
        self.block(CACHE_0, kind, surface, "OFF.0")
    }

    /// A fence between a store and a load: bit 13 asks to be told when it is done.
    fn fence(&mut self) -> Option<String> {
        let store = elements(self.g, Opcode::ScatterScaled.info(), self.lines)?;
        self.lines.push(store);
        let surface = *self.g.rng.pick(&[0, LOCAL]);
        let desc = 1 << 19 | 7 << 14 | 1 << 13 | surface;
        let grf = self.g.kernel.platform.grf_bytes();
        // What comes back is not defined.
        let nowhere = Payload::Store("%null".into());
        let fence = self.sent((CACHE_0, desc), [grf, 0], "(M1_NM, 8)", "OFF.0", nowhere);
        self.lines.push(fence);
        elements(self.g, Opcode::GatherScaled.info(), self.lines)
    }

    fn block_64(&mut self) -> Option<String> {
        let kind = if self.store() { 0x15 } else { 0x14 };
        let at = 4 * self.g.rng.below(400);
        self.lines.push(format!(
            "add (M1_NM, 1) ADDR(0,0)<1> BASE(0,0)<0;1,0> {at:#x}:ud"
        ));
        // Bit 11 says that the address of a load is of any alignment.
        let any = u32::from(kind == 0x14 && self.g.rng.chance(50));
        self.block(CACHE_1, kind, any << 11 | STATELESS, "ADDR.0")
    }

    /// Addresses in `ADDR`, with and without coherent caches.
    fn addresses(&mut self, store: bool, shape: Shape, bytes: u32) -> u32 {
        let name = if store { "store" } else { "load" };
        flat(self.g, name, shape, bytes, self.lines);
        *self.g.rng.pick(&[STATELESS, NONCOHERENT])
    }

    fn untyped_64(&mut self) -> Option<String> {
        let shape = self.g.lanes(&[8, 16]);
        let store = self.store();
        let surface = self.addresses(store, shape, 16);
        let (fields, n) = self.channels(shape.lanes);
        let kind = if store { 0x19 } else { 0x11 };
        let desc = kind << 14 | fields | surface;
        let data = n * (4 * shape.lanes).next_multiple_of(self.g.kernel.platform.grf_bytes());
        let payload = self.payload(store)?;
        let (exec, first) = (shape.text(), 8 * shape.lanes);
        Some(self.sent((CACHE_1, desc), [first, data], &exec, "ADDR.0", payload))
    }

    /// Bits 9:8 bytes, dwords or qwords, 11:10 how many, 12 sixteen lanes.
    fn scattered_64(&mut self) -> Option<String> {
        let shape = self.g.lanes(&[8, 16]);
        let store = self.store();
        let all: [(u32, u32); 6] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)];
        let (kind, count) = *self.g.rng.pick(&all);
        let bytes = [1, 4, 8][kind as usize] << count;
        let surface = self.addresses(store, shape, bytes);
        let sixteen = u32::from(shape.lanes == 16);
        let of = if store { 0x1a } else { 0x10 };
        let desc = of << 14 | sixteen << 12 | count << 10 | kind << 8 | surface;
        let grf = self.g.kernel.platform.grf_bytes();
        let data = match kind {
            0 => 4 * shape.lanes,
            1 => (4 * shape.lanes).next_multiple_of(grf) << count,
            _ => 8 * shape.lanes,
        };
        let payload = self.payload(store)?;
        let (exec, first) = (shape.text(), 8 * shape.lanes);
        Some(self.sent((CACHE_1, desc), [first, data], &exec, "ADDR.0", payload))
    }

    fn atomic_64(&mut self) -> Option<String> {
        let shape = self.g.lanes(&[8]);
        let all = [Numbers::Integers, Numbers::Floats, Numbers::Halves];
        let numbers = match self.split && self.g.rng.chance(40) {
            true => *self.g.rng.pick(&all),
            false => Numbers::Integers,
        };
        let (operation, n, payload) = self.operation(numbers, Type::Ud)?;
        let returns = u32::from(self.g.rng.chance(70));
        let wide = numbers == Numbers::Integers && self.g.rng.chance(30);
        let kind = match numbers {
            Numbers::Floats => 0x1d,
            Numbers::Halves => 0x1e,
            Numbers::Integers if wide => 0x12,
            Numbers::Integers => *self.g.rng.pick(&[0x12, 0x13]),
        };
        let bytes = if wide { 8 } else { 4 };
        let surface = self.addresses(true, shape, bytes);
        let desc = kind << 14 | returns << 13 | u32::from(wide) << 12 | operation << 8 | surface;
        // Eight lanes, or sixteen where registers are twice as long.
        let lanes = self.g.kernel.platform.grf_bytes() / 4;
        let one = bytes * lanes;
        let (exec, first) = (shape.text(), 8 * lanes);
        Some(self.sent(
            (CACHE_1, desc),
            [first, one * n as u32],
            &exec,
            "ADDR.0",
            payload,
        ))
    }
}
