//! Escape-time counts (`mandelbrot.cl`), row by row: exact.

/// Position of the first point and distance between points.
#[derive(Clone, Copy, Debug)]
pub struct View<T> {
    pub x0: T,
    pub y0: T,
    pub dx: T,
    pub dy: T,
}

fn picture(width: usize, height: usize, count: impl Fn(i32, i32) -> i32) -> Vec<i32> {
    (0..width * height)
        .map(|at| count((at % width) as i32, (at / width) as i32))
        .collect()
}

pub fn mandelbrot(view: View<f32>, width: usize, height: usize, limit: i32) -> Vec<i32> {
    picture(width, height, |px, py| {
        let cx = (px as f32).mul_add(view.dx, view.x0);
        let cy = (py as f32).mul_add(view.dy, view.y0);
        let (mut zx, mut zy) = (0.0f32, 0.0f32);
        for n in 0..limit {
            let (xx, yy) = (zx * zx, zy * zy);
            if xx + yy > 4.0 {
                return n;
            }
            zy = (2.0 * zx).mul_add(zy, cy);
            zx = xx - yy + cx;
        }
        limit.max(0)
    })
}

/// In 4.28 fixed point.
pub fn mandelbrot_fixed(view: View<i32>, width: usize, height: usize, limit: i32) -> Vec<i32> {
    picture(width, height, |px, py| {
        let cx = i64::from(view.x0.wrapping_add(px.wrapping_mul(view.dx)));
        let cy = i64::from(view.y0.wrapping_add(py.wrapping_mul(view.dy)));
        let (mut zx, mut zy) = (0i64, 0i64);
        for n in 0..limit {
            let (xx, yy) = ((zx * zx) >> 28, (zy * zy) >> 28);
            if xx + yy > 4 << 28 {
                return n;
            }
            zy = ((zx * zy) >> 27) + cy;
            zx = xx - yy + cx;
        }
        limit.max(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_number_types_agree_on_easy_points() {
        let one = 1 << 28;
        let a = mandelbrot(
            View {
                x0: -2.0,
                y0: 0.0,
                dx: 1.0,
                dy: 1.0,
            },
            5,
            2,
            50,
        );
        let b = mandelbrot_fixed(
            View {
                x0: -2 * one,
                y0: 0,
                dx: one,
                dy: one,
            },
            5,
            2,
            50,
        );
        assert_eq!(a, b);
        // -2, -1 and 0 never escape; 1 escapes after 0, 1, 2, 5.
        assert_eq!(a[..4], [50, 50, 50, 3]);
    }
}
