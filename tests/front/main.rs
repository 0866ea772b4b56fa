//! What reads files: containers, text and binary vISA, validation. Nothing is compiled here.

#[path = "../binary/mod.rs"]
mod binary;
mod container;
mod docs;
mod mutations;
mod program;
mod text;
#[path = "../valid/mod.rs"]
mod valid;
