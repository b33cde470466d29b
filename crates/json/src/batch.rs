//! Splits the body of a batch into records and checks each, while the body arrives.
//!
//! The caller gets lines and elements as soon as they end, borrowed from their chunk: only one that two chunks share is
//! copied. After a fault between the elements of an array, or one that makes the end of an element uncertain, none of
//! them can be trusted: the caller discards them.
//!
//! A line may hold several values, one after the other: all of them are records, or none if the line isn't JSON. No
//! value may continue on the next line: one that does is rejected with all of its lines.

mod array;
mod beginning;
mod boundary;
mod form;
mod lines;
mod span;
#[cfg(test)]
mod tests;
mod values;

use limits::{BATCH_BYTES_MAX, BATCH_RECORDS_MAX, EVENT_BYTES_MAX};

use crate::{JsonError, RecordRejection, RejectionCode, first_byte};
use array::Array;
use beginning::Beginning;
pub use form::Form;
use lines::Lines;
pub use span::begins_over_lines;

/// One record of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The line or element, from 1. Blank lines count here: it is the number that an editor shows.
    pub line: u32,
    /// The value among those of its line, from 1; 1 for an element.
    pub value: u32,
    /// The number that the record has in its id: lines and elements are counted from 1 to [`BATCH_RECORDS_MAX`],
    /// without blank lines. Further values of a line are counted from [`event::FURTHER_VALUES_FROM`] on, over the whole
    /// body.
    pub ordinal: u32,
    /// The type that the sender's protocol names; `None` if the path, the payload or a rule decides.
    pub type_name: Option<&'a str>,
    /// The id that the sender's protocol names.
    pub id: Option<&'a [u8]>,
    /// The value without the whitespace around it, or why it is rejected. Offsets within it count from the start of the
    /// line or element.
    pub record: Result<&'a str, RecordRejection>,
    /// The bytes of the line, value or element as received; empty for one that is too large, or continues over lines.
    pub raw: &'a [u8],
}

/// Why a body as a whole is rejected. Records that were returned earlier don't count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The body should be an array but isn't one. Offsets count from the start of the body.
    #[error("the body is not a JSON array: {0}")]
    NotJson(JsonError),
    /// The body is in another format, by its first bytes.
    #[error("{0}")]
    OtherFormat(JsonError),
    /// The body has more records than a batch may have.
    #[error("a batch has at most {BATCH_RECORDS_MAX} records: send the others as further batches")]
    TooManyRecords,
    /// The body has more bytes than a batch may have.
    #[error("a batch has at most {BATCH_BYTES_MAX} bytes: send the rest as further batches")]
    TooLarge,
}

impl BatchError {
    /// The stable name of the reason.
    #[must_use]
    pub fn code(&self) -> RejectionCode {
        match self {
            Self::NotJson(error) | Self::OtherFormat(error) => error.kind.into(),
            Self::TooManyRecords => RejectionCode::TooManyRecords,
            Self::TooLarge => RejectionCode::TooLarge,
        }
    }
}

/// Splits one body. [`Splitter::push`] accepts its chunks in order, [`Splitter::finish`] ends it; both return records.
/// After an error nothing more may be pushed: drop the splitter.
///
/// It holds at most a line of several values, or a record of full size; and of a body that may be an array or lines the
/// same amount again.
#[derive(Debug)]
pub struct Splitter {
    form: Form,
    /// Present until the format is known from the first bytes.
    beginning: Option<Beginning>,
    state: State,
    received: usize,
    lines: Lines,
}

#[derive(Debug)]
enum State {
    /// Only whitespace has arrived.
    Undecided,
    /// The body is lines.
    Lines,
    /// The body is an array.
    Array(Array),
    /// The body may be an array or lines: the received bytes, how many bytes were before them, the state as an array,
    /// and whether its first line has ended.
    Either { body: Vec<u8>, start: usize, array: Array, is_beyond_line: bool },
}

impl Splitter {
    /// A splitter at the start of a body.
    #[must_use]
    pub fn new(form: Form) -> Self {
        let state = if form == Form::Lines { State::Lines } else { State::Undecided };
        Self { form, beginning: Some(Beginning::default()), state, received: 0, lines: Lines::default() }
    }

    /// About how many bytes it holds.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.lines.kept_bytes()
    }

    /// Accepts the next chunk and passes the records that it completes to `sink`.
    ///
    /// # Errors
    /// [`BatchError`] as soon as it is clear that the body as a whole is rejected.
    pub fn push(&mut self, chunk: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let before = self.received;
        self.received += chunk.len();
        if self.received > BATCH_BYTES_MAX {
            return Err(BatchError::TooLarge);
        }
        let Some(beginning) = &mut self.beginning else { return self.pass(before, chunk, sink) };
        let Some(passed) = beginning.push(chunk)? else { return Ok(()) };
        self.begin_after(passed, chunk, sink)
    }

    /// The format is known: `passed` of the first bytes are skipped.
    fn begin_after(&mut self, passed: usize, chunk: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let held = self.beginning.take().map(Beginning::into_bytes).unwrap_or_default();
        let bytes = if held.is_empty() { chunk } else { &held };
        self.pass(passed, &bytes[passed..], sink)
    }

    fn pass(&mut self, before: usize, chunk: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        match &mut self.state {
            State::Undecided => self.begin(before, chunk, sink),
            State::Lines => self.lines.push(chunk, sink),
            State::Array(array) => array.push(chunk, sink),
            State::Either { .. } => self.pass_either(before, chunk, sink),
        }
    }

    /// An array that isn't closed on its first line continues over lines, so the body can't be lines.
    fn pass_either(&mut self, before: usize, chunk: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let State::Either { body, array, is_beyond_line, .. } = &mut self.state else { return Ok(()) };
        let room = DETECT_BYTES - body.len();
        let line_end = memchr::memchr(b'\n', chunk).filter(|_| !*is_beyond_line).map(|end| end + 1);
        let (more, rest) = chunk.split_at(chunk.len().min(room).min(line_end.unwrap_or(room)));
        body.extend_from_slice(more);
        let ends_line = line_end == Some(more.len());
        *is_beyond_line |= ends_line;
        let form = match array.push(more, &mut |_| {}) {
            Ok(()) if ends_line && !array.is_closed() => Form::Array,
            Ok(()) if rest.is_empty() && body.len() < DETECT_BYTES => return Ok(()),
            Ok(()) if body.len() < DETECT_BYTES => return self.pass_either(before + more.len(), rest, sink),
            Ok(()) => Form::Array,
            Err(error @ BatchError::NotJson(_)) if self.form == Form::Array && !array.is_closed() => return Err(error),
            Err(BatchError::NotJson(_)) => Form::Lines,
            Err(error) => return Err(error),
        };
        self.decide(form, sink)?;
        self.pass(before + more.len(), rest, sink)
    }

    /// Ends the body and passes its last records to `sink`.
    ///
    /// # Errors
    /// [`BatchError`] if the body as a whole is rejected.
    pub fn finish(mut self, sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        if let Some(beginning) = &self.beginning {
            let passed = beginning.finish()?;
            self.begin_after(passed, &[], sink)?;
        }
        if let State::Either { array, .. } = &self.state {
            let is_array = array.is_closed() || self.form == Form::Array;
            self.decide(if is_array { Form::Array } else { Form::Lines }, sink)?;
        }
        match self.state {
            State::Undecided if self.form == Form::Array => {
                Err(BatchError::NotJson(JsonError::syntax(self.received, "the body is empty")))
            }
            State::Array(array) => array.finish(),
            _ => self.lines.finish(sink),
        }
    }

    /// The first byte of a value decides. Whitespace before it may be blank lines: they are counted.
    fn begin(&mut self, before: usize, chunk: &[u8], sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let Some(first) = first_byte(chunk) else {
            return self.lines.push(chunk, sink);
        };
        let (blank, rest) = chunk.split_at(first);
        let start = before + first;
        self.lines.push(blank, sink)?;
        self.state = match (rest[0], self.form) {
            (b'[', form) if form != Form::Lines => {
                State::Either { body: Vec::new(), start, array: Array::new(start), is_beyond_line: false }
            }
            _ => State::Lines,
        };
        self.pass(start, rest, sink)
    }

    /// The received part of a body is split as lines or as an array, and so is the rest.
    fn decide(&mut self, form: Form, sink: &mut impl FnMut(Item<'_>)) -> Result<(), BatchError> {
        let State::Either { body, start, .. } = std::mem::replace(&mut self.state, State::Lines) else { return Ok(()) };
        if form == Form::Lines {
            return self.lines.push(&body, sink);
        }
        let mut array = Array::new(start);
        array.push(&body, sink)?;
        self.state = State::Array(array);
        Ok(())
    }
}

/// If its sender doesn't say which it is, a body that begins with a bracket counts as an array once this many bytes of
/// it could be one: a line of that length would be rejected anyway.
const DETECT_BYTES: usize = EVENT_BYTES_MAX;

fn too_large(line: u32) -> RecordRejection {
    RecordRejection {
        line,
        pointer: None,
        code: RejectionCode::TooLarge,
        detail: format!("a record has at most {EVENT_BYTES_MAX} bytes: split it, or send less").into(),
        offset: Some(EVENT_BYTES_MAX),
    }
}
