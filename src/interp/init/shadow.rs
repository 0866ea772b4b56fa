//! What a thread knows of its registers: which bits are not initialised, and where those came from.

use visa_runtime::Uninit;

use crate::interp::lanes::{MAX, bits};
use crate::interp::number::mask;
use crate::interp::state::Layout;
use crate::module::{AddrId, PredId};
use crate::valid::{RootId, ValidKernel};

/// Bits of a value that are not initialised, and where the first of them came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::interp) struct Unset {
    /// A bit for each bit of the value.
    pub bits: u64,
    from: u64,
}

/// Kinds of origins, in the upper bits of their numbers. No origin is zero.
const KIND: u32 = 60;
const REGISTER: u64 = 1;
const LOCAL: u64 = 2;
const SCRATCH: u64 = 3;
const MEMORY: u64 = 4;

/// Numbers of registers that are no bytes of the register file: predicates, and address variables.
const PRED: u32 = 1 << 30;
const ADDRESS: u32 = 1 << 31;

/// A register by its number in [`Uninit::Register`].
pub(super) enum Register {
    Byte(usize),
    Pred(u32),
    Address(u32),
}

/// What has a number.
pub(super) fn register(number: u32) -> Register {
    let index = number & (PRED - 1);
    match number {
        n if n & ADDRESS != 0 => Register::Address(index),
        n if n & PRED != 0 => Register::Pred(index),
        n => Register::Byte(n as usize),
    }
}

fn pack(from: Uninit) -> u64 {
    let (kind, at) = match from {
        Uninit::Register(n) => (REGISTER, n.into()),
        Uninit::Local(at) => (LOCAL, at),
        Uninit::Scratch(at) => (SCRATCH, at),
        Uninit::Memory(at) => (MEMORY, at),
    };
    kind.wrapping_shl(KIND) | at & mask(7)
}

fn unpack(from: u64) -> Uninit {
    let at = from & mask(7);
    match from.wrapping_shr(KIND) {
        LOCAL => Uninit::Local(at),
        SCRATCH => Uninit::Scratch(at),
        MEMORY => Uninit::Memory(at),
        _ => Uninit::Register(at as u32),
    }
}

impl Unset {
    /// All is initialised.
    pub(crate) const NONE: Unset = Unset { bits: 0, from: 0 };

    /// Bits that came from somewhere.
    pub(crate) fn new(bits: u64, from: Uninit) -> Unset {
        let from = if bits == 0 { 0 } else { pack(from) };
        Unset { bits, from }
    }

    /// True when a bit is not initialised.
    pub(crate) const fn any(&self) -> bool {
        self.bits != 0
    }

    /// Other bits of the same origin.
    #[must_use]
    pub(crate) const fn with(self, bits: u64) -> Unset {
        let from = if bits == 0 { 0 } else { self.from };
        Unset { bits, from }
    }

    /// The bits of both; the origin of the first one that has any.
    #[must_use]
    pub(crate) const fn or(self, other: Unset) -> Unset {
        let from = if self.bits != 0 {
            self.from
        } else {
            other.from
        };
        Unset {
            bits: self.bits | other.bits,
            from,
        }
    }

    /// Where it came from, if not all is initialised.
    pub(crate) fn origin(&self) -> Option<Uninit> {
        self.any().then(|| unpack(self.from))
    }
}

/// One for each channel.
#[derive(Clone, Copy, Debug)]
pub(in crate::interp) struct Row([Unset; MAX]);

impl Row {
    /// All initialised.
    pub(crate) const NONE: Row = Row([Unset::NONE; MAX]);

    /// The same for all channels.
    pub(crate) const fn all(unset: Unset) -> Row {
        Row([unset; MAX])
    }

    pub(crate) fn get(&self, i: usize) -> Unset {
        self.0.get(i).copied().unwrap_or_default()
    }

    pub(crate) fn set(&mut self, i: usize, unset: Unset) {
        if let Some(to) = self.0.get_mut(i) {
            *to = unset;
        }
    }

    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(Unset::any)
    }
}

/// A predicate variable: bits that are not initialised, and where each came from.
#[derive(Clone, Debug)]
struct Pred {
    bits: u32,
    from: [u64; MAX],
}

/// Registers of a thread.
#[derive(Clone, Debug)]
pub(in crate::interp) struct Registers {
    /// Bits of each byte of the register file.
    bits: Vec<u8>,
    /// Where they came from; 0 if from nowhere else, as all as long as the list is empty.
    from: Vec<u64>,
    preds: Vec<Pred>,
    addrs: Vec<Vec<Unset>>,
    /// Bits of each byte of scratch, as far as any were written.
    pub(super) scratch: Vec<u8>,
}

impl Registers {
    /// At the start of a thread, but for its inputs.
    pub(crate) fn new(kernel: &ValidKernel, layout: &Layout) -> Registers {
        let vars = &kernel.module().vars;
        let number = |flag: u32, n: usize| Uninit::Register(flag | n as u32);
        let addrs = vars.address.iter().enumerate().map(|(n, var)| {
            let unset = Unset::new(mask(2), number(ADDRESS, n));
            vec![unset; var.elements as usize]
        });
        let preds = (1..).zip(&vars.predicate);
        let mut registers = Registers {
            bits: vec![0xFF; layout.bytes],
            from: Vec::new(),
            preds: preds
                .map(|(n, _)| Pred {
                    bits: u32::MAX,
                    from: [pack(number(PRED, n)); MAX],
                })
                .collect(),
            addrs: addrs.collect(),
            scratch: Vec::new(),
        };
        for (id, root) in (0..).zip(kernel.roots()) {
            if root.var.is_predefined() {
                let span = layout.span(RootId(id));
                registers.clear(span.start, span.len());
            }
        }
        registers
    }

    /// Bytes of the register file are initialised.
    pub(crate) fn clear(&mut self, at: usize, bytes: usize) {
        let part = self.bits.get_mut(at..at.saturating_add(bytes));
        part.unwrap_or_default().fill(0);
    }

    /// Up to eight bytes of the register file; beyond its end all is.
    pub(crate) fn get(&self, at: usize, bytes: usize) -> Unset {
        let end = at.saturating_add(bytes);
        let part = self.bits.get(at..end).unwrap_or_default();
        if part.iter().all(|&b| b == 0) {
            return Unset::NONE;
        }
        let mut unset = Unset::NONE;
        for (k, &b) in (0u32..).zip(part) {
            let place = at.saturating_add(k as usize);
            let one = Unset {
                bits: u64::from(b).wrapping_shl(k.wrapping_mul(8)),
                from: match self.from.get(place) {
                    Some(0) | None => pack(Uninit::Register(place as u32)),
                    Some(&from) => from,
                },
            };
            unset = unset.or(one);
        }
        unset
    }

    /// Says it of up to eight bytes of the register file.
    pub(crate) fn set(&mut self, at: usize, bytes: usize, unset: Unset) {
        let end = at.saturating_add(bytes);
        let to = self.bits.get_mut(at..end).unwrap_or_default();
        for (to, b) in to.iter_mut().zip(unset.bits.to_le_bytes()) {
            *to = b;
        }
        if unset.any() {
            self.from.resize(self.bits.len(), 0);
            let from = self.from.get_mut(at..end).unwrap_or_default();
            from.fill(unset.from);
        }
    }

    /// Those bits of a predicate variable that `lanes` has.
    pub(crate) fn pred(&self, p: PredId, lanes: u32) -> Unset {
        let Some(pred) = self.preds.get((p.0 as usize).wrapping_sub(1)) else {
            return Unset::NONE;
        };
        let bits = pred.bits & lanes;
        let from = pred.from.get(bits.trailing_zeros() as usize);
        Unset {
            bits: bits.into(),
            from: from.copied().unwrap_or(0),
        }
    }

    /// Says it of those bits of a predicate that `lanes` has.
    pub(crate) fn set_pred(&mut self, p: PredId, unset: Unset, lanes: u32) {
        let Some(to) = self.preds.get_mut((p.0 as usize).wrapping_sub(1)) else {
            return;
        };
        let new = unset.bits as u32 & lanes;
        to.bits = to.bits & !lanes | new;
        for lane in bits(new) {
            if let Some(from) = to.from.get_mut(lane) {
                *from = unset.from;
            }
        }
    }

    /// An element of an address variable.
    pub(crate) fn address(&self, a: AddrId, k: usize) -> Unset {
        let of = self.addrs.get(a.0 as usize);
        of.and_then(|a| a.get(k)).copied().unwrap_or_default()
    }

    /// Says it of an element of an address variable.
    pub(crate) fn set_address(&mut self, a: AddrId, k: usize, unset: Unset) {
        let of = self.addrs.get_mut(a.0 as usize);
        if let Some(to) = of.and_then(|a| a.get_mut(k)) {
            *to = unset.with(unset.bits & mask(2));
        }
    }
}

/// What was known of the variables of an activation.
#[derive(Clone, Debug, Default)]
pub(in crate::interp) struct Kept {
    file: Vec<(usize, Vec<u8>, Vec<u64>)>,
    addrs: (usize, Vec<Vec<Unset>>),
    preds: (usize, Vec<Pred>),
}

impl Kept {
    /// Of these parts of the register file, address and predicate variables.
    pub(crate) fn of(
        r: &Registers,
        file: &[std::ops::Range<usize>],
        addrs: &std::ops::Range<usize>,
        preds: &std::ops::Range<usize>,
    ) -> Kept {
        let copy = |part: &std::ops::Range<usize>| {
            let bits = r.bits.get(part.clone()).unwrap_or_default();
            let from = r.from.get(part.clone()).unwrap_or_default();
            (part.start, bits.to_vec(), from.to_vec())
        };
        let addresses = r.addrs.get(addrs.clone()).unwrap_or_default();
        let predicates = r.preds.get(preds.clone()).unwrap_or_default();
        Kept {
            file: file.iter().map(copy).collect(),
            addrs: (addrs.start, addresses.to_vec()),
            preds: (preds.start, predicates.to_vec()),
        }
    }

    /// The variables have their values again.
    pub(crate) fn restore(self, r: &mut Registers) {
        fn put<T>(all: &mut [T], first: usize, values: Vec<T>) {
            let places = all.iter_mut().skip(first);
            places.zip(values).for_each(|(place, v)| *place = v);
        }
        for (first, bits, from) in self.file {
            put(&mut r.bits, first, bits);
            put(&mut r.from, first, from);
        }
        put(&mut r.addrs, self.addrs.0, self.addrs.1);
        put(&mut r.preds, self.preds.0, self.preds.1);
    }
}
