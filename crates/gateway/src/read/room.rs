//! How much of what is read back is in memory at a time: pages that are being read, and answers that clients haven't
//! taken yet. It is apart from the room for what is posted: readers take nothing from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use event::limits::READS_IN_FLIGHT_BYTES_MAX;

use crate::code::Code;
use crate::problem::{Problem, Refused};

/// The room of all shards.
#[derive(Debug, Default)]
pub(crate) struct ReadRoom {
    taken: AtomicUsize,
}

/// A part of it, until this is dropped.
#[derive(Debug)]
pub(crate) struct ReadPermit {
    room: Arc<ReadRoom>,
    bytes: usize,
}

impl ReadRoom {
    /// # Errors
    /// There isn't as much left.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Result<ReadPermit, Refused> {
        let with = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= READS_IN_FLIGHT_BYTES_MAX);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with) {
            Ok(_) => Ok(ReadPermit { room: self.clone(), bytes }),
            Err(_) => {
                Err(Problem::boxed(Code::Overload, "too much is being read; ask again later, or for fewer events"))
            }
        }
    }
}

impl ReadPermit {
    /// Gives back what isn't needed after all.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let back = self.bytes.saturating_sub(bytes);
        self.room.taken.fetch_sub(back, Ordering::Relaxed);
        self.bytes -= back;
    }
}

impl Drop for ReadPermit {
    fn drop(&mut self) {
        let before = self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
        debug_assert!(before >= self.bytes, "what is given back was taken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_bounded_and_given_back() {
        let room = Arc::new(ReadRoom::default());
        let mut most = room.take(READS_IN_FLIGHT_BYTES_MAX - 1).unwrap();
        let rest = room.take(1).unwrap();
        assert_eq!(room.take(1).unwrap_err().code, Code::Overload);
        assert!(room.take(usize::MAX).is_err());
        most.shrink(10);
        most.shrink(20);
        drop(rest);
        assert_eq!(room.taken.load(Ordering::Relaxed), 10);
        drop(most);
        assert!(room.take(READS_IN_FLIGHT_BYTES_MAX).is_ok());
    }
}
