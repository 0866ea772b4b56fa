//! Tiering: launches run Cranelift's code at once, and LLVM's as soon as a thread in the background has compiled it.
//!
//! Both compute the same bits, except those of NaNs. An engine with tiers has a second engine on the same memory, whose code generator is LLVM.
//! It compiles each specialisation once. If the disk has LLVM's code, that is used at once, and Cranelift does not compile. A launch runs code of
//! one of them from start to end. Everything that belongs to code, such as sites of faults and sizes of frames, comes from the code that runs.
//!
//! If LLVM fails, Cranelift's code stays, and reports of launches have a note. The same holds if LLVM compiled with less effort than asked for,
//! as it does for large kernels, because such code need not be faster.
//!
//! A child process that `fork` made has no background thread, and its parent's thread may have held locks at the fork. So a child waits for
//! nothing here: launches prepared in the child run Cranelift's code, and launches prepared before the fork keep the code that they have.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::cache::{Compiled, Origin};
use super::error::Error;
use super::kernel::{Kernel, KernelParts};
use super::state::Tier;
use super::upgrade::{Upgrade, as_asked_for};
use crate::backend::OobPolicy;
use crate::lower::LocalIdShape;

impl Kernel {
    /// Code of the general specialisation.
    ///
    /// # Errors
    /// When the kernel cannot be lowered or compiled.
    pub fn code(&self, oob: OobPolicy) -> Result<Arc<Compiled>, Error> {
        self.compiled(LocalIdShape::General, oob).map(|(c, _)| c)
    }

    /// Code of a specialisation, and where it was.
    pub(crate) fn compiled(
        &self,
        shape: LocalIdShape,
        oob: OobPolicy,
    ) -> Result<(Arc<Compiled>, Origin), Error> {
        if let Some(linked) = self.linked() {
            self.unchecked("machine code of a library")?;
            return linked.code(shape, oob);
        }
        self.tiered(shape, oob)
    }

    /// True if the code of a specialisation is there, or known not to be had.
    pub(super) fn is_compiled(&self, shape: LocalIdShape, oob: OobPolicy) -> bool {
        let cache = &self.parts().engine.0.cache;
        self.linked().is_some()
            || cache.has(&self.cache_key(shape, oob))
            || self.is_upgraded(shape, oob)
    }

    /// The same kernel for the better code generator. Variables are the same memory.
    fn better(&self, tier: &Tier) -> &Kernel {
        self.0.better.get_or_init(|| {
            let parts = self.parts();
            Kernel::new(KernelParts {
                engine: tier.engine.clone(),
                manifest: parts.manifest.clone(),
                data: parts.data.clone(),
                source: parts.source.clone(),
            })
        })
    }

    /// The tier above this kernel's code, where there is one.
    fn tier(&self) -> Option<&Tier> {
        let tier = self.parts().engine.0.tier.as_ref()?;
        (self.linked().is_none() && tier.is_here()).then_some(tier)
    }

    /// What tells when there is better code of a specialisation; none where launches are not tiered.
    pub(super) fn upgrade(&self, shape: LocalIdShape, oob: OobPolicy) -> Option<Arc<Upgrade>> {
        let tier = self.tier()?;
        let key = self.better(tier).cache_key(shape, oob);
        Some(tier.upgrade(key))
    }

    /// Whether better code of a specialisation is in memory.
    fn is_upgraded(&self, shape: LocalIdShape, oob: OobPolicy) -> bool {
        let upgrade = self.upgrade(shape, oob);
        upgrade.is_some_and(|upgrade| upgrade.code().is_some())
    }

    /// The best code of a specialisation that there is.
    fn tiered(
        &self,
        shape: LocalIdShape,
        oob: OobPolicy,
    ) -> Result<(Arc<Compiled>, Origin), Error> {
        let (Some(tier), Some(upgrade)) = (self.tier(), self.upgrade(shape, oob)) else {
            return self.own_code(shape, oob);
        };
        let load = || self.better(tier).from_disk(shape, oob);
        let Some((code, origin)) = upgrade.found(load) else {
            return self.own_code(shape, oob);
        };
        self.parts().engine.0.cache.count(origin);
        Ok((code, origin))
    }

    /// Has the background compile better code of a specialisation, which a launch runs now without.
    pub(super) fn ask_for(&self, upgrade: &Arc<Upgrade>, shape: LocalIdShape, oob: OobPolicy) {
        let Some(tier) = self.tier() else { return };
        if !upgrade.is_first_asked() {
            return;
        }
        if let Err(error) = tier.engine.0.backend.prepare() {
            upgrade.put(Err(error.to_string()));
            return;
        }
        let (kernel, made) = (self.better(tier).clone(), upgrade.clone());
        let compile = Box::new(move || made.put(kernel.compiled_for_later(shape, oob)));
        if let Err(error) = tier.background.ask(compile) {
            upgrade.put(Err(format!("no thread to compile with: {error}")));
        }
    }

    /// Code of a specialisation, compiled in the background. A panic there would reach no caller, so it becomes the reason why there is none.
    fn compiled_for_later(
        &self,
        shape: LocalIdShape,
        oob: OobPolicy,
    ) -> Result<Arc<Compiled>, String> {
        let codegen = self.codegen(oob);
        let compile = || self.compile(shape, &codegen);
        match catch_unwind(AssertUnwindSafe(compile)) {
            Ok(Ok(code)) => as_asked_for(code),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("a panic while it was compiled".to_owned()),
        }
    }
}
