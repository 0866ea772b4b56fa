//! Binary vISA (`.isa`): what is written is what is read, and both as the vendor's assembler has it.

mod hostile;
mod round_trips;
mod vendor;
