//! Where copies stand: folders, and what is left of an address when the folder is taken away.
//!
//! A mirror keeps the shape of what it copies: `/LDP/HOWTO/Printing.html` there is
//! `/pub/linux/HOWTO/Printing.html` here. Comparing two such addresses from their ends gives the
//! folders that correspond, `/LDP/` and `/pub/linux/`, without knowing anything of either site. The
//! same comparison tells apart copies inside one site: `/docs/1.0/` and `/docs/1.1/`.

use std::collections::{BTreeMap, HashMap};

use onionskin_core::DocId;

/// The part of an address that begins with the path; `/` when there is none.
///
/// ```
/// use onionskin_mirror::place::path;
/// assert_eq!(path("http://www.example.org:8080/a/b?c"), "/a/b?c");
/// assert_eq!(path("http://www.example.org"), "/");
/// ```
pub fn path(url: &str) -> &str {
    let Some(start) = url.find("://") else { return "/" };
    let authority = &url[start + 3..];
    authority.find('/').map_or("/", |at| &authority[at..])
}

/// The folder of a path, with its slash: everything before the last segment.
pub fn folder(path: &str) -> &str {
    let end = path.find('?').unwrap_or(path.len());
    path[..end].rfind('/').map_or("/", |slash| &path[..=slash])
}

/// The folders above a path, deepest first, `/` last.
pub fn folders(path: &str) -> impl Iterator<Item = &str> {
    let mut next = Some(folder(path));
    std::iter::from_fn(move || {
        let here = next?;
        next = here.strip_suffix('/').filter(|rest| !rest.is_empty()).map(folder);
        Some(here)
    })
}

/// Whether a path is in a folder or below it.
pub fn is_below(path: &str, folder: &str) -> bool {
    path.starts_with(folder)
}

/// The two folders that correspond when two paths are of the same page: what is left in front of
/// the segments that are the same at the end. A name that differs says nothing; then it is the
/// folders of both.
///
/// ```
/// use onionskin_mirror::place::corresponding;
/// assert_eq!(corresponding("/LDP/HOWTO/x.html", "/pub/linux/HOWTO/x.html"), ("/LDP/", "/pub/linux/"));
/// assert_eq!(corresponding("/docs/a.html", "/docs/v1/a.html"), ("/docs/", "/docs/v1/"));
/// assert_eq!(corresponding("/a/index.html", "/a/"), ("/a/", "/a/"));
/// ```
pub fn corresponding<'a, 'b>(a: &'a str, b: &'b str) -> (&'a str, &'b str) {
    let (mut rest_a, mut rest_b) = (folder(a), folder(b));
    if a[rest_a.len()..] != b[rest_b.len()..] {
        return (rest_a, rest_b);
    }
    while let (Some(inner_a), Some(inner_b)) = (rest_a.strip_suffix('/'), rest_b.strip_suffix('/')) {
        let (up_a, up_b) = (folder(inner_a), folder(inner_b));
        if inner_a.is_empty() || inner_b.is_empty() || inner_a[up_a.len()..] != inner_b[up_b.len()..] {
            break;
        }
        (rest_a, rest_b) = (up_a, up_b);
    }
    (rest_a, rest_b)
}

/// Segments that two paths have in common at the end.
pub fn common_ending(a: &str, b: &str) -> usize {
    a.rsplit('/').zip(b.rsplit('/')).take_while(|(a, b)| a == b).count()
}

/// Whether a path is that of a folder or of its index page.
pub fn is_index(path: &str) -> bool {
    let name = &path[folder(path).len()..];
    name.is_empty() || name.starts_with('?') || crate::alias::is_index(name)
}

/// A path without what second addresses of a page differ in: the query, the name of an index page,
/// the slash at the end.
///
/// ```
/// use onionskin_mirror::place::bare;
/// assert_eq!(bare("/a/index.html"), bare("/a/?sid=7"));
/// assert_eq!(bare("/a"), "/a");
/// ```
pub fn bare(path: &str) -> &str {
    let without = path.split('?').next().unwrap_or(path);
    let without = if is_index(without) { folder(without) } else { without };
    without.strip_suffix('/').unwrap_or(without)
}

/// Numbers the places of one site's pages, so that copies of a page are in different ones where
/// their folders tell why. Pages are a trivial cluster and a path each. A folder is a place of its
/// own when at least three in ten of the pages below it have a copy in a corresponding folder; a
/// licence that stands in two folders does not make them copies of each other.
pub fn places(pages: &[(DocId, &str)]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..pages.len()).collect();
    order.sort_by_key(|&at| pages[at]);
    // Pages that say: what is here has a copy in a corresponding folder.
    let mut votes: HashMap<&str, u32> = HashMap::new();
    for copies in order.chunk_by(|&a, &b| pages[a].0 == pages[b].0) {
        let mut here: Vec<&str> = Vec::new();
        for pair in copies.windows(2) {
            let (a, b) = corresponding(pages[pair[0]].1, pages[pair[1]].1);
            if a != b {
                here.extend([a, b]);
            }
        }
        here.sort_unstable();
        here.dedup();
        for folder in here {
            *votes.entry(folder).or_default() += 1;
        }
    }
    if votes.is_empty() {
        return vec![0; pages.len()];
    }
    let mut candidates: Vec<(&str, u32)> = votes.into_iter().collect();
    candidates.sort_by_key(|&(folder, _)| (std::cmp::Reverse(folder.matches('/').count()), folder));
    let mut place_of: Vec<Option<&str>> = vec![None; pages.len()];
    // The deepest folder first; what is below one that counts is no longer of those above it.
    let mut by_folder: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, &(_, path)) in pages.iter().enumerate() {
        by_folder.entry(folder(path)).or_default().push(at);
    }
    for (candidate, votes) in candidates {
        let below: Vec<usize> = by_folder
            .range(candidate..)
            .take_while(|(folder, _)| folder.starts_with(candidate))
            .flat_map(|(_, pages)| pages.iter().copied())
            .filter(|&at| place_of[at].is_none())
            .collect();
        if u64::from(votes) * 10 >= below.len() as u64 * 3 {
            for at in below {
                place_of[at] = Some(candidate);
            }
        }
    }
    let mut numbers: BTreeMap<Option<&str>, u32> = place_of.iter().map(|place| (*place, 0)).collect();
    for (number, value) in (0..).zip(numbers.values_mut()) {
        *value = number;
    }
    place_of.iter().map(|place| numbers[place]).collect()
}

/// The deepest folder that has nine in ten of these paths in it.
pub fn common_folder<'a>(paths: impl IntoIterator<Item = &'a str>) -> &'a str {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut n = 0;
    for path in paths {
        n += 1;
        for folder in folders(path) {
            *counts.entry(folder).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .filter(|&(_, count)| count * 10 >= n * 9)
        .map(|(folder, _)| folder)
        .max_by_key(|folder| (folder.len(), *folder))
        .unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_from_the_deepest() {
        assert_eq!(folders("/a/b/c.html").collect::<Vec<_>>(), ["/a/b/", "/a/", "/"]);
        assert_eq!(folders("/").collect::<Vec<_>>(), ["/"]);
        assert_eq!(folders("/x?y=/z/").collect::<Vec<_>>(), ["/"]);
        assert_eq!(folders("/a/").collect::<Vec<_>>(), ["/a/", "/"]);
    }

    #[test]
    fn corresponding_folders() {
        assert_eq!(corresponding("/x/b.html", "/v1/x/b.html"), ("/", "/v1/"));
        assert_eq!(corresponding("/v1/x/b.html", "/v2/x/b.html"), ("/v1/", "/v2/"));
        assert_eq!(corresponding("/a/one.html", "/b/two.html"), ("/a/", "/b/"));
        assert_eq!(corresponding("/x.html", "/x.html"), ("/", "/"));
        assert_eq!(corresponding("/a/?s=1", "/a/?s=2"), ("/a/", "/a/"));
        assert_eq!(corresponding("/", "/"), ("/", "/"));
    }

    fn check_places(pages: &[(u32, &str)], expected: &[u32]) {
        let pages: Vec<(DocId, &str)> =
            pages.iter().map(|(cluster, path)| (DocId(*cluster), *path)).collect();
        assert_eq!(places(&pages), expected, "{pages:?}");
    }

    #[test]
    fn versions_are_places() {
        check_places(
            &[(1, "/v1/a"), (2, "/v1/x/b"), (1, "/v2/a"), (2, "/v2/x/b"), (3, "/v2/x/c"), (9, "/other")],
            &[1, 1, 2, 2, 2, 0],
        );
        // The newest stands in the folder that has the others in it.
        check_places(&[(1, "/d/a"), (2, "/d/x/b"), (1, "/d/v1/a"), (2, "/d/v1/x/b")], &[0, 0, 1, 1]);
    }

    #[test]
    fn a_licence_in_two_folders_is_no_place() {
        let pages = [
            (1, "/a/licence"),
            (2, "/a/x"),
            (3, "/a/y"),
            (4, "/a/z"),
            (1, "/b/licence"),
            (5, "/b/x"),
            (6, "/b/y"),
            (7, "/b/z"),
        ];
        check_places(&pages, &[0; 8]);
    }

    #[test]
    fn aliases_in_one_folder_are_one_place() {
        check_places(&[(1, "/a/"), (1, "/a/index.html"), (2, "/a/p?id=1"), (2, "/a/p?id=1&s=9")], &[0; 4]);
    }

    #[test]
    fn the_common_folder_forgives_one_in_ten() {
        let mut paths = vec!["/docs/a/x"; 19];
        paths.push("/elsewhere/y");
        assert_eq!(common_folder(paths), "/docs/a/");
        assert_eq!(common_folder(["/a/x", "/b/y"]), "/");
        assert_eq!(common_folder([]), "/");
    }
}
