//! The gateway, by which threads of a group tell its barrier that they have come.

use super::{Decoded, Refusal, Sent};
use crate::isa::send::gateway;
use crate::isa::{Opcode, Platform};
use crate::module::Body;

impl Sent<'_> {
    /// The first half of the group's barrier. The barrier is named by the third dword of the payload, where the vendor's assembler
    /// leaves some bits of `r0.2`; on newer devices it copies bytes there, which is not followed here.
    pub(super) fn gateway(&mut self) -> Result<Decoded, Refusal> {
        if self.bits(19, 0) != gateway::BARRIER {
            return Err("no instruction is such a message");
        }
        let name = match self.platform {
            Platform::Skl => 0x8F00_0000,
            Platform::Tgllp => 0x7F00_0000,
            Platform::Dg2 | Platform::Pvc => {
                return Err("which barrier it is for is not known on this device");
            }
        };
        self.extended()?;
        let [payload] = self.parts([self.platform.grf_bytes()])?;
        if !self.masked_r0(payload, 8, name) {
            return Err("it may be for another barrier than the group's");
        }
        self.whole(Opcode::Sbarrier, Body::Sbarrier(true))
    }
}
