//! Functions that compiled code calls, gathered in one table.
//!
//! All are leaf functions that keep the caller's floating-point environment and touch only what
//! their arguments point at.

pub(crate) mod arrive;
mod atomic;
mod check;
mod fp_env;
pub(crate) mod half;
mod image;
mod init;
mod message;
#[cfg(test)]
mod message_tests;
#[cfg(target_arch = "x86_64")]
mod message_x86;
pub(crate) mod named_barrier;
mod preserve_all;
mod race;
mod rectangle;
mod soft;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_half;

pub(crate) use atomic::swap;
pub(crate) use fp_env::Round;

use crate::abi::Helpers;

/// The table with what every processor can run.
static PORTABLE: Helpers = Helpers {
    fp_env: fp_env::fp_env,
    fault: crate::fault::fault,
    tsc,
    atomic: atomic::atomic,
    load: message::load,
    store: message::store,
    load_preserve_all: preserve_all::load,
    store_preserve_all: preserve_all::store,
    rectangle: rectangle::rectangle,
    image: image::image,
    named_barrier: named_barrier::step,
    fault_preserve_all: preserve_all::fault,
    store_enabled: preserve_all::store_enabled,
    check: check::check,
    check_preserve_all: preserve_all::check,
    arrive: arrive::arrive,
    race: race::race,
    race_affine: race::race_affine,
    race_reads: race::race_reads,
    initialise: init::initialise,
    misaligned: crate::fault::misaligned,
};

/// The table for processors with AVX-512; the same results.
#[cfg(target_arch = "x86_64")]
static WIDE: Helpers = Helpers {
    load: message_x86::load,
    store: message_x86::store,
    load_preserve_all: preserve_all::wide_load,
    store_preserve_all: preserve_all::wide_store,
    race: race::wide::race,
    race_affine: race::wide::race_affine,
    race_reads: race::wide::race_reads,
    ..PORTABLE
};

/// The table for [`crate::abi::LaunchCtx::helpers`] that suits this processor.
pub fn helpers() -> &'static Helpers {
    #[cfg(target_arch = "x86_64")]
    if message_x86::available() {
        return &WIDE;
    }
    &PORTABLE
}

/// [`Helpers::tsc`]: the processor's time stamp counter.
#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// [`Helpers::tsc`]: nanoseconds since the first call.
#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" fn tsc() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
