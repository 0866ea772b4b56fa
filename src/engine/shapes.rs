//! Specialisations of kernels on the shape of a launch: which there are, and which a launch runs.

use super::kernel::Kernel;
use super::launch::Launch;
use crate::artifact;
use crate::backend::OobPolicy;
use crate::lower::LocalIdShape;

/// X sizes of groups of two dimensions that code is specialised on: powers of two.
const X_SIZES: [u16; 4] = [8, 16, 32, 64];

impl Kernel {
    /// Size of a launch's groups, and which specialisation it runs.
    pub(super) fn groups_of(&self, launch: &Launch) -> ([u32; 3], LocalIdShape) {
        let local = launch
            .local
            .or(self.required_local_size())
            .unwrap_or_else(|| default_local(launch.global));
        // Partial groups keep one dimension, but in several they may break rows that whole groups keep.
        let whole_rows = local[0] != 0
            && local[0].is_multiple_of(self.simd())
            && launch.global[0].is_multiple_of(local[0]);
        let ids = if !self.walks_rows() {
            LocalIdShape::General
        } else if whole_rows {
            self.by_number(local).unwrap_or(LocalIdShape::FullRow)
        } else if local[1] == 1 && local[2] == 1 {
            LocalIdShape::Row
        } else if let Some(row) = self.short_row(launch, local) {
            let by_number = self.by_number(local);
            by_number.unwrap_or(LocalIdShape::ShortRows(row))
        } else {
            LocalIdShape::General
        };
        (local, ids)
    }

    /// Lengths of rows that there are specialisations for. A trap leaves an access undone, which cannot be said of one that is
    /// done row by row: there is none for it.
    pub(super) fn short_rows(&self, oob: OobPolicy) -> impl Iterator<Item = u8> {
        let simd = self.simd();
        let rows = [8, 16]
            .into_iter()
            .filter(move |&row| u32::from(row) < simd);
        rows.filter(move |_| oob != OobPolicy::Trap)
    }

    /// The shape of groups in which a thread's number gives its local ids, where there is code for it. All threads have whole rows. In two dimensions, only code that waits at barriers gains by it,
    /// as it would load the ids again after each; in other kernels it was measured to change little, and more often for the worse.
    fn by_number(&self, [x, y, z]: [u32; 3]) -> Option<LocalIdShape> {
        if z != 1 {
            return None;
        }
        if y == 1 {
            return Some(LocalIdShape::Full1d);
        }
        let x = u16::try_from(x).ok().filter(|x| X_SIZES.contains(x))?;
        (self.barriers() > 0).then_some(LocalIdShape::Full2d(x))
    }

    /// Lanes of a row, if every thread has several whole ones.
    fn short_row(&self, launch: &Launch, local: [u32; 3]) -> Option<u8> {
        let row = self
            .short_rows(launch.oob)
            .find(|&row| u32::from(row) == local[0])?;
        let whole = |n: usize| launch.global[n].is_multiple_of(local[n]);
        let rows = self.simd() / u32::from(row);
        (local[1].is_multiple_of(rows) && whole(0) && whole(1)).then_some(row)
    }

    /// Prepares and runs once. A launch that is stopped while its code is compiled reports so and that no group ran.
    /// Lanes are numbered along x first; other walk orders take another dimension.
    pub(super) fn walks_rows(&self) -> bool {
        self.parts().manifest.key.meta.walk_order == [0, 1, 2]
    }

    /// Keys in the disk cache of all specialisations under a policy, each with words for the launches it is for. Specialisations
    /// without a key are left out.
    pub fn cache_keys(&self, oob: OobPolicy) -> Vec<(&'static str, artifact::Key)> {
        let general = (LocalIdShape::General, LocalIdShape::General.launches());
        let mut shapes = vec![general];
        if self.walks_rows() {
            let short = self.short_rows(oob).map(LocalIdShape::ShortRows);
            let rows = self.short_rows(oob).map(u16::from);
            let wide = |&x: &u16| u32::from(x) >= self.simd();
            let x_sizes = rows.chain(X_SIZES.into_iter().filter(wide));
            let x_sizes = x_sizes.filter(|_| self.barriers() > 0);
            let shapes_of_rows = [
                LocalIdShape::Full1d,
                LocalIdShape::FullRow,
                LocalIdShape::Row,
            ];
            let shapes_of_rows = shapes_of_rows.into_iter().chain(short);
            let shapes_of_rows = shapes_of_rows.chain(x_sizes.map(LocalIdShape::Full2d));
            shapes = shapes_of_rows.map(|s| (s, s.launches())).collect();
            shapes.push(general);
        }
        let key = |(shape, name)| Some((name, self.disk_key(shape, oob)?));
        shapes.into_iter().filter_map(key).collect()
    }
}

/// The largest divisor of the x size up to 256, or 256 with a partial last group when that is small.
fn default_local(global: [u32; 3]) -> [u32; 3] {
    let x = global[0].max(1);
    let best = (1..=x.min(256))
        .rev()
        .find(|d| x.is_multiple_of(*d))
        .unwrap_or(1);
    [
        if best >= 32 || best == x {
            best
        } else {
            256.min(x)
        },
        1,
        1,
    ]
}
