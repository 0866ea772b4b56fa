//! Installed machine code: it runs, its pages are never writable and executable, and they go away.

use crate::common::maps::{all, protection};
use visa_runtime::abi::{GroupCtx, Status};
use visa_runtime::{
    Arguments, CodeError, CodeHandle, Kernel, KernelCode, LaunchOptions, LaunchShape, LaunchStatus,
    PreparedLaunch,
};

/// Sets the state of thread 0 to `THREAD_DONE` and returns `Status::Done`.
#[cfg(target_arch = "x86_64")]
fn done() -> Vec<u8> {
    let threads = std::mem::offset_of!(GroupCtx, threads) as u8;
    let state = std::mem::offset_of!(visa_runtime::abi::ThreadCtx, state) as u8;
    vec![
        0x48, 0x8B, 0x47, threads, // mov rax, [rdi + threads]
        0xC7, 0x40, state, 0xFF, 0xFF, 0xFF, 0xFF, // mov dword [rax + state], -1
        0x31, 0xC0, // xor eax, eax
        0xC3, // ret
    ]
}

/// Returns `Status::Done`.
#[cfg(target_arch = "aarch64")]
fn done() -> Vec<u8> {
    [0x5280_0000u32, 0xD65F_03C0].map(u32::to_le_bytes).concat()
}

#[test]
fn installed_code_runs_in_a_launch() {
    let code = CodeHandle::install(&done(), 16).unwrap();
    assert_eq!(code.entry() as usize % 16, 0);
    // SAFETY: the code touches the state of thread 0 only.
    let kernel =
        unsafe { Kernel::new(crate::common::meta(), KernelCode::Installed(code.clone())) }.unwrap();
    let launch = PreparedLaunch::new(&kernel, LaunchShape::new([16, 3, 1], [16, 1, 1])).unwrap();
    drop((code, kernel));
    let report = launch
        .run(&Arguments::default(), &LaunchOptions::default())
        .unwrap();
    assert_eq!((report.status, report.groups), (LaunchStatus::Completed, 3));
}

#[test]
fn pages_are_sealed_and_filled() {
    let bytes = done();
    let code = CodeHandle::install(&bytes, 64).unwrap();
    let (start, len) = code.pages();
    assert_eq!(code.entry() as usize, start);
    assert_eq!(protection(start as u64).as_deref(), Some("r-xp"));
    // SAFETY: the pages are readable while the handle lives, and never written any more.
    let pages = unsafe { std::slice::from_raw_parts(start as *const u8, len) };
    assert_eq!(&pages[..bytes.len()], bytes);
    if cfg!(target_arch = "x86_64") {
        assert!(
            pages[bytes.len()..].iter().all(|&b| b == 0xCC),
            "traps behind the code"
        );
    }
    let other = code.clone();
    drop(code);
    // SAFETY: the code returns a status whatever the group, and needs one thread.
    let status = unsafe {
        let mut thread: visa_runtime::abi::ThreadCtx = std::mem::zeroed();
        let mut group: GroupCtx = std::mem::zeroed();
        group.threads = &raw mut thread;
        (other.entry())(&raw mut group, 0, 1)
    };
    assert_eq!(status, Status::Done as u32);
}

#[test]
fn nothing_is_writable_and_executable() {
    let handles: Vec<CodeHandle> = (0..100)
        .map(|_| CodeHandle::install(&done(), 16).unwrap())
        .collect();
    for (range, protection) in all() {
        assert!(
            !(protection.contains('w') && protection.contains('x')),
            "{range:x?} {protection}"
        );
    }
    drop(handles);
}

#[test]
fn bad_code_is_refused() {
    assert!(matches!(
        CodeHandle::install(&[], 16),
        Err(CodeError::Empty)
    ));
    assert!(matches!(
        CodeHandle::install(&done(), 3),
        Err(CodeError::Alignment(3))
    ));
    assert!(matches!(
        CodeHandle::install(&done(), 0),
        Err(CodeError::Alignment(0))
    ));
    assert!(matches!(
        CodeHandle::install(&done(), 8192),
        Err(CodeError::Alignment(8192))
    ));
    let huge = vec![0; visa_runtime::limits::MAX_CODE_BYTES + 1];
    assert!(matches!(
        CodeHandle::install(&huge, 16),
        Err(CodeError::TooLarge { .. })
    ));
}

#[test]
fn installing_from_many_threads() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let code = CodeHandle::install(&done(), 16).unwrap();
                    let copy = code.clone();
                    drop(code);
                    std::hint::black_box(copy.entry());
                }
            });
        }
    });
}
