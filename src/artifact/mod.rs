//! Compiled kernels as files: cache entries and the directory that holds them, object files and their C headers; what debuggers
//! are told of code in memory (`image.rs`).
//!
//! An entry is checked before any of it is used: header, key, and a digest over everything (`entry.rs`). [`Store`] shares
//! a directory with any number of processes; whatever is wrong with an entry makes it a miss, and the entry goes. A digest
//! tells damage, not malice: who can write to the directory decides what runs, so it has to be the user's own.
//!
//! Nothing here compiles or installs anything.

pub mod closing;
pub mod dwarf;
mod entry;
mod error;
mod header;
pub mod image;
mod key;
pub mod object;
mod store;

pub use entry::{Artifact, EntryKind, open, open_manifest, seal, seal_manifest};
pub use error::{Defect, StoreError};
pub use header::{c_header, passing};
pub use key::{Difference, Key};
pub use store::{EntryInfo, Store, Swept};
