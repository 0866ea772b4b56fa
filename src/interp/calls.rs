//! Stack calls: `fcall` and `ifcall` of functions, and how deep calls may be inside each other (docs/visa.md, "Control flow").
//!
//! What functions share is the predefined variables: `%arg`, `%retval`, `%sp`, `%fp` …; prologues and frames in memory
//! are explicit instructions. An activation of a function has the variables that the function declares to itself: they
//! are kept while it waits for a call that may lead back to it. Subroutines of `call` use the variables of the function
//! that they are part of.
//!
//! Decided here, as the specification leaves it open:
//! * A stack call of several channels is made by the lanes of its execution mask; one of one channel takes all lanes of
//!   the thread into the function, and the lanes that made it go on afterwards.
//! * An address that no function has, or a function whose address was not taken, calls nothing.
//! * Lanes with different addresses call one function after the other.
//! * What a callee writes through an address into its caller's variables stays there if the call cannot lead back, and
//!   is gone after the return if it can.
//! * Calls that may lead back to where they stand are limited in depth. One that would be deeper is not made, and is
//!   reported as a write to the null address. The call that the kernel's body makes does not count.

use std::collections::BTreeMap;
use std::ops::Range;

use super::access::Memory;
use super::control::Entry;
use super::error::{Halt, InterpError};
use super::flow::Places;
use super::init;
use super::lanes::{ChannelBits, bits, up};
use super::machine::Machine;
use super::state::{Layout, Thread};
use crate::isa::Opcode;
use crate::module::{Body, Inst, Module, Src};
use crate::valid::{RootId, ValidKernel};

/// Bytes of registers that the activations of one thread may keep.
const MAX_KEPT: usize = 256 << 20;

/// A function that can be called.
#[derive(Clone, Debug)]
struct Callee {
    /// Instruction it starts at.
    at: usize,
    /// Parts of the register file that are its variables.
    file: Vec<Range<usize>>,
    /// Its address, predicate, sampler and surface variables.
    others: [Range<usize>; 4],
}

/// The functions of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Functions {
    /// In order of their places in the text.
    list: Vec<Callee>,
    by_name: BTreeMap<String, usize>,
    /// Those that can be called by address.
    by_address: BTreeMap<u32, usize>,
    /// Subroutines whose calls may lead back to them, and subroutines that call those.
    circular: Vec<bool>,
    /// The same of calls by address.
    circular_by_address: bool,
}

impl Functions {
    /// Finds the functions of a kernel. `depth` is how deep recursion may go.
    pub(super) fn new(
        kernel: &ValidKernel,
        layout: &Layout,
        places: &Places,
        depth: u32,
    ) -> Result<Functions, InterpError> {
        let mut functions = Functions::default();
        for (i, f) in kernel.module().functions.iter().enumerate() {
            functions
                .list
                .push(callee(kernel, layout, i, places.label(f.entry)));
            // Of two functions of a name the first one counts.
            functions.by_name.entry(f.name.clone()).or_insert(i);
            if f.address_taken {
                functions.by_address.entry(f.address).or_insert(i);
            }
        }
        functions.find_circles(kernel.module(), places);
        let bytes = |f: &Callee| f.file.iter().map(|part| part.len()).sum::<usize>();
        let most = functions.list.iter().map(bytes).max().unwrap_or(0);
        let recursive = functions.circular.iter().any(|&c| c);
        if recursive && most.saturating_mul(depth as usize) > MAX_KEPT {
            return Err(InterpError::TooLarge {
                what: format!("{most} bytes of registers in a function, {depth} times"),
            });
        }
        Ok(functions)
    }

    /// Subroutines are taken away as long as one calls none that is left; circles and what leads to them stay.
    /// Calls by address go through a subroutine of their own, numbered after the others.
    fn find_circles(&mut self, module: &Module, places: &Places) {
        let any = places.count();
        let mut calls = Vec::new();
        for (at, inst) in module.insts.iter().enumerate() {
            let to = match &inst.body {
                Body::Branch(l) if inst.op == Opcode::Call => {
                    Some(places.subroutine(places.label(*l)))
                }
                Body::Fcall { name, .. } => self.named(name).map(|at| places.subroutine(at)),
                Body::Ifcall { .. } => Some(any),
                _ => None,
            };
            calls.extend(to.map(|to| (places.subroutine(at), to)));
        }
        let reached = self.by_address.values().filter_map(|&i| self.list.get(i));
        calls.extend(reached.map(|f| (any, places.subroutine(f.at))));
        let mut callers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut left: BTreeMap<usize, usize> = (0..=any).map(|s| (s, 0)).collect();
        for (caller, callee) in calls {
            callers.entry(callee).or_default().push(caller);
            let count = left.entry(caller).or_insert(0);
            *count = count.saturating_add(1);
        }
        let mut ready: Vec<usize> = (0..=any).filter(|s| left.get(s) == Some(&0)).collect();
        while let Some(s) = ready.pop() {
            left.remove(&s);
            for caller in callers.get(&s).into_iter().flatten() {
                if let Some(count) = left.get_mut(caller) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        ready.push(*caller);
                    }
                }
            }
        }
        self.circular = (0..any).map(|s| left.contains_key(&s)).collect();
        self.circular_by_address = left.contains_key(&any);
    }

    /// Where a function of this name starts.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        let i = self.by_name.get(name)?;
        Some(self.list.get(*i)?.at)
    }

    /// Where the function at an address starts.
    fn addressed(&self, address: u32) -> Option<usize> {
        let i = self.by_address.get(&address)?;
        Some(self.list.get(*i)?.at)
    }

    /// The function that an instruction is part of; none in the kernel.
    fn around(&self, at: usize) -> Option<&Callee> {
        let after = self.list.partition_point(|f| f.at <= at);
        self.list.get(after.checked_sub(1)?)
    }
}

/// Function number `i` of a kernel.
fn callee(kernel: &ValidKernel, layout: &Layout, i: usize, at: usize) -> Callee {
    let module = kernel.module();
    let first = |i: usize| module.functions.get(i).map(|f| f.first_vars);
    let own = first(i).unwrap_or_default();
    let next = first(i.saturating_add(1));
    let vars = &module.vars;
    let ends = [
        vars.general.len(),
        vars.address.len(),
        vars.predicate.len(),
        vars.sampler.len(),
        vars.surface.len(),
    ];
    let next = next.map_or(ends, |n| n.map(|n| n as usize));
    let [general, a, p, t, s] = own.map(|n| n as usize);
    let [general_end, a_end, p_end, t_end, s_end] = next;
    let roots = (0..).zip(kernel.roots()).filter(|(_, root)| {
        let index = root.var.user_index();
        index.is_some_and(|i| (general..general_end).contains(&i))
    });
    Callee {
        at,
        file: roots.map(|(id, _)| layout.span(RootId(id))).collect(),
        others: [a..a_end, p..p_end, t..t_end, s..s_end],
    }
}

/// Variables of an activation, as they were when it made a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    file: Vec<(usize, Vec<u8>)>,
    addrs: (usize, Vec<Vec<u16>>),
    preds: (usize, Vec<u32>),
    samplers: (usize, Vec<Vec<u32>>),
    surfaces: (usize, Vec<Vec<u32>>),
    /// Which of them were initialised.
    init: Option<init::Kept>,
}

fn copy<T: Clone>(all: &[T], part: &Range<usize>) -> (usize, Vec<T>) {
    let values = all.get(part.clone()).unwrap_or(&[]).to_vec();
    (part.start, values)
}

fn put_back<T>(all: &mut [T], (first, values): (usize, Vec<T>)) {
    let places = all.iter_mut().skip(first);
    for (place, value) in places.zip(values) {
        *place = value;
    }
}

impl Kept {
    fn of(t: &Thread, f: &Callee) -> Kept {
        let [a, p, s, u] = &f.others;
        Kept {
            file: f.file.iter().map(|part| copy(&t.file, part)).collect(),
            addrs: copy(&t.addrs, a),
            preds: copy(&t.preds, p),
            samplers: copy(&t.samplers, s),
            surfaces: copy(&t.surfaces, u),
            init: t.init.as_ref().map(|r| init::Kept::of(r, &f.file, a, p)),
        }
    }

    /// Gives the activation its variables again.
    pub(super) fn restore(self, t: &mut Thread) {
        for part in self.file {
            put_back(&mut t.file, part);
        }
        put_back(&mut t.addrs, self.addrs);
        put_back(&mut t.preds, self.preds);
        put_back(&mut t.samplers, self.samplers);
        put_back(&mut t.surfaces, self.surfaces);
        if let (Some(kept), Some(registers)) = (self.init, &mut t.init) {
            kept.restore(registers);
        }
    }
}

impl Machine<'_, '_, '_> {
    /// `fcall`.
    pub(super) fn fcall(&mut self, inst: &Inst, name: &str) -> Result<(), Halt> {
        let Some(to) = self.program.functions.named(name) else {
            return Halt::unsupported(missing(name));
        };
        let lanes = self.callers(inst)?;
        if lanes != 0 && self.may_call(inst, to, false)? {
            self.stack_call(inst, lanes, to, false);
        }
        Ok(())
    }

    /// `ifcall`.
    pub(super) fn ifcall(&mut self, inst: &Inst, addr: &Src) -> Result<(), Halt> {
        let lanes = self.callers(inst)?;
        let addresses = if inst.exec.lanes() == 1 {
            ChannelBits::all(self.scalar(addr)?)
        } else {
            let channels = self.read(addr, inst.exec.lanes())?;
            let first = inst.exec.mask.first_lane() as usize;
            let mut addresses = ChannelBits::default();
            for lane in bits(lanes) {
                addresses.set(lane, channels.int(lane.saturating_sub(first))? as u64);
            }
            addresses
        };
        let address = |lane: usize| addresses.get(lane) as u32;
        let Some(lowest) = bits(lanes).next() else {
            return Ok(());
        };
        let same = bits(lanes).filter(|&lane| address(lane) == address(lowest));
        let same = same.fold(0, |mask, lane| mask | up(1, lane as u32));
        // The others come here again, before those that have returned go on.
        self.t.control.send(lanes & !same, self.at);
        let to = self.program.functions.addressed(address(lowest));
        let target = to.unwrap_or(self.at);
        if self.may_call(inst, target, true)?
            && let Some(to) = to
        {
            self.stack_call(inst, same, to, true);
        }
        Ok(())
    }

    /// Lanes that make a stack call.
    pub(super) fn callers(&self, inst: &Inst) -> Result<u32, Halt> {
        if inst.exec.lanes() == 1 {
            return self.taken(inst);
        }
        let channels = self.enabled(inst)?;
        Ok(self.t.control.active & up(channels, inst.exec.mask.first_lane()))
    }

    /// Whether a call of what starts at `to` is not too deep; reported if it is.
    pub(super) fn may_call(
        &mut self,
        inst: &Inst,
        to: usize,
        by_address: bool,
    ) -> Result<bool, Halt> {
        let limit = self.program.options.max_call_depth as usize;
        if !self.circular(to, by_address) || self.t.control.depth() <= limit {
            return Ok(true);
        }
        self.report(inst, Memory::DEVICE, 0, 1, &ChannelBits::all(0))?;
        Ok(false)
    }

    /// Whether a call of what starts at `to` may lead to itself.
    fn circular(&self, to: usize, by_address: bool) -> bool {
        let functions = &self.program.functions;
        if by_address {
            return functions.circular_by_address;
        }
        let sub = self.program.places.subroutine(to);
        functions.circular.get(sub).copied().unwrap_or(false)
    }

    fn stack_call(&mut self, inst: &Inst, lanes: u32, to: usize, by_address: bool) {
        // Without a circle only an address could reach the caller's variables.
        let around = self.program.functions.around(self.at);
        let around = around.filter(|_| self.circular(to, by_address));
        let kept = around.map(|f| Box::new(Kept::of(self.t, f)));
        let entry = Entry {
            subroutine: self.program.places.subroutine(to),
            at: to,
            everybody: inst.exec.lanes() == 1,
            kept,
        };
        let back = self.t.control.pc;
        self.t.control.call(lanes, entry, back);
    }
}

/// Why a function cannot be called.
pub(super) fn missing(name: &str) -> String {
    format!("function `{name}` is not in the file")
}
