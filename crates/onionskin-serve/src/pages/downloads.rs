//! The report, the tables and the filter files, to look at and to take away.

use onionskin_store::TableName;
use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::StreamExt;
use onionskin_mirror::avoid::Format;
use tokio::io::AsyncReadExt;

use crate::beneath;
use crate::error::ServeError;
use crate::lanes::Lane;
use crate::layout::{Chrome, Page, Section};
use crate::library::Library;
use crate::state::AppState;
use crate::view;

/// What a report may do: it is one file with its styles in it, and runs nothing.
const REPORT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-popups";

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/report", get(report))
        .route("/downloads", get(downloads))
        .route("/downloads/report/{*path}", get(report_file))
        .route("/downloads/tables/{table}/{file}", get(table_file))
        .route("/downloads/filters/{format}", get(filter_file))
}

/// A file to take away.
struct FileLine {
    href: String,
    name: String,
    rows: u64,
    bytes: String,
}

struct TableLines {
    name: String,
    rows: u64,
    bytes: String,
    files: Vec<FileLine>,
}

#[derive(Template)]
#[template(path = "downloads.html")]
struct DownloadsPage {
    chrome: Chrome,
    tables: Vec<TableLines>,
    formats: Vec<(&'static str, &'static str)>,
    report: Vec<(String, String)>,
}

async fn downloads(State(state): State<AppState>) -> Result<Page<DownloadsPage>, ServeError> {
    let chrome = Chrome::new(&state, Section::Downloads, "Downloads");
    let work = move |library: &Library| {
        let manifest = library.atlas().manifest();
        let tables = manifest.tables.iter().map(|(name, table)| TableLines {
            name: name.to_string(),
            rows: table.rows,
            bytes: view::bytes(table.files.iter().map(|file| file.bytes).sum()),
            files: (0..).zip(&table.files).map(|(at, file)| file_line(&name.to_string(), at, file)).collect(),
        });
        let has_collections = library.atlas().has(&TableName::CollectionGroups);
        let formats = Format::ALL.iter().filter(|_| has_collections);
        Ok(DownloadsPage {
            chrome,
            tables: tables.collect(),
            formats: formats.map(|format| (format.name(), format.file_name())).collect(),
            report: report_files(library),
        })
    };
    state.read(Lane::Lists, work).await.map(Page)
}

fn file_line(table: &str, at: usize, file: &onionskin_store::manifest::FileEntry) -> FileLine {
    FileLine {
        href: format!("/downloads/tables/{table}/{at}.parquet"),
        name: file.path.clone(),
        rows: file.rows,
        bytes: view::bytes(file.bytes),
    }
}

/// Tables and figures of the report: where they are, and their names.
fn report_files(library: &Library) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["", "tables", "figures"] {
        for name in beneath::names(library.atlas().dir(), &FsPath::new("report").join(folder)) {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            found.push((format!("/downloads/report/{path}"), path));
        }
    }
    found.sort();
    found
}

async fn report(State(state): State<AppState>) -> Result<Response, ServeError> {
    let library = state.library()?;
    if !state.has_report() {
        return Err(ServeError::not_found("the atlas has no report").hint("run `onionskin report ATLAS`"));
    }
    let path = FsPath::new("report").join("report.html");
    let mut response = send(library, path, "text/html; charset=utf-8", None).await?;
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(REPORT_POLICY));
    Ok(response)
}

async fn report_file(
    State(state): State<AppState>,
    Path(path): Path<String>,
) -> Result<Response, ServeError> {
    let library = state.library()?;
    // A file of the report: nothing else of this machine can be asked for.
    if !report_files(library).iter().any(|(_, known)| *known == path) {
        return Err(ServeError::not_found("the report has no such file"));
    }
    let relative = FsPath::new("report").join(&path);
    let kind = match relative.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json") => "application/json",
        Some("csv") => "text/csv; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        _ => "application/octet-stream",
    };
    let name = relative.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    send(library, relative, kind, name).await
}

async fn table_file(
    State(state): State<AppState>,
    Path((table, file)): Path<(String, String)>,
) -> Result<Response, ServeError> {
    let library = Arc::clone(state.library()?);
    let none = || ServeError::not_found("the atlas has no such file").hint("see /downloads");
    let known = TableName::from(table.as_str());
    let entry = library.atlas().manifest().tables.get(&known).ok_or_else(none)?;
    let at: usize = file.strip_suffix(".parquet").and_then(|at| at.parse().ok()).ok_or_else(none)?;
    let n_files = entry.files.len();
    let path = PathBuf::from(&entry.files.get(at).ok_or_else(none)?.path);
    // The first time, all bytes are compared with their checksums.
    let checked = Arc::clone(&library);
    let work = move || checked.atlas().files(&known).map(drop).map_err(ServeError::internal);
    state.work(Lane::Lists, work).await??;
    let name = if n_files == 1 { format!("{table}.parquet") } else { format!("{table}-{at:05}.parquet") };
    send(&library, path, "application/vnd.apache.parquet", Some(name)).await
}

async fn filter_file(
    State(state): State<AppState>,
    Path(format): Path<String>,
) -> Result<Response, ServeError> {
    let library = Arc::clone(state.library()?);
    let format = format.parse::<Format>().map_err(|error| ServeError::not_found(error.to_string()))?;
    let work = move || {
        let report = library.avoid().map_err(|reason| {
            ServeError::not_found("there is no list of what a crawler can skip").hint(reason)
        })?;
        let rendered = format.render(&report.list).map_err(ServeError::internal)?;
        Ok::<_, ServeError>(rendered.text)
    };
    let text = state.work(Lane::Compare, work).await??;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    let mut response = ([(header::CONTENT_TYPE, kind)], text).into_response();
    response.headers_mut().insert(header::CONTENT_DISPOSITION, attachment(format.file_name()));
    Ok(response)
}

/// To be kept under this name.
fn attachment(name: &str) -> HeaderValue {
    // Tables are named by us; what else is in a name would end the header.
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
        .unwrap_or(HeaderValue::from_static("attachment"))
}

/// A file of the atlas, by its path below it, some at a time.
async fn send(
    library: &Library,
    path: PathBuf,
    kind: &'static str,
    name: Option<String>,
) -> Result<Response, ServeError> {
    let (atlas, relative) = (library.atlas().dir().to_owned(), path.clone());
    let opened = tokio::task::spawn_blocking(move || beneath::open_file(&atlas, &relative)).await;
    let file = opened.map_err(ServeError::internal)?.map_err(|error| {
        tracing::warn!(%error, path = %path.display(), "a file of the atlas is not sent");
        ServeError::not_found("the atlas has no such file, or it is a symbolic link")
            .hint("links are not followed here")
    })?;
    let length = file.metadata().map_err(ServeError::internal)?.len();
    // Another stage may make it longer meanwhile.
    let body = Body::from_stream(chunks(tokio::fs::File::from_std(file).take(length)));
    let mut response = ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if let Some(name) = name {
        headers.insert(header::CONTENT_DISPOSITION, attachment(&name));
    }
    Ok(response)
}

fn chunks(
    file: tokio::io::Take<tokio::fs::File>,
) -> impl futures_util::Stream<Item = std::io::Result<Vec<u8>>> {
    let chunks = futures_util::stream::unfold(Some(file), |file| async move {
        let mut file = file?;
        let mut chunk = vec![0; 64 << 10];
        match file.read(&mut chunk).await {
            Ok(0) => None,
            Ok(n) => {
                chunk.truncate(n);
                Some((Ok(chunk), Some(file)))
            }
            Err(error) => Some((Err(error), None)),
        }
    });
    // What compresses an answer asks once more after the end.
    chunks.fuse()
}
