//! Small graphs in words.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use onionskin_core::{DocId, SiteId};

use crate::check::{Demands, check};
use crate::graph::{Graph, Page};
use crate::grow::{Growth, grow};
use crate::model::{Group, Merge, Role};

/// A graph with names for its pages.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub graph: Graph,
    pub names: Vec<String>,
}

/// Reads links such as `i.a>i.b`, pages such as `i.c`, and `i.a=5` for five other sites that link
/// there, separated by white space. The part before the first point is the site, the part after it
/// what the page says; `i.q.2` says `q` too.
pub(crate) fn graph(text: &str) -> Named {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut links = Vec::new();
    let mut linked_from: BTreeMap<&str, u32> = BTreeMap::new();
    for word in text.split_whitespace() {
        if let Some((page, sites)) = word.split_once('=') {
            names.insert(page);
            linked_from.insert(page, sites.parse().unwrap());
        } else if let Some((from, to)) = word.split_once('>') {
            names.extend([from, to]);
            links.push((from, to));
        } else {
            names.insert(word);
        }
    }
    let names: Vec<&str> = names.into_iter().collect();
    let part = |name: &str, at: usize| name.split('.').nth(at).unwrap().to_owned();
    let number =
        |values: BTreeSet<String>| (0u32..).zip(values).map(|(n, v)| (v, n)).collect::<BTreeMap<_, _>>();
    let sites = number(names.iter().map(|name| part(name, 0)).collect());
    let clusters = number(names.iter().map(|name| part(name, 1)).collect());
    let pages = DocId::MIN
        .onward()
        .zip(&names)
        .map(|(doc, name)| Page {
            doc,
            cluster: DocId(clusters[&part(name, 1)]),
            site: SiteId(sites[&part(name, 0)]).into(),
            linked_from: linked_from.get(name).copied().unwrap_or(0),
        })
        .collect();
    let index = |name: &str| names.binary_search(&name).unwrap() as u32;
    let links = links.into_iter().map(|(from, to)| (index(from), index(to))).collect();
    Named { graph: Graph::new(pages, links), names: names.into_iter().map(str::to_owned).collect() }
}

/// A group in words: replicas in order, their pages in order of name, virtual ones in brackets.
pub(crate) fn words(named: &Named, group: &Group) -> String {
    let replica = |replica: &crate::model::Replica| {
        let mut pages: Vec<String> = replica
            .members
            .iter()
            .map(|member| {
                let name = &named.names[member.doc.index()];
                match member.role {
                    Role::Copy => name.clone(),
                    Role::Virtual => format!("({name})"),
                    role => format!("{name}:{}", role.as_str()),
                }
            })
            .collect();
        pages.sort();
        pages.join(" ")
    };
    group.replicas.iter().map(replica).collect::<Vec<_>>().join(" | ")
}

/// Grows, proves every group by the definitions, and tells them in words.
pub(crate) fn grown(named: &Named, merge: Merge, single_site: bool) -> Vec<String> {
    let groups = grow(&named.graph, Growth { merge, single_site });
    for group in &groups {
        let demands = Demands { definition_8: true, single_site };
        let verdict = check(group, &named.graph, demands, |_| None);
        assert!(verdict.is_ok(), "{}: {verdict:?}", words(named, group));
    }
    groups.iter().map(|group| words(named, group)).collect()
}
