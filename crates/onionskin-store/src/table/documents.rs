//! Documents and sites, and the choice of some columns of a document.

use arrow_array::ArrayRef;
use onionskin_core::{DocId, SiteId};

use super::TableError;
use super::row::{Batch, BatchReader, Cell, Row, RowWriter, Selection, Text, WIDE_BATCH, rows};
use super::typed::Columns;
use crate::schema::Table;

/// Writes `documents`.
pub type DocumentsWriter = RowWriter<DocumentRow<'static>>;
/// Reads `documents`. [`BatchReader::select`] reads some columns only.
pub type DocumentsReader = BatchReader<DocumentRow<'static>>;
/// Some documents.
pub type DocumentBatch = Batch<DocumentRow<'static>>;
/// Writes `sites`.
pub type SitesWriter = RowWriter<SiteRow<'static>>;
/// Reads `sites`.
pub type SitesReader = BatchReader<SiteRow<'static>>;
/// Some sites.
pub type SiteBatch = Batch<SiteRow<'static>>;

rows! {
    Documents by doc: DocId in batches of WIDE_BATCH:
    /// A document, as a row.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct DocumentRow<'a> {
        /// Number of the document: dense, in the order of the input.
        doc: DocId,
        /// The id the input gave it.
        id: Option<&'a str> => Option<Text>,
        /// Its URL.
        url: Option<&'a str> => Option<Text>,
        /// Its site, a row of `sites`.
        site: Option<SiteId>,
        /// The input it came from.
        source: &'a str => Text,
        /// Where in the input.
        offset: u64,
        /// The media type of the payload.
        media_type: &'a str => Text,
        /// Length of the payload.
        bytes: u64,
        /// Number of canonical tokens.
        tokens: u64,
        /// Its title.
        title: Option<&'a str> => Option<Text>,
        /// The URL it names as its canonical one.
        canonical_url: Option<&'a str> => Option<Text>,
        /// When it was fetched: microseconds since 1970, UTC.
        fetched_at: Option<i64>,
        /// SHA-1 of the payload.
        payload_sha1: Option<[u8; 20]>,
        /// Fingerprint of the canonical text; `None` when the document is empty.
        text_fp: Option<u64>,
    }

    Sites by site: SiteId in batches of WIDE_BATCH:
    /// A site, as a row.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct SiteRow<'a> {
        /// Number of the site.
        site: SiteId,
        /// Its host.
        host: &'a str => Text,
        /// The domain under a public suffix that the host belongs to.
        registered_domain: Option<&'a str> => Option<Text>,
    }
}

/// The columns of `documents`, to choose some of: a tuple of them is a [`Selection`] whose rows are
/// tuples of their values.
///
/// ```
/// use onionskin_store::table::{DocumentsReader, TableError, document};
/// fn urls(documents: DocumentsReader) -> Result<Vec<String>, TableError> {
///     let mut urls = Vec::new();
///     for batch in documents.select::<(document::Doc, document::Url)>() {
///         urls.extend(batch?.rows().filter_map(|(_doc, url)| url.map(str::to_owned)));
///     }
///     Ok(urls)
/// }
/// ```
pub mod document {
    use super::{Cell, DocId, SiteId, Text};

    /// A column of `documents`.
    pub trait Column: 'static {
        /// Its name in the table.
        const NAME: &'static str;
        /// How it is encoded.
        type Of: Cell;
    }

    macro_rules! columns {
        ($($name:ident $column:literal: $cell:ty,)+) => {$(
            #[doc = concat!("The column `", $column, "`.")]
            #[derive(Clone, Copy, Debug)]
            pub enum $name {}

            impl Column for $name {
                const NAME: &'static str = $column;
                type Of = $cell;
            }
        )+};
    }
    columns! {
        Doc "doc": DocId,
        Id "id": Option<Text>,
        Url "url": Option<Text>,
        Site "site": Option<SiteId>,
        Source "source": Text,
        Offset "offset": u64,
        MediaType "media_type": Text,
        Bytes "bytes": u64,
        Tokens "tokens": u64,
        Title "title": Option<Text>,
        CanonicalUrl "canonical_url": Option<Text>,
        FetchedAt "fetched_at": Option<i64>,
        PayloadSha1 "payload_sha1": Option<[u8; 20]>,
        TextFp "text_fp": Option<u64>,
    }
}

macro_rules! selections {
    ($(($($column:ident $array:ident),+))+) => {$(
        impl<$($column: document::Column),+> Selection for ($($column,)+) {
            type Item<'r> = ($(<$column::Of as Cell>::Value<'r>,)+);
            type Arrays = ($(<$column::Of as Cell>::Array,)+);
            type First = DocId;
            const COLUMNS: &'static [&'static str] = &[$($column::NAME),+];
            const TABLE: Table = Table::Documents;

            fn decode(columns: &Columns<'_>) -> Result<Self::Arrays, TableError> {
                Ok(($(<$column::Of as Cell>::decode(columns, $column::NAME)?,)+))
            }

            #[inline]
            fn item(($($array,)+): &Self::Arrays, row: usize) -> Self::Item<'_> {
                ($(<$column::Of as Cell>::value($array, row),)+)
            }
        }
    )+};
}
selections! {
    (A a)
    (A a, B b)
    (A a, B b, C c)
    (A a, B b, C c, D d)
    (A a, B b, C c, D d, E e)
    (A a, B b, C c, D d, E e, F f)
    (A a, B b, C c, D d, E e, F f, G g)
    (A a, B b, C c, D d, E e, F f, G g, H h)
}
