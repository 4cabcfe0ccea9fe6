//! Turns at the threads that work.
//!
//! One pool of threads for everything has two faults: twenty requests that take seconds keep those
//! waiting that take a millisecond, and one client that sends hundreds keeps everybody else waiting
//! behind them. So each kind of work has threads of its own ([`Lane`]), and in each lane clients
//! take turns: whoever has sent hundreds waits behind who has sent one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::auth::Client;
use crate::state::Busy;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Searches, and whatever else takes milliseconds.
    Search,
    /// Lists that are sorted or gone through for a request.
    Lists,
    /// Texts that are read again and compared, and what the next crawl can skip: seconds of work
    /// and much memory.
    Compare,
    /// Documents that are looked for or prepared for the index of seen ones.
    Seen,
}

/// The lanes of a server.
#[derive(Debug)]
pub(crate) struct Lanes {
    search: Arc<Line>,
    lists: Arc<Line>,
    compare: Arc<Line>,
    seen: Arc<Line>,
}

impl Lanes {
    /// With so many threads for what is quick, so many for comparing, and places to wait in each.
    pub(crate) fn new(threads: usize, comparing: usize, queue: usize) -> Lanes {
        let line = |threads: usize| Arc::new(Line::new(threads.max(1), queue));
        Lanes {
            search: line(threads),
            lists: line(threads.div_ceil(2)),
            compare: line(comparing),
            seen: line(threads),
        }
    }

    pub(crate) fn of(&self, lane: Lane) -> &Arc<Line> {
        match lane {
            Lane::Search => &self.search,
            Lane::Lists => &self.lists,
            Lane::Compare => &self.compare,
            Lane::Seen => &self.seen,
        }
    }
}

/// Threads, and who waits for them.
#[derive(Debug)]
pub(crate) struct Line {
    state: Mutex<State>,
    /// Who may wait, and how many of them may be of one client.
    queue: usize,
    of_one: usize,
}

#[derive(Debug)]
struct State {
    free: usize,
    next: u64,
    waiting: usize,
    /// Who waits, by client; the first client is next.
    clients: VecDeque<(Client, VecDeque<Waiting>)>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    turn: oneshot::Sender<Turn>,
}

/// A thread that may be used; given on when dropped.
#[derive(Debug)]
pub(crate) struct Turn(Option<Arc<Line>>);

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(line) = self.0.take() {
            line.give_on();
        }
    }
}

/// A place in the queue, given back when whoever waits goes away.
struct Place<'a> {
    line: &'a Line,
    client: Client,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.line.state().leave(self.client, self.number);
    }
}

impl State {
    fn line_of(&self, client: Client) -> Option<usize> {
        self.clients.iter().position(|(other, _)| *other == client)
    }

    fn leave(&mut self, client: Client, number: u64) {
        let Some(at) = self.line_of(client) else { return };
        let line = &mut self.clients[at].1;
        let before = line.len();
        line.retain(|waiting| waiting.number != number);
        self.waiting -= before - line.len();
        if line.is_empty() {
            self.clients.remove(at);
        }
    }

    /// Who is next. Its client goes to the end.
    fn next(&mut self) -> Option<Waiting> {
        let (client, mut line) = self.clients.pop_front()?;
        let first = line.pop_front();
        self.waiting -= usize::from(first.is_some());
        if !line.is_empty() {
            self.clients.push_back((client, line));
        }
        first
    }
}

impl Line {
    fn new(threads: usize, queue: usize) -> Line {
        let state = State { free: threads, next: 0, waiting: 0, clients: VecDeque::new() };
        Line { state: Mutex::new(state), queue, of_one: queue.div_ceil(2) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn; an error when too many wait, of all or of this client.
    pub(crate) async fn turn(self: &Arc<Line>, client: Client) -> Result<Turn, Busy> {
        let (turn, place) = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Ok(Turn(Some(Arc::clone(self))));
            }
            let at = state.line_of(client);
            let own = at.map_or(0, |at| state.clients[at].1.len());
            if state.waiting >= self.queue || own >= self.of_one {
                return Err(Busy);
            }
            let (turn, mine) = oneshot::channel();
            let number = state.next;
            state.next += 1;
            state.waiting += 1;
            let waiting = Waiting { number, turn };
            match at {
                Some(at) => state.clients[at].1.push_back(waiting),
                None => state.clients.push_back((client, VecDeque::from([waiting]))),
            }
            (mine, Place { line: self, client, number })
        };
        let turn = turn.await.map_err(|_| Busy);
        drop(place);
        turn
    }

    fn give_on(self: &Arc<Line>) {
        let mut state = self.state();
        while let Some(waiting) = state.next() {
            match waiting.turn.send(Turn(Some(Arc::clone(self)))) {
                Ok(()) => return,
                // It went away in this moment; its turn must not be given on while the state is
                // locked.
                Err(mut turn) => drop(turn.0.take()),
            }
        }
        state.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(n: u8) -> Client {
        Client::at([10, 0, 0, n].into())
    }

    async fn until_waiting(line: &Line, n: usize) {
        while line.state().waiting < n {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn clients_take_turns() {
        let line = Arc::new(Line::new(1, 100));
        let first = line.turn(client(1)).await.unwrap();
        let (done, mut order) = tokio::sync::mpsc::unbounded_channel();
        for (n, who) in [1, 1, 1, 2, 3, 2].into_iter().enumerate() {
            let (line, done) = (Arc::clone(&line), done.clone());
            let waits = Arc::clone(&line);
            tokio::spawn(async move {
                let turn = line.turn(client(who)).await.unwrap();
                done.send(who).unwrap();
                drop(turn);
            });
            until_waiting(&waits, n + 1).await;
        }
        drop(first);
        let mut came = Vec::new();
        for _ in 0..6 {
            came.push(order.recv().await.unwrap());
        }
        assert_eq!(came, [1, 2, 3, 1, 2, 1]);
        let state = line.state();
        assert_eq!((state.free, state.waiting), (1, 0));
    }

    #[tokio::test]
    async fn one_client_does_not_take_every_place() {
        let line = Arc::new(Line::new(1, 4));
        let first = line.turn(client(1)).await.unwrap();
        let waits = |who| {
            let line = Arc::clone(&line);
            tokio::spawn(async move { line.turn(client(who)).await.is_ok() })
        };
        let own = [waits(1), waits(1)];
        until_waiting(&line, 2).await;
        assert!(line.turn(client(1)).await.is_err(), "two of four places are taken");
        let others = [waits(2), waits(3)];
        until_waiting(&line, 4).await;
        assert!(line.turn(client(4)).await.is_err(), "all are");
        // Who goes away gives the place back.
        own.iter().for_each(tokio::task::JoinHandle::abort);
        while line.state().waiting > 2 {
            tokio::task::yield_now().await;
        }
        let fourth = waits(4);
        until_waiting(&line, 3).await;
        drop(first);
        for waits in others.into_iter().chain([fourth]) {
            assert!(waits.await.unwrap());
        }
        let state = line.state();
        assert_eq!((state.free, state.clients.len()), (1, 0));
    }
}
