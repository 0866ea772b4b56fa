//! What can be wrong with entries and their directory.

use std::path::PathBuf;

/// Why an entry is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// There is none.
    #[error("not there")]
    Absent,
    /// It is a directory, a link or a device.
    #[error("not a regular file")]
    NotAFile,
    /// The system does not let it be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// Not as long as its header says, or shorter than one.
    #[error("{found} bytes instead of {wanted}")]
    Length {
        /// Bytes there are.
        found: u64,
        /// Bytes there should be.
        wanted: u64,
    },
    /// Something else.
    #[error("not a cache entry")]
    Magic,
    /// Written by another version of the format.
    #[error("format {0} instead of {current}", current = super::entry::FORMAT)]
    Format(u32),
    /// Header, key or code were changed.
    #[error("the digest does not match the contents")]
    Digest,
    /// It was made from something else than what is asked for.
    #[error("made for another key")]
    Key,
    /// The metadata cannot be decoded.
    #[error("malformed metadata")]
    Metadata,
}

impl Defect {
    /// One word for tables.
    pub fn kind(&self) -> &'static str {
        match self {
            Defect::Absent => "absent",
            Defect::NotAFile => "not a file",
            Defect::Unreadable(_) => "unreadable",
            Defect::Length { .. } => "length",
            Defect::Magic => "magic",
            Defect::Format(_) => "format",
            Defect::Digest => "digest",
            Defect::Key => "key",
            Defect::Metadata => "metadata",
        }
    }
}

/// Why a cache directory is not used, or not written to.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another user could put code there.
    #[error("{}: {what}; no other user may be able to change code in a cache", path.display())]
    Untrusted {
        /// Directory.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// An operation failed.
    #[error("cannot {verb} {}: {error}", path.display())]
    Io {
        /// What was tried.
        verb: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The process may not write files this large.
    #[error("an entry of {bytes} bytes is larger than {limit}, the limit on {what}")]
    TooLarge {
        /// Bytes of the entry.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
        /// Allowed by what.
        what: &'static str,
    },
}
