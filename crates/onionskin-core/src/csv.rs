//! Fields of CSV files that people open in spreadsheets.
//!
//! Quoting is that of RFC 4180. It does not stop a spreadsheet from running a text as a formula:
//! `=HYPERLINK(…)` in the title of a crawled page would run on the desk of whoever opens the table.
//! So text that could begin a formula gets an apostrophe in front, which spreadsheets take for
//! "this is text". Numbers are written by their owners, without this module.

/// Signs that make a formula of a cell that begins with them.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Appends text as one field: nothing that begins a formula, and quoted where that is needed.
///
/// ```
/// let mut line = String::new();
/// for field in ["plain", "a, b", "=SUM(A1)", "say \"x\""] {
///     onionskin_core::csv::push_text(&mut line, field);
///     line.push(';');
/// }
/// assert_eq!(line, r#"plain;"a, b";'=SUM(A1);"say ""x""";"#);
/// ```
pub fn push_text(out: &mut String, text: &str) {
    let mark = if text.starts_with(FORMULA) { "'" } else { "" };
    let quote = if text.contains(['"', ',', '\n', '\r']) { "\"" } else { "" };
    out.push_str(quote);
    out.push_str(mark);
    if quote.is_empty() {
        out.push_str(text);
    } else {
        out.push_str(&text.replace('"', "\"\""));
    }
    out.push_str(quote);
}

#[cfg(test)]
mod tests {
    fn check(text: &str, expected: &str) {
        let mut field = String::new();
        super::push_text(&mut field, text);
        assert_eq!(field, expected, "{text:?}");
    }

    #[test]
    fn text_is_never_a_formula() {
        check("=HYPERLINK(\"http://evil\",\"x\")", "\"'=HYPERLINK(\"\"http://evil\"\",\"\"x\"\")\"");
        check("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0");
        check("-1+1", "'-1+1");
        check("@SUM(1+1)", "'@SUM(1+1)");
        check("\t=1", "'\t=1");
        check("\r=1", "\"'\r=1\"");
    }

    #[test]
    fn other_text_stays_as_it_is() {
        for text in ["", "a", "a=b", "1 - 2", "'quoted'", "ünïcode", "/path"] {
            check(text, text);
        }
        check("a,b", "\"a,b\"");
        check("two\nlines", "\"two\nlines\"");
    }
}
