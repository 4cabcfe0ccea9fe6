//! The index of seen documents behind the server: many who check, one who writes.
//!
//! Checks go to a [`SharedReader`] on the threads of [`crate::AppState::work`]. Additions and
//! removals go through a channel to one thread that owns the [`Seen`]. It takes all batches that
//! wait, applies them in order, makes them safe with one sync, lets the reader see them and answers
//! all: while one sync is under way the next group gathers, so that many callers cost few syncs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onionskin_seen::intake::{
    Answer, Incoming, IndexStats, OpenError, Prepared, RemovedName, Request, TextFeatures, Threshold, Wanted,
};
use onionskin_seen::{Options, Params, Reader, Seen, SeenError, SharedReader};
use onionskin_store::{Atlas, MemoryBudget, cancel};
use tokio::sync::{mpsc, oneshot};

use crate::charge::Charge;
use crate::error::{ErrorKind, ServeError};
use crate::limits::Room;
use crate::metrics::{Metrics, SeenCounters};
use crate::state::Busy;

/// Batches that wait for the writer. Further ones are refused.
const WAITING: usize = 64;

/// Documents that are made safe together, at most.
const GROUP: usize = 50_000;

/// A shorter text is analysed without asking for memory.
pub(crate) const UNCHARGED_BYTES: usize = 64 << 10;

/// Copies of a text that is read: as it was sent, unescaped or decoded, and the text.
pub(crate) const COPIES_OF_TEXT: usize = 3;

/// An analyzer that has taken more memory is not kept for the next request.
const KEPT_BYTES: usize = 4 << 20;

/// How old the view of an index may be that another process writes to.
const STALE: Duration = Duration::from_millis(200);

/// Why an index cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another process writes.
    #[error("{} is being written to by another process\nhint: with --seen-read-only documents can be checked meanwhile", .0.display())]
    Locked(PathBuf),
    /// It cannot be opened or created.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// No thread.
    #[error("starting a thread")]
    Thread(#[source] std::io::Error),
}

enum Job {
    Add {
        documents: Vec<Prepared>,
        request: Request,
        room: Room,
        reply: oneshot::Sender<Result<Vec<Answer>, ServeError>>,
    },
    Remove {
        names: BTreeSet<String>,
        room: Room,
        reply: oneshot::Sender<Result<Vec<RemovedName>, ServeError>>,
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
        // The writer and those who check share the files that are open and the blocks of them that
        // were read.
        let options = Options::new(memory);
        let seen = match read_only {
            true => None,
            false => Some(open(dir, &options, atlas)?),
        };
        let reader = Wanted::default().open_reader(dir, memory)?;
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

    /// What it is of and how large it is. Reads the names and sizes of its files.
    pub fn stats(&self) -> Result<IndexStats, ServeError> {
        self.refresh_if_stale()?;
        Ok(IndexStats::new(&self.params, self.reader.with(Reader::stats)))
    }

    /// Makes features of documents, one after the other, and says what they take in memory; the
    /// texts are gone then. What that takes is charged before. Computes; call it where that may
    /// take its time.
    pub(crate) fn prepare(
        &self,
        charge: &mut Charge,
        mut next: impl FnMut(&mut Charge) -> Result<Option<Incoming>, ServeError>,
    ) -> Result<(Vec<Prepared>, usize), ServeError> {
        let lock = || self.analyzers.lock().unwrap_or_else(PoisonError::into_inner);
        // Requests are the threads here, so each has one. What is set up once is kept for the next.
        let pooled = lock().pop();
        let mut analyzer = pooled.unwrap_or_else(|| TextFeatures::new(&self.params, 1));
        let (mut prepared, mut held, mut has_grown) = (Vec::new(), 0, false);
        while let Some(document) = next(charge)? {
            cancel::check().map_err(ServeError::internal)?;
            if let Ok(text) = &document.text
                && text.len() > UNCHARGED_BYTES
            {
                let analysis = analyzer.memory_for(text);
                charge.cover(held + COPIES_OF_TEXT * text.len() + analysis)?;
                has_grown |= analysis > KEPT_BYTES;
            }
            for one in analyzer.prepare(vec![document]) {
                held += held_bytes(&one);
                charge.cover(held)?;
                prepared.push(one);
            }
        }
        if !has_grown {
            lock().push(analyzer);
        }
        Ok((prepared, held))
    }

    /// Looks for documents. Reads files; call it where that may take its time.
    pub(crate) fn check(
        &self,
        documents: &[Prepared],
        threshold: Option<Threshold>,
    ) -> Result<Vec<Answer>, ServeError> {
        self.refresh_if_stale()?;
        let checked = self.reader.with(|reader| {
            documents.iter().map(|one| reader.answer(one, threshold)).collect::<Result<_, SeenError>>()
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
        documents: Vec<Prepared>,
        request: Request,
        room: Room,
    ) -> Result<Vec<Answer>, ServeError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::Add { documents, request, room, reply })?;
        answer.await.unwrap_or_else(|_| Err(lost()))
    }

    /// Removes documents by their names; says how many each had. When it returns, they are gone for
    /// good.
    pub(crate) async fn remove(
        &self,
        names: BTreeSet<String>,
        room: Room,
    ) -> Result<Vec<RemovedName>, ServeError> {
        // Before it is with others: an error there is one of the index, and ends all that wait.
        self.params.ensure_names(&names).map_err(|error| ServeError::bad_request(error.to_string()))?;
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

/// What a document takes in memory until it is answered, with its answer.
fn held_bytes(one: &Prepared) -> usize {
    let features = one.features.as_ref().map_or_else(String::len, |features| {
        size_of_val(&features.features[..]) + size_of_val(&features.sketch[..])
    });
    size_of::<Prepared>() + size_of::<Answer>() + 2 * one.name.len() + features
}

/// The thread is gone; it panicked.
fn lost() -> ServeError {
    ServeError::internal("the thread that writes to the index is gone")
}

fn open(dir: &Path, options: &Options, atlas: Option<&Atlas>) -> Result<Seen, StartError> {
    match Wanted::default().open_or_create(dir, atlas, options.clone()) {
        Err(OpenError::Seen(SeenError::Busy(dir))) => Err(StartError::Locked(dir)),
        other => Ok(other?),
    }
}

/// The one who writes.
struct Writer {
    dir: PathBuf,
    options: Options,
    /// `None` after a failure: what is in memory may differ from what is on the disk, so it is
    /// opened again.
    seen: Option<Seen>,
    reader: Arc<SharedReader>,
    counters: SeenCounters,
}

/// What to tell when a group is safe.
enum Done {
    Added(Vec<Answer>),
    Removed(Vec<RemovedName>),
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
                Job::Add { documents, request, .. } => {
                    let answers = documents.iter().map(|one| seen.answer(one, *request));
                    let answers = answers.collect::<Result<Vec<Answer>, SeenError>>()?;
                    added += answers.iter().filter(|answer| answer.added).count() as u64;
                    Done::Added(answers)
                }
                Job::Remove { names, .. } => {
                    let counts = seen.remove_named(names)?;
                    removed += counts.iter().map(|name| name.documents).sum::<u64>();
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
            // Whoever gets an answer finds what was added. What is safe is safe, though, whether
            // the reader can see it or not.
            if let Err(error) = self.reader.refresh_beside(seen) {
                tracing::error!(%error, "reading what was added");
            }
            self.counters.documents(self.reader.with(Reader::stats).documents);
        }
        Ok(done)
    }
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
