//! The index of seen documents behind the server: many who check, one who writes.
//!
//! Checks go to a [`SharedReader`] on the threads of [`crate::AppState::work`]. Additions and removals go through a channel to one thread that owns the
//! [`Seen`]. It takes all batches that wait, applies them in order, makes them safe with one sync, lets the reader see them and answers
//! all: while one sync is under way the next group gathers, so that many callers cost few syncs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onionskin::ScanParams;
use onionskin::seen::{
    AtlasDocumentsError, Document, Features, Match, Options, Params, Reader, Seen, SeenError, SharedReader,
    Stats, TextFeatures, recipe_of,
};
use onionskin_core::RecipeError;
use onionskin_store::{Atlas, MemoryBudget};
use tokio::sync::{mpsc, oneshot};

use crate::error::{ErrorKind, ServeError};
use crate::limits::Room;
use crate::metrics::{Metrics, SeenCounters};
use crate::state::Busy;

/// The recipe of an index that is begun here, where no atlas has another.
const RECIPE: &str = "w4-rabin64-6x14r2";

/// Batches that wait for the writer. Further ones are refused.
const WAITING: usize = 64;

/// Documents that are made safe together, at most.
const GROUP: usize = 50_000;

/// How old the view of an index may be that another process writes to.
const STALE: Duration = Duration::from_millis(200);

/// Why an index cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another process writes.
    #[error("{} is being written to by another process\nhint: with --seen-read-only documents can be checked meanwhile", .0.display())]
    Locked(PathBuf),
    /// It is no good.
    #[error(transparent)]
    Seen(#[from] SeenError),
    /// The atlas is no good.
    #[error(transparent)]
    Atlas(#[from] Box<AtlasDocumentsError>),
    /// Not a recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// No thread.
    #[error("starting a thread")]
    Thread(#[source] std::io::Error),
}

/// What is known of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Nothing like it is there.
    New,
    /// It, or one nearly like it, is there.
    Found(Match),
    /// It has no words, and is like nothing.
    Empty,
    /// It could not be taken.
    Bad(String),
}

/// A document that came in.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    pub name: String,
    /// What is known of its text; or why it is bad.
    pub features: Result<Features, String>,
}

/// Of each document, what is known of it and whether it was added.
pub(crate) type Answers = Vec<(Answer, bool)>;

enum Job {
    Add {
        documents: Vec<Incoming>,
        if_new: bool,
        room: Room,
        reply: oneshot::Sender<Result<Answers, ServeError>>,
    },
    Remove {
        names: BTreeSet<String>,
        room: Room,
        reply: oneshot::Sender<Result<BTreeMap<String, u64>, ServeError>>,
    },
}

/// An index that is being served.
pub struct SeenService {
    dir: PathBuf,
    params: Params,
    read_only: bool,
    reader: Arc<SharedReader>,
    refreshed: Mutex<Instant>,
    analyzers: Mutex<Vec<TextFeatures>>,
    writer: Mutex<Option<(mpsc::Sender<Job>, JoinHandle<()>)>>,
}

impl SeenService {
    /// Opens an index, or begins one, and starts the thread that writes to it.
    pub(crate) fn start(
        dir: &Path,
        read_only: bool,
        memory: MemoryBudget,
        atlas: Option<&Atlas>,
        metrics: &Metrics,
    ) -> Result<SeenService, StartError> {
        // The writer and those who check share the files that are open and the blocks of them that were read.
        let options = Options::new(memory);
        let seen = match read_only {
            true => None,
            false => Some(open_or_begin(dir, &options, atlas)?),
        };
        let reader = Reader::open(dir, memory)?;
        let params = reader.params().clone();
        let counters = metrics.seen_counters();
        counters.documents(reader.stats().documents);
        let reader = Arc::new(SharedReader::new(reader));
        let writer = seen
            .map(|seen| {
                let (sender, receiver) = mpsc::channel(WAITING);
                let mut writer = Writer {
                    dir: dir.to_owned(),
                    options,
                    seen: Some(seen),
                    reader: Arc::clone(&reader),
                    counters,
                };
                let thread = std::thread::Builder::new().name("seen-writer".to_owned());
                thread.spawn(move || writer.run(receiver)).map(|thread| (sender, thread))
            })
            .transpose()
            .map_err(StartError::Thread)?;
        Ok(SeenService {
            dir: dir.to_owned(),
            params,
            read_only,
            reader,
            refreshed: Mutex::new(Instant::now()),
            analyzers: Mutex::new(Vec::new()),
            writer: Mutex::new(writer),
        })
    }

    /// What the index is of.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether another process writes to it.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// How large it is. Reads the names and sizes of its files.
    pub fn stats(&self) -> Result<Stats, ServeError> {
        self.refresh_if_stale()?;
        Ok(self.reader.with(Reader::stats))
    }

    /// The features of texts. Computes; call it where that may take its time.
    pub fn features<T: AsRef<str> + Sync>(&self, texts: &[T]) -> Vec<Features> {
        let lock = || self.analyzers.lock().unwrap_or_else(PoisonError::into_inner);
        // Requests are the threads here, so each has one. What is set up once is kept for the next.
        let pooled = lock().pop();
        let mut analyzer = pooled.unwrap_or_else(|| TextFeatures::new(&self.params, 1));
        let features = analyzer.of(texts);
        lock().push(analyzer);
        features
    }

    /// Looks for documents. Reads files; call it where that may take its time.
    pub(crate) fn check(&self, documents: &[Incoming]) -> Result<Answers, ServeError> {
        self.refresh_if_stale()?;
        let check = |reader: &Reader, incoming: &Incoming| {
            let answer = match &incoming.features {
                Err(problem) => Answer::Bad(problem.clone()),
                Ok(features) => match features.probe() {
                    None => Answer::Empty,
                    Some(probe) => reader.check(&probe)?.map_or(Answer::New, Answer::Found),
                },
            };
            Ok((answer, false))
        };
        let checked = self.reader.with(|reader| {
            documents.iter().map(|incoming| check(reader, incoming)).collect::<Result<_, SeenError>>()
        });
        checked.map_err(ServeError::internal)
    }

    fn refresh_if_stale(&self) -> Result<(), ServeError> {
        if !self.read_only {
            return Ok(());
        }
        let mut refreshed = self.refreshed.lock().unwrap_or_else(PoisonError::into_inner);
        if refreshed.elapsed() > STALE {
            self.reader.refresh().map_err(ServeError::internal)?;
            *refreshed = Instant::now();
        }
        Ok(())
    }

    fn send(&self, job: Job) -> Result<(), ServeError> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((sender, _)) = &*writer else {
            return Err(match self.read_only {
                true => ServeError::new(ErrorKind::Forbidden, "another process writes to this index")
                    .hint("this server was started with --seen-read-only"),
                false => ServeError::new(ErrorKind::Unavailable, "the server is about to end"),
            });
        };
        sender.try_send(job).map_err(|_| Busy.into())
    }

    /// Adds documents. When it returns, those that were added are safe.
    pub(crate) async fn add(
        &self,
        documents: Vec<Incoming>,
        if_new: bool,
        room: Room,
    ) -> Result<Answers, ServeError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Add { documents, if_new, room, reply })?;
        answer.await.unwrap_or_else(|_| Err(lost()))
    }

    /// Removes documents by their names; says how many each had. When it returns, they are gone for good.
    pub(crate) async fn remove(
        &self,
        names: BTreeSet<String>,
        room: Room,
    ) -> Result<BTreeMap<String, u64>, ServeError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Remove { names, room, reply })?;
        answer.await.unwrap_or_else(|_| Err(lost()))
    }

    /// Writes what waits and ends the thread.
    pub(crate) fn close(&self) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((sender, thread)) = writer {
            drop(sender);
            if thread.join().is_err() {
                tracing::error!("the thread that writes to the index panicked");
            }
        }
    }
}

/// The thread is gone; it panicked.
fn lost() -> ServeError {
    ServeError::internal("the thread that writes to the index is gone")
}

fn open_or_begin(dir: &Path, options: &Options, atlas: Option<&Atlas>) -> Result<Seen, StartError> {
    match Seen::open(dir, options.clone()) {
        Err(SeenError::Missing(_)) => {
            let (recipe, seed) = match atlas {
                Some(atlas) => recipe_of(atlas).map_err(Box::new)?,
                None => (RECIPE.parse()?, ScanParams::SEED),
            };
            Ok(Seen::create(dir, Params::new(&recipe, seed, true)?, options.clone())?)
        }
        Err(SeenError::Busy(dir)) => Err(StartError::Locked(dir)),
        other => Ok(other?),
    }
}

/// The one who writes.
struct Writer {
    dir: PathBuf,
    options: Options,
    /// `None` after a failure: what is in memory may differ from what is on the disk, so it is opened again.
    seen: Option<Seen>,
    reader: Arc<SharedReader>,
    counters: SeenCounters,
}

/// What to tell when a group is safe.
enum Done {
    Added(Answers),
    Removed(BTreeMap<String, u64>),
}

impl Writer {
    fn run(&mut self, mut receiver: mpsc::Receiver<Job>) {
        while let Some(job) = receiver.blocking_recv() {
            let mut n_documents = job.len();
            let mut jobs = vec![job];
            while n_documents < GROUP
                && let Ok(job) = receiver.try_recv()
            {
                n_documents += job.len();
                jobs.push(job);
            }
            match self.group(&jobs) {
                Ok(done) => jobs.into_iter().zip(done).for_each(|(job, done)| job.answer(done)),
                Err(error) => {
                    tracing::error!(%error, "writing to the index of seen documents");
                    self.seen = None;
                    jobs.into_iter().for_each(|job| job.fail(&error));
                }
            }
        }
        if let Some(seen) = self.seen.take()
            && let Err(error) = seen.close()
        {
            tracing::error!(%error, "closing the index of seen documents");
        }
    }

    fn group(&mut self, jobs: &[Job]) -> Result<Vec<Done>, SeenError> {
        let seen = match &mut self.seen {
            Some(seen) => seen,
            lost => lost.insert(Seen::open(&self.dir, self.options.clone())?),
        };
        let mut done = Vec::with_capacity(jobs.len());
        let (mut added, mut removed) = (0, 0);
        for job in jobs {
            done.push(match job {
                Job::Add { documents, if_new, .. } => {
                    let answers = documents.iter().map(|document| add(seen, document, *if_new));
                    let answers = answers.collect::<Result<Answers, SeenError>>()?;
                    added += answers.iter().filter(|(_, added)| *added).count() as u64;
                    Done::Added(answers)
                }
                Job::Remove { names, .. } => {
                    let counts = remove(seen, names)?;
                    removed += counts.values().sum::<u64>();
                    Done::Removed(counts)
                }
            });
        }
        if added + removed > 0 {
            let start = Instant::now();
            seen.commit()?;
            self.counters.committed(start.elapsed());
            self.counters.added.inc_by(added);
            self.counters.removed.inc_by(removed);
            // Whoever gets an answer finds what was added. What is safe is safe, though, whether the reader can see it or not.
            if let Err(error) = self.reader.refresh_beside(seen) {
                tracing::error!(%error, "reading what was added");
            }
            self.counters.documents(self.reader.with(Reader::stats).documents);
        }
        Ok(done)
    }
}

fn add(seen: &mut Seen, incoming: &Incoming, if_new: bool) -> Result<(Answer, bool), SeenError> {
    let bad = |problem: &str| Ok((Answer::Bad(problem.to_owned()), false));
    let features = match &incoming.features {
        Ok(features) => features,
        Err(problem) => return bad(problem),
    };
    let Some(probe) = features.probe() else { return Ok((Answer::Empty, false)) };
    let key = match incoming.name.parse::<u64>() {
        Ok(key) => key,
        Err(_) if seen.params().names => 0,
        Err(_) => return bad("its name is not a whole number, which the names of this index are"),
    };
    let document = Document { probe, key, name: &incoming.name };
    let outcome = if if_new { seen.add_if_new(&document) } else { seen.add(&document) };
    match outcome {
        Ok(outcome) => Ok((outcome.seen.map_or(Answer::New, Answer::Found), outcome.doc.is_some())),
        Err(error @ SeenError::LongName(_)) => bad(&error.to_string()),
        Err(error) => Err(error),
    }
}

fn remove(seen: &mut Seen, names: &BTreeSet<String>) -> Result<BTreeMap<String, u64>, SeenError> {
    if seen.params().names {
        return seen.remove_names(names);
    }
    // What is no number is the name of nothing.
    let keys: BTreeSet<u64> = names.iter().filter_map(|name| name.parse().ok()).collect();
    Ok(seen.remove_keys(&keys)?.into_iter().map(|(key, n)| (key.to_string(), n)).collect())
}

impl Job {
    fn len(&self) -> usize {
        match self {
            Job::Add { documents, .. } => documents.len(),
            Job::Remove { names, .. } => names.len(),
        }
    }

    /// Who asked may have gone away meanwhile.
    fn answer(self, done: Done) {
        match (self, done) {
            (Job::Add { reply, room, .. }, Done::Added(answers)) => {
                drop(room);
                let _ = reply.send(Ok(answers));
            }
            (Job::Remove { reply, room, .. }, Done::Removed(counts)) => {
                drop(room);
                let _ = reply.send(Ok(counts));
            }
            (job, _) => job.fail(&"an answer of another kind"),
        }
    }

    fn fail(self, error: &dyn std::fmt::Display) {
        let told = ServeError::new(
            ErrorKind::Unavailable,
            "the index could not be written to; what was sent may or may not be in it",
        )
        .hint("send it again, with if_new");
        tracing::debug!(%error, "a batch failed");
        match self {
            Job::Add { reply, .. } => drop(reply.send(Err(told))),
            Job::Remove { reply, .. } => drop(reply.send(Err(told))),
        }
    }
}
