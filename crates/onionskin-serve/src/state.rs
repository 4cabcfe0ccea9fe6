//! What handlers share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use onionskin::{Progress, Quiet};
use onionskin_search::SearchError;
use tokio::sync::Semaphore;

use crate::api::ApiDocument;
use crate::auth::{Auth, AuthError};
use crate::config::{Config, Limits};
use crate::error::{ErrorKind, ServeError};
use crate::library::{Library, LibraryParams};
use crate::metrics::Metrics;
use crate::seen::{SeenService, StartError as SeenStartError};

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Nothing to serve.
    #[error("nothing to serve: give an atlas, an index of seen documents, or both")]
    Nothing,
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
    threads: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// Room for bodies, in units of [`BODY_UNIT`] bytes.
    bodies: Arc<Semaphore>,
    /// Set when the routes are known.
    api: OnceLock<ApiDocument>,
}

/// Semaphores count to 2^29 on small machines; bodies are counted in kilobytes.
pub(crate) const BODY_UNIT: usize = 1024;

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
                };
                Some(Arc::new(Library::open(params, progress)?))
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
        let serving = format!("{} · onionskin {}", parts.join(", "), env!("CARGO_PKG_VERSION"));
        Ok(AppState(Arc::new(Inner {
            auth,
            metrics,
            library,
            seen,
            serving,
            threads: Arc::new(Semaphore::new(config.threads.max(1))),
            waiting: AtomicUsize::new(0),
            bodies: Arc::new(Semaphore::new(config.limits.all_body_bytes / BODY_UNIT)),
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
        let report =
            |library: &Arc<Library>| library.atlas().dir().join("report").join("report.html").is_file();
        self.0.library.as_ref().is_some_and(report)
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

    pub(crate) fn api(&self) -> &OnceLock<ApiDocument> {
        &self.0.api
    }

    /// Runs something that reads the atlas, as [`AppState::work`] does.
    pub async fn read<T, F>(&self, read: F) -> Result<T, ServeError>
    where
        T: Send + 'static,
        F: FnOnce(&Library) -> Result<T, ServeError> + Send + 'static,
    {
        let library = Arc::clone(self.library()?);
        self.work(move || read(&library)).await?
    }

    /// Runs something that computes or reads files, on a thread that may block. At most `threads`
    /// of them run at a time and `queue` wait; more are refused. When the caller goes away the work
    /// goes on, and its thread is taken until it ends. A panic in it is one of the handler.
    pub async fn work<T, F>(&self, work: F) -> Result<T, Busy>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let threads = Arc::clone(&self.0.threads);
        let permit = match Arc::clone(&threads).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let _place = Place::in_queue(&self.0.waiting, self.limits().queue).ok_or(Busy)?;
                threads.acquire_owned().await.map_err(|_| Busy)?
            }
        };
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        match done.await {
            Ok(value) => Ok(value),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Busy),
        }
    }
}

/// A place in the queue, given back when dropped: also when who waits goes away.
struct Place<'a>(&'a AtomicUsize);

impl Place<'_> {
    fn in_queue(waiting: &AtomicUsize, most: usize) -> Option<Place<'_>> {
        let place = Place(waiting);
        (waiting.fetch_add(1, Ordering::AcqRel) < most).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
