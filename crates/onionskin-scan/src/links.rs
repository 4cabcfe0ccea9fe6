//! Links land on documents: two sorts and a merge, within the budget.
//!
//! The naive way looks every link up in a table of all addresses, which a large crawl has no memory
//! for. Here addresses and links are sorted by fingerprint and walked side by side; what meets is
//! sorted by document again. Twelve bytes per link and per address, each moved twice when it does
//! not fit in memory.
//!
//! An address that was scanned more than once belongs to its first document. A link that stands
//! twice in a page is one link; a link from a page to itself is a link.

use onionskin_core::DocId;
use onionskin_store::join::SortedCursor;
use onionskin_store::sort::{SortParams, SortedStream, Sorter};
use onionskin_store::stage::Work;
use onionskin_store::{MemoryBudget, Staging, StagingError};

use super::writer::{ADDRESSES, LINKS};
use super::{Scan, ScanError};

/// Resolved links taken from the sort at a time.
const BLOCK: usize = 16 << 10;

/// Resolves all links within some memory.
pub(super) fn resolve(work: &mut Work<'_, Scan>, memory: MemoryBudget) -> Result<(), ScanError> {
    // A corpus of texts has none, and then nobody has to know where addresses are.
    if work.state.links_found == 0 {
        return Ok(());
    }
    // Three sorts are alive at the same time for a moment.
    let share = memory.share(1, 4);
    let addresses = sorted(&work.staging, ADDRESSES, share)?;
    let links = sorted(&work.staging, LINKS, share)?;
    let mut spilled = addresses.stats().spilled_bytes + links.stats().spilled_bytes;

    let mut resolved =
        Sorter::<(DocId, DocId)>::new(SortParams::new(work.staging.work_dir(), share).dedup())?;
    let mut addresses = SortedCursor::new(addresses);
    for link in links {
        let (wanted, src) = link?;
        // Sorted by fingerprint and then document, so the first document of an address is met
        // first.
        if let Some((_, dest)) = addresses.at(wanted, |address| address.0)? {
            resolved.push((src, dest))?;
        }
    }
    drop(addresses);

    let mut resolved = resolved.finish()?;
    spilled += resolved.stats().spilled_bytes;
    let mut block = Vec::with_capacity(BLOCK);
    let mut count = 0;
    while resolved.next_block(&mut block, BLOCK)? {
        let table = work.staging.links()?;
        for (src, dest) in block.drain(..) {
            table.push(src, dest).map_err(StagingError::from)?;
            count += 1;
        }
    }
    work.state.links = count;
    work.state.spilled_bytes = spilled;
    Ok(())
}

fn sorted(
    staging: &Staging,
    name: &str,
    share: MemoryBudget,
) -> Result<SortedStream<(u64, DocId)>, ScanError> {
    let mut sorter = Sorter::new(SortParams::new(staging.work_dir(), share))?;
    let mut records = staging.raw_records::<(u64, DocId)>(name);
    while let Some(block) = records.next_block().map_err(StagingError::from)? {
        sorter.push_slice(block)?;
    }
    Ok(sorter.finish()?)
}
