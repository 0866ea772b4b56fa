//! The floating-point environment that compiled code expects: nearest-even, denormals kept, no traps.
//!
//! Threads start that way, but a host program may have changed it (audio and game engines flush
//! denormals), and results must not depend on that.

/// The default environment until dropped; then what was before.
pub(super) struct FloatMode {
    before: Option<Control>,
}

impl FloatMode {
    /// Sets the default environment; costs a few nanoseconds when it is set already.
    pub(super) fn set_default() -> FloatMode {
        let now = read();
        let before = (now & MODE != DEFAULT & MODE).then_some(now);
        if before.is_some() {
            write(DEFAULT);
        }
        FloatMode { before }
    }
}

impl Drop for FloatMode {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            write(before);
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
use x86_64::{Control, DEFAULT, MODE, read, write};

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64 {
    use std::arch::asm;

    /// MXCSR.
    pub(super) type Control = u32;
    /// All exceptions masked.
    pub(super) const DEFAULT: Control = 0x1F80;
    /// Everything but the sticky flags.
    pub(super) const MODE: Control = 0xFFC0;

    pub(super) fn read() -> Control {
        let mut value = 0;
        // SAFETY: stores a register to a local.
        unsafe { asm!("stmxcsr [{0}]", in(reg) &raw mut value, options(nostack)) }
        value
    }

    pub(super) fn write(value: Control) {
        // SAFETY: the value is the default or was read from the register before.
        unsafe { asm!("ldmxcsr [{0}]", in(reg) &raw const value, options(nostack)) }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
use aarch64::{Control, DEFAULT, MODE, read, write};

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod aarch64 {
    use std::arch::asm;

    /// FPCR.
    pub(super) type Control = u64;
    /// Nearest-even, nothing flushed, no traps.
    pub(super) const DEFAULT: Control = 0;
    /// All fields.
    pub(super) const MODE: Control = u64::MAX;

    pub(super) fn read() -> Control {
        let value;
        // SAFETY: reads a register.
        unsafe { asm!("mrs {0}, fpcr", out(reg) value, options(nostack, nomem)) }
        value
    }

    pub(super) fn write(value: Control) {
        // SAFETY: the value is the default or was read from the register before.
        unsafe { asm!("msr fpcr, {0}", in(reg) value, options(nostack, nomem)) }
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
use other::{Control, DEFAULT, MODE, read, write};

/// Elsewhere the environment is taken to be the default.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod other {
    pub(super) type Control = u32;
    pub(super) const DEFAULT: Control = 0;
    pub(super) const MODE: Control = 0;

    pub(super) fn read() -> Control {
        0
    }

    pub(super) fn write(_: Control) {}
}
