//! The ids of events: by a value in the payload, or by the key of the request.

use std::borrow::Cow;

use event::{EventId, KeyedIds, TypeName};
use eventlog::ContentHash;
use json::JsonPointer;
use json::text::scalar_text;
use limits::KEY_BYTES_MAX;
use transform::{DerivedEvent, Element};

use crate::error_code::ErrorCode;
use crate::event_types::{IdRule, Slot, TypeEntry};
use crate::problem::Problem;

/// An id that a client has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChosenId {
    pub(crate) id: EventId,
    pub(crate) by: ChosenBy,
}

/// Where a chosen id comes from: it says which bytes distinguish a duplicate from another event with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChosenBy {
    /// The payload, or the sender's protocol: all bytes that were sent as one event are compared.
    Sender,
    /// An element of an array in the payload, which became this event. The hash of the element is compared.
    Element(u64),
    /// The request's key.
    Key,
    /// The digest of the payload.
    Content,
}

/// What identifies one of a request's payloads in addition to the payload: the id that the sender's protocol names, and the key of the
/// request.
pub(crate) struct RequestKey<'a> {
    /// The id, by which all bytes of the payload are compared.
    pub(crate) id: Option<&'a [u8]>,
    /// Whether the key is the digest of the body. Then an id of the payload's content goes first: the sender hasn't chosen the key.
    pub(crate) is_digest: bool,
    pub(crate) key: Option<&'a [u8]>,
    /// The number of the payload among the records of a batch.
    pub(crate) number: Option<u32>,
    /// The ids of the key for the last type: to hash the key again for each record would cost more than all other steps.
    pub(crate) keyed: &'a mut Option<(Slot, KeyedIds)>,
}

impl RequestKey<'_> {
    /// Whether the sender has named an id or a key.
    pub(super) const fn is_known(&self) -> bool {
        self.id.is_some() || self.key.is_some()
    }

    /// The bytes by which a transform knows the payload.
    pub(super) fn of_record(&self) -> Vec<u8> {
        if let Some(id) = self.id {
            return id.to_vec();
        }
        let number = self.number.map(u32::to_be_bytes);
        self.key.map(|key| [key, number.as_ref().map_or(&[], <[u8; 4]>::as_slice)].concat()).unwrap_or_default()
    }

    /// The id of a payload that has none by its type's pointer. `sent` is the payload as the client sent it.
    pub(super) fn of_request(&mut self, slot: Slot, source: &str, entry: &TypeEntry, sent: &str) -> Option<ChosenId> {
        let of_protocol = |id| ChosenId { id: KeyedIds::new(source, &entry.name, id).id(0), by: ChosenBy::Sender };
        if self.id.is_none() && !self.is_digest {
            return self.chosen(slot, source, entry).or_else(|| of_content(source, entry, sent));
        }
        let own = of_content(source, entry, sent).or_else(|| self.id.map(of_protocol));
        own.or_else(|| self.chosen(slot, source, entry))
    }

    /// The id that the key gives the payload.
    fn chosen(&mut self, slot: Slot, source: &str, entry: &TypeEntry) -> Option<ChosenId> {
        let key = self.key?;
        let ids = match *self.keyed {
            Some((known, ids)) if known == slot => ids,
            _ => KeyedIds::new(source, &entry.name, key),
        };
        *self.keyed = Some((slot, ids));
        Some(ChosenId { id: ids.id(self.number.unwrap_or(0)), by: ChosenBy::Key })
    }
}

/// Checks a key or the text of an id.
///
/// # Errors
/// It is empty or too long.
pub(crate) fn check_key(key: &[u8], what: &str) -> Result<(), Problem> {
    if key.is_empty() {
        return Err(Problem::new(ErrorCode::Key, format!("{what} is empty: use 1 to {KEY_BYTES_MAX} bytes")));
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(Problem::new(
            ErrorCode::Key,
            format!("{what} has {} bytes; at most {KEY_BYTES_MAX} are allowed", key.len()),
        ));
    }
    Ok(())
}

/// The id of a payload of `source` by its type's pointer. `null` is none.
///
/// # Errors
/// The value at the pointer can't be an id.
pub(super) fn of_payload(source: &str, entry: &TypeEntry, payload: &str) -> Result<Option<ChosenId>, Problem> {
    let id = id_at(entry.rules.id.pointer(), source, &entry.name, payload)?;
    Ok(id.map(|id| ChosenId { id, by: ChosenBy::Sender }))
}

/// The id of one of several events into which a transform split a payload. An id within an element of the array is the event's own,
/// independent of the element's index. From an id outside of it the ids of all parts are derived.
///
/// # Errors
/// As [`of_payload`].
pub(super) fn of_part(
    source: &str,
    hash: &ContentHash,
    entry: &TypeEntry,
    part: &DerivedEvent,
    payload: &str,
) -> Result<Option<ChosenId>, Problem> {
    let Some(id) = id_at(entry.rules.id.pointer(), source, &entry.name, payload)? else { return Ok(None) };
    let derived = |number| KeyedIds::of_event(id).id(number);
    Ok(Some(match part.element(entry.steps_with_ids()) {
        Some(Element { text, number }) => {
            ChosenId { id: number.map_or(id, derived), by: ChosenBy::Element(hash.of(text.as_bytes())) }
        }
        None => ChosenId { id: derived(part.number), by: ChosenBy::Sender },
    }))
}

/// The id of a payload of `source` as the client sent it, by its digest.
pub(super) fn of_content(source: &str, entry: &TypeEntry, sent: &str) -> Option<ChosenId> {
    let is_wanted = entry.rules.id == IdRule::Content;
    is_wanted.then(|| ChosenId {
        id: EventId::of_content(source, &entry.name, sent.trim_ascii().as_bytes()),
        by: ChosenBy::Content,
    })
}

fn id_at(
    pointer: Option<&JsonPointer>,
    source: &str,
    name: &TypeName,
    payload: &str,
) -> Result<Option<EventId>, Problem> {
    let Some(pointer) = pointer else { return Ok(None) };
    let Some(raw) = pointer.lookup(payload).filter(|raw| *raw != "null") else { return Ok(None) };
    let text = id_text(raw).map_err(|problem| problem.with_pointer(pointer.as_str()))?;
    Ok(Some(KeyedIds::new(source, name, text.as_bytes()).id(0)))
}

fn id_text(raw: &str) -> Result<Cow<'_, str>, Problem> {
    let text = scalar_text(raw).ok_or_else(|| Problem::new(ErrorCode::Key, "an id must be a string or a number"))?;
    check_key(text.as_bytes(), "the id")?;
    Ok(text)
}
