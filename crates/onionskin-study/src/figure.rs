//! Figures as SVG and PNG, drawn from numbers that anybody can have as JSON or CSV.
//!
//! The same numbers give the same bytes.

use kuva::prelude::*;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[error("drawing the picture: {0}")]
pub struct FigureError(String);

/// A picture in the making.
pub struct Figure {
    plots: Vec<Plot>,
    layout: Layout,
}

impl std::fmt::Debug for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Figure").field("plots", &self.plots.len()).finish_non_exhaustive()
    }
}

impl Figure {
    /// As text.
    pub fn svg(self) -> String {
        renumber(&render_to_svg(self.plots, self.layout))
    }

    /// As pixels, two for each unit of the SVG.
    pub fn png(self) -> Result<Vec<u8>, FigureError> {
        render_to_png(self.plots, self.layout, 2.0).map_err(FigureError)
    }
}

/// The library numbers what clips by a counter of the process. Here numbers begin at 1 in every picture, so that the same numbers give the same bytes.
fn renumber(svg: &str) -> String {
    const NAME: &str = "kuva-clip-";
    let mut known: Vec<&str> = Vec::new();
    let mut out = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some(at) = rest.find(NAME) {
        let (before, after) = rest.split_at(at + NAME.len());
        let digits = &after[..after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())];
        let number = known.iter().position(|number| *number == digits).unwrap_or_else(|| {
            known.push(digits);
            known.len() - 1
        });
        out.push_str(before);
        out.push_str(&(number + 1).to_string());
        rest = &after[digits.len()..];
    }
    out.push_str(rest);
    out
}

/// A collection in the scatter of cardinality against size.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionPoint {
    /// Copies.
    pub cardinality: u64,
    /// Pages.
    pub size: u64,
    /// What it is called.
    pub name: String,
    /// Why it is copied: one colour each.
    pub kind: String,
}

/// Colours that are told apart without seeing red and green, and in grey (after Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000"];
/// Collections that get their names written beside them.
const LABELLED: usize = 12;
/// Letters of such a name.
const LABEL_CHARS: usize = 28;

/// Cardinality of each collection against its size, on logarithmic axes, the large ones with their names (Cho et al. 2000, figure 12). Below the line
/// at ten pages is noise.
pub fn collections_scatter(points: &[CollectionPoint]) -> Figure {
    let mut order: Vec<usize> = (0..points.len()).collect();
    let weight = |at: &usize| points[*at].cardinality.saturating_mul(points[*at].size);
    order.sort_by_key(|at| (std::cmp::Reverse(weight(at)), *at));
    let labelled: Vec<usize> =
        order.iter().copied().filter(|at| points[*at].size >= 10).take(LABELLED).collect();
    let mut kinds: Vec<&str> = points.iter().map(|point| point.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut plots: Vec<Plot> = Vec::new();
    for (nth, kind) in kinds.iter().enumerate() {
        let here = points.iter().filter(|point| point.kind == *kind);
        let scatter = ScatterPlot::new()
            .with_data(here.map(|point| (point.cardinality as f64, point.size as f64)))
            .with_color(COLOURS[nth % COLOURS.len()])
            .with_size(4.0)
            .with_marker_opacity(0.7)
            .with_legend(*kind);
        plots.push(scatter.into());
    }
    if !labelled.is_empty() {
        // Names are a series of their own, without marks: within one series they keep out of each other's way.
        let names = ScatterPlot::new()
            .with_data(labelled.iter().map(|at| (points[*at].cardinality as f64, points[*at].size as f64)))
            .with_size(0.0)
            .with_labels(labelled.iter().map(|at| label(&points[*at].name)))
            .with_repel_labels();
        plots.push(names.into());
    }
    if plots.is_empty() {
        // Axes need something to stand on.
        plots.push(ScatterPlot::new().with_data(vec![(1.0, 1.0)]).with_size(0.0).into());
    }
    let title = match points.len() {
        0 => "No replicated collections".to_owned(),
        1 => "One replicated collection".to_owned(),
        n => format!("{n} replicated collections"),
    };
    let layout = Layout::auto_from_plots(&plots)
        .with_title(title)
        .with_x_label("copies (cardinality)")
        .with_y_label("pages (size)")
        .with_log_scale()
        .with_width(820.0)
        .with_height(560.0);
    let layout = if points.iter().any(|point| point.size < 10) {
        layout.with_reference_line(ReferenceLine::horizontal(10.0).with_label("noise below"))
    } else {
        layout
    };
    Figure { plots, layout }
}

/// A name that fits, in which nothing is taken for a formula.
fn label(name: &str) -> String {
    let plain: String = name.chars().filter(|c| !c.is_control()).collect();
    let short = match plain.char_indices().nth(LABEL_CHARS) {
        Some((at, _)) => format!("{}…", plain[..at].trim_end()),
        None => plain,
    };
    short.replace('\\', "/").replace('$', "\\$")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(cardinality: u64, size: u64, name: &str, kind: &str) -> CollectionPoint {
        CollectionPoint { cardinality, size, name: name.to_owned(), kind: kind.to_owned() }
    }

    #[test]
    fn large_collections_have_their_names_written() {
        let mut points = vec![point(143, 1359, "Linux <Documentation> Project $5", "mirror")];
        points.extend((0..40).map(|n| point(2 + n % 5, 3 + n % 4, &format!("small {n}"), "template noise")));
        let svg = collections_scatter(&points).svg();
        assert!(svg.contains("Linux &lt;Documentation&gt; Projec"));
        assert!(!svg.contains("small 1") && svg.contains("template noise") && svg.contains("noise below"));
        assert!(svg == collections_scatter(&points).svg(), "the same numbers, the same picture");
    }

    #[test]
    fn nothing_is_drawn_too() {
        assert!(collections_scatter(&[]).svg().contains("No replicated collections"));
        let png = collections_scatter(&[point(2, 30, "one", "mirror")]).png().unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    }
}
