//! `cache`, and the options of commands that use the cache of compiled kernels.

use std::env;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::{Args, Subcommand};

use super::FileArgs;
use super::backend::BackendArgs;
use super::exit::{Exit, Failure};
use super::run::{Oob, pick};
use visa_jit::artifact::{EntryInfo, EntryKind, Key, Store};
use visa_jit::engine::{DiskCache, Engine};

/// Overrides the user's cache directory.
const DIR_VARIABLE: &str = "VISA_JIT_CACHE_DIR";

/// Where compiled kernels are kept.
#[derive(Args, Debug)]
pub struct CacheArgs {
    /// The directory of compiled kernels; if left out, $VISA_JIT_CACHE_DIR, or a directory in the user's cache directory
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Size of the directory in MiB above which the least recently used entries are removed
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    cache_limit: Option<u64>,
}

/// The same for commands that do without.
#[derive(Args, Debug)]
pub struct OptionalCache {
    #[command(flatten)]
    place: CacheArgs,
    /// Do not use compiled kernels of earlier runs, and keep none for later runs
    #[arg(long)]
    no_cache: bool,
}

impl CacheArgs {
    /// The cache, if the user has a place for one.
    fn find(&self) -> Option<DiskCache> {
        let variable = || env::var_os(DIR_VARIABLE).filter(|dir| !dir.is_empty());
        let dir = self
            .cache_dir
            .clone()
            .or_else(|| variable().map(PathBuf::from));
        let cache = match dir {
            Some(dir) => DiskCache::at(dir),
            None => DiskCache::user()?,
        };
        let limit = self.cache_limit.map(|mib| mib.saturating_mul(1 << 20));
        Some(DiskCache {
            limit: limit.unwrap_or(cache.limit),
            ..cache
        })
    }

    fn required(&self) -> Result<DiskCache, Failure> {
        self.find().ok_or_else(|| {
            Failure::environment("this user has no cache directory; name one with --cache-dir")
        })
    }
}

impl OptionalCache {
    /// The cache to use.
    pub fn find(&self) -> Option<DiskCache> {
        if self.no_cache {
            return None;
        }
        self.place.find()
    }
}

/// What `cache` does.
#[derive(Subcommand, Debug)]
pub enum CacheCommand {
    /// List the kernels in the cache, the most recently used first
    List(CacheArgs),
    /// Say whether a file's kernels are in the cache, or how their keys differ from the nearest entries
    Why(Box<WhyArgs>),
    /// Check every entry and remove what is damaged
    Verify(CacheArgs),
    /// Remove all entries
    Clear(CacheArgs),
    /// Print the number of entries, their bytes and the limit
    Stats(CacheArgs),
}

/// Arguments of `cache why`.
#[derive(Args, Debug)]
pub struct WhyArgs {
    #[command(flatten)]
    file: FileArgs,
    /// One kernel of the file; all of them if left out
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// What an access out of bounds does, as for `run`
    #[arg(long, value_enum, default_value = "zero")]
    oob: Oob,
    #[command(flatten)]
    backend: BackendArgs,
    #[command(flatten)]
    place: CacheArgs,
}

/// Carries out a subcommand.
pub fn cache(command: &CacheCommand) -> Result<(String, Exit), Failure> {
    let fine = |text| Ok((text, Exit::Fine));
    match command {
        CacheCommand::List(args) => fine(listing(&args.required()?.store())),
        CacheCommand::Why(args) => fine(why(args)?),
        CacheCommand::Verify(args) => {
            let (count, bad) = args.required()?.store().verify();
            let exit = if bad.is_empty() {
                Exit::Fine
            } else {
                Exit::Faulted
            };
            Ok((verified(count, &bad), exit))
        }
        CacheCommand::Clear(args) => {
            let swept = args.required()?.store().clear();
            fine(format!(
                "removed {} entries, {} bytes\n",
                swept.entries, swept.bytes
            ))
        }
        CacheCommand::Stats(args) => fine(stats(&args.required()?.store())),
    }
}

fn listing(store: &Store) -> String {
    let mut out = String::new();
    for entry in store.entries() {
        let _ = match &entry.contents {
            Ok((key, _)) if entry.kind == EntryKind::Manifest => writeln!(
                out,
                "{}  {:>8} bytes of manifest  {:>5}  {}",
                short(key),
                entry.bytes,
                age(&entry),
                manifest_digest(key)
            ),
            Ok((key, code)) => writeln!(
                out,
                "{}  {:>8} bytes of code  {:>8}  {}",
                short(key),
                code,
                age(&entry),
                described(key)
            ),
            Err(defect) => writeln!(out, "{}: {defect}", entry.path.display()),
        };
    }
    out
}

fn short(key: &Key) -> String {
    key.hex().chars().take(12).collect()
}

/// How long ago an entry was used.
fn age(entry: &EntryInfo) -> String {
    let passed = SystemTime::now().duration_since(entry.used);
    let seconds = passed.map_or(0, |time| time.as_secs());
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds.wrapping_div(60)),
        7200..=172_799 => format!("{} h", seconds.wrapping_div(3600)),
        _ => format!("{} d", seconds.wrapping_div(86400)),
    }
}

/// Kernel, device, local ids, policy, backend of a key.
fn described(key: &Key) -> String {
    let parts: [&[&str]; 5] = [
        &["kernel", "meta", "name"],
        &["kernel", "device"],
        &["local_ids"],
        &["codegen", "oob"],
        &["backend", "name"],
    ];
    let shown = parts.map(|path| key.part(path).unwrap_or_else(|| "?".to_owned()));
    shown.join("  ")
}

/// Digest of the file and device of a manifest's key.
fn manifest_digest(key: &Key) -> String {
    let part = |name| key.part(&["file", name]).unwrap_or_default();
    let device = part("device");
    let device = if device.is_empty() {
        "as the file says".to_owned()
    } else {
        device
    };
    let digest: String = part("bytes").chars().take(12).collect();
    format!("file {digest}  {}  {device}", part("format"))
}

fn verified(count: u64, bad: &[EntryInfo]) -> String {
    let mut out = String::new();
    for entry in bad {
        if let Err(defect) = &entry.contents {
            let _ = writeln!(out, "removed {}: {defect}", entry.path.display());
        }
    }
    let good = count.saturating_sub(bad.len() as u64);
    let _ = writeln!(out, "{good} entries are good, {} were removed", bad.len());
    out
}

fn stats(store: &Store) -> String {
    let (bytes, entries) = store.size();
    format!(
        "directory  {}\nentries    {entries}\nbytes      {bytes}\nlimit      {}\nunfinished {}\n",
        store.root().display(),
        store.limit(),
        store.temporary()
    )
}

fn why(args: &WhyArgs) -> Result<String, Failure> {
    let cache = args.place.required()?;
    let store = cache.store();
    let mut options = args.backend.options()?;
    if options.interpret.is_some() {
        return Err(Failure::usage(
            "--backend interp compiles nothing: the cache holds what code generators make",
        ));
    }
    let file = args.file.load()?;
    let manifest = file.manifest_key().ok_or_else(|| {
        Failure::usage(format!(
            "{}: a library holds its code, and is not looked for in the cache",
            file.name
        ))
    })?;
    options.versions = file.versions;
    let engine = Engine::with_options(options)?;
    let program = file.program(&engine)?;
    let kernels = match &args.kernel {
        Some(name) => vec![pick(&file.name, &program, Some(name))?],
        None => program.kernels().iter().collect(),
    };
    let (mut codes, mut manifests) = (Vec::new(), Vec::new());
    for entry in store.entries() {
        let known = match entry.kind {
            EntryKind::Code => &mut codes,
            EntryKind::Manifest => &mut manifests,
        };
        known.extend(entry.contents.ok().map(|(key, _)| key));
    }
    let mut out = format!("{} (manifest of the program): ", file.name);
    match program.broken().first() {
        Some((kernel, error)) => {
            let _ = writeln!(
                out,
                "never in the cache, as kernel `{kernel}` cannot be loaded: {error}"
            );
        }
        None => explain(&mut out, &manifest, &manifests, manifest_digest),
    }
    let name = |key: &Key| key.part(&["kernel", "meta", "name"]).unwrap_or_default();
    for kernel in kernels {
        for (launches, key) in kernel.cache_keys(args.oob.into()) {
            let _ = write!(out, "{} ({launches}): ", kernel.name());
            explain(&mut out, &key, &codes, name);
        }
    }
    Ok(out)
}

/// Whether `key` is there, or what separates it from the key that has most in common with it.
fn explain(out: &mut String, key: &Key, known: &[Key], name: impl Fn(&Key) -> String) {
    if known.contains(key) {
        let _ = writeln!(out, "in the cache as {}", short(key));
        return;
    }
    let nearest = known
        .iter()
        .map(|other| (key.differences(other), other))
        .min_by_key(|(differences, _)| differences.len());
    let Some((differences, nearest)) = nearest else {
        let _ = writeln!(out, "not in the cache, which has none");
        return;
    };
    let _ = writeln!(
        out,
        "not in the cache; the nearest entry is {} ({}), which differs in",
        short(nearest),
        name(nearest)
    );
    for d in differences {
        let _ = writeln!(
            out,
            "  {}: {} here, {} there",
            d.path,
            or_none(&d.left),
            or_none(&d.right)
        );
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}
