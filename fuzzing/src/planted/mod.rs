//! Random kernels with one planted error each, and what checks find of it.
//!
//! A kernel is made right: threads exchange values through local and device memory with barriers between, each work-item stores to places of
//! its own. Then one thing is changed. Some of that does no harm, as where a barrier is removed between accesses of one thread: the
//! interpreter is the definition of what is an error. Code generators have to report the same, record by record, and no check may change a
//! result.

mod bench;
mod text;

pub use bench::{Bench, Counts, Verdict};

use visa_jit::backend::Check;
use visa_test_common::Rng;

/// Work-items of a group, and groups.
const LOCAL: u32 = 64;
const GROUPS: u32 = 2;
const ITEMS: u32 = LOCAL * GROUPS;
/// Regions of the buffer that is stored to.
const STORES: u32 = 4;
/// Elements beyond a buffer up to which no other buffer begins.
const NEAR: i32 = 512;
/// What is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// An offset, most often past the end of a buffer.
    Memory,
    /// A barrier less, or an element that several work-items write.
    Race,
    /// A barrier that not all work-items come to.
    Barrier,
    /// Memory that was not written.
    Init,
}

impl Error {
    /// All of them.
    pub const ALL: [Error; 4] = [Error::Memory, Error::Race, Error::Barrier, Error::Init];

    /// The name of the check that has to find it.
    pub fn name(self) -> &'static str {
        match self {
            Error::Memory => "memory",
            Error::Race => "race",
            Error::Barrier => "barrier",
            Error::Init => "init",
        }
    }

    /// The check that has to find it.
    pub const fn check(self) -> Check {
        match self {
            Error::Memory => Check::Memory,
            Error::Race => Check::Race,
            Error::Barrier => Check::Barrier,
            Error::Init => Check::Init,
        }
    }
}

/// Where values are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    Local,
    Device,
}

/// Lanes that make an access: those whose local id is below a number.
type Below = Option<u32>;

#[derive(Clone, Debug)]
enum Step {
    /// A computation, by number.
    Compute(u32),
    /// `x += a[(item ^ xor) + delta]`.
    Load { xor: u32, delta: i32, below: Below },
    /// `o[region][(item ^ xor & and) + delta] = x`.
    Store {
        region: u32,
        xor: u32,
        and: u32,
        delta: i32,
        below: Below,
    },
    /// Writes an element, waits, and reads that of another work-item.
    Exchange(Exchange),
    /// A branch that depends on `x`.
    Branch(u32),
    /// `atomic_add(count[id & and], x)`.
    Count(u32),
}

#[derive(Clone, Debug)]
struct Exchange {
    space: Space,
    /// Regions take turns, so that one barrier is enough.
    region: u32,
    /// Elements of a work-item: 1, 2 or 4 words.
    words: u32,
    write: u32,
    read: u32,
    /// Of the element's number when it is written.
    and: u32,
    writes: Below,
    waits: bool,
    /// Work-items with this local id and above skip the barrier.
    arrive: Below,
    delta: i32,
}

/// A kernel with an error, and how it is launched.
#[derive(Clone, Debug)]
pub struct Planted {
    /// What was planted.
    pub error: Error,
    simd: u32,
    counts: bool,
    steps: Vec<Step>,
    /// The first barrier, after counts are cleared, is left out.
    early: bool,
    uninitialised: bool,
    /// Known without an engine: whether there is an error.
    certain: Option<bool>,
    /// An access may be so far beyond its buffer that it lies in another one.
    far: bool,
}

impl Planted {
    /// The kernel of a number.
    pub fn new(error: Error, seed: u64) -> Planted {
        let mut rng = Rng::new(seed ^ (error as u64) << 32);
        let mut planted = Planted::right(error, &mut rng);
        planted.plant(&mut rng);
        planted
    }

    /// A kernel without an error.
    fn right(error: Error, rng: &mut Rng) -> Planted {
        let simd = *rng.pick(&[16, 32]);
        let mut regions = [0; 2];
        let mut stores = 0;
        let mut steps = Vec::new();
        let item = |rng: &mut Rng| *rng.pick(&[0, 1, 3, 7, 15, 16, 17, 31, 32, 33, 48, 63]);
        for _ in 0..3 + rng.below(6) {
            steps.push(match rng.below(8) {
                0 => Step::Compute(rng.below(5) as u32),
                1 | 2 => Step::Load {
                    xor: item(rng),
                    delta: 0,
                    below: below(rng),
                },
                3 if stores + 1 < STORES => {
                    stores += 1;
                    Step::Store {
                        region: stores,
                        xor: item(rng),
                        and: u32::MAX,
                        delta: 0,
                        below: below(rng),
                    }
                }
                4 => Step::Branch(rng.below(200) as u32),
                5 => Step::Count(*rng.pick(&[0, 1, 3, 15, 63])),
                _ => exchange(rng, &mut regions, item),
            });
        }
        // One of each kind that errors are planted in.
        steps.insert(
            0,
            Step::Load {
                xor: item(rng),
                delta: 0,
                below: None,
            },
        );
        let at = rng.below(steps.len() + 1);
        steps.insert(at, exchange(rng, &mut regions, item));
        renumber(&mut steps);
        if error == Error::Init && rng.below(4) != 0 {
            steps.push(Step::Branch(rng.below(200) as u32));
        }
        steps.push(Step::Store {
            region: 0,
            xor: item(rng),
            and: u32::MAX,
            delta: 0,
            below: None,
        });
        Planted {
            error,
            simd,
            counts: steps.iter().any(|s| matches!(s, Step::Count(_))),
            steps,
            early: false,
            uninitialised: false,
            certain: None,
            far: false,
        }
    }

    /// Changes one thing.
    fn plant(&mut self, rng: &mut Rng) {
        match self.error {
            Error::Memory => self.plant_offset(rng),
            Error::Race => self.plant_race(rng),
            Error::Barrier => {
                // With none and with all of them it is right.
                let some = rng.below(LOCAL as usize + 1) as u32;
                let arrive = *rng.pick(&[some, some, some, 16, 32, 0, LOCAL]);
                rng_exchange(&mut self.steps, rng).arrive = Some(arrive);
            }
            Error::Init => match rng.below(3) {
                0 => self.uninitialised = true,
                _ => {
                    let writes = rng.below(LOCAL as usize) as u32;
                    rng_exchange(&mut self.steps, rng).writes = Some(writes);
                }
            },
        }
    }

    fn plant_offset(&mut self, rng: &mut Rng) {
        let far = ITEMS as i32 * STORES as i32;
        let by = match rng.below(6) {
            0 => 1,
            1 => 1 + rng.below(63) as i32,
            2 => ITEMS as i32,
            3 => far,
            4 => 1 + rng.below(NEAR as usize) as i32,
            _ => 1 << (10 + rng.below(16)),
        };
        let by = if rng.below(3) == 0 { -by } else { by };
        let places = |s: &Step| match s {
            Step::Exchange(e) => e.space == Space::Device,
            Step::Load { .. } | Step::Store { .. } => true,
            _ => false,
        };
        let count = self.steps.iter().filter(|s| places(s)).count();
        let chosen = rng.below(count);
        let mut found = self.steps.iter_mut().filter(|s| places(s));
        let Some(step) = found.nth(chosen) else {
            return;
        };
        let (items, elements, all) = match step {
            Step::Load { xor, delta, below } => {
                *delta = by;
                (of_items(*below, *xor), 1, ITEMS as i32)
            }
            Step::Store {
                region,
                xor,
                delta,
                below,
                ..
            } => {
                *delta = by;
                let first = (*region * ITEMS) as i32;
                let items = of_items(*below, *xor)
                    .into_iter()
                    .map(|i| i + first)
                    .collect();
                (items, 1, far)
            }
            Step::Exchange(e) => {
                e.delta = by;
                let first = (e.region * ITEMS * 4) as i32;
                let items = of_items(e.writes, e.write);
                let items = items
                    .into_iter()
                    .map(|i| i * e.words as i32 + first)
                    .collect::<Vec<_>>();
                (items, e.words as i32, ITEMS as i32 * 8)
            }
            _ => return,
        };
        let wrong = |i: i32| i + by < 0 || i + by + elements > all;
        self.certain = Some(items.into_iter().any(wrong));
        self.far = by.abs() > NEAR;
    }

    fn plant_race(&mut self, rng: &mut Rng) {
        let and = !*rng.pick(&[1, 2, 8, 16, 32, 48, 63]);
        match rng.below(4) {
            0 if self.counts => self.early = true,
            1 => rng_exchange(&mut self.steps, rng).and = and,
            2 => {
                let stores = self.steps.iter_mut().filter_map(|s| match s {
                    Step::Store { and, .. } => Some(and),
                    _ => None,
                });
                let mut stores: Vec<_> = stores.collect();
                let chosen = rng.below(stores.len());
                *stores[chosen] = *rng.pick(&[and, !64, !65]);
            }
            _ => rng_exchange(&mut self.steps, rng).waits = false,
        }
    }
}

/// Makes regions take turns in each memory, also after steps were put between.
fn renumber(steps: &mut [Step]) {
    let mut next = [0; 2];
    for step in steps {
        if let Step::Exchange(e) = step {
            let next = &mut next[usize::from(e.space == Space::Device)];
            e.region = *next;
            *next ^= 1;
        }
    }
}

fn below(rng: &mut Rng) -> Below {
    (rng.below(4) == 0).then(|| rng.below(LOCAL as usize + 1) as u32)
}

fn exchange(rng: &mut Rng, regions: &mut [u32; 2], item: impl Fn(&mut Rng) -> u32) -> Step {
    let space = *rng.pick(&[Space::Local, Space::Local, Space::Device]);
    let next = &mut regions[usize::from(space == Space::Device)];
    let region = *next;
    *next ^= 1;
    Step::Exchange(Exchange {
        space,
        region,
        words: *rng.pick(&[1, 1, 2, 4]),
        write: item(rng),
        read: item(rng),
        and: u32::MAX,
        writes: None,
        waits: true,
        arrive: None,
        delta: 0,
    })
}

/// One of the exchanges, of which there is one at least.
fn rng_exchange<'a>(steps: &'a mut [Step], rng: &mut Rng) -> &'a mut Exchange {
    let mut all: Vec<&mut Exchange> = steps
        .iter_mut()
        .filter_map(|s| match s {
            Step::Exchange(e) => Some(e),
            _ => None,
        })
        .collect();
    let chosen = rng.below(all.len());
    all.swap_remove(chosen)
}

/// Numbers of the elements that work-items reach.
fn of_items(below: Below, xor: u32) -> Vec<i32> {
    let items = (0..ITEMS).filter(|i| below.is_none_or(|n| i % LOCAL < n));
    items.map(|i| (i ^ xor) as i32).collect()
}
