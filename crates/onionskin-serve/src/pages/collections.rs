//! Collections: what is mirrored where, how complete, and what differs.

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::routing::get;
use onionskin_core::{CollectionId, ReplicaId, SlotId};
use onionskin_search::{Place, Role};
use onionskin_store::TableName;
use onionskin_store::table::{CollectionGroupRow, CollectionRow};
use serde::Deserialize;
use std::collections::BTreeMap;

use crate::error::ServeError;
use crate::lanes::Lane;
use crate::layout::{Chrome, Page, Rendered, Section, grouped};
use crate::library::{CollectionFilter, CollectionSort, Library};
use crate::pages::clusters::Choices;
use crate::picture::Picture;
use crate::state::AppState;
use crate::view::{self, DocLine, Pager, href, percent, shortened};

/// Rows on a page.
const SIZE: usize = 50;

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/collections", get(collections))
        .route("/collections/{group}", get(collection))
        .route("/collections/{group}/replicas", get(replicas))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    sort: String,
    kind: String,
    /// A part of the name.
    name: String,
    /// Small ones too.
    noise: String,
    page: String,
}

/// Labels of orders.
fn sort_label(sort: CollectionSort) -> &'static str {
    match sort {
        CollectionSort::Pages => "most copied pages",
        CollectionSort::Replicas => "most replicas",
        CollectionSort::Slots => "largest",
        CollectionSort::Bytes => "most copied bytes",
    }
}

struct GroupLine {
    row: CollectionGroupRow,
    bytes: String,
}

#[derive(Template)]
#[template(path = "collections.html")]
struct CollectionsPage {
    chrome: Chrome,
    asked: Asked,
    sorts: Choices,
    kinds: Vec<(String, u64, bool)>,
    rows: Vec<GroupLine>,
    pager: Pager,
    noise: u64,
    has_collections: bool,
}

async fn collections(State(state): State<AppState>, Query(asked): Query<Asked>) -> Rendered<CollectionsPage> {
    let chrome = Chrome::new(&state, Section::Collections, "Collections");
    let work = move |library: &Library| {
        // What is not known is as if nothing were said.
        let sort = CollectionSort::find(&asked.sort).unwrap_or_default();
        let only = CollectionFilter { kind: &asked.kind, name: &asked.name, noise: !asked.noise.is_empty() };
        let groups = library.collections(sort, only);
        let link = |page: usize| {
            let page = page.to_string();
            let Asked { sort, kind, name, noise, .. } = &asked;
            href(
                "/collections",
                &[("sort", sort), ("kind", kind), ("name", name), ("noise", noise), ("page", &page)],
            )
        };
        let (pager, range) = Pager::new(groups.len(), asked.page.parse().unwrap_or(1), SIZE, link);
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        for row in library.copies().groups() {
            *kinds.entry(row.kind.as_str()).or_default() += 1;
        }
        let kinds = kinds.into_iter().map(|(kind, n)| (kind.to_owned(), n, kind == asked.kind));
        let row = |row: &&CollectionGroupRow| GroupLine {
            bytes: view::bytes(row.duplicate_bytes),
            row: (*row).clone(),
        };
        Ok(CollectionsPage {
            chrome,
            sorts: CollectionSort::ALL
                .map(|sort| (sort.as_str(), sort_label(sort), sort.as_str() == asked.sort))
                .to_vec(),
            kinds: kinds.collect(),
            rows: groups[range].iter().map(row).collect(),
            pager,
            noise: library.copies().groups().iter().filter(|row| row.is_noise).count() as u64,
            has_collections: library.atlas().has(&TableName::CollectionGroups),
            asked,
        })
    };
    state.read(Lane::Lists, work).await.map(Page)
}

struct ReplicaLine {
    row: CollectionRow,
    root: DocLine,
    folder: String,
    coverage: String,
    bytes: String,
}

#[derive(Template)]
#[template(path = "collection.html")]
struct CollectionPage {
    chrome: Chrome,
    group: CollectionGroupRow,
    duplicate_bytes: String,
    principal: ReplicaId,
    replicas: Vec<ReplicaLine>,
    pager: Pager,
    picture: Option<Picture>,
}

/// The number of the copy that the others are measured by.
fn principal_of(library: &Library, group: CollectionId) -> ReplicaId {
    let replicas = library.copies().replicas(group);
    replicas
        .iter()
        .find(|row| row.is_principal)
        .or(replicas.first())
        .map_or(ReplicaId::MIN, |row| row.replica)
}

async fn collection(
    State(state): State<AppState>,
    Path(group): Path<CollectionId>,
    Query(asked): Query<Asked>,
) -> Rendered<CollectionPage> {
    let chrome = Chrome::new(&state, Section::Collections, "");
    let work = move |library: &Library| {
        let row = library.collection(group)?.clone();
        let rows = library.copies().replicas(group);
        let link = |page: usize| href(&format!("/collections/{group}"), &[("page", &page.to_string())]);
        let (pager, range) = Pager::new(rows.len(), asked.page.parse().unwrap_or(1), SIZE, link);
        let replicas = rows[range].iter().map(|row| {
            Ok::<_, ServeError>(ReplicaLine {
                root: DocLine::of(library.index(), row.root_doc)?,
                folder: shortened(&row.folder, 80),
                coverage: percent(row.coverage),
                bytes: view::bytes(row.bytes),
                row: row.clone(),
            })
        });
        let principal = principal_of(library, group);
        Ok::<_, ServeError>(CollectionPage {
            chrome: Chrome { title: shortened(&row.name, 80), ..chrome },
            duplicate_bytes: view::bytes(row.duplicate_bytes),
            principal,
            replicas: replicas.collect::<Result<_, _>>()?,
            pager,
            picture: Picture::of(library, group, principal)?,
            group: row,
        })
    };
    state.read(Lane::Lists, work).await.map(Page)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pairing {
    a: String,
    b: String,
    only: String,
    page: String,
}

/// What becomes of a page from one replica to another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Same,
    Changed,
    OnlyFirst,
    OnlySecond,
}

impl Change {
    const ALL: [(Change, &'static str, &'static str); 4] = [
        (Change::Same, "same", "in both"),
        (Change::Changed, "changed", "changed"),
        (Change::OnlyFirst, "first", "only in the first"),
        (Change::OnlySecond, "second", "only in the second"),
    ];

    fn of(a: Option<&Place>, b: Option<&Place>) -> Change {
        match (a, b) {
            (Some(a), Some(b)) if a.role == Role::Changed || b.role == Role::Changed => Change::Changed,
            (Some(_), Some(_)) => Change::Same,
            (Some(_), None) => Change::OnlyFirst,
            _ => Change::OnlySecond,
        }
    }

    fn label(self) -> &'static str {
        Change::ALL.iter().find(|(change, ..)| *change == self).map_or("", |(_, _, label)| label)
    }
}

struct SlotLine {
    slot: SlotId,
    a: Option<DocLine>,
    b: Option<DocLine>,
    change: &'static str,
    compare: Option<String>,
}

#[derive(Template)]
#[template(path = "replicas.html")]
struct ReplicasPage {
    chrome: Chrome,
    group: CollectionGroupRow,
    /// The replicas that can be chosen: number, name, whether it is the first, the second.
    choices: Vec<(ReplicaId, String, bool, bool)>,
    /// Changes: name, label, how many, whether only they are shown.
    changes: Vec<(&'static str, String, bool)>,
    rows: Vec<SlotLine>,
    pager: Pager,
}

async fn replicas(
    State(state): State<AppState>,
    Path(group): Path<CollectionId>,
    Query(asked): Query<Pairing>,
) -> Rendered<ReplicasPage> {
    let chrome = Chrome::new(&state, Section::Collections, "Replicas side by side");
    let work = move |library: &Library| side_by_side(library, chrome, group, asked);
    state.read(Lane::Lists, work).await.map(Page)
}

/// Pages of a replica by slot, second addresses and pages of others left out.
fn own_pages(library: &Library, group: CollectionId, replica: ReplicaId) -> BTreeMap<SlotId, Place> {
    let pages = library.copies().pages(group).iter().filter(|page| page.replica == replica);
    let pages = pages.filter(|page| !matches!(page.role, Role::Alias | Role::Virtual));
    pages.map(|page| (page.slot, *page)).collect()
}

fn side_by_side(
    library: &Library,
    chrome: Chrome,
    group: CollectionId,
    asked: Pairing,
) -> Result<ReplicasPage, ServeError> {
    let row = library.collection(group)?.clone();
    let replicas = library.copies().replicas(group);
    let known = |text: &str| {
        let number = text.parse::<ReplicaId>().ok()?;
        replicas.iter().any(|row| row.replica == number).then_some(number)
    };
    let a = known(&asked.a).unwrap_or_else(|| principal_of(library, group));
    let other = replicas.iter().find(|row| row.replica != a).map_or(a, |row| row.replica);
    let b = known(&asked.b).unwrap_or(other);
    let (pages_a, pages_b) = (own_pages(library, group, a), own_pages(library, group, b));
    let mut slots: Vec<SlotId> = pages_a.keys().chain(pages_b.keys()).copied().collect();
    slots.sort_unstable();
    slots.dedup();
    let change_of = |slot: &SlotId| Change::of(pages_a.get(slot), pages_b.get(slot));
    let changes = Change::ALL.map(|(change, name, label)| {
        let n = slots.iter().filter(|slot| change_of(slot) == change).count() as u64;
        (name, format!("{label} ({})", grouped(n)), name == asked.only)
    });
    if let Some((only, ..)) = Change::ALL.iter().find(|(_, name, _)| *name == asked.only) {
        slots.retain(|slot| change_of(slot) == *only);
    }
    let (first, second) = (a.to_string(), b.to_string());
    let link = |page: usize| {
        let page = page.to_string();
        href(
            &format!("/collections/{group}/replicas"),
            &[("a", &first), ("b", &second), ("only", &asked.only), ("page", &page)],
        )
    };
    let (pager, range) = Pager::new(slots.len(), asked.page.parse().unwrap_or(1), SIZE, link);
    let line = |pages: &BTreeMap<SlotId, Place>, slot: &SlotId| {
        pages.get(slot).map(|page| DocLine::of(library.index(), page.doc)).transpose()
    };
    let mut rows = Vec::new();
    for slot in &slots[range] {
        let (a, b) = (line(&pages_a, slot)?, line(&pages_b, slot)?);
        let both = a.as_ref().zip(b.as_ref());
        let compare = both.map(|(a, b)| format!("/compare?a={}&b={}", a.doc, b.doc));
        rows.push(SlotLine { slot: *slot, a, b, change: change_of(slot).label(), compare });
    }
    let choices = replicas.iter().map(|row| {
        let name = row.root_url.as_deref().map_or_else(|| row.folder.clone(), |url| shortened(url, 70));
        let name = if row.is_principal { format!("{name} (principal)") } else { name };
        (row.replica, name, row.replica == a, row.replica == b)
    });
    Ok(ReplicasPage {
        chrome,
        choices: choices.collect(),
        changes: changes.to_vec(),
        rows,
        pager,
        group: row,
    })
}
