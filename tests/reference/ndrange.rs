//! Where a work-item is (`ndrange.cl`). Global sizes need not be multiples of the local size: the
//! last group of a dimension is then smaller, as OpenCL 2.0 wants it.

/// A launch.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub dimensions: u32,
    pub global: [u32; 3],
    pub local: [u32; 3],
    pub offset: [u32; 3],
}

impl Shape {
    /// All items, without offset, x fastest.
    fn items(self) -> impl Iterator<Item = [u32; 3]> {
        let [gx, gy, gz] = self.global;
        (0..gz).flat_map(move |z| (0..gy).flat_map(move |y| (0..gx).map(move |x| [x, y, z])))
    }

    fn each(f: impl Fn(usize) -> u32) -> [u32; 3] {
        [f(0), f(1), f(2)]
    }

    fn groups(self) -> [u32; 3] {
        Self::each(|d| self.global[d].div_ceil(self.local[d]))
    }

    fn group(self, item: [u32; 3]) -> [u32; 3] {
        Self::each(|d| item[d] / self.local[d])
    }

    fn local_id(self, item: [u32; 3]) -> [u32; 3] {
        Self::each(|d| item[d] % self.local[d])
    }

    /// The actual size of the item's group.
    fn local_size(self, item: [u32; 3]) -> [u32; 3] {
        let group = self.group(item);
        Self::each(|d| self.local[d].min(self.global[d] - group[d] * self.local[d]))
    }
}

fn linear(at: [u32; 3], size: [u32; 3]) -> u32 {
    (at[2] * size[1] + at[1]) * size[0] + at[0]
}

/// `ndrange`: 26 words an item.
pub fn ndrange(shape: Shape) -> Vec<u32> {
    let item = |at: [u32; 3]| {
        let mut words = Vec::with_capacity(26);
        words.extend(Shape::each(|d| at[d] + shape.offset[d]));
        words.extend(shape.local_id(at));
        words.extend(shape.group(at));
        words.extend(shape.global);
        words.extend(shape.local_size(at));
        words.extend(shape.local);
        words.extend(shape.offset);
        words.extend(shape.groups());
        words.push(linear(at, shape.global));
        words.push((shape.dimensions << 16) + linear(shape.local_id(at), shape.local_size(at)));
        words
    };
    shape.items().flat_map(item).collect()
}

pub fn ndrange_1d(shape: Shape) -> Vec<u32> {
    let item = |at: [u32; 3]| (at[0] + shape.offset[0]) * 1000 + shape.local_id(at)[0];
    shape.items().map(item).collect()
}

/// `ndrange_2d` with a pitch equal to the global width and no offset.
pub fn ndrange_2d(shape: Shape) -> Vec<u32> {
    let item = |at: [u32; 3]| {
        let (group, local) = (shape.group(at), shape.local_id(at));
        group[1] << 24 | group[0] << 16 | local[1] << 8 | local[0]
    };
    shape.items().map(item).collect()
}

/// `ndrange_3d` with width and height equal to the global size and no offset.
pub fn ndrange_3d(shape: Shape) -> Vec<u32> {
    shape
        .items()
        .map(|[x, y, z]| x + 100 * y + 10_000 * z)
        .collect()
}

pub fn group_only(shape: Shape) -> Vec<u32> {
    let groups = shape.groups()[0];
    (0..groups).map(|g| groups * 100 + g).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_group_is_smaller() {
        let shape = Shape {
            dimensions: 2,
            global: [5, 3, 1],
            local: [4, 2, 1],
            offset: [10, 0, 0],
        };
        let out = ndrange(shape);
        let last = &out[14 * 26..];
        let want = [
            14, 2, 0, 0, 0, 0, 1, 1, 0, 5, 3, 1, 1, 1, 1, 4, 2, 1, 10, 0, 0, 2, 2, 1, 14, 0x20000,
        ];
        assert_eq!(last, want);
        assert_eq!(group_only(shape), [200, 201]);
        assert_eq!(
            ndrange_1d(Shape {
                global: [5, 1, 1],
                ..shape
            })[4],
            14_000
        );
        assert_eq!(ndrange_2d(shape)[14], 0x0101_0000);
    }
}
