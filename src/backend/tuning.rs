//! Axes of a strategy that few need: width of vectors, processor, register allocation, masks, dispatch.

use super::strategy::{BackendKind, OptLevel};

/// A choice with a fixed list of values.
pub trait Choice: Copy + Default + PartialEq + 'static {
    /// All of them, the usual one first.
    const ALL: &'static [Self];

    /// Spelling on the command line.
    fn name(self) -> &'static str;

    /// The value of this name, or the names that there are.
    ///
    /// # Errors
    /// A text that lists the legal names.
    fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().copied().find(|c| c.name() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|c| c.name()).collect();
            format!("`{name}` is not known; write {}", names.join(", "))
        })
    }
}

macro_rules! choice {
    ($(#[$doc:meta])* $type:ident { $first:ident = $first_name:literal, $($value:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
        pub enum $type {
            #[doc = concat!("`", $first_name, "`")]
            #[default]
            $first,
            $(#[doc = concat!("`", $name, "`")] $value,)*
        }

        impl Choice for $type {
            const ALL: &'static [$type] = &[$type::$first, $($type::$value,)*];

            fn name(self) -> &'static str {
                match self {
                    $type::$first => $first_name,
                    $($type::$value => $name,)*
                }
            }
        }
    };
}

choice! {
    /// Widest vectors, in bits; `auto` for as wide as the code generator and the processor have them.
    VectorWidth { Auto = "auto", Bits128 = "128", Bits256 = "256", Bits512 = "512", }
}

choice! {
    /// Which processor code is made for: the one it runs on, or the least of a level of x86-64.
    Cpu { Native = "native", V2 = "x86-64-v2", V3 = "x86-64-v3", V4 = "x86-64-v4", }
}

choice! {
    /// Effort of register allocation; `auto` follows the effort of code generation.
    RegAlloc { Auto = "auto", Fast = "fast", Full = "full", }
}

choice! {
    /// What happens to code whose execution mask has no lane enabled: it is jumped over, or executed without effect.
    Masks { Auto = "auto", Select = "select", Branch = "branch", }
}

choice! {
    /// Accesses that the compiler of the kernel split in two: kept split, merged, or merged where that was measured to be faster.
    HalfAccesses { Auto = "auto", Apart = "apart", Whole = "whole", }
}

choice! {
    /// What a call of the code is for, where threads wait at barriers: `thread` brings each thread to where it waits next, and
    /// the runtime calls again; `group` goes round until all of them are finished. Other code is the same either way.
    Dispatch { Thread = "thread", Group = "group", }
}

/// All of these; part of the cache key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Tuning {
    /// Widest vectors.
    pub width: VectorWidth,
    /// Processor.
    pub cpu: Cpu,
    /// Register allocation.
    pub regalloc: RegAlloc,
    /// Work under empty masks.
    pub masks: Masks,
    /// Accesses in halves.
    pub halves: HalfAccesses,
    /// What a call of the code is for.
    pub dispatch: Dispatch,
}

impl Cpu {
    /// The first feature of the level that this machine does not have.
    fn missing(self) -> Option<&'static str> {
        let wanted: &[&[(&str, bool)]] = match self {
            Cpu::Native => &[],
            Cpu::V2 => &[&v2()],
            Cpu::V3 => &[&v2(), &v3()],
            Cpu::V4 => &[&v2(), &v3(), &v4()],
        };
        let mut all = wanted.iter().copied().flatten();
        all.find(|(_, there)| !there).map(|(name, _)| *name)
    }

    /// Bits of the widest vectors that code for it may use.
    fn widest(self) -> u32 {
        let has = |features: &[(&str, bool)]| features.iter().all(|(_, there)| *there);
        match self {
            Cpu::V2 => 128,
            Cpu::V3 => 256,
            Cpu::V4 => 512,
            Cpu::Native if has(&v4()) => 512,
            Cpu::Native if has(&v3()) => 256,
            Cpu::Native => 128,
        }
    }
}

impl Tuning {
    /// Bits of the widest vectors that code may use: what the processor has, if no less is asked for.
    pub(super) fn widest(self) -> u32 {
        let there = self.cpu.widest();
        self.width.bits().map_or(there, |asked| asked.min(there))
    }
}

impl VectorWidth {
    /// The number; none for `auto`.
    pub const fn bits(self) -> Option<u32> {
        match self {
            VectorWidth::Auto => None,
            VectorWidth::Bits128 => Some(128),
            VectorWidth::Bits256 => Some(256),
            VectorWidth::Bits512 => Some(512),
        }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! features {
    ($($name:tt)*) => { [$(($name, std::arch::is_x86_feature_detected!($name)),)*] };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! features {
    ($($name:tt)*) => { [$(($name, false),)*] };
}

fn v2() -> [(&'static str, bool); 5] {
    features!("sse3" "ssse3" "sse4.1" "sse4.2" "popcnt")
}

fn v3() -> [(&'static str, bool); 8] {
    features!("avx" "avx2" "bmi1" "bmi2" "f16c" "fma" "lzcnt" "movbe")
}

fn v4() -> [(&'static str, bool); 5] {
    features!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl")
}

impl Tuning {
    /// The usual choices.
    pub const USUAL: Tuning = Tuning {
        width: VectorWidth::Auto,
        cpu: Cpu::Native,
        regalloc: RegAlloc::Auto,
        masks: Masks::Auto,
        halves: HalfAccesses::Auto,
        dispatch: Dispatch::Thread,
    };

    /// Whether a code generator can honour it on this machine; says what it cannot.
    pub(super) fn check(self, backend: BackendKind, opt: OptLevel) -> Result<(), String> {
        if let Some(feature) = self.cpu.missing() {
            let cpu = self.cpu.name();
            return Err(format!(
                "code for {cpu} does not run here, the processor has no {feature}: use --cpu native or a lower level"
            ));
        }
        if let Some(bits) = self.width.bits() {
            if backend == BackendKind::Cranelift && bits != 128 {
                return Err(format!(
                    "has vectors of 128 bits, not {bits}: use --vector-width 128 or auto, or the backend llvm"
                ));
            }
            let widest = self.cpu.widest();
            if bits > widest {
                return Err(format!(
                    "has vectors of {bits} bits only where the processor does, and {} has {widest}: use --vector-width auto",
                    self.cpu.name()
                ));
            }
        }
        match (backend, self.regalloc, opt) {
            (BackendKind::Llvm, RegAlloc::Fast, OptLevel::Speed) => Err(
                "allocates registers fast with --codegen none only: use that, or --regalloc auto"
                    .to_owned(),
            ),
            (BackendKind::Llvm, RegAlloc::Full, OptLevel::None) => Err(
                "allocates registers fully with --codegen speed only: use that, or --regalloc auto"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(backend: BackendKind, opt: OptLevel, tuning: Tuning) -> Option<String> {
        tuning.check(backend, opt).err()
    }

    #[test]
    fn each_code_generator_honours_or_refuses() {
        use BackendKind::{Cranelift, Llvm};
        use OptLevel::{None, Speed};
        let width = |width| Tuning {
            width,
            ..Tuning::default()
        };
        let regalloc = |regalloc| Tuning {
            regalloc,
            ..Tuning::default()
        };
        for (backend, opt, tuning, part) in [
            (Cranelift, Speed, width(VectorWidth::Bits256), "128 bits"),
            (Cranelift, Speed, width(VectorWidth::Bits512), "llvm"),
            (Llvm, Speed, regalloc(RegAlloc::Fast), "--codegen none"),
            (Llvm, None, regalloc(RegAlloc::Full), "--codegen speed"),
        ] {
            let why = refusal(backend, opt, tuning).unwrap();
            assert!(why.contains(part), "{why}");
        }
        for (backend, opt, tuning) in [
            (Cranelift, Speed, width(VectorWidth::Bits128)),
            (Llvm, Speed, width(VectorWidth::Bits128)),
            (Cranelift, Speed, regalloc(RegAlloc::Fast)),
            (Cranelift, None, regalloc(RegAlloc::Full)),
            (Llvm, None, regalloc(RegAlloc::Fast)),
            (Llvm, Speed, regalloc(RegAlloc::Full)),
        ] {
            assert_eq!(refusal(backend, opt, tuning), Option::None);
        }
    }

    #[test]
    fn a_processor_bounds_the_width() {
        let tuning = Tuning {
            width: VectorWidth::Bits512,
            cpu: Cpu::V3,
            ..Tuning::default()
        };
        // Where the machine is less than that, this is what is refused.
        let why = refusal(BackendKind::Llvm, OptLevel::Speed, tuning).unwrap();
        assert!(why.contains("x86-64-v3"), "{why}");
    }

    #[test]
    fn unknown_values_list_the_legal_ones() {
        let why = Cpu::parse("pentium").unwrap_err();
        assert!(
            why.contains("native, x86-64-v2, x86-64-v3, x86-64-v4"),
            "{why}"
        );
        assert_eq!(VectorWidth::parse("256"), Ok(VectorWidth::Bits256));
    }
}
