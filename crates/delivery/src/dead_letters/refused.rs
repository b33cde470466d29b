//! Which of the events that somebody asks for are dead letters, or were, and why.

use std::io;

use event::Position;
use eventlog::{Asked, Reader, Refusals, Refused, Span, Stretch};

use super::index::Located;
use super::{DeadLetters, Journal};

/// What is said of an event whose dead letter a person has dropped: the reason went with it.
const DROPPED: &str = "its dead letter was dropped";

impl DeadLetters {
    /// Adds the events that this sink has refused, at most `limit` of them with their reasons.
    pub(crate) fn add_refused(&self, asked: &Asked, limit: usize, refusals: &mut Refusals) {
        let found = self.with_existing(|journal| {
            let mut letters = Letters { journal, last: None };
            asked.spans.iter().for_each(|span| self.add_within(span, limit, &mut letters, refusals));
        });
        if found.is_err() {
            refusals.unknown.push(self.sink.clone());
        }
    }

    fn add_within(&self, span: &Span, limit: usize, letters: &mut Letters<'_>, refusals: &mut Refusals) {
        let found: Vec<Located> = letters.journal.index.within(span).collect();
        refusals.count += found.len() as u64;
        let of_sink = refusals.listed.iter().filter(|refused| refused.sink == self.sink).count();
        for located in found.into_iter().take(limit.saturating_sub(of_sink)) {
            let reason = if located.is_held { letters.reason(located.at) } else { DROPPED.to_owned() };
            let position = Position { shard: span.shard, sequence: located.sequence };
            refusals.listed.push(Refused { sink: self.sink.clone(), id: located.id, position, reason });
        }
    }
}

/// Letters of which many stand in one block.
struct Letters<'a> {
    journal: &'a Journal,
    last: Option<Stretch>,
}

impl Letters<'_> {
    fn reason(&mut self, at: u64) -> String {
        match self.read(at) {
            Ok(Some(reason)) => reason,
            Ok(None) => "its dead letter can't be read".to_owned(),
            Err(error) => format!("its dead letter can't be read: {error}"),
        }
    }

    fn read(&mut self, at: u64) -> io::Result<Option<String>> {
        if let Some(reason) = self.last.as_ref().and_then(|stretch| reason_at(stretch, at)) {
            return Ok(Some(reason));
        }
        let mut reader = Reader::new(self.journal.segments.clone(), at);
        self.last = reader.read(self.journal.durable)?;
        Ok(self.last.as_ref().and_then(|stretch| reason_at(stretch, at)))
    }
}

fn reason_at(stretch: &Stretch, at: u64) -> Option<String> {
    let mut reason = None;
    stretch.for_each_record(|position, record| {
        if position == at {
            reason = record.dead.map(|dead| dead.reason.to_owned());
        }
    });
    reason
}
