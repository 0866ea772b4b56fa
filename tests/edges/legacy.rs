//! Legacy surface messages.

use visa_jit::isa::Platform;

use super::kernel::{Guard, Reach, Scalar, Shape};
use super::layout::{Layout, Start};
use super::machine::Space;
use super::rig::{Effort, Rig, SIZES};

/// Name of a surface operand in text.
pub fn surface(space: Space) -> &'static str {
    match space {
        Space::Slm => "%slm",
        Space::Scratch => "%scratch",
        _ => "T6",
    }
}

/// Which lanes, and how they are enabled.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    pub simd: u32,
    pub first: u32,
    pub lanes: u32,
    pub guard: Guard,
    pub no_mask: bool,
}

impl Lanes {
    pub fn new(simd: u32, first: u32, lanes: u32, guard: Guard) -> Lanes {
        Lanes {
            simd,
            first,
            lanes,
            guard,
            no_mask: false,
        }
    }
}

/// A load or store from its layout.
#[allow(
    clippy::too_many_arguments,
    reason = "a table row of facts about one message"
)]
pub fn access(
    platform: Platform,
    l: Lanes,
    space: Space,
    text: String,
    opcode: &'static str,
    layout: Layout,
    store: bool,
    reach: Reach,
) -> Shape {
    let offset_bytes = match layout.start {
        Start::Address | Start::Lsc(_) | Start::Strided(..) if space == Space::Flat => 8,
        _ => 4,
    };
    Shape {
        platform,
        simd: l.simd,
        first: l.first,
        lanes: l.lanes,
        no_mask: l.no_mask,
        guard: l.guard,
        text,
        opcode: opcode.into(),
        space,
        access: if store { "write" } else { "read" },
        offset_bytes,
        data_bytes: layout.data_bytes(l.lanes),
        floats: false,
        adjust: None,
        stride: None,
        reach: Reach {
            bytes: layout.reach(),
            overlap: !store,
            ..reach
        },
        model: Box::new(move |case, m| {
            if store {
                layout.store(case, m)
            } else {
                layout.load(case, m)
            }
        }),
    }
}

/// `gather` and `scatter`: offsets in elements.
pub fn gather(platform: Platform, l: Lanes, space: Space, size: u32, store: bool) -> Shape {
    let opcode = if store { "scatter" } else { "gather" };
    let text = format!(
        "{opcode}.{size} {{x}} {} HEAD(0,1)<0;1,0> OFF.0 DATA.0",
        surface(space)
    );
    let layout = Layout {
        start: Start::Elements(u64::from(size)),
        memory: size,
        register: 4,
        upper: false,
        elements: vec![0],
        stride: 0,
        block: false,
    };
    let reach = Reach {
        unit: u64::from(size),
        scalar: Scalar::Added,
        ..Reach::default()
    };
    access(platform, l, space, text, opcode, layout, store, reach)
}

/// `gather_scaled` and `scatter_scaled`: offsets in bytes.
pub fn gather_scaled(platform: Platform, l: Lanes, space: Space, size: u32, store: bool) -> Shape {
    let opcode = if store {
        "scatter_scaled"
    } else {
        "gather_scaled"
    };
    let text = format!(
        "{opcode}.{size} {{x}} {} HEAD(0,1)<0;1,0> OFF.0 DATA.0",
        surface(space)
    );
    let layout = Layout {
        start: Start::Bytes,
        memory: size,
        register: 4,
        upper: false,
        elements: vec![0],
        stride: 0,
        block: false,
    };
    let reach = Reach {
        scalar: Scalar::Added,
        ..Reach::default()
    };
    access(platform, l, space, text, opcode, layout, store, reach)
}

/// `RGBA` letters of a channel set.
pub fn letters(set: u32) -> String {
    "RGBA"
        .chars()
        .enumerate()
        .filter(|(i, _)| set >> i & 1 != 0)
        .map(|(_, c)| c)
        .collect()
}

/// Numbers of the channels of a set.
pub fn channels(set: u32) -> Vec<u32> {
    (0..4).filter(|c| set >> c & 1 != 0).collect()
}

/// Where the dwords of some channels are: each channel in registers of its own.
pub fn channel_layout(platform: Platform, l: Lanes, set: u32, start: Start) -> Layout {
    Layout {
        start,
        memory: 4,
        register: 4,
        upper: false,
        elements: channels(set),
        stride: (4 * l.lanes).max(platform.grf_bytes()),
        block: false,
    }
}

/// `gather4_scaled` and `scatter4_scaled`: aligned byte offsets.
pub fn gather4(platform: Platform, l: Lanes, space: Space, set: u32, store: bool) -> Shape {
    let opcode = if store {
        "scatter4_scaled"
    } else {
        "gather4_scaled"
    };
    let text = format!(
        "{opcode}.{} {{x}} {} HEAD(0,1)<0;1,0> OFF.0 DATA.0",
        letters(set),
        surface(space)
    );
    let layout = channel_layout(platform, l, set, Start::Bytes);
    let reach = Reach {
        scalar: Scalar::Added,
        align: 4,
        ..Reach::default()
    };
    access(platform, l, space, text, opcode, layout, store, reach)
}

/// `qw_gather` and `qw_scatter`: byte offsets.
pub fn qwords(platform: Platform, l: Lanes, space: Space, n: u32, store: bool) -> Shape {
    let opcode = if store { "qw_scatter" } else { "qw_gather" };
    let text = format!("{opcode}.{n} {{x}} {} OFF.0 DATA.0", surface(space));
    let layout = Layout {
        start: Start::Bytes,
        memory: 8,
        register: 8,
        upper: false,
        elements: (0..n).collect(),
        stride: (8 * l.lanes).max(platform.grf_bytes()),
        block: false,
    };
    let reach = Reach::default();
    access(platform, l, space, text, opcode, layout, store, reach)
}

/// `oword_ld`, `oword_ld_unaligned` and `oword_st`.
pub fn oword(platform: Platform, space: Space, opcode: &'static str, owords: u32) -> Shape {
    let unit = if opcode == "oword_ld_unaligned" {
        1
    } else {
        16
    };
    let text = format!(
        "{opcode} ({owords}) {} HEAD(0,1)<0;1,0> DATA.0",
        surface(space)
    );
    let layout = Layout {
        start: Start::Block(unit),
        memory: 4,
        register: 4,
        upper: false,
        elements: (0..4 * owords).collect(),
        stride: 4,
        block: true,
    };
    let reach = Reach {
        scalar: Scalar::Alone,
        unit,
        ..Reach::default()
    };
    let l = Lanes::new(16, 0, 1, Guard::None);
    access(
        platform,
        l,
        space,
        text,
        opcode,
        layout,
        opcode == "oword_st",
        reach,
    )
}

pub const ALL: Effort = Effort {
    cases: 40,
    sizes: &SIZES,
    policies: true,
    all_masks: false,
};

pub fn surfaces(rig: &mut Rig) {
    let p = Platform::Skl;
    for store in [false, true] {
        for size in [1, 2, 4] {
            for space in [Space::Surface, Space::Slm, Space::Scratch] {
                rig.run(
                    &gather(p, Lanes::new(16, 0, 16, Guard::Flow), space, size, store),
                    ALL,
                );
                rig.run(
                    &gather_scaled(
                        p,
                        Lanes::new(16, 0, 16, Guard::Predicate),
                        space,
                        size,
                        store,
                    ),
                    ALL,
                );
            }
            rig.run(
                &gather(
                    p,
                    Lanes::new(8, 0, 8, Guard::Flow),
                    Space::Surface,
                    size,
                    store,
                ),
                ALL,
            );
            rig.run(
                &gather(
                    p,
                    Lanes::new(32, 16, 1, Guard::Flow),
                    Space::Surface,
                    size,
                    store,
                ),
                ALL,
            );
            for lanes in [1, 2, 4, 8, 32] {
                let l = Lanes::new(32, 0, lanes, Guard::Inverted);
                rig.run(&gather_scaled(p, l, Space::Surface, size, store), ALL);
            }
        }
        for set in 1..16 {
            let l = Lanes::new(32, 16, 16, Guard::Predicate);
            rig.run(&gather4(p, l, Space::Surface, set, store), ALL);
        }
        for set in [1, 6, 9, 15] {
            for (space, platform) in [(Space::Slm, p), (Space::Scratch, Platform::Pvc)] {
                rig.run(
                    &gather4(
                        platform,
                        Lanes::new(16, 0, 8, Guard::Flow),
                        space,
                        set,
                        store,
                    ),
                    ALL,
                );
            }
        }
    }
    for store in [false, true] {
        for (n, space) in [
            (1, Space::Surface),
            (2, Space::Surface),
            (4, Space::Scratch),
            (8, Space::Slm),
        ] {
            let l = Lanes::new(16, 0, [8, 16][n as usize % 2], Guard::Predicate);
            rig.run(&qwords(Platform::Pvc, l, space, n, store), ALL);
        }
    }
    for opcode in ["oword_ld", "oword_ld_unaligned", "oword_st"] {
        for owords in [1, 2, 4, 8] {
            for space in [Space::Surface, Space::Slm, Space::Scratch] {
                rig.run(&oword(p, space, opcode, owords), ALL);
            }
        }
    }
}

#[test]
fn legacy_surfaces() {
    let mut rig = Rig::new(1);
    surfaces(&mut rig);
    rig.finish("legacy surface messages");
}
