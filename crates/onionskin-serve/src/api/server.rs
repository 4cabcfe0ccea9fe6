//! What the server says of itself.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::ServeError;
use crate::state::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(health)).routes(routes!(metrics)).routes(routes!(openapi))
}

#[derive(Serialize, ToSchema)]
#[schema(as = Health)]
struct HealthWire {
    /// `ok`; a server that is not answers nothing.
    status: &'static str,
    /// Of the program.
    version: &'static str,
    /// Whether an atlas is served.
    atlas: bool,
    /// How documents can be checked against seen ones: `no`, `check` (another process adds) or
    /// `add`.
    seen: &'static str,
}

/// Whether the server is well, and what it serves. Needs no token.
#[utoipa::path(get, path = "/health", tag = "server", responses((status = 200, description = "It is", body = HealthWire)))]
async fn health(State(state): State<AppState>) -> Json<HealthWire> {
    let seen = match state.seen() {
        None => "no",
        Some(seen) if seen.is_read_only() => "check",
        Some(_) => "add",
    };
    Json(HealthWire { status: "ok", version: env!("CARGO_PKG_VERSION"), atlas: state.has_library(), seen })
}

/// What is counted, for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "server", responses((status = 200, description = "OpenMetrics text", content_type = "application/openmetrics-text", body = String)))]
async fn metrics(State(state): State<AppState>) -> Response {
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], state.metrics().text()).into_response()
}

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "server", responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value)))]
async fn openapi(State(state): State<AppState>) -> Result<Response, ServeError> {
    let api = state.api().get().ok_or_else(|| ServeError::internal("no document was made"))?;
    let kind = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, kind)], api.json.clone()).into_response())
}
