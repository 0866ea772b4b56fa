//! What the code for a state between two barriers does for all its threads together: loads that are done once, and threads side by side.

use visa_jit::passes::run_pass;
use visa_jit::ssa::Space;
use visa_runtime::CodeHandle;
use visa_runtime::abi::{Status, THREAD_DONE};

use crate::rig::{Guarded, NONE, Rig, SPEED, function, install};
use crate::threads::{whole_groups, word};

/// Runs a group of `threads` threads with `rows` rows of local memory.
fn ran(code: &CodeHandle, threads: usize, rows: usize) -> Rig {
    let mut rig = Rig::new(threads, 128);
    let slm = Guarded::of(&vec![0; 32 * rows]);
    rig.place(Space::Slm, 0, &slm);
    assert_eq!(rig.run(code.entry()), Status::Done as u32);
    rig
}

/// Rows of local memory that every thread reads after a barrier, from the addresses in `TILE`.
#[test]
fn every_thread_reads_the_same_rows() {
    let mut f = function(TILE);
    assert!(run_pass(&mut f, "shape"));
    for options in [NONE, SPEED].map(|options| whole_groups(&options)) {
        let code = install(&f, &options);
        // All three rows are there, or the last one is not: it reads as zero.
        for rows in [3, 2] {
            let rig = ran(&code, 3, rows);
            let word_of = |row: usize, lane: usize| match row < rows {
                true => (32 * row + 4 * lane) as u32,
                false => 0,
            };
            for (thread, frame) in rig.frames.iter().enumerate() {
                let frame = frame.read();
                for lane in 0..8 {
                    let sum: u32 = (0..3).map(|row| word_of(row, lane)).sum();
                    let seen = [32, 64].map(|at| word(&frame, at + 4 * lane));
                    let want = [sum + 4, word_of(thread, lane)];
                    assert_eq!(seen, want, "thread {thread}, lane {lane}");
                }
            }
        }
    }
}

/// A row that is inside, read again in a block of its own after a block in which others are not.
#[test]
fn a_row_is_read_again_where_others_are_outside() {
    let mut f = function(&TILE.replace("  return\n", AGAIN));
    assert!(run_pass(&mut f, "shape"));
    for options in [NONE, SPEED].map(|options| whole_groups(&options)) {
        let code = install(&f, &options);
        for rows in [3, 2, 1] {
            let rig = ran(&code, 3, rows);
            for frame in &rig.frames {
                let frame = frame.read();
                for lane in 0..8 {
                    let want = if rows > 1 { 32 + 4 * lane + 60 } else { 0 };
                    let seen = word(&frame, 96 + 4 * lane as usize);
                    assert_eq!(seen, want, "{rows} rows, lane {lane}");
                }
            }
        }
    }
}

/// A thread that changes the rows it has read: the next one reads what it left.
#[test]
fn every_thread_reads_what_the_one_before_it_wrote() {
    let tile = TILE.replace("  return\n", CHANGED);
    let mut f = function(&tile);
    assert!(run_pass(&mut f, "shape"));
    for options in [NONE, SPEED].map(|options| whole_groups(&options)) {
        let code = install(&f, &options);
        let mut rig = Rig::new(3, 128);
        let slm = Guarded::of(&[0; 96]);
        rig.place(Space::Slm, 0, &slm);
        assert_eq!(rig.run(code.entry()), Status::Done as u32);
        let mut row: Vec<u32> = (0..8).map(|lane| 4 * lane).collect();
        for frame in &rig.frames {
            let frame = frame.read();
            let others = |lane: u32| 32 + 64 + 2 * 4 * lane;
            let want: Vec<u32> = (0..8)
                .map(|lane| row[lane as usize] + others(lane) + row[1])
                .collect();
            let seen: Vec<u32> = (0..8).map(|lane| word(&frame, 32 + 4 * lane)).collect();
            assert_eq!(seen, want);
            row = want;
        }
    }
}

/// Threads whose chains of sums are long enough to be run side by side, and more than are run so at a time.
#[test]
fn threads_with_long_chains_are_each_by_themselves() {
    let mut f = function(&long_chain(14));
    assert!(run_pass(&mut f, "shape"));
    for options in [NONE, SPEED].map(|options| whole_groups(&options)) {
        let code = install(&f, &options);
        // The rows of all threads are inside, or those of the first six.
        for (threads, rows) in [(11, 11), (8, 8), (3, 3), (11, 6)] {
            let rig = ran(&code, threads, rows);
            for (thread, frame) in rig.frames.iter().enumerate() {
                assert_eq!(rig.threads[thread].state, THREAD_DONE);
                let frame = frame.read();
                for lane in 0..8 {
                    let word_of = |row: usize| match row < rows {
                        true => (32 * row + 4 * lane) as u32,
                        false => 0,
                    };
                    let sum: u32 = (0..3).map(word_of).sum::<u32>() + 4;
                    let mut acc = word_of(thread) as f32;
                    for _ in 0..14 {
                        acc = acc.mul_add(0.5, sum as f32);
                    }
                    let seen = word(&frame, 32 + 4 * lane);
                    assert_eq!(seen, acc.to_bits(), "thread {thread}, lane {lane}");
                }
            }
        }
    }
}

/// Threads side by side that wait at a second barrier go on from it.
#[test]
fn threads_with_long_chains_go_on_behind_a_barrier() {
    let text = long_chain(14)
        .replace("states 1", "states 2")
        .replace("[bb1, bb2]", "[bb1, bb2, bb3]")
        .replace(
            "  return\n",
            "  suspend 2\nbb3:\n  framestore[96] %2\n  return\n",
        );
    let mut f = function(&text);
    assert!(run_pass(&mut f, "shape"));
    for options in [NONE, SPEED].map(|options| whole_groups(&options)) {
        let code = install(&f, &options);
        for threads in [8, 7] {
            let rig = ran(&code, threads, threads);
            for (thread, frame) in rig.frames.iter().enumerate() {
                assert_eq!(rig.threads[thread].state, THREAD_DONE);
                assert_eq!(word(&frame.read(), 96), thread as u32);
            }
        }
    }
}

/// `TILE` with a chain of `links` fused operations in place of the sum: each halves what the thread has, and adds what all threads read.
pub fn long_chain(links: u32) -> String {
    let link = |n: u32| {
        let (before, after) = (40 + n, 41 + n);
        format!("  %{after}: <8 x f32> = fma %{before}, %31, %30\n")
    };
    let all: String = (0..links).map(link).collect();
    let half = ["0.5"; 8].join(", ");
    let body = format!(
        "  %30: <8 x f32> = sitof %20\n  %31: <8 x f32> = vconst [{half}]\n  %40: <8 x f32> = sitof %17\n{all}  framestore[32] %{}\n  return\n",
        40 + links
    );
    TILE.replace(
        "  framestore[32] %20\n  framestore[64] %17\n  return\n",
        &body,
    )
}

/// Each thread writes a row, and reads the first three, one word of them and its own after a barrier.
pub const TILE: &str = r#"function "tile" simd 8 frame 128 states 1
site 0 = write slm 4 "scatter4_scaled" line 1
site 1 = read slm 4 "gather4_scaled" line 2

bb0:
  %0: <8 x i1> = vconst [1, 1, 1, 1, 1, 1, 1, 1]
  %1: <8 x i32> = vconst [0, 4, 8, 12, 16, 20, 24, 28]
  %2: i32 = input.thread
  %3: i32 = const 32
  %4: i32 = mul %2, %3
  %5: <8 x i32> = splat %4
  %6: <8 x i32> = add %5, %1
  %7: i32 = input.state
  switch %7, [bb1, bb2], bb1
bb1:
  store.slm.i32x1[0] %0, %6, %6
  fence
  suspend 1
bb2:
  %10: <8 x i32> = load.slm.i32x1[1] %0, %1
  %11: <8 x i32> = vconst [32, 36, 40, 44, 48, 52, 56, 60]
  %12: <8 x i32> = load.slm.i32x1[1] %0, %11
  %13: <8 x i32> = vconst [64, 68, 72, 76, 80, 84, 88, 92]
  %14: <8 x i32> = load.slm.i32x1[1] %0, %13
  %15: <8 x i32> = vconst [4, 4, 4, 4, 4, 4, 4, 4]
  %16: <8 x i32> = load.slm.i32x1[1] %0, %15
  %17: <8 x i32> = load.slm.i32x1[1] %0, %6
  %18: <8 x i32> = add %10, %12
  %19: <8 x i32> = add %18, %14
  %20: <8 x i32> = add %19, %16
  framestore[32] %20
  framestore[64] %17
  return
"#;

/// The end of `TILE` for threads that write a row as well.
pub const CHANGED: &str = "  store.slm.i32x1[0] %0, %1, %20\n  return\n";

/// The end of `TILE` for threads that read the second row again, and its last word for all lanes.
pub const AGAIN: &str = "  jump bb3\nbb3:\n  %70: <8 x i32> = load.slm.i32x1[1] %0, %11\n  %71: <8 x i32> = vconst [60, 60, 60, 60, 60, 60, 60, 60]\n  %72: <8 x i32> = load.slm.i32x1[1] %0, %71\n  %73: <8 x i32> = add %70, %72\n  framestore[96] %73\n  return\n";
