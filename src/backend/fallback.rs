//! What happens when a code generator fails: it is asked again, for plainer code.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

use super::{Backend, BackendError, CodegenOptions};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs part of a code generator, turning a panic into an error made of its message.
///
/// # Errors
/// Those of `body`.
pub(crate) fn guarded<T>(
    body: impl FnOnce() -> Result<T, BackendError>,
    internal: impl FnOnce(String) -> BackendError,
) -> Result<T, BackendError> {
    let outer = GUARDED.replace(true);
    let made = catch_unwind(AssertUnwindSafe(body));
    GUARDED.set(outer);
    made.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        let known = PANIC.take();
        let text = known.as_deref().or(text).unwrap_or("panic");
        Err(internal(text.to_owned()))
    })
}

/// True for a panic inside a code generator, which becomes a [`BackendError`]. A program with a panic hook of its own asks this
/// in the hook and reports nothing if so; the error then has the panic's place and message.
pub fn becomes_error(info: &PanicHookInfo<'_>) -> bool {
    let guarded = GUARDED.get();
    if guarded {
        PANIC.replace(Some(info.to_string()));
    }
    guarded
}

/// Makes something with the options asked for or, if the code generator fails at that, with the first of its plainer ones that it
/// succeeds with. Returns it with a note if that was not what was asked for.
///
/// # Errors
/// The first error, if all options fail; also if trying again cannot help.
pub(crate) fn or_plainer<T>(
    backend: &dyn Backend,
    options: &CodegenOptions,
    make: impl Fn(&CodegenOptions) -> Result<T, BackendError>,
) -> Result<(T, Option<String>), BackendError> {
    let error = match make(options) {
        Ok(made) => return Ok((made, None)),
        Err(error) => error,
    };
    if !matches!(
        error,
        BackendError::Internal { .. } | BackendError::TooLarge { .. }
    ) {
        return Err(error);
    }
    for (plainer, what) in backend.plainer(options) {
        if plainer == *options {
            continue;
        }
        if let Ok(made) = make(&plainer) {
            return Ok((made, Some(format!("{error}; compiled with {what} instead"))));
        }
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::backend::{Bounds, CodeObject, CodegenEffort, Explained, Identity};
    use crate::ssa::Function;

    /// A code generator that fails for all options but some.
    struct Failing {
        works_for: fn(&CodegenOptions) -> bool,
        error: fn() -> BackendError,
        asked: Mutex<Vec<CodegenOptions>>,
    }

    fn internal() -> BackendError {
        BackendError::Internal {
            backend: "failing",
            function: "k".to_owned(),
            what: "panic: called `Option::unwrap()` on a `None` value".to_owned(),
        }
    }

    impl Backend for Failing {
        fn name(&self) -> &'static str {
            "failing"
        }

        fn identity(&self) -> Identity {
            unreachable!("only code is asked for")
        }

        fn needs(&self) -> Option<Vec<String>> {
            None
        }

        fn plainer(&self, options: &CodegenOptions) -> Vec<(CodegenOptions, &'static str)> {
            let none = options.tuned(|t| t.codegen = CodegenEffort::None);
            let inline = none.tuned(|t| t.bounds = Bounds::Inline);
            vec![(none, "codegen=none"), (inline, "bounds=inline")]
        }

        fn explain(
            &self,
            _: &Function,
            options: &CodegenOptions,
        ) -> Result<Explained, BackendError> {
            self.asked.lock().unwrap().push(options.clone());
            if !(self.works_for)(options) {
                return Err((self.error)());
            }
            Ok(Explained {
                object: CodeObject {
                    code: Vec::new(),
                    align: 16,
                    lines: crate::lines::LineTable::default(),
                    triple: target_lexicon::Triple::host(),
                    backend: "failing",
                    stack_bytes: 0,
                    note: None,
                },
                remarks: Vec::new(),
                plan: None,
                calls: Vec::new(),
                stack: crate::backend::StackUse::Program(Vec::new()),
            })
        }
    }

    /// What comes of it, and how often code was asked for.
    fn compile(
        works_for: fn(&CodegenOptions) -> bool,
        error: fn() -> BackendError,
    ) -> (Result<Option<String>, String>, usize) {
        let backend = Failing {
            works_for,
            error,
            asked: Mutex::default(),
        };
        let f = Function::new("k", 16);
        let made = or_plainer(&backend, &CodegenOptions::default(), |options| {
            backend.compile(&f, options)
        });
        let asked = backend.asked.lock().unwrap().len();
        (made.map(|(_, note)| note).map_err(|e| e.to_string()), asked)
    }

    #[test]
    fn panics_become_errors() {
        let error = guarded::<()>(
            || panic!("no {}", "value"),
            |what| BackendError::Internal {
                backend: "failing",
                function: "k".to_owned(),
                what,
            },
        );
        let error = error.unwrap_err().to_string();
        assert!(error.contains("no value"), "{error}");
    }

    #[test]
    fn what_works_is_not_tried_again() {
        assert_eq!(compile(|_| true, internal), (Ok(None), 1));
    }

    #[test]
    fn a_failure_is_tried_again_and_noted() {
        let (made, asked) = compile(|o| o.tuning.bounds == Bounds::Inline, internal);
        let note = made.unwrap().unwrap();
        assert_eq!(asked, 3);
        assert!(note.contains("internal error compiling `k`"), "{note}");
        assert!(
            note.ends_with("compiled with bounds=inline instead"),
            "{note}"
        );
    }

    #[test]
    fn the_first_error_stays_if_all_fail() {
        let (made, asked) = compile(|_| false, internal);
        assert_eq!((made, asked), (Err(internal().to_string()), 3));
    }

    #[test]
    fn what_the_machine_lacks_is_not_tried_again() {
        let lacks = || BackendError::Environment {
            backend: "failing",
            what: "no AVX".to_owned(),
        };
        assert_eq!(compile(|_| false, lacks), (Err(lacks().to_string()), 1));
    }
}
