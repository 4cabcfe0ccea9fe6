//! A part of a list that is too long for one answer.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ServeError;

/// Things in an answer at most.
const MOST: u32 = 1000;

/// A part of a list.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    offset: usize,
    limit: usize,
}

/// Which part is asked for.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartAsked {
    #[serde(default)]
    pub offset: u32,
    /// 100 if not given.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
}

impl Part {
    pub(crate) fn new(offset: u32, limit: Option<u32>) -> Result<Part, ServeError> {
        let limit = limit.unwrap_or(100);
        if !(1..=MOST).contains(&limit) {
            return Err(ServeError::bad_request(format!("limit is 1 to {MOST}")));
        }
        Ok(Part { offset: offset as usize, limit: limit as usize })
    }

    pub(crate) fn of<T>(self, all: &[T]) -> &[T] {
        let rest = all.get(self.offset..).unwrap_or_default();
        &rest[..rest.len().min(self.limit)]
    }
}
