//! Lane-wise accesses, each variant against a lane-by-lane model, in memory flush against
//! unreadable pages.

use super::{PORTABLE, helpers};
use crate::abi::{GroupCtx, LaunchCtx, Message, SURFACES, Surface, ThreadCtx, message};
use crate::memory::DeviceMemory;
use std::ptr::{null, null_mut};
use visa_test_common::{Rng, full};

const PLACES: [u32; 6] = [
    message::SURFACE,
    message::SLM,
    message::SCRATCH,
    message::REGS,
    message::FLAT,
    message::ARGS,
];

/// Bytes of a block: addresses and the largest data.
const BLOCK: usize = 256 + 64 * 256;

#[repr(align(16))]
struct Block([u8; BLOCK]);

/// One call and what it should do.
struct Case {
    place: u32,
    bytes: usize,
    comps: usize,
    lanes: usize,
    all_or_none: bool,
    enabled: u32,
    /// 64-bit, tagged in device memory.
    addresses: Vec<u64>,
    /// Component after component.
    data: Vec<u64>,
}

impl Case {
    fn shape(&self) -> u32 {
        let flag = if self.all_or_none {
            message::ALL_OR_NONE
        } else {
            0
        };
        let [bytes, comps, lanes] = [self.bytes, self.comps, self.lanes].map(|v| v as u32);
        message::shape(self.place, bytes, comps, lanes) | flag
    }

    fn flat(&self) -> bool {
        self.place == message::FLAT
    }

    /// Byte of the block that component `c` of a lane is at.
    fn at(&self, c: usize, lane: usize) -> usize {
        let address = if self.flat() { 8 } else { 4 };
        let rows = (self.lanes * self.bytes).next_multiple_of(16) * c;
        (self.lanes * address).next_multiple_of(16) + rows + lane * self.bytes
    }

    fn block(&self) -> Block {
        let mut block = Block([0xA5; BLOCK]);
        for (lane, address) in self.addresses.iter().enumerate() {
            let width = if self.flat() { 8 } else { 4 };
            block.0[lane * width..][..width].copy_from_slice(&address.to_le_bytes()[..width]);
        }
        for c in 0..self.comps {
            for lane in 0..self.lanes {
                let value = self.data[c * self.lanes + lane].to_le_bytes();
                block.0[self.at(c, lane)..][..self.bytes].copy_from_slice(&value[..self.bytes]);
            }
        }
        block
    }

    /// Where an element is, when it is inside.
    fn element(&self, c: usize, lane: usize, base: u64, size: usize) -> Option<usize> {
        let address = self.addresses[lane];
        let step = (c * self.bytes) as u64;
        let offset = if self.flat() {
            address.wrapping_sub(base).wrapping_add(step) & ((1 << 48) - 1)
        } else {
            u64::from(address as u32) + step
        };
        let inside = offset.saturating_add(self.bytes as u64) <= size as u64;
        inside.then_some(offset as usize)
    }

    fn faulting(&self, base: u64, size: usize) -> u32 {
        (0..self.lanes).fold(0, |bits, lane| {
            let outside = (0..self.comps).any(|c| self.element(c, lane, base, size).is_none());
            bits | (u32::from(outside) << lane & self.enabled)
        })
    }

    fn check(
        &self,
        [load, store]: [Message; 2],
        preserve_all: bool,
        memory: &GuardedMemory,
        contents: &[u8],
    ) {
        let (base, size) = (memory.base(), contents.len());
        memory.write(contents);
        let faulting = self.faulting(base, size);
        let mut block = self.block();
        let result = self.call(load, preserve_all, memory, &mut block);
        assert_eq!(result, faulting);
        for c in 0..self.comps {
            for lane in 0..self.lanes {
                let got = &block.0[self.at(c, lane)..][..self.bytes];
                let enabled = self.enabled >> lane & 1 != 0;
                let want = self.element(c, lane, base, size).filter(|_| enabled);
                let want = want.map_or(&[0; 8][..self.bytes], |at| &contents[at..][..self.bytes]);
                assert_eq!(
                    got,
                    want,
                    "lane {lane}, component {c} of {:#x}",
                    self.shape()
                );
            }
        }
        assert_eq!(memory.read(), contents, "a load stored");

        let mut block = self.block();
        let result = self.call(store, preserve_all, memory, &mut block);
        assert_eq!(result, faulting);
        let mut want = contents.to_vec();
        let lanes = (0..self.lanes).filter(|lane| self.enabled >> lane & 1 != 0);
        for lane in lanes.filter(|_| !self.all_or_none || faulting == 0) {
            for c in 0..self.comps {
                if let Some(at) = self.element(c, lane, base, size) {
                    let value = self.data[c * self.lanes + lane].to_le_bytes();
                    want[at..][..self.bytes].copy_from_slice(&value[..self.bytes]);
                }
            }
        }
        assert_eq!(memory.read(), want, "store {:#x}", self.shape());
    }

    fn call(
        &self,
        function: Message,
        preserve_all: bool,
        memory: &GuardedMemory,
        block: &mut Block,
    ) -> u32 {
        let (base, size) = (memory.base() as *mut u8, memory.0.size());
        let mut surfaces = [Surface {
            base: null_mut(),
            size: 0,
        }; SURFACES];
        surfaces[7] = Surface { base, size };
        let launch = LaunchCtx {
            surfaces: surfaces.as_ptr(),
            payload: null(),
            flat_base: memory.base(),
            flat_size: size,
            interrupt: null(),
            helpers: null(),
            images: null(),
            args: base,
            args_size: size,
            shadow: std::ptr::null(),
            marks: 0,
            pointees: std::ptr::null(),
            write_shadow: std::ptr::null(),
            write_pointees: std::ptr::null(),
            invariant_pointees: std::ptr::null(),
            confined_pointees: std::ptr::null(),
        };
        let mut group = GroupCtx {
            launch: &raw const launch,
            slm: base,
            slm_size: size,
            threads: null_mut(),
            sink: null_mut(),
            faults: null_mut(),
            r0: [0; 16],
            thread_count: 1,
            following: 0,
            rows: 0,
            height: 1,
            barriers: null_mut(),
            answer: 0,
            races: null_mut(),
            slm_marks: 0,
            scratch_marks: 0,
        };
        let thread = ThreadCtx {
            local_ids: null(),
            frame: base,
            scratch: base,
            scratch_size: size,
            dispatch_mask: 0,
            state: 0,
            r0_2: 0,
            r0_5: 0,
            sr0: 0,
            hw_id: 0,
        };
        let index = match self.place {
            message::REGS => size as u32,
            _ => 0x107,
        };
        let block = block.0.as_mut_ptr();
        // SAFETY: the contexts describe the memory, the block is aligned and large enough.
        let result = unsafe {
            function(
                &raw mut group,
                &raw const thread,
                self.shape(),
                index,
                self.enabled,
                block,
            )
        };
        if preserve_all && cfg!(all(target_arch = "x86_64", not(windows))) {
            return group.answer;
        }
        result
    }
}

/// Memory next to an unreadable page.
struct GuardedMemory(DeviceMemory);

impl GuardedMemory {
    fn new(size: usize, end: bool) -> GuardedMemory {
        let memory = if end {
            DeviceMemory::exact(size as u64)
        } else {
            DeviceMemory::exact_start(size as u64)
        };
        GuardedMemory(memory.expect("memory"))
    }

    fn base(&self) -> u64 {
        self.0.base()
    }

    fn write(&self, contents: &[u8]) {
        self.0.write_at(self.base(), contents).expect("inside");
    }

    fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.0.size() as usize];
        self.0.read_at(self.base(), &mut bytes).expect("inside");
        bytes
    }
}

/// Addresses that are even, near each other, or near the ends of the memory and of their range.
fn addresses(random: &mut Rng, base: u64, size: usize, bytes: usize, flat: bool) -> Vec<u64> {
    let kind = random.bits() % 6;
    let start = random.bits() % (size as u64 + 16);
    let start = start.wrapping_sub(random.bits() % 12);
    (0..32u64)
        .map(|lane| {
            let step = lane.wrapping_mul(bytes as u64);
            let offset = match kind {
                0 => start.wrapping_add(step),
                1 => start.wrapping_add(2 * step),
                2 => start.wrapping_sub(step),
                3 => start,
                _ => match random.bits() % 8 {
                    0 => random.bits(),
                    1 => (size as u64).wrapping_sub(random.bits() % 20),
                    2 => 0u64.wrapping_sub(random.bits() % 20),
                    3 => start.wrapping_add(step),
                    _ => random.bits() % (size as u64 + 1),
                },
            };
            if !flat {
                return offset;
            }
            let tag = random.bits() % 3 * 0x4001;
            base.wrapping_add(offset) & ((1 << 48) - 1) | tag << 48
        })
        .collect()
}

fn sweep(functions: [Message; 2], preserve_all: bool) {
    let mut random = Rng::new(0xD1B5_4A32_D192_ED03);
    // Not a factor of any number of values below, so that all of each are met.
    let every = if full() { 1 } else { 7 };
    let mut count = 0;
    let places: Vec<GuardedMemory> = [1usize, 3, 64, 200, 4096, 4099]
        .into_iter()
        .flat_map(|size| {
            [
                GuardedMemory::new(size, true),
                GuardedMemory::new(size, false),
            ]
        })
        .collect();
    for place in PLACES {
        for bytes in [1, 2, 4, 8] {
            for comps in [1, 2, 3, 4, 8, 64] {
                for lanes in [1, 2, 3, 5, 8, 13, 16, 24, 32] {
                    for memory in &places {
                        count += 1;
                        if count % every != 0 {
                            continue;
                        }
                        let size = memory.0.size() as usize;
                        let flat = place == message::FLAT;
                        let full = u32::MAX >> (32 - lanes);
                        let enabled = match random.bits() % 4 {
                            0 => full,
                            1 => 0,
                            _ => random.bits() as u32 & full,
                        };
                        let case = Case {
                            place,
                            bytes,
                            comps,
                            lanes,
                            all_or_none: random.bits() & 1 != 0,
                            enabled,
                            addresses: addresses(&mut random, memory.base(), size, bytes, flat)
                                [..lanes]
                                .to_vec(),
                            data: (0..comps * lanes).map(|_| random.bits()).collect(),
                        };
                        let contents: Vec<u8> = (0..size).map(|_| random.bits() as u8).collect();
                        case.check(functions, preserve_all, memory, &contents);
                    }
                }
            }
        }
    }
}

#[test]
fn portable_accesses_agree_with_the_model() {
    sweep([PORTABLE.load, PORTABLE.store], false);
    sweep(
        [PORTABLE.load_preserve_all, PORTABLE.store_preserve_all],
        true,
    );
}

#[test]
fn accesses_of_this_processor_agree_with_the_model() {
    let table = helpers();
    sweep([table.load, table.store], false);
    sweep([table.load_preserve_all, table.store_preserve_all], true);
}

#[test]
fn an_unbound_surface_is_outside() {
    let memory = GuardedMemory::new(64, true);
    let mut case = Case {
        place: message::SURFACE,
        bytes: 4,
        comps: 1,
        lanes: 16,
        all_or_none: false,
        enabled: 0xFFFF,
        addresses: (0..16).map(|lane| 4 * lane).collect(),
        data: vec![7; 16],
    };
    for table in [&PORTABLE, helpers()] {
        case.check([table.load, table.store], false, &memory, &[1; 64]);
    }
    let empty = Surface {
        base: null_mut(),
        size: 0,
    };
    let surfaces = [empty; SURFACES];
    let launch = LaunchCtx {
        surfaces: surfaces.as_ptr(),
        payload: null(),
        flat_base: 0,
        flat_size: 0,
        interrupt: null(),
        helpers: null(),
        images: null(),
        args: null(),
        args_size: 0,
        shadow: std::ptr::null(),
        marks: 0,
        pointees: std::ptr::null(),
        write_shadow: std::ptr::null(),
        write_pointees: std::ptr::null(),
        invariant_pointees: std::ptr::null(),
        confined_pointees: std::ptr::null(),
    };
    let mut group = GroupCtx {
        launch: &raw const launch,
        slm: null_mut(),
        slm_size: 0,
        threads: null_mut(),
        sink: null_mut(),
        faults: null_mut(),
        r0: [0; 16],
        thread_count: 1,
        following: 0,
        rows: 0,
        height: 1,
        barriers: null_mut(),
        answer: 0,
        races: null_mut(),
        slm_marks: 0,
        scratch_marks: 0,
    };
    for place in [message::SURFACE, message::SLM, message::FLAT] {
        case.place = place;
        for table in [&PORTABLE, helpers()] {
            for function in [table.load, table.store] {
                let mut block = case.block();
                // SAFETY: the contexts describe no memory, and the block is large enough.
                let faulting = unsafe {
                    function(
                        &raw mut group,
                        null(),
                        case.shape(),
                        7,
                        0xFFFF,
                        block.0.as_mut_ptr(),
                    )
                };
                assert_eq!(faulting, 0xFFFF);
            }
        }
    }
}
