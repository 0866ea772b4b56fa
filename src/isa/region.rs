//! Register regions: how the channels of an instruction map to elements of a variable.

/// Source region `<vstride; width, hstride>` in elements (docs/visa.md, "Registers and regions").
///
/// Channel `i` reads element `(i / width) * vstride + (i % width) * hstride` past the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SrcRegion {
    /// 0, 1, 2, 4, 8, 16 or 32.
    pub vstride: u8,
    /// 1, 2, 4, 8 or 16.
    pub width: u8,
    /// 0, 1, 2 or 4.
    pub hstride: u8,
}

impl SrcRegion {
    /// `<0;1,0>`: every channel reads the same element.
    pub const SCALAR: SrcRegion = SrcRegion {
        vstride: 0,
        width: 1,
        hstride: 0,
    };
    /// `<1;1,0>`: packed.
    pub const PACKED: SrcRegion = SrcRegion {
        vstride: 1,
        width: 1,
        hstride: 0,
    };

    /// Element index, relative to the origin, that channel `lane` reads.
    pub const fn element(self, lane: u32) -> u32 {
        let width = if self.width == 0 {
            1
        } else {
            self.width as u32
        };
        (lane / width) * self.vstride as u32 + (lane % width) * self.hstride as u32
    }
}

/// Destination region `<hstride>` in elements: channel `i` writes element `i * hstride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DstRegion {
    /// 1, 2 or 4.
    pub hstride: u8,
}

impl DstRegion {
    /// `<1>`.
    pub const PACKED: DstRegion = DstRegion { hstride: 1 };
}
