//! The ratios of cases as a picture, in a page that loads nothing from elsewhere.

use std::fmt::Write;

use crate::data::Row;

const COLORS: [(&str, &str); 2] = [("Cranelift", "#c2571a"), ("LLVM", "#2563a8")];
const LINE: usize = 22;
const LEFT: f64 = 260.0;
/// Points of a doubling, and doublings on either side of 1.
const DOUBLING: f64 = 80.0;
const DOUBLINGS: f64 = 5.0;

fn of(row: &Row, name: &str) -> Option<f64> {
    row.ratios
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, ratio)| *ratio)
}

/// The geometric mean of each of our columns, as text.
pub fn means(rows: &[Row]) -> Vec<String> {
    let mean = |(name, _): &(&str, &str)| {
        let all: Vec<f64> = rows.iter().filter_map(|row| of(row, name)).collect();
        let logs: f64 = all.iter().map(|ratio| ratio.ln()).sum();
        let least = all.iter().filter(|ratio| **ratio >= 1.0).count();
        let mean = (logs / all.len() as f64).exp();
        (!all.is_empty()).then(|| {
            format!(
                "better peer / {name}: geometric mean {mean:.2}, at least 1 on {least} of {}",
                all.len()
            )
        })
    };
    COLORS.iter().filter_map(mean).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Where a ratio stands.
fn place(ratio: f64) -> f64 {
    LEFT + DOUBLING * (ratio.log2().clamp(-DOUBLINGS, DOUBLINGS) + DOUBLINGS)
}

/// The page; the slowest cases are on top.
pub fn html(rows: &[Row], title: &str) -> String {
    let mut sorted: Vec<&Row> = rows.iter().collect();
    let least = |row: &Row| {
        row.ratios
            .iter()
            .map(|(_, r)| *r)
            .fold(f64::INFINITY, f64::min)
    };
    sorted.sort_by(|a, b| least(a).total_cmp(&least(b)));
    let height = LINE * (sorted.len() + 2);
    let mut out = format!(
        "<!DOCTYPE html><meta charset=utf-8><title>{0}</title><style>body{{font:14px sans-serif}}text{{font-size:13px}}</style>\
         <h1>{0}</h1><p>Time of the better of PoCL and Intel's runtime, divided by ours: right of 1 we are faster.</p>",
        escaped(title)
    );
    means(rows).iter().for_each(|line| {
        let _ = write!(out, "<p>{line}</p>");
    });
    let _ = write!(out, "<svg width=1100 height={height} role=img>");
    for doubling in -(DOUBLINGS as i32)..=DOUBLINGS as i32 {
        let (ratio, color) = (
            2_f64.powi(doubling),
            if doubling == 0 { "#000" } else { "#ddd" },
        );
        let x = place(ratio);
        let _ = write!(
            out,
            "<path d='M{x} {LINE}V{height}' stroke='{color}'/><text x={x} y=14 text-anchor=middle>{ratio}</text>"
        );
    }
    for (i, row) in sorted.iter().enumerate() {
        let y = LINE * (i + 2) - 6;
        let _ = write!(out, "<text x=0 y={y}>{}</text>", escaped(&row.name));
        for (name, color) in COLORS {
            let Some(ratio) = of(row, name) else { continue };
            let (x, y) = (place(ratio), y - 4);
            let _ = write!(
                out,
                "<circle cx={x} cy={y} r=5 fill='{color}'><title>{name} {ratio:.2}</title></circle>"
            );
        }
        let others = row
            .wrong
            .iter()
            .chain(&row.absent)
            .map(|(name, why)| format!("{name}: {why}"));
        let others: Vec<String> = others.collect();
        let x = place(f64::INFINITY) + 10.0;
        let _ = write!(
            out,
            "<text x={x} y={y} fill='#a00'>{}</text>",
            escaped(&others.join("; "))
        );
    }
    out + "</svg>\n"
}
