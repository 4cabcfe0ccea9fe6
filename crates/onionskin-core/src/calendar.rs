//! Days of the calendar as numbers, and back. The calendar is proleptic Gregorian.
//!
//! Years begin in March here, so that the leap day is the last of the year: then 153 days are five
//! months wherever they begin. Every era of 400 years has 146,097 days.

const DAYS_PER_ERA: i64 = 146_097;

/// From 1 March of the year 0 to 1 January 1970.
const DAYS_TO_1970: i64 = 719_468;

/// Days from 1 January 1970 to a day given by year, month and day, or `None` where there is no such
/// day.
pub fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970)
}

/// Year, month and day of a number of days since 1 January 1970.
pub fn date_of(days_since_1970: i64) -> (i64, i64, i64) {
    let days = days_since_1970 + DAYS_TO_1970;
    let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other() {
        let mut expected = days_since_1970(-1, 1, 1).unwrap();
        for year in -1..=2401 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    assert_eq!(days_since_1970(year, month, day), Some(expected));
                    assert_eq!(date_of(expected), (year, month, day));
                    expected += 1;
                }
            }
        }
        assert_eq!(days_since_1970(1970, 1, 1), Some(0));
        assert_eq!(days_since_1970(2000, 3, 1), Some(11_017));
    }

    #[test]
    fn days_that_are_not_in_the_calendar() {
        for (year, month, day) in [
            (2023, 2, 29),
            (1900, 2, 29),
            (2024, 2, 30),
            (2024, 4, 31),
            (2024, 0, 1),
            (2024, 13, 1),
            (2024, 1, 0),
        ] {
            assert_eq!(days_since_1970(year, month, day), None, "{year}-{month}-{day}");
        }
        assert!(days_since_1970(2000, 2, 29).is_some() && days_since_1970(2024, 2, 29).is_some());
    }
}
