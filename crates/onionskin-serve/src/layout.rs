//! What every page has: header, navigation, footer; and how pages become responses.

use std::borrow::Borrow;

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::assets;
use crate::error::ServeError;
use crate::state::AppState;

/// The part of the site that a page belongs to, as the navigation shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// None of them.
    None,
    /// Search.
    Search,
    /// Collections and their replicas.
    Collections,
    /// Clusters of similar documents.
    Clusters,
    /// The report.
    Report,
    /// The filter designer.
    Filter,
    /// The online filter.
    Seen,
    /// Tables and filter files.
    Downloads,
    /// What programs can ask.
    Api,
}

impl Section {
    const ALL: [(Section, &'static str, &'static str); 8] = [
        (Section::Search, "/", "Search"),
        (Section::Collections, "/collections", "Collections"),
        (Section::Clusters, "/clusters", "Clusters"),
        (Section::Report, "/report", "Report"),
        (Section::Filter, "/filter", "Filter designer"),
        (Section::Seen, "/seen", "Seen"),
        (Section::Downloads, "/downloads", "Downloads"),
        (Section::Api, "/api", "API"),
    ];

    /// Whether there is such a part at all.
    fn applies(self, state: &AppState) -> bool {
        match self {
            Section::Search | Section::Collections | Section::Clusters | Section::Downloads => {
                state.has_library()
            }
            Section::Report => state.has_report(),
            Section::Seen => state.seen().is_some(),
            Section::None | Section::Filter | Section::Api => true,
        }
    }
}

/// An entry of the navigation.
#[derive(Clone, Debug)]
pub struct NavItem {
    /// Where it goes.
    pub href: &'static str,
    /// What it says.
    pub label: &'static str,
    /// Whether this is where we are.
    pub current: bool,
}

/// What is around the content of a page. Templates that extend `base.html` have one as their field
/// `chrome`.
#[derive(Clone, Debug)]
pub struct Chrome {
    /// The title of the page.
    pub title: String,
    /// The parts of the site that there are.
    pub nav: Vec<NavItem>,
    /// What is in the search box.
    pub query: String,
    /// Whether there is something to search.
    pub search: bool,
    /// Whether there is a session that can be ended.
    pub session: bool,
    /// What is being served, for the footer.
    pub serving: String,
    /// The address of the style sheet.
    pub style: &'static str,
    /// The address of the script.
    pub script: &'static str,
}

impl Chrome {
    /// For a page of a section.
    pub fn new(state: &AppState, section: Section, title: impl Into<String>) -> Chrome {
        let nav = Section::ALL.into_iter().filter(|(part, _, _)| part.applies(state));
        Chrome {
            title: title.into(),
            nav: nav.map(|(part, href, label)| NavItem { href, label, current: part == section }).collect(),
            query: String::new(),
            search: state.has_library(),
            session: !state.auth().is_open(),
            serving: state.serving().to_owned(),
            style: assets::style(),
            script: assets::script(),
        }
    }

    /// With this in the search box.
    pub fn with_query(self, query: impl Into<String>) -> Chrome {
        Chrome { query: query.into(), ..self }
    }
}

/// A page: any template becomes a response.
#[derive(Debug)]
pub struct Page<T>(pub T);

/// A page, or why there is none.
pub(crate) type Rendered<T> = Result<Page<T>, ServeError>;

impl<T: Template> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        match self.0.render() {
            Ok(html) => {
                let kind = HeaderValue::from_static("text/html; charset=utf-8");
                (StatusCode::OK, [(header::CONTENT_TYPE, kind)], html).into_response()
            }
            Err(error) => ServeError::internal(format!("a template failed: {error}")).into_response(),
        }
    }
}

/// The address of a crawled page as something that may be clicked: only http and https are.
/// Everything else, `javascript:` above all, is shown as text. In templates:
/// `{% import "macros.html" as m %}` and `{% call m::crawled(url) %}{% endcall %}`.
pub fn crawled_href(url: &str) -> Option<&str> {
    let web = ["http://", "https://"].iter().any(|scheme| {
        url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            && url.len() > scheme.len()
    });
    // Browsers drop tabs and line ends inside addresses, so one that has them is not what it looks
    // like.
    (web && !url.chars().any(|c| c.is_control() || c.is_whitespace())).then_some(url)
}

/// [`onionskin_core::format::grouped`] for templates, whose values are often borrowed:
/// `{{ crate::layout::grouped(n) }}`.
pub fn grouped(n: impl Borrow<u64>) -> String {
    onionskin_core::format::grouped(*n.borrow())
}

#[cfg(test)]
mod tests;
