//! Exact copies: equal payload, or equal canonical text. Found first and folded before all else
//! (Shivakumar and Garcia-Molina 1998, section 2.2, step 2), so that ten thousand copies of a page
//! cost later steps as much as one.
//!
//! Sixteen bytes per document are sorted for the texts and thirty-three for the payloads; what is
//! left afterwards is the list of copies and one bit a document.
//!
//! An empty document has no text and is a copy of nothing, also of no other empty one. A revisit
//! record has no text either, but names a payload: it is a copy of the first document with that
//! payload.

use onionskin_core::DocId;
use onionskin_store::Atlas;
use onionskin_store::join::SortedCursor;
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::table::document;
use serde::{Deserialize, Serialize};

use crate::components::Components;
use crate::{Resources, SimilarError};

/// The media type of a document that only says that a payload was met again.
const REVISIT: &str = "warc/revisit";

/// Digest, whether it is a revisit, document, fingerprint of the text.
type Payload = ([u8; 20], u8, DocId, u64);

/// What tells copies.
type Columns =
    (document::Doc, document::MediaType, document::Tokens, document::PayloadSha1, document::TextFp);

/// What folding has found and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExactStats {
    /// Documents with a text.
    pub texts: u64,
    /// Documents that are copies of a smaller one.
    pub copies: u64,
    /// Bytes that sorting wrote to disk.
    pub spilled_bytes: u64,
}

/// Hands over every copy and the smallest document with a text that it is a copy of, in ascending
/// order of the copy.
pub fn exact_copies(
    atlas: &Atlas,
    resources: &Resources,
    mut emit: impl FnMut(DocId, DocId) -> Result<(), SimilarError>,
) -> Result<ExactStats, SimilarError> {
    let mut stats = ExactStats::default();
    let params = || SortParams::new(&resources.work_dir, resources.memory.share(1, 8));
    // The number of words beside the fingerprint makes a false meeting of two texts rarer still.
    let mut texts = Sorter::<(u64, u32, DocId)>::new(params())?;
    let mut payloads = Sorter::<Payload>::new(params())?;
    let mut documents = atlas.documents()?.select::<Columns>();
    let mut n_documents = 0;
    while let Some(batch) = documents.next_batch()? {
        for (doc, media_type, tokens, payload, text) in batch.rows() {
            n_documents = n_documents.max(u64::from(doc) + 1);
            if let Some(text) = text {
                stats.texts += 1;
                texts.push((text, u32::try_from(tokens).unwrap_or(u32::MAX), doc))?;
            }
            let revisit = text.is_none() && media_type == REVISIT;
            if let Some(payload) = payload
                && (revisit || text.is_some())
            {
                payloads.push((payload, u8::from(revisit), doc, text.unwrap_or(0)))?;
            }
        }
    }

    let mut components = Components::new(n_documents, &resources.share(1, 2))?;
    let texts = texts.finish()?;
    stats.spilled_bytes += texts.stats().spilled_bytes;
    let mut first: Option<(u64, u32, DocId)> = None;
    for text in texts {
        let text = text?;
        match first {
            Some(first) if (first.0, first.1) == (text.0, text.1) => components.unite(first.2, text.2)?,
            _ => first = Some(text),
        }
    }
    // Documents with a text come before revisits of the same payload, so the first one is a text if
    // there is any. Revisits wait aside: one with a small number must not become the centre, for it
    // has nothing to compare.
    let mut revisits = Sorter::<(DocId, DocId)>::new(params())?;
    let payloads = payloads.finish()?;
    stats.spilled_bytes += payloads.stats().spilled_bytes;
    let mut first: Option<Payload> = None;
    for payload in payloads {
        let payload = payload?;
        match first {
            Some(first) if first.0 == payload.0 && first.1 == 0 => {
                if payload.1 == 1 {
                    revisits.push((first.2, payload.2))?;
                } else if payload.3 != first.3 {
                    components.unite(first.2, payload.2)?;
                }
            }
            _ => first = Some(payload),
        }
    }

    let mut revisits = SortedCursor::new(revisits.finish()?);
    let mut copies = Sorter::<(DocId, DocId)>::new(params())?;
    let mut revisits_below = |doc: DocId, centre: Option<DocId>, copies: &mut Sorter<(DocId, DocId)>| {
        while let Some((original, revisit)) = revisits.next_if(|(original, _)| *original <= doc)? {
            copies.push((revisit, if original == doc { centre.unwrap_or(original) } else { original }))?;
        }
        Ok::<(), SimilarError>(())
    };
    let cost = components.finish(|doc, centre| {
        revisits_below(doc, Some(centre), &mut copies)?;
        if doc != centre {
            copies.push((doc, centre))?;
        }
        Ok(())
    })?;
    stats.spilled_bytes += cost.spilled_bytes;
    revisits_below(DocId::MAX, None, &mut copies)?;
    for copy in copies.finish()? {
        let (doc, centre) = copy?;
        stats.copies += 1;
        emit(doc, centre)?;
    }
    Ok(stats)
}
