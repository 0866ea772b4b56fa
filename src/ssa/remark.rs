//! What passes and code generators decided, and why: for people who ask why code is as it is.
//!
//! A decision is noted where it is made. Nothing reads remarks to decide something else, and code is the same without them.

use std::fmt;

use serde::Serialize;

use super::func::{Function, Inst, Value};
use super::op::Op;

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Line of vISA that it is about, 0 for none.
    pub line: u32,
    /// Instruction that it is about, for decisions about memory accesses.
    pub inst: Option<Inst>,
    /// What was decided.
    pub decision: Decision,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// How the addresses of an access are spaced over the lanes.
    Addresses {
        /// Bytes from lane to lane, where that is the same everywhere.
        stride: Option<i64>,
        /// Why.
        why: Why,
    },
    /// How an access is done.
    Access {
        /// By which code.
        way: Way,
        /// How it is kept inside of memory.
        bounds: BoundsTest,
    },
    /// Something that is known about masks saved work.
    MaskUsed(&'static str),
    /// What had to stay because too little is known about masks.
    MaskMissed(&'static str),
    /// A loop runs for some lanes after the others.
    StripMined {
        /// Copies of the loop.
        strips: u16,
    },
    /// A loop runs for all lanes at once.
    NotStripMined(&'static str),
    /// What stands before the first store runs for some lanes after the others.
    StartInStrips {
        /// Strips of lanes.
        strips: u16,
    },
    /// The last lanes of a loop run one after the other.
    ScalarTail {
        /// Most lanes that are left then.
        lanes: u16,
    },
    /// A loop runs for all lanes until the last has left.
    NoScalarTail(&'static str),
    /// A block is there twice: once for when one test holds for its accesses.
    Versioned {
        /// Accesses that the test is about.
        accesses: u32,
    },
    /// The program is cut where threads wait.
    Barriers {
        /// Barriers.
        count: u32,
        /// Values that are saved across some barrier.
        saved: u32,
    },
}

/// Why addresses are taken to run as they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It holds for every launch that the code is for.
    Proven,
    /// The code tests that nothing wraps between the first lane and the last.
    Tested,
    /// The code tests once a thread that local ids run in rows.
    TestedIds,
    /// It is not known, because of something on this line.
    Unknown {
        /// Of what.
        cause: Cause,
        /// Line of vISA, 0 for none.
        line: u32,
    },
}

/// What makes addresses arbitrary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A value from memory.
    Loaded,
    /// Local ids of any layout.
    LocalIds,
    /// Another input of the thread.
    Input,
    /// A choice for each lane.
    Masked,
    /// A product of two values that both differ from lane to lane or are not constant.
    Factor,
    /// An extension that would wrap.
    Wraps,
    /// Ways to the same place with different distances.
    Paths,
    /// Lanes put in another order.
    Shuffled,
    /// A number that was a float.
    Float,
    /// Any other operation.
    Operation,
}

/// The code of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Whole vectors.
    Vector,
    /// One scalar for all lanes.
    Broadcast,
    /// Scalars, one after the other.
    Lanes(u16),
    /// A vector for each lane, one after the other.
    Vec4(u16),
    /// The processor's gather or scatter.
    Gather,
    /// A call of the runtime for a given number of lanes.
    Runtime(u16),
    /// A scalar, as the program has it.
    Scalar,
}

/// How an access is kept inside of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundsTest {
    /// One test of its own.
    Tested,
    /// A test that decides for other accesses too, and is counted there.
    Shared,
    /// Known to be inside.
    Removed,
    /// A test for each lane.
    Lanes,
    /// One whether all lanes are inside, and where not, one for each lane.
    AllLanes,
    /// The runtime tests.
    Runtime,
}

impl Cause {
    const fn text(self) -> &'static str {
        match self {
            Cause::Loaded => "a part of the address comes from memory",
            Cause::LocalIds => "the layout of local ids is not known for these launches",
            Cause::Input => "a part of the address is an input that may differ from lane to lane",
            Cause::Masked => "a part of the address is chosen by a mask",
            Cause::Factor => "the address has a factor that is not constant",
            Cause::Wraps => "an extension may wrap between two lanes",
            Cause::Paths => "different ways lead here, with different distances between lanes",
            Cause::Shuffled => "the address is put together from lanes in another order",
            Cause::Float => "a part of the address was a float",
            Cause::Operation => "an operation is not followed",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Proven => f.write_str("holds for all of these launches"),
            Why::Tested => f.write_str("where a test finds that nothing wraps between the lanes"),
            Why::TestedIds => f.write_str("where a test, once a thread, finds local ids in rows"),
            Why::Unknown { cause, line: 0 } => f.write_str(cause.text()),
            Why::Unknown { cause, line } => write!(f, "{}, line {line}", cause.text()),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Vector => f.write_str("whole vectors"),
            Way::Broadcast => f.write_str("one scalar for all lanes"),
            Way::Lanes(n) => write!(f, "{n} scalars"),
            Way::Vec4(n) => write!(f, "{n} vectors, one for each lane"),
            Way::Gather => f.write_str("gather or scatter"),
            Way::Runtime(1) => f.write_str("a call of the runtime"),
            Way::Runtime(n) => write!(f, "a call of the runtime, {n} lanes one by one"),
            Way::Scalar => f.write_str("a scalar"),
        }
    }
}

impl Way {
    /// Lanes that are accessed one by one.
    pub const fn one_by_one(self) -> u16 {
        match self {
            Way::Lanes(n) | Way::Runtime(n) => n,
            _ => 0,
        }
    }

    /// Name for scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Vector => "vector",
            Way::Broadcast => "broadcast",
            Way::Lanes(_) => "lanes",
            Way::Vec4(_) => "vec4",
            Way::Gather => "gather",
            Way::Runtime(_) => "runtime",
            Way::Scalar => "scalar",
        }
    }
}

impl BoundsTest {
    /// Name for scripts.
    pub const fn name(self) -> &'static str {
        match self {
            BoundsTest::Tested => "tested",
            BoundsTest::Shared => "shared",
            BoundsTest::Removed => "removed",
            BoundsTest::Lanes => "lanes",
            BoundsTest::AllLanes => "all-lanes",
            BoundsTest::Runtime => "runtime",
        }
    }

    /// True for accesses without a test of their own.
    pub const fn is_saved(self) -> bool {
        matches!(self, BoundsTest::Shared | BoundsTest::Removed)
    }
}

impl fmt::Display for BoundsTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BoundsTest::Tested => "one bounds test; where it fails, the runtime does the access",
            BoundsTest::Shared => "no bounds test of its own: another access's covers it",
            BoundsTest::Removed => "no bounds test: surely inside",
            BoundsTest::Lanes => "a bounds test for each lane",
            BoundsTest::AllLanes => "one bounds test for all lanes; where it fails, one for each",
            BoundsTest::Runtime => "the runtime tests bounds",
        })
    }
}

/// How accesses are done for which every code generator has one way.
pub fn fixed_way(f: &Function, op: &Op, args: &[Value]) -> Option<(Way, BoundsTest)> {
    let lanes = |n: usize| args.get(n).map_or(1, |&v| f.ty(v).lanes);
    match op {
        Op::Image(_) => Some((Way::Runtime(lanes(1)), BoundsTest::Runtime)),
        Op::Load2d(_) | Op::Store2d(_) => Some((Way::Runtime(1), BoundsTest::Runtime)),
        Op::BlockLoad(m) | Op::BlockStore(m) => {
            let way = if m.n == 1 { Way::Scalar } else { Way::Vector };
            let bounds = match f.fixed_registers(*m, args) {
                Some(_) => BoundsTest::Removed,
                None => BoundsTest::Tested,
            };
            Some((way, bounds))
        }
        _ => None,
    }
}

/// How accesses of any addresses are done without gathers.
pub const fn any_way(lanes: u16) -> (Way, BoundsTest) {
    match lanes {
        1 => (Way::Scalar, BoundsTest::Tested),
        n => (Way::Runtime(n), BoundsTest::Runtime),
    }
}

impl Serialize for Way {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl Serialize for BoundsTest {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}
