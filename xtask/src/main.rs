//! Project chores: regenerates checked-in files.

fn main() {}
