//! Laying out places: planted collections first, ordinary sites for what is left, then all in
//! shuffled order.

use super::*;
use crate::spec::TargetSpec;
use urls::{Host, Subdomain};

struct Builder {
    seed: u64,
    web: Web,
    n_domains: u32,
    n_ordinary: u32,
    next_serial: u64,
    /// Places whose host is chosen when all sites are there.
    mounted: Vec<usize>,
}

pub(super) fn build(spec: &WebSpec) -> Result<Web, SpecError> {
    let mut vocabularies: Vec<Option<Vocabulary>> = vec![None; Script::ALL.len()];
    for &(script, weight) in &spec.scripts {
        if weight > 0 && script != Script::Latin {
            vocabularies[script as usize] = Some(Vocabulary::new(script));
        }
    }
    let sigma = spec.lengths.sigma;
    let web = Web {
        spec: spec.clone(),
        vocabularies,
        latin: Vocabulary::new(Script::Latin),
        script_weights: spec.scripts.iter().map(|&(_, weight)| u64::from(weight)).sum(),
        mu: math::ln(spec.lengths.mean) - sigma * sigma / 2.0,
        pools: Vec::new(),
        pool_collections: vec![Vec::new(), Vec::new()],
        collections: Vec::new(),
        places: Vec::new(),
        replicas: Vec::new(),
        hosts: Vec::new(),
        places_of: BTreeMap::new(),
        main_places: Vec::new(),
    };
    let mut builder =
        Builder { seed: spec.seed, web, n_domains: 0, n_ordinary: 0, next_serial: 0, mounted: Vec::new() };
    builder.planted(spec);
    builder.ordinary(spec)?;
    builder.shuffle();
    Ok(builder.web)
}

impl Builder {
    fn planted(&mut self, spec: &WebSpec) {
        // Aliased sites first: their documents come from the pool, whose positions they open.
        let mut position = 0;
        for &pages in &spec.aliased_sites {
            let collection = self.collection(CollectionKind::Ordinary { pool: 0 }, pages, position);
            position += u64::from(pages);
            self.replicate(collection, 0, ReplicaSpec::alias());
        }
        for (index, TargetSpec { pages, replicas, .. }) in spec.targets.iter().enumerate() {
            let collection = self.collection(CollectionKind::Target(index as u32), *pages, 0);
            for (nth, replica) in replicas.iter().enumerate() {
                self.replicate(collection, nth as u32, *replica);
            }
        }
        for &pages in &spec.calendars {
            self.collection(CollectionKind::Calendar, pages, 0);
        }
        for (nth, &pages) in spec.template_sites.iter().enumerate() {
            self.collection(CollectionKind::TemplateSite(nth as u32), pages, 0);
        }
    }

    fn ordinary(&mut self, spec: &WebSpec) -> Result<(), SpecError> {
        let planted: u64 = self.web.places.iter().map(|place| u64::from(place.pages)).sum();
        let Some(left) = spec.pages.checked_sub(planted) else {
            return Err(SpecError::TooFewPages { pages: spec.pages, planted });
        };
        let island_pages = spec.islands.as_ref().map_or(0, |islands| (islands.share * left as f64) as u64);
        let aliased: u64 = spec.aliased_sites.iter().map(|&pages| u64::from(pages)).sum();
        let main_pages = left - island_pages;
        self.sites(0, aliased, main_pages);
        self.sites(1, 0, island_pages);
        let n_main = aliased + main_pages;
        let shuffle = |pool: u64| mix(mix(spec.seed, topic::SHUFFLE), pool);
        self.web.pools.push(Pool::new(&spec.pool, n_main, 0, shuffle(0)));
        let islands = spec.islands.as_ref().map(|islands| islands.pool.clone()).unwrap_or_default();
        self.web.pools.push(Pool::new(&islands, island_pages, n_main, shuffle(1)));
        Ok(())
    }

    /// Ordinary sites for `pages` pages, from `position` of the pool on.
    fn sites(&mut self, pool: u8, mut position: u64, mut pages: u64) {
        let spec = &self.web.spec;
        let mean = f64::from(spec.site_pages);
        // Linked sites differ much in size; flat documents only need an address.
        let sigma = if spec.linked { 0.8 } else { 0.0 };
        let mu = math::ln(mean) - sigma * sigma / 2.0;
        let mut dice = Dice::new(mix(mix(self.seed, topic::SIZES), u64::from(pool)));
        while pages > 0 {
            let size = if sigma > 0.0 { math::exp(mu + sigma * dice.normal()) } else { mean };
            let size = (size as u64).clamp(1, pages.min(1_000_000));
            self.collection(CollectionKind::Ordinary { pool }, size as u32, position);
            position += size;
            pages -= size;
        }
    }

    /// A collection at a place of its own. `position` is that of its first slot, if it is in a
    /// pool.
    fn collection(&mut self, kind: CollectionKind, slots: u32, position: u64) -> u32 {
        let index = self.web.collections.len() as u32;
        let host = self.host(kind);
        let serial = if let CollectionKind::Ordinary { pool } = kind {
            self.web.pool_collections[usize::from(pool)].push(index);
            position
        } else {
            self.next_serial += u64::from(slots);
            self.next_serial - u64::from(slots)
        };
        let own = self.web.places.len() as u32;
        let key = mix(mix(self.seed, topic::COLLECTION), u64::from(index));
        self.web.collections.push(Collection { key, serial, slots, kind, own });
        self.web.places.push(Place {
            first: 0,
            pages: slots,
            collection: index,
            host,
            folder: Folder::Root,
            replica: None,
            island: kind == CollectionKind::Ordinary { pool: 1 },
        });
        index
    }

    /// A new host; every fourth ordinary site shares the registered domain of the one before.
    fn host(&mut self, kind: CollectionKind) -> u32 {
        let ordinary = matches!(kind, CollectionKind::Ordinary { .. });
        self.n_ordinary += u32::from(ordinary);
        let second = ordinary && self.n_ordinary % 4 == 3;
        let host = match self.web.hosts.last() {
            Some(&Host { domain, subdomain: Subdomain::Www }) if second => {
                Host { domain, subdomain: Subdomain::People }
            }
            _ => self.new_domain(),
        };
        self.push_host(host)
    }

    fn new_domain(&mut self) -> Host {
        self.n_domains += 1;
        Host { domain: self.n_domains - 1, subdomain: Subdomain::Www }
    }

    fn push_host(&mut self, host: Host) -> u32 {
        self.web.hosts.push(host);
        self.web.hosts.len() as u32 - 1
    }

    fn replicate(&mut self, collection: u32, nth: u32, mut spec: ReplicaSpec) {
        let Collection { slots, own, .. } = self.web.collections[collection as usize];
        let own_host = self.web.places[own as usize].host;
        let seed = mix(mix(mix(self.seed, topic::REPLICA), u64::from(collection)), u64::from(nth));
        let branching = self.web.branching(collection);
        let breaks = break_points(slots, branching, spec.break_points, seed);
        let (replaced, cut): (Vec<_>, Vec<_>) =
            breaks.into_iter().enumerate().partition(|(nth, _)| nth % 2 == 0);
        let mut replaced: Vec<u32> = replaced.into_iter().map(|(_, slot)| slot).collect();
        replaced.sort_unstable();
        let cut: Vec<u32> = cut.into_iter().map(|(_, slot)| slot).collect();
        let missing = ranges(&missing_slots(slots, branching, &spec, &cut, seed));
        spec.break_points = (replaced.len() + cut.len()) as u32;

        let (host, folder) = match spec.kind {
            MirrorKind::Alias => {
                let domain = self.web.hosts[own_host as usize].domain;
                let subdomain =
                    if nth == 0 && seed & 1 == 0 { Subdomain::None } else { Subdomain::Alias(nth) };
                (self.push_host(Host { domain, subdomain }), Folder::Root)
            }
            _ if spec.same_host => (own_host, Folder::Version { replica: nth, version: spec.version }),
            // Mounted replicas find their host when all sites are there.
            _ if spec.mounted => {
                self.mounted.push(self.web.places.len());
                (own_host, Folder::Mirror { collection, replica: nth })
            }
            _ => {
                let host = self.new_domain();
                let folder =
                    if seed & 2 == 0 { Folder::Root } else { Folder::Mirror { collection, replica: nth } };
                (self.push_host(host), folder)
            }
        };
        let replica = Replica { spec, seed, missing, replaced, cut };
        let pages = slots - replica.n_missing() + spec.added;
        let place = self.web.places.len() as u32;
        let index = self.web.replicas.len() as u32;
        self.web.places_of.entry(collection).or_insert_with(|| vec![own]).push(place);
        self.web.replicas.push(replica);
        self.web.places.push(Place {
            first: 0,
            pages,
            collection,
            host,
            folder,
            replica: Some(index),
            island: false,
        });
    }

    /// Puts the places into a random order, so that a mirror is not always next to its target, and
    /// numbers the pages.
    fn shuffle(&mut self) {
        let web = &mut self.web;
        let hosts: Vec<u32> = web
            .places
            .iter()
            .filter(|place| {
                place.replica.is_none()
                    && web.collections[place.collection as usize].kind
                        == (CollectionKind::Ordinary { pool: 0 })
                    && !web.places_of.contains_key(&place.collection)
            })
            .map(|place| place.host)
            .collect();
        for &index in &self.mounted {
            let roll = mix(mix(self.seed, topic::MOUNT), index as u64);
            web.places[index].host = match hosts.get(below(roll, hosts.len() as u64) as usize) {
                Some(&host) => host,
                None => {
                    let domain = self.n_domains;
                    self.n_domains += 1;
                    web.hosts.push(Host { domain, subdomain: Subdomain::Www });
                    web.hosts.len() as u32 - 1
                }
            };
        }
        let n_places = web.places.len() as u64;
        let order = Permutation::new(n_places.max(1), mix(self.seed, topic::PLACES));
        let renumbered = |place: u32| order.apply(u64::from(place)) as u32;
        for collection in &mut web.collections {
            collection.own = renumbered(collection.own);
        }
        for places in web.places_of.values_mut() {
            places.iter_mut().for_each(|place| *place = renumbered(*place));
        }
        let mut places: Vec<Place> =
            (0..n_places).map(|at| web.places[order.invert(at) as usize].clone()).collect();
        let mut first = 0;
        for place in &mut places {
            place.first = first;
            first += u64::from(place.pages);
        }
        web.main_places = (0..places.len() as u32).filter(|&place| !places[place as usize].island).collect();
        web.places = places;
    }
}

/// Slots inside the tree, neither root nor leaf, none of them the parent of another.
fn break_points(slots: u32, branching: u32, wanted: u32, seed: u64) -> Vec<u32> {
    let inner = first_leaf(slots, branching).max(1) - 1;
    if inner == 0 {
        return Vec::new();
    }
    let order = Permutation::new(u64::from(inner), mix(seed, 7));
    let mut chosen: Vec<u32> = Vec::new();
    for nth in 0..u64::from(inner) {
        let slot = 1 + order.apply(nth) as u32;
        let touches = |&other: &u32| (slot - 1) / branching == other || (other - 1) / branching == slot;
        if chosen.len() < wanted as usize && !chosen.iter().any(touches) {
            chosen.push(slot);
        }
    }
    chosen
}
