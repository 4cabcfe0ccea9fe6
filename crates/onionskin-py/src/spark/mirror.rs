//! Kernels of the search for mirrors.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, ListBuilder, StringBuilder,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::ArrowError;
use onionskin::mirror::parts::{self as parts, Component, PageRow};
use onionskin_mirror::grow::Growth;
use onionskin_mirror::{Merge, Role};
use onionskin_similar::Resources;
use onionskin_store::MemoryBudget;
use pyo3::prelude::*;

use super::columns::Columns;
use super::{MadeRows, failed, longs, refused, rows_of, table};

fn growth(merge: &str, single_site: bool) -> PyResult<Growth> {
    Ok(Growth { merge: merge.parse::<Merge>().map_err(refused)?, single_site })
}

/// Which trivial clusters come together, all in one task: rows of documents (`is_link` false: doc,
/// cluster, site) and of links (true: from, to) to (cluster, component).
#[pyfunction]
pub(super) fn components(
    data: &Bound<'_, PyAny>,
    merge: &str,
    single_site: bool,
    memory: u64,
) -> PyResult<MadeRows> {
    let growth = growth(merge, single_site)?;
    let (mut documents, mut links) = (Vec::new(), Vec::new());
    for batch in rows_of(data)? {
        let columns = Columns(&batch);
        let is_link = flags(&columns, "is_link").map_err(failed)?;
        let (a, b) = (columns.longs("a").map_err(failed)?, columns.longs("b").map_err(failed)?);
        let site = columns.maybe_longs("site").map_err(failed)?;
        for row in 0..batch.num_rows() {
            if is_link[row] {
                links.push((a.value(row), b.value(row)));
            } else {
                documents.push((a.value(row), b.value(row), site[row]));
            }
        }
    }
    let work = tempfile::tempdir()?;
    let memory = MemoryBudget::from_bytes(memory.max(1 << 26));
    let resources = Resources { memory, threads: 1, work_dir: work.path().to_owned() };
    let found =
        data.py().detach(|| parts::components(&documents, &links, growth, &resources)).map_err(refused)?;
    let columns = vec![
        ("cluster", longs(found.iter().map(|entry| entry.0))),
        ("component", longs(found.iter().map(|entry| entry.1))),
    ];
    Ok(MadeRows(table(columns).map_err(failed)?))
}

fn flags(columns: &Columns<'_>, name: &str) -> Result<Vec<bool>, ArrowError> {
    let column = columns.get(name)?;
    let flags = column.as_any().downcast_ref::<arrow_array::BooleanArray>();
    let flags = flags.ok_or_else(|| ArrowError::SchemaError(format!("column {name} is not of flags")))?;
    Ok((0..flags.len()).map(|row| flags.is_valid(row) && flags.value(row)).collect())
}

/// Components out of rows of pages and of links.
fn read(batches: &[RecordBatch]) -> Result<BTreeMap<i64, Component>, ArrowError> {
    let mut found: BTreeMap<i64, Component> = BTreeMap::new();
    for batch in batches {
        let columns = Columns(batch);
        let (component, is_link) = (columns.longs("component")?, flags(&columns, "is_link")?);
        let (doc, to) = (columns.longs("doc")?, columns.maybe_longs("to")?);
        let (cluster, site) = (columns.maybe_longs("cluster")?, columns.maybe_longs("site")?);
        let (linked_from, site_pages) =
            (columns.maybe_longs("linked_from")?, columns.maybe_longs("site_pages")?);
        let (bytes, fetched_at, text_fp) = (
            columns.maybe_longs("bytes")?,
            columns.maybe_longs("fetched_at")?,
            columns.maybe_longs("text_fp")?,
        );
        let (url, title) = (columns.texts("url")?, columns.texts("title")?);
        let (canonical, voters) = (columns.texts("canonical_url")?, columns.texts("voters")?);
        let (host, domain) = (columns.texts("host")?, columns.texts("domain")?);
        let (group, replica) = (columns.maybe_longs("group")?, columns.maybe_longs("replica")?);
        let small = |value: Option<i64>| u32::try_from(value.unwrap_or(0)).unwrap_or(u32::MAX);
        for row in 0..batch.num_rows() {
            let home = found.entry(component.value(row)).or_default();
            if is_link[row] {
                home.links.extend(to[row].map(|to| (doc.value(row), to)));
                continue;
            }
            home.pages.push(PageRow {
                doc: doc.value(row),
                cluster: cluster[row],
                site: site[row],
                linked_from: small(linked_from[row]),
                // Domains have no spaces in them.
                voters: voters
                    .get(row)
                    .into_iter()
                    .flat_map(str::split_whitespace)
                    .map(str::to_owned)
                    .collect(),
                url: url.get(row).map(str::to_owned),
                title: title.get(row).map(str::to_owned),
                canonical_url: canonical.get(row).map(str::to_owned),
                bytes: bytes[row].unwrap_or(0) as u64,
                fetched_at: fetched_at[row],
                text_fp: text_fp[row].map(|text| text as u64),
                host: host.get(row).map(str::to_owned),
                domain: domain.get(row).map(str::to_owned),
                site_pages: small(site_pages[row]),
                near: group[row]
                    .zip(replica[row])
                    .map(|(group, replica)| (group as u32, replica as u32))
                    .into_iter()
                    .collect(),
            });
        }
    }
    // A page that is near several replicas came once for each.
    for component in found.values_mut() {
        component.pages.sort_by_key(|page| page.doc);
        component.pages.dedup_by(|later, first| {
            let same = later.doc == first.doc && first.cluster.is_none() && later.cluster.is_none();
            if same {
                first.near.append(&mut later.near);
            }
            same
        });
    }
    Ok(found)
}

/// Where the replicas of components stand: one row for every folder with pages of a replica.
#[pyfunction]
pub(super) fn regions(data: &Bound<'_, PyAny>, merge: &str, single_site: bool) -> PyResult<MadeRows> {
    let growth = growth(merge, single_site)?;
    let batches = rows_of(data)?;
    let made = data.py().detach(|| -> Result<RecordBatch, String> {
        let mut ids: [Int64Builder; 5] = Default::default();
        let (mut folders, mut own_folders) = (StringBuilder::new(), StringBuilder::new());
        for (name, component) in read(&batches).map_err(|error| error.to_string())? {
            for region in parts::regions(component, growth).map_err(|error| error.to_string())? {
                for (folder, own) in &region.own {
                    let numbers =
                        [name, region.group.into(), region.replica.into(), region.site, *own as i64];
                    ids.iter_mut().zip(numbers).for_each(|(column, number)| column.append_value(number));
                    folders.append_value(&region.folder);
                    own_folders.append_value(folder);
                }
            }
        }
        let [component, group, replica, site, own] = ids.map(|mut column| Arc::new(column.finish()) as _);
        let columns = vec![
            ("component", component),
            ("group", group),
            ("replica", replica),
            ("site", site),
            ("folder", Arc::new(folders.finish()) as _),
            ("own_folder", Arc::new(own_folders.finish()) as _),
            ("own", own),
        ];
        table(columns).map_err(|error| error.to_string())
    });
    Ok(MadeRows(made.map_err(refused)?))
}

/// The collections of components: rows of groups (`what` 0), of replicas (1) and of pages (2), in
/// one table; absent columns are null.
#[pyfunction]
pub(super) fn collections(data: &Bound<'_, PyAny>, merge: &str, single_site: bool) -> PyResult<MadeRows> {
    let growth = growth(merge, single_site)?;
    let batches = rows_of(data)?;
    let made = data.py().detach(|| -> Result<RecordBatch, String> {
        let mut rows = CollectionRows::default();
        for (name, component) in read(&batches).map_err(|error| error.to_string())? {
            let found = parts::collections(component, growth).map_err(|error| error.to_string())?;
            for (nth, collection) in (0..).zip(&found) {
                rows.push(name, nth, collection);
            }
        }
        rows.finish().map_err(|error| error.to_string())
    });
    Ok(MadeRows(made.map_err(refused)?))
}

/// Numbers of a row, under the names of their fields.
macro_rules! sizes {
    ($row:ident: $($field:ident),+) => { [$((stringify!($field), $row.$field as i64)),+] };
}

/// Words of a row, likewise.
macro_rules! words {
    ($row:ident: $($field:ident),+) => { [$((stringify!($field), Some($row.$field.as_str()))),+] };
}

/// Rows of the three tables side by side.
#[derive(Default)]
struct CollectionRows {
    what: Int32Builder,
    numbers: BTreeMap<&'static str, Int64Builder>,
    texts: BTreeMap<&'static str, StringBuilder>,
    flags: BTreeMap<&'static str, BooleanBuilder>,
    coverage: Float64Builder,
}

const NUMBERS: [&str; 19] = [
    "component",
    "nth",
    "replicas",
    "slots",
    "sites",
    "pages",
    "bytes",
    "duplicate_pages",
    "duplicate_bytes",
    "replica",
    "site",
    "root_doc",
    "copies",
    "changed",
    "added",
    "missing",
    "virtual_pages",
    "slot",
    "doc",
];
const TEXTS: [&str; 9] = [
    "kind",
    "name",
    "evidence",
    "principal_reason",
    "principal_evidence",
    "root_url",
    "folder",
    "newer",
    "role",
];
const FLAGS: [&str; 3] = ["is_noise", "is_principal", "is_virtual"];

impl CollectionRows {
    fn row(
        &mut self,
        what: i32,
        numbers: &[(&'static str, i64)],
        texts: &[(&'static str, Option<&str>)],
        flags: &[(&'static str, bool)],
        coverage: Option<f64>,
    ) {
        self.what.append_value(what);
        for name in NUMBERS {
            let value = numbers.iter().find(|entry| entry.0 == name).map(|entry| entry.1);
            self.numbers.entry(name).or_default().append_option(value);
        }
        for name in TEXTS {
            let value = texts.iter().find(|entry| entry.0 == name).and_then(|entry| entry.1);
            self.texts.entry(name).or_default().append_option(value);
        }
        for name in FLAGS {
            let value = flags.iter().find(|entry| entry.0 == name).map(|entry| entry.1);
            self.flags.entry(name).or_default().append_option(value);
        }
        self.coverage.append_option(coverage);
    }

    fn push(&mut self, component: i64, nth: i64, collection: &parts::Collection) {
        let group = &collection.group;
        let home = [("component", component), ("nth", nth)];
        let mut numbers = home.to_vec();
        numbers.extend(sizes!(
            group: replicas, slots, sites, pages, bytes, duplicate_pages, duplicate_bytes
        ));
        let [kind, name, evidence] = words!(group: kind, name, evidence);
        let texts = [
            kind,
            name,
            evidence,
            ("principal_reason", group.principal_reason.map(|reason| reason.as_str())),
            ("principal_evidence", group.principal_evidence.as_deref()),
        ];
        self.row(0, &numbers, &texts, &[("is_noise", group.is_noise)], None);
        for (replica, site, root) in &collection.replicas {
            let mut numbers = home.to_vec();
            numbers.extend([("replica", replica.replica.into()), ("site", *site), ("root_doc", *root)]);
            numbers.extend(sizes!(
                replica: pages, copies, changed, added, missing, virtual_pages, bytes
            ));
            let mut texts = vec![("root_url", replica.root_url.as_deref())];
            texts.extend(words!(replica: folder, kind, newer));
            let flags = [("is_principal", replica.is_principal)];
            self.row(1, &numbers, &texts, &flags, Some(replica.coverage));
        }
        for member in &collection.members {
            let mut numbers = home.to_vec();
            numbers.extend([
                ("replica", member.replica.into()),
                ("slot", member.slot.into()),
                ("doc", member.doc),
            ]);
            let flags = [("is_virtual", member.role == Role::Virtual)];
            self.row(2, &numbers, &[("role", Some(member.role.as_str()))], &flags, None);
        }
    }

    fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let mut columns: Vec<(&str, arrow_array::ArrayRef)> = vec![("what", Arc::new(self.what.finish()))];
        for name in NUMBERS {
            columns.push((name, Arc::new(self.numbers.entry(name).or_default().finish())));
        }
        for name in TEXTS {
            columns.push((name, Arc::new(self.texts.entry(name).or_default().finish())));
        }
        for name in FLAGS {
            columns.push((name, Arc::new(self.flags.entry(name).or_default().finish())));
        }
        columns.push(("coverage", Arc::new(self.coverage.finish())));
        table(columns)
    }
}

/// The domains that hosts vote for: (site, host) to (site, voter), sites without a vote left out.
#[pyfunction]
pub(super) fn voters(data: &Bound<'_, PyAny>) -> PyResult<MadeRows> {
    let (mut sites, mut voters) = (Vec::new(), StringBuilder::new());
    for batch in rows_of(data)? {
        let columns = Columns(&batch);
        let (site, host) = (columns.longs("site").map_err(failed)?, columns.texts("host").map_err(failed)?);
        for row in 0..batch.num_rows() {
            if let Some(voter) = host.get(row).and_then(parts::voter) {
                sites.push(site.value(row));
                voters.append_value(voter);
            }
        }
    }
    let columns = vec![("site", longs(sites)), ("voter", Arc::new(voters.finish()) as _)];
    Ok(MadeRows(table(columns).map_err(failed)?))
}

/// The folders above pages: (doc, site, url) to (doc, site, own_folder, folder, depth), the deepest
/// folder first.
#[pyfunction]
pub(super) fn folders(data: &Bound<'_, PyAny>) -> PyResult<MadeRows> {
    let batches = rows_of(data)?;
    let made = data.py().detach(|| -> Result<RecordBatch, ArrowError> {
        let (mut docs, mut sites, mut depths) = (Vec::new(), Vec::new(), Vec::new());
        let (mut own, mut above) = (StringBuilder::new(), StringBuilder::new());
        for batch in &batches {
            let columns = Columns(batch);
            let (doc, site, url) = (columns.longs("doc")?, columns.longs("site")?, columns.texts("url")?);
            for row in 0..batch.num_rows() {
                let Some(url) = url.get(row) else { continue };
                let deepest = parts::folders(url).next().unwrap_or("/");
                for (depth, folder) in (0..).zip(parts::folders(url)) {
                    docs.push(doc.value(row));
                    sites.push(site.value(row));
                    depths.push(depth);
                    own.append_value(deepest);
                    above.append_value(folder);
                }
            }
        }
        table(vec![
            ("doc", longs(docs)),
            ("site", longs(sites)),
            ("own_folder", Arc::new(own.finish())),
            ("folder", Arc::new(above.finish())),
            ("depth", longs(depths)),
        ])
    });
    Ok(MadeRows(made.map_err(failed)?))
}

/// All rewritings of addresses: (doc, site, url) to (doc, site, kinds, patterns, general,
/// outcomes), lists of equal length.
#[pyfunction]
pub(super) fn rewritings(data: &Bound<'_, PyAny>) -> PyResult<MadeRows> {
    let batches = rows_of(data)?;
    let made = data.py().detach(|| -> Result<RecordBatch, ArrowError> {
        let (mut docs, mut sites) = (Vec::new(), Vec::new());
        let mut lists: [ListBuilder<StringBuilder>; 3] =
            std::array::from_fn(|_| ListBuilder::new(StringBuilder::new()));
        let mut general = ListBuilder::new(BooleanBuilder::new());
        for batch in &batches {
            let columns = Columns(batch);
            let (doc, site, url) = (columns.longs("doc")?, columns.longs("site")?, columns.texts("url")?);
            for row in 0..batch.num_rows() {
                let found = url.get(row).map(parts::rewritings).unwrap_or_default();
                if found.is_empty() {
                    continue;
                }
                docs.push(doc.value(row));
                sites.push(site.value(row));
                for how in &found {
                    let words = [&how.kind, &how.pattern, &how.outcome];
                    lists.iter_mut().zip(words).for_each(|(list, word)| list.values().append_value(word));
                    general.values().append_value(how.is_general);
                }
                lists.iter_mut().for_each(|list| list.append(true));
                general.append(true);
            }
        }
        let [kinds, patterns, outcomes] = lists.map(|mut list| Arc::new(list.finish()) as _);
        table(vec![
            ("doc", longs(docs)),
            ("site", longs(sites)),
            ("kinds", kinds),
            ("patterns", patterns),
            ("general", Arc::new(general.finish()) as _),
            ("outcomes", outcomes),
        ])
    });
    Ok(MadeRows(made.map_err(failed)?))
}
