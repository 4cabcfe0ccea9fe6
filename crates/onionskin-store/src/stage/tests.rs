use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use onionskin_core::DocId;
use serde_json::json;

use super::*;
use crate::Table;
use crate::progress::Quiet;

/// Writes links: in its first step some at a time, each time with a commit.
struct Linking {
    dir: PathBuf,
    memory: MemoryBudget,
    /// Fails when this many commits and steps are done.
    fail_after: Cell<u32>,
    resumed_at: RefCell<Vec<u32>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Linked {
    links: u32,
}

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Staging(Box<StagingError>),
    #[error(transparent)]
    Memory(#[from] TooLittleMemory),
    #[error(transparent)]
    Cancelled(#[from] cancel::Cancelled),
    #[error("on purpose")]
    Purpose,
}

crate::boxed_sources!(Failed: Staging(StagingError));

impl Linking {
    fn new(dir: PathBuf) -> Linking {
        let (fail_after, resumed_at) = (Cell::new(u32::MAX), RefCell::default());
        Linking { dir, memory: MemoryBudget::from_mib(1), fail_after, resumed_at }
    }

    fn live(&self) -> Result<(), Failed> {
        let left = self.fail_after.get().checked_sub(1).ok_or(Failed::Purpose)?;
        self.fail_after.set(left);
        Ok(())
    }
}

fn push(work: &mut Work<'_, Linking>) -> Result<(), Failed> {
    let link = work.state.links;
    work.staging.links()?.push(DocId(link), DocId(link + 1)).map_err(StagingError::from)?;
    work.state.links += 1;
    Ok(())
}

fn many(work: &mut Work<'_, Linking>) -> Result<(), Failed> {
    while work.state.links < 3 {
        push(work)?;
        work.commit()?;
        work.stage.live()?;
    }
    Ok(())
}

fn one_more(work: &mut Work<'_, Linking>) -> Result<(), Failed> {
    push(work)?;
    work.stage.live()
}

impl Stage for Linking {
    const NAME: StageName = StageName::Scan;
    const LEAST_MEMORY: u64 = 1 << 20;
    type State = Linked;
    type Error = Failed;

    fn place(&self) -> (&Path, MemoryBudget) {
        (&self.dir, self.memory)
    }

    fn staging(&self) -> StageParams {
        StageParams::new(StageName::Scan, json!({ "test": 1 }), "w4", vec![Table::Links])
    }

    fn begin(&self) -> Linked {
        Linked { links: 0 }
    }

    fn resume(&self, state: &Linked, _: &dyn Progress) -> Result<(), Failed> {
        self.resumed_at.borrow_mut().push(state.links);
        Ok(())
    }

    fn steps(&self) -> Vec<Step<'_, Linking>> {
        vec![Step::new("many", many), Step::new("one more", one_more)]
    }

    fn describe(&self, state: &Linked, manifest: &mut Manifest) {
        manifest.counts.insert("links".to_owned(), state.links.into());
    }

    fn cost_of(&self) -> String {
        "test".to_owned()
    }
}

#[test]
fn a_stage_that_fails_anywhere_resumes_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let whole = Linking::new(folder.path().join("whole"));
    let done = run(&whole, &Quiet).unwrap();
    assert_eq!((done.state.links, done.usage.resumed), (4, false));
    let expected = Atlas::open(&whole.dir).unwrap();
    assert!(is_whole(&whole, &expected));

    for fail_after in 0..4 {
        let stage = Linking::new(folder.path().join(format!("failed-{fail_after}")));
        stage.fail_after.set(fail_after);
        assert!(matches!(run(&stage, &Quiet), Err(Failed::Purpose)), "{fail_after}");
        assert!(is_begun(&stage.dir, StageName::Scan));
        stage.fail_after.set(u32::MAX);
        let done = run(&stage, &Quiet).unwrap();
        assert!(done.usage.resumed);
        assert_eq!(*stage.resumed_at.borrow(), [(fail_after + 1).min(3)], "what was committed was kept");
        let atlas = Atlas::open(&stage.dir).unwrap();
        assert_eq!(atlas.manifest(), expected.manifest());
        assert!(!is_begun(&stage.dir, StageName::Scan));
        assert_eq!(costs::costs(&stage.dir).len(), 1);
    }
}

#[test]
fn memory_is_checked_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Linking::new(folder.path().join("atlas"));
    stage.memory = MemoryBudget::from_bytes(1000);
    let error = run(&stage, &Quiet).unwrap_err();
    assert_eq!(error.to_string(), "scan needs at least 1M of memory, not 1000");
    assert!(!stage.dir.exists());
}

#[test]
fn the_state_of_another_version_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Linking::new(folder.path().join("atlas"));
    let (mut staging, _) = Staging::open(&stage.dir, stage.staging()).unwrap();
    staging.commit(json!({ "links": 1 })).unwrap();
    drop(staging);
    let error = run(&stage, &Quiet).unwrap_err().to_string();
    assert!(error.contains("the unfinished scan was left by another version"), "{error}");
    assert!(error.contains("hint: "), "{error}");
}

/// A kill between the removal of the journal and that of its directory leaves files that are
/// nobody's.
#[test]
fn what_a_cleaning_up_has_left_is_not_a_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let stage = Linking::new(folder.path().join("atlas"));
    run(&stage, &Quiet).unwrap();
    let left = stage.dir.join(STAGING_DIR).join(StageName::Scan.as_str());
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("links.part-00000.raw"), "left").unwrap();
    assert!(!is_begun(&stage.dir, StageName::Scan));
    assert!(is_whole(&stage, &Atlas::open(&stage.dir).unwrap()));
}
