//! What is known of a web and the copies in it: the numbers that a report tells.

use crate::figure::CollectionPoint;
use crate::graph::Part;
use crate::growth::Reference;
use crate::replication::{LevelCounts, SiteCounts};

/// Everything a report tells of one web.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// What the atlas is called.
    pub name: String,
    /// The program that made it.
    pub tool: String,
    /// The recipe of its scan.
    pub recipe: String,
    /// Inputs.
    pub inputs: u64,
    /// Records of them that could not be read.
    pub bad_records: u64,
    /// Documents.
    pub documents: u64,
    /// Documents with a text.
    pub texts: u64,
    /// Bytes of all documents.
    pub bytes: u64,
    /// Sites.
    pub sites: u64,
    /// Links between documents.
    pub links: u64,
    /// Levels of likeness, from the strictest on.
    pub levels: Vec<Level>,
    /// The level of the search that later stages use: the one that is told of where only one is.
    pub main: usize,
    /// Near-duplicates by shingle paragraphs, exact copies included: percentage, documents. From
    /// the highest percentage on.
    pub near: Vec<(u32, u64)>,
    /// How the web hangs together; `None` without links.
    pub parts: Option<WebParts>,
    /// Sites by how much of them is copied at the main level, most duplicates first.
    pub copied_sites: Vec<CopiedSite>,
    /// How many sites have copied documents up to a quarter, a half and so on: none, up to 25, 50,
    /// 75, less than 100, 100 %.
    pub site_shares: [u64; 6],
    /// Replicated collections; `None` when they were not looked for.
    pub collections: Option<Collections>,
    /// What the last search says of its own recall, with the number of documents it was measured
    /// on.
    pub recall: Option<(u64, [f64; 3])>,
    /// An earlier web whose growth is a yardstick.
    pub reference: Option<(String, Reference)>,
    /// What the stages cost.
    pub costs: Vec<Cost>,
    /// Tables: name, rows, bytes.
    pub tables: Vec<(String, u64, u64)>,
}

impl Findings {
    /// The level that later stages use.
    pub fn main_level(&self) -> Option<&Level> {
        self.levels.get(self.main)
    }
}

/// A level of likeness and what is copied at it.
#[derive(Clone, Debug)]
pub struct Level {
    /// Its name in the atlas.
    pub name: String,
    /// What makes two documents alike at it, for people.
    pub title: String,
    /// The counts.
    pub counts: LevelCounts,
    /// Address and title of the originals of the largest clusters.
    pub largest: Vec<(Option<String>, Option<String>)>,
}

impl Level {
    /// The name and the rank of a level for people, from the name it has in an atlas.
    pub fn spell(name: &str) -> (u32, String) {
        let words: Vec<&str> = name.split('-').collect();
        let hundredths = |text: &str| text.replace('_', ".");
        match words.as_slice() {
            ["exact"] => (0, "the same text".to_owned()),
            ["paragraphs", "100"] => (1, "the same paragraphs".to_owned()),
            ["overlap", chunking, n] => {
                let chunks = match *chunking {
                    "l4" => "four lines".to_owned(),
                    "l2" => "two lines".to_owned(),
                    other => other.to_owned(),
                };
                let rank = if *chunking == "l4" { 2 } else { 3 };
                (rank, format!("{n} chunks of {chunks}"))
            }
            ["resemblance", _, percent] => (4, format!("resemblance {}\u{a0}%", hundredths(percent))),
            ["paragraphs", percent] => (5, format!("{}\u{a0}% of paragraphs", hundredths(percent))),
            _ => (9, name.to_owned()),
        }
    }
}

/// How a web hangs together.
#[derive(Clone, Debug, Default)]
pub struct WebParts {
    /// Documents of each part of the bow tie.
    pub documents: [u64; Part::ALL.len()],
    /// Strongly connected components.
    pub strong_components: u64,
    /// Documents that hang together with the core when links count both ways.
    pub largest_weak: u64,
    /// Seeds that were given; `None` when the crawl began everywhere in the core.
    pub seeds: Option<u64>,
    /// Documents that the crawl reached, with a text and without.
    pub reached: u64,
    /// Documents reached at each depth.
    pub by_depth: Vec<u64>,
}

/// A site in the list of those that are copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedSite {
    /// Its host.
    pub host: String,
    /// The counts.
    pub counts: SiteCounts,
}

/// Replicated collections.
#[derive(Clone, Debug, Default)]
pub struct Collections {
    /// How clusters were grown together.
    pub merge: String,
    /// Collections that are no noise.
    pub groups: u64,
    /// Collections of fewer than ten pages.
    pub noise: u64,
    /// Copies outside the principals, noise left out.
    pub duplicate_pages: u64,
    /// Their bytes.
    pub duplicate_bytes: u64,
    /// Collections by kind, noise left out.
    pub kinds: Vec<(String, u64)>,
    /// The most replicated ones, noise left out.
    pub top: Vec<CollectionRow>,
    /// All, for the scatter.
    pub points: Vec<CollectionPoint>,
    /// Hosts that are other names of hosts: alias, principal, pages.
    pub aliases: Vec<(String, String, u64)>,
    /// Rewritings of addresses.
    pub rules: Vec<RuleRow>,
}

/// A collection in the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectionRow {
    /// What it is called.
    pub name: String,
    /// The root of the principal copy.
    pub root: Option<String>,
    /// Why it is copied.
    pub kind: String,
    /// Copies, the principal counted.
    pub replicas: u64,
    /// Pages.
    pub size: u64,
    /// Sites.
    pub sites: u64,
    /// Pages outside the principal.
    pub duplicate_pages: u64,
}

/// A rewriting of addresses under which pages stay the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleRow {
    /// Where it holds; everywhere when there is none.
    pub host: Option<String>,
    /// What is done.
    pub kind: String,
    /// To what.
    pub pattern: String,
    /// Pairs of addresses that it maps to each other and that are copies.
    pub support: u64,
    /// Of how many.
    pub checked: u64,
    /// An address.
    pub from: String,
    /// And what becomes of it.
    pub to: String,
}

/// What a run of a stage has cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// The stage.
    pub stage: String,
    /// What it did, where it can do several things.
    pub of: String,
    /// Seconds.
    pub seconds: f64,
    /// CPU seconds.
    pub cpu_seconds: f64,
    /// The most memory that was resident.
    pub peak_memory: Option<u64>,
    /// Whether an earlier run had done a part of it.
    pub resumed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names_for_people() {
        let spelled = [
            "exact",
            "paragraphs-100",
            "overlap-l4-15",
            "overlap-l2-25",
            "overlap-w4-30",
            "resemblance-w4-97_5",
            "paragraphs-50",
            "something",
        ]
        .map(|name| Level::spell(name).1);
        assert_eq!(
            spelled,
            [
                "the same text",
                "the same paragraphs",
                "15 chunks of four lines",
                "25 chunks of two lines",
                "30 chunks of w4",
                "resemblance 97.5\u{a0}%",
                "50\u{a0}% of paragraphs",
                "something"
            ]
        );
    }
}
