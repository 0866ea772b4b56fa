//! Software prefetch: which loads fetch what the next threads will load, and which fetch what they load themselves.
//!
//! Threads of a group run one after the other. If addresses are affine, the next thread's bytes mostly follow this one's. A
//! processor's own prefetcher finds such streams, but not reliably between accesses to many other pages: with a gather from 1
//! MiB, each thread waited for its indices.
//!
//! On AMD's Zen 5, that prefetcher does not follow masked loads at all: of a loop in C that reads 64 MiB a line at a time, plain loads
//! reach 35 GB/s, masked ones 7, and masked ones with a fetch of the same line in front 33. In the first-level cache the fetch costs
//! what one more load does.

use rustc_hash::FxHashSet;

use super::axes::Prefetch;
use crate::ssa::dom::DomTree;
use crate::ssa::{Block, Function, Inst, Op, Space};

/// Bytes of a line of the cache.
pub(super) const LINE: u32 = 64;

/// What the loads of a function fetch.
pub(super) struct Fetches {
    wanted: Prefetch,
    /// Loads that fetch what the next threads will load.
    ahead: FxHashSet<Inst>,
    /// Loads of memory that may be far away, in loops.
    in_loops: FxHashSet<Inst>,
}

impl Fetches {
    pub(super) fn new(f: &Function, wanted: Prefetch) -> Fetches {
        let (mut ahead, mut in_loops) = (FxHashSet::default(), FxHashSet::default());
        if wanted != Prefetch::None {
            let loops = Loops::new(f);
            let insts = |b: Block| f.block(b).insts.iter().copied();
            let anywhere = f.order.iter().any(|&b| insts(b).any(|i| is_any(f, i)));
            let far = |&i: &Inst| matches!(f.inst(i).op, Op::Load(m) if is_large(m.space));
            for &b in &f.order {
                if loops.contain(b) {
                    in_loops.extend(insts(b).filter(far));
                } else if anywhere {
                    // What comes next in a loop is mostly of the same thread.
                    ahead.extend(insts(b).filter(|&i| is_stream(f, i)));
                }
            }
        }
        Fetches {
            wanted,
            ahead,
            in_loops,
        }
    }

    /// Whether a load fetches what the next threads will load.
    pub(super) fn is_ahead(&self, inst: Inst) -> bool {
        self.ahead.contains(&inst)
    }

    /// Whether a load under a mask fetches its own lines. Loads of less than a line do not.
    ///
    /// A load becomes a masked one for certain if it gives zeros to lanes that are off. Others only may, and those fetch outside of
    /// loops only: in loops over data in the caches it cost up to 10 %.
    pub(super) fn is_first(&self, inst: Inst, zeros: bool, space: Space, bytes: u32) -> bool {
        let maybe = zeros || !self.in_loops.contains(&inst);
        self.wanted != Prefetch::None && maybe && is_large(space) && bytes >= LINE
    }
}

/// Memory that is large enough to be far away.
const fn is_large(space: Space) -> bool {
    matches!(space, Space::Surface | Space::Flat)
}

/// Whether an instruction accesses memory at any addresses.
fn is_any(f: &Function, i: Inst) -> bool {
    let space = match f.inst(i).op {
        Op::Load(m) | Op::Store(m) => m.space,
        Op::Atomic(m) => m.space,
        _ => return false,
    };
    let shape = f.shapes.get(&i).copied().unwrap_or_default();
    let known = shape.addr.is_some() || shape.speculative.is_some();
    is_large(space) && !known && !f.ty(f.inst(i).args[1]).is_scalar()
}

/// Whether an instruction loads consecutive bytes, at least a line.
fn is_stream(f: &Function, i: Inst) -> bool {
    let Op::Load(m) = f.inst(i).op else {
        return false;
    };
    let affine = f.shapes.get(&i).and_then(|shape| shape.addr);
    let bytes = u32::from(m.comps) * m.elem.bytes();
    let lanes = u32::from(f.ty(f.inst(i).args[1]).lanes);
    is_large(m.space)
        && bytes * lanes >= LINE
        && affine.is_some_and(|affine| affine.stride == i64::from(bytes))
}

/// Blocks that may be in loops: those between the ends of edges back, in reverse post order.
struct Loops {
    tree: DomTree,
    ranges: Vec<(u32, u32)>,
}

impl Loops {
    fn new(f: &Function) -> Loops {
        let tree = DomTree::new(f);
        let mut ranges = Vec::new();
        for &b in tree.rpo() {
            for call in f.block(b).term.targets() {
                let (from, to) = (tree.position(b), tree.position(call.block));
                if to <= from {
                    ranges.push((to, from));
                }
            }
        }
        Loops { tree, ranges }
    }

    fn contain(&self, b: Block) -> bool {
        let at = self.tree.position(b);
        let mut ranges = self.ranges.iter();
        !self.tree.reachable(b) || ranges.any(|&(from, to)| (from..=to).contains(&at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::Value;
    use crate::ssa::parse;
    use crate::ssa::shape::{Affine, Shape};

    const HEAD: &str = r#"function "f" simd 16 frame 64
site 0 = read flat 4 "lsc_load" line 1

bb0:
  %0: <16 x i1> = input.dispatchmask
  %1: i64 = input.payload[0]
  %2: <16 x i64> = splat %1
  %3: i1 = const 1
  %4: <16 x i32> = load.flat.i32x1[0] %0, %2
  %5: <16 x i64> = zext %4
"#;

    /// Which loads fetch ahead, by their results. The first one is affine with this stride, and others are if their results are among `affine`.
    fn found(body: &str, stride: i64, affine: &[u32]) -> Vec<u32> {
        let mut f = parse(&format!("{HEAD}{body}")).unwrap();
        let insts: Vec<Inst> = f
            .order
            .iter()
            .flat_map(|&b| f.block(b).insts.clone())
            .collect();
        for i in insts {
            let result = f.inst(i).results.first().map_or(u32::MAX, |v| v.0);
            if matches!(f.inst(i).op, Op::Load(_)) && (result == 4 || affine.contains(&result)) {
                let addr = Some(Affine {
                    base: Value(1),
                    stride,
                    guard: None,
                });
                f.shapes.insert(
                    i,
                    Shape {
                        addr,
                        ..Shape::default()
                    },
                );
            }
        }
        let ahead = |wanted| {
            let fetches = Fetches::new(&f, wanted);
            let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
            let found = insts.filter(|&&i| fetches.is_ahead(i));
            let mut found: Vec<u32> = found.map(|&i| f.inst(i).results[0].0).collect();
            found.sort_unstable();
            found
        };
        assert!(ahead(Prefetch::None).is_empty());
        assert_eq!(ahead(Prefetch::Auto), ahead(Prefetch::Streams));
        ahead(Prefetch::Auto)
    }

    #[test]
    fn loads_fetch_ahead_where_others_go_anywhere() {
        let gather = "  %6: <16 x i32> = load.flat.i32x1[0] %0, %5\n  return\n";
        assert_eq!(found(gather, 4, &[]), [4]);
        // The other one is affine too, or there is none, or it is in local memory.
        assert!(found(gather, 4, &[6]).is_empty());
        assert!(found("  return\n", 4, &[]).is_empty());
        let local = "  %6: <16 x i32> = load.slm.i32x1[0] %0, %4\n  return\n";
        assert!(found(local, 4, &[]).is_empty());
        let scatter = "  store.flat.i32x1[0] %0, %5, %4\n  return\n";
        assert_eq!(found(scatter, 4, &[]), [4]);
        let atomic = "  %6: <16 x i32> = atomic.flat.add.i32[0] %0, %5, %4\n  return\n";
        assert_eq!(found(atomic, 4, &[]), [4]);
    }

    #[test]
    fn only_streams_fetch_ahead() {
        let more =
            |of: &str| format!("  %6: <16 x i32> = load.flat.i32x1[0] %0, %5\n{of}  return\n");
        for stride in [0, 8, -4] {
            assert!(found(&more(""), stride, &[]).is_empty());
        }
        let short = more("  %7: <16 x i16> = load.flat.i16x1[0] %0, %2\n");
        assert_eq!(found(&short, 2, &[7]), [] as [u32; 0]);
        let local = more("  %7: <16 x i32> = load.slm.i32x1[0] %0, %4\n");
        assert_eq!(found(&local, 4, &[7]), [4]);
    }

    #[test]
    fn loops_do_not_fetch_ahead() {
        let body = "  jump bb1\nbb1:\n  %6: <16 x i32> = load.flat.i32x1[0] %0, %2\n  %7: <16 x i32> = load.flat.i32x1[0] %0, %5\n  \
                    branch %3, bb1, bb2\nbb2:\n  %8: <16 x i32> = load.flat.i32x1[0] %0, %2\n  return\n";
        assert_eq!(found(body, 4, &[6, 8]), [4, 8]);
    }

    #[test]
    fn loads_under_masks_fetch_their_lines() {
        let body = "  jump bb1\nbb1:\n  %6: <16 x i32> = load.flat.i32x1[0] %0, %2\n  branch %3, bb1, bb2\nbb2:\n  return\n";
        let f = parse(&format!("{HEAD}{body}")).unwrap();
        let loads: Vec<Inst> = f
            .order
            .iter()
            .flat_map(|&b| f.block(b).insts.clone())
            .filter(|&i| matches!(f.inst(i).op, Op::Load(_)))
            .collect();
        let [outside, inside] = loads[..] else {
            panic!("two loads");
        };
        let fetches = Fetches::new(&f, Prefetch::Auto);
        assert!(fetches.is_first(outside, false, Space::Flat, 64));
        assert!(!fetches.is_first(inside, false, Space::Flat, 64));
        assert!(fetches.is_first(inside, true, Space::Surface, 128));
        // In local memory, or less than a line.
        assert!(!fetches.is_first(outside, true, Space::Slm, 64));
        assert!(!fetches.is_first(outside, true, Space::Flat, 32));
        let none = Fetches::new(&f, Prefetch::None);
        assert!(!none.is_first(outside, true, Space::Flat, 64));
    }
}
