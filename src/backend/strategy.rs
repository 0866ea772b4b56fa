//! How code is generated, as data: which backend, and how hard each of its stages works.

use super::axes::{BackendKind, Bounds, Cpu, Gather, OptLevel, Tuning};
use super::cranelift::{self, CraneliftBackend};
use super::{Backend, BackendError};

/// Bits of the vectors of the least processor with gather instructions, AVX2.
const GATHER_BITS: u32 = 256;

/// How code is generated; part of the cache key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Strategy {
    /// Code generator.
    pub backend: BackendKind,
    /// How it works.
    pub tuning: Tuning,
}

impl BackendKind {
    /// Whether this build has it.
    ///
    /// # Errors
    /// [`BackendError::Strategy`] says what is missing, and how to come by it.
    pub fn available(self) -> Result<(), BackendError> {
        if self == BackendKind::Cranelift || cfg!(feature = "llvm-codegen") {
            return Ok(());
        }
        Err(without_llvm())
    }

    /// Passes over the SSA that make this code generator's code worse. `strip-mine` and `strip-start` cut vectors into pieces for code
    /// generators with narrow registers; LLVM has them as wide as the processor does. On Cranelift, `short-branches`
    /// made some kernels faster and others up to 2.5 times slower.
    pub const fn unwanted_passes(self) -> &'static [&'static str] {
        match self {
            BackendKind::Cranelift => &["short-branches"],
            BackendKind::Llvm => &["strip-mine", "strip-start"],
        }
    }
}

impl From<BackendKind> for Strategy {
    /// The usual strategy of a code generator.
    fn from(backend: BackendKind) -> Strategy {
        Strategy {
            backend,
            ..Strategy::default()
        }
    }
}

impl Strategy {
    /// The same with another tuning.
    #[must_use]
    pub fn tuned(mut self, change: impl FnOnce(&mut Tuning)) -> Strategy {
        change(&mut self.tuning);
        self
    }

    /// The strategy of the code that launches take in the end where they are tiered: the same on LLVM.
    ///
    /// # Errors
    /// [`BackendError::Strategy`] when this is LLVM's already, when this build does not have LLVM, and when LLVM cannot honour it.
    pub fn upgraded(&self) -> Result<Strategy, BackendError> {
        let refused = |what: String| BackendError::Strategy {
            backend: BackendKind::Llvm.name(),
            what,
        };
        if self.backend == BackendKind::Llvm {
            return Err(refused(
                "--tier begins with cranelift's code: use the backend cranelift, or leave out --tier".to_owned(),
            ));
        }
        let better = Strategy {
            backend: BackendKind::Llvm,
            ..*self
        };
        let able = better.backend.available().and_then(|()| better.check());
        able.map(|()| better).map_err(|error| match error {
            BackendError::Strategy { what, .. } => {
                refused(format!("{what}; --tier compiles with it"))
            }
            other => other,
        })
    }

    /// The code generator for the machine it runs on.
    ///
    /// # Errors
    /// [`BackendError::Environment`] when the machine cannot run what it makes, and [`BackendError::Strategy`] when this
    /// build does not have it or it cannot honour the strategy.
    pub fn host(&self) -> Result<Box<dyn Backend>, BackendError> {
        self.check()?;
        match self.backend {
            BackendKind::Cranelift => Ok(Box::new(CraneliftBackend::for_cpu(self.tuning.cpu)?)),
            BackendKind::Llvm => llvm(self.tuning.cpu),
        }
    }

    /// Whether the code generator can honour the strategy.
    ///
    /// # Errors
    /// [`BackendError::Strategy`] says what it cannot.
    pub fn check(&self) -> Result<(), BackendError> {
        if self.backend == BackendKind::Cranelift && self.tuning.opt != OptLevel::None {
            return Err(BackendError::Strategy {
                backend: cranelift::NAME,
                what: format!(
                    "has no passes of its own at level {}: use none, or the backend llvm",
                    self.tuning.opt.name()
                ),
            });
        }
        let refused = |what: &str| {
            Err(BackendError::Strategy {
                backend: self.backend.name(),
                what: what.to_owned(),
            })
        };
        if self.tuning.bounds == Bounds::Off {
            return refused(
                "tests every access: without bounds tests a kernel could write over the program that runs it; use --bounds \
                 hoisted, separate or inline",
            );
        }
        match (self.backend, self.tuning.gather) {
            (BackendKind::Cranelift, Gather::Hardware) => refused(
                "has no gather instructions, its vectors have 128 bits: use --gather call, select or branch, or the backend llvm",
            ),
            (BackendKind::Llvm, Gather::Branch) => refused(
                "does not branch around single lanes: use --gather call, select or hardware, or the backend cranelift",
            ),
            (BackendKind::Llvm, Gather::Hardware) if self.tuning.widest() < GATHER_BITS => refused(
                "has gather instructions from AVX2 on, with vectors of 256 bits: use --vector-width 256 and --cpu x86-64-v3 or \
                 more, or --gather call or select",
            ),
            _ => Ok(()),
        }?;
        let tuned = self.tuning.check(self.backend);
        tuned.map_err(|what| BackendError::Strategy {
            backend: self.backend.name(),
            what,
        })
    }
}

/// The error for LLVM in a build without the features `llvm` and `llvm22`: how to come by it.
pub fn without_llvm() -> BackendError {
    BackendError::Strategy {
        backend: BackendKind::Llvm.name(),
        what: "this program was built without it: install the packages llvm-19-dev and libpolly-19-dev and \
               build with `cargo build --features llvm`, or use the backend cranelift"
            .to_owned(),
    }
}

#[cfg(feature = "llvm-codegen")]
fn llvm(cpu: Cpu) -> Result<Box<dyn Backend>, BackendError> {
    use super::llvm::LlvmBackend;
    Ok(Box::new(match cpu {
        Cpu::Native => LlvmBackend::host()?,
        level => LlvmBackend::for_cpu(level.name(), "")?,
    }))
}

#[cfg(not(feature = "llvm-codegen"))]
fn llvm(_: Cpu) -> Result<Box<dyn Backend>, BackendError> {
    Err(without_llvm())
}

#[cfg(test)]
mod tests {
    use super::super::axes::{Choice, RegAlloc, VectorWidth};
    use super::*;

    #[test]
    fn cranelift_has_no_passes() {
        let mut strategy = Strategy::default();
        assert!(strategy.check().is_ok());
        strategy.tuning.opt = OptLevel::O2;
        let error = strategy.check().unwrap_err().to_string();
        assert!(
            error.contains("O2") && error.contains("cranelift"),
            "{error}"
        );
        strategy.backend = BackendKind::Llvm;
        assert!(strategy.check().is_ok());
    }

    #[test]
    fn no_code_generator_leaves_bounds_untested() {
        for &backend in BackendKind::ALL {
            for &bounds in Bounds::ALL {
                let mut strategy = Strategy::from(backend);
                strategy.tuning.bounds = bounds;
                assert_eq!(strategy.check().is_err(), bounds == Bounds::Off);
            }
        }
    }

    #[test]
    fn each_code_generator_has_its_ways_to_gather() {
        for (backend, other, refused) in [
            (BackendKind::Cranelift, "llvm", Gather::Hardware),
            (BackendKind::Llvm, "cranelift", Gather::Branch),
        ] {
            for &gather in Gather::ALL {
                let mut strategy = Strategy::from(backend);
                strategy.tuning.gather = gather;
                if gather == Gather::Hardware && strategy.tuning.widest() < GATHER_BITS {
                    continue; // Refused on such a machine; the next test says how.
                }
                let error = strategy.check().err().map(|e| e.to_string());
                assert_eq!(error.is_some(), gather == refused, "{error:?}");
                assert!(error.is_none_or(|e| e.contains(other)));
            }
        }
    }

    #[test]
    fn narrow_vectors_have_no_gather_instructions() {
        for (width, cpu) in [
            (VectorWidth::Bits128, Cpu::Native),
            (VectorWidth::Auto, Cpu::V2),
        ] {
            let mut strategy = Strategy::from(BackendKind::Llvm);
            strategy.tuning.gather = Gather::Hardware;
            (strategy.tuning.vector_width, strategy.tuning.cpu) = (width, cpu);
            let error = strategy.check().unwrap_err().to_string();
            assert!(
                error.contains("--vector-width") && error.contains("--cpu"),
                "{error}"
            );
            // What is not asked for is chosen by what there is.
            strategy.tuning.gather = Gather::Auto;
            assert!(strategy.check().is_ok());
        }
    }

    #[test]
    fn tiers_begin_with_cranelift() {
        let refusal = |strategy: Strategy| {
            let error = strategy.upgraded().err().map(|e| e.to_string());
            error.inspect(|e| assert!(e.contains("--tier"), "{e}"))
        };
        let llvm = refusal(BackendKind::Llvm.into()).unwrap();
        assert!(llvm.contains("backend cranelift"), "{llvm}");
        let one_pass = Strategy::default().tuned(|t| t.regalloc = RegAlloc::Fast);
        let plain = refusal(Strategy::default());
        if cfg!(feature = "llvm-codegen") {
            assert_eq!(plain, None);
            let better = Strategy::default().upgraded().unwrap();
            assert_eq!(better, BackendKind::Llvm.into());
            assert!(refusal(one_pass).unwrap().contains("--regalloc auto"));
        } else {
            for refused in [plain, refusal(one_pass)] {
                assert!(refused.unwrap().contains("--features llvm"));
            }
        }
    }

    #[test]
    #[cfg(not(feature = "llvm-codegen"))]
    fn a_missing_backend_says_how_to_get_it() {
        let strategy = Strategy {
            backend: BackendKind::Llvm,
            ..Strategy::default()
        };
        let error = strategy.host().err().map(|e| e.to_string()).unwrap();
        for part in ["llvm-19-dev", "libpolly-19-dev", "--features llvm"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
