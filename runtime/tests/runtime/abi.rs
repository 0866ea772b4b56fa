//! The layout that compiled code relies on. A change here is a new [`ABI_VERSION`]: code in caches
//! and ahead-of-time objects was made for the old one.

use std::mem::{offset_of, size_of};
use visa_runtime::abi::{
    ABI_VERSION, GroupCtx, Helpers, Image, ImageTable, LOCAL_ID_ROW, LaunchCtx, SINK_BYTES,
    STACK_ALIGN, SURFACES, Sampler, Status, Surface, THREAD_DONE, ThreadCtx, message, race,
};

#[test]
fn steps_of_reads_come_back() {
    for (count, site, lane, distance) in [
        (1, 0, 0, 0),
        (4, 1, 0, 64),
        (32, -300, 16, -1),
        (255, i16::MIN, -16, i32::MIN),
        (2, i16::MAX, i8::MAX, i32::MAX),
    ] {
        let step = race::Step {
            site,
            lane,
            distance,
        };
        let reads = race::reads(count, step);
        assert_eq!(race::count_and_step(reads), (count, step));
    }
}

#[test]
fn layout_of_this_version() {
    assert_eq!((ABI_VERSION, STACK_ALIGN), (29, 64));
    assert_eq!(
        (SURFACES, SINK_BYTES, LOCAL_ID_ROW, THREAD_DONE),
        (256, 256, 32, u32::MAX)
    );
    let status = [
        Status::Done,
        Status::Suspended,
        Status::Fault,
        Status::Interrupted,
        Status::Suspect,
    ];
    assert_eq!(status.map(|s| s as u32), [0, 1, 2, 3, 4]);
    assert_eq!(
        (
            size_of::<Surface>(),
            offset_of!(Surface, base),
            offset_of!(Surface, size)
        ),
        (16, 0, 8)
    );
    let launch = [
        offset_of!(LaunchCtx, surfaces),
        offset_of!(LaunchCtx, payload),
        offset_of!(LaunchCtx, flat_base),
        offset_of!(LaunchCtx, flat_size),
        offset_of!(LaunchCtx, interrupt),
        offset_of!(LaunchCtx, helpers),
        offset_of!(LaunchCtx, images),
        offset_of!(LaunchCtx, args),
        offset_of!(LaunchCtx, args_size),
        offset_of!(LaunchCtx, shadow),
        offset_of!(LaunchCtx, marks),
        offset_of!(LaunchCtx, pointees),
        offset_of!(LaunchCtx, write_shadow),
        offset_of!(LaunchCtx, write_pointees),
        offset_of!(LaunchCtx, invariant_pointees),
        offset_of!(LaunchCtx, confined_pointees),
    ];
    let each_eight: [usize; 16] = std::array::from_fn(|n| 8 * n);
    assert_eq!((launch, size_of::<LaunchCtx>()), (each_eight, 128));
    let group = [
        offset_of!(GroupCtx, launch),
        offset_of!(GroupCtx, slm),
        offset_of!(GroupCtx, slm_size),
        offset_of!(GroupCtx, threads),
        offset_of!(GroupCtx, sink),
        offset_of!(GroupCtx, faults),
        offset_of!(GroupCtx, r0),
        offset_of!(GroupCtx, thread_count),
        offset_of!(GroupCtx, following),
        offset_of!(GroupCtx, barriers),
        offset_of!(GroupCtx, answer),
        offset_of!(GroupCtx, rows),
        offset_of!(GroupCtx, races),
        offset_of!(GroupCtx, slm_marks),
        offset_of!(GroupCtx, scratch_marks),
        offset_of!(GroupCtx, height),
    ];
    assert_eq!(
        (group, size_of::<GroupCtx>()),
        (
            [
                0, 8, 16, 24, 32, 40, 48, 112, 116, 120, 128, 132, 136, 144, 152, 160
            ],
            168
        )
    );
    let thread = [
        offset_of!(ThreadCtx, local_ids),
        offset_of!(ThreadCtx, frame),
        offset_of!(ThreadCtx, scratch),
        offset_of!(ThreadCtx, scratch_size),
        offset_of!(ThreadCtx, dispatch_mask),
        offset_of!(ThreadCtx, state),
        offset_of!(ThreadCtx, r0_2),
        offset_of!(ThreadCtx, r0_5),
        offset_of!(ThreadCtx, sr0),
        offset_of!(ThreadCtx, hw_id),
    ];
    assert_eq!(
        (thread, size_of::<ThreadCtx>()),
        ([0, 8, 16, 24, 32, 36, 40, 44, 48, 52], 56)
    );
    let helpers = [
        offset_of!(Helpers, fp_env),
        offset_of!(Helpers, fault),
        offset_of!(Helpers, tsc),
        offset_of!(Helpers, atomic),
        offset_of!(Helpers, load),
        offset_of!(Helpers, store),
        offset_of!(Helpers, load_preserve_all),
        offset_of!(Helpers, store_preserve_all),
        offset_of!(Helpers, rectangle),
        offset_of!(Helpers, image),
        offset_of!(Helpers, named_barrier),
        offset_of!(Helpers, fault_preserve_all),
        offset_of!(Helpers, store_enabled),
        offset_of!(Helpers, check),
        offset_of!(Helpers, check_preserve_all),
        offset_of!(Helpers, arrive),
        offset_of!(Helpers, race),
        offset_of!(Helpers, race_affine),
        offset_of!(Helpers, race_reads),
        offset_of!(Helpers, initialise),
        offset_of!(Helpers, misaligned),
    ];
    assert_eq!(
        helpers,
        [
            0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152,
            160
        ]
    );
    let image = [
        offset_of!(Image, base),
        offset_of!(Image, pitch),
        offset_of!(Image, extent),
        offset_of!(Image, format),
        offset_of!(Image, axes),
        offset_of!(Image, layer_axis),
    ];
    assert_eq!((image, size_of::<Image>()), ([0, 8, 32, 44, 48, 52], 56));
    let tables = (size_of::<Sampler>(), offset_of!(ImageTable, samplers));
    assert_eq!(tables, (16, 56 * SURFACES));
    assert_eq!(
        [
            message::SURFACE,
            message::SLM,
            message::SCRATCH,
            message::REGS,
            message::FLAT,
            message::ARGS,
            message::MARKS,
            message::ALL_OR_NONE,
            message::ATOMIC_SHIFT,
            message::shape(message::FLAT, 8, 3, 16),
        ],
        [0, 1, 2, 3, 4, 5, 16, 32, 24, 0x3_1013]
    );
}
