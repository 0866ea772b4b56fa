//! Cost of a launch.

fn main() {}
