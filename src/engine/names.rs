//! What the buffers of a launch are called, and which of them an access misses.

use visa_runtime::abi::FLAT_OFFSET;
use visa_runtime::linked::ArgValue as Arg;
use visa_runtime::{DeviceMemory, Neighbour};

use super::fault::{FaultArgument, distance};
use super::kernel::Kernel;
use super::launch::Launch;
use crate::backend::Check;

/// Bytes with a name.
struct Named {
    start: u64,
    len: u64,
    called: Called,
}

/// A name for messages, and what else there is to say.
struct Called {
    name: String,
    place: String,
    argument: Option<FaultArgument>,
}

/// A buffer that an access has to do with.
pub(super) struct Meant {
    /// Where the access lies, and what the buffer is called.
    pub words: String,
    pub argument: Option<FaultArgument>,
}

/// What the buffers of a launch are called.
pub(super) struct Names {
    memory: DeviceMemory,
    named: Vec<Named>,
}

impl Kernel {
    /// The names of a launch's buffers, if its accesses are checked.
    pub(super) fn names(&self, launch: &Launch) -> Option<Names> {
        let engine = &self.parts().engine.0;
        let mut checks = [Check::Memory, Check::Race, Check::Init].into_iter();
        let needed = engine.options.suppress.name_arguments();
        if !needed && !checks.any(|check| engine.checks(check)) {
            return None;
        }
        let memory = engine.memory.clone();
        let known = &self.plan().arguments;
        let called = |index: u32| {
            let found = known.iter().find(|a| a.index == index);
            let name = found.map_or("", |a| a.name.as_str());
            Called::argument(index, name)
        };
        let of = |index: u32, arg: &Arg| match arg {
            Arg::Buffer(b) | Arg::Image(b, _) => Some((b.address(), b.len(), called(index))),
            Arg::Bytes(bytes) => pointee(&memory, bytes, || called(index)),
            _ => None,
        };
        let plain = |name: String| Called {
            name,
            place: String::new(),
            argument: None,
        };
        let arguments = launch
            .args
            .iter()
            .filter_map(|(&index, arg)| of(index, arg));
        let inputs = launch.inputs.iter().filter_map(|(name, bytes)| {
            pointee(&memory, bytes, || Called {
                place: "input".to_owned(),
                ..plain(format!("`{name}`"))
            })
        });
        let surfaces = launch.bound.surfaces.iter();
        let surfaces =
            surfaces.map(|(bti, b)| (b.address(), b.len(), plain(format!("surface {bti}"))));
        let loaded = &self.parts().data;
        let variables = loaded.data.buffers().zip(&loaded.image.sections);
        let variables = variables.map(|(b, section)| {
            let name = match section.read_only {
                true => "program-scope constants",
                false => "program-scope variables",
            };
            (b.address(), b.len(), plain(name.to_owned()))
        });
        let all = arguments.chain(inputs).chain(surfaces).chain(variables);
        let named = all.map(|(start, len, called)| Named { start, len, called });
        Some(Names {
            named: named.collect(),
            memory,
        })
    }
}

impl Called {
    fn argument(index: u32, name: &str) -> Called {
        let place = format!("argument {index}");
        let (shown, place) = match name {
            "" => (place, String::new()),
            name => (format!("`{name}`"), place),
        };
        let name = name.to_owned();
        Called {
            name: shown,
            place,
            argument: Some(FaultArgument { index, name }),
        }
    }
}

/// The buffer that begins at an address which is passed by value.
fn pointee(
    memory: &DeviceMemory,
    bytes: &[u8],
    called: impl FnOnce() -> Called,
) -> Option<(u64, u64, Called)> {
    let address = u64::from_le_bytes(bytes.try_into().ok()?);
    let found = memory.neighbour(address, 1)?;
    let inside = found.freed.is_none() && address.checked_sub(found.start)? < found.len;
    inside.then(|| (found.start, found.len, called()))
}

impl Names {
    /// What an access to device memory misses.
    pub(super) fn of_address(&self, address: u64, bytes: u32) -> Option<Meant> {
        // Addresses may carry tags, which say nothing of where they are.
        let base = self.memory.base();
        let address = base.wrapping_add(address.wrapping_sub(base) & FLAT_OFFSET);
        let found = self.memory.neighbour(address, bytes.into())?;
        if let Some(meant) = self.beside_part(address, bytes, &found) {
            return Some(meant);
        }
        let place = distance(address, bytes, found.start, found.len);
        let named = self.in_buffer(&found);
        let words = format!("{place} {}", Self::words(&found, named));
        Some(Meant::new(words, named))
    }

    /// What an access misses in a buffer of which the launch only has parts: the nearest of them.
    fn beside_part(&self, address: u64, bytes: u32, found: &Neighbour) -> Option<Meant> {
        let end = found.start.saturating_add(found.len);
        let inside = (found.start..end).contains(&address) && found.freed.is_none();
        let parts = self.named.iter();
        let parts =
            parts.filter(|n| inside && n.len < found.len && (found.start..end).contains(&n.start));
        let away = |n: &&Named| match address.checked_sub(n.start) {
            Some(at) => at.saturating_sub(n.len),
            None => n.start - address,
        };
        let part = parts.min_by_key(away)?;
        let at = distance(address, bytes, part.start, part.len);
        let words = format!(
            "{at} {}, part of a buffer of {} bytes",
            part.words(),
            found.len
        );
        Some(Meant::new(words, Some(part)))
    }

    /// The buffer that kernels only read and that an access to device memory is in.
    pub(super) fn of_read_only(&self, address: u64, bytes: u32) -> Option<Meant> {
        let base = self.memory.base();
        let address = base.wrapping_add(address.wrapping_sub(base) & FLAT_OFFSET);
        let found = self.memory.neighbour(address, bytes.into())?;
        let named = self.in_buffer(&found);
        let buffer = match named {
            Some(named) if named.len == found.len => format!("read-only {}", named.words()),
            _ => format!("{}, which is read-only", Self::words(&found, named)),
        };
        let at = address.wrapping_sub(found.start);
        Some(Meant::new(format!("byte {at} of {buffer}"), named))
    }

    /// Where an access to device memory is in a buffer.
    pub(super) fn at_address(&self, address: u64, bytes: u32) -> Option<Meant> {
        let inside = |n: &&Named| address.checked_sub(n.start).is_some_and(|at| at < n.len);
        let name = self.named.iter().find(inside)?;
        let at = distance(address, bytes, name.start, name.len);
        Some(Meant::new(format!("{at} {}", name.words()), Some(name)))
    }

    /// What an access to a surface misses; its place is the surface's first address and length.
    pub(super) fn of_surface(
        &self,
        place: Option<(u64, u64)>,
        offset: u64,
        bytes: u32,
    ) -> Option<Meant> {
        let (start, len) = place?;
        let same = |n: &&Named| n.start <= start && start - n.start <= n.len;
        let name = self.named.iter().find(same)?;
        let at = distance(offset, bytes, 0, len);
        let words = match name.len == len {
            true => format!("{at} {}", name.words()),
            false => format!("{at} {len} bytes of {}", name.words()),
        };
        Some(Meant::new(words, Some(name)))
    }

    /// What was passed of a buffer that is not freed.
    fn in_buffer(&self, found: &Neighbour) -> Option<&Named> {
        let part = |n: &&Named| n.start >= found.start && n.start - found.start <= found.len;
        let named = self.named.iter().find(part);
        named.filter(|_| found.freed.is_none())
    }

    /// A buffer, in words.
    fn words(found: &Neighbour, named: Option<&Named>) -> String {
        let len = found.len;
        match (named, found.freed) {
            (Some(named), _) if named.len < len => {
                format!("the buffer of {} ({len} bytes in all)", named.words())
            }
            (Some(named), _) => named.words(),
            (None, Some(freed)) => format!(
                "a buffer of {len} bytes that was allocated after {} and freed after {}",
                launches(found.made),
                launches(freed)
            ),
            (None, None) if found.hidden => format!("a buffer of {len} bytes of another context"),
            (None, None) => format!("a buffer of {len} bytes that is no argument"),
        }
    }
}

impl Meant {
    fn new(words: String, named: Option<&Named>) -> Meant {
        let argument = named.and_then(|named| named.called.argument.clone());
        Meant { words, argument }
    }
}

fn launches(n: u64) -> String {
    match n {
        1 => "1 launch".to_owned(),
        n => format!("{n} launches"),
    }
}

impl Named {
    /// `name` (size, place).
    fn words(&self) -> String {
        let (name, len) = (&self.called.name, self.len);
        match self.called.place.as_str() {
            "" => format!("{name} ({len} bytes)"),
            place => format!("{name} ({len} bytes, {place})"),
        }
    }
}
