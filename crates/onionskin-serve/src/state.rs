//! What handlers share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use onionskin::explain::ExplainLimits;
use onionskin::{Progress, Quiet};
use onionskin_search::SearchError;
use onionskin_store::MemoryBudget;
use onionskin_store::cancel::{self, Cancel};
use tokio::sync::Semaphore;

use crate::api::ApiDocument;
use crate::auth::{Auth, AuthError, CLIENT};
use crate::beneath;
use crate::charge::{Charge, WorkRoom};
use crate::config::{Config, Limits};
use crate::error::{ErrorKind, ServeError};
use crate::lanes::{Lane, Lanes};
use crate::library::{Library, LibraryParams, Unopened};
use crate::metrics::Metrics;
use crate::seen::{SeenService, StartError as SeenStartError};

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Nothing to serve.
    #[error("nothing to serve: give an atlas, an index of seen documents, or both")]
    Nothing,
    /// The memory is too little for what is to be served.
    #[error("serving this needs at least {needed} of memory, and {budget} is given")]
    Memory {
        /// How much it needs.
        needed: MemoryBudget,
        /// How much there is.
        budget: MemoryBudget,
    },
    /// The atlas is no good.
    #[error(transparent)]
    Atlas(#[from] SearchError),
    /// The index of seen documents is no good.
    #[error(transparent)]
    Seen(#[from] SeenStartError),
    /// It would be open to everybody.
    #[error(transparent)]
    Auth(#[from] AuthError),
}

/// More requests than the server takes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server has too much to do at the moment")]
pub struct Busy;

impl From<Busy> for ServeError {
    fn from(busy: Busy) -> ServeError {
        ServeError::new(ErrorKind::Busy, busy.to_string()).hint("try again in a second")
    }
}

/// What handlers share; a clone costs nothing.
#[derive(Clone)]
pub struct AppState(Arc<Inner>);

struct Inner {
    config: Config,
    auth: Auth,
    metrics: Metrics,
    library: Option<Arc<Library>>,
    seen: Option<SeenService>,
    serving: String,
    /// The threads that work.
    lanes: Lanes,
    compared: ExplainLimits,
    /// Room for bodies, in units of [`BODY_UNIT`] bytes: of those who know the token, and of
    /// strangers.
    bodies: Arc<Semaphore>,
    open_bodies: Arc<Semaphore>,
    /// Memory for the work on bodies.
    work_room: WorkRoom,
    /// Set when the routes are known.
    api: OnceLock<ApiDocument>,
}

/// Semaphores count to 2^29 on small machines; bodies are counted in kilobytes.
pub(crate) const BODY_UNIT: usize = 1024;

/// Memory for the work on bodies, at least: a text of a megabyte.
const LEAST_WORK_BYTES: usize = 32 << 20;

impl AppState {
    /// Opens everything that is to be served. Binds nothing.
    pub fn open(config: Config) -> Result<AppState, StateError> {
        AppState::open_with(config, &Quiet)
    }

    /// As [`AppState::open`], and tells how far it is: a full-text index that is not there yet is
    /// made.
    pub fn open_with(config: Config, progress: &dyn Progress) -> Result<AppState, StateError> {
        let auth = Auth::new(&config)?;
        if config.atlas.is_none() && config.seen.is_none() {
            return Err(StateError::Nothing);
        }
        let metrics = Metrics::new();
        let both = config.atlas.is_some() && config.seen.is_some();
        let memory = if both { config.memory.split(2) } else { config.memory };
        let (comparing, compared) = comparing(&config, memory);
        let library = match &config.atlas {
            None => None,
            Some(atlas) => {
                let params = LibraryParams {
                    atlas: atlas.clone(),
                    base: config.base.clone(),
                    pdf_worker: config.pdf_worker.clone(),
                    index: config.index.clone(),
                    reindex: config.reindex,
                    memory,
                    compared,
                };
                let unopened = Unopened::new(params)?;
                let needed = unopened.least_memory();
                if memory < needed {
                    let parts = if both { 2 } else { 1 };
                    let needed = MemoryBudget::from_mib((needed.bytes() * parts).div_ceil(1 << 20));
                    return Err(StateError::Memory { needed, budget: config.memory });
                }
                Some(Arc::new(Library::of(unopened, progress)?))
            }
        };
        let atlas = library.as_ref().map(|library| library.atlas());
        let seen = config
            .seen
            .as_ref()
            .map(|dir| SeenService::start(dir, config.seen_read_only, memory, atlas, &metrics))
            .transpose()?;
        let mut parts = Vec::new();
        let name = |path: &PathBuf| path.file_name().unwrap_or(path.as_os_str()).display().to_string();
        parts.extend(config.atlas.as_ref().map(|path| format!("atlas {}", name(path))));
        parts.extend(config.seen.as_ref().map(|path| format!("index of seen documents {}", name(path))));
        let [bodies, open_bodies] = room_for_bodies(&config);
        let serving = format!("{} · onionskin {}", parts.join(", "), env!("CARGO_PKG_VERSION"));
        Ok(AppState(Arc::new(Inner {
            auth,
            metrics,
            library,
            seen,
            serving,
            lanes: Lanes::new(config.threads, comparing, config.limits.queue),
            compared,
            bodies,
            open_bodies,
            work_room: WorkRoom::new(config.memory.share(1, 4).len().max(LEAST_WORK_BYTES)),
            api: OnceLock::new(),
            config,
        })))
    }

    /// As it was told.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// What callers may use up.
    pub fn limits(&self) -> &Limits {
        &self.0.config.limits
    }

    /// Who may do what.
    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Whether an atlas is served.
    pub fn has_library(&self) -> bool {
        self.0.library.is_some()
    }

    /// The atlas; the error of a page that there is not, where none is served.
    pub fn library(&self) -> Result<&Arc<Library>, ServeError> {
        let none =
            || ServeError::not_found("no atlas is served here").hint("start with `onionskin serve ATLAS`");
        self.0.library.as_ref().ok_or_else(none)
    }

    /// Whether the atlas has a report.
    pub fn has_report(&self) -> bool {
        let names = |library: &Arc<Library>| beneath::names(library.atlas().dir(), Path::new("report"));
        self.0.library.as_ref().is_some_and(|library| names(library).iter().any(|name| name == "report.html"))
    }

    /// The index of seen documents, if one is served.
    pub fn seen(&self) -> Option<&SeenService> {
        self.0.seen.as_ref()
    }

    /// What is served, in words.
    pub fn serving(&self) -> &str {
        &self.0.serving
    }

    pub(crate) fn bodies(&self) -> &Arc<Semaphore> {
        &self.0.bodies
    }

    pub(crate) fn open_bodies(&self) -> &Arc<Semaphore> {
        &self.0.open_bodies
    }

    /// Memory for the work on bodies; none is taken yet.
    pub(crate) fn charge(&self) -> Charge {
        self.0.work_room.charge()
    }

    pub(crate) fn work_bytes(&self) -> usize {
        self.0.work_room.bytes()
    }

    /// What is compared while others wait.
    pub fn compared(&self) -> &ExplainLimits {
        &self.0.compared
    }

    pub(crate) fn api(&self) -> &OnceLock<ApiDocument> {
        &self.0.api
    }

    /// Runs something that reads the atlas, as [`AppState::work`] does.
    pub async fn read<T, F>(&self, lane: Lane, read: F) -> Result<T, ServeError>
    where
        T: Send + 'static,
        F: FnOnce(&Library) -> Result<T, ServeError> + Send + 'static,
    {
        let library = Arc::clone(self.library()?);
        self.work(lane, move || read(&library)).await?
    }

    /// Runs something that computes or reads files, on a thread that may block. The threads of a
    /// lane work one each, clients take turns, and who finds `queue` waiting is refused. When the
    /// caller goes away or has been told that it took too long, the work is told to stop: tables
    /// and texts ask at every block ([`cancel`]). Its thread is taken until it has ended. A panic
    /// in it is one of the handler.
    pub async fn work<T, F>(&self, lane: Lane, work: F) -> Result<T, Busy>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let client = CLIENT.try_with(|client| *client).unwrap_or_default();
        let turn = self.0.lanes.of(lane).turn(client).await?;
        let wanted = Wanted::default();
        let stop = wanted.0.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            cancel::with(&stop, work)
        });
        let done = done.await;
        drop(wanted);
        match done {
            Ok(value) => Ok(value),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Busy),
        }
    }
}

/// As long as it lives, somebody waits for the work.
#[derive(Default)]
struct Wanted(Cancel);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// How many comparisons run at a time, and what each may cost: together a part of the memory.
/// Half of the threads, so that they do not take the processors of what is quick either.
fn comparing(config: &Config, memory: MemoryBudget) -> (usize, ExplainLimits) {
    let memory = memory.share(3, 16).bytes();
    let wanted = ExplainLimits::of_words(config.limits.compared_words);
    let possible = ExplainLimits::within(memory);
    let each = if possible.words < wanted.words { possible } else { wanted };
    // Two documents are read, and something is left to compare them.
    let seconds = u32::try_from(config.limits.request_time.as_secs() / 3).unwrap_or(u32::MAX);
    let each = ExplainLimits { tool_seconds: seconds.clamp(1, each.tool_seconds), ..each };
    let at_a_time = usize::try_from(memory / each.memory().max(1)).unwrap_or(usize::MAX);
    (at_a_time.clamp(1, (config.threads / 2).max(1)), each)
}

/// Room for the bodies of those who know the token, and for those of strangers: a fourth, but one
/// body of the largest size. Without a token everybody is a stranger, and has all of it.
fn room_for_bodies(config: &Config) -> [Arc<Semaphore>; 2] {
    let limits = &config.limits;
    let one = limits.body_bytes + 64 * BODY_UNIT;
    let all = limits.all_body_bytes.min(config.memory.share(1, 2).len().max(2 * one));
    let strangers = if config.token.is_some() { (all / 4).max(one) } else { all };
    let trusted = all.saturating_sub(strangers).max(one);
    [trusted, strangers].map(|bytes| Arc::new(Semaphore::new(bytes.min(all) / BODY_UNIT)))
}
