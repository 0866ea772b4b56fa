//! How the driver's library is linked.

fn main() {
    // A program that is linked with a loader has functions of the same names, which must not take the place of ours.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    // Queues have threads of their own: the code they run stays, even after `dlclose`.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
