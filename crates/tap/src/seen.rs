//! An event as a tap sees it.

use event::EventId;

use crate::PAYLOAD_BYTES_MAX;

/// An event that passes a point. What isn't known there is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passing<'a> {
    /// Its type.
    pub type_name: &'a str,
    /// Its source.
    pub source: &'a str,
    /// The sink that has stored or rejected it.
    pub sink: &'a str,
    /// Its id.
    pub id: Option<EventId>,
    /// Its shard and sequence.
    pub position: Option<(u16, u64)>,
    /// When it was received, in microseconds since 1970.
    pub received_at: i64,
    /// The bytes of its payload.
    pub bytes: usize,
    /// The payload, or its beginning. `None` if it may not be shown, or is unknown.
    pub payload: Option<&'a [u8]>,
    /// The code of a rejection, or the reason of a dead letter.
    pub reason: &'a str,
    /// The JSON pointer to the value at fault.
    pub pointer: Option<&'a str>,
    /// The line of a batch.
    pub line: Option<u32>,
}

impl Passing<'_> {
    /// Whether its payload is here as a whole.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.payload.is_some_and(|payload| payload.len() == self.bytes)
    }
}

/// The copy of an event that has passed.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Type, source, sink, reason and pointer, one after the other.
    texts: Box<str>,
    /// Where each of them ends.
    ends: [usize; 5],
    has_pointer: bool,
    payload: Option<Box<[u8]>>,
    /// The rest. Its texts are empty.
    rest: Passing<'static>,
}

impl Seen {
    /// A copy, with the beginning of the payload.
    pub(crate) fn of(passing: &Passing<'_>) -> Self {
        let Passing { type_name, source, sink, reason, pointer, payload, .. } = *passing;
        let (mut texts, mut ends) = (String::new(), [0; 5]);
        for (text, end) in [type_name, source, sink, reason, pointer.unwrap_or_default()].into_iter().zip(&mut ends) {
            texts += &text[..text.floor_char_boundary(PAYLOAD_BYTES_MAX)];
            *end = texts.len();
        }
        let Passing { id, position, received_at, bytes, line, .. } = *passing;
        Self {
            texts: texts.into(),
            ends,
            has_pointer: pointer.is_some(),
            payload: payload.map(|payload| payload[..payload.len().min(PAYLOAD_BYTES_MAX)].into()),
            rest: Passing { id, position, received_at, bytes, line, ..Passing::default() },
        }
    }

    /// The event.
    #[must_use]
    pub fn passing(&self) -> Passing<'_> {
        let text = |at: usize| &self.texts[at.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[at]];
        Passing {
            type_name: text(0),
            source: text(1),
            sink: text(2),
            reason: text(3),
            pointer: self.has_pointer.then(|| text(4)),
            payload: self.payload.as_deref(),
            ..self.rest
        }
    }
}
