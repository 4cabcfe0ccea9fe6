//! Why two documents are similar, as JSON.

use axum::Json;
use axum::extract::{Query, State};
use onionskin::explain::{Explanation as Explained, Numbers, PassageFields, TextError, Texts};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::error::{ErrorKind, ServeError};
use crate::lanes::Lane;
use crate::library::Library;
use crate::state::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(explain))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct PairAsked {
    /// A document: its number, or its URL.
    a: String,
    /// The other.
    b: String,
}

#[derive(Serialize, ToSchema)]
struct Explanation {
    #[serde(flatten)]
    numbers: Numbers,
    /// Shared passages, longest first, at most a hundred; null when the texts cannot be read any
    /// more.
    passages: Option<Vec<Passage>>,
}

#[derive(Serialize, ToSchema)]
struct Passage {
    #[serde(flatten)]
    fields: PassageFields,
    /// As it is in the first text, at most 500 characters.
    text: String,
}

fn passages(texts: &Texts) -> Vec<Passage> {
    let text = &texts.comparison.text_a;
    let mut passages: Vec<_> = texts.comparison.passages.iter().zip(texts.passages()).collect();
    passages.sort_by_key(|(passage, _)| (std::cmp::Reverse(passage.words), passage.a.start));
    let shown = passages.into_iter().take(100).map(|(passage, fields)| Passage {
        fields,
        text: text[passage.a.clone()].chars().take(500).collect(),
    });
    shown.collect()
}

impl From<&Explained> for Explanation {
    fn from(explained: &Explained) -> Explanation {
        Explanation { numbers: explained.into(), passages: explained.texts.as_ref().ok().map(passages) }
    }
}

/// Why two documents are similar, or not. Offsets of passages are in characters (Unicode scalar
/// values).
#[utoipa::path(get, path = "/api/v1/explain", tag = "atlas", params(PairAsked), responses((status = 200, description = "Everything that speaks for or against it", body = Explanation), (status = 422, description = "The documents are too long to be compared while others wait")))]
async fn explain(State(state): State<AppState>, Query(asked): Query<PairAsked>) -> Answer<Explanation> {
    let work = move |library: &Library| {
        let meant = |text: &str| {
            let none = || ServeError::not_found(format!("no document is called {text:?}"));
            library.meant(text)?.ok_or_else(none)
        };
        let (a, b) = (meant(&asked.a)?, meant(&asked.b)?);
        let explained = library.explain(a, b)?;
        if let Err(error @ (TextError::TooLong { .. } | TextError::TooLarge { .. })) = &explained.texts {
            let hint = format!("`onionskin explain ATLAS doc:{a} doc:{b}` has no limit");
            return Err(ServeError::new(ErrorKind::TooCostly, error.to_string()).hint(hint));
        }
        Ok(Explanation::from(&explained))
    };
    state.read(Lane::Compare, work).await.map(Json)
}
