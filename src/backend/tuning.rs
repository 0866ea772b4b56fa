//! Which tunings this machine and the code generators can honour.

use super::axes::{BackendKind, CodegenEffort, Cpu, Prefetch, RegAlloc, Tuning, VectorWidth};

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
        self.vector_width
            .bits()
            .map_or(there, |asked| asked.min(there))
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
    /// Whether a code generator can honour it on this machine; says what it cannot.
    pub(super) fn check(self, backend: BackendKind) -> Result<(), String> {
        if let Some(feature) = self.cpu.missing() {
            let cpu = self.cpu.name();
            return Err(format!(
                "code for {cpu} does not run here, the processor has no {feature}: use --cpu native or a lower level"
            ));
        }
        if let Some(bits) = self.vector_width.bits() {
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
        if backend == BackendKind::Cranelift && self.prefetch == Prefetch::Streams {
            return Err(
                "has no instruction that fetches ahead: use --prefetch auto, or the backend llvm"
                    .to_owned(),
            );
        }
        match (backend, self.regalloc, self.codegen) {
            (BackendKind::Llvm, RegAlloc::Fast, CodegenEffort::Speed) => Err(
                "allocates registers fast with --codegen none only: use that, or --regalloc auto"
                    .to_owned(),
            ),
            (BackendKind::Llvm, RegAlloc::Full, CodegenEffort::None) => Err(
                "allocates registers fully with --codegen speed only: use that, or --regalloc auto"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::axes::Order;
    use super::*;

    fn refusal(backend: BackendKind, tuning: Tuning) -> Option<String> {
        tuning.check(backend).err()
    }

    #[test]
    fn each_code_generator_honours_or_refuses() {
        use BackendKind::{Cranelift, Llvm};
        use CodegenEffort::{None, Speed};
        let width = |vector_width| Tuning {
            vector_width,
            ..Tuning::default()
        };
        let regalloc = |codegen, regalloc| Tuning {
            codegen,
            regalloc,
            ..Tuning::default()
        };
        let ordered = |order| Tuning {
            order,
            ..Tuning::default()
        };
        let fetched = Tuning {
            prefetch: Prefetch::Streams,
            ..Tuning::default()
        };
        for (backend, tuning, part) in [
            (Cranelift, fetched, "--prefetch auto"),
            (Cranelift, width(VectorWidth::Bits256), "128 bits"),
            (Cranelift, width(VectorWidth::Bits512), "llvm"),
            (Llvm, regalloc(Speed, RegAlloc::Fast), "--codegen none"),
            (Llvm, regalloc(None, RegAlloc::Full), "--codegen speed"),
        ] {
            let why = refusal(backend, tuning).unwrap();
            assert!(why.contains(part), "{why}");
        }
        for (backend, tuning) in [
            (Cranelift, width(VectorWidth::Bits128)),
            (Llvm, fetched),
            (Llvm, width(VectorWidth::Bits128)),
            (Cranelift, ordered(Order::Given)),
            (Cranelift, ordered(Order::Interleaved)),
            (Llvm, ordered(Order::Given)),
            (Llvm, ordered(Order::Interleaved)),
            (Cranelift, regalloc(Speed, RegAlloc::Fast)),
            (Cranelift, regalloc(None, RegAlloc::Full)),
            (Llvm, regalloc(None, RegAlloc::Fast)),
            (Llvm, regalloc(Speed, RegAlloc::Full)),
        ] {
            assert_eq!(refusal(backend, tuning), Option::None);
        }
    }

    #[test]
    fn a_processor_bounds_the_width() {
        let tuning = Tuning {
            vector_width: VectorWidth::Bits512,
            cpu: Cpu::V3,
            ..Tuning::default()
        };
        // Where the machine is less than that, this is what is refused.
        let why = refusal(BackendKind::Llvm, tuning).unwrap();
        assert!(why.contains("x86-64-v3"), "{why}");
    }
}
