//! Style sheet and script, inside the program. A hash of the content is part of the address, so
//! that browsers keep them for ever and still get the new ones with a new version.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::ServeError;
use crate::state::AppState;

struct Asset {
    path: String,
    kind: &'static str,
    bytes: &'static [u8],
}

impl Asset {
    fn new(name: &str, ending: &str, kind: &'static str, bytes: &'static [u8]) -> Asset {
        Asset { path: format!("/assets/{name}.{:016x}.{ending}", xxh3_64(bytes)), kind, bytes }
    }
}

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("style", "css", "text/css; charset=utf-8", include_bytes!("../assets/style.css"))
});
static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("app", "js", "text/javascript; charset=utf-8", include_bytes!("../assets/app.js"))
});

/// The address of the style sheet.
pub(crate) fn style() -> &'static str {
    &STYLE.path
}

/// The address of the script.
pub(crate) fn script() -> &'static str {
    &SCRIPT.path
}

async fn asset(Path(name): Path<String>) -> Result<Response, ServeError> {
    let path = format!("/assets/{name}");
    let assets: [&'static Asset; 2] = [&STYLE, &SCRIPT];
    let found = assets.into_iter().find(|asset| asset.path == path);
    let asset = found.ok_or_else(|| ServeError::not_found("there is nothing at this address"))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
    ];
    Ok((headers, asset.bytes).into_response())
}

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/assets/{name}", get(asset))
}
