//! Binary vISA (`.isa`): what is written is what is read, and both as the vendor's assembler has it.

#[path = "front/program.rs"]
mod program;

mod binary {
    use super::program;

    mod hostile;
    mod round_trips;
    mod vendor;
}
