//! Stages: jobs that fill tables of an atlas step by step, and one driver for all of them.
//!
//! A stage says what it is (its identity, its tables, its steps) and does its own work. The driver
//! does what every stage needs:
//!
//! ```text
//! memory check ─▶ lock and resume ─▶ step, commit, step, commit … ─▶ publish ─▶ costs
//! ```
//!
//! A killed run resumes after the last commit, with the state that was committed. Steps that commit
//! by themselves in between, with [`Work::commit`], resume in the middle.

use std::path::Path;
use std::time::Instant;

use onionskin_core::spelled;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::atlas::Atlas;
use crate::costs::{self, Cost};
use crate::manifest::Manifest;
use crate::progress::{Event, Progress};
use crate::staging::{JOURNAL_FILE, STAGING_DIR, StageParams, Staging, StagingError, first_difference};
use crate::{MemoryBudget, cancel, process};

/// The stages that write tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageName {
    /// Raw data to documents, links and sketches. Begins an atlas.
    Scan,
    /// Chunks that the scan did not keep, from the same inputs.
    Chunks,
    /// Similar documents and their clusters.
    Similar,
    /// Replicated collections.
    Collections,
}

spelled!(StageName, as_str: Scan => "scan", Chunks => "chunks", Similar => "similar", Collections => "collections");

/// What a stage leaves in the manifest: what was asked for and what was found.
pub trait StageRecord: Serialize + DeserializeOwned {
    /// The stage.
    const STAGE: StageName;
}

/// Too little memory to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{stage} needs at least {least} of memory, not {given}")]
pub struct TooLittleMemory {
    /// The stage.
    pub stage: StageName,
    /// What it was given.
    pub given: MemoryBudget,
    /// What it needs.
    pub least: MemoryBudget,
}

impl TooLittleMemory {
    /// An error when `given` is less than `least` bytes.
    pub fn check(stage: StageName, given: MemoryBudget, least: u64) -> Result<(), TooLittleMemory> {
        let least = MemoryBudget::from_bytes(least);
        if given < least { Err(TooLittleMemory { stage, given, least }) } else { Ok(()) }
    }
}

/// A stage, checked against its inputs and ready to begin.
pub trait Stage: Sized {
    /// Its name.
    const NAME: StageName;
    /// The least memory it works with, in bytes.
    const LEAST_MEMORY: u64;
    /// What a resumed run must know. Committed with every step.
    type State: Serialize + DeserializeOwned;
    /// Why it ends early.
    type Error: From<StagingError> + From<TooLittleMemory> + From<cancel::Cancelled>;

    /// The atlas and the memory budget.
    fn place(&self) -> (&Path, MemoryBudget);

    /// The identity of the job and its tables.
    fn staging(&self) -> StageParams;

    /// The state before the first step.
    fn begin(&self) -> Self::State;

    /// Reports that an earlier run is resumed, and checks what it left.
    fn resume(&self, _state: &Self::State, _progress: &dyn Progress) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The steps, in order.
    fn steps(&self) -> Vec<Step<'_, Self>>;

    /// Completes the manifest. Does the same whenever it is called.
    fn describe(&self, state: &Self::State, manifest: &mut Manifest);

    /// What the costs are the costs of, where a stage finds several things: the level of a search.
    fn cost_of(&self) -> String;
}

/// A step of a stage.
pub struct Step<'a, S: Stage> {
    name: Option<&'static str>,
    run: StepFn<'a, S>,
}

/// What a step does.
type StepFn<'a, S> = fn(&mut Work<'a, S>) -> Result<(), <S as Stage>::Error>;

impl<'a, S: Stage> Step<'a, S> {
    /// A step and what is being done, as in "resolving links".
    pub fn new(name: &'static str, run: StepFn<'a, S>) -> Step<'a, S> {
        Step { name: Some(name), run }
    }

    /// A step that reports its own progress.
    pub fn unnamed(run: StepFn<'a, S>) -> Step<'a, S> {
        Step { name: None, run }
    }
}

/// A stage at work.
pub struct Work<'a, S: Stage> {
    /// The stage.
    pub stage: &'a S,
    /// Its tables and work files.
    pub staging: Staging,
    /// What a resumed run must know.
    pub state: S::State,
    /// Receives events.
    pub progress: &'a dyn Progress,
    steps_done: u32,
    resumed: bool,
}

/// The state as the journal has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Journaled<S> {
    steps_done: u32,
    state: S,
}

/// What a run of a stage came to.
#[derive(Clone, Debug)]
pub struct Done<S> {
    /// The state after the last step.
    pub state: S,
    /// What this run has cost.
    pub usage: Usage,
}

/// What a run of a stage has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Whether the work of an earlier run was resumed; its time is not included.
    pub resumed: bool,
    /// Seconds.
    pub seconds: f64,
    /// CPU seconds.
    pub cpu_seconds: f64,
    /// Peak memory of the process, in bytes, where the system reports it.
    pub peak_memory: Option<u64>,
}

impl<'a, S: Stage> Work<'a, S> {
    /// Takes the lock of the atlas, and takes up what an earlier run of the same job has left.
    pub fn open(stage: &'a S, progress: &'a dyn Progress) -> Result<Work<'a, S>, S::Error> {
        let (atlas, memory) = stage.place();
        TooLittleMemory::check(S::NAME, memory, S::LEAST_MEMORY)?;
        let (staging, checkpoint) = Staging::open(atlas, stage.staging())?;
        let resumed = checkpoint.is_some();
        let Journaled { steps_done, state } = match checkpoint {
            None => Journaled { steps_done: 0, state: stage.begin() },
            Some(checkpoint) => serde_json::from_value(checkpoint.state)
                .map_err(|error| StagingError::State { stage: S::NAME, reason: error.to_string() })?,
        };
        if resumed {
            stage.resume(&state, progress)?;
        }
        Ok(Work { stage, staging, state, progress, steps_done, resumed })
    }

    /// Makes everything that was written so far safe, together with the state.
    ///
    /// Commits must happen at places that depend on the input alone, or the files of an interrupted
    /// run differ.
    pub fn commit(&mut self) -> Result<(), S::Error> {
        let journaled = Journaled { steps_done: self.steps_done, state: &self.state };
        let state = serde_json::to_value(&journaled)
            .map_err(|error| StagingError::State { stage: S::NAME, reason: error.to_string() })?;
        Ok(self.staging.commit(state)?)
    }

    /// Does the steps that are left.
    pub fn go(&mut self) -> Result<(), S::Error> {
        let stage = self.stage;
        for (number, step) in (1..).zip(stage.steps()) {
            if self.steps_done >= number {
                continue;
            }
            cancel::check()?;
            if let Some(name) = step.name {
                self.progress.event(Event::Step { name });
            }
            (step.run)(self)?;
            self.steps_done = number;
            self.commit()?;
        }
        Ok(())
    }

    /// Moves the tables into the atlas and writes the manifest.
    pub fn publish(self) -> Result<S::State, S::Error> {
        let Work { stage, staging, state, progress, .. } = self;
        progress.event(Event::Step { name: "publishing" });
        staging.publish(|manifest| stage.describe(&state, manifest))?;
        Ok(state)
    }
}

/// Runs a stage, or what an earlier run of it has left.
pub fn run<S: Stage>(stage: &S, progress: &dyn Progress) -> Result<Done<S::State>, S::Error> {
    let begun = (Instant::now(), process::cpu_seconds());
    let mut work = Work::open(stage, progress)?;
    let resumed = work.resumed;
    work.go()?;
    let state = work.publish()?;
    let usage = Usage {
        resumed,
        seconds: begun.0.elapsed().as_secs_f64(),
        cpu_seconds: process::cpu_seconds() - begun.1,
        peak_memory: process::peak_rss(),
    };
    let cost = Cost {
        stage: S::NAME,
        of: stage.cost_of(),
        seconds: usage.seconds,
        cpu_seconds: usage.cpu_seconds,
        peak_memory: usage.peak_memory,
        resumed,
    };
    costs::record(stage.place().0, &cost);
    tracing::info!(stage = %S::NAME, seconds = usage.seconds, "stage done");
    Ok(Done { state, usage })
}

/// How a result that is there compares with what is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finished {
    /// There is none.
    No,
    /// It is the same: there is nothing to do.
    Same,
    /// It is another, and this is the first difference.
    Differs(String),
}

impl Finished {
    /// Compares two jobs, each with everything that decides its result.
    pub fn of(before: &serde_json::Value, now: &serde_json::Value) -> Finished {
        first_difference(before, now).map_or(Finished::Same, Finished::Differs)
    }
}

/// Whether a run of a stage was stopped before its end, be it after the last step. Only the journal
/// says so: a run that is killed while it cleans up may leave files without one.
pub fn is_begun(atlas: &Path, stage: StageName) -> bool {
    atlas.join(STAGING_DIR).join(stage.as_str()).join(JOURNAL_FILE).exists()
}

/// Whether the atlas has all tables of a stage, and no unfinished work of it.
pub fn is_whole<S: Stage>(stage: &S, atlas: &Atlas) -> bool {
    let tables = stage.staging().tables;
    !is_begun(atlas.dir(), S::NAME) && tables.iter().all(|table| atlas.has(&table.name()))
}

#[cfg(test)]
mod tests;
