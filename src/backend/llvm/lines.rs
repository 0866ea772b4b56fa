//! Source lines: given to LLVM as debug information, and read back from the object it makes.

use gimli::{DebugLine, DebugLineOffset, LittleEndian};
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::debug_info::{
    AsDIScope, DIFlags, DIFlagsConstants, DIScope, DWARFEmissionKind, DWARFSourceLanguage,
    DebugInfoBuilder, debug_metadata_version,
};
use inkwell::module::{FlagBehavior, Module};
use inkwell::values::FunctionValue;

use crate::lines::LineTable;

/// Gives instructions their lines.
pub(super) struct Lines<'c> {
    cx: &'c Context,
    info: DebugInfoBuilder<'c>,
    scope: DIScope<'c>,
}

impl<'c> Lines<'c> {
    /// For instructions of `func`.
    pub(super) fn new(cx: &'c Context, module: &Module<'c>, func: FunctionValue<'c>) -> Lines<'c> {
        let i32_type = cx.i32_type();
        let version = u64::from(debug_metadata_version());
        for (name, value) in [("Debug Info Version", version), ("Dwarf Version", 4)] {
            let value = i32_type.const_int(value, false);
            module.add_basic_value_flag(name, FlagBehavior::Warning, value);
        }
        let (info, unit) = module.create_debug_info_builder(
            true,
            DWARFSourceLanguage::C,
            "kernel.visaasm",
            ".",
            "",
            true,
            "",
            0,
            "",
            DWARFEmissionKind::LineTablesOnly,
            0,
            false,
            false,
            "",
            "",
        );
        let file = unit.get_file();
        let none = DIFlags::ZERO;
        let ty = info.create_subroutine_type(file, None, &[], none);
        let scope = unit.as_debug_info_scope();
        let program = info.create_function(
            scope, "kernel", None, file, 0, ty, true, true, 0, none, true,
        );
        func.set_subprogram(program);
        Lines {
            cx,
            info,
            scope: program.as_debug_info_scope(),
        }
    }

    /// Line of the instructions that follow, 0 for none.
    pub(super) fn set(&self, builder: &Builder<'c>, line: u32) {
        let at = self
            .info
            .create_debug_location(self.cx, line, 0, self.scope, None);
        builder.set_current_debug_location(at);
    }

    /// Nothing follows any more.
    pub(super) fn finish(&self) {
        self.info.finalize();
    }
}

/// Lines of the code, from a `.debug_line` section whose only function
/// starts at offset 0 (its relocations need not be applied).
pub(super) fn read(section: &[u8], code_bytes: u64) -> Option<LineTable> {
    let lines = DebugLine::new(section, LittleEndian);
    let program = lines.program(DebugLineOffset(0), 8, None, None).ok()?;
    let mut rows = program.rows();
    let mut out = Vec::new();
    while let Some((_, row)) = rows.next_row().ok()? {
        let line = row.line().map_or(0, |l| l.get() as u32);
        // After the code are constants.
        if row.end_sequence() || row.address() >= code_bytes {
            out.push((code_bytes as u32, 0));
        } else {
            out.push((row.address() as u32, line));
        }
    }
    Some(LineTable::new(out))
}
