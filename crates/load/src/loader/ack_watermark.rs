//! The place up to which all batches were answered, though they are answered in any order.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::state::{Entry, Place, Split, State};

/// After a crash, at most so much is sent again; the server recognises it by its keys.
const SAVE_EVERY: Duration = Duration::from_millis(500);

/// The answered part of one input.
pub(super) struct AckWatermark<'a> {
    inner: Mutex<Inner<'a>>,
    moved: Condvar,
}

struct Inner<'a> {
    state: &'a mut State,
    input: &'a str,
    entry: Entry,
    /// The number of the first block that isn't answered.
    next: u64,
    /// The place of each block, with its rejected lines.
    answered: BTreeMap<u64, Place>,
    saved_at: Option<Instant>,
    /// A worker has failed: nothing more will be answered.
    is_given_up: bool,
}

impl<'a> AckWatermark<'a> {
    pub(super) fn new(state: &'a mut State, input: &'a str, entry: Entry) -> Self {
        let answered = BTreeMap::new();
        let inner = Inner { state, input, entry, next: 0, answered, saved_at: None, is_given_up: false };
        Self { inner: Mutex::new(inner), moved: Condvar::new() }
    }

    /// A file begins or resumes: durable before its first batch is sent, since the batch's key says which file it is.
    pub(super) fn begin(&self, entry: Entry) -> anyhow::Result<()> {
        let mut inner = self.lock();
        inner.entry = entry;
        inner.save()
    }

    /// A batch will end at `offset` because the input ends there now: durable before it is sent, since a longer one under
    /// its key would be another batch.
    pub(super) fn cut(&self, offset: u64) -> anyhow::Result<()> {
        let mut inner = self.lock();
        inner.entry.cut = offset;
        inner.save()
    }

    /// The state of the batch that begins at `offset`, if lines of it are sent alone.
    pub(super) fn split(&self, offset: u64) -> Option<Split> {
        self.lock().entry.split.iter().find(|split| split.offset == offset).cloned()
    }

    /// Lines of a batch will be sent alone: durable before the first of them is, since the batch itself, sent again, could then be
    /// accepted with them.
    pub(super) fn set_split(&self, split: Split) -> anyhow::Result<()> {
        let mut inner = self.lock();
        inner.entry.split.retain(|known| known.offset != split.offset);
        inner.entry.split.push(split);
        inner.save()
    }

    /// Everything in block `number`, which ends at `place`, was answered, and so many of its lines were rejected.
    pub(super) fn answered(&self, number: u64, place: Place, refused: u64) -> anyhow::Result<()> {
        let mut inner = self.lock();
        inner.answered.insert(number, Place { refused, ..place });
        let before = inner.next;
        while let Some(place) = inner.pop_next() {
            let refused = inner.entry.place.refused + place.refused;
            inner.entry.place = Place { refused, ..place };
        }
        if inner.next > before {
            inner.entry.loaded_at = Some(text::rfc3339::format(clock::unix_microseconds()));
            let offset = inner.entry.place.offset;
            inner.entry.split.retain(|split| split.offset >= offset);
            if inner.saved_at.is_none_or(|saved_at| saved_at.elapsed() >= SAVE_EVERY) {
                inner.save()?;
            }
            self.moved.notify_all();
        }
        Ok(())
    }

    /// Waits until all blocks before `number` are answered and remembered; false if that will never be.
    pub(super) fn wait(&self, number: u64) -> anyhow::Result<bool> {
        let waits = |inner: &mut Inner<'_>| inner.next < number && !inner.is_given_up;
        let waited = self.moved.wait_while(self.lock(), waits);
        let mut inner = waited.unwrap_or_else(PoisonError::into_inner);
        if inner.is_given_up {
            return Ok(false);
        }
        inner.save()?;
        Ok(true)
    }

    /// Ends all waiting.
    pub(super) fn give_up(&self) {
        self.lock().is_given_up = true;
        self.moved.notify_all();
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.lock().is_given_up
    }

    /// Remembers the end.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        self.lock().save()
    }

    fn lock(&self) -> MutexGuard<'_, Inner<'a>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner<'_> {
    /// The place after the next block, if that is answered.
    fn pop_next(&mut self) -> Option<Place> {
        let place = self.answered.remove(&self.next)?;
        self.next += 1;
        Some(place)
    }

    fn save(&mut self) -> anyhow::Result<()> {
        self.state.save(self.input, self.entry.clone())?;
        self.saved_at = Some(Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::state::Settings;

    #[test]
    fn state_never_passes_an_unanswered_block() {
        let mut state = State::open(None, None, Settings::default()).unwrap();
        let place = |offset| Place { offset, ..Place::default() };
        let watermark = AckWatermark::new(&mut state, "a", Entry::default());
        watermark.begin(Entry::default()).unwrap();
        for (number, offset, expected) in [(1, 20, 0), (2, 30, 0), (0, 10, 30), (4, 50, 30), (3, 40, 50)] {
            watermark.answered(number, place(offset), number).unwrap();
            assert_eq!(watermark.lock().entry.place.offset, expected);
        }
        assert_eq!(watermark.lock().entry.place.refused, 1 + 2 + 3 + 4);
        assert!(watermark.wait(5).unwrap());
        watermark.finish().unwrap();
        drop(watermark);
        assert_eq!(state.entry("a").unwrap().place.offset, 50);
    }

    #[test]
    fn failed_worker_ends_the_wait() {
        let mut state = State::open(None, None, Settings::default()).unwrap();
        let watermark = AckWatermark::new(&mut state, "a", Entry::default());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| watermark.wait(1).unwrap());
            watermark.give_up();
            assert!(!waiting.join().unwrap());
        });
    }
}
