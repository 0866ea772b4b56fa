//! The Cranelift backend against expectations computed here.

/// Random functions that a code generator does not take, and why.
const LEFT_OUT: &[(u64, &str)] = &[];

mod cases;
mod generator;
mod limits;
mod memory;
mod narrow;
mod ops;
mod pointers;
mod races;
mod random;
mod rig;
mod rolled;
mod scaled;
mod several;
mod shapes;
mod speed;
mod targets;
mod threads;
mod tile;

use rig::{NONE, Rig, SPEED, function, install};

#[test]
fn smoke() {
    let f = function(
        r#"function "add" simd 8 frame 64

bb0:
  %0: <8 x i32> = input.payload[0]
  %1: <8 x i32> = input.payload[32]
  %2: <8 x i32> = add %0, %1
  framestore[0] %2
  return
"#,
    );
    for options in [NONE, SPEED] {
        let code = install(&f, &options);
        let mut rig = Rig::new(3, 64);
        let words: Vec<u8> = (0..16u32).flat_map(|i| (i * i).to_le_bytes()).collect();
        rig.payload.write(&words);
        assert_eq!(rig.run(code.entry()), 0);
        for frame in &rig.frames {
            let out = frame.read();
            for i in 0..8u32 {
                let at = 4 * i as usize;
                let got = u32::from_le_bytes(out[at..at + 4].try_into().unwrap());
                assert_eq!(got, i * i + (i + 8) * (i + 8));
            }
        }
        assert!(
            rig.threads.iter().all(|t| t.state == 0),
            "no barriers, no states"
        );
    }
}
