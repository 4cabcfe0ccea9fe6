//! An atlas, ready to be asked: full text, clusters, collections, links.

mod selection;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use onionskin::Progress;
use onionskin::avoid::{Alternate, AvoidParams, AvoidReport, Why, alternate, avoid};
use onionskin::explain::{
    Comparison, DocRef, ExplainError, ExplainLimits, ExplainParams, Explanation, explain_in,
};
use onionskin::scan::texts::{LostInput, TextsParams};
use onionskin_core::{CollectionId, DocId, Recipe};
use onionskin_extract::url::without_user;
use onionskin_search::{BuildParams, Copies, Index, Query, Results, Role, SearchError, SearchParams};
use onionskin_store::table::CopyKind;
use onionskin_store::{Atlas, MemoryBudget};

use crate::error::ServeError;
use crate::links::Links;
pub(crate) use selection::{ClusterFilter, ClusterSort, CollectionFilter, CollectionSort};

/// How to open an atlas.
#[derive(Clone, Debug)]
pub struct LibraryParams {
    /// The folder of the atlas.
    pub atlas: PathBuf,
    /// Where inputs with relative names are.
    pub base: Option<PathBuf>,
    /// The command that reads PDF files apart from this process.
    pub pdf_worker: Vec<String>,
    /// Where the full-text index is; in the atlas when not given.
    pub index: Option<PathBuf>,
    /// Whether the index is made although there is one.
    pub reindex: bool,
    /// Memory for all of it.
    pub memory: MemoryBudget,
    /// What comparing two documents may cost.
    pub compared: ExplainLimits,
}

/// An atlas before it can be asked: its full-text index is open where there is one that fits.
pub struct Unopened {
    params: LibraryParams,
    atlas: Atlas,
    index: Option<Index>,
}

impl Unopened {
    /// Of any atlas whose index is there, as measured.
    const LEAST_MEMORY: MemoryBudget = MemoryBudget::from_mib(48);

    /// Opens the atlas and the index. All files of an index are read to compare their checksums, so
    /// this is done once.
    pub fn new(params: LibraryParams) -> Result<Unopened, SearchError> {
        let atlas = Atlas::open(&params.atlas)?;
        let index = if params.reindex {
            None
        } else {
            let log = |error: &SearchError| tracing::info!(reason = %error, "the full-text index is made");
            Index::open(&atlas, params.index.as_deref()).inspect_err(log).ok()
        };
        Ok(Unopened { params, atlas, index })
    }

    /// The memory that serving this atlas takes at least, by the rows of its tables and by whether
    /// the full-text index has to be made.
    pub fn least_memory(&self) -> MemoryBudget {
        let copies = MemoryBudget::from_bytes(Copies::bytes(&self.atlas).saturating_mul(2));
        let is_made = self.index.is_none();
        copies.max(if is_made { BuildParams::LEAST_MEMORY } else { Unopened::LEAST_MEMORY })
    }
}

/// Bytes of an answer that is remembered, about: ten results with their snippets.
const REMEMBERED_BYTES: u64 = 8 << 10;

/// An atlas with everything that pages and programs ask of it.
pub struct Library {
    params: LibraryParams,
    atlas: Atlas,
    index: Index,
    copies: Copies,
    links: Option<Links>,
    recipe: Option<Recipe>,
    lost: Vec<LostInput>,
    /// What the next crawl can skip, made when it is first asked for.
    avoid: Mutex<Option<Arc<AvoidReport>>>,
    remembered: Mutex<lru::LruCache<(Query, SearchParams), Arc<Results>>>,
}

impl Library {
    /// Opens an atlas; the full-text index is made where there is none that fits.
    pub fn open(params: LibraryParams, progress: &dyn Progress) -> Result<Library, SearchError> {
        Library::of(Unopened::new(params)?, progress)
    }

    /// The same, of an atlas that has been looked at.
    pub fn of(unopened: Unopened, progress: &dyn Progress) -> Result<Library, SearchError> {
        let Unopened { params, atlas, index } = unopened;
        let (index, built) = match index {
            Some(index) => (index, None),
            None => {
                let texts = TextsParams {
                    base: params.base.clone(),
                    pdf_worker: params.pdf_worker.clone(),
                    memory: None,
                };
                let build = BuildParams { texts, memory: params.memory, folder: params.index.clone() };
                let built = Index::build(&atlas, &build, progress)?;
                (Index::open(&atlas, params.index.as_deref())?, Some(built))
            }
        };
        let copies = Copies::read(&atlas, params.memory.share(1, 2))?;
        let links = Links::read(&atlas, params.memory.share(1, 4))?;
        let recipe = atlas.manifest().recipe.parse().ok();
        let remembered = params.memory.share(1, 16).bytes() / REMEMBERED_BYTES;
        let most = NonZeroUsize::new(remembered.clamp(256, 1 << 20) as usize).unwrap_or(NonZeroUsize::MIN);
        Ok(Library {
            params,
            atlas,
            index,
            copies,
            links,
            recipe,
            lost: built.map(|built| built.lost).unwrap_or_default(),
            avoid: Mutex::default(),
            remembered: Mutex::new(lru::LruCache::new(most)),
        })
    }

    /// The atlas.
    pub fn atlas(&self) -> &Atlas {
        &self.atlas
    }

    /// The full-text index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Clusters and collections.
    pub fn copies(&self) -> &Copies {
        &self.copies
    }

    /// Links between documents, where they fit into memory.
    pub fn links(&self) -> Option<&Links> {
        self.links.as_ref()
    }

    /// Inputs that could not be read when the index was made.
    pub fn lost_inputs(&self) -> &[LostInput] {
        &self.lost
    }

    /// Searches; the same question is answered from memory.
    pub fn search(&self, query: &Query, params: &SearchParams) -> Result<Arc<Results>, SearchError> {
        let key = (query.clone(), params.clone());
        let remembered = || self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(results) = remembered().get(&key) {
            return Ok(Arc::clone(results));
        }
        let results = Arc::new(self.index.search(&self.copies, query, params)?);
        remembered().put(key, Arc::clone(&results));
        Ok(results)
    }

    /// Why two documents are alike. Where the inputs are gone there are no texts;
    /// [`compare_stored`](Library::compare_stored) has those of the index.
    pub fn explain(&self, a: DocId, b: DocId) -> Result<Explanation, ExplainError> {
        let params = ExplainParams {
            atlas: self.params.atlas.clone(),
            a: DocRef::Doc(a),
            b: DocRef::Doc(b),
            base: self.params.base.clone(),
            pdf_worker: self.params.pdf_worker.clone(),
            limits: Some(self.params.compared),
        };
        // A stage may have been run again since.
        let newer = self.atlas.newer()?;
        explain_in(newer.as_ref().unwrap_or(&self.atlas), &params)
    }

    /// Two texts side by side, as the index has them.
    pub fn compare_stored(&self, a: DocId, b: DocId) -> Result<Option<Comparison>, SearchError> {
        let text = |doc| Ok::<_, SearchError>(self.index.page(doc)?.and_then(|page| page.text));
        Ok(match (text(a)?, text(b)?, &self.recipe) {
            (Some(a), Some(b), Some(recipe)) => {
                Some(Comparison::within(a, b, recipe, Some(&self.params.compared)))
            }
            _ => None,
        })
    }

    /// Pages that can stand in for an address, the best first. `None` when it is no address.
    pub fn alternates(&self, url: &str) -> Result<Option<Vec<Alternate>>, SearchError> {
        let Some(normal) = onionskin_extract::url::normalize(url) else { return Ok(None) };
        let docs = self.index.documents_at(&normal)?;
        let mut found: std::collections::BTreeMap<DocId, (Why, Option<f64>, Option<CollectionId>)> =
            Default::default();
        for doc in &docs {
            self.copies_of(*doc, &mut found);
        }
        found.retain(|doc, _| !docs.contains(doc));
        if docs.is_empty() {
            let replicas = self.copies.groups().iter().flat_map(|group| self.copies.replicas(group.group));
            for (place, group) in alternate::corresponding_places(replicas, &normal) {
                for doc in self.index.documents_at(&place)? {
                    found.entry(doc).or_insert((Why::SamePlace, None, Some(group)));
                }
            }
        }
        let mut alternates = Vec::new();
        for (doc, (why, resemblance, group)) in found {
            let url = self.index.page(doc)?.and_then(|page| page.url);
            let url = url.map(|url| without_user(&url).into_owned());
            if let Some(url) = url.filter(|url| *url != without_user(&normal)) {
                alternates.push(Alternate { doc, url, why, resemblance, group });
            }
        }
        alternate::rank(&mut alternates);
        Ok(Some(alternates))
    }

    /// The copies of a document in its cluster, and the same page of other replicas.
    fn copies_of(
        &self,
        doc: DocId,
        found: &mut std::collections::BTreeMap<DocId, (Why, Option<f64>, Option<CollectionId>)>,
    ) {
        let members = self.copies.cluster_of(doc).map_or(&[][..], |cluster| self.copies.members(cluster));
        let is_exact = |member: &onionskin_search::Member| member.is_centre || member.kind == CopyKind::Exact;
        let own = members.iter().any(|member| member.doc == doc && is_exact(member));
        for member in members.iter().filter(|member| member.doc != doc) {
            let same = own && is_exact(member);
            let why = if same { Why::ExactCopy } else { Why::NearCopy };
            found.insert(member.doc, (why, Some(member.resemblance), None));
        }
        for place in self.copies.places(doc).filter(|place| place.role != Role::Virtual) {
            let same = self.copies.pages(place.group).iter().filter(|page| page.slot == place.slot);
            for page in same.filter(|page| page.role != Role::Virtual && page.doc != doc) {
                found.entry(page.doc).or_insert((Why::SamePage, None, None)).2 = Some(page.group);
            }
        }
    }

    /// What the next crawl can skip; made when it is first asked for, which takes a pass over the
    /// documents. Who asks meanwhile waits for it. What failed or was given up is tried again.
    pub fn avoid(&self) -> Result<Arc<AvoidReport>, String> {
        let mut made = self.avoid.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(report) = &*made {
            return Ok(Arc::clone(report));
        }
        let mut params = AvoidParams::new(self.params.atlas.clone());
        params.memory = self.params.memory.share(1, 4);
        let report = Arc::new(avoid(&params).map_err(|error| error.to_string())?);
        Ok(Arc::clone(made.insert(report)))
    }
}

impl From<SearchError> for ServeError {
    fn from(error: SearchError) -> ServeError {
        ServeError::internal(error)
    }
}

impl From<ExplainError> for ServeError {
    fn from(error: ExplainError) -> ServeError {
        let not_found = matches!(
            error,
            ExplainError::NotFound { .. }
                | ExplainError::NoCluster { .. }
                | ExplainError::NoCollection { .. }
        );
        if not_found { ServeError::not_found(error.to_string()) } else { ServeError::internal(error) }
    }
}
