//! Whether strips pay, and how many lanes they have.

use rustc_hash::FxHashMap;

use super::region::Region;
use crate::ssa::{BinOp, Function, Inst, InstData, Op, Value};

/// Lanes of a strip where nothing waits.
const STRIP: u16 = 8;

/// Operations on 128 bits that a strip has at least. Smaller strips lose.
///
/// Of the bench cases for bmg, `kmeans` and `q8-dot` gain 1.3 and 1.7 times with 990 and 1,070; `cholesky-double` takes 1.7 times as long with 460.
const MANY: u32 = 900;

/// Operations that a strip has for each cycle of its longest chains, so that a processor has enough to do while it waits.
///
/// Large cases with 6 and more gain up to 1.8 times, or lose at most 5 %. `crc32-table`, with 1, takes 1.9 times as long.
const ABREAST: f64 = 5.0;

/// Operations on 128 bits of regions that gain with fewer operations for each cycle, too.
const LARGE: u32 = 10_000;

/// Operations for each cycle of the longest chains of large regions. Chains of code that branches jump over count, too, so there are more than it says.
///
/// `math` and `conv2d`, with 11,800 to 11,900 operations and 1.7 of them for each cycle, gain 1.3 to 1.5 times; `utf8-count`, with 13,100 and 1.2, takes 1.4 times as
/// long; `asian-option`, with 7,300 and 1.7, takes 1.3 times as long.
const ABREAST_IN_LARGE: f64 = 1.5;

/// How many lanes strips of a region have, if it gains by them; with `always` if there are any.
pub(super) fn strip(f: &Function, region: &Region, always: bool) -> Option<u16> {
    if f.simd <= STRIP || !f.simd.is_multiple_of(STRIP) {
        return None;
    }
    let (operations, cycles) = region.insts(f).fold((0, 0), |(operations, cycles), insts| {
        let here = insts.iter().map(|&i| pieces(f, f.inst(i)));
        (operations + here.sum::<u32>(), cycles + chain(f, insts))
    });
    let strips = u32::from(f.simd / STRIP);
    let abreast = f64::from(operations) / f64::from((cycles * strips).max(1));
    let pays = operations >= MANY * strips && abreast >= ABREAST
        || operations >= LARGE && abreast >= ABREAST_IN_LARGE;
    (pays || always && operations > 0).then_some(STRIP)
}

/// Operations on 128 bits that an instruction takes for all lanes.
fn pieces(f: &Function, data: &InstData) -> u32 {
    let wide = data.results.iter().map(|&r| f.ty(r));
    let wide = wide.filter(|ty| ty.lanes == f.simd);
    wide.map(|ty| ty.bytes().div_ceil(16)).sum()
}

/// Cycles of the longest chain of dependent instructions.
fn chain(f: &Function, insts: &[Inst]) -> u32 {
    let mut ready: FxHashMap<Value, u32> = FxHashMap::default();
    let mut longest = 0;
    for data in insts.iter().map(|&i| f.inst(i)) {
        let operands = data.args.iter().filter_map(|a| ready.get(a));
        let at = operands.max().copied().unwrap_or(0) + latency(f, data);
        longest = longest.max(at);
        ready.extend(data.results.iter().map(|&r| (r, at)));
    }
    longest
}

/// Cycles from an instruction to the first that can use its result, about as on today's processors.
fn latency(f: &Function, data: &InstData) -> u32 {
    let float = data.results.iter().any(|&r| f.ty(r).lane.is_float());
    match data.op {
        Op::Const(_) | Op::VecConst(_) | Op::Bitcast | Op::Input(_) => 0,
        Op::Load(_) | Op::BlockLoad(_) => 6,
        Op::Binary(BinOp::Mul) => 8,
        Op::Binary(_) | Op::Unary(_) | Op::Fma | Op::Convert(_) if float => 4,
        Op::FCmp(_) | Op::Convert(_) => 4,
        Op::Splat | Op::ExtractLane(_) => 2,
        _ => 1,
    }
}
