//! Which recipe serves what people want to do.

use anyhow::{Context, bail};
use clap::ValueEnum;
use onionskin_core::feature::{Target, choose};
use onionskin_core::{FeatureFilter, Minwise, Recipe};

use crate::args::PlanArgs;
use crate::output::{bytes, grouped, seconds};

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
    /// The cheapest of the recipes with a name that serves, unless features of their own or minima
    /// of one permutation are asked for.
    pub fn new(args: &PlanArgs, candidates: &[Candidate]) -> anyhow::Result<Advice> {
        let (recipe, filter, reason) = match wanted_filter(args)? {
            Some(filter) => {
                let recipe = with_filter(&base(args)?, Some(filter), args.one_permutation);
                (recipe, filter, "its features are those of the filter".to_owned())
            }
            None if args.one_permutation => {
                let recipe = with_filter(&base(args)?, None, true);
                let filter = filter_of(&recipe, args).context("the recipe keeps no minima")?;
                ensure_found(&recipe, filter, args)?;
                (recipe, filter, "minima of one permutation were asked for".to_owned())
            }
            None => {
                let Some(chosen) = cheapest(candidates) else {
                    let recipe = base(args)?;
                    let filter = filter_of(&recipe, args).context("the recipe keeps no minima")?;
                    ensure_found(&recipe, filter, args)?;
                    bail!("no recipe with a name serves\nhint: choose the filter with --filter");
                };
                (chosen.recipe.clone(), chosen.filter, reason(chosen, candidates, args))
            }
        };
        let commands = args.goal.commands(&recipe, args.threshold);
        Ok(Advice { recipe, filter, reason, commands })
    }
}

/// A recipe with a name, what it costs, and whether it serves.
pub(super) struct Candidate {
    pub name: &'static str,
    pub about: &'static str,
    pub recipe: Recipe,
    /// The filter that makes the candidates with it.
    pub filter: FeatureFilter,
    pub disk_bytes: u64,
    /// CPU seconds for all documents, where that was measured.
    pub cpu_seconds: Option<f64>,
    pub text_bytes_per_cpu_second: Option<f64>,
    /// Why it does not serve.
    pub lacks: Option<String>,
}

/// The filter that makes the candidates with a recipe: out of its minima, else its own.
pub(super) fn filter_of(recipe: &Recipe, args: &PlanArgs) -> Option<FeatureFilter> {
    if !recipe.keeps_sketches() {
        return recipe.scheme().filter();
    }
    FeatureFilter::for_threshold(recipe.scheme().sketch_len(), args.threshold, args.miss.min(MISS))
}

/// Why a recipe does not serve, if it does not.
pub(super) fn lacks(recipe: &Recipe, filter: FeatureFilter, args: &PlanArgs) -> Option<String> {
    let minima = recipe.scheme().sketch_len();
    let miss = filter.miss(args.threshold);
    if miss > args.miss {
        return Some(format!("misses {:.1} % of pairs at {}", 100.0 * miss, args.threshold));
    }
    // With fewer shingles than minima, minima of one permutation meet up to 0.025 less often.
    if recipe.minwise() == Minwise::One && args.mean_words < minima as u64 {
        return Some(format!("is for documents of more than {minima} words"));
    }
    args.goal.lacks(recipe)
}

/// What costs least, disk and CPU together: each counts as a multiple of what the cheapest takes.
/// Differences of a twentieth are within what a measurement tells; the first in the list wins then.
fn cheapest(candidates: &[Candidate]) -> Option<&Candidate> {
    const NOISE: f64 = 0.95;
    let fit = || candidates.iter().filter(|candidate| candidate.lacks.is_none());
    let least = |cost: fn(&Candidate) -> f64| fit().map(cost).fold(f64::INFINITY, f64::min);
    let disk: fn(&Candidate) -> f64 = |candidate| candidate.disk_bytes.max(1) as f64;
    let cpu: fn(&Candidate) -> f64 = |candidate| candidate.cpu_seconds.unwrap_or(1.0);
    let (least_disk, least_cpu) = (least(disk), least(cpu));
    let cost = |candidate: &Candidate| disk(candidate) / least_disk + cpu(candidate) / least_cpu;
    fit().fold(None, |best: Option<&Candidate>, candidate| match best {
        Some(best) if cost(candidate) >= cost(best) * NOISE => Some(best),
        _ => Some(candidate),
    })
}

/// What speaks for it, with the numbers of all.
fn reason(chosen: &Candidate, candidates: &[Candidate], args: &PlanArgs) -> String {
    let costs = |candidate: &Candidate| {
        let cpu = candidate.cpu_seconds.map(|time| format!(" and {} of CPU", seconds(time)));
        format!("{}{}", bytes(candidate.disk_bytes), cpu.unwrap_or_default())
    };
    let others = candidates.iter().filter(|candidate| candidate.name != chosen.name);
    let others: Vec<String> = others
        .map(|other| match &other.lacks {
            Some(lacks) => format!("{} {lacks}", other.name),
            None => format!("{} takes {}", other.name, costs(other)),
        })
        .collect();
    let made = match chosen.recipe.keeps_sketches() {
        true => format!("a search makes it out of {} minima", chosen.recipe.scheme().sketch_len()),
        false => "it is that of the recipe".to_owned(),
    };
    format!(
        "{} is the cheapest that serves: {} for {} documents; {}. The filter {} misses {:.2} % of pairs at {}: {made}; {}",
        chosen.name,
        costs(chosen),
        grouped(args.documents),
        others.join(", "),
        chosen.filter,
        100.0 * chosen.filter.miss(args.threshold),
        args.threshold,
        args.goal.reason()
    )
}

fn base(args: &PlanArgs) -> anyhow::Result<Recipe> {
    Ok(match args.goal {
        Goal::Papers => Recipe::PAPERS.parse()?,
        _ => Recipe::default(),
    })
}

fn ensure_found(recipe: &Recipe, filter: FeatureFilter, args: &PlanArgs) -> anyhow::Result<()> {
    let (miss, minima) = (filter.miss(args.threshold), recipe.scheme().sketch_len());
    if miss > args.miss {
        bail!(
            "{minima} minima miss at least {:.2} % of pairs at {}\nhint: raise --miss or --threshold",
            100.0 * miss,
            args.threshold
        );
    }
    Ok(())
}

/// The filter that was asked for: itself, or by what it may accept from afar.
pub(super) fn wanted_filter(args: &PlanArgs) -> anyhow::Result<Option<FeatureFilter>> {
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
    /// What a recipe does not keep that is needed.
    fn lacks(self, recipe: &Recipe) -> Option<String> {
        match self {
            Goal::Dedup | Goal::Mirrors => None,
            Goal::Papers => {
                let papers: Recipe = Recipe::PAPERS.parse().ok()?;
                let keeps = |chunking| recipe.kept_chunks().contains(chunking);
                (!papers.kept_chunks().iter().all(keeps)).then(|| "keeps not all chunks".to_owned())
            }
            Goal::Seen => (!recipe.keeps_sketches()).then(|| "keeps no minima".to_owned()),
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Goal::Dedup => "pairs that pass are verified on their texts",
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
