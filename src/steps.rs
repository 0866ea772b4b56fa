//! How long the steps of compilation take, for `compile --time-passes`.
//!
//! While [`measured`] runs, the current thread keeps the times of what [`step`] surrounds. At all other times a step only reads a thread-local
//! variable. Steps may be nested: the time of a step does not include that of the steps inside it, so that times add up.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// The times of one step, over all its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Name, such as that of a pass.
    pub name: &'static str,
    /// What it belongs to, such as the code generator.
    pub part: &'static str,
    /// How often it ran.
    pub runs: u32,
    /// Time in it, without that in other steps.
    pub time: Duration,
    /// What it changed, as passes count it.
    pub changes: usize,
}

/// Steps in the order in which they first began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps(Vec<Step>);

impl Steps {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Step> {
        self.0.iter()
    }

    /// Time in all of them.
    pub fn total(&self) -> Duration {
        self.0.iter().map(|step| step.time).sum()
    }

    /// Adds the times of others.
    pub fn add(&mut self, others: &Steps) {
        for other in &others.0 {
            let step = self.step_mut(other.part, other.name);
            step.runs += other.runs;
            step.time += other.time;
            step.changes += other.changes;
        }
    }

    fn step_mut(&mut self, part: &'static str, name: &'static str) -> &mut Step {
        let found = self.0.iter().position(|s| (s.part, s.name) == (part, name));
        let at = found.unwrap_or_else(|| {
            self.0.push(Step {
                name,
                part,
                runs: 0,
                time: Duration::ZERO,
                changes: 0,
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

/// What a thread keeps while it measures.
#[derive(Default)]
struct Kept {
    steps: Steps,
    /// Steps that run, the outermost first: which, since when, and the time in steps within it.
    running: Vec<(&'static str, &'static str, Instant, Duration)>,
}

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// A step that runs; it ends when this is dropped. Steps end in the reverse order of their beginnings.
#[derive(Debug)]
#[must_use]
pub struct Running {
    changes: usize,
    measured: bool,
}

impl Running {
    /// Says what the step has changed.
    pub fn changed(&mut self, changes: usize) {
        self.changes += changes;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.measured {
            return;
        }
        KEPT.with_borrow_mut(|kept| {
            let Some(kept) = kept else { return };
            let Some((part, name, start, within)) = kept.running.pop() else {
                return;
            };
            let all = start.elapsed();
            if let Some((.., outer)) = kept.running.last_mut() {
                *outer += all;
            }
            let step = kept.steps.step_mut(part, name);
            step.runs += 1;
            step.time += all.saturating_sub(within);
            step.changes += self.changes;
        });
    }
}

/// Begins a step.
pub fn step(part: &'static str, name: &'static str) -> Running {
    let measured = KEPT.with_borrow_mut(|kept| {
        let Some(kept) = kept else { return false };
        // Enters it, so that an outer step stands before those in it.
        kept.steps.step_mut(part, name);
        let now = Instant::now();
        kept.running.push((part, name, now, Duration::ZERO));
        true
    });
    Running {
        changes: 0,
        measured,
    }
}

/// True while the current thread measures.
pub fn is_measuring() -> bool {
    KEPT.with_borrow(|kept| kept.is_some())
}

/// Runs something, and returns the times of its steps on this thread. One measurement at a time: within another one it finds none.
pub fn measured<T>(run: impl FnOnce() -> T) -> (T, Steps) {
    if is_measuring() {
        return (run(), Steps::default());
    }
    /// Ends the measurement also where `run` panics.
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            KEPT.set(None);
        }
    }
    KEPT.set(Some(Kept::default()));
    let ends = Ends;
    let made = run();
    let steps = KEPT.with_borrow_mut(|kept| kept.take().unwrap_or_default().steps);
    drop(ends);
    (made, steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    const A_WHILE: Duration = Duration::from_millis(20);

    fn names(steps: &Steps) -> Vec<(&str, u32, usize)> {
        let row = |s: &Step| (s.name, s.runs, s.changes);
        steps.0.iter().map(row).collect()
    }

    #[test]
    fn time_belongs_to_the_inner_step() {
        let ((), steps) = measured(|| {
            let _outer = step("part", "outer");
            for changes in [2, 3] {
                let mut inner = step("part", "inner");
                sleep(A_WHILE);
                inner.changed(changes);
            }
        });
        assert_eq!(names(&steps), [("outer", 1, 0), ("inner", 2, 5)]);
        let [outer, inner] = steps.0.as_slice() else {
            panic!("{steps:?}");
        };
        assert!(inner.time >= 2 * A_WHILE);
        assert!(outer.time < inner.time);
        assert_eq!(steps.total(), outer.time + inner.time);
    }

    #[test]
    fn nothing_is_kept_without_a_measurement() {
        drop(step("part", "before"));
        let panics = std::panic::catch_unwind(|| measured(|| -> u8 { panic!("in the step") }));
        assert!(panics.is_err() && !is_measuring());
        let ((), steps) = measured(|| drop(step("part", "measured")));
        assert_eq!(names(&steps), [("measured", 1, 0)]);
    }

    #[test]
    fn steps_of_several_kernels_add_up() {
        let one = || measured(|| step("part", "pass").changed(1)).1;
        let mut all = one();
        all.add(&one());
        let ((), other) = measured(|| drop(step("other part", "pass")));
        all.add(&other);
        assert_eq!(names(&all), [("pass", 2, 2), ("pass", 1, 0)]);
    }
}
