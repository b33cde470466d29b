//! The bulk API: lines with actions, each followed by the line of its document.

use std::borrow::Cow;

use limits::{BATCH_RECORDS_MAX, KEY_BYTES_MAX};
use memchr::memchr;

use crate::{IntakeCall, IntakeRecord, Problem, RecordPayload, Records, Reply, Stop, Verdicts};

use super::action::{Action, Verb};
use super::action_line;
use super::bulk_response;
use super::error;
use super::filter::Shown;
use super::generated_id;
use super::items::{ITEM_BYTES_GROWING, Items};

/// The text of an item that changes or removes a document.
const NOT_ACCEPTED: &str =
    "Forebay accepts `create` and `index`, and no `update` or `delete`: send each change as an event";
const NO_INDEX: &str = "the action has no `_index`, and the path has none: add one of them";
const NO_DOCUMENT: &str = "no document follows: send a line with the document after the action";

/// A request of the bulk API.
pub(super) struct Bulk {
    media: &'static str,
    shown: Shown,
    /// The index of the path.
    index: Option<String>,
    items: Items,
    /// What the ids of documents without one begin with, if the response shows them.
    id_prefix: Option<String>,
}

impl Bulk {
    /// A request with the index of its path.
    pub(super) fn new(index: Option<String>, shown: Shown, media: &'static str) -> Self {
        Self { media, shown, index, items: Items::default(), id_prefix: None }
    }

    fn take(
        &mut self,
        action: &Action<'_>,
        number: u32,
        document: &[u8],
        records: &mut Records<'_>,
    ) -> Result<(), Stop> {
        let id = action.id.as_deref();
        self.items.push(action.verb, number, id, &self.shown);
        let type_name = self.items.index(number).map_or(Ok(""), |index| index.type_name.as_deref());
        let rejected = |detail: Cow<'static, str>| RecordPayload::Rejected { sent: document, detail };
        let (type_name, payload) = match (type_name, id.and_then(id_error)) {
            _ if !action.verb.is_accepted() => ("", rejected(NOT_ACCEPTED.into())),
            (Err(detail), _) => ("", rejected(detail.clone().into())),
            (Ok(_), Some(detail)) => ("", rejected(detail)),
            (Ok(type_name), None) => (type_name, RecordPayload::Sent(document)),
        };
        let is_sent = matches!(payload, RecordPayload::Sent(_));
        let index = self.items.index(number).map_or("", |index| &*index.name);
        let id = id.filter(|_| is_sent).map(|id| id_in_index(index, id));
        records.take(IntakeRecord { type_name, id: id.as_deref(), payload })
    }
}

impl IntakeCall for Bulk {
    fn needed_bytes(&self, body: &[u8]) -> usize {
        // The shortest action has 13 bytes, and so many have no id.
        let items = (body.len() / 13).min(BATCH_RECORDS_MAX) * ITEM_BYTES_GROWING;
        if self.shown.shows_ids() { items.max(body.len() / 2) } else { items }
    }

    fn decode(&mut self, body: &[u8], records: &mut Records<'_>) -> Result<(), Stop> {
        self.items.clear();
        let mut lines = Lines { rest: body, number: 0 };
        let mut index_before = 0;
        let mut before = None;
        while let Some(line) = lines.next() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let place = lines.number;
            let invalid = |what: &str| Problem::invalid(format!("the action in line {place} is invalid: {what}"));
            // Senders of logs repeat the same line for each document.
            let action = match before.take() {
                Some((known, action)) if known == line => action,
                _ => action_line::parse(line).map_err(|what| invalid(&what))?,
            };
            let index = action.index.as_deref().or(self.index.as_deref()).filter(|index| !index.is_empty());
            let index = self.items.index_number(index.ok_or_else(|| invalid(NO_INDEX))?, index_before);
            index_before = index;
            let document = match action.verb {
                Verb::Delete => line,
                _ => lines.next().ok_or_else(|| invalid(NO_DOCUMENT))?,
            };
            if action.id.is_none() && self.id_prefix.is_none() && self.shown.shows_ids() {
                self.id_prefix = Some(generated_id::prefix(body));
            }
            self.take(&action, index, document, records)?;
            before = Some((line, action));
        }
        if self.items.count() == 0 {
            return Err(Problem::empty("the body has no actions: send at least one action and its document").into());
        }
        Ok(())
    }

    fn kept_bytes(&self) -> usize {
        self.items.bytes()
    }

    fn response(&self, verdicts: &Verdicts) -> Reply {
        let prefix = self.id_prefix.as_deref().unwrap_or_default();
        bulk_response::write(&self.items, &self.shown, prefix, self.media, verdicts)
    }

    fn refusal(&self, problem: &Problem) -> Reply {
        error::refusal(problem, self.media)
    }
}

/// The id of a document: the same `_id` in the index of another day is another document, although both have one type.
pub(super) fn id_in_index(index: &str, id: &str) -> Vec<u8> {
    [index.as_bytes(), b"\x1f", id.as_bytes()].concat()
}

/// Why an id can't be one.
pub(super) fn id_error(id: &str) -> Option<Cow<'static, str>> {
    if id.is_empty() {
        return Some("the `_id` is empty: send one, or leave it out".into());
    }
    let length = id.len();
    let detail = || format!("the `_id` has {length} bytes; at most {KEY_BYTES_MAX} are allowed: send a shorter one");
    (length > KEY_BYTES_MAX).then(|| detail().into())
}

/// The lines of a body. The last one may lack its line feed.
struct Lines<'a> {
    rest: &'a [u8],
    /// The number of the line that was returned last, from 1.
    number: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let (line, rest) = match memchr(b'\n', self.rest) {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, &[][..]),
        };
        self.rest = rest;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}
