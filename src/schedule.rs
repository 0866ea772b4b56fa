//! The order of straight-line code: list scheduling under a limit of registers. The pass `interleave` and the Cranelift backend use it.
//!
//! A chain of twenty dependent operations takes eighty cycles, and a processor's scheduler holds only two or three such chains that follow
//! each other. Chains side by side keep the processor busy, and too many of them spill.
//!
//! Instructions are put in order in two steps. The first is by demand (`Graph::demand`): the operand with the longest chain comes first, so
//! that sums are computed term by term, and loads come where they are used. The second issues instructions as a
//! processor with unlimited look-ahead would (`Issue`). It takes the first instruction, in the order of the first step, that
//! does not wait for an operand, unless more values would be live than there are registers. So the beginning of the next chain
//! fills the gaps of the one before, as long as registers last.
//!
//! Guarantees: an instruction stays behind what it depends on. Instructions with effects keep their order, and loads stay between the same
//! stores.

use std::collections::BTreeSet;

/// A value whose last use is at least `FAR` instructions away, in the order of demand, is assumed to be spilled.
const FAR: u32 = 64;
/// Instructions without unmet dependences that are looked at, in the order of demand.
const WINDOW: usize = 24;

/// The vector registers that code may use, and which code to order for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Vectors {
    /// Bits of one.
    pub bits: u32,
    /// How many there are.
    pub registers: u32,
    /// All code is put in order, not only what gains.
    pub all: bool,
}

/// What an instruction's result is kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Nothing that counts: no result, several, or a constant.
    None,
    Vector,
    Scalar,
}

/// How an instruction is ordered with others by what it does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    /// Reads memory, and cannot trap.
    Load,
    /// Anything else: stays behind all loads and effects before it, and in front of all after it.
    Other,
}

/// An instruction.
pub(crate) struct Node {
    /// Numbers of the instructions that make its operands.
    pub operands: Vec<u32>,
    pub effect: Effect,
    /// It is a constant, which is made in front of its first use.
    pub constant: bool,
    pub class: Class,
    /// Half cycles to the first instruction that can use its result.
    pub latency: u32,
    /// Half cycles that a unit is busy with it, and registers that its result takes.
    pub size: u32,
}

/// Instructions and what each depends on.
#[derive(Default)]
pub(crate) struct Graph {
    /// Operands, and what has to come before for the sake of memory.
    before: Vec<Vec<u32>>,
    /// Of these, how many are operands, which come first.
    operands: Vec<usize>,
    constant: Vec<bool>,
    class: Vec<Class>,
    latency: Vec<u32>,
    size: Vec<u32>,
    /// Where to start from: effects in order, then what the end of the block or other blocks use.
    roots: Vec<u32>,
    /// The last effect, and the loads behind it.
    barrier: Option<u32>,
    loads: Vec<u32>,
}

impl Graph {
    /// Adds the next instruction.
    pub(crate) fn push(&mut self, node: Node) {
        let n = self.before.len() as u32;
        let mut before = node.operands;
        self.operands.push(before.len());
        match node.effect {
            Effect::None => {}
            Effect::Load => {
                before.extend(self.barrier);
                self.loads.push(n);
            }
            Effect::Other => {
                before.extend(self.barrier);
                before.append(&mut self.loads);
                self.barrier = Some(n);
                self.roots.push(n);
            }
        }
        self.before.push(before);
        self.constant.push(node.constant);
        self.class.push(node.class);
        self.latency.push(node.latency);
        self.size.push(node.size);
    }

    /// The numbers of all instructions in their new order. `used_at_end` names those whose results are used behind all of them; `vectors`
    /// is how many registers there are for vectors.
    pub(crate) fn order(mut self, used_at_end: Vec<u32>, vectors: u32) -> Vec<u32> {
        self.roots.extend(used_at_end);
        // What only other blocks use.
        self.roots.extend(0..self.before.len() as u32);
        let order = self.demand();
        Issue::new(&self, &order, vectors).run(&order)
    }

    /// The instructions from roots down to their operands, that with the longest chain first.
    fn demand(&self) -> Vec<u32> {
        let mut height = vec![0u32; self.before.len()];
        for n in 0..height.len() {
            let longest = self.before[n].iter().map(|&b| height[b as usize]).max();
            height[n] = longest.unwrap_or(0) + self.latency[n];
        }
        let mut order = Vec::with_capacity(height.len());
        let mut seen = vec![false; height.len()];
        let mut stack: Vec<(u32, Vec<u32>)> = Vec::new();
        // Operands are taken from the end.
        let by_height = |n: u32| {
            let mut before: Vec<u32> = self.before[n as usize].iter().rev().copied().collect();
            before.sort_by_key(|&b| height[b as usize]);
            before
        };
        for &root in &self.roots {
            if std::mem::replace(&mut seen[root as usize], true) {
                continue;
            }
            stack.push((root, by_height(root)));
            while let Some((n, operands)) = stack.last_mut() {
                match operands.pop() {
                    Some(b) if std::mem::replace(&mut seen[b as usize], true) => {}
                    Some(b) => {
                        let below = by_height(b);
                        stack.push((b, below));
                    }
                    None => {
                        order.push(*n);
                        stack.pop();
                    }
                }
            }
        }
        order
    }
}

/// Instructions on their way out.
struct Issue<'g> {
    graph: &'g Graph,
    /// Place of each in the order of demand.
    place: Vec<u32>,
    /// Which depend on it, once for each time.
    after: Vec<Vec<u32>>,
    /// Dependences that are not issued yet.
    unmet: Vec<u32>,
    /// Operands that are not issued yet, of its users.
    uses: Vec<u32>,
    /// Whether it takes a register while it has uses.
    counted: Vec<bool>,
    /// Half cycle from which on all operands are there.
    start: Vec<u32>,
    issued: Vec<bool>,
    /// Places of those without unmet dependences.
    ready: BTreeSet<u32>,
    live: [u32; 2],
    limit: [u32; 2],
    now: u32,
}

/// Registers for scalars that the results of a block may take.
const SCALARS: u32 = 9;

impl<'g> Issue<'g> {
    fn new(graph: &'g Graph, order: &[u32], vectors: u32) -> Issue<'g> {
        let len = order.len();
        let mut place = vec![0; len];
        for (p, &n) in (0u32..).zip(order) {
            place[n as usize] = p;
        }
        let mut after: Vec<Vec<u32>> = vec![Vec::new(); len];
        let (mut uses, mut farthest) = (vec![0u32; len], vec![0u32; len]);
        let mut unmet = vec![0u32; len];
        for n in 0..len {
            for (k, &b) in graph.before[n].iter().enumerate() {
                let b = b as usize;
                if graph.constant[b] {
                    continue;
                }
                unmet[n] += 1;
                after[b].push(n as u32);
                if k < graph.operands[n] {
                    uses[b] += 1;
                    farthest[b] = farthest[b].max(place[n]);
                }
            }
        }
        let counted = (0..len)
            .map(|n| graph.class[n] != Class::None && farthest[n].saturating_sub(place[n]) < FAR);
        let counted = counted.collect();
        let ready = (0..len).filter(|&n| unmet[n] == 0 && !graph.constant[n]);
        let ready = ready.map(|n| place[n]).collect();
        Issue {
            graph,
            place,
            after,
            unmet,
            uses,
            counted,
            start: vec![0; len],
            issued: vec![false; len],
            ready,
            live: [0; 2],
            limit: [vectors, SCALARS],
            now: 0,
        }
    }

    fn run(mut self, order: &[u32]) -> Vec<u32> {
        let mut out = Vec::with_capacity(order.len());
        while let Some(n) = self.choose(order) {
            self.issue(n, &mut out);
        }
        // Constants that nothing here uses.
        out.extend(order.iter().filter(|&&n| !self.issued[n as usize]));
        out
    }

    /// The next instruction.
    fn choose(&self, order: &[u32]) -> Option<u32> {
        let mut soonest: Option<u32> = None;
        for &p in self.ready.iter().take(WINDOW) {
            let n = order[p as usize];
            if !self.fits(n) {
                continue;
            }
            let start = self.start[n as usize];
            if start <= self.now {
                return Some(n);
            }
            if soonest.is_none_or(|s| start < self.start[s as usize]) {
                soonest = Some(n);
            }
        }
        soonest.or_else(|| self.ready.first().map(|&p| order[p as usize]))
    }

    /// Whether registers are left for it, or it frees as many as it takes.
    fn fits(&self, n: u32) -> bool {
        let change = self.change(n);
        (0..2).all(|c| change[c] <= 0 || self.live[c] as i32 + change[c] <= self.limit[c] as i32)
    }

    /// How many more values are live after an instruction than in front of it, by class.
    fn change(&self, n: u32) -> [i32; 2] {
        let mut change = [0; 2];
        let operands = self.operands(n);
        for (k, &b) in operands.iter().enumerate() {
            let times = operands.iter().filter(|&&o| o == b).count() as u32;
            let first = !operands[..k].contains(&b);
            if first && self.counted[b as usize] && self.uses[b as usize] == times {
                change[self.index(b)] -= self.size(b);
            }
        }
        if self.counted[n as usize] && self.uses[n as usize] > 0 {
            change[self.index(n)] += self.size(n);
        }
        change
    }

    fn operands(&self, n: u32) -> &'g [u32] {
        let n = n as usize;
        &self.graph.before[n][..self.graph.operands[n]]
    }

    /// Registers of a result, as a change.
    fn size(&self, n: u32) -> i32 {
        self.graph.size[n as usize] as i32
    }

    fn index(&self, n: u32) -> usize {
        usize::from(self.graph.class[n as usize] == Class::Scalar)
    }

    fn issue(&mut self, n: u32, out: &mut Vec<u32>) {
        let change = self.change(n);
        for (live, by) in self.live.iter_mut().zip(change) {
            *live = live.saturating_add_signed(by);
        }
        for &b in self.operands(n) {
            let b = b as usize;
            if !self.graph.constant[b] {
                self.uses[b] -= 1;
            } else if !std::mem::replace(&mut self.issued[b], true) {
                out.push(b as u32);
            }
        }
        out.push(n);
        let n = n as usize;
        self.issued[n] = true;
        self.ready.remove(&self.place[n]);
        let at = self.now.max(self.start[n]);
        self.now = at + self.graph.size[n];
        for &a in &self.after[n] {
            let a = a as usize;
            self.start[a] = self.start[a].max(at + self.graph.latency[n]);
            self.unmet[a] -= 1;
            if self.unmet[a] == 0 {
                self.ready.insert(self.place[a]);
            }
        }
    }
}
