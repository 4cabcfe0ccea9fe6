//! Figures as SVG and PNG, drawn from numbers that anybody can have as JSON or CSV.
//!
//! A figure is a description; it is drawn when it is asked for, for a file or for a page that has
//! colours of its own. The same numbers give the same bytes.

use kuva::prelude::*;
use kuva::render::layout::AxisLabelOverlap;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[error("drawing the picture: {0}")]
pub struct FigureError(String);

/// Where a picture is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// In a file of its own: black on white.
    File,
    /// In a page: lines and letters have the colours of the page.
    Page,
}

/// A picture to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// Bars side by side, or on top of each other.
    Bars(Bars),
    /// How many things there are of each size, on logarithmic axes.
    Sizes(Sizes),
    /// Lines.
    Lines(Lines),
    /// Copies and pages of collections, on logarithmic axes.
    Collections(Vec<CollectionPoint>),
}

/// Groups of bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// What stands above.
    pub title: String,
    /// Below the groups.
    pub x_label: String,
    /// Beside the scale, with the unit.
    pub y_label: String,
    /// Names of the groups.
    pub groups: Vec<String>,
    /// Names of the bars in a group, and their values in each group.
    pub series: Vec<(String, Vec<f64>)>,
    /// Whether bars of a group stand on top of each other.
    pub stacked: bool,
    /// Whether bars lie, so that long names of groups have room.
    pub lying: bool,
}

/// Counts of sizes, in several series, each with the law that was fitted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sizes {
    /// What stands above.
    pub title: String,
    /// Below.
    pub x_label: String,
    /// Beside.
    pub y_label: String,
    /// Points by series.
    pub series: Vec<SizeSeries>,
}

/// One series of [`Sizes`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SizeSeries {
    /// What is counted.
    pub name: String,
    /// Size and count.
    pub points: Vec<(u64, u64)>,
    /// Ends of the fitted line.
    pub line: Option<[(f64, f64); 2]>,
}

/// Lines over one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// What stands above.
    pub title: String,
    /// Below.
    pub x_label: String,
    /// Beside, with the unit.
    pub y_label: String,
    /// The lines.
    pub series: Vec<LineSeries>,
    /// Values that are marked across the figure, with their names.
    pub marks: Vec<(f64, String)>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineSeries {
    /// What it is.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Low and high at each point.
    pub band: Option<Vec<(f64, f64)>>,
    /// Whether it is dashed.
    pub dashed: bool,
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

/// Colours that are told apart without seeing red and green, in grey, and on light and dark (after
/// Okabe and Ito).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"];
/// Collections that get their names written beside them.
const LABELLED: usize = 12;
/// Letters of such a name.
const LABEL_CHARS: usize = 28;
/// Points of a series: more would be drawn over each other.
const MOST_POINTS: usize = 1_500;
/// Shapes of points, so that colour is not all that tells series apart.
const MARKERS: [MarkerShape; 4] =
    [MarkerShape::Circle, MarkerShape::Square, MarkerShape::Triangle, MarkerShape::Diamond];
/// Narrow enough that letters can be read on a phone, where all of it is seen at once.
/// Letters in a line of a title.
const TITLE_CHARS: usize = 58;
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 400.0;

impl Figure {
    /// As text. `id` is told apart from those of other figures on the same page.
    pub fn svg(&self, ink: Ink, id: &str) -> String {
        let (plots, layout) = self.plots(true);
        let svg = close_tips(&render_to_svg(plots, layout));
        let svg = scalable(&renumber(&svg, id));
        match ink {
            Ink::File => svg,
            Ink::Page => inherit_colours(&svg),
        }
    }

    /// As pixels, two for each unit of the SVG.
    pub fn png(&self) -> Result<Vec<u8>, FigureError> {
        let (plots, layout) = self.plots(false);
        render_to_png(plots, layout, 2.0).map_err(FigureError)
    }

    /// With words that appear under the pointer, where there is one.
    fn plots(&self, with_tips: bool) -> (Vec<Plot>, Layout) {
        match self {
            Figure::Bars(bars) => bars.plots(with_tips),
            Figure::Sizes(sizes) => sizes.plots(),
            Figure::Lines(lines) => lines.plots(),
            Figure::Collections(points) => collections(points),
        }
    }
}

fn colour(nth: usize) -> &'static str {
    COLOURS[nth % COLOURS.len()]
}

/// The library forgets to end the groups that it makes for the words of bars side by side, so that
/// everything after them is clipped like the bars.
fn close_tips(svg: &str) -> String {
    const TIP: &str = "</title><rect ";
    if svg.matches("<g").count() - svg.matches("</g>").count() != svg.matches(TIP).count() {
        return svg.to_owned();
    }
    let mut out = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some(at) = rest.find(TIP) {
        let end = rest[at..].find("/>").map_or(rest.len(), |end| at + end + 2);
        out.push_str(&rest[..end]);
        out.push_str("</g>");
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// The library numbers what clips by a counter of the process. Here numbers begin at 1 in every
/// picture, so that the same numbers give the same bytes, and carry the name of the figure, so that
/// they are not those of another on the same page.
fn renumber(svg: &str, id: &str) -> String {
    const NAME: &str = "kuva-clip-";
    let mut known: Vec<&str> = Vec::new();
    let mut out = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some(at) = rest.find(NAME) {
        let (before, after) = rest.split_at(at);
        let after = &after[NAME.len()..];
        let digits = &after[..after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())];
        let number = known.iter().position(|number| *number == digits).unwrap_or_else(|| {
            known.push(digits);
            known.len() - 1
        });
        out.push_str(before);
        out.push_str(&format!("{id}-clip-{}", number + 1));
        rest = &after[digits.len()..];
    }
    out.push_str(rest);
    out
}

/// With a box of its own, so that a page can make it smaller or larger.
fn scalable(svg: &str) -> String {
    let attribute = |name: &str| {
        let (_, after) = svg.split_once(&format!(" {name}=\""))?;
        after.split_once('"').map(|(value, _)| value)
    };
    match (attribute("width"), attribute("height")) {
        (Some(width), Some(height)) => {
            svg.replacen("<svg ", &format!("<svg viewBox=\"0 0 {width} {height}\" "), 1)
        }
        _ => svg.to_owned(),
    }
}

/// Black, white and grey give way to the colours of the page.
fn inherit_colours(svg: &str) -> String {
    svg.replacen("<rect width=\"100%\" height=\"100%\" fill=\"white\" />", "", 1)
        .replacen("fill=\"black\"", "fill=\"currentColor\"", 1)
        .replace("stroke=\"#000000\"", "stroke=\"currentColor\"")
        .replace("stroke=\"#1a1a1a\"", "stroke=\"currentColor\"")
        .replace("fill=\"#000000\"", "fill=\"currentColor\"")
        .replace("stroke=\"#cccccc\"", "stroke=\"var(--line)\"")
        .replace("fill=\"#ffffff\"", "fill=\"var(--paper)\"")
}

/// 12000 as 12k, so that ticks stay short.
fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        magnitude if magnitude >= 1e9 => (value / 1e9, "G"),
        magnitude if magnitude >= 1e6 => (value / 1e6, "M"),
        magnitude if magnitude >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = format!("{value:.3}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

fn ticks() -> TickFormat {
    TickFormat::Custom(std::sync::Arc::new(short))
}

/// What the colours mean. Said in so many words, since the library guesses how much room the names
/// take, and takes a group of bars for one.
fn legend<'a>(series: impl Iterator<Item = (&'a str, LegendShape, bool)>) -> Vec<LegendEntry> {
    let entry = |(nth, (name, shape, dashed)): (usize, (&str, LegendShape, bool))| LegendEntry {
        label: plain(name),
        color: colour(nth).to_owned(),
        shape,
        dasharray: dashed.then(|| "8 4".to_owned()),
    };
    series.enumerate().map(entry).collect()
}

/// What all figures have.
fn dressed(layout: Layout, title: &str, x_label: &str, y_label: &str) -> Layout {
    let layout = if y_label.is_empty() { layout } else { layout.with_y_label(plain(y_label)) };
    layout
        .with_title(plain(title))
        .with_x_label(plain(x_label))
        .with_width(WIDTH)
        .with_height(HEIGHT)
        .with_title_size(15)
        .with_label_size(14)
        .with_tick_size(13)
        .with_body_size(13)
        .with_title_wrap(TITLE_CHARS)
        .with_legend_position(LegendPosition::OutsideBottomColumns)
        .with_legend_box(false)
}

impl Bars {
    fn plots(&self, with_tips: bool) -> (Vec<Plot>, Layout) {
        let mut bar = BarPlot::new().with_width(0.8);
        let mut tips = Vec::new();
        // Lying bars are drawn from below.
        let turned = |n: usize| (0..n).map(move |at| if self.lying { n - 1 - at } else { at });
        for at in turned(self.groups.len()) {
            let group = &self.groups[at];
            let mut values = Vec::new();
            for nth in turned(self.series.len()) {
                let (name, of) = &self.series[nth];
                let value = of.get(at).copied().unwrap_or(0.0);
                values.push((value, colour(nth)));
                tips.push(plain(&format!("{group}, {name}: {}", short((value * 1e3).round() / 1e3))));
            }
            bar = bar.with_group(plain(group), values);
        }
        if with_tips {
            bar = bar.with_tooltip_labels(tips);
        }
        if self.stacked {
            bar = bar.with_stacked();
        }
        if self.lying {
            bar = bar.with_horizontal(true);
        }
        let plots = vec![Plot::from(bar)];
        let mut layout = Layout::auto_from_plots(&plots);
        layout = if self.lying {
            layout.with_x_tick_format(ticks())
        } else {
            layout.with_y_tick_format(ticks()).with_x_label_overlap(AxisLabelOverlap::Stagger)
        };
        if self.series.len() > 1 && !self.groups.is_empty() {
            let names = self.series.iter().map(|(name, _)| (name.as_str(), LegendShape::Rect, false));
            layout = layout.with_legend_entries(legend(names));
        }
        // Names of groups speak for themselves where they stand beside the bars.
        let (x_label, y_label) =
            if self.lying { (&self.y_label, "") } else { (&self.x_label, self.y_label.as_str()) };
        let bars = (self.groups.len() * self.series.len()) as f64;
        let height = if self.lying { HEIGHT.max(160.0 + 22.0 * bars) } else { HEIGHT };
        (plots, dressed(layout, &self.title, x_label, y_label).with_height(height))
    }
}

impl Sizes {
    fn plots(&self) -> (Vec<Plot>, Layout) {
        let mut plots: Vec<Plot> = Vec::new();
        for (nth, series) in self.series.iter().enumerate() {
            let points = thinned(&series.points);
            if points.is_empty() {
                continue;
            }
            let scatter = ScatterPlot::new()
                .with_data(points.iter().map(|(size, count)| (*size as f64, *count)))
                .with_color(colour(nth))
                .with_marker(MARKERS[nth % MARKERS.len()])
                .with_size(4.0)
                .with_marker_opacity(0.75)
                .with_tooltip_labels(points.iter().map(|(size, count)| {
                    plain(&format!("{}: {} of size {size}", series.name, short(*count)))
                }));
            plots.push(scatter.into());
            if let Some(ends) = series.line {
                plots.push(LinePlot::new().with_data(ends).with_color(colour(nth)).with_dashed().into());
            }
        }
        if plots.is_empty() {
            plots.push(nothing());
        }
        // A little room around the points, or those at one would be cut in half.
        let largest = self.series.iter().flat_map(|series| &series.points).map(|(size, _)| *size).max();
        let layout = Layout::auto_from_plots(&plots)
            .with_log_scale()
            .with_tick_format(ticks())
            .with_x_axis_min(1.5)
            .with_x_axis_max(largest.unwrap_or(10).max(10) as f64 * 1.4)
            .with_y_axis_min(0.7);
        let shape = |nth: usize| LegendShape::Marker(MARKERS[nth % MARKERS.len()]);
        let names =
            self.series.iter().enumerate().map(|(nth, series)| (series.name.as_str(), shape(nth), false));
        let layout = layout.with_legend_entries(legend(names));
        (plots, dressed(layout, &self.title, &self.x_label, &self.y_label))
    }
}

/// Axes need something to stand on.
fn nothing() -> Plot {
    ScatterPlot::new().with_data(vec![(1.0, 1.0)]).with_size(0.0).into()
}

/// Where there are too many sizes to draw, those that are close to each other, on a logarithmic
/// scale, become one point with their mean count.
fn thinned(points: &[(u64, u64)]) -> Vec<(u64, f64)> {
    if points.len() <= MOST_POINTS {
        return points.iter().map(|(size, count)| (*size, *count as f64)).collect();
    }
    let largest = points.iter().map(|(size, _)| *size).max().unwrap_or(1).max(2) as f64;
    let place = |size: u64| ((size.max(1) as f64).ln() / largest.ln() * MOST_POINTS as f64) as u64;
    let mut out = Vec::new();
    for group in points.chunk_by(|a, b| place(a.0) == place(b.0)) {
        let n = group.len() as f64;
        let count: f64 = group.iter().map(|(_, count)| *count as f64).sum();
        out.push((group[group.len() / 2].0, count / n));
    }
    out
}

impl Lines {
    fn plots(&self) -> (Vec<Plot>, Layout) {
        let mut plots: Vec<Plot> = Vec::new();
        for (nth, series) in self.series.iter().enumerate() {
            let mut line = LinePlot::new()
                .with_data(series.points.iter().copied())
                .with_color(colour(nth))
                .with_stroke_width(2.0)
                .with_legend(plain(&series.name));
            if let Some(band) = &series.band {
                line = line.with_band(band.iter().map(|(low, _)| *low), band.iter().map(|(_, high)| *high));
            }
            if series.dashed {
                line = line.with_dashed();
            }
            plots.push(line.into());
        }
        if plots.is_empty() {
            plots.push(nothing());
        }
        let names = self.series.iter().map(|series| (series.name.as_str(), LegendShape::Line, series.dashed));
        let mut layout =
            Layout::auto_from_plots(&plots).with_tick_format(ticks()).with_legend_entries(legend(names));
        for (value, name) in &self.marks {
            let mark = ReferenceLine::horizontal(*value).with_color("#7f7f7f").with_label(plain(name));
            layout = layout.with_reference_line(mark);
        }
        (plots, dressed(layout, &self.title, &self.x_label, &self.y_label))
    }
}

/// Cardinality of each collection against its size, on logarithmic axes, the large ones with their
/// names (Cho et al. 2000, figure 12). Below the line at ten pages is noise.
fn collections(points: &[CollectionPoint]) -> (Vec<Plot>, Layout) {
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
        // Many collections have the same numbers; one point stands for all of them.
        let mut here: std::collections::BTreeMap<(u64, u64), (u64, &str)> = std::collections::BTreeMap::new();
        for at in order.iter().filter(|at| points[**at].kind == *kind) {
            let point = &points[*at];
            here.entry((point.cardinality, point.size)).or_insert((0, &point.name)).0 += 1;
        }
        let here: Vec<_> = here.into_iter().rev().take(MOST_POINTS).collect();
        let tip = |((cardinality, size), (n, name)): &((u64, u64), (u64, &str))| {
            let others = if *n > 1 { format!(" and {} like it", n - 1) } else { String::new() };
            plain(&format!("{}{others}: {cardinality} copies of {size} pages", label(name)))
        };
        let scatter = ScatterPlot::new()
            .with_data(here.iter().map(|((cardinality, size), _)| (*cardinality as f64, *size as f64)))
            .with_color(colour(nth))
            .with_size(4.0)
            .with_marker_opacity(0.7)
            .with_tooltip_labels(here.iter().map(tip))
            .with_legend(plain(kind));
        plots.push(scatter.into());
    }
    if !labelled.is_empty() {
        // Names are a series of their own, without marks: within one series they keep out of each
        // other's way.
        let names = ScatterPlot::new()
            .with_data(labelled.iter().map(|at| (points[*at].cardinality as f64, points[*at].size as f64)))
            .with_size(0.0)
            .with_labels(labelled.iter().map(|at| plain(&label(&points[*at].name))))
            .with_repel_labels();
        plots.push(names.into());
    }
    if plots.is_empty() {
        plots.push(nothing());
    }
    let title = match points.len() {
        0 => "No replicated collections".to_owned(),
        1 => "One replicated collection".to_owned(),
        n => format!("{n} replicated collections"),
    };
    let layout = Layout::auto_from_plots(&plots).with_log_scale().with_tick_format(ticks());
    let layout = dressed(layout, &title, "copies (cardinality)", "pages (size)").with_height(500.0);
    let layout = if points.iter().any(|point| point.size < 10) {
        let line = ReferenceLine::horizontal(10.0).with_color("#7f7f7f").with_label("noise below");
        layout.with_reference_line(line)
    } else {
        layout
    };
    (plots, layout)
}

/// A name that fits.
fn label(name: &str) -> String {
    match name.char_indices().nth(LABEL_CHARS) {
        Some((at, _)) => format!("{}…", name[..at].trim_end()),
        None => name.to_owned(),
    }
}

/// Words in which nothing is taken for a formula.
fn plain(words: &str) -> String {
    let plain: String = words.chars().filter(|c| !c.is_control()).collect();
    plain.replace('\\', "/").replace('$', "\\$")
}

#[cfg(test)]
mod tests;
