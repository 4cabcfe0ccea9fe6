//! How things of an atlas are written on pages.

use onionskin_core::DocId;
pub(crate) use onionskin_core::format::{bytes, percent};
use onionskin_mirror::avoid::Date;
use onionskin_search::{Index, SearchError, StoredPage};
use url::form_urlencoded;

use crate::layout::grouped;

/// Characters of an address that lists show.
const SHOWN_ADDRESS: usize = 110;

/// An address of ours with its query.
pub(crate) fn href(path: &str, query: &[(&str, &str)]) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    for (name, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
        pairs.append_pair(name, value);
    }
    let query = pairs.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// A text without its middle, where it is long.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let n = text.chars().count();
    if n <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most * 2 / 3).collect();
    let tail: String = text.chars().skip(n - most / 3).collect();
    format!("{head}…{tail}")
}

/// The day of a time in microseconds since 1970, UTC; what is not in years 1 to 9999 is left as it
/// is.
pub(crate) fn day(micros: i64) -> String {
    const MICROS_A_DAY: i64 = 86_400_000_000;
    let days = u32::try_from(micros.div_euclid(MICROS_A_DAY)).ok();
    match (days, Date::new(1970, 1, 1)) {
        (Some(days), Some(first)) if days < 2_900_000 => first.plus_days(days).to_string(),
        _ => format!("{micros} µs since 1970"),
    }
}

/// A document in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocLine {
    pub doc: DocId,
    pub name: String,
    /// The address as it is shown, and whole.
    pub address: Option<(String, String)>,
}

impl DocLine {
    pub(crate) fn new(page: &StoredPage) -> DocLine {
        let address = page.url.as_ref().map(|url| (shortened(url, SHOWN_ADDRESS), url.clone()));
        let name = page.title.as_deref().filter(|title| !title.trim().is_empty());
        let name = name.map_or_else(|| shortened(&page.name(), SHOWN_ADDRESS), |title| shortened(title, 160));
        DocLine { doc: page.doc, name, address }
    }

    pub(crate) fn of(index: &Index, doc: DocId) -> Result<DocLine, SearchError> {
        let page = index.page(doc)?;
        Ok(DocLine::new(&page.unwrap_or_else(|| StoredPage { doc, ..StoredPage::default() })))
    }

    pub(crate) fn all(
        index: &Index,
        docs: impl IntoIterator<Item = DocId>,
    ) -> Result<Vec<DocLine>, SearchError> {
        docs.into_iter().map(|doc| DocLine::of(index, doc)).collect()
    }
}

/// Which part of a list a page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pager {
    /// In words.
    pub shown: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl Pager {
    /// Of `total` things, `size` a page; `page` counts from one.
    pub(crate) fn new(
        total: usize,
        page: usize,
        size: usize,
        link: impl Fn(usize) -> String,
    ) -> (Pager, std::ops::Range<usize>) {
        let pages = total.div_ceil(size).max(1);
        let page = page.clamp(1, pages);
        let range = (page - 1) * size..(page * size).min(total);
        let shown = match total {
            0 => "nothing".to_owned(),
            _ => format!(
                "{} to {} of {}",
                grouped(range.start as u64 + 1),
                grouped(range.end as u64),
                grouped(total as u64)
            ),
        };
        let before = (page > 1).then(|| link(page - 1));
        let after = (page < pages).then(|| link(page + 1));
        (Pager { shown, before, after }, range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_spelled_for_people() {
        assert_eq!(
            (percent(0.9999), percent(1.0), percent(0.5)),
            ("99.9 %".into(), "100 %".into(), "50.0 %".into())
        );
        assert_eq!(
            (bytes(999), bytes(1500), bytes(123_456_789)),
            ("999 B".into(), "1.5 kB".into(), "123 MB".into())
        );
        assert_eq!(shortened(&"é".repeat(20), 9), format!("{}…{}", "é".repeat(6), "é".repeat(3)));
        assert_eq!((day(0), day(1_700_000_000_000_000)), ("1970-01-01".into(), "2023-11-14".into()));
        assert_eq!(href("/s", &[("q", "a b&c"), ("x", "")]), "/s?q=a+b%26c");
    }

    #[test]
    fn pages_of_a_list_are_cut() {
        let (pager, range) = Pager::new(25, 2, 10, |page| format!("?page={page}"));
        assert_eq!(
            (range, pager.before.as_deref(), pager.after.as_deref()),
            (10..20, Some("?page=1"), Some("?page=3"))
        );
        let (pager, range) = Pager::new(0, 9, 10, |_| String::new());
        assert_eq!((range, pager.before, pager.after), (0..0, None, None));
        assert_eq!(Pager::new(25, usize::MAX, 10, |_| String::new()).1, 20..25);
    }
}
