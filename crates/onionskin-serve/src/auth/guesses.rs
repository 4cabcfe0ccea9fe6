//! How often the token may be guessed.
//!
//! A token of sixteen characters cannot be found by trying, one that somebody has made up can. So
//! guesses cost: each address has a few, and gets new ones slowly; all strangers together have not
//! many more. An address from which the right token came has its own account, which strangers
//! cannot use up, so that those who guess do not lock out those who know.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

use super::Client;

/// Guesses at once, and in the long run.
#[derive(Clone, Copy, Debug)]
struct Rate {
    burst: f64,
    per_second: f64,
}

/// An address from which no right token came.
const STRANGER: Rate = Rate { burst: 10.0, per_second: 0.5 };
/// All of them together.
const STRANGERS: Rate = Rate { burst: 100.0, per_second: 20.0 };
/// An address from which one came.
const KNOWN: Rate = Rate { burst: 100.0, per_second: 10.0 };
/// Addresses that are remembered, the last that were met. One that is forgotten begins anew, within
/// what all strangers may.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not zero");

/// Guesses that are left.
#[derive(Clone, Copy, Debug)]
struct Account {
    left: f64,
    at: Instant,
    is_known: bool,
}

impl Account {
    fn new(rate: Rate, now: Instant) -> Account {
        Account { left: rate.burst, at: now, is_known: false }
    }

    /// As it is now.
    fn earn(&mut self, rate: Rate, now: Instant) {
        let time = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + time * rate.per_second).min(rate.burst), now);
    }

    /// How long until there is a guess.
    fn wait(&self, rate: Rate) -> Option<Duration> {
        (self.left < 1.0).then(|| Duration::from_secs_f64((1.0 - self.left) / rate.per_second))
    }
}

/// Who has guessed how often.
#[derive(Debug)]
pub(super) struct Guesses(Mutex<Book>);

#[derive(Debug)]
struct Book {
    strangers: Account,
    clients: LruCache<Client, Account>,
}

impl Guesses {
    pub(super) fn new(now: Instant) -> Guesses {
        let (strangers, clients) = (Account::new(STRANGERS, now), LruCache::new(REMEMBERED));
        Guesses(Mutex::new(Book { strangers, clients }))
    }

    /// Whether a guess is right; an error with the time to wait when there have been too many, and
    /// then nobody looks whether it is.
    pub(super) fn judge(
        &self,
        client: Client,
        now: Instant,
        is_right: impl FnOnce() -> bool,
    ) -> Result<bool, Duration> {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Book { strangers, clients } = &mut *book;
        let own = clients.get_or_insert_mut(client, || Account::new(STRANGER, now));
        let rate = if own.is_known { KNOWN } else { STRANGER };
        own.earn(rate, now);
        strangers.earn(STRANGERS, now);
        let wait = own.wait(rate).max(if own.is_known { None } else { strangers.wait(STRANGERS) });
        if let Some(wait) = wait {
            return Err(wait);
        }
        if is_right() {
            *own = Account { is_known: true, ..Account::new(KNOWN, now) };
            return Ok(true);
        }
        own.left -= 1.0;
        if !own.is_known {
            strangers.left -= 1.0;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(n: u8) -> Client {
        Client::at([10, 0, 0, n].into())
    }

    #[test]
    fn an_address_has_a_few_guesses_and_gets_more() {
        let start = Instant::now();
        let guesses = Guesses::new(start);
        let wrong = |n, now| guesses.judge(client(n), now, || false);
        assert_eq!((0..20).filter(|_| wrong(1, start).is_ok()).count(), 10);
        assert_eq!(wrong(1, start), Err(Duration::from_secs(2)));
        assert_eq!(wrong(2, start), Ok(false), "another address is not concerned");
        let refused = guesses.judge(client(1), start, || panic!("nobody looks"));
        assert!(refused.is_err());
        let later = start + Duration::from_secs(2);
        assert_eq!((wrong(1, later), wrong(1, later).is_err()), (Ok(false), true));
    }

    #[test]
    fn all_strangers_together_have_not_many_more() {
        let start = Instant::now();
        let guesses = Guesses::new(start);
        let mut judged = 0;
        for second in 0..10 {
            for n in 0..20_000_u32 {
                let address = std::net::Ipv4Addr::from(n + second * 20_000);
                let client = Client::at(address.into());
                let now = start + Duration::from_secs(u64::from(second));
                judged += u64::from(guesses.judge(client, now, || false).is_ok());
            }
        }
        assert_eq!(judged, 100 + 9 * 20);
        assert!(guesses.0.lock().unwrap().clients.len() <= REMEMBERED.get());
    }

    #[test]
    fn who_knows_is_not_locked_out_by_who_guesses() {
        let start = Instant::now();
        let guesses = Guesses::new(start);
        assert_eq!(guesses.judge(client(1), start, || true), Ok(true));
        for n in 2..200 {
            let _ = guesses.judge(client(n), start, || false);
        }
        assert!(guesses.judge(client(201), start, || true).is_err(), "strangers have used theirs up");
        for _ in 0..1000 {
            assert_eq!(guesses.judge(client(1), start, || true), Ok(true));
        }
        // From there too guesses are bounded.
        assert_eq!((0..200).filter(|_| guesses.judge(client(1), start, || false).is_ok()).count(), 100);
    }
}
