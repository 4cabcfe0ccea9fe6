//! The online filter over HTTP.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Cursor;
use std::marker::PhantomData;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use onionskin_seen::intake::{
    Answer, Documents, Fields, Incoming, IndexStats, InputError, Limits, LineReader, Prepared, RemovedName,
    Request, Status, Threshold, Verb, Verify, place,
};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::Writer;
use crate::charge::Charge;
use crate::error::{ErrorKind, ServeError};
use crate::lanes::Lane;
use crate::limits::{BoundedBody, Room};
use crate::metrics::{Metrics, SeenStatus};
use crate::seen::{COPIES_OF_TEXT, SeenService, UNCHARGED_BYTES};
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
struct CheckBody<'a> {
    #[schema(value_type = Vec<DocumentSchema>)]
    #[serde(borrow)]
    documents: &'a RawValue,
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
struct AddBody<'a> {
    #[schema(value_type = Vec<DocumentSchema>)]
    #[serde(borrow)]
    documents: &'a RawValue,
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
struct RemoveBody<'a> {
    /// Names of documents; whole numbers in digits in an index of numbers.
    #[schema(value_type = Vec<String>)]
    #[serde(borrow)]
    names: &'a RawValue,
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
    (name, verify): (Option<String>, Option<Verify>),
) -> Result<Batch, ServeError> {
    let lines = body.kind() == LINES;
    let mut charge = state.charge();
    let (documents, held, request) = match body.kind() {
        LINES | PARQUET | HTML => {
            ensure_possible(state, request, verify)?;
            let (documents, held) = match body.kind() {
                LINES => prepare_lines(state, body.bytes(), &mut charge)?,
                PARQUET => prepare_rows(state, body.bytes(), &mut charge)?,
                _ => prepare_page(state, body.bytes(), name, &mut charge)?,
            };
            (documents, held, request)
        }
        _ => {
            let (documents, request, how) = if request.verb == Verb::Check {
                let CheckBody { documents, threshold, verify: how } = body.json()?;
                (documents, Request { verb: Verb::Check, threshold }, how)
            } else {
                let AddBody { documents, if_new, threshold, verify: how } = body.json()?;
                (documents, adding(if_new, threshold), how)
            };
            ensure_possible(state, request, how.or(verify))?;
            let (documents, held) = prepare_objects(state, documents, &mut charge)?;
            (documents, held, request)
        }
    };
    Ok(Batch { documents, request, lines, room: charge.keep(held, body.into_room()) })
}

fn ensure_possible(state: &AppState, request: Request, verify: Option<Verify>) -> Result<(), ServeError> {
    let params = service(state)?.params();
    let verified = verify.map_or(Ok(()), |how| how.ensure_possible(params, false));
    let possible = verified.and_then(|()| request.ensure_possible(params));
    possible.map_err(|error| ServeError::bad_request(error.to_string()))
}

/// The input that places are of, as for standard input.
const PLACE: &str = "-";

/// Documents with features, and the memory that they take.
type Held = (Vec<Prepared>, usize);

fn too_many(most: usize, what: &str) -> ServeError {
    ServeError::new(ErrorKind::TooLarge, format!("at most {most} {what} are taken at a time"))
}

fn bad_input(error: impl std::fmt::Display) -> ServeError {
    ServeError::bad_request(format!("the body is not what this takes: {error}"))
}

fn bad_documents(error: InputError) -> ServeError {
    match error.is_too_large() {
        true => ServeError::new(ErrorKind::TooLarge, format!("the body is too large: {error}"))
            .hint("send fewer rows at a time, in smaller pages"),
        false => bad_input(error),
    }
}

/// Every document of lines or rows. Those that cannot be taken are answered for.
fn prepare_all(
    state: &AppState,
    mut input: Documents<'_>,
    most_bytes: usize,
    charge: &mut Charge,
) -> Result<Held, ServeError> {
    let most = state.limits().batch_documents;
    let (mut count, mut bytes) = (0, 0_usize);
    service(state)?.prepare(charge, |_| {
        let Some(document) = input.next_document().map_err(bad_documents)? else { return Ok(None) };
        count += 1;
        bytes = bytes.saturating_add(document.text.as_ref().map_or(0, String::len));
        if count > most {
            return Err(too_many(most, "documents"));
        }
        if bytes > most_bytes {
            let message = format!("the texts have more than {most_bytes} bytes together");
            return Err(ServeError::new(ErrorKind::TooLarge, message).hint("send fewer rows at a time"));
        }
        Ok(Some(document))
    })
}

fn prepare_lines(state: &AppState, body: &[u8], charge: &mut Charge) -> Result<Held, ServeError> {
    let longest = body.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap_or(0);
    cover_text(charge, longest)?;
    let lines = Documents::lines(PLACE, body, Fields::default(), &Limits::of_records(u64::MAX));
    prepare_all(state, lines, usize::MAX, charge)
}

/// How many times their size rows may have as text: more is a few bytes that say the same again and
/// again.
const UNPACKED: usize = 4;
/// How many times the size of a file one of its pages may have, and so much more.
const UNPACKED_PAGE: (usize, usize) = (8, 1 << 20);
/// A page is decoded, and its rows are copied out.
const COPIES_OF_PAGE: usize = 3;
/// Rows that are decoded together, twice.
const ROWS_BYTES: usize = 16 << 20;

fn prepare_rows(state: &AppState, body: &[u8], charge: &mut Charge) -> Result<Held, ServeError> {
    let possible = state.work_bytes().saturating_sub(ROWS_BYTES) / COPIES_OF_PAGE;
    let (times, more) = UNPACKED_PAGE;
    let page = (times * body.len() + more).min(state.limits().body_bytes).min(possible);
    charge.cover(COPIES_OF_PAGE * page + ROWS_BYTES)?;
    let max_record_bytes = state.limits().body_bytes as u64;
    let limits = Limits { max_page_bytes: page as u64, ..Limits::of_records(max_record_bytes) };
    // The library that reads Parquet wants bytes of its own.
    let rows = Documents::parquet(PLACE, Cursor::new(body.to_vec()), Fields::default(), &limits);
    prepare_all(state, rows.map_err(bad_documents)?, UNPACKED * state.limits().body_bytes, charge)
}

/// One page, named in the query.
fn prepare_page(
    state: &AppState,
    body: &[u8],
    name: Option<String>,
    charge: &mut Charge,
) -> Result<Held, ServeError> {
    cover_text(charge, body.len())?;
    let name = name.unwrap_or_else(|| place(PLACE, 1));
    let mut page = Some(Incoming::of_html(name, body));
    service(state)?.prepare(charge, |_| Ok(page.take()))
}

/// The documents of a JSON request, which is refused if one of them cannot be taken.
fn prepare_objects(state: &AppState, objects: &RawValue, charge: &mut Charge) -> Result<Held, ServeError> {
    let objects: Vec<&RawValue> = items(objects, state.limits().batch_documents, "documents")?;
    let mut reader = LineReader::default();
    let mut objects = (0..).zip(objects);
    service(state)?.prepare(charge, |charge| {
        let Some((n, object)) = objects.next() else { return Ok(None) };
        cover_text(charge, object.get().len())?;
        let document = reader.read(object.get().as_bytes(), || place(PLACE, n + 1));
        match &document.text {
            Err(problem) => Err(bad_input(format!("documents[{n}]: {problem}"))),
            Ok(_) => Ok(Some(document)),
        }
    })
}

/// Takes memory for reading a text that has so many bytes as it was sent.
fn cover_text(charge: &mut Charge, bytes: usize) -> Result<(), ServeError> {
    if bytes > UNCHARGED_BYTES { charge.cover(COPIES_OF_TEXT * bytes) } else { Ok(()) }
}

/// The items of a list, if there are no more than so many: what is made of one is larger than what
/// it may be in a body.
fn items<'a, T: Deserialize<'a>>(
    list: &'a RawValue,
    most: usize,
    what: &'static str,
) -> Result<Vec<T>, ServeError> {
    struct Items<T>(usize, PhantomData<T>);

    impl<'a, T: Deserialize<'a>> Visitor<'a> for Items<T> {
        /// None when there are more.
        type Value = Option<Vec<T>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = list.next_element()? {
                if items.len() == self.0 {
                    while list.next_element::<IgnoredAny>()?.is_some() {}
                    return Ok(None);
                }
                items.push(item);
            }
            Ok(Some(items))
        }
    }

    let mut json = serde_json::Deserializer::from_str(list.get());
    let items = json.deserialize_seq(Items(most, PhantomData)).map_err(bad_input)?;
    items.ok_or_else(|| too_many(most, what))
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
    let wire: RemoveBody<'_> = body.json()?;
    let names: Vec<String> = items(wire.names, state.limits().batch_documents, "names")?;
    let names: BTreeSet<String> = names.into_iter().collect();
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
