//! Value types.

use std::fmt;

/// Element type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// One bit: conditions and lane masks.
    I1,
    /// 8-bit integer.
    I8,
    /// 16-bit integer; also carries `hf` and `bf` bit patterns.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// binary32.
    F32,
    /// binary64.
    F64,
}

impl Lane {
    /// Width in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Lane::I1 => 1,
            Lane::I8 => 8,
            Lane::I16 => 16,
            Lane::I32 | Lane::F32 => 32,
            Lane::I64 | Lane::F64 => 64,
        }
    }

    /// Width in bytes (1 for `I1`).
    pub const fn bytes(self) -> u32 {
        if matches!(self, Lane::I1) {
            1
        } else {
            self.bits() / 8
        }
    }

    /// True for `F32` and `F64`.
    pub const fn is_float(self) -> bool {
        matches!(self, Lane::F32 | Lane::F64)
    }

    /// The integer lane of this many bytes.
    pub const fn int(bytes: u32) -> Option<Lane> {
        match bytes {
            1 => Some(Lane::I8),
            2 => Some(Lane::I16),
            4 => Some(Lane::I32),
            8 => Some(Lane::I64),
            _ => None,
        }
    }

    /// The integer lane of the same width.
    pub const fn as_int(self) -> Lane {
        match self {
            Lane::F32 => Lane::I32,
            Lane::F64 => Lane::I64,
            other => other,
        }
    }

    /// Ones in every bit of the lane.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The lane's bits as a signed number.
    pub const fn sign_extend(self, bits: u64) -> i64 {
        let unused = 64 - self.bits();
        ((bits << unused) as i64) >> unused
    }

    /// Text spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Lane::I1 => "i1",
            Lane::I8 => "i8",
            Lane::I16 => "i16",
            Lane::I32 => "i32",
            Lane::I64 => "i64",
            Lane::F32 => "f32",
            Lane::F64 => "f64",
        }
    }
}

/// Type of a value: a lane type and a lane count; one lane is a scalar.
///
/// Computing values have at most 32 lanes (64 for reinterpreted views, 256 for byte views).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ty {
    /// Element.
    pub lane: Lane,
    /// 1 … [`Ty::MAX_LANES`].
    pub lanes: u16,
}

impl Ty {
    /// Largest lane count.
    pub const MAX_LANES: u16 = 512;
    /// A condition.
    pub const BOOL: Ty = Ty::scalar(Lane::I1);
    /// Scalar `i32`.
    pub const I32: Ty = Ty::scalar(Lane::I32);
    /// Scalar `i64`.
    pub const I64: Ty = Ty::scalar(Lane::I64);

    /// A scalar.
    pub const fn scalar(lane: Lane) -> Ty {
        Ty { lane, lanes: 1 }
    }

    /// A vector (or scalar when `lanes` is 1).
    pub const fn vector(lane: Lane, lanes: u16) -> Ty {
        Ty { lane, lanes }
    }

    /// A lane mask.
    pub const fn mask(lanes: u16) -> Ty {
        Ty {
            lane: Lane::I1,
            lanes,
        }
    }

    /// Same lane count, other element.
    pub const fn with_lane(self, lane: Lane) -> Ty {
        Ty {
            lane,
            lanes: self.lanes,
        }
    }

    /// Same element, other lane count.
    pub const fn with_lanes(self, lanes: u16) -> Ty {
        Ty {
            lane: self.lane,
            lanes,
        }
    }

    /// True for one lane.
    pub const fn is_scalar(self) -> bool {
        self.lanes == 1
    }

    /// Total size in bits.
    pub const fn bits(self) -> u32 {
        self.lane.bits() * self.lanes as u32
    }

    /// Bytes of a value saved in a thread's frame; masks are 32-bit words.
    pub const fn frame_bytes(self) -> u32 {
        if matches!(self.lane, Lane::I1) {
            4
        } else {
            self.bytes()
        }
    }

    /// Total size in bytes; masks count one byte a lane.
    pub const fn bytes(self) -> u32 {
        self.lane.bytes() * self.lanes as u32
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lanes == 1 {
            f.write_str(self.lane.name())
        } else {
            write!(f, "<{} x {}>", self.lanes, self.lane.name())
        }
    }
}
