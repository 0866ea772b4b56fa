//! Device memory: allocation, contents, edges against unreadable pages.

use crate::common::maps::protection;
use visa_runtime::abi::Surface;
use visa_runtime::limits::{ADDRESS_END, MAX_MEMORY_BYTES};
use visa_runtime::{Buffer, DeviceMemory, LaunchError, MemoryError, SurfaceTable};

const PAGE: u64 = 4096;

/// True when a byte of memory may be read and written.
fn open(address: u64) -> bool {
    protection(address).is_some_and(|p| p.starts_with("rw"))
}

/// True when an address is reserved, or not mapped at all: an access would trap.
fn closed(address: u64) -> bool {
    protection(address).is_none_or(|p| p.starts_with("---"))
}

#[test]
fn buffers_are_aligned_disjoint_and_zero() {
    let memory = DeviceMemory::new().unwrap();
    assert_eq!(memory.size(), 0);
    let sizes = [1, 63, 64, 65, 0, 4096, 65535, 65536, 1 << 20, 3];
    let buffers: Vec<Buffer> = sizes.iter().map(|&n| memory.alloc(n).unwrap()).collect();
    for (buffer, &size) in buffers.iter().zip(&sizes) {
        assert_eq!(buffer.len(), size);
        assert_eq!(buffer.address() % 64, 0);
        assert!(size < 65536 || buffer.address() % PAGE == 0);
        assert!(buffer.to_vec().iter().all(|&b| b == 0));
        assert!(buffer.address() >= memory.base());
        assert!(buffer.address() + size <= memory.base() + memory.size());
        buffer.fill(0xEE);
    }
    let mut ends: Vec<(u64, u64)> = buffers
        .iter()
        .map(|b| (b.address(), b.address() + b.len().max(1)))
        .collect();
    ends.sort_unstable();
    assert!(ends.windows(2).all(|w| w[0].1 <= w[1].0));
    assert!(memory.base() + memory.capacity() < ADDRESS_END);
    let size = memory.size();
    drop(buffers);
    // Freed memory is used again and reads zero again.
    for &n in &sizes {
        assert!(memory.alloc(n).unwrap().to_vec().iter().all(|&b| b == 0));
    }
    assert_eq!(memory.size(), size);
    assert!(open(memory.base()) && open(memory.base() + size - 1));
    assert!(closed(memory.base() - 1));
}

/// Where large pages can be used for them.
#[test]
fn large_buffers_start_at_large_pages() {
    const LARGE: u64 = 2 << 20;
    for before in [100, PAGE + 1, 70_000] {
        let memory = DeviceMemory::with_capacity(12 * LARGE).unwrap();
        let _small = memory.alloc(before).unwrap();
        for len in [LARGE, LARGE + 1, 2 * LARGE] {
            assert_eq!(memory.alloc(len).unwrap().address() % LARGE, 0);
        }
    }
    // There is room for all of it, though not from such an address on.
    let memory = DeviceMemory::with_capacity(4 * LARGE).unwrap();
    let all = memory.alloc(4 * LARGE).unwrap();
    assert_eq!(all.to_vec_of::<u64>(), vec![0; (4 * LARGE / 8) as usize]);
}

#[test]
fn freed_space_is_merged() {
    let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
    for _ in 0..3 {
        let buffers: Vec<Buffer> = (0..16).map(|_| memory.alloc(1 << 16).unwrap()).collect();
        assert!(matches!(
            memory.alloc(1),
            Err(MemoryError::Full { wanted: 1, .. })
        ));
        drop(buffers);
        drop(memory.alloc(1 << 20).unwrap());
    }
    assert!(matches!(
        memory.alloc((1 << 20) + 1),
        Err(MemoryError::Full { .. })
    ));
    assert!(matches!(
        memory.alloc(u64::MAX),
        Err(MemoryError::Full { .. })
    ));
    assert!(matches!(
        memory.alloc_aligned(1, 3),
        Err(MemoryError::Alignment(3))
    ));
    assert!(matches!(
        memory.alloc_aligned(1, 1 << 40),
        Err(MemoryError::Alignment(_))
    ));
    assert!(matches!(
        DeviceMemory::with_capacity(u64::MAX),
        Err(MemoryError::TooLarge { .. })
    ));
    assert!(matches!(
        DeviceMemory::exact(MAX_MEMORY_BYTES + 1),
        Err(MemoryError::TooLarge { .. })
    ));
}

#[test]
fn copies_are_checked() {
    let memory = DeviceMemory::new().unwrap();
    let buffer = memory.alloc(10).unwrap();
    buffer.write(3, &[1, 2, 3]).unwrap();
    let mut bytes = [9; 5];
    buffer.read(2, &mut bytes).unwrap();
    assert_eq!(bytes, [0, 1, 2, 3, 0]);
    for (offset, len) in [(10, 1), (11, 0), (u64::MAX, 2), (0, 11)] {
        let result = buffer.write(offset, &vec![0; len as usize]);
        assert!(
            matches!(result, Err(MemoryError::OutOfRange { size: 10, .. })),
            "{offset} {len}"
        );
    }
    buffer.write(10, &[]).unwrap();
    let numbers = memory.alloc_from(&[1.5f32, -2.0, f32::INFINITY]).unwrap();
    assert_eq!(numbers.to_vec_of::<f32>(), [1.5, -2.0, f32::INFINITY]);
    assert_eq!(numbers.to_vec_of::<u64>().len(), 1, "whole numbers only");
    numbers.write_slice(1, &[0x1122_3344_5566_7788u64]).unwrap();
    let mut back = [0u64];
    numbers.read_slice(1, &mut back).unwrap();
    assert_eq!(back, [0x1122_3344_5566_7788]);
    let mut word = [0; 4];
    memory.read_at(buffer.address() + 3, &mut word).unwrap();
    assert_eq!(word, [1, 2, 3, 0]);
    memory.write_at(buffer.address() + 4, &[7]).unwrap();
    assert_eq!(buffer.to_vec()[4], 7);
    let end = memory.base() + memory.size();
    assert!(memory.read_at(end - 4, &mut word).is_ok());
    for address in [end - 3, end, memory.base() - 1, 0, u64::MAX] {
        assert!(memory.read_at(address, &mut word).is_err(), "{address:#x}");
    }
}

#[test]
fn exact_memory_ends_at_an_unreadable_page() {
    for bytes in [1, 100, PAGE - 1, PAGE, PAGE + 1, 5 * PAGE + 77] {
        let memory = DeviceMemory::exact(bytes).unwrap();
        assert_eq!(memory.size(), bytes);
        let end = memory.base() + bytes;
        assert_eq!(end % PAGE, 0);
        assert!(open(end - 1) && closed(end));
        let len = bytes.min(37);
        let buffer = memory.alloc_flush_end(len).unwrap();
        assert_eq!(buffer.address() + len, end);
        buffer.fill(1);
        assert!(
            matches!(memory.alloc_flush_end(1), Err(MemoryError::NotFlush)),
            "in use"
        );
        let rest = (bytes > len).then(|| memory.alloc_aligned(bytes - len, 1).unwrap());
        assert!(rest.is_none_or(|rest| {
            let full = matches!(memory.alloc(1), Err(MemoryError::Full { .. }));
            full && rest.address() == memory.base()
        }));
        drop(buffer);
        assert!(
            memory
                .alloc_flush_end(len)
                .unwrap()
                .to_vec()
                .iter()
                .all(|&b| b == 0)
        );

        let memory = DeviceMemory::exact_start(bytes).unwrap();
        assert!(open(memory.base()) && closed(memory.base() - 1));
        assert_eq!(
            memory.alloc_flush_start(1).unwrap().address(),
            memory.base()
        );
        let flush = bytes.is_multiple_of(PAGE);
        assert_eq!(memory.alloc_flush_end(1).is_ok(), flush);
        assert!(matches!(
            memory.alloc_flush_start(bytes + 1),
            Err(MemoryError::NotFlush)
        ));
    }
}

#[test]
fn guarded_buffers_of_growing_memory() {
    let memory = DeviceMemory::new().unwrap();
    let plain = memory.alloc(100).unwrap();
    let size = memory.size();
    for len in [1, 64, PAGE - 1, PAGE, 3 * PAGE + 5] {
        let end = memory.alloc_flush_end(len).unwrap();
        let start = memory.alloc_flush_start(len).unwrap();
        assert!(
            open(end.address()) && open(end.address() + len - 1) && closed(end.address() + len)
        );
        assert!(
            open(start.address()) && open(start.address() + len - 1) && closed(start.address() - 1)
        );
        end.fill(7);
        start.fill(8);
        assert!(end.to_vec().iter().all(|&b| b == 7));
        assert!(
            end.address() >= memory.base() + memory.capacity(),
            "outside the flat range"
        );
        let (a, b) = (end.address(), start.address());
        drop((end, start));
        assert!(closed(a) && closed(b));
        assert!(
            memory
                .alloc_flush_end(len)
                .unwrap()
                .to_vec()
                .iter()
                .all(|&b| b == 0)
        );
    }
    assert_eq!(memory.size(), size);
    assert!(matches!(
        memory.alloc_flush_end(u64::MAX),
        Err(MemoryError::Full { .. })
    ));
    assert!(matches!(
        memory.alloc_flush_end(1 << 30),
        Err(MemoryError::Full { .. })
    ));
    drop(plain);
}

#[test]
fn surfaces_are_checked() {
    let memory = DeviceMemory::new().unwrap();
    let buffer = memory.alloc(100).unwrap();
    let mut table = SurfaceTable::new();
    assert!(matches!(
        table.bind(256, &buffer),
        Err(LaunchError::SurfaceIndex(256))
    ));
    table.bind_range(255, &buffer, 90, 10).unwrap();
    assert_eq!(table.get(255), Some((buffer.address() + 90, 10)));
    for (offset, len) in [(90, 11), (101, 0), (u64::MAX, 1)] {
        assert!(matches!(
            table.bind_range(0, &buffer, offset, len),
            Err(LaunchError::Memory(_))
        ));
    }
    assert_eq!(table.get(0), None);
    let mut own = [0u8; 16];
    let surface = Surface {
        base: own.as_mut_ptr(),
        size: 16,
    };
    // SAFETY: the array outlives the table and no launch uses it.
    unsafe { table.bind_raw(1, surface) }.unwrap();
    assert_eq!(table.get(1).map(|s| s.1), Some(16));
}

#[test]
fn allocation_from_many_threads() {
    let memory = DeviceMemory::with_capacity(64 << 20).unwrap();
    std::thread::scope(|scope| {
        for n in 0..4u8 {
            let memory = &memory;
            scope.spawn(move || {
                let mut kept = Vec::new();
                for i in 0..500u64 {
                    let buffer = memory.alloc(i * 37 % 70_000).unwrap();
                    assert!(buffer.to_vec().iter().all(|&b| b == 0));
                    buffer.fill(n + 1);
                    kept.push(buffer);
                    if i % 3 == 0 {
                        let old = kept.swap_remove(kept.len() / 2);
                        assert!(old.to_vec().iter().all(|&b| b == n + 1));
                    }
                    if kept.len() > 40 {
                        kept.clear();
                    }
                }
            });
        }
    });
}

/// A part of a buffer is those bytes of it, which stay for as long as the part.
#[test]
fn parts_of_buffers() {
    let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
    let whole = memory.alloc_from(&[1_u32, 2, 3, 4]).unwrap();
    let part = whole.part(4, 8).unwrap();
    assert_eq!(part.address(), whole.address() + 4);
    part.write_slice(4, &[7_u32]).unwrap();
    assert_eq!(whole.to_vec_of::<u32>(), [1, 2, 7, 4]);
    assert!(part.write_slice(8, &[0_u32]).is_err());
    for (offset, len) in [(9, 8), (17, 0), (u64::MAX, 2)] {
        assert!(whole.part(offset, len).is_err());
    }
    drop(whole);
    let other = memory.alloc(16).unwrap();
    other.fill(0xFF);
    assert_eq!(part.to_vec_of::<u32>(), [2, 7]);
    let address = part.address();
    drop((part, other));
    assert!(
        memory.alloc(16).unwrap().address() < address,
        "freed once, as a whole"
    );
}

/// Room that was used to save other buffers is used again, whatever their sizes were.
#[test]
fn saved_buffers_come_back() {
    let memory = DeviceMemory::new().unwrap();
    for (n, len) in [100u64, 3, 4096, 50, 5000, 100].into_iter().enumerate() {
        let fill = |byte: u8| vec![byte; len as usize];
        let (one, two) = (2 * n as u8 + 1, 2 * n as u8 + 2);
        let buffers = [one, two].map(|byte| memory.alloc_from(&fill(byte)).unwrap());
        let saved = [0, 1].map(|i| buffers[i].save().unwrap());
        for buffer in &buffers {
            buffer.write(0, &fill(0xFF)).unwrap();
        }
        saved[1].restore();
        assert_eq!(buffers[0].to_vec(), fill(0xFF), "{len}");
        saved[0].restore();
        assert_eq!(
            [0, 1].map(|i| buffers[i].to_vec()),
            [one, two].map(fill),
            "{len}"
        );
    }
}
