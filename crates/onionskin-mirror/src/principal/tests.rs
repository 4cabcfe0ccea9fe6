use super::PrincipalReason as Reason;
use super::*;

/// A copy of the collection in words: its owner, and what is known of it.
fn candidate(owner: &'static str) -> Candidate<'static> {
    Candidate { owner: Some(owner), pages: 50, depth: 1, address: (owner, None), ..Candidate::default() }
}

/// The same, where owners have several copies.
#[track_caller]
fn check_at(all: &[Candidate<'static>], address: &str, reason: Reason, evidence: &str) {
    let (at, chosen) = decide(all);
    assert_eq!((all[at].address.0, chosen.reason, chosen.evidence.as_str()), (address, reason, evidence));
}

#[track_caller]
fn check(all: &[Candidate<'static>], owner: &str, reason: Reason, evidence: &str) {
    for turn in 0..all.len() {
        let mut turned = all.to_vec();
        turned.rotate_left(turn);
        let (at, chosen) = decide(&turned);
        assert_eq!(turned[at].owner, Some(owner), "{chosen:?}");
        assert_eq!((chosen.reason, chosen.evidence.as_str()), (reason, evidence));
    }
}

const fn days(n: i64) -> Option<i64> {
    Some(n * DAY)
}

#[test]
fn who_gives_way_is_no_principal() {
    let named = |owner, named_by| Candidate { named_by, ..candidate(owner) };
    let gives = |owner| Candidate { gives_way: true, votes: 90, ..candidate(owner) };
    let all = [gives("a.org"), named("z.org", 2), gives("b.org")];
    check(&all, "z.org", Reason::Canonical, "named canonical by 2 of 2 replicas");
    // Of two hosts of an owner the one that was named.
    let www = Candidate { address: ("www", None), ..named("z.org", 1) };
    let bare = Candidate { address: ("bare", None), ..candidate("z.org") };
    check_at(&[gives("a.org"), bare, www], "www", Reason::Canonical, "named canonical by 1 of 2 replicas");
    // Who gives way to each other has said nothing.
    check(&[gives("a.org"), gives("b.org")], "a.org", Reason::Address, "by address only");
    // One that says nothing is still there, and the others' word is no vote.
    let all = [gives("a.org"), named("z.org", 1), candidate("m.org")];
    check(&all, "m.org", Reason::Address, "by address only");
}

#[test]
fn votes_decide_with_a_lead() {
    let voted = |owner, votes| Candidate { votes, ..candidate(owner) };
    check(
        &[voted("a.org", 1), voted("z.org", 3)],
        "z.org",
        Reason::Links,
        "3 domains link to it, 1 to another",
    );
    check(&[voted("a.org", 0), voted("z.org", 2)], "z.org", Reason::Links, "2 domains link to it");
    check(&[voted("a.org", 0), voted("z.org", 1)], "z.org", Reason::FewLinks, "1 domain links to it");
    check(
        &[voted("a.org", 7), voted("z.org", 8)],
        "z.org",
        Reason::FewLinks,
        "8 domains link to it, 7 to another",
    );
    // However large the copy, however high it stands, whenever it was fetched.
    let original = Candidate { votes: 2, depth: 3, pages: 10, fetched: days(900), ..candidate("z.org") };
    let copy = Candidate { depth: 1, pages: 500, fetched: days(0), ..candidate("a.org") };
    check(&[copy, original], "z.org", Reason::Links, "2 domains link to it");
}

#[test]
fn a_strong_reason_holds_for_all_copies_of_an_owner() {
    let mut www = Candidate { votes: 40, address: ("www", None), ..candidate("z.org") };
    let bare = Candidate { votes: 41, pages: 20, address: ("bare", None), ..candidate("z.org") };
    check(&[www.clone(), bare.clone(), candidate("a.org")], "z.org", Reason::Links, "40 domains link to it");
    // Without anybody else it is as it is.
    www.votes = 41;
    check(&[www, bare], "z.org", Reason::Size, "by size only: 50 pages, 20 elsewhere");
}

#[test]
fn the_first_fetched_is_long_before_the_others_or_weak() {
    let at = |owner, fetched| Candidate { fetched, ..candidate(owner) };
    let first = |days| format!("fetched first, {days} before the others");
    let deep = Candidate { depth: 4, votes: 1, ..at("z.org", days(0)) };
    check(&[at("a.org", days(30)), deep.clone()], "z.org", Reason::FetchedFirst, &first("30 days"));
    check(
        &[Candidate { votes: 1, ..at("a.org", days(29)) }, deep.clone()],
        "z.org",
        Reason::FetchedEarlier,
        "fetched a little earlier",
    );
    // Without a date it may be the oldest.
    let unlinked = Candidate { votes: 0, ..deep.clone() };
    check(&[at("a.org", None), unlinked.clone()], "a.org", Reason::Depth, "by depth only");
    // A page that many know is fetched again and again.
    let known = Candidate { votes: 2, ..at("a.org", days(90)) };
    check(&[known, deep], "a.org", Reason::FewLinks, "2 domains link to it, 1 to another");
    // A copy can have been crawled first: years say nothing of one that nobody links to.
    check(
        &[at("a.org", days(5000)), unlinked],
        "z.org",
        Reason::FetchedEarlier,
        "fetched 5,000 days before the others, but nothing links to it",
    );
}

#[test]
fn weak_reasons_in_their_order() {
    let linked = Candidate { votes: 1, pages: 10, ..candidate("z.org") };
    check(&[candidate("a.org"), linked], "z.org", Reason::FewLinks, "1 domain links to it");
    let full = Candidate { pages: 60, depth: 5, ..candidate("z.org") };
    check(&[candidate("a.org"), full], "z.org", Reason::Size, "by size only: 60 pages, 50 elsewhere");
    let high = Candidate { depth: 1, ..candidate("z.org") };
    let deep = Candidate { depth: 2, pages: 52, ..candidate("a.org") };
    check(&[deep, high], "z.org", Reason::Depth, "by depth only");
    check(&[candidate("b.org"), candidate("a.org")], "a.org", Reason::Address, "by address only");
}

#[test]
fn addresses_of_one_page() {
    let same = |a, b| assert_eq!(key(a), key(b), "{a} {b}");
    same("http://a.org/x/", "https://a.org/x/index.html");
    same("http://a.org/x?y=1", "http://a.org/x");
    same("http://a.org", "https://a.org/");
    assert_ne!(key("http://a.org/x"), key("http://a.org/y"));
    assert_ne!(key("http://a.org/"), key("http://b.org/"));
}

#[test]
fn votes_of_a_site_or_a_page() {
    let votes =
        Votes { of_site: [Some(3), None].into(), cast: vec![(DocId(1), 4), (DocId(1), 9), (DocId(2), 1)] };
    assert_eq!(votes.of(DocId(1)).collect::<Vec<_>>(), [4, 9]);
    assert_eq!(votes.of(DocId(0)).count() + votes.of(DocId(3)).count(), 0);
    assert_eq!(
        [Some(SiteId(0)), Some(SiteId(1)), Some(SiteId(7)), None].map(|site| votes.site(site)),
        [Some(3), None, None, None]
    );
}

#[test]
fn no_domain_that_hosts_a_replica_votes() {
    let member =
        |slot: u32, doc| Member { slot: onionskin_core::SlotId(slot), doc: DocId(doc), role: Role::Copy };
    // The first replica is on sites 0 and 1, the second on site 2.
    let sites = [0, 1, 2, 2].map(SiteId);
    let replica = |site, docs: [u32; 2]| Replica {
        site: Some(SiteId(site)),
        members: vec![member(0, docs[0]), member(1, docs[1])],
    };
    let replicas = vec![replica(0, [0, 1]), replica(2, [2, 3])];
    let (root, chosen) = (onionskin_core::SlotId(0), Chosen::default());
    let mut group = Group { slots: 2, root, principal: 1, chosen, replicas };
    let urls = ["http://a.org/", "http://b.org/x", "http://c.org/", "http://c.org/x"];
    let page = |doc: DocId| PageInfo { url: urls[doc.index()], ..PageInfo::default() };
    let site = |site: Option<SiteId>| SiteInfo {
        host: ["a.org", "b.org", "c.org"][site.unwrap().index()],
        domain: None,
        pages: 2,
    };
    let from = |voters: &[(u32, u32)]| Votes {
        of_site: [Some(0), Some(1), Some(2)].into(),
        cast: voters.iter().map(|(doc, voter)| (DocId(*doc), *voter)).collect(),
    };
    let site_of = |doc: DocId| Some(sites[doc.index()]);
    let mut check = |voters: &[(u32, u32)], principal, evidence: &str| {
        let votes = from(voters);
        choose(&mut group, &Facts { page: &page, site: &site, site_of: &site_of, votes: &votes });
        assert_eq!((group.principal, group.chosen.evidence.as_str()), (principal, evidence));
    };
    // Links from its own sites, from those of the other, and from a stranger.
    check(&[(0, 1), (0, 2), (1, 0), (2, 7)], 1, "1 domain links to it");
    check(&[(0, 7), (0, 8), (1, 8), (2, 1), (3, 0)], 0, "2 domains link to it");
}
