//! The records of a batch on their way through the steps of their types.

use std::collections::BTreeMap;

use event::limits::{BATCH_RECORDS_MAX, PAGE_BYTES, RECORD_OVERHEAD_BYTES_MAX};
use event::{EventId, KeyedIds, TypeName, id};
use pipeline::View;
use pipeline::transform::{Filtered, Outcome, Scratch, Several, Windows};

use super::{Encoder, Ids, Sent, SentBytes, Stop};
use crate::code::Code;
use crate::problem::Problem;
use crate::type_cache::Slot;
use crate::type_steps::Ran;

/// What steps leave behind in a batch.
#[derive(Default)]
pub(super) struct Stepping {
    scratch: Scratch,
    /// What the steps of each type remember of this batch.
    windows: Vec<(Slot, Windows)>,
    filtered: Vec<(Slot, Filtered, u64)>,
    /// What steps took out of lines because lines of this batch have it too, by line.
    leaning: BTreeMap<u32, Leaning>,
}

/// What steps took out of a line.
struct Leaning {
    slot: Slot,
    filtered: Vec<Filtered>,
    /// Nothing was left of it.
    is_whole: bool,
}

impl Stepping {
    /// Nothing of the batch is taken.
    pub(super) fn forget(&mut self) {
        self.windows.clear();
        self.filtered.clear();
        self.leaning.clear();
    }

    fn take_out(&mut self, slot: Slot, by: Filtered) {
        match self.filtered.iter_mut().find(|(known, step, _)| (*known, *step) == (slot, by)) {
            Some((.., count)) => *count += 1,
            None => self.filtered.push((slot, by, 1)),
        }
    }

    /// What was taken out isn't told.
    fn put_back(&mut self, slot: Slot, by: Filtered) {
        if let Some((.., count)) = self.filtered.iter_mut().find(|(known, step, _)| (*known, *step) == (slot, by)) {
            *count -= 1;
        }
    }
}

impl Leaning {
    fn of(slot: Slot, outcome: &Outcome<'_>) -> Self {
        let (filtered, is_whole) = match outcome {
            Outcome::Filtered(by) => (vec![*by], true),
            Outcome::Several(several) => (several.filtered.clone(), several.events.is_empty()),
            Outcome::Unchanged | Outcome::Changed(_) => (Vec::new(), false),
        };
        Self { slot, filtered, is_whole }
    }
}

impl Encoder {
    /// Takes a record through the steps of its type.
    pub(super) fn step(&mut self, sent: &Sent<'_>, payload: View<'_>) -> Result<(), Stop> {
        let Some(steps) = self.types.get(sent.slot).rules.steps.clone() else { return Ok(()) };
        let at = self.stepping.windows.iter().position(|(slot, _)| *slot == sent.slot).unwrap_or_else(|| {
            self.stepping.windows.push((sent.slot, steps.windows(self.refused_commits)));
            self.stepping.windows.len() - 1
        });
        let mut windows = std::mem::take(&mut self.stepping.windows[at].1);
        let mut scratch = std::mem::take(&mut self.stepping.scratch);
        let mark = windows.mark();
        let around = (&self.envelope, self.types.get(sent.slot), || self.key_of(sent.number));
        let mut work = self.work;
        let ran = steps.run_within(&mut work, payload, around, &mut windows, &mut scratch);
        self.work = work;
        let leans = windows.has_leant();
        let result = match ran {
            Ok(Ran::Done(outcome)) => {
                let leaning = leans.then(|| Leaning::of(sent.slot, &outcome));
                let taken = self.take_outcome(sent, payload.payload(), outcome).map_err(Stop::from);
                if let (Ok(()), Some(leaning)) = (&taken, leaning) {
                    self.batch.add_dependent_line(sent.line);
                    self.stepping.leaning.insert(sent.line, leaning);
                }
                taken
            }
            Ok(Ran::Stopped) => Err(Stop::Much),
            Err(refused) => Err(Stop::Refused(*refused)),
        };
        if result.is_err() {
            windows.forget_since(mark);
        }
        self.stepping.windows[at].1 = windows;
        self.stepping.scratch = scratch;
        result
    }

    fn take_outcome(&mut self, sent: &Sent<'_>, payload: &str, outcome: Outcome<'_>) -> Result<(), Problem> {
        match outcome {
            Outcome::Unchanged => self.put_with_room(sent, payload),
            Outcome::Changed(changed) => self.put_with_room(sent, changed),
            Outcome::Filtered(by) => {
                self.stepping.take_out(sent.slot, by);
                self.filtered += 1;
                Ok(())
            }
            Outcome::Several(several) => self.put_several(sent, &several),
        }
    }

    fn put_with_room(&mut self, sent: &Sent<'_>, payload: &str) -> Result<(), Problem> {
        self.check_room(1, payload.len())?;
        self.put(sent, payload)
    }

    /// Adds what one record has become: all of it, or nothing.
    fn put_several(&mut self, sent: &Sent<'_>, several: &Several) -> Result<(), Problem> {
        let Several { events, filtered } = several;
        self.check_room(events.len(), events.iter().map(|part| part.payload.len()).sum())?;
        let known = self.types.get(sent.slot);
        let ids = known.part_ids();
        let mut taken = Vec::with_capacity(events.len());
        for part in events {
            let event = known.storable(&part.payload)?;
            let given = ids.given((&self.envelope.source, &known.name), part, &event)?;
            taken.push((part.number, given, known.time_of(&event)?, event));
        }
        let parent = self.made_id(sent);
        let mut whole = None;
        for (number, given, time, event) in taken {
            let id = given.as_ref().map_or_else(|| self.id_of_part(number, parent), |given| given.id);
            let content = given.map(|given| match given.element {
                Some(element) => self.content.of(element.as_bytes()),
                None => *whole.get_or_insert_with(|| self.content_of(sent)),
            });
            self.push(sent, (id, content), time, &event);
        }
        filtered.iter().for_each(|by| self.stepping.take_out(sent.slot, *by));
        self.filtered += u64::from(events.is_empty());
        Ok(())
    }

    /// The id of a part without an own one is derived from the request's key, so that it is the same if the request is repeated. Ids
    /// that are made here are counted up instead: they never come again, and stand side by side.
    fn id_of_part(&self, number: u32, parent: EventId) -> EventId {
        match &self.ids {
            Ids::Generated(first) => id::numbered(*first, self.batch.records().len() + 1),
            Ids::Keyed(_) => KeyedIds::of_event(parent).id(number),
        }
    }

    /// Steps may make more of a batch than came.
    fn check_room(&self, records: usize, bytes: usize) -> Result<(), Problem> {
        let records_now = self.batch.records().len() as usize + records;
        if records_now > BATCH_RECORDS_MAX {
            let detail = format!("steps make more than {BATCH_RECORDS_MAX} events of the batch: send it in parts");
            return Err(Problem::new(Code::TooManyRecords, detail));
        }
        let needed = self.batch.records().bytes() + bytes + records * RECORD_OVERHEAD_BYTES_MAX + PAGE_BYTES;
        if needed > self.bytes_max {
            let detail = "the events that steps make of the batch are too large together: send it in parts";
            return Err(Problem::new(Code::TooLarge, detail));
        }
        Ok(())
    }

    /// What the request says that its record is known by.
    fn key_of(&self, number: u32) -> Vec<u8> {
        match &self.ids {
            Ids::Keyed(key) => [&key[..], &number.to_be_bytes()].concat(),
            Ids::Generated(_) => Vec::new(),
        }
    }

    /// Adds what a single event has become; `content` is the hash of the bytes that came.
    pub(crate) fn take_several(&mut self, content: u64, several: &Several) -> Result<(), Problem> {
        let Some(slot) = self.slot else { return Ok(()) };
        self.put_several(&Sent { slot, bytes: SentBytes::Hash(content), line: 0, number: 0 }, several)?;
        self.accepted += 1;
        self.batch.end_request();
        Ok(())
    }

    /// Takes over what the steps of a single event remember.
    pub(crate) fn with_windows(mut self, windows: Windows) -> Self {
        self.stepping.windows.extend(self.slot.map(|slot| (slot, windows)));
        self
    }

    /// The records were appended: others see what their steps remember.
    pub(crate) fn keep_windows(&mut self) {
        // Of what came before with other bytes nothing is stored, and what came before may not be durable yet.
        if !self.batch.result.rejected.is_empty() || !self.batch.result.duplicates.is_empty() {
            return self.stepping.windows.clear();
        }
        self.stepping.windows.iter_mut().for_each(|(_, windows)| windows.keep());
    }

    /// A line isn't taken: what steps took out of it for the sake of another isn't told.
    pub(super) fn forget_filtered(&mut self, line: u32) {
        let Some(Leaning { slot, filtered, is_whole }) = self.stepping.leaning.remove(&line) else { return };
        self.filtered -= u64::from(is_whole);
        filtered.into_iter().for_each(|by| self.stepping.put_back(slot, by));
    }

    /// Whether so many bytes would hold up the shard for long.
    pub(crate) fn is_much_work(&self, bytes: usize) -> bool {
        if self.work.is_spent() && bytes > 0 {
            return true;
        }
        let stepped = self.stepping.windows.iter().map(|(slot, _)| *slot);
        self.slot.into_iter().chain(stepped).any(|slot| self.types.get(slot).is_much_work(bytes))
    }

    /// What steps took out, by type and step.
    pub(crate) fn filtered_by(&self) -> impl Iterator<Item = (&TypeName, Filtered, u64)> {
        let some = self.stepping.filtered.iter().filter(|(.., count)| *count > 0);
        some.map(|(slot, by, count)| (&self.types.get(*slot).name, *by, *count))
    }

    /// Whether another event stands for one that was taken out.
    pub(crate) fn leans_on_others(&self) -> bool {
        self.stepping.filtered.iter().any(|(_, by, _)| by.came_before())
    }
}
