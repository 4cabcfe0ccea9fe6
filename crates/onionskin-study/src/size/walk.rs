//! Near-uniform samples by a random walk over links (Henzinger, Heydon, Mitzenmacher and Najork
//! 2000).
//!
//! Who has no list of a web can still walk through it. [`Rule::Jumping`] follows links as they
//! point; one step in seven, and wherever there is no link to follow, it jumps to a page that it
//! knows, so that no trap holds it. Pages with many links pointing at them are met more often; so a
//! moment of the walk is drawn at random, and its page is taken with probability one over its
//! visits, which makes every visited page equally likely. What is left is that pages that are hard
//! to reach may not be visited at all.
//!
//! [`Rule::Metropolis`] follows links in both directions, which an atlas allows and the web does
//! not, and goes from u to v with probability min(1, deg u / deg v). Its stationary distribution is
//! uniform over the connected part that it began in; pages without links are a part each.
//!
//! Two walks that know nothing of each other are made. What the second meets again of the first
//! tells the size of what can be reached, by capture and recapture (Chapman 1951). In an atlas the
//! truth is known, and so is how far the sample is from it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use onionskin_store::sort::{SortError, SortParams, Sorter};
use onionskin_store::{MemoryBudget, TableError};

use super::random::Dice;
use super::statistics::{Estimate, Interval, ks_limit, normal_quantile};
use onionskin_core::DocId;

use crate::graph::{GraphError, LinkGraph};

/// How a walk goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Along links, with jumps to pages that it knows.
    #[default]
    Jumping,
    /// Along links in both directions, slowly into pages with many of them.
    Metropolis,
}

/// How to walk.
#[derive(Clone, Copy, Debug)]
pub struct WalkParams {
    /// The rule.
    pub rule: Rule,
    /// Steps of both walks together.
    pub steps: u64,
    /// Pages of the sample, at most.
    pub wanted: usize,
    /// Pages that each walk begins with.
    pub seeds: usize,
    /// The seed of the walk.
    pub seed: u64,
    /// The probability with which the interval has the truth.
    pub confidence: f64,
}

/// One step in so many is a jump: Henzinger et al. use 1/7.
const JUMP_ONE_IN: u64 = 7;
/// The share of a walk that is walked before anything is taken.
const BURN_IN: f64 = 0.1;

/// What a walk brought.
#[derive(Clone, Debug, PartialEq)]
pub struct Walked {
    /// The sample: different pages, ascending.
    pub sample: Vec<DocId>,
    /// Different pages that were visited.
    pub visited: u64,
    /// Pages of each walk's sample.
    pub caught: [u64; 2],
    /// Pages that are in both.
    pub recaught: u64,
    /// How many pages can be reached; `None` when no page was caught twice.
    pub size: Option<Estimate>,
    /// Pages that there are.
    pub pages: u64,
    /// Pages without a link pointing at them.
    pub unlinked: u64,
    /// Links pointing at a page on average, in the sample and of all.
    pub mean_in_links: [f64; 2],
    /// The largest distance between the distributions of links pointing at a page, in the sample
    /// and of all.
    pub distance: f64,
    /// What a uniform sample of this size stays below 19 times in 20.
    pub distance_limit: f64,
}

/// Why there was no walk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WalkError {
    /// There is nowhere to walk.
    #[error("there are no links between the documents, so there is nowhere to walk")]
    NoLinks,
    /// The links cannot be read.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Sorting links failed.
    #[error(transparent)]
    Sort(#[from] SortError),
}

impl From<TableError> for WalkError {
    fn from(error: TableError) -> WalkError {
        WalkError::Graph(error.into())
    }
}

/// Walks over `nodes` documents and their links, which come sorted.
///
/// # Errors
///
/// When links cannot be read or sorted, or there are none.
pub fn walk(
    nodes: u32,
    links: impl IntoIterator<Item = Result<(DocId, DocId), TableError>>,
    params: &WalkParams,
    memory: MemoryBudget,
    work_dir: &std::path::Path,
) -> Result<Walked, WalkError> {
    let mut in_links = vec![0u32; nodes as usize];
    let mut count = |dest: DocId| {
        if let Some(n) = in_links.get_mut(dest.index()) {
            *n = n.saturating_add(1);
        }
    };
    let limit = memory.share(1, 2).bytes();
    let mut graph = match params.rule {
        Rule::Jumping => {
            let seen = links.into_iter().inspect(|link| {
                if let Ok((_, dest)) = link {
                    count(*dest);
                }
            });
            LinkGraph::build(nodes, seen, limit, work_dir)?
        }
        Rule::Metropolis => {
            let params = SortParams::new(work_dir, memory.share(1, 4)).dedup();
            let mut sorter = Sorter::<(DocId, DocId)>::new(params)?;
            for link in links {
                let (src, dest) = link?;
                count(dest);
                // A page that links to itself goes nowhere.
                if src != dest {
                    sorter.push((src, dest))?;
                    sorter.push((dest, src))?;
                }
            }
            let mut failure = None;
            let sorted = sorter.finish()?.map_while(|link| link.map_err(|error| failure = Some(error)).ok());
            let graph = LinkGraph::build(nodes, sorted.map(Ok::<_, GraphError>), limit, work_dir)?;
            if let Some(error) = failure {
                return Err(error.into());
            }
            graph
        }
    };
    if graph.links() == 0 {
        return Err(WalkError::NoLinks);
    }
    let mut dice = Dice::new(params.seed);
    let mut visited = BTreeSet::new();
    let mut caught: [BTreeSet<DocId>; 2] = Default::default();
    for caught in &mut caught {
        let mut dice = Dice::new(dice.next_u64());
        let seen = match params.rule {
            Rule::Jumping => jumping(&mut graph, params, &mut dice)?,
            Rule::Metropolis => metropolis(&mut graph, params, &mut dice)?,
        };
        *caught = seen.taken.into_iter().collect();
        visited.extend(seen.visited);
    }
    Ok(judge(&caught, visited.len() as u64, &in_links, params))
}

/// What one walk saw.
struct Seen {
    visited: Vec<DocId>,
    taken: Vec<DocId>,
}

/// A page that a walk can begin with. Pages without links are passed over, as far as there are
/// others.
fn start(graph: &LinkGraph, dice: &mut Dice) -> Result<DocId, GraphError> {
    let mut page = DocId::MIN;
    for _ in 0..10_000 {
        page = DocId::at(dice.index(graph.nodes() as usize));
        if graph.degree(page)? > 0 {
            break;
        }
    }
    Ok(page)
}

fn jumping(graph: &mut LinkGraph, params: &WalkParams, dice: &mut Dice) -> Result<Seen, GraphError> {
    let mut known: Vec<DocId> = Vec::new();
    let mut visits: HashMap<DocId, u32> = HashMap::new();
    for _ in 0..params.seeds.max(1) {
        let page = start(graph, dice)?;
        if visits.insert(page, 0).is_none() {
            known.push(page);
        }
    }
    let steps = params.steps / 2;
    let mut walked = Vec::new();
    let mut at = known[0];
    for step in 0..steps {
        let targets = graph.targets(at)?;
        at = if targets.is_empty() || dice.below(JUMP_ONE_IN) == 0 {
            known[dice.index(known.len())]
        } else {
            targets[dice.index(targets.len())]
        };
        let n = visits.entry(at).or_insert_with(|| {
            known.push(at);
            0
        });
        *n = n.saturating_add(1);
        if step as f64 >= BURN_IN * steps as f64 {
            walked.push(at);
        }
    }
    // Moments of the walk at random; the page of each is taken with probability one over its
    // visits. Those that were taken before are passed over, and a walk over few pages has to end
    // some time.
    let wanted = params.wanted.div_ceil(2);
    let mut taken = BTreeSet::new();
    for _ in 0..walked.len().saturating_mul(20) {
        if taken.len() >= wanted {
            break;
        }
        let page = walked[dice.index(walked.len())];
        let visits = visits.get(&page).copied().unwrap_or(1).max(1);
        if dice.below(u64::from(visits)) == 0 {
            taken.insert(page);
        }
    }
    let taken = taken.into_iter().collect();
    Ok(Seen { visited: known, taken })
}

fn metropolis(graph: &mut LinkGraph, params: &WalkParams, dice: &mut Dice) -> Result<Seen, GraphError> {
    let steps = params.steps / 2;
    let wanted = params.wanted.div_ceil(2).max(1) as u64;
    let first = (BURN_IN * steps as f64) as u64;
    // As far apart as the walk allows, so that one page of the sample knows little of the next.
    let apart = ((steps - first) / wanted).max(1);
    let mut visited = BTreeSet::new();
    let mut taken = Vec::new();
    let mut at = start(graph, dice)?;
    for step in 0..steps {
        let targets = graph.targets(at)?;
        if !targets.is_empty() {
            let (here, next) = (targets.len() as u64, targets[dice.index(targets.len())]);
            let there = u64::from(graph.degree(next)?.max(1));
            if dice.below(there) < here {
                at = next;
            }
        }
        visited.insert(at);
        if step >= first && (step - first).is_multiple_of(apart) && (taken.len() as u64) < wanted {
            taken.push(at);
        }
    }
    Ok(Seen { visited: visited.into_iter().collect(), taken })
}

/// Compares the sample with all pages.
fn judge(caught: &[BTreeSet<DocId>; 2], visited: u64, in_links: &[u32], params: &WalkParams) -> Walked {
    let sample: Vec<DocId> = caught[0].union(&caught[1]).copied().collect();
    let recaught = caught[0].intersection(&caught[1]).count() as u64;
    let counts = [caught[0].len() as u64, caught[1].len() as u64];
    // Pages by links pointing at them: of all, and of the sample.
    let mut by_links: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    for n in in_links {
        by_links.entry(*n).or_default()[0] += 1;
    }
    let links_of = |page: &DocId| in_links.get(page.index()).copied().unwrap_or(0);
    for page in &sample {
        by_links.entry(links_of(page)).or_default()[1] += 1;
    }
    let (pages, taken) = (in_links.len().max(1) as f64, sample.len().max(1) as f64);
    let (mut distance, mut below) = (0f64, [0.0; 2]);
    for [all, in_sample] in by_links.values() {
        below[0] += *all as f64 / pages;
        below[1] += *in_sample as f64 / taken;
        distance = distance.max((below[0] - below[1]).abs());
    }
    let mean = |sum: u64, n: f64| sum as f64 / n;
    Walked {
        visited,
        caught: counts,
        recaught,
        size: recapture(counts, recaught, sample.len() as u64, params.confidence),
        pages: in_links.len() as u64,
        unlinked: in_links.iter().filter(|n| **n == 0).count() as u64,
        mean_in_links: [
            mean(sample.iter().map(|page| u64::from(links_of(page))).sum(), taken),
            mean(in_links.iter().map(|n| u64::from(*n)).sum(), pages),
        ],
        distance,
        // The whole is so large that only the sample varies.
        distance_limit: ks_limit(sample.len(), usize::MAX >> 12),
        sample,
    }
}

/// Chapman's estimate of a population of which `a` and `b` were caught and `both` twice, with an
/// interval whose lower end is not below what was seen (Chao 1987).
pub fn recapture([a, b]: [u64; 2], both: u64, seen: u64, confidence: f64) -> Option<Estimate> {
    if both == 0 {
        return None;
    }
    let [a, b, both, seen] = [a, b, both, seen].map(|n| n as f64);
    let value = (a + 1.0) * (b + 1.0) / (both + 1.0) - 1.0;
    let variance = (a + 1.0) * (b + 1.0) * (a - both) * (b - both) / ((both + 1.0).powi(2) * (both + 2.0));
    let unseen = (value - seen).max(0.0);
    if unseen <= 0.0 {
        return Some(Estimate { value, interval: Interval { low: value.min(seen), high: value.max(seen) } });
    }
    let z = normal_quantile(0.5 + confidence / 2.0);
    let factor = (z * (1.0 + variance / (unseen * unseen)).ln().sqrt()).exp();
    Some(Estimate { value, interval: Interval { low: seen + unseen / factor, high: seen + unseen * factor } })
}

#[cfg(test)]
mod tests;
