//! The state that is durable before an object is written, as [facts](eventlog::encode_facts): a line for each object
//! that is in flight to the store, in order.
//!
//! ```text
//! {"format":"forebay-object","version":2}
//! {"object":{"lane":{…},"first":1,"last":100,"received_at":1760000000123456,"name":"archive-…",…},"kept":{"access":{…}}}
//! ```
//!
//! `object` is the [`Manifest`], and `kept` has a [`Passage`] for each type. Objects with the same positions are committed together.

use std::collections::BTreeMap;
use std::io;

use event::Lane;
use eventlog::{FactFormat, InvalidFact, decode_facts, encode_facts};
use ledger::Passage;
use objects::Manifest;
use serde::{Deserialize, Serialize};

pub(super) const FORMAT: FactFormat = FactFormat { name: "forebay-object", renamed: &[] };

/// The events that are kept of each type.
pub(crate) type Kept = BTreeMap<String, Passage>;

/// A run of positions, and the objects that hold its events: one, or one for each type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectIntent {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// When the first of its events was received.
    pub(crate) received_at: i64,
    pub(crate) objects: Vec<Object>,
}

/// An object and what it keeps, which no longer change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Object {
    #[serde(rename = "object")]
    pub(crate) manifest: Manifest,
    pub(crate) kept: Kept,
}

impl ObjectIntent {
    fn of(object: Object) -> Self {
        let Manifest { first, last, received_at, .. } = object.manifest;
        Self { first, last, received_at, objects: vec![object] }
    }

    /// Adds another object of the same run, or returns it.
    fn take(&mut self, object: Object) -> Option<Object> {
        if (object.manifest.first, object.manifest.last) != (self.first, self.last) {
            return Some(object);
        }
        self.received_at = self.received_at.min(object.manifest.received_at);
        self.objects.push(object);
        None
    }

    /// Groups consecutive objects, those of a run together.
    pub(crate) fn gather(objects: impl IntoIterator<Item = Object>) -> Vec<Self> {
        objects.into_iter().fold(Vec::new(), |mut gathered, object| {
            let rest = match gathered.last_mut() {
                Some(last) => Self::take(last, object),
                None => Some(object),
            };
            gathered.extend(rest.map(Self::of));
            gathered
        })
    }

    /// The names of its objects.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.objects.iter().map(|object| &*object.manifest.name).collect();
        names.join(", ")
    }
}

pub(super) fn encode(intents: &[ObjectIntent]) -> io::Result<Vec<u8>> {
    encode_facts(&FORMAT, intents.iter().flat_map(|intent| &intent.objects))
}

/// Reads what [`encode`] wrote for objects of `lane`.
pub(super) fn decode(text: &[u8], lane: &Lane) -> Result<Vec<Object>, InvalidFact> {
    let mut objects = Vec::new();
    // The lane that opened the file counts, as for its name.
    let of_lane = |object: Object| Object { manifest: Manifest { lane: lane.clone(), ..object.manifest }, ..object };
    let add = |object| {
        objects.push(of_lane(object));
        Ok(())
    };
    decode_facts(&FORMAT, text, add)?;
    Ok(objects)
}

#[cfg(test)]
mod tests;
