//! Reading: tasks to batches, by one worker or many, and batches to the writer.
//!
//! ```text
//!              ┌─ lock ─┐      worker: read, decode, extract, fingerprint ─▶ batch ┐
//!  inputs ──▶  │ tasks  │ ──▶  worker: …                                            ├─▶ in task order ─▶ writer ─▶ staging
//!              └────────┘      worker: …                                            ┘        │
//!                   ▲                                                                         │
//!                   └──────────────── permits, with emptied batches ◀────────────────────────┘
//! ```
//!
//! A worker takes a permit before it takes a task, so that the oldest task always has one and
//! nothing can wait in a circle. The number of permits bounds the number of batches, and a batch
//! that is full is handed on before its task is done: the worker then waits until the writer has
//! come to its task and has given the batch back. A worker that meets a large record waits for the
//! same: the memory for one is then its own. Batches are written in the order of their tasks,
//! whoever finished first; documents get their numbers there. The writer commits at places that
//! depend on the input alone. That makes the bytes of the atlas independent of threads, memory and
//! kills.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crossbeam_channel::Sender;
use onionskin_core::{Analyzer, Recipe};
use onionskin_corpus::{
    Ahead, BadReason, BadRecord, Document, InputFailure, Options, Scratch, Shares, SkipReason, SkippedFile,
    Source, Task, Tasks, Visitor,
};
use onionskin_store::cancel;

use super::ScanError;
use super::batch::{self, Batch, BatchVisitor};
use super::budget::Turn;

/// Where batches go, in the order of their tasks.
pub(super) trait Sink {
    /// The inputs that batches are about.
    fn sources(&self) -> &[Source];

    /// Takes the batch that comes next.
    fn write(&mut self, batch: &Batch) -> Result<(), ScanError>;
}

/// What is computed from a text.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub recipe: &'a Recipe,
    pub seed: u64,
    pub options: &'a Options,
    pub shares: Shares,
}

/// A batch on its way to the writer.
struct Made {
    batch: Batch,
    /// Where it goes back to when its task is not done yet.
    back: Option<Sender<Batch>>,
}

/// Reads all tasks and hands their batches on.
pub(super) fn read_all(reading: Reading<'_>, tasks: Tasks, sink: &mut impl Sink) -> Result<(), ScanError> {
    let shares = reading.shares;
    let turn = Turn::default();
    let ahead = tasks.ahead();
    let dispatcher = Mutex::new((tasks, 0u64));
    let (permit_sender, permit_receiver) = crossbeam_channel::bounded::<Batch>(shares.permits);
    let (made_sender, made_receiver) = crossbeam_channel::bounded::<Made>(shares.permits);
    for _ in 0..shares.permits {
        permit_sender.send(Batch::default()).expect("the channel has room for all permits");
    }
    std::thread::scope(|scope| {
        for _ in 0..shares.threads {
            let (permit_receiver, made) = (permit_receiver.clone(), made_sender.clone());
            let (dispatcher, turn, ahead) = (&dispatcher, &turn, &ahead);
            scope.spawn(move || {
                let mut worker = Worker::new(reading, Hand { shares, turn, made });
                // A closed channel means that the writer has given up.
                while let Ok(mut batch) = permit_receiver.recv() {
                    let task = {
                        let mut dispatcher = lock_or_help(dispatcher, ahead);
                        let number = dispatcher.1;
                        // Whoever holds the lock has no other task, so those before this one go on.
                        let task = dispatcher.0.next_task_gently(&mut |bytes| {
                            if bytes > shares.small_record_bytes {
                                turn.wait_for(number);
                            }
                        });
                        let Some(task) = task else { break };
                        batch.begin(dispatcher.1, &task);
                        dispatcher.1 += 1;
                        task
                    };
                    worker.run(task, &mut batch);
                    if worker.hand.made.send(Made { batch, back: None }).is_err() {
                        break;
                    }
                }
            });
        }
        // The receiving ends must close with this closure, or a failed writer would leave the
        // workers waiting.
        let (permit_sender, _) = (permit_sender, permit_receiver);
        drop(made_sender);
        let made_receiver = made_receiver;
        let _open = turn.until_dropped();
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for made in &made_receiver {
            cancel::check()?;
            waiting.insert(made.batch.number, made);
            while let Some(Made { mut batch, back }) = waiting.remove(&next) {
                write_batch(sink, &mut batch)?;
                batch.shrink(3 * shares.batch_bytes);
                match back {
                    // The worker waits for it, unless the scan is being given up.
                    Some(back) => drop(back.try_send(batch)),
                    None => {
                        next += 1;
                        turn.give(next);
                        // All workers may be done already; then nobody needs the permit.
                        drop(permit_sender.try_send(batch));
                    }
                }
            }
        }
        Ok(())
    })
}

/// Locks; decodes input ahead as long as another thread has the lock.
fn lock_or_help<'a, T>(mutex: &'a Mutex<T>, ahead: &Ahead) -> MutexGuard<'a, T> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(error)) => return error.into_inner(),
            Err(TryLockError::WouldBlock) if ahead.help() => {}
            Err(TryLockError::WouldBlock) => return mutex.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// What a thread needs to make batches of tasks.
struct Worker<'a> {
    reading: Reading<'a>,
    analyzer: Analyzer,
    scratch: Scratch,
    hand: Hand<'a>,
}

/// How batches leave a worker, and when.
struct Hand<'a> {
    shares: Shares,
    turn: &'a Turn,
    made: Sender<Made>,
}

impl<'a> Worker<'a> {
    fn new(reading: Reading<'a>, hand: Hand<'a>) -> Worker<'a> {
        let analyzer = Analyzer::new(reading.recipe, reading.seed);
        Worker { reading, analyzer, scratch: Scratch::new(reading.options), hand }
    }

    /// Fills a batch, which is the last of its task afterwards. A panic is noted in it.
    fn run(&mut self, task: Task, batch: &mut Batch) {
        let mut largest = 0;
        let ran = batch::fenced(|| {
            let mut visitor = PartVisitor {
                inner: batch.visitor(&mut self.analyzer, self.reading.recipe),
                hand: &self.hand,
                given_up: false,
                largest: &mut largest,
            };
            task.run(&mut self.scratch, &mut visitor);
        });
        batch.panic = ran.err();
        if largest > KEPT_TEXT_BYTES {
            self.analyzer = Analyzer::new(self.reading.recipe, self.reading.seed);
        }
    }
}

/// Buffers for the analysis of a longer text are not kept for the next.
const KEPT_TEXT_BYTES: usize = 1 << 20;

/// Hands a batch on whenever it is full.
struct PartVisitor<'a, 'h> {
    inner: BatchVisitor<'a>,
    hand: &'a Hand<'h>,
    /// The writer is gone: whatever comes is dropped.
    given_up: bool,
    largest: &'a mut usize,
}

impl PartVisitor<'_, '_> {
    fn hand_on(&mut self) {
        if self.inner.batch.held_bytes() >= self.hand.shares.batch_bytes {
            self.hand_on_now();
        }
    }

    fn hand_on_now(&mut self) {
        let Batch { number, source, position, input_bytes, read_bytes, .. } = *self.inner.batch;
        let mut batch = std::mem::take(self.inner.batch);
        let chunkings = batch.chunks.len();
        batch.more = true;
        let (back, returns) = crossbeam_channel::bounded(1);
        // The writer comes to this task when all tasks before it are done, and those have their
        // permits.
        let sent = self.hand.made.send(Made { batch, back: Some(back) });
        let returned = sent.ok().and_then(|()| returns.recv().ok());
        self.given_up = returned.is_none();
        *self.inner.batch = returned.unwrap_or_default();
        self.inner.batch.clear();
        self.inner.batch.chunks.resize_with(chunkings, Vec::new);
        let begun = &mut *self.inner.batch;
        (begun.number, begun.source, begun.position) = (number, source, position);
        (begun.input_bytes, begun.read_bytes) = (input_bytes, read_bytes);
    }
}

impl Visitor for PartVisitor<'_, '_> {
    fn wants(&mut self, _offset: u64) -> bool {
        !self.given_up
    }

    fn before_large(&mut self, bytes: u64) {
        if bytes > self.hand.shares.small_record_bytes {
            self.hand.turn.wait_for(self.inner.batch.number);
        }
    }

    fn document(&mut self, document: Document<'_>) {
        let length = document.text.len();
        *self.largest = length.max(*self.largest);
        self.before_large(length as u64);
        if length as u64 > self.hand.shares.small_record_bytes {
            // The columns of a large record have all of the batch.
            if !self.inner.batch.rows.is_empty() {
                self.hand_on_now();
            }
            if !self.hand.shares.fits(length, self.inner.memory_for(document.text)) {
                let limit = self.hand.shares.large_bytes;
                let reason = BadReason::NeedsMemory { limit };
                let Document { source, offset, bytes, .. } = document;
                return self.inner.bad_record(BadRecord { source, offset, reason, records: 1, bytes });
            }
        }
        self.inner.document(document);
        self.hand_on();
    }

    fn bad_record(&mut self, bad: BadRecord) {
        self.inner.bad_record(bad);
        self.hand_on();
    }

    fn skipped(&mut self, reason: SkipReason) {
        self.inner.skipped(reason);
        self.hand_on();
    }

    fn no_text(&mut self, place: (u32, u64), fields: &mut dyn FnMut() -> Option<String>) {
        self.inner.no_text(place, fields);
    }

    fn skipped_file(&mut self, file: SkippedFile) {
        self.inner.skipped_file(file);
        self.hand_on();
    }

    // Parts of the task may have been written by now; no commit includes them.
    fn failed(&mut self, failure: InputFailure) {
        self.inner.failed(failure);
    }
}

fn write_batch(sink: &mut impl Sink, batch: &mut Batch) -> Result<(), ScanError> {
    if let Some(message) = batch.panic.take() {
        let source_name = sink.sources().get(batch.source as usize).map(|source| source.name.clone());
        return Err(ScanError::Worker { source_name: source_name.unwrap_or_default(), message });
    }
    if let Some(failure) = &batch.failure {
        let source = sink.sources().get(failure.source as usize);
        let place = source.map_or_else(String::new, |source| source.failure_place(failure));
        return Err(ScanError::Input { place, reason: failure.detail.clone() });
    }
    sink.write(batch)
}
