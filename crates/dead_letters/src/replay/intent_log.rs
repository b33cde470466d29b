//! The numbers under which a replay sends its dead letters to a store that keeps a cursor, durable before it sends
//! them.
//!
//! If the answer never arrives, the store's cursor shows which of them are stored: those end without being sent again.
//! The others are sent first, under the same numbers. The first attempt may still be in flight or have had a partial
//! effect. Under the same numbers it and the second attempt can't both take effect. So each event is stored once even in
//! a store without ids.
//!
//! Numbers begin at the time of the attempt. A store that replaces the other one, and was used before, has an older
//! cursor: it does not count as having what it was never sent.

use std::io;

use eventlog::{StateFile, make_directory, unix_microseconds};
use sink::Sink;

use crate::DeadLetters;
use crate::dead_record::DeadRecord;
use crate::filter::DeadFilter;
use crate::page::{Numbered, Page};
use crate::reader::DeadLetterReader;
use crate::replay::sent::{Place, Sent};
use crate::replay::{DeadOutcome, Replayer};

const DIRECTORY: &str = "replays";

const fn place_of(record: &DeadRecord<'_>) -> Place {
    (record.shard, record.sequence)
}

/// The state file and its content; empty if all that was sent is answered.
#[derive(Default)]
pub(super) struct ReplayIntent {
    file: Option<StateFile>,
    sent: Sent,
}

impl ReplayIntent {
    /// The file, which is read when it is first needed.
    fn file(&mut self, dead: &DeadLetters) -> io::Result<&mut StateFile> {
        if self.file.is_none() {
            let directory = dead.files.data.join(DIRECTORY);
            make_directory(&*dead.files.disk, &directory)?;
            let (file, state) = StateFile::open(dead.files.disk.clone(), &directory, dead.sink())?;
            if !state.damaged.is_empty() {
                let path = directory.join(&**dead.sink());
                tracing::warn!(
                    sink = &**dead.sink(),
                    "{} is damaged: if a replay was interrupted, the next replay also resends dead letters that the \
                     store already has",
                    path.display()
                );
            } else if let Some(content) = state.content {
                let decoded = Sent::decode(&content);
                self.sent = decoded.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            }
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Records durably that exactly these are about to be sent.
    fn note(&mut self, dead: &DeadLetters, sent: Sent) -> Result<(), String> {
        let write = |file: &mut StateFile, text: Vec<u8>| dead.files.reserve.help(|| file.write(&text));
        let written = self.file(dead).and_then(|file| write(file, sent.encode()?));
        written.map_err(|error| failed(dead, &error))?;
        self.sent = sent;
        Ok(())
    }
}

/// Dead letters with numbers after `cursor`.
fn renumbered(positions: impl Iterator<Item = u64>, cursor: u64) -> Vec<Numbered> {
    let now = u64::try_from(unix_microseconds()).unwrap_or(0);
    positions.zip(now.max(cursor + 1)..).collect()
}

fn failed(dead: &DeadLetters, error: &io::Error) -> String {
    let path = dead.files.data.join(DIRECTORY).join(&**dead.sink());
    format!(
        "can't record the replay in {}: {error}. Check the disk and permissions of the data directory",
        path.display()
    )
}

impl Replayer {
    /// Ends the unanswered attempt, removes its dead letters from `page`, and returns the store's cursor after it.
    pub(super) async fn finish(
        &mut self,
        sink: &Sink,
        cursor: u64,
        page: &mut Page,
        outcome: &mut DeadOutcome,
    ) -> Result<u64, String> {
        self.attempt.file(&self.dead).map_err(|error| failed(&self.dead, &error))?;
        let sent = self.attempt.sent.clone();
        let (mut left, mut last) = (sent.clone(), cursor);
        while !left.numbers.is_empty() {
            let again = self.held(&left)?;
            last = self.send_again(sink, &left, &again, (cursor, last), outcome).await?;
            for place in again.records(&again.positions).iter().map(place_of) {
                left.numbers.remove(&place);
            }
            if !again.is_full(self.dead.memory()) {
                break;
            }
        }
        self.clear_attempt();
        let places: Vec<_> = page.records(&page.positions).iter().map(place_of).collect();
        let mut places = places.into_iter();
        page.positions.retain(|at| places.next().is_none_or(|place| !sent.has(*at, place)));
        Ok(last)
    }

    /// Ends the dead letters of an attempt that the store has at `cursor`, and sends the others to a store whose cursor
    /// is `last`. Returns the cursor after that.
    async fn send_again(
        &mut self,
        sink: &Sink,
        sent: &Sent,
        page: &Page,
        (cursor, mut last): (u64, u64),
        outcome: &mut DeadOutcome,
    ) -> Result<u64, String> {
        let records = page.records(&page.positions);
        let numbers = records.iter().filter_map(|record| sent.numbers.get(&place_of(record)).copied());
        let numbered: Vec<Numbered> = page.positions.iter().copied().zip(numbers).collect();
        let (stored, lacking): (Vec<_>, Vec<_>) = numbered.into_iter().partition(|(_, number)| *number <= cursor);
        if !stored.is_empty() {
            let positions: Vec<u64> = stored.iter().map(|(at, _)| *at).collect();
            self.watch_stored(stored);
            self.record_stored(page, &positions, outcome)?;
        }
        let before = last;
        let (in_order, others): (Vec<Numbered>, Vec<Numbered>) = lacking.into_iter().partition(|(_, number)| {
            let is_later = *number > last;
            last = last.max(*number);
            is_later
        });
        self.send(sink, page, (before, in_order), outcome).await?;
        // Dead letters that were replayed in another order than that of their journal: the store's cursor is past their
        // numbers.
        let others = renumbered(others.into_iter().map(|(at, _)| at), last);
        let end = others.last().map_or(last, |(_, number)| *number);
        self.send(sink, page, (last, others), outcome).await?;
        Ok(end)
    }

    /// The dead letters of an attempt that are still held unchanged, up to one page.
    fn held(&self, sent: &Sent) -> Result<Page, String> {
        let mut page = Page::default();
        let Some(mut reading) = DeadLetterReader::begin(&self.dead).map_err(|error| error.to_string())? else {
            return Ok(page);
        };
        while !page.is_full(self.dead.memory())
            && let Some(chunk) = reading.read().map_err(|error| {
                format!("can't read the journal of dead letters: {error}. Check the disk of the data directory")
            })?
        {
            let held = reading.held_in(&chunk, &DeadFilter::default()).into_iter();
            let wanted: Vec<u64> =
                held.filter(|(at, record)| sent.has(*at, place_of(record))).map(|(at, _)| at).collect();
            page.add(chunk, &wanted);
        }
        Ok(page)
    }

    /// What a store has lost is sent again under its old numbers: a part of the store may still have it.
    pub(super) fn note_lost(&mut self, page: &Page, lost: &[Numbered]) -> Result<(), String> {
        self.attempt.file(&self.dead).map_err(|error| failed(&self.dead, &error))?;
        let mut numbers = self.attempt.sent.numbers.clone();
        for (at, record) in page.positions.iter().zip(page.records(&page.positions)) {
            let number = lost.binary_search_by_key(at, |(at, _)| *at).ok().map(|index| lost[index].1);
            numbers.extend(number.map(|number| (place_of(&record), number)));
        }
        // They are about to be dead letters again, at the end of their journal.
        self.attempt.note(&self.dead, Sent { until: u64::MAX, numbers })
    }

    /// Assigns numbers to dead letters that have none yet.
    pub(super) fn numbered(page: &Page, cursor: u64) -> Vec<Numbered> {
        renumbered(page.positions.iter().copied(), cursor)
    }

    /// Watches what was just stored: the store may still lose it.
    pub(super) fn watch_stored(&mut self, numbered: Vec<Numbered>) {
        let settles = self.sink.get().is_some_and(|configured| !configured.sink.capabilities().settle.is_zero());
        if settles {
            self.watch.add(numbered);
            self.dead.keep_from(self.watch.first());
        }
    }

    /// Records durably which dead letters are about to be sent, and under which numbers.
    pub(super) fn note(&mut self, page: &Page, part: &[Numbered]) -> Result<(), String> {
        let positions: Vec<u64> = part.iter().map(|(at, _)| *at).collect();
        let records = page.records(&positions);
        let places = records.iter().map(place_of).zip(part);
        let numbers = places.map(|(place, (_, number))| (place, *number)).collect();
        let until = self.dead.with_existing(|journal| journal.durable).map_err(|error| error.to_string())?;
        self.attempt.note(&self.dead, Sent { until: until.unwrap_or_default(), numbers })
    }

    /// The outcome of the last attempt is unknown: its dead letters are sent under new numbers.
    pub(super) fn forget_attempt(&mut self) -> Result<(), String> {
        self.watch.clear();
        self.attempt.file(&self.dead).map_err(|error| failed(&self.dead, &error))?;
        if self.attempt.sent.numbers.is_empty() {
            return Ok(());
        }
        self.attempt.note(&self.dead, Sent::default())
    }

    /// The store has answered for all that was sent.
    pub(super) fn clear_attempt(&mut self) {
        self.attempt.sent = Sent::default();
    }
}
