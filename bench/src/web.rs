//! A web of any size as an atlas, without texts: what the search for mirrors reads.
//!
//! Four pages in ten stand in mirrored collections, of sizes and cardinalities that follow Zipf's
//! law; the rest are ordinary sites. A page links to its parent, its children, the home page, some
//! pages of its site, and now and then to another site. In a mirror one page in thirty-three was
//! rewritten and one link in fifty is gone, so that nothing is replicated strictly.

use std::path::Path;

use anyhow::Context;
use onionskin_core::{DocId, SiteId};
use onionskin_store::table::{DocumentRow, Method, PairRow, SiteRow};
use onionskin_store::{StageName, StageParams, Staging, Table};
use serde_json::json;

/// Children of a page.
const FAN: u64 = 8;

/// Numbers that look random, the same every time.
fn hash(words: [u64; 3]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |state, word| {
        let mixed = (state ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (mixed >> 32)
    })
}

/// From `least` to `most`, the small ones often: frequency falls with the square.
fn zipf(random: u64, least: u64, most: u64) -> u64 {
    let u = ((random >> 11) as f64 / (1u64 << 53) as f64).max(1e-12);
    let (low, high) = (least as f64, most as f64);
    (1.0 / (u / low + (1.0 - u) / high)) as u64
}

struct Site {
    first: u64,
    pages: u64,
    /// Sites of one structure are copies of each other.
    structure: u64,
    number: u64,
}

impl Site {
    fn is_rewritten(&self, page: u64, is_copy: bool) -> bool {
        is_copy && hash([self.number, page, 1]).is_multiple_of(33)
    }

    /// Pages that a page links to, in order.
    fn links(&self, page: u64, per_page: u64, n_pages: u64, out: &mut Vec<u64>) {
        out.clear();
        let inside = |to: u64| self.first + to;
        out.push(inside(0));
        if page > 0 {
            out.push(inside((page - 1) / FAN));
        }
        for child in page * FAN + 1..=page * FAN + FAN {
            if child < self.pages {
                out.push(inside(child));
            }
        }
        for nth in 0..per_page.saturating_sub(4) {
            let to = hash([self.structure, page, 10 + nth]) % self.pages;
            if !hash([self.number, page, 10 + nth]).is_multiple_of(50) {
                out.push(inside(to));
            }
        }
        out.push(zipf(hash([self.number, page, 2]), 1, n_pages) - 1);
        out.sort_unstable();
        out.dedup();
        out.retain(|to| *to != self.first + page);
    }
}

/// The sites, and for each structure that has copies its sites, the first one first.
fn plan(n_pages: u64) -> (Vec<Site>, Vec<Vec<usize>>) {
    let (mut sites, mut mirrored) = (Vec::new(), Vec::new());
    let (mut first, mut structure) = (0, 0);
    while first < n_pages {
        structure += 1;
        let is_mirrored = structure % 4 == 0;
        let pages = zipf(hash([structure, 3, 0]), 20, 20_000);
        let copies = if is_mirrored { zipf(hash([structure, 4, 0]), 2, 200) } else { 1 };
        let mut here = Vec::new();
        for _ in 0..copies {
            let pages = pages.min(n_pages - first);
            if pages < 2 {
                first = n_pages;
                break;
            }
            here.push(sites.len());
            sites.push(Site { first, pages, structure, number: sites.len() as u64 });
            first += pages;
        }
        if here.len() > 1 {
            mirrored.push(here);
        }
    }
    (sites, mirrored)
}

/// Writes the atlas and tells what is in it.
pub(crate) fn write(n_pages: u64, per_page: u64, atlas: &Path) -> anyhow::Result<()> {
    let (sites, mirrored) = plan(n_pages);
    let tables = vec![Table::Documents, Table::Sites, Table::Links, Table::Pairs];
    let job = json!({ "pages": n_pages, "links": per_page });
    let mut params = StageParams::new(StageName::Scan, job, "w4-rabin64", tables);
    params.overwrite = true;
    let (mut staging, _) = Staging::open(atlas, params)?;
    let (mut n_links, mut n_pairs, mut links) = (0u64, 0u64, Vec::new());
    for site in &sites {
        let host = format!("www.h{}.example", site.number);
        let domain = &host[4..];
        let number = SiteId(u32::try_from(site.number)?);
        let row = SiteRow { site: number, host: &host, registered_domain: Some(domain) };
        staging.sites()?.push(&row)?;
        for page in 0..site.pages {
            let doc = DocId(u32::try_from(site.first + page).context("too many pages")?);
            let url = match page {
                0 => format!("http://{host}/"),
                _ => format!("http://{host}/d{}/p{page}.html", (page - 1) / FAN),
            };
            staging.documents()?.push(&DocumentRow {
                doc,
                url: Some(&url),
                site: Some(row.site),
                source: "web",
                offset: doc.into(),
                media_type: "text/html",
                bytes: 4_000,
                tokens: 300,
                text_fp: Some(hash([site.structure, page, 5])),
                ..DocumentRow::default()
            })?;
            site.links(page, per_page, n_pages, &mut links);
            n_links += links.len() as u64;
            for &to in &links {
                staging.links()?.push(doc, DocId(u32::try_from(to)?))?;
            }
        }
    }
    for copies in &mirrored {
        let target = &sites[copies[0]];
        for page in 0..target.pages {
            for site in copies[1..].iter().map(|&at| &sites[at]) {
                if page >= site.pages || site.is_rewritten(page, true) {
                    continue;
                }
                n_pairs += 1;
                staging.pairs()?.push(&PairRow {
                    a: DocId(u32::try_from(target.first + page)?),
                    b: DocId(u32::try_from(site.first + page)?),
                    shared: 1,
                    resemblance: 1.0,
                    containment_a: 1.0,
                    containment_b: 1.0,
                    method: Method::Exact,
                })?;
            }
        }
    }
    staging.commit(json!({}))?;
    staging.publish(|_| {})?;
    let copies: usize = mirrored.iter().map(Vec::len).sum();
    let line = json!({
        "pages": n_pages,
        "sites": sites.len(),
        "links": n_links,
        "pairs": n_pairs,
        "collections": mirrored.len(),
        "copies": copies,
    });
    println!("{line}");
    Ok(())
}
