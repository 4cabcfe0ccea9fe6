//! Memory for the work on what callers send.
//!
//! A body of megabytes may be hundreds of megabytes while it is worked on: a text of words of one
//! letter takes twenty times its size while it is analysed. So work takes its memory out of one
//! room before it begins. Work that is larger than the room is refused, and so is work for which
//! there is no room at the moment: nobody waits for room that only they themselves could free.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ErrorKind, ServeError};
use crate::limits::Room;
use crate::state::Busy;

/// Semaphores count to 2^29 on small machines; memory is counted in kilobytes.
const UNIT: usize = 1 << 10;

/// Memory that all work together may take.
#[derive(Clone, Debug)]
pub(crate) struct WorkRoom {
    units: Arc<Semaphore>,
    all: usize,
}

/// What one piece of work takes of it, given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    room: WorkRoom,
    taken: Option<OwnedSemaphorePermit>,
}

impl WorkRoom {
    pub(crate) fn new(bytes: usize) -> WorkRoom {
        let all = (bytes / UNIT).min(1 << 28);
        WorkRoom { units: Arc::new(Semaphore::new(all)), all }
    }

    /// How much there is.
    pub(crate) fn bytes(&self) -> usize {
        self.all * UNIT
    }

    /// Nothing yet.
    pub(crate) fn charge(&self) -> Charge {
        Charge { room: self.clone(), taken: None }
    }
}

impl Charge {
    fn units(&self) -> usize {
        self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    /// Takes so many bytes in all, unless it has them.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), ServeError> {
        let needed = bytes.div_ceil(UNIT);
        if needed > self.room.all {
            let (needed, all) = (needed.div_ceil(1 << 10), self.room.all >> 10);
            let message =
                format!("this needs {needed} MiB of memory, and the server has {all} for such work");
            let hint = "send less at a time; a text of fewer words needs less";
            return Err(ServeError::new(ErrorKind::TooLarge, message).hint(hint));
        }
        let Some(more) = needed.checked_sub(self.units()).filter(|more| *more > 0) else { return Ok(()) };
        let more = Arc::clone(&self.room.units).try_acquire_many_owned(more as u32).map_err(|_| Busy)?;
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }

    /// Gives back what is more than so many bytes. The rest goes along with the room of a body.
    pub(crate) fn keep(mut self, bytes: usize, room: Room) -> Room {
        let units = self.units();
        if let Some(taken) = &mut self.taken {
            drop(taken.split(units.saturating_sub(bytes.div_ceil(UNIT))));
        }
        room.and(self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let room = WorkRoom::new(10 << 20);
        let free = || room.units.available_permits() * UNIT;
        let (mut one, mut other) = (room.charge(), room.charge());
        one.cover(4 << 20).unwrap();
        one.cover(6 << 20).unwrap();
        one.cover(1 << 20).unwrap();
        assert_eq!(free(), 4 << 20);
        assert_eq!(other.cover(5 << 20).unwrap_err().kind(), ErrorKind::Busy);
        assert_eq!(other.cover(11 << 20).unwrap_err().kind(), ErrorKind::TooLarge);
        other.cover(4 << 20).unwrap();
        let kept = one.keep(1000, Room::default());
        assert_eq!(free(), (6 << 20) - UNIT);
        drop(kept);
        assert_eq!(free(), 6 << 20);
        drop(other);
        assert_eq!(free(), 10 << 20);
    }
}
