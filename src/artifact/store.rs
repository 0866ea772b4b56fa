//! The cache directory: a file for each key, shared by any number of processes without locks.
//!
//! A file appears under its name complete or not at all (temporary file, sync, rename), and is checked whenever it is
//! read. Whatever fails leaves the caller where it was: without an entry. The size is bounded; entries that were not used
//! for longest go first.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::entry::{self, Artifact, EntryKind};
use super::error::{Defect, StoreError};
use super::key::Key;

/// Directory for files that are being written.
const TEMPORARY: &str = "tmp";
/// Age at which a temporary file has no writer any more.
const ABANDONED: Duration = Duration::from_secs(15 * 60);
/// Entries are marked as used at most this often.
const USE_RESOLUTION: Duration = Duration::from_secs(3600);
/// Largest entry that is read.
const MAX_ENTRY_BYTES: u64 = 512 << 20;
/// A process looks at the directory's size after writing this part of the limit, and now and then besides.
const SWEEP_PART: u64 = 16;

/// A cache directory.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    limit: u64,
    /// Bytes written since the size was last looked at.
    written: AtomicU64,
}

/// An entry as it was found.
#[derive(Clone, Debug)]
pub struct EntryInfo {
    /// What it is.
    pub kind: EntryKind,
    /// The file.
    pub path: PathBuf,
    /// Key and bytes of code (0 of a manifest), or what is wrong.
    pub contents: Result<(Key, u64), Defect>,
    /// Bytes of the file.
    pub bytes: u64,
    /// When it was written or last used (within an hour).
    pub used: SystemTime,
}

/// What a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Entries removed.
    pub entries: u64,
    /// Bytes removed.
    pub bytes: u64,
    /// Abandoned temporary files removed.
    pub temporary: u64,
}

/// A file in the directory, unread.
struct Slot {
    kind: EntryKind,
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Store {
    /// The store in directory `root`, which need not exist, of about `limit` bytes.
    pub fn new(root: PathBuf, limit: u64) -> Store {
        Store {
            root,
            limit,
            written: AtomicU64::new(0),
        }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Bytes it may hold.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Where the code of a key is.
    pub fn path(&self, key: &Key) -> PathBuf {
        self.entry_path(EntryKind::Code, key)
    }

    fn entry_path(&self, kind: EntryKind, key: &Key) -> PathBuf {
        let hex = key.hex();
        let (first, rest) = hex.split_at(2);
        let name = format!("{rest}{}", kind.suffix());
        self.root.join(first).join(name)
    }

    /// The code of a key. An entry that cannot be used is removed.
    ///
    /// # Errors
    /// Why there is none.
    pub fn load(&self, key: &Key) -> Result<Artifact, Defect> {
        self.open(EntryKind::Code, key, |bytes| entry::open(bytes, key))
    }

    /// The manifest of a key. An entry that cannot be used is removed.
    ///
    /// # Errors
    /// Why there is none.
    pub fn load_manifest<T: DeserializeOwned>(&self, key: &Key) -> Result<T, Defect> {
        let open = |bytes: &[u8]| entry::open_manifest(bytes, key);
        self.open(EntryKind::Manifest, key, open)
    }

    fn open<T>(
        &self,
        kind: EntryKind,
        key: &Key,
        open: impl FnOnce(&[u8]) -> Result<T, Defect>,
    ) -> Result<T, Defect> {
        self.trust().map_err(|error| match error {
            StoreError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound => {
                Defect::Absent
            }
            other => Defect::Unreadable(other.to_string()),
        })?;
        let path = self.entry_path(kind, key);
        let found = read(&path).and_then(|(bytes, file, found)| {
            let contents = open(&bytes)?;
            mark_used(&file, &found);
            Ok(contents)
        });
        if found
            .as_ref()
            .is_err_and(|defect| *defect != Defect::Absent)
        {
            remove(&path);
        }
        found
    }

    /// Writes the code of a key.
    ///
    /// # Errors
    /// [`StoreError`]; whatever was there before is still there or gone, and nothing is half written.
    pub fn save(&self, key: &Key, artifact: &Artifact) -> Result<(), StoreError> {
        self.put(EntryKind::Code, key, entry::seal(key, artifact))
    }

    /// Writes the manifest of a key.
    ///
    /// # Errors
    /// As [`Store::save`].
    pub fn save_manifest(&self, key: &Key, manifest: &impl Serialize) -> Result<(), StoreError> {
        self.put(
            EntryKind::Manifest,
            key,
            entry::seal_manifest(key, manifest),
        )
    }

    fn put(
        &self,
        kind: EntryKind,
        key: &Key,
        sealed: Result<Vec<u8>, Defect>,
    ) -> Result<(), StoreError> {
        let path = self.entry_path(kind, key);
        let bytes = sealed.map_err(|defect| StoreError::Io {
            verb: "encode",
            path: path.clone(),
            error: io::Error::other(defect),
        })?;
        self.write(&path, key, &bytes)?;
        let length = bytes.len() as u64;
        let written = self.written.fetch_add(length, Ordering::Relaxed) + length;
        // Processes that write one entry each must look as well, though not all of them.
        let chosen = u64::from(key.digest()[0]) % SWEEP_PART == 0;
        if chosen || written >= self.limit / SWEEP_PART {
            self.written.store(0, Ordering::Relaxed);
            self.sweep();
        }
        Ok(())
    }

    fn write(&self, path: &Path, key: &Key, bytes: &[u8]) -> Result<(), StoreError> {
        let length = bytes.len() as u64;
        let limits = [
            (self.limit, "the cache"),
            (MAX_ENTRY_BYTES, "entries"),
            // Beyond this one the system sends a signal.
            (file_size_limit(), "the size of files"),
        ];
        for (limit, what) in limits {
            if length > limit {
                return Err(StoreError::TooLarge {
                    bytes: length,
                    limit,
                    what,
                });
            }
        }
        let temporary = self.root.join(TEMPORARY);
        // A directory that is not this user's gets nothing, not even empty directories.
        make_dir(&self.root).map_err(io_error("create", &self.root))?;
        self.trust()?;
        for dir in [path.parent().unwrap_or(&self.root), &temporary] {
            make_dir(dir).map_err(io_error("create", dir))?;
        }
        let temporary = temporary.join(temporary_name(key));
        let written = write_synced(&temporary, bytes).and_then(|()| {
            fs::rename(&temporary, path).or_else(|error| {
                // Something that a file does not replace, such as a directory.
                remove(path);
                fs::rename(&temporary, path).map_err(|_| error)
            })
        });
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            io_error("write", path)(error)
        })
    }

    /// Checks that the directory is this user's, and that no other user may write to it.
    fn trust(&self) -> Result<(), StoreError> {
        let found = fs::metadata(&self.root).map_err(io_error("look at", &self.root))?;
        match distrust(&found) {
            None => Ok(()),
            Some(what) => Err(StoreError::Untrusted {
                path: self.root.clone(),
                what,
            }),
        }
    }

    /// Every entry, the most recently used first, each checked.
    pub fn entries(&self) -> Vec<EntryInfo> {
        let mut slots = self.slots();
        slots.sort_by(|a, b| b.used.cmp(&a.used).then_with(|| a.path.cmp(&b.path)));
        slots.into_iter().map(|slot| self.info(slot)).collect()
    }

    fn info(&self, slot: Slot) -> EntryInfo {
        let contents = read(&slot.path)
            .and_then(|(bytes, ..)| entry::inspect(slot.kind, &bytes))
            .and_then(|(key, code)| {
                let named = self.entry_path(slot.kind, &key) == slot.path;
                named.then_some((key, code)).ok_or(Defect::Key)
            });
        EntryInfo {
            kind: slot.kind,
            path: slot.path,
            contents,
            bytes: slot.bytes,
            used: slot.used,
        }
    }

    /// Checks every entry and removes those that cannot be used; they are returned.
    pub fn verify(&self) -> (u64, Vec<EntryInfo>) {
        let all = self.entries();
        let count = all.len() as u64;
        let bad: Vec<EntryInfo> = all.into_iter().filter(|e| e.contents.is_err()).collect();
        for entry in &bad {
            remove(&entry.path);
        }
        (count, bad)
    }

    /// Removes everything that a store may have put there, and the directories if that leaves them empty.
    pub fn clear(&self) -> Swept {
        let mut swept = Swept::default();
        for slot in self.slots() {
            if remove(&slot.path) {
                swept.entries += 1;
                swept.bytes += slot.bytes;
            }
        }
        swept.temporary = self.remove_temporary(Duration::ZERO);
        for dir in self.shards() {
            let _ = fs::remove_dir(dir);
        }
        let _ = fs::remove_dir(self.root.join(TEMPORARY));
        let _ = fs::remove_dir(&self.root);
        swept
    }

    /// Bytes of all entries, and how many there are.
    pub fn size(&self) -> (u64, u64) {
        let slots = self.slots();
        (slots.iter().map(|s| s.bytes).sum(), slots.len() as u64)
    }

    /// Temporary files: being written, or left by processes that were killed.
    pub fn temporary(&self) -> u64 {
        list(&self.root.join(TEMPORARY)).len() as u64
    }

    /// Removes the entries that were not used for longest until the size is below the limit, and abandoned files.
    pub fn sweep(&self) -> Swept {
        let mut slots = self.slots();
        let mut size: u64 = slots.iter().map(|s| s.bytes).sum();
        let mut swept = Swept {
            temporary: self.remove_temporary(ABANDONED),
            ..Swept::default()
        };
        if size <= self.limit {
            return swept;
        }
        // Some room, so that the next entry does not find the cache full again.
        let wanted = self.limit - self.limit / SWEEP_PART;
        slots.sort_by_key(|slot| slot.used);
        for slot in slots {
            if size <= wanted {
                break;
            }
            if remove(&slot.path) {
                swept.entries += 1;
                swept.bytes += slot.bytes;
            }
            size = size.saturating_sub(slot.bytes);
        }
        swept
    }

    fn remove_temporary(&self, age: Duration) -> u64 {
        let old = |path: &PathBuf| {
            let modified = fs::symlink_metadata(path).and_then(|m| m.modified());
            modified.is_ok_and(|time| time.elapsed().is_ok_and(|passed| passed >= age))
        };
        let files = list(&self.root.join(TEMPORARY)).into_iter();
        files.filter(old).filter(|path| remove(path)).count() as u64
    }

    /// Directories of entries.
    fn shards(&self) -> Vec<PathBuf> {
        let named = |path: &PathBuf| name(path).is_some_and(|n| n.len() == 2 && is_hex(n));
        list(&self.root).into_iter().filter(named).collect()
    }

    fn slots(&self) -> Vec<Slot> {
        let kind = |path: &Path| {
            let name = name(path)?;
            EntryKind::ALL.into_iter().find(|kind| {
                let hex = name.strip_suffix(kind.suffix());
                hex.is_some_and(|n| n.len() == 62 && is_hex(n))
            })
        };
        let slot = |path: PathBuf| {
            let kind = kind(&path)?;
            let found = fs::symlink_metadata(&path).ok()?;
            Some(Slot {
                kind,
                bytes: found.len(),
                used: found.modified().unwrap_or(UNIX_EPOCH),
                path,
            })
        };
        let files = self.shards().into_iter().flat_map(|dir| list(&dir));
        files.filter_map(slot).collect()
    }
}

fn name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn list(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

fn io_error(verb: &'static str, path: &Path) -> impl Fn(io::Error) -> StoreError {
    let path = path.to_owned();
    move |error| StoreError::Io {
        verb,
        path: path.clone(),
        error,
    }
}

/// Removes a file, or whatever else stands in its place; false when that fails.
fn remove(path: &Path) -> bool {
    fs::remove_file(path)
        .or_else(|_| fs::remove_dir_all(path))
        .is_ok()
}

fn read(path: &Path) -> Result<(Vec<u8>, File, fs::Metadata), Defect> {
    let file = open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Defect::Absent,
        // What a link opened without following it gives.
        _ if fs::symlink_metadata(path).is_ok_and(|m| !m.is_file()) => Defect::NotAFile,
        _ => Defect::Unreadable(error.to_string()),
    })?;
    let unreadable = |error: io::Error| Defect::Unreadable(error.to_string());
    let found = file.metadata().map_err(unreadable)?;
    if !found.is_file() {
        return Err(Defect::NotAFile);
    }
    if found.len() > MAX_ENTRY_BYTES {
        return Err(Defect::Length {
            found: found.len(),
            wanted: MAX_ENTRY_BYTES,
        });
    }
    let mut bytes = Vec::with_capacity(found.len() as usize);
    let mut limited = (&file).take(MAX_ENTRY_BYTES);
    limited.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok((bytes, file, found))
}

/// Opens for reading what may be anything: links are not followed, and pipes not waited for.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.custom_flags(flags.bits() as i32);
    }
    options.open(path)
}

fn mark_used(file: &File, found: &fs::Metadata) {
    let now = SystemTime::now();
    let modified = found.modified();
    if modified.is_ok_and(|m| now.duration_since(m).is_ok_and(|age| age > USE_RESOLUTION)) {
        // An entry that cannot be marked goes a little earlier.
        let _ = file.set_modified(now);
    }
}

fn make_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A name that no other writer uses.
fn temporary_name(key: &Key) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // Processes in containers that share the directory may have the same number.
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |time| time.subsec_nanos());
    let id = std::process::id();
    format!("{}-{id}-{now}-{count}", key.hex().split_at(16).0)
}

#[cfg(unix)]
fn distrust(found: &fs::Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let (owner, me) = (found.uid(), rustix::process::geteuid().as_raw());
    if !found.is_dir() {
        Some("not a directory".to_owned())
    } else if owner != me {
        Some(format!("belongs to user {owner}, not to user {me}"))
    } else if found.mode() & 0o022 != 0 {
        Some("others than its owner may write to it".to_owned())
    } else {
        None
    }
}

#[cfg(not(unix))]
fn distrust(found: &fs::Metadata) -> Option<String> {
    (!found.is_dir()).then(|| "not a directory".to_owned())
}

#[cfg(unix)]
fn file_size_limit() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

#[cfg(not(unix))]
fn file_size_limit() -> u64 {
    u64::MAX
}
