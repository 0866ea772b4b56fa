//! The gateway, by which threads of a group tell its barrier that they have come.

use super::{Decoded, Refusal, Sent};
use crate::isa::send::gateway;
use crate::isa::{Opcode, Platform};
use crate::module::Body;

impl Sent<'_> {
    /// The first half of the group's barrier, which the third dword of the payload names, as the vendor's assembler makes it of
    /// `r0.2`: of older devices it leaves some bits; on others the number is 0, and threads that come and that wait are counted in
    /// a byte each, both of which are the upper one of `r0.2`.
    pub(super) fn gateway(&mut self) -> Result<Decoded, Refusal> {
        const NAME: u32 = 8;
        if self.bits(19, 0) != gateway::BARRIER {
            return Err("no instruction is such a message");
        }
        self.extended()?;
        let [payload] = self.parts([self.platform.grf_bytes()])?;
        let of_group = match self.platform {
            Platform::Skl => self.masked_r0(payload, NAME, 0x8F00_0000),
            Platform::Tgllp => self.masked_r0(payload, NAME, 0x7F00_0000),
            Platform::Dg2 | Platform::Pvc | Platform::Bmg | Platform::Ptl => {
                self.byte_of_r0_twice(payload, NAME, NAME + 3)
            }
        };
        if !of_group {
            return Err("it may be for another barrier than the group's");
        }
        self.whole(Opcode::Sbarrier, Body::Sbarrier(true))
    }
}
