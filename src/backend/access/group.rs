//! Access groups: accesses at constant distances from each other, which share one bounds test and one pointer.
//!
//! The test covers the bytes from the lowest access to the end of the highest. If all of these are inside, every access is, and
//! no 32-bit offset between them wraps. The test may fail where each access by itself would have passed, as in a group around the
//! end of wrapped offsets. The general version runs then, which is slower and gives the same results.

use super::AtHand;
use super::consts;
use super::scaled::{MAX_SHIFT, Scaled};
use super::strided::MAX_SPAN;
use crate::backend::Bounds;
use crate::ssa::remark::BoundsTest;
use crate::ssa::{BinOp, Function, Inst, Op, Space, Ty, Value};

/// What addresses count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::backend) enum Root {
    /// The region: addresses are constants.
    Zero,
    /// A scalar, or a vector with a value for each lane.
    Value(Value),
    /// A scalar and a scaled 32-bit number for each lane, in device memory.
    Scaled(Scaled),
}

impl Root {
    /// The values that a test reads.
    pub(super) fn values(self) -> impl Iterator<Item = Value> {
        let values = match self {
            Root::Zero => [None, None],
            Root::Value(v) => [Some(v), None],
            Root::Scaled(scaled) => [Some(scaled.base), Some(scaled.index)],
        };
        values.into_iter().flatten()
    }
}

/// The bytes of an access, counted from something that other addresses may count from too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend) struct Reach {
    /// Kind of memory.
    pub space: Space,
    /// Index of the surface, where there are several.
    pub surface: Option<Value>,
    /// What addresses count from.
    pub root: Root,
    /// Distance of lane 0's address from the root, or of every lane's from its own.
    pub at: i64,
    /// Distance of the lowest byte.
    pub from: i64,
    /// Distance of the end.
    pub to: i64,
}

impl Reach {
    /// The bytes of an access to an address: as many as given from the lowest one on, which is `lowest` bytes from the address. Neither
    /// number may be larger than [`MAX_SPAN`]. `at_hand` says of a value whether the code generator can use it here.
    pub(super) fn new(
        f: &Function,
        (space, surface): (Space, Option<Value>),
        address: Value,
        (lowest, bytes): (i64, u64),
        at_hand: impl Fn(Value) -> bool,
    ) -> Reach {
        let (root, at) = root(f, address, at_hand);
        let ends = at.checked_add(lowest);
        let ends = ends.and_then(|from| Some((from, from.checked_add_unsigned(bytes)?)));
        // Some bytes may be too far from the root, but never from the address.
        let own = || {
            (
                Root::Value(address),
                0,
                (lowest, lowest.wrapping_add_unsigned(bytes)),
            )
        };
        let (root, at, (from, to)) = ends.map_or_else(own, |ends| (root, at, ends));
        Reach {
            space,
            surface,
            root,
            at,
            from,
            to,
        }
    }

    /// The same bytes, counted from a scalar and scaled numbers if the root is made of such.
    pub(super) fn by_numbers(self, f: &Function, at_hand: AtHand) -> Reach {
        let scaled = match self.root {
            Root::Value(root) if self.space == Space::Flat => {
                Scaled::of(f, root, MAX_SHIFT, at_hand)
            }
            _ => None,
        };
        let Some(scaled) = scaled else {
            return self;
        };
        // Accesses at constant distances share a root.
        let moved = |by: i64| by.checked_add(scaled.distance);
        match [self.at, self.from, self.to].map(moved) {
            [Some(at), Some(from), Some(to)] => Reach {
                root: Root::Scaled(Scaled {
                    distance: 0,
                    ..scaled
                }),
                at,
                from,
                to,
                ..self
            },
            _ => self,
        }
    }

    /// Type of what is tested: offsets from the start of memory, or numbers that are scaled to such. It is scalar, or has a lane for each
    /// of the access.
    pub(in crate::backend) fn ty(&self, f: &Function) -> Ty {
        match self.root {
            Root::Zero => Ty::scalar(self.space.addr()),
            Root::Value(v) => f.ty(v),
            Root::Scaled(scaled) => f.ty(scaled.index),
        }
    }

    /// True if both count from the same.
    pub(super) fn is_beside(&self, other: &Reach) -> bool {
        (self.space, self.surface, self.root) == (other.space, other.surface, other.root)
    }

    /// True if both count from the same and one test can cover them.
    pub(super) fn is_near(&self, other: &Reach) -> bool {
        let far = self.to.max(other.to).abs_diff(self.from.min(other.from)) > MAX_SPAN;
        self.is_beside(other) && !far
    }

    /// True if they surely have no byte in common.
    pub(super) fn is_apart(&self, other: &Reach) -> bool {
        // Device memory does not tell addresses apart that only differ in the tag.
        let tags = self.space.is_flat() && !self.is_near(other);
        self.is_beside(other) && !tags && (self.to <= other.from || other.to <= self.from)
    }
}

/// An address as something at hand and a constant distance from it.
pub(super) fn root(f: &Function, address: Value, at_hand: impl Fn(Value) -> bool) -> (Root, i64) {
    let lane = f.ty(address).lane;
    let (mut root, mut distance) = (address, 0u64);
    while let Some(sum) = f.def_inst(root)
        && sum.op == Op::Binary(BinOp::Add)
        && let Some(by) = consts::uniform(f, sum.args[1])
        && at_hand(sum.args[0])
    {
        (root, distance) = (sum.args[0], distance.wrapping_add(by));
    }
    let root = match consts::scalar(f, root) {
        Some(at) => {
            distance = distance.wrapping_add(at);
            Root::Zero
        }
        None => Root::Value(root),
    };
    (root, lane.sign_extend(distance & lane.mask()))
}

/// Some accesses that share a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend) struct AccessGroup {
    /// The bytes of all of them; `at` is the first one's.
    pub all: Reach,
    /// The accesses, with the distance of lane 0's address from the root.
    pub members: Vec<(Inst, i64)>,
}

impl AccessGroup {
    /// Bytes that the test covers; at most [`MAX_SPAN`].
    pub(in crate::backend) const fn bytes(&self) -> u32 {
        self.all.to.abs_diff(self.all.from) as u32
    }

    /// How the bounds of an access are known, if it is one of these: the first stands for the test.
    pub(in crate::backend) fn bounds(&self, inst: Inst) -> Option<BoundsTest> {
        let place = self.members.iter().position(|&(i, _)| i == inst)?;
        Some(if place == 0 {
            BoundsTest::Tested
        } else {
            BoundsTest::Shared
        })
    }

    /// Takes an access in, if the whole stays short enough for one test.
    fn take(&mut self, inst: Inst, reach: &Reach) -> bool {
        let near = self.all.is_near(reach);
        if near {
            let all = &mut self.all;
            (all.from, all.to) = (all.from.min(reach.from), all.to.max(reach.to));
            self.members.push((inst, reach.at));
        }
        near
    }
}

/// Accesses put together as long as one test covers them, unless each is to have a test of its own.
pub(in crate::backend) fn access_groups(
    accesses: impl IntoIterator<Item = (Inst, Reach)>,
    tests: Bounds,
) -> Vec<AccessGroup> {
    let mut groups: Vec<AccessGroup> = Vec::new();
    for (inst, reach) in accesses {
        let share = tests == Bounds::Hoisted;
        if !(share && groups.iter_mut().any(|group| group.take(inst, &reach))) {
            groups.push(AccessGroup {
                all: reach,
                members: vec![(inst, reach.at)],
            });
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::Lane;

    /// Addresses of device memory: an argument, and constant distances from it, each from the one before.
    fn sums(distances: &[i64]) -> (Function, Vec<Value>) {
        let mut f = Function::new("sums", 16);
        let mut last = f.add_param(Function::ENTRY, Ty::scalar(Lane::I64));
        let mut all = vec![last];
        for by in distances {
            let ty = Ty::scalar(Lane::I64);
            let op = Op::Const(by.cast_unsigned());
            let by = f.push1(Function::ENTRY, op, Vec::new(), ty, 0);
            let sum = Op::Binary(BinOp::Add);
            last = f.push1(Function::ENTRY, sum, vec![last, by], ty, 0);
            all.push(last);
        }
        (f, all)
    }

    /// Sixty-four bytes up from an address.
    fn up(f: &Function, address: Value) -> Reach {
        Reach::new(f, (Space::Flat, None), address, (0, 64), |_| true)
    }

    /// Which accesses of sixty-four bytes share a test.
    fn grouped(f: &Function, addresses: &[Value], tests: Bounds) -> Vec<Vec<u32>> {
        let numbered = (0..).map(Inst).zip(addresses.iter().map(|&a| up(f, a)));
        let groups = access_groups(numbered, tests);
        let members = |g: &AccessGroup| g.members.iter().map(|(i, _)| i.0).collect();
        groups.iter().map(members).collect()
    }

    #[test]
    fn addresses_count_from_the_first_that_is_at_hand() {
        let (f, v) = sums(&[100, -30, 8]);
        let reach = up(&f, v[3]);
        assert_eq!((reach.root, reach.at), (Root::Value(v[0]), 78));
        assert_eq!((reach.from, reach.to), (78, 142));
        let lost = |hand: Value| hand != v[1];
        let reach = Reach::new(&f, (Space::Flat, None), v[3], (-60, 64), lost);
        assert_eq!((reach.root, reach.at), (Root::Value(v[2]), 8));
        assert_eq!((reach.from, reach.to), (-52, 12));
    }

    #[test]
    fn constants_count_from_the_start_of_memory() {
        let mut f = Function::new("constants", 16);
        let ty = Ty::scalar(Lane::I32);
        let mut konst = |bits| f.push1(Function::ENTRY, Op::Const(bits), Vec::new(), ty, 0);
        let (near, far, negative) = (konst(1024), konst(1088), konst(0xFFFF_FFF0));
        let sum = f.push1(
            Function::ENTRY,
            Op::Binary(BinOp::Add),
            vec![far, near],
            ty,
            0,
        );
        let reach = |v| Reach::new(&f, (Space::Slm, None), v, (0, 64), |_| true);
        for (v, at) in [(near, 1024), (far, 1088), (negative, -16), (sum, 2112)] {
            assert_eq!((reach(v).root, reach(v).at), (Root::Zero, at));
        }
        assert_eq!(reach(near).ty(&f), ty);
        assert!(reach(near).is_near(&reach(sum)));
        let flat = Reach::new(&f, (Space::Flat, None), near, (0, 64), |_| true);
        assert!(!flat.is_beside(&reach(far)));
    }

    #[test]
    fn bytes_too_far_from_the_root_count_from_the_address() {
        for (distance, lowest) in [(i64::MIN, -4), (i64::MIN + 59, -60), (i64::MAX - 63, 0)] {
            let (f, v) = sums(&[distance]);
            let reach = Reach::new(&f, (Space::Flat, None), v[1], (lowest, 64), |_| true);
            let own = (Root::Value(v[1]), 0);
            assert_eq!((reach.root, reach.at), own, "{distance}");
            assert_eq!((reach.from, reach.to), (lowest, lowest + 64));
        }
        let (f, v) = sums(&[i64::MAX - 64]);
        assert_eq!(up(&f, v[1]).root, Root::Value(v[0]));
    }

    #[test]
    fn near_accesses_share_a_test() {
        let (f, v) = sums(&[64, 1 << 25, 8]);
        let groups = |tests| grouped(&f, &v, tests);
        assert_eq!(groups(Bounds::Hoisted), [[0, 1], [2, 3]]);
        assert_eq!(groups(Bounds::Separate), [[0], [1], [2], [3]]);
        let numbered = [Inst(5), Inst(6)]
            .into_iter()
            .zip([up(&f, v[1]), up(&f, v[0])]);
        let group = &access_groups(numbered, Bounds::Hoisted)[0];
        assert_eq!((group.all.from, group.all.to, group.bytes()), (0, 128, 128));
        assert_eq!(group.members, [(Inst(5), 64), (Inst(6), 0)]);
        assert_eq!(group.bounds(Inst(5)), Some(BoundsTest::Tested));
        assert_eq!(group.bounds(Inst(6)), Some(BoundsTest::Shared));
        assert_eq!(group.bounds(Inst(7)), None);
    }

    #[test]
    fn other_regions_and_roots_share_nothing() {
        let (mut f, v) = sums(&[64]);
        let other = f.add_param(Function::ENTRY, Ty::scalar(Lane::I64));
        let slm = Reach {
            space: Space::Slm,
            ..up(&f, v[0])
        };
        assert_eq!(
            grouped(&f, &[v[0], other, v[1]], Bounds::Hoisted),
            [vec![0, 2], vec![1]]
        );
        assert!(!slm.is_beside(&up(&f, v[0])) && !slm.is_apart(&up(&f, v[1])));
    }

    #[test]
    fn far_addresses_may_be_the_same_bytes_with_other_tags() {
        let (f, v) = sums(&[63, 1, 1 << 48]);
        let of = |n: usize| up(&f, v[n]);
        assert!(of(0).is_apart(&of(2)) && of(2).is_apart(&of(0)));
        assert!(!of(0).is_apart(&of(1)));
        assert!(!of(0).is_apart(&of(3)) && !of(3).is_apart(&of(2)));
    }
}
