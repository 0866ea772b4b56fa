//! How functions of C become Rust, and answers to queries bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{CL_OUT_OF_HOST_MEMORY, cl_int};
use crate::core::{Cl, ClError, err};

/// Does what an entry point does. A panic is a bug of ours, but it is the program that would end: it becomes an error.
pub fn guard<T>(body: impl FnOnce() -> Cl<T>) -> Cl<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| err(CL_OUT_OF_HOST_MEMORY))
}

/// The code of a result.
pub fn code(result: Cl<()>) -> cl_int {
    match result {
        Ok(()) => crate::abi::CL_SUCCESS as cl_int,
        Err(ClError(code)) => code,
    }
}

/// What an entry point made: a pointer, or a pointer that the program gets beside an error.
pub trait Made<T> {
    /// The pointer, and how the call ended.
    fn split(self) -> (*mut T, Cl<()>);
}

impl<T> Made<T> for *mut T {
    fn split(self) -> (*mut T, Cl<()>) {
        (self, Ok(()))
    }
}

impl<T> Made<T> for (*mut T, Cl<()>) {
    fn split(self) -> (*mut T, Cl<()>) {
        self
    }
}

/// Entry points. With `-> cl_int` the body is a `Cl<()>`; with another type it is a `Cl` of that, or of that and
/// a `Cl<()>`. It is null after an error, and a last argument receives the code.
macro_rules! entries {
    () => {};
    (fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> cl_int $body:block $($rest:tt)*) => {
        #[doc = concat!("OpenCL's `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As its specification says.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the name is OpenCL's")]
        #[allow(clippy::too_many_arguments, reason = "they are OpenCL's")]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $crate::abi::cl_int {
            // SAFETY: the caller keeps to the specification of this function.
            $(let $arg = unsafe { $crate::api::given::Given::given($arg) };)*
            $crate::api::entry::code($crate::api::entry::guard(|| $body))
        }
        entries! { $($rest)* }
    };
    (fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $out:ty $body:block $($rest:tt)*) => {
        #[doc = concat!("OpenCL's `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As its specification says.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the name is OpenCL's")]
        #[allow(clippy::too_many_arguments, reason = "they are OpenCL's")]
        pub unsafe extern "C" fn $name($($arg: $ty,)* errcode_ret: *mut $crate::abi::cl_int) -> $out {
            // SAFETY: the caller keeps to the specification of this function.
            $(let $arg = unsafe { $crate::api::given::Given::given($arg) };)*
            // SAFETY: as above.
            let errcode_ret = unsafe { $crate::api::given::Given::given(errcode_ret) };
            let made = $crate::api::entry::guard(|| $body);
            let (made, done) = match made {
                Ok(made) => $crate::api::entry::Made::split(made),
                Err(error) => (std::ptr::null_mut(), Err(error)),
            };
            errcode_ret.set($crate::api::entry::code(done));
            made
        }
        entries! { $($rest)* }
    };
}
pub(crate) use entries;

/// Answers to a family of queries, as bytes. `CL_INVALID_VALUE` for others.
macro_rules! queries {
    ($(#[$doc:meta])* fn $name:ident($this:ident: $ty:ty) { $($($query:ident)|+ => $value:expr,)* }) => {
        $(#[$doc])*
        pub fn $name($this: $ty, query: u32) -> $crate::core::Cl<Vec<u8>> {
            Ok(match query {
                $($($crate::abi::$query)|+ => $crate::api::entry::Answer::bytes($value),)*
                _ => return $crate::core::err($crate::abi::CL_INVALID_VALUE),
            })
        }
    };
}
pub(crate) use queries;

/// What can be the answer to a query.
pub trait Answer {
    /// As C has it in memory.
    fn bytes(self) -> Vec<u8>;
}

macro_rules! numbers {
    ($($ty:ty)*) => { $(
        impl Answer for $ty {
            fn bytes(self) -> Vec<u8> {
                self.to_ne_bytes().to_vec()
            }
        }
        impl Answer for &[$ty] {
            fn bytes(self) -> Vec<u8> {
                self.iter().flat_map(|item| item.to_ne_bytes()).collect()
            }
        }
        impl<const N: usize> Answer for [$ty; N] {
            fn bytes(self) -> Vec<u8> {
                self.as_slice().bytes()
            }
        }
    )* };
}
numbers!(u32 i32 u64 usize isize);

/// `cl_bool`.
impl Answer for bool {
    fn bytes(self) -> Vec<u8> {
        u32::from(self).bytes()
    }
}

/// With NUL at the end.
impl Answer for &str {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = self.as_bytes().to_vec();
        bytes.push(0);
        bytes
    }
}

impl Answer for String {
    fn bytes(self) -> Vec<u8> {
        Answer::bytes(self.as_str())
    }
}

/// Sizes.
impl Answer for Vec<usize> {
    fn bytes(self) -> Vec<u8> {
        self.as_slice().bytes()
    }
}

/// As it is.
impl Answer for Vec<u8> {
    fn bytes(self) -> Vec<u8> {
        self
    }
}

/// A handle.
impl<T> Answer for *mut T {
    fn bytes(self) -> Vec<u8> {
        self.expose_provenance().bytes()
    }
}

/// Handles.
impl<T> Answer for Vec<*mut T> {
    fn bytes(self) -> Vec<u8> {
        self.into_iter().flat_map(Answer::bytes).collect()
    }
}
