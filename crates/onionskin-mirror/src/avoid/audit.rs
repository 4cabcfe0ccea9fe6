//! Which entries of an old list still hold, judged by a new crawl.
//!
//! A mirror that is skipped is not seen, so a list would stay as it is for ever. Some of the
//! skipped pages have to be fetched now and then, and what comes back says whether the entry holds.
//! Those that held are looked at less and less often; those that changed, sooner.

use std::fmt;
use std::str::FromStr;

use onionskin_core::calendar::{date_of, days_since_1970};

use super::AvoidEntry;

/// What a new crawl has of an old entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Whether the crawl asked for pages under the entry's rules at all. One that follows the list
    /// does not.
    pub asked: bool,
    /// Pages under the entry's rules.
    pub pages: u64,
    /// Those that are copies of a page of the principal.
    pub copies_of_principal: u64,
    /// Those that are copies of something else only.
    pub copies_elsewhere: u64,
    /// Pages of the principal.
    pub principal_pages: u64,
}

impl Seen {
    /// Pages that are copies of nothing.
    pub fn unique(&self) -> u64 {
        self.pages.saturating_sub(self.copies_of_principal).saturating_sub(self.copies_elsewhere)
    }
}

/// From when on an entry has changed, and how often to look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuditParams {
    /// The largest share of pages that may be copies of nothing.
    pub max_unique: f64,
    /// The smallest share of pages that must be copies of the principal. Copies of something else
    /// may be copies of what is skipped too.
    pub min_of_principal: f64,
    /// Pages that must be seen to judge an entry, or all of them if it has fewer.
    pub min_pages: u64,
    /// Days to the second look.
    pub first_days: u32,
    /// Fewest days to the next look.
    pub least_days: u32,
    /// Most days to the next look.
    pub most_days: u32,
}

impl Default for AuditParams {
    fn default() -> AuditParams {
        AuditParams {
            max_unique: 0.1,
            min_of_principal: 0.5,
            min_pages: 10,
            first_days: 30,
            least_days: 7,
            most_days: 365,
        }
    }
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It is still a copy.
    Holds,
    /// It has become something else, and should come off the list.
    Changed,
    /// It is not there any more, and there is nothing to skip.
    Gone,
    /// What was kept instead is not there any more: it should come off the list, or the content is
    /// lost.
    PrincipalGone,
    /// The crawl does not tell.
    NotSeen,
}

impl Verdict {
    /// Whether the entry stays on the list.
    pub fn stays(self) -> bool {
        matches!(self, Verdict::Holds | Verdict::NotSeen)
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Changed => "changed",
            Verdict::Gone => "gone",
            Verdict::PrincipalGone => "principal gone",
            Verdict::NotSeen => "not seen",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An entry, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audited {
    /// What became of it.
    pub verdict: Verdict,
    /// Why, in a sentence without a full stop.
    pub reason: String,
    /// When to fetch some of its pages again.
    pub look_again: Date,
}

/// Judges an entry by what a crawl of `crawled` has of it. When to look again follows from the time
/// between the entry's own `checked`, if it has a date, and this crawl.
pub fn audit_entry(entry: &AvoidEntry, seen: &Seen, crawled: Date, params: &AuditParams) -> Audited {
    let (verdict, reason) = judge(entry, seen, params);
    let checked = entry.checked.as_deref().and_then(|text| text.parse::<Date>().ok());
    let since = checked.map(|date| crawled.days_since(date).clamp(0, i64::from(params.most_days)) as u32);
    let bounded = |days: u32| days.clamp(params.least_days, params.most_days.max(params.least_days));
    let days = match verdict {
        Verdict::Holds | Verdict::Gone => {
            since.map_or(params.first_days, |days| bounded(days.saturating_mul(2)))
        }
        Verdict::Changed => since.map_or(params.least_days, |days| bounded(days / 2)),
        // What is not kept anywhere, and what was not looked at, are for the next crawl.
        Verdict::PrincipalGone | Verdict::NotSeen => params.least_days,
    };
    Audited { verdict, reason, look_again: crawled.plus_days(days) }
}

fn judge(entry: &AvoidEntry, seen: &Seen, params: &AuditParams) -> (Verdict, String) {
    if seen.principal_pages == 0 {
        let reason = format!("the crawl has no page of {}", entry.principal);
        return (Verdict::PrincipalGone, reason);
    }
    if seen.pages == 0 && seen.asked {
        return (Verdict::Gone, "its pages were asked for, and none came".to_owned());
    }
    if seen.pages == 0 {
        return (Verdict::NotSeen, "no page of it was asked for".to_owned());
    }
    let needed = params.min_pages.min(entry.pages).max(1);
    if seen.pages < needed {
        let reason =
            format!("{} of its {} pages were seen; {needed} are needed to judge", seen.pages, entry.pages);
        return (Verdict::NotSeen, reason);
    }
    let of_pages = |part: u64| part as f64 / seen.pages as f64;
    if of_pages(seen.unique()) > params.max_unique {
        return (
            Verdict::Changed,
            format!("{} of {} pages are copies of nothing", seen.unique(), seen.pages),
        );
    }
    if of_pages(seen.copies_of_principal) < params.min_of_principal {
        let reason =
            format!("only {} of {} pages are copies of its principal", seen.copies_of_principal, seen.pages);
        return (Verdict::Changed, reason);
    }
    let reason = format!("{} of {} pages are copies of its principal", seen.copies_of_principal, seen.pages);
    (Verdict::Holds, reason)
}

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// Days since the first of January 1970.
    days: i64,
}

/// Not a date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no date such as 2026-11-16")]
pub struct DateError {
    /// What was given.
    pub text: String,
}

impl Date {
    /// `None` when there is no such day, or the year is not one of 1 to 9999.
    pub fn new(year: u32, month: u32, day: u32) -> Option<Date> {
        let is_written = (1..=9999).contains(&year);
        let days = days_since_1970(i64::from(year), i64::from(month), i64::from(day))?;
        is_written.then_some(Date { days })
    }

    /// How many days it is after another.
    pub fn days_since(self, earlier: Date) -> i64 {
        self.days - earlier.days
    }

    /// So many days later.
    pub fn plus_days(self, days: u32) -> Date {
        Date { days: self.days + i64::from(days) }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date_of(self.days);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl FromStr for Date {
    type Err = DateError;

    /// Reads `2026-11-16`; a time after it is passed over, as in `2026-11-16T03:45:00Z`.
    fn from_str(text: &str) -> Result<Date, DateError> {
        let error = || DateError { text: text.to_owned() };
        let date = text.split(['T', ' ']).next().unwrap_or_default();
        let plain = date.len() == 10
            && date
                .bytes()
                .enumerate()
                .all(|(at, b)| if at == 4 || at == 7 { b == b'-' } else { b.is_ascii_digit() });
        if !plain {
            return Err(error());
        }
        let number = |from: usize, to: usize| date[from..to].parse::<u32>().map_err(|_| error());
        Date::new(number(0, 4)?, number(5, 7)?, number(8, 10)?).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests;
