//! The plot: a row a strategy, its run times as points on a common axis, its compile time as a bar.

use std::fmt::Write as _;

use crate::compare::table::{Row, Table};
use crate::html::escaped;

/// Width of the plot in its own units.
const WIDTH: f64 = 1000.0;
/// Points drawn of a strategy; more lie on each other.
const MAX_POINTS: usize = 101;
/// The slowest by the fastest run, beyond which the axis is logarithmic.
const LINEAR: f64 = 12.0;
/// Differences in speed that are not worth a colour.
const EVEN: f64 = 0.03;

/// From times to places.
struct Scale {
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    fn new(table: &Table) -> Scale {
        let times = table.strategies.iter().flat_map(|row| &row.times);
        let ends = times.fold((f64::INFINITY, 0.0_f64), |(least, most), &t| {
            (least.min(t), most.max(t))
        });
        match ends {
            (least, most) if least > 0.0 && most / least > LINEAR => Scale {
                from: least / 1.3,
                to: most * 1.1,
                log: true,
            },
            (_, most) => Scale {
                from: 0.0,
                to: if most > 0.0 { most * 1.05 } else { 1.0 },
                log: false,
            },
        }
    }

    /// Place in the plot, from 0 to 1.
    fn part(&self, ms: f64) -> f64 {
        let part = if self.log {
            (ms / self.from).ln() / (self.to / self.from).ln()
        } else {
            (ms - self.from) / (self.to - self.from)
        };
        part.clamp(0.0, 1.0)
    }

    fn x(&self, ms: f64) -> f64 {
        self.part(ms) * WIDTH
    }

    /// Round numbers on the axis.
    fn ticks(&self) -> Vec<f64> {
        let magnitude = 10f64.powf((self.to / 5.0).log10().floor());
        if self.log {
            let first = 10f64.powf(self.from.log10().floor());
            let steps = [1.0, 2.0, 5.0];
            let all = (0..12).flat_map(|n| steps.map(|s| s * first * 10f64.powi(n)));
            return all.filter(|&t| t >= self.from && t <= self.to).collect();
        }
        let wide = |step: &f64| self.to / (step * magnitude) <= 6.0;
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(wide);
        let step = step.unwrap_or(10.0) * magnitude;
        let all = (0..7).map(|n| f64::from(n) * step);
        all.filter(|&t| t <= self.to).collect()
    }
}

/// Writes the table with the plot.
pub fn write(out: &mut String, table: &Table) {
    let scale = Scale::new(table);
    let kind = if scale.log { ", logarithmic" } else { "" };
    let rounds = table.strategies.first().map_or(0, |row| row.times.len());
    let base = table
        .strategies
        .iter()
        .find(|r| r.strategy == table.baseline);
    let longest = table.strategies.iter().map(|r| r.compile_ms);
    let longest = longest.fold(0.0, f64::max);
    let _ = writeln!(
        out,
        "<h2>Run time and compile time</h2>\n\
         <p>A point for each of {rounds} runs in turn, a mark at the median; the dashed line is the baseline's median.</p>\n\
         <div class=\"wide\"><table id=\"times\">\n<tr><th>strategy</th><th>run time, ms{kind}</th>\
         <th class=\"number\">median</th><th class=\"number\">speed</th><th colspan=\"2\">compile time, ms</th></tr>"
    );
    for row in &table.strategies {
        strategy(out, row, &scale, base, longest);
    }
    out.push_str("<tr><td></td><td class=\"plot\"><div class=\"axis\">");
    for tick in scale.ticks() {
        let left = scale.part(tick) * 100.0;
        let _ = write!(
            out,
            "<span style=\"left:{left:.2}%\">{}</span>",
            trimmed(&number(tick))
        );
    }
    out.push_str("</div></td><td colspan=\"4\"></td></tr>\n</table></div>\n");
}

fn strategy(out: &mut String, row: &Row, scale: &Scale, base: Option<&Row>, longest: f64) {
    let is_base = base.is_some_and(|base| base.strategy == row.strategy);
    let class = if is_base { " class=\"baseline\"" } else { "" };
    let wrong = if row.same {
        ""
    } else {
        " <span class=\"wrong\">wrong result</span>"
    };
    let name = escaped(&row.strategy);
    let _ = write!(out, "<tr{class}><td>{name}{wrong}</td><td class=\"plot\">");
    svg(out, row, scale, base);
    let judged = match row.speed {
        s if s > 1.0 + EVEN => " better",
        s if s < 1.0 - EVEN => " worse",
        _ => "",
    };
    let bar = if longest > 0.0 {
        row.compile_ms / longest * 100.0
    } else {
        0.0
    };
    let _ = writeln!(
        out,
        "</td><td class=\"number\">{}</td><td class=\"number{judged}\">{:.2}×</td>\
         <td class=\"bars\"><div class=\"bar\" style=\"width:{bar:.1}%\"></div></td><td class=\"number\">{}</td></tr>",
        number(row.run_ms),
        row.speed,
        number(row.compile_ms),
    );
}

fn svg(out: &mut String, row: &Row, scale: &Scale, base: Option<&Row>) {
    let _ = write!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} 30\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}: {} runs, {} to {} ms\">",
        escaped(&row.strategy),
        row.times.len(),
        number(row.least_ms),
        number(row.most_ms),
    );
    let mut upright = |class: &str, x: f64, from: u32, to: u32| {
        let _ = write!(out, "<path class=\"{class}\" d=\"M{x:.1} {from}V{to}\"/>");
    };
    for tick in scale.ticks() {
        upright("tick", scale.x(tick), 0, 30);
    }
    if let Some(base) = base {
        upright("reference", scale.x(base.run_ms), 0, 30);
    }
    let (least, most) = (scale.x(row.least_ms), scale.x(row.most_ms));
    let _ = write!(
        out,
        "<path class=\"spread\" d=\"M{least:.1} 15H{most:.1}\"/><path class=\"run\" d=\""
    );
    for time in points(&row.times) {
        let _ = write!(out, "M{:.1} 15h0", scale.x(time));
    }
    let _ = write!(
        out,
        "\"/><path class=\"median\" d=\"M{:.1} 6V24\"/></svg>",
        scale.x(row.run_ms)
    );
}

/// All times, or as many of them evenly over their order.
fn points(times: &[f64]) -> Vec<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let step = sorted.len().div_ceil(MAX_POINTS).max(1);
    sorted.into_iter().step_by(step).collect()
}

/// Three digits that count.
fn number(ms: f64) -> String {
    let decimals = match ms {
        ms if ms >= 100.0 => 0,
        ms if ms >= 10.0 => 1,
        ms if ms >= 1.0 => 2,
        ms if ms >= 0.1 => 3,
        _ => 5,
    };
    format!("{ms:.decimals$}")
}

/// Without zeros after the point.
fn trimmed(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let scale = |from, to, log| Scale { from, to, log };
        assert_eq!(
            scale(0.0, 10.5, false).ticks(),
            [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        );
        assert_eq!(scale(0.0, 1.0, false).ticks().len(), 6);
        let ticks = scale(0.8, 110.0, true).ticks();
        assert_eq!(ticks, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert!((scale(1.0, 100.0, true).part(10.0) - 0.5).abs() < 1e-9);
        assert!((scale(0.0, 8.0, false).part(2.0) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn numbers() {
        let texts = [0.0, 0.00123, 0.5, 1.0, 2.346, 31.44, 123.4].map(number);
        assert_eq!(
            texts,
            ["0.00000", "0.00123", "0.500", "1.00", "2.35", "31.4", "123"]
        );
        let texts = ["0.00000", "0.500", "100", "20.0"].map(trimmed);
        assert_eq!(texts, ["0", "0.5", "100", "20"]);
    }

    #[test]
    fn points_are_bounded() {
        let many: Vec<f64> = (0..10_000).map(f64::from).collect();
        assert!(points(&many).len() <= MAX_POINTS);
        assert_eq!(points(&[3.0, 1.0]), [1.0, 3.0]);
    }
}
