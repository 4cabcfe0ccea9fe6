//! Writes an `avoid.json` in another format, or tells which addresses it skips.
//!
//! ```text
//! render_avoid avoid.json nutch-fast > fast-urlfilter.txt
//! render_avoid avoid.json skips < addresses.txt
//! ```

use std::error::Error;
use std::io::{self, BufRead, BufWriter, Write};

use onionskin_mirror::avoid::{AvoidList, Format, Matcher};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(what)) = (arguments.next(), arguments.next()) else {
        return Err(format!("usage: render_avoid AVOID_JSON skips|{}", Format::names().join("|")).into());
    };
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let list = AvoidList::from_json(&text).map_err(|error| format!("{path}: {error}"))?;
    let mut out = BufWriter::new(io::stdout().lock());
    if what == "skips" {
        let matcher = Matcher::new(&list);
        for url in io::stdin().lock().lines() {
            let url = url?;
            writeln!(out, "{}\t{url}", if matcher.skips(&url) { "skip" } else { "fetch" })?;
        }
    } else {
        let rendered = what.parse::<Format>()?.render(&list)?;
        out.write_all(rendered.text.as_bytes())?;
        for left_out in &rendered.left_out {
            writeln!(io::stderr(), "left out {} rules: {}", left_out.rules, left_out.why)?;
        }
    }
    Ok(out.flush()?)
}
