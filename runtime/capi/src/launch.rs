//! Launches: arguments, running, faults.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Arc;

use crate::error::{done, free, made, object, object_mut, visa_jit_status};
use crate::fault::{visa_jit_end, visa_jit_fault, visa_jit_report};
use crate::image::{visa_jit_image, visa_jit_sampler};
use crate::kernel::visa_jit_kernel;
use crate::memory::{visa_jit_buffer, visa_jit_memory};
use visa_runtime::linked::{ArgValue, Bindings, LaunchMemory, LinkedKernel, ProgramData};
use visa_runtime::printf::{Output, PrintBuffer, Printing};
use visa_runtime::{
    DeviceMemory, Fault, FaultAction, LaunchOptions, LaunchReport, LaunchShape, LaunchStatus,
    PreparedLaunch, WorkerPool,
};

/// A kernel with a shape and arguments, which may run again and again, with other arguments too.
pub struct visa_jit_launch {
    kernel: LinkedKernel,
    memory: DeviceMemory,
    shape: LaunchShape,
    /// Which of the kernel's variants runs.
    variant: usize,
    prepared: PreparedLaunch,
    arguments: BTreeMap<u32, ArgValue>,
    bound: Bindings,
    /// Variables of the kernel's program.
    data: Option<Arc<ProgramData>>,
    /// What the last run printed, and why that is not all.
    printed: CString,
    print_problem: Option<CString>,
    /// What failed assertions said in the last run.
    failed_assertions: Option<CString>,
    pool: Option<WorkerPool>,
    faults: Vec<Fault>,
    /// Opcode, access and space of each fault.
    words: Vec<[CString; 3]>,
}

/// A launch of `global` work-items in groups of `local`; a null `local` leaves the choice to the library. Null on failure.
///
/// # Safety
/// Handles are live; `global` has three numbers, `local` is null or has three.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_new(
    kernel: *const visa_jit_kernel,
    memory: *const visa_jit_memory,
    global: *const u32,
    local: *const u32,
) -> *mut visa_jit_launch {
    made(|| {
        // SAFETY: as promised.
        let kernel = unsafe { object(kernel, "kernel") }?.kernel.clone();
        // SAFETY: as promised.
        let memory = unsafe { object(memory, "memory") }?;
        let data = kernel
            .data()
            .map(|image| memory.programs.get(image, &memory.memory));
        let data = data.transpose().map_err(|e| e.to_string())?;
        // SAFETY: as promised.
        let global = *unsafe { object(global.cast::<[u32; 3]>(), "global size") }?;
        // SAFETY: as promised.
        let local = unsafe { local.cast::<[u32; 3]>().as_ref() }.copied();
        let required = kernel
            .kernels()
            .first()
            .and_then(|k| k.meta().required_local_size);
        let local = local
            .or(required)
            .unwrap_or_else(|| LaunchShape::default_local(global));
        let shape = LaunchShape::new(global, local);
        let (variant, code) = kernel.variant(&shape);
        let prepared = PreparedLaunch::new(code, shape).map_err(|e| e.to_string())?;
        Ok(visa_jit_launch {
            memory: memory.memory.clone(),
            data,
            shape,
            variant,
            prepared,
            arguments: BTreeMap::new(),
            bound: Bindings::default(),
            printed: CString::default(),
            print_problem: None,
            failed_assertions: None,
            pool: None,
            faults: Vec::new(),
            words: Vec::new(),
            kernel,
        })
    })
}

/// Frees a launch. Null is allowed.
///
/// # Safety
/// `launch` is null or from `visa_jit_launch_new`, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_free(launch: *mut visa_jit_launch) {
    // SAFETY: as promised.
    unsafe { free(launch) }
}

/// Sets an argument.
///
/// # Safety
/// `launch` is null or live, and used by no other thread.
unsafe fn set(
    launch: *mut visa_jit_launch,
    index: u32,
    value: impl FnOnce() -> Result<ArgValue, String>,
) -> visa_jit_status {
    done(|| {
        // SAFETY: as promised.
        let launch = unsafe { object_mut(launch, "launch") }?;
        launch.check(index)?;
        let value = value()?;
        launch.set(index, value)
    })
}

/// Sets an argument that is passed by value to `bytes` bytes.
///
/// # Safety
/// `launch` is live and used by no other thread; `from` has a given number of bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_value(
    launch: *mut visa_jit_launch,
    index: u32,
    from: *const c_void,
    bytes: usize,
) -> visa_jit_status {
    let value = || {
        if from.is_null() || bytes == 0 {
            return Err("the value is null or has no bytes".to_owned());
        }
        // SAFETY: as promised.
        let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) };
        Ok(ArgValue::Bytes(bytes.to_vec()))
    };
    // SAFETY: as promised.
    unsafe { set(launch, index, value) }
}

/// Sets an argument to a buffer; a null buffer is a null pointer.
///
/// # Safety
/// `launch` is live and used by no other thread; `buffer` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_buffer(
    launch: *mut visa_jit_launch,
    index: u32,
    buffer: *const visa_jit_buffer,
) -> visa_jit_status {
    // SAFETY: as promised.
    let buffer = unsafe { buffer.as_ref() };
    let value = || Ok(buffer.map_or(ArgValue::Null, |b| ArgValue::Buffer(b.0.clone())));
    // SAFETY: as promised.
    unsafe { set(launch, index, value) }
}

/// Gives an argument in local memory its size.
///
/// # Safety
/// `launch` is live and used by no other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_local(
    launch: *mut visa_jit_launch,
    index: u32,
    bytes: u32,
) -> visa_jit_status {
    // SAFETY: as promised.
    unsafe { set(launch, index, || Ok(ArgValue::Local(bytes))) }
}

/// Binds a surface by its index: for kernels that were written in vISA, which have surfaces where others have arguments.
///
/// # Safety
/// `launch` is live and used by no other thread; `buffer` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_surface(
    launch: *mut visa_jit_launch,
    index: u32,
    buffer: *const visa_jit_buffer,
) -> visa_jit_status {
    done(|| {
        // SAFETY: as promised.
        let launch = unsafe { object_mut(launch, "launch") }?;
        // SAFETY: as promised.
        let buffer = unsafe { object(buffer, "buffer") }?;
        launch.bound.surfaces.insert(index, buffer.0.clone());
        Ok(())
    })
}

/// Sets an argument to an image that a buffer holds from its start, rows and slices without gaps. Of kernels that were
/// written in vISA, `index` is that of the surface.
///
/// # Safety
/// `launch` is live and used by no other thread; `buffer` and `image` are live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_image(
    launch: *mut visa_jit_launch,
    index: u32,
    buffer: *const visa_jit_buffer,
    image: *const visa_jit_image,
) -> visa_jit_status {
    done(|| {
        // SAFETY: as promised.
        let launch = unsafe { object_mut(launch, "launch") }?;
        // SAFETY: as promised.
        let buffer = unsafe { object(buffer, "buffer") }?.0.clone();
        // SAFETY: as promised.
        let shape = unsafe { object(image, "image") }?.shape()?;
        if launch.kernel.record().plan.binds_surfaces {
            launch.bound.images.insert(index, (buffer, shape));
            return Ok(());
        }
        launch.set(index, ArgValue::Image(buffer, shape))
    })
}

/// Sets an argument to a sampler. Of kernels that were written in vISA, `index` is that of the sampler.
///
/// # Safety
/// `launch` is live and used by no other thread; `sampler` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_sampler(
    launch: *mut visa_jit_launch,
    index: u32,
    sampler: *const visa_jit_sampler,
) -> visa_jit_status {
    done(|| {
        // SAFETY: as promised.
        let launch = unsafe { object_mut(launch, "launch") }?;
        // SAFETY: as promised.
        let state = unsafe { object(sampler, "sampler") }?.state()?;
        if launch.kernel.record().plan.binds_surfaces {
            launch.bound.samplers.insert(index, state);
            return Ok(());
        }
        launch.set(index, ArgValue::Sampler(state))
    })
}

/// What the kernel printed in the last run, as text without NUL bytes; empty if nothing. Valid until the launch runs again or
/// is freed; null for null.
///
/// # Safety
/// `launch` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_printed(launch: *const visa_jit_launch) -> *const c_char {
    // SAFETY: as promised.
    unsafe { object(launch, "launch") }.map_or(std::ptr::null(), |l| l.printed.as_ptr())
}

/// Why what the kernel printed is not all, or not what it meant; null if it is. Valid as [`visa_jit_launch_printed`] is.
///
/// # Safety
/// `launch` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_print_problem(
    launch: *const visa_jit_launch,
) -> *const c_char {
    // SAFETY: as promised.
    let launch = unsafe { object(launch, "launch") };
    let problem = launch.ok().and_then(|l| l.print_problem.as_deref());
    problem.map_or(std::ptr::null(), CStr::as_ptr)
}

/// What the kernel's failed assertions said in the last run, a line each; null if none failed. Valid as
/// [`visa_jit_launch_printed`] is. A run in which one fails ends with `VISA_JIT_FAULTED`.
///
/// # Safety
/// `launch` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_failed_assertions(
    launch: *const visa_jit_launch,
) -> *const c_char {
    // SAFETY: as promised.
    let launch = unsafe { object(launch, "launch") };
    let said = launch.ok().and_then(|l| l.failed_assertions.as_deref());
    said.map_or(std::ptr::null(), CStr::as_ptr)
}

/// Runs a launch on `threads` threads of the system; 0 and 1 are the calling thread. Accesses out of bounds are no failure: they
/// are in the report.
///
/// # Safety
/// `launch` is live and used by no other thread; `report` is null or has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_run(
    launch: *mut visa_jit_launch,
    threads: usize,
    report: *mut visa_jit_report,
) -> visa_jit_status {
    done(|| {
        // SAFETY: as promised.
        let launch = unsafe { object_mut(launch, "launch") }?;
        let did = launch.run(threads)?;
        if !report.is_null() {
            // SAFETY: as promised.
            unsafe { report.write(launch.report(&did)) };
        }
        Ok(())
    })
}

/// Text that C can take: it ends at the first NUL byte, so there are none in it.
fn without_nul(mut text: Vec<u8>) -> CString {
    text.retain(|byte| *byte != 0);
    CString::new(text).unwrap_or_default()
}

impl visa_jit_launch {
    fn check(&self, index: u32) -> Result<(), String> {
        let known = &self.kernel.record().plan.arguments;
        if known.iter().any(|a| a.index == index) {
            return Ok(());
        }
        let count = known.len();
        Err(format!(
            "there is no argument {index}; the kernel has {count}"
        ))
    }

    fn set(&mut self, index: u32, value: ArgValue) -> Result<(), String> {
        self.check(index)?;
        self.arguments.insert(index, value);
        Ok(())
    }

    fn run(&mut self, threads: usize) -> Result<LaunchReport, String> {
        self.faults.clear();
        self.words.clear();
        let record = self.kernel.record();
        let plan = &record.plan;
        // What is printed has an order only if groups run one after the other.
        let threads = if plan.prints() { 1 } else { threads.max(1) };
        if self.pool.as_ref().map_or(1, WorkerPool::workers) != threads {
            self.pool = None;
            if threads > 1 {
                self.pool = Some(WorkerPool::new(threads).map_err(|e| e.to_string())?);
            }
        }
        let pool = self.pool.as_ref();
        let own = LaunchMemory::new(plan, &self.prepared, &self.memory, pool);
        let own = own.map_err(|e| e.to_string())?;
        let payload = self.prepared.kernel().meta().payload_bytes;
        let (given, bound) = (&self.arguments, &self.bound);
        let arguments = plan
            .layout(
                payload,
                given,
                bound,
                &self.shape,
                &self.memory,
                (&own, self.data.as_deref()),
            )
            .map_err(|e| format!("kernel `{}`: {e}", record.name))?;
        let options = LaunchOptions {
            pool,
            on_fault: match record.oob.as_str() {
                "trap" => FaultAction::Stop,
                _ => FaultAction::Record,
            },
            ..LaunchOptions::default()
        };
        let records = own.printing().map(PrintBuffer::start);
        let records = records.transpose().map_err(|e| e.to_string())?;
        let asserting = own.asserting().map(PrintBuffer::start);
        let asserting = asserting.transpose().map_err(|e| e.to_string())?;
        let report = self.prepared.run(&arguments, &options);
        let printed = records.map(Printing::finish).transpose();
        let Output { text, problem } = printed.map_err(|e| e.to_string())?.unwrap_or_default();
        let failed = asserting.map(Printing::failed).transpose();
        let failed = failed.map_err(|e| e.to_string())?.flatten();
        self.printed = without_nul(text);
        self.print_problem = problem.map(|problem| without_nul(problem.into_bytes()));
        self.failed_assertions = failed.map(without_nul);
        let mut report = report.map_err(|e| e.to_string())?;
        if self.failed_assertions.is_some() && report.status == LaunchStatus::Completed {
            report.status = LaunchStatus::Faulted;
        }
        self.faults = report.faults.clone();
        Ok(report)
    }

    fn report(&self, did: &LaunchReport) -> visa_jit_report {
        visa_jit_report {
            end: match did.status {
                LaunchStatus::Completed => visa_jit_end::VISA_JIT_COMPLETED,
                LaunchStatus::Faulted => visa_jit_end::VISA_JIT_FAULTED,
                LaunchStatus::Interrupted | LaunchStatus::DeadlineExceeded => {
                    visa_jit_end::VISA_JIT_INTERRUPTED
                }
            },
            groups: did.groups,
            threads: did.threads,
            faults: did.fault_count,
            described: did.faults.len(),
        }
    }

    fn fault(&mut self, number: usize) -> Result<visa_jit_fault, String> {
        let count = self.faults.len();
        let fault = self.faults.get(number);
        let fault =
            fault.ok_or_else(|| format!("there is no fault {number}; {count} are described"))?;
        let sites = self
            .kernel
            .record()
            .variants
            .get(self.variant)
            .map(|v| &v.sites);
        let site = sites.and_then(|sites| sites.get(fault.site as usize));
        let word = |text: Option<&String>| {
            CString::new(text.map_or("?", |t| t.as_str())).unwrap_or_default()
        };
        self.words.push([
            word(site.map(|s| &s.opcode)),
            word(site.map(|s| &s.access)),
            word(site.map(|s| &s.space)),
        ]);
        // The strings do not move when the list grows.
        let last = self.words.last().map(|w| w.each_ref().map(|s| s.as_ptr()));
        let [opcode, access, space] = last.unwrap_or([std::ptr::null(); 3]);
        Ok(visa_jit_fault {
            line: site.map_or(0, |s| s.line),
            opcode,
            access,
            space,
            surface: match site {
                Some(s) if s.surface => fault.surface.into(),
                _ => -1,
            },
            address: fault.address,
            bytes: site.map_or(0, |s| s.bytes),
            group: fault.group,
            local_id: fault.local_id,
            global_id: fault.global_id,
            thread: fault.thread,
            lane: fault.lane,
        })
    }
}

/// Describes fault `number` of the last run, from 0 on.
///
/// # Safety
/// `launch` is live and used by no other thread; `fault` has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_launch_fault(
    launch: *mut visa_jit_launch,
    number: usize,
    fault: *mut visa_jit_fault,
) -> visa_jit_status {
    done(|| {
        // SAFETY: as promised.
        let launch = unsafe { object_mut(launch, "launch") }?;
        if fault.is_null() {
            return Err("the fault is null".to_owned());
        }
        let found = launch.fault(number)?;
        // SAFETY: as promised.
        unsafe { fault.write(found) };
        Ok(())
    })
}
