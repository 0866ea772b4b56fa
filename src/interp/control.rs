//! Divergence: where each lane of a thread is, and which lanes run next (docs/visa.md, "Control flow").
//!
//! A lane that branches waits at its target; execution continues at the textually earliest instruction where a
//! lane waits, with all lanes that wait there. A call opens a frame of its own: the lanes that make it run to
//! their return before any lane of the caller goes on. Which lanes make a call is said in [`super::flow`] and
//! [`super::calls`].
//!
//! Decided here, as the specification leaves it open:
//! * `jmp` and `switchjmp` move the active lanes only, so that no lane that waits is lost; the lanes that they move
//!   wait at the target like any others when lanes wait before it.
//! * `ret` in the kernel ends the active lanes, whatever its execution size; others go on.
//! * Falling off the end of a subroutine is a return.

use std::collections::BTreeMap;

use super::calls::Kept;

/// What a call enters.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// The subroutine.
    pub subroutine: usize,
    /// Its first instruction.
    pub at: usize,
    /// All lanes of the thread enter it, whichever of them call.
    pub everybody: bool,
    /// Variables of the caller's activation.
    pub kept: Option<Box<Kept>>,
}

/// One call, or the kernel's own body.
#[derive(Clone, Debug)]
struct Frame {
    /// Lanes that wait, by the instruction they wait at.
    waiting: BTreeMap<usize, u32>,
    /// Lanes that have returned and wait for the rest.
    returned: u32,
    /// Where they go on in the caller.
    back: usize,
    /// Which subroutine it runs.
    subroutine: usize,
    /// Lanes of the caller that go on there, if not those that have returned.
    callers: Option<u32>,
    /// See [`Entry::kept`].
    kept: Option<Box<Kept>>,
}

impl Frame {
    fn new(subroutine: usize, back: usize) -> Frame {
        Frame {
            waiting: BTreeMap::new(),
            returned: 0,
            back,
            subroutine,
            callers: None,
            kept: None,
        }
    }
}

/// Where the lanes of a thread are.
#[derive(Clone, Debug)]
pub(super) struct Control {
    frames: Vec<Frame>,
    /// All lanes of the thread.
    all: u32,
    /// Next instruction.
    pub pc: usize,
    /// Lanes that execute it: the execution mask.
    pub active: u32,
    /// Variables of activations that have just been returned to, innermost first.
    pub returned_to: Vec<Kept>,
}

impl Control {
    /// All lanes of `mask` at the first instruction.
    pub(super) fn new(mask: u32) -> Control {
        Control {
            frames: vec![Frame::new(0, 0)],
            all: mask,
            pc: 0,
            active: mask,
            returned_to: Vec::new(),
        }
    }

    /// Calls inside each other now.
    pub(super) fn depth(&self) -> usize {
        self.frames.len().saturating_sub(1)
    }

    /// The subroutine that the active lanes are in.
    pub(super) fn subroutine(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.subroutine)
    }

    /// Makes active lanes wait at an instruction of the same subroutine.
    pub(super) fn send(&mut self, lanes: u32, to: usize) {
        let lanes = lanes & self.active;
        self.active &= !lanes;
        if lanes != 0
            && let Some(frame) = self.frames.last_mut()
        {
            let there = frame.waiting.entry(to).or_insert(0);
            *there |= lanes;
        }
    }

    /// Active lanes return from their subroutine, or end.
    pub(super) fn leave(&mut self, lanes: u32) {
        let lanes = lanes & self.active;
        self.active &= !lanes;
        if let Some(frame) = self.frames.last_mut() {
            frame.returned |= lanes;
        }
    }

    /// Active lanes call a subroutine, to go on at `back` when all of them have returned. The other
    /// active lanes wait at `back`.
    pub(super) fn call(&mut self, lanes: u32, entry: Entry, back: usize) {
        let lanes = lanes & self.active;
        let rest = self.active & !lanes;
        self.send(rest, back);
        if lanes != 0 {
            self.frames.push(Frame {
                callers: entry.everybody.then_some(lanes),
                kept: entry.kept,
                ..Frame::new(entry.subroutine, back)
            });
            self.active = if entry.everybody { self.all } else { lanes };
            self.pc = entry.at;
        }
    }

    /// After an instruction: makes the lanes at the earliest place the active ones. False when all lanes have ended.
    pub(super) fn settle(&mut self) -> bool {
        loop {
            let Some(frame) = self.frames.last_mut() else {
                return false;
            };
            let earliest = frame.waiting.first_key_value().map(|(&at, _)| at);
            match earliest {
                Some(at) if self.active == 0 || at <= self.pc => {
                    let there = frame.waiting.remove(&at).unwrap_or(0);
                    if self.active != 0 && at < self.pc {
                        let here = frame.waiting.entry(self.pc).or_insert(0);
                        *here |= self.active;
                        self.active = 0;
                    }
                    self.active |= there;
                    self.pc = at;
                    return true;
                }
                _ if self.active != 0 => return true,
                _ => {
                    self.active = frame.callers.unwrap_or(frame.returned);
                    self.pc = frame.back;
                    self.returned_to.extend(frame.kept.take().map(|kept| *kept));
                    self.frames.pop();
                    if self.frames.is_empty() {
                        self.active = 0;
                        return false;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(subroutine: usize, at: usize) -> Entry {
        Entry {
            subroutine,
            at,
            ..Entry::default()
        }
    }

    #[test]
    fn the_earliest_waiting_lanes_run_first() {
        let mut c = Control::new(0b1111);
        c.send(0b0001, 9);
        c.pc = 1;
        assert!(c.settle());
        assert_eq!((c.pc, c.active), (1, 0b1110));
        c.send(0b0110, 5);
        c.pc = 2;
        assert!(c.settle());
        assert_eq!((c.pc, c.active), (2, 0b1000));
        c.pc = 5;
        assert!(c.settle());
        assert_eq!((c.pc, c.active), (5, 0b1110));
        c.pc = 9;
        assert!(c.settle());
        assert_eq!((c.pc, c.active), (9, 0b1111));
        c.leave(0b1111);
        assert!(!c.settle());
    }

    #[test]
    fn a_backward_branch_leaves_the_rest_behind() {
        let mut c = Control::new(0b11);
        c.pc = 7;
        c.send(0b01, 3);
        assert!(c.settle());
        assert_eq!((c.pc, c.active), (3, 0b01));
        c.pc = 7;
        assert!(c.settle());
        assert_eq!((c.pc, c.active), (7, 0b11));
    }

    #[test]
    fn a_jump_over_waiting_lanes_waits_for_them() {
        let mut c = Control::new(0b11);
        c.send(0b01, 4);
        c.send(0b10, 8);
        assert!(c.settle());
        assert_eq!((c.pc, c.active), (4, 0b01));
    }

    #[test]
    fn calls_keep_the_callers_lanes_waiting() {
        let mut c = Control::new(0b111);
        c.send(0b001, 2);
        c.call(0b010, entry(1, 20), 6);
        assert!(c.settle());
        assert_eq!((c.pc, c.active, c.depth()), (20, 0b010, 1));
        c.leave(0b010);
        assert!(c.settle());
        // Lane 0 waits earlier in the caller than where the call returns to.
        assert_eq!((c.pc, c.active, c.depth()), (2, 0b001, 0));
        c.pc = 6;
        assert!(c.settle());
        assert_eq!((c.pc, c.active), (6, 0b111));
    }

    #[test]
    fn lanes_that_return_wait_for_the_others() {
        let mut c = Control::new(0b11);
        c.call(0b11, entry(1, 10), 1);
        c.leave(0b01);
        c.pc = 11;
        assert!(c.settle());
        assert_eq!((c.pc, c.active), (11, 0b10));
        c.leave(0b10);
        assert!(c.settle());
        assert_eq!((c.pc, c.active), (1, 0b11));
    }

    #[test]
    fn a_call_of_everybody_gives_the_callers_lanes_back() {
        let mut c = Control::new(0b111);
        c.send(0b001, 8);
        let all = Entry {
            everybody: true,
            ..entry(1, 20)
        };
        c.call(0b010, all, 6);
        assert!(c.settle());
        assert_eq!((c.pc, c.active), (20, 0b111));
        c.leave(0b111);
        assert!(c.settle());
        // Lane 2 was active and did not call.
        assert_eq!((c.pc, c.active), (6, 0b110));
    }
}
