//! The curve of a filter as a picture: places on a sheet, which the template draws.

use std::fmt::Write;

use onionskin_core::FeatureFilter;

/// How the chance is drawn: Broder 2000 has both, figure 1 and figure 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scale {
    #[default]
    Linear,
    Log,
}

impl Scale {
    /// `None` for an unknown name.
    pub(crate) fn parse(name: &str) -> Option<Scale> {
        match name {
            "linear" => Some(Scale::Linear),
            "log" => Some(Scale::Log),
            _ => None,
        }
    }

    pub(crate) fn is_log(self) -> bool {
        self == Scale::Log
    }
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub at: String,
    pub label: String,
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    pub path: String,
    pub x_ticks: Vec<Tick>,
    pub y_ticks: Vec<Tick>,
}

pub(crate) const WIDTH: f64 = 640.0;
pub(crate) const HEIGHT: f64 = 380.0;
pub(crate) const LEFT: f64 = 58.0;
pub(crate) const RIGHT: f64 = 624.0;
pub(crate) const TOP: f64 = 14.0;
pub(crate) const BOTTOM: f64 = 334.0;

/// Where the logarithmic scale ends: below, a web has no pairs left to be accepted by mistake.
const DECADES: i32 = 12;
const STEPS: u32 = 250;

fn x(resemblance: f64) -> f64 {
    LEFT + resemblance * (RIGHT - LEFT)
}

/// From the bottom, 0, to the top, 1. `None` below the sheet.
fn height(scale: Scale, chance: f64) -> Option<f64> {
    match scale {
        Scale::Linear => Some(chance),
        Scale::Log => {
            let height = 1.0 + chance.log10() / f64::from(DECADES);
            (height >= 0.0).then_some(height)
        }
    }
}

fn y(height: f64) -> f64 {
    BOTTOM - height * (BOTTOM - TOP)
}

/// The path of a filter's curve.
pub(crate) fn path(filter: FeatureFilter, scale: Scale) -> String {
    let mut path = String::new();
    for i in 0..=STEPS {
        let resemblance = f64::from(i) / f64::from(STEPS);
        if let Some(height) = height(scale, filter.acceptance(resemblance)) {
            let start = if path.is_empty() { 'M' } else { 'L' };
            // Writing to a string does not fail.
            let _ = write!(path, "{start}{:.1} {:.1}", x(resemblance), y(height));
        }
    }
    path
}

impl Curve {
    pub(crate) fn new(filter: FeatureFilter, scale: Scale) -> Curve {
        let tick = |at: f64, label: String| Tick { at: format!("{at:.1}"), label };
        let fifths = (0..=5).map(|i| f64::from(i) / 5.0);
        let y_ticks = match scale {
            Scale::Linear => fifths.clone().map(|share| tick(y(share), format!("{share:.1}"))).collect(),
            Scale::Log => (0..=DECADES)
                .step_by(3)
                .map(|decade| {
                    let label = if decade == 0 { "1".to_owned() } else { format!("1e-{decade}") };
                    tick(y(1.0 - f64::from(decade) / f64::from(DECADES)), label)
                })
                .collect(),
        };
        Curve {
            path: path(filter, scale),
            x_ticks: fifths.map(|share| tick(x(share), format!("{share:.1}"))).collect(),
            y_ticks,
        }
    }
}

/// A chance for people: percent while that says something, powers of ten below.
pub(crate) fn chance(value: f64) -> String {
    match value {
        1.0 => "100 %".to_owned(),
        value if value > 0.9999 => format!("100 % − {:.1e}", 1.0 - value),
        value if value >= 0.001 => format!("{:.2} %", 100.0 * value),
        0.0 => "0".to_owned(),
        value => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_from_corner_to_corner_and_never_down() {
        for (k, s, r) in [(6, 14, 2), (1, 1, 1), (255, 16, 255), (16, 255, 1)] {
            let filter = FeatureFilter::new(k, s, r).unwrap();
            for scale in [Scale::Linear, Scale::Log] {
                let path = path(filter, scale);
                let places: Vec<(f64, f64)> = path[1..]
                    .split('L')
                    .map(|place| {
                        let (x, y) = place.split_once(' ').unwrap();
                        (x.parse().unwrap(), y.parse().unwrap())
                    })
                    .collect();
                assert!(places.len() > 1, "{filter} {scale:?}");
                assert_eq!(places.last(), Some(&(RIGHT, TOP)), "{filter} {scale:?}");
                assert!(places.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 >= two[1].1 - 1e-9));
                assert!(places.iter().all(|(_, y)| (TOP..=BOTTOM).contains(y)), "{filter} {scale:?}");
                if scale == Scale::Linear {
                    assert_eq!(places[0], (LEFT, BOTTOM));
                }
            }
        }
    }

    #[test]
    fn the_half_point_is_half_way_up() {
        let filter = FeatureFilter::new(6, 14, 2).unwrap();
        let at = y(height(Scale::Linear, filter.acceptance(filter.half_point())).unwrap());
        assert!((at - (TOP + BOTTOM) / 2.0).abs() < 0.1, "{at}");
        // Figure 2 of the paper: a pair of resemblance 0.1 is accepted with chance C(6,2)·10^-28,
        // far below the sheet.
        assert_eq!(height(Scale::Log, filter.acceptance(0.1)), None);
    }

    #[test]
    fn chances_for_people() {
        for (value, told) in
            [(1.0, "100 %"), (0.5, "50.00 %"), (0.0, "0"), (1e-9, "1.0e-9"), (0.99995, "100 % − 5.0e-5")]
        {
            assert_eq!(chance(value), told);
        }
    }
}
