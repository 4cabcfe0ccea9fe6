//! What a web shall contain.
//!
//! A [`WebSpec`] is plain data with public fields: start from a preset, change what the test is
//! about, hand it to [`crate::Web::new`], which checks it. Everything is counted in pages of the
//! finished web; what the planted parts do not use is filled with ordinary sites, so that a web has
//! exactly the pages that were asked for.

use crate::{math, vocab::Script};

/// Why a specification cannot be made into a web.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No preset has this name.
    #[error("unknown preset {name:?}; known: {}", known_presets())]
    UnknownPreset {
        /// The name that was asked for.
        name: String,
    },
    /// The planted parts need more pages than the web has.
    #[error("{pages} pages are too few: the planted parts alone have {planted}")]
    TooFewPages {
        /// Pages asked for.
        pages: u64,
        /// Pages that mirrors, aliases, calendars and template sites take.
        planted: u64,
    },
    /// More pages than numbers for them.
    #[error("{pages} pages are too many: at most {most}")]
    TooManyPages {
        /// Pages asked for.
        pages: u64,
        /// The most there can be.
        most: u64,
    },
    /// A number outside its range.
    #[error("{what} is {value}, outside {low} to {high}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
        /// The least allowed.
        low: f64,
        /// The most allowed.
        high: f64,
    },
}

fn known_presets() -> String {
    Preset::ALL.map(Preset::as_str).join(", ")
}

/// A web by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// About 1,500 pages with every kind of plant in it.
    Demo,
    /// Cho, Shivakumar and Garcia-Molina 2000, section 4: 25 targets, five to ten mirrors each,
    /// unrelated pages.
    Mirrors,
    /// Flat documents without links; one in five is a near copy at a known resemblance.
    Text,
    /// Flat documents of a line or two, for very large numbers of them.
    Short,
    /// Flat documents, each four fifths boilerplate shared with all others.
    Template,
    /// Flat documents in clusters whose sizes follow Zipf's law.
    Zipf,
    /// Linked sites of which a part cannot be reached from the rest, with more duplicates there
    /// (PBZ06).
    Disconnected,
    /// Chains of near copies whose ends share nothing.
    Chains,
    /// Half of the documents are near copies of one and the same document.
    Crowd,
    /// Empty and one-word documents, and hardly anything else.
    Blank,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Preset; 10] = [
        Preset::Demo,
        Preset::Mirrors,
        Preset::Text,
        Preset::Short,
        Preset::Template,
        Preset::Zipf,
        Preset::Disconnected,
        Preset::Chains,
        Preset::Crowd,
        Preset::Blank,
    ];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Preset::Demo => "demo",
            Preset::Mirrors => "mirrors",
            Preset::Text => "text",
            Preset::Short => "short",
            Preset::Template => "template",
            Preset::Zipf => "zipf",
            Preset::Disconnected => "disconnected",
            Preset::Chains => "chains",
            Preset::Crowd => "crowd",
            Preset::Blank => "blank",
        }
    }

    /// One line about it.
    pub fn about(self) -> &'static str {
        match self {
            Preset::Demo => "a small web with every kind of plant in it",
            Preset::Mirrors => {
                "25 targets of 50 to 1,000 pages with five to ten mirrors each, and unrelated pages"
            }
            Preset::Text => "flat documents, one in five a near copy at a known resemblance",
            Preset::Short => "flat documents of a line or two",
            Preset::Template => "flat documents, four fifths of each the same boilerplate",
            Preset::Zipf => "flat documents in clusters of Zipf sizes",
            Preset::Disconnected => "sites of which a part is unreachable, with more duplicates there",
            Preset::Chains => "chains of near copies whose ends share nothing",
            Preset::Crowd => "half of the documents near copies of a single one",
            Preset::Blank => "empty and one-word documents",
        }
    }

    /// The number of pages it was made for.
    pub fn usual_pages(self) -> u64 {
        match self {
            Preset::Demo => 1_500,
            Preset::Mirrors => 50_000,
            Preset::Short => 20_000_000,
            Preset::Blank => 1_000_000,
            _ => 100_000,
        }
    }
}

impl std::str::FromStr for Preset {
    type Err = SpecError;

    fn from_str(name: &str) -> Result<Preset, SpecError> {
        Preset::ALL
            .into_iter()
            .find(|preset| preset.as_str() == name)
            .ok_or_else(|| SpecError::UnknownPreset { name: name.to_owned() })
    }
}

/// How long texts are: log-normal, cut off at both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lengths {
    /// The mean number of words, before cutting.
    pub mean: f64,
    /// The standard deviation of the logarithm; 0 makes all texts equally long.
    pub sigma: f64,
    /// The least number of words.
    pub least: u32,
    /// The greatest number of words.
    pub most: u32,
}

/// What the members of a cluster are to its first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClusterKind {
    /// The same text.
    Exact,
    /// An edit of it whose resemblance lies in `low..=high`, drawn evenly.
    Near {
        /// The least resemblance aimed at.
        low: f64,
        /// The greatest resemblance aimed at.
        high: f64,
    },
    /// An edit of the member before; ten steps away nothing is shared.
    Chain,
}

/// How many documents a cluster has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClusterSize {
    /// Always so many, the first included.
    Fixed(u32),
    /// Two and more, with frequency `size^-exponent`.
    Zipf {
        /// The exponent; 2 to 3 on the web.
        exponent: f64,
        /// The largest size.
        most: u32,
    },
    /// One cluster for the whole share.
    One,
}

/// A share of the ordinary documents that stands in clusters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterSpec {
    /// What members are to the first.
    pub kind: ClusterKind,
    /// Documents in such clusters, as a share of the pool.
    pub share: f64,
    /// Documents in each.
    pub size: ClusterSize,
}

/// What ordinary documents are like. Shares are of the pool's documents; what they leave is unique.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolSpec {
    /// Documents without a word.
    pub empty: f64,
    /// Documents of one word, all different.
    pub one_word: f64,
    /// Documents of more than one word and fewer than a shingle.
    pub brief: f64,
    /// Documents in clusters.
    pub clusters: Vec<ClusterSpec>,
}

/// Boilerplate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TemplateSpec {
    /// The share of ordinary texts that carry one.
    pub share: f64,
    /// How many different ones there are.
    pub groups: u32,
    /// Words of boilerplate, header and footer together.
    pub words: u32,
}

/// What a replica is to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MirrorKind {
    /// Every page, unchanged.
    Full,
    /// Whole branches were not copied; links into them lead to the target.
    Partial,
    /// Another version: pages changed, missing, added.
    Skewed,
    /// The same pages under another host name.
    Alias,
}

/// A replica of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplicaSpec {
    /// What it is to its target.
    pub kind: MirrorKind,
    /// Which version of the target it shows; replicas of one version have the same texts. 0 is the
    /// target's own. At most 7.
    pub version: u8,
    /// The share of pages whose text differs from the target's. Without effect on version 0.
    pub changed: f64,
    /// The share of pages that it lacks.
    pub missing: f64,
    /// Pages that the target does not have.
    pub added: u32,
    /// Pages inside the tree that are about something else altogether, so that the mirror falls
    /// apart around them.
    pub break_points: u32,
    /// Whether it stands in a folder of its target's own host (`/v2/`).
    pub same_host: bool,
    /// Whether it stands in a folder of some other site, rather than on a host of its own.
    pub mounted: bool,
}

impl ReplicaSpec {
    /// A replica with every page, unchanged, on a host of its own.
    pub fn full() -> ReplicaSpec {
        ReplicaSpec {
            kind: MirrorKind::Full,
            version: 0,
            changed: 0.0,
            missing: 0.0,
            added: 0,
            break_points: 0,
            same_host: false,
            mounted: false,
        }
    }

    /// The same pages under another name of the same host.
    pub fn alias() -> ReplicaSpec {
        ReplicaSpec { kind: MirrorKind::Alias, ..ReplicaSpec::full() }
    }

    /// A replica that lacks about this share of the pages, in whole branches.
    pub fn partial(missing: f64) -> ReplicaSpec {
        ReplicaSpec { kind: MirrorKind::Partial, missing, ..ReplicaSpec::full() }
    }

    /// A replica of another version, in which pages are changed, missing and added.
    pub fn skewed(version: u8, changed: f64, missing: f64, added: u32) -> ReplicaSpec {
        ReplicaSpec { kind: MirrorKind::Skewed, version, changed, missing, added, ..ReplicaSpec::full() }
    }

    /// The same, with pages that break it apart.
    pub fn with_break_points(self, break_points: u32) -> ReplicaSpec {
        ReplicaSpec { kind: MirrorKind::Skewed, break_points, ..self }
    }

    /// The same, in a folder of the target's own host.
    pub fn on_same_host(self) -> ReplicaSpec {
        ReplicaSpec { same_host: true, ..self }
    }

    /// The same, in a folder of some other site.
    pub fn mounted(self) -> ReplicaSpec {
        ReplicaSpec { mounted: true, ..self }
    }
}

/// A collection of pages that others mirror.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetSpec {
    /// Pages of the target.
    pub pages: u32,
    /// The least resemblance aimed at when a page differs from version to version.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// Its replicas.
    pub replicas: Vec<ReplicaSpec>,
}

/// A part that no page outside it links to.
#[derive(Clone, Debug, PartialEq)]
pub struct IslandSpec {
    /// Its share of the ordinary pages.
    pub share: f64,
    /// What its documents are like.
    pub pool: PoolSpec,
}

/// A whole web.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSpec {
    /// What it is called.
    pub name: String,
    /// Everything random follows from this number.
    pub seed: u64,
    /// Pages in all.
    pub pages: u64,
    /// Words in a shingle: what resemblances are counted in.
    pub shingle: u32,
    /// Words in a text.
    pub lengths: Lengths,
    /// Scripts and their weights.
    pub scripts: Vec<(Script, u32)>,
    /// Whether pages vary in charset, entities, comments, scripts and styles.
    pub varied_markup: bool,
    /// Whether pages link to each other.
    pub linked: bool,
    /// Pages of an ordinary site, on average.
    pub site_pages: u32,
    /// Links to other sites on a page, at most.
    pub cross_links: u32,
    /// Random links within the site on a page of a tangled site, at most.
    pub tangle: u32,
    /// What ordinary documents are like.
    pub pool: PoolSpec,
    /// The part that cannot be reached, if there is one.
    pub islands: Option<IslandSpec>,
    /// Mirrored collections.
    pub targets: Vec<TargetSpec>,
    /// Sites of so many pages that have a second host name.
    pub aliased_sites: Vec<u32>,
    /// Calendars of so many days.
    pub calendars: Vec<u32>,
    /// Sites of so many pages, each wrapped in its site's boilerplate.
    pub template_sites: Vec<u32>,
    /// Words of boilerplate on a page of a template site.
    pub template_site_words: u32,
    /// Boilerplate of ordinary documents.
    pub template: Option<TemplateSpec>,
}

impl WebSpec {
    /// A web of ordinary linked sites and nothing planted.
    pub fn new(pages: u64, seed: u64) -> WebSpec {
        WebSpec {
            name: "custom".into(),
            seed,
            pages,
            shingle: 4,
            lengths: Lengths { mean: 300.0, sigma: 0.6, least: 30, most: 20_000 },
            scripts: vec![(Script::Latin, 1)],
            varied_markup: true,
            linked: true,
            site_pages: 60,
            cross_links: 2,
            tangle: 5,
            pool: PoolSpec::default(),
            islands: None,
            targets: Vec::new(),
            aliased_sites: Vec::new(),
            calendars: Vec::new(),
            template_sites: Vec::new(),
            template_site_words: 0,
            template: None,
        }
    }

    /// A preset by name, scaled to `pages`.
    ///
    /// ```
    /// use onionskin_testkit::WebSpec;
    /// assert_eq!(WebSpec::preset("demo", 1_500, 1).unwrap().pages, 1_500);
    /// let error = WebSpec::preset("dem", 1_500, 1).unwrap_err().to_string();
    /// assert!(error.contains("known: demo, mirrors, text"));
    /// ```
    pub fn preset(name: &str, pages: u64, seed: u64) -> Result<WebSpec, SpecError> {
        Ok(WebSpec::of(name.parse()?, pages, seed))
    }

    /// A preset, scaled to `pages`.
    pub fn of(preset: Preset, pages: u64, seed: u64) -> WebSpec {
        let mut spec = WebSpec { name: preset.as_str().into(), ..WebSpec::new(pages, seed) };
        match preset {
            Preset::Demo => demo(&mut spec),
            Preset::Mirrors => mirrors(&mut spec),
            Preset::Text => {
                spec.flat();
                spec.pool.clusters = vec![
                    cluster(ClusterKind::Exact, 0.05, ClusterSize::Zipf { exponent: 2.2, most: 50 }),
                    cluster(near(0.95, 0.999), 0.10, ClusterSize::Fixed(2)),
                    cluster(near(0.85, 0.95), 0.10, ClusterSize::Fixed(2)),
                    cluster(near(0.70, 0.85), 0.08, ClusterSize::Fixed(2)),
                    cluster(near(0.50, 0.70), 0.06, ClusterSize::Fixed(2)),
                    cluster(near(0.20, 0.50), 0.06, ClusterSize::Fixed(2)),
                ];
            }
            Preset::Short => {
                spec.flat();
                spec.lengths = Lengths { mean: 24.0, sigma: 0.5, least: 5, most: 200 };
                spec.pool = PoolSpec { empty: 0.001, one_word: 0.002, brief: 0.005, clusters: Vec::new() };
                spec.pool.clusters = vec![
                    cluster(ClusterKind::Exact, 0.08, ClusterSize::Zipf { exponent: 2.0, most: 1_000 }),
                    cluster(near(0.70, 0.98), 0.08, ClusterSize::Zipf { exponent: 2.5, most: 30 }),
                ];
            }
            Preset::Template => {
                spec.flat();
                spec.lengths = Lengths { mean: 120.0, sigma: 0.2, least: 40, most: 400 };
                spec.template = Some(TemplateSpec { share: 1.0, groups: 1, words: 480 });
                spec.pool.clusters = vec![cluster(near(0.93, 0.99), 0.10, ClusterSize::Fixed(2))];
            }
            Preset::Zipf => {
                spec.flat();
                let most = (pages / 20).clamp(2, 5_000) as u32;
                let size = ClusterSize::Zipf { exponent: 1.8, most };
                spec.pool.clusters =
                    vec![cluster(ClusterKind::Exact, 0.25, size), cluster(near(0.80, 0.98), 0.25, size)];
            }
            Preset::Disconnected => disconnected(&mut spec),
            Preset::Chains => {
                spec.flat();
                spec.pool.clusters = vec![cluster(ClusterKind::Chain, 0.5, ClusterSize::Fixed(40))];
            }
            Preset::Crowd => {
                spec.flat();
                spec.lengths = Lengths { mean: 80.0, sigma: 0.4, least: 40, most: 1_000 };
                spec.pool.clusters = vec![cluster(near(0.85, 0.95), 0.5, ClusterSize::One)];
            }
            Preset::Blank => {
                spec.flat();
                spec.pool = PoolSpec { empty: 0.45, one_word: 0.5, brief: 0.04, clusters: Vec::new() };
            }
        }
        spec
    }

    /// The same with texts of this many words on average.
    pub fn with_mean_words(mut self, mean: f64) -> WebSpec {
        self.lengths.mean = mean;
        self.lengths.least = self.lengths.least.min((mean / 4.0) as u32).max(1);
        self
    }

    /// The same with these scripts, weighted.
    pub fn with_scripts(mut self, scripts: &[(Script, u32)]) -> WebSpec {
        self.scripts = scripts.to_vec();
        self
    }

    /// The same with these clusters among its ordinary documents, instead of the ones it had.
    pub fn with_clusters(mut self, clusters: &[ClusterSpec]) -> WebSpec {
        self.pool.clusters = clusters.to_vec();
        self
    }

    /// The same with resemblances counted in shingles of `w` words.
    pub fn with_shingle(mut self, w: u32) -> WebSpec {
        self.shingle = w;
        self
    }

    fn flat(&mut self) {
        self.linked = false;
        self.varied_markup = false;
        self.site_pages = 1_000;
    }

    /// Checks every number. [`crate::Web::new`] does it too.
    pub fn validate(&self) -> Result<(), SpecError> {
        // Unique words have room for 2^33 numbers, eight of them to a page of a mirrored
        // collection.
        let most = 1 << 30;
        if self.pages > most {
            return Err(SpecError::TooManyPages { pages: self.pages, most });
        }
        within("shingle", f64::from(self.shingle), 1.0, 1_000.0)?;
        within("mean words", self.lengths.mean, 1.0, 1e6)?;
        within("sigma of words", self.lengths.sigma, 0.0, 3.0)?;
        within("most words", f64::from(self.lengths.most), f64::from(self.lengths.least.max(1)), 1e6)?;
        within("site pages", f64::from(self.site_pages), 1.0, 1e6)?;
        within("pages", self.pages as f64, 1.0, most as f64)?;
        within("random links", f64::from(self.tangle), 0.0, 1_000.0)?;
        within("links to other sites", f64::from(self.cross_links), 0.0, 100.0)?;
        within(
            "sum of script weights",
            self.scripts.iter().map(|&(_, weight)| f64::from(weight)).sum(),
            1.0,
            4e9,
        )?;
        self.pool.validate()?;
        if let Some(islands) = &self.islands {
            within("share of islands", islands.share, 0.0, 1.0)?;
            islands.pool.validate()?;
        }
        for target in &self.targets {
            within("pages of a target", f64::from(target.pages), 1.0, 1e6)?;
            within("resemblance of versions", target.low, 0.0, 1.0)?;
            within("resemblance of versions", target.high, target.low, 1.0)?;
            within("replicas of a target", target.replicas.len() as f64, 0.0, 10_000.0)?;
            for replica in &target.replicas {
                within("version", f64::from(replica.version), 0.0, 7.0)?;
                within("share changed", replica.changed, 0.0, 1.0)?;
                within("share missing", replica.missing, 0.0, 0.9)?;
                within("pages added", f64::from(replica.added), 0.0, 1e5)?;
            }
        }
        for &pages in self.aliased_sites.iter().chain(&self.calendars).chain(&self.template_sites) {
            within("pages of a planted site", f64::from(pages), 1.0, 1e6)?;
        }
        within("words of a template", f64::from(self.template_site_words), 0.0, 1e5)?;
        if let Some(template) = &self.template {
            within("share of templates", template.share, 0.0, 1.0)?;
            within("templates", f64::from(template.groups), 1.0, 1e5)?;
            within("words of a template", f64::from(template.words), 1.0, 1e5)?;
        }
        Ok(())
    }
}

impl PoolSpec {
    fn validate(&self) -> Result<(), SpecError> {
        let mut sum = 0.0;
        let shares = [self.empty, self.one_word, self.brief];
        for share in shares.into_iter().chain(self.clusters.iter().map(|cluster| cluster.share)) {
            within("share of documents", share, 0.0, 1.0)?;
            sum += share;
        }
        within("sum of shares", sum, 0.0, 1.000_001)?;
        for cluster in &self.clusters {
            if let ClusterKind::Near { low, high } = cluster.kind {
                within("resemblance", low, 0.0, 1.0)?;
                within("resemblance", high, low, 1.0)?;
            }
            match cluster.size {
                ClusterSize::Fixed(size) => within("cluster size", f64::from(size), 2.0, 1e9)?,
                ClusterSize::Zipf { exponent, most } => {
                    within("exponent", exponent, 0.5, 10.0)?;
                    within("cluster size", f64::from(most), 2.0, 100_000.0)?;
                }
                ClusterSize::One => {}
            }
        }
        Ok(())
    }
}

fn within(what: &'static str, value: f64, low: f64, high: f64) -> Result<(), SpecError> {
    // An empty sum is minus zero; nobody wants to read that.
    let value = value + 0.0;
    if value >= low && value <= high { Ok(()) } else { Err(SpecError::OutOfRange { what, value, low, high }) }
}

fn near(low: f64, high: f64) -> ClusterKind {
    ClusterKind::Near { low, high }
}

fn cluster(kind: ClusterKind, share: f64, size: ClusterSize) -> ClusterSpec {
    ClusterSpec { kind, share, size }
}

fn all_scripts() -> Vec<(Script, u32)> {
    vec![
        (Script::Latin, 70),
        (Script::Accented, 10),
        (Script::Cyrillic, 6),
        (Script::Greek, 3),
        (Script::Arabic, 3),
        (Script::Han, 5),
        (Script::Thai, 3),
    ]
}

fn demo(spec: &mut WebSpec) {
    let scale = spec.pages as f64 / 1_500.0;
    let scaled = |pages: u32| ((f64::from(pages) * scale) as u32).max(6);
    spec.scripts = all_scripts();
    spec.lengths = Lengths { mean: 220.0, sigma: 0.5, least: 40, most: 3_000 };
    spec.site_pages = 25;
    spec.pool = PoolSpec {
        empty: 0.015,
        one_word: 0.01,
        brief: 0.01,
        clusters: vec![
            cluster(ClusterKind::Exact, 0.12, ClusterSize::Zipf { exponent: 2.0, most: 12 }),
            cluster(near(0.95, 0.99), 0.06, ClusterSize::Fixed(2)),
            cluster(near(0.80, 0.95), 0.09, ClusterSize::Fixed(3)),
            cluster(near(0.50, 0.80), 0.04, ClusterSize::Fixed(2)),
            cluster(ClusterKind::Chain, 0.02, ClusterSize::Fixed(6)),
        ],
    };
    spec.islands = Some(IslandSpec {
        share: 0.12,
        pool: PoolSpec {
            clusters: vec![cluster(ClusterKind::Exact, 0.5, ClusterSize::Zipf { exponent: 2.0, most: 8 })],
            ..PoolSpec::default()
        },
    });
    spec.targets = vec![
        TargetSpec {
            pages: scaled(60),
            low: 0.7,
            high: 0.97,
            replicas: vec![
                ReplicaSpec::full(),
                ReplicaSpec::partial(0.4).mounted(),
                ReplicaSpec::skewed(1, 0.15, 0.05, 2),
            ],
        },
        TargetSpec {
            pages: scaled(40),
            low: 0.8,
            high: 0.98,
            replicas: vec![
                ReplicaSpec::full().mounted(),
                ReplicaSpec::skewed(1, 0.1, 0.0, 1).with_break_points(2),
                ReplicaSpec::skewed(2, 0.3, 0.1, 3).on_same_host(),
            ],
        },
    ];
    spec.aliased_sites = vec![scaled(24), scaled(15)];
    spec.calendars = vec![scaled(56)];
    spec.template_sites = vec![scaled(30)];
    spec.template_site_words = 90;
}

fn mirrors(spec: &mut WebSpec) {
    spec.scripts = vec![(Script::Latin, 9), (Script::Accented, 1)];
    spec.lengths = Lengths { mean: 250.0, sigma: 0.6, least: 40, most: 5_000 };
    let copies = (spec.pages as f64 / 50_000.0).max(1.0).round() as usize;
    let n_targets = 25 * copies;
    // Sizes from 50 to 1,000 with many small ones, so that targets and mirrors together have about
    // 35,000 pages.
    let sizes: Vec<f64> = (0..n_targets)
        .map(|nth| 50.0 + 950.0 * math::pow(((nth % 25) as f64 / 24.0).max(1e-9), 9.0))
        .collect();
    let n_replicas = |nth: usize| 5 + nth % 6;
    let planned: f64 = sizes.iter().enumerate().map(|(nth, size)| size * (n_replicas(nth) + 1) as f64).sum();
    // A smaller web gets smaller targets, then fewer of them.
    let shrink = (0.7 * spec.pages as f64 / planned).min(1.0);
    let mut budget = (0.75 * spec.pages as f64) as u64;
    for (nth, size) in sizes.into_iter().enumerate() {
        let pages = ((size * shrink) as u32).max(12);
        let replicas: Vec<ReplicaSpec> = (0..n_replicas(nth)).map(|r| paper_replica(nth, r, pages)).collect();
        let needed = u64::from(pages + 4) * (replicas.len() as u64 + 1);
        if needed > budget {
            continue;
        }
        budget -= needed;
        spec.targets.push(TargetSpec { pages, low: 0.75, high: 0.98, replicas });
    }
}

/// The mirrors of section 4: "different versions of the primary version, either older or slightly
/// modified".
fn paper_replica(target: usize, replica: usize, pages: u32) -> ReplicaSpec {
    let spec = match (replica + target) % 6 {
        0 => ReplicaSpec::full(),
        1 => ReplicaSpec::skewed(1, 0.08, 0.02, pages / 50),
        2 => ReplicaSpec::partial(0.3),
        3 => ReplicaSpec::skewed(2, 0.20, 0.05, pages / 40),
        4 => ReplicaSpec::skewed(1, 0.08, 0.0, 0).with_break_points(1 + pages / 100),
        _ => ReplicaSpec::full().mounted(),
    };
    if replica == 3 { spec.mounted() } else { spec }
}

fn disconnected(spec: &mut WebSpec) {
    spec.lengths = Lengths { mean: 150.0, sigma: 0.5, least: 30, most: 3_000 };
    spec.site_pages = 40;
    let clusters = |scale: f64| {
        vec![
            cluster(ClusterKind::Exact, 0.12 * scale, ClusterSize::Zipf { exponent: 2.1, most: 200 }),
            cluster(near(0.85, 0.98), 0.06 * scale, ClusterSize::Zipf { exponent: 2.5, most: 30 }),
        ]
    };
    spec.pool.clusters = clusters(1.0);
    spec.islands =
        Some(IslandSpec { share: 0.3, pool: PoolSpec { clusters: clusters(4.0), ..PoolSpec::default() } });
}
