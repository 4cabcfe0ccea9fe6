//! What programs can ask: JSON under `/api/v1`, described by an OpenAPI document that is made of
//! the same routes.

#![allow(unused_qualifications, reason = "what utoipa writes has them")]

pub(crate) mod clusters;
pub(crate) mod collections;
pub(crate) mod documents;
pub(crate) mod explain;
pub(crate) mod filter;
pub(crate) mod part;
pub(crate) mod search;
pub(crate) mod seen;
pub(crate) mod server;

use axum::Json;
use axum::body::Bytes;
use utoipa::OpenApi;
use utoipa::openapi::content::Content;
use utoipa::openapi::path::{HttpMethod, Operation};
use utoipa::openapi::response::Response;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Ref, RefOr, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::error::{ErrorWire, ServeError};
use crate::state::AppState;

/// An answer, or why there is none.
pub(crate) type Answer<T> = Result<Json<T>, ServeError>;

/// The document, once as it is sent and once to look into.
pub(crate) struct ApiDocument {
    pub(crate) json: Bytes,
    pub(crate) document: utoipa::openapi::OpenApi,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "onionskin",
        description = "Copies in a web: the online filter, and what an atlas knows. Errors are `{\"error\": {\"code\", \"message\", \"hint\"}}`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(ErrorWire))
)]
struct Base;

/// All routes of the API. A module adds its own here.
pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Base::openapi())
        .merge(server::router())
        .merge(search::router())
        .merge(documents::router())
        .merge(clusters::router())
        .merge(collections::router())
        .merge(explain::router())
        .merge(filter::router())
        .merge(seen::router())
}

impl ApiDocument {
    /// Declares what every route can answer besides its own answers, and who may ask.
    pub(crate) fn new(mut document: utoipa::openapi::OpenApi, state: &AppState) -> ApiDocument {
        if let Some(components) = &mut document.components {
            let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
            components.add_security_scheme("token", SecurityScheme::Http(bearer));
        }
        for item in document.paths.paths.values_mut() {
            for (method, operation) in [
                (HttpMethod::Get, &mut item.get),
                (HttpMethod::Post, &mut item.post),
                (HttpMethod::Put, &mut item.put),
                (HttpMethod::Delete, &mut item.delete),
            ] {
                if let Some(operation) = operation {
                    declare_errors(operation, method != HttpMethod::Get);
                    let writes = operation.security.is_some();
                    if !state.auth().is_open() && !writes {
                        let none: [&str; 0] = [];
                        operation.security = Some(vec![SecurityRequirement::new("token", none)]);
                    }
                }
            }
        }
        let json = serde_json::to_vec_pretty(&document).unwrap_or_default().into();
        ApiDocument { json, document }
    }
}

const READING: [(&str, &str); 9] = [
    ("400", "The request makes no sense"),
    ("401", "It needs the token"),
    ("403", "It is not allowed"),
    ("404", "There is no such thing"),
    ("421", "It is for another host"),
    ("429", "The token was guessed too often"),
    ("500", "The server's fault"),
    ("503", "Too much at once; try again later"),
    ("504", "It took too long"),
];

const SENDING: [(&str, &str); 3] = [
    ("408", "The body took too long"),
    ("413", "The body is too large"),
    ("415", "The body is of another type"),
];

fn declare_errors(operation: &mut Operation, sends: bool) {
    let more: &[(&str, &str)] = if sends { &SENDING } else { &[] };
    for (status, what) in READING.iter().chain(more) {
        let responses = &mut operation.responses.responses;
        if !responses.contains_key(*status) {
            responses.insert((*status).to_owned(), RefOr::T(error_response(what)));
        }
    }
}

fn error_response(what: &str) -> Response {
    let schema = RefOr::Ref(Ref::from_schema_name("Error"));
    ResponseBuilder::new().description(what).content("application/json", Content::new(Some(schema))).build()
}
