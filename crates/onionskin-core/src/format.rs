//! How numbers and foreign words are written for people, in every edge alike: `1,500`, `53.3 %`,
//! `1.5 MB`, `2.5 h`.
//!
//! Programs get plain numbers and whole words: JSON and CSV never go through this module.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character steers a terminal or turns the direction of what follows, instead of being
/// shown: the controls of ASCII and Latin-1, the marks and brackets of bidirectional text, the
/// separators of lines, and what has no width. Joiners stay, which words of many languages need.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' |
            '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
}

/// Words from outside, such as the name of a file, in one line that can be shown anywhere: what
/// steers a terminal is spelled, as in `\u{1b}`.
pub fn shown(words: &str) -> Cow<'_, str> {
    spelled_where(words, steers)
}

/// Lines with words from outside; their line feeds stay.
pub fn shown_lines(lines: &str) -> Cow<'_, str> {
    spelled_where(lines, |c| c != '\n' && steers(c))
}

fn spelled_where(text: &str, is_spelled: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_spelled) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !is_spelled(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(out)
}

/// 1204551 as `1,204,551`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share of one as `53.3 %`.
///
/// Nothing is `0 %` and all is `100 %`; what is less than all is never shown as 100. A share below
/// a thousandth has three decimals.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value == 0.0 || value == 100.0 {
        format!("{value:.0} %")
    } else if value.abs() < 0.1 {
        format!("{value:.3} %")
    } else if value < 100.0 {
        format!("{:.1} %", value.min(99.9))
    } else {
        format!("{value:.1} %")
    }
}

/// A number of bytes in the unit that fits, in powers of 1000.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = number as f64;
    let mut unit = 0;
    // 999.5 and more would round to 1000 of the unit.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = usize::from(unit > 0 && value < 99.5);
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// A time in the unit that fits.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.01 => format!("{:.1} ms", s * 1e3),
        s if s < 0.1 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3_600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

/// `1 page`, or `2,000 pages`.
pub fn plural(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {many}", grouped(number)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1000, 1_204_551].map(grouped), ["0", "999", "1,000", "1,204,551"]);
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!([0, 1, 2_000].map(|n| plural(n, "page", "pages")), ["0 pages", "1 page", "2,000 pages"]);
    }

    #[test]
    fn nothing_from_outside_steers_a_terminal() {
        assert_eq!(
            shown("plain, grüße, نامه\u{200c}ها 👩\u{200d}🚀"),
            "plain, grüße, نامه\u{200c}ها 👩\u{200d}🚀"
        );
        assert!(matches!(shown("plain"), Cow::Borrowed("plain")));
        assert_eq!(
            shown("a\u{1b}[31m\n\r\tb\u{202e}\u{9b}\u{7f}"),
            "a\\u{1b}[31m\\n\\r\\tb\\u{202e}\\u{9b}\\u{7f}"
        );
        assert_eq!(shown_lines("a\nb\u{1b}\n"), "a\nb\\u{1b}\n");
        let steering = (0..0x20).chain(0x7f..0xa0).chain([0x61c, 0x200e, 0x200f, 0x2028, 0x2029]);
        for code in steering.chain(0x202a..0x202f).chain(0x2066..0x206a) {
            let c = char::from_u32(code).unwrap();
            assert!(steers(c) && !shown(&c.to_string()).contains(c), "{code:x}");
        }
    }

    #[test]
    fn only_all_is_a_hundred_per_cent() {
        assert_eq!(
            [0.0, 0.0004, 0.25, 0.533, 0.9996, 0.999_999_9, 1.0, 1.5].map(percent),
            ["0 %", "0.040 %", "25.0 %", "53.3 %", "99.9 %", "99.9 %", "100 %", "150.0 %"]
        );
        assert_eq!(percent(-0.02), "-2.0 %");
    }

    #[test]
    fn bytes_and_times_have_the_unit_that_fits() {
        assert_eq!(
            [0, 999, 1_000, 1_500_000, 123_456_789, 999_999_999, u64::MAX].map(bytes),
            ["0 B", "999 B", "1.0 kB", "1.5 MB", "123 MB", "1.0 GB", "18447 PB"]
        );
        assert_eq!(
            [0.0042, 0.042, 0.5, 61.0, 600.0, 9_000.0, 864_000.0].map(seconds),
            ["4.2 ms", "42 ms", "0.5 s", "61.0 s", "10 min", "2.5 h", "10.0 days"]
        );
    }
}
