//! Launch shapes: how many groups there are, how large each is, and the local ids of its lanes.

use crate::abi::LOCAL_ID_ROW;
use crate::bytes::{AlignedBytes, LINE};
use crate::error::LaunchError;
use crate::limits::MAX_GROUP_LANES;
use crate::meta::KernelMeta;

/// What is known about the local ids of a hardware thread's lanes, from least to most.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum LocalIdLayout {
    /// Nothing.
    Any,
    /// They have consecutive x and equal y and z.
    Rows,
    /// The same, and every thread has all its lanes.
    FullRows,
}

/// Work-items of a launch, in three dimensions.
///
/// `global` need not be a multiple of `local`: the last group of a dimension is then smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Work-items; 0 in a dimension runs nothing.
    pub global: [u32; 3],
    /// Work-items of a full group.
    pub local: [u32; 3],
    /// First global id.
    pub offset: [u32; 3],
    /// Dimensions that the program names, which `get_work_dim` gives: 1 to 3. If left out, as many as have a size above 1.
    pub dimensions: Option<u8>,
}

impl LaunchShape {
    /// A shape without offset.
    pub fn new(global: [u32; 3], local: [u32; 3]) -> LaunchShape {
        LaunchShape {
            global,
            local,
            offset: [0; 3],
            dimensions: None,
        }
    }

    /// A group size for kernels that take any: the largest divisor of the x size up to 256, or 256 with a partial last
    /// group when that is small.
    pub fn default_local(global: [u32; 3]) -> [u32; 3] {
        let x = global[0].max(1);
        let divides = |d: &u32| x.is_multiple_of(*d);
        let best = (1..=x.min(256)).rev().find(divides).unwrap_or(1);
        let whole = best >= 32 || best == x;
        [if whole { best } else { x.min(256) }, 1, 1]
    }

    /// How the lanes of every hardware thread of `simd` lanes lie.
    pub fn lanes(&self, simd: u32, walk_order: [u8; 3]) -> LocalIdLayout {
        let [x, y, z] = self.local;
        if walk_order != [0, 1, 2] {
            return LocalIdLayout::Any;
        }
        // Partial groups keep one dimension, but in several they may break rows that whole groups keep.
        let whole =
            x != 0 && simd != 0 && x.is_multiple_of(simd) && self.global[0].is_multiple_of(x);
        match (whole, y == 1 && z == 1) {
            (true, _) => LocalIdLayout::FullRows,
            (false, true) => LocalIdLayout::Rows,
            (false, false) => LocalIdLayout::Any,
        }
    }

    /// Groups in each dimension.
    pub fn groups(&self) -> [u32; 3] {
        std::array::from_fn(|d| self.global[d].div_ceil(self.local[d].max(1)))
    }

    /// Checks the shape against the kernel and returns the number of groups.
    pub(crate) fn check(&self, meta: &KernelMeta) -> Result<u64, LaunchError> {
        if self.local.contains(&0) {
            return Err(LaunchError::ZeroLocal(self.local));
        }
        let lanes = self.local.into_iter().try_fold(1u32, u32::checked_mul);
        if lanes.is_none_or(|lanes| lanes > MAX_GROUP_LANES) {
            return Err(LaunchError::GroupTooLarge(self.local));
        }
        if let Some(required) = meta.required_local_size
            && required != self.local
        {
            return Err(LaunchError::RequiredLocal {
                given: self.local,
                required,
            });
        }
        for dim in 0..3 {
            let (global, offset) = (self.global[dim], self.offset[dim]);
            if u64::from(global) + u64::from(offset) > 1 << 32 {
                return Err(LaunchError::GlobalRange {
                    dim,
                    global,
                    offset,
                });
            }
        }
        let groups = self.groups();
        groups
            .into_iter()
            .try_fold(1u64, |n, g| n.checked_mul(g.into()))
            .ok_or(LaunchError::TooManyGroups(groups))
    }

    /// Size of the groups of kind `kind`: bit `d` set for the last, smaller group of dimension
    /// `d`. `None` when the launch has no such group.
    pub(crate) fn group_size(&self, kind: usize) -> Option<[u32; 3]> {
        let mut size = self.local;
        for (dim, size) in size.iter_mut().enumerate() {
            let rest = self.global[dim] % self.local[dim];
            if kind >> dim & 1 != 0 {
                *size = rest;
            } else if self.global[dim] < self.local[dim] {
                return None;
            }
        }
        size.iter().all(|&s| s != 0).then_some(size)
    }
}

/// Kinds of groups: full or partial in each dimension.
pub(crate) const KINDS: usize = 8;

/// The groups of a launch of some kernel.
#[derive(Debug)]
pub(crate) struct Groups {
    /// The launch's shape.
    pub shape: LaunchShape,
    /// How many there are.
    pub total: u64,
    /// Shapes of the kinds that occur.
    pub kinds: [Option<GroupShape>; KINDS],
    /// Hardware threads of the largest.
    pub threads: u32,
}

impl Groups {
    /// Checks a shape against the kernel, and makes the shapes of its groups.
    pub(crate) fn new(shape: LaunchShape, meta: &KernelMeta) -> Result<Groups, LaunchError> {
        let total = shape.check(meta)?;
        let mut kinds = [const { None }; KINDS];
        let mut threads = 0;
        if total != 0 {
            for (kind, slot) in kinds.iter_mut().enumerate() {
                let Some(local) = shape.group_size(kind) else {
                    continue;
                };
                let group =
                    GroupShape::new(local, meta).ok_or(LaunchError::GroupTooLarge(local))?;
                threads = threads.max(group.threads);
                *slot = Some(group);
            }
        }
        Ok(Groups {
            shape,
            total,
            kinds,
            threads,
        })
    }

    /// Bytes of tables.
    pub(crate) fn bytes(&self) -> usize {
        self.kinds.iter().flatten().map(|kind| kind.ids.len()).sum()
    }
}

/// Groups of one size.
#[derive(Debug)]
pub(crate) struct GroupShape {
    /// Work-items.
    pub local: [u32; 3],
    /// Hardware threads.
    pub threads: u32,
    /// Lanes of the last thread that exist.
    pub last_mask: u32,
    /// Lanes of the other threads.
    pub full_mask: u32,
    simd: u32,
    walk: [usize; 3],
    /// Local-id tables of all threads, or one table of zeros.
    ids: AlignedBytes,
    /// Bytes from one thread's table to the next, 0 when there is only one.
    stride: usize,
}

/// Bytes of one thread's local-id table.
const TABLE: usize = 3 * LOCAL_ID_ROW * size_of::<u16>();

impl GroupShape {
    /// Builds the shape of groups of `local` work-items (not zero, at most [`MAX_GROUP_LANES`]).
    pub(crate) fn new(local: [u32; 3], meta: &KernelMeta) -> Option<GroupShape> {
        let simd = u32::from(meta.simd);
        let lanes = local.into_iter().try_fold(1u32, u32::checked_mul)?;
        let threads = lanes.div_ceil(simd);
        let mask = |lanes: u32| u32::MAX >> (32 - lanes);
        let tables = if meta.needs_local_ids { threads } else { 1 };
        let mut shape = GroupShape {
            local,
            threads,
            last_mask: mask(lanes - (threads - 1) * simd),
            full_mask: mask(simd),
            simd,
            walk: meta.walk_order.map(usize::from),
            // A spare line: a vector load of the last lanes may read a whole register.
            ids: AlignedBytes::zeroed(u64::from(tables) * TABLE as u64 + LINE as u64)?,
            stride: 0,
        };
        if meta.needs_local_ids {
            shape.stride = TABLE;
            shape.fill_ids();
        }
        Some(shape)
    }

    /// Local id of a lane; ids of lanes that do not exist run on in the slowest dimension, and where the fastest is the only one,
    /// in that: code for such groups counts from the first lane of a thread.
    pub(crate) fn local_id(&self, thread: u32, lane: u32) -> [u32; 3] {
        let mut linear = thread.wrapping_mul(self.simd).wrapping_add(lane);
        let [fast, middle, slow] = self.walk;
        let mut id = [0; 3];
        if self.local[middle] == 1 && self.local[slow] == 1 {
            id[fast] = linear;
            return id;
        }
        id[fast] = linear % self.local[fast];
        linear /= self.local[fast];
        id[middle] = linear % self.local[middle];
        id[slow] = linear / self.local[middle];
        id
    }

    /// Table of a thread's local ids.
    pub(crate) fn ids(&self, thread: u32) -> *const u16 {
        let table = thread as usize * self.stride;
        self.ids.as_ptr().wrapping_add(table).cast()
    }

    /// Local ids of all threads as the driver lays them out for functions that read them from memory: for each thread a row of
    /// 16-bit numbers a dimension, of at least 16 lanes.
    pub(crate) fn id_rows(&self) -> Vec<u16> {
        let row = self.simd.max(16);
        let thread = |t| {
            let ids = (0..3).flat_map(move |dim| (0..row).map(move |lane| (dim, lane)));
            ids.map(move |(dim, lane)| match lane < self.simd {
                true => self.local_id(t, lane)[dim] as u16,
                false => 0,
            })
        };
        (0..self.threads).flat_map(thread).collect()
    }

    /// Lanes of a thread that exist.
    pub(crate) fn mask(&self, thread: u32) -> u32 {
        if thread + 1 == self.threads {
            self.last_mask
        } else {
            self.full_mask
        }
    }

    fn fill_ids(&mut self) {
        for thread in 0..self.threads {
            let table = self.ids(thread).cast_mut();
            for lane in 0..self.simd {
                let id = self.local_id(thread, lane);
                for (dim, id) in id.into_iter().enumerate() {
                    // SAFETY: a table has three rows of `LOCAL_ID_ROW` words and the lane is below
                    // that; the tables are owned and not shared yet.
                    unsafe {
                        table
                            .add(dim * LOCAL_ID_ROW + lane as usize)
                            .write(id as u16)
                    }
                }
            }
        }
    }
}
