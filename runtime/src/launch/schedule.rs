//! The order of groups and of their threads, where a launch asks for another one than usual.
//!
//! A GPU promises no order. A kernel whose result depends on one is wrong, but the usual order (groups by number, threads of a group by
//! number up to their next barrier) may never show it.

/// An order of groups, and of threads between barriers, drawn at random: the same for the same seed, whatever runs the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// What the order is drawn from.
    pub seed: u64,
}

/// Mixes all bits (the finaliser of SplitMix64).
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

impl Schedule {
    /// Which group is the `turn`-th to run, of `total`: each of them once.
    pub(super) fn group(self, turn: u64, total: u64) -> u64 {
        // A Feistel network permutes the numbers of an even count of bits. Those that are too large are sent on until one is not: at
        // most three of four are.
        let half = (64 - total.saturating_sub(1).leading_zeros())
            .div_ceil(2)
            .max(1);
        let low = (1u64 << half) - 1;
        let mut number = turn;
        loop {
            for round in 0..4 {
                let (left, right) = (number >> half, number & low);
                let key = mix(self.seed ^ round << 32);
                number = right << half | (left ^ (mix(key ^ right) & low));
            }
            if number < total {
                return number;
            }
        }
    }

    /// The order in which `threads` threads of a group run, between two of its barriers or `round`s.
    fn threads(self, group: u64, round: u32, threads: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..threads).collect();
        let mut state = mix(mix(self.seed) ^ mix(group) ^ u64::from(round));
        for last in (1..order.len()).rev() {
            state = mix(state);
            order.swap(last, (state % (last as u64 + 1)) as usize);
        }
        order
    }
}

/// The schedule of one group while it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupSchedule {
    pub schedule: Schedule,
    /// Number of the group.
    pub group: u64,
}

impl GroupSchedule {
    /// The order in which `threads` threads run between two barriers.
    pub(crate) fn threads(self, round: u32, threads: u32) -> Vec<u32> {
        self.schedule.threads(self.group, round, threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_group_has_one_turn() {
        for total in (1..70).chain([1000, 4097]) {
            for seed in 0..3 {
                let order = (0..total).map(|turn| Schedule { seed }.group(turn, total));
                let groups: HashSet<u64> = order.collect();
                assert_eq!(groups.len() as u64, total);
                assert!(groups.iter().all(|&g| g < total));
            }
        }
    }

    #[test]
    fn seeds_groups_and_rounds_have_orders_of_their_own() {
        let groups =
            |seed| -> Vec<u64> { (0..64).map(|t| Schedule { seed }.group(t, 64)).collect() };
        assert_ne!(groups(1), groups(2));
        assert_eq!(groups(1), groups(1));
        let threads = |seed, group, round| Schedule { seed }.threads(group, round, 16);
        let orders = [
            threads(1, 0, 0),
            threads(2, 0, 0),
            threads(1, 1, 0),
            threads(1, 0, 1),
        ];
        assert_eq!(orders.iter().collect::<HashSet<_>>().len(), 4);
        for mut order in orders {
            order.sort_unstable();
            assert_eq!(order, (0..16).collect::<Vec<u32>>());
        }
    }

    /// All orders of three threads are drawn, none of them much more often than another one.
    #[test]
    fn no_order_is_left_out() {
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..6000 {
            *counts
                .entry(Schedule { seed }.threads(0, 0, 3))
                .or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(
            counts.values().all(|n| (850..1150).contains(n)),
            "{counts:?}"
        );
    }
}
