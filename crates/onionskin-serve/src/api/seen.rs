//! The online filter over HTTP.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use onionskin::seen::{Features, Match, Params};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::Writer;
use crate::error::{ErrorKind, ServeError};
use crate::limits::{BoundedBody, Room};
use crate::metrics::{Metrics, SeenStatus};
use crate::seen::{Answer, Answers, Incoming, SeenService};
use crate::state::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(check))
        .routes(routes!(add))
        .routes(routes!(remove))
        .routes(routes!(stats))
}

/// One JSON object a line.
const LINES: &str = "application/x-ndjson";

#[derive(Deserialize, ToSchema)]
#[schema(as = SeenDocument)]
struct DocumentWire {
    /// By which it is told later; a whole number in an index of numbers.
    #[serde(default)]
    name: String,
    /// Plain text.
    text: String,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = SeenCheck)]
#[serde(deny_unknown_fields)]
struct CheckWire {
    documents: Vec<DocumentWire>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = SeenAdd)]
#[serde(deny_unknown_fields)]
struct AddWire {
    documents: Vec<DocumentWire>,
    /// Leave out those that are like one that is there, or like an earlier one of the batch.
    #[serde(default)]
    if_new: bool,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = SeenRemove)]
#[serde(deny_unknown_fields)]
struct RemoveWire {
    /// Names of documents.
    names: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SeenAnswers)]
struct AnswersWire {
    /// One a document, in order.
    answers: Vec<AnswerWire>,
}

/// What is known of a document.
#[derive(Serialize, ToSchema)]
#[schema(as = SeenAnswer)]
pub(crate) struct AnswerWire {
    /// As it was sent.
    pub(crate) name: String,
    pub(crate) status: StatusWire,
    /// Whether it is in the index now because of this request.
    pub(crate) added: bool,
    /// What it is like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) of: Option<MatchWire>,
    /// Why it is bad.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

/// `new`: nothing like it is there. `near`: one nearly like it is. `exact`: it is there, word for word. `empty`: it has no words. `bad`: it could not be
/// taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SeenStatus)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StatusWire {
    New,
    Near,
    Exact,
    Empty,
    Bad,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SeenMatch)]
pub(crate) struct MatchWire {
    /// The document that was there.
    pub(crate) name: String,
    /// Features in common.
    pub(crate) shared: usize,
    /// Features of each.
    pub(crate) features: usize,
    /// Estimated from these two.
    pub(crate) resemblance: f64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SeenRemoved)]
struct RemovedWire {
    /// One a name, in order of name.
    removed: Vec<RemovedNameWire>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SeenRemovedName)]
struct RemovedNameWire {
    name: String,
    /// Documents that had it.
    documents: u64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SeenStats)]
struct StatsWire {
    /// How features are made.
    recipe: String,
    seed: u64,
    /// Whether documents have names, or numbers.
    names: bool,
    documents: u64,
    removed: u64,
    /// Documents that are indexed by their features: those that were like no other.
    centres: u64,
    postings: u64,
    runs: u64,
    in_log: u64,
    bytes: u64,
    name_bytes: u64,
    bytes_per_document: f64,
    /// Whether another process adds.
    read_only: bool,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct LinesQuery {
    /// With lines: leave out documents that are like one that is there.
    #[serde(default)]
    if_new: bool,
}

impl AnswerWire {
    pub(crate) fn new(name: String, answer: Answer, added: bool, params: &Params) -> AnswerWire {
        let (status, of, problem) = match answer {
            Answer::New => (StatusWire::New, None, None),
            Answer::Found(found) if found.exact => {
                (StatusWire::Exact, Some(MatchWire::new(found, params)), None)
            }
            Answer::Found(found) => (StatusWire::Near, Some(MatchWire::new(found, params)), None),
            Answer::Empty => (StatusWire::Empty, None, None),
            Answer::Bad(problem) => (StatusWire::Bad, None, Some(problem)),
        };
        AnswerWire { name, status, added, of, problem }
    }

    pub(crate) fn count(&self, metrics: &Metrics) {
        metrics.seen(match self.status {
            StatusWire::New => SeenStatus::new,
            StatusWire::Near => SeenStatus::near,
            StatusWire::Exact => SeenStatus::exact,
            StatusWire::Empty => SeenStatus::empty,
            StatusWire::Bad => SeenStatus::bad,
        });
    }
}

impl MatchWire {
    fn new(found: Match, params: &Params) -> MatchWire {
        MatchWire {
            name: found.name.unwrap_or_else(|| found.key.to_string()),
            shared: found.shared,
            features: params.filter().map_or(0, |filter| filter.k()),
            resemblance: found.resemblance,
        }
    }
}

pub(crate) fn service(state: &AppState) -> Result<&SeenService, ServeError> {
    state.seen().ok_or_else(|| {
        ServeError::not_found("this server has no index of seen documents").hint("start it with --seen DIR")
    })
}

/// A body that was read and understood.
struct Batch {
    documents: Vec<Incoming>,
    if_new: bool,
    lines: bool,
    room: Room,
}

/// Parses a body and makes features of its texts.
fn read_batch(state: &AppState, body: BoundedBody, adds: bool, if_new: bool) -> Result<Batch, ServeError> {
    let seen = service(state)?;
    let lines = body.kind() == LINES;
    let (texts, if_new) = if lines {
        (read_lines(body.bytes()), if_new)
    } else if adds {
        let wire: AddWire = body.json()?;
        (wire.documents.into_iter().map(Ok).collect(), wire.if_new)
    } else {
        let wire: CheckWire = body.json()?;
        (wire.documents.into_iter().map(Ok).collect(), false)
    };
    let most = state.limits().batch_documents;
    if texts.len() > most {
        return Err(ServeError::new(
            ErrorKind::TooLarge,
            format!("{} documents; at most {most} are taken at a time", texts.len()),
        ));
    }
    let plain: Vec<&str> = texts.iter().map(|text| text.as_ref().map_or("", |text| &text.text)).collect();
    let features = seen.features(&plain);
    let incoming = |(text, features): (Result<DocumentWire, (usize, String)>, Features)| match text {
        Ok(document) => Incoming { name: document.name, features: Ok(features) },
        Err((line, problem)) => Incoming { name: format!("line {line}"), features: Err(problem) },
    };
    let documents = texts.into_iter().zip(features).map(incoming).collect();
    Ok(Batch { documents, if_new, lines, room: body.into_room() })
}

/// Documents, or the number of the line and what is wrong with it.
fn read_lines(bytes: &[u8]) -> Vec<Result<DocumentWire, (usize, String)>> {
    let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    lines
        .map(|(number, line)| serde_json::from_slice(line).map_err(|error| (number, error.to_string())))
        .collect()
}

fn answer(
    state: &AppState,
    names: Vec<String>,
    answers: Answers,
    lines: bool,
) -> Result<Response, ServeError> {
    let params = service(state)?.params();
    let wire = |(name, (answer, added))| {
        let wire = AnswerWire::new(name, answer, added, params);
        wire.count(state.metrics());
        wire
    };
    let answers: Vec<AnswerWire> = names.into_iter().zip(answers).map(wire).collect();
    if !lines {
        return Ok(Json(AnswersWire { answers }).into_response());
    }
    let mut out = Vec::new();
    for answer in &answers {
        serde_json::to_writer(&mut out, answer).map_err(ServeError::internal)?;
        out.push(b'\n');
    }
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(LINES))], out).into_response())
}

/// Whether documents, or some nearly like them, have been seen. Adds none.
#[utoipa::path(
    post, path = "/api/v1/seen/check", tag = "seen",
    request_body(content((CheckWire = "application/json", example = json!({"documents": [{"name": "http://example.org/", "text": "some words of a page"}]})), (String = "application/x-ndjson"))),
    responses((status = 200, description = "What is known of each", content((AnswersWire = "application/json"), (String = "application/x-ndjson")))),
)]
async fn check(State(state): State<AppState>, body: BoundedBody) -> Result<Response, ServeError> {
    service(&state)?;
    let working = state.clone();
    let (names, answers, lines) = state
        .work(move || {
            let batch = read_batch(&working, body, false, false)?;
            let answers = service(&working)?.check(&batch.documents)?;
            let names = batch.documents.into_iter().map(|document| document.name).collect();
            Ok::<_, ServeError>((names, answers, batch.lines))
        })
        .await??;
    answer(&state, names, answers, lines)
}

/// Adds documents. Answered when they are safe on the disk.
///
/// Of two that are alike and sent at the same time with `if_new`, one is new.
#[utoipa::path(
    post, path = "/api/v1/seen/add", tag = "seen", params(LinesQuery), security(("token" = [])),
    request_body(content((AddWire = "application/json", example = json!({"documents": [{"name": "http://example.org/", "text": "some words of a page"}], "if_new": true})), (String = "application/x-ndjson"))),
    responses((status = 200, description = "What was known of each, and whether it was added", content((AnswersWire = "application/json"), (String = "application/x-ndjson")))),
)]
async fn add(
    State(state): State<AppState>,
    _writer: Writer,
    Query(query): Query<LinesQuery>,
    body: BoundedBody,
) -> Result<Response, ServeError> {
    service(&state)?;
    let working = state.clone();
    let batch = state.work(move || read_batch(&working, body, true, query.if_new)).await??;
    let names = batch.documents.iter().map(|document| document.name.clone()).collect();
    let answers = service(&state)?.add(batch.documents, batch.if_new, batch.room).await?;
    answer(&state, names, answers, batch.lines)
}

/// Removes documents by their names. Answered when they are gone for good.
///
/// When others were recorded as copies of a removed document, the oldest of them takes its place.
#[utoipa::path(
    post, path = "/api/v1/seen/remove", tag = "seen", security(("token" = [])),
    request_body(content = RemoveWire, content_type = "application/json", example = json!({"names": ["http://example.org/"]})),
    responses((status = 200, description = "How many documents each name had", body = RemovedWire)),
)]
async fn remove(
    State(state): State<AppState>,
    _writer: Writer,
    body: BoundedBody,
) -> Result<Json<RemovedWire>, ServeError> {
    let seen = service(&state)?;
    let wire: RemoveWire = body.json()?;
    if wire.names.len() > state.limits().batch_documents {
        let message = format!("at most {} names are taken at a time", state.limits().batch_documents);
        return Err(ServeError::new(ErrorKind::TooLarge, message));
    }
    let names: BTreeSet<String> = wire.names.into_iter().collect();
    let counts = seen.remove(names.clone(), body.into_room()).await?;
    let removed = names.into_iter().map(|name| {
        let documents = counts.get(&name).copied().unwrap_or(0);
        RemovedNameWire { name, documents }
    });
    Ok(Json(RemovedWire { removed: removed.collect() }))
}

/// How large the index is.
#[utoipa::path(get, path = "/api/v1/seen/stats", tag = "seen", responses((status = 200, description = "Its numbers", body = StatsWire)))]
async fn stats(State(state): State<AppState>) -> Result<Json<StatsWire>, ServeError> {
    service(&state)?;
    let working = state.clone();
    let stats = state.work(move || service(&working)?.stats()).await??;
    let seen = service(&state)?;
    let params = seen.params();
    Ok(Json(StatsWire {
        recipe: params.recipe.to_string(),
        seed: params.seed,
        names: params.names,
        documents: stats.documents,
        removed: stats.removed,
        centres: stats.centres,
        postings: stats.postings,
        runs: stats.runs,
        in_log: stats.in_log,
        bytes: stats.bytes,
        name_bytes: stats.name_bytes,
        bytes_per_document: stats.bytes_per_document(),
        read_only: seen.is_read_only(),
    }))
}
