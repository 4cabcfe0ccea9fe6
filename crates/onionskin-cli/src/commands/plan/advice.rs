//! Which recipe serves what people want to do.

use anyhow::{Context, bail};
use clap::ValueEnum;
use onionskin_core::feature::{Target, choose};
use onionskin_core::{FeatureFilter, Recipe};

use crate::args::PlanArgs;

/// What the copies are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Goal {
    /// A corpus or archive without near-duplicates.
    Dedup,
    /// Mirrored collections, and filter files for a crawler.
    Mirrors,
    /// The searches of the papers: lines, paragraphs, exact joins.
    Papers,
    /// An index that says whether a document was seen before.
    Seen,
}

/// A recipe, and what speaks for it.
pub(super) struct Advice {
    pub recipe: Recipe,
    /// The filter that makes the candidates with it.
    pub filter: FeatureFilter,
    pub reason: String,
    /// What to type, a command a line.
    pub commands: Vec<String>,
}

/// The share of pairs at the threshold that a search misses when it chooses the filter itself.
const MISS: f64 = 0.005;

impl Advice {
    pub fn new(args: &PlanArgs) -> anyhow::Result<Advice> {
        let base: Recipe = match args.goal {
            Goal::Papers => Recipe::PAPERS.parse()?,
            _ => Recipe::default(),
        };
        let minima = base.scheme().sketch_len();
        let (own, filter, reason) = match wanted_filter(args)? {
            Some(filter) => (Some(filter), filter, "its features are those of the filter".to_owned()),
            None => {
                let filter = FeatureFilter::for_threshold(minima, args.threshold, args.miss.min(MISS));
                let filter = filter.context("the recipe keeps no minima")?;
                let (threshold, miss) = (args.threshold, filter.miss(args.threshold));
                if miss > args.miss {
                    bail!(
                        "{minima} minima miss at least {:.2} % of pairs at {threshold}\nhint: raise --miss or --threshold",
                        100.0 * miss
                    );
                }
                let goal = args.goal.reason();
                (
                    None,
                    filter,
                    format!("a search makes the filter for {threshold} out of {minima} minima, and {goal}"),
                )
            }
        };
        let recipe = with_filter(&base, own, args.one_permutation);
        let commands = args.goal.commands(&recipe, args.threshold);
        Ok(Advice { recipe, filter, reason, commands })
    }
}

/// The filter that was asked for: itself, or by what it may accept from afar.
fn wanted_filter(args: &PlanArgs) -> anyhow::Result<Option<FeatureFilter>> {
    match (args.filter, args.far, args.false_accept) {
        (Some(filter), ..) => Ok(Some(filter)),
        (None, None, None) if 0.0 < args.threshold && args.threshold < 1.0 => Ok(None),
        _ => Ok(Some(choose(target(args))?)),
    }
}

fn target(args: &PlanArgs) -> Target {
    Target {
        threshold: args.threshold,
        miss: args.miss,
        far: args.far.unwrap_or(args.threshold * 2.0 / 3.0),
        false_accept: args.false_accept.unwrap_or(0.01),
    }
}

impl Goal {
    fn reason(self) -> &'static str {
        match self {
            Goal::Dedup => "verifies the pairs that pass on their texts",
            Goal::Mirrors => "collections are made of clusters and links",
            Goal::Papers => {
                "all chunks are kept at once, where the default reads the inputs again for each search"
            }
            Goal::Seen => "an index takes its features from the same minima",
        }
    }

    fn commands(self, recipe: &Recipe, threshold: f64) -> Vec<String> {
        let named = name_of(recipe);
        let recipe = match named {
            Some("default") => String::new(),
            Some(name) => format!(" --recipe {name}"),
            None => format!(" --recipe {recipe}"),
        };
        let scan = format!("onionskin scan INPUT -o ATLAS{recipe}");
        let run = format!("onionskin run INPUT -o ATLAS{recipe} --threshold {threshold}");
        match self {
            Goal::Dedup => vec![run, "onionskin dedup ATLAS -o CORPUS".to_owned()],
            Goal::Mirrors => vec![run, "onionskin avoid ATLAS".to_owned()],
            Goal::Papers => vec![scan, "onionskin similar ATLAS --preset sgm98-4".to_owned()],
            Goal::Seen => vec![scan, "onionskin seen add INDEX --atlas ATLAS".to_owned()],
        }
    }
}

/// The name of a recipe that has one.
pub(super) fn name_of(recipe: &Recipe) -> Option<&'static str> {
    let spelled = recipe.to_string();
    Recipe::NAMED.into_iter().find(|(_, spelling, _)| *spelling == spelled).map(|(name, ..)| name)
}

/// A recipe with another filter, out of one permutation or many.
fn with_filter(recipe: &Recipe, filter: Option<FeatureFilter>, one_permutation: bool) -> Recipe {
    let Some(own) = recipe.scheme().filter() else { return recipe.clone() };
    let filter = filter.unwrap_or(own);
    let filter = format!("{filter}{}", if one_permutation { "-one" } else { "" });
    recipe.to_string().replacen(&own.to_string(), &filter, 1).parse().unwrap_or_else(|_| recipe.clone())
}
