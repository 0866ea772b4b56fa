//! A kernel around one instruction: its inputs come from one surface, its results go to another, so
//! that one compilation serves any number of cases.

use std::fmt::Write;

use visa_jit::isa::Platform;

use super::machine::{Case, Machine, Space};

/// Bytes of the surface with inputs before the data payload.
pub const DATA_AT: usize = 1024;
/// Bytes of shared local memory that kernels declare.
pub const SLM_BYTES: usize = 1024;
/// Bytes of scratch memory of a kernel from text.
pub const SCRATCH_BYTES: usize = 8192;

/// How lanes are enabled and disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// All are enabled.
    None,
    /// By a predicate.
    Predicate,
    /// By a predicate, inverted.
    Inverted,
    /// By control flow around the instruction.
    Flow,
}

/// What an instruction does.
pub type Model = Box<dyn Fn(&Case, &mut Machine)>;

/// Changes a case, given the memory that it will meet (and a random number).
pub type Adjust = Box<dyn Fn(&mut Case, &Machine, u64)>;

/// An instruction to test.
pub struct Shape {
    pub platform: Platform,
    /// Lanes of the thread.
    pub simd: u32,
    /// First lane.
    pub first: u32,
    /// Lanes of the instruction.
    pub lanes: u32,
    pub no_mask: bool,
    pub guard: Guard,
    /// The instruction; `{x}` stands for execution mask and size.
    pub text: String,
    /// Name that fault records give.
    pub opcode: String,
    pub space: Space,
    /// `read`, `write` or `atomic`.
    pub access: &'static str,
    /// Bytes of one offset: 2, 4 or 8.
    pub offset_bytes: u32,
    /// Bytes of the data payload.
    pub data_bytes: u32,
    pub model: Model,
    pub reach: Reach,
    /// Memory and sources hold ordinary floats.
    pub floats: bool,
    /// Changes the sources of a case to suit the memory.
    pub adjust: Option<Adjust>,
    /// Bytes from one lane's offset to the next: the kernel computes them from the first one.
    pub stride: Option<i64>,
}

/// How test offsets are made.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Bytes that a lane touches, from its address to the end of its last element.
    pub bytes: u64,
    /// Bytes that one unit of an offset stands for.
    pub unit: u64,
    /// Offsets are multiples of this many units.
    pub align: u64,
    /// The scalar operand is added to every offset.
    pub scalar: Scalar,
    /// Lanes at the same address are defined.
    pub overlap: bool,
    /// Added to every offset by the text.
    pub immediate: i64,
}

/// Meaning of the scalar operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Not used.
    None,
    /// Added to the lanes' offsets.
    Added,
    /// The only offset.
    Alone,
}

impl Default for Reach {
    fn default() -> Reach {
        Reach {
            bytes: 4,
            unit: 1,
            align: 1,
            scalar: Scalar::None,
            overlap: false,
            immediate: 0,
        }
    }
}

/// `M1` … `M8`.
pub fn mask_name(first: u32) -> String {
    format!("M{}", first / 4 + 1)
}

impl Shape {
    pub fn data_size(&self) -> usize {
        (self.data_bytes as usize).next_multiple_of(128)
    }

    fn exec(&self) -> String {
        let nm = if self.no_mask { "_NM" } else { "" };
        format!("({}{nm}, {})", mask_name(self.first), self.lanes)
    }

    /// Lanes of the instruction that a mask of the thread's lanes enables.
    pub fn enabled(&self, mask: u32) -> u32 {
        let all = u32::MAX >> (32 - self.lanes);
        let mask = if self.guard == Guard::Inverted {
            !mask
        } else {
            mask
        };
        match self.guard {
            Guard::None => all,
            // Without a mask all lanes run, if any lane of the thread comes here.
            Guard::Flow if self.no_mask => {
                let thread = u32::MAX >> (32 - self.simd);
                if mask & thread == 0 { 0 } else { all }
            }
            _ => mask >> self.first & all,
        }
    }

    /// Line of the instruction.
    pub fn line(&self) -> u32 {
        let text = self.kernel(0);
        let at = text.lines().position(|l| l.contains("// here"));
        at.unwrap() as u32 + 1
    }

    /// The kernel. Scratch memory has `scratch` bytes.
    pub fn kernel(&self, scratch: usize) -> String {
        let mut k = String::new();
        let simd = self.simd;
        let ty = match self.offset_bytes {
            2 => "uw",
            4 => "ud",
            _ => "uq",
        };
        let data = self.data_size();
        let mut typed = String::new();
        for var in ["SRC0", "SRC1", "DATA"] {
            for ty in ["d", "f"] {
                let alias = format!("{var}_{ty} v_type=G type={ty} num_elts=32");
                let _ = writeln!(typed, ".decl {alias} align=GRF alias=<{var}, 0>");
            }
        }
        let _ = write!(
            k,
            ".version 4.1\n.kernel \"edge\"\n.kernel_attr SimdSize={simd}\n\
             .decl HEAD v_type=G type=ud num_elts=8 align=GRF\n\
             .decl WIDE v_type=G type=uq num_elts=2 alias=<HEAD, 16>\n\
             .decl OFF v_type=G type={ty} num_elts={} align=GRF\n\
             .decl SRC0 v_type=G type=ud num_elts=64 align=GRF\n\
             .decl SRC1 v_type=G type=ud num_elts=64 align=GRF\n\
             .decl DATA v_type=G type=ud num_elts={} align=GRF\n\
             {typed}\
             .decl TMP v_type=G type=ud num_elts=32 align=GRF\n\
             .decl N v_type=G type=ud num_elts=1 align=dword\n\
             .decl BASE v_type=G type=ud num_elts=1 align=dword\n\
             .decl HEAP v_type=G type=ud num_elts=1 align=dword\n\
             .decl LANE v_type=G type=uw num_elts=32 align=GRF\n\
             .decl STEPS v_type=G type=d num_elts=32 align=GRF\n\
             .decl P1 v_type=P num_elts={simd}\n.decl P2 v_type=P num_elts={simd}\n\
             .decl T6 v_type=T num_elts=1\n.decl T7 v_type=T num_elts=1\n.decl T8 v_type=T num_elts=1\n",
            256 / self.offset_bytes,
            data / 4,
        );
        if self.space == Space::Slm {
            let _ = writeln!(k, ".kernel_attr SLMSize={}", SLM_BYTES / 1024);
        }
        k.push_str(
            ".function \"main\"\n    movs (M1_NM, 1) T6(0) 0x0:ud\n    movs (M1_NM, 1) T7(0) 0x1:ud\n    \
             movs (M1_NM, 1) T8(0) 0x2:ud\n    oword_ld (2) T7 0x0:ud HEAD.0\n",
        );
        if self.text.contains("BASE") {
            k.push_str("    shr (M1_NM, 1) BASE(0,0)<1> %r0(0,5)<0;1,0> 0x4:ud\n");
        }
        if self.text.contains("HEAP") {
            // Known when the kernel runs: the first surface's entry in the heap.
            k.push_str("    mov (M1_NM, 1) HEAP(0,0)<1> HEAD(0,3)<0;1,0>\n");
        }
        let copy = |k: &mut String, at: usize, bytes: usize, var: &str| {
            for b in (0..bytes).step_by(128) {
                let _ = writeln!(k, "    oword_ld (8) T7 {:#x}:ud {var}.{b}", (at + b) / 16);
            }
        };
        match self.stride {
            None => copy(&mut k, 128, 256, "OFF"),
            Some(stride) => k.push_str(&self.affine_offsets(stride)),
        }
        if self.text.contains("SRC0") {
            copy(&mut k, 384, 256, "SRC0");
        }
        if self.text.contains("SRC1") {
            copy(&mut k, 640, 256, "SRC1");
        }
        copy(&mut k, DATA_AT, data, "DATA");
        let local = match self.space {
            Space::Slm => Some(("%slm", SLM_BYTES)),
            Space::Scratch => Some(("%scratch", scratch)),
            _ => None,
        };
        let loop_ = |k: &mut String, label: &str, from: &str, to: &str, bytes: usize| {
            let _ = write!(
                k,
                "    mov (M1_NM, 1) N(0,0)<1> 0x0:ud\n{label}:\n    oword_ld (8) {from} N(0,0)<0;1,0> TMP.0\n    \
                 oword_st (8) {to} N(0,0)<0;1,0> TMP.0\n    add (M1_NM, 1) N(0,0)<1> N(0,0)<0;1,0> 0x8:ud\n    \
                 cmp.lt (M1_NM, {simd}) P2 N(0,0)<0;1,0> {:#x}:ud\n    (P2) goto (M1, 1) {label}\n",
                bytes / 16
            );
        };
        if let Some((name, bytes)) = local {
            loop_(&mut k, "FILL", "T6", name, bytes);
        }
        let _ = writeln!(k, "    setp (M1_NM, {simd}) P1 HEAD(0,0)<0;1,0>");
        if self.guard == Guard::Flow {
            let _ = writeln!(k, "    (!P1) goto (M1, {simd}) SKIP");
        }
        let guard = match self.guard {
            Guard::Predicate => "(P1) ",
            Guard::Inverted => "(!P1) ",
            _ => "",
        };
        let _ = writeln!(
            k,
            "    {guard}{} // here",
            self.text.replace("{x}", &self.exec())
        );
        k.push_str("SKIP:\n");
        for b in (0..data).step_by(128) {
            let _ = writeln!(k, "    oword_st (8) T8 {:#x}:ud DATA.{b}", b / 16);
        }
        if let Some((name, bytes)) = local {
            loop_(&mut k, "BACK", name, "T6", bytes);
        }
        k.push_str("    ret (M1, 1)\n");
        k
    }

    /// Offsets at equal distances, from a scalar on.
    fn affine_offsets(&self, stride: i64) -> String {
        let start = if self.offset_bytes == 8 {
            "WIDE(0,1)"
        } else {
            "HEAD(0,2)"
        };
        format!(
            "    mov (M1_NM, 8) LANE(0,0)<1> 0x76543210:v\n    \
             add (M1_NM, 8) LANE(0,8)<1> LANE(0,0)<1;1,0> 0x8:uw\n    \
             add (M1_NM, 16) LANE(0,16)<1> LANE(0,0)<1;1,0> 0x10:uw\n    \
             mul (M1_NM, {0}) STEPS(0,0)<1> LANE(0,0)<1;1,0> {1:#x}:d\n    \
             add (M1_NM, {0}) OFF(0,0)<1> STEPS(0,0)<1;1,0> {start}<0;1,0>\n",
            self.lanes, stride as i32
        )
    }

    /// Contents of the surface with inputs.
    pub fn inputs(&self, case: &Case) -> Vec<u8> {
        let mut out = vec![0; DATA_AT + self.data_size()];
        out[..4].copy_from_slice(&case.mask.to_le_bytes());
        out[4..8].copy_from_slice(&(case.scalar as u32).to_le_bytes());
        out[16..24].copy_from_slice(&case.scalar.to_le_bytes());
        out[12..16].copy_from_slice(&0x40u32.to_le_bytes());
        let first = case.offsets.first().copied().unwrap_or(0);
        out[8..12].copy_from_slice(&(first as u32).to_le_bytes());
        out[24..32].copy_from_slice(&first.to_le_bytes());
        let n = self.offset_bytes as usize;
        for (i, o) in case.offsets.iter().enumerate() {
            out[128 + i * n..][..n].copy_from_slice(&o.to_le_bytes()[..n]);
        }
        for (at, s) in [(384, &case.sources[0]), (640, &case.sources[1])] {
            out[at..at + s.len()].copy_from_slice(s);
        }
        out[DATA_AT..][..case.data.len()].copy_from_slice(&case.data);
        out
    }
}
