//! Whether a run begins on the calling thread alone or on all threads.
//!
//! Waking a thread takes 20 to 60 µs, and sometimes much longer, so short runs stay on one thread. Threads that write the same lines of the cache
//! hold each other up, however long a run takes.
//!
//! * A run begins alone, and goes on on all threads if it takes long. Runs after one that went on are shared from their start: four, and twice as
//!   many each time that the next one goes on as well.
//! * Runs that ended alone are compared with the last one that was shared. Now and then one is shared for that.
//! * If groups ended much more slowly on all threads than on one, the next run stays alone, and its time is compared: the first groups may also
//!   have had less to do. If that happens three times, as the machine may also have done something else, the runs after it stay alone: four, and
//!   more each time.

use std::time::Duration;

/// A run that begins alone wakes the other threads after so long.
const SHORT: Duration = Duration::from_micros(40);

/// What all threads take at least to tell that they hold each other up: in less, most of it may be that they were woken.
const LONG: Duration = Duration::from_micros(200);

/// How many runs follow what one told, the first time and at most.
const STREAK: [u32; 2] = [4, 64];

/// After this many runs that ended alone, one is shared, so that they are compared with it.
const OFTEN: u32 = 64;

/// How often in a row threads are found to hold each other up before it is believed.
const VOTES: u32 = 3;

/// How a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// On all threads.
    Shared,
    /// On the calling thread, and after this time on all; without one it ends there.
    Alone(Option<Duration>),
}

/// Groups that ended, and the time that they took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub groups: u64,
    pub time: Duration,
}

impl Part {
    /// How many times as fast groups ended as in another part.
    fn speed(self, other: Part) -> f64 {
        let rate = |part: Part| part.groups as f64 / part.time.as_secs_f64().max(1e-9);
        rate(self) / rate(other).max(1e-9)
    }
}

/// What a run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    /// All threads worked from its start.
    Share(Duration),
    /// One thread did everything.
    Stay(Duration),
    /// One thread began, and all went on.
    Spread([Part; 2]),
}

/// What is known of the runs of a launch.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The time of the last run on all threads from its start, as the first one is.
    shared: Option<Duration>,
    /// Runs since then that ended alone before they had to wake others.
    stayed: u32,
    /// Whether a run may begin alone to show what is better: one group is a small part of it, or the last run was short.
    may_try: bool,
    /// What the next runs do.
    next: Next,
    /// What runs did last because one told it, and how many.
    streak: Option<(Way, u32)>,
    /// How often in a row a run took less alone.
    votes: u32,
}

/// Where runs are better off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Shared,
    Alone,
}

/// What the next runs do.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    /// Begin alone, and show what is better.
    #[default]
    Try,
    /// This many of them go this way.
    Go(Way, u32),
    /// Stay alone, to be compared with the time of the last run.
    Compare(Duration),
}

impl Pace {
    /// How the next run begins.
    pub(super) fn begin(&self) -> Begin {
        match self.next {
            _ if self.shared.is_none() => Begin::Shared,
            Next::Try if self.may_try => Begin::Alone(Some(SHORT)),
            Next::Try | Next::Go(Way::Shared, _) => Begin::Shared,
            Next::Go(Way::Alone, _) | Next::Compare(_) => Begin::Alone(None),
        }
    }

    /// Takes account of a run; with `fine`, one group is a small part of it.
    pub(super) fn end(&mut self, did: Did, fine: bool) {
        let time = match did {
            Did::Share(time) | Did::Stay(time) => time,
            Did::Spread([alone, shared]) => alone.time + shared.time,
        };
        self.may_try = fine || time < 2 * SHORT;
        match (did, self.next) {
            (Did::Share(_), next) => {
                (self.shared, self.stayed) = (Some(time), 0);
                self.next = match next {
                    Next::Go(..) if time < SHORT / 2 => Next::Try,
                    next => next.after_one(),
                };
            }
            (Did::Stay(_), Next::Compare(shared)) => self.compared(time < shared * 3 / 4),
            (Did::Stay(_), Next::Try) => self.stayed(time),
            (Did::Stay(_), next) => self.next = next.after_one(),
            (Did::Spread([alone, shared]), _) => {
                let held_up = fine && shared.time > LONG && shared.speed(alone) < 0.6;
                match held_up {
                    true => self.next = Next::Compare(time),
                    false => self.compared(false),
                }
            }
        }
    }

    /// A run ended before it woke other threads. The first one after a shared run waits for what is in the other processors' caches.
    fn stayed(&mut self, time: Duration) {
        self.stayed = self.stayed.saturating_add(1);
        if self.stayed < 2 {
            return;
        }
        let gains = self.shared.is_some_and(|shared| shared < time * 9 / 10);
        let worth = time > SHORT / 2;
        if worth && gains {
            return self.go(Way::Shared);
        }
        self.streak = None;
        if worth && self.stayed > OFTEN {
            self.next = Next::Go(Way::Shared, 1);
        }
    }

    /// All threads took longer than one, or not.
    fn compared(&mut self, held_up: bool) {
        self.votes = match held_up {
            true => self.votes.saturating_add(1),
            false => 0,
        };
        match self.votes {
            0 => self.go(Way::Shared),
            VOTES.. => self.go(Way::Alone),
            _ => (self.streak, self.next) = (None, Next::Try),
        }
    }

    /// Sends the next runs this way: more of them if those before were sent there, too.
    fn go(&mut self, way: Way) {
        let runs = match self.streak {
            Some((before, runs)) if before == way => STREAK[1].min(2 * runs),
            _ => STREAK[0],
        };
        (self.streak, self.next) = (Some((way, runs)), Next::Go(way, runs));
    }
}

impl Next {
    /// The same after one of the runs.
    fn after_one(self) -> Next {
        match self {
            Next::Go(_, 0 | 1) => Next::Try,
            Next::Go(way, runs) => Next::Go(way, runs - 1),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(time: u64) -> Duration {
        Duration::from_micros(time)
    }

    /// Makes 200 runs, which take `alone` microseconds on one thread and `all` on all threads. Counts how the last 100 began: shared, alone for
    /// a time, alone to the end.
    fn begins(pace: &mut Pace, [alone, all]: [u64; 2], groups: u64) -> [u32; 3] {
        let mut counts = [0; 3];
        for run in 0..200 {
            let begin = pace.begin();
            let did = match begin {
                Begin::Shared => Did::Share(us(all)),
                Begin::Alone(Some(limit)) if us(alone) > limit => {
                    // Whole groups.
                    let done = (limit.as_micros() as u64 * groups).div_ceil(alone);
                    let part = |groups: u64, whole| Part {
                        groups,
                        time: us(whole) * groups as u32 / 64,
                    };
                    let left = groups - done;
                    Did::Spread([
                        part(64 * done / groups, alone),
                        part(64 * left / groups, all),
                    ])
                }
                Begin::Alone(_) => Did::Stay(us(alone)),
            };
            pace.end(did, groups >= 32);
            counts[match begin {
                Begin::Shared => 0,
                Begin::Alone(Some(_)) => 1,
                Begin::Alone(None) => 2,
            }] += u32::from(run >= 100);
        }
        counts
    }

    #[test]
    fn runs_begin_in_the_way_that_takes_less() {
        // Short ones.
        assert_eq!(begins(&mut Pace::default(), [15, 50], 4), [0, 100, 0]);
        let [shared, tried, _] = begins(&mut Pace::default(), [30, 50], 4);
        assert!(shared <= 2 && tried >= 98, "{shared}, {tried}");
        let [shared, tried, _] = begins(&mut Pace::default(), [30, 25], 64);
        assert!(shared >= 97 && tried <= 3, "{shared}, {tried}");
        let [shared, tried, _] = begins(&mut Pace::default(), [100, 50], 64);
        assert!(shared >= 97 && tried <= 3, "{shared}, {tried}");
        // Those that gain by all threads, of many groups and of few.
        let [shared, tried, alone] = begins(&mut Pace::default(), [2000, 1050], 64);
        assert!(
            shared >= 97 && tried <= 3 && alone == 0,
            "{shared}, {tried}"
        );
        assert_eq!(begins(&mut Pace::default(), [2000, 1050], 4), [100, 0, 0]);
        // Those that are held up.
        let [shared, tried, alone] = begins(&mut Pace::default(), [2000, 6000], 64);
        assert!(alone >= 97 && tried <= 3 && shared == 0, "{alone}, {tried}");
        assert_eq!(begins(&mut Pace::default(), [2000, 6000], 4), [100, 0, 0]);
    }

    #[test]
    fn the_first_run_is_shared() {
        let mut pace = Pace::default();
        assert_eq!(pace.begin(), Begin::Shared);
        pace.end(Did::Share(us(5000)), true);
        assert_eq!(pace.begin(), Begin::Alone(Some(SHORT)));
    }

    const fn part(groups: u64, time: u64) -> Part {
        let time = us(time);
        Part { groups, time }
    }

    /// Runs that are shared from their start, and then one that begins alone.
    fn shared(pace: &mut Pace) -> u32 {
        let mut count = 0;
        while pace.begin() == Begin::Shared {
            pace.end(Did::Share(us(60)), true);
            count += 1;
        }
        count
    }

    /// One that takes long as the machine does something else.
    #[test]
    fn one_long_run_changes_few() {
        let mut pace = Pace::default();
        begins(&mut pace, [30, 60], 64);
        let long = Did::Spread([part(30, 500), part(34, 30)]);
        pace.end(long, true);
        assert_eq!(shared(&mut pace), 4);
        pace.end(long, true);
        assert_eq!(shared(&mut pace), 8);
        for _ in 0..2 {
            pace.end(Did::Stay(us(30)), true);
            assert_eq!(shared(&mut pace), 0);
        }
        pace.end(long, true);
        assert_eq!(shared(&mut pace), 4);
    }

    /// Most of what was left was the time to wake a thread.
    #[test]
    fn the_end_of_a_run_tells_nothing() {
        let mut pace = Pace::default();
        pace.end(Did::Share(us(60)), true);
        pace.end(Did::Spread([part(60, 40), part(4, 50)]), true);
        assert_eq!(pace.begin(), Begin::Shared);
        shared(&mut pace);
        pace.end(Did::Spread([part(60, 40), part(4, 500)]), true);
        assert_eq!(pace.begin(), Begin::Alone(None));
    }

    /// A run that ended alone is compared with the last shared one, unless it follows it directly.
    #[test]
    fn runs_that_stay_are_compared() {
        let mut pace = Pace::default();
        pace.end(Did::Share(us(25)), true);
        pace.end(Did::Stay(us(38)), true);
        assert_eq!(pace.begin(), Begin::Alone(Some(SHORT)));
        pace.end(Did::Stay(us(38)), true);
        assert_eq!(shared(&mut pace), 4);
        // All threads are tried again.
        for _ in 0..2 {
            for _ in 0..=OFTEN {
                assert_eq!(pace.begin(), Begin::Alone(Some(SHORT)));
                pace.end(Did::Stay(us(30)), true);
            }
            assert_eq!(shared(&mut pace), 1);
        }
    }

    #[test]
    fn short_runs_and_few_groups_are_no_trials() {
        let mut pace = Pace::default();
        pace.end(Did::Share(us(60)), false);
        pace.end(Did::Spread([part(1, 1000), part(3, 9000)]), false);
        assert_eq!(pace.begin(), Begin::Shared);
        pace.end(Did::Share(us(15)), false);
        assert_eq!(pace.begin(), Begin::Alone(Some(SHORT)));
    }

    /// A run that takes less alone changes something only after three of them in a row.
    #[test]
    fn what_the_machine_does_otherwise_is_not_believed() {
        let mut pace = Pace::default();
        pace.end(Did::Share(us(1000)), true);
        // The next run tries again at once.
        for _ in 0..3 {
            assert_eq!(pace.begin(), Begin::Alone(Some(SHORT)));
            pace.end(Did::Spread([part(8, 40), part(56, 1000)]), true);
            // That of another thread, which began before.
            pace.end(Did::Share(us(1000)), true);
            assert_eq!(pace.begin(), Begin::Alone(None));
            pace.end(Did::Stay(us(300)), true);
        }
        for _ in 0..4 {
            assert_eq!(pace.begin(), Begin::Alone(None));
            pace.end(Did::Stay(us(300)), true);
        }
        assert_eq!(pace.begin(), Begin::Alone(Some(SHORT)));
        let mut pace = Pace::default();
        for _ in 0..9 {
            shared(&mut pace);
            pace.end(Did::Spread([part(8, 40), part(56, 1000)]), true);
            pace.end(Did::Stay(us(300)), true);
            assert_eq!(pace.begin(), Begin::Alone(Some(SHORT)));
            pace.end(Did::Spread([part(8, 40), part(56, 150)]), true);
            assert_eq!(pace.begin(), Begin::Shared);
        }
    }

    /// The first groups have less to do than others: all threads are slower than the one that began, and faster than one.
    #[test]
    fn uneven_groups_are_shared() {
        let mut pace = Pace::default();
        pace.end(Did::Share(us(1050)), true);
        let mut counts = [0; 2];
        for _ in 0..200 {
            let begin = pace.begin();
            pace.end(
                match begin {
                    Begin::Shared => Did::Share(us(1050)),
                    Begin::Alone(Some(_)) => Did::Spread([part(32, 40), part(32, 1010)]),
                    Begin::Alone(None) => Did::Stay(us(2000)),
                },
                true,
            );
            counts[usize::from(begin == Begin::Alone(None))] += 1;
        }
        assert!(counts[1] <= 8, "{counts:?}");
    }

    #[test]
    fn work_may_change() {
        let mut pace = Pace::default();
        for _ in 0..3 {
            let [_, tried, _] = begins(&mut pace, [10, 60], 64);
            assert_eq!(tried, 100);
            let [shared, ..] = begins(&mut pace, [5000, 2600], 64);
            assert!(shared >= 97, "{shared}");
            let [.., alone] = begins(&mut pace, [5000, 9000], 64);
            assert!(alone >= 90, "{alone}");
        }
        // A group of few may be long.
        for _ in 0..3 {
            assert_eq!(begins(&mut pace, [10, 15], 4), [0, 100, 0]);
            assert_eq!(begins(&mut pace, [5000, 2600], 4), [100, 0, 0]);
        }
    }
}
