//! The record of a sender's requests and of their answers, which decides when the server is killed.

use std::collections::{BTreeMap, BTreeSet};

use super::marks;
use super::message::Message;

/// The server is killed when so many events have been seen.
const KILLS: [(usize, Kill); 2] = [(300, Kill::AfterAnswer), (600, Kill::InFlight)];
/// Characters of an answer that a fault shows.
const SHOWN: usize = 300;

/// When a kill hits a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kill {
    /// The events are durable, and the sender doesn't get the answer: a retry is a duplicate.
    AfterAnswer,
    /// The server may or may not have read the request.
    InFlight,
}

/// The counts of one sender.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) seen: BTreeSet<usize>,
    pub(super) acknowledged: BTreeSet<usize>,
    /// Requests with events that were in an earlier request too.
    pub(super) retries: usize,
    /// Answers to requests with events, by their status. 0: the connection ended.
    pub(super) answers: BTreeMap<u16, usize>,
    /// Answers that no request of a campaign should get.
    pub(super) faults: Vec<String>,
    kills: usize,
}

impl Tally {
    /// Notes a request. Returns the kill that is due with it.
    pub(super) fn note_request(&mut self, events: &BTreeSet<usize>) -> Option<Kill> {
        if events.is_empty() {
            return None;
        }
        self.retries += usize::from(!events.is_disjoint(&self.seen));
        self.seen.extend(events);
        let (due, kill) = *KILLS.get(self.kills)?;
        if self.seen.len() < due {
            return None;
        }
        self.kills += 1;
        Some(kill)
    }

    /// Notes an answer that the sender gets.
    pub(super) fn note_answer(&mut self, events: &BTreeSet<usize>, request: &Message, answer: &Message) {
        if events.is_empty() {
            return;
        }
        let status = answer.status();
        *self.answers.entry(status).or_default() += 1;
        let is_success = (200..300).contains(&status);
        if is_success && !has_rejections(request, answer) {
            self.acknowledged.extend(events);
        } else if !matches!(status, 429 | 503) {
            let shown = String::from_utf8_lossy(&answer.body).chars().take(SHOWN).collect::<String>();
            self.faults.push(format!("{} → {status}: {shown}", request.first_line));
        }
    }

    /// Notes that a request gets no answer.
    pub(super) fn note_no_answer(&mut self, events: &BTreeSet<usize>) {
        if !events.is_empty() {
            *self.answers.entry(0).or_default() += 1;
        }
    }

    /// How often the server was to be killed.
    pub(super) const fn kills(&self) -> usize {
        self.kills
    }

    /// Whether every kill was due.
    pub(super) const fn is_killed_enough(&self) -> bool {
        self.kills == KILLS.len()
    }
}

/// Whether a success says that some of the events were rejected.
fn has_rejections(request: &Message, answer: &Message) -> bool {
    let body = marks::decoded(answer);
    let has = |text: &str| memchr::memmem::find(&body, text.as_bytes()).is_some();
    let is_otlp = request.first_line.contains("/v1/logs");
    let is_protobuf = answer.header("content-type").is_some_and(|kind| kind.starts_with("application/x-protobuf"));
    has("\"errors\":true")
        || has("partialSuccess")
        || (is_otlp && is_protobuf && !body.is_empty())
        || answer.status() == 207
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Message {
        Message::read(&mut text.as_bytes(), Some("POST")).unwrap().unwrap()
    }

    fn request() -> Message {
        Message::read(&mut &b"POST /_bulk HTTP/1.1\r\n\r\n"[..], None).unwrap().unwrap()
    }

    #[test]
    fn kills_are_due_once_each() {
        let mut tally = Tally::default();
        let kills: Vec<_> = (0..1_000).map(|number| tally.note_request(&BTreeSet::from([number]))).collect();
        let due: Vec<_> = kills.iter().enumerate().filter_map(|(at, kill)| Some((at, (*kill)?))).collect();
        assert_eq!(due, [(299, Kill::AfterAnswer), (599, Kill::InFlight)]);
        assert!(tally.is_killed_enough());
        assert_eq!((tally.note_request(&BTreeSet::from([5])), tally.retries), (None, 1));
    }

    #[test]
    fn partial_success_is_no_acknowledgement() {
        let mut tally = Tally::default();
        let mut note = |number: usize, text: &str| {
            tally.note_answer(&BTreeSet::from([number]), &request(), &answer(text));
            (tally.acknowledged.contains(&number), tally.faults.len())
        };
        assert_eq!(note(1, "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"errors\":false}"), (true, 0));
        assert_eq!(note(2, "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"errors\":true}"), (false, 1));
        assert_eq!(note(3, "HTTP/1.1 503 Busy\r\n\r\n"), (false, 1));
        assert_eq!(note(4, "HTTP/1.1 404 No\r\n\r\n"), (false, 2));
    }
}
