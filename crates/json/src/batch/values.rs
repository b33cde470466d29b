//! The values of a line that holds several, one after the other.

use std::ops::Range;

use limits::{BATCH_RECORDS_MAX, EVENT_BYTES_MAX};
use serde::de::IgnoredAny;
use serde_json::{Deserializer, StreamDeserializer};

use super::BatchError;
use crate::{JsonError, first_byte, utf8};

/// The ranges of the values of a line, or the fault of the line, of which then none is accepted.
///
/// # Errors
/// It has more values than a batch may have.
pub(super) fn split(line: &[u8]) -> Result<Result<Vec<Range<usize>>, JsonError>, BatchError> {
    let text = match utf8(line) {
        Ok(text) => text,
        Err(error) => return Ok(Err(error)),
    };
    let mut values = Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut found = Vec::new();
    loop {
        match next(&mut values, line) {
            Some(Ok(_)) if found.len() == BATCH_RECORDS_MAX => return Err(BatchError::TooManyRecords),
            Some(Ok(range)) => found.push(range),
            Some(Err(error)) => return Ok(Err(JsonError::of_syntax(text, &error))),
            None => return Ok(Ok(found)),
        }
    }
}

/// Whether a line that has more bytes than a record begins with a value that is no longer than a record, followed by
/// others.
pub(super) fn begins_with_one_of_several(line: &[u8]) -> bool {
    let beginning = &line[..line.len().min(EVENT_BYTES_MAX + 1)];
    let whole = match std::str::from_utf8(beginning) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&beginning[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut values = Deserializer::from_str(whole).into_iter::<IgnoredAny>();
    let first = next(&mut values, whole.as_bytes());
    matches!(first, Some(Ok(range)) if first_byte(&whole.as_bytes()[range.end..]).is_some())
}

type Values<'a> = StreamDeserializer<'a, serde_json::de::StrRead<'a>, IgnoredAny>;

/// The next value without the whitespace before it.
fn next(values: &mut Values<'_>, line: &[u8]) -> Option<Result<Range<usize>, serde_json::Error>> {
    let before = values.byte_offset();
    let found = values.next()?;
    Some(found.map(|_| {
        let end = values.byte_offset();
        before + first_byte(&line[before..end]).unwrap_or(0)..end
    }))
}
