//! `scatter`, `scatter4_scaled`, `gather_scaled` and `oword_st` in every form that their pages of the ISA
//! have, and `gather`, `gather4_scaled`, `scatter_scaled` and `oword_ld` beside them. The models follow the
//! pages' pseudo code line by line.

use visa_jit::isa::Platform;

use super::kernel::{Guard, Model, Reach, Scalar, Shape};
use super::legacy::{Lanes, letters, surface};
use super::machine::{Case, Machine, Space};
use super::rig::{Effort, Rig};

/// Offsets of local memory: 28 bits.
fn local(m: &Machine, at: u64) -> u64 {
    if m.space == Space::Slm {
        at & 0x0fff_ffff
    } else {
        at
    }
}

fn offset(case: &Case, i: u32) -> u64 {
    let sum = (case.scalar as u32).wrapping_add(case.offsets[i as usize] as u32);
    u64::from(sum)
}

/// `surface[global_offset + element_offset[i]] = src[i]`, in elements.
fn scatter(exec: u32, size: u32, m: &mut Machine, case: &Case) {
    for i in 0..exec {
        if m.on(i) {
            let at = local(m, offset(case, i) * u64::from(size));
            let src = m.get(4 * i, 4);
            m.store((0, i, at), at, size, src);
        }
    }
}

fn gather(exec: u32, size: u32, m: &mut Machine, case: &Case) {
    for i in 0..exec {
        if m.on(i) {
            let at = local(m, offset(case, i) * u64::from(size));
            let v = m.load((0, i, at), at, size);
            m.set(4 * i, 4, v);
        }
    }
}

/// `dst[i] = surface[offset + element_offset[i]]`, in bytes.
fn gather_scaled(exec: u32, bytes: u32, m: &mut Machine, case: &Case) {
    for i in 0..exec {
        if m.on(i) {
            let at = local(m, offset(case, i));
            let v = m.load((0, i, at), at, bytes);
            m.set(4 * i, 4, v);
        }
    }
}

fn scatter_scaled(exec: u32, bytes: u32, m: &mut Machine, case: &Case) {
    for i in 0..exec {
        if m.on(i) {
            let at = local(m, offset(case, i));
            let src = m.get(4 * i, 4);
            m.store((0, i, at), at, bytes, src);
        }
    }
}

/// `surface[address / 4 + c] = src[ch_pos * max(exec_size, GRF_SIZE / 4) + i]`.
fn scatter4(exec: u32, grf: u32, set: u32, m: &mut Machine, case: &Case) {
    let mut ch_pos = 0;
    for c in 0..4 {
        if set >> c & 1 != 0 {
            for i in 0..exec {
                if m.on(i) {
                    let ch_start = ch_pos * exec.max(grf / 4);
                    let src = m.get(4 * (ch_start + i), 4);
                    let at = (local(m, offset(case, i)) / 4 + u64::from(c)) * 4;
                    m.store((c, i, at), at, 4, src);
                }
            }
            ch_pos += 1;
        }
    }
}

fn gather4(exec: u32, grf: u32, set: u32, m: &mut Machine, case: &Case) {
    let mut ch_pos = 0;
    for c in 0..4 {
        if set >> c & 1 != 0 {
            for i in 0..exec {
                if m.on(i) {
                    let ch_start = ch_pos * exec.max(grf / 4);
                    let at = (local(m, offset(case, i)) / 4 + u64::from(c)) * 4;
                    let v = m.load((c, i, at), at, 4);
                    m.set(4 * (ch_start + i), 4, v);
                }
            }
            ch_pos += 1;
        }
    }
}

/// `surface[offset + i] = src[i]`, 16 bytes each; bounds are those of dwords.
fn oword(owords: u32, store: bool, m: &mut Machine, case: &Case) {
    let from = local(m, u64::from(case.scalar as u32) * 16);
    // Control flow may have skipped it as a whole.
    let count = if m.on(0) { owords } else { 0 };
    for i in 0..count {
        for k in 0..4 {
            let at = from + 16 * u64::from(i) + 4 * k;
            let slot = 16 * i + 4 * k as u32;
            if store {
                let v = m.get(slot, 4);
                m.store((i, 0, at), at, 4, v);
            } else {
                let v = m.load((i, 0, at), at, 4);
                m.set(slot, 4, v);
            }
        }
    }
}

/// How a form of an instruction differs from the others.
struct Form {
    platform: Platform,
    lanes: Lanes,
    space: Space,
}

impl Form {
    fn shape(
        &self,
        text: String,
        opcode: &str,
        data_bytes: u32,
        reach: Reach,
        model: Model,
    ) -> Shape {
        let l = self.lanes;
        let store = !reach.overlap;
        Shape {
            platform: self.platform,
            simd: l.simd,
            first: l.first,
            lanes: l.lanes,
            no_mask: l.no_mask,
            guard: l.guard,
            text,
            opcode: opcode.into(),
            space: self.space,
            access: if store { "write" } else { "read" },
            offset_bytes: 4,
            data_bytes,
            model,
            reach,
            floats: false,
            adjust: None,
            stride: None,
        }
    }

    /// The four messages with an element size.
    fn sized(&self, opcode: &str, size: u32) -> Shape {
        let exec = self.lanes.lanes;
        let model = match opcode {
            "scatter" => scatter,
            "gather" => gather,
            "gather_scaled" => gather_scaled,
            _ => scatter_scaled,
        };
        let scaled = opcode.ends_with("scaled");
        let text = format!(
            "{opcode}.{size} {{x}} {} HEAD(0,1)<0;1,0> OFF.0 DATA.0",
            surface(self.space)
        );
        let reach = Reach {
            bytes: u64::from(size),
            unit: if scaled { 1 } else { u64::from(size) },
            scalar: Scalar::Added,
            overlap: opcode.starts_with("gather"),
            ..Reach::default()
        };
        let model = Box::new(move |case: &Case, m: &mut Machine| model(exec, size, m, case));
        self.shape(text, opcode, 4 * exec.max(8), reach, model)
    }

    fn channels(&self, opcode: &str, set: u32) -> Shape {
        let (exec, grf) = (self.lanes.lanes, self.platform.grf_bytes());
        let model = if opcode == "gather4_scaled" {
            gather4
        } else {
            scatter4
        };
        let text = format!(
            "{opcode}.{} {{x}} {} HEAD(0,1)<0;1,0> OFF.0 DATA.0",
            letters(set),
            surface(self.space)
        );
        let reach = Reach {
            bytes: 16,
            align: 4,
            scalar: Scalar::Added,
            overlap: opcode == "gather4_scaled",
            ..Reach::default()
        };
        let model = Box::new(move |case: &Case, m: &mut Machine| model(exec, grf, set, m, case));
        self.shape(text, opcode, 4 * 4 * exec.max(16), reach, model)
    }

    fn oword(&self, opcode: &str, owords: u32) -> Shape {
        let store = opcode == "oword_st";
        let text = format!(
            "{opcode} ({owords}) {} HEAD(0,1)<0;1,0> DATA.0",
            surface(self.space)
        );
        let reach = Reach {
            bytes: u64::from(16 * owords),
            unit: 16,
            scalar: Scalar::Alone,
            overlap: !store,
            ..Reach::default()
        };
        let model = Box::new(move |case: &Case, m: &mut Machine| oword(owords, store, m, case));
        self.shape(text, opcode, 16 * owords, reach, model)
    }
}

/// Results only: the policies are tested with the edges.
const FORMS: Effort = Effort {
    cases: 16,
    sizes: &[1023, 4096],
    policies: false,
    all_masks: false,
};

const PLATFORMS: [Platform; 2] = [Platform::Skl, Platform::Pvc];

/// Every mask that lanes fit, with and without `NM`, each under one of the guards.
fn masks(lanes: u32, predicates: bool, mut each: impl FnMut(Lanes)) {
    let mut n = 0usize;
    for first in (0..32).step_by(4).filter(|f| f + lanes <= 32) {
        for no_mask in [false, true] {
            n += 1;
            let guard = match (no_mask, predicates) {
                (false, false) => Guard::Flow,
                (true, false) => [Guard::None, Guard::Flow][n / 2 % 2],
                (false, true) => [Guard::Predicate, Guard::Flow, Guard::Inverted][n % 3],
                (true, true) => [Guard::Predicate, Guard::Inverted, Guard::None][n % 3],
            };
            each(Lanes {
                no_mask,
                ..Lanes::new(32, first, lanes, guard)
            });
        }
    }
}

#[test]
fn scatter_forms() {
    let mut rig = Rig::new(11);
    for opcode in ["scatter", "gather"] {
        for size in [1, 2, 4] {
            for exec in [1, 8, 16] {
                let mut n = 0usize;
                masks(exec, false, |lanes| {
                    n += 1;
                    let platform = PLATFORMS[n / 2 % 2];
                    let space = Space::Surface;
                    rig.run(
                        &Form {
                            platform,
                            lanes,
                            space,
                        }
                        .sized(opcode, size),
                        FORMS,
                    );
                });
                for (space, first) in [(Space::Slm, 0), (Space::Scratch, 16)] {
                    for platform in PLATFORMS {
                        let lanes = Lanes::new(32, first, exec, Guard::Flow);
                        rig.run(
                            &Form {
                                platform,
                                lanes,
                                space,
                            }
                            .sized(opcode, size),
                            FORMS,
                        );
                    }
                }
            }
        }
    }
    rig.finish("scatter and gather");
}

#[test]
fn gather_scaled_forms() {
    let mut rig = Rig::new(12);
    for opcode in ["gather_scaled", "scatter_scaled"] {
        for size in [1, 2, 4] {
            for exec in [1, 2, 4, 8, 16, 32] {
                let mut n = 0usize;
                masks(exec, true, |lanes| {
                    n += 1;
                    let platform = PLATFORMS[n % 2];
                    let space = if n.is_multiple_of(5) {
                        Space::Slm
                    } else {
                        Space::Surface
                    };
                    rig.run(
                        &Form {
                            platform,
                            lanes,
                            space,
                        }
                        .sized(opcode, size),
                        FORMS,
                    );
                });
            }
        }
    }
    rig.finish("gather_scaled and scatter_scaled");
}

#[test]
fn scatter4_scaled_forms() {
    let mut rig = Rig::new(13);
    for opcode in ["scatter4_scaled", "gather4_scaled"] {
        for set in 1..16 {
            for exec in [8, 16] {
                let mut n = set as usize;
                masks(exec, true, |lanes| {
                    n += 1;
                    if opcode == "gather4_scaled" && !n.is_multiple_of(3) {
                        return;
                    }
                    let platform = PLATFORMS[n % 2];
                    let space = if n.is_multiple_of(7) {
                        Space::Slm
                    } else {
                        Space::Surface
                    };
                    rig.run(
                        &Form {
                            platform,
                            lanes,
                            space,
                        }
                        .channels(opcode, set),
                        FORMS,
                    );
                });
            }
        }
    }
    rig.finish("scatter4_scaled and gather4_scaled");
}

#[test]
fn oword_st_forms() {
    let mut rig = Rig::new(14);
    for opcode in ["oword_st", "oword_ld"] {
        for owords in [1, 2, 4, 8] {
            for space in [Space::Surface, Space::Slm, Space::Scratch] {
                for platform in PLATFORMS {
                    let lanes = Lanes::new(16, 0, 1, Guard::None);
                    rig.run(
                        &Form {
                            platform,
                            lanes,
                            space,
                        }
                        .oword(opcode, owords),
                        FORMS,
                    );
                    // Inside divergent code: no mask applies, but a thread that does not come here does nothing.
                    let lanes = Lanes {
                        no_mask: true,
                        ..Lanes::new(16, 0, 1, Guard::Flow)
                    };
                    rig.run(
                        &Form {
                            platform,
                            lanes,
                            space,
                        }
                        .oword(opcode, owords),
                        FORMS,
                    );
                }
            }
        }
    }
    rig.finish("oword_st and oword_ld");
}
