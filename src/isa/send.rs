//! Hardware messages: shared functions, the message types of the data ports, and their names.

/// A table of codes with names, and a constant for each code that messages are told apart by.
macro_rules! codes {
    ($(#[$doc:meta])* $table:ident $code:ty { $($name:ident $value:literal $text:literal,)* }) => {
        $(
            #[doc = concat!("Code of \"", $text, "\".")]
            pub const $name: $code = $value;
        )*

        $(#[$doc])*
        pub const $table: &[($code, &str)] = &[$(($value, $text),)*];
    };
}

/// Shared functions.
pub mod function {
    codes! {
        /// Every function that messages name.
        ALL u8 {
            NULL 0x0 "null",
            SAMPLER 0x2 "sampler",
            GATEWAY 0x3 "gateway",
            DATA_CACHE_2 0x4 "data cache 2",
            RENDER_CACHE 0x5 "render cache",
            RETURN_BUFFER 0x6 "unified return buffer",
            SPAWNER 0x7 "thread spawner",
            MOTION 0x8 "video motion estimation",
            CONSTANT_CACHE 0x9 "constant cache",
            DATA_CACHE_0 0xA "data cache 0",
            DATA_CACHE_1 0xC "data cache 1",
            TYPED_GLOBAL 0xD "typed global memory",
            SHARED_LOCAL 0xE "shared local memory",
            UNTYPED_GLOBAL 0xF "untyped global memory",
        }
    }

    /// Name of a function.
    pub fn name(code: u8) -> Option<&'static str> {
        super::find(ALL, code)
    }
}

/// Message types of data cache 0, bits 18:14 of the descriptor.
pub mod cache_0 {
    codes! {
        /// Every type.
        ALL u32 {
            OWORD_READ 0x0 "oword block read",
            OWORD_READ_UNALIGNED 0x1 "unaligned oword block read",
            DWORD_READ 0x3 "dword scattered read",
            BYTE_READ 0x4 "byte scattered read",
            QWORD_READ 0x5 "qword scattered read",
            ATOMIC 0x6 "untyped atomic",
            FENCE 0x7 "memory fence",
            OWORD_WRITE 0x8 "oword block write",
            DWORD_WRITE 0xB "dword scattered write",
            BYTE_WRITE 0xC "byte scattered write",
            QWORD_WRITE 0xD "qword scattered write",
        }
    }

    /// The first type of blocks of scratch memory, which have bits of the descriptor's other fields in theirs.
    pub const SCRATCH: u32 = 0x10;

    /// Name of a type.
    pub fn name(code: u32) -> Option<&'static str> {
        match code {
            SCRATCH.. => Some("scratch block"),
            _ => super::find(ALL, code),
        }
    }
}

/// Message types of data cache 1, bits 18:14.
pub mod cache_1 {
    codes! {
        /// Every type.
        ALL u32 {
            READ 0x01 "untyped surface read",
            ATOMIC 0x02 "untyped atomic",
            ATOMIC_16 0x03 "untyped 16-bit atomic",
            MEDIA_READ 0x04 "media block read",
            TYPED_READ 0x05 "typed surface read",
            TYPED_ATOMIC 0x06 "typed atomic",
            TYPED_ATOMIC_16 0x07 "typed 16-bit atomic",
            WRITE 0x09 "untyped surface write",
            MEDIA_WRITE 0x0A "media block write",
            COUNTER 0x0B "counter atomic",
            COUNTER_16 0x0C "typed 16-bit counter atomic",
            TYPED_WRITE 0x0D "typed surface write",
            A64_SCATTERED_READ 0x10 "A64 scattered read",
            A64_READ 0x11 "A64 untyped surface read",
            A64_ATOMIC 0x12 "A64 atomic",
            A64_ATOMIC_16 0x13 "A64 16-bit atomic",
            A64_BLOCK_READ 0x14 "A64 block read",
            A64_BLOCK_WRITE 0x15 "A64 block write",
            A64_WRITE 0x19 "A64 untyped surface write",
            A64_SCATTERED_WRITE 0x1A "A64 scattered write",
            FLOAT_ATOMIC 0x1B "untyped float atomic",
            HALF_ATOMIC 0x1C "untyped half atomic",
            A64_FLOAT_ATOMIC 0x1D "A64 float atomic",
            A64_HALF_ATOMIC 0x1E "A64 half atomic",
        }
    }

    /// Name of a type.
    pub fn name(code: u32) -> Option<&'static str> {
        super::find(ALL, code)
    }
}

/// Operations of the gateway, bits 2:0.
pub mod gateway {
    /// Tells a barrier that a thread has come.
    pub const BARRIER: u32 = 4;
}

/// Entries of the binding table that are none: shared local memory, and memory without a surface, coherent with other
/// devices or not.
pub mod reserved {
    /// Shared local memory.
    pub const LOCAL: u8 = 254;
    /// No surface; caches are coherent with other devices.
    pub const STATELESS: u8 = 255;
    /// No surface; caches are not.
    pub const STATELESS_NONCOHERENT: u8 = 253;
    /// The surface is in the extended descriptor.
    pub const BINDLESS: u8 = 252;
}

/// Operation of fences among LSC messages, beside those of [`super::lsc::LSC_OPS`].
pub const LSC_FENCE: u32 = 0x1F;

fn find<T: PartialEq + Copy>(table: &[(T, &'static str)], code: T) -> Option<&'static str> {
    table
        .iter()
        .find(|(c, _)| *c == code)
        .map(|(_, name)| *name)
}

/// A message in words: its shared function and type. The descriptor may only be known when the kernel runs.
pub fn describe(function: u8, descriptor: Option<u32>) -> String {
    let mut out = format!("a message to shared function {function:#x}");
    if let Some(name) = function::name(function) {
        out.push_str(&format!(" ({name})"));
    }
    let Some(d) = descriptor else {
        out.push_str(" whose descriptor is only known when the kernel runs");
        return out;
    };
    let (code, name) = match function {
        function::DATA_CACHE_0 => (d >> 14 & 0x1F, cache_0::name(d >> 14 & 0x1F)),
        function::DATA_CACHE_1 => (d >> 14 & 0x1F, cache_1::name(d >> 14 & 0x1F)),
        function::TYPED_GLOBAL..=function::UNTYPED_GLOBAL if d & 0x3F == LSC_FENCE => {
            (LSC_FENCE, Some("lsc_fence"))
        }
        function::TYPED_GLOBAL..=function::UNTYPED_GLOBAL => {
            let op = super::lsc::LscOp::from_code((d & 0x3F) as u8);
            (d & 0x3F, op.and_then(|op| op.spelling()).map(|s| s.0))
        }
        _ => {
            out.push_str(&format!(", descriptor {d:#x}"));
            return out;
        }
    };
    out.push_str(&format!(", type {code:#x}"));
    if let Some(name) = name {
        out.push_str(&format!(" ({name})"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn messages_have_names() {
        assert_eq!(
            describe(0xC, Some(0x0210_6E02)),
            "a message to shared function 0xc (data cache 1), type 0x1 (untyped surface read)"
        );
        assert_eq!(
            describe(0xF, Some(0x0410_0504)),
            "a message to shared function 0xf (untyped global memory), type 0x4 (lsc_store)"
        );
        assert_eq!(
            describe(0x3, Some(0x0200_0010)),
            "a message to shared function 0x3 (gateway), descriptor 0x2000010"
        );
        assert!(describe(0xA, None).ends_with("when the kernel runs"));
    }
}
