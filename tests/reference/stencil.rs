//! 3x3 neighbourhoods (`stencil.cl`): exact.

fn cells(width: usize, height: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..width * height).map(move |at| (at % width, at / width))
}

pub fn stencil_mean(input: &[i32], width: usize, height: usize) -> Vec<i32> {
    let mean = |(x, y): (usize, usize)| {
        let rows = y.saturating_sub(1)..(y + 2).min(height);
        let columns = x.saturating_sub(1)..(x + 2).min(width);
        let count = rows.len() * columns.len();
        let sum: i32 = rows
            .map(|r| input[r * width..][columns.clone()].iter().sum::<i32>())
            .sum();
        sum / count as i32
    };
    cells(width, height).map(mean).collect()
}

pub fn stencil_weighted(
    input: &[f32],
    weights: &[f32; 9],
    width: usize,
    height: usize,
) -> Vec<f32> {
    let cell = |(x, y): (usize, usize)| {
        if x == 0 || y == 0 || x == width - 1 || y == height - 1 {
            return input[y * width + x];
        }
        let tap = |k: usize| input[(y + k / 3 - 1) * width + x + k % 3 - 1];
        (0..9).fold(0.0f32, |sum, k| weights[k].mul_add(tap(k), sum))
    };
    cells(width, height).map(cell).collect()
}

pub fn life(input: &[u8], width: usize, height: usize) -> Vec<u8> {
    let cell = |(x, y): (usize, usize)| {
        let at = |dx: usize, dy: usize| input[(y + dy) % height * width + (x + dx) % width];
        let around = [0, 1, width - 1].map(|dx| [0, 1, height - 1].map(|dy| at(dx, dy)));
        let neighbours =
            around.iter().flatten().map(|&c| u32::from(c)).sum::<u32>() - u32::from(at(0, 0));
        u8::from(neighbours == 3 || (neighbours == 2 && at(0, 0) != 0))
    };
    cells(width, height).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_of_a_corner_counts_four() {
        let mean = stencil_mean(&[4, 8, 0, 4, 0, 0, 9, 9, 9], 3, 3);
        assert_eq!((mean[0], mean[4]), (4, 43 / 9));
    }

    #[test]
    fn identity_weights() {
        let input: Vec<f32> = (0..20).map(|v| v as f32).collect();
        let weights = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(stencil_weighted(&input, &weights, 5, 4), input);
    }

    #[test]
    fn blinker_turns() {
        let mut grid = vec![0u8; 25];
        grid[11..14].fill(1);
        let next = life(&grid, 5, 5);
        assert_eq!(
            (0..25).filter(|&i| next[i] == 1).collect::<Vec<_>>(),
            [7, 12, 17]
        );
        assert_eq!(life(&next, 5, 5), grid);
    }
}
