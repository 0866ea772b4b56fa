//! Where worker threads wake.

#[cfg(all(target_os = "linux", not(miri)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(miri))))]
mod other;

#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) use linux::Placement;
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) use other::Placement;
