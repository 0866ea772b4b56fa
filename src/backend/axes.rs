//! The one table of strategy axes: a row for each axis.
//!
//! Everything that needs an axis reads its row: the enum of its values, the field of [`Tuning`], the command line's option,
//! `compare --sweep`, the key of the code cache, the engines of `fuzzing`, and the table in `docs/performance.md`. To add an
//! axis, add a row here, and let the code generator ask for its value. Columns:
//!
//! `field: Type = Default, "option", "placeholder", "what it is for" { Variant = "name": "what the value does", … }`
//!
//! The value of a row in `sets` is a set of the names: `field: Set of Type = Default, …`.

use super::{Checks, Strategy};

/// Values of an axis.
pub trait Choice: Copy + Default + PartialEq + 'static {
    /// All of them, in the order of the table.
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

/// An axis of strategies, as text.
#[derive(Debug)]
pub struct Axis {
    /// Name of the option, without dashes, and of the axis of `compare --sweep`.
    pub name: &'static str,
    /// Placeholder for its value in help texts.
    pub placeholder: &'static str,
    /// What it is for.
    pub help: &'static str,
    /// Names of its values, and what they do.
    pub values: &'static [(&'static str, &'static str)],
    /// Its value is a set of these, between commas.
    pub several: bool,
    get: fn(&Strategy) -> &'static str,
    set: fn(&mut Strategy, &str) -> Result<(), String>,
}

impl Axis {
    /// The axis of this name.
    pub fn named(name: &str) -> Option<&'static Axis> {
        AXES.iter().find(|axis| axis.name == name)
    }

    /// Name of a strategy's value on it.
    pub fn value(&self, strategy: &Strategy) -> &'static str {
        (self.get)(strategy)
    }

    /// Changes a strategy's value on it.
    ///
    /// # Errors
    /// A text that lists the legal names, when the value is none of them.
    pub fn set(&self, strategy: &mut Strategy, value: &str) -> Result<(), String> {
        (self.set)(strategy, value)
    }
}

macro_rules! choice {
    ($(#[$doc:meta])* $type:ident = $default:ident, $help:literal { $($value:ident = $name:literal: $does:literal,)* }) => {
        #[doc = $help]
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
        pub enum $type {
            $(#[doc = concat!("`", $name, "`: ", $does, ".")] $value,)*
        }

        impl Default for $type {
            fn default() -> $type {
                $type::$default
            }
        }

        impl $type {
            /// Spelling on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$value => $name,)*
                }
            }
        }

        impl Choice for $type {
            const ALL: &'static [$type] = &[$($type::$value,)*];

            fn name(self) -> &'static str {
                $type::name(self)
            }
        }
    };
}

macro_rules! axis {
    ($($field:ident).+, $type:ident, $option:literal, $placeholder:literal, $help:literal, $several:literal,
        [$(($name:literal, $does:literal)),*]) => {
        Axis {
            name: $option,
            placeholder: $placeholder,
            help: $help,
            values: &[$(($name, $does)),*],
            several: $several,
            get: |strategy| strategy.$($field).+.name(),
            set: |strategy, value| {
                strategy.$($field).+ = $type::parse(value)?;
                Ok(())
            },
        }
    };
}

macro_rules! axes {
    (
        strategy { $backend:ident: $backend_type:ident = $backend_default:ident, $backend_option:literal, $backend_place:literal,
            $backend_help:literal { $($kind:ident = $kind_name:literal: $kind_does:literal,)* } }
        tuning { $(
            $(#[$doc:meta])*
            $field:ident: $type:ident = $default:ident, $option:literal, $place:literal,
            $help:literal { $($value:ident = $name:literal: $does:literal,)* }
        )* }
        sets { $(
            $set_field:ident: $set:ident of $word:ident = $none:ident, $set_option:literal, $set_place:literal,
            $set_help:literal { $($member:ident = $member_name:literal: $member_does:literal,)* }
        )* }
    ) => {
        choice! { $backend_type = $backend_default, $backend_help { $($kind = $kind_name: $kind_does,)* } }
        $(choice! { $(#[$doc])* $type = $default, $help { $($value = $name: $does,)* } })*
        $(choice! { $word = $none, $set_help { $($member = $member_name: $member_does,)* } })*

        /// How a code generator works: a value on each axis but the code generator itself. Part of the cache key.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
        pub struct Tuning {
            $(#[doc = concat!($help, ".")] pub $field: $type,)*
            $(#[doc = concat!($set_help, ".")] pub $set_field: $set,)*
        }

        impl Tuning {
            /// The default on each axis.
            pub const DEFAULT: Tuning = Tuning { $($field: $type::$default,)* $($set_field: $set::NONE,)* };
        }

        /// All axes.
        pub const AXES: &[Axis] = &[
            axis!($backend, $backend_type, $backend_option, $backend_place, $backend_help, false,
                [$(($kind_name, $kind_does)),*]),
            $(axis!(tuning.$field, $type, $option, $place, $help, false, [$(($name, $does)),*]),)*
            $(axis!(tuning.$set_field, $set, $set_option, $set_place, $set_help, true, [$(($member_name, $member_does)),*]),)*
        ];
    };
}

axes! {
    strategy {
        backend: BackendKind = Cranelift, "backend", "NAME", "The code generator" {
            Cranelift = "cranelift": "compiles fast; its vectors have 128 bits",
            Llvm = "llvm": "vectors of the processor's full width; in builds with the cargo feature `llvm`",
        }
    }
    tuning {
        codegen: CodegenEffort = Speed, "codegen", "LEVEL", "Effort of instruction selection and register allocation" {
            None = "none": "fastest to compile",
            Speed = "speed": "fastest to run",
        }
        opt: OptLevel = None, "opt", "LEVEL",
        "llvm only: LLVM's own optimisation passes, which run before instruction selection" {
            None = "none": "none, as the passes of visa-jit have done the work",
            O1 = "O1": "LLVM's O1",
            O2 = "O2": "LLVM's O2",
            O3 = "O3": "LLVM's O3",
        }
        gather: Gather = Auto, "gather", "WAY", "Loads and stores whose addresses are not affine in the lane" {
            Auto = "auto": "what measured best: on cranelift `select`, with more such accesses a loop over the lanes, and with very many `call`; on llvm `hardware`",
            Call = "call": "one call of the runtime for all lanes",
            Select = "select": "an access for each lane; masked-off lanes use a harmless address",
            Branch = "branch": "an access for each lane, and a jump over it for masked-off lanes",
            Hardware = "hardware": "the processor's gather and scatter instructions (llvm only)",
        }
        bounds: Bounds = Hoisted, "bounds", "WHERE", "Where accesses are tested against the bounds of their memory" {
            Hoisted = "hoisted": "once for a group of affine accesses with a common base, before the first",
            Separate = "separate": "before the block too, but a test for each access",
            Inline = "inline": "at each access",
            Off = "off": "nowhere; refused, see docs/decisions.md",
        }
        vector_width: VectorWidth = Auto, "vector-width", "BITS", "Width of the widest vectors in bits" {
            Auto = "auto": "what the code generator and the processor have",
            Bits128 = "128": "128 bits",
            Bits256 = "256": "256 bits (llvm only)",
            Bits512 = "512": "512 bits (llvm only)",
        }
        cpu: Cpu = Native, "cpu", "NAME", "The processor to generate code for" {
            Native = "native": "the one it runs on",
            V2 = "x86-64-v2": "any x86-64 processor with SSE4.2",
            V3 = "x86-64-v3": "any with AVX2",
            V4 = "x86-64-v4": "any with AVX-512",
        }
        regalloc: RegAlloc = Auto, "regalloc", "EFFORT", "Effort of register allocation" {
            Auto = "auto": "as for code generation",
            Fast = "fast": "one pass",
            Full = "full": "with backtracking",
        }
        order: Order = Auto, "order", "WAY", "Order of instructions in straight-line code" {
            Auto = "auto": "`interleaved` in code with many vector operations, enough of which take several cycles, if codegen is `speed`",
            Given = "given": "as passes and optimiser leave it",
            Interleaved = "interleaved": "dependence chains side by side, as many as there are registers for; LLVM may order them again",
        }
        prefetch: Prefetch = Auto, "prefetch", "WAY", "Software prefetch of what this thread and the next ones will load" {
            Auto = "auto": "`streams` on llvm, `none` on cranelift, which has no such instruction",
            None = "none": "no prefetch",
            Streams = "streams": "for the next threads, with affine loads outside of loops in functions that also access memory at addresses that are not affine; for this thread, before masked vector loads (llvm only)",
        }
        masks: Masks = Auto, "masks", "WAY", "What happens to code whose execution mask has no lane enabled" {
            Auto = "auto": "`branch`, and on llvm, blocks of up to ten cheap operations are executed",
            Select = "select": "it is executed without effect (if-conversion)",
            Branch = "branch": "it is jumped over",
        }
        split_accesses: SplitAccesses = Auto, "split-accesses", "WAY",
        "Memory accesses that the kernel's compiler split in two, (M1, 16) and (M5, 16)" {
            Auto = "auto": "those are merged for which that was measured to be faster on the code generator",
            Keep = "keep": "they stay split",
            Merge = "merge": "they are merged",
        }
        dispatch: Dispatch = Auto, "dispatch", "UNIT", "What a call of the code runs, where threads wait at barriers" {
            Auto = "auto": "`group`, or `thread` where only the runtime knows which thread goes on: with named barriers, values that threads exchange, and checks of races",
            Thread = "thread": "one thread to its next barrier, where it returns",
            Group = "group": "the whole work-group to its end",
        }
    }
    sets {
        check: Checks of Check = None, "check", "WHAT",
        "Which errors of a kernel to look for and report, one or several (`memory,barrier`), see docs/checking.md" {
            None = "none": "nothing beyond the bounds of each memory",
            Memory = "memory": "whether accesses by 64-bit address stay in one live buffer",
            Init = "init": "uses of what was never written",
            Race = "race": "accesses of different threads to the same bytes that no barrier orders",
            Barrier = "barrier": "whether all work-items of a group reach the same barriers",
            All = "all": "all of them together",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_can_be_set_and_read() {
        for axis in AXES {
            for (value, _) in axis.values {
                let mut strategy = Strategy::default();
                axis.set(&mut strategy, value).unwrap();
                assert_eq!(axis.value(&strategy), *value);
                for other in AXES.iter().filter(|other| other.name != axis.name) {
                    assert_eq!(other.value(&strategy), other.value(&Strategy::default()));
                }
            }
            let error = axis.set(&mut Strategy::default(), "pentium").unwrap_err();
            for (value, _) in axis.values {
                assert!(error.contains(value), "{error}");
            }
        }
    }

    #[test]
    fn defaults_are_those_of_the_types() {
        assert_eq!(Tuning::DEFAULT, Tuning::default());
        assert_eq!(VectorWidth::parse("256"), Ok(VectorWidth::Bits256));
    }
}
