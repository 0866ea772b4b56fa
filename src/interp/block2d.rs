//! Two-dimensional blocks, `lsc_load_block2d` and `lsc_store_block2d` (docs/visa.md, "Memory").
//!
//! The operands describe a surface in device memory: rows of `width` bytes, `pitch` bytes apart. Decided here, where the
//! specification is silent: column and row of the block are signed, and what lies outside the surface (elements, each
//! wholly or not at all) reads zero and is not written without being a fault. Elements inside the surface are checked against
//! device memory one by one like any other access, row after row of one block after the other. Hardware wants sizes, pitch and
//! base aligned; here nothing is. The compiler writes such messages with the kernel's execution size: one message
//! is sent if any channel is enabled.

use super::access::{Memory, Slot};
use super::error::Halt;
use super::lanes::ChannelBits;
use super::live::AccessMode;
use super::machine::Machine;
use super::message::one;
use super::race::Does;
use crate::isa::lsc::{DataSize, Sfid};
use crate::module::*;
use visa_runtime::MemoryRef;

/// Most registers of a payload.
const MOST: usize = 32;

/// The surface, and where in it the block begins.
struct Surface {
    base: u64,
    width: i64,
    height: i64,
    pitch: u64,
    x: i64,
    y: i64,
}

/// How elements lie in registers.
struct Order {
    /// Bytes of an element.
    bytes: usize,
    /// Elements that share a dword.
    k: usize,
    transpose: bool,
    /// Elements from one row (of transposed blocks: column) to the next.
    run: usize,
    /// Elements from one block to the next.
    pitch: usize,
}

/// How often `b` fits into `a`.
fn whole(a: usize, b: usize) -> usize {
    a.checked_div(b).unwrap_or(0)
}

impl Order {
    fn new(b: &LscBlock2d, grf: usize) -> Result<Order, Halt> {
        let bytes = match b.data_size {
            DataSize::D8 => 1,
            DataSize::D16 => 2,
            DataSize::D32 => 4,
            DataSize::D64 => 8usize,
            other => return Halt::malformed(format!("2D blocks of {}", other.name())),
        };
        let (w, h) = (usize::from(b.width), usize::from(b.height));
        let (runs, length) = if b.transpose { (w, h) } else { (h, w) };
        let k = if b.vnni { whole(4, bytes) } else { 1 };
        let run = length.next_power_of_two();
        let per_register = whole(grf, bytes).max(1);
        let pitch = runs.saturating_mul(run).next_multiple_of(per_register);
        let registers = usize::from(b.blocks).saturating_mul(whole(pitch, per_register));
        let dwords = k > 1 && runs.checked_rem(k) == Some(0);
        let possible = (!b.vnni || dwords) && (1..=MOST).contains(&registers) && length > 0;
        if !possible {
            return Halt::malformed("a block that fills no dwords, or more than 32 registers");
        }
        Ok(Order {
            bytes,
            k,
            transpose: b.transpose,
            run,
            pitch,
        })
    }

    /// Element of the payload at which an element of a block is.
    fn position(&self, block: usize, y: usize, x: usize) -> usize {
        let (row, column) = if self.transpose { (x, y) } else { (y, x) };
        // Without packing these are `row * run + column`.
        let fused = whole(row, self.k).wrapping_mul(self.k);
        block
            .wrapping_mul(self.pitch)
            .wrapping_add(fused.wrapping_mul(self.run))
            .wrapping_add(column.wrapping_mul(self.k))
            .wrapping_add(row.wrapping_sub(fused))
    }
}

impl Machine<'_, '_, '_> {
    /// A block message.
    pub(super) fn lsc_block2d(&mut self, inst: &Inst, b: &LscBlock2d) -> Result<(), Halt> {
        if !matches!(b.sfid, Sfid::Ugm | Sfid::Ugml) {
            return Halt::unsupported(format!("2D blocks of {}", b.sfid.name()));
        }
        if inst.stores() && (b.blocks != 1 || b.transpose || b.vnni) {
            return Halt::malformed("a store has one block, neither transposed nor packed");
        }
        let order = Order::new(b, self.grf())?;
        let surface = self.surface_of(b)?;
        let enabled = self.enabled(inst)? != 0;
        let prefetch = !inst.stores() && b.data.is_null();
        if !enabled || prefetch {
            return Ok(());
        }
        self.check_aligned(
            inst,
            &one(Memory::DEVICE, ChannelBits::all(surface.base), 1, 1),
        )?;
        let size = order.pitch.saturating_mul(b.blocks.into());
        let mut payload = vec![0; size];
        if inst.stores() {
            for (i, v) in payload.iter_mut().enumerate() {
                *v = self.payload(b.data, 0, i, order.bytes)?;
            }
        }
        let way = match inst.stores() {
            true => AccessMode::Write,
            false => AccessMode::Read,
        };
        let (mut wrong, mut read) = (false, Vec::new());
        for block in 0..usize::from(b.blocks) {
            for y in 0..usize::from(b.height) {
                for x in 0..usize::from(b.width) {
                    let column = block.wrapping_mul(b.width.into()).wrapping_add(x);
                    let Some(address) = surface.address(column, y, order.bytes) else {
                        continue;
                    };
                    let bytes = order.bytes as u32;
                    if !wrong && let Some(kind) = self.wrong(address, bytes, way) {
                        wrong = true;
                        let at = (Memory::DEVICE, &ChannelBits::all(address));
                        self.report_memory(inst, kind, 0, 1, at)?;
                    }
                    let i = order.position(block, y, x);
                    if let Some(v) = payload.get_mut(i) {
                        self.element2d(inst, inst.stores(), address, order.bytes as u32, v)?;
                        read.push((i, address));
                    }
                }
            }
        }
        if !inst.stores() {
            for (i, v) in payload.into_iter().enumerate() {
                self.set_payload(b.data, 0, i, order.bytes, v)?;
            }
        }
        let slot = Slot::block(b.data, order.bytes, 0);
        for (i, address) in read {
            let a = one(
                Memory::DEVICE,
                ChannelBits::all(address),
                order.bytes as u32,
                1,
            );
            self.init_block(&a, (0, i), &slot, inst.stores())?;
        }
        Ok(())
    }

    /// Reads or writes one element.
    fn element2d(
        &mut self,
        inst: &Inst,
        store: bool,
        address: u64,
        bytes: u32,
        v: &mut u64,
    ) -> Result<(), Halt> {
        let does = match store {
            true => Does::Write(*v),
            false => Does::Read,
        };
        self.check_texel(inst, address, bytes, does)?;
        let inside = if store {
            let inside = self.group.write(MemoryRef::Device, address, bytes, *v);
            if inside {
                self.note(Memory::DEVICE, address, *v, bytes);
            }
            inside
        } else {
            let read = self.group.read(MemoryRef::Device, address, bytes);
            *v = read.unwrap_or(0);
            read.is_some()
        };
        if inside {
            return Ok(());
        }
        self.report(inst, Memory::DEVICE, 0, 1, &ChannelBits::all(address))
    }

    fn surface_of(&mut self, b: &LscBlock2d) -> Result<Surface, Halt> {
        let mut values = [0u64; 6];
        match &b.address {
            BlockAddress::Operands(params) => {
                if params.len() != values.len() {
                    return Halt::malformed("a 2D block has six parameters");
                }
                for (v, p) in values.iter_mut().zip(params) {
                    *v = match p {
                        LscScalar::Imm(n) => *n,
                        LscScalar::Var(o) => self.scalar_at(*o)?,
                    };
                }
            }
            BlockAddress::Payload { payload, x, y } => {
                values[0] = self.payload(*payload, 0, 0, 8)?;
                let dwords = values.iter_mut().skip(1).zip(2..);
                for ((v, dword), more) in dwords.zip([0, 0, 0, *x, *y]) {
                    let more = i64::from(more) as u64;
                    *v = self.payload(*payload, 0, dword, 4)?.wrapping_add(more);
                }
            }
        }
        let [base, width, height, pitch, x, y] = values;
        let size = |less_one: u64| i64::from(less_one as u32).wrapping_add(1);
        let signed = |v: u64| i64::from(v as u32 as i32);
        Ok(Surface {
            base,
            width: size(width),
            height: size(height),
            pitch: size(pitch) as u64,
            x: signed(x),
            y: signed(y),
        })
    }
}

impl Surface {
    /// Address of an element of the block, counted across all blocks; `None` outside the surface.
    fn address(&self, column: usize, y: usize, bytes: usize) -> Option<u64> {
        let column = self.x.wrapping_add(column as i64);
        let row = self.y.wrapping_add(y as i64);
        let start = column.wrapping_mul(bytes as i64);
        let end = start.wrapping_add(bytes as i64);
        if start < 0 || end > self.width || row < 0 || row >= self.height {
            return None;
        }
        let offset = (row as u64)
            .wrapping_mul(self.pitch)
            .wrapping_add(start as u64);
        Some(self.base.wrapping_add(offset))
    }
}
