//! Makes a failing kernel smaller.

use super::{Kernel, Node};

/// Drops statements, and takes bodies out of branches and loops, as long as `fails` holds.
pub fn reduce(kernel: &Kernel, mut fails: impl FnMut(&Kernel) -> bool) -> Kernel {
    let mut best = kernel.clone();
    loop {
        let mut smaller = false;
        for part in [Part::Body, Part::Subroutine] {
            let mut at = 0;
            while at < count(part.of(&mut best)) {
                let tried = [Edit::Drop, Edit::Unwrap, Edit::Shorten]
                    .into_iter()
                    .find_map(|edit| candidate(&best, part, at, edit).filter(|k| fails(k)));
                match tried {
                    Some(k) => {
                        best = k;
                        smaller = true;
                    }
                    None => at += 1,
                }
            }
        }
        if !smaller {
            return best;
        }
    }
}

#[derive(Clone, Copy)]
enum Part {
    Body,
    Subroutine,
}

impl Part {
    fn of(self, kernel: &mut Kernel) -> &mut Vec<Node> {
        match self {
            Part::Body => &mut kernel.body,
            Part::Subroutine => &mut kernel.subroutine,
        }
    }
}

#[derive(Clone, Copy)]
enum Edit {
    /// Without the statement.
    Drop,
    /// Its bodies instead of it.
    Unwrap,
    /// The first line of several.
    Shorten,
}

fn candidate(kernel: &Kernel, part: Part, at: usize, edit: Edit) -> Option<Kernel> {
    let mut k = kernel.clone();
    let changed = apply(part.of(&mut k), &mut at.clone(), edit)?;
    changed.then_some(k)
}

fn count(nodes: &[Node]) -> usize {
    let one = |n: &Node| match n {
        Node::Lines(_) => 1,
        Node::Branch { body, other, .. } => 1 + count(body) + count(other),
        Node::Loop { body, .. } => 1 + count(body),
    };
    nodes.iter().map(one).sum()
}

/// Edits the statement number `at`, counted through the tree; `None` if it is not in these.
fn apply(nodes: &mut Vec<Node>, at: &mut usize, edit: Edit) -> Option<bool> {
    for i in 0..nodes.len() {
        if *at == 0 {
            return Some(edit_one(nodes, i, edit));
        }
        *at -= 1;
        let inside = match &mut nodes[i] {
            Node::Lines(_) => None,
            Node::Branch { body, other, .. } => {
                let first = apply(body, at, edit);
                if first.is_some() {
                    first
                } else {
                    apply(other, at, edit)
                }
            }
            Node::Loop { body, .. } => apply(body, at, edit),
        };
        if inside.is_some() {
            return inside;
        }
    }
    None
}

fn edit_one(nodes: &mut Vec<Node>, i: usize, edit: Edit) -> bool {
    match edit {
        Edit::Drop => {
            nodes.remove(i);
            true
        }
        Edit::Unwrap => {
            let inner = match &nodes[i] {
                Node::Lines(_) => return false,
                Node::Branch { body, other, .. } => [body.clone(), other.clone()].concat(),
                Node::Loop { body, .. } => body.clone(),
            };
            nodes.splice(i..=i, inner);
            true
        }
        Edit::Shorten => match &mut nodes[i] {
            Node::Lines(lines) if lines.len() > 1 => {
                lines.remove(0);
                true
            }
            Node::Branch { setup, .. } if !setup.is_empty() => {
                setup.clear();
                true
            }
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_what_is_left() {
        let kernel = crate::kernels::generate::kernel(4);
        let all = kernel.text();
        let needle = all
            .lines()
            .filter(|l| l.contains("LANE") || l.contains("V0_ud"))
            .find(|l| {
                !l.contains("oword")
                    && !l.contains(".decl")
                    && !l.contains(".input")
                    && !l.contains("setp")
                    && !l.contains("OFF")
            })
            .unwrap()
            .trim()
            .to_owned();
        let small = reduce(&kernel, |k| k.text().contains(&needle));
        assert!(small.size() <= 6, "{}", small.text());
        assert!(small.text().contains(&needle));
    }
}
