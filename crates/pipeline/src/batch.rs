//! Splits the body of a batch into records and checks each, while the body arrives.
//!
//! Lines are given to the caller as soon as their end is there, borrowed from the chunk that holds them: only
//! a line that two chunks share is copied. An array is gathered first, because one fault anywhere in it means
//! that none of its records can be trusted.

mod array;
mod form;
mod lines;
#[cfg(test)]
mod tests;

use event::limits::{BATCH_BYTES_MAX, BATCH_RECORDS_MAX, EVENT_BYTES_MAX};

use crate::json::{self, JsonError};
use crate::{Refusal, RefusalCode};
pub use form::Form;
use lines::Lines;

/// One record of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The line or element, from 1. Blank lines count here: it is what an editor shows.
    pub line: u32,
    /// The record, from 1 to [`BATCH_RECORDS_MAX`]. Blank lines don't count here.
    pub ordinal: u32,
    /// The value without the whitespace around it, or why it isn't taken. Offsets within it count from the
    /// start of the line or element.
    pub record: Result<&'a str, Refusal>,
}

/// Why a body as a whole isn't taken. Records that were given before count for nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body should be an array and isn't one. Offsets count from the start of the body.
    #[error("the body is no JSON array: {0}")]
    NotJson(JsonError),
    /// The body has more records than a batch may have.
    #[error("a batch has at most {BATCH_RECORDS_MAX} records: send the others as further batches")]
    TooManyRecords,
    /// The body has more bytes than a batch may have.
    #[error("a batch has at most {BATCH_BYTES_MAX} bytes: send the rest as further batches")]
    TooLarge,
}

impl BodyError {
    /// The stable name of the reason.
    #[must_use]
    pub fn code(&self) -> RefusalCode {
        match self {
            Self::NotJson(error) => error.kind.into(),
            Self::TooManyRecords => RefusalCode::TooManyRecords,
            Self::TooLarge => RefusalCode::TooLarge,
        }
    }
}

/// Splits one body. [`Splitter::push`] takes its chunks in order, [`Splitter::finish`] ends it; records come out
/// of both. After an error nothing more may be pushed: drop the splitter.
///
/// It holds at most a line of full size where the body is lines, else the body.
#[derive(Debug)]
pub struct Splitter {
    form: Form,
    state: State,
    received: usize,
    lines: Lines,
}

#[derive(Debug)]
enum State {
    /// All that came was whitespace.
    Undecided,
    /// The body is lines.
    Lines,
    /// The body is or may be an array: what came of it, and how many bytes stood before.
    Array { body: Vec<u8>, start: usize },
}

impl Splitter {
    /// A splitter at the start of a body.
    #[must_use]
    pub fn new(form: Form) -> Self {
        let state = if form == Form::Lines { State::Lines } else { State::Undecided };
        Self { form, state, received: 0, lines: Lines::default() }
    }

    /// Takes the next chunk and gives the records that it completes to `sink`.
    ///
    /// # Errors
    /// [`BodyError`] as soon as it is clear that the body as a whole isn't taken.
    pub fn push(&mut self, chunk: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BodyError> {
        let before = self.received;
        self.received += chunk.len();
        if self.received > BATCH_BYTES_MAX {
            return Err(BodyError::TooLarge);
        }
        match &mut self.state {
            State::Undecided => self.decide(before, chunk, sink),
            State::Lines => self.lines.push(chunk, sink),
            State::Array { body, .. } => {
                if body.len() + chunk.len() > GROWN_BYTES_MAX {
                    body.reserve_exact(BATCH_BYTES_MAX - body.len());
                }
                body.extend_from_slice(chunk);
                Ok(())
            }
        }
    }

    /// Ends the body and gives its last records to `sink`.
    ///
    /// # Errors
    /// [`BodyError`] where the body as a whole isn't taken; no record of an array was given then.
    pub fn finish(mut self, sink: &mut impl FnMut(Item<'_>)) -> Result<(), BodyError> {
        match self.state {
            State::Undecided if self.form == Form::Array => {
                Err(BodyError::NotJson(JsonError::syntax(self.received, "the body is empty")))
            }
            State::Undecided | State::Lines => self.lines.finish(sink),
            State::Array { body, start } => match array::split(&body) {
                Ok(elements) => elements.give(sink),
                Err(_) if self.form == Form::Detect => {
                    self.lines.push(&body, sink)?;
                    self.lines.finish(sink)
                }
                Err(error) => Err(BodyError::NotJson(error.moved_by(start))),
            },
        }
    }

    /// The first byte of a value decides. Whitespace before it may be blank lines: they are counted.
    fn decide(&mut self, before: usize, chunk: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BodyError> {
        let Some(first) = json::first_byte(chunk) else {
            return self.lines.push(chunk, sink);
        };
        let (blank, rest) = chunk.split_at(first);
        let start = before + first;
        self.lines.push(blank, sink)?;
        if rest[0] == b'[' {
            self.state = State::Array { body: rest.to_vec(), start };
            return Ok(());
        }
        if self.form == Form::Array {
            return Err(BodyError::NotJson(JsonError::syntax(start, NOT_AN_ARRAY)));
        }
        self.state = State::Lines;
        self.lines.push(rest, sink)
    }
}

/// An array's buffer grows by steps up to this, and then has room for the largest body at once: at each step what it
/// holds is copied, and is there twice. Room that isn't used takes no memory.
const GROWN_BYTES_MAX: usize = 1024 * 1024;

const NOT_AN_ARRAY: &str =
    "the value is no array; send lines as application/x-ndjson, and a single payload to /ingest/event";

fn too_large(line: u32) -> Refusal {
    Refusal {
        line,
        pointer: None,
        code: RefusalCode::TooLarge,
        detail: format!("a record has at most {EVENT_BYTES_MAX} bytes"),
        offset: Some(EVENT_BYTES_MAX),
    }
}
