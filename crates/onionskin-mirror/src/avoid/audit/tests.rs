use super::super::tests::entry;
use super::*;

fn date(text: &str) -> Date {
    text.parse().unwrap()
}

#[track_caller]
fn check(checked: Option<&str>, seen: Seen, verdict: Verdict, look_again: &str) {
    let mut entry = entry("m.example", &["*"], 100);
    entry.checked = checked.map(str::to_owned);
    let audited = audit_entry(&entry, &seen, date("2026-11-16"), &AuditParams::default());
    assert_eq!((audited.verdict, audited.look_again), (verdict, date(look_again)), "{}", audited.reason);
}

const COPIES: Seen =
    Seen { asked: true, pages: 20, copies_of_principal: 19, copies_elsewhere: 0, principal_pages: 90 };

#[test]
fn copies_hold_and_are_looked_at_less_often() {
    check(None, COPIES, Verdict::Holds, "2026-12-16");
    check(Some("2026-10-17"), COPIES, Verdict::Holds, "2027-01-15");
    check(Some("2026-10-17T12:00:00Z"), COPIES, Verdict::Holds, "2027-01-15");
    // Never more than a year, never less than a week; a date that cannot be is none.
    check(Some("2020-01-01"), COPIES, Verdict::Holds, "2027-11-16");
    check(Some("2026-11-15"), COPIES, Verdict::Holds, "2026-11-23");
    check(Some("2027-01-01"), COPIES, Verdict::Holds, "2026-11-23");
    check(Some("soon"), COPIES, Verdict::Holds, "2026-12-16");
}

#[test]
fn what_changed_is_looked_at_sooner() {
    let changed = Seen { copies_of_principal: 10, ..COPIES };
    check(None, changed, Verdict::Changed, "2026-11-23");
    check(Some("2026-09-17"), changed, Verdict::Changed, "2026-12-16");
    let elsewhere = Seen { copies_of_principal: 2, copies_elsewhere: 18, ..COPIES };
    check(None, elsewhere, Verdict::Changed, "2026-11-23");
    let partly_elsewhere = Seen { copies_of_principal: 12, copies_elsewhere: 8, ..COPIES };
    check(None, partly_elsewhere, Verdict::Holds, "2026-12-16");
}

#[test]
fn what_is_gone_and_what_was_not_seen_are_told_apart() {
    let nothing = Seen { pages: 0, copies_of_principal: 0, ..COPIES };
    check(Some("2026-10-17"), nothing, Verdict::Gone, "2027-01-15");
    check(Some("2026-10-17"), Seen { asked: false, ..nothing }, Verdict::NotSeen, "2026-11-23");
    check(None, Seen { pages: 3, copies_of_principal: 0, ..COPIES }, Verdict::NotSeen, "2026-11-23");
    check(None, Seen { principal_pages: 0, ..COPIES }, Verdict::PrincipalGone, "2026-11-23");
    check(None, Seen { principal_pages: 0, asked: false, ..nothing }, Verdict::PrincipalGone, "2026-11-23");
}

#[test]
fn a_small_entry_is_judged_by_all_of_it() {
    let mut small = entry("m.example", &["*"], 3);
    small.checked = None;
    let seen = Seen { pages: 3, copies_of_principal: 3, ..COPIES };
    let audited = audit_entry(&small, &seen, date("2026-11-16"), &AuditParams::default());
    assert_eq!(audited.verdict, Verdict::Holds);
    assert_eq!(audited.reason, "3 of 3 pages are copies of its principal");
}

#[test]
fn only_what_holds_or_is_unknown_stays() {
    let stays = [Verdict::Holds, Verdict::Changed, Verdict::Gone, Verdict::PrincipalGone, Verdict::NotSeen]
        .map(Verdict::stays);
    assert_eq!(stays, [true, false, false, false, true]);
}

#[test]
fn dates_are_those_of_the_calendar() {
    assert_eq!(date("1970-01-01").days_since(date("1970-01-01")), 0);
    assert_eq!(date("2000-03-01").days_since(date("2000-02-28")), 2);
    assert_eq!(date("1900-03-01").days_since(date("1900-02-28")), 1);
    assert_eq!(date("2026-11-16").days_since(date("1970-01-01")), 20_773);
    for bad in [
        "",
        "2026-13-01",
        "2026-02-29",
        "2026-00-01",
        "2026-01-00",
        "0000-01-01",
        "2026-1-1",
        "26-01-01x",
        "é026-01-0",
    ] {
        assert!(bad.parse::<Date>().is_err(), "{bad}");
    }
    // Every day of four centuries, one after the other, is written and read back as itself.
    let mut day = date("1999-12-31");
    for _ in 0..146_097 {
        let next = day.plus_days(1);
        assert_eq!(next.to_string().parse::<Date>(), Ok(next));
        assert_eq!(next.days_since(day), 1);
        assert!(next.to_string() > day.to_string());
        day = next;
    }
    assert_eq!(day, date("2399-12-31"));
}
