//! What C passes: pointers under the promise that the specification has the caller make.
//!
//! An entry point is `unsafe`: its caller promises that each pointer is null or points to what the specification says. The
//! macros of [`super::entry`] wrap arguments under this promise, once, so that the bodies of entry points are safe code.

use std::ffi::{CStr, c_char, c_void};

use crate::abi::cl_int;
use crate::abi::host::HostMemory;
use crate::core::object::HandleKind;
use crate::core::{Cl, Ref, ensure, err, find};

/// A pointer of the caller, to nothing or to what the specification says.
pub struct Ptr<T>(*mut T);

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Ptr<T> {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

/// An argument of an entry point.
pub trait Given {
    /// What the entry point sees.
    type As;

    /// Takes the caller's word.
    ///
    /// # Safety
    /// A pointer is null, or points to what the specification of the entry point says, for as long as that says.
    unsafe fn given(self) -> Self::As;
}

impl<T> Given for *mut T {
    type As = Ptr<T>;

    unsafe fn given(self) -> Ptr<T> {
        Ptr(self)
    }
}

impl<T> Given for *const T {
    type As = Ptr<T>;

    unsafe fn given(self) -> Ptr<T> {
        Ptr(self.cast_mut())
    }
}

macro_rules! as_they_are {
    ($($ty:ty)*) => { $(impl Given for $ty {
        type As = $ty;

        unsafe fn given(self) -> $ty {
            self
        }
    })* };
}
as_they_are!(u32 i32 u64 i64 usize isize);

/// A function of the caller, or none.
macro_rules! functions {
    ($($($arg:ident)*;)*) => { $(impl<$($arg),*> Given for Option<unsafe extern "C" fn($($arg),*)> {
        type As = Self;

        unsafe fn given(self) -> Self {
            self
        }
    })* };
}
functions!(A; A B; A B C; A B C D; A B C D E;);

impl<T> Ptr<T> {
    /// Null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The address.
    pub fn addr(self) -> usize {
        self.0.expose_provenance()
    }

    /// The pointer itself.
    pub fn raw(self) -> *mut T {
        self.0
    }

    /// The `n` elements there; none if it is null.
    pub fn slice<'a>(self, n: usize) -> &'a [T] {
        if self.is_null() || n == 0 {
            return &[];
        }
        // SAFETY: not null, so there are as many elements as the caller says.
        unsafe { std::slice::from_raw_parts(self.0, n) }
    }

    /// Writes, unless it is null.
    pub fn set(self, value: T) {
        if !self.is_null() {
            // SAFETY: not null, so the caller has a place for the value.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Writes an element of an array, unless it is null.
    pub fn set_at(self, index: usize, value: T) {
        if !self.is_null() {
            // SAFETY: not null, so the array is as long as the caller says, and indices come from there.
            unsafe { self.0.add(index).write_unaligned(value) }
        }
    }
}

impl<T> Ptr<T> {
    /// No place.
    pub fn nowhere() -> Ptr<T> {
        Ptr(std::ptr::null_mut())
    }

    /// A pointer that was found where another of the caller's points to, under the same promise.
    pub fn promised(pointer: *mut T) -> Ptr<T> {
        Ptr(pointer)
    }
}

impl<T: Copy> Ptr<T> {
    /// What is there, if it is not null.
    pub fn get(self) -> Option<T> {
        // SAFETY: not null, so there is a value.
        (!self.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }

    /// Elements up to one that `ends` says is the end, which stays away; none if it is null. `step` elements belong together.
    pub fn until(self, step: usize, ends: impl Fn(T) -> bool) -> Vec<T> {
        let mut found = Vec::new();
        if self.is_null() {
            return found;
        }
        loop {
            // SAFETY: the list has an end, which was not reached yet.
            let item = unsafe { self.0.add(found.len()).read_unaligned() };
            if found.len().is_multiple_of(step) && ends(item) {
                return found;
            }
            found.push(item);
        }
    }
}

impl Ptr<c_void> {
    /// The caller's memory, for commands.
    pub fn host(self, len: usize) -> HostMemory {
        // SAFETY: the caller keeps the memory until the command is done.
        unsafe { HostMemory::new(self.0.cast(), len) }
    }

    /// The bytes there.
    pub fn bytes(self, len: usize) -> Vec<u8> {
        Ptr(self.0.cast::<u8>()).slice(len).to_vec()
    }

    /// The pointer to something else.
    pub fn cast<T>(self) -> Ptr<T> {
        Ptr(self.0.cast())
    }
}

impl Ptr<c_char> {
    /// The text there; empty if it is null.
    pub fn text(self) -> String {
        String::from_utf8_lossy(&self.text_bytes()).into_owned()
    }

    /// Its bytes without NUL.
    pub fn text_bytes(self) -> Vec<u8> {
        if self.is_null() {
            return Vec::new();
        }
        // SAFETY: not null, so it ends in NUL.
        unsafe { CStr::from_ptr(self.0) }.to_bytes().to_vec()
    }

    /// The same as bytes of any kind.
    pub fn cast_void(self) -> Ptr<c_void> {
        Ptr(self.0.cast())
    }
}

impl<T> Ptr<T> {
    /// The object whose handle this is.
    ///
    /// # Errors
    /// The kind's code if it is none.
    pub fn object<K: HandleKind<Raw = T>>(self) -> Cl<Ref<K>> {
        find(self.0)
    }

    /// The object whose handle this is; none if it is null.
    ///
    /// # Errors
    /// The kind's code if it is neither.
    pub fn optional<K: HandleKind<Raw = T>>(self) -> Cl<Option<Ref<K>>> {
        if self.is_null() {
            return Ok(None);
        }
        find(self.0).map(Some)
    }
}

/// Whether each name of a list of properties, name before value, is there once.
pub fn distinct_names<T: PartialEq>(list: &[T]) -> bool {
    let mut names = list.iter().step_by(2).enumerate();
    names.all(|(i, name)| !list.iter().step_by(2).take(i).any(|before| before == name))
}

/// The objects of a list of handles.
///
/// # Errors
/// `code` if one and only one of list and count is nothing; the kind's code for what is no handle.
pub fn objects<K: HandleKind>(list: Ptr<*mut K::Raw>, n: u32, code: cl_int) -> Cl<Vec<Ref<K>>> {
    ensure(list.is_null() == (n == 0), code)?;
    list.slice(n as usize)
        .iter()
        .map(|raw| find(*raw))
        .collect()
}

/// Writes the answer to a query: `bytes`, if there is room and a place for them, and how many there are.
///
/// # Errors
/// `CL_INVALID_VALUE` if there is a place, but too small a one.
pub fn answer(bytes: &[u8], size: usize, value: Ptr<c_void>, needed: Ptr<usize>) -> Cl<()> {
    if !value.is_null() {
        if size < bytes.len() {
            return err(crate::abi::CL_INVALID_VALUE);
        }
        // SAFETY: not null, so there are `size` bytes, which is enough; the answer is memory of our own.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.0.cast(), bytes.len()) };
    }
    needed.set(bytes.len());
    Ok(())
}
