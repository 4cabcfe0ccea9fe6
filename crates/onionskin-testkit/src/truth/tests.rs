//! The truth, found again from the pages alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::prelude::*;

use super::*;
use crate::{
    GeneratedPage, Preset, WebSpec,
    naive::{self, Shingle},
};

/// A page as a plain reader of its HTML sees it.
struct Read {
    text: String,
    links: Vec<String>,
}

/// Decodes, drops what is not text, cuts tags out, resolves links. Knows only what the generator
/// writes.
fn read_html(page: &GeneratedPage) -> Read {
    let bytes = &page.html;
    let html: String = match page.charset {
        Charset::Utf8 | Charset::Ascii => String::from_utf8(bytes.clone()).unwrap(),
        Charset::Utf8Bom => {
            assert!(bytes.starts_with(b"\xef\xbb\xbf"));
            String::from_utf8(bytes[3..].to_vec()).unwrap()
        }
        Charset::Latin1 => bytes.iter().map(|&byte| char::from(byte)).collect(),
        Charset::Windows1251 => bytes
            .iter()
            .map(|&byte| {
                if byte < 0x80 {
                    char::from(byte)
                } else {
                    char::from_u32(0x410 + u32::from(byte) - 0xc0).unwrap()
                }
            })
            .collect(),
        Charset::Utf16Le => {
            assert!(bytes.starts_with(b"\xff\xfe"));
            let units: Vec<u16> =
                bytes[2..].chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            String::from_utf16(&units).unwrap()
        }
    };
    if !matches!(page.charset, Charset::Utf8Bom | Charset::Utf16Le) {
        assert!(
            html.contains(&format!("charset=\"{}\"", page.charset.as_str()))
                || html.contains(&format!("charset={}\"", page.charset.as_str()))
        );
    }
    let lower = html.to_ascii_lowercase();
    let mut rest = &html[lower.find("<body>").unwrap() + 6..lower.find("</body>").unwrap()];
    let (mut text, mut links) = (String::new(), Vec::new());
    while let Some(open) = rest.find('<') {
        text.push_str(&rest[..open]);
        rest = &rest[open..];
        if rest.starts_with("<!--") {
            rest = &rest[rest.find("-->").unwrap() + 3..];
            continue;
        }
        let close = rest.find('>').unwrap();
        let tag = &rest[1..close];
        rest = &rest[close + 1..];
        let name: String =
            tag.chars().take_while(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
        if name == "script" {
            rest = &rest[rest.find("</script>").unwrap() + 9..];
        } else if let Some(at) = tag.to_ascii_lowercase().find("href=") {
            let value = &tag[at + 5..];
            let quote = value.chars().next().filter(|c| "'\"".contains(*c));
            let value = match quote {
                Some(quote) => value[1..].split(quote).next().unwrap(),
                None => value.split_whitespace().next().unwrap(),
            };
            links.push(resolve(&page.url, value));
        }
        if !["a", "/a", "img"].contains(&name.as_str()) {
            text.push('\n');
        }
    }
    text.push_str(rest);
    Read { text: unescape(&text), links }
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(end) = rest.find(';').filter(|&end| !rest[..end].contains(char::is_whitespace)) else {
            out.push('&');
            rest = &rest[1..];
            continue;
        };
        let name = &rest[1..end];
        out.push(match name.strip_prefix('#') {
            Some(number) => char::from_u32(number.parse().unwrap()).unwrap(),
            None => {
                let names = [
                    ("amp", '&'),
                    ("mdash", '—'),
                    ("eacute", 'é'),
                    ("egrave", 'è'),
                    ("ecirc", 'ê'),
                    ("uuml", 'ü'),
                    ("ouml", 'ö'),
                    ("auml", 'ä'),
                    ("ntilde", 'ñ'),
                    ("ccedil", 'ç'),
                    ("aring", 'å'),
                ];
                names.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("&{name};")).1
            }
        });
        rest = &rest[end + 1..];
    }
    out + rest
}

fn resolve(base: &str, href: &str) -> String {
    let href = href.split('#').next().unwrap();
    if href.starts_with("http://") {
        return href.to_owned();
    }
    let host_end = base[7..].find('/').unwrap() + 7;
    if href.starts_with('/') {
        return format!("{}{href}", &base[..host_end]);
    }
    let mut segments: Vec<&str> = base[host_end + 1..].split('/').collect();
    segments.pop();
    for segment in href.split('/') {
        match segment {
            "." => {}
            ".." => assert!(segments.pop().is_some(), "{base} {href}"),
            other => segments.push(other),
        }
    }
    format!("{}/{}", &base[..host_end], segments.join("/"))
}

struct Checked {
    pages: Vec<GeneratedPage>,
    facts: Vec<Fact>,
    summary: Summary,
}

fn generate(spec: &WebSpec) -> Checked {
    let web = Web::new(spec).unwrap();
    let pages: Vec<GeneratedPage> = web.pages().collect();
    let mut out = Vec::new();
    let summary = web.write_truth(&mut out, TruthOptions::default(), &mut |_, _| {}).unwrap();
    assert_eq!(summary, web.summary());
    let facts = out.split(|&b| b == b'\n').filter(|line| !line.is_empty());
    let facts: Vec<Fact> = facts.map(|line| serde_json::from_slice(line).unwrap()).collect();
    assert_eq!(facts.last(), Some(&Fact::Summary(Box::new(summary.clone()))));
    Checked { pages, facts, summary }
}

/// Every number and every pair of the truth against what the pages say.
fn check(spec: &WebSpec) -> Checked {
    let checked = generate(spec);
    let Checked { pages, facts, summary } = &checked;
    let w = spec.shingle as usize;
    assert_eq!(pages.len() as u64, spec.pages);
    let by_url: HashMap<&str, usize> =
        pages.iter().map(|page| (page.url.as_str(), page.index as usize)).collect();
    assert_eq!(by_url.len(), pages.len(), "addresses are not unique");

    // Text, in HTML and plain, word for word.
    let words: Vec<Vec<String>> = pages.iter().map(|page| naive::words(&page.text)).collect();
    let mut links: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (index, page) in pages.iter().enumerate() {
        let read = read_html(page);
        assert_eq!(naive::words(&read.text), words[index], "{} {:?}", page.url, page.charset);
        links.extend(read.links.iter().filter_map(|link| by_url.get(link.as_str())).map(|&to| (index, to)));
    }
    assert_eq!(links.len() as u64, summary.links);

    let hosts: BTreeSet<&str> = pages.iter().map(|page| page.url[7..].split('/').next().unwrap()).collect();
    assert_eq!(hosts.len() as u64, summary.sites);
    let count = |test: &dyn Fn(usize) -> bool| words.iter().filter(|words| test(words.len())).count() as u64;
    assert_eq!(count(&|n| n == 0), summary.empty);
    assert_eq!(count(&|n| n == 1), summary.one_word);
    let unspaced: BTreeSet<&str> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Page { url, words: None, .. } => Some(url.as_str()),
            _ => None,
        })
        .collect();
    let short = (0..pages.len())
        .filter(|&i| !unspaced.contains(pages[i].url.as_str()) && (1..w).contains(&words[i].len()));
    assert_eq!(short.count() as u64, summary.short);

    // Exact copies: all but one of each text.
    let mut texts: BTreeMap<&[String], u64> = BTreeMap::new();
    for words in words.iter().filter(|words| !words.is_empty()) {
        *texts.entry(words).or_default() += 1;
    }
    assert_eq!(texts.values().map(|n| n - 1).sum::<u64>(), summary.exact_copies);

    let sets: Vec<BTreeSet<Shingle>> = words.iter().map(|words| naive::shingles(words, w)).collect();
    let mut in_truth: Vec<(usize, usize)> = Vec::new();
    let mut listed: BTreeMap<u64, u64> = BTreeMap::new();
    for fact in facts {
        match fact {
            Fact::Page { page, url, words: n, charset, .. } => {
                let index = by_url[url.as_str()];
                assert_eq!((*page, *charset), (index as u64, pages[index].charset));
                if let Some(n) = n {
                    assert_eq!(*n as usize, words[index].len(), "{url}");
                }
            }
            Fact::Empty { url } => assert!(words[by_url[url.as_str()]].is_empty()),
            Fact::Short { url, words: n } => assert_eq!(words[by_url[url.as_str()]].len(), *n as usize),
            Fact::Copy { cluster, a, b, kind, resemblance } => {
                let (a, b) = (by_url[a.as_str()], by_url[b.as_str()]);
                assert_ne!(a, b);
                // Reading a float back from JSON may miss its last bit.
                let expected = naive::resemblance(&sets[a], &sets[b]);
                assert!((resemblance - expected).abs() < 1e-12, "{} {}", pages[a].url, pages[b].url);
                assert_eq!(*kind == CopyKind::Exact, words[a] == words[b]);
                in_truth.push((a, b));
                *listed.entry(*cluster).or_default() += 1;
            }
            Fact::Disconnected { root, .. } => assert!(by_url.contains_key(root.as_str())),
            Fact::Template { root: Some(root), pages: n, .. } => {
                let folder = root.trim_end_matches("index.html");
                assert_eq!(pages.iter().filter(|page| page.url.starts_with(folder)).count() as u64, *n);
            }
            Fact::Calendar { root, .. } => assert!(by_url.contains_key(root.as_str())),
            Fact::Mirror { target, replica, .. } => {
                assert!(by_url.contains_key(target.as_str()) && by_url.contains_key(replica.as_str()));
            }
            _ => {}
        }
    }
    for fact in facts {
        if let Fact::Cluster { cluster, pages, pairs, centre, .. } = fact {
            assert!(by_url.contains_key(centre.as_str()));
            let n = listed.get(cluster).copied().unwrap_or(0);
            match pairs {
                Pairs::All => assert_eq!(n, pages * (pages - 1) / 2),
                Pairs::Centre => assert_eq!(n, pages - 1),
                Pairs::Sharing => assert!(n >= pages - 1),
            }
        }
    }

    // Nothing is alike that the truth does not know of, boilerplate apart.
    // Below three words, a shingle is shared by chance.
    let web = Web::new(spec).unwrap();
    let template = |page: u64| web.content(web.locate(page)).template.map(|template| template.group);
    let templates: Vec<Option<u32>> = (0..spec.pages).map(template).collect();
    if w >= 3 {
        let cluster_of = naive::naive_components(pages.len(), in_truth.iter().copied());
        let mut holders: BTreeMap<&Shingle, Vec<usize>> = BTreeMap::new();
        for (page, set) in sets.iter().enumerate() {
            set.iter().for_each(|shingle| holders.entry(shingle).or_default().push(page));
        }
        let mut candidates: BTreeSet<(usize, usize)> = BTreeSet::new();
        for pages in holders.values() {
            candidates.extend(
                pages.iter().flat_map(|&a| pages.iter().filter(move |&&b| a < b).map(move |&b| (a, b))),
            );
        }
        for (a, b) in candidates {
            if templates[a].is_some() && templates[a] == templates[b] {
                continue;
            }
            let value = naive::resemblance(&sets[a], &sets[b]);
            if value < 0.1 {
                continue;
            }
            assert_eq!(cluster_of[a], cluster_of[b], "{value}: {:?} and {:?}", pages[a].text, pages[b].text);
        }
    }
    checked
}

/// Pages reachable from page 0 of the first site that is not an island, by links read from the
/// HTML.
fn reachable(checked: &Checked, start: usize) -> BTreeSet<usize> {
    let by_url: HashMap<&str, usize> =
        checked.pages.iter().map(|page| (page.url.as_str(), page.index as usize)).collect();
    let mut seen = BTreeSet::from([start]);
    let mut open = vec![start];
    while let Some(page) = open.pop() {
        for link in read_html(&checked.pages[page]).links {
            if let Some(&to) = by_url.get(link.as_str())
                && seen.insert(to)
            {
                open.push(to);
            }
        }
    }
    seen
}

#[test]
fn the_demo_is_as_it_says() {
    let checked = check(&WebSpec::of(Preset::Demo, 1_500, 1));
    let summary = &checked.summary;
    for (what, n) in [
        ("empty", summary.empty),
        ("one word", summary.one_word),
        ("short", summary.short - summary.one_word),
        ("exact", summary.exact_copies),
        ("near", summary.near_copies),
        ("full", summary.full_mirrors),
        ("partial", summary.partial_mirrors),
        ("skewed", summary.skewed_mirrors),
        ("aliases", summary.aliases),
        ("break points", summary.break_points),
        ("calendars", summary.calendars),
        ("templates", summary.template_pages),
        ("islands", summary.disconnected_pages),
        ("links", summary.links),
    ] {
        assert!(n > 0, "{what}: none planted");
    }
    assert_eq!(summary.charsets.len(), 6, "{:?}", summary.charsets);
    assert_eq!(summary.charsets.values().sum::<u64>(), summary.documents);
}

#[test]
fn every_preset_is_as_it_says() {
    for preset in Preset::ALL {
        for (pages, seed) in [(300, 7), (150, 8)] {
            let spec = WebSpec::of(preset, pages, seed);
            let spec = if spec.lengths.mean > 100.0 { spec.with_mean_words(80.0) } else { spec };
            check(&spec);
        }
    }
}

#[test]
fn demos_of_odd_sizes_and_shingles() {
    for (pages, shingle) in [(400, 1), (500, 3), (701, 8)] {
        check(&WebSpec::of(Preset::Demo, pages, pages).with_mean_words(60.0).with_shingle(shingle));
    }
}

#[test]
fn islands_are_unreachable_and_the_mainland_is_not() {
    for preset in [Preset::Disconnected, Preset::Demo] {
        let spec = WebSpec::of(preset, 600, 3).with_mean_words(40.0);
        let checked = generate(&spec);
        let web = Web::new(&spec).unwrap();
        let island: BTreeSet<usize> = (0..spec.pages)
            .filter(|&page| web.places[web.locate(page).place as usize].island)
            .map(|page| page as usize)
            .collect();
        assert_eq!(island.len() as u64, checked.summary.disconnected_pages);
        assert!(!island.is_empty());
        for start in [0, 100, 300, 599] {
            let seen = reachable(&checked, start);
            let main: BTreeSet<usize> =
                (0..spec.pages as usize).filter(|page| !island.contains(page)).collect();
            if island.contains(&start) {
                continue;
            }
            assert_eq!(seen, main, "{preset:?} from {start}");
        }
    }
}

#[test]
fn mirrors_have_what_their_facts_say() {
    let checked = generate(&WebSpec::of(Preset::Mirrors, 4_000, 5).with_mean_words(30.0));
    let texts: HashMap<&str, &str> =
        checked.pages.iter().map(|page| (page.url.as_str(), page.text.as_str())).collect();
    let folder = |root: &str| root.trim_end_matches("index.html").to_owned();
    let mut kinds = BTreeMap::new();
    for fact in &checked.facts {
        let Fact::Mirror {
            target,
            replica,
            kind,
            target_pages,
            pages,
            missing,
            changed,
            added,
            break_points,
            ..
        } = fact
        else {
            continue;
        };
        *kinds.entry(*kind).or_insert(0) += 1;
        let (from, to) = (folder(target), folder(replica));
        let (mut same, mut other, mut absent, mut n_target) = (0, 0, 0, 0);
        for url in texts.keys().filter(|url| url.starts_with(&from)) {
            n_target += 1;
            match texts.get(format!("{to}{}", &url[from.len()..]).as_str()) {
                Some(text) if *text == texts[*url] => same += 1,
                Some(_) => other += 1,
                None => absent += 1,
            }
        }
        assert_eq!(n_target, *target_pages, "{target}");
        assert_eq!(absent, *missing, "{replica}");
        assert_eq!(same + other, pages - added, "{replica}");
        let replaced = break_points.div_ceil(2);
        assert_eq!(other, changed + replaced, "{replica}");
        match kind {
            MirrorKind::Full | MirrorKind::Alias => assert_eq!(same, *pages),
            MirrorKind::Partial => assert!(*missing > 0 && other == 0),
            MirrorKind::Skewed => assert!(other + absent + added > 0),
        }
    }
    assert!(kinds.len() == 3, "{kinds:?}");
}

#[test]
fn near_copies_come_near_what_was_asked() {
    let spec = WebSpec::of(Preset::Text, 2_000, 4);
    let web = Web::new(&spec).unwrap();
    let mut out = Vec::new();
    web.write_truth(&mut out, TruthOptions { pages: false, copies: true }, &mut |_, _| {}).unwrap();
    let mut near: Vec<f64> = Vec::new();
    for line in out.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
        if let Fact::Copy { kind: CopyKind::Near, resemblance, .. } = serde_json::from_slice(line).unwrap() {
            near.push(resemblance);
        }
    }
    let within = |low: f64, high: f64| near.iter().filter(|&&r| r >= low - 0.02 && r <= high + 0.02).count();
    // 10 % of 2,000 documents, in pairs, is 100 pairs.
    assert!(within(0.95, 0.999) >= 99, "{}", within(0.95, 0.999));
    assert!(within(0.20, 0.50) >= 59, "{}", within(0.20, 0.50));
    assert_eq!(near.len(), 100 + 100 + 80 + 60 + 60);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn fast_resemblance_is_the_naive_one(
        a in prop::collection::vec(0u8..4, 0..40),
        b in prop::collection::vec(0u8..4, 0..40),
        w in 1usize..6,
    ) {
        let names = |words: &[u8]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let keys = |words: &[u8]| words.iter().map(|&word| u128::from(word)).collect::<Vec<_>>();
        let expected = naive::resemblance(&naive::shingles(&names(&a), w), &naive::shingles(&names(&b), w));
        prop_assert_eq!(resemblance(&keys(&a), &keys(&b), w), expected);
    }
}
