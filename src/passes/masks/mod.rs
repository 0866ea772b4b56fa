//! Mask facts: what lanes can observe, and which masks rejoin to which.
//!
//! Guarantees, as far as [`facts`] can prove the relations between masks:
//! - execution masks, however they are carried around, are lanes of the dispatch mask, and in a loop of the mask that an iteration
//!   began with ([`ceilings`]);
//! - a select, or the mask of an `and`, that no reader can see the other side of is dropped ([`demand`]);
//! - the union of the lanes that left a loop and those that stay is the mask the loop started with, and
//!   likewise at joins of branches ([`partition`]);
//! - a branch on `maskany` is decided where a dominating branch tells ([`branches`]).
//!
//! Relations that need arithmetic, and masks in integer registers, are not looked into.

mod branches;
mod ceilings;
mod demand;
mod facts;
mod partition;

pub(in crate::passes) use facts::{Fact, Facts};

use crate::ssa::Function;
use crate::ssa::dom::DomTree;

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let dom = DomTree::new(f);
    let mut facts = facts::Facts::default();
    let mut changes = partition::run(f, &dom, &mut facts);
    f.resolve_aliases();
    changes += demand::run(f, &dom, &mut facts);
    changes += branches::run(f, &dom, &mut facts);
    f.resolve_aliases();
    changes
}

/// What is known about the masks of a function, which stays as it is.
pub(super) fn facts(f: &Function, dom: &DomTree) -> Facts {
    let mut facts = Facts::default();
    ceilings::run(f, dom, &mut facts);
    facts
}
