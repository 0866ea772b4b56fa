//! Cutting blocks where threads wait.

use crate::ssa::{Block, BlockCall, Exchange, Function, Input, Inst, Op, Term, Ty};

/// The function after the cut.
pub(super) struct Pieces {
    /// Blocks such that a value's definition came before its uses before the cut: pieces of a block follow each other.
    pub(super) order: Vec<Block>,
    /// The block that ends with each suspension, and the one that goes on after it, in the order of the states.
    pub(super) suspends: Vec<(Block, Block)>,
}

fn instructions<'f>(f: &'f Function, order: &'f [Block]) -> impl Iterator<Item = Inst> + 'f {
    order.iter().flat_map(|&b| &f.block(b).insts).copied()
}

/// True when threads wait in a block of `order`.
pub(super) fn waits(f: &Function, order: &[Block]) -> bool {
    instructions(f, order).any(|i| f.inst(i).op.waits())
}

/// The part of the frame for what is exchanged, after what is there already; adds it.
fn area(f: &mut Function, order: &[Block]) {
    let exchanges = instructions(f, order).map(|i| f.inst(i));
    let given = exchanges
        .filter(|data| data.op == Op::Exchange)
        .map(|data| data.args[0]);
    let Some(bytes) = given.map(|v| f.ty(v).frame_bytes()).max() else {
        return;
    };
    let (offset, bytes) = (
        f.frame_bytes.next_multiple_of(16),
        bytes.next_multiple_of(16),
    );
    f.frame_bytes = offset + 2 * bytes;
    f.exchange = Some(Exchange {
        offset,
        bytes,
        lines: Vec::new(),
    });
}

/// Cuts every block of `order` (a reverse post order) where threads wait, and adds the switch.
pub(super) fn run(f: &mut Function, order: &[Block]) -> Pieces {
    area(f, order);
    let barriers = instructions(f, order).filter(|&i| f.inst(i).op == Op::Barrier);
    let mut next = Next {
        barrier: 1,
        exchange: barriers.count() as u32 + 1,
    };
    let start = f.new_block();
    // The first block becomes the switch; the program starts in a new one.
    let data = f.block_mut(Function::ENTRY);
    let insts = std::mem::take(&mut data.insts);
    let term = std::mem::replace(&mut data.term, Term::None);
    let line = std::mem::take(&mut data.term_line);
    let data = f.block_mut(start);
    (data.insts, data.term, data.term_line) = (insts, term, line);
    let mut pieces = Pieces {
        order: Vec::new(),
        suspends: Vec::new(),
    };
    for &b in order {
        let b = if b == Function::ENTRY { start } else { b };
        cut(f, b, &mut next, &mut pieces);
    }
    pieces
        .suspends
        .sort_unstable_by_key(|&(b, _)| match f.block(b).term {
            Term::Suspend(state) => state,
            _ => 0,
        });
    f.order = [Function::ENTRY]
        .into_iter()
        .chain(pieces.order.iter().copied())
        .collect();
    f.states = pieces.suspends.len() as u32;
    let state = Op::Input(Input::State);
    let index = f.push1(Function::ENTRY, state, Vec::new(), Ty::I32, 0);
    let call = |block| BlockCall {
        block,
        args: Vec::new(),
    };
    let resumes = pieces.suspends.iter().map(|&(_, resume)| resume);
    f.block_mut(Function::ENTRY).term = Term::Switch {
        index,
        targets: [start].into_iter().chain(resumes).map(call).collect(),
        default: call(start),
    };
    pieces
}

/// States that come next. Barriers have the first ones, so that the runtime can tell the two.
struct Next {
    barrier: u32,
    exchange: u32,
}

fn cut(f: &mut Function, mut b: Block, next: &mut Next, pieces: &mut Pieces) {
    loop {
        pieces.order.push(b);
        let mut insts = f.block(b).insts.iter();
        let Some(at) = insts.position(|&i| f.inst(i).op.waits()) else {
            return;
        };
        let resume = f.new_block();
        let waiting = f.block(b).insts[at];
        let line = f.inst(waiting).line;
        let mut rest = f.block_mut(b).insts.split_off(at + 1);
        f.block_mut(b).insts.pop();
        let counter = match f.inst(waiting).op {
            Op::Exchange => &mut next.exchange,
            _ => &mut next.barrier,
        };
        let state = *counter;
        *counter += 1;
        if f.inst(waiting).op == Op::Exchange {
            exchange(f, b, waiting);
            rest.insert(0, waiting);
        }
        let data = f.block_mut(b);
        let term = std::mem::replace(&mut data.term, Term::Suspend(state));
        let term_line = std::mem::replace(&mut data.term_line, line);
        let data = f.block_mut(resume);
        (data.insts, data.term, data.term_line) = (rest, term, term_line);
        pieces.suspends.push((b, resume));
        b = resume;
    }
}

/// Stores what an exchange at the end of `b` gives, and makes a load of it.
fn exchange(f: &mut Function, b: Block, waiting: Inst) {
    let line = f.inst(waiting).line;
    let (offset, bytes) = match &mut f.exchange {
        Some(e) => {
            e.lines.push(line);
            (e.offset, e.bytes)
        }
        None => return,
    };
    let data = f.inst_mut(waiting);
    data.op = Op::FrameLoad(offset + bytes);
    let given = std::mem::take(&mut data.args);
    f.push(b, Op::FrameStore(offset), given, &[], line);
}
