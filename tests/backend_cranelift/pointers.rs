//! Scalar loads and stores of device memory at pointers of the payload, with and without a tag in the address.

use crate::rig::{Guarded, Rig, SPEED, function, install, install_base};
use visa_test_common::Rng;

/// Two pointers, a distance and data in the payload. What is loaded goes to the frame.
const KERNEL: &str = r#"function "f" simd 16 frame 64
site 0 = read flat 4 "lsc_load" line 1
site 1 = write flat 4 "lsc_store" line 2

bb0:
  %0: i64 = input.payload[0]
  %1: i64 = input.payload[8]
  %9: i32 = input.payload[16]
  %2: i64 = sext %9
  %3: i32 = input.payload[24]
  %4: i1 = const 1
  %5: i64 = add %0, %2
  %6: i64 = add %2, %1
  %7: i32 = blockload.flat.i32x1[0] %4, %5
  blockstore.flat.i32x1[1] %4, %6, %3
  %8: <2 x i32> = blockload.flat.i32x2[0] %4, %6
  framestore[0] %7
  framestore[8] %8
  return
"#;

/// Elements of 4 bytes that lie wholly inside.
fn element(memory: &mut [u8], at: i64) -> Option<&mut [u8]> {
    let at = usize::try_from(at).ok()?;
    memory.get_mut(at..at.checked_add(4)?)
}

#[test]
fn pointers_and_distances() {
    let f = function(KERNEL);
    let mut rng = Rng::new(91);
    for code in [install(&f, &SPEED), install_base(&f)] {
        for size in [0, 3, 4, 7, 8, 64] {
            for _ in 0..60 {
                let mut contents = rng.bytes(size);
                let memory = Guarded::of(&contents);
                let mut rig = Rig::new(1, 64);
                rig.flat_at = (memory.base(), size as u64);
                let base = memory.base() as u64;
                let [a, b, distance] =
                    [0; 3].map(|_: i32| rng.below(3 * size + 9) as i64 - size as i64 - 4);
                let tag = [0, 0, 1 << 61, 0xFFFF << 48][rng.below(4)];
                let pointer = |at: i64| base.wrapping_add_signed(at) ^ tag;
                let mut payload = [pointer(a), pointer(b), distance as u64]
                    .map(u64::to_le_bytes)
                    .concat();
                let data = rng.bytes(4);
                payload.extend(&data);
                rig.payload.write(&payload);
                assert_eq!(rig.run(code.entry()), 0);

                let mut want = vec![0; 64];
                let loaded = element(&mut contents, a + distance);
                want[..4].copy_from_slice(loaded.map_or(&[0; 4], |e| e));
                if let Some(e) = element(&mut contents, b + distance) {
                    e.copy_from_slice(&data);
                }
                for n in 0..2 {
                    let loaded = element(&mut contents, b + distance + 4 * n as i64);
                    want[8 + 4 * n..][..4].copy_from_slice(loaded.map_or(&[0; 4], |e| e));
                }
                let what = format!("{size} bytes, {a} {b} {distance} {tag:x}");
                assert_eq!(rig.frames[0].read(), want, "{what}");
                assert_eq!(memory.read(), contents, "{what}");
            }
        }
    }
}
