//! Dates as WARC and ARC write them.
//!
//! `WARC-Date` is a profile of ISO 8601: UTC, with as many digits of fraction as the writer likes
//! (WARC 1.1), or cut short to a day, a month or a year. ARC writes fourteen digits.

use onionskin_core::calendar::{date_of, days_since_1970};

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Microseconds since 1970 (UTC) of a `WARC-Date` such as `2024-05-01T12:00:00Z`, or of an ARC date
/// of eight to fourteen digits.
pub fn parse_date(text: &str) -> Option<i64> {
    let text = text.trim();
    let bytes = text.as_bytes();
    let all_digits = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
    if all_digits && bytes.len() > 4 { parse_digits(bytes) } else { parse_iso(bytes) }
}

fn parse_digits(bytes: &[u8]) -> Option<i64> {
    if !matches!(bytes.len(), 8 | 10 | 12 | 14) {
        return None;
    }
    let pair = |at: usize| if at < bytes.len() { number(&bytes[at..at + 2]) } else { Some(0) };
    let date = [number(&bytes[..4])?, pair(4)?, pair(6)?];
    micros(date, [pair(8)?, pair(10)?, pair(12)?], 0)
}

fn parse_iso(bytes: &[u8]) -> Option<i64> {
    let (date, rest) = match bytes.iter().position(|&byte| matches!(byte, b'T' | b't' | b' ')) {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    };
    let mut parts = date.split(|&byte| byte == b'-');
    let year = parts.next().filter(|digits| digits.len() == 4).and_then(number)?;
    let month = parts.next().map_or(Some(1), number)?;
    let day = parts.next().map_or(Some(1), number)?;
    if parts.next().is_some() {
        return None;
    }
    let Some(rest) = rest else { return micros([year, month, day], [0; 3], 0) };
    let (time, offset_minutes) = split_offset(rest)?;
    let (clock, fraction) = match time.iter().position(|&byte| matches!(byte, b'.' | b',')) {
        Some(at) => (&time[..at], &time[at + 1..]),
        None => (time, &time[..0]),
    };
    let mut parts = clock.split(|&byte| byte == b':');
    let hour = parts.next().and_then(number)?;
    let minute = parts.next().map_or(Some(0), number)?;
    let second = parts.next().map_or(Some(0), number)?;
    if parts.next().is_some() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = fraction.iter().map(|&byte| i64::from(byte - b'0')).chain(std::iter::repeat(0));
    let fraction_micros = digits.take(6).fold(0, |sum, digit| sum * 10 + digit);
    let local = micros([year, month, day], [hour, minute, second], fraction_micros)?;
    Some(local - offset_minutes * 60 * MICROS_PER_SECOND)
}

/// Splits `Z`, `+hh:mm` or nothing from the end of a time. The standard allows only `Z`; some
/// writers differ.
fn split_offset(rest: &[u8]) -> Option<(&[u8], i64)> {
    if let Some(time) = rest.strip_suffix(b"Z").or_else(|| rest.strip_suffix(b"z")) {
        return Some((time, 0));
    }
    let Some(at) = rest.iter().position(|&byte| matches!(byte, b'+' | b'-')) else { return Some((rest, 0)) };
    let digits: Vec<u8> = rest[at + 1..].iter().copied().filter(|&byte| byte != b':').collect();
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits)?, 0),
        4 => (number(&digits[..2])?, number(&digits[2..])?),
        _ => return None,
    };
    let offset = hours * 60 + minutes;
    Some((&rest[..at], if rest[at] == b'-' { -offset } else { offset }))
}

fn number(digits: &[u8]) -> Option<i64> {
    let fits = !digits.is_empty() && digits.len() <= 4 && digits.iter().all(u8::is_ascii_digit);
    fits.then(|| digits.iter().fold(0, |sum, &digit| sum * 10 + i64::from(digit - b'0')))
}

fn micros([year, month, day]: [i64; 3], [hour, minute, second]: [i64; 3], fraction: i64) -> Option<i64> {
    let days = days_since_1970(year, month, day)?;
    // Second 60 is a leap second; it is the first of the next minute, as in POSIX time.
    let is_time = hour <= 23 && minute <= 59 && second <= 60;
    let seconds = days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    is_time.then_some(seconds * MICROS_PER_SECOND + fraction)
}

/// `2024-05-01T12:00:00Z`, the form of WARC 1.0; fractions of a second are cut off. Years are those
/// of four digits: anything outside is moved to the first or last second that can be written.
pub fn format_date(micros_since_epoch: i64) -> String {
    const FIRST: i64 = -62_167_219_200;
    const LAST: i64 = 253_402_300_799;
    let seconds = micros_since_epoch.div_euclid(MICROS_PER_SECOND).clamp(FIRST, LAST);
    let (year, month, day) = date_of(seconds.div_euclid(SECONDS_PER_DAY));
    let second_of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(parse_date(text), expected, "{text}");
    }

    #[test]
    fn forms_that_occur() {
        check("1970-01-01T00:00:00Z", Some(0));
        check("2014-01-26T20:06:24Z", Some(1_390_766_784_000_000));
        check("2014-01-26T20:06:24.123456789Z", Some(1_390_766_784_123_456));
        check("2014-01-26T20:06:24", Some(1_390_766_784_000_000));
        check("2014-01-26T21:06:24+01:00", Some(1_390_766_784_000_000));
        check("20140126200624", Some(1_390_766_784_000_000));
        check("2014-01-26", Some(1_390_694_400_000_000));
        check("2014", Some(1_388_534_400_000_000));
        check("1969-12-31T23:59:59Z", Some(-1_000_000));
    }

    #[test]
    fn forms_that_are_no_dates() {
        for text in [
            "",
            "T",
            "2014-13-01T00:00:00Z",
            "2014-02-29T00:00:00Z",
            "20140230000000",
            "x",
            "201401",
            "2014-01-26T24:00:00Z",
            "2014-01-26T20:06:24.1x2Z",
            "2014-01-26T20:06:24+1Z",
            "é",
            "-2014-01-01",
        ] {
            check(text, None);
        }
    }

    proptest! {
        #[test]
        fn formatting_and_parsing_agree(seconds in -62_167_219_200i64..=253_402_300_799) {
            let micros = seconds * MICROS_PER_SECOND;
            prop_assert_eq!(parse_date(&format_date(micros)), Some(micros));
            prop_assert_eq!(format_date(micros + 999_999), format_date(micros));
        }

        #[test]
        fn any_text_is_a_date_or_not(text in "[0-9TZ:+. -]{0,24}|.{0,12}") {
            let _ = parse_date(&text);
        }
    }
}
