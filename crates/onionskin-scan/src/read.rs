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
//! nothing can wait in a circle. The number of permits is what bounds memory. Batches are written
//! in the order of their tasks, whoever finished first; documents get their numbers there. The
//! writer commits at places that depend on the input alone. That makes the bytes of the atlas
//! independent of threads, memory and kills.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use onionskin_core::{Analyzer, Recipe};
use onionskin_corpus::{Options, Scratch, Source, Task, Tasks};
use onionskin_store::cancel;

use super::batch::Batch;
use super::writer::Writer;
use super::{ScanError, ScanParams};

/// A batch in flight, on an estimate: eight megabytes of text become twelve of fingerprints and,
/// when the documents are short, as much of sketches.
const BATCH_BYTES: u64 = 48 << 20;
/// The open Parquet files and everything else that does not grow.
const FIXED_BYTES: u64 = 160 << 20;

fn permits(params: &ScanParams) -> usize {
    let fit = params.memory.bytes().saturating_sub(FIXED_BYTES) / BATCH_BYTES;
    (fit as usize).clamp(1, 2 * params.threads.max(1))
}

pub(super) fn read_all(
    params: &ScanParams,
    options: &Options,
    tasks: Tasks,
    writer: &mut Writer<'_, '_>,
    sources: &[Source],
) -> Result<(), ScanError> {
    let permits = permits(params);
    let threads = params.threads.clamp(1, permits);
    let dispatcher = Mutex::new((tasks, 0u64));
    let (permit_sender, permit_receiver) = crossbeam_channel::bounded::<Batch>(permits);
    let (batch_sender, batch_receiver) = crossbeam_channel::bounded::<Batch>(permits);
    for _ in 0..permits {
        permit_sender.send(Batch::default()).expect("the channel has room for all permits");
    }
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (permit_receiver, batch_sender) = (permit_receiver.clone(), batch_sender.clone());
            let dispatcher = &dispatcher;
            scope.spawn(move || {
                let mut worker = Worker::new(params, options);
                // A closed channel means that the writer has given up.
                while let Ok(mut batch) = permit_receiver.recv() {
                    let task = {
                        let mut dispatcher = dispatcher.lock().unwrap_or_else(PoisonError::into_inner);
                        let Some(task) = dispatcher.0.next_task() else { break };
                        batch.begin(dispatcher.1, &task);
                        dispatcher.1 += 1;
                        task
                    };
                    worker.run(task, &mut batch);
                    if batch_sender.send(batch).is_err() {
                        break;
                    }
                }
            });
        }
        // The receiving ends must close with this closure, or a failed writer would leave the
        // workers waiting.
        let (permit_sender, _) = (permit_sender, permit_receiver);
        drop(batch_sender);
        let batch_receiver = batch_receiver;
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for batch in &batch_receiver {
            cancel::check()?;
            waiting.insert(batch.number, batch);
            while let Some(mut batch) = waiting.remove(&next) {
                next += 1;
                write_batch(writer, &mut batch, sources)?;
                // All workers may be done already; then nobody needs the permit.
                let _ = permit_sender.try_send(batch);
            }
        }
        Ok(())
    })
}

/// What a thread needs to make batches of tasks.
struct Worker<'a> {
    recipe: &'a Recipe,
    analyzer: Analyzer,
    scratch: Scratch,
}

impl<'a> Worker<'a> {
    fn new(params: &'a ScanParams, options: &Options) -> Worker<'a> {
        let recipe = &params.recipe;
        Worker { recipe, analyzer: Analyzer::new(recipe, params.seed), scratch: Scratch::new(options) }
    }

    /// Fills a batch. A panic is noted in it.
    fn run(&mut self, task: Task, batch: &mut Batch) {
        batch.panic = batch.fill(task, &mut self.analyzer, self.recipe, &mut self.scratch).err();
    }
}

fn write_batch(writer: &mut Writer<'_, '_>, batch: &mut Batch, sources: &[Source]) -> Result<(), ScanError> {
    if let Some(message) = batch.panic.take() {
        let source_name = sources.get(batch.source as usize).map(|source| source.name.clone());
        return Err(ScanError::Worker { source_name: source_name.unwrap_or_default(), message });
    }
    writer.write(batch)
}
