//! What a program holds handles to.
//!
//! A handle is the address of an [`Object`], which begins with the dispatch table, as loaders want it. Handles are never followed
//! here: each is looked up in a table of live objects first, which gives a counted reference, or the error that says what the handle
//! should have been. So null, foreign, released and wrong-typed handles are all error codes.
//!
//! An object lives as long as the program holds references (`clRetain…`, `clRelease…`) or other objects do. While the
//! program holds one, the object refers to itself.

use std::any::Any;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::error::{Cl, err};
use crate::abi::{cl_int, cl_uint};
use crate::api::{DISPATCH, Table as Dispatch};

/// A kind of object.
pub trait HandleKind: Sized + Send + Sync + 'static {
    /// Tells kinds apart, in a debugger: handles are checked by type.
    const TAG: u32;
    /// What a handle that is none of this kind gives.
    const INVALID: cl_int;
    /// What C programs think the object is.
    type Raw;
}

/// An object with its place in the world of C.
#[repr(C)]
pub struct Object<T: HandleKind> {
    /// What loaders call through; the first word.
    dispatch: &'static Dispatch,
    tag: u32,
    /// References that the program holds.
    held: AtomicU32,
    /// Itself, while the program holds references.
    own: Mutex<Option<Arc<Object<T>>>>,
    value: T,
}

/// A counted reference to an object.
pub type Ref<T> = Arc<Object<T>>;

/// Tables of live objects by address, so that threads seldom meet.
const TABLES: usize = 16;
type Table = RwLock<FxHashMap<usize, Weak<dyn Any + Send + Sync>>>;
static LIVE: [Table; TABLES] = [const { RwLock::new(HashMap::with_hasher(FxBuildHasher)) }; TABLES];

fn table(address: usize) -> &'static Table {
    // Objects are larger than a cache line.
    &LIVE[(address >> 6 ^ address >> 12) % TABLES]
}

/// Locks; a panic elsewhere left nothing half-done that matters here.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: HandleKind> Deref for Object<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: HandleKind> Drop for Object<T> {
    fn drop(&mut self) {
        let address = std::ptr::from_ref(self).addr();
        let mut live = table(address)
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let gone = live.remove(&address);
        drop(live);
        drop(gone);
    }
}

impl<T: HandleKind> Object<T> {
    /// An object that the program knows nothing of yet.
    pub fn hidden(value: T) -> Ref<T> {
        Arc::new(Object {
            dispatch: &DISPATCH,
            tag: T::TAG,
            held: AtomicU32::new(0),
            own: Mutex::new(None),
            value,
        })
    }

    /// An object and its handle, of which the program holds one reference.
    pub fn create(value: T) -> *mut T::Raw {
        let object = Object::hidden(value);
        object.publish();
        object.handle()
    }

    /// Gives the program one reference and makes the handle known.
    pub fn publish(self: &Arc<Self>) {
        let address = self.handle().addr();
        let all: Arc<dyn Any + Send + Sync> = self.clone();
        let mut live = table(address)
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        live.insert(address, Arc::downgrade(&all));
        drop(live);
        self.retain();
    }

    /// The handle.
    pub fn handle(self: &Arc<Self>) -> *mut T::Raw {
        debug_assert_eq!(self.tag, T::TAG);
        debug_assert!(std::ptr::eq(self.dispatch, &raw const DISPATCH));
        Arc::as_ptr(self).cast_mut().cast()
    }

    /// One more reference of the program.
    pub fn retain(self: &Arc<Self>) {
        let mut own = lock(&self.own);
        self.held.fetch_add(1, Ordering::Relaxed);
        own.get_or_insert_with(|| self.clone());
    }

    /// One reference of the program less. True if that was the last.
    ///
    /// # Errors
    /// The kind's code if the program holds none.
    pub fn release(self: &Arc<Self>) -> Cl<bool> {
        let mut own = lock(&self.own);
        match self.held.load(Ordering::Relaxed) {
            0 => err(T::INVALID),
            1 => {
                self.held.store(0, Ordering::Relaxed);
                let itself = own.take();
                drop(own);
                drop(itself);
                Ok(true)
            }
            _ => {
                self.held.fetch_sub(1, Ordering::Relaxed);
                Ok(false)
            }
        }
    }

    /// References that the program holds.
    pub fn references(&self) -> cl_uint {
        self.held.load(Ordering::Relaxed)
    }
}

/// The object of a handle.
///
/// # Errors
/// The kind's code for what is no handle of a live object of this kind.
pub fn find<T: HandleKind>(handle: *mut T::Raw) -> Cl<Ref<T>> {
    let address = handle.addr();
    let live = table(address)
        .read()
        .unwrap_or_else(PoisonError::into_inner);
    let found = live.get(&address).and_then(Weak::upgrade);
    drop(live);
    let object = found.and_then(|any| any.downcast::<Object<T>>().ok());
    object.map_or_else(|| err(T::INVALID), Ok)
}

/// Declares what kinds of objects there are.
macro_rules! kinds {
    ($($kind:ty, $raw:ident, $invalid:ident, $tag:literal;)*) => { $(
        impl HandleKind for $kind {
            const TAG: u32 = u32::from_le_bytes(*$tag);
            const INVALID: cl_int = crate::abi::$invalid;
            type Raw = crate::abi::$raw;
        }
    )* };
}
kinds! {
    super::platform::Platform, _cl_platform_id, CL_INVALID_PLATFORM, b"plat";
    super::device::Device, _cl_device_id, CL_INVALID_DEVICE, b"devi";
    super::context::Context, _cl_context, CL_INVALID_CONTEXT, b"cont";
    super::queue::Queue, _cl_command_queue, CL_INVALID_COMMAND_QUEUE, b"queu";
    super::event::Event, _cl_event, CL_INVALID_EVENT, b"even";
    super::mem::Mem, _cl_mem, CL_INVALID_MEM_OBJECT, b"memo";
    super::sampler::Sampler, _cl_sampler, CL_INVALID_SAMPLER, b"samp";
    super::program::Program, _cl_program, CL_INVALID_PROGRAM, b"prog";
    super::kernel::Kernel, _cl_kernel, CL_INVALID_KERNEL, b"kern";
}
