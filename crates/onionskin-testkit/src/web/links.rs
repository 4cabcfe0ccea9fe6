//! Where links lead.
//!
//! Within a collection every page links to its parent, its children and the root; manuals add the
//! page before and after, tangled sites some at random. Links to other sites prefer few of them, so
//! that in-degrees are skewed. The root of every reachable place links to the root of the next,
//! which makes all of them one strongly connected part. No reachable page links into an island.

use super::*;

/// Where a link leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dest {
    Page(u64),
    /// A page that the place would have if it were complete.
    Absent {
        place: u32,
        slot: u32,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) dest: Dest,
    /// Whether the link is written with its host whatever it leads to. Links to other sites are,
    /// even where they happen to lead to the site itself: a copy of the page must have the same
    /// link.
    pub(crate) absolute: bool,
    /// Decides how the link is written.
    pub(crate) roll: u64,
}

/// How the pages of a collection hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Tree,
    Manual,
    Tangled,
    Flat,
}

impl Web {
    pub(crate) fn style(&self, collection: u32) -> Style {
        if !self.spec.linked {
            return Style::Flat;
        }
        match below(mix(self.collections[collection as usize].key, topic::STYLE), 3) {
            0 => Style::Tree,
            1 => Style::Manual,
            _ => Style::Tangled,
        }
    }

    /// Children of a page, at most.
    pub(crate) fn branching(&self, collection: u32) -> u32 {
        3 + below(mix(self.collections[collection as usize].key, topic::STYLE + 1000), 6) as u32
    }

    /// The links of a page, in the order in which they stand on it, repeats included.
    pub(crate) fn links(&self, location: Location, out: &mut Vec<Link>) {
        out.clear();
        if !self.spec.linked {
            return;
        }
        let place = &self.places[location.place as usize];
        let collection = &self.collections[place.collection as usize];
        let key = mix(collection.key, topic::LINKS);
        let replica = self.replica(place);
        match location.spot {
            Spot::Added(nth) => {
                let key = mix(mix(key, 1 << 40), u64::from(nth));
                let random = below(mix(key, 1), u64::from(collection.slots)) as u32;
                for (at, slot) in [0, random].into_iter().enumerate() {
                    out.push(Link {
                        dest: self.link_to(location.place, slot),
                        absolute: false,
                        roll: mix(key, 10 + at as u64),
                    });
                }
            }
            Spot::Slot(slot) => {
                let key = mix(key, u64::from(slot));
                self.inner_links(location.place, slot, key, out);
                self.outer_links(place.island, key, out);
                if slot == 0 {
                    self.root_links(location.place, replica, key, out);
                }
            }
        }
    }

    fn inner_links(&self, place: u32, slot: u32, key: u64, out: &mut Vec<Link>) {
        let index = self.places[place as usize].collection;
        let slots = self.collections[index as usize].slots;
        let branching = self.branching(index);
        let style = self.style(index);
        let mut add = |to: u32| {
            if to < slots {
                out.push(Link {
                    dest: self.link_to(place, to),
                    absolute: false,
                    roll: mix(key, 100 + u64::from(to)),
                });
            }
        };
        // On manuals the way home stands on the first page too, and leads to itself.
        if slot > 0 || style == Style::Manual {
            add(0);
        }
        if slot > 0 {
            add((slot - 1) / branching);
        }
        let first_child = u64::from(slot) * u64::from(branching) + 1;
        for child in first_child..(first_child + u64::from(branching)).min(u64::from(slots)) {
            add(child as u32);
        }
        match style {
            Style::Manual => {
                if slot > 0 {
                    add(slot - 1);
                }
                add(slot + 1);
            }
            Style::Tangled => {
                for nth in 0..below(mix(key, 2), u64::from(self.spec.tangle) + 1) {
                    add(below(mix(key, 10_000 + nth), u64::from(slots)) as u32);
                }
            }
            Style::Tree | Style::Flat => {}
        }
    }

    fn outer_links(&self, island: bool, key: u64, out: &mut Vec<Link>) {
        // Islands look at the mainland now and then; it never looks back.
        let most =
            if island { u64::from(self.spec.cross_links > 0) } else { u64::from(self.spec.cross_links) };
        for nth in 0..below(mix(key, 3), most + 1) {
            let roll = mix(key, 50 + nth);
            let fame = unit(roll);
            let n_places = self.main_places.len() as f64;
            let Some(&place) = self.main_places.get((n_places * fame * fame * fame) as usize) else {
                continue;
            };
            let entry = &self.places[place as usize];
            let deep = mix(roll, 1);
            let page = if deep & 3 == 0 { below(mix(roll, 2), u64::from(entry.pages)) } else { 0 };
            out.push(Link { dest: Dest::Page(entry.first + page), absolute: true, roll: mix(roll, 3) });
        }
    }

    fn root_links(&self, place: u32, replica: Option<&Replica>, key: u64, out: &mut Vec<Link>) {
        let entry = &self.places[place as usize];
        let index = entry.collection;
        if let Some(replica) = replica {
            let present = self.n_present(entry);
            for nth in 0..replica.spec.added {
                let page = entry.first + u64::from(present + nth);
                out.push(Link {
                    dest: Dest::Page(page),
                    absolute: false,
                    roll: mix(key, 200 + u64::from(nth)),
                });
            }
            // What hung below a page that is gone is linked from the root, lest it be lost.
            let branching = self.branching(index);
            let slots = self.collections[index as usize].slots;
            for &gone in &replica.cut {
                for child in gone * branching + 1..(gone * branching + 1 + branching).min(slots) {
                    out.push(Link {
                        dest: self.link_to(place, child),
                        absolute: false,
                        roll: mix(key, 300 + u64::from(child)),
                    });
                }
            }
        }
        if !entry.island && !self.main_places.is_empty() {
            let nth = self.main_places.partition_point(|&main| main <= place) % self.main_places.len();
            let next = &self.places[self.main_places[nth] as usize];
            out.push(Link { dest: Dest::Page(next.first), absolute: true, roll: mix(key, 4) });
        }
    }

    /// A link to a slot of the same collection: to the copy here, to the target if a partial mirror
    /// has none, else to nothing.
    fn link_to(&self, place: u32, slot: u32) -> Dest {
        if let Some(page) = self.page_at(place, slot) {
            return Dest::Page(page);
        }
        let entry = &self.places[place as usize];
        let partial = self.replica(entry).is_some_and(|replica| replica.spec.kind == MirrorKind::Partial);
        let own = self.collections[entry.collection as usize].own;
        match self.page_at(own, slot) {
            Some(page) if partial => Dest::Page(page),
            _ => Dest::Absent { place, slot },
        }
    }

    /// The pages that a page links to, each once, in ascending order.
    pub(crate) fn linked_pages(&self, page: u64, links: &mut Vec<Link>, out: &mut Vec<u64>) {
        self.links(self.locate(page), links);
        out.clear();
        out.extend(links.iter().filter_map(|link| match link.dest {
            Dest::Page(page) => Some(page),
            Dest::Absent { .. } => None,
        }));
        out.sort_unstable();
        out.dedup();
    }
}
