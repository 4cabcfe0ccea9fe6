//! A search engine behind HTTP, given as a template.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

use crate::size::engine::{SearchEngine, SearchFailure};
use onionskin_extract::url::normalize;
use serde_json::Value;

use super::http::{HttpClient, HttpFailure};

/// Where addresses stand in an answer.
///
/// `text` is one address a line. `json:hits[].url` goes into the field `hits`, takes each element
/// of the array there and of each the field `url`; `json:/hits/*/url` says the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultPath {
    /// One address a line.
    Lines,
    /// Inside JSON.
    Json(Vec<Step>),
}

/// One step into a JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A field of an object, or an element of an array by its number.
    Field(String),
    /// Every element of an array.
    Each,
}

/// Not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not say where addresses are; write text, json:results[].url or json:/results/*/url")]
pub struct BadResultPath(String);

impl FromStr for ResultPath {
    type Err = BadResultPath;

    fn from_str(spelling: &str) -> Result<ResultPath, BadResultPath> {
        let bad = || BadResultPath(spelling.to_owned());
        if spelling == "text" {
            return Ok(ResultPath::Lines);
        }
        let path = spelling.strip_prefix("json:").ok_or_else(bad)?;
        let mut steps = Vec::new();
        if let Some(pointer) = path.strip_prefix('/') {
            for part in pointer.split('/') {
                steps.push(match part {
                    "" => return Err(bad()),
                    "*" => Step::Each,
                    // The escapes of RFC 6901.
                    name => Step::Field(name.replace("~1", "/").replace("~0", "~")),
                });
            }
        } else {
            for part in path.split('.').filter(|_| !path.is_empty()) {
                let name = part.trim_end_matches("[]");
                if !name.is_empty() {
                    steps.push(Step::Field(name.to_owned()));
                }
                let each = (part.len() - name.len()) / 2;
                if name.is_empty() && each == 0 {
                    return Err(bad());
                }
                steps.extend(std::iter::repeat_n(Step::Each, each));
            }
        }
        if steps.contains(&Step::Each) { Ok(ResultPath::Json(steps)) } else { Err(bad()) }
    }
}

impl fmt::Display for ResultPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ResultPath::Json(steps) = self else { return f.write_str("text") };
        f.write_str("json:")?;
        for step in steps {
            match step {
                Step::Field(name) => write!(f, "/{}", name.replace('~', "~0").replace('/', "~1"))?,
                Step::Each => f.write_str("/*")?,
            }
        }
        Ok(())
    }
}

impl ResultPath {
    /// The addresses of an answer as they stand there; `None` when it is not what the path is
    /// about.
    fn take(&self, body: &[u8]) -> Option<Vec<String>> {
        let steps = match self {
            ResultPath::Lines => {
                let text = std::str::from_utf8(body).ok()?;
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                return Some(lines.map(str::to_owned).collect());
            }
            ResultPath::Json(steps) => steps,
        };
        let value: Value = serde_json::from_slice(body).ok()?;
        let mut here = vec![&value];
        let mut in_list = false;
        for step in steps {
            let mut next = Vec::new();
            for value in here {
                match step {
                    Step::Each => next.extend(value.as_array()?),
                    Step::Field(name) => {
                        let field = match value {
                            Value::Array(items) => name.parse().ok().and_then(|at: usize| items.get(at)),
                            other => other.get(name),
                        };
                        // A result without an address is left out; an answer without results is not
                        // the answer of a search.
                        match field {
                            Some(field) => next.push(field),
                            None if in_list => {}
                            None => return None,
                        }
                    }
                }
            }
            in_list |= *step == Step::Each;
            here = next;
        }
        Some(here.into_iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

/// How an engine is asked.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Where addresses stand in an answer.
    pub results: ResultPath,
    /// What stands between the words of a query.
    pub join: String,
    /// Results that one request brings, at most.
    pub page: usize,
}

impl Default for EngineSettings {
    fn default() -> EngineSettings {
        let results = ["results", "*", "url"];
        let step = |name: &str| if name == "*" { Step::Each } else { Step::Field(name.to_owned()) };
        EngineSettings {
            results: ResultPath::Json(results.map(step).to_vec()),
            join: " ".to_owned(),
            page: 100,
        }
    }
}

/// A search engine at an address with `{query}` in it.
pub struct HttpEngine {
    name: String,
    template: String,
    settings: EngineSettings,
    client: Rc<RefCell<HttpClient>>,
    requests: u64,
    /// The longest list that was shorter than it could have been and turned out to be whole. A
    /// longer one may be all that the engine gives in one answer.
    whole: usize,
}

impl HttpEngine {
    /// An engine whose requests go through a client, which may be shared.
    pub fn new(template: &str, settings: EngineSettings, client: Rc<RefCell<HttpClient>>) -> HttpEngine {
        let name = template.split(['?', '{']).next().unwrap_or(template).to_owned();
        HttpEngine { name, template: template.to_owned(), settings, client, requests: 0, whole: 0 }
    }

    fn address(&self, query: &str, count: usize, start: usize) -> String {
        let template = self.template.replace("{count}", &count.to_string());
        template.replace("{start}", &start.to_string()).replace("{query}", &escaped(query))
    }
}

/// A query as it stands in an address.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

impl SearchEngine for HttpEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn search(&mut self, words: &[&str], limit: usize) -> Result<Vec<String>, SearchFailure> {
        let query = words.join(&self.settings.join);
        let pages = self.template.contains("{start}");
        let mut found: Vec<String> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let mut start = 0;
        // The length of the last list, where it was short and not known to be whole.
        let mut short = None;
        while found.len() < limit {
            let page = self.settings.page.clamp(1, limit.max(1));
            let url = self.address(&query, if pages { page } else { limit }, start);
            let before = self.client.borrow().requests();
            let answer = self.client.borrow_mut().get(&url);
            self.requests += self.client.borrow().requests() - before;
            let failed = |reason: String| SearchFailure::Failed { reason };
            let answer = answer.map_err(|error| match error {
                HttpFailure::Exhausted => SearchFailure::Exhausted,
                other => failed(other.to_string()),
            })?;
            let listed =
                self.settings.results.take(&answer.0.body).ok_or_else(|| {
                    failed(format!("the answer has no results at {}", self.settings.results))
                })?;
            let (before, here) = (found.len(), listed.len());
            start += here;
            for url in listed.into_iter().filter_map(|url| normalize(&url)) {
                if found.len() < limit && seen.insert(url.clone()) {
                    found.push(url);
                }
            }
            match short.take() {
                Some(length) if found.len() == before => self.whole = self.whole.max(length),
                Some(length) => {
                    tracing::warn!(engine = %self.name, results = length, "gives fewer results in one answer than were asked for");
                    self.settings.page = length;
                }
                None => {}
            }
            let is_short = here < self.settings.page.min(page);
            if !pages || found.len() == before || (is_short && here <= self.whole) || start > 4 * limit {
                break;
            }
            short = is_short.then_some(here);
        }
        Ok(found)
    }

    fn requests(&self) -> u64 {
        self.requests
    }
}

#[cfg(test)]
mod tests;
