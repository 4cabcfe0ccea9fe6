//! What programs can ask, for those who write them. Made of the OpenAPI document.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::Value;

use crate::error::ServeError;
use crate::layout::{Chrome, Page, Section};
use crate::state::AppState;

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/api", get(api))
}

#[derive(Template)]
#[template(path = "api.html")]
struct ApiPage {
    chrome: Chrome,
    open: bool,
    operations: Vec<Operation>,
}

struct Operation {
    method: String,
    path: String,
    summary: String,
    description: String,
    writes: bool,
    parameters: Vec<Parameter>,
    example: Option<String>,
    answers: Vec<(String, String)>,
}

struct Parameter {
    name: String,
    place: String,
    required: bool,
    description: String,
}

async fn api(State(state): State<AppState>) -> Result<Page<ApiPage>, ServeError> {
    let api = state.api().get().ok_or_else(|| ServeError::internal("no document was made"))?;
    let document = serde_json::to_value(&api.document).map_err(ServeError::internal)?;
    Ok(Page(ApiPage {
        chrome: Chrome::new(&state, Section::Api, "API"),
        open: state.auth().is_open(),
        operations: operations(&document),
    }))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn operations(document: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let method = method.to_uppercase();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let parameters = parameters.map(|parameter| Parameter {
                name: text(&parameter["name"]),
                place: text(&parameter["in"]),
                required: parameter["required"] == true,
                description: text(&parameter["description"]),
            });
            let body = &operation["requestBody"]["content"]["application/json"]["example"];
            let writes = method != "GET" && operation["security"].is_array();
            let token = if writes { " -H \"Authorization: Bearer $TOKEN\"" } else { "" };
            let example = (!body.is_null()).then(|| {
                format!("curl -s http://127.0.0.1:7311{path}{token} \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'")
            });
            let answers = operation["responses"].as_object().into_iter().flatten();
            operations.push(Operation {
                path: path.clone(),
                summary: text(&operation["summary"]),
                description: text(&operation["description"]),
                writes,
                parameters: parameters.collect(),
                example: example
                    .or_else(|| (method == "GET").then(|| format!("curl -s 'http://127.0.0.1:7311{path}'"))),
                answers: answers
                    .map(|(status, answer)| (status.clone(), text(&answer["description"])))
                    .collect(),
                method,
            });
        }
    }
    operations
}
