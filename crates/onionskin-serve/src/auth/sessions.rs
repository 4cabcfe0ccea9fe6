//! Browsers that have shown the token.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};

use super::same;
use crate::error::ServeError;

/// Ids of browsers that have shown the token. In memory: a restart signs everybody out.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<VecDeque<Session>>);

#[derive(Debug)]
pub(super) struct Session {
    id: String,
    end: Instant,
}

impl Sessions {
    pub(crate) const LIFE: Duration = Duration::from_secs(12 * 3600);
    pub(crate) const COOKIE: &'static str = "onionskin_session";
    /// The oldest make room.
    pub(super) const MOST: usize = 1000;

    pub(super) fn list(&self) -> MutexGuard<'_, VecDeque<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new session. Fails when the system has no random bytes.
    pub(crate) fn begin(&self) -> Result<String, ServeError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(ServeError::internal)?;
        let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut list = self.list();
        let now = Instant::now();
        list.retain(|session| session.end > now);
        if list.len() >= Sessions::MOST {
            list.pop_front();
        }
        list.push_back(Session { id: id.clone(), end: now + Sessions::LIFE });
        Ok(id)
    }

    pub(crate) fn end(&self, headers: &HeaderMap) {
        if let Some(id) = Sessions::cookie(headers) {
            self.list().retain(|session| !same(session.id.as_bytes(), id.as_bytes()));
        }
    }

    pub(super) fn has(&self, headers: &HeaderMap) -> bool {
        let Some(id) = Sessions::cookie(headers) else { return false };
        let now = Instant::now();
        self.list().iter().any(|session| session.end > now && same(session.id.as_bytes(), id.as_bytes()))
    }

    fn cookie(headers: &HeaderMap) -> Option<&str> {
        let lists = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        lists.flat_map(|list| list.split(';')).find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == Sessions::COOKIE).then_some(value)
        })
    }
}
