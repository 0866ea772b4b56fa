//! Better code of a specialisation, which the background makes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::cache::{Compiled, Origin};

/// The better code of a specialisation, now or later.
#[derive(Default)]
pub(super) struct Upgrade {
    code: OnceLock<Result<Arc<Compiled>, String>>,
    /// The disk was looked at.
    looked: OnceLock<()>,
    /// The background was asked.
    asked: AtomicBool,
}

impl Upgrade {
    /// True the first time: whoever asks the background for the code says so here.
    pub(super) fn is_first_asked(&self) -> bool {
        !self.asked.swap(true, Ordering::Relaxed)
    }

    /// The code, if it is there.
    pub(super) fn code(&self) -> Option<&Arc<Compiled>> {
        self.code.get()?.as_ref().ok()
    }

    /// Why there will be none.
    pub(super) fn failure(&self) -> Option<&str> {
        self.code.get()?.as_ref().err().map(String::as_str)
    }

    /// The code, if it is in memory or what `load` gives, which is asked once.
    pub(super) fn found(
        &self,
        load: impl FnOnce() -> Option<Compiled>,
    ) -> Option<(Arc<Compiled>, Origin)> {
        let mut origin = Origin::Memory;
        self.looked.get_or_init(|| {
            if let Some(Ok(code)) = load().map(as_asked_for) {
                origin = Origin::Disk;
                self.put(Ok(code));
            }
        });
        self.code().map(|code| (code.clone(), origin))
    }

    pub(super) fn put(&self, made: Result<Arc<Compiled>, String>) {
        // What is there already is as good.
        let _ = self.code.set(made);
    }
}

/// Code, or the note that it was not made as asked for.
pub(super) fn as_asked_for(code: Compiled) -> Result<Arc<Compiled>, String> {
    match code.object.note {
        Some(note) => Err(note),
        None => Ok(Arc::new(code)),
    }
}
