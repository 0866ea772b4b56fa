//! What kinds of control flow a set of graphs has: so that a cheaper choice of graphs cannot quietly become a
//! poorer one.

use super::{Block, Graph, How, Term};

/// Something to count in a graph.
pub struct Feature {
    /// What.
    pub name: &'static str,
    /// How often it is in a graph.
    pub count: fn(&Graph) -> usize,
    /// In how many of 20,000 graphs it must be, at least.
    pub least: u64,
}

const fn feature(name: &'static str, least: u64, count: fn(&Graph) -> usize) -> Feature {
    Feature { name, count, least }
}

/// Everything that is counted.
pub const FEATURES: &[Feature] = &[
    feature("8 lanes", 10_000, |g| usize::from(g.simd == 8)),
    feature("16 lanes", 2_500, |g| usize::from(g.simd == 16)),
    feature("32 lanes", 500, |g| usize::from(g.simd == 32)),
    feature("work split in halves", 500, |g| {
        usize::from(g.split < g.simd)
    }),
    feature("12 blocks or more", 2_000, |g| {
        usize::from(g.blocks() >= 12)
    }),
    feature("nesting of 2 or more", 2_000, |g| usize::from(g.depth >= 2)),
    feature("nesting of 3 or more", 300, |g| usize::from(g.depth >= 3)),
    feature("backward branch", 8_000, |g| bodies(g, loops)),
    feature("way out of a loop", 6_000, |g| bodies(g, exits)),
    feature("way to a loop's end", 1_000, |g| bodies(g, continues)),
    feature("way into a loop's middle", 200, |g| bodies(g, entries)),
    feature("early return", 3_000, |g| bodies(g, returns)),
    feature("subroutine", 8_000, |g| g.subs.len() - 1),
    feature("call of some lanes", 400, |g| {
        terms(g, |t| matches!(t, Term::Call(How::Lanes(_), _)))
    }),
    feature("call of all lanes or none", 300, |g| {
        terms(g, |t| matches!(t, Term::Call(How::Uniform(_), _)))
    }),
    feature("goto of some lanes", 15_000, |g| {
        terms(g, |t| matches!(t, Term::Goto(How::Lanes(_), _)))
    }),
    feature("goto of all lanes or none", 3_000, |g| {
        terms(g, |t| matches!(t, Term::Goto(How::Uniform(_), _)))
    }),
    feature("goto of all lanes", 4_000, |g| {
        terms(g, |t| matches!(t, Term::Goto(How::Always { .. }, _)))
    }),
    feature("jmp", 2_000, |g| terms(g, |t| matches!(t, Term::Jmp(..)))),
    feature("switchjmp", 800, |g| {
        terms(g, |t| matches!(t, Term::Switch { .. }))
    }),
];

fn bodies(g: &Graph, count: fn(&[Block]) -> usize) -> usize {
    g.subs.iter().map(|b| count(b)).sum()
}

fn terms(g: &Graph, which: fn(&Term) -> bool) -> usize {
    let blocks = g.subs.iter().flatten();
    blocks.filter(|b| which(&b.term)).count()
}

/// Branches of a body, from where to where.
fn branches(blocks: &[Block]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    for (i, block) in blocks.iter().enumerate() {
        match &block.term {
            Term::Goto(_, to) | Term::Jmp(_, to) => out.push((i, *to)),
            Term::Switch { targets, .. } => out.extend(targets.iter().map(|&t| (i, t))),
            _ => {}
        }
    }
    out
}

fn loops(blocks: &[Block]) -> usize {
    branches(blocks).iter().filter(|(i, to)| to <= i).count()
}

/// Pairs of a forward branch and the blocks `first ..= last` between a backward branch's ends.
fn around(blocks: &[Block], which: fn(usize, usize, usize, usize) -> bool) -> usize {
    let all = branches(blocks);
    let back = all.iter().filter(|(i, to)| to <= i);
    back.map(|&(last, first)| {
        let forward = all.iter().filter(|(i, to)| to > i);
        forward
            .filter(|(i, to)| which(*i, *to, first, last))
            .count()
    })
    .sum()
}

fn exits(blocks: &[Block]) -> usize {
    around(blocks, |from, to, first, last| {
        (first..=last).contains(&from) && to > last
    })
}

fn continues(blocks: &[Block]) -> usize {
    around(blocks, |from, to, first, last| {
        (first..last).contains(&from) && to == last
    })
}

fn entries(blocks: &[Block]) -> usize {
    around(blocks, |from, to, first, last| {
        from < first && to > first && to <= last
    })
}

fn returns(blocks: &[Block]) -> usize {
    let early = blocks.iter().rev().skip(1);
    early.filter(|b| matches!(b.term, Term::Ret(_))).count()
}

/// How often each feature is in some graphs: the number of graphs that have it, and of its occurrences.
#[derive(Clone, Debug)]
pub struct Census {
    /// Graphs.
    pub graphs: u64,
    /// Large ones.
    pub large: u64,
    /// Deepest nesting.
    pub depth: u32,
    /// Of each feature.
    pub features: Vec<(u64, u64)>,
}

impl Default for Census {
    fn default() -> Census {
        Census {
            graphs: 0,
            large: 0,
            depth: 0,
            features: vec![(0, 0); FEATURES.len()],
        }
    }
}

impl Census {
    /// Counts a graph.
    pub fn add(&mut self, graph: &Graph, large: bool) {
        self.graphs += 1;
        self.large += u64::from(large);
        self.depth = self.depth.max(graph.depth);
        for (sum, feature) in self.features.iter_mut().zip(FEATURES) {
            let n = (feature.count)(graph) as u64;
            sum.0 += u64::from(n > 0);
            sum.1 += n;
        }
    }

    /// Features that too few graphs have, measured by 20,000.
    pub fn missing(&self) -> Vec<String> {
        let rows = self.features.iter().zip(FEATURES);
        rows.filter(|((n, _), f)| n * 20_000 < f.least * self.graphs)
            .map(|((n, _), f)| format!("only {n} of {} graphs have a {}", self.graphs, f.name))
            .collect()
    }
}

impl std::fmt::Display for Census {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (graphs, large, depth) = (self.graphs, self.large, self.depth);
        writeln!(
            f,
            "{graphs} graphs, {large} of them large, nested up to {depth} deep"
        )?;
        for ((n, all), feature) in self.features.iter().zip(FEATURES) {
            writeln!(f, "  {:28} in {n:>6} graphs, {all:>6} times", feature.name)?;
        }
        Ok(())
    }
}
