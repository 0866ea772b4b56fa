//! Option prices (`black_scholes.cl`) in double precision, with the same approximation of the
//! normal distribution.

/// Market data common to all options.
#[derive(Clone, Copy, Debug)]
pub struct Market {
    pub rate: f64,
    pub volatility: f64,
}

fn cumulative_normal(d: f64) -> f64 {
    let k = 1.0 / (1.0 + 0.2316419 * d.abs());
    let coefficients = [
        1.330274429,
        -1.821255978,
        1.781477937,
        -0.356563782,
        0.319381530,
    ];
    let polynomial = coefficients.iter().fold(0.0, |p, c| p * k + c) * k;
    let tail = 0.39894228040 * (-0.5 * d * d).exp() * polynomial;
    if d > 0.0 { 1.0 - tail } else { tail }
}

/// Prices of one call and one put.
pub fn price(spot: f64, strike: f64, years: f64, market: Market) -> (f64, f64) {
    let Market { rate, volatility } = market;
    let spread = volatility * years.sqrt();
    let d1 = ((spot / strike).ln() + (rate + 0.5 * volatility * volatility) * years) / spread;
    let (n1, n2) = (cumulative_normal(d1), cumulative_normal(d1 - spread));
    let discounted = strike * (-rate * years).exp();
    (
        spot * n1 - discounted * n2,
        discounted * (1.0 - n2) - spot * (1.0 - n1),
    )
}

/// `black_scholes` and `black_scholes_native`: calls, puts.
pub fn black_scholes(
    spot: &[f32],
    strike: &[f32],
    years: &[f32],
    market: Market,
) -> (Vec<f64>, Vec<f64>) {
    let one = |i: usize| price(spot[i].into(), strike[i].into(), years[i].into(), market);
    (0..spot.len()).map(one).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_price() {
        let (call, put) = price(
            100.0,
            100.0,
            1.0,
            Market {
                rate: 0.05,
                volatility: 0.2,
            },
        );
        assert!((call - 10.4506).abs() < 1e-4);
        assert!((put - 5.5735).abs() < 1e-4);
    }
}
