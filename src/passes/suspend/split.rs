//! Cutting blocks at barriers.

use crate::ssa::{Block, BlockCall, Function, Input, Op, Term, Ty};

/// The function after the cut.
pub(super) struct Pieces {
    /// Blocks such that a value's definition came before its uses before the cut: pieces of a block follow each other.
    pub(super) order: Vec<Block>,
    /// The block that ends with each barrier, and the one that goes on after it.
    pub(super) suspends: Vec<(Block, Block)>,
}

/// True when a block of `order` has a barrier.
pub(super) fn has_barriers(f: &Function, order: &[Block]) -> bool {
    let mut insts = order.iter().flat_map(|&b| &f.block(b).insts);
    insts.any(|&i| f.inst(i).op == Op::Barrier)
}

/// Cuts every block of `order` (a reverse post order) at its barriers and adds the switch.
pub(super) fn run(f: &mut Function, order: &[Block]) -> Pieces {
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
        cut(f, b, &mut pieces);
    }
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

fn cut(f: &mut Function, mut b: Block, pieces: &mut Pieces) {
    loop {
        pieces.order.push(b);
        let mut insts = f.block(b).insts.iter();
        let Some(at) = insts.position(|&i| f.inst(i).op == Op::Barrier) else {
            return;
        };
        let resume = f.new_block();
        let state = pieces.suspends.len() as u32 + 1;
        let line = f.inst(f.block(b).insts[at]).line;
        let data = f.block_mut(b);
        let rest = data.insts.split_off(at + 1);
        data.insts.pop();
        let term = std::mem::replace(&mut data.term, Term::Suspend(state));
        let term_line = std::mem::replace(&mut data.term_line, line);
        let data = f.block_mut(resume);
        (data.insts, data.term, data.term_line) = (rest, term, term_line);
        pieces.suspends.push((b, resume));
        b = resume;
    }
}
