//! The text form of vISA (`.visaasm`), as the vendor's compiler prints it and its assembler reads it.
//!
//! [`parse`] reads everything that the assembler of IGC 1.0.12504 accepts and this project models, and the
//! later spellings where they are unambiguous. It reports every error of a file, not only the first.
//! [`print()`] writes the vendor's layout, byte for byte where the compiler itself wrote the file, so that
//! the result can be compared with `diff` and given back to the vendor's tools.
//!
//! Versions that are not known are an error, unless [`Versions`](crate::isa::Versions) says otherwise.
//!
//! A parsed module is decoded, not checked: `valid` decides whether it makes sense.
//!
//! ```
//! let source = ".version 4.1\n.kernel \"k\"\n.decl V0032 v_type=G type=d num_elts=16\n\
//!     .function \"main\"\n    add (M1, 16) V0032(0,0)<1> V0032(0,0)<1;1,0> 0x1:d\n    ret (M1, 1)\n";
//! let module = visa_jit::front::text::parse("k.visaasm", source)?;
//! assert_eq!(module.insts.len(), 3);
//! assert!(visa_jit::front::text::print(&module).contains("add (M1, 16)"));
//! # Ok::<(), visa_jit::front::text::Diagnostics>(())
//! ```

mod error;
mod lexer;
mod parse;
mod print;
pub(super) mod spelling;

pub use error::{Diagnostics, ErrorKind, TextError};
pub use parse::{parse, parse_all, parse_with};
pub use print::print;
