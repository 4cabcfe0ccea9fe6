//! Rewritings of addresses, learned: where a rewritten address is known too, is the page a copy?
//!
//! Every address is rewritten in every way that applies ([`crate::alias`]). Sorting by the hash of
//! the outcome brings together addresses that a rewriting makes equal, and the address that it
//! makes of them. Each such pair is one test of the rule on its host, and of the rule everywhere.

use std::collections::HashMap;

use crate::alias::{Rewriting, rewritings};
use crate::component::Web;
use onionskin_core::{DocId, Packed, RuleId, SiteId};
use onionskin_extract::url::without_user;
use onionskin_similar::{Bits, Resources, SimilarError};
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::table::{UrlRuleRow, document};
use onionskin_store::{Atlas, Staging};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::pages::{OfAtlas, Pages, Sites};

/// Copies that a rule must have, at the least, and the share of its pairs that must be copies.
const LEAST_SUPPORT: u64 = 3;
const LEAST_CONFIDENCE: f64 = 0.5;

/// A rule, hashed: what it does, and on which site; `None` for all.
fn rule_hash(how: Rewriting<'_>, site: Option<SiteId>) -> u64 {
    let site = Packed::from(site).bits();
    xxh3_64_with_seed(how.to_string().as_bytes(), u64::from(site))
}

fn url_hash(url: &str) -> u64 {
    xxh3_64_with_seed(url.as_bytes(), 0)
}

/// The hash of an address that a rule leads to, and the rule on its host and everywhere.
type Outcome = (u64, (u64, u64));

/// One test of a rule: the rule, whether the pages differ, from which document to which. Copies
/// come first.
type Test = (u64, u32, DocId, DocId);

/// Learns rules and writes them, most support first. Returns how many.
pub(super) fn learn(
    atlas: &Atlas,
    web: &Web,
    resources: &Resources,
    staging: &mut Staging,
) -> Result<u64, SimilarError> {
    let tests = tests(atlas, web, resources)?;
    let mut rules: Vec<Rule> = Vec::new();
    for test in tests.finish()? {
        let (hash, differs, from, to) = test?;
        if rules.last().is_none_or(|rule| rule.hash != hash) {
            // Few rules hold; those that do not are forgotten as soon as they are counted.
            rules.pop_if(|rule| !rule.holds());
            rules.push(Rule { hash, support: 0, checked: 0, from, to });
        }
        if let Some(rule) = rules.last_mut() {
            rule.checked += 1;
            rule.support += u64::from(differs == 0);
        }
    }
    rules.pop_if(|rule| !rule.holds());
    write(atlas, web, rules, staging)
}

struct Rule {
    hash: u64,
    support: u64,
    checked: u64,
    from: DocId,
    to: DocId,
}

impl Rule {
    fn confidence(&self) -> f64 {
        self.support as f64 / self.checked as f64
    }

    fn holds(&self) -> bool {
        self.support >= LEAST_SUPPORT && self.confidence() >= LEAST_CONFIDENCE
    }
}

fn tests(atlas: &Atlas, web: &Web, resources: &Resources) -> Result<Sorter<Test>, SimilarError> {
    let sort = |n| SortParams::new(&resources.work_dir, resources.memory.share(n, 10));
    // Hash of an address and document: as it is, and as a rewriting made it, with the rule.
    let mut plain = Sorter::<(u64, DocId)>::new(sort(2))?;
    // Two ways to the same outcome, as with a parameter that stands twice, are one.
    let mut rewritten = Sorter::<(u64, (u64, u64), DocId)>::new(sort(5).dedup())?;
    let mut buffer = String::new();
    for batch in atlas.documents()?.select::<(document::Doc, document::Url, document::Tokens)>() {
        for (doc, url, tokens) in batch?.rows() {
            let site = web.site(doc);
            // An empty page is a copy of nothing, and would speak against every rule.
            let Some(url) = url.filter(|_| site.is_some() && tokens > 0) else { continue };
            plain.push((url_hash(url), doc))?;
            let mut failed = None;
            rewritings(url, &mut buffer, |how, outcome| {
                let everywhere = if how.is_general() { rule_hash(how, None) } else { 0 };
                let record = (url_hash(outcome), (rule_hash(how, site), everywhere), doc);
                failed = rewritten.push(record).err().or(failed.take());
            });
            if let Some(error) = failed {
                return Err(error.into());
            }
        }
    }
    let mut tests = Sorter::<Test>::new(sort(2))?;
    let mut plain = plain.finish()?.peekable();
    // The document at the outcome of a rewriting, or else the first that the same rule leads there.
    let mut current: Option<(Outcome, DocId)> = None;
    for entry in rewritten.finish()? {
        let (outcome, rules, from) = entry?;
        let to = match current {
            Some((key, to)) if key == (outcome, rules) => to,
            _ => {
                while plain.next_if(|entry| entry.as_ref().is_ok_and(|entry| entry.0 < outcome)).is_some() {}
                let there = match plain.peek() {
                    Some(Ok((hash, doc))) if *hash == outcome => Some(*doc),
                    Some(Err(_)) => None,
                    _ => None,
                };
                current = Some(((outcome, rules), there.unwrap_or(from)));
                match there {
                    Some(doc) => doc,
                    None => continue,
                }
            }
        };
        let differs = u32::from(web.cluster(from) != web.cluster(to));
        for rule in [rules.0, rules.1].into_iter().filter(|rule| *rule != 0) {
            tests.push((rule, differs, from, to))?;
        }
    }
    match plain.next() {
        Some(Err(error)) => Err(error.into()),
        _ => Ok(tests),
    }
}

/// Finds out what the rules that hold are, from their examples, and writes them.
fn write(atlas: &Atlas, web: &Web, rules: Vec<Rule>, staging: &mut Staging) -> Result<u64, SimilarError> {
    let sites = Sites::read(atlas)?;
    let mut wanted = Bits::new(web.documents().into());
    for rule in &rules {
        wanted.set(rule.from);
        wanted.set(rule.to);
    }
    let pages = Pages::read(&OfAtlas(atlas, web.documents()), |doc| wanted.get(doc))?;
    let mut rows = Vec::new();
    for rule in rules {
        let (from, to) = (pages.info(rule.from).url, pages.info(rule.to).url);
        let site = web.site(rule.from);
        let mut known: HashMap<u64, (String, String, Option<String>)> = HashMap::new();
        rewritings(from, &mut String::new(), |how, _| {
            let words = || (how.kind().to_owned(), how.pattern().to_owned());
            for (of, host) in [(site, Some(sites.info(site).host.to_owned())), (None, None)] {
                let (kind, pattern) = words();
                known.insert(rule_hash(how, of), (kind, pattern, host));
            }
        });
        let Some((kind, pattern, host)) = known.remove(&rule.hash) else { continue };
        let row = UrlRuleRow {
            rule: RuleId::MIN,
            host,
            kind,
            pattern,
            support: rule.support,
            checked: rule.checked,
            confidence: rule.confidence(),
            example_from: without_user(from).into_owned(),
            example_to: without_user(to).into_owned(),
        };
        rows.push((rule.from, row));
    }
    // Rules that hold everywhere come before those of a host.
    rows.sort_by(|(a_from, a), (b_from, b)| {
        let key = |from: DocId, row: &UrlRuleRow| (std::cmp::Reverse(row.support), from);
        let words = |row: &UrlRuleRow| (row.kind.clone(), row.pattern.clone(), row.host.clone());
        key(*a_from, a).cmp(&key(*b_from, b)).then_with(|| words(a).cmp(&words(b)))
    });
    for (number, (_, row)) in RuleId::MIN.onward().zip(&mut rows) {
        row.rule = number;
        staging.url_rules()?.push(row)?;
    }
    Ok(rows.len() as u64)
}
