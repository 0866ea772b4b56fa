//! What a run found, in the terms of its kernel: lines, names of buffers.

use std::collections::BTreeMap;

use super::fault::{
    AccessSite, DEVICE_MEMORY, FaultRecord, compiled_site, init, interpreted_site, kind_name,
    meeting, race, space_of,
};
use super::names::Meant;
use super::setup::{Code, Setup};
use visa_runtime::{FaultKind, LaunchReport, Uninit};

/// A run of a prepared launch, by the code that ran.
#[derive(Clone, Copy)]
pub(super) struct Ran<'a> {
    pub launch: &'a Setup,
    pub code: &'a Code,
}

impl Ran<'_> {
    /// Records of faults that no rule leaves out.
    pub(super) fn unsuppressed(&self, r: &LaunchReport) -> impl Iterator<Item = FaultRecord> {
        let rules = &self.launch.kernel.parts().engine.0.options.suppress;
        let records = r.faults.iter().map(|f| self.record(f, &r.fault_sites));
        records.filter(|record| rules.is_empty() || !rules.cover(record))
    }

    /// How many faults rules leave out: all of an instruction where they are counted by instruction, else those of which there are records.
    pub(super) fn suppressed(&self, r: &LaunchReport) -> u64 {
        let rules = &self.launch.kernel.parts().engine.0.options.suppress;
        if rules.is_empty() {
            return 0;
        }
        // Of an instruction and a kind, how many there are, and of how many records rules leave out how many.
        let mut counts: BTreeMap<(u32, FaultKind), (u64, u64, u64)> = BTreeMap::new();
        for f in &r.faults {
            let (_, records, covered) = counts.entry((f.site, f.kind)).or_default();
            *records += 1;
            *covered += u64::from(rules.cover(&self.record(f, &r.fault_sites)));
        }
        for (&at, &count) in &r.fault_sites {
            counts.entry(at).or_default().0 = count;
        }
        let suppressed = counts.iter().map(|(&at, &(count, records, covered))| {
            let all = match records {
                0 => self.rules_cover(at),
                _ => records == covered,
            };
            if all && count > 0 { count } else { covered }
        });
        suppressed.sum()
    }

    /// Whether rules leave out all findings of a kind of an instruction of which there is no record.
    fn rules_cover(&self, (site, kind): (u32, FaultKind)) -> bool {
        let rules = &self.launch.kernel.parts().engine.0.options.suppress;
        let line = self.access_site(site).line;
        let source = self.code.source(&self.launch.kernel, line);
        let what = (kind_name(kind), self.launch.kernel.name());
        rules.covers(what, (line, source.as_ref()), None)
    }

    /// Where a site of the code is.
    fn access_site(&self, site: u32) -> AccessSite {
        let place = match self.code {
            Code::Compiled { code, .. } => code.sites.get(site as usize).map(compiled_site),
            Code::Interpreted(code) => code.program.site(site).map(interpreted_site),
        };
        place.unwrap_or(AccessSite::UNKNOWN)
    }

    /// The buffer that an access misses, in launches that check that.
    fn buffer(&self, f: &visa_runtime::Fault, place: &AccessSite) -> Option<Meant> {
        let names = self.launch.names.as_ref()?;
        match place.surface {
            true => {
                let surface = self.launch.arguments.surfaces.get(f.surface);
                names.of_surface(surface, f.address, place.bytes)
            }
            false if place.space != DEVICE_MEMORY => None,
            false => match f.kind {
                FaultKind::Race | FaultKind::LaneRace | FaultKind::Misaligned => {
                    names.at_address(f.address, place.bytes)
                }
                FaultKind::ReadOnly => names.of_read_only(f.address, place.bytes),
                _ => names.of_address(f.address, place.bytes),
            },
        }
    }

    /// What something that is not initialised came from.
    fn origin(&self, from: Uninit) -> Meant {
        let plain = |words: String| Meant {
            words,
            argument: None,
        };
        if let Uninit::Memory(at) = from {
            let private = self.launch.own.private();
            let offset = private.and_then(|b| at.checked_sub(b.address()).filter(|o| *o < b.len()));
            let buffer = self
                .launch
                .names
                .as_ref()
                .and_then(|names| names.at_address(at, 1));
            return match (offset, buffer) {
                (Some(_), _) => plain("private memory".to_owned()),
                (None, Some(buffer)) => Meant {
                    words: format!("memory {}", buffer.words),
                    ..buffer
                },
                (None, None) => plain(format!("{DEVICE_MEMORY} at {at:#x}")),
            };
        }
        plain(match self.code {
            Code::Interpreted(code) => code.program.uninit(from),
            Code::Compiled { .. } => space_of(from).to_owned(),
        })
    }

    fn record(
        &self,
        f: &visa_runtime::Fault,
        sites: &BTreeMap<(u32, FaultKind), u64>,
    ) -> FaultRecord {
        let place = self.access_site(f.site);
        let line = |site| {
            let line = self.access_site(site).line;
            match self.code.source(&self.launch.kernel, line) {
                Some(source) => format!("line {line} ({source})"),
                None => format!("line {line}"),
            }
        };
        let surface = place.surface.then_some(f.surface);
        let meant = match f.kind {
            kind if kind.is_init() => f.uninit.map(|from| self.origin(from)),
            kind if kind.is_barrier() => None,
            _ => self.buffer(f, &place),
        };
        let (buffer, argument) = meant.map(|m| (m.words, m.argument)).unzip();
        FaultRecord {
            kernel: self.launch.kernel.name().to_owned(),
            line: place.line,
            source: self.code.source(&self.launch.kernel, place.line),
            opcode: place.opcode,
            access: place.access,
            space: f.uninit.map_or(place.space, space_of),
            surface,
            address: if f.kind.is_barrier() { 0 } else { f.address },
            bytes: place.bytes,
            alignment: place.alignment,
            group: f.group,
            local_id: f.local_id,
            global_id: f.global_id,
            thread: f.thread,
            lane: f.lane,
            kind: f.kind,
            about: match f.kind {
                kind if kind.is_init() => buffer.map(|from| init(kind, &from)),
                kind if kind.is_barrier() => meeting(f, line),
                kind if kind.is_race() => {
                    let there = |site| {
                        let other = self.access_site(site);
                        format!("the `{}` {} in {}", other.opcode, other.access, line(site))
                    };
                    race(f, there, buffer)
                }
                _ => buffer,
            },
            argument: argument.flatten(),
            site: f.site,
            count: sites.get(&(f.site, f.kind)).copied(),
        }
    }
}
