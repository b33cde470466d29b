//! Under which numbers a replay sends its letters to a store that keeps a cursor, durable before it sends them.
//!
//! If its answer never comes, the store's cursor tells which of them are stored: those end without being sent again. The
//! others are sent under the same numbers, so that the first attempt, should it still be on its way, and the second can't both
//! take effect. A store that knows no ids has each of them once by that.
//!
//! Numbers begin at the time of the attempt. A store that takes the other's place, and was used before, has an older cursor:
//! it can't be thought to have what it was never sent.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use eventlog::{Record, StateFile, make_directory, unix_microseconds};

use super::{Clerk, DeadFilter, DeadLetters, DeadOutcome, Page, Reading};

const DIRECTORY: &str = "replays";

/// An event's place: its shard, and its sequence there.
type Place = (u16, u64);
/// A letter: where it stands in the journal of dead letters, and the number that it is sent under.
pub(super) type Numbered = (u64, u64);

fn place_of(letter: &Record<'_>) -> Option<Place> {
    letter.dead.map(|dead| (dead.shard, dead.sequence))
}

/// What was sent last, if there was no answer yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sent {
    /// The last position of the journal of dead letters before it was sent: what stands behind it wasn't meant.
    until: u64,
    numbers: BTreeMap<Place, u64>,
}

/// The file in which it stands, and what it says; nothing where all that was sent has its answer.
#[derive(Default)]
pub(super) struct Attempt {
    file: Option<StateFile>,
    sent: Sent,
}

impl Attempt {
    /// The file, which is read when it is first needed.
    fn file(&mut self, dead: &DeadLetters) -> io::Result<&mut StateFile> {
        if self.file.is_none() {
            let directory = dead.home.data.join(DIRECTORY);
            make_directory(&*dead.home.disk, &directory)?;
            let (file, state) = StateFile::open(dead.home.disk.clone(), &directory, dead.sink())?;
            if !state.damaged.is_empty() {
                dead.report(&format!(
                    "{} is damaged: if a replay broke off before, those of its letters that were stored are sent again",
                    directory.join(&**dead.sink()).display()
                ));
            } else if let Some(content) = state.content {
                self.sent = Sent::decode(&content).ok_or(io::ErrorKind::InvalidData)?;
            }
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Makes it durable that just these are about to be sent.
    fn note(&mut self, dead: &DeadLetters, sent: Sent) -> Result<(), String> {
        let text = sent.encode();
        let file = self.file(dead);
        let written = file.and_then(|file| match file.write(text.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull && dead.home.reserve.release() => {
                file.write(text.as_bytes())
            }
            written => written,
        });
        written.map_err(|error| failed(dead, &error))?;
        self.sent = sent;
        Ok(())
    }

    /// The letters in parts that are sent one after the other: those that were sent before under their old numbers, then
    /// those that weren't.
    fn parts(&self, page: &Page, cursor: u64) -> [Vec<Numbered>; 2] {
        let (mut again, mut new) = (Vec::new(), Vec::new());
        let mut last = cursor;
        for (at, letter) in page.letters.iter().zip(page.records(&page.letters)) {
            let number = place_of(&letter).and_then(|place| self.sent.numbers.get(&place).copied());
            match number.filter(|number| *number > last) {
                Some(number) => {
                    again.push((*at, number));
                    last = number;
                }
                None => new.push(*at),
            }
        }
        let first = self.sent.numbers.values().copied().fold(last, u64::max) + 1;
        let first = first.max(u64::try_from(unix_microseconds()).unwrap_or(0));
        [again, new.into_iter().zip(first..).collect()]
    }
}

fn failed(dead: &DeadLetters, error: &io::Error) -> String {
    let path = dead.home.data.join(DIRECTORY).join(&**dead.sink());
    format!("can't note in {} what is replayed: {error}", path.display())
}

impl Sent {
    fn encode(&self) -> String {
        let numbers = self.numbers.iter();
        let lines = numbers.map(|((shard, sequence), number)| format!("{shard} {sequence} {number}\n"));
        std::iter::once(format!("until {}\n", self.until)).chain(lines).collect()
    }

    fn decode(content: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(content).ok()?.lines();
        let until = lines.next()?.strip_prefix("until ")?.parse().ok()?;
        let number = |line: &str| {
            let mut words = line.split(' ');
            let (shard, sequence) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let number = words.next()?.parse().ok()?;
            words.next().is_none().then_some(((shard, sequence), number))
        };
        Some(Self { until, numbers: lines.map(number).collect::<Option<_>>()? })
    }
}

impl Clerk {
    /// Ends the letters of an attempt without an answer that the store has, and says how the others of `page` are sent.
    pub(super) fn resume(
        &mut self,
        cursor: u64,
        page: &mut Page,
        outcome: &mut DeadOutcome,
    ) -> Result<[Vec<Numbered>; 2], String> {
        self.attempt.file(&self.dead).map_err(|error| failed(&self.dead, &error))?;
        let stored = self.attempt.sent.numbers.iter().filter(|(_, number)| **number <= cursor);
        let stored: BTreeMap<Place, u64> = stored.map(|(place, number)| (*place, *number)).collect();
        if !stored.is_empty() {
            self.end(&stored, outcome)?;
            let until = self.attempt.sent.until;
            let is_stored = |(at, place): (&u64, Option<Place>)| {
                *at <= until && place.is_some_and(|place| stored.contains_key(&place))
            };
            let places: Vec<_> = page.records(&page.letters).iter().map(place_of).collect();
            let stored: Vec<bool> = page.letters.iter().zip(places).map(is_stored).collect();
            let mut stored = stored.into_iter();
            page.letters.retain(|_| !stored.next().unwrap_or(false));
        }
        Ok(self.attempt.parts(page, cursor))
    }

    /// Ends these letters, which the store has, as far as they are still held.
    fn end(&mut self, stored: &BTreeMap<Place, u64>, outcome: &mut DeadOutcome) -> Result<(), String> {
        let Some(mut reading) = Reading::begin(&self.dead).map_err(|error| error.to_string())? else { return Ok(()) };
        let until = self.attempt.sent.until;
        let mut rest: BTreeSet<Place> = stored.keys().copied().collect();
        while !rest.is_empty() {
            let read = reading.read().map_err(|error| format!("can't read the journal of dead letters: {error}"))?;
            let Some(stretch) = read else { break };
            let held = reading.held_in(&stretch, &DeadFilter::default());
            let found = held.iter().filter_map(|(at, letter)| place_of(letter).map(|place| (*at, place)));
            let found: Vec<(u64, Place)> = found.filter(|(at, place)| *at <= until && rest.remove(place)).collect();
            if found.is_empty() {
                continue;
            }
            let letters: Vec<u64> = found.iter().map(|(at, _)| *at).collect();
            let numbered = found.iter().map(|(at, place)| (*at, stored[place]));
            self.look_after(numbered.collect());
            let mut page = Page::default();
            page.add(stretch, &letters);
            self.has_stored(&page, &letters, outcome)?;
        }
        Ok(())
    }

    /// What was stored last may be lost yet.
    pub(super) fn look_after(&mut self, numbered: Vec<Numbered>) {
        let settles = self.sink.get().is_some_and(|sink| !sink.traits().settle.is_zero());
        if settles {
            self.watch.add(numbered);
            self.dead.keep_from(self.watch.first());
        }
    }

    /// Makes it durable which letters are about to be sent, and under which numbers.
    pub(super) fn note(&mut self, page: &Page, part: &[Numbered]) -> Result<(), String> {
        let letters: Vec<u64> = part.iter().map(|(at, _)| *at).collect();
        let records = page.records(&letters);
        let places = records.iter().map(place_of).zip(part);
        let numbers = places.filter_map(|(place, (_, number))| Some((place?, *number))).collect();
        let until = self.dead.with_existing(|journal| journal.durable).map_err(|error| error.to_string())?;
        self.attempt.note(&self.dead, Sent { until: until.unwrap_or_default(), numbers })
    }

    /// All that was sent has its answer.
    pub(super) fn is_answered(&mut self) {
        self.attempt.sent = Sent::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_again_and_nothing_else_is() {
        let sent = Sent { until: 9, numbers: BTreeMap::from([((0, 1), 7), ((3, u64::MAX), u64::MAX - 1)]) };
        assert_eq!(Sent::decode(sent.encode().as_bytes()), Some(sent));
        assert_eq!(Sent::decode(b"until 0\n"), Some(Sent::default()));
        for wrong in ["", "1 2 3\n", "until 1\n1 2\n", "until 1\n1 2 3 4\n", "until 1\n70000 1 2\n", "until 1\n\n"] {
            assert_eq!(Sent::decode(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
