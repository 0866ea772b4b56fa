//! Code that came with a kernel, in a library that was compiled ahead of time.

use std::sync::Arc;

use super::cache::{Compiled, Origin};
use super::error::Error;
use crate::backend::OobPolicy;
use crate::lower::LocalIdShape;
use visa_runtime::LocalIdLayout;
use visa_runtime::linked::{LinkedKernel, Variant};

/// A policy's name in records and on the command line.
pub(super) const fn policy_name(oob: OobPolicy) -> &'static str {
    match oob {
        OobPolicy::ReadZeroSkipWrite => "zero",
        OobPolicy::Trap => "trap",
        OobPolicy::Report => "report",
    }
}

/// A kernel that came with its code.
#[derive(Clone)]
pub(crate) struct Linked {
    pub kernel: LinkedKernel,
    /// In the order of the record's variants.
    pub codes: Vec<Arc<Compiled>>,
}

impl Linked {
    /// Code for launches of a shape. There is one policy, which the library was compiled with.
    pub(crate) fn code(
        &self,
        shape: LocalIdShape,
        oob: OobPolicy,
    ) -> Result<(Arc<Compiled>, Origin), Error> {
        let record = self.kernel.record();
        if record.oob != policy_name(oob) {
            return Err(Error::Unsupported {
                kernel: record.name.clone(),
                what: format!(
                    "accesses out of bounds handled as `{}`: the library was compiled for `{}`",
                    policy_name(oob),
                    record.oob
                ),
            });
        }
        let lanes = |simd: u16| match shape {
            LocalIdShape::Row => LocalIdLayout::Rows,
            LocalIdShape::FullRow | LocalIdShape::Full1d => LocalIdLayout::FullRows,
            LocalIdShape::Full2d(x) if x >= simd => LocalIdLayout::FullRows,
            LocalIdShape::General | LocalIdShape::ShortRows(_) | LocalIdShape::Full2d(_) => {
                LocalIdLayout::Any
            }
        };
        let fits = |v: &Variant| v.lanes <= lanes(v.meta.simd);
        let found = record.variants.iter().position(fits);
        let code = found.and_then(|i| self.codes.get(i));
        code.map(|code| (code.clone(), Origin::Library))
            .ok_or_else(|| Error::Internal {
                kernel: record.name.clone(),
                what: "no code for this launch in the library".to_owned(),
            })
    }
}
