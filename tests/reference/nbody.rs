//! One step of n bodies (`nbody.cl`) in double precision. Bodies are float4: position and mass.

/// New positions (with mass) and velocities (with 0), four numbers a body.
pub fn nbody(position: &[f32], velocity: &[f32], dt: f64, softening: f64) -> (Vec<f64>, Vec<f64>) {
    let body = |i: usize| -> [f64; 4] { std::array::from_fn(|c| f64::from(position[i * 4 + c])) };
    let count = position.len() / 4;
    let (mut new_position, mut new_velocity) = (Vec::new(), Vec::new());
    for i in 0..count {
        let me = body(i);
        let pull = (0..count).fold([0.0; 3], |sum, j| {
            add(sum, attraction(me, body(j), softening))
        });
        let speed: [f64; 3] =
            std::array::from_fn(|c| f64::from(velocity[i * 4 + c]) + pull[c] * dt);
        new_velocity.extend([speed[0], speed[1], speed[2], 0.0]);
        new_position.extend([
            me[0] + speed[0] * dt,
            me[1] + speed[1] * dt,
            me[2] + speed[2] * dt,
            me[3],
        ]);
    }
    (new_position, new_velocity)
}

fn add(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|c| a[c] + b[c])
}

fn attraction(body: [f64; 4], other: [f64; 4], softening: f64) -> [f64; 3] {
    let r: [f64; 3] = std::array::from_fn(|c| other[c] - body[c]);
    let inverse = 1.0 / (r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + softening).sqrt();
    r.map(|d| d * other[3] * inverse.powi(3))
}

#[cfg(test)]
mod tests {
    use super::nbody;

    #[test]
    fn two_bodies_attract_each_other() {
        // Distance 4 and softening 9 make a root of 5.
        let position = [0.0, 0.0, 0.0, 62.5, 4.0, 0.0, 0.0, 125.0];
        let (p, v) = nbody(&position, &[0.0; 8], 0.5, 9.0);
        let near =
            |got: &[f64], want: [f64; 8]| got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-12);
        assert!(near(&v, [2.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0]));
        assert!(near(&p, [1.0, 0.0, 0.0, 62.5, 3.5, 0.0, 0.0, 125.0]));
    }
}
