//! Lines of the source that a module was compiled from: what `FILE` and `LOC` say.

use super::{Body, Inst, Module};
use crate::isa::Opcode;
use crate::lines::SourceMap;

impl Module {
    /// Which lines of source files the instructions came from. `FILE` and `LOC` hold for what follows in the text, whichever
    /// way control goes, up to the next ones or to the next function; `LOC 0` is for code that belongs to no line.
    pub fn source_map(&self) -> SourceMap {
        let (mut file, mut line) = (None, 0);
        let mut found = Vec::new();
        for (index, inst) in self.insts.iter().enumerate() {
            match &inst.body {
                Body::File(name) => file = Some(name.as_str()),
                Body::Loc(number) => line = *number,
                Body::Label(_) if self.starts_function(index, inst) => (file, line) = (None, 0),
                Body::Label(_) | Body::Lifetime { .. } => {}
                _ => found.push((inst.pos.line, file.map(|file| (file, line)))),
            }
        }
        SourceMap::new(found)
    }

    /// Whether a function that was linked in starts here.
    fn starts_function(&self, index: usize, inst: &Inst) -> bool {
        let entries = self.functions.iter().filter_map(|f| {
            let label = self.labels.get(f.entry.0 as usize)?;
            label.def
        });
        inst.op == Opcode::Subroutine && entries.into_iter().any(|def| def as usize == index)
    }
}
