//! The online filter over HTTP.

use std::collections::BTreeSet;
use std::io::Cursor;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use onionskin_seen::intake::{
    Answer, Documents, Fields, Incoming, IndexStats, LineReader, Prepared, RemovedName, Request, Status,
    Threshold, Verb, Verify, place,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::Writer;
use crate::error::{ErrorKind, ServeError};
use crate::lanes::Lane;
use crate::limits::{BoundedBody, Room};
use crate::metrics::{Metrics, SeenStatus};
use crate::seen::SeenService;
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

/// Apache Parquet with the columns of a document.
const PARQUET: &str = "application/vnd.apache.parquet";

/// A document, named by `name` or `id`, else by `url`, else by its place in the request. It has a
/// text or HTML; any other field is an error.
#[derive(Deserialize, ToSchema)]
#[schema(as = SeenDocument)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "a description; documents are read by the intake")]
struct DocumentSchema {
    /// Its name; a whole number in digits in an index of numbers.
    name: Option<String>,
    /// The same as `name`.
    id: Option<String>,
    /// Its URL.
    url: Option<String>,
    /// Plain text.
    text: Option<String>,
    /// HTML, whose text is extracted.
    html: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = SeenCheck)]
#[serde(deny_unknown_fields)]
struct CheckBody {
    #[schema(value_type = Vec<DocumentSchema>)]
    documents: Vec<Box<RawValue>>,
    /// Only documents that may have this resemblance are near. Needs an index with sketches.
    #[schema(value_type = Option<f64>, exclusive_minimum = 0.0, maximum = 1.0)]
    threshold: Option<Threshold>,
    /// How resemblance is found: `sketch`, an estimate. `text` is an error: a server has no texts.
    #[schema(value_type = Option<String>)]
    verify: Option<Verify>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = SeenAdd)]
#[serde(deny_unknown_fields)]
struct AddBody {
    #[schema(value_type = Vec<DocumentSchema>)]
    documents: Vec<Box<RawValue>>,
    /// Leave out duplicates of documents that are in the index, or of earlier ones of the batch.
    #[serde(default)]
    if_new: bool,
    /// Only documents that may have this resemblance are near. Needs an index with sketches.
    #[schema(value_type = Option<f64>, exclusive_minimum = 0.0, maximum = 1.0)]
    threshold: Option<Threshold>,
    /// How resemblance is found: `sketch`, an estimate. `text` is an error: a server has no texts.
    #[schema(value_type = Option<String>)]
    verify: Option<Verify>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = SeenRemove)]
#[serde(deny_unknown_fields)]
struct RemoveBody {
    /// Names of documents; whole numbers in digits in an index of numbers.
    names: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SeenAnswers)]
struct AnswersBody {
    /// One per document, in order.
    answers: Vec<Answer>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SeenRemoved)]
struct RemovedBody {
    /// One per name, in order of name.
    removed: Vec<RemovedName>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SeenStats)]
struct StatsBody {
    #[serde(flatten)]
    index: IndexStats,
    /// Whether another process adds.
    read_only: bool,
}

/// With lines, Parquet or HTML, what is in the body of a JSON request otherwise.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct CheckQuery {
    /// With lines, Parquet or HTML: only documents that may have this resemblance are near.
    #[param(value_type = Option<f64>, exclusive_minimum = 0.0, maximum = 1.0)]
    threshold: Option<Threshold>,
    /// With HTML: the name of the document.
    name: Option<String>,
    /// With lines, Parquet or HTML: how resemblance is found, as in a JSON request.
    #[param(value_type = Option<String>)]
    verify: Option<Verify>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct AddQuery {
    /// With lines, Parquet or HTML: leave out duplicates of documents that are in the index.
    #[serde(default)]
    if_new: bool,
    /// With lines, Parquet or HTML: only documents that may have this resemblance are near.
    #[param(value_type = Option<f64>, exclusive_minimum = 0.0, maximum = 1.0)]
    threshold: Option<Threshold>,
    /// With HTML: the name of the document.
    name: Option<String>,
    /// With lines, Parquet or HTML: how resemblance is found, as in a JSON request.
    #[param(value_type = Option<String>)]
    verify: Option<Verify>,
}

fn adding(if_new: bool, threshold: Option<Threshold>) -> Request {
    Request { verb: if if_new { Verb::AddIfNew } else { Verb::Add }, threshold }
}

pub(crate) fn count(answer: &Answer, metrics: &Metrics) {
    metrics.seen(match answer.status {
        Status::New => SeenStatus::new,
        Status::Near => SeenStatus::near,
        Status::Exact => SeenStatus::exact,
        Status::Empty => SeenStatus::empty,
        Status::Bad => SeenStatus::bad,
    });
}

pub(crate) fn service(state: &AppState) -> Result<&SeenService, ServeError> {
    state.seen().ok_or_else(|| {
        ServeError::not_found("this server has no index of seen documents").hint("start it with --seen DIR")
    })
}

/// A body that was read and understood.
struct Batch {
    documents: Vec<Prepared>,
    request: Request,
    lines: bool,
    room: Room,
}

/// One document that is a page, named in the query.
const HTML: &str = "text/html";

/// Parses a body and makes features of its texts. `request`, `name` and `verify` are those of a
/// query.
fn read_batch(
    state: &AppState,
    body: BoundedBody,
    request: Request,
    (name, mut verify): (Option<String>, Option<Verify>),
) -> Result<Batch, ServeError> {
    let seen = service(state)?;
    let most = state.limits().batch_documents;
    let (documents, request) = match body.kind() {
        LINES => {
            let lines = Documents::lines(PLACE, body.bytes(), Fields::default(), u64::MAX);
            (read_documents(lines, most)?, request)
        }
        PARQUET => {
            let rows = Cursor::new(body.bytes().to_vec());
            let rows = Documents::parquet(PLACE, rows, Fields::default(), u64::MAX).map_err(bad_input)?;
            (read_documents(rows, most)?, request)
        }
        HTML => {
            let name = name.unwrap_or_else(|| place(PLACE, 1));
            (vec![Incoming::of_html(name, body.bytes())], request)
        }
        _ if request.verb == Verb::Check => {
            let CheckBody { documents, threshold, verify: how } = body.json()?;
            verify = how.or(verify);
            (read_objects(&documents, most)?, Request { verb: Verb::Check, threshold })
        }
        _ => {
            let AddBody { documents, if_new, threshold, verify: how } = body.json()?;
            verify = how.or(verify);
            (read_objects(&documents, most)?, adding(if_new, threshold))
        }
    };
    let verified = verify.map_or(Ok(()), |how| how.ensure_possible(seen.params(), false));
    let possible = verified.and_then(|()| request.ensure_possible(seen.params()));
    possible.map_err(|error| ServeError::bad_request(error.to_string()))?;
    let lines = body.kind() == LINES;
    Ok(Batch { documents: seen.prepare(documents), request, lines, room: body.into_room() })
}

/// The input that places are of, as for standard input.
const PLACE: &str = "-";

fn too_many(most: usize) -> ServeError {
    ServeError::new(ErrorKind::TooLarge, format!("at most {most} documents are taken at a time"))
}

fn bad_input(error: impl std::fmt::Display) -> ServeError {
    ServeError::bad_request(format!("the body is not what this takes: {error}"))
}

/// All documents of lines or rows. Those that cannot be taken are answered for.
fn read_documents(mut input: Documents<'_>, most: usize) -> Result<Vec<Incoming>, ServeError> {
    let mut documents = Vec::new();
    while let Some(document) = input.next_document().map_err(bad_input)? {
        if documents.len() == most {
            return Err(too_many(most));
        }
        documents.push(document);
    }
    Ok(documents)
}

/// The documents of a JSON request, which is refused if one of them cannot be taken.
fn read_objects(objects: &[Box<RawValue>], most: usize) -> Result<Vec<Incoming>, ServeError> {
    if objects.len() > most {
        return Err(too_many(most));
    }
    let mut reader = LineReader::default();
    let read = |(n, object): (u64, &RawValue)| {
        let document = reader.read(object.get().as_bytes(), || place(PLACE, n + 1));
        match &document.text {
            Err(problem) => Err(bad_input(format!("documents[{n}]: {problem}"))),
            Ok(_) => Ok(document),
        }
    };
    (0..).zip(objects.iter().map(AsRef::as_ref)).map(read).collect()
}

fn answer(state: &AppState, answers: Vec<Answer>, lines: bool) -> Result<Response, ServeError> {
    answers.iter().for_each(|answer| count(answer, state.metrics()));
    if !lines {
        return Ok(Json(AnswersBody { answers }).into_response());
    }
    let mut out = Vec::new();
    for answer in &answers {
        serde_json::to_writer(&mut out, answer).map_err(ServeError::internal)?;
        out.push(b'\n');
    }
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static(LINES))], out).into_response())
}

/// Whether documents, or near-duplicates of them, are in the index. Adds none.
#[utoipa::path(
    post, path = "/api/v1/seen/check", tag = "seen", params(CheckQuery),
    request_body(content((CheckBody = "application/json", example = json!({"documents": [{"name": "http://example.org/", "text": "some words of a page"}]})), (String = "application/x-ndjson"), (String = "application/vnd.apache.parquet"), (String = "text/html"))),
    responses((status = 200, description = "What is known of each", content((AnswersBody = "application/json"), (String = "application/x-ndjson")))),
)]
async fn check(
    State(state): State<AppState>,
    Query(query): Query<CheckQuery>,
    body: BoundedBody,
) -> Result<Response, ServeError> {
    service(&state)?;
    let working = state.clone();
    let request = Request { verb: Verb::Check, threshold: query.threshold };
    let (answers, lines) = state
        .work(Lane::Seen, move || {
            let batch = read_batch(&working, body, request, (query.name, query.verify))?;
            let answers = service(&working)?.check(&batch.documents, batch.request.threshold)?;
            Ok::<_, ServeError>((answers, batch.lines))
        })
        .await??;
    answer(&state, answers, lines)
}

/// Adds documents. Answered when they are safe on the disk.
///
/// Of two duplicates that are sent at the same time with `if_new`, one is new.
#[utoipa::path(
    post, path = "/api/v1/seen/add", tag = "seen", params(AddQuery), security(("token" = [])),
    request_body(content((AddBody = "application/json", example = json!({"documents": [{"name": "http://example.org/", "text": "some words of a page"}], "if_new": true})), (String = "application/x-ndjson"), (String = "application/vnd.apache.parquet"), (String = "text/html"))),
    responses((status = 200, description = "What was known of each, and whether it was added", content((AnswersBody = "application/json"), (String = "application/x-ndjson")))),
)]
async fn add(
    State(state): State<AppState>,
    _writer: Writer,
    Query(query): Query<AddQuery>,
    body: BoundedBody,
) -> Result<Response, ServeError> {
    service(&state)?;
    let working = state.clone();
    let request = adding(query.if_new, query.threshold);
    let of_query = (query.name, query.verify);
    let batch = state.work(Lane::Seen, move || read_batch(&working, body, request, of_query)).await??;
    let answers = service(&state)?.add(batch.documents, batch.request, batch.room).await?;
    answer(&state, answers, batch.lines)
}

/// Removes documents by their names. Answered when they are gone for good.
///
/// When others were recorded as duplicates of a removed document, the oldest of them takes its
/// place. In an index of numbers, a name that is no number is an error.
#[utoipa::path(
    post, path = "/api/v1/seen/remove", tag = "seen", security(("token" = [])),
    request_body(content = RemoveBody, content_type = "application/json", example = json!({"names": ["http://example.org/"]})),
    responses((status = 200, description = "How many documents each name had", body = RemovedBody)),
)]
async fn remove(
    State(state): State<AppState>,
    _writer: Writer,
    body: BoundedBody,
) -> Result<Json<RemovedBody>, ServeError> {
    let seen = service(&state)?;
    let wire: RemoveBody = body.json()?;
    if wire.names.len() > state.limits().batch_documents {
        let message = format!("at most {} names are taken at a time", state.limits().batch_documents);
        return Err(ServeError::new(ErrorKind::TooLarge, message));
    }
    let names: BTreeSet<String> = wire.names.into_iter().collect();
    let removed = seen.remove(names, body.into_room()).await?;
    Ok(Json(RemovedBody { removed }))
}

/// What the index is of and how large it is.
#[utoipa::path(get, path = "/api/v1/seen/stats", tag = "seen", responses((status = 200, description = "Its numbers", body = StatsBody)))]
async fn stats(State(state): State<AppState>) -> Result<Json<StatsBody>, ServeError> {
    service(&state)?;
    let working = state.clone();
    let index = state.work(Lane::Seen, move || service(&working)?.stats()).await??;
    Ok(Json(StatsBody { index, read_only: service(&state)?.is_read_only() }))
}
