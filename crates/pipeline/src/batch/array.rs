//! A body that is one JSON array.

use std::fmt;

use event::limits::{BATCH_RECORDS_MAX, EVENT_BYTES_MAX};
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{BodyError, Item, too_large};
use crate::Refusal;
use crate::json::{self, JsonError};

/// The elements of an array, up to the limit of records.
pub(super) struct Elements<'a> {
    texts: Vec<&'a str>,
    /// There are more elements than the limit.
    more: bool,
}

/// The reader of JSON remembers each level that it is in, in a byte: a body of brackets would be there twice. An element
/// of so many levels has more bytes than a record may have.
const DEPTH_READ_MAX: usize = EVENT_BYTES_MAX;

/// Finds the elements of an array. Their own limits are not checked yet.
pub(super) fn split(body: &[u8]) -> Result<Elements<'_>, JsonError> {
    let text = json::utf8(body)?;
    json::check_depth(text, DEPTH_READ_MAX)?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let elements = deserializer.deserialize_seq(Texts);
    elements
        .and_then(|elements| deserializer.end().map(|()| elements))
        .map_err(|error| JsonError::of_syntax(text, &error))
}

struct Texts;

impl<'de> Visitor<'de> for Texts {
    type Value = Elements<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while texts.len() < BATCH_RECORDS_MAX {
            match elements.next_element::<&RawValue>()? {
                Some(element) => texts.push(element.get()),
                None => return Ok(Elements { texts, more: false }),
            }
        }
        let mut more = false;
        while elements.next_element::<IgnoredAny>()?.is_some() {
            more = true;
        }
        Ok(Elements { texts, more })
    }
}

impl Elements<'_> {
    /// Gives each element, or why it isn't taken.
    pub(super) fn give(self, sink: &mut impl FnMut(Item<'_>)) -> Result<(), BodyError> {
        if self.more {
            return Err(BodyError::TooManyRecords);
        }
        for (number, text) in (1..).zip(self.texts) {
            sink(Item { line: number, ordinal: number, record: limited(number, text) });
        }
        Ok(())
    }
}

fn limited(number: u32, text: &str) -> Result<&str, Refusal> {
    if text.len() > EVENT_BYTES_MAX {
        return Err(too_large(number));
    }
    json::check_limits(text).map_err(|error| Refusal::of_json(number, error))?;
    Ok(text)
}
