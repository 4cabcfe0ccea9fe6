//! What each method is known to get wrong, as the lecture lists it.

use serde::Serialize;

/// A way in which a number may be off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bias {
    /// Its name.
    pub name: &'static str,
    /// What it does, and what was done about it.
    pub text: &'static str,
}

/// How members were sampled and checked, as far as biases depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// Some member is a search engine.
    pub engines: bool,
    /// Samples were weighted for the number of queries that reach them.
    pub corrected: bool,
    /// Pages were checked by address.
    pub by_url: bool,
    /// Near copies count as copies.
    pub near: bool,
}

/// The biases of sampling and checking.
pub fn overlap(how: Circumstances) -> Vec<Bias> {
    let mut found = Vec::new();
    let mut push = |name, text| found.push(Bias { name, text });
    if how.engines {
        push(
            "query bias",
            if how.corrected {
                "random queries favour pages with many words in the language of the lexicon; pages were chosen by what their words tell of that, but those without words of the lexicon are never seen"
            } else {
                "random queries favour pages with many words in the language of the lexicon; the sizes are sizes in pages that queries find, not in pages"
            },
        );
        push(
            "ranking bias",
            "what an engine ranks low is not seen where results are cut; queries with more results than were fetched were thrown away, and pages that only such queries find are missing",
        );
        push(
            "checking bias",
            if how.by_url {
                "a page is found by its address among the results of a query of its rarest words; copies, redirects and frames under other addresses count as missing, and pages with few words cannot be checked"
            } else {
                "a page is found by its content among the results of a query of its rarest words; pages with few words cannot be checked"
            },
        );
        push(
            "document or query restriction bias",
            "an engine that indexes only the first words of a page, or does not deal with queries of many words, looks smaller",
        );
        push("malicious bias", "an engine that knows it is measured can answer as it likes");
        push(
            "operational problems",
            "time-outs and failures are left out and counted, never taken for absence; if they are not accidental, they bias",
        );
    } else {
        push(
            "checking bias",
            match (how.by_url, how.near) {
                (true, _) => {
                    "pages were checked by address: the same content under another address counts as missing, and a crawl full of copies looks larger than what it holds"
                }
                (false, true) => {
                    "contents were compared by their sketches: pairs at the threshold are near copies or not by chance, and near copies of near copies count as different"
                }
                (false, false) => {
                    "contents were compared word by word: near copies, such as a page with another date, count as different"
                }
            },
        );
        if !how.by_url {
            push("document restriction bias", "empty pages have no content and are left out");
        } else {
            push("document restriction bias", "pages without an address are left out");
        }
    }
    found
}

/// The biases of searches out of a log.
pub fn searches() -> Vec<Bias> {
    vec![
        Bias {
            name: "correlation with the log",
            text: "the sizes are sizes in what the people behind the log look for",
        },
        Bias { name: "duplicates", text: "copies under several addresses count as often as they are listed" },
        Bias {
            name: "technical statistical problems",
            text: "a ratio needs results: the mean of ratios leaves out queries that the second engine does not answer and favours the first, the harmonic mean does the opposite, and the ratio of sums follows the queries with many results",
        },
        Bias {
            name: "document or query restriction bias",
            text: "results were not fetched to verify that they match, so an engine that drops words of a query looks larger",
        },
        Bias {
            name: "operational problems",
            text: "queries that one engine did not answer in full are left out for all, and counted",
        },
    ]
}

/// The biases of a study of random addresses.
pub fn addresses() -> Vec<Bias> {
    vec![
        Bias { name: "duplication", text: "copies on several servers count as often as they are found" },
        Bias {
            name: "virtual hosts",
            text: "many hosts may share one address and only one answers, and some servers do not accept requests",
        },
        Bias {
            name: "unlinked pages",
            text: "pages that no link from the root page leads to are not counted, such as those of employees",
        },
        Bias {
            name: "power law",
            text: "few servers have most pages and most samples miss them: the mean is usually too low, and its interval too narrow",
        },
        Bias {
            name: "spam",
            text: "whoever answers on many addresses with one server, to get around blocks, counts as many",
        },
    ]
}

/// The biases of a random walk.
pub fn walk() -> Vec<Bias> {
    vec![
        Bias {
            name: "convergence unknown",
            text: "nobody knows how many steps a walk needs until it has forgotten where it began",
        },
        Bias {
            name: "graph not finite or independent",
            text: "on a live web pages are made as one asks for them, and may depend on who asks; in an atlas the graph is fixed, and only what its links reach can be seen",
        },
        Bias { name: "seeds", text: "parts of the graph that no seed leads to are never visited" },
        Bias { name: "link spam", text: "pages with many links pointing at them are met more often" },
    ]
}
