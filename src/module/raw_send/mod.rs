//! `raw_send` and `raw_sends` that are memory messages: read from their descriptors into the instructions that vISA has for
//! them.
//!
//! The vendor's assembler is the measure: a descriptor with its payload is decoded where a row of the opcode table makes just
//! that message, and refused by name otherwise. What rows read from operands, messages may have in a header register; such
//! operands are variables that validation adds. Hints for caches are not looked at.

mod cache_0;
mod cache_1;
mod gateway;
mod known;
mod lsc;
mod payload;

use std::cell::Cell;

use super::{Body, GeneralVar, Inst, Module, RawSend, Src};
use crate::isa::send::{self, function};
use crate::isa::{Exec, Opcode, Platform};
use crate::limits::MAX_HEADER_STEPS;

/// Why a message stands for no instruction known here.
type Refusal = &'static str;

/// An instruction that a message is.
struct Decoded {
    op: Opcode,
    exec: Exec,
    body: Body,
}

/// One message, with the program around it.
struct Sent<'a> {
    module: &'a Module,
    /// Index of the instruction.
    at: usize,
    inst: &'a Inst,
    send: &'a RawSend,
    platform: Platform,
    /// The descriptor.
    desc: u32,
    /// Instructions that may be looked at yet, to find numbers in headers.
    steps: &'a Cell<u64>,
    /// Variables that the instruction needs and the program does not have.
    made: Vec<GeneralVar>,
}

fn constant(s: &Src) -> Option<u32> {
    match s {
        Src::Imm { bits, .. } => Some(*bits as u32),
        _ => None,
    }
}

impl RawSend {
    /// The shared function; where the text does not say it, it is in the extended descriptor.
    fn function(&self) -> u8 {
        match (self.sfid, constant(&self.ex_desc)) {
            (0, Some(ex)) => (ex & 0xF) as u8,
            (sfid, _) => sfid,
        }
    }

    /// The message in words, and why it is refused.
    pub fn refusal(&self) -> String {
        let what = send::describe(self.function(), constant(&self.desc));
        match self.refused {
            Some(why) => format!("{what}: {why}"),
            None => what,
        }
    }
}

impl Module {
    /// Puts instructions in the place of messages that are such; others are told why not.
    pub fn decode_sends(&mut self, platform: Platform) {
        let steps = Cell::new(MAX_HEADER_STEPS);
        for at in 0..self.insts.len() {
            let Some(inst) = self.insts.get(at) else {
                continue;
            };
            let Body::RawSend(send) = &inst.body else {
                continue;
            };
            let sent = Sent {
                module: self,
                at,
                inst,
                send,
                platform,
                desc: constant(&send.desc).unwrap_or(0),
                steps: &steps,
                made: Vec::new(),
            };
            let decoded = sent.decode();
            let Some(inst) = self.insts.get_mut(at) else {
                continue;
            };
            match (decoded, &mut inst.body) {
                (Ok((decoded, mut made)), _) => {
                    inst.written = Some(inst.op);
                    inst.op = decoded.op;
                    inst.exec = decoded.exec;
                    inst.body = decoded.body;
                    self.vars.general.append(&mut made);
                }
                (Err(why), Body::RawSend(send)) => send.refused = Some(why),
                (Err(_), _) => {}
            }
        }
    }
}

impl Sent<'_> {
    fn decode(mut self) -> Result<(Decoded, Vec<GeneralVar>), Refusal> {
        if self.send.eot {
            return Err("it ends the thread");
        }
        if constant(&self.send.desc).is_none() {
            return Err("the descriptor is not a constant");
        }
        let has_lsc = self.platform.has_lsc();
        let decoded = match self.send.function() {
            // The extended descriptor may say something else, but for a surface.
            function::DATA_CACHE_0 | function::DATA_CACHE_1
                if constant(&self.send.ex_desc).is_none()
                    && self.bits(7, 0) != u32::from(send::reserved::BINDLESS) =>
            {
                Err("the extended descriptor is not a constant")
            }
            function::GATEWAY => self.gateway(),
            function::DATA_CACHE_0 => self.cache_0(),
            function::DATA_CACHE_1 => self.cache_1(),
            function::SHARED_LOCAL | function::TYPED_GLOBAL | function::UNTYPED_GLOBAL
                if has_lsc =>
            {
                self.lsc()
            }
            _ => Err("no memory message of the device"),
        }?;
        Ok((decoded, self.made))
    }

    /// Bits `lo ..= hi` of the descriptor.
    fn bits(&self, hi: u32, lo: u32) -> u32 {
        self.desc >> lo & ((1 << (hi - lo + 1)) - 1)
    }

    /// The extended descriptor.
    fn extended(&self) -> Result<u32, Refusal> {
        constant(&self.send.ex_desc).ok_or("the extended descriptor is not a constant")
    }

    /// A message for the lanes of the instruction.
    fn lanewise(&self, op: Opcode, body: Body) -> Decoded {
        Decoded {
            op,
            exec: self.inst.exec,
            body,
        }
    }

    /// A message that is one access, and has no lanes.
    fn whole(&self, op: Opcode, body: Body) -> Result<Decoded, Refusal> {
        // Vendors' rows are sent without a mask. What a mask does to a block is not known here.
        if self.inst.pred.is_some() || !self.inst.exec.mask.no_mask {
            return Err("a block under a mask, which no instruction is");
        }
        Ok(Decoded {
            op,
            exec: Exec::SCALAR,
            body,
        })
    }

    /// Refuses messages of other lanes than the instruction's, unless registers are the same with elements of a given number of bytes.
    fn for_lanes(&self, lanes: u32, bytes: u32) -> Result<(), Refusal> {
        let grf = self.platform.grf_bytes();
        let registers = |lanes: u32| lanes.saturating_mul(bytes).div_ceil(grf);
        let own = self.inst.exec.lanes();
        if own > lanes || registers(own) != registers(lanes) {
            return Err("it is for another number of lanes than the instruction");
        }
        Ok(())
    }

    fn without_header(&self) -> Result<(), Refusal> {
        match self.has_header() {
            false => Ok(()),
            true => Err("no instruction is such a message with a header"),
        }
    }

    /// Refuses headers that keep lanes from taking part: the low half of the eighth dword has a bit for each. The vendor's
    /// assembler makes such headers, of all lanes, for older devices.
    fn for_all_lanes(&self) -> Result<(), Refusal> {
        const MASK: u32 = 28;
        const ALL: u32 = 0xFFFF;
        let all = || Some(self.known(self.header().ok()?, MASK)? & ALL == ALL);
        match !self.has_header() || all() == Some(true) {
            true => Ok(()),
            false => Err("its header has a say in which lanes take part"),
        }
    }
}
